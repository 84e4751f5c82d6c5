"""Plans with fixed trials: sizes, cutoffs and powers against scipy, statsmodels and enumeration."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats as sp
from statsmodels.stats.proportion import proportion_confint

from trialwise.errors import InvalidArgument
from trialwise.procedures.sizing.comparison_sizing import unpaired_size
from trialwise.procedures.sizing.fixed_sizing import (
    CompliancePlan,
    ComplianceQuestion,
    PrecisionPlan,
    PrecisionQuestion,
    plan_compliance,
    plan_precision,
)
from trialwise.procedures.sizing.regression_sizing import (
    LatencyQuestion,
    RegressionPlan,
    RegressionQuestion,
    plan_latency,
    plan_regression,
)
from trialwise.procedures.sizing.sizing_base import SizingPlan
from trialwise.stats.regression_cutoffs import boschloo_region
from trialwise.stats.result_types import Refusal, Undefined
from trialwise.stats.unconditional import boschloo

# --- Compliance -------------------------------------------------------------------------------


@cache
def compliance() -> CompliancePlan:
    return plan_compliance(ComplianceQuestion(rate=0.95, better=0.97))


def exact_compliance(n: int) -> tuple[int, float, float]:
    """Cutoff, size and power of the exact rule at 0.95 against 0.97, by scipy."""
    counts = np.arange(n + 1)
    cutoff = int(counts[sp.binom.sf(counts - 1, n, 0.95) <= 0.05][0])
    return cutoff, sp.binom.sf(cutoff - 1, n, 0.95), sp.binom.sf(cutoff - 1, n, 0.97)


@pytest.mark.slow
def test_the_exact_compliance_size_holds_and_is_the_smallest_that_does() -> None:
    """One trial fewer falls short, and the next 400 sizes do not."""
    size = compliance().size_of("exact")

    assert size.required is not None
    n = size.required.design.trials
    assert exact_compliance(n - 1)[2] < 0.8
    assert all(exact_compliance(m)[2] >= 0.8 for m in range(n, n + 400))
    cutoff, alpha, power = exact_compliance(n)
    assert cutoff == size.required.design.cutoff
    assert [alpha, power] == pytest.approx(
        [size.required.design.achieved_size, size.required.power], abs=1e-10
    )


def test_the_first_crossing_is_the_first() -> None:
    """The fewest trials that reach the power at all."""
    first = compliance().size_of("exact").first_crossing

    assert first is not None
    assert exact_compliance(first)[2] >= 0.8
    assert all(exact_compliance(n)[2] < 0.8 for n in range(59, first))


def test_the_minimums_are_those_of_a_perfect_run() -> None:
    """0.95^n ≤ 0.05 from 59 trials on; n/(n + z²) ≥ 0.95 from 52 on."""
    exact, wilson = (compliance().size_of(rule) for rule in ("exact", "wilson"))

    assert exact.minimum_trials == math.ceil(math.log(0.05) / math.log(0.95))
    z = sp.norm.ppf(0.95)
    assert wilson.minimum_trials == math.ceil(0.95 * z * z / 0.05)


def test_the_wilson_size_is_that_of_the_score_test() -> None:
    """Its cutoff is the smallest count whose one-sided Wilson bound reaches the requirement."""
    required = compliance().size_of("wilson").required

    assert required is not None
    n, cutoff = required.design.trials, required.design.cutoff
    assert cutoff is not None
    lows = [proportion_confint(k, n, alpha=0.10, method="wilson")[0] for k in (cutoff - 1, cutoff)]
    assert lows[0] < 0.95 <= lows[1]
    assert required.power == pytest.approx(sp.binom.sf(cutoff - 1, n, 0.97), abs=1e-10)


def test_the_normal_size_is_the_textbook_formula() -> None:
    """((z_α √(p0 q0) + z_β √(p1 q1))/δ)² rounded up, and what the exact rule does with it."""
    plan = compliance()

    root = sp.norm.ppf(0.95) * math.sqrt(0.95 * 0.05) + sp.norm.ppf(0.8) * math.sqrt(0.97 * 0.03)
    n = math.ceil((root / 0.02) ** 2)
    assert n == plan.normal.required_trials
    assert exact_compliance(n)[2] == pytest.approx(plan.normal_exact.power, abs=1e-10)


def test_the_compliance_curve_is_the_power_of_its_designs() -> None:
    """61 rates around both, each P(PASS) a binomial tail."""
    plan = compliance()

    assert len(plan.curve) == 61
    for point in plan.curve:
        tails = [sp.binom.sf(d.cutoff - 1, d.trials, point.rate) for d in plan.drawn if d.cutoff]
        assert tails == pytest.approx(list(point.passes), abs=1e-9)


@pytest.mark.slow
def test_trials_that_could_never_pass_are_refused() -> None:
    """40 perfect trials do not show 95 % under any rule; 55 do under one."""
    forty = plan_compliance(ComplianceQuestion(rate=0.95, better=0.97, trials=40))
    more = plan_compliance(ComplianceQuestion(rate=0.95, better=0.97, trials=55))

    assert forty.refusal is Refusal.COMPLIANCE_INFEASIBLE
    assert more.refusal is None
    assert [None, 55] == [at.design.cutoff for at in more.given]


# --- Regression -------------------------------------------------------------------------------


@cache
def regression() -> RegressionPlan:
    return plan_regression(RegressionQuestion(baseline=(951, 1000), drop=0.03))


def boschloo_cutoff(k: int, nb: int, n: int) -> int:
    """The fewest successes whose Boschloo p-value exceeds 5 %, by the module that computes it."""
    near = fisher_cutoff(k, nb, n)
    return next(x for x in range(near, n + 1) if boschloo(k, nb, x, n).p_value > 0.05)


def fisher_cutoff(k: int, nb: int, n: int) -> int:
    """The fewest successes whose one-sided Fisher p-value exceeds 5 %, by scipy."""
    counts = np.arange(n + 1)
    # Given k + x successes in all, the test's share is hypergeometric.
    p_values = sp.hypergeom.cdf(counts, nb + n, k + counts, n)
    return int(counts[p_values > 0.05][0])


@pytest.mark.slow
def test_the_regression_size_holds_and_is_the_smallest_that_does() -> None:
    """One trial fewer falls short; from there to the baseline's size none does."""
    question = RegressionQuestion(baseline=(180, 200), drop=0.1)
    size = plan_regression(question).exact

    def power(n: int) -> float:
        return float(sp.binom.cdf(boschloo_cutoff(180, 200, n) - 1, n, 0.8))

    assert size.trials is not None
    assert power(size.trials - 1) < 0.8
    assert all(power(n) >= 0.8 for n in range(size.trials, 201, 7))
    assert power(size.trials) == pytest.approx(size.power, abs=1e-9)


@pytest.mark.slow
def test_the_size_of_a_large_comparison_holds_with_the_power_of_the_exact_rule() -> None:
    """Fisher's test needs as many; Boschloo's finds no less with any size from there on."""
    size = regression().exact

    def power(cutoff: int, n: int) -> float:
        return float(sp.binom.cdf(cutoff - 1, n, 0.921))

    assert size.trials is not None
    assert power(fisher_cutoff(951, 1000, size.trials - 1), size.trials - 1) < 0.8
    assert all(power(fisher_cutoff(951, 1000, n), n) >= 0.8 for n in range(size.trials, 1001, 7))
    exact = power(boschloo_cutoff(951, 1000, size.trials), size.trials)
    assert exact == pytest.approx(size.power, abs=1e-9)


@pytest.mark.slow
def test_cutoffs_and_powers_of_both_rules() -> None:
    """Boschloo's cutoff by p-values, the Wilson bound by statsmodels, the power a binomial tail."""
    for row in regression().rows:
        n = row.trials
        assert row.exact.cutoff == boschloo_cutoff(951, 1000, n)
        low = proportion_confint(0.951 * n, n, alpha=0.10, method="wilson")[0]
        assert row.wilson.cutoff == math.ceil(n * low)
        powers = [
            sp.binom.cdf(cutoff - 1, n, 0.921)
            for cutoff in (row.wilson.cutoff, row.exact.cutoff)
            if cutoff is not None
        ]
        assert powers == pytest.approx([row.wilson_power, row.exact_power], abs=1e-9)


@pytest.mark.slow
def test_the_true_false_alarm_counts_every_baseline() -> None:
    """Σ over baseline counts of P(baseline) · P(test below its cutoff), both at 0.951."""
    row = next(row for row in regression().rows if row.trials == 200)

    counts = np.arange(900, 1001)
    weights = sp.binom.pmf(counts, 1000, 0.951)
    lows = proportion_confint(200 * counts / 1000, 200, alpha=0.10, method="wilson")[0]
    # A baseline without failures enters as its own bound.
    own = proportion_confint(1000, 1000, alpha=0.10, method="wilson")[0]
    lows[-1] = proportion_confint(200 * own, 200, alpha=0.10, method="wilson")[0]
    wilson = float(weights @ sp.binom.cdf(np.ceil(200 * lows) - 1, 200, 0.951))
    cutoffs = boschloo_region(1000, 200, 0.05).cutoffs  # tested cell by cell elsewhere
    exact = float(weights @ [sp.binom.cdf(cutoffs[int(k)] - 1, 200, 0.951) for k in counts])
    assert [wilson, exact] == pytest.approx(
        [row.wilson.design_false_alarm, row.exact.design_false_alarm], abs=1e-9
    )


@pytest.mark.slow
def test_the_smallest_drop_a_baseline_can_show() -> None:
    """At 1000 test trials the power is 80 % exactly there."""
    drop = regression().detectable_drop

    assert isinstance(drop, float)
    power = sp.binom.cdf(boschloo_cutoff(951, 1000, 1000) - 1, 1000, 0.951 - drop)
    assert power == pytest.approx(0.8, abs=1e-9)


def test_a_baseline_too_small_is_refused_with_a_way_out() -> None:
    """A drop of 2 points needs larger runs, and 1000 trials fall short by their own power."""
    plan = plan_regression(RegressionQuestion(baseline=(951, 1000), drop=0.02))

    assert plan.refusal is Refusal.BASELINE_TOO_SMALL
    assert sp.binom.cdf(fisher_cutoff(951, 1000, 1000) - 1, 1000, 0.931) < 0.8
    assert plan.equal_sizes is not None
    assert plan.equal_sizes.trials_each is not None
    assert plan.equal_sizes.trials_each > 1000


@pytest.mark.slow
def test_other_refusals() -> None:
    """No success to degrade from; a test larger than its baseline is none."""
    nothing = plan_regression(RegressionQuestion(baseline=(0, 50)))
    larger = plan_regression(RegressionQuestion(baseline=(480, 500), drop=0.1, trials=600))

    assert nothing.refusal is Refusal.ZERO_BASELINE
    assert isinstance(nothing.detectable_drop, Undefined)
    assert larger.refusal is None


# --- Latency ----------------------------------------------------------------------------------


def test_latency_minimums() -> None:
    """The companion's emission minimums, and the smallest n with pⁿ ≤ 5 %."""
    plan = plan_latency(LatencyQuestion(percentiles=(0.5, 0.9, 0.95, 0.99), success_rate=0.8))

    assert [5, 10, 20, 100] == [row.emission_minimum for row in plan.rows]
    existence = [math.ceil(math.log(0.05) / math.log(p)) for p in (0.5, 0.9, 0.95, 0.99)]
    assert existence == [row.existence_minimum for row in plan.rows]
    planned = [math.ceil(n * 10 / 8) for n in existence]
    assert planned == [row.planned_for_existence for row in plan.rows]


def test_ranks_against_a_baseline() -> None:
    """935 latencies judge 192 by number 911 (beta-binomial), bound the percentile by 900."""
    row = plan_latency(LatencyQuestion(baseline=935, trials=192)).rows[0]

    assert row.baseline is not None
    assert row.baseline.rank == int(sp.binom.ppf(0.95, 935, 0.95)) + 1
    assert row.baseline.coverage == pytest.approx(sp.binom.cdf(899, 935, 0.95), abs=1e-12)
    test_rank = math.ceil(0.95 * 192)
    breach = [sp.betabinom.cdf(test_rank - 1, 192, k, 936 - k) for k in (900, 910, 911)]
    assert row.baseline.false_alarm == pytest.approx(breach[0], abs=1e-9)
    assert row.precedence is not None
    assert breach[1] > 0.05 >= breach[2]
    assert row.precedence.rank == 911
    assert row.precedence.breach_probability == pytest.approx(breach[2], abs=1e-9)


def test_exceedances_over_the_baselines_percentile() -> None:
    """The fewest test latencies above number 889 that chance explains in at most 5 % of runs."""
    row = plan_latency(LatencyQuestion(baseline=935, trials=192)).rows[0]

    assert row.exceedance is not None
    sizes = [sp.betabinom.cdf(192 - m, 192, 889, 47) for m in range(193)]
    fewest = next(m for m in range(193) if sizes[m] <= 0.05)
    assert (889, fewest) == (row.exceedance.baseline_rank, row.exceedance.cutoff)
    assert row.exceedance.size == pytest.approx(sizes[fewest], abs=1e-9)


def test_an_explicit_limit_counts_latencies_within() -> None:
    """80 of 100 planned trials succeed; none of 80 counts can show p99, and p95 takes all."""
    question = LatencyQuestion(
        percentiles=(0.95, 0.99), trials=100, success_rate=0.8, limited=True, limit_s=0.5
    )
    p95, p99 = plan_latency(question).rows

    assert question.expected_trials == 80
    assert p95.limit is not None
    counts = np.arange(81)
    assert p95.limit.cutoff == int(counts[sp.binom.sf(counts - 1, 80, 0.95) <= 0.05][0])
    assert p99.limit is not None
    assert p99.limit.cutoff is None


def test_a_baseline_too_small_for_the_test_names_the_size_it_takes() -> None:
    """The smallest baseline whose largest latency judges the test, by the beta-binomial."""
    row = plan_latency(
        LatencyQuestion(percentiles=(0.99,), baseline=400, trials=200, success_rate=0.8)
    ).rows[0]

    assert row.precedence is not None
    assert row.precedence.rank is None
    assert row.precedence_plan is not None
    needed = row.precedence_plan.minimum_baseline_trials
    assert isinstance(needed, int)
    below = math.ceil(0.99 * 160) - 1
    assert sp.betabinom.cdf(below, 160, needed, 1) <= 0.05
    assert sp.betabinom.cdf(below, 160, needed - 1, 1) > 0.05


def test_the_latency_curve_is_the_chance_of_a_bound() -> None:
    """1 − pⁿ, up to twice the minimum."""
    plan = plan_latency(LatencyQuestion())

    assert (0, 118) == (plan.curve[0].trials, plan.curve[-1].trials)
    assert [1 - 0.95**point.trials for point in plan.curve] == pytest.approx(
        [point.bounded[0] for point in plan.curve]
    )


# --- Precision --------------------------------------------------------------------------------


@cache
def precision() -> PrecisionPlan:
    return plan_precision(PrecisionQuestion(rate=0.95, margin=0.02, trials=100))


def enumerated(n: int, method: str) -> tuple[float, float]:
    """Mean half-width and coverage at 0.95 over every count, by statsmodels' intervals."""
    counts = np.arange(n + 1)
    weights = sp.binom.pmf(counts, n, 0.95)
    low, high = proportion_confint(counts, n, alpha=0.05, method=method)
    inside = (low <= 0.95) & (high >= 0.95)
    return float(weights @ (high - low)) / 2, float(weights @ inside)


@pytest.mark.parametrize(
    ("name", "method"), [("wilson", "wilson"), ("clopper_pearson", "beta"), ("normal", "normal")]
)
def test_half_width_and_coverage_by_enumeration(name: str, method: str) -> None:
    """The mean over every count, and the share of runs whose interval holds the rate."""
    row = getattr(precision(), name)

    assert enumerated(row.trials, method) == pytest.approx((row.half_width, row.coverage), abs=1e-9)


@pytest.mark.parametrize(("name", "method"), [("wilson", "wilson"), ("clopper_pearson", "beta")])
def test_one_trial_fewer_is_too_wide(name: str, method: str) -> None:
    """The size is the smallest whose mean half-width is within the margin."""
    n = getattr(precision(), name).trials

    assert enumerated(n, method)[0] <= 0.02 < enumerated(n - 1, method)[0]


def test_the_textbook_size() -> None:
    """z² p(1−p)/e² rounded up."""
    z = sp.norm.ppf(0.975)
    assert precision().normal.trials == math.ceil(z * z * 0.95 * 0.05 / 0.02**2)


def test_trials_asked_about_are_judged_by_every_interval() -> None:
    """100 trials: the textbook interval holds the rate far less often than it says."""
    rows = {row.method: row for row in precision().given}

    # p ± z √(p(1−p)/n), which may reach beyond 1.
    shares = np.arange(101) / 100
    half = sp.norm.ppf(0.975) * np.sqrt(shares * (1 - shares) / 100)
    weights = sp.binom.pmf(np.arange(101), 100, 0.95)
    assert rows["wald"].half_width == pytest.approx(float(weights @ half), abs=1e-9)
    held = float(weights @ (abs(shares - 0.95) <= half))
    assert rows["wald"].coverage == pytest.approx(held, abs=1e-9)
    assert rows["wald"].coverage < 0.9 < rows["clopper-pearson"].coverage


# --- Two arms on separate inputs --------------------------------------------------------------


def test_the_textbook_size_of_separate_inputs() -> None:
    """The pooled normal approximation."""
    za, zb = sp.norm.ppf(0.95), sp.norm.ppf(0.8)
    pooled = za * math.sqrt(2 * 0.875 * 0.125) + zb * math.sqrt(0.9 * 0.1 + 0.85 * 0.15)

    assert unpaired_size(0.9, 0.85).normal_trials_each == math.ceil((pooled / 0.05) ** 2)


def fisher_power(n: int) -> float:
    """P(Fisher's one-sided test finds 0.7 below 0.9), over every pair of counts."""
    counts = np.arange(n + 1)
    better, worse = sp.binom.pmf(counts, n, 0.9), sp.binom.pmf(counts, n, 0.7)
    p_values = sp.hypergeom.cdf(counts[None, :], 2 * n, counts[:, None] + counts[None, :], n)
    return float(better @ (p_values <= 0.05) @ worse)


def test_the_unpaired_size_by_every_pair_of_counts() -> None:
    """Fisher's test at 0.9 against 0.7: the size holds, one fewer falls short."""
    size = unpaired_size(0.9, 0.7)

    assert size.trials_each is not None
    assert fisher_power(size.trials_each) == pytest.approx(size.power, abs=1e-9)
    assert fisher_power(size.trials_each - 1) < 0.8
    assert all(fisher_power(size.trials_each + i) >= 0.8 for i in range(1, 12))


def test_a_drop_too_small_for_any_size_has_no_size() -> None:
    """Beyond 50,000 trials there is no number, rather than a wrong one."""
    assert unpaired_size(0.5, 0.499).trials_each is None


# --- All of them ------------------------------------------------------------------------------

PLANS: list[tuple[str, Callable[[], SizingPlan]]] = [
    ("compliance", compliance),
    ("regression", regression),
    ("latency", lambda: plan_latency(LatencyQuestion(baseline=10, trials=5))),
    ("precision", precision),
]


@pytest.mark.parametrize(("form", "make"), PLANS, ids=[name for name, _ in PLANS])
def test_every_plan_is_json(form: str, make: Callable[[], SizingPlan]) -> None:
    """Versioned, named by its form, and equal after a round trip."""
    data = make().to_dict()

    assert data == json.loads(json.dumps(data, allow_nan=False))
    assert ("trialwise.plan/1", form) == (data["schema"], data["form"])


REFUSED: list[tuple[str, Callable[..., object], dict[str, Any]]] = [
    ("required_rate", ComplianceQuestion, {"rate": 1.0, "better": 0.97}),
    ("better", ComplianceQuestion, {"rate": 0.95, "better": 0.95}),
    ("trials", ComplianceQuestion, {"rate": 0.9, "better": 0.95, "trials": 0}),
    ("margin", PrecisionQuestion, {"rate": 0.9, "margin": 0.5}),
    ("margin", PrecisionQuestion, {"rate": 0.9, "margin": 1e-6}),
    ("rate", PrecisionQuestion, {"rate": 1.0, "margin": 0.1}),
    ("drop", RegressionQuestion, {"baseline": (5, 50), "drop": 0.2}),
    ("baseline_successes", RegressionQuestion, {"baseline": (5, 4)}),
    ("baseline_trials", RegressionQuestion, {"baseline": (5, 10**6)}),
    ("percentiles", LatencyQuestion, {"percentiles": (0.97,)}),
    ("success_rate", LatencyQuestion, {"success_rate": 0.0}),
    ("limit_s", LatencyQuestion, {"limit_s": -1.0}),
]


@pytest.mark.parametrize(("argument", "question", "values"), REFUSED)
def test_a_question_cannot_be_asked_wrongly(
    argument: str, question: Callable[..., object], values: dict[str, Any]
) -> None:
    """Each part names itself."""
    with pytest.raises(InvalidArgument) as refused:
        question(**values)
    assert refused.value.argument == argument
