"""Mean score: is the mean of the replies' scores as high as required?

Scores lie between 0 and 1 and may have any distribution, so the bound is one that holds for all of
them (`stats.bounded_means`). The number of trials is fixed beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import cast

from trialwise import stats
from trialwise.decimals import as_written
from trialwise.documents.blocks import Section
from trialwise.documents.numbers import as_count, as_score, as_score_ends
from trialwise.model.claim import Claim, Intent, PopulationClaim
from trialwise.model.criterion import Criterion
from trialwise.model.evidence import MeanEvidence, PValue, ScoreSummary
from trialwise.model.plan import CriterionPlan
from trialwise.model.verdict import Caution, Decision, Design, Finding, ObservedRate
from trialwise.procedures import base
from trialwise.procedures.characteristic import Characteristic, limit_by_levels
from trialwise.procedures.compliance import NOT_SHOWN, SHOWN_BELOW
from trialwise.procedures.criterion_rows import Rows
from trialwise.procedures.partial_findings import SMOKE_PASS

#: The error on each side of an interval where the criterion states no level.
_USUAL_ERROR = 0.05
_COUNTED = (PopulationClaim.FINITE_CORPUS, PopulationClaim.NO_GENERALISATION)


class MeanScore(base.Procedure):
    """A required mean score, shown or not shown by a fixed number of trials."""

    name = "MEAN"
    question = "Is the required mean score met?"
    error_family = "false-compliance"
    decides_mean = True
    long_run = (
        "if the true mean score were below the requirement, this rule would PASS with at most the "
        "probability stated as α, whatever the distribution of the scores"
    )

    def plan(self, criterion: Criterion, situation: base.Situation) -> CriterionPlan | base.Refused:
        """Plan a number of trials, or refuse one that could not show the mean."""
        required, trials = base.known(criterion.mean_at_least), situation.fixed_trials(criterion)
        fewest = stats.fewest_scores(required, error=criterion.wrong_pass)
        if trials is None:
            return base.Refused(
                "a mean score is decided on a fixed number of trials: give `trials`, at least "
                f"{fewest}, and more where scores vary"
            )
        if situation.claim.population in _COUNTED:
            return base.Refused(
                f"a mean score is about the inputs or their population, not {_COUNTED[0]} or "
                f"{_COUNTED[1]}: claim fixed-inputs"
            )
        if trials < fewest and situation.verifies:
            return base.Refused(
                f"{trials} trials cannot show a mean of {required:g}: even if all scores are 1 the "
                f"bound stays below it. At least {fewest} trials are needed; for a quick check add "
                "`intent: smoke`"
            )
        return situation.start_plan(
            criterion,
            procedure=self.name,
            decision_rule="mean/betting",
            alpha=criterion.wrong_pass,
            trials=trials,
            fail_alpha=criterion.wrong_fail if situation.leaves_open(criterion) else None,
            curtailed=False,
            design=stats.MeanDesign(
                required_mean=required,
                trials=trials,
                low_error=criterion.wrong_pass,
                high_error=criterion.wrong_fail,
                undecided="inconclusive" if situation.leaves_open(criterion) else "fail",
            ),
        )

    def conclude(self, plan: CriterionPlan, counts: base.Counts) -> base.Conclusion:
        """Decide by the bounds on the mean of the scores that count."""
        tally, scores, design = counts.tally, counts.rows.scores, _design_of(plan)
        if not scores:
            return base.Conclusion.without_trials(tally)
        # Added exactly, so that the order in which trials came back cannot move the mean.
        mean, ground = math.fsum(scores) / len(scores), None
        interval, required = design.bound(scores), design.required_mean
        # A sum of decimals may be an ulp beside the decimal that it stands for.
        gap = Fraction(mean).limit_denominator(10**9) - as_written(required)
        observed = ObservedRate.from_gap(gap)
        decision, is_below = Decision.PASS, interval.high < required
        if interval.low < required:
            is_open = design.undecided == "inconclusive" and not is_below
            decision = Decision.INCONCLUSIVE if is_open else Decision.FAIL
            ground = SHOWN_BELOW if is_below else NOT_SHOWN
        caution, label = Caution.for_decision(decision, observed), ""
        if _is_small_smoke(design, counts.intent, tally.trials):
            is_met = observed is not ObservedRate.BELOW_THRESHOLD
            decision = Decision.PASS if is_met else Decision.FAIL
            caution, label = Caution.FEASIBILITY_REFUSED, SMOKE_PASS if is_met else ""
        capital = stats.betting_capital(scores, required)
        tail = "1 / capital against the required mean"
        value = min(1.0, 1 / capital) if capital else 1.0
        p_value = PValue(value=value, method="betting", tail=tail)
        conclusion = base.Conclusion(
            decision=decision,
            tally=tally,
            observed_rate=observed,
            caution=None if caution is Caution.ADEQUATE_POWER else caution,
            evidence=MeanEvidence(ground=ground, estimate=mean, interval=interval, p_value=p_value),
            label=label,
        )
        return replace(conclusion, statement=_state(conclusion, design, len(scores)))

    def hypotheses(self, plan: CriterionPlan) -> tuple[str, str]:
        """Return the hypothesis that is given up only for evidence, and its alternative."""
        required = _design_of(plan).required_mean
        return f"mean score < {required:g}", f"mean score ≥ {required:g}"

    def assure(self, plan: CriterionPlan, intent: Intent) -> str:
        """Say what alpha controls."""
        softened = " This is a smoke run: nothing is claimed." if intent is Intent.SMOKE else ""
        return (
            "If the true mean score were below the requirement, this rule would PASS with "
            f"probability at most {plan.alpha:g}, whatever the distribution of the scores, if "
            f"trials are independent.{softened}"
        )

    def describe_rule(self, plan: CriterionPlan) -> str:
        """Say which bound PASSes, and which one FAILs."""
        design = _design_of(plan)
        required, otherwise = f"{design.required_mean:g}", design.undecided.upper()
        return (
            f"PASS where the bounds on the mean of {plan.trials} scores reach {required}, FAIL "
            f"where they stay below, else {otherwise}{self.describe_share(plan)}"
        )

    def characterize(self, plan: CriterionPlan, intent: Intent) -> Characteristic:
        """Return the levels; how often the bounds really err depends on the scores."""
        if _is_small_smoke(_design_of(plan), intent, plan.trials):
            return Characteristic(uncounted=dict.fromkeys(Decision, "a smoke check"))
        return limit_by_levels(plan)

    def derive_design(self, plan: CriterionPlan) -> Design | None:
        """Return the design: it is what was asked, and nothing is computed for it."""
        return plan.design

    def scale_levels(self, plan: CriterionPlan, scale: Callable[[float], float]) -> CriterionPlan:
        """Scale the errors of both bounds; the design has that of a FAIL which the plan lacks."""
        design = _design_of(plan)
        low, high = scale(design.low_error), scale(design.high_error)
        scaled = super().scale_levels(plan, scale)
        return replace(scaled, design=replace(design, low_error=low, high_error=high))

    def explain(self, finding: Finding) -> tuple[Section, ...]:
        """Explain the bounds on the mean."""
        from trialwise.procedures.explanations import explain_hypotheses, make_section

        scores, mean, interval = finding.scores, finding.estimate, finding.interval
        rows = [
            ("Rule", self.describe_rule(finding.plan)),
            ("Mean score", "" if mean is None else as_score(mean)),
            ("Bounds on the mean", "" if interval is None else as_score_ends(interval)),
            ("Scores", "" if scores is None else f"{scores.trials:,}"),
            ("Method", "betting against the mean; it holds for every distribution of scores"),
        ]
        return explain_hypotheses(finding), make_section("MEAN SCORE", rows)


PROCEDURE = MeanScore()


def summarize_scores(
    plan: CriterionPlan, rows: Rows, claim: Claim, *, is_whole: bool
) -> ScoreSummary | None:
    """Sum up the scores of a criterion; None where it does not grade, or without a trial.

    Args:
        plan: Its plan.
        rows: The trials that count.
        claim: What the run is about.
        is_whole: Whether all planned trials were run.
    """
    scores = rows.scores if plan.terms.pass_at is not None else ()
    if not scores:
        return None
    mean = math.fsum(scores) / len(scores)
    # A claim about these trials alone, or about a corpus, has no population to infer about.
    if claim.population in _COUNTED:
        return ScoreSummary(mean=mean, interval=None, trials=len(scores))
    if plan.procedure == MeanScore.name:
        interval = _design_of(plan).bound(scores)
    else:
        error = _USUAL_ERROR if plan.alpha is None else plan.alpha
        interval = stats.betting_mean_interval(scores, low_error=error, high_error=error)
    if not is_whole:
        interval = interval.after_early_stop()
    return ScoreSummary(mean=mean, interval=interval, trials=len(scores))


def sum_up_inputs(parts: Sequence[ScoreSummary | None]) -> ScoreSummary | None:
    """Return the mean over inputs that are decided one by one; each has bounds of its own."""
    known = [one for one in parts if one is not None]
    if not known:
        return None
    trials = sum(one.trials for one in known)
    mean = math.fsum(one.mean * one.trials for one in known) / trials
    return ScoreSummary(mean=mean, interval=None, trials=trials)


def _design_of(plan: CriterionPlan) -> stats.MeanDesign:
    return cast("stats.MeanDesign", plan.design)


def _is_small_smoke(design: stats.MeanDesign, intent: Intent, trials: int) -> bool:
    """Return whether a smoke run is too small to show the mean."""
    if intent is not Intent.SMOKE:
        return False
    return trials < stats.fewest_scores(design.required_mean, error=design.low_error)


def _state(conclusion: base.Conclusion, design: stats.MeanDesign, trials: int) -> str:
    """Say what the mean is, and what it shows."""
    evidence = cast("MeanEvidence", conclusion.evidence)
    required = f"{design.required_mean:g}"
    observed = f"mean of {as_count(trials, 'score')} is {as_score(evidence.estimate)}"
    shown = f"{math.floor(1000 * evidence.interval.low) / 1000:g}"
    if conclusion.label:
        return f"smoke: the {observed}; it shows at least {shown}, not {required}."
    if conclusion.decision is Decision.PASS:
        return f"The {observed}, which shows a mean of at least {required}."
    if evidence.ground == SHOWN_BELOW:
        return f"The {observed}, which shows a mean below {required}."
    return f"The {observed}; it shows a mean of at least {shown}, and {required} is required."
