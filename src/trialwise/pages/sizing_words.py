"""What the pages of all sizing questions say in the same way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from trialwise.documents.blocks import Block, Details, Prose, Section
from trialwise.documents.charts import Chart, Guide, Ink, Line, Place, Unit, chart_lines
from trialwise.documents.numbers import as_duration, as_money, as_percent
from trialwise.procedures.sizing.sizing_base import Prices
from trialwise.stats.result_types import Refusal

_INKS: tuple[Ink, ...] = ("one", "two", "three", "four")
#: Why a design is refused, as the rest of a sentence.
REFUSALS = {
    Refusal.TEST_LARGER_THAN_BASELINE: "the test is larger than its baseline",
    Refusal.COMPLIANCE_INFEASIBLE: "even without a failure it could not PASS",
    Refusal.ZERO_BASELINE: "the baseline has no success to degrade from",
    Refusal.BASELINE_TOO_SMALL: "no test up to the baseline's size reaches the power and keeps it",
}


def make_prose(
    heading: str,
    paragraphs: tuple[str, ...],
    *,
    details: tuple[str, ...] = (),
    details_heading: str = "",
) -> Section:
    """Make a few sentences under a heading, with what is too long for a terminal below them."""
    blocks: tuple[Block, ...] = (Prose(paragraphs=paragraphs),)
    if details:
        more = Prose(paragraphs=details)
        blocks = (*blocks, Details(summary=details_heading, blocks=(more,)))
    return Section(heading=heading, blocks=blocks)


def chart_chances(
    heading: str,
    summary: str,
    x_label: str,
    y_label: str,
    curves: Iterable[tuple[str, Iterable[Place]]],
    *,
    guides: tuple[Guide, ...],
    x_unit: Unit = "rate",
) -> Chart:
    """Probabilities as lines, each under its name, in the order of importance."""
    lines = [
        Line(name=name, ink=_INKS[k % len(_INKS)], points=tuple(points))
        for k, (name, points) in enumerate(curves)
    ]
    return chart_lines(
        heading,
        summary,
        x_label,
        y_label,
        lines,
        guides=guides,
        x_unit=x_unit,
        y_unit="rate",
        y_high=1.0,
    )


def guide_rates(*rates: float, axis: Literal["x", "y"] = "x") -> tuple[Guide, ...]:
    """Rates worth a line across a chart."""
    return tuple(Guide(value=one, label=as_percent(round(one, 4)), axis=axis) for one in rates)


def format_cost(prices: Prices, trials: int) -> str:
    """Format what some trials cost, as the rest of a sentence; nothing where that is not known."""
    parts = [as_money(trials * prices.trial_usd)] if prices.trial_usd is not None else []
    parts += [as_duration(trials * prices.trial_s)] if prices.trial_s is not None else []
    return f" ({', '.join(parts)})" if parts else ""
