"""Whether consecutive trials resemble one another: the check that independence deserves.

A module of its own because it looks at the order of the trials, which no other method here does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from trialwise.errors import InvalidArgument
from trialwise.stats.result_types import Undefined
from trialwise.validation import require_choice

Alternative: TypeAlias = Literal["greater", "less", "two-sided"]
"""The sign of the autocorrelation looked for: neighbours alike, neighbours unlike, or either."""

ALTERNATIVES: tuple[Alternative, ...] = ("greater", "less", "two-sided")


@dataclass(frozen=True, slots=True, kw_only=True)
class AutocorrelationTest:
    """The exact runs test of one sequence, with its lag-one autocorrelation beside it."""

    runs: int
    """Stretches of equal outcomes: fewer than expected means that neighbours are alike."""
    expected_runs: float
    lag_one: float
    p_value: float


def lag_one_autocorrelation(outcomes: Sequence[int]) -> float | Undefined:
    """The lag-one autocorrelation of a sequence of outcomes, in the order of the trials.

    ``r₁ = Σ (xₜ − x̄)(xₜ₊₁ − x̄) / Σ (xₜ − x̄)²``, the first sum over the n − 1 neighbouring pairs.
    It is evaluated in integers and rounded once. Independence makes it about −1/n, not 0.

    Parameters
    ----------
    outcomes : sequence of 0 and 1 (or of bool), not empty, in the order of the trials.

    Returns
    -------
    float or Undefined
        Undefined for a single trial and for a sequence that never changes.

    References
    ----------
    Companion 8.2; Box and Jenkins (1976), section 2.1.

    Examples
    --------
    >>> lag_one_autocorrelation([1, 1, 1, 0, 0, 0])
    0.5
    >>> lag_one_autocorrelation([1, 0, 1, 0])
    -0.75
    >>> lag_one_autocorrelation([1, 1, 1])
    Undefined(reason='the outcomes never change, so they have no autocorrelation')
    """
    sequence = _check_outcomes(outcomes)
    unfit = _unfit(sequence)
    return _lag_one(sequence) if unfit is None else unfit


def autocorrelation_test(
    outcomes: Sequence[int], *, alternative: Alternative = "greater"
) -> AutocorrelationTest | Undefined:
    """The exact permutation test that the order of the outcomes carries no dependence.

    Given s successes in n trials every order is equally likely under exchangeability, and the
    number of runs R has an exact distribution in integers. Positive autocorrelation makes runs
    few: the p-value is P(R ≤ r) for ``"greater"``, P(R ≥ r) for ``"less"``, and twice the smaller
    (at most 1) for ``"two-sided"``. Runs and r₁ say nearly the same: of the n − 1 neighbouring
    pairs, R − 1 differ. The integers cost about a second for 10⁵ trials, and grow with n².

    Parameters
    ----------
    outcomes : sequence of 0 and 1 (or of bool), not empty, in the order of the trials.
    alternative : the sign of the autocorrelation looked for.

    Returns
    -------
    AutocorrelationTest or Undefined
        Undefined for a single trial and for a sequence that never changes.

    References
    ----------
    Companion 8.2 (detection of dependence); Wald and Wolfowitz (1940).

    Examples
    --------
    >>> test = autocorrelation_test([1, 1, 1, 1, 0, 0, 0, 0])
    >>> test.runs, test.expected_runs
    (2, 5.0)
    >>> test.p_value  # 2 of the C(8, 4) = 70 orders have two runs
    0.02857...
    """
    sequence = _check_outcomes(outcomes)
    require_choice("alternative", alternative, ALTERNATIVES)
    if (unfit := _unfit(sequence)) is not None:
        return unfit
    trials, successes = len(sequence), sum(sequence)
    runs = 1 + sum(a != b for a, b in pairwise(sequence))
    failures = trials - successes
    return AutocorrelationTest(
        runs=runs,
        expected_runs=1 + 2 * successes * failures / trials,
        lag_one=_lag_one(sequence),
        p_value=_p_value(runs, successes, failures, alternative),
    )


def _check_outcomes(outcomes: Iterable[int]) -> tuple[int, ...]:
    allowed = "be a sequence of 0 and 1 with at least one outcome"
    if isinstance(outcomes, str | bytes):
        raise InvalidArgument("outcomes", outcomes, allowed)
    try:
        sequence = tuple(outcomes)
    except TypeError:
        raise InvalidArgument("outcomes", outcomes, allowed) from None
    if not sequence:
        raise InvalidArgument("outcomes", outcomes, allowed)
    for outcome in sequence:
        if outcome not in (0, 1):
            raise InvalidArgument("outcomes", outcome, "contain only 0 and 1")
    return tuple(map(int, sequence))


def _unfit(sequence: tuple[int, ...]) -> Undefined | None:
    if len(sequence) < 2:
        return Undefined("one trial has no neighbour to resemble")
    if 0 < sum(sequence) < len(sequence):
        return None
    return Undefined("the outcomes never change, so they have no autocorrelation")


def _lag_one(sequence: tuple[int, ...]) -> float:
    n, s = len(sequence), sum(sequence)
    both = sum(a & b for a, b in pairwise(sequence))
    inner = 2 * s - sequence[0] - sequence[-1]
    return (n * n * both - n * s * inner + (n - 1) * s * s) / (n * s * (n - s))


def _p_value(runs: int, successes: int, failures: int, alternative: Alternative) -> float:
    fewer, equal = _orders(runs, successes, failures)
    total = math.comb(successes + failures, successes)
    few, many = fewer + equal, total - fewer
    if alternative == "greater":
        return few / total
    if alternative == "less":
        return many / total
    return min(total, 2 * min(few, many)) / total


def _orders(runs: int, ones: int, zeros: int) -> tuple[int, int]:
    """How many orders of the outcomes have fewer runs than `runs`, and how many exactly as many.

    With e = C(ones−1, k−1) C(zeros−1, k−1), 2k runs arise in 2e orders and 2k + 1 runs in
    e (n − 2k)/k. That division and the step to the next e leave no remainder, so small factors
    do for numbers with thousands of digits.
    """
    fewer, e = 0, 1
    for k in range(1, runs // 2):
        fewer += 2 * e + e * (ones + zeros - 2 * k) // k
        e = e * (ones - k) * (zeros - k) // (k * k)
    if runs % 2 == 0:
        return fewer, 2 * e
    k = runs // 2
    return fewer + 2 * e, e * (ones + zeros - 2 * k) // k
