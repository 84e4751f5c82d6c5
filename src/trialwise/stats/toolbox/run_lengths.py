"""Run lengths of a chart that climbs from 0 over the whole numbers and signals at a limit.

CUSUM and EWMA are both such charts, so their run lengths have one home. A chart's state is a whole
number, and a table says where one run can take it: the Markov chain of Brook & Evans (1972), but
of the chart as it is run, not of an approximation to it. The mean is found by removing one state
after another from below, adding and multiplying only positive numbers (Grassmann, Taksar & Heyman
1985), so it is right to nearly every digit of a double however rare the signal. What has been
removed is the chart below a limit: one sweep gives the mean run length at every limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from trialwise.stats.result_types import Undefined
from trialwise.stats.toolbox.binomial_weights import raw_pmfs

#: Nothing here is public: the charts of this package are.

#: Counts less likely than this are left out: below a mean of 1e15 runs they change no digit that
#: is shown.
_NEVER = 1e-30
#: No longer mean run length is computed.
_LONGEST = 1e15

Moves: TypeAlias = Callable[[int], Mapping[int, float]]
"""From a state, the states one run can lead to and their probabilities."""


class _Removed(NamedTuple):
    """Where a removed state leads when it leaves the removed ones, and after how long."""

    start: float
    above: list[float]
    """Probabilities of the states above it, up to the last that can be reached."""
    time: float


def likely_counts(trials: int, p: float) -> list[tuple[int, float]]:
    """The counts of a binomial that can happen for all practical purposes, and their chances."""
    return [(k, weight) for k, weight in enumerate(raw_pmfs(trials, p)) if weight > _NEVER]


def mean_run_length(moves: Moves, limit: int) -> float | Undefined:
    """The mean number of runs from state 0 to a signal at `limit`."""
    mean = mean_run_lengths(moves, limit)[-1]
    if mean <= _LONGEST:
        return mean
    return Undefined(
        f"at this rate a signal is impossible or takes more than {_LONGEST:.0e} runs on average"
    )


def mean_run_lengths(moves: Moves, limit: int) -> list[float]:
    """The mean number of runs from state 0 to a signal, for the limits 1 … `limit`.

    Infinite where no run can reach the limit.
    """
    removed: list[_Removed] = []
    from_start = _spread(moves(0), limit)
    time = 1.0
    means = [_ratio(time, math.fsum(from_start[1:]))]
    for state in range(1, limit):
        this = _remove(moves(state), state, limit, removed)
        removed.append(this)
        weight = from_start[state]
        if weight:
            time += weight * this.time
            _add(from_start, state, weight, this)
        means.append(_ratio(time, math.fsum(from_start[state + 1 :])))
    return means


def alarm_probability(moves: Moves, limit: int, runs: int) -> float:
    """P(a signal within this many runs) from state 0: the forward recursion."""
    table = [
        [(target, weight) for target, weight in moves(state).items() if weight]
        for state in range(limit)
    ]
    alive, alarmed = [1.0] + [0.0] * (limit - 1), 0.0
    for _ in range(runs):
        following = [0.0] * limit
        for state, mass in enumerate(alive):
            if mass:
                for target, weight in table[state]:
                    if target < limit:
                        following[target] += mass * weight
                    else:
                        alarmed += mass * weight
        alive = following
    return min(alarmed, 1.0)


def smallest_limit(moves: Moves, arl: float, most: int) -> tuple[int, float] | None:
    """The smallest limit up to `most` with a mean run length of at least `arl`, and that length."""
    tried, reach = 0, min(16, most)
    while tried < most:
        means = mean_run_lengths(moves, reach)
        for limit, mean in enumerate(means, 1):
            if mean >= arl:
                return limit, mean
        tried, reach = reach, min(2 * reach, most)
    return None


def _spread(moves: Mapping[int, float], limit: int) -> list[float]:
    """Probabilities by state, everything from the limit on in the last place."""
    row = [0.0] * (limit + 1)
    for target, weight in moves.items():
        row[min(target, limit)] += weight
    return row


def _remove(
    moves: Mapping[int, float], state: int, limit: int, removed: list[_Removed]
) -> _Removed:
    """One more state removed: its row with the states removed before it followed through."""
    row = _spread(moves, limit)
    time = 1.0
    # A run takes a chart only so far down and up: outside, the row is empty.
    first = min((target for target in moves if target), default=state)
    last = min(max(moves), limit)
    for below in range(first, state):
        weight = row[below]
        if weight:
            through = removed[below - 1]
            time += weight * through.time
            last = max(last, below + len(through.above))
            _add(row, below, weight, through)
    above = row[state + 1 : last + 1]
    # The chance of leaving is summed, never taken as 1 minus the chance of staying.
    leaving = row[0] + math.fsum(above)
    if not leaving:
        return _Removed(0.0, [], math.inf)
    return _Removed(row[0] / leaving, [x / leaving for x in above], time / leaving)


def _add(row: list[float], state: int, weight: float, through: _Removed) -> None:
    """What led to a removed state leads where that one does."""
    row[0] += weight * through.start
    reach = slice(state + 1, state + 1 + len(through.above))
    row[reach] = [x + weight * y for x, y in zip(row[reach], through.above, strict=True)]


def _ratio(time: float, leaving: float) -> float:
    return time / leaving if leaving else math.inf
