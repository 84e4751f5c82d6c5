"""Agreement: published matrices, coincidences in rationals, the bootstrap by full enumeration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import count, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, multinomial
from statsmodels.stats.inter_rater import cohens_kappa

from trialwise.errors import InvalidArgument
from trialwise.stats.agreement import (
    LEVELS,
    Confusion,
    MeasurementLevel,
    cohen_kappa,
    cohen_kappa_interval,
    confusion_of,
    krippendorff_alpha,
    krippendorff_alpha_interval,
)
from trialwise.stats.judge_certification import (
    Certification,
    alpha_lower_bound,
    certify_judge,
    labels_to_certify,
)
from trialwise.stats.result_types import Interval, Undefined


def units(*raters: str) -> list[tuple[int | None, ...]]:
    """Units from one line for each rater; a star is a missing rating."""
    rows = [[None if mark == "*" else int(mark) for mark in row.split()] for row in raters]
    return list(zip(*rows, strict=True))


#: Three coders, fifteen units (Krippendorff's worked example as encyclopedias print it).
FIFTEEN = units(
    "* * * * * 3 4 1 2 1 1 3 3 * 3",
    "1 * 2 1 3 3 4 3 * * * * * * *",
    "* * 2 1 3 4 4 * 2 1 1 3 3 * 4",
)
#: Four observers, twelve units (Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability").
TWELVE = units(
    "1 2 3 3 2 1 4 1 2 * * *",
    "1 2 3 3 2 2 4 1 2 5 * 3",
    "* 3 3 3 2 3 4 2 2 5 1 *",
    "1 2 3 3 2 4 4 1 2 5 1 *",
)


def value(found: float | Undefined) -> float:
    assert not isinstance(found, Undefined)
    return found


@pytest.mark.parametrize(
    ("matrix", "level", "published"),
    [
        (FIFTEEN, "nominal", 0.691),
        (FIFTEEN, "interval", 0.811),
        (FIFTEEN, "ordinal", 0.8067),
        (TWELVE, "nominal", 0.743),
        (TWELVE, "ordinal", 0.815),
        (TWELVE, "interval", 0.849),
    ],
)
def test_alpha_is_the_published_one(
    matrix: list[tuple[int | None, ...]], level: MeasurementLevel, published: float
) -> None:
    """Both canonical matrices, with their missing ratings."""
    assert published == pytest.approx(value(krippendorff_alpha(matrix, level=level)), abs=5e-4)


def test_the_binary_cases_are_those_of_the_readings() -> None:
    """Four units turned round, and 4 of 100 balanced units apart: both in closed form."""
    inverted = [(True, False), (True, False), (False, True), (False, True)]
    balanced = [(1, 1)] * 48 + [(0, 0)] * 48 + [(1, 0)] * 2 + [(0, 1)] * 2

    assert value(krippendorff_alpha(inverted)) == pytest.approx(-0.75)
    assert value(krippendorff_alpha(balanced)) == pytest.approx(1 - 0.04 * 199 / 100)
    assert round(value(krippendorff_alpha(balanced)), 4) == 0.9204


def by_coincidences(matrix: Sequence[Sequence[Any]], level: MeasurementLevel) -> Fraction:
    """Alpha from the matrix of coincidences, in rationals."""
    seen: dict[tuple[Any, Any], Fraction] = {}
    for unit in matrix:
        rated = [one for one in unit if one is not None]
        for i, one in enumerate(rated):
            for j, other in enumerate(rated):
                if i != j:
                    pair = (one, other)
                    seen[pair] = seen.get(pair, Fraction(0)) + Fraction(1, len(rated) - 1)
    kinds = sorted({one for one, _ in seen})
    margin = {
        one: sum((seen.get((one, k), Fraction(0)) for k in kinds), Fraction(0)) for one in kinds
    }
    n = sum(margin.values(), Fraction(0))

    def squared(c: Any, k: Any) -> Fraction:
        if level == "nominal":
            return Fraction(c != k)
        if level == "interval":
            return Fraction(c - k) ** 2
        low, high = min(c, k), max(c, k)
        between = sum((margin[g] for g in kinds if low <= g <= high), Fraction(0))
        return (between - (margin[c] + margin[k]) / 2) ** 2

    zero = Fraction(0)
    observed = sum((count * squared(*pair) for pair, count in seen.items()), zero)
    expected = sum((margin[c] * margin[k] * squared(c, k) for c in kinds for k in kinds), zero)
    return 1 - (n - 1) * observed / expected


RATINGS = st.lists(
    st.lists(st.one_of(st.none(), st.integers(1, 4)), min_size=2, max_size=4),
    min_size=1,
    max_size=8,
)


@given(RATINGS, st.sampled_from(LEVELS))
def test_alpha_is_one_minus_the_coincidences(
    matrix: list[list[int | None]], level: MeasurementLevel
) -> None:
    """Whatever is missing, at every level; undefined exactly where all ratings are alike."""
    rated = [[one for one in unit if one is not None] for unit in matrix]
    kinds = {one for unit in rated if len(unit) > 1 for one in unit}
    found = krippendorff_alpha(matrix, level=level)

    if len(kinds) < 2:
        assert isinstance(found, Undefined)
    else:
        assert value(found) == pytest.approx(float(by_coincidences(matrix, level)), abs=1e-12)


@given(RATINGS, st.randoms(use_true_random=False))
def test_neither_the_order_of_units_nor_of_raters_counts(
    matrix: list[list[int | None]], chance: Any
) -> None:
    """Alpha is about sets of ratings; ranks alone count for ordinal, distances for interval."""
    shuffled = [chance.sample(unit, len(unit)) for unit in chance.sample(matrix, len(matrix))]

    def same(one: float | Undefined, other: float | Undefined) -> bool:
        if isinstance(one, Undefined) or isinstance(other, Undefined):
            return one == other
        return math.isclose(one, other, abs_tol=1e-9)

    def changed(by: Any) -> list[list[Any]]:
        return [[None if one is None else by(one) for one in unit] for unit in matrix]

    for level in LEVELS:
        assert same(
            krippendorff_alpha(matrix, level=level), krippendorff_alpha(shuffled, level=level)
        )
    assert same(krippendorff_alpha(matrix), krippendorff_alpha(changed("abcde".__getitem__)))
    assert same(
        krippendorff_alpha(matrix, level="ordinal"),
        krippendorff_alpha(changed(lambda one: one**3), level="ordinal"),
    )
    assert same(
        krippendorff_alpha(matrix, level="interval"),
        krippendorff_alpha(changed(lambda one: 5 - 2 * one), level="interval"),
    )


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=30))
def test_kappa_is_that_of_statsmodels(pairs: list[tuple[int, int]]) -> None:
    """For three kinds of rating; undefined where both raters never changed theirs."""
    first, second = [one for one, _ in pairs], [other for _, other in pairs]
    table = np.zeros((3, 3))
    for pair in pairs:
        table[pair] += 1
    found = cohen_kappa(first, second)

    if len({*first, *second}) == 1:
        assert isinstance(found, Undefined)
    else:
        assert value(found) == pytest.approx(
            float(cohens_kappa(table, return_results=False)), abs=1e-12
        )


def test_kappa_charges_less_than_alpha_where_rates_differ() -> None:
    """The paradox that both are reported for: a lenient judge has the higher kappa."""
    judge, people = [True] * 70 + [False] * 30, [True] * 50 + [False] * 50

    assert value(cohen_kappa(judge, people)) > value(
        krippendorff_alpha(zip(judge, people, strict=True))
    )


@pytest.mark.slow
def test_the_bootstrap_is_that_of_every_resample() -> None:
    """The ends are the quantiles of all 6⁶ resamples, up to the luck of 1,999 of them."""
    matrix = [(1, 1), (1, 1), (0, 0), (0, 0), (1, 0), (0, 1)]
    found = krippendorff_alpha_interval(matrix, confidence=0.80, seed=11)
    assert isinstance(found, Interval)
    values = []
    unknown = 0
    for drawn in product(matrix, repeat=6):
        one = krippendorff_alpha(drawn)
        if isinstance(one, Undefined):
            unknown += 1
        else:
            values.append(one)
    total = len(values) + unknown

    def share_at_most(limit: float) -> float:
        return (unknown + sum(one <= limit + 1e-9 for one in values)) / total

    def share_at_least(limit: float) -> float:
        return (unknown + sum(one >= limit - 1e-9 for one in values)) / total

    # Each end cuts off about a tenth; a quantile of 1,999 draws is off by 0.0067 at one σ.
    below = max((one for one in values if one < found.low - 1e-9), default=-math.inf)
    above = min((one for one in values if one > found.high + 1e-9), default=math.inf)
    assert share_at_most(below) < 0.13
    assert share_at_most(found.low) > 0.07
    assert share_at_least(above) < 0.13
    assert share_at_least(found.high) > 0.07


def test_an_interval_is_the_same_for_the_same_seed() -> None:
    """And for units listed in another order; another seed draws others."""
    matrix = [(True, True)] * 30 + [(False, False)] * 25 + [(True, False)] * 5
    first = krippendorff_alpha_interval(matrix, seed=3)

    assert first == krippendorff_alpha_interval(list(reversed(matrix)), seed=3)
    assert first != krippendorff_alpha_interval(matrix, seed=4)
    assert isinstance(first, Interval)
    assert value(krippendorff_alpha(matrix)) in first


def test_no_disagreement_is_no_certainty() -> None:
    """A point is no interval, and a resample of one kind alone is none either."""
    clean = [(True, True)] * 30 + [(False, False)] * 30
    rare = [(True, True)] * 30 + [(True, False)]

    assert isinstance(krippendorff_alpha_interval(clean, seed=1), Undefined)
    assert isinstance(krippendorff_alpha_interval(rare, seed=1), Undefined)
    assert isinstance(
        cohen_kappa_interval([1] * 20 + [0] * 20, [1] * 20 + [0] * 20, seed=1), Undefined
    )


def confusion(true_pass: int, false_pass: int, true_fail: int, false_fail: int) -> Confusion:
    return Confusion(
        true_pass=true_pass, false_pass=false_pass, true_fail=true_fail, false_fail=false_fail
    )


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((48, 2, 48, 2), Certification.PASS),
        ((46, 4, 46, 4), Certification.PASS),
        ((45, 5, 45, 5), Certification.PASS),  # 1 − 0.10 · 199/100 = 0.801
        ((44, 6, 44, 6), Certification.MARGINAL),  # 0.7612
        ((41, 9, 42, 8), Certification.FAIL),  # 0.6617
        ((30, 20, 30, 20), Certification.FAIL),
        ((100, 0, 0, 0), Certification.PASS),
        ((19, 0, 0, 0), Certification.CONTESTABLE),
        ((10, 0, 9, 0), Certification.CONTESTABLE),
        ((10, 0, 10, 0), Certification.PASS),
    ],
)
def test_without_a_confidence_the_estimate_meets_the_customary_limits(
    counts: tuple[int, int, int, int], expected: Certification
) -> None:
    """0.800 and 0.667; fewer than 20 labels are contestable; one rating throughout passes."""
    assert expected is certify_judge(confusion(*counts), confidence=None)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        # Balanced: e = n/(2n − 1). Without a disagreement d is at most 1 − 0.05^(1/n).
        ((10, 0, 10, 0), Certification.MARGINAL),
        ((14, 0, 13, 0), Certification.MARGINAL),  # 1 − 0.1050 · 2 · 53/54 = 0.794
        ((14, 0, 14, 0), Certification.PASS),  # 1 − 0.1015 · 2 · 55/56 = 0.801
        ((20, 0, 20, 0), Certification.PASS),
        ((48, 2, 48, 2), Certification.PASS),
        ((45, 5, 45, 5), Certification.MARGINAL),
        ((44, 6, 44, 6), Certification.CONTESTABLE),  # 0.761 estimated, less than 0.667 shown
        ((41, 9, 42, 8), Certification.FAIL),
        ((100, 0, 0, 0), Certification.CONTESTABLE),
        ((10, 0, 9, 0), Certification.CONTESTABLE),
    ],
)
def test_the_labels_must_show_the_limit(
    counts: tuple[int, int, int, int], expected: Certification
) -> None:
    """Against the bound from scipy's beta quantile; an estimate above the limit is not enough."""
    found = certify_judge(confusion(*counts))
    true_pass, false_pass, _, false_fail = counts
    n, differing = sum(counts), false_pass + false_fail
    limit = float(beta.ppf(0.95, differing + 1, n - differing))
    passes = Fraction(2 * true_pass + differing, 2 * n)
    chance = float(2 * passes * (1 - passes)) * 2 * n / (2 * n - 1)

    if chance and n >= 20:
        shown = 1 - limit / chance
        assert value(alpha_lower_bound(confusion(*counts))) == pytest.approx(shown, abs=1e-9)
        assert (found is Certification.PASS) == (shown >= 0.8)
    else:
        assert isinstance(alpha_lower_bound(confusion(100, 0, 0, 0)), Undefined)
    assert expected is found


def certified_share(n: int, passing: float, alpha: float, confidence: float | None) -> float:
    """How many gold sets of n labels certify a judge of this alpha: summed over all tables."""
    differing = 2 * passing * (1 - passing) * (1 - alpha)
    both_fail, both_pass = 1 - passing - differing / 2, passing - differing / 2
    found = 0.0
    for d in range(n + 1):
        for f in range(n + 1 - d):
            chance = float(multinomial.pmf([d, f, n - d - f], n, [differing, both_fail, both_pass]))
            if chance > 1e-7:
                table = confusion(n - d - f, d, f, 0)
                found += chance * (certify_judge(table, confidence=confidence) == "pass")
    return found


@pytest.mark.slow("50-0.5", "80-0.9")
@pytest.mark.parametrize(("n", "passing"), [(20, 0.5), (50, 0.5), (50, 0.8), (80, 0.9)])
def test_a_judge_below_the_limit_is_certified_in_at_most_five_percent(
    n: int, passing: float
) -> None:
    """Of gold sets, at any share that passes; by the estimate it was in about two of five."""
    assert certified_share(n, passing, 0.7999, 0.95) <= 0.05
    assert certified_share(n, passing, 0.75, None) > 0.3


def test_the_labels_that_would_certify_are_the_fewest_that_do() -> None:
    """In closed form without a disagreement; no number of labels mends a low agreement."""
    fewest = next(n for n in count(20) if (1 - 0.05 ** (1 / n)) * (39 / 20) <= 0.2)

    assert fewest == labels_to_certify(confusion(10, 0, 10, 0))
    assert isinstance(labels_to_certify(confusion(44, 6, 44, 6)), Undefined)
    assert isinstance(labels_to_certify(confusion(40, 0, 0, 0)), Undefined)
    many = labels_to_certify(confusion(24, 1, 24, 1))
    assert isinstance(many, int)
    assert certify_judge(confusion(48, 2, 48, 2)) is Certification.PASS
    assert 50 < many <= 100


def test_a_confusion_counts_unit_by_unit() -> None:
    """The judge's verdict first, the label of people second."""
    found = confusion_of([True, True, False, False, True], [True, False, False, True, True])

    assert Confusion(true_pass=2, false_pass=1, true_fail=1, false_fail=1) == found
    assert (5, 3, 2, 2) == (found.labels, found.good, found.bad, found.disagreements)


@pytest.mark.parametrize(
    "call",
    [
        lambda: confusion_of([], []),
        lambda: confusion_of([True], [True, False]),
        lambda: confusion_of([1], [True]),  # type: ignore[list-item]
        lambda: Confusion(true_pass=0, false_pass=0, true_fail=0, false_fail=0),
        lambda: Confusion(true_pass=-1, false_pass=0, true_fail=0, false_fail=5),
        lambda: krippendorff_alpha("yes"),
        lambda: krippendorff_alpha(["yes"]),
        lambda: krippendorff_alpha([(1, 2)], level="ratio"),  # type: ignore[arg-type]
        lambda: krippendorff_alpha([("a", "b")], level="ordinal"),
        lambda: krippendorff_alpha([(1, math.nan)], level="interval"),
        lambda: cohen_kappa([], []),
        lambda: cohen_kappa([1], [1, 2]),
        lambda: krippendorff_alpha_interval([(1, 2), (1, 1)], seed=1, resamples=10),
        lambda: krippendorff_alpha_interval([(1, 2), (1, 1)], seed=-1),
        lambda: krippendorff_alpha_interval([(1, 2), (1, 1)], seed=1, confidence=1.0),
    ],
)
def test_what_is_not_ratings_is_refused(call: Any) -> None:
    """With the argument's name; nothing becomes NaN."""
    with pytest.raises(InvalidArgument):
        call()


def test_no_pair_is_no_alpha() -> None:
    """Units that one rater alone saw say nothing of agreement."""
    assert isinstance(krippendorff_alpha([(1, None), (None, 2)]), Undefined)
    assert isinstance(krippendorff_alpha([]), Undefined)
