"""The small values that many methods return."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal, SupportsIndex, TypeAlias

Rule: TypeAlias = "Literal['exact', 'wilson', 'fisher']"
"""A rule set, never mixed with another within one verdict.

- "exact", the default: exact binomial decisions and intervals, Boschloo's test against a baseline.
- "wilson": the constructions of the companion 1.3, whose true error rates can exceed alpha.
- "fisher": the methodology that followed it, with Fisher's test against a baseline.
"""


RULES: tuple[Rule, ...] = ("exact", "wilson", "fisher")


Count: TypeAlias = "SupportsIndex"
"""A whole number: an int, or what stands for one, such as an integer of numpy."""


class Decision(StrEnum):
    """What a procedure concludes once it has run."""

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"


#: What the name of a method ends with where an early stop made its interval descriptive.
_STOPPED = ", descriptive after stopping early"


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval that remembers how it was made.

    It unpacks like a pair; two intervals are equal when their ends are.

    >>> low, high = Interval(0.25, 0.75)
    >>> 0.5 in Interval(0.25, 0.75)
    True
    """

    low: float
    high: float
    confidence: float | None = field(default=None, compare=False, kw_only=True)
    method: str = field(default="", compare=False, kw_only=True)

    @property
    def width(self) -> float:
        """The distance between the two ends."""
        return self.high - self.low

    def after_early_stop(self) -> Interval:
        """The same ends, told not to cover at their level: what was seen chose where to stop.

        >>> Interval(0.25, 0.75, method="wilson").after_early_stop().method
        'wilson, descriptive after stopping early'
        """
        return replace(self, method=f"{self.method}{_STOPPED}")

    @property
    def is_descriptive(self) -> bool:
        """Whether it does not cover at its level, since an early stop chose what was seen."""
        return self.method.endswith(_STOPPED)

    @property
    def is_approximate(self) -> bool:
        """Whether it is Wilson's, which covers about as often as its level says, not at least."""
        return self.method.lower().startswith("wilson")

    def __iter__(self) -> Iterator[float]:
        yield self.low
        yield self.high

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class Undefined:
    """A quantity the data do not define, and why: never 0, never NaN.

    It is false, so that `value or fallback` reads as it should.

    >>> bool(Undefined("a correlation needs two groups"))
    False
    """

    reason: str

    def __bool__(self) -> bool:
        return False

    def after_early_stop(self) -> Undefined:
        """Return the same: what is not defined does not depend on where a run stopped."""
        return self


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
