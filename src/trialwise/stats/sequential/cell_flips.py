"""Flips: every change of one boundary state of a rule, with its exact effect.

Making one state stop instead of going on (or the reverse) moves the two errors and the objective by

    reach(state) × (what the new action leads to − what the old one led to),

exactly. One walk forward gives the reach and one walk back what going on leads to, for all states
at once. As in the backward induction everything is relative to the likelihood under p0.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from trialwise.stats.sequential.induction import Problem
from trialwise.stats.sequential.walks import Rule


class Change(NamedTuple):
    """An objective and two errors, or a difference of them."""

    objective: float
    error0: float
    error1: float


class Flip(NamedTuple):
    """Boundary moves (look, change of accept, change of reject), and what they change."""

    moves: tuple[tuple[int, int, int], ...]
    change: Change


class Slice(NamedTuple):
    """What is still to come from a run of failure counts at one look, part by part."""

    low: int
    objective: list[float]
    error0: list[float]
    error1: list[float]

    def at(self, f: int) -> Change:
        """What is still to come from f failures."""
        j = f - self.low
        return Change(self.objective[j], self.error0[j], self.error1[j])


def flips(problem: Problem, rule: Rule) -> Iterator[Flip]:
    """Every flip of one boundary state that can be reached and leaves the boundaries in order."""
    reach = _reach_states(problem, rule)
    ahead = problem.horizon + 1
    for (n, going_on), before in zip(
        _going_on(problem, rule), (*problem.looks[-2::-1], 0), strict=True
    ):
        low, weights = reach[n]
        accept, reject = rule.accept[n], rule.reject[n]
        for f, up, out in _candidates(problem, n, accept, reject):
            orderly = rule.reject[before] <= reject + out <= ahead
            if orderly and low <= f < low + len(weights):
                old = _verdict(problem, n, f, accept, reject) or going_on.at(f)
                new = _verdict(problem, n, f, accept + up, reject + out) or going_on.at(f)
                change = (weights[f - low] * (x - y) for x, y in zip(new, old, strict=True))
                yield Flip(((n, up, out),), Change(*change))
        ahead = reject


def _candidates(
    problem: Problem, n: int, accept: int, reject: int
) -> Iterator[tuple[int, int, int]]:
    """The boundary states of a look, with the boundary moves that flip them."""
    # Without an open end the two boundaries touch at the last look and can only move together.
    both = 1 if n == problem.horizon and problem.undecided is None else 0
    yield accept, -1, -both
    yield reject, both, 1
    if accept + 1 < reject:
        yield accept + 1, 1, 0
        yield reject - 1, 0, -1


def _verdict(problem: Problem, n: int, f: int, accept: int, reject: int) -> Change | None:
    """What a state that stops leads to; None where it goes on."""
    if f <= accept:
        return Change(0.0, 0.0, problem.bad(n, f))
    if f >= reject:
        return Change(0.0, 1.0, 0.0)
    if n == problem.horizon:
        return Change((problem.undecided or 0.0) * problem.weight(n, f), 0.0, 0.0)
    return None


def _reach_states(problem: Problem, rule: Rule) -> dict[int, tuple[int, list[float]]]:
    """For each look, the fewest failures that can be reached and the probabilities under p0."""
    p, q = problem.p0, 1 - problem.p0
    found: dict[int, tuple[int, list[float]]] = {n: (0, []) for n in problem.looks}
    band, low = [1.0], 0
    for n in range(1, problem.horizon + 1):
        band = [p * x + q * y for x, y in zip([*band, 0.0], [0.0, *band], strict=True)]
        if n in found:
            found[n] = (low, band)
            passed = max(0, rule.accept[n] + 1 - low)
            band, low = band[passed : max(passed, rule.reject[n] - low)], low + passed
            if not band:
                break
    return found


def _going_on(problem: Problem, rule: Rule) -> Iterator[tuple[int, Slice]]:
    """For each look from the last, what going on leads to, one state beyond the boundaries too."""
    n = problem.horizon
    inner = range(rule.accept[n] + 1, rule.reject[n])
    price = problem.undecided or 0.0
    cost = [price * w for w in problem.weights(n, inner.start, len(inner))]
    after = Slice(inner.start, cost, [0.0] * len(inner), [0.0] * len(inner))
    yield n, after
    for look in problem.looks[-2::-1]:
        low, high = max(0, rule.accept[look]), min(look, rule.reject[look])
        ahead = _with_verdicts(problem, rule, after, n, range(low, high + n - look + 1))
        after = _roll_back(problem, ahead, look, n)
        yield look, after
        n = look


def _with_verdicts(problem: Problem, rule: Rule, after: Slice, n: int, failures: range) -> Slice:
    """What some states of a look lead to, verdicts included."""
    passed = range(failures.start, min(rule.accept[n] + 1, failures.stop))
    failed = len(range(max(rule.reject[n], failures.start), failures.stop))
    start = max(failures.start, rule.accept[n] + 1) - after.low
    stop = max(start, min(failures.stop, rule.reject[n]) - after.low)
    none, lost = [0.0] * len(passed), [0.0] * failed
    return Slice(
        failures.start,
        [*none, *after.objective[start:stop], *lost],
        [*none, *after.error0[start:stop], *([1.0] * failed)],
        [*(problem.bad(n, f) for f in passed), *after.error1[start:stop], *lost],
    )


def _roll_back(problem: Problem, ends: Slice, look: int, following: int) -> Slice:
    p, q = problem.p0, 1 - problem.p0
    low, cost, e0, e1 = ends
    for n in range(following - 1, look - 1, -1):
        row = problem.weights(n, low, len(cost) - 1)
        cost = [w + (p * x + q * y) for w, x, y in zip(row, cost, cost[1:], strict=False)]
        e0 = [p * x + q * y for x, y in pairwise(e0)]
        e1 = [p * x + q * y for x, y in pairwise(e1)]
    return Slice(low, cost, e0, e1)
