"""The error that lists what is wrong with a result file, each problem with its place."""

from __future__ import annotations

from trialwise.errors import TrialwiseError

__all__ = ["OutcomesUnreadable", "Problems"]

#: A file that is wrong in one line is usually wrong in all of them.
_MOST = 10


class OutcomesUnreadable(TrialwiseError):
    """A result file cannot be read, or lacks what the question needs.

    Args:
        path: The file.
        problems: Each with its place.
        more: Whether reading stopped there, so that there may be others.
    """

    def __init__(self, path: str, problems: tuple[str, ...], *, more: bool = False) -> None:
        count = f"at least {len(problems)}" if more else str(len(problems))
        number = "problem" if problems[1:] == () else "problems"
        head = f"{path}: {count} {number}; nothing was scored"
        super().__init__("\n".join((head, *(f"  {problem}" for problem in problems))))
        self.path = path
        self.problems = problems
        self.more = more

    def __reduce__(self) -> tuple[type[OutcomesUnreadable], tuple[str, tuple[str, ...]]]:
        return type(self), (self.path, self.problems)


class Problems:
    """Collects the problems of one file, and gives up after ten.

    Args:
        path: The file, as messages name it.

    >>> problems = Problems("runs.jsonl")
    >>> problems.add("line 3", "`passed` must be true or false, got 'maybe'")
    >>> try:
    ...     problems.check()
    ... except OutcomesUnreadable as error:
    ...     print(error)
    runs.jsonl: 1 problem; nothing was scored
      line 3: `passed` must be true or false, got 'maybe'
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._found: list[str] = []

    def add(self, where: str, message: str) -> None:
        """Note a problem, and raise the error once there are too many."""
        self._found.append(f"{where}: {message}" if where else message)
        if len(self._found) >= _MOST:
            raise OutcomesUnreadable(self.path, tuple(self._found), more=True)

    def refuse(self, where: str, message: str) -> OutcomesUnreadable:
        """Return the error for a problem that ends the reading."""
        self._found.append(f"{where}: {message}" if where else message)
        return OutcomesUnreadable(self.path, tuple(self._found))

    def check(self) -> None:
        """Raise the error if there are problems."""
        if self._found:
            raise OutcomesUnreadable(self.path, tuple(self._found))
