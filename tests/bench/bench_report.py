#!/usr/bin/env python3
"""bench_report.py [MODELS ...]: `report` on verdict rows as `judge` writes them, against json.loads on every line of the same file.

13 models (the published board: 14,313 verdicts and 1,638 attempts) and 1,300 models (1.4 million verdicts) by default. Both are whole
processes, turn and turn about; CPU seconds and peak memory of the child, so that a busy machine disturbs less. Over 50 models there are no
intervals, tie groups and rank shifts, and the floor is meant for that size; at 13 models the statistics are the work, and their time is told.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
import score  # noqa: E402

FLOOR = "import json, sys\nfor line in open(sys.argv[1], encoding='utf-8'): json.loads(line)"


def write_rows(path: Path, models: int) -> int:
    """Rows in the product's own form, seeded; how many."""
    generator = random.Random(1)
    questions = score.read_questions(ROOT / "data" / "irac.jsonl", "irac")
    criteria = {q: [(c["id"], c["dimension"], score.rubric_hash(c), [True] * len(c["elements"])) for c in row["criteria"]] for q,
                row in questions.items()}
    count = 0
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for m in range(models):
            skill = 0.85 + 0.14 * generator.random()
            for q in questions:
                for attempt in (1, 2, 3):
                    key = {"suite": "irac", "model": f"vendor/model-{m + 1:04}", "question_id": q, "attempt": attempt}
                    sha = f"{generator.getrandbits(64):016x}"
                    rows = [{**key, "row": "attempt", "status": "ok", "answered": True, "cited": 4, "unverified": ["x"] * generator.randrange(3),
                             "tool_record": True,
                             "tools": ["ara"], "seconds": 30 + generator.getrandbits(6), "cost": generator.getrandbits(8) / 1000,
                             "usage": {"prompt_tokens": 100000, "completion_tokens": 3000}, "answer_sha": sha}]
                    rows += [{**key, "flagged": False, "template": score.TEMPLATE, "answer_sha": sha, "criterion_id": c, "judge": score.JUDGE,
                              "dimension": d,
                              "verdict": "PASS" if generator.random() < skill else "FAIL", "by": "judge",
                              "quote": f"güvence bedeli üç aylık kira bedelini aşamaz {generator.getrandbits(20):06}", "quote_found": True,
                              "reason": "Cevap unsurları taşıyor.", "elements": elements, "rubric": rubric,
                              "prompt": f"{generator.getrandbits(64):016x}",
                              "served": {"model": score.JUDGE, "provider": "Google", "fingerprint": None}, "refused": [],
                              "usage": {"prompt_tokens": 2400, "completion_tokens": 80, "total_tokens": 2480}} for c, d, rubric,
                             elements in criteria[q]]
                    file.writelines(score.to_json(row) + "\n" for row in rows)
                    count += len(rows)
    return count


def measure(*command: str) -> tuple[float, float, float]:
    """Wall and CPU seconds and peak MiB of a whole process (started by a small one, or it would inherit this one's peak)."""
    start = time.perf_counter()
    pid = os.posix_spawn(sys.executable, [sys.executable, *command], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    for models in map(int, sys.argv[1:] or ("13", "1300")):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "verdicts.jsonl"
            if os.fork() == 0:                              # so that writing the rows leaves no memory here
                write_rows(path, models)
                os._exit(0)
            os.wait()
            rows = sum(1 for _ in open(path, "rb"))
            rounds = 5 if models < 100 else 2
            pairs = [(measure("-c", FLOOR, str(path)), measure(str(ROOT / "score.py"), "report", str(path))) for _ in range(rounds)]
            floor, ours = ([statistics.median(run[side][k] for run in pairs) for k in range(3)] for side in (0, 1))
            print(json.dumps({"models": models, "rows": rows, "MB": round(path.stat().st_size / 1e6), "floor cpu s": round(floor[1], 2),
                              "report cpu s": round(ours[1], 2),
                              "ratio cpu": round(ours[1] / floor[1], 2), "floor wall s": round(floor[0], 2), "report wall s": round(ours[0], 2),
                              "ratio wall": round(ours[0] / floor[0], 2), "report MiB": round(ours[2])}))


if __name__ == "__main__":
    main()
