"""corpus_tools.py: a folder of legal texts as search tools for run.py; nothing to install.

    python run.py ... --tools data/examples/corpus_tools.py=FOLDER

The folder, with its subfolders, holds what the model may look up:

    .jsonl      one object a line: "text" and, where there are any, "short" or "source" (TBK), "law" (Türk
                Borçlar Kanunu), "article" (344) or "locator", "heading"
    .txt, .md   plain text; a line that begins "Madde 12 -" (also Ek, Geçici, Mükerrer) begins a new place, and
                so does a Markdown heading; other text is cut into pieces of about 1,500 signs

The model gets two tools: `ara` finds passages by words and shows where each stands ("İİK m. 65"), `oku` gives
the whole text of one place. Words match whatever their Turkish suffixes and whichever i they are written with.

The index (SQLite, FTS5) is built at the first use, kept in the user's cache folder, and built anew when a file's
name, size or time of change does. To try it by hand: python corpus_tools.py FOLDER "gecikmiş itiraz"
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import sqlite3
import sys
import tempfile
import threading
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

PIECE = 1500  # signs of a passage, as `ara` shows it and as text without articles is cut

# Roots that lose a vowel before a suffix (haciz, haczi), each with its short form.
SHORTENED = {
    "haciz": "hacz", "akit": "akd", "akid": "akd", "nakit": "nakd", "nakid": "nakd", "fesih": "fesh", "hukum": "hukm",
    "vakit": "vakt", "sahis": "sahs", "kayit": "kayd", "kayid": "kayd", "emir": "emr", "isim": "ism", "kasit": "kast",
    "zabit": "zapt", "sekil": "sekl", "vakif": "vakf", "cebir": "cebr", "kisim": "kism",
    "nesil": "nesl", "azil": "azl", "nakil": "nakl", "akil": "akl", "vasif": "vasf", "kabir": "kabr", "hapis": "haps",
    "rehin": "rehn",
}

# Words of asking, which say nothing about where an answer stands.
ASKING = frozenset(re.findall(r"\w+", """
    acaba ama ancak bana ben benim bile biz bizim bu bunu bunun buna da daha de defa degil diye gore hangi hangisi
    hem her herhangi icin ile ise iste kac kadar kez ki kim kimin kime mi midir mu mudur muvekkil muvekkilim
    muvekkilimin muvekkilime ne neden nedir nelerdir nerede nereye niye nasil o olan olarak oldu oldugu olur olabilir
    onu onun onlar oysa peki sadece siz sizin sonra su ve veya ya yani yine yoksa var varsa yok bir yapabilir
    yapmali yapmaliyim yapilir eder edebilir gerekir gerekiyor istiyor istiyorum lazim mumkun soyledi diyor
"""))


class Place(NamedTuple):
    """A citable place: whose text, where in it, under which heading."""

    source: str
    locator: str
    heading: str
    text: str


# == Turkish words ==


def fold(text: str) -> str:
    """Small ASCII letters with one i and no apostrophe suffix, so that İCRA, icra and Icra'nın are one word.

    >>> fold("İİK'nın ŞARTI")
    'iik sarti'
    """
    text = re.sub(r"['’‘`´][a-zçğıöşüâîûA-ZÇĞİÖŞÜ]*", " ", unicodedata.normalize("NFKC", text))
    plain = unicodedata.normalize("NFKD", text.replace("ı", "i").lower())
    return " ".join("".join(sign for sign in plain if not unicodedata.combining(sign)).split())


@functools.cache
def stems(word: str) -> tuple[str, str]:
    """What a folded word is found by: its first four and its first six letters (roots in front, suffixes behind).

    >>> [stems(word) for word in ("itirazin", "haczi", "haciz", "65")]
    [('itir', '_itiraz'), ('hacz', '_hacz'), ('hacz', '_hacz'), ('65', '_65')]
    """
    for root, short in SHORTENED.items():
        if word.startswith(root) or (word.startswith(short) and len(word) > len(short)):
            word = short
            break
    return word[:4], "_" + word[:6]


def words(text: str) -> list[str]:
    """The folded words of a text."""
    return re.findall(r"[a-z0-9]+", fold(text))


def indexed(text: str) -> str:
    """A text as the index holds it."""
    return " ".join(part for word in words(text) for part in stems(word))


# == Reading the folder ==

HEADS = re.compile(
    r"^(?:#{1,6}\s+(?P<title>.+)|\W*(?P<kind>ek|geçici|mükerrer)?\s*madde\s+(?P<number>\d+(?:\s*/\s*[a-zçğıöşü])?)\b.*)$",
    re.I | re.M,
)


def places(path: Path, name: str) -> Iterator[Place]:
    """The places of one file."""
    text = path.read_bytes().decode("utf-8-sig", "replace")
    return law_rows(text, name) if path.suffix.lower() == ".jsonl" else plain_places(text, name)


def law_rows(text: str, name: str) -> Iterator[Place]:
    """One place a line of JSON; a line that is none is left out."""
    for number, line in enumerate(text.split("\n"), 1):
        try:
            row: dict[str, Any] = json.loads(line)
            body = str(row["text"])
        except (ValueError, KeyError, TypeError):
            continue
        article = str(row.get("article") or "")
        locator = str(row.get("locator") or article_name(article) or row.get("id") or f"satır {number}")
        heading = " ".join(str(row.get(key) or "") for key in ("law", "heading")).strip()
        yield Place(str(row.get("short") or row.get("source") or name), locator, heading, body)


def article_name(article: str) -> str:
    """How an article is cited.

    >>> [article_name(a) for a in ("65", "geçici 1", "mükerrer 20/B", "(1) sayılı tablo")]
    ['m. 65', 'geçici m. 1', 'mükerrer m. 20/B', '(1) sayılı tablo']
    """
    match = re.fullmatch(r"(\D*?)\s*(\d+(?:/\w+)?(?:-\d+)?)", article)
    return " ".join(part for part in (match[1], "m.", match[2]) if part) if match else article


def plain_places(text: str, name: str) -> Iterator[Place]:
    """The places of a plain text: its articles or headings, else pieces of it."""
    heads = list(HEADS.finditer(text))
    before = text[: heads[0].start()] if heads else text
    for count, piece in enumerate(pieces(before), 1):
        yield Place(name, f"parça {count}", "", piece)
    ends = [*(head.start() for head in heads), len(text)][1:]
    for head, end in zip(heads, ends, strict=True):
        body = text[head.start() : end].strip()
        if head["number"]:
            kind = (head["kind"] or "").replace("I", "ı").replace("İ", "i").lower()
            number = re.sub(r"\s", "", head["number"])
            yield Place(name, article_name(f"{kind} {number}".strip()), "", body)
        else:
            yield Place(name, head["title"].strip(), head["title"].strip(), body)


def pieces(text: str) -> list[str]:
    """A text in pieces of about PIECE signs, cut at line ends."""
    found = [""]
    for line in text.split("\n"):
        if found[-1] and len(found[-1]) + len(line) > PIECE:
            found.append("")
        found[-1] += line + "\n"
    return [piece.strip() for piece in found if piece.strip()]


# == The index ==


def files_of(folder: Path) -> list[Path]:
    """The files that count, in a fixed order; a README is about the folder, not part of it."""
    kinds = (".txt", ".md", ".jsonl")
    found = (p for p in folder.rglob("*") if p.suffix.lower() in kinds and p.is_file())
    return sorted(p for p in found if p.stem.lower() != "readme")


def fingerprint(folder: Path, files: list[Path]) -> str:
    """Changes with any file's name, size or time, and with this program."""
    facts = [(str(p.relative_to(folder)), p.stat().st_size, p.stat().st_mtime_ns) for p in files]
    return hashlib.sha256(repr(facts).encode() + Path(__file__).read_bytes()).hexdigest()[:24]


def cache_folder() -> Path:
    """The user's cache folder, or the one for temporary files where that can't be written."""
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / ".cache"
    for folder in (Path(base) / "terazi", Path(tempfile.gettempdir()) / "terazi"):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    raise OSError("no folder to keep the index in")


def index(folder: Path) -> Path:
    """The index of a folder, built if there is none for its present state.

    It is written under another name and moved into place whole, so any number of runs may build at once.
    """
    files = files_of(folder)
    if not files:
        raise FileNotFoundError(f"{folder}: no .txt, .md or .jsonl file here")
    group = hashlib.sha256(str(folder).encode()).hexdigest()[:12]
    path = cache_folder() / f"{group}-{fingerprint(folder, files)}.sqlite"
    if not path.exists():
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".building")
        os.close(handle)
        try:
            build(Path(name), folder, files)
            os.replace(name, path)
        finally:
            Path(name).unlink(missing_ok=True)
        for old in path.parent.glob(f"{group}-*.sqlite"):
            if old != path:
                with suppress(OSError):  # Windows keeps a file that another run has open
                    old.unlink()
    return path


PLACE = "CREATE TABLE place (id INTEGER PRIMARY KEY, source, locator, heading, text, source_key, locator_key)"
WORD = """CREATE VIRTUAL TABLE word USING fts5(head, body, content='', tokenize="unicode61 tokenchars '_'")"""


def build(path: Path, folder: Path, files: list[Path]) -> None:
    """Writes the index: `place` holds the texts, `word` what they are found by, under the same row ids."""
    with closing(sqlite3.connect(path)) as db:
        db.execute(PLACE)
        db.execute(WORD)
        for file in files:
            for place in places(file, str(file.relative_to(folder))):
                keys = (key_of(place.source), key_of(place.locator))
                row = db.execute("INSERT INTO place VALUES (NULL, ?, ?, ?, ?, ?, ?)", (*place, *keys)).lastrowid
                entry = (row, indexed(place.heading), indexed(place.text))
                db.execute("INSERT INTO word (rowid, head, body) VALUES (?, ?, ?)", entry)
        db.commit()


def key_of(name: str) -> str:
    """A source or locator without the ways of writing it: "Geçici Madde 1" and "geçici m. 1" are one.

    >>> key_of("Geçici Madde 1"), key_of("m. 65"), key_of("65")
    ('gecici 1', '65', '65')
    """
    return " ".join(re.sub(r"\b(m|md|madde|maddesi)\b\.?", " ", fold(name)).replace(".", " ").split())


# == Searching ==


def search(db: sqlite3.Connection, query: str, count: int) -> list[Place]:
    """The best places for a query: any of its words may match, rare ones weigh more (BM25), headings double."""
    asked = dict.fromkeys(part for word in words(query) if word not in ASKING and len(word) > 1 for part in stems(word))
    sql = (
        "SELECT source, locator, heading, text FROM word JOIN place ON place.id = word.rowid"
        " WHERE word MATCH ? ORDER BY bm25(word, 2.0, 1.0) LIMIT ?"
    )
    match = " OR ".join(f'"{part}"' for part in asked)
    return [Place(*row) for row in db.execute(sql, (match, count))] if match else []


def passage(text: str, query: str) -> str:
    """The piece of a text that has most of the query's words, with marks where something was left out."""
    asked = {part for word in words(query) if word not in ASKING for part in stems(word)}
    parts = pieces(text) or [""]
    best = max(range(len(parts)), key=lambda n: len(asked & set(indexed(parts[n]).split())))
    return ("[...] " if best else "") + parts[best] + (" [...]" if best + 1 < len(parts) else "")


def read(db: sqlite3.Connection, source: str, locator: str) -> list[Place]:
    """The places of that name; a source may be given by a part of its name."""
    sql = (
        "SELECT source, locator, heading, text FROM place WHERE locator_key = ? AND"
        " (source_key = ? OR ' ' || source_key || ' ' LIKE '% ' || ? || ' %' OR heading LIKE ? || '%')"
    )
    return [Place(*row) for row in db.execute(sql, (key_of(locator), key_of(source), key_of(source), source))]


def tools(argument: str) -> list[Callable[..., str]]:
    """The tools over the folder that the argument names."""
    folder = Path(argument or ".").expanduser().resolve()
    db = sqlite3.connect(f"{index(folder).as_uri()}?mode=ro", uri=True, check_same_thread=False)
    one_at_a_time = threading.Lock()

    def ara(sorgu: str, adet: int = 5) -> str:
        """Hukuk metinlerinde arar; en uygun yerleri kaynağı ve maddesiyle birlikte, bir parçasıyla verir.

        sorgu: aranan kavramlar, ör. "ödeme emrine gecikmiş itiraz süresi"; adet: kaç sonuç, en çok 20.
        """
        with one_at_a_time:
            found = search(db, sorgu, max(1, min(int(adet), 20)))
        shown = [f"[{p.source} {p.locator}] {p.heading}\n{passage(p.text, sorgu)}" for p in found]
        return "\n\n".join(shown) or "Sonuç yok; başka sözcüklerle arayın."

    def oku(kaynak: str, madde: str) -> str:
        """Bir maddenin veya yerin tam metnini verir.

        kaynak: kısa adı, ör. "İİK"; madde: madde veya yer, ör. "65", "68/b", "geçici 1".
        """
        with one_at_a_time:
            found = read(db, kaynak, madde)
        shown = [f"[{p.source} {p.locator}] {p.heading}\n{p.text}" for p in found]
        return "\n\n".join(shown) or f"{kaynak} {madde} bulunamadı; ara ile arayın."

    return [ara, oku]


if __name__ == "__main__":
    print(tools(sys.argv[1])[0](" ".join(sys.argv[2:])))
