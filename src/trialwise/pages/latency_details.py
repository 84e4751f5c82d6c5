"""Latency: how long successful trials took, and by which ranks their limits were decided."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from trialwise.documents import charts
from trialwise.documents.blocks import Block, Details, Section
from trialwise.documents.numbers import as_computed, as_count, as_probability, as_seconds
from trialwise.model.run import RunRecord, list_latencies
from trialwise.model.verdict import LatencyFinding, Verdict
from trialwise.pages.criterion_charts import INKS
from trialwise.pages.finding_facts import LATENCY, list_latency_marks, pick_badge
from trialwise.procedures.explanations import Rows, make_section
from trialwise.stats.latency_baseline import OrderStatisticBound, PrecedenceThreshold
from trialwise.stats.latency_percentiles import (
    SUPPORTED_PERCENTILES,
    emission_minimum,
    latency_summary,
)
from trialwise.stats.latency_planning import LatencyLimitDecision
from trialwise.stats.result_types import Undefined

#: Fewer latencies are a list, not a distribution.
FEWEST = 5
STEPS, COLUMNS = 200, 60
BAND = 0.95
#: A longer reach than this between the shortest and the longest is read on a logarithmic axis.
REACH = 25


class Timing(NamedTuple):
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
    drawn = [_chart_latencies(timing, several=len(timings) > 1) for timing in timings]
    # The table of criteria has a row for each limit; here is what its verdict rests on.
    rules: tuple[Block, ...] = ()
    if record.verdict.latency:
        evidence = (explain_latency(record.verdict),)
        rules = (Details(summary="Ranks and counts", blocks=evidence, is_open=True),)
    # Charts are left out where there are few latencies; findings never are.
    return Section(
        heading="Latency",
        name=LATENCY,
        blocks=(*rules, *drawn),
        note="Of successful trials only: how fast a failure came says nothing about the service.",
    )


def _write_seconds(value: float | Undefined | None, otherwise: str = "–") -> str:
    if isinstance(value, Undefined):
        return f"{otherwise} ({value.reason})"
    return otherwise if value is None else as_seconds(value)


def _list_timings(record: RunRecord) -> Iterator[Timing]:
    by_constraint = {one.constraint: one for one in record.verdict.latency}
    for experiment in record.plan.experiments:
        plans = [one for one in record.plan.latency if one.experiment == experiment.name]
        # Limits of one experiment share a baseline, so that the first one that has it tells.
        baselines = [one.baseline_latencies_s for one in plans if one.baseline_latencies_s]
        names = [one.percentile for one in plans if one.percentile in by_constraint]
        mine = record.trials.of_experiment(experiment.name)
        yield Timing(
            experiment=experiment.identifier,
            # Eight bytes each: a run may have a million of them.
            latencies=array("d", sorted(list_latencies(mine, record.plan.reported))),
            baseline=sorted(baselines[0]) if baselines else (),
            findings=[by_constraint[name] for name in names],
        )


def _chart_latencies(timing: Timing, *, several: bool) -> charts.Chart:
    times, axis = timing.latencies, _make_axis(timing)
    steps = trace_steps(times, axis.high)
    lines = [charts.Line(name="this run", ink="one", points=steps)]
    if timing.baseline:
        base = trace_steps(timing.baseline, axis.high)
        lines.insert(0, charts.Line(name="baseline", ink="quiet", points=base, dashed=True))
    return charts.Chart(
        heading=f"How long successful trials took{f' of {timing.experiment}' if several else ''}",
        summary=_write_summary(times),
        x=axis,
        y=charts.Axis(low=0, high=1, label="share of trials", unit="rate"),
        areas=(find_band(steps, len(times)),),
        lines=tuple(lines),
        marks=tuple(
            charts.Mark(
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
            charts.Guide(
                value=one.threshold, label=f"{one.constraint} limit {as_seconds(one.threshold)}"
            )
            for one in timing.findings
            if one.threshold is not None
        ),
        hits=_list_hits(times),
        columns=("share of trials", "within"),
        rows=_list_percentiles(times),
    )


def _make_axis(timing: Timing) -> charts.Axis:
    limits = [one.threshold for one in timing.findings if one.threshold is not None]
    values = array("d", chain(timing.latencies, timing.baseline, limits))
    # Limits and the baseline are on the axis too: a limit outside of it could not be compared by
    # eye.
    most, least = max(values), min((value for value in values if value > 0), default=1.0)
    if most > REACH * least:
        # What is shorter still than a millionth of the longest is drawn on the edge. A logarithm
        # needs a lower end above 0, and a clock may well say 0 for a cached reply.
        low = max(0.8 * least, most / 1e6)
        return charts.Axis(
            low=low, high=most * 1.1, label="latency", unit="seconds", logarithmic=True
        )
    return charts.Axis(low=0, high=charts.round_up(most), label="latency", unit="seconds")


def trace_steps(ordered: Sequence[float], end: float) -> tuple[charts.Place, ...]:
    """Return the empirical distribution as a line of steps, thinned where no eye could tell.

    Args:
        ordered: Latencies, ascending.
        end: Where the line ends.
    """
    count = len(ordered)
    places: list[charts.Place] = [(ordered[0], 0.0)]
    for rank in charts.thin_out(count, STEPS):
        # A step function: between two latencies nothing happened, and a slope would invent trials.
        places += [(ordered[rank], places[-1][1]), (ordered[rank], (rank + 1) / count)]
    return (*places, (end, 1.0))


def find_band(steps: Sequence[charts.Place], count: int) -> charts.Area:
    """Holds the whole true distribution with the stated confidence (Massart 1990).

    Args:
        steps: The empirical distribution.
        count: Of how many latencies.
    """
    # The inequality of Dvoretzky, Kiefer and Wolfowitz with the constant of Massart (1990): it
    # holds for every distribution and every number of latencies.
    reach = math.sqrt(math.log(2 / (1 - BAND)) / (2 * count))
    return charts.Area(
        name=f"{100 * BAND:.0f} % band",
        ink="one",
        upper=tuple((x, min(1.0, y + reach)) for x, y in steps),
        lower=tuple((x, max(0.0, y - reach)) for x, y in steps),
    )


def _list_hits(ordered: Sequence[float]) -> tuple[charts.Hit, ...]:
    ranks, count = charts.thin_out(len(ordered), COLUMNS), len(ordered)

    def say(k: int) -> str:
        value = ordered[ranks[k]]
        # Latencies may be equal: all of them are within it, also those of later ranks.
        within = bisect_right(ordered, value)
        share = as_probability(within / count, digits=1)
        # Three digits: a limit with six would look like one that somebody set.
        limit = as_seconds(float(f"{value:.3g}"))
        return f"{share} within {limit} ({within:,} of {count:,})"

    return charts.spread_hits([ordered[rank] for rank in ranks], say)


def _list_percentiles(ordered: Sequence[float]) -> tuple[tuple[str, ...], ...]:
    summary = latency_summary(ordered)
    # Percentiles that the number of latencies cannot support are shown with that reason (§12.5.2).
    levels = {"50 %": summary.p50, "90 %": summary.p90, "95 %": summary.p95, "99 %": summary.p99}
    levels |= {"all": summary.maximum, "mean": summary.mean}
    return tuple((name, _write_seconds(value)) for name, value in levels.items())


def _write_summary(ordered: Sequence[float]) -> str:
    summary = latency_summary(ordered)
    known = [
        f"{name} within {as_seconds(value)}"
        for name, value in (("half", summary.p50), ("95 %", summary.p95), ("99 %", summary.p99))
        if not isinstance(value, Undefined)
    ]
    said = f"{as_count(summary.trials, 'successful trial')}: {', '.join(known)}"
    return f"{said}; the longest took {as_seconds(summary.maximum)}."


# --- Latency limits in the full analysis, with their ranks and counts (companion §12) -------------

_INDICATIVE = "a directional signal, not a statistically reliable estimate"


_COVERAGE = "of the baseline's own percentile (§12.4.3)"


def explain_latency(verdict: Verdict) -> Section:
    """Explain every constraint with the ranks and counts it was decided on."""
    rows = [row for one in verdict.latency for row in _explain_constraint(one, verdict)]
    rows.append(("", "Latencies of successful trials only; distribution-free, no model."))
    return make_section("LATENCY", rows)


def _explain_constraint(finding: LatencyFinding, verdict: Verdict) -> Rows:
    marks, few = list_latency_marks(finding, verdict), ""
    qualified = f" ({', '.join(marks)})" if marks else ""
    level = "" if finding.level is None else f", α = {finding.level:g}"
    if "indicative" in marks and finding.percentile in SUPPORTED_PERCENTILES:
        fewest = emission_minimum(finding.percentile)
        few = f"n = {finding.trials}, at least {fewest} recommended: {_INDICATIVE}"
    of, observed = as_count(finding.trials, "successful trial"), "no latency"
    if finding.observed is not None:
        seconds = as_seconds(finding.observed)
        # An observed latency, never one between two of them: only those have exact ranks.
        observed = f"Q({finding.percentile:g}) = {seconds} by nearest rank"
    return [
        (finding.constraint, f"{pick_badge(finding)}{qualified}. {finding.statement}"),
        ("  rule", f"{finding.decision_rule}{level}"),
        ("  observed", f"{observed}, {of}"),
        ("  threshold", _write_seconds(finding.threshold, "")),
        *_explain_evidence(finding),
        ("  indicative", few),
        ("  refused because", ", ".join(finding.refusals)),
    ]


def _explain_evidence(finding: LatencyFinding) -> Rows:
    evidence = finding.evidence
    if isinstance(evidence, LatencyLimitDecision):
        # The rule of the companion compares the percentile itself, so that noise alone decides at
        # the limit.
        half = "no evidence asked for: a service at its limit passes about half the time"
        return _explain_limit(evidence) if finding.rule != "wilson" else [("  error rate", half)]
    if isinstance(evidence, OrderStatisticBound):
        alarm = _write_computed(finding.false_alarm, " = P(FAIL) if nothing changed, exact")
        return [*_explain_bound(evidence), ("  false alarm", alarm)]
    return _explain_precedence(evidence) if isinstance(evidence, PrecedenceThreshold) else []


def _write_computed(value: float | None, rest: str) -> str:
    return "" if value is None else f"{as_computed(value)}{rest}"


def _explain_limit(evidence: LatencyLimitDecision) -> Rows:
    # Y of n latencies within the limit: whether that shows the percentile is a binomial test.
    needed = "no count would do" if evidence.y_min is None else f"{evidence.y_min} needed"
    counts = f"{evidence.within} of {evidence.trials}, {needed}"
    lower = evidence.clopper_pearson_lower
    return [
        ("  within the limit", "" if evidence.within is None else counts),
        ("  share within, at least", _write_computed(lower, " at 1 − α, exact")),
        ("  achieved size", _write_computed(evidence.false_compliance, ", exact")),
    ]


def _explain_bound(evidence: OrderStatisticBound) -> Rows:
    trials, largest = evidence.trials, evidence.advisory_value
    said = f"Q = {as_seconds(evidence.baseline_percentile)} of {trials} latencies"
    # A rank beyond the largest latency does not exist: the baseline is too small for this
    # percentile.
    if evidence.saturated:
        advice = f"t({trials}) = {_write_seconds(largest)}, the largest latency; it is not a bound"
        none = "no rank of this baseline bounds the percentile (§12.5.2.1)"
        advised = "" if largest is None else advice
        return [("  baseline", said), ("  saturated", none), ("  advisory", advised)]
    return [
        ("  baseline", said),
        ("  rank", f"{evidence.rank} of {trials}"),
        ("  achieved coverage", _write_computed(evidence.achieved_coverage, f" {_COVERAGE}")),
    ]


def _explain_precedence(evidence: PrecedenceThreshold) -> Rows:
    trials, breach = evidence.baseline_trials, evidence.breach_probability
    return [
        ("  baseline", f"Q = {as_seconds(evidence.baseline_percentile)} of {trials} latencies"),
        ("  saturated", "no rank of this baseline keeps α" if evidence.saturated else ""),
        ("  rank", "" if evidence.rank is None else f"{evidence.rank} of {trials}"),
        ("  achieved size", _write_computed(breach, " = P(breach) if nothing changed, exact")),
    ]
