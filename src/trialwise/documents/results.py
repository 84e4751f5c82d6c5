"""The results of a suite: one line for each criterion, input, latency limit and gate.

Every short format shows this page: the terminal, Markdown, JUnit, TAP, annotations and pytest.
They say the same because none of them chooses a word of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from trialwise.documents.blocks import Tone
from trialwise.documents.numbers import as_count, as_observed
from trialwise.documents.printable import cut_middle

#: Groups of failures that a report names; it counts the others.
MOST_GROUPS = 5
#: Characters of an input or a reply in a report of lines.
_LONGEST_TEXT = 400

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
    """What decides nothing: a criterion that is only reported, or numbers without limits."""
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
    asked: str = ""
    """What the example was asked, shortened; empty where the run keeps no inputs."""
    expected: str | None = None
    """What a right reply to it says or is."""
    reply: str | None = None
    """What came back, shortened."""
    traceback: str = ""
    """Where the service raised, in the user's own code."""

    @property
    def headline(self) -> str:
        """What failed and why, for people: the check or the kind of error, and what was said."""
        # A check often names itself in what it says: then its name would stand there twice.
        what = self.postcondition or ("" if self.error_class == "none" else self.error_class)
        said = self.explanation or self.reason
        return said if not what or what in said else f"{what}: {said}"

    @property
    def raised_at(self) -> str:
        """The innermost place of the traceback, such as `File "svc.py", line 3, in ask`."""
        places = [line.strip() for line in self.traceback.splitlines()]
        return next((line for line in reversed(places) if line.startswith("File ")), "")

    @property
    def where(self) -> str:
        """The example as one finds it again."""
        return f"trial {self.trial}, input {self.input_id}, seed {self.seed}"

    @property
    def exchange(self) -> tuple[tuple[str, str], ...]:
        """What was asked, what was expected, what came back, and the piece of it that failed."""
        # A check quotes a reply as Python writes it, the record as JSON.
        is_whole = self.evidence.replace("'", '"') == (self.reply or "").replace("'", '"')
        evidence = "" if is_whole else self.evidence
        reply = "(empty)" if self.reply == "" else self.reply
        facts = {"input": self.asked, "expected": self.expected, "reply": reply, "found": evidence}
        return tuple((label, text) for label, text in facts.items() if text)

    @property
    def title(self) -> str:
        """What failed: the reason, and where there was one the error and the check."""
        error = self.error_class if self.error_class != "none" else ""
        return ", ".join(part for part in (self.reason, error, self.postcondition) if part)


def shorten_text(text: str) -> str:
    """An input or a reply as reports of lines show it."""
    return cut_middle(" ".join(text.split()), _LONGEST_TEXT)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCount:
    """How often one postcondition of a criterion held, of the trials that it was asked in."""

    name: str
    passed: int
    trials: int

    @property
    def sentence(self) -> str:
        """Its name, its counts and its rate."""
        rate = as_observed(self.passed / self.trials)
        return f"{self.name}: {rate} ({self.passed:,} of {self.trials:,})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The numbers of a line as they are shown; empty where there is none."""

    rate: str = ""
    interval: str = ""
    level: str = ""
    """The confidence of the interval, such as "90 %"."""
    shows_level: bool = False
    """Whether it stands beside the interval, because no heading gives it."""
    required: str = ""
    """What the rate is held against, such as "required ≥ 90 %"."""
    trials: int | None = None
    inputs: str = ""
    """How many of the inputs were asked."""
    is_approximate: bool = False
    """Whether the interval covers about as often as its level says."""
    difference: str = ""
    """The rate minus its baseline's in points, bounded, such as "may be −6.7"."""
    stop: str = ""
    cost: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """In the order in which a table shows them; the last is the first to be left out."""
        # What a narrow terminal can do without comes last.
        trials = "" if self.trials is None else as_count(self.trials, "trial")
        asked = trials, self.inputs
        last = self.difference, self.stop, self.cost
        return self.rate, self.interval_cell, self.required, *asked, *last

    @property
    def interval_cell(self) -> str:
        """The interval, with its level where no heading gives it."""
        return f"{self.interval} ({self.level})" if self.shows_level else self.interval

    def with_level(self) -> Figures:
        """Return the figures for a place without a heading, where every level is shown."""
        return replace(self, shows_level=bool(self.level))


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
    target: str = ""
    """The section of the run's report that says more."""
    statement: str = ""
    advice: str = ""
    """What to do next."""
    below: tuple[str, ...] = ()
    """What stands below the line at every width, such as how later trials came out."""
    unsaid: tuple[str, ...] = ()
    """What stands below the line and is not part of its reason."""
    notes: tuple[str, ...] = ()
    """What qualifies the status without changing it."""
    claim: str = ""
    """Whom the line speaks of."""
    facts: Mapping[str, Fact] = field(default_factory=dict)
    """The numbers behind the line, under names that all machine-readable reports share."""
    failures: tuple[FailureGroup, ...] = ()
    """The most frequent first."""
    checks: tuple[CheckCount, ...] = ()
    """Every postcondition that failed in some trial, where a criterion has several."""
    details: tuple[str, ...] = ()
    """What a longer report shows of it, a line each, such as the numbers of each input."""

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
        # A line that is only reported says so by its label.
        advises = self.advisory and self.kind is not LineKind.REPORTED
        return f"{self.label} (advisory)" if advises else self.label

    @property
    def why(self) -> str:
        """Why the line has its status, and what stands below it elsewhere."""
        return "; ".join([self.reason or self.statement, *self.unsaid])

    @property
    def failed(self) -> int | None:
        """How many of its trials failed, where it counts them."""
        # Not every line counts trials: a gate has runs of each input.
        trials, passed = self.facts.get("trials"), self.facts.get("passed")
        return trials - passed if isinstance(trials, int) and isinstance(passed, int) else None

    @property
    def summary(self) -> str:
        """The line in a few words, for formats without columns."""
        columns = () if self.figures is None else self.figures.with_level().columns
        said = self.sentence or ", ".join(filter(None, columns))
        return "; ".join(filter(None, (said, *self.below)))

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
            lines.append(f"    for example {group.where}")
            lines += [f"        {label}: {shorten_text(text)}" for label, text in group.exchange]
            lines += [f"        {line}" for line in group.traceback.splitlines()]
        if self.other_failures:
            lines.append(f"{self.other_failures} x other reasons")
        return lines + [f"check {one.sentence}" for one in self.checks]

    @property
    def other_failures(self) -> int:
        """How many failures belong to groups that are not named."""
        return sum(group.count for group in self.failures[MOST_GROUPS:])


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedRun:
    """One of several runs of an input. It decides nothing by itself."""

    name: str
    """The input and the number of the run, such as "weather #3"."""
    trial: int
    seed: int
    passed: bool
    reason: str = ""
    """Why it failed."""
    seconds: float = 0.0
    weakest_score: float | None = None
    """The lowest sub-score of its session, where stability was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResults:
    """The lines of one run, and what a reader must know beside them."""

    contract: str
    status: Status
    lines: tuple[ResultLine, ...]
    level: str = ""
    """The confidence of the intervals that show none of their own."""
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
    repeated: tuple[RepeatedRun, ...] = ()
    """Each run of each input, where gates are about repeated runs."""
    run_id: str = ""
    seed: int | None = None
    location: str = ""
    """Where the record is kept."""
    next_command: str = ""
    """The command that shows every failing trial; empty if none failed or nothing is kept."""
    rerun_command: str = ""
    """The command that runs a trial again, without the number of the trial."""
    started_at: datetime | None = None
    seconds: float = 0.0

    @property
    def results(self) -> tuple[ResultLine, ...]:
        """The lines that have a status."""
        return tuple(line for line in self.lines if line.kind is not LineKind.REPORTED)

    @property
    def reported(self) -> tuple[ResultLine, ...]:
        """The lines of blocks that only report numbers, such as reliability without limits."""
        return tuple(line for line in self.lines if line.kind is LineKind.REPORTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteResults:
    """The results of all runs of a suite."""

    name: str
    status: Status
    runs: tuple[RunResults, ...]
    outcome: tuple[str, ...] = ()
    """How many passed and what they took, as parts of one line."""
    bounds: tuple[str, ...] = ()
    """How often the decisions together are wrong, one sentence for each kind of error."""
    seconds: float = 0.0

    @property
    def totals(self) -> str:
        """How many passed and what they took, in a line."""
        return ", ".join(self.outcome)

    @property
    def results(self) -> tuple[ResultLine, ...]:
        """The results of all runs."""
        return tuple(line for run in self.runs for line in run.results)
