"""A procedure: so many trials without a failure show that the required rate is met."""

from __future__ import annotations

import math
from dataclasses import dataclass

from trialwise.extend import (
    Chance,
    Characteristic,
    Conclusion,
    Counts,
    Criterion,
    CriterionPlan,
    Decision,
    Evidence,
    Facts,
    Finding,
    Procedure,
    ProcedureDesign,
    Refused,
    RuleError,
    Section,
    Situation,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLength(ProcedureDesign):
    """What it decides by; a stored plan holds it."""

    needed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOfSuccesses(Evidence):
    """What a decision rests on; a stored record holds it."""

    failures: int


class SuccessRun(Procedure):
    """PASS where no trial fails (the success-run theorem); a failure leaves the rate open."""

    name = "SUCCESS_RUN"
    question = "Did so many trials pass without a failure that the required rate is shown?"
    error_family = "false-compliance"

    def plan(self, criterion: Criterion, situation: Situation) -> CriterionPlan | Refused:
        """Plan as many trials as all pass by luck in at most alpha of runs at the required rate."""
        rate = criterion.at_least
        if rate is None or rate == 1:
            return Refused("a run of successes needs a required rate below 100 %; give `at_least`")
        needed = math.ceil(math.log(criterion.wrong_pass) / math.log(rate))
        trials = situation.fixed_trials(criterion) or needed
        if trials < needed:
            return Refused(f"{trials} trials are too few for a run of successes; give {needed}")
        return situation.start_plan(
            criterion,
            procedure=self.name,
            decision_rule="success-run",
            alpha=criterion.wrong_pass,
            trials=trials,
            design=RunLength(needed=needed),
            curtailed=False,
        )

    def conclude(self, plan: CriterionPlan, counts: Counts) -> Conclusion:
        """Decide from the counts alone."""
        tally = counts.tally
        assert isinstance(plan.design, RunLength)
        return Conclusion(
            decision=Decision.INCONCLUSIVE if tally.failed else Decision.PASS,
            tally=tally,
            evidence=RunOfSuccesses(failures=tally.failed),
            statement=f"{tally.failed} of {tally.trials} trials failed; a PASS has to be "
            f"free of failures over at least {plan.design.needed} trials.",
        )

    def characterize(self, plan: CriterionPlan, intent: object) -> Characteristic:  # noqa: ARG002
        """Say how likely a PASS is, so that every page and every total knows."""
        required = plan.threshold.required_rate
        assert required is not None
        wrong = RuleError(
            wrong=Decision.PASS,
            event="PASS although the rate is lower",
            allowed=plan.alpha,
            actual=required**plan.trials,
            rate=required,
        )
        return Characteristic(
            at=lambda rate: Chance(
                rate=rate, passes=rate**plan.trials, fails=0.0, inconclusive=1 - rate**plan.trials
            ),
            states=((required, "as required"), (1.0, "perfect")),
            errors=(wrong,),
        )

    def describe_rule(self, plan: CriterionPlan) -> str:
        """Say it in a line of `trialwise check`."""
        return f"PASS with {plan.trials} of {plan.trials}, otherwise INCONCLUSIVE"

    def explain(self, finding: Finding) -> tuple[Section, ...]:
        """Add to the full analysis."""
        assert isinstance(finding.evidence, RunOfSuccesses)
        pairs = (("Failures", str(finding.evidence.failures)),)
        return (Section(heading="RUN OF SUCCESSES", blocks=(Facts(pairs=pairs),)),)
