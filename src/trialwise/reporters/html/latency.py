"""How long successful trials took: the distribution, with limits, percentiles and its band."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from trialwise.documents.numbers import as_count, as_probability, as_seconds
from trialwise.model.run import RunRecord
from trialwise.model.verdict import LatencyFinding
from trialwise.pages.finding_facts import list_latency_marks
from trialwise.reporters.html.parts import Outline, badge, tone
from trialwise.reporters.html.parts import table as made_table
from trialwise.reporters.html.plots import (
    INKS,
    Area,
    Axis,
    Hit,
    Line,
    Mark,
    Place,
    Plot,
    render_plot,
)
from trialwise.reporters.page.axis import round_above
from trialwise.reporters.page.markup import Markup, joined
from trialwise.reporters.plan.charts import Guide
from trialwise.stats.latency_baseline import OrderStatisticBound
from trialwise.stats.latency_limits import LatencyLimitDecision
from trialwise.stats.latency_percentiles import latency_summary
from trialwise.stats.latency_precedence import PrecedenceThreshold
from trialwise.stats.result_types import Undefined

__all__ = ["latency_section"]

#: Fewer latencies are a list, not a distribution.
FEWEST = 5
STEPS, COLUMNS = 200, 60
BAND = 0.95
#: A longer reach than this between the shortest and the longest is read on a logarithmic axis.
REACH = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The latencies of an experiment's successful trials, ascending, and what is asked of them."""

    experiment: str
    latencies: Sequence[float]
    baseline: Sequence[float]
    findings: Sequence[LatencyFinding]


def latency_section(record: RunRecord, outline: Outline) -> Markup:
    """Latency findings and distributions, or nothing where there are neither."""
    verdict = record.verdict
    timings = [timing for timing in _timings(record) if len(timing.latencies) >= FEWEST]
    if not timings and not verdict.latency:
        return Markup("")
    below = outline.below
    plots = [render_plot(_plot(timing, several=len(timings) > 1), below) for timing in timings]
    note = "Of successful trials only: how fast a failure came says nothing about the service."
    return outline.section("Latency", _findings(record), *plots, note=note)


def _findings(record: RunRecord) -> Markup:
    rows = []
    for one in record.verdict.latency:
        marks = list_latency_marks(one, record.verdict)
        rows.append(
            (
                one.constraint,
                joined([badge(one.decision), f" {', '.join(marks)}" if marks else None]),
                "–" if one.observed is None else as_seconds(one.observed),
                "–" if one.threshold is None else as_seconds(one.threshold),
                f"{one.trials:,}",
                one.statement,
                _error_rate(one),
            )
        )
    if not rows:
        return Markup("")
    columns = ("percentile", "verdict", "observed", "limit", "trials", "why", "error rate")
    return made_table(
        "Latency findings", columns, rows, words=(0, 1, 5, 6), wide=True, hide_caption=True
    )


def _error_rate(one: LatencyFinding) -> str:
    """The error that really holds, where the rule has one."""
    evidence = one.evidence
    if isinstance(evidence, LatencyLimitDecision):
        if one.rule == "wilson":
            return "no evidence asked for: a service at its limit passes about half the time"
        if evidence.false_compliance is not None:
            return f"PASS at the limit itself: {as_probability(evidence.false_compliance)}"
    if isinstance(evidence, PrecedenceThreshold) and evidence.breach_probability is not None:
        return f"FAIL although nothing changed: {as_probability(evidence.breach_probability)}"
    if isinstance(evidence, OrderStatisticBound) and evidence.achieved_coverage is not None:
        return (
            f"bound on the baseline's percentile, {as_probability(evidence.achieved_coverage)} sure"
        )
    return ""


def _timings(record: RunRecord) -> list[Timing]:
    by_constraint = {one.constraint: one for one in record.verdict.latency}
    timings = []
    for experiment in record.plan.experiments:
        plans = [one for one in record.plan.latency if one.experiment == experiment.name]
        baselines = [one.baseline_latencies_s for one in plans if one.baseline_latencies_s]
        timings.append(
            Timing(
                experiment=experiment.identifier,
                latencies=sorted(
                    trial.latency_s
                    for trial in record.trials
                    if trial.experiment == experiment.name
                    and trial.passed
                    and trial.latency_s is not None
                ),
                baseline=sorted(baselines[0]) if baselines else (),
                findings=[
                    by_constraint[one.percentile]
                    for one in plans
                    if one.percentile in by_constraint
                ],
            )
        )
    return timings


def _plot(timing: Timing, *, several: bool) -> Plot:
    times = timing.latencies
    axis = _axis(timing)
    which = f" of {timing.experiment}" if several else ""
    steps = _steps(times, axis.high)
    lines = [Line(name="this run", ink="one", points=steps)]
    if timing.baseline:
        base = _steps(timing.baseline, axis.high)
        lines.insert(0, Line(name="baseline", ink="quiet", points=base, dashed=True))
    return Plot(
        heading=f"How long successful trials took{which}",
        summary=_summary(times),
        x=axis,
        y=Axis(low=0, high=1, label="share of trials", unit="rate"),
        areas=(_band(steps, len(times)),),
        lines=tuple(lines),
        marks=tuple(
            Mark(
                x=one.observed,
                y=one.percentile,
                label=one.constraint,
                ink=INKS[tone(one.decision)],
                below=True,
            )
            for one in timing.findings
            if one.observed is not None
        ),
        guides=tuple(
            Guide(value=one.threshold, label=f"{one.constraint} limit {as_seconds(one.threshold)}")
            for one in timing.findings
            if one.threshold is not None
        ),
        hits=_hits(times, axis),
        columns=("share of trials", "within"),
        rows=_rows(times),
    )


def _axis(timing: Timing) -> Axis:
    limits = [one.threshold for one in timing.findings if one.threshold is not None]
    values = [*timing.latencies, *timing.baseline, *limits]
    most, least = max(values), min((value for value in values if value > 0), default=1.0)
    if most > REACH * least:
        # What is shorter still than a millionth of the longest is drawn on the edge.
        low = max(0.8 * least, most / 1e6)
        return Axis(low=low, high=most * 1.1, label="latency", unit="seconds", logarithmic=True)
    return Axis(low=0, high=round_above(most), label="latency", unit="seconds")


def _steps(ordered: Sequence[float], end: float) -> tuple[Place, ...]:
    """The empirical distribution as a line of steps, thinned where no eye could tell."""
    count = len(ordered)
    ranks = (
        range(count)
        if count <= STEPS
        else [round(k * (count - 1) / (STEPS - 1)) for k in range(STEPS)]
    )
    places: list[Place] = [(ordered[0], 0.0)]
    for rank in ranks:
        places += [(ordered[rank], places[-1][1]), (ordered[rank], (rank + 1) / count)]
    return (*places, (end, 1.0))


def _band(steps: Sequence[Place], count: int) -> Area:
    """Holds the whole true distribution with the stated confidence (Massart 1990)."""
    reach = math.sqrt(math.log(2 / (1 - BAND)) / (2 * count))
    return Area(
        name=f"{100 * BAND:.0f} % band",
        ink="one",
        upper=tuple((x, min(1.0, y + reach)) for x, y in steps),
        lower=tuple((x, max(0.0, y - reach)) for x, y in steps),
    )


def _hits(ordered: Sequence[float], axis: Axis) -> tuple[Hit, ...]:
    if axis.logarithmic:
        ratio = (axis.high / axis.low) ** (1 / COLUMNS)
        edges = [axis.low * ratio**k for k in range(COLUMNS + 1)]
    else:
        edges = [axis.low + (axis.high - axis.low) * k / COLUMNS for k in range(COLUMNS + 1)]
    hits = []
    for low, high in pairwise(edges):
        within = bisect_right(ordered, high)
        share = as_probability(within / len(ordered), digits=1)
        said = f"{share} within {as_seconds(float(f'{high:.3g}'))} ({within:,} of {len(ordered):,})"
        hits.append(Hit(low=low, high=high, text=said))
    return tuple(hits)


def _rows(ordered: Sequence[float]) -> tuple[tuple[str, ...], ...]:
    summary = latency_summary(ordered)
    levels = (
        ("50 %", summary.p50),
        ("90 %", summary.p90),
        ("95 %", summary.p95),
        ("99 %", summary.p99),
    )
    rows = [
        (name, f"– ({value.reason})" if isinstance(value, Undefined) else as_seconds(value))
        for name, value in levels
    ]
    return (*rows, ("all", as_seconds(summary.maximum)), ("mean", as_seconds(summary.mean)))


def _summary(ordered: Sequence[float]) -> str:
    summary = latency_summary(ordered)
    known = [
        f"{name} within {as_seconds(value)}"
        for name, value in (("half", summary.p50), ("95 %", summary.p95), ("99 %", summary.p99))
        if not isinstance(value, Undefined)
    ]
    said = f"{as_count(summary.trials, 'successful trial')}: {', '.join(known)}"
    return f"{said}; the longest took {as_seconds(summary.maximum)}."
