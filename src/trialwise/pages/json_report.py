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
        "decision": None if decision is None else decision.value,
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
                "kind": line.kind.value,
                "name": line.name,
                "statement": line.statement or line.summary,
                **{name: _make_plain(value) for name, value in line.facts.items()},
            }
        yield from _list_trials(record)


def _describe_run(record: RunRecord, location: str | None) -> dict[str, Any]:
    verdict, plan = record.verdict, record.plan
    return {
        "type": "run",
        "schema": ROWS_SCHEMA,
        "version": __version__,
        "contract": plan.contract,
        "run_id": record.run_id,
        "record": location,
        "decision": None if verdict.decision is None else verdict.decision.value,
        "started_at": None if verdict.started_at is None else verdict.started_at.isoformat(),
        "seconds": verdict.spending.seconds,
        "seed": plan.seed,
        "trials": len(record.trials),
        "criteria": [one.criterion for one in plan.criteria],
        "factors": dict(plan.factors),
        "covariates": dict(plan.covariates),
        "stop": verdict.stop.value,
    }


def _list_trials(record: RunRecord) -> Iterator[dict[str, Any]]:
    facts = _describe_inputs(record.plan)
    repetitions: dict[tuple[str, str], int] = {}
    for trial in record.trials:
        place = trial.experiment, trial.input_id
        repetitions[place] = repetitions.get(place, 0) + 1
        asked, usage = record.texts.find_input(trial), trial.usage
        yield {
            "type": "trial",
            "run_id": record.run_id,
            "sampling": trial.experiment,
            "trial": trial.index,
            "input_id": trial.input_id,
            "repetition": repetitions[place],
            **facts.get(place, {}),
            "asked": None if asked is None else asked.value,
            "expected": None if asked is None else asked.expected,
            "metadata": None if asked is None else asked.metadata,
            "seed": trial.seed,
            "passed": trial.passed,
            "error_class": trial.error_class.value,
            "error": trial.error or None,
            "latency_s": trial.latency_s,
            "input_tokens": None if usage is None else usage.input_tokens,
            "output_tokens": None if usage is None else usage.output_tokens,
            "cost_usd": trial.cost_usd,
            "attempts": trial.attempts,
            "started_s": trial.started_s,
            "reply": trial.reply,
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
        "passed": result.passed,
        "score": result.score,
        "reason": None if result.reason is None else result.reason.value,
        "check": outcome.postcondition,
        "explanation": None if repeats else result.explanation or None,
        "evidence": result.evidence or None,
    }


def _make_plain(value: Any) -> Any:
    """A closed set is text to JSON."""
    return str(value) if isinstance(value, str) else value
