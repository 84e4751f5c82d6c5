"""Outcomes as JSON lines, one object a line, or as one JSON list of such objects.

    {"input": "q1", "passed": true, "latency_s": 0.8, "cost_usd": 0.0004}
    {"input": "q2", "passed": false, "explanation": "no source is named"}
    {"input": "q2", "passed": null, "error": "connection reset"}

A line whose result is null or missing is a trial that failed without a value; with an `error` it
is one of infrastructure, or a timeout where the error says so. Which field is what may be said by
the layout; the usual names are found without it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trialwise.contrib.results.field_records import Record, read_records
from trialwise.outcomes.outcome_reading import (
    Layout,
    ResultFormat,
    json_formats,
    name_type,
    parse_lines,
)
from trialwise.outcomes.outcome_rows import (
    Outcomes,
    Problems,
    decode_text,
    parse_json,
    read_content,
)

_LINES = (".jsonl", ".ndjson")


def read_jsonl(path: Path, **arguments: Any) -> Outcomes:
    """Read JSON lines, or one JSON document in a file that is not named `.jsonl`.

    The document of another tool is given to the reader that recognises it.
    """
    text = decode_text(read_content(path), str(path))
    as_lines = path.suffix.casefold() in _LINES
    document, records = parse_document(text, arguments["problems"], as_lines=as_lines)
    for one in json_formats():
        if one.recognises and one.read_json and one.recognises(document):
            return one.read_json(document, **arguments)
    return read_json_records(records, **arguments)


def parse_document(
    text: str, problems: Problems, *, as_lines: bool = False
) -> tuple[Any, list[Any]]:
    """Parse a JSON document, or JSON lines where it is none.

    Returns:
        The document, which is a list for JSON lines; and its records, of which those of JSON lines
        are pairs of place and object.
    """
    if not as_lines:
        try:
            document = parse_json(text)
        except ValueError:
            pass
        else:
            if isinstance(document, dict) and _is_run_record(document):
                problems.add(
                    "the file",
                    "this is a record of whole runs, not a list of outcomes: one line says of one "
                    "trial whether it passed. Export the trials, such as with their JUnit report",
                )
                return [], []
            return document, document if isinstance(document, list) else [document]
    records = parse_lines(text, problems)
    return [fields for _, fields in records], records


def read_json_records(
    given: list[Any] | list[Record], *, name: str, layout: Layout, problems: Problems
) -> Outcomes:
    """Read the outcomes of a list of objects, or of objects with their places."""
    records: list[Record] = []
    for number, one in enumerate(given, start=1):
        where, value = one if isinstance(one, tuple) else (f"item {number}", one)
        if isinstance(value, dict):
            records.append((where, value))
        else:
            problems.add(where, f"an object is expected, not {name_type(value)}")
    problems.check()
    if not records:
        raise problems.refuse("", "the file holds no outcomes")
    return read_records(records, name=name, form="jsonl", layout=layout, problems=problems)


FORMAT = ResultFormat(name="jsonl", read=read_jsonl)


def _is_run_record(document: dict[str, Any]) -> bool:
    """Return whether a document holds studies or contracts with verdicts of their own."""
    parts = document.get("studies", document.get("contracts"))
    return isinstance(parts, list) and any(isinstance(one, dict) for one in parts)
