"""What a reader of a verdict must not miss, most urgent first, each thing once.

Apart from the layout, since a page, a log and a pull-request comment must name the same things.
"""

from __future__ import annotations

from collections.abc import Iterator

from trialwise.documents.numbers import as_count, as_observed
from trialwise.documents.phrases import STOPS
from trialwise.model.evidence import Guard
from trialwise.model.verdict import Decision, Finding, Verdict

__all__ = ["list_attention"]

#: Criteria named before one note; the others are counted.
_NAMED = 3


def list_attention(verdict: Verdict) -> list[str]:
    """Sentences about what stopped a run, what did not pass and why, and what qualifies the rest.

    A note that concerns several criteria is given once, with their names.
    """
    named: dict[str, list[str]] = {}
    for name, note in _list_notes(verdict):
        names = named.setdefault(note.strip(), [])
        if name and name not in names:
            names.append(name)
    return [
        f"{_join_names(names)}: {note}" if names else note for note, names in named.items() if note
    ]


def _list_notes(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """(criterion or nothing, note), most urgent first."""
    if verdict.stop.is_premature or verdict.aborted:
        yield "", verdict.aborted or f"The run ended early: {STOPS[verdict.stop].label}."
    for finding in verdict.findings:
        if finding.decision is not Decision.PASS:
            yield finding.criterion, _explain_finding(finding)
    yield from _list_errors(verdict)
    for constraint in verdict.latency:
        if constraint.decision is not Decision.PASS:
            yield f"latency {constraint.constraint}", constraint.statement
    yield from _list_gate_notes(verdict)
    for guard in verdict.guards:
        yield guard.criterion or "", _word_guard(guard)
    messages = {guard.message for guard in verdict.guards}
    for caveat in verdict.caveats:
        if caveat not in messages:
            yield "", caveat
    for finding in verdict.findings:
        for caveat in _list_qualifications(finding):
            if caveat not in messages:
                yield finding.criterion, caveat


def _list_gate_notes(verdict: Verdict) -> Iterator[tuple[str, str]]:
    for gate in verdict.gates:
        if gate.decision not in (Decision.PASS, None):
            yield gate.gate, gate.statement
        for caveat in gate.caveats:
            yield gate.gate, caveat


def _list_errors(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """What the service said instead of a reply, where that may be why something did not pass."""
    for finding in verdict.findings:
        error = finding.breakdown.commonest_error if finding.breakdown is not None else ""
        if error and finding.decision is not Decision.PASS:
            yield finding.criterion, f"Trials without a reply mostly said: {error}"


def _explain_finding(finding: Finding) -> str:
    parts = [finding.statement, finding.advice]
    # The line above the notes lists the inputs already.
    return " ".join(parts[finding.by_input != () :]).strip()


def _word_guard(guard: Guard) -> str:
    severity = guard.severity.value.replace("-", " ")
    admitted = ", admitted by override" if guard.overridden else ""
    return f"{severity}{admitted}: {guard.message} [{guard.code}]"


def _list_qualifications(finding: Finding) -> Iterator[str]:
    yield from finding.caveats
    for part in finding.by_input:
        yield from part.caveats
    if finding.diagnostics is not None:
        yield from finding.diagnostics.warnings
    retried = finding.breakdown.retried if finding.breakdown is not None else 0
    if (
        retried
        and not finding.by_input
        and not any("retry" in caveat for caveat in finding.caveats)
    ):
        yield f"{as_count(retried, 'passing trial')} needed a retry"
    yield from _compare_denominators(finding)


def _compare_denominators(finding: Finding) -> Iterator[str]:
    """Both denominators where they differ: whose fault a failure was is the reader's question."""
    every, fair = finding.intent_to_treat or finding.tally, finding.per_protocol
    # Inputs that are decided one by one have both counts of their own.
    if fair is None or every.rate is None or fair.trials == every.trials or finding.by_input:
        return
    all_rate = as_observed(every.rate)
    rate = "no trial" if fair.rate is None else as_observed(fair.rate)
    if rate == all_rate:
        return
    yield (
        f"per protocol {rate} ({fair.passed:,} of {fair.trials:,}), all trials {all_rate} "
        f"({every.passed:,} of {every.trials:,}): {as_count(every.trials - fair.trials, 'trial')} "
        "never had a fair chance"
    )


def _join_names(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
