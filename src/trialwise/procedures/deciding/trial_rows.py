"""Trials as one criterion sees them, and everything that counting them says.

Diagnostics are signs that trials were not independent, or not of one kind (companion §8.2, §8.3).
They qualify a verdict and never change it. Inputs are drawn in random order, so that without
dependence or drift every order of the outcomes is equally likely, however unlike the inputs are:
both tests are exact permutation tests of that, and need no rate to be known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from trialwise.decimals import as_written
from trialwise.documents.numbers import as_count, as_observed
from trialwise.errors import InvalidArgument
from trialwise.model.evidence import (
    Breakdown,
    Diagnostics,
    InputCoverage,
    Note,
    NoteKind,
    TrialCounts,
)
from trialwise.model.plan import ExperimentPlan
from trialwise.model.tally import Tally
from trialwise.model.trial import (
    NOT_MEASURED,
    Analysis,
    CheckResult,
    ErrorClass,
    FailReason,
    Outcome,
    Trial,
)
from trialwise.stats.autocorrelation import autocorrelation_test, lag_one_autocorrelation
from trialwise.stats.fisher import fisher_one_sided
from trialwise.stats.result_types import Undefined
from trialwise.validation import require_count

#: Inputs that were not asked are kept by name up to this number.
_MOST_NAMED = 20

_UNTESTABLE = frozenset({FailReason.TRANSFORM, FailReason.NO_VALUE, FailReason.UNKNOWN})


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
        """Whether the service replied, and the criterion could not be measured."""
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
        """Return the row as if the criterion had passed."""
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


def are_measured(rows: Iterable[Row]) -> bool:
    """Return whether every trial was measured, by all that it or the criterion says.

    Asked before a closer look at each of them: nearly always they were, and there may be a million.
    """
    none = ErrorClass.NONE
    for trial, outcome in rows:
        if trial.error_class is not none or outcome.error_class is not none:
            return False
    return True


def tally_of(rows: Sequence[Row], trials: int, passed: int) -> Tally:
    """Counts with the number of trials that gave something to test."""
    untestable = sum([row.is_untestable for row in rows if not row.outcome.result.passed])
    return Tally(trials=trials, passed=passed, evaluable=max(passed, trials - untestable))


def count_trials(rows: Sequence[Row]) -> TrialCounts:
    """Count all trials, the measured ones, and the failures by reason.

    Args:
        rows: The counted trials in order, excused ones included.
    """
    every = _count(rows)
    fair = every if are_measured(rows) else _count([row for row in rows if not row.is_excused])
    return TrialCounts(
        intent_to_treat=every,
        per_protocol=fair,
        breakdown=_break_down(rows),
    )


def cover_inputs(rows: Sequence[Row], experiment: ExperimentPlan) -> InputCoverage:
    """Return how many of an experiment's inputs were asked, and which were not."""
    if are_measured(rows):
        asked = {trial.input_id for trial, _ in rows}
    else:
        asked = {row.trial.input_id for row in rows if not row.is_excused}
    unasked = [name for name in experiment.input_ids if name not in asked]
    inputs = len(experiment.input_ids)
    named = tuple(unasked[:_MOST_NAMED])
    return InputCoverage(inputs=inputs, asked=inputs - len(unasked), unasked=named)


def compare_later(before: Sequence[Row], after: Sequence[Row]) -> tuple[Note, ...]:
    """Say that what ran after a decision looks unlike what it rests on, where it does.

    No error rate is claimed: the decision chose where the trials before it end.
    """
    if not before or not after:
        return ()
    early, late = sum(row.passed for row in before), sum(row.passed for row in after)
    worse = fisher_one_sided(early, len(before), late, len(after))
    better = fisher_one_sided(late, len(after), early, len(before))
    if 2 * min(worse, better) >= NOTABLE:
        return ()
    text = (
        f"it was decided at trial {len(before)}, on {early} of {len(before)}; of the {len(after)} "
        f"trials after that {late} passed: what came later looks different"
    )
    return (Note(kind=NoteKind.QUALIFICATION, text=text),)


def _count(rows: Sequence[Row]) -> Tally:
    return tally_of(rows, len(rows), count_passed(rows))


def count_passed(rows: Iterable[Row]) -> int:
    """Count the trials that passed the criterion."""
    return sum([outcome.result.passed for _, outcome in rows])


def _break_down(rows: Sequence[Row]) -> Breakdown:
    """Failures by reason, trials by error class."""
    # Most trials are as they should be and have no part in this.
    rows = [row for row in rows if not row.is_plain]
    reasons = Counter(row.outcome.result.reason for row in rows)
    errors = Counter(row.error_class for row in rows)
    return Breakdown(
        condition=reasons[FailReason.CONDITION],
        transform=reasons[FailReason.TRANSFORM],
        no_value=reasons[FailReason.NO_VALUE] + reasons[FailReason.UNKNOWN],
        errors={str(kind): count for kind, count in errors.items() if kind is not ErrorClass.NONE},
        retried=sum(row.needed_retry for row in rows),
        commonest_error=_commonest(row.trial.error for row in rows if row.trial.error),
    )


def _commonest(texts: Iterable[str]) -> str:
    """Return the text that comes most often, the first of several equals; nothing of none."""
    ranked = Counter(texts).most_common(1)
    return ranked[0][0] if ranked else ""


def diagnose_rows(rows: Sequence[Row], *, deciding: Row | None = None) -> Diagnostics:
    """Look for signs that the trials were not independent, or not of one kind.

    Args:
        rows: All trials in order.
        deciding: The trial at which the decision fell early. It is left out: that it came out as
            it did is why it was the last, and no sign of a change.
    """
    rows = [row for row in rows if row is not deciding]
    passed = [outcome.result.passed for _, outcome in rows]
    failed = [row for row in rows if not row.outcome.result.passed]
    untestable = sum(row.is_untestable for row in failed if not row.is_excused)
    return diagnose(passed, untestable)


def disclose_counts(
    rows: Sequence[Row], *, analysis: Analysis, skips_unjudged: bool
) -> tuple[Note, ...]:
    """Say what the counts do not show: what was not measured, not judged, or took a retry.

    Args:
        rows: The trials up to the decision, with those that the analysis leaves out.
        analysis: Whose trials decide.
        skips_unjudged: Whether what no judge judged takes no part.
    """
    skips_unjudged = skips_unjudged or not analysis.counts_silence
    if are_measured(rows):
        return _note_retries(rows)
    return (
        *_note_unmeasured(rows, analysis),
        *_note_retries(rows),
        *_note_silence(rows, skips_unjudged),
    )


def _note_unmeasured(rows: Sequence[Row], analysis: Analysis) -> tuple[Note, ...]:
    """Return how many trials were not measured, and the rate by the other way to count them."""
    missing = [row for row in rows if row.trial.error_class in NOT_MEASURED]
    if not missing or len(missing) == len(rows):  # where none was measured, the statement says so
        return ()
    every = [row for row in rows if not row.is_unjudged]
    fair = [row for row in every if row.trial.error_class not in NOT_MEASURED]
    said = _commonest(row.trial.error for row in missing if row.trial.error)
    why = f" ({said[:_LONGEST_ERROR]})" if said else ""
    text = f"{len(missing)} of {as_count(len(rows), 'trial')} were not measured{why}"
    if len(missing) == 1:
        text = text.replace(" were ", " was ", 1)
    if analysis is Analysis.INTENT_TO_TREAT:
        text += f" and count as failed; without them {_write_share(fair)} pass"
    else:
        them = "it" if len(missing) == 1 else "them"
        text += f"; counting {them} as failed (intent-to-treat), {_write_share(every)} pass"
    return (Note(kind=NoteKind.NOT_MEASURED, text=text),)


def _write_share(rows: Sequence[Row]) -> str:
    passed = sum(row.passed for row in rows)
    share = f" ({as_observed(passed / len(rows))})" if rows else ""
    return f"{passed} of {len(rows)}{share}"


def _note_silence(rows: Sequence[Row], skipped: bool) -> tuple[Note, ...]:
    unjudged = sum(row.is_unjudged for row in rows)
    if not unjudged:
        return ()
    why = _WITHOUT_EVIDENCE if _lacks_evidence(rows) else _SILENT
    text = f"{unjudged} of {as_count(len(rows), 'trial')} were not measured ({why})"
    if unjudged == 1:
        text = text.replace(" were ", " was ", 1)
    if skipped:
        them = "it" if unjudged == 1 else "them"
        text += (
            f"; counting {them} as failed (intent-to-treat), {_write_share(rows)} pass. The error "
            "rates hold where that has nothing to do with whether they would pass"
        )
    else:
        fair = [row for row in rows if not row.is_excused]
        text += f" and count as failed; without them {_write_share(fair)} pass"
    return (Note(kind=NoteKind.SILENCE, text=text),)


_SILENT = "no verdict from the judge"
_WITHOUT_EVIDENCE = "what was recorded does not tell"


def _lacks_evidence(rows: Sequence[Row]) -> bool:
    return any(row.outcome.error_class is ErrorClass.NO_EVIDENCE for row in rows)


def tell_unmeasured(rows: Sequence[Row]) -> str:
    """Say why trials were not measured, as one of their criterion's checks says it."""
    told = (r.outcome for r in rows if r.outcome.error_class is ErrorClass.NO_EVIDENCE)
    return next((outcome.result.explanation for outcome in told), "")


def _note_retries(rows: Sequence[Row]) -> tuple[Note, ...]:
    retried = sum(row.needed_retry for row in rows if row.trial.attempts > 1)
    if not retried:
        return ()
    passed = sum(row.passed for row in rows)
    passes = as_count(passed, "pass", "passes")
    disclosed = f"{retried:,} of the {passes} needed a retry after an infrastructure error"
    return (Note(kind=NoteKind.RETRIES, text=disclosed),)


#: How much of an error a note repeats.
_LONGEST_ERROR = 160


#: A p-value below this is worth a warning: one quiet criterion in a hundred gets it by chance.
NOTABLE = 0.01


#: From this share on, what is measured is as much the plumbing as the service.
UNTESTABLE_SHARE = 0.10


#: The exact runs test takes a second here and grows with the square: beyond, it is left out.
_MOST_TESTED = 100_000


_BY_CHANCE = (
    "About 1 criterion in 100 shows this by chance, so among many criteria some are expected to."
)


def diagnose(passed: Sequence[bool], untestable: int) -> Diagnostics:
    """Look for dependence, drift and missing values in one criterion's outcomes.

    After an early stop the two p-values are indications: the trial that decided was no chance.

    Args:
        passed: The outcomes in the order of inputs.
        untestable: How many of them failed for want of a value to test.

    >>> found = diagnose([True] * 20 + [False] * 20, untestable=0)
    >>> found.first_half_rate, found.second_half_rate, len(found.warnings)
    (1.0, 0.0, 2)
    >>> diagnose([True, False, True, True], untestable=0).warnings
    ()
    """
    n = len(passed)
    if require_count("untestable", untestable) > n:
        raise InvalidArgument("untestable", untestable, f"be at most the number of outcomes ({n})")
    if n == 0:
        return Diagnostics()
    lag_one, runs_p = _dependence(passed)
    first, second, drift_p = _drift(passed)
    return Diagnostics(
        autocorrelation=lag_one,
        autocorrelation_p=runs_p,
        first_half_rate=first,
        second_half_rate=second,
        drift_p=drift_p,
        untestable_share=untestable / n,
        warnings=tuple(
            warning
            for warning in (
                _warn_dependence(lag_one, runs_p),
                _warn_drift(first, second, drift_p),
                _warn_untestable(untestable, n),
            )
            if warning
        ),
    )


def _dependence(passed: Sequence[bool]) -> tuple[float | None, float | None]:
    """Return the lag-one autocorrelation and the exact runs test that neighbours are alike."""
    lag_one = lag_one_autocorrelation(passed)
    if isinstance(lag_one, Undefined):
        return None, None
    if len(passed) > _MOST_TESTED:
        return lag_one, None
    test = autocorrelation_test(passed)
    return lag_one, None if isinstance(test, Undefined) else test.p_value


def _drift(passed: Sequence[bool]) -> tuple[float | None, float | None, float | None]:
    """Compare the two halves: their rates, and Fisher's two-sided p-value."""
    half = len(passed) // 2
    if half == 0:
        return None, None, None
    early, late, rest = sum(passed[:half]), sum(passed[half:]), len(passed) - half
    worse = fisher_one_sided(early, half, late, rest)
    better = fisher_one_sided(late, rest, early, half)
    return early / half, late / rest, min(1.0, 2 * worse, 2 * better)


def _warn_dependence(lag_one: float | None, p_value: float | None) -> str | None:
    if lag_one is None or p_value is None or p_value >= NOTABLE:
        return None
    return (
        f"Neighbouring trials are more alike than chance makes them (lag-one autocorrelation "
        f"{lag_one:.2f}, exact runs test p = {p_value:.2g}): they may share a cache, a batch or a "
        f"moment, and then say less than so many independent trials would. {_BY_CHANCE}"
    )


def _warn_drift(first: float | None, second: float | None, p_value: float | None) -> str | None:
    if first is None or second is None or p_value is None or p_value >= NOTABLE:
        return None
    return (
        f"The rate was {first:.3g} in the first half of the run and {second:.3g} in the second "
        f"(Fisher's exact test p = {p_value:.2g}): the service, or what it depends on, may have "
        f"changed on the way. {_BY_CHANCE}"
    )


def _warn_untestable(untestable: int, trials: int) -> str | None:
    if untestable < as_written(UNTESTABLE_SHARE) * trials:
        return None
    return (
        f"{untestable} of {trials} replies could not be checked and count as failures: look at "
        "the reasons before reading the rate as the service's own."
    )
