"""A real HTTP server on the loopback that answers as it is told to, for tests of run.py and score.py.

    with MockServer([Reply(503), chat("Yedi gün.")]) as server:
        ...                             # the client talks to server.url (http://127.0.0.1:PORT/v1)
    server.requests[0].json["messages"] # everything that arrived, in order of arrival

The script is a list of replies, used in order of arrival with the last one repeated for ever, or a function
from a Request to a reply (called from several threads at once). A reply is a `Reply`, or a dict = its JSON body.

Faults (`Reply(fault=...)`): "close" = hang up without a byte, "reset" = the same with RST, "cut" = promise 500 bytes,
send 120 and hang up, "hang" = never answer while the server lives. `delay` waits before answering.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Request:
    """What arrived: `raw` is the body's bytes, `json` the same parsed (or None), `number` counts from 0."""

    number: int
    method: str
    path: str
    headers: dict[str, str]  # names in small letters
    raw: bytes
    time: float

    @property
    def json(self) -> Any:
        try:
            return json.loads(self.raw)
        except ValueError:
            return None


@dataclass
class Reply:
    """What goes back. `body`: bytes as they are, text as UTF-8, anything else as JSON."""

    status: int = 200
    body: Any = b""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    fault: str = ""


Script = Sequence[Reply | dict[str, Any]] | Callable[[Request], Reply | dict[str, Any]]


def chat(content: Any = "Yanıt.", finish: str = "stop", **more: Any) -> dict[str, Any]:
    """A chat completion: `tool_calls`, `reasoning`, `refusal` ... in the message; `usage`, `model` ... beside it."""
    outside = {"id", "model", "usage", "provider", "system_fingerprint", "error"}
    message = {"role": "assistant", "content": content, **{k: v for k, v in more.items() if k not in outside}}
    choice = {"index": 0, "finish_reason": finish, "message": message}
    return {"id": "r1", "object": "chat.completion", "model": "sahte-1", "choices": [choice],
            **{k: v for k, v in more.items() if k in outside}}


def call(name: str, arguments: Any, identity: str | None = "c1") -> dict[str, Any]:
    """A tool call as a model sends it; arguments that are no text are written as JSON."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": text}}


def error(status: int, message: str = "olmadı", headers: dict[str, str] | None = None, **fields: Any) -> Reply:
    """An error reply in the usual form; `code`, `param`, `type` go into the error object."""
    return Reply(status, {"error": {"message": message, **fields}}, headers or {})


class QuietServer(ThreadingHTTPServer):
    """A client that hangs up is no error to be printed."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class MockServer:
    """Starts on entering, stops on leaving. `url` has /v1 at its end, `root` has not."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[Request] = []
        self.peak = 0  # most requests at once
        self._now = 0
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._http = QuietServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self.root = f"http://127.0.0.1:{self._http.server_port}"
        self.url = self.root + "/v1"

    def __enter__(self) -> MockServer:
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._http.shutdown()
        self._http.server_close()

    def _reply(self, request: Request) -> Reply:
        script = self.script
        made = script(request) if callable(script) else script[min(request.number, len(script) - 1)]
        return made if isinstance(made, Reply) else Reply(body=made)

    def _record(self, handler: BaseHTTPRequestHandler) -> Request:
        raw = handler.rfile.read(int(handler.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        with self._lock:
            request = Request(
                len(self.requests), handler.command, handler.path, headers, raw, time.monotonic()
            )
            self.requests.append(request)
            self._now += 1
            self.peak = max(self.peak, self._now)
        return request

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                request = server._record(self)
                try:
                    self.answer(server._reply(request))
                except OSError:
                    self.close_connection = True  # the client has gone
                finally:
                    with server._lock:
                        server._now -= 1

            do_GET = do_POST

            def answer(self, reply: Reply) -> None:
                server._over.wait(1e6 if reply.fault == "hang" else reply.delay)
                if reply.fault in ("close", "reset", "hang"):
                    if reply.fault == "reset":
                        linger = struct.pack("ii", 1, 0)
                        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    self.close_connection = True
                    self.connection.close()
                    return
                body = reply.body
                if not isinstance(body, (bytes, str)):
                    body = json.dumps(body)
                data = body.encode() if isinstance(body, str) else body
                cut = reply.fault == "cut"
                self.send_response(reply.status)
                headers = {"Content-Type": "application/json", **reply.headers}
                headers["Content-Length"] = "500" if cut else str(len(data))
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data[:120].ljust(120) if cut else data)
                if cut:
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        return Handler
