"""A gate's number and how sure it is: an interval of what it estimates, or why there is none.

Valid at any number of runs, and therefore wide at few. They decide nothing: a gate that passes
with an interval far below its limit says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from trialwise.model.trial import Trial
from trialwise.procedures.metrics import UNREACHED, Reach, mean_interval, mean_of
from trialwise.stats.bounded_means import bounded_variance_interval, weighted_mean_interval
from trialwise.stats.rate_intervals import clopper_pearson
from trialwise.stats.result_types import Interval, Undefined

_BIASED = Undefined(
    "the figure of a few runs is biased, so that its mean over inputs is not the population's"
)


COUNTED = Undefined("it is a count of these runs and estimates nothing")


def early(found: Interval | Undefined) -> Interval | Undefined:
    """Return the interval of runs that are not all that were planned."""
    return found if isinstance(found, Undefined) else found.after_early_stop()


def percent(found: Interval | Undefined, *, of: float = 100) -> Interval | Undefined:
    """Return the same, of a hundred or of another whole."""
    if isinstance(found, Undefined):
        return found
    return replace(found, low=of * found.low, high=of * found.high)


def mapped_interval(
    tasks: Sequence[tuple[int, int]],
    figure: Callable[[float], float],
    *,
    confidence: float,
    reach: Reach,
    name: str,
) -> Interval | Undefined:
    """Bound a figure of the rate that is 1 at one half and falls to 0 on both sides alike.

    A mean over these inputs: the exact interval of each input's rate, mapped, each at its share of
    the error. Over a population there is none, since the figure of a few runs is biased.

    Args:
        tasks: (trials, passed) of each input.
        figure: Of a rate.
        confidence: The confidence of the whole.
        reach: What it is about.
        name: The name of the figure, for the method.
    """
    if reach is Reach.NOTHING:
        return UNREACHED
    if reach is Reach.POPULATION:
        return _BIASED
    each = 1 - (1 - confidence) / len(tasks)
    parts = []
    for trials, passed in tasks:
        rate = clopper_pearson(passed, trials, confidence=each)
        ends = [figure(end) for end in rate]
        parts.append((min(ends), 1.0 if 0.5 in rate else max(ends)))
    return _average_ends(parts, confidence, f"{name} of clopper-pearson")


def position_weighted_interval(
    lengths: Sequence[int], mean: float, *, confidence: float, reach: Reach
) -> Interval | Undefined:
    """Bound the mean of rates in which run i of an input counts i times.

    Args:
        lengths: Runs of each input.
        mean: What was observed, from 0 to 1.
        confidence: The confidence of the interval.
        reach: What it is about.
    """
    if reach is not Reach.INPUTS:
        return mean_interval(mean, len(lengths), 1, confidence=confidence, reach=reach)
    weights = [2 * place / (runs * (runs + 1)) for runs in lengths for place in range(1, runs + 1)]
    return weighted_mean_interval(mean, weights, confidence=confidence)


def variance_interval(
    scores: Sequence[Sequence[float]], *, confidence: float, reach: Reach
) -> Interval | Undefined:
    """Bound the variance between runs of one input, as a mean over inputs.

    Args:
        scores: The scores of each input's runs, at least two.
        confidence: The confidence of the whole.
        reach: What it is about.
    """
    if reach is not Reach.INPUTS:
        return _sample_variance_interval(scores, confidence, reach)
    each = 1 - (1 - confidence) / len(scores)
    parts: list[Interval] = []
    for mine in scores:
        part = bounded_variance_interval(mine, confidence=each)
        if isinstance(part, Undefined):
            return part
        parts.append(part)
    return _average_ends(parts, confidence, "bounded variance")


def _sample_variance_interval(
    scores: Sequence[Sequence[float]], confidence: float, reach: Reach
) -> Interval | Undefined:
    from statistics import variance

    # The sample's, which is unbiased, and at most n/(n−1) times a quarter.
    fewest = min(map(len, scores))
    most = fewest / (4 * (fewest - 1))
    share = min(1.0, mean_of([*map(variance, scores)]) / most)
    found = mean_interval(share, len(scores), 1, confidence=confidence, reach=reach)
    if isinstance(found, Undefined):
        return found
    return replace(found, low=most * found.low, high=min(0.25, most * found.high))


def _average_ends(parts: Sequence[Iterable[float]], confidence: float, method: str) -> Interval:
    lows, highs = zip(*parts, strict=True)
    several = ", each input at its share" if len(parts) > 1 else ""
    return Interval(
        mean_of(lows),
        mean_of(highs),
        confidence=confidence,
        method=f"{method}{several}",
    )


Runs: TypeAlias = Mapping[str, Sequence[Trial]]
"""The runs that count, by input, in the order of inputs; an input without any has none."""


class Measured(NamedTuple):
    """A target's number."""

    value: float | Undefined
    interval: Interval | Undefined


def outcomes_of(runs: Sequence[Trial], criteria: Sequence[str]) -> list[bool]:
    """Return whether each run passed all of some criteria."""
    return [all(trial.outcome(name).passed for name in criteria) for trial in runs]
