"""The order in which inputs are tried: shuffled, because stopping early on a sorted list lies.

A corpus sorted by difficulty passes or fails on its first few inputs. Every rule here assumes
exchangeable trials, so the order is drawn at random, once, from a seed that can be recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, SupportsIndex, TypeAlias

from trialwise.validation import require_choice, require_count, require_integer

Draw: TypeAlias = Literal["balanced", "independent"]
"""Every input as often as any other, or each trial's input drawn anew."""

DRAWS: tuple[Draw, ...] = ("balanced", "independent")


def issue_order(
    inputs: SupportsIndex, trials: SupportsIndex, *, seed: SupportsIndex, draw: Draw = "balanced"
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
    from random import Random

    size = require_count("inputs", inputs, minimum=1)
    count = require_count("trials", trials)
    source = Random(f"issue-order/{require_integer('seed', seed)}")
    if require_choice("draw", draw, DRAWS) == "independent":
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
        draw_bits: Returns a number of so many random bits.
    """
    for last in range(len(order) - 1, 0, -1):
        bits = (last + 1).bit_length()
        chosen = draw_bits(bits)
        while chosen > last:
            chosen = draw_bits(bits)
        order[last], order[chosen] = order[chosen], order[last]
