"""Judging through files: what --batch-out writes, and every documented form of results that --batch-in takes.

Forms: OpenAI's Batch (a line `id, custom_id, response{status_code, request_id, body}, error`; failures in a file of their own), vLLM's
run-batch (the same; a failure has status 400, no body and a text or object as error), Mistral's (no `id` needed, any order), Together's
(failures as `custom_id, error{message, code}`), and the form with the completion as `response` itself.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran, Row, read_jsonl, write_jsonl
from judge_server import JudgeServer, elements_asked, plain_answers, plain_questions, prompt, steady
from mock_server import chat

import score

QUESTIONS = plain_questions(2, 3)
ANSWERS = plain_answers(QUESTIONS, ("a", "b"))      # 4 answers, 12 calls
Wrap = Callable[[str, Row], Row]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """`judge` with these options on the questions and answers above, or others."""
    def go(*more: object, questions: Sequence[Row] = QUESTIONS, answers: Sequence[Row] = ANSWERS) -> Ran:
        data, given = write_jsonl(tmp_path / "s.jsonl", questions), write_jsonl(tmp_path / "c.jsonl", answers)
        code = score.main(["judge", str(given), "--data", str(data), "--base-url", "http://127.0.0.1:1", *map(str, more)])
        return Ran(code, *capsys.readouterr())
    return go


def verdicts(path: Path) -> dict[tuple[Any, ...], Any]:
    """The verdicts by key; each stands once."""
    rows = [r for r in read_jsonl(path) if r.get("row") != "attempt"]
    found = {tuple(r[f] for f in ("model", "question_id", "attempt", "criterion_id", "judge")): r["verdict"] for r in rows}
    assert len(found) == len(rows)
    return found


def completion(request: Row) -> Row:
    """What a model that judges steadily would answer to a line of the batch."""
    passed = len(prompt(request["body"])) % 2 == 0
    content = {"elements": [passed] * elements_asked(request["body"]), "quote": "", "reason": "", "verdict": "PASS" if passed else "FAIL"}
    return chat(json.dumps(content), usage={"prompt_tokens": 5}, model=request["body"]["model"])


def openai_form(custom_id: str, body: Row) -> Row:
    return {"id": "batch_req_1", "custom_id": custom_id, "response": {"status_code": 200, "request_id": "req_1", "body": body}, "error": None}


def vllm_form(custom_id: str, body: Row) -> Row:
    return {"id": "vllm-1", "custom_id": custom_id, "response": {"status_code": 200, "request_id": "vllm-batch-1",
            "body": {**body, "prompt_logprobs": None, "kv_transfer_params": None}}, "error": None}


def mistral_form(custom_id: str, body: Row) -> Row:
    return {"custom_id": custom_id, "response": {"status_code": 200, "body": body}}


def together_form(custom_id: str, body: Row) -> Row:
    return {"custom_id": custom_id, "response": {"status_code": 200, "body": body}, "error": None}


def bare_form(custom_id: str, body: Row) -> Row:
    return {"custom_id": custom_id, "response": body}


FORMS = [openai_form, vllm_form, mistral_form, together_form, bare_form]
FAILURES: dict[str, Row] = {
    "openai": {"id": "batch_req_2", "error": None,
               "response": {"status_code": 400, "request_id": "r", "body": {"error": {"message": "fazla uzun", "code": "x"}}}},
    "openai expired": {"id": "batch_req_3", "response": None, "error": {"code": "batch_expired", "message": "süresi doldu"}},
    "vllm text": {"id": "vllm-2", "response": {"status_code": 400, "request_id": "r", "body": None}, "error": "bağlam çok uzun"},
    "vllm object": {"id": "vllm-3", "response": {"status_code": 400, "request_id": "r", "body": None},
                    "error": {"error": {"message": "bağlam", "code": 400}}},
    "together": {"error": {"message": "geçersiz", "code": "invalid"}},
    "no reply": {"response": {"status_code": 200, "body": chat(None)}},
    "no choices": {"response": {"status_code": 200, "body": {"choices": 7}}},
    "cut off": {"response": {"status_code": 200, "body": chat('{"verdict": "PASS"}', finish="length")}},
    "prose": {"response": {"status_code": 200, "body": chat("Karar veremedim.")}},
    "a list": {"response": [1]},
}


# -- requests --


def test_requests_are_in_the_openai_batch_form_and_blind(run: Any, tmp_path: Path) -> None:
    ran = run("--batch-out", tmp_path / "b.jsonl")
    lines = read_jsonl(tmp_path / "b.jsonl")
    assert ran.code == 0 and ran.out.startswith("12 calls") and len({line["custom_id"] for line in lines}) == 12
    for line in lines:
        assert set(line) == {"custom_id", "method", "url", "body"}
        assert (line["method"], line["url"]) == ("POST", "/v1/chat/completions")
        assert set(line["body"]) == {"model", "messages", "temperature", "max_tokens"}
        assert len(line["custom_id"]) <= 64             # Together's limit
        assert "Unsurlar:\n1. " in prompt(line["body"])
    assert "attempt" not in (tmp_path / "b.jsonl").read_text(encoding="utf-8") and not (tmp_path / "k.jsonl").exists()


def test_a_request_gives_the_reference_or_says_there_is_none(run: Any, tmp_path: Path) -> None:
    question = {**QUESTIONS[0], "criteria": [{**c, "reference": text} for c, text in zip(QUESTIONS[0]["criteria"], ("TBK m. 344/1", "", None), strict=True)]}
    question["criteria"][2].pop("reference")
    run("--batch-out", tmp_path / "b.jsonl", questions=[question, QUESTIONS[1]], answers=ANSWERS[:1])
    told = [prompt(line["body"]).rpartition("Dayanak: ")[2] for line in read_jsonl(tmp_path / "b.jsonl")]
    assert told == ["TBK m. 344/1", "-", "-"]


def test_ids_do_not_tell_the_model_and_are_the_same_in_every_run(run: Any, tmp_path: Path) -> None:
    run("--batch-out", tmp_path / "b1.jsonl")
    run("--batch-out", tmp_path / "b2.jsonl", answers=ANSWERS[::-1])
    first, second = ({line["custom_id"]: line["body"] for line in read_jsonl(tmp_path / name)} for name in ("b1.jsonl", "b2.jsonl"))
    assert first == second
    assert all(set(custom_id) <= set("0123456789abcdef") for custom_id in first)


def test_a_batch_asks_exactly_what_a_run_would(run: Any, tmp_path: Path) -> None:
    run("--batch-out", tmp_path / "b.jsonl")
    with JudgeServer(steady) as server:
        run("-o", tmp_path / "k.jsonl", "--base-url", server.url)
    assert sorted(json.dumps(line["body"], sort_keys=True) for line in read_jsonl(tmp_path / "b.jsonl")) == sorted(
        json.dumps(r.json, sort_keys=True) for r in server.requests)


def test_a_batch_asks_only_what_is_missing(run: Any, tmp_path: Path) -> None:
    with JudgeServer(steady) as server:
        run("-o", tmp_path / "k.jsonl", "--base-url", server.url, answers=ANSWERS[:3])
    run("-o", tmp_path / "k.jsonl", "--batch-out", tmp_path / "b.jsonl")
    assert len(read_jsonl(tmp_path / "b.jsonl")) == 3


# -- results --


@pytest.mark.parametrize("form", FORMS)
def test_each_documented_form_of_results_is_taken_in_any_order(run: Any, tmp_path: Path, form: Wrap) -> None:
    run("--batch-out", tmp_path / "b.jsonl")
    requests = read_jsonl(tmp_path / "b.jsonl")
    random.Random(3).shuffle(requests)
    write_jsonl(tmp_path / "r.jsonl", [form(line["custom_id"], completion(line)) for line in requests])
    ran = run("-o", tmp_path / "k.jsonl", "--batch-in", tmp_path / "r.jsonl")
    assert ran.code == 0 and "12 verdicts taken over, 0 still missing" in ran.err
    found = verdicts(tmp_path / "k.jsonl")
    assert len(found) == 12 and set(found.values()) <= {"PASS", "FAIL"}
    row = next(r for r in read_jsonl(tmp_path / "k.jsonl") if r.get("row") != "attempt")
    assert row["usage"] == {"prompt_tokens": 5} and row["served"]["model"] == "google/gemini-3.1-flash-lite" and row["by"] == "judge"


def test_a_batch_gives_the_rows_that_a_run_gives(run: Any, tmp_path: Path) -> None:
    run("--batch-out", tmp_path / "b.jsonl")
    with JudgeServer(steady) as server:
        run("-o", tmp_path / "direct.jsonl", "--base-url", server.url)
    answers = {json.dumps(r.json, sort_keys=True): r for r in server.requests}
    write_jsonl(tmp_path / "r.jsonl", [openai_form(line["custom_id"], steady(answers[json.dumps(line["body"], sort_keys=True)]))
                                       for line in read_jsonl(tmp_path / "b.jsonl")])
    run("-o", tmp_path / "batch.jsonl", "--batch-in", tmp_path / "r.jsonl")
    rows = [sorted(json.dumps(row, sort_keys=True) for row in read_jsonl(tmp_path / name)) for name in ("direct.jsonl", "batch.jsonl")]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failed_or_unusable_result_stays_missing_and_is_named(run: Any, tmp_path: Path, failure: str) -> None:
    run("--batch-out", tmp_path / "b.jsonl")
    first, *others = read_jsonl(tmp_path / "b.jsonl")
    results = [openai_form(line["custom_id"], completion(line)) for line in others]
    write_jsonl(tmp_path / "r.jsonl", [*results, {"custom_id": first["custom_id"], **FAILURES[failure]}])
    ran = run("-o", tmp_path / "k.jsonl", "--batch-in", tmp_path / "r.jsonl")
    assert ran.code == 3 and "r.jsonl:12:" in ran.err and "stays missing" in ran.err and "Traceback" not in ran.err
    assert len(verdicts(tmp_path / "k.jsonl")) == 11 and None not in verdicts(tmp_path / "k.jsonl").values()
    run("-o", tmp_path / "k.jsonl", "--batch-out", tmp_path / "b2.jsonl")
    assert [line["custom_id"] for line in read_jsonl(tmp_path / "b2.jsonl")] == [first["custom_id"]]


def test_partial_results_can_be_taken_over_in_parts(run: Any, tmp_path: Path) -> None:
    run("--batch-out", tmp_path / "b.jsonl")
    results = [openai_form(line["custom_id"], completion(line)) for line in read_jsonl(tmp_path / "b.jsonl")]
    write_jsonl(tmp_path / "r1.jsonl", results[:5])
    write_jsonl(tmp_path / "r2.jsonl", results[3:])
    assert run("-o", tmp_path / "k.jsonl", "--batch-in", tmp_path / "r1.jsonl").code == 3
    assert run("-o", tmp_path / "k.jsonl", "--batch-in", tmp_path / "r2.jsonl").code == 0
    assert len(verdicts(tmp_path / "k.jsonl")) == 12


def test_unknown_ids_are_named_and_change_nothing(run: Any, tmp_path: Path) -> None:
    run("--batch-out", tmp_path / "b.jsonl")
    line = read_jsonl(tmp_path / "b.jsonl")[0]
    results = [openai_form("yabanci-1", completion(line)), openai_form(line["custom_id"], completion(line)), {"response": None}]
    write_jsonl(tmp_path / "r.jsonl", results)
    ran = run("-o", tmp_path / "k.jsonl", "--batch-in", tmp_path / "r.jsonl")
    assert ran.code == 3 and 'r.jsonl:1: "custom_id" "yabanci-1" is not a request of this run' in ran.err and "nor 1 other line" in ran.err
    assert "r.jsonl:2:" not in ran.err and len(verdicts(tmp_path / "k.jsonl")) == 1


def test_results_to_other_answers_are_unknown(run: Any, tmp_path: Path) -> None:
    run("--batch-out", tmp_path / "b.jsonl")
    write_jsonl(tmp_path / "r.jsonl", [openai_form(line["custom_id"], completion(line)) for line in read_jsonl(tmp_path / "b.jsonl")])
    changed = [{**answer, "answer": answer["answer"] + " Ek."} for answer in ANSWERS]
    ran = run("-o", tmp_path / "k.jsonl", "--batch-in", tmp_path / "r.jsonl", answers=changed)
    assert ran.code == 3 and ran.err.count("is not a request of this run") == 1 and "nor 11 other lines" in ran.err and verdicts(tmp_path / "k.jsonl") == {}


def test_the_same_results_a_second_time_are_one_sentence(run: Any, tmp_path: Path) -> None:
    run("--batch-out", tmp_path / "b.jsonl")
    write_jsonl(tmp_path / "r.jsonl", [openai_form(line["custom_id"], completion(line)) for line in read_jsonl(tmp_path / "b.jsonl")])
    assert run("-o", tmp_path / "k.jsonl", "--batch-in", tmp_path / "r.jsonl").err == "12 verdicts taken over, 0 still missing\n"
    again = run("-o", tmp_path / "k.jsonl", "--batch-in", tmp_path / "r.jsonl")
    assert again.code == 0 and len(again.err.splitlines()) == 2 and len(verdicts(tmp_path / "k.jsonl")) == 12
    assert "r.jsonl:1:" in again.err and "done already" in again.err and "nor 11 other lines" in again.err


def test_two_results_that_contradict_each_other_stay_missing(run: Any, tmp_path: Path) -> None:
    run("--batch-out", tmp_path / "b.jsonl")
    custom_id = read_jsonl(tmp_path / "b.jsonl")[0]["custom_id"]
    other = read_jsonl(tmp_path / "b.jsonl")[1]["custom_id"]
    word = lambda name, verdict: openai_form(name, chat(f'{{"verdict": "{verdict}"}}'))  # noqa: E731
    words = [(custom_id, "PASS"), (custom_id, "FAIL"), (custom_id, "PASS"), (other, "PASS"), (other, "PASS")]
    write_jsonl(tmp_path / "r.jsonl", [word(*pair) for pair in words])
    ran = run("-o", tmp_path / "k.jsonl", "--batch-in", tmp_path / "r.jsonl")
    assert "another verdict" in ran.err and list(verdicts(tmp_path / "k.jsonl").values()) == ["PASS"]


def test_a_malformed_results_file_is_refused_whole_with_every_line_named(run: Any, tmp_path: Path) -> None:
    run("--batch-out", tmp_path / "b.jsonl")
    lines = [json.dumps(openai_form(line["custom_id"], completion(line))) for line in read_jsonl(tmp_path / "b.jsonl")]
    (tmp_path / "r.jsonl").write_text("\n".join([lines[0], "{bozuk", lines[1], "[]"]) + "\n", encoding="utf-8")
    ran = run("-o", tmp_path / "k.jsonl", "--batch-in", tmp_path / "r.jsonl")
    assert ran.code == 1 and "r.jsonl:2:" in ran.err and "r.jsonl:4:" in ran.err and not (tmp_path / "k.jsonl").exists()


def test_answers_that_need_no_judge_are_done_by_the_same_command(run: Any, tmp_path: Path) -> None:
    answers = [ANSWERS[0], {"question_id": "s1", "model": "a", "attempt": 1, "answer": "", "status": "timeout"}]
    run("--batch-out", tmp_path / "b.jsonl", answers=answers)
    write_jsonl(tmp_path / "r.jsonl", [openai_form(line["custom_id"], completion(line)) for line in read_jsonl(tmp_path / "b.jsonl")])
    assert run("-o", tmp_path / "k.jsonl", "--batch-in", tmp_path / "r.jsonl", answers=answers).code == 0
    assert sorted(r.get("by", "attempt") for r in read_jsonl(tmp_path / "k.jsonl")) == ["attempt"] * 2 + ["judge"] * 3 + ["missing"] * 3


# -- kategori: two rounds --


def test_kategori_goes_through_files_in_two_rounds(run: Any, tmp_path: Path) -> None:
    questions = [{"id": f"k{n}", "area": "TTK", "category": "interpretation", "question": f"k{n} nedir?", "reference_answer": "Referans.",
                  "references": [], "as_of": "2026-08-22", "canary": "yok"} for n in range(4)]
    answers = [{"question_id": q["id"], "model": "m", "answer": f"{q['id']} cevabı."} for q in questions]
    scores = {"k0": (2, 3), "k1": (1, 3), "k2": (0, 1), "k3": (2, None)}            # k1 and k2 need the third, k3 waits for its second
    options = ("--graders", "bir", "iki", "--tiebreak", "uc", "-o", tmp_path / "k.jsonl")

    def result(line: Row) -> Row:
        name, grader = prompt(line["body"]).rpartition("CEVAP ")[0][-12:].split(" ")[0].split("\n")[-1], line["body"]["model"]
        value = 1 if grader == "uc" else scores[name][("bir", "iki").index(grader)]
        reply = {"score": value, "hallucination": False, "evasion": False, "quote": "", "reason": ""}
        return openai_form(line["custom_id"], chat(json.dumps(reply) if value is not None else "bilemedim"))

    ran = run(*options, "--batch-out", tmp_path / "b1.jsonl", questions=questions, answers=answers)
    assert ran.out.startswith("8 calls") and "second round" in ran.err
    write_jsonl(tmp_path / "r1.jsonl", map(result, read_jsonl(tmp_path / "b1.jsonl")))
    ran = run(*options, "--batch-in", tmp_path / "r1.jsonl", questions=questions, answers=answers)
    assert ran.code == 3 and "not a request of this run" not in ran.err
    run(*options, "--batch-out", tmp_path / "b2.jsonl", questions=questions, answers=answers)
    second = read_jsonl(tmp_path / "b2.jsonl")
    assert sorted(line["body"]["model"] for line in second) == ["iki", "uc", "uc"]
    scores["k3"] = (2, 2)
    write_jsonl(tmp_path / "r2.jsonl", map(result, second))
    ran = run(*options, "--batch-in", tmp_path / "r2.jsonl", questions=questions, answers=answers)
    assert ran.code == 0 and "not a request of this run" not in ran.err
    assert {(r["question_id"], r["judge"]): r["verdict"] for r in read_jsonl(tmp_path / "k.jsonl") if r.get("row") != "attempt"} == {
        ("k0", "bir"): 2, ("k0", "iki"): 3, ("k1", "bir"): 1, ("k1", "iki"): 3, ("k1", "uc"): 1, ("k2", "bir"): 0, ("k2", "iki"): 1, ("k2", "uc"): 1,
        ("k3", "bir"): 2, ("k3", "iki"): 2}
