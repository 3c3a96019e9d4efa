"""Statistics: second libraries give the same figures (to 1e-9, or to Monte Carlo error, stated), and the cases of the field by their id."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from fractions import Fraction

import pytest
from conftest import shared_case
from hypothesis import given, settings
from hypothesis import strategies as st

import score

scipy_stats = pytest.importorskip("scipy.stats")
sklearn_metrics = pytest.importorskip("sklearn.metrics")
multitest = pytest.importorskip("statsmodels.stats.multitest")
contingency = pytest.importorskip("statsmodels.stats.contingency_tables")
inter_rater = pytest.importorskip("statsmodels.stats.inter_rater")

CLOSE = 1e-9
counts = st.integers(min_value=0, max_value=40)
sixths = st.integers(min_value=-6, max_value=6).map(lambda n: Fraction(n, 6))


@given(st.lists(st.fractions(min_value=0, max_value=1, max_denominator=60), max_size=30))
def test_mean_is_exact(values):
    assert score.mean(values) == (statistics.mean(values) if values else None)


@given(st.integers(-10**6, 10**6), st.integers(0, 3))
def test_halves_round_up_at_every_digit(n, digits):
    half = Fraction(2 * n + 1, 2 * 10**digits)
    assert Fraction(score.fixed(half, digits)) == Fraction(n + 1, 10**digits)


@given(st.floats(-1e6, 1e6), st.integers(0, 6))
def test_rounding_is_never_off_by_more_than_half_a_unit(value, digits):
    assert abs(Fraction(score.fixed(value, digits)) - Fraction(value)) <= Fraction(1, 2 * 10**digits)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=9))
def test_median_is_pythons(values):
    assert score.median(values) == statistics.median(values)


def test_a_question_without_data_takes_the_mean_of_the_others():
    # 1/2 and 0: mean 1/4, which fills the gap and stays the mean.
    assert score.filled([Fraction(1, 2), None, Fraction(0)]) == [Fraction(1, 2), Fraction(1, 4), Fraction(0)]
    assert score.filled([None, None]) is None


def test_means_by_label_are_of_the_questions_with_the_label():
    questions = {"q1": {"area": "vergi"}, "q2": {"area": "rekabet"}, "q3": {"area": "vergi"}, "q4": {"area": "vergi"}}
    values = [Fraction(1), Fraction(1, 3), None, Fraction(0)]
    by_hand = {"vergi": Fraction(1, 2), "rekabet": Fraction(1, 3), "borclar": None}     # (1 + 0) / 2: q3 has no value; 1/3 alone; nothing
    assert score.means_by(lambda row: row["area"], by_hand, values, questions) == by_hand


def test_no_figure_is_a_dash_and_minus_zero_is_zero():
    assert score.fixed(None) == "-"
    assert score.fixed(Fraction(-1, 1000), 2) == "0.00"


@given(counts, counts)
def test_sign_test_is_the_exact_binomial_test_and_mcnemars(better, worse):
    p = float(score.sign_test_p(better, worse))
    if better + worse:
        assert p == pytest.approx(scipy_stats.binomtest(better, better + worse).pvalue, abs=CLOSE)
        assert p == pytest.approx(contingency.mcnemar([[7, better], [worse, 9]], exact=True).pvalue, abs=CLOSE)
    else:
        assert p == 1


@settings(deadline=None)
@given(st.integers(0, 25), st.integers(0, 25), st.integers(0, 6), st.integers(0, 6))
def test_pooled_p_is_fishers_exact_test(hits_a, hits_b, misses_a, misses_b):
    p = score.fisher_p(hits_a, hits_a + misses_a, hits_b, hits_b + misses_b)
    assert float(p) == pytest.approx(scipy_stats.fisher_exact([[hits_a, misses_a], [hits_b, misses_b]]).pvalue, abs=CLOSE)


@given(st.lists(sixths, min_size=1, max_size=9))
def test_sign_flips_are_counted_exactly(differences):
    seen = abs(sum(differences))
    sums = [abs(sum(s * d for s, d in zip(signs, differences, strict=True))) for signs in itertools.product((1, -1), repeat=len(differences))]
    assert score.sign_flip_p(differences) == Fraction(sum(s >= seen for s in sums), len(sums))


def test_sign_flips_agree_with_scipys_exhaustive_permutation_test():
    differences = [Fraction(n, 12) for n in (3, -1, 4, 1, -5, 9, 2, 6, -3, 5)]
    theirs = scipy_stats.permutation_test(([float(d) for d in differences],), lambda x: math.fsum(x), permutation_type="samples", n_resamples=10**6)
    assert float(score.sign_flip_p(differences)) == pytest.approx(theirs.pvalue, abs=CLOSE)


def test_thirty_differences_are_exact_and_more_are_drawn_with_the_error_stated():
    # 31 ones and k minus ones among them have a binomial answer, so both branches have an oracle.
    for n, minus in ((30, 9), (31, 10), (60, 22)):
        p = float(score.sign_flip_p([1] * (n - minus) + [-1] * minus))
        exact = scipy_stats.binomtest(minus, n).pvalue
        error = 0 if n <= 30 else 4 * math.sqrt(exact * (1 - exact) / score.DRAWS) + 1 / score.DRAWS     # four standard errors of 10,000 draws
        assert abs(p - exact) <= error + CLOSE, (n, minus)


def test_drawn_p_is_never_zero_and_zero_differences_are_left_out():
    assert score.sign_flip_p([Fraction(1)] * 40) == Fraction(1, score.DRAWS + 1)
    assert score.sign_flip_p([0] * 50 + [1, 1, 1]) == Fraction(1, 4)
    assert score.sign_flip_p([0, 0]) == score.sign_flip_p([]) == 1


@given(st.permutations([Fraction(n, 7) for n in range(-4, 40)]))
@settings(max_examples=5, deadline=None)
def test_exact_p_does_not_depend_on_order(differences):
    assert score.sign_flip_p(differences[:20]) == score.sign_flip_p(sorted(differences[:20]))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.fractions(min_value=0, max_value=1, max_denominator=50), min_size=1, max_size=12))
def test_holm_is_statsmodels_holm(p_values):
    theirs = multitest.multipletests([float(p) for p in p_values], method="holm")[1]
    assert [float(p) for p in score.holm(p_values)] == pytest.approx(list(theirs), abs=CLOSE)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20))
def test_ranks_are_scipys_competition_ranks_from_the_top(values):
    assert score.ranks(values) == [int(r) for r in scipy_stats.rankdata([-v for v in values], method="min")]


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=20))
def test_spearman_is_scipys_with_ties(pairs):
    xs, ys = zip(*pairs, strict=True)
    ours = score.spearman(xs, ys)
    if len(set(xs)) == 1 or len(set(ys)) == 1:
        assert ours is None
    else:
        assert ours == pytest.approx(scipy_stats.spearmanr(xs, ys).statistic, abs=CLOSE)


def test_spearman_of_nothing_and_of_one_pair_is_undefined():
    assert score.spearman([], []) is None
    assert score.spearman([1], [2]) is None


@given(st.lists(st.tuples(st.sampled_from(["PASS", "FAIL"]), st.sampled_from(["PASS", "FAIL"])), min_size=1, max_size=40))
def test_kappa_is_scikit_learns(pairs):
    ours = score.kappa(pairs)
    first, second = zip(*pairs, strict=True)
    if len({*first, *second}) == 1:
        assert ours is None
    else:
        assert float(ours) == pytest.approx(sklearn_metrics.cohen_kappa_score(first, second), abs=CLOSE)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=40))
def test_weighted_kappa_is_scikit_learns_and_statsmodels(pairs):
    ours = score.kappa(pairs, weighted=True)
    first, second = zip(*pairs, strict=True)
    if len({*first, *second}) == 1:
        assert ours is None
        return
    assert float(ours) == pytest.approx(sklearn_metrics.cohen_kappa_score(first, second, weights="quadratic", labels=[0, 1, 2, 3]), abs=CLOSE)
    table = [[sum(pair == (a, b) for pair in pairs) for b in range(4)] for a in range(4)]
    assert float(ours) == pytest.approx(inter_rater.cohens_kappa(table, wt="quadratic", return_results=False), abs=CLOSE)


def test_bootstrap_interval_is_scipys_within_the_monte_carlo_error():
    generator = random.Random(5)
    values = [Fraction(generator.randrange(0, 13), 12) for _ in range(42)]
    low, high = score.bootstrap_interval(values)
    theirs = scipy_stats.bootstrap(([float(v) for v in values],), lambda x, axis: x.mean(axis=axis), method="percentile", n_resamples=10_000,
                                   rng=1).confidence_interval
    # A 2.5% quantile of 10,000 draws has a standard error of sqrt(0.025 * 0.975 / 10,000) / density: about 2.7% of the mean's own one.
    error = 4 * 2 * 0.027 * statistics.pstdev(map(float, values)) / math.sqrt(42)
    assert abs(low - theirs.low) < error and abs(high - theirs.high) < error


def test_bootstrap_interval_is_near_the_normal_one_and_repeats():
    values = [Fraction(n % 10, 10) for n in range(200)]
    half = 1.96 * statistics.pstdev(map(float, values)) / math.sqrt(200)
    low, high = score.bootstrap_interval(values)
    assert low == pytest.approx(0.45 - half, abs=half / 10) and high == pytest.approx(0.45 + half, abs=half / 10)
    assert score.bootstrap_interval(values) == (low, high)


def test_bootstrap_interval_leaves_250_of_10_000_means_out_on_either_side():
    generator = random.Random(score.SEED)
    values = [1.5, 2.25, 7.0, 11.125, 3.75, 0.5, 19.0]
    means = sorted(math.fsum(generator.choices(values, k=7)) / 7 for _ in range(10_000))
    assert score.bootstrap_interval(values) == (round(means[250], 6), round(means[9749], 6))


def test_bootstrap_interval_to_the_place_and_the_digit():
    # Square roots: of 10,000 means no two neighbours are equal, and none ends after six decimals.
    generator, values = random.Random(score.SEED), [math.sqrt(n) for n in range(2, 42)]
    means = sorted(math.fsum(generator.choices(values, k=40)) / 40 for _ in range(10_000))
    assert len(set(means[248:253] + means[9747:9752])) == 10
    assert score.bootstrap_interval(values) == (round(means[250], 6), round(means[9749], 6))
    assert score.bootstrap_interval([1 / 3] * 4) == (0.333333, 0.333333)


def test_bootstrap_interval_of_two_values_reaches_from_one_to_the_other():
    # A quarter of the resamples is 0 and 0, a quarter 1 and 1: both quantiles are ends.
    assert score.bootstrap_interval([0.0, 1.0]) == (0.0, 1.0)


def test_bootstrap_interval_within_strata_keeps_as_many_of_each():
    """Two strata of different level: within each all values are equal, so every resample has the same mean."""
    assert score.bootstrap_interval([1.0, 3.0, 1.0, 3.0, 1.0], ["a", "b", "a", "b", "a"]) == (1.8, 1.8)
    assert score.bootstrap_interval([1.0, 3.0, 1.0, 3.0, 1.0], ["a"] * 5) == score.bootstrap_interval([1.0, 3.0, 1.0, 3.0, 1.0]) != (1.8, 1.8)


def test_p_is_never_printed_as_zero():
    assert [score.p_value(Fraction(1, n), d) for n, d in ((2, 3), (1000, 3), (1001, 3), (10001, 4), (300, 2))] == [
        "p = 0.500", "p = 0.001", "p < 0.001", "p < 0.0001", "p < 0.01"]


def test_bootstrap_interval_of_equal_values_is_a_point_and_of_one_value_none():
    assert score.bootstrap_interval([Fraction(1, 2)] * 5) == (0.5, 0.5)
    assert score.bootstrap_interval([Fraction(1, 2)]) is None


def test_tie_groups_split_where_holm_finds_the_first_models_better():
    good, same, poor = [Fraction(9, 10)] * 12, [Fraction(9, 10)] * 11 + [Fraction(8, 10)], [Fraction(1, 10)] * 12
    # 12 equal differences: p = 2 / 2**12, times 2 by Holm, far below 0.05; one difference: p = 1.
    assert score.tie_groups([good, same, poor, poor]) == [1, 1, 2, 2]
    assert score.tie_groups([]) == []


def test_tie_groups_each_apart_from_the_one_before():
    # 12 equal differences to each poorer model: p = 2 / 2**12, at most times 2.
    assert score.tie_groups([[Fraction(9, 10)] * 12, [Fraction(5, 10)] * 12, [Fraction(1, 10)] * 12]) == [1, 2, 3]


@pytest.mark.parametrize(("n", "negative", "p", "groups"), [(8, (2, 4), Fraction(14, 256), [1, 1]), (11, (2, 16, 32), Fraction(102, 2048), [1, 2])])
def test_tie_groups_part_at_five_in_a_hundred(n, negative, p, groups):
    # Sizes 1, 2, 4, ...: each choice of signs has its own sum, so as far from 0 as seen are the choices whose negatives add up to no more
    # than those seen (6: seven choices; 50: 51), and as many mirrored. 14/256 is 0.055, 102/2048 is 0.0498.
    differences = [Fraction(-2**k if 2**k in negative else 2**k) for k in range(n)]
    assert score.sign_flip_p(differences) == p
    assert score.tie_groups([differences, [Fraction(0)] * n]) == groups


def test_rank_shift_of_hand_made_boards():
    # Totals 90, 71, 52; without q1 0, 1, 2: the order is turned round, the first falls two places. Counting a question twice turns nothing.
    assert score.largest_rank_shift([[Fraction(90), Fraction(0)], [Fraction(70), Fraction(1)], [Fraction(50), Fraction(2)]]) == 2
    assert score.largest_rank_shift([[Fraction(9), Fraction(0)]]) == 0


def test_rank_shift_counts_the_most_places_when_a_question_is_left_out():
    # Without q1 the first model falls from 1st to 3rd.
    values = [[Fraction(10), Fraction(0), Fraction(0)], [Fraction(0), Fraction(4), Fraction(4)], [Fraction(0), Fraction(3), Fraction(4)]]
    assert score.largest_rank_shift(values) == 2
    assert score.largest_rank_shift([]) == 0


def test_case_p27_the_two_measures_with_an_attempt_that_was_never_run():
    case = shared_case("P27")
    outcome = {"pass": score.PASS, "fail": score.FAIL, "no_answer": score.FAIL}
    questions, one_criterion = {}, {"area": "vergi", "difficulty": "hard", "criteria": [{"dimension": "rule"}]}
    for question_id, attempts in case["input"]["attempts"].items():
        tried = {n: score.Tried(bytes([outcome[a]]), score.Attempt(a != "no_answer", Fraction(0), False, None, None, None))
                 for n, a in enumerate(attempts, 1)}
        questions[question_id] = score.tries(tried, 1, case["input"]["planned_attempts"])
    board = score.score_model("m", questions, dict.fromkeys(questions, one_criterion), score.WEIGHTS)
    expected = case["expected"]["result"]
    assert score.fixed(board.figures["pass^k"]) == expected["pass^3"]
    assert score.fixed(board.figures["pass@k"]) == expected["pass@3"]
    assert [q for q, of in questions.items() if any(t.row is score.NO_ATTEMPT for t in of)] == expected["incomplete_questions"]
    passed = [t.right for of in questions.values() for t in of]
    assert f"{sum(passed)}/{len(passed)} = {score.fixed(Fraction(100 * sum(passed), len(passed)))}" == expected["attempts_passed"]


def test_case_p28_kappa_where_one_class_only_is_used():
    case = shared_case("P28")
    names = {"P": "PASS", "F": "FAIL"}
    for table, expected in zip(case["input"]["tables"], case["expected"]["result"], strict=True):
        figures = score.agreement([(names[cell[0]], names[cell[1]]) for cell, n in table.items() for _ in range(n)])
        assert (None if figures["agreement"] is None else figures["agreement_text"]) == expected["agreement"]
        assert (None if figures["kappa"] is None else figures["kappa_text"]) == expected["kappa"]
        if expected["kappa"] is None:
            assert figures["kappa_text"] == ("undefined (only one class used)" if sum(table.values()) else "no pairs")


def test_case_p29_a_missing_answer_counts_a_judge_error_does_not():
    case = shared_case("P29")
    first, second = case["input"]["attempts"]
    codes = {"PASS": score.PASS, "judge_error": score.NULL}
    answered = score.Attempt(True, Fraction(1), False, None, None, None)
    a = score.tries({1: score.Tried(bytes(codes[c] for c in first["criteria"]), answered)}, 4, 1)
    timeout = score.read_attempt({"status": second["status"]})
    b = score.tries({1: score.Tried(b"", timeout)}, second["criteria_in_rubric"], 1)
    rubrics = {name: {"area": "vergi", "difficulty": "hard", "criteria": [{"dimension": "rule"}] * n} for name, n in (("A", 4), ("B", 10))}
    board = score.score_model("m", {"A": a, "B": b}, rubrics, score.WEIGHTS)
    expected = case["expected"]["result"]
    assert score.fixed(board.figures["met"]) == expected["per_question"]
    assert f"3/3 = {score.fixed(board.figures['answered_only'])}" == expected["answered_only"]
    assert f"1/2 = {score.fixed(board.figures['completed'])}" == expected["attempts_completed"]
    assert board.fails["B"] == 10                                     # 3 met of 13 = 4 criteria less the judge's error, and 10 of the missing answer
    assert f"{board.parts['met'][0] * 3}/{3 + board.fails['B']}" == expected["criteria_met"]
