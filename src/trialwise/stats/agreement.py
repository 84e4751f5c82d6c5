"""How far raters agree beyond chance: what a judge's verdicts are worth beside people's labels.

Its own module because agreement is about pairs of labels of one unit, not about trials. A rate of
agreement alone flatters: a judge that passes everything agrees with 95 % of labels where 95 % pass.
Krippendorff's alpha and Cohen's kappa take out what chance would give; the confusion counts are
what corrects a rate (`judge_correction`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal, TypeAlias

from trialwise import validation
from trialwise.decimals import as_written
from trialwise.errors import InvalidArgument
from trialwise.stats.result_types import Count, Interval, Undefined

MeasurementLevel: TypeAlias = Literal["nominal", "ordinal", "interval"]
"""What two different ratings differ by: that they do, by ranks, or by their distance squared."""

LEVELS: tuple[MeasurementLevel, ...] = ("nominal", "ordinal", "interval")

ALL_ALIKE = "all ratings are alike: nothing shows that they could have differed"

Ratings: TypeAlias = tuple[Any, ...]
Counts: TypeAlias = Mapping[Ratings, int]
"""How many units were rated so; the order of raters matters to kappa alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion:
    """A judge's verdicts beside the labels of people: the four counts.

    >>> Confusion(true_pass=45, false_pass=10, true_fail=40, false_fail=5).labels
    100
    """

    true_pass: int
    """Both say pass."""
    false_pass: int
    """The judge passes what people fail."""
    true_fail: int
    """Both say fail."""
    false_fail: int
    """The judge fails what people pass."""

    def __post_init__(self) -> None:
        for name in ("true_pass", "false_pass", "true_fail", "false_fail"):
            object.__setattr__(self, name, validation.require_count(name, getattr(self, name)))
        if not self.labels:
            raise InvalidArgument("confusion", self, "count at least one label")

    @property
    def labels(self) -> int:
        """How many units people labelled and the judge judged."""
        return self.true_pass + self.false_pass + self.true_fail + self.false_fail

    @property
    def good(self) -> int:
        """Units that people pass."""
        return self.true_pass + self.false_fail

    @property
    def bad(self) -> int:
        """Units that people fail."""
        return self.true_fail + self.false_pass

    @property
    def judged_rate(self) -> float:
        """The share of the labelled outputs that the judge passes."""
        return (self.true_pass + self.false_pass) / self.labels

    @property
    def swapped(self) -> Confusion:
        """The same labels with passes called fails: what bounds from below then does from above."""
        return Confusion(
            true_pass=self.true_fail,
            false_pass=self.false_fail,
            true_fail=self.true_pass,
            false_fail=self.false_pass,
        )

    @property
    def disagreements(self) -> int:
        """Units on which the judge and people differ."""
        return self.false_pass + self.false_fail


def confusion_of(judged: Sequence[bool], truth: Sequence[bool]) -> Confusion:
    """The confusion counts of a judge's verdicts beside people's labels, unit by unit.

    Parameters
    ----------
    judged, truth : sequence of bool
        judged[i] and truth[i] are about one unit. Equally long, at least one.

    Examples
    --------
    >>> confusion_of([True, True, False], [True, False, False])
    Confusion(true_pass=1, false_pass=1, true_fail=1, false_fail=0)
    """
    verdicts, labels = (
        validation.require_outcomes("judged", judged),
        validation.require_outcomes("truth", truth),
    )
    if len(verdicts) != len(labels):
        raise InvalidArgument("truth", truth, f"hold one label for each verdict ({len(verdicts)})")
    pairs = Counter(zip(verdicts, labels, strict=True))
    return Confusion(
        true_pass=pairs[True, True],
        false_pass=pairs[True, False],
        true_fail=pairs[False, False],
        false_fail=pairs[False, True],
    )


def krippendorff_alpha(
    units: Iterable[Sequence[Hashable]], *, level: MeasurementLevel = "nominal"
) -> float | Undefined:
    """Krippendorff's alpha: 1 − observed over expected disagreement (Krippendorff 2004, ch. 11).

    A unit with m ratings gives each of its ordered pairs the weight 1/(m − 1); expected is what all
    ratings of such units would disagree by if they were dealt out at random. 1 is full agreement,
    0 what chance gives, negative is systematic disagreement. Units with fewer than two ratings are
    left out, so any number of raters may miss any number of units.

    Parameters
    ----------
    units : sequence of units, each a sequence of ratings
        One rating from each rater, None where there is none.
    level : {"nominal", "ordinal", "interval"}
        How far apart two ratings are: different or not; the ratings between them, by rank; their
        distance. All squared. Ratings are numbers for the last two.

    Returns
    -------
    float or Undefined
        Undefined where no unit has two ratings, and where all ratings are alike: nothing then says
        that the raters could have told another one.

    Examples
    --------
    >>> round(krippendorff_alpha([(1, 1), (1, 1), (2, 2), (2, 1)]), 4)
    0.5333
    """
    return _alpha(_count_paired_units(units, level), level)


def krippendorff_alpha_interval(
    units: Iterable[Sequence[Hashable]],
    *,
    level: MeasurementLevel = "nominal",
    confidence: float = 0.95,
    resamples: Count = 1999,
    seed: Count,
) -> Interval | Undefined:
    """A bootstrap interval for alpha: units are drawn again with all their ratings.

    The r-th smallest and the r-th largest of B resampled alphas, r = ⌊(B + 1)(1 − confidence)/2⌋.
    Resamples in which alpha is undefined count as worse than any for the lower end and as better
    than any for the upper one. Without any disagreement resampling shows a point, which is not
    certainty: the interval is Undefined then.

    Parameters
    ----------
    units, level : as for `krippendorff_alpha`.
    confidence : float
        Strictly between 0 and 1.
    resamples : int
        B, large enough that (B + 1)(1 − confidence)/2 is at least 1.
    seed : int
        Fixes the draws, on every platform and Python version.

    Examples
    --------
    >>> units = [(True, True)] * 40 + [(False, False)] * 40 + [(True, False)] * 10
    >>> interval = krippendorff_alpha_interval(units, seed=7)
    >>> krippendorff_alpha(units) in interval
    True
    """
    counts = _count_paired_units(units, level)
    return _bootstrap(counts, lambda drawn: _alpha(drawn, level), confidence, resamples, seed=seed)


def cohen_kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | Undefined:
    """Cohen's kappa of two raters: (p_o − p_e)/(1 − p_e), chance by each rater's own rates.

    Nominal ratings only. Unlike alpha it takes the raters' different rates for granted, so that two
    raters who disagree about how much passes are charged less (Cohen 1960).

    Parameters
    ----------
    first, second : sequence of ratings
        first[i] and second[i] are about one unit. Equally long, at least one.

    Returns
    -------
    float or Undefined
        Undefined where both raters gave one and the same rating throughout.

    Examples
    --------
    >>> cohen_kappa([1, 1, 0, 0], [1, 0, 0, 0])
    0.5
    """
    return _kappa(Counter(_pairs(first, second)))


def cohen_kappa_interval(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    *,
    confidence: float = 0.95,
    resamples: Count = 1999,
    seed: Count,
) -> Interval | Undefined:
    """A bootstrap interval for kappa; parameters as for `krippendorff_alpha_interval`.

    Examples
    --------
    >>> first, second = [1] * 50 + [0] * 50, [1] * 45 + [0] * 55
    >>> cohen_kappa(first, second) in cohen_kappa_interval(first, second, seed=7)
    True
    """
    return _bootstrap(Counter(_pairs(first, second)), _kappa, confidence, resamples, seed=seed)


def _count_paired_units(units: Iterable[Sequence[Hashable]], level: MeasurementLevel) -> Counts:
    """The units with at least two ratings, counted by what they were rated."""
    validation.require_choice("level", level, LEVELS)
    allowed = "be a sequence of units, each a sequence of ratings"
    if isinstance(units, (str, bytes)) or not isinstance(units, Iterable):
        raise InvalidArgument("units", units, allowed)
    counts: Counter[Ratings] = Counter()
    for place, unit in enumerate(units):
        if isinstance(unit, (str, bytes)) or not isinstance(unit, Iterable):
            raise InvalidArgument(f"units[{place}]", unit, "be a sequence of ratings")
        ratings: Ratings = tuple(rating for rating in unit if rating is not None)
        if level != "nominal":
            ratings = tuple(validation.require_real(f"units[{place}]", one) for one in ratings)
        if len(ratings) > 1:
            counts[ratings] += 1
    return counts


def _pairs(first: Sequence[Hashable], second: Sequence[Hashable]) -> list[Ratings]:
    ones, others = list(first), list(second)
    if not ones:
        raise InvalidArgument("first", first, "hold at least one rating")
    if len(ones) != len(others):
        raise InvalidArgument("second", second, f"hold one rating for each of first ({len(ones)})")
    return list(zip(ones, others, strict=True))


def _alpha(units: Counts, level: MeasurementLevel) -> float | Undefined:
    totals: Counter[Any] = Counter()
    for unit, times in units.items():
        for rating in unit:
            totals[rating] += times
    ratings = sum(totals.values())
    if ratings == 0:
        return Undefined("no unit has two ratings")
    distance = _distance(level, totals)
    observed = math.fsum(
        times * _disagreement(Counter(unit), distance) / (len(unit) - 1)
        for unit, times in units.items()
    )
    expected = _disagreement(totals, distance)
    if expected == 0:
        return Undefined(ALL_ALIKE)
    return 1 - observed * (ratings - 1) / expected


def _disagreement(counts: Counter[Any], distance: Callable[[Any, Any], float]) -> float:
    """The distance summed over the ordered pairs of ratings."""
    kinds = list(counts)
    return 2 * math.fsum(
        counts[one] * counts[other] * distance(one, other)
        for place, one in enumerate(kinds)
        for other in kinds[place + 1 :]
    )


def _distance(level: MeasurementLevel, totals: Counter[Any]) -> Callable[[Any, Any], float]:
    if level == "nominal":
        return lambda one, other: float(one != other)
    if level == "interval":
        return lambda one, other: float((one - other) ** 2)
    # A rating's mid-rank: how many lie below it, and half of its own.
    middle: dict[Any, float] = {}
    below = 0
    for rating in sorted(totals):
        middle[rating] = below + totals[rating] / 2
        below += totals[rating]
    return lambda one, other: (middle[one] - middle[other]) ** 2


def _kappa(pairs: Counts) -> float | Undefined:
    units = sum(pairs.values())
    first: Counter[Any] = Counter()
    second: Counter[Any] = Counter()
    for (one, other), times in pairs.items():
        first[one] += times
        second[other] += times
    agreed = sum(times for (one, other), times in pairs.items() if one == other)
    chance = sum(first[rating] * second[rating] for rating in first)
    if chance == units * units:
        return Undefined("both raters gave one and the same rating throughout")
    return (agreed * units - chance) / (units * units - chance)


def _bootstrap(
    counts: Counts,
    statistic: Callable[[Counts], float | Undefined],
    confidence: float,
    resamples: Count,
    *,
    seed: Count,
) -> Interval | Undefined:
    level = validation.require_open_rate("confidence", confidence)
    B = validation.require_count("resamples", resamples, minimum=1)
    tail = (1 - as_written(level)) / 2
    rank = math.floor((B + 1) * tail)
    if rank < 1:
        needed = math.ceil(1 / tail) - 1
        raise InvalidArgument("resamples", resamples, f"be at least {needed} at this confidence")
    draw = Random(validation.require_count("seed", seed)).random
    observed = statistic(counts)
    if isinstance(observed, Undefined):
        return observed
    if all(len(set(unit)) == 1 for unit, times in counts.items() if times):
        return Undefined("no disagreement was seen, so resampling shows no spread")
    # In a fixed order, so that the order in which units are listed changes nothing. `random()`
    # alone is promised to repeat across Python versions; `choices` is not.
    kinds = sorted(counts, key=repr)
    units = [unit for unit in kinds for _ in range(counts[unit])]
    found = [statistic(Counter([units[int(draw() * len(units))] for _ in units])) for _ in range(B)]
    values = sorted(one for one in found if not isinstance(one, Undefined))
    unknown = B - len(values)
    if unknown >= rank:
        return Undefined(f"{unknown} of {B} resamples hold one rating only: label more units")
    return Interval(
        values[rank - 1 - unknown],
        values[len(values) - rank + unknown],
        confidence=level,
        method="bootstrap over units, percentile",
    )
