"""The one walk: count failures trial by trial until a boundary, at a true rate, exactly.

A rule is two boundaries on the number of failures, one entry for every number of trials, and
perhaps spans in between at which it gives up. Whatever stops early is one: sequential designs,
staged comparisons with a baseline, discordant pairs, looks at judged trials. The probabilities of
the counts that go on are carried from trial to trial over the band between the boundaries, O(cap ×
width), and every exact quantity is a sum over where the walk stops (Armitage, McPherson and Rowe
1969). Only lists and floats: a rule is used far more often than it is found, and using one must
not pay for an array library.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import NamedTuple, Protocol, TypeAlias

from trialwise.errors import InvalidArgument
from trialwise.stats.result_types import Decision
from trialwise.validation import require_rate


class Boundaries(Protocol):
    """A rule that looks after every trial: what decides at each number of failures."""

    @property
    def cap(self) -> int:
        """The most trials."""

    @property
    def accept(self) -> Sequence[int]:
        """The most failures that PASS after n = 0 … cap trials; −1 for none."""

    @property
    def reject(self) -> Sequence[int]:
        """The fewest failures that FAIL after n = 0 … cap trials; n + 1 for none."""

    @property
    def futile(self) -> Sequence[tuple[int, int]]:
        """The fewest and most failures at which the rule gives up, (n + 1, −1) for none; or ()."""


class Rule(NamedTuple):
    """The boundaries alone, as a search finds and changes them."""

    accept: list[int]
    reject: list[int]
    futile: Sequence[tuple[int, int]] = ()

    @property
    def cap(self) -> int:
        """The most trials."""
        return len(self.accept) - 1

    def until(self, last: int) -> Rule:
        """The same rule, cut after some trials."""
        return Rule(self.accept[: last + 1], self.reject[: last + 1], self.futile[: last + 1])

    @staticmethod
    def of(rule: Boundaries) -> Rule:
        """The boundaries of a design."""
        return Rule(list(rule.accept), list(rule.reject), rule.futile)


Stop: TypeAlias = tuple[int, int, float]
"""Trials, failures and the probability to stop there."""


class Stops(NamedTuple):
    """Where a rule stops at one true rate, by verdict."""

    passes: list[Stop]
    fails: list[Stop]
    inconclusive: list[Stop]


_NOWHERE = range(0)


class Row(NamedTuple):
    """The chances of `low`, `low` + 1, … failures after n trials, before the rule has looked."""

    n: int
    low: int
    chances: list[float]
    first: int
    """The first place that is no PASS."""
    end: int
    """The first place that is a FAIL."""
    futile: range
    """The places at which the rule gives up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingCharacteristic:
    """What a design does at one true rate, exactly.

    Examples
    --------
    >>> from trialwise.stats.sequential import SequentialDesign
    >>> curve = SequentialDesign.wald(0.90, 0.80, cap=50).operating_characteristic(0.90)
    >>> round(curve.passes, 3), round(curve.fails, 3), round(curve.inconclusive, 3)
    (0.747, 0.024, 0.229)
    >>> round(curve.mean_trials, 1), curve.quantile(0.95)
    (31.0, 50)
    """

    rate: float
    """The true rate p of a success."""
    passes: float
    """P(PASS)."""
    fails: float
    """P(FAIL)."""
    inconclusive: float
    """P(INCONCLUSIVE): the cap came before a verdict."""
    mean_trials: float
    """The expected number of trials (ASN)."""
    distribution: tuple[float, ...]
    """P(exactly n trials), n = 0 … cap."""

    def quantile(self, q: float) -> int:
        """The fewest trials n with P(at most n trials) ≥ q, up to rounding in the last digits.

        Parameters
        ----------
        q : float
            Between 0 and 1.
        """
        goal = require_rate("q", q) - 1e-12
        for n, reached in enumerate(accumulate(self.distribution)):
            if reached >= goal:
                return n
        return len(self.distribution) - 1

    @property
    def median_trials(self) -> int:
        """Half of all runs need at most this many trials."""
        return self.quantile(0.5)


def decision_at(rule: Boundaries, n: int, f: int) -> Decision | None:
    """Return the decision after n trials and f failures, or None where sampling goes on."""
    if f <= rule.accept[n]:
        return Decision.PASS
    if f >= rule.reject[n]:
        return Decision.FAIL
    gives_up = bool(rule.futile) and rule.futile[n][0] <= f <= rule.futile[n][1]
    return Decision.INCONCLUSIVE if n == rule.cap or gives_up else None


def look_at(rule: Boundaries, n: int, low: int, chances: list[float]) -> Row:
    """Part the states of a row by what the rule decides there."""
    size = len(chances)
    first = min(max(rule.accept[n] + 1 - low, 0), size)
    end = max(min(rule.reject[n] - low, size), first)
    if not rule.futile:
        return Row(n, low, chances, first, end, _NOWHERE)
    fewest, most = rule.futile[n]
    futile = range(max(first, fewest - low), min(end, most + 1 - low))
    return Row(n, low, chances, first, end, futile)


def keep_open(row: Row) -> tuple[int, list[float]]:
    """The states of a row that go on: the fewest failures, and the chances from there on."""
    _, low, chances, first, end, futile = row
    if futile:
        chances = chances.copy()
        for place in futile:
            chances[place] = 0.0
    return low + first, chances[first:end]


def walk(rule: Boundaries, p: float, start: tuple[int, int] = (0, 0)) -> Iterator[Row]:
    """Yield the row of every number of trials that a rule can get to at true rate p.

    Parameters
    ----------
    rule : Boundaries
    p : float
        The true rate of a success, 0 and 1 included.
    start : (int, int), optional
        The trials and failures so far, where the rule has not stopped.
    """
    q = 1 - p
    chances, (n, low) = [1.0], start
    for n in range(start[0] + 1, len(rule.accept)):
        chances = [p * x + q * y for x, y in zip([*chances, 0.0], [0.0, *chances], strict=True)]
        row = look_at(rule, n, low, chances)
        yield row
        low, chances = keep_open(row)
        if not chances:
            return


def stopping_probabilities(rule: Boundaries, p: float, start: tuple[int, int] = (0, 0)) -> Stops:
    """Where the rule stops at true rate p, with what probability; parameters as for `walk`."""
    stops, cap = Stops([], [], []), rule.cap
    for n, low, chances, first, end, futile in walk(rule, p, start):
        if first:
            stops.passes.extend([(n, low + j, w) for j, w in enumerate(chances[:first])])
        if end < len(chances):
            stops.fails.extend([(n, low + j, w) for j, w in enumerate(chances[end:], end)])
        left = range(first, end) if n == cap else futile
        stops.inconclusive.extend([(n, low + j, chances[j]) for j in left])
    return stops


def chance_to_decide(rule: Boundaries, p: float, start: tuple[int, int] = (0, 0)) -> float:
    """P(PASS or FAIL by the cap) at true rate p, given the trials and failures so far.

    Examples
    --------
    >>> rule = Rule([-1, -1, 0], [3, 3, 2])   # two trials; one failure leaves it open
    >>> chance_to_decide(rule, 0.9, start=(1, 0))
    0.9
    """
    stops = stopping_probabilities(rule, p, start)
    return math.fsum(weight for _, _, weight in (*stops.passes, *stops.fails))


def characteristic(rule: Boundaries, p: float) -> OperatingCharacteristic:
    """The operating characteristic of a rule at true rate p."""
    stops, distribution = stopping_probabilities(rule, p), [0.0] * len(rule.accept)
    for n, _, chance in chain.from_iterable(stops):
        distribution[n] += chance
    passes, fails, left = (math.fsum(chance for *_, chance in part) for part in stops)
    return OperatingCharacteristic(
        rate=p,
        passes=passes,
        fails=fails,
        inconclusive=left,
        mean_trials=math.fsum(n * w for n, w in enumerate(distribution)),
        distribution=tuple(distribution),
    )


def never(cap: int) -> Rule:
    """The rule that gives no verdict."""
    return Rule([-1] * (cap + 1), list(range(1, cap + 2)))


def prolong_rule(rule: Rule, looks: Sequence[int]) -> Rule:
    """A rule that has always decided by its last look, on a longer horizon."""
    longer = never(looks[-1])
    end = len(rule.accept) - 1
    for n in looks:
        longer.accept[n], longer.reject[n] = rule.accept[min(n, end)], rule.reject[min(n, end)]
    return longer


def monotone(rule: Rule, looks: Sequence[int]) -> Rule:
    """The same rule with the verdict of their neighbours for states that cannot be reached."""
    accept = -1
    for n in looks:
        accept = max(accept, rule.accept[n])
        rule.accept[n] = min(accept, n)
        rule.reject[n] = max(rule.reject[n], rule.accept[n] + 1)
    return rule


def orderly(boundary: Sequence[int], looks: Sequence[int]) -> bool:
    """Whether a boundary never falls from look to look."""
    return all(boundary[m] <= boundary[n] for m, n in pairwise(looks))


def reach(rule: Boundaries) -> tuple[tuple[int, int], ...]:
    """The fewest and most failures with which a run can get to n trials; an empty span for none."""
    spans = [(0, 0)]
    low, high = 0, 0
    for n in range(1, len(rule.accept)):
        high += 1 if low <= high else 0
        spans.append((low, high))
        low, high = max(low, rule.accept[n] + 1), min(high, rule.reject[n] - 1)
    return tuple(spans)


def check_boundaries(rule: Boundaries, looks: Sequence[int]) -> None:
    """Refuse boundaries that are no rule: lengths, verdicts between looks, disorder."""
    nothing = never(looks[-1])
    for name, boundary, none in (
        ("accept", rule.accept, nothing.accept),
        ("reject", rule.reject, nothing.reject),
    ):
        if len(boundary) != len(none):
            raise InvalidArgument(name, len(boundary), f"have {len(none)} entries, n = 0 … cap")
        if not all(type(entry) is int for entry in boundary):
            raise InvalidArgument(name, boundary, "be whole numbers")
        between = set(range(len(none))).difference(looks)
        if any(boundary[n] != none[n] for n in between):
            raise InvalidArgument(name, boundary, "give no verdict between looks")
        if not orderly(boundary, looks):
            raise InvalidArgument(name, boundary, "never fall from look to look")
    for n in looks:
        if not -1 <= rule.accept[n] < rule.reject[n] <= n + 1:
            value = (rule.accept[n], rule.reject[n])
            raise InvalidArgument("accept and reject", value, f"be in order after {n} trials")


def check_futile(rule: Boundaries, looks: Sequence[int]) -> None:
    """Refuse spans of failures to give up at that are not between the boundaries of a look.

    Once there is a span it stays: the runs below it may still PASS and those above it may still
    FAIL, which is what makes P(PASS) rise and P(FAIL) fall with the true rate.
    """
    if not rule.futile:
        return
    if len(rule.futile) != len(rule.accept):
        value, size = len(rule.futile), len(rule.accept)
        raise InvalidArgument("futile", value, f"have {size} entries, n = 0 … cap")
    looking, before = set(looks), (0, -1)
    for n, (low, high) in enumerate(rule.futile):
        if low > high:
            if n in looking and before[0] <= before[1]:
                raise InvalidArgument("futile", (low, high), f"not end before {n} trials")
            continue
        if n not in looking or not rule.accept[n] < low <= high < rule.reject[n]:
            raise InvalidArgument("futile", (low, high), f"lie between the boundaries of look {n}")
        if before[0] <= before[1] and (low > before[1] + 1 or high < before[0]):
            raise InvalidArgument("futile", (low, high), f"join the span before {n} trials")
        before = low, high
