"""Diagnostics: signs that trials were not independent, or not of one kind (companion §8.2, §8.3).

They qualify a verdict and never change it. Inputs are drawn in random order, so that without
dependence or drift every order of the outcomes is equally likely, however unlike the inputs are:
both tests below are exact permutation tests of that, and need no rate to be known.
"""

from __future__ import annotations

from collections.abc import Sequence

from trialwise.decimals import as_written
from trialwise.errors import InvalidArgument
from trialwise.model.evidence import Diagnostics
from trialwise.stats.autocorrelation import autocorrelation_test, lag_one_autocorrelation
from trialwise.stats.fisher import fisher_one_sided
from trialwise.stats.result_types import Undefined
from trialwise.validation import require_count

__all__ = ["NOTABLE", "UNTESTABLE_SHARE", "diagnose"]

#: A p-value below this is worth a warning: one quiet criterion in a hundred gets it by chance.
NOTABLE = 0.01
#: From this share on, what is measured is as much the plumbing as the service.
UNTESTABLE_SHARE = 0.10
#: The exact runs test takes a second here and grows with the square: beyond, it is left out.
_MOST_TESTED = 100_000

_BY_CHANCE = (
    "About 1 criterion in 100 shows this by chance, so among many criteria some are expected to."
)


def diagnose(passed: Sequence[bool], untestable: int) -> Diagnostics:
    """Look for dependence, drift and missing values in one criterion's outcomes.

    After an early stop the two p-values are indications: the trial that decided was no chance.

    Args:
        passed: The outcomes in issue order.
        untestable: How many of them failed for want of a value to test.

    >>> found = diagnose([True] * 20 + [False] * 20, untestable=0)
    >>> found.first_half_rate, found.second_half_rate, len(found.warnings)
    (1.0, 0.0, 2)
    >>> diagnose([True, False, True, True], untestable=0).warnings
    ()
    """
    n = len(passed)
    if require_count("untestable", untestable) > n:
        raise InvalidArgument("untestable", untestable, f"be at most the number of outcomes ({n})")
    if n == 0:
        return Diagnostics()
    lag_one, runs_p = _dependence(passed)
    first, second, drift_p = _drift(passed)
    return Diagnostics(
        autocorrelation=lag_one,
        autocorrelation_p=runs_p,
        first_half_rate=first,
        second_half_rate=second,
        drift_p=drift_p,
        untestable_share=untestable / n,
        warnings=tuple(
            warning
            for warning in (
                _warn_dependence(lag_one, runs_p),
                _warn_drift(first, second, drift_p),
                _warn_untestable(untestable, n),
            )
            if warning
        ),
    )


def _dependence(passed: Sequence[bool]) -> tuple[float | None, float | None]:
    """The lag-one autocorrelation and the exact runs test that neighbours are alike."""
    lag_one = lag_one_autocorrelation(passed)
    if isinstance(lag_one, Undefined):
        return None, None
    if len(passed) > _MOST_TESTED:
        return lag_one, None
    test = autocorrelation_test(passed)
    return lag_one, None if isinstance(test, Undefined) else test.p_value


def _drift(passed: Sequence[bool]) -> tuple[float | None, float | None, float | None]:
    """The rates of the two halves, and twice the smaller of Fisher's two one-sided p-values."""
    half = len(passed) // 2
    if half == 0:
        return None, None, None
    early, late, rest = sum(passed[:half]), sum(passed[half:]), len(passed) - half
    worse = fisher_one_sided(early, half, late, rest)
    better = fisher_one_sided(late, rest, early, half)
    return early / half, late / rest, min(1.0, 2 * worse, 2 * better)


def _warn_dependence(lag_one: float | None, p_value: float | None) -> str | None:
    if lag_one is None or p_value is None or p_value >= NOTABLE:
        return None
    return (
        f"Neighbouring trials are more alike than chance makes them (lag-one autocorrelation "
        f"{lag_one:.2f}, exact runs test p = {p_value:.2g}): they may share a cache, a batch or a "
        f"moment, and then say less than so many independent trials would. {_BY_CHANCE}"
    )


def _warn_drift(first: float | None, second: float | None, p_value: float | None) -> str | None:
    if first is None or second is None or p_value is None or p_value >= NOTABLE:
        return None
    return (
        f"The rate was {first:.3g} in the first half of the run and {second:.3g} in the second "
        f"(Fisher's exact test p = {p_value:.2g}): the service, or what it depends on, may have "
        f"changed on the way. {_BY_CHANCE}"
    )


def _warn_untestable(untestable: int, trials: int) -> str | None:
    if untestable < as_written(UNTESTABLE_SHARE) * trials:
        return None
    return (
        f"{untestable} of {trials} trials gave nothing to test and count as failures: look at "
        "the reasons before reading the rate as the service's own."
    )
