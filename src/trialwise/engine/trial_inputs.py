"""Which input and which seed each trial of an experiment gets: functions of the plan alone.

So a run that was cut off goes on exactly where it was, and a stranger can check the order. Seeds
follow from what they belong to, never from when they were drawn: neither the number of workers nor
a restart in between may change what a trial is given.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from hashlib import blake2b
from itertools import accumulate
from random import Random

from trialwise.model.claim import SamplingMode
from trialwise.model.plan import CriterionPlan, ExperimentPlan
from trialwise.model.trial import Trial
from trialwise.stats.sequential.trial_order import issue_order

_AT_MOST_ONCE = frozenset({SamplingMode.WITHOUT_REPLACEMENT, SamplingMode.EXHAUSTIVE})


def issue_places(experiment: ExperimentPlan, *, seed: int, each_input: bool) -> Sequence[int]:
    """Return the positions of the inputs, in the order in which their trials start.

    An input with two repetitions stands for two draws: balanced orders hold it twice as often as
    an input with one, independent ones draw it with twice the chance. Where every input is decided
    separately, repetitions have no meaning: the order goes in blocks that hold each input once, so
    that trial `index` is trial `index // inputs` of its input.

    Where a criterion asks every input, those that no draw has given stand at the end.

    Args:
        experiment: Its inputs, their repetitions, how many trials, how they are drawn.
        seed: The run's.
        each_input: Whether a criterion decides every input separately.
    """
    order = _draw_places(experiment, seed=seed, each_input=each_input)
    if not experiment.further:
        return order
    missing = sorted(set(range(len(experiment.input_ids))).difference(order))
    Random(derive_seed("further", seed, experiment.name)).shuffle(missing)
    return (*order, *missing[: experiment.further])


def _draw_places(experiment: ExperimentPlan, *, seed: int, each_input: bool) -> Sequence[int]:
    inputs, trials = len(experiment.input_ids), experiment.trials - experiment.further
    own_seed = derive_seed("order", seed, experiment.name)
    if experiment.sampling_mode in _AT_MOST_ONCE:
        return issue_order(inputs, min(trials, inputs), seed=own_seed)
    if each_input:
        return _blocks(inputs, trials, own_seed)
    # Every repetition is a slot of its own; equal slots make unequal inputs.
    ends = list(accumulate(experiment.repetitions))
    slots = issue_order(ends[-1], trials, seed=own_seed, draw=experiment.draw)
    return slots if ends[-1] == inputs else tuple(bisect_right(ends, slot) for slot in slots)


def _blocks(inputs: int, trials: int, seed: int) -> Sequence[int]:
    if inputs == 1:
        return (0,) * trials
    source, block = Random(seed), list(range(inputs))
    order: list[int] = []
    while len(order) < trials:
        source.shuffle(block)
        order += block
    return order[:trials]


def derive_seed(purpose: str, run_seed: int, name: str) -> int:
    """Derive a 63-bit seed for one purpose, the same on every machine.

    >>> derive_seed("order", 7, "inputs") == derive_seed("order", 7, "inputs")
    True
    """
    return _number(_digest(f"{purpose}/{run_seed}/{name}"))


def trial_seeds(run_seed: int, experiment: str) -> Callable[[int], int]:
    """Return the seed of every trial of an experiment, by its index.

    >>> seed_of = trial_seeds(7, "inputs")
    >>> seed_of(0) != seed_of(1), seed_of(0) < 2**63
    (True, True)
    """
    beginning = _digest(f"trial/{run_seed}/{experiment}/")

    def seed_of(index: int) -> int:
        digest = beginning.copy()
        digest.update(b"%d" % index)
        # As `_number`, without a call of it for every trial.
        return int.from_bytes(digest.digest(), "big") >> 1

    return seed_of


def _digest(text: str) -> blake2b:
    # Python's own hash differs from process to process.
    return blake2b(text.encode(errors="surrogatepass"), digest_size=8)


def _number(digest: blake2b) -> int:
    return int.from_bytes(digest.digest(), "big") >> 1


# Keeps track of the inputs that a `never_fails` criterion has not been tried on yet.
#
# The other criteria may be decided after a few trials. A criterion that must never fail then goes
# on, and only with inputs that it has not seen: they are all that can still change it.


class UnaskedInputs:
    """The inputs without a counted trial, for every criterion that asks them all.

    Args:
        criteria: The criteria of an experiment, in the order of a trial's outcomes.
        inputs: How many inputs the experiment has.
    """

    def __init__(self, criteria: Sequence[CriterionPlan], inputs: int) -> None:
        self._open = {
            place: set(range(inputs))
            for place, one in enumerate(criteria)
            if one.counting.asks_every_input
        }
        self.is_kept = bool(self._open)
        """Whether any criterion asks every input, so that there is something to keep track of."""
        self._curtailed = {place for place in self._open if criteria[place].counting.curtailed}
        self._in_flight: set[int] = set()

    @property
    def is_empty(self) -> bool:
        """Whether no criterion waits for an input."""
        return not any(self._open.values())

    def needs(self, position: int) -> bool:
        """Return whether an input still needs a trial: it was not asked and is not being asked."""
        if position in self._in_flight:
            return False
        return any(position in waiting for waiting in self._open.values())

    def is_asking(self, position: int) -> bool:
        """Return whether a trial of an input is under way that some criterion waits for."""
        return position in self._in_flight and any(
            position in waiting for waiting in self._open.values()
        )

    def take(self, position: int) -> None:
        """Note that a trial of an input was started."""
        self._in_flight.add(position)

    def lose(self, position: int) -> None:
        """Note that a trial of an input will not come back."""
        self._in_flight.discard(position)

    def add_passed(self, position: int) -> None:
        """Count a trial of an input that was measured and passed everything."""
        self._in_flight.discard(position)
        for waiting in self._open.values():
            waiting.discard(position)

    def add(self, trial: Trial, position: int) -> None:
        """Count a trial; one that measured nothing has not asked its input.

        Args:
            trial: As it completed.
            position: The place of its input in the list.
        """
        self._in_flight.discard(position)
        for place, waiting in self._open.items():
            outcome = trial.outcomes[place]
            if trial.is_excused or trial.is_unjudged(outcome):
                continue
            waiting.discard(position)
            # One failure decides: no other input can make up for it.
            if not outcome.passed and place in self._curtailed:
                waiting.clear()
