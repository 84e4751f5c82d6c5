"""A required rate by trials whose number depends on their outcomes: replies that are checked again.

The run that they come from could stop early, by what its checks said then. Whatever stopped it, a
confidence sequence misses the rate with at most its error, and so do the decisions by its ends.
"""

from __future__ import annotations

from dataclasses import replace

from trialwise.decimals import complement
from trialwise.documents.numbers import as_percent
from trialwise.model.criterion import Criterion
from trialwise.model.evidence import CutoffEvidence
from trialwise.model.intent import Intent
from trialwise.model.plan import CriterionPlan
from trialwise.model.tally import Tally
from trialwise.model.verdict import Decision
from trialwise.procedures.base import (
    AGREEING,
    Conclusion,
    Counts,
    Procedure,
    Refused,
    Situation,
    rate_below,
)
from trialwise.procedures.compliance import observed_status
from trialwise.stats.confidence_sequences import anytime_interval
from trialwise.stats.result_types import Interval

_METHOD = "beta-mixture, valid at any stopping time"
_CAVEAT = (
    "The number of these replies was not fixed: the run that they come from could stop early, or "
    "was stopped. They are decided by an interval that is valid at any stopping time."
)


class Anytime(Procedure):
    """A required rate, shown or not shown by however many trials there are."""

    name = "ANYTIME"
    question = "Is the required rate met?"
    error_family = "false-rejection"
    long_run = "whatever ended the run, each wrong statement has at most the probability stated"

    def plan(self, criterion: Criterion, situation: Situation) -> CriterionPlan | Refused:
        """Plan to decide on all trials that there are."""
        trials, required = situation.fixed_trials(criterion), criterion.at_least
        if trials is None or required is None or criterion.each_input:
            return Refused("replies are checked again only for a required rate over all inputs")
        return situation.start_plan(
            criterion,
            procedure=self.name,
            decision_rule=f"anytime/beta-mixture{AGREEING}",
            alpha=criterion.wrong_fail,
            beta=criterion.wrong_pass,
            trials=trials,
            threshold=replace(
                situation.start_threshold(criterion),
                alternative_rate=rate_below(required, criterion.margin or 0.0),
            ),
            rides_along=True,
            curtailed=False,
            caveats=(_CAVEAT,),
        )

    def decide(self, plan: CriterionPlan, counts: Counts) -> Conclusion:
        """Decide by the two ends of the interval, whatever ended the trials."""
        tally = counts.tally
        if not tally.trials:
            return Conclusion.without_trials(tally)
        required, shown = plan.threshold.required_rate, plan.threshold.alternative_rate
        assert required is not None
        assert shown is not None
        interval = _find_interval(plan, tally)
        evidence = CutoffEvidence(interval=interval, lower_bound=interval.low)
        passed = f"{tally.passed} of {tally.trials} passed"
        decision = Decision.INCONCLUSIVE
        statement = f"{passed}: too close to {as_percent(required)} to tell."
        if interval.low > shown:
            decision = Decision.PASS
            statement = f"{passed}, which shows a rate above {as_percent(shown)}."
        elif interval.high < required:
            decision = Decision.FAIL
            statement = f"Only {passed}; at least {as_percent(required)} is required."
        return Conclusion(
            decision=decision,
            tally=tally,
            observed_rate=observed_status(tally, required),
            evidence=evidence,
            statement=statement,
        )

    def assure(self, plan: CriterionPlan, intent: Intent) -> str:
        """Say what the two levels are properties of."""
        return (
            f"P(FAIL) ≤ {plan.alpha:g} at every true rate of {plan.threshold.required_rate:g} or "
            f"more, and P(PASS) ≤ {plan.beta:g} at every true rate of "
            f"{plan.threshold.alternative_rate:g} or less, whatever stopped the run."
        )

    def describe_rule(self, plan: CriterionPlan) -> str:
        """Say which bounds decide."""
        shown, required = plan.threshold.alternative_rate, plan.threshold.required_rate
        return (
            f"PASS where the interval that is valid at any stopping time lies above {shown:g}, "
            f"FAIL where it lies below {required:g}"
        )


def _find_interval(plan: CriterionPlan, tally: Tally) -> Interval:
    """Find the interval whose ends each have the error level of their decision."""
    assert plan.alpha is not None
    assert plan.beta is not None
    counts = tally.passed, tally.trials
    low, _ = anytime_interval(*counts, confidence=complement(plan.beta), side="lower")
    _, high = anytime_interval(*counts, confidence=complement(plan.alpha), side="upper")
    confidence = complement(plan.alpha + plan.beta)
    return Interval(low, high, confidence=confidence, method=_METHOD)


PROCEDURE = Anytime()
