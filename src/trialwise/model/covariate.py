"""Conditions that may move the rate: declared, recorded, and matched with a baseline's (§8.4.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from trialwise.errors import InvalidArgument
from trialwise.stats._checks import check_choice, check_count, check_text

__all__ = ["Covariate", "CovariateKind", "resolve_covariates"]

_HOURS = 24
_SATURDAY = 5


class CovariateKind(StrEnum):
    """Where a covariate's value comes from."""

    WEEKDAY = "weekday"
    """WEEKDAY or WEEKEND, by the clock."""
    TIME_OF_DAY = "time-of-day"
    """The window of some hours that the clock is in, such as 08:00/4h."""
    REGION = "region"
    CUSTOM = "custom"


@dataclass(frozen=True, slots=True, kw_only=True)
class Covariate:
    """One condition of the run.

    >>> when = datetime(2026, 1, 10, 9, 30)
    >>> resolve_covariates([Covariate(name="time", kind="time-of-day")], when, {})
    {'time': '08:00/4h'}
    """

    name: str
    kind: CovariateKind = CovariateKind.CUSTOM
    critical: bool = False
    """Whether a baseline measured under another value is no reference without an override."""
    value: str | None = None
    """Of a region or a custom covariate."""
    environment: str | None = None
    """The environment variable that holds the value, where none is given."""
    window_hours: int = 4
    """Of a time of day."""

    def __post_init__(self) -> None:
        kind = check_choice("kind", str(self.kind), tuple(map(str, CovariateKind)))
        object.__setattr__(self, "kind", CovariateKind(kind))
        check_text("name", self.name, "be a text that names the covariate")
        if self.kind in (CovariateKind.REGION, CovariateKind.CUSTOM):
            if (self.value is None) is (self.environment is None):
                allowed = "be given, or else the environment variable that holds it"
                raise InvalidArgument("value", self.value, allowed)
        elif self.value is not None or self.environment is not None:
            raise InvalidArgument("value", self.value, "be left to the clock")
        if _HOURS % check_count("window_hours", self.window_hours, minimum=1):
            raise InvalidArgument("window_hours", self.window_hours, "divide the day")


def resolve_covariates(
    covariates: Iterable[Covariate], now: datetime, environment: Mapping[str, str]
) -> dict[str, str]:
    """The profile of a run: every covariate with its concrete value.

    Args:
        covariates: As the contract declares them.
        now: When the run starts, in the zone whose days and hours matter.
        environment: Of the process.

    Raises:
        InvalidArgument: A name is declared twice, or its environment variable is not set.
    """
    profile: dict[str, str] = {}
    for covariate in covariates:
        if covariate.name in profile:
            raise InvalidArgument("covariates", covariate.name, "be declared once each")
        profile[covariate.name] = _value(covariate, now, environment)
    return profile


def _value(covariate: Covariate, now: datetime, environment: Mapping[str, str]) -> str:
    if covariate.kind is CovariateKind.WEEKDAY:
        return "WEEKEND" if now.weekday() >= _SATURDAY else "WEEKDAY"
    if covariate.kind is CovariateKind.TIME_OF_DAY:
        start = now.hour - now.hour % covariate.window_hours
        return f"{start:02d}:00/{covariate.window_hours}h"
    if covariate.value is not None:
        return str(covariate.value)
    assert covariate.environment is not None
    found = environment.get(covariate.environment)
    if found is None:
        allowed = f"be set: the covariate {covariate.name!r} is read from it"
        raise InvalidArgument(covariate.environment, None, allowed)
    return found
