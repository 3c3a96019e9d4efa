"""The two tool files: the corpus over small folders, MCP through a real server over stdio."""

from __future__ import annotations

import asyncio
import doctest
import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "data" / "examples")]

import corpus_tools  # noqa: E402
from mock_server import MockServer, call, chat  # noqa: E402

import run  # noqa: E402

CORPUS = ROOT / "data" / "examples" / "corpus_tools.py"
MCP = ROOT / "data" / "examples" / "mcp_tools.py"
SERVER = ROOT / "tests" / "mcp_example_server.py"
ROWS = [
    {"law": "İcra ve İflas Kanunu", "short": "İİK", "article": "65", "heading": "Gecikmiş itiraz:",
     "text": "Borçlu kusuru olmaksızın bir mâni sebebiyle müddeti içinde itiraz edememiş ise."},
    {"law": "İcra ve İflas Kanunu", "short": "İİK", "article": "82", "heading": "Haczi caiz olmıyan mallar",
     "text": "Aşağıdaki şeyler haczolunamaz."},
    {"law": "İcra ve İflas Kanunu", "short": "İİK", "article": "68/b", "text": "Kredi sözleşmeleri."},
    {"law": "Türk Borçlar Kanunu", "short": "TBK", "article": "geçici 1", "text": "Kira bedeli artışı yüzde kırk."},
    {"law": "Türk Borçlar Kanunu", "short": "TBK", "article": "65", "text": "Hakkaniyet sorumluluğu ve ısınma gideri."},
]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "terazi"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "mevzuat"
    (path / "alt").mkdir(parents=True)
    (path / "a.jsonl").write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in ROWS), encoding="utf-8")
    (path / "alt" / "tebligat.txt").write_text(
        "Başlangıç sözü.\n\nMadde 21 – Muhatap adreste bulunmazsa kapıya yapıştırılır.\nİkinci satır.\n"
        "Geçici Madde 2- Eski tebligatlar geçerlidir.\n", encoding="utf-8")
    (path / "notlar.md").write_text("\ufeff# Nafaka\nİştirak nafakası.\n## Velayet\nOrtak velayet.\n", encoding="utf-8")
    (path / "README.md").write_text("gecikmiş itiraz gecikmiş itiraz", encoding="utf-8")
    return path


def first(ara: Any, query: str) -> str:
    return str(ara(query, 1)).split("]")[0] + "]"


# -- corpus_tools -----------------------------------------------------------------------------


@pytest.mark.parametrize(("query", "place"), [
    ("gecikmiş itiraz", "[İİK m. 65]"),
    ("GECİKMİŞ İTİRAZIN süresi", "[İİK m. 65]"),
    ("gecikmis itirazi", "[İİK m. 65]"),
    ("hangi malların haczi mümkün değil", "[İİK m. 82]"),
    ("haciz", "[İİK m. 82]"),
    ("ISINMA", "[TBK m. 65]"),
    ("kiranın artışı", "[TBK geçici m. 1]"),
    ("kapıya yapıştırma", f"[{os.path.join('alt', 'tebligat.txt')} m. 21]"),
    ("eski tebligat", f"[{os.path.join('alt', 'tebligat.txt')} geçici m. 2]"),
    ("başlangıç sözü", f"[{os.path.join('alt', 'tebligat.txt')} parça 1]"),
    ("velayetin ortak kullanılması", "[notlar.md Velayet]"),
])
def test_search_finds_the_place(folder: Path, query: str, place: str) -> None:
    ara, _ = corpus_tools.tools(str(folder))
    assert first(ara, query) == place


def test_read_by_any_way_of_writing(folder: Path) -> None:
    _, oku = corpus_tools.tools(str(folder))
    for source, locator in (("İİK", "65"), ("iik", "m. 65"), ("İcra ve İflas Kanunu", "Madde 65"), ("İİK", "md. 65")):
        assert oku(source, locator).startswith("[İİK m. 65] İcra ve İflas Kanunu Gecikmiş itiraz:\nBorçlu kusuru")
    assert "Kredi" in oku("İİK", "68/b") and "Kira" in oku("TBK", "Geçici Madde 1")
    assert "bulunamadı" in oku("İİK", "999")


def test_text_without_headings_or_articles_is_found(tmp_path: Path) -> None:
    (tmp_path / "kararlar").mkdir()
    (tmp_path / "kararlar" / "karar.txt").write_text("Karar metni.\nYargıtay bozdu.\n", encoding="utf-8")
    (tmp_path / "kararlar" / "bos.txt").write_text("", encoding="utf-8")
    ara, oku = corpus_tools.tools(str(tmp_path / "kararlar"))
    assert ara("bozdu") == "[karar.txt parça 1] \nKarar metni.\nYargıtay bozdu."
    assert oku("karar.txt", "parça 1").endswith("Yargıtay bozdu.")


@pytest.mark.parametrize("query", [
    "", "?", "ne", '"', "AND OR NOT", "a* NEAR(b", "m. 65'in", "head:x", "\ud83d", "x" * 10_000,
    " ".join(f"söz{n}" for n in range(3000))])
def test_any_query_is_answered(folder: Path, query: str) -> None:
    ara, _ = corpus_tools.tools(str(folder))
    assert isinstance(ara(query), str) and isinstance(ara(query, -3), str)


@given(st.text())
def test_folding_is_stable_and_plain(text: str) -> None:
    once = corpus_tools.fold(text)
    assert corpus_tools.fold(once) == once or "'" in text or "’" in text
    assert all(word.isascii() for word in corpus_tools.words(text))


@pytest.mark.parametrize(("one", "other"), [
    ("İcra", "ICRA"), ("ısı", "ISI"), ("şirket", "SIRKET"), ("hâkim", "hakim"), ("İ", "i\u0307"), ("çağrı", "CAGRI")])
def test_fold_writings_of_one_word(one: str, other: str) -> None:
    assert corpus_tools.fold(one) == corpus_tools.fold(other)


def test_index_is_built_once_and_again_after_a_change(folder: Path, own_cache: Path) -> None:
    ara, _ = corpus_tools.tools(str(folder))
    built = list(own_cache.iterdir())
    stamp = built[0].stat().st_mtime_ns
    corpus_tools.tools(str(folder))
    assert [p.stat().st_mtime_ns for p in own_cache.iterdir()] == [stamp]
    (folder / "yeni.txt").write_text("Madde 1 - Balıkçılık ruhsatı.", encoding="utf-8")
    ara, _ = corpus_tools.tools(str(folder))
    assert first(ara, "balıkçılık") == "[yeni.txt m. 1]" and len(list(own_cache.iterdir())) == 1
    (folder / "yeni.txt").unlink()
    older = ara
    ara, _ = corpus_tools.tools(str(folder))
    assert "Balık" not in ara("balıkçılık") and first(older, "balıkçılık") == "[yeni.txt m. 1]"


def test_many_builders_and_readers_at_once(folder: Path, own_cache: Path) -> None:
    found: list[str] = []

    def work() -> None:
        ara, _ = corpus_tools.tools(str(folder))
        found.extend(first(ara, "gecikmiş itiraz") for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["[İİK m. 65]"] * 160 and len(list(own_cache.iterdir())) == 1


def test_long_article_shows_the_fitting_passage(folder: Path) -> None:
    filler = "\n".join(f"({n}) Olağan hüküm sözleri burada sürüp gider. " * 5 for n in range(40))
    text = filler + "\nZeytinlik sahalar korunur.\n" + filler
    (folder / "uzun.jsonl").write_text(json.dumps({"short": "ZK", "article": "3", "text": text}), encoding="utf-8")
    ara, oku = corpus_tools.tools(str(folder))
    shown = ara("zeytinlik", 1)
    assert "Zeytinlik" in shown and "[...]" in shown and len(shown) < 2200 and len(oku("ZK", "3")) > len(text)


def test_empty_folder_says_so(tmp_path: Path) -> None:
    (tmp_path / "bos").mkdir()
    with pytest.raises(run.UserError, match=r"no \.txt, \.md or \.jsonl"):
        run.load_tools([f"{CORPUS}={tmp_path / 'bos'}"])


def test_corpus_through_the_runner(folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "q.jsonl"
    data.write_text('{"id": 1, "soru": "Soru"}\n', encoding="utf-8")
    script = [chat("", tool_calls=[call("ara", {"sorgu": "gecikmiş itiraz", "adet": 1}, "a"),
                                   call("oku", {"kaynak": "İİK", "madde": "65"}, "b")]), chat("İİK m. 65.")]
    with MockServer(script) as server:
        code = run.main(["--data", str(data), "--model", "m", "--base-url", server.url, "--attempts", "1",
                         "-o", str(tmp_path / "a.jsonl"), "--tools", f"{CORPUS}={folder}"])
    row = json.loads((tmp_path / "a.jsonl").read_text(encoding="utf-8"))
    assert code == 0 and all("[İİK m. 65]" in c["output"] for c in row["tool_calls"])
    ara = server.requests[0].json["tools"][0]["function"]
    assert ara["name"] == "ara" and ara["parameters"]["required"] == ["sorgu"]
    assert "kavram" in ara["description"] and ara["parameters"]["properties"]["adet"]["default"] == 5


def test_corpus_needs_nothing_but_python(folder: Path) -> None:
    command = [sys.executable, "-I", "-S", str(CORPUS), str(folder), "gecikmiş itiraz"]
    done = subprocess.run(command, capture_output=True, check=True, env={**os.environ, "PYTHONIOENCODING": "utf-8"})
    assert done.stdout.decode().startswith("[İİK m. 65]")


def test_fts5_is_there() -> None:
    sqlite3.connect(":memory:").execute("CREATE VIRTUAL TABLE t USING fts5(x)")


def test_doctests() -> None:
    assert doctest.testmod(corpus_tools).failed == 0


# -- mcp_tools --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mcp() -> Any:
    pytest.importorskip("mcp")
    return run.load_tools([f"{MCP}=ORNEK_DEGER=deger {sys.executable} {SERVER}"])


def ask(mcp: Any, name: str, **arguments: Any) -> str:
    return asyncio.run(run.use_tool(mcp, name, arguments))


def test_mcp_schema_is_the_servers_own(mcp: Any) -> None:
    schema = mcp["mevzuat_ara"].schema["function"]
    assert schema["description"] == "Mevzuatta arar."
    assert schema["parameters"]["required"] == ["sorgu"]
    assert schema["parameters"]["properties"]["adet"]["default"] == 3


def test_mcp_calls_errors_and_environment(mcp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask(mcp, "mevzuat_ara", sorgu="gecikmiş itiraz") == "3 sonuç: gecikmiş itiraz → İİK m. 65"
    assert "kaynak yok" in ask(mcp, "bozuk") and ask(mcp, "bozuk").startswith("error: ")
    assert ask(mcp, "mevzuat_ara", adet="çok").startswith("error: ")
    assert ask(mcp, "ortam", ad="ORNEK_DEGER") == "deger"
    assert ask(mcp, "ortam", ad="OPENAI_API_KEY") == "yok"


def test_mcp_calls_side_by_side(mcp: Any) -> None:
    async def many() -> list[str]:
        return list(await asyncio.gather(*(run.use_tool(mcp, "mevzuat_ara", {"sorgu": str(n)}) for n in range(30))))

    assert asyncio.run(many()) == [f"3 sonuç: {n} → İİK m. 65" for n in range(30)]


def test_mcp_server_that_dies_is_started_again(mcp: Any) -> None:
    before = ask(mcp, "surec")
    assert ask(mcp, "kapan").startswith("error: ")
    after = ask(mcp, "surec")
    assert after.isdigit() and after != before


def test_mcp_command_that_does_not_start() -> None:
    pytest.importorskip("mcp")
    for command in ("olmayan-komut-xyz", f"{sys.executable} -c 1", ""):
        with pytest.raises(run.UserError, match=r"did not start|no server named"):
            run.load_tools([f"{MCP}={command}"])


def test_mcp_through_the_runner_as_a_process(tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    data = tmp_path / "q.jsonl"
    data.write_text('{"id": 1, "soru": "Soru"}\n', encoding="utf-8")
    script = [chat("", tool_calls=[call("mevzuat_ara", {"sorgu": "itiraz"})]), chat("Bitti.")]
    with MockServer(script) as server:
        start = time.monotonic()
        done = subprocess.run(
            [sys.executable, str(ROOT / "run.py"), "--data", str(data), "--model", "m", "--base-url", server.url,
             "--attempts", "1", "-o", str(tmp_path / "a.jsonl"), "--tools", f"{MCP}={sys.executable} {SERVER}"],
            capture_output=True, text=True, check=False, timeout=60)
        assert time.monotonic() - start < 20
    row = json.loads((tmp_path / "a.jsonl").read_text(encoding="utf-8"))
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert row["tool_calls"][0]["output"] == "3 sonuç: itiraz → İİK m. 65"


def test_without_mcp_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(run.UserError, match="pip install"):
        run.load_tools([f"{MCP}=x"])
