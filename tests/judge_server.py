"""The judging service of the tests: `MockServer` with TLS, replies that drip and a meter for what a prompt cache could serve;
small questions and answers to judge; and a fast server in a process of its own for the benchmark (`python judge_server.py`).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import re
import ssl
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from mock_server import MockServer, Reply, Request, Script, chat

Row = dict[str, Any]
DIMENSIONS = ("issue", "rule", "application", "conclusion", "hygiene")


class JudgeServer(MockServer):
    """A MockServer that can also speak TLS (`certificate`: a PEM file with key) and drip: `fault="drip"` sends a good reply's body a byte
    every 50 ms, `fault="drip-head"` the same with header lines that never end; `fault="flood"` sends a body without end, as fast as it is taken."""

    def __init__(self, script: Script, certificate: Path | None = None) -> None:
        super().__init__(script)
        self.connections = self.flooded = 0
        self._http.socket.listen(256)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
            self.root = self.root.replace("http:", "https:")
            self.url = self.root + "/v1"

    def _handler(self) -> Any:
        server = self
        plain: Any = super()._handler()

        class Handler(plain):  # type: ignore[misc]
            disable_nagle_algorithm = True

            def setup(self) -> None:
                server.connections += 1
                super().setup()

            def answer(self, reply: Reply) -> None:
                if reply.fault == "flood":
                    self.close_connection = True
                    self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
                    with contextlib.suppress(OSError):              # until the client has had enough
                        while not server._over.is_set():
                            server.flooded += self.wfile.write(b" " * 2**20)
                    return
                if not reply.fault.startswith("drip"):
                    super().answer(reply)
                    return
                self.close_connection = True
                head = b"HTTP/1.1 200 OK\r\n" + (b"Content-Length: 5000\r\n\r\n" if reply.fault == "drip" else b"")
                self.wfile.write(head)
                while not server._over.wait(0.05):
                    self.wfile.write(b" " if reply.fault == "drip" else b"X-Wait: 1\r\n")

        return Handler


class CacheMeter:
    """What a prompt cache could serve: for each request the characters that it has in common, from its beginning, with a request answered
    before it arrived (in steps of 64 characters)."""

    STEP = 64

    def __init__(self) -> None:
        self.known: set[bytes] = set()
        self.characters = self.cached = 0
        self.lock = threading.Lock()

    def arrive(self, text: str) -> list[bytes]:
        """Count a request; gives what to hand to `answered`."""
        chain, running = [], hashlib.blake2b(digest_size=12)
        for at in range(0, len(text) - self.STEP + 1, self.STEP):
            running.update(text[at:at + self.STEP].encode("utf-8", "surrogatepass"))
            chain.append(running.digest())
        with self.lock:
            self.characters += len(text)
            self.cached += self.STEP * next((n for n in range(len(chain), 0, -1) if chain[n - 1] in self.known), 0)
        return chain

    def answered(self, chain: Sequence[bytes]) -> None:
        with self.lock:
            self.known.update(chain)

    @property
    def share(self) -> float:
        return self.cached / self.characters if self.characters else 0.0


def prompt(request: Request | Row) -> str:
    """All that a request says to the judge."""
    body = request.json if isinstance(request, Request) else request
    return "\n".join(message["content"] for message in body["messages"])


def own_part(request: Request | Row) -> str:
    """The last part of a request to an irac judge: its criterion."""
    return prompt(request).rpartition("\nÖlçüt (")[2]


def elements_asked(request: Request | Row) -> int:
    """How many elements the judge must tick."""
    return len(re.findall(r"^\d+\. ", own_part(request).partition("Unsurlar:")[2].partition("Dayanak:")[0], re.MULTILINE))


def verdict(word: Any, elements: Any = None, quote: str = "", reason: str = "çünkü", **more: Any) -> Row:
    """A judge's reply in the form asked for."""
    reply = {"quote": quote, "reason": reason, "verdict": word} | ({"elements": elements} if elements is not None else {})
    return chat(json.dumps(reply, ensure_ascii=False), **more)


def grade(score: Any, hallucination: bool = False, evasion: bool = False) -> Row:
    """A grader's reply in the form asked for."""
    return chat(json.dumps({"score": score, "hallucination": hallucination, "evasion": evasion, "quote": "", "reason": "çünkü"}, ensure_ascii=False))


def steady(request: Request) -> Row:
    """A verdict that depends on the request alone, so that two runs can be compared."""
    passed = bool(hashlib.sha256(prompt(request).encode()).digest()[0] & 1)
    count = elements_asked(request)
    return verdict("PASS" if passed else "FAIL", [True] * (count - 1) + [passed])


def criterion(name: str, *elements: str | Row, dimension: str = "rule", reference: str = "") -> Row:
    """A criterion; an element is a text or an object with `check`."""
    return {"id": name, "dimension": dimension, "rule": f"Cevap {name} koşulunu sağlar.", "reference": reference or f"{name} için dayanak.",
            "elements": [{"text": e} if isinstance(e, str) else e for e in elements or (f"{name} söylenir.",)]}


def question(name: str, *criteria: Row, gold: Sequence[Row] = ()) -> Row:
    """A question of suite irac."""
    return {"id": name, "area": "borclar", "difficulty": "easy", "task": "analysis", "question": f"{name}: kiracı ne kadar depozito verir?",
            "service": "legislation", "as_of": "2026-08-22", "canary": "yok", "criteria": list(criteria), "gold": list(gold)}


def plain_questions(questions: int, criteria: int) -> list[Row]:
    """So many questions with so many criteria of one element each."""
    return [question(f"s{q}", *(criterion(f"s{q}k{c}", dimension=DIMENSIONS[c % 5]) for c in range(criteria))) for q in range(questions)]


def plain_answers(questions: Sequence[Row], models: Sequence[str] = ("model-a",), attempts: int = 1, length: int = 100) -> list[Row]:
    """An answer of about so many characters for each question, model and attempt."""
    return [{"question_id": q["id"], "model": model, "attempt": attempt,
             "answer": (f"{q['id']} sorusuna {model[-1]}{attempt} cevabı. " + "Kira bedelinin üç aylık tutarını aşamaz. " * (length // 40))[:length]}
            for q in questions for model in models for attempt in range(1, attempts + 1)]


class FastServer(asyncio.Protocol):
    """One connection of the benchmark's server: reads a request, answers it after the latency. Shares `state` with all others."""

    state: ClassVar[Row] = {}

    def connection_made(self, transport: Any) -> None:
        self.transport, self.waiting = transport, bytearray()

    def data_received(self, data: bytes) -> None:
        self.waiting += data
        end = self.waiting.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self.waiting[:end]).lower()
        length = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0] or 0)
        if len(self.waiting) < end + 4 + length:
            return
        body = bytes(self.waiting[end + 4:end + 4 + length])
        self.waiting.clear()
        if head.startswith(b"get"):
            meter = self.state["meter"]
            self.send(json.dumps({"calls": self.state["calls"], "share": meter.share}).encode())
            self.state |= {"calls": 0, "meter": CacheMeter()}
            return
        self.state["calls"] += 1
        chain = self.state["meter"].arrive(prompt(json.loads(body))) if self.state["metered"] else []
        latency = self.state["latency"]
        if latency:
            asyncio.get_running_loop().call_later(latency, self.reply, chain)
        else:
            self.reply(chain)

    def reply(self, chain: list[bytes]) -> None:
        self.state["meter"].answered(chain)
        self.send(REPLY)

    def send(self, body: bytes) -> None:
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


REPLY = json.dumps(verdict("PASS", [True, True], usage={"prompt_tokens": 2400, "completion_tokens": 40})).encode()


async def serve(latency: float, metered: bool, certificate: str | None) -> None:
    """Serve until the parent closes our standard input; prints the port."""
    FastServer.state = {"latency": latency, "metered": metered, "calls": 0, "meter": CacheMeter()}
    tls = None
    if certificate:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(FastServer, "127.0.0.1", 0, ssl=tls, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


def make_certificate(folder: Path) -> Path:
    """A certificate for 127.0.0.1 with its key in one PEM file, made by openssl. Raises OSError where there is none."""
    import subprocess
    key, certificate, both = folder / "key.pem", folder / "certificate.pem", folder / "both.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
                    "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    both.write_text(key.read_text() + certificate.read_text())
    return both


def until(condition: Any, seconds: float = 10) -> bool:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return bool(condition())


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--latency", type=float, default=0.0)
    options.add_argument("--metered", action="store_true")
    options.add_argument("--certificate")
    given = options.parse_args()
    asyncio.run(serve(given.latency, given.metered, given.certificate))
