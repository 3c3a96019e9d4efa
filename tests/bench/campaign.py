#!/usr/bin/env python3
"""campaign.py [kill] [disk] [faults] [scale] [fuzz]: what tests/test_hardening.py tries in seconds, at length; by hand, all steps by default.

kill    kill -9 at random moments over `judge`, `run.py` and `facts -o` in turn; each time run again to the end and compared, row by row,
        with a run that nothing disturbed (--kills, 200)
disk    every command that writes, on a full disk and on a read-only one (needs root, to mount a small one)
faults  `judge` and `run.py` while 30% of requests fail in mixed ways (--calls, 3000), compared with a run without faults
scale   report, compare and check on 1.47 million verdict rows, facts on 100 MB of answers: wall seconds and peak memory
fuzz    mutated inputs into every reader, the parser, matching, the judge's replies and headers, in process (--inputs, 1000000); the only
        allowed outcomes are a value and the documented exception, within half a second of processor time

Seeded (--seed). Prints figures, one a line; ends with 1 where something was found.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "bench")]
from bench_report import write_rows  # noqa: E402
from conftest import read_jsonl, write_jsonl  # noqa: E402
from fuzz import fuzz  # noqa: E402
from judge_server import JudgeServer, plain_answers, plain_questions, steady  # noqa: E402
from mock_server import MockServer, Reply, Request, chat, error  # noqa: E402

SCORE, RUN = [sys.executable, str(ROOT / "score.py")], [sys.executable, str(ROOT / "run.py")]
CHANGING = ("seconds", "rerun")                         # fields of a row that differ from run to run
found: list[str] = []


def tell(step: str, **figures: object) -> None:
    print(json.dumps({"step": step, **figures}, ensure_ascii=False), flush=True)


def wrong(what: str) -> None:
    found.append(what)
    print(f"FOUND: {what}", flush=True)


def rows(path: Path) -> Counter[str]:
    """All rows of a file, each as a text and how often it stands there; raises ValueError where a line is none."""
    return Counter(json.dumps({k: v for k, v in row.items() if k not in CHANGING}, sort_keys=True) for row in read_jsonl(path))


def run(command: Sequence[object]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*map(str, command)], capture_output=True, text=True, errors="replace", timeout=900)


def answer(request: Request) -> Reply:
    """A model that answers what depends on the request alone."""
    return Reply(body=chat("ğ" * (500 + len(request.raw) * 37 % 2000)), delay=0.02)


@contextlib.contextmanager
def products(folder: Path, questions: int, criteria: int, script: Callable[[Request], Any], answer: Callable[[Request], Any],
             students: int = 60) -> Iterator[dict[str, tuple[list[object], Path]]]:
    """The commands that write rows, each with its output, and the services behind them."""
    asked = plain_questions(questions, criteria)
    data, answers = write_jsonl(folder / "q.jsonl", asked), write_jsonl(folder / "a.jsonl", plain_answers(asked, ("a", "b"), attempts=2))
    plain = write_jsonl(folder / "plain.jsonl", [{"id": n, "soru": f"Soru {n}?"} for n in range(questions * criteria)])
    iik = read_jsonl(ROOT / "data" / "iik_bench.jsonl")
    papers = write_jsonl(folder / "papers.jsonl", [{"question_id": q["id"], "model": f"m{n}", "answer": q["referans_cevap"][n:] * 3} for q in iik for n in range(students)])
    with JudgeServer(script) as judge, MockServer(answer) as model:
        judge._http.handle_error = model._http.handle_error = lambda *_: None       # a killed client is no news
        yield {"judge": ([*SCORE, "judge", answers, "--data", data, "-o", folder / "v.jsonl", "--base-url", judge.url], folder / "v.jsonl"),
               "run.py": ([*RUN, "--data", plain, "--model", "m", "-o", folder / "r.jsonl", "--base-url", model.url, "--attempts", 1], folder / "r.jsonl"),
               "facts": ([*SCORE, "facts", papers, "-o", folder / "f.jsonl"], folder / "f.jsonl")}


# -- kill -------------------------------------------------------------------------------------


def kill(kills: int, chance: random.Random) -> None:
    with tempfile.TemporaryDirectory() as name, products(Path(name), 4, 5, lambda r: Reply(body=steady(r), delay=0.02), answer) as made:
        calm, took = {}, {}
        for product, (command, output) in made.items():
            begun = time.monotonic()
            assert run(command).returncode == 0
            calm[product], took[product] = rows(output), time.monotonic() - begun
        done: Counter[str] = Counter()
        torn: Counter[str] = Counter()
        while sum(done.values()) < kills:
            product = list(made)[sum(done.values()) % 3]
            command, output = made[product]
            if product != "facts" or chance.random() < 0.5:             # facts: over nothing, or over an old file
                output.unlink(missing_ok=True)
            before = output.read_bytes() if output.exists() else None
            for _ in range(chance.choice((1, 1, 2, 3))):                # now and then several kills before the run that ends
                process = subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(chance.random() * took[product])
                process.kill()
                done[product] += process.wait() != 0
                left = output.read_bytes() if output.exists() else b""
                torn[product] += bool(left) and not left.endswith(b"\n")
                if product == "facts" and left != (before or b"") and rows(output) != calm[product]:
                    wrong(f"facts -o left a file that is neither the old nor the new one ({len(left)} bytes)")
            ended = run(command)
            if ended.returncode or "Traceback" in ended.stderr:
                wrong(f"{product} after a kill: {ended.stderr[-500:]}")
            elif rows(output) != calm[product]:
                now = rows(output)
                wrong(f"{product} after a kill: {sum((calm[product] - now).values())} rows lost, {sum((now - calm[product]).values())} too many")
        tell("kill", kills=dict(done), torn=dict(torn), rows={product: sum(of.values()) for product, of in calm.items()})


# -- disk -------------------------------------------------------------------------------------


def disk() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, small = Path(name), Path(name) / "small"
        small.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", small], capture_output=True).returncode:
            tell("disk", skipped="no small file system can be mounted here (it needs root)")
            return
        try:
            with products(folder, 20, 10, steady, lambda r: chat("ğ" * 1000), 8) as made:
                run(made["facts"][0])
                writers = {name: ([small / output.name if part == output else part for part in command], small / output.name)
                           for name, (command, output) in made.items()}
                writers |= {"report --html": ([*SCORE, "report", made["facts"][1], "--html", small / "p.html"], small / "p.html"),
                            "--explain-dir": ([*SCORE, "facts", folder / "papers.jsonl", "--explain-dir", small / "pages"], small / "pages" / "m7.md"),
                            "--batch-out": ([*SCORE, "judge", folder / "a.jsonl", "--data", folder / "q.jsonl", "--batch-out", small / "b.jsonl"], small / "b.jsonl")}
                for kind in ("full", "read-only"):
                    for writer, (command, output) in writers.items():
                        on_bad_disk(kind, writer, command, output, small)
                tell("disk", writers=list(writers), disks=["full", "read-only"])
        finally:
            subprocess.run(["umount", "-l", small], check=True)


def on_bad_disk(kind: str, writer: str, command: Sequence[object], output: Path, small: Path) -> None:
    """One command that can't write (all of) its output: a sentence and exit 1, nothing spoilt; with room again it ends well."""
    subprocess.run(["mount", "-o", "remount,rw", small], check=True)
    for path in sorted(small.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    if kind == "full":
        (small / "ballast").write_bytes(b"x" * ((4 << 20) - (40 << 10)))
    else:
        subprocess.run(["mount", "-o", "remount,ro", small], check=True)
    ended = run(command)
    if ended.returncode not in (1, 2) or "Traceback" in ended.stderr or not ended.stderr.strip() or "Exception ignored" in ended.stderr:
        wrong(f"{writer} on a {kind} disk: exit {ended.returncode}, {ended.stderr[-500:]}")
    if list(small.rglob(".*")):
        wrong(f"{writer} on a {kind} disk left {[p.name for p in small.rglob('.*')]}")
    kept = rows(output) if output.suffix == ".jsonl" and output.exists() else Counter()
    subprocess.run(["mount", "-o", "remount,rw", small], check=True)
    (small / "ballast").unlink(missing_ok=True)
    ended = run(command)
    if ended.returncode or not output.exists() or kept - (rows(output) if kept else kept):
        wrong(f"{writer} with room again: exit {ended.returncode}, {ended.stderr[-500:]}")


# -- faults -----------------------------------------------------------------------------------

FAULTS = [error(429, headers={"Retry-After": "0.05"}), error(429), error(500), error(503), error(503, headers={"Retry-After": "bald"}), error(529),
          Reply(fault="reset"), Reply(fault="close"), Reply(body=b"x" * 300, fault="cut"), Reply(200, b"<html>Bad gateway</html>"), Reply(200, b'{"choices": [{"mess'),
          Reply(200, {"error": {"code": 502, "message": "x"}}), Reply(200, {"choices": None}), Reply(200, b'{"usage": NaN}'), Reply(200, b"\xff\xfe\0")]


def faults(calls: int, chance: random.Random) -> None:
    met: Counter[str] = Counter()

    def failing(serve: Callable[[Request], Any], more: Sequence[Reply]) -> Callable[[Request], Any]:
        def reply(request: Request) -> Any:
            if chance.random() >= 0.3:
                return serve(request)
            if chance.random() < 0.1:                                   # the other form of Retry-After: a date
                date = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=1)
                return met.update(["429 date"]) or error(429, headers={"Retry-After": date.strftime("%a, %d %b %Y %H:%M:%S GMT")})
            fault = chance.choice([*FAULTS, *more])
            met[f"{fault.status} {fault.fault}".strip()] += 1
            return fault
        return reply

    with tempfile.TemporaryDirectory() as name, products(Path(name), calls // 40, 10, steady, answer, 1) as calm, \
            products(Path(name), calls // 40, 10, failing(steady, [Reply(fault="drip")]), failing(answer, [])) as disturbed:
        for product, module, more in (("judge", "score", "m.DEADLINE = 8.0; "), ("run.py", "run", "")):
            output = calm[product][1]
            assert run([*calm[product][0], "--concurrency", 32]).returncode == 0
            expected = rows(output)
            output.unlink()
            quick = f"import sys, {module} as m; {more}m.BACKOFF = 0.05; sys.exit(m.main(sys.argv[1:]))"       # the product's own waits are seconds
            command = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-c", quick, *disturbed[product][0][2:], "--concurrency", 32]
            begun, runs = time.monotonic(), 1
            while (ended := run(command)).returncode == 3 and runs < 20:
                runs += 1
            nulls = Counter(row for row in rows(output).elements() if '"verdict": null' in row or '"status": "error"' in row)
            if ended.returncode or "Traceback" in ended.stderr:
                wrong(f"{product} with faults: exit {ended.returncode}, {ended.stderr[-500:]}")
            elif without_refused(rows(output) - nulls) != without_refused(expected):
                wrong(f"{product} with faults: the rows differ from those without")
            tell("faults", product=product, rows=sum(expected.values()), faults=sum(met.values()), runs=runs, asked_again=sum(nulls.values()),
                 seconds=round(time.monotonic() - begun), kinds=dict(met))
            met.clear()


def without_refused(of: Counter[str]) -> Counter[str]:
    return Counter(json.dumps({k: v for k, v in json.loads(row).items() if k not in ("usage", "requests")}, sort_keys=True) for row in of.elements())


# -- scale ------------------------------------------------------------------------------------


def scale(models: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        verdicts, answers = folder / "verdicts.jsonl", folder / "answers.jsonl"
        count = write_rows(verdicts, models)
        iik = read_jsonl(ROOT / "data" / "iik_bench.jsonl")
        with open(answers, "w", encoding="utf-8", newline="\n") as file:
            for n in range(1000):
                file.writelines(json.dumps({"question_id": q["id"], "model": f"m{n}", "answer": (q["referans_cevap"] + " ")[n % 7:] * 5}, ensure_ascii=False) + "\n"
                                for q in iik)
        a_b = ["--models", "vendor/model-0001", "vendor/model-0002"]
        for command in (["report", verdicts], ["report", verdicts, "--html", folder / "p.html"], ["compare", verdicts, *a_b], ["check", verdicts],
                        ["facts", answers], ["facts", answers, "-o", folder / "f.jsonl"], ["report", folder / "f.jsonl"], ["check", answers]):
            size = sum(path.stat().st_size for path in command if isinstance(path, Path) and path.exists())
            told = folder / "told"
            begun, out = time.monotonic(), [(os.POSIX_SPAWN_OPEN, n, told, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) for n in (1, 2)]
            told.unlink(missing_ok=True)
            pid = os.posix_spawn(sys.executable, [*SCORE, *map(str, command)], os.environ, file_actions=out)       # small: its peak is its own
            _, status, usage = os.wait4(pid, 0)
            if status or "Traceback" in told.read_text(encoding="utf-8"):
                wrong(f"{command[0]} at scale: status {status}, {told.read_text(encoding='utf-8')[-500:]}")
            tell("scale", command=" ".join(p.name if isinstance(p, Path) else p for p in command), MB=round(size / 1e6), rows=count,
                 wall_s=round(time.monotonic() - begun, 1), cpu_s=round(usage.ru_utime + usage.ru_stime, 1), peak_MiB=round(usage.ru_maxrss / 1024))


# -- command line -----------------------------------------------------------------------------


def main() -> int:
    options = argparse.ArgumentParser(description="Attacks on the product at length.")
    options.add_argument("steps", nargs="*", help="kill, disk, faults, scale, fuzz (default: all)")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--kills", type=int, default=200)
    options.add_argument("--calls", type=int, default=3000)
    options.add_argument("--models", type=int, default=1340, help="of `scale`; 1,340 have 1.47 million verdicts")
    options.add_argument("--inputs", type=int, default=1_000_000)
    given = options.parse_args()
    chance = random.Random(given.seed)
    steps: dict[str, Callable[[], None]] = {"kill": lambda: kill(given.kills, chance), "disk": disk, "faults": lambda: faults(given.calls, chance),
                                            "scale": lambda: scale(given.models), "fuzz": lambda: fuzz(given.inputs, chance, tell, wrong)}
    for step in given.steps or steps:
        steps[step]()
    print(f"{len(found)} found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
