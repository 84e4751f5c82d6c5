"""Rules between two rules: one boundary follows the one up to some trial, then the other.

The state at the cap that lies on a boundary can hold a tenth of an error, so that of two rules at
neighbouring prices one exceeds its level and the other leaves much of it unused. Changing over from
one to the other at some trial fills the jump, since each trial more adds a little. There are two
such families. Where failures are rare, the FAIL boundary moves in small steps if the looser rule
comes first: a run that has nearly enough failures by then FAILs without the last one. The PASS
boundary moves in small steps if the stricter rule comes first: it gives up runs whose last failure
came too early. Where one family still leaves a jump, the other goes on from there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from trialwise.stats.sequential.hypotheses import Hypotheses
from trialwise.stats.sequential.relaxation import Column
from trialwise.stats.sequential.strict_problem import (
    StrictProblem,
    StrictRule,
    evaluate_strict,
    order_boundaries,
)

#: The most rules that are tried, and the share of an error that may stay unused.
MOST_TRIED, UNUSED = 12, 0.008
#: The part of the way between two trials that a step goes at least, and at most.
SHORTEST, LONGEST = 0.1, 0.9


class Brackets(NamedTuple):
    """For each error a rule that keeps its level and one that exceeds it."""

    fails: tuple[Column[StrictRule], Column[StrictRule]]
    passes: tuple[Column[StrictRule], Column[StrictRule]]


class _Edge(NamedTuple):
    """One boundary of a rule, and where on its side the rule gives up, by trials."""

    verdicts: list[int]
    futile: list[int]

    def follow(self, n: int, after: _Edge) -> _Edge:
        """This boundary up to n trials, another one from then on."""
        return _Edge(
            [*self.verdicts[: n + 1], *after.verdicts[n + 1 :]],
            [*self.futile[: n + 1], *after.futile[n + 1 :]],
        )


class _Mark(NamedTuple):
    """At how many of the last places the second boundary is followed, and the error then."""

    places: int
    error: float


@dataclass(slots=True)
class _Splice:
    """The search for the look at which one boundary changes over."""

    level: float
    looks: Sequence[int]
    strict: _Edge
    loose: _Edge
    errors: tuple[float, float]
    """The errors of the strict and of the loose boundary."""
    loose_first: bool
    families: int = 2
    """How many are left to be tried."""
    kept: _Mark = field(init=False)
    broken: _Mark = field(init=False)
    places: list[int] = field(init=False)
    """The looks at which the two boundaries differ."""
    now: int = field(init=False)
    same_side: int = field(init=False)

    def __post_init__(self) -> None:
        self._restart()

    @property
    def edge(self) -> _Edge:
        """The boundary that is tried."""
        return self._edge_at(self.now)

    @property
    def kept_edge(self) -> _Edge:
        """The boundary nearest to the level that keeps it."""
        return self._edge_at(self.kept.places)

    def move(self, error: float) -> bool:
        """Take in the error of the boundary that is tried; False after choosing another."""
        if (1 - UNUSED) * self.level <= error <= self.level:
            return True
        if error > self.level:
            self.same_side = max(1, self.same_side + 1)
            self.broken = _Mark(self.now, error)
        else:
            self.same_side = min(-1, self.same_side - 1)
            self.kept = _Mark(self.now, error)
        if abs(self.kept.places - self.broken.places) > 1:
            self._choose()
            return False
        if self.families == 1:
            self.now = self.kept.places
            return error <= self.level
        self.families -= 1
        self.strict, self.errors = self.kept_edge, (self.kept.error, self.errors[1])
        self.loose_first = not self.loose_first
        self._restart()
        return False

    def _restart(self) -> None:
        one, other = zip(*self.strict, strict=True), zip(*self.loose, strict=True)
        differ = [a != b for a, b in zip(one, other, strict=True)]
        self.places = [n for n in self.looks if differ[n]]
        ends = (len(self.places), 0) if self.loose_first else (0, len(self.places))
        self.kept, self.broken = map(_Mark, ends, self.errors)
        self.same_side = 0
        self._choose()

    def _choose(self) -> None:
        """Go on between the marks: most of a jump happens at the last few places."""
        (kept, least), (broken, most) = self.kept, self.broken
        share = ((1 - UNUSED / 2) * self.level - least) / (most - least) if most > least else 0.5
        if abs(self.same_side) > 1:  # one of the marks has not moved for a while
            share = 0.5
        start, end = math.log1p(kept), math.log1p(broken)
        place = start + min(LONGEST, max(SHORTEST, share)) * (end - start)
        low, high = sorted((kept, broken))
        self.now = min(high - 1, max(low + 1, round(math.expm1(place)))) if high - low > 1 else kept

    def _edge_at(self, places: int) -> _Edge:
        first, second = (self.loose, self.strict) if self.loose_first else (self.strict, self.loose)
        before = len(self.places) - places
        return first.follow(self.places[before - 1] if before else 0, second)


def splice_rules(
    problem: StrictProblem, hypotheses: Hypotheses, brackets: Brackets
) -> Iterator[Column[StrictRule]]:
    """Rules whose two boundaries change over, each at its own look, ever nearer to both levels."""
    rare_failures = problem.rate >= 0.5
    strict, loose = brackets.fails
    fail = _Splice(
        hypotheses.alpha,
        problem.looks,
        _get_fail_edge(strict.rule),
        _get_fail_edge(loose.rule),
        errors=(strict.error0, loose.error0),
        loose_first=rare_failures,
    )
    strict, loose = brackets.passes
    passed = _Splice(
        hypotheses.beta,
        problem.looks,
        _get_pass_edge(strict.rule),
        _get_pass_edge(loose.rule),
        errors=(strict.error1, loose.error1),
        loose_first=not rare_failures,
    )
    for _ in range(MOST_TRIED):
        column = evaluate_strict(problem, _join(problem, fail.edge, passed.edge))
        yield column
        if all([fail.move(column.error0), passed.move(column.error1)]):
            return
    yield evaluate_strict(problem, _join(problem, fail.kept_edge, passed.kept_edge))


def _get_fail_edge(rule: StrictRule) -> _Edge:
    return _Edge(rule.reject, [high for _, high in rule.futile])


def _get_pass_edge(rule: StrictRule) -> _Edge:
    return _Edge(rule.accept, [low for low, _ in rule.futile])


def _join(problem: StrictProblem, fail: _Edge, passed: _Edge) -> StrictRule:
    futile = list(zip(passed.futile, fail.futile, strict=True))
    return order_boundaries(passed.verdicts.copy(), fail.verdicts.copy(), futile, problem.looks)
