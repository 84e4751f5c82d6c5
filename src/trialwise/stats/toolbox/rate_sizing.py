"""How many trials, and how likely a decision: planning formulas and their exact counterparts.

The normal-approximation formulas of companion §2.4 and §5.3–5.5 budget a run; they are not
calibrated claims. The exact ones count. Exact power is a sawtooth in the number of trials, so
"enough" here means enough from that number on, not the first time the curve happens to touch.

Growing n or the cutoff by one changes a binomial tail by a single probability, so the powers at
1 … 20,000 trials, each with its own exact cutoff, cost a few additions each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from trialwise.decimals import as_written, at_most
from trialwise.errors import InvalidArgument
from trialwise.stats.binomial import (
    exact_tail,
    normal_cdf,
    normal_quantile,
    raw_pmf,
    raw_tail,
    upper_z,
)
from trialwise.stats.compliance_cutoffs import check_required_rate, minimum_trials, wilson_cutoff
from trialwise.stats.result_types import RULES, Rule
from trialwise.validation import require_choice, require_open_rate, require_rate

#: The largest number of trials a sizing considers: beyond it a test suite is not the instrument.
LIMIT = 20_000


AlternativeKind = Literal["MARGIN", "MIDWAY", "DECLARED"]

#: Every step adds rounding; a fresh tail this often keeps it below 1e-13.
_REFRESH = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalSizing:
    """Trials by the normal approximation, and the power the same approximation gives them."""

    reference_rate: float
    effect: float
    alpha: float
    power: float
    required_trials: int
    achieved_power: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ComplianceSizing:
    """The trials from which on a compliance test has its power, by exact enumeration."""

    rule: Rule
    alternative_rate: float
    alternative_kind: AlternativeKind
    """How the alternative was chosen: required + effect, midway to 1, or as declared."""
    required_trials: int | None
    """The first number of trials from which power stays at the target up to 20,000 trials.

    None where there is none.
    """
    achieved_power: float | None
    first_crossing: int | None
    """The first number of trials that reaches the target at all; the sawtooth may drop again."""


def normal_sizing(
    reference_rate: float, effect: float, *, alpha: float = 0.05, power: float = 0.80
) -> NormalSizing:
    """The trials to detect a drop of `effect`, by the normal approximation (companion §5.4, §5.5).

    ⌈((z_α √(p0(1−p0)) + z_β √(p1(1−p1))) / δ)²⌉ with p1 = p0 − δ.

    Examples
    --------
    >>> normal_sizing(0.95, 0.05).required_trials
    150
    >>> normal_sizing(0.999, 0.001).required_trials
    8027
    """
    p0 = require_open_rate("reference_rate", reference_rate)
    delta = require_open_rate("effect", effect)
    p1 = float(as_written(p0) - as_written(delta))
    if p1 <= 0:
        raise InvalidArgument("effect", effect, f"be smaller than reference_rate ({p0})")
    level = require_open_rate("alpha", alpha)
    target = require_open_rate("power", power)
    z_alpha, z_beta = upper_z(level), normal_quantile(target)
    root = (z_alpha * math.sqrt(p0 * (1 - p0)) + z_beta * math.sqrt(p1 * (1 - p1))) / delta
    n = max(1, math.ceil(root * root)) if root > 0 else 1
    return NormalSizing(
        reference_rate=p0,
        effect=delta,
        alpha=level,
        power=target,
        required_trials=n,
        achieved_power=approximate_power(p0, p1, n, z_alpha),
    )


def precision_trials(rate: float, margin: float, *, confidence: float = 0.95) -> int:
    """The trials that estimate a rate to ± `margin`, by the normal approximation (companion §2.4).

    ⌈z² p(1−p) / e²⌉.

    Examples
    --------
    >>> [precision_trials(0.95, e) for e in (0.05, 0.03, 0.02, 0.01)]
    [73, 203, 457, 1825]
    """
    p = require_rate("rate", rate)
    e = require_open_rate("margin", margin)
    z = upper_z((1 - require_open_rate("confidence", confidence)) / 2)
    return max(1, math.ceil(z * z * p * (1 - p) / (e * e)))


def compliance_sizing(
    required_rate: float,
    effect: float | None = None,
    *,
    alternative_rate: float | None = None,
    alpha: float = 0.05,
    power: float = 0.80,
    rule: Rule = "exact",
) -> ComplianceSizing:
    """The trials that show `required_rate` with the wanted power if the true rate is better.

    Power(n) = P(K ≥ cutoff(n)) at the alternative: `alternative_rate` where declared, otherwise
    required + effect, or midway between the requirement and 1 where that sum reaches 1.

    Parameters
    ----------
    required_rate : float
        Strictly between 0 and 1.
    effect : float, optional
        How far above the requirement the service is hoped to be; needed without an alternative.
    alternative_rate : float, optional
        The true rate at which the power is wanted, above the requirement.
    alpha, power : float
        False-compliance level and wanted P(PASS), strictly between 0 and 1.
    rule : {"exact", "wilson", "fisher"}
        Whose cutoffs to use.

    Examples
    --------
    >>> sizing = compliance_sizing(0.95, 0.02)
    >>> sizing.required_trials, sizing.first_crossing
    (694, 601)
    """
    p = check_required_rate(required_rate)
    level = require_open_rate("alpha", alpha)
    target = require_open_rate("power", power)
    p1, kind = _alternative(p, effect, alternative_rate)
    powers = compliance_powers(p, p1, level, require_choice("rule", rule, RULES), LIMIT)
    enough = [reaches_target(value, target) for value in powers]
    first = enough.index(True) + 1 if True in enough else None
    # One more than the last number of trials that falls short.
    required = next((n for n in range(LIMIT, 0, -1) if not enough[n - 1]), 0) + 1
    return ComplianceSizing(
        rule=rule,
        alternative_rate=p1,
        alternative_kind=kind,
        required_trials=required if required <= LIMIT else None,
        achieved_power=powers[required - 1] if required <= LIMIT else None,
        first_crossing=first,
    )


def reaches_target(power: float, target: float) -> bool:
    """Whether a power is at least its target, the rounding of a sum of doubles forgiven."""
    return power >= target * (1 - 1e-12)


def approximate_power(p0: float, p1: float, n: int, z: float) -> float:
    """Return the power of a test of p0 at p1, by the normal approximation."""
    return chance_below(p0 - z * math.sqrt(p0 * (1 - p0) / n), p1, n)


def chance_below(limit: float, rate: float, n: int) -> float:
    """Return the chance that n trials observe less than a limit, by the normal approximation."""
    gap, spread = limit - rate, math.sqrt(rate * (1 - rate) / n)
    if spread == 0:
        return 1.0 if gap > 0 else 0.0
    return normal_cdf(gap / spread)


def _alternative(
    p: float, effect: float | None, declared: float | None
) -> tuple[float, AlternativeKind]:
    if declared is not None:
        p1 = require_rate("alternative_rate", declared)
        if p1 <= p:
            raise InvalidArgument("alternative_rate", declared, f"lie above required_rate ({p})")
        return p1, "DECLARED"
    if effect is None:
        raise InvalidArgument("effect", effect, "be given where no alternative_rate is")
    total = as_written(p) + as_written(require_open_rate("effect", effect))
    if total >= 1:
        return float((as_written(p) + 1) / 2), "MIDWAY"
    return float(total), "MARGIN"


def compliance_powers(
    required: float, alternative: float, alpha: float, rule: Rule, limit: int
) -> list[float]:
    """P(PASS) at the alternative for 1 … limit trials; 0 where no count can pass."""
    first = minimum_trials(required, alpha=alpha, rule=rule)
    powers = [0.0] * min(first - 1, limit)
    if first > limit:
        return powers
    null, hoped = _TailWalk(required, first), _TailWalk(alternative, first)
    z = upper_z(alpha)
    for n in range(first, limit + 1):
        if n > first:
            null.add_trial()
            hoped.add_trial()
        while _too_low(null, required, alpha, z, rule):
            null.raise_cutoff()
            hoped.raise_cutoff()
        powers.append(hoped.tail)
    return powers


def _too_low(null: _TailWalk, required: float, alpha: float, z: float, rule: Rule) -> bool:
    if rule == "wilson":
        cutoff = wilson_cutoff(required, null.n, z)
        return cutoff is not None and null.k < cutoff
    return not at_most(null.tail, alpha, lambda: exact_tail(null.k, null.n, as_written(required)))


class _TailWalk:
    """P(K ≥ k) for n trials at rate p, moved one trial or one count at a time."""

    __slots__ = ("_below", "_p", "_steps", "k", "n", "tail")

    def __init__(self, p: float, n: int) -> None:
        self._p = p
        self.n = self.k = n
        self._refresh()

    def add_trial(self) -> None:
        """n → n + 1: the new trial lifts those who were one short."""
        q = 1 - self._p
        self.tail += self._below * self._p
        self._below *= (self.n + 1) / (self.n - self.k + 2) * q
        self.n += 1
        self._count_step()

    def raise_cutoff(self) -> None:
        """k → k + 1: those exactly at the cutoff no longer pass."""
        if self._p < 1:
            self._below *= (self.n - self.k + 1) / self.k * self._p / (1 - self._p)
        self.tail -= self._below
        self.k += 1
        self._count_step()

    def _count_step(self) -> None:
        self._steps += 1
        if self._steps >= _REFRESH or self.tail <= 0:
            self._refresh()

    def _refresh(self) -> None:
        self._steps = 0
        self.tail = raw_tail(self.k, self.n, self._p)
        #: P(K = k − 1), the next to be lifted.
        self._below = raw_pmf(self.k - 1, self.n, self._p)
