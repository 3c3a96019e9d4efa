"""The client of the judging service against a server that misbehaves: the shared cases P18 to P23 and their kind, keys, TLS, deadlines."""

from __future__ import annotations

import base64
import contextlib
import datetime
import json
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran, Row, read_jsonl, run_score, shared_case, write_jsonl
from judge_server import JudgeServer, make_certificate, plain_answers, plain_questions, verdict
from mock_server import Reply, Request, chat, error

import score

KEY = "sk-test-gizli-000"
PASS = verdict("PASS", [True])
FAIL = verdict("FAIL", [False])


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run `judge` on so many criteria of one answer, one call at a time."""

    def run(url: str, criteria: int = 1, key: str = KEY) -> Ran:
        questions = plain_questions(1, criteria)
        data, answers = write_jsonl(tmp_path / "s.jsonl", questions), write_jsonl(tmp_path / "c.jsonl", plain_answers(questions))
        monkeypatch.setenv("OPENAI_API_KEY", key)
        code = score.main(["judge", str(answers), "--data", str(data), "-o", str(tmp_path / "k.jsonl"), "--base-url", url,
                           "--concurrency", "1"])
        printed = capsys.readouterr()
        return Ran(code, printed.out, printed.err)

    run.rows = lambda: [r for r in read_jsonl(tmp_path / "k.jsonl") if r.get("row") != "attempt"]  # type: ignore[attr-defined]
    return run


@pytest.fixture(autouse=True)
def short_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new try after a tenth of the usual time."""
    monkeypatch.setattr(score, "BACKOFF", 0.1)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy but one that a test sets up itself."""
    for name in ("https_proxy", "http_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def call(name: str = "k") -> score.Call:
    """A call to a judge, with as little as can be."""
    row = {"suite": "irac", "model": "m", "question_id": "s", "attempt": 1, "criterion_id": name, "judge": "yargı", "verdict": None}
    return score.Call(row, "Kurallar.", "Cevap.", name, lambda content: json.loads(content)).hashed()


def judge_calls(url: str, calls: int, concurrency: int, deadline: float = 300.0) -> list[Row]:
    """Judge calls in this process, with a deadline of our own."""
    service = score.Service(url, KEY, "OPENAI_API_KEY")
    service.deadline = deadline
    rows: list[Row] = []
    score.run_calls(service, [call(f"k{n}") for n in range(calls)], concurrency, rows.append)
    return rows


# -- Retry-After --


def test_case_p18_every_form_of_retry_after() -> None:
    case = shared_case("P18")["input"]
    clock = datetime.datetime.fromisoformat(case["clock"].replace("Z", "+00:00"))
    waits = [score.retry_after(header, clock) for header in case["retry_after"]]
    # None = the ordinary backoff, which the case allows where it has 0 and asks for where it has 2
    assert waits == [5, 5, 1.5, None, None, None, 60, None]


@pytest.mark.parametrize("header", ["nan", "inf", "-inf", "1e999", "", "0", "Wed, 99 Oct 2026 07:28:05 GMT", "5, 5",
                                    "Wed, 21 Oct 2026 07:28:05 -0000"])
def test_odd_waits_are_never_negative_endless_or_an_error(header: str) -> None:
    wait = score.retry_after(header, datetime.datetime(2026, 10, 21, 7, 28, tzinfo=datetime.timezone.utc))
    assert wait is None or 0 < wait <= 60


def test_one_retry_after_pauses_all_workers() -> None:
    replies = lambda request: error(429, "yavaş", {"Retry-After": "1"}) if request.number == 5 else Reply(body=PASS, delay=0.02)  # noqa: E731
    with JudgeServer(replies) as server:
        rows = judge_calls(server.url, 60, 4)
    told = server.requests[5].time
    times = [request.time - told for request in server.requests]
    assert len(rows) == 60 and all(r["verdict"] == "PASS" for r in rows)
    assert not [t for t in times if 0.5 < t < 0.99]             # who had asked already is served, then nobody asks
    assert sum(t >= 0.99 for t in times) >= 50


def test_a_wait_of_nothing_is_no_licence_to_hammer() -> None:
    with JudgeServer([error(503, headers={"Retry-After": "0"}), error(429, headers={"Retry-After": "0"}), Reply(body=PASS)]) as server:
        begun = time.monotonic()
        judge_calls(server.url, 1, 1)
    assert len(server.requests) == 3 and time.monotonic() - begun > 0.3       # two backoffs: 0.1 and 0.2 s


# -- redirects --


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_case_p19_a_redirect_is_named_and_never_followed(ask: Any, status: int) -> None:
    with JudgeServer([PASS]) as elsewhere:
        target = elsewhere.url + "/chat/completions"
        with JudgeServer([Reply(status, b"", {"Location": target})]) as server:
            ran = ask(server.url, 3)
    assert ran.code == 1 and len(server.requests) == 1 and elsewhere.requests == []
    assert str(status) in ran.err and target in ran.err and "--base-url" in ran.err and "Traceback" not in ran.err
    assert ask.rows() == []


# -- hang-ups and truncated bodies --


@pytest.mark.parametrize("faults", [["close", "cut"], ["reset", "reset"], ["cut", "reset"]])
def test_case_p20_a_server_that_hangs_up_is_asked_again(ask: Any, faults: list[str]) -> None:
    with JudgeServer([Reply(body=FAIL, fault=fault) for fault in faults] + [Reply(body=FAIL)]) as server:
        ran = ask(server.url)
    assert (ran.code, len(server.requests)) == (0, 3) and [r["verdict"] for r in ask.rows()] == ["FAIL"]
    assert "Traceback" not in ran.err


def test_a_truncated_refusal_is_no_refusal(ask: Any) -> None:
    with JudgeServer([Reply(400, {"error": {"message": "x" * 200}}, fault="cut"), Reply(body=FAIL)]) as server:
        ran = ask(server.url)
    assert (ran.code, len(server.requests)) == (0, 2) and "IncompleteRead" in ran.err


def test_case_p20_when_the_deadline_ends_the_verdict_is_null_and_the_run_goes_on() -> None:
    reply = lambda request: Reply(fault="close") if b"k0" in request.raw else Reply(body=FAIL)  # noqa: E731
    with JudgeServer(reply) as server:
        rows = judge_calls(server.url, 3, 2, deadline=1.5)
    assert {r["criterion_id"]: r["verdict"] for r in rows} == {"k0": None, "k1": "FAIL", "k2": "FAIL"}
    assert "no reply within" in next(r["reason"] for r in rows if r["criterion_id"] == "k0")


def test_faults_do_not_count_towards_the_three_replies(ask: Any) -> None:
    script = [Reply(fault="reset"), verdict("?"), error(500), verdict("?"), PASS]
    with JudgeServer([r if isinstance(r, Reply) else Reply(body=r) for r in script]) as server:
        ran = ask(server.url)
    assert (ran.code, len(server.requests), [r["verdict"] for r in ask.rows()]) == (0, 5, ["PASS"])


@pytest.mark.parametrize("fault", [error(500), error(503), Reply(fault="close"), Reply(fault="hang"), Reply(body=b"<html>502</html>")])
def test_a_service_that_gives_nobody_a_reply_stops_the_run_and_what_is_done_is_kept(ask: Any, monkeypatch: pytest.MonkeyPatch,
                                                                                     fault: Reply) -> None:
    monkeypatch.setattr(score, "DEADLINE", 1.0)
    with JudgeServer([Reply(body=PASS), Reply(body=PASS), fault]) as server:
        begun = time.monotonic()
        ran = ask(server.url, 20)
    assert ran.code == 1 and [r["verdict"] for r in ask.rows()] == ["PASS", "PASS", None, None]
    assert "gave nobody a reply for 1 s" in ran.err and "run the same command again" in ran.err and "Traceback" not in ran.err
    assert ran.err.count("score.py:") == 1 and time.monotonic() - begun < 8           # three deadlines, not eighteen


def test_a_service_that_gives_none_of_many_workers_a_reply_stops_the_run() -> None:
    with JudgeServer([error(500, "bozuk")]) as server:
        begun = time.monotonic()
        with pytest.raises(score.InputError, match="the last fault: status 500: bozuk"):
            judge_calls(server.url, 40, 4, deadline=1.0)
    assert time.monotonic() - begun < 3


def test_the_raw_reply_is_kept_where_a_later_try_ends_in_a_fault() -> None:
    of_k0 = iter([Reply(body=chat("{}", usage={"prompt_tokens": 3}))])

    def reply(request: Request) -> Any:
        return next(of_k0, error(500)) if b"k0" in request.raw else Reply(body=PASS, delay=0.1)

    with JudgeServer(reply) as server:
        rows = judge_calls(server.url, 30, 2, deadline=1.0)
    row = next(r for r in rows if r["criterion_id"] == "k0")
    assert (row["verdict"], row["raw"], row["usage"]) == (None, "{}", {"prompt_tokens": 3})
    assert "no reply within" in row["reason"]
    assert not any("raw" in r for r in rows if r["criterion_id"] != "k0")


def test_an_idle_connection_that_the_server_closed_costs_no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score, "BACKOFF", 30.0)
    with JudgeServer(lambda _: Reply(body=PASS, headers={"Connection": "keep-alive"})) as server:
        service = score.Service(server.url, KEY, "X")
        service.ask("m", [])
        service.idle[0].sock.shutdown(socket.SHUT_RDWR)
        begun = time.monotonic()
        service.ask("m", [])
    assert time.monotonic() - begun < 0.5


# -- errors in a good answer --


def test_case_p21_an_error_body_in_a_200_is_handled_as_its_status(ask: Any) -> None:
    case = shared_case("P21")["input"]
    with JudgeServer([reply["body"] for reply in case["replies"]]) as server:
        ran = ask(server.url)
    assert (ran.code, len(server.requests), [r["verdict"] for r in ask.rows()]) == (0, 3, ["PASS"])


def test_case_p21_a_spent_account_in_a_200_stops_the_run_and_keeps_what_is_done(ask: Any) -> None:
    case = shared_case("P21")["input"]
    with JudgeServer([PASS, case["second_run"]["body"]]) as server:
        ran = ask(server.url, 4)
    assert ran.code == 1 and len(server.requests) == 2 and "bakiye yok" in ran.err
    assert [r["verdict"] for r in ask.rows()] == ["PASS"]


@pytest.mark.parametrize("body", [
    b"", b"<html>502</html>", b"null", b"[]", b'{"choices": []}', b'{"choices": [null]}', b'{"choices": [{"message": null}]}',
    b'{"choices": {"0": 1}}', b"\xff\xfe", b'{"choices": [{"error": {"code": 502, "message": "x"}, "message": {"content": ""}}]}'])
def test_a_200_that_is_no_reply_is_a_fault_not_a_verdict(body: bytes) -> None:
    with JudgeServer([Reply(body=body), Reply(body=PASS)]) as server:
        (row,) = judge_calls(server.url, 1, 1)
    assert (row["verdict"], len(server.requests)) == ("PASS", 2)


# -- addresses and keys --


def test_case_p22_what_people_type_as_base_url() -> None:
    case = shared_case("P22")
    assert [score.endpoint(url) for url in case["input"]["base_urls"]] == case["expected"]["result"]["urls"]


def test_case_p22_both_scripts_read_an_address_alike() -> None:
    import run
    for url in (*shared_case("P22")["input"]["base_urls"], "https://api.ornek.invalid/chat/completions", "http://127.0.0.1:8000", " http://[::1]:80/v1\n"):
        assert run.endpoint(url) == score.endpoint(url)


def test_case_p22_each_form_reaches_a_real_server() -> None:
    with JudgeServer([PASS]) as server:
        for form in ("", "/", "/v1", "/v1/", "/v1/chat/completions"):
            score.Service(server.root + form, KEY, "X").ask("m", [])
    assert {request.path for request in server.requests} == {"/v1/chat/completions"}


def test_case_p22_a_key_with_bom_and_line_end_is_sent_clean(ask: Any) -> None:
    case = shared_case("P22")
    with JudgeServer([PASS]) as server:
        assert ask(server.url, key=case["input"]["api_key"]).code == 0
    assert server.requests[0].headers["authorization"] == case["expected"]["result"]["authorization"]


@pytest.mark.parametrize("key", ["sk-gizli\nX-Evil: 1", "sk-gizlı-anahtar"])
def test_a_key_that_no_key_can_be_is_refused_without_being_shown(ask: Any, key: str) -> None:
    with JudgeServer([PASS]) as server:
        ran = ask(server.url, key=key)
    assert ran.code == 2 and server.requests == [] and "OPENAI_API_KEY" in ran.err
    assert "gizl" not in ran.err + ran.out


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://x", "http://", "http://h:99999/v1", "http://h/a b", "http://h/çay", "https://u:p@h/v1"])
def test_an_address_that_is_none_is_refused_in_one_line(ask: Any, url: str) -> None:
    ran = ask(url)
    assert ran.code == 2 and "--base-url" in ran.err and "Traceback" not in ran.err


def test_an_address_where_nobody_listens_stops_at_once(ask: Any) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ran = ask(f"http://127.0.0.1:{port}/v1", 5)
    assert ran.code == 1 and "cannot be reached" in ran.err and "Traceback" not in ran.err


# -- refused parameters --


def test_case_p23_refused_parameters_are_learnt_once(ask: Any) -> None:
    case = shared_case("P23")["input"]

    def reply(request: Request) -> Any:
        for rule in case["server"][:2]:
            if rule["if"].removeprefix("body has ") in request.json:
                return Reply(rule["status"], rule["body"])
        return PASS

    with JudgeServer(reply) as server:
        assert ask(server.url, case["criteria"]).code == 0
    sent = [request.json for request in server.requests]
    assert len(sent) == 7
    assert "max_tokens" not in sent[1] and sent[1]["max_completion_tokens"] == 4096 and sent[1]["temperature"] == 0
    assert all("temperature" not in body for body in sent[2:])
    assert [(r["verdict"], sorted(r["refused"])) for r in ask.rows()] == [("PASS", ["max_tokens", "temperature"])] * 5


def test_case_p23_an_unknown_model_stops_the_run_with_the_servers_words(ask: Any) -> None:
    reply = shared_case("P23")["input"]["second_run"]["always"]
    with JudgeServer([Reply(reply["status"], reply["body"])]) as server:
        ran = ask(server.url, 5)
    assert ran.code == 1 and len(server.requests) == 1 and "böyle bir model yok" in ran.err


def test_workers_refused_at_the_same_moment_all_go_on() -> None:
    together = threading.Barrier(8)

    def reply(request: Request) -> Any:
        if "max_tokens" in request.json:
            together.wait(5)
            return error(400, "desteklenmiyor", param="max_tokens")
        return Reply(body=PASS, delay=0.01)

    with JudgeServer(reply) as server:
        rows = judge_calls(server.url, 24, 8)
    assert [r["verdict"] for r in rows] == ["PASS"] * 24
    assert len(server.requests) == 24 + 8


def test_a_parameter_is_found_in_the_servers_words_where_it_names_none() -> None:
    words = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    with JudgeServer(lambda request: error(400, words) if "max_tokens" in request.json else PASS) as server:
        rows = judge_calls(server.url, 2, 1)
    assert [r["refused"] for r in rows] == [["max_tokens"]] * 2 and len(server.requests) == 3
    assert server.requests[-1].json["max_completion_tokens"] == 4096


@pytest.mark.parametrize("words", [
    "This model's maximum context length is 2048 tokens. However, you requested 4596 tokens (500 in the messages, 4096 in the completion).",
    "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 2048 tokens and your request has 500 "
    "input tokens (4096 > 2048 - 500).",
    "`max_tokens` must be less than or equal to `2048`", "`inputs` tokens + `max_new_tokens` must be <= 2048. Given: 500 and 4096"])
def test_a_limit_that_a_small_context_cannot_hold_is_dropped_once(words: str) -> None:
    with JudgeServer(lambda request: error(400, words, param=None) if any("max" in name for name in request.json) else PASS) as server:
        rows = judge_calls(server.url, 3, 1)
    assert [(r["verdict"], r["refused"]) for r in rows] == [("PASS", ["max_tokens", "max_completion_tokens"])] * 3
    assert len(server.requests) == 2 + 3


def test_one_request_that_is_too_long_is_null_and_the_run_goes_on() -> None:
    too_long = error(400, "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens.")
    with JudgeServer(lambda request: too_long if b"k0" in request.raw else Reply(body=PASS)) as server:
        rows = judge_calls(server.url, 3, 1)
    assert {r["criterion_id"]: r["verdict"] for r in rows} == {"k0": None, "k1": "PASS", "k2": "PASS"}
    assert len(server.requests) == 3


# -- what stops a run --


@pytest.mark.parametrize(("reply", "to_do"), [
    (error(401, "Incorrect API key"), "OPENAI_API_KEY"), (error(402, "Insufficient credits"), "top it up"),
    (error(403, "Forbidden"), "may use this model"), (error(404, "No endpoints found"), "--base-url and --judge"),
    (error(429, "You exceeded your quota", code="insufficient_quota"), "top it up"),
    (Reply(200, {"error": {"code": "insufficient_quota", "message": "bitti"}}), "top it up")])
def test_a_fatal_status_stops_at_once_says_what_to_do_and_keeps_what_is_done(ask: Any, reply: Reply, to_do: str) -> None:
    with JudgeServer([Reply(body=PASS), Reply(body=PASS), reply]) as server:
        ran = ask(server.url, 6)
    assert ran.code == 1 and to_do in ran.err and len(server.requests) == 3
    assert len(ask.rows()) == 2
    assert ran.err.count("score.py:") == 1 and "Traceback" not in ran.err


@pytest.mark.parametrize("reply", [
    error(401, f"Incorrect API key provided: {KEY}"), error(403, "x" * 290 + KEY), Reply(401, f"Bearer {KEY}".encode()),
    error(500, f"log: {KEY}"), Reply(302, b"", {"Location": f"http://x.invalid/?key={KEY}"}),
    verdict("PASS", [True], quote=KEY, reason=f"Authorization: Bearer {KEY}", model=KEY), verdict("NONE", reason=KEY), error(400, f"bad {KEY}")])
def test_the_key_is_in_no_output_whatever_the_server_says(tmp_path: Path, reply: Any) -> None:
    program = "import sys, score; score.DEADLINE = 1; sys.exit(score.main(sys.argv[1:]))"
    questions = plain_questions(1, 1)
    data, answers = write_jsonl(tmp_path / "s.jsonl", questions), write_jsonl(tmp_path / "c.jsonl", plain_answers(questions))
    output = tmp_path / "k.jsonl"
    script = tmp_path / "go.py"
    script.write_text(f"import sys; sys.path.insert(0, {str(Path(score.__file__).parent)!r})\n{program}", encoding="utf-8")
    with JudgeServer([reply]) as server:
        ran = run_score("judge", answers, "--data", data, "-o", output, "--base-url", server.url, script=script, OPENAI_API_KEY=KEY)
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    written = ran.out + ran.err + output.read_text(encoding="utf-8")
    assert "gizli" not in written and "sk-test" not in written
    assert not any(KEY.encode() in request.raw or KEY in request.path for request in server.requests)


def test_no_key_is_needed_where_the_server_wants_none(ask: Any) -> None:
    with JudgeServer([PASS]) as server:
        assert ask(server.url, key="").code == 0


# -- deadlines --


@pytest.mark.parametrize("fault", ["drip", "drip-head", "hang"])
def test_a_reply_that_drips_is_ended_by_the_deadline_while_others_go_on(fault: str) -> None:
    reply = lambda request: Reply(fault=fault) if b"k0" in request.raw else Reply(body=PASS, delay=0.05)  # noqa: E731
    with JudgeServer(reply) as server:
        begun = time.monotonic()
        rows = judge_calls(server.url, 60, 2, deadline=1.0)
        seconds = time.monotonic() - begun
    assert {r["verdict"] for r in rows if r["criterion_id"] != "k0"} == {"PASS"} and len(rows) == 60
    dripped = next(n for n, r in enumerate(rows) if r["criterion_id"] == "k0")
    assert rows[dripped]["verdict"] is None and dripped < 50        # ended while the others were under way, not after them
    assert seconds < 10


def test_a_reply_without_end_is_left_before_it_fills_the_memory() -> None:
    reply = lambda request: Reply(fault="flood") if b"k0" in request.raw else Reply(body=PASS)  # noqa: E731
    with JudgeServer(reply) as server:
        rows = {row["criterion_id"]: row for row in judge_calls(server.url, 3, 2, deadline=0.5)}
        asked = sum(b"k0" in request.raw for request in server.requests)
    assert [rows[f"k{n}"]["verdict"] for n in range(3)] == [None, "PASS", "PASS"] and "more than" in rows["k0"]["reason"]
    assert server.flooded <= asked * (score.LONGEST_REPLY + 2**25)     # what is on its way in the sockets included


# -- TLS --


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A certificate of our own for 127.0.0.1."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not there to make a certificate")
    yield make_certificate(tmp_path_factory.mktemp("tls"))


def test_a_trusted_certificate_is_accepted_and_one_handshake_serves_many_calls(ask: Any, certificate: Path,
                                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    with JudgeServer([PASS], certificate) as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        ran = ask(server.url, 6)
    assert ran.code == 0 and len(server.requests) == 6 and server.url.startswith("https:") and server.connections == 1
    assert [r["verdict"] for r in ask.rows()] == ["PASS"] * 6


def test_a_certificate_that_nobody_vouches_for_stops_the_run_before_the_key_is_sent(ask: Any, certificate: Path) -> None:
    with JudgeServer([PASS], certificate) as server:
        ran = ask(server.url, 3)
    assert ran.code == 1 and "cannot be reached" in ran.err and "CERTIFICATE_VERIFY_FAILED" in ran.err and "Traceback" not in ran.err
    assert server.requests == []


def test_a_dripping_reply_over_tls_is_ended_too(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    reply = lambda request: Reply(fault="drip") if b"k0" in request.raw else Reply(body=PASS)  # noqa: E731
    with JudgeServer(reply, certificate) as server:
        begun = time.monotonic()
        rows = judge_calls(server.url, 3, 2, deadline=1.0)
    assert {r["criterion_id"]: r["verdict"] for r in rows} == {"k0": None, "k1": "PASS", "k2": "PASS"}
    assert time.monotonic() - begun < 5


# -- a proxy --


class Proxy:
    """A proxy that opens tunnels and keeps what it was asked."""

    def __init__(self) -> None:
        self.heads: list[bytes] = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.socket.getsockname()[1]}"

    def __enter__(self) -> Proxy:
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client = self.socket.accept()[0]
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    head += client.recv(1)
                self.heads.append(head)
                host, _, port = head.split()[1].decode().rpartition(":")
                server = socket.create_connection((host, int(port)))
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                for one, other in ((client, server), (server, client)):
                    threading.Thread(target=self.relay, args=(one, other), daemon=True).start()

    @staticmethod
    def relay(one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    with Proxy() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://ali:%C5%9Fifre@{proxy.address}")
        monkeypatch.setenv("HTTP_PROXY", f"http://{proxy.address}")
        yield proxy


def test_https_goes_through_the_proxys_tunnel_which_never_sees_the_key(ask: Any, proxy: Proxy, certificate: Path,
                                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with JudgeServer([PASS], certificate) as server:
        ran = ask(server.url, 3)
    assert ran.code == 0 and len(server.requests) == 3
    (head,) = proxy.heads
    assert head.startswith(f"CONNECT {server.url.split('/')[2]} ".encode()) and KEY.encode() not in head
    assert base64.b64encode("ali:şifre".encode()) in head


def test_no_proxy_excepts_a_host(ask: Any, proxy: Proxy, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setenv("NO_PROXY", "ornek.invalid,127.0.0.1")
    with JudgeServer([PASS], certificate) as server:
        assert ask(server.url).code == 0
    assert len(server.requests) == 1 and proxy.heads == []


def test_plain_http_goes_straight_to_its_server_so_that_no_proxy_reads_the_key(ask: Any, proxy: Proxy) -> None:
    with JudgeServer([PASS]) as server:
        assert ask(server.url).code == 0
    assert len(server.requests) == 1 and proxy.heads == []
