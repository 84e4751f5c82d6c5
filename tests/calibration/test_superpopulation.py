"""What repeated inputs do to a claim about a population: exact, by the law of counts per input.

Inputs are drawn from a population in which success rates follow a beta law with the required mean,
so that the population just misses the requirement, and every one is tried r times. The correlation
ρ of two trials of one input runs from 0, where repetitions are as good as inputs, to 1, where an
input always or never succeeds. P(PASS) is then false compliance, summed over beta-binomial laws.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from functools import cache, reduce

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import betabinom, binom
from tests.procedures.decided_counts import check_design, decide_claimed

from trialwise.model.claim import Claim
from trialwise.model.verdict import Decision
from trialwise.procedures.estimated_rates import matched_estimate
from trialwise.stats.cluster_estimators import Stratum, stratum_weighted
from trialwise.stats.compliance_cutoffs import compliance_cutoff
from trialwise.stats.result_types import RULES, Interval, Rule

Law = NDArray[np.float64]

CORRELATIONS = (0.0, 0.05, 0.1, 0.3, 0.5, 0.8, 0.95, 1.0)


@cache
def law_of(inputs: int, each: int, mean: float, rho: float) -> Law:
    """P(k successes in all) over inputs × each trials."""
    counts = np.arange(each + 1)
    if rho == 0:
        one = binom.pmf(counts, each, mean)
    elif rho == 1:
        one = np.where(counts == each, mean, np.where(counts == 0, 1 - mean, 0.0))
    else:
        size = (1 - rho) / rho
        one = betabinom.pmf(counts, each, mean * size, (1 - mean) * size)
    return reduce(np.convolve, [one] * inputs)


def claim_over(estimator: str | None) -> Claim:
    return Claim(
        population="superpopulation",  # type: ignore[arg-type]
        population_name="all questions",
        estimand="prompt-weighted",  # type: ignore[arg-type]
        estimator=estimator,  # type: ignore[arg-type]
    )


@cache
def cutoff_over_inputs(inputs: int, each: int, required: float) -> int | None:
    """The fewest successes with which the estimator over inputs PASSes, by its own verdicts."""
    claim, low, high = claim_over("prompts"), 0, inputs * each + 1
    while low < high:
        middle = (low + high) // 2
        base, rest = divmod(min(middle, inputs * each), inputs)
        counts = {str(j): (base + (j < rest), each) for j in range(inputs)}
        passed = decide_claimed("c", counts, claim, required).decision is Decision.PASS
        low, high = (low, middle) if passed else (middle + 1, high)
    return low if low <= inputs * each else None


def false_compliance(
    inputs: int, each: int, required: float, rho: float, cutoff: int | None
) -> float:
    if cutoff is None:
        return 0.0
    return float(law_of(inputs, each, required, rho)[cutoff:].sum())


# The mistake


@pytest.mark.parametrize("rule", ["wilson", "exact"])
def test_three_cycled_inputs_make_a_twentieth_a_half(rule: Rule) -> None:
    """34 times three inputs at 0.9: 5 % becomes a fifth at ρ = 0.1 and more than half at 0.5."""
    cutoff = compliance_cutoff(0.9, 102, rule=rule).cutoff
    errors = {rho: false_compliance(3, 34, 0.9, rho, cutoff) for rho in CORRELATIONS}

    assert errors[0.0] <= 0.055
    assert 0.18 < errors[0.1] < 0.26
    assert 0.50 < errors[0.5] < 0.55
    assert errors[1.0] == pytest.approx(0.9**3)


@pytest.mark.parametrize(
    ("inputs", "each", "low", "high"),
    [(10, 10, 0.17, 0.31), (20, 5, 0.09, 0.21), (50, 4, 0.09, 0.17)],
)
def test_more_inputs_help_and_do_not_suffice(
    inputs: int, each: int, low: float, high: float
) -> None:
    """Ten inputs ten times: a quarter; fifty inputs four times still more than a tenth."""
    cutoffs = [compliance_cutoff(0.9, inputs * each, rule=rule).cutoff for rule in RULES]
    found = [
        false_compliance(inputs, each, 0.9, rho, cutoff)
        for cutoff, rho in itertools.product(cutoffs, (0.3, 0.5))
    ]

    assert low < min(found)
    assert max(found) < high


@pytest.mark.parametrize("rule", ["wilson", "exact"])
def test_two_trials_an_input_are_already_too_many(rule: Rule) -> None:
    """n = 2J: at ρ = 0.1 the error grows by a quarter; where answers never vary it doubles."""
    cutoff = compliance_cutoff(0.9, 100, rule=rule).cutoff
    own, at_line = (false_compliance(50, 2, 0.9, rho, cutoff) for rho in (0.0, 0.1))
    beyond = false_compliance(10, 10, 0.9, 0.1, cutoff)

    assert at_line < 1.26 * own
    assert beyond > 2 * own
    assert false_compliance(50, 2, 0.9, 1.0, cutoff) > 0.11
    # 13 inputs twice: all 13 must be good.
    small = compliance_cutoff(0.9, 26, rule=rule).cutoff
    if small is not None:
        assert false_compliance(13, 2, 0.9, 1.0, small) == pytest.approx(0.9**13)


@pytest.mark.parametrize(
    ("inputs", "trials"), [(3, 102), (10, 100), (20, 100), (50, 200), (50, 100), (13, 26)]
)
def test_these_designs_are_refused(inputs: int, trials: int) -> None:
    """Before the first trial, without an estimator over inputs."""
    found = check_design(claim_over(None), inputs=inputs, trials=trials)

    assert found.refusals


# The estimator over inputs


@pytest.mark.parametrize("required", [0.8, 0.9, 0.95])
@pytest.mark.parametrize("each", [2, 5, 10])
def test_the_estimator_over_inputs_holds_at_every_correlation(required: float, each: int) -> None:
    """At most the level, at 12 inputs and 80 % and at 25 and 90 % too, unlike Wilson's."""
    for inputs in (12, 25, 40, 52, 80):
        cutoff = cutoff_over_inputs(inputs, each, required)
        for rho in CORRELATIONS:
            assert false_compliance(inputs, each, required, rho, cutoff) <= 0.05


@pytest.mark.parametrize(("each", "most"), [(4, 0.034), (2, 0.034)])
def test_the_documented_maxima_hold_on_a_fine_grid(each: int, most: float) -> None:
    """The worst correlation is 1: at most one of 50 inputs fails with probability 3.4 %."""
    cutoff = cutoff_over_inputs(50, each, 0.9)
    worst = max(false_compliance(50, each, 0.9, step / 100, cutoff) for step in range(101))
    assert most - 0.005 < worst <= most


@pytest.mark.parametrize(("inputs", "required"), [(12, 0.8), (25, 0.9), (29, 0.9), (52, 0.95)])
def test_where_inputs_always_or_never_succeed_it_is_the_exact_rule_on_inputs(
    inputs: int, required: float
) -> None:
    """ρ = 1: a count of good inputs is binomial, and the exact test of it decides."""
    cutoff = cutoff_over_inputs(inputs, 10, required)
    tails = [float(binom.sf(k - 1, inputs, required)) for k in range(inputs + 1)]
    fewest = next((k for k, tail in enumerate(tails) if tail <= 0.05), None)

    if fewest is None:
        assert cutoff is None
    else:
        assert cutoff is not None
        assert 10 * (fewest - 1) < cutoff <= 10 * fewest
        assert false_compliance(inputs, 10, required, 1.0, cutoff) == pytest.approx(tails[fewest])


@pytest.mark.slow
def test_a_few_bad_inputs_do_not_fool_it() -> None:
    """Rates of 1 and of 1 − s, the mean at 0.9: at most 5 % for every s and 10 to 120 inputs."""
    worst = 0.0
    for inputs in range(10, 121, 5):
        cutoff = cutoff_over_inputs(inputs, 20, 0.9)
        if cutoff is None:
            continue
        for bad in (0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0):
            share = 0.1 / bad
            one = (1 - share) * np.eye(21)[20] + share * binom.pmf(np.arange(21), 20, 1 - bad)
            law = reduce(np.convolve, [one] * inputs)
            worst = max(worst, float(law[cutoff:].sum()))

    assert 0.04 < worst <= 0.05


def test_ten_inputs_show_nothing_about_others_however_often_they_are_tried() -> None:
    """0.05^(1/10) = 0.74 is below 0.9 without a single failure."""
    assert cutoff_over_inputs(10, 10, 0.9) is None
    assert cutoff_over_inputs(10, 100, 0.9) is None


@pytest.mark.parametrize("estimator", ["korn-graubard", "gee", "beta-binomial"])
@pytest.mark.parametrize(("inputs", "most"), [(20, 0.16), (40, 0.10)])
def test_approximate_estimators_err_as_often_as_they_say_where_few_inputs_are_bad(
    estimator: str, inputs: int, most: float
) -> None:
    """One input in 19 never succeeds, the others in 95 %, so that the mean is 0.9; simulated."""
    rng, runs, claim = np.random.default_rng(7), 1500, claim_over(estimator)
    rates = np.where(rng.random((runs, inputs)) < 1 / 19, 0.0, 0.95)
    seen = Counter(tuple(sorted(row)) for row in rng.binomial(5, rates).tolist())
    passed = 0
    for row, times in seen.items():
        counts = {str(j): (k, 5) for j, k in enumerate(row)}
        found = matched_estimate(claim, counts, alpha=0.05, weights={}, strata={}).interval
        assert isinstance(found, Interval)
        passed += times if found.low >= 0.9 else 0

    # Above the level for certain, and not above what is stated by more than chance allows.
    assert binom.sf(passed - 1, runs, 0.05) < 0.001
    assert binom.sf(passed - 1, runs, most) > 0.001


# The estimator over strata, for fixed inputs


@pytest.mark.parametrize(
    ("weights", "trials", "required"),
    [((0.5, 0.5), (40, 40), 0.9), ((0.8, 0.2), (40, 40), 0.9), ((1, 1, 1), (12, 8, 8), 0.8)],
)
def test_the_stratified_bound_keeps_its_level(
    weights: Sequence[float], trials: Sequence[int], required: float
) -> None:
    """At most 5 % over all rates with the required mean."""
    outcomes = itertools.product(*(range(n + 1) for n in trials))
    passes = np.zeros([n + 1 for n in trials])
    for counts in outcomes:
        strata = [
            Stratum(name=str(j), weight=w, successes=k, trials=n)
            for j, (w, k, n) in enumerate(zip(weights, counts, trials, strict=True))
        ]
        # A weighted mean at or below the requirement has no bound above it: most are skipped.
        if sum(s.weight * int(s.successes) / int(s.trials) for s in strata) > required * sum(
            weights
        ):
            passes[counts] = stratum_weighted(strata, confidence=0.9).interval.low >= required
    total, worst = sum(weights), 0.0
    for rates in itertools.product(np.linspace(0, 1, 41), repeat=len(weights) - 1):
        known = sum(w * p for w, p in zip(weights, rates, strict=False))
        last = (required * total - known) / weights[-1]
        if 0 <= last <= 1:
            chance = passes
            for n, p in zip(trials, (*rates, last), strict=True):
                chance = np.tensordot(binom.pmf(np.arange(n + 1), n, p), chance, axes=(0, 0))
            worst = max(worst, float(chance))

    assert 0.01 < worst <= 0.05
