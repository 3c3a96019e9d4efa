"""The recipes for other tools' files run as shown, on samples in the documented forms, and what they write is read by score.py."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from conftest import FIXTURES, Row, run_here, write_jsonl
from test_report import QUESTIONS, near

RECIPES = FIXTURES / "recipes"


def run(recipe: str, *arguments: object) -> list[Row]:
    done = subprocess.run([sys.executable, str(RECIPES / recipe), *map(str, arguments)], capture_output=True, encoding="utf-8", check=True,
                          env={"PYTHONIOENCODING": "utf-8"}, timeout=60)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_inspect_samples_become_answers_with_status_tools_and_usage():
    rows = run("from_inspect.py", RECIPES / "inspect_log.json", "answers")
    assert [(r["question_id"], r["attempt"], r["status"], r["answer"]) for r in rows] == [
        ("qa", 1, "ok", "Cevap metni."), ("qa", 2, "length", "Yarım kalan cevap"), ("qb", 1, "timeout", ""), ("qb", 2, "tools_only", "")]
    assert rows[0]["tool_calls"] == [{"name": "karar_ara", "arguments": {"sorgu": "depozito"}, "output": "Karar metni"}]
    assert (rows[0]["model"], rows[0]["seconds"], rows[0]["usage"]) == ("openrouter/model-x", 14.25,
                                                                        {"prompt_tokens": 1200, "completion_tokens": 300})


def test_inspect_answers_are_read_by_judge(tmp_path):
    data = write_jsonl(tmp_path / "q.jsonl", QUESTIONS)
    answers = write_jsonl(tmp_path / "a.jsonl", run("from_inspect.py", RECIPES / "inspect_log.json", "answers"))
    ran = run_here("judge", answers, "--data", data, "--batch-out", tmp_path / "ask.jsonl", "-o", tmp_path / "v.jsonl")
    assert ran.code == 0, ran.err
    assert len((tmp_path / "ask.jsonl").read_text(encoding="utf-8").splitlines()) == 8        # two answers, four criteria; two are missing


def test_inspect_scores_become_verdicts_and_a_board(tmp_path):
    data = write_jsonl(tmp_path / "q.jsonl", QUESTIONS)
    rows = write_jsonl(tmp_path / "v.jsonl", run("from_inspect.py", RECIPES / "inspect_log.json", "verdicts"))
    ran = run_here("report", rows, "--data", data, "--format", "json")
    assert ran.code == 0, ran.err
    model = json.loads(ran.out)["models"][0]
    # qa: 3/4 and, with a value that is no verdict left out, 3/3; qb: no answer twice.
    assert (model["by_question"]["qa"]["met"], model["by_question"]["qb"]["met"], model["completed"]) == (87.5, 0, 50)
    assert model["met"] == near(43.75) and model["by_question"]["qa"]["passed"] == [False, True]


EXPECTED = [("qa", 1, "Birinci cevap."), ("qa", 2, "İkinci cevap."), ("qa", 3, ""), ("qb", 1, "Üç gün."), ("qb", 2, "Yedi gün."),
            ("qb", 3, "On gün.")]


def test_lm_eval_samples_become_answers_each_once(tmp_path):
    rows = run("from_lm_eval.py", RECIPES / "samples_terazi.jsonl", "my-model")
    assert [(r["question_id"], r["attempt"], r["answer"]) for r in rows] == EXPECTED and {r["model"] for r in rows} == {"my-model"}
    data = write_jsonl(tmp_path / "q.jsonl", QUESTIONS)
    assert run_here("judge", write_jsonl(tmp_path / "a.jsonl", rows), "--data", data, "--dry-run").code == 0


def test_the_query_gives_the_same_answers():
    duckdb = pytest.importorskip("duckdb")
    found = duckdb.execute((RECIPES / "from_lm_eval.sql").read_text(encoding="utf-8"), {
        "model": "my-model", "samples": str(RECIPES / "samples_terazi.jsonl")}).fetchall()
    assert [row[1:] for row in found] == EXPECTED
