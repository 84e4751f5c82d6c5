"""Outcomes as a table: a header line that names the columns, then one line a trial.

    input,passed,latency_ms,error
    q1,true,812,
    q2,fail,640,
    q2,,,connection reset

An empty result is a trial that failed without a value; see `field_records` for how several criteria
stand in one table.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from pathlib import Path
from typing import Any

from trialwise.contrib.results.field_records import Record, read_records
from trialwise.outcomes.outcome_reading import Layout, ResultFormat
from trialwise.outcomes.outcome_rows import MOST_ROWS, Outcomes, Problems, decode_text, read_content

_MOST_COLUMNS = 10_000
_DELIMITERS = (",", ";", "\t")


def read_csv(text: str, *, name: str, layout: Layout, problems: Problems) -> Outcomes:
    """Read the outcomes of a table.

    >>> read = read_csv("input;passed\\nq1;yes\\nq1;no", name="sums", layout=Layout(),
    ...                 problems=Problems("runs.csv"))
    >>> [row.passed for row in read.rows]
    [True, False]
    """
    rows = csv.reader(
        io.StringIO(text, newline=""), delimiter=_delimiter(text, layout), strict=True
    )
    header: list[str] | None = None
    records: list[Record] = []
    line = 1
    try:
        for row in rows:
            where, line = f"line {line}", rows.line_num + 1
            if not row:
                continue
            if header is None:
                header = _header(row, where, problems)
            elif len(row) != len(header):
                problems.add(
                    where, f"{len(header)} fields are expected, as in the header, not {len(row)}"
                )
            elif len(records) >= MOST_ROWS:
                raise problems.refuse(where, f"at most {MOST_ROWS:,} lines are read")
            else:
                records.append((where, dict(zip(header, row, strict=True))))
    except csv.Error as error:
        raise problems.refuse(f"line {line}", f"a line of a table is expected ({error})") from None
    problems.check()
    if not records:
        raise problems.refuse("", "a header and at least one line below it are expected")
    return read_records(records, name=name, form="csv", layout=layout, problems=problems)


def _delimiter(text: str, layout: Layout) -> str:
    if layout.delimiter is not None:
        return layout.delimiter
    header = next((line for line in text[:100_000].splitlines() if line.strip()), "")
    return max(_DELIMITERS, key=header.count)


def _header(row: list[str], where: str, problems: Problems) -> list[str]:
    names = [name.strip() for name in row]
    if len(names) > _MOST_COLUMNS:
        raise problems.refuse(
            where, f"the table has {len(names):,} columns, at most {_MOST_COLUMNS:,} are read"
        )
    counts = Counter(names)
    twice = next((name for name in names if counts[name] > 1), None)
    if twice is not None:
        problems.add(where, f"two columns are called `{twice}`")
    return names


def _read(path: Path, **arguments: Any) -> Outcomes:
    return read_csv(decode_text(read_content(path), str(path)), **arguments)


FORMAT = ResultFormat(name="csv", read=_read)
