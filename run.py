#!/usr/bin/env python3
# /// script
# requires-python = ">=3.10"
# dependencies = ["openai>=3,<4"]
# ///
"""run.py: ask a model the questions of Terazi and write its answers.

    python run.py --data data/irac.jsonl --model MODEL --base-url URL -o answers.jsonl

Any OpenAI-compatible server will do; the key is read from the environment
(OPENAI_API_KEY, or the variable --key-env names) and a server without keys needs none.
Each question is asked three times, word for word as it stands in the data, with 20
minutes an attempt (tools and waiting included) and 16,000 output tokens a request. Run
the same command again and only what is missing is asked.

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

Sections: Numbers, Errors and rows, Questions, Answers file, Tools, Service, Attempt,
Run, Command line.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import email.utils
import errno
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
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar, cast
from urllib.parse import parse_qsl, urlsplit, urlunsplit

Json = dict[str, Any]
T = TypeVar("T")

# == Numbers ==================================================================================

ATTEMPTS = 3  # published: every question is asked three times
MINUTES = 20.0  # published: time for an attempt, tools included
MAX_TOKENS = 16_000  # published: output tokens, reasoning included; read as "per request"
MAX_REQUESTS = 50  # ours: the published harness states no bound
TOOL_CHARS = 40_000  # ours: a longer tool output is cut for the model
BACKOFF, MAX_WAIT = 2.0, 60.0  # seconds before the second try, doubling; the longest wait
RETRY_FOR = 300.0  # a request that keeps failing this long is given up
HEAD_START = 5.0  # the first request goes ahead alone: a wrong key or parameter costs one call
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

# == Errors and rows ==========================================================================


class UserError(Exception):
    """Something the user can mend; its text is the whole message."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


@dataclass(eq=False)
class Trouble(Exception):
    """A request that brought no reply; `kind` says what follows from it.

    retry: ask again later; parameter: ask again without it; overlong, refusal: the attempt ends
    there; rejected: the attempt ends in `error`. What ends the whole run is a UserError.
    """

    kind: str
    message: str
    retry_after: str | None = None
    parameter: str = ""

    def __str__(self) -> str:
        return self.message


def clean(value: T) -> T:
    """Replaces lone surrogates, which no UTF-8 file can hold, wherever text enters.

    >>> clean({"a": ["Evet \\ud83d devam"]})
    {'a': ['Evet \ufffd devam']}
    """
    new: Any = value
    if isinstance(value, str):
        new = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    elif isinstance(value, list):
        new = [clean(item) for item in value]
    elif isinstance(value, dict):
        new = {clean(key): clean(item) for key, item in value.items()}
    return cast(T, new)


def unique_keys(pairs: list[tuple[str, Any]]) -> Json:
    """An object whose keys are all different; JSON itself would let the last one win."""
    row = dict(pairs)
    if len(row) < len(pairs):
        raise ValueError("a key stands twice")
    return row


def no_constant(name: str) -> Any:
    """NaN and Infinity are no JSON."""
    raise ValueError(f"{name} is not allowed")


def finite(text: str) -> float:
    """A number that JSON can hold; 1e999 is none."""
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is too large for a number")
    return number


def parse_object(text: str) -> Json:
    """A JSON object, or ValueError with what was wrong."""
    value = json.loads(text, object_pairs_hook=unique_keys, parse_constant=no_constant, parse_float=finite)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return clean(value)


def read_rows(path: Path, data: bytes) -> list[tuple[int, Json]]:
    """(line number, row) for each line; every malformed line is named before giving up."""
    rows, wrong = [], []
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if line := line.strip(b"\0 \t\r"):
            try:
                rows.append((number, parse_object(line.decode("utf-8"))))
            except (ValueError, RecursionError) as error:
                wrong.append(f"{path}:{number}: {error}; expected one JSON object")
    if wrong:
        raise UserError("\n".join(wrong))
    return rows


def digest(value: Any) -> str:
    """Sixteen hex digits that stand for a value."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def say(text: str, end: str = "\n") -> None:
    """A line for the person at the terminal; answers never go there."""
    text = re.sub(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]", " ", text)  # steers a terminal
    print(("\r\x1b[K" if sys.stderr.isatty() else "") + text, end=end, file=sys.stderr, flush=True)


# == Questions ================================================================================


class Question(NamedTuple):
    """One question; `id` as the data has it, compared as text."""

    id: int | str
    text: str
    suite: str | None


def read_questions(path: Path, only: Collection[str] = ()) -> list[Question]:
    """The questions of a file, or of those only the ones whose ids are given."""
    found: dict[str, Question] = {}
    lines: dict[str, int] = {}
    wrong = []
    for number, row in read_rows(path, path.read_bytes()):
        name = "soru" if "soru" in row else "question"
        identity, text = row.get("id"), row.get(name)
        if isinstance(identity, bool) or not isinstance(identity, (int, str)) or identity == "":
            wrong.append(f'{path}:{number}: "id" is {identity!r}; expected text or a whole number')
        elif str(identity) in found:
            wrong.append(f'{path}:{number}: "id" {identity} stands on line {lines[str(identity)]} too')
        elif not isinstance(text, str) or not text.strip():
            wrong.append(f'{path}:{number}: "{name}" is {text!r}; expected the text of the question')
        else:
            suite = next((suite for mark, suite in SUITES.items() if mark in row), None)
            found[str(identity)] = Question(identity, text, suite)
            lines[str(identity)] = number
    wrong += [f"{path}: no question has the id {name} (--only)" for name in only if name not in found]
    if wrong or not found:
        raise UserError("\n".join(wrong) or f"{path}: no questions; expected one JSON object a line")
    return [q for name, q in found.items() if not only or name in only]


# == Answers file =============================================================================


class Answers:
    """The output file, which is also the state of the run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = open(path, "a+b", buffering=0)  # noqa: SIM115 (open as long as the run)
        self.lock()
        self.file.seek(0)
        data = self.repair(self.file.read())
        self.rows = [row for _, row in read_rows(path, data)]

    def lock(self) -> None:
        """Two runs on one file would ask everything twice; the lock ends with its process."""
        with contextlib.suppress(ImportError):  # Windows has no fcntl, and so no lock
            import fcntl

            try:
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UserError(f"{self.path}: another run is writing to this file", 2) from None

    def repair(self, data: bytes) -> bytes:
        """Cuts off what a killed writer left at the end, and ends a whole last line."""
        whole = data.rstrip(b"\0")
        tail = whole.rpartition(b"\n")[2]
        try:
            if tail.strip():
                parse_object(tail.decode("utf-8-sig"))
        except ValueError:
            whole = whole.removesuffix(tail)
            line = whole.count(b"\n") + 1
            say(f"{self.path}:{line}: the last line is torn; it was removed and is asked again")
            tail = b""
        if whole != data:
            self.file.truncate(len(whole))
        if tail.strip():
            self.file.write(b"\n")
        return whole

    def done(self, model: str, setup: str, questions: Iterable[Question]) -> set[tuple[str, str]]:
        """The (question, attempt) pairs this model has answered in this setup."""
        shas = {str(q.id): digest(q.text) for q in questions}
        done: set[tuple[str, str]] = set()
        for row in self.rows:
            key = (str(row.get("question_id")), str(row.get("attempt", 1)))
            if row.get("model") != model or row.get("status", "ok") == "error":
                continue
            if row.get("setup", setup) != setup:
                raise UserError(
                    f"{self.path}: {model} has answers here with other settings (system prompt, tools,"
                    " limits or parameters); give another -o or --label",
                    2,
                )
            if row.get("question_sha") in (None, shas.get(key[0])):
                done.add(key)
        return done

    def append(self, row: Json) -> None:
        """One row, one write: a kill leaves it whole, or torn at the file's end."""
        line = json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        try:
            written = self.file.write(line)
            if written < len(line):  # the disk is full: no torn row for another to be appended to
                self.file.truncate(self.file.seek(0, os.SEEK_END) - written)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise UserError(f"{self.path}: cannot be written ({error.strerror}); make room and run the same command again") from None
        self.rows.append(row)


# == Tools ====================================================================================


class Tool(NamedTuple):
    """A function as the runner calls it and as the model sees it."""

    call: Callable[..., Any]
    is_async: bool
    schema: Json


def describe(function: Callable[..., Any]) -> tuple[str, Tool]:
    """A function's name and its tool: name, docstring and type hints (or `parameters`) are the schema."""
    from pydantic import TypeAdapter, validate_call  # comes with openai

    name, is_async = function.__name__, inspect.iscoroutinefunction(function)
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
        raise ValueError(f"the tool name {name!r} is not made of 1 to 64 letters a-z, digits, _ or -")
    parameters = getattr(function, "parameters", None)
    if parameters is None:
        adapter: Any = TypeAdapter
        parameters, function = adapter(function).json_schema(), validate_call(function)
    schema = {"name": name, "description": inspect.getdoc(function) or "", "parameters": parameters}
    return name, Tool(function, is_async, {"type": "function", "function": schema})


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
            sys.modules[module_spec.name] = module
            module_spec.loader.exec_module(module)
            described = [describe(function) for function in module.tools(match[2] or "")]
        except Exception as error:
            raise UserError(f"--tools {spec}: {type(error).__name__}: {error}", 2) from error
        for name, tool in described:
            if name in tools:
                raise UserError(f"--tools {spec}: the tool name {name} is taken already", 2)
            tools[name] = tool
    return tools


def in_thread(function: Callable[..., Any], arguments: Json) -> Awaitable[Any]:
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


async def use_tool(tools: dict[str, Tool], name: str, arguments: Json | str) -> str:
    """What the model is told after a call; a call that fails is told so, whatever failed."""
    if name not in tools:
        return f"error: there is no tool {name!r}; there are: {', '.join(tools) or 'none'}"
    if isinstance(arguments, str):
        return f"error: {arguments}"
    tool = tools[name]
    try:
        value = await (tool.call(**arguments) if tool.is_async else in_thread(tool.call, arguments))
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    except Exception as error:
        text = f"error: {error or type(error).__name__}"
    text = clean(text)
    if len(text) > TOOL_CHARS:
        text = text[:TOOL_CHARS] + f"\n[cut: {len(text)} characters, of which the first {TOOL_CHARS} are shown]"
    return text


def call_arguments(raw: Any) -> Json | str:
    """The arguments of a tool call, or the sentence that says what is wrong with them."""
    if isinstance(raw, dict):
        return raw
    try:
        return parse_object(raw or "{}")
    except (ValueError, TypeError, RecursionError) as error:
        if str(error) == "not an object":
            return f"the arguments are {raw}; a JSON object is needed"
        return f"the arguments are not valid JSON ({error}): {raw}"


# == Service ==================================================================================


def endpoint(base_url: str) -> str:
    """Where requests go, from the address in any of the forms people write it.

    >>> endpoint("https://api.ornek.invalid"), endpoint("https://api.ornek.invalid/api/v1/")
    ('https://api.ornek.invalid/v1/chat/completions', 'https://api.ornek.invalid/api/v1/chat/completions')
    """
    parts = urlsplit(base_url.strip("\ufeff \t\r\n"))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UserError(f"--base-url {base_url}: expected an address with http:// or https://", 2)
    path = parts.path.rstrip("/")
    if not path.endswith("/chat/completions"):
        path = (path or "/v1") + "/chat/completions"
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


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
    wait = math.nan
    try:
        wait = float(header or "")
    except ValueError:
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            wait = max(0.0, email.utils.parsedate_to_datetime(header or "").timestamp() - now)
    return min(wait if math.isfinite(wait) and wait >= 0 else backoff, MAX_WAIT)


def refused_parameter(error: Json, message: str, sent: Collection[str]) -> str:
    """The parameter of ours a 400 complains of: its `param`, else a word of its message."""
    if param := error.get("param"):
        return param if param in sent else ""
    return next((name for name in sent if re.search(rf"\b{re.escape(name)}\b", message)), "")


def read_reply(status: int, body: str, headers: Mapping[str, str], sent: Collection[str]) -> Json:
    """The reply in a response, or what its error stands for; an error in a 200 is an error."""
    try:
        data = clean(json.loads(body, parse_constant=no_constant, parse_float=finite))
    except (ValueError, RecursionError):
        data = None
    data = data if isinstance(data, dict) else {}
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    error = data.get("error") or choice.get("error") or {}
    if status == 200 and not error and isinstance(choice.get("message"), dict):
        return data
    error = error if isinstance(error, dict) else {"message": str(error)}
    message = str(error.get("message") or body.strip()[:500] or "no text")
    code = str(error.get("code") or error.get("type") or "")
    if status == 200:
        status = int(code) if re.fullmatch(r"[45]\d\d", code) else 502
    fail(status, code, message, headers, refused_parameter(error, message, sent))


def fail(status: int, code: str, message: str, headers: Mapping[str, str], parameter: str) -> NoReturn:
    """Raises what an error status stands for."""
    said = f"HTTP {status}: {message}"
    if 300 <= status < 400:
        raise UserError(f"HTTP {status}: the server points to {headers.get('location')}; set --base-url to it")
    if status == 401:  # what a server says here often repeats part of the key
        raise UserError(f"HTTP 401: {FATAL[401]}")
    if status in FATAL or QUOTA.search(f"{code} {message}"):
        raise UserError(f"{said} ({FATAL.get(status, FATAL[402])})")
    if status in TRANSIENT or status >= 500:
        raise Trouble("retry", said, headers.get("retry-after"))
    if code == "content_filter":
        raise Trouble("refusal", said)
    if parameter:
        raise Trouble("parameter", said, parameter=parameter)
    overlong = status == 413 or OVERLONG.search(f"{code} {message}")
    raise Trouble("overlong" if overlong else "rejected", said)


@dataclass
class Talk:
    """What an attempt has brought so far; a deadline may cut it off at any point."""

    messages: list[Json]
    text: str = ""
    reasoning: list[str] = field(default_factory=list)
    tool_calls: list[Json] = field(default_factory=list)
    usage: dict[str, int] = field(default_factory=dict)
    served: Json = field(default_factory=dict)
    cost: float | None = None
    requests: int = 0
    finish: str = ""
    fault: str = ""  # what the service failed with, while it has not answered since
    broken: str = ""  # "timeout" or "error"
    why: str | None = None


class Service:
    """The model behind its address: retries, pauses, and what its server would not take."""

    def __init__(self, client: Any, model: str, parameters: Json, key: str) -> None:
        self.client, self.model, self.key = client, model, key
        self.parameters = dict(parameters)
        self.refused: list[str] = []
        self.replied = False  # whether the server has ever answered, well or badly
        self.first = 0.0  # when the first request of the run went out
        self.proven = asyncio.Event()  # set by the first good reply
        self.pause_until = 0.0  # one pause for all workers

    async def ask(self, talk: Talk, tools: Json, deadline: float) -> Json:
        """One reply to a conversation, through all faults that time can mend."""
        await self.head_start()
        tries, give_up = 0, deadline
        while True:
            await asyncio.sleep(self.pause_until - time.monotonic())
            sent = dict(self.parameters)
            try:
                reply = await self.post(talk.messages, sent, tools, deadline)
                self.proven.set()
                talk.fault = ""
                return reply
            except Trouble as trouble:
                if trouble.kind == "retry":
                    give_up = min(give_up, time.monotonic() + RETRY_FOR) if tries == 0 else give_up
                    tries, talk.fault = tries + 1, trouble.message
                    await self.back_off(trouble, tries, give_up)
                elif self.proven.is_set():
                    raise
                elif trouble.kind == "parameter":
                    self.drop(trouble)
                elif trouble.kind != "refusal":  # refused before anything worked: a matter of the setup
                    raise UserError(str(trouble)) from None
                else:
                    raise

    async def head_start(self) -> None:
        """Lets the first request of a run go ahead, so that what it learns is learnt once."""
        if self.first and not self.proven.is_set():
            with contextlib.suppress(asyncio.TimeoutError):
                left = self.first + HEAD_START - time.monotonic()
                await asyncio.wait_for(self.proven.wait(), max(0.0, left))
        self.first = self.first or time.monotonic()

    async def post(self, messages: list[Json], sent: Json, tools: Json, deadline: float) -> Json:
        """One request. Whatever the client raises becomes Trouble."""
        import openai

        create = self.client.chat.completions.with_raw_response.create
        more: Json = {} if self.key else {"extra_headers": {"Authorization": openai.Omit()}}
        left = openai.Timeout(deadline - time.monotonic() + 5, connect=30)  # the attempt's own end comes first
        try:
            raw = await create(model=self.model, messages=messages, extra_body={**sent, **tools}, timeout=left, **more)
            status, content, headers = raw.status_code, raw.content, raw.headers
        except openai.APIStatusError as error:
            status, content, headers = error.status_code, error.response.content, error.response.headers
        except (openai.APIError, OSError) as error:
            cause = error.__cause__ or error
            if not self.replied and type(cause).__name__ == "ConnectError":  # refused, no such host, no certificate
                base = self.client.base_url
                address = f"{base.scheme}://{base.netloc.decode()}"
                raise UserError(self.hide(f"{address} cannot be reached ({cause}); check --base-url")) from None
            raise Trouble("retry", self.hide(f"{type(cause).__name__}: {cause}")) from None
        self.replied = True
        headers = {name.lower(): self.hide(value) for name, value in headers.items()}
        return read_reply(status, self.hide(content.decode("utf-8", "replace")), headers, sent)

    def hide(self, text: str) -> str:
        """No text from outside brings the key into a file or onto the screen."""
        if len(self.key) < 8:
            return text
        return text.replace(self.key, "[key]").replace(self.key.replace("/", "\\/"), "[key]")  # as JSON may write it

    def drop(self, trouble: Trouble) -> None:
        """Goes on without a refused parameter, for the whole run."""
        name = trouble.parameter
        if name in self.parameters:  # else another request has learnt it already
            value = self.parameters.pop(name)
            self.refused.append(name)
            if name == "max_tokens":
                self.parameters["max_completion_tokens"] = value
            say(f"not sent from here on: {name} ({trouble})")

    async def back_off(self, trouble: Trouble, tries: int, give_up: float) -> None:
        """Waits before the next try, all workers together if the server named the time."""
        backoff = BACKOFF * 2 ** min(tries - 1, 10) * (1 + random.random() / 4)
        wait = wait_seconds(trouble.retry_after, time.time(), backoff)
        if time.monotonic() + wait > give_up:
            raise trouble
        if trouble.retry_after:
            self.pause_until = max(self.pause_until, time.monotonic() + wait)
        if tries in (1, 4):
            say(f"trying again in {wait:.0f} s: {trouble}")
        await asyncio.sleep(wait)


# == Attempt ==================================================================================


def status_of(talk: Talk) -> str:
    """How an attempt ended: the first status that applies."""
    if talk.broken:
        return talk.broken
    if talk.finish == "content_filter":
        return "refusal"
    if not talk.text.strip():
        if talk.tool_calls:
            return "tools_only"
        if talk.reasoning or talk.usage.get("reasoning_tokens"):
            return "reasoning_only"
        return "length" if talk.finish == "length" else "empty"
    return "length" if talk.finish == "length" else "ok"


def split_message(message: Json) -> tuple[str, str]:
    """(answer text, reasoning) of a message, whichever way its server keeps them apart.

    >>> split_message({"content": "<think>Hangi süre?</think>Yedi gün."})
    ('Yedi gün.', 'Hangi süre?')
    """
    content = message.get("content") or ""
    thoughts = [t for t in (message.get("reasoning_content") or message.get("reasoning"),) if isinstance(t, str)]
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict)]
        thoughts += [json.dumps(p["thinking"], ensure_ascii=False) for p in parts if "thinking" in p]
        content = "".join(str(part.get("text") or "") for part in parts)
    if match := THINKING.match(str(content)):
        thoughts.append((match[1] or match[2] or "").strip())
        content = content[match.end() :].lstrip()
    return str(content), "\n\n".join(t for t in thoughts if t)


def count(talk: Talk, reply: Json) -> None:
    """Adds what a reply says of its tokens, its cost and who served it."""
    talk.requests += 1
    usage = reply.get("usage") or {}
    numbers = {**(usage.get("prompt_tokens_details") or {}), **(usage.get("completion_tokens_details") or {}), **usage}
    for name in ("prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens", "reasoning_tokens"):
        if isinstance(numbers.get(name), int):
            talk.usage[name] = talk.usage.get(name, 0) + numbers[name]
    if isinstance(usage.get("cost"), (int, float)):
        talk.cost = (talk.cost or 0) + usage["cost"]
    talk.served = {name: reply.get(name) for name in ("model", "provider", "system_fingerprint")}


async def answer_calls(talk: Talk, message: Json, tools: dict[str, Tool]) -> None:
    """Runs a turn's tool calls side by side and answers each, in order, under an id of its own."""
    echoed: list[Json] = []
    waiting = []
    for place, call in enumerate(message["tool_calls"]):
        asked, identity = call.get("function") or {}, call.get("id")
        if not identity or any(identity == other["id"] for other in echoed):
            identity = f"call_{talk.requests}_{place}"
        name, raw = str(asked.get("name") or ""), asked.get("arguments")
        arguments = call_arguments(raw)
        text = "{}" if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        function = {"name": name, "arguments": text}  # broken JSON sent back makes servers fail
        echoed.append({**call, "id": identity, "type": "function", "function": function})
        record = {"name": name, "arguments": raw if isinstance(arguments, str) else arguments, "output": ""}
        talk.tool_calls.append(record)
        waiting.append(use_tool(tools, name, arguments))
    said = {key: value for key, value in message.items() if value is not None}
    talk.messages.append({**said, "content": message.get("content") or "", "tool_calls": echoed})
    outputs = await asyncio.gather(*waiting)
    for call, record, output in zip(echoed, talk.tool_calls[-len(echoed) :], outputs, strict=True):
        record["output"] = output
        talk.messages.append({"role": "tool", "tool_call_id": call["id"], "content": output})


async def converse(service: Service, talk: Talk, tools: dict[str, Tool], max_requests: int, deadline: float) -> None:
    """Asks and runs tools until the model writes its answer, or the bound is reached."""
    offered = {"tools": [tool.schema for tool in tools.values()]} if tools else {}
    while talk.requests < max_requests:
        reply = await service.ask(talk, offered, deadline)
        count(talk, reply)
        choice = reply["choices"][0]
        message = choice["message"]
        text, thoughts = split_message(message)
        talk.reasoning += [thoughts] if thoughts else []
        if message.get("tool_calls"):
            await answer_calls(talk, message, tools)
            continue
        talk.text, talk.finish = text, choice.get("finish_reason") or ""
        if message.get("refusal"):
            talk.text, talk.finish = text or message["refusal"], "content_filter"
        return
    talk.why = f"{max_requests} requests made (--max-requests) and no answer"


async def attempt(
    service: Service, messages: list[Json], tools: dict[str, Tool], max_requests: int, seconds: float
) -> Talk:
    """One attempt at a question, with its end noted, whatever it is."""
    talk = Talk(list(messages))
    deadline = time.monotonic() + seconds
    try:
        await asyncio.wait_for(converse(service, talk, tools, max_requests, deadline), seconds)
    except asyncio.TimeoutError:
        late = f"no answer within {seconds:g} seconds"
        talk.broken, talk.why = ("error", f"{late}, after {talk.fault}") if talk.fault else ("timeout", late)
    except Trouble as trouble:
        ends = {"overlong": "length", "refusal": "content_filter"}
        talk.why, talk.finish = trouble.message, ends.get(trouble.kind, "")
        talk.broken = "" if talk.finish else "error"
    except (AttributeError, KeyError, TypeError) as error:
        talk.broken, talk.why = "error", f"a reply of unknown form: {error!r}"
    return talk


# == Run ======================================================================================


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


async def ask_question(service: Service, plan: Plan, question: Question, number: int) -> Json:
    """The row of one attempt; a fault of the service gets one more try."""
    messages = [{"role": "system", "content": plan.system}] if plan.system is not None else []
    messages.append({"role": "user", "content": question.text})
    rerun = None
    for last in (False, True):
        start = time.monotonic()
        talk = await attempt(service, messages, plan.tools, plan.max_requests, plan.seconds)
        if talk.broken != "error" or last:
            break
        rerun = talk.why
    row: Json = {"question_id": question.id, "suite": question.suite, "model": plan.label, "attempt": number}
    if question.suite is None:
        del row["suite"]
    return {
        **row, "answer": talk.text, "status": status_of(talk), "error": talk.why, "rerun": rerun,
        "reasoning": "\n\n".join(talk.reasoning), "tool_calls": talk.tool_calls, "requests": talk.requests,
        "seconds": round(time.monotonic() - start, 3), "usage": talk.usage, "cost": talk.cost,
        "served": talk.served, "sent": {"model": plan.model, **service.parameters, "tools": list(plan.tools)},
        "refused": list(service.refused),
        "question_sha": digest(question.text), "setup": plan.setup(),
    }


def progress(finished: int, total: int, start: float) -> None:
    """How many, how many more, how long: one line that a terminal overwrites."""
    left = (time.monotonic() - start) / finished * (total - finished) / 60
    end = "" if sys.stderr.isatty() and finished < total else "\n"
    say(f"{finished}/{total} attempts, about {left:.1f} min left", end)


async def ask_all(service: Service, plan: Plan, jobs: list[tuple[Question, int]], answers: Answers) -> int:
    """Works through the jobs, so many at once; how many ended in `error`."""
    start, queue, finished, errors, in_a_row = time.monotonic(), iter(jobs), 0, 0, 0

    async def worker() -> None:
        nonlocal finished, errors, in_a_row
        for question, number in queue:
            row = await ask_question(service, plan, question, number)
            answers.append(row)
            failed = row["status"] == "error"
            finished, errors, in_a_row = finished + 1, errors + failed, in_a_row + 1 if failed else 0
            progress(finished, len(jobs), start)
            if in_a_row >= ERRORS_IN_A_ROW:
                raise UserError(f"{in_a_row} attempts in a row failed, the last with {row['error']}")

    tasks = [asyncio.create_task(worker()) for _ in range(min(plan.concurrency, len(jobs)))]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return errors


async def connect_and_ask(plan: Plan, url: str, key: str, jobs: list[tuple[Question, int]], answers: Answers) -> int:
    """Opens the client: its own retries off, and no redirect followed (the key would go along)."""
    import openai

    base, _, query = url.rpartition("/chat/completions")
    client = openai.AsyncOpenAI(
        base_url=base, api_key=key or "none", max_retries=0, default_query=dict(parse_qsl(query[1:])),
        http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False),
    )
    async with client:
        return await ask_all(Service(client, plan.model, plan.parameters, key), plan, jobs, answers)


# == Command line =============================================================================


def plain_name(name: str) -> str:
    """A name from the command line as text, also under LC_ALL=C; bytes that are no UTF-8 become U+FFFD."""
    return os.fsencode(name).decode("utf-8", "replace")


def whole(text: str) -> int:
    """A whole number from 1."""
    value = int(text)
    if value < 1:
        raise ValueError
    return value


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
    add("--attempts", type=whole, default=ATTEMPTS, metavar="N", help="attempts a question (default: %(default)s)")
    add("--concurrency", type=whole, default=4, metavar="N", help="attempts at once (default: %(default)s)")
    add("--minutes", type=float, default=MINUTES, metavar="N", help="an attempt's time (default: %(default)g)")
    add("--max-tokens", type=whole, default=MAX_TOKENS, metavar="N", help="of a reply (default: %(default)s)")
    add("--max-requests", type=whole, default=MAX_REQUESTS, metavar="N", help="an attempt's (default: %(default)s)")
    add("--temperature", type=float, metavar="T", help="default: the server's own")
    add("--extra-body", default="{}", metavar="JSON", help="more fields for each request, such as router options")
    return p


def make_plan(args: argparse.Namespace) -> Plan:
    """The plan that the options describe."""
    try:
        extra = parse_object(args.extra_body)
    except ValueError as error:
        raise UserError(f"--extra-body {args.extra_body}: {error}; expected a JSON object", 2) from None
    if taken := {"model", "messages", "tools", "stream", "n"} & extra.keys():
        raise UserError(f'--extra-body: "{min(taken)}" is not yours to set', 2)
    parameters = {"max_tokens": args.max_tokens}
    if args.temperature is not None:
        parameters["temperature"] = args.temperature
    try:
        system = args.system.read_bytes().decode("utf-8-sig") if args.system else None
    except UnicodeDecodeError as error:
        raise UserError(f"--system {args.system}: {error}; expected UTF-8") from None
    return Plan(
        model=args.model, label=args.label or args.model, system=system, tools=load_tools(args.tools),
        parameters={**parameters, **extra}, max_requests=args.max_requests, seconds=args.minutes * 60,
        concurrency=args.concurrency,
    )


def cmd_run(args: argparse.Namespace) -> int:
    """Reads, asks what is missing, and says what came of it."""
    if importlib.util.find_spec("openai") is None:
        raise UserError('run.py needs the package openai; type: pip install "openai>=3,<4" (or: uv run run.py ...)', 2)
    url, key = endpoint(args.base_url), read_key(args.key_env)
    for path in (args.data, args.system):
        if path and not path.exists():
            raise UserError(f"{path}: there is no such file", 2)
    questions = read_questions(args.data, [name.strip() for name in args.only.split(",")] if args.only else [])
    plan = make_plan(args)
    if args.output.exists() and args.output.samefile(args.data):
        raise UserError(f"-o {args.output}: this is the question file; name another", 2)
    answers = Answers(args.output)
    done = answers.done(plan.label, plan.setup(), questions)
    jobs = [(q, n) for n in range(1, args.attempts + 1) for q in questions if (str(q.id), str(n)) not in done]
    say(f"{len(questions)} questions x {args.attempts} attempts; {len(jobs)} to ask")
    try:
        errors = asyncio.run(connect_and_ask(plan, url, key, jobs, answers)) if jobs else 0
    except UserError as error:
        raise UserError(f"stopped: {error}\n{args.output} has what is done; the same command goes on") from None
    except KeyboardInterrupt:
        say(f"interrupted; {args.output} has what is done, and the same command goes on")
        return 130
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
    except UserError as error:
        say(f"run.py: {error}")
        return error.code
    except OSError as error:
        say(f"run.py: {error}")
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
