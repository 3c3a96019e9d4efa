"""Small helpers that the tests share: run score.py as a person would, write and read JSON Lines, look up a case."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
DATA = ROOT / "data"
FIXTURES = ROOT / "tests" / "fixtures"
Row = dict[str, Any]
SHOTS = os.environ.get("SHOTS")              # a folder for a screenshot of each view of the pages
AXE = importlib.util.find_spec("axe_playwright_python")      # carries axe-core, which finds faults of accessibility
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

# Texts that end scripts, open comments, turn the writing round, stand for keys of every object, or are half a character.
NASTY = ["</script><script>alert(1)</script>", "</SCRIPT\t>", "<!--<script>", "--!>", "<![CDATA[", "]]>", "&lt;b&gt;&amp;amp;", "\u2028satır\u2029\u0085", "\x00NUL\x1f\x7f",
         "\u202eters\u202c\u2066x\u2069\u200f", "__proto__", "constructor", "toString", "yarım \ud83d", "\udc00 öbür yarım", "\ufeffbom\ufffe", "satır\r\nsonu\t", "\\u003cimg src=x onerror=alert(2)>",
         "${alert(3)}`", "$& $1 $` %3Cscript%3E%00", "a/b?c#d&e=f%", "\U0001f600" * 300, "u" * 5000, "<img src=x onerror=alert(4)>", "javascript:alert(5)//"]

sys.path[:0] = [path for path in (str(ROOT), str(ROOT / "tests")) if path not in sys.path]


class Ran(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


def run_score(*arguments: object, script: Path = ROOT / "score.py", flags: tuple[str, ...] = (), stdin: bytes = b"", **environment: str) -> Ran:
    """Run a command of score.py in a process of its own."""
    done = subprocess.run(
        [sys.executable, *flags, str(script), *map(str, arguments)],
        input=stdin,
        capture_output=True,
        timeout=120,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment},
    )
    return Ran(done.returncode, done.stdout.decode("utf-8", "backslashreplace"), done.stderr.decode("utf-8", "backslashreplace"))


def run_here(*arguments: object) -> Ran:
    """Run a command of score.py in this process: the same command line, without starting an interpreter each time."""
    import score

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = score.main([str(a) for a in arguments])
    return Ran(code, out.getvalue(), err.getvalue())


def write_jsonl(path: Path, rows: Iterable[Row]) -> Path:
    """Write rows as JSON Lines; gives the path back."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8", newline="\n")
    return path


def read_jsonl(path: Path) -> list[Row]:
    """Rows of a JSON Lines file; lines end at "\\n" only."""
    return [json.loads(line) for line in path.read_bytes().decode("utf-8").split("\n") if line.strip()]


def shared_case(case_id: str) -> Row:
    """A case of the shared log; skips the test where the log is not there."""
    path = SHARED / "cases" / "cases.jsonl"
    if not path.exists():
        pytest.skip("the shared case log is not there")
    return next(row for row in read_jsonl(path) if row["id"] == case_id)


def whole_text(text: str) -> str:
    """A text as every reader of rows gives it: half a character is replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# Timings of single examples say nothing on a shared machine. The examples are the same every time, so that a run can be repeated;
# `HYPOTHESIS_PROFILE=search` looks for new ones.
settings.register_profile("terazi", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "terazi"))


@pytest.fixture(scope="module")
def browser() -> Any:
    """The system's Chromium; who asks for it skips itself where playwright or Chromium is absent."""
    from playwright import sync_api
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


def look(page: Any, name: str, full_page: bool = False) -> None:
    """Keep a screenshot where SHOTS asks for it; nothing is wider than the window, and axe-core finds no fault."""
    if SHOTS:
        page.screenshot(path=f"{SHOTS}/{name}.png", full_page=full_page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
    if AXE and AXE.origin:
        page.evaluate(Path(AXE.origin).with_name("axe.min.js").read_text(encoding="utf-8"))      # by the driver, which the page's policy does not bind
        found = page.evaluate("""async () => (await axe.run()).violations.map(v =>
            [v.impact, v.id, v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + " " + (n.any[0]?.message ?? ""))])""")
        assert found == [], name


def skip_without_axe() -> None:
    """Say, at the end of a test that looks, that accessibility was left out."""
    if AXE is None:
        pytest.skip("the views fit; their accessibility was not checked (pip install axe-playwright-python)")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.name != "posix" or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True).returncode:
        pytest.skip("no small file system can be mounted here")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True, capture_output=True)
