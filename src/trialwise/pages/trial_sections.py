"""Trials to read, and every input against every criterion.

Failing trials are shown as far as there is room, and some passing ones. Where there are more
failures than room, every kind of failure and every input gets its turn before any gets a second
one, and the rest is counted. Where trials have traces, the worst trace comes first, unfolded.
"""

from __future__ import annotations

import math
import statistics
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, islice
from typing import Any, TypeAlias

from trialwise.documents import blocks
from trialwise.documents.numbers import as_count, as_duration, as_observed, as_seconds
from trialwise.documents.printable import cut_middle, estimate_size
from trialwise.model.metrics import RunStability
from trialwise.model.plan import ExperimentPlan
from trialwise.model.run import RunRecord, Trials
from trialwise.model.trial import Trial
from trialwise.model.trial_table import TrialTable
from trialwise.pages.failure_groups import NOTE
from trialwise.pages.finding_facts import REASONS
from trialwise.pages.trial_cards import BRIEF, FULL, NAME, SHORT, build_trial_card
from trialwise.procedures.criterion_rows import Rows

#: Passing trials shown beside the failing ones, spread over the run, and their part of the room.
PASSING, _THEIR_PART = 6, 1 / 8

Drawn: TypeAlias = tuple[Trial, blocks.Card]
Draw: TypeAlias = Callable[..., blocks.Card]
"""Builds the card of a trial."""


def build_trials_section(
    record: RunRecord, most: int, size: int, reasons: Sequence[blocks.Block] = ()
) -> blocks.Section | None:
    """Return why trials failed, the failing ones with a filter, and a sample of the passing ones.

    Args:
        record: The run.
        most: How many failing trials may be shown.
        size: How many bytes they may take.
        reasons: What they failed for, which stands before them.
    """
    if not record.trials:
        return None
    order = {one.criterion: place for place, one in enumerate(record.plan.criteria)}
    several = len(record.plan.experiments) > 1
    draw = partial(build_trial_card, order=order, texts=record.texts, several=several)
    first = _draw_worst(record, draw, size)
    failing = record.trials.failures
    # What passed is chosen first, in its fixed part of the room: beside failures alone nobody sees
    # what is different about them.
    passing = tuple(_list_passing(record.trials, first, draw, int(_THEIR_PART * size)))
    left = size - estimate_size(passing)
    failures = _list_failures(record.trials, first, draw, most, left, criteria=list(order))
    total = as_count(len(record.trials), "trial")
    note = f"{failing:,} of {total} failed a criterion or more."
    if only := _count_only_reported(record):
        note += f" {only:,} of them failed nothing that decides, but a criterion that only reports."
    notes = (note, NOTE if reasons else "", WORST if first else "")
    return blocks.Section(
        heading="Failing trials",
        blocks=(*reasons, *failures, *passing),
        note=" ".join(filter(None, notes)),
    )


def _count_only_reported(record: RunRecord) -> int:
    """Count the failing trials that passed every criterion that decides."""
    # A reader who counts these against the verdict would find that they do not add up.
    reported = record.plan.reported
    if not reported:
        return 0
    return sum(
        all(one.passed for one in trial.outcomes if one.criterion not in reported)
        for table in record.trials.tables
        for trial in table.sketches(table.failing())
    )


def _list_failures(
    trials: Trials,
    first: Drawn | None,
    draw: Draw,
    most: int,
    size: int,
    *,
    criteria: Sequence[str],
) -> Iterator[blocks.Block]:
    """List the worst trace and then, as far as there is room, the failing trials in their order."""
    failing = trials.failures
    if not failing:
        yield blocks.Prose(paragraphs=("No trial failed.",))
    lead = [] if first is None or first[0].passed else [first]
    if first is not None and not lead:
        # It passed everything, so that no filter is about it.
        yield blocks.Cards(cards=(first[1],))
    if not failing:
        return
    room = size - (0 if first is None else estimate_size(first[1]))
    others = (one for one in _take_turns(trials) if first is None or _name(one) != _name(first[0]))
    chosen = _fit_cards(others, draw, most - len(lead), room)
    chosen.sort(key=lambda pair: _name(pair[0]))
    if chosen and first is None:  # one example is seen without a click
        chosen[0] = chosen[0][0], replace(chosen[0][1], is_open=True)
    chosen = [*lead, *chosen]
    yield blocks.Cards(
        cards=tuple(card for _, card in chosen),
        choices=_list_choices(criteria, [trial for trial, _ in chosen]),
        is_searched=len(chosen) > 1,
    )
    if len(chosen) < failing:
        said = (
            f"{len(chosen):,} of {failing:,} failing trials are shown, chosen so that every "
            "input and every kind of failure has its turn; the run's journal holds them all."
        )
        yield blocks.Prose(paragraphs=(said,), tone="quiet")


def _name(trial: Trial) -> tuple[str, int]:
    """Return what no two trials of a run have in common."""
    return trial.experiment, trial.index


def _take_turns(trials: Trials) -> Iterator[Trial]:
    """Failures in an order in which every kind and input has its turn."""
    # Their places and not the trials: there may be a million of them, and few are shown.
    kinds: dict[tuple[object, ...], tuple[TrialTable, array[int]]] = {}
    for table in trials.tables:
        for place in table.failing():
            trial = table[place]
            first = next(outcome for outcome in trial.outcomes if not outcome.passed)
            kind = (trial.input_id, first.criterion, first.result.reason, first.postcondition)
            kinds.setdefault(kind, (table, array("I")))[1].append(place)
    # Round after round, one of each kind: a thousand equal failures leave room for the one that
    # differs.
    for turn in count():
        left = [(table, places) for table, places in kinds.values() if turn < len(places)]
        if not left:
            return
        yield from (table[places[turn]] for table, places in left)


def _fit_cards(trials: Iterable[Trial], draw: Draw, most: int, size: int) -> list[Drawn]:
    cards: list[Drawn] = []
    for trial in islice(trials, most):
        card = draw(trial)
        # Estimated and not rendered: pages know no renderer, and rendering twice would take as long
        # again.
        size -= estimate_size(card)
        if size < 0:
            break
        cards.append((trial, card))
    return cards


def _list_choices(criteria: Sequence[str], shown: Sequence[Trial]) -> tuple[blocks.Choice, ...]:
    """By criterion and by reason, where there is more than one of either."""
    outcomes = [one for trial in shown for one in trial.outcomes if not one.passed]
    failed = {one.criterion for one in outcomes}
    reasons = {str(one.result.reason) for one in outcomes}
    # A filter with one choice filters nothing.
    if len(failed) < 2 and len(reasons) < 2:
        return ()
    names = tuple(
        (str(k), cut_middle(name, NAME)) for k, name in enumerate(criteria) if name in failed
    )
    why = tuple((reason, said) for reason, said in REASONS.items() if reason in reasons)
    return tuple(
        blocks.Choice(
            name=name, label=name.capitalize(), everything=f"all {several}", options=options
        )
        for name, several, options in (("criterion", "criteria", names), ("reason", "reasons", why))
    )


def _list_passing(
    trials: Trials, first: Drawn | None, draw: Draw, size: int
) -> Iterator[blocks.Block]:
    answered: list[tuple[TrialTable, array[int]]] = []
    for table in trials.tables:
        fails = table.fails
        places = array("I", (place for place in table.answered() if not fails[place]))
        if first is not None and first[0].experiment == table.experiment:
            worst = table.find(first[0].index)
            places = array("I", (place for place in places if place != worst))
        answered.append((table, places))
    total = sum(len(places) for _, places in answered)
    shown = min(PASSING, total)
    spread = (_pick_trial(answered, k * total // shown) for k in range(shown))
    chosen = _fit_cards(spread, draw, shown, size)
    if chosen:
        yield blocks.Details(
            summary=f"{len(chosen):,} of {total:,} passing trials, for comparison",
            blocks=(blocks.Cards(cards=tuple(card for _, card in chosen)),),
        )


def _pick_trial(found: Sequence[tuple[TrialTable, Sequence[int]]], number: int) -> Trial:
    """Return one of the trials at some places, counted over all tables."""
    for table, places in found:
        if number < len(places):
            return table[places[number]]
        number -= len(places)
    raise IndexError(number)


# --- The trace that a page shows first: which one it is, and what it was chosen by ----------------

WORST = (
    "The worst trace comes first: the one that failed the most criteria; among equals the one with "
    "the lowest weakest stability score, where stability was measured; then the most failing "
    "calls, the longest session, the first started. It shows where to look, not what is usual."
)
"""The order, as the page says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """A trial, and what makes its trace the worst."""

    trial: Trial
    weakest_score: float | None
    """The weakest score of its session; None where no stability was measured."""

    @property
    def reasons(self) -> Iterator[str]:
        """What it was chosen by, in this order."""
        outcomes = [one.passed for one in self.trial.outcomes]
        criteria = "criterion" if len(outcomes) == 1 else "criteria"
        yield f"{outcomes.count(False)} of {len(outcomes)} {criteria} failed"
        if self.weakest_score is not None:
            yield f"weakest stability score {self.weakest_score:.3f}"
        calls = as_count(_count_calls(self.trial), "call")
        yield f"{_count_failed_calls(self.trial.tool_calls)} of {calls} failed"
        if self.trial.latency_s is not None:
            yield f"took {as_duration(self.trial.latency_s)}"


def _count_failed_calls(calls: Iterable[Mapping[str, Any]]) -> int:
    """Count how many calls are known to have ended in an error.

    By that key alone: of all trials of a run, reading whole calls would take long.

    >>> _count_failed_calls([{"name": "a", "error": "no index"}, {"name": "a", "error": False}, {}])
    1
    """
    return sum(call.get("error") not in (None, False) for call in calls)


def find_worst_trace(record: RunRecord) -> Worst | None:
    """Find the worst of the trials that have a trace; None where none has one.

    Args:
        record: The run.
    """
    tables = record.trials.tables
    if not any(one.traced(calls=True) for one in tables):
        return None
    traced = (one[place] for one in tables for place in one.traced())
    scores = _map_stability(record)

    def rank(trial: Trial) -> tuple[float, ...]:
        run = scores.get((trial.experiment, trial.index))
        return (
            sum(not one.passed for one in trial.outcomes),
            # Without a measured session nothing speaks against its stability.
            0.0 if run is None else 1 - run.weakest_score,
            _count_failed_calls(trial.tool_calls),
            trial.latency_s or 0.0,
        )

    worst = max(traced, key=rank)
    run = scores.get((worst.experiment, worst.index))
    return Worst(trial=worst, weakest_score=None if run is None else run.weakest_score)


def _map_stability(record: RunRecord) -> Mapping[tuple[str, int], RunStability]:
    """Return the sub-scores of every trial whose session was measured, by experiment and index."""
    return {
        (gate.experiment, run.trial): run
        for gate in record.verdict.gates
        for run in gate.evidence.sessions
    }


def _count_calls(trial: Trial) -> int:
    """As many as were made, also where the record keeps none of them."""
    if trial.tool_calls or trial.shape is None:
        return len(trial.tool_calls)
    return trial.shape.total_calls


def _draw_worst(record: RunRecord, draw: Draw, size: int) -> Drawn | None:
    """Draw the worst trace, unfolded and as whole as there is room; None where there is none."""
    worst = find_worst_trace(record)
    if worst is None:
        return None
    why = f"The worst trace of this run: {', '.join(worst.reasons)}."
    cards = (draw(worst.trial, extent=extent, why=why) for extent in (FULL, SHORT, BRIEF))
    return next(((worst.trial, card) for card in cards if estimate_size(card) <= size), None)


# --- Inputs against criteria: where the failures are, the worst input first -----------------------

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


def build_inputs_section(record: RunRecord, cells: int) -> blocks.Section | None:
    """Build a heat map for every experiment, or None without trials.

    Args:
        record: The run.
        cells: How many cells a heat map may have.
    """
    shown = [block for one in record.plan.experiments for block in _list_blocks(record, one, cells)]
    if not shown:
        return None
    return blocks.Section(
        heading="Inputs",
        blocks=tuple(shown),
        note=(
            "Rate and failures of each input on all its trials, also those run after a criterion "
            "was decided. Worst first; the stronger the colour, the worse."
        ),
    )


def _list_blocks(
    record: RunRecord, experiment: ExperimentPlan, cells: int
) -> Iterator[blocks.Block]:
    criteria = [one.criterion for one in record.plan.criteria_of(experiment.name)]
    rows = _count_inputs(record.trials.of_experiment(experiment.name))
    if not rows or not criteria:
        return
    # An input that fails one criterion altogether is worse than one that fails all a little.
    rows.sort(key=lambda row: (min(map(row.rate, criteria)), sum(map(row.rate, criteria))))
    most = max(FIRST, min(MOST, cells // len(criteria)))
    heading = f"Inputs of {experiment.identifier} by criterion"
    yield _build_table(heading, criteria, rows[:FIRST])
    more = rows[FIRST:most]
    if more:
        count = as_count(len(more), "more input")
        yield blocks.Details(
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
        yield blocks.Prose(paragraphs=tuple(notes), tone="quiet")


def _find_worst(rows: Sequence[InputCounts], criteria: Sequence[str]) -> str:
    return as_observed(min(min(map(row.rate, criteria)) for row in rows))


def _count_inputs(trials: TrialTable) -> list[InputCounts]:
    rows = [InputCounts(name) for name in trials.names]
    by_name = dict(zip(trials.names, rows, strict=True))
    for place, criterion in enumerate(trials.criteria):
        for name, (passed, tried) in Rows.of(trials, place).tally_inputs().items():
            by_name[name].trials = tried
            by_name[name].passed[criterion] = passed
    for number, latency_s in zip(trials.inputs, trials.all_latencies, strict=True):
        # A trial that never reached the service has no latency, which a column holds as NaN.
        if not math.isnan(latency_s):
            rows[number].latencies.append(latency_s)
    if trials.has_expenses:
        for trial in trials.sketches():
            by_name[trial.input_id].add_cost(trial.cost_usd)
    return rows


def _build_table(
    heading: str, criteria: Sequence[str], rows: Sequence[InputCounts]
) -> blocks.Table:
    times = any(row.latencies for row in rows)
    most = max((row.usd for row in rows if row.usd is not None), default=None)
    # One number of places down the column: two digits of the largest.
    places = max(2, 1 - math.floor(math.log10(most))) if most else 2

    def write_median(row: InputCounts) -> str:
        return as_seconds(round(statistics.median(row.latencies), 3)) if row.latencies else "–"

    def write_cost(row: InputCounts) -> str:
        return "–" if row.usd is None else f"${row.usd:,.{places}f}"

    optional: list[blocks.Column[InputCounts]] = [("median latency", write_median)] if times else []
    optional += [("cost", write_cost)] if most is not None else []
    return blocks.build_table(
        heading,
        rows,
        ("input", lambda row: blocks.Name(cut_middle(row.input_id, _NAME))),
        *(
            (blocks.Name(cut_middle(name, _NAME)), partial(_write_rate, criterion=name))
            for name in criteria
        ),
        ("trials", lambda row: f"{row.trials:,}"),
        *optional,
        is_headed=False,
    )


def _write_rate(row: InputCounts, criterion: str) -> blocks.Value:
    rate, passed = row.rate(criterion), row.passed.get(criterion, 0)
    failed = row.trials - passed
    return blocks.Value(
        text=as_observed(rate),
        note=f"{failed:,} failed" if failed else "",
        hint=f"{passed:,} of {as_count(row.trials, 'trial')} passed",
        shade=1 - rate,
    )
