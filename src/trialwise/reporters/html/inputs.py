"""Inputs against criteria: where the failures are, the worst input first."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from trialwise.documents.numbers import as_count, as_observed, as_seconds
from trialwise.model.plan import ExperimentPlan
from trialwise.model.run import RunRecord
from trialwise.model.trial import Trial
from trialwise.reporters.html.parts import Outline, Room, details, scrolling
from trialwise.reporters.page.markup import Markup, element, joined, shortened

__all__ = ["inputs_section"]

#: Inputs shown at once; further ones take a click, and what is left is counted.
FIRST, MOST = 20, 120
_NAME = 80
#: Steps of the colour, from no failure to nothing but failures.
_STEPS = (0.0, 0.02, 0.10, 0.25, 0.50, 0.75)


@dataclass(slots=True)
class InputRow:
    """The counts of one input."""

    input_id: str
    trials: int = 0
    passed: dict[str, int] = field(default_factory=dict)
    latencies: list[float] = field(default_factory=list)
    usd: float = 0.0
    has_cost: bool = False

    def add(self, trial: Trial) -> None:
        """Count one trial."""
        self.trials += 1
        for outcome in trial.outcomes:
            passed = self.passed.get(outcome.criterion, 0)
            self.passed[outcome.criterion] = passed + outcome.passed
        if trial.latency_s is not None:
            self.latencies.append(trial.latency_s)
        if trial.cost_usd is not None:
            self.usd += trial.cost_usd
            self.has_cost = True

    def rate(self, criterion: str) -> float:
        """Of the trials of this input."""
        return self.passed.get(criterion, 0) / self.trials


def inputs_section(record: RunRecord, outline: Outline, room: Room) -> Markup:
    """The heat map of every experiment, or nothing without trials."""
    maps = [made for one in record.plan.experiments if (made := _heat_map(record, one, room))]
    if not maps:
        return Markup("")
    note = (
        "Rate and failures of each input on all its trials, also those run after a criterion was "
        "decided. Worst first; the stronger the colour, the worse."
    )
    return outline.section("Inputs", *maps, note=note)


def _heat_map(record: RunRecord, experiment: ExperimentPlan, room: Room) -> Markup:
    criteria = [one.criterion for one in record.plan.criteria_of(experiment.name)]
    rows = _rows(record.trials, experiment.name)
    if not rows or not criteria:
        return Markup("")
    rows.sort(key=lambda row: (min(map(row.rate, criteria)), sum(map(row.rate, criteria))))
    caption = f"Inputs of {experiment.identifier} by criterion"
    shown = _table(caption, criteria, rows[:FIRST])
    most = max(FIRST, min(MOST, room.cells // len(criteria)))
    more = rows[FIRST:most]
    untried = len(experiment.input_ids) - len(rows)
    notes = []
    if len(rows) > most:
        worst = as_observed(_worst(rows[most:], criteria))
        left = as_count(len(rows) - most, "further input")
        notes.append(f"{left} not listed; none of them below {worst}.")
    if untried > 0:
        notes.append(f"{as_count(untried, 'input')} not tried.")
    further = None
    if more:
        said = f"{as_count(len(more), 'more input')}, from {as_observed(_worst(more, criteria))}"
        further = details(said, _table(f"{caption}, continued", criteria, more))
    return joined(
        [
            shown,
            further,
            *(element("p", note, class_="note") for note in notes),
        ]
    )


def _worst(rows: Sequence[InputRow], criteria: Sequence[str]) -> float:
    return min(min(map(row.rate, criteria)) for row in rows)


def _rows(trials: Sequence[Trial], experiment: str) -> list[InputRow]:
    rows: dict[str, InputRow] = {}
    for trial in trials:
        if trial.experiment == experiment:
            rows.setdefault(trial.input_id, InputRow(trial.input_id)).add(trial)
    return list(rows.values())


def _table(caption: str, criteria: Sequence[str], rows: Sequence[InputRow]) -> Markup:
    times, costs = any(row.latencies for row in rows), any(row.has_cost for row in rows)
    heads = [element("th", "input", scope="col")]
    heads += [
        element("th", element("bdi", shortened(name, _NAME)), scope="col", class_="num")
        for name in criteria
    ]
    heads.append(element("th", "trials", scope="col", class_="num"))
    if times:
        heads.append(element("th", "median latency", scope="col", class_="num"))
    if costs:
        heads.append(element("th", "cost", scope="col", class_="num"))
    # One number of places down the column: two digits of the largest.
    most = max(row.usd for row in rows)
    places = max(2, 1 - math.floor(math.log10(most))) if most > 0 else 2
    body = [
        element(
            "tr",
            element("th", element("bdi", shortened(row.input_id, _NAME)), scope="row"),
            *_cells(row, criteria, times=times, places=places if costs else None),
        )
        for row in rows
    ]
    made = element(
        "table",
        element("caption", caption, class_="heard"),
        element("thead", element("tr", *heads)),
        element("tbody", *body),
        class_="heat",
    )
    return scrolling(caption, made)


def _cells(
    row: InputRow, criteria: Sequence[str], *, times: bool, places: int | None
) -> Iterator[Markup]:
    for name in criteria:
        rate, passed = row.rate(name), row.passed.get(name, 0)
        failed = row.trials - passed
        yield element(
            "td",
            as_observed(rate),
            element("small", f"{failed:,} failed" if failed else ""),
            class_=f"num step{_step(1 - rate)} hit",
            title=f"{passed:,} of {as_count(row.trials, 'trial')} passed",
        )
    yield element("td", f"{row.trials:,}", class_="num")
    if times:
        median = as_seconds(round(statistics.median(row.latencies), 3)) if row.latencies else "–"
        yield element("td", median, class_="num")
    if places is not None:
        yield element("td", f"${row.usd:,.{places}f}" if row.has_cost else "–", class_="num")


def _step(failed: float) -> int:
    """How dark a cell is.

    >>> [_step(share) for share in (0.0, 0.01, 0.1, 1.0)]
    [0, 1, 2, 5]
    """
    return sum(failed > bound for bound in _STEPS[:-1]) if failed < 0.75 else len(_STEPS) - 1
