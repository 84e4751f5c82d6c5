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
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import chain, pairwise
from operator import mul
from typing import ClassVar, NamedTuple

from trialwise import validation
from trialwise.decimals import RELATIVE_BAND
from trialwise.stats.binomial import average_below, find_first, likely_counts, raw_cdf, upper_z
from trialwise.stats.rate_intervals import wilson_low
from trialwise.stats.result_types import RULES, Count, Refusal, Rule
from trialwise.stats.sequential.walks import OperatingCharacteristic, characteristic
from trialwise.stats.staged_schemes import StagedScheme
from trialwise.stats.unconditional import (
    FisherLevel,
    RejectionRegion,
    find_supremum,
    fisher_corners,
    fisher_cutoffs,
    lattice_weight,
    smallest_count,
)

# --- Boschloo's rule for every baseline count -----------------------------------------------------
#
# The fewest successes that PASS, for every baseline count of a planned test. The rule rejects the
# outcomes whose Fisher p-value is at most a critical level, the largest one at which no common rate
# is rejected with a probability above alpha. Raising the level adds outcomes one by one, each to
# one total number of successes, so one walk gives Fisher's region and the outcomes next to it;
# where to stop among them is found by bisection on a grid of rates. `unconditional` then proves
# that the region holds alpha between these rates, too.

#: Half of the distance between two rates of the grid, in standard deviations of the total.
_REACH = 0.35
#: Binomial probabilities rarer than this, relative to the likeliest, are left out.
_NEGLIGIBLE = 1e-15
#: From this many trials together on, Fisher's region serves: the two differ by less than a 40th of
#: alpha there, and the search would take seconds.
LARGEST_SEARCH = 12_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BoschlooRegion:
    """The rule of Boschloo's test for two planned sizes."""

    baseline_trials: int
    trials: int
    alpha: float
    cutoffs: tuple[int, ...]
    """The fewest successes that PASS, for 0, 1, … successes of the baseline."""
    first: int
    conditional: tuple[float, ...]
    """P(FAIL | s successes among all trials) when nothing changed, for s = first, first + 1, …"""

    @property
    def size(self) -> float:
        """The largest false-alarm probability over every common rate; at most alpha."""
        region = RejectionRegion(
            size=self.baseline_trials + self.trials,
            level=max(self.conditional, default=0.0),
            first=self.first,
            conditional=list(self.conditional),
        )
        return find_supremum(region).high


class _Outcome(NamedTuple):
    """k successes of the baseline and x of the test, with Fisher's p-value.

    `weight` is the outcome's probability given k + x successes in all.
    """

    p_value: float
    k: int
    x: int
    weight: float


@lru_cache(maxsize=128)
def boschloo_region(nb: int, nt: int, alpha: float) -> BoschlooRegion:
    """Return the rule that Boschloo's test applies at two sizes and a level.

    Examples
    --------
    >>> boschloo_region(100, 100, 0.05).cutoffs[95]
    88
    """
    corners = {
        k + x: _Outcome(tail, k, x, weight)
        for k, x, tail, weight in fisher_corners(FisherLevel(alpha, nb, nt), nb, nt)
    }
    if nb + nt > LARGEST_SEARCH:
        return _build(corners, nb, nt, alpha)
    level, stride = alpha, 1 + 3.5 / math.sqrt(min(nb, nt))
    while True:
        level *= stride
        groups = _group_ties(_list_outcomes(corners, level, nb, nt))
        held = _count_held(corners, groups, nb + nt, alpha)
        for group in groups[:held]:
            corners.update((one.k + one.x, one) for one in group)
        # Where all of them fit, the critical level may be higher still.
        if held < len(groups) or level >= 1:
            return _build(corners, nb, nt, alpha)


def _build(corners: dict[int, _Outcome], nb: int, nt: int, alpha: float) -> BoschlooRegion:
    cutoffs = [0] * (nb + 1)
    for one in corners.values():
        cutoffs[one.k] = max(cutoffs[one.k], one.x + 1)
    totals = range(min(corners, default=0), max(corners, default=-1) + 1)
    return BoschlooRegion(
        baseline_trials=nb,
        trials=nt,
        alpha=alpha,
        cutoffs=tuple(cutoffs),
        first=totals.start,
        conditional=tuple(corners[s].p_value if s in corners else 0.0 for s in totals),
    )


def _list_outcomes(corners: dict[int, _Outcome], level: float, nb: int, nt: int) -> list[_Outcome]:
    """List the outcomes beyond a region whose p-value is at most `level`, smallest first."""
    limit = level * (1 + RELATIVE_BAND)
    found: list[_Outcome] = []

    def follow(one: _Outcome) -> None:
        tail, k, x, weight = one
        while tail <= limit and k > 0 and x < nt:
            found.append(_Outcome(tail, k, x, weight))
            weight *= k * (nt - x) / ((x + 1) * (nb - k + 1))
            k, x = k - 1, x + 1
            tail += weight

    for tail, k, x, weight in corners.values():
        if k > 1 and x + 1 < nt:
            higher = weight * k * (nt - x) / ((x + 1) * (nb - k + 1))
            follow(_Outcome(tail + higher, k - 1, x + 1, higher))
    # Totals without a rejected outcome yet: few successes in all, or few failures.
    few, many = min(corners, default=nb + 1), max(corners, default=nb)
    for totals in (range(few - 1, 0, -1), range(many + 1, nb + nt)):
        for s in totals:
            x = max(0, s - nb)
            weight = lattice_weight(s - x, x, nb, nt)
            if weight > limit:
                break
            follow(_Outcome(weight, s - x, x, weight))
    return sorted(found)


def _group_ties(outcomes: list[_Outcome]) -> list[list[_Outcome]]:
    """Group the outcomes whose p-values agree to nine digits: a level admits all or none."""
    groups: list[list[_Outcome]] = []
    for one in outcomes:
        if groups and one.p_value <= groups[-1][-1].p_value * (1 + RELATIVE_BAND):
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


def _count_held(
    corners: dict[int, _Outcome], groups: list[list[_Outcome]], size: int, alpha: float
) -> int:
    """Count the groups, from the first, that fit into the region together."""
    limit = alpha * (1 + RELATIVE_BAND)

    def reject(held: int) -> list[float]:
        """P(reject | s successes), s = 0, 1, …, with the first groups added to the region."""
        conditional = [0.0] * (size + 1)
        added = (one for group in groups[:held] for one in group)
        for one in chain(corners.values(), added):
            conditional[one.k + one.x] = one.p_value
        return conditional

    def is_too_many(grid: Sequence[tuple[int, list[float]]], held: int) -> bool:
        conditional = reject(held)
        return any(sum(map(mul, w, conditional[first:])) > limit for first, w in grid)

    held = find_first(0, len(groups) + 1, partial(is_too_many, _lay_grid(size))) - 1
    # The grid has missed peaks between its rates: give way until the last of them fits.
    while held:
        conditional = reject(held)
        region = RejectionRegion(
            size=size, level=max(conditional), first=0, conditional=conditional
        )
        peak = find_supremum(region, limit)
        if peak.low <= limit:
            break
        at_peak = likely_counts(size, peak.rate, negligible=_NEGLIGIBLE)
        held = find_first(0, held, partial(is_too_many, [at_peak])) - 1
    return held


@lru_cache(maxsize=1)
def _lay_grid(size: int) -> list[tuple[int, list[float]]]:
    """The totals that are likely at rates so close that few peaks lie between them alone."""
    pieces = math.ceil(math.pi * math.sqrt(size) / (4 * _REACH))
    # Equal steps in the arcsine of the root are equal steps in standard deviations.
    edges = [math.sin(math.pi * i / (2 * pieces)) ** 2 for i in range(pieces + 1)]
    middles = ((left + right) / 2 for left, right in pairwise(edges))
    return [likely_counts(size, rate, negligible=_NEGLIGIBLE) for rate in middles]


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
    return _design(k, nb, n, level, validation.require_choice("rule", rule, RULES))


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


def _design(k: int, nb: int, n: int, alpha: float, rule: Rule) -> RegressionCutoff:
    """The cutoff of a rule set for one baseline, with its exact errors."""
    is_wilson, refused = rule == "wilson", rule == "fisher" and n > nb
    # Above this size Boschloo's region is Fisher's, and one cutoff of it needs no region.
    by_fisher = rule == "fisher" or (rule == "exact" and nb + n > LARGEST_SEARCH)
    rate, cutoff = k / nb, None
    threshold: float | None = None
    if is_wilson:
        z = upper_z(alpha)
        rate, cutoff = _wilson_reference(k, nb, z), _wilson_cutoff(k, nb, n, z)
        threshold = wilson_low(rate * n, n, z)
    elif not refused:
        by_region = None if by_fisher else boschloo_region(nb, n, alpha)
        cutoff = by_region.cutoffs[k] if by_region else smallest_count(k, nb, n, alpha)
        threshold = cutoff / n
    alarm: float | None = None
    if is_wilson or not (refused or k in (0, nb)):
        alarm = rejection_probability(
            nb, n, rate, rate, alpha=alpha, rule="fisher" if by_fisher else rule
        )
    return RegressionCutoff(
        rule=rule,
        baseline_successes=k,
        baseline_trials=nb,
        trials=n,
        alpha=alpha,
        cutoff=cutoff,
        threshold=threshold,
        reference_rate=rate,
        achieved_size=raw_cdf(cutoff - 1, n, rate) if is_wilson and cutoff is not None else alarm,
        design_false_alarm=alarm,
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
