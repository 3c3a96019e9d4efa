"""The golden check: a judge against answers with known verdicts, before anyone pays for a run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest import DATA, Ran, Row, read_jsonl, run_here
from judge_server import JudgeServer, elements_asked, own_part, prompt, verdict
from mock_server import Request, chat

import score

PAIRS = read_jsonl(DATA / "examples" / "golden.jsonl")


@pytest.fixture
def golden(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run the golden check against a scripted judge; the JSON board among what it leaves."""
    def run(script: Any, *more: object) -> tuple[Ran, Row, list[Request]]:
        with JudgeServer(script) as server:
            code = score.main(["judge", "--golden", "--base-url", server.url, "--format", "json", *map(str, more)])
            printed = capsys.readouterr()
        return Ran(code, *printed), json.loads(printed.out), server.requests
    return run


def pair_of(request: Request) -> Row:
    """The pair that a request asks about."""
    (found,) = [p for p in PAIRS if f"\n{p['answer']}\nCEVAP " in prompt(request) and p["criterion"]["rule"] in own_part(request)]
    return found


def knowing(request: Request) -> Row:
    """A judge that knows the answers."""
    right = pair_of(request)["verdict"] == "PASS"
    return verdict("PASS" if right else "FAIL", [right] * elements_asked(request))


def always(word: str) -> Any:
    return lambda request: verdict(word, [word == "PASS"] * elements_asked(request))


def board(data: Row) -> Row:
    """The figures by group, wherever the printed board keeps them."""
    return data if "all" in data else next(value for value in data.values() if isinstance(value, dict) and "all" in value)


def test_the_pairs_are_many_balanced_and_explained() -> None:
    assert len(PAIRS) >= 60 and sum(p["hostile"] for p in PAIRS) >= 15
    verdicts = Counter(p["verdict"] for p in PAIRS)
    assert set(verdicts) == {"PASS", "FAIL"} and min(verdicts.values()) >= 0.4 * len(PAIRS)
    assert {p["verdict"] for p in PAIRS if p["hostile"]} == {"PASS", "FAIL"}         # hostility alone must not decide
    assert all(p["why"].strip() for p in PAIRS) and len({p["id"] for p in PAIRS}) == len(PAIRS)
    assert {"planted-verdict", "closing-tag", "role-play", "judge-must", "turkish", "english", "in-citation", "in-table", "in-code-block"} <= {
        p["kind"] for p in PAIRS if p["hostile"]}


def test_a_judge_that_knows_the_answers_agrees_fully(golden: Any) -> None:
    ran, data, requests = golden(knowing)
    assert ran.code == 0 and len(requests) == len(PAIRS)
    hostile = sum(p["hostile"] for p in PAIRS)
    for name, count in (("all", len(PAIRS)), ("hostile", hostile), ("other", len(PAIRS) - hostile)):
        found = board(data)[name]
        assert (found["pairs"], found["null"], found["false_pass"], found["false_fail"]) == (count, 0, 0, 0)
        assert found["agreement_text"].startswith("100.0") and found["kappa_text"].startswith("1.00")


def test_a_judge_that_always_passes_errs_in_one_direction_only(golden: Any) -> None:
    _, data, _ = golden(always("PASS"))
    wrong = sum(p["verdict"] == "FAIL" for p in PAIRS)
    found = board(data)["all"]
    assert (found["false_pass"], found["false_fail"]) == (wrong, 0)
    assert found["agreement_text"].startswith(f"{100 * (len(PAIRS) - wrong) / len(PAIRS):.1f}") and found["kappa_text"].startswith("0.00")


def test_a_judge_that_always_fails_errs_in_the_other(golden: Any) -> None:
    _, data, _ = golden(always("FAIL"))
    assert (board(data)["all"]["false_pass"], board(data)["all"]["false_fail"]) == (0, sum(p["verdict"] == "PASS" for p in PAIRS))


def test_a_judge_that_obeys_hostile_answers_is_shown_by_its_own_row(golden: Any) -> None:
    def obedient(request: Request) -> Row:
        return always("PASS" if pair_of(request)["verdict"] == "FAIL" else "FAIL")(request) if pair_of(request)["hostile"] else knowing(request)
    _, data, _ = golden(obedient)
    assert board(data)["hostile"]["agreement_text"].startswith("0.0") and board(data)["other"]["agreement_text"].startswith("100.0")


def test_replies_that_cannot_be_used_are_counted_apart(golden: Any) -> None:
    first = PAIRS[0]["id"]
    ran, data, _ = golden(lambda r: chat("?") if pair_of(r)["id"] == first else knowing(r))
    assert ran.code == 3 and board(data)["all"]["null"] == 1 and board(data)["all"]["agreement_text"].startswith("100.0")


def test_the_known_verdict_never_reaches_the_judge(golden: Any) -> None:
    _, _, requests = golden(knowing, "--judge", "yargi/x")
    assert {r.json["model"] for r in requests} == {"yargi/x"}
    for request in requests:
        pair = pair_of(request)
        text = prompt(request).replace(pair["answer"], "")
        assert pair["why"] not in text and pair["kind"] not in text.split() and "hostile" not in text and pair["id"] not in text.split()


def test_a_file_of_verdicts_is_refused_for_no_command_could_read_it(tmp_path: Path) -> None:
    ran = run_here("judge", "--golden", "-o", tmp_path / "g.jsonl")
    assert ran.code == 2 and "leave -o out" in ran.err and len(ran.err.splitlines()) == 1 and not (tmp_path / "g.jsonl").exists()


def test_the_check_is_printed_as_a_table_with_what_was_judged_wrongly(capsys: pytest.CaptureFixture[str]) -> None:
    with JudgeServer(always("PASS")) as server:
        assert score.main(["judge", "--golden", "--base-url", server.url]) == 0
    printed = capsys.readouterr().out
    for pair in PAIRS:
        assert (f"{pair['id']} ({pair['kind']}): known FAIL, judged PASS" in printed) == (pair["verdict"] == "FAIL")
