"""Everything a report needs of a finding beside its decision, put there once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from trialwise.decimals import complement
from trialwise.model.criterion import Origin
from trialwise.model.evidence import Breakdown, Diagnostics, StopReason
from trialwise.model.outcome import CheckResult, ErrorClass, FailReason, Outcome
from trialwise.model.plan import CriterionPlan
from trialwise.model.tally import Tally
from trialwise.model.trial import Trial
from trialwise.model.verdict import Caution, Decision, Finding, Intent, Procedure
from trialwise.procedures.diagnostics import diagnose
from trialwise.stats.compliance_cutoffs import ComplianceCutoff
from trialwise.stats.normal import upper_z
from trialwise.stats.rate_intervals import clopper_pearson, wilson_interval
from trialwise.stats.result_types import Interval

if TYPE_CHECKING:
    from trialwise.stats import RegressionCutoff

__all__ = [
    "NO_FAILURE_OBSERVED",
    "Row",
    "breakdown_of",
    "counts_of",
    "disclosures_of",
    "enrich",
    "per_protocol_of",
    "tally_of",
]

_UNTESTABLE = frozenset({FailReason.TRANSFORM, FailReason.NO_VALUE})

NO_FAILURE_OBSERVED = "NO FAILURE OBSERVED"

#: The two hypotheses by who set the threshold (companion §7.4).
_HYPOTHESES: dict[Origin, tuple[str, str]] = {
    Origin.SLA: ("the SLA requirement is not met", "the SLA requirement is met"),
    Origin.SLO: ("the SLO target is not met", "the SLO target is met"),
    Origin.POLICY: ("the policy requirement is not met", "the policy requirement is met"),
    Origin.EMPIRICAL: ("no degradation from the baseline", "degradation from the baseline"),
    Origin.UNSPECIFIED: ("the rate does not exceed the threshold", "the rate exceeds it"),
}


class Row(NamedTuple):
    """One trial as one criterion sees it."""

    trial: Trial
    outcome: Outcome

    @property
    def passed(self) -> bool:
        """Whether the criterion passed."""
        return self.outcome.result.passed

    @property
    def is_plain(self) -> bool:
        """Whether it passed at once, and nothing more is to be said of it."""
        trial, outcome = self
        return (
            outcome.result.passed
            and trial.error_class is ErrorClass.NONE
            and trial.attempts == 1
            and not trial.error
        )

    @property
    def is_unjudged(self) -> bool:
        """Whether the service replied, and a judge gave no verdict."""
        trial, outcome = self
        # The plain case first: there may be a hundred thousand.
        return outcome.error_class is not trial.error_class and trial.is_unjudged(outcome)

    @property
    def is_excused(self) -> bool:
        """Whether the per-protocol analysis leaves it out."""
        trial, outcome = self
        if trial.error_class is ErrorClass.NONE is outcome.error_class:
            return False
        return trial.is_excused or trial.is_unjudged(outcome)

    @property
    def is_unheard(self) -> bool:
        """Whether there was nothing that a judge could judge."""
        trial, outcome = self
        unread = outcome.result.reason in _UNTESTABLE and not self.is_unjudged
        return trial.error_class is not ErrorClass.NONE or unread

    def with_pass(self) -> Row:
        """The row as if the criterion had passed."""
        return Row(self.trial, Outcome(criterion=self.outcome.criterion, result=CheckResult.ok()))

    @property
    def error_class(self) -> ErrorClass:
        """The trial's, or else the criterion's own."""
        of_trial = self.trial.error_class
        return self.outcome.error_class if of_trial is ErrorClass.NONE else of_trial

    @property
    def is_untestable(self) -> bool:
        """Whether it failed without reaching the condition."""
        return self.outcome.result.reason in _UNTESTABLE

    @property
    def needed_retry(self) -> bool:
        """Whether it passed, and only after an infrastructure error."""
        return self.trial.attempts > 1 and self.passed


def tally_of(rows: Sequence[Row], trials: int, passed: int) -> Tally:
    """Counts with the number of trials that gave something to test."""
    untestable = sum(row.is_untestable for row in rows if not row.passed)
    return Tally(trials=trials, passed=passed, evaluable=max(passed, trials - untestable))


def enrich(
    finding: Finding,
    criterion: CriterionPlan,
    rows: Sequence[Row],
    stop: StopReason,
) -> Finding:
    """The finding with its provenance, breakdown, diagnostics and statements.

    Args:
        finding: What the procedure concluded.
        criterion: Its plan.
        rows: The counted trials in issue order, excused ones included.
        stop: Why no further trial was counted.
    """
    null, alternative = _hypotheses(finding, criterion)
    return replace(
        finding,
        experiment=criterion.experiment,
        category=criterion.category,
        planned_trials=None if criterion.rides_along else criterion.trials,
        stop=stop,
        threshold=criterion.threshold,
        beta=finding.beta if finding.beta is not None else criterion.beta,
        null=finding.null or null,
        alternative=finding.alternative or alternative,
        interval=finding.interval or _interval(finding, stop),
        power=finding.power if finding.power is not None else _power(finding, criterion),
        label=finding.label or _label(finding, criterion),
        advice=finding.advice or _advice(finding, criterion, stop),
        confidence_statement=finding.confidence_statement or _confidence(finding),
        intent_to_treat=counts_of(rows),
        per_protocol=per_protocol_of(rows),
        breakdown=breakdown_of(rows),
        diagnostics=_diagnostics(rows),
        caveats=(
            *(f"Advisory: {reason}." for reason in criterion.advisory),
            *criterion.caveats,
            *finding.caveats,
            *disclosures_of(rows, skips_unjudged=criterion.limits.design is not None),
        ),
        advisory=criterion.advisory,
    )


def counts_of(rows: Sequence[Row]) -> Tally:
    """Every trial (intent-to-treat)."""
    return tally_of(rows, len(rows), sum(row.passed for row in rows))


def per_protocol_of(rows: Sequence[Row]) -> Tally:
    """The trials in which the service had a fair chance."""
    return counts_of([row for row in rows if not row.is_excused])


def breakdown_of(rows: Sequence[Row]) -> Breakdown:
    """Failures by reason, trials by error class."""
    # Most trials are as they should be and have no part in this.
    rows = [row for row in rows if not row.is_plain]
    reasons = Counter(row.outcome.result.reason for row in rows)
    errors = Counter(row.error_class for row in rows)
    return Breakdown(
        condition=reasons[FailReason.CONDITION],
        transform=reasons[FailReason.TRANSFORM],
        no_value=reasons[FailReason.NO_VALUE],
        errors={str(kind): count for kind, count in errors.items() if kind is not ErrorClass.NONE},
        retried=sum(row.needed_retry for row in rows),
        commonest_error=_commonest(row.trial.error for row in rows if row.trial.error),
    )


def _commonest(texts: Iterable[str]) -> str:
    """The text that comes most often, the first of several equals; nothing of none."""
    ranked = Counter(texts).most_common(1)
    return ranked[0][0] if ranked else ""


def _diagnostics(rows: Sequence[Row]) -> Diagnostics:
    passed = [row.passed for row in rows]
    return diagnose(passed, sum(row.is_untestable for row in rows if not row.passed))


def disclosures_of(rows: Sequence[Row], *, skips_unjudged: bool) -> tuple[str, ...]:
    """What the counts do not show: passes that took a retry, trials that no judge judged."""
    return (*_retried(rows), *_unjudged(rows, skips_unjudged))


def _unjudged(rows: Sequence[Row], skipped: bool) -> tuple[str, ...]:
    unjudged = sum(row.is_unjudged for row in rows)
    if not unjudged:
        return ()
    trials = "1 trial" if unjudged == 1 else f"{unjudged} trials"
    if skipped:
        counted = (
            "take no part; the error rates hold where a judge's silence has nothing to do with "
            "what it was shown"
        )
    else:
        fair = per_protocol_of(rows)
        counted = f"count as failed; without them {fair.passed} of {fair.trials} pass"
    return (f"{trials} got no verdict from the judge and {counted}",)


def _retried(rows: Sequence[Row]) -> tuple[str, ...]:
    retried = sum(row.needed_retry for row in rows if row.trial.attempts > 1)
    if not retried:
        return ()
    passed = sum(row.passed for row in rows)
    trials = "1 passing trial" if retried == 1 else f"{retried} passing trials"
    disclosed = (
        f"{trials} needed a retry after an infrastructure error; counted as failed, "
        f"{passed - retried} of {len(rows)} would be left"
    )
    return (disclosed,)


def _interval(finding: Finding, stop: StopReason) -> Interval | None:
    tally = finding.tally
    inferential = finding.procedure in (Procedure.COMPLIANCE, Procedure.REGRESSION)
    if not tally.trials or not inferential or finding.alpha is None or finding.rule is None:
        return None
    confidence = complement(finding.alpha)
    make = wilson_interval if finding.rule == "wilson" else clopper_pearson
    found = make(tally.passed, tally.trials, confidence=confidence)
    return found if stop is StopReason.COMPLETE else found.after_early_stop()


def _hypotheses(finding: Finding, criterion: CriterionPlan) -> tuple[str, str]:
    if finding.procedure is Procedure.OBSERVATIONAL:
        return "", ""
    if finding.procedure is Procedure.REGRESSION:
        return _HYPOTHESES[Origin.EMPIRICAL]
    null, alternative = _HYPOTHESES[criterion.threshold.origin]
    rate = criterion.threshold.required_rate
    if rate is None:
        return null, alternative
    return f"p ≤ {rate:g}: {null}", f"p > {rate:g}: {alternative}"


def _power(finding: Finding, criterion: CriterionPlan) -> float | None:
    alternative, design = criterion.threshold.alternative_rate, _compared(finding)
    return None if alternative is None or design is None else design.power(alternative)


def _compared(finding: Finding) -> RegressionCutoff | None:
    """The design of a regression; only there is its module loaded."""
    if finding.procedure is not Procedure.REGRESSION:
        return None
    from trialwise.stats.regression_cutoffs import RegressionCutoff

    return finding.design if isinstance(finding.design, RegressionCutoff) else None


def _label(finding: Finding, criterion: CriterionPlan) -> str:
    """Below the probes an operator asks for, PASS would say too much (§1.4.5)."""
    few = criterion.min_probes is not None and finding.tally.trials < criterion.min_probes
    passed = finding.procedure is Procedure.OBSERVATIONAL and finding.decision is Decision.PASS
    return NO_FAILURE_OBSERVED if passed and few else ""


def _advice(finding: Finding, criterion: CriterionPlan, stop: StopReason) -> str:
    if stop.is_premature and finding.decision is Decision.INCONCLUSIVE:
        left = criterion.trials - finding.tally.trials
        return f"Up to {left} more trials decide it; a stored run goes on with --resume."
    if finding.caution is Caution.STRANDS_DISAGREE and isinstance(finding.design, ComplianceCutoff):
        return _more_trials(finding, finding.design)
    design = _compared(finding)
    return _detectable(design) if design and finding.decision is Decision.PASS else ""


def _more_trials(finding: Finding, design: ComplianceCutoff) -> str:
    """n at which the observed rate would just clear: z² p(1 − p) / (p̂ − p)²."""
    rate, required = finding.tally.rate, design.required_rate
    if rate is None or rate <= required:
        return ""
    z = upper_z(design.alpha)
    needed = math.ceil(z * z * required * (1 - required) / (rate - required) ** 2)
    return (
        f"The observed rate meets {required:g} but {design.trials} trials do not show it: about "
        f"{needed:,} would at this rate, or reconsider the confidence asked for."
    )


def _detectable(design: RegressionCutoff, power: float = 0.80) -> str:
    """The highest rate that the resolved test signals with the usual power."""
    low, high = 0.0, design.reference_rate
    if (design.power(low) or 0.0) < power:
        return "Not even a rate of 0 would be signalled: run more trials."
    for _ in range(60):
        middle = (low + high) / 2
        reached = (design.power(middle) or 0.0) >= power
        low, high = (middle, high) if reached else (low, middle)
    return f"With {design.trials} trials a drop to {low:.4f} is signalled with power {power:g}."


def _confidence(finding: Finding) -> str:
    """A long-run property of the rule, never a probability about this verdict (§7.2)."""
    if finding.alpha is None:
        return ""
    level = f"{finding.alpha:g}"
    if finding.procedure is Procedure.REGRESSION:
        return (
            f"This rule was configured at nominal α = {level}. Under the stated reference model, "
            "and assuming independent and stationary trials, the long-run probability of a false "
            f"degradation signal is targeted at {level}, subject to discreteness and "
            "approximation. This is not a posterior probability that this individual result is "
            "wrong."
        )
    if finding.procedure is Procedure.COMPLIANCE:
        softened = " This is a smoke run: no compliance is claimed."
        return (
            "If the true success probability were at or below the requirement, this rule would "
            f"falsely declare compliance with probability controlled at {level}, subject to model "
            "assumptions, discreteness and approximation. This is not a posterior probability "
            f"that this individual result is correct."
            f"{softened if finding.intent is Intent.SMOKE else ''}"
        )
    return ""
