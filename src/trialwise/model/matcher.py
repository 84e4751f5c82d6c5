"""Matchers: what a number may be asked to be. All of them are arithmetic; none asks a model.

A number within 1e-9 of a limit is at it, since 0.7 may be computed as 0.6999999999999999.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from trialwise.errors import InvalidArgument
from trialwise.validation import require_amount, require_real

# A mean of decimals misses the decimal that it stands for by some units in the last place.
_TIE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """The number itself.

    >>> Exact(value=0.3).holds(0.1 + 0.2)
    True
    """

    value: float

    def __post_init__(self) -> None:
        require_real("exact", self.value)

    def holds(self, number: float) -> bool:
        """Return whether the number is this one."""
        return _is_at(number, self.value)

    def __str__(self) -> str:
        return f"exactly {_show_limit(self.value)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberSchema:
    """Limits, as JSON Schema names them.

    >>> str(NumberSchema(minimum=0.7)), NumberSchema(minimum=0.7).holds(0.7)
    ('at least 0.7', True)
    """

    minimum: float | None = None
    maximum: float | None = None
    exclusive_minimum: float | None = None
    exclusive_maximum: float | None = None

    def __post_init__(self) -> None:
        given = {name: limit for name, _, limit in self._limits()}
        for name, limit in given.items():
            require_real(name, limit)
        if not given:
            raise InvalidArgument("schema", {}, f"hold one of {', '.join(_LIMITS)}")
        lows = [limit for name, limit in given.items() if "minimum" in name]
        highs = [limit for name, limit in given.items() if "maximum" in name]
        if lows and highs and max(lows) > min(highs):
            raise InvalidArgument("schema", given, "leave room between its limits")

    def _limits(self) -> Iterator[tuple[str, str, float]]:
        for name, words in _LIMITS.items():
            limit: float | None = getattr(self, name)
            if limit is not None:
                yield name, words, limit

    def holds(self, number: float) -> bool:
        """Return whether the number is within every limit."""
        return all(_within(name, number, limit) for name, _, limit in self._limits())

    def __str__(self) -> str:
        return " and ".join(f"{words} {_show_limit(limit)}" for _, words, limit in self._limits())


_LIMITS = {
    "minimum": "at least",
    "exclusive_minimum": "above",
    "maximum": "at most",
    "exclusive_maximum": "below",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Not:
    """A matcher that must not match."""

    matcher: Matcher

    def holds(self, number: float) -> bool:
        """Return whether the other does not."""
        return not self.matcher.holds(number)

    def __str__(self) -> str:
        return f"not {_group(self.matcher)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Several:
    """Matchers that are combined, at least one."""

    matchers: tuple[Matcher, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "matchers", tuple(self.matchers))
        if not self.matchers:
            argument = "all_of" if isinstance(self, AllOf) else "any_of"
            raise InvalidArgument(argument, (), "hold at least one matcher")


@dataclass(frozen=True, slots=True, kw_only=True)
class AllOf(_Several):
    """What every one of several matchers matches."""

    def holds(self, number: float) -> bool:
        """Return whether all do."""
        return all(one.holds(number) for one in self.matchers)

    def __str__(self) -> str:
        return " and ".join(map(_group, self.matchers))


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyOf(_Several):
    """What at least one of several matchers matches."""

    def holds(self, number: float) -> bool:
        """Return whether any does."""
        return any(one.holds(number) for one in self.matchers)

    def __str__(self) -> str:
        return " or ".join(map(_group, self.matchers))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoWorse:
    """No worse than the number that a baseline holds, which is known once a run is planned.

    >>> limit = NoWorse(margin=0.05, number=0.9, baseline="agent-1")
    >>> str(limit), limit.holds(0.85), limit.holds(0.84)
    ('no worse than 0.9 of agent-1 by more than 0.05', True, False)
    """

    margin: float = 0.0
    """How much worse the number may be."""
    number: float | None = None
    """The number of the baseline; None before a run is planned."""
    baseline: str = ""
    """The identifier of the baseline."""
    lower_is_better: bool = False

    def __post_init__(self) -> None:
        require_amount("margin", self.margin)

    def holds(self, number: float) -> bool:
        """Return whether a number is no worse than the baseline's."""
        if self.number is None:
            raise InvalidArgument("number", None, "be that of a baseline, which a plan fills in")
        if self.lower_is_better:
            return _within("maximum", number, self.number + self.margin)
        return _within("minimum", number, self.number - self.margin)

    def __str__(self) -> str:
        by = f" by more than {_show_limit(self.margin)}" if self.margin else ""
        if self.number is None:
            return f"no worse than the baseline{by}"
        return f"no worse than {_show_limit(self.number)} of {self.baseline}{by}"


Matcher: TypeAlias = Exact | NumberSchema | Not | AllOf | AnyOf | NoWorse
"""What a number may be asked to be."""


def needs_number(matcher: Matcher) -> bool:
    """Return whether a matcher compares with a baseline whose number is not known yet."""
    match matcher:
        case NoWorse():
            return matcher.number is None
        case Not():
            return needs_number(matcher.matcher)
        case AllOf() | AnyOf():
            return any(map(needs_number, matcher.matchers))
    return False


def fill_number(
    matcher: Matcher, number: float, baseline: str, *, lower_is_better: bool
) -> Matcher:
    """Return a matcher that compares with the number of a baseline.

    Args:
        matcher: The matcher.
        number: The number that the baseline holds.
        baseline: The identifier of the baseline.
        lower_is_better: Whether a lower number is better.
    """

    def fill(one: Matcher) -> Matcher:
        return fill_number(one, number, baseline, lower_is_better=lower_is_better)

    match matcher:
        case NoWorse():
            return replace(
                matcher, number=number, baseline=baseline, lower_is_better=lower_is_better
            )
        case Not():
            return Not(matcher=fill(matcher.matcher))
        case AllOf() | AnyOf():
            return replace(matcher, matchers=tuple(map(fill, matcher.matchers)))
    return matcher


def may_hold(matcher: Matcher, *, least: float, most: float) -> bool:
    """Return whether any number of a range is matched; `most` may be infinite.

    >>> may_hold(NumberSchema(minimum=70), least=0, most=1)
    False
    """
    if needs_number(matcher):
        return True
    limits = _limits_of(matcher)
    end = min(most, max(least, *limits) + 1)
    inside = sorted({least, end, *(limit for limit in limits if least < limit < end)})
    # Between two neighbours it does not change, so that one number there stands for all.
    between = [(low + high) / 2 for low, high in pairwise(inside)]
    return any(map(matcher.holds, [*inside, *between]))


def _limits_of(matcher: Matcher) -> list[float]:
    """Return the numbers at which a matcher may change its mind."""
    match matcher:
        case Exact():
            return [matcher.value]
        case NumberSchema():
            return [limit for _, _, limit in matcher._limits()]
        case Not():
            return _limits_of(matcher.matcher)
        case NoWorse():
            near = matcher.number or 0.0
            return [max(0.0, near - matcher.margin), near + matcher.margin]
    return [limit for one in matcher.matchers for limit in _limits_of(one)]


def _is_at(number: float, limit: float) -> bool:
    return math.isclose(number, limit, rel_tol=_TIE, abs_tol=_TIE)


def _within(name: str, number: float, limit: float) -> bool:
    if _is_at(number, limit):
        return not name.startswith("exclusive")
    return number > limit if "minimum" in name else number < limit


def _group(matcher: Matcher) -> str:
    several = isinstance(matcher, AllOf | AnyOf) and len(matcher.matchers) > 1
    both = isinstance(matcher, NumberSchema) and " and " in str(matcher)
    return f"({matcher})" if several or both else str(matcher)


def _show_limit(number: float) -> str:
    return f"{number:.10g}"
