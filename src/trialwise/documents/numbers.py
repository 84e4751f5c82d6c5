"""Numbers as people read them, and phrases that every page says in the same way.

One home, so that the terminal, the page and the charts never write one thing in two ways.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0


def as_percent(rate: float) -> str:
    """Write a rate that was given, without digits nobody wrote.

    >>> as_percent(0.9), as_percent(0.975), as_percent(0.999999999)
    ('90 %', '97.5 %', '99.9999999 %')
    """
    short = f"{100 * rate:.6g}"
    # A rate just below 1 is not certainty.
    return f"{100 * rate:.12g} %" if short == "100" and rate != 1 else f"{short} %"


def as_level(value: float) -> str:
    """Write a level that was given or shared out, to a hundredth of a percent.

    >>> as_level(0.05), as_level(0.05 / 3)
    ('5 %', '1.67 %')
    """
    return as_percent(round(value, 4)) if value >= 0.0001 else as_percent(value)


def as_points(difference: float) -> str:
    """Write a difference between two rates, which is no percentage of either.

    >>> as_points(0.03), as_points(0.01)
    ('3 points', '1 point')
    """
    # Points and not percent: "5 % worse" of 90 % might as well be 85.5 %.
    value = f"{100 * difference:.6g}"
    return f"{value} point{'' if value == '1' else 's'}"


def floor_points(difference: float) -> float:
    """Return a difference in points, rounded down so that a bound still holds.

    >>> floor_points(0.0567), floor_points(-0.0567)
    (5.6, -5.7)
    """
    # Rounded to the nearest, a bound of 5.67 would claim 5.7.
    return math.floor(1000 * difference) / 10


def word_loss(low: float, confidence: float | None) -> str:
    """Word what a PASS leaves possible: how far a rate may lie below its baseline's.

    >>> word_loss(-0.154, 0.95)
    'may still be up to 15.4 points worse (95 %)'
    """
    level = "" if confidence is None else f" ({as_percent(confidence)})"
    points = floor_points(low)
    if points > 0:
        return f"is at least {points:.1f} points better{level}"
    return f"may still be up to {abs(points):.1f} points worse{level}"


def as_signed_points(difference: float, *, digits: int | None = None) -> str:
    """Write a difference between two rates in points, with its sign; 0 has none.

    Args:
        difference: Of two rates.
        digits: How many decimals are written; as many as a round value needs where not given.

    >>> as_signed_points(0.05), as_signed_points(-0.0821, digits=1), as_signed_points(0.0)
    ('+5', '−8.2', '0')
    """
    text = f"{100 * difference:+.4g}" if digits is None else f"{100 * difference:+.{digits}f}"
    return text.lstrip("+-") if not float(text) else text.replace("-", "−")


def as_probability(value: float, *, digits: int = 2) -> str:
    """Write a probability that was computed; never a 0 or 100 % that it is not.

    >>> as_probability(0.0499948), as_probability(1e-9), as_probability(0.0)
    ('5.00 %', '<0.01 %', '0 %')
    """
    least = 10.0**-digits
    # Only what is exactly 0 or 1 is certain; a tiny error rate is not.
    if value in (0.0, 1.0):
        return f"{100 * value:.0f} %"
    if 100 * value < least / 2:
        return f"<{least:.{digits}f} %"
    if 100 * (1 - value) < least / 2:
        return f">{100 - least:.{digits}f} %"
    return f"{100 * value:.{digits}f} %"


def as_mean_trials(value: float) -> str:
    """Write a mean number of trials.

    >>> as_mean_trials(36.838), as_mean_trials(4321.5)
    ('36.8', '4322')
    """
    return f"{value:.1f}" if value < 999.95 else f"{value:.0f}"


def as_money(usd: float) -> str:
    """Dollars.

    >>> as_money(0.7368), as_money(1234.5), as_money(0.00074)
    ('$0.74', '$1,234', '$0.00074')
    """
    # From the first value that two decimals would round up to $1,000.00.
    if usd >= 999.995:
        return f"${usd:,.0f}"
    if usd >= 0.095:
        return f"${usd:.2f}"
    return f"${_plain(usd)}"


def as_duration(seconds: float) -> str:
    """Write a time, in the unit that keeps it short.

    >>> [as_duration(s) for s in (0.32, 4.25, 43, 440, 12_000, 500_000)]
    ['320 ms', '4.2 s', '43 s', '7.3 min', '3.3 h', '5.8 days']
    """
    unit, name = _unit(seconds)
    return f"{_short(seconds / unit)} {name}"


def as_duration_spread(mean: float, p95: float) -> str:
    """Write a mean time with its 95th percentile, in one unit.

    >>> as_duration_spread(90, 150)
    '1.5 (2.5) min'
    """
    unit, name = _unit(p95)
    return f"{_short(mean / unit)} ({_short(p95 / unit)}) {name}"


def as_observed(rate: float) -> str:
    """Write an observed rate to a tenth of a percent; never a 0 or 100 that it is not.

    >>> as_observed(0.98), as_observed(1.0), as_observed(0.99999)
    ('98.0 %', '100.0 %', '>99.9 %')
    """
    if 0 < rate < 0.0005:
        return "<0.1 %"
    return ">99.9 %" if 0.9995 <= rate < 1 else f"{100 * rate:.1f} %"


def as_ends(interval: Iterable[float]) -> str:
    """Write the two ends of an interval, in percent.

    >>> as_ends((0.943, 0.993))
    '[94.3, 99.3]'
    """
    low, high = interval
    return f"[{100 * low:.1f}, {100 * high:.1f}]"


def as_score(score: float) -> str:
    """Write a mean score; never a 0 or 1 that it is not.

    >>> as_score(0.8625), as_score(1.0), as_score(0.99999)
    ('0.863', '1', '>0.999')
    """
    if score in (0.0, 1.0):
        return f"{score:.0f}"
    if score < 0.0005:
        return "<0.001"
    return ">0.999" if score >= 0.9995 else f"{score:.3f}"


def as_score_ends(interval: Iterable[float]) -> str:
    """Write the two ends of an interval of scores, rounded outward.

    >>> as_score_ends((0.81234, 0.905))
    '[0.812, 0.905]'
    """
    low, high = interval
    # A double may be an ulp beside the decimal that it stands for.
    least = math.floor(round(1000 * low, 6)) / 1000
    most = math.ceil(round(1000 * high, 6)) / 1000
    return f"[{least:.3f}, {most:.3f}]"


def as_seconds(value: float) -> str:
    """Write a latency, exact enough to be held against its limit.

    >>> as_seconds(0.4123), as_seconds(1.25)
    ('412.3 ms', '1.25 s')
    """
    return f"{1000 * value:.4g} ms" if value < 0.9995 else f"{value:.4g} s"


def as_count(count: int, noun: str, plural: str | None = None) -> str:
    """Write a number of things.

    >>> as_count(1, "trial"), as_count(1200, "trial"), as_count(2, "success", "successes")
    ('1 trial', '1,200 trials', '2 successes')
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def as_all(count: int, noun: str, plural: str | None = None) -> str:
    """Return words for all of several things.

    >>> as_all(1, "contract"), as_all(2, "criterion", "criteria"), as_all(3, "contract")
    ('the contract', 'both criteria', 'all 3 contracts')
    """
    if count == 1:
        return f"the {noun}"
    things = plural or f"{noun}s"
    return f"both {things}" if count == 2 else f"all {count:,} {things}"


def as_computed(value: float) -> str:
    """Write a computed number to six decimals, or to three digits where those would show nothing.

    >>> as_computed(0.0371), as_computed(1.23e-9)
    ('0.037100', '1.23e-09')
    """
    return f"{value:.6f}" if value == 0 or abs(value) >= 1e-4 else f"{value:.3g}"


def list_amounts(
    *,
    trials: int | None = None,
    seconds: float | None = None,
    tokens: int | None = None,
    usd: float | None = None,
) -> list[str]:
    """Trials, time, tokens and money, as far as they are given.

    >>> list_amounts(trials=20, usd=1.5)
    ['20 trials', '$1.50']
    """
    parts = [] if trials is None else [as_count(trials, "trial")]
    parts += [] if seconds is None else [as_duration(seconds)]
    parts += [] if tokens is None else [as_count(tokens, "token")]
    return parts if usd is None else [*parts, as_money(usd)]


def is_within(value: float, nominal: float) -> bool:
    """Return whether an error stays within its level, up to rounding in the last digits."""
    # Exact sums of binomial terms carry rounding errors of a few units in the last place.
    return value <= nominal + 1e-12


def _unit(seconds: float) -> tuple[float, str]:
    if seconds < 0.9995:
        return 0.001, "ms"
    for limit, unit, name in ((2 * _MINUTE, 1.0, "s"), (2 * _HOUR, _MINUTE, "min")):
        if seconds < limit:
            return unit, name
    return (_HOUR, "h") if seconds < 2 * _DAY else (_DAY, "days")


def _short(value: float) -> str:
    return f"{value:.1f}" if value < 9.95 and value % 1 else f"{value:.0f}"


def _plain(value: float) -> str:
    """Two significant digits without an exponent."""
    places = max(2, 1 - math.floor(math.log10(value))) if value > 0 else 2
    return f"{value:.{places}f}".rstrip("0").rstrip(".")


# --- Phrases: why a run stopped, and lists that are too long --------------------------------------

REFUSED = "REFUSED"
"""What is shown instead of a decision where a design was refused."""
#: Names in a sentence; the others are counted.
_NAMED = 3


class StopPhrases(NamedTuple):
    """How a page says why no further trial was counted."""

    label: str
    """In a word or two, for a column."""
    predicate: str = "ended"
    """The rest of a sentence that starts "The run"."""


#: By the value of `trialwise.model.evidence.StopReason`.
STOPS: Mapping[str, StopPhrases] = {
    "decided": StopPhrases("decided early"),
    # Told from "decided": the planned end would have brought the same verdict.
    "curtailed": StopPhrases("decided early, because the rest could not change it"),
    "complete": StopPhrases("all planned trials run"),
    **{
        f"{kind}-budget": StopPhrases(f"{noun} budget", f"spent its budget of {things}")
        for kind, noun, things in (
            *(("trials", "trial", "trials"), ("time", "time", "time")),
            *(("token", "token", "tokens"), ("money", "money", "money")),
        )
    },
    "error-rate": StopPhrases(
        "too many errors", "was aborted: too many trials could not be measured"
    ),
    "settled": StopPhrases("verdict settled", "ended because a FAIL had settled its verdict"),
    "interrupted": StopPhrases("interrupted", "was interrupted"),
    "service-unusable": StopPhrases("service unusable", "could not go on"),
}


def keep_few(notes: Sequence[str], most: int) -> tuple[str, ...]:
    """Return the first notes of a list, and how many more there are.

    >>> keep_few(["a", "b", "c"], 2)
    ('a', 'b', 'and 1 more')
    """
    left = len(notes) - most
    return (*notes[:most], f"and {left:,} more") if left > 0 else tuple(notes)


def join_few(names: Sequence[str], most: int = _NAMED) -> str:
    """Join the first names of a list, and how many more there are.

    >>> join_few(["a", "b"]), join_few(["a", "b", "c", "d", "e"])
    ('a, b', 'a, b, c and 2 more')
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
