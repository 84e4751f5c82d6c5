"""Which arm's replies a judge prefers, as one more criterion of a comparison.

Every pair of replies was shown to the judge twice, in both orders. A win is a pair in which only
the candidate was preferred, a loss one in which only the control was; everything else is a tie. If
people's preferences were compared with the judge's on labelled pairs, the share of wins among the
decided pairs is corrected for the judge's errors, by the exact test of `stats.judged_tests`. A
judge whose errors nobody measured only advises.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from trialwise.model.tally import Tally
from trialwise.procedures.comparing.amount_types import PreferenceFinding
from trialwise.procedures.comparing.change_assessment import Assessed
from trialwise.procedures.comparing.comparison_findings import ComparisonQuestion, Evidence
from trialwise.procedures.comparing.pair_evidence import (
    answer_by_direction,
    weigh_inputs,
    weigh_planned_pairs,
    weigh_stopped_pairs,
)
from trialwise.stats.agreement import Confusion
from trialwise.stats.judged_tests import JudgedTest
from trialwise.stats.paired import PairCounts
from trialwise.stats.result_types import Interval

_OUTCOMES = {"win": (False, True), "loss": (True, False)}
_TIED = (False, False)
#: A p-value is found on a grid of levels, each so many times the next.
_STEP, _ABOVE, _BELOW = 1.25, 13, 40


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceVotes:
    """What a judge preferred in each pair of replies of two arms, in the order of the pairs."""

    criterion: str
    arm: str
    against: str
    experiment: str
    choices: tuple[str, ...]
    """`win`, `loss`, `tie`, `inconsistent` or `missing`, from the candidate's side."""
    inputs: tuple[str, ...]
    """The input of each pair."""
    fixed_size: bool = True
    by_input: bool = False
    """Whether inputs are the units, since a claim reaches beyond them and they were repeated."""
    errors: Confusion | None = None
    """The judge's choices beside people's, where the judge may decide."""
    advisory: tuple[str, ...] = ()
    """Why it only advises."""
    usd: float | None = None
    """What the judge cost, as far as it says."""

    def count(self, choice: str) -> int:
        """Return how many pairs have a choice."""
        return self.choices.count(choice)

    @property
    def is_corrected(self) -> bool:
        """Whether the judge's errors are known and can be corrected for."""
        return self.errors is not None and self.fixed_size and not self.by_input


def assess_preference(votes: PreferenceVotes, question: ComparisonQuestion) -> Assessed:
    """Return what a judge's preferences say, as the evidence of a criterion.

    Args:
        votes: Its choices.
        question: How surely the arms are to be told apart.
    """
    known = _list_known(votes)
    obstacle = "" if known else "the judge answered about no pair"
    return Assessed(
        criterion=votes.criterion,
        arm=votes.arm,
        against=votes.against,
        experiment=votes.experiment,
        evidence=answer_by_direction(
            _weigh(votes, known, question), *question.of_criterion(votes.criterion)
        ),
        obstacle=obstacle,
        caveats=tuple(_list_caveats(votes)),
        advisory=(*votes.advisory, *_explain_uncorrected(votes)),
    )


def describe_preference(votes: PreferenceVotes, question: ComparisonQuestion) -> PreferenceFinding:
    """Return how often the candidate is preferred, with what the correction makes of it.

    Args:
        votes: The judge's choices.
        question: Its confidence is that of the intervals.
    """
    found = assess_preference(votes, question).evidence
    wins, losses = votes.count("win"), votes.count("loss")
    ties = votes.count("tie") + votes.count("inconsistent")
    corrected = corrected_interval = None
    if votes.is_corrected and wins + losses:
        assert votes.errors is not None
        test = JudgedTest(wins, wins + losses, votes.errors, "rogan-gladen")
        corrected = min(1.0, max(0.0, test.estimate))
        corrected_interval = _halve(found.interval)
    plain = _weigh(replace(votes, errors=None), _list_known(votes), question).interval
    asked = wins + losses + ties
    return PreferenceFinding(
        criterion=votes.criterion,
        arm=votes.arm,
        against=votes.against,
        wins=wins,
        losses=losses,
        ties=ties,
        inconsistent=votes.count("inconsistent"),
        missing=votes.count("missing"),
        rate=(wins + ties / 2) / asked if asked else None,
        interval=_halve(plain),
        labels=0 if votes.errors is None else votes.errors.labels,
        corrected_rate=corrected,
        corrected_interval=corrected_interval,
        p_value=found.p_value,
        usd=votes.usd,
    )


def _list_known(votes: PreferenceVotes) -> list[tuple[tuple[bool, bool], str]]:
    return [
        (_OUTCOMES.get(choice, _TIED), name)
        for choice, name in zip(votes.choices, votes.inputs, strict=True)
        if choice != "missing"
    ]


def _weigh(
    votes: PreferenceVotes,
    known: Sequence[tuple[tuple[bool, bool], str]],
    question: ComparisonQuestion,
) -> Evidence:
    outcomes = [outcome for outcome, _ in known]
    if not outcomes:
        nothing = Tally(trials=0, passed=0)
        return Evidence(control=nothing, candidate=nothing)
    if votes.is_corrected:
        return _correct(votes, question)
    if not votes.fixed_size:
        return _name(weigh_stopped_pairs(outcomes, question), "preference/anytime-bet")
    if votes.by_input:
        found = weigh_inputs(outcomes, [name for _, name in known])
        return _name(found, "preference/net-wins-of-inputs")
    return _name(weigh_planned_pairs(outcomes, question, votes.criterion), "preference/sign")


def _name(found: Evidence, rule: str) -> Evidence:
    return replace(found, decision_rule=rule)


def _correct(votes: PreferenceVotes, question: ComparisonQuestion) -> Evidence:
    """Return the evidence of the decided pairs, corrected for the judge's errors."""
    wins, losses = votes.count("win"), votes.count("loss")
    decided = wins + losses
    counts = Tally(trials=decided, passed=losses), Tally(trials=decided, passed=wins)
    if not decided:
        return Evidence(control=counts[0], candidate=counts[1], p_value=1.0)
    assert votes.errors is not None
    test = JudgedTest(wins, decided, votes.errors, "rogan-gladen")
    error = question.alpha / 2
    above = _find_p_value(test, error, above=True)
    below = _find_p_value(test, error, above=False)
    return Evidence(
        decision_rule="preference/corrected",
        control=counts[0],
        candidate=counts[1],
        pairs=PairCounts(both=0, only_a=losses, only_b=wins, neither=0),
        p_value=min(1.0, 2 * min(above, below)),
        favours_candidate=above < below,
        interval=Interval(
            2 * test.lower_bound(error) - 1,
            2 * test.upper_bound(error) - 1,
            confidence=question.confidence,
            method="corrected for the judge's errors, of the decided pairs",
        ),
    )


def _find_p_value(test: JudgedTest, error: float, *, above: bool) -> float:
    """Return the smallest level of a grid at which one half is ruled out, at all larger ones too.

    At each level a true half is ruled out with at most that probability, so that the p-value is
    valid; the grid holds the level of the interval, so that the two agree.
    """
    shows = test.shows_above if above else test.shows_below
    found = 1.0
    for step in range(_ABOVE, -_BELOW, -1):
        level = error * _STEP**step
        if level >= 0.5:
            continue
        if not shows(0.5, level):
            break
        found = level
    return found


def _halve(interval: Interval | None) -> Interval | None:
    """Return the interval of a share of wins from that of wins minus losses."""
    if interval is None:
        return None
    return replace(interval, low=(1 + interval.low) / 2, high=(1 + interval.high) / 2)


def _explain_uncorrected(votes: PreferenceVotes) -> Iterator[str]:
    if votes.errors is None or votes.is_corrected:
        return
    if not votes.fixed_size:
        yield (
            "the arms stopped because of what they showed, after which the judge's errors cannot "
            "be corrected for; fix the number of pairs with `trials`"
        )
    else:
        yield "inputs were repeated, and the judge's errors are corrected for single inputs only"


def _list_caveats(votes: PreferenceVotes) -> Iterator[str]:
    wins, losses = votes.count("win"), votes.count("loss")
    ties, turned = votes.count("tie"), votes.count("inconsistent")
    yield (
        f"The judge preferred {votes.arm} in {wins}, {votes.against} in {losses} and neither in "
        f"{ties + turned} of {wins + losses + ties + turned} pairs, each shown in both orders; in "
        f"{turned} the order decided."
    )
    if missing := votes.count("missing"):
        yield f"{missing} pairs have no answer of the judge and are left out."
    if votes.is_corrected:
        assert votes.errors is not None
        yield (
            f"Corrected for the judge's errors on {votes.errors.labels} labelled pairs, "
            f"{votes.errors.disagreements} of which it decided otherwise than people."
        )
