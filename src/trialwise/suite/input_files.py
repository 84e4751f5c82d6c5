"""Inputs in files: JSON lines, a table, or many files that a pattern finds."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from fnmatch import translate
from functools import lru_cache
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trialwise.declarations.structures import Fields
from trialwise.declarations.written import INVALID, Node, suggest_name
from trialwise.errors import InvalidArgument
from trialwise.model.claim import Input
from trialwise.regular_files import FileUnreadable, read_text
from trialwise.suite.reading_context import Context
from trialwise.suite.suite_problems import Source

if TYPE_CHECKING:
    from trialwise.suite.inputs import InputFile

#: Of one file of inputs, and of all the files that a pattern finds.
_MAX_BYTES = 100_000_000
_MAX_INPUTS = 1_000_000
_MAX_COLUMNS = 10_000
#: A file that is wrong in one line is usually wrong in all of them.
_MAX_PROBLEMS = 10
_FIELDS = ("id", "expected", "stratum", "repetitions", "weight", "cluster")
_PLACEHOLDER = r"\{([^{}]+)\}"


class Found:
    """The inputs found so far, with the place of each."""

    def __init__(self, context: Context) -> None:
        self.inputs: list[Input] = []
        self._context = context
        self._places: dict[str, str] = {}

    def add(self, values: dict[str, Any], refuse: Callable[[str, str], Any], place: str) -> None:
        """Take in one input, unless it is wrong.

        Args:
            values: The fields of an `Input`; without an id it gets its number.
            refuse: Reports what is wrong with a field.
            place: Where it stands, as a message says it.
        """
        # Its number in the whole sampling, so that the ids of several files do not collide.
        values.setdefault("id", str(len(self.inputs) + 1))
        try:
            one = Input(**values)
        except InvalidArgument as error:
            refuse(error.argument, f"`{error.argument}` must {error.allowed}")
            return
        # Trials are told apart by the id of their input, and `each_input` decides by it.
        if one.id in self._places:
            refuse(
                "id", f"the id `{one.id}` is that of the input on {self._places[one.id]} already"
            )
            return
        self._places[one.id] = place
        self.inputs.append(one)


def read_input_files(fields: Fields, file: InputFile, found: Found, context: Context) -> None:
    """Take in the inputs of the files that a suite names, or report what is wrong with them.

    Args:
        fields: Where the keys stand.
        file: What they say.
        found: Takes the inputs.
        context: The suite being read.
    """
    kind = next(name for name in ("jsonl", "csv", "files") if name in fields.nodes)
    for name in ("value", *_FIELDS, "metadata", "delimiter"):
        if name in fields.nodes and (kind == "files" or (name == "delimiter" and kind != "csv")):
            context.refuse(fields.keys[name], f"`{name}` does not go with `{kind}`")
            return
    if kind == "files":
        _texts(fields, found, context)
        return
    node = fields.at(kind)
    path = context.file(fields[kind])
    try:
        text = read_text(path, limit=_MAX_BYTES)
    except FileUnreadable as error:
        context.refuse(node, f"the file {error.reason}")
        return
    source = Source(path, text)
    table = _Table(source, file, fields, found, context)
    (table.read_lines if kind == "jsonl" else table.read_rows)()
    if not found.inputs and not table.problems:
        context.refuse(node, "the file holds no inputs")


class _Table:
    """A file of records, read into inputs by the names of their fields."""

    def __init__(
        self, source: Source, file: InputFile, fields: Fields, found: Found, context: Context
    ) -> None:
        self.problems = 0
        self._source = source
        self._fields = fields
        self._file = file
        self._found = found
        self._context = context

    def read_lines(self) -> None:
        """One JSON value a line; blank lines do not count."""
        for number, line in enumerate(self._source.text.split("\n")):
            if self._is_enough(number):
                return
            if not line.strip():
                continue
            try:
                value = parse_json(line)
            except ValueError as error:
                self._refuse(number, f"this is not JSON: {error}")
                continue
            # An input of null could not be told from none in a record.
            if value is None:
                self._refuse(number, "an input cannot be null")
            else:
                self._line(number, value)

    def read_rows(self) -> None:
        """A table whose first line names its columns."""
        import csv
        import io

        text = io.StringIO(self._source.text, newline="")
        rows = csv.reader(text, delimiter=self._file.delimiter, strict=True)
        header: list[str] | None = None
        number = 0
        try:
            for row in rows:
                # A file without line ends is one row: each of its cells would become a column.
                if len(row) > _MAX_COLUMNS:
                    most = f"at most {_MAX_COLUMNS:,} are read"
                    self._refuse(number, f"the table has {len(row):,} columns, {most}")
                    return
                if row and header is None:
                    header = row
                    # A mapping keeps the last of two columns and drops the other without a word.
                    twice = next((name for name, n in Counter(row).items() if n > 1), None)
                    if twice is not None:
                        self._refuse(number, f"two columns are called `{twice}`")
                    if not self._has_value(header):
                        return
                elif row and header is not None:
                    self._row(number, header, row)
                if self._is_enough(number):
                    return
                number = rows.line_num
        except csv.Error as error:
            self._refuse(number, f"this is not CSV: {error}")

    def _has_value(self, header: list[str]) -> bool:
        """Return whether there is a column to ask; the suite is what has to change if not."""
        chosen = self._file.value or "value"
        if len(header) == 1 and self._file.value is None:
            return True
        names = [] if chosen in header else re.findall(_PLACEHOLDER, chosen) or [chosen]
        missing = next((name for name in names if name not in header), None)
        if missing is None:
            return True
        self.problems += 1
        known = ", ".join(f"`{name}`" for name in header[:10])
        at, advice = "value", ""
        if self._file.value is None:
            say = f"value: {header[0]}"
            if not self._fields.node.is_mapping:
                say = f"inputs: {{csv: {self._file.csv}, {say}}}"
            at, advice = "csv", f": say `{say}`"
        message = f"{self._source.path.name} has no column `{missing}`; its columns are {known}"
        self._context.refuse(self._fields.at(at), message + advice)
        return False

    def _row(self, number: int, header: list[str], row: list[str]) -> None:
        if len(row) != len(header):
            self._refuse(number, f"the row has {len(row)} fields, the first line {len(header)}")
            return
        record = dict(zip(header, row, strict=True))
        if self._file.value is None and len(header) == 1:
            record["value"] = row[0]
        self._put(number, record, self._file.value or "value")

    def _line(self, number: int, value: Any) -> None:
        chosen = self._file.value
        if not isinstance(value, dict):
            if chosen is None:
                self._put(number, {"value": value}, "value")
            else:
                self._refuse(number, "this is not an object, so that it has no fields")
            return
        if chosen is not None:
            self._put(number, value, chosen)
        elif "value" not in value:
            taken = {key: value[key] for key in self._list_known() if key in value}
            # The whole object is the input, but for what the service must not see.
            hidden = self._column("expected")
            # A service that sees the expected answer could give it.
            sent = {key: part for key, part in value.items() if key != hidden}
            self._put(number, {**taken, "value": sent}, "value")
        elif unknown := [key for key in value if key not in self._list_known()]:
            hint = suggest_name(unknown[0], _FIELDS)
            meant = f"{hint} If not, " if hint else ""
            advice = "say `value: value` in the suite to take that field and leave the others"
            self._refuse(number, f"`{unknown[0]}` is not a field of an input; {meant}{advice}")
        else:
            self._put(number, value, "value")

    def _put(self, number: int, record: dict[str, Any], chosen: str) -> None:
        values: dict[str, Any] = {}
        for name in _FIELDS:
            column = self._column(name)
            if column not in record:
                if getattr(self._file, name) is not None:
                    self._refuse(number, f"there is no field `{column}`")
                    return
                continue
            if name == "expected":
                # Any value, as the postconditions take it; a null or an empty cell is none.
                values |= {} if record[column] in (None, "") else {name: record[column]}
                continue
            value = _convert_field(name, record[column])
            if value is None:
                self._refuse(number, f"`{column}` must be {_CONVERTED[name]}")
                return
            if value != "":
                values[name] = value
        metadata = self._pick_metadata(number, record)
        if metadata is None:
            return
        values |= {"metadata": metadata} if metadata else {}
        made = self._make_input(number, record, chosen)
        if made is not INVALID:
            values["value"] = made
            place = f"line {number + 1}"
            self._found.add(values, lambda _, message: self._refuse(number, message), place)

    def _pick_metadata(self, number: int, record: dict[str, Any]) -> dict[str, Any] | None:
        """Pick what is kept with an input; None once a problem is reported."""
        names = self._file.metadata
        if names is None:
            found = record.get("metadata", {})
            return found if isinstance(found, dict) else {"metadata": found}
        missing = next((name for name in names if name not in record), None)
        if missing is not None:
            self._refuse(number, f"there is no field `{missing}`")
            return None
        return {name: record[name] for name in names}

    def _make_input(self, number: int, record: dict[str, Any], chosen: str) -> Any:
        """Make the input: a field, or a text with fields in it."""
        if chosen in record:
            return record[chosen]
        names = re.findall(_PLACEHOLDER, chosen)
        missing = next((name for name in names or [chosen] if name not in record), None)
        if missing is not None:
            known = ", ".join(f"`{name}`" for name in list(record)[:10])
            self._refuse(number, f"there is no field `{missing}`; there are {known}")
            return INVALID
        return re.sub(_PLACEHOLDER, lambda match: _text(record[match[1]]), chosen)

    def _list_known(self) -> list[str]:
        """List the fields of a line that are not the input itself."""
        return ["value", *map(self._column, _FIELDS), *(self._file.metadata or ["metadata"])]

    def _column(self, name: str) -> str:
        column: str | None = getattr(self._file, name)
        return column or name

    def _is_enough(self, number: int) -> bool:
        if len(self._found.inputs) >= _MAX_INPUTS:
            self._refuse(number, f"a sampling holds at most {_MAX_INPUTS:,} inputs")
            return True
        return self.problems >= _MAX_PROBLEMS

    def _refuse(self, number: int, message: str) -> None:
        self.problems += 1
        length = len(self._source.line(number))
        self._context.problems.add_at(self._source, number, 0, message, length=length)


_CONVERTED = {
    "id": "text or a number",
    "stratum": "text or a number",
    "cluster": "text or a number",
    "repetitions": "a whole number of at least 1",
    "weight": "a number above 0",
}


def _convert_field(name: str, value: Any) -> Any:
    """Convert a field of a table to the type of the input's field, or to None."""
    if isinstance(value, bool) or value is None or isinstance(value, list | dict):
        return None
    if name in ("id", "stratum", "cluster"):
        return str(value)
    if isinstance(value, str):
        text = value.strip()
        pattern = r"[0-9]{1,9}" if name == "repetitions" else r"[0-9]{0,12}\.?[0-9]{1,12}"
        # An empty cell is how a table leaves a field out.
        if text == "" or not re.fullmatch(pattern, text):
            return "" if text == "" else None
        return int(text) if name == "repetitions" else float(text)
    return value


def _text(value: Any) -> str:
    import json

    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _texts(fields: Fields, found: Found, context: Context) -> None:
    patterns = fields["files"]
    node = fields.at("files")
    left = _MAX_BYTES
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        try:
            names = find_files(pattern, context.folder)
        except TooManyEntries:
            most = f"{MOST_ENTRIES:,} files and folders"
            message = f"the pattern looks through more than {most}; name a narrower one"
            context.refuse(node, message)
            continue
        except (OSError, ValueError, re.error):
            names = []
        if not names:
            context.refuse(node, "no file matches the pattern, from the suite's folder")
        for name in names:
            try:
                text = read_text(context.folder / name, limit=left)
            except FileUnreadable as error:
                context.refuse(node, f"{name} {error.reason}")
                return
            # Of all files together: a pattern may find thousands.
            left -= len(text)
            shown = Path(name).as_posix()
            found.add(
                {"id": shown, "value": text},
                lambda _, message: context.refuse(node, message),
                shown,
            )


def read_json_file(node: Node, path: Path, context: Context) -> Any:
    """Read the one value of a JSON file, or `INVALID` once its problem is reported."""
    try:
        text = read_text(path, limit=_MAX_BYTES)
    except FileUnreadable as error:
        return context.refuse(node, f"the file {error.reason}")
    try:
        return parse_json(text)
    except ValueError as error:
        return context.refuse(node, f"the file is not JSON: {error}")


def parse_json(text: str) -> Any:
    """JSON with finite numbers and without half surrogate pairs.

    Raises:
        ValueError: It is not.
    """
    import json

    try:
        value = json.loads(text, parse_constant=_constant, parse_float=_finite)
    except RecursionError:
        raise ValueError("it nests too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg.removesuffix(' at')} at column {error.colno}") from None
    try:
        # Half a pair cannot be written as UTF-8, so that the run could not be kept.
        json.dumps(value if "\\u" in text else None, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("it holds half a surrogate pair") from None
    return value


def _constant(name: str) -> None:
    raise ValueError(f"it has no {name}")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{digits[:20]} is too large")
    return number


# --- The files that a pattern of a suite finds, with a limit on how many it looks at --------------
#
# `glob` of the standard library has no limit: `/**/*` would walk through the whole file system.

#: Entries of folders that one pattern may look at.
MOST_ENTRIES = 100_000


class TooManyEntries(Exception):
    """A pattern looks through more of the file system than it may."""


def find_files(pattern: str, folder: Path) -> list[str]:
    """Find the regular files of a pattern in the order of their names, as `glob` names them.

    `**` stands for any number of folders. A name that begins with a dot is found only by a pattern
    that begins with one.

    Args:
        pattern: Relative to the folder, or absolute.
        folder: Where it starts.

    Raises:
        TooManyEntries: It looks at more than `MOST_ENTRIES` entries.
    """
    search = _Search(folder)
    root, parts = ("/", pattern.strip("/")) if pattern.startswith("/") else ("", pattern)
    # A set: `**` finds a file by several ways, and an input must not count twice.
    names = set(search.expand(root, [part for part in parts.split("/") if part]))
    return sorted(name for name in names if name and os.path.isfile(folder / name))


class _Search:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._left = MOST_ENTRIES

    def expand(self, place: str, parts: list[str]) -> Iterator[str]:
        """Yield the paths below a place that the parts of a pattern stand for."""
        if not parts:
            yield place
            return
        first, *rest = parts
        if first == "**":
            yield from self.expand(place, rest)
            for name, is_folder in self._list(place, "*"):
                path = os.path.join(place, name)
                if is_folder:
                    yield from self.expand(path, parts)
                elif not rest:
                    yield path
        elif has_magic(first):
            for name, is_folder in self._list(place, first):
                if is_folder or not rest:
                    yield from self.expand(os.path.join(place, name), rest)
        else:
            yield from self.expand(os.path.join(place, first), rest)

    def _list(self, place: str, pattern: str) -> Iterator[tuple[str, bool]]:
        """Yield the entries of a folder that match, and whether each is a folder."""
        matches = _compile(pattern).match
        try:
            with os.scandir(self._folder / place) as entries:
                for entry in entries:
                    self._left -= 1
                    if self._left < 0:
                        raise TooManyEntries
                    if matches(entry.name) and (pattern[0] == "." or entry.name[0] != "."):
                        yield entry.name, entry.is_dir()
        except OSError:  # no folder, or not ours to read
            return


@lru_cache(maxsize=64)
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))
