"""Designs on discordant pairs: error rates and expected pairs, followed pair by pair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import pairwise, product
from typing import Any

import pytest
from scipy.stats import binom

from trialwise.errors import InvalidArgument
from trialwise.stats.paired import PairCounts
from trialwise.stats.paired_designs import (
    QUESTIONS,
    DesignQuestion,
    discordant_rates,
    find_missing_cost,
    find_two_sided_cap,
    fixed_discordant,
    plan_paired_design,
    search_two_sided,
)
from trialwise.stats.split_rules import SplitRule


@cache
def plan(
    rate_a: float, rate_b: float, *, question: DesignQuestion, both: float | None = None
) -> SplitRule:
    """The rule of a design without a limit on all pairs."""
    design = plan_paired_design(rate_a, rate_b, question=question, both=both)
    return SplitRule(question=question, alpha=0.05, boundaries=design)


def follow_pairs(
    rule: SplitRule, only_a: float, only_b: float, pairs: int
) -> tuple[float, float, float]:
    """P(better), P(worse) and the expected pairs, by going through pairs, ties included.

    The state is the wins and the losses so far. The design gives its decisions by `decide` alone.
    """
    state, better, worse, expected = {(0, 0): 1.0}, 0.0, 0.0, 0.0
    steps = ((1, 0, only_b), (0, 1, only_a), (0, 0, 1 - only_a - only_b))
    for pair in range(1, pairs + 1):
        expected += sum(state.values())
        later: dict[tuple[int, int], float] = {}
        for (wins, losses), chance in state.items():
            for win, loss, weight in steps:
                place = (wins + win, losses + loss)
                counts = PairCounts(
                    both=pair - sum(place), only_a=place[1], only_b=place[0], neither=0
                )
                said = rule.decide(counts)
                if said is None:
                    later[place] = later.get(place, 0.0) + chance * weight
                better += chance * weight * (said == "better")
                worse += chance * weight * (said == "worse")
        state = later
    return better, worse, expected


@pytest.mark.slow("different")
@pytest.mark.parametrize("question", QUESTIONS)
def test_chances_and_pairs_are_those_of_every_path(question: DesignQuestion) -> None:
    """With a limit on pairs and without one, which 400 pairs come near to."""
    design = plan(0.5, 0.9, question=question)
    for only_a, only_b in ((0.05, 0.45), (0.2, 0.2), (0.3, 0.1)):
        for most in (30, 400):
            limited = replace(design, max_pairs=most)
            found = limited.characteristic(only_a, only_b)
            followed = follow_pairs(limited, only_a, only_b, most)
            assert (found.better, found.worse, found.mean_pairs) == pytest.approx(followed)
        endless = design.characteristic(only_a, only_b)
        assert (endless.better, endless.worse) == pytest.approx(followed[:2], abs=1e-6)
        assert endless.mean_pairs == pytest.approx(followed[2], abs=1e-3)


@pytest.mark.slow("different")
@pytest.mark.parametrize("question", QUESTIONS)
def test_equal_arms_are_told_apart_in_at_most_alpha_of_comparisons(
    question: DesignQuestion,
) -> None:
    """For every rate of the two, every correlation, and every limit on the pairs."""
    design = plan(0.7, 0.9, question=question)
    for rate, part, most in product((0.05, 0.5, 0.95), (0.1, 0.5, 1.0), (20, 100, None)):
        single = part * rate * (1 - rate)
        found = replace(design, max_pairs=most).characteristic(single, single)
        assert found.better <= 0.025 + 1e-12
        assert found.worse <= 0.025 + 1e-12


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_worse_arm_is_hardly_ever_called_better(question: DesignQuestion) -> None:
    """Less often than an equal one, so that the level holds for all of them."""
    design = plan(0.7, 0.9, question=question)
    chances = [design.characteristic(0.5 * share, 0.5 * (1 - share)) for share in (0.5, 0.6, 0.8)]
    better = [one.better for one in chances]
    assert better == sorted(better, reverse=True)


#: Rates, then the mean pairs of Wald's test where B is better and where the arms are equal, and
#: the pairs of McNemar's exact test, all at two-sided 5 % and a power of 80 %.
ROWS = [
    (0.80, 0.90, 136, 79, 215),
    (0.85, 0.90, 459, 271, 722),
    (0.90, 0.95, 297, 173, 463),
    (0.70, 0.80, 197, 118, 313),
]


@pytest.mark.parametrize(("rate_a", "rate_b", "wald", "wald_equal", "fixed"), ROWS)
def test_fewer_pairs_than_walds_test_and_a_fixed_sample(
    rate_a: float, rate_b: float, wald: int, wald_equal: int, fixed: int
) -> None:
    """At the same errors; and near the least that any test with two errors can need."""
    design = plan(rate_a, rate_b, question="better")
    found = design.characteristic(*discordant_rates(rate_a, rate_b))
    equal = design.characteristic(*discordant_rates(rate_a, rate_a))

    assert found.better >= 0.80 - 1e-12
    assert equal.better <= 0.025 + 1e-12
    assert found.mean_pairs < min(wald, fixed)
    assert equal.mean_pairs < wald_equal
    assert isinstance(design.certificate, float)
    assert design.certificate < 1.001


@pytest.mark.slow
@pytest.mark.parametrize(
    ("split", "cap", "power", "mean"),
    [(0.75, 60, 0.958, 27.1), (0.65, 150, 0.931, 74.9), (0.90, 25, 0.981, 10.0)],
)
def test_two_sided_designs_need_no_more_than_a_prototype(
    split: float, cap: int, power: float, mean: float
) -> None:
    """At its level, cap and power, read off the line between two designs."""
    found = [
        search_two_sided(split, 0.05, cap, cost, equal=0.05).operating_characteristic(split)
        for cost in (0.5, 1.0, 2.0)
    ]
    points = sorted((one.passes, one.mean_trials) for one in found)
    (low, few), (high, many) = next(
        (one, other) for one, other in pairwise(points) if one[0] <= power <= other[0]
    )
    assert few + (many - few) * (power - low) / (high - low) <= mean


def test_a_missing_decision_costs_as_little_as_the_power_allows() -> None:
    """A third less would not reach it, and a design of the cost that was found does."""
    cap, cost = find_missing_cost(0.8, 0.05, 0.8)
    assert cap == find_two_sided_cap(0.8, 0.05, 0.8)
    powers = [
        search_two_sided(0.8, 0.05, cap, one, is_quick=True).operating_characteristic(0.8).passes
        for one in (cost, cost / 1.5)
    ]
    assert powers[1] < 0.8 <= powers[0]


class KeptDesigns:
    """Designs that are kept in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, Mapping[str, Any]] = {}

    def load(self, key: str) -> Mapping[str, Any] | None:
        return self.kept.get(key)

    def save(self, key: str, values: Mapping[str, Any]) -> None:
        self.kept[key] = values


def test_a_two_sided_design_is_searched_for_once() -> None:
    """A kept one is used again, unless it does not keep its errors."""
    designs = KeptDesigns()
    found = plan_paired_design(0.5, 0.9, cache=designs)
    (key,) = designs.kept
    assert plan_paired_design(0.5, 0.9, cache=designs) == found

    loose = search_two_sided(0.9, 0.4, found.cap, 0.5, is_quick=True)
    designs.kept[key] = loose.to_dict()
    assert plan_paired_design(0.5, 0.9, cache=designs) == found


def test_a_fixed_sample_is_the_exact_sign_test() -> None:
    """By summing over all counts of wins."""
    n = fixed_discordant(0.75)

    def power(size: int) -> float:
        needed = next(k for k in range(size + 2) if binom.sf(k - 1, size, 0.5) <= 0.025)
        return float(binom.sf(needed - 1, size, 0.75))

    assert all(power(size) >= 0.80 for size in range(n, n + 60))
    assert power(n - 1) < 0.80


@pytest.mark.slow
def test_arms_that_fail_on_the_same_inputs_take_fewer_pairs() -> None:
    """Pairing helps by as much as the arms agree."""
    apart, alike = (plan(0.8, 0.9, question="better", both=both) for both in (None, 0.79))
    pairs = [
        design.characteristic(*discordant_rates(0.8, 0.9, both)).mean_pairs
        for design, both in ((apart, None), (alike, 0.79))
    ]
    assert pairs[1] < 0.5 * pairs[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rate_a": 0.9, "rate_b": 0.8}, "be above rate_a"),
        ({"rate_a": 0.8, "rate_b": 0.9, "both": 0.95}, "lie between 0.7 and 0.8"),
        ({"rate_a": 0.8, "rate_b": 0.9, "question": "worse"}, "question"),
    ],
)
def test_impossible_plans_are_refused(arguments: dict[str, object], message: str) -> None:
    """With the argument and what it may be."""
    with pytest.raises(InvalidArgument, match=message):
        plan_paired_design(**arguments)  # type: ignore[arg-type]


def test_no_pair_is_decided_twice() -> None:
    """Counts beyond the last look are a mistake of the caller."""
    rule = plan(0.5, 0.9, question="better")
    assert rule.boundaries is not None
    counts = PairCounts(both=0, only_a=1, only_b=rule.boundaries.cap, neither=0)
    with pytest.raises(InvalidArgument, match="at most"):
        rule.decide(counts)
