"""Rates over inputs and strata: the estimator that a claim asks for (§8.2.1).

Apart from `compliance` because an estimator does not count every trial as a draw of its own, and
apart from the two rule sets: each estimator has one rule, whichever set the rest of a verdict uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from typing import TypeAlias

from trialwise import stats
from trialwise.decimals import as_written, complement
from trialwise.documents.numbers import as_percent
from trialwise.errors import InvalidArgument
from trialwise.model.claim import Claim, Estimator, Intent, PopulationClaim, TargetEstimand
from trialwise.model.evidence import EstimatedEvidence, Tally
from trialwise.model.plan import CriterionPlan, ExperimentPlan
from trialwise.model.verdict import Caution, Decision, ObservedRate
from trialwise.procedures.base import Conclusion, Counts, has_agreeing_interval, known
from trialwise.procedures.compliance import NOT_SHOWN, SHOWN_BELOW, observed_status
from trialwise.procedures.criterion_rows import sum_counts
from trialwise.procedures.partial_findings import state_smoke
from trialwise.stats.cluster_estimators import Bounds
from trialwise.validation import require_open_rate

CountsByInput: TypeAlias = Mapping[str, tuple[int, int]]
"""Successes and trials of each input, by its identifier."""

#: What simulated populations gave at a required rate of 90 % (tests/calibration).
APPROXIMATE = (
    "where few inputs are bad, it declares compliance in up to 16 % of runs with 20 inputs and in "
    "up to 10 % with 40, instead of 5 %"
)
NOT_POSTERIOR = "It is not the probability that this verdict is wrong."


class ClaimedCounts:
    """The counts of one criterion by input, with what its claim needs to know of the inputs.

    Args:
        plan: The criterion's.
        counts: What its procedure decides on.
    """

    def __init__(self, plan: CriterionPlan, counts: Counts) -> None:
        experiment, ids = known(counts.experiment), known(counts.experiment).input_ids
        self.claim, self.intent = counts.claim, counts.intent
        self.counts: CountsByInput = counts.by_input
        self.tally = Tally(trials=len(counts.rows), passed=counts.rows.passed)
        self.inputs = len(ids)
        """Inputs of the sampling, tried or not."""
        self.weights = dict(zip(ids, experiment.weights, strict=False))
        self.strata = dict(zip(ids, experiment.strata, strict=False))
        self.required_rate = known(plan.threshold.required_rate)
        self.observed = observed_status(self.tally, self.required_rate)
        """Where the observed rate stands; an estimator may weigh it otherwise."""
        # Earlier plans took no notice of a margin.
        margin = plan.threshold.alternative_rate if has_agreeing_interval(plan) else None
        self.shown_rate = margin or self.required_rate
        """The rate above which a PASS shows it to be: the required one less a margin."""
        is_counted = counts.claim.population is PopulationClaim.FINITE_CORPUS
        self.bound = "of at least" if is_counted else "above"
        """How the rate that a PASS shows lies to the target, which a corpus may have exactly."""
        self.unit = "inputs"
        """What was drawn: inputs, or clusters of them."""
        if counts.claim.estimator is not None and counts.claim.estimator.takes_inputs:
            self.counts = _merge_copies(self.counts, experiment)
            self.unit = "clusters" if experiment.clusters else "inputs"

    @property
    def target(self) -> str:
        """The rate that a PASS shows, as text."""
        return f"{self.shown_rate:g}"

    def conclude(self, decision: Decision, statement: str, **given: object) -> Conclusion:
        """Make a conclusion with what all of them have in common.

        Args:
            decision: What was decided.
            statement: The decision with its reason.
            given: Further fields.
        """
        fields = {"caution": Caution.for_decision(decision, self.observed)}
        return Conclusion(
            decision=decision,
            tally=self.tally,
            statement=statement,
            observed_rate=self.observed,
            **(fields | given),  # type: ignore[arg-type]
        )

    def conclude_nothing(self, reason: str, *, leaves_open: bool = False) -> Conclusion:
        """Return a design of which no result could have been a PASS, or no result at all."""
        if not self.tally.trials:
            return Conclusion.without_trials(self.tally)
        tried = f"{self.tally.trials} trials of {len(self.counts)} {self.unit}"
        fails = self.intent is Intent.SMOKE and not leaves_open
        return Conclusion(
            decision=Decision.FAIL if fails else Decision.INCONCLUSIVE,
            tally=self.tally,
            caution=Caution.FEASIBILITY_REFUSED,
            statement=f"{tried} cannot show a rate of {self.target}: {reason}.",
        )

    def state(self, decision: Decision, fact: str, ground: str | None = None) -> str:
        """Return the statement of a finding, softened for a smoke run (§5.7.4)."""
        if self.intent is Intent.SMOKE:
            return state_smoke(decision, self.observed, self.target, fact)
        if decision is Decision.PASS:
            return f"The evidence supports a rate {self.bound} {self.target} ({fact})."
        if ground == SHOWN_BELOW:
            return f"The evidence shows a rate below {self.required_rate:g} ({fact})."
        return f"A rate {self.bound} {self.target} was not shown ({fact})."


def _merge_copies(counts: CountsByInput, experiment: ExperimentPlan) -> CountsByInput:
    """Counts by sampled unit: a repeated row, and another input of a cluster, is no new one."""
    ids = experiment.input_ids
    units = zip(experiment.find_units(), ids, strict=True)
    return sum_counts((ids[unit], counts[name]) for unit, name in units if name in counts)


def matched_estimate(
    claim: Claim,
    counts: CountsByInput,
    *,
    alpha: float,
    weights: Mapping[str, float],
    strata: Mapping[str, str | None],
    bounds: Bounds = "exact",
) -> stats.ClusterEstimate | stats.StratifiedEstimate:
    """Estimate the rate of a claim. The lower end of the interval is the bound at alpha.

    Args:
        claim: A claim that has an estimator.
        counts: The counts of at least one input, each with at least one trial.
        alpha: The level of the bound, below 0.5.
        weights: The weights of each input, 1 where not given.
        strata: The strata of each input, for a stratum-weighted rate.
        bounds: The interval: "score" for plans of earlier versions.
    """
    if require_open_rate("alpha", alpha) >= 0.5:
        raise InvalidArgument("alpha", alpha, "be below 0.5: a bound needs more than even odds")
    # Two-sided, so that each end alone is a bound at alpha: a PASS asks about the lower one only.
    confidence = float(1 - 2 * as_written(alpha))
    if claim.estimator is Estimator.STRATIFIED:
        parts = _strata(claim, counts, weights, strata)
        return stats.stratum_weighted(parts, confidence=confidence, method=bounds)
    tallies = list(counts.values())
    if claim.estimator is not None and claim.estimator.is_model:
        # Few claims need a model, and it loads the fits.
        model: stats.ModelMethod = claim.estimator.value  # type: ignore[assignment]
        return stats.modelled_rate(tallies, confidence=confidence, method=model, bounds=bounds)
    by_input = claim.estimand is TargetEstimand.PROMPT_WEIGHTED
    # Weighing calls alike lets an input that was repeated often speak for the others (§8.2.1).
    estimate = stats.prompt_weighted if by_input else stats.call_weighted
    return estimate(
        tallies,
        confidence=confidence,
        method="korn-graubard" if claim.estimator is Estimator.KORN_GRAUBARD else "prompts",
        bounds=bounds,
    )


def _strata(
    claim: Claim,
    counts: CountsByInput,
    weights: Mapping[str, float],
    strata: Mapping[str, str | None],
) -> list[stats.Stratum]:
    """Return the stratum of each input; without strata every input is one of its own."""
    alike = claim.estimand is TargetEstimand.PROMPT_WEIGHTED
    shares: dict[str, float] = {}
    labels = {name: name for name in (*weights, *counts)}
    if claim.estimand is TargetEstimand.STRATUM_WEIGHTED:
        labels = {name: str(label) for name, label in strata.items()}
    for name, label in labels.items():
        shares[label] = shares.get(label, 0.0) + (1.0 if alike else weights.get(name, 1.0))
    tallies = sum_counts((label, counts.get(name, (0, 0))) for name, label in labels.items())
    return [
        stats.Stratum(name=label, weight=shares[label], successes=passed, trials=trials)
        for label, (passed, trials) in tallies.items()
    ]


def conclude_estimated(plan: CriterionPlan, counts: Counts) -> Conclusion:
    """Decide by the claim's estimator: PASS where the one-sided lower bound reaches the rate.

    FAIL where the upper bound stays below the required rate. Between the two the plan says whether
    it is INCONCLUSIVE or FAIL.

    Args:
        plan: With an estimator.
        counts: All planned trials.
    """
    case, alpha = ClaimedCounts(plan, counts), known(plan.alpha)
    estimator, estimand = known(case.claim.estimator), case.claim.estimand
    is_versioned, fail_alpha = has_agreeing_interval(plan), plan.failing.fail_alpha or alpha
    leaves_open = plan.failing.fail_alpha is not None
    # Plans of earlier versions are decided as they were planned.
    is_exact = is_versioned or (plan.decision_rule or "").startswith("compliance/stratified-exact/")
    untried = _find_untried(case, estimator)
    if case.tally.trials == 0 or untried:
        return case.conclude_nothing(untried, leaves_open=leaves_open)
    match = partial(
        matched_estimate,
        case.claim,
        weights=case.weights,
        strata=case.strata,
        bounds="exact" if is_exact else "score",
    )
    found = match(case.counts, alpha=alpha)
    other = found if fail_alpha == alpha else match(case.counts, alpha=fail_alpha)
    if isinstance(found.interval, stats.Undefined) or isinstance(other.interval, stats.Undefined):
        reason = getattr(found.interval, "reason", "")
        return case.conclude_nothing(reason, leaves_open=leaves_open)
    low, high = found.interval.low, other.interval.high
    is_below = high < case.required_rate
    # A design of which no result could be a PASS must not FAIL: its size decided, not the service.
    without_failure = {name: (trials, trials) for name, (_, trials) in case.counts.items()}
    perfect = match(without_failure, alpha=alpha).interval
    best = 1.0 if isinstance(perfect, stats.Undefined) else perfect.low
    if best < case.shown_rate and not (leaves_open and is_below):
        reason = f"even without a failure the bound would be {best:.4g}"
        return case.conclude_nothing(reason, leaves_open=leaves_open)
    decision = Decision.PASS if low >= case.shown_rate else Decision.FAIL
    if decision is Decision.FAIL and leaves_open and not is_below:
        decision = Decision.INCONCLUSIVE
    case.observed = _weighted_observed(case, found)
    ground, end, bound, error = None, "lower", low, alpha
    if is_versioned and decision is Decision.FAIL:
        ground = SHOWN_BELOW if is_below else NOT_SHOWN
    if ground == SHOWN_BELOW:
        end, bound, error = "upper", high, fail_alpha
    confidence = complement(float(as_written(alpha) + as_written(fail_alpha)))
    interval = stats.Interval(low, high, confidence=confidence, method=found.interval.method)
    level = f"{as_percent(1 - error)} {end} bound {bound:.4g}"
    fact = f"{estimand} rate {found.rate:.4g} over {len(case.counts)} {case.unit}, {level}"
    return case.conclude(
        decision,
        case.state(decision, fact, ground),
        evidence=EstimatedEvidence(
            estimator=found, estimate=found.rate, lower_bound=low, interval=interval, ground=ground
        ),
        null=f"the {estimand} rate is at most {case.target}",
        alternative=f"the {estimand} rate is above {case.target}",
        confidence_statement=_state_assumptions(case, estimator, alpha),
    )


def _find_untried(case: ClaimedCounts, estimator: Estimator) -> str:
    """Return which part of a weighted rate has no trial to stand for it; empty where each has."""
    if estimator is not Estimator.STRATIFIED:
        return ""
    parts = _strata(case.claim, case.counts, case.weights, case.strata)
    untried = next((one.name for one in parts if one.trials == 0), None)
    if untried is not None:
        return f"{untried} was not tried"
    by_input = case.claim.estimand is not TargetEstimand.STRATUM_WEIGHTED
    return "not every input was tried" if by_input and len(case.counts) < case.inputs else ""


def _weighted_observed(
    case: ClaimedCounts, found: stats.ClusterEstimate | stats.StratifiedEstimate
) -> ObservedRate:
    """Return where the estimate stands, in rationals: 0.9 is at 0.9 and not beside it."""
    parts = [(Fraction(1), Fraction(*pair)) for pair in case.counts.values()]
    if isinstance(found, stats.StratifiedEstimate):
        parts = [
            (as_written(one.weight), Fraction(int(one.successes), int(one.trials)))
            for one in found.strata
        ]
    elif found.estimand != "prompt-weighted":
        return observed_status(case.tally, case.required_rate)
    required = as_written(case.required_rate)
    return ObservedRate.from_gap(sum((w * (rate - required) for w, rate in parts), Fraction()))


def _state_assumptions(case: ClaimedCounts, estimator: Estimator, alpha: float) -> str:
    """Return the level of the bound with its assumptions."""
    level = f"of at most {alpha:g}"
    given = f"the {case.unit} are independent draws from {case.claim.population_name}"
    if estimator is Estimator.STRATIFIED:
        given = (
            "the weights are as declared and the trials of one stratum are independent, by an "
            "exact binomial bound on as many trials as the largest weight per trial is worth"
        )
    elif estimator is Estimator.PROMPTS:
        given += f", by an exact binomial bound on as many trials as there are {case.unit}"
    else:
        level = f"of about {alpha:g}"
        given += f", by the bound of {estimator}, which is approximate: {APPROXIMATE}"
    return (
        f"If the rate were at or below {case.target}, this rule would falsely declare compliance "
        f"with a probability {level}, provided that {given}. {NOT_POSTERIOR}"
    )
