"""Why trials failed: the groups of failures of each criterion as bars."""

from __future__ import annotations

from collections.abc import Sequence

from trialwise.documents.numbers import as_count, as_probability
from trialwise.reporters.digest import Entry, FailureGroup, Kind
from trialwise.reporters.html.parts import Outline
from trialwise.reporters.html.words import REASONS
from trialwise.reporters.page.markup import Markup, element, shortened

__all__ = ["reasons_figure"]

#: Groups of one criterion that are drawn; the rest is counted.
MOST = 8
_TOLD = 160


def reasons_figure(entries: Sequence[Entry], outline: Outline) -> Markup:
    """The bars, or nothing where nothing failed.

    Args:
        entries: The lines of a run's digest.
        outline: Where the figure stands.
    """
    failing = [one for one in entries if one.kind is Kind.CRITERION and one.failures]
    if not failing:
        return Markup("")
    longest = max(group.count for entry in failing for group in entry.failures)
    blocks = [_criterion(entry, longest, outline.below) for entry in failing]
    summary = (
        "Failures that differ in nothing but numbers and quoted text are one bar, with the first "
        "of them as its example."
    )
    return element(
        "figure",
        element("figcaption", outline.heading("Reasons for failure"), element("p", summary)),
        *blocks,
        class_="figure",
    )


def _title(group: FailureGroup) -> str:
    """What failed, in words: the postcondition, or else what went wrong before one was asked."""
    error = "" if group.error_class == "none" else group.error_class
    parts = (group.postcondition, REASONS[group.reason], error)
    return " · ".join(part for part in parts if part)


def _criterion(entry: Entry, longest: int, outline: Outline) -> Markup:
    total = sum(group.count for group in entry.failures)
    bars = [
        element(
            "li",
            element("span", _title(group), class_="what"),
            element("span", f"{group.count:,}", class_="count"),
            element(
                "span",
                element("span", style=f"width:{100 * group.count / longest:.1f}%"),
                class_="bar",
                aria_hidden="true",
            ),
            element("span", shortened(group.explanation, _TOLD), class_="why", dir="auto"),
            title=f"{_title(group)}: {group.count:,} of {as_count(total, 'failure')}, "
            f"{as_probability(group.count / total, digits=1)}",
            class_="hit",
        )
        for group in entry.failures[:MOST]
    ]
    rest = sum(group.count for group in entry.failures[MOST:])
    if rest:
        groups = len(entry.failures) - MOST
        more = f"{as_count(rest, 'failure')} in {as_count(groups, 'smaller group')}"
        bars.append(element("li", element("span", more, class_="what"), class_="rest"))
    return element(
        "div",
        outline.heading(element("bdi", entry.name), f" · {as_count(total, 'failure')}"),
        element("ol", *bars, class_="bars"),
        class_="reasons",
    )
