"""Compliance: the integer number of successes that shows a required rate is met (companion §3.6).

    H0: p ≤ p_req   against   H1: p > p_req;   PASS iff K ≥ cutoff.

`rule="wilson"` passes when the one-sided Wilson lower bound clears the requirement; the other two
take the smallest count whose binomial tail at the requirement is at most alpha. The controlled
error is false compliance, and what it really is stands on every result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from trialwise import validation
from trialwise.decimals import RELATIVE_BAND, as_written, at_most
from trialwise.errors import InvalidArgument
from trialwise.stats.binomial import exact_tail, find_end, find_first, normal_cdf, raw_tail, upper_z
from trialwise.stats.rate_intervals import wilson_low
from trialwise.stats.result_types import RULES, Count, Refusal, Rule
from trialwise.stats.unconditional import lower_tail

#: From here on p^n is compared by logarithms to 60 digits: as a rational it would fill the memory.
_LONG_POWER = 1000
#: Above this a double is so coarse beside 1 − p that p^n at the decimal written needs decimals.
_NEAR_ONE = 0.999999


@dataclass(frozen=True, slots=True, kw_only=True)
class ComplianceCutoff:
    """The decision rule of a compliance criterion, before any trial."""

    rule: Rule
    required_rate: float
    trials: int
    alpha: float
    cutoff: int | None
    """The fewest successes that PASS, or None where not even a perfect run would."""
    minimum_trials: int
    """The smallest number of trials at which a PASS is possible."""
    achieved_size: float
    """P(PASS) at exactly the required rate: the false-compliance probability that alpha targets."""

    corpus_size: ClassVar[None] = None
    """Its trials are no part of a corpus that would be used up."""

    @property
    def reference_rate(self) -> float:
        """The rate that the rule compares with."""
        return self.required_rate

    @property
    def displayed_rate(self) -> float | None:
        """The cutoff as a rate to six decimals, for people; the integer decides (§3.4)."""
        return None if self.cutoff is None else round(self.cutoff / self.trials, 6)

    @property
    def refusal(self) -> Refusal | None:
        """The reason the design is refused under verification, or None."""
        return Refusal.COMPLIANCE_INFEASIBLE if self.cutoff is None else None

    def power(self, rate: float) -> float:
        """P(PASS) when the true rate is `rate`."""
        p = validation.require_rate("rate", rate)
        return 0.0 if self.cutoff is None else _find_power(self.cutoff, self.trials, p)


def compliance_cutoff(
    required_rate: float, trials: Count, *, alpha: float = 0.05, rule: Rule = "exact"
) -> ComplianceCutoff:
    """The fewest successes in `trials` that show the rate to be above `required_rate`.

    Wilson: the smallest k with WilsonLower(k, n) ≥ p_req, that is k ≥ np + z√(np(1−p)).
    Exact: the smallest k with P(K ≥ k | n, p_req) ≤ alpha.

    Parameters
    ----------
    required_rate : float
        Strictly between 0 and 1: no finite run shows a rate of 1.
    trials : int
        At least 1.
    alpha : float
        The false-compliance level, strictly between 0 and 1.
    rule : {"exact", "wilson", "fisher"}
        Companion §3.6 with §2.3.1 for "wilson"; otherwise the exact binomial rule that replaced it.

    Examples
    --------
    >>> compliance_cutoff(0.9, 100).cutoff
    96
    >>> compliance_cutoff(0.9, 100, rule="wilson").cutoff
    95
    >>> compliance_cutoff(0.95, 50).refusal
    <Refusal.COMPLIANCE_INFEASIBLE: 'COMPLIANCE_INFEASIBLE'>
    """
    p = check_required_rate(required_rate)
    n = validation.require_count("trials", trials, minimum=1)
    level = validation.require_open_rate("alpha", alpha)
    return _find_cutoff(p, n, level, validation.require_choice("rule", rule, RULES))


_find_power = lru_cache(maxsize=256)(raw_tail)


# A criterion is planned and decided by the same numbers, and so are most criteria of a suite.
@lru_cache(maxsize=256)
def _find_cutoff(p: float, n: int, level: float, rule: Rule) -> ComplianceCutoff:
    z = upper_z(level)
    cutoff = wilson_cutoff(p, n, z) if rule == "wilson" else exact_cutoff(p, n, level)
    return ComplianceCutoff(
        rule=rule,
        required_rate=p,
        trials=n,
        alpha=level,
        cutoff=cutoff,
        minimum_trials=minimum_trials(p, alpha=level, rule=rule),
        achieved_size=0.0 if cutoff is None else raw_tail(cutoff, n, p),
    )


def find_most_failing(required: float, trials: int, alpha: float, rule: Rule) -> int:
    """Find the most successes that show a rate below the required one; −1 where none would.

    The same rule in the other direction: this many failures show more failures than are allowed.
    """
    allowed = float(1 - as_written(required))
    failures = compliance_cutoff(allowed, trials, alpha=alpha, rule=rule).cutoff
    return -1 if failures is None else trials - failures


def minimum_trials(required_rate: float, *, alpha: float = 0.05, rule: Rule = "exact") -> int:
    """The smallest number of trials that could show `required_rate`, if all succeed (§5.7.1).

    Wilson: n/(n + z²) ≥ p, so ⌈p z²/(1−p)⌉. Exact: p^n ≤ alpha, so ⌈log alpha / log p⌉.

    Examples
    --------
    >>> minimum_trials(0.95), minimum_trials(0.95, rule="wilson")
    (59, 52)
    """
    p = check_required_rate(required_rate)
    level = validation.require_open_rate("alpha", alpha)
    if validation.require_choice("rule", rule, RULES) == "wilson":
        z = upper_z(level)
        return max(1, math.ceil(p * z * z / (1 - p))) if z > 0 else 1
    if p > _NEAR_ONE:
        return _longest_run(p, level)
    n = max(1, math.ceil(math.log(level) / math.log(p)))
    # The quotient of two logarithms may land one trial off where it is a whole number.
    while n > 1 and _admits(n - 1, n - 1, p, level):
        n -= 1
    while not _admits(n, n, p, level):
        n += 1
    return n


def check_required_rate(value: float) -> float:
    """A rate that a finite number of trials can be asked to show."""
    allowed = (
        "lie strictly between 0 and 1 (no number of trials shows a rate of 1: for that, "
        "observe that nothing fails and make no claim about a rate)"
    )
    return validation.require_number("required_rate", value, allowed, lambda rate: 0 < rate < 1)


def exact_cutoff(p: float, n: int, alpha: float) -> int | None:
    """min{k : P(K ≥ k) ≤ alpha}, or None where even k = n is too likely."""
    if not _admits(n, n, p, alpha):
        return None
    low, high = 0, n  # P(K ≥ 0) = 1 never qualifies, high always does.
    guess = round(n * p + upper_z(alpha) * math.sqrt(n * p * (1 - p)))
    for probe in (guess - 2, guess + 2):
        if low < probe < high:
            low, high = (low, probe) if _admits(probe, n, p, alpha) else (probe, high)
    return find_first(low, high, lambda k: _admits(k, n, p, alpha))


def _admits(k: int, n: int, p: float, alpha: float) -> bool:
    """Whether P(K ≥ k) ≤ alpha, by the exact-boundary convention."""
    value = raw_tail(k, n, p)
    close = abs(value - alpha) <= RELATIVE_BAND * alpha
    if k == n > _LONG_POWER and (close or p > _NEAR_ONE):
        return n >= _longest_run(p, alpha)
    return at_most(value, alpha, lambda: exact_tail(k, n, as_written(p)))


def _longest_run(p: float, alpha: float) -> int:
    """The smallest n with p^n ≤ alpha, by logarithms to 60 digits of the decimals written.

    Where it is used p^n has more digits than any alpha written, so no tie exists.
    """
    precise = Context(prec=60)
    quotient = precise.divide(Decimal(repr(alpha)).ln(precise), Decimal(repr(p)).ln(precise))
    return max(1, int(quotient.to_integral_value(ROUND_CEILING)))


def wilson_cutoff(p: float, n: int, z: float) -> int | None:
    """min{k : k − np ≥ z√(np(1−p))}, the score test solved for the count."""
    edge = n * p + z * math.sqrt(n * p * (1 - p))
    k = math.ceil(edge)
    if abs(edge - round(edge)) < 1e-9 * n:
        k = next(j for j in range(round(edge) - 1, k + 2) if _clears(j, p, n, z))
    # The bound of no success is exactly 0 and clears nothing, whatever the level.
    k = max(k, 1)
    return k if k <= n else None


def _clears(k: int, p: float, n: int, z: float) -> bool:
    """k − np ≥ z√(np(1−p)) without rounding, given z."""
    rate = as_written(p)
    gap: Fraction = k - n * rate
    spread = Fraction(z) ** 2 * n * rate * (1 - rate)
    if z >= 0:
        return gap >= 0 and gap * gap >= spread
    return gap >= 0 or gap * gap <= spread


# --- The three operational approaches of companion §6: what is fixed and what follows -------------
#
# They are policies over the same rules, not three theories. Fix the cost and the level, and the
# cutoff follows (`regression_cutoff`, `compliance_cutoff`); fix the level and the power, and the
# cost follows (`normal_sizing`, `compliance_sizing` and the risk-driven sizings); fix the
# threshold, and the level it implies follows, from here.

#: A declared threshold whose false-alarm level exceeds this is called unsound (companion §6.3).
SOUND_ALPHA = 0.20
#: Φ(±9) is 1 or 0 to a double: no confidence lies outside.
_Z_LIMIT = 9.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpliedLevel:
    """The level at which a declared threshold is the one its rule would have derived."""

    rule: Rule
    alpha: float | None
    """The implied false-alarm level, or None where no level yields the threshold."""

    @property
    def confidence(self) -> float | None:
        """1 − alpha."""
        return None if self.alpha is None else 1 - self.alpha

    @property
    def is_sound(self) -> bool:
        """Whether the implied false-alarm level is at most 20 %."""
        return self.alpha is not None and self.alpha <= SOUND_ALPHA


def implied_confidence_of_threshold(
    baseline_successes: Count, baseline_trials: Count, trials: Count, threshold: float
) -> ImpliedLevel:
    """The confidence at which the Wilson regression threshold is `threshold` (companion §6.3).

    Solves WilsonLower(p̂_b, n; confidence) = threshold: z = (p̂_b − t)/√(t(1−t)/n) in closed form,
    by halving for a baseline without failures, whose effective rate moves with the confidence.

    Examples
    --------
    >>> implied_confidence_of_threshold(951, 1000, 100, 0.951).confidence
    0.5
    """
    k, nb = validation.require_successes(
        baseline_successes, baseline_trials, names=("baseline_successes", "baseline_trials")
    )
    n = validation.require_count("trials", trials, minimum=1)
    t = validation.require_open_rate("threshold", threshold)
    if k == 0:  # the threshold is 0 at every level
        return ImpliedLevel(rule="wilson", alpha=None)
    z = _perfect_z(nb, n, t) if k == nb else (k / nb - t) / math.sqrt(t * (1 - t) / n)
    return ImpliedLevel(rule="wilson", alpha=normal_cdf(-z))


def implied_alpha_of_cutoff(
    baseline_successes: Count, baseline_trials: Count, trials: Count, cutoff: Count
) -> ImpliedLevel:
    """The smallest alpha at which Fisher's rule yields `cutoff`: the p-value one count below it.

    0 for a cutoff of 0, None where no alpha yields it (a baseline without successes).

    Examples
    --------
    >>> round(implied_alpha_of_cutoff(951, 1000, 100, 91).alpha, 6)
    0.034733
    """
    k, nb = validation.require_successes(
        baseline_successes, baseline_trials, names=("baseline_successes", "baseline_trials")
    )
    n = validation.require_count("trials", trials, minimum=1)
    c = validation.require_count("cutoff", cutoff)
    if c > n:
        raise InvalidArgument("cutoff", cutoff, f"be at most trials ({n})")
    if c == 0:
        return ImpliedLevel(rule="fisher", alpha=0.0)
    return ImpliedLevel(rule="fisher", alpha=None if k == 0 else lower_tail(k, c - 1, nb, n))


def implied_confidence_of_observation(
    successes: Count, trials: Count, required_rate: float
) -> float:
    """The confidence at which an observed rate just shows a requirement (companion §6.1).

    Φ(z) with z = (p̂ − p_req)/√(p_req(1−p_req)/n): the score test's, so that a Wilson lower bound
    at this confidence equals the requirement.

    Examples
    --------
    >>> round(implied_confidence_of_observation(788, 800, 0.98), 3)
    0.844
    """
    k, n = validation.require_successes(successes, trials)
    p = check_required_rate(required_rate)
    return normal_cdf((k / n - p) / math.sqrt(p * (1 - p) / n))


def _perfect_z(nb: int, n: int, threshold: float) -> float:
    """The z at which the two-step bound of a perfect baseline equals the threshold (§4.3.2)."""
    return find_end(
        -_Z_LIMIT, _Z_LIMIT, lambda z: wilson_low(wilson_low(nb, nb, z) * n, n, z) > threshold
    )
