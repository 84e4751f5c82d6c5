"""The types of what a comparison says beside pass rates: scores, cost, latency, tokens.

All of it is described with intervals and never decides: a comparison has one question, and every
further test would take a share of its level. Differences are the candidate's value minus the
control's.
"""

from __future__ import annotations

from dataclasses import dataclass

from trialwise.stats.result_types import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class AmountDifference:
    """What trials took, or the scores they got, under two arms."""

    name: str
    """`latency_s`, `cost_usd`, `tokens` or `score`."""
    criterion: str = ""
    """Which criterion graded the replies, for a score."""
    arm: str
    against: str
    experiment: str
    pairs: int
    basis: str
    """Which pairs were taken."""
    control_mean: float
    candidate_mean: float
    difference: float
    """The typical difference within pairs (Hodges and Lehmann's); for a score, the mean one."""
    interval: Interval | None
    """For `difference`; None for few pairs. By signed ranks it is exact where differences scatter
    evenly around their centre; for a score, by betting, it holds for every distribution."""
    p_value: float | None = None
    """Two-sided, exact, that swapping the arms would change nothing; not corrected for others."""
    mean_interval: Interval | None = None
    """For the difference of the means, by flipping signs; exact as the one by signed ranks is."""
    median_difference: float
    """The middle of the differences within pairs."""
    median_interval: Interval | None
    """Exact and free of assumptions on shape, for the median difference; None for few pairs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreLift:
    """The mean scores of two runs on the same inputs, and their difference within pairs."""

    criterion: str
    arm: str = "candidate"
    against: str = "control"
    control: float
    candidate: float
    difference: float
    """The candidate's mean minus the control's."""
    median_difference: float = 0.0
    """The middle of the differences within pairs."""
    interval: Interval
    """Bounds on the difference, from −1 to 1, for every distribution of scores."""
    flip_interval: Interval | None = None
    """By flipping signs: mostly narrower, for differences that scatter evenly around their mean."""
    p_value: float = 1.0
    """Exact by flipping signs, two-sided, that swapping the two would change nothing."""
    pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmCost:
    """What the trials of one arm cost, and what each success cost."""

    arm: str
    trials: int
    successes: int
    """Trials that passed every criterion."""
    usd: float
    """What all trials cost, those that failed included; setup and judges not."""
    usd_per_success: float | None
    """None where no trial succeeded."""
    setup_usd: float | None = None
    """What preparing the trials cost, which is not part of the other numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRatio:
    """How many times as much a success costs under one arm as under another."""

    arm: str
    against: str
    pairs: int
    ratio: float
    interval: Interval | None
    """It only describes: a jackknife over pairs, whose level is approximate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadDifference:
    """How far two replies to one input lie apart, under two arms."""

    name: str
    """`latency_s` or `score`."""
    criterion: str = ""
    arm: str
    against: str
    experiment: str
    repeats: int
    """How many pairs of repeats of one input were compared, each under both arms."""
    control: float
    """The mean distance between two repeats of one input."""
    candidate: float
    difference: float
    """The candidate's mean distance minus the control's."""
    interval: Interval | None
    """For `difference`, by flipping signs; None for few repeats."""
    p_value: float
    """Two-sided, exact, that repeats scatter alike; a constant shift between arms does not count.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class FlakinessDifference:
    """On how many inputs an arm both passed and failed, under two arms."""

    criterion: str
    arm: str
    against: str
    inputs: int
    """Inputs that were tried at least twice under both arms."""
    control: int
    """Inputs that both passed and failed with the control."""
    candidate: int
    only_control: int
    only_candidate: int
    p_value: float
    """Two-sided, by the exact sign test of the inputs that are flaky under one arm only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceFinding:
    """How often a judge prefers the replies of one arm to those of another."""

    criterion: str
    arm: str
    against: str
    wins: int
    losses: int
    ties: int
    inconsistent: int
    """The ties in which the answer changed when the two replies swapped places."""
    missing: int
    rate: float | None
    """(wins + ties/2)/pairs: above one half the judge prefers the candidate."""
    interval: Interval | None
    labels: int = 0
    """Pairs with people's preferences that the judge's errors were measured on."""
    corrected_rate: float | None = None
    """The share of decided pairs in which people would prefer the candidate."""
    corrected_interval: Interval | None = None
    """Exact, for both uncertainties: the pairs' and the labels'."""
    p_value: float | None = None
    """Two-sided, of the test that counts: corrected where the judge's errors are known."""
    usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AmountsFound:
    """The differences between arms in everything but the pass rate."""

    amounts: tuple[AmountDifference, ...] = ()
    """What trials took and which scores they got, for every two arms that are compared."""
    scores: tuple[ScoreLift, ...] = ()
    """How much the mean score of each graded criterion changed."""
    costs: tuple[ArmCost, ...] = ()
    """What the trials and the successes of each arm cost, where all of them say."""
    cost_ratios: tuple[CostRatio, ...] = ()
    spreads: tuple[SpreadDifference, ...] = ()
    """How much repeats of one input scatter, where inputs were repeated."""
    flakiness: tuple[FlakinessDifference, ...] = ()
