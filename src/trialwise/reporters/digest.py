"""The lines of a run's report, in one order and in one set of words.

Between a record and the formats, so that no two files about one run can disagree: which lines
there are, which of them are red, why trials failed and on which numbers a line rests.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from trialwise.documents.numbers import as_count, as_duration, as_money
from trialwise.documents.printable import make_visible
from trialwise.model.run import RunRecord
from trialwise.model.trial import Trial
from trialwise.model.verdict import (
    Decision,
    Dimension,
    Finding,
    LatencyFinding,
    Procedure,
    Verdict,
)
from trialwise.reporters.gates import gate_facts, gate_notes, runs_of
from trialwise.reporters.judged import judged_facts, nothing_decides
from trialwise.reporters.suite import Status, status_of, suite_spending

if TYPE_CHECKING:
    from trialwise.model.metrics import GateFinding

__all__ = [
    "Entry",
    "FailureGroup",
    "Kind",
    "TrialIndex",
    "digest",
    "facts",
    "failure_lines",
    "run_notes",
    "suite_line",
]

#: Groups of failures that a report names; the rest is counted.
MOST_GROUPS = 5
#: What varies between two tellings of one failure: quoted pieces and numbers.
_VARIABLE = re.compile(r"(?<!\w)'[^']*'(?!\w)|\"[^\"]*\"|\d+")


class Kind(StrEnum):
    """What a line is about."""

    CRITERION = "criterion"
    INPUT = "input"
    """One input of a criterion that judges each on its own."""
    LATENCY = "latency"
    GATE = "gate"
    """A number of repeated runs that something was asked of."""
    RUN = "run"
    """The run itself, where no other line says that it is no PASS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureGroup:
    """Failures that differ in nothing but numbers and quoted text, with the first as example."""

    count: int
    reason: str
    error_class: str
    postcondition: str
    explanation: str
    evidence: str
    input_id: str
    trial: int
    """The example's place in the issue order of its experiment, from 0."""
    seed: int

    @property
    def title(self) -> str:
        """What failed: the reason, and where there was one the error and the postcondition."""
        error = self.error_class if self.error_class != "none" else ""
        return ", ".join(part for part in (self.reason, error, self.postcondition) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a report."""

    kind: Kind
    contract: str
    name: str
    status: Status
    label: str
    """What to print for the status."""
    advisory: bool = False
    """Decided and shown, but left out of the verdict."""
    statement: str = ""
    advice: str = ""
    """What to do next."""
    notes: tuple[str, ...] = ()
    """What qualifies the status without changing it."""
    claim: str = ""
    """Whom it speaks of."""
    finding: Finding | LatencyFinding | GateFinding | None = None
    failures: tuple[FailureGroup, ...] = ()
    """The most frequent first."""

    @property
    def is_red(self) -> bool:
        """Whether it keeps the run from a PASS."""
        return self.status is not Status.PASS and not self.advisory

    @property
    def title(self) -> str:
        """Contract and name."""
        return f"{self.contract}: {self.name}"


def run_notes(verdict: Verdict) -> tuple[str, ...]:
    """What a reader should know of a run beside its findings: its end, its guardrails."""
    guards = [
        f"{guard.message} ({guard.severity}{', overridden' if guard.overridden else ''})"
        for guard in verdict.guards
        if guard.criterion is None
    ]
    said = {guard.message for guard in verdict.guards}
    rest = [caveat for caveat in verdict.caveats if caveat not in said]
    return (*((verdict.aborted,) if verdict.aborted else ()), *guards, *rest)


def digest(record: RunRecord) -> tuple[Entry, ...]:
    """The lines of a run: its criteria, their inputs where each is judged, its latency limits,
    its gates.

    A run that is no PASS has a red line: its own, where the others have none.
    """
    verdict = record.verdict
    trials = TrialIndex(record)
    entries = [
        entry for finding in verdict.findings for entry in _of_criterion(record, finding, trials)
    ]
    entries += [_of_latency(record, finding) for finding in verdict.latency]
    entries += [_of_gate(record, gate) for gate in verdict.gates if gate.decision is not None]
    if verdict.decision is not Decision.PASS and not any(entry.is_red for entry in entries):
        entries.append(_of_run(record))
    return tuple(entries)


def facts(entry: Entry) -> dict[str, str | int | float | bool | None]:
    """The numbers behind a line, under names that every machine-readable report shares."""
    finding = entry.finding
    if isinstance(finding, Finding):
        return _criterion_facts(entry, finding)
    if isinstance(finding, LatencyFinding):
        return {
            "decision": finding.decision,
            "label": entry.label,
            "advisory": entry.advisory,
            "rule": finding.decision_rule,
            "claim": entry.claim,
            "trials": finding.trials,
            "percentile": finding.percentile,
            "observed_s": finding.observed,
            "threshold_s": finding.threshold,
            "alpha": finding.alpha,
        }
    decision = None if entry.status is Status.REFUSED else entry.status.value
    return {
        "decision": decision,
        "label": entry.label,
        "advisory": entry.advisory,
        **({} if finding is None else {"claim": entry.claim, **gate_facts(finding)}),
    }


def _criterion_facts(entry: Entry, finding: Finding) -> dict[str, str | int | float | bool | None]:
    interval, threshold = finding.interval, finding.threshold
    baseline = threshold.baseline if threshold is not None else None
    return {
        "decision": finding.decision,
        "label": entry.label,
        "advisory": entry.advisory,
        "procedure": finding.procedure,
        "rule": finding.decision_rule,
        "claim": entry.claim,
        "trials": finding.tally.trials,
        "passed": finding.tally.passed,
        "planned_trials": finding.planned_trials,
        "stop": finding.stop,
        "rate": finding.tally.rate,
        "estimate": finding.estimate,
        "interval_low": interval.low if interval is not None else None,
        "interval_high": interval.high if interval is not None else None,
        "interval_confidence": interval.confidence if interval is not None else None,
        "interval_method": interval.method if interval is not None else None,
        "required_rate": threshold.required_rate if threshold is not None else None,
        "baseline": baseline.identifier if baseline is not None else None,
        "cutoff": finding.cutoff,
        "alpha": finding.alpha,
        "beta": finding.beta,
        "p_value": finding.p_value.value if finding.p_value is not None else None,
        "lower_bound": finding.lower_bound,
        **judged_facts(finding),
    }


def suite_line(records: Sequence[RunRecord]) -> str:
    """A suite in figures: its lines by status, its contracts, and what they took."""
    entries = [one for record in records for one in digest(record) if one.kind is not Kind.INPUT]
    found = Counter(entry.status for entry in entries if not entry.advisory)
    breaches = sum(entry.advisory and entry.status is Status.FAIL for entry in entries)
    spent = suite_spending(records)
    parts = [f"{found[status]} {status}" for status in Status if found[status]]
    parts += [as_count(breaches, "advisory FAIL")] if breaches else []
    parts += [as_count(len(records), "contract"), as_count(spent.trials, "trial")]
    parts += [as_duration(spent.seconds), *([] if spent.usd is None else [as_money(spent.usd)])]
    return ", ".join(parts)


def failure_lines(entry: Entry) -> list[str]:
    """Why trials failed: the most frequent reasons, each with an example, a line each."""
    lines = []
    for group in entry.failures[:MOST_GROUPS]:
        lines.append(f"{group.count} x {group.title}: {group.explanation}")
        where = f"trial {group.trial}, input {group.input_id}, seed {group.seed}"
        evidence = f": {group.evidence}" if group.evidence else ""
        lines.append(f"    for example {where}{evidence}")
    rest = sum(group.count for group in entry.failures[MOST_GROUPS:])
    if rest:
        lines.append(f"{rest} x other reasons")
    return [make_visible(line) for line in lines]


def _of_criterion(record: RunRecord, finding: Finding, trials: TrialIndex) -> Iterator[Entry]:
    verdict = record.verdict
    advisory = Dimension.FUNCTIONAL in verdict.advisory
    guards = tuple(
        guard.message for guard in verdict.guards if guard.criterion == finding.criterion
    )
    for one in (finding, *finding.by_input):
        is_input = one.input_id is not None
        status = _finding_status(one.decision, bool(one.refusals))
        inputs = 1 if is_input else trials.inputs(one)
        yield Entry(
            kind=Kind.INPUT if is_input else Kind.CRITERION,
            contract=_contract(record),
            name=f"{one.criterion} [{one.input_id}]" if is_input else one.criterion,
            status=status,
            label=one.label or status.value,
            advisory=advisory or bool(finding.advisory),
            statement=one.statement,
            advice=one.advice,
            notes=_notes(one, () if is_input else guards),
            claim=_claim(one, status, verdict.claim.about(inputs)),
            finding=one,
            failures=_grouped(one.criterion, trials.counted(one)),
        )


def _claim(finding: Finding, status: Status, about: str) -> str:
    if status is Status.REFUSED:
        return ""
    if finding.procedure is Procedure.OBSERVATIONAL:
        return "about the trials of this run and nothing else"
    return about


def _notes(finding: Finding, guards: tuple[str, ...]) -> tuple[str, ...]:
    warnings = finding.diagnostics.warnings if finding.diagnostics is not None else ()
    return tuple(dict.fromkeys((*guards, *finding.caveats, *warnings)))


def _of_latency(record: RunRecord, finding: LatencyFinding) -> Entry:
    status = _finding_status(finding.decision, bool(finding.refusals))
    return Entry(
        kind=Kind.LATENCY,
        contract=_contract(record),
        name=f"latency {finding.constraint}",
        status=status,
        label=status.value,
        advisory=Dimension.LATENCY in record.verdict.advisory,
        statement=finding.statement,
        claim="about the latencies of successful trials",
        finding=finding,
    )


def _of_gate(record: RunRecord, gate: GateFinding) -> Entry:
    status = status_of(gate.decision)
    return Entry(
        kind=Kind.GATE,
        contract=_contract(record),
        name=gate.gate,
        status=status,
        label=status.value,
        statement=gate.statement,
        notes=(*gate_notes(gate), *gate.caveats),
        claim=f"about {runs_of(gate)}",
        finding=gate,
    )


def _of_run(record: RunRecord) -> Entry:
    verdict = record.verdict
    status = status_of(verdict.decision)
    refused = f"Refused: {', '.join(verdict.refusals)}." if verdict.refusals else ""
    return Entry(
        kind=Kind.RUN,
        contract=_contract(record),
        name="verdict",
        status=status,
        label=status.value,
        statement=verdict.aborted or refused or nothing_decides(verdict) or f"The run is {status}.",
    )


def _contract(record: RunRecord) -> str:
    return record.verdict.contract or record.plan.contract


def _finding_status(decision: Decision | None, refused: bool) -> Status:
    """A part without a decision counts as INCONCLUSIVE unless its design was refused."""
    if decision is None:
        return Status.REFUSED if refused else Status.INCONCLUSIVE
    return status_of(decision)


@dataclass(slots=True)
class TrialIndex:
    """The trials of a record by experiment and input, in issue order."""

    record: RunRecord
    _by_experiment: dict[str, list[Trial]] = field(default_factory=dict)
    _by_input: dict[tuple[str, str], list[Trial]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for trial in sorted(self.record.trials, key=lambda one: one.index):
            self._by_experiment.setdefault(trial.experiment, []).append(trial)
            self._by_input.setdefault((trial.experiment, trial.input_id), []).append(trial)

    def inputs(self, finding: Finding) -> int:
        """How many inputs a criterion was tried on."""
        name = self._experiment(finding)
        plans = self.record.plan.experiments
        return next((len(one.input_ids) for one in plans if one.name == name), 0)

    def counted(self, finding: Finding) -> Iterator[Trial]:
        """The trials that a finding rests on: those in front of its decision."""
        name = self._experiment(finding)
        if finding.by_input:
            for part in finding.by_input:
                yield from self.counted(part)
            return
        if finding.input_id is None:
            trials = self._by_experiment.get(name, [])
        else:
            trials = self._by_input.get((name, finding.input_id), [])
        # Excused trials stand among the counted ones, whether or not they decide.
        yield from trials[: (finding.intent_to_treat or finding.tally).trials]

    def _experiment(self, finding: Finding) -> str:
        if finding.experiment:
            return finding.experiment
        plans = self.record.plan.criteria
        return next((p.experiment for p in plans if p.criterion == finding.criterion), "")


def _grouped(criterion: str, trials: Iterable[Trial]) -> tuple[FailureGroup, ...]:
    counts: dict[tuple[str, ...], int] = {}
    examples: dict[tuple[str, ...], FailureGroup] = {}
    for trial in trials:
        for outcome in trial.outcomes:
            result = outcome.result
            if outcome.criterion != criterion or result.reason is None:
                continue
            explanation = result.explanation or trial.error
            parts = (result.reason.value, trial.error_class.value, outcome.postcondition or "")
            key = (*parts, _VARIABLE.sub("", explanation))
            counts[key] = counts.get(key, 0) + 1
            if key not in examples:
                examples[key] = FailureGroup(
                    count=0,
                    reason=parts[0],
                    error_class=parts[1],
                    postcondition=parts[2],
                    explanation=explanation,
                    evidence=result.evidence,
                    input_id=trial.input_id,
                    trial=trial.index,
                    seed=trial.seed,
                )
    ranked = sorted(counts, key=lambda key: -counts[key])  # stable: ties in order of appearance
    return tuple(replace(examples[key], count=counts[key]) for key in ranked)
