"""What is wrong with a suite, each thing with its place, all of them at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from pathlib import Path

from trialwise.declarations.written import Node
from trialwise.documents.printable import count_cells
from trialwise.errors import TrialwiseError

#: How much of a line is shown: a report is read in a terminal.
_WIDTH = 96
#: A file of another kind gives thousands of problems, of which nobody reads the twentieth.
_SHOWN = 20
#: A name in a message may be as long as the file.
_LONGEST = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing to change, and where.

    >>> print(Problem(file="trialwise.yaml", line=3, column=5, message="unknown key `at_lest`"))
    trialwise.yaml:3:5: unknown key `at_lest`
    """

    file: str
    """As the user named it."""
    line: int
    """From 1; 0 for an option of the command line."""
    column: int
    """From 1, in characters."""
    message: str
    excerpt: str = ""
    """The offending line with a caret below it."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        head = f"{place}: {self.message}"
        return f"{head}\n{self.excerpt}" if self.excerpt else head


class SuiteError(TrialwiseError):
    """A suite cannot be used as it is; nothing was run.

    Args:
        problems: Everything that is wrong with it, in the order of the files.
        message: What to say instead of the problems, where there is no place to show.
    """

    def __init__(self, problems: Sequence[Problem], message: str = "") -> None:
        self.problems = tuple(problems)
        super().__init__(message or _message(self.problems))


class SuiteNotFound(SuiteError):
    """There is no suite here, or there is more than one."""


@dataclass(eq=False)
class Source:
    """A file that was read, kept for the lines that errors show."""

    path: Path
    text: str
    _: KW_ONLY
    chain: tuple[Path, ...] = ()
    """The files that include it, the suite first, then itself."""
    is_file: bool = True
    """Otherwise it is an option of the command line, which has no lines."""

    @cached_property
    def name(self) -> str:
        """How messages call it."""
        return shown_path(self.path)

    @cached_property
    def lines(self) -> list[str]:
        """Its lines, broken where YAML breaks them."""
        return re.split(r"\r\n|\r|\n", self.text)

    def line(self, number: int) -> str:
        """Return a line, counted from 0; empty where there is none."""
        return self.lines[number] if 0 <= number < len(self.lines) else ""


def shown_path(path: Path) -> str:
    """Return a path as somebody in the folder at hand would write it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (OSError, ValueError):
        return str(path)


class Problems:
    """A list of problems being made: in order, none of them twice."""

    __slots__ = ("_files", "_found", "_reports")

    def __init__(self) -> None:
        self._reports = 0
        self._found: dict[tuple[str, int, int, str], Problem] = {}
        self._files: dict[str, int] = {}

    def __len__(self) -> int:
        # Every report counts: what two contracts share is wrong with both, and shown once.
        return self._reports

    def add(self, node: Node, message: str, *, hide: bool = False) -> None:
        """Something is wrong with a node.

        Args:
            node: Where.
            message: What, and what was expected.
            hide: Whether the line may hold a secret from here on, and must not be shown.
        """
        same_line = node.end_line == node.line
        length = node.end_column - node.column if same_line else _WIDTH
        self.add_at(node.source, node.line, node.column, message, length=length, hide=hide)

    def add_at(
        self,
        source: Source,
        line: int,
        column: int,
        message: str,
        *,
        length: int = 1,
        hide: bool = False,
    ) -> None:
        """Something is wrong at a place; line and column count from 0."""
        # Counted even where it was said before: a reader asks whether a value is sound by this
        # number.
        self._reports += 1
        # Printed in terminals and logs: a name in a suite must not move the cursor.
        message = _printable(message[:_LONGEST])
        text = source.line(line)
        if hide:
            # What stands before it is kept: the reader must find the line.
            text = text[:column] + "…"
        # An option of the command line has no lines to show.
        excerpt = _excerpt(text, line, column, length) if source.is_file else ""
        number = line + 1 if source.is_file else 0
        found = Problem(
            file=source.name, line=number, column=column + 1, message=message, excerpt=excerpt
        )
        self._files.setdefault(source.name, len(self._files))
        self._found.setdefault((source.name, line, column, message), found)

    def check(self, redact: Callable[[str], str] = str) -> None:
        """Raise what was found, if anything was.

        Args:
            redact: Takes out of a text what must not be shown.
        """
        if self._found:
            found = [
                replace(one, message=redact(one.message), excerpt=redact(one.excerpt))
                for one in self._found.values()
            ]
            raise SuiteError(sorted(found, key=lambda p: (self._files[p.file], p.line, p.column)))


def _message(problems: Sequence[Problem]) -> str:
    if not problems:
        return "the suite cannot be used"
    count = len(problems)
    number = "one problem" if count == 1 else f"{count} problems"
    head = f"{problems[0].file}: {number}; nothing was run"
    # The first ones, since later problems often follow from them.
    shown = [str(problem) for problem in problems[:_SHOWN]]
    if count > _SHOWN:
        shown.append(f"… and {count - _SHOWN} more")
    return "\n\n".join([head, *shown])


def _excerpt(text: str, line: int, column: int, length: int) -> str:
    # A long line is shown around the caret; what a terminal would obey is shown as a dot.
    start = max(0, column - _WIDTH // 2) if len(text) > _WIDTH else 0
    part = text[start : start + _WIDTH]
    shown = _printable(part)
    before = "… " if start else ""
    gutter = f"{line + 1:>5} | "
    place = column - start
    carets = "^" * max(1, min(length, len(part) - place))
    indent = " " * (len(before) + count_cells(part[:place]))
    return f"{gutter}{before}{shown}\n{' ' * (len(gutter) - 2)}| {indent}{carets}"


def _printable(text: str) -> str:
    """Return a text on one line, without what a terminal would obey."""
    return "".join(one if one.isprintable() else " " if one == "\t" else "·" for one in text)
