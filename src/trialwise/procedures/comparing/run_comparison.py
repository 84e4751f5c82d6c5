"""Arms compared: what each criterion concludes beside the others, and what trials took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields

from trialwise.errors import InvalidArgument
from trialwise.model.claim import Claim, PopulationClaim, SamplingMode
from trialwise.model.evidence import StopReason
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Decision
from trialwise.procedures.comparing.amount_findings import find_amounts
from trialwise.procedures.comparing.answer_sentences import answer_question
from trialwise.procedures.comparing.change_assessment import (
    Assessed,
    assess_criterion,
    collect_pairings,
)
from trialwise.procedures.comparing.comparison_findings import (
    ArmRun,
    ComparedArm,
    ComparisonFinding,
    ComparisonQuestion,
    ComparisonVerdict,
    PairingSummary,
    ValidityCheck,
)
from trialwise.procedures.comparing.criterion_conclusion import (
    conclude_criterion,
    fewest_discordant,
)
from trialwise.procedures.comparing.pair_following import TestRules
from trialwise.procedures.comparing.preference_evidence import (
    PreferenceVotes,
    assess_preference,
    describe_preference,
)
from trialwise.procedures.comparing.validity_checks import (
    check_validity,
    state_checks,
    withhold_verdicts,
)
from trialwise.procedures.composite import combine
from trialwise.stats.multiplicity import Correction, adjust


def adjust_family(
    p_values: Sequence[float], *, method: Correction, alpha: float
) -> tuple[float, ...]:
    """Return the smallest level of all tests together at which each one states something.

    Args:
        p_values: Of each test: twice the p-value of the side that it speaks for.
        method: How the tests share the level.
        alpha: The level.

    >>> adjust_family([0.01, 0.02], method="holm", alpha=0.05)
    (0.02, 0.03)
    """
    if method != "holm":
        return adjust(p_values, method=method, alpha=alpha).adjusted
    # The other side of each test states nothing; as 1 it only takes its place in the family.
    sides = [*(one / 2 for one in p_values), *(1.0 for _ in p_values)]
    return adjust(sides, method=method, alpha=alpha).adjusted[: len(p_values)]


def state_family(p_values: Sequence[float], question: ComparisonQuestion) -> str:
    """Return the sentence that says what the tests guarantee together; none for a single test.

    Args:
        p_values: Of all tests.
        question: Its level and correction.
    """
    tests = len(p_values)
    if tests < 2:
        return ""
    found = adjust(p_values, method=question.correction, alpha=question.alpha)
    level = f"{100 * question.alpha:g} %"
    if found.controls == "per-test":
        together = min(1.0, tests * question.alpha)
        return (
            f"Each of {tests} tests is made at {level}, unadjusted: the chance of a wrong "
            f"statement somewhere is at most {100 * together:g} %."
        )
    what = (
        "the chance of any wrong statement"
        if found.controls == "FWER"
        else "the expected share of equals among those told apart"
    )
    return f"{found.label} over {tests} tests: {what} is at most {level}. {found.dependence}"


DEFAULT_LABELS = ("control", "candidate")


def compare_records(
    arms: Sequence[ArmRun],
    question: ComparisonQuestion | None = None,
    rules: TestRules | None = None,
    preferences: Sequence[PreferenceVotes] = (),
) -> ComparisonVerdict:
    """Compare arms from the records of their runs alone, so that anybody can compare them again.

    Args:
        arms: Two or more; the first is the control.
        question: What is asked, and how surely it is to be answered.
        rules: The rules that the runs were made by; None where their sizes were fixed.
        preferences: What a judge preferred in each pair of replies, for every two arms.

    Raises:
        InvalidArgument: The runs make different claims or are analysed differently.
    """
    asked = question or ComparisonQuestion()
    if len(arms) < 2:
        raise InvalidArgument("arms", [one.label for one in arms], "be at least two")
    control = arms[0].record
    for arm in arms[1:]:
        _check_alike(control, arm.record)
    assessed = [
        assess_criterion(
            name, first, second, asked, (rules or {}).get((first.label, second.label, name))
        )
        for first, second in asked.couple_arms(arms)
        for name in _list_criteria(first.record, second.record)
    ]
    pairings = collect_pairings(assessed)
    assessed += [assess_preference(one, asked) for one in preferences]
    _check_guardrails(assessed, asked)
    checks = check_validity(pairings, control.plan.analysis)
    assessed = withhold_verdicts(assessed, checks)
    # What only advises is no part of the family: it changes no other test, and none changes it.
    tested = [one for one in assessed if one.p_value is not None and not one.advisory]
    p_values = [one.p_value for one in tested if one.p_value is not None]
    levels = adjust_family(p_values, method=asked.correction, alpha=asked.alpha)
    adjusted = {id(one): one.p_value for one in assessed if one.advisory}
    adjusted |= {id(one): value for one, value in zip(tested, levels, strict=True)}
    fewest = fewest_discordant(asked.alpha, asked.correction, len(tested))
    findings = tuple(
        conclude_criterion(one, asked, adjusted=adjusted.get(id(one)), fewest=fewest)
        for one in assessed
    )
    found = find_amounts(arms, assessed, asked)
    counting = [one for one in findings if not one.advisory]
    return ComparisonVerdict(
        arms=tuple(map(_describe_arm, arms)),
        decision=combine(one.decision for one in counting) or Decision.INCONCLUSIVE,
        findings=findings,
        **{one.name: getattr(found, one.name) for one in fields(found)},
        pairings=tuple(one.summary for one in pairings),
        checks=checks,
        preferences=tuple(describe_preference(one, asked) for one in preferences),
        question=asked,
        analysis=control.plan.analysis.value,
        about=_about(control),
        multiplicity=state_family(p_values, asked),
        statement=_state_loss(arms)
        or state_checks(checks)
        or answer_question(counting or findings, asked, [one.label for one in arms])
        + _name_advisory(findings),
        caveats=tuple(_caveats(arms, [one.summary for one in pairings], checks)),
    )


def _name_advisory(findings: Sequence[ComparisonFinding]) -> str:
    """Return the end of the first line, where a criterion does not count in the verdict."""
    names = list(dict.fromkeys(one.criterion for one in findings if one.advisory))
    if not names:
        return ""
    return f" {', '.join(names)}: only {'advises' if len(names) == 1 else 'advise'}."


def name_arms(
    records: Sequence[RunRecord], labels: Sequence[str] | None = None
) -> tuple[ArmRun, ...]:
    """Give runs the labels by which a comparison speaks of them.

    Args:
        records: The control's run first.
        labels: One for each; their contracts unless given, where those have different names.
    """
    if labels is None:
        names = label_contracts([record.plan.contract for record in records])
    else:
        names = check_labels(labels, len(records))
    return tuple(ArmRun(name, record) for name, record in zip(names, records, strict=True))


def _state_loss(arms: Sequence[ArmRun]) -> str:
    """Return why an arm could not be measured; nothing where all arms were."""
    lost = [arm for arm in arms if arm.record.verdict.stop is StopReason.ERROR_RATE]
    return (
        f"{lost[0].label} could not be measured: {lost[0].record.verdict.aborted}" if lost else ""
    )


def _list_criteria(*records: RunRecord) -> list[str]:
    every = (one.criterion for record in records for one in record.plan.criteria)
    return list(dict.fromkeys(every))


def _check_guardrails(assessed: Sequence[Assessed], asked: ComparisonQuestion) -> None:
    known = dict.fromkeys(one.criterion for one in assessed)
    for name in asked.guardrails:
        if name not in known:
            raise InvalidArgument("guardrails", name, f"name a criterion: {', '.join(known)}")


def is_side_by_side(control: RunRecord, candidate: RunRecord) -> bool:
    """Return whether `compare` made the two runs, trial by trial in turn.

    It gives both one seed and one moment of beginning, which no two separate runs share.
    """
    began = control.verdict.started_at
    return (
        control.plan.seed == candidate.plan.seed
        and began is not None
        and began == candidate.verdict.started_at
    )


def _check_alike(control: RunRecord, candidate: RunRecord) -> None:
    ours, theirs = control.plan, candidate.plan
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


def label_contracts(contracts: Sequence[str]) -> tuple[str, ...]:
    """Return what to call arms: their contracts, where those have different names.

    >>> label_contracts(["old", "new"]), label_contracts(["agent", "agent"])
    (('old', 'new'), ('control', 'candidate'))
    """
    names = tuple(contracts)
    if len(set(names)) == len(names):
        return names
    if len(names) == 2:
        return DEFAULT_LABELS
    return ("control", *(f"candidate {place}" for place in range(1, len(names))))


def check_labels(labels: Sequence[object], arms: int) -> tuple[str, ...]:
    """Return labels that are different names, one for each arm.

    Args:
        labels: As somebody gave them.
        arms: How many arms there are.

    Raises:
        InvalidArgument: They are not.
    """
    given = tuple(one for one in labels if isinstance(one, str) and one.strip())
    if isinstance(labels, str) or not len(labels) == len(given) == len(set(given)) == arms:
        number = "two" if arms == 2 else str(arms)
        raise InvalidArgument("labels", labels, f"be {number} different names")
    return given


def _describe_arm(arm: ArmRun) -> ComparedArm:
    plan = arm.record.plan
    return ComparedArm(
        label=arm.label,
        contract=plan.contract,
        run_id=arm.record.run_id,
        seed=plan.seed,
        factors=plan.factors,
        spending=arm.record.verdict.spending,
    )


def _about(record: RunRecord) -> str:
    inputs = sum(len(one.input_ids) for one in record.plan.experiments)
    return record.plan.claim.about(inputs)


def _caveats(
    arms: Sequence[ArmRun], pairings: Sequence[PairingSummary], checks: Sequence[ValidityCheck]
) -> Iterator[str]:
    control = arms[0].record
    if not all(is_side_by_side(control, one.record) for one in arms[1:]):
        yield (
            "The runs were made one after the other, not in turn: what changed in between, such "
            "as load or a model behind an endpoint, counts as a difference of the services."
        )
    yield from (one.statement for one in checks if one.name == "same cases" and not one.holds)
    for arm in arms:
        if arm.record.verdict.aborted:
            yield f"The run of {arm.label} ended early: {arm.record.verdict.aborted}"
    for arm in arms[1:]:
        changed = _changes(control.plan.covariates, arm.record.plan.covariates)
        if changed:
            yield f"The conditions of the runs differ: {changed}."
    is_known = all(
        one.sampling_mode is not SamplingMode.EXTERNALLY_SUPPLIED
        for arm in arms
        for one in arm.record.plan.experiments
    )
    if is_known and any(one.pairs and not one.same_seeds for one in pairings):
        yield "The two sides of a pair had different seeds."
    claim = control.plan.claim
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
