"""Observational: was any failure observed? (companion §1.4.5)"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from trialwise.model.criterion import Criterion
from trialwise.model.plan import CriterionPlan
from trialwise.model.tally import Tally
from trialwise.model.verdict import Caution, Decision, Finding, Intent
from trialwise.procedures.base import Chance, Conclusion, Counts, Procedure, Situation
from trialwise.stats.rate_intervals import rule_of_three

if TYPE_CHECKING:
    from trialwise.documents.blocks import Section


NO_FAILURE_OBSERVED = "NO FAILURE OBSERVED"

#: Trials of a run that asks only whether anything fails, where nobody says how many.
USUAL_PROBES = 100
#: The same, of each input.
USUAL_REPEATS = 10
#: Failure rates that a person thinks of when nothing is claimed about any.
_RARE_FAILURES = (0.001, 0.01)


class Observational(Procedure):
    """No failure among the trials; nothing is said about a rate."""

    name = "OBSERVATIONAL"
    question = "Was any failure observed?"
    claims_rate = False

    def plan(self, criterion: Criterion, situation: Situation) -> CriterionPlan:
        """Plan a number of trials of its own, or take the trials that other criteria need."""
        trials = situation.fixed_trials(criterion)
        size = trials or (USUAL_REPEATS if criterion.each_input else USUAL_PROBES)
        return situation.start_plan(
            criterion,
            procedure=self.name,
            trials=size,
            cutoff=size,
            # Without a number of its own it is decided on whatever trials the others need.
            rides_along=trials is None and not criterion.each_input,
            min_probes=criterion.min_probes,
        )

    def decide(self, plan: CriterionPlan, counts: Counts) -> Conclusion:
        """One failure decides at any time; its absence only once all trials are in."""
        if counts.tally.failed:
            return self.conclude(plan, counts)
        return super().decide(plan, replace(counts, decision=None))

    def conclude(self, plan: CriterionPlan, counts: Counts) -> Conclusion:
        """Report whether any failure was observed: exact on the run, silent about a population."""
        tally = counts.tally
        if tally.trials == 0:
            decision, caution = Decision.INCONCLUSIVE, Caution.ZERO_EVALUABLE
        else:
            decision, caution = (Decision.FAIL if tally.failed else Decision.PASS), None
        # Below the probes that an operator asks for, PASS would say too much (§1.4.5).
        few = plan.min_probes is not None and tally.trials < plan.min_probes
        return Conclusion(
            decision=decision,
            tally=tally,
            caution=caution,
            statement=_state(tally),
            label=NO_FAILURE_OBSERVED if few and decision is Decision.PASS else "",
        )

    def hypotheses(self, plan: CriterionPlan) -> tuple[str, str]:
        """None: nothing is tested."""
        return "", ""

    def describe_rule(self, plan: CriterionPlan) -> str:
        """Say what a single failure does."""
        others = "however many trials the other criteria need"
        size = others if plan.rides_along else f"{plan.trials}"
        return f"PASS without a failure in {size}, FAIL with one"

    def forecast(self, plan: CriterionPlan) -> Iterator[Chance]:
        """Compute the chance of seeing no failure where failures are rare."""
        if plan.rides_along:
            return
        for failure in _RARE_FAILURES:
            passes = (1 - failure) ** plan.trials
            meaning = f"one failure in {round(1 / failure):,}"
            yield Chance(rate=1 - failure, meaning=meaning, passes=passes, fails=1 - passes)

    def explain(self, finding: Finding) -> tuple[Section, ...]:
        """Explain what was asked of the trials, and that nothing is claimed."""
        from trialwise.procedures.explaining.analysis_sections import make_section

        rows = [
            ("Mode", "observational: no threshold, no α, no inferential claim"),
            ("Question", f"was any failure of {finding.criterion} observed in the run?"),
        ]
        return (make_section("HYPOTHESIS TEST", rows),)


PROCEDURE = Observational()


def decide_observational(
    criterion: str, tally: Tally, *, intent: Intent = Intent.VERIFICATION
) -> Finding:
    """Report whether any failure was observed: exact on the run, silent about the population.

    >>> finding = decide_observational("no-pii", Tally(trials=200, passed=200))
    >>> finding.decision
    <Decision.PASS: 'PASS'>
    """
    plan = CriterionPlan(criterion=criterion, procedure=PROCEDURE.name, trials=tally.trials)
    return PROCEDURE.conclude(plan, Counts(tally=tally, intent=intent)).to_finding(plan)


def plan_measurement(criterion: Criterion, situation: Situation) -> CriterionPlan:
    """Plan the trials of a baseline: they are counted, and nothing is decided."""
    return situation.start_plan(
        criterion,
        procedure=PROCEDURE.name,
        trials=situation.fixed_trials(criterion) or USUAL_PROBES,
        threshold=replace(situation.start_threshold(criterion), required_rate=None),
        each_input=False,
        curtailed=False,
    )


def _state(tally: Tally) -> str:
    n = tally.trials
    if n == 0:
        return "No observation was available in the run."
    if tally.failed:
        return f"{tally.failed} of {n} trials failed."
    return (
        f"No failure was observed in {n} trials. This makes no claim about the population; for "
        f"context only, under an i.i.d. model it corresponds to a 95 % upper bound of about "
        f"{rule_of_three(n):.2g} on the failure probability."
    )
