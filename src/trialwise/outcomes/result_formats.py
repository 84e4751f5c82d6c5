"""The formats of result files: how a module declares one, and where each is found.

A module declares its format as `FORMAT`. The formats of other tools live in `trialwise.contrib`,
and other distributions add theirs as entry points of the group `trialwise.results`:

    [project.entry-points."trialwise.results"]
    mine = "my_package.results:FORMAT"

The core knows them by the names below only, so reading a table loads no other reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from trialwise.errors import InvalidArgument
from trialwise.outcomes.bounded_files import read_head
from trialwise.outcomes.outcome_rows import Outcomes

__all__ = ["FORMATS", "ResultFormat", "detect_format", "find_format", "json_formats"]

#: The group of entry points in which other distributions declare formats.
RESULTS = "trialwise.results"

_MODULES = {
    "jsonl": "trialwise.outcomes.json_lines",
    "csv": "trialwise.outcomes.csv_tables",
    "junit": "trialwise.contrib.results.junit_reports",
    "inspect": "trialwise.contrib.results.inspect_results",
    "promptfoo": "trialwise.contrib.results.promptfoo_results",
}
#: The built-in formats.
FORMATS = tuple(_MODULES)

#: Formats that are recognised by what a JSON document holds, in the order they are asked.
_BY_DOCUMENT = ("inspect", "promptfoo")
_BY_EXTENSION = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
    ".xml": "junit",
    ".eval": "inspect",
}
#: The format by the first character that is not white space.
_BY_CHARACTER = {b"<": "junit", b"{": "jsonl", b"[": "jsonl"}
#: Only the logs of Inspect AI are archives, whatever their extension.
_ARCHIVE = b"PK"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFormat:
    """A format of result files.

    Every reader takes the keyword arguments `name` (what was tested, unless the file says),
    `layout` (a `Layout`) and `problems` (where to report what is wrong), and returns `Outcomes`.
    """

    name: str
    """The word that users write, such as `csv`."""
    read: Callable[..., Outcomes]
    """Reads the file at a path."""
    recognises: Callable[[Any], bool] | None = None
    """Whether a JSON document, or the list of the objects of JSON lines, is of this format."""
    read_json: Callable[..., Outcomes] | None = None
    """Reads what `recognises` accepts."""


def find_format(name: str) -> ResultFormat:
    """Find a format by its name.

    Raises:
        InvalidArgument: No format has that name.
    """
    if name in _MODULES:
        found = import_module(_MODULES[name]).FORMAT
        assert isinstance(found, ResultFormat)
        return found
    from trialwise.extensions import extension_names, find_extension

    extension = find_extension(
        RESULTS, name, lambda one: one if isinstance(one, ResultFormat) else None
    )
    if extension is None:
        known = ", ".join(map(repr, (*FORMATS, *extension_names(RESULTS))))
        raise InvalidArgument("format", name, f"be one of {known}")
    return extension


def json_formats() -> Iterator[ResultFormat]:
    """Yield the built-in formats that recognise a JSON document."""
    return (find_format(name) for name in _BY_DOCUMENT)


def detect_format(path: Path) -> str:
    """Name the format of a file by its extension, or else by how it begins."""
    head = read_head(path, 4096)
    if head.startswith(_ARCHIVE):
        return "inspect"
    start = head.removeprefix(_BYTE_ORDER_MARK).lstrip()[:1]
    return _BY_EXTENSION.get(path.suffix.casefold()) or _BY_CHARACTER.get(start, "csv")
