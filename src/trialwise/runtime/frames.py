"""Runs as tables for analysis: which rows there are, and what each column is called and holds.

What is not known is missing, never 0; what a service said stays text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from trialwise.errors import TrialwiseError
from trialwise.model.run import RunRecord
from trialwise.model.trial import Trial
from trialwise.model.verdict import Finding
from trialwise.validation import require_choice

if TYPE_CHECKING:
    from trialwise.runtime.comparing import Comparison

__all__ = [
    "LIBRARIES",
    "ComparisonFrame",
    "FrameLibraryMissing",
    "Library",
    "RunFrame",
    "Table",
    "comparison_frame",
    "run_frame",
]


RunFrame: TypeAlias = Literal["trials", "outcomes", "findings", "inputs"]


ComparisonFrame: TypeAlias = Literal["pairs", "findings"]


def run_frame(
    records: Iterable[RunRecord], kind: RunFrame = "trials", *, library: Library | None = None
) -> Any:
    """Runs as one table.

    Args:
        records: One or several runs; the columns name the run and the contract.
        kind: "trials", a row for each; "outcomes", a row for each trial and criterion; "findings",
            a row for each criterion (and input, where each is judged); "inputs", a row for each
            input and criterion.
        library: "pandas" or "polars"; None for pandas where it is installed, else polars.

    Raises:
        FrameLibraryMissing: Neither is installed, or not the one asked for.
    """
    require_choice("kind", kind, tuple(_TABLES))
    make, columns = _TABLES[kind]
    several = list(records)
    extra = _criterion_columns(several) if kind == "trials" else {}
    rows = [{**_head(record), **row} for record in several for row in make(record)]
    return make_frame(Table({**_HEAD, **columns, **extra}, rows), library)


def comparison_frame(
    comparison: Comparison, kind: ComparisonFrame = "pairs", *, library: Library | None = None
) -> Any:
    """A comparison as a table.

    Args:
        comparison: Of two runs.
        kind: "pairs", a row for each pair and criterion, or "findings", a row for each criterion.
        library: As of `run_frame`.
    """
    require_choice("kind", kind, ("pairs", "findings"))
    if kind == "pairs":
        return make_frame(Table(_PAIR, list(_pairs(comparison))), library)
    return make_frame(Table(_CONTRAST, list(_contrasts(comparison))), library)


_HEAD: dict[str, type] = {"run_id": str, "contract": str}


_TRIAL: dict[str, type] = {
    "experiment": str,
    "index": int,
    "input_id": str,
    "repetition": int,
    "seed": int,
    "passed": bool,
    "error_class": str,
    "error": str,
    "latency_s": float,
    "input_tokens": int,
    "output_tokens": int,
    "cost_usd": float,
    "setup_s": float,
    "setup_tokens": int,
    "setup_cost_usd": float,
    "attempts": int,
    "started_s": float,
    "exit_code": int,
    "reply": str,
}


_OUTCOME: dict[str, type] = {
    "experiment": str,
    "index": int,
    "input_id": str,
    "repetition": int,
    "criterion": str,
    "passed": bool,
    "reason": str,
    "postcondition": str,
    "explanation": str,
    "evidence": str,
}


_FINDING: dict[str, type] = {
    "criterion": str,
    "input_id": str,
    "procedure": str,
    "decision": str,
    "label": str,
    "trials": int,
    "passed": int,
    "rate": float,
    "interval_low": float,
    "interval_high": float,
    "interval_method": str,
    "required_rate": float,
    "cutoff": int,
    "p_value": float,
    "alpha": float,
    "planned_trials": int,
    "stop": str,
    "statement": str,
}


_INPUT: dict[str, type] = {
    "experiment": str,
    "input_id": str,
    "stratum": str,
    "criterion": str,
    "trials": int,
    "passed": int,
    "rate": float,
}


def _head(record: RunRecord) -> dict[str, str]:
    return {"run_id": record.run_id, "contract": record.plan.contract}


def _criterion_columns(records: Sequence[RunRecord]) -> dict[str, type]:
    """A truth value for each criterion; prefixed, since a criterion may be called anything."""
    names = [one.criterion for record in records for one in record.plan.criteria]
    return dict.fromkeys((f"passed.{name}" for name in names), bool)


def _trials(record: RunRecord) -> Iterator[dict[str, Any]]:
    for trial, repetition in _count_repetitions(record.trials):
        setup = trial.setup_usage
        yield {
            "experiment": trial.experiment,
            "index": trial.index,
            "input_id": trial.input_id,
            "repetition": repetition,
            "seed": trial.seed,
            "passed": trial.passed,
            "error_class": trial.error_class.value,
            "error": trial.error or None,
            "latency_s": trial.latency_s,
            "input_tokens": None if trial.usage is None else trial.usage.input_tokens,
            "output_tokens": None if trial.usage is None else trial.usage.output_tokens,
            "cost_usd": trial.cost_usd,
            "setup_s": trial.setup_s,
            "setup_tokens": None if setup is None else setup.total_tokens,
            "setup_cost_usd": trial.setup_cost_usd,
            "attempts": trial.attempts,
            "started_s": trial.started_s,
            "exit_code": trial.exit_code,
            "reply": trial.reply,
            **{f"passed.{one.criterion}": one.passed for one in trial.outcomes},
        }


def _outcomes(record: RunRecord) -> Iterator[dict[str, Any]]:
    for trial, repetition in _count_repetitions(record.trials):
        for one in trial.outcomes:
            result = one.result
            yield {
                "experiment": trial.experiment,
                "index": trial.index,
                "input_id": trial.input_id,
                "repetition": repetition,
                "criterion": one.criterion,
                "passed": result.passed,
                "reason": None if result.reason is None else result.reason.value,
                "postcondition": one.postcondition,
                "explanation": result.explanation or None,
                "evidence": result.evidence or None,
            }


def _count_repetitions(trials: Sequence[Trial]) -> Iterator[tuple[Trial, int]]:
    """Every trial with how often its input came before."""
    seen: Counter[tuple[str, str]] = Counter()
    for trial in trials:
        key = trial.experiment, trial.input_id
        yield trial, seen[key]
        seen[key] += 1


def _findings(record: RunRecord) -> Iterator[dict[str, Any]]:
    for finding in record.verdict.findings:
        yield _finding(finding)
        yield from map(_finding, finding.by_input)


def _finding(finding: Finding) -> dict[str, Any]:
    interval, threshold = finding.interval, finding.threshold
    return {
        "criterion": finding.criterion,
        "input_id": finding.input_id,
        "procedure": finding.procedure,
        "decision": None if finding.decision is None else finding.decision.value,
        "label": finding.label or None,
        "trials": finding.tally.trials,
        "passed": finding.tally.passed,
        "rate": finding.tally.rate,
        "interval_low": None if interval is None else interval.low,
        "interval_high": None if interval is None else interval.high,
        "interval_method": None if interval is None else interval.method,
        "required_rate": None if threshold is None else threshold.required_rate,
        "cutoff": finding.cutoff,
        "p_value": None if finding.p_value is None else finding.p_value.value,
        "alpha": finding.alpha,
        "planned_trials": finding.planned_trials,
        "stop": None if finding.stop is None else finding.stop.value,
        "statement": finding.statement,
    }


def _inputs(record: RunRecord) -> Iterator[dict[str, Any]]:
    """Also the inputs that no trial reached, with 0 trials and no rate."""
    counts: Counter[tuple[str, str, str]] = Counter()
    passes: Counter[tuple[str, str, str]] = Counter()
    for trial in record.trials:
        for one in trial.outcomes:
            key = trial.experiment, trial.input_id, one.criterion
            counts[key] += 1
            passes[key] += one.passed
    for experiment in record.plan.experiments:
        strata = experiment.strata or (None,) * len(experiment.input_ids)
        for input_id, stratum in zip(experiment.input_ids, strata, strict=True):
            for criterion in record.plan.criteria_of(experiment.name):
                key = experiment.name, input_id, criterion.criterion
                yield {
                    "experiment": experiment.name,
                    "input_id": input_id,
                    "stratum": stratum,
                    "criterion": criterion.criterion,
                    "trials": counts[key],
                    "passed": passes[key],
                    "rate": passes[key] / counts[key] if counts[key] else None,
                }


_TABLES: dict[str, tuple[Callable[[RunRecord], Iterator[dict[str, Any]]], dict[str, type]]] = {
    "trials": (_trials, _TRIAL),
    "outcomes": (_outcomes, _OUTCOME),
    "findings": (_findings, _FINDING),
    "inputs": (_inputs, _INPUT),
}


_PAIR: dict[str, type] = {
    "criterion": str,
    "experiment": str,
    "input_id": str,
    "reference_index": int,
    "candidate_index": int,
    "reference_passed": bool,
    "candidate_passed": bool,
    "reference_latency_s": float,
    "candidate_latency_s": float,
    "reference_cost_usd": float,
    "candidate_cost_usd": float,
}


_CONTRAST: dict[str, type] = {
    "criterion": str,
    "contrast": str,
    "decision": str,
    "decision_rule": str,
    "reference_rate": float,
    "candidate_rate": float,
    "difference": float,
    "interval_low": float,
    "interval_high": float,
    "both": int,
    "only_reference": int,
    "only_candidate": int,
    "neither": int,
    "p_value": float,
    "adjusted_p_value": float,
    "margin_bound": float,
    "statement": str,
}


def _pairs(comparison: Comparison) -> Iterator[dict[str, Any]]:
    from trialwise.procedures.comparing.trial_pairing import pair_trials

    names = {one.name for one in comparison.candidate.plan.experiments}
    for experiment in comparison.reference.plan.experiments:
        if experiment.name not in names:
            continue
        both = experiment.name, experiment.name
        for pair in pair_trials(comparison.reference, comparison.candidate, both).pairs:
            ours, theirs = pair.reference, pair.candidate
            passed = {one.criterion: one.passed for one in theirs.outcomes}
            for one in ours.outcomes:
                yield {
                    "criterion": one.criterion,
                    "experiment": experiment.name,
                    "input_id": ours.input_id,
                    "reference_index": ours.index,
                    "candidate_index": theirs.index,
                    "reference_passed": one.passed,
                    "candidate_passed": passed.get(one.criterion),
                    "reference_latency_s": ours.latency_s,
                    "candidate_latency_s": theirs.latency_s,
                    "reference_cost_usd": ours.cost_usd,
                    "candidate_cost_usd": theirs.cost_usd,
                }


def _contrasts(comparison: Comparison) -> Iterator[dict[str, Any]]:
    for finding in comparison.findings:
        pairs, interval = finding.pairs, finding.interval
        yield {
            "criterion": finding.criterion,
            "contrast": finding.contrast.value,
            "decision": finding.decision.value,
            "decision_rule": finding.decision_rule,
            "reference_rate": None if finding.reference is None else finding.reference.rate,
            "candidate_rate": None if finding.candidate is None else finding.candidate.rate,
            "difference": finding.difference,
            "interval_low": None if interval is None else interval.low,
            "interval_high": None if interval is None else interval.high,
            "both": None if pairs is None else pairs.both,
            "only_reference": None if pairs is None else pairs.only_a,
            "only_candidate": None if pairs is None else pairs.only_b,
            "neither": None if pairs is None else pairs.neither,
            "p_value": finding.p_value,
            "adjusted_p_value": finding.adjusted_p_value,
            "margin_bound": finding.margin_bound,
            "statement": finding.statement,
        }


Library: TypeAlias = Literal["pandas", "polars"]


LIBRARIES: tuple[Library, ...] = ("pandas", "polars")


class FrameLibraryMissing(TrialwiseError, ImportError):
    """A table was asked for, and the library that holds it is not installed."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows and the types of their columns; what a row does not hold is missing."""

    columns: Mapping[str, type]
    rows: Sequence[Mapping[str, Any]]

    def column(self, name: str) -> list[Any]:
        """The values of one column, None where one is missing."""
        return [row.get(name) for row in self.rows]


def make_frame(table: Table, library: Library | None) -> Any:
    """The table as a data frame.

    Args:
        table: What it holds.
        library: Whose; None for pandas where it is installed, else polars.

    Raises:
        FrameLibraryMissing: Neither is installed, or not the one asked for.
    """
    if library is not None:
        require_choice("library", library, LIBRARIES)
    for name in LIBRARIES if library is None else (library,):
        module = _import_library(name)
        if module is not None:
            return _pandas(module, table) if name == "pandas" else _polars(module, table)
    raise FrameLibraryMissing(
        f"a table needs {library or 'pandas or polars'}, which is not installed. Install it (pip "
        f"install {library or 'pandas'}), or take the plain values of to_dict()"
    )


def _import_library(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:  # it is there, and broken
            raise
        return None


def _pandas(pandas: Any, table: Table) -> Any:
    columns = {}
    for name, kind in table.columns.items():
        values = table.column(name)
        columns[name] = pandas.Series(values, dtype=_pandas_type(kind, values))
    return pandas.DataFrame(columns)


def _pandas_type(kind: type, values: Sequence[Any]) -> str:
    """Plain types where nothing is missing; whole numbers never become fractions for a gap."""
    gaps = any(value is None for value in values)
    if kind is int:
        return "Int64" if gaps else "int64"
    if kind is bool:
        return "boolean" if gaps else "bool"
    return "float64" if kind is float else "string"


def _polars(polars: Any, table: Table) -> Any:
    data = {name: table.column(name) for name in table.columns}
    return polars.DataFrame(data, schema=dict(table.columns), strict=False)
