"""What every sizing question and every answer to one have in common.

A question is built, asked and answered without I/O: questions in, frozen tables out.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any, ClassVar

from trialwise.decimals import complement
from trialwise.procedures.sizing.trial_costs import NO_PRICES, Prices
from trialwise.stats.result_types import Undefined
from trialwise.stats.sequential.design import SequentialDesign
from trialwise.validation import require_open_rate

#: Of the JSON that `SizingPlan.to_dict` gives; changed when a reader would have to change.
SCHEMA = "trialwise.plan/1"
#: Points of most curves.
CURVE_POINTS = 61


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingQuestion:
    """How surely something is to be shown, and what a trial costs."""

    confidence: float = 0.95
    prices: Prices = NO_PRICES

    def __post_init__(self) -> None:
        require_open_rate("confidence", self.confidence)

    @property
    def alpha(self) -> float:
        """1 − confidence, in decimals."""
        return complement(self.confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerQuestion(SizingQuestion):
    """A question about a test, which also has a power."""

    power: float = 0.80

    def __post_init__(self) -> None:
        SizingQuestion.__post_init__(self)
        require_open_rate("power", self.power)


class SizingPlan:
    """The answer to a sizing question."""

    __slots__ = ()
    form: ClassVar[str]
    """The name of the question."""

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain values, fit for JSON.

        An undefined quantity is `{"undefined": reason}`; a sequential design is in the form that
        `SequentialDesign.from_dict` reads.
        """
        return {"schema": SCHEMA, "form": self.form, **_as_plain(self)}


def _as_plain(value: Any) -> Any:
    if isinstance(value, Undefined):
        return {"undefined": value.reason}
    if isinstance(value, SequentialDesign):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _as_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [_as_plain(entry) for entry in value]
    return value
