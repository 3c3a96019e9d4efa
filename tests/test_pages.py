"""What the two pages have in common. Each file must work alone, so both carry the same block of style and of script."""
from __future__ import annotations

import re

import pytest
from conftest import DATA

PAGES = {name: (DATA / "pages" / f"{name}.html").read_text(encoding="utf-8") for name in ("grading", "leaderboard")}
OWN = {"WORDS", "PREFIX", "state", "drawAll", "wire", "start"}      # every page has one of its own under this name


def style(page: str) -> str:
    return re.search(r"<style>\n(.*?)</style>", PAGES[page], re.S)[1]


def script(page: str) -> str:
    return re.search(r"<script>\n(.*?)</script>", PAGES[page], re.S)[1]


def common_script(page: str) -> str:
    return re.search(r"^// == Common =+\n(.*?)^// == ", script(page), re.S | re.M)[1]


def names(source: str) -> set[str]:
    """What a script defines at its top level."""
    return set(re.findall(r"^(?:async )?(?:function|const|let) ([\w$]+)", source, re.M))


def test_the_common_blocks_are_the_same_letter_for_letter():
    first, second = PAGES
    assert common_script(first) == common_script(second)
    assert len(names(common_script(first))) > 8
    styles = [style(page).partition("\n/* == This page == */\n") for page in PAGES]
    assert styles[0][0] == styles[1][0] and all(own for _, _, own in styles)


def test_nothing_else_is_written_twice():
    defined = [names(script(page)) - names(common_script(page)) for page in PAGES]
    assert defined[0] & defined[1] == OWN
    rules = [set(re.findall(r"^[^@\n]*\{.*\}", style(page).partition("/* == This page == */")[2], re.M)) for page in PAGES]
    assert {rule for rule in rules[0] & rules[1] if not rule.startswith(" ")} == set()


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_defined_in_vain(page):
    source = script(page)
    for name in names(source):
        uses = len(re.findall(rf"(?:(?<![\w$.])|(?<=\.\.\.)){re.escape(name)}(?![\w$])", source))
        assert uses > 1, name
    own = style(page).partition("/* == This page == */")[2]
    markup = PAGES[page].replace(style(page), "")
    for name in set(re.findall(r"[.#]([a-zA-Z][\w-]*)(?=[^{}]*\{)", own)):
        assert re.search(rf"(?<![\w-]){re.escape(name.removeprefix('is-'))}(?![\w-])", markup), name
    for name in re.findall(r"^  (--[\w-]+):", style(page), re.M):
        assert f"var({name})" in PAGES[page], name


@pytest.mark.parametrize("page", PAGES)
def test_the_header_lists_the_sections_of_the_script(page):
    listed = re.search(r"\(grep '\^// =='\): (.+?)\.\n[A-Z]", PAGES[page], re.S)[1]
    assert re.split(r",\s+", listed) == re.findall(r"^// == (.+?) =+$", script(page), re.M)
