"""The order of the trials in a file, and whether it could be random."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import groupby
from random import Random

from trialwise.errors import InvalidArgument
from trialwise.outcomes.outcome_trials import Experiment, TrialRows

__all__ = ["Order", "in_order", "is_sorted_by_input"]

#: An order that is this unlikely by chance counts as sorted.
_BY_CHANCE = 0.001


class Order(StrEnum):
    """What is known about the order in which trials were started."""

    UNKNOWN = "unknown"
    """Nothing is known: a report may be sorted in any way."""
    FILE = "file"
    """The file lists the trials in the order in which they were started."""
    TIME = "time"
    """Every row says when its trial began."""


def in_order(experiment: Experiment, order: Order, seed: int) -> Experiment:
    """Return the experiment with its trials in the order in which they were started.

    Where that is not known, a random one stands for it: the signs of dependence and drift that
    are looked for in it can then only appear by chance, while a file sorted by input would show
    them whenever inputs differ.

    Args:
        experiment: In the file's order.
        order: What is known.
        seed: Of the random order.
    """
    if order is Order.FILE:
        return experiment
    if order is Order.UNKNOWN:
        shuffled = list(experiment.trials)
        Random(f"outcomes/{seed}/{experiment.name}").shuffle(shuffled)
        return replace(experiment, trials=tuple(shuffled))
    return replace(experiment, trials=tuple(sorted(experiment.trials, key=_began)))


def is_sorted_by_input(trials: Sequence[TrialRows]) -> bool:
    """Whether all trials of an input stand together, and chance would hardly put them so.

    J inputs of n₁ … n_J trials stand together in J! ∏ nᵢ! of the n! orders.
    """
    runs = [len(list(same)) for _, same in groupby(trials, key=lambda trial: trial.input_id)]
    if len(runs) > len({trial.input_id for trial in trials}):
        return False
    together = math.lgamma(len(runs) + 1) + sum(math.lgamma(run + 1) for run in runs)
    return together - math.lgamma(len(trials) + 1) < math.log(_BY_CHANCE)


def _began(trial: TrialRows) -> float:
    began = trial.order
    if began is None:
        where = trial.rows[0].where
        allowed = f"go with rows that say when they began: {where} of {trial.input_id!r} does not"
        raise InvalidArgument("order", str(Order.TIME), allowed)
    return began
