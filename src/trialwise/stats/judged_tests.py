"""Exact one-sided tests of a rate that a judge measured, with the judge's own errors unknown.

People label m outputs, and the judge grades them too: `missed` are those that people pass and the
judge fails, `let through` those that people fail and the judge passes. The judge alone grades n
trials. Is the rate at which people would pass the trials above r? Three tests, by what carries over
from the labels to the trials:

- "rectifier": the two error shares, missed/m and let through/m. It estimates the rate by
  judged rate + (missed − let through)/m.
- "rogan-gladen": the judge's sensitivity and specificity. At a rate of r,
  judged rate − r · sensitivity − (1 − r) (1 − specificity) has the mean 0.
- "pooled": everything. The labelled outputs were drawn like the trials, so the labels are evidence
  of their own. It estimates the share of passes among n + m units: what people passed of the
  labels, what the judge passed of the trials, and the judge's net error scaled to the trials.

The statistic is the distance of the estimate from r in standard errors. The chance of one as large
as the one observed depends on the judge's two unknown error rates. Each test takes the largest
chance over a confidence set of these rates and adds the chance that the set misses them (Berger &
Boos 1994), so that a true rate of r or less is called "above r" with a probability of at most
alpha, for every judge. All chances are summed over all outcomes; no distribution is approximated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import accumulate
from operator import mul
from typing import Literal, Protocol, TypeAlias

from trialwise.stats.agreement import Confusion
from trialwise.stats.binomial import find_end, likely_counts
from trialwise.stats.rate_intervals import clopper_pearson
from trialwise.stats.unconditional import fisher_one_sided

Correction: TypeAlias = Literal["rectifier", "rogan-gladen", "pooled"]
"""How a judged rate is corrected."""

Range: TypeAlias = tuple[float, float]

#: Below this p-value the judge passes another share of the labels than of the trials.
UNLIKE = 0.01
#: The part of alpha that pays for the confidence set of the judge's error rates.
SET_SHARE = 0.02
#: Counts this much rarer than the likeliest are not summed; their chance counts as a rejection.
_NEGLIGIBLE = 1e-8
#: The grid of error rates has this many steps each way. Around its best point they are halved.
_STEPS, _HALVINGS = 4, 4
_AROUND = ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1))
#: Bounds on a rate are found with this precision.
_PRECISION = 4e-4
#: Counts of labels are summed in at most this many groups.
_MOST_GROUPS = 24


@dataclass(frozen=True, slots=True)
class JudgedTest:
    """The judged trials with the judge's labels, and the test that they are put to.

    >>> labels = Confusion(true_pass=208, false_pass=3, true_fail=26, false_fail=3)
    >>> test = JudgedTest(212, 250, labels, "rectifier")
    >>> test.shows_above(0.75, 0.05), test.shows_above(0.80, 0.05)
    (True, False)
    >>> JudgedTest(212, 250, labels, "pooled").shows_above(0.80, 0.05)
    True
    """

    passed: int
    trials: int
    labels: Confusion
    correction: Correction

    def chance(self, rate: float, errors: tuple[float, float]) -> float:
        """Return the chance of a statistic at least as large as this one.

        Args:
            rate: The true rate, at which people pass.
            errors: The shares of all units that are missed and let through, or for "rogan-gladen"
                sensitivity and specificity.
        """
        x, y = errors
        return _chances_of(self, rate, 0.01).chance_at(x, y)

    @property
    def estimate(self) -> float:
        """The corrected rate, which may lie outside of 0 to 1."""
        labels, judged = self.labels, self.passed / self.trials
        if self.correction == "rogan-gladen":
            if not labels.good or not labels.bad:
                return 0.0
            sensitivity, specificity = labels.true_pass / labels.good, labels.true_fail / labels.bad
            told_apart = sensitivity + specificity - 1
            return (judged + specificity - 1) / told_apart if told_apart > 0 else 0.0
        corrected = judged + (labels.false_fail - labels.false_pass) / labels.labels
        if self.correction == "rectifier":
            return corrected
        return (self.trials * corrected + labels.good) / (self.trials + labels.labels)

    def shows_above(self, rate: float, alpha: float) -> bool:
        """Return whether the true rate is shown to be above a rate, at level alpha."""
        return self.estimate > rate and _rejects(self, rate, alpha)

    def shows_below(self, rate: float, alpha: float) -> bool:
        """Return whether the true rate is shown to be below a rate, at level alpha."""
        return self._swapped().shows_above(1 - rate, alpha)

    def lower_bound(self, alpha: float) -> float:
        """Return the largest rate that the true rate is shown to be above, rounded down."""
        most = min(1.0, max(0.0, self.estimate))
        return find_end(most, 0.0, lambda rate: not self.shows_above(rate, alpha), _PRECISION)

    def upper_bound(self, alpha: float) -> float:
        """Return the smallest rate that the true rate is shown to be below, rounded up."""
        return 1 - self._swapped().lower_bound(alpha)

    def _swapped(self) -> JudgedTest:
        failed = self.trials - self.passed
        return JudgedTest(failed, self.trials, self.labels.swapped, self.correction)


def compare_labels(passed: int, trials: int, labels: Confusion) -> float:
    """Return the p-value of "the judge passes the same share of the labels and of the trials".

    By Fisher's exact test, twice the smaller side. Labels that were drawn like the trials give a
    p-value below 0.01 in at most 1 % of cases.

    >>> gold = Confusion(true_pass=208, false_pass=3, true_fail=26, false_fail=3)
    >>> compare_labels(150, 250, gold) < 0.01 < compare_labels(212, 250, gold)
    True
    """
    judged = labels.true_pass + labels.false_pass
    return min(
        1.0,
        2 * fisher_one_sided(judged, labels.labels, passed, trials),
        2 * fisher_one_sided(passed, trials, judged, labels.labels),
    )


@lru_cache(maxsize=4096)
def _rejects(test: JudgedTest, rate: float, alpha: float) -> bool:
    """Return whether every rate up to `rate` makes the statistic rarer than alpha."""
    for_set = SET_SHARE * alpha
    chances = _chances_of(test, rate, for_set)
    return chances.is_usable and _stays_below(chances, alpha - for_set)


def _chances_of(test: JudgedTest, rate: float, for_set: float) -> _Chances:
    make = _AccuracyChances if test.correction == "rogan-gladen" else _ErrorChances
    return make(test, rate, for_set)


def _stays_below(chances: _Chances, limit: float) -> bool:
    """Return whether the chance is at most the limit at every point of the set of rates.

    The largest chance is searched for on a grid, and then around the best point in ever smaller
    steps. The statistic is in standard errors, so the chance is nearly flat over the set, and the
    search cannot miss a narrow peak.
    """
    (x0, x1), (y0, y1) = chances.whole
    width, height = (x1 - x0) / _STEPS, (y1 - y0) / _STEPS
    # From the middle outward: a test that does not reject is usually found out there.
    order = sorted(range(_STEPS + 1), key=lambda place: abs(2 * place - _STEPS))
    best, place = 0.0, ((x0 + x1) / 2, (y0 + y1) / 2)
    for i in order:
        for j in order:
            x, y = x0 + i * width, y0 + j * height
            found = chances.chance_at(x, y)
            if found > limit:
                return False
            best, place = max((best, place), (found, (x, y)))
    for _ in range(_HALVINGS):
        width, height = width / 2, height / 2
        x, y = place
        for dx, dy in _AROUND:
            near = min(max(x + dx * width, x0), x1), min(max(y + dy * height, y0), y1)
            found = chances.chance_at(*near)
            if found > limit:
                return False
            best, place = max((best, place), (found, near))
    return True


class _Chances(Protocol):
    """The chance of a statistic at least as large as the observed one, by the judge's errors."""

    is_usable: bool
    """Whether the set holds only judges that the test can be used with."""
    whole: tuple[Range, Range]
    """The confidence set of the two error rates."""

    def chance_at(self, x: float, y: float) -> float:
        """Return the chance for a judge with these two error rates."""
        ...


class _ErrorChances:
    """For shares of all units: missed, which people pass, and let through, which people fail.

    With the two error counts given, the test asks for a total: the judged passes of the trials, and
    where the labels count as trials also those labels that people and the judge pass.
    """

    is_usable = True

    def __init__(self, test: JudgedTest, rate: float, for_set: float) -> None:
        labels, confidence = test.labels, 1 - for_set / 2
        self._n, self._m, self._rate = test.trials, labels.labels, rate
        self._counts_labels = test.correction == "pooled"
        missed = clopper_pearson(labels.false_fail, self._m, confidence=confidence)
        through = clopper_pearson(labels.false_pass, self._m, confidence=confidence)
        self.whole = (missed.low, missed.high), (through.low, through.high)
        error = self._standard_error(labels.false_fail, labels.false_pass)
        self._observed = (test.estimate - rate) / error
        self._needed = cache(self._find_needed)

    def _standard_error(self, b: int, c: int) -> float:
        """Return that of the estimate, at the rate in question and with these error counts.

        Half a label is added to each count, since no error among the labels does not mean that the
        judge makes none.
        """
        return error_of_shares(
            self._rate,
            (b + 0.5) / (self._m + 1),
            (c + 0.5) / (self._m + 1),
            labels=self._m,
            trials=self._n,
            is_pooled=self._counts_labels,
        )

    def _find_needed(self, b: int, c: int) -> int:
        """Return the least total that is as far from the rate as what was observed."""
        n, m = self._n, self._m
        at = self._rate + self._observed * self._standard_error(b, c)
        net = n * (b - c) / m
        total = (n + m) * at - b - net if self._counts_labels else n * at - net
        # Rounding may only add outcomes to the tail.
        return math.ceil(total - 1e-9 * (n + m))

    def chance_at(self, x: float, y: float) -> float:
        # People fail what is let through, so the rate can be no higher than the rest.
        missed, through, rate = x, y, min(self._rate, 1 - y)
        if missed > rate:
            return 0.0
        tail = _tail_of(self._n, min(rate - missed + through, 1.0))
        right = (rate - missed) / (1 - missed - through) if missed + through < 1 else 0.0
        of_rest = min(1.0, through / (1 - missed)) if missed < 1 else 0.0
        total, seen = 0.0, 0.0
        agreed: dict[int, tuple[int, list[float]]] = {}
        for b, weight in _group_counts(self._m, missed, upward=True):
            for c, other in _group_counts(self._m - b, of_rest, upward=False):
                chance = weight * other
                if chance < _NEGLIGIBLE:
                    continue
                seen += chance
                needed = self._needed(b, c)
                if self._counts_labels:
                    rest = self._m - b - c
                    if rest not in agreed:
                        agreed[rest] = likely_counts(rest, right, negligible=_NEGLIGIBLE)
                    total += chance * tail.of_sum(needed, *agreed[rest])
                else:
                    total += chance * tail(needed)
        return total + max(0.0, 1 - seen)


class _AccuracyChances:
    """For sensitivity and specificity, with the numbers of good and bad labels as they are."""

    def __init__(self, test: JudgedTest, rate: float, for_set: float) -> None:
        labels, confidence = test.labels, 1 - for_set / 2
        self._n, self._rate = test.trials, rate
        self._good, self._bad = labels.good, labels.bad
        sensitivity = clopper_pearson(labels.true_pass, labels.good, confidence=confidence)
        specificity = clopper_pearson(labels.true_fail, labels.bad, confidence=confidence)
        self.whole = (sensitivity.low, sensitivity.high), (specificity.low, specificity.high)
        # A judge that may be worse than chance would turn the direction of the test around.
        self.is_usable = sensitivity.low + specificity.low > 1
        expected, error = self._expect(labels.true_pass, labels.true_fail)
        self._observed = (test.passed / test.trials - expected) / error
        self._needed = cache(self._find_needed)

    def _judged(self, sensitivity: float, specificity: float) -> float:
        return self._rate * sensitivity + (1 - self._rate) * (1 - specificity)

    def _expect(self, right: int, caught: int) -> tuple[float, float]:
        """Return the judged rate that goes with the rate and these labels, and its standard error.

        Half a label of each kind is added for the error, as for `_ErrorChances`.
        """
        good, bad = self._good, self._bad
        error = error_by_class(
            self._rate,
            (right + 0.5) / (good + 1),
            (caught + 0.5) / (bad + 1),
            good=good,
            bad=bad,
            trials=self._n,
        )
        return self._judged(right / good, caught / bad), error

    def _find_needed(self, right: int, caught: int) -> int:
        expected, error = self._expect(right, caught)
        return math.ceil(self._n * (expected + self._observed * error - 1e-9))

    def chance_at(self, x: float, y: float) -> float:
        tail = _tail_of(self._n, self._judged(x, y))
        others = _group_counts(self._bad, y, upward=True)
        total, seen = 0.0, 0.0
        for right, weight in _group_counts(self._good, x, upward=False):
            for caught, other in others:
                chance = weight * other
                if chance >= _NEGLIGIBLE:
                    seen += chance
                    total += chance * tail(self._needed(right, caught))
        return total + max(0.0, 1 - seen)


def _group_counts(n: int, rate: float, *, upward: bool) -> list[tuple[int, float]]:
    """Return the likely counts with their chances, neighbours together where there are many.

    A group stands at its largest count (`upward`) or at its smallest, whichever makes the statistic
    larger: the sum is then a little too large, which keeps the level. Only large numbers of labels
    are grouped, where the standard error hardly changes within a group.
    """
    first, weights = likely_counts(n, rate, negligible=_NEGLIGIBLE)
    size = -(-len(weights) // _MOST_GROUPS)
    if size == 1:
        return list(enumerate(weights, first))
    return [
        (first + (min(start + size, len(weights)) - 1 if upward else start), sum(group))
        for start in range(0, len(weights), size)
        if (group := weights[start : start + size])
    ]


class _Tail:
    """P(X ≥ k) for every count k of n trials."""

    def __init__(self, n: int, rate: float) -> None:
        self._first, weights = likely_counts(n, rate, negligible=_NEGLIGIBLE)
        tails = list(accumulate(reversed(weights)))
        lost = max(0.0, 1 - tails[-1])
        self._tails = [one + lost for one in reversed(tails)]
        self._lost = lost

    def __call__(self, k: int) -> float:
        place = k - self._first
        if place <= 0:
            return 1.0
        return self._tails[place] if place < len(self._tails) else self._lost

    def of_sum(self, k: int, first: int, weights: list[float]) -> float:
        """Return P(X + Y ≥ k) for an independent count Y, given by its likely values."""
        start = k - first - self._first
        # Y at place i leaves `start - i` for X, counted from its own first likely value.
        low = min(len(weights), max(0, start - len(self._tails) + 1))
        high = min(len(weights), max(low, start))
        tails = self._tails[start - high + 1 : start - low + 1]
        between: float = sum(map(mul, weights[low:high], reversed(tails)))
        lost = max(0.0, 1 - sum(weights))
        return between + sum(weights[high:]) + lost + self._lost


_tail_of: Callable[[int, float], _Tail] = lru_cache(maxsize=16)(_Tail)


# --- Standard errors of a rate that is corrected for a judge's errors -----------------------------
#
# The exact tests measure distances in them, and plans are made by them.


def error_of_shares(
    rate: float, missed: float, through: float, *, labels: int, trials: int, is_pooled: bool
) -> float:
    """The standard error of a rate that is corrected by the shares of a judge's two errors.

    A unit that people label counts for what people say less what the judge says, the latter by the
    weight of the trials: 1, or their share of all units where the labels count as trials.

    Parameters
    ----------
    rate : float
        The true rate.
    missed, through : float
        The shares of all units that the judge misses and lets through.
    labels, trials : int
        How many of each, at least 1.
    is_pooled : bool
        Whether the labels count as trials.

    Examples
    --------
    >>> error_of_shares(0.9, 0, 0, labels=50, trials=100, is_pooled=False)
    0.03
    """
    judged = min(max(rate - missed + through, 0.0), 1.0)
    weight = trials / (trials + labels) if is_pooled else 1.0
    right = max(rate - missed, 0.0)
    mean = (1 - weight) * right + missed - weight * through
    spread = (1 - weight) ** 2 * right + missed + weight**2 * through - mean**2
    return math.sqrt(weight**2 * judged * (1 - judged) / trials + max(spread, 0.0) / labels)


def error_by_class(
    rate: float, sensitivity: float, specificity: float, *, good: float, bad: float, trials: int
) -> float:
    """The standard error of judged rate − rate · sensitivity − (1 − rate) (1 − specificity).

    Parameters
    ----------
    rate : float
        The true rate.
    sensitivity, specificity : float
        The judge's accuracies.
    good, bad : float
        The numbers of labels that pass and that fail, above 0.
    trials : int
        At least 1.

    Examples
    --------
    >>> error_by_class(0.9, 1, 1, good=40, bad=10, trials=100)
    0.03
    """
    judged = rate * sensitivity + (1 - rate) * (1 - specificity)
    variance = judged * (1 - judged) / trials + rate**2 * sensitivity * (1 - sensitivity) / good
    variance += (1 - rate) ** 2 * specificity * (1 - specificity) / bad
    return math.sqrt(variance)
