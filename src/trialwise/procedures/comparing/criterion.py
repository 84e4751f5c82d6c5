"""One criterion under both services: which test is valid for it, and what that test concludes.

A criterion is never dropped: where nothing can be tested it is in the comparison all the same,
not told apart, with the reason.
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
from trialwise.model.verdict import Decision
from trialwise.procedures.comparing.evidence import (
    Evidence,
    anytime_evidence,
    exact_evidence,
    input_evidence,
    unpaired_evidence,
)
from trialwise.procedures.comparing.findings import (
    ComparisonFinding,
    ComparisonQuestion,
    Contrast,
)
from trialwise.procedures.comparing.pairing import Pair, Pairing, pair_trials
from trialwise.stats.multiplicity import Correction
from trialwise.stats.paired import minimum_discordant

__all__ = ["Assessed", "assess_criterion", "concluded", "fewest_discordant"]


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


def concluded(
    assessed: Assessed,
    question: ComparisonQuestion,
    *,
    adjusted: float | None,
    fewest: int,
    labels: tuple[str, str],
) -> ComparisonFinding:
    """The finding, once the p-values of all criteria were adjusted together.

    Args:
        assessed: The criterion's evidence.
        question: How surely the two are to be told apart.
        adjusted: Its p-value among those of the other criteria; None where nothing was tested.
        fewest: With fewer discordant pairs nothing could be told apart.
        labels: Of the reference and the candidate.
    """
    found = assessed.evidence
    contrast = _contrast(found, adjusted, question)
    return ComparisonFinding(
        criterion=assessed.criterion,
        experiment=assessed.experiment,
        contrast=contrast,
        decision=_decision(contrast, assessed, question),
        decision_rule=found.rule,
        reference=found.reference,
        candidate=found.candidate,
        pairs=found.pairs,
        inputs_won=found.inputs_won,
        inputs_lost=found.inputs_lost,
        p_value=found.p_value,
        adjusted_p_value=adjusted,
        difference=found.difference,
        interval=found.interval,
        margin_bound=found.margin_bound,
        statement=_statement(assessed, contrast, question, fewest, labels),
        caveats=(
            *(f"Advisory: {reason}." for reason in assessed.advisory),
            *assessed.caveats,
            *_disagreement(assessed, contrast),
        ),
        advisory=assessed.advisory,
    )


def fewest_discordant(alpha: float, correction: Correction, criteria: int) -> int:
    """The fewest discordant pairs with which any of several criteria could be told apart.

    >>> fewest_discordant(0.05, "holm", 1), fewest_discordant(0.05, "holm", 3)
    (6, 7)
    """
    match correction:
        case "holm" | "bonferroni":
            level = alpha / max(1, criteria)
        case "by":
            level = alpha / sum(1 / k for k in range(1, max(1, criteria) + 1))
        case "none" | "bh":
            level = alpha
    return minimum_discordant(level)


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


# --- The test ---------------------------------------------------------------------------------


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


# --- The conclusion ---------------------------------------------------------------------------


def _contrast(found: Evidence, adjusted: float | None, question: ComparisonQuestion) -> Contrast:
    if adjusted is None or adjusted > question.alpha:
        return Contrast.NOT_TOLD_APART
    return Contrast.BETTER if found.favours_candidate else Contrast.WORSE


def _decision(contrast: Contrast, assessed: Assessed, question: ComparisonQuestion) -> Decision:
    if contrast is Contrast.BETTER or _is_noninferior(assessed, question):
        return Decision.PASS
    return Decision.FAIL if contrast is Contrast.WORSE else Decision.INCONCLUSIVE


def _is_noninferior(assessed: Assessed, question: ComparisonQuestion) -> bool:
    found = assessed.evidence
    if assessed.obstacle or found.margin_bound is None or question.margin is None:
        return False
    return found.margin_bound > -question.margin


def _statement(
    assessed: Assessed,
    contrast: Contrast,
    question: ComparisonQuestion,
    fewest: int,
    labels: tuple[str, str],
) -> str:
    found = assessed.evidence
    if assessed.obstacle:
        return f"Not told apart: {assessed.obstacle}."
    head = "Not told apart" if contrast is Contrast.NOT_TOLD_APART else f"{labels[1]} is {contrast}"
    parts = [f"{head}: {_counts(found, labels)}."]
    if contrast is Contrast.NOT_TOLD_APART:
        parts += _still_possible(found, fewest)
    if contrast is not Contrast.BETTER and found.margin_bound is not None:
        parts.append(_margin_words(found.margin_bound, question, assessed))
    return " ".join(parts)


def _counts(found: Evidence, labels: tuple[str, str]) -> str:
    if found.inputs_won is not None and found.inputs_lost is not None:
        decided = found.inputs_won + found.inputs_lost
        return (
            f"of {decided} inputs that one of the two passed more often, it won {found.inputs_won}"
        )
    if found.pairs is None:
        ours, theirs = found.reference, found.candidate
        assert ours is not None
        assert theirs is not None
        return (
            f"{theirs.passed} of {theirs.trials} passed with {labels[1]}, "
            f"{ours.passed} of {ours.trials} with {labels[0]}"
        )
    decided, won = found.pairs.discordant, found.pairs.only_b
    if not decided:
        return f"both passed or both failed in each of {found.pairs.pairs} pairs"
    return (
        f"of {decided} pairs in which exactly one passed, {labels[1]} won {won} and lost "
        f"{decided - won}"
    )


def _still_possible(found: Evidence, fewest: int) -> Iterator[str]:
    discordant = found.discordant
    if discordant is not None and discordant < fewest:
        yield (
            f"Not even winning all {discordant} of them could have told the two apart: that takes "
            f"at least {fewest}."
            if discordant
            else f"It takes at least {fewest} pairs that differ to tell the two apart."
        )
    if found.interval is not None:
        low, high = found.interval
        yield f"A difference from {_points(low)} to {_points(high)} points is not ruled out."


def _margin_words(bound: float, question: ComparisonQuestion, assessed: Assessed) -> str:
    assert question.margin is not None
    margin = f"{100 * question.margin:g} points"
    if _is_noninferior(assessed, question):
        return f"It loses less than the margin of {margin} (at worst {_points(bound)} points)."
    return (
        f"That it loses less than the margin of {margin} is not shown (it may be as low as "
        f"{_points(bound)} points)."
    )


def _points(difference: float) -> str:
    return f"{100 * difference:+.1f}".replace("-", "−")


# --- What qualifies it ------------------------------------------------------------------------


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


def _disagreement(assessed: Assessed, contrast: Contrast) -> Iterator[str]:
    """An interval and a test may disagree; then only the test decides."""
    found = assessed.evidence
    if found.interval is None or assessed.p_value is None:
        return
    told = contrast is not Contrast.NOT_TOLD_APART
    if told is (0.0 not in found.interval):
        return
    if told:
        yield "The interval reaches 0, but it is approximate: the exact test decides."
    else:
        yield (
            "The interval of this criterion alone leaves out 0, but it is approximate and not "
            "adjusted for the other criteria: the test decides."
        )
