"""Attacks: hostile names and servers, keys that must not leak, full disks, odd files and platforms. Each goes through the command line,
as a person or a machine meets it; the large runs of the same kinds are in tests/bench/campaign.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import DATA, ROOT, Ran, Row, read_jsonl, run_score, write_jsonl
from judge_server import JudgeServer, plain_answers, plain_questions, verdict
from mock_server import MockServer, Reply, call, chat, error

EXAMPLES = DATA / "examples"
ESCAPE = "\x1b[31m\x9b2J\x1b]0;x\x07"                   # what steers a terminal
ANSWER = {"question_id": 1, "answer": "Yedi gün."}


def run_run(*arguments: object, **environment: str) -> Ran:
    """Run run.py in a process of its own."""
    done = subprocess.run([sys.executable, str(ROOT / "run.py"), *map(str, arguments)], capture_output=True, timeout=120,
                          env={**os.environ, **environment})
    return Ran(done.returncode, done.stdout.decode("utf-8", "backslashreplace"), done.stderr.decode("utf-8", "backslashreplace"))


def judge(folder: Path, server: MockServer, *more: object, **environment: str) -> Ran:
    """Judge one answer by two criteria; the rows go to kararlar.jsonl."""
    questions = plain_questions(1, 2)
    data = write_jsonl(folder / "sorular.jsonl", questions)
    answers = write_jsonl(folder / "cevaplar.jsonl", plain_answers(questions))
    return run_score("judge", answers, "--data", data, "-o", folder / "kararlar.jsonl", "--base-url", server.url, *more, **environment)


def ask(folder: Path, server: MockServer, *more: object, **environment: str) -> Ran:
    """Ask one question once; the answer goes to cevaplar.jsonl."""
    pytest.importorskip("openai")
    data = write_jsonl(folder / "soru.jsonl", [{"id": 1, "soru": "Süre kaç gündür?"}])
    return run_run("--data", data, "--model", "m", "-o", folder / "cevaplar.jsonl", "--attempts", 1, "--base-url", server.url, *more, **environment)


def sane(ran: Ran, *codes: int) -> None:
    """It ended with one of these codes and a sentence where it failed, and no traceback."""
    assert ran.code in codes and "Traceback" not in ran.err and "Exception ignored" not in ran.err, ran
    assert ran.code == 0 or ran.err.strip(), ran


# -- what the terminal is told ----------------------------------------------------------------


def test_signs_that_steer_a_terminal_are_printed_nowhere(tmp_path: Path) -> None:
    name = f"Ayşe{ESCAPE}"
    answers = write_jsonl(tmp_path / "a.jsonl", [{**ANSWER, "model": name, "attempt": 1, "answer": f"Yedi {ESCAPE} gün. İİK m. 4 {ESCAPE}"}] * 2)
    unknown = write_jsonl(tmp_path / "b.jsonl", [{**ANSWER, "question_id": f"x{ESCAPE}"}])
    runs = [run_score("facts", answers, "--explain", "-o", tmp_path / "v.jsonl"), run_score("facts", unknown), run_score("check", answers),
            run_score("check", unknown), run_score("cite", answers), run_score("check", DATA / "iik_bench.jsonl", answers)]
    runs += [run_score("report", tmp_path / "v.jsonl", "--format", form) for form in ("text", "md", "csv")]
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
