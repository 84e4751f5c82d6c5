"""The comparison of a service with itself, which shows that the procedure keeps its level."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trialwise.errors import InvalidArgument
from trialwise.procedures.comparing.relabelling import relabel_arms
from trialwise.runtime.open_comparison import find_rules

if TYPE_CHECKING:
    from trialwise.runtime.comparing import Comparison


def relabel_comparison(comparison: Comparison, *, seed: int = 0) -> Comparison:
    """Conclude the comparison of a service with itself.

    No difference is there by construction. It passes where none was found, and where swapping the
    labels at random within pairs finds one no more often than the level allows.

    Args:
        comparison: Of two arms, asked whether they are different.
        seed: Of the coins that swap labels.
    """
    if len(comparison.arms) != 2 or comparison.verdict.question.question != "different":
        allowed = 'be of two arms, asked whether they are "different"'
        raise InvalidArgument("comparison", repr(comparison), allowed)
    rules = find_rules(comparison.arms, comparison.verdict.question)
    if not rules and not all(one.fixed_size for one in comparison.verdict.pairings):
        allowed = "be kept in a store, with the rules that ended it, or have fixed trials"
        raise InvalidArgument("comparison", repr(comparison), allowed)
    verdict = relabel_arms(comparison.verdict, comparison.arms, rules, seed=seed)
    return replace(comparison, verdict=verdict)
