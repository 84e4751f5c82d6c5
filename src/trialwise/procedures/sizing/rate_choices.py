"""The ways to ask for a required rate, side by side: strict, with a margin, or with fixed trials.

Each says what a PASS shows, how likely each verdict is at the rate that somebody expects, and what
it takes. Every number is exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from trialwise.decimals import as_written
from trialwise.documents.numbers import as_percent
from trialwise.model.plan import CriterionPlan, Failing
from trialwise.procedures.base import rate_below
from trialwise.procedures.characteristic import count_fixed
from trialwise.procedures.sequential import GENEROUS, count_passes_needed
from trialwise.procedures.sizing.trial_costs import NO_PRICES, Prices
from trialwise.stats.compliance_cutoffs import (
    ComplianceCutoff,
    compliance_cutoff,
    find_most_failing,
)
from trialwise.stats.sequential.design import SequentialDesign
from trialwise.stats.sequential.hypotheses import likely_mix
from trialwise.stats.sequential.shipped_designs import MOST_WITHOUT_CONSENT, DesignCache
from trialwise.validation import require_open_rate, require_rate

#: The margins that are compared with none.
MARGINS = (0.05, 0.10)
#: How likely a fixed number of trials is to PASS at the expected rate, and the most trials tried.
POWER, MOST_FIXED = 0.80, 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RateChoice:
    """One way to ask, and what it does at the expected rate."""

    setting: str
    """As a suite writes it, what is added to `at_least` alone after a plus sign."""
    shows: float
    """PASS shows a rate above this one."""
    max_trials: int
    passes: float | None = None
    fails: float | None = None
    inconclusive: float | None = None
    mean_trials: float | None = None
    mean_usd: float | None = None
    """None where nobody said what a trial costs."""


def expect_half(required: float) -> float:
    """Return the rate with half the allowed failures, for those who expect none in particular."""
    return float((1 + as_written(required)) / 2)


def list_choices(
    required: float,
    expected: float | None = None,
    *,
    level: float = 0.05,
    max_trials: int | None = None,
    prices: Prices = NO_PRICES,
    cache: DesignCache | None = None,
) -> tuple[RateChoice, ...]:
    """List the ways to ask whether a rate is at least the required one.

    Args:
        required: Strictly between 0 and 1.
        expected: The true rate that somebody expects; half the allowed failures by default.
        level: The largest probability of a wrong PASS, and of a wrong FAIL.
        max_trials: Upper limit on trials of those that may stop early.
        prices: What a trial costs.
        cache: Where designs are kept between runs.

    >>> strict, *_ = list_choices(0.9, 0.97)
    >>> strict.setting, strict.max_trials, strict.passes > 0.98
    ('at_least: 90%', 215, True)
    """
    require_open_rate("required", required)
    rate = expect_half(required) if expected is None else require_rate("expected", expected)
    question = _Question(required, rate, level, max_trials, prices, cache)
    return tuple(question.list_choices())


@dataclass(frozen=True, slots=True)
class _Question:
    required: float
    expected: float
    level: float
    max_trials: int | None
    prices: Prices
    cache: DesignCache | None

    def list_choices(self) -> Iterator[RateChoice]:
        setting = f"at_least: {_write(self.required)}"
        yield self._choose_strict(setting)
        for margin in MARGINS:
            lower = rate_below(self.required, margin)
            if lower <= 0:
                continue
            design = SequentialDesign.optimal(
                self.required,
                lower,
                alpha=self.level,
                beta=self.level,
                cap=self.max_trials,
                mix=likely_mix(self.required, lower),
                cache=self.cache,
            )
            yield self._weigh_design(f"+ margin: {_write(margin)}", lower, design)
        fixed = self._find_fixed()
        if fixed is not None and fixed.cutoff is not None:
            yield self._weigh_fixed(fixed.trials, fixed.cutoff)

    def _weigh_fixed(self, trials: int, cutoff: int) -> RateChoice:
        most = min(find_most_failing(self.required, trials, self.level, "exact"), cutoff - 1)
        plan = CriterionPlan(
            criterion="",
            procedure="COMPLIANCE",
            alpha=self.level,
            trials=trials,
            cutoff=cutoff,
            failing=Failing(most_failing=most, fail_alpha=self.level),
        )
        curve = count_fixed(plan, cutoff, most, self.required, self.required)
        (found,) = replace(curve, states=((self.expected, "expected"),)).chances
        mean = float(trials) if found.mean_trials is None else found.mean_trials
        return RateChoice(
            setting=f"+ trials: {trials}",
            shows=self.required,
            max_trials=trials,
            passes=found.passes,
            fails=found.fails,
            inconclusive=found.inconclusive,
            mean_trials=mean,
            mean_usd=self._price(mean),
        )

    def _choose_strict(self, setting: str) -> RateChoice:
        least = count_passes_needed(self.required, self.level)
        if self.max_trials is None and least > MOST_WITHOUT_CONSENT:
            most = math.ceil(GENEROUS * least)
            return RateChoice(
                setting=f"+ max_trials: {most}",
                shows=self.required,
                max_trials=most,
            )
        design = SequentialDesign.strict(
            self.required,
            alpha=self.level,
            beta=self.level,
            cap=self.max_trials,
            cache=self.cache,
        )
        return self._weigh_design(setting, self.required, design)

    def _weigh_design(self, setting: str, shows: float, design: SequentialDesign) -> RateChoice:
        found = design.operating_characteristic(self.expected)
        return RateChoice(
            setting=setting,
            shows=shows,
            max_trials=design.cap,
            passes=found.passes,
            fails=found.fails,
            inconclusive=found.inconclusive,
            mean_trials=found.mean_trials,
            mean_usd=self._price(found.mean_trials),
        )

    def _find_fixed(self) -> ComplianceCutoff | None:
        """Find the fewest fixed trials that PASS at the expected rate often enough."""
        if self.expected <= self.required:
            return None
        for trials in range(count_passes_needed(self.required, self.level), MOST_FIXED):
            design = compliance_cutoff(self.required, trials, alpha=self.level, rule="exact")
            if design.cutoff is not None and design.power(self.expected) >= POWER:
                return design
        return None

    def _price(self, trials: float) -> float | None:
        return None if self.prices.trial_usd is None else trials * self.prices.trial_usd


def _write(rate: float) -> str:
    return as_percent(rate).replace(" ", "")
