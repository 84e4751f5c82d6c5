"""Compliance by the rule that a claim asks for: over inputs, over strata, in a corpus, in the run.

Apart from `compliance` because none of these counts every trial as a draw of its own, and apart
from the two rule sets: each has one rule, whichever set the rest of a verdict uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TypeAlias, TypeVar

from trialwise.decimals import as_written, ceil_product, complement, settled
from trialwise.errors import InvalidArgument
from trialwise.model.claim import Claim, Estimator, PopulationClaim, TargetEstimand
from trialwise.model.tally import Tally
from trialwise.model.verdict import (
    Caution,
    Decision,
    Finding,
    Intent,
    ObservedRate,
    Procedure,
    PValue,
)
from trialwise.procedures.compliance import decide_compliance, observed_status
from trialwise.stats.cluster_estimators import ClusterEstimate, call_weighted, prompt_weighted
from trialwise.stats.cluster_stratified import StratifiedEstimate, Stratum, stratified
from trialwise.stats.finite import (
    FiniteCorpusCutoff,
    exact_corpus_rate,
    finite_corpus_cutoff,
    finite_corpus_interval,
)
from trialwise.stats.finite_hypergeometric import exact_tail, tail
from trialwise.stats.result_types import Rule, Undefined
from trialwise.validation import require_open_rate

__all__ = ["Counts", "decide_claimed", "matched_estimate"]

Counts: TypeAlias = Mapping[str, tuple[int, int]]
"""Successes and trials of each input, by its identifier."""

T = TypeVar("T")

_NOT_POSTERIOR = "It is not the probability that this verdict is wrong."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """One criterion with everything its rule needs."""

    criterion: str
    counts: Counts
    tally: Tally
    claim: Claim
    required_rate: float
    intent: Intent
    inputs: int | None
    weights: Mapping[str, float]
    strata: Mapping[str, str | None]

    @property
    def target(self) -> str:
        return f"{self.required_rate:g}"

    def finding(self, decided_by: str, decision: Decision, observed: ObservedRate) -> Finding:
        """What every finding of the case has in common."""
        met = observed is not ObservedRate.BELOW_THRESHOLD
        short = Caution.STRANDS_DISAGREE if met else Caution.FAIL_CLEAR
        return Finding(
            criterion=self.criterion,
            procedure=Procedure.COMPLIANCE,
            rule=None,
            decision_rule=decided_by,
            decision=decision,
            tally=self.tally,
            intent=self.intent,
            observed_rate=observed,
            caution=Caution.ADEQUATE_POWER if decision is Decision.PASS else short,
        )

    def said(
        self, decision: Decision, observed: ObservedRate, fact: str, *, rate: str = "above"
    ) -> str:
        """The statement of a finding, softened for a smoke run (§5.7.4)."""
        if self.intent is Intent.SMOKE:
            target = f"the target of {self.target}"
            if decision is Decision.PASS:
                return f"The observed rate is consistent with {target} ({fact})."
            if observed is ObservedRate.BELOW_THRESHOLD:
                return f"The observed rate is inconsistent with {target} ({fact})."
            return f"The observed rate meets {target} but does not show it ({fact})."
        if decision is Decision.PASS:
            return f"The evidence supports a rate {rate} {self.target} ({fact})."
        return f"A rate {rate} {self.target} was not shown ({fact})."


def decide_claimed(
    criterion: str,
    outcomes: Counts,
    claim: Claim,
    required_rate: float,
    *,
    alpha: float | None = 0.05,
    rule: Rule = "wilson",
    intent: Intent = Intent.VERIFICATION,
    corpus_size: int | None = None,
    weights: Mapping[str, float] | None = None,
    strata: Mapping[str, str | None] | None = None,
) -> Finding:
    """Decide a required rate for what the claim is about.

    With an estimator it PASSes where the one-sided lower bound at alpha reaches the required rate.
    A corpus tried whole PASSes on its own rate, a part of it by the hypergeometric law, a
    no-generalisation claim on the observed rate alone. Any other claim is plain compliance. What
    no result could have shown is INCONCLUSIVE under verification and FAILs under smoke.

    Args:
        criterion: The criterion's name.
        outcomes: Successes and trials of each input that was tried.
        claim: What the verdict is about; `check_claim` admitted the design.
        required_rate: Strictly between 0 and 1.
        alpha: The false-compliance level; not needed where nothing is inferred.
        rule: The rule set, for a claim that plain compliance decides.
        intent: Verification, or a smoke run with its softer wording.
        corpus_size: Inputs of the sampling, tried or not.
        weights: Of each input, where the estimand is weighted.
        strata: Of each input, where it is stratum-weighted.

    >>> claim = Claim(population="finite-corpus")
    >>> whole = {"a": (1, 1), "b": (1, 1), "c": (0, 1)}
    >>> decide_claimed("answers", whole, claim, 0.6, corpus_size=3).decision
    <Decision.PASS: 'PASS'>
    """
    counts = {name: pair for name, pair in outcomes.items() if pair[1]}
    tally = Tally(
        trials=sum(trials for _, trials in counts.values()),
        passed=sum(passed for passed, _ in counts.values()),
    )
    case = _Case(
        criterion=criterion,
        counts=counts,
        tally=tally,
        claim=claim,
        required_rate=require_open_rate("required_rate", required_rate),
        intent=intent,
        inputs=corpus_size,
        weights=weights or {},
        strata=strata or {},
    )
    if claim.population is PopulationClaim.NO_GENERALISATION:
        return _describe(case)
    if claim.population is PopulationClaim.FINITE_CORPUS:
        return _corpus(case, alpha)
    level = _needed("alpha", alpha)
    if claim.estimator is None:
        return decide_compliance(
            criterion, tally, required_rate, alpha=level, rule=rule, intent=intent
        )
    return _estimated(case, claim.estimator, level)


def matched_estimate(
    claim: Claim,
    counts: Counts,
    *,
    alpha: float,
    weights: Mapping[str, float],
    strata: Mapping[str, str | None],
) -> ClusterEstimate | StratifiedEstimate:
    """The estimator of a claim, with the interval whose lower end is the one-sided bound at alpha.

    Args:
        claim: With an estimator.
        counts: Of at least one input, each with at least one trial.
        alpha: Below one half.
        weights: Of each input, 1 where not given.
        strata: Of each input, for a stratum-weighted rate.
    """
    if require_open_rate("alpha", alpha) >= 0.5:
        raise InvalidArgument("alpha", alpha, "be below 0.5: a bound needs more than even odds")
    confidence = float(1 - 2 * as_written(alpha))
    if claim.estimator is Estimator.STRATIFIED:
        return stratified(_strata(claim, counts, weights, strata), confidence=confidence)
    by_input = claim.estimand is TargetEstimand.PROMPT_WEIGHTED
    estimate = partial(prompt_weighted if by_input else call_weighted, list(counts.values()))
    if claim.estimator is Estimator.KORN_GRAUBARD:
        return estimate(confidence=confidence, method="korn-graubard")
    return estimate(confidence=confidence, method="prompts")


def _strata(
    claim: Claim, counts: Counts, weights: Mapping[str, float], strata: Mapping[str, str | None]
) -> list[Stratum]:
    """The strata of a stratum-weighted rate; for the others every input is one of its own."""
    alike = claim.estimand is TargetEstimand.PROMPT_WEIGHTED
    shares: dict[str, float] = {}
    tallies: dict[str, tuple[int, int]] = {}
    if claim.estimand is TargetEstimand.STRATUM_WEIGHTED:
        labels = {name: str(strata[name]) for name in strata}
    else:
        labels = {name: name for name in (*weights, *counts)}
    for name, label in labels.items():
        shares[label] = shares.get(label, 0.0) + (1.0 if alike else weights.get(name, 1.0))
        passed, trials = counts.get(name, (0, 0))
        before, among = tallies.get(label, (0, 0))
        tallies[label] = before + passed, among + trials
    return [
        Stratum(name=label, weight=shares[label], successes=passed, trials=trials)
        for label, (passed, trials) in tallies.items()
    ]


# --- By an estimator (§8.2.1) ---------------------------------------------------------------------


def _estimated(case: _Case, estimator: Estimator, alpha: float) -> Finding:
    decided_by = f"compliance/{estimator}/{case.claim.estimand}"
    untried = _untried(case, estimator)
    if case.tally.trials == 0 or untried:
        return _undecidable(case, decided_by, alpha, untried)
    match = partial(
        matched_estimate, case.claim, alpha=alpha, weights=case.weights, strata=case.strata
    )
    found = match(case.counts)
    if isinstance(found.interval, Undefined):
        return _undecidable(case, decided_by, alpha, found.interval.reason)
    perfect = match({name: (trials, trials) for name, (_, trials) in case.counts.items()}).interval
    if not isinstance(perfect, Undefined) and perfect.low < case.required_rate:
        reason = f"even without a failure the bound would be {perfect.low:.4g}"
        return _undecidable(case, decided_by, alpha, reason)
    low, estimand = found.interval.low, case.claim.estimand
    decision = Decision.PASS if low >= case.required_rate else Decision.FAIL
    observed = _weighted_observed(case, found)
    over = f"over {len(case.counts)} inputs, lower bound {low:.4g}"
    return replace(
        case.finding(decided_by, decision, observed),
        alpha=alpha,
        lower_bound=low,
        interval=found.interval,
        estimate=found.rate,
        estimator=found,
        statement=case.said(decision, observed, f"{estimand} rate {found.rate:.4g} {over}"),
        null=f"the {estimand} rate is at most {case.target}",
        alternative=f"the {estimand} rate is above {case.target}",
        confidence_statement=_assumed(case.claim, estimator, alpha),
    )


def _untried(case: _Case, estimator: Estimator) -> str:
    """Which part of a weighted rate has no trial to stand for it; empty where each has."""
    if estimator is not Estimator.STRATIFIED:
        return ""
    for part in _strata(case.claim, case.counts, case.weights, case.strata):
        if part.trials == 0:
            return f"{part.name} was not tried"
    by_input = case.claim.estimand is not TargetEstimand.STRATUM_WEIGHTED
    missing = by_input and len(case.counts) < (case.inputs or 0)
    return "not every input was tried" if missing else ""


def _weighted_observed(case: _Case, found: ClusterEstimate | StratifiedEstimate) -> ObservedRate:
    """Where the estimate stands, in rationals: 0.9 is at 0.9 and not beside it."""
    if isinstance(found, StratifiedEstimate):
        parts = [
            (as_written(one.weight), Fraction(int(one.successes), int(one.trials)))
            for one in found.strata
        ]
    elif found.estimand == "prompt-weighted":
        parts = [(Fraction(1), Fraction(*pair)) for pair in case.counts.values()]
    else:
        return observed_status(case.tally, case.required_rate)
    gap = sum(w * rate for w, rate in parts) - as_written(case.required_rate) * sum(
        w for w, _ in parts
    )
    if gap == 0:
        return ObservedRate.AT_THRESHOLD
    return ObservedRate.ABOVE_THRESHOLD if gap > 0 else ObservedRate.BELOW_THRESHOLD


def _assumed(claim: Claim, estimator: Estimator, alpha: float) -> str:
    """What the level belongs to, and what it takes for granted."""
    if estimator is Estimator.STRATIFIED:
        given = (
            "the weights are as declared and the trials of one stratum are independent, by a score "
            "interval that is approximate where strata have few trials"
        )
    else:
        given = (
            f"the inputs are independent draws from {claim.population_name}, by Wilson's bound "
            "over inputs, which is approximate"
        )
    return (
        f"If the rate were at or below the requirement, this rule would falsely declare compliance "
        f"with probability targeted at {alpha:g}, provided that {given}. {_NOT_POSTERIOR}"
    )


def _undecidable(case: _Case, decided_by: str, alpha: float | None, reason: str) -> Finding:
    """A design of which no result could have been a PASS, or no result at all."""
    n, smoke = case.tally.trials, case.intent is Intent.SMOKE
    decision = Decision.FAIL if n and smoke else Decision.INCONCLUSIVE
    said = f"{n} trials of {len(case.counts)} inputs cannot show a rate of {case.target}: {reason}."
    return replace(
        case.finding(decided_by, decision, ObservedRate.NOT_APPLICABLE),
        alpha=alpha,
        caution=Caution.FEASIBILITY_REFUSED if n else Caution.ZERO_EVALUABLE,
        statement=said if n else "No trial was available to decide on.",
    )


# --- In a corpus, in the run (§8.4.6) -------------------------------------------------------------


def _corpus(case: _Case, alpha: float | None) -> Finding:
    k, n, N = case.tally.passed, case.tally.trials, _needed("corpus_size", case.inputs)
    if any(trials > 1 for _, trials in case.counts.values()) or n > N:
        raise InvalidArgument(
            "outcomes", f"{n} trials", f"take each of the corpus's {N} inputs at most once"
        )
    if n == N:
        return _whole_corpus(case, N)
    decided_by, level = "finite-corpus/hypergeometric", _needed("alpha", alpha)
    if n == 0:
        return _undecidable(case, decided_by, level, "")
    design = finite_corpus_cutoff(case.required_rate, n, N, alpha=level)
    if design.cutoff is None:
        reason = f"at least {design.minimum_trials} of the corpus's {N} are needed"
        return _undecidable(case, decided_by, level, reason)
    observed = observed_status(case.tally, case.required_rate)
    decision = Decision.PASS if k >= design.cutoff else Decision.FAIL
    limits = partial(finite_corpus_interval, k, n, N, confidence=complement(level))
    fact = f"{k} of {n} successes, {design.cutoff} needed, in {n} of the corpus's {N} inputs"
    return replace(
        case.finding(decided_by, decision, observed),
        alpha=level,
        design=design,
        p_value=_p_value(k, design),
        lower_bound=limits(side="lower").interval.low,
        interval=limits().interval,
        statement=case.said(decision, observed, fact, rate="of at least"),
        null=f"fewer than {design.required_successes} of the corpus's {N} inputs succeed",
        alternative=f"at least {design.required_successes} of them do",
        confidence_statement=(
            f"If one success too few were in the corpus, this rule would falsely declare "
            f"compliance with probability {design.size:.4g}, exactly, provided that the inputs "
            "tried are a random part of it and that each answers another time as it did now. "
            f"{_NOT_POSTERIOR}"
        ),
    )


def _p_value(successes: int, design: FiniteCorpusCutoff) -> PValue:
    place = successes, design.trials, design.required_successes - 1, design.corpus_size
    return PValue(
        value=settled(tail(*place), design.alpha, partial(exact_tail, *place)),
        method="hypergeometric-upper-tail",
        tail="P_{M=M_req-1}(K >= K_c)",
    )


def _whole_corpus(case: _Case, size: int) -> Finding:
    """Every input tried: a known rate, with nothing to infer."""
    k, needed = case.tally.passed, ceil_product(case.required_rate, size)
    decision = Decision.PASS if k >= needed else Decision.FAIL
    observed = observed_status(case.tally, case.required_rate)
    return replace(
        case.finding("finite-corpus/exact-rate", decision, observed),
        design=exact_corpus_rate(k, size),
        statement=f"{k} of the corpus's {size} inputs succeeded, {needed} needed.",
        null="none: the corpus was tried whole",
        alternative="none: its rate is known, not estimated",
        confidence_statement=(
            "No error rate belongs to this: every input was tried, so nothing was sampled. It "
            "speaks of these answers to this corpus."
        ),
    )


def _describe(case: _Case) -> Finding:
    """The observed rate against the required one, and no word beyond the run."""
    decided_by = "no-generalisation/observed-rate"
    k, n = case.tally.passed, case.tally.trials
    if n == 0:
        return _undecidable(case, decided_by, None, "")
    needed = ceil_product(case.required_rate, n)
    decision = Decision.PASS if k >= needed else Decision.FAIL
    nothing = "none: nothing beyond the run is claimed"
    return replace(
        case.finding(decided_by, decision, observed_status(case.tally, case.required_rate)),
        caution=None,
        label=f"{decision} (this run only)",
        statement=(
            f"{k} of {n} trials succeeded, {needed} needed for {case.target}: a description of "
            "this run, and of nothing else."
        ),
        null=nothing,
        alternative=nothing,
        confidence_statement="No error rate belongs to this: nothing beyond the run is claimed.",
    )


def _needed(argument: str, value: T | None) -> T:
    if value is None:
        raise InvalidArgument(argument, None, "be given for this claim")
    return value
