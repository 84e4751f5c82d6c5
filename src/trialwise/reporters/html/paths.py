"""The path of a run: failures against trials, between the bounds that decide it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from trialwise.documents.numbers import as_count, as_observed
from trialwise.model.verdict import Decision, Finding
from trialwise.reporters.html.parts import tone
from trialwise.reporters.html.plots import INKS, Area, Axis, Hit, Line, Mark, Place, Plot
from trialwise.reporters.html.streams import Bounds

__all__ = ["path_plot"]

#: Where a bound or a path has more corners than this, fewer are drawn: no eye tells them apart.
CORNERS = 160
COLUMNS = 60
ROWS = 20
#: Bounds reach this much further than the trials that were needed.
AHEAD = 1.6


def path_plot(finding: Finding, bounds: Bounds, outcomes: Sequence[bool]) -> Plot:
    """The path of one stream.

    Args:
        finding: What it led to.
        bounds: Of its design.
        outcomes: Whether each counted trial passed, in issue order.
    """
    failures = [0, *accumulate(int(not passed) for passed in outcomes)]
    taken = len(outcomes)
    last = min(bounds.cap, max(20, round(AHEAD * taken)))
    reach = max(failures[-1] + 1, _reachable(bounds, last), 4)
    top = reach + reach // 12
    places = _spread(range(last + 1), CORNERS)
    return Plot(
        heading="Path to the verdict",
        summary=_summary(finding, bounds, taken, failures[-1], last),
        x=Axis(low=0, high=last, label="trials", unit="count"),
        y=Axis(low=-0.5, high=top + 0.5, label="failures", unit="count"),
        areas=(
            Area(
                name="PASS from here",
                ink="pass",
                upper=_corners(places, [bounds.accept[n] + 0.5 for n in places]),
                lower=((0, -0.5), (last, -0.5)),
            ),
            Area(
                name="FAIL from here",
                ink="fail",
                upper=((0, top + 0.5), (last, top + 0.5)),
                lower=_corners(places, [min(bounds.reject[n], top + 1) - 0.5 for n in places]),
            ),
        ),
        lines=(Line(name="this run", ink="one", points=_path(failures)),),
        marks=(
            Mark(
                x=taken,
                y=failures[-1],
                label=_end(finding, taken),
                ink=INKS[tone(finding.decision)],
            ),
        ),
        hits=_hits(bounds, failures),
        columns=("after trial", "failures", "rate", "PASS at most", "FAIL from"),
        rows=tuple(_row(n, failures[n], bounds) for n in _spread(range(1, taken + 1), ROWS)),
    )


def _reachable(bounds: Bounds, last: int) -> int:
    """The fewest failures that FAIL at the end of the chart, if any number does."""
    return bounds.reject[last] if bounds.reject[last] <= last else bounds.accept[last] + 2


def _corners(places: Sequence[int], values: Sequence[float]) -> tuple[Place, ...]:
    """A line of steps: every value holds for half a trial on either side."""
    if len(places) > CORNERS // 2:
        return tuple(zip(map(float, places), values, strict=True))
    corners: list[Place] = [(places[0], values[0])]
    for (left, low), (right, high) in pairwise(zip(places, values, strict=True)):
        if low != high:
            middle = (left + right) / 2
            corners += [(middle, low), (middle, high)]
    return (*corners, (places[-1], values[-1]))


def _path(failures: Sequence[int]) -> tuple[Place, ...]:
    """The corners of the path: the two ends and both sides of every failure."""
    last = len(failures) - 1
    corners = {0, last}
    for n in range(1, last + 1):
        if failures[n] > failures[n - 1]:
            corners |= {n - 1, n}
    return tuple((n, failures[n]) for n in _spread(sorted(corners), CORNERS))


def _spread(values: Sequence[int], most: int) -> list[int]:
    """At most so many of the values, evenly spread, the first and the last among them."""
    if len(values) <= most:
        return list(values)
    return [values[round(k * (len(values) - 1) / (most - 1))] for k in range(most)]


def _hits(bounds: Bounds, failures: Sequence[int]) -> tuple[Hit, ...]:
    ends = _spread(range(len(failures)), COLUMNS)
    edges = [ends[0] - 0.5, *((a + b) / 2 for a, b in pairwise(ends)), ends[-1] + 0.5]
    return tuple(
        Hit(low=low, high=high, text=_said(n, failures[n], bounds))
        for n, (low, high) in zip(ends, pairwise(edges), strict=True)
        if n > 0
    )


def _said(n: int, failed: int, bounds: Bounds) -> str:
    accept, reject = _limits(n, bounds)
    rule = [f"PASS at {accept} or fewer"] * (accept != "–") + [f"FAIL at {reject} or more"] * (
        reject != "–"
    )
    return (
        f"after {as_count(n, 'trial')}: {as_count(failed, 'failure')}; {', '.join(rule) or 'open'}"
    )


def _row(n: int, failed: int, bounds: Bounds) -> tuple[str, ...]:
    return (f"{n:,}", f"{failed:,}", as_observed((n - failed) / n), *_limits(n, bounds))


def _limits(n: int, bounds: Bounds) -> tuple[str, str]:
    accept, reject = bounds.accept[n], bounds.reject[n]
    return ("–" if accept < 0 else f"{accept:,}"), ("–" if reject > n else f"{reject:,}")


def _end(finding: Finding, taken: int) -> str:
    word = finding.label or (finding.decision or Decision.INCONCLUSIVE).value
    return f"{word} · {as_count(taken, 'trial')}"


def _summary(finding: Finding, bounds: Bounds, taken: int, failed: int, last: int) -> str:
    said = f"{as_count(failed, 'failure')} in {as_count(taken, 'trial')}"
    if finding.decision in (Decision.PASS, Decision.FAIL):
        said += f": the path ends in the {finding.decision} region"
    elif finding.judged is not None:
        said += ": this is what the judge said, and the judge's errors leave it open"
    else:
        said += ": the path ends between the two regions, so neither side is shown"
    cut = f"; the first {last:,} of at most {bounds.cap:,} trials are drawn"
    return said + (cut if last < bounds.cap else "") + "."
