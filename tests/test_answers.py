"""Answers: JSON Lines, spreadsheets long and wide, folders; attempts, duplicates, what is missing and what is not."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from conftest import DATA, read_jsonl, run_score, write_jsonl
from hypothesis import given, settings
from hypothesis import strategies as st

import score

QUESTIONS = [
    {
        "id": n,
        "konu": f"Konu {n}",
        "madde": "m.1",
        "soru": f"Borçlu {n}. durumda hangi yola ve hangi süre içinde başvurur?",
        "referans_cevap": "Yedi gün içinde icra mahkemesine başvurur.",
        "anahtar_bilgiler": [["yedi gün"], ["icra mahkemesi"]],
        "yanlis_isaretler": ["genel mahkeme"],
    }
    for n in (1, 2, 3)
]
RIGHT, HALF, WRONG = "Yedi gün içinde icra mahkemesine.", "Şikâyet yolu; icra mahkemesi bakar.", "Genel mahkemede, üç günde."


@pytest.fixture
def data(tmp_path):
    return write_jsonl(tmp_path / "sorular.jsonl", QUESTIONS)


def scored(data, *answers, code=0):
    """Scores by question and model, and what was said on the way."""
    ran = run_score("facts", *answers, "--data", data, "--format", "json")
    assert ran.code == code and "Traceback" not in ran.err, ran
    models = {m["model"]: m["by_question"] for m in json.loads(ran.out)["models"]} if code == 0 else {}
    return models, ran.err


def full(one, two, three):
    return {"1": one, "2": two, "3": three}


# -- JSON Lines --


def test_jsonl_model_defaults_to_the_file_name_and_ids_compare_as_text(data, tmp_path):
    path = write_jsonl(tmp_path / "Ayşe Ç.jsonl", [{"question_id": 1, "answer": RIGHT}, {"question_id": "2", "answer": HALF}])
    scores, said = scored(data, path)
    assert scores == {"Ayşe Ç": full(100, 50, 0)}
    assert said.startswith("notice: nobody has an answer to 1 of 3 questions of sorular.jsonl (3)") and said.count("\n") == 1


def test_nothing_is_said_where_somebody_has_answered_each_question(data, tmp_path):
    rows = [{"question_id": 1, "answer": RIGHT, "model": "a"}, {"question_id": 2, "answer": HALF, "model": "b"}, {"question_id": 3, "answer": "", "model": "b"}]
    assert scored(data, write_jsonl(tmp_path / "x.jsonl", rows))[1] == ""


def test_a_row_with_more_cells_than_columns_is_refused(data, tmp_path):
    path = tmp_path / "form.csv"
    path.write_text("Ad Soyad,1,2,3\nAli,rücu, devlet,imzala,x\n", encoding="utf-8")
    with pytest.raises(score.InputError) as refused:
        score.read_answers([str(path)], "iik", score.read_questions(Path(data), "iik"))
    assert f"{path}:2: has 5 cells under 4 columns" in str(refused.value)


def test_attempts_count_up_by_themselves_and_their_mean_is_the_score(data, tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", [{"question_id": "1", "answer": RIGHT}, {"question_id": "1", "answer": HALF}])
    assert scored(data, path)[0] == {"a": full(75, 0, 0)}


def test_files_of_one_kind_can_be_concatenated_and_unknown_fields_are_kept_and_ignored(data, tmp_path):
    rows = [{"question_id": "1", "answer": RIGHT, "model": "m", "hava": {"durumu": [1]}}, {"question_id": "2", "answer": HALF, "model": "n"}]
    one = write_jsonl(tmp_path / "1.jsonl", rows)
    two = write_jsonl(tmp_path / "2.jsonl", [{"question_id": "3", "answer": RIGHT, "model": "m"}])
    both = tmp_path / "both.jsonl"
    both.write_bytes(one.read_bytes() + two.read_bytes())
    assert scored(data, both)[0] == scored(data, one, two)[0] == {"m": full(100, 0, 100), "n": full(0, 50, 0)}


def test_the_last_good_row_of_an_attempt_wins_and_both_places_are_named(data, tmp_path):
    rows = [
        {"question_id": "1", "answer": HALF, "attempt": 1},
        {"question_id": "1", "answer": RIGHT, "attempt": 1},
        {"question_id": "1", "answer": "", "attempt": 1, "status": "error", "error": "kesildi"},
    ]
    models, said = scored(data, write_jsonl(tmp_path / "a.jsonl", rows))
    assert models == {"a": full(100, 0, 0)}
    assert "a.jsonl:1" in said and "a.jsonl:2" in said and "a.jsonl:3" in said


def test_a_good_row_after_an_error_wins(data, tmp_path):
    rows = [{"question_id": "1", "answer": None, "attempt": 1, "status": "timeout"}, {"question_id": "1", "answer": HALF, "attempt": 1}]
    assert scored(data, write_jsonl(tmp_path / "a.jsonl", rows))[0] == {"a": full(50, 0, 0)}


@pytest.mark.parametrize(
    "status, text, missing",
    [
        ("ok", "", True),
        ("ok", " \n\u00a0", True),
        ("ok", RIGHT, False),
        ("empty", "", True),
        ("reasoning_only", RIGHT, True),
        ("tools_only", RIGHT, True),
        ("timeout", RIGHT, True),
        ("error", RIGHT, True),
        ("refusal", RIGHT, False),
        ("length", RIGHT, False),
        ("length", "", True),
        (None, RIGHT, False),
    ],
)
def test_what_counts_as_a_missing_answer(data, tmp_path, status, text, missing):
    path = write_jsonl(tmp_path / "a.jsonl", [{"question_id": "1", "answer": text, "status": status}])
    ran = run_score("facts", path, "--data", data, "--format", "json")
    model = json.loads(ran.out)["models"][0]
    assert (model["by_question"]["1"], model["unanswered"]) == ((0, 3) if missing else (100, 2))


def test_answers_of_another_suite_are_left_out_and_counted(data, tmp_path):
    irac = read_jsonl(DATA / "irac.jsonl")[0]["id"]
    rows = [{"question_id": "1", "answer": RIGHT}, {"question_id": "9", "answer": "x", "suite": "kategori"}, {"question_id": irac, "answer": "x"}]
    models, said = scored(data, write_jsonl(tmp_path / "a.jsonl", rows))
    assert models == {"a": full(100, 0, 0)} and "1 answer of suite kategori" in said and "1 answer of suite irac" in said


def test_only_answers_of_another_suite_give_no_score(data, tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", [{"question_id": "9", "answer": "x", "suite": "kategori"}])
    assert "no answers of suite iik" in scored(data, path, code=1)[1]


# -- Spreadsheets --

LONG = [
    ["Öğrenci", "Soru", "Cevap"],
    ["Ayşe", "1", RIGHT],
    ["Ayşe", "2", HALF],
    ["Işıl", "1", 'Yedi gün;\nicra "mahkemesi", evet'],
    ["Işıl", "3", WRONG],
]
LONG_SCORES = {"Ayşe": full(100, 50, 0), "Işıl": full(50, 0, 0)}


def sheet(cells, delimiter=";", encoding="utf-8", newline="\r\n") -> bytes:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator=newline).writerows(cells)
    return out.getvalue().encode(encoding)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1254", "utf-16"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_long_spreadsheet_in_any_export_form(data, tmp_path, encoding, delimiter, newline):
    path = tmp_path / "sınıf.csv"
    path.write_bytes(sheet(LONG, delimiter, encoding, newline))
    models, said = scored(data, path)
    assert models == LONG_SCORES
    assert ("Windows-1254" in said) is (encoding == "cp1254")


@pytest.mark.parametrize(
    "head",
    [
        ["model", "question_id", "answer"],
        ["Ad Soyad", "Soru No", "Yanıt"],
        ["AD SOYAD", "SORU NO", "CEVAP"],
        ["name", "question", "response"],
        ["isim", "soru_id", "cevabınız"],
        [" Öğrenci ", "Soru ID", "CEVAP "],
    ],
)
def test_long_columns_are_matched_by_name_in_either_language_and_any_order(data, tmp_path, head):
    path = tmp_path / "a.csv"
    cells = [head, *LONG[1:]]
    path.write_bytes(sheet(cells))
    assert scored(data, path)[0] == LONG_SCORES
    path.write_bytes(sheet([row[::-1] for row in cells]))
    assert scored(data, path)[0] == LONG_SCORES


def test_long_with_attempts_and_status(data, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(
        sheet([["model", "question_id", "attempt", "status", "answer"], ["m", 1, 1, "ok", RIGHT], ["m", 1, 2, "", HALF], ["m", 2, 1, "error", RIGHT]])
    )
    assert scored(data, path)[0] == {"m": full(75, 0, 0)}


WIDE_HEADS = {
    "ids": ["1", "2", "3"],
    "Soru 1": ["Soru 1", "Soru 2", "Soru 3"],
    "S1": ["S1", "s2", "S-3"],
    "1.": ["1.", "2)", "3:"],
    "texts": [q["soru"] for q in QUESTIONS],
    "numbered texts": [f"{q['id']}. {q['soru']}" for q in QUESTIONS],
    "texts typed again": [q["soru"].upper().replace(" ", "  ") for q in QUESTIONS],
    "Q": ["Question 1", "question 2", "Q3"],
}


@pytest.mark.parametrize("heads", WIDE_HEADS.values(), ids=WIDE_HEADS)
@pytest.mark.parametrize("encoding", ["utf-8-sig", "cp1254"])
def test_a_wide_spreadsheet_as_form_tools_export_it(data, tmp_path, heads, encoding):
    path = tmp_path / "form.csv"
    path.write_bytes(
        sheet(
            [["Zaman damgası", "Ad Soyad", *heads], ["29.11.2026 10:00", "Ayşe", RIGHT, HALF, ""], ["29.11.2026 10:05", "Işıl", "", WRONG]],
            encoding=encoding,
        )
    )
    models, said = scored(data, path)
    assert models == {"Ayşe": full(100, 50, 0), "Işıl": full(0, 0, 0)}
    assert "left out: Zaman damgası" in said


def test_first_name_and_surname_in_two_columns_and_the_line_that_excel_wants_first(data, tmp_path):
    path = tmp_path / "form.csv"
    path.write_bytes(b"sep=;\r\n" + sheet([["Adı", "Soyadı", "Soru 1"], ["Ayşe", "Işık", RIGHT], ["Ayşe", "Kaya", HALF]]))
    assert scored(data, path)[0] == {"Ayşe Işık": full(100, 0, 0), "Ayşe Kaya": full(50, 0, 0)}
    path.write_bytes(sheet([["Ad", "Soyad", "Soru", "Cevap"], ["Ayşe", "Işık", "1", RIGHT], ["Ayşe", "Kaya", "1", HALF]]))
    assert scored(data, path)[0] == {"Ayşe Işık": full(100, 0, 0), "Ayşe Kaya": full(50, 0, 0)}
    path.write_bytes(sheet([["Ad Soyad", "Soyad", "Soru 1"], ["Ayşe Işık", "Işık", RIGHT]]))
    models, said = scored(data, path)
    assert models == {"Ayşe Işık": full(100, 0, 0)} and "left out: Soyad" in said


def test_blank_rows_of_a_spreadsheet_are_no_students(data, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"\r\n" + sheet([*LONG, ["", "", ""], ["  "]]))
    assert scored(data, path)[0] == LONG_SCORES


BAD_SHEETS = [
    ("wrong columns", [["Kişi", "Metin"], ["a", "b"]], ["a.csv:1:", "Kişi, Metin", "expected question_id and answer"]),
    ("a question nobody asked", [*LONG, ["Ayşe", "77", "x"]], ["a.csv:", '"77" is not in the question file']),
    ("a row without a question", [*LONG, ["Ayşe", "", "x"]], ["a.csv:7", '"question_id" is null', "expected the id of a question"]),
    ("an answer twice", [*LONG, ["Ayşe", "1", HALF]], ["a.csv:7", "a second answer", '"Ayşe"', "question 1", "a.csv:2", "number the attempts"]),
    ("attempt in words", [["soru", "cevap", "deneme"], ["1", "x", "iki"]], ["a.csv:2", '"attempt" is "iki"']),
    ("a status nobody knows", [["soru", "cevap", "durum"], ["1", "x", "iyi"]], ["a.csv:2", '"status" is "iyi"']),
    ("a student without a name", [["Ad Soyad", "Soru 1"], ["", "x"]], ["a.csv:2", "has no student"]),
    ("a student twice", [["Ad Soyad", "Soru 1"], ["Ayşe", "x"], ["Ayşe", "y"]], ["a.csv:3", "a second answer", "a.csv:2"]),
    ("a question in two columns", [["Ad Soyad", "Soru 1", "S1"], ["Ayşe", "x", "y"]], ["2 columns are for question 1"]),
    ("no rows", [["Ad Soyad", "Soru 1"]], ["no answers"]),
    ("nothing", [], ["is empty"]),
]


@pytest.mark.parametrize("cells, said", [case[1:] for case in BAD_SHEETS], ids=[case[0] for case in BAD_SHEETS])
def test_a_bad_spreadsheet_is_refused_in_a_sentence(data, tmp_path, cells, said):
    path = tmp_path / "a.csv"
    path.write_bytes(sheet(cells, encoding="utf-8-sig"))
    message = scored(data, path, code=1)[1]
    for part in said:
        assert part in message


names = st.text(st.sampled_from("abcçğıİöşüÜ 'x"), min_size=1, max_size=8).map(str.strip).filter(bool)
cells = st.text(st.sampled_from("abİığş;,\t\"\n' 12.%"), max_size=30)


@settings(deadline=None, max_examples=60)
@given(
    st.dictionaries(names, st.lists(cells, min_size=3, max_size=3), min_size=1, max_size=4),
    st.sampled_from(";,\t"),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_every_cell_of_a_wide_spreadsheet_comes_through(tmp_path_factory, students, delimiter, encoding):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    path.write_bytes(
        sheet([["Ad Soyad", "Soru 1", "Soru 2", "Soru 3"], *[[name, *answers] for name, answers in students.items()]], delimiter, encoding)
    )
    questions = {str(q["id"]): q for q in QUESTIONS}
    read = {(a.model, a.question_id): a.text for a in score.read_answers([str(path)], "iik", questions)}
    assert read == {(name, str(n)): answer.strip() for name, answers in students.items() for n, answer in enumerate(answers, 1)}


# -- Folders --


def test_a_folder_of_names_with_questions_and_attempts(data, tmp_path):
    for name, text in {
        "Ayşe/1.md": f"# Cevap\n\n{RIGHT}",
        "Ayşe/2.1.txt": RIGHT,
        "Ayşe/2.2.txt": HALF,
        "Işıl/3.txt": HALF,
        "Işıl/.gizli.txt": "x",
        "Işıl/notlar.docx": "x",
    }.items():
        path = tmp_path / "sınıf" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("cp1254" if name == "Işıl/3.txt" else "utf-8"))
    models, said = scored(data, tmp_path / "sınıf")
    assert models == {"Ayşe": full(100, 75, 0), "Işıl": full(0, 0, 50)}
    assert "notlar.docx" in said and "left out" in said and "Windows-1254" in said


def test_the_folder_of_one_name(data, tmp_path):
    (tmp_path / "Ayşe").mkdir()
    (tmp_path / "Ayşe" / "1.md").write_text(RIGHT, encoding="utf-8")
    assert scored(data, tmp_path / "Ayşe")[0] == {"Ayşe": full(100, 0, 0)}


def test_a_folder_refuses_unknown_questions_and_duplicates(data, tmp_path):
    (tmp_path / "s" / "Ayşe").mkdir(parents=True)
    for name in ("1.md", "1.txt", "99.md"):
        (tmp_path / "s" / "Ayşe" / name).write_text(RIGHT, encoding="utf-8")
    said = scored(data, tmp_path / "s", code=1)[1]
    assert "1.txt: a second answer" in said and "1.md" in said and 'question "99" is not in the question file' in said


def test_kinds_can_be_mixed_and_the_same_answer_from_two_files_is_refused(data, tmp_path):
    jsonl = write_jsonl(tmp_path / "m.jsonl", [{"question_id": "1", "answer": RIGHT}])
    table = tmp_path / "t.csv"
    table.write_bytes(sheet([["soru", "cevap"], ["1", HALF]]))
    assert scored(data, jsonl, table)[0] == {"m": full(100, 0, 0), "t": full(50, 0, 0)}
    table.write_bytes(sheet([["model", "soru", "cevap"], ["m", "1", HALF]]))
    assert "a second answer" in scored(data, jsonl, table, code=1)[1]
