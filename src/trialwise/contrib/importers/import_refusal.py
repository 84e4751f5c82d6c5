"""Why a neighbour's suite is not taken over, each reason with its place, all of them at once."""

from __future__ import annotations

from collections.abc import Sequence

from trialwise.errors import TrialwiseError
from trialwise.suite.suite_problems import Problem, Problems, SuiteError

__all__ = ["ImportRefused", "check"]

#: A file of another kind gives thousands of problems, of which nobody reads the twentieth.
_SHOWN = 20


class ImportRefused(TrialwiseError):
    """A file cannot be carried over as it is; nothing was written, nothing was run.

    Args:
        problems: Everything in the way, in the order of the files.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(_message(self.problems))

    def __reduce__(self) -> tuple[type[ImportRefused], tuple[tuple[Problem, ...]]]:
        return type(self), (self.problems,)


def check(problems: Problems) -> None:
    """Refuse with what was found, if anything was."""
    try:
        problems.check()
    except SuiteError as error:
        raise ImportRefused(error.problems) from None


def _message(problems: tuple[Problem, ...]) -> str:
    count = len(problems)
    number = "one problem" if count == 1 else f"{count} problems"
    where = f"{problems[0].file}: " if problems else ""
    shown = [str(problem) for problem in problems[:_SHOWN]]
    if count > _SHOWN:
        shown.append(f"… and {count - _SHOWN} more")
    return "\n\n".join([f"{where}{number}; nothing was imported", *shown])
