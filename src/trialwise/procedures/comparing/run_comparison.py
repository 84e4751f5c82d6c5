"""Two runs compared: what each criterion concludes beside the others, and what trials took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields

from trialwise.errors import InvalidArgument
from trialwise.model.claim import Claim, PopulationClaim
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Decision
from trialwise.procedures.comparing.change_assessment import Assessed, assess_criterion
from trialwise.procedures.comparing.comparison_findings import (
    ComparedSide,
    ComparisonFinding,
    ComparisonQuestion,
    ComparisonVerdict,
    Contrast,
    Evidence,
    PairingSummary,
)
from trialwise.procedures.comparing.trial_pairing import Pairing, amount_differences
from trialwise.procedures.composite import combine
from trialwise.stats.multiplicity import Adjustment, Correction, adjust
from trialwise.stats.paired import minimum_discordant

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
    names = _labels(reference, candidate) if labels is None else _check_labels(labels)
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
        statement=_state_verdict(findings, names),
        caveats=tuple(_caveats(reference, candidate, findings, [one.summary for one in pairings])),
    )


def is_side_by_side(reference: RunRecord, candidate: RunRecord) -> bool:
    """Return whether `compare` made the two runs, trial by trial in turn.

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


def _check_labels(labels: tuple[str, str]) -> tuple[str, str]:
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
        conclude_criterion(
            one, question, adjusted=adjusted.get(one.criterion), fewest=fewest, labels=labels
        )
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


def _state_verdict(findings: Sequence[ComparisonFinding], labels: tuple[str, str]) -> str:
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


def conclude_criterion(
    assessed: Assessed,
    question: ComparisonQuestion,
    *,
    adjusted: float | None,
    fewest: int,
    labels: tuple[str, str],
) -> ComparisonFinding:
    """Return the finding, once the p-values of all criteria were adjusted together.

    Args:
        assessed: The criterion's evidence.
        question: How surely the two are to be told apart.
        adjusted: Its p-value among those of the other criteria; None where nothing was tested.
        fewest: With fewer discordant pairs nothing could be told apart.
        labels: The labels of the reference and the candidate.
    """
    found = assessed.evidence
    contrast = _contrast(found, adjusted, question)
    return ComparisonFinding(
        **{field.name: getattr(found, field.name) for field in fields(found)},
        criterion=assessed.criterion,
        experiment=assessed.experiment,
        contrast=contrast,
        decision=_decision(contrast, assessed, question),
        adjusted_p_value=adjusted,
        statement=_state_finding(assessed, contrast, question, fewest, labels),
        caveats=(
            *(f"Advisory: {reason}." for reason in assessed.advisory),
            *assessed.caveats,
            *_disagreement(assessed, contrast),
        ),
        advisory=assessed.advisory,
    )


def fewest_discordant(alpha: float, correction: Correction, criteria: int) -> int:
    """Return the fewest discordant pairs with which any of several criteria could be told apart.

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


def _state_finding(
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
