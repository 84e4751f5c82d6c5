"""A run as it is kept: its plan, its trials and its verdict; anybody can decide it again."""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from itertools import chain
from typing import Any, NamedTuple

from trialwise.model.evidence import StopReason
from trialwise.model.plan import Plan
from trialwise.model.trial import Trial
from trialwise.model.trial_table import TrialSequence, TrialTable
from trialwise.model.verdict import Decision, Verdict

# --- All trials of a run, experiment by experiment; see `trial_table` for how they are held -------


class Trials(TrialSequence):
    """The trials of a run, experiment by experiment, each in the order of inputs.

    >>> trials = Trials.of([Trial(experiment="sums", index=0, input_id="a", seed=7, outcomes=())])
    >>> len(trials), trials[0].input_id, len(trials.of_experiment("sums"))
    (1, 'a', 1)

    Args:
        tables: The trials of each experiment.
    """

    def __init__(self, tables: Iterable[TrialTable] = ()) -> None:
        self._tables = {one.experiment: one for one in tables}

    @classmethod
    def of(cls, trials: Iterable[Trial]) -> Trials:
        """Hold trials that are in memory already."""
        if isinstance(trials, Trials):
            return trials
        found: dict[str, list[Trial]] = {}
        for one in trials:
            found.setdefault(one.experiment, []).append(one)
        return cls(TrialTable.of(mine) for mine in found.values())

    def seal(self) -> Trials:
        """Return the same trials, to which no run adds others."""
        for table in self._tables.values():
            table.is_sealed = True
        return self

    @property
    def tables(self) -> tuple[TrialTable, ...]:
        """The trials of each experiment that has any."""
        return tuple(one for one in self._tables.values() if len(one))

    def of_experiment(self, name: str) -> TrialTable:
        """Return the trials of one experiment."""
        found = self._tables.get(name)
        return TrialTable(name, ()) if found is None else found

    def sketches(self) -> Iterator[Trial]:
        """Yield every trial without the texts of its outcomes; see `TrialTable.sketch`."""
        return chain.from_iterable(one.sketches() for one in self._tables.values())

    def failing(self) -> Iterator[Trial]:
        """Yield the trials that failed a criterion."""
        return (table[place] for table in self._tables.values() for place in table.failing())

    @property
    def failures(self) -> int:
        """How many trials failed a criterion."""
        return sum(one.fails.count(1) for one in self._tables.values())

    def __len__(self) -> int:
        return sum(map(len, self._tables.values()))

    def _make(self, place: int) -> Trial:
        for table in self._tables.values():
            if place < len(table):
                return table[place]
            place -= len(table)
        raise IndexError(place)

    def __iter__(self) -> Iterator[Trial]:
        return chain.from_iterable(self._tables.values())

    def __repr__(self) -> str:
        return f"<{len(self):,} trials>"


# --- What a run keeps once for all of its trials: the inputs that were asked, and tracebacks ------
#
# A trial names its input and its traceback; the texts stand beside the journal, each once.


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedInput:
    """The input as text, shortened and redacted like a reply."""

    value: str
    expected: str | None = None
    """The expected answer; None if the input has none."""
    metadata: str | None = None
    """What else is known of the input, as JSON; None where nothing is."""


#: What the line of an input holds of it.
_ASKED = ("value", "expected", "metadata")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTexts:
    """The inputs and tracebacks that the trials of a run name.

    >>> line = {"x": "inputs", "in": "q1", "hash": "ab", "value": "15 * 37?", "expected": "555"}
    >>> RunTexts.from_lines([line]).inputs["inputs", "q1"].expected
    '555'
    """

    inputs: Mapping[tuple[str, str], AskedInput] = field(default_factory=dict)
    """The inputs, by experiment and input id."""
    tracebacks: Mapping[str, str] = field(default_factory=dict)
    """The tracebacks, by their hash."""
    trial_names: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """What a file with results calls each trial, by experiment and index, where it says so."""

    def find_input(self, trial: Trial) -> AskedInput | None:
        """Return the input of a trial, or None if the run does not keep its inputs."""
        return self.inputs.get((trial.experiment, trial.input_id))

    def find_traceback(self, trial: Trial) -> str:
        """Return the traceback of a trial; empty if there is none or it was not kept."""
        return self.tracebacks.get(trial.traceback, "") if trial.traceback else ""

    @classmethod
    def from_lines(cls, lines: Iterable[Mapping[str, Any]]) -> RunTexts:
        """Read the texts of the lines of inputs, and of tracebacks with their hashes.

        Raises:
            LookupError: A line lacks a key, or names a text that no line before it has.
        """
        inputs: dict[tuple[str, str], AskedInput] = {}
        contents: dict[str, AskedInput] = {}
        tracebacks: dict[str, str] = {}
        for line in lines:
            key = line["hash"]
            if "traceback" in line:
                tracebacks[key] = line["traceback"]
                continue
            if "value" in line:
                told = {name: line[name] for name in _ASKED if name in line}
                contents[key] = AskedInput(**told)
            inputs[line["x"], line["in"]] = contents[key]
        return cls(inputs=inputs, tracebacks=tracebacks)


def hash_text(*texts: str | None) -> str:
    """Return the hash of a text, sixteen characters long.

    >>> hash_text("a", None) != hash_text("a", "") != hash_text("a")
    True
    """
    digest = blake2b(digest_size=8)
    # With its length before each text: "ab" and "c" must not count as "a" and "bc".
    for text in texts:
        # With their lengths: "a" and "bc" must not have the hash of "ab" and "c".
        content = b"" if text is None else text.encode(errors="surrogatepass")
        digest.update(b"%d:" % (-1 if text is None else len(content)) + content)
    return digest.hexdigest()


def input_line(
    experiment: str, input_id: str, asked: AskedInput, known: Collection[str]
) -> dict[str, Any]:
    """Return the line of an input; content that was already written is only referred to.

    Args:
        experiment: The experiment that it belongs to.
        input_id: Its identifier there.
        asked: Its content.
        known: The hashes of content that lines before it hold.
    """
    content = {name: text for name in _ASKED if (text := getattr(asked, name)) is not None}
    # Left out where there is none, as it was before there were any.
    further = () if asked.metadata is None else (asked.metadata,)
    key = hash_text(asked.value, asked.expected, *further)
    return {"x": experiment, "in": input_id, "hash": key, **({} if key in known else content)}


# --- The latencies of successful trials: those that passed every criterion that decides -----------


def list_latencies(trials: TrialTable, reported: Collection[str] = ()) -> array[float]:
    """List how long each successful trial took.

    Args:
        trials: The trials of one experiment.
        reported: Criteria that have no part in success, since they are only reported.
    """
    found = trials.latencies(passed=True)
    # A criterion that is only reported decides nothing, so that a trial which failed nothing else
    # counts as one that succeeded.
    if reported:
        for trial in trials.sketches(trials.failing()):
            passes = all(one.passed for one in trial.outcomes if one.criterion not in reported)
            if passes and trial.latency_s is not None:
                found.append(trial.latency_s)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """Everything a report needs, and everything a stranger needs to check it."""

    run_id: str
    plan: Plan
    trials: Trials
    """In the order of inputs, experiment by experiment."""
    verdict: Verdict

    def __repr__(self) -> str:
        decision = self.verdict.decision or "REFUSED"
        return f"<RunRecord {self.run_id!r}: {decision}, {len(self.trials):,} trials>"

    texts: RunTexts = field(default_factory=RunTexts)
    """The inputs and tracebacks that the trials name; records of 0.1.0 have none."""

    def __post_init__(self) -> None:
        # A record is what was decided on: a run that goes on must not add to it.
        object.__setattr__(self, "trials", Trials.of(self.trials).seal())


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """What a list of runs says of one."""

    run_id: str
    contract: str = ""
    started_at: datetime | None = None
    plan_hash: str = ""
    session: str = ""
    """Runs of one session have it in common; empty for a run of an earlier version."""
    comparison: str = ""
    """The name of the comparison whose arm it is; empty for any other run."""
    scored: str = ""
    """The name of the run whose replies it has checked again; empty for any other run."""
    decision: Decision | None = None
    stop: StopReason | None = None
    """None: there is no verdict, as the run goes on or was killed."""
    trials: int | None = None
    """Journalled when the verdict was reached; None where there is none."""
    damage: str = ""
    """Why nothing else could be read of it."""

    @property
    def is_decided(self) -> bool:
        """Whether there is a verdict to show."""
        return self.stop is not None

    @property
    def is_unfinished(self) -> bool:
        """Whether it can be resumed.

        So can a run that was interrupted or ran out of its budget, unless it was decided all the
        same: a PASS or FAIL is not tried again.
        """
        if self.damage:
            return False
        open_end = self.decision not in (Decision.PASS, Decision.FAIL)
        return self.stop is None or (self.stop.is_premature and open_end)


class LatencyFacts(NamedTuple):
    """How long the successful trials took, summed up for every report."""

    successes: int
    mean_s: float
    maximum_s: float


def summarize_latencies(
    record: RunRecord, experiments: Collection[str] | None = None
) -> LatencyFacts | None:
    """Return mean and maximum; None where no successful trial has a latency.

    Args:
        record: The run.
        experiments: Those whose trials count; None where all do.
    """
    times = array("d")
    for one in record.trials.tables:
        if experiments is None or one.experiment in experiments:
            times += list_latencies(one, record.plan.reported)
    # Not 0 s: without a success nothing is known of how long one takes.
    if not times:
        return None
    return LatencyFacts(len(times), math.fsum(times) / len(times), max(times))
