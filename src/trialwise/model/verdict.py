"""What a run concludes: findings per criterion, and the verdict that keeps every one of them.

Three-valued throughout. A refusal is not a fourth value: a refused design never ran, so its
finding has no decision, only reasons.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from trialwise.model.tally import Tally
from trialwise.stats.compliance import ComplianceCutoff
from trialwise.stats.latency_baseline import OrderStatisticBound
from trialwise.stats.latency_limits import LatencyLimitDecision
from trialwise.stats.latency_precedence import PrecedenceThreshold
from trialwise.stats.refusal import Refusal
from trialwise.stats.regression import RegressionCutoff
from trialwise.stats.values import Decision, Rule

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
    design: ComplianceCutoff | RegressionCutoff | None = None
    refusals: tuple[Refusal, ...] = ()
    p_value: PValue | None = None
    lower_bound: float | None = None
    """One-sided lower confidence bound on the rate, at the criterion's own alpha."""
    observed_rate: ObservedRate = ObservedRate.NOT_APPLICABLE
    caution: Caution | None = None
    statement: str = ""

    @property
    def cutoff(self) -> int | None:
        """The fewest successes that PASS, where there is such a number."""
        return None if self.design is None else self.design.cutoff


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
    """A criterion or latency constraint that decided a verdict other than PASS."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The structural composite of a run: one conclusion, every part still visible (§1.4.6)."""

    decision: Decision | None
    findings: tuple[Finding, ...]
    latency: tuple[LatencyFinding, ...] = ()
    advisory: frozenset[Dimension] = frozenset()
    """Dimensions decided and reported, but left out of `decision`."""
    functional_decision: Decision | None = None
    latency_decision: Decision | None = None
    triggers: tuple[Trigger, ...] = ()
    false_compliance_envelope: float | None = None
    false_degradation_envelope: float | None = None
    refusals: tuple[Refusal, ...] = ()
