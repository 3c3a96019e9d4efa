"""How often corpus_tools.py finds the right article among its first hits.

    python tests/bench/corpus_recall.py LAW_FOLDER [data/iik_bench.jsonl] [--misses]

The query is the question as it stands. "any" counts a question when one of the articles its `madde` names is among the
hits, "all" when each of them is. The folder holds one JSON Lines file a statute (short, article, text, heading).
"""

from __future__ import annotations

import json
import re
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "data" / "examples"))

import corpus_tools as corpus  # noqa: E402


def wanted(madde: str) -> set[tuple[str, str]]:
    """(source, article) pairs of a `madde` field; the source is İİK unless another is named before the article."""
    found, source = set(), "İİK"
    for part in re.split(r"[,;]|\bve\b", madde):
        name = re.match(r"\s*([A-ZÇĞİÖŞÜ][\wçğıöşü]*)\b(?=.*\d)", part)
        source = name[1] if name else source
        for article in re.findall(r"((?:geçici|ek|mükerrer)\s+)?(?:m\.?\s*)?(\d+(?:/[a-zA-ZçÇ])?)", part)[:1]:
            found.add((source, corpus.key_of("".join(article))))
    return found


def main() -> None:
    args = [a for a in sys.argv[1:] if a != "--misses"]
    folder = Path(args[0]).resolve()
    data = Path(args[1]) if len(args) > 1 else ROOT / "data" / "iik_bench.jsonl"
    questions = [json.loads(line) for line in data.read_text(encoding="utf-8").splitlines() if line]
    start = time.perf_counter()
    path = corpus.index(folder)
    built = time.perf_counter() - start
    counts = {k: [0, 0] for k in (1, 3, 5, 10)}
    start = time.perf_counter()
    with closing(sqlite3.connect(path)) as db:
        for question in questions:
            hits = corpus.search(db, question["soru"], 10)
            places = [(p.source, corpus.key_of(p.locator)) for p in hits]
            right = wanted(question["madde"])
            for k, count in counts.items():
                count[0] += bool(right & set(places[:k]))
                count[1] += right <= set(places[:k])
            if "--misses" in sys.argv and not right & set(places[:5]):
                print(question["id"], question["madde"], [" ".join(p) for p in places[:6]], question["soru"][:120])
    took = (time.perf_counter() - start) / len(questions) * 1000
    print(f"{len(questions)} questions, {folder.name}; index {built:.1f} s, {took:.1f} ms a query")
    for k, (some, every) in counts.items():
        n = len(questions)
        print(f"recall@{k:<2}  any {some}/{n} = {some / n:.1%}   all {every}/{n} = {every / n:.1%}")


if __name__ == "__main__":
    main()
