"""Signs of dependence and drift, against brute force over every order of the outcomes."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, groupby, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom

from trialwise.model.trial import CheckResult, FailReason, Outcome, Trial
from trialwise.procedures.criterion_rows import Rows
from trialwise.procedures.trial_rows import diagnose, diagnose_rows

outcomes = st.lists(st.booleans(), min_size=1, max_size=60)


def runs(sequence: tuple[bool, ...] | list[bool]) -> int:
    return sum(1 for _ in groupby(sequence))


def orders(passed: list[bool]) -> list[tuple[bool, ...]]:
    """Every order of the outcomes, once."""
    places = range(len(passed))
    chosen = map(set, combinations(places, sum(passed)))
    return [tuple(place in where for place in places) for where in chosen]


# Dependence


@pytest.mark.parametrize("text", ["11110000", "1100110", "1010101", "1110101", "0011"])
def test_the_runs_test_counts_orders(text: str) -> None:
    """P(so few runs) is the share of orders with so few, each order being equally likely."""
    passed = [mark == "1" for mark in text]
    every = orders(passed)
    share = Fraction(sum(runs(order) <= runs(passed) for order in every), len(every))

    assert float(share) == diagnose(passed).autocorrelation_p


@given(outcomes)
def test_the_autocorrelation_is_the_textbooks(passed: list[bool]) -> None:
    """Σ (x_t − x̄)(x_{t+1} − x̄) / Σ (x_t − x̄)², in rationals; undefined where nothing varies."""
    found = diagnose(passed).autocorrelation
    mean = Fraction(sum(passed), len(passed))
    deviations = [int(x) - mean for x in passed]
    spread = sum(d * d for d in deviations)
    if spread == 0:
        assert found is None
        return
    products = sum(a * b for a, b in pairwise(deviations))

    assert found == pytest.approx(float(products / spread), abs=1e-12)


def test_alike_neighbours_are_warned_of() -> None:
    """Blocks of five equal outcomes: the words name the number, the test and what chance does."""
    passed = ([True] * 5 + [False] * 5) * 6
    found = diagnose(passed)
    (warning,) = found.warnings

    assert found.autocorrelation_p is not None
    assert found.autocorrelation_p < 0.01
    assert "Neighbouring trials are more alike" in warning
    assert f"{found.autocorrelation:.2f}" in warning
    assert "1 criterion in 100 shows this by chance" in warning


def test_unlike_neighbours_are_no_dependence_to_warn_of() -> None:
    """Alternation makes the evidence stronger, not weaker."""
    assert () == diagnose([True, False] * 40).warnings


# Drift


@given(st.lists(st.booleans(), min_size=2, max_size=60))
def test_the_drift_test_is_fishers(passed: list[bool]) -> None:
    """Twice the smaller tail of the second half's successes, given all successes."""
    found = diagnose(passed)
    half, n = len(passed) // 2, len(passed)
    late = sum(passed[half:])
    law = hypergeom(n, sum(passed), n - half)
    expected = min(1.0, 2 * law.cdf(late), 2 * law.sf(late - 1))

    assert found.drift_p == pytest.approx(expected, abs=1e-10)
    assert found.first_half_rate == sum(passed[:half]) / half
    assert found.second_half_rate == late / (n - half)


def test_a_service_that_broke_halfway_is_warned_of() -> None:
    """Both rates and the p-value stand in the warning."""
    early = [True] * 19 + [False]
    late = [True, False, True, False, False] * 4
    (drift,) = [w for w in diagnose(early + late).warnings if "first half" in w]

    assert drift.startswith("The rate was 0.95 in the first half of the run and 0.4 in the second ")


@given(outcomes)
def test_drift_is_seen_in_either_direction_alike(passed: list[bool]) -> None:
    """An even run read backwards has drifted as much."""
    even = passed * 2
    forth, back = diagnose(even), diagnose(even[::-1])

    assert forth.drift_p == pytest.approx(back.drift_p, abs=1e-12)


def test_by_chance_a_warning_is_as_rare_as_it_says() -> None:
    """Over all orders of 5 successes and 5 failures each test stays below its 0.01."""
    every = orders([True] * 5 + [False] * 5)
    found = [diagnose(list(order)) for order in every]

    for name in ("autocorrelation_p", "drift_p"):
        small = sum(getattr(one, name) < 0.01 for one in found)
        assert Fraction(small, len(every)) <= Fraction(1, 100)


# What gave nothing to test


@pytest.mark.parametrize(
    ("untestable", "trials", "warned"), [(3, 30, True), (2, 30, False), (10, 100, True)]
)
def test_a_tenth_of_untestable_trials_is_warned_of(
    untestable: int, trials: int, warned: bool
) -> None:
    """A tenth is a tenth: 3 of 30 counts, whatever doubles make of 0.1 · 30."""
    found = diagnose_rows(_rows(trials - untestable, untestable))
    said = [w for w in found.warnings if f"{untestable} of {trials} trials gave nothing" in w]

    assert warned is bool(said)
    assert untestable / trials == found.untestable_share


def test_the_trial_that_decided_is_among_those_that_gave_nothing_to_check() -> None:
    """Four trials ran and two of them gave nothing: the last one decided, and counts, too."""
    found = diagnose_rows(_rows(2, 2), deciding=3)

    assert ["2 of 4 trials"] == [w[:13] for w in found.warnings if "gave nothing" in w]
    assert 0.5 == found.untestable_share


def _rows(passed: int, untestable: int) -> Rows:
    """Trials that passed, and then trials whose reply could not be read."""
    unread = CheckResult.fail("no JSON", reason=FailReason.TRANSFORM)
    results = [CheckResult.ok()] * passed + [unread] * untestable
    return Rows.of(
        [
            Trial(
                experiment="inputs",
                index=index,
                input_id="a",
                seed=index,
                outcomes=(Outcome(criterion="c", result=result),),
            )
            for index, result in enumerate(results)
        ]
    )


# Edges


def test_no_outcome_says_nothing() -> None:
    """An empty stream has no share, no rate and no warning."""
    found = diagnose([])

    assert (None, None, ()) == (found.untestable_share, found.autocorrelation, found.warnings)


def test_one_outcome_has_no_neighbour_and_no_halves() -> None:
    """A single trial leaves both tests undefined."""
    found = diagnose([True])

    assert (None, None, None) == (found.autocorrelation, found.autocorrelation_p, found.drift_p)


def test_a_very_long_run_is_diagnosed_without_its_slowest_test() -> None:
    """Beyond 100,000 outcomes the exact runs test is left out; the rest stays."""
    passed = [True, True, False] * 33_400
    found = diagnose(passed)

    assert found.autocorrelation is not None
    assert found.autocorrelation_p is None
    assert found.drift_p is not None
