"""Trials as one criterion sees them, and everything that counting them says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from trialwise.model.evidence import Breakdown, Diagnostics
from trialwise.model.finding_evidence import Note, NoteKind, TrialCounts
from trialwise.model.outcome import CheckResult, ErrorClass, FailReason, Outcome
from trialwise.model.tally import Tally
from trialwise.model.trial import Trial
from trialwise.procedures.diagnostics import diagnose

__all__ = ["Row", "count_trials", "diagnose_rows", "disclose_counts", "tally_of"]

_UNTESTABLE = frozenset({FailReason.TRANSFORM, FailReason.NO_VALUE})


class Row(NamedTuple):
    """One trial as one criterion sees it."""

    trial: Trial
    outcome: Outcome

    @property
    def passed(self) -> bool:
        """Whether the criterion passed."""
        return self.outcome.result.passed

    @property
    def is_plain(self) -> bool:
        """Whether it passed at once, and nothing more is to be said of it."""
        trial, outcome = self
        return (
            outcome.result.passed
            and trial.error_class is ErrorClass.NONE
            and trial.attempts == 1
            and not trial.error
        )

    @property
    def is_unjudged(self) -> bool:
        """Whether the service replied, and a judge gave no verdict."""
        trial, outcome = self
        # The plain case first: there may be a hundred thousand.
        return outcome.error_class is not trial.error_class and trial.is_unjudged(outcome)

    @property
    def is_excused(self) -> bool:
        """Whether the per-protocol analysis leaves it out."""
        trial, outcome = self
        if trial.error_class is ErrorClass.NONE is outcome.error_class:
            return False
        return trial.is_excused or trial.is_unjudged(outcome)

    @property
    def is_unheard(self) -> bool:
        """Whether there was nothing that a judge could judge."""
        trial, outcome = self
        unread = outcome.result.reason in _UNTESTABLE and not self.is_unjudged
        return trial.error_class is not ErrorClass.NONE or unread

    def with_pass(self) -> Row:
        """The row as if the criterion had passed."""
        return Row(self.trial, Outcome(criterion=self.outcome.criterion, result=CheckResult.ok()))

    @property
    def error_class(self) -> ErrorClass:
        """The trial's, or else the criterion's own."""
        of_trial = self.trial.error_class
        return self.outcome.error_class if of_trial is ErrorClass.NONE else of_trial

    @property
    def is_untestable(self) -> bool:
        """Whether it failed without reaching the condition."""
        return self.outcome.result.reason in _UNTESTABLE

    @property
    def needed_retry(self) -> bool:
        """Whether it passed, and only after an infrastructure error."""
        return self.trial.attempts > 1 and self.passed


def tally_of(rows: Sequence[Row], trials: int, passed: int) -> Tally:
    """Counts with the number of trials that gave something to test."""
    untestable = sum(row.is_untestable for row in rows if not row.passed)
    return Tally(trials=trials, passed=passed, evaluable=max(passed, trials - untestable))


def count_trials(rows: Sequence[Row]) -> TrialCounts:
    """Count all trials, those with a fair chance, and the failures by reason.

    Args:
        rows: The counted trials in order, excused ones included.
    """
    return TrialCounts(
        intent_to_treat=_count(rows),
        per_protocol=_count([row for row in rows if not row.is_excused]),
        breakdown=_break_down(rows),
    )


def _count(rows: Sequence[Row]) -> Tally:
    return tally_of(rows, len(rows), sum(row.passed for row in rows))


def _break_down(rows: Sequence[Row]) -> Breakdown:
    """Failures by reason, trials by error class."""
    # Most trials are as they should be and have no part in this.
    rows = [row for row in rows if not row.is_plain]
    reasons = Counter(row.outcome.result.reason for row in rows)
    errors = Counter(row.error_class for row in rows)
    return Breakdown(
        condition=reasons[FailReason.CONDITION],
        transform=reasons[FailReason.TRANSFORM],
        no_value=reasons[FailReason.NO_VALUE],
        errors={str(kind): count for kind, count in errors.items() if kind is not ErrorClass.NONE},
        retried=sum(row.needed_retry for row in rows),
        commonest_error=_commonest(row.trial.error for row in rows if row.trial.error),
    )


def _commonest(texts: Iterable[str]) -> str:
    """The text that comes most often, the first of several equals; nothing of none."""
    ranked = Counter(texts).most_common(1)
    return ranked[0][0] if ranked else ""


def diagnose_rows(rows: Sequence[Row]) -> Diagnostics:
    """Look for signs that the trials were not independent, or not of one kind."""
    passed = [row.passed for row in rows]
    return diagnose(passed, sum(row.is_untestable for row in rows if not row.passed))


def disclose_counts(rows: Sequence[Row], *, skips_unjudged: bool) -> tuple[Note, ...]:
    """Say what the counts do not show: passes that took a retry, trials that no judge judged."""
    return (*_note_retries(rows), *_note_silence(rows, skips_unjudged))


def _note_silence(rows: Sequence[Row], skipped: bool) -> tuple[Note, ...]:
    unjudged = sum(row.is_unjudged for row in rows)
    if not unjudged:
        return ()
    trials = "1 trial" if unjudged == 1 else f"{unjudged} trials"
    if skipped:
        counted = (
            "take no part; the error rates hold where a judge's silence has nothing to do with "
            "what it was shown"
        )
    else:
        fair = _count([row for row in rows if not row.is_excused])
        counted = f"count as failed; without them {fair.passed} of {fair.trials} pass"
    text = f"{trials} got no verdict from the judge and {counted}"
    return (Note(kind=NoteKind.SILENCE, text=text),)


def _note_retries(rows: Sequence[Row]) -> tuple[Note, ...]:
    retried = sum(row.needed_retry for row in rows if row.trial.attempts > 1)
    if not retried:
        return ()
    passed = sum(row.passed for row in rows)
    trials = "1 passing trial" if retried == 1 else f"{retried} passing trials"
    disclosed = (
        f"{trials} needed a retry after an infrastructure error; counted as failed, "
        f"{passed - retried} of {len(rows)} would be left"
    )
    return (Note(kind=NoteKind.RETRIES, text=disclosed),)
