"""Conformance results as text, Markdown and plain data; writing them is somebody else's job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from trialwise.contrib.conformance.calibration import Row
from trialwise.contrib.conformance.case_runner import CaseResult, FolderResult, SuiteResult
from trialwise.contrib.conformance.field_comparison import MISSING, Difference

__all__ = [
    "calibration_data",
    "conformance_data",
    "render_calibration",
    "render_calibration_markdown",
    "render_conformance",
    "render_conformance_markdown",
]

_SUITE_HEAD = ("suite", "cases", "matched", "binding fields", "largest deviation")
_MARKDOWN_HEAD = """\
# Calibration

The error rates that the decision rules really have, beside those they are configured for. Every
number is computed by exact enumeration, by the functions a verdict uses; none is simulated. `make
calibration` writes this page; `trialwise conformance --calibration` prints each design.

A line sums up designs: how many, the rate furthest to the wrong side, and the design that has it.
**holds**: every design respects the nominal rate. **exceeds**: some do not, and the rule does not
promise that they would. **BROKEN**: a promise fails; then the command exits with 1.

The exact rule set promises its error rates. The Wilson rule set targets them: its regression rule
takes the baseline's rate as known, so its false alarms grow with the test, and its latency bound is
a confidence bound on the baseline, not a prediction of the next test (companion §3.2, §12.4.3).
No calibration fixtures have been published, so nothing here claims agreement with any.
"""


def render_conformance(results: Sequence[FolderResult]) -> str:
    """A table per folder, then every mismatch by case, field, expected and got."""
    return "\n\n".join(_folder_text(result) for result in results)


def render_conformance_markdown(results: Sequence[FolderResult]) -> str:
    """The same as Markdown, one section per folder."""
    parts = []
    for result in results:
        parts += [f"## {result.path}\n", f"Fixtures {result.version}.\n"]
        parts += [f"| {' | '.join(_SUITE_HEAD)} |", "|---|---|---|---|---|"]
        parts += [f"| {' | '.join(_suite_row(suite))} |" for suite in result.suites]
        notes = _notes(result)
        parts += ["", *(f"- {note}" for note in notes)] if notes else []
        status = ", ".join(f"{key}: {_plain(v)}" for key, v in result.conformance_status.items())
        parts += ["", f"`conformanceStatus`: {status}", ""]
    return "\n".join(parts)


def render_calibration(rows: Sequence[Row]) -> str:
    """The calibration table as aligned text."""
    lines = [
        f"{row.status:8} {row.achieved:.6f} {row.bound} {row.nominal:g}  {row.rule}: "
        f"{row.design}; {row.quantity}{f'; {row.note}' if row.note else ''}"
        for row in rows
    ]
    return "\n".join([*lines, "", _calibration_summary(rows)])


def render_calibration_markdown(rows: Sequence[Row]) -> str:
    """The calibration page of the documentation: a line for each rule and promise."""
    groups: dict[tuple[str, str, str, str, bool], list[Row]] = {}
    for row in rows:
        # The power is no promise: it describes single designs, which the text report lists.
        asked = row.quantity.partition(" (power")[0]
        nominal = f"{row.bound} {row.nominal:g}"
        # A promise never shares a line with a disclosure: the worse of the two would hide it.
        key = (row.section, row.rule, asked, nominal, row.claimed)
        groups.setdefault(key, []).append(row)
    parts = [_MARKDOWN_HEAD]
    for section in dict.fromkeys(row.section for row in rows):
        parts.append(f"## {section.capitalize()}\n")
        parts.append("| rule | computed | nominal | designs | worst | at | |")
        parts.append("|---|---|---|--:|--:|---|---|")
        parts += [
            _calibration_line(key[2], group) for key, group in groups.items() if key[0] == section
        ]
        parts.append("")
    return "\n".join([*parts, _calibration_summary(rows), ""])


def _calibration_line(asked: str, group: Sequence[Row]) -> str:
    """One line for all designs that make the same promise, with the worst of them."""
    rule, nominal = group[0].rule, f"{group[0].bound} {group[0].nominal:g}"
    is_limit = group[0].bound == "at most"
    worst = max(group, key=lambda row: row.achieved if is_limit else -row.achieved)
    above = sum(not row.holds for row in group)
    status = worst.status if above in (0, len(group)) else f"{worst.status} in {above}"
    cells = (rule, asked, nominal, str(len(group)), f"{worst.achieved:.6f}", worst.design, status)
    return f"| {' | '.join(cells)} |"


def conformance_data(results: Iterable[FolderResult]) -> list[dict[str, Any]]:
    """The results as plain JSON-ready data."""
    return [
        {
            "folder": str(result.path),
            "fixtureVersion": result.version,
            "suites": [_suite_data(suite) for suite in result.suites],
            "absentSuites": list(result.absent),
            "conformanceStatus": result.conformance_status,
        }
        for result in results
    ]


def calibration_data(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """The calibration rows as plain JSON-ready data."""
    return [
        {
            "section": row.section,
            "rule": row.rule,
            "design": row.design,
            "quantity": row.quantity,
            "bound": row.bound,
            "nominal": row.nominal,
            "achieved": row.achieved,
            "claimed": row.claimed,
            "status": row.status,
            "note": row.note,
        }
        for row in rows
    ]


def _folder_text(result: FolderResult) -> str:
    rows = [_SUITE_HEAD, *(_suite_row(suite) for suite in result.suites)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rules = ", ".join(sorted({f"rule {suite.rule}" for suite in result.suites}))
    lines = [f"{result.path} (fixtures {result.version}, {rules})", ""]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append("  ".join(cells).rstrip())
    lines += [*_notes(result), "", "conformanceStatus:"]
    lines += [f"  {key}: {_plain(value)}" for key, value in result.conformance_status.items()]
    return "\n".join(lines)


def _notes(result: FolderResult) -> list[str]:
    """What needs attention: suites not there or not known, and every departure by name."""
    notes = [] if result.checked else ["NOTHING CHECKED: no case of this folder could be run"]
    notes += [f"not in this folder: {name}" for name in result.absent]
    for suite in result.unknown:
        weight = "mandatory, so this folder fails" if suite.mandatory else "its cases were not run"
        notes.append(f"unknown suite: {suite.suite} ({suite.count} cases; {weight})")
    for suite in result.suites:
        for case in suite.cases:
            notes += [_departure("MISMATCH", suite, case, d) for d in case.differences]
            notes += [
                _departure("informational", suite, case, d)
                for d in case.informational
                if d.got != MISSING
            ]
    return notes


def _departure(word: str, suite: SuiteResult, case: CaseResult, difference: Difference) -> str:
    return (
        f"{word} {suite.suite} / {case.case} / {difference.field}: "
        f"expected {difference.expected!r}, got {difference.got!r}"
    )


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _suite_row(suite: SuiteResult) -> tuple[str, str, str, str, str]:
    if not suite.known:
        return suite.suite, str(suite.count), "unknown", "-", "-"
    return (
        suite.suite,
        str(suite.count),
        str(suite.matched),
        str(len(suite.binding)),
        f"{suite.deviation:.1e} (allowed {suite.tolerance:g})",
    )


def _suite_data(suite: SuiteResult) -> dict[str, Any]:
    return {
        "suite": suite.suite,
        "rule": suite.rule,
        "known": suite.known,
        "mandatory": suite.mandatory,
        "cases": suite.count,
        "matched": suite.matched,
        "bindingFields": list(suite.binding),
        "tolerance": suite.tolerance,
        "largestDeviation": suite.deviation,
        "mismatches": _differences((case, case.differences) for case in suite.cases),
        "informational": _differences((case, case.informational) for case in suite.cases),
    }


def _differences(
    parts: Iterable[tuple[CaseResult, tuple[Difference, ...]]],
) -> list[dict[str, Any]]:
    return [
        {"case": case.case, "field": d.field, "expected": d.expected, "got": d.got}
        for case, differences in parts
        for d in differences
    ]


def _calibration_summary(rows: Sequence[Row]) -> str:
    broken = sum(row.status == "BROKEN" for row in rows)
    claimed = sum(row.claimed for row in rows)
    exceeds = sum(row.status == "exceeds" for row in rows)
    return (
        f"{len(rows)} rows: {claimed} promises, {broken} broken; "
        f"{len(rows) - claimed} disclosures, {exceeds} above their nominal rate."
    )
