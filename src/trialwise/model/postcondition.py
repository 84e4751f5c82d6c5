"""A named predicate on one reply (companion §1.4.2)."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from trialwise.model.outcome import CheckResult
from trialwise.model.reply import Reply

__all__ = ["Postcondition"]


@runtime_checkable
class Postcondition(Protocol):
    """Decides pass or fail for one observable property of one reply.

    It carries no threshold: that belongs to the criterion that hosts it. Checking never raises for
    a reply it dislikes; a reply it cannot read is a failure whose reason says so.
    """

    @property
    def name(self) -> str:
        """How reports call it."""

    def check(self, reply: Reply) -> CheckResult:
        """What it says of a reply."""
