"""Two runs compared: every criterion, their levels shared out, what the trials took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from trialwise.errors import InvalidArgument
from trialwise.model.claim import Claim, PopulationClaim
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Decision
from trialwise.procedures.comparing.change_assessment import Assessed, assess_criterion
from trialwise.procedures.comparing.compared_amounts import amount_differences
from trialwise.procedures.comparing.comparison_findings import (
    ComparedSide,
    ComparisonFinding,
    ComparisonQuestion,
    ComparisonVerdict,
    Contrast,
    PairingSummary,
)
from trialwise.procedures.comparing.criterion_comparison import concluded, fewest_discordant
from trialwise.procedures.comparing.trial_pairing import Pairing
from trialwise.procedures.composite import combine
from trialwise.stats.multiplicity import Adjustment, adjust

__all__ = ["DEFAULT_LABELS", "compare_records", "is_side_by_side"]

DEFAULT_LABELS = ("reference", "candidate")


def compare_records(
    reference: RunRecord,
    candidate: RunRecord,
    question: ComparisonQuestion | None = None,
    *,
    labels: tuple[str, str] | None = None,
) -> ComparisonVerdict:
    """Compare two runs from their records alone, so that anybody can compare them again.

    Args:
        reference: What is known.
        candidate: What may replace it.
        question: How surely they are to be told apart, and by which margin it may lose.
        labels: What to call them; by default their contracts, where those have two names.

    Raises:
        InvalidArgument: The runs make different claims or are analysed differently.
    """
    asked = question or ComparisonQuestion()
    _check_alike(reference, candidate)
    names = _labels(reference, candidate) if labels is None else _checked(labels)
    criteria = list(
        dict.fromkeys(
            one.criterion for record in (reference, candidate) for one in record.plan.criteria
        )
    )
    assessed = [assess_criterion(name, reference, candidate, asked) for name in criteria]
    tested = [one for one in assessed if one.p_value is not None]
    adjustment = adjust(
        [one.p_value for one in tested if one.p_value is not None],
        method=asked.correction,
        alpha=asked.alpha,
    )
    findings = _findings(assessed, tested, adjustment, asked, names)
    pairings = _pairings(assessed)
    counting = [one.decision for one in findings if not one.advisory]
    decision = combine(counting) or Decision.INCONCLUSIVE
    return ComparisonVerdict(
        reference=_side(reference, names[0]),
        candidate=_side(candidate, names[1]),
        decision=decision,
        findings=findings,
        amounts=tuple(
            amount
            for pairing in pairings
            for amount in amount_differences(pairing, confidence=asked.confidence)
        ),
        pairings=tuple(one.summary for one in pairings),
        question=asked,
        analysis=reference.plan.analysis.value,
        about=_about(reference),
        multiplicity=_multiplicity(adjustment, asked),
        statement=_statement(findings, names),
        caveats=tuple(_caveats(reference, candidate, findings, [one.summary for one in pairings])),
    )


def is_side_by_side(reference: RunRecord, candidate: RunRecord) -> bool:
    """Whether `compare` made the two runs, trial by trial in turn.

    It gives both one seed and one moment of beginning, which no two separate runs share.
    """
    began = reference.verdict.started_at
    return (
        reference.plan.seed == candidate.plan.seed
        and began is not None
        and began == candidate.verdict.started_at
    )


def _check_alike(reference: RunRecord, candidate: RunRecord) -> None:
    ours, theirs = reference.plan, candidate.plan
    if ours.analysis is not theirs.analysis:
        raise InvalidArgument(
            "analysis", [str(ours.analysis), str(theirs.analysis)], "be one for both runs"
        )
    claims = [_scope(plan.claim) for plan in (ours, theirs)]
    if claims[0] != claims[1]:
        allowed = "be one for both runs: rates of different things have no difference"
        raise InvalidArgument("claim", claims, allowed)


def _scope(claim: Claim) -> tuple[str, str, str]:
    return claim.population.value, claim.population_name, claim.estimand.value


def _labels(reference: RunRecord, candidate: RunRecord) -> tuple[str, str]:
    names = reference.plan.contract, candidate.plan.contract
    return DEFAULT_LABELS if names[0] == names[1] else names


def _checked(labels: tuple[str, str]) -> tuple[str, str]:
    given: tuple[object, ...] = tuple(labels)
    match given:
        case (str(ours), str(theirs)) if ours.strip() and theirs.strip() and ours != theirs:
            return ours, theirs
    raise InvalidArgument("labels", labels, "be two different names")


def _side(record: RunRecord, label: str) -> ComparedSide:
    return ComparedSide(
        label=label,
        contract=record.plan.contract,
        run_id=record.run_id,
        seed=record.plan.seed,
        factors=record.plan.factors,
        spending=record.verdict.spending,
    )


def _findings(
    assessed: Sequence[Assessed],
    tested: Sequence[Assessed],
    adjustment: Adjustment,
    question: ComparisonQuestion,
    labels: tuple[str, str],
) -> tuple[ComparisonFinding, ...]:
    adjusted = {
        one.criterion: value for one, value in zip(tested, adjustment.adjusted, strict=True)
    }
    fewest = fewest_discordant(question.alpha, question.correction, len(tested))
    return tuple(
        concluded(one, question, adjusted=adjusted.get(one.criterion), fewest=fewest, labels=labels)
        for one in assessed
    )


def _pairings(assessed: Sequence[Assessed]) -> list[Pairing]:
    """One for every experiment, whichever of its criteria it was made for."""
    found = {one.experiment: one.pairing for one in assessed if one.pairing is not None}
    return list(found.values())


def _about(record: RunRecord) -> str:
    inputs = sum(len(one.input_ids) for one in record.plan.experiments)
    return record.plan.claim.about(inputs)


def _multiplicity(adjustment: Adjustment, question: ComparisonQuestion) -> str:
    tests = len(adjustment.p_values)
    if tests < 2:
        return ""
    level = f"{100 * question.alpha:g} %"
    if adjustment.controls == "per-test":
        together = min(1.0, tests * question.alpha)
        return (
            f"Each of {tests} criteria is tested at {level}, unadjusted: the chance of telling "
            f"equals apart somewhere is at most {100 * together:g} %."
        )
    what = (
        "the chance of telling equals apart in any of them"
        if adjustment.controls == "FWER"
        else "the expected share of equals among those told apart"
    )
    margin = (
        " The margin is shown for each at that level unadjusted, since PASS needs all of them."
        if question.margin is not None
        else ""
    )
    return (
        f"{adjustment.label} over {tests} criteria: {what} is at most {level}. "
        f"{adjustment.dependence}{margin}"
    )


def _statement(findings: Sequence[ComparisonFinding], labels: tuple[str, str]) -> str:
    counts = {kind: sum(one.contrast is kind for one in findings) for kind in Contrast}
    if len(findings) == 1:
        contrast = findings[0].contrast
        if contrast is Contrast.NOT_TOLD_APART:
            return f"{labels[1]} and {labels[0]} are not told apart."
        return f"{labels[1]} is {contrast} than {labels[0]}."
    told = [
        f"{kind} in {counts[kind]}" for kind in (Contrast.WORSE, Contrast.BETTER) if counts[kind]
    ]
    left = counts[Contrast.NOT_TOLD_APART]
    told += [f"not told apart in {left}"] if left else []
    return f"{labels[1]} against {labels[0]}: {', '.join(told)} of {len(findings)} criteria."


def _caveats(
    reference: RunRecord,
    candidate: RunRecord,
    findings: Sequence[ComparisonFinding],
    pairings: Sequence[PairingSummary],
) -> Iterator[str]:
    if not is_side_by_side(reference, candidate):
        yield (
            "The runs were made one after the other, not in turn: what changed in between, such "
            "as load or a model behind an endpoint, counts as a difference of the services."
        )
    for label, record in zip(DEFAULT_LABELS, (reference, candidate), strict=True):
        if record.verdict.aborted:
            yield f"The {label}'s run ended early: {record.verdict.aborted}"
    if any(one.margin_bound is not None for one in findings):
        yield (
            "The margin is shown by a score interval, which is approximate: with 50 pairs or more "
            "its level may be exceeded by about a fifth."
        )
    changed = _changes(reference.plan.covariates, candidate.plan.covariates)
    if changed:
        yield f"The conditions of the runs differ: {changed}."
    if any(one.pairs and not one.same_seeds for one in pairings):
        yield "The two sides of a pair had different seeds."
    claim = reference.plan.claim
    if claim.is_weighted:
        yield "The weights of the claim take no part: every pair counts alike."
    if claim.population is PopulationClaim.SUPERPOPULATION:
        yield f"The claim reaches {claim.population_name} as far as the inputs represent it."


def _changes(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    return ", ".join(
        f"{name} {ours.get(name, 'not given')} and {theirs.get(name, 'not given')}"
        for name in {**ours, **theirs}
        if ours.get(name) != theirs.get(name)
    )
