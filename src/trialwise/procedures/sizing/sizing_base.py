"""What all plans share: questions, prices, and the ways to ask for a required rate side by side.

A plan turns trials into rounds, money and time, with their mean and 95th percentile. Running trials
side by side changes what is started without changing what is decided.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any, ClassVar, NamedTuple

from trialwise import validation
from trialwise.decimals import as_written, complement
from trialwise.documents.numbers import as_percent
from trialwise.errors import InvalidArgument
from trialwise.model.claim import Claim, Sampling
from trialwise.model.criterion import Criterion
from trialwise.model.options import RunOptions
from trialwise.procedures import compliance, sequential, sequential_designs
from trialwise.procedures.base import Refused, Situation, rate_below
from trialwise.procedures.chances import characterize
from trialwise.stats.result_types import Undefined
from trialwise.stats.sequential.shipped_designs import DesignCache
from trialwise.stats.toolbox.rate_sizing import compliance_powers, reaches_target

#: Points of most curves.
CURVE_POINTS = 61


class Spread(NamedTuple):
    """The mean of a quantity, and what 95 of 100 runs stay within."""

    mean: float
    p95: float

    def times(self, factor: float) -> Spread:
        """Return the same quantity in another unit."""
        return Spread(mean=self.mean * factor, p95=self.p95 * factor)


def spread(weighted: Iterable[tuple[int, float]]) -> Spread:
    """Return the mean and the 95th percentile of whole numbers with probabilities.

    >>> spread([(1, 0.9), (4, 0.1)])
    Spread(mean=1.3, p95=4)
    """
    chances: dict[int, float] = {}
    for value, weight in weighted:
        chances[value] = chances.get(value, 0.0) + weight
    values = sorted(chances)
    reached = accumulate(chances[value] for value in values)
    # The 95th percentile and not the most: a long tail is rare, and its end says little of a bill.
    # Up to rounding in the last digits: a probability of exactly 0.95 is enough.
    p95 = next((v for v, chance in zip(values, reached, strict=True) if chance >= 0.95 - 1e-12), 0)
    return Spread(mean=sum(value * chance for value, chance in chances.items()), p95=p95)


def largest_of(distribution: Sequence[float], count: int) -> tuple[float, ...]:
    """Return the distribution of the largest of `count` independent draws from 0 … n.

    >>> largest_of([0.5, 0.5], 2)
    (0.25, 0.75)
    """
    # The largest is at most n exactly where all are, and independent draws multiply.
    below = [0.0, *(min(1.0, reached) ** count for reached in accumulate(distribution))]
    return tuple(high - low for low, high in pairwise(below))


def even_rates(low: Fraction, high: Fraction, points: int = CURVE_POINTS) -> list[float]:
    """Evenly spaced rates from low to high, cut to what a rate can be.

    Rational, so that a rate of the plan that lies on the grid is that rate and not a neighbour.

    >>> from fractions import Fraction
    >>> even_rates(Fraction(8, 10), Fraction(11, 10), 3)
    [0.8, 0.9, 1.0]
    """
    first, last = max(low, Fraction(0)), min(high, Fraction(1))
    return [float(first + (last - first) * i / (points - 1)) for i in range(points)]


# --- What every sizing question and every answer to one have in common ----------------------------
#
# A question is built, asked and answered without I/O: questions in, frozen tables out. Its fields
# are the arguments of the function that asks it in Python, and the options of the command line have
# the same names, so that a refusal names what its reader wrote.

#: Of the JSON that `SizingPlan.to_dict` gives; changed when a reader would have to change.
SCHEMA = "trialwise.plan/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingQuestion:
    """How surely something is to be shown, and what a trial costs.

    Args:
        confidence: 1 − alpha, or the confidence of the interval.
        trial_usd: What a trial costs, in US dollars.
        trial_s: How long a trial takes, in seconds.
    """

    confidence: float = 0.95
    trial_usd: float | None = None
    trial_s: float | None = None

    #: The fields that must lie strictly between 0 and 1, and those that count something.
    open_rates: ClassVar[str] = "confidence"
    counts: ClassVar[str] = ""
    #: What JSON calls a field that has another name in Python; a default is written as resolved.
    written: ClassVar[Mapping[str, str]] = {}

    def __post_init__(self) -> None:
        validation.require_given(self, "trial_usd trial_s", validation.require_positive)
        validation.require_given(self, self.open_rates, validation.require_open_rate)
        validation.require_given(self, self.counts, validation.require_count, minimum=1)

    def require(self, name: str, holds: bool, allowed: str) -> None:
        """Refuse a field that does not go with the others."""
        if not holds:
            raise InvalidArgument(name, getattr(self, name), allowed)

    @property
    def alpha(self) -> float:
        """1 − confidence, in decimals."""
        return complement(self.confidence)

    def to_dict(self) -> dict[str, Any]:
        """Return the question as plain values, fit for JSON."""
        prices = {"trial_usd": self.trial_usd, "trial_s": self.trial_s}
        values: dict[str, Any] = {"confidence": self.confidence, "prices": prices}
        for one in fields(self):
            # What only listens is no part of the question. A default that depends on other fields
            # has a property of the name in JSON, so that a reader never meets a null for it.
            if one.compare and one.name not in {*values, *prices}:
                for key in self.written.get(one.name, one.name).split():
                    holder = key if hasattr(self, key) else one.name
                    values[key] = _as_plain(getattr(self, holder))
        return values


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerQuestion(SizingQuestion):
    """A question about a test, which also has a power.

    Args:
        power: 1 − beta.
    """

    # The convention of Cohen (1988): a missed effect counts as a quarter of a false alarm at 5 %.
    power: float = 0.80

    open_rates: ClassVar[str] = "confidence power"


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingPlan:
    """The answer to a sizing question."""

    form: ClassVar[str]
    """The name of the question."""

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain values, fit for JSON.

        An undefined quantity is `{"undefined": reason}`; a sequential design is in the form that
        `SequentialDesign.from_dict` reads.
        """
        values = {one.name: _as_plain(getattr(self, one.name)) for one in fields(self)}
        return {"schema": SCHEMA, "form": self.form, **values}


def _as_plain(value: Any) -> Any:
    if isinstance(value, Undefined):
        return {"undefined": value.reason}
    # A design is kept with its boundaries, in a form of its own.
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value):
        return {one.name: _as_plain(getattr(value, one.name)) for one in fields(value)}
    if hasattr(value, "_asdict"):
        return {name: _as_plain(one) for name, one in value._asdict().items()}
    return [*map(_as_plain, value)] if isinstance(value, tuple | list) else value


# --- The ways to ask for a required rate ----------------------------------------------------------
#
# Strict, with a margin, or with fixed trials: what a PASS shows, how likely each verdict is at the
# rate that somebody expects, and what it takes. Every number is exact.

#: The margins that are compared with none.
# With ten points the bad rate is the one that a sequential plan takes where none is given.
MARGINS = (0.05, 0.10)
#: How likely a fixed number of trials is to PASS at the expected rate, and the most trials tried.
POWER, MOST_FIXED = 0.80, 5_000


class RateChoice(NamedTuple):
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
    trial_usd: float | None = None,
    cache: DesignCache | None = None,
) -> tuple[RateChoice, ...]:
    """List the ways to ask whether a rate is at least the required one.

    Each is planned as the criterion of a suite would be, and its characteristic says the chances.

    Args:
        required: Strictly between 0 and 1.
        expected: The true rate that somebody expects; half the allowed failures by default.
        level: The largest probability of a wrong PASS, and of a wrong FAIL.
        trial_usd: What a trial costs, in US dollars.
        cache: Where designs are kept between runs.

    >>> strict, *_ = list_choices(0.9, 0.97)
    >>> strict.setting, strict.max_trials, strict.passes > 0.98
    ('at_least: 90%', 215, True)
    """
    validation.require_open_rate("required", required)
    rate = (
        expect_half(required) if expected is None else validation.require_rate("expected", expected)
    )
    # One input stands for all: fixed inputs of different rates never make an error more frequent
    # than inputs that are alike (Hoeffding 1956).
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
    return tuple(_weigh(setting, way, rate, situation, trial_usd) for setting, way in ways)


def _weigh(
    setting: str, way: Criterion, rate: float, situation: Situation, trial_usd: float | None
) -> RateChoice:
    """Weigh one way to ask at the expected rate."""
    required = way.at_least or 0.0
    procedure = (sequential if way.trials is None else compliance).PROCEDURE
    plan = procedure.plan(way, situation)
    if isinstance(plan, Refused):
        # Nobody agreed to this many trials; with the `max_trials` that it needs it is planned.
        most = math.ceil(
            sequential_designs.GENEROUS
            * sequential_designs.count_passes_needed(required, way.wrong_pass)
        )
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
        mean_usd=None if trial_usd is None else mean * trial_usd,
    )


def _find_fixed(required: float, expected: float, level: float) -> int | None:
    """Find the fewest fixed trials that PASS at the expected rate often enough."""
    if expected <= required:
        return None
    # The first size that has the power, although the next may fall short again: this row is one way
    # to ask among others, and `plan RATE --fixed` looks further.
    powers = compliance_powers(required, expected, level, "exact", MOST_FIXED)
    return next((n for n, power in enumerate(powers, 1) if reaches_target(power, POWER)), None)


def _write(rate: float) -> str:
    return as_percent(rate).replace(" ", "")
