#!/usr/bin/env python3
# /// script
# requires-python = ">=3.10"
# dependencies = ["openai>=3,<4"]
# ///
"""run.py: ask a model the questions of Terazi and write its answers.

    python run.py --data data/irac.jsonl --model MODEL --base-url URL -o answers.jsonl

Any OpenAI-compatible server will do. The key is read from the environment
(OPENAI_API_KEY, or --key-env NAME); a server without keys needs none. Each question is
asked three times, word for word as it stands in the data, with 20 minutes an attempt
(tools and waiting included) and 16,000 output tokens a request. Run the same command
again and only what is missing is asked.

Questions (--data), one JSON object a line: "id" and "question" (irac, kategori) or
"soru" (iik). Unknown fields are ignored; no other field reaches the model.

Answers (-o), one JSON object a line, each appended whole:

    {"question_id": 7, "suite": "iik", "model": "m", "attempt": 1, "answer": "...",
     "status": "ok", "error": null, "rerun": null, "reasoning": "...", "requests": 2,
     "tool_calls": [{"name": "ara", "arguments": {"sorgu": "..."}, "output": "..."}],
     "seconds": 41.3, "usage": {"prompt_tokens": 812, ...}, "cost": 0.0021,
     "served": {"model": "m-2026-08", "provider": "P", "system_fingerprint": "fp"},
     "sent": {"model": "m", "max_tokens": 16000, "tools": ["ara"]}, "refused": ["temperature"],
     "question_sha": "...", "setup": "..."}

`setup` stands for model, system prompt, tools, limits and parameters; answers of one
model in two setups are not mixed in a file (--label gives the second one a name).

`status` is the first of these that applies:
    timeout         the attempt's time ran out
    error           the service failed, not the model; asked again in the next run
    refusal         the model or its provider declined
    tools_only      tools were called, an answer was never written
    reasoning_only  there is reasoning, but no answer
    length          cut off at the token limit, or the conversation outgrew the model
    empty           nothing at all
    ok              an answer
An attempt that ends in `error` is asked once more; `rerun` then says why. What the
model itself spoils is never asked again.

Tools: --tools FILE.py[=ARGUMENT], repeatable. The file defines `tools(argument)`, which
returns functions, sync or async. Name, docstring and type hints become the schema, and
arguments are checked against them; a function with an attribute `parameters` brings its
own JSON schema. Sync functions run in threads and must bear being called at the same
time. What a tool raises is told to the model. Two such files are in data/examples.

    def tools(argument):
        def ara(sorgu: str, adet: int = 5) -> str:
            '''Mevzuatta arar.'''
            return ...
        return [ara]

Exit codes: 0 done, 1 the data or the service said no, 2 wrong use, 3 done but some
attempts failed for reasons of the service, 130 interrupted.

Sections: Numbers, Errors and rows, Questions, Answers file, Tools, Attempt, Service,
Conversation, Run, Command line.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import email.utils
import errno
import functools
import hashlib
import importlib.util
import inspect
import json
import math
import os
import random
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

Json = dict[str, Any]

# == Numbers ==================================================================================

ATTEMPTS = 3  # published: every question is asked three times
MINUTES = 20.0  # published: time for an attempt, tools included
MAX_TOKENS = 16_000  # published: output tokens, reasoning included; read as "per request"
MAX_REQUESTS = 50  # ours: the published harness states no bound
TOOL_CHARS = 40_000  # ours: a longer tool output is cut for the model
BACKOFF, MAX_WAIT = 2.0, 60.0  # seconds before the second try, doubling; the longest wait
RETRY_FOR = 300.0  # a request that keeps failing this long is given up
HEAD_START = 5.0  # the first worker goes ahead alone: a wrong key or parameter costs one call
ERRORS_IN_A_ROW = 10  # so many attempts lost to the service one after another end the run

SUITES = {"soru": "iik", "category": "kategori", "criteria": "irac"}  # the field that only it has
TRANSIENT = {408, 409, 425, 429}  # and every 5xx
FATAL = {
    401: "the key was not accepted; check the variable that --key-env names",
    402: "the account has no credit left; top it up and run the same command again",
    403: "the key may not use this model; check the account's rights",
    404: "no such address or model; check --base-url and --model",
}
QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|billing_hard_limit", re.I)
OVERLONG = re.compile(r"context.?(length|window|size)|too (long|many tokens)", re.I)
THINKING = re.compile(
    r"\s*(?:<think(?:ing)?>(.*?)(?:</think(?:ing)?>|\Z)|((?:(?!<think).)*?)</think(?:ing)?>)",
    re.S,
)
STEERING = r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # what steers a terminal

# == Errors and rows ==========================================================================


class UserError(Exception):
    """Something the user can mend; its text is the whole message."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


def clean(value: Any) -> Any:
    """A value as a UTF-8 JSON file can hold it: lone surrogates are replaced; ValueError for NaN and infinities.

    >>> clean({"a": ["Evet \\ud83d devam"]})
    {'a': ['Evet \ufffd devam']}
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def unique_keys(pairs: list[tuple[str, Any]]) -> Json:
    """An object whose keys are all different; JSON itself would let the last one win."""
    row = dict(pairs)
    if len(row) < len(pairs):
        raise ValueError("a key stands twice")
    return row


def parse_object(text: str) -> Json:
    """A JSON object, or ValueError with what was wrong."""
    try:
        value = clean(json.loads(text, object_pairs_hook=unique_keys))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def as_object(value: Any) -> Json:
    """An object as it is; anything else a server may send in its place holds nothing."""
    return value if isinstance(value, dict) else {}


def read_rows(path: Path, data: bytes) -> list[tuple[int, Json]]:
    """(line number, row) for each line; every malformed line is named before giving up."""
    rows, wrong = [], []
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if line := line.strip(b"\0 \t\r"):
            try:
                rows.append((number, parse_object(line.decode())))
            except ValueError as error:
                wrong.append(f"{path}:{number}: {error}; expected one JSON object")
    if wrong:
        raise UserError("\n".join(wrong))
    return rows


def digest(value: Any) -> str:
    """Sixteen hex digits that stand for a value."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def say(text: str, passing: bool = False) -> None:
    """A line for the person at the terminal, where the next one overwrites a passing one; answers never go there."""
    terminal = sys.stderr.isatty()
    start, end = ("\r\x1b[K" if terminal else ""), ("" if terminal and passing else "\n")
    print(start + re.sub(STEERING, " ", text), end=end, file=sys.stderr, flush=True)


# == Questions ================================================================================


class Question(NamedTuple):
    """One question; `id` as the data has it, compared as text."""

    id: int | str
    text: str
    suite: str | None


def read_questions(path: Path, only: Collection[str] = ()) -> list[Question]:
    """The questions of a file, or of those only the ones whose ids are given. Every line that is none is named."""
    questions: list[Question] = []
    lines: dict[str, int] = {}
    wrong = []
    for line, row in read_rows(path, path.read_bytes()):
        field = "soru" if "soru" in row else "question"
        name, text = row.get("id"), row.get(field)
        if isinstance(name, bool) or not isinstance(name, (int, str)) or name == "":
            wrong.append(f'{path}:{line}: "id" is {name!r}; expected text or a whole number')
        elif not isinstance(text, str) or not text.strip():
            wrong.append(f'{path}:{line}: "{field}" is {text!r}; expected the text of the question')
        elif str(name) in lines:
            wrong.append(f'{path}:{line}: "id" {name} stands on line {lines[str(name)]} too')
        else:
            lines[str(name)] = line
            questions.append(Question(name, text, next((suite for mark, suite in SUITES.items() if mark in row), None)))
    wrong += [f"{path}: no question has the id {name} (--only)" for name in only if name not in lines]
    if wrong or not questions:
        raise UserError("\n".join(wrong) or f"{path}: no questions; expected one JSON object a line")
    return [question for question in questions if not only or str(question.id) in only]


# == Answers file =============================================================================


class Answers:
    """The output file, which is also the state of the run: the rows of former runs and those of this one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = open(path, "a+b", buffering=0)  # noqa: SIM115 (open as long as the run)
        with contextlib.suppress(ImportError):  # Windows has no fcntl, and so no lock
            import fcntl

            try:  # two runs on one file would ask everything twice; the lock ends with its process
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UserError(f"{path}: another run is writing to this file", 2) from None
        self.old = [row for _, row in read_rows(path, self.repaired())]
        self.new: list[Json] = []

    def repaired(self) -> bytes:
        """What the file holds, once what a killed writer left at its end is cut off and a whole last line is ended."""
        self.file.seek(0)
        data = self.file.read()
        whole = data.rstrip(b"\0")
        last = whole.rpartition(b"\n")[2]
        try:
            if last:
                parse_object(last.decode("utf-8-sig"))
        except ValueError:
            line = whole.count(b"\n") + 1
            say(f"{self.path}:{line}: the last line is torn; it was removed and is asked again")
            whole, last = whole.removesuffix(last), b""
        if whole != data:
            self.file.truncate(len(whole))
        if last:
            self.file.write(b"\n")
        return whole

    def done(self, model: str, setup: str, questions: Iterable[Question]) -> set[tuple[str, str]]:
        """The (question, attempt) pairs this model has answered in this setup, but of questions changed since."""
        ours = [row for row in self.old if row.get("model") == model and row.get("status", "ok") != "error"]
        if any(row.get("setup", setup) != setup for row in ours):
            raise UserError(
                f"{self.path}: {model} has answers here with other settings (system prompt, tools, limits or"
                " parameters); give another -o or --label", 2,
            )
        texts = {str(q.id): digest(q.text) for q in questions}
        asked = [(str(row.get("question_id")), str(row.get("attempt", 1)), row.get("question_sha")) for row in ours]
        return {(name, number) for name, number, sha in asked if sha in (None, texts.get(name))}

    def append(self, row: Json) -> None:
        """One row, one write: a kill leaves it whole, or torn at the file's end."""
        line = json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        try:
            written = self.file.write(line)
            if written < len(line):  # the disk is full: no torn row for another to be appended to
                self.file.truncate(self.file.seek(0, os.SEEK_END) - written)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise UserError(
                f"{self.path}: cannot be written ({error.strerror}); make room and run the same command again"
            ) from None
        self.new.append(row)

    def close(self) -> None:
        """Lets the file go. One without a byte says nothing and does not stay."""
        empty = self.path.is_file() and self.path.stat().st_size == 0
        if os.name == "nt":  # there an open file can't be deleted; elsewhere the lock holds until it is gone
            self.file.close()
        if empty:
            self.path.unlink(missing_ok=True)
        self.file.close()


# == Tools ====================================================================================


class Tool(NamedTuple):
    """A function as the runner calls it, always async, and as the model sees it."""

    call: Callable[..., Awaitable[Any]]
    schema: Json


def describe(function: Callable[..., Any]) -> tuple[str, Tool]:
    """A function's name and its tool: name, docstring and type hints (or `parameters`) are the schema."""
    from pydantic import TypeAdapter, validate_call  # comes with openai

    name, is_async = function.__name__, inspect.iscoroutinefunction(function)
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
        raise ValueError(f"the tool name {name!r} is not made of 1 to 64 letters a-z, digits, _ or -")
    parameters, description = getattr(function, "parameters", None), inspect.getdoc(function) or ""
    if parameters is None:
        adapter: Any = TypeAdapter
        parameters, function = adapter(function).json_schema(), validate_call(function)
    schema = {"name": name, "description": description, "parameters": parameters}
    call = function if is_async else functools.partial(in_thread, function)
    return name, Tool(call, {"type": "function", "function": schema})


def in_thread(function: Callable[..., Any], /, **arguments: Any) -> Awaitable[Any]:
    """Calls a sync function in a daemon thread, which neither a deadline nor Ctrl-C waits for."""
    result: Future[Any] = Future()
    result.set_running_or_notify_cancel()

    def work() -> None:
        try:
            result.set_result(function(**arguments))
        except BaseException as error:  # StopIteration and SystemExit can't cross a future
            result.set_exception(RuntimeError(str(error) or type(error).__name__))

    threading.Thread(target=work, daemon=True).start()
    return asyncio.wrap_future(result)


def load_tools(specs: Iterable[str]) -> dict[str, Tool]:
    """The tools of every --tools FILE.py[=ARGUMENT], by name."""
    tools: dict[str, Tool] = {}
    for spec in specs:
        match = re.fullmatch(r"(.+?\.py)(?:=(.*))?", spec, re.S)
        if not match or not Path(match[1]).is_file():
            raise UserError(f"--tools {spec}: expected FILE.py or FILE.py=ARGUMENT, and the file to exist", 2)
        try:
            module_spec = importlib.util.spec_from_file_location(f"tools_{len(tools)}", match[1])
            assert module_spec and module_spec.loader  # a name that ends in .py has a loader
            module = importlib.util.module_from_spec(module_spec)
            sys.modules[module_spec.name] = module  # where type hints are looked up
            module_spec.loader.exec_module(module)
            described = [describe(function) for function in module.tools(match[2] or "")]
        except Exception as error:
            raise UserError(f"--tools {spec}: {type(error).__name__}: {error}", 2) from error
        for name, tool in described:
            if name in tools:
                raise UserError(f"--tools {spec}: the tool name {name} is taken already", 2)
            tools[name] = tool
    return tools


def call_arguments(raw: Any) -> Json | str:
    """The arguments of a tool call, or the sentence that says what is wrong with them."""
    if isinstance(raw, dict):
        return raw
    try:
        return parse_object(raw or "{}")
    except (ValueError, TypeError) as error:
        return f"the arguments are not valid JSON ({error}); a JSON object is needed, not {raw}"


async def use_tool(tools: Mapping[str, Tool], name: str, arguments: Json | str) -> str:
    """What the model is told after a call; a call that fails is told so, whatever failed."""
    if name not in tools:
        return f"error: there is no tool {name!r}; there are: {', '.join(tools) or 'none'}"
    if isinstance(arguments, str):
        return f"error: {arguments}"
    try:
        value = await tools[name].call(**arguments)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    except Exception as error:
        text = f"error: {error or type(error).__name__}"
    if len(text) > TOOL_CHARS:
        text = text[:TOOL_CHARS] + f"\n[cut: {len(text)} characters, of which the first {TOOL_CHARS} are shown]"
    return str(clean(text))


# == Attempt ==================================================================================


@dataclass
class Plan:
    """All that one run has been told."""

    model: str
    label: str
    system: str | None
    tools: dict[str, Tool]
    parameters: Json
    max_requests: int
    seconds: float
    concurrency: int

    def setup(self) -> str:
        """Stands for everything that may change an answer; rows of two setups are not mixed."""
        return digest([self.model, self.system, sorted(self.tools), self.parameters, self.max_requests, self.seconds])


@dataclass
class Attempt:
    """What an attempt has brought so far, under the names of its row; a deadline may cut it off at any point."""

    answer: str = ""
    status: str = ""
    error: str | None = None  # while it runs: what the service failed with and has not answered since
    rerun: str | None = None
    reasoning: str = ""
    requests: int = 0
    tool_calls: list[Json] = field(default_factory=list)
    seconds: float = 0.0
    usage: dict[str, int] = field(default_factory=dict)
    cost: float | None = None
    served: Json = field(default_factory=dict)


def status_of(record: Attempt, ending: str) -> str:
    """How an attempt ended that neither time nor the service cut off: the first status that applies."""
    if ending == "refusal":
        return "refusal"
    if not record.answer.strip():
        if record.tool_calls:
            return "tools_only"
        if record.reasoning or record.usage.get("reasoning_tokens"):
            return "reasoning_only"
        return "length" if ending == "length" else "empty"
    return "length" if ending == "length" else "ok"


def split_message(message: Json) -> tuple[str, str]:
    """(answer text, reasoning) of a message, whichever way its server keeps them apart.

    >>> split_message({"content": "<think>Hangi süre?</think>Yedi gün."})
    ('Yedi gün.', 'Hangi süre?')
    """
    content = message.get("content") or ""
    thoughts = [message.get("reasoning_content") or message.get("reasoning")]
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict)]
        thoughts += [json.dumps(p["thinking"], ensure_ascii=False) for p in parts if "thinking" in p]
        content = "".join(str(part.get("text") or "") for part in parts)
    if match := THINKING.match(str(content)):
        thoughts.append((match[1] or match[2] or "").strip())
        content = content[match.end() :].lstrip()
    return str(content), "\n\n".join(t for t in thoughts if t and isinstance(t, str))


def count(record: Attempt, reply: Json) -> None:
    """Adds what a reply says of its tokens, its cost and who served it."""
    record.requests += 1
    usage = as_object(reply.get("usage"))
    details = [as_object(usage.get(name)) for name in ("prompt_tokens_details", "completion_tokens_details")]
    numbers = {**details[0], **details[1], **usage}
    for name in ("prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens", "reasoning_tokens"):
        if type(number := numbers.get(name)) is int and number < 10**15:
            record.usage[name] = record.usage.get(name, 0) + number
    if isinstance(cost := usage.get("cost"), (int, float)) and abs(cost) < 1e15:  # more would overflow the sum
        record.cost = (record.cost or 0) + cost
    record.served = {name: reply.get(name) for name in ("model", "provider", "system_fingerprint")}


# == Service ==================================================================================


@dataclass(eq=False)
class Trouble(Exception):
    """A request that brought no reply, and how an attempt ends that is left with it: "error", "length", "refusal".

    One that is `transient` may be asked again later, one over a `parameter` of ours without it.
    What ends the whole run is a UserError.
    """

    message: str
    ending: str = "error"
    transient: bool = False
    retry_after: str | None = None
    parameter: str = ""


def endpoint(base_url: str) -> str:
    """Where requests go, from the address in any of the forms people write it.

    >>> endpoint("https://api.ornek.invalid"), endpoint("https://api.ornek.invalid/api/v1/")
    ('https://api.ornek.invalid/v1/chat/completions', 'https://api.ornek.invalid/api/v1/chat/completions')
    """
    address, mark, query = base_url.strip("\ufeff \t\r\n").partition("?")
    host = r"https?://(?:[\w.-]+|\[[\da-f:.]+\])(?::(?P<port>\d{1,5}))?"
    named = re.fullmatch(rf"{host}(?:/[!-~]*)?", address, re.ASCII)
    if not named or int(named["port"] or 0) > 65535 or not re.fullmatch(r"[!-~]*", query):
        raise UserError(f"--base-url {base_url}: expected an address such as https://api.openai.com/v1", 2)
    address = address.rstrip("/")
    if not address.endswith("/chat/completions"):
        address += ("" if "/" in address.partition("://")[2] else "/v1") + "/chat/completions"
    return address + mark + query


def read_key(name: str) -> str:
    """The key from the environment, without the line end or BOM a file gave it."""
    key = os.environ.get(name, "").strip("\ufeff \t\r\n")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UserError(f"the environment variable {name} holds signs that no key has", 2)
    return key


def wait_seconds(header: str | None, now: float, backoff: float) -> float:
    """How long to wait: Retry-After in seconds or as a date, else the backoff; capped.

    >>> [wait_seconds(h, 0.0, 2.0) for h in ("5", "soon", "-3", "99999999999999", None)]
    [5.0, 2.0, 2.0, 60.0, 2.0]
    """
    try:
        wait = float(header or "nan")
    except ValueError:
        try:
            wait = max(0.0, email.utils.parsedate_to_datetime(str(header)).timestamp() - now)
        except (ValueError, TypeError, OverflowError):
            wait = math.nan
    return min(wait if 0 <= wait < math.inf else backoff, MAX_WAIT)


def read_reply(status: int, body: str, headers: Mapping[str, str], sent: Collection[str]) -> Json:
    """The reply in a response; an error, in a 200 too, is raised."""
    try:
        data = as_object(clean(json.loads(body)))
    except (ValueError, RecursionError):
        data = {}
    choices = data.get("choices")
    choice = as_object(choices[0]) if isinstance(choices, list) and choices else {}
    error = data.get("error") or choice.get("error") or {}
    if status == 200 and not error and isinstance(choice.get("message"), dict):
        return data
    error = error if isinstance(error, dict) else {"message": error}
    message = str(error.get("message") or body.strip()[:500] or "no text")
    code = str(error.get("code") or error.get("type") or "")
    if status == 200:
        status = int(code) if re.fullmatch(r"[45]\d\d", code) else 502
    named = [error["param"]] if error.get("param") else re.findall(r"\w+", message)
    parameter = next((name for name in sent if name in named), "")
    raise failure(status, code, message, headers, parameter)


def failure(status: int, code: str, message: str, headers: Mapping[str, str], parameter: str) -> Exception:
    """What an error status stands for."""
    said = f"HTTP {status}: {message}"
    if 300 <= status < 400:
        return UserError(f"HTTP {status}: the server points to {headers.get('location')}; set --base-url to it")
    if status == 401:  # what a server says here often repeats part of the key
        return UserError(f"HTTP 401: {FATAL[401]}")
    if status in FATAL or QUOTA.search(f"{code} {message}"):
        return UserError(f"{said} ({FATAL.get(status, FATAL[402])})")
    if status in TRANSIENT or status >= 500:
        return Trouble(said, transient=True, retry_after=headers.get("retry-after"))
    if code == "content_filter":
        return Trouble(said, "refusal")
    if parameter:
        return Trouble(said, parameter=parameter)
    overlong = status == 413 or OVERLONG.search(f"{code} {message}")
    return Trouble(said, "length" if overlong else "error")


class Service:
    """The model behind its address: retries, pauses, and what its server would not take."""

    def __init__(self, plan: Plan, url: str, key: str) -> None:
        import openai

        base, _, query = url.rpartition("/chat/completions")
        try:
            self.client = openai.AsyncOpenAI(
                base_url=base, api_key=key or "none", max_retries=0, default_query=dict(parse_qsl(query[1:])),
                timeout=openai.Timeout(None, connect=30),  # an attempt has a deadline of its own
                http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False),  # the key would go along
            )
        except Exception as error:  # a number no host can have, a proxy in the environment that is none
            raise UserError(f"{base} cannot be reached ({error}); check --base-url") from None
        self.model, self.parameters, self.key = plan.model, dict(plan.parameters), key
        self.refused: list[str] = []
        self.replied = False  # whether the server has ever answered, well or badly
        self.proven = asyncio.Event()  # set by the first good reply
        self.pause_until = 0.0  # one pause for all workers

    async def ask(self, messages: list[Json], tools: Json, record: Attempt) -> Json:
        """One reply to a conversation, through all faults that time can mend; the last one stands in the record."""
        tries, give_up = 0, math.inf
        while True:
            await asyncio.sleep(self.pause_until - time.monotonic())
            try:
                reply = await self.post(messages, tools)
            except Trouble as trouble:
                if trouble.transient:
                    record.error, tries = trouble.message, tries + 1
                    give_up = min(give_up, time.monotonic() + RETRY_FOR)
                    await self.back_off(trouble, tries, give_up)
                elif self.proven.is_set() or trouble.ending == "refusal":
                    raise
                elif trouble.parameter:
                    self.drop(trouble)
                else:  # refused before anything worked: a matter of the setup
                    raise UserError(trouble.message) from None
            else:
                self.proven.set()
                record.error = None
                return reply

    async def post(self, messages: list[Json], tools: Json) -> Json:
        """One request. Whatever the client raises becomes Trouble."""
        import openai

        sent = dict(self.parameters)
        create: Any = self.client.chat.completions.with_raw_response.create
        no_key = {} if self.key else {"Authorization": openai.Omit()}
        try:
            raw = await create(
                model=self.model, messages=messages, extra_body={**sent, **tools}, extra_headers=no_key
            )
            response = raw.http_response
        except openai.APIStatusError as error:
            response = error.response
        except (openai.APIError, OSError) as error:
            cause = error.__cause__ or error
            if not self.replied and type(cause).__name__ == "ConnectError":  # refused, no such host, no certificate
                address = str(self.client.base_url.copy_with(path="")).rstrip("/")
                raise UserError(self.hide(f"{address} cannot be reached ({cause}); check --base-url")) from None
            raise Trouble(self.hide(f"{type(cause).__name__}: {cause}"), transient=True) from None
        self.replied = True
        text = self.hide(response.content.decode("utf-8", "replace"))
        headers = {name.lower(): self.hide(value) for name, value in response.headers.items()}
        return read_reply(response.status_code, text, headers, sent)

    def hide(self, text: str) -> str:
        """No text from outside brings the key into a file or onto the screen."""
        as_json = self.key.replace("/", "\\/")  # as JSON may write it
        return text.replace(self.key, "[key]").replace(as_json, "[key]") if len(self.key) >= 8 else text

    def drop(self, trouble: Trouble) -> None:
        """Goes on without a refused parameter, for the whole run."""
        name = trouble.parameter
        if name in self.parameters:  # else another request has learnt it already
            value = self.parameters.pop(name)
            self.refused.append(name)
            if name == "max_tokens":
                self.parameters["max_completion_tokens"] = value
            say(f"not sent from here on: {name} ({trouble.message})")

    async def back_off(self, trouble: Trouble, tries: int, give_up: float) -> None:
        """Waits before the next try, all workers together if the server named the time."""
        backoff = BACKOFF * 2 ** min(tries - 1, 10) * (1 + random.random() / 4)
        wait = wait_seconds(trouble.retry_after, time.time(), backoff)
        if time.monotonic() + wait > give_up:
            raise trouble
        if trouble.retry_after:
            self.pause_until = max(self.pause_until, time.monotonic() + wait)
        if tries in (1, 4):
            say(f"trying again in {wait:.0f} s: {trouble.message}")
        await asyncio.sleep(wait)


# == Conversation =============================================================================


async def answer_calls(record: Attempt, message: Json, tools: Mapping[str, Tool]) -> list[Json]:
    """Runs a turn's tool calls side by side; the turn and an answer to each call, under an id of its own."""
    calls: dict[str, Json] = {}
    rows, waiting = [], []
    for place, call in enumerate(message["tool_calls"]):
        asked, identity = call.get("function") or {}, call.get("id")
        if not identity or identity in calls:
            identity = f"call_{record.requests}_{place}"
        name, raw = str(asked.get("name") or ""), asked.get("arguments")
        arguments = call_arguments(raw)
        valid = isinstance(arguments, dict)
        text = json.dumps(arguments if valid else {}, ensure_ascii=False)  # broken JSON sent back makes servers fail
        calls[identity] = {**call, "id": identity, "type": "function", "function": {"name": name, "arguments": text}}
        rows.append({"name": name, "arguments": arguments if valid else raw, "output": ""})
        waiting.append(use_tool(tools, name, arguments))
    record.tool_calls += rows  # before they run: time may run out over them
    for row, output in zip(rows, await asyncio.gather(*waiting), strict=True):
        row["output"] = output
    said = {key: value for key, value in message.items() if value is not None}
    turn = {**said, "content": message.get("content") or "", "tool_calls": list(calls.values())}
    answers = zip(calls, rows, strict=True)
    return [turn, *({"role": "tool", "tool_call_id": i, "content": row["output"]} for i, row in answers)]


async def converse(service: Service, plan: Plan, record: Attempt, messages: list[Json]) -> str:
    """Asks and runs tools until the model writes its answer, or the bound is reached; how it ended."""
    offered = {"tools": [tool.schema for tool in plan.tools.values()]} if plan.tools else {}
    while record.requests < plan.max_requests:
        reply = await service.ask(messages, offered, record)
        count(record, reply)
        choice = reply["choices"][0]
        message = choice["message"]
        text, thoughts = split_message(message)
        record.reasoning = "\n\n".join(part for part in (record.reasoning, thoughts) if part)
        if message.get("tool_calls"):
            messages = messages + await answer_calls(record, message, plan.tools)
            continue
        record.answer = text or str(message.get("refusal") or "")
        refused = message.get("refusal") or choice.get("finish_reason") == "content_filter"
        return "refusal" if refused else str(choice.get("finish_reason"))
    record.error = f"{plan.max_requests} requests made (--max-requests) and no answer"
    return ""


async def attempt(service: Service, plan: Plan, messages: list[Json]) -> Attempt:
    """One attempt at a question, with its end noted, whatever it is."""
    record, start = Attempt(), time.monotonic()
    try:
        ending = await asyncio.wait_for(converse(service, plan, record, messages), plan.seconds)
        record.status = status_of(record, ending)
    except asyncio.TimeoutError:
        late = f"no answer within {plan.seconds:g} seconds"
        record.status = "error" if record.error else "timeout"
        record.error = f"{late}, after {record.error}" if record.error else late
    except Trouble as trouble:
        record.error = trouble.message
        record.status = "error" if trouble.ending == "error" else status_of(record, trouble.ending)
    except (AttributeError, KeyError, TypeError) as error:
        record.status, record.error = "error", f"a reply of unknown form: {error!r}"
    record.seconds = round(time.monotonic() - start, 3)
    return record


async def ask_question(service: Service, plan: Plan, question: Question, number: int) -> Json:
    """The row of one attempt; a fault of the service gets one more try."""
    messages = [{"role": "system", "content": plan.system}] if plan.system is not None else []
    messages.append({"role": "user", "content": question.text})
    record = await attempt(service, plan, messages)
    if record.status == "error":
        reason = record.error
        record = await attempt(service, plan, messages)
        record.rerun = reason
    suite = {"suite": question.suite} if question.suite else {}
    return {
        "question_id": question.id, **suite, "model": plan.label, "attempt": number, **vars(record),
        "sent": {"model": plan.model, **service.parameters, "tools": list(plan.tools)},
        "refused": list(service.refused), "question_sha": digest(question.text), "setup": plan.setup(),
    }


# == Run ======================================================================================


async def ask_all(plan: Plan, url: str, key: str, jobs: list[tuple[Question, int]], answers: Answers) -> None:
    """Works through the jobs, so many at once; the first worker has a head start, so that it learns for all."""
    service, queue, start = Service(plan, url, key), iter(jobs), time.monotonic()

    async def worker(wait: float) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(service.proven.wait(), wait)
        for question, number in queue:
            row = await ask_question(service, plan, question, number)
            answers.append(row)
            done = len(answers.new)
            left = (time.monotonic() - start) / done * (len(jobs) - done) / 60
            say(f"{done}/{len(jobs)} attempts, about {left:.1f} min left", passing=done < len(jobs))
            if [r["status"] for r in answers.new[-ERRORS_IN_A_ROW:]] == ["error"] * ERRORS_IN_A_ROW:
                raise UserError(f"{ERRORS_IN_A_ROW} attempts in a row failed, the last with {row['error']}")
        service.proven.set()  # nothing is left to wait for

    waits = [0.0] + [HEAD_START] * (min(plan.concurrency, len(jobs)) - 1)
    workers = [asyncio.create_task(worker(wait)) for wait in waits]
    try:
        await asyncio.gather(*workers)
    finally:
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        await service.client.close()


def summary(rows: list[Json], tools: Iterable[str]) -> str:
    """How the attempts of a run ended, and which tools none of them called.

    >>> rows = [{"status": "ok", "tool_calls": [{"name": "ara"}]}, {"status": "length", "tool_calls": []}]
    >>> summary(rows, ["ara", "oku"])
    '1 ok, 1 length; tools never called: oku'
    """
    statuses = Counter(row["status"] for row in rows)
    called = {call["name"] for row in rows for call in row["tool_calls"]}
    ended = ", ".join(f"{number} {status}" for status, number in statuses.most_common())
    idle = [name for name in tools if name not in called]
    return ended + (f"; tools never called: {', '.join(idle)}" if idle else "")


# == Command line =============================================================================


def plain_name(name: str) -> str:
    """A name from the command line as text, also under LC_ALL=C; bytes that are no UTF-8 become U+FFFD."""
    return os.fsencode(name).decode("utf-8", "replace")


def parser() -> argparse.ArgumentParser:
    """The options; `python run.py --help` shows them."""
    p = argparse.ArgumentParser(
        prog="run.py", allow_abbrev=False, description="Ask a model the questions of Terazi and write its answers."
    )
    add = p.add_argument
    add("--data", type=Path, required=True, metavar="FILE", help="questions, JSON Lines")
    add("--model", required=True, type=plain_name, metavar="NAME", help="the model, as its server calls it")
    add("--base-url", default="https://api.openai.com/v1", metavar="URL", help="default: %(default)s")
    add("-o", "--output", type=Path, required=True, metavar="FILE", help="answers; an old file is continued")
    add("--label", type=plain_name, metavar="NAME", help="the name in the answers and on the board (default: --model)")
    add("--key-env", default="OPENAI_API_KEY", metavar="NAME", help="variable with the key (default: %(default)s)")
    add("--system", type=Path, metavar="FILE", help="a system prompt (default: none)")
    add("--tools", action="append", default=[], metavar="FILE.py[=ARGUMENT]", help="tools; repeatable")
    add("--only", metavar="IDS", help="only these questions: ids, separated by commas")
    add("--attempts", type=int, default=ATTEMPTS, metavar="N", help="attempts a question (default: %(default)s)")
    add("--concurrency", type=int, default=4, metavar="N", help="attempts at once (default: %(default)s)")
    add("--minutes", type=float, default=MINUTES, metavar="N", help="an attempt's time (default: %(default)g)")
    add("--max-requests", type=int, default=MAX_REQUESTS, metavar="N", help="an attempt's (default: %(default)s)")
    add("--extra-body", default="{}", metavar="JSON", help="fields of each request, such as"
        ' {"temperature": 0, "max_tokens": 4000} or router options (default: max_tokens 16000 and nothing else)')
    return p


def make_plan(args: argparse.Namespace) -> Plan:
    """The plan that the options describe."""
    try:
        extra = parse_object(args.extra_body)
    except ValueError as error:
        raise UserError(f"--extra-body {args.extra_body}: {error}; expected a JSON object", 2) from None
    if taken := {"model", "messages", "tools", "stream", "n"} & extra.keys():
        raise UserError(f'--extra-body: "{min(taken)}" is not yours to set', 2)
    try:
        system = args.system.read_bytes().decode("utf-8-sig") if args.system else None
    except UnicodeDecodeError as error:
        raise UserError(f"--system {args.system}: {error}; expected UTF-8") from None
    return Plan(
        model=args.model, label=args.label or args.model, system=system, tools=load_tools(args.tools),
        parameters={"max_tokens": MAX_TOKENS, **extra}, max_requests=args.max_requests, seconds=args.minutes * 60,
        concurrency=args.concurrency,
    )


def cmd_run(args: argparse.Namespace) -> int:
    """Reads, and asks what is missing."""
    if importlib.util.find_spec("openai") is None:
        raise UserError('the package openai is missing; type: pip install "openai>=3,<4" (or: uv run run.py ...)', 2)
    if not all(number > 0 for number in (args.attempts, args.concurrency, args.max_requests, args.minutes)):
        raise UserError("--attempts, --concurrency, --max-requests and --minutes: expected numbers above 0", 2)
    url, key = endpoint(args.base_url), read_key(args.key_env)
    questions = read_questions(args.data, [name.strip() for name in args.only.split(",")] if args.only else [])
    plan = make_plan(args)
    if args.output.exists() and args.output.samefile(args.data):
        raise UserError(f"-o {args.output}: this is the question file; name another", 2)
    with contextlib.closing(Answers(args.output)) as answers:
        done = answers.done(plan.label, plan.setup(), questions)
        jobs = [(q, n) for n in range(1, args.attempts + 1) for q in questions if (str(q.id), str(n)) not in done]
        say(f"{len(questions)} questions x {args.attempts} attempts; {len(jobs)} to ask")
        return ask_and_tell(plan, url, key, jobs, answers) if jobs else 0


def ask_and_tell(plan: Plan, url: str, key: str, jobs: list[tuple[Question, int]], answers: Answers) -> int:
    """Asks, and says what came of it, however the run ends."""
    try:
        asyncio.run(ask_all(plan, url, key, jobs, answers))
    except UserError as error:
        kept = f"\n{answers.path} has what is done; the same command goes on" if answers.old or answers.new else ""
        raise UserError(f"stopped: {error}{kept}") from None
    except KeyboardInterrupt:
        say(f"interrupted; {answers.path} has what is done, and the same command goes on")
        return 130
    finally:
        if answers.new:
            say(summary(answers.new, plan.tools))
    errors = sum(row["status"] == "error" for row in answers.new)
    if errors:
        say(f"{errors} attempts failed for reasons of the service; the same command asks them again")
    return 3 if errors else 0


def main(argv: list[str] | None = None) -> int:
    """The one place where errors become a sentence and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        return cmd_run(parser().parse_args(argv))
    except FileNotFoundError as error:
        say(f"run.py: {error.filename}: there is no such file")
        return 2
    except (UserError, OSError) as error:
        say(f"run.py: {error}")
        return error.code if isinstance(error, UserError) else 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
