"""Why trials failed: alike failures counted together, with one traceback of each kind.

A traceback is written out while its frames are there and then let go: a thousand failed trials
must hold neither a thousand frames nor a thousand texts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from trialwise.model.outcome import CheckResult, ErrorClass, FailReason, Outcome
from trialwise.model.trial import Trial
from trialwise.plugin.endings import Ending

__all__ = ["Reason", "Reasons"]

#: Kinds of failure whose first traceback is written out as it comes.
_MOST_KEPT = 12
_OFTEN = 3
_NUMBER = re.compile(r"\d+")

_Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Failures of one kind."""

    count: int
    explanation: str
    """Of the first of them."""
    where: str
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

    def note_sections(self, trial: int, sections: list[tuple[str, str, str]]) -> None:
        """Keep what a trial printed and logged, if its traceback is kept."""
        if sections and any(index == trial for index, _ in self._kept.values()):
            self.sections[trial] = sections

    def rank(self, failures: Iterable[tuple[Trial, Sequence[Outcome]]]) -> list[Reason]:
        """The kinds of failure, the most frequent first; a trial counts once for each kind.

        Args:
            failures: Trials with those of their outcomes that count.
        """
        counts: dict[_Key, int] = {}
        first: dict[_Key, tuple[Trial, Outcome]] = {}
        for trial, failed in failures:
            for key, outcome in {_key_of(trial, one): one for one in failed}.items():
                counts[key] = counts.get(key, 0) + 1
                first.setdefault(key, (trial, outcome))
        ranked = sorted(counts, key=lambda key: -counts[key])
        return [self._reason(key, counts[key], *first[key]) for key in ranked]

    def _reason(self, key: _Key, count: int, trial: Trial, outcome: Outcome) -> Reason:
        index, traceback = self._kept.get(key, (trial.index, None))
        return Reason(
            count=count,
            explanation=outcome.result.explanation,
            where=outcome.postcondition or "",
            trial=index,
            error_class=str(trial.error_class),
            traceback=traceback,
        )


def _key_of(trial: Trial, outcome: Outcome) -> _Key:
    return _key(outcome.result, trial.error_class, outcome.postcondition)


def _key(result: CheckResult, error_class: ErrorClass, where: str | None) -> _Key:
    """What makes two failures alike: one place and one kind.

    What an assertion says changes from trial to trial, and its place tells all; what another
    exception says tells two kinds apart, but for the numbers in it.
    """
    if result.reason is FailReason.CONDITION and where:
        return (str(result.reason), "", where, "")
    return (str(result.reason), str(error_class), where or "", _NUMBER.sub("", result.explanation))
