"""How alike the trials of one input are, and how many independent trials they are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import Literal, SupportsIndex, TypeAlias

from trialwise.errors import InvalidArgument
from trialwise.stats.cluster_estimators import MATERIAL_REPETITION, Groups, check_groups
from trialwise.stats.result_types import Undefined
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


def kish_cluster_size(sizes: Sequence[SupportsIndex]) -> float:
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


def effective_trials(trials: SupportsIndex, icc: float, *, mean_size: float | None = None) -> float:
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


def is_materially_clustered(trials: SupportsIndex, distinct_inputs: SupportsIndex) -> bool:
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
