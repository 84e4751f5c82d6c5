"""Decides while several trials are running, without counting the fast ones first.

Results count in the **order of inputs**. If sixteen trials run at once and failures take three
times as long as passes, counting results as they arrive turns a 20 % chance of passing a bad
service into 62 %. A missing result is a gap, and a verdict is given as soon as no
filling of the gaps could change it.

More failures never turn a FAIL into a PASS, so two fillings settle every other: all gaps passed,
and all gaps failed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice, repeat
from random import Random
from types import MappingProxyType
from typing import Literal, TypeAlias

from trialwise import validation
from trialwise.stats.result_types import Count
from trialwise.stats.sequential.walks import Boundaries, decision_at, keep_open, look_at

#: Start a trial only if it will more likely than not be needed: one wasted trial a run at eight
#: in flight, where starting all eight wastes three.
LIKELY_NEEDED = 0.5


def trials_to_start(
    design: Boundaries,
    trials: Count,
    failures: Count,
    in_flight: Count,
    *,
    concurrency: Count,
    likely: float = LIKELY_NEEDED,
    prior: tuple[float, float] = (1.0, 1.0),
) -> int:
    """How many trials to start now: as many as will each probably be needed.

    At least one when nothing is in flight and the design is undecided, never more than the
    concurrency or the cap allows.

    Examples
    --------
    >>> from trialwise.stats.sequential import SequentialDesign
    >>> design = SequentialDesign.wald(0.9, 0.8, cap=50)
    >>> trials_to_start(design, 0, 0, 0, concurrency=8)
    8
    >>> trials_to_start(design, 12, 0, 0, concurrency=8)   # two more passes decide
    2
    """
    n = validation.require_count("trials", trials)
    f = validation.require_count("failures", failures)
    flying = validation.require_count("in_flight", in_flight)
    room = validation.require_count("concurrency", concurrency, minimum=1) - flying
    room = min(room, design.cap - n - flying)
    least = validation.require_open_rate("likely", likely)
    a, b = (validation.require_positive("prior", value) for value in prior)
    if room <= 0 or decision_at(design, n, f) is not None:
        return 0
    chances = chances_undecided(design, n, f, flying + room - 1, (a, b))[flying:]
    wanted = sum(chance >= least for chance in chances)
    return max(wanted, 0 if flying else 1)


def chances_undecided(
    design: Boundaries, n: int, f: int, ahead: int, prior: tuple[float, float]
) -> list[float]:
    """P(undecided after 0, 1, …, `ahead` more trials) from an undecided state."""
    return list(islice(chain(iterate_chances(design, n, f, prior), repeat(0.0)), ahead + 1))


def iterate_chances(
    design: Boundaries,
    n: int,
    f: int,
    prior: tuple[float, float],
    known: Mapping[int, bool | None] = MappingProxyType({}),
) -> Iterator[float]:
    """Yield P(undecided after 0, 1, … more places) from an undecided state, up to the cap.

    Args:
        design: What decides.
        n: Trials that are counted.
        f: Failures among them.
        prior: Successes and failures to start from.
        known: Results that wait for an earlier one, by their place from here: passed, failed, or
            None for a trial that does not count.
    """
    told = [passed for passed in known.values() if passed is not None]
    # A result says what to expect of the others, wherever it stands.
    failed, seen = prior[1] + f + told.count(False), sum(prior) + n + len(told)
    # The weights of f, f + 1, … failures; of those, this many more gaps failed than at the first.
    weights, gaps, place = [1.0], 0, 0
    yield 1.0
    while n < design.cap and weights:
        passed = known.get(place, True)
        if place in known:
            f += passed is False
        else:
            fails = [w * (failed + gaps + k) / seen for k, w in enumerate(weights)]
            stays = map(operator.sub, weights, fails)
            weights = list(map(operator.add, chain(stays, (0.0,)), chain((0.0,), fails)))
            seen += 1
        n, place = n + (passed is not None), place + 1
        before = f
        f, weights = keep_open(look_at(design, n, f, weights)) if n < design.cap else (f, [])
        gaps += f - before
        yield sum(weights)


# The order in which inputs are tried: shuffled, because stopping early on a sorted list lies.
#
# A corpus sorted by difficulty passes or fails on its first few inputs. Every rule here assumes
# exchangeable trials, so the order is drawn at random, once, from a seed that can be recorded.

Draw: TypeAlias = Literal["balanced", "independent"]
"""Every input as often as any other, or each trial's input drawn anew."""

DRAWS: tuple[Draw, ...] = ("balanced", "independent")


def issue_order(
    inputs: Count, trials: Count, *, seed: Count, draw: Draw = "balanced"
) -> tuple[int, ...]:
    """Which input each trial gets, in the order the trials are issued.

    "balanced" shuffles a list that holds every input equally often (within one, where they do not
    divide): the order is exchangeable, and the count has at most binomial variance (Hoeffding
    1956). "independent" draws with replacement, which makes the trials exactly Bernoulli.

    Parameters
    ----------
    inputs, trials : int
        How many there are, at least 1 and at least 0.
    seed : int
        The same seed gives the same order on every machine.
    draw : {"balanced", "independent"}
        How inputs are chosen.

    Examples
    --------
    >>> sorted(issue_order(3, 6, seed=1))
    [0, 0, 1, 1, 2, 2]
    >>> issue_order(3, 6, seed=1) == issue_order(3, 6, seed=1)
    True
    """
    size = validation.require_count("inputs", inputs, minimum=1)
    count = validation.require_count("trials", trials)
    source = Random(f"issue-order/{validation.require_integer('seed', seed)}")
    if validation.require_choice("draw", draw, DRAWS) == "independent":
        return tuple(source.randrange(size) for _ in range(count))
    whole, rest = divmod(count, size)
    # A list of every input only where some are drawn more than once: there may be very many.
    order = [*range(size)] * whole if whole else []
    order += source.sample(range(size), rest)
    _shuffle(order, source.getrandbits)
    return tuple(order)


def _shuffle(order: list[int], draw_bits: Callable[[int], int]) -> None:
    """Shuffle a list as `Random.shuffle` does, so that no other Python can change the order.

    Args:
        order: The list.
        draw_bits: Returns a number of this many random bits.
    """
    for last in range(len(order) - 1, 0, -1):
        bits = (last + 1).bit_length()
        chosen = draw_bits(bits)
        while chosen > last:
            chosen = draw_bits(bits)
        order[last], order[chosen] = order[chosen], order[last]
