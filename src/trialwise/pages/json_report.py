"""The JSON report: everything a program may want to know of a suite, in one versioned form.

`verdict.schema.json` beside this file describes it (JSON Schema 2020-12). The verdict stands in it
in full, as the record keeps it; the rest is what a program would otherwise work out for itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trialwise import __version__
from trialwise.documents.results import MOST_GROUPS, LineKind, ResultLine
from trialwise.model.codec import to_plain
from trialwise.model.run import RunRecord
from trialwise.model.trial import ErrorClass
from trialwise.pages.failure_groups import TrialIndex
from trialwise.pages.input_passes import describe_passes
from trialwise.pages.latency_facts import summarize_latencies
from trialwise.pages.results import describe_run
from trialwise.pages.suite_totals import (
    bound_suite_errors,
    decide_suite,
    pick_exit_code,
    require_runs,
    sum_spending,
)

#: Its number grows when a reader of the earlier form would misread the later one.
SCHEMA = "trialwise.report/2"


def describe_report(
    records: Sequence[RunRecord],
    *,
    name: str = "trialwise",
    exit_code: int | None = None,
    locations: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Describe the runs of a suite as plain values.

    Args:
        records: One run for each contract.
        name: The suite's.
        exit_code: What the process ends with; what the verdicts alone say where not given.
        locations: Where each run's record is kept, by run id.
    """
    runs = require_runs(records)
    verdicts = [record.verdict for record in runs]
    decision = decide_suite(verdicts)
    return {
        "schema": SCHEMA,
        "tool": {"name": "trialwise", "version": __version__},
        "name": name,
        "decision": None if decision is None else decision.value,
        "exit_code": pick_exit_code(verdicts) if exit_code is None else exit_code,
        "envelopes": [to_plain(envelope) for envelope in bound_suite_errors(verdicts)],
        "spending": to_plain(sum_spending(verdicts)),
        "runs": [_run(record, (locations or {}).get(record.run_id)) for record in runs],
    }


def read_report_schema() -> dict[str, Any]:
    """Read the JSON Schema of the report."""
    import json
    from importlib.resources import files

    text = files("trialwise.pages").joinpath("verdict.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def _run(record: RunRecord, location: str | None) -> dict[str, Any]:
    run, verdict = describe_run(record), record.verdict
    return {
        "contract": run.contract,
        "run_id": record.run_id,
        "record": location,
        "decision": None if verdict.decision is None else verdict.decision.value,
        "notes": list(run.notes),
        "results": [_result(line) for line in run.lines if "decision" in line.facts],
        "latency": _latency(record),
        "inputs": _inputs(record),
        "verdict": to_plain(verdict),
    }


def _latency(record: RunRecord) -> dict[str, Any] | None:
    """Return the mean and the maximum latency of the successful trials, if there are any."""
    found = summarize_latencies(record)
    return None if found is None else found._asdict()


def _result(line: ResultLine) -> dict[str, Any]:
    return {
        # A criterion that is only reported is one that decides nothing.
        "kind": "criterion" if line.kind is LineKind.REPORTED else line.kind.value,
        "name": line.name,
        "statement": line.statement,
        "advice": line.advice,
        "notes": list(line.notes),
        # A closed set is text to JSON, and to everyone who reads the plain values.
        "facts": {
            key: str(value) if isinstance(value, str) else value
            for key, value in line.facts.items()
        },
        "failures": [to_plain(group) for group in line.failures[:MOST_GROUPS]],
        "other_failures": line.other_failures,
        "postconditions": [to_plain(one) for one in line.checks],
    }


def _inputs(record: RunRecord) -> list[dict[str, Any]]:
    """Return every input: its trials, and those that each criterion counts and passed."""
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
    for table in record.trials.tables:
        for number, course in zip(table.inputs, table.course_column, strict=True):
            row = rows[table.experiment, table.names[number]]
            row["trials"] += 1
            row["errors"] += table.courses[course].error_class is not ErrorClass.NONE
    for finding in record.verdict.findings:
        sampling = index.find_experiment(finding)
        for name, (passed, trials) in index.find_rows(finding).tally_inputs().items():
            criteria = rows[sampling, name]["criteria"]
            criteria[finding.criterion] = {
                "trials": trials,
                "passed": passed,
                "pass_k": describe_passes(trials, passed),
            }
    return list(rows.values())
