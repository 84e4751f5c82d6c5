"""Whether a design can support its claim, and how its inputs are drawn (companion §8.2.1, §8.4.6).

What a verdict is about is declared, never inferred: these inputs, a corpus, a population, or only
the run. Here a plan is held against that declaration before the first trial; `estimated_rates`
decides by the estimator that the claim asks for.

The default claim, about exactly these inputs, needs none. Drawn in balance and in random order,
unlike inputs make the number of successes a sum of independent trials of unlike rates, whatever
the number of inputs and of trials, and such a sum strays less than a binomial one of the same mean
(Hoeffding 1956). What that does to each rule is computed exactly in tests/calibration. What the
other claims need is imported where they are checked, as few runs make them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from trialwise.decimals import as_written
from trialwise.documents.numbers import as_count
from trialwise.model.claim import Claim, Estimator, Intent, PopulationClaim, TargetEstimand
from trialwise.model.plan import CriterionPlan, ExperimentPlan
from trialwise.procedures.base import Procedure
from trialwise.procedures.registry import find_procedure
from trialwise.stats.result_types import Undefined
from trialwise.stats.sequential.concurrency import Draw

#: Up to this share of a corpus the binomial law stands in for the hypergeometric one: it makes the
#: standard error at most 2.6 % too large (the usual 5 % rule of survey sampling).
SMALL_FRACTION = 0.05


class ClaimCheck(NamedTuple):
    """What stands between a plan and its claim."""

    refusals: tuple[str, ...]
    """Each with what was configured and the ways out; empty where the plan is admitted."""
    caveats: tuple[str, ...]
    """What the verdict has to say of itself."""


class _Doubt(NamedTuple):
    text: str
    refuses: frozenset[Intent]
    """The intents under which it is a refusal; under the others it is a caveat."""


_refuse = partial(_Doubt, refuses=frozenset(Intent))
_refuse_to_verify = partial(_Doubt, refuses=frozenset({Intent.VERIFICATION}))
_warn = partial(_Doubt, refuses=frozenset())


class _Plan(NamedTuple):
    """One criterion and the experiment that it is decided on."""

    criterion: CriterionPlan
    experiment: ExperimentPlan
    procedure: Procedure

    @property
    def inputs(self) -> int:
        """Inputs as they are listed."""
        return len(self.experiment.input_ids)

    @property
    def distinct(self) -> int:
        """Distinct inputs, J: a value that is listed twice, or a cluster, is one input."""
        return len(set(self.experiment.find_units()))

    @property
    def trials(self) -> int:
        """Planned, or the most of a sequential decision; of all inputs together."""
        return self.criterion.count_trials(self.inputs)

    @property
    def most(self) -> int:
        """How often the input is tried that is tried most often, relative to the others."""
        return max(self.experiment.repetitions)

    @property
    def spread(self) -> str:
        """How often inputs are tried, relative to the others."""
        return f"{min(self.experiment.repetitions)} to {self.most}"

    @property
    def is_even(self) -> bool:
        """Whether every input is drawn equally often."""
        return len(set(self.experiment.repetitions)) <= 1

    @property
    def slots(self) -> int:
        return sum(self.experiment.repetitions)

    @property
    def is_clustered(self) -> bool:
        """Whether an input may be tried more than once: then trials are no draws of their own.

        Two trials of each input already make a false PASS several times as likely as stated, where
        answers hardly vary.
        """
        repeats = self.trials > self.distinct or self.experiment.draw != "balanced"
        return repeats or self.distinct < self.inputs or self.most > 1


def default_draw() -> Draw:
    """Return how inputs are drawn where nobody says: balanced, for every procedure.

    Of every population of inputs with one mean rate, alike inputs give the largest P(FAIL) at p0
    and P(PASS) at p1 of a sequential design, and the largest false compliance: exactly what
    independent draws give whatever the inputs. Balanced draws are below that, the more so the more
    inputs differ (tests/calibration/test_fixed_inputs.py).

    It raises no error rate of the usual designs, and adds no chance of its own. A sequential design
    that FAILs at its very first failure is an exception, and a small one: it may do so with
    probability −log(1 − α) instead of α, 5.1 % for 5 %. Under independent draws none does.

    >>> default_draw()
    'balanced'
    """
    return "balanced"


def check_claim(
    claim: Claim, criterion: CriterionPlan, experiment: ExperimentPlan, intent: Intent
) -> ClaimCheck:
    """Hold a planned design against what it claims, before the first trial.

    An observational criterion claims no rate and is always admitted.

    Args:
        claim: What the verdict is to be about.
        criterion: How it will be decided.
        experiment: The inputs, and how they are drawn.
        intent: Verification refuses some of what smoke only discloses.
    """
    procedure = find_procedure(criterion.procedure)
    if not procedure.claims_rate or criterion.standing.reported_at is not None:
        return ClaimCheck((), ())
    plan = _Plan(criterion, experiment, procedure)
    found = list(_list_doubts(claim, plan))
    if claim.estimator is not None and not any(intent in doubt.refuses for doubt in found):
        found += _infeasible(claim, plan)
    return ClaimCheck(
        tuple(doubt.text for doubt in found if intent in doubt.refuses),
        tuple(doubt.text for doubt in found if intent not in doubt.refuses),
    )


def _list_doubts(claim: Claim, plan: _Plan) -> Iterator[_Doubt]:
    match claim.population:
        case PopulationClaim.FIXED_INPUTS:
            yield from _check_estimator(claim, plan)
            if (distinct := plan.experiment.distinct_inputs) < plan.inputs:
                values = as_count(distinct, "distinct value")
                yield _warn(
                    f"The {plan.inputs} inputs hold {values}; one that is listed several times "
                    "counts as often."
                )
        case PopulationClaim.SUPERPOPULATION if claim.estimand.weighs_inputs:
            # They would hardly ever draw a rare input with a large weight, and the bound would not
            # know of it.
            yield _refuse(
                f"no estimator is valid for a {claim.estimand} rate of {claim.population_name}: "
                "the weights of the inputs that were drawn say nothing about the others. Name "
                "strata, give all inputs of one the same weight, try each input once and declare "
                "stratum-weighted with estimator=stratified; or draw the inputs in proportion to "
                "their weights and declare prompt-weighted with estimator=prompts; or claim "
                "fixed-inputs with estimator=stratified"
            )
        case PopulationClaim.SUPERPOPULATION:
            yield from _check_estimator(claim, plan)
            yield from _superpopulation(claim, plan)
        case PopulationClaim.FINITE_CORPUS:
            yield from _check_unestimated(claim)
            yield from _finite_corpus(plan)
        case PopulationClaim.NO_GENERALISATION:
            yield from _check_unestimated(claim)
            yield from _no_generalisation(plan)


# --- The estimator must match the estimand (§8.2.1) -----------------------------------------------


def _check_estimator(claim: Claim, plan: _Plan) -> Iterator[_Doubt]:
    estimand, estimator = claim.estimand, claim.estimator
    if estimand is TargetEstimand.NO_GENERALISATION:
        yield _refuse(
            "the estimand no-generalisation names no rate: claim the population no-generalisation "
            "with it, or name the rate, such as call-weighted"
        )
    if estimator is None:
        yield from _check_unweighted(claim, plan)
        return
    if not plan.procedure.decides_fixed_rate:
        asked = plan.procedure.name.lower()
        yield _refuse(
            f"estimator={estimator} decides a required rate from a fixed number of trials, and "
            f"this is a {asked} decision: give at_least with trials, or leave the estimator out "
            "and claim fixed-inputs"
        )
    if estimator is Estimator.STRATIFIED:
        yield from _check_stratified(claim, plan)
        return
    if estimand.is_weighted:
        yield _refuse(
            f"estimator={estimator} weighs inputs alike, or calls; a {estimand} rate needs "
            "estimator=stratified"
        )
    if claim.population is PopulationClaim.FIXED_INPUTS:
        yield _refuse(
            f"estimator={estimator} takes the inputs as a sample of others, and a claim about "
            "fixed inputs does not: leave the estimator out, or claim a superpopulation and name "
            "it"
        )


def _check_unweighted(claim: Claim, plan: _Plan) -> Iterator[_Doubt]:
    """Yield what the plain binomial rule can estimate."""
    estimand = claim.estimand
    if estimand.is_weighted:
        yield _refuse(
            f"a {estimand} rate needs estimator=stratified and a fixed number of trials: the plain "
            "rule counts every trial alike"
        )
    elif estimand is TargetEstimand.PROMPT_WEIGHTED and not plan.is_even:
        wide = claim.population is PopulationClaim.SUPERPOPULATION
        yield _refuse(
            f"inputs are repeated {plan.spread} times, so the plain rule does not weigh them alike "
            "as a prompt-weighted rate does: repeat every input equally often, declare "
            f"call-weighted, or set estimator={'prompts' if wide else 'stratified'} with a fixed "
            "number of trials"
        )


def _check_stratified(claim: Claim, plan: _Plan) -> Iterator[_Doubt]:
    estimand = claim.estimand
    by_stratum = estimand is TargetEstimand.STRATUM_WEIGHTED
    if estimand is TargetEstimand.CALL_WEIGHTED:
        yield _refuse(
            "estimator=stratified weighs inputs or strata, and a call-weighted rate weighs "
            "neither: declare the estimand (prompt-, stratum-, production- or severity-weighted), "
            "or leave the estimator out"
        )
    elif by_stratum:
        yield from _strata(plan)
    elif estimand.is_weighted and len(set(plan.experiment.weights)) <= 1:
        yield _refuse(
            f"a {estimand} rate needs the weight of each input, and no two differ: give the "
            "weights, or declare prompt-weighted"
        )
    if claim.population is PopulationClaim.SUPERPOPULATION and not by_stratum:
        yield _refuse(
            f"estimator=stratified speaks of {claim.population_name} only by strata whose inputs "
            "are a sample: declare stratum-weighted and name the strata, set estimator=prompts, "
            "or claim fixed-inputs"
        )
    if plan.experiment.draw != "balanced" or plan.trials < plan.slots:
        yield _refuse(
            f"every input has to be tried, which {plan.trials} {plan.experiment.draw} draws do not "
            f"ensure: draw balanced, with at least {plan.slots} trials"
        )


def _strata(plan: _Plan) -> Iterator[_Doubt]:
    if not plan.experiment.strata or None in plan.experiment.strata:
        yield _refuse("a stratum-weighted rate needs every input to name its stratum")
        return
    pairs = dict.fromkeys(zip(plan.experiment.strata, plan.experiment.weights, strict=False))
    weights = Counter(stratum for stratum, _ in pairs)
    uneven = next((name for name, given in weights.items() if given > 1), None)
    if uneven is not None:
        yield _refuse(
            f"the inputs of stratum {uneven} have different weights, and within a stratum "
            "trials count alike: give them one weight, or declare production-weighted or "
            "severity-weighted"
        )


def _check_unestimated(claim: Claim) -> Iterator[_Doubt]:
    """Claims about a corpus or a run count; they estimate nothing."""
    if claim.estimator is not None or claim.estimand.is_weighted:
        asked = claim.estimand if claim.estimator is None else f"estimator={claim.estimator}"
        yield _refuse(
            f"a {claim.population} claim counts its trials alike and has no use for {asked}: leave "
            "it out, or claim fixed-inputs with estimator=stratified"
        )


# --- The three claims beyond the default (§8.4.6) -------------------------------------------------


#: With fewer inputs the interval of a model is clearly too narrow.
_FEWEST_MODELLED = 20


def _superpopulation(claim: Claim, plan: _Plan) -> Iterator[_Doubt]:
    name, estimator = claim.population_name, claim.estimator
    by_input = estimator is not None and estimator.takes_inputs
    if plan.is_clustered and not by_input:
        yield _refuse_to_verify(_too_few_inputs(claim, plan))
    yield from _check_baseline_inputs(claim, plan)
    if by_input and plan.distinct < 2:
        yield _refuse_to_verify(
            f"one input says nothing about how inputs differ, so nothing about {name}: give at "
            "least two, or claim fixed-inputs"
        )
    argument = claim.representativeness.strip() or "none is recorded"
    unit = "cluster" if plan.experiment.clusters else "input"
    counted = unit if by_input else "trial"
    yield _warn(
        f"Every {counted} is taken as an independent draw from {name}; the argument that the "
        f"inputs represent it: {argument}."
    )
    if by_input and estimator is not Estimator.PROMPTS:
        from trialwise.procedures.estimated_rates import APPROXIMATE

        yield _warn(
            f"{estimator} is approximate: {APPROXIMATE}. estimator=prompts is safe whatever the "
            "inputs do."
        )
    if estimator is not None and estimator.is_model:
        if plan.distinct < _FEWEST_MODELLED:
            yield _refuse_to_verify(
                f"estimator={estimator} needs at least {_FEWEST_MODELLED} distinct inputs, and "
                f"there are {plan.distinct}: with fewer its bound is too high. Give more inputs, "
                "or set estimator=prompts, which is safe with few"
            )
        if not plan.is_even:
            yield _refuse(
                f"estimator={estimator} estimates the mean rate of inputs, and inputs are repeated "
                f"{plan.spread} times: repeat every input equally often, or set estimator=prompts"
            )


def _too_few_inputs(claim: Claim, plan: _Plan) -> str:
    n, J = plan.trials, plan.distinct
    has_clusters = bool(plan.experiment.clusters)
    kind, one = ("clusters of inputs", "cluster") if has_clusters else ("distinct inputs", "input")
    listed = "" if plan.inputs == J else f", listed in {plan.inputs} rows"
    repeated = "" if plan.is_even else f" with up to {plan.most} repetitions"
    estimator = ""
    # An estimator decides a required rate only, so that a regression has to change its inputs.
    if not claim.estimand.is_weighted and not plan.procedure.compares_baseline:
        fixed = "" if plan.procedure.decides_fixed_rate else " with a fixed number of trials"
        estimator = f", or set estimator=prompts{fixed}"
    return (
        f"{n} trials over {J} {kind}{listed}{repeated} try some {one} more than once, and "
        f"a repetition is not new evidence about {claim.population_name}. Give at least {n} "
        f"{kind} and draw each once{estimator}, or claim what the run can show: "
        "fixed-inputs, finite-corpus or no-generalisation"
    )


def _check_baseline_inputs(claim: Claim, plan: _Plan) -> Iterator[_Doubt]:
    """Hold the baseline of a regression to the same rule as the test (§8.2.1)."""
    found = plan.criterion.threshold.baseline
    if not plan.procedure.compares_baseline or found is None:
        return
    if found.inputs is None:
        yield _warn(
            f"The baseline does not say how many inputs its {found.trials} trials asked; this "
            "counts each as a draw of its own. Measure it again to have them counted."
        )
    elif found.trials > found.inputs:
        most = found.repetitions or math.ceil(found.trials / found.inputs)
        yield _refuse_to_verify(
            f"the baseline's {found.trials} trials asked {found.inputs} distinct inputs, one of "
            f"them {most} times, and a repetition is not new evidence about "
            f"{claim.population_name}: where inputs differ, an unchanged service FAILs several "
            f"times as often as stated. Measure a baseline that asks each of at least "
            f"{found.trials} inputs once (measure --trials with as many inputs), or claim "
            "fixed-inputs"
        )


def _infeasible(claim: Claim, plan: _Plan) -> Iterator[_Doubt]:
    """Yield whether the bound would stay below the requirement even if no trial failed."""
    threshold, alpha = plan.criterion.threshold, plan.criterion.alpha
    required = threshold.alternative_rate or threshold.required_rate
    if required is None or alpha is None:
        return
    from trialwise.procedures.estimated_rates import matched_estimate
    from trialwise.stats.compliance_cutoffs import minimum_trials

    names = [str(place) for place in range(plan.inputs)]
    units: Sequence[object] = names
    if claim.estimator is not Estimator.STRATIFIED:
        units = plan.experiment.find_units()
    shares = Counter[str]()
    for unit, times in zip(units, plan.experiment.repetitions, strict=True):
        shares[str(unit)] += max(1, plan.trials * times // plan.slots)
    found = matched_estimate(
        claim,
        {name: (share, share) for name, share in shares.items()},
        alpha=alpha,
        weights=dict(zip(names, plan.experiment.weights, strict=False)),
        strata=dict(zip(names, plan.experiment.strata, strict=False)),
    ).interval
    low = 0.0 if isinstance(found, Undefined) else found.low
    if low >= required:
        return
    # As many as a rule that counts every trial alike would take: about, since the design effect
    # is known only once there are failures.
    needed = minimum_trials(required, alpha=alpha)
    unit = "trials, by weight" if claim.estimator is Estimator.STRATIFIED else "inputs, tried alike"
    yield _refuse_to_verify(
        f"{plan.trials} trials of {plan.inputs} inputs cannot show a rate of {required:g} by "
        f"estimator={claim.estimator}: even without a failure the bound would be {low:.4g}. About "
        f"{needed} {unit}, are needed"
    )


def _finite_corpus(plan: _Plan) -> Iterator[_Doubt]:
    n, N = plan.trials, plan.inputs
    if n > N or plan.most > 1:
        yield _refuse(
            f"a finite-corpus claim takes each of its {N} inputs at most once, and {n} trials "
            f"with up to {plan.most} repetitions are planned: run at most {N} trials "
            "without repetitions, or claim fixed-inputs, which may repeat"
        )
    if plan.experiment.draw != "balanced":
        yield _refuse("independent draws may take an input twice: draw balanced")
    if plan.procedure.may_stop_early:
        yield _refuse(
            "a finite corpus is sampled without replacement, which the sequential boundaries do "
            f"not know: give trials ({N} for the whole corpus), or claim fixed-inputs"
        )
    elif plan.procedure.compares_baseline:
        # The binomial law is too wide here: it errs towards fewer decisions, never towards more.
        doubt = _warn if n <= as_written(SMALL_FRACTION) * N else _refuse_to_verify
        yield doubt(
            f"A regression rule takes its trials as binomial, although {n} of {N} inputs "
            f"({100 * n / N:.0f} %) are sampled without replacement. A comparison of the "
            "service's rates over the same inputs is a fixed-inputs claim."
        )
    elif n < N:
        yield _warn(
            f"{n} of the corpus's {N} inputs are tried ({100 * n / N:.0f} %); the bound accounts "
            "for those left out, not for answers that change from call to call."
        )
    else:
        yield _warn(
            "Every input of the corpus is tried, so its rate is known for these answers; a "
            "service that answers differently another time has another. For its success "
            "probability over these inputs claim fixed-inputs."
        )


def _no_generalisation(plan: _Plan) -> Iterator[_Doubt]:
    if not plan.procedure.decides_fixed_rate:
        asked = plan.procedure.name.lower()
        yield _refuse(
            f"a {asked} decision is about a rate beyond the run, and a no-generalisation claim "
            "makes none: give at_least with trials, or claim fixed-inputs"
        )
    yield _warn(
        "This describes the trials of the run and nothing else: it is not evidence of compliance, "
        "and none to release on."
    )
