"""The ways to ask for a required rate, side by side: strict, with a margin, or with fixed trials.

Each says what a PASS shows, how likely each verdict is at the rate that somebody expects, and what
it takes. Every number is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from trialwise.decimals import as_written
from trialwise.documents.numbers import as_percent
from trialwise.model.claim import Claim, Sampling
from trialwise.model.criterion import Criterion
from trialwise.model.options import RunOptions
from trialwise.procedures.base import Refused, Situation, rate_below
from trialwise.procedures.chances import characterize
from trialwise.procedures.compliance import PROCEDURE as COMPLIANCE
from trialwise.procedures.sequential import PROCEDURE as SEQUENTIAL
from trialwise.procedures.sequential_designs import GENEROUS, count_passes_needed
from trialwise.procedures.sizing.sizing_base import NO_PRICES, Prices
from trialwise.stats.compliance_cutoffs import compliance_cutoff
from trialwise.stats.sequential.shipped_designs import DesignCache
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
    prices: Prices = NO_PRICES,
    cache: DesignCache | None = None,
) -> tuple[RateChoice, ...]:
    """List the ways to ask whether a rate is at least the required one.

    Each is planned as the criterion of a suite would be, and its characteristic says the chances.

    Args:
        required: Strictly between 0 and 1.
        expected: The true rate that somebody expects; half the allowed failures by default.
        level: The largest probability of a wrong PASS, and of a wrong FAIL.
        prices: What a trial costs.
        cache: Where designs are kept between runs.

    >>> strict, *_ = list_choices(0.9, 0.97)
    >>> strict.setting, strict.max_trials, strict.passes > 0.98
    ('at_least: 90%', 215, True)
    """
    require_open_rate("required", required)
    rate = expect_half(required) if expected is None else require_rate("expected", expected)
    situation = Situation(
        experiment="",
        sampling=Sampling.of(["any"]),
        claim=Claim(),
        options=RunOptions(),
        cache=cache,
    )
    strict = Criterion("rate", bool, at_least=required, alpha=level, beta=level)
    # What a user would write without thinking first: the others say what they change about it.
    ways = [(f"at_least: {_write(required)}", strict)]
    ways += [
        (f"+ margin: {_write(margin)}", replace(strict, margin=margin))
        for margin in MARGINS
        if rate_below(required, margin) > 0
    ]
    fixed = _find_fixed(required, rate, level)
    if fixed is not None:
        ways.append((f"+ trials: {fixed}", replace(strict, trials=fixed)))
    return tuple(_weigh(setting, way, rate, situation, prices) for setting, way in ways)


def _weigh(
    setting: str, way: Criterion, rate: float, situation: Situation, prices: Prices
) -> RateChoice:
    """Weigh one way to ask at the expected rate."""
    required = way.at_least or 0.0
    plan = (SEQUENTIAL if way.trials is None else COMPLIANCE).plan(way, situation)
    if isinstance(plan, Refused):
        # Nobody agreed to so many trials; with what `max_trials` would have to be it is planned.
        most = math.ceil(GENEROUS * count_passes_needed(required, way.wrong_pass))
        return RateChoice(setting=f"+ max_trials: {most}", shows=required, max_trials=most)
    found = characterize(plan).foresee(rate)
    mean = float(plan.trials) if found.mean_trials is None else found.mean_trials
    return RateChoice(
        setting=setting,
        shows=required if way.margin is None else rate_below(required, way.margin),
        max_trials=plan.trials,
        passes=found.passes,
        fails=found.fails,
        inconclusive=found.inconclusive,
        mean_trials=mean,
        mean_usd=None if prices.trial_usd is None else mean * prices.trial_usd,
    )


def _find_fixed(required: float, expected: float, level: float) -> int | None:
    """Find the fewest fixed trials that PASS at the expected rate often enough."""
    if expected <= required:
        return None
    for trials in range(count_passes_needed(required, level), MOST_FIXED):
        design = compliance_cutoff(required, trials, alpha=level, rule="exact")
        if design.cutoff is not None and design.power(expected) >= POWER:
            return trials
    return None


def _write(rate: float) -> str:
    return as_percent(rate).replace(" ", "")
