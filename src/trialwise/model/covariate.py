"""Conditions that may move the rate: declared, recorded, and matched with a baseline's (§8.4.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from enum import StrEnum

from trialwise.errors import InvalidArgument
from trialwise.validation import require_choice, require_count, require_text

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


_BY_CLOCK = (CovariateKind.WEEKDAY, CovariateKind.TIME_OF_DAY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Covariate:
    """One condition of the run.

    >>> from datetime import timezone
    >>> when = datetime(2026, 1, 10, 9, 30, tzinfo=timezone.utc)
    >>> resolve_covariates([Covariate(name="time", kind="time-of-day")], when, {})
    {'time': '08:00/4h'}
    """

    name: str
    kind: CovariateKind | str = CovariateKind.CUSTOM
    critical: bool = False
    """Whether a baseline measured under another value is no reference without an override."""
    value: str | None = None
    """The value of a region or a custom covariate."""
    environment: str | None = None
    """The environment variable that holds the value, where none is given."""
    window_hours: int = 4
    """The window of a time of day."""
    zone: str | None = None
    """The zone whose days and hours matter, such as Europe/Zurich; None: the run's own. Name it
    where machines of several zones share baselines."""

    def __post_init__(self) -> None:
        kind = require_choice("kind", str(self.kind), tuple(map(str, CovariateKind)))
        object.__setattr__(self, "kind", CovariateKind(kind))
        require_text("name", self.name, "be a text that names the covariate")
        if self.kind in _BY_CLOCK:
            if self.value is not None or self.environment is not None:
                given = self.environment if self.value is None else self.value
                raise InvalidArgument("value", given, "be left to the clock")
            if self.zone is not None:
                _zone(self.zone)
        else:
            self._check_source()
        if _HOURS % require_count("window_hours", self.window_hours, minimum=1):
            raise InvalidArgument("window_hours", self.window_hours, "divide the day")

    def _check_source(self) -> None:
        if (self.value is None) is (self.environment is None):
            allowed = "be given, or else the environment variable that holds it"
            raise InvalidArgument("value", self.value, allowed)
        if self.value is not None:
            object.__setattr__(self, "value", str(self.value))
            require_text("value", self.value, "be a text that is not empty")
        if self.zone is not None:
            raise InvalidArgument("zone", self.zone, "go with a weekday or a time of day")


def resolve_covariates(
    covariates: Iterable[Covariate], now: datetime, environment: Mapping[str, str]
) -> dict[str, str]:
    """Resolve the profile of a run: every covariate with its concrete value.

    A value that was read in a declared zone names it, so that it does not match one read in
    another.

    Args:
        covariates: As the contract declares them.
        now: When the run starts, with its zone.
        environment: Of the process.

    Raises:
        InvalidArgument: A name is declared twice, its environment variable is not set, or `now`
            has no zone.
    """
    if now.tzinfo is None:
        raise InvalidArgument("now", now, "name its time zone")
    profile: dict[str, str] = {}
    for covariate in covariates:
        if covariate.name in profile:
            raise InvalidArgument("covariates", covariate.name, "be declared once each")
        if covariate.kind in _BY_CLOCK:
            profile[covariate.name] = _by_clock(covariate, now)
        else:
            profile[covariate.name] = _read_given(covariate, environment)
    return profile


def differing_covariates(ours: Mapping[str, str], theirs: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names whose values differ, those that only one side has included.

    >>> differing_covariates({"region": "EU", "day": "WEEKDAY"}, {"region": "US", "tier": "gold"})
    ('day', 'region', 'tier')
    """
    return tuple(name for name in sorted({*ours, *theirs}) if ours.get(name) != theirs.get(name))


def _by_clock(covariate: Covariate, now: datetime) -> str:
    local = now if covariate.zone is None else now.astimezone(_zone(covariate.zone))
    if covariate.kind is CovariateKind.WEEKDAY:
        value = "WEEKEND" if local.weekday() >= _SATURDAY else "WEEKDAY"
    else:
        start = local.hour - local.hour % covariate.window_hours
        value = f"{start:02d}:00/{covariate.window_hours}h"
    return value if covariate.zone is None else f"{value} {covariate.zone}"


def _zone(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError, TypeError):
        allowed = "be a zone of the time zone database, such as Europe/Zurich"
        raise InvalidArgument("zone", name, allowed) from None


def _read_given(covariate: Covariate, environment: Mapping[str, str]) -> str:
    if covariate.value is not None:
        return covariate.value
    assert covariate.environment is not None
    found = environment.get(covariate.environment, "")
    if not found.strip():
        allowed = f"be set: the covariate {covariate.name!r} is read from it"
        raise InvalidArgument(covariate.environment, found or None, allowed)
    return found
