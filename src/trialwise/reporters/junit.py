"""JUnit XML: the format every CI server reads.

It knows passed, failed, error and skipped. A FAIL is a failure. INCONCLUSIVE and a refused design
are errors: they are no failures of the service, and skipped tests are green nearly everywhere.
What is advisory is a passed test that says so in its output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from trialwise.documents.printable import make_visible
from trialwise.model.run import RunRecord
from trialwise.reporters.digest import Entry, Kind, digest, facts, failure_lines, run_notes
from trialwise.reporters.suite import Status, checked, suite_spending

__all__ = ["render_junit"]


def render_junit(
    records: Sequence[RunRecord],
    *,
    name: str = "trialwise",
    locations: Mapping[str, str] | None = None,
) -> str:
    """The runs of a suite as JUnit XML.

    One suite for each contract, one test case for each criterion, for each of its inputs where
    each is judged, and for each latency limit. Whatever a service said, the document is
    well-formed: what XML cannot hold or a reader could not see is spelled out.

    Args:
        records: One run for each contract.
        name: The suite's.
        locations: Where each run's record is kept, by run id.
    """
    root = ET.Element("testsuites", name=make_visible(name))
    for record in checked(records):
        root.append(_suite(record, (locations or {}).get(record.run_id, "")))
    for count in ("tests", "failures", "errors", "skipped"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    root.set("time", _seconds(suite_spending(records).seconds))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _suite(record: RunRecord, location: str) -> ET.Element:
    entries, verdict = digest(record), record.verdict
    red = [entry for entry in entries if entry.is_red]
    failures = sum(entry.status is Status.FAIL for entry in red)
    suite = ET.Element(
        "testsuite",
        name=make_visible(verdict.contract or record.plan.contract),
        tests=str(len(entries)),
        failures=str(failures),
        errors=str(len(red) - failures),
        skipped="0",
        time=_seconds(verdict.spending.seconds),
    )
    if verdict.started_at is not None:
        suite.set("timestamp", _moment(verdict.started_at))
    suite.append(_properties(_run_facts(record, location)))
    suite.extend(_case(entry) for entry in entries)
    if notes := run_notes(verdict):
        ET.SubElement(suite, "system-err").text = "\n".join(map(make_visible, notes))
    return suite


def _run_facts(record: RunRecord, location: str) -> dict[str, object]:
    verdict, plan = record.verdict, record.plan
    spent = verdict.spending
    return {
        "decision": verdict.decision or "none: the design was refused",
        "run_id": record.run_id,
        "record": location or None,
        "intent": verdict.intent,
        "analysis": verdict.analysis,
        "rule": plan.rule,
        "seed": plan.seed,
        "stop": verdict.stop,
        "trials": spent.trials,
        "attempts": spent.attempts,
        "tokens": spent.tokens,
        "usd": spent.usd,
        "false_compliance_envelope": verdict.false_compliance_envelope,
        "false_degradation_envelope": verdict.false_degradation_envelope,
        "false_rejection_envelope": verdict.false_rejection_envelope,
        "false_acceptance_envelope": verdict.false_acceptance_envelope,
    }


def _case(entry: Entry) -> ET.Element:
    case = ET.Element(
        "testcase", classname=make_visible(entry.contract), name=make_visible(entry.name)
    )
    case.append(_properties(facts(entry)))
    lines = [make_visible(entry.statement)]
    if entry.advice:
        lines.append(make_visible(entry.advice))
    if entry.is_red:
        tag = "failure" if entry.status is Status.FAIL else "error"
        body = ET.SubElement(case, tag, type=entry.status.value, message=_message(entry))
        body.text = "\n".join([*lines, *failure_lines(entry)])
        lines = []
    elif entry.advisory:
        breach = [] if entry.status is Status.PASS else failure_lines(entry)
        lines = [f"ADVISORY {entry.status}: shown, not enforced.", *lines, *breach]
    lines += [f"Note: {make_visible(note)}" for note in entry.notes]
    if entry.claim:
        lines.append(f"This is {make_visible(entry.claim)}.")
    if output := "\n".join(filter(None, lines)):
        ET.SubElement(case, "system-out").text = output
    return case


def _message(entry: Entry) -> str:
    what = "" if entry.kind is Kind.RUN else f"{entry.name} is "
    return make_visible(f"{what}{entry.label}: {entry.statement}")


def _properties(values: Mapping[str, object]) -> ET.Element:
    """Named values; what is not known is left out."""
    properties = ET.Element("properties")
    for name, value in values.items():
        if value is not None:
            shown = str(value).lower() if isinstance(value, bool) else make_visible(str(value))
            ET.SubElement(properties, "property", name=name, value=shown)
    return properties


def _seconds(value: float) -> str:
    return f"{value:.3f}"


def _moment(at: datetime) -> str:
    """In UTC to the second, as the format's readers expect it."""
    moment = at.astimezone(UTC) if at.tzinfo is not None else at
    return moment.isoformat(timespec="seconds")
