"""The worked example of the documentation is true: from one question and three answers to the score, through the real commands."""

from __future__ import annotations

import json

import pytest
from conftest import FIXTURES, Row, read_jsonl, run_here, write_jsonl

EXAMPLE = FIXTURES / "worked_example"
QUESTION, ANSWERS = EXAMPLE / "question.jsonl", EXAMPLE / "answers.jsonl"


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[list[Row], list[Row], Row]:
    """Requests to the judge, verdict rows and board, with the judge's replies given by hand."""
    folder = tmp_path_factory.mktemp("example")
    judge = ("judge", ANSWERS, "--suite", "irac", "--data", QUESTION, "-o", folder / "v.jsonl")
    assert run_here(*judge, "--batch-out", folder / "ask.jsonl").code == 0
    asked = read_jsonl(folder / "ask.jsonl")
    replies = json.loads((EXAMPLE / "replies.json").read_text(encoding="utf-8"))
    answers, criteria = read_jsonl(ANSWERS), read_jsonl(QUESTION)[0]["criteria"]
    results = []
    for request in asked:
        text = "\n".join(m["content"] if isinstance(m["content"], str) else "".join(p["text"] for p in m["content"])
                         for m in request["body"]["messages"])
        attempt = next(str(a["attempt"]) for a in answers if a["answer"] and a["answer"] in text)
        criterion = next(c["id"] for c in criteria if c["rule"] in text)
        results.append({"custom_id": request["custom_id"], "response": {"status_code": 200, "body": {"model": "hand", "choices": [
            {"message": {"role": "assistant", "content": json.dumps(replies[attempt][criterion], ensure_ascii=False)}, "finish_reason": "stop"}]}}})
    assert run_here(*judge, "--batch-in", write_jsonl(folder / "results.jsonl", results)).code == 0
    board = json.loads(run_here("report", folder / "v.jsonl", "--data", QUESTION, "--format", "json").out)
    return asked, read_jsonl(folder / "v.jsonl"), board


def test_seven_calls_and_the_rest_by_code(made):
    asked, rows, _ = made
    assert len(asked) == 7
    verdicts = {(row["attempt"], row["criterion_id"]): (row["verdict"], row["by"]) for row in rows if "row" not in row}
    assert {c: verdicts[1, c] for c in ("i1", "r1", "a1", "c1")} == dict.fromkeys(("i1", "r1", "a1", "c1"), ("PASS", "judge"))
    assert verdicts[2, "r1"] == ("FAIL", "code") and [verdicts[2, c] for c in ("i1", "a1", "c1")] == [("PASS", "judge")] * 3
    assert {verdicts[3, c] for c in ("i1", "r1", "a1", "c1")} == {("FAIL", "missing")}


def test_the_judge_sees_one_criterion_and_no_name(made):
    for request in made[0]:
        text = json.dumps(request["body"], ensure_ascii=False)
        assert "örnek-model" not in text and sum(c["rule"] in text for c in read_jsonl(QUESTION)[0]["criteria"]) == 1


def test_every_quote_stands_in_its_answer(made):
    assert all(row["quote_found"] for row in made[1] if row.get("by") == "judge")


def test_one_of_two_citations_is_found(made):
    own = {row["attempt"]: row for row in made[1] if row.get("row") == "attempt"}
    assert [own[n]["cited"] for n in (1, 2, 3)] == [0, 2, 0]
    assert len(own[2]["unverified"]) == 1 and "2024/4052" in own[2]["unverified"][0]


def test_every_part_and_the_score(made):
    model = made[2]["models"][0]
    parts = {name: model[name] for name in ("met", "pass^k", "grounding", "completed", "score", "pass@k", "answered_only", "agreement", "seconds",
                                            "cost")}
    assert parts == {"met": pytest.approx(100 * 7 / 12, abs=1e-6), "pass^k": 0, "grounding": 50, "completed": pytest.approx(200 / 3, abs=1e-6),
                     "score": pytest.approx(100 * 19 / 48, abs=1e-6), "pass@k": 100, "answered_only": 87.5, "agreement": 0, "seconds": 41,
                     "cost": pytest.approx(0.09)}
