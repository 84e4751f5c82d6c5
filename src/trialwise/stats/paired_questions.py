"""The questions of a paired comparison, what can be shown, and what that means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from trialwise.errors import InvalidArgument
from trialwise.stats.result_types import Decision
from trialwise.validation import require_choice, require_open_rate

PairedQuestion: TypeAlias = Literal["different", "better", "not-worse", "equivalent"]
"""What is asked about B; the last two need a margin."""

PairedOutcome: TypeAlias = Literal[
    "better", "not better", "not worse", "worse", "equivalent", "not equivalent", "not shown"
]
"""What the pairs show of B. "not better" is shown to lie below the margin asked for."""

PAIRED_QUESTIONS: tuple[PairedQuestion, ...] = (
    "different",
    "better",
    "not-worse",
    "equivalent",
)


def require_margin(question: PairedQuestion, margin: float | None) -> None:
    """Refuse a question that is unknown, and a margin that it does not have or has to have."""
    require_choice("question", question, PAIRED_QUESTIONS)
    if margin is not None:
        require_open_rate("margin", margin)
        if question == "different":
            allowed = "be left out where the question is whether the arms are different"
            raise InvalidArgument("margin", margin, allowed)
    elif question in ("not-worse", "equivalent"):
        allowed = f'be given, such as 0.02, where the question is "{question}"'
        raise InvalidArgument("margin", None, allowed)


#: The outcomes of each question that PASS and that FAIL; "not shown" is INCONCLUSIVE.
OUTCOMES: dict[PairedQuestion, tuple[tuple[PairedOutcome, ...], ...]] = {
    "different": (("better",), ("worse",)),
    "better": (("better",), ("worse", "not better")),
    "not-worse": (("not worse",), ("worse",)),
    "equivalent": (("equivalent",), ("not equivalent",)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedCharacteristic:
    """What a rule does for two arms, exactly."""

    question: PairedQuestion
    chances: Mapping[PairedOutcome, float]
    """The probability of each outcome that can happen; they add up to 1."""
    mean_pairs: float
    """Expected pairs, concordant ones included."""
    mean_discordant: float

    @property
    def better(self) -> float:
        """The probability of "B is better"."""
        return self.chances.get("better", 0.0)

    @property
    def worse(self) -> float:
        """The probability of "B is worse"."""
        return self.chances.get("worse", 0.0)

    def chance_of(self, decision: Decision) -> float:
        """Return the probability of PASS, of FAIL or of INCONCLUSIVE for the question asked."""
        return sum(
            chance
            for outcome, chance in self.chances.items()
            if decide_outcome(self.question, outcome) is decision
        )


def decide_outcome(question: PairedQuestion, outcome: PairedOutcome) -> Decision:
    """Return what an outcome means for the question that was asked.

    Examples
    --------
    >>> decide_outcome("different", "worse"), decide_outcome("not-worse", "not worse")
    (<Decision.FAIL: 'FAIL'>, <Decision.PASS: 'PASS'>)
    """
    passing, failing = OUTCOMES[question]
    if outcome in passing:
        return Decision.PASS
    return Decision.FAIL if outcome in failing else Decision.INCONCLUSIVE


def list_limits(
    question: PairedQuestion, margin: float
) -> tuple[tuple[list[float], list[float]], tuple[list[float], list[float]]]:
    """Return what PASS and what FAIL shows of the difference: that it is above, and is below.

    PASS shows all of its statements, FAIL any of its own.

    Examples
    --------
    >>> list_limits("not-worse", 0.05)
    (([-0.05], []), ([], [0.0]))
    """
    match question:
        case "different" | "better":
            return ([margin], []), ([], [margin])
        case "not-worse":
            return ([-margin], []), ([], [0.0])
        case "equivalent":
            return ([-margin], [margin]), ([margin], [-margin])
