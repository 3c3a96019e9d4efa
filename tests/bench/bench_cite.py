"""Speed of `references`: MB/s over the texts of a folder of law files, and its ratio to a plain tokenizer in the same run.

    python3 bench_cite.py [FOLDER]
"""
import json
import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from score import references

folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "data" / "examples"
rows = [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.open(encoding="utf-8")]
texts = [row.get("text") or row.get("answer") or "" for row in rows]
texts = [text for text in texts if text] or [path.read_text(encoding="utf-8") for path in folder.glob("*.txt")]
size = sum(len(text.encode()) for text in texts) / 1e6


def seconds(work) -> float:
    best = 1e9
    for _ in range(3):
        start = time.perf_counter()
        for text in texts:
            work(text)
        best = min(best, time.perf_counter() - start)
    return best


floor, ours = seconds(re.compile(r"\w+|\S").findall), seconds(references)
print(f"{len(texts)} texts, {size:.2f} MB: {size / ours:.1f} MB/s; re.findall {size / floor:.1f} MB/s; ratio 1/{ours / floor:.1f} (target 5 MB/s, 1/8)")
