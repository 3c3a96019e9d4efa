"""The boards: every figure computed by hand from tiny verdict files, the same bytes for the same rows, a database as a second opinion."""

from __future__ import annotations

import csv
import io
import json
import random
import tracemalloc
from pathlib import Path

import pytest
from conftest import DATA, FIXTURES, read_jsonl, run_here, run_score, write_jsonl

import score

QA = {"id": "qa", "area": "borclar", "difficulty": "easy", "dims": ("issue", "rule", "application", "conclusion")}
QB = {"id": "qb", "area": "vergi", "difficulty": "hard", "dims": ("issue", "rule")}


def question(id: str, area: str, difficulty: str, dims: tuple[str, ...]) -> dict:
    return {"id": id, "area": area, "difficulty": difficulty, "task": "research", "question": f"Soru {id}?", "service": "legislation",
            "as_of": "2026-08-22", "canary": "-", "gold": [],
            "criteria": [{"id": f"c{n}", "dimension": d, "rule": f"Kural {n}", "elements": [{"text": "Unsur"}], "reference": ""} for n,
                         d in enumerate(dims, 1)]}


QUESTIONS = [question(**QA), question(**QB)]


def attempt(model: str, q: str, n: int, verdicts: str, *, cited: int = 0, unverified: int = 0, status: str = "ok", flagged: bool = False,
            **more) -> list[dict]:
    """The rows of an attempt; verdicts by letter: P, F, n for null."""
    key = {"suite": "irac", "model": model, "question_id": q, "attempt": n}
    dims = next(row for row in (QA, QB) if row["id"] == q)["dims"]
    judged = {"judge": "j", "by": "missing" if status == "timeout" else "judge", "template": "t1", "flagged": flagged, "quote_found": True,
              "refused": []}
    return [{**key, "row": "attempt", "status": status, "answered": status != "timeout", "cited": cited, "unverified": ["x"] * unverified,
             "tool_record": True, "tools": ["ara"], "seconds": None, "cost": None, "usage": None, **more},
            *[{**key, "criterion_id": f"c{k}", "dimension": d, "verdict": {"P": "PASS", "F": "FAIL", "n": None}[v], **judged}
              for k, (v, d) in enumerate(zip(verdicts, dims, strict=True), 1)]]


ROWS = [
    *attempt("A", "qa", 1, "PPPP", cited=4, unverified=1, seconds=10, cost=0.1, usage={"total_tokens": 100}),
    *attempt("A", "qa", 2, "PPPF", seconds=20, cost=0.2, usage={"prompt_tokens": 150, "completion_tokens": 50}),
    *attempt("A", "qa", 3, "PPnP", cited=2, unverified=2, seconds=30, cost=0.3, usage={"total_tokens": 300}),
    *attempt("A", "qb", 1, "PP", seconds=40, cost=0.4, usage={"total_tokens": 400}),
    *attempt("A", "qb", 2, "FF", status="timeout"),
    *attempt("A", "qb", 3, "Pn", flagged=True, seconds=50, cost=0.1, usage={"total_tokens": 500}),
    *attempt("B", "qa", 1, "PPPP"), *attempt("B", "qa", 2, "PPPP"),
]


@pytest.fixture
def report(tmp_path):
    """Report on some rows through the command line, as JSON (or in another form)."""
    data = write_jsonl(tmp_path / "questions.jsonl", QUESTIONS)

    def run(rows=ROWS, *options, form="json", code=0, questions=data):
        ran = run_here("report", write_jsonl(tmp_path / "v.jsonl", rows), "--data", questions, "--format", form, *options)
        assert ran.code == code, ran.err
        return json.loads(ran.out) if form == "json" and code == 0 else ran.err if code else ran.out

    return run


@pytest.fixture
def board(report):
    return report()


def near(figure):
    return pytest.approx(figure, abs=1e-6)


# By hand. A at qa: shares 1, 3/4, 1 (a null left out) = 11/12; at qb: 1, 0 (timeout), 1/2 (a null on an answer that addresses the judge).
def test_criteria_met_is_the_mean_over_questions_of_the_mean_over_attempts(board):
    a, b = board["models"]
    assert (a["model"], a["by_question"]["qa"]["met"], a["by_question"]["qb"]["met"]) == ("A", near(1100 / 12), 50)
    assert a["met"] == near(100 * 17 / 24)
    assert b["met"] == near(100 / 3)                        # 2 of 3 attempts at qa, none at qb


def test_pass_k_needs_all_and_pass_at_k_one(board):
    a, b = board["models"]
    assert a["by_question"]["qa"]["passed"] == [True, False, True] and a["by_question"]["qb"]["passed"] == [True, False, False]
    assert (a["pass^k"], a["pass@k"], b["pass^k"], b["pass@k"]) == (0, 100, 0, 50)


def test_grounding_completed_answered_only_and_agreement(board):
    a, b = board["models"]
    assert a["grounding"] == 62.5                           # qa: (3/4 + 1 + 0) / 3, qb: (1 + 0 + 1) / 3
    assert a["completed"] == near(100 * 5 / 6) and b["completed"] == near(100 / 3)
    assert a["answered_only"] == near(100 * (11 / 12 + 3 / 4) / 2) and b["answered_only"] == 100
    assert a["agreement"] == near(100 / 3)                  # qa: 2 of the 3 without a null, qb: 0 of 2
    assert b["agreement"] == 50                             # qa: all differ from the absent third, qb: three times nothing


def test_score_is_the_weighted_sum_rounded_half_up(board, report):
    a, b = board["models"]
    assert a["score"] == 48.4375                            # 0.5 * 17/24 + 0.125 * 5/8 + 0.0625 * 5/6
    assert b["score"] == near(100 * 0.6875 / 3)
    text = report(form="text")
    assert [line.split()[:3] for line in text.splitlines()[2:4]] == [["1.", "A", "48.4"], ["2.", "B", "22.9"]]


def test_by_dimension_area_and_difficulty(board, report):
    a = board["models"][0]
    assert a["by_dimension"] == {"issue": near(100 * 5 / 6), "rule": near(100 * 2 / 3), "application": 100, "conclusion": near(200 / 3),
                                 "hygiene": None}
    rows = list(csv.reader(io.StringIO(report(form="csv"))))
    table = {rows[n][0]: rows[n - 3:n] for n in range(len(rows)) if len(rows[n]) == 1 and rows[n][0].startswith("criteria met by")}
    assert table["criteria met by area"] == [["model", "borclar", "vergi", "sirketler", "rekabet"], ["A", "91.7", "50.0", "-", "-"],
                                             ["B", "66.7", "0.0", "-", "-"]]
    assert table["criteria met by difficulty"][1] == ["A", "91.7", "-", "50.0", "-"]


def test_time_cost_and_tokens_a_question(board):
    a, b = board["models"]
    assert (a["seconds"], a["cost"], a["tokens"]) == (30, near(0.55), 750)     # (0.1 + 0.2 + 0.3) and (0.4 + 0.1); 600 and 900
    assert (b["seconds"], b["cost"], b["tokens"]) == (None, None, None)


def test_absences_nulls_and_flags_are_named(board, report):
    notes = "\n".join(board["notes"])
    assert "B: 4 of 6 attempts are absent and count as unanswered (qa/3, qb/1, qb/2, qb/3)." in notes
    assert "A: 2 verdicts on answers that address the judge." in notes
    main = next(line for line in report(form="text").splitlines() if line.startswith("1. A"))
    assert main.split()[-2] == "2"                          # one null left out, one counted as FAIL


def test_k_is_the_highest_attempt_unless_given_and_the_column_says_it(report):
    assert "pass^3" in report(form="text")
    two = report(ROWS, "--attempts", 2)
    assert two["attempts"] == 2
    assert two["models"][0]["model"] == "B" or two["models"][0]["met"] == near(100 * (7 / 8 + 1 / 2) / 2)
    assert "pass^5" in report(ROWS, "--attempts", 5, form="text")


def test_rank_shift_is_told_of_two_models_not_of_one(report):
    assert "Leaving any one question out moves no model by more than 0 places." in report()["notes"]
    assert not any("Leaving any one" in note for note in report(attempt("A", "qa", 1, "PPPP"))["notes"])


def test_verdicts_on_two_texts_of_one_answer_are_said(report):
    old, new = ([{**row, "answer_sha": sha} for row in attempt("A", "qa", 1, "PPPP")] for sha in ("1f", "2f"))
    assert any(note == "A: MIXED: verdicts on two texts of one answer at qa/1; judge it again." for note in report([*old, *new[:3]])["notes"])
    assert not any("two texts" in note for note in report([*old, *new])["notes"])


def test_weights_are_the_users_and_must_add_up(report):
    assert report(ROWS, "--weights", "1/0/0/0")["models"][0]["score"] == near(100 * 17 / 24)
    assert "add up to 1" in report(ROWS, "--weights", "1/1/0/0", code=2)
    assert "pinned by the publication" in report(form="text") and "pinned" not in report(ROWS, "--weights", "1/0/0/0", form="text")


def test_equal_scores_share_a_rank_and_the_next_place_is_left_free(report):
    rows = [r for m in ("C", "A", "B") for r in attempt(m, "qa", 1, "PPPP" if m != "B" else "PPPF")]
    assert [(m["rank"], m["model"]) for m in report(rows)["models"]] == [(1, "A"), (1, "C"), (3, "B")]


def test_a_model_with_nothing_right_has_score_zero_and_a_rank(report):
    rows = [*attempt("A", "qa", 1, "PPPP"), *attempt("Z", "qa", 1, "FFFF", status="timeout"), *attempt("Z", "qb", 1, "FF", status="timeout")]
    assert [(m["rank"], m["model"], m["score"]) for m in report(rows)["models"]][1] == (2, "Z", 0)


def test_an_attempt_with_nothing_decided_is_not_right_leaves_the_mean_and_is_named(report):
    result = report([*attempt("A", "qa", 1, "nnnn"), *attempt("A", "qa", 2, "PPPP"), *attempt("A", "qb", 1, "PP"), *attempt("A", "qb", 2, "PP")])
    a = result["models"][0]
    assert a["by_question"]["qa"] == {"met": 100, "passed": [False, True], "grounding": 100, "completed": 100}
    assert (a["met"], a["pass^k"]) == (100, 50)
    assert any("nothing is decided at qa/1" in note for note in result["notes"])


def test_a_component_without_data_is_a_dash_and_gives_no_score(report):
    verdicts_only = [row for row in attempt("A", "qa", 1, "PPPP") if "row" not in row]
    result = report(verdicts_only)
    a = result["models"][0]
    assert (a["grounding"], a["score"], a["interval"], a["rank"]) == (None, None, None, None)
    assert report(verdicts_only, form="text").splitlines()[2].split()[:4] == ["-.", "A", "-", "-"]


def test_a_criterion_without_a_row_is_said_not_taken_for_met(report):
    notes = report([row for row in attempt("A", "qa", 1, "PPPF") if row.get("criterion_id") != "c4"])["notes"]
    assert any(note.startswith("A: INCOMPLETE: 1 criteria") for note in notes)


def test_a_null_never_replaces_a_verdict_and_a_replaced_row_is_said(report):
    key = attempt("A", "qa", 1, "PPPP")
    null = {**key[1], "verdict": None}
    for rows in ([*key, null], [null, *key]):
        assert report(rows)["models"][0]["by_question"]["qa"]["passed"] == [True]
    assert any(note.startswith("MIXED: A: 1 rows") for note in report([*key, {**key[1], "verdict": "FAIL"}])["notes"])


def test_a_null_takes_no_fail_back(report):
    failed = attempt("A", "qa", 1, "FPPP")
    for rows in ([*failed, {**failed[1], "verdict": None}], [{**failed[1], "verdict": None}, *failed]):
        a = report(rows)["models"][0]["by_question"]["qa"]
        assert (a["passed"], a["met"]) == ([False], 75)     # three of four


def test_an_attempts_row_without_figures_cites_nothing_and_has_no_tool_record():
    bare = score.read_attempt({})
    assert bare == score.Attempt(True, 1, False, None, None, None, 0, 0, "row")
    assert score.read_attempt({"cited": None, "unverified": None, "tool_record": True}) == bare._replace(tool_record=True)
    assert score.read_attempt({"tools": ["ara"]}).tool_record


def test_verdicts_alone_say_whether_there_was_an_answer(report):
    """Of attempts without rows of their own: one answered, one whose answer is missing, written down in one of four criteria only."""
    rows = [row for n, v in ((1, "PPPP"), (2, "FFFF")) for row in attempt("A", "qa", n, v, status="ok" if n == 1 else "timeout") if "row" not in row]
    a = report(rows[:5])["models"][0]
    assert a["by_question"]["qa"] == {"met": 50, "passed": [True, False], "grounding": 0, "completed": 50}   # of the first nothing is known
    # qa: 1 and 0; qb absent. Grounding: 0 of the missing answer, nothing known of the first; 0 and 0 at qb.
    assert (a["completed"], a["grounding"], a["pass@k"]) == (25, 0, 50)


def test_instructions_are_those_of_the_judges_own_verdicts(report):
    rows = attempt("A", "qa", 1, "PPPP")
    rows[1] |= {"by": "code", "template": "t0"}
    board = report(rows)
    assert "template t1;" in board["signature"] and not any("instructions" in note for note in board["notes"])
    del rows[2]["template"]
    assert "template t1;" in report(rows)["signature"]


def test_agreement_is_known_from_two_attempts_on(report):
    rows = [*attempt("A", "qa", 1, "PPPP"), *attempt("A", "qa", 2, "PPFF"), *attempt("B", "qa", 1, "PPPP")]
    # A at qa: 2 of 4 alike; at qb two absent attempts, all FAIL.
    assert report(rows)["models"][0]["agreement"] == 75
    assert report(rows[-5:])["models"][0]["agreement"] is None


def test_intervals_and_groups_are_of_no_more_models_than_said(monkeypatch):
    monkeypatch.setattr(score, "INTERVALS_UP_TO", 2)
    models = [score.Scored(m, score.Fraction(50), {"met": [score.Fraction(1), score.Fraction(0)]}, {"met": score.Fraction(1)}, {}, {}) for m in "abc"]
    for few, interval, shift in ((2, (0, 100), 0), (3, None, None)):
        scored, moved = score.with_intervals(models[:few])
        assert [s.figures["interval"] for s in scored] == [interval] * few and moved == shift


def test_figures_by_question_are_of_no_more_models_than_said(monkeypatch, report):
    monkeypatch.setattr(score, "INTERVALS_UP_TO", 2)
    for models in (["A", "B"], ["A", "B", "C"]):
        found = report([row for m in models for row in attempt(m, "qa", 1, "PPPP")])["models"]
        assert [bool(m["by_question"]) for m in found] == [len(models) == 2] * len(models)


def test_verdicts_that_were_made_anew_are_not_counted_as_mixed(report):
    old = [{**row, "template": "t0"} for row in attempt("A", "qa", 1, "PPPP")]
    assert "judge instructions" not in "\n".join(report([*old, *attempt("A", "qa", 1, "PPPP")])["notes"])
    half = [*old, *attempt("A", "qa", 1, "PPPP")[:3]]
    assert "MIXED: verdicts of 2 judge instructions: t0, t1." in report(half)["notes"]


def test_mixed_providers_refused_parameters_other_wordings_and_lost_quotes_are_named(report):
    rows = [row for n in (1, 2) for row in attempt("A", "qa", n, "PPPP")]
    for row, provider in zip([r for r in rows if "criterion_id" in r], ("Google", "Vertex") * 4, strict=True):
        row |= {"served": {"model": "x", "provider": provider}, "refused": ["temperature"], "rubric": "old", "quote_found": provider == "Google"}
    notes = "\n".join(report(rows)["notes"])
    assert "A: judged through several providers: Google, Vertex." in notes
    assert "The judge's server refused: temperature." in notes
    assert "A: MIXED: 8 verdicts rest on another wording" in notes
    assert "A: 50.0% of the judge's quotes do not stand in the answer." in notes


def test_verdicts_of_two_judges_are_refused_and_one_can_be_chosen(report):
    rows = [*ROWS, *[{**row, "judge": "other"} for row in attempt("A", "qa", 1, "FFFF") if "judge" in row]]
    assert "several judges (j, other)" in report(rows, code=1)
    assert report(rows, "--judge", "j")["models"][0]["score"] == 48.4375
    assert "no verdicts of nobody" in report(rows, "--judge", "nobody", code=2)


def test_the_order_of_rows_does_not_matter_to_a_byte(report):
    shuffled = ROWS[:]
    random.Random(3).shuffle(shuffled)
    for form in ("text", "md", "csv", "json"):
        assert report(ROWS, form=form) == report(shuffled, form=form)


def test_all_forms_end_with_the_signature_long_and_short(report):
    long = report()["signature"]
    for told in ("terazi ", "suite irac", "data questions.jsonl", "judge j", "template t1", "attempts 3", "weights 0.5000/0.3125/0.1250/0.0625",
                 f"rows {len(ROWS)}", "short "):
        assert told in long
    assert all(long in report(form=form).replace("\\", "") for form in ("text", "md", "csv"))
    assert report(ROWS, "--attempts", 2)["signature"].split("short ")[1] != long.split("short ")[1]


def test_csv_cells_start_no_formula_and_markdown_cells_make_no_cell_or_tag(report):
    for name in ("=HYPERLINK(1)", "+1", "@x", "-2+3"):
        cells = [cell for row in csv.reader(io.StringIO(report(attempt(name, "qa", 1, "PPPP"), form="csv"))) for cell in row]
        assert any(name in cell for cell in cells) and not any(cell[:1] in "=+@" or cell.startswith("-2") for cell in cells if cell)
    hostile = report(attempt("a|<img src=x>\n\x1b[31m", "qa", 1, "PPPP"), form="md")
    assert "<img" not in hostile and "\x1b" not in hostile and "a\\|" in hostile


@pytest.mark.parametrize(("change", "said"), [
    ({"attempt": "1"}, '"attempt" is "1"'), ({"attempt": 0}, '"attempt" is 0'), ({"model": ["x"]}, '"model" is'),
    ({"verdict": "PASSED"}, '"verdict" is "PASSED"'),
    ({"criterion_id": "c9"}, 'criterion "c9"'), ({"question_id": "zz"}, 'question "zz"'), ({"suite": "x"}, '"suite" is "x"'),
    ({"judge": None}, '"judge" is null'),
    ({"verdict": ["PASS"]}, '"verdict" is ["PASS"]'), ({"served": "Google"}, "is not a verdict row"),
])
def test_a_row_that_is_none_is_named_with_its_line_and_gives_no_board(report, change, said):
    error = report([*ROWS, {**ROWS[1], **change}], code=1)
    assert f"v.jsonl:{len(ROWS) + 1}: " in error and said in error and "Traceback" not in error


@pytest.mark.parametrize("change", [{"cited": -1}, {"cited": "2"}, {"cited": 1, "unverified": ["a", "b"]}, {"seconds": "10"}, {"cost": True},
                                    {"usage": "x"}])
def test_a_figure_of_an_attempt_that_is_none_is_named(report, change):
    error = report([{**ROWS[0], **change}, *ROWS[1:]], code=1)
    assert "v.jsonl:1: " in error and next(iter(change)) in error and "Traceback" not in error


def test_ids_compare_as_text(report, tmp_path):
    data = write_jsonl(tmp_path / "numbers.jsonl", [{**QUESTIONS[0], "id": 7}])
    assert report([{**row, "question_id": 7} for row in attempt("A", "qa", 1, "PPPP")], questions=data)["models"][0]["met"] == 100


def test_interval_and_group_are_those_of_the_values_by_question(board):
    a, b = board["models"]
    values = {"qa": 0.5 * 11 / 12 + 0.125 * 7 / 12 + 0.0625, "qb": 0.25 + 0.125 * 2 / 3 + 0.0625 * 2 / 3}
    assert a["interval"] == [near(100 * min(values.values())), near(100 * max(values.values()))]     # two questions: the extremes
    assert (a["group"], b["group"]) == (1, 1)                                                        # two questions tell nothing apart


def test_spearman_of_cost_with_score_is_told_from_three_models(report):
    rows = [*attempt("A", "qa", 1, "PPPP", cost=1.0), *attempt("B", "qa", 1, "PPPF", cost=2.0), *attempt("C", "qa", 1, "PPFF", cost=3.0)]
    notes = "\n".join(report(rows)["notes"])
    assert "Spearman's rho of cost with score over 3 models: -1.00." in notes and "cost a question: A 1.00, B 2.00, C 3.00." in notes


def test_a_database_makes_the_same_board_from_the_same_rows(report, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    generator = random.Random(8)
    rows = ROWS + [row for q in ("qa", "qb") for n in (1, 2, 3) for row in attempt(
        "C", q, n, "".join(generator.choice("PPPFn") for _ in (QA if q == "qa" else QB)["dims"]), cited=5, unverified=generator.randrange(5),
        flagged=generator.random() < 0.3)]
    ours = report(rows)["models"]
    theirs = duckdb.execute((FIXTURES / "board.sql").read_text(encoding="utf-8"), {
        "verdicts": str(tmp_path / "v.jsonl"), "questions": str(tmp_path / "questions.jsonl"), "k": 3}).fetchall()
    assert [row[0] for row in theirs] == [m["model"] for m in ours]
    for row, m in zip(theirs, ours, strict=True):
        assert list(row[1:]) == pytest.approx([m[f] for f in ("score", "met", "pass^k", "pass@k", "grounding", "completed")], abs=1e-6)


def test_rows_of_facts_come_back_as_the_table_of_facts(tmp_path):
    questions = read_jsonl(DATA / "iik_bench.jsonl")
    answers = [{"question_id": q["id"], "model": m, "answer": q["referans_cevap"] if (q["id"] + k) % 3 else q["yanlis_isaretler"][0]
                if q["yanlis_isaretler"] else ""}
               for k, m in enumerate(("bir", "iki")) for q in questions if (q["id"] + k) % 5]
    file, rows = write_jsonl(tmp_path / "a.jsonl", answers), tmp_path / "v.jsonl"
    facts, again = (run_score("facts", file, "-o", rows), run_score("report", rows))
    assert facts.code == again.code == 0
    assert again.out.split("\nsignature")[0] == facts.out.split("\nsignature")[0] and again.out.split("by topic")[1] == facts.out.split("by topic")[1]


def test_a_missing_answer_to_a_question_without_markers_is_unanswered_in_both(tmp_path):
    question = {"id": 1, "konu": "k", "madde": "m", "soru": "s?", "referans_cevap": "üç gün", "anahtar_bilgiler": [["üç gün"]],
                "yanlis_isaretler": []}
    data = write_jsonl(tmp_path / "q.jsonl", [question])
    file = write_jsonl(tmp_path / "a.jsonl", [{"question_id": 1, "model": "m", "answer": ""}])
    run_score("facts", file, "--data", data, "-o", tmp_path / "v.jsonl")
    assert json.loads(run_score("report", tmp_path / "v.jsonl", "--data", data, "--format", "json").out)["models"][0]["unanswered"] == 1


def test_rows_all_alike_have_their_rule_of_matching_in_the_signature(tmp_path):
    question = {"id": 1, "konu": "k", "madde": "m", "soru": "s?", "referans_cevap": "üç gün", "anahtar_bilgiler": [["üç gün"]],
                "yanlis_isaretler": []}
    data = write_jsonl(tmp_path / "q.jsonl", [question])
    file = write_jsonl(tmp_path / "a.jsonl", [{"question_id": 1, "model": "m", "answer": "üç gün"}])
    for match in ("turkish", "reference"):
        run_score("facts", file, "--data", data, "--match", match, "-o", tmp_path / f"{match}.jsonl")
    assert "; match turkish;" in run_score("report", tmp_path / "turkish.jsonl", "--data", data).out
    assert "several rules" in run_score("report", tmp_path / "turkish.jsonl", tmp_path / "reference.jsonl", "--data", data).err


def test_rows_of_two_rules_of_matching_are_refused(tmp_path):
    file = write_jsonl(tmp_path / "a.jsonl", [{"question_id": 1, "model": "m", "answer": "üç gün"}])
    for match in ("turkish", "reference"):
        run_score("facts", file, "--match", match, "-o", tmp_path / f"{match}.jsonl")
    ran = run_score("report", tmp_path / "turkish.jsonl", tmp_path / "reference.jsonl")
    assert ran.code == 1 and "several rules (reference, turkish)" in ran.err


KATEGORI = [{"id": f"k{n}", "area": "TBK", "category": c, "question": "Soru?", "reference_answer": "Cevap.", "references": [], "as_of": "2026-08-22",
             "canary": "-"}
            for n, c in enumerate(score.CATEGORIES, 1)]


def grades(model: str, q: str, by: dict[str, tuple], n: int = 1) -> list[dict]:
    """The rows of graders: score (None: no usable reply), hallucination, evasion."""
    return [{"suite": "kategori", "model": model, "question_id": q, "attempt": n, "criterion_id": "score", "judge": j, "by": "judge",
             "dimension": "x",
             "verdict": s, "hallucination": h, "evasion": e, "template": "t", "rubric": "r"} for j, (s, h, e) in by.items()]


# k1 issue_spotting, k2 rule_recall, k3 rule_application, k4 rule_conclusion, k5 interpretation, k6 rhetorical
GRADED = [
    *grades("m", "k1", {"g1": (2, False, False), "g2": (3, False, False)}),                                     # 2.5
    *grades("m", "k2", {"g1": (3, True, False), "g2": (3, True, False)}),                                       # 3, capped at 1
    *grades("m", "k3", {"g1": (0, False, False), "g2": (1, True, False), "g3": (1, True, False)}),              # third asked: median 1
    *grades("m", "k4", {"g1": (3, False, False), "g2": (1, False, False), "g3": (2, False, False)}),            # median 2
    *grades("m", "k5", {"g1": (0, False, True), "g2": (0, False, True)}),                                       # 0, evasion
]                                                                                                               # k6: no answer, 0


@pytest.fixture
def graded(tmp_path):
    data = write_jsonl(tmp_path / "k.jsonl", KATEGORI)

    def run(rows, *options):
        ran = run_here("report", write_jsonl(tmp_path / "g.jsonl", rows), "--data", data, "--format", "json", *options)
        return json.loads(ran.out) if ran.code == 0 else ran.err

    return run


def test_kategori_board_by_hand(graded):
    m = graded(GRADED)["models"][0]
    assert m["by_category"] == {"issue_spotting": 2.5, "rule_recall": 1, "rule_application": 1, "rule_conclusion": 2, "interpretation": 0,
                                "rhetorical": 0}
    assert m["total"] == near(100 * (15 * 2.5 + 10 * 1 + 20 * 1 + 20 * 2) / 300)
    assert m["hallucination"] == 50                         # k2 and k3 of the four answered: evasion and the absent answer are no answers
    assert m["non_response"] == near(100 * 2 / 6)
    assert m["tiebreak"] == near(100 * 2 / 6)
    assert m["interval"][0] <= m["total"] <= m["interval"][1]


def test_kategori_interval_keeps_the_weights_and_stays_below_100(tmp_path):
    """All full marks but one zero: resampling over all questions would give some category more questions than it has, and more than 100."""
    questions = [{**row, "id": f"{row['id']}{n}"} for row in KATEGORI for n in "ab"]
    data = write_jsonl(tmp_path / "k.jsonl", questions)
    rows = [row for q in questions for row in grades("m", q["id"], dict.fromkeys(("g1", "g2"), (0 if q["id"] == "k6b" else 3, False, False)))]
    ran = run_here("report", write_jsonl(tmp_path / "g.jsonl", rows), "--data", data, "--format", "json")
    m = json.loads(ran.out)["models"][0]
    # rhetorical has 15%: its two questions give 2, 1 or 0 full marks in a resample, so 100, 92.5 or 85.
    assert (m["total"], m["interval"]) == (92.5, [85, 100])


def test_kategori_without_a_usable_score_is_listed_out_of_the_base_and_the_total(graded):
    board = graded([*GRADED[:-2], *grades("m", "k5", {"g1": (None, None, None), "g2": (3, False, False), "g3": (0, False, False)})])
    m = board["models"][0]
    assert (m["unscored"], m["by_category"]["interpretation"], m["total"]) == (["k5"], None, None)
    assert any("m: unscored, out of the base: k5" in note for note in board["notes"])


def test_kategori_with_one_grader_has_no_scores_and_says_why(graded):
    board = graded(grades("m", "k1", {"g1": (2, False, False)}))
    assert any("the rule needs two" in note for note in board["notes"]) and board["models"][0]["unscored"] == ["k1"]


def test_where_three_graded_every_answer_the_usual_third_is_the_third(graded):
    rows = grades("m", "k1", {"a/x": (2, False, False), "z/y": (3, False, False), score.TIEBREAK: (0, False, False)})
    assert graded(rows)["models"][0]["by_question"]["k1"] == 2.5        # the mean of the two; the third's 0 would make a median of 2


def test_a_grader_who_comes_later_says_nothing_for_another(graded):
    rows = [*grades("m", "k1", {"g1": (2, False, False)}), *grades("m", "k2", dict.fromkeys(("g1", "g2", "g3"), (1, False, False))),
            *grades("m", "k1", {"g3": (3, False, False)})]
    assert graded(rows)["models"][0]["by_question"]["k1"] == 2.5        # of g2 there is no grade at k1


def test_kategori_of_two_runs_with_other_graders_or_wordings_is_not_mixed_silently(graded):
    assert "4 graders (g1, g2, x1, x2)" in graded([*GRADED[:2], *grades("m", "k1", {"x1": (2, False, False), "x2": (3, False, False)})])
    other = [{**row, "template": "t9", "rubric": "r9"} for row in grades("n", "k1", {"g1": (2, False, False), "g2": (2, False, False)})]
    notes = "\n".join(graded([*GRADED, *other])["notes"])
    assert "MIXED: grades of 2 grading instructions: t, t9." in notes and "several wordings of reference answer or rubric at k1" in notes


def test_a_grader_of_the_models_own_family_is_marked(tmp_path):
    data = write_jsonl(tmp_path / "k.jsonl", KATEGORI)
    rows = [*grades("anthropic/claude-x", "k1", {"anthropic/claude-opus-4.8": (2, False, False), "google/g": (2, False, False)}),
            *grades("z/other", "k1", {"anthropic/claude-opus-4.8": (2, False, False), "google/g": (2, False, False)})]
    text = run_score("report", write_jsonl(tmp_path / "g.jsonl", rows), "--data", data).out
    assert "anthropic/claude-x *" in text and "z/other *" not in text


def test_memory_grows_with_attempts_not_with_rows():
    questions = score.read_questions(DATA / "irac.jsonl", "irac")
    rows = [{"suite": "irac", "model": "m", "question_id": q, "attempt": 1, "criterion_id": c["id"], "judge": "j", "verdict": "PASS", "by": "judge",
             "dimension": c["dimension"], "quote": "x" * 500} for q, row in questions.items() for c in row["criteria"]]

    def held(times: int) -> int:
        run = score.Rows("irac", questions)
        tracemalloc.start()
        for row in rows * times:
            run.add(dict(row))
        size = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        return size

    once, often = held(1), held(20)
    assert often < once + 20_000                            # twenty times the rows on the same attempts


ODD = (None, 1.5, "x", [[1]], {"a": {}}, True)
FIELDS = ("suite", "model", "question_id", "attempt", "criterion_id", "judge", "verdict", "dimension", "by", "template", "flagged", "quote_found", "served",
          "refused", "rubric", "row", "status", "cited", "unverified", "seconds", "cost", "usage", "published", "differ", "match", "hallucination",
          "evasion", "elements", "reason", "answer_sha", "tools", "tool_record", "answered")


@pytest.mark.parametrize("suite", ["irac", "kategori", "iik"])
def test_a_row_that_follows_good_ones_is_checked_like_a_first_one(suite):
    questions = score.read_questions(DATA / score.DATA_FILES[suite], suite)
    question_id = next(iter(questions))
    criterion_id = {"irac": lambda: questions[question_id]["criteria"][0]["id"], "kategori": lambda: "score", "iik": lambda: "f1"}[suite]()
    whole = {"suite": suite, "model": "m", "question_id": question_id, "attempt": 1, "criterion_id": criterion_id, "judge": "j",
             "verdict": 1 if suite == "kategori" else "PASS"}
    own = {"suite": suite, "model": "m", "question_id": question_id, "attempt": 1, "row": "attempt"}
    for start in (whole, own):
        changed = [{**start, field: value} for field in FIELDS if field != "suite" for value in (*ODD, 1.0, "", 0)]
        for row in [*changed, *({k: v for k, v in start.items() if k != field} for field in start if field != "suite")]:
            first, later = score.Rows(suite, questions), score.Rows(suite, questions)
            assert later.add(dict(whole)) == later.add(dict(own)) == []
            assert later.add(dict(row)) == first.add(dict(row)), row


@pytest.mark.parametrize("suite", ["irac", "kategori", "iik"])
def test_no_value_in_no_field_ends_in_a_traceback(suite, tmp_path):
    data = write_jsonl(tmp_path / "q.jsonl", {"irac": QUESTIONS, "kategori": KATEGORI, "iik": read_jsonl(DATA / "iik_bench.jsonl")[:1]}[suite])
    place = {"irac": ("qa", "c1", "PASS"), "kategori": ("k1", "score", 2), "iik": ("1", "f1", "PASS")}[suite]
    whole = {"suite": suite, "model": "m", "question_id": place[0], "attempt": 1, "criterion_id": place[1], "judge": "j", "verdict": place[2], "dimension": "issue"}
    for start in (whole, {**whole, "row": "attempt"}):
        for field in FIELDS:
            for value in ODD:
                file = write_jsonl(tmp_path / "v.jsonl", [{**start, field: value}])
                for command in (("report", file, "--data", data), ("agree", file, file)):
                    ran = run_here(*command)
                    assert ran.code in (0, 1, 2) and (ran.code == 0) == bool(ran.out), (field, value, command[0])


def test_readme_like_example_files_are_reported_whole(tmp_path):
    """Two suites in one file make two boards, in the suites' order."""
    iik = write_jsonl(tmp_path / "a.jsonl", [{"question_id": 1, "model": "m", "answer": "üç gün"}])
    run_score("facts", iik, "-o", tmp_path / "v.jsonl")
    first = read_jsonl(DATA / "irac.jsonl")[0]
    row = {"suite": "irac", "model": "m", "question_id": first["id"], "attempt": 1, "criterion_id": first["criteria"][0]["id"], "judge": "j",
           "verdict": "PASS",
           "dimension": "issue", "by": "judge"}
    with open(tmp_path / "v.jsonl", "a", encoding="utf-8", newline="\n") as file:
        file.write(json.dumps(row) + "\n")
    boards = json.loads(run_score("report", tmp_path / "v.jsonl", "--format", "json").out)
    assert [b["suite"] for b in boards] == ["irac", "iik"]


def test_the_query_is_as_short_as_readme_shows_it():
    assert len((Path(FIXTURES) / "board.sql").read_text(encoding="utf-8").splitlines()) <= 30
