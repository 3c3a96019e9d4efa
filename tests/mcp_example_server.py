"""A small MCP server over stdio, for the tests of mcp_tools.py."""

from __future__ import annotations

import os

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("ornek")


@server.tool(name="mevzuat.ara")
def ara(sorgu: str, adet: int = 3) -> str:
    """Mevzuatta arar."""
    return f"{adet} sonuç: {sorgu} → İİK m. 65"


@server.tool()
def bozuk() -> str:
    """Hep hata verir."""
    raise ToolError("kaynak yok")


@server.tool()
def ortam(ad: str) -> str:
    """Bir ortam değişkenini gösterir."""
    return os.environ.get(ad, "yok")


@server.tool()
def kapan() -> str:
    """Sunucuyu yarıda kapatır."""
    os._exit(1)


@server.tool()
def surec() -> str:
    """Sunucunun süreç numarası."""
    return str(os.getpid())


if __name__ == "__main__":
    server.run()
