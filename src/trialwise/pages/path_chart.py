"""The path of a run: failures against trials, between the bounds that decide it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from trialwise.documents.charts import (
    Area,
    Axis,
    Chart,
    Hit,
    Ink,
    Line,
    Mark,
    Place,
    spread_hits,
    thin_out,
)
from trialwise.documents.numbers import as_count, as_observed
from trialwise.model.plan import Limits
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Decision, Finding
from trialwise.pages.failure_groups import TrialIndex
from trialwise.procedures.registry import procedure_of

INKS: dict[Decision | None, Ink] = {
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


def chart_path(finding: Finding, bounds: Bounds, outcomes: Sequence[int]) -> Chart:
    """Chart the path of one stream.

    Args:
        finding: What it led to.
        bounds: The bounds of its design.
        outcomes: Whether each counted trial passed, in their planned order.
    """
    failures = [0, *accumulate(int(not passed) for passed in outcomes)]
    taken = len(outcomes)
    last = min(bounds.cap, max(20, round(AHEAD * taken)))
    reach = max(failures[-1] + 1, _find_reach(bounds, last), 4)
    top = reach + reach // 12
    places = thin_out(last + 1, CORNERS)
    word = finding.label or (finding.decision or Decision.INCONCLUSIVE).value
    end = f"{word} · {as_count(taken, 'trial')}"
    return Chart(
        heading="Path to the verdict",
        summary=_write_summary(finding, bounds, taken, failures[-1], last),
        x=Axis(low=0, high=last, label="trials", unit="count"),
        y=Axis(low=-0.5, high=top + 0.5, label="failures", unit="count"),
        areas=(
            Area(
                name="PASS from here",
                ink="pass",
                upper=_find_corners(places, [bounds.accept[n] + 0.5 for n in places]),
                lower=((0, -0.5), (last, -0.5)),
            ),
            Area(
                name="FAIL from here",
                ink="fail",
                upper=((0, top + 0.5), (last, top + 0.5)),
                lower=_find_corners(places, [min(bounds.reject[n], top + 1) - 0.5 for n in places]),
            ),
        ),
        lines=(Line(name="this run", ink="one", points=_trace_path(failures)),),
        marks=(Mark(x=taken, y=failures[-1], label=end, ink=INKS[finding.decision]),),
        hits=_list_hits(bounds, failures),
        columns=("after trial", "failures", "rate", "PASS at most", "FAIL from"),
        rows=tuple(_write_row(n + 1, failures[n + 1], bounds) for n in thin_out(taken, ROWS)),
    )


def _find_reach(bounds: Bounds, last: int) -> int:
    """Find the fewest failures that FAIL at the end of the chart, if any number does."""
    return bounds.reject[last] if bounds.reject[last] <= last else bounds.accept[last] + 2


def _find_corners(places: Sequence[int], values: Sequence[float]) -> tuple[Place, ...]:
    """Find a line of steps: every value holds for half a trial on either side."""
    if len(places) > CORNERS // 2:
        return tuple(zip(map(float, places), values, strict=True))
    corners: list[Place] = [(places[0], values[0])]
    for (left, low), (right, high) in pairwise(zip(places, values, strict=True)):
        if low != high:
            middle = (left + right) / 2
            corners += [(middle, low), (middle, high)]
    return (*corners, (places[-1], values[-1]))


def _trace_path(failures: Sequence[int]) -> tuple[Place, ...]:
    """Return the corners of the path: the two ends and both sides of every failure."""
    last = len(failures) - 1
    corners = {0, last}
    for n in range(1, last + 1):
        if failures[n] > failures[n - 1]:
            corners |= {n - 1, n}
    ordered = sorted(corners)
    kept = [ordered[k] for k in thin_out(len(ordered), CORNERS)]
    return tuple((n, failures[n]) for n in kept)


def _list_hits(bounds: Bounds, failures: Sequence[int]) -> tuple[Hit, ...]:
    ends = thin_out(len(failures), COLUMNS)
    return spread_hits(ends, lambda k: _read_out(ends[k], failures[ends[k]], bounds))[1:]


def _read_out(n: int, failed: int, bounds: Bounds) -> str:
    accept, reject = _write_limits(n, bounds)
    rule = [f"PASS at {accept} or fewer"] if accept != "–" else []
    rule += [f"FAIL at {reject} or more"] if reject != "–" else []
    counts = f"after {as_count(n, 'trial')}: {as_count(failed, 'failure')}"
    return f"{counts}; {', '.join(rule) or 'open'}"


def _write_row(n: int, failed: int, bounds: Bounds) -> tuple[str, ...]:
    return (f"{n:,}", f"{failed:,}", as_observed((n - failed) / n), *_write_limits(n, bounds))


def _write_limits(n: int, bounds: Bounds) -> tuple[str, str]:
    accept, reject = bounds.accept[n], bounds.reject[n]
    return ("–" if accept < 0 else f"{accept:,}"), ("–" if reject > n else f"{reject:,}")


def _write_summary(finding: Finding, bounds: Bounds, taken: int, failed: int, last: int) -> str:
    said = f"{as_count(failed, 'failure')} in {as_count(taken, 'trial')}"
    decision = finding.withdrawn or finding.decision
    if decision in (Decision.PASS, Decision.FAIL):
        said += f": the path ends in the {decision} region"
        said += "; later trials withdraw the decision" if finding.withdrawn else ""
    elif finding.judged is not None:
        said += ": this is what the judge said, and the judge's errors leave it open"
    else:
        said += ": the path ends between the two regions, so neither side is shown"
    cut = f"; the first {last:,} of at most {bounds.cap:,} trials are drawn"
    return said + (cut if last < bounds.cap else "") + "."


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """When a stream of trials is decided: at most so many failures PASS, so many or more FAIL."""

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
    cutoff = limits.cutoff
    if cutoff is None:
        return None
    return Bounds(
        cap=limits.cap,
        accept=tuple(max(-1, n - cutoff) for n in range(limits.cap + 1)),
        reject=(limits.cap - cutoff + 1,) * (limits.cap + 1),
    )


def list_outcomes(record: RunRecord, finding: Finding) -> Sequence[int]:
    """List whether each counted trial passed, in order up to the decision."""
    analysis = record.plan.analysis_of(finding.plan)
    skips_unjudged = not analysis.counts_silence or procedure_of(finding).may_stop_early
    counted = TrialIndex(record).find_rows(finding)[: finding.decided_at]
    fair = counted.keep(
        lambda row: (
            not analysis.leaves_out(row.course.error_class)
            and not (skips_unjudged and row.is_unjudged)
        )
    )
    # What came after a gap was not counted: a run that was cut short may have one.
    return fair.passes[: finding.tally.trials]
