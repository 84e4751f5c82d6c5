"""The numbers behind the charts of a run's report, by other routes than the report's own."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reports.run_records import SHAPES, each_input, fixed_fail, sequential_pass

from trialwise.documents.charts import Axis, Chart
from trialwise.model.evidence import StopReason
from trialwise.model.plan import CriterionPlan, Limits
from trialwise.model.run import RunRecord, Trials
from trialwise.model.verdict import Decision
from trialwise.pages.criterion_charts import (
    chart_path,
    chart_trials,
    chart_verdicts,
    find_bounds,
    list_chances,
    list_outcomes,
)
from trialwise.pages.criterion_details import build_strips
from trialwise.pages.failure_groups import TrialIndex
from trialwise.pages.latency_details import find_band, trace_steps
from trialwise.procedures.characteristic import count_fixed, count_mean_trials
from trialwise.procedures.run_verdict import decide_criterion
from trialwise.procedures.sequential import walk_design
from trialwise.renderers.html.block_markup import render_block
from trialwise.renderers.html.markup import Outline
from trialwise.renderers.html.shapes import stagger_labels
from trialwise.stats.sequential.design import SequentialDesign


@st.composite
def fixed_limits(draw: st.DrawFn) -> Limits:
    cap = draw(st.integers(1, 12))
    return Limits(cap=cap, cutoff=draw(st.integers(1, cap)), curtailed=draw(st.booleans()))


def walked(limits: Limits, rate: Fraction) -> tuple[Fraction, Fraction]:
    """P(PASS) and mean trials of limits, by walking every path of trials."""

    @cache
    def from_here(trials: int, failures: int) -> tuple[Fraction, Fraction]:
        decision = limits.decide(trials, failures) if trials else None
        if decision is not None or trials == limits.cap:
            return Fraction(decision is Decision.PASS), Fraction(trials)
        good, bad = from_here(trials + 1, failures), from_here(trials + 1, failures + 1)
        return (rate * good[0] + (1 - rate) * bad[0], rate * good[1] + (1 - rate) * bad[1])

    return from_here(0, 0)


# --- What the design does ---------------------------------------------------------------------


@given(fixed_limits(), st.integers(0, 20), st.booleans())
def test_a_fixed_design_does_what_its_paths_do(
    limits: Limits, twentieths: int, leaves_open: bool
) -> None:
    """The chances and the mean agree with walking every path, stopped early or not."""
    rate, cutoff = Fraction(twentieths, 20), limits.cutoff
    assert cutoff is not None
    most = max(-1, cutoff - 3) if leaves_open else cutoff - 1
    plan = CriterionPlan(
        criterion="c", procedure="COMPLIANCE", alpha=0.05, trials=limits.cap, cutoff=cutoff
    ).change(curtailed=limits.curtailed)
    if leaves_open:
        plan = plan.change(most_failing=most, fail_alpha=0.05)
    found = count_fixed(plan, cutoff, most, 0.5, 0.5)
    assert found.at is not None
    chance = found.at(float(rate))
    passes, mean = walked(plan.limits, rate)

    assert math.isclose(passes, chance.passes, abs_tol=1e-12)
    assert math.isclose(1, chance.passes + chance.fails + chance.inconclusive, rel_tol=1e-9)
    taken = count_mean_trials(plan.limits, float(rate))
    if limits.curtailed and cutoff <= limits.cap:
        assert taken is not None
        assert math.isclose(mean, taken, rel_tol=1e-9, abs_tol=1e-9)
    else:
        assert taken is None


@pytest.mark.parametrize("rate", [0.0, 0.75, 0.9, 1.0])
def test_a_sequential_design_does_what_its_paths_do(rate: float) -> None:
    """The curve of a sequential design is that of its boundaries."""
    design = SequentialDesign.wald(0.9, 0.6, cap=12)
    curve = walk_design(design)
    assert curve.at is not None
    found = curve.at(rate)
    passes, mean = walked(Limits(cap=12, design=design), Fraction(rate))

    assert math.isclose(passes, found.passes, abs_tol=1e-12)
    assert found.mean_trials is not None
    assert math.isclose(mean, found.mean_trials, rel_tol=1e-12)
    assert math.isclose(1, found.passes + found.fails + found.inconclusive, rel_tol=1e-12)


def test_the_curves_pass_through_the_rates_that_are_spoken_of() -> None:
    """The required, the alternative and the observed rate are points of the curve."""
    record = sequential_pass()
    finding = record.verdict.findings[0]
    curve = list_chances(record, finding)

    rates = [one.rate for one in curve]
    assert {0.8, 0.9, observe_rate(record)} <= set(rates)
    assert sorted(rates) == rates
    at = {one.rate: one for one in curve}
    assert at[0.9].fails <= 0.05 + 1e-12
    assert at[0.8].passes <= 0.20 + 1e-12
    for plot in (chart_verdicts(finding, curve), chart_trials(finding, curve)):
        assert {"80 %", "90 %"} <= {row[0] for row in plot.rows}


def observe_rate(record: RunRecord) -> float:
    """The share of passes among the trials up to the first one after which the design decides."""
    design = record.plan.criteria[0].design
    assert isinstance(design, SequentialDesign)
    failures = 0
    for n, trial in enumerate(record.trials, start=1):
        failures += not trial.outcomes[0].result.passed
        if not design.accept[n] < failures < design.reject[n]:
            return (n - failures) / n
    raise AssertionError("the run ended before its design decided")


def test_no_curve_where_no_binomial_rule_decides() -> None:
    """An observational criterion has none."""
    record = SHAPES["observational"]()
    finding = record.verdict.findings[0]

    assert [] == list_chances(record, finding)


# --- Where the run went -----------------------------------------------------------------------


@given(fixed_limits())
def test_the_bounds_are_where_the_limits_decide(limits: Limits) -> None:
    """PASS at or below the one, FAIL at or above the other, at every count of an early stop."""
    early = Limits(cap=limits.cap, cutoff=limits.cutoff)
    bounds = find_bounds(limits)

    assert bounds is not None
    for trials in range(1, limits.cap + 1):
        for failures in range(trials + 1):
            decided = early.decide(trials, failures)
            assert (decided is Decision.PASS) == (failures <= bounds.accept[trials])
            assert (decided is Decision.FAIL) == (failures >= bounds.reject[trials])


@pytest.mark.slow
def test_the_path_ends_where_the_run_ended() -> None:
    """Its last point is the number of trials and failures, inside the region of the verdict."""
    record = sequential_pass()
    finding = record.verdict.findings[0]
    bounds = find_bounds(finding.plan.limits)
    assert bounds is not None
    plot = chart_path(finding, bounds, list_outcomes(record, finding))

    (line,) = plot.lines
    assert [finding.tally.trials, finding.tally.failed] == list(line.points[-1])
    assert finding.tally.failed <= bounds.accept[finding.tally.trials]
    assert (str(finding.tally.trials), str(finding.tally.failed)) == plot.rows[-1][:2]
    failures = [y for _, y in line.points]
    assert sorted(failures) == failures


@pytest.mark.parametrize("missing", [0, 7])
def test_the_path_ends_at_the_first_gap(missing: int) -> None:
    """A run that was cut short may lack a trial; those after it were not counted."""
    record = fixed_fail()
    finding = record.verdict.findings[0]
    # Twice as many trials as the design takes, so that the path would leave the chart.
    small = replace(finding.plan, trials=100, cutoff=95)
    plan = replace(record.plan, criteria=(small, *record.plan.criteria[1:]))
    kept = [one for one in record.trials if one.index != missing]
    stop = StopReason.INTERRUPTED
    found = decide_criterion(small, plan, kept, stop)
    cut = replace(record, plan=plan, trials=Trials.of(kept))

    assert missing == len(list_outcomes(cut, found)) == found.tally.trials


@pytest.mark.slow
def test_each_inputs_path_is_its_own() -> None:
    """Where every input is judged, its stream holds its trials and no others."""
    record = each_input()
    (finding,) = record.verdict.findings

    for part in finding.by_input:
        mine = TrialIndex(record).find_rows(part)
        assert {part.input_id} == mine.input_ids
        assert part.tally.trials == len(mine)
        assert part.tally.passed == sum(list_outcomes(record, part))


# --- Latency ----------------------------------------------------------------------------------


@given(st.lists(st.floats(0.001, 100), min_size=1, max_size=150))
def test_the_steps_are_the_empirical_distribution(latencies: list[float]) -> None:
    """At every latency the line reaches the share of latencies at or below it."""
    ordered = sorted(latencies)
    steps = trace_steps(ordered, 200.0)

    tops = {x: max(y for other, y in steps if other == x) for x, _ in steps}
    for latency in ordered:
        assert math.isclose(bisect_right(ordered, latency) / len(ordered), tops[latency])
    assert (200.0, 1.0) == steps[-1]


def test_the_band_is_massarts() -> None:
    """For 100 latencies the 95 % band reaches 0.1358 to either side."""
    band = find_band([(1.0, 0.5)], 100)

    assert 0.6358 == round(band.upper[0][1], 4)
    assert 0.3642 == round(band.lower[0][1], 4)


# --- Drawing ----------------------------------------------------------------------------------


def test_an_axis_places_its_ends_at_its_ends() -> None:
    """Linear and logarithmic; what lies outside is put on the edge."""
    linear = Axis(low=0, high=10, label="", unit="count")
    decades = Axis(low=0.01, high=100, label="", unit="seconds", logarithmic=True)

    assert [0, 0.5, 1, 1] == [linear.place(value) for value in (0, 5, 10, 20)]
    assert [0, 0.5, 1] == [round(decades.place(value), 9) for value in (0.001, 1, 100)]
    assert ["10 ms", "100 ms", "1 s", "10 s", "100 s"] == [text for _, text in decades.list_ticks()]


@given(st.floats(1e-4, 10), st.floats(1.1, 1e4))
def test_a_logarithmic_axis_has_few_ticks_and_all_inside(low: float, ratio: float) -> None:
    """Never more than a narrow chart has room for."""
    axis = Axis(low=low, high=low * ratio, label="", unit="seconds", logarithmic=True)
    values = [value for value, _ in axis.list_ticks()]

    assert len(values) <= 9
    assert all(axis.low <= value <= axis.high for value in values)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 20)), min_size=1, max_size=6))
def test_no_guide_runs_through_the_label_of_another(labels: list[tuple[float, int]]) -> None:
    """A label in a lower line never lies across a guide whose own label is above it."""
    ordered = sorted(labels)
    lines = stagger_labels(ordered)

    for place, (row, _) in zip((p for p, _ in ordered), lines, strict=True):
        for (other, letters), (below, side) in zip(ordered, lines, strict=True):
            width = (letters + 2) / 28
            left, right = (other - width, other) if side == "before" else (other, other + width)
            assert not (below < row and left < place < right)


def test_every_interval_is_drawn_on_one_scale() -> None:
    """The strips of all criteria share their ticks and name what they are held against."""
    from statsmodels.stats.proportion import proportion_confint

    record = fixed_fail()
    strips = build_strips(record)
    assert strips is not None
    text = render_block(strips, Outline(level=3)).replace("\u00a0", " ")

    assert 3 == text.count('class="strip ')
    tally = next(one.tally for one in record.verdict.findings if one.criterion == "grounded")
    low, high = proportion_confint(tally.passed, 200, alpha=0.10, method="beta")
    rate = f"rate {tally.passed / 2:.1f} %"
    ends = f"interval [{100 * low:.1f}, {100 * high:.1f}] %"
    assert f"grounded: FAIL, {rate}, {ends}, held against 90 %" in text


@pytest.mark.slow
def test_the_worst_inputs_are_drawn_first() -> None:
    """Below the criterion its inputs, the dead one on top."""
    strips = build_strips(each_input())
    assert strips is not None

    names = [row.name for row in strips.rows]
    assert ["books-a-table", "cancel-plan"] == names[:2]
    assert 9 == len(names)


def test_a_plot_without_anything_on_it_is_still_a_plot() -> None:
    """No guide, no mark, no key."""

    axis = Axis(low=0, high=1, label="x", unit="rate")
    text = render_block(Chart(heading="Empty", summary="", x=axis, y=axis), Outline())

    assert 'role="img"' in text
    assert 'class="key"' not in text
