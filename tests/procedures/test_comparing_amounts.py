"""What is compared beside the pass rate: time, money, scores, steadiness, all by hand."""

from __future__ import annotations

import math
from itertools import product
from random import Random
from statistics import fmean, median
from typing import Any

import pytest

import trialwise as tw
from trialwise.runtime.answers import Comparison

INPUTS = [f"question {k}" for k in range(10)]


def answer(text: str, **took: Any) -> tw.Reply:
    return tw.Reply(value=text, **took)


def compare(control: Any, candidate: Any, *, trials: int = 40, **settings: Any) -> Comparison:
    criteria = settings.pop("criteria", [tw.Criterion("right", tw.equals("yes"), at_least=0.5)])
    inputs = settings.pop("inputs", INPUTS)
    contract = tw.Contract("agent", control, criteria, sampling=inputs)
    found: tw.Comparison = tw.compare(
        contract,
        contract.with_service(candidate),
        labels=("A", "B"),
        trials=trials,
        seed=4,
        store=None,
        **settings,
    )
    return found


def draw(seed: int, salt: int) -> Random:
    return Random(1000 * seed + salt)


def walsh_median(differences: list[float]) -> float:
    n = len(differences)
    return median((differences[i] + differences[j]) / 2 for i in range(n) for j in range(i, n))


@pytest.mark.requirement(
    "statistical-ci lessons",
    "Latency, cost and tokens of two arms are compared pair by pair, with an interval.",
    "`amounts` of a comparison: Hodges and Lehmann's estimate with an exact interval",
)
def test_the_typical_difference_of_costs_and_tokens_is_that_of_the_pairs() -> None:
    """
    The Walsh averages of the differences, all of them, from the trials of both records.
    """

    def old(_: str, seed: int) -> tw.Reply:
        cents = draw(seed, 1).randrange(10, 40)
        return answer("yes", cost_usd=cents / 100, usage=tw.Usage(input_tokens=cents))

    def new(_: str, seed: int) -> tw.Reply:
        cents = draw(seed, 2).randrange(5, 30)
        return answer("yes", cost_usd=cents / 100, usage=tw.Usage(input_tokens=2 * cents))

    found = compare(old, new)
    amounts = {one.name: one for one in found.verdict.amounts}
    costs = [
        round((theirs.cost_usd or 0) - (ours.cost_usd or 0), 9)
        for ours, theirs in zip(found.control.trials, found.candidate.trials, strict=True)
    ]
    cost = amounts["cost_usd"]

    assert ("B", "A", 40) == (cost.arm, cost.against, cost.pairs)
    assert cost.difference == pytest.approx(walsh_median(costs))
    assert cost.median_difference == pytest.approx(median(costs))
    assert cost.candidate_mean - cost.control_mean == pytest.approx(fmean(costs))
    assert cost.interval is not None
    assert cost.median_interval is not None
    assert cost.mean_interval is not None
    assert cost.interval.width < cost.median_interval.width
    assert (0.0 in cost.interval) is (cost.p_value is not None and cost.p_value > 0.05)
    assert "tokens" in amounts
    assert "typical difference" in render(found)


def render(found: Comparison) -> str:
    from trialwise.renderers.document_text import render_document_text

    return " ".join(render_document_text(found.build_page()).split())


@pytest.mark.requirement(
    "statistical-ci lessons",
    "What a success costs is compared, with the cost of setup apart.",
    "`costs` and `cost_ratios` of a comparison",
)
def test_the_cost_of_a_success_counts_failures_and_leaves_setup_apart() -> None:
    """
    A costs 2 cents and passes half of its trials, B costs 3 cents and passes all: 4 cents and 3.
    """

    def old(_: str, index: int) -> tw.Reply:
        text = "yes" if index % 2 else "no"
        return answer(text, cost_usd=0.02, setup=tw.model.Setup(seconds=1.0, cost_usd=0.5))

    def new(_: str) -> tw.Reply:
        return answer("yes", cost_usd=0.03)

    verdict = compare(old, new).verdict
    ours, theirs = verdict.costs
    (ratio,) = verdict.cost_ratios

    assert (40, 20) == (ours.trials, ours.successes)
    assert ours.usd_per_success == pytest.approx(0.04)
    assert ours.setup_usd == pytest.approx(20.0)
    assert theirs.usd_per_success == pytest.approx(0.03)
    assert ratio.ratio == pytest.approx(0.75)
    # Leaving one pair out: 39 trials, with 19 or 20 successes of A.
    without = [math.log(0.03) - math.log(0.02 * 39 / (20 - k % 2)) for k in range(40)]
    centre = fmean(without)
    error = math.sqrt(39 / 40 * sum((one - centre) ** 2 for one in without))
    assert ratio.interval is not None
    assert ratio.interval.low == pytest.approx(0.75 * math.exp(-1.959964 * error), rel=1e-6)
    assert ratio.interval.high == pytest.approx(0.75 * math.exp(1.959964 * error), rel=1e-6)
    assert "approximate" in ratio.interval.method


def test_an_arm_without_a_success_has_no_cost_of_one() -> None:
    def never(_: str) -> tw.Reply:
        return answer("no", cost_usd=0.01)

    def always(_: str) -> tw.Reply:
        return answer("yes", cost_usd=0.01)

    found = compare(never, always)

    assert [None, 0.01] == [
        one.usd_per_success and round(one.usd_per_success, 9) for one in found.verdict.costs
    ]
    assert () == found.verdict.cost_ratios
    assert "no success with A (0 of 40 trials passed)" in render(found)


def test_the_cost_of_a_success_is_not_told_where_a_trial_hides_its_own() -> None:
    def hides(_: str, index: int) -> tw.Reply:
        return answer("yes", cost_usd=None if index % 2 else 0.01)

    found = compare(hides, lambda _: answer("yes", cost_usd=0.01))

    assert ["B"] == [one.arm for one in found.verdict.costs]


def test_the_interval_of_the_cost_ratio_covers_about_as_often_as_it_says() -> None:
    """
    It only describes. Of 200 simulated comparisons of 60 pairs, about 190 hold the true ratio of 2;
    fewer than 180 would be a chance of 0.0005 at 95 %.
    """
    from trialwise.procedures.comparing.amounts import compare_cost_per_success
    from trialwise.procedures.comparing.findings import PairingSummary
    from trialwise.procedures.comparing.pairing import Pair, Pairing

    summary = PairingSummary(
        experiment="inputs",
        arm="B",
        against="A",
        pairs=60,
        same_inputs=True,
        same_order=True,
        same_seeds=True,
        fixed_size=True,
        left_out=(0, 0),
    )
    random = Random(9)

    def trial(index: int, rate: float, cost: float) -> Any:
        from trialwise.model.trial import CheckResult, Outcome, Trial

        result = CheckResult.ok() if random.random() < rate else CheckResult.fail("no")
        return Trial(
            experiment="inputs",
            index=index,
            input_id=str(index),
            seed=index,
            outcomes=(Outcome(criterion="right", result=result),),
            cost_usd=cost * random.uniform(0.5, 1.5),
        )

    covered = 0
    for _ in range(200):
        pairs = tuple(Pair(trial(k, 0.8, 1.0), trial(k, 0.6, 1.5)) for k in range(60))
        stops: Any = (None, None)
        pairing = Pairing(summary=summary, pairs=pairs, control=(), candidate=(), stops=stops)
        found = compare_cost_per_success([pairing], by_input=False, confidence=0.95)
        assert found is not None
        assert found.interval is not None
        covered += 2.0 in found.interval
    assert covered >= 180


# --- Scores -----------------------------------------------------------------------------------


def grade(text: str) -> float:
    return float(text)


GRADED = [tw.Criterion("grade", grade, pass_at=0.5, at_least=0.5)]


@pytest.mark.requirement(
    "scoring around",
    "What a skill adds to the mean score is on the page of the comparison.",
    "a row `score` and `scores` of a comparison",
)
def test_graded_criteria_have_a_row_with_the_lift() -> None:
    """
    Differences of 0.1 or 0.3 in every pair: 8 equal signs of 8 are one of 256 on each side.
    """

    def plain(_: str, index: int) -> str:
        return "0.4" if index % 2 else "0.6"

    def skilled(_: str, index: int) -> str:
        return "0.5" if index % 2 else "0.9"

    found = compare(plain, skilled, trials=8, criteria=GRADED)
    (lift,) = found.verdict.scores
    row = next(one for one in found.verdict.amounts if one.name == "score")

    assert (0.5, 0.7) == pytest.approx((lift.control, lift.candidate))
    assert lift.difference == pytest.approx(0.2) == row.difference
    assert lift.p_value == 2 / 2**8 == row.p_value
    assert lift.flip_interval is not None
    sums = sorted(
        sum(one for one, take in zip([0.1, 0.3] * 4, chosen, strict=True) if take) / sum(chosen)
        for chosen in product((0, 1), repeat=8)
        if any(chosen)
    )
    depth = math.floor(0.025 * 2**8)
    assert lift.flip_interval.low == pytest.approx(sums[depth - 1])
    assert lift.flip_interval.high == pytest.approx(sums[-depth])
    assert lift.interval == found.score_lift("grade").interval
    assert "score of grade: mean 0.500 -> 0.700, lift +0.200 [" in render(found)
    assert row.interval is not None
    assert row.interval.method == "betting"


def test_criteria_without_scores_have_no_lift() -> None:
    found = compare(lambda _: "yes", lambda _: "no", trials=10)

    assert () == found.verdict.scores
    assert "score" not in [one.name for one in found.verdict.amounts]


# --- Steadiness -------------------------------------------------------------------------------


@pytest.mark.requirement(
    "statistical-ci lessons",
    "The variance of the arms is compared, not only their rates.",
    "`flakiness` and `spreads` of a comparison whose inputs are repeated",
)
def test_inputs_that_pass_and_fail_are_counted_for_both_arms() -> None:
    """
    B is flaky on 8 of 10 inputs and A on none: the sign test of 8 to 0 is 2/2⁸.
    """
    turns: dict[str, int] = {}

    def moody(question: str) -> str:
        turns[question] = turns.get(question, 0) + 1
        steady = question in INPUTS[:2]
        return "yes" if steady or turns[question] % 2 else "no"

    found = compare(lambda _: "yes", moody)
    (flaky,) = found.verdict.flakiness

    assert (10, 0, 8) == (flaky.inputs, flaky.control, flaky.candidate)
    assert (0, 8, 2 / 2**8) == (flaky.only_control, flaky.only_candidate, flaky.p_value)
    assert (
        "inputs that both passed and failed right: 0 with A and 8 with B, of 10 repeated inputs "
        "(p = 0.00781)" in render(found)
    )


def test_how_far_repeats_lie_apart_does_not_depend_on_the_level_of_an_arm() -> None:
    """
    A gives 0.1 or 0.2 in turn and B 0.3 or 0.9: repeats lie 0.1 and 0.6 apart, in all 20 pairs of
    repeats. All signs agree, which the 8,192 arrangements hold once on each side.
    """
    turns: dict[tuple[str, str], int] = {}

    def alternate(arm: str, first: str, second: str) -> Any:
        def reply(question: str) -> str:
            turns[arm, question] = turns.get((arm, question), 0) + 1
            return first if turns[arm, question] % 2 else second

        return reply

    found = compare(alternate("A", "0.1", "0.2"), alternate("B", "0.3", "0.9"), criteria=GRADED)
    spread = next(one for one in found.verdict.spreads if one.name == "score")

    assert (20, "grade") == (spread.repeats, spread.criterion)
    assert (0.1, 0.6, 0.5) == pytest.approx((spread.control, spread.candidate, spread.difference))
    assert spread.p_value == 2 / 8192
    assert (0.5, 0.5) == pytest.approx(tuple(spread.interval or ()))
    assert "two repeats of an input differ in score of grade by 0.100 with A and 0.600 with B" in (
        render(found)
    )


def test_without_repeats_there_is_nothing_to_say_of_steadiness() -> None:
    found = compare(lambda _: "yes", lambda _: "no", trials=10)

    assert ((), ()) == (found.verdict.flakiness, found.verdict.spreads)
