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
- A claim about a population whose inputs were repeated: inputs are the units, by their net wins.
- No pairs: Boschloo's test in both directions, on all trials of the two runs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from trialwise.errors import InvalidArgument
from trialwise.model.claim import Claim, PopulationClaim
from trialwise.model.evidence import StopReason
from trialwise.model.run import RunRecord
from trialwise.model.tally import Tally
from trialwise.model.trial import Analysis, Trial
from trialwise.procedures.comparing.comparison_findings import (
    ArmRun,
    ComparisonQuestion,
    Evidence,
)
from trialwise.procedures.comparing.pair_evidence import (
    answer_by_direction,
    weigh_followed_pairs,
    weigh_inputs,
    weigh_planned_pairs,
    weigh_stopped_pairs,
)
from trialwise.procedures.comparing.trial_pairing import Pair, Pairing, pair_trials
from trialwise.stats.paired_questions import list_limits
from trialwise.stats.paired_rules import PairedRule
from trialwise.stats.result_types import Interval
from trialwise.stats.unconditional import boschloo
from trialwise.stats.unpaired_difference import bound_unpaired_difference, find_margin_p_value


def weigh_unpaired(
    control: Tally, candidate: Tally, question: ComparisonQuestion, criterion: str = ""
) -> Evidence:
    """Return the exact test of two separate runs, with its interval.

    Args:
        control: What was counted of the control.
        candidate: What was counted of the candidate.
        question: What is asked.
        criterion: Of which criterion.

    >>> found = weigh_unpaired(
    ...     Tally(trials=10, passed=1), Tally(trials=10, passed=9), ComparisonQuestion()
    ... )
    >>> found.favours_candidate, found.p_value < 0.01, found.interval.low > 0
    (True, True, True)
    """
    asked, margin = question.of_criterion(criterion)
    ours, theirs = (control.passed, control.trials), (candidate.passed, candidate.trials)
    alpha = question.alpha
    if margin:
        above = [find_margin_p_value(*ours, *theirs, limit=t) for t in (-margin, 0.0, margin)]
        below = [find_margin_p_value(*theirs, *ours, limit=-t) for t in (-margin, 0.0, margin)]
        limits = (-margin, 0.0, margin)
        up, down = dict(zip(limits, above, strict=True)), dict(zip(limits, below, strict=True))
        passing, failing = list_limits(asked, margin)
        if question.edition > 1 and asked == "equivalent":
            # The two ways to a FAIL share its error.
            up[margin], down[-margin] = 2 * up[margin], 2 * down[-margin]
        p_pass = max(*(up[t] for t in passing[0]), *(down[t] for t in passing[1]), 0.0)
        p_fail = min(*(up[t] for t in failing[0]), *(down[t] for t in failing[1]), 1.0)
    else:
        p_fail = boschloo(*ours, *theirs).p_value
        p_pass = boschloo(*theirs, *ours).p_value
        up, down = {0.0: p_pass}, {0.0: p_fail}
    passes = p_pass < p_fail or 2 * p_pass <= alpha
    interval = bound_unpaired_difference(*ours, *theirs, alpha=alpha)
    return Evidence(
        control=control,
        candidate=candidate,
        decision_rule="unpaired/margin-exact" if margin else "unpaired/boschloo",
        p_value=min(1.0, 2 * (p_pass if passes else p_fail)),
        favours_candidate=theirs[0] * ours[1] > ours[0] * theirs[1],
        favours_pass=passes,
        interval=_agree(interval, up, down, alpha / 2),
    )


def _agree(
    interval: Interval, up: dict[float, float], down: dict[float, float], level: float
) -> Interval:
    """Return the interval with ends on that side of each limit on which the tests place it."""
    low, high = interval
    for limit, p_value in up.items():
        shown = p_value <= level
        low = max(low, math.nextafter(limit, 2)) if shown else min(low, limit)
    for limit, p_value in down.items():
        shown = p_value <= level
        high = min(high, math.nextafter(limit, -2)) if shown else max(high, limit)
    return Interval(low, high, confidence=interval.confidence, method=interval.method)


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
        for reason in one.standing.advisory
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
        if summary.fixed_size and ours.trials and theirs.trials:
            other = _explain_unattributable(pairing, claim, candidate.plan.claim)
            return weigh_unpaired(ours, theirs, question, name), obstacle or other
        counts = Evidence(control=ours, candidate=theirs)
        return counts, obstacle or "no pair is left to compare: run both with `compare`"
    outcomes = [_find_outcomes(name, pair) for pair in pairs]
    if rule is not None:
        return weigh_followed_pairs(outcomes, rule, ran_all=pairing.summary.fixed_size), obstacle
    if not pairing.summary.fixed_size:
        return weigh_stopped_pairs(outcomes, question), obstacle
    if claim.population is PopulationClaim.SUPERPOPULATION and pairing.repeats:
        return weigh_inputs(outcomes, [one.control.input_id for one in pairs]), obstacle
    return _weigh_planned(name, outcomes, question, obstacle)


def _weigh_planned(
    name: str, outcomes: Sequence[tuple[bool, bool]], question: ComparisonQuestion, obstacle: str
) -> tuple[Evidence, str]:
    """Return the exact test of a planned number; only counts where there are too few pairs."""
    try:
        return weigh_planned_pairs(outcomes, question, name), obstacle
    except InvalidArgument as refused:
        counts = weigh_stopped_pairs(outcomes, question)
        few = f"{len(outcomes)} pairs are too few. Their number must {refused.allowed}"
        return replace(counts, decision_rule=None, p_value=None), obstacle or few


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
            "them keeps its level. Run both with `compare`, or each with `trials` and "
            "`curtail: false`"
        )
    if claim.population is PopulationClaim.SUPERPOPULATION and pairing.repeats:
        return "a run ended early, and its inputs were repeated: no test about a population is left"
    return ""


def _explain_unattributable(pairing: Pairing, ours: Claim, theirs: Claim) -> str:
    """Return why a difference between trials that are not paired may not be the services'."""
    if pairing.summary.same_inputs:
        first, second = (
            Counter(one.input_id for one in trials)
            for trials in (pairing.control, pairing.candidate)
        )
        sizes = first.total(), second.total()
        if all(first[one] * sizes[1] == second[one] * sizes[0] for one in first | second):
            return ""
        return (
            "the trials cannot be paired, and the inputs were not tried equally often in both. "
            "Name each trial in a field `trial`, or try every input equally often"
        )
    one_population = (
        ours.population is theirs.population is PopulationClaim.SUPERPOPULATION
        and ours.population_name == theirs.population_name
    )
    if not one_population:
        return (
            "the inputs of the two runs differ, so that a difference may be theirs. Run both on "
            "the same inputs: `compare` does"
        )
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
    if pairing.from_files and not summary.pairs and summary.same_inputs:
        yield (
            "The trials are not paired: the files do not say which of them belong together. A "
            "field `trial` with the same values in both files does."
        )
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
