"""Failures that people met in public with tools of this kind: cases P01 to P11 of the shared log, and cases of the same kinds of our own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from conftest import DATA, ROOT, Row, read_jsonl, run_score, shared_case, write_jsonl

import score


def key_facts(run: Row) -> Row:
    """What the product makes of a case's answer: matches, markers, kapsam and puan."""
    markers = run.get("yanlis_isaretler", [])
    sheet = score.fact_sheet({"anahtar_bilgiler": run["anahtar_bilgiler"], "yanlis_isaretler": markers})
    answer = score.Answer("iik", "m", "1", 1, run["answer"], "ok", "here", {})
    result, _ = score.examine(sheet, answer)
    return {
        "matched": result.found,
        "kapsam": sum(result.found) / len(result.found),
        "false_markers": len(result.asserted),
        "false_markers_counted": len(result.asserted),
        "false_markers_negated": [markers[n] for n in result.denied],
        "puan": float(score.fact_score(sum(result.found), len(result.found), len(result.asserted))),
    }


def check_key_facts(case: Row) -> None:
    runs = case["input"].get("runs", [case["input"]])
    results = case["expected"]["result"] if "runs" in case["input"] else [case["expected"]["result"]]
    for run, expected in zip(runs, results, strict=True):
        got = key_facts(run)
        assert {field: got[field] for field in expected} == expected, run


@pytest.mark.parametrize("case_id", ["P01", "P02", "P03", "P04", "P06"])
def test_shared_case_of_key_facts(case_id):
    check_key_facts(shared_case(case_id))


OWN = [
    ("P01", "ŞİKÂYET icra hâkimliğine değil, İCRA MAHKEMESİ'ne.", [["icra mahkemesi"], ["şikâyet"]], [], [True, True], 0),
    ("P01", "I\u0307TI\u0307RAZ edilir; iti\u0307raz edilir", [["itiraz"]], [], [True], 0),
    ("P02", "KISMI ITIRAZ YAPILDIGINDA TAKIP DURUR", [["kısmi itiraz"], ["takip durur"]], [], [True, True], 0),
    ("P02", "YARGILAMA GİDERİ ALACAKLIDAN ALINIR", [["yargılama gideri"], ["alacaklı"]], [], [True, True], 0),
    ("P03", "Süre yirmi beş gündür.", [["beş gün", "5 gün"]], ["20 gün"], [False], 0),
    ("P03", "Süre 115 gündür, oran %150.", [["15 gün"]], ["%15"], [False], 0),
    ("P03", "On beşer günlük iki süre; 15'er gün", [["iki süre"]], [], [True], 0),
    ("P03", "Beş günlüğüne ertelenir.", [["5 gün"]], [], [True], 0),
    ("P04", "İtirazın süresi bir hafta değildir, yedi iş günü de değildir.", [["itiraz"]], ["bir hafta"], [True], 0),
    ("P04", "İtirazın süresi bir haftadır; yedi gün değildir.", [["itiraz"]], ["bir hafta"], [True], 1),
    (
        "P06",
        "hac\u00adzin kal\u200bdırıl\u2060ması, 7\u2009gün, yüzde\u202f20",
        [["haczin kaldırılması"], ["yedi gün"], ["%20"]],
        [],
        [True, True, True],
        0,
    ),
]


@pytest.mark.parametrize("case_id, answer, facts, markers, matched, asserted", OWN, ids=[f"{o[0]}-{n}" for n, o in enumerate(OWN)])
def test_own_case_of_key_facts(case_id, answer, facts, markers, matched, asserted):
    got = key_facts({"answer": answer, "anahtar_bilgiler": facts, "yanlis_isaretler": markers})
    assert (got["matched"], got["false_markers"]) == (matched, asserted)


# -- P05: amounts the Turkish way, for facts and for checks of references alike --


AMOUNTS = [
    (
        "250.000 TL",
        ["250.000 TL'dir", "250.000,00 Türk lirası", "250 bin lira", "iki yüz elli bin TL", "₺250.000", "250 000 TL"],
        ["1.250.000 TL", "250,00 TL", "25.0000 TL", "250.000,01 TL"],
    ),
    ("2.450,75 TL", ["2.450,75 TL", "2450,75 lira", "2,450.75 TL"], ["2.450 TL", "12.450,75 TL", "450,75 TL"]),
]


def amount_found(amount: str, text: str) -> tuple[bool, bool]:
    """By the phrase match of facts and by a check of a criterion."""
    return any(score.hits(score.phrase(amount), score.fold(text))), score.checked(text, {"type": "amount", "any": [amount]})


@pytest.mark.parametrize("amount, right, wrong", AMOUNTS, ids=["P05-a", "P05-b"])
def test_own_case_P05_amounts(amount, right, wrong):
    expected = {**dict.fromkeys(right, (True, True)), **dict.fromkeys(wrong, (False, False))}
    assert {text: amount_found(amount, text) for text in expected} == expected


def test_shared_case_P05_amounts():
    case = shared_case("P05")
    for run, amount, results in zip(case["input"]["runs"], ("690.000 TL", "1.234,56 TL"), case["expected"]["result"], strict=True):
        assert {text: amount_found(amount, text) for text in run["answers"]} == {t: (r, r) for t, r in zip(run["answers"], results, strict=True)}


# -- P07, P08: lines of a file --


def read(path, content: bytes) -> list[Row]:
    path.write_bytes(content)
    return [row for _, row in score.read_rows(path)]


def test_shared_case_P07_separators_inside_a_text(tmp_path, capsys):
    case = shared_case("P07")
    rows = read(tmp_path / "a.jsonl", case["input"]["file_utf8"].encode())
    assert [r["id"] for r in rows] == case["expected"]["result"]["ids"]
    assert len(rows[0]["answer"]) == case["expected"]["result"]["answer_q1_length"] and capsys.readouterr().err == ""


def test_own_case_P07_separators_inside_a_text(tmp_path, capsys):
    text = "Bir.\u2028İki.\u2029Üç.\u0085Dört.\x1cBeş.\x0cAltı."
    rows = read(tmp_path / "a.jsonl", json.dumps({"id": "q1", "a": text}, ensure_ascii=False).encode() + b'\n{"id": "q2"}\n')
    assert [r["id"] for r in rows] == ["q1", "q2"] and rows[0]["a"] == text and capsys.readouterr().err == ""


def test_shared_case_P08_byte_order_mark_and_windows_line_ends(tmp_path, capsys):
    case = shared_case("P08")
    assert read(tmp_path / "a.jsonl", bytes.fromhex(case["input"]["file_hex"])) == case["expected"]["result"]["records"]
    assert capsys.readouterr().err == ""


def test_own_case_P08_byte_order_mark_and_windows_line_ends(tmp_path, capsys):
    assert read(tmp_path / "a.jsonl", b'\xef\xbb\xbf{"a": 1}\r\n \r\n\r\n{"a": 2}') == [{"a": 1}, {"a": 2}]
    assert capsys.readouterr().err == ""


# -- P09: a killed writer --


def test_shared_case_P09_torn_last_line(tmp_path, capsys):
    case = shared_case("P09")
    path = tmp_path / "a.jsonl"
    assert [f"{r['id']}/{r['attempt']}" for r in read(path, bytes.fromhex(case["input"]["file_hex"]))] == case["expected"]["result"]["on_read"][
        "done"
    ]
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1 and "a.jsonl:2:" in said[0]


def test_own_case_P09_cut_anywhere_in_the_last_line(tmp_path, capsys):
    whole = '{"id": "q1"}\n' + json.dumps({"id": "q2", "answer": "Süre üç gündür 😀."}, ensure_ascii=False)
    content = whole.encode()
    first = content.index(b"\n") + 1
    for cut in range(first + 1, len(content)):
        assert read(tmp_path / "a.jsonl", content[:cut]) == [{"id": "q1"}]
        assert "a.jsonl:2:" in capsys.readouterr().err
    assert len(read(tmp_path / "a.jsonl", content)) == 2 and capsys.readouterr().err == ""


# -- P10: other code pages --

LOCALES = [
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""},
    {"PYTHONIOENCODING": "cp1254"},
    {"PYTHONIOENCODING": "ascii"},
]


def in_locale(tmp_path, soru: str, environment: dict[str, str]) -> None:
    question = {
        "id": "q1",
        "konu": "→ ≥ █",
        "madde": "m.94",
        "soru": soru,
        "referans_cevap": "Şirket → pay",
        "anahtar_bilgiler": [["şirket payı ≥"]],
        "yanlis_isaretler": [],
    }
    data = write_jsonl(tmp_path / "q.jsonl", [question])
    answers = write_jsonl(tmp_path / "a.jsonl", [{"question_id": "q1", "answer": "Şirket payı ≥ %50 →", "model": "Işıl → 😀"}])
    done = subprocess.run(
        [
            sys.executable,
            str(ROOT / "score.py"),
            "facts",
            answers,
            "--data",
            data,
            "--explain",
            "--explain-dir",
            tmp_path / "s",
            "-o",
            tmp_path / "v.jsonl",
        ],
        capture_output=True,
        timeout=60,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0 and b"Traceback" not in done.stderr, done.stderr
    assert b"m.94" in done.stdout and b"%50" in done.stdout
    assert {r["model"] for r in read_jsonl(tmp_path / "v.jsonl")} == {"Işıl → 😀"}
    (page,) = (tmp_path / "s").iterdir()
    assert soru in page.read_bytes().decode("utf-8")


@pytest.mark.parametrize("environment", LOCALES, ids=["C", "cp1254", "ascii"])
def test_shared_case_P10_code_pages(tmp_path, environment):
    in_locale(tmp_path, json.loads(shared_case("P10")["input"]["file_utf8"])["soru"], environment)


@pytest.mark.parametrize("environment", LOCALES, ids=["C", "cp1254", "ascii"])
def test_own_case_P10_code_pages(tmp_path, environment):
    in_locale(tmp_path, "Oran ≤ %25 ↔ ½ pay; “İcra” 😀", environment)


# -- P11: half of an emoji --


def surrogate_goes_through(tmp_path, content_json: str, stored: str) -> None:
    """Answers with a lone half reach facts, the pages, the judge's requests and the report as U+FFFD."""
    assert score.parse_json(content_json) == stored
    irac = read_jsonl(DATA / "irac.jsonl")[0]["id"]
    for suite, question in (("iik", "1"), ("irac", irac)):
        (tmp_path / f"{suite}.jsonl").write_text(
            f'{{"question_id": "{question}", "answer": {content_json}, "model": "m", "attempt": 1}}\n', encoding="ascii"
        )
    ran = run_score("facts", tmp_path / "iik.jsonl", "-o", tmp_path / "v.jsonl", "--explain-dir", tmp_path / "s")
    assert ran.code == 0 and "Traceback" not in ran.err, ran.err
    ran = run_score("judge", tmp_path / "irac.jsonl", "--batch-out", tmp_path / "r.jsonl")
    assert ran.code == 0 and stored in (tmp_path / "r.jsonl").read_bytes().decode("utf-8"), ran.err
    assert run_score("report", tmp_path / "v.jsonl").code == 0


def test_shared_case_P11_lone_surrogate(tmp_path):
    case = shared_case("P11")
    body = case["input"]["http_body_ascii"]
    stored = case["expected"]["result"]["stored_answer"]
    assert score.parse_json(body)["choices"][0]["message"]["content"] == stored
    surrogate_goes_through(tmp_path, body[body.index('"Evet') : body.index('"}}]')] + '"', stored)


@pytest.mark.parametrize(
    "content, stored", [('"\\udc00Son"', "\ufffdSon"), ('"A\\ud83dB\\ud83d\\ude00"', "A\ufffdB😀"), ('"\\ude00\\ud83d"', "\ufffd\ufffd")]
)
def test_own_case_P11_lone_surrogate(tmp_path, content, stored):
    surrogate_goes_through(tmp_path, content, stored)
