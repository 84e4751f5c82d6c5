"""What a procedure is: one kind of question about a criterion, from its plan to its explanation.

Each procedure is one object in a module of its own, found by its name in `registry`. Whoever plans,
runs, decides or reports asks the object; nobody asks which procedure it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from trialwise.decimals import as_written
from trialwise.documents.blocks import Section
from trialwise.model.baseline import Baseline, BaselineReference
from trialwise.model.claim import Claim, Intent, Sampling
from trialwise.model.criterion import USUAL_POWER, Criterion, Origin
from trialwise.model.evidence import Evidence, Note, StopReason, Tally, Threshold
from trialwise.model.options import RunOptions
from trialwise.model.plan import CriterionPlan, ExperimentPlan, Plan
from trialwise.model.verdict import Caution, Decision, Design, Finding, ObservedRate, Wording
from trialwise.procedures.characteristic import Characteristic, limit_by_levels
from trialwise.procedures.criterion_rows import Rows
from trialwise.stats.result_types import Refusal
from trialwise.stats.sequential.shipped_designs import DesignCache

T = TypeVar("T")

#: The two hypotheses by who set the threshold (companion §7.4).
HYPOTHESES: dict[Origin, tuple[str, str]] = {
    Origin.SLA: ("the SLA requirement is not met", "the SLA requirement is met"),
    Origin.SLO: ("the SLO target is not met", "the SLO target is met"),
    Origin.POLICY: ("the policy requirement is not met", "the policy requirement is met"),
    Origin.EMPIRICAL: ("no degradation from the baseline", "degradation from the baseline"),
    Origin.UNSPECIFIED: ("the rate does not exceed the threshold", "the rate exceeds it"),
}


#: What a report says where nothing is named that keeps a prohibition.
GAP = (
    "Nothing is named that keeps this prohibition. No number of trials shows that it is never "
    "broken: name what keeps it, such as a guardrail, with `discharged_by`"
)


#: Ends the name of a rule whose interval leaves out as much on either side as its decision does.
#: Records of 0.1.0 lack it: their intervals were two-sided at 1 − alpha whatever decided.
AGREEING = "/2"
#: Ends the name of a rule whose interval, besides, counts trials that were left out because the
#: verdict was certain, once as failed and once as passed.
LEFT_OUT_COUNTED = "/3"


def has_agreeing_interval(plan: CriterionPlan) -> bool:
    """Return whether a plan's interval is the one that agrees with its decision."""
    return (plan.decision_rule or "").endswith((AGREEING, LEFT_OUT_COUNTED))


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a criterion is planned in: its sampling, the claim, the options and the baseline."""

    experiment: str
    sampling: Sampling
    claim: Claim
    options: RunOptions
    baseline: Baseline | None = None
    references: Mapping[str, BaselineReference] = field(default_factory=dict)
    """What verdicts will keep of the baseline, by criterion."""
    contexts: Mapping[str, BaselineReference] = field(default_factory=dict)
    """Earlier measurements of criteria that the baseline does not decide, shown beside them."""
    cache: DesignCache | None = None
    measuring: bool = False
    """Whether a baseline is measured, so that trials are counted and nothing is decided."""

    def under_intent_of(self, criterion: Criterion) -> Situation:
        """Return the situation of a criterion that may have an intent of its own."""
        if criterion.intent is None:
            return self
        return replace(self, options=replace(self.options, intent=Intent(criterion.intent)))

    def fixed_trials(self, criterion: Criterion) -> int | None:
        """Return the fixed number of trials of the criterion or the options, if there is one."""
        if criterion.trials is not None:
            return criterion.trials
        return self.options.trials_of(self.experiment)

    def trial_limit(self, criterion: Criterion) -> int | None:
        """Return the lower of the upper limits on trials of the criterion and of the options."""
        given = (criterion.max_trials, self.options.max_trials)
        return min((limit for limit in given if limit is not None), default=None)

    def leaves_open(self, criterion: Criterion) -> bool:
        """Return whether trials that show neither side are INCONCLUSIVE rather than FAIL.

        The documents behind the rule sets `wilson` and `fisher` call that a FAIL.
        """
        # The companion knows no third decision: what is not shown does not comply (§3.2).
        usual = "inconclusive" if self.options.rule == "exact" else "fail"
        return (criterion.undecided or usual) == "inconclusive"

    @property
    def verifies(self) -> bool:
        """Whether the run is to be evidence."""
        return self.options.intent is Intent.VERIFICATION

    def start_threshold(self, criterion: Criterion) -> Threshold:
        """Return what the criterion requires, and who says so."""
        return Threshold(
            origin=Origin(criterion.origin or Origin.UNSPECIFIED),
            contract_ref=criterion.contract_ref,
            required_rate=criterion.at_least,
            context=self.contexts.get(criterion.name),
        )

    def start_plan(self, criterion: Criterion, **given: object) -> CriterionPlan:
        """Make a plan with what every procedure takes from the criterion as it is.

        Args:
            criterion: What is promised.
            given: The other fields of the plan.
        """
        has_gap = criterion.categorical and not criterion.discharged_by
        usual = {
            "experiment": self.experiment,
            "category": criterion.category,
            "threshold": self.start_threshold(criterion),
            "curtailed": self.options.curtail,
            "each_input": criterion.each_input,
            "analysis": criterion.analysis,
            "intent": criterion.intent,
            "categorical": criterion.categorical,
            "discharged_by": criterion.discharged_by,
            "caveats": (f"{GAP}.",) if has_gap else (),
            "pass_at": criterion.lowest_pass,
            "graders": criterion.graders,
        }
        plan = CriterionPlan(criterion=criterion.name, procedure="", trials=0)
        return plan.change(**(usual | given))


def known(value: T | None) -> T:
    """Return a value that an earlier step has made sure of: a door, a plan, a refusal."""
    assert value is not None
    return value


def take_over(made: type[T], source: Any, **given: Any) -> T:
    """Make a value with what another one has under the same names.

    Args:
        made: The type of the value.
        source: What it takes over from.
        given: What it does not take over.
    """
    names = [one.name for one in fields(made) if one.name not in given]  # type: ignore[arg-type]
    return made(**{name: getattr(source, name) for name in names if hasattr(source, name)}, **given)


def rate_below(rate: float, margin: float) -> float:
    """Return a rate lower by the margin, in decimals, and never below 0."""
    return max(0.0, float(as_written(rate) - as_written(margin)))


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a design cannot support its claim, with the way out."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What a procedure decides on: the trials that count, and how counting ended."""

    tally: Tally
    is_complete: bool = True
    """Whether every planned trial is in."""
    decision: Decision | None = None
    """What the plan's limits decided before all trials were in."""
    stop: StopReason = StopReason.COMPLETE
    """Why the experiment ended, where the plan was cut short."""
    intent: Intent = Intent.VERIFICATION
    claim: Claim = field(default_factory=Claim)
    experiment: ExperimentPlan | None = None
    ran: Tally | None = None
    """Every trial that ran and counts, where others came after the decision."""
    rows: Rows = field(default_factory=lambda: Rows.of(()))
    """The trials that the analysis counts, in order."""

    @property
    def unasked(self) -> Sequence[str]:
        """The inputs without a trial that measured something, in the order of the list."""
        return [] if self.experiment is None else self.rows.list_unasked(self.experiment.input_ids)

    @property
    def by_input(self) -> dict[str, tuple[int, int]]:
        """Successes and trials of each input that was tried."""
        return self.rows.tally_inputs()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion(Wording):
    """What a procedure concludes from counts; `deciding` makes the finding of it."""

    decision: Decision | None
    tally: Tally
    evidence: Evidence = field(default_factory=Evidence)
    observed_rate: ObservedRate = ObservedRate.NOT_APPLICABLE
    caution: Caution | None = None
    notes: tuple[Note, ...] = ()
    refusals: tuple[Refusal, ...] = ()

    @classmethod
    def without_trials(cls, tally: Tally) -> Conclusion:
        """Conclude nothing, since no trial counts."""
        return cls(
            decision=Decision.INCONCLUSIVE,
            tally=tally,
            caution=Caution.ZERO_EVALUABLE,
            statement="No trial was available to decide on.",
        )

    def to_finding(self, plan: CriterionPlan, **given: object) -> Finding:
        """Make the finding of a plan.

        Args:
            plan: What was decided by.
            given: Further fields of the finding, such as `stop` and `counts`.
        """
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        words = Wording(**{one.name: own.pop(one.name) for one in fields(Wording)})
        return Finding(plan=plan, words=words, **own, **given)  # type: ignore[arg-type]


class Procedure:
    """One kind of question, and everything that answering it takes.

    A subclass sets the attributes below, implements `plan` and `conclude`, and overrides what
    differs from the usual.
    """

    name: str
    """The word by which plans and records know it."""
    question: str
    """The question in words, such as "Is the required rate met?"."""
    error_family: str | None = None
    """The kind of error whose levels are added up over criteria; None where no level is claimed.

    `false-compliance`, `false-degradation` or `false-rejection`.
    """
    claims_rate: bool = True
    """Whether a verdict says something about a rate, rather than about the trials alone."""
    decides_fixed_rate: bool = False
    """Whether it decides a required rate from a fixed number of trials."""
    counts_rate: bool = False
    """Whether it decides by a count of independent trials, which no corpus runs out of."""
    decides_mean: bool = False
    """Whether it decides a mean score, and not a rate of passing trials."""
    compares_baseline: bool = False
    """Whether it compares the rate with a baseline's."""
    may_stop_early: bool = False
    """Whether its designs have boundaries that may decide after any trial."""
    shares_trials: bool = False
    """Whether its boundaries are chosen for the longest of several criteria on the same trials."""
    may_be_withdrawn: bool = False
    """Whether a decision is about a rate that later trials can contradict."""

    long_run: str = ""
    """How often the rule errs, as the rest of a sentence that starts "In the long run,"."""

    def plan(self, criterion: Criterion, situation: Situation) -> CriterionPlan | Refused:
        """Plan a criterion, or refuse a design that cannot support its claim.

        Args:
            criterion: What is promised.
            situation: Where and how it is tested.
        """
        raise NotImplementedError

    def decide(self, plan: CriterionPlan, counts: Counts) -> Conclusion:
        """Decide a criterion from its plan and the counts, and from nothing else.

        A plan that was cut short is INCONCLUSIVE: deciding at the size that happened to be
        reached would be another rule than the one that was planned.

        Args:
            plan: What this procedure planned.
            counts: The trials that count.
        """
        from trialwise.procedures.partial_findings import conclude_certain, conclude_short

        # A look at a judged rate is decided as the end is, by the corrected rate.
        is_look = bool(plan.judging.looks) and counts.decision is not None
        if counts.is_complete or is_look:
            return self.conclude(plan, counts)
        if counts.decision is not None:
            return conclude_certain(plan, counts)
        return conclude_short(plan, counts)

    def conclude(self, plan: CriterionPlan, counts: Counts) -> Conclusion:
        """Decide a design that ran to its end.

        Args:
            plan: What this procedure planned.
            counts: All planned trials.
        """
        raise NotImplementedError

    def complete(
        self, plan: CriterionPlan, conclusion: Conclusion, stop: StopReason, run: Plan
    ) -> Conclusion:
        """Add what a reader needs beside the decision: hypotheses, an interval, advice.

        Args:
            plan: What this procedure planned.
            conclusion: What was decided, by this procedure or because the run was cut short.
            stop: Why no further trial was counted.
            run: The plan of the whole run.
        """
        null, alternative = self.hypotheses(plan)
        advice, caution = conclusion.advice, conclusion.caution
        is_named = caution is Caution.ADEQUATE_POWER and has_agreeing_interval(plan)
        power = self.characterize(plan, run.intent_of(plan)).power if is_named else None
        if is_named and (power is None or power < USUAL_POWER):
            caution = Caution.POWER_NOT_SHOWN
        if not advice and stop.is_premature and conclusion.decision is Decision.INCONCLUSIVE:
            from trialwise.procedures.partial_findings import word_more_trials

            advice = word_more_trials(plan, conclusion.tally)
        return replace(
            conclusion,
            caution=caution,
            null=conclusion.null or null,
            alternative=conclusion.alternative or alternative,
            advice=advice,
            confidence_statement=conclusion.confidence_statement
            or self.assure(plan, run.intent_of(plan)),
        )

    def hypotheses(self, plan: CriterionPlan) -> tuple[str, str]:
        """Return the hypothesis that is given up only for evidence, and its alternative."""
        null, alternative = HYPOTHESES[plan.threshold.origin]
        required, shown = plan.threshold.required_rate, plan.threshold.alternative_rate
        if required is None:
            return null, alternative
        if shown is None or shown == required:
            return f"p ≤ {required:g}: {null}", f"p > {required:g}: {alternative}"
        # With a margin a PASS rules out less than what is required, and a reader who took the
        # usual hypotheses for those of this test would believe in a stronger claim.
        margin = f"{required:g} less the margin"
        return f"p ≤ {shown:g}: at or below {margin}", f"p > {shown:g}: above {margin}"

    def assure(self, plan: CriterionPlan, intent: Intent) -> str:
        """Say what the level is a property of: a long-run property, not a probability (§7.2)."""
        return ""

    def describe_rule(self, plan: CriterionPlan) -> str:
        """Say in numbers of trials what PASSes and what FAILs."""
        if plan.cutoff is None or plan.cutoff > plan.trials:
            return f"no count of {plan.trials} trials would PASS"
        most = plan.cutoff - 1 if plan.failing.most_failing is None else plan.failing.most_failing
        fails = f"FAIL with at most {most}" if most >= 0 else "never FAIL"
        between = ", between: INCONCLUSIVE" if most < plan.cutoff - 1 else ""
        rule = f"PASS with at least {plan.cutoff} of {plan.trials}, {fails}{between}"
        return f"{rule}{self.describe_share(plan)}"

    def describe_share(self, plan: CriterionPlan) -> str:
        """Say which counts of a corrected criterion decide whatever the others decide."""
        family = plan.others.family
        if family is None or plan.alpha is None:
            return ""
        sides = []
        if plan.cutoff is not None and not plan.counting.stops_early:
            strict = self.scale_levels(plan, lambda level: level * family.least_share)
            most = strict.failing.most_failing
            if self.compares_baseline:
                most = (strict.cutoff or 0) - 1
            elif strict.cutoff is not None:
                sides.append(f"PASS with at least {strict.cutoff}")
            if most is not None and most >= 0:
                sides.append(f"FAIL with at most {most}")
        sure = f": {' and '.join(sides)}, whatever the others decide" if sides else ""
        return f"; one of {family.decisions} decisions together, {family.correction}{sure}"

    def characterize(self, plan: CriterionPlan, intent: Intent) -> Characteristic:
        """Return how the rule of a plan decides, whatever the true rate is.

        Args:
            plan: What this procedure planned.
            intent: A smoke run that is too small PASSes on less than evidence.
        """
        is_compliance = self.error_family == "false-compliance"
        return limit_by_levels(plan, Decision.PASS if is_compliance else Decision.FAIL)

    def derive_design(self, plan: CriterionPlan) -> Design | None:
        """Compute the design again from the rest of the plan, to verify a record.

        Return None if the plan has no design, or if its check needs more than a computation.
        """
        return None

    def scale_levels(self, plan: CriterionPlan, scale: Callable[[float], float]) -> CriterionPlan:
        """Return the plan of a fixed number of trials at other levels, with the cutoffs of these.

        At `family.least_share` of them it decides only what holds whatever the others decide.

        Args:
            plan: What this procedure planned.
            scale: What becomes of each level.
        """
        given = {"alpha": plan.alpha, "beta": plan.beta, "fail_alpha": plan.failing.fail_alpha}
        levels = {name: scale(level) for name, level in given.items() if level is not None}
        scaled = plan.change(**levels)
        derived = self.derive_design(scaled)
        if derived is None:
            return scaled
        # A cutoff is computed again and never scaled: counts are whole, so that half a level is
        # not half a cutoff.
        return replace(scaled, design=derived, cutoff=getattr(derived, "cutoff", None))

    def knows_rate(self, finding: Finding) -> bool:
        """Return whether every case was counted, so that the rate is known and not estimated."""
        return False

    def explain(self, finding: Finding) -> tuple[Section, ...]:
        """Explain the numbers behind a finding, as blocks of the full analysis.

        Args:
            finding: A finding of this procedure.
        """
        from trialwise.procedures.explanations import explain_hypotheses

        return (explain_hypotheses(finding),)
