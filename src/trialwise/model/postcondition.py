"""A named predicate on one reply (companion §1.4.2).

Most are decided on the spot. One that has to ask somebody, such as a judge model, also has `acheck`
to wait in; whoever it asks may fail, which is neither the service's failure nor a pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from trialwise.errors import InvalidArgument
from trialwise.model.reply import Reply, Usage
from trialwise.model.trial import CheckResult, ErrorClass

if TYPE_CHECKING:
    from trialwise.stats import Confusion


@runtime_checkable
class Postcondition(Protocol):
    """Decides pass or fail for one observable property of one reply.

    It carries no threshold: that belongs to the criterion that hosts it. Checking never raises for
    a reply it dislikes; a reply it cannot read is a failure whose reason says so.
    """

    @property
    def name(self) -> str:
        """The name in reports."""

    def check(self, reply: Reply) -> CheckResult:
        """Return what it says of a reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Appraisal:
    """What a postcondition that asked somebody says of a reply, and what asking took.

    >>> Appraisal(result=CheckResult.ok()).error_class
    <ErrorClass.NONE: 'none'>
    """

    result: CheckResult
    error_class: ErrorClass = ErrorClass.NONE
    """Why nobody answered the question of a check; NONE if somebody did."""
    usage: Usage | None = None
    """Tokens that asking took, apart from the reply's own."""
    cost_usd: float | None = None

    def __post_init__(self) -> None:
        if self.result.passed and self.error_class is not ErrorClass.NONE:
            allowed = f"be none for a pass: no answer is never one, got {self.error_class}"
            raise InvalidArgument("error_class", str(self.error_class), allowed)


@runtime_checkable
class AskingPostcondition(Postcondition, Protocol):
    """A postcondition that has to wait for an answer; the engine awaits it beside other trials."""

    async def acheck(self, reply: Reply, *, seed: int) -> Appraisal:
        """Return what it says of a reply.

        Args:
            reply: What came back; its details hold the trial's input.
            seed: The trial's own, for whatever is to be drawn by chance.
        """

    async def aclose(self) -> None:
        """Release what asking holds; closing twice is harmless, and a later call opens it again."""


def advisory_reasons(postconditions: Iterable[object]) -> tuple[str, ...]:
    """Return why a verdict that rests on these can only advise; nothing where it may decide.

    A postcondition whose own error is unknown says so in a property `advisory`, a tuple of reasons.

    >>> class Guess:
    ...     advisory = ("nobody has measured its errors",)
    >>> advisory_reasons([Guess(), len])
    ('nobody has measured its errors',)
    """
    several = list(postconditions)
    reasons = [reason for one in several for reason in getattr(one, "advisory", None) or ()]
    if len(several) > 1 and any(getattr(one, "errors", None) is not None for one in several):
        reasons.append(
            "the judge stands beside other postconditions, and what was measured is its own error, "
            "not that of all of them; give it a criterion of its own"
        )
    return tuple(reasons)


def measured_errors(postconditions: Sequence[object]) -> Confusion | None:
    """Return how often a criterion's one postcondition is wrong, where that was measured.

    Beside others it is not the criterion's outcome that was measured, and there is no saying.

    >>> measured_errors([len]) is None
    True
    """
    if len(postconditions) != 1:
        return None
    found: Confusion | None = getattr(postconditions[0], "errors", None)
    return found


def counts_labels(postconditions: Sequence[object]) -> bool:
    """Return whether the labels of a criterion's judge count as trials of the service.

    >>> counts_labels([len])
    False
    """
    return any(getattr(one, "labels_count_as_trials", False) for one in postconditions)
