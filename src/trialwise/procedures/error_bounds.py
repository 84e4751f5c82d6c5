"""How often verdicts together are wrong, from what each rule really does and not from its level.

A contract PASSes only if every criterion does. Where one of them is bad, the contract passes with
at most the largest single error (an intersection-union test), however many criteria there are. A
FAIL although everything is good needs one wrong FAIL: at most the sum of the single errors,
whatever their dependence.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from trialwise.documents.numbers import as_probability
from trialwise.model.plan import CriterionPlan
from trialwise.model.verdict import (
    Decision,
    Design,
    Dimension,
    Finding,
    LatencyFinding,
    Verdict,
)
from trialwise.procedures.base import RuleError
from trialwise.procedures.registry import find_procedure


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBound:
    """How often several decisions together are wrong in one way."""

    wrong: Decision
    value: float
    """The largest single error of a PASS, the sum of the single errors of a FAIL."""
    decisions: int
    """How many decisions can be wrong in this way; every input where each is decided."""
    is_exact: bool
    """Whether it is the error of a single rule, computed; else it is a bound."""

    @property
    def says_something(self) -> bool:
        """Whether it is below 1."""
        return self.value < 1

    @property
    def word(self) -> str:
        """What the number is."""
        return "exactly" if self.is_exact else "at most"


def list_rule_errors(plan: CriterionPlan, design: Design | None = None) -> Iterator[RuleError]:
    """Return the ways in which one stream of a criterion can be decided wrongly.

    Where no rule in counts decides, such as with an estimator or a judge's errors, the level stands
    in for what is not known exactly.

    Args:
        plan: How the criterion is decided.
        design: What it was decided by, where that is not the planned one.
    """
    if plan.alpha is None:
        return
    known = _compute_errors(plan.procedure, design or plan.design)
    if known:
        yield from known
        return
    fails = find_procedure(plan.procedure).error_family != "false-compliance"
    wrong = Decision.FAIL if fails else Decision.PASS
    yield RuleError(wrong=wrong, event=f"wrong {wrong}", allowed=plan.alpha, actual=None)
    if plan.beta is not None:
        event = "wrong PASS"
        yield RuleError(wrong=Decision.PASS, event=event, allowed=plan.beta, actual=None)


@lru_cache(maxsize=64)
def _compute_errors(procedure: str, design: Design | None) -> tuple[RuleError, ...]:
    """Compute the errors of a design once, because criteria, inputs and pages share designs."""
    return tuple(find_procedure(procedure).list_errors(design))


def bound_verdicts(verdicts: Iterable[Verdict], wrong: Decision) -> ErrorBound | None:
    """Bound the error over whole verdicts: criteria, and enforced latencies against a baseline."""
    decided = [one for one in verdicts if one.decision is not None]
    alarms = [
        alarm
        for verdict in decided
        if wrong is Decision.FAIL and Dimension.LATENCY not in verdict.advisory
        for one in verdict.latency
        if (alarm := _find_latency_alarm(one)) is not None
    ]
    return bound_findings((part for one in decided for part in one.findings), wrong, alarms)


def _find_latency_alarm(finding: LatencyFinding) -> float | None:
    # Few runs have enforced latencies.
    from trialwise.procedures.latency import find_false_alarm

    return find_false_alarm(finding)


def bound_findings(
    findings: Iterable[Finding], wrong: Decision, others: Iterable[float] = ()
) -> ErrorBound | None:
    """Return the bound over findings that count, one stream for each input where each is decided.

    Args:
        findings: What was decided.
        wrong: The decision that is wrong.
        others: Errors of the same kind from elsewhere, such as latency limits.
    """
    streams = [
        (part.plan, part.design)
        for finding in findings
        if not finding.advisory and finding.decision is not None
        for part in finding.by_input or (finding,)
    ]
    return bound_streams(streams, wrong, others)


def bound_streams(
    streams: Iterable[tuple[CriterionPlan, Design | None]],
    wrong: Decision,
    others: Iterable[float] = (),
) -> ErrorBound | None:
    """Bound the error over streams decided together; None if none can be wrong in this way.

    Args:
        streams: The plan and the design of each.
        wrong: The decision that is wrong.
        others: Errors of the same kind from elsewhere, such as latency limits.
    """
    errors = [
        one
        for plan, design in streams
        for one in list_rule_errors(plan, design)
        if one.wrong is wrong
    ]
    values = [one.allowed if one.actual is None else one.actual for one in errors]
    values += others
    if not values:
        return None
    return ErrorBound(
        wrong=wrong,
        value=max(values) if wrong is Decision.PASS else math.fsum(values),
        decisions=len(values),
        is_exact=len(values) == 1 and all(one.actual is not None for one in errors),
    )


def describe_inputs(first: Finding, inputs: int) -> str:
    """Say how often some input of several is decided wrongly, either way.

    Inputs have trials of their own, so their decisions are independent.

    Args:
        first: The finding of one of the inputs; all are decided by one design.
        inputs: How many there are.
    """
    said = []
    for error in list_rule_errors(first.plan, first.design):
        one = error.allowed if error.actual is None else error.actual
        some = -math.expm1(inputs * math.log1p(-one)) if one < 1 else 1.0
        bound = "" if error.actual is not None else "at most "
        if error.wrong is Decision.FAIL:
            said.append(
                f"if all {inputs} are exactly as required, some input FAILs in {bound}"
                f"{as_probability(some)} of runs"
            )
        else:
            said.append(
                f"if all {inputs} have a rate that a PASS rules out, some input PASSes in {bound}"
                f"{as_probability(some)} of runs, and every one of them in {bound}"
                f"{as_probability(one**inputs)}"
            )
    if not said:
        return ""
    return f" Each input is decided on its own: {'; '.join(said)}."
