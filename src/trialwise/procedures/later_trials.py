"""Decisions that the trials after them contradict: they are withdrawn, and none is made.

Other criteria may need more trials than the one that decided. Once, at the end of a run, the trials
after a decision are tested against what it says: after a PASS whether they show a rate below the
one that it rules out, after a FAIL whether they show one above the required rate (for a baseline:
above its rate). The test is the exact one-sided binomial test at 1 %, from ten trials on. Against a
baseline, whose rate is itself measured, Fisher's exact test has to say the same. All this only
turns decisions into INCONCLUSIVE, so that no limit on wrong decisions is broken.

A rate that is not the share of passing trials has no such test: a mean, a rate corrected for a
judge's errors or by an estimator, a finite corpus. A FAIL that only says "not shown" says nothing
about the rate that later trials could contradict.
"""

from __future__ import annotations

from dataclasses import replace

from trialwise.decimals import as_written
from trialwise.model.intent import Intent
from trialwise.model.plan import CriterionPlan, Plan
from trialwise.model.verdict import Decision, Finding
from trialwise.procedures.compliance import NOT_SHOWN
from trialwise.procedures.composite import combine, state_inputs
from trialwise.procedures.registry import find_procedure
from trialwise.stats.compliance_cutoffs import compliance_cutoff
from trialwise.stats.fisher import fisher_one_sided

#: How often the trials of a service that did not change may contradict its decision.
LEVEL = 0.01
#: Fewer trials withdraw nothing.
FEWEST = 10


def let_withdraw(plan: CriterionPlan) -> CriterionPlan:
    """Return a plan whose decision later trials can withdraw, if it is about their rate."""
    is_plain = plan.judging.errors is None and plan.estimator is None
    may = find_procedure(plan.procedure).may_be_withdrawn and is_plain
    return plan.change(withdrawn_by=LEVEL) if may else plan


def withdraw(finding: Finding, run: Plan) -> Finding:
    """Return a finding, INCONCLUSIVE if the trials after its decision contradict it.

    Args:
        finding: As it was decided, corrections included.
        run: The plan of the run.
    """
    if finding.by_input:
        parts = tuple(withdraw(part, run) for part in finding.by_input)
        if parts == finding.by_input:
            return finding
        decision = combine(part.decision or Decision.INCONCLUSIVE for part in parts)
        words = replace(finding.words, statement=state_inputs(parts, decision))
        return replace(finding, by_input=parts, decision=decision, words=words)
    if not _is_contradicted(finding):
        return finding
    assert finding.counts is not None
    later = finding.counts.later
    assert later is not None
    other = "lower" if finding.decision is Decision.PASS else "higher"
    statement = (
        f"{finding.decision} at trial {finding.decided_at:,}, but later trials show a {other} rate "
        f"({later.passed:,} of {later.trials:,} passed)"
    )
    # A quick check shows nothing that a change would be needed to explain.
    is_evidence = run.intent_of(finding.plan) is Intent.VERIFICATION
    statement += ": the service changed during the run." if is_evidence else "."
    return replace(
        finding,
        decision=Decision.INCONCLUSIVE,
        withdrawn=finding.decision,
        caution=None,
        words=replace(
            finding.words,
            statement=statement,
            label="",
            advice="Find out what changed, then run again." if is_evidence else "",
        ),
    )


def _is_contradicted(finding: Finding) -> bool:
    """Return whether the trials after a decision show a rate on the other side of it."""
    level, counts = finding.plan.others.withdrawn_by, finding.counts
    later = None if counts is None else counts.later
    if level is None or later is None or later.trials < FEWEST:
        return False
    threshold, passes = finding.threshold, finding.decision is Decision.PASS
    is_shown = getattr(finding.evidence, "ground", None) != NOT_SHOWN
    if not passes and (finding.decision is not Decision.FAIL or not is_shown):
        return False
    baseline = threshold.baseline if threshold.required_rate is None else None
    required = threshold.required_rate if baseline is None else baseline.rate
    rate = as_written(required or 0.0)
    if passes:
        rate = 1 - as_written(threshold.alternative_rate or 0.0)
    if not 0 < rate < 1:
        return False
    count = later.failed if passes else later.passed
    cutoff = compliance_cutoff(float(rate), later.trials, alpha=level, rule="exact").cutoff
    if cutoff is None or count < cutoff:
        return False
    if baseline is None:
        return True
    # The rate of a baseline is not known exactly, and a service like it must not look changed.
    both = (baseline.passed, baseline.trials), (later.passed, later.trials)
    better, worse = both if passes else both[::-1]
    return fisher_one_sided(*better, *worse) <= level
