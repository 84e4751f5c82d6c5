"""What a run concludes: findings per criterion, and the verdict that keeps every one of them.

Three-valued throughout. A refusal is not a fourth value: a refused design never ran, so its
finding has no decision, only reasons.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from trialwise.model.claim import Claim
from trialwise.model.evidence import (
    Breakdown,
    Diagnostics,
    ExperimentSummary,
    Guard,
    Reproducibility,
    Spending,
    StopReason,
    Threshold,
)
from trialwise.model.tally import Tally
from trialwise.stats.refusal import Refusal
from trialwise.stats.result_types import Decision, Interval, Rule

if TYPE_CHECKING:
    # A run is decided by one or two of these methods and must not load them all; `codec` finds
    # each by its name, once there is a value of it. Neither has every run gates.
    from trialwise.model.metrics import GateFinding
    from trialwise.stats import (
        ClusterEstimate,
        ComplianceCutoff,
        ExactCorpusRate,
        FiniteCorpusCutoff,
        GuardrailBound,
        JudgedDecision,
        LatencyLimitDecision,
        OrderStatisticBound,
        PrecedenceThreshold,
        RegressionCutoff,
        ResidualHarm,
        StratifiedContainment,
        StratifiedEstimate,
    )
    from trialwise.stats.sequential import SequentialDesign

__all__ = [
    "Caution",
    "Decision",
    "Dimension",
    "Finding",
    "Intent",
    "LatencyFinding",
    "ObservedRate",
    "PValue",
    "Procedure",
    "Trigger",
    "Verdict",
]


class Procedure(StrEnum):
    """The question a criterion asks (companion §1.4.5, §3.2)."""

    COMPLIANCE = "COMPLIANCE"
    """Is the required rate met?"""
    REGRESSION = "REGRESSION"
    """Has the rate degraded from a measured baseline?"""
    SEQUENTIAL = "SEQUENTIAL"
    """Is the required rate met, or missed by the margin? Decided as soon as it may be."""
    OBSERVATIONAL = "OBSERVATIONAL"
    """Was any failure observed? No population claim."""


class Intent(StrEnum):
    """What the run is for (companion §5.7)."""

    VERIFICATION = "VERIFICATION"
    """Evidence: a design that cannot support its claim is refused before the first trial."""
    SMOKE = "SMOKE"
    """A sentinel: the design runs, and its wording is softened."""


class Dimension(StrEnum):
    """The two quality dimensions a verdict combines (companion §12.3.2)."""

    FUNCTIONAL = "functional"
    LATENCY = "latency"


class ObservedRate(StrEnum):
    """Where the point estimate sits, whatever the statistics conclude (companion §10.2)."""

    ABOVE_THRESHOLD = "ABOVE_THRESHOLD"
    AT_THRESHOLD = "AT_THRESHOLD"
    BELOW_THRESHOLD = "BELOW_THRESHOLD"
    NOT_APPLICABLE = "NOT_APPLICABLE"


class Caution(StrEnum):
    """What an operator should know before acting on a finding (companion §10.2)."""

    ADEQUATE_POWER = "ADEQUATE_POWER"
    FAIL_CLEAR = "FAIL_CLEAR"
    STRANDS_DISAGREE = "STRANDS_DISAGREE"
    """FAIL although the observed rate meets the requirement: not shown, rather than not met."""
    FEASIBILITY_REFUSED = "FEASIBILITY_REFUSED"
    ZERO_EVALUABLE = "ZERO_EVALUABLE"
    CONFIGURATION_ERROR = "CONFIGURATION_ERROR"


@dataclass(frozen=True, slots=True, kw_only=True)
class PValue:
    """A tail probability with the null, the tail and the method it belongs to (companion §7.1)."""

    value: float
    method: str
    tail: str


Design: TypeAlias = (
    "ComplianceCutoff | RegressionCutoff | SequentialDesign | FiniteCorpusCutoff | ExactCorpusRate"
)
"""What a procedure decides by; an observational one needs none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one criterion's procedure concluded, with everything a reader needs to redo it."""

    criterion: str
    procedure: Procedure
    rule: Rule | None
    """The rule set that decided; None for an observational criterion, which has none."""
    decision_rule: str | None
    """The versioned name of the rule, such as `regression/fisher`."""
    decision: Decision | None
    """None where the design was refused and nothing was decided."""
    tally: Tally
    intent: Intent = Intent.VERIFICATION
    alpha: float | None = None
    design: Design | None = None
    refusals: tuple[Refusal, ...] = ()
    p_value: PValue | None = None
    lower_bound: float | None = None
    """One-sided lower confidence bound on the rate, at the criterion's own alpha."""
    observed_rate: ObservedRate = ObservedRate.NOT_APPLICABLE
    caution: Caution | None = None
    advice: str = ""
    """What an operator should do next, in a sentence."""
    statement: str = ""
    null: str = ""
    """The hypothesis that is given up only for evidence, and its alternative."""
    alternative: str = ""
    beta: float | None = None
    """P(PASS) allowed at the alternative rate, where the procedure controls it."""
    power: float | None = None
    """The exact chance of not passing at the alternative rate, where there is one."""
    interval: Interval | None = None
    """Two-sided, for the rate; its method says how far it may be trusted."""
    estimate: float | None = None
    """Of the rate, where it is not the observed one: after stopping early, or weighted."""
    label: str = ""
    """What to print instead of the decision, such as NO FAILURE OBSERVED."""
    confidence_statement: str = ""
    """What the error rate is a property of, in a sentence (§7.2)."""
    experiment: str = ""
    category: str = ""
    planned_trials: int | None = None
    stop: StopReason | None = None
    threshold: Threshold | None = None
    intent_to_treat: Tally | None = None
    """Every counted trial; `tally` holds those that decided."""
    per_protocol: Tally | None = None
    """The counts without excused trials."""
    breakdown: Breakdown | None = None
    diagnostics: Diagnostics | None = None
    estimator: ClusterEstimate | StratifiedEstimate | None = None
    """The estimator matched to a declared claim, where the binomial rule does not fit it."""
    containment: GuardrailBound | None = None
    """What a challenge sampling says of a guardrail, where its claim reaches that far (§1.4.5b)."""
    containment_strata: StratifiedContainment | None = None
    residual: ResidualHarm | None = None
    caveats: tuple[str, ...] = ()
    """What qualifies the decision without changing it."""
    advisory: tuple[str, ...] = ()
    """Why it is reported and left out of the verdict's decision; nothing where it counts."""
    judged: JudgedDecision | None = None
    """The rate corrected for a judge's errors, where they were measured."""
    judged_otherwise: JudgedDecision | None = None
    """The same by the other correction, which has to agree; None where only one was made."""
    input_id: str | None = None
    """The input that this finding is about, where every input is judged on its own."""
    by_input: tuple[Finding, ...] = ()

    @property
    def cutoff(self) -> int | None:
        """The fewest successes that PASS, where there is such a number."""
        cutoff: int | None = getattr(self.design, "cutoff", None)
        return cutoff


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyFinding:
    """What one latency constraint's rule concluded about the successful trials."""

    constraint: str
    decision_rule: str
    decision: Decision | None
    percentile: float
    alpha: float
    trials: int
    """Successful trials: latency is conditional on success (companion §12.2.1)."""
    rule: Rule | None = None
    """The rule set that decided."""
    threshold: float | None = None
    observed: float | None = None
    """The observed percentile."""
    refusals: tuple[Refusal, ...] = ()
    evidence: LatencyLimitDecision | OrderStatisticBound | PrecedenceThreshold | None = None
    """The rule's own result, with every count and rank it decided on."""
    statement: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """A criterion, latency constraint or gate that decided a verdict other than PASS."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The structural composite of a run: one conclusion, every part still visible (§1.4.6)."""

    decision: Decision | None
    findings: tuple[Finding, ...]
    latency: tuple[LatencyFinding, ...] = ()
    gates: tuple[GateFinding, ...] = ()
    """Numbers of repeated runs, and what was asked of them; none has an error rate."""
    advisory: frozenset[Dimension] = frozenset()
    """Dimensions decided and reported, but left out of `decision`."""
    functional_decision: Decision | None = None
    latency_decision: Decision | None = None
    triggers: tuple[Trigger, ...] = ()
    false_compliance_envelope: float | None = None
    false_degradation_envelope: float | None = None
    false_rejection_envelope: float | None = None
    """Σα over sequential criteria: some FAIL although every rate is as required."""
    false_acceptance_envelope: float | None = None
    """Σβ over sequential criteria: some PASS although its rate is the margin or more below."""
    refusals: tuple[Refusal, ...] = ()
    contract: str = ""
    run_id: str = ""
    started_at: datetime | None = None
    intent: Intent = Intent.VERIFICATION
    analysis: str = "intent-to-treat"
    """Whose trials decided."""
    claim: Claim = field(default_factory=Claim)
    experiments: tuple[ExperimentSummary, ...] = ()
    guards: tuple[Guard, ...] = ()
    """Violated guardrails that the run was admitted with, overrides included."""
    covariates: Mapping[str, str] = field(default_factory=dict)
    factors: Mapping[str, str] = field(default_factory=dict)
    spending: Spending = field(default_factory=Spending)
    stop: StopReason = StopReason.COMPLETE
    aborted: str = ""
    """Why the run ended before its plan did, for a person."""
    horizon: int | None = None
    horizon_false_alarm: float | None = None
    """Of the horizon's runs together, where one is declared (§8.5)."""
    reproducibility: Reproducibility = field(default_factory=Reproducibility)
    caveats: tuple[str, ...] = ()
