"""mcp_tools.py: the tools of any MCP server for run.py.  pip install "mcp>=2,<3"

    python run.py ... --tools "data/examples/mcp_tools.py=COMMAND ARGUMENT ..."    a server started over stdio
    python run.py ... --tools "data/examples/mcp_tools.py=https://host/mcp"        a server that runs already

The model sees the server's own names, descriptions and schemas. A server sees only a few harmless variables of the
environment; more are given before the command, and $NAME takes one over: "TOKEN=$TOKEN uvx some-server". A server that
dies is started again at the next call. To see what a server offers: python mcp_tools.py COMMAND ARGUMENT ...
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import re
import shlex
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any

try:
    from mcp import Client, MCPError, StdioServerParameters
except ImportError as error:
    raise ImportError('mcp_tools.py needs the package mcp; type: pip install "mcp>=2,<3"') from error

START_SECONDS = 60.0  # for a server to start and to list its tools
CONNECTION_CLOSED = -32000  # the code of a call whose server has gone


def target(argument: str) -> str | StdioServerParameters:
    """The server an argument names: an address, or a command with variables before it."""
    if re.match(r"https?://", argument):
        return argument
    words = shlex.split(argument, posix=os.name != "nt")
    env: dict[str, str] = {}
    while words and re.match(r"[A-Za-z_]\w*=", words[0]):
        name, _, value = words.pop(0).partition("=")
        env[name] = os.path.expandvars(value)
    if not words:
        raise ValueError("no server named; expected mcp_tools.py=COMMAND or mcp_tools.py=https://host/mcp")
    return StdioServerParameters(command=words[0], args=words[1:], env=env)


class Connection:
    """A server and the thread in which it is spoken to: MCP wants one event loop from start to end."""

    def __init__(self, server: str | StdioServerParameters) -> None:
        self.server = server
        self.listed: Future[list[Any]] = Future()
        self.thread = threading.Thread(target=lambda: asyncio.run(self.live()), daemon=True)
        self.thread.start()
        self.tools = self.listed.result(START_SECONDS)
        atexit.register(self.close)

    async def live(self) -> None:
        """Holds the server until `close`."""
        self.loop, self.over = asyncio.get_running_loop(), asyncio.Event()
        try:
            async with Client(self.server) as self.client:
                self.listed.set_result(await self.list_tools())
                await self.over.wait()
        except BaseException as error:
            if not self.listed.done():
                self.listed.set_exception(ConnectionError(f"the MCP server did not start: {cause_of(error)}"))

    async def list_tools(self) -> list[Any]:
        """The server's tools, all pages."""
        page = await self.client.list_tools()
        tools = list(page.tools)
        while page.next_cursor:
            page = await self.client.list_tools(cursor=page.next_cursor)
            tools += page.tools
        return tools

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """A call from any other event loop; cancelling it cancels the call."""
        return await asyncio.wrap_future(
            asyncio.run_coroutine_threadsafe(self.client.call_tool(name, arguments), self.loop)
        )

    def close(self) -> None:
        """Lets the server end; it has a second."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.over.set)
        self.thread.join(1.0)


def cause_of(error: BaseException) -> str:
    """The first error inside an exception group."""
    while inner := getattr(error, "exceptions", None):
        error = inner[0]
    return f"{type(error).__name__}: {error}"


def text_of(result: Any) -> str:
    """What a result says, as text: its text parts, a word for parts of another kind, else its structure."""
    parts = []
    for part in result.content:
        resource = getattr(part, "resource", None)
        text = getattr(part, "text", None) or getattr(resource, "text", None)
        parts.append(text if text is not None else f"[{part.type}]")
    if not parts and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return "\n".join(parts)


def tools(argument: str) -> list[Callable[..., Awaitable[str]]]:
    """One async function for each tool of the server, with the server's schema as its `parameters`."""
    server = target(argument)
    connection = Connection(server)

    async def call(name: str, arguments: dict[str, Any]) -> str:
        nonlocal connection
        used = connection
        try:
            result = await used.call(name, arguments)
        except (MCPError, RuntimeError) as error:
            if getattr(error, "code", CONNECTION_CLOSED) != CONNECTION_CLOSED:
                raise
            if connection is used:  # no other call has started it again
                connection = Connection(server)
            result = await connection.call(name, arguments)
        if result.is_error:
            raise RuntimeError(text_of(result))
        return text_of(result)

    def function(tool: Any) -> Callable[..., Awaitable[str]]:
        async def run(**arguments: Any) -> str:
            return await call(tool.name, arguments)

        run.__name__ = re.sub(r"[^a-zA-Z0-9_-]", "_", tool.name)[:64]
        run.__doc__ = tool.description or tool.title or ""
        run.parameters = {"properties": {}, **tool.input_schema}  # type: ignore[attr-defined]
        return run

    return [function(tool) for tool in connection.tools]


if __name__ == "__main__":
    for offered in tools(shlex.join(sys.argv[1:])):
        print(offered.__name__, json.dumps(offered.parameters, ensure_ascii=False))  # type: ignore[attr-defined]
        print(f"    {offered.__doc__}")
