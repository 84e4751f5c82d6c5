"""Outcomes as JSON lines, one object a line, or as one JSON list of such objects.

    {"input": "q1", "passed": true, "latency_s": 0.8, "cost_usd": 0.0004}
    {"input": "q2", "passed": false, "explanation": "no source is named"}
    {"input": "q2", "passed": null, "error": "connection reset"}

A line whose result is null or missing is a trial that failed without a value; with an `error` it
is one of infrastructure, or a timeout where the error says so. Which field is what may be said by
the layout; the usual names are found without it.
"""

from __future__ import annotations

from typing import Any

from trialwise.outcomes.files import parse_json
from trialwise.outcomes.layout import Layout
from trialwise.outcomes.problems import Problems
from trialwise.outcomes.records import Record, read_records
from trialwise.outcomes.rows import MOST_ROWS, Outcomes

__all__ = ["parse_lines", "read_json_records", "read_jsonl"]


def read_jsonl(text: str, *, name: str, layout: Layout, problems: Problems) -> Outcomes:
    """The outcomes of JSON lines; blank lines do not count.

    >>> read = read_jsonl('{"input": "q1", "passed": true}', name="sums", layout=Layout(),
    ...                   problems=Problems("runs.jsonl"))
    >>> read.rows[0].passed, read.rows[0].where
    (True, 'line 1')
    """
    return read_json_records(
        parse_lines(text, problems), name=name, layout=layout, problems=problems
    )


def parse_lines(text: str, problems: Problems) -> list[Record]:
    """One object a line, with its place."""
    records: list[Record] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"line {number}"
        if len(records) >= MOST_ROWS:
            raise problems.refuse(where, f"at most {MOST_ROWS:,} lines are read")
        try:
            value = parse_json(line)
        except ValueError as error:
            problems.add(where, f"a JSON object is expected ({error})")
            continue
        if isinstance(value, dict):
            records.append((where, value))
        else:
            problems.add(where, f"a JSON object is expected, not {_kind(value)}")
    problems.check()
    return records


def read_json_records(
    given: list[Any] | list[Record], *, name: str, layout: Layout, problems: Problems
) -> Outcomes:
    """The outcomes of a list of objects, or of objects with their places."""
    records: list[Record] = []
    for number, one in enumerate(given, start=1):
        where, value = one if isinstance(one, tuple) else (f"item {number}", one)
        if isinstance(value, dict):
            records.append((where, value))
        else:
            problems.add(where, f"an object is expected, not {_kind(value)}")
    problems.check()
    if not records:
        raise problems.refuse("", "the file holds no outcomes")
    return read_records(records, name=name, form="jsonl", layout=layout, problems=problems)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    kinds = {bool: "true or false", str: "a text", list: "a list", dict: "an object"}
    return kinds.get(type(value), "a number")
