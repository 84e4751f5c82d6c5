"""Confidence sequences: closed forms, the documented vectors, time-uniform coverage by counting."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special

from trialwise.errors import InvalidArgument
from trialwise.stats.confidence_sequences import BoundedSequence, anytime_interval
from trialwise.stats.e_values import e_value
from trialwise.stats.rate_intervals import Side, clopper_pearson, wilson_upper
from trialwise.stats.result_types import Interval, Undefined
from trialwise.stats.toolbox.running_intervals import (
    BernoulliSequence,
    bernoulli_confidence_sequence,
    bounded_confidence_sequence,
)

streams = st.lists(st.booleans(), min_size=1, max_size=40)


def log_martingale(p: float, s: int, f: int, a: float, b: float) -> float:
    """log of B(s+a, f+b) / (B(a, b) p^s (1−p)^f), by scipy."""
    return float(
        special.betaln(s + a, f + b)
        - special.betaln(a, b)
        - special.xlogy(s, p)
        - special.xlog1py(f, -p)
    )


def ever_missed(ends: dict[tuple[int, int], Interval], p: float, trials: int) -> float:
    """P(some interval leaves out p), by a forward recursion over (n, s)."""
    alive, missed = [1.0], 0.0
    for n in range(1, trials + 1):
        alive = [
            (alive[s] * (1 - p) if s < n else 0.0) + (alive[s - 1] * p if s else 0.0)
            for s in range(n + 1)
        ]
        for s in range(n + 1):
            if p not in ends[n, s]:
                missed += alive[s]
                alive[s] = 0.0
    return missed


def test_all_successes_have_a_closed_form() -> None:
    """n of n gives (alpha/(n+1))^(1/n), two-sided: the martingale is 1/((n+1) p^n)."""
    for n in (1, 5, 30, 200):
        low, high = anytime_interval(n, n)
        assert (0.05 / (n + 1)) ** (1 / n) == pytest.approx(low, rel=1e-12)
        assert high == 1.0


@pytest.mark.parametrize("prior", [(1.0, 1.0), (0.5, 0.5), (9.0, 1.0)])
@pytest.mark.parametrize(("s", "n"), [(1, 2), (45, 50), (3, 200), (990, 1000)])
def test_both_ends_are_the_roots_that_scipy_finds(
    s: int, n: int, prior: tuple[float, float]
) -> None:
    """Brent's method on the martingale by scipy's betaln."""
    low, high = anytime_interval(s, n, confidence=0.9, prior=prior)
    goal = math.log(10)

    def excess(p: float) -> float:
        return log_martingale(p, s, n - s, *prior) - goal

    assert optimize.brentq(excess, 1e-12, s / n, xtol=1e-14) == pytest.approx(low, abs=1e-11)
    assert optimize.brentq(excess, s / n, 1 - 1e-12, xtol=1e-14) == pytest.approx(high, abs=1e-11)


@pytest.mark.slow("prior1-0.95")
@pytest.mark.parametrize("confidence", [pytest.param(0.8, marks=pytest.mark.slow), 0.95])
@pytest.mark.parametrize("prior", [pytest.param((1.0, 1.0), marks=pytest.mark.slow), (0.5, 0.5)])
def test_the_rate_is_ever_left_out_with_at_most_the_stated_probability(
    confidence: float, prior: tuple[float, float]
) -> None:
    """Exact over 200 trials at 39 rates; the same intervals stop being valid nowhere."""
    trials = 200
    ends = {
        (n, s): anytime_interval(s, n, confidence=confidence, prior=prior)
        for n in range(1, trials + 1)
        for s in range(n + 1)
    }
    missed = [ever_missed(ends, i / 40, trials) for i in range(1, 40)]

    assert max(missed) <= 1 - confidence
    # Valid, and not by being vacuous: over 200 looks most of the error is spent somewhere.
    assert max(missed) >= 0.5 * (1 - confidence)


@pytest.mark.slow("lower")
@pytest.mark.parametrize("side", ["lower", pytest.param("upper", marks=pytest.mark.slow)])
def test_a_one_sided_sequence_spends_its_error_on_one_side(side: Side) -> None:
    """Exact over 60 trials: it misses on its side only, at most 1 − confidence of the time."""
    trials = 60
    ends = {
        (n, s): anytime_interval(s, n, confidence=0.9, side=side)
        for n in range(1, trials + 1)
        for s in range(n + 1)
    }

    assert all((e.high == 1.0) if side == "lower" else (e.low == 0.0) for e in ends.values())
    assert max(ever_missed(ends, i / 20, trials) for i in range(1, 20)) <= 0.1


@pytest.mark.parametrize(("s", "n"), [(18, 20), (45, 50), (1, 3), (50, 50)])
def test_the_one_sided_bound_is_where_the_evidence_reaches_one_over_alpha(s: int, n: int) -> None:
    """Thresholds under the lower bound are refuted at that level, those over it are not."""
    low = anytime_interval(s, n, confidence=0.95, side="lower").low

    assert e_value(s, n, low - 1e-9, direction="above") >= 20
    assert e_value(s, n, low + 1e-9, direction="above") < 20
    assert low == pytest.approx(
        1 - anytime_interval(n - s, n, confidence=0.95, side="upper").high, abs=1e-12
    )


@pytest.mark.slow
def test_a_reused_fixed_interval_is_not_a_confidence_sequence() -> None:
    """Clopper–Pearson read after each of 100 trials leaves out the rate twice as often as said."""
    trials = 100
    ends = {(n, s): clopper_pearson(s, n) for n in range(1, trials + 1) for s in range(n + 1)}

    assert ever_missed(ends, 0.8, trials) > 0.1


@given(streams, st.sampled_from([0.5, 0.8, 0.95]))
@settings(max_examples=60, deadline=None)
def test_running_intervals_are_the_intersections(outcomes: list[bool], confidence: float) -> None:
    """They never widen, and each is all the single intervals so far have in common."""
    sequence = bernoulli_confidence_sequence(outcomes, confidence=confidence)
    singles = [
        anytime_interval(sum(outcomes[:n]), n, confidence=confidence)
        for n in range(1, len(outcomes) + 1)
    ]
    for n, running in enumerate(sequence, 1):
        low, high = max(i.low for i in singles[:n]), min(i.high for i in singles[:n])
        assert running == (Interval(low, high) if low <= high else running)
        assert isinstance(running, Undefined) is (low > high)


def test_a_changed_rate_empties_the_intersection() -> None:
    """300 successes, then 300 failures: no rate is in every interval, and that is said."""
    last = bernoulli_confidence_sequence([1] * 300 + [0] * 300)[-1]

    assert isinstance(last, Undefined)
    assert "no longer overlap" in last.reason


@pytest.mark.slow
@given(st.integers(1, 300), st.data())
@settings(max_examples=60, deadline=None)
def test_intervals_mirror_and_nest(n: int, data: st.DataObject) -> None:
    """Failures mirror successes; more confidence is wider; the observed rate is inside."""
    s = data.draw(st.integers(0, n))
    narrow, wide = (anytime_interval(s, n, confidence=c) for c in (0.8, 0.95))
    mirror = anytime_interval(n - s, n, confidence=0.8)

    assert wide.low <= narrow.low <= s / n <= narrow.high <= wide.high
    assert (1 - mirror.high, 1 - mirror.low) == pytest.approx((narrow.low, narrow.high), abs=1e-9)


# --- empirical Bernstein ------------------------------------------------------------------------


def bernstein(values: list[float], alpha: float) -> list[tuple[float, float]]:
    """The construction as published, from whole-history sums each time, not running ones."""
    ends = []
    for t in range(1, len(values) + 1):
        means = [(0.5 + sum(values[:i])) / (i + 1) for i in range(t + 1)]
        bets, spread = [], 0.0
        for i in range(1, t + 1):
            squares = sum((values[j - 1] - means[j]) ** 2 for j in range(1, i))
            variance = (0.25 + squares) / i
            bet = min(0.5, math.sqrt(2 * math.log(2 / alpha) / (variance * i * math.log(1 + i))))
            psi = (-math.log(1 - bet) - bet) / 4
            spread += 4 * (values[i - 1] - means[i - 1]) ** 2 * psi
            bets.append(bet)
        centre = sum(b * x for b, x in zip(bets, values, strict=False)) / sum(bets)
        radius = (math.log(2 / alpha) + spread) / sum(bets)
        ends.append((centre - radius, centre + radius))
    return ends


def test_the_first_success_gives_the_documented_interval() -> None:
    """alpha 0.05, first value 1: increment (ln 2 − 1/2)/4, squares 1/16, [−6.474332, 8.474332]."""
    state = BoundedSequence(confidence=0.95).update(1.0)

    assert (math.log(2) - 0.5) / 4 == pytest.approx(state.variation, rel=1e-14)
    assert round(state.variation, 7) == 0.0482868
    assert state.squares == 0.0625
    assert (round(state.low, 6), round(state.high, 6)) == (-6.474332, 8.474332)
    assert state.interval == Interval(0.0, 1.0)


@pytest.mark.parametrize(("confidence", "trial"), [(0.80, 20), (0.95, 36)])
def test_all_passes_clear_one_half_at_the_documented_trial(confidence: float, trial: int) -> None:
    """A third of alpha for sampling, the rest for 20 error-free labels: trial 20, and 36 at 95 %.

    The calibration term is the width of an error-free Wilson cell, 0.1440 at confidence 0.80.
    """
    alpha = 1 - confidence
    calibration = wilson_upper(0, 20, confidence=1 - (2 * alpha / 3) / 4)
    if confidence == 0.80:
        assert round(calibration, 4) == 0.1440
    state = BoundedSequence(confidence=1 - alpha / 3)
    cleared = 0
    while not cleared:
        state = state.update(1.0)
        if state.low - calibration > 0.5:
            cleared = state.trials

    assert trial == cleared


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.sampled_from([0.05, 0.3]))
@settings(max_examples=60, deadline=None)
def test_running_sums_follow_the_published_construction(values: list[float], alpha: float) -> None:
    """Against a second implementation that starts afresh at every trial."""
    state = BoundedSequence(confidence=1 - alpha)
    expected = bernstein(values, alpha)
    for n, value in enumerate(values, 1):
        state = state.update(value)
        assert max(low for low, _ in expected[:n]) == pytest.approx(state.low, abs=1e-9)
        assert min(high for _, high in expected[:n]) == pytest.approx(state.high, abs=1e-9)


def test_one_step_of_the_bernstein_bet_cannot_gain_on_average() -> None:
    """E exp(λ(X−p) − (X−m)²(−log(1−λ)−λ)) ≤ 1 for every rate p, past mean m and bet λ ≤ 1/2.

    That inequality is all the sequence stands on (Howard et al. 2021), for λ of either sign.
    """
    for p, m, step in product(range(21), range(21), range(1, 11)):
        rate, mean, bet = p / 20, m / 20, step / 20
        cost = -math.log1p(-bet) - bet
        for sign in (1, -1):
            gain = sum(
                weight * math.exp(sign * bet * (x - rate) - (x - mean) ** 2 * cost)
                for x, weight in ((1, rate), (0, 1 - rate))
            )
            assert gain <= 1 + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("confidence", [0.2, 0.5])
def test_the_bernstein_sequence_covers_at_every_trial_at_once(confidence: float) -> None:
    """All 2^13 orders of 13 outcomes, at 9 rates: the chance of ever missing is at most alpha."""
    trials = 13
    states: dict[tuple[int, ...], BoundedSequence] = {(): BoundedSequence(confidence=confidence)}
    for _ in range(trials):
        states = {(*path, x): s.update(x) for path, s in states.items() for x in (0, 1)}
    found = {path: (state.low, state.high) for path, state in states.items()}
    missed = []
    for i in range(1, 10):
        p = i / 10
        weights = [p**k * (1 - p) ** (trials - k) for k in range(trials + 1)]
        missed.append(
            math.fsum(
                weights[sum(path)] for path, (low, high) in found.items() if not low <= p <= high
            )
        )

    assert 0 < max(missed) <= 1 - confidence


def test_the_beta_mixture_is_the_narrower_one_for_outcomes() -> None:
    """After 100 outcomes of rate 0.9, in a fixed mixed order."""
    outcomes = [i % 10 != 3 for i in range(100)]
    beta, bounded = (
        bernoulli_confidence_sequence(outcomes)[-1],
        bounded_confidence_sequence(outcomes)[-1],
    )

    assert isinstance(beta, Interval)
    assert isinstance(bounded, Interval)
    assert beta.width < bounded.width


def test_states_are_values() -> None:
    """Updating leaves the old state alone, and equal histories are equal."""
    start = BernoulliSequence(confidence=0.9)
    bounded = BoundedSequence(confidence=0.9)

    assert start.update(True) == start.update(1)
    assert (start.trials, bounded.trials) == (0, 0)
    assert bounded.update(0.5) == bounded.update(0.5)
    assert hash(bounded.update(0.5)) == hash(bounded.update(0.5))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"outcomes": []}, "outcomes"),
        ({"outcomes": [0.5]}, "outcome"),
        ({"confidence": 1.0}, "confidence"),
        ({"confidence": math.nan}, "confidence"),
        ({"side": "left"}, "side"),
        ({"prior": (0, 1)}, "prior[0]"),
        ({"prior": (1, math.nan)}, "prior[1]"),
        ({"prior": 1}, "prior"),
        ({"prior": (2, 2), "side": "lower"}, "prior"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, Any], named: str) -> None:
    """Each refusal names the argument."""
    good: dict[str, Any] = {"outcomes": [True, False]}
    with pytest.raises(InvalidArgument) as caught:
        bernoulli_confidence_sequence(**{**good, **arguments})
    assert named == caught.value.argument


@pytest.mark.parametrize(
    ("values", "named"),
    [([], "values"), ("0.5", "values"), (7, "values"), ([1.5], "value"), ([math.nan], "value")],
)
def test_bad_values_are_named(values: Any, named: str) -> None:
    """Values outside [0, 1], none, or not numbers."""
    with pytest.raises(InvalidArgument) as caught:
        bounded_confidence_sequence(values)
    assert named == caught.value.argument


@pytest.mark.parametrize(
    ("fields", "named"), [({"low": 2.0}, "low"), ({"successes": 2, "trials": 1}, "successes")]
)
def test_a_state_cannot_be_built_wrong(fields: dict[str, Any], named: str) -> None:
    """Impossible ends and counts are refused."""
    with pytest.raises(InvalidArgument) as caught:
        BernoulliSequence(**fields)
    assert named == caught.value.argument
