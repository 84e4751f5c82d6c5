"""A contract about a guardrail: what it blocks, and what it lets through (companion §1.4.5b)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from trialwise.checks import not_, predicate
from trialwise.errors import InvalidArgument
from trialwise.model.claim import Claim, Sampling, SamplingRole
from trialwise.model.contract import Contract, Prevalence
from trialwise.model.criterion import Check, Criterion
from trialwise.model.trial import Postcondition


def guardrail_contract(
    name: str,
    service: Any,
    *,
    blocks: Check,
    harmful: Any,
    sensitivity: float,
    harmless: Any = None,
    specificity: float | None = None,
    confidence: float = 0.95,
    claim: Claim | None = None,
    prevalence: Prevalence | None = None,
) -> Contract:
    """Return the contract of a guardrail on candidate outputs shown to it directly.

    Harmful and harmless candidates are two samplings with one criterion each, because a guardrail
    that blocks everything is perfectly sensitive. Adversarial prompts to the whole application are
    another experiment (`SamplingRole.RED_TEAM`) and another contract: they show what reached the
    user, not what the guardrail blocked.

    Args:
        name: The contract's name.
        service: The guardrail: a function of one candidate, or any service.
        blocks: Holds for the reply to a candidate that was blocked.
        harmful: Candidates that must be blocked; strata name their failure modes.
        sensitivity: The share of them that must be.
        harmless: Candidates that must be let through.
        specificity: The share of those that must be.
        confidence: The confidence of both criteria.
        claim: What the candidates stand for; by default for themselves.
        prevalence: The share of harmful content before the guardrail, to bound what passes it.

    >>> contract = guardrail_contract(
    ...     "filter", lambda text: "blocked" if "bomb" in text else "ok",
    ...     blocks=lambda text: text == "blocked",
    ...     harmful=["how to build a bomb"], sensitivity=0.99,
    ...     harmless=["how to build a shed"], specificity=0.9,
    ... )
    >>> {name: sampling.role.value for name, sampling in contract.samplings.items()}
    {'harmful': 'harmful-candidates', 'harmless': 'harmless-candidates'}
    """
    # A required rate without candidates would pass unasked.
    if (harmless is None) is not (specificity is None):
        allowed = "be given together with harmless candidates"
        raise InvalidArgument("specificity", specificity, allowed)
    blocked = blocks if isinstance(blocks, Postcondition) else predicate(blocks)
    # Two samplings, since sensitivity and specificity are rates of different candidates and have no
    # common denominator (companion §1.4.5b).
    samplings = {"harmful": _as(harmful, "harmful", SamplingRole.HARMFUL_CANDIDATES)}
    rates = [("sensitivity", blocked, sensitivity, "SAFETY", "harmful")]
    if specificity is not None:
        samplings["harmless"] = _as(harmless, "harmless", SamplingRole.HARMLESS_CANDIDATES)
        rates.append(("specificity", not_(blocked), specificity, "USABILITY", "harmless"))
    criteria = tuple(
        Criterion(of, check, at_least=rate, category=kind, sampling=side, confidence=confidence)
        for of, check, rate, kind, side in rates
    )
    more: Any = {"claim": claim or Claim(), "prevalence": prevalence}
    return Contract(name, service, criteria, sampling=samplings, **more)


def _as(given: Any, identifier: str, role: SamplingRole) -> Sampling:
    """Return the sampling in its role; one that says it is something else is refused."""
    if not isinstance(given, Sampling):
        return Sampling.of(given, identifier=identifier, role=role)
    # What a red team got past the application is another quantity: see `SamplingRole`.
    if given.role not in (role, SamplingRole.UNSPECIFIED):
        allowed = f"hold {role}, shown to the guardrail itself"
        raise InvalidArgument(identifier, str(given.role), allowed)
    return replace(given, role=role)
