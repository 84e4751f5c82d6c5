"""The composite verdict: FAIL beats INCONCLUSIVE beats PASS, and no part is lost (§1.4.6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from trialwise.errors import InvalidArgument
from trialwise.model.verdict import (
    Decision,
    Dimension,
    Finding,
    LatencyFinding,
    Trigger,
    Verdict,
)
from trialwise.procedures.registry import procedure_of
from trialwise.stats.error_envelopes import (
    Direction,
    Envelope,
    Envelopes,
    envelope,
    type_one_envelopes,
)
from trialwise.stats.result_types import Refusal

if TYPE_CHECKING:
    from trialwise.model.metrics import GateFinding


#: The Type-I envelopes, by the error family of procedures; others have sums of their own.
_DIRECTIONS: dict[str | None, Direction] = {
    "false-compliance": "compliance",
    "false-degradation": "regression",
    None: "observational",
}


def combine(decisions: Iterable[Decision]) -> Decision | None:
    """The structural composite: FAIL if any, else INCONCLUSIVE if any, else PASS; None of none.

    >>> combine([Decision.PASS, Decision.INCONCLUSIVE])
    <Decision.INCONCLUSIVE: 'INCONCLUSIVE'>
    """
    seen = set(decisions)
    for decision in (Decision.FAIL, Decision.INCONCLUSIVE, Decision.PASS):
        if decision in seen:
            return decision
    return None


def compose(
    findings: Iterable[Finding],
    latency: Iterable[LatencyFinding] = (),
    *,
    advisory: Iterable[Dimension] = (),
    gates: Iterable[GateFinding] = (),
) -> Verdict:
    """Compose findings into a verdict; refused whole if any enforced part's design was refused.

    An advisory dimension or criterion is decided exactly as an enforced one and reported; it never
    enters the verdict's decision. With nothing enforced the decision is PASS: the run cannot fail;
    where only judges that nobody measured are left, it is INCONCLUSIVE: nothing was shown. A gate
    counts like a criterion, but has no error rate and enters no envelope.

    Args:
        findings: One per criterion, in the contract's order.
        latency: One per latency constraint.
        advisory: Dimensions to report without enforcing.
        gates: One per gate.
    """
    findings, latency, gates = tuple(findings), tuple(latency), tuple(gates)
    left_out = frozenset(advisory)
    counting = tuple(one for one in findings if not one.advisory)
    if not findings and not latency:
        raise InvalidArgument("findings", [], "hold a criterion: what was not run is never PASS")
    _check_one_rule([*findings, *latency])
    refusals = _refusals(
        [
            *(() if Dimension.FUNCTIONAL in left_out else counting),
            *(() if Dimension.LATENCY in left_out else latency),
        ]
    )
    verdict = Verdict(
        decision=None,
        findings=findings,
        latency=latency,
        gates=gates,
        advisory=left_out,
        refusals=refusals,
    )
    if refusals:
        return verdict
    functional = combine(f.decision or Decision.INCONCLUSIVE for f in counting)
    timing = combine(f.decision or Decision.INCONCLUSIVE for f in latency)
    enforced = [
        decision
        for dimension, decision in ((Dimension.FUNCTIONAL, functional), (Dimension.LATENCY, timing))
        if decision is not None and dimension not in left_out
    ]
    asked = [gate.decision for gate in gates if gate.decision is not None]
    # What is not enforced cannot fail. What could not be decided is not a PASS either.
    unproven = findings and not counting and Dimension.FUNCTIONAL not in left_out
    nothing = Decision.INCONCLUSIVE if unproven else Decision.PASS
    decision = combine([*enforced, *asked]) or nothing
    envelopes = _envelopes(counting)
    sequential = [
        f for f in _streams(counting) if procedure_of(f).error_family == "false-rejection"
    ]
    return replace(
        verdict,
        decision=decision,
        functional_decision=functional,
        latency_decision=timing,
        triggers=tuple(_list_triggers(verdict, decision)),
        false_compliance_envelope=envelopes.false_compliance,
        false_degradation_envelope=envelopes.false_degradation_signal,
        false_rejection_envelope=_sum(f.alpha for f in sequential),
        false_acceptance_envelope=_sum(f.beta for f in sequential),
    )


def _envelopes(findings: Iterable[Finding]) -> Envelopes:
    """The two Type-I envelopes of a contract's findings, by direction (§1.4.6)."""
    return type_one_envelopes(
        (direction, part.alpha)
        for part in _streams(findings)
        if (direction := _DIRECTIONS.get(procedure_of(part).error_family)) is not None
        and _counts(part, direction)
    )


def _counts(finding: Finding, direction: Direction) -> bool:
    """A rate that is known, or claimed of the run alone, carries no error rate."""
    return finding.alpha is not None or direction == "observational"


def _streams(findings: Iterable[Finding]) -> Iterator[Finding]:
    """What carries an error rate of its own: every input where each is decided."""
    for finding in findings:
        yield from finding.by_input or (finding,)


def _sum(levels: Iterable[float | None]) -> float | None:
    """The union bound over levels, or None without any."""
    given = [level for level in levels if level is not None]
    bound = envelope(given) if given else None
    return bound.capped if isinstance(bound, Envelope) else None


def _check_one_rule(parts: Sequence[Finding | LatencyFinding]) -> None:
    """Two rule sets give two answers to one question, so a verdict keeps to one of them."""
    rules = sorted({part.rule for part in parts if part.rule is not None})
    if len(rules) > 1:
        allowed = "be decided by one rule set: never mix within a verdict"
        raise InvalidArgument("findings", rules, allowed)


def _refusals(parts: Iterable[Finding | LatencyFinding]) -> tuple[Refusal, ...]:
    """Every reason once, in the order the enumeration declares."""
    given = {reason for part in parts for reason in part.refusals}
    return tuple(reason for reason in Refusal if reason in given)


def _list_triggers(verdict: Verdict, decision: Decision) -> Iterator[Trigger]:
    """What decided a verdict other than PASS, as far as it is enforced."""
    parts: list[tuple[str, str, Decision | None]] = []
    if Dimension.FUNCTIONAL not in verdict.advisory:
        counting = (one for one in verdict.findings if not one.advisory)
        parts += [("criterion", one.criterion, one.decision) for one in counting]
    if Dimension.LATENCY not in verdict.advisory:
        parts += [("latency", one.constraint, one.decision) for one in verdict.latency]
    parts += [("gate", one.gate, one.decision) for one in verdict.gates]
    for kind, name, found in parts:
        if found is decision is not Decision.PASS:
            yield Trigger(kind=kind, name=name)
