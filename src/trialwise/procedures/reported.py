"""Reported: what is the rate? It is shown and has no part in the verdict (companion §1.4.5)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trialwise.decimals import complement
from trialwise.documents.numbers import as_computed, as_count, as_observed, as_percent
from trialwise.model.criterion import Criterion
from trialwise.model.evidence import CutoffEvidence, StopReason
from trialwise.model.intent import Intent
from trialwise.model.plan import CriterionPlan, Plan
from trialwise.model.verdict import Decision, Finding
from trialwise.procedures.base import Conclusion, Counts, Procedure, Refused, Situation
from trialwise.procedures.characteristic import Characteristic
from trialwise.procedures.clauses import describe_clause, state_clause
from trialwise.procedures.observational import USUAL_PROBES
from trialwise.stats.rate_intervals import clopper_pearson, wilson_interval
from trialwise.stats.result_types import Interval

if TYPE_CHECKING:
    from trialwise.documents.blocks import Section

#: What a result is called that decides nothing because nobody asked it to.
REPORTED = "REPORTED"
#: Why such a criterion has no part in the verdict.
REASON = "report_only: it is measured and shown, and has no part in the verdict"


class Reported(Procedure):
    """The rate with its interval. Nothing is decided, so nothing can be decided wrongly."""

    name = REPORTED
    question = "What is the rate?"

    def plan(self, criterion: Criterion, situation: Situation) -> CriterionPlan | Refused:
        """Plan to share the trials of the other criteria, or the usual number where it is alone."""
        inputs = len(situation.sampling.inputs)
        # Each side of the interval leaves out what a decision at this confidence would.
        level = complement(2 * complement(criterion.confidence))
        if level <= 0:
            return Refused("confidence must be above 50 %, or its interval would be empty")
        size = situation.fixed_trials(criterion) or max(USUAL_PROBES, inputs)
        limit = situation.trial_limit(criterion)
        return situation.start_plan(
            criterion,
            procedure=self.name,
            rule=situation.options.rule,
            trials=size if limit is None else min(size, limit),
            rides_along=True,
            advisory=(REASON,),
            reported_at=level,
        )

    def decide(self, plan: CriterionPlan, counts: Counts) -> Conclusion:
        """Describe the trials that ran, however the run ended."""
        return self.conclude(plan, counts)

    def conclude(self, plan: CriterionPlan, counts: Counts) -> Conclusion:
        """Describe the rate with its interval."""
        tally = counts.tally
        if not tally.trials:
            return replace(Conclusion.without_trials(tally), label=REPORTED)
        interval = _find_interval(plan, tally.passed, tally.trials)
        return Conclusion(
            decision=Decision.INCONCLUSIVE,
            tally=tally,
            evidence=CutoffEvidence(interval=interval),
            statement=_state(plan, tally.passed, tally.trials, interval)
            + state_clause(plan, "" if counts.experiment is None else counts.experiment.role),
            label=REPORTED,
        )

    def complete(
        self, plan: CriterionPlan, conclusion: Conclusion, stop: StopReason, run: Plan
    ) -> Conclusion:
        """Add nothing: there are no hypotheses, and a run that was cut short leaves nothing open.

        Args:
            plan: What this procedure planned.
            conclusion: What was observed.
            stop: Why no further trial was counted.
            run: The plan of the whole run.
        """
        return conclusion

    def hypotheses(self, plan: CriterionPlan) -> tuple[str, str]:
        """None: nothing is tested."""
        return "", ""

    def describe_rule(self, plan: CriterionPlan) -> str:
        """Say that it only reports."""
        assert plan.standing.reported_at is not None
        level = as_percent(plan.standing.reported_at)
        rule = f"reported with its {level} interval, and no part of the verdict"
        return f"{rule}{describe_clause(plan)}"

    def characterize(self, plan: CriterionPlan, intent: Intent) -> Characteristic:
        """Return nothing to count: it has no decision."""
        return Characteristic(uncounted=dict.fromkeys(Decision, "only reported"))

    def explain(self, finding: Finding) -> tuple[Section, ...]:
        """Explain that the rate is described and nothing is tested."""
        from trialwise.procedures.explaining.analysis_sections import make_section

        rows = [
            ("Mode", "report only: no threshold decides, and no error rate is claimed"),
            ("Question", f"what is the rate of {finding.criterion}?"),
        ]
        interval, level = finding.interval, finding.plan.standing.reported_at
        if interval is None or level is None:
            return (make_section("HYPOTHESIS TEST", rows),)
        ends = f"[{as_computed(interval.low)}, {as_computed(interval.high)}]"
        found = [(f"{as_percent(level)} interval", f"{ends}, {interval.method}")]
        return make_section("HYPOTHESIS TEST", rows), make_section("STATISTICAL INFERENCE", found)


PROCEDURE = Reported()


def _find_interval(plan: CriterionPlan, passed: int, trials: int) -> Interval:
    assert plan.standing.reported_at is not None
    compute = wilson_interval if plan.rule == "wilson" else clopper_pearson
    return compute(passed, trials, confidence=plan.standing.reported_at)


def _state(plan: CriterionPlan, passed: int, trials: int, interval: Interval) -> str:
    """Say what was measured and, where a rate or a baseline is named, where that lies."""
    said = (
        f"{passed:,} of {as_count(trials, 'trial')} passed ({as_observed(passed / trials)}). "
        "It is only reported and has no part in the verdict."
    )
    required = plan.threshold.required_rate
    if required is None:
        return said
    where = "inside"
    if interval.low > required:
        where = "below"
    elif interval.high < required:
        where = "above"
    return f"{said} The {as_percent(required)} it names lies {where} the interval."
