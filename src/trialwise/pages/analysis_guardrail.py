"""What a challenge sampling says of a guardrail, and how far that reaches (companion §1.4.5b)."""

from __future__ import annotations

from collections.abc import Iterator

from trialwise.documents.blocks import Section
from trialwise.documents.numbers import as_computed
from trialwise.model.verdict import Finding
from trialwise.procedures.explaining.analysis_sections import Rows, make_section
from trialwise.stats.guardrail_bounds import GuardrailBound, StratifiedContainment
from trialwise.stats.residual_harm import ResidualHarm
from trialwise.stats.result_types import Undefined

__all__ = ["list_guardrail_sections"]


def list_guardrail_sections(finding: Finding) -> Iterator[Section]:
    """The guardrail's bound with its strata and residual, where the claim reaches that far."""
    if finding.containment is None:
        return
    rows = _list_bound(finding.containment)
    if finding.containment_strata is not None:
        rows += _list_strata(finding.containment_strata)
    if finding.residual is not None:
        rows += _list_residual(finding.residual)
    yield make_section("GUARDRAIL BOUND", rows)


def _list_bound(bound: GuardrailBound) -> Rows:
    counts = f"{bound.correct} of {bound.presented} = {bound.observed:.6f}"
    level = f"at confidence {bound.confidence:g}, {bound.rule}"
    return [
        (bound.quantity.capitalize(), counts),
        ("Lower bound", f"{as_computed(bound.lower)} {level}"),
        ("Error, at most", as_computed(bound.error_upper)),
        ("Reach", bound.statement),
    ]


def _list_strata(found: StratifiedContainment) -> Rows:
    rows = [
        (
            "By stratum" if place == 0 else "",
            f"{name}: {bound.correct} of {bound.presented}, at least {as_computed(bound.lower)}",
        )
        for place, (name, bound) in enumerate(found.strata)
    ]
    return [*rows, ("Weakest stratum", found.weakest), ("", found.statement)]


def _list_residual(found: ResidualHarm) -> Rows:
    if isinstance(found.bound, Undefined):
        return [("Residual harm", f"not bounded: {found.statement}")]
    return [("Residual harm", f"at most {as_computed(found.bound)}. {found.statement}")]
