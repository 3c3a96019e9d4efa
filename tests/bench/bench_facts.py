#!/usr/bin/env python3
"""The facts and start-up rows of the performance table: 41,000 answers (1,000 models, the 41 questions of suite iik, 1,500 characters each),
scored by the published snippet, by `score.py facts` and by `score.py facts -o`; and `--help` beside the imports it cannot do without.

    python tests/bench/bench_facts.py [--models 1000] [--rounds 5] [--words]

All are whole processes, turn and turn about. The best of the rounds counts, since a busy machine only ever adds; memory is the highest peak.
Answers are sentences of the reference answers; with --words they are loose words of them, with facts and false markers strewn in.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SCORE, QUESTIONS = str(ROOT / "score.py"), ROOT / "data" / "iik_bench.jsonl"
LENGTH = 1500
IMPORTS = "import argparse, json, re, urllib.request"
SNIPPET = '''
import json, sys

def puanla(cevap, anahtar_bilgiler, yanlis_isaretler):
    c = cevap.lower().replace("ı", "i")
    bulunan = sum(
        1 for varyantlar in anahtar_bilgiler
        if any(v.lower().replace("ı", "i") in c for v in varyantlar)
    )
    kapsam = bulunan / len(anahtar_bilgiler)
    yanlis = sum(1 for y in yanlis_isaretler if y.lower().replace("ı", "i") in c)
    return max(0.0, kapsam - 0.25 * min(yanlis, 4))

sorular = {s["id"]: s for s in map(json.loads, open(sys.argv[1], encoding="utf-8"))}
puanlar = {}
for satir in map(json.loads, open(sys.argv[2], encoding="utf-8")):
    soru = sorular[satir["question_id"]]
    puanlar.setdefault(satir["model"], []).append(puanla(satir["answer"], soru["anahtar_bilgiler"], soru["yanlis_isaretler"]))
for model, puan in puanlar.items():
    print(model, 100 * sum(puan) / len(puan))
'''


def write_answers(path: Path, models: int, in_words: bool) -> None:
    """Answers of every model to every question, seeded; a third of each model's is about its question."""
    draw = random.Random(1)
    questions = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    make = words_answer if in_words else sentences_answer
    pool = " ".join(q["referans_cevap"] for q in questions)
    parts = pool.split() if in_words else re.split(r"(?<=\.) (?=[^\W\d])", pool)
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for number in range(models):
            for question in questions:
                row = {"question_id": question["id"], "model": f"model-{number:04}", "attempt": 1, "answer": make(draw, question, parts), "status": "ok"}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")


def sentences_answer(draw: random.Random, question: dict[str, Any], sentences: list[str]) -> str:
    """Some sentences of the question's own reference answer, then others until it is long enough."""
    chosen = [s for s in question["referans_cevap"].split(". ") if draw.random() < 0.6]
    while sum(map(len, chosen)) < LENGTH:
        chosen.append(draw.choice(sentences))
    draw.shuffle(chosen)
    return " ".join(s.removesuffix(".") + "." for s in chosen)[:LENGTH]


def words_answer(draw: random.Random, question: dict[str, Any], words: list[str]) -> str:
    """Loose words, with a spelling of about half the facts and a tenth of the false markers among them."""
    put = [draw.choice(fact) for fact in question["anahtar_bilgiler"] if draw.random() < 0.55]
    put += [marker for marker in question["yanlis_isaretler"] if draw.random() < 0.1]
    chosen = [*put, *draw.choices(words, k=LENGTH // 8)]
    draw.shuffle(chosen)
    return " ".join(chosen)[:LENGTH]


def measured(*command: str) -> tuple[float, float]:
    """Wall seconds and peak MiB of a whole process."""
    start = time.perf_counter()
    pid = os.posix_spawn(sys.executable, [sys.executable, *command], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command[:4])} failed")
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def compare(title: str, commands: dict[str, list[str]], rounds: int) -> None:
    """Print the best time and the highest peak of each, and the ratio to the first."""
    print(title)
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            runs[name].append(measured(*command))
    best = {name: min(seconds for seconds, _ in of) for name, of in runs.items()}
    floor = next(iter(best.values()))
    for name, of in runs.items():
        print(f"  {name:18} {best[name]:7.3f} s  {best[name] / floor:5.2f}x  {max(peak for _, peak in of):6.1f} MiB")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--models", type=int, default=1000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--words", action="store_true")
    args = options.parse_args()
    compare("start-up (target 1.5x)", {"imports": ["-c", IMPORTS], "score.py --help": [SCORE, "--help"]}, 4 * args.rounds)
    with tempfile.TemporaryDirectory() as folder:
        answers, verdicts = Path(folder) / "answers.jsonl", str(Path(folder) / "verdicts.jsonl")
        if os.fork() == 0:                                  # in a process of its own: a child's peak starts at its parent's
            write_answers(answers, args.models, args.words)
            os._exit(0)
        os.wait()
        compare(f"facts, {41 * args.models} answers, {answers.stat().st_size / 1e6:.0f} MB (targets 1.5x, with -o 3x)", {
            "published snippet": ["-c", SNIPPET, str(QUESTIONS), str(answers)],
            "facts": [SCORE, "facts", str(answers)],
            "facts -o": [SCORE, "facts", str(answers), "-o", verdicts]}, args.rounds)


if __name__ == "__main__":
    main()
