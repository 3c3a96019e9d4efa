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
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "bench")]
from conftest import read_jsonl, write_jsonl  # noqa: E402
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
                if product == "facts" and left not in (before or b"", *([left] if rows(output) == calm[product] else [])):
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
            with products(folder, 20, 10, steady, lambda r: chat("ğ" * 1000)) as made:
                run(made["facts"][0])
                writers = {name: ([small / output.name if part == output else part for part in command], small / output.name)
                           for name, (command, output) in made.items()}
                writers |= {"report --html": ([*SCORE, "report", made["facts"][1], "--html", small / "p.html"], small / "p.html"),
                            "--explain-dir": ([*SCORE, "facts", folder / "papers.jsonl", "--explain-dir", small / "pages"], small / "pages" / "m59.md"),
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

    with tempfile.TemporaryDirectory() as name, products(Path(name), calls // 80, 10, steady, answer, 1) as calm, \
            products(Path(name), calls // 80, 10, failing(steady, [Reply(fault="drip")]), failing(answer, [])) as disturbed:
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
    from bench_report import write_rows
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


# -- fuzz -------------------------------------------------------------------------------------

PIECES = ["\"", "\\", "{", "}", "[", "]", ",", ":", ";", "\n", "\r", "\t", "\0", "null", "true", "NaN", "1e999", "-1", "9" * 5000, "\\ud83d", "\ufeff", "\u2028", "\u200b",
          "\xad", "İ", "ı", "ﬁ", "²", "٣", "½", "<think>", "</think>", "```json", "E. ", "K. ", "2020/1", "m. ", "TBK", "Yargıtay 3. HD", "üç", "yüz", "on ", " bin", "%", "₺", ".",
          "/", "-", "(", ")", "’", "günü", "değildir", "PASS", "FAIL", "[" * 2000, '{"a":' * 500, "verdict", "elements", "http://", "::", "GMT", "1" * 400, "\ud800", "𝟑"]


def mutated(seeds: Sequence[str], chance: random.Random) -> str:
    """A seed with one to six changes: a stretch dropped, doubled, moved or taken from another seed, a sign changed, a piece put in."""
    text = chance.choice(seeds)
    for _ in range(chance.randint(1, 6)):
        at, end = sorted((chance.randint(0, len(text)), chance.randint(0, len(text))))
        end = min(end, at + chance.choice((1, 3, 20, 200)))
        other = chance.choice(seeds)
        start = chance.randint(0, len(other))
        put = (lambda: "", lambda: text[at:end] * 2, lambda: other[start:start + 40], lambda: chr(chance.randrange(0x3000)), lambda: chance.choice(PIECES))  # noqa: B023
        text = (text[:at] + chance.choice(put)() + text[end:])[:6000]
    return text


def targets() -> Iterator[tuple[str, float, list[str], Callable[[str], object]]]:
    """What is fuzzed: name, share of all inputs, seeds, and a function that may return or raise what is documented."""
    import score
    allowed = (score.InputError, ValueError)
    legal = [row["text"] for path in sorted((ROOT / "tests" / "fixtures" / "citations").glob("*.jsonl")) for row in read_jsonl(path) if "text" in row]
    iik, examples = read_jsonl(ROOT / "data" / "iik_bench.jsonl"), ROOT / "data" / "examples"
    said = [q["referans_cevap"] for q in iik]
    wanted = [score.phrase(p) for q in iik for p in [*(v for f in q["anahtar_bilgiler"] for v in f), *q["yanlis_isaretler"]]]
    chance, kept = random.Random(5), {p.published: p for p in wanted}

    def parse(text: str) -> None:
        for r in score.references(text):
            assert 0 <= r.start < r.end <= len(text) and r.surface == text[r.start:r.end], (r, "is not where it says")
            json.dumps(r.norm, allow_nan=False)
            score.describe(r)

    def match(text: str) -> None:
        folded = score.fold(text)
        assert "  " not in folded and folded.isascii() | bool(folded.strip()), ("folded badly", folded)
        for p in chance.sample(wanted, 5):
            for hit in score.hits(p, folded):
                score.is_denied(hit, folded) if score.is_denied.__code__.co_argcount == 2 else score.is_denied(hit)

    def phrase(text: str) -> None:
        made = score.phrase(text[:60])
        list(score.hits(made, score.fold(text)))
        list(score.hits(kept[chance.choice(list(kept))], score.fold(text)))

    def reply(text: str) -> None:
        for reading in (score.read_verdict(text, 2), score.read_grade(score.fold(said[0]), text)):
            (score.to_json(reading) if reading else "").encode()

    def raises_only(function: Callable[[str], object]) -> Callable[[str], None]:
        def tried(text: str) -> None:
            with contextlib.suppress(*allowed):
                function(text)
        return tried

    now = datetime.datetime.now(datetime.timezone.utc)
    verdicts = ['{"elements": [true, false], "quote": "kira", "reason": "çünkü", "verdict": "PASS"}', '<think>"FAIL"</think>```json\n{"verdict": "FAIL",}\n```',
                '{"score": 2, "hallucination": false, "evasion": true, "quote": "", "reason": "x"}']
    yield "references", 0.25, legal, parse
    yield "fold and hits", 0.15, said, match
    yield "phrase", 0.1, [p.published for p in wanted] + said[:5], phrase
    yield "reply", 0.2, verdicts, reply
    yield "parse_json", 0.1, [json.dumps(row, ensure_ascii=False) for row in iik] + verdicts, raises_only(score.parse_json)
    yield "endpoint", 0.05, ["https://a.example/v1", "http://[::1]:8000/v1/chat/completions?v=1", "http://127.0.0.1:8000/"], raises_only(score.endpoint)
    yield "retry_after", 0.05, ["30", "1.5", "Wed, 21 Oct 2026 07:28:00 GMT", "-1"], lambda text: score.retry_after(text, now)
    yield from run_targets()
    yield from command_targets(examples)


def run_targets() -> Iterator[tuple[str, float, list[str], Callable[[str], object]]]:
    with contextlib.suppress(ImportError):
        import run as runner
        good = json.dumps(chat("<think>a</think>Yanıt.", usage={"prompt_tokens": 3}, tool_calls=[]))

        def read(text: str) -> None:
            with contextlib.suppress(runner.Trouble, runner.UserError):
                data = runner.read_reply(200, text, {}, ["max_tokens"])
                json.dumps(data, allow_nan=False, ensure_ascii=False).encode()
        yield "run.py: reply", 0.05, [good, '{"error": {"code": 502, "message": "x"}}'], read
        yield "run.py: Retry-After", 0.04, ["30", "1.5", "Wed, 21 Oct 2026 07:28:00 GMT"], lambda text: runner.wait_seconds(text, 1.8e9, 2.0)


def command_targets(examples: Path) -> Iterator[tuple[str, float, list[str], Callable[[str], object]]]:
    """Every reader of files, through the command line: exit code and a sentence are all it may end with."""
    import score

    def lines(path: Path, count: int = 6) -> str:
        return "".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:count])

    def command(file: str, *arguments: str) -> Callable[[str], None]:
        def tried(text: str) -> None:
            path = Path(tempfile.gettempdir()) / f"fuzz-{os.getpid()}" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("cp1254" if len(text) % 5 == 0 else "utf-8", "surrogatepass" if len(text) % 5 else "replace"))
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = score.main([a.format(file=path, folder=path.parent) for a in arguments])
            assert code == 0 or code in (1, 2, 3) and (err.getvalue() + out.getvalue()).strip(), (code, "without a sentence")
        return tried

    wide = "Ad Soyad;Soru 1;Soru 2\nAyşe;Yedi gün;\"on; beş\"\nAli;;x\n"
    long = "soru,cevap,öğrenci,deneme\n1,Yedi gün,Ayşe,1\n2,x,Ali,2\n"
    verdict_rows = lines(examples / "kategori_verdicts.jsonl") + lines(examples / "irac_verdicts.jsonl")
    results = json.dumps({"custom_id": "x", "response": {"body": chat('{"verdict": "PASS"}')}}) + "\n"
    for name, file, seeds, *arguments in (
            ("answers .jsonl", "a.jsonl", [lines(examples / "gemma3-270m.jsonl")[:3000]], "facts", "{file}"),
            ("answers .csv", "a.csv", [wide, long], "facts", "{file}", "--format", "csv"),
            ("answers folder", "m/1.2.md", ["Yedi gün.\nİcra"], "facts", "{folder}"),
            ("questions", "q.jsonl", [lines(ROOT / "data" / name, 1) for name in ("iik_bench.jsonl", "irac.jsonl", "kategori.jsonl")], "check", "{file}"),
            ("verdicts: report", "v.jsonl", [verdict_rows[:4000]], "report", "{file}", "--format", "json"),
            ("verdicts: compare", "v.jsonl", [verdict_rows[:4000]], "compare", "{file}", "{file}"),
            ("verdicts: agree", "v.jsonl", [verdict_rows[:4000]], "agree", "{file}", "{file}"),
            ("batch results", "b.jsonl", [results], "judge", "--golden", "--batch-in", "{file}"),
            ("rubrics", "r.json", [(ROOT / "data" / "kategori_rubrics.json").read_text(encoding="utf-8")], "check", "{file}"),
            ("texts", "t.jsonl", ['{"id": 1, "text": "TBK m. 344/1"}\n'], "cite", "--json", "{file}")):
        yield name, 0.001, seeds, command(file, *arguments)


def fuzz(inputs: int, chance: random.Random) -> None:
    for name, share, seeds, function in targets():
        slowest, failures, begun = 0.0, Counter(), time.monotonic()
        count = int(inputs * share)
        for _ in range(count):
            text = mutated(seeds, chance)
            start = time.process_time()
            try:
                function(text)
            except Exception as problem:
                place = traceback.extract_tb(problem.__traceback__)[-1]
                failures[f"{type(problem).__name__} in {place.name}"] += 1
                if failures.total() <= 3 or failures[f"{type(problem).__name__} in {place.name}"] == 1:
                    wrong(f"{name}: {type(problem).__name__}: {str(problem)[:300]} in {place.name}:{place.lineno} with {text[:1500]!r}")
            took = time.process_time() - start
            if took > max(0.5, slowest):
                wrong(f"{name}: {took:.2f} s for {len(text)} characters: {text[:300]!r}")
            slowest = max(slowest, took)
        tell("fuzz", target=name, inputs=count, failures=dict(failures), slowest_ms=round(slowest * 1000), seconds=round(time.monotonic() - begun))


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
                                            "scale": lambda: scale(given.models), "fuzz": lambda: fuzz(given.inputs, chance)}
    for step in given.steps or steps:
        steps[step]()
    print(f"{len(found)} found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
