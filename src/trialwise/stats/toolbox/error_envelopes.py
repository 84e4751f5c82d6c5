"""How large the chance of any false verdict can be, when nothing is adjusted.

Its own module because an envelope is disclosed and never steers: each criterion keeps its own
alpha, and the sums below say what the contract, the suite or the monitoring horizon adds up to
(companion §1.4.6, §7.3, §8.5). The union bound holds under arbitrary dependence and is the
operational statement; the independent case is here to anchor intuition.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, SupportsIndex, TypeAlias, TypeVar

from trialwise.errors import InvalidArgument
from trialwise.stats.result_types import Undefined
from trialwise.validation import require_choice, require_count, require_open_rate

T = TypeVar("T")

Direction: TypeAlias = Literal["compliance", "regression", "observational"]
"""Which error a criterion's procedure can make; an observational one makes none."""

DIRECTIONS: tuple[Direction, ...] = ("compliance", "regression", "observational")


#: A longer horizon than this no float counts exactly, and no monitor reaches.
MAX_HORIZON = 2**53

NO_MEMBERS = "an envelope needs at least one member with an alpha"


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """The union bound over a family: its raw sum, and the sum capped at 1 for display.

    A raw sum of 1 or more bounds nothing.
    """

    alphas: tuple[float, ...]
    raw: float
    capped: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelopes:
    """The two Type-I envelopes of a contract or a suite, kept apart by direction.

    `None` means that no criterion can make that error. Each is capped at 1; the alphas it adds up
    are kept beside it.
    """

    false_compliance: float | None
    false_degradation_signal: float | None
    compliance_alphas: tuple[float, ...] = ()
    regression_alphas: tuple[float, ...] = ()
    observational: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizonFalseAlarm:
    """What a per-run alpha means over a horizon of runs against one reference state."""

    horizon: int
    per_run_alpha: float
    bonferroni_bound: float
    bonferroni_bound_capped: float
    expected_false_alarms: float
    independent_probability: float


def envelope(alphas: Iterable[float]) -> Envelope | Undefined:
    """The union bound Σα on the chance of at least one false positive (companion §7.3).

    Holds whatever the dependence between the tests; attained when their rejections exclude one
    another.

    Parameters
    ----------
    alphas : iterable of float
        The levels, each strictly between 0 and 1. With none there is no bound to state.

    Examples
    --------
    >>> envelope([0.05] * 25).capped
    1.0
    >>> envelope([])
    Undefined(reason='an envelope needs at least one member with an alpha')
    """
    levels = check_alphas(alphas)
    if not levels:
        return Undefined(NO_MEMBERS)
    raw = math.fsum(levels)
    return Envelope(alphas=levels, raw=raw, capped=min(raw, 1.0))


def type_one_envelopes(criteria: Iterable[tuple[Direction, float | None]]) -> Envelopes:
    """The false-compliance and false-degradation-signal envelopes of a contract (companion §1.4.6).

    Each is the sum of alpha over the criteria of its direction. They are never added together:
    they bound different errors.

    Parameters
    ----------
    criteria : iterable of (direction, alpha)
        Direction "compliance" or "regression" with an alpha strictly between 0 and 1, or
        "observational" with None: its verdict is decided by what was observed.

    Examples
    --------
    >>> envelopes = type_one_envelopes(
    ...     [("compliance", 0.05), ("compliance", 0.06), ("observational", None)]
    ... )
    >>> round(envelopes.false_compliance, 12)
    0.11
    >>> envelopes.false_degradation_signal is None
    True
    """
    levels: dict[Direction, list[float]] = {"compliance": [], "regression": []}
    observational = 0
    for i, criterion in enumerate(check_members("criteria", criteria)):
        try:
            direction, alpha = criterion
        except (TypeError, ValueError):
            allowed = "be a pair of direction and alpha"
            raise InvalidArgument(f"criteria[{i}]", criterion, allowed) from None
        require_choice(f"criteria[{i}] direction", direction, DIRECTIONS)
        if direction == "observational":
            if alpha is not None:
                raise InvalidArgument(f"criteria[{i}] alpha", alpha, "be None when observational")
            observational += 1
        elif alpha is None:
            raise InvalidArgument(f"criteria[{i}] alpha", alpha, f"be given for {direction}")
        else:
            levels[direction].append(require_open_rate(f"criteria[{i}] alpha", alpha))
    return envelopes_by_direction(
        tuple(levels["compliance"]), tuple(levels["regression"]), observational
    )


def horizon_false_alarm(alpha: float, horizon: SupportsIndex) -> HorizonFalseAlarm:
    """The false-alarm behaviour of a per-run alpha over a horizon of H runs (companion §8.5).

    The Bonferroni bound H · alpha is also the expected number of false alarms, whatever the
    dependence; 1 − (1 − alpha)^H is the chance of at least one if runs are independent.

    Parameters
    ----------
    alpha : float
        The per-run level, strictly between 0 and 1.
    horizon : int
        Runs against one reference state, at least 1.

    Examples
    --------
    >>> monitor = horizon_false_alarm(0.05, 50)
    >>> monitor.bonferroni_bound, monitor.bonferroni_bound_capped
    (2.5, 1.0)
    >>> round(monitor.independent_probability, 2)
    0.92
    """
    level = require_open_rate("alpha", alpha)
    runs = check_horizon(horizon)
    return HorizonFalseAlarm(
        horizon=runs,
        per_run_alpha=level,
        bonferroni_bound=runs * level,
        bonferroni_bound_capped=min(runs * level, 1.0),
        expected_false_alarms=runs * level,
        independent_probability=-math.expm1(runs * math.log1p(-level)),
    )


def envelopes_by_direction(
    compliance: tuple[float, ...], regression: tuple[float, ...], observational: int
) -> Envelopes:
    """Return the sums of the levels in either direction, each at most 1."""
    return Envelopes(
        false_compliance=_capped_sum(compliance),
        false_degradation_signal=_capped_sum(regression),
        compliance_alphas=compliance,
        regression_alphas=regression,
        observational=observational,
    )


def _capped_sum(levels: tuple[float, ...]) -> float | None:
    # fsum rounds once, however many levels are added.
    return min(math.fsum(levels), 1.0) if levels else None


def check_alphas(alphas: Iterable[float]) -> tuple[float, ...]:
    """Return the levels, each of which must lie between 0 and 1."""
    members = check_members("alphas", alphas)
    return tuple(require_open_rate(f"alphas[{i}]", alpha) for i, alpha in enumerate(members))


def check_members(argument: str, values: Iterable[T]) -> tuple[T, ...]:
    """Return the values as a tuple; a text is not a sequence of members."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InvalidArgument(argument, values, "be a sequence of its members")
    return tuple(values)


def check_horizon(horizon: SupportsIndex) -> int:
    """Return the number of runs, at least 1 and at most `MAX_HORIZON`."""
    runs = require_count("horizon", horizon, minimum=1)
    if runs > MAX_HORIZON:
        raise InvalidArgument("horizon", horizon, f"be at most {MAX_HORIZON}")
    return runs
