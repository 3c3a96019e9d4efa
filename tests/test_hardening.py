"""Attacks: hostile names and servers, keys that must not leak, full disks, odd files and platforms. Each goes through the command line,
as a person or a machine meets it; the large runs of the same kinds are in tests/bench/campaign.py."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from conftest import DATA, ROOT, Ran, Row, read_jsonl, run_here, run_score, write_jsonl
from judge_server import JudgeServer, plain_answers, plain_questions, verdict
from mock_server import MockServer, Reply, call, chat, error

import score

EXAMPLES = DATA / "examples"
ESCAPE = "\x1b[31m\x9b2J\x1b]0;x\x07"                   # what steers a terminal
ANSWER = {"question_id": 1, "answer": "Yedi gün."}


def run_run_here(*arguments: object) -> Ran:
    """Run run.py in this process."""
    pytest.importorskip("openai")
    import run
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run.main([str(a) for a in arguments])
    return Ran(code, out.getvalue(), err.getvalue())


def judge(folder: Path, server: MockServer, *more: object) -> Ran:
    """Judge one answer by two criteria; the rows go to kararlar.jsonl."""
    questions = plain_questions(1, 2)
    data = write_jsonl(folder / "sorular.jsonl", questions)
    answers = write_jsonl(folder / "cevaplar.jsonl", plain_answers(questions))
    return run_here("judge", answers, "--data", data, "-o", folder / "kararlar.jsonl", "--base-url", server.url, *more)


def ask(folder: Path, server: MockServer, *more: object) -> Ran:
    """Ask one question once; the answer goes to yanıtlar.jsonl."""
    data = write_jsonl(folder / "soru.jsonl", [{"id": 1, "soru": "Süre kaç gündür?"}])
    return run_run_here("--data", data, "--model", "m", "-o", folder / "yanıtlar.jsonl", "--attempts", 1, "--base-url", server.url, *more)


def sane(ran: Ran, *codes: int) -> None:
    """It ended with one of these codes and a sentence where it failed, and no traceback."""
    assert ran.code in codes and "Traceback" not in ran.err and "Exception ignored" not in ran.err, ran
    assert ran.code == 0 or ran.err.strip(), ran


# -- what the terminal is told ----------------------------------------------------------------


def test_signs_that_steer_a_terminal_are_printed_nowhere(tmp_path: Path) -> None:
    name = f"Ayşe{ESCAPE}"
    answers = write_jsonl(tmp_path / "a.jsonl", [{**ANSWER, "model": name, "attempt": 1, "answer": f"Yedi {ESCAPE} gün. İİK m. 4 {ESCAPE}"}] * 2)
    unknown = write_jsonl(tmp_path / "b.jsonl", [{**ANSWER, "question_id": f"x{ESCAPE}"}])
    runs = [run_here("facts", answers, "--explain", "-o", tmp_path / "v.jsonl"), run_here("facts", unknown), run_here("check", answers),
            run_here("check", unknown), run_here("cite", answers), run_here("check", DATA / "iik_bench.jsonl", answers)]
    runs += [run_here("report", tmp_path / "v.jsonl", "--format", form) for form in ("text", "md", "csv")]
    assert sum(ran.code == 0 for ran in runs) >= 7
    for ran in runs:
        assert not {"\x1b", "\x9b", "\x07"} & set(ran.out + ran.err), ran


@pytest.mark.parametrize("status", [400, 403, 200])
def test_signs_from_a_server_are_not_printed(tmp_path: Path, status: int) -> None:
    with MockServer([error(status, f"olmadı {ESCAPE}", code="403")]) as server:
        runs = [judge(tmp_path, server), ask(tmp_path, server)]
    for ran in runs:
        sane(ran, 1)
        assert "olmadı" in ran.err and not {"\x1b", "\x9b", "\x07"} & set(ran.err), ran


# -- what a server may send -------------------------------------------------------------------

ODD = ['"usage": {"cost": NaN}', '"usage": {"cost": 1e999}', '"model": -Infinity', f'"provider": {"[" * 950}{"]" * 950}',
               r'"usage": {"\ud83d": "\ud83d"}']


def test_replies_with_what_no_file_can_hold_end_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def odd_at_first(good: Row) -> Any:
        return lambda request: Reply(body=json.dumps(good)[:-1] + f", {ODD[request.number]}}}") if request.number < len(ODD) else good
    monkeypatch.setattr("score.BACKOFF", 0.01)
    with JudgeServer(odd_at_first(verdict("PASS", [True]))) as server:
        sane(judge(tmp_path, server, "--concurrency", 1), 0)
    assert [row["verdict"] for row in read_jsonl(tmp_path / "kararlar.jsonl") if row.get("judge")] == ["PASS", "PASS"]
    monkeypatch.setattr("run.BACKOFF", 0.001)
    with MockServer(odd_at_first(chat())) as server:
        sane(ask(tmp_path, server), 0)
    assert [row["status"] for row in read_jsonl(tmp_path / "yanıtlar.jsonl")] == ["ok"]


@pytest.mark.parametrize("cost", [1e308, 10**400, -1e308])
def test_a_cost_that_no_sum_can_bear_ends_no_run(tmp_path: Path, cost: float) -> None:
    def script(request: Any) -> Any:
        usage = {"cost": cost if request.number % 2 else 0.5, "prompt_tokens": 10**400}
        return chat(None, tool_calls=[call("ara", {})], usage=usage) if request.number < 3 else chat('{"verdict": "PASS"}', usage=usage)
    with JudgeServer(script) as server:
        sane(judge(tmp_path, server, "--concurrency", 1), 0, 3)
    with JudgeServer(script) as server:
        sane(ask(tmp_path, server), 0)
    assert read_jsonl(tmp_path / "yanıtlar.jsonl")[0]["cost"] == 1


def test_a_tool_argument_that_no_file_can_hold_is_told_to_the_model(tmp_path: Path) -> None:
    with MockServer([chat("", tool_calls=[call("ara", '{"adet": 1e999}')]), chat("Yedi gün.")]) as server:
        sane(ask(tmp_path, server), 0)
    (row,) = read_jsonl(tmp_path / "yanıtlar.jsonl")
    assert row["status"] == "ok" and "ara" in row["tool_calls"][0]["output"]


# -- the key ----------------------------------------------------------------------------------

KEY = "sk-gizli/AnahtarX9+Q="                           # a slash, which JSON may write as \\/


def leaks(folder: Path, *runs: Ran) -> list[str]:
    """Where the key stands: in what a command printed, or in a file."""
    return [ran.err for ran in runs if "AnahtarX9" in ran.out + ran.err] + [str(p) for p in folder.rglob("*") if p.is_file() and b"AnahtarX9" in p.read_bytes()]


@pytest.mark.parametrize("status", [200, 307, 400, 401, 402, 403, 404, 413, 429, 500])
def test_a_server_that_repeats_the_key_brings_it_nowhere(tmp_path: Path, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr("score.BACKOFF", 0.01)
    monkeypatch.setattr("run.BACKOFF", 0.01)
    runs = []
    for written in (KEY, KEY.replace("/", r"\/")):
        said = Reply(status, '{"error": {"message": "kötü anahtar: %s", "code": "%s", "param": "%s"}}'.replace("%s", written),
                     {"Location": f"http://127.0.0.1:9/{KEY}", "X-Key": KEY})
        for command, good in ((judge, verdict("PASS", [True], reason=KEY, served=KEY)), (ask, chat(f"Anahtar {KEY}", model=KEY, reasoning=KEY))):
            for script in ([said, said, Reply(401, said.body)], [good], [good, said, good]):
                with JudgeServer(script) as server:
                    runs.append(command(tmp_path, server))
                assert all(request.headers["authorization"] == f"Bearer {KEY}" for request in server.requests)
    for ran in runs:
        sane(ran, 0, 1, 2, 3)
    runs += [run_here(*command) for command in (("report", tmp_path / "kararlar.jsonl", "--data", tmp_path / "sorular.jsonl", "--html", tmp_path / "p.html"),
                                                ("check", tmp_path / "kararlar.jsonl"), ("judge", "--golden", "--batch-out", tmp_path / "b.jsonl"))]
    assert leaks(tmp_path, *runs) == []


@pytest.mark.parametrize("command", [judge, ask])
def test_a_redirect_to_another_host_is_refused_and_nothing_is_sent_there(tmp_path: Path, command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with MockServer([chat()]) as other, MockServer([Reply(308, b"", {"Location": other.url + "/chat/completions"})]) as server:
        sane(command(tmp_path, server), 1)
    assert other.requests == [] and len(server.requests) >= 1


# -- odd files --------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [
    ["judge", "{torn}", "-o", "{tmp}/v.jsonl"], ["judge", "{torn}", "--data", "{torn}", "-o", "{tmp}/v.jsonl"], ["facts", "{torn}"], ["report", "{torn}"],
    ["compare", "{torn}"], ["agree", "{torn}", "{torn}"], ["check", "{torn}"]])
def test_a_file_of_one_torn_line_is_no_score_and_said(tmp_path: Path, arguments: list[str]) -> None:
    torn = tmp_path / "torn.jsonl"
    torn.write_text('{"question_id": "x', encoding="utf-8")
    sane(run_here(*(a.format(torn=torn, tmp=tmp_path) for a in arguments)), 1, 2)


@pytest.mark.parametrize("content", [b"[]", b"{", b"1", b'"a"', b"", b"\xff\xfe", b'{"issue_spotting": 3}', b"[" * 5000])
def test_rubrics_that_are_none_are_refused_in_a_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "r.json").write_bytes(content)
    ran = run_here("check", tmp_path / "r.json")
    sane(ran, 1)
    assert "r.json: " in ran.err and ("expected" in ran.err or "save the file as UTF-8" in ran.err)


def test_an_attempt_of_thousands_of_digits_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"soru;cevap;deneme\n1;Yedi gün.;{'9' * 5000}\n", encoding="utf-8")
    ran = run_here("facts", tmp_path / "a.csv")
    sane(ran, 1)
    assert "a.csv:2: \"attempt\" is" in ran.err and len(ran.err) < 300


@pytest.mark.parametrize("attempt", [10_001, 1_700_000_000, 10**30])
def test_an_attempt_that_is_a_seed_or_a_time_is_refused(tmp_path: Path, attempt: int) -> None:
    answers = write_jsonl(tmp_path / "a.jsonl", [{**ANSWER, "attempt": attempt}])
    rows = write_jsonl(tmp_path / "v.jsonl", [{**row, "attempt": attempt} for row in read_jsonl(EXAMPLES / "irac_verdicts.jsonl")[:9]])
    for command in (["facts", answers], ["report", rows], ["compare", rows]):
        ran = run_here(*command)
        sane(ran, 1)
        assert f'"attempt" is {attempt}; expected a whole number from 1 to 10,000' in ran.err


@pytest.mark.parametrize("suite", [["a"], "baska", {"a": 1}, 7])
def test_check_names_a_suite_that_there_is_not(tmp_path: Path, suite: Any) -> None:
    ran = run_here("check", write_jsonl(tmp_path / "a.jsonl", [{**ANSWER, "suite": suite}]))
    sane(ran, 1)
    assert "a.jsonl" in ran.err and ran.out == ""


@pytest.mark.parametrize("more", [{}, {"suite": "iik"}, {"suite": 1}, {"suite": ["a"]}])
def test_answers_that_are_not_judged_are_refused_by_judge(tmp_path: Path, more: Row) -> None:
    answers = write_jsonl(tmp_path / "a.jsonl", [{**ANSWER, **more}])
    for options in ([], ["--data", DATA / "iik_bench.jsonl"]):
        sane(run_here("judge", answers, *options, "-o", tmp_path / "v.jsonl"), 1, 2)
    assert not (tmp_path / "v.jsonl").exists()


@pytest.mark.parametrize("command", [["check", "-"], ["report", "-", "--html", "{tmp}/p.html"], ["agree", "-", "-"]])
def test_standard_input_that_would_be_read_twice_is_refused(tmp_path: Path, command: list[str]) -> None:
    sane(run_score(*(a.format(tmp=tmp_path) for a in command), stdin=(EXAMPLES / "kategori_verdicts.jsonl").read_bytes()), 2)


# -- disks ------------------------------------------------------------------------------------


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("command", [["report", EXAMPLES / "kategori_verdicts.jsonl"], ["check", DATA / "kategori.jsonl"],
                                     ["cite", EXAMPLES / "dilekce.txt"], ["facts", EXAMPLES / "sinif.csv", "--explain"]])
def test_a_full_disk_behind_standard_output_is_said(command: list[object]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([sys.executable, str(ROOT / "score.py"), *map(str, command)], stdout=full, stderr=subprocess.PIPE, timeout=60)
    sane(Ran(done.returncode, "", done.stderr.decode()), 1)
    assert b"No space left on device" in done.stderr


# -- platforms --------------------------------------------------------------------------------

C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


PYTHONS = sorted({str(path.resolve()) for path in [*Path.home().glob(".pyenv/versions/3.1?.*/bin/python"),
                                                     *map(Path, filter(None, (shutil.which(f"python3.{n}") for n in range(10, 20))))] if "shims" not in path.parts})
PLACES: list[dict[str, str]] = [{}, C_LOCALE, {"PYTHONIOENCODING": "cp1254", "PYTHONUTF8": "0"}]


@pytest.mark.parametrize("python", PYTHONS)
def test_every_python_in_every_place_writes_the_same_bytes(tmp_path: Path, python: str) -> None:
    if subprocess.run([python, "-c", "import sys; sys.exit(sys.version_info < (3, 10))"], capture_output=True).returncode:
        pytest.skip("it does not run, or is older than 3.10")
    commands = ([str(EXAMPLES / "sinif.csv"), "-o", "v.jsonl", "--explain-dir", "pages"], [str(EXAMPLES / "kategori_verdicts.jsonl"), "--html", "p.html"])
    made: set[bytes] = set()
    for number, place in enumerate(PLACES):
        folder = tmp_path / str(number)
        folder.mkdir()
        said = b""
        for name, arguments in zip(("facts", "report"), commands, strict=True):
            flags = ["-S", "-W", "error", *([] if place else ["-I"])]           # -I leaves the environment out
            done = subprocess.run([python, *flags, str(ROOT / "score.py"), name, *arguments], cwd=folder, env={**os.environ, **place}, capture_output=True)
            assert done.returncode == 0 and b"Traceback" not in done.stderr and b"Warning" not in done.stderr, done.stderr.decode("utf-8", "replace")
            said += done.stdout if "PYTHONIOENCODING" not in place else b""
        made.add(b"".join(path.read_bytes() for path in (folder / "v.jsonl", folder / "p.html", *sorted((folder / "pages").iterdir()))))
        if said:
            assert "Şahbaz".encode() in said
    assert len(made) == 1 and hashlib.sha256(made.pop()).hexdigest() == written_here(tmp_path)


def written_here(folder: Path) -> str:
    """The same by the interpreter that runs the tests."""
    run_here("facts", EXAMPLES / "sinif.csv", "-o", folder / "v.jsonl", "--explain-dir", folder / "pages")
    run_here("report", EXAMPLES / "kategori_verdicts.jsonl", "--html", folder / "p.html")
    return hashlib.sha256(b"".join(path.read_bytes() for path in (folder / "v.jsonl", folder / "p.html", *sorted((folder / "pages").iterdir())))).hexdigest()


@pytest.mark.parametrize("encoding", ["cp1254", "cp857", "ascii", "utf-8", "latin-1"])
def test_json_on_standard_output_is_json_in_every_encoding(tmp_path: Path, encoding: str) -> None:
    text = {"id": "ş→😀", "text": "Süre “yedi gün”dür; TBK m. 344/1 → 😀"}
    cited = run_score("cite", "--json", write_jsonl(tmp_path / "t.jsonl", [text]), PYTHONIOENCODING=encoding)
    scored = run_score("facts", write_jsonl(tmp_path / "a.jsonl", [{**ANSWER, "model": "ş→😀"}]), "--format", "json", PYTHONIOENCODING=encoding)
    assert json.loads(cited.out)["id"] == "ş→😀" and json.loads(scored.out)["models"][0]["model"] == "ş→😀"


@pytest.mark.skipif(os.name == "nt", reason="file names are bytes on POSIX only")
@pytest.mark.parametrize(("environment", "name", "model"), [({}, b"\xff-g\xc3\xbcl", "\ufffd-gül"), (C_LOCALE, "gül".encode(), "gül")])
def test_a_name_in_any_bytes_under_any_locale_becomes_text(tmp_path: Path, environment: dict[str, str], name: bytes, model: str) -> None:
    shown = os.fsdecode(name)
    answers = write_jsonl(tmp_path / f"{shown}.jsonl", [ANSWER])
    (tmp_path / "papers" / shown).mkdir(parents=True)
    (tmp_path / "papers" / shown / "1.md").write_text("Yedi gün.", encoding="utf-8")
    for given in (answers, tmp_path / "papers"):
        ran = run_score("facts", given, "-o", tmp_path / "v.jsonl", "--explain-dir", tmp_path / "pages", "--data", DATA / "iik_bench.jsonl", **environment)
        sane(ran, 0)
        assert {row["model"] for row in read_jsonl(tmp_path / "v.jsonl")} == {model}
    ran = run_score("judge", EXAMPLES / "irac_answers.jsonl", "--judge", shown, "--batch-out", tmp_path / "b.jsonl", **environment)
    sane(ran, 0)
    assert json.loads((tmp_path / "b.jsonl").read_bytes().partition(b"\n")[0])["body"]["model"] == model


# -- names that become files ------------------------------------------------------------------

NAMES = ["../../x", "a/b", "a\\\\b", "A_B", "a:b", "CON", "con", "nul.txt", "COM1", "lpt9.x", "", "   ", "...", ".", "..", "-rf", "~", "$(id)", "Ali", "ALİ", "ali", "Ali.",
         "Ayşe", "Ays\u0327e", "ş" * 300, "ş" * 300 + "2", "漢" * 300, "\U0001f600" * 99, "a\nb", "a\u202eb", *("?" * n for n in range(1, 40))]
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)|.*[. ]$|.*[<>:\"/\\\\|?*\0-\x1f]", re.IGNORECASE)


def test_any_name_gets_a_page_of_its_own_inside_the_folder(tmp_path: Path) -> None:
    names = list(filter(str.strip, NAMES))
    answers = write_jsonl(tmp_path / "a.jsonl", [{**ANSWER, "model": name} for name in names])
    sane(run_here("facts", answers, "--explain-dir", tmp_path / "in" / "pages"), 0)
    pages = list((tmp_path / "in" / "pages").iterdir())
    assert len(pages) == len(names) == len({unicodedata.normalize("NFC", p.name).casefold() for p in pages})
    assert not [p.name for p in pages if RESERVED.match(p.name) or p.suffix != ".md" or p.name.startswith(".") or len(os.fsencode(p.name)) > 240]
    assert sorted(p.name for p in tmp_path.rglob("*") if p.parent != tmp_path / "in" / "pages") == ["a.jsonl", "in", "pages"]


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX's")
def test_written_files_have_ordinary_modes_and_nothing_is_left_beside_them(tmp_path: Path) -> None:
    answers = write_jsonl(tmp_path / "a.jsonl", [ANSWER])
    before = os.umask(0o027)
    try:
        run_here("facts", answers, "-o", tmp_path / "v.jsonl", "--explain-dir", tmp_path / "pages")
        run_here("report", tmp_path / "v.jsonl", "--html", tmp_path / "p.html")
        run_here("judge", "--golden", "--batch-out", tmp_path / "b.jsonl")
        with JudgeServer([verdict("PASS", [True])]) as server:
            judge(tmp_path, server)
        with MockServer([chat()]) as server:
            ask(tmp_path, server)
    finally:
        os.umask(before)
    made = {p.name: p.stat().st_mode & 0o777 for p in tmp_path.rglob("*") if p.name in
            ("v.jsonl", "pages", "a.md", "p.html", "b.jsonl", "kararlar.jsonl", "yanıtlar.jsonl")}
    assert made == {"v.jsonl": 0o640, "pages": 0o750, "a.md": 0o640, "p.html": 0o640, "b.jsonl": 0o640, "kararlar.jsonl": 0o640, "yanıtlar.jsonl": 0o640}
    assert not list(tmp_path.rglob(".*"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe, answers = tmp_path / "pipe", write_jsonl(tmp_path / "a.jsonl", [ANSWER])
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        sane(run_here("facts", answers, "-o", pipe), 0)
        got = reader.communicate(timeout=20)[0]
    run_here("facts", answers, "-o", tmp_path / "v.jsonl")
    assert pipe.is_fifo() and got == (tmp_path / "v.jsonl").read_bytes()


def test_answers_on_a_full_disk_stay_whole_and_go_on_when_there_is_room(tmp_path: Path, small_disk: Path) -> None:
    data = write_jsonl(tmp_path / "q.jsonl", [{"id": n, "soru": f"Soru {n}?"} for n in range(30)])
    (small_disk / "ballast").write_bytes(b"x" * 30_000)
    command = ("--data", data, "--model", "m", "-o", small_disk / "a.jsonl", "--attempts", 1)
    with MockServer([chat("ğ" * 1000)]) as server:
        ran = run_run_here(*command, "--base-url", server.url)
        sane(ran, 1)
        assert "a.jsonl: cannot be written (No space left on device)" in ran.err
        rows = read_jsonl(small_disk / "a.jsonl")
        assert 0 < len(rows) < 30 and (small_disk / "a.jsonl").read_bytes().endswith(b"\n")
        (small_disk / "ballast").unlink()
        (tmp_path / "a.jsonl").write_bytes((small_disk / "a.jsonl").read_bytes())
        sane(run_run_here(*command[:5], tmp_path / "a.jsonl", *command[6:], "--base-url", server.url), 0)
    assert sorted(row["question_id"] for row in read_jsonl(tmp_path / "a.jsonl")) == list(range(30))
    assert read_jsonl(tmp_path / "a.jsonl")[:len(rows)] == rows


@pytest.mark.parametrize("option", ["-o", "--explain-dir"])
def test_a_whole_file_for_a_full_disk_leaves_the_old_one(tmp_path: Path, small_disk: Path, option: str) -> None:
    answers = write_jsonl(tmp_path / "a.jsonl", [{**ANSWER, "attempt": n} for n in range(1, 300)])
    output = small_disk / ("v.jsonl" if option == "-o" else "pages")
    sane(run_here("facts", write_jsonl(tmp_path / "one.jsonl", [ANSWER]), option, output), 0)
    before = {p: p.read_bytes() for p in small_disk.rglob("*") if p.is_file()}
    (small_disk / "ballast").write_bytes(b"x" * 40_000)
    ran = run_here("facts", answers, option, output)
    sane(ran, 1)
    assert "cannot be written (No space left on device)" in ran.err and {p: p.read_bytes() for p in before} == before
    assert not list(small_disk.rglob(".*.tmp"))


@pytest.mark.parametrize("draft", ["İİK m. 68 İcra " * 9, "ıİ" * 200, "\ufb03" * 50])
def test_a_draft_in_turkish_capitals_is_cut_away_whole(draft: str) -> None:
    reply = f'<think>{draft} {{"verdict": "PASS"}}</think>{{"verdict": "FAIL", "quote": "a > b"}}'
    assert score.reply_objects(reply, "verdict") == [{"verdict": "FAIL", "quote": "a > b"}]


def test_half_a_letter_in_a_verdict_ends_no_run(tmp_path: Path) -> None:
    with JudgeServer([chat(r'{"verdict": "PASS", "elements": [true], "quote": "\ud83d", "reason": "x\udc00"}')]) as server:
        sane(judge(tmp_path, server), 0)
    assert {row["reason"] for row in read_jsonl(tmp_path / "kararlar.jsonl") if row.get("judge")} == {"x\ufffd"}


def test_more_rows_than_a_page_holds_are_left_out_of_it_and_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "p.html"
    rows = EXAMPLES / "kategori_verdicts.jsonl"
    quote = next(row["quote"] for row in read_jsonl(rows) if row.get("quote"))[:20]
    assert run_here("report", rows, "--html", page).code == 0 and quote in page.read_text(encoding="utf-8")
    monkeypatch.setattr(score, "PAGE_ROWS", 10)
    ran = run_here("report", rows, "--html", page)
    assert ran.code == 0 and "too many for a page" in ran.err and quote not in page.read_text(encoding="utf-8")


def test_a_number_that_would_overflow_a_mean_is_no_number(tmp_path: Path) -> None:
    rows = read_jsonl(EXAMPLES / "kategori_verdicts.jsonl")[:3]
    for field, value in (("seconds", 1e308), ("cost", 10**400), ("usage", {"total_tokens": 10**400})):
        ran = run_here("report", write_jsonl(tmp_path / "v.jsonl", [{**row, field: value} if "row" in row else row for row in rows]))
        sane(ran, 1)
        assert "expected a number" in ran.err


@pytest.mark.parametrize("odd", [5, True, {"a": 1}, ["a"], -1.5])
def test_a_quote_that_is_no_text_spoils_no_page(tmp_path: Path, odd: Any) -> None:
    rows = [{**row, "quote": odd, "reason": odd} for row in read_jsonl(EXAMPLES / "kategori_verdicts.jsonl")[:9]]
    sane(run_here("report", write_jsonl(tmp_path / "v.jsonl", rows), "--html", tmp_path / "p.html"), 0)


@pytest.mark.parametrize("field", ["model", "criterion_id", "attempt"])
def test_a_run_does_not_go_on_with_a_row_whose_key_is_none(tmp_path: Path, field: str) -> None:
    with JudgeServer([verdict("PASS", [True])]) as server:
        sane(judge(tmp_path, server), 0)
        rows = read_jsonl(tmp_path / "kararlar.jsonl")
        write_jsonl(tmp_path / "kararlar.jsonl", [*rows[:-1], {**rows[-1], field: ["x"]}])
        ran = judge(tmp_path, server)
    sane(ran, 2)
    assert f"kararlar.jsonl:{len(rows)}: is not a verdict row" in ran.err


@pytest.mark.parametrize("header", ["Soru 1 (10 puan)", "Cevap 1", "1 (on puan)", "Yanıt 1:", "S1"])
def test_a_teacher_s_headers_are_questions(tmp_path: Path, header: str) -> None:
    (tmp_path / "k.csv").write_bytes(f"Ad Soyad;{header}\r\nIşıl Şahin;idare aleyhine\r\n".encode("cp1254"))
    ran = run_here("facts", tmp_path / "k.csv", "--format", "json")
    assert ran.code == 0 and json.loads(ran.out)["models"][0]["unanswered"] == 40 and "left out" not in ran.err


@pytest.mark.parametrize("name", ["sınav.xlsx", "SINAV.XLS", "sınav.ods"])
def test_a_workbook_is_refused_with_what_to_do(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"PK\3\4\0\0\n\0")
    ran = run_here("facts", tmp_path / name)
    sane(ran, 2)
    assert ran.err.count("\n") == 1 and "save its sheet as CSV" in ran.err


# -- answers that go astray -------------------------------------------------------------------

DIGITS = "9" * 5000                                     # a model that repeats itself; more than int() takes


@pytest.mark.parametrize("text", ["{} TL", "%{}", "TBK m. {}/{}", "m. 1-{}", "E. 2020/{} K. 2020/{}", "{} gün", "{}.{}.{}", "1.{},{} TL", "üç ({}) gün", "{}/{} oranında",
                                  "yüzde {}", "binde {}", "{} Ocak 2020", "{} bin TL", "{},5 gün", "Özelge {}-{}[{}]"])
def test_a_run_of_thousands_of_digits_stops_nothing(text: str) -> None:
    astray = text.replace("{}", DIGITS)
    score.references(astray)
    for wanted in ("üç gün", "1500 TL", "yüzde yirmi", "2/3", astray[:250]):
        list(score.hits(score.phrase(wanted), score.fold(f"{astray} ve 3 gün")))
    assert [r.surface for r in score.references(f"{astray}. Süre üç gündür.")][-1:] == ["üç gündür"]


@pytest.mark.parametrize("day", ["05/10.2011", "5.10-2011", "05 -10/2011"])
def test_a_gazette_of_a_day_with_two_kinds_of_sign_is_read_as_meant(day: str) -> None:
    gazette = next(r for r in score.references(f"(R.G. {day}, Sayı: 28314)") if r.type == "gazette")
    assert gazette.norm == {"no": "28314", "date": "2011-10-05", "mukerrer": 0}
    assert next(r for r in score.references("RG. 30/2.2011-27836")).norm["date"] is None


def test_a_text_without_an_id_is_parsed_all_the_same(tmp_path: Path) -> None:
    ran = run_here("cite", "--json", write_jsonl(tmp_path / "t.jsonl", [{"text": "TBK m. 344/1"}]))
    assert ran.code == 0 and json.loads(ran.out)["id"] is None


# -- the network ------------------------------------------------------------------------------

WATCHED = """import runpy, sys
def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto", "socket.bind", "subprocess.Popen", "os.system"):
        print("AUDIT", event, arguments[1:] if event == "socket.connect" else arguments, file=sys.stderr)
sys.addaudithook(watch)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def watched(script: str, *arguments: object) -> list[str]:
    """What a command connects to, looks up or starts, as Python's own audit hooks tell it."""
    done = subprocess.run([sys.executable, "-c", WATCHED, str(ROOT / script), *map(str, arguments)], capture_output=True, timeout=120,
                          env={**os.environ, "OPENAI_API_KEY": KEY, "PYTHONIOENCODING": "utf-8"})
    assert done.returncode == 0, done.stderr.decode()
    return [line for line in done.stderr.decode().splitlines() if line.startswith("AUDIT")]


@pytest.mark.parametrize("command", [
    ["facts", EXAMPLES / "sinif.csv", "-o", "{tmp}/v.jsonl"], ["report", EXAMPLES / "kategori_verdicts.jsonl", "--html", "{tmp}/p.html"],
    ["compare", EXAMPLES / "kategori_verdicts.jsonl"], ["agree", EXAMPLES / "irac_verdicts.jsonl", EXAMPLES / "irac_verdicts_b.jsonl"],
    ["cite", EXAMPLES / "dilekce.txt"], ["check", DATA / "kategori.jsonl"], ["judge", EXAMPLES / "irac_answers.jsonl", "--dry-run"],
    ["judge", EXAMPLES / "irac_answers.jsonl", "--batch-out", "{tmp}/b.jsonl"]])
def test_commands_that_judge_nothing_connect_to_nothing(tmp_path: Path, command: list[object]) -> None:
    assert watched("score.py", *(str(a).format(tmp=tmp_path) for a in command)) == []


def test_a_run_connects_to_its_base_url_only(tmp_path: Path) -> None:
    pytest.importorskip("openai")
    questions = plain_questions(1, 2)
    data, answers = write_jsonl(tmp_path / "q.jsonl", questions), write_jsonl(tmp_path / "a.jsonl", plain_answers(questions))
    with JudgeServer([verdict("PASS", [True])]) as server:
        judged = watched("score.py", "judge", answers, "--data", data, "-o", tmp_path / "v.jsonl", "--base-url", server.url)
    with MockServer([chat()]) as other:
        asked = watched("run.py", "--data", data, "--model", "m", "-o", tmp_path / "r.jsonl", "--attempts", 1, "--base-url", other.url)
    for lines, address in ((judged, server.root), (asked, other.root)):
        port = address.rpartition(":")[2]
        assert any("connect" in line for line in lines)
        assert [line for line in lines if "socket" in line and f"'127.0.0.1', {port}" not in line] == []


# -- the hub ----------------------------------------------------------------------------------


def test_every_configuration_of_the_readme_loads_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets", reason="the loader of the hub is not installed")
    front = (ROOT / "README.md").read_text(encoding="utf-8").split("---\n")[1]
    configurations = dict(zip(re.findall(r"config_name: (\S+)", front), re.findall(r"path: (\S+)", front), strict=True))
    assert set(configurations) == {"irac", "kategori", "iik"}
    for name, path in configurations.items():
        loaded = datasets.load_dataset(str(ROOT), name, split="test", cache_dir=str(tmp_path))
        rows = read_jsonl(ROOT / path)
        assert loaded.num_rows == len(rows) and loaded.column_names == list(rows[0])
        assert [list(map(str, loaded[column])) == [str(row[column]) for row in rows] for column in ("id", "question" if "question" in rows[0] else "soru")] == [True, True]
        if name == "irac":
            assert [[[element.get("check") for element in criterion["elements"]] for criterion in row["criteria"]] for row in loaded] == [
                [[element.get("check") for element in criterion["elements"]] for criterion in row["criteria"]] for row in rows]
