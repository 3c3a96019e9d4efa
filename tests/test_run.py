"""run.py against a real HTTP server with the real openai client. Case ids (P07 ...) stand in the tests' names."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from mock_server import MockServer, Reply, call, chat, error  # noqa: E402

import run  # noqa: E402

pytest.importorskip("openai")
KEY = "sk-test-000-gizli"
QUESTION = "Ödeme emrine itiraz süresi nedir?\u2028  İkinci satır: “%20 faiz” \U0001f600 "


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits are short and no key of the machine is used."""
    monkeypatch.setattr(run, "BACKOFF", 0.01)
    monkeypatch.setattr(run, "RETRY_FOR", 0.5)
    monkeypatch.setattr(run, "HEAD_START", 0.3)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for name in ("OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two iik questions."""
    return write(tmp_path / "sorular.jsonl", [{"id": 1, "soru": QUESTION}, {"id": 2, "soru": "İkinci soru"}])


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows), encoding="utf-8")
    return path


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().decode().split("\n") if line]


def go(data: Path, server: MockServer, *more: str, out: str = "answers.jsonl") -> tuple[int, list[dict[str, Any]]]:
    """Runs run.py in this process: (exit code, rows written)."""
    path = data.parent / out
    code = run.main(["--data", str(data), "--model", "sahte", "--base-url", server.url, "-o", str(path), *more])
    return code, rows(path) if path.exists() else []


def one(data: Path, script: Any, *more: str) -> dict[str, Any]:
    """The single row of question 1, attempt 1."""
    with MockServer(script) as server:
        _, found = go(data, server, "--only", "1", "--attempts", "1", *more)
    assert len(found) == 1
    return found[0]


# -- the wire ---------------------------------------------------------------------------------


def test_question_reaches_the_wire_unchanged(data: Path, tmp_path: Path) -> None:
    system = tmp_path / "sistem.txt"
    system.write_text("Türk hukukuna göre yanıtla.\n", encoding="utf-8")
    with MockServer([chat()]) as server:
        go(data, server, "--only", "1", "--attempts", "1")
        go(data, server, "--only", "1", "--attempts", "1", "--system", str(system), out="b.jsonl")
    plain, framed = (request.json for request in server.requests)
    assert plain["messages"] == [{"role": "user", "content": QUESTION}]
    assert framed["messages"][0] == {"role": "system", "content": "Türk hukukuna göre yanıtla.\n"}
    assert framed["messages"][1] == {"role": "user", "content": QUESTION}
    assert plain["max_tokens"] == 16000 and "temperature" not in plain and "tools" not in plain
    assert server.requests[0].path == "/v1/chat/completions"
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_all_three_suites_three_attempts(tmp_path: Path) -> None:
    questions = [
        {"id": "i1", "question": "Bir", "criteria": []},
        {"id": "k1", "question": "İki", "category": "rule_recall"},
        {"id": 3, "soru": "Üç"},
        {"id": "own", "question": "Dört"},
    ]
    with MockServer([chat()]) as server:
        code, found = go(write(tmp_path / "q.jsonl", questions), server)
    assert code == 0 and len(found) == 12
    assert {(r["question_id"], r.get("suite")) for r in found} == {
        ("i1", "irac"), ("k1", "kategori"), (3, "iik"), ("own", None)}
    assert sorted(r["attempt"] for r in found if r["question_id"] == 3) == [1, 2, 3]


def test_row_records_usage_cost_served_and_sent(data: Path) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "cost": 0.25,
             "prompt_tokens_details": {"cached_tokens": 8}, "completion_tokens_details": {"reasoning_tokens": 2}}
    row = one(data, [chat("Yedi gün.", reasoning="Düşünce.", usage=usage, provider="P", system_fingerprint="fp")],
              "--extra-body", '{"temperature": 0, "provider": {"order": ["P"]}}', "--label", "sahte+araç")
    assert row["usage"] == {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15,
                            "cached_tokens": 8, "reasoning_tokens": 2}
    assert row["cost"] == 0.25 and row["requests"] == 1 and row["seconds"] >= 0
    assert row["served"] == {"model": "sahte-1", "provider": "P", "system_fingerprint": "fp"}
    assert row["sent"] == {"model": "sahte", "max_tokens": 16000, "temperature": 0, "provider": {"order": ["P"]},
                           "tools": []}
    assert (row["answer"], row["reasoning"], row["model"]) == ("Yedi gün.", "Düşünce.", "sahte+araç")


@pytest.mark.parametrize(("given", "want"), [
    ("https://api.ornek.invalid", "https://api.ornek.invalid/v1/chat/completions"),
    ("https://api.ornek.invalid/v1", "https://api.ornek.invalid/v1/chat/completions"),
    ("https://api.ornek.invalid/v1/", "https://api.ornek.invalid/v1/chat/completions"),
    ("https://api.ornek.invalid/api/v1", "https://api.ornek.invalid/api/v1/chat/completions"),
    ("https://api.ornek.invalid/v1beta/openai/", "https://api.ornek.invalid/v1beta/openai/chat/completions"),
    ("https://api.ornek.invalid/v1/chat/completions", "https://api.ornek.invalid/v1/chat/completions"),
    ("https://api.ornek.invalid/v1?api-version=1", "https://api.ornek.invalid/v1/chat/completions?api-version=1"),
])
def test_P22_endpoint(given: str, want: str) -> None:
    assert run.endpoint(given) == want


def test_P22_every_form_reaches_the_same_path_and_the_key_is_stripped(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f"\ufeff{KEY}\r\n")
    with MockServer([chat()]) as server:
        for number, base in enumerate(("", "/v1", "/v1/", "/v1/chat/completions", "/v1?api-version=1")):
            code = run.main(["--data", str(data), "--model", "m", "--base-url", server.root + base, "--only", "1",
                             "--attempts", "1", "-o", str(data.parent / f"{number}.jsonl")])
            assert code == 0
    assert [r.path for r in server.requests] == ["/v1/chat/completions"] * 4 + ["/v1/chat/completions?api-version=1"]
    assert {r.headers["authorization"] for r in server.requests} == {f"Bearer {KEY}"}


def test_no_key_sends_no_header(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with MockServer([chat()]) as server:
        assert go(data, server, "--only", "1", "--attempts", "1")[0] == 0
    assert "authorization" not in server.requests[0].headers


# -- how an attempt ends ----------------------------------------------------------------------

BUSY = chat(None, "tool_calls", tool_calls=[call("yok", {})])


@pytest.mark.parametrize(("script", "status", "answer"), [
    ([chat("Yedi gün.")], "ok", "Yedi gün."),
    ([chat("Yedi g", "length")], "length", "Yedi g"),
    ([chat("", "length")], "length", ""),
    ([chat("")], "empty", ""),
    ([chat(None)], "empty", ""),
    ([chat(" \n")], "empty", " \n"),
    ([chat("", reasoning_content="Uzun düşünce")], "reasoning_only", ""),
    ([chat("", "length", reasoning="Uzun düşünce")], "reasoning_only", ""),
    ([chat("<think>Uzun düşünce", "length")], "reasoning_only", ""),
    ([chat("", "length", usage={"completion_tokens_details": {"reasoning_tokens": 16000}})], "reasoning_only", ""),
    ([chat(None, refusal="Yardım edemem.")], "refusal", "Yardım edemem."),
    ([chat("Bir kıs", "content_filter")], "refusal", "Bir kıs"),
    ([BUSY, chat("")], "tools_only", ""),
    ([BUSY, chat("", reasoning="Düşünce")], "tools_only", ""),
    ([BUSY, chat("Yedi gün.")], "ok", "Yedi gün."),
    ([chat([{"type": "thinking", "thinking": "d"}, {"type": "text", "text": "Yedi gün."}])], "ok", "Yedi gün."),
])
def test_status(data: Path, script: Any, status: str, answer: str) -> None:
    row = one(data, script)
    assert (row["status"], row["answer"]) == (status, answer)


def test_status_timeout_keeps_what_was_done_and_is_not_asked_again(data: Path) -> None:
    with MockServer([BUSY, Reply(fault="hang")]) as server:
        start = time.monotonic()
        code, found = go(data, server, "--only", "1", "--attempts", "1", "--minutes", "0.01")
        assert time.monotonic() - start < 3
        assert code == 0 and [(r["status"], len(r["tool_calls"])) for r in found] == [("timeout", 1)]
        assert go(data, server, "--only", "1", "--attempts", "1", "--minutes", "0.01")[1] == found
    assert len(server.requests) == 2


def test_time_that_ran_out_over_a_fault_is_the_services_doing(data: Path) -> None:
    row = one(data, [BUSY, error(503, "yoğun"), Reply(fault="hang")], "--minutes", "0.01")
    assert row["status"] == "timeout" and row["rerun"].endswith("after HTTP 503: yoğun")


def test_status_error_after_one_rerun_is_asked_again_on_resume(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "RETRY_FOR", 0.02)
    bad = True
    with MockServer(lambda r: error(500, "bozuk") if bad else chat()) as server:
        code, found = go(data, server, "--only", "1", "--attempts", "1")
        assert code == 3
        assert [(r["status"], r["error"], r["rerun"]) for r in found] == [
            ("error", "HTTP 500: bozuk", "HTTP 500: bozuk")]
        bad = False
        code, found = go(data, server, "--only", "1", "--attempts", "1")
    assert code == 0 and [r["status"] for r in found] == ["error", "ok"]


def test_rerun_saves_an_attempt_and_says_why(data: Path) -> None:
    def script(request: Any) -> Any:  # accepted once, then a refusal that is no matter of the setup
        return (chat(None, tool_calls=[call("yok", {})]), error(400, "bir kerelik"), chat("Tamam."))[request.number]

    row = one(data, script)
    assert (row["status"], row["answer"], row["error"]) == ("ok", "Tamam.", None)
    assert row["rerun"] == "HTTP 400: bir kerelik" and row["tool_calls"] == []


def test_P25_tools_for_ever(data: Path) -> None:
    with MockServer([BUSY]) as server:
        code, found = go(data, server, "--only", "1", "--attempts", "1", "--max-requests", "3")
        assert code == 0 and len(server.requests) == 3
        assert (found[0]["answer"], found[0]["status"]) == ("", "tools_only")
        assert "3 requests" in found[0]["error"] and len(found[0]["tool_calls"]) == 3
        go(data, server, "--only", "1", "--attempts", "1", "--max-requests", "3")
    assert len(server.requests) == 3


def test_outgrown_context_is_the_models_own_end(data: Path) -> None:
    full = error(400, "This model's maximum context length is 8192 tokens", code="context_length_exceeded")
    row = one(data, [BUSY, full])
    assert row["status"] == "tools_only" and "8192" in row["error"] and row["rerun"] is None


@pytest.mark.parametrize(("content", "answer", "reasoning"), [
    ("<think>a\nb</think>\n\nYanıt", "Yanıt", "a\nb"),
    ("a\nb\n</think>\nYanıt", "Yanıt", "a\nb"),
    ("<thinking>a</thinking>Yanıt", "Yanıt", "a"),
    ("Yanıt <think> sözü", "Yanıt <think> sözü", ""),
])
def test_reasoning_is_kept_apart(content: str, answer: str, reasoning: str) -> None:
    assert run.split_message({"content": content}) == (answer, reasoning)


# -- faults -----------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [
    *(error(status) for status in (408, 409, 425, 429, 500, 502, 503, 529)),
    Reply(fault="close"), Reply(fault="reset"), Reply(fault="cut", body=json.dumps(chat())),
    Reply(200, "<html>Bakım</html>", {"Content-Type": "text/html"}), Reply(200, b""), Reply(200, b"\xff\xfe"),
    Reply(200, {"choices": None}), Reply(200, {"choices": []}), Reply(200, {"choices": [{"message": None}]}),
    Reply(200, [1]), Reply(200, {"choices": [{"error": {"code": 502, "message": "üst"}, "message": {"content": ""}}]}),
    Reply(500, "hata", {"Content-Type": "text/plain"}),
], ids=lambda r: f"{r.status}{r.fault}{str(r.body)[:12]}")
def test_P20_faults_are_retried(data: Path, fault: Reply) -> None:
    with MockServer([fault, fault, chat("Tamam.")]) as server:
        code, found = go(data, server, "--only", "1", "--attempts", "1")
    assert (code, len(server.requests), found[0]["answer"], found[0]["rerun"]) == (0, 3, "Tamam.", None)


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "terazi-yok.invalid"])
def test_a_server_that_cannot_be_reached_ends_the_run_at_once(data: Path, host: str, capsys: Any) -> None:
    with MockServer([chat()]) as server:  # a port that is free again afterwards
        port = server.url.split(":")[2].split("/")[0]
    address, out = "http://" + host.format(port=port), data.parent / "a.jsonl"
    assert run.main(["--data", str(data), "--model", "m", "--base-url", address + "/v1", "-o", str(out)]) == 1
    text = capsys.readouterr().err
    assert f"stopped: {address} cannot be reached (" in text and "; check --base-url" in text
    assert "trying again" not in text and "has what is done" not in text and not out.exists()


def service_at(url: str) -> Any:
    plan = run.Plan("m", "m", None, {}, {}, run.MAX_REQUESTS, 60.0, 1)
    return run.Service(plan, url + "/chat/completions", "")


def test_a_server_that_goes_away_after_a_reply_is_tried_again() -> None:
    with MockServer([error(503, "yoğun")]) as server:
        address = server.url

    async def ask() -> bool:
        service = service_at(address)
        service.replied = True
        async with service.client:
            with pytest.raises(run.Trouble) as trouble:
                await service.post([], {})
        return trouble.value.transient

    assert asyncio.run(ask())


def test_an_error_reply_is_a_reply() -> None:
    with MockServer([error(503, "yoğun")]) as server:
        async def ask() -> bool:
            service = service_at(server.url)
            async with service.client:
                with pytest.raises(run.Trouble):
                    await service.post([], {})
            return bool(service.replied)

        assert asyncio.run(ask())


def test_P21_error_in_a_200(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    busy = {"id": None, "choices": None, "error": {"code": 429, "message": "yoğunluk"}}
    with MockServer([busy, {"error": {"code": 502, "message": "üst sunucu"}}, chat()]) as server:
        assert go(data, server, "--only", "1", "--attempts", "1")[0] == 0
    assert len(server.requests) == 3
    with MockServer([{"error": {"code": 402, "message": "bakiye yok"}}]) as server:
        code, found = go(data, server)
    assert (code, len(server.requests), len(found)) == (1, 1, 1)
    assert "bakiye yok" in capsys.readouterr().err


@pytest.mark.parametrize("reply", [
    error(401), error(402), error(403), error(404),
    error(429, "You exceeded your current quota", code="insufficient_quota"),
    error(400, "böyle bir model yok", param="model", code="model_not_found"),
], ids=lambda r: str(r.status))
def test_fatal_stops_at_once_and_keeps_what_is_done(
    data: Path, reply: Reply, capsys: pytest.CaptureFixture[str]
) -> None:
    with MockServer([reply]) as server:
        code, found = go(data, server)
    assert (code, len(server.requests), found) == (1, 1, [])
    text = capsys.readouterr().err
    assert "stopped: HTTP" in text and "Traceback" not in text and KEY not in text


def test_fatal_in_the_middle_keeps_rows(data: Path) -> None:
    with MockServer([chat(), chat(), error(402)]) as server:
        code, found = go(data, server, "--concurrency", "1")
    assert (code, len(server.requests), len(found)) == (1, 3, 2)


@pytest.mark.parametrize("reply", [
    chat("", tool_calls={"a": 1}), chat("", tool_calls=["x"]), chat("x", usage=[1]), chat(5), chat("x", finish=[1]),
    chat("", tool_calls=[{"function": 3}]), chat("x", reasoning={"a": 1}), chat({"a": 1}),
    chat("x", usage={"cost": "1"}),
], ids=str)
def test_replies_of_any_form_leave_a_row(data: Path, reply: Any) -> None:
    assert one(data, [reply])["status"] in ("ok", "error", "empty", "tools_only")


def test_an_error_reply_that_is_cut_is_retried(data: Path) -> None:
    with MockServer([Reply(500, "x", fault="cut"), Reply(200, b'{"choices": NaN}'), chat("Tamam.")]) as server:
        code, found = go(data, server, "--only", "1", "--attempts", "1")
    assert (code, len(server.requests), found[0]["answer"]) == (0, 3, "Tamam.")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_P19_redirects_are_refused(data: Path, status: int, capsys: pytest.CaptureFixture[str]) -> None:
    with MockServer([chat()]) as other:
        there = other.url + "/chat/completions"
        with MockServer([Reply(status, b"", {"Location": there})]) as server:
            code, found = go(data, server)
    assert (code, found, len(server.requests), other.requests) == (1, [], 1, [])
    text = capsys.readouterr().err
    assert f"HTTP {status}" in text and there in text and "--base-url" in text


@pytest.mark.parametrize(("header", "wait"), [
    ("Wed, 21 Oct 2026 07:28:05 GMT", 5), ("5", 5), ("1.5", 1.5), ("Wed, 21 Oct 2026 07:00:00 GMT", 0), ("soon", 2),
    ("-3", 2), ("99999999999999", 60), (None, 2), ("nan", 2), ("inf", 2), ("Wed, 99 Oct 2026 07:00:00 GMT", 2),
])
def test_P18_retry_after(header: str | None, wait: float) -> None:
    clock = 1792567680.0  # 2026-10-21T07:28:00Z
    assert run.wait_seconds(header, clock, 2.0) == wait


def test_P18_retry_after_holds_all_workers(data: Path) -> None:
    times: list[float] = []

    def script(request: Any) -> Any:
        times.append(request.time)
        return error(429, headers={"Retry-After": "0.4"}) if request.number == 1 else chat()

    with MockServer(script) as server:
        go(data, server, "--attempts", "3", "--concurrency", "1")
    assert times[2] - times[1] >= 0.39


def test_P23_parameters_are_learnt_once(data: Path) -> None:
    def script(request: Any) -> Any:
        for name, code in (("max_tokens", "unsupported_parameter"), ("temperature", "unsupported_value")):
            if name in request.json:
                return error(400, "alan desteklenmiyor", param=name, code=code)
        return chat()

    with MockServer(script) as server:
        code, found = go(data, server, "--extra-body", '{"temperature": 0}')
    assert code == 0 and len(server.requests) == 6 + 2 and len(found) == 6
    assert server.requests[1].json["max_completion_tokens"] == 16000
    assert "temperature" not in server.requests[2].json
    assert all(r["refused"] == ["max_tokens", "temperature"] for r in found)
    assert all(r["sent"] == {"model": "sahte", "max_completion_tokens": 16000, "tools": []} for r in found)


def test_P23_parameter_named_only_in_the_message(data: Path) -> None:
    def script(request: Any) -> Any:
        bad = {"detail": [{"loc": ["body", "top_k"], "msg": "Extra inputs are not permitted"}]}
        return Reply(422, bad) if "top_k" in request.json else chat()

    row = one(data, script, "--extra-body", '{"top_k": 5}')
    assert row["refused"] == ["top_k"] and row["status"] == "ok"


def test_concurrency_and_its_bound(data: Path) -> None:
    with MockServer(lambda r: Reply(body=chat(), delay=0.1)) as server:
        go(data, server, "--concurrency", "3")
    assert server.peak == 3 and len(server.requests) == 6


def test_a_dead_service_ends_the_run(data: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(run, "RETRY_FOR", 0.0)
    with MockServer([error(500)]) as server:
        code, found = go(data, server, "--attempts", "50", "--concurrency", "1")
    assert code == 1 and len(found) == run.ERRORS_IN_A_ROW and "in a row" in capsys.readouterr().err


def test_key_is_in_no_output(data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "RETRY_FOR", 0.0)
    script = [chat(f"Anahtar {KEY}", reasoning=KEY), error(500, f"bad key {KEY}"), error(402, f"key {KEY}")]
    with MockServer(script) as server:
        go(data, server, "--concurrency", "1")
    with MockServer([error(401, f"Incorrect API key provided: {KEY[:7]}***")]) as server:
        go(data, server, out="b.jsonl")
    everything = "".join(capsys.readouterr()) + "".join(p.read_text(encoding="utf-8") for p in data.parent.iterdir())
    assert KEY not in everything and KEY[:7] not in everything


def test_key_with_odd_signs_is_not_shown(data: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-gizlı anahtar")
    with MockServer([chat()]) as server:
        assert go(data, server)[0] == 2
    text = capsys.readouterr().err
    assert "OPENAI_API_KEY" in text and "gizl" not in text and server.requests == []


# -- tools ------------------------------------------------------------------------------------

TOOLS = '''
import asyncio
from typing import Literal, Optional

def tools(argument):
    def ara(q: str, adet: int = 5, tur: Literal["kanun", "karar"] = "kanun", yil: Optional[int] = None,
            alanlar: list[str] = []) -> str:
        """Arar."""
        if q == "hata":
            raise ValueError("bağlantı yok")
        return argument + "İİK m. 65"
    async def bekle(saniye: float) -> dict:
        await asyncio.sleep(saniye)
        return {"süre": saniye}
    def uzun() -> str:
        return "x" * 50_000
    def yarim() -> str:
        return "a \\ud83d b"
    def cik() -> str:
        raise SystemExit
    ara.calls = []
    return [ara, bekle, uzun, yarim, cik]
'''


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    path = tmp_path / "araclar.py"
    path.write_text(TOOLS, encoding="utf-8")
    return path


def test_tools_schema_from_hints(tools: Path) -> None:
    schema = run.load_tools([f"{tools}=A"])["ara"].schema["function"]
    assert (schema["name"], schema["description"], schema["parameters"]["required"]) == ("ara", "Arar.", ["q"])
    fields = schema["parameters"]["properties"]
    assert fields["q"]["type"] == "string" and fields["adet"]["default"] == 5
    assert fields["tur"]["enum"] == ["kanun", "karar"] and fields["alanlar"]["items"] == {"type": "string"}
    assert {"type": "integer"} in fields["yil"]["anyOf"]


@pytest.mark.parametrize(("arguments", "said"), [
    ({"q": "a", "adet": "7"}, "İİK m. 65"), ({"q": "a", "adet": "çok"}, "error: "), ({}, "error: "),
    ({"q": "a", "tur": "fıkra"}, "error: "), ({"q": "a", "yil": None}, "İİK m. 65"), ({"q": "a", "z": 1}, "error: "),
])
def test_arguments_are_checked_against_the_hints(tools: Path, arguments: Any, said: str) -> None:
    assert asyncio.run(run.use_tool(run.load_tools([str(tools)]), "ara", arguments)).startswith(said)


def test_arguments_may_have_any_name(tmp_path: Path) -> None:
    names = ("function", "tools", "arguments", "self")
    path = tmp_path / "adlar.py"
    path.write_text(f"def tools(a):\n    def ara({', '.join(names)}):\n        return function + self\n    return [ara]\n")
    given = dict.fromkeys(names, "a")
    assert asyncio.run(run.use_tool(run.load_tools([str(path)]), "ara", given)) == "aa"


@pytest.mark.parametrize("usage", [[1], "çok", {"prompt_tokens_details": [1], "completion_tokens": 5}])
def test_an_answer_is_kept_whatever_its_usage_says(data: Path, usage: Any) -> None:
    row = one(data, [chat("Yedi gün.", usage=usage)])
    assert (row["status"], row["answer"], row["rerun"]) == ("ok", "Yedi gün.", None)


def test_P24_every_call_id_is_answered(data: Path, tools: Path) -> None:
    calls = [call("ara", '{"q": "m. 65', "c1"), call("ara", "null", "c2"), call("ara", {"q": "hata"}, "c3"),
             call("yok", {}, "c4"), call("ara", {"q": "gecikmiş itiraz"}, "c5"), call("ara", {"z": 1}, "c6")]
    with MockServer([chat(None, "tool_calls", tool_calls=calls), chat("Bitti.")]) as server:
        _, found = go(data, server, "--only", "1", "--attempts", "1", "--tools", str(tools))
    messages = server.requests[1].json["messages"]
    told = {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}
    assert list(told) == ["c1", "c2", "c3", "c4", "c5", "c6"]
    assert "not valid JSON" in told["c1"] and "object is needed" in told["c2"] and "bağlantı yok" in told["c3"]
    assert "no tool 'yok'" in told["c4"] and told["c5"] == "İİK m. 65" and "z" in told["c6"]
    assert [c["id"] for c in messages[1]["tool_calls"]] == list(told) and messages[1]["content"] == ""
    assert all(json.loads(c["function"]["arguments"]) is not None for c in messages[1]["tool_calls"])
    assert [c["output"] for c in found[0]["tool_calls"]] == list(told.values())
    assert found[0]["tool_calls"][0]["arguments"] == '{"q": "m. 65' and found[0]["status"] == "ok"


def test_tool_ids_missing_or_repeated(data: Path, tools: Path) -> None:
    calls = [call("ara", {"q": "a"}, None), call("ara", {"q": "b"}, "x"), call("ara", {"q": "c"}, "x")]
    with MockServer([chat("", tool_calls=calls), chat("Bitti.")]) as server:
        go(data, server, "--only", "1", "--attempts", "1", "--tools", str(tools))
    messages = server.requests[1].json["messages"]
    asked = [c["id"] for c in messages[1]["tool_calls"]]
    assert asked == [m["tool_call_id"] for m in messages[2:]] and len(set(asked)) == 3 and all(asked)


def test_tool_outputs_cut_async_surrogates_and_exit(data: Path, tools: Path) -> None:
    calls = [call(name, args, name) for name, args in
             (("uzun", {}), ("bekle", {"saniye": 0}), ("yarim", {}), ("cik", {}), ("uzun", "") )]
    with MockServer([chat("", tool_calls=calls), chat("Bitti.")]) as server:
        _, found = go(data, server, "--only", "1", "--attempts", "1", "--tools", f"{tools}=A")
    outputs = [c["output"] for c in found[0]["tool_calls"]]
    assert outputs == [m["content"] for m in server.requests[1].json["messages"] if m["role"] == "tool"]
    assert len(outputs[0]) < 40_200 and "50000 characters" in outputs[0]
    assert outputs[1] == '{"süre": 0.0}' and outputs[2] == "a \ufffd b" and outputs[3] == "error: SystemExit"


def test_slow_tools_run_side_by_side_and_under_the_deadline(data: Path, tools: Path) -> None:
    calls = [call("bekle", {"saniye": 0.3}, f"c{n}") for n in range(4)]
    start = time.monotonic()
    assert one(data, [chat("", tool_calls=calls), chat("Bitti.")], "--tools", str(tools))["status"] == "ok"
    assert time.monotonic() - start < 1.1
    (data.parent / "answers.jsonl").unlink()
    calls = [call("bekle", {"saniye": 60})]
    row = one(data, [chat("", tool_calls=calls)], "--tools", str(tools), "--minutes", "0.01")
    assert row["status"] == "timeout" and row["tool_calls"][0]["name"] == "bekle"


@pytest.mark.parametrize(("code", "words"), [
    ("def tools(a):\n    def f(x: Yok): ...\n    return [f]", "Yok"),
    ("def tools(a):\n    def özet(): ...\n    return [özet]", "özet"),
    ("import olmayan_paket", "olmayan_paket"),
    ("x = 1", "tools"),
])
def test_bad_tool_files_get_one_sentence(data: Path, code: str, words: str, capsys: Any) -> None:
    path = data.parent / "kotu.py"
    path.write_text(code, encoding="utf-8")
    with MockServer([chat()]) as server:
        assert go(data, server, "--tools", str(path))[0] == 2
    text = capsys.readouterr().err
    assert words in text and "kotu.py" in text and "Traceback" not in text and server.requests == []


# -- files ------------------------------------------------------------------------------------


def test_P07_P08_question_file_forms(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    text = '{"id": "a", "question": "Bir.\u2028İki.\u0085Üç."}\r\n\r\n{"id": "b", "question": "x"}'
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    found = run.read_questions(path)
    assert [(q.id, q.text) for q in found] == [("a", "Bir.\u2028İki.\u0085Üç."), ("b", "x")]


def test_P26_bad_question_files_name_every_line(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = '{"id": 1, "soru": "a"}\n{"id": "1", "soru": "b"}\n{"id": 2}\n{"id": true, "soru": "c"}\n'
    data.write_text(text + '{"id": 3, "soru": " "}\n', encoding="utf-8")
    with MockServer([chat()]) as server:
        assert go(data, server)[0] == 1
        message = capsys.readouterr().err
        assert all(f"sorular.jsonl:{n}:" in message for n in (2, 3, 4, 5)) and "stands on line 1 too" in message
        data.write_text('{"id": 1}{\n{"id": 2, "soru": NaN}\n{"id": 3, "id": 4}\n[]\n', encoding="utf-8")
        assert go(data, server)[0] == 1
    message = capsys.readouterr().err
    assert all(f"sorular.jsonl:{n}:" in message for n in (1, 2, 3, 4)) and server.requests == []


@pytest.mark.parametrize("tail", [
    b'{"question_id": 1, "answer": "S\xc3', b"\0" * 40, b'{"a": 1}\0\0', b'{"question_id"'])
def test_P09_torn_end_is_repaired(data: Path, tail: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    path = data.parent / "answers.jsonl"
    with MockServer([chat("yeni")]) as server:
        go(data, server, "--attempts", "1", "--only", "1")
        path.write_bytes(path.read_bytes() + tail)
        code, found = go(data, server, "--attempts", "1")
    assert code == 0 and len(server.requests) == 2
    assert [r["question_id"] for r in found if "question_id" in r] == [1, 2] and b"\0" not in path.read_bytes()
    assert (f"{path}:2" in capsys.readouterr().err) == (tail[:4] == b'{"qu')


@pytest.mark.parametrize("line", [b"{}", b'{"a": 1}', b"\xef\xbb\xbf{}"])
def test_a_whole_last_line_is_ended(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_bytes(line)
    with contextlib.closing(run.Answers(path)) as answers:
        answers.append({"b": 2})
    assert path.read_bytes() == line + b'\n{"b": 2}\n'


def test_P09_last_line_without_end_and_bad_middle(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = data.parent / "answers.jsonl"
    with MockServer([chat("yeni")]) as server:
        go(data, server, "--attempts", "1", "--only", "1")
        path.write_bytes(path.read_bytes().rstrip(b"\n"))
        assert len(go(data, server, "--attempts", "1")[1]) == 2
        path.write_bytes(b"{bozuk\n" + path.read_bytes())
        before = path.read_bytes()
        assert run.main(["--data", str(data), "--model", "sahte", "--base-url", server.url, "-o", str(path)]) == 1
    assert path.read_bytes() == before and f"{path}:1" in capsys.readouterr().err and len(server.requests) == 2


def test_P26_resume_counts_a_row_once(data: Path) -> None:
    def row(attempt: int, status: str, answer: str) -> dict[str, Any]:
        return {"question_id": "1", "model": "sahte", "attempt": attempt, "status": status, "answer": answer}

    write(data.parent / "answers.jsonl", [
        row(1, "ok", "a"), row(2, "error", ""), row(2, "ok", "b"), row(3, "ok", "c"), row(1, "ok", "a2")])
    with MockServer([chat()]) as server:
        assert go(data, server, "--only", "1")[0] == 0
        assert server.requests == []
        go(data, server)
    assert len(server.requests) == 3


def test_other_settings_are_not_mixed(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    warm = ("--extra-body", '{"temperature": 1}')
    with MockServer([chat()]) as server:
        go(data, server, "--attempts", "1")
        assert go(data, server, "--attempts", "1", *warm)[0] == 2
        assert "other settings" in capsys.readouterr().err
        code, found = go(data, server, "--attempts", "1", *warm, "--label", "sahte-t1")
        assert code == 0 and len(found) == 4
        write(data, [{"id": 1, "soru": "Değişen soru"}, {"id": 2, "soru": "İkinci soru"}])
        go(data, server, "--attempts", "1")
    assert len(server.requests) == 5 and server.requests[4].json["messages"][0]["content"] == "Değişen soru"


def test_P11_surrogates(data: Path) -> None:
    body = json.dumps(chat("Evet \ud83d devam \U0001f600", reasoning="\udc00")).encode("ascii")
    row = one(data, [Reply(200, body)])
    assert row["answer"] == "Evet \ufffd devam \U0001f600" and row["status"] == "ok" and row["rerun"] is None


def test_names_that_are_no_utf8_are_made_whole(data: Path) -> None:
    row = one(data, [chat()], "--label", "m\udcff")  # as Python reads such a byte of the command line
    assert row["model"] == "m\ufffd" and row["status"] == "ok"


def test_two_runs_on_one_file(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("fcntl")
    first = run.Answers(data.parent / "answers.jsonl")
    with MockServer([chat()]) as server:
        assert go(data, server)[0] == 2
    assert "another run" in capsys.readouterr().err and server.requests == []
    first.file.close()


# -- the process ------------------------------------------------------------------------------


def start(data: Path, server: MockServer, *more: str, **env: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(ROOT / "run.py"), "--data", str(data), "--model", "sahte", "--base-url", server.url,
               "-o", str(data.parent / "answers.jsonl"), *more]
    return subprocess.Popen(command, stderr=subprocess.PIPE, env={**os.environ, "OPENAI_API_KEY": KEY, **env})


def wait_for(ready: Any, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)


def test_kill_9_and_resume(tmp_path: Path) -> None:
    data = write(tmp_path / "q.jsonl", [{"id": n, "soru": f"Soru {n}"} for n in range(40)])
    path = tmp_path / "answers.jsonl"
    with MockServer(lambda r: Reply(body=chat("ğ" * 3000), delay=0.03)) as server:
        for seen in (10, 50):
            process = start(data, server)
            wait_for(lambda n=seen: path.exists() and path.read_bytes().count(b"\n") >= n)
            process.kill()
            process.communicate()
        process = start(data, server)
        process.communicate(timeout=30)
    keys = [(r["question_id"], r["attempt"]) for r in rows(path)]
    assert process.returncode == 0 and len(keys) == len(set(keys)) == 120
    assert len(server.requests) <= 120 + 2 * 4  # at most the replies in flight are asked twice


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_leaves_a_whole_file(tmp_path: Path, tools: Path) -> None:
    code = "import time\ndef tools(a):\n    def bekle() -> str:\n        time.sleep(60)\n    return [bekle]\n"
    tools.write_text(code, encoding="utf-8")
    data = write(tmp_path / "q.jsonl", [{"id": n, "soru": f"Soru {n}"} for n in range(10)])

    def script(request: Any) -> Any:
        stuck = {"Soru 7": Reply(fault="hang"), "Soru 8": Reply(body=chat("", tool_calls=[call("bekle", {})]))}
        return stuck.get(request.json["messages"][0]["content"], Reply(body=chat()))

    with MockServer(script) as server:
        process = start(data, server, "--tools", str(tools), "--attempts", "1")
        wait_for(lambda: len(server.requests) == 10)
        time.sleep(0.2)
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=10)
        took = time.monotonic() - begin
    assert process.returncode == 130 and took < 8 and b"Traceback" not in err  # a tool sleeps 60 s, a server for ever
    assert len(rows(tmp_path / "answers.jsonl")) == 8


def test_P10_any_code_page(data: Path) -> None:
    for number, env in enumerate(({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
                                  {"PYTHONIOENCODING": "cp1254"})):
        with MockServer([error(503, "→ ≥ yoğunluk"), chat("→ ≥ ş")]) as server:
            process = start(data, server, "--attempts", "1", "--only", str(number + 1), **env)
            _, err = process.communicate(timeout=30)
        assert process.returncode == 0 and b"Traceback" not in err
    assert {r["answer"] for r in rows(data.parent / "answers.jsonl")} == {"→ ≥ ş"}


def test_without_openai_it_says_what_to_type(data: Path) -> None:
    code = "import sys; sys.modules['openai'] = None; import run; sys.exit(run.main(sys.argv[1:]))"
    process = subprocess.run(
        [sys.executable, "-c", code, "--data", str(data), "--model", "m", "-o", str(data.parent / "a")],
        cwd=ROOT, capture_output=True, text=True, check=False)
    assert process.returncode == 2 and process.stderr.count("\n") == 1
    assert "pip install" in process.stderr and "uv run" in process.stderr


@pytest.mark.parametrize(("options", "code", "words"), [
    (["--base-url", "api.ornek.invalid"], 2, "https://"),
    (["--base-url", "http://[::1"], 2, "--base-url http://[::1: expected an address"),
    (["--base-url", "http://a:99999/v1"], 2, "expected an address"),
    (["--base-url", "http://a:b/v1"], 2, "expected an address"),
    (["--base-url", "http://a b/v1"], 2, "expected an address"),
    (["--base-url", "http://[1.2]/v1"], 1, "http://[1.2]/v1 cannot be reached ("),
    (["--extra-body", "{"], 2, "--extra-body"),
    (["--extra-body", '{"stream": true}'], 2, "stream"),
    (["--attempts", "0"], 2, "above 0"),
    (["--minutes", "nan"], 2, "above 0"),
    (["--only", "1,9"], 1, "id 9"),
    (["--tools", "yok.py"], 2, "yok.py"),
    (["--system", "yok.txt"], 2, "yok.txt: there is no such file"),
    (["-o", "{data}"], 2, "question file"),
    (["--data", "yok.jsonl"], 2, "run.py: yok.jsonl: there is no such file\n"),
])
def test_wrong_use_gets_a_sentence(data: Path, options: list[str], code: int, words: str, capsys: Any) -> None:
    with MockServer([chat()]) as server:
        assert go(data, server, *(o.format(data=data) if o == "{data}" else o for o in options))[0] == code
    text = capsys.readouterr().err
    assert words in text and "Traceback" not in text and server.requests == []


def test_progress_has_an_eta(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with MockServer([chat()]) as server:
        go(data, server)
    assert re.search(r"6/6 attempts, about 0\.0 min left", capsys.readouterr().err)


def test_the_end_says_how_attempts_ended_and_which_tools_were_never_called(
    data: Path, tools: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = [chat("", tool_calls=[call("ara", {"q": "a"}), call("yok", {})]), chat("Bitti."), chat("Yarım", "length")]
    with MockServer(script) as server:
        go(data, server, "--only", "1", "--attempts", "2", "--concurrency", "1", "--tools", str(tools))
        assert "\n1 ok, 1 length; tools never called: bekle, uzun, yarim, cik\n" in capsys.readouterr().err
        server.script = [error(402)]
        go(data, server, "--only", "1", "--attempts", "2", "--concurrency", "1", "--tools", str(tools))
        assert "never called" not in capsys.readouterr().err  # nothing was asked
        server.script = [chat()]
        go(data, server, "--attempts", "1", "--only", "2", "--tools", str(tools))
    assert "\n1 ok; tools never called: ara, " in capsys.readouterr().err


def test_the_summary_is_there_when_the_run_is_stopped(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with MockServer([chat(), error(402)]) as server:
        assert go(data, server, "--concurrency", "1")[0] == 1
    text = capsys.readouterr().err
    assert "\n1 ok\n" in text and text.index("1 ok") < text.index("stopped: HTTP 402") and "goes on" in text


def test_only_an_empty_file_of_its_own_is_removed(data: Path) -> None:
    path = data.parent / "answers.jsonl"
    with MockServer([error(401)]) as server:
        assert go(data, server)[0] == 1 and not path.exists()
        write(path, [{"question_id": 9, "model": "sahte", "answer": "x"}])
        before = path.read_bytes()
        assert go(data, server)[0] == 1 and path.read_bytes() == before
    if os.name != "nt":
        answers = run.Answers(Path(os.devnull))
        answers.close()
        assert Path(os.devnull).exists()


def test_header_lists_the_sections_and_names_the_statuses() -> None:
    source = (ROOT / "run.py").read_text(encoding="utf-8")
    sections = re.findall(r"^# == (.+?) =+$", source, re.M)
    listed = re.search(r"Sections: (.+?)\.\n", run.__doc__ or "", re.S)
    assert listed and sections == re.split(r",\s+", listed[1])
    assert "import score" not in source and source.startswith("#!/usr/bin/env python3\n# /// script\n")


def test_threads_do_not_outlive_a_run(data: Path, tools: Path) -> None:
    before = threading.active_count()
    one(data, [chat("", tool_calls=[call("ara", {"q": "a"})]), chat("Bitti.")], "--tools", str(tools))
    assert threading.active_count() <= before + 1
