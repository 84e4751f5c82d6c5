"""How often the boundaries of a scheme FAIL although nothing has changed, proven at every rate.

Every path of a test that ends with FAIL is counted, in whole numbers, for every baseline. Given how
many of all trials passed, all orders are equally likely at every common rate, so that the counts
give the probability a_s of a FAIL given s passes, without a rate in it. P(FAIL) at a rate is the
mean of a_S over a binomial S, whose largest value `unconditional` bounds from above.

The heights of a scheme are found by repetition. P(FAIL) at a rate depends on the boundaries of
nearby baselines only, and its logarithm changes about as fast as their height does, so each height
is moved by what is missing at its rate.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

from trialwise.stats.binomial import likely_counts
from trialwise.stats.staged_schemes import Boundaries, StagedScheme, list_nodes
from trialwise.stats.unconditional import RejectionRegion, find_supremum

#: The schemes that ship, beside this module; `python -m tools.designs --regression` writes them.
SHIPPED = "staged_schemes.json"
#: Trials of baseline and test together up to which a search takes about two seconds at most.
LARGEST_SEARCH = 1_300
#: Baselines too small for likelihood ratios to decide much.
FEWEST_TRIALS = 10
#: A scheme that uses less than this share of alpha, for a handful of trials, finds too little.
_LEAST = 0.5
#: How far below alpha the level is aimed.
_AIM = 0.98
#: Rates between two nodes at which the level is looked at while heights are searched for.
_BETWEEN = 4
#: How far a height moves for a relative excess of 1, and for a lack; the largest lack that counts.
_LOWER, _RAISE, _LARGEST_LACK = 0.8, 0.7, 0.6
#: So many times heights move both ways; after that they are lowered only, until the level holds.
_BOTH_WAYS, _MOST_ROUNDS = 2, 20
#: A height that is lowered again and again is lowered by this much more each time.
_HASTE = 0.02
#: Fewer expected passes or failures of a baseline than this: a height follows the next inner one.
_FEW = 2


@lru_cache(maxsize=16)
def find_level(scheme: StagedScheme) -> float:
    """The largest probability of a FAIL over every common rate, rounded up."""
    return _round_up(find_supremum(_count_fails(scheme)).high)


@lru_cache(maxsize=16)
def find_scheme(
    baseline_trials: int,
    margin: float,
    *,
    alpha: float = 0.05,
    power: float = 0.80,
    most_trials: int | None = None,
    waits: bool = False,
) -> StagedScheme | None:
    """Find the scheme for baselines of a size: a shipped one, or one that is searched for.

    None where a search would take too long (the shipped ones go further), and for a few trials.

    Args:
        baseline_trials: Trials of a baseline.
        margin: The loss that is to be found.
        alpha: The largest probability of a FAIL if nothing has changed.
        power: The wanted probability of finding the loss.
        most_trials: A limit on the trials of a test.
        waits: Whether only all trials together decide.

    Examples
    --------
    >>> scheme = find_scheme(50, 0.2)
    >>> accept, reject = scheme.boundaries(48)
    >>> accept[12], reject[4]
    (0, 3)
    """
    if baseline_trials < FEWEST_TRIALS:
        return None
    scheme = replace(start_scheme(baseline_trials, margin, alpha, power), waits=waits)
    largest = math.ceil(max(map(scheme.size_at, list_nodes(baseline_trials))))
    if most_trials is not None and most_trials < largest:
        scheme, largest = replace(scheme, most_trials=most_trials), most_trials
    for entry in () if waits else _read_shipped():
        shipped = replace(scheme, heights=tuple(entry.pop("heights")), level=entry.pop("level"))
        if all(getattr(scheme, name) == value for name, value in entry.items()):
            return shipped
    return None if baseline_trials + largest > LARGEST_SEARCH else search_scheme(scheme)


def search_scheme(scheme: StagedScheme) -> StagedScheme | None:
    """Search for the heights whose level is just below alpha, from those of a scheme."""
    nodes = list_nodes(scheme.baseline_trials)
    for turn in range(_MOST_ROUNDS):
        region = _count_fails(scheme)
        levels = _look_around(region, nodes)
        if turn >= _BOTH_WAYS and max(levels) <= scheme.alpha:
            peak = find_supremum(region)
            if (level := _round_up(peak.high)) <= scheme.alpha:
                return replace(scheme, level=level) if level >= _LEAST * scheme.alpha else None
            # The peak lies between the rates that were looked at.
            place = math.asin(math.sqrt(peak.rate))
            nearest = sorted(range(len(nodes)), key=lambda i: abs(nodes[i] - place))[:2]
            levels = [level if i in nearest else one for i, one in enumerate(levels)]
        scheme = _move(scheme, nodes, levels, turn)
    return None


def start_scheme(
    baseline_trials: int,
    margin: float,
    alpha: float = 0.05,
    power: float = 0.80,
    most_trials: int | None = None,
) -> StagedScheme:
    """A scheme with heights that come near those of most sizes."""
    nodes = list_nodes(baseline_trials)
    heights = (0.5 * angle - 1.6 + 0.8 * math.log(20 * alpha) for angle in nodes)
    return StagedScheme(
        baseline_trials=baseline_trials,
        alpha=alpha,
        margin=margin,
        power=power,
        most_trials=most_trials,
        heights=tuple(round(one, 3) for one in heights),
    )


def _read_shipped() -> list[dict[str, Any]]:
    import json
    from pkgutil import get_data  # `importlib.resources` loads temporary files and archives

    found: list[dict[str, Any]] = json.loads(get_data("trialwise.stats", SHIPPED) or "[]")
    return found


def _round_up(level: float) -> float:
    """Round to where no computer's arithmetic makes a difference."""
    return math.ceil(1e6 * level) / 1e6


def _count_fails(scheme: StagedScheme) -> RejectionRegion:
    """P(FAIL | s passes among all trials) for s = 0, 1, …, by counting paths."""
    nb = scheme.baseline_trials
    ways = [1]
    for k in range(1, nb + 1):
        ways.append(ways[-1] * (nb - k + 1) // k)
    fails: dict[int, dict[int, int]] = {}
    for counts in scheme.group_baselines():
        for m, failures, paths in _list_fails(scheme.boundaries(counts[0])):
            at = fails.setdefault(m, {})
            for k in counts:
                s = k + m - failures
                at[s] = at.get(s, 0) + ways[k] * paths
    most = max(fails, default=0)
    # A path that has ended goes on with a pass or a failure, so that all have one length.
    total = [0] * (nb + 1)
    for m in range(1, most + 1):
        total = [a + b for a, b in zip([*total, 0], [0, *total], strict=True)]
        for s, found in fails.get(m, {}).items():
            total[s] += found
    size, orders, conditional = nb + most, 1, []
    for s, found in enumerate(total):
        conditional.append(found / orders)
        orders = orders * (size - s) // (s + 1)
    return RejectionRegion(size=size, level=max(conditional), first=0, conditional=conditional)


def _list_fails(boundaries: Boundaries) -> list[tuple[int, int, int]]:
    """List (trials, failures, paths) wherever a test ends with FAIL.

    The numbers of open paths, by failures, are the digits of one large number: a trial adds the
    number to itself, moved by one digit.
    """
    accept, reject = boundaries
    digit = len(accept)
    mask = (1 << digit) - 1
    found, states, low = [], 1, 0
    for m in range(1, len(accept)):
        states += states << digit
        place = digit * (reject[m] - low)
        if over := states >> place:
            states -= over << place
            for failures in range(reject[m], m + 1):
                if not over:
                    break
                if paths := over & mask:
                    found.append((m, failures, paths))
                over >>= digit
        if accept[m] >= low:
            states >>= digit * (accept[m] + 1 - low)
            low = accept[m] + 1
        if not states:
            break
    return found


def _look_around(region: RejectionRegion, nodes: list[float]) -> list[float]:
    """The largest P(FAIL) near each node, at a few rates."""
    step = (nodes[1] - nodes[0]) / _BETWEEN
    places = range((len(nodes) - 1) * _BETWEEN + 1)
    values = [_average(region, math.sin(nodes[0] + i * step) ** 2) for i in places]
    reach = _BETWEEN // 2
    return [
        max(values[max(0, i - reach) : i + reach + 1])
        for i in range(0, (len(nodes) - 1) * _BETWEEN + 1, _BETWEEN)
    ]


def _average(region: RejectionRegion, rate: float) -> float:
    first, weights = likely_counts(region.size, rate, negligible=1e-12)
    return sum(w * a for w, a in zip(weights, region.conditional[first:], strict=False))


def _move(scheme: StagedScheme, nodes: list[float], levels: list[float], turn: int) -> StagedScheme:
    """Move each height by what the level near its rate lacks."""
    alpha, nb, late = scheme.alpha, scheme.baseline_trials, turn - _BOTH_WAYS
    moved = []
    for height, level in zip(scheme.heights, levels, strict=True):
        excess, step = math.log(max(level, 1e-9) / (_AIM * alpha)), 0.0
        if late < 0:
            step = _LOWER * excess if excess > 0 else _RAISE * max(excess, -_LARGEST_LACK)
        elif level > (1 + _AIM) / 2 * alpha:
            step = _LOWER * excess + _HASTE * late
        moved.append(round(height - step, 3))
    # Near 0 and 1 the level falls whatever the height is: it is not raised above the next one.
    middle = len(nodes) // 2
    for way in (range(middle, -1, -1), range(middle, len(nodes))):
        for inner, node in pairwise(way):
            rate = math.sin(nodes[node]) ** 2
            if nb * min(rate, 1 - rate) < _FEW:
                moved[node] = min(moved[node], moved[inner])
    return replace(scheme, heights=tuple(moved))
