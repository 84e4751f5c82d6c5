"""How trials went, and why they failed: alike failures together, with one traceback of each kind.

A traceback is written out while its frames are there and then let go: a thousand failed trials
must hold neither a thousand frames nor a thousand texts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from traceback import walk_tb
from typing import Any

import pytest

from trialwise.engine.error_classes import Trouble, classify_error, innermost_error
from trialwise.model import CheckResult, ErrorClass, FailReason, Outcome, RunRecord, Trial

#: Kinds of failure whose first traceback is written out as it comes.
_MOST_KEPT = 12
#: A kind that was seen so often gets its traceback, however many others came before it.
_OFTEN = 3
_NUMBER = re.compile(r"\d+")
_Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Reason:
    """Failures of one kind."""

    count: int
    explanation: str
    """The explanation of the first of them."""
    trial: int
    """The one that the traceback is of, else the first."""
    error_class: str
    traceback: Any = None
    """As pytest writes it; None for a trial of an earlier session."""


class Reasons:
    """The tracebacks of a test's failures, by kind."""

    def __init__(self) -> None:
        self._kept: dict[_Key, tuple[int, Any]] = {}
        self._seen: Counter[_Key] = Counter()
        self.sections: dict[int, list[tuple[str, str, str]]] = {}
        """What the trials of the tracebacks printed and logged."""

    def note(self, ending: Ending, trial: int, write: Callable[[], Any]) -> None:
        """Keep the traceback of a failure, unless there is one of its kind.

        Args:
            ending: How the trial failed.
            trial: Its index.
            write: Writes the traceback out.
        """
        key = _key(ending.result, ending.error_class, ending.where)
        self._seen[key] += 1
        if key in self._kept:
            return
        # One that comes late and often is worth more than one that came first.
        if len(self._kept) < _MOST_KEPT or self._seen[key] == _OFTEN:
            self._kept[key] = (trial, write())

    def note_kept(self, record: RunRecord) -> None:
        """Keep the tracebacks that a record has, which are those of bodies in workers.

        Args:
            record: What was run.
        """
        for trial in record.trials:
            text = record.texts.tracebacks.get(trial.traceback)
            for failed in trial.outcomes if text else ():
                if not failed.passed:
                    ending = Ending(
                        result=failed.result,
                        error_class=trial.error_class,
                        where=failed.postcondition,
                    )
                    self.note(ending, trial.index, partial(str, text))

    def note_sections(self, trial: int, sections: list[tuple[str, str, str]]) -> None:
        """Keep what a trial printed and logged, if its traceback is kept."""
        if sections and any(index == trial for index, _ in self._kept.values()):
            self.sections[trial] = sections

    def rank(self, failures: Iterable[tuple[Trial, Sequence[Outcome]]]) -> list[Reason]:
        """Return the kinds of failure, the most frequent first; a trial counts once for each kind.

        Args:
            failures: Trials with those of their outcomes that count.
        """
        counts: dict[_Key, int] = {}
        first: dict[_Key, tuple[Trial, Outcome]] = {}
        for trial, failed in failures:
            alike = {_key(one.result, trial.error_class, one.postcondition): one for one in failed}
            for key, outcome in alike.items():
                counts[key] = counts.get(key, 0) + 1
                first.setdefault(key, (trial, outcome))
        found: list[Reason] = []
        for key in sorted(counts, key=lambda key: -counts[key]):
            trial, outcome = first[key]
            index, traceback = self._kept.get(key, (trial.index, None))
            said, kind = outcome.result.explanation, str(trial.error_class)
            found.append(Reason(counts[key], said, index, kind, traceback))
        return found


def _key(result: CheckResult, error_class: ErrorClass, where: str | None) -> _Key:
    """Return what makes two failures alike: one place and one kind.

    What an assertion says changes from trial to trial, and its place tells all; what another
    exception says tells two kinds apart, but for the numbers in it.
    """
    if result.reason is FailReason.CONDITION and where:
        return (str(result.reason), "", where, "")
    return (str(result.reason), str(error_class), where or "", _NUMBER.sub("", result.explanation))


#: Frames below these folders are not the user's own.
_FOREIGN = frozenset({"site-packages", "dist-packages"})
_OK = CheckResult.ok()
#: What an explanation is cut at: its first line is what tells failures apart.
_LONGEST = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What became of one body."""

    result: CheckResult = _OK
    error_class: ErrorClass = ErrorClass.NONE
    where: str | None = None
    """The place it happened at, as `file:line`."""
    skipped: str | None = None
    """Why it was skipped, if it was."""
    status: int | None = None
    """The HTTP status that came back instead of an answer, if one did."""

    @property
    def passed(self) -> bool:
        """Whether the body ended as it should."""
        return self.result.passed


PASSED = Ending()


@dataclass(slots=True)
class Course:
    """How a trial went, noted as it goes."""

    ending: Ending = PASSED
    setup_s: float = 0.0
    body_s: float = 0.0
    started_s: float = 0.0
    """On the clock of `time.perf_counter`."""
    sections: list[tuple[str, str, str]] = field(default_factory=list)
    """What the trial printed and logged, where it was captured for itself."""
    teardown_error: pytest.ExceptionInfo[BaseException] | None = None
    is_abandoned: bool = False
    """Whether its end was not waited for, as no result of it was needed."""


def ending_of(
    excinfo: pytest.ExceptionInfo[BaseException], *, when: str, root: Path, file: Path
) -> Ending:
    """Return the ending that an exception means.

    Args:
        excinfo: What was raised.
        when: "setup" for a fixture's exception, "call" for the body's own.
        root: The folder that places are given below.
        file: The test's own.
    """
    error = innermost_error(excinfo.value)
    where = _place(error, root, file) or _place(excinfo.value, root, file)
    if isinstance(error, pytest.skip.Exception):
        why = str(error.msg)
        result = CheckResult.fail(_line(f"skipped: {why}"), reason=FailReason.NO_VALUE)
        # A fixture skips before the service is asked. A body may do so after a reply that it does
        # not like, and must not choose its own trials: its skip is measured, and has not passed.
        error_class = ErrorClass.PRE_VALIDATION if when == "setup" else ErrorClass.NONE
        return Ending(result=result, error_class=error_class, where=where, skipped=why)
    if when == "setup":
        said = _line(f"a fixture failed: {_describe_error(error)}")
        result = CheckResult.fail(said, reason=FailReason.NO_VALUE)
        return Ending(result=result, error_class=ErrorClass.PRE_VALIDATION, where=where)
    if isinstance(error, pytest.xfail.Exception):
        return Ending(result=CheckResult.fail(_line(f"xfail: {error.msg}")), where=where)
    trouble = classify_error(error)
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    # pytest-timeout fails a test like anybody else does; only the place tells.
    is_late = any(one.f_globals.get("__name__") == "pytest_timeout" for one in frames)
    if is_late and isinstance(error, pytest.fail.Exception):
        trouble = Trouble(ErrorClass.TIMEOUT)
    failed = isinstance(error, AssertionError | pytest.fail.Exception)
    is_answer = failed and trouble.error_class is ErrorClass.NONE
    reason = FailReason.CONDITION if is_answer else FailReason.NO_VALUE
    result = CheckResult.fail(_line(_describe_error(error)), reason=reason)
    return Ending(
        result=result, error_class=trouble.error_class, where=where, status=trouble.status
    )


def is_mistake(error: BaseException, file: Path) -> bool:
    """Return whether the code of a test is wrong, so that no trial of it says anything.

    Args:
        error: What the body raised.
        file: The test's own: what other files raise may be the service's failure.
    """
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    # A NameError of a library is what the service does to its callers, and is measured.
    is_own = bool(frames) and Path(frames[-1].f_code.co_filename) == file
    return is_own and isinstance(error, NameError | ImportError | SyntaxError)


def _place(error: BaseException, root: Path, file: Path) -> str | None:
    """Return the innermost place in the user's own code; in a library's where there is none."""
    own = last = None
    for frame, line in walk_tb(error.__traceback__):
        path = Path(frame.f_code.co_filename)
        last = (path, line)
        inside = path == file or (path.is_relative_to(root) and not _FOREIGN & set(path.parts))
        own = last if inside else own
    found = own or last
    return None if found is None else show_place(*found, root)


def show_place(path: Path, line: int, root: Path) -> str:
    """Show a place in a file, as `file:line` below a folder."""
    shown = path.relative_to(root) if path.is_relative_to(root) else Path(path.name)
    return f"{shown.as_posix()}:{line}"


def _describe_error(error: BaseException) -> str:
    """Describe what an exception says; a plain assertion without saying that it is one."""
    try:
        said = str(error)
    except Exception:  # its own __str__ may raise anything
        said = ""
    if isinstance(error, AssertionError | pytest.fail.Exception):
        return said or type(error).__name__
    return ": ".join(filter(None, (type(error).__name__, said)))


def _line(text: str) -> str:
    first = text.strip().partition("\n")[0]
    return first if len(first) <= _LONGEST else first[: _LONGEST - 1] + "…"
