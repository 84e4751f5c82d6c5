"""The JSON report: everything a program may want to know of a suite, in one versioned form.

`verdict.schema.json` beside this file describes it (JSON Schema 2020-12). The verdict stands in it
in full, as the record keeps it; the rest is what a program would otherwise work out for itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trialwise import __version__
from trialwise.documents.results import MOST_GROUPS, LineKind, ResultLine
from trialwise.model.codec import to_plain
from trialwise.model.plan import Plan
from trialwise.model.run import RunRecord, summarize_latencies
from trialwise.model.trial import ErrorClass, Outcome, Trial
from trialwise.pages import suite_totals
from trialwise.pages.failure_groups import TrialIndex
from trialwise.pages.finding_facts import ASKED, read_fields
from trialwise.pages.gate_facts import describe_passes
from trialwise.pages.results import describe_run

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
    runs = suite_totals.require_runs(records)
    verdicts = [record.verdict for record in runs]
    decision = suite_totals.decide_suite(verdicts)
    return {
        "schema": SCHEMA,
        "tool": {"name": "trialwise", "version": __version__},
        "name": name,
        "decision": decision and decision.value,
        "exit_code": suite_totals.pick_exit_code(verdicts) if exit_code is None else exit_code,
        "envelopes": [to_plain(envelope) for envelope in suite_totals.bound_suite_errors(verdicts)],
        "spending": to_plain(suite_totals.sum_spending(verdicts)),
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
    # The same lines as every other report: a program and a person must read one result.
    run, verdict, latency = describe_run(record), record.verdict, summarize_latencies(record)
    return {
        **read_fields(run, "contract", "run_id"),
        "record": location,
        **read_fields(verdict, "decision"),
        "notes": list(run.notes),
        "results": [_result(line) for line in run.lines if "decision" in line.facts],
        "latency": None if latency is None else latency._asdict(),
        "inputs": _inputs(record),
        "verdict": to_plain(verdict),
    }


def _result(line: ResultLine) -> dict[str, Any]:
    return {
        # A criterion that is only reported is one that decides nothing.
        "kind": "criterion" if line.kind is LineKind.REPORTED else line.kind.value,
        **read_fields(line, "name", "statement", "advice"),
        "notes": list(line.notes),
        # A closed set is text to JSON, and to everyone who reads the plain values.
        "facts": _make_plain(line.facts),
        "failures": [to_plain(group) for group in line.failures[:MOST_GROUPS]],
        "other_failures": line.other_failures,
        "postconditions": [to_plain(one) for one in line.checks],
    }


def _inputs(record: RunRecord) -> list[dict[str, Any]]:
    """Return every input: its trials, and those that each criterion counts and passed."""
    index = TrialIndex(record)
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    # Every planned input has a row: one that was never asked must not look as if it had passed.
    for place in ((one.name, name) for one in record.plan.experiments for name in one.input_ids):
        named = dict(zip(("experiment", "input"), place, strict=True))
        rows[place] = {**named, "trials": 0, "errors": 0, "criteria": {}}
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


# --- Runs, results and trials as rows of plain values, one JSON object a line ---------------------
#
# The format `trialwise.results/1` has three types of rows, in this order for each run: one `run`,
# one `result` for everything that was decided or reported, and one `trial` for each trial in the
# order of inputs. A trial holds a list of what each criterion says of it, so that the trials of a
# run are [trial][grader]. `trialwise score` reads the file back.

#: Its number grows when a reader of the earlier form would misread the later one.
ROWS_SCHEMA = "trialwise.results/1"


def list_rows(
    records: Sequence[RunRecord], *, locations: Mapping[str, str] | None = None
) -> Iterator[dict[str, Any]]:
    """List the rows of several runs, run by run.

    Args:
        records: One run for each contract.
        locations: Where each run's record is kept, by run id.
    """
    for record in suite_totals.require_runs(records):
        yield _describe_run(record, (locations or {}).get(record.run_id))
        for line in describe_run(record).lines:
            yield {
                "type": "result",
                "run_id": record.run_id,
                **read_fields(line, "kind", "name"),
                "statement": line.statement or line.summary,
                **_make_plain(line.facts),
            }
        yield from _list_trials(record)


def _make_plain(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: str(one) if isinstance(one, str) else one for name, one in facts.items()}


def _describe_run(record: RunRecord, location: str | None) -> dict[str, Any]:
    verdict, plan = record.verdict, record.plan
    return {
        "type": "run",
        "schema": ROWS_SCHEMA,
        "version": __version__,
        "contract": plan.contract,
        "run_id": record.run_id,
        "record": location,
        **read_fields(verdict, "decision"),
        "started_at": None if verdict.started_at is None else verdict.started_at.isoformat(),
        "seconds": verdict.spending.seconds,
        "seed": plan.seed,
        "trials": len(record.trials),
        "criteria": [one.criterion for one in plan.criteria],
        "factors": dict(plan.factors),
        "covariates": dict(plan.covariates),
        **read_fields(verdict, "stop"),
    }


def _list_trials(record: RunRecord) -> Iterator[dict[str, Any]]:
    facts = _describe_inputs(record.plan)
    repetitions: dict[tuple[str, str], int] = {}
    for trial in record.trials:
        place = trial.experiment, trial.input_id
        # Counted in the order of inputs, which is the order in which trials count.
        repetitions[place] = repetitions.get(place, 0) + 1
        yield {
            "type": "trial",
            "run_id": record.run_id,
            **read_fields(trial, sampling="experiment", trial="index", input_id="input_id"),
            "repetition": repetitions[place],
            **facts.get(place, {}),
            **read_fields(record.texts.find_input(trial), **ASKED),
            **read_fields(trial, "seed", "passed", "error_class"),
            "error": trial.error or None,
            "latency_s": trial.latency_s,
            **read_fields(trial.usage, "input_tokens", "output_tokens"),
            **read_fields(trial, "cost_usd", "attempts", "started_s", "reply"),
            "graders": [_describe_outcome(one, trial) for one in trial.outcomes],
        }


def _describe_inputs(plan: Plan) -> dict[tuple[str, str], dict[str, str | None]]:
    """Describe the stratum and the cluster of each input that has one."""
    found: dict[tuple[str, str], dict[str, str | None]] = {}
    for one in plan.experiments:
        for name, values in (("stratum", one.strata), ("cluster", one.clusters)):
            for input_id, value in zip(one.input_ids, values, strict=False):
                found.setdefault((one.name, input_id), {})[name] = value
    return found


def _describe_outcome(outcome: Outcome, trial: Trial) -> dict[str, Any]:
    result = outcome.result
    # Where there was no reply, every criterion would only repeat the error.
    repeats = bool(trial.error) and result.explanation == trial.error
    return {
        "name": outcome.criterion,
        **read_fields(result, "passed", "score", "reason"),
        "check": outcome.postcondition,
        "explanation": None if repeats else result.explanation or None,
        "evidence": result.evidence or None,
    }
