"""A measured reference: counts per criterion, and the conditions they were measured under (§1.5).

A baseline is an observation. Thresholds are derived from it when a test consumes it, at that
test's own size and confidence, and never stored with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType

from trialwise.errors import InvalidArgument
from trialwise.model.claim import Claim
from trialwise.model.tally import Tally
from trialwise.stats._checks import check_positive

__all__ = ["Baseline", "BaselineReference", "CriterionBaseline"]

_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionBaseline:
    """What was observed of one criterion."""

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

    @property
    def tally(self) -> Tally:
        """The counts as the procedures take them."""
        evaluable = self.trials - self.transform - self.no_value
        return Tally(trials=self.trials, passed=self.passed, evaluable=evaluable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """A family of per-criterion observations, indexed by contract and covariate profile."""

    identifier: str
    contract: str
    created_at: datetime
    """When the measurement ended, with its zone."""
    criteria: Mapping[str, CriterionBaseline]
    covariates: Mapping[str, str] = field(default_factory=lambda: _NONE)
    factors: Mapping[str, str] = field(default_factory=lambda: _NONE)
    claim: Claim = field(default_factory=Claim)
    latencies_s: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Of the successful trials of each sampling, in ascending order."""
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

    def __post_init__(self) -> None:
        if not self.criteria:
            raise InvalidArgument("criteria", {}, "hold at least one criterion")
        if self.created_at.tzinfo is None:
            raise InvalidArgument("created_at", self.created_at, "name its time zone")
        if self.valid_days is not None:
            check_positive("valid_days", self.valid_days)

    @property
    def expires_at(self) -> datetime | None:
        """The end of its validity, if it has one."""
        if self.valid_days is None:
            return None
        return self.created_at + timedelta(days=self.valid_days)


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
