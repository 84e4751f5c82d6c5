"""What pairs took under two arms, in time, money and tokens: described, never decided.

The typical difference within pairs is Hodges and Lehmann's, with an interval by signed ranks. It
is exact where differences scatter evenly around their centre. The median and its interval by order
statistics stand beside it: they need no shape, and are wider.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from trialwise.decimals import as_written
from trialwise.model.trial import Trial
from trialwise.procedures.comparing.amount_types import AmountDifference, ScoreLift
from trialwise.procedures.comparing.trial_pairing import Pair, Pairing
from trialwise.stats.compliance_cutoffs import compliance_cutoff
from trialwise.stats.result_types import Interval, Undefined
from trialwise.stats.sign_flips import sign_flip_mean
from trialwise.stats.signed_ranks import hodges_lehmann


@dataclass(frozen=True, slots=True)
class _Amount:
    name: str
    basis: str
    of: Callable[[Trial], float | None]
    """What a trial took, without its setup."""
    of_successes: bool = False


_AMOUNTS = (
    _Amount(
        "latency_s",
        "pairs in which both passed every criterion",
        lambda trial: trial.latency_s,
        of_successes=True,
    ),
    _Amount("cost_usd", "pairs in which both say what they cost", lambda trial: trial.cost_usd),
    _Amount(
        "tokens",
        "pairs in which both say what they used",
        lambda trial: None if trial.usage is None else trial.usage.total_tokens,
    ),
)


def compare_amounts(pairing: Pairing, *, confidence: float) -> Iterator[AmountDifference]:
    """Yield what the pairs of an experiment took, amount by amount; none where no pair says.

    Args:
        pairing: The pairs of two arms.
        confidence: The confidence of the intervals.
    """
    for amount in _AMOUNTS:
        taken = [both for pair in pairing.pairs if (both := _find_both(amount, pair)) is not None]
        if taken:
            yield _describe(amount, taken, pairing, confidence)


def _describe(
    amount: _Amount, taken: Sequence[tuple[float, float]], pairing: Pairing, confidence: float
) -> AmountDifference:
    differences = [subtract_written(candidate, control) for control, candidate in taken]
    shift = hodges_lehmann(differences, confidence=confidence)
    mean = sign_flip_mean(differences, confidence=confidence)
    summary = pairing.summary
    return AmountDifference(
        name=amount.name,
        arm=summary.arm,
        against=summary.against,
        experiment=summary.experiment,
        pairs=len(taken),
        basis=amount.basis,
        control_mean=fmean(control for control, _ in taken),
        candidate_mean=fmean(candidate for _, candidate in taken),
        difference=shift.estimate,
        interval=qualify_interval(shift.interval, pairing),
        p_value=shift.p_value if summary.fixed_size else None,
        mean_interval=qualify_interval(mean.interval, pairing),
        median_difference=median(differences),
        median_interval=qualify_interval(
            median_interval(differences, confidence=confidence), pairing
        ),
    )


def describe_lift(lift: ScoreLift, pairing: Pairing) -> AmountDifference:
    """Return the scores of a criterion as one more amount.

    Args:
        lift: What was measured of them.
        pairing: The pairs that it was measured on.
    """
    return AmountDifference(
        name="score",
        criterion=lift.criterion,
        arm=lift.arm,
        against=lift.against,
        experiment=pairing.summary.experiment,
        pairs=lift.pairs,
        basis=f"pairs that {lift.criterion} graded",
        control_mean=lift.control,
        candidate_mean=lift.candidate,
        difference=lift.difference,
        interval=lift.interval,
        p_value=lift.p_value if pairing.summary.fixed_size else None,
        mean_interval=lift.flip_interval,
        median_difference=lift.median_difference,
        median_interval=None,
    )


def subtract_written(candidate: float, control: float) -> float:
    """Return the difference of two decimals: 0.9 − 0.6 is 0.3, so that equal differences tie.

    >>> subtract_written(0.9, 0.6)
    0.3
    """
    return float(as_written(candidate) - as_written(control))


def qualify_interval(found: Interval | Undefined | None, pairing: Pairing) -> Interval | None:
    """Return an interval that says so where the runs stopped because of what they saw.

    Args:
        found: The interval, if there is one.
        pairing: The pairs it was computed from.
    """
    if not isinstance(found, Interval):
        return None
    return found if pairing.summary.fixed_size else found.after_early_stop()


def _find_both(amount: _Amount, pair: Pair) -> tuple[float, float] | None:
    if amount.of_successes and not (pair.control.passed and pair.candidate.passed):
        return None
    control, candidate = amount.of(pair.control), amount.of(pair.candidate)
    return None if control is None or candidate is None else (control, candidate)


def median_interval(values: Sequence[float], *, confidence: float) -> Interval | None:
    """Return an exact confidence interval for a median: two order statistics, as far in as allowed.

    With X ~ Binomial(n, ½), the r-th value from either end bounds the median on its side unless
    X < r, so that r is the largest with P(X < r) ≤ (1 − confidence)/2.

    Args:
        values: Independent of one another.
        confidence: The confidence of the interval, kept at least.

    >>> median_interval(range(1, 11), confidence=0.95)
    Interval(low=2, high=9, confidence=0.95, method='order statistics')
    >>> median_interval([1, 2, 3], confidence=0.95) is None
    True
    """
    alpha = float((1 - as_written(confidence)) / 2)
    n = len(values)
    cutoff = compliance_cutoff(0.5, n, alpha=alpha, rule="exact").cutoff if n else None
    if cutoff is None:
        return None
    ordered = sorted(values)
    low, high = ordered[n - cutoff], ordered[cutoff - 1]
    return Interval(low, high, confidence=confidence, method="order statistics")
