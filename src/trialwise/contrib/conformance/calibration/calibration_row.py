"""One line of the calibration table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Row"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """An error rate a rule really has, beside the one it is configured for."""

    section: str
    rule: str
    """The decision rule's versioned name, or the dependence regime of an envelope."""
    design: str
    quantity: str
    """What was computed, in words."""
    bound: Literal["at most", "at least"]
    nominal: float
    achieved: float
    claimed: bool
    """Whether the rule promises the bound; otherwise the row discloses what happens instead."""
    note: str = ""

    @property
    def holds(self) -> bool:
        """Whether the achieved rate respects the nominal one, up to the rounding of a sum."""
        slack = 1e-12
        if self.bound == "at most":
            return self.achieved <= self.nominal + slack
        return self.achieved >= self.nominal - slack

    @property
    def status(self) -> str:
        """`holds`, `BROKEN` for a promise that fails, or `exceeds` for a disclosed excess."""
        if self.holds:
            return "holds"
        return "BROKEN" if self.claimed else "exceeds"
