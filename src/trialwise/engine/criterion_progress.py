"""Which input each trial of an experiment gets, and how each criterion stands as trials come in."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from hashlib import blake2b
from itertools import accumulate, islice, takewhile
from random import Random

from trialwise import model
from trialwise.engine.ports import CriterionStanding
from trialwise.model.claim import SamplingMode
from trialwise.model.plan import CriterionPlan, ExperimentPlan
from trialwise.procedures.composite import combine
from trialwise.procedures.criterion_rows import Stream
from trialwise.procedures.registry import find_procedure
from trialwise.stats import sequential
from trialwise.stats.sequential.concurrency import LIKELY_NEEDED, issue_order, iterate_chances


class Progress:
    """A criterion's streams and what they say together.

    Args:
        plan: The criterion's.
        inputs: The inputs of the experiment.
        concurrency: Trials in flight at most.
    """

    def __init__(self, plan: CriterionPlan, *, inputs: int, concurrency: int) -> None:
        limits = plan.limits
        self.plan = plan
        self.each_input = plan.counting.each_input
        self.has_looks = bool(plan.judging.looks)
        """Whether it may be decided at looks, which need to know of trials without a reply."""
        self.streams = [Stream(limits) for _ in range(inputs if plan.counting.each_input else 1)]
        self.open_streams = len(self.streams)
        """Those that more trials can still change."""
        self._trials = 0
        self._failures = 0
        self._inputs = inputs
        self._decision: model.Decision | None = None
        self.is_given_up = False
        """Whether the run no longer waits for it, because its judge does not answer."""
        # One input that is nearly decided must not hold up the others behind it in the order.
        self._horizon = None if plan.counting.each_input else Horizon.of(limits.design, concurrency)

    def add(self, index: int, position: int, passed: bool | None, place: int | None = None) -> bool:
        """Take one trial's outcome; True if that settled its stream.

        Args:
            index: The trial's place in the order of inputs.
            position: Its input's place in the list.
            passed: None for a trial that the analysis leaves out.
            place: Its place among the trials of its input, where the order does not say.
        """
        if self.each_input:
            place = index // self._inputs if place is None else place
            stream = self.streams[position]
            before = stream.trials, stream.failures
            has_settled = stream.add(place, passed)
            # Summed here and not when asked: there may be thousands of streams.
            self._trials += stream.trials - before[0]
            self._failures += stream.failures - before[1]
        else:
            has_settled = self.streams[0].add(index, passed)
        if has_settled:
            self.open_streams -= 1
        return has_settled

    def overturn(self, passed: bool | None) -> bool:
        """Turn a PASS that any failure of the run ends; True if this trial does so."""
        is_late = passed is False and self.plan.counting.counts_every_trial and self.is_settled
        if not is_late or self.decision is model.Decision.FAIL:
            return False
        self._decision = model.Decision.FAIL
        return True

    def mark_unheard(self, index: int) -> None:
        """Take note of a trial without anything that a judge could judge, before it is added."""
        self.streams[0].mark_unheard(index)

    @property
    def is_settled(self) -> bool:
        """Whether no further trial can change it."""
        return self.open_streams == 0

    @property
    def has_failed(self) -> bool:
        """Whether it is decided, and FAILs; where each input is, all of them are."""
        # Which of the inputs FAIL is what such a criterion is asked for.
        return self.is_settled and self.decision is model.Decision.FAIL

    def needs(self, position: int) -> bool:
        """Return whether a trial of an input could still change it."""
        return not self.streams[position if self.each_input else 0].is_settled

    def wants(self, index: int, position: int) -> bool:
        """Return whether a trial will probably be needed, as far as is known before it starts."""
        if not self.needs(position):
            return False
        return self._horizon is None or self._horizon.allows(self.streams[0], index)

    def standing(self) -> CriterionStanding:
        """Counts and decision, for listeners."""
        trials, failures = self._trials, self._failures
        if not self.each_input:
            trials, failures = self.streams[0].trials, self.streams[0].failures
        return CriterionStanding(
            criterion=self.plan.criterion,
            trials=trials,
            passed=trials - failures,
            planned=self.plan.trials * len(self.streams),
            decision=self.decision,
            has_rate=not find_procedure(self.plan.procedure).decides_mean,
        )

    @property
    def decision(self) -> model.Decision | None:
        """The decision over all streams, once each has one."""
        # Not before every stream is settled, and worked out once: there may be thousands of them.
        if self._decision is None and self.is_settled:
            known = [one.decision for one in self.streams if one.decision is not None]
            self._decision = combine(known) if len(known) == len(self.streams) else None
        return self._decision

    @property
    def stop(self) -> model.StopReason:
        """Why it needs no further trial, once it needs none."""
        early = any(
            one.decision is not None and one.next_place < one.limits.cap for one in self.streams
        )
        # One stream that stopped early is enough: the criterion did not need all its trials.
        if not early:
            return model.StopReason.COMPLETE
        limits = self.streams[0].limits
        sequential = limits.design is not None or bool(limits.looks)
        return model.StopReason.DECIDED if sequential else model.StopReason.CURTAILED


def combine_stops(stops: Collection[model.StopReason]) -> model.StopReason:
    """Return why a run ended: what cut it short, or how its first experiment ended.

    >>> combine_stops([model.StopReason.COMPLETE, model.StopReason.DECIDED])
    <StopReason.DECIDED: 'decided'>
    """
    for reason in stops:
        if reason.is_premature:
            return reason
    # DECIDED first: a boundary of a sequential design ended it, which says more than that the rest
    # of the trials could not change a count.
    early = (model.StopReason.DECIDED, model.StopReason.CURTAILED)
    return next((one for one in early if one in stops), model.StopReason.COMPLETE)


#: Beyond this the recursion costs more than the few trials it saves of this many.
_LARGEST_CAP = 2_000


#: A horizon serves for this share of the concurrency, or of what is in flight where it holds back
#: a trial: so few results tell little that is new.
_FRESH_SHARE = 8


class Horizon:
    """How far ahead of its counted beginning a stream is worth feeding.

    Args:
        design: The stream's.
        concurrency: Trials in flight at most.
    """

    def __init__(self, design: sequential.SequentialDesign, concurrency: int) -> None:
        self._design = design
        self._concurrency = concurrency
        # After how many results it was found, how far was looked, and the first place beyond it.
        self._results = -1
        self._window = 0
        self._until = 0

    @classmethod
    def of(cls, design: sequential.SequentialDesign | None, concurrency: int) -> Horizon | None:
        """None where every trial is to be started as soon as it can be."""
        if design is None or concurrency == 1 or design.cap > _LARGEST_CAP:
            return None
        return cls(design, concurrency)

    def allows(self, stream: Stream, place: int) -> bool:
        """Return whether the trial at a place of the stream will probably be needed."""
        window = self._concurrency
        # One slow trial must not hold up all that were issued after it.
        while window <= place - stream.next_place:
            window *= 2
        results = stream.next_place + len(stream.waiting)
        age = results - self._results
        others = place - results if place >= self._until else self._concurrency
        if (age and age * _FRESH_SHARE >= others) or window > self._window:
            self._results, self._window = results, window
            self._until = stream.next_place + self._count_wanted(stream, window)
        return place < self._until

    def _count_wanted(self, stream: Stream, window: int) -> int:
        """Count the places that will probably be needed, by all results that are in."""
        known = {place - stream.next_place: one for place, one in stream.waiting.items()}
        # A uniform prior for the rate: with few results it says little, and only the order of work
        # depends on it, never a decision.
        chances = iterate_chances(self._design, stream.trials, stream.failures, (1.0, 1.0), known)
        return sum(1 for _ in takewhile(LIKELY_NEEDED.__le__, islice(chances, window)))


# Which input and which seed each trial of an experiment gets: functions of the plan alone.
#
# So a run that was cut off goes on exactly where it was, and a stranger can check the order. Seeds
# follow from what they belong to, never from when they were drawn: neither the number of workers
# nor a restart in between may change what a trial is given.

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
        # Each block anew: with one order for all, what comes first in it would always run on a cold
        # cache.
        source.shuffle(block)
        order += block
    return order[:trials]


def derive_seed(purpose: str, run_seed: int, name: str) -> int:
    """Derive a 63-bit seed for one purpose, the same on every machine.

    >>> derive_seed("order", 7, "inputs") == derive_seed("order", 7, "inputs")
    True
    """
    return int.from_bytes(_digest(f"{purpose}/{run_seed}/{name}").digest(), "big") >> 1


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
        # 63 bits: SQL databases, and languages whose integers have a sign, hold no larger number.
        return int.from_bytes(digest.digest(), "big") >> 1

    return seed_of


def _digest(text: str) -> blake2b:
    # Python's own hash differs from process to process.
    return blake2b(text.encode(errors="surrogatepass"), digest_size=8)


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
        return position not in self._in_flight and self._is_open(position)

    def is_asking(self, position: int) -> bool:
        """Return whether a trial of an input is under way that some criterion waits for."""
        return position in self._in_flight and self._is_open(position)

    def _is_open(self, position: int) -> bool:
        return any(position in waiting for waiting in self._open.values())

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

    def add(self, trial: model.Trial, position: int) -> None:
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
