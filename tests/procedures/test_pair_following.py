"""Pairs followed in order: what is decided does not depend on who comes back first."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import trialwise as tw
from trialwise.model.plan import Plan
from trialwise.model.trial import Analysis, CheckResult, ErrorClass, Outcome, Trial
from trialwise.procedures.comparing.findings import ComparisonQuestion
from trialwise.procedures.comparing.pair_following import (
    PairedTest,
    PairFollowing,
    fit_rule,
    follow_pairs,
)
from trialwise.procedures.comparison import COMPARISON
from trialwise.runtime.preparing import prepare
from trialwise.stats.paired import PairCounts
from trialwise.stats.paired_rules import PairedRule, plan_paired_rule

NAMES = ("right", "kind")


def trial(index: int, *passed: bool, error: ErrorClass = ErrorClass.NONE) -> Trial:
    outcomes = tuple(
        Outcome(criterion=name, result=CheckResult.ok() if ok else CheckResult.fail("no"))
        for name, ok in zip(NAMES, passed, strict=False)
    )
    return Trial(
        experiment="inputs",
        index=index,
        input_id="1",
        seed=index,
        outcomes=outcomes,
        error_class=error,
    )


def follow(rule: PairedRule) -> PairFollowing:
    test = PairedTest(
        against=0,
        arm=1,
        criterion="right",
        experiment="inputs",
        analysis=Analysis.MEASURED,
        rule=rule,
    )
    return PairFollowing([test])


def plans(count: int, criteria: int = 1, **options: Any) -> list[Plan]:
    asked = [tw.Criterion(name, tw.equals("yes"), at_least=0.5) for name in NAMES[:criteria]]
    contract = tw.Contract("agent", str, asked, sampling=["a", "b"], **options)
    made = prepare(contract, tw.RunOptions(trials=50), Path("baselines"), measuring=True)
    return [made] * count


@pytest.mark.parametrize("seed", range(5))
def test_any_order_of_arrival_gives_what_the_pairs_in_order_give(seed: int) -> None:
    """Two arms come back in random order, some trials without a measurement."""
    chance, rule = random.Random(seed), plan_paired_rule(max_pairs=200)
    pairs = [(chance.random() < 0.5, chance.random() < 0.85) for _ in range(200)]
    lost = {index for index in range(200) if chance.random() < 0.1}
    arrivals = [(arm, index) for index in range(200) for arm in (0, 1)]
    # Not farther ahead than a number of workers would be.
    arrivals.sort(key=lambda one: one[1] + chance.uniform(0, 12))
    following = follow(rule)
    for arm, index in arrivals:
        error = ErrorClass.INFRASTRUCTURE if index in lost and arm else ErrorClass.NONE
        following.add(arm, trial(index, pairs[index][arm], error=error))
    (test,) = following.tests
    expected = rule.conclude([pair for index, pair in enumerate(pairs) if index not in lost])

    assert (expected.used, expected.outcome) == (test.counts, test.outcome)
    assert following.is_decided("inputs")
    assert not following.takes_part(1, "inputs", 300)


def test_a_gap_holds_up_what_comes_after_it() -> None:
    following = follow(plan_paired_rule())
    for index in range(1, 60):
        following.add(0, trial(index, False))
        following.add(1, trial(index, True))

    assert not following.is_decided("inputs")
    assert 1 == following.count_open()
    following.add(0, trial(0, False))
    following.add(1, trial(0, True))
    assert following.is_decided("inputs")


def test_every_test_of_a_family_has_its_share_of_the_level() -> None:
    """Two candidates and two criteria are four tests; all pairs of three arms are six."""
    three, asked = plans(3, 2), ComparisonQuestion()
    four = COMPARISON.plan(three, "abc", asked)
    six = COMPARISON.plan(three, "abc", replace(asked, against="all"))
    alone = COMPARISON.plan(three, "abc", replace(asked, correction="none"))

    assert {("a", arm, name) for arm in "bc" for name in NAMES} == set(four)
    assert {0.05 / 4} == {one.alpha for one in four.values()}
    assert {0.05 / 6} == {one.alpha for one in six.values()}
    assert {0.05} == {one.alpha for one in alone.values()}


def test_a_guardrail_has_a_rule_with_its_own_margin() -> None:
    found = COMPARISON.plan(plans(2, 2), "ab", ComparisonQuestion(guardrails={"kind": 0.1}))

    assert ("different", 0.0) == (
        found["a", "b", "right"].question,
        found["a", "b", "right"].margin,
    )
    assert ("not-worse", 0.1) == (found["a", "b", "kind"].question, found["a", "b", "kind"].margin)


def test_a_claim_about_a_population_has_a_fixed_size() -> None:
    """Repeats of an input are one unit there, which no rule for single pairs knows."""
    claim = tw.model.Claim(
        population=tw.model.PopulationClaim.SUPERPOPULATION, population_name="users"
    )

    assert {} == COMPARISON.plan(plans(2, claim=claim), "ab", ComparisonQuestion())


def test_without_rules_the_tests_are_followed_and_never_decided() -> None:
    two = plans(2)
    following = follow_pairs(two, "ab", ComparisonQuestion(), {})
    for index in range(50):
        following.add(0, trial(index, False))
        following.add(1, trial(index, True))
    (test,) = following.tests

    assert (PairCounts(both=0, only_a=0, only_b=50, neither=0), None) == (test.counts, test.outcome)


@pytest.mark.parametrize("discordant", [0.05, 0.3, 0.8, 1.0])
@pytest.mark.parametrize("left_out", [0, 3, 15])
def test_pairs_left_out_at_the_end_keep_the_level(discordant: float, left_out: int) -> None:
    """Every path of equal arms through a rule of 40 pairs, of which some could not be measured.

    The rule looks as it was planned while the pairs come in, and once more after the last pair.
    """
    planned = plan_paired_rule(alpha=0.05, max_pairs=40)
    made = 40 - left_out
    chances: dict[tuple[int, int, int], float] = {(0, 0, 0): 1.0}
    shown = dict.fromkeys(("better", "worse"), 0.0)
    for pairs in range(1, made + 1):
        after: dict[tuple[int, int, int], float] = defaultdict(float)
        for (ties, wins, losses), chance in chances.items():
            after[ties + 1, wins, losses] += chance * (1 - discordant)
            after[ties, wins + 1, losses] += chance * discordant / 2
            after[ties, wins, losses + 1] += chance * discordant / 2
        chances = {}
        for (ties, wins, losses), chance in after.items():
            counts = PairCounts(both=ties, only_a=losses, only_b=wins, neither=0)
            outcome = planned.decide(counts)
            if outcome is None and pairs == made:
                outcome = replace(planned, max_pairs=made).decide(counts)
            if outcome is None:
                chances[ties, wins, losses] = chance
            elif outcome in shown:
                shown[outcome] += chance

    assert max(shown.values()) <= 0.025


def test_a_comparison_without_its_last_pairs_is_concluded_where_all_were_asked() -> None:
    """Thirteen wins of thirteen pairs, where 20 were planned: cut short it shows nothing."""
    rule = plan_paired_rule(max_pairs=20, alpha=0.001)
    path = [(False, True)] * 13

    assert rule.decide(PairCounts(both=0, only_a=0, only_b=13, neither=0)) is None
    assert ("not shown", False) == (
        (cut := fit_rule(rule, len(path), ran_all=False).conclude(path)).outcome,
        cut.is_complete,
    )
    assert fit_rule(rule, len(path), ran_all=True).conclude(path).is_complete
