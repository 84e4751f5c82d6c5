"""Annotations that a code host shows beside a change: GitHub's commands, GitLab's report.

Both hosts read lines or files that others write too, so nothing a service said may look like a
command or an entry of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

from trialwise.documents.printable import make_visible
from trialwise.model.run import RunRecord
from trialwise.reporters.digest import Entry, Kind, digest, failure_lines, run_notes, suite_line
from trialwise.reporters.suite import Status, checked, suite_status

__all__ = ["Level", "render_github", "render_gitlab"]

#: GitHub shows so many annotations of a level in a step and drops the others without a word.
MOST_ANNOTATIONS = 10


class Level(StrEnum):
    """How an annotation is shown."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


#: What GitLab calls each level.
_SEVERITIES = {Level.ERROR: "critical", Level.WARNING: "major", Level.NOTICE: "info"}


def render_github(records: Sequence[RunRecord], *, file: str = "") -> str:
    """The runs of a suite as GitHub workflow commands, one a line.

    A FAIL and a refused design are errors, INCONCLUSIVE and whatever qualifies a verdict are
    warnings, a breach of something advisory is a warning, and the suite's line is a notice. Where
    a level has more than GitHub shows, its last annotation counts the rest.

    Args:
        records: One run for each contract.
        file: The suite file, for the annotations to stand beside.
    """
    found: dict[Level, list[tuple[str, str]]] = {level: [] for level in Level}
    for level, title, message in _annotations(checked(records)):
        found[level].append((title, message))
    found[Level.NOTICE].insert(0, (f"trialwise: {suite_status(records)}", suite_line(records)))
    lines = [
        _command(level, title, message, file)
        for level, annotations in found.items()
        for title, message in _shown(annotations)
    ]
    return "\n".join(lines) + "\n"


def render_gitlab(records: Sequence[RunRecord], *, file: str = "trialwise.yaml") -> str:
    """The runs of a suite as a GitLab code quality report.

    An entry keeps its fingerprint from run to run as long as the same thing is wrong with the
    same line, so that a merge request shows what it brought about and what was there before.

    Args:
        records: One run for each contract.
        file: The suite file, where GitLab shows the entries.
    """
    import json
    from hashlib import sha256

    seen: dict[str, int] = {}
    entries = []
    for entry in _lines(checked(records)):
        level = _level(entry)
        if level is None:
            continue
        identity = json.dumps([entry.contract, entry.kind, entry.name, entry.status])
        # A contract that was run twice has two entries, and a fingerprint must be unique.
        again = seen[identity] = seen.get(identity, -1) + 1
        fingerprint = sha256(f"{identity}{again or ''}".encode()).hexdigest()
        entries.append(
            {
                "type": "issue",
                "check_name": f"trialwise/{entry.kind}",
                "description": make_visible(f"{entry.title} is {_word(entry)}: {entry.statement}"),
                "categories": ["Bug Risk"],
                "severity": _SEVERITIES[level],
                "fingerprint": fingerprint,
                "location": {"path": make_visible(file), "lines": {"begin": 1}},
            }
        )
    return json.dumps(entries, indent=2, ensure_ascii=False) + "\n"


def _lines(records: Sequence[RunRecord]) -> Iterator[Entry]:
    """Every line; inputs after everything else, since their criterion speaks for them."""
    entries = [entry for record in records for entry in digest(record)]
    yield from (entry for entry in entries if entry.kind is not Kind.INPUT)
    yield from (entry for entry in entries if entry.kind is Kind.INPUT)


def _annotations(records: Sequence[RunRecord]) -> Iterator[tuple[Level, str, str]]:
    entries = list(_lines(records))
    for entry in entries:
        level = _level(entry)
        if level is not None:
            lines = [entry.statement, entry.advice, *failure_lines(entry)]
            yield level, f"{entry.title} is {_word(entry)}", "\n".join(filter(None, lines))
    for record in records:
        for note in run_notes(record.verdict):
            yield Level.WARNING, record.verdict.contract or record.plan.contract, note
    for entry in entries:
        if entry.notes and entry.kind is not Kind.INPUT:
            yield Level.WARNING, entry.title, "\n".join(entry.notes)


def _level(entry: Entry) -> Level | None:
    """How urgent a line is, or None where there is nothing to say."""
    if entry.status is Status.PASS:
        return None
    if entry.advisory:
        return Level.WARNING if entry.status is Status.FAIL else Level.NOTICE
    return Level.WARNING if entry.status is Status.INCONCLUSIVE else Level.ERROR


def _word(entry: Entry) -> str:
    return f"{entry.label} (advisory)" if entry.advisory else entry.label


def _shown(annotations: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    if len(annotations) <= MOST_ANNOTATIONS:
        yield from annotations
        return
    yield from annotations[: MOST_ANNOTATIONS - 1]
    rest = annotations[MOST_ANNOTATIONS - 1 :]
    yield f"{len(rest)} more", "\n".join(title for title, _ in rest)


def _command(level: Level, title: str, message: str, file: str) -> str:
    given = {"file": file, "title": title}
    properties = ",".join(f"{key}={_property(value)}" for key, value in given.items() if value)
    body = "%0A".join(_data(line) for line in message.split("\n"))
    return f"::{level} {properties}::{body}"


def _data(text: str) -> str:
    """Text as a command's message: no line break is left that could begin another command."""
    return make_visible(text).replace("%", "%25")


def _property(text: str) -> str:
    """Text as the value of a command's property, which a colon or a comma would end."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
