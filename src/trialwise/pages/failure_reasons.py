"""Why trials failed: the groups of failures of each criterion as bars."""

from __future__ import annotations

from collections.abc import Iterable

from trialwise.documents.charts import Bar, Bars
from trialwise.documents.numbers import as_count, as_probability
from trialwise.documents.printable import cut_middle
from trialwise.documents.results import FailureGroup, LineKind, ResultLine
from trialwise.pages.finding_facts import REASONS

#: Groups of one criterion that are drawn; the rest is counted.
MOST = 8
_EXPLANATION = 160


def build_failure_bars(lines: Iterable[ResultLine]) -> tuple[Bars, ...]:
    """Build a bar for each group of failures, by criterion; nothing where no trial failed."""
    failing = [one for one in lines if one.kind is LineKind.CRITERION and one.failures]
    longest = max((group.count for entry in failing for group in entry.failures), default=0)
    return tuple(_build_bars(entry, longest) for entry in failing)


NOTE = (
    "Failures that differ in nothing but numbers and quoted text are one bar, with the first of "
    "them as its example."
)
"""How to read the bars."""


def _name_group(group: FailureGroup) -> str:
    """Name what failed, in words: the check, or else what went wrong before one was asked."""
    error = "" if group.error_class == "none" else group.error_class
    parts = (group.postcondition, REASONS[group.reason], error)
    return " · ".join(part for part in parts if part)


def _build_bars(entry: ResultLine, longest: int) -> Bars:
    total = sum(group.count for group in entry.failures)
    failures = as_count(total, "failure")
    bars = []
    for group in entry.failures[:MOST]:
        name, share = _name_group(group), as_probability(group.count / total, digits=1)
        bars.append(
            Bar(
                name=name,
                value=f"{group.count:,}",
                share=group.count / longest,
                note=cut_middle(group.explanation, _EXPLANATION),
                hint=f"{name}: {group.count:,} of {failures}, {share}",
            )
        )
    smaller = entry.failures[MOST:]
    left = as_count(sum(group.count for group in smaller), "failure")
    rest = f"{left} in {as_count(len(smaller), 'smaller group')}" if smaller else ""
    heading = f"{entry.name} · {failures}"
    return Bars(heading=heading, bars=tuple(bars), ink="fail", rest=rest)
