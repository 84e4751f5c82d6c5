"""Designs for "is B better than A?" that stop as soon as the pairs decide.

Both arms are tried on the same inputs. Only discordant pairs, of which exactly one arm passed, tell
them apart: if the arms are equally good, each arm wins a discordant pair with probability 1/2,
however often pairs are discordant. So a sequential test of "B wins half of the discordant pairs"
keeps its error rates for every pair of rates and every correlation of the arms.

Two questions:

- "different": both directions count. The strict design at the rate 1/2 says that B is better or
  that it is worse, each wrongly in at most half of alpha, and gives up where neither is likely to
  be shown any more.
- "better": only a better B counts. The optimal design between the share of wins that is expected
  and 1/2 says that B is better, wrongly in at most half of alpha, or stops early because it is not.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

from trialwise.decimals import complement
from trialwise.errors import InvalidArgument
from trialwise.stats.binomial import binomial_tail, find_first
from trialwise.stats.paired import half_tail
from trialwise.stats.sequential import shipped_designs as shipped
from trialwise.stats.sequential.best_rules import StrictObjective
from trialwise.stats.sequential.bound import Hypotheses
from trialwise.stats.sequential.design import SequentialDesign
from trialwise.stats.sequential.design_methods import find_strict
from trialwise.validation import require_choice, require_open_rate, require_rate

DesignQuestion: TypeAlias = Literal["different", "better"]
"""Whether a worse B is a finding of its own, or B is only asked to be better."""

QUESTIONS: tuple[DesignQuestion, ...] = ("different", "better")

#: The most discordant pairs of a two-sided design, as a multiple of what a fixed sample takes.
_CAP_FACTOR = 1.5
#: The weight of equal arms in the expected number of pairs; a better and a worse B share the rest.
_EQUAL = 0.5
#: What a missing decision costs at first and at most, as shares of the cap, and how often the range
#: that leads to the power is halved; twice where the cap is long and a search slow.
_FIRST_COST, _LARGEST_COST, _STEPS, _LONG = 0.5, 8.0, 3, 200
#: Up to this cap a thorough search is quick.
_SHORT = 40


def plan_paired_design(
    rate_a: float,
    rate_b: float,
    *,
    question: DesignQuestion = "different",
    alpha: float = 0.05,
    power: float = 0.80,
    both: float | None = None,
    cache: shipped.DesignCache | None = None,
) -> SequentialDesign:
    """Plan a comparison of two arms with the fewest expected pairs.

    The design is in discordant pairs: a success is a win of B.

    Parameters
    ----------
    rate_a, rate_b : float
        The rates that are expected; `rate_b` is the higher one.
    question : {"different", "better"}
        See the module.
    alpha : float
        Two-sided: half of it is the largest probability of each wrong direction.
    power : float
        The least probability of "B is better" at the expected rates.
    both : float, optional
        The share of inputs that both arms pass; rate_a · rate_b, as for independent arms, unless
        given. Arms that fail on the same inputs take fewer pairs.
    cache : DesignCache, optional
        Where designs that were searched for are kept.

    Examples
    --------
    >>> design = plan_paired_design(0.80, 0.90, question="better")
    >>> design.cap, str(design.decide(11, 0))
    (102, 'PASS')
    """
    asked = require_choice("question", question, QUESTIONS)
    first, second = require_open_rate("rate_a", rate_a), require_open_rate("rate_b", rate_b)
    # The design is planned for a better B; the worse one is its mirror image.
    if second <= first:
        raise InvalidArgument("rate_b", rate_b, f"be above rate_a ({rate_a})")
    level, wanted = require_open_rate("alpha", alpha), require_open_rate("power", power)
    only_a, only_b = discordant_rates(first, second, both)
    # Given how many pairs are discordant, who wins them depends on this share alone.
    # A B that wins every discordant pair gets a split just below 1: the design must be finite.
    split = only_b / (only_a + only_b) if only_a else 1 - level / 10
    if asked == "different":
        return _find_two_sided(split, level, wanted, cache)
    return SequentialDesign.optimal(
        split, 0.5, alpha=complement(wanted), beta=level / 2, cache=cache
    )


def discordant_rates(
    rate_a: float, rate_b: float, both: float | None = None
) -> tuple[float, float]:
    """The probabilities that only A, and that only B, passes a pair.

    Parameters
    ----------
    rate_a, rate_b : float
        How often each passes.
    both : float, optional
        How often both pass; the product unless given.

    Examples
    --------
    >>> only_a, only_b = discordant_rates(0.8, 0.9)
    >>> round(only_a, 10), round(only_b, 10)
    (0.08, 0.18)
    """
    first, second = require_rate("rate_a", rate_a), require_rate("rate_b", rate_b)
    shared = first * second if both is None else require_rate("both", both)
    least, most = max(0.0, first + second - 1), min(first, second)
    if not least - 1e-12 <= shared <= most + 1e-12:
        raise InvalidArgument("both", both, f"lie between {least:g} and {most:g}")
    return max(0.0, first - shared), max(0.0, second - shared)


def fixed_discordant(split: float, *, alpha: float = 0.05, power: float = 0.80) -> int:
    """The fewest discordant pairs from which on the exact sign test has the power.

    Parameters
    ----------
    split : float
        The share of discordant pairs that B wins, above 1/2.
    alpha, power : float
        As for `plan_paired_design`.

    Examples
    --------
    >>> fixed_discordant(0.75)
    35
    """
    share = require_open_rate("split", split)
    if share <= 0.5:
        raise InvalidArgument("split", split, "be above 1/2")

    def reaches(n: int) -> bool:
        return _sign_power(n, share, alpha) >= power

    most = 8
    while not all(reaches(n) for n in range(most, most + 8)):
        most *= 2
    # The power of a discrete test goes up and down, so the last one that misses it counts.
    last = max((n for n in range(1, most) if not reaches(n)), default=0)
    return last + 1


def _sign_power(n: int, split: float, alpha: float) -> float:
    needed = find_first(0, n + 1, lambda wins: half_tail(wins, n) <= alpha / 2)
    return 0.0 if needed > n else binomial_tail(needed, n, split)


def _find_two_sided(
    split: float, alpha: float, power: float, cache: shipped.DesignCache | None = None
) -> SequentialDesign:
    """Find the strict design at 1/2 whose power is enough and whose expected pairs are few."""
    levels = Hypotheses.of_rate(0.5, alpha / 2, alpha / 2)

    def is_sound(kept: SequentialDesign) -> bool:
        enough = kept.operating_characteristic(split).passes >= power - 1e-9
        return enough and kept.p0 == kept.p1 == 0.5 and shipped.keeps_errors(kept, levels)

    def search() -> SequentialDesign:
        cap, cost = find_missing_cost(split, alpha, power)
        design = search_two_sided(split, alpha, cap, cost, is_quick=cap > _SHORT)
        if design.operating_characteristic(split).passes >= power:
            return design
        return search_two_sided(split, alpha, cap, cost, is_quick=True)

    return shipped.find_kept(
        cache, shipped.name_key("paired", split, alpha, power), is_sound, search
    )


def find_two_sided_cap(split: float, alpha: float, power: float) -> int:
    """Return the most discordant pairs of a two-sided design."""
    return math.ceil(_CAP_FACTOR * fixed_discordant(split, alpha=alpha, power=power))


def find_missing_cost(split: float, alpha: float, power: float) -> tuple[int, float]:
    """Return the cap of a two-sided design, and the least cost at which it has the power.

    What a missing decision costs is a share of the cap. The power rises with it.
    """
    cap = find_two_sided_cap(split, alpha, power)

    def suffices(cost: float) -> bool:
        design = search_two_sided(split, alpha, cap, cost, is_quick=True)
        return design.operating_characteristic(split).passes >= power

    low, high = 0.0, _FIRST_COST
    while not suffices(high) and high < _LARGEST_COST:
        low, high = high, 1.5 * high
    # A cost of 0 makes the geometric middle useless.
    low = low or high / 1.5
    steps = _STEPS if cap <= _LONG else 2
    for _ in range(steps):
        middle = math.sqrt(low * high)
        if suffices(middle):
            high = middle
        else:
            low = middle
    return cap, high


def search_two_sided(
    split: float,
    alpha: float,
    cap: int,
    cost: float,
    *,
    equal: float = _EQUAL,
    is_quick: bool = False,
) -> SequentialDesign:
    """Find the best rule with a cap.

    Args:
        split: The share of wins of a better B, and of losses of a worse one.
        alpha: Two-sided.
        cap: The most discordant pairs.
        cost: What a missing decision costs, as a share of the cap.
        equal: The weight of equal arms in the expected number of pairs.
        is_quick: Whether a rule within half a percent of the best will do.
    """
    levels = Hypotheses.of_rate(0.5, alpha / 2, alpha / 2)
    missing = cost * cap
    objective = StrictObjective(
        trials=shipped.paired_mix(split, equal),
        passes=((split, missing),),
        fails=((1 - split, missing),),
    )
    searched = find_strict(levels, cap, 1, objective, is_quick=is_quick)
    assert searched is not None
    return shipped.make_strict(levels, 1, searched, objective)
