"""TAP version 14: one test point for each line of the report, its numbers as YAML below it.

INCONCLUSIVE and refused are `not ok` without a directive, since SKIP and TODO are green. The
points are flat, not subtests, so that readers of version 13 see every one of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from trialwise.documents.printable import make_visible
from trialwise.documents.results import MOST_GROUPS, FailureGroup, ResultLine, SuiteResults

__all__ = ["render_tap"]

#: What readers of version 13, which know no escapes, would take for a directive.
_DIRECTIVE = re.compile(r"#(?=\s*(?:skip|todo))", re.IGNORECASE)


def render_tap(suite: SuiteResults) -> str:
    """The results of a suite as TAP."""
    lines = ["TAP version 14", f"1..{len(suite.results)}"]
    number = 0
    for run in suite.runs:
        for line in run.results:
            number += 1
            lines += _point(number, line)
        lines += [f"# note: {_description(note)}" for note in run.notes]
    lines.append(f"# suite: {suite.status} ({suite.totals})")
    return "\n".join(lines) + "\n"


def _point(number: int, line: ResultLine) -> Iterator[str]:
    yield f"{'not ok' if line.is_red else 'ok'} {number} - {_description(line.title)}"
    yield "  ---"
    yield f"  message: {_scalar(line.statement)}"
    for key, value in line.facts.items():
        if value is not None:
            yield f"  {key}: {_scalar(value)}"
    if line.advice:
        yield f"  advice: {_scalar(line.advice)}"
    yield from _sequence("notes", [_scalar(note) for note in line.notes])
    yield from _sequence("failures", [_group(one) for one in line.failures[:MOST_GROUPS]])
    yield "  ..."


def _sequence(key: str, items: list[str]) -> Iterator[str]:
    if items:
        yield f"  {key}:"
    for item in items:
        yield f"    - {item}"


def _group(group: FailureGroup) -> str:
    values = {
        "count": group.count,
        "what": group.title,
        "explanation": group.explanation,
        "evidence": group.evidence,
        "input": group.input_id,
        "trial": group.trial,
        "seed": group.seed,
    }
    return "{" + ", ".join(f"{key}: {_scalar(value)}" for key, value in values.items()) + "}"


def _description(text: str) -> str:
    """A description without anything that a reader would take for a directive."""
    shown = _DIRECTIVE.sub(r"\\x23", make_visible(text))
    return shown.replace("\\", "\\\\").replace("#", "\\#")


def _scalar(value: object) -> str:
    """A value that YAML 1.1 and 1.2 read alike: text in quotes, floats with a point."""
    if isinstance(value, bool | int):
        return json.dumps(value)
    if isinstance(value, float):
        mantissa, e, exponent = repr(value).partition("e")
        return f"{mantissa}{'' if '.' in mantissa else '.0'}{e}{exponent}"
    return json.dumps(make_visible(str(value)), ensure_ascii=False)
