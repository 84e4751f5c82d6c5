"""Rows of a result file: the result of one criterion in one trial."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from trialwise.errors import InvalidArgument, TrialwiseError
from trialwise.model import ErrorClass, FailReason, Usage
from trialwise.model.fingerprint import fingerprint
from trialwise.regular_files import FileUnreadable, open_regular, read_bytes
from trialwise.validation import require_text

#: A file with more is a dump, not a test.
MOST_ROWS = 1_000_000
#: Longer identifiers are shortened: a report shows their beginning and a fingerprint.
_LONGEST_ID = 120
_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeRow:
    """The result of one criterion in one trial."""

    input_id: str
    criterion: str
    passed: bool
    reason: FailReason | None = None
    """Why it failed; by default the condition did not hold."""
    explanation: str = ""
    evidence: str = ""
    error_class: ErrorClass = ErrorClass.NONE
    error: str = ""
    """What went wrong with the call, for a person."""
    trial: str | None = None
    """Which trial of its input this is; None for the next one of this criterion."""
    group: str = ""
    """Criteria of one group share trials; criteria of different groups do not."""
    order: float | None = None
    """When the trial began, in seconds or as any number that grows."""
    latency_s: float | None = None
    cost_usd: float | None = None
    usage: Usage | None = None
    attempts: int = 1
    where: str = ""
    """Its place in the file, such as "line 7"."""
    asked: str = ""
    """What the input is, where the file says more than its name."""
    expected: str | None = None
    """What a right reply says or is."""
    score: float | None = None
    """How good the reply is; dropped where the file's scores are not from 0 to 1."""

    def __post_init__(self) -> None:
        if self.passed:
            object.__setattr__(self, "reason", None)
        elif self.reason is None:
            object.__setattr__(self, "reason", FailReason.CONDITION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """All rows of a file, or of several files of one kind.

    >>> row = OutcomeRow(input_id="q1", criterion="answers", passed=True)
    >>> Outcomes(rows=(row,), name="sums").criteria
    ('answers',)
    """

    rows: tuple[OutcomeRow, ...]
    name: str
    """What was tested: the task that the file names, or else the name of the file."""
    source: str = ""
    """The names of the files."""
    format: str = ""
    passing: str = "passed"
    """What counted as passed. A baseline must agree in this and in the name of the criterion."""
    factors: Mapping[str, str] = field(default_factory=lambda: _NONE)
    """What was under test: model, provider, task version."""
    planned: int | None = None
    """The planned trials, if the file names them; fewer rows are an unfinished run."""
    notes: tuple[str, ...] = ()
    """What a reader of the verdict has to know about the file."""
    pass_at: float | None = None
    """The lowest score that passed, where rows have scores."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", tuple(self.rows))
        require_text("name", self.name, "be a text that names what was tested")
        if not self.rows:
            raise InvalidArgument("rows", (), "hold at least one outcome")
        # Rows are held as objects, unlike the trials of a run: more would fill the memory.
        if len(self.rows) > MOST_ROWS:
            raise InvalidArgument("rows", len(self.rows), f"be at most {MOST_ROWS:,}")
        scores = [row.score for row in self.rows if row.score is not None]
        is_share = self.pass_at is not None and 0 < self.pass_at <= 1
        # The bounds on a mean hold for scores between 0 and 1 (Hoeffding 1963).
        if scores and not (is_share and all(0 <= score <= 1 for score in scores)):
            # Points on another scale pass or fail, and have no mean from 0 to 1.
            plain = tuple(replace(row, score=None) for row in self.rows)
            object.__setattr__(self, "rows", plain)

    @property
    def criteria(self) -> tuple[str, ...]:
        """The criteria in order of appearance."""
        return tuple(dict.fromkeys(row.criterion for row in self.rows))

    @property
    def graded(self) -> frozenset[str]:
        """The criteria of which a row has a score."""
        return frozenset(row.criterion for row in self.rows if row.score is not None)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The inputs in order of appearance."""
        return tuple(dict.fromkeys(row.input_id for row in self.rows))

    def only(self, *criteria: str) -> Outcomes:
        """Return the outcomes of some criteria."""
        known = self.criteria
        for name in criteria:
            if name not in known:
                raise InvalidArgument("criterion", name, f"be one of {_list_names(known)}")
        kept = frozenset(criteria)
        return replace(self, rows=tuple(row for row in self.rows if row.criterion in kept))

    def pool(self, name: str = "passes") -> Outcomes:
        """Join all criteria into one: the criterion becomes part of the input.

        For files in which every task is a test of its own, and the question is about all of them.

        >>> rows = [OutcomeRow(input_id="-", criterion=task, passed=True) for task in ("a", "b")]
        >>> pooled = Outcomes(rows=tuple(rows), name="tasks").pool()
        >>> pooled.criteria, pooled.inputs
        (('passes',), ('a: -', 'b: -'))
        """
        several = len(self.criteria) > 1
        rows = tuple(
            replace(
                row,
                criterion=name,
                input_id=f"{row.criterion}: {row.input_id}" if several else row.input_id,
                group="",
            )
            for row in self.rows
        )
        return replace(self, rows=rows, planned=None if several else self.planned)

    @classmethod
    def join(cls, parts: Sequence[Outcomes]) -> Outcomes:
        """Join several files of one kind, one after the other."""
        if len(parts) == 1:
            return parts[0]
        first = parts[0]
        for part in parts[1:]:
            if (part.format, part.passing) != (first.format, first.passing):
                allowed = (
                    f"be read alike: {first.source} is {first.format}, passing by {first.passing}"
                )
                given = f"{part.source}: {part.format}, passing by {part.passing}"
                raise InvalidArgument("files", given, allowed)
            # A rate over two services is the rate of neither.
            if dict(part.factors) != dict(first.factors):
                allowed = f"be of one service, as {first.source} of {dict(first.factors)}"
                raise InvalidArgument("files", f"{part.source} of {dict(part.factors)}", allowed)
        rows = tuple(
            row if row.trial is None else replace(row, trial=f"{number}.{row.trial}")
            for number, part in enumerate(parts, start=1)
            for row in part.rows
        )
        notes = [f"{part.source}: {note}" for part in parts for note in part.notes]
        return replace(
            first,
            rows=rows,
            source=_list_names([part.source for part in parts]),
            planned=_count_planned_trials(parts),
            notes=tuple(notes),
        )


def input_id_of(value: Any) -> str:
    """Turn the value of a field into an identifier: short, and different for different values.

    >>> input_id_of(7), input_id_of({"q": "15 * 37"})
    ('7', '{"q": "15 * 37"}')
    """
    if isinstance(value, str):
        text = value
    else:
        try:
            text = json.dumps(value, ensure_ascii=False, default=str)
        except (RecursionError, ValueError):  # nested deeply, or a number of thousands of digits
            text = f"#{fingerprint(value)}"
    # Half a surrogate pair is fine in JSON and in no file.
    text = text.encode("utf-8", "backslashreplace").decode("utf-8").strip()
    if len(text) <= _LONGEST_ID:
        return text
    return f"{text[: _LONGEST_ID - 20]}… #{fingerprint(text)}"


def _count_planned_trials(parts: Sequence[Outcomes]) -> int | None:
    known = [part.planned for part in parts]
    if all(one is None for one in known):
        return None
    return sum(
        len({(row.group, row.input_id, row.trial) for row in part.rows}) if one is None else one
        for part, one in zip(parts, known, strict=True)
    )


def _list_names(names: Sequence[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


# Read files that somebody else wrote, within bounds on their size, and single values of them.
#
# What is wrong with a file is one error that lists every problem with its place.

#: Limit on the size of a file, and on what one member of an archive unpacks to.
MOST_BYTES = 256_000_000

#: A file that is wrong in one line is usually wrong in all of them.
_MOST_PROBLEMS = 10

#: A larger number is not a count of tokens.
_MOST_TOKENS = 10**15


def read_whole(path: Path, *, limit: int = MOST_BYTES) -> bytes:
    """Read a regular file, if it is not too large."""
    try:
        return read_bytes(path, limit=limit)
    except FileUnreadable as error:
        raise refuse_file(path, f"the file {error.reason}") from None


def read_content(path: Path) -> bytes:
    """Read a regular file that holds something."""
    content = read_whole(path)
    if not content.strip():
        raise refuse_file(path, "the file is empty")
    return content


def read_head(path: Path, size: int = 4) -> bytes:
    """Read the first bytes of a file; nothing where it cannot be read."""
    try:
        with open_regular(path) as file:
            return file.read(size)
    except (OSError, ValueError):
        return b""


def decode_text(content: bytes, path: str) -> str:
    """Decode UTF-8, and drop a byte order mark."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        byte = f"byte 0x{content[error.start]:02x}"
        raise OutcomesUnreadable(path, (f"line {line}: UTF-8 is expected, found {byte}",)) from None


def parse_json(text: str | bytes) -> Any:
    """Parse a JSON document; NaN and the infinities are accepted, as Python and others write them.

    Raises:
        ValueError: It is not JSON; the message says where.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None


def refuse_file(path: Path, message: str) -> OutcomesUnreadable:
    """Return the error for a file that cannot be read at all."""
    return OutcomesUnreadable(str(path), (message,))


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
        if len(self._found) >= _MOST_PROBLEMS:
            raise OutcomesUnreadable(self.path, tuple(self._found), more=True)

    def refuse(self, where: str, message: str) -> OutcomesUnreadable:
        """Return the error for a problem that ends the reading."""
        self._found.append(f"{where}: {message}" if where else message)
        return OutcomesUnreadable(self.path, tuple(self._found))

    def check(self) -> None:
        """Raise the error if there are problems."""
        if self._found:
            raise OutcomesUnreadable(self.path, tuple(self._found))


def number(value: Any) -> float | None:
    """Read a finite number, also from text.

    >>> number(7), number("0.5"), number("soon"), number(True)
    (7.0, 0.5, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def amount(value: Any) -> float | None:
    """Read a number of at least 0, such as seconds or dollars."""
    found = number(value)
    return None if found is None or found < 0 else found


def count(value: Any) -> int | None:
    """Read a whole number of at least 0."""
    found = amount(value)
    return None if found is None or found % 1 or found > _MOST_TOKENS else int(found)


def moment(value: Any) -> float | None:
    """Read a time, or any number that grows, as a number; a time without a zone is UTC.

    >>> moment("1970-01-02T00:00:00Z"), moment(7), moment("soon")
    (86400.0, 7.0, None)
    """
    found = number(value)
    if found is not None or not isinstance(value, str):
        return found
    try:
        read = datetime.fromisoformat(value.strip())
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def text_of(value: Any) -> str:
    """Return a single value as text; an empty text for a list or an object."""
    return "" if value is None or isinstance(value, dict | list) else str(value)
