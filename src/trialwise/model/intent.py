"""What a run or a criterion is for: evidence, or a quick check."""

from __future__ import annotations

from enum import StrEnum


class Intent(StrEnum):
    """What the run is for (companion §5.7)."""

    VERIFICATION = "VERIFICATION"
    """Evidence: a design that cannot support its claim is refused before the first trial."""
    SMOKE = "SMOKE"
    """A quick check: weak designs are allowed, and the report says that it is not evidence."""
