"""The results of a suite: one line for each criterion, input, latency limit and gate.

Every short format shows this page: the terminal, Markdown, JUnit, TAP, annotations and pytest.
They say the same because none of them chooses a word of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from trialwise.documents.blocks import Tone
from trialwise.documents.numbers import as_count

#: Groups of failures that a report names; it counts the others.
MOST_GROUPS = 5

Fact: TypeAlias = str | int | float | bool | None


class Status(StrEnum):
    """What a line shows: a decision, or that there is none because the design was refused."""

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    REFUSED = "REFUSED"

    @property
    def tone(self) -> Tone:
        """How it stands out; a refusal like an open end."""
        return {"PASS": "pass", "FAIL": "fail"}.get(self.value, "open")  # type: ignore[return-value]


class LineKind(StrEnum):
    """What a line is about."""

    CRITERION = "criterion"
    INPUT = "input"
    """One input of a criterion that decides each on its own."""
    LATENCY = "latency"
    GATE = "gate"
    """Numbers of repeated runs with limits on them."""
    REPORTED = "reported"
    """Numbers of repeated runs that have no limits."""
    RUN = "run"
    """The run itself, where no other line explains why it does not PASS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureGroup:
    """Failures that differ only in numbers and quoted text, with the first as an example."""

    count: int
    reason: str
    error_class: str
    postcondition: str
    explanation: str
    evidence: str
    input_id: str
    trial: int
    """The example's place in the order of inputs of its experiment, from 0."""
    seed: int

    @property
    def title(self) -> str:
        """What failed: the reason, and where there was one the error and the check."""
        error = self.error_class if self.error_class != "none" else ""
        return ", ".join(part for part in (self.reason, error, self.postcondition) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The numbers of a line as they are shown; empty where there is none."""

    rate: str = ""
    interval: str = ""
    required: str = ""
    """What the rate is held against, such as "required ≥ 90 %"."""
    trials: int | None = None
    inputs: str = ""
    """How many of the inputs were asked."""
    difference: str = ""
    """The rate minus its baseline's in points, bounded, such as "Δ ≥ −6.7"."""
    stop: str = ""
    cost: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """In the order in which a table shows them; the last is the first to be left out."""
        trials = "" if self.trials is None else as_count(self.trials, "trial")
        asked = trials, self.inputs
        last = self.difference, self.stop, self.cost
        return self.rate, self.interval, self.required, *asked, *last


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultLine:
    """One line of a report."""

    kind: LineKind
    contract: str
    name: str
    status: Status
    label: str
    """What to print for the status."""
    advisory: bool = False
    """Whether it is shown but has no part in the verdict."""
    figures: Figures | None = None
    """The numbers of a criterion that has a rate."""
    sentence: str = ""
    """What stands in for the figures, or explains them."""
    reason: str = ""
    """Why the line has its status, in a few words."""
    statement: str = ""
    advice: str = ""
    """What to do next."""
    notes: tuple[str, ...] = ()
    """What qualifies the status without changing it."""
    claim: str = ""
    """Whom the line speaks of."""
    facts: Mapping[str, Fact] = field(default_factory=dict)
    """The numbers behind the line, under names that all machine-readable reports share."""
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

    @property
    def word(self) -> str:
        """The label, and whether it only advises."""
        return f"{self.label} (advisory)" if self.advisory else self.label

    @property
    def tone(self) -> Tone:
        """How the label stands out."""
        return "quiet" if self.advisory or self.kind is LineKind.REPORTED else self.status.tone

    @property
    def failure_lines(self) -> list[str]:
        """Why trials failed: the most frequent reasons, each with an example, a line each."""
        lines = []
        for group in self.failures[:MOST_GROUPS]:
            lines.append(f"{group.count} x {group.title}: {group.explanation}")
            where = f"trial {group.trial}, input {group.input_id}, seed {group.seed}"
            evidence = f": {group.evidence}" if group.evidence else ""
            lines.append(f"    for example {where}{evidence}")
        if self.other_failures:
            lines.append(f"{self.other_failures} x other reasons")
        return lines

    @property
    def other_failures(self) -> int:
        """How many failures belong to groups that are not named."""
        return sum(group.count for group in self.failures[MOST_GROUPS:])


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResults:
    """The lines of one run, and what a reader must know beside them."""

    contract: str
    status: Status
    lines: tuple[ResultLine, ...]
    headings: tuple[str, ...] = ()
    """What holds for all lines: whom they speak of, and how they were decided."""
    headline: str = ""
    """What stands first, where the run could not measure what it was to."""
    attention: tuple[str, ...] = ()
    """What a reader must not miss, the most urgent first."""
    notes: tuple[str, ...] = ()
    """How the run ended, and what qualifies it."""
    facts: Mapping[str, Fact] = field(default_factory=dict)
    """The numbers of the run, under names that all machine-readable reports share."""
    run_id: str = ""
    seed: int | None = None
    location: str = ""
    """Where the record is kept."""
    started_at: datetime | None = None
    seconds: float = 0.0

    @property
    def results(self) -> tuple[ResultLine, ...]:
        """The lines that have a status."""
        return tuple(line for line in self.lines if line.kind is not LineKind.REPORTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteResults:
    """The results of all runs of a suite."""

    name: str
    status: Status
    runs: tuple[RunResults, ...]
    totals: str
    """The suite in numbers: its lines by status, its contracts, and what they took."""
    outcome: tuple[str, ...] = ()
    """How many passed and what they took, as parts of one line."""
    bounds: tuple[tuple[str, str], ...] = ()
    """How often any of the decisions may be wrong, and in which way, by kind of error."""
    seconds: float = 0.0

    @property
    def results(self) -> tuple[ResultLine, ...]:
        """The results of all runs."""
        return tuple(line for run in self.runs for line in run.results)
