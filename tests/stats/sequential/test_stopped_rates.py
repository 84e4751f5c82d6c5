"""After stopping: exact coverage by enumeration, agreement with the verdict, and biases."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trialwise.errors import InvalidArgument
from trialwise.stats.rate_intervals import clopper_pearson, wilson_interval
from trialwise.stats.result_types import Interval
from trialwise.stats.sequential import SequentialDesign, estimate_bias, naive_bias, naive_interval
from trialwise.stats.sequential.walks import stopping_probabilities

Exactly = Callable[..., Any]
FIFTY = SequentialDesign.optimal(0.9, 0.8, cap=50)


def ordered_stops(design: SequentialDesign) -> list[tuple[int, int, str]]:
    """Every outcome from the best to the worst, as stage-wise ordering says in words."""
    stops = stopping_probabilities(design, 0.5)
    passes = sorted((n, f, "PASS") for n, f, _ in stops.passes)
    middle = sorted((n, f, "INCONCLUSIVE") for n, f, _ in stops.inconclusive)
    fails = sorted(((n, f, "FAIL") for n, f, _ in stops.fails), key=lambda s: (-s[0], s[1]))
    return [*passes, *middle, *fails]


def coverage(
    design: SequentialDesign, intervals: dict[tuple[int, int], Interval], p: float
) -> float:
    """The probability that the interval at the stop holds the true rate."""
    stops = stopping_probabilities(design, p)
    return sum(w for part in stops for n, f, w in part if p in intervals[n, f])


def all_intervals(design: SequentialDesign) -> dict[tuple[int, int], Interval]:
    return {(n, f): design.interval(n, f) for n, f, _ in ordered_stops(design)}


DESIGNS: dict[str, Callable[[], SequentialDesign]] = {
    "optimal, 50 trials": lambda: FIFTY,
    "looks every 10": lambda: SequentialDesign.optimal(0.9, 0.8, cap=50, batch=10),
    "curtailed sample": lambda: SequentialDesign.fixed(0.95, 0.85),
}
MORE: dict[str, Callable[[], SequentialDesign]] = {
    "wald": lambda: SequentialDesign.wald(0.9, 0.8, cap=50),
    "optimal, no budget": lambda: SequentialDesign.optimal(0.9, 0.8),
    "calibrated": lambda: SequentialDesign.calibrated(0.95, 0.85, cap=60),
    "high rates": lambda: SequentialDesign.optimal(0.99, 0.94, cap=100),
    "even odds": lambda: SequentialDesign.optimal(0.5, 0.4, cap=100),
}


@pytest.mark.slow("looks every 10")
@pytest.mark.parametrize("name", DESIGNS)
def test_coverage_is_at_least_nominal(name: str) -> None:
    """At 199 true rates, exactly."""
    design = DESIGNS[name]()
    intervals = all_intervals(design)

    assert min(coverage(design, intervals, k / 200) for k in range(1, 200)) >= 0.95 - 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("name", [*DESIGNS, *MORE])
def test_coverage_is_at_least_nominal_on_a_thousand_rates(name: str) -> None:
    """At 1,001 true rates from 0 to 1, for every kind of design; the naive interval's is not."""
    design = {**DESIGNS, **MORE}[name]()
    intervals = all_intervals(design)
    naive = {stop: naive_interval(design, *stop) for stop in intervals}
    rates = [k / 1000 for k in range(1001)]

    assert min(coverage(design, intervals, p) for p in rates) >= 0.95 - 1e-10
    assert min(coverage(design, naive, p) for p in rates) < 0.92


def test_coverage_holds_on_both_sides_of_every_limit() -> None:
    """Coverage can only dip next to a limit, so that is where it is looked at."""
    intervals = all_intervals(FIFTY)
    limits = {limit for interval in intervals.values() for limit in interval}
    rates = [p + d for p in limits for d in (-1e-9, 1e-9) if 0 < p + d < 1]

    assert min(coverage(FIFTY, intervals, p) for p in rates) >= 0.95 - 1e-7


def test_naive_wilson_does_not_cover() -> None:
    """Nominal 95 %, in truth down to 84 to 87 %: descriptive, and labelled so."""
    naive = {(n, f): naive_interval(FIFTY, n, f) for n, f, _ in ordered_stops(FIFTY)}
    least = min(coverage(FIFTY, naive, k / 200) for k in range(1, 200))

    assert 0.83 < least < 0.88
    shown = naive_interval(FIFTY, 13, 0)
    assert shown == wilson_interval(13, 13)
    assert "descriptive" in shown.method


def test_the_limits_solve_their_equations_exactly(exactly: Exactly) -> None:
    """In rationals: 2.5 % for outcomes as good at the lower limit, as bad at the upper one."""
    outcomes = ordered_stops(FIFTY)
    for k, (n, f, _) in list(enumerate(outcomes))[::6]:
        low, high = FIFTY.interval(n, f)
        at_low = exactly(FIFTY.accept, FIFTY.reject, Fraction(low)).stops
        at_high = exactly(FIFTY.accept, FIFTY.reject, Fraction(high)).stops
        if low > 0:
            good = sum(at_low[m, g] for m, g, _ in outcomes[: k + 1])
            assert float(good) == pytest.approx(0.025, abs=1e-10)
        if high < 1:
            bad = sum(at_high[m, g] for m, g, _ in outcomes[k:])
            assert float(bad) == pytest.approx(0.025, abs=1e-10)


def test_better_outcomes_have_higher_limits_and_estimates() -> None:
    """From the best outcome to the worst both limits and the estimate fall."""
    stops = [(n, f) for n, f, _ in ordered_stops(FIFTY)]
    intervals = [FIFTY.interval(*stop) for stop in stops]
    estimates = [FIFTY.estimate(*stop) for stop in stops]

    for values in ([i.low for i in intervals], [i.high for i in intervals], estimates):
        assert values == sorted(values, reverse=True)
    assert (intervals[0].high, intervals[-1].low) == (1.0, 0.0)
    assert (estimates[0], estimates[-1]) == (1.0, 0.0)
    for (low, high), estimate in zip(intervals, estimates, strict=True):
        assert low <= estimate <= high


@pytest.mark.parametrize("name", DESIGNS)
def test_the_interval_never_contradicts_the_verdict(name: str) -> None:
    """A PASS is above p1 with confidence 1 − beta, a FAIL below p0 with confidence 1 − alpha."""
    design = DESIGNS[name]()
    for n, f, verdict in ordered_stops(design):
        if verdict == "PASS":
            lower = design.interval(n, f, confidence=0.80, side="lower")
            assert lower.low >= design.p1 - 1e-10
            assert lower.high == 1
        if verdict == "FAIL":
            upper = design.interval(n, f, confidence=0.95, side="upper")
            assert upper.high <= design.p0 + 1e-10
            assert upper.low == 0


@pytest.mark.parametrize("failures", [0, 1, 8, 12, 13, 40, 78])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
def test_with_one_look_it_is_clopper_and_pearsons(failures: int, confidence: float) -> None:
    """A fixed sample looked at once has only its count to order by."""
    design = SequentialDesign.fixed(0.9, 0.8, batch=78)
    expected = clopper_pearson(78 - failures, 78, confidence=confidence)

    assert tuple(design.interval(78, failures, confidence=confidence)) == pytest.approx(
        tuple(expected), abs=1e-10
    )


@settings(max_examples=30, deadline=None)
@given(narrow=st.floats(0.5, 0.95), wide=st.floats(0.95, 0.9999), index=st.integers(0, 1_000_000))
def test_more_confidence_is_a_wider_interval(narrow: float, wide: float, index: int) -> None:
    """Intervals of one outcome are nested."""
    stops = ordered_stops(FIFTY)
    n, f, _ = stops[index % len(stops)]
    inner = FIFTY.interval(n, f, confidence=narrow)
    outer = FIFTY.interval(n, f, confidence=wide)

    assert outer.low <= inner.low
    assert inner.high <= outer.high
    assert outer.confidence == wide


def test_the_naive_rate_is_biased_and_the_estimate_hardly() -> None:
    """Off by up to 0.07 against less than 0.01 at rates of 0.85 and more."""
    rates = [k / 20 for k in range(1, 20)]
    naive = [naive_bias(FIFTY, p) for p in rates]

    assert -0.08 < min(naive) < -0.06
    assert 0.015 < max(naive) < 0.03
    assert max(abs(estimate_bias(FIFTY, p)) for p in (0.85, 0.9, 0.95, 0.99)) <= 0.01


def test_biases_agree_with_rationals(exactly: Exactly) -> None:
    """The mean observed rate, summed over exact probabilities."""
    stops = exactly(FIFTY.accept, FIFTY.reject, Fraction(4, 5)).stops
    mean = sum(weight * Fraction(n - f, n) for (n, f), weight in stops.items())

    assert naive_bias(FIFTY, 0.8) == pytest.approx(float(mean - Fraction(4, 5)), abs=1e-12)


def test_among_passing_runs_of_a_bad_service_the_observed_rate_is_high() -> None:
    """At a true rate of 0.80 the mean observed rate of runs that PASS is 0.93 to 0.95."""
    passes = stopping_probabilities(FIFTY, 0.8).passes
    mean = sum(w * (n - f) / n for n, f, w in passes) / sum(w for *_, w in passes)

    assert 0.92 < mean < 0.96


@pytest.mark.parametrize(
    ("trials", "failures", "match"),
    [
        (13, 1, "be counts at which the design stops"),
        (51, 3, "be at most the cap"),
        (30, 0, "be a count this design can reach"),
        (10, 11, "be a count this design can reach"),
        (-1, 0, "trials"),
        (13, 0.5, "failures"),
    ],
)
def test_counts_where_the_design_does_not_stop_are_refused(
    trials: int, failures: Any, match: str
) -> None:
    """An interval belongs to an outcome of the design."""
    for ask in (FIFTY.interval, FIFTY.estimate):
        with pytest.raises(InvalidArgument, match=match):
            ask(trials, failures)


def test_bad_levels_and_sides_are_refused() -> None:
    """Confidence strictly between 0 and 1, one of three sides, a rate between 0 and 1."""
    for confidence in (0, 1, 1.5, float("nan")):
        with pytest.raises(InvalidArgument, match="confidence"):
            FIFTY.interval(13, 0, confidence=confidence)
        with pytest.raises(InvalidArgument, match="confidence"):
            naive_interval(FIFTY, 13, 0, confidence=confidence)
    with pytest.raises(InvalidArgument, match="side"):
        FIFTY.interval(13, 0, side="both")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="p must"):
        naive_bias(FIFTY, 1.5)
