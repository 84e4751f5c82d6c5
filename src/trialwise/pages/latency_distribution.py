"""How long successful trials took: the distribution, with limits, percentiles and its band."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from trialwise.documents.blocks import Block, Cell, Details, Section, build_table
from trialwise.documents.charts import (
    Area,
    Axis,
    Chart,
    Guide,
    Hit,
    Line,
    Mark,
    Place,
    round_up,
    thin_out,
)
from trialwise.documents.numbers import as_count, as_probability, as_seconds
from trialwise.model.run import RunRecord, list_latencies
from trialwise.model.verdict import LatencyFinding
from trialwise.pages.analysis_limits import explain_latency
from trialwise.pages.finding_facts import LATENCY, list_latency_marks
from trialwise.pages.path_chart import INKS
from trialwise.pages.verdict_meaning import make_badge
from trialwise.stats.latency_percentiles import latency_summary
from trialwise.stats.result_types import Undefined

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


def build_latency_section(record: RunRecord) -> Section | None:
    """Latency findings and distributions, or None where there are neither."""
    timings = [one for one in _list_timings(record) if len(one.latencies) >= FEWEST]
    if not timings and not record.verdict.latency:
        return None
    charts = [_chart_latencies(timing, several=len(timings) > 1) for timing in timings]
    return Section(
        heading="Latency",
        name=LATENCY,
        blocks=(*_list_findings(record), *charts),
        note="Of successful trials only: how fast a failure came says nothing about the service.",
    )


def _list_findings(record: RunRecord) -> Iterator[Block]:
    """List the findings as a table, with the ranks and counts that decided them."""
    if not record.verdict.latency:
        return

    def write_badge(one: LatencyFinding) -> Cell:
        marks = list_latency_marks(one, record.verdict)
        return (make_badge(one.decision), f" {', '.join(marks)}" if marks else "")

    yield build_table(
        "Latency findings",
        record.verdict.latency,
        ("percentile", lambda one: one.constraint),
        ("verdict", write_badge),
        ("observed", lambda one: _write_seconds(one.observed)),
        ("limit", lambda one: _write_seconds(one.threshold)),
        ("trials", lambda one: f"{one.trials:,}"),
        ("why", lambda one: one.statement),
        words=(0, 1, 5),
        is_headed=False,
    )
    evidence = (explain_latency(record.verdict),)
    yield Details(summary="Ranks and counts", blocks=evidence, is_printed=True)


def _write_seconds(value: float | None) -> str:
    return "–" if value is None else as_seconds(value)


def _list_timings(record: RunRecord) -> Iterator[Timing]:
    by_constraint = {one.constraint: one for one in record.verdict.latency}
    for experiment in record.plan.experiments:
        plans = [one for one in record.plan.latency if one.experiment == experiment.name]
        baselines = [one.baseline_latencies_s for one in plans if one.baseline_latencies_s]
        names = [one.percentile for one in plans if one.percentile in by_constraint]
        mine = record.trials.of_experiment(experiment.name)
        yield Timing(
            experiment=experiment.identifier,
            latencies=array("d", sorted(list_latencies(mine, record.plan.reported))),
            baseline=sorted(baselines[0]) if baselines else (),
            findings=[by_constraint[name] for name in names],
        )


def _chart_latencies(timing: Timing, *, several: bool) -> Chart:
    times, axis = timing.latencies, _make_axis(timing)
    steps = trace_steps(times, axis.high)
    lines = [Line(name="this run", ink="one", points=steps)]
    if timing.baseline:
        base = trace_steps(timing.baseline, axis.high)
        lines.insert(0, Line(name="baseline", ink="quiet", points=base, dashed=True))
    return Chart(
        heading=f"How long successful trials took{f' of {timing.experiment}' if several else ''}",
        summary=_write_summary(times),
        x=axis,
        y=Axis(low=0, high=1, label="share of trials", unit="rate"),
        areas=(find_band(steps, len(times)),),
        lines=tuple(lines),
        marks=tuple(
            Mark(
                x=one.observed,
                y=one.percentile,
                label=one.constraint,
                ink=INKS[one.decision],
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
        hits=_list_hits(times, axis),
        columns=("share of trials", "within"),
        rows=_list_percentiles(times),
    )


def _make_axis(timing: Timing) -> Axis:
    limits = [one.threshold for one in timing.findings if one.threshold is not None]
    values = array("d", chain(timing.latencies, timing.baseline, limits))
    most, least = max(values), min((value for value in values if value > 0), default=1.0)
    if most > REACH * least:
        # What is shorter still than a millionth of the longest is drawn on the edge.
        low = max(0.8 * least, most / 1e6)
        return Axis(low=low, high=most * 1.1, label="latency", unit="seconds", logarithmic=True)
    return Axis(low=0, high=round_up(most), label="latency", unit="seconds")


def trace_steps(ordered: Sequence[float], end: float) -> tuple[Place, ...]:
    """Return the empirical distribution as a line of steps, thinned where no eye could tell.

    Args:
        ordered: Latencies, ascending.
        end: Where the line ends.
    """
    count = len(ordered)
    places: list[Place] = [(ordered[0], 0.0)]
    for rank in thin_out(count, STEPS):
        places += [(ordered[rank], places[-1][1]), (ordered[rank], (rank + 1) / count)]
    return (*places, (end, 1.0))


def find_band(steps: Sequence[Place], count: int) -> Area:
    """Holds the whole true distribution with the stated confidence (Massart 1990).

    Args:
        steps: The empirical distribution.
        count: Of how many latencies.
    """
    reach = math.sqrt(math.log(2 / (1 - BAND)) / (2 * count))
    return Area(
        name=f"{100 * BAND:.0f} % band",
        ink="one",
        upper=tuple((x, min(1.0, y + reach)) for x, y in steps),
        lower=tuple((x, max(0.0, y - reach)) for x, y in steps),
    )


def _list_hits(ordered: Sequence[float], axis: Axis) -> tuple[Hit, ...]:
    if axis.logarithmic:
        ratio = (axis.high / axis.low) ** (1 / COLUMNS)
        edges = [axis.low * ratio**k for k in range(COLUMNS + 1)]
    else:
        edges = [axis.low + (axis.high - axis.low) * k / COLUMNS for k in range(COLUMNS + 1)]
    hits = []
    for low, high in pairwise(edges):
        within, count = bisect_right(ordered, high), len(ordered)
        share, limit = as_probability(within / count, digits=1), float(f"{high:.3g}")
        said = f"{share} within {as_seconds(limit)} ({within:,} of {count:,})"
        hits.append(Hit(low=low, high=high, text=said))
    return tuple(hits)


def _list_percentiles(ordered: Sequence[float]) -> tuple[tuple[str, ...], ...]:
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
    ends = ("all", as_seconds(summary.maximum)), ("mean", as_seconds(summary.mean))
    return (*rows, *ends)


def _write_summary(ordered: Sequence[float]) -> str:
    summary = latency_summary(ordered)
    known = [
        f"{name} within {as_seconds(value)}"
        for name, value in (("half", summary.p50), ("95 %", summary.p95), ("99 %", summary.p99))
        if not isinstance(value, Undefined)
    ]
    said = f"{as_count(summary.trials, 'successful trial')}: {', '.join(known)}"
    return f"{said}; the longest took {as_seconds(summary.maximum)}."
