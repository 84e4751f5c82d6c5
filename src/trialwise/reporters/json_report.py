"""The JSON report: everything a program may want to know of a suite, in one versioned form.

`verdict.schema.json` beside this file describes it (JSON Schema 2020-12). The verdict stands in it
in full, as the record keeps it; the rest is what a program would otherwise work out for itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from trialwise import __version__
from trialwise.model.codec import to_plain
from trialwise.model.run import RunRecord
from trialwise.reporters.digest import (
    MOST_GROUPS,
    Entry,
    TrialIndex,
    digest,
    facts,
    run_notes,
)
from trialwise.reporters.suite import (
    checked,
    exit_code_of,
    suite_decision,
    suite_envelopes,
    suite_spending,
)

__all__ = ["SCHEMA", "render_json", "report_of", "report_schema"]

#: Its number grows when a reader of the earlier form would misread the later one.
SCHEMA = "trialwise.report/1"

_BEYOND_ASCII = re.compile(r"[^ -~\n]")


def render_json(
    records: Sequence[RunRecord],
    *,
    name: str = "trialwise",
    exit_code: int | None = None,
    locations: Mapping[str, str] | None = None,
) -> str:
    """The runs of a suite as JSON text.

    Letters of every script stay as they are. What cannot be printed is written as an escape of
    JSON, so that the file is safe to show; half a surrogate pair, which JSON readers refuse, is
    spelled out.

    Args:
        records: One run for each contract.
        name: The suite's.
        exit_code: What the process ends with; what the verdicts alone say where not given.
        locations: Where each run's record is kept, by run id.
    """
    report = report_of(records, name=name, exit_code=exit_code, locations=locations)
    text = json.dumps(report, indent=2, ensure_ascii=False, allow_nan=False)
    return _BEYOND_ASCII.sub(_escaped, text) + "\n"


def report_of(
    records: Sequence[RunRecord],
    *,
    name: str = "trialwise",
    exit_code: int | None = None,
    locations: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The report as plain values; see `render_json`."""
    runs = checked(records)
    decision = suite_decision(runs)
    return {
        "schema": SCHEMA,
        "tool": {"name": "trialwise", "version": __version__},
        "name": name,
        "decision": None if decision is None else decision.value,
        "exit_code": exit_code_of(runs) if exit_code is None else exit_code,
        "envelopes": [to_plain(envelope) for envelope in suite_envelopes(runs)],
        "spending": to_plain(suite_spending(runs)),
        "runs": [_run(record, (locations or {}).get(record.run_id)) for record in runs],
    }


def report_schema() -> dict[str, Any]:
    """The JSON Schema of the report."""
    from importlib.resources import files

    text = files("trialwise.reporters").joinpath("verdict.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def _run(record: RunRecord, location: str | None) -> dict[str, Any]:
    verdict = record.verdict
    return {
        "contract": verdict.contract or record.plan.contract,
        "run_id": record.run_id,
        "record": location,
        "decision": None if verdict.decision is None else verdict.decision.value,
        "notes": list(run_notes(verdict)),
        "results": [_result(entry) for entry in digest(record)],
        "inputs": _inputs(record),
        "verdict": to_plain(verdict),
    }


def _result(entry: Entry) -> dict[str, Any]:
    shown, rest = entry.failures[:MOST_GROUPS], entry.failures[MOST_GROUPS:]
    return {
        "kind": entry.kind.value,
        "name": entry.name,
        "statement": entry.statement,
        "advice": entry.advice,
        "notes": list(entry.notes),
        # A closed set is text to JSON, and so to whoever reads the plain values.
        "facts": {
            key: str(value) if isinstance(value, str) else value
            for key, value in facts(entry).items()
        },
        "failures": [to_plain(group) for group in shown],
        "other_failures": sum(group.count for group in rest),
    }


def _inputs(record: RunRecord) -> list[dict[str, Any]]:
    """Every input: its trials, and those that each criterion counts and passed."""
    index = TrialIndex(record)
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for experiment in record.plan.experiments:
        for name in experiment.input_ids:
            rows[experiment.name, name] = {
                "experiment": experiment.name,
                "input": name,
                "trials": 0,
                "errors": 0,
                "criteria": {},
            }
    for trial in record.trials:
        row = rows[trial.experiment, trial.input_id]
        row["trials"] += 1
        row["errors"] += trial.error_class.value != "none"
    for finding in record.verdict.findings:
        for trial in index.counted(finding):
            criteria = rows[trial.experiment, trial.input_id]["criteria"]
            counts = criteria.setdefault(finding.criterion, {"trials": 0, "passed": 0})
            counts["trials"] += 1
            counts["passed"] += trial.outcome(finding.criterion).passed
    return list(rows.values())


def _escaped(found: re.Match[str]) -> str:
    one = found.group()
    if one.isprintable():
        return one
    code = ord(one)
    if 0xD800 <= code <= 0xDFFF:
        return f"\\\\u{code:04x}"
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
