"""Runs as tables for analysis: which rows there are, and what each column is called and holds.

What is not known is missing, never 0; what a service said stays text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from importlib import import_module
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from trialwise.errors import TrialwiseError
from trialwise.model import Finding, RunRecord, Trial
from trialwise.pages.finding_facts import pick_tally
from trialwise.validation import require_choice

if TYPE_CHECKING:
    from trialwise.runtime.answers import Comparison


RunFrame: TypeAlias = Literal["trials", "outcomes", "findings", "inputs"]
ComparisonFrame: TypeAlias = Literal["pairs", "findings"]
Library: TypeAlias = Literal["pandas", "polars"]

LIBRARIES: tuple[Library, ...] = ("pandas", "polars")


def run_frame(
    records: Iterable[RunRecord], kind: RunFrame = "trials", *, library: Library | None = None
) -> Any:
    """Runs as one table.

    Args:
        records: One or several runs; the columns name the run and the contract.
        kind: "trials", a row for each; "outcomes", a row for each trial and criterion; "findings",
            a row for each criterion (and input, where each is decided); "inputs", a row for each
            input and criterion.
        library: "pandas" or "polars"; None for pandas where it is installed, else polars.

    Raises:
        FrameLibraryMissing: Neither is installed, or not the one asked for.
    """
    require_choice("kind", kind, tuple(_TABLES))
    make, columns = _TABLES[kind]
    several, extra = list(records), {}
    if kind == "trials":  # a truth value for each criterion, under a name with a prefix
        criteria = [one for record in several for one in record.plan.criteria]
        extra = dict.fromkeys((f"passed.{one.criterion}" for one in criteria), bool)
    rows = [
        {"run_id": record.run_id, "contract": record.plan.contract, **row}
        for record in several
        for row in make(record)
    ]
    return _make_frame({**_HEAD, **columns, **extra}, rows, library)


def comparison_frame(
    comparison: Comparison, kind: ComparisonFrame = "pairs", *, library: Library | None = None
) -> Any:
    """Return a comparison as a table.

    Args:
        comparison: Of two runs.
        kind: "pairs", a row for each pair and criterion, or "findings", a row for each criterion.
        library: As of `run_frame`.
    """
    require_choice("kind", kind, ("pairs", "findings"))
    if kind == "pairs":
        return _make_frame(_PAIR, list(_pairs(comparison)), library)
    rows = [_row(_CONTRAST, finding) for finding in comparison.findings]
    return _make_frame(_CONTRAST, rows, library)


#: What a column holds, by its name; the others hold text.
_TYPES: dict[type, str] = {
    bool: "control_passed candidate_passed",
    int: (
        "index repetition seed input_tokens output_tokens setup_tokens attempts exit_code trials "
        "cutoff planned_trials decided_at later_trials later_passed control_index candidate_index "
        "both only_control only_candidate neither"
    ),
    float: (
        "latency_s cost_usd setup_s setup_cost_usd started_s rate interval_low interval_high "
        "interval_confidence "
        "required_rate p_value alpha control_latency_s candidate_latency_s control_cost_usd "
        "candidate_cost_usd control_rate candidate_rate difference adjusted_p_value"
    ),
}
_TYPE_OF = {name: kind for kind, names in _TYPES.items() for name in names.split()}


def _columns(names: str, *, passed: type = bool) -> dict[str, type]:
    """Return the columns of a table; `passed` is a truth value or a count."""
    types = {**_TYPE_OF, "passed": passed}
    return {name: types.get(name, str) for name in names.split()}


_HEAD = _columns("run_id contract")
_TRIAL = _columns(
    "experiment index input_id repetition seed passed error_class error latency_s input_tokens "
    "output_tokens cost_usd setup_s setup_tokens setup_cost_usd attempts started_s exit_code "
    "asked expected metadata cluster reply"
)
_OUTCOME = _columns(
    "experiment index input_id repetition criterion passed reason postcondition explanation "
    "evidence"
)
_FINDING = _columns(
    "criterion input_id procedure decision label trials passed rate interval_low interval_high "
    "interval_confidence interval_method required_rate cutoff p_value alpha planned_trials stop "
    "decided_at later_trials later_passed withdrawn statement",
    passed=int,
)
_INPUT = _columns(
    "experiment input_id stratum cluster asked expected metadata criterion trials passed rate",
    passed=int,
)
_PAIR = _columns(
    "arm criterion experiment input_id control_index candidate_index control_passed "
    "candidate_passed control_latency_s candidate_latency_s control_cost_usd candidate_cost_usd"
)
_CONTRAST = _columns(
    "arm against criterion contrast decision decision_rule control_rate candidate_rate difference "
    "interval_low interval_high both only_control only_candidate neither p_value "
    "adjusted_p_value statement"
)


#: Where a column comes from that is not an attribute of its own name.
_PATHS = {
    "input_tokens": "usage.input_tokens",
    "output_tokens": "usage.output_tokens",
    "setup_tokens": "setup_usage.total_tokens",
    "interval_low": "interval.low",
    "interval_high": "interval.high",
    "interval_confidence": "interval.confidence",
    "interval_method": "interval.method",
    "required_rate": "threshold.required_rate",
    "control_rate": "control.rate",
    "candidate_rate": "candidate.rate",
    "both": "pairs.both",
    "only_control": "pairs.only_a",
    "only_candidate": "pairs.only_b",
    "neither": "pairs.neither",
}


def _row(columns: Iterable[str], *sources: object, **special: Any) -> dict[str, Any]:
    """Return the values of a row: the given ones, then attributes of the sources."""
    row = dict(special)
    for name in columns:
        if name not in special:
            first, *rest = _PATHS.get(name, name).split(".")
            value = next(getattr(one, first) for one in sources if hasattr(one, first))
            for attribute in rest:
                value = None if value is None else getattr(value, attribute)
            row[name] = value.value if isinstance(value, Enum) else value
    return row


def _trials(record: RunRecord) -> Iterator[dict[str, Any]]:
    clusters = {
        (one.name, name): cluster
        for one in record.plan.experiments
        for name, cluster in zip(one.input_ids, one.clusters, strict=False)
    }
    for trial, repetition in _count_repetitions(record.trials):
        row = _row(
            _TRIAL,
            trial,
            repetition=repetition,
            # An empty text would count as an error where somebody counts those that are there.
            error=trial.error or None,
            cluster=clusters.get((trial.experiment, trial.input_id)),
            **_describe_input(record, trial.experiment, trial.input_id),
        )
        yield row | {f"passed.{one.criterion}": one.passed for one in trial.outcomes}


def _outcomes(record: RunRecord) -> Iterator[dict[str, Any]]:
    for trial, repetition in _count_repetitions(record.trials):
        for one in trial.outcomes:
            yield _row(
                _OUTCOME,
                one,
                one.result,
                trial,
                repetition=repetition,
                explanation=one.result.explanation or None,
                evidence=one.result.evidence or None,
            )


def _describe_input(record: RunRecord, experiment: str, input_id: str) -> dict[str, str | None]:
    """What was asked and expected, where the run keeps its inputs."""
    asked = record.texts.inputs.get((experiment, input_id))
    if asked is None:
        return dict.fromkeys(("asked", "expected", "metadata"))
    return {"asked": asked.value, "expected": asked.expected, "metadata": asked.metadata}


def _count_repetitions(trials: Sequence[Trial]) -> Iterator[tuple[Trial, int]]:
    """Count every trial with how often its input came before."""
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
    return _row(
        _FINDING,
        pick_tally(finding),
        finding,
        label=finding.label or None,
        later_trials=None if finding.decided_at is None else finding.later.trials,
        later_passed=None if finding.decided_at is None else finding.later.passed,
        p_value=None if finding.p_value is None else finding.p_value.value,
    )


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
        nothing = (None,) * len(experiment.input_ids)
        known = experiment.strata or nothing, experiment.clusters or nothing
        for input_id, stratum, cluster in zip(experiment.input_ids, *known, strict=True):
            for criterion in record.plan.criteria_of(experiment.name):
                key = experiment.name, input_id, criterion.criterion
                yield _row(
                    _INPUT,
                    criterion,
                    experiment=experiment.name,
                    input_id=input_id,
                    stratum=stratum,
                    cluster=cluster,
                    trials=counts[key],
                    passed=passes[key],
                    # Without a trial there is no rate: 0 would be the worst one.
                    rate=passes[key] / counts[key] if counts[key] else None,
                    **_describe_input(record, experiment.name, input_id),
                )


_TABLES: dict[str, tuple[Callable[[RunRecord], Iterator[dict[str, Any]]], dict[str, type]]] = {
    "trials": (_trials, _TRIAL),
    "outcomes": (_outcomes, _OUTCOME),
    "findings": (_findings, _FINDING),
    "inputs": (_inputs, _INPUT),
}


def _pairs(comparison: Comparison) -> Iterator[dict[str, Any]]:
    from trialwise.procedures.comparing.pairing import pair_trials

    control, *candidates = comparison.arms
    for arm, name in product(candidates, [one.name for one in control.record.plan.experiments]):
        if name not in {one.name for one in arm.record.plan.experiments}:
            continue
        for pair in pair_trials(control, arm, name).pairs:
            ours, theirs = pair.control, pair.candidate
            sides = {"control": ours, "candidate": theirs}
            figures = {
                f"{side}_{name}": getattr(trial, name)
                for side, trial in sides.items()
                for name in ("index", "latency_s", "cost_usd")
            }
            passed = {one.criterion: one.passed for one in theirs.outcomes}
            for one in ours.outcomes:
                yield _row(
                    _PAIR,
                    one,
                    ours,
                    **figures,
                    arm=arm.label,
                    control_passed=one.passed,
                    candidate_passed=passed.get(one.criterion),
                )


class FrameLibraryMissing(TrialwiseError, ImportError):
    """A table was asked for, and the library that holds it is not installed."""


def _make_frame(
    columns: Mapping[str, type], rows: Sequence[Mapping[str, Any]], library: Library | None
) -> Any:
    """Make a data frame; what a row does not hold is missing.

    Both libraries must give the same one: an empty column has its type too, and whole numbers do
    not become fractions where some are missing.

    Args:
        columns: Their names and types.
        rows: What it holds.
        library: Whose; None for pandas where it is installed, else polars.

    Raises:
        FrameLibraryMissing: Neither is installed, or not the one asked for.
    """
    if library is not None:
        require_choice("library", library, LIBRARIES)
    for name in LIBRARIES if library is None else (library,):
        try:
            module = import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:  # it is there, and broken
                raise
            continue
        data = {one: [row.get(one) for row in rows] for one in columns}
        if name == "polars":
            return module.DataFrame(data, schema=dict(columns), strict=False)
        return module.DataFrame(
            {
                one: module.Series(values, dtype=_pandas_type(columns[one], values))
                for one, values in data.items()
            }
        )
    raise FrameLibraryMissing(
        f"a table needs {library or 'pandas or polars'}, which is not installed. Install it (pip "
        f"install {library or 'pandas'}), or take the plain values of to_dict()"
    )


def _pandas_type(kind: type, values: Sequence[Any]) -> str:
    """Plain types where nothing is missing; whole numbers never become fractions for a gap."""
    gaps = any(value is None for value in values)
    if kind is int:
        return "Int64" if gaps else "int64"
    if kind is bool:
        return "boolean" if gaps else "bool"
    return "float64" if kind is float else "string"
