"""Observational: was any failure observed? (companion §1.4.5)"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trialwise.documents.numbers import as_count, as_percent, as_probability
from trialwise.documents.phrases import join_few
from trialwise.model.criterion import Criterion
from trialwise.model.intent import Intent
from trialwise.model.plan import CriterionPlan
from trialwise.model.tally import Tally
from trialwise.model.verdict import Caution, Decision, Finding
from trialwise.procedures.base import Conclusion, Counts, Procedure, Refused, Situation
from trialwise.procedures.characteristic import Chance, Characteristic, RuleError
from trialwise.procedures.clauses import describe_clause, state_clause
from trialwise.procedures.deciding.partial_findings import conclude_short
from trialwise.stats.rate_intervals import rule_of_three

if TYPE_CHECKING:
    from trialwise.documents.blocks import Section


NO_FAILURE_OBSERVED = "NO FAILURE OBSERVED"

#: Trials of a run that asks only whether anything fails, where nobody says how many.
USUAL_PROBES = 100
#: The same, of each input.
USUAL_REPEATS = 10
#: Inputs that are all asked without somebody having said so.
_MOST_WITHOUT_CONSENT = 1_000
#: Failure rates that a person thinks of when nothing is claimed about any.
_RARE_FAILURES = (0.001, 0.01)


class Observational(Procedure):
    """No failure among the trials; nothing is said about a rate."""

    name = "OBSERVATIONAL"
    question = "Was any failure observed?"
    claims_rate = False

    def plan(self, criterion: Criterion, situation: Situation) -> CriterionPlan | Refused:
        """Plan at least one trial of every input, or as many trials as somebody asked for."""
        trials, inputs = situation.fixed_trials(criterion), len(situation.sampling.inputs)
        each = criterion.each_input
        size = trials or (USUAL_REPEATS if each else max(USUAL_PROBES, inputs))
        needed = 1 if each else min(trials or inputs, inputs)
        limit = situation.trial_limit(criterion)
        if limit is None and trials is None and not each and inputs > _MOST_WITHOUT_CONSENT:
            # As many trials as nobody would expect need somebody's word.
            if situation.verifies and not situation.options.budget.is_given:
                return Refused(_ask_consent(inputs))
            limit = None if situation.verifies else _MOST_WITHOUT_CONSENT
        if limit is not None and limit < needed and situation.verifies:
            return Refused(_explain_limit(limit, needed, inputs))
        size = size if limit is None else min(size, limit)
        return situation.start_plan(
            criterion,
            procedure=self.name,
            trials=size,
            cutoff=size,
            # Without a number of its own it shares the trials that the others need.
            rides_along=trials is None and not each,
            asks_every_input=not each and needed == inputs,
            counts_every_trial=True,
            min_probes=criterion.min_probes,
        )

    def decide(self, plan: CriterionPlan, counts: Counts) -> Conclusion:
        """One failure decides at any time; its absence only once every input was asked."""
        if counts.tally.failed:
            return self.conclude(plan, counts)
        has_own_size = plan.counting.counts_every_trial and not plan.counting.rides_along
        is_short = counts.stop.is_premature and not (has_own_size and counts.is_complete)
        if plan.counting.asks_every_input and is_short:
            return conclude_short(plan, counts)
        if plan.counting.asks_every_input and counts.unasked and counts.tally.trials:
            return _leave_open(counts)
        return super().decide(plan, replace(counts, decision=None))

    def conclude(self, plan: CriterionPlan, counts: Counts) -> Conclusion:
        """Report whether any failure was observed: exact on the run, silent about a population."""
        tally = counts.tally
        if tally.trials == 0:
            decision, caution = Decision.INCONCLUSIVE, Caution.ZERO_EVALUABLE
        else:
            decision, caution = (Decision.FAIL if tally.failed else Decision.PASS), None
        # Below the probes that an operator asks for, PASS would say too much (§1.4.5).
        few = plan.counting.min_probes is not None and tally.trials < plan.counting.min_probes
        return Conclusion(
            decision=decision,
            tally=tally,
            caution=caution,
            statement=_state(plan.criterion, counts.ran or tally)
            + state_clause(plan, "" if counts.experiment is None else counts.experiment.role),
            label=NO_FAILURE_OBSERVED if few and decision is Decision.PASS else "",
        )

    def hypotheses(self, plan: CriterionPlan) -> tuple[str, str]:
        """None: nothing is tested."""
        return "", ""

    def describe_rule(self, plan: CriterionPlan) -> str:
        """Say what a single failure does."""
        clause = describe_clause(plan)
        if plan.counting.asks_every_input:
            rule = "FAIL with the first failure, PASS once every input was asked without one"
            own = (
                ""
                if plan.counting.rides_along
                else f", in at least {as_count(plan.trials, 'trial')}"
            )
            return f"{rule}{own}{clause}"
        return f"PASS without a failure in at least {plan.trials}, FAIL with one{clause}"

    def characterize(self, plan: CriterionPlan, intent: Intent) -> Characteristic:
        """Count the chance of seeing no failure where failures are rare."""
        never = RuleError(
            wrong=Decision.FAIL, event="FAIL although no reply fails", allowed=0.0, actual=0.0
        )
        if plan.counting.rides_along:
            missed = {Decision.PASS: "passes unless a failure is seen"}
            return Characteristic(errors=(never,), uncounted=missed)

        def at(rate: float) -> Chance:
            return Chance(rate=rate, passes=rate**plan.trials, fails=1 - rate**plan.trials)

        rare = 1 - _RARE_FAILURES[0]
        return Characteristic(
            at=at,
            states=tuple((1 - one, f"one failure in {round(1 / one):,}") for one in _RARE_FAILURES),
            errors=(never,),
            uncounted={
                Decision.PASS: f"passes in {as_probability(at(rare).passes, digits=1)} of runs if "
                f"1 reply in {round(1 / _RARE_FAILURES[0]):,} fails"
            },
        )

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
        # What is only reported has no part in which trials count as successful.
        reported_at=criterion.confidence if criterion.report_only else None,
    )


def _ask_consent(inputs: int) -> str:
    return (
        f"it asks every input at least once, and there are {inputs:,}; allow that many with "
        f"max_trials: {inputs}, or ask only some of them, such as trials: 200"
    )


def _explain_limit(limit: int, needed: int, inputs: int) -> str:
    asked = f"each of the {inputs:,} inputs" if needed == inputs else f"{needed:,} inputs"
    return (
        f"it asks {asked} at least once, and at most {as_count(limit, 'trial')} may be run; allow "
        f"{needed:,} (max_trials), say how many inputs to ask (trials), or use smoke intent, where "
        "it can only FAIL or be INCONCLUSIVE"
    )


def _leave_open(counts: Counts) -> Conclusion:
    """Return the statement for no failure where some inputs were not asked."""
    left = counts.unasked
    named = join_few(left)
    verb = "was" if len(left) == 1 else "were"
    return Conclusion(
        decision=Decision.INCONCLUSIVE,
        tally=counts.tally,
        statement=(
            f"No failure was observed in {as_count(counts.tally.trials, 'trial')}, but "
            f"{as_count(len(left), 'input')} {verb} not asked: {named}."
        ),
        advice="Allow at least one trial for each input.",
    )


def _state(criterion: str, tally: Tally) -> str:
    """Say what was observed, in the words of the companion (§1.4.5)."""
    n = tally.trials
    if n == 0:
        return "No observation was available in the run."
    if tally.failed:
        return f"{tally.failed} of {n} trials failed."
    trials = as_count(n, "trial")
    said = (
        f"No failure of {criterion} was observed in {trials}. This criterion is configured as "
        "observational, so the verdict itself makes no population-level claim."
    )
    if n <= 3:
        return said  # the bound would be 1 or more
    return (
        f"{said} For context only, under an i.i.d. Bernoulli model, zero failures in {trials} "
        f"corresponds approximately to a 95 % upper bound of 3/{n:,} "
        f"({as_percent(rule_of_three(n))}) on the failure probability."
    )
