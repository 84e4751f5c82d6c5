"""E-processes: supermartingales in rationals, crossing probabilities by path counting."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Literal

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.errors import InvalidArgument
from trialwise.stats.confidence_sequences import anytime_p_value
from trialwise.stats.e_values import EProcess, e_process, e_value

PFFPFFF = [True, False, False, True, False, False, False]

rates = st.floats(0.02, 0.98)
streams = st.lists(st.booleans(), min_size=1, max_size=60)
directions = st.sampled_from(["below", "above"])


def ratio(s: int, f: int, p0: Fraction, p1: Fraction) -> Fraction:
    """The likelihood ratio as the papers state it."""
    return (p1 / p0) ** s * ((1 - p1) / (1 - p0)) ** f


def mixture_below(s: int, f: int, p0: Fraction) -> Fraction:
    """The mean of the ratio over p1 uniform on (0, p0), the polynomial integrated term by term."""
    integral = sum(
        (-1) ** j * math.comb(f, j) * p0 ** (s + j + 1) / Fraction(s + j + 1) for j in range(f + 1)
    )
    return Fraction(integral) / p0 / (p0**s * (1 - p0) ** f)


def ever_crosses(stops: Callable[[int, int], bool], p: float, trials: int) -> float:
    """P(the rule stops within this many trials) at a true rate, by counting paths over (n, s)."""
    alive, total = [1.0], 0.0
    for n in range(1, trials + 1):
        alive = [
            (alive[s] * (1 - p) if s < n else 0.0) + (alive[s - 1] * p if s else 0.0)
            for s in range(n + 1)
        ]
        for s in range(n + 1):
            if alive[s] and stops(s, n):
                total += alive[s]
                alive[s] = 0.0
    return total


def test_the_documented_numbers() -> None:
    """At 0.9 against 0.8, 14 passes give (8/9)^14 and P F F P F F F gives 2^5 (8/9)^2."""
    assert round(e_process([True] * 14, 0.9, 0.8)[-1], 3) == 0.192
    assert round(e_process(PFFPFFF, 0.9, 0.8)[-1], 1) == 25.3
    assert round(anytime_p_value(PFFPFFF, 0.9, 0.8), 6) == 0.039551
    assert Fraction(81, 2048) == 1 / ratio(2, 5, Fraction(9, 10), Fraction(8, 10))
    assert pytest.approx(anytime_p_value(PFFPFFF, 0.9, 0.8), rel=1e-14) == 81 / 2048


@pytest.mark.parametrize("p1", [Fraction(1, 2), Fraction(4, 5), Fraction(89, 100)])
def test_the_likelihood_ratio_is_a_supermartingale_at_every_rate_of_the_null(p1: Fraction) -> None:
    """In rationals: one more trial multiplies it by 1 on average at p0 and by less above p0."""
    p0 = Fraction(9, 10)
    for p in (p0, Fraction(91, 100), Fraction(99, 100), Fraction(1)):
        for s in range(6):
            for f in range(6):
                following = p * ratio(s + 1, f, p0, p1) + (1 - p) * ratio(s, f + 1, p0, p1)

                assert (following == ratio(s, f, p0, p1)) is (p == p0)
                assert following <= ratio(s, f, p0, p1)
                ours = e_value(s, s + f, float(p0), float(p1)) if s + f else 1.0
                assert float(ratio(s, f, p0, p1)) == pytest.approx(ours, rel=1e-12)


@pytest.mark.parametrize("p0", [Fraction(1, 2), Fraction(9, 10), Fraction(19, 20)])
def test_the_mixture_is_a_supermartingale_at_every_rate_of_the_null(p0: Fraction) -> None:
    """In rationals, with the integral expanded by hand; its mirror image shows a rate above."""
    for p in (p0, (1 + p0) / 2, Fraction(1)):
        for s in range(6):
            for f in range(6):
                now = mixture_below(s, f, p0)
                up, down = mixture_below(s + 1, f, p0), mixture_below(s, f + 1, p0)

                assert p * up + (1 - p) * down <= now
                assert (p * up + (1 - p) * down == now) is (p == p0)
                if s + f:
                    below = e_value(s, s + f, float(p0))
                    above = e_value(f, s + f, float(1 - p0), direction="above")
                    assert float(now) == pytest.approx(below, rel=1e-12)
                    assert float(now) == pytest.approx(above, rel=1e-12)


@pytest.mark.slow("0.9-None", "0.93-None", "0.99-None")
@pytest.mark.parametrize("p1", [None, 0.8])
@pytest.mark.parametrize("p", [0.9, 0.93, 0.99])
def test_evidence_ever_reaches_one_over_alpha_with_probability_at_most_alpha(
    p1: float | None, p: float
) -> None:
    """Exact over 300 trials at rates of the null, for four levels."""
    evidence = {
        (s, n): e_value(s, n, 0.9, p1) for n in range(1, 301) for s in range(max(0, n - 80), n + 1)
    }
    for alpha in (0.2, 0.1, 0.05, 0.01):
        crossed = ever_crosses(
            lambda s, n, level=alpha: evidence.get((s, n), math.inf) >= 1 / level,  # type: ignore[misc]
            p,
            300,
        )

        assert 0 < crossed <= alpha


@pytest.mark.slow
def test_the_two_sided_use_has_the_documented_error_rates() -> None:
    """FAIL at evidence 20 against 0.9, PASS at 5 against 0.8: .032/.183 and, mixed, .027/.154."""

    def errors(p1_fail: float | None, p1_pass: float | None) -> tuple[float, float]:
        def share(p: float, wanted: str) -> float:
            alive, total = {0: 1.0}, 0.0
            for n in range(1, 1500):
                step: dict[int, float] = {}
                for s, weight in alive.items():
                    step[s] = step.get(s, 0.0) + weight * (1 - p)
                    step[s + 1] = step.get(s + 1, 0.0) + weight * p
                alive = {}
                for s, weight in step.items():
                    if e_value(s, n, 0.9, p1_fail, direction="below") >= 20:
                        total += weight if wanted == "fail" else 0.0
                    elif e_value(s, n, 0.8, p1_pass, direction="above") >= 5:
                        total += weight if wanted == "pass" else 0.0
                    elif weight > 1e-13:
                        alive[s] = weight
                if not alive:
                    break
            return total

        return round(share(0.9, "fail"), 4), round(share(0.8, "pass"), 4)

    likelihood, mixed = errors(0.8, 0.9), errors(None, None)

    assert likelihood == pytest.approx((0.032, 0.183), abs=0.0005)
    assert mixed == pytest.approx((0.027, 0.154), abs=0.0006)


@pytest.mark.parametrize(
    ("s", "f", "p0"),
    [
        (0, 5, 0.9),
        (10_000, 0, 0.5),
        (10_000, 3, 0.5),
        (800, 200, 0.9),
        (9, 1000, 0.9),
        (50, 50, 0.5),
    ],
)
def test_the_mixture_agrees_with_arbitrary_precision_where_doubles_underflow(
    s: int, f: int, p0: float
) -> None:
    """log E against mpmath's incomplete beta with 60 digits."""
    with mpmath.workdps(60):
        x = mpmath.mpf(p0)
        expected = mpmath.log(mpmath.betainc(s + 1, f + 1, 0, x) / (x ** (s + 1) * (1 - x) ** f))
    state = EProcess(p0=p0, trials=s + f, successes=s)

    assert float(expected) == pytest.approx(state.log_value, rel=1e-12, abs=1e-12)


def test_evidence_beyond_a_double_is_infinite_and_its_logarithm_is_not() -> None:
    """2000 failures at a threshold of 0.9."""
    state = EProcess(p0=0.9, p1=0.5, trials=2000, successes=0)

    assert math.inf == state.value
    assert state.log_value == pytest.approx(2000 * math.log(5), rel=1e-12)


@given(streams, rates, rates)
def test_updating_one_by_one_is_the_whole_process(
    outcomes: list[bool], p0: float, p1: float
) -> None:
    """The states' values are the process; the p-value is one over the largest, at most 1."""
    if abs(p0 - p1) < 1e-6:
        return
    state = EProcess.start(p0, p1)
    values = []
    for outcome in outcomes:
        state = state.update(outcome)
        values.append(state.value)

    assert tuple(values) == e_process(outcomes, p0, p1)
    assert min(1.0, 1 / max(values)) == pytest.approx(state.p_value, rel=1e-9)
    assert state.p_value == anytime_p_value(outcomes, p0, p1)
    assert values[-1] == e_value(sum(outcomes), len(outcomes), p0, p1)


@given(streams, rates, directions)
def test_the_two_directions_are_mirror_images(
    outcomes: list[bool], p0: float, direction: Literal["below", "above"]
) -> None:
    """Swapping successes with failures and p0 with 1 − p0 swaps the direction."""
    other: Literal["below", "above"] = "above" if direction == "below" else "below"
    mirrored = [not outcome for outcome in outcomes]

    assert e_process(outcomes, p0, direction=direction) == pytest.approx(
        e_process(mirrored, 1 - p0, direction=other), rel=1e-6
    )


@given(streams, rates)
def test_the_anytime_p_value_never_rises(outcomes: list[bool], p0: float) -> None:
    """More trials can only add evidence to the best so far."""
    history = [anytime_p_value(outcomes[:n], p0) for n in range(1, len(outcomes) + 1)]

    assert history == sorted(history, reverse=True)


@given(st.integers(0, 80), st.integers(0, 80), rates)
def test_one_more_failure_is_more_evidence_of_a_low_rate(s: int, f: int, p0: float) -> None:
    """Among tallies of equally many trials, fewer successes never lower the evidence."""
    if s:
        assert e_value(s - 1, s + f, p0) > e_value(s, s + f, p0)


def test_the_state_is_a_value() -> None:
    """Updating leaves the old state alone; equal histories are equal and hashable."""
    start = EProcess.start(0.9, 0.8)
    one = start.update(True)

    assert (start.trials, one.trials) == (0, 1)
    assert one == start.update(1)
    assert len({one, start.update(True)}) == 1


def test_direction_follows_from_the_alternative() -> None:
    """A rate bet on above p0 shows a rate above; without one, below."""
    assert EProcess.start(0.8, 0.9).direction == "above"
    assert EProcess.start(0.9, 0.8).direction == "below"
    assert EProcess.start(0.9).direction == "below"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"outcomes": []}, "outcomes"),
        ({"outcomes": "PFF"}, "outcomes"),
        ({"outcomes": 3}, "outcomes"),
        ({"outcomes": [2]}, "outcome"),
        ({"outcomes": [1.0]}, "outcome"),
        ({"outcomes": [math.nan]}, "outcome"),
        ({"p0": 1.0}, "p0"),
        ({"p0": math.nan}, "p0"),
        ({"p0": "0.9"}, "p0"),
        ({"p1": 0.9}, "p1"),
        ({"p1": 0.0}, "p1"),
        ({"p1": 0.8, "direction": "above"}, "p1"),
        ({"direction": "sideways"}, "direction"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, Any], named: str) -> None:
    """Each refusal names the argument."""
    good: dict[str, Any] = {"outcomes": [True, False], "p0": 0.9}
    for function in (e_process, anytime_p_value):
        with pytest.raises(InvalidArgument) as caught:
            function(**{**good, **arguments})
        assert named == caught.value.argument


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"successes": 3, "trials": 2}, "successes"),
        ({"successes": 1}, "trials"),
        ({"log_peak": -1.0}, "log_peak"),
        ({"log_peak": math.inf}, "log_peak"),
        ({"p1": 0.95}, "p1"),
    ],
)
def test_a_state_cannot_be_built_wrong(fields: dict[str, Any], named: str) -> None:
    """Impossible counts, peaks and alternatives are refused."""
    with pytest.raises(InvalidArgument) as caught:
        EProcess(p0=0.9, **fields)
    assert named == caught.value.argument


def test_tallies_are_checked() -> None:
    """More successes than trials, and no trials, are refused."""
    with pytest.raises(InvalidArgument, match="successes"):
        e_value(3, 2, 0.9)
    with pytest.raises(InvalidArgument, match="trials"):
        e_value(0, 0, 0.9)
