"""How many trials find a loss below a required rate: the confidence-first sizes of companion §5.5.

A requirement is shown by trials of a service that is better than required. Here the question is
the other one: the service is to FAIL often enough once it has lost a margin. The companion's normal
formula and the exact smallest number stand side by side.
"""

from __future__ import annotations

from dataclasses import dataclass

from trialwise.decimals import as_written, complement
from trialwise.stats.binomial import binomial_tail
from trialwise.stats.rate_sizing import normal_sizing

#: The powers of the companion's table (§5.4).
USUAL_POWERS = (0.80, 0.90, 0.95)
#: A larger exact number is not searched for, as the search takes seconds.
LARGEST_EXACT = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LossSize:
    """The trials that find a loss with one power."""

    power: float
    normal_trials: int
    """⌈((z_α √(p0(1−p0)) + z_β √(p1(1−p1))) / δ)²⌉, as in companion §5.4 and §5.5."""
    trials: int | None
    """The fewest with both errors exactly within their limits; None beyond 30,000."""
    cutoff: int | None
    """The fewest successes that PASS with so many trials."""
    wrong_fail: float | None
    """P(FAIL) at the required rate."""
    wrong_pass: float | None
    """P(PASS) at the required rate minus the margin."""


def size_losses(
    required_rate: float, margin: float | None, alpha: float, power: float
) -> tuple[LossSize, ...]:
    """Return the sizes that find a loss of the margin, for the usual powers and the one asked for.

    >>> [size.normal_trials for size in size_losses(0.995, 0.01, 0.05, 0.80)]
    [477, 739, 999]

    Args:
        required_rate: The rate that the service must not lose.
        margin: The loss; nothing is sized without one.
        alpha: The largest P(FAIL) at the required rate.
        power: The wanted P(FAIL) at the required rate minus the margin.
    """
    if margin is None:
        return ()
    powers = sorted({*USUAL_POWERS, power})
    return tuple(_size_loss(required_rate, margin, alpha, one) for one in powers)


def _size_loss(required_rate: float, margin: float, alpha: float, power: float) -> LossSize:
    # Few plans ask for a loss, and the search loads the sequential designs.
    from trialwise.stats.sequential.bound import fixed_size

    normal = normal_sizing(required_rate, margin, alpha=alpha, power=power).required_trials
    if normal > LARGEST_EXACT:
        return LossSize(
            power=power,
            normal_trials=normal,
            trials=None,
            cutoff=None,
            wrong_fail=None,
            wrong_pass=None,
        )
    lower = float(as_written(required_rate) - as_written(margin))
    size = fixed_size(required_rate, lower, alpha=alpha, beta=complement(power))
    cutoff = size.trials - size.most_failures
    return LossSize(
        power=power,
        normal_trials=normal,
        trials=size.trials,
        cutoff=cutoff,
        wrong_fail=1 - binomial_tail(cutoff, size.trials, required_rate),
        wrong_pass=binomial_tail(cutoff, size.trials, lower),
    )
