"""What a comparison of two runs concludes: the nouns, apart from how they are reached.

A is the reference and B the candidate throughout; every difference is the candidate's minus the
reference's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from trialwise.decimals import complement
from trialwise.errors import InvalidArgument
from trialwise.model.evidence import Spending
from trialwise.model.tally import Tally
from trialwise.model.verdict import Decision
from trialwise.stats.multiplicity import CORRECTIONS, Correction
from trialwise.stats.paired import PairCounts
from trialwise.stats.result_types import Interval
from trialwise.validation import require_choice, require_open_rate


class Contrast(StrEnum):
    """Where the candidate stands, as far as the evidence goes."""

    BETTER = "better"
    WORSE = "worse"
    NOT_TOLD_APART = "not told apart"
    """No difference was shown, which does not show that there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonQuestion:
    """How surely two services are to be told apart, and how much worse would be tolerated.

    >>> ComparisonQuestion(margin=0.05).alpha
    0.05
    """

    confidence: float = 0.95
    """Of every interval; 1 − confidence is the level of the tests, all criteria together."""
    correction: Correction = "holm"
    """How the tests of several criteria share that level."""
    margin: float | None = None
    """A loss that would be acceptable: PASS then means that no larger one is there."""

    def __post_init__(self) -> None:
        require_open_rate("confidence", self.confidence)
        require_choice("correction", self.correction, CORRECTIONS)
        if self.margin is not None:
            require_open_rate("margin", self.margin)
            if self.confidence <= 0.5:
                allowed = "be above 0.5 where a margin is given"
                raise InvalidArgument("confidence", self.confidence, allowed)

    @property
    def alpha(self) -> float:
        """1 − confidence, in decimals."""
        return complement(self.confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSide:
    """One of the two runs."""

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
    pairs: int
    """Pairs of one input and one repetition; 0 where nothing could be paired."""
    same_inputs: bool
    same_order: bool
    """Whether trial by trial the two had the same input."""
    same_seeds: bool
    fixed_size: bool
    """Whether the number of trials was settled before the first, and reached."""
    left_out: tuple[int, int]
    """Trials of the reference and of the candidate that have no partner."""
    excused: int = 0
    """Pairs in which a trial was not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A difference, what bounds it and how surprising it would be between equals."""

    decision_rule: str | None = None
    """The versioned name of the test, such as `paired/mcnemar-exact`; None: nothing was tested."""
    reference: Tally | None
    """What was counted of each side; None where a side does not know the criterion."""
    candidate: Tally | None
    pairs: PairCounts | None = None
    """`only_a` passed with the reference alone, `only_b` with the candidate alone."""
    inputs_won: int | None = None
    """Inputs on which the candidate won more pairs than it lost, where inputs are the units."""
    inputs_lost: int | None = None
    p_value: float | None = None
    """Two-sided, of this criterion alone; None where nothing was tested."""
    interval: Interval | None = None
    """Two-sided, for the difference, of this criterion alone: it describes, the test decides."""
    margin_bound: float | None = None
    """The one-sided lower bound on the difference, where a margin is given: the end of a score
    interval. Enumerated, its nominal 5 % is at most 7 % with 20 pairs and 6 % with 50 or 100."""
    favours_candidate: bool = False
    """The direction of the test, which means nothing without a small p-value."""

    difference: float | None = None
    """The candidate's rate minus the reference's, as the counts give it."""

    def __post_init__(self) -> None:
        ours, theirs = self.reference, self.candidate
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
    """One criterion under both services."""

    criterion: str
    experiment: str
    contrast: Contrast
    decision: Decision
    """PASS where the candidate is better, or shown to lose less than the margin; FAIL where it is
    worse; else INCONCLUSIVE."""
    adjusted_p_value: float | None = None
    """The smallest level of all criteria together at which this one is told apart."""
    statement: str = ""
    caveats: tuple[str, ...] = ()
    advisory: tuple[str, ...] = ()
    """Why it is reported and left out of the verdict's decision; nothing where it counts."""

    @property
    def wins(self) -> int | None:
        """Pairs in which the candidate alone passed."""
        return None if self.pairs is None else self.pairs.only_b

    @property
    def losses(self) -> int | None:
        """Pairs in which the reference alone passed."""
        return None if self.pairs is None else self.pairs.only_a


@dataclass(frozen=True, slots=True, kw_only=True)
class AmountDifference:
    """What trials took under both services: described, never decided."""

    name: str
    """`latency_s`, `cost_usd` or `tokens`."""
    experiment: str
    pairs: int
    basis: str
    """Which pairs were taken."""
    reference_mean: float
    candidate_mean: float
    median_difference: float
    """The middle of the differences within pairs."""
    interval: Interval | None
    """Exact and free of assumptions on shape, for the median difference; None for few pairs."""

    @property
    def mean_difference(self) -> float:
        """The candidate's mean minus the reference's."""
        return self.candidate_mean - self.reference_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonVerdict:
    """Two runs compared: one conclusion, every part still visible."""

    reference: ComparedSide
    candidate: ComparedSide
    decision: Decision
    """FAIL if the candidate is worse in any criterion, PASS if it passes every one."""
    findings: tuple[ComparisonFinding, ...]
    amounts: tuple[AmountDifference, ...]
    pairings: tuple[PairingSummary, ...]
    question: ComparisonQuestion
    analysis: str
    """Whose trials decided."""
    about: str
    """Whom the comparison speaks of."""
    multiplicity: str = ""
    """What the levels of several criteria guarantee together."""
    statement: str = ""
    caveats: tuple[str, ...] = ()
