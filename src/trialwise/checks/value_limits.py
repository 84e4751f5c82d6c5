"""A least and a greatest value, either of which may be missing."""

from __future__ import annotations

from dataclasses import dataclass

from trialwise.errors import InvalidArgument
from trialwise.validation import require_count, require_real

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Both ends belong to it."""

    minimum: float | None = None
    maximum: float | None = None

    def __str__(self) -> str:
        if self.minimum is None:
            return f"at most {self.maximum}"
        if self.maximum is None:
            return f"at least {self.minimum}"
        if self.minimum == self.maximum:
            return f"exactly {self.minimum}"
        return f"{self.minimum} to {self.maximum}"

    def hold(self, value: float) -> bool:
        """Whether a value lies within; NaN does not."""
        return (self.minimum is None or value >= self.minimum) and (
            self.maximum is None or value <= self.maximum
        )

    def check_counts(self) -> None:
        """Whole numbers, at least one of them, in order."""
        for argument, value in (("minimum", self.minimum), ("maximum", self.maximum)):
            if value is not None:
                require_count(argument, value)  # type: ignore[arg-type]
        self._check_order()

    def check_reals(self) -> None:
        """Finite numbers, at least one of them, in order."""
        for argument, value in (("minimum", self.minimum), ("maximum", self.maximum)):
            if value is not None:
                require_real(argument, value)
        self._check_order()

    def _check_order(self) -> None:
        if self.minimum is None and self.maximum is None:
            raise InvalidArgument("minimum", None, "be given, or maximum, or both")
        if self.minimum is not None and self.maximum is not None and self.maximum < self.minimum:
            raise InvalidArgument("maximum", self.maximum, f"be at least minimum ({self.minimum})")
