"""What a choice between arms is asked, and what it says: the types, without any computation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from trialwise.decimals import complement
from trialwise.model.tally import Tally
from trialwise.procedures.comparing.comparison_findings import AnswerKind
from trialwise.stats.result_types import Interval
from trialwise.validation import require_open_rate

Outcome: TypeAlias = Literal["chosen", "tied", "undecided"]
Place: TypeAlias = Literal["chosen", "may be best", "not best", "tied", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceQuestion:
    """Which arm is best, by how much that matters, and how surely it is to be known.

    >>> ChoiceQuestion(smallest_difference=0.05).alpha
    0.05
    """

    kind: ClassVar[AnswerKind] = "choice"
    smallest_difference: float = 0.1
    """The smallest difference between two rates that matters."""
    confidence: float = 0.95
    criterion: str | None = None
    """What decides; None for all criteria together, of which a trial has to pass each."""
    break_ties: bool = False
    """Whether to choose the last arm also where another may be as good."""
    edition: int = 2
    """Of the rule for ties: see `ArmSelection`."""

    def __post_init__(self) -> None:
        require_open_rate("smallest_difference", self.smallest_difference)
        require_open_rate("confidence", self.confidence)

    @property
    def alpha(self) -> float:
        """The largest probability of a wrong answer where one arm is best by that much."""
        return complement(self.confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplorationQuestion:
    """What arms are described by; nothing is decided."""

    kind: ClassVar[AnswerKind] = "exploration"
    criterion: str | None = None
    confidence: float = 0.95

    def __post_init__(self) -> None:
        require_open_rate("confidence", self.confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmStanding:
    """One arm: how often it passed, what it took, and what is shown of it."""

    label: str
    contract: str
    run_id: str
    tally: Tally
    interval: Interval | None
    """Of its rate alone; None without a trial that was measured."""
    place: Place = ""
    """What a choice shows of it; empty where nothing is chosen."""
    is_unbeaten: bool = True
    """Whether no other arm is shown to be better."""
    not_measured: int = 0
    latency_s: float | None = None
    """The mean over its trials."""
    usd_per_trial: float | None = None
    usd_per_success: float | None = None
    factors: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceVerdict:
    """Which arm is best, with the arms that nobody beats."""

    question: ChoiceQuestion
    criteria: tuple[str, ...]
    """What a trial had to pass."""
    outcome: Outcome
    chosen: str | None
    """The label of the arm that is best; None where none is named."""
    remaining: tuple[str, ...]
    """The arms that may be better than all others by the smallest difference."""
    unbeaten: tuple[str, ...]
    """The arms that no other arm is shown to be better than."""
    arms: tuple[ArmStanding, ...]
    """In the order in which they were given."""
    rounds: int
    trials: int
    """The trials that were counted, of all arms together."""
    statement: str
    """The sentence that answers."""
    guarantee: str
    """How often the answer is wrong, and under which condition."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploration:
    """Arms beside each other: a description, which decides nothing."""

    criteria: tuple[str, ...]
    confidence: float
    arms: tuple[ArmStanding, ...]
    """The highest rate first."""
    unbeaten: tuple[str, ...]
    trials: int
    multiplicity: str
    """How much better the best of so many arms looks than it is, by chance."""
    notes: tuple[str, ...] = ()
