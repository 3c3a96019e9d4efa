"""Runs that are killed, disturbed or changed, and then go on: the output file is the state."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Ran, Row, read_jsonl, run_score, write_jsonl
from judge_server import JudgeServer, own_part, plain_answers, plain_questions, steady, until, verdict
from mock_server import Reply, Request, error

import score

QUESTIONS = plain_questions(4, 5)
ANSWERS = plain_answers(QUESTIONS, ("a", "b"), attempts=2)      # 16 answers, 80 calls


def command(folder: Path, server: JudgeServer, *more: object) -> list[str]:
    """A judge run in this folder."""
    data, answers = folder / "sorular.jsonl", folder / "cevaplar.jsonl"
    if not data.exists():
        write_jsonl(data, QUESTIONS)
        write_jsonl(answers, ANSWERS)
    return ["judge", str(answers), "--data", str(data), "-o", str(folder / "kararlar.jsonl"), "--base-url", server.url, *map(str, more)]


def start(folder: Path, server: JudgeServer, *more: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, str(ROOT / "score.py"), *command(folder, server, *more)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def here(folder: Path, server: JudgeServer, capsys: pytest.CaptureFixture[str], *more: object) -> Ran:
    """The same in this process."""
    code = score.main(command(folder, server, *more))
    return Ran(code, *capsys.readouterr())


def key(row: Row) -> tuple[Any, ...]:
    return tuple(row.get(field) for field in ("suite", "model", "question_id", "attempt", "criterion_id", "judge"))


def state(folder: Path) -> set[str]:
    """All rows as a set, each checked to stand there once."""
    rows = read_jsonl(folder / "kararlar.jsonl")
    assert [k for k, times in Counter(map(key, rows)).items() if times > 1] == []
    return {json.dumps(row, ensure_ascii=False, sort_keys=True) for row in rows}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The rows of a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("sakin")
    with JudgeServer(steady) as server:
        assert score.main(command(folder, server)) == 0
        assert len(server.requests) == 80
    rows = state(folder)
    assert len(rows) == 96                              # 80 verdicts and 16 attempts
    return rows


# -- kills --


@pytest.mark.parametrize("seed", [1, 2])
def test_a_run_killed_at_random_moments_ends_with_the_rows_of_an_undisturbed_one(tmp_path: Path, undisturbed: set[str], seed: int) -> None:
    chance, kills = random.Random(seed), 0
    with JudgeServer(lambda request: Reply(body=steady(request), delay=0.02)) as server:
        while kills < 8:
            before = len(server.requests)
            run = start(tmp_path, server, "--concurrency", 4)
            target = before + chance.randint(0, 12)     # after so many more requests, and then a moment at random
            until(lambda t=target: len(server.requests) >= t or run.poll() is not None)         # noqa: B023
            time.sleep(chance.random() * 0.03)
            run.send_signal(signal.SIGKILL)
            run.communicate()
            if run.returncode == 0:
                break
            assert run.returncode == -signal.SIGKILL
            kills += 1
        last = start(tmp_path, server, "--concurrency", 4)
        assert last.wait(60) == 0
        last.communicate()
    assert kills >= 3
    assert state(tmp_path) == undisturbed
    assert len(server.requests) <= 80 + kills * 4       # a kill loses at most what was in flight


def test_a_finished_run_asks_nothing_and_writes_nothing(tmp_path: Path, undisturbed: set[str], capsys: pytest.CaptureFixture[str]) -> None:
    with JudgeServer(steady) as server:
        here(tmp_path, server, capsys)
        before = (tmp_path / "kararlar.jsonl").read_bytes()
        asked = len(server.requests)
        assert here(tmp_path, server, capsys).code == 0
        assert len(server.requests) == asked
    assert (tmp_path / "kararlar.jsonl").read_bytes() == before


@pytest.mark.parametrize("tail", [b"\0" * 100, b'{"suite": "irac", "mod', b'{"suite": "irac", "mod' + b"\0" * 4096, b'\xc3', b'{"suite": "\xc5'])
def test_a_torn_tail_is_mended_and_said(tmp_path: Path, undisturbed: set[str], tail: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    with JudgeServer(steady) as server:
        here(tmp_path, server, capsys)
        path = tmp_path / "kararlar.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[:-7]) + tail)
        ran = here(tmp_path, server, capsys)
    assert ran.code == 0 and state(tmp_path) == undisturbed and "torn" in ran.err


def test_a_last_row_that_lacks_only_its_line_end_is_kept(tmp_path: Path, undisturbed: set[str], capsys: pytest.CaptureFixture[str]) -> None:
    with JudgeServer(steady) as server:
        here(tmp_path, server, capsys)
        path = tmp_path / "kararlar.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[:-3])[:-1])
        asked = len(server.requests)
        assert here(tmp_path, server, capsys).code == 0
    assert len(server.requests) == asked + 3 and state(tmp_path) == undisturbed


def test_a_broken_row_in_the_middle_is_named_and_nothing_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with JudgeServer(steady) as server:
        here(tmp_path, server, capsys)
        path = tmp_path / "kararlar.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join([*lines[:4], b'{"suite": \n', *lines[5:]]))
        asked, before = len(server.requests), path.read_bytes()
        ran = here(tmp_path, server, capsys)
    assert ran.code == 1 and "kararlar.jsonl:5:" in ran.err and len(server.requests) == asked and path.read_bytes() == before


def test_ctrl_c_ends_with_130_and_a_whole_file_that_goes_on(tmp_path: Path, undisturbed: set[str], capsys: pytest.CaptureFixture[str]) -> None:
    with JudgeServer(lambda request: Reply(body=steady(request), delay=0.05)) as server:
        run = start(tmp_path, server, "--concurrency", 4)
        until(lambda: len(server.requests) >= 12)
        run.send_signal(signal.SIGINT)
        said = run.communicate(timeout=10)[1].decode()
        assert run.returncode == 130 and "interrupted" in said and "Traceback" not in said
        assert (tmp_path / "kararlar.jsonl").read_bytes().endswith(b"\n")
        assert here(tmp_path, server, capsys).code == 0
    assert state(tmp_path) == undisturbed


# -- faults on the way --


def mixed(share: float, kinds: Sequence[Reply], seed: int) -> Any:
    """A judge that serves steadily but lets this share of requests fail, by lot, in one of the ways given."""
    chance = random.Random(seed)

    def reply(request: Request) -> Any:
        return chance.choice(kinds) if chance.random() < share else steady(request)
    return reply


def test_with_30_percent_of_mixed_faults_the_verdicts_are_the_same(tmp_path: Path, undisturbed: set[str], monkeypatch: pytest.MonkeyPatch,
                                                                   capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(score, "BACKOFF", 0.02)
    kinds = [*map(error, (408, 409, 425, 500, 502, 529)), error(429, headers={"Retry-After": "0.05"}), error(503, headers={"Retry-After": "x"}),
             Reply(fault="reset"), Reply(fault="close"), Reply(body=b"x" * 300, fault="cut"), Reply(200, b"<html>Bad gateway</html>"),
             Reply(200, {"error": {"code": 502, "message": "x"}})]
    with JudgeServer(mixed(0.3, kinds, 7)) as server:
        assert here(tmp_path, server, capsys, "--concurrency", 8).code == 0
    assert len(server.requests) > 95                                                # faults there were
    assert state(tmp_path) == undisturbed


def test_replies_that_cannot_be_used_leave_the_verdicts_that_come_after_them_alone(tmp_path: Path, undisturbed: set[str],
                                                                                  capsys: pytest.CaptureFixture[str]) -> None:
    seen: Counter[bytes] = Counter()

    def reply(request: Request) -> Any:
        seen[request.raw] += 1
        return verdict("?") if seen[request.raw] in (1, 2) and "k3" in own_part(request) else steady(request)

    with JudgeServer(reply) as server:
        assert here(tmp_path, server, capsys, "--concurrency", 1).code == 0
    assert state(tmp_path) == undisturbed


# -- what has changed --


def test_rows_of_another_judge_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with JudgeServer(steady) as server:
        here(tmp_path, server, capsys)
        before, asked = (tmp_path / "kararlar.jsonl").read_bytes(), len(server.requests)
        ran = here(tmp_path, server, capsys, "--judge", "baska/yargi")
    assert ran.code == 2 and "google/gemini-3.1-flash-lite" in ran.err and "baska/yargi" in ran.err and "-o" in ran.err
    assert (tmp_path / "kararlar.jsonl").read_bytes() == before and len(server.requests) == asked


def test_an_output_that_is_no_verdict_file_is_refused_and_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with JudgeServer(steady) as server:
        arguments = command(tmp_path, server)
        arguments[arguments.index("-o") + 1] = str(tmp_path / "sorular.jsonl")
        before = (tmp_path / "sorular.jsonl").read_bytes()
        assert score.main(arguments) == 2
        assert "not a verdict row" in capsys.readouterr().err
        assert (tmp_path / "sorular.jsonl").read_bytes() == before and server.requests == []


def latest(folder: Path) -> dict[tuple[Any, ...], Row]:
    return {key(row): row for row in read_jsonl(folder / "kararlar.jsonl")}


def test_a_changed_answer_is_judged_again_and_only_that(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with JudgeServer(steady) as server:
        here(tmp_path, server, capsys)
        write_jsonl(tmp_path / "cevaplar.jsonl", [{**ANSWERS[0], "answer": "Bambaşka bir cevap."}, *ANSWERS[1:]])
        asked = len(server.requests)
        ran = here(tmp_path, server, capsys)
    assert ran.code == 0 and len(server.requests) == asked + 5
    assert "rested on other answers" in ran.err
    changed = [r for r in latest(tmp_path).values() if key(r)[:4] == ("irac", "a", "s0", 1)]
    assert len(changed) == 6 and len({r["answer_sha"] for r in changed}) == 1
    assert len(latest(tmp_path)) == 96


def test_a_changed_criterion_is_judged_again_for_all_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with JudgeServer(steady) as server:
        here(tmp_path, server, capsys)
        changed = json.loads(json.dumps(QUESTIONS))
        changed[2]["criteria"][1]["elements"][0]["text"] = "Daha dar bir unsur."
        write_jsonl(tmp_path / "sorular.jsonl", changed)
        asked = len(server.requests)
        here(tmp_path, server, capsys)
    assert len(server.requests) == asked + 4            # two models, two attempts
    assert all("Daha dar bir unsur." in own_part(r) for r in server.requests[asked:])


def test_changed_judge_instructions_are_said_and_everything_is_judged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                                            capsys: pytest.CaptureFixture[str]) -> None:
    with JudgeServer(steady) as server:
        here(tmp_path, server, capsys)
        monkeypatch.setattr(score, "RULES", score.RULES + "\nBir kural daha.")
        monkeypatch.setattr(score, "TEMPLATE", "0" * 16)
        asked = len(server.requests)
        ran = here(tmp_path, server, capsys)
    assert len(server.requests) == asked + 80 and "80 rows rested on other" in ran.err
    assert {r["template"] for r in latest(tmp_path).values() if "template" in r} == {"0" * 16}


def test_answers_that_come_later_are_added(tmp_path: Path, undisturbed: set[str], capsys: pytest.CaptureFixture[str]) -> None:
    with JudgeServer(steady) as server:
        command(tmp_path, server)
        write_jsonl(tmp_path / "cevaplar.jsonl", ANSWERS[:6])
        here(tmp_path, server, capsys)
        write_jsonl(tmp_path / "cevaplar.jsonl", ANSWERS)
        here(tmp_path, server, capsys)
    assert len(server.requests) == 80 and state(tmp_path) == undisturbed


# -- a full disk --


def test_a_full_disk_is_said_in_a_line_and_what_is_written_stays_whole(tmp_path: Path, small_disk: Path, undisturbed: set[str]) -> None:
    output = small_disk / "kararlar.jsonl"
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 36_000)
    with JudgeServer(steady) as server:
        arguments = command(tmp_path, server, "--concurrency", 4)
        arguments[arguments.index("-o") + 1] = str(output)
        ran = run_score(*arguments)
        assert ran.code == 1 and "No space left on device" in ran.err and "Traceback" not in ran.err
        rows = output.read_bytes()
        assert rows.endswith(b"\n") and 0 < len(read_jsonl(output)) < 96
        ballast.unlink()
        (tmp_path / "kararlar.jsonl").write_bytes(rows)         # on a larger disk the run goes on
        assert run_score(*command(tmp_path, server)).code == 0
    assert state(tmp_path) == undisturbed


def test_two_runs_on_one_file_are_refused(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    output = tmp_path / "kararlar.jsonl"
    with open(output, "ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        store = score.Store(output, ["yargı"], planned=False)
        with pytest.raises(score.InputError) as refused:
            store.append({"suite": "irac"})
    assert refused.value.code == 2 and "another run" in refused.value.lines[0]
    assert output.read_bytes() == b""
