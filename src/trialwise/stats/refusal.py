"""Why a design is refused: named once, so that every rule refuses in the same words."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Refusal"]


class Refusal(StrEnum):
    """Why a design cannot support its claim, whatever the trials would have shown."""

    TEST_LARGER_THAN_BASELINE = "TEST_LARGER_THAN_BASELINE"
    """More test trials than the baseline they are compared with."""
    COMPLIANCE_INFEASIBLE = "COMPLIANCE_INFEASIBLE"
    """Too few trials: even without a failure the requirement would not be shown."""
    ZERO_BASELINE = "ZERO_BASELINE"
    """A baseline without a success: there is nothing to degrade from."""
    ALTERNATIVE_NOT_BELOW_BASELINE = "ALTERNATIVE_NOT_BELOW_BASELINE"
    """The rate to detect is not below the baseline's."""
    EMPTY_TOLERANCE_INTERVAL = "EMPTY_TOLERANCE_INTERVAL"
    """The lowest acceptable rate is not below the baseline's."""
    BASELINE_TOO_SMALL = "BASELINE_TOO_SMALL"
    """No test up to the baseline's size reaches the wanted power and keeps it."""
