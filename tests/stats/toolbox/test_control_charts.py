"""Control charts: run lengths by linear algebra and rationals, alarms by playing every stream."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from trialwise.errors import InvalidArgument
from trialwise.stats.result_types import Undefined
from trialwise.stats.toolbox.cusum import CusumChart, CusumDesign, cusum_design
from trialwise.stats.toolbox.ewma import EwmaChart, EwmaDesign, ewma_design
from trialwise.stats.toolbox.run_lengths import mean_run_lengths, smallest_limit
from trialwise.stats.toolbox.shewhart import ChartDirection, shewhart_design

CUSUMS = [
    (0.9, 0.8, 370.0, 1),
    (0.9, 0.8, 370.0, 50),
    (0.9, 0.95, 200.0, 20),
    (0.99, 0.97, 1000.0, 20),
    (0.5, 0.45, 370.0, 40),
]
EWMAS = [(0.9, 50, 0.2), (0.9, 10, 0.3), (0.5, 20, 0.1), (0.7, 20, 1.0)]


def solved(follow: Callable[[int, int], int], limit: int, trials: int, p: float) -> float:
    """The mean run length from (I − Q)L = 1, with scipy's binomial and numpy's solver.

    `follow(state, successes)` is the chart's own step, played once for every state and count.
    """
    weights = stats.binom.pmf(np.arange(trials + 1), trials, p)
    kernel = np.zeros((limit, limit))
    for state in range(limit):
        for successes in range(trials + 1):
            target = follow(state, successes)
            if target < limit:
                kernel[state, target] += weights[successes]
    return float(np.linalg.solve(np.eye(limit) - kernel, np.ones(limit))[0])


def follow_cusum(design: CusumDesign) -> Callable[[int, int], int]:
    return lambda state, s: CusumChart(design=design, statistic=state).update(s).statistic


def follow_ewma(design: EwmaDesign) -> Callable[[int, int], int]:
    return lambda state, s: EwmaChart(design=design, statistic=state).update(s).statistic


def played(chart: Any, p: float, runs: int) -> float:
    """P(a signal within this many runs) by playing every stream of counts."""
    n = chart.design.trials
    weights = stats.binom.pmf(np.arange(n + 1), n, p)
    total = 0.0
    for stream in product(range(n + 1), repeat=runs):
        state, hit = chart, False
        for successes in stream:
            state = state.update(successes)
            hit = hit or bool(state.signal)
        if hit:
            total += math.prod(float(weights[s]) for s in stream)
    return total


# --- the engine ---------------------------------------------------------------------------------


def test_rare_signals_lose_no_digits() -> None:
    """A walk up 5 with 1/100 and down 1 else, against exact elimination in rationals.

    The mean is 1.7e17, where 1 − P(stay) has no digit left: subtraction-free elimination has all.
    """
    up, limit = Fraction(1, 100), 40
    rows = [{max(0, state - 1): Fraction(99, 100), state + 5: up} for state in range(limit)]
    matrix = [
        [Fraction(int(i == j)) - rows[i].get(j, Fraction(0)) for j in range(limit)] + [Fraction(1)]
        for i in range(limit)
    ]
    for pivot in range(limit - 1, -1, -1):
        for i in range(pivot):
            factor = matrix[i][pivot] / matrix[pivot][pivot]
            if factor:
                matrix[i] = [a - factor * b for a, b in zip(matrix[i], matrix[pivot], strict=True)]
    expected = matrix[0][limit] / matrix[0][0]
    found = mean_run_lengths(lambda state: {max(0, state - 1): 0.99, state + 5: 0.01}, limit)[-1]

    assert expected > 10**12
    assert float(expected) == pytest.approx(found, rel=1e-12)


def test_one_sweep_gives_every_limit() -> None:
    """The k-th mean is that of the chart with limit k, and means never fall with the limit."""

    def moves(state: int) -> dict[int, float]:
        return {max(0, state - 2): 0.7, state + 3: 0.3}

    means = mean_run_lengths(moves, 30)
    for limit in (1, 2, 7, 30):
        assert means[limit - 1] == pytest.approx(mean_run_lengths(moves, limit)[-1], rel=1e-14)
    assert means == sorted(means)


def test_a_limit_out_of_reach_is_infinitely_far() -> None:
    """A chart that cannot climb has no mean run length, and a cap on the search is kept."""
    assert mean_run_lengths(lambda _: {0: 1.0}, 3) == [math.inf] * 3
    assert smallest_limit(lambda s: {0: 0.5, s + 1: 0.5}, 1e9, 10) is None


# --- Shewhart -----------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["below", "above", "both"])
@pytest.mark.parametrize(
    ("p0", "trials", "arl"), [(0.9, 50, 370), (0.5, 20, 100), (0.99, 300, 1000)]
)
def test_shewhart_limits_are_the_last_rare_counts(
    p0: float, trials: int, arl: float, direction: ChartDirection
) -> None:
    """By scipy: each tail is at most its share of 1/arl, and one count further would not be."""
    design = shewhart_design(p0, trials, arl=arl, direction=direction)
    model, share = stats.binom(trials, p0), 1 / arl / (2 if direction == "both" else 1)
    low, high = model.cdf(design.lower), model.sf(design.upper - 1)

    assert low <= share
    assert high <= share
    assert (direction == "above") or model.cdf(design.lower + 1) > share
    assert (direction == "below") or model.sf(design.upper - 2) > share
    assert low + high == pytest.approx(design.false_alarm(), rel=1e-9)
    assert design.false_alarm() <= 1 / arl


@pytest.mark.parametrize("direction", ["below", "above", "both"])
def test_shewhart_run_lengths_are_geometric(direction: ChartDirection) -> None:
    """Mean 1/P(signal) and 1 − (1 − P)^H over a horizon, at several rates, by playing streams."""
    design = shewhart_design(0.5, 5, arl=10, direction=direction)
    for p in (0.2, 0.5, 0.9):
        once = played(design.chart(), p, 1)
        assert once == pytest.approx(design.alarm_probability(p, runs=1), rel=1e-9, abs=1e-15)
        assert played(design.chart(), p, 3) == pytest.approx(
            design.alarm_probability(p, runs=3), rel=1e-9, abs=1e-15
        )
        assert design.average_run_length(p) == pytest.approx(1 / once, rel=1e-9)


def test_a_tail_of_exactly_one_over_arl_signals() -> None:
    """P(0 of 5 at 0.5) = 1/32: a limit at an average run length of 32, not of 32.001."""
    assert shewhart_design(0.5, 5, arl=32).lower == 0
    assert shewhart_design(0.5, 5, arl=32.001).lower == -1
    assert shewhart_design(0.5, 5, arl=32, direction="above").upper == 5


def test_a_chart_that_cannot_signal_says_so() -> None:
    """Four trials at 0.5 are never rare enough for 370 runs; certain rates are handled."""
    silent = shewhart_design(0.5, 4)

    assert (silent.lower, silent.upper) == (-1, 5)
    assert isinstance(silent.average_run_length(0.5), Undefined)
    assert silent.alarm_probability(0.5, runs=10) == 0.0
    loud = shewhart_design(0.9, 50)
    assert loud.average_run_length(0.0) == 1.0
    assert loud.alarm_probability(0.0, runs=1) == 1.0


def test_runs_of_another_size_meet_their_own_limits() -> None:
    """37 of 50 signals at 0.9; of 200 trials it is the limit for 200 that counts."""
    chart = shewhart_design(0.9, 50).chart()
    other = shewhart_design(0.9, 200)

    assert chart.update(37).signal == "below"
    assert chart.update(38).signal is None
    assert chart.update(other.lower, 200).signal == "below"
    assert chart.update(other.lower + 1, 200).signal is None
    both = shewhart_design(0.5, 20, direction="both")
    assert both.chart().update(both.upper).signal == "above"


# --- CUSUM --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("p0", "p1", "arl", "trials"), CUSUMS)
def test_cusum_run_lengths_solve_the_linear_system(
    p0: float, p1: float, arl: float, trials: int
) -> None:
    """In and out of control, against numpy; the limit is the smallest that keeps the promise."""
    design = cusum_design(p0, p1, arl, trials=trials)
    follow = follow_cusum(design)
    for p in (p0, p1, (p0 + p1) / 2):
        assert solved(follow, design.limit, trials, p) == pytest.approx(
            design.average_run_length(p), rel=1e-7
        )
    assert solved(follow, design.limit, trials, p0) >= arl * (1 - 1e-9)
    if design.limit > 1:
        assert solved(follow, design.limit - 1, trials, p0) < arl


@pytest.mark.parametrize(("p0", "p1", "arl", "trials"), CUSUMS)
def test_cusum_steps_are_the_log_likelihood_ratio_of_the_tuned_rate(
    p0: float, p1: float, arl: float, trials: int
) -> None:
    """Drift over step is n log((1−e0)/(1−e1)) over the log odds ratio, within 2 % of the change."""
    design = cusum_design(p0, p1, arl, trials=trials)
    before, after = p0, design.tuned_to
    if p1 < p0:
        before, after = 1 - before, 1 - after
    odds = math.log(after * (1 - before) / (before * (1 - after)))

    assert design.drift / design.step == pytest.approx(
        trials * math.log((1 - before) / (1 - after)) / odds, rel=1e-9
    )
    assert abs(design.tuned_to - p1) <= 0.02 * abs(p1 - p0)
    assert design.direction == ("below" if p1 < p0 else "above")


@pytest.mark.parametrize(
    ("p0", "p1", "trials", "runs"), [(0.8, 0.5, 1, 9), (0.7, 0.4, 3, 5), (0.6, 0.8, 2, 6)]
)
def test_cusum_alarms_are_those_of_every_stream_played(
    p0: float, p1: float, trials: int, runs: int
) -> None:
    """Every stream of counts, weighted by its probability, in and out of control."""
    design = cusum_design(p0, p1, 20, trials=trials)
    for p in (p0, p1):
        expected = played(design.chart(), p, runs)
        assert expected > 0
        assert expected == pytest.approx(design.alarm_probability(p, runs=runs), rel=1e-9)


@pytest.mark.parametrize("design", [cusum_design(0.9, 0.8, trials=50), ewma_design(0.9, 50)])
def test_the_mean_is_the_sum_of_the_survival_probabilities(
    design: CusumDesign | EwmaDesign,
) -> None:
    """E T = Σ P(T > t): the two recursions agree out of control, where the sum is short."""
    total = 1.0 + math.fsum(1 - design.alarm_probability(0.7, runs=t) for t in range(1, 40))

    assert design.average_run_length(0.7) == pytest.approx(total, rel=1e-9)


@pytest.mark.slow
def test_cusum_notices_a_small_drop_sooner_than_shewhart() -> None:
    """At equal run length in control, a drop from 0.9 to 0.86 in runs of 50."""
    shewhart = shewhart_design(0.9, 50, arl=370)
    quiet = shewhart.average_run_length(0.9)
    assert isinstance(quiet, float)
    cusum = cusum_design(0.9, 0.86, quiet, trials=50)
    delays = cusum.average_run_length(0.86), shewhart.average_run_length(0.86)

    assert isinstance(delays[0], float)
    assert isinstance(delays[1], float)
    assert delays[0] < delays[1] / 3


def test_the_sum_and_its_last_zero() -> None:
    """Failures climb, good runs fall to 0 and not below; a restart and an epoch begin at 0."""
    design = cusum_design(0.9, 0.8, trials=10)
    chart = design.chart().update(10).update(9).update(7)

    assert chart.statistic == 3 * design.step - design.drift
    assert (chart.runs, chart.last_zero) == (3, 2)
    assert not chart.signal
    loud = chart.update(0)
    assert loud.signal
    assert (loud.restart().statistic, loud.restart().runs, loud.restart().last_zero) == (0, 4, 4)
    fresh = loud.next_epoch(cusum_design(0.85, 0.75, trials=10))
    assert (fresh.epoch, fresh.runs, fresh.statistic) == (2, 0, 0)
    assert loud.epoch == 1


def test_a_cusum_at_a_certain_rate() -> None:
    """A service that never fails never signals; one that always fails does at once."""
    design = cusum_design(0.9, 0.8, trials=50)

    assert isinstance(design.average_run_length(1.0), Undefined)
    assert design.alarm_probability(1.0, runs=1000) == 0.0
    assert design.average_run_length(0.0) == 1.0


def test_a_change_no_quiet_run_can_resemble_signals_at_the_first_step() -> None:
    """From one failure in 1e8 to almost none passing: limit 1, quiet beyond computing."""
    design = cusum_design(1 - 1e-8, 1e-6, trials=20)

    assert design.limit == 1
    assert isinstance(design.average_run_length(1 - 1e-8), Undefined)
    assert design.average_run_length(1e-6) == pytest.approx(1.0, abs=1e-9)


@given(st.floats(0.05, 0.95), st.floats(0.05, 0.95), st.integers(1, 40))
@settings(max_examples=40, deadline=None)
def test_cusum_mirrors(p0: float, p1: float, trials: int) -> None:
    """Watching successes rise is watching failures fall."""
    if abs(p0 - p1) < 0.05:
        return
    ours, mirror = (
        cusum_design(p0, p1, 50, trials=trials),
        cusum_design(1 - p0, 1 - p1, 50, trials=trials),
    )

    assert (ours.step, ours.drift) == (mirror.step, mirror.drift)
    assert ours.average_run_length(p1) == pytest.approx(mirror.average_run_length(1 - p1), rel=1e-6)


# --- EWMA ---------------------------------------------------------------------------------------


@pytest.mark.slow("below-0.9-50-0.2", "below-0.5-20-0.1", "above-0.9-50-0.2", "above-0.5-20-0.1")
@pytest.mark.parametrize(("p0", "trials", "weight"), EWMAS)
@pytest.mark.parametrize("direction", ["below", "above"])
def test_ewma_run_lengths_solve_the_linear_system(
    p0: float, trials: int, weight: float, direction: Any
) -> None:
    """In and out of control, against numpy; the limit is the smallest that keeps the promise."""
    design = ewma_design(p0, trials, weight=weight, arl=200, direction=direction)
    follow = follow_ewma(design)
    for p in (p0, p0 * 0.9, 0.5 + p0 / 2):
        expected = solved(follow, design.limit, trials, p)
        if expected < 1e9:
            assert expected == pytest.approx(design.average_run_length(p), rel=1e-6)
    assert solved(follow, design.limit, trials, p0) >= 200 * (1 - 1e-9)
    assert solved(follow, design.limit - 1, trials, p0) < 200


def test_ewma_alarms_are_those_of_every_stream_played() -> None:
    """Every stream of counts, weighted by its probability."""
    design = ewma_design(0.7, 3, weight=0.4, arl=30)
    for p in (0.7, 0.4):
        expected = played(design.chart(), p, 5)
        assert expected > 0
        assert expected == pytest.approx(design.alarm_probability(p, runs=5), rel=1e-9)


@pytest.mark.parametrize("direction", ["below", "above"])
def test_an_ewma_of_weight_one_is_a_shewhart_chart(direction: Any) -> None:
    """Only the newest run counts: equal run lengths at every rate."""
    ewma = ewma_design(0.7, 20, weight=1.0, arl=100, direction=direction)
    shewhart = shewhart_design(0.7, 20, arl=100, direction=direction)
    for p in (0.5, 0.7, 0.9):
        assert ewma.average_run_length(p) == pytest.approx(shewhart.average_run_length(p), rel=1e-9)


GRIDS = {weight: ewma_design(0.8, 20, weight=weight, arl=50) for weight in (0.05, 0.2, 0.6)}


@given(st.lists(st.integers(0, 20), min_size=1, max_size=60), st.sampled_from(sorted(GRIDS)))
@settings(max_examples=60, deadline=None)
def test_the_grid_stays_near_the_real_average(counts: list[int], weight: float) -> None:
    """Never further than half a point per remembered run, a tenth of a standard deviation."""
    chart, real = GRIDS[weight].chart(), 0.0
    deviation = math.sqrt(0.8 * 0.2 / 20 * weight / (2 - weight))
    for successes in counts:
        chart = chart.update(successes)
        real = max(0.0, (1 - weight) * real + weight * (0.8 - successes / 20))
        assert abs((0.8 - chart.average) - real) <= 0.1 * deviation + 1e-12


def test_ewma_restarts_and_epochs() -> None:
    """The average is p0 at the start, after a restart and in a new epoch."""
    design = ewma_design(0.9, 50)
    chart = design.chart().update(30)

    assert chart.average < 0.9
    assert chart.signal is (chart.average <= design.limit_rate)
    assert chart.restart().average == 0.9
    assert chart.restart().runs == 1
    fresh = chart.next_epoch(ewma_design(0.8, 50))
    assert (fresh.epoch, fresh.runs, fresh.average) == (2, 0, 0.8)
    assert shewhart_design(0.9, 50).chart().next_epoch(shewhart_design(0.8, 50)).epoch == 2


def test_an_ewma_at_a_certain_rate() -> None:
    """A service that never fails never signals a drop."""
    assert isinstance(ewma_design(0.9, 50).average_run_length(1.0), Undefined)


def test_ewma_refuses_what_its_runs_cannot_show() -> None:
    """Single trials at 0.5, all the weight on the newest: nothing is rarer than 1/2."""
    with pytest.raises(InvalidArgument, match="arl must be smaller"):
        ewma_design(0.5, 1, weight=1.0)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: shewhart_design(1.0, 50), "p0"),
        (lambda: shewhart_design(0.9, 0), "trials"),
        (lambda: shewhart_design(0.9, 50, arl=1.0), "arl"),
        (lambda: shewhart_design(0.9, 50, arl=math.nan), "arl"),
        (lambda: shewhart_design(0.9, 50, arl=1e13), "arl"),
        (lambda: shewhart_design(0.9, 50, direction="down"), "direction"),  # type: ignore[arg-type]
        (lambda: shewhart_design(0.9, 50).average_run_length(1.5), "p"),
        (lambda: shewhart_design(0.9, 50).alarm_probability(0.9, runs=0), "runs"),
        (lambda: shewhart_design(0.9, 50).chart().update(51), "successes"),
        (lambda: shewhart_design(0.9, 50).chart().update(5, 0), "trials"),
        (lambda: shewhart_design(0.9, 50).chart(epoch=0), "epoch"),
        (lambda: cusum_design(0.0, 0.5), "p0"),
        (lambda: cusum_design(0.9, 0.9), "p1"),
        (lambda: cusum_design(0.9, 1.0), "p1"),
        (lambda: cusum_design(0.9, 0.8, 0.5), "arl"),
        (lambda: cusum_design(0.9, 0.8, trials=0), "trials"),
        (lambda: cusum_design(0.9, 0.8).average_run_length(-1), "p"),
        (lambda: cusum_design(0.9, 0.8).alarm_probability(0.9, runs=-1), "runs"),
        (lambda: cusum_design(0.9, 0.8).chart().update(2), "successes"),
        (lambda: CusumChart(design=cusum_design(0.9, 0.8), statistic=-1), "statistic"),
        (lambda: cusum_design(0.5, 0.499999, trials=1), "p1"),
        (lambda: cusum_design(0.5, 0.499, 1e5, trials=40), "arl"),
        (lambda: ewma_design(1.2, 50), "p0"),
        (lambda: ewma_design(0.9, -1), "trials"),
        (lambda: ewma_design(0.9, 50, weight=0.0), "weight"),
        (lambda: ewma_design(0.9, 50, weight=math.nan), "weight"),
        (lambda: ewma_design(0.9, 50, arl=1), "arl"),
        (lambda: ewma_design(0.9, 50, direction="both"), "direction"),  # type: ignore[arg-type]
        (lambda: ewma_design(0.9, 50).alarm_probability(2, runs=1), "p"),
        (lambda: ewma_design(0.9, 50).chart().update(-1), "successes"),
        (lambda: ewma_design(0.9, 50).chart(epoch=True), "epoch"),
    ],
)
def test_bad_arguments_are_named(call: Any, named: str) -> None:
    """Each refusal names the argument."""
    with pytest.raises(InvalidArgument) as caught:
        call()
    assert named == caught.value.argument
