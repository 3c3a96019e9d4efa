"""The facts command from end to end, against scores worked out by hand, the published rule, and the shipped questions."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import shutil

import pytest
from conftest import DATA, ROOT, read_jsonl, run_score, write_jsonl
from hypothesis import given, settings
from hypothesis import strategies as st

import score

BANK = read_jsonl(DATA / "iik_bench.jsonl")
QUESTIONS = [
    {
        "id": 1,
        "konu": "Süre",
        "madde": "m.1",
        "soru": "Hangi sürede, nereye?",
        "referans_cevap": "Yedi gün içinde icra mahkemesine.",
        "anahtar_bilgiler": [["yedi gün", "7 gün"], ["icra mahkemesi"]],
        "yanlis_isaretler": ["genel mahkeme", "süresiz"],
    },
    {
        "id": 2,
        "konu": "Oran",
        "madde": "m.2",
        "soru": "Ne istenir?",
        "referans_cevap": "İtiraz üzerine alacaklı %20 tazminat ister.",
        "anahtar_bilgiler": [["%20", "yüzde yirmi"], ["tazminat"], ["itiraz"], ["alacaklı"]],
        "yanlis_isaretler": ["%40"],
    },
    {
        "id": 3,
        "konu": "Haciz",
        "madde": "m.3",
        "soru": "Sonra ne olur?",
        "referans_cevap": "Haciz.",
        "anahtar_bilgiler": [["haciz"]],
        "yanlis_isaretler": [],
    },
]
ANSWERS = [
    {"model": "Ayşe", "question_id": "1", "answer": "Yedi günde icra mahkemesine gidilir."},
    {"model": "Ayşe", "question_id": "2", "answer": "Tazminat oranı %20 olur, bu oran %40 değildir.\nSonra itiraz incelenir."},
    {"model": "Ayşe", "question_id": "3", "answer": "  "},
    {"model": "Burak", "question_id": "1", "answer": "Başvuru on yedi gün içinde genel mahkeme önünde, süresiz yapılır."},
    {"model": "Burak", "question_id": "2", "answer": "Alacaklı yüzde yirmi beş tazminat alır."},
    {"model": "Burak", "question_id": "3", "answer": "HACİZ konur."},
]
# By hand. Ayşe: 2/2; 3/4 and %40 denied; nothing. Burak: 0/2 and two markers; 2/4; 1/1. The published rule finds "yedi gün" in "on yedi gün" and
# "yüzde yirmi" in "yüzde yirmi beş", counts the denied %40, and misses HACİZ: Ayşe 1, 1/2, 0; Burak 1/2 - 1/2, 3/4, 0.
TURKISH = {
    "Ayşe": {
        "score": 175 / 3,
        "strict": 100,
        "specific_found": 2,
        "false_markers": 0,
        "unanswered": 1,
        "as_published": 50,
        "facts_that_differ": 0,
        "by_question": {"1": 100, "2": 75, "3": 0},
        "rank": 1,
    },
    "Burak": {
        "score": 50,
        "strict": 0,
        "specific_found": 0,
        "false_markers": 2,
        "unanswered": 0,
        "as_published": 25,
        "facts_that_differ": 3,
        "by_question": {"1": 0, "2": 50, "3": 100},
        "rank": 2,
    },
}
REFERENCE = {
    "Ayşe": {"score": 50, "strict": 100, "specific_found": 2, "false_markers": 1, "as_published": 50, "by_question": {"1": 100, "2": 50, "3": 0}},
    "Burak": {"score": 25, "strict": 100, "specific_found": 2, "false_markers": 2, "as_published": 25, "by_question": {"1": 0, "2": 75, "3": 0}},
}


@pytest.fixture
def files(tmp_path):
    """The three questions and the two students' answers."""
    return write_jsonl(tmp_path / "a.jsonl", ANSWERS), "--data", write_jsonl(tmp_path / "q.jsonl", QUESTIONS)


def board(*arguments):
    ran = run_score("facts", *arguments, "--format", "json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def check_board(data, expected):
    assert {m["model"] for m in data["models"]} == set(expected)
    for model in data["models"]:
        for field, value in expected[model["model"]].items():
            assert model[field] == pytest.approx(value), (model["model"], field)


# -- Scores --


def test_scores_are_those_worked_out_by_hand(files):
    data = board(*files)
    assert (data["questions"], data["facts"], data["specific"], data["match"]) == (3, 7, 2, "turkish")
    check_board(data, TURKISH)


def test_match_reference_gives_the_published_rule(files):
    data = board(*files, "--match", "reference")
    assert data["match"] == "reference"
    check_board(data, REFERENCE)


def test_the_table_shows_each_figure_and_the_published_score_beside(files):
    ran = run_score("facts", *files)
    assert ran.code == 0 and ran.err == ""
    assert "3 questions, 7 facts, 2 of them specific in 2 questions (match: turkish)" in ran.out
    cells = {line.split()[1]: line.split()[2:] for line in ran.out.splitlines() if re.match(r"\d\. ", line)}
    assert cells["Ayşe"] == ["58.33", "100.00", "2/2", "0", "1", "50.00", "0"]
    assert cells["Burak"] == ["50.00", "0.00", "0/2", "2", "0", "25.00", "3"]
    assert "One question a topic" in ran.out and "signature: terazi" in ran.out


def test_the_paired_comparison_has_difference_interval_and_p(files):
    """Differences -1, -1/4, +1: mean -1/12. No sign flip gives a smaller |sum| than 1/4, so p = 1. Fisher on 0/2 against 2/2: 2 of 6 tables."""
    note = next(line for line in run_score("facts", *files).out.splitlines() if line.startswith("Burak against Ayşe"))
    found = re.fullmatch(r"Burak against Ayşe: -8\.3 points \[(-?[\d.]+), (-?[\d.]+)\], p = 1\.000; specific hits pooled: p = 0\.333", note)
    assert found and -100 <= float(found[1]) < -8.3 < float(found[2]) <= 100


@pytest.mark.parametrize(
    "found, facts, markers, expected",
    [(4, 4, 0, 1), (4, 4, 1, 0.75), (3, 4, 1, 0.5), (1, 4, 1, 0), (1, 4, 2, 0), (5, 5, 4, 0), (5, 5, 9, 0), (2, 3, 1, 5 / 12)],
)
def test_puan_is_kapsam_less_a_quarter_a_marker_never_below_zero(found, facts, markers, expected):
    assert float(score.fact_score(found, facts, markers)) == pytest.approx(expected)


def test_a_marker_denied_once_and_asserted_once_is_asserted():
    result = score.match_turkish(score.fact_sheet(QUESTIONS[0]), score.fold("Görevli yer genel mahkeme değildir; dava genel mahkemede açılır."))
    assert (result.asserted, result.denied) == ([0], [])


def marked(found, asserted, published, differ):
    return score.Marked(score.FactResult(found, asserted, []), score.Fraction(published), differ, True)


def test_figures_of_a_model_with_two_attempts_at_one_question_and_none_at_another():
    marks = {"1": [marked([True, False], [0], "1/2", 1), marked([True, True], [], "1", 0)], "3": [marked([True], [], "1", 0)]}
    scored = score.score_fact_model("m", marks, {"1": [True, False], "2": [True, False], "3": [False]})
    # puan: question 1 (1/2 - 1/4 and 1) / 2 = 5/8, question 2 nothing, question 3 full: 13/8 over 3. Strict: 1 of 1 twice, 0 of 1; 3 has none.
    assert scored.figures == {
        "model": "m", "score": score.Fraction(1300, 24), "strict": 50, "specific_found": 2, "specific": 3, "false_markers": 1, "unanswered": 1,
        "as_published": score.Fraction(700, 12), "facts_that_differ": 1, "attempts": 2, "by_question": {"1": score.Fraction(125, 2), "2": 0, "3": 100}}
    assert scored.right == {"1": False, "2": False, "3": True}
    assert score.score_fact_model("m", {}, {}).figures["attempts"] == 0


def test_attempts_of_a_question_are_averaged(tmp_path, files):
    twice = [*ANSWERS, *[{**a, "answer": ""} for a in ANSWERS]]
    data = board(write_jsonl(tmp_path / "b.jsonl", twice), *files[1:])
    assert {m["model"]: m["score"] for m in data["models"]} == pytest.approx({"Ayşe": 175 / 6, "Burak": 25})
    assert {m["model"]: m["unanswered"] for m in data["models"]} == {"Ayşe": 4, "Burak": 3}


def test_the_output_does_not_depend_on_the_order_of_rows(tmp_path, files):
    shuffled = ANSWERS[:]
    random.Random(1).shuffle(shuffled)
    other = write_jsonl(tmp_path / "b.jsonl", shuffled)
    for form in ("text", "md", "csv", "json"):
        assert run_score("facts", *files, "--format", form).out == run_score("facts", other, *files[1:], "--format", form).out


def test_equal_scores_share_a_rank(tmp_path, files):
    data = board(write_jsonl(tmp_path / "b.jsonl", [*ANSWERS, *[{**a, "model": "Cem"} for a in ANSWERS if a["model"] == "Ayşe"]]), *files[1:])
    assert [(m["model"], m["rank"]) for m in data["models"]] == [("Ayşe", 1), ("Cem", 1), ("Burak", 3)]


# -- Forms of output --


def test_markdown_and_csv_hold_the_same_figures(files):
    md = run_score("facts", *files, "--format", "md").out
    assert "| 1. Ayşe | 58.33 | 100.00 | 2/2 | 0 | 1 | 50.00 | 0 |" in md and "| --- | ---: |" in md
    rows = list(csv.reader(io.StringIO(run_score("facts", *files, "--format", "csv").out)))
    assert ["2. Burak", "50.00", "0.00", "0/2", "2", "0", "25.00", "3"] in rows
    assert rows[0][:3] == ["model", "score", "strict"]               # a spreadsheet takes the first row for the head


def test_a_hostile_name_starts_no_formula_and_breaks_no_table(tmp_path, files):
    names = ["=1+1", "@SUM(A1)", "+1", "-2+3", "a|b\nc", "<script>alert(1)</script>"]
    other = write_jsonl(tmp_path / "b.jsonl", [{**ANSWERS[0], "model": name} for name in names])
    cells = [c for row in csv.reader(io.StringIO(run_score("facts", other, *files[1:], "--format", "csv").out)) for c in row]
    assert not [c for c in cells if c[:1] in tuple("=+@\t\r") or (c[:1] == "-" and not re.fullmatch(r"-|-[\d.]+", c))]
    md = run_score("facts", other, *files[1:], "--format", "md").out
    assert "<script>" not in md and "a\\|b c" in md


def test_explain_says_what_was_found_where_missed_and_wrong(files):
    ran = run_score("facts", *files, "--explain")
    page = ran.out[ran.out.index("# Ayşe") : ran.out.index("# Burak")]
    assert '- bulundu: yedi gün (spesifik) (1. satır: "Yedi günde' in page
    assert re.search(r'- bulundu: itiraz \(2\. satır: ".*itiraz', page) and "- eksik: alacaklı" in page
    assert "- sayılmadı, cevap bunu reddediyor: %40" in page and "- Cevap yok." in page
    page = ran.out[ran.out.index("# Burak") :]
    assert (
        "- eksik: yedi gün (spesifik)" in page
        and re.search(r'- YANLIŞ: genel mahkeme \(1\. satır: ".*genel mahkeme', page)
        and "- YANLIŞ: süresiz" in page
    )
    assert "Örnek cevap: Yedi gün içinde icra mahkemesine." in page


def test_a_page_says_what_the_strict_score_is(files):
    assert run_score("facts", *files, "--explain").out.count("Katı puan yalnızca spesifik bilgilerin") == 2


def test_more_answers_under_one_name_than_others_have_are_said(tmp_path, files):
    assert "two people of one name" not in run_score("facts", *files).out
    twice = write_jsonl(tmp_path / "b.jsonl", [*ANSWERS, *[a for a in ANSWERS if a["model"] == "Ayşe"]])
    assert "\nAyşe: more answers to a question than others have" in run_score("facts", twice, *files[1:]).out


def test_explain_dir_writes_one_page_a_student_inside_the_folder(tmp_path, files):
    names = ["Ayşe Çelik", "../../kaçak", "a/b", "A/B", "CON", "..", "Işıl\nİnce", "x" * 300]
    other = write_jsonl(tmp_path / "b.jsonl", [{**ANSWERS[0], "model": name} for name in names])
    ran = run_score("facts", other, *files[1:], "--explain-dir", tmp_path / "out" / "sayfalar")
    assert ran.code == 0, ran.err
    pages = sorted((tmp_path / "out" / "sayfalar").iterdir())
    assert len(pages) == len(names) and all(p.suffix == ".md" for p in pages) and not list(tmp_path.parent.glob("kaçak*"))
    assert (tmp_path / "out" / "sayfalar" / "Ayşe Çelik.md").read_text(encoding="utf-8").startswith("# Ayşe Çelik\n")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.jsonl", "b.jsonl", "out", "q.jsonl"]


@settings(max_examples=60, deadline=None)
@given(st.text(st.sampled_from("yedigün icamhks.\n\u00a0\u0307İIı**'-"), max_size=40), st.text(st.sampled_from("abc .\n*'-İ\u0307"), max_size=40))
def test_the_place_named_is_where_the_phrase_stands(before, after):
    text = f"{before} Haczedilmezlik {after}"
    found = re.search(r"\((\d+)\. satır: \"(.*)\"\)", score._place(text, [score.phrase("haczedilmezlik")]))
    assert found and "Haczedilmezlik" in found[2] and int(found[1]) == text[: text.index("Haczedilmezlik")].count("\n") + 1


def test_verdict_rows_have_the_documented_fields_and_report_recomputes_the_score(tmp_path, files):
    out = tmp_path / "v.jsonl"
    ran = run_score("facts", *files, "-o", out, "--format", "json")
    rows = read_jsonl(out)
    verdicts = {(r["model"], r["question_id"], r["criterion_id"]): r for r in rows if "criterion_id" in r}
    attempts = [r for r in rows if r.get("row") == "attempt"]
    assert len(verdicts) == 2 * (7 + 3) and len(attempts) == 6
    assert all(
        {"suite", "model", "question_id", "attempt", "criterion_id", "judge", "dimension", "verdict", "by", "match", "answer_sha", "rubric"}
        <= r.keys()
        for r in verdicts.values()
    )
    assert {k[1:]: r["verdict"] for k, r in verdicts.items() if k[0] == "Ayşe"} == {
        ("1", "f1"): "PASS",
        ("1", "f2"): "PASS",
        ("1", "y1"): "PASS",
        ("1", "y2"): "PASS",
        ("2", "f1"): "PASS",
        ("2", "f2"): "PASS",
        ("2", "f3"): "PASS",
        ("2", "f4"): "FAIL",
        ("2", "y1"): "PASS",
        ("3", "f1"): "FAIL",
    }
    assert verdicts["Burak", "1", "y1"]["verdict"] == "FAIL" and {r["by"] for r in verdicts.values()} == {"code", "missing"}
    assert {r["dimension"] for r in verdicts.values()} == {"fact", "specific", "marker"}
    report = run_score("report", out, *files[1:], "--format", "json")
    assert report.code == 0, report.err
    for mine, theirs in zip(json.loads(ran.out)["models"], json.loads(report.out)["models"], strict=True):
        assert {k: theirs[k] for k in mine} == mine


def test_markers_of_a_missing_answer_are_null(tmp_path, files):
    out = tmp_path / "v.jsonl"
    run_score("facts", write_jsonl(tmp_path / "b.jsonl", [{"question_id": "1", "answer": ""}]), *files[1:], "-o", out)
    assert [(r["criterion_id"], r["verdict"], r["by"]) for r in read_jsonl(out) if "criterion_id" in r] == [
        ("f1", "FAIL", "missing"),
        ("f2", "FAIL", "missing"),
        ("y1", None, "missing"),
        ("y2", None, "missing"),
    ]


@pytest.mark.parametrize("match", ["turkish", "reference"])
def test_report_recomputes_a_class_of_all_41_questions(tmp_path, match):
    out = tmp_path / "v.jsonl"
    ran = run_score("facts", DATA / "examples" / "sinif.csv", "--match", match, "-o", out, "--format", "json")
    report = run_score("report", out, "--format", "json")
    assert report.code == 0, report.err
    for mine, theirs in zip(json.loads(ran.out)["models"], json.loads(report.out)["models"], strict=True):
        assert {k: theirs[k] for k in mine} == mine


# -- The published rule --


def published(cevap, anahtar_bilgiler, yanlis_isaretler):
    """The card's rule, written down again: ordinary lower case, ı to i on both sides, any substring."""

    def low(s):
        return s.lower().replace("ı", "i")

    hay = low(cevap)
    share = len([fact for fact in anahtar_bilgiler if [v for v in fact if low(v) in hay]]) / len(anahtar_bilgiler)
    wrong = len([m for m in yanlis_isaretler if low(m) in hay])
    return max(0.0, share - min(wrong, 4) * 0.25)


def random_answer(rng, question):
    pieces = [rng.choice(v) for v in question["anahtar_bilgiler"]] + question["yanlis_isaretler"] + question["referans_cevap"].split()
    text = " ".join(rng.choices(pieces, k=rng.randint(0, 30)))
    return rng.choice([str, str.upper, str.capitalize, str.title, lambda s: s.replace("i", "İ"), lambda s: s.replace(" ", "  ")])(text) or "yok"


def test_match_reference_equals_the_published_rule_on_random_texts(tmp_path):
    rng = random.Random(7)
    rows = [{"model": f"m{k}", "question_id": str(q["id"]), "answer": random_answer(rng, q)} for k in range(20) for q in BANK]
    by_id = {str(q["id"]): q for q in BANK}
    data = board(write_jsonl(tmp_path / "a.jsonl", rows), "--match", "reference")
    got = {(m["model"], q): v for m in data["models"] for q, v in m["by_question"].items()}
    expected = {
        (r["model"], r["question_id"]): 100
        * published(r["answer"], by_id[r["question_id"]]["anahtar_bilgiler"], by_id[r["question_id"]]["yanlis_isaretler"])
        for r in rows
    }
    assert got == pytest.approx(expected)
    assert len(set(expected.values())) > 10
    turkish = board(tmp_path / "a.jsonl")
    assert {m["model"]: m["as_published"] for m in turkish["models"]} == pytest.approx({m["model"]: m["score"] for m in data["models"]})


@settings(max_examples=400, deadline=None)
@given(
    st.text(st.sampled_from("abiıİI\u0307şŞ gün73%. "), max_size=30),
    st.lists(
        st.lists(st.text(st.sampled_from("biıİgün7% "), min_size=1, max_size=4).filter(str.strip), min_size=1, max_size=2), min_size=1, max_size=4
    ),
)
def test_match_reference_equals_the_published_rule_bug_for_bug(text, facts):
    sheet = score.fact_sheet({"anahtar_bilgiler": facts, "yanlis_isaretler": [f[0] for f in facts[:2]]})
    result = score.match_reference(sheet, score.lower(text))
    assert score.examine(sheet, score.Answer("iik", "m", "1", 1, text, "ok", "", {}))[1] == result        # as the command goes about it
    assert float(result.puan) == pytest.approx(
        published(text, facts, [f[0] for f in facts[:2]])
    )


# -- The shipped questions --


def test_the_bank_has_41_questions_and_25_specific_facts_in_19(tmp_path):
    fields = {"id", "konu", "madde", "soru", "referans_cevap", "anahtar_bilgiler", "yanlis_isaretler"}
    assert [q["id"] for q in BANK] == list(range(1, 42)) and all(set(q) == fields for q in BANK)
    assert len({q["konu"] for q in BANK}) == 41 and all(3 <= len(q["anahtar_bilgiler"]) <= 6 and q["yanlis_isaretler"] for q in BANK)
    out = run_score("facts", write_jsonl(tmp_path / "a.jsonl", [{"question_id": 1, "answer": "x"}])).out
    assert re.search(r"41 questions, \d+ facts, 25 of them specific in 19 questions", out)


@pytest.mark.parametrize("match", ["turkish", "reference"])
def test_each_reference_answer_scores_100_with_no_false_marker(tmp_path, match):
    rows = [{"question_id": q["id"], "answer": q["referans_cevap"]} for q in BANK]
    model = board(write_jsonl(tmp_path / "a.jsonl", rows), "--match", match)["models"][0]
    assert set(model["by_question"].values()) == {100.0} and model["false_markers"] == 0 and model["strict"] == 100 and model["specific_found"] == 25


@pytest.mark.parametrize("question", BANK, ids=lambda q: str(q["id"]))
def test_to_repeat_the_question_finds_no_fact_and_no_marker(question):
    result = score.match_turkish(score.fact_sheet(question), score.fold(question["soru"]))
    assert (any(result.found), result.asserted) == (False, [])


@pytest.mark.parametrize("question", BANK, ids=lambda q: str(q["id"]))
def test_each_fact_stands_in_one_sentence_without_which_it_is_lost(question):
    sheet = score.fact_sheet(question)
    sentences = re.split(r"(?<=[.!?])\s+(?=[A-ZÇĞİÖŞÜ])", question["referans_cevap"])
    for number, fact in enumerate(question["anahtar_bilgiler"]):
        holds = [k for k, s in enumerate(sentences) if score.match_turkish(sheet, score.fold(s)).found[number]]
        assert len(holds) == 1, (fact, holds)
        rest = " ".join(s for k, s in enumerate(sentences) if k not in holds)
        assert not score.match_turkish(sheet, score.fold(rest)).found[number], fact


@pytest.mark.parametrize(
    "variant, specific",
    [
        ("üç gün", True),
        ("3 gün", True),
        ("bir yıl", True),
        ("altı ay", True),
        ("%20", True),
        ("yüzde on beş", True),
        ("üçte iki", True),
        ("1/4", True),
        ("1.500 TL", True),
        ("bin lira", True),
        ("15.06.2012", True),
        ("iki tanık", True),
        ("2 nüsha", True),
        ("m. 65", False),
        ("65. madde", False),
        ("2004 sayılı Kanun", False),
        ("bir dilekçe", False),
        ("icra mahkemesi", False),
        ("onay", False),
        ("birlikte", False),
        ("6098 sayılı", False),
        ("üçüncü kişi", False),
        ("15/06/2012", True),
        ("15 Haziran 2012", True),
        ("1/10", True),
        ("İİK 89/1 ihbarnamesi", False),
        ("TBK 344/1", False),
    ],
)
def test_a_fact_is_specific_by_duration_rate_amount_date_or_number_with_its_noun(variant, specific):
    assert score.is_specific(variant) is specific


def test_the_shipped_class_is_scored_without_installing_anything(tmp_path):
    """A copy of score.py with data/ and nothing else, in a Python without site packages."""
    shutil.copy(ROOT / "score.py", tmp_path)
    shutil.copytree(DATA, tmp_path / "data")
    ran = run_score("facts", tmp_path / "data" / "examples" / "sinif.csv", script=tmp_path / "score.py", flags=("-I", "-S"))
    assert ran.code == 0 and len(re.findall(r"^\d+\. ", ran.out, re.M)) >= 5, ran.err
    assert ran.out == run_score("facts", DATA / "examples" / "sinif.csv").out


def test_examining_an_answer_leaves_the_published_rule_as_it_is():
    """Whatever stands around a spelling (markup, tags, addresses, capitals, spaces), both rules together find by the published one what it finds."""
    generator = random.Random(7)
    questions = [json.loads(line) for line in (ROOT / "data" / "iik_bench.jsonl").read_text(encoding="utf-8").splitlines()]
    dress = ("{}", " {} ", "**{}**", "<b>{}</b>", "https://ornek.test/{}", "[x]({})", "x{}x", "\n{}\n", "\u00ad{}’", "½{}%", "{}  \t")
    for turn in range(600):
        question = generator.choice(questions)
        spellings = [v for fact in question["anahtar_bilgiler"] for v in fact] + question["yanlis_isaretler"]
        said = [generator.choice(dress[:2] if turn % 2 else dress).format(generator.choice((str, str.upper, str.title))(v)) for v in generator.sample(spellings, 4)]
        text = "".join(said)
        lowered = text.lower().replace("ı", "i")
        _, found = score.examine(score.fact_sheet(question), score.Answer("iik", "m", "1", 1, text, "ok", "", {}))
        assert found.found == [any(v.lower().replace("ı", "i") in lowered for v in fact) for fact in question["anahtar_bilgiler"]]
        assert found.asserted == [n for n, y in enumerate(question["yanlis_isaretler"]) if y.lower().replace("ı", "i") in lowered]
