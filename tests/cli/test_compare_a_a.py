"""`trialwise compare --a-a`: a contract against itself, and labels swapped at random."""

from __future__ import annotations

import json
from itertools import product
from math import comb
from pathlib import Path
from random import Random
from typing import Any

import click
import pytest
from tests.cli.suite_folders import Done, enter_folder
from tests.cli.suite_folders import type_command as do

import trialwise as tw
from trialwise.errors import InvalidArgument
from trialwise.procedures.comparing.pair_following import relabel_pairs
from trialwise.stats.paired import PairCounts
from trialwise.stats.paired_rules import plan_paired_rule

SERVICE = """
from random import Random

coins = Random(5)

def coin(input):
    return coins.choice(["yes", "yes x", "no", "no x"])

def same(input, seed):
    return "yes" if seed % 2 else "no"

turns = iter(range(10**6))

def unfair(input):
    return "yes" if next(turns) % 2 else "no"
"""
SUITE = """
inputs: [a, b]
criteria: [{name: right, contains: "yes", at_least: 30%}]
contracts:
  - {name: coin, service: {python: "svc:coin"}}
  - {name: same, service: {python: "svc:same"}}
  - name: two
    service: {python: "svc:coin"}
    criteria:
      - {name: right, contains: "yes", at_least: 30%}
      - {name: marked, contains: "x", at_least: 30%}
    arms: {arm: {service: {python: "svc:same"}}}
compare: {question: not-worse, margin: 5%, guardrails: {right: 2%}}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return enter_folder(tmp_path, monkeypatch, SERVICE)


def compare(*arguments: str) -> Done:
    return do(SUITE, "compare", *arguments, "--a-a", "--quiet")


def found(*arguments: str) -> dict[str, Any]:
    return dict(json.loads(compare(*arguments, "--json").output))


@pytest.mark.requirement(
    "statistical-ci lessons",
    "The tool shows on the user's own service that it keeps its level.",
    "`trialwise compare CONTRACT --a-a`, `Comparison.relabel`",
)
def test_a_contract_against_itself_passes_and_states_the_share() -> None:
    """The question of the suite plays no part: the arms are asked whether they are different."""
    done = compare("coin", "--trials", "60", "--seed", "1")

    assert done.exit_code == 0
    assert "No difference was found, and by construction there is none" in " ".join(
        done.output.split()
    )
    verdict = found("coin", "--trials", "60", "--seed", "1")
    assert [one["label"] for one in verdict["arms"]] == ["coin", "coin again"]
    assert verdict["question"]["question"] == "different"


def test_the_share_of_one_criterion_is_that_of_the_sign_test() -> None:
    """With n discordant pairs, as many ways as the exact two-sided test rejects, of 2ⁿ."""
    verdict = found("coin", "--trials", "60", "--seed", "1")
    pairs = verdict["findings"][0]["pairs"]
    n = pairs["only_a"] + pairs["only_b"]
    ways = sum(
        comb(n, wins)
        for wins in range(n + 1)
        if 2 * sum(comb(n, k) for k in range(max(wins, n - wins), n + 1)) <= 0.05 * 2**n
    )

    share = verdict["relabelled"]
    assert share["share"] == pytest.approx(ways / 2**n, abs=1e-12)
    assert (share["level"], share["interval"], share["relabellings"]) == (0.05, None, None)


def test_the_share_of_several_criteria_has_an_interval() -> None:
    """2,000 ways to swap, and a limit that the share does not exceed."""
    share = found("two", "--trials", "60", "--seed", "1")["relabelled"]

    assert share["relabellings"] == 2000
    assert share["share"] == share["found"] / 2000
    assert share["interval"]["low"] <= share["share"] <= share["interval"]["high"]
    assert share["interval"]["low"] <= 0.05


def test_arms_in_random_order_are_alike_even_for_a_service_that_alternates() -> None:
    """Every second call passes: the arms of a fixed order would be told apart."""
    suite = SUITE.replace("svc:coin", "svc:unfair")
    done = do(suite, "compare", "coin", "--a-a", "--quiet", "--trials", "60", "--seed", "1")
    text = " ".join(done.output.split())

    assert done.exit_code == 0
    assert "one is found in" in text


def test_a_service_that_repeats_itself_cannot_be_checked() -> None:
    """The same seed gives the same reply: there is no discordant pair."""
    done = compare("same", "--trials", "40", "--seed", "1")

    assert done.exit_code == 3
    assert "none could be: in every pair both passed or both failed" in " ".join(
        done.output.split()
    )


def test_the_sequential_rule_is_checked_as_it_runs() -> None:
    """Without --trials it may stop early."""
    verdict = found("coin", "--seed", "1")

    assert 0 < verdict["relabelled"]["share"] <= 0.05


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("coin", "same"), "name one"),
        (("coin", "--question", "better"), "leave other questions out"),
        (("coin", "--margin", "5%"), "leave other questions out"),
        (("coin", "--guardrail", "right=5%"), "leave other questions out"),
    ],
)
def test_other_questions_are_refused(arguments: tuple[str, ...], message: str) -> None:
    """There is one question that has an answer by construction."""
    with pytest.raises(click.UsageError, match=message):
        compare(*arguments)


def test_python_needs_the_rules_or_a_fixed_size() -> None:
    """What ended a comparison that is kept nowhere is not known afterwards."""
    luck = Random(1)
    right = tw.Criterion("right", tw.contains("yes"), at_least=0.3)
    coin = tw.Contract("coin", lambda _question: luck.choice(["yes", "no"]), [right])
    other = coin.with_service(lambda _question: "yes")

    early = tw.compare(coin, other, inputs=["a"], seed=1, store=None, progress=False)
    with pytest.raises(InvalidArgument, match="be kept in a store"):
        early.relabel()
    better = tw.compare(
        coin, coin, inputs=["a"], seed=1, store=None, progress=False, question="better", trials=20
    )
    with pytest.raises(InvalidArgument, match="different"):
        better.relabel()


# --- The computation ------------------------------------------------------------------------------


@pytest.mark.parametrize("is_sequential", [False, True])
def test_the_exact_share_is_that_of_all_ways(is_sequential: bool) -> None:
    """Every way to swap 10 discordant pairs among 16, one by one."""
    coins = Random(3)
    pairs = [(True, False)] * 10 + [(True, True)] * 4 + [(False, False)] * 2
    coins.shuffle(pairs)
    rule = plan_paired_rule(max_pairs=16) if is_sequential else plan_paired_rule(pairs=16)
    shown = 0
    for ways in product((False, True), repeat=10):
        swaps = iter(ways)
        cells = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}
        for first, second in pairs:
            is_swapped = first != second and next(swaps)
            cells[(second, first) if is_swapped else (first, second)] += 1
            both, only_a, only_b, neither = cells.values()
            counts = PairCounts(both=both, only_a=only_a, only_b=only_b, neither=neither)
            outcome = rule.decide(counts)
            if outcome is not None:
                shown += outcome != "not shown"
                break

    share = relabel_pairs({"right": pairs}, {"right": rule}, level=0.05)
    assert shown > 0
    assert share.share == pytest.approx(shown / 2**10, abs=1e-12)


def test_a_sample_of_ways_agrees_with_all_ways() -> None:
    """Two criteria that always agree, without a correction, are one criterion."""
    pairs = [(bool(place % 2), not place % 2) for place in range(30)]
    rule = plan_paired_rule(pairs=30)
    exact = relabel_pairs({"one": pairs}, {"one": rule}, level=0.05)
    sample = relabel_pairs(
        {"one": pairs, "two": pairs}, {"one": rule, "two": rule}, level=0.05, correction="none"
    )

    assert sample.interval is not None
    assert sample.interval.low < exact.share < sample.interval.high


def test_pairs_that_were_left_out_do_not_count() -> None:
    """They stand for no outcome, whichever way they are swapped."""
    pairs = [(True, False), (False, True)] * 5
    rule = plan_paired_rule(pairs=10)
    gaps = [one for pair in pairs for one in (pair, None)]

    assert relabel_pairs({"one": gaps}, {"one": rule}, level=0.05) == relabel_pairs(
        {"one": pairs}, {"one": rule}, level=0.05
    )
