"""The exceptions trialwise raises, in one place so that every layer can raise them.

    TrialwiseError
    ├── InvalidArgument     (also ValueError)  a value outside what a function is defined for
    ├── ReferenceDataError                     a folder of reference cases that cannot be read
    ├── DesignRefused                          a design that cannot support its claim
    ├── BaselineError                          a baseline that is missing, damaged or unreadable
    ├── ExecutorUnusable                       an executor that cannot run the trials
    ├── BrokenCheck                            a check that cannot tell good replies from bad ones
    ├── RunNotFound                            a stored run that is not there, or not to be resumed
    ├── JournalDamaged                         a journal whose earlier lines are not as written
    └── JournalInUse                           a journal that another process is writing

Adapters derive their own from `TrialwiseError` beside what raises them: `ServiceError` (engine),
`StoreUnusable` (stores), `ReportNotWritten` (reporters), `TraceError` (traces), `GoldSetError`,
`CalibrationError` and `NothingJudged` (judges), `SuiteError` (front), `OutcomesUnreadable`
(outcomes), `ImportRefused` (importers).

A design that cannot support its claim is not an exception inside the statistics: the result
carries a refusal beside an undefined cutoff, because the caller decides what a refusal means.
Planning a run decides it: there a refusal is `DesignRefused`, raised before the first trial.

Apart from the tree stands `RunInterrupted`, a `KeyboardInterrupt`: whoever catches errors must not
swallow somebody's Ctrl-C.
"""

from __future__ import annotations

# `pathlib` is needed for a type only, and every module of the package imports this one.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


class TrialwiseError(Exception):
    """Anything trialwise raises on purpose; it survives pickling, whatever its arguments are."""

    def __reduce__(self) -> tuple[object, ...]:
        # Python would call the class with the message alone, and most take something else.
        return _revive, (type(self), self.args, self.__dict__)


def _revive(
    error_type: type[TrialwiseError], arguments: tuple[object, ...], state: dict[str, object]
) -> TrialwiseError:
    """Return an error as it was when it was pickled."""
    error = error_type.__new__(error_type, *arguments)
    error.__dict__.update(state)
    return error


class InvalidArgument(TrialwiseError, ValueError):
    """A value lies outside what the function is defined for.

    Args:
        argument: The parameter's name, as the caller wrote it.
        value: What was given.
        allowed: What would have been accepted, as the rest of a sentence starting "must".

    >>> raise InvalidArgument("trials", 0, "be at least 1")
    Traceback (most recent call last):
        ...
    trialwise.errors.InvalidArgument: trials must be at least 1, got 0
    """

    def __init__(self, argument: str, value: object, allowed: str) -> None:
        # One form for every refusal, so that a reader of a suite can say it again with a place.
        super().__init__(f"{argument} must {allowed}, got {value!r}")
        self.argument = argument
        self.value = value
        self.allowed = allowed


class ReferenceDataError(TrialwiseError):
    """A folder of reference cases is missing, unreadable or not in the expected form."""


class JournalDamaged(TrialwiseError):
    """A line of a journal, not the last, is not what was written.

    Args:
        path: The journal.
        line: The first bad line, from 1.
    """

    def __init__(self, path: Path, *, line: int) -> None:
        super().__init__(
            f"{path}: line {line} is damaged, and lines follow it. Nothing was changed. Restore "
            f"the file from a copy. If there is none, `trialwise runs --repair {path.parent.name}` "
            "sets the damaged lines aside, and `run --resume` asks their trials again."
        )
        self.path = path
        self.line = line


class JournalInUse(TrialwiseError):
    """Another process is writing the journal.

    Args:
        path: The journal.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path}: another run is writing this journal. Wait for it, or start a run of your own."
        )
        self.path = path


class DesignRefused(TrialwiseError):
    """A design cannot support its claim; nothing was run.

    Args:
        reasons: What is wrong, each with what was configured, what is needed and the way out.
    """

    def __init__(self, reasons: tuple[str, ...]) -> None:
        super().__init__("\n".join(("the design was refused; nothing was run", *reasons)))
        self.reasons = reasons


class BaselineError(TrialwiseError):
    """A baseline is missing, unreadable, or not as it was written."""


class ExecutorUnusable(TrialwiseError):
    """An executor cannot run trials: it is not installed, not there, or cannot load the service."""


class BrokenCheck(TrialwiseError):
    """A check is broken: it could not say whether a reply is good, so no verdict is possible.

    Args:
        check: Its name.
        problem: What it did, as the rest of a sentence such as "raised KeyError: 'a'".
        traceback: Where it happened, if it raised.
        raised: The kind of exception, where the reply may be what is wrong: in a run that is a
            failure of the reply, unless the check raises on each of the first replies.
    """

    def __init__(self, check: str, problem: str, *, traceback: str = "", raised: str = "") -> None:
        where = f"\n{traceback.rstrip()}" if traceback else ""
        super().__init__(
            f"the check {check!r} is broken: it {problem}. The run stops without a verdict. A run "
            f"that is stored keeps its replies: `run --resume` checks them again.{where}"
        )
        self.check = check
        self.problem = problem
        self.traceback = traceback
        self.raised = raised


class RunNotFound(TrialwiseError):
    """A stored run does not exist, or cannot be resumed."""


class RunInterrupted(KeyboardInterrupt):
    """Somebody stopped the run; every completed trial is kept.

    Args:
        message: What is kept, and how to go on.
        result: What the run came to.
    """

    def __init__(self, message: str, result: object = None) -> None:
        super().__init__(message)
        self.result = result
