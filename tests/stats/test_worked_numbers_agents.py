"""Numbers of the agent documents that no other file here checks, and what holds of all of them.

Typed in are figures of the documents and of their readings alone; everything else is counted again
in fractions or summed over the binomial distribution. `test_passk`, `test_scoring`,
`test_reliability` and `test_stability` hold the rest of the worked examples.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, pairwise, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm

from trialwise import stats
from trialwise.stats.rate_intervals import rule_of_three, wald, wilson_interval
from trialwise.stats.result_types import Interval
from trialwise.stats.run_reliability import (
    confidence_band,
    graceful_degradation,
    pass_at_k,
    pass_at_k_naive,
    pass_hat_k,
    pass_hat_k_plugin,
    recommend_runs,
    recommend_runs_wilson,
    reliability_decay_curve,
    summarize,
    variance_amplification,
)
from trialwise.stats.skill_scores import (
    GraderResult,
    SkillMetrics,
    StimulusScore,
    flakiness,
    multi_trial_metrics,
    skill_score,
    stimulus_score,
)
from trialwise.stats.toolbox.stability_across_runs import agent_stability, agent_stability_across
from trialwise.stats.trace_stability import StabilityReport, drift_flags

OUTCOMES = st.lists(st.booleans(), min_size=1, max_size=60)
LEVELS = (0.90, 0.95, 0.99)


def runs(letters: str) -> list[bool]:
    return [letter == "P" for letter in letters]


def session(
    calls: list[Any] | None = None, lengths: tuple[int, ...] = (), tokens: float = 0
) -> dict[str, Any]:
    """The envelope of the stability document."""
    turns = [{"role": "assistant", "content": "x" * length} for length in lengths]
    conversation = {"tokens": {"total": tokens}, "turns": turns}
    return {"tool_calls": calls or [], "conversation": conversation}


def call(name: str = "search", **args: Any) -> dict[str, Any]:
    return {"name": name, "server": "docs", "args": args or {"q": "a"}}


# --- How many runs ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("half_width", "confidence", "rounded", "exact"),
    [
        ("0.02", 0.90, 1692, 1691),
        ("0.01", 0.90, 6766, 6764),
        ("0.02", 0.99, 4148, 4147),
        ("0.01", 0.99, 16590, 16588),
    ],
)
def test_rounded_critical_values_ask_for_more_at_small_half_widths(
    half_width: str, confidence: float, rounded: int, exact: int
) -> None:
    """The published z are part of the recommendation; exact ones would give another number."""
    z = Fraction(float(norm.isf((1 - confidence) / 2)))

    assert rounded == recommend_runs(float(half_width), confidence)
    assert exact == math.ceil((z / Fraction(half_width)) ** 2 / 4)


@pytest.mark.parametrize("half_width", ["0.05", "0.10"])
@pytest.mark.parametrize("confidence", LEVELS)
def test_they_agree_elsewhere_in_the_table(half_width: str, confidence: float) -> None:
    """At five and ten percent the rounding of z changes nothing."""
    z = Fraction(float(norm.isf((1 - confidence) / 2)))

    assert math.ceil((z / Fraction(half_width)) ** 2 / 4) == recommend_runs(
        float(half_width), confidence
    )


@pytest.mark.parametrize(
    ("half_width", "whole"), [("0.02", 2401), ("0.01", 9604), ("0.00112", 875**2)]
)
def test_a_whole_number_is_not_rounded_up_by_its_last_bit(half_width: str, whole: int) -> None:
    """(1.96/.02)² / 4 is 2401; of the last one a ceiling in doubles makes one more."""
    assert whole == (Fraction("1.96") / Fraction(half_width)) ** 2 / 4
    assert whole == recommend_runs(float(half_width), 0.95)
    assert 875**2 + 1 == math.ceil((1.96 / 0.00112) ** 2 * 0.25)


def test_the_worked_example_of_the_recommendation() -> None:
    """384.16 runs are 385; a hundred runs buy 0.098, about ten percent."""
    assert Fraction("384.16") == (Fraction("1.96") / Fraction("0.05")) ** 2 / 4
    assert 385 == recommend_runs(0.05)
    assert 0.098 == confidence_band(100)
    assert 10 == round(100 * confidence_band(100))


#: The true coverage of the nominal 95 % interval at n runs of a rate p.
COVERAGE = [
    (10, 0.9, 0.650, 0.930),
    (20, 0.95, 0.639, 0.925),
    (100, 0.95, 0.877, 0.966),
    (385, 0.5, 0.947, 0.947),
]


@pytest.mark.parametrize(("n", "p", "of_wald", "of_wilson"), COVERAGE)
def test_a_nominal_width_is_no_coverage(n: int, p: float, of_wald: float, of_wilson: float) -> None:
    """Summed over every count: the guarantee is one of width, and Wilson's interval keeps more."""

    def covered(interval: Callable[..., Interval]) -> float:
        chances = binom.pmf(range(n + 1), n, p)
        return math.fsum(float(chances[c]) for c in range(n + 1) if p in interval(c, n))

    assert (of_wald, of_wilson) == (round(covered(wald), 3), round(covered(wilson_interval), 3))


@pytest.mark.parametrize("n", [1, 10, 1000])
def test_a_perfect_record_has_no_width_by_wald(n: int) -> None:
    """And one by Wilson, however many runs there are."""
    for passed in (0, n):
        assert 0 == wald(passed, n).width < wilson_interval(passed, n).width


def test_wilson_asks_for_four_runs_fewer() -> None:
    """381 for five percent at worst, and 380 do not do."""
    widest = [wilson_interval(n // 2, n).width / 2 for n in (380, 382)]

    assert 381 == recommend_runs_wilson(0.05)
    assert widest[1] <= 0.05 < widest[0]


@pytest.mark.parametrize(
    ("passed", "n", "ends", "decision"),
    [
        (7, 10, (0.416, 0.984), "inconclusive"),
        (8, 10, (0.552, 1.048), "pass"),
        (4, 5, (0.449, 1.151), "inconclusive"),
        (5, 5, (1.0, 1.0), "pass"),
    ],
)
def test_verdicts_by_wald_against_one_half(
    passed: int, n: int, ends: tuple[float, float], decision: str
) -> None:
    """What another tool decides so; five of five is certain by a width of zero."""
    low, high = wald(passed, n)

    assert ends == (round(low, 3), round(high, 3))
    assert decision == ("pass" if low > 0.5 else "fail" if high < 0.5 else "inconclusive")


def test_a_rare_failure_needs_a_larger_pool() -> None:
    """A thousand trials: the interval is half of a rate of 5 %, and several times one of 0.1 %."""
    common, rare = (wilson_interval(failed, 1000).width / (failed / 1000) for failed in (50, 1))

    assert common < 1
    assert rare > 3
    assert 0.003 == rule_of_three(1000)


# --- The reliability report -------------------------------------------------------------------


def test_the_surface_of_the_reliability_report() -> None:
    """The names that the document lists, and a summary that resolves its targets."""
    names = {"recommend_runs", "confidence_band", "summarize", "ReliabilitySummary"}

    assert names <= set(dir(stats))
    assert 87 == summarize(runs("PPPF")).resolve_target("reliability.variance_amplification")
    assert {"decay_curve": [100, 25, 29, 31]}.items() <= (
        summarize(runs("PFPP")).metrics_object().items()
    )


@pytest.mark.parametrize("letters", ["".join(each) for each in product("PF", repeat=5)])
def test_every_record_of_five_runs(letters: str) -> None:
    """Counted from the definitions: floors for the curve, halves up for the two scores."""
    outcomes = runs(letters)
    summary = summarize(outcomes)
    rate = Fraction(sum(outcomes), 5)
    places = sum(place for place, passed in enumerate(outcomes, start=1) if passed)

    def half_up(value: Fraction) -> int:
        return math.floor(value + Fraction(1, 2))

    # 200 √(p(1−p)) rounded, without a root: the whole number whose half-steps enclose it.
    spread = 40_000 * rate * (1 - rate)
    rounded = summary.variance_amplification
    assert max(0, 2 * rounded - 1) ** 2 <= 4 * spread < (2 * rounded + 1) ** 2
    assert half_up(Fraction(100 * places, 15)) == summary.graceful_degradation
    assert tuple(math.floor(100 * Fraction(sum(outcomes[:k]), k) ** k) for k in range(1, 6)) == (
        summary.decay_curve
    )
    assert (100 * ("P" in letters), 100 * ("F" not in letters)) == (
        summary.pass_at_k,
        summary.passhat_k,
    )


def test_the_headline_and_the_curve_are_two_quantities() -> None:
    """Three of four: not every run passed, and the plug-in power says 31."""
    summary = summarize(runs("PPPF"))

    assert (0, 31) == (summary.passhat_k, summary.decay_curve[-1])
    assert 31.640625 == 100 * float(Fraction(3, 4) ** 4)
    assert 31.640625 == 100 * pass_hat_k_plugin(0.75, 4)
    assert 0 == pass_hat_k(4, 3, 4)


def test_halves_are_rounded_away_from_zero() -> None:
    """The third of fifteen runs alone passes: 2.5, which the language would round to 2."""
    assert Fraction(5, 2) == Fraction(100 * 3, sum(range(1, 16)))
    assert (2, 3) == (round(2.5), graceful_degradation(runs("FFP" + 12 * "F")))


@given(outcomes=OUTCOMES, more=OUTCOMES)
def test_a_longer_record_only_adds_to_the_curve(outcomes: list[bool], more: list[bool]) -> None:
    """Entry k is about the first k runs, whatever comes after."""
    curve = reliability_decay_curve(outcomes)

    assert curve == reliability_decay_curve(outcomes + more)[: len(outcomes)]


@given(st.integers(2, 60))
def test_a_longer_curve_need_not_be_monotone(length: int) -> None:
    """Some record of every length falls, some rises, and from three runs on some does both."""
    falling, rising = runs("P" * (length - 1) + "F"), runs("F" + "P" * (length - 1))
    both = runs("PF" + "P" * (length - 2))

    def steps(outcomes: list[bool]) -> list[int]:
        return [later - earlier for earlier, later in pairwise(reliability_decay_curve(outcomes))]

    assert [0] * (length - 2) == steps(falling)[:-1]
    assert steps(falling)[-1] < 0
    assert min(steps(rising)) >= 0 < steps(rising)[0]
    assert length == 2 or min(steps(both)) < 0 < max(steps(both))


@given(outcomes=OUTCOMES, data=st.data())
def test_order_matters_where_it_is_meant_and_nowhere_else(
    outcomes: list[bool], data: st.DataObject
) -> None:
    """The curve's end, the spread, the headline and every metric of k ignore it."""
    shuffled = data.draw(st.permutations(outcomes))
    one, other = summarize(outcomes), summarize(shuffled)
    k = data.draw(st.integers(1, len(outcomes)))

    assert (one.runs, one.pass_at_k, one.passhat_k) == (
        other.runs,
        other.pass_at_k,
        other.passhat_k,
    )
    assert variance_amplification(outcomes) == variance_amplification(shuffled)
    assert one.decay_curve[-1] == other.decay_curve[-1]
    assert multi_trial_metrics(outcomes, k=k) == multi_trial_metrics(shuffled, k=k)
    assert flakiness(outcomes) == flakiness(shuffled)


def test_order_is_meant_by_the_curve_and_by_degradation() -> None:
    """One failure of four, early and late."""
    early, late = summarize(runs("FPPP")), summarize(runs("PPPF"))

    assert early.decay_curve != late.decay_curve
    assert (90, 60) == (early.graceful_degradation, late.graceful_degradation)


# --- The stability report ---------------------------------------------------------------------

#: Character counts, by the population's deviation and by the sample's.
LENGTHS = [((100, 300), 0.500, 0.293), ((100, 200), 0.667, 0.529), ((50, 150, 400), 0.264, 0.099)]


@pytest.mark.parametrize(("lengths", "population", "sample"), LENGTHS)
def test_the_deviation_is_the_populations(
    lengths: tuple[int, ...], population: float, sample: float
) -> None:
    """The sample's would be lower, and would flag lengths of 100 and 300 below one half."""
    report = agent_stability(session([], lengths))
    mean = Fraction(sum(lengths), len(lengths))
    squares = sum((length - mean) ** 2 for length in lengths)
    by_sample = 1 - math.sqrt(squares / (len(lengths) - 1)) / mean

    assert (population, sample) == (round(report.response_consistency, 3), round(by_sample, 3))
    assert (population < 0.5) is ("response_consistency" in drift_flags(report))


def test_the_guard_goes_before_the_cost() -> None:
    """The document's own envelope would cost .667, and an answer without tools 0."""
    sample = session([call()], (3,), 3000)
    toolless = session([], (3,), 3000)
    longer = [session([call()], (3, 3), 3000), session([], (3, 3), 3000)]

    assert [1.0, 1.0] == [agent_stability(one).weakest_score for one in (sample, toolless)]
    assert [0.667, 0.0] == [round(agent_stability(one).cost_per_progress, 3) for one in longer]


@pytest.mark.parametrize(("tools", "expected"), [(1, 1.0), (3, 0.5), (5, 0.0)])
def test_five_calls_of_some_tools(tools: int, expected: float) -> None:
    """1 − (tools − 1)/4."""
    calls = [call(f"tool {place % tools}", n=place) for place in range(5)]

    assert expected == agent_stability(session(calls)).tool_usage_stability
    assert expected == 1 - Fraction(tools - 1, 4)


@given(
    st.lists(st.sampled_from("abc"), min_size=2, max_size=8),
    st.lists(st.integers(0, 400), min_size=2, max_size=6),
    st.integers(0, 40_000),
)
def test_all_four_from_their_formulas(names: list[str], lengths: list[int], tokens: int) -> None:
    """Counted in fractions up to the one root, for sessions of several turns and calls."""
    report = agent_stability(session([call(name) for name in names], tuple(lengths), tokens))
    count, distinct = len(names), len(set(names))
    mean = Fraction(sum(lengths), len(lengths))
    variance = sum((length - mean) ** 2 for length in lengths) / len(lengths)
    spread = math.sqrt(variance) / mean if mean else 0.0
    cost = Fraction(2000) / max(Fraction(2000), Fraction(tokens, distinct))

    assert float(1 - Fraction(distinct - 1, count - 1)) == pytest.approx(
        report.tool_usage_stability
    )
    assert 1 - min(1.0, spread) == pytest.approx(report.response_consistency)
    assert float(Fraction(distinct, count)) == pytest.approx(report.redundancy)
    assert float(cost) == pytest.approx(report.cost_per_progress)
    assert report.weakest_score == min(
        report.tool_usage_stability,
        report.response_consistency,
        report.redundancy,
        report.cost_per_progress,
    )


def test_shuffled_keys_are_one_call_at_every_depth() -> None:
    """Every order of the keys of a nested bag, read back from its JSON text, is one call."""
    bag = {
        "where": {"city": "S", "state": "CA", "days": [{"from": 1, "to": 2}]},
        "unit": "C",
        "n": 1,
    }

    def shuffled(value: Any, chance: random.Random) -> Any:
        if isinstance(value, dict):
            keys = chance.sample(list(value), len(value))
            return {key: shuffled(value[key], chance) for key in keys}
        return [shuffled(one, chance) for one in value] if isinstance(value, list) else value

    texts = {json.dumps(shuffled(bag, random.Random(seed))) for seed in range(40)}
    calls = [{"name": "weather", "server": "s", "args": json.loads(text)} for text in texts]
    report = agent_stability(session(calls, (9, 9)))

    assert len(texts) > 10
    assert report.redundancy == 1 / len(texts)
    assert report.shape is not None
    assert 1 == report.shape.distinct_calls == report.shape.distinct_tools


def test_the_variance_is_the_populations_and_at_most_a_quarter() -> None:
    """.02 for .9 to .5, where the sample's is .025; .05 is a deviation of .224."""
    scores = [Fraction(one, 10) for one in (9, 8, 7, 6, 5)]
    mean = sum(scores) / 5
    squares = sum((one - mean) ** 2 for one in scores)
    across = agent_stability_across([_report(float(one)) for one in scores])
    swinging = agent_stability_across([_report(0.0), _report(1.0)])

    assert (Fraction(1, 50), Fraction(1, 40)) == (squares / 5, squares / 4)
    assert 0.02 == pytest.approx(across.variance)
    assert 0.25 == swinging.variance
    assert 0.224 == round(math.sqrt(0.05), 3)


def _report(weakest: float) -> StabilityReport:
    return StabilityReport(
        tool_usage_stability=1.0,
        response_consistency=weakest,
        redundancy=1.0,
        cost_per_progress=1.0,
    )


# --- The scoring reference --------------------------------------------------------------------


@pytest.mark.parametrize("n", [5, 10])
def test_the_golden_vectors_by_counting_subsets(n: int) -> None:
    """3 of 5 and 8 of 10: at least one, and all, of k drawn without putting back."""
    passed = {5: 3, 10: 8}[n]
    outcomes = [True] * passed + [False] * (n - passed)
    for k in range(1, n + 1):
        drawn = list(combinations(outcomes, k))
        assert float(Fraction(sum(map(any, drawn)), len(drawn))) == pass_at_k(n, passed, k)
        assert float(Fraction(sum(map(all, drawn)), len(drawn))) == pass_hat_k(n, passed, k)


def test_the_printed_metrics_and_what_they_should_be() -> None:
    """.99 is neither the unbiased estimate, which is 1, nor the naive one, which rounds to 1."""
    metrics = multi_trial_metrics(runs("PPFPP"))

    assert (0.8, 1.0, 5) == (metrics.pass_rate, metrics.pass_at_k, metrics.k)
    assert (0.33, 0.328) == (
        round(metrics.pass_hat_k_plugin, 2),
        round(metrics.pass_hat_k_plugin, 3),
    )
    assert 1 - Fraction(1, 5) ** 5 == Fraction("0.99968")
    assert 0.99968 == pytest.approx(pass_at_k_naive(0.8, 5))
    assert "1.00" == f"{pass_at_k_naive(0.8, 5):.2f}"


@pytest.mark.parametrize(
    ("percent", "three", "five"),
    [(90, 0.999, 1.0), (50, 0.875, 0.969), (30, 0.657, 0.832), (10, 0.271, 0.410)],
)
def test_the_lookup_table_is_naive(percent: int, three: float, five: float) -> None:
    """1 − (1 − p)^k; no unbiased estimate of five trials says any of it at k = 5."""
    rate = Fraction(percent, 100)

    assert (three, five) == (
        round(float(1 - (1 - rate) ** 3), 3),
        round(float(1 - (1 - rate) ** 5), 3),
    )
    assert (three, five) == tuple(round(pass_at_k_naive(percent / 100, k), 3) for k in (3, 5))
    assert {0.0, 1.0} == {pass_at_k(5, passed, 5) for passed in range(6)}
    assert 5 * percent % 100  # no record of five trials has such a rate


@pytest.mark.parametrize("letters", ["".join(each) for each in product("PF", repeat=4)])
def test_flakiness_of_every_record_of_four(letters: str) -> None:
    """The rarer outcome's share of a hundred; flaky is what is neither always nor never."""
    found = flakiness(runs(letters))
    passed = letters.count("P")

    assert (0 < passed < 4, 25.0 * min(passed, 4 - passed)) == (found.flaky, found.percent)


def mark(grader: str, score: float) -> GraderResult:
    return GraderResult(grader=grader, score=score, passed=score == 1)


def test_the_worked_weights() -> None:
    """(1·1 + ½·0)/1½ is .667 and fails .7; every grader alike would be .5."""
    trials = [[mark("a", 1.0), mark("b", 0.0)]]
    weighted = stimulus_score("s", trials, weights={"a": 1.0, "b": 0.5}, threshold=0.7)

    assert Fraction(2, 3) == Fraction(1) / Fraction("1.5")
    assert (0.667, (False,)) == (round(_number(weighted), 3), weighted.trial_passed)
    assert 0.5 == stimulus_score("s", trials).aggregate_score


def _number(score: StimulusScore) -> float:
    assert isinstance(score.aggregate_score, float)
    return score.aggregate_score


def graded(name: str, letters: str) -> StimulusScore:
    return stimulus_score(name, [[mark("a", float(passed))] for passed in runs(letters)])


def test_a_skill_of_one_that_always_and_one_that_never_passes() -> None:
    """A mean plug-in pass^5 of .5; pooled it would be .031, and pass^10 .001 for .5."""
    skill = skill_score("k", [graded("x", "PPPPP"), graded("y", "FFFFF")], threshold=0.5)
    assert isinstance(skill.metrics, SkillMetrics)

    assert (0.5, 0.5, 5) == (
        skill.metrics.pass_hat_k,
        skill.metrics.pass_hat_k_plugin,
        skill.metrics.k,
    )
    assert (0.031, 0.001) == tuple(round(float(Fraction(1, 2) ** k), 3) for k in (5, 10))
    assert (0.5, True) == (skill.overall_score, skill.passed)


@given(st.lists(st.text("PF", min_size=1, max_size=6), min_size=1, max_size=5), st.randoms())
def test_a_skill_is_a_mean_of_means(records: list[str], chance: Any) -> None:
    """In fractions over its stimuli, whatever their order and their numbers of trials."""
    stimuli = [graded(str(place), letters) for place, letters in enumerate(records)]
    skill = skill_score("k", stimuli)
    mixed = skill_score("k", chance.sample(stimuli, len(stimuli)))
    assert isinstance(skill.metrics, SkillMetrics)
    assert isinstance(mixed.metrics, SkillMetrics)
    rates = [Fraction(one.count("P"), len(one)) for one in records]
    every = [Fraction("F" not in one) for one in records]
    plug_in = [rate ** len(one) for rate, one in zip(rates, records, strict=True)]

    assert float(sum(rates) / len(rates)) == pytest.approx(skill.metrics.pass_rate)
    assert float(sum(every) / len(every)) == pytest.approx(skill.metrics.pass_hat_k)
    assert float(sum(plug_in) / len(plug_in)) == pytest.approx(skill.metrics.pass_hat_k_plugin)
    assert (len(records[0]) if len(set(map(len, records))) == 1 else None) == skill.metrics.k
    assert skill.overall_score == mixed.overall_score
    assert skill.metrics.pass_rate == mixed.metrics.pass_rate


def test_the_names_of_the_estimators_say_which_they_are() -> None:
    """Unbiased without a word, the others by one; at 4 of 5 and k = 5 they are far apart."""
    plain, plug_in = pass_hat_k(5, 4, 5), pass_hat_k_plugin(0.8, 5)

    assert (0.0, 0.328) == (plain, round(plug_in, 3))
    assert {"pass_hat_k", "pass_hat_k_plugin"} <= set(multi_trial_metrics([True]).__slots__)
