"""Change a finding or a verdict by the names it is read by, wherever it keeps them.

Reports are tested on findings that no run would give. A finding keeps most of what it shows in its
plan, its evidence, its words and its counts; `replace` here takes one flat list of changes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from trialwise.model.claim import Claim, Intent
from trialwise.model.evidence import Breakdown, Evidence, Note, NoteKind, PValue, TrialCounts
from trialwise.model.options import RunOptions
from trialwise.model.plan import CriterionPlan, Plan
from trialwise.model.trial import Analysis
from trialwise.model.verdict import Design, Finding, Verdict, Wording
from trialwise.stats import ClusterEstimate, StratifiedEstimate
from trialwise.stats.result_types import Interval

__all__ = ["criterion_plan", "replace"]

T = TypeVar("T")

_GROUPS = [one for one in dataclasses.fields(CriterionPlan) if one.metadata]
_PLANNED = {
    *(one.name for one in dataclasses.fields(CriterionPlan)),
    *(name for one in _GROUPS for name in one.default_factory.__slots__),  # type: ignore[union-attr]
} - {"design", "estimator"}
_WORDS = {one.name for one in dataclasses.fields(Wording)}
_COUNTS = {one.name for one in dataclasses.fields(TrialCounts)}
_RUN = {"contract", "intent", "analysis", "claim", "guards", "covariates", "factors", "horizon"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchedEvidence(Evidence):
    """Whatever evidence a test makes up."""

    design: Design | None = None
    p_value: PValue | None = None
    lower_bound: float | None = None
    interval: Interval | None = None
    power: float | None = None
    estimate: float | None = None
    estimator: ClusterEstimate | StratifiedEstimate | None = None


_EVIDENCE = {one.name for one in dataclasses.fields(PatchedEvidence)}


def replace(value: T, /, **changes: Any) -> T:
    """`dataclasses.replace`, for findings and verdicts by the names of their properties, too."""
    if isinstance(value, Finding):
        changes = _finding_changes(value, changes)
    elif isinstance(value, Verdict):
        changes = _verdict_changes(value, changes)
    elif isinstance(value, CriterionPlan):
        return value.change(**changes)  # type: ignore[return-value]
    return dataclasses.replace(value, **changes)  # type: ignore[type-var]


def criterion_plan(criterion: str, **given: Any) -> CriterionPlan:
    """A plan with what a test says of it, and nothing else."""
    return CriterionPlan(criterion=criterion, procedure="COMPLIANCE", trials=0).change(**given)


def _finding_changes(finding: Finding, changes: dict[str, Any]) -> dict[str, Any]:
    left = dict(changes)

    def take(names: set[str]) -> dict[str, Any]:
        return {name: left.pop(name) for name in names & left.keys()}

    plan = finding.plan
    if "planned_trials" in left:
        parts = len(left.get("by_input", finding.by_input)) or 1
        plan = dataclasses.replace(plan, trials=left.pop("planned_trials") // parts)
    if "threshold" in left and left["threshold"] is None:
        del left["threshold"]
    if "caveats" in left:
        texts: Sequence[str] = left.pop("caveats")
        plan = dataclasses.replace(plan, caveats=())
        left["notes"] = tuple(Note(kind=NoteKind.QUALIFICATION, text=text) for text in texts)
    plan = plan.change(**take(_PLANNED))
    words = dataclasses.replace(finding.words, **take(_WORDS))
    evidence = finding.evidence
    found = take(_EVIDENCE)
    if found.keys() <= {one.name for one in dataclasses.fields(evidence)}:
        evidence = dataclasses.replace(evidence, **found)
    elif found:
        known = {name: getattr(evidence, name, None) for name in _EVIDENCE}
        evidence = PatchedEvidence(**(known | {"design": finding.design} | found))
    counts = finding.counts
    if found := take(_COUNTS):
        usual = TrialCounts(
            intent_to_treat=finding.tally, per_protocol=finding.tally, breakdown=Breakdown()
        )
        given = {name: value for name, value in found.items() if value is not None}
        counts = dataclasses.replace(counts or usual, **given)
    return {"plan": plan, "words": words, "evidence": evidence, "counts": counts, **left}


def _verdict_changes(verdict: Verdict, changes: dict[str, Any]) -> dict[str, Any]:
    given = {name: changes[name] for name in _RUN & changes.keys()}
    left = {name: value for name, value in changes.items() if name not in given}
    if not given:
        return left
    plan = verdict.plan or _plan(left.get("findings", verdict.findings))
    if "analysis" in given:
        given["analysis"] = Analysis(given["analysis"])
    if "horizon" in given:
        given["options"] = dataclasses.replace(plan.options, horizon=given.pop("horizon"))
    return {"plan": dataclasses.replace(plan, **given), **left}


def _plan(findings: Sequence[Finding]) -> Plan:
    return Plan(
        contract="",
        seed=0,
        intent=Intent.VERIFICATION,
        rule="wilson",
        analysis=Analysis.INTENT_TO_TREAT,
        claim=Claim(),
        options=RunOptions(),
        experiments=(),
        criteria=tuple(one.plan for one in findings),
    )
