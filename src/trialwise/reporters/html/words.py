"""What a verdict means and what it does not, in plain sentences.

Statements about single criteria are the procedures' own. Here is what holds for the run: whom it
speaks of, what a PASS of its kind never claims, and the error rates that its rules really have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trialwise.documents.numbers import as_count, as_level, as_percent, as_probability
from trialwise.documents.phrases import STOPS
from trialwise.model.evidence import StopReason
from trialwise.model.options import Analysis
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Caution, Decision, Finding, Intent, Procedure, Verdict
from trialwise.stats.compliance_cutoffs import ComplianceCutoff
from trialwise.stats.regression_cutoffs import RegressionCutoff
from trialwise.stats.sequential.design import SequentialDesign

__all__ = [
    "EACH_INPUT",
    "MEASURED",
    "REASONS",
    "ErrorRate",
    "claims",
    "disclaimers",
    "error_rates",
    "headline",
    "is_measured",
    "is_soft",
    "meaning",
    "needs",
    "question",
    "shown",
    "stopped",
]

#: Criteria named in a sentence; the others are counted.
NAMED = 3

MEASURED = "MEASURED"
"""What a run is called that decided nothing on purpose."""

EACH_INPUT = ", each input"
"""Behind the name of a criterion that judges each input on its own."""

REASONS = {
    "condition": "condition not met",
    "transform": "reply not readable",
    "no-value": "no reply",
}
"""Why a trial failed a criterion."""

_PROCEDURES = {
    Procedure.COMPLIANCE: "Is the required rate met?",
    Procedure.REGRESSION: "Has the rate degraded from its baseline?",
    Procedure.SEQUENTIAL: "Is the required rate met, or missed by the margin?",
    Procedure.OBSERVATIONAL: "Was any failure observed?",
}


def question(finding: Finding) -> str:
    """What the criterion's procedure asks."""
    return _PROCEDURES[finding.procedure]


def is_measured(record: RunRecord) -> bool:
    """Whether the run measured a baseline and decided nothing."""
    return record.plan.purpose == "measure"


def shown(record: RunRecord, finding: Finding) -> tuple[Decision | None, str]:
    """The decision that a criterion is shown with, and the word for it."""
    return (None, MEASURED) if is_measured(record) else (finding.decision, finding.label)


def is_soft(record: RunRecord) -> bool:
    """Whether a PASS of the run is a sentinel's and no evidence."""
    return record.verdict.intent is Intent.SMOKE


def headline(record: RunRecord) -> str:
    """The word a reader looks for."""
    if is_measured(record):
        return MEASURED
    decision = record.verdict.decision
    if decision is None:
        return "REFUSED"
    labels = {finding.label for finding in record.verdict.findings}
    # Where every criterion is softened the same way, so is the whole.
    if decision is Decision.PASS and len(labels) == 1 and (label := labels.pop()):
        return label
    return decision.value


def meaning(record: RunRecord) -> str:
    """What the word means, in a sentence or two."""
    verdict = record.verdict
    if is_measured(record):
        return (
            f"{as_count(len(record.trials), 'trial')} were run to measure a baseline. Nothing was "
            "decided."
        )
    smoke = is_soft(record)
    match verdict.decision:
        case None:
            return (
                "The design could not support its claim, whatever the trials would have shown, so "
                "nothing was run and nothing is decided."
            )
        case Decision.PASS:
            return _passed(verdict, smoke=smoke)
        case Decision.FAIL:
            if smoke:
                return f"What was observed is inconsistent with the target: {_triggers(verdict)}."
            return f"{_count(verdict)} failed: {_triggers(verdict)}."
        case Decision.INCONCLUSIVE:
            return (
                f"Nothing failed, but {_count(verdict)} could not be decided: "
                f"{_triggers(verdict)}. This is neither a PASS nor a FAIL."
            )


def _passed(verdict: Verdict, *, smoke: bool) -> str:
    total = len(verdict.findings) + len(verdict.latency)
    if all(one.procedure is Procedure.OBSERVATIONAL for one in verdict.findings):
        trials = max(one.tally.trials for one in verdict.findings)
        return f"No failure was observed in {as_count(trials, 'trial')}. That is all it says."
    if smoke:
        return "What was observed is consistent with the targets. This is a smoke run, a sentinel."
    few = {1: "The criterion passed", 2: "Both criteria passed"}
    said = few.get(total, f"All {total} criteria passed")
    gated = any(gate.decision is not None for gate in verdict.gates)
    return f"{said}, and so did every gate." if gated else f"{said}."


def _count(verdict: Verdict) -> str:
    gates = [gate for gate in verdict.gates if gate.decision is not None]
    total = len(verdict.findings) + len(verdict.latency) + len(gates)
    if total == 1:
        return "the criterion" if verdict.decision is Decision.INCONCLUSIVE else "The criterion"
    return f"{len(verdict.triggers)} of {total} criteria{' and gates' if gates else ''}"


def _triggers(verdict: Verdict) -> str:
    inputs = {one.criterion: one.by_input for one in verdict.findings if one.by_input}
    names = [
        f"latency {one.name}"
        if one.kind == "latency"
        else f"gate {one.name}"
        if one.kind == "gate"
        else one.name + _inputs(inputs.get(one.name, ()), verdict.decision)
        for one in verdict.triggers
    ]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _inputs(parts: Sequence[Finding], decision: Decision | None) -> str:
    """Which inputs decided, where each is judged on its own."""
    worst = [part.input_id or "" for part in parts if part.decision is decision]
    if not worst:
        return ""
    more = f" and {len(worst) - NAMED} more" if len(worst) > NAMED else ""
    return f" on {', '.join(worst[:NAMED])}{more}"


def claims(record: RunRecord) -> Iterator[str]:
    """Whom the verdict speaks of, what counted, and what it was run for."""
    verdict = record.verdict
    if verdict.decision is None:
        yield "Nothing was run, so nothing is claimed."
        return
    for one in verdict.experiments:
        about = verdict.claim.about(one.inputs)
        which = f"On {one.identifier}: this is" if len(verdict.experiments) > 1 else "This is"
        yield f"{which} {about}."
    if verdict.claim.representativeness:
        yield f"They are taken to represent it: {verdict.claim.representativeness}"
    if record.plan.analysis is Analysis.PER_PROTOCOL:
        yield "Trials in which the service had no fair chance are left out (per-protocol)."
    else:
        yield "Every trial counts, errors of the infrastructure included (intent-to-treat)."
    if verdict.intent is Intent.VERIFICATION and not is_measured(record):
        yield "It was run as evidence: a design too small for its claim is refused before it runs."
    if verdict.horizon is not None and verdict.horizon_false_alarm is not None:
        yield (
            f"Over {as_count(verdict.horizon, 'run')} like this one, a false alarm in any of them "
            f"has a probability of at most {as_level(verdict.horizon_false_alarm)}."
        )


def disclaimers(record: RunRecord) -> Iterator[str]:
    """What a reader might take the verdict for, and should not."""
    verdict = record.verdict
    findings = verdict.findings
    passed = {one.procedure for one in findings if one.decision is Decision.PASS}
    if verdict.decision is None:
        yield "A refusal says nothing about the service; it is about the design."
        return
    if is_measured(record):
        yield "A baseline is an observation: what it means is decided when a test is held to it."
        return
    if is_soft(record):
        yield (
            "A smoke run verifies nothing: a PASS is a direction, not a determination of "
            "compliance; a FAIL is to be taken seriously."
        )
    if Procedure.REGRESSION in passed:
        yield "No degradation signal is no proof of equivalence with the baseline."
    if Procedure.OBSERVATIONAL in passed:
        yield "No failure observed makes no claim about how often failures happen."
    if any(one.caution is Caution.STRANDS_DISAGREE for one in findings):
        yield "A FAIL although the observed rate is high enough means not shown, not disproved."
    if findings and all(one.advisory for one in findings):
        yield "Nothing was shown: all that was looked at only advises."
    elif verdict.decision is Decision.INCONCLUSIVE:
        yield "INCONCLUSIVE is no weak PASS: with more trials it may turn out either way."
    if any(gate.decision is not None for gate in verdict.gates):
        yield (
            "A gate that passes shows nothing at any confidence: it holds a number of this run "
            "against a limit, and has no error rate."
        )
    if any(one.alpha is not None for one in findings):
        yield (
            "No error rate here is the probability that this verdict is wrong; each says how often "
            "the rule errs in the long run, for independent and stationary trials."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRate:
    """One way in which a rule can be wrong: how often it may be, and how often it is."""

    criterion: str
    event: str
    nominal: float
    exact: float | None


def error_rates(record: RunRecord) -> Iterator[ErrorRate]:
    """The error rates of every criterion's rule, nominal and exact."""
    for finding in record.verdict.findings:
        if finding.alpha is None or finding.decision is None:
            continue
        first = finding.by_input[0] if finding.by_input else finding
        each = f"{finding.criterion}{EACH_INPUT}" if finding.by_input else finding.criterion
        design = first.design
        if isinstance(design, ComplianceCutoff):
            yield ErrorRate(
                criterion=each,
                event=f"PASS at a true rate of {as_percent(design.required_rate)}",
                nominal=design.alpha,
                exact=design.achieved_size,
            )
        elif isinstance(design, RegressionCutoff):
            exact = design.design_false_alarm
            yield ErrorRate(
                criterion=each,
                event="FAIL although nothing has changed",
                nominal=design.alpha,
                exact=design.achieved_size if exact is None else exact,
            )
        elif isinstance(design, SequentialDesign):
            yield ErrorRate(
                criterion=each,
                event=f"FAIL at a true rate of {as_percent(design.p0)}",
                nominal=design.alpha,
                exact=design.operating_characteristic(design.p0).fails,
            )
            yield ErrorRate(
                criterion=each,
                event=f"PASS at a true rate of {as_percent(design.p1)}",
                nominal=design.beta,
                exact=design.operating_characteristic(design.p1).passes,
            )


def stopped(finding: Finding) -> str:
    """Why no further trial was counted."""
    trials, planned = finding.tally.trials, finding.planned_trials
    most = f" of at most {planned:,}" if planned is not None else ""
    match finding.stop:
        case None:
            return "not run" if not trials else ""
        case StopReason.DECIDED:
            return "every input decided" if finding.by_input else f"decided after {trials:,}{most}"
        case StopReason.CURTAILED:
            return f"verdict certain after {trials:,}{most.replace(' at most', '')}"
        case StopReason.COMPLETE:
            return "all planned trials run"
        case reason:
            return f"{STOPS[reason].clause} after {trials:,}{most}"


def needs(finding: Finding) -> str:
    """What is asked of the rate, in the fewest words."""
    threshold = finding.threshold
    if finding.procedure is Procedure.OBSERVATIONAL or threshold is None:
        return "no failure" if finding.procedure is Procedure.OBSERVATIONAL else ""
    if threshold.required_rate is not None:
        return f"≥ {as_percent(threshold.required_rate)}"
    if threshold.baseline is not None:
        rate = threshold.baseline.passed / threshold.baseline.trials
        return f"baseline {as_probability(rate, digits=1)}"
    return ""
