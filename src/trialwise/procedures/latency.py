"""Latency: is a percentile within its limit, or degraded from its baseline? (companion §12)

Latencies are those of successful trials only. Each constraint is decided by the same rule whether
the latency dimension is enforced or advisory; what differs is only whether the verdict heeds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from trialwise import stats
from trialwise.decimals import ceil_product, complement, floor_product
from trialwise.documents.numbers import STOPS, as_percent, as_probability, as_seconds
from trialwise.model.baseline import Baseline
from trialwise.model.claim import Intent
from trialwise.model.contract import Contract
from trialwise.model.evidence import StopReason
from trialwise.model.options import RunOptions
from trialwise.model.plan import CriterionPlan, ExperimentPlan, LatencyPlan, Plan
from trialwise.model.run import list_latencies
from trialwise.model.trial_table import TrialTable
from trialwise.model.verdict import Decision, LatencyFinding
from trialwise.procedures.characteristic import Characteristic, RuleError
from trialwise.stats.binomial import raw_tail

#: The versioned names of the rules for an explicit limit.
LIMIT_RULES: dict[stats.Rule, str] = {
    "wilson": "latency/raw-percentile",
    "exact": "latency/compliance-exact-binomial",
    "fisher": "latency/compliance-exact-binomial",
}


#: The versioned names of the rules against a baseline.
BASELINE_RULES: dict[stats.Rule, str] = {
    "wilson": "latency/order-statistic-bound",
    "exact": "latency/precedence",
    "fisher": "latency/precedence",
}


class Latency:
    """Percentiles of the successful trials' latencies, each against its limit or its baseline."""

    name = "LATENCY"
    question = "Is the percentile within its limit, or what it was in the baseline?"

    def plan(
        self,
        contract: Contract,
        options: RunOptions,
        experiments: Sequence[ExperimentPlan],
        criteria: Sequence[CriterionPlan],
        baseline: Baseline | None,
    ) -> tuple[tuple[LatencyPlan, ...], list[str]]:
        """Return the rule of every percentile, and the reasons why one cannot be decided.

        Args:
            contract: With its limits.
            options: How the run is made.
            experiments: Its samplings, as planned.
            criteria: How its criteria are decided.
            baseline: Whose latencies stand for limits that are not given.
        """
        latency = contract.latency
        assert latency is not None
        name = contract.latency_experiment
        experiment = next((one for one in experiments if one.name == name), None)
        if experiment is None:  # its criteria were refused, and so is the run
            return (), []
        refusals: list[str] = []
        plans = []
        known = None if baseline is None else baseline.latencies_s.get(name)
        for constraint in latency.constraints:
            if constraint.limit_s is None and known is None:
                refusals.append(
                    f"latency {constraint.percentile}: no baseline holds latencies of {name!r}; "
                    "measure one first, or give a limit"
                )
                continue
            plans.append(
                LatencyPlan(
                    percentile=constraint.percentile,
                    level=constraint.level,
                    experiment=name,
                    alpha=latency.alpha,
                    limit_s=constraint.limit_s,
                    baseline_latencies_s=known if constraint.limit_s is None else None,
                    baseline_run_trials=None if baseline is None else baseline.run_trials.get(name),
                    enforced=latency.enforced,
                )
            )
        if latency.enforced and options.intent is Intent.VERIFICATION:
            rate = _success_rate(criteria, name, baseline)
            refusals += _list_unbounded(plans, experiment.trials, rate, latency.confidence)
            refusals += _list_saturated(plans, experiment.trials, rate, options.rule)
        return tuple(plans), refusals

    def decide(
        self, plan: Plan, trials: Mapping[str, TrialTable], stops: Mapping[str, StopReason]
    ) -> list[LatencyFinding]:
        """Decide every percentile over the successful trials (companion §12.2.1).

        Args:
            plan: What was to be run.
            trials: What was run, by experiment.
            stops: Why each experiment ended.
        """
        return [
            _decide_percentile(one, plan, trials[one.experiment], stops[one.experiment])
            for one in plan.latency
        ]

    def characterize(self, limit: LatencyPlan, plan: Plan) -> Characteristic:
        """Return how a percentile's rule errs. Its level holds for any number of successes.

        Args:
            limit: One percentile of the plan, with its limit or its baseline.
            plan: The run's; how many of its trials succeed nobody knows.
        """
        trials = next((one.trials for one in plan.experiments if one.name == limit.experiment), 1)
        found = forecast_latency(limit, trials, plan.rule)
        if limit.limit_s is None:
            # For as many latencies as trials. Failed trials have none, and with fewer latencies the
            # chance may be higher, up to the level: so this is not the worst case.
            alarm = RuleError(
                wrong=Decision.FAIL,
                event="FAIL although nothing has changed",
                allowed=limit.alpha,
                actual=found.false_alarm,
                is_worst=False,
            )
            return Characteristic(errors=(alarm,), uncounted={Decision.PASS: "no known power"})
        exactly = "of runs if its percentile is exactly the limit"
        if plan.rule == "wilson":
            passes = as_probability(found.passes_at_limit or 0.0, digits=1)
            return Characteristic(
                uncounted=dict.fromkeys(Decision, f"passes in {passes} {exactly}")
            )
        # A PASS asks for evidence, so that a service exactly at its limit FAILs in most runs. This
        # is no error of the rule, and no level limits it.
        wrong = RuleError(wrong=Decision.PASS, event=f"PASS in some {exactly}", allowed=limit.alpha)
        fails = f"fails in at least {as_percent(complement(limit.alpha))} {exactly}"
        return Characteristic(errors=(wrong,), uncounted={Decision.FAIL: fails})


PROCEDURE = Latency()


def _decide_percentile(
    constraint: LatencyPlan, plan: Plan, trials: TrialTable, stop: StopReason
) -> LatencyFinding:
    """Decide one percentile; a run that was cut short decides none.

    What ended it early may be the slow replies themselves.
    """
    latencies = list_latencies(trials, plan.reported)
    planned = next(one.trials for one in plan.experiments if one.name == constraint.experiment)
    # A limit that only advises is decided whatever the number of trials.
    advises = constraint.limit_s is not None and not constraint.enforced
    found = decide_latency(
        constraint,
        latencies,
        rule=plan.rule,
        intent=plan.intent,
        planned_trials=None if advises else planned,
    )
    if not stop.is_premature or found.decision is None:
        return found
    statement = f"The run {STOPS[stop].predicate}; a percentile needs every trial of its plan."
    return replace(found, decision=Decision.INCONCLUSIVE, statement=statement)


def decide_latency(
    plan: LatencyPlan,
    latencies: Sequence[float],
    *,
    rule: stats.Rule = "exact",
    intent: Intent = Intent.VERIFICATION,
    planned_trials: int | None = None,
) -> LatencyFinding:
    """Decide one percentile: against its limit, or against the baseline's latencies.

    The companion compares the observed percentile with the limit (§12.3.1), which a service
    exactly at its limit passes about half the time. The exact rule asks for evidence: enough
    latencies at or below the limit.

    Against a baseline it is INCONCLUSIVE where the test has too few latencies for its percentile to
    be more than an extreme, and where the baseline has too few for any threshold to exist.

    Args:
        plan: The percentile, and its limit or its baseline.
        latencies: The latencies of the test's successful trials.
        rule: The rule set.
        intent: Under smoke a degenerate percentile is decided, as an indication only.
        planned_trials: Of the test, successful or not; where given, a design too small is refused.

    >>> plan = LatencyPlan(percentile="p95", level=0.95, limit_s=0.5)
    >>> decide_latency(plan, [0.4] * 99 + [0.6]).decision
    <Decision.PASS: 'PASS'>
    """
    decide = _decide_baseline if plan.limit_s is None else _decide_limit
    evidence, observed, decision, statement = decide(plan, latencies, rule, intent, planned_trials)
    rules = BASELINE_RULES if plan.limit_s is None else LIMIT_RULES
    threshold = plan.limit_s
    if evidence is not None and not isinstance(evidence, stats.LatencyLimitDecision):
        threshold = evidence.threshold
    return LatencyFinding(
        constraint=plan.percentile,
        decision_rule=rules[rule],
        decision=decision,
        percentile=plan.level,
        alpha=plan.alpha,
        trials=len(latencies),
        rule=rule,
        threshold=threshold,
        observed=observed,
        refusals=(evidence.refusal,) if evidence and evidence.refusal else (),
        evidence=evidence,
        statement=statement,
    )


_Decided: TypeAlias = tuple[
    stats.LatencyLimitDecision | stats.OrderStatisticBound | stats.PrecedenceThreshold | None,
    float | None,
    Decision | None,
    str,
]
"""The evidence, the observed percentile, the decision, and the statement."""


def _decide_limit(
    plan: LatencyPlan,
    latencies: Sequence[float],
    rule: stats.Rule,
    intent: Intent,
    planned_trials: int | None,
) -> _Decided:
    assert plan.limit_s is not None
    result = stats.evaluate_latency_limit(
        latencies,
        plan.level,
        plan.limit_s,
        alpha=plan.alpha,
        intent=intent.value,
        planned_trials=planned_trials if rule != "wilson" else None,
    )
    seen = result.observed_percentile
    if result.refusal is not None:
        return result, seen, None, "Too few trials are planned to show this percentile."
    needed_for_evidence = stats.existence_minimum(plan.level, confidence=complement(plan.alpha))
    verifies = plan.enforced and intent is Intent.VERIFICATION
    decision = Decision.INCONCLUSIVE
    if verifies and len(latencies) < needed_for_evidence:
        # However the percentile compares: so few successes show nothing about it (§12.5).
        statement = (
            f"{len(latencies)} successful trials are fewer than the {needed_for_evidence} that "
            "this percentile needs."
        )
    elif rule != "wilson":
        decision = Decision(result.decision or "INCONCLUSIVE")
        needed = "no count would do" if result.y_min is None else f"{result.y_min} needed"
        statement = f"{result.within} of {result.trials} latencies within the limit, {needed}."
    elif seen is None:
        statement = "There is no latency to compare with the limit."
    else:
        decision = Decision.PASS if result.raw_percentile_pass else Decision.FAIL
        statement = f"{_compare(plan, seen, plan.limit_s)}, compared as they are."
    return result, seen, decision, statement


def _decide_baseline(
    plan: LatencyPlan,
    latencies: Sequence[float],
    rule: stats.Rule,
    intent: Intent,
    planned_trials: int | None,
) -> _Decided:
    design = _baseline_design(plan, len(latencies), rule, planned_trials)
    observed = stats.nearest_rank_percentile(latencies, plan.level) if latencies else None
    if design is not None and design.refusal is not None:
        return design, observed, None, "The test is planned larger than its baseline run."
    threshold = None if design is None else design.threshold
    gate = stats.nondegeneracy_decision(len(latencies), plan.level, intent=intent.value)
    decision = Decision.INCONCLUSIVE
    # Of so few latencies the percentile is the largest one, which says more about the worst reply
    # than about the percentile (§12.5).
    if gate.outcome == "INCONCLUSIVE" or observed is None:
        statement = f"{len(latencies)} latencies are fewer than the {gate.minimum_trials} needed."
    elif threshold is None:
        statement = "The baseline has too few latencies for a threshold at this level to exist."
    else:
        decision = Decision.FAIL if observed > threshold else Decision.PASS
        indicative = " This is indicative only." if gate.outcome == "INDICATIVE" else ""
        statement = f"{_compare(plan, observed, threshold)}.{indicative}"
    return design, observed, decision, statement


def _compare(plan: LatencyPlan, observed: float, limit: float) -> str:
    """Write a percentile and its limit, as in "p50 was 200 ms; at most 115 ms is allowed"."""
    seen, allowed = as_seconds(observed), as_seconds(limit)
    if seen == allowed and observed > limit:  # four digits do not tell them apart
        seen, allowed = f"{observed:.9g} s", f"{limit:.9g} s"
    return f"{plan.percentile} was {seen}; at most {allowed} is allowed"


def _baseline_design(
    plan: LatencyPlan, trials: int, rule: stats.Rule, planned_trials: int | None
) -> stats.OrderStatisticBound | stats.PrecedenceThreshold | None:
    baseline, run = plan.baseline_latencies_s, plan.baseline_run_trials
    if not baseline:  # a baseline whose every trial failed has no latency to compare with
        return None
    if rule == "wilson":
        return stats.order_statistic_bound(baseline, plan.level, confidence=1 - plan.alpha)
    # The precedence test keeps its level for any distribution of latencies, since it asks for the
    # ranks of one sample in the other only.
    # Fisher's rule set compares the sizes of the two runs where both are known.
    is_compared = rule == "fisher" and run is not None and planned_trials is not None
    sizes = (run, planned_trials) if is_compared else (None, None)
    return stats.precedence_threshold(
        baseline,
        trials,
        plan.level,
        alpha=plan.alpha,
        baseline_run_trials=sizes[0],
        planned_trials=sizes[1],
    )


class LatencyForecast(NamedTuple):
    """What a percentile's rule does, as far as it is known before the first trial."""

    threshold_s: float | None = None
    """The largest percentile that PASSes against a baseline."""
    false_alarm: float | None = None
    """P(FAIL) of an unchanged service."""
    passes_at_limit: float | None = None
    """P(PASS) of a service whose percentile is exactly the limit."""


def forecast_latency(plan: LatencyPlan, trials: int, rule: stats.Rule) -> LatencyForecast:
    """Say what a percentile's rule will do if every trial succeeds.

    >>> plan = LatencyPlan(percentile="p95", level=0.95, limit_s=0.5)
    >>> round(forecast_latency(plan, 100, "wilson").passes_at_limit, 3)
    0.616
    """
    if plan.limit_s is not None:
        needed = ceil_product(plan.level, trials)
        if rule != "wilson":
            cutoff = stats.latency_limit_cutoff(plan.level, trials, alpha=plan.alpha).cutoff
            needed = trials + 1 if cutoff is None else cutoff
        chance = raw_tail(needed, trials, plan.level) if needed <= trials else 0.0
        return LatencyForecast(passes_at_limit=chance)
    design = _baseline_design(plan, trials, rule, None)
    if design is None:
        return LatencyForecast()
    return LatencyForecast(design.threshold, design.find_false_alarm(trials))


def _success_rate(
    criteria: Sequence[CriterionPlan], experiment: str, baseline: Baseline | None
) -> float:
    """Return the share of trials that should succeed: the baseline's, else the least required."""
    if baseline is not None:
        run, good = baseline.run_trials.get(experiment), baseline.latencies_s.get(experiment)
        if run and good is not None:
            return len(good) / run
    rates = [
        one.threshold.required_rate
        for one in criteria
        if one.experiment == experiment and one.threshold.required_rate is not None
    ]
    return min(rates, default=1.0)


def _list_saturated(
    plans: Sequence[LatencyPlan], trials: int, rate: float, rule: stats.Rule
) -> Iterator[str]:
    """Refuse a baseline with too few latencies for any threshold to exist (§12.4.2)."""
    # Rounded down: a run may have fewer successes than this on average, and never counts a part of
    # one.
    expected = floor_product(rate, trials)
    for plan in plans if expected else ():
        design = _baseline_design(plan, expected, rule, None)
        is_usable = design is not None and (design.threshold, design.refusal) != (None, None)
        if plan.limit_s is not None or is_usable:
            continue
        known = len(plan.baseline_latencies_s or ())
        needed: int | stats.Undefined = stats.existence_minimum(
            plan.level, confidence=complement(plan.alpha)
        )
        if rule != "wilson":
            needed = stats.precedence_planning(
                known, trials, rate, plan.level, alpha=plan.alpha
            ).minimum_baseline_trials
        least, more = ("more", "more") if not needed else (f"{needed}", f"at least {needed}")
        yield (
            f"latency {plan.percentile}: the baseline has {known} latencies, and no threshold "
            f"exists for this percentile with fewer than {least}; measure a baseline with {more} "
            "successful trials, give a limit, or leave latency advisory"
        )


def _list_unbounded(
    plans: Sequence[LatencyPlan], trials: int, rate: float, confidence: float
) -> Iterator[str]:
    """Refuse a percentile whose bound would not exist at the expected successes (§12.5.3)."""
    for plan in plans:
        gate = stats.verification_gate(trials, rate, plan.level, confidence=confidence)
        if not gate.feasible:
            yield (
                f"latency {plan.percentile}: {trials} trials at a success rate of {rate:.3g} give "
                f"about {gate.expected_trials} latencies, and {gate.minimum_trials} are needed; "
                f"plan at least {gate.planned_trials_needed} trials, or leave latency advisory"
            )
