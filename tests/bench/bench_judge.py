"""The judge rows of the performance table: 378 calls (42 answers of 6,000 characters, 9 criteria), 32 at once, over http and https, beside a
bare urllib pool with one TLS context that sends the same requests to the same server; calls a second at zero latency; CPU a call; peak
memory; the share of characters a prompt cache could serve.

    python tests/bench/bench_judge.py [--runs 5] [--latency 0.2]

The server (`judge_server.py`) is a process of its own. Wall time is of whole processes, with and without what the interpreter itself takes.
Memory is the process's own peak (VmHWM, which a child does not inherit).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

# What every measured process prints last on stderr: its own CPU seconds and peak memory.
MEASURED = """
import atexit, os, sys
def _told():
    t = os.times()
    try:
        peak = next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("VmHWM")) / 1024
    except (OSError, StopIteration):
        peak = float("nan")
    sys.stderr.write(f"\\nMEASURED {t.user + t.system} {peak}\\n")
atexit.register(_told)
"""
JUDGE = MEASURED + """
import runpy
sys.argv.pop(0)
runpy.run_path(sys.argv[0], run_name="__main__")
"""
POOL = MEASURED + """
import json, ssl, urllib.request
from concurrent.futures import ThreadPoolExecutor
url, path = sys.argv[1:3]
context = ssl.create_default_context() if url.startswith("https") else None
def call(line):
    request = urllib.request.Request(url + "/chat/completions", json.dumps(json.loads(line)["body"], ensure_ascii=False).encode(),
                                     {"Content-Type": "application/json", "Authorization": "Bearer x"})
    with urllib.request.urlopen(request, timeout=60, context=context) as response:
        return json.loads(json.load(response)["choices"][0]["message"]["content"])["verdict"]
with ThreadPoolExecutor(32) as pool, open(path, encoding="utf-8") as lines:
    sys.stdout.write(str(sum(1 for _ in pool.map(call, lines))))
"""


class Figures(NamedTuple):
    """One process: wall and CPU seconds, peak memory in MiB."""
    wall: float
    cpu: float
    memory: float


@contextlib.contextmanager
def server(latency: float, metered: bool, certificate: Path | None) -> Iterator[str]:
    """The tests' fast server in a process of its own; gives its base URL."""
    options = ["--latency", str(latency), *(["--metered"] if metered else []), *(["--certificate", str(certificate)] if certificate else [])]
    command = [sys.executable, str(ROOT / "tests" / "judge_server.py"), *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        yield f"http{'s' if certificate else ''}://127.0.0.1:{int(process.stdout.readline())}/v1"
        process.stdin.close()


def measured(program: str, *arguments: object) -> Figures:
    """Run a program in a fresh interpreter."""
    begun = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True)
    wall = time.perf_counter() - begun
    if done.returncode:
        raise SystemExit(done.stderr)
    cpu, memory = done.stderr.rsplit("MEASURED ", 1)[1].split()
    return Figures(wall, float(cpu), float(memory))


def median(runs: list[Figures]) -> Figures:
    return Figures(*(statistics.median(values) for values in zip(*runs, strict=True)))


def work(folder: Path, answers: int) -> tuple[Path, Path]:
    """Questions and answers on disk: two elements of 120 characters a criterion, as in the published comparison."""
    from conftest import write_jsonl
    from judge_server import criterion, plain_answers, question
    element = "Cevap, kira bedelinin üç aylık tutarını aşan güvence bedelinin geçersiz olduğunu ve geri istenebileceğini söyler. "
    questions = [question(f"s{q}", *(criterion(f"s{q}k{c}", f"{q}.{c} {element}"[:120], f"{c}.{q} {element}"[:120]) for c in range(9)))
                 for q in range(answers)]
    return write_jsonl(folder / "s.jsonl", questions), write_jsonl(folder / "c.jsonl", plain_answers(questions, length=6000))


def compare(folder: Path, url: str, calls: int, runs: int, data: Path, answers: Path) -> tuple[Figures, Figures]:
    """Medians of the judge and of the bare pool, turn by turn."""
    judge, pool = [], []
    output, batch = folder / "k.jsonl", folder / "b.jsonl"
    common = (answers, "--data", data, "--concurrency", 32)
    measured(JUDGE, ROOT / "score.py", "judge", *common, "--batch-out", batch)
    assert batch.read_bytes().count(b"\n") == calls
    for _ in range(runs):
        output.unlink(missing_ok=True)
        judge.append(measured(JUDGE, ROOT / "score.py", "judge", *common, "-o", output, "--base-url", url))
        pool.append(measured(POOL, url, batch))
    return median(judge), median(pool)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--latency", type=float, default=0.2)
    given = options.parse_args()
    from judge_server import make_certificate
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data, answers = work(folder, 42)
        idle = median([measured(MEASURED) for _ in range(given.runs)])
        plan = (JUDGE, ROOT / "score.py", "judge", "--concurrency", 32, "--dry-run", "--data")
        ready = median([measured(*plan, data, answers) for _ in range(given.runs)])
        print(f"bare interpreter {idle.wall:.3f} s, {idle.memory:.1f} MiB; judge --dry-run (reads and plans, asks nothing) {ready.wall:.3f} s")
        try:
            certificate: Path | None = make_certificate(folder)
            os.environ["SSL_CERT_FILE"] = str(certificate)
        except OSError:
            certificate = None
            print("https is left out: there is no openssl here to make a certificate")
        for tls in (None, certificate) if certificate else (None,):
            with server(given.latency, False, tls) as url:
                judge, pool = compare(folder, url, 378, given.runs, data, answers)
            print(f"{'https' if tls else 'http '}, {given.latency} s, 32 at once: judge {judge.wall:.3f} s, urllib pool {pool.wall:.3f} s, ratio "
                  f"{judge.wall / pool.wall:.3f}; CPU a call {1000 * judge.cpu / 378:.2f} ms, of that beyond --dry-run "
                  f"{1000 * (judge.cpu - ready.cpu) / 378:.2f} ms (pool {1000 * pool.cpu / 378:.2f} ms); peak {judge.memory:.1f} MiB "
                  f"(pool {pool.memory:.1f})")
        with server(given.latency, True, None) as url:
            measured(JUDGE, ROOT / "score.py", "judge", answers, "--data", data, "--concurrency", 32, "-o", folder / "m.jsonl", "--base-url", url)
            with urllib.request.urlopen(url + "/stats") as response:
                seen: dict[str, Any] = json.load(response)
        print(f"a prompt cache could serve {100 * seen['share']:.1f} % of the characters of {seen['calls']} calls")
        data, answers = work(folder, 420)
        begun = median([measured(*plan, data, answers) for _ in range(min(given.runs, 3))])
        with server(0.0, False, None) as url:
            judge, pool = compare(folder, url, 3780, min(given.runs, 3), data, answers)
        print(f"http, no latency, 3,780 calls: judge {3780 / judge.wall:.0f} calls/s whole process, {3780 / (judge.wall - begun.wall):.0f} calls/s "
              f"beyond --dry-run; urllib pool {3780 / pool.wall:.0f} calls/s; peak {judge.memory:.1f} MiB (pool {pool.memory:.1f})")


if __name__ == "__main__":
    main()
