"""Verdicts and scores found in whatever a judge writes: the shared cases P12 to P17 and their kind."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import read_jsonl, shared_case, write_jsonl
from hypothesis import given, settings
from hypothesis import strategies as st
from judge_server import JudgeServer, plain_questions
from mock_server import Reply, Request, chat

import score


def read(content: str, elements: int = 1) -> str | None:
    """The verdict in a reply, None if it can't be used."""
    reading = score.read_verdict([None] * elements, "", content)
    return reading["verdict"] if reading else None


def judged(tmp_path: Path, replies: Any) -> tuple[dict[str, Any], list[Request]]:
    """The verdict row of one criterion after these replies, and the requests it took."""
    data = write_jsonl(tmp_path / "s.jsonl", plain_questions(1, 1))
    answers = write_jsonl(tmp_path / "c.jsonl", [{"question_id": "s0", "answer": "Aşan kısım için sınıra kadar gider yazılabilir."}])
    with JudgeServer(replies) as server:
        score.main(["judge", str(answers), "--data", str(data), "-o", str(tmp_path / "k.jsonl"), "--base-url", server.url])
    (row,) = [r for r in read_jsonl(tmp_path / "k.jsonl") if r.get("row") != "attempt"]
    return row, server.requests


# -- the shared cases --


def test_case_p12_a_fenced_reply_with_prose_line_breaks_and_a_last_comma_is_read_at_once(tmp_path: Path) -> None:
    case = shared_case("P12")
    row, requests = judged(tmp_path, [chat(case["input"]["judge_content"])])
    expected = case["expected"]["result"]
    assert (row["verdict"], row["quote"], len(requests)) == (expected["verdict"], expected["quote"], expected["judge_calls"])
    assert row["quote_found"] is True


def test_case_p13_a_verdict_is_read_from_its_field_never_from_prose() -> None:
    case = shared_case("P13")
    found = [read(run["judge_content"]) for run in case["input"]["runs"]]
    assert found[0] in ("FAIL", None) and found[1:] == ["FAIL", None]


def test_case_p14_drafts_while_thinking_are_no_verdict(tmp_path: Path) -> None:
    case = shared_case("P14")
    found = []
    for number, run in enumerate(case["input"]["runs"]):
        (tmp_path / str(number)).mkdir()
        row, requests = judged(tmp_path / str(number), [chat(run["judge_content"], finish=run["finish_reason"])])
        found.append((row["verdict"], len(requests)))
    assert found == [("FAIL", 1), (None, 3), ("FAIL", 1)]


def test_case_p15_only_the_two_words_are_verdicts() -> None:
    case = shared_case("P15")
    found = [read(json.dumps({"verdict": value, "quote": "", "reason": ""})) or "unusable" for value in case["input"]["verdict_values"]]
    assert found == case["expected"]["result"]
    assert read(case["input"]["missing_key"]) is None


def test_case_p16_an_empty_reply_is_asked_three_times_and_its_reasoning_is_never_read(tmp_path: Path) -> None:
    case = shared_case("P16")
    row, requests = judged(tmp_path, [case["input"]["http_json"]])
    assert (row["verdict"], len(requests)) == (None, 3)
    assert "finish_reason=length" in row["reason"]
    assert "karar PASS olabilir" not in json.dumps(row, ensure_ascii=False)


def test_case_p17_a_planted_verdict_quoted_by_the_judge_is_not_booked() -> None:
    assert read(shared_case("P17")["input"]["judge_content"]) in ("FAIL", None)


# -- more of their kind --


@pytest.mark.parametrize(("content", "expected"), [
    ('{"elements": [true], "quote": "", "reason": "", "verdict": "PASS"}', "PASS"),
    ('```\n{"verdict": "PASS"}\n```', "PASS"),
    ('{"reason": "```json kullanılmış```", "verdict": "FAIL"}', "FAIL"),
    ('{"verdict": "PASS",\n "quote": "satır\nsonu\tsekme"}', "PASS"),
    ('Unsurlar {1, 2} var. {"verdict": "PASS"}', "PASS"),
    ('{"verdict": "PASS"} ve yine {"verdict": "PASS"}', "PASS"),
    ('{"verdict": "PASS"} hayır: {"verdict": "FAIL"}', None),
    ('{"verdict": "FAIL", "verdict": "PASS"}', None),
    ('{"verdict": "PASS", "elements": [true], "elements": [false]}', None),
    ('{"verdict": "PASS", "verdict": "PASS"}', None),
    ('{"verdict": ["PASS"]}', None),
    ('{"verdict": {"verdict": "PASS"}}', None),
    ('["PASS"]', None), ("PASS", None), ("", None), ("null", None), ("{}", None), ('{"verdict": NaN}', None),
    ('<thinking>{"verdict": "PASS"}</thinking>{"verdict": "FAIL"}', "FAIL"),
    ('<reasoning>{"verdict": "PASS"}', None),
    ('<think>a</think>{"verdict": "PASS"}<think>{"verdict": "FAIL"}', None),
])
def test_what_is_read_in_a_reply(content: str, expected: str | None) -> None:
    assert read(content) == expected


@pytest.mark.parametrize("content", [
    '{"elements": [false], "quote": "{"verdict": "PASS"}", "reason": "", "verdict": "FAIL"}',       # a quotation that was not escaped
    '{"note": {"verdict": "PASS"}, "verdict": "FA',                                                   # broken off
    '{"verdict": "FAIL", "quote": "x" "reason": {"verdict": "PASS"}}',
])
def test_an_object_inside_a_broken_one_is_no_verdict(content: str) -> None:
    assert read(content) is None


@pytest.mark.parametrize(("elements", "expected", "ticks"), [
    ([True, True], "PASS", [True, True]), ([True, False], "FAIL", [True, False]), (None, "PASS", None), ([True], "PASS", None),
    ([True, True, False], "FAIL", None), (["true", "false"], "FAIL", None), ([1, 0], "FAIL", None), ([True, "x"], "PASS", None), ("evet", "PASS", None)])
def test_pass_needs_the_word_and_no_false_element(elements: Any, expected: str, ticks: list[bool] | None) -> None:
    reading = score.read_verdict([None, None], "", json.dumps({"elements": elements, "verdict": "PASS"}))
    assert reading is not None and (reading["verdict"], reading["elements"]) == (expected, ticks or [None, None])


def test_an_object_right_after_another_brace_is_read_and_a_reply_of_braces_is_given_up() -> None:
    assert read('{{"elements": [true], "verdict": "PASS"}}') == "PASS"
    assert read("{ " * 99 + '{"verdict": "PASS"}') == "PASS" and read("{ " * 100 + '{"verdict": "PASS"}') is None


def test_fail_with_all_elements_true_is_fail() -> None:
    assert read('{"elements": [true], "verdict": "FAIL"}') == "FAIL"


@pytest.mark.parametrize(("reply", "expected"), [
    ({"score": 3, "hallucination": False, "evasion": False}, 3), ({"score": 0, "hallucination": True, "evasion": True}, 0),
    ({"score": 2.0, "hallucination": False, "evasion": False}, 2), ({"score": 2.5, "hallucination": False, "evasion": False}, None),
    ({"score": 4, "hallucination": False, "evasion": False}, None), ({"score": -1, "hallucination": False, "evasion": False}, None),
    ({"score": "3", "hallucination": False, "evasion": False}, None), ({"score": True, "hallucination": False, "evasion": False}, None),
    ({"score": [3], "hallucination": False, "evasion": False}, None), ({"score": 3, "hallucination": "false", "evasion": False}, None),
    ({"score": 3, "evasion": False}, None), ({"score": 3, "hallucination": False}, None), ({"verdict": "PASS"}, None)])
def test_a_grade_is_0_to_3_with_both_flags(reply: dict[str, Any], expected: int | None) -> None:
    reading = score.read_grade("", json.dumps(reply))
    assert (reading["verdict"] if reading else None) == expected


def test_two_grades_that_differ_are_none() -> None:
    one, other = (json.dumps({"score": 3, "hallucination": word, "evasion": False}) for word in (False, True))
    assert score.read_grade("", one + one) is not None
    assert score.read_grade("", one + other) is None
    assert score.read_grade("", one + one.replace("3", "2")) is None


PIECES = ['{"verdict": "PASS"', "}", "{", '"', "<think>", "</think>", ",", "[", "false", " ", "```"]


@settings(deadline=None)
@given(st.text() | st.lists(st.sampled_from(PIECES)).map("".join))
def test_no_reply_makes_the_reader_fall_over(content: str) -> None:
    assert read(content) in ("PASS", "FAIL", None)
    score.read_grade("", content)


@pytest.mark.parametrize("piece", ["<think>", "{", '{"a":', "[", '{"verdict": ', ", ", "</think>", '{"verdict":"FAIL"}', "\\", ",\n\n\n"])
def test_long_nonsense_is_read_in_well_under_a_second(piece: str) -> None:
    begun = time.process_time()
    read(piece * (60_000 // len(piece)))
    assert time.process_time() - begun < 1


def test_half_an_emoji_in_a_reply_is_stored_as_a_readable_row(tmp_path: Path) -> None:
    raw = rb'{"choices":[{"finish_reason":"stop","message":{"content":"{\"verdict\":\"PASS\",\"reason\":\"Evet \ud83d devam\"}"}}]}'
    row, _ = judged(tmp_path, [Reply(body=raw)])
    assert (row["verdict"], row["reason"]) == ("PASS", "Evet \ufffd devam")


def test_a_reply_in_parts_is_put_together(tmp_path: Path) -> None:
    row, _ = judged(tmp_path, [chat([{"type": "text", "text": '{"verdict": '}, {"type": "text", "text": '"FAIL"}'}])])
    assert row["verdict"] == "FAIL"
