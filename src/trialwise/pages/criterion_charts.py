"""Charts of a criterion: the path of its run between bounds, and what its design does elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from trialwise.documents import charts
from trialwise.documents.numbers import (
    as_count,
    as_mean_trials,
    as_observed,
    as_percent,
    as_probability,
)
from trialwise.model.plan import Limits
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Decision, Finding
from trialwise.pages.failure_groups import TrialIndex
from trialwise.pages.finding_facts import find_alternative, find_required
from trialwise.procedures.chances import characterize
from trialwise.procedures.characteristic import Chance
from trialwise.procedures.registry import procedure_of

INKS: dict[Decision | None, charts.Ink] = {
    Decision.PASS: "pass",
    Decision.FAIL: "fail",
    Decision.INCONCLUSIVE: "open",
    None: "quiet",
}
"""The ink of a mark that stands for a decision."""


#: Where a bound or a path has more corners than this, fewer are drawn: no eye tells them apart.
CORNERS = 160


COLUMNS = 60


ROWS = 20


#: Bounds reach this much further than the trials that were needed.
AHEAD = 1.6


def chart_path(finding: Finding, bounds: Bounds, outcomes: Sequence[int]) -> charts.Chart:
    """Chart the path of one stream.

    Args:
        finding: What it led to.
        bounds: The bounds of its design.
        outcomes: Whether each counted trial passed, in their planned order.
    """
    failures = [0, *accumulate(int(not passed) for passed in outcomes)]
    taken = len(outcomes)
    # A run that was decided after 30 of 5,000 trials would be a dot in the corner of its chart.
    last = min(bounds.cap, max(20, round(AHEAD * taken)))
    # The fewest failures that FAIL at the end of the chart, if any number does.
    least = bounds.reject[last] if bounds.reject[last] <= last else bounds.accept[last] + 2
    reach = max(failures[-1] + 1, least, 4)
    # A little room above, so that the region of FAIL is seen as one.
    top = reach + reach // 12
    places = charts.thin_out(last + 1, CORNERS)
    passes = _find_corners(places, [bounds.accept[n] + 0.5 for n in places])
    fails = _find_corners(places, [min(bounds.reject[n], top + 1) - 0.5 for n in places])
    floor, ceiling = (((0.0, y), (float(last), y)) for y in (-0.5, top + 0.5))
    word = finding.label or (finding.decision or Decision.INCONCLUSIVE).value
    end = f"{word} · {as_count(taken, 'trial')}"
    ends = charts.thin_out(taken + 1, COLUMNS)[1:]
    rows = [_write_row(n, failures[n], bounds) for n in ends]
    chart = charts.Chart(
        heading="Path to the verdict",
        summary=_write_summary(finding, bounds, taken, failures[-1], last),
        x=charts.Axis(low=0, high=last, label="trials", unit="count"),
        y=charts.Axis(low=-0.5, high=top + 0.5, label="failures", unit="count"),
        areas=(
            charts.Area(name="PASS from here", ink="pass", upper=passes, lower=floor),
            charts.Area(name="FAIL from here", ink="fail", upper=ceiling, lower=fails),
        ),
        lines=(charts.Line(name="this run", ink="one", points=_trace_path(failures)),),
        marks=(charts.Mark(x=taken, y=failures[-1], label=end, ink=INKS[finding.decision]),),
    )
    columns = ("failures", "rate", "PASS at most", "FAIL from")
    # Who points at the path reads a sentence; the table below has the values.
    said = charts.spread_hits(ends, lambda k: _read_out(ends[k], failures[ends[k]], bounds))
    return replace(charts.list_values(chart, columns, ends, rows), hits=said)


def _read_out(n: int, failed: int, bounds: Bounds) -> str:
    accept, reject = bounds.accept[n], bounds.reject[n]
    rule = [f"PASS at {accept:,} or fewer"] if accept >= 0 else []
    rule += [f"FAIL at {reject:,} or more"] if reject <= n else []
    counts = f"after {as_count(n, 'trial')}: {as_count(failed, 'failure')}"
    return f"{counts}; {', '.join(rule) or 'open'}"


def _find_corners(places: Sequence[int], values: Sequence[float]) -> tuple[charts.Place, ...]:
    """Find a line of steps: every value holds for half a trial on either side."""
    # With this many corners steps are smaller than a pixel, and a plain line looks the same.
    if len(places) > CORNERS // 2:
        return tuple(zip(map(float, places), values, strict=True))
    corners: list[charts.Place] = [(places[0], values[0])]
    for (left, low), (right, high) in pairwise(zip(places, values, strict=True)):
        if low != high:
            middle = (left + right) / 2
            corners += [(middle, low), (middle, high)]
    return (*corners, (places[-1], values[-1]))


def _trace_path(failures: Sequence[int]) -> tuple[charts.Place, ...]:
    """Return the corners of the path: the two ends and both sides of every failure."""
    # Between two failures the path is flat: its corners hold all that a line through every trial
    # does.
    rises = (n for n in range(1, len(failures)) if failures[n] > failures[n - 1])
    corners = sorted({0, len(failures) - 1}.union(*((n - 1, n) for n in rises)))
    kept = [corners[k] for k in charts.thin_out(len(corners), CORNERS)]
    return tuple((n, failures[n]) for n in kept)


def _write_row(n: int, failed: int, bounds: Bounds) -> tuple[str, ...]:
    accept, reject = bounds.accept[n], bounds.reject[n]
    limits = ("–" if accept < 0 else f"{accept:,}"), ("–" if reject > n else f"{reject:,}")
    return (f"{n:,}", f"{failed:,}", as_observed((n - failed) / n), *limits)


def _write_summary(finding: Finding, bounds: Bounds, taken: int, failed: int, last: int) -> str:
    said = f"{as_count(failed, 'failure')} in {as_count(taken, 'trial')}"
    decision = finding.withdrawn or finding.decision
    if decision in (Decision.PASS, Decision.FAIL):
        said += f": the path ends in the {decision} region"
        said += "; later trials withdraw the decision" if finding.withdrawn else ""
    # The path counts the judge's words. It may cross a bound whose decision the judge's own errors
    # leave open.
    elif finding.judged is not None:
        said += ": this is what the judge said, and the judge's errors leave it open"
    else:
        said += ": the path ends between the two regions, so neither side is shown"
    cut = f"; the first {last:,} of at most {bounds.cap:,} trials are drawn"
    return said + (cut if last < bounds.cap else "") + "."


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """When a stream is decided: at most this many failures PASS, this many or more FAIL."""

    cap: int
    accept: tuple[int, ...]
    """After n trials, −1 where none is few enough, n = 0 … cap."""
    reject: tuple[int, ...]
    """After n trials, more than n where none is enough."""


def find_bounds(limits: Limits) -> Bounds | None:
    """Find the bounds of a sequential or a fixed design; None where only the last trial decides.

    A fixed design that is not stopped early has them too: beyond them its verdict is certain.

    >>> bounds = find_bounds(Limits(cap=50, cutoff=46))
    >>> bounds.accept[46], bounds.accept[45], bounds.reject[10]
    (0, -1, 5)
    """
    if limits.design is not None:
        return Bounds(cap=limits.cap, accept=limits.design.accept, reject=limits.design.reject)
    # Without a cutoff, such as for an estimator's bound, no count of failures decides by itself.
    cutoff = limits.cutoff
    if cutoff is None:
        return None
    return Bounds(
        cap=limits.cap,
        # After n trials of a fixed design it is certain to PASS once the cutoff is reached, and to
        # FAIL once it cannot be reached any more: the rest of the trials changes nothing.
        accept=tuple(max(-1, n - cutoff) for n in range(limits.cap + 1)),
        reject=(limits.cap - cutoff + 1,) * (limits.cap + 1),
    )


def list_outcomes(record: RunRecord, finding: Finding) -> Sequence[int]:
    """List whether each counted trial passed, in order up to the decision."""
    analysis = record.plan.analysis_of(finding.plan)
    # A rule that looks at every trial needs a verdict on each; silence has none to offer.
    skips_unjudged = not analysis.counts_silence or procedure_of(finding).may_stop_early
    counted = TrialIndex(record).find_rows(finding)[: finding.decided_at]
    # Left out before the errors are, since the path shows what the rule itself has counted.
    if skips_unjudged:
        counted = counted.keep(lambda row: not row.is_unjudged)
    fair = counted.keep(lambda row: not analysis.leaves_out(row.course.error_class))
    # What came after a gap was not counted: a run that was cut short may have one.
    return fair.passes[: finding.tally.trials]


# --- What the design that ran does at every true rate: its verdicts, and how long it takes --------

#: Rates on a curve, and the most arithmetic that all of them may take together.
POINTS, FEWEST_POINTS = 41, 13
STEPS = 2_500_000
#: A share below this is rounding.
_NOTHING = 1e-9


def list_chances(record: RunRecord, finding: Finding) -> list[Chance]:
    """List the chances of the design that ran, over the rates that matter; empty without a curve.

    There is none where the chances depend on more than a rate, such as on a judge's labels.
    """
    if not procedure_of(finding).claims_rate:
        return []
    plan = finding.plan
    found = characterize(plan, record.plan.intent_of(plan))
    # Where labels of a judge or several inputs decide, no curve over one rate tells the truth.
    if found.at is None:
        return []
    rates = _spread_rates(_list_references(finding), _count_points(plan.limits))
    # Computed by the same rule that decided, so that the curve and the verdict cannot differ.
    chances = map(found.foresee, rates)
    # Where nothing ends a run early, it takes all of its trials.
    most = float(plan.limits.cap)
    return [replace(one, mean_trials=one.mean_trials or most) for one in chances]


def _count_points(limits: Limits) -> int:
    design, width = limits.design, limits.cap * (limits.cap - (limits.most_failing or 0))
    if design is not None:
        width = sum(b - a for a, b in zip(design.accept, design.reject, strict=True))
    # Each point walks the whole design, so that wide ones are drawn with fewer points.
    return max(FEWEST_POINTS, min(POINTS, STEPS // max(1, width)))


def _list_stated(finding: Finding) -> list[float]:
    """List the rates that the claim is about, the good one first."""
    given = (find_required(finding), find_alternative(finding))
    return [rate for rate in given if rate is not None]


def _pick_stated(finding: Finding, curve: Sequence[Chance]) -> list[Chance]:
    """Pick what the design does at the rates that the claim is about."""
    at = {one.rate: one for one in curve}
    return [at[rate] for rate in _list_stated(finding) if rate in at]


def _list_references(finding: Finding) -> list[float]:
    """List the rates that the curves are read at."""
    observed = [] if finding.tally.rate is None else [finding.tally.rate]
    return sorted({*_list_stated(finding), *observed})


def _spread_rates(references: Sequence[float], points: int) -> list[float]:
    """Evenly spaced around the references, with these among them."""
    # Rates that lie close together would leave a curve with nothing to either side.
    reach = max(0.08, references[-1] - references[0])
    low, high = max(0.0, references[0] - reach), min(1.0, references[-1] + reach)
    even = [low + (high - low) * k / (points - 1) for k in range(points)]
    return sorted({*even, *references})


def chart_verdicts(finding: Finding, curve: Sequence[Chance]) -> charts.Chart:
    """Chart the operating characteristic: how often each verdict falls, by true rate."""
    bands: list[tuple[str, charts.Ink, list[float]]] = [
        ("PASS", "pass", [one.passes for one in curve]),
        ("INCONCLUSIVE", "open", [one.inconclusive for one in curve]),
        ("FAIL", "fail", [one.fails for one in curve]),
    ]
    # A rule that decides always has no band between PASS and FAIL.
    del bands[1 : 2 if max(bands[1][2]) <= _NOTHING else 1]
    summary, rates = _write_verdicts_summary(finding, curve), [one.rate for one in curve]
    words = ("Verdicts by true rate", summary, "true rate", "share of runs")
    chart = charts.chart_shares(*words, rates=rates, bands=bands, guides=_list_guides(finding))
    return _keep_few_rows(chart, finding, curve)


def chart_trials(finding: Finding, curve: Sequence[Chance]) -> charts.Chart:
    """Chart the average sample number: how many trials the design takes, by true rate."""
    taken, guides = finding.tally.trials, _list_guides(finding)
    stated = ((one.mean_trials or 0.0, round(one.rate, 6)) for one in _pick_stated(finding, curve))
    said = [f"{as_mean_trials(mean)} at {as_percent(rate)}" for mean, rate in stated]
    each, took = " for each input", ""
    # Inputs that are decided one by one each took a number of trials of their own.
    if not finding.plan.counting.each_input:
        each, took = "", f"; this run took {taken:,}"
        guides = (*guides, charts.Guide(value=taken, label=f"this run: {taken:,}", axis="y"))
    points = tuple((one.rate, one.mean_trials or 0.0) for one in curve)
    summary = f"On average {' and '.join(said)}{each}, at most {finding.plan.trials:,}{took}."
    words = ("Trials by true rate", summary, "true rate", "mean trials")
    line = charts.Line(name="mean trials", ink="one", points=points)
    chart = charts.chart_lines(*words, [line], guides=guides)
    return _keep_few_rows(chart, finding, curve)


def _list_guides(finding: Finding) -> tuple[charts.Guide, ...]:
    # Against a baseline nothing is required: its own rate is what a drop is told from.
    is_held = finding.plan.threshold.required_rate is not None
    names = ("required", "alternative") if is_held else ("baseline", "drop to")
    values = [*zip(_list_stated(finding), names, strict=False)]
    if finding.tally.rate is not None and not finding.by_input:
        values.append((finding.tally.rate, "observed"))
    labels = [(rate, f"{name} {as_percent(round(rate, 3))}") for rate, name in values]
    return tuple(charts.Guide(value=rate, label=label) for rate, label in labels)


def _write_verdicts_summary(finding: Finding, curve: Sequence[Chance]) -> str:
    each = "Of one input: at" if finding.plan.counting.each_input else "At"
    said = []
    of_runs = " of runs"
    for one in _pick_stated(finding, curve):
        parts = []
        shares = ((one.passes, "PASS"), (one.inconclusive, "are INCONCLUSIVE"), (one.fails, "FAIL"))
        for share, verb in shares:
            if share > _NOTHING:
                parts.append(f"{as_probability(share, digits=1)}{of_runs} {verb}")
                of_runs = ""
        said.append(f"{each} a true rate of {as_percent(round(one.rate, 4))}, {', '.join(parts)}")
        each = "at"
    return "; ".join(said) + "." if said else "How often each verdict falls, by true rate."


def _keep_few_rows(chart: charts.Chart, finding: Finding, curve: Sequence[Chance]) -> charts.Chart:
    """Return the chart with every fourth rate in its table, and those that are referred to."""
    kept = set(_list_references(finding))
    rows = zip(curve, chart.rows, strict=True)
    # The curve needs its points; a table of all of them nobody would read.
    few = [row for k, (one, row) in enumerate(rows) if k % 4 == 0 or one.rate in kept]
    return replace(chart, rows=tuple(few))
