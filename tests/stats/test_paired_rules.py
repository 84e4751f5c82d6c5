"""Rules for paired comparisons, followed pair by pair through every path they can take."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from trialwise.errors import InvalidArgument
from trialwise.stats.paired import PairCounts, PairedOutcome, decide_outcome, sign_test
from trialwise.stats.paired_designs import discordant_rates
from trialwise.stats.paired_rules import PairedConclusion, PairedRule, plan_paired_rule
from trialwise.stats.result_types import Decision

plan = cache(plan_paired_rule)

#: A control's rate, a candidate's rate and how the arms hang together: from failing on the same
#: inputs to failing on different ones.
ARMS = [
    discordant_rates(rate_a, rate_b, least + share * (most - least))
    for rate_a, rate_b, share in product((0.1, 0.5, 0.8, 0.95), (0.1, 0.5, 0.9), (0.0, 0.6, 0.95))
    for least, most in [(max(0.0, rate_a + rate_b - 1), min(rate_a, rate_b))]
]
#: Arms whose difference is each of the limits that the rules below ask about.
LIMIT_ARMS = [
    ((rate - limit) / 2, (rate + limit) / 2)
    for limit in (-0.3, -0.2, 0.0, 0.2, 0.3)
    for rate in (0.3, 0.32, 0.4, 0.55, 0.7, 0.85, 0.97, 1.0)
]
#: Arms that are rarely discordant, so that few discordant pairs come before the last pair.
RARE_ARMS = [
    (rate * (1 - split), rate * split)
    for rate in (0.02, 0.05, 0.09, 0.14, 0.2, 0.3)
    for split in (0.0, 0.2, 0.3, 0.4, 0.45, 0.48, 0.52, 0.6, 0.8, 1.0)
]
EQUAL_ARMS = [(half, half) for half in (0.005, 0.03, 0.1, 0.25, 0.4, 0.5)]


def pair_counts(pairs: int, wins: int, losses: int) -> PairCounts:
    """Return a table; both arms pass where they agree."""
    return PairCounts(both=pairs - wins - losses, only_a=losses, only_b=wins, neither=0)


@cache
def list_ends(rule: PairedRule, most: int) -> tuple[tuple[int, int, int, int, str], ...]:
    """Return all ends (pairs, wins, losses, paths, outcome), found by asking the rule alone.

    A path is counted without its probability, so that one enumeration serves all arms. What is
    undecided after the most pairs is "going on".
    """
    state = {(0, 0): 1}
    ends: list[tuple[int, int, int, int, str]] = []
    for pairs in range(1, most + 1):
        after: dict[tuple[int, int], int] = {}
        for (wins, losses), paths in state.items():
            for place in ((wins + 1, losses), (wins, losses + 1), (wins, losses)):
                after[place] = after.get(place, 0) + paths
        state = {}
        for (wins, losses), paths in after.items():
            outcome = rule.decide(pair_counts(pairs, wins, losses))
            if outcome is None:
                state[wins, losses] = paths
            else:
                ends.append((pairs, wins, losses, paths, outcome))
    ends += [(most, wins, losses, paths, "going on") for (wins, losses), paths in state.items()]
    return tuple(ends)


def weigh_ends(
    rule: PairedRule, most: int, only_a: float, only_b: float
) -> Iterator[tuple[tuple[int, int, int], str, float]]:
    """Yield every end with its probability for two arms."""
    agree = max(0.0, 1 - only_a - only_b)
    for pairs, wins, losses, paths, outcome in list_ends(rule, most):
        chance = paths * only_b**wins * only_a**losses * agree ** (pairs - wins - losses)
        yield (pairs, wins, losses), outcome, chance


@cache
def find_passing_p_value(rule: PairedRule, pairs: int, wins: int, losses: int) -> float:
    """Return the one-sided p-value of what a PASS refutes."""
    return rule.find_p_values(pair_counts(pairs, wins, losses))[0]


@cache
def conclude_at(rule: PairedRule, pairs: int, wins: int, losses: int) -> PairedConclusion:
    """Return what a rule concludes at an end."""
    return rule.conclude_counts(pair_counts(pairs, wins, losses))


SMALL_RULES = {
    "different, at most 40 pairs": plan(rates=(0.5, 0.9), max_pairs=40),
    "better, at most 40 pairs": plan("better", rates=(0.5, 0.9), max_pairs=40),
    "different, 10 pairs": plan(pairs=10),
    "better, 10 pairs at 10 %": plan("better", pairs=10, alpha=0.1),
    "better by 20 points, 9 pairs": plan("better", margin=0.2, pairs=9, alpha=0.1),
    "not worse by 20 points, 10 pairs": plan("not-worse", margin=0.2, pairs=10, alpha=0.1),
    "equivalent within 30 points, 10 pairs": plan("equivalent", margin=0.3, pairs=10, alpha=0.2),
    "better by 20 points, at most 40 pairs": plan(
        "better", margin=0.2, rates=(0.4, 0.9), max_pairs=40
    ),
    "not worse by 20 points, at most 30 pairs": plan("not-worse", margin=0.2, max_pairs=30),
    "equivalent within 30 points, at most 24 pairs": plan(
        "equivalent", margin=0.3, rates=(0.9, 0.9), max_pairs=24
    ),
}


@pytest.fixture(params=list(SMALL_RULES))
def small_rule(request: pytest.FixtureRequest) -> PairedRule:
    """Return a rule whose paths can all be followed."""
    return SMALL_RULES[request.param]


@pytest.mark.slow("equivalent within 30 points, at most 24 pairs")
def test_chances_and_pairs_are_those_of_every_path(small_rule: PairedRule) -> None:
    """The closed form of the chances against the enumeration."""
    assert small_rule.max_pairs is not None
    for only_a, only_b in ARMS:
        chances: dict[str, float] = {}
        pairs = discordant = 0.0
        for (n, wins, losses), outcome, chance in weigh_ends(
            small_rule, small_rule.max_pairs, only_a, only_b
        ):
            chances[outcome] = chances.get(outcome, 0.0) + chance
            pairs, discordant = pairs + n * chance, discordant + (wins + losses) * chance
        found = small_rule.characteristic(only_a, only_b)
        for said, chance in found.chances.items():
            assert chance == pytest.approx(chances.get(said, 0.0), abs=1e-9)
        assert found.mean_pairs == pytest.approx(pairs)
        assert found.mean_discordant == pytest.approx(discordant)
        for decision in Decision:
            assert found.chance_of(decision) == pytest.approx(
                math.fsum(
                    weight
                    for said, weight in chances.items()
                    if decide_outcome(small_rule.question, said) is decision  # type: ignore[arg-type]
                ),
                abs=1e-9,
            )


def is_wrong(rule: PairedRule, decision: Decision, difference: float) -> bool:
    """Whether PASS or FAIL says something wrong about a difference."""
    m, near = rule.margin, 1e-9
    if decision is Decision.PASS:
        return {
            "different": difference <= near,
            "better": difference <= m + near,
            "not-worse": difference <= -m + near,
            "equivalent": abs(difference) >= m - near,
        }[rule.question]
    return {
        "different": difference >= -near,
        "better": difference >= m - near,
        "not-worse": difference >= -near,
        "equivalent": abs(difference) <= m + near,
    }[rule.question]


def test_no_wrong_statement_is_likelier_than_half_of_alpha(small_rule: PairedRule) -> None:
    """For all rates of the two arms, and however they hang together."""
    most = small_rule.max_pairs
    assert most is not None
    for only_a, only_b in [*ARMS, *EQUAL_ARMS, *LIMIT_ARMS]:
        chances = {Decision.PASS: 0.0, Decision.FAIL: 0.0, Decision.INCONCLUSIVE: 0.0}
        for _, outcome, chance in weigh_ends(small_rule, most, only_a, only_b):
            chances[decide_outcome(small_rule.question, outcome)] += chance  # type: ignore[arg-type]
        for decision in (Decision.PASS, Decision.FAIL):
            if is_wrong(small_rule, decision, only_b - only_a):
                assert chances[decision] <= small_rule.alpha / 2 + 1e-12


@pytest.mark.slow(
    "different, at most 40 pairs",
    "not worse by 20 points, 10 pairs",
    "equivalent within 30 points, 10 pairs",
    "better by 20 points, at most 40 pairs",
)
def test_p_values_and_intervals_agree_with_the_outcome_at_every_end(small_rule: PairedRule) -> None:
    """What is shown is what the interval leaves out."""
    assert small_rule.max_pairs is not None
    m = small_rule.margin
    for pairs, wins, losses, _, outcome in list_ends(small_rule, small_rule.max_pairs):
        found = conclude_at(small_rule, pairs, wins, losses)
        low, high = found.interval
        assert found.outcome == outcome
        assert (found.p_value <= small_rule.alpha) == (outcome != "not shown")
        assert -1 <= low <= high <= 1
        passes = {
            "different": low > 0,
            "better": low > m,
            "not-worse": low > -m,
            "equivalent": -m < low and high < m,
        }[small_rule.question]
        fails = {
            "different": high < 0,
            "better": high < m,
            "not-worse": high < 0 and not passes,
            "equivalent": low > m or high < -m,
        }[small_rule.question]
        assert passes == (found.decision is Decision.PASS)
        assert fails == (found.decision is Decision.FAIL)


def test_p_values_of_equal_arms_are_small_no_oftener_than_they_say(small_rule: PairedRule) -> None:
    """At every level, not only at alpha, so that Holm's method over several of them is valid."""
    assert small_rule.max_pairs is not None
    if small_rule.margin:
        return  # The next test is about the limit of such a rule.
    for only_a, only_b in EQUAL_ARMS:
        reached: dict[float, float] = {}
        for end, _, chance in weigh_ends(small_rule, small_rule.max_pairs, only_a, only_b):
            p_value = conclude_at(small_rule, *end).p_value
            reached[p_value] = reached.get(p_value, 0.0) + chance
        total = 0.0
        for p_value in sorted(reached):
            total += reached[p_value]
            assert total <= p_value + 1e-12


def test_p_values_at_the_margin_are_small_no_oftener_than_they_say(small_rule: PairedRule) -> None:
    """At every level, for arms that differ by just the margin that a PASS would refute."""
    assert small_rule.max_pairs is not None
    m = small_rule.margin
    limit = m if small_rule.question == "better" else -m
    for rate in (m + 1e-9, m + 0.1, 0.5, 0.8, 1.0):
        only_a, only_b = (rate - limit) / 2, (rate + limit) / 2
        reached: dict[float, float] = {}
        for end, _, chance in weigh_ends(small_rule, small_rule.max_pairs, only_a, only_b):
            if chance > 1e-12:
                p_value = find_passing_p_value(small_rule, *end)
                reached[p_value] = reached.get(p_value, 0.0) + chance
        total = 0.0
        for p_value in sorted(reached):
            total += reached[p_value]
            assert total <= p_value + 1e-9


def test_intervals_cover_the_difference_for_all_arms(small_rule: PairedRule) -> None:
    """Each end misses it in at most half of alpha of all comparisons."""
    assert small_rule.max_pairs is not None
    for only_a, only_b in [*ARMS, *EQUAL_ARMS, *LIMIT_ARMS, *RARE_ARMS]:
        above = below = 0.0
        for end, _, chance in weigh_ends(small_rule, small_rule.max_pairs, only_a, only_b):
            if chance < 1e-9:
                continue
            interval = conclude_at(small_rule, *end).interval
            above += chance * (interval.low > only_b - only_a + 1e-12)
            below += chance * (interval.high < only_b - only_a - 1e-12)
        assert above <= small_rule.alpha / 2 + 1e-9
        assert below <= small_rule.alpha / 2 + 1e-9


@pytest.mark.parametrize("question", ["different", "better"])
@pytest.mark.parametrize("tests", range(1, 11))
def test_the_usual_rules_ship_and_find_a_split_of_70_to_30(question: str, tests: int) -> None:
    """At the level of up to ten tests, without a search."""
    rule = plan_paired_rule(question, alpha=0.05 / tests)  # type: ignore[arg-type]
    assert rule.characteristic(0.03, 0.07).better >= 0.80 - 1e-12
    for half in (0.01, 0.2, 0.5):
        equal = rule.characteristic(half, half)
        assert max(equal.better, equal.worse) <= 0.05 / tests / 2 + 1e-12
    assert rule.certificate is not None
    assert rule.certificate < 1.005


def test_the_rule_that_ships_finds_80_against_90_percent() -> None:
    """Independent arms split discordant pairs 69:31, a little less than the rule is made for."""
    found = plan_paired_rule().characteristic(*discordant_rates(0.8, 0.9))
    assert found.better >= 0.80
    assert found.mean_pairs < 136


def test_a_fixed_size_is_mcnemars_exact_test() -> None:
    """8 of 10 against 5 of 10 with three discordant pairs: p = 0.25, and nothing is shown."""
    found = plan_paired_rule(pairs=10).conclude(
        [(True, True)] * 5 + [(False, True)] * 3 + [(False, False)] * 2
    )
    assert (found.outcome, found.p_value) == ("not shown", 0.25)
    assert found.decision is Decision.INCONCLUSIVE
    for wins, losses in ((9, 1), (8, 0), (0, 6), (3, 7)):
        path = [(False, True)] * wins + [(True, False)] * losses
        path += [(True, True)] * (20 - len(path))
        found = plan_paired_rule(pairs=20).conclude(path)
        assert found.p_value == sign_test(wins, losses).p_value


def test_a_comparison_that_was_cut_short_shows_nothing() -> None:
    """Even if all pairs so far were won."""
    for rule in (plan_paired_rule(pairs=50), plan_paired_rule(max_pairs=50)):
        found = rule.conclude([(False, True)] * 5)
        assert (found.outcome, found.p_value) == ("not shown", 1.0)
        assert not found.is_complete
        assert found.interval.low <= 0 < found.interval.high


def test_pairs_after_the_stop_do_not_count() -> None:
    """Another test of the family may need them."""
    rule = plan_paired_rule()
    path = [(False, True)] * 30
    found = rule.conclude(path)
    assert found == rule.conclude(path[: found.used.pairs])
    assert found.outcome == "better"
    assert found.used.pairs < 30


def test_a_rule_is_kept_and_read_again(small_rule: PairedRule) -> None:
    """With its boundaries, so that nothing is searched for again."""
    kept = json.loads(json.dumps(small_rule.to_plain()))
    read = PairedRule.from_plain(kept)
    assert read == small_rule
    assert read.to_plain() == small_rule.to_plain()


def test_the_tables_that_were_kept_decide() -> None:
    """They are not found again, so that a record is decided alike by every version."""
    rule = plan_paired_rule("not-worse", margin=0.2, pairs=10)
    kept = rule.to_plain()
    counts = pair_counts(10, 4, 0)
    assert rule.decide(counts) == "not worse"
    kept["regions"] = [[limit, [-1] * 11] for limit, _ in kept["regions"]]
    assert PairedRule.from_plain(kept).decide(counts) == "not shown"


@pytest.mark.parametrize(
    ("outcome", "questions"),
    [
        ("better", {"different": "PASS", "better": "PASS"}),
        ("worse", {"different": "FAIL", "better": "FAIL", "not-worse": "FAIL"}),
        ("equivalent", {"equivalent": "PASS"}),
        ("not shown", {"different": "INCONCLUSIVE", "equivalent": "INCONCLUSIVE"}),
    ],
)
def test_what_is_shown_decides_by_the_question(
    outcome: PairedOutcome, questions: dict[str, str]
) -> None:
    """The same outcome may answer several questions."""
    for question, decision in questions.items():
        assert decide_outcome(question, outcome) == decision  # type: ignore[arg-type]


def test_impossible_plans_are_refused() -> None:
    """With the argument and what it may be."""
    with pytest.raises(InvalidArgument, match="pairs"):
        plan_paired_rule(pairs=0)
    with pytest.raises(InvalidArgument, match="together with pairs"):
        plan_paired_rule(pairs=10, max_pairs=20)
    with pytest.raises(InvalidArgument, match="question"):
        plan_paired_rule("worse")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="at most 10 pairs"):
        plan_paired_rule(pairs=10).decide(pair_counts(11, 0, 0))


# --- Equivalence ----------------------------------------------------------------------------------


def find_worst_fail(rule: PairedRule) -> float:
    """Return the greatest chance of "not equivalent" for arms within the margin, by enumeration.

    Every table has its trinomial probability, at all differences and shares of discordant pairs on
    a grid that is refined around its maximum.
    """
    size, margin = rule.max_pairs, rule.margin
    assert size is not None
    tables = [
        (wins, losses, math.comb(size, wins) * math.comb(size - wins, losses))
        for wins in range(size + 1)
        for losses in range(size + 1 - wins)
        if rule.decide(pair_counts(size, wins, losses)) == "not equivalent"
    ]

    def find_chance(difference: float, discordant: float) -> float:
        only_a, only_b = (discordant - difference) / 2, (discordant + difference) / 2
        agree = 1 - discordant
        return math.fsum(
            ways * only_b**wins * only_a**losses * agree ** (size - wins - losses)
            for wins, losses, ways in tables
        )

    best, place, step = 0.0, (0.0, 0.5), (margin / 4, 1 / 40)
    grid = [(margin * i / 4, k / 40) for i in range(5) for k in range(41)]
    for _ in range(3):
        for difference, discordant in grid:
            if 0 <= difference <= margin and difference <= discordant <= 1:
                chance = find_chance(difference, discordant)
                if chance > best:
                    best, place = chance, (difference, discordant)
        step = step[0] / 4, step[1] / 4
        grid = [
            (place[0] + i * step[0], place[1] + k * step[1])
            for i in range(-3, 4)
            for k in range(-3, 4)
        ]
    return best


@pytest.mark.parametrize(
    ("margin", "pairs", "alpha", "before"),
    [(0.05, 60, 0.2, 0.11), (0.02, 120, 0.2, 0.13), (0.1, 40, 0.05, 0.0), (0.2, 20, 0.2, 0.0)],
)
def test_not_equivalent_is_wrong_in_at_most_half_of_alpha_by_both_ways_together(
    margin: float, pairs: int, alpha: float, before: float
) -> None:
    """Each of the two ways had the whole of it before, as records of that time still have."""
    worst = find_worst_fail(plan("equivalent", margin=margin, pairs=pairs, alpha=alpha))
    assert worst <= alpha / 2
    assert worst >= 0.75 * alpha / 2, "the level is used"
    old = find_worst_fail(plan("equivalent", margin=margin, pairs=pairs, alpha=alpha, edition=1))
    assert old >= before


def test_not_equivalent_holds_its_level_for_a_rule_that_may_stop_early() -> None:
    """Before, the chance was 0.21 for two arms that differ by the margin in every pair."""
    rules = [
        plan("equivalent", margin=0.05, alpha=0.4, rates=(0.9, 0.9), max_pairs=120, edition=edition)
        for edition in (1, 2)
    ]
    old, new = (rule.characteristic(0.475, 0.525).chance_of(Decision.FAIL) for rule in rules)
    assert new <= 0.2 < old
    for discordant in (0.05, 0.3, 0.7, 1.0):
        for difference in (0.0, 0.025, 0.05):
            found = rules[1].characteristic(
                (discordant - difference) / 2, (discordant + difference) / 2
            )
            assert found.chance_of(Decision.FAIL) <= 0.2


@pytest.mark.parametrize("size", ["pairs", "max_pairs"])
def test_pairs_that_could_never_show_equivalence_are_refused(size: str) -> None:
    """(1 − margin)^n is the chance that arms which differ by the margin are always alike."""

    def plan_sized(number: int) -> PairedRule:
        sizes: dict[str, Any] = {size: number}
        return plan_paired_rule("equivalent", margin=0.05, alpha=0.2, **sizes)

    with pytest.raises(InvalidArgument, match="even if the two arms never differ") as refused:
        plan_sized(40)
    assert refused.value.argument == size
    words = refused.value.allowed.split()
    fewest = int(words[words.index("about") + 1])
    assert (1 - 0.05) ** fewest <= 0.2 / 2
    rule = plan_sized(fewest)
    assert rule.decide(pair_counts(fewest, 0, 0)) == "equivalent"


def test_rules_of_an_earlier_edition_decide_as_they_did() -> None:
    """The file was written before the two ways to be "not equivalent" shared their error."""
    folder = Path(__file__).parents[1] / "data" / "comparisons-0.2.0.dev0"
    for kept in json.loads((folder / "equivalent_rules.json").read_text()):
        rule = PairedRule.from_plain(kept["rule"])
        for (both, only_a, only_b, neither), outcome, p_value, interval in kept["found"]:
            counts = PairCounts(both=both, only_a=only_a, only_b=only_b, neither=neither)
            found = rule.conclude_counts(counts)
            assert found.outcome == outcome
            assert found.p_value == pytest.approx(p_value, rel=1e-9)
            assert [*found.interval] == pytest.approx(interval, rel=1e-9)
