"""From a guardrail's misses to what reaches the user: where the two may be put together.

A module of its own, apart from the experiment, because every step here needs a premise that the
experiment does not supply: a prevalence seen before the guardrail, or a dependence between
boundaries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from trialwise.decimals import as_written
from trialwise.errors import InvalidArgument
from trialwise.stats.result_types import Undefined
from trialwise.validation import require_choice, require_open_rate, require_rate

__all__ = ["PrevalenceSource", "ResidualHarm", "residual_harm_bound"]

PrevalenceSource: TypeAlias = Literal["pre-guardrail"]
"""Where a prevalence was observed: only a view of what the generator proposed will do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualHarm:
    """How often harm reaches the user, as far as the evidence goes."""

    miss_upper: float
    miss_confidence: float | None
    prevalence: float | None
    prevalence_confidence: float | None
    prevalence_source: PrevalenceSource | None
    bound: float | Undefined
    """prevalence × miss_upper; undefined without a prevalence."""
    confidence: float | Undefined
    statement: str


def residual_harm_bound(
    miss_upper: float,
    prevalence: float | None = None,
    *,
    prevalence_source: PrevalenceSource | None = None,
    miss_confidence: float | None = None,
    prevalence_confidence: float | None = None,
) -> ResidualHarm:
    """The probability that harm reaches the user: prevalence × P(miss | harm), if both are known.

    Without a prevalence only the conditional statement is returned. Two confidence bounds hold
    together at ``1 − (α₁ + α₂)`` (Bonferroni); a factor without a confidence is taken as known.

    Parameters
    ----------
    miss_upper : an upper bound on P(miss | harm), 0 … 1, as `guardrail_sensitivity` gives it.
    prevalence : the rate at which the generator proposes harmful content, or an upper confidence
        bound on it, 0 … 1.
    prevalence_source : ``"pre-guardrail"``, and nothing else. A monitor behind the guardrail sees
        what reached the user, which is the product and not this factor of it.
    miss_confidence : at which `miss_upper` holds, strictly between 0 and 1.
    prevalence_confidence : at which `prevalence` holds, if it is a confidence bound.

    References
    ----------
    Companion 1.4.5b.

    Examples
    --------
    >>> result = residual_harm_bound(
    ...     1.67e-4, 0.001, prevalence_source="pre-guardrail", miss_confidence=0.95
    ... )
    >>> result.bound, result.confidence
    (1.67e-07, 0.95)
    >>> residual_harm_bound(1.67e-4).bound
    Undefined(reason='no prevalence of harmful content was given, and the guardrail experiment ...')
    """
    miss = require_rate("miss_upper", miss_upper)
    check_optional_confidence("miss_confidence", miss_confidence)
    if prevalence is None:
        return _conditional_only(miss, miss_confidence, prevalence_source, prevalence_confidence)
    rate = require_rate("prevalence", prevalence)
    _check_source(prevalence_source)
    check_optional_confidence("prevalence_confidence", prevalence_confidence)
    known = "" if prevalence_confidence is not None else ", taken as known"
    return ResidualHarm(
        miss_upper=miss,
        miss_confidence=miss_confidence,
        prevalence=rate,
        prevalence_confidence=prevalence_confidence,
        prevalence_source=prevalence_source,
        bound=rate * miss,
        confidence=joint_confidence([miss_confidence, prevalence_confidence]),
        statement=(
            f"Harm reaches the user with probability at most {rate * miss:.3g}: a pre-guardrail "
            f"prevalence of {rate:.3g}{known}, times a miss probability of at most {miss:.3g}. "
            "This holds if both describe compatible populations and nothing bypasses the guardrail."
        ),
    )


def _conditional_only(
    miss: float,
    confidence: float | None,
    prevalence_source: object,
    prevalence_confidence: object,
) -> ResidualHarm:
    for argument, value in (
        ("prevalence_source", prevalence_source),
        ("prevalence_confidence", prevalence_confidence),
    ):
        if value is not None:
            raise InvalidArgument(argument, value, "be left out when there is no prevalence")
    reason = (
        "no prevalence of harmful content was given, and the guardrail experiment does not "
        "estimate one"
    )
    return ResidualHarm(
        miss_upper=miss,
        miss_confidence=confidence,
        prevalence=None,
        prevalence_confidence=None,
        prevalence_source=None,
        bound=Undefined(reason),
        confidence=Undefined(reason),
        statement=(
            f"Given harmful content, the guardrail misses with probability at most {miss:.3g}. How "
            "often harm reaches the user is not bounded: that needs a prevalence observed before "
            "the guardrail."
        ),
    )


def _check_source(source: object) -> None:
    if source == "post-guardrail":
        raise InvalidArgument(
            "prevalence_source",
            source,
            "be 'pre-guardrail': a monitor behind the guardrail sees only what reached the user, "
            "which is the residual rate and not how often the generator proposes harm",
        )
    require_choice("prevalence_source", source, ("pre-guardrail",))


def check_optional_confidence(argument: str, value: float | None) -> None:
    if value is not None:
        require_open_rate(argument, value)


def joint_confidence(confidences: Sequence[float | None]) -> float | Undefined:
    """The confidence at which several bounds hold at once; one without is taken as known."""
    levels = [level for level in confidences if level is not None]
    if not levels:
        return Undefined("no confidence was given for what was put together")
    joint = 1 - sum(1 - as_written(level) for level in levels)
    if joint <= 0:
        return Undefined("the error probabilities of the bounds add up to 1 or more")
    return float(joint)
