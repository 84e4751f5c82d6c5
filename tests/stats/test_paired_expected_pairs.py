"""Expected discordant pairs of the rules, beside group-sequential tests at the same errors.

The group-sequential tests of O'Brien and Fleming and of Pocock are made here for discordant pairs:
five looks, boundaries as low as the exact error allows, and the fewest pairs with the power.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest

from trialwise.stats.paired_designs import discordant_rates, fixed_discordant
from trialwise.stats.paired_rules import PairedRule, plan_paired_rule

Limit = Callable[[int], float]


def follow_looks(looks: Sequence[int], limit: Limit, split: float) -> tuple[float, float]:
    """Return the chance that B is called better, and the expected discordant pairs."""
    state, better, mean = {0: 1.0}, 0.0, 0.0
    for before, now in zip((0, *looks), looks, strict=False):
        for _ in range(before, now):
            after: dict[int, float] = {}
            for wins, chance in state.items():
                after[wins] = after.get(wins, 0.0) + chance * (1 - split)
                after[wins + 1] = after.get(wins + 1, 0.0) + chance * split
            state = after
        stops = {w: x for w, x in state.items() if abs(2 * w - now) >= limit(now)}
        better += sum(x for w, x in stops.items() if 2 * w > now)
        mean += now * sum(stops.values())
        state = {w: x for w, x in state.items() if w not in stops}
    return better, mean + looks[-1] * sum(state.values())


def find_group_sequential(split: float, shape: str) -> tuple[float, float]:
    """Return the expected discordant pairs where B is better, and where the arms are equal."""
    most = round(0.8 * fixed_discordant(split))
    while True:
        most += 1
        looks = sorted({math.ceil(most * k / 5) for k in range(1, 6)})

        def limit_at(height: float, most: int = most) -> Limit:
            return lambda n: height * math.sqrt(n if shape == "Pocock" else most)

        low, high = 1.5, 4.5
        for _ in range(20):
            middle = (low + high) / 2
            if follow_looks(looks, limit_at(middle), 0.5)[0] <= 0.025:
                high = middle
            else:
                low = middle
        power, mean = follow_looks(looks, limit_at(high), split)
        if power >= 0.80:
            return mean, follow_looks(looks, limit_at(high), 0.5)[1]


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["O'Brien and Fleming", "Pocock"])
@pytest.mark.parametrize("split", [0.75, 0.7, 0.65])
def test_fewer_pairs_than_group_sequential_tests(split: float, shape: str) -> None:
    """At a two-sided 5 % and a power of 80 %: a fifth less if B is better, half if it is not."""
    rule = plan_paired_rule(rates=(1 - split, split), both=0.0)
    found, equal = rule.characteristic(1 - split, split), rule.characteristic(0.5, 0.5)
    better, same = find_group_sequential(split, shape)
    assert found.better >= 0.80
    assert found.mean_discordant < 0.85 * better
    assert equal.mean_discordant < 0.65 * same


@pytest.mark.parametrize("question", ["different", "better"])
@pytest.mark.parametrize(
    ("rates", "fixed"),
    [((0.80, 0.90), 215), ((0.85, 0.90), 722), ((0.90, 0.95), 463), ((0.70, 0.80), 313)],
)
@pytest.mark.slow
def test_fewer_pairs_than_mcnemars_test_for_both_questions(
    question: str, rates: tuple[float, float], fixed: int
) -> None:
    """Both the expected pairs where B is better and those where the arms are equal."""
    rule = plan_paired_rule(question, rates=rates)  # type: ignore[arg-type]
    found = rule.characteristic(*discordant_rates(*rates))
    equal = rule.characteristic(*discordant_rates(rates[0], rates[0]))
    assert found.better >= 0.80 - 1e-12
    assert max(found.mean_pairs, equal.mean_pairs) < 0.65 * fixed


def find_fixed_power(pairs: int, margin: float, only_a: float, only_b: float) -> float:
    """Return the power of the exact test of a fixed size that B is not worse."""
    rule = plan_paired_rule("not-worse", margin=margin, pairs=pairs)
    return rule.characteristic(only_a, only_b).chances["not worse"]


@pytest.mark.slow
def test_a_margin_is_decided_with_fewer_pairs_than_a_fixed_size_takes() -> None:
    """Not worse by 10 points, two arms of 85 %: both verdicts, within the same errors."""
    rule = plan_paired_rule("not-worse", margin=0.1)
    alike = rule.characteristic(0.1275, 0.1275)
    worse = rule.characteristic(0.1775, 0.0775)
    assert alike.chances["not worse"] >= 0.80
    assert worse.chances["worse"] >= 0.80
    assert worse.chances["not worse"] <= 0.025
    assert alike.chances["worse"] <= 0.025
    assert find_fixed_power(math.ceil(alike.mean_pairs), 0.1, 0.1275, 0.1275) < 0.80


RULES: dict[str, Callable[[], PairedRule]] = {
    "different": lambda: plan_paired_rule(max_pairs=150),
    "better": lambda: plan_paired_rule("better", max_pairs=150),
    "different, 80 pairs": lambda: plan_paired_rule(pairs=80),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(RULES))
def test_the_level_is_kept_for_all_rates_and_correlations(name: str) -> None:
    """Equal arms of every rate in tenths, from failing together to failing apart."""
    rule = RULES[name]()
    for tenth in range(1, 10):
        for part in (0.02, 0.25, 0.5, 1.0):
            single = part * tenth / 10 * (1 - tenth / 10)
            found = rule.characteristic(single, single)
            assert max(found.better, found.worse) <= 0.025 + 1e-12
