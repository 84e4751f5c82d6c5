"""The chances of contracts and suites, put together from the characteristics of their criteria.

A contract PASSes only if every part of it does. If one of them is bad, it passes with at most the
largest single error (an intersection-union test), however many parts there are. A FAIL although
everything is good needs one wrong FAIL: at most the sum of the single errors, whatever their
dependence.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

from trialwise.documents.numbers import as_probability
from trialwise.model.claim import Intent
from trialwise.model.plan import CriterionPlan, JointErrors, Plan
from trialwise.model.verdict import Decision, Finding, Verdict
from trialwise.procedures import characteristic
from trialwise.procedures.characteristic import Chance, Characteristic
from trialwise.procedures.families import describe_looks
from trialwise.procedures.latency import PROCEDURE as LATENCY
from trialwise.procedures.registry import find_procedure


def characterize(plan: CriterionPlan, intent: Intent = Intent.VERIFICATION) -> Characteristic:
    """Return how the rule of one criterion decides, or of each of its inputs.

    Args:
        plan: How it is decided.
        intent: Its intent, or that of the run.
    """
    return find_procedure(plan.procedure).characterize(plan, intent)


@dataclass(frozen=True, slots=True)
class Uncounted:
    """A part of a contract whose error no number limits."""

    name: str
    reason: str
    """What follows the name in a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBound:
    """How often contracts that are decided together are wrong in one way."""

    # The names are those of the JSON report, which holds bounds as they are.
    error: str
    """`wrong-pass` or `wrong-fail`."""
    levels: int
    """How many decisions are counted; every input where each is decided."""
    raw: float | None
    """The largest single error of a PASS, the sum of the single errors of a FAIL, as achieved.

    None where nothing is counted, or where the sum is 1 or more and says nothing.
    """
    at_least: float | None
    """The largest single error, where the sum says nothing: it happens at least so often."""
    is_exact: bool
    """Whether it is the error of the only part, computed; otherwise it is a bound."""
    counted: tuple[str, ...]
    not_counted: tuple[Uncounted, ...]
    """The parts whose error is not known or depends on something else, with the reason."""

    @property
    def deciding(self) -> tuple[Uncounted, ...]:
        """The parts that are not counted and have a part in the verdict."""
        return tuple(one for one in self.not_counted if one.reason not in (ADVISES, REPORTED))

    @property
    def is_joint(self) -> bool:
        """Whether several parts decide together."""
        return self.levels + len(self.deciding) > 1

    @property
    def chance(self) -> str:
        """The probability, and whether it is a bound; empty where nothing is counted."""
        if self.raw is not None:
            return f"{'' if self.is_exact else 'at most '}{as_probability(self.raw)} of runs"
        return "" if self.at_least is None else f"at least {as_probability(self.at_least)} of runs"


#: Why a part is not counted that has no part in the verdict.
ADVISES, REPORTED = "only advises", "only reported"


class Part(NamedTuple):
    """One part of a contract that can be decided wrongly, or why that is not counted."""

    name: str
    characteristic: Characteristic
    streams: int = 1
    """How many inputs are decided on their own."""


def list_parts(plan: Plan) -> Iterator[Part]:
    """List the parts of a contract that take part in its verdict, and those that do not."""
    for one in plan.criteria:
        if one.standing.advisory and one.standing.reported_at is None:
            yield Part(one.criterion, _leave_out(ADVISES))
        else:
            found = characterize(one, plan.intent_of(one))
            yield Part(one.criterion, _correct(found, one, plan), _count_streams(one, plan))
    for limit in plan.latency:
        found = LATENCY.characterize(limit, plan) if limit.enforced else _leave_out(ADVISES)
        yield Part(f"latency {limit.percentile}", found)
    for gate in plan.gates:
        if gate.expect:
            from trialwise.procedures.gates import PROCEDURE as GATES

            yield Part(gate.name, GATES.characterize(gate))


def _count_streams(criterion: CriterionPlan, plan: Plan) -> int:
    """Count how often a criterion is decided: once, or once for each input."""
    if not criterion.counting.each_input:
        return 1
    of = (len(one.input_ids) for one in plan.experiments if one.name == criterion.experiment)
    return next(of, 1)


def _leave_out(reason: str) -> Characteristic:
    return Characteristic(uncounted=dict.fromkeys(Decision, reason))


def _correct(found: Characteristic, criterion: CriterionPlan, plan: Plan) -> Characteristic:
    """Return the errors of a criterion that is corrected together with others.

    If all rates are as required, each method makes any wrong FAIL with at most the sum of the split
    levels. Where a contract PASSes whole, the last step of all methods but Bonferroni's compares
    with the level of all decisions of the contract.
    """
    if plan.correction == "none" or plan.family_size < 2:
        return found
    is_split = criterion.others.uncorrected is not None or criterion.counting.stops_early
    parts = 1 if is_split else plan.family_size
    ranked = sum(_count_streams(one, plan) for one in plan.criteria if one.alpha is not None)
    steps = {Decision.FAIL: 1, Decision.PASS: 1 if plan.correction == "bonferroni" else ranked}
    limited = [(one, one.allowed) for one in found.errors if one.allowed is not None]
    unlimited = [one.wrong for one in found.errors if one.allowed is None]
    return replace(
        found,
        errors=tuple(
            replace(one, allowed=level / parts * steps[one.wrong], actual=None)
            for one, level in limited
        ),
        uncounted={**dict.fromkeys(unlimited, characteristic.UNSHOWN), **found.uncounted},
    )


def bound_errors(parts: Iterable[Part], wrong: Decision) -> ErrorBound | None:
    """Bound how often parts that are decided together are wrong; None where there are none.

    Args:
        parts: Of one contract, or of all contracts of a suite.
        wrong: The decision that is wrong.
    """
    every = list(parts)
    if not every:
        return None
    found = [(one, one.characteristic.error_of(wrong)) for one in every]
    counted = [(one, error) for one, error in found if error is not None]
    silent = tuple(
        Uncounted(one.name, one.characteristic.uncounted.get(wrong, characteristic.NO_KNOWN_ERROR))
        for one, error in found
        if error is None
    )
    # Each input that is decided on its own can be wrong on its own.
    values = [error.value for one, error in counted for _ in range(one.streams)]
    largest = max(values, default=None)
    value = largest if wrong is Decision.PASS else math.fsum(values)
    # A sum of 1 or more bounds nothing, while the largest single error still happens so often.
    says_nothing = largest is None or value is None or value >= 1
    return ErrorBound(
        error=f"wrong-{wrong.value.lower()}",
        levels=len(values),
        raw=None if says_nothing else value,
        at_least=largest if says_nothing else None,
        is_exact=len(every) == len(values) == 1
        and all(error.actual is not None and error.is_worst for _, error in counted),
        counted=tuple(one.name for one, _ in counted),
        not_counted=silent,
    )


def list_finding_parts(findings: Iterable[Finding]) -> Iterator[Part]:
    """List findings that count as parts, one stream for each input where each is decided."""
    for one in findings:
        if one.decision is not None:
            streams = max(1, len(one.by_input))
            yield Part(one.criterion, streams=streams, characteristic=characterize(one.plan))


def bound_verdicts(verdicts: Iterable[Verdict], wrong: Decision) -> ErrorBound | None:
    """Bound the error over whole verdicts; a refused one decided nothing and adds nothing."""
    decided = [one for one in verdicts if one.decision is not None]
    # A verdict without a plan has its findings only.
    parts = (
        list_parts(one.plan)
        if one.plan is not None
        else list_finding_parts(finding for finding in one.findings if not finding.advisory)
        for one in decided
    )
    return bound_errors(chain.from_iterable(parts), wrong)


def bound_plans(plans: Iterable[Plan], wrong: Decision) -> ErrorBound | None:
    """Bound the same before the first trial."""
    return bound_errors((part for one in plans for part in list_parts(one)), wrong)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """One criterion's rule in counts."""

    criterion: str
    procedure: str
    rule: str
    """PASS and FAIL in numbers of trials."""
    streams: int = 1
    """How many inputs are decided on their own by this rule."""
    max_trials: int
    """The upper limit on trials over all of its streams."""
    chances: tuple[Chance, ...] = ()
    are_least: bool = False
    """Whether it may PASS and FAIL more often, by what a correction makes of the others."""
    advisory: tuple[str, ...] = ()
    """Why it will decide nothing, where it can only advise."""
    labels: int | None = None
    """How many labels its judge's errors were measured on: the corrected rate has to agree."""


def forecast(plan: Plan) -> tuple[Forecast, ...]:
    """Return every criterion's rule in counts, with its exact chances at the rates that matter."""
    return tuple(_criterion(one, plan) for one in plan.criteria)


def _criterion(criterion: CriterionPlan, plan: Plan) -> Forecast:
    streams, family = _count_streams(criterion, plan), criterion.others.family
    procedure, alone = find_procedure(criterion.procedure), criterion
    if family is not None and not criterion.counting.stops_early:
        # What the others decide can only add to what holds whatever they decide.
        share = family.least_share
        alone = procedure.scale_levels(criterion, lambda level: share * level)
    # By e-values and by BY an end at a boundary may still not hold.
    is_open = family is not None and criterion.counting.stops_early and not family.keeps_boundaries
    found = () if is_open else characterize(alone, plan.intent_of(criterion)).chances
    return Forecast(
        criterion=criterion.criterion,
        procedure=criterion.procedure,
        rule=procedure.describe_rule(criterion) + describe_looks(criterion),
        streams=streams,
        max_trials=criterion.trials * streams,
        chances=found,
        are_least=family is not None and family.correction != "bonferroni",
        # Its rule says already that it is only reported.
        advisory=criterion.standing.advisory[criterion.standing.reported_at is not None :],
        labels=None if criterion.judging.errors is None else criterion.judging.errors.labels,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitingCriteria:
    """Which criteria of a sampling need the most trials, so that they set their number."""

    experiment: str
    criteria: tuple[str, ...]
    trials: int
    """What they need at most."""
    others: int
    """How many criteria share the trials."""
    further: int = 0
    """Trials besides, so that every input is asked."""


def find_limiting(plan: Plan) -> tuple[LimitingCriteria, ...]:
    """Find the criteria that set the number of trials of each sampling with several (§1.4.7)."""
    found = []
    for one in plan.experiments:
        criteria, inputs = plan.criteria_of(one.name), len(one.input_ids)
        if len(criteria) < 2:
            continue
        asking = [each for each in criteria if not each.counting.rides_along]
        most = max((each.count_trials(inputs) for each in asking), default=0)
        names = tuple(each.criterion for each in asking if each.count_trials(inputs) == most)
        found.append(
            LimitingCriteria(
                experiment=one.name,
                criteria=names,
                trials=most,
                others=len(criteria) - len(names),
                further=max(0, one.trials - most),
            )
        )
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """How likely all decisions of a run or a suite are to PASS, under one condition."""

    condition: str
    decisions: int
    passes: float
    """All PASS, if the decisions are independent."""
    least_passes: float
    """All PASS at least so often, whatever their dependence."""
    none_fails: float
    """None FAILs, if the decisions are independent."""
    least_none_fails: float


#: What a chance stands for, under either condition; a comparison has one where nothing changed.
_CONDITIONS = {
    "if every rate is exactly as required": ("as required", "nothing changed"),
    "if every rate has half the allowed failures": ("half the allowed failures", "nothing changed"),
}


def forecast_together(plans: Iterable[Plan]) -> tuple[Together, ...]:
    """Return the chances of all decisions together; nothing where there are fewer than two.

    Criteria that advise, and those whose chances depend on more than a rate, are left out.
    """
    found = [one for plan in plans for one in forecast(plan) if not one.advisory and one.chances]
    together = []
    for condition, meanings in _CONDITIONS.items():
        chances = [
            (one.streams, chance)
            for one in found
            for chance in one.chances
            if chance.meaning in meanings
        ]
        # Whether criteria fail together nobody knows beforehand, so both ends are given: what
        # holds if they are independent, and what holds whatever their dependence.
        decisions = sum(streams for streams, _ in chances)
        if decisions < 2:
            continue
        together.append(
            Together(
                condition=condition,
                decisions=decisions,
                passes=math.prod(one.passes**streams for streams, one in chances),
                least_passes=_bound(streams * (1 - one.passes) for streams, one in chances),
                none_fails=math.prod((1 - one.fails) ** streams for streams, one in chances),
                least_none_fails=_bound(streams * one.fails for streams, one in chances),
            )
        )
    return tuple(together)


def _bound(misses: Iterable[float]) -> float:
    """Return how often several events at least all happen, given how often each does not."""
    return max(0.0, 1 - math.fsum(misses))


class OpenRun(NamedTuple):
    """An earlier run that left a criterion undecided."""

    run_id: str
    plan: CriterionPlan
    is_whole: bool = True
    """Whether its design came to its end; what cut it short may have depended on the counts."""


def join_errors(plan: CriterionPlan, before: Sequence[OpenRun]) -> JointErrors | None:
    """Compute how often this run or those before decide a criterion wrongly.

    Args:
        plan: How the criterion is decided in this run.
        before: The runs that left it open, newest first.

    Returns:
        None where no run was left open, or where no error is limited.
    """
    own = {one.wrong: one for one in characterize(plan).errors}
    if not before or not own:
        return None
    joined = {wrong: _join(wrong, plan, before) for wrong in own}
    return JointErrors(
        runs=tuple(one.run_id for one in before),
        wrong_pass=joined[Decision.PASS][0] if Decision.PASS in joined else None,
        wrong_fail=joined[Decision.FAIL][0] if Decision.FAIL in joined else None,
        is_exact=all(exact for _, exact in joined.values()),
    )


def _join(wrong: Decision, plan: CriterionPlan, before: Sequence[OpenRun]) -> tuple[float, bool]:
    """Return the probability of a wrong decision in any of the runs, and whether it is exact."""
    runs = [characterize(one) for one in (*(one.plan for one in reversed(before)), plan)]
    errors = [one.error_of(wrong) for one in runs]
    rate = next((one.rate for one in errors if one is not None), None)
    curves = [one.at for one in runs if one.at is not None]
    # What cut a run short may have depended on its counts: its curve then says nothing.
    if rate is None or len(curves) < len(runs) or not all(one.is_whole for one in before):
        # A run is INCONCLUSIVE at most as often as it is not decided wrongly.
        return 1 - math.prod(1 - (1.0 if one is None else one.value) for one in errors), False
    total, still_open = 0.0, 1.0
    for at in curves:
        chance = at(rate)
        total += still_open * chance.of(wrong)
        still_open *= chance.inconclusive
    return total, all(one is not None and one.is_worst for one in errors)


def word_joint_errors(plan: CriterionPlan) -> str:
    """Say what the runs together are worth; nothing where no run was left open before.

    Args:
        plan: With its joint errors.
    """
    joint = plan.others.together
    if joint is None:
        return ""
    values = {Decision.PASS: joint.wrong_pass, Decision.FAIL: joint.wrong_fail}
    bound = "" if joint.is_exact else "at most "
    said = [
        f"{error.event} in {bound}{as_probability(value)} of cases (this run alone: "
        f"{as_probability(error.value)})"
        for error in characterize(plan).errors
        if (value := values[error.wrong]) is not None and value < 1
    ]
    count = len(joint.runs)
    before = "the run before" if count == 1 else f"the {count} runs before"
    newest = joint.runs[0] if count == 1 else f"the newest is {joint.runs[0]}"
    which = "either run" if count == 1 else f"any of the {count + 1} runs"
    each = " For each input:" if plan.counting.each_input else ""
    if not said:
        return (
            f"INCONCLUSIVE in {before} ({newest}). If the service has not changed, running again "
            "adds errors, and no rule limits their sum."
        )
    return (
        f"INCONCLUSIVE in {before} ({newest}). If the service has not changed and {which} may "
        f"decide, their errors add.{each} {'; '.join(said)}."
    )


def describe_inputs(first: Finding, inputs: int) -> str:
    """Say how often some input of several is decided wrongly, either way.

    Inputs have trials of their own, so their decisions are independent.

    Args:
        first: The finding of one of the inputs; all are decided by one design.
        inputs: How many there are.
    """
    said = []
    for error in characterize(first.plan).errors:
        one, bound = error.value, "" if error.actual is not None else "at most "
        some = -math.expm1(inputs * math.log1p(-one)) if one < 1 else 1.0
        often = f"{bound}{as_probability(some)} of runs"
        text = f"if all {inputs} are exactly as required, some input FAILs in {often}"
        if error.wrong is Decision.PASS:
            text = (
                f"if all {inputs} have a rate that a PASS rules out, some input PASSes in {often}, "
                f"and every one of them in {bound}{as_probability(one**inputs)}"
            )
        said.append(text)
    if not said:
        return ""
    return f" Each input is decided on its own: {'; '.join(said)}."
