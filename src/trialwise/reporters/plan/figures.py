"""Numbers as people read them: rates, probabilities, trials, money and time.

One home, so that the terminal, the page and the charts never write one number in two ways.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trialwise.procedures.planning.costs import Prices

__all__ = [
    "cost_of",
    "duration",
    "duration_spread",
    "kept",
    "level",
    "mean_trials",
    "money",
    "percent",
    "points",
    "probability",
]

_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0


def percent(rate: float) -> str:
    """A rate that was given, without digits nobody wrote.

    >>> percent(0.9), percent(0.975)
    ('90 %', '97.5 %')
    """
    return f"{100 * rate:.6g} %"


def level(value: float) -> str:
    """A level that was given or shared out, to a hundredth of a percent.

    >>> level(0.05), level(0.05 / 3)
    ('5 %', '1.67 %')
    """
    return percent(round(value, 4)) if value >= 0.0001 else percent(value)


def points(difference: float) -> str:
    """A difference between two rates, which is no percentage of either.

    >>> points(0.03), points(0.01)
    ('3 points', '1 point')
    """
    value = f"{100 * difference:.6g}"
    return f"{value} point{'' if value == '1' else 's'}"


def probability(value: float, *, digits: int = 2) -> str:
    """A probability that was computed; never a 0 or 100 % that it is not.

    >>> probability(0.0499948), probability(1e-9), probability(0.0)
    ('5.00 %', '<0.01 %', '0 %')
    """
    least = 10.0**-digits
    if value in (0.0, 1.0):
        return f"{100 * value:.0f} %"
    if 100 * value < least / 2:
        return f"<{least:.{digits}f} %"
    if 100 * (1 - value) < least / 2:
        return f">{100 - least:.{digits}f} %"
    return f"{100 * value:.{digits}f} %"


def mean_trials(value: float) -> str:
    """A mean number of trials.

    >>> mean_trials(36.838), mean_trials(4321.5)
    ('36.8', '4322')
    """
    return f"{value:.1f}" if value < 999.95 else f"{value:.0f}"


def money(usd: float) -> str:
    """Dollars.

    >>> money(0.7368), money(1234.5), money(0.00074)
    ('$0.74', '$1,234', '$0.00074')
    """
    if usd >= 999.995:
        return f"${usd:,.0f}"
    if usd >= 0.095:
        return f"${usd:.2f}"
    return f"${_plain(usd)}"


def duration(seconds: float) -> str:
    """A time, in the unit that keeps it short.

    >>> [duration(s) for s in (0.32, 4.25, 43, 440, 12_000, 500_000)]
    ['320 ms', '4.2 s', '43 s', '7.3 min', '3.3 h', '5.8 days']
    """
    unit, name = _unit(seconds)
    return f"{_short(seconds / unit)} {name}"


def duration_spread(mean: float, p95: float) -> str:
    """A mean time with its 95th percentile, in one unit.

    >>> duration_spread(90, 150)
    '1.5 (2.5) min'
    """
    unit, name = _unit(p95)
    return f"{_short(mean / unit)} ({_short(p95 / unit)}) {name}"


def cost_of(prices: Prices, trials: int) -> str:
    """What some trials cost, as the rest of a sentence; nothing where that is not known."""
    parts = [money(trials * prices.trial_usd)] if prices.trial_usd is not None else []
    parts += [duration(trials * prices.trial_s)] if prices.trial_s is not None else []
    return f" ({', '.join(parts)})" if parts else ""


def kept(value: float, nominal: float) -> bool:
    """Whether an error stays within its level, up to rounding in the last digits."""
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
