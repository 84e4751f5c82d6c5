"""Trials to read: every failing one with its evidence as far as there is room, some passing ones.

A page stays small whatever the run's size. Where there are more failures than room, every kind of
failure and every input gets its turn before any gets a second one, and the rest is counted. Where
trials tell what was done in them, the worst trace comes first and is unfolded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import zip_longest
from typing import TypeAlias

from trialwise.documents.numbers import as_count
from trialwise.model.run import RunRecord
from trialwise.model.trial import Trial
from trialwise.reporters.html.cards import NAME, trial_card, worst_card
from trialwise.reporters.html.parts import Outline, details
from trialwise.reporters.html.words import REASONS
from trialwise.reporters.html.worst import WORST, worst_trace
from trialwise.reporters.page.markup import Markup, element, shortened

__all__ = ["trials_section"]

#: Passing trials shown beside the failing ones, spread over the run, and their part of the room.
PASSING, _THEIR_PART = 6, 1 / 8

Card: TypeAlias = tuple[Trial, Markup]


def trials_section(record: RunRecord, outline: Outline, most: int, size: int) -> Markup:
    """The worst trace, the failing trials with a filter and a sample of the passing ones.

    Args:
        record: The run.
        outline: Where the section stands.
        most: How many failing trials may be shown.
        size: How many bytes they may take.
    """
    if not record.trials:
        return Markup("")
    order = {one.criterion: place for place, one in enumerate(record.plan.criteria)}
    several = len(record.plan.experiments) > 1
    draw = partial(trial_card, order=order, several=several)
    worst = worst_trace(record)
    unfolded = worst_card(worst, order, size, several=several) if worst else Markup("")
    first = (worst.trial, unfolded) if worst and unfolded else None
    failing = [trial for trial in record.trials if not trial.passed]
    passed = [trial for trial in record.trials if trial.passed]
    passing = _passing(passed, first, draw, int(_THEIR_PART * size))
    note = (
        f"{len(failing):,} of {as_count(len(record.trials), 'trial')} failed a criterion or more."
    )
    return outline.section(
        "Failing trials",
        *_failures(failing, first, draw, most, size - len(passing.encode()), criteria=list(order)),
        passing,
        note=f"{note} {WORST}" if first else note,
    )


def _failures(
    failing: Sequence[Trial],
    first: Card | None,
    draw: Callable[[Trial], Markup],
    most: int,
    size: int,
    *,
    criteria: Sequence[str],
) -> Iterator[Markup]:
    """The worst trace and then, as far as there is room, the failing trials in issue order."""
    if not failing:
        yield element("p", "No trial failed.")
    lead = [] if first is None or first[0].passed else [first]
    if first is not None and not lead:
        # It passed everything, so that no filter is about it.
        yield element("div", first[1], class_="trials")
    if not failing:
        return
    room = size - (0 if first is None else len(first[1].encode()))
    others = _in_turn([one for one in failing if first is None or one is not first[0]])
    cards = _fitting(others, draw, most - len(lead), room)
    cards = [*lead, *sorted(cards, key=lambda pair: (pair[0].experiment, pair[0].index))]
    yield _filter(criteria, [trial for trial, _ in cards])
    yield element("div", *(card for _, card in cards), class_="trials", data_trials=True)
    yield _left_out(len(failing), len(cards))


def _in_turn(failing: Iterable[Trial]) -> Iterator[Trial]:
    """Failures in an order in which every kind and input has its turn."""
    kinds: dict[tuple[object, ...], list[Trial]] = {}
    for trial in failing:
        first = next(outcome for outcome in trial.outcomes if not outcome.passed)
        kind = (trial.input_id, first.criterion, first.result.reason, first.postcondition)
        kinds.setdefault(kind, []).append(trial)
    for turn in zip_longest(*kinds.values()):
        yield from (trial for trial in turn if trial is not None)


def _fitting(
    trials: Iterable[Trial], draw: Callable[[Trial], Markup], most: int, size: int
) -> list[Card]:
    cards: list[Card] = []
    left = size
    for trial in trials:
        card = draw(trial)
        left -= len(card.encode())
        if left < 0 or len(cards) >= most:
            break
        cards.append((trial, card))
    return cards


def _left_out(failing: int, shown: int) -> Markup:
    if shown == failing:
        return Markup("")
    said = (
        f"{shown:,} of {failing:,} failing trials are shown, chosen so that every input and every "
        "kind of failure has its turn; the run's journal holds them all."
    )
    return element("p", said, class_="note")


def _filter(criteria: Sequence[str], shown: Sequence[Trial]) -> Markup:
    """Two choices that a script makes work; without one they stay hidden and all is shown."""
    failed = {o.criterion for trial in shown for o in trial.outcomes if not o.passed}
    reasons = {str(o.result.reason) for trial in shown for o in trial.outcomes if not o.passed}
    if len(failed) < 2 and len(reasons) < 2:
        return Markup("")
    by_criterion = [
        element("option", shortened(name, NAME), value=place)
        for place, name in enumerate(criteria)
        if name in failed
    ]
    by_reason = [
        element("option", said, value=reason)
        for reason, said in REASONS.items()
        if reason in reasons
    ]
    return element(
        "form",
        element("label", "Criterion ", _choice("criterion", "all criteria", by_criterion)),
        element("label", "Reason ", _choice("reason", "all reasons", by_reason)),
        element("output", f"{as_count(len(shown), 'trial')} shown", aria_live="polite"),
        class_="filter",
        hidden=True,
        data_filter=True,
    )


def _choice(name: str, everything: str, options: Sequence[Markup]) -> Markup:
    return element("select", element("option", everything, value=""), *options, name=name)


def _passing(
    trials: Sequence[Trial], first: Card | None, draw: Callable[[Trial], Markup], size: int
) -> Markup:
    told = [
        one for one in trials if one.reply is not None and (first is None or one is not first[0])
    ]
    count = min(PASSING, len(told))
    cards = _fitting((told[k * len(told) // count] for k in range(count)), draw, count, size)
    if not cards:
        return Markup("")
    said = f"{len(cards):,} of {len(told):,} passing trials, for comparison"
    return details(said, *(card for _, card in cards), class_="passing")
