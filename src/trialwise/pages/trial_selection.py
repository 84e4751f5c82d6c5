"""Trials to read: every failing one with its evidence as far as there is room, some passing ones.

A page stays small whatever the run's size. Where there are more failures than room, every kind of
failure and every input gets its turn before any gets a second one, and the rest is counted. Where
trials have traces, the worst trace comes first and is unfolded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import TypeAlias

from trialwise.documents.blocks import Block, Card, Cards, Choice, Details, Prose, Section
from trialwise.documents.numbers import as_count
from trialwise.documents.printable import cut_middle, estimate_size
from trialwise.model.run import RunRecord
from trialwise.model.trial import Trial
from trialwise.pages.criterion_details import REASONS
from trialwise.pages.failure_reasons import NOTE
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
    failing = [trial for trial in record.trials if not trial.passed]
    passed = [trial for trial in record.trials if trial.passed]
    passing = tuple(_list_passing(passed, first, draw, int(_THEIR_PART * size)))
    left = size - estimate_size(passing)
    failures = _list_failures(failing, first, draw, most, left, criteria=list(order))
    total = as_count(len(record.trials), "trial")
    note = f"{len(failing):,} of {total} failed a criterion or more."
    notes = [note, *([NOTE] if reasons else []), *([WORST] if first else [])]
    return Section(
        heading="Failing trials",
        blocks=(*reasons, *failures, *passing),
        note=" ".join(notes),
    )


def _list_failures(
    failing: Sequence[Trial],
    first: Drawn | None,
    draw: Callable[[Trial], Card],
    most: int,
    size: int,
    *,
    criteria: Sequence[str],
) -> Iterator[Block]:
    """List the worst trace and then, as far as there is room, the failing trials in their order."""
    if not failing:
        yield Prose(paragraphs=("No trial failed.",))
    lead = [] if first is None or first[0].passed else [first]
    if first is not None and not lead:
        # It passed everything, so that no filter is about it.
        yield Cards(cards=(first[1],))
    if not failing:
        return
    room = size - (0 if first is None else estimate_size(first[1]))
    others = _take_turns([one for one in failing if first is None or one is not first[0]])
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
    if len(chosen) < len(failing):
        said = (
            f"{len(chosen):,} of {len(failing):,} failing trials are shown, chosen so that every "
            "input and every kind of failure has its turn; the run's journal holds them all."
        )
        yield Prose(paragraphs=(said,), tone="quiet")


def _take_turns(failing: Iterable[Trial]) -> Iterator[Trial]:
    """Failures in an order in which every kind and input has its turn."""
    kinds: dict[tuple[object, ...], list[Trial]] = {}
    for trial in failing:
        first = next(outcome for outcome in trial.outcomes if not outcome.passed)
        kind = (trial.input_id, first.criterion, first.result.reason, first.postcondition)
        kinds.setdefault(kind, []).append(trial)
    for turn in zip_longest(*kinds.values()):
        yield from (trial for trial in turn if trial is not None)


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
    trials: Sequence[Trial], first: Drawn | None, draw: Callable[[Trial], Card], size: int
) -> Iterator[Block]:
    answered = [
        one for one in trials if one.reply is not None and (first is None or one is not first[0])
    ]
    count = min(PASSING, len(answered))
    spread = (answered[k * len(answered) // count] for k in range(count))
    chosen = _fit_cards(spread, draw, count, size)
    if chosen:
        yield Details(
            summary=f"{len(chosen):,} of {len(answered):,} passing trials, for comparison",
            blocks=(Cards(cards=tuple(card for _, card in chosen)),),
        )
