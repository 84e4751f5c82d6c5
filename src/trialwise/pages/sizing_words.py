"""What the pages of all sizing questions say in the same way."""

from __future__ import annotations

from trialwise.documents.blocks import Block, Details, Prose, Section
from trialwise.documents.numbers import as_duration, as_money
from trialwise.procedures.sizing.trial_costs import Prices
from trialwise.stats.result_types import Refusal

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
    """A few sentences under a heading, with what is too long for a terminal below them."""
    blocks: tuple[Block, ...] = (Prose(paragraphs=paragraphs),)
    if details:
        more = Prose(paragraphs=details)
        blocks = (*blocks, Details(summary=details_heading, blocks=(more,)))
    return Section(heading=heading, blocks=blocks)


def format_cost(prices: Prices, trials: int) -> str:
    """What some trials cost, as the rest of a sentence; nothing where that is not known."""
    parts = [as_money(trials * prices.trial_usd)] if prices.trial_usd is not None else []
    parts += [as_duration(trials * prices.trial_s)] if prices.trial_s is not None else []
    return f" ({', '.join(parts)})" if parts else ""
