"""One criterion's evidence under two arms: which test is valid for it, and what it says.

How the pairs were made says which test that is; `procedures.comparison` has the list. Apart from
what is concluded, since that takes the evidence of all other criteria too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple

from trialwise.errors import InvalidArgument
from trialwise.model.claim import Claim, PopulationClaim
from trialwise.model.evidence import StopReason, Tally
from trialwise.model.plan import CriterionPlan, Plan
from trialwise.model.trial import Analysis, Trial
from trialwise.procedures.comparing import amount_types, evidence, findings
from trialwise.procedures.comparing.pairing import Pairing, pair_trials, read_pass
from trialwise.procedures.comparing.words import list_data_caveats
from trialwise.stats.agreement import Confusion
from trialwise.stats.judged_tests import JudgedTest
from trialwise.stats.paired import PairCounts
from trialwise.stats.paired_rules import PairedRule
from trialwise.stats.result_types import Interval


class Assessed(NamedTuple):
    """A criterion with its evidence, before the other criteria's is known.

    A criterion is never dropped: where nothing can be tested it is in the comparison all the same,
    not told apart, with the reason.
    """

    finding: findings.ComparisonFinding
    pairing: Pairing | None


def assess_criterion(
    name: str,
    control: findings.ArmRun,
    candidate: findings.ArmRun,
    question: findings.ComparisonQuestion,
    rule: PairedRule | None = None,
) -> Assessed:
    """Return what the trials of two arms say of one criterion.

    Args:
        name: The criterion's.
        control: The arm that is known.
        candidate: The arm that is compared with it.
        question: How surely they are to be told apart.
        rule: The rule that ended the runs; None where no rule did.
    """
    asked, margin = question.of_criterion(name)
    arms = control, candidate
    planned = [
        next((one for one in arm.record.plan.criteria if one.criterion == name), None)
        for arm in arms
    ]
    ours, theirs = planned
    pairing: Pairing | None = None
    caveats: Iterable[str] = ()
    if ours is None or theirs is None:
        # What one arm alone has counts all the same, so that nothing is silently dropped.
        weighed = findings.Evidence(
            control=_count(control, ours), candidate=_count(candidate, theirs)
        )
        which = control if theirs is None else candidate
        obstacle = f"only the run of {which.label} has this criterion"
    else:
        pairing = pair_trials(control, candidate, ours.experiment, theirs.experiment)
        plans = control.record.plan, candidate.record.plan
        weighed, obstacle = _weigh(name, pairing, plans, question, rule)
        # One name for two questions is worse than no comparison: the difference would be theirs.
        if plans[0].structure.get(name) != plans[1].structure.get(name):
            obstacle = "its postconditions differ between the two runs: these are two criteria"
        caveats = list_data_caveats(name, pairing, weighed, plans[0].analysis)
        weighed = evidence.answer_by_direction(weighed, asked, margin)
    known = [one for one in planned if one is not None]
    # It can only advise where it rests on a judge whose errors nobody knows.
    advisory = [reason for one in known for reason in one.standing.advisory if pairing is not None]
    finding = findings.ComparisonFinding.of(
        weighed,
        criterion=name,
        arm=candidate.label,
        against=control.label,
        question=asked,
        margin=margin,
        experiment=known[0].experiment,
        obstacle=obstacle,
        caveats=tuple(caveats),
        advisory=tuple(dict.fromkeys(advisory)),
    )
    return Assessed(finding, pairing)


def _count(arm: findings.ArmRun, planned: CriterionPlan | None) -> Tally | None:
    if planned is None:
        return None
    trials = arm.record.trials.of_experiment(planned.experiment).sketches()
    return _tally(planned.criterion, trials, arm.record.plan.analysis)


def _tally(name: str, trials: Iterable[Trial], analysis: Analysis) -> Tally:
    read = [read_pass(trial, (name,), analysis) for trial in trials]
    counted = [one for one in read if one is not None]
    return Tally(trials=len(counted), passed=sum(counted))


def _weigh(
    name: str,
    pairing: Pairing,
    plans: tuple[Plan, Plan],
    question: findings.ComparisonQuestion,
    rule: PairedRule | None,
) -> tuple[findings.Evidence, str]:
    """Return the evidence of the valid test, and what keeps it from deciding, if anything."""
    ours, theirs = plans
    # Repeats of an input are not independent facts about a population (pseudo-replication: Hurlbert
    # 1984), but they are about exactly these inputs.
    by_input = pairing.counts_inputs(ours.claim)
    obstacle = _find_obstacle(pairing, ours.claim, by_input=by_input)
    read = [(pair.control.input_id, pair.read(name, ours.analysis)) for pair in pairing.pairs]
    outcomes = [one for _, one in read if one is not None]
    if not outcomes:
        sides = pairing.control, pairing.candidate
        control, candidate = (_tally(name, trials, ours.analysis) for trials in sides)
        # Separate runs are tested as a whole only where nobody looked before they ended: their
        # sizes must not depend on what they saw.
        if pairing.summary.fixed_size and control.trials and candidate.trials:
            obstacle = obstacle or _explain_unattributable(pairing, ours.claim, theirs.claim)
            return evidence.weigh_unpaired(control, candidate, question, name), obstacle
        found = findings.Evidence(control=control, candidate=candidate)
        return found, obstacle or "no pair is left to compare: run both with `compare`"
    fixed = pairing.summary.fixed_size
    # What ended the runs has to decide them: any other test would ignore the looks that were taken.
    if rule is not None:
        return evidence.weigh_followed_pairs(outcomes, rule, ran_all=fixed), obstacle
    inputs = [input_id for input_id, one in read if one is not None]
    try:
        units = inputs if by_input else None
        return evidence.weigh_pairs(outcomes, units, question, name, fixed), obstacle
    except InvalidArgument as refused:
        counts = evidence.weigh_stopped_pairs(outcomes, question)
        found = replace(counts, decision_rule=None, p_value=None)
        few = f"{len(outcomes)} pairs are too few. Their number must {refused.allowed}"
        return found, obstacle or few


def _find_obstacle(pairing: Pairing, claim: Claim, *, by_input: bool) -> str:
    if StopReason.ERROR_RATE in pairing.stops:
        return "a run was aborted: too many of its trials never reached the service"
    # A test speaks of a rate beyond what was seen; without one there is only a description.
    if claim.population is PopulationClaim.NO_GENERALISATION:
        return "the claim goes no further than these trials, so that there is nothing to test"
    if pairing.summary.fixed_size:
        return ""
    if not pairing.summary.same_order:
        return (
            "a run ended because of what it saw, and the two had different orders: no test of "
            "them keeps its level. Run both with `compare`, or each with `trials` and "
            "`curtail: false`"
        )
    if by_input:
        return "a run ended early, and its inputs were repeated: no test about a population is left"
    return ""


def _explain_unattributable(pairing: Pairing, ours: Claim, theirs: Claim) -> str:
    """Return why a difference between trials that are not paired may not be the services'."""
    sides = pairing.control, pairing.candidate
    first, second = (Counter(one.input_id for one in trials) for trials in sides)
    sizes = first.total(), second.total()
    if pairing.summary.same_inputs:
        # With other shares of hard inputs two rates differ although no input does (Simpson's
        # paradox).
        if all(first[one] * sizes[1] == second[one] * sizes[0] for one in first | second):
            return ""
        return (
            "the trials cannot be paired, and the inputs were not tried equally often in both. "
            "Name each trial in a field `trial`, or try every input equally often"
        )
    populations = {(one.population, one.population_name) for one in (ours, theirs)}
    if len(populations) > 1 or ours.population is not PopulationClaim.SUPERPOPULATION:
        return (
            "the inputs of the two runs differ, so that a difference may be theirs. Run both on "
            "the same inputs: `compare` does"
        )
    repeated = len(first) < sizes[0] or len(second) < sizes[1]
    return "inputs were repeated: no unpaired test about a population is left" if repeated else ""


# --- Preferences ----------------------------------------------------------------------------------
# Every pair of replies was shown to a judge twice, in both orders. A win is a pair in which only
# the candidate was preferred, a loss one in which only the control was; everything else is a tie.
# If people's preferences were compared with the judge's on labelled pairs, the share of wins among
# the decided pairs is corrected for the judge's errors, by the exact test of `stats.judged_tests`.
# A judge whose errors nobody measured only advises.

_OUTCOMES = {"win": (False, True), "loss": (True, False)}
_TIED = (False, False)
#: A p-value is found on a grid of levels, each this many times the next.
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

    @property
    def counts(self) -> tuple[int, int, int, int, int]:
        """Wins, losses, ties, those of them in which the order decided, and pairs left out."""
        won, lost, tied, turned, missing = map(
            self.choices.count, ("win", "loss", "tie", "inconsistent", "missing")
        )
        return won, lost, tied + turned, turned, missing

    @property
    def known_errors(self) -> Confusion | None:
        """The judge's errors, where the test can be corrected for them."""
        return self.errors if self.fixed_size and not self.by_input else None


def assess_preference(
    votes: PreferenceVotes, question: findings.ComparisonQuestion
) -> tuple[findings.ComparisonFinding, amount_types.PreferenceFinding]:
    """Return what a judge's preferences say, as a criterion that is not concluded yet.

    Beside it stands how often the candidate is preferred, with what the correction makes of it.

    Args:
        votes: Its choices.
        question: How surely the arms are to be told apart.
    """
    asked, margin = question.of_criterion(votes.criterion)
    weighed = weigh_votes(votes, question)
    whose = {"criterion": votes.criterion, "arm": votes.arm, "against": votes.against}
    finding = findings.ComparisonFinding.of(
        evidence.answer_by_direction(weighed, asked, margin),
        question=asked,
        margin=margin,
        **whose,
        experiment=votes.experiment,
        obstacle="" if weighed.p_value is not None else "the judge answered about no pair",
        caveats=tuple(_list_caveats(votes)),
        advisory=(*votes.advisory, *_explain_uncorrected(votes)),
    )
    return finding, _describe_preference(votes, question, weighed, whose)


def _describe_preference(
    votes: PreferenceVotes,
    question: findings.ComparisonQuestion,
    found: findings.Evidence,
    whose: Mapping[str, Any],
) -> amount_types.PreferenceFinding:
    plain = weigh_votes(replace(votes, errors=None), question).interval
    wins, losses, ties, inconsistent, missing = votes.counts
    # What the judge said stands beside what people would say, so that both can be checked.
    errors, corrected, corrected_interval = votes.known_errors, None, None
    if errors is not None and wins + losses:
        estimate = JudgedTest(wins, wins + losses, errors, "rogan-gladen").estimate
        corrected = min(1.0, max(0.0, estimate))
        corrected_interval = _halve(found.interval)
    asked = wins + losses + ties
    return amount_types.PreferenceFinding(
        **whose,
        wins=wins,
        losses=losses,
        ties=ties,
        inconsistent=inconsistent,
        missing=missing,
        rate=(wins + ties / 2) / asked if asked else None,
        interval=_halve(plain),
        labels=0 if votes.errors is None else votes.errors.labels,
        corrected_rate=corrected,
        corrected_interval=corrected_interval,
        p_value=found.p_value,
        usd=votes.usd,
    )


def weigh_votes(votes: PreferenceVotes, question: findings.ComparisonQuestion) -> findings.Evidence:
    """Return the test of preferences that is valid for how the pairs were made.

    Args:
        votes: The judge's choices.
        question: Its level.
    """
    # A judge's silence is left out and counted; a tie is an answer, and no evidence for either arm.
    places = [place for place, one in enumerate(votes.choices) if one != "missing"]
    outcomes = [_OUTCOMES.get(votes.choices[place], _TIED) for place in places]
    if not outcomes:
        nothing = Tally(trials=0, passed=0)
        return findings.Evidence(control=nothing, candidate=nothing)
    if votes.known_errors is not None:
        return _correct(votes, votes.known_errors, question)
    inputs = [votes.inputs[place] for place in places]
    found = evidence.weigh_pairs(
        outcomes, inputs if votes.by_input else None, question, votes.criterion, votes.fixed_size
    )
    # A planned number of pairs of which a judge decides each is an exact sign test.
    kinds = {"anytime-bet", "net-wins-of-inputs"}
    kind = str(found.decision_rule).partition("/")[2]
    return replace(found, decision_rule=f"preference/{kind if kind in kinds else 'sign'}")


def _correct(
    votes: PreferenceVotes, errors: Confusion, question: findings.ComparisonQuestion
) -> findings.Evidence:
    """Return the evidence of the decided pairs, corrected for the judge's errors."""
    wins, losses, *_ = votes.counts
    decided = wins + losses
    counts = Tally(trials=decided, passed=losses), Tally(trials=decided, passed=wins)
    if not decided:
        return findings.Evidence(control=counts[0], candidate=counts[1], p_value=1.0)
    test = JudgedTest(wins, decided, errors, "rogan-gladen")
    error = question.alpha / 2
    # Ties have no direction, so the judge's errors are known for decided pairs alone: Rogan and
    # Gladen (1978) correct the share of wins among those.
    above = _find_p_value(test, error, above=True)
    below = _find_p_value(test, error, above=False)
    return findings.Evidence(
        decision_rule="preference/corrected",
        control=counts[0],
        candidate=counts[1],
        pairs=PairCounts(both=0, only_a=losses, only_b=wins, neither=0),
        p_value=min(1.0, 2 * min(above, below)),
        favours_candidate=above < below,
        interval=Interval(
            *(2 * bound(error) - 1 for bound in (test.lower_bound, test.upper_bound)),
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
    # A p-value is the smallest level at which a test rejects, as far as it rejects at all larger
    # ones. A grid makes it larger by one step at most, so that it stays valid.
    levels = (error * _STEP**step for step in range(_ABOVE, -_BELOW, -1))
    ruled_out = takewhile(partial(shows, 0.5), (one for one in levels if one < 0.5))
    return min(ruled_out, default=1.0)


def _halve(interval: Interval | None) -> Interval | None:
    """Return the interval of a share of wins from that of wins minus losses."""
    return interval and replace(interval, low=(1 + interval.low) / 2, high=(1 + interval.high) / 2)


def _explain_uncorrected(votes: PreferenceVotes) -> Iterator[str]:
    if votes.errors is None or votes.known_errors is not None:
        return
    yield (
        "inputs were repeated, and the judge's errors are corrected for single inputs only"
        if votes.fixed_size
        else "the arms stopped because of what they showed, after which the judge's errors cannot "
        "be corrected for; fix the number of pairs with `trials`"
    )


def _list_caveats(votes: PreferenceVotes) -> Iterator[str]:
    wins, losses, ties, turned, missing = votes.counts
    yield (
        f"The judge preferred {votes.arm} in {wins}, {votes.against} in {losses} and neither in "
        f"{ties} of {wins + losses + ties} pairs, each shown in both orders; in {turned} the order "
        "decided."
    )
    if missing:
        yield f"{missing} pairs have no answer of the judge and are left out."
    if errors := votes.known_errors:
        yield (
            f"Corrected for the judge's errors on {errors.labels} labelled pairs, "
            f"{errors.disagreements} of which it decided otherwise than people."
        )
