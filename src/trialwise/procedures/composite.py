"""The composite verdict: FAIL beats INCONCLUSIVE beats PASS, and no part is lost (§1.4.6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from trialwise.decimals import as_written
from trialwise.documents.numbers import join_few
from trialwise.errors import InvalidArgument
from trialwise.model.claim import Intent
from trialwise.model.evidence import Envelopes
from trialwise.model.plan import Plan
from trialwise.model.verdict import Decision, Dimension, Finding, LatencyFinding, Trigger, Verdict
from trialwise.procedures.base import known
from trialwise.procedures.chances import bound_errors, describe_inputs, list_finding_parts
from trialwise.procedures.compliance import NOT_SHOWN
from trialwise.procedures.families import advise_correction
from trialwise.procedures.registry import procedure_of
from trialwise.stats.compliance_cutoffs import compliance_cutoff
from trialwise.stats.result_types import Refusal
from trialwise.stats.unconditional import fisher_one_sided

if TYPE_CHECKING:
    from trialwise.model.metrics import GateFinding


def combine(decisions: Iterable[Decision]) -> Decision | None:
    """Combine decisions: FAIL if any FAILs, else INCONCLUSIVE if any is, else PASS.

    >>> combine([Decision.PASS, Decision.INCONCLUSIVE])
    <Decision.INCONCLUSIVE: 'INCONCLUSIVE'>
    """
    # One known failure is enough to know the whole, and one gap enough not to know it.
    seen = set(decisions)
    for decision in (Decision.FAIL, Decision.INCONCLUSIVE, Decision.PASS):
        if decision in seen:
            return decision
    return None


def state_inputs(parts: Sequence[Finding], decision: Decision | None) -> str:
    """State how many inputs PASS, which have the decision of all, and how often some is wrong."""
    passing = sum(part.decision is Decision.PASS for part in parts)
    worst = [
        f"{part.input_id} ({part.tally.passed}/{part.tally.trials})"
        for part in parts
        if part.decision is decision is not Decision.PASS
    ]
    which = f"; {decision}: {join_few(worst, 5)}" if worst else ""
    # A family says of all its decisions how often some of them is wrong.
    plan = parts[0].plan
    levels = "" if plan.others.family else describe_inputs(parts[0], len(parts))
    advice = advise_correction(len(parts), plan.alpha or 0.0) if levels else ""
    advice = f" {advice}." if advice else ""
    return f"{passing} of {len(parts)} inputs PASS{which}.{levels}{advice}"


def compose(
    findings: Iterable[Finding],
    latency: Iterable[LatencyFinding] = (),
    *,
    advisory: Iterable[Dimension] = (),
    gates: Iterable[GateFinding] = (),
) -> Verdict:
    """Compose findings into a verdict; refused whole if any enforced part's design was refused.

    An advisory dimension or criterion is decided exactly as an enforced one and reported; it never
    enters the verdict's decision. With nothing enforced the decision is PASS: the run cannot fail;
    where only judges that nobody measured are left, it is INCONCLUSIVE: nothing was shown. A gate
    counts like a criterion, but has no error rate and enters no envelope.

    Args:
        findings: One per criterion, in the contract's order.
        latency: One per latency constraint.
        advisory: Dimensions to report without enforcing.
        gates: One per gate.
    """
    findings, latency, gates = tuple(findings), tuple(latency), tuple(gates)
    left_out, undecided = frozenset(advisory), Decision.INCONCLUSIVE
    counting = tuple(one for one in findings if not one.advisory)
    if not findings and not latency:
        raise InvalidArgument("findings", [], "hold a criterion: what was not run is never PASS")
    parts: list[Finding | LatencyFinding] = [*findings, *latency]
    rules = sorted({part.rule for part in parts if part.rule is not None})
    if len(rules) > 1:  # two rule sets give two answers to one question
        allowed = "be decided by one rule set: never mix within a verdict"
        raise InvalidArgument("findings", rules, allowed)
    criteria = () if Dimension.FUNCTIONAL in left_out else counting
    timed = () if Dimension.LATENCY in left_out else latency
    parts = [*criteria, *timed]
    given = {reason for part in parts for reason in part.refusals}
    verdict = Verdict(
        decision=None,
        findings=findings,
        latency=latency,
        gates=gates,
        advisory=left_out,
        # Every reason once, in the order that the enumeration declares.
        refusals=tuple(reason for reason in Refusal if reason in given),
    )
    if given:
        return verdict
    enforced = [
        *(("criterion", one.criterion, one.decision or undecided) for one in criteria),
        *(("latency", one.constraint, one.decision or undecided) for one in timed),
        *(("gate", one.gate, one.decision) for one in gates if one.decision is not None),
    ]
    # What is not enforced cannot fail. What could not be decided is not a PASS either: a build
    # that turns green because every judge was left out would be believed.
    unproven = findings and not counting and Dimension.FUNCTIONAL not in left_out
    nothing = Decision.INCONCLUSIVE if unproven else Decision.PASS
    decision = combine(found for _, _, found in enforced) or nothing

    def bound(family: str, wrong: Decision) -> float | None:
        mine = [one for one in counting if procedure_of(one).error_family == family]
        found = bound_errors(list_finding_parts(mine), wrong)
        return None if found is None else found.raw

    return replace(
        verdict,
        decision=decision,
        functional_decision=combine(one.decision or undecided for one in counting),
        latency_decision=combine(one.decision or undecided for one in latency),
        triggers=tuple(
            Trigger(kind=kind, name=name)
            for kind, name, found in enforced
            if found is decision is not Decision.PASS
        ),
        envelopes=Envelopes(
            false_compliance_envelope=bound("false-compliance", Decision.PASS),
            false_degradation_envelope=bound("false-degradation", Decision.FAIL),
            false_rejection_envelope=bound("false-rejection", Decision.FAIL),
            false_acceptance_envelope=bound("false-rejection", Decision.PASS),
        ),
    )


# --- Decisions that the trials after them contradict: they are withdrawn, and none is made --------
#
# Other criteria may need more trials than the one that decided. Once, at the end of a run, the
# trials after a decision are tested against what it says: after a PASS whether they show a rate
# below the one that it rules out, after a FAIL whether they show one above the required rate (for a
# baseline: above its rate). The test is the exact one-sided binomial test at 1 %, from ten trials
# on. Against a baseline, whose rate is itself measured, Fisher's exact test has to say the same.
# All this only turns decisions into INCONCLUSIVE, so that no limit on wrong decisions is broken.
#
# A rate that is not the share of passing trials has no such test: a mean, a rate corrected for a
# judge's errors or by an estimator, a finite corpus. A FAIL that only says "not shown" says nothing
# about the rate that later trials could contradict.

#: Fewer trials withdraw nothing.
FEWEST = 10


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
    later = known(known(finding.counts).later)
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
    # A PASS says that the rate is above the alternative, so too many failures contradict it. A
    # FAIL says that it is below the required one, so too many passes do.
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
