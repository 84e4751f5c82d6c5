"""Phrases that every page says in the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

REFUSED = "REFUSED"
"""What is shown instead of a decision where a design was refused."""
#: Names in a sentence; the others are counted.
_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class StopPhrases:
    """How a page says why no further trial was counted."""

    label: str
    """In a word or two, for a column."""
    predicate: str = "ended"
    """The rest of a sentence that starts "The run"."""
    clause: str = ""
    """A clause without a full stop; empty where the run went on to its planned end."""


#: By the value of `trialwise.model.evidence.StopReason`.
STOPS: Mapping[str, StopPhrases] = {
    "decided": StopPhrases(label="decided early"),
    "curtailed": StopPhrases(label="decided early, because the rest could not change it"),
    "complete": StopPhrases(label="all planned trials run"),
    "trials-budget": StopPhrases(
        label="trial budget",
        predicate="spent its budget of trials",
        clause="the trial budget was used up",
    ),
    "time-budget": StopPhrases(
        label="time budget",
        predicate="spent its budget of time",
        clause="the time budget was used up",
    ),
    "token-budget": StopPhrases(
        label="token budget",
        predicate="spent its budget of tokens",
        clause="the token budget was used up",
    ),
    "money-budget": StopPhrases(
        label="money budget",
        predicate="spent its budget of money",
        clause="the money budget was used up",
    ),
    "error-rate": StopPhrases(
        label="too many errors",
        predicate="was aborted: too many trials could not be measured",
        clause="too many trials could not be measured",
    ),
    "settled": StopPhrases(
        label="verdict settled",
        predicate="ended because a FAIL had settled its verdict",
        clause="a FAIL had settled the verdict",
    ),
    "interrupted": StopPhrases(
        label="interrupted",
        predicate="was interrupted",
        clause="the run was interrupted",
    ),
    "service-unusable": StopPhrases(
        label="service unusable",
        predicate="could not go on",
        clause="the service became unusable",
    ),
}


def keep_few(notes: Sequence[str], most: int) -> tuple[str, ...]:
    """Return the first notes of a list, and how many more there are.

    >>> keep_few(["a", "b", "c"], 2)
    ('a', 'b', 'and 1 more')
    """
    left = len(notes) - most
    return (*notes[:most], f"and {left:,} more") if left > 0 else tuple(notes)


def join_few(names: Sequence[str]) -> str:
    """Join the first names of a list, and how many more there are.

    >>> join_few(["a", "b"]), join_few(["a", "b", "c", "d", "e"])
    ('a, b', 'a, b, c and 2 more')
    """
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
