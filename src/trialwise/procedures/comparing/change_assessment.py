"""One criterion's evidence under two arms: which test is valid for it, and what it says.

Apart from what it concludes, since that takes the evidence of all other criteria too. A criterion
is never dropped: where nothing can be tested it is in the comparison all the same, not told apart,
with the reason.

How the pairs were made says which test is valid:

- A number of trials settled beforehand: McNemar's exact test on the discordant pairs. It is exact
  where the two are equally good on every input; where they trade inputs, each better on some, the
  count of wins varies less than it assumes, and the level is kept with room to spare.
- Runs that stopped by a rule which was planned beforehand: that rule, on the pairs in the order of
  inputs.
- A run that stopped because of what it saw: a bet on the discordant pairs in the order of inputs,
  whose anytime p-value no stopping can bias.
- A claim about a population whose inputs were repeated: inputs are the units, by the sign of each.
- No pairs: Boschloo's test in both directions, on all trials of the two runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from trialwise.model.claim import Claim, PopulationClaim
from trialwise.model.evidence import StopReason
from trialwise.model.run import RunRecord
from trialwise.model.tally import Tally
from trialwise.model.trial import Analysis, Trial
from trialwise.model.verdict import Decision
from trialwise.procedures.comparing.comparison_findings import (
    ArmRun,
    ComparisonQuestion,
    Evidence,
    Question,
)
from trialwise.procedures.comparing.pair_following import conclude_path
from trialwise.procedures.comparing.trial_pairing import Pair, Pairing, pair_trials
from trialwise.procedures.comparing.unpaired_evidence import weigh_unpaired
from trialwise.stats.confidence_sequences import anytime_p_value
from trialwise.stats.net_wins import weigh_net_wins
from trialwise.stats.paired import (
    PairCounts,
    paired_difference_interval,
    pairs_from_outcomes,
)
from trialwise.stats.paired_rules import PairedConclusion, PairedRule, plan_paired_rule
from trialwise.stats.result_types import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessed:
    """A criterion's evidence before the other criteria's is known."""

    criterion: str
    arm: str
    against: str
    experiment: str = ""
    evidence: Evidence
    pairing: Pairing | None = None
    obstacle: str = ""
    """Why no difference can be concluded, whatever the numbers are."""
    caveats: tuple[str, ...] = ()
    advisory: tuple[str, ...] = ()

    @property
    def p_value(self) -> float | None:
        """The p-value of a valid test."""
        return None if self.obstacle else self.evidence.p_value


def collect_pairings(assessed: Sequence[Assessed]) -> list[Pairing]:
    """Return one pairing for every experiment of two arms, whichever criterion it was made for.

    Args:
        assessed: The criteria of all arms that are compared.
    """
    found = {
        (one.against, one.arm, one.experiment): one.pairing
        for one in assessed
        if one.pairing is not None
    }
    return list(found.values())


def assess_criterion(
    name: str,
    control: ArmRun,
    candidate: ArmRun,
    question: ComparisonQuestion,
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
    records = control.record, candidate.record
    ours, theirs = (_experiment(record, name) for record in records)
    if ours is None or theirs is None:
        return _assess_one_sided(name, control, candidate)
    labels = control.label, candidate.label
    pairing = pair_trials(*records, (ours, theirs), labels=labels)
    evidence, obstacle = _evidence(name, pairing, *records, question, rule=rule)
    evidence = answer_by_direction(evidence, *question.of_criterion(name))
    structures = [record.plan.structure.get(name) for record in records]
    if structures[0] != structures[1]:
        obstacle = "its postconditions differ between the two runs: these are two criteria"
    return Assessed(
        criterion=name,
        arm=candidate.label,
        against=control.label,
        experiment=ours,
        evidence=evidence,
        pairing=pairing,
        obstacle=obstacle,
        caveats=tuple(_caveats(name, pairing, evidence, control.record.plan.analysis)),
        advisory=_advisory(name, *records),
    )


def _advisory(name: str, *records: RunRecord) -> tuple[str, ...]:
    """Return why it can only advise, where it rests on a judge whose errors nobody knows."""
    found = (
        reason
        for record in records
        for one in record.plan.criteria
        if one.criterion == name
        for reason in one.advisory
    )
    return tuple(dict.fromkeys(found))


def _experiment(record: RunRecord, name: str) -> str | None:
    return next((one.experiment for one in record.plan.criteria if one.criterion == name), None)


def _assess_one_sided(name: str, control: ArmRun, candidate: ArmRun) -> Assessed:
    """Return a criterion that only one of the runs has."""
    tallies: list[Tally | None] = []
    records = control.record, candidate.record
    for record in records:
        experiment = _experiment(record, name)
        mine = [*record.trials.of_experiment(experiment or "").sketches()]
        analysis = record.plan.analysis
        tallies.append(_tally_trials(name, mine, analysis) if experiment else None)
    which = candidate if tallies[0] is None else control
    return Assessed(
        criterion=name,
        arm=candidate.label,
        against=control.label,
        experiment=next(filter(None, (_experiment(one, name) for one in records)), ""),
        evidence=Evidence(control=tallies[0], candidate=tallies[1]),
        obstacle=f"only the run of {which.label} has this criterion",
    )


def _evidence(
    name: str,
    pairing: Pairing,
    control: RunRecord,
    candidate: RunRecord,
    question: ComparisonQuestion,
    *,
    rule: PairedRule | None,
) -> tuple[Evidence, str]:
    """Return the evidence of the valid test, and what keeps it from deciding, if anything."""
    claim = control.plan.claim
    analysis = control.plan.analysis
    pairs = pairing.list_measured(name, analysis)
    obstacle = _obstacle(pairing, claim)
    if not pairs:
        ours = _tally_trials(name, pairing.control, analysis)
        theirs = _tally_trials(name, pairing.candidate, analysis)
        summary = pairing.summary
        if summary.fixed_size and not summary.same_inputs and ours.trials and theirs.trials:
            other = _explain_unattributable(pairing, claim, candidate.plan.claim)
            return weigh_unpaired(ours, theirs, question, name), obstacle or other
        counts = Evidence(control=ours, candidate=theirs)
        return counts, obstacle or "no pair is left to compare"
    outcomes = [_find_outcomes(name, pair) for pair in pairs]
    if rule is not None:
        return follow_evidence(outcomes, rule, ran_all=pairing.summary.fixed_size), obstacle
    if not pairing.summary.fixed_size:
        return anytime_evidence(outcomes, question), obstacle
    if claim.population is PopulationClaim.SUPERPOPULATION and pairing.repeats:
        return input_evidence(outcomes, [one.control.input_id for one in pairs]), obstacle
    return exact_evidence(outcomes, question, name), obstacle


def answer_by_direction(found: Evidence, asked: Question, margin: float) -> Evidence:
    """Return evidence that says what its direction means, where its test knows no margin.

    Args:
        found: The evidence.
        asked: The question.
        margin: Its margin.
    """
    if found.favours_pass is not None:
        return found
    answer = read_answer(asked, margin, favours_candidate=found.favours_candidate)
    return replace(found, favours_pass=answer)


def read_answer(asked: Question, margin: float, *, favours_candidate: bool) -> bool | None:
    """Return what a shown difference from 0 means for a question: PASS, FAIL or nothing.

    Args:
        asked: The question.
        margin: Its margin.
        favours_candidate: The direction of the difference.

    >>> read_answer("not-worse", 0.02, favours_candidate=True)
    True
    >>> read_answer("better", 0.02, favours_candidate=True) is None
    True
    """
    if asked == "equivalent" or (asked == "better" and margin and favours_candidate):
        return None
    return favours_candidate


def _obstacle(pairing: Pairing, claim: Claim) -> str:
    if StopReason.ERROR_RATE in pairing.stops:
        return "a run was aborted: too many of its trials never reached the service"
    if claim.population is PopulationClaim.NO_GENERALISATION:
        return "the claim goes no further than these trials, so that there is nothing to test"
    summary = pairing.summary
    if summary.fixed_size:
        return ""
    if not summary.same_order:
        return (
            "a run ended because of what it saw, and the two had different orders: no test of "
            "them keeps its level. Run both with `compare`"
        )
    if claim.population is PopulationClaim.SUPERPOPULATION and pairing.repeats:
        return "a run ended early, and its inputs were repeated: no test about a population is left"
    return ""


def _explain_unattributable(pairing: Pairing, ours: Claim, theirs: Claim) -> str:
    """Return whether a difference between runs on different inputs can be the services'."""
    one_population = (
        ours.population is theirs.population is PopulationClaim.SUPERPOPULATION
        and ours.population_name == theirs.population_name
    )
    if not one_population:
        return "the inputs of the two runs differ, so that a difference may be theirs"
    repeated = any(
        len({trial.input_id for trial in trials}) < len(trials)
        for trials in (pairing.control, pairing.candidate)
    )
    return "inputs were repeated: no unpaired test about a population is left" if repeated else ""


def _tally_trials(name: str, trials: Sequence[Trial], analysis: Analysis) -> Tally:
    counted = [
        trial
        for trial in trials
        if not (trial.is_unjudged(trial.outcome(name)) or analysis.leaves_out(trial.error_class))
    ]
    passed = sum(trial.outcome(name).passed for trial in counted)
    return Tally(trials=len(counted), passed=passed)


def _find_outcomes(name: str, pair: Pair) -> tuple[bool, bool]:
    return pair.control.outcome(name).passed, pair.candidate.outcome(name).passed


def _caveats(name: str, pairing: Pairing, evidence: Evidence, analysis: Analysis) -> Iterator[str]:
    summary = pairing.summary
    used = evidence.pairs
    if evidence.decision_rule == "paired/sequential" and used is not None:
        later = summary.pairs - summary.excused - used.pairs
        if later > 0:
            yield f"Decided after {used.pairs} pairs: the {later} pairs after them do not count."
    if evidence.decision_rule == "paired/anytime-bet":
        yield (
            "A run ended before its planned size or because of what it saw, so that a test which "
            f"no stopping biases decides, on the first {summary.pairs} pairs; its interval only "
            "describes."
        )
    elif summary.pairs and any(summary.left_out):
        yield (
            f"{summary.left_out[0]} trials of the control and {summary.left_out[1]} of the "
            "candidate have no partner and are left out."
        )
    unjudged = sum(pair.is_unjudged(name) for pair in pairing.pairs)
    if unjudged:
        pairs = "1 pair holds" if unjudged == 1 else f"{unjudged} pairs hold"
        left = "is left out" if unjudged == 1 else "are left out"
        yield (
            f"{pairs} a reply that got no verdict from the judge and {left}; the test keeps its "
            "level where a judge's silence has nothing to do with what it was shown."
        )
    if not summary.excused:
        return
    left_out = sum(pair.is_left_out(analysis) for pair in pairing.pairs)
    if left_out:
        yield f"{left_out} pairs hold a trial that was not measured and are left out."
    if left_out == summary.excused:
        return
    fair = [
        _find_outcomes(name, pair)
        for pair in pairing.pairs
        if not (pair.is_excused or pair.is_unjudged(name))
    ]
    won, lost = fair.count((False, True)), fair.count((True, False))
    yield (
        f"{summary.excused} pairs have a trial that was not measured and counts as a "
        f"failure; without them the candidate won {won} and lost {lost}."
    )


def exact_evidence(
    outcomes: Sequence[tuple[bool, bool]], question: ComparisonQuestion, criterion: str = ""
) -> Evidence:
    """Return the exact test of pairs (control passed, candidate passed) of a planned number.

    Without a margin it is McNemar's exact test, and with one the exact unconditional test of the
    margin.

    >>> found = exact_evidence([(False, True)] * 6 + [(True, True)] * 4, ComparisonQuestion())
    >>> found.p_value, found.favours_candidate
    (0.03125, True)
    """
    return _test_pairs(_count_pairs(outcomes), *question.of_criterion(criterion), question.alpha)


# The same counts are asked for by the verdict, by reports and by whoever compares again.
@lru_cache(maxsize=256)
def _test_pairs(pairs: PairCounts, asked: Question, margin: float, alpha: float) -> Evidence:
    rule = plan_paired_rule(asked, margin=margin or None, alpha=alpha, pairs=pairs.pairs)
    return _state_conclusion(rule, rule.conclude_counts(pairs))


def _state_conclusion(rule: PairedRule, found: PairedConclusion) -> Evidence:
    passing, failing = (
        rule.find_p_values(found.used) if found.is_complete and found.used.pairs else (1.0, 1.0)
    )
    p_value, passes = found.p_value, passing < failing
    if found.decision is Decision.PASS and not passes:
        # A small loss within the margin may be shown as well, and more surely. The rule lets the
        # margin count, so the p-value has to be that of the margin.
        p_value, passes = max(p_value, min(rule.alpha, 2 * passing)), True
    kind = "margin-exact" if rule.margin else "mcnemar-exact"
    return _weigh_pairs(
        found.used,
        decision_rule="paired/sequential" if rule.is_sequential else f"paired/{kind}",
        p_value=p_value,
        favours_candidate=found.used.only_b > found.used.only_a,
        favours_pass=passes,
        interval=found.interval,
    )


def follow_evidence(
    outcomes: Sequence[tuple[bool, bool]], rule: PairedRule, *, ran_all: bool
) -> Evidence:
    """Return what the rule that ended the runs says of pairs in the order of inputs.

    Args:
        outcomes: Whether the control and whether the candidate passed, pair by pair.
        rule: Planned before the first pair.
        ran_all: Whether every planned pair was made.

    >>> from trialwise.stats.paired_rules import plan_paired_rule
    >>> found = follow_evidence([(False, True)] * 20, plan_paired_rule(), ran_all=False)
    >>> found.favours_candidate, found.pairs.pairs < 20
    (True, True)
    """
    return _state_conclusion(rule, conclude_path(rule, outcomes, ran_all=ran_all))


def anytime_evidence(
    outcomes: Sequence[tuple[bool, bool]], question: ComparisonQuestion
) -> Evidence:
    """Return the test of pairs in the order of inputs that a stop for any reason leaves valid.

    The wealth of a bet on each side, at evens whenever exactly one of the two passed; the smaller
    anytime p-value is doubled for having bet on both.

    >>> won = anytime_evidence([(False, True)] * 12, ComparisonQuestion())
    >>> won.p_value < 0.05 < anytime_evidence([(False, True)] * 6, ComparisonQuestion()).p_value
    True
    """
    pairs = _count_pairs(outcomes)
    wins = [candidate for control, candidate in outcomes if control is not candidate]
    above = anytime_p_value(wins, 0.5, direction="above") if wins else 1.0
    below = anytime_p_value(wins, 0.5, direction="below") if wins else 1.0
    found = _interval(pairs, question.confidence)
    return _weigh_pairs(
        pairs,
        decision_rule="paired/anytime-bet",
        p_value=min(1.0, 2 * min(above, below)),
        favours_candidate=above < below,
        interval=found.after_early_stop(),
    )


def input_evidence(outcomes: Sequence[tuple[bool, bool]], inputs: Sequence[str]) -> Evidence:
    """Return the exact test of the net wins of each input, however often it was tried.

    >>> found = input_evidence([(False, True)] * 6, ["1", "1", "1", "2", "2", "2"])
    >>> found.inputs_won, found.p_value
    (2, 0.5)
    """
    net: Counter[str] = Counter()
    for name, (control, candidate) in zip(inputs, outcomes, strict=True):
        net[name] += candidate - control
    found = weigh_net_wins(net.values())
    return _weigh_pairs(
        _count_pairs(outcomes),
        decision_rule="paired/net-wins-of-inputs",
        p_value=found.p_value,
        favours_candidate=found.net > 0,
        inputs_won=found.won,
        inputs_lost=found.lost,
    )


def _count_pairs(outcomes: Sequence[tuple[bool, bool]]) -> PairCounts:
    return pairs_from_outcomes([one for one, _ in outcomes], [other for _, other in outcomes])


def _weigh_pairs(pairs: PairCounts, **given: Any) -> Evidence:
    """Return the evidence of pairs, with the counts of both sides."""
    ours, theirs = (
        Tally(trials=pairs.pairs, passed=pairs.both + alone)
        for alone in (pairs.only_a, pairs.only_b)
    )
    return Evidence(control=ours, candidate=theirs, pairs=pairs, **given)


def _interval(pairs: PairCounts, confidence: float) -> Interval:
    """Tango's, for the candidate's rate minus the control's."""
    return paired_difference_interval(
        pairs.both, pairs.only_b, pairs.only_a, pairs.neither, confidence=confidence
    )
