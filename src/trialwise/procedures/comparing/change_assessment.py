"""One criterion's evidence under both services: which test is valid for it, and what it says.

Apart from what it concludes, since that takes the evidence of all other criteria too. A criterion
is never dropped: where nothing can be tested it is in the comparison all the same, not told apart,
with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trialwise.model.claim import Claim, PopulationClaim
from trialwise.model.evidence import StopReason
from trialwise.model.options import Analysis
from trialwise.model.run import RunRecord
from trialwise.model.tally import Tally
from trialwise.model.trial import Trial
from trialwise.procedures.comparing.comparison_evidence import (
    Evidence,
    anytime_evidence,
    exact_evidence,
    input_evidence,
    unpaired_evidence,
)
from trialwise.procedures.comparing.comparison_findings import ComparisonQuestion
from trialwise.procedures.comparing.trial_pairing import Pair, Pairing, pair_trials

__all__ = ["Assessed", "assess_criterion"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessed:
    """A criterion's evidence before the other criteria's is known."""

    criterion: str
    experiment: str = ""
    evidence: Evidence
    pairing: Pairing | None = None
    obstacle: str = ""
    """Why no difference can be concluded, whatever the numbers are."""
    caveats: tuple[str, ...] = ()
    advisory: tuple[str, ...] = ()

    @property
    def p_value(self) -> float | None:
        """Of a test that may tell the two apart."""
        return None if self.obstacle else self.evidence.p_value


def assess_criterion(
    name: str,
    reference: RunRecord,
    candidate: RunRecord,
    question: ComparisonQuestion,
) -> Assessed:
    """What the two runs' trials say of one criterion.

    Args:
        name: The criterion's.
        reference: The run of A.
        candidate: The run of B.
        question: How surely they are to be told apart.
    """
    ours, theirs = _experiment(reference, name), _experiment(candidate, name)
    if ours is None or theirs is None:
        return _one_sided(name, reference, candidate)
    pairing = pair_trials(reference, candidate, (ours, theirs))
    evidence, obstacle = _evidence(name, pairing, reference, candidate, question)
    structures = (reference.plan.structure.get(name), candidate.plan.structure.get(name))
    if structures[0] != structures[1]:
        obstacle = "its postconditions differ between the two runs: these are two criteria"
    return Assessed(
        criterion=name,
        experiment=ours,
        evidence=evidence,
        pairing=pairing,
        obstacle=obstacle,
        caveats=tuple(_caveats(name, pairing, evidence, reference.plan.analysis)),
        advisory=_advisory(name, reference, candidate),
    )


def _advisory(name: str, *records: RunRecord) -> tuple[str, ...]:
    """Why it can only advise, where it rests on a judge whose errors nobody knows."""
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


def _one_sided(name: str, reference: RunRecord, candidate: RunRecord) -> Assessed:
    """A criterion that only one of the runs has."""
    tallies: list[Tally | None] = []
    for record in (reference, candidate):
        experiment = _experiment(record, name)
        mine = [trial for trial in record.trials if trial.experiment == experiment]
        leaves_out = record.plan.analysis is Analysis.PER_PROTOCOL
        tallies.append(_tally(name, mine, leaves_out=leaves_out) if experiment else None)
    which = "candidate" if tallies[0] is None else "reference"
    return Assessed(
        criterion=name,
        experiment=_experiment(reference, name) or _experiment(candidate, name) or "",
        evidence=Evidence(reference=tallies[0], candidate=tallies[1]),
        obstacle=f"only the {which}'s run has this criterion",
    )


def _evidence(
    name: str,
    pairing: Pairing,
    reference: RunRecord,
    candidate: RunRecord,
    question: ComparisonQuestion,
) -> tuple[Evidence, str]:
    """The evidence by the valid test, and what keeps it from telling the two apart, if anything."""
    claim = reference.plan.claim
    leaves_out = reference.plan.analysis is Analysis.PER_PROTOCOL
    pairs = [
        pair
        for pair in pairing.pairs
        if not (pair.is_unjudged(name) or (leaves_out and pair.is_excused))
    ]
    obstacle = _obstacle(pairing, claim)
    if not pairs:
        ours = _tally(name, pairing.reference, leaves_out=leaves_out)
        theirs = _tally(name, pairing.candidate, leaves_out=leaves_out)
        summary = pairing.summary
        if summary.fixed_size and not summary.same_inputs and ours.trials and theirs.trials:
            other = _unattributed(pairing, claim, candidate.plan.claim)
            return unpaired_evidence(ours, theirs, question), obstacle or other
        counts = Evidence(reference=ours, candidate=theirs)
        return counts, obstacle or "no pair is left to compare"
    outcomes = [_passed(name, pair) for pair in pairs]
    if not pairing.summary.fixed_size:
        return anytime_evidence(outcomes, question), obstacle
    if claim.population is PopulationClaim.SUPERPOPULATION and pairing.repeats:
        return input_evidence(outcomes, [one.reference.input_id for one in pairs]), obstacle
    return exact_evidence(outcomes, question), obstacle


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


def _unattributed(pairing: Pairing, ours: Claim, theirs: Claim) -> str:
    """Whether a difference between runs on different inputs can be the services'."""
    one_population = (
        ours.population is theirs.population is PopulationClaim.SUPERPOPULATION
        and ours.population_name == theirs.population_name
    )
    if not one_population:
        return "the inputs of the two runs differ, so that a difference may be theirs"
    repeated = any(
        len({trial.input_id for trial in trials}) < len(trials)
        for trials in (pairing.reference, pairing.candidate)
    )
    return "inputs were repeated: no unpaired test about a population is left" if repeated else ""


def _tally(name: str, trials: Sequence[Trial], *, leaves_out: bool) -> Tally:
    counted = [
        trial
        for trial in trials
        if not (trial.is_unjudged(trial.outcome(name)) or (leaves_out and trial.is_excused))
    ]
    passed = sum(trial.outcome(name).passed for trial in counted)
    return Tally(trials=len(counted), passed=passed)


def _passed(name: str, pair: Pair) -> tuple[bool, bool]:
    return pair.reference.outcome(name).passed, pair.candidate.outcome(name).passed


def _caveats(name: str, pairing: Pairing, evidence: Evidence, analysis: Analysis) -> Iterator[str]:
    summary = pairing.summary
    if evidence.rule == "paired/anytime-bet":
        yield (
            "A run ended before its planned size or because of what it saw, so that a test which "
            f"no stopping biases decides, on the first {summary.pairs} pairs; its interval only "
            "describes."
        )
    elif summary.pairs and any(summary.left_out):
        yield (
            f"{summary.left_out[0]} trials of the reference and {summary.left_out[1]} of the "
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
    if analysis is Analysis.PER_PROTOCOL:
        yield f"{summary.excused} pairs hold a trial without a fair chance and are left out."
        return
    fair = [
        _passed(name, pair)
        for pair in pairing.pairs
        if not (pair.is_excused or pair.is_unjudged(name))
    ]
    won, lost = fair.count((False, True)), fair.count((True, False))
    yield (
        f"{summary.excused} pairs hold a trial that never had a fair chance and counts as a "
        f"failure; without them the candidate won {won} and lost {lost}."
    )
