"""Regression: the integer number of successes below which a baseline counts as degraded (§3.4).

PASS iff K ≥ cutoff; a PASS says "no degradation signal at this cutoff", never "equivalent".

`rule="wilson"` is the companion's one-sample reference control: it takes the baseline's rate as
known, so its true false-alarm probability grows with the test (a nominal 5 % is 25 % for 500 test
trials against a baseline of 90/100). `design_false_alarm` says what it is. The other two rules keep
the false alarms at or below alpha at every common rate. `rule="fisher"` is the one-sided Fisher
test, which refuses a test larger than its baseline. `rule="exact"`, the default, is Boschloo's
test: it signals whatever Fisher's signals, and more.

The Wilson rule is not monotone at a perfect baseline: it replaces only that one by its own lower
bound, so a test of 100 must reach 96 after 99/100 but 94 after 100/100. The others are monotone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from trialwise import validation
from trialwise.stats.binomial import average_below, likely_counts, raw_cdf, upper_z
from trialwise.stats.boschloo_regions import LARGEST_SEARCH, boschloo_region
from trialwise.stats.precedence import smallest_count
from trialwise.stats.rate_intervals import wilson_low
from trialwise.stats.result_types import RULES, Count, Refusal, Rule
from trialwise.stats.staged_schemes import StagedScheme
from trialwise.stats.unconditional import fisher_cutoffs

if TYPE_CHECKING:
    from trialwise.stats.sequential.walks import OperatingCharacteristic


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionCutoff:
    """The decision rule of a regression criterion, resolved against its baseline."""

    rule: Rule
    baseline_successes: int
    baseline_trials: int
    trials: int
    alpha: float
    cutoff: int | None
    """The fewest successes that PASS: the binding artefact. None where the design is refused."""
    threshold: float | None
    """Wilson: the real-valued bound the cutoff was rounded up from. Otherwise cutoff / trials."""
    reference_rate: float
    """The rate the rule compares with: the baseline's, or its Wilson bound if it never failed."""
    achieved_size: float | None
    """The false-alarm probability by exact enumeration under the rule's own reference model.

    Wilson: P(K < cutoff) at the reference rate. Otherwise the same as `design_false_alarm`.
    """
    design_false_alarm: float | None
    """P(FAIL) when nothing changed, with the baseline's own sampling error included.

    None where the reference rate is 0 or 1 and the rule is not Wilson's: nothing then varies.
    """
    refusal: Refusal | None = None
    alternative_rate: float | None = None
    """The rate that a staged comparison is to find; None where nothing stops before all trials."""
    accept: tuple[int, ...] = ()
    """The most failures that PASS after 0, 1, … trials, where a comparison is staged."""
    reject: tuple[int, ...] = ()
    """The fewest failures that FAIL after 0, 1, … trials, likewise."""
    scheme: StagedScheme | None = None
    """What decides for every baseline of this size, where the comparison has one."""

    corpus_size: ClassVar[None] = None
    """Its trials are no part of a corpus that would be used up."""

    @property
    def counts_choices(self) -> bool:
        """Whether errors count what other baselines of this size would have been compared by."""
        return bool(self.accept) or self.scheme is not None

    @property
    def cap(self) -> int:
        """The most trials."""
        return self.trials

    @property
    def futile(self) -> tuple[tuple[int, int], ...]:
        """Nothing: every comparison ends with PASS or FAIL."""
        return ()

    @property
    def displayed_rate(self) -> float | None:
        """The cutoff as a rate to six decimals, for people; the integer decides (§3.4)."""
        return None if self.cutoff is None else round(self.cutoff / self.trials, 6)

    def power(self, rate: float) -> float | None:
        """P(FAIL) of the resolved test when the true rate is `rate`; None where refused."""
        p = validation.require_rate("rate", rate)
        if self.accept:
            return self.operating_characteristic(p).fails
        return None if self.cutoff is None else raw_cdf(self.cutoff - 1, self.trials, p)

    def operating_characteristic(self, rate: float) -> OperatingCharacteristic:
        """How a staged comparison with this baseline ends where the true rate is `rate`."""
        from trialwise.stats.sequential.walks import characteristic

        return characteristic(self, validation.require_rate("rate", rate))

    def power_at_margin(self, margin: float) -> float | None:
        """P(FAIL) when the true rate is `margin` below the reference rate."""
        return self.power(max(0.0, self.reference_rate - validation.require_rate("margin", margin)))


def regression_cutoff(
    baseline_successes: Count,
    baseline_trials: Count,
    trials: Count,
    *,
    alpha: float = 0.05,
    rule: Rule = "exact",
) -> RegressionCutoff:
    """The fewest successes in `trials` that show no degradation from a measured baseline.

    Wilson: ⌈n · WilsonLower(p̂_b, n)⌉ at the test's n; a baseline without failures is first
    replaced by its own Wilson bound (§4.3), one without successes gives 0. Fisher: the smallest
    count whose one-sided Fisher p-value exceeds alpha; more test than baseline trials are refused.
    Exact: the smallest count whose Boschloo p-value exceeds alpha.

    Parameters
    ----------
    baseline_successes, baseline_trials : int
        The measured baseline, 0 ≤ successes ≤ trials, at least one trial.
    trials : int
        Trials of the test, at least 1.
    alpha : float
        The nominal false-alarm level, strictly between 0 and 1.
    rule : {"exact", "wilson", "fisher"}
        Boschloo's test; companion §3.4 and §4.3; or the Fisher rule that replaced it.

    Examples
    --------
    >>> [regression_cutoff(90, 100, 100, rule=rule).cutoff for rule in ("fisher", "exact")]
    [81, 82]
    >>> design = regression_cutoff(951, 1000, 100, rule="wilson")
    >>> design.cutoff, round(design.threshold, 6), round(design.achieved_size, 6)
    (91, 0.902124, 0.024986)
    >>> round(regression_cutoff(90, 100, 500, rule="wilson").design_false_alarm, 3)
    0.253
    """
    k, nb = validation.require_successes(
        baseline_successes, baseline_trials, names=("baseline_successes", "baseline_trials")
    )
    n = validation.require_count("trials", trials, minimum=1)
    level = validation.require_open_rate("alpha", alpha)
    if validation.require_choice("rule", rule, RULES) == "wilson":
        return _wilson_design(k, nb, n, level)
    return _two_sample_design(k, nb, n, level, rule)


def design_false_alarm(
    rate: float, baseline_trials: Count, trials: Count, *, alpha: float = 0.05, rule: Rule = "exact"
) -> float:
    """P(FAIL) when baseline and test are both drawn at one common rate: nothing has changed.

    Σ_k P(K_b = k) P(K_t < c(k)) with c the rule's cutoff at baseline count k. The nominal alpha
    treats the baseline's rate as known; this does not.

    Examples
    --------
    >>> round(design_false_alarm(0.9, 100, 500, rule="wilson"), 3)
    0.253
    >>> round(design_false_alarm(0.9, 500, 100, rule="fisher"), 3)
    0.036
    """
    common = validation.require_rate("rate", rate)
    return design_power(common, common, baseline_trials, trials, alpha=alpha, rule=rule)


def design_power(
    baseline_rate: float,
    rate: float,
    baseline_trials: Count,
    trials: Count,
    *,
    alpha: float = 0.05,
    rule: Rule = "exact",
) -> float:
    """P(FAIL) before either run: baseline drawn at `baseline_rate`, test at `rate`.

    Examples
    --------
    >>> round(design_power(0.95, 0.90, 1000, 100, rule="fisher"), 6)
    0.53279
    """
    return rejection_probability(
        validation.require_count("baseline_trials", baseline_trials, minimum=1),
        validation.require_count("trials", trials, minimum=1),
        validation.require_rate("baseline_rate", baseline_rate),
        validation.require_rate("rate", rate),
        alpha=validation.require_open_rate("alpha", alpha),
        rule=validation.require_choice("rule", rule, RULES),
    )


def rejection_probability(
    nb: int, n: int, baseline_rate: float, rate: float, *, alpha: float, rule: Rule
) -> float:
    """Σ_k P(K_b = k) P(K_t < c(k)), over the baseline counts that can matter."""
    first, weights = likely_counts(nb, baseline_rate)
    last = first + len(weights) - 1
    if rule == "wilson":
        z = upper_z(alpha)
        cutoffs = [_wilson_cutoff(k, nb, n, z) for k in range(first, last + 1)]
    elif rule == "fisher":
        cutoffs = fisher_cutoffs(first, last, nb, n, alpha)
    else:
        cutoffs = list(boschloo_region(nb, n, alpha).cutoffs[first : last + 1])
    return average_below(weights, cutoffs, n, rate)


def _wilson_design(k: int, nb: int, n: int, alpha: float) -> RegressionCutoff:
    z = upper_z(alpha)
    reference = _wilson_reference(k, nb, z)
    cutoff = _wilson_cutoff(k, nb, n, z)
    return RegressionCutoff(
        rule="wilson",
        baseline_successes=k,
        baseline_trials=nb,
        trials=n,
        alpha=alpha,
        cutoff=cutoff,
        threshold=wilson_low(reference * n, n, z),
        reference_rate=reference,
        achieved_size=raw_cdf(cutoff - 1, n, reference),
        design_false_alarm=rejection_probability(
            nb, n, reference, reference, alpha=alpha, rule="wilson"
        ),
    )


def _two_sample_design(k: int, nb: int, n: int, alpha: float, rule: Rule) -> RegressionCutoff:
    rate = k / nb
    refused = rule == "fisher" and n > nb
    # Above this size Boschloo's region is Fisher's, and one cutoff of it needs no region.
    by_fisher = rule == "fisher" or nb + n > LARGEST_SEARCH
    cutoff: int | None
    if by_fisher:
        cutoff = None if refused else smallest_count(k, nb, n, alpha)
    else:
        cutoff = boschloo_region(nb, n, alpha).cutoffs[k]
    size = (
        None
        if refused or k in (0, nb)
        else rejection_probability(
            nb, n, rate, rate, alpha=alpha, rule="fisher" if by_fisher else rule
        )
    )
    return RegressionCutoff(
        rule=rule,
        baseline_successes=k,
        baseline_trials=nb,
        trials=n,
        alpha=alpha,
        cutoff=cutoff,
        threshold=None if cutoff is None else cutoff / n,
        reference_rate=rate,
        achieved_size=size,
        design_false_alarm=size,
        refusal=Refusal.TEST_LARGER_THAN_BASELINE if refused else None,
    )


def _wilson_reference(k: int, nb: int, z: float) -> float:
    """The baseline's rate, or its own Wilson bound where it never failed (companion §4.3.2)."""
    return wilson_low(nb, nb, z) if k == nb else k / nb


def _wilson_cutoff(k: int, nb: int, n: int, z: float) -> int:
    reference = _wilson_reference(k, nb, z)
    edge = n * wilson_low(reference * n, n, z)
    if abs(edge - round(edge)) > 1e-9 * n:
        return math.ceil(edge)
    # Too close to a whole trial for doubles: ask the score test itself, in rationals.
    centre = Fraction(reference) if k == nb else Fraction(k, nb)
    return next(
        c for c in range(max(0, round(edge) - 1), n + 1) if _meets(Fraction(c, n), centre, n, z)
    )


def _meets(rate: Fraction, centre: Fraction, n: int, z: float) -> bool:
    """Whether `rate` is at or above the Wilson lower bound of `centre`, without rounding."""
    gap = centre - rate
    spread = type(gap)(z) ** 2 * rate * (1 - rate) / n
    if z >= 0:
        return gap <= 0 or gap * gap <= spread
    return gap <= 0 and gap * gap >= spread
