"""Error rates of families: several contracts, independent tests, and a horizon of runs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal, SupportsIndex, TypeAlias

from trialwise.errors import InvalidArgument
from trialwise.stats.result_types import Undefined
from trialwise.stats.toolbox.error_envelopes import (
    NO_MEMBERS,
    Envelopes,
    check_alphas,
    check_horizon,
    check_members,
    envelopes_by_direction,
)
from trialwise.validation import require_choice, require_open_rate

Dependence: TypeAlias = Literal["arbitrary", "independent"]
"""What is assumed of repeated runs."""


DEPENDENCES: tuple[Dependence, ...] = ("arbitrary", "independent")


def across_suite_envelope(contracts: Iterable[Envelopes]) -> Envelopes:
    """The envelopes of several contracts bundled into one conclusion (companion §7.3).

    Sums over every criterion of every contract, still by direction.

    Examples
    --------
    >>> from trialwise.stats import type_one_envelopes
    >>> contract = type_one_envelopes([("regression", 0.05)])
    >>> across_suite_envelope([contract, contract]).false_degradation_signal
    0.1
    """
    members = check_members("contracts", contracts)
    for i, contract in enumerate(members):
        if not isinstance(contract, Envelopes):
            raise InvalidArgument(f"contracts[{i}]", contract, "be the Envelopes of a contract")
    return envelopes_by_direction(
        tuple(alpha for contract in members for alpha in contract.compliance_alphas),
        tuple(alpha for contract in members for alpha in contract.regression_alphas),
        sum(contract.observational for contract in members),
    )


def family_wise_independent(alphas: Iterable[float]) -> float | Undefined:
    """The independence special case 1 − Π(1 − α) of the family-wise error (companion §7.3).

    Not an operational bound: tests that share replies, a baseline or a serving stack are rarely
    independent. It never exceeds the union bound.

    Examples
    --------
    >>> round(family_wise_independent([0.05] * 10), 3)
    0.401
    """
    levels = check_alphas(alphas)
    return _any_independent(levels) if levels else Undefined(NO_MEMBERS)


def per_run_alpha_for_horizon(
    horizon_alpha: float, horizon: SupportsIndex, *, dependence: Dependence = "arbitrary"
) -> float:
    """The per-run alpha that keeps a whole horizon's false-alarm chance at `horizon_alpha`.

    horizon_alpha / H under arbitrary dependence (Bonferroni), or 1 − (1 − horizon_alpha)^(1/H)
    if the runs are independent (Šidák 1967): the inverses of `horizon_false_alarm`.

    Parameters
    ----------
    horizon_alpha : float
        The level for the whole horizon, strictly between 0 and 1.
    horizon : int
        Runs against one reference state, at least 1.
    dependence : {"arbitrary", "independent"}
        What is assumed of the runs.

    Examples
    --------
    >>> per_run_alpha_for_horizon(0.05, 50)
    0.001
    """
    level = require_open_rate("horizon_alpha", horizon_alpha)
    runs = check_horizon(horizon)
    if require_choice("dependence", dependence, DEPENDENCES) == "arbitrary":
        return level / runs
    return -math.expm1(math.log1p(-level) / runs)


def _any_independent(levels: tuple[float, ...]) -> float:
    # In logarithms: 1 − α would round a small alpha away.
    return -math.expm1(math.fsum(math.log1p(-alpha) for alpha in levels))
