"""Runs, results and trials as rows of plain values, one JSON object a line.

The format `trialwise.results/1` has three types of rows, in this order for each run: one `run`, one
`result` for everything that was decided or reported, and one `trial` for each trial in the order of
inputs. A trial holds a list of what each criterion says of it, so that the trials of a run are
[trial][grader]. `trialwise score` reads the file back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trialwise import __version__
from trialwise.model.plan import Plan
from trialwise.model.run import RunRecord
from trialwise.model.trial import Outcome, Trial
from trialwise.pages.results import describe_run
from trialwise.pages.suite_totals import require_runs

#: Its number grows when a reader of the earlier form would misread the later one.
SCHEMA = "trialwise.results/1"


def list_rows(
    records: Sequence[RunRecord], *, locations: Mapping[str, str] | None = None
) -> Iterator[dict[str, Any]]:
    """List the rows of several runs, run by run.

    Args:
        records: One run for each contract.
        locations: Where each run's record is kept, by run id.
    """
    for record in require_runs(records):
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
        "schema": SCHEMA,
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
