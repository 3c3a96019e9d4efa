"""compare and agree, for all three suites, by hand; two rubrics over the same answers."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from conftest import run_here, run_score, write_jsonl
from test_report import KATEGORI, QUESTIONS, attempt, grades, near

import score

IIK = [{"id": n, "konu": "k", "madde": "m", "soru": "Soru?", "referans_cevap": "üç gün", "anahtar_bilgiler": [["üç gün"], ["mazeret"]],
        "yanlis_isaretler": ["genel mahkeme"]} for n in (1, 2, 3)]


def told(*arguments: object) -> dict:
    ran = run_here(*arguments, "--format", "json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


@pytest.fixture
def data(tmp_path):
    return write_jsonl(tmp_path / "questions.jsonl", QUESTIONS)


# First run: right three times at both. Second: at qa one FAIL in one attempt, at qb all right.
FIRST = [row for q, v in (("qa", "PPPP"), ("qb", "PP")) for n in (1, 2, 3) for row in attempt("m", q, n, v)]
SECOND = [*attempt("m", "qa", 1, "PPPP"), *attempt("m", "qa", 2, "PPFP"), *attempt("m", "qa", 3, "PPPP"),
          *[row for n in (1, 2, 3) for row in attempt("m", "qb", n, "PP")]]


def test_two_runs_difference_split_lost_and_near_misses(tmp_path, data):
    a, b = write_jsonl(tmp_path / "a.jsonl", FIRST), write_jsonl(tmp_path / "b.jsonl", SECOND)
    found = told("compare", a, b, "--data", data)
    # met: qa 11/12 instead of 1, so 1/24 less; pass^3: 1/2 less.
    assert (found["first"], found["second"]) == ("m (1)", "m (2)")
    assert found["components"]["met"] == {"first": 100, "second": near(100 * 23 / 24), "points": near(-50 / 24)}
    assert found["components"]["pass^k"]["points"] == near(-100 * 0.3125 / 2)
    assert found["difference"] == near(-50 / 24 - 15.625) == near(sum(c["points"] for c in found["components"].values()))
    assert (found["lost"], found["near_misses"], found["gained"], found["better"], found["worse"]) == (["qa"], ["qa"], [], 0, 1)
    assert (found["sign_flip_p"], found["sign_test_p"]) == (1, 1)          # one difference tells nothing
    back = told("compare", b, a, "--data", data)
    assert (back["gained"], back["lost"], back["difference"]) == (["qa"], [], near(-found["difference"]))


@pytest.mark.parametrize("second", [
    [*attempt("m", "qa", 1, "PPFF"), *attempt("m", "qa", 2, "PPPP"), *attempt("m", "qa", 3, "PPPP")],     # two in one attempt
    [*attempt("m", "qa", 1, "PPPF"), *attempt("m", "qa", 2, "PPFP"), *attempt("m", "qa", 3, "PPPP")],     # one in each of two
    [*attempt("m", "qa", 1, "PPPF"), *attempt("m", "qa", 2, "PPPP")],                                     # one, and an attempt that is absent
])
def test_a_question_lost_by_more_than_one_fail_is_no_near_miss(tmp_path, data, second):
    found = told("compare", write_jsonl(tmp_path / "a.jsonl", FIRST), write_jsonl(tmp_path / "b.jsonl", [*second, *SECOND[-9:]]), "--data", data)
    assert (found["lost"], found["near_misses"]) == (["qa"], [])


def test_both_sides_have_as_many_attempts(tmp_path, data):
    one = [row for row in FIRST if row["attempt"] == 1]
    found = told("compare", write_jsonl(tmp_path / "a.jsonl", FIRST), write_jsonl(tmp_path / "b.jsonl", one), "--data", data)
    assert found["components"]["completed"]["second"] == near(100 / 3) and found["lost"] == ["qa", "qb"]
    assert told("compare", tmp_path / "a.jsonl", tmp_path / "b.jsonl", "--data", data, "--attempts", 1)["difference"] == 0


def test_two_models_of_one_file_are_chosen_by_name(tmp_path, data):
    rows = [*attempt("x", "qa", 1, "PPPP"), *attempt("y", "qa", 1, "PPPF"), *attempt("z", "qa", 1, "FFFF")]
    file = write_jsonl(tmp_path / "v.jsonl", rows)
    assert told("compare", file, "--data", data, "--models", "z", "x")["first"] == "z"
    assert "has 3 models" in run_here("compare", file, "--data", data).err
    assert "no rows of nobody" in run_here("compare", file, "--data", data, "--models", "x", "nobody").err


def test_two_files_of_the_same_models_say_how_to_choose(tmp_path, data):
    rows = [*attempt("x", "qa", 1, "PPPP"), *attempt("y", "qa", 1, "PPPF")]
    a, b = write_jsonl(tmp_path / "a.jsonl", rows), write_jsonl(tmp_path / "b.jsonl", rows)
    ran = run_here("compare", a, b, "--data", data)
    assert ran.code == 2 and "has 2 models in 2 files (x, y); choose" in ran.err and "--models A A" in ran.err
    assert told("compare", a, b, "--data", data, "--models", "x", "x")["second"] == "x (2)"


def test_a_component_without_data_on_one_side_is_in_neither(tmp_path, data):
    bare = [{**row, "model": "n"} for row in FIRST if "row" not in row]
    file = write_jsonl(tmp_path / "v.jsonl", [*FIRST, *bare])
    found = told("compare", file, "--data", data, "--models", "m", "n")
    assert found["components"]["grounding"]["points"] is None and found["difference"] == 0
    assert "grounding: no data on one side" in run_here("compare", file, "--data", data, "--models", "m", "n").out


def test_verdicts_of_two_judges_are_refused_in_compare_too(tmp_path, data):
    mixed = [*FIRST, *[{**row, "judge": "other"} for row in FIRST if "judge" in row]]
    ran = run_here("compare", write_jsonl(tmp_path / "a.jsonl", mixed), write_jsonl(tmp_path / "b.jsonl", SECOND), "--data", data)
    assert ran.code == 1 and "several judges (j, other)" in ran.err


def test_compare_ends_with_a_signature(tmp_path, data):
    signed = told("compare", write_jsonl(tmp_path / "a.jsonl", FIRST), write_jsonl(tmp_path / "b.jsonl", SECOND), "--data", data)["signature"]
    assert all(part in signed for part in ("suite irac", "data questions.jsonl", "judge j", "attempts 3", "weights 0.5000", "template t1", "short "))


def test_iik_difference_is_coverage_and_penalty(tmp_path):
    data = write_jsonl(tmp_path / "iik.jsonl", IIK)
    answers = [{"question_id": n, "model": m, "answer": text} for m, texts in {
        "a": ("üç gün, mazeret", "üç gün", "mazeret"), "b": ("üç gün, mazeret; genel mahkeme", "üç gün, mazeret", "")}.items()
        for n, text in enumerate(texts, 1)]
    run_score("facts", write_jsonl(tmp_path / "x.jsonl", answers), "--data", data, "-o", tmp_path / "v.jsonl")
    found = told("compare", tmp_path / "v.jsonl", "--data", data, "--models", "a", "b")
    # kapsam: a 1, 1/2, 1/2; b 1, 1, 0. ceza: b a quarter at the first.
    assert found["components"]["kapsam"] == {"first": near(200 / 3), "second": near(200 / 3), "points": near(0)}
    assert found["components"]["ceza"]["points"] == near(-25 / 3)
    assert found["difference"] == near(-25 / 3) and (found["better"], found["worse"]) == (1, 2)
    assert (found["lost"], found["gained"]) == (["1"], ["2"])


def test_kategori_difference_is_weighted_and_split_by_category(tmp_path):
    data = write_jsonl(tmp_path / "k.jsonl", KATEGORI)
    rows = [row for q in range(1, 7) for m, s in (("a", 2), ("b", 3 if q == 3 else 2))
            for row in grades(m, f"k{q}", {"g1": (s, False, False), "g2": (s, False, False)})]
    found = told("compare", write_jsonl(tmp_path / "v.jsonl", rows), "--data", data, "--models", "a", "b")
    assert found["difference"] == near(20 / 3) == found["components"]["rule_application"]["points"]        # 20% of a point in three
    assert found["components"]["rhetorical"] == {"first": near(200 / 3), "second": near(200 / 3), "points": 0}
    assert found["gained"] == ["k3"]


def test_two_rubrics_count_right_answers_that_skip_a_step(tmp_path):
    def rows(rubric: str, verdicts: dict[tuple[str, int], dict[str, str | None]]) -> list[dict]:
        return [{"suite": "irac", "model": "m", "question_id": q, "attempt": n, "criterion_id": f"{rubric}{k}", "judge": "j", "by": "judge",
                 "dimension": d.split()[0],
                 "verdict": v} for (q, n), of in verdicts.items() for k, (d, v) in enumerate(of.items())]

    first = rows("a", {("q1", 1): {"rule": "PASS", "tool": "FAIL"}, ("q1", 2): {"rule": "PASS"}, ("q1", 3): {"rule": "FAIL"},
                       ("q2", 1): {"rule": None}, ("q3", 1): {"rule": "PASS", "conclusion": "FAIL"},
                       ("q2", 2): {"rule": "PASS", "rule 2": None}})
    second = rows("b", {("q1", 1): {"issue": "PASS", "application": "FAIL", "conclusion": "FAIL"}, ("q1", 2): {"issue": "PASS", "hygiene": "FAIL"},
                        ("q1", 3): {"application": "FAIL"}, ("q2", 1): {"issue": "FAIL"}, ("q3", 1): {"application": "FAIL"}, ("q2", 2): {"application": "FAIL", "rule": None}})
    found = told("compare", "--rubrics", write_jsonl(tmp_path / "a.jsonl", first), write_jsonl(tmp_path / "b.jsonl", second))
    # q1/1 (its tool criterion is not counted), q1/2 and q2/2 are right on the law; q1/3 and q3/1 are not, of q2/1 nothing is decided.
    assert (found["fully right"], found["skip a step"]) == (3, 2)
    assert {step: found[step] for step in ("issue", "rule", "application", "conclusion")} == {"issue": 0, "rule": 0, "application": 2,
        "conclusion": 1}
    assert found["answers"] == [{"model": "m", "question_id": "q1", "attempt": 1, "steps": ["application", "conclusion"]},
                                {"model": "m", "question_id": "q2", "attempt": 2, "steps": ["application"]}]


def test_a_null_on_an_answer_that_addresses_the_judge_is_a_failed_step(tmp_path):
    key = {"suite": "irac", "model": "m", "judge": "j", "by": "judge", "question_id": "q1", "flagged": True}
    first = [{**key, "attempt": n, "criterion_id": "a", "dimension": "rule", "verdict": "PASS"} for n in (1, 2, 3)]
    first.append({**key, "attempt": 3, "criterion_id": "a2", "dimension": "issue", "verdict": None})
    second = [{**key, "attempt": n, "criterion_id": "b", "dimension": "application", "verdict": v} for n, v in ((1, None), (2, "PASS"), (3, "FAIL"))]
    second.append({**key, "attempt": 2, "criterion_id": "b2", "dimension": "conclusion", "verdict": None, "flagged": False})
    found = told("compare", "--rubrics", write_jsonl(tmp_path / "a.jsonl", first), write_jsonl(tmp_path / "b.jsonl", second))
    # Attempt 1 skips a step by its flagged null. Attempt 2 does not: a flag fails no PASS, and a null that is not flagged is left out. Attempt 3
    # was not fully right under the first rubric, by its flagged null.
    assert (found["fully right"], found["skip a step"]) == (2, 1)
    assert found["answers"] == [{"model": "m", "question_id": "q1", "attempt": 1, "steps": ["application"]}]


def test_a_difference_of_less_than_a_point_is_a_difference():
    def side(model, shares):
        return score.Scored(model, None, {"met": [Fraction(n, 1000) for n in shares]}, {"met": Fraction(1)}, {}, {})
    found = score.compare_board(score.Rows("irac", {}, None), side("a", (500, 500, 500)), side("b", (501, 499, 500)), "-").data
    assert (found["better"], found["worse"], found["sign_test_p"]) == (1, 1, 1)


def judged(judge: str, verdicts: str, by: str = "judge", **more) -> list[dict]:
    return [{"suite": "irac", "model": "m", "question_id": f"q{n:03}", "attempt": 1, "criterion_id": "c1", "judge": judge, "by": by,
             "elements": [True] * (1 + n % 2),
             "dimension": ("rule", "hygiene")[n >= 50], "verdict": {"P": "PASS", "F": "FAIL", "n": None}[v], "reason": f"r{n}", **more}
            for n, v in enumerate(verdicts)]


@pytest.fixture
def agreed(tmp_path):
    def run(first, second, *options):
        return told("agree", write_jsonl(tmp_path / "a.jsonl", first), write_jsonl(tmp_path / "b.jsonl", second), *options)
    return run


def test_agreement_kappa_base_rates_and_error_balance_by_hand(agreed):
    # 40 both pass, 20 first only, 10 second only, 30 both fail: agreement 70%, by chance 60 * 50 + 40 * 50 = 50%, kappa 0.4.
    found = agreed(judged("x", "P" * 40 + "P" * 20 + "F" * 10 + "F" * 30), judged("y", "P" * 40 + "F" * 20 + "P" * 10 + "F" * 30))
    everything = found["groups"]["all"]
    assert (everything["n"], everything["agreement"], everything["kappa"], everything["base_rates"]) == (100, 70, near(0.4), [60, 50])
    assert (everything["false_pass"], everything["false_fail"]) == (10, 20)
    tail = sum(Fraction(__import__("math").comb(30, k), 2**30) for k in range(11))
    assert everything["mcnemar_p"] == near(float(2 * tail))
    assert list(found["groups"]) == ["all", "rule", "hygiene", "one element", "several elements"]
    assert found["groups"]["rule"]["n"] == found["groups"]["hygiene"]["n"] == found["groups"]["one element"]["n"] == 50
    assert len(found["differing"]) == 30 and found["differing"][0]["first"] == "PASS"


def test_pairs_with_a_null_are_left_out_and_counted_and_code_is_no_judge(agreed):
    first = [*judged("x", "PPnF"), *[{**row, "criterion_id": "c2"} for row in judged("x", "PF", by="code")],
             *[{**row, "criterion_id": "c3"} for row in judged("x", "FF", by="missing")]]
    second = [*judged("y", "PnPF"), *[{**row, "criterion_id": "c2"} for row in judged("y", "FP", by="code")]]
    found = agreed(first, second)
    assert (found["both"], found["null"], found["groups"]["all"]["n"], found["groups"]["all"]["agreement"]) == (4, 2, 2, 100)


def test_one_class_only_is_undefined_with_the_reason_and_no_pairs_too(agreed, tmp_path):
    assert agreed(judged("x", "PPP"), judged("y", "PPP"))["groups"]["all"]["kappa"] is None
    assert "undefined (only one class used)" in run_here("agree", tmp_path / "a.jsonl", tmp_path / "b.jsonl").out
    nothing = agreed(judged("x", "n"), judged("y", "P"))["groups"]["all"]
    assert (nothing["agreement"], nothing["kappa"], nothing["kappa_text"]) == (None, None, "no pairs")
    nothing_shared = agreed(judged("x", "P"), [{**row, "model": "n"} for row in judged("y", "P")])
    assert (nothing_shared["both"], nothing_shared["first"], nothing_shared["second"]) == (0, "x", "y")
    assert "weighted" not in run_here("agree", tmp_path / "a.jsonl", tmp_path / "b.jsonl").out


def test_other_answers_are_warned_of_and_the_later_row_counts(agreed):
    found = agreed([*judged("x", "F", answer_sha="1"), *judged("x", "P", answer_sha="1"), *judged("x", "n", answer_sha="1")],
                   judged("y", "P", answer_sha="2"))
    assert found["groups"]["all"]["agreement"] == 100 and any("1 pairs rest on different answer texts" in note for note in found["notes"])


def test_agreement_does_not_depend_on_the_order_of_rows(agreed):
    first, second = judged("x", "PF" * 30), judged("y", "PPF" * 20)
    assert agreed(first, second) == agreed(first[::-1], second[::-1])


def test_several_judges_in_a_file_must_be_chosen(tmp_path):
    file = write_jsonl(tmp_path / "v.jsonl", [*judged("x", "PF"), *judged("y", "PP")])
    assert "its judges are x, y" in run_here("agree", file, file).err
    assert told("agree", file, file, "--judges", "x", "y")["groups"]["all"]["agreement"] == 50


def test_kategori_agreement_is_weighted_kappa_and_its_direction(agreed):
    def graded(judge: str, scores: list[int]) -> list[dict]:
        return [row for n, s in enumerate(scores) for row in grades("m", f"k{n}", {judge: (s, False, False)})]

    found = agreed(graded("x", [0, 1, 2, 3]), graded("y", [0, 2, 2, 3]))["groups"]["all"]
    # Quadratic weights: observed 1; expected over all 16 pairs: (0-0)..(3-3) = 0+4+4+9 + 1+1+1+4 + 4+0+0+1 + 9+1+1+0 = 40; 1 - 4 * 1 / 40.
    assert (found["agreement"], found["weighted_kappa"], found["base_rates"]) == (75, near(0.9), [1.5, 1.75])
    assert (found["false_pass"], found["false_fail"]) == (1, 0)


def test_a_file_of_two_suites_gives_a_board_for_each(tmp_path):
    for judge, scores in (("x", [0, 1]), ("y", [0, 2])):
        graded = [row for n, s in enumerate(scores) for row in grades("m", f"k{n}", {judge: (s, False, False)})]
        write_jsonl(tmp_path / f"{judge}.jsonl", [*judged(judge, "PPF"), *graded])
    irac, kategori = told("agree", tmp_path / "x.jsonl", tmp_path / "y.jsonl")
    assert (irac["groups"]["all"]["n"], irac["groups"]["all"]["agreement"]) == (3, 100)
    assert (kategori["groups"]["all"]["n"], kategori["groups"]["all"]["agreement"]) == (2, 50)


def test_iik_agreement_of_the_two_rules_of_matching(tmp_path):
    data = write_jsonl(tmp_path / "iik.jsonl", IIK)
    answers = write_jsonl(tmp_path / "x.jsonl", [{"question_id": 1, "model": "m", "answer": "on üç gün, mazeret"}])
    for match in ("turkish", "reference"):
        run_score("facts", answers, "--data", data, "--match", match, "-o", tmp_path / f"{match}.jsonl")
    found = told("agree", tmp_path / "turkish.jsonl", tmp_path / "reference.jsonl")
    # "üç gün" stands in "on üç gün" by substring only.
    assert (found["groups"]["all"]["n"], found["groups"]["all"]["false_pass"], found["groups"]["fact"]["n"]) == (3, 1, 1)


def test_a_row_that_is_none_is_named_with_its_line(tmp_path):
    file = write_jsonl(tmp_path / "v.jsonl", [*judged("x", "P"), {"a": 1}, {**judged("x", "P")[0], "verdict": "yes"}])
    ran = run_here("agree", file, file)
    assert ran.code == 1 and "v.jsonl:2: " in ran.err and 'v.jsonl:3: "verdict" is "yes"' in ran.err
