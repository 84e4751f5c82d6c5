"""How alike the trials of one input are, and how many independent trials they are worth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import fsum
from typing import Literal, TypeAlias

from trialwise.errors import InvalidArgument
from trialwise.stats.cluster_estimators import MATERIAL_REPETITION, Groups, check_groups
from trialwise.stats.result_types import Count, Undefined
from trialwise.validation import require_choice, require_count, require_rate, require_real

IccMethod: TypeAlias = Literal["anova", "fleiss-cuzick"]
"""An estimator of the intraclass correlation."""


ICC_METHODS: tuple[IccMethod, ...] = ("anova", "fleiss-cuzick")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSummary:
    """How a run's trials are spread over its inputs, and what that leaves of them as evidence."""

    trials: int
    successes: int
    distinct_inputs: int
    kish_size: float
    method: IccMethod
    icc: float | Undefined
    """As estimated; a value below 0 means that inputs differ less than chance alone would."""
    design_effect: float | Undefined
    """From the estimate, or from 0 where the estimate is negative."""
    effective_trials: float | Undefined
    materially_clustered: bool


def intraclass_correlation(groups: Groups, *, method: IccMethod = "anova") -> float | Undefined:
    """The correlation of two trials of the same input, estimated from counts per input.

    ``"anova"``: ``ρ̂ = (B − W) / (B + (n₀ − 1) W)``, B and W the mean squares between and within
    inputs and ``n₀ = (N − Σmⱼ²/N)/(J − 1)``. ``"fleiss-cuzick"``:
    ``ρ̂ = 1 − Σ yⱼ(mⱼ − yⱼ)/mⱼ / ((N − J) P(1 − P))``, P the pooled rate. Both are at most 1 and may
    be negative.

    Parameters
    ----------
    groups : (successes, trials) of each distinct input, at least one input.
    method : the estimator.

    Returns
    -------
    float or Undefined
        Undefined for fewer than two inputs, when no input has two trials, and when all outcomes
        are the same.

    References
    ----------
    Ridout, Demétrio and Firth (1999), Biometrics 55, 137–148, section 2; Fleiss and Cuzick (1979).

    Examples
    --------
    >>> intraclass_correlation([(5, 5), (0, 5)])
    1.0
    >>> intraclass_correlation([(2, 4), (2, 4)])
    -0.333...
    >>> intraclass_correlation([(2, 4)])
    Undefined(reason='an intraclass correlation needs at least two inputs')
    """
    counts = check_groups(groups)
    require_choice("method", method, ICC_METHODS)
    if (unfit := unfit_for_correlation(counts)) is not None:
        return unfit
    return _anova(counts) if method == "anova" else _fleiss_cuzick(counts)


def kish_cluster_size(sizes: Sequence[Count]) -> float:
    """The group size that carries an unequal design: ``m' = Σm² / Σm``.

    The mean size seen by a trial rather than by an input. With it the design effect of the pooled
    rate is exact under a common correlation.

    Parameters
    ----------
    sizes : the trials of each distinct input, each at least 1, at least one input.

    References
    ----------
    Kish (1965), Survey Sampling.

    Examples
    --------
    >>> kish_cluster_size([5, 5, 5])
    5.0
    >>> kish_cluster_size([1, 9])
    8.2
    """
    if len(sizes) == 0:
        raise InvalidArgument("sizes", sizes, "hold at least one size")
    return _kish([require_count("sizes", size, minimum=1) for size in sizes])


def design_effect(icc: float, mean_size: float) -> float:
    """The factor by which sharing inputs multiplies the variance of a rate: ``1 + (m − 1) ρ``.

    Parameters
    ----------
    icc : ρ, 0 … 1. A negative estimate is refused: replace it by 0, which claims no more
        evidence than there are trials.
    mean_size : m, trials per input, at least 1; for unequal sizes `kish_cluster_size`.

    References
    ----------
    Companion 8.2; Kish (1965), Survey Sampling.

    Examples
    --------
    >>> design_effect(0.25, 5)
    2.0
    """
    return _design_effect(require_rate("icc", icc), _check_size(mean_size))


def effective_trials(trials: Count, icc: float, *, mean_size: float | None = None) -> float:
    """The number of independent trials that would say as much: ``n / (1 + (m − 1) ρ)``.

    Without `mean_size` every pair of trials in the run is equally correlated, m = n: the
    companion's first check, which no longer run can take beyond 1/ρ.

    Parameters
    ----------
    trials : n, at least 1.
    icc : ρ, 0 … 1 (a negative estimate is refused, see `design_effect`).
    mean_size : m, trials per input, 1 … trials; all trials when left out.

    References
    ----------
    Companion 8.2; Kish (1965), Survey Sampling.

    Examples
    --------
    >>> effective_trials(100, 0.25, mean_size=5)
    50.0
    >>> effective_trials(1000, 0.01)
    90.99...
    """
    n = require_count("trials", trials, minimum=1)
    rho = require_rate("icc", icc)
    size = float(n) if mean_size is None else _check_size(mean_size)
    if size > n:
        raise InvalidArgument("mean_size", mean_size, f"be at most trials ({n})")
    return n / _design_effect(rho, size)


def is_materially_clustered(trials: Count, distinct_inputs: Count) -> bool:
    """Whether trials repeat their inputs too much to pass as independent draws: n > 2J.

    Parameters
    ----------
    trials : n, at least 1.
    distinct_inputs : J, 1 … trials.

    References
    ----------
    Companion 8.2.1 (treatment by intent).

    Examples
    --------
    >>> is_materially_clustered(100, 50), is_materially_clustered(101, 50)
    (False, True)
    """
    n = require_count("trials", trials, minimum=1)
    J = require_count("distinct_inputs", distinct_inputs, minimum=1)
    if n < J:
        raise InvalidArgument("distinct_inputs", distinct_inputs, f"be at most trials ({n})")
    return n > MATERIAL_REPETITION * J


def summarise_clusters(groups: Groups, *, method: IccMethod = "anova") -> ClusterSummary:
    """How a run's trials are spread over its inputs, and the evidence that leaves.

    The design effect takes a negative correlation as 0, so that the effective trials never
    exceed the trials.

    Parameters
    ----------
    groups : (successes, trials) of each distinct input, at least one input.
    method : the estimator of the intraclass correlation.

    References
    ----------
    Companion 8.2, 8.2.1.

    Examples
    --------
    >>> summary = summarise_clusters([(5, 5), (0, 5), (5, 5), (5, 5)])
    >>> summary.icc, summary.effective_trials, summary.materially_clustered
    (1.0, 4.0, True)
    """
    counts = check_groups(groups)
    icc = intraclass_correlation(counts, method=method)
    trials = sum(m for _, m in counts)
    size = _kish([m for _, m in counts])
    effect = icc if isinstance(icc, Undefined) else _design_effect(max(icc, 0.0), size)
    return ClusterSummary(
        trials=trials,
        successes=sum(y for y, _ in counts),
        distinct_inputs=len(counts),
        kish_size=size,
        method=method,
        icc=icc,
        design_effect=effect,
        effective_trials=effect if isinstance(effect, Undefined) else trials / effect,
        materially_clustered=trials > MATERIAL_REPETITION * len(counts),
    )


def unfit_for_correlation(counts: tuple[tuple[int, int], ...]) -> Undefined | None:
    """Why no correlation within inputs can be estimated, if it cannot."""
    successes, trials = sum(y for y, _ in counts), sum(m for _, m in counts)
    if len(counts) < 2:
        return Undefined("an intraclass correlation needs at least two inputs")
    if trials == len(counts):
        return Undefined("no input has two trials, so no two trials share an input")
    if successes in (0, trials):
        return Undefined("all outcomes are the same, so they have no variance to divide")
    return None


def _check_size(mean_size: float) -> float:
    size = require_real("mean_size", mean_size)
    if size < 1:
        raise InvalidArgument("mean_size", mean_size, "be at least 1")
    return size


def _kish(sizes: list[int]) -> float:
    return sum(m * m for m in sizes) / sum(sizes)


def _design_effect(icc: float, size: float) -> float:
    return 1 + (size - 1) * icc


def _anova(counts: tuple[tuple[int, int], ...]) -> float:
    J, N = len(counts), sum(m for _, m in counts)
    pooled = sum(y for y, _ in counts) / N
    # Squared deviations, and not Σy²/m − (Σy)²/N: nothing cancels when the rates are close.
    between = fsum(m * (y / m - pooled) ** 2 for y, m in counts) / (J - 1)
    within = fsum(y * (m - y) / m for y, m in counts) / (N - J)
    size = (N - sum(m * m for _, m in counts) / N) / (J - 1)
    return (between - within) / (between + (size - 1) * within)


def _fleiss_cuzick(counts: tuple[tuple[int, int], ...]) -> float:
    J, N = len(counts), sum(m for _, m in counts)
    successes = sum(y for y, _ in counts)
    within = fsum(y * (m - y) / m for y, m in counts)
    return 1 - within * N * N / ((N - J) * successes * (N - successes))


# --- Whether consecutive trials resemble one another: the check that independence deserves --------
#
# A module of its own because it looks at the order of the trials, which no other method here does.

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


def _check_outcomes(outcomes: object) -> tuple[int, ...]:
    # A text would be read letter by letter.
    sequence: tuple[int, ...] = ()
    if isinstance(outcomes, Iterable) and not isinstance(outcomes, str | bytes):
        sequence = tuple(outcomes)
    if not sequence:
        allowed = "be a sequence of 0 and 1 with at least one outcome"
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
