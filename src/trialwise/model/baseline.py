"""A measured reference, and the conditions that it was measured under and that a run has (§1.5).

A baseline is an observation. Thresholds are derived from it when a test consumes it, at that
test's own size and confidence, and never stored with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from types import MappingProxyType

from trialwise.errors import InvalidArgument
from trialwise.model.claim import Claim
from trialwise.model.criterion import CriterionScope
from trialwise.model.evidence import Tally
from trialwise.validation import (
    require_amount,
    require_count,
    require_member,
    require_positive,
    require_real,
    require_text,
)

__all__ = ["Baseline", "BaselineReference", "CriterionBaseline", "CriterionScope", "GateBaseline"]

_REASONS = ("condition", "transform", "no_value")
_NONE: Mapping[str, str] = MappingProxyType({})
#: Beyond these nobody means a date, and calendar arithmetic overflows.
_YEARS = (1970, 2999)
_MOST_DAYS = 36_525


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionBaseline:
    """What was observed of one criterion.

    >>> CriterionBaseline(trials=1000, passed=953, structure="5f3a").rate
    0.953
    """

    trials: int
    passed: int
    condition: int = 0
    """Failures whose postcondition was evaluated and did not hold."""
    transform: int = 0
    no_value: int = 0
    structure: str
    """The fingerprint of its postconditions: another one is another criterion (§1.5.2)."""
    postconditions: tuple[str, ...] = ()
    sampling: str = ""
    """Identifier and version of the sampling."""
    sampling_fingerprint: str = ""
    inputs: int | None = None
    """Different inputs that were tried; None where an earlier version did not count them."""
    repetitions: int | None = None
    """Trials of the input that was tried most often."""
    analysis: str | None = None
    """Whose trials count; None where an earlier version counted all of them."""
    excused: int | None = None
    """Trials that only some analyses count. Without any, all analyses count alike."""

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "postconditions", tuple(self.postconditions))
        require_text("structure", self.structure, "be the fingerprint of the postconditions")
        for name in ("passed", *_REASONS):
            put(self, name, require_count(name, getattr(self, name)))
        put(self, "trials", require_count("trials", self.trials, minimum=1))
        if self.passed > self.trials:
            raise InvalidArgument("passed", self.passed, f"lie between 0 and {self.trials}")
        reasons = [getattr(self, name) for name in _REASONS]
        failed = self.trials - self.passed
        # Reasons for a part of the failures would read as reasons for all of them.
        if sum(reasons) not in (0, failed):
            allowed = f"add up to the {failed} that did not pass, or all be left out"
            raise InvalidArgument("failures by reason", reasons, allowed)

    @property
    def rate(self) -> float:
        """The observed rate."""
        return self.passed / self.trials

    @property
    def tally(self) -> Tally:
        """The counts as the procedures take them."""
        evaluable = self.trials - self.transform - self.no_value
        return Tally(trials=self.trials, passed=self.passed, evaluable=evaluable)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateBaseline:
    """What was measured of one gate.

    >>> GateBaseline(structure="5f3a", numbers={"stability.score": 0.9}).numbers["stability.score"]
    0.9
    """

    structure: str
    """The fingerprint of the gate's settings: with others its numbers mean something else."""
    numbers: Mapping[str, float]
    """Its numbers, by target."""

    def __post_init__(self) -> None:
        require_text("structure", self.structure, "be the fingerprint of the gate's settings")
        for name, number in self.numbers.items():
            require_real(name, number)
        object.__setattr__(self, "numbers", MappingProxyType(dict(self.numbers)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """A family of per-criterion observations, indexed by contract and covariate profile.

    It is current from `created_at` up to, and without, `expires_at` (§1.5.5).

    >>> from datetime import timezone
    >>> one = CriterionBaseline(trials=1000, passed=953, structure="5f3a")
    >>> baseline = Baseline(
    ...     identifier="advice-1", contract="advice", criteria={"well-formed": one},
    ...     created_at=datetime(2026, 5, 15, tzinfo=timezone.utc), valid_days=90,
    ... )
    >>> str(baseline.expires_at)
    '2026-08-13 00:00:00+00:00'
    """

    identifier: str
    contract: str
    created_at: datetime
    """When the measurement ended, kept in UTC."""
    criteria: Mapping[str, CriterionBaseline]
    covariates: Mapping[str, str] = field(default_factory=lambda: _NONE)
    factors: Mapping[str, str] = field(default_factory=lambda: _NONE)
    claim: Claim = field(default_factory=Claim)
    latencies_s: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """The latencies of the successful trials of each sampling, ascending, to the microsecond."""
    run_trials: Mapping[str, int] = field(default_factory=dict)
    """All trials of each sampling, successful or not."""
    valid_days: float | None = None
    """How long it is taken to stay representative; None without a bound."""
    grace_days: float = 0.0
    """How long after that an expired baseline is still admitted with a warning."""
    epoch: int = 1
    """The reference state: a refreshed baseline starts the next (§8.5)."""
    run_id: str = ""
    tool_version: str = ""
    gates: Mapping[str, GateBaseline] = field(default_factory=dict)
    """The numbers of its gates, by the name of the gate."""

    def __post_init__(self) -> None:
        put = object.__setattr__
        require_text("identifier", self.identifier, "be a text that names the baseline")
        require_text("contract", self.contract, "be a text that names the contract")
        put(self, "epoch", require_count("epoch", self.epoch, minimum=1))
        if not self.criteria:
            raise InvalidArgument("criteria", {}, "hold at least one criterion")
        # Its age decides whether it is admitted, and without a zone it may be off by a day.
        if self.created_at.tzinfo is None:
            raise InvalidArgument("created_at", self.created_at, "name its time zone")
        if not _YEARS[0] <= self.created_at.year <= _YEARS[1]:
            raise InvalidArgument("created_at", self.created_at, "be the date of a measurement")
        # One zone for all files: their age does not depend on the machine that reads them.
        put(self, "created_at", self.created_at.astimezone(UTC))
        put(self, "criteria", MappingProxyType(dict(self.criteria)))
        put(self, "gates", MappingProxyType(dict(self.gates)))
        for name in ("covariates", "factors"):
            given = dict(getattr(self, name))
            if not all(isinstance(text, str) for text in (*given, *given.values())):
                raise InvalidArgument(name, given, "map text to text")
            put(self, name, MappingProxyType(given))
        # No clock of a call over a network says more than a microsecond, and a file shows no more.
        latencies = {
            name: tuple(sorted(round(require_amount("latencies_s", one), 6) for one in some))
            for name, some in self.latencies_s.items()
        }
        put(self, "latencies_s", MappingProxyType(latencies))
        self._check_trials()
        self._check_days()

    def _check_trials(self) -> None:
        run_trials = {
            sampling: require_count(f"run_trials of {sampling!r}", trials, minimum=1)
            for sampling, trials in self.run_trials.items()
        }
        object.__setattr__(self, "run_trials", MappingProxyType(run_trials))
        for sampling, latencies in self.latencies_s.items():
            # More successes than trials: the share of successes would exceed 1.
            if len(latencies) > self.run_trials.get(sampling, len(latencies)):
                allowed = f"be at most as many as its {self.run_trials[sampling]} trials"
                raise InvalidArgument(f"latencies_s of {sampling!r}", len(latencies), allowed)

    def _check_days(self) -> None:
        put = object.__setattr__
        if self.valid_days is not None:
            put(self, "valid_days", require_positive("valid_days", self.valid_days))
        put(self, "grace_days", require_amount("grace_days", self.grace_days))
        if max(self.valid_days or 0.0, self.grace_days) > _MOST_DAYS:
            allowed = "be a century at most; leave valid_days out for no bound"
            raise InvalidArgument("valid_days and grace_days", self.valid_days, allowed)

    @property
    def expires_at(self) -> datetime | None:
        """The end of its validity, if it has one."""
        if self.valid_days is None:
            return None
        return self.created_at + timedelta(days=self.valid_days)

    @property
    def grace_ends_at(self) -> datetime | None:
        """When it is no longer admitted without an override, if ever."""
        expires = self.expires_at
        return None if expires is None else expires + timedelta(days=self.grace_days)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineReference:
    """What a verdict keeps of the baseline it was decided against (§8.4.3)."""

    identifier: str
    file: str = ""
    created_at: datetime
    trials: int
    passed: int
    covariates: Mapping[str, str]
    covariate_match: str
    """"OK", or which covariates differ."""
    factors: Mapping[str, str]
    expires_at: datetime | None = None
    epoch: int = 1
    inputs: int | None = None
    repetitions: int | None = None
    """As the baseline counts them: different inputs, and trials of the one tried most often."""
    days_left: float | None = None
    """Days until it expires, as of the run; below 0 once it has, and None where it never does."""

    @property
    def rate(self) -> float:
        """The observed rate."""
        return self.passed / self.trials


# Conditions that may move the rate: declared, recorded, and matched with a baseline's (§8.4.1).

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
        object.__setattr__(self, "kind", require_member("kind", self.kind, CovariateKind))
        require_text("name", self.name, "be a text that names the covariate")
        if self.kind in _BY_CLOCK:
            if self.value is not None or self.environment is not None:
                given = self.environment if self.value is None else self.value
                raise InvalidArgument("value", given, "be left to the clock")
            if self.zone is not None:
                _zone(self.zone)
        else:
            self._check_source()
        # Otherwise the windows of two days differ, and one value would stand for several times.
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
        profile[covariate.name] = _read_value(covariate, now, environment)
    return profile


def differing_covariates(ours: Mapping[str, str], theirs: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names whose values differ, those that only one side has included.

    >>> differing_covariates({"region": "EU", "day": "WEEKDAY"}, {"region": "US", "tier": "gold"})
    ('day', 'region', 'tier')
    """
    return tuple(name for name in sorted({*ours, *theirs}) if ours.get(name) != theirs.get(name))


def _read_value(covariate: Covariate, now: datetime, environment: Mapping[str, str]) -> str:
    if covariate.kind not in _BY_CLOCK:
        return covariate.value or _read_variable(covariate, environment)
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


def _read_variable(covariate: Covariate, environment: Mapping[str, str]) -> str:
    assert covariate.environment is not None
    found = environment.get(covariate.environment, "")
    if not found.strip():
        allowed = f"be set: the covariate {covariate.name!r} is read from it"
        raise InvalidArgument(covariate.environment, found or None, allowed)
    return found
