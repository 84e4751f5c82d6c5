"""The error that lists why a suite is not imported, each reason with its place."""

from __future__ import annotations

from collections.abc import Sequence

from trialwise.errors import TrialwiseError
from trialwise.suite.suite_problems import Problem, Problems, SuiteError

__all__ = ["ImportRefused", "check"]

#: A file of another kind has thousands of problems; the first ones are enough.
_SHOWN = 20


class ImportRefused(TrialwiseError):
    """A file cannot be converted as it is. Nothing was written, and nothing was run.

    Args:
        problems: All reasons, in the order of the files.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(_message(self.problems))


def check(problems: Problems) -> None:
    """Raise the error if there are problems."""
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
