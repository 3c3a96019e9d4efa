#!/usr/bin/env python3
"""Mutated inputs for everything that reads: the parser, matching, replies, headers, and every file format through the command line.
A step of campaign.py; the only allowed outcomes are a value and the documented exception, within half a second of processor time."""

from __future__ import annotations

import contextlib
import copy
import datetime
import io
import json
import os
import random
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from email.message import Message
from pathlib import Path
from typing import Any

from conftest import ROOT, read_jsonl
from mock_server import chat

import score

Target = tuple[str, float, list[str], Callable[[str], object]]         # name, share of all inputs, seeds, what is tried

PIECES = ["\"", "\\", "{", "}", "[", "]", ",", ":", ";", "\n", "\r", "\t", "\0", "null", "true", "NaN", "1e999", "-1", "9" * 5000, "\\ud83d", "\ufeff", "\u2028", "\u200b",
          "\xad", "İ", "ı", "ﬁ", "²", "٣", "½", "<think>", "</think>", "```json", "E. ", "K. ", "2020/1", "m. ", "TBK", "Yargıtay 3. HD", "üç", "yüz", "on ", " bin", "%", "₺", ".",
          "/", "-", "(", ")", "’", "günü", "değildir", "PASS", "FAIL", "[" * 2000, '{"a":' * 500, "verdict", "elements", "http://", "::", "GMT", "1" * 400, "\ud800", "𝟑"]


ODD: list[Any] = [None, True, False, -1, 0, 1, 2.5, 1e308, 10**400, "", " ", "x", "PASS", "9" * 5000, "\ud800", "a\0b", [], {}, [[]], [1, "a", None], {"a": [1]}, {"b": {}}]


def bent(text: str, chance: random.Random) -> str:
    """JSON Lines in which one to three fields, at any depth, are gone, doubled or something odd."""
    rows = [json.loads(line) for line in text.splitlines()]
    for _ in range(chance.randint(1, 3)):
        node: Any = chance.choice(rows)
        while True:
            key = chance.choice(list(node) if isinstance(node, dict) else range(len(node))) if node else None
            if key is None or not isinstance(node[key], (dict, list)) or chance.random() < 0.3:
                break
            node = node[key]
        if key is None or chance.random() < 0.15:
            if key is not None:
                del node[key]
        else:
            node[key] = copy.deepcopy(chance.choice(ODD if chance.random() < 0.8 else [*node.values()] if isinstance(node, dict) else node))
    return "".join(json.dumps(row) + "\n" for row in rows)


def mutated(seeds: Sequence[str], chance: random.Random) -> str:
    """A seed with one to six changes: a stretch dropped, doubled, moved or taken from another seed, a sign changed, a piece put in."""
    text = chance.choice(seeds)
    if text.startswith("{") and text.endswith("}\n") and chance.random() < 0.6:
        return bent(text, chance)
    for _ in range(chance.randint(1, 6)):
        at, end = sorted((chance.randint(0, len(text)), chance.randint(0, len(text))))
        end = min(end, at + chance.choice((1, 3, 20, 200)))
        other = chance.choice(seeds)
        start = chance.randint(0, len(other))
        put = (lambda: "", lambda: text[at:end] * 2, lambda: other[start:start + 40], lambda: chr(chance.randrange(0x3000)), lambda: chance.choice(PIECES))  # noqa: B023
        text = (text[:at] + chance.choice(put)() + text[end:])[:6000]
    return text


def targets() -> Iterator[Target]:
    """What is fuzzed: name, share of all inputs, seeds, and a function that may return or raise what is documented."""
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
        for reading in (score.read_verdict([None, True, None], score.fold(said[0]), text), score.read_grade(score.fold(said[0]), text)):
            (score.to_json(reading) if reading else "").encode()

    def raises_only(function: Callable[[str], object]) -> Callable[[str], None]:
        def tried(text: str) -> None:
            with contextlib.suppress(*allowed):
                function(text)
        return tried

    def island(text: str) -> None:
        """Whatever stands in the data, the page is the template with one script element that gives the same data back."""
        text = text.encode("utf-8", "replace").decode("utf-8")                      # half a letter gets past no reader
        data = {"boards": [{text[:40]: text}], "rows": [text, 1, None]}
        before, _, after = page.partition(score.PLACE_OF_DATA)
        head, _, tail = score.PLACE_OF_DATA.partition("null")
        filled = score.fill_page(page, data)
        inside = filled.removeprefix(before + head).removesuffix(tail + after)
        assert filled == before + head + inside + tail + after and not set("<>&\u2028\u2029") & set(inside), "the page is torn"
        assert json.loads(inside) == data, "the page has other data"

    page = (ROOT / "data" / "pages" / "leaderboard.html").read_text(encoding="utf-8")
    now = datetime.datetime.now(datetime.timezone.utc)
    verdicts = ['{"elements": [true, false], "quote": "kira", "reason": "çünkü", "verdict": "PASS"}', '<think>"FAIL"</think>```json\n{"verdict": "FAIL",}\n```',
                '{"score": 2, "hallucination": false, "evasion": true, "quote": "", "reason": "x"}']
    yield "references", 0.12, legal, parse
    yield "fold and hits", 0.2, said, match
    yield "phrase", 0.02, [p.published for p in wanted] + said[:5], phrase
    yield "reply", 0.3, verdicts, reply
    yield "parse_json", 0.15, [json.dumps(row, ensure_ascii=False) for row in iik] + verdicts, raises_only(score.parse_json)
    yield "endpoint", 0.05, ["https://a.example/v1", "http://[::1]:8000/v1/chat/completions?v=1", "http://127.0.0.1:8000/"], raises_only(score.endpoint)
    yield "retry_after", 0.05, ["30", "1.5", "Wed, 21 Oct 2026 07:28:00 GMT", "-1"], lambda text: score.retry_after(text, now)
    service = score.Service("http://127.0.0.1:9", "sk-0123456789", "KEY")

    def served(text: str) -> None:
        with contextlib.suppress(score.InputError, score.Fault, score.Refused, KeyError):
            made = service._understand(chance.choice((200, 200, 200, 400, 429, 500)), Message(), text.encode("utf-8", "surrogatepass"), {"temperature": 0})
            score.to_json([made.served, made.usage, made.content]).encode()
    if hasattr(service, "_understand"):                                 # a private name, but no other way in without a socket
        yield "judge: what a server sends", 0.05, [json.dumps(chat('{"verdict": "PASS"}', usage={"prompt_tokens": 3})) + "\n", '{"error": {"code": 502}}\n'], served
    yield from run_targets()
    yield from reader_targets(examples)
    yield "page: the data island", 0.02, said + verdicts + ["</script><!--<script>", "]]>&amp;\u2028"], island
    yield from command_targets(examples)


def run_targets() -> Iterator[Target]:
    with contextlib.suppress(ImportError):
        import run as runner
        good = json.dumps(chat("<think>a</think>Yanıt.", usage={"prompt_tokens": 3}, tool_calls=[]))

        def read(text: str) -> None:
            with contextlib.suppress(runner.Trouble, runner.UserError):
                data = runner.read_reply(200, text, {}, ["max_tokens"])
                json.dumps(data, allow_nan=False, ensure_ascii=False).encode()
        iik = [lines(ROOT / "data" / "iik_bench.jsonl", 1)]

        def questions(text: str) -> None:
            with contextlib.suppress(runner.UserError):
                runner.read_questions(written(text, "rq.jsonl"))

        def answers(text: str) -> None:
            with contextlib.suppress(runner.UserError), contextlib.redirect_stderr(io.StringIO()):
                path = written(text, "ra.jsonl")
                with contextlib.closing(runner.Answers(path)) as old:
                    old.append({"question_id": 1})
                    kept = old.rows
                with contextlib.closing(runner.Answers(path)) as again:
                    assert again.rows == kept, "a row is lost"
                    again.done("m", "s", [])
        yield "run.py: questions", 0.01, iik, questions
        yield "run.py: answers to go on with", 0.02, [ANSWER * 2], answers
        yield "run.py: reply", 0.05, [good + "\n", '{"error": {"code": 502, "message": "x"}}'], read
        yield "run.py: Retry-After", 0.04, ["30", "1.5", "Wed, 21 Oct 2026 07:28:00 GMT"], lambda text: runner.wait_seconds(text, 1.8e9, 2.0)


def lines(path: Path, count: int = 6) -> str:
    return "".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:count])


WIDE = "Ad Soyad;Soru 1;Soru 2\nAyşe;Yedi gün;\"on; beş\"\nAli;;x\n"
LONG = "soru,cevap,öğrenci,deneme\n1,Yedi gün,Ayşe,1\n2,x,Ali,2\n"
ANSWER = json.dumps({"question_id": 1, "answer": "Yedi gün.", "attempt": 1, "status": "ok", "tool_calls": [{"name": "a"}]}) + "\n"


def written(text: str, name: str) -> Path:
    """The text as a file, in Turkish Windows' code page now and then."""
    path = Path(tempfile.gettempdir()) / f"fuzz-{os.getpid()}" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("cp1254", "replace") if len(text) % 5 == 0 else text.encode("utf-8", "surrogatepass"))
    return path


def reader_targets(examples: Path) -> Iterator[Target]:
    """Every reader of files without a command around it, so that each meets tens of thousands; InputError is all it may raise."""
    verdict_rows = [lines(examples / "kategori_verdicts.jsonl", 3), lines(examples / "irac_verdicts.jsonl", 4), lines(examples / "irac_verdicts.jsonl", 1)]
    questions = {suite: score.read_questions(score.data_path(suite, None), suite) for suite in score.DATA_FILES}
    few = {q: questions["iik"][q] for q in list(questions["iik"])[:3]}
    of_seeds = {suite: {q: row for q, row in of.items() if any(f'"{q}"' in rows for rows in verdict_rows)} for suite, of in questions.items()}
    results = [json.dumps({"custom_id": "a", "response": {"body": chat('{"verdict": "PASS"}')}}) + "\n", '{"custom_id": "a", "error": {"code": 1}}\n']
    call = score.Call(dict.fromkeys((*score.KEY, "prompt"), "x"), "", "", "", lambda said: score.read_verdict([None], "", said))

    def answers(name: str) -> Callable[[str], None]:
        def read(text: str) -> None:
            path = written(text, name)
            for answer in score.read_answers([str(path.parent if name.endswith(".md") else path)], "iik", few):
                assert answer.question_id in few and answer.status in score.STATUSES and answer.attempt > 0 and answer.text.encode("utf-8") is not None
        return read

    def question(text: str) -> None:
        path = written(text, "q.jsonl")
        for suite in questions:
            with contextlib.suppress(score.InputError):
                list(score.check_questions(score.read_questions(path, suite), suite, None))

    def verdict(text: str) -> None:
        path, problems, rows = written(text, "v.jsonl"), list[str](), {suite: score.Rows(suite, of_seeds[suite]) for suite in questions}
        kept = list[dict[str, Any]]()
        for _, row in score.rows_of([str(path)], problems):
            if not rows[row["suite"]].add(row):
                kept.append(row)
        score.as_json(score.page_rows(kept)).encode()
        for of in rows.values():
            of.tally()
            for model in of.attempts():
                [of.tried(model, q) for q in of.questions]
        score.read_judge(str(path), None)

    def batch(text: str) -> None:
        for found in score.read_batch(written(text, "b.jsonl")).values():
            row = score.batch_row(call, found)
            score.to_json(row).encode()

    def store(text: str) -> None:
        path = written(text, "o.jsonl")
        before = score.Store(path, ["pilot-judge-a", "x"], False)
        rows = list(before.rows.values())
        before.append({**call.row, "judge": "x"})
        assert before.file
        before.file.close()
        after = score.Store(path, ["pilot-judge-a", "x"], False)
        assert [after.rows[score.row_key(row)] for row in rows] == [before.rows[score.row_key(row)] for row in rows], "a row is lost"

    def quiet(read: Callable[[str], None]) -> Callable[[str], None]:
        def tried(text: str) -> None:
            with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(score.InputError):
                read(text)
        return tried

    yield "reader: answers .jsonl", 0.02, [lines(examples / "gemma3-270m.jsonl", 2), ANSWER], quiet(answers("a.jsonl"))
    yield "reader: answers .csv", 0.02, [WIDE, LONG], quiet(answers("a.csv"))
    yield "reader: answers folder", 0.01, ["Yedi gün.\nİcra"], quiet(answers("m/1.2.md"))
    yield "reader: questions", 0.01, [lines(ROOT / "data" / name, 1) for name in score.DATA_FILES.values()], quiet(question)
    yield "reader: verdicts", 0.02, verdict_rows, quiet(verdict)
    yield "reader: batch results", 0.02, results, quiet(batch)
    yield "reader: a run to go on with", 0.02, verdict_rows, quiet(store)
    yield "reader: texts", 0.01, ["TBK m. 344/1", lines(examples / "irac_answers.jsonl", 1)], quiet(lambda text: score.read_sources([str(written(text, "s.txt"))]) and None)
    yield "reader: rubrics", 0.01, [json.dumps(json.loads((ROOT / "data" / "kategori_rubrics.json").read_text(encoding="utf-8"))) + "\n"], quiet(lambda text: score.read_rubrics(written(text, "r.json")) and None)


def command_targets(examples: Path) -> Iterator[Target]:
    """Every reader of files, through the command line: exit code and a sentence are all it may end with."""

    def command(file: str, *arguments: str) -> Callable[[str], None]:
        def tried(text: str) -> None:
            path = written(text, file)
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = score.main([a.format(file=path, folder=path.parent) for a in arguments])
            assert code == 0 or (code in (1, 2, 3) and (err.getvalue() + out.getvalue()).strip()), (code, "without a sentence")
        return tried

    verdict_rows = [lines(examples / "kategori_verdicts.jsonl", 3), lines(examples / "irac_verdicts.jsonl", 12), lines(examples / "irac_verdicts.jsonl", 3)]
    results = json.dumps({"custom_id": first_request(), "response": {"body": chat('{"verdict": "PASS"}')}}) + "\n"
    for name, file, seeds, *arguments in (
            ("answers .jsonl", "a.jsonl", [lines(examples / "gemma3-270m.jsonl", 2), ANSWER], "facts", "{file}"),
            ("answers .csv", "a.csv", [WIDE, LONG], "facts", "{file}", "--format", "csv"),
            ("answers folder", "m/1.2.md", ["Yedi gün.\nİcra"], "facts", "{folder}"),
            ("questions", "q.jsonl", [lines(ROOT / "data" / name, 1) for name in ("iik_bench.jsonl", "irac.jsonl", "kategori.jsonl")], "check", "{file}"),
            ("verdicts: report", "v.jsonl", verdict_rows, "report", "{file}", "--format", "json"),
            ("verdicts: page", "v.jsonl", verdict_rows, "report", "{file}", "--html", "{folder}/p.html"),
            ("verdicts: compare", "v.jsonl", verdict_rows, "compare", "{file}", "{file}"),
            ("verdicts: agree", "v.jsonl", verdict_rows, "agree", "{file}", "{file}"),
            ("answers: judge", "a.jsonl", [lines(examples / "irac_answers.jsonl", 1)], "judge", "{file}", "--dry-run"),
            ("own questions", "q.jsonl", [lines(ROOT / "data" / "irac.jsonl", 1)], "judge", str(examples / "irac_answers.jsonl"), "--data", "{file}", "--dry-run"),
            ("own key facts", "q.jsonl", [lines(ROOT / "data" / "iik_bench.jsonl", 2)], "facts", str(examples / "sinif.csv"), "--data", "{file}", "--explain"),
            ("batch results", "b.jsonl", [results], "judge", "--golden", "--batch-in", "{file}"),
            ("rubrics", "r.json", [json.dumps(json.loads((ROOT / "data" / "kategori_rubrics.json").read_text(encoding="utf-8"))) + "\n"], "check", "{file}"),
            ("texts", "t.jsonl", ['{"id": 1, "text": "TBK m. 344/1"}\n'], "cite", "--json", "{file}")):
        yield name, 0.0002, seeds, command(file, *arguments)


def first_request() -> str:
    """The id of a request of the golden check, so that a result meets it."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        score.main(["judge", "--golden", "--batch-out", f"{folder}/b.jsonl"])
        return str(read_jsonl(Path(folder) / "b.jsonl")[0]["custom_id"])


def fuzz(inputs: int, chance: random.Random, tell: Callable[..., None], wrong: Callable[[str], None]) -> None:
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
            if took > max(0.5 if share > 0.01 else 2.0, slowest):      # a whole command may take a little longer
                wrong(f"{name}: {took:.2f} s for {len(text)} characters: {text[:300]!r}")
            slowest = max(slowest, took)
        tell("fuzz", target=name, inputs=count, failures=dict(failures), slowest_ms=round(slowest * 1000), seconds=round(time.monotonic() - begun))
