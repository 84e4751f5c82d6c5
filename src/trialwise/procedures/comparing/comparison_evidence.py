"""What the pairs of one criterion say, by the test that their making allows.

- A number of trials settled beforehand: McNemar's exact test on the discordant pairs. It is exact
  where the two are equally good on every input; where they trade inputs, each better on some, the
  count of wins varies less than it assumes, and the level is kept with room to spare.
- A run that stopped because of what it saw: a bet on the discordant pairs in issue order, whose
  anytime p-value no stopping can bias.
- A claim about a population whose inputs were repeated: inputs are the units, by the sign of each.
- No pairs: Boschloo's test in both directions, on all trials of the two runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from trialwise.decimals import as_written
from trialwise.model.tally import Tally
from trialwise.procedures.comparing.comparison_findings import ComparisonQuestion
from trialwise.stats.anytime import anytime_p_value
from trialwise.stats.paired import PairCounts, mcnemar, pairs_from_outcomes, sign_test
from trialwise.stats.paired_interval import paired_difference_interval
from trialwise.stats.result_types import Interval
from trialwise.stats.score_difference import difference_interval
from trialwise.stats.unconditional import boschloo

__all__ = [
    "Evidence",
    "anytime_evidence",
    "exact_evidence",
    "input_evidence",
    "unpaired_evidence",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A difference, what bounds it and how surprising it would be between equals."""

    reference: Tally | None
    candidate: Tally | None
    """None where a side does not know the criterion."""
    rule: str | None = None
    p_value: float | None = None
    """Two-sided; None where nothing was tested."""
    favours_candidate: bool = False
    """The direction of the test, which means nothing without a small p-value."""
    pairs: PairCounts | None = None
    inputs_won: int | None = None
    inputs_lost: int | None = None
    interval: Interval | None = None
    margin_bound: float | None = None

    @property
    def difference(self) -> float | None:
        """The candidate's rate minus the reference's."""
        ours, theirs = self.reference, self.candidate
        if ours is None or theirs is None or not ours.trials or not theirs.trials:
            return None
        # One division, so that 97 − 91 of 100 is 0.06.
        gap = theirs.passed * ours.trials - ours.passed * theirs.trials
        return gap / (ours.trials * theirs.trials)

    @property
    def discordant(self) -> int | None:
        """How many units tell the two apart, where units can."""
        if self.inputs_won is not None and self.inputs_lost is not None:
            return self.inputs_won + self.inputs_lost
        return None if self.pairs is None else self.pairs.discordant


def exact_evidence(outcomes: Sequence[tuple[bool, bool]], question: ComparisonQuestion) -> Evidence:
    """The exact test of pairs (reference passed, candidate passed).

    >>> found = exact_evidence([(False, True)] * 6 + [(True, True)] * 4, ComparisonQuestion())
    >>> found.p_value, found.favours_candidate
    (0.03125, True)
    """
    pairs = _counted(outcomes)
    test = mcnemar(pairs.only_a, pairs.only_b, method="exact")
    return Evidence(
        reference=_tally(pairs, pairs.only_a),
        candidate=_tally(pairs, pairs.only_b),
        rule="paired/mcnemar-exact",
        p_value=test.p_value,
        favours_candidate=pairs.only_b > pairs.only_a,
        pairs=pairs,
        interval=_interval(pairs, question.confidence),
        margin_bound=_margin_bound(pairs, question),
    )


def anytime_evidence(
    outcomes: Sequence[tuple[bool, bool]], question: ComparisonQuestion
) -> Evidence:
    """The test of pairs in issue order that a stop for any reason leaves valid.

    The wealth of a bet on each side, at evens whenever exactly one of the two passed; the smaller
    anytime p-value is doubled for having bet on both.

    >>> won = anytime_evidence([(False, True)] * 12, ComparisonQuestion())
    >>> won.p_value < 0.05 < anytime_evidence([(False, True)] * 6, ComparisonQuestion()).p_value
    True
    """
    pairs = _counted(outcomes)
    wins = [candidate for reference, candidate in outcomes if reference is not candidate]
    above = anytime_p_value(wins, 0.5, direction="above") if wins else 1.0
    below = anytime_p_value(wins, 0.5, direction="below") if wins else 1.0
    found = _interval(pairs, question.confidence)
    return Evidence(
        reference=_tally(pairs, pairs.only_a),
        candidate=_tally(pairs, pairs.only_b),
        rule="paired/anytime-bet",
        p_value=min(1.0, 2 * min(above, below)),
        favours_candidate=above < below,
        pairs=pairs,
        interval=found.after_early_stop(),
    )


def input_evidence(outcomes: Sequence[tuple[bool, bool]], inputs: Sequence[str]) -> Evidence:
    """The sign test over inputs: each is won, lost or tied, however often it was tried.

    >>> found = input_evidence([(False, True)] * 6, ["1", "1", "1", "2", "2", "2"])
    >>> found.inputs_won, found.p_value
    (2, 0.5)
    """
    net: Counter[str] = Counter()
    for name, (reference, candidate) in zip(inputs, outcomes, strict=True):
        net[name] += candidate - reference
    won, lost = sum(one > 0 for one in net.values()), sum(one < 0 for one in net.values())
    pairs = _counted(outcomes)
    return Evidence(
        reference=_tally(pairs, pairs.only_a),
        candidate=_tally(pairs, pairs.only_b),
        rule="paired/sign-of-inputs",
        p_value=sign_test(won, lost).p_value,
        favours_candidate=won > lost,
        pairs=pairs,
        inputs_won=won,
        inputs_lost=lost,
    )


def unpaired_evidence(reference: Tally, candidate: Tally, question: ComparisonQuestion) -> Evidence:
    """Boschloo's exact test of two separate runs, doubled for looking both ways.

    >>> found = unpaired_evidence(
    ...     Tally(trials=10, passed=1), Tally(trials=10, passed=9), ComparisonQuestion()
    ... )
    >>> found.favours_candidate, found.p_value < 0.01
    (True, True)
    """
    ours, theirs = (reference.passed, reference.trials), (candidate.passed, candidate.trials)
    degraded = boschloo(*ours, *theirs).p_value
    improved = boschloo(*theirs, *ours).p_value
    bound = None
    if question.margin is not None:
        bound = difference_interval(*ours, *theirs, confidence=_one_sided(question)).low
    return Evidence(
        reference=reference,
        candidate=candidate,
        rule="unpaired/boschloo",
        p_value=min(1.0, 2 * min(degraded, improved)),
        favours_candidate=improved < degraded,
        interval=difference_interval(*ours, *theirs, confidence=question.confidence),
        margin_bound=bound,
    )


def _counted(outcomes: Sequence[tuple[bool, bool]]) -> PairCounts:
    return pairs_from_outcomes([one for one, _ in outcomes], [other for _, other in outcomes])


def _tally(pairs: PairCounts, alone: int) -> Tally:
    return Tally(trials=pairs.pairs, passed=pairs.both + alone)


def _interval(pairs: PairCounts, confidence: float) -> Interval:
    """Tango's, for the candidate's rate minus the reference's."""
    return paired_difference_interval(
        pairs.both, pairs.only_b, pairs.only_a, pairs.neither, confidence=confidence
    )


def _margin_bound(pairs: PairCounts, question: ComparisonQuestion) -> float | None:
    return None if question.margin is None else _interval(pairs, _one_sided(question)).low


def _one_sided(question: ComparisonQuestion) -> float:
    """The two-sided confidence whose lower end is a bound at the question's own."""
    return float(1 - 2 * as_written(question.alpha))
