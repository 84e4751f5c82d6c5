"""A plan in words and tables, before anyone decides whether it is read in a terminal or a browser.

Between the numbers and the two renderers, so that both say the same in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from trialwise.documents.charts import Chart
from trialwise.documents.numbers import as_duration, as_money
from trialwise.procedures.sizing.trial_costs import Prices
from trialwise.stats.refusal import Refusal

__all__ = ["REFUSALS", "Block", "Page", "Prose", "Row", "Table", "Tone", "format_cost"]

Tone: TypeAlias = Literal["plain", "chosen", "broken", "limit"]
"""How a row stands out: recommended, breaking its promise, or a limit rather than a method."""

#: Why a design is refused, as the rest of a sentence.
REFUSALS = {
    Refusal.TEST_LARGER_THAN_BASELINE: "the test is larger than its baseline",
    Refusal.COMPLIANCE_INFEASIBLE: "even without a failure it could not PASS",
    Refusal.ZERO_BASELINE: "the baseline has no success to degrade from",
    Refusal.BASELINE_TOO_SMALL: "no test up to the baseline's size reaches the power and keeps it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of a table; the first cell names it."""

    cells: tuple[str, ...]
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table with the notes it needs to be read rightly."""

    heading: str
    columns: tuple[str, ...]
    """A line break divides a column's heading in two."""
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prose:
    """A few sentences, or a list of them."""

    heading: str
    paragraphs: tuple[str, ...]
    details: tuple[str, ...] = ()
    """What is too long for a terminal: shown in a browser only, on demand."""
    details_heading: str = ""


Block: TypeAlias = Table | Prose | Chart


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A plan to read: what was asked, what to do, and what that rests on."""

    title: str
    facts: tuple[tuple[str, str], ...]
    recommendation: str
    blocks: tuple[Block, ...]

    @property
    def charts(self) -> tuple[Chart, ...]:
        """The charts among the blocks."""
        return tuple(block for block in self.blocks if isinstance(block, Chart))


def format_cost(prices: Prices, trials: int) -> str:
    """What some trials cost, as the rest of a sentence; nothing where that is not known."""
    parts = [as_money(trials * prices.trial_usd)] if prices.trial_usd is not None else []
    parts += [as_duration(trials * prices.trial_s)] if prices.trial_s is not None else []
    return f" ({', '.join(parts)})" if parts else ""
