"""A bound on the probability that several guardrails miss together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from trialwise.errors import InvalidArgument
from trialwise.stats.guardrail_bounds import check_optional_confidence, joint_confidence
from trialwise.stats.result_types import Undefined
from trialwise.validation import require_choice, require_rate

MissCondition: TypeAlias = Literal["harm", "harm-and-earlier-misses"]
"""What each boundary's miss probability is conditional on."""


MISS_CONDITIONS: tuple[MissCondition, ...] = ("harm", "harm-and-earlier-misses")


@dataclass(frozen=True, slots=True, kw_only=True)
class CombinedBoundaries:
    """A bound on the probability that every one of several boundaries misses."""

    misses: tuple[float, ...]
    given: MissCondition
    method: Literal["frechet", "chain rule"]
    upper: float
    confidence: float | Undefined
    statement: str


def combine_boundaries(
    misses: Sequence[float], *, given: MissCondition, confidence: float | None = None
) -> CombinedBoundaries:
    """A bound on P(every boundary misses | harm), without assuming that they miss independently.

    From miss probabilities given harm alone (``"harm"``) only the Fréchet bound follows, their
    minimum: multiplying them would assume conditional independence, and the content that defeats
    one boundary is the content likely to defeat the next. From misses measured on what the earlier
    boundaries let through (``"harm-and-earlier-misses"``) the chain rule gives their product.

    Parameters
    ----------
    misses : one probability or upper bound for each boundary, in the order of the stack, 0 … 1.
    given : what each of them is conditional on. It has no default: the caller must know.
    confidence : at which each miss is an upper bound, if it is; together they hold at
        ``1 − m (1 − confidence)``.

    References
    ----------
    Companion 1.4.5b (multiple boundaries); Fréchet (1935).

    Examples
    --------
    >>> combine_boundaries([0.01, 0.02], given="harm").upper
    0.01
    >>> combine_boundaries([0.01, 0.5], given="harm-and-earlier-misses").upper
    0.005
    """
    rates = tuple(require_rate("misses", miss) for miss in misses)
    if not rates:
        raise InvalidArgument("misses", misses, "hold at least one boundary")
    require_choice("given", given, MISS_CONDITIONS)
    check_optional_confidence("confidence", confidence)
    chained = given == "harm-and-earlier-misses"
    return CombinedBoundaries(
        misses=rates,
        given=given,
        method="chain rule" if chained else "frechet",
        upper=math.prod(rates) if chained else min(rates),
        confidence=joint_confidence([confidence] * len(rates)),
        statement=(
            "The product of miss probabilities, each measured on harmful content that every "
            "earlier boundary let through (chain rule)."
            if chained
            else "All boundaries miss together at most as often as the best of them misses. The "
            "product of their miss probabilities would assume that they miss independently given "
            "harm, which has not been shown; measure the full stack, or each boundary on what the "
            "earlier ones let through."
        ),
    )
