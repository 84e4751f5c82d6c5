"""Inputs against criteria: where the failures are, the worst input first."""

from __future__ import annotations

import math
import statistics
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from trialwise.documents.blocks import (
    Block,
    Column,
    Details,
    Name,
    Prose,
    Section,
    Table,
    Value,
    build_table,
)
from trialwise.documents.numbers import as_count, as_observed, as_seconds
from trialwise.documents.printable import cut_middle
from trialwise.model.plan import ExperimentPlan
from trialwise.model.run import RunRecord
from trialwise.model.trial_table import TrialTable
from trialwise.procedures.criterion_rows import Rows

#: Inputs shown at once; further ones take a click, and what is left is counted.
FIRST, MOST = 20, 120
_NAME = 80


@dataclass(slots=True)
class InputCounts:
    """The counts of one input."""

    input_id: str
    trials: int = 0
    passed: dict[str, int] = field(default_factory=dict)
    latencies: array[float] = field(default_factory=lambda: array("d"))
    usd: float | None = None

    def add_cost(self, usd: float | None) -> None:
        """Count what one trial cost, where it tells."""
        if usd is not None:
            self.usd = (self.usd or 0.0) + usd

    def rate(self, criterion: str) -> float:
        """Return the share of its trials that passed a criterion."""
        return self.passed.get(criterion, 0) / self.trials


def build_inputs_section(record: RunRecord, cells: int) -> Section | None:
    """Build a heat map for every experiment, or None without trials.

    Args:
        record: The run.
        cells: How many cells a heat map may have.
    """
    blocks = [
        block for one in record.plan.experiments for block in _list_blocks(record, one, cells)
    ]
    if not blocks:
        return None
    return Section(
        heading="Inputs",
        blocks=tuple(blocks),
        note=(
            "Rate and failures of each input on all its trials, also those run after a criterion "
            "was decided. Worst first; the stronger the colour, the worse."
        ),
    )


def _list_blocks(record: RunRecord, experiment: ExperimentPlan, cells: int) -> Iterator[Block]:
    criteria = [one.criterion for one in record.plan.criteria_of(experiment.name)]
    rows = _count_inputs(record.trials.of_experiment(experiment.name))
    if not rows or not criteria:
        return
    rows.sort(key=lambda row: (min(map(row.rate, criteria)), sum(map(row.rate, criteria))))
    most = max(FIRST, min(MOST, cells // len(criteria)))
    heading = f"Inputs of {experiment.identifier} by criterion"
    yield _build_table(heading, criteria, rows[:FIRST])
    more = rows[FIRST:most]
    if more:
        count = as_count(len(more), "more input")
        yield Details(
            summary=f"{count}, from {_find_worst(more, criteria)}",
            blocks=(_build_table(f"{heading}, continued", criteria, more),),
        )
    notes = []
    if len(rows) > most:
        left = as_count(len(rows) - most, "further input")
        notes.append(f"{left} not listed; none of them below {_find_worst(rows[most:], criteria)}.")
    untried = len(experiment.input_ids) - len(rows)
    if untried > 0:
        notes.append(f"{as_count(untried, 'input')} not tried.")
    if notes:
        yield Prose(paragraphs=tuple(notes), tone="quiet")


def _find_worst(rows: Sequence[InputCounts], criteria: Sequence[str]) -> str:
    return as_observed(min(min(map(row.rate, criteria)) for row in rows))


def _count_inputs(trials: TrialTable) -> list[InputCounts]:
    rows = [InputCounts(name) for name in trials.names]
    by_name = dict(zip(trials.names, rows, strict=True))
    for place, criterion in enumerate(trials.criteria):
        for name, (passed, count) in Rows.of(trials, place).tally_inputs().items():
            by_name[name].trials = count
            by_name[name].passed[criterion] = passed
    for number, latency_s in zip(trials.inputs, trials.all_latencies, strict=True):
        if not math.isnan(latency_s):
            rows[number].latencies.append(latency_s)
    if trials.has_expenses:
        for trial in trials.sketches():
            by_name[trial.input_id].add_cost(trial.cost_usd)
    return rows


def _build_table(heading: str, criteria: Sequence[str], rows: Sequence[InputCounts]) -> Table:
    times = any(row.latencies for row in rows)
    most = max((row.usd for row in rows if row.usd is not None), default=None)
    # One number of places down the column: two digits of the largest.
    places = max(2, 1 - math.floor(math.log10(most))) if most else 2

    def write_median(row: InputCounts) -> str:
        return as_seconds(round(statistics.median(row.latencies), 3)) if row.latencies else "–"

    def write_cost(row: InputCounts) -> str:
        return "–" if row.usd is None else f"${row.usd:,.{places}f}"

    optional: list[Column[InputCounts]] = [("median latency", write_median)] if times else []
    optional += [("cost", write_cost)] if most is not None else []
    return build_table(
        heading,
        rows,
        ("input", lambda row: Name(cut_middle(row.input_id, _NAME))),
        *(
            (Name(cut_middle(name, _NAME)), partial(_write_rate, criterion=name))
            for name in criteria
        ),
        ("trials", lambda row: f"{row.trials:,}"),
        *optional,
        is_headed=False,
    )


def _write_rate(row: InputCounts, criterion: str) -> Value:
    rate, passed = row.rate(criterion), row.passed.get(criterion, 0)
    failed = row.trials - passed
    return Value(
        text=as_observed(rate),
        note=f"{failed:,} failed" if failed else "",
        hint=f"{passed:,} of {as_count(row.trials, 'trial')} passed",
        shade=1 - rate,
    )
