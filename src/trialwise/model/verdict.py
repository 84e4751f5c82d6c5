"""What a run concludes: findings per criterion, and the verdict that keeps every one of them.

Three-valued throughout. A refusal is not a fourth value: a refused design never ran, so its
finding has no decision, only reasons.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from trialwise.model.claim import Claim, Intent
from trialwise.model.evidence import (
    FLAT,
    Breakdown,
    Diagnostics,
    Envelopes,
    Evidence,
    ExperimentSummary,
    Guard,
    InputCoverage,
    Note,
    PValue,
    Reproducibility,
    ScoreSummary,
    Severity,
    Spending,
    StopReason,
    Tally,
    Threshold,
    TrialCounts,
)
from trialwise.stats.result_types import Decision as Decision  # noqa: PLC0414 (model's own)
from trialwise.stats.result_types import Interval, Refusal, Rule

if TYPE_CHECKING:
    from fractions import Fraction

    # A run is decided by one or two of these methods and must not load them all; `codec` finds
    # each by its name, once there is a value of it. Neither has every run gates.
    from trialwise.model.metrics import GateFinding
    from trialwise.model.plan import CriterionPlan, Plan
    from trialwise.stats import (
        ClusterEstimate,
        ComplianceCutoff,
        ExactCorpusRate,
        FiniteCorpusCutoff,
        JudgedDecision,
        LatencyLimitDecision,
        MeanDesign,
        OrderStatisticBound,
        PrecedenceThreshold,
        RegressionCutoff,
        StratifiedEstimate,
    )
    from trialwise.stats.sequential import SequentialDesign


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

    @classmethod
    def from_gap(cls, gap: Fraction) -> ObservedRate:
        """Return where a rate stands that differs from the threshold by so much, in rationals."""
        if gap == 0:
            return cls.AT_THRESHOLD
        return cls.ABOVE_THRESHOLD if gap > 0 else cls.BELOW_THRESHOLD


class Caution(StrEnum):
    """What an operator should know before acting on a finding (companion §10.2)."""

    ADEQUATE_POWER = "ADEQUATE_POWER"
    POWER_NOT_SHOWN = "POWER_NOT_SHOWN"
    """PASS by a design whose computed power falls short of the one asked for, or has none."""
    FAIL_CLEAR = "FAIL_CLEAR"
    STRANDS_DISAGREE = "STRANDS_DISAGREE"
    """FAIL although the observed rate meets the requirement: not shown, rather than not met."""
    FEASIBILITY_REFUSED = "FEASIBILITY_REFUSED"
    ZERO_EVALUABLE = "ZERO_EVALUABLE"
    CONFIGURATION_ERROR = "CONFIGURATION_ERROR"

    @classmethod
    def for_decision(cls, decision: Decision, observed: ObservedRate) -> Caution:
        """Return what to know of a PASS or a FAIL, by where the observed rate stands."""
        if decision is Decision.PASS:
            return cls.ADEQUATE_POWER
        is_below = observed is ObservedRate.BELOW_THRESHOLD
        return cls.FAIL_CLEAR if is_below else cls.STRANDS_DISAGREE


Design: TypeAlias = (
    "ComplianceCutoff | RegressionCutoff | SequentialDesign | FiniteCorpusCutoff | ExactCorpusRate"
    " | MeanDesign | ProcedureDesign"
)
"""What a procedure decides by; an observational one needs none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """What a finding says to people; no program reads it back."""

    statement: str = ""
    """The decision with its reason, in a sentence."""
    advice: str = ""
    """What an operator should do next, in a sentence."""
    label: str = ""
    """What to show instead of the decision, such as NO FAILURE OBSERVED."""
    null: str = ""
    """The hypothesis that is given up only for evidence, and its alternative."""
    alternative: str = ""
    confidence_statement: str = ""
    """What the error rate is a property of, in a sentence (§7.2)."""


class ProcedureDesign:
    """Base of the designs that procedures of other distributions decide by.

    A subclass is a frozen dataclass of plain values; records know it by the name of its class.
    """

    kinds: ClassVar[dict[str, type[ProcedureDesign]]] = {}

    def __init_subclass__(cls) -> None:
        ProcedureDesign.kinds[cls.__name__] = cls


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one criterion's procedure concluded, with everything a reader needs to redo it."""

    plan: CriterionPlan
    """How the criterion was to be decided."""
    decision: Decision | None
    """None where the design was refused and nothing was decided."""
    tally: Tally
    """The counts that decided; `all_trials` has what ran after the decision too."""
    evidence: Evidence = field(default_factory=Evidence)
    """The procedure's own numbers."""
    words: Wording = field(default_factory=Wording)
    observed_rate: ObservedRate = ObservedRate.NOT_APPLICABLE
    caution: Caution | None = None
    stop: StopReason | None = None
    notes: tuple[Note, ...] = ()
    """What deciding found out that qualifies the decision; see `caveats` for all of it."""
    refusals: tuple[Refusal, ...] = ()
    counts: TrialCounts | None = None
    diagnostics: Diagnostics | None = None
    withdrawn: Decision | None = None
    """The decision that the trials after it contradict, so that it is INCONCLUSIVE."""
    single_decision: Decision | None = None
    """The decision without the correction for several criteria; None if there is none."""
    scores: ScoreSummary | None = None
    """The scores of the replies, where the criterion grades them."""
    input_id: str | None = None
    """The input that this finding is about, where every input is decided on its own."""
    by_input: tuple[Finding, ...] = ()

    # --- What the plan says -------------------------------------------------------------------

    @property
    def criterion(self) -> str:
        """The criterion's name."""
        return self.plan.criterion

    @property
    def procedure(self) -> str:
        """The name of the procedure that decided."""
        return self.plan.procedure

    @property
    def rule(self) -> Rule | None:
        """The rule set that decided; None where the procedure has only one rule."""
        return self.plan.rule

    @property
    def decision_rule(self) -> str | None:
        """The versioned name of the rule, such as `regression/fisher`."""
        return self.plan.decision_rule

    @property
    def alpha(self) -> float | None:
        """The level of the error that the procedure controls, where it controls one."""
        return self.plan.alpha

    @property
    def beta(self) -> float | None:
        """P(PASS) allowed at the alternative rate, where the procedure controls it."""
        return self.plan.beta

    @property
    def experiment(self) -> str:
        """The experiment whose trials were counted."""
        return self.plan.experiment

    @property
    def category(self) -> str:
        """The class of failure that the criterion guards against."""
        return self.plan.terms.category

    @property
    def threshold(self) -> Threshold:
        """What the criterion is held against."""
        return self.plan.threshold

    @property
    def advisory(self) -> tuple[str, ...]:
        """Why it is reported and left out of the verdict's decision; nothing where it counts."""
        return self.plan.standing.advisory

    @property
    def planned_trials(self) -> int | None:
        """Trials of the plan, of all inputs together; None where it takes the others' trials."""
        if self.plan.counting.rides_along:
            return None
        return self.plan.trials * (len(self.by_input) or 1)

    # --- What the evidence says ---------------------------------------------------------------

    @property
    def design(self) -> Design | None:
        """What was decided by: the plan's design, or the one at the number of trials there were."""
        found: Design | None = getattr(self.evidence, "design", None)
        return self.plan.design if found is None else found

    @property
    def cutoff(self) -> int | None:
        """The fewest successes that PASS, where there is such a number."""
        cutoff: int | None = getattr(self.design, "cutoff", None)
        return cutoff

    @property
    def p_value(self) -> PValue | None:
        """The p-value, where the procedure has one."""
        after_stop = getattr(self.evidence, "stopped_p_value", None)
        found: PValue | None = getattr(self.evidence, "p_value", after_stop)
        return found

    @property
    def lower_bound(self) -> float | None:
        """One-sided lower confidence bound on the rate, at the criterion's own alpha."""
        found: float | None = getattr(self.evidence, "lower_bound", None)
        return found

    @property
    def interval(self) -> Interval | None:
        """Two-sided, for the rate; its method says how far it may be trusted."""
        found: Interval | None = getattr(self.evidence, "interval", None)
        return found

    @property
    def difference(self) -> Interval | None:
        """Bounds on the rate minus the baseline's, on the side that the verdict is about."""
        found: Interval | None = getattr(self.evidence, "difference", None)
        return found

    @property
    def estimate(self) -> float | None:
        """The estimated rate, where it is not the observed one: after stopping, or weighted."""
        found: float | None = getattr(self.evidence, "estimate", None)
        return found

    @property
    def power(self) -> float | None:
        """The exact chance of not passing at the alternative rate, where there is one."""
        found: float | None = getattr(self.evidence, "power", None)
        return found

    @property
    def estimator(self) -> ClusterEstimate | StratifiedEstimate | None:
        """The estimator matched to a declared claim, where the binomial rule does not fit it."""
        found: ClusterEstimate | StratifiedEstimate | None
        found = getattr(self.evidence, "estimator", None)
        return found

    @property
    def judged(self) -> JudgedDecision | None:
        """The rate corrected for a judge's errors, where they were measured."""
        return self.evidence.judged

    # --- What the words and the counts say ----------------------------------------------------

    @property
    def statement(self) -> str:
        """The decision with its reason, in a sentence."""
        return self.words.statement

    @property
    def advice(self) -> str:
        """What an operator should do next, in a sentence."""
        return self.words.advice

    @property
    def label(self) -> str:
        """What to show instead of the decision, such as NO FAILURE OBSERVED.

        Where whatever is not shown FAILs, the label says which of the two a FAIL is.
        """
        ground = getattr(self.evidence, "ground", None)
        if self.words.label or not ground or self.decision is not Decision.FAIL:
            return self.words.label
        return "" if self.plan.failing.fail_alpha is not None else f"{self.decision} ({ground})"

    @property
    def confidence_statement(self) -> str:
        """What the error rate is a property of, in a sentence (§7.2)."""
        return self.words.confidence_statement

    @property
    def caveats(self) -> tuple[str, ...]:
        """Everything that qualifies the decision without changing it, and why it only advises."""
        # That a criterion is only reported is what it was asked for, and not a caveat.
        reasons = self.advisory[self.plan.standing.reported_at is not None :]
        return (*(f"Advisory: {reason}." for reason in reasons), *self.qualifications)

    @property
    def qualifications(self) -> tuple[str, ...]:
        """What qualifies the decision without changing it: by its plan, and found on deciding."""
        return (*self.plan.caveats, *(note.text for note in self.notes))

    @property
    def all_trials(self) -> Tally:
        """Every trial that ran and counts; `tally` holds those up to the decision."""
        counted = None if self.counts is None else self.counts.counted
        return self.tally if counted is None else counted

    @property
    def decided_at(self) -> int | None:
        """The trial that decided, from 1, where others ran after it."""
        return None if self.counts is None else self.counts.decided_at

    @property
    def later(self) -> Tally:
        """The trials that ran after the decision and count."""
        every = self.all_trials
        return Tally(
            trials=every.trials - self.tally.trials, passed=every.passed - self.tally.passed
        )

    @property
    def coverage(self) -> InputCoverage | None:
        """How many of the inputs were asked, where it is about several."""
        return None if self.counts is None else self.counts.coverage

    @property
    def intent_to_treat(self) -> Tally | None:
        """Every trial that ran; `tally` holds those that decided."""
        return None if self.counts is None else self.counts.intent_to_treat

    @property
    def per_protocol(self) -> Tally | None:
        """The counts without excused trials."""
        return None if self.counts is None else self.counts.per_protocol

    @property
    def breakdown(self) -> Breakdown | None:
        """The failures by reason."""
        return None if self.counts is None else self.counts.breakdown


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

    @property
    def level(self) -> float | None:
        """The error level of the rule; None where a percentile is compared as it is."""
        return None if self.decision_rule.startswith("latency/raw-percentile") else self.alpha


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
    envelopes: Envelopes = field(default_factory=Envelopes, metadata=FLAT)
    refusals: tuple[Refusal, ...] = ()
    plan: Plan | None = None
    """What was run; None where findings were put together without a run."""
    run_id: str = ""
    started_at: datetime | None = None
    experiments: tuple[ExperimentSummary, ...] = ()
    spending: Spending = field(default_factory=Spending)
    stop: StopReason = StopReason.COMPLETE
    aborted: str = ""
    """Why the run ended before its plan did, for a person."""
    covariates_at_end: Mapping[str, str] = field(default_factory=dict)
    """Conditions that had another value when the run ended."""
    horizon_false_alarm: float | None = None
    """The bound on any false alarm in the runs of the horizon, if one is declared (§8.5)."""
    reproducibility: Reproducibility = field(default_factory=Reproducibility)

    @property
    def contract(self) -> str:
        """The contract's name."""
        return "" if self.plan is None else self.plan.contract

    @property
    def intent(self) -> Intent:
        """What the run was for."""
        return Intent.VERIFICATION if self.plan is None else self.plan.intent

    @property
    def analysis(self) -> str:
        """Whose trials decided."""
        return "intent-to-treat" if self.plan is None else self.plan.analysis.value

    @property
    def claim(self) -> Claim:
        """What the verdict is about."""
        return Claim() if self.plan is None else self.plan.claim

    @property
    def guards(self) -> tuple[Guard, ...]:
        """Violated guardrails that the run was admitted with, overrides included."""
        return () if self.plan is None else self.plan.guards

    @property
    def covariates(self) -> Mapping[str, str]:
        """The conditions that the run was made under."""
        return {} if self.plan is None else self.plan.covariates

    @property
    def factors(self) -> Mapping[str, str]:
        """What was under test, for the record."""
        return {} if self.plan is None else self.plan.factors

    @property
    def horizon(self) -> int | None:
        """Runs of a monitor within which wrong verdicts are bounded."""
        return None if self.plan is None else self.plan.options.horizon_runs

    @property
    def caveats(self) -> tuple[str, ...]:
        """What qualifies the whole verdict."""
        moved = (
            f"Covariate {name}: {self.covariates.get(name, 'not known')} when the run began, "
            f"{value} when it ended, so that its trials are of both"
            for name, value in self.covariates_at_end.items()
        )
        severe = (one.message for one in self.guards if one.severity != Severity.MINOR)
        return (*severe, *(f"{text}." for text in moved))
