"""JUnit XML: the format every CI server reads.

It knows passed, failed, error and skipped. A FAIL is a failure. INCONCLUSIVE and a refused design
are errors: they are no failures of the service, and skipped tests are green nearly everywhere.
What is advisory is a passed test that says so in its output.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from trialwise.documents.printable import make_visible
from trialwise.documents.results import (
    LineKind,
    RepeatedRun,
    ResultLine,
    RunResults,
    Status,
    SuiteResults,
)


def render_junit(suite: SuiteResults) -> str:
    """Render the results of a suite as JUnit XML.

    One suite for each contract, one test case for each criterion, for each of its inputs where
    each is decided, for each latency limit and for each gate. Where gates are about repeated runs,
    every run is a test case, too, and a failed one is skipped. Whatever a service said, the
    document is well-formed: what XML cannot hold or a reader could not see is spelled out.
    """
    root = ET.Element("testsuites", name=make_visible(suite.name))
    root.extend(_suite(run) for run in suite.runs)
    for count in ("tests", "failures", "errors", "skipped"):
        root.set(count, str(sum(int(one.get(count, "0")) for one in root)))
    root.set("time", _seconds(suite.seconds))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _suite(run: RunResults) -> ET.Element:
    red = [line for line in run.results if line.is_red]
    failures = sum(line.status is Status.FAIL for line in red)
    suite = ET.Element(
        "testsuite",
        name=make_visible(run.contract),
        tests=str(len(run.results) + len(run.repeated)),
        failures=str(failures),
        errors=str(len(red) - failures),
        skipped=str(sum(not one.passed for one in run.repeated)),
        time=_seconds(run.seconds),
    )
    if run.started_at is not None:
        suite.set("timestamp", _moment(run.started_at))
    # What is only reported is no test case: it would count as a test that passed.
    reported = {line.name: line.summary for line in run.reported}
    numbers = {
        name if name.startswith(line.name) else f"{line.name}.{name}": value
        for line in run.reported
        for name, value in line.facts.items()
    }
    suite.append(_properties({**run.facts, **reported, **numbers}))
    suite.extend(_case(line) for line in run.results)
    suite.extend(_repeated_case(one, run.contract) for one in run.repeated)
    if run.notes:
        ET.SubElement(suite, "system-err").text = "\n".join(map(make_visible, run.notes))
    return suite


def _case(line: ResultLine) -> ET.Element:
    case = ET.Element(
        "testcase", classname=make_visible(line.contract), name=make_visible(line.name)
    )
    case.append(_properties(line.facts))
    lines = [*map(make_visible, (line.statement, *line.below))]
    if line.advice:
        lines.append(make_visible(line.advice))
    if line.is_red:
        tag = "failure" if line.status is Status.FAIL else "error"
        body = ET.SubElement(case, tag, type=line.status.value, message=_message(line))
        body.text = "\n".join([*lines, *map(make_visible, line.failure_lines)])
        lines = []
    elif line.advisory:
        breach = [] if line.status is Status.PASS else [*map(make_visible, line.failure_lines)]
        lines = [f"ADVISORY {line.status}: shown, not enforced.", *lines, *breach]
    lines += [f"Note: {make_visible(note)}" for note in line.notes]
    lines += map(make_visible, line.details)
    if line.claim:
        lines.append(f"This is {make_visible(line.claim)}.")
    if output := "\n".join(filter(None, lines)):
        ET.SubElement(case, "system-out").text = output
    return case


def _repeated_case(one: RepeatedRun, contract: str) -> ET.Element:
    """One run of an input: a failed one is skipped, since only all runs together are decided."""
    case = ET.Element(
        "testcase",
        classname=f"{make_visible(contract)} runs",
        name=make_visible(one.name),
        time=_seconds(one.seconds),
    )
    facts = {"passed": one.passed, "trial": one.trial, "seed": one.seed}
    case.append(_properties({**facts, "weakest_score": one.weakest_score}))
    if not one.passed:
        said = f"This run failed: {one.reason}. One run decides nothing."
        ET.SubElement(case, "skipped", message=make_visible(said))
    return case


def _message(line: ResultLine) -> str:
    what = "" if line.kind is LineKind.RUN else f"{line.name} is "
    return make_visible(f"{what}{line.label}: {line.statement}")


def _properties(values: Mapping[str, object]) -> ET.Element:
    """Named values; what is not known is left out."""
    properties = ET.Element("properties")
    for name, value in values.items():
        if value is not None:
            shown = str(value).lower() if isinstance(value, bool) else make_visible(str(value))
            ET.SubElement(properties, "property", name=make_visible(name), value=shown)
    return properties


def _seconds(value: float) -> str:
    return f"{value:.3f}"


def _moment(at: datetime) -> str:
    """In UTC to the second, as the format's readers expect it."""
    moment = at.astimezone(UTC) if at.tzinfo is not None else at
    return moment.isoformat(timespec="seconds")
