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
from trialwise.model.plan import ExperimentPlan
from trialwise.model.run import RunRecord, Trials
from trialwise.model.trial import Trial
from trialwise.model.trial_table import TrialTable
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
    room = {"most": most, "size": size - estimate_size(passing)}
    failures = _list_failures(record.trials, first, draw, **room, names=list(order))
    total = as_count(len(record.trials), "trial")
    note = f"{failing:,} of {total} failed a criterion or more."
    if only := _count_only_reported(record):
        note += f" {only:,} of them failed nothing that decides, but a criterion that only reports."
    if reasons:
        note += " Failures that differ in nothing but numbers and quoted text are one reason."
    note += f" {WORST}" if first else ""
    shown = (*reasons, *failures, *passing)
    return blocks.Section(heading="Failing trials", blocks=shown, note=note)


def _count_only_reported(record: RunRecord) -> int:
    """Count the failing trials that passed every criterion that decides."""
    # A reader who counts these against the verdict would find that they do not add up.
    reported = record.plan.reported
    if not reported:
        return 0
    found = (one for table in record.trials.tables for one in table.sketches(table.failing()))
    deciding = ([x.passed for x in one.outcomes if x.criterion not in reported] for one in found)
    return sum(map(all, deciding))


def _list_failures(
    trials: Trials, first: Drawn | None, draw: Draw, *, most: int, size: int, names: Sequence[str]
) -> Iterator[blocks.Block]:
    """List the worst trace and then, as far as there is room, the failing trials in their order."""
    failing, lead = trials.failures, [one for one in (first,) if one and not one[0].passed]
    if not failing:
        yield blocks.Prose(paragraphs=("No trial failed.",))
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
    cards, choices = tuple(card for _, card in chosen), _list_choices(names, [x for x, _ in chosen])
    yield blocks.Cards(cards=cards, choices=choices, is_searched=len(chosen) > 1)
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
    named = ((str(k), name) for k, name in enumerate(criteria) if name in failed)
    names = tuple((place, cut_middle(name, NAME)) for place, name in named)
    why = tuple((reason, said) for reason, said in REASONS.items() if reason in reasons)
    found = (("criterion", "criteria", names), ("reason", "reasons", why))
    return tuple(
        blocks.Choice(name=x, label=x.capitalize(), everything=f"all {several}", options=options)
        for x, several, options in found
    )


def _list_passing(
    trials: Trials, first: Drawn | None, draw: Draw, size: int
) -> Iterator[blocks.Block]:
    answered: list[tuple[TrialTable, array[int]]] = []
    for table in trials.tables:
        is_its = first is not None and first[0].experiment == table.experiment
        worst = table.find(first[0].index) if first is not None and is_its else None
        places = (one for one in table.answered() if not table.fails[one] and one != worst)
        answered.append((table, array("I", places)))
    total = sum(len(places) for _, places in answered)
    # Spread over the run: the first few may all be of one input, or of a service just started.
    shown = min(PASSING, total)
    spread = (_pick_trial(answered, k * total // shown) for k in range(shown))
    chosen = _fit_cards(spread, draw, shown, size)
    if chosen:
        summary = f"{len(chosen):,} of {total:,} passing trials, for comparison"
        cards = blocks.Cards(cards=tuple(card for _, card in chosen))
        yield blocks.Details(summary=summary, blocks=(cards,))


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


def _explain_worst(trial: Trial, score: float | None) -> Iterator[str]:
    """Explain what a trial was chosen by, in this order."""
    outcomes = [one.passed for one in trial.outcomes]
    criteria = as_count(len(outcomes), "criterion", "criteria")
    yield f"{outcomes.count(False)} of {criteria} failed"
    if score is not None:
        yield f"weakest stability score {score:.3f}"
    # As many as were made, also where the record keeps none of them.
    kept, shape = len(trial.tool_calls), trial.shape
    calls = as_count(kept if kept or shape is None else shape.total_calls, "call")
    yield f"{_count_failed_calls(trial.tool_calls)} of {calls} failed"
    if trial.latency_s is not None:
        yield f"took {as_duration(trial.latency_s)}"


def _count_failed_calls(calls: Iterable[Mapping[str, Any]]) -> int:
    """Count how many calls are known to have ended in an error.

    By that key alone: of all trials of a run, reading whole calls would take long.

    >>> _count_failed_calls([{"name": "a", "error": "no index"}, {"name": "a", "error": False}, {}])
    1
    """
    return sum(call.get("error") not in (None, False) for call in calls)


def find_worst_trace(record: RunRecord) -> tuple[Trial, str] | None:
    """Find the worst of the trials that have a trace, and say why; None where none has one.

    Args:
        record: The run.
    """
    tables = record.trials.tables
    if not any(one.traced(calls=True) for one in tables):
        return None
    measured = ((one.experiment, one.evidence.sessions) for one in record.verdict.gates)
    scores = {(name, run.trial): run.weakest_score for name, runs in measured for run in runs}

    def rank(trial: Trial) -> tuple[float, ...]:
        return (
            sum(not one.passed for one in trial.outcomes),
            # Without a measured session nothing speaks against its stability.
            1 - scores.get((trial.experiment, trial.index), 1.0),
            _count_failed_calls(trial.tool_calls),
            trial.latency_s or 0.0,
        )

    worst = max((one[place] for one in tables for place in one.traced()), key=rank)
    score = scores.get((worst.experiment, worst.index))
    return worst, f"The worst trace of this run: {', '.join(_explain_worst(worst, score))}."


def _draw_worst(record: RunRecord, draw: Draw, size: int) -> Drawn | None:
    """Draw the worst trace, unfolded and as whole as there is room; None where there is none."""
    found = find_worst_trace(record)
    if found is None:
        return None
    worst, why = found
    cards = (draw(worst, extent=extent, why=why) for extent in (FULL, SHORT, BRIEF))
    return next(((worst, card) for card in cards if estimate_size(card) <= size), None)


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
    """None where no trial tells what it cost."""

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
    note = "Rate and failures of each input on all its trials, also those run after a criterion "
    note += "was decided. Worst first; the stronger the colour, the worse."
    return blocks.Section(heading="Inputs", blocks=tuple(shown), note=note)


def _list_blocks(record: RunRecord, plan: ExperimentPlan, cells: int) -> Iterator[blocks.Block]:
    criteria = [one.criterion for one in record.plan.criteria_of(plan.name)]
    rows = _count_inputs(record.trials.of_experiment(plan.name))
    if not rows or not criteria:
        return
    # An input that fails one criterion altogether is worse than one that fails all a little.
    rows.sort(key=lambda row: (min(map(row.rate, criteria)), sum(map(row.rate, criteria))))
    most = max(FIRST, min(MOST, cells // len(criteria)))
    heading = f"Inputs of {plan.identifier} by criterion"
    yield _tabulate(heading, criteria, rows[:FIRST])
    more = rows[FIRST:most]
    if more:
        count = as_count(len(more), "more input")
        summary = f"{count}, from {_find_worst(more, criteria)}"
        table = _tabulate(f"{heading}, continued", criteria, more)
        yield blocks.Details(summary=summary, blocks=(table,))
    notes = []
    if len(rows) > most:
        left = as_count(len(rows) - most, "further input")
        notes.append(f"{left} not listed; none of them below {_find_worst(rows[most:], criteria)}.")
    untried = len(plan.input_ids) - len(rows)
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
            row = by_name[trial.input_id]
            row.usd = row.usd if trial.cost_usd is None else (row.usd or 0.0) + trial.cost_usd
    return rows


def _tabulate(heading: str, criteria: Sequence[str], rows: Sequence[InputCounts]) -> blocks.Table:
    times = any(row.latencies for row in rows)
    most = max((row.usd for row in rows if row.usd is not None), default=None)
    # One number of places down the column: two digits of the largest.
    places = max(2, 1 - math.floor(math.log10(most))) if most else 2

    def write_median(row: InputCounts) -> str:
        return as_seconds(round(statistics.median(row.latencies), 3)) if row.latencies else "–"

    def write_cost(row: InputCounts) -> str:
        return "–" if row.usd is None else f"${row.usd:,.{places}f}"

    return blocks.build_table(
        heading,
        rows,
        ("input", lambda row: blocks.Name(cut_middle(row.input_id, _NAME))),
        *(
            (blocks.Name(cut_middle(name, _NAME)), partial(_write_rate, criterion=name))
            for name in criteria
        ),
        ("trials", lambda row: f"{row.trials:,}"),
        *([("median latency", write_median)] if times else []),
        *([("cost", write_cost)] if most is not None else []),
        is_headed=False,
    )


def _write_rate(row: InputCounts, criterion: str) -> blocks.Value:
    rate, passed = row.rate(criterion), row.passed.get(criterion, 0)
    failed = row.trials - passed
    note = f"{failed:,} failed" if failed else ""
    hint = f"{passed:,} of {as_count(row.trials, 'trial')} passed"
    return blocks.Value(text=as_observed(rate), note=note, hint=hint, shade=1 - rate)
