"""What a run concludes: findings per criterion, and the verdict that keeps every one of them.

Three-valued throughout. A refusal is not a fourth value: a refused design never ran, so its
finding has no decision, only reasons.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from fractions import Fraction
from operator import attrgetter
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar, Union

from trialwise import model, stats
from trialwise.model import evidence as grounds
from trialwise.model.claim import Claim, Intent
from trialwise.stats import sequential
from trialwise.stats.result_types import Decision as Decision  # noqa: PLC0414 (model's own)
from trialwise.stats.result_types import Interval, Refusal, Rule


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


class ProcedureDesign:
    """Base of the designs that procedures of other distributions decide by.

    A subclass is a frozen dataclass of plain values; records know it by the name of its class.
    """

    kinds: ClassVar[dict[str, type[ProcedureDesign]]] = {}

    def __init_subclass__(cls) -> None:
        ProcedureDesign.kinds[cls.__name__] = cls


#: Texts, so that a run by one method does not load the results of all others; `codec` finds each by
#: its name, once there is a value of it.
Design: TypeAlias = Union[
    "stats.ComplianceCutoff",
    "stats.RegressionCutoff",
    "sequential.SequentialDesign",
    "stats.FiniteCorpusCutoff",
    "stats.ExactCorpusRate",
    "stats.MeanDesign",
    ProcedureDesign,
]
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


T = TypeVar("T")


class _Told(Generic[T]):
    """What is read from a part of a finding or of a verdict, such as its plan.

    Args:
        part: The path to the part.
        default: What it is where there is no such part, or where the part does not have it.
    """

    def __init__(self, part: str, default: Any = None) -> None:
        self._find_part = attrgetter(part)
        self._default = default

    def __set_name__(self, _owner: type, name: str) -> None:
        self._name = name

    def __get__(self, whole: object, _owner: type) -> T:
        found: T = getattr(self._find_part(whole), self._name, self._default)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one criterion's procedure concluded, with everything a reader needs to redo it."""

    plan: model.CriterionPlan
    """How the criterion was to be decided."""
    decision: Decision | None
    """None where the design was refused and nothing was decided."""
    tally: grounds.Tally
    """The counts that decided; `all_trials` has what ran after the decision too."""
    evidence: grounds.Evidence = field(default_factory=grounds.Evidence)
    """The procedure's own numbers."""
    words: Wording = field(default_factory=Wording)
    observed_rate: ObservedRate = ObservedRate.NOT_APPLICABLE
    caution: Caution | None = None
    stop: grounds.StopReason | None = None
    notes: tuple[grounds.Note, ...] = ()
    """What deciding found out that qualifies the decision; see `caveats` for all of it."""
    refusals: tuple[Refusal, ...] = ()
    counts: grounds.TrialCounts | None = None
    diagnostics: grounds.Diagnostics | None = None
    withdrawn: Decision | None = None
    """The decision that the trials after it contradict, so that it is INCONCLUSIVE."""
    single_decision: Decision | None = None
    """The decision without the correction for several criteria; None if there is none."""
    scores: grounds.ScoreSummary | None = None
    """The scores of the replies, where the criterion grades them."""
    input_id: str | None = None
    """The input that this finding is about, where every input is decided on its own."""
    by_input: tuple[Finding, ...] = ()

    # --- What the plan says -------------------------------------------------------------------

    criterion = _Told[str]("plan")
    """The criterion's name."""
    procedure = _Told[str]("plan")
    """The name of the procedure that decided."""
    rule = _Told["Rule | None"]("plan")
    """The rule set that decided; None where the procedure has only one rule."""
    decision_rule = _Told[str | None]("plan")
    """The versioned name of the rule, such as `regression/fisher`."""
    alpha = _Told[float | None]("plan")
    """The level of the error that the procedure controls, where it controls one."""
    beta = _Told[float | None]("plan")
    """P(PASS) allowed at the alternative rate, where the procedure controls it."""
    experiment = _Told[str]("plan")
    """The experiment whose trials were counted."""
    category = _Told[str]("plan.terms")
    """The class of failure that the criterion guards against."""
    threshold = _Told[grounds.Threshold]("plan")
    """What the criterion is held against."""
    advisory = _Told[tuple[str, ...]]("plan.standing")
    """Why it is reported and left out of the verdict's decision; nothing where it counts."""

    @property
    def planned_trials(self) -> int | None:
        """Trials of the plan, of all inputs together; None where it takes the others' trials."""
        # It has no number of its own: it is scored on whatever the others need.
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
    def p_value(self) -> grounds.PValue | None:
        """The p-value, where the procedure has one."""
        after_stop = getattr(self.evidence, "stopped_p_value", None)
        found: grounds.PValue | None = getattr(self.evidence, "p_value", after_stop)
        return found

    lower_bound = _Told[float | None]("evidence")
    """One-sided lower confidence bound on the rate, at the criterion's own alpha."""
    interval = _Told[Interval | None]("evidence")
    """Two-sided, for the rate; its method says how far it may be trusted."""
    difference = _Told[Interval | None]("evidence")
    """Bounds on the rate minus the baseline's, on the side that the verdict is about."""
    estimate = _Told[float | None]("evidence")
    """The estimated rate, where it is not the observed one: after stopping, or weighted."""
    power = _Told[float | None]("evidence")
    """The exact chance of not passing at the alternative rate, where there is one."""
    estimator = _Told["stats.ClusterEstimate | stats.StratifiedEstimate | None"]("evidence")
    """The estimator matched to a declared claim, where the binomial rule does not fit it."""
    judged = _Told["stats.JudgedDecision | None"]("evidence")
    """The rate corrected for a judge's errors, where they were measured."""

    # --- What the words and the counts say ----------------------------------------------------

    statement = _Told[str]("words")
    """The decision with its reason, in a sentence."""
    advice = _Told[str]("words")
    """What an operator should do next, in a sentence."""

    @property
    def label(self) -> str:
        """What to show instead of the decision, such as NO FAILURE OBSERVED.

        Where whatever is not shown FAILs, the label says which of the two a FAIL is.
        """
        ground = getattr(self.evidence, "ground", None)
        if self.words.label or not ground or self.decision is not Decision.FAIL:
            return self.words.label
        return "" if self.plan.failing.fail_alpha is not None else f"{self.decision} ({ground})"

    confidence_statement = _Told[str]("words")
    """What the error rate is a property of, in a sentence (§7.2)."""

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
    def all_trials(self) -> grounds.Tally:
        """Every trial that ran and counts; `tally` holds those up to the decision."""
        counted = None if self.counts is None else self.counts.counted
        return self.tally if counted is None else counted

    decided_at = _Told[int | None]("counts")
    """The trial that decided, from 1, where others ran after it."""

    @property
    def later(self) -> grounds.Tally:
        """The trials that ran after the decision and count."""
        every = self.all_trials
        return grounds.Tally(
            trials=every.trials - self.tally.trials, passed=every.passed - self.tally.passed
        )

    coverage = _Told[grounds.InputCoverage | None]("counts")
    """How many of the inputs were asked, where it is about several."""
    intent_to_treat = _Told[grounds.Tally | None]("counts")
    """Every trial that ran; `tally` holds those that decided."""
    per_protocol = _Told[grounds.Tally | None]("counts")
    """The counts without excused trials."""
    breakdown = _Told[grounds.Breakdown | None]("counts")
    """The failures by reason."""


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
    evidence: (
        stats.LatencyLimitDecision | stats.OrderStatisticBound | stats.PrecedenceThreshold | None
    ) = None
    """The rule's own result, with every count and rank it decided on."""
    statement: str = ""

    @property
    def level(self) -> float | None:
        """The error level of the rule; None where a percentile is compared as it is."""
        # A percentile that is compared as it is has no test, and so no error rate (§12).
        return None if self.decision_rule.startswith("latency/raw-percentile") else self.alpha

    @property
    def false_alarm(self) -> float | None:
        """P(FAIL) if nothing has changed since the baseline, exact; None where there is none.

        The order-statistic bound answers another question, so that its false alarm may be several
        times alpha (§12.4.3). A comparison with a limit has no unchanged state.
        """
        return None if self.evidence is None else self.evidence.find_false_alarm(self.trials)


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
    gates: tuple[model.GateFinding, ...] = ()
    """Numbers of repeated runs, and what was asked of them; none has an error rate."""
    advisory: frozenset[Dimension] = frozenset()
    """Dimensions decided and reported, but left out of `decision`."""
    functional_decision: Decision | None = None
    latency_decision: Decision | None = None
    triggers: tuple[Trigger, ...] = ()
    envelopes: grounds.Envelopes = field(default_factory=grounds.Envelopes, metadata=grounds.FLAT)
    refusals: tuple[Refusal, ...] = ()
    plan: model.Plan | None = None
    """What was run; None where findings were put together without a run."""
    run_id: str = ""
    started_at: datetime | None = None
    experiments: tuple[grounds.ExperimentSummary, ...] = ()
    spending: grounds.Spending = field(default_factory=grounds.Spending)
    stop: grounds.StopReason = grounds.StopReason.COMPLETE
    aborted: str = ""
    """Why the run ended before its plan did, for a person."""
    covariates_at_end: Mapping[str, str] = field(default_factory=dict)
    """Conditions that had another value when the run ended."""
    horizon_false_alarm: float | None = None
    """The bound on any false alarm in the runs of the horizon, if one is declared (§8.5)."""
    reproducibility: grounds.Reproducibility = field(default_factory=grounds.Reproducibility)

    contract = _Told[str]("plan", default="")
    """The contract's name."""
    intent = _Told[Intent]("plan", default=Intent.VERIFICATION)
    """What the run was for."""
    analysis = _Told[str]("plan", default="intent-to-treat")
    """Whose trials decided."""
    claim = _Told[Claim]("plan", default=Claim())
    """What the verdict is about."""
    guards = _Told[tuple[grounds.Guard, ...]]("plan", default=())
    """Violated guardrails that the run was admitted with, overrides included."""
    covariates = _Told[Mapping[str, str]]("plan", default=MappingProxyType({}))
    """The conditions that the run was made under."""
    factors = _Told[Mapping[str, str]]("plan", default=MappingProxyType({}))
    """What was under test, for the record."""

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
        severe = (one.message for one in self.guards if one.severity != grounds.Severity.MINOR)
        return (*severe, *(f"{text}." for text in moved))
