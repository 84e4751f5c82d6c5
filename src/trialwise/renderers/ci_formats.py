"""What programs read: GitHub's commands, GitLab's report, TAP, JUnit XML and JSON.

They read lines or files that others write too, so nothing a service said may look like a
command or a line of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from trialwise.documents import results
from trialwise.documents.printable import make_visible

if TYPE_CHECKING:
    from xml.etree import ElementTree as ET

#: GitHub shows this many annotations of a level in a step and drops the others without a word.
MOST_ANNOTATIONS = 10


class Level(StrEnum):
    """How an annotation is shown."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


#: What GitLab calls each level.
_SEVERITIES = {Level.ERROR: "critical", Level.WARNING: "major", Level.NOTICE: "info"}


def render_github(suite: results.SuiteResults, *, file: str = "") -> str:
    """Render the results of a suite as GitHub workflow commands, one a line.

    A FAIL and a refused design are errors, INCONCLUSIVE and whatever qualifies a verdict are
    warnings, a breach of something advisory is a warning, and the suite's line is a notice. Where
    a level has more than GitHub shows, its last annotation counts the rest.

    Args:
        suite: The results.
        file: The suite file, for the annotations to stand beside.
    """
    found: dict[Level, list[tuple[str, str]]] = {level: [] for level in Level}
    for level, title, message in _list_annotations(suite):
        found[level].append((title, message))
    # First, since GitHub shows the first ten notices and the totals must be among them.
    found[Level.NOTICE].insert(0, (f"trialwise: {suite.status}", suite.totals))
    shown = ((level, one) for level, annotations in found.items() for one in _limit(annotations))
    return "".join(f"{_write_command(level, *one, file)}\n" for level, one in shown)


def render_gitlab(
    suite: results.SuiteResults,
    *,
    file: str = "trialwise.yaml",
    files: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Render the results of a suite as a GitLab code quality report.

    A line keeps its fingerprint from run to run as long as the same thing is wrong with the
    same line, so that a merge request shows what it brought about and what was there before.

    Args:
        suite: The results.
        file: The suite file, where GitLab shows the entries.
        files: The suite file of each run, by run id, where there are several.
    """
    from hashlib import sha256

    seen: dict[str, int] = {}
    entries = []
    # Inputs after everything else, since their criterion speaks for them.
    placed = [(line, files.get(run.run_id, file)) for run in suite.runs for line in run.results]
    for line, path in sorted(placed, key=lambda one: one[0].kind is results.LineKind.INPUT):
        level = _pick_level(line)
        if level is None:
            continue
        identity = json.dumps([line.contract, line.kind, line.name, line.status])
        # A contract that was run twice has two entries, and a fingerprint must be unique.
        again = seen[identity] = seen.get(identity, -1) + 1
        fingerprint = sha256(f"{identity}{again or ''}".encode()).hexdigest()
        entries.append(
            {
                "type": "issue",
                "check_name": f"trialwise/{line.kind}",
                "description": make_visible(_describe_line(line)),
                "categories": ["Bug Risk"],
                "severity": _SEVERITIES[level],
                "fingerprint": fingerprint,
                "location": {"path": make_visible(path), "lines": {"begin": 1}},
            }
        )
    return json.dumps(entries, indent=2, ensure_ascii=False) + "\n"


def _describe_line(line: results.ResultLine) -> str:
    """Describe a line with the first failing trial: its input, expected answer and reply."""
    parts = [f"{line.title} is {line.word}: {line.statement}"]
    for group in line.failures[:1]:
        shown = [f"{label}: {results.shorten_text(text)}" for label, text in group.exchange]
        parts.append(f"For example {'; '.join([group.where, *shown])}")
    return " ".join(parts)


def _list_lines(suite: results.SuiteResults) -> list[results.ResultLine]:
    """List every line; inputs after everything else, since their criterion speaks for them."""
    return sorted(suite.results, key=lambda line: line.kind is results.LineKind.INPUT)


def _list_annotations(suite: results.SuiteResults) -> Iterator[tuple[Level, str, str]]:
    for line in _list_lines(suite):
        level = _pick_level(line)
        if level is not None:
            texts = [line.statement, line.advice, *map(make_visible, line.failure_lines)]
            yield level, f"{line.title} is {line.word}", "\n".join(filter(None, texts))
    for run in suite.runs:
        for note in run.notes:
            yield Level.WARNING, run.contract, note
    for line in _list_lines(suite):
        if line.notes and line.kind is not results.LineKind.INPUT:
            yield Level.WARNING, line.title, "\n".join(line.notes)


def _pick_level(line: results.ResultLine) -> Level | None:
    """Return how urgent a line is, or None where there is nothing to say."""
    if line.status is results.Status.PASS:
        return None
    if line.advisory:
        return Level.WARNING if line.status is results.Status.FAIL else Level.NOTICE
    # An open verdict is no failure of the service, and yet no reason to merge.
    return Level.WARNING if line.status is results.Status.INCONCLUSIVE else Level.ERROR


def _limit(annotations: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    if len(annotations) <= MOST_ANNOTATIONS:
        yield from annotations
        return
    yield from annotations[: MOST_ANNOTATIONS - 1]
    rest = annotations[MOST_ANNOTATIONS - 1 :]
    yield f"{len(rest)} more", "\n".join(title for title, _ in rest)


def _write_command(level: Level, title: str, message: str, file: str) -> str:
    # A colon or a comma would end a property.
    given = ((key, _escape_message(value)) for key, value in (("file", file), ("title", title)))
    quoted = ((key, text.replace(":", "%3A").replace(",", "%2C")) for key, text in given if text)
    properties = ",".join(f"{key}={text}" for key, text in quoted)
    body = "%0A".join(_escape_message(line) for line in message.split("\n"))
    return f"::{level} {properties}::{body}"


def _escape_message(text: str) -> str:
    """Text as a command's message: no line break is left that could begin another command."""
    return make_visible(text).replace("%", "%25")


#: What readers of version 13, which know no escapes, would take for a directive.
_DIRECTIVE = re.compile(r"#(?=\s*(?:skip|todo))", re.IGNORECASE)


def render_tap(suite: results.SuiteResults) -> str:
    """Render the results of a suite as TAP."""
    lines = ["TAP version 14", f"1..{len(suite.results)}"]
    number = 0
    for run in suite.runs:
        for line in run.results:
            number += 1
            lines += _point(number, line)
        lines += [f"# {_description(f'{line.title}: {line.summary}')}" for line in run.reported]
        lines += [f"# note: {_description(note)}" for note in run.notes]
    lines.append(f"# suite: {suite.status} ({suite.totals})")
    return "\n".join(lines) + "\n"


def _point(number: int, line: results.ResultLine) -> Iterator[str]:
    yield f"{'not ok' if line.is_red else 'ok'} {number} - {_description(line.title)}"
    yield "  ---"
    yield f"  message: {_scalar(line.statement)}"
    for key, value in line.facts.items():
        if value is not None:
            yield f"  {key}: {_scalar(value)}"
    if line.advice:
        yield f"  advice: {_scalar(line.advice)}"
    yield from _sequence("notes", [_scalar(note) for note in line.notes])
    yield from _sequence("failures", [_group(one) for one in line.failures[: results.MOST_GROUPS]])
    yield "  ..."


def _sequence(key: str, items: list[str]) -> Iterator[str]:
    if items:
        yield f"  {key}:"
    for item in items:
        yield f"    - {item}"


def _group(group: results.FailureGroup) -> str:
    fields = {"count": "count", "what": "title", "explanation": "explanation"}
    fields |= {"evidence": "evidence", "input": "input_id", "trial": "trial", "seed": "seed"}
    # In flow style, a line for each group: the block stays as long as there are reasons.
    values = {name: getattr(group, field) for name, field in fields.items()}
    values |= {key: text for key, text in group.exchange if key in ("expected", "reply")}
    if group.asked:
        values["asked"] = group.asked
    return "{" + ", ".join(f"{key}: {_scalar(value)}" for key, value in values.items()) + "}"


def _description(text: str) -> str:
    """Return a description without anything that a reader would take for a directive."""
    shown = _DIRECTIVE.sub(r"\\x23", make_visible(text))
    return shown.replace("\\", "\\\\").replace("#", "\\#")


def _scalar(value: object) -> str:
    """Return a value that YAML 1.1 and 1.2 read alike: text in quotes, floats with a point."""
    if isinstance(value, bool | int):
        return json.dumps(value)
    if isinstance(value, float):
        mantissa, e, exponent = repr(value).partition("e")
        return f"{mantissa}{'' if '.' in mantissa else '.0'}{e}{exponent}"
    return json.dumps(make_visible(str(value)), ensure_ascii=False)


# --- JUnit XML: the format every CI server reads --------------------------------------------------
#
# It knows passed, failed, error and skipped. A FAIL is a failure. INCONCLUSIVE and a refused design
# are errors: they are no failures of the service, and skipped tests are green nearly everywhere.
# What is advisory is a passed test that says so in its output.


def render_junit(suite: results.SuiteResults) -> str:
    """Render the results of a suite as JUnit XML.

    One suite for each contract, one test case for each criterion, for each of its inputs where
    each is decided, for each latency limit and for each gate. Where gates are about repeated runs,
    every run is a test case, too, and a failed one is skipped. Whatever a service said, the
    document is well-formed: what XML cannot hold or a reader could not see is spelled out.
    """
    root = _element("testsuites", name=suite.name)
    root.extend(_suite(run) for run in suite.runs)
    for count in ("tests", "failures", "errors", "skipped"):
        root.set(count, str(sum(int(one.get(count, "0")) for one in root)))
    root.set("time", _seconds(suite.seconds))
    from xml.etree import ElementTree as ET

    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _element(tag: str, text: str = "", **attributes: object) -> ET.Element:
    """Make an element; what XML cannot hold is spelled out in its attributes."""
    # Other formats of this module need not wait for the XML library.
    from xml.etree import ElementTree as ET

    element = ET.Element(tag, {name: make_visible(str(one)) for name, one in attributes.items()})
    element.text = text or None
    return element


def _suite(run: results.RunResults) -> ET.Element:
    # Only what breaks the verdict counts as failed: CI servers turn any failure into a red build.
    red = [line for line in run.results if line.is_red]
    failures = sum(line.status is results.Status.FAIL for line in red)
    tests, errors = len(run.results) + len(run.repeated), len(red) - failures
    counts = {"tests": tests, "failures": failures, "errors": errors}
    counts["skipped"] = sum(not one.passed for one in run.repeated)
    suite = _element("testsuite", "", name=run.contract, **counts, time=_seconds(run.seconds))
    if run.started_at is not None:
        # In UTC: the schema of JUnit has no place for a time zone.
        moment = run.started_at.astimezone(UTC) if run.started_at.tzinfo else run.started_at
        suite.set("timestamp", moment.isoformat(timespec="seconds"))
    # What is only reported is no test case: it would count as a test that passed.
    reported = {line.name: line.summary for line in run.reported}
    numbers: dict[str, object] = {}
    for line in run.reported:
        for name, value in line.facts.items():
            numbers[name if name.startswith(line.name) else f"{line.name}.{name}"] = value
    suite.append(_properties({**run.facts, **reported, **numbers}))
    suite.extend(_case(line) for line in run.results)
    suite.extend(_repeated_case(one, run.contract) for one in run.repeated)
    if run.notes:
        suite.append(_element("system-err", "\n".join(map(make_visible, run.notes))))
    return suite


def _case(line: results.ResultLine) -> ET.Element:
    case = _element("testcase", classname=line.contract, name=line.name)
    case.append(_properties(line.facts))
    said = (line.statement, *line.below, *filter(None, [line.advice]))
    lines = [*map(make_visible, said)]
    failing = [*map(make_visible, line.failure_lines)]
    if line.is_red:
        tag = "failure" if line.status is results.Status.FAIL else "error"
        text = "\n".join([*lines, *failing])
        case.append(_element(tag, text, type=line.status.value, message=_message(line)))
        lines = []
    elif line.advisory:
        breach = [] if line.status is results.Status.PASS else failing
        lines = [f"ADVISORY {line.status}: shown, not enforced.", *lines, *breach]
    lines += [f"Note: {make_visible(note)}" for note in line.notes]
    lines += map(make_visible, line.details)
    if line.claim:
        lines.append(f"This is {make_visible(line.claim)}.")
    if output := "\n".join(filter(None, lines)):
        case.append(_element("system-out", output))
    return case


def _repeated_case(one: results.RepeatedRun, contract: str) -> ET.Element:
    """One run of an input: a failed one is skipped, since only all runs together are decided."""
    seconds = _seconds(one.seconds)
    case = _element("testcase", classname=f"{contract} runs", name=one.name, time=seconds)
    facts = {"passed": one.passed, "trial": one.trial, "seed": one.seed}
    case.append(_properties({**facts, "weakest_score": one.weakest_score}))
    if not one.passed:
        said = f"This run failed: {one.reason}. One run decides nothing."
        case.append(_element("skipped", message=said))
    return case


def _message(line: results.ResultLine) -> str:
    what = "" if line.kind is results.LineKind.RUN else f"{line.name} is "
    return f"{what}{line.label}: {line.statement}"


def _properties(values: Mapping[str, object]) -> ET.Element:
    """Named values; what is not known is left out."""
    properties = _element("properties")
    for name, value in values.items():
        if value is not None:
            shown = str(value).lower() if isinstance(value, bool) else value
            properties.append(_element("property", name=name, value=shown))
    return properties


def _seconds(value: float) -> str:
    return f"{value:.3f}"


# --- Plain values as JSON text that is safe to show -----------------------------------------------

_BEYOND_ASCII = re.compile(r"[^ -~\n]")


def render_json(values: Any) -> str:
    """Plain values as JSON text.

    Letters of every script stay as they are. What cannot be printed is written as an escape of
    JSON; half a surrogate pair, which JSON readers refuse, is spelled out.
    """
    text = json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False)
    return _BEYOND_ASCII.sub(_escape, text) + "\n"


def render_json_lines(rows: Iterable[Any]) -> str:
    """Plain values as JSON, one a line, as safe to show as `render_json`."""
    lines = (json.dumps(one, ensure_ascii=False, allow_nan=False) for one in rows)
    return "".join(f"{_BEYOND_ASCII.sub(_escape, line)}\n" for line in lines)


def _escape(found: re.Match[str]) -> str:
    one = found.group()
    if one.isprintable():
        return one
    # What lies beyond the basic plane becomes a pair of surrogates (RFC 8259, 7); half of a pair
    # alone is no character.
    escape = json.dumps(one)[1:-1]
    return f"\\{escape}" if "\ud800" <= one <= "\udfff" else escape
