"""Covering every pair of features with few suites, and counting the pairs that were seen.

Greedy, as in AETG: each suite starts with a pair that nobody has seen, and takes the features that
add most unseen pairs. Features that a suite cannot have together are left out of it. Where a pair
is refused beside everything that it is tried with, the two are refused together, and counted so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from random import Random

from tests.meetings.features import Feature, Pair, list_features, make_pair
from tests.meetings.made_suites import BASES, MadeSuite, is_possible

#: Whether a suite can be run; a suite that is refused beforehand cannot.
Admits = Callable[[MadeSuite], bool]

#: How many further features are tried for a place in a suite.
_CANDIDATES = 12


@dataclass
class PairCount:
    """The pairs of features that can meet, and what became of them."""

    possible: int
    run: set[Pair] = field(default_factory=set)
    refused: set[Pair] = field(default_factory=set)
    """Pairs that are refused in every suite that was tried."""

    def __str__(self) -> str:
        seen = len(self.run) + len(self.refused)
        return (
            f"{seen:,} of {self.possible:,} pairs of features seen: {len(self.run):,} in runs, "
            f"{len(self.refused):,} refused together"
        )


def list_pairs(features: Iterable[Feature]) -> list[Pair]:
    """List the pairs of features that a suite can have."""
    pairs = (make_pair(*both) for both in combinations(features, 2))
    return [one for one in pairs if is_possible(one)]


def cover_pairs(
    admits: Admits, *, suites: int, size: int, seed: int, counted: PairCount | None = None
) -> Iterator[MadeSuite]:
    """Yield suites that can be run, so that many pairs of features meet in few of them.

    Args:
        admits: Whether a suite can be run.
        suites: The largest number of suites.
        size: The largest number of features of a suite.
        seed: Seeds the order in which pairs are tried.
        counted: Takes the pairs that were seen.
    """
    features = list_features()
    random = Random(seed)
    open_pairs = list_pairs(features)
    random.shuffle(open_pairs)
    unseen = dict.fromkeys(open_pairs)
    counted = PairCount(len(unseen)) if counted is None else counted
    made = 0
    while unseen and made < suites:
        pair = next(iter(unseen))
        started = next((one for one in _list_starts(pair) if admits(one)), None)
        if started is None:
            del unseen[pair]
            counted.refused.add(pair)
            continue
        suite = _grow(started, features, unseen, admits, size=size, random=random)
        for one in suite.pairs:
            unseen.pop(one, None)
            counted.run.add(one)
        made += 1
        yield suite


def _list_starts(pair: Pair) -> Iterator[MadeSuite]:
    """List the smallest suites that have two features."""
    for base in BASES:
        yield MadeSuite(pair).plus(*base)


def _grow(
    suite: MadeSuite,
    features: list[Feature],
    unseen: dict[Pair, None],
    admits: Admits,
    *,
    size: int,
    random: Random,
) -> MadeSuite:
    """Return a suite with further features, each with as many unseen pairs as can be found."""
    refused: set[Feature] = set()
    while len(suite.features) < size:
        free = [one for one in features if one not in refused and not suite.has(one)]
        drawn = random.sample(free, min(_CANDIDATES, len(free)))
        gains = {one: _count_unseen(one, suite, unseen) for one in drawn}
        best = max(drawn, key=lambda one: gains[one], default=None)
        if best is None or not gains[best]:
            break
        larger = suite.plus(best)
        if admits(larger):
            suite = larger
        else:
            refused.add(best)
    return suite


def _count_unseen(one: Feature, suite: MadeSuite, unseen: dict[Pair, None]) -> int:
    return sum(make_pair(one, other) in unseen for other in suite.features)
