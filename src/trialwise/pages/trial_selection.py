"""Trials to read: every failing one with its evidence as far as there is room, some passing ones.

A page stays small whatever the run's size. Where there are more failures than room, every kind of
failure and every input gets its turn before any gets a second one, and the rest is counted. Where
trials have traces, the worst trace comes first and is unfolded.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TypeAlias

from trialwise.documents.blocks import Block, Card, Cards, Choice, Details, Prose, Section
from trialwise.documents.numbers import as_count
from trialwise.documents.printable import cut_middle, estimate_size
from trialwise.model.run import RunRecord, Trials
from trialwise.model.trial import Trial
from trialwise.model.trial_table import TrialTable
from trialwise.pages.failure_groups import NOTE
from trialwise.pages.finding_facts import REASONS
from trialwise.pages.trial_cards import NAME, build_trial_card, build_worst_card
from trialwise.pages.worst_trace import WORST, find_worst_trace

#: Passing trials shown beside the failing ones, spread over the run, and their part of the room.
PASSING, _THEIR_PART = 6, 1 / 8

Drawn: TypeAlias = tuple[Trial, Card]


def build_trials_section(
    record: RunRecord, most: int, size: int, reasons: Sequence[Block] = ()
) -> Section | None:
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
    worst = find_worst_trace(record)
    unfolded = None
    if worst is not None:
        unfolded = build_worst_card(worst, order, record.texts, size, several=several)
    first = (worst.trial, unfolded) if worst and unfolded else None
    failing = record.trials.failures
    passing = tuple(_list_passing(record.trials, first, draw, int(_THEIR_PART * size)))
    left = size - estimate_size(passing)
    failures = _list_failures(record.trials, first, draw, most, left, criteria=list(order))
    total = as_count(len(record.trials), "trial")
    note = f"{failing:,} of {total} failed a criterion or more."
    if only := _count_only_reported(record):
        note += f" {only:,} of them failed nothing that decides, but a criterion that only reports."
    notes = [note, *([NOTE] if reasons else []), *([WORST] if first else [])]
    return Section(
        heading="Failing trials",
        blocks=(*reasons, *failures, *passing),
        note=" ".join(notes),
    )


def _count_only_reported(record: RunRecord) -> int:
    """Count the failing trials that passed every criterion that decides."""
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
    draw: Callable[[Trial], Card],
    most: int,
    size: int,
    *,
    criteria: Sequence[str],
) -> Iterator[Block]:
    """List the worst trace and then, as far as there is room, the failing trials in their order."""
    failing = trials.failures
    if not failing:
        yield Prose(paragraphs=("No trial failed.",))
    lead = [] if first is None or first[0].passed else [first]
    if first is not None and not lead:
        # It passed everything, so that no filter is about it.
        yield Cards(cards=(first[1],))
    if not failing:
        return
    room = size - (0 if first is None else estimate_size(first[1]))
    others = (one for one in _take_turns(trials) if not _is_drawn(one, first))
    chosen = _fit_cards(others, draw, most - len(lead), room)
    chosen.sort(key=lambda pair: (pair[0].experiment, pair[0].index))
    if chosen and first is None:  # one example is seen without a click
        chosen[0] = chosen[0][0], replace(chosen[0][1], is_open=True)
    chosen = [*lead, *chosen]
    yield Cards(
        cards=tuple(card for _, card in chosen),
        choices=_list_choices(criteria, [trial for trial, _ in chosen]),
        is_searched=len(chosen) > 1,
    )
    if len(chosen) < failing:
        said = (
            f"{len(chosen):,} of {failing:,} failing trials are shown, chosen so that every "
            "input and every kind of failure has its turn; the run's journal holds them all."
        )
        yield Prose(paragraphs=(said,), tone="quiet")


def _is_drawn(trial: Trial, first: Drawn | None) -> bool:
    """Return whether a trial stands first already."""
    return first is not None and (
        (trial.experiment, trial.index) == (first[0].experiment, first[0].index)
    )


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
    for turn in count():
        left = [(table, places) for table, places in kinds.values() if turn < len(places)]
        if not left:
            return
        yield from (table[places[turn]] for table, places in left)


def _fit_cards(
    trials: Iterable[Trial], draw: Callable[[Trial], Card], most: int, size: int
) -> list[Drawn]:
    cards: list[Drawn] = []
    left = size
    for trial in trials:
        card = draw(trial)
        left -= estimate_size(card)
        if left < 0 or len(cards) >= most:
            break
        cards.append((trial, card))
    return cards


def _list_choices(criteria: Sequence[str], shown: Sequence[Trial]) -> tuple[Choice, ...]:
    """By criterion and by reason, where there is more than one of either."""
    outcomes = [one for trial in shown for one in trial.outcomes if not one.passed]
    failed = {one.criterion for one in outcomes}
    reasons = {str(one.result.reason) for one in outcomes}
    if len(failed) < 2 and len(reasons) < 2:
        return ()
    names = [(str(k), cut_middle(name, NAME)) for k, name in enumerate(criteria) if name in failed]
    why = [(reason, said) for reason, said in REASONS.items() if reason in reasons]
    return (
        Choice(
            name="criterion", label="Criterion", everything="all criteria", options=tuple(names)
        ),
        Choice(name="reason", label="Reason", everything="all reasons", options=tuple(why)),
    )


def _list_passing(
    trials: Trials, first: Drawn | None, draw: Callable[[Trial], Card], size: int
) -> Iterator[Block]:
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
        yield Details(
            summary=f"{len(chosen):,} of {total:,} passing trials, for comparison",
            blocks=(Cards(cards=tuple(card for _, card in chosen)),),
        )


def _pick_trial(found: Sequence[tuple[TrialTable, Sequence[int]]], number: int) -> Trial:
    """Return one of the trials at some places, counted over all tables."""
    for table, places in found:
        if number < len(places):
            return table[places[number]]
        number -= len(places)
    raise IndexError(number)
