"""The plan of a comparison: sizes and chances, checked by enumerations of their own."""

from __future__ import annotations

from math import comb
from typing import Any

import pytest

import trialwise as tw
from trialwise.errors import InvalidArgument
from trialwise.pages.sizing import build_sizing_page
from trialwise.procedures.sizing.comparison_sizing import unpaired_size
from trialwise.procedures.sizing.paired_sizing import (
    PairedSizingQuestion,
    find_fixed_pairs,
    plan_pairs,
    simulate_rule,
)
from trialwise.renderers.document_text import render_document_text
from trialwise.stats.paired import PairCounts
from trialwise.stats.paired_rules import plan_paired_rule


def asking(**given: Any) -> PairedSizingQuestion:
    return PairedSizingQuestion(**{"expect": (0.8, 0.9), **given})


def mcnemar_chances(pairs: int, only_a: float, only_b: float, level: float) -> tuple[float, float]:
    """P(B shown better) and P(B shown worse) by the exact sign test, by a sum over both counts."""
    better = worse = 0.0
    for a in range(pairs + 1):
        for b in range(pairs + 1 - a):
            n = a + b
            rest = (1 - only_a - only_b) ** (pairs - n)
            weight = comb(pairs, n) * comb(n, a) * only_a**a * only_b**b * rest
            tail_b = sum(comb(n, k) for k in range(b, n + 1)) / 2**n
            tail_a = sum(comb(n, k) for k in range(a, n + 1)) / 2**n
            better += weight * (n > 0 and tail_b <= level / 2)
            worse += weight * (n > 0 and tail_a <= level / 2)
    return better, worse


@pytest.mark.parametrize(("rates", "tests"), [((0.8, 0.9), 1), ((0.9, 0.7), 2)])
def test_chances_of_a_fixed_size_are_those_of_the_sign_test(
    rates: tuple[float, float], tests: int
) -> None:
    """For independent arms, at the level that each of several tests has."""
    (method,) = plan_pairs(asking(expect=rates, pairs=40, tests=tests)).methods

    for row in method.rows:
        only_a, only_b = row.control * (1 - row.candidate), row.candidate * (1 - row.control)
        better, worse = mcnemar_chances(40, only_a, only_b, 0.05 / tests)
        assert (row.passes, row.fails) == pytest.approx((better, worse), abs=1e-12)
        assert row.inconclusive == pytest.approx(1 - better - worse, abs=1e-12)


def walk(question: PairedSizingQuestion, pairs: int, truth: tuple[float, float]) -> list[float]:
    """P(PASS), P(FAIL) and expected pairs of the sequential rule, pair by pair."""
    rule = plan_paired_rule(question.question, max_pairs=pairs)
    only_a, only_b = question.split(*truth)
    states, passes, fails, mean = {(0, 0): 1.0}, 0.0, 0.0, 0.0
    for done in range(1, pairs + 1):
        mean += sum(states.values())
        after: dict[tuple[int, int], float] = {}
        for (a, b), weight in states.items():
            for state, chance in (
                ((a, b), 1 - only_a - only_b),
                ((a + 1, b), only_a),
                ((a, b + 1), only_b),
            ):
                after[state] = after.get(state, 0.0) + weight * chance
        states = {}
        for (a, b), weight in after.items():
            counts = PairCounts(both=done - a - b, only_a=a, only_b=b, neither=0)
            outcome = rule.decide(counts)
            if outcome is None:
                states[a, b] = weight
            passes += weight * (outcome == "better")
            fails += weight * (outcome == "worse")
    return [passes, fails, mean]


@pytest.mark.slow
def test_chances_of_the_sequential_rule_are_those_of_its_walk() -> None:
    """Asked after every pair, as the running comparison asks it."""
    question = PairedSizingQuestion(max_pairs=90)
    method = plan_pairs(question).methods[0]

    assert (method.name, method.most_pairs) == ("sequential", 90)
    for row in method.rows:
        found = [row.passes, row.fails, row.mean_pairs]
        assert found == pytest.approx(walk(question, 90, (row.control, row.candidate)), abs=1e-9)


@pytest.mark.parametrize("rates", [(0.5, 0.9), (0.9, 0.5), (0.6, 0.95)])
def test_a_fixed_size_is_the_smallest_with_the_power(rates: tuple[float, float]) -> None:
    """One pair fewer has less power, by the sum of this test."""
    pairs = find_fixed_pairs(asking(expect=rates))
    assert pairs is not None
    only_a, only_b = rates[0] * (1 - rates[1]), rates[1] * (1 - rates[0])
    here, before = (max(mcnemar_chances(n, only_a, only_b, 0.05)) for n in (pairs, pairs - 1))

    assert before < 0.80 <= here


@pytest.mark.requirement(
    "statistical-ci lessons",
    "A comparison says before the first call how many pairs it takes, and its chances.",
    "`trialwise plan compare`, `trialwise compare --dry-run`, `tw.planning.plan_pairs`",
)
def test_the_usual_case_takes_215_pairs_or_fewer_than_136_in_sequence() -> None:
    """80 % against 90 %, independent arms: the figures that a comparison has to meet."""
    sequential, fixed = plan_pairs(PairedSizingQuestion(expect=(0.8, 0.9))).methods

    assert fixed.most_pairs == 215
    assert sequential.expected.mean_pairs < 136
    assert min(sequential.expected.passes, fixed.expected.passes) >= 0.80
    equal = next(row for row in sequential.rows if row.truth == "equal")
    assert max(equal.passes, equal.fails) <= 0.025


@pytest.mark.parametrize("rates", [(0.9, 0.8), (0.8, 0.9)])
def test_fixed_sizes_hold_at_each_discordance_and_one_pair_fewer_falls_short(
    rates: tuple[float, float],
) -> None:
    """From arms of which one fails wherever the other does, to arms with nothing in common."""
    plan = plan_pairs(asking(expect=rates, pairs=10))

    assert ["least", "halfway", "independent"] == [one.kind for one in plan.disagreements]
    assert [0.1, 0.18, 0.26] == pytest.approx([one.discordance for one in plan.disagreements])
    for one in plan.disagreements:
        assert one.fixed_pairs is not None
        split = (one.discordance - 0.1) / 2, (one.discordance + 0.1) / 2
        here, before = (
            max(mcnemar_chances(n, *split, 0.05)) for n in (one.fixed_pairs, one.fixed_pairs - 1)
        )
        assert before < 0.80 <= here
    assert plan.apart == unpaired_size(0.9, 0.8, alpha=0.025)


def test_a_drop_is_found_by_the_whole_error_unless_both_ways_are_asked() -> None:
    """Both ways share the error, of which a drop alone may take all."""
    one, both = (
        tw.planning.plan_compare(0.9, drop=0.1, pairs=20, two_sided=two) for two in (False, True)
    )
    (named,), (shared,) = (answer.to_dict()["methods"] for answer in (one, both))

    assert named["rows"][0]["fails"] == pytest.approx(mcnemar_chances(20, 0.18, 0.08, 0.1)[1])
    assert shared["rows"][0]["fails"] == pytest.approx(mcnemar_chances(20, 0.18, 0.08, 0.05)[1])


def test_a_known_discordance_takes_the_place_of_independence() -> None:
    """Arms that mostly fail on the same inputs need fewer pairs."""
    plan = plan_pairs(asking(discordance=0.15, pairs=60))
    (only,) = plan.disagreements

    better, _ = mcnemar_chances(60, 0.025, 0.125, 0.05)
    assert (only.kind, only.discordance) == ("assumed", 0.15)
    assert only.passes == pytest.approx(better, abs=1e-12)
    assert plan.methods[0].expected.passes == pytest.approx(better, abs=1e-12)


def test_a_margin_is_planned_by_its_own_rules() -> None:
    """The chances of the fixed size are a sum over all tables of what the rule says of each."""
    question = PairedSizingQuestion(question="not-worse", margin=0.3, expect=(0.8, 0.8))
    sequential, fixed = plan_pairs(question).methods
    pairs = fixed.most_pairs
    assert pairs is not None
    rule = plan_paired_rule("not-worse", margin=0.3, pairs=pairs)
    passes = 0.0
    for a in range(pairs + 1):
        for b in range(pairs + 1 - a):
            rest = pairs - a - b
            weight = comb(pairs, a) * comb(pairs - a, b) * 0.16 ** (a + b) * 0.68**rest
            counts = PairCounts(both=rest, only_a=a, only_b=b, neither=0)
            passes += weight * (rule.decide(counts) == "not worse")

    assert fixed.expected.passes == pytest.approx(passes, abs=1e-9)
    assert fixed.expected.passes >= 0.80
    assert [row.truth for row in sequential.rows] == ["as expected", "worse by the margin"]
    assert sequential.rows[1].passes <= 0.025
    assert sequential.expected.mean_pairs < (sequential.most_pairs or 0)


def test_simulated_chances_agree_with_enumerated_ones() -> None:
    """Within four standard errors of 2,000 comparisons."""
    rule = plan_paired_rule("not-worse", margin=0.3)
    exact = rule.characteristic(0.16, 0.16)
    simulated = simulate_rule(rule, 0.16, 0.16, runs=2000, seed=1)

    for outcome, chance in exact.chances.items():
        error = (chance * (1 - chance) / 2000) ** 0.5
        assert abs(simulated.chances.get(outcome, 0.0) - chance) <= 4 * error + 1e-9
    assert simulated.mean_pairs == pytest.approx(exact.mean_pairs, rel=0.1)


@pytest.mark.slow
def test_a_small_margin_is_simulated_and_says_so() -> None:
    """Its rule has thousands of pairs, and a fixed size is not looked for."""
    plan = plan_pairs(PairedSizingQuestion(question="not-worse", margin=0.03, expect=(0.9, 0.9)))
    (only,) = plan.methods
    page = " ".join(render_document_text(build_sizing_page(plan)).split())

    assert (only.name, only.simulated) == ("sequential", 1000)
    assert "By 1,000 simulated comparisons" in page
    assert "A fixed number with this power has more than 1,000 pairs" in page


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ({"expect": (0.8, 0.8)}, "expect"),
        ({"expect": (0.8, 1.0)}, "expect"),
        ({"question": "not-worse"}, "margin"),
        ({"question": "equivalent"}, "margin"),
        ({"margin": 0.1}, "margin"),
        ({"question": "beter"}, "question"),
        ({"pairs": 0}, "pairs"),
        ({"pairs": 5, "max_pairs": 5}, "max_pairs"),
        ({"tests": 0}, "tests"),
        ({"discordance": 0.05}, "discordance"),
        ({"discordance": 0.5}, "discordance"),
    ],
)
def test_a_question_that_means_nothing_is_refused(given: dict[str, Any], argument: str) -> None:
    """By the name of the argument."""
    with pytest.raises(InvalidArgument) as caught:
        asking(**given)
    assert caught.value.argument == argument
