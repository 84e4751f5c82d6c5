"""What a comparison of arms concludes: the types, apart from how the conclusions are reached.

The first arm is the control and the others are candidates. Every difference is the rate of an arm
minus the rate of the arm it is compared with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, TypeVar

from trialwise.decimals import complement
from trialwise.errors import InvalidArgument
from trialwise.model.evidence import Spending, Tally
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Decision
from trialwise.procedures.comparing.amount_types import AmountsFound, PreferenceFinding
from trialwise.stats.multiplicity import CORRECTIONS, Correction
from trialwise.stats.paired import PairCounts, PairedQuestion, require_margin
from trialwise.stats.result_types import Interval
from trialwise.validation import require_choice, require_open_rate

T = TypeVar("T")


class Contrast(StrEnum):
    """Where the candidate stands, as far as the evidence goes."""

    BETTER = "better"
    WORSE = "worse"
    NOT_TOLD_APART = "not told apart"
    """No difference was shown, which does not show that there is none."""


Question: TypeAlias = PairedQuestion

AnswerKind: TypeAlias = Literal["comparison", "choice", "exploration"]
"""What several arms come to: which differ, which is best, or a description only."""

Against: TypeAlias = Literal["control", "all"]
"""Whether each candidate is compared with the control only, or every arm with every other."""


@dataclass(frozen=True, slots=True)
class ArmRun:
    """One arm of a comparison: its label, and the run that was made with it."""

    label: str
    record: RunRecord
    path: Path | None = None
    """The folder that the run is kept in, if it is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonQuestion:
    """What is asked of the candidates, and how surely it is to be answered.

    - "different": PASS shows a better candidate, FAIL a worse one.
    - "better": PASS shows a rate higher by more than the margin (0 unless given); FAIL shows that
      it is not.
    - "not-worse": PASS shows a rate that is not lower by the margin; FAIL shows a lower rate.
    - "equivalent": PASS shows rates that differ by less than the margin; FAIL by more.

    >>> ComparisonQuestion(question="not-worse", margin=0.05).alpha
    0.05
    >>> ComparisonQuestion(guardrails={"safe": 0.02}).of_criterion("safe")
    ('not-worse', 0.02)
    """

    kind: ClassVar[AnswerKind] = "comparison"
    question: Question = "different"
    margin: float | None = None
    confidence: float = 0.95
    """Of every interval; 1 − confidence is the level of the tests, all of them together."""
    correction: Correction = "holm"
    """How the tests of several criteria and candidates share that level."""
    against: Against = "control"
    guardrails: Mapping[str, float] = field(default_factory=dict)
    """Criteria that are asked "not-worse", each by its own margin, whatever is asked of others."""
    edition: int = 2
    """Of the rule for "equivalent": see `plan_paired_rule`."""

    def __post_init__(self) -> None:
        require_open_rate("confidence", self.confidence)
        require_choice("correction", self.correction, CORRECTIONS)
        require_choice("against", self.against, ("control", "all"))
        for name, margin in self.guardrails.items():
            require_open_rate(f"guardrails[{name}]", margin)
        require_margin(self.question, self.margin)
        # Below that the two sides of a margin are no longer two statements: both could be shown at
        # once.
        if (self.margin is not None or self.guardrails) and self.confidence <= 0.5:
            allowed = "be above 0.5 where a margin is given"
            raise InvalidArgument("confidence", self.confidence, allowed)

    @classmethod
    def of(
        cls, question: Question | None, margin: float | None, **given: Any
    ) -> ComparisonQuestion:
        """Return the question; a margin alone asks whether a candidate is not worse by more."""
        # A margin says how much loss is acceptable: that is the question of non-inferiority.
        asked = question or ("different" if margin is None else "not-worse")
        return cls(question=asked, margin=margin, **given)

    @property
    def alpha(self) -> float:
        """1 − confidence, in decimals."""
        return complement(self.confidence)

    def of_criterion(self, criterion: str) -> tuple[Question, float]:
        """Return what is asked of one criterion, and by which margin."""
        if criterion in self.guardrails:
            return "not-worse", self.guardrails[criterion]
        return self.question, self.margin or 0.0

    def couple_arms(self, arms: Sequence[T]) -> Iterator[tuple[T, T]]:
        """Return which arms are compared with each other, the known one first.

        >>> list(ComparisonQuestion(against="all").couple_arms("abc"))
        [('a', 'b'), ('a', 'c'), ('b', 'c')]
        """
        if self.against == "all":
            # In the order of the arms, so that every pair of arms has one direction.
            return combinations(arms, 2)
        return ((arms[0], other) for other in arms[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedArm:
    """One of the arms, as a report names it."""

    label: str
    contract: str
    run_id: str
    seed: int
    factors: Mapping[str, str] = field(default_factory=dict)
    spending: Spending = field(default_factory=Spending)
    """Its setup is kept apart, and takes no part in the differences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairingSummary:
    """How the trials of one experiment were put together."""

    experiment: str
    arm: str
    against: str
    pairs: int
    """Pairs of one input and one repetition; 0 where nothing could be paired."""
    same_inputs: bool
    same_order: bool
    """Whether trial by trial the two had the same input."""
    same_seeds: bool
    fixed_size: bool
    """Whether the number of trials was settled before the first, and reached."""
    left_out: tuple[int, int]
    """Trials of the control and of the candidate that have no partner."""
    excused: int = 0
    """Pairs in which a trial was not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidityCheck:
    """One question about the data of two arms, asked before any verdict."""

    name: Literal["same cases", "measured alike"]
    arm: str
    against: str
    experiment: str
    holds: bool
    withholds: bool = False
    """Whether no verdict is given because of it."""
    statement: str
    """What was found."""
    p_value: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A difference, what bounds it and how surprising it would be between equals."""

    decision_rule: str | None = None
    """The versioned name of the test, such as `paired/mcnemar-exact`; None: nothing was tested."""
    control: Tally | None
    """What was counted of each side; None where a side does not know the criterion."""
    candidate: Tally | None
    pairs: PairCounts | None = None
    """`only_a` passed with the control alone, `only_b` with the candidate alone."""
    inputs_won: int | None = None
    """Inputs on which the candidate won more pairs than it lost, where inputs are the units."""
    inputs_lost: int | None = None
    p_value: float | None = None
    """Of this criterion alone, twice the smaller of two one-sided p-values: of what PASS and of
    what FAIL refutes. None where nothing was tested."""
    interval: Interval | None = None
    """For the difference, of this criterion alone. For pairs of a number that was planned, or
    followed by a rule, it is exact and agrees with the p-value."""
    favours_candidate: bool = False
    """The direction of the test, which means nothing without a small p-value."""
    favours_pass: bool | None = None
    """Whether a small p-value means PASS or FAIL; None where it answers no question asked."""

    difference: float | None = None
    """The candidate's rate minus the control's, as the counts give it."""

    def __post_init__(self) -> None:
        ours, theirs = self.control, self.candidate
        if ours is None or theirs is None or not ours.trials or not theirs.trials:
            return
        # One division, so that 97 − 91 of 100 is 0.06.
        gap = theirs.passed * ours.trials - ours.passed * theirs.trials
        object.__setattr__(self, "difference", gap / (ours.trials * theirs.trials))

    @property
    def discordant(self) -> int | None:
        """How many units tell the two apart, where units can."""
        if self.inputs_won is not None and self.inputs_lost is not None:
            return self.inputs_won + self.inputs_lost
        return None if self.pairs is None else self.pairs.discordant


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonFinding(Evidence):
    """One criterion under two arms."""

    criterion: str
    arm: str
    """The label of the candidate, or of the later arm where all pairs of arms are compared."""
    against: str
    """The label of the arm that it is compared with: the control, unless all pairs are."""
    question: Question = "different"
    margin: float = 0.0
    experiment: str
    contrast: Contrast = Contrast.NOT_TOLD_APART
    decision: Decision = Decision.INCONCLUSIVE
    """PASS where the candidate is better, or shown to lose less than the margin; FAIL where it is
    worse; else INCONCLUSIVE."""
    adjusted_p_value: float | None = None
    """The smallest level of all criteria together at which this one is told apart."""
    obstacle: str = ""
    """Why nothing was tested, and what to do about it; nothing where something was."""
    statement: str = ""
    caveats: tuple[str, ...] = ()
    advisory: tuple[str, ...] = ()
    """Why it is reported and left out of the verdict's decision; nothing where it counts."""

    @classmethod
    def of(cls, found: Evidence, **given: Any) -> ComparisonFinding:
        """Return a finding of evidence that is not concluded yet."""
        return cls(**{one.name: getattr(found, one.name) for one in fields(Evidence)}, **given)

    @property
    def wins(self) -> int | None:
        """Pairs in which the candidate alone passed."""
        return None if self.pairs is None else self.pairs.only_b

    @property
    def losses(self) -> int | None:
        """Pairs in which the control alone passed."""
        return None if self.pairs is None else self.pairs.only_a


def group_by_arms(
    found: Iterable[ComparisonFinding],
) -> dict[tuple[str, str], list[ComparisonFinding]]:
    """Return the findings of every two arms, by the labels of the known and of the compared one."""
    groups: dict[tuple[str, str], list[ComparisonFinding]] = {}
    for one in found:
        groups.setdefault((one.against, one.arm), []).append(one)
    return groups


@dataclass(frozen=True, slots=True, kw_only=True)
class RelabelledShare:
    """How often a difference is found where labels were swapped at random."""

    share: float
    found: int | None = None
    """Of how many relabellings; None where all ways were followed."""
    relabellings: int | None = None
    interval: Interval | None = None
    """Of the share, where a sample was followed."""
    level: float
    """The share may not exceed it."""

    @property
    def is_exact(self) -> bool:
        """Whether all ways to swap were followed."""
        return self.relabellings is None

    @property
    def exceeds_level(self) -> bool:
        """Whether the share is shown to exceed the level."""
        return (self.share if self.interval is None else self.interval.low) > self.level


class ArmsRow(NamedTuple):
    """One test of a comparison, or one arm of a choice, while the arms run."""

    name: str
    counts: str
    """What was counted, in words."""
    outcome: str | None = None
    """What it shows, once that is decided."""
    after: int = 0
    """How many pairs or rounds it took."""
    decision: Decision | None = None
    """What the outcome means for the candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonVerdict(AmountsFound):
    """Arms compared: one conclusion, every part still visible."""

    arms: tuple[ComparedArm, ...]
    """The first is the control."""
    decision: Decision
    """FAIL if any candidate fails any criterion, PASS if every candidate passes every one."""
    findings: tuple[ComparisonFinding, ...]
    pairings: tuple[PairingSummary, ...]
    checks: tuple[ValidityCheck, ...] = ()
    """What was checked before the verdict: the same cases, and measured alike."""
    preferences: tuple[PreferenceFinding, ...] = ()
    """How often a judge prefers the replies of one arm, where one was asked."""
    question: ComparisonQuestion
    analysis: str
    """Whose trials decided."""
    about: str
    """Whom the comparison speaks of."""
    multiplicity: str = ""
    """What the levels of several criteria guarantee together."""
    statement: str = ""
    caveats: tuple[str, ...] = ()
    relabelled: RelabelledShare | None = None
    """Where an arm was compared with itself: how often that finds a difference."""

    @property
    def control(self) -> ComparedArm:
        """The arm that the others are compared with."""
        return self.arms[0]

    @property
    def criteria(self) -> tuple[str, ...]:
        """The names of all criteria, in the order of the findings."""
        return tuple(dict.fromkeys(one.criterion for one in self.findings))

    @property
    def candidates(self) -> tuple[ComparedArm, ...]:
        """All other arms."""
        return self.arms[1:]
