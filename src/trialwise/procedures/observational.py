"""Observational: was any failure observed? (companion §1.4.5)"""

from __future__ import annotations

from dataclasses import replace

from trialwise import stats
from trialwise.decimals import complement
from trialwise.documents import numbers
from trialwise.documents.blocks import Section
from trialwise.model.claim import CHALLENGES, Intent
from trialwise.model.criterion import Criterion
from trialwise.model.evidence import CutoffEvidence, StopReason, Tally
from trialwise.model.options import Budget
from trialwise.model.plan import CriterionPlan, Plan
from trialwise.model.verdict import Caution, Decision, Finding
from trialwise.procedures import base
from trialwise.procedures.characteristic import Chance, Characteristic, RuleError
from trialwise.procedures.partial_findings import conclude_short

NO_FAILURE_OBSERVED = "NO FAILURE OBSERVED"

#: Trials of a run that asks only whether anything fails, where nobody says how many. Without a
#: failure they put the failure probability below 3 % (rule of three).
USUAL_PROBES = 100
#: The same, of each input.
USUAL_REPEATS = 10
#: Inputs that are all asked without somebody having said so.
_MOST_WITHOUT_CONSENT = 1_000
#: Failure rates that a person thinks of when nothing is claimed about any.
_RARE_FAILURES = (0.001, 0.01)


class Observational(base.Procedure):
    """No failure among the trials; nothing is said about a rate."""

    name = "OBSERVATIONAL"
    question = "Was any failure observed?"
    claims_rate = False

    def plan(self, criterion: Criterion, situation: base.Situation) -> CriterionPlan | base.Refused:
        """Plan at least one trial of every input, or as many trials as somebody asked for."""
        trials, inputs = situation.fixed_trials(criterion), len(situation.sampling.inputs)
        each = criterion.each_input
        size = trials or (USUAL_REPEATS if each else max(USUAL_PROBES, inputs))
        needed = 1 if each else min(trials or inputs, inputs)
        limit = situation.trial_limit(criterion)
        if limit is None and trials is None and not each and inputs > _MOST_WITHOUT_CONSENT:
            # As many trials as nobody would expect need somebody's word.
            if situation.verifies and situation.options.budget == Budget():
                return base.Refused(
                    f"it asks every input at least once, and there are {inputs:,}; allow that many "
                    f"with max_trials: {inputs}, or ask only some of them, such as trials: 200"
                )
            limit = None if situation.verifies else _MOST_WITHOUT_CONSENT
        if limit is not None and limit < needed and situation.verifies:
            asked = f"each of the {inputs:,} inputs" if needed == inputs else f"{needed:,} inputs"
            return base.Refused(
                f"it asks {asked} at least once, and at most {numbers.as_count(limit, 'trial')} "
                f"may be run; allow {needed:,} (max_trials), say how many inputs to ask (trials), "
                "or use smoke intent, where it can only FAIL or be INCONCLUSIVE"
            )
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

    def decide(self, plan: CriterionPlan, counts: base.Counts) -> base.Conclusion:
        """One failure decides at any time; its absence only once every input was asked."""
        if counts.tally.failed:
            return self.conclude(plan, counts)
        has_own_size = plan.counting.counts_every_trial and not plan.counting.rides_along
        is_short = counts.stop.is_premature and not (has_own_size and counts.is_complete)
        if plan.counting.asks_every_input and is_short:
            return conclude_short(plan, counts)
        if plan.counting.asks_every_input and counts.unasked and counts.tally.trials:
            return _leave_open(counts)
        # The absence of a failure is never certain early, whatever the limits of the plan say.
        return super().decide(plan, replace(counts, decision=None))

    def conclude(self, plan: CriterionPlan, counts: base.Counts) -> base.Conclusion:
        """Report whether any failure was observed: exact on the run, silent about a population."""
        tally = counts.tally
        decision = Decision.FAIL if tally.failed else Decision.PASS
        if tally.trials == 0:
            decision = Decision.INCONCLUSIVE
        # Below the probes that an operator asks for, PASS would say too much (§1.4.5).
        few = plan.counting.min_probes is not None and tally.trials < plan.counting.min_probes
        return base.Conclusion(
            decision=decision,
            tally=tally,
            caution=None if tally.trials else Caution.ZERO_EVALUABLE,
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
            least = f", in at least {numbers.as_count(plan.trials, 'trial')}"
            return f"{rule}{'' if plan.counting.rides_along else least}{clause}"
        return f"PASS without a failure in at least {plan.trials}, FAIL with one{clause}"

    def characterize(self, plan: CriterionPlan, intent: Intent) -> Characteristic:
        """Count the chance of seeing no failure where failures are rare."""
        event, rare = "FAIL although no reply fails", _RARE_FAILURES[0]
        never = RuleError(wrong=Decision.FAIL, event=event, allowed=0.0, actual=0.0)
        if plan.counting.rides_along:
            unseen = {Decision.PASS: "passes unless a failure is seen"}
            return Characteristic(errors=(never,), uncounted=unseen)

        def at(rate: float) -> Chance:
            return Chance(rate=rate, passes=rate**plan.trials, fails=1 - rate**plan.trials)

        missed = numbers.as_probability(at(1 - rare).passes, digits=1)
        reason = f"passes in {missed} of runs if 1 reply in {round(1 / rare):,} fails"
        return Characteristic(
            at=at,
            states=tuple((1 - one, f"one failure in {round(1 / one):,}") for one in _RARE_FAILURES),
            errors=(never,),
            uncounted={Decision.PASS: reason},
        )

    def explain(self, finding: Finding) -> tuple[Section, ...]:
        """Explain what was asked of the trials, and that nothing is claimed."""
        from trialwise.procedures.explanations import make_section

        rows = [
            ("Mode", "observational: no threshold, no α, no inferential claim"),
            ("Question", f"was any failure of {finding.criterion} observed in the run?"),
        ]
        return (make_section("HYPOTHESIS TEST", rows),)


PROCEDURE = Observational()


def decide_observational(criterion: str, tally: Tally) -> Finding:
    """Report whether any failure was observed: exact on the run, silent about the population.

    >>> finding = decide_observational("no-pii", Tally(trials=200, passed=200))
    >>> finding.decision
    <Decision.PASS: 'PASS'>
    """
    plan = CriterionPlan(criterion=criterion, procedure=PROCEDURE.name, trials=tally.trials)
    return PROCEDURE.conclude(plan, base.Counts(tally=tally)).to_finding(plan)


def plan_measurement(criterion: Criterion, situation: base.Situation) -> CriterionPlan:
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


def _leave_open(counts: base.Counts) -> base.Conclusion:
    """Return the statement for no failure where some inputs were not asked."""
    left, trials = counts.unasked, numbers.as_count(counts.tally.trials, "trial")
    inputs = f"{numbers.as_count(len(left), 'input')} {'was' if len(left) == 1 else 'were'}"
    statement = f"No failure was observed in {trials}, but {inputs} not asked: "
    return base.Conclusion(
        decision=Decision.INCONCLUSIVE,
        tally=counts.tally,
        statement=f"{statement}{numbers.join_few(left)}.",
        advice="Allow at least one trial for each input.",
    )


def _state(criterion: str, tally: Tally) -> str:
    """Say what was observed, in the words of the companion (§1.4.5)."""
    n = tally.trials
    if n == 0:
        return "No observation was available in the run."
    if tally.failed:
        return f"{tally.failed} of {n} trials failed."
    trials = numbers.as_count(n, "trial")
    said = (
        f"No failure of {criterion} was observed in {trials}. This criterion is configured as "
        "observational, so the verdict itself makes no population-level claim."
    )
    if n <= 3:
        return said  # the bound would be 1 or more
    return (
        f"{said} For context only, under an i.i.d. Bernoulli model, zero failures in {trials} "
        f"corresponds approximately to a 95 % upper bound of 3/{n:,} "
        f"({numbers.as_percent(stats.rule_of_three(n))}) on the failure probability."
    )


# Reported: what is the rate? It is shown and has no part in the verdict (companion §1.4.5).

#: What a result is called that decides nothing because nobody asked it to.
REPORTED = "REPORTED"
#: Why such a criterion has no part in the verdict.
REASON = "report_only: it is measured and shown, and has no part in the verdict"


class Reported(base.Procedure):
    """The rate with its interval. Nothing is decided, so nothing can be decided wrongly."""

    name = REPORTED
    question = "What is the rate?"

    def plan(self, criterion: Criterion, situation: base.Situation) -> CriterionPlan | base.Refused:
        """Plan to share the trials of the other criteria, or the usual number where it is alone."""
        inputs = len(situation.sampling.inputs)
        # Each side of the interval leaves out what a decision at this confidence would.
        level = complement(2 * complement(criterion.confidence))
        if level <= 0:
            return base.Refused("confidence must be above 50 %, or its interval would be empty")
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

    def decide(self, plan: CriterionPlan, counts: base.Counts) -> base.Conclusion:
        """Describe the trials that ran, however the run ended."""
        return self.conclude(plan, counts)

    def conclude(self, plan: CriterionPlan, counts: base.Counts) -> base.Conclusion:
        """Describe the rate with its interval."""
        tally = counts.tally
        if not tally.trials:
            return replace(base.Conclusion.without_trials(tally), label=REPORTED)
        compute = stats.wilson_interval if plan.rule == "wilson" else stats.clopper_pearson
        level = base.known(plan.standing.reported_at)
        interval = compute(tally.passed, tally.trials, confidence=level)
        return base.Conclusion(
            decision=Decision.INCONCLUSIVE,
            tally=tally,
            evidence=CutoffEvidence(interval=interval),
            statement=_state_reported(plan, tally.passed, tally.trials, interval)
            + state_clause(plan, "" if counts.experiment is None else counts.experiment.role),
            label=REPORTED,
        )

    def complete(
        self, plan: CriterionPlan, conclusion: base.Conclusion, stop: StopReason, run: Plan
    ) -> base.Conclusion:
        """Add nothing: there are no hypotheses, and a run that was cut short leaves nothing open.

        Args:
            plan: What this procedure planned.
            conclusion: What was observed.
            stop: Why no further trial was counted.
            run: The plan of the whole run.
        """
        return conclusion

    def describe_rule(self, plan: CriterionPlan) -> str:
        """Say that it only reports."""
        level = numbers.as_percent(base.known(plan.standing.reported_at))
        rule = f"reported with its {level} interval, and no part of the verdict"
        return f"{rule}{describe_clause(plan)}"

    def characterize(self, plan: CriterionPlan, intent: Intent) -> Characteristic:
        """Return nothing to count: it has no decision."""
        return Characteristic(uncounted=dict.fromkeys(Decision, "only reported"))

    def explain(self, finding: Finding) -> tuple[Section, ...]:
        """Explain that the rate is described and nothing is tested."""
        from trialwise.procedures.explanations import as_brackets, lay_out, make_section

        rows = [
            ("Mode", "report only: no threshold decides, and no error rate is claimed"),
            ("Question", f"what is the rate of {finding.criterion}?"),
        ]
        interval, level, found = finding.interval, finding.plan.standing.reported_at, []
        if interval is not None and level is not None:
            ends = f"{as_brackets(interval)}, {interval.method}"
            found.append((f"{numbers.as_percent(level)} interval", ends))
        return lay_out(make_section("HYPOTHESIS TEST", rows), [], found)


REPORT_ONLY = Reported()


def _state_reported(plan: CriterionPlan, passed: int, trials: int, interval: stats.Interval) -> str:
    """Say what was measured and, where a rate or a baseline is named, where that lies."""
    count, rate = numbers.as_count(trials, "trial"), numbers.as_observed(passed / trials)
    no_part = "It is only reported and has no part in the verdict."
    said = f"{passed:,} of {count} passed ({rate}). {no_part}"
    required = plan.threshold.required_rate
    if required is None:
        return said
    is_above, is_below = interval.high < required, interval.low > required
    where = "below" if is_below else "above" if is_above else "inside"
    return f"{said} The {numbers.as_percent(required)} it names lies {where} the interval."


# --- Prohibitions: what keeps them, and what a criterion that watches one can say (§1.4.5) --------
#
# A prohibition is kept or broken in kind, not in rate. No number of trials shows that it is kept,
# so something else has to keep it, such as a guardrail, and a criterion only watches.


def state_clause(plan: CriterionPlan, role: str = "") -> str:
    """Say what keeps a prohibition and what the criterion adds; nothing for other criteria.

    Args:
        plan: The criterion's.
        role: What its inputs are evidence of, where that is known.
    """
    if not plan.terms.categorical or not plan.terms.discharged_by:
        return ""
    keeps = plan.terms.discharged_by
    if role in CHALLENGES:
        return (
            f" It is evidence for what keeps the prohibition: {keeps}. It does not prove the "
            "prohibition."
        )
    return (
        f" The prohibition is kept by: {keeps}. This criterion does not show it; it says "
        "whether a failure got through."
    )


def describe_clause(plan: CriterionPlan) -> str:
    """Describe a prohibition before a run, as the rest of a sentence; nothing for others."""
    if not plan.terms.categorical:
        return ""
    if not plan.terms.discharged_by:
        return f". GAP: {base.GAP}"
    return f". It watches a prohibition, which is kept by: {plan.terms.discharged_by}"
