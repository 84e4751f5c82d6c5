"""Reference cases of our own, computed here by brute force, put through the whole machinery.

Nothing in this file calls the package for an expected value: cutoffs are searched for in
rationals and integers, probabilities summed by scipy. The published cases are checked elsewhere;
these need nothing but this repository, and each is also spoilt in turn to see that it is noticed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import mpmath
import pytest
from scipy.stats import beta, binom, norm

from trialwise.contrib.conformance.case_runner import FolderResult, run_conformance
from trialwise.contrib.conformance.conformance_report import render_conformance

Json = dict[str, Any]


# The rules, from their definitions


def z_of(confidence: str) -> Any:
    return mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(confidence) - 1)


def score_interval(p: Any, n: int, z: Any) -> tuple[Any, Any]:
    root = mpmath.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    centre, scale = p + z * z / (2 * n), 1 + z * z / n
    return (centre - z * root) / scale, (centre + z * root) / scale


def wilson_low(k: int, n: int, confidence: str) -> float:
    return float(score_interval(mpmath.mpf(k) / n, n, z_of(confidence))[0]) if k else 0.0


def wilson_design(k: int, nb: int, n: int, confidence: str) -> Json:
    """Threshold, cutoff and size of the companion's regression rule."""
    z = z_of(confidence)
    if k == 0:
        return {"threshold": 0.0, "cutoff": 0, "size": 0.0}
    p = score_interval(mpmath.mpf(1), nb, z)[0] if k == nb else mpmath.mpf(k) / nb
    threshold = score_interval(p, n, z)[0]
    cutoff = int(mpmath.ceil(n * threshold))
    return {
        "threshold": float(threshold),
        "cutoff": cutoff,
        "size": float(binom.cdf(cutoff - 1, n, float(p))),
    }


def upper_tail(k: int, n: int, rate: str) -> Fraction:
    p = Fraction(rate)
    return sum(
        (math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k, n + 1)), start=Fraction(0)
    )


def k_min(n: int, rate: str, alpha: str) -> int | None:
    return next((k for k in range(n + 1) if upper_tail(k, n, rate) <= Fraction(alpha)), None)


def fisher(k: int, nb: int, x: int, n: int) -> Fraction:
    total = k + x
    ways = sum(
        math.comb(total, j) * math.comb(nb + n - total, n - j)
        for j in range(max(0, total - nb), x + 1)
    )
    return Fraction(ways, math.comb(nb + n, n))


def fisher_cutoff(k: int, nb: int, n: int, alpha: str) -> int:
    return next(x for x in range(n + 1) if fisher(k, nb, x, n) > Fraction(alpha))


def fisher_power(nb: int, n: int, p0: float, p1: float, alpha: str) -> float:
    return math.fsum(
        float(binom.pmf(k, nb, p0)) * float(binom.cdf(fisher_cutoff(k, nb, n, alpha) - 1, n, p1))
        for k in range(nb + 1)
    )


def breach(k: int, nb: int, r: int, n: int) -> Fraction:
    ways = sum(math.comb(k + j - 1, j) * math.comb(nb - k + n - j, n - j) for j in range(r))
    return Fraction(ways, math.comb(nb + n, n))


def precedence_rank(nb: int, n: int, percentile: str, alpha: str) -> int | None:
    r = math.ceil(Fraction(percentile) * n)
    return next((k for k in range(1, nb + 1) if breach(k, nb, r, n) <= Fraction(alpha)), None)


# The cases


def wilson_cases() -> Iterator[tuple[str, Json]]:
    """The older rule set: (suite, case)."""
    for k, n, confidence in ((0, 7, "0.95"), (3, 11, "0.9"), (40, 40, "0.99")):
        p = mpmath.mpf(k) / n
        low, high = score_interval(p, n, z_of(str((1 + float(confidence)) / 2)))
        inputs = {"successes": k, "trials": n, "confidence": float(confidence)}
        ends = {"lower": max(0.0, float(low)), "upper": min(1.0, float(high)), "point": k / n}
        yield "wilson_ci", {"inputs": inputs, "expected": ends}
        bound = {"lower_bound": wilson_low(k, n, confidence)}
        yield "wilson_lower", {"inputs": inputs, "expected": bound}
    for rate, n in (("0.7", 6), ("0.7", 7), ("0.99", 300)):
        needed = next(m for m in range(1, 999) if wilson_low(m, m, "0.95") >= float(rate))
        yield (
            "feasibility",
            {
                "inputs": {"target_proportion": float(rate), "sample_size": n, "confidence": 0.95},
                "expected": {
                    "feasible": n >= needed,
                    "minimum_samples": needed,
                    "criterion": "wilson_score_one_sided_lower_bound",
                },
            },
        )
    for k, nb, n, confidence in ((45, 50, 30, "0.9"), (20, 20, 15, "0.95"), (0, 9, 9, "0.99")):
        design = wilson_design(k, nb, n, confidence)
        inputs = {
            "baseline_successes": k,
            "baseline_trials": nb,
            "test_samples": n,
            "confidence": float(confidence),
        }
        yield (
            "threshold_derivation",
            {
                "approach": "sample_size_first",
                "inputs": inputs,
                "expected": {
                    "threshold": design["threshold"],
                    "wilson_lower_real": design["threshold"],
                    "cutoff_integer": design["cutoff"],
                    "achieved_size": design["size"],
                },
            },
        )
        for observed in {design["cutoff"], max(0, design["cutoff"] - 1)}:
            passed = observed >= design["cutoff"]
            yield (
                "regression_decision",
                {
                    "procedure": "REGRESSION",
                    "inputs": inputs | {"observed_successes": observed},
                    "expected": {
                        "threshold_real": design["threshold"],
                        "cutoff_integer": design["cutoff"],
                        "displayed_rate": round(design["cutoff"] / n, 6),
                        "achieved_size": design["size"],
                        "verdict": "PASS" if passed else "FAIL",
                    },
                },
            )
    for k in (44, 45, 46):
        bound_value = wilson_low(k, 50, "0.95")
        yield (
            "regression_decision",
            {
                "procedure": "COMPLIANCE",
                "inputs": {
                    "threshold": 0.8,
                    "test_samples": 50,
                    "confidence": 0.95,
                    "observed_successes": k,
                },
                "expected": {
                    "wilson_lower": bound_value,
                    "verdict": "PASS" if bound_value >= 0.8 else "FAIL",
                },
            },
        )
    yield (
        "threshold_derivation",
        {
            "approach": "threshold_first",
            "inputs": {
                "baseline_successes": 45,
                "baseline_trials": 50,
                "test_samples": 30,
                "threshold": 0.85,
            },
            "expected": {
                "implied_confidence": float(norm.cdf(0.05 / math.sqrt(0.85 * 0.15 / 30))),
                "is_sound": False,
            },
        },
    )
    yield from wilson_planning_cases()
    yield from shared_cases()


def wilson_planning_cases() -> Iterator[tuple[str, Json]]:
    p0, delta, z, beta_z = 0.6, 0.2, norm.ppf(0.95), norm.ppf(0.8)
    p1 = p0 - delta
    root = (z * math.sqrt(p0 * (1 - p0)) + beta_z * math.sqrt(p1 * (1 - p1))) / delta
    n = math.ceil(root**2)
    gap = delta - z * math.sqrt(p0 * (1 - p0) / n)
    yield (
        "power_analysis",
        {
            "inputs": {
                "baseline_rate": p0,
                "min_detectable_effect": delta,
                "confidence": 0.95,
                "power": 0.8,
            },
            "expected": {
                "required_samples": n,
                "achieved_power": float(norm.cdf(gap / math.sqrt(p1 * (1 - p1) / n))),
            },
        },
    )

    def floor_power(size: int) -> tuple[float, float]:
        floor = float(score_interval(mpmath.mpf("0.8"), size, z_of("0.95"))[0])
        return floor, float(norm.cdf((floor - 0.6) / math.sqrt(0.24 / size)))

    size = next(m for m in range(1, 999) if floor_power(m)[1] >= 0.8)
    sizing = {"baseline_rate": 0.8, "minimum_acceptable_rate": 0.6, "confidence": 0.95}
    yield (
        "risk_driven_sizing",
        {
            "approach": "required_n",
            "inputs": sizing | {"target_power": 0.8},
            "expected": {
                "sizing_gate": "ADMIT",
                "required_n": size,
                "floor": floor_power(size)[0],
                "achieved_power": floor_power(size)[1],
            },
        },
    )
    yield (
        "risk_driven_sizing",
        {
            "approach": "power_at",
            "inputs": sizing | {"test_samples": 12},
            "expected": {
                "sizing_gate": "ADMIT",
                "floor": floor_power(12)[0],
                "power": floor_power(12)[1],
            },
        },
    )
    yield (
        "risk_driven_sizing",
        {
            "approach": "power_at",
            "inputs": sizing | {"minimum_acceptable_rate": 0.8, "test_samples": 12},
            "expected": {
                "sizing_gate": "REFUSE",
                "refusal_category": "EMPTY_TOLERANCE_INTERVAL",
                "floor": None,
                "power": None,
            },
        },
    )
    for k, trials, threshold in ((29, 100, 0.29), (28, 100, 0.29)):
        statistic = (k / trials - threshold) / math.sqrt(threshold * (1 - threshold) / trials)
        yield (
            "verdict",
            {
                "inputs": {
                    "successes": k,
                    "trials": trials,
                    "threshold": threshold,
                    "confidence": 0.9,
                },
                "expected": {
                    "passed": Fraction(k, trials) >= Fraction(repr(threshold)),
                    "observed_rate": k / trials,
                    "test_statistic": statistic,
                    "p_value": float(norm.cdf(statistic)),
                    "false_positive_probability": 0.1,
                },
            },
        )
    latencies = [float((i * 37) % 101) for i in range(80)]
    ordered = sorted(latencies)
    rank = int(binom.ppf(0.95, 80, 0.9)) + 1
    yield (
        "latency_threshold",
        {
            "inputs": {"baseline_latencies": latencies, "p": 0.9, "confidence": 0.95},
            "expected": {
                "rank": rank,
                "threshold": ordered[rank - 1],
                "baseline_percentile": ordered[71],
                "n": 80,
            },
        },
    )
    yield (
        "latency_threshold_bootstrap",
        {
            "inputs": {"baseline_latencies": latencies, "p": 0.99, "confidence": 0.95},
            "expected": {
                "rank": 80,
                "threshold": ordered[-1],
                "baseline_percentile": ordered[-1],
                "n": 80,
                "k_raw": int(binom.ppf(0.95, 80, 0.99)) + 1,
                "saturated": True,
            },
        },
    )
    for percentile, confidence in (("0.9", "0.95"), ("0.5", "0.99")):
        level = 1 - Fraction(confidence)
        yield (
            "latency_percentile_minimums",
            {
                "approach": "bound_existence",
                "inputs": {"percentile": float(percentile), "confidence": float(confidence)},
                "expected": {
                    "minimum_baseline_samples": next(
                        m for m in range(1, 999) if Fraction(percentile) ** m <= level
                    )
                },
            },
        )


def shared_cases() -> Iterator[tuple[str, Json]]:
    """Suites that both generations have."""
    yield (
        "latency_percentile",
        {"inputs": {"latencies": 250, "percentile": 0.5}, "expected": {"value": 250}},
    )
    yield (
        "latency_percentile",
        {
            "inputs": {"latencies": list(range(100, 0, -1)), "percentile": 0.07},
            "expected": {"value": 7},
        },
    )
    yield (
        "latency_percentile",
        {"inputs": {"latencies": [1, 2, 6]}, "expected": {"mean": 3, "max": 6}},
    )
    for percentile, minimum in ((0.5, 5), (0.99, 100)):
        yield (
            "latency_percentile_minimums",
            {
                "approach": "emission_non_degeneracy",
                "inputs": {"percentile": percentile},
                "expected": {"minimum_contributing_samples": minimum},
            },
        )
    for verdicts, composite in (
        (("PASS", "INCONCLUSIVE", "PASS"), "INCONCLUSIVE"),
        (("PASS", "INCONCLUSIVE", "FAIL"), "FAIL"),
    ):
        kinds = ("COMPLIANCE", "REGRESSION", None)
        criteria = [
            {
                "criterion_id": f"c{i}",
                "mode": "inferential" if kind else "observational",
                "procedure": kind,
                "alpha": 0.02 if kind else None,
                "verdict": verdict,
            }
            for i, (kind, verdict) in enumerate(zip(kinds, verdicts, strict=True))
        ]
        yield (
            "composite_verdict",
            {
                "inputs": {"criteria": criteria},
                "expected": {
                    "composite_verdict": composite,
                    "triggering_criteria": [f"c{verdicts.index(composite)}"],
                    "false_compliance_envelope": 0.02,
                    "false_degradation_signal_envelope": 0.02,
                },
            },
        )
    yield (
        "criterion_verdict_observational",
        {
            "inputs": {
                "n_attempted": 40,
                "n_evaluable": 30,
                "K_c": 30,
                "denominator_policy": "MARGINAL_COUNT_UNEVALUABLE_AS_FAIL",
            },
            "expected": {
                "n_c": 40,
                "r_obs": 0.75,
                "verdict": "FAIL",
                "statement": "10 failure(s) of the criterion were observed across 40 trials "
                "(policy: MARGINAL_COUNT_UNEVALUABLE_AS_FAIL).",
            },
        },
    )


def exact_cases() -> Iterator[tuple[str, Json]]:
    """The newer rule set: (suite, case)."""
    for rate, n, alpha in (("0.5", 5, "0.03125"), ("0.9", 28, "0.05"), ("0.9", 29, "0.05")):
        needed = next(m for m in range(1, 99) if Fraction(rate) ** m <= Fraction(alpha))
        yield (
            "feasibility",
            {
                "inputs": {
                    "target_proportion": float(rate),
                    "sample_size": n,
                    "alpha": float(alpha),
                },
                "expected": {
                    "feasible": n >= needed,
                    "minimum_samples": needed,
                    "criterion": "exact_binomial_pass_possible",
                },
            },
        )
    for rate, n, alpha, observed in (
        ("0.6", 10, "0.0463574016", 9),
        ("0.6", 10, "0.0463574016", 8),
        ("0.7", 30, "0.01", 28),
    ):
        least = k_min(n, rate, alpha)
        assert least is not None
        yield (
            "compliance_decision",
            {
                "inputs": {
                    "threshold": float(rate),
                    "test_samples": n,
                    "alpha": float(alpha),
                    "intent": "VERIFICATION",
                    "observed_successes": observed,
                },
                "expected": {
                    "k_min": least,
                    "pass_possible": True,
                    "verdict": "PASS" if observed >= least else "FAIL",
                    "configuration_error": [],
                    "false_compliance": float(upper_tail(least, n, rate)),
                    "clopper_pearson_lower": float(
                        beta.ppf(float(alpha), observed, n - observed + 1)
                    ),
                },
            },
        )
    yield from exact_infeasible_cases()
    for k, nb, n, alpha in ((12, 12, 4, "0.05"), (27, 30, 25, "0.05"), (9, 40, 40, "0.2")):
        yield from exact_regression_cases(k, nb, n, alpha)
    yield from exact_planning_cases()
    yield from exact_latency_cases()
    yield from exact_verdict_cases()
    yield from shared_cases()


def exact_infeasible_cases() -> Iterator[tuple[str, Json]]:
    inputs = {"threshold": 0.9, "test_samples": 28, "alpha": 0.05, "observed_successes": 28}
    yield (
        "compliance_decision",
        {
            "inputs": inputs | {"intent": "VERIFICATION"},
            "expected": {
                "k_min": None,
                "pass_possible": None,
                "verdict": None,
                "configuration_error": ["COMPLIANCE_INFEASIBLE"],
                "false_compliance": None,
                "clopper_pearson_lower": None,
            },
        },
    )
    yield (
        "compliance_decision",
        {
            "inputs": inputs | {"intent": "SMOKE"},
            "expected": {
                "k_min": None,
                "pass_possible": False,
                "verdict": "FAIL",
                "configuration_error": [],
                "false_compliance": 0,
                "clopper_pearson_lower": 0.05 ** (1 / 28),
            },
        },
    )


def exact_regression_cases(k: int, nb: int, n: int, alpha: str) -> Iterator[tuple[str, Json]]:
    cutoff = fisher_cutoff(k, nb, n, alpha)
    inputs = {
        "baseline_successes": k,
        "baseline_trials": nb,
        "test_samples": n,
        "alpha": float(alpha),
    }
    size = None if k == nb else fisher_power(nb, n, k / nb, k / nb, alpha)
    derived = {
        "cutoff_integer": cutoff,
        "configuration_error": [],
        "threshold_real": cutoff / n,
        "displayed_rate": round(cutoff / n, 6),
        "size_at_assumed_common_rate": size,
    }
    yield (
        "threshold_derivation",
        {"approach": "sample_size_first", "inputs": inputs, "expected": derived},
    )
    for observed in (cutoff, cutoff - 1):
        yield (
            "regression_decision",
            {
                "inputs": inputs | {"observed_successes": observed},
                "expected": derived | {"verdict": "PASS" if observed >= cutoff else "FAIL"},
            },
        )
    implied = float(fisher(k, nb, cutoff - 1, n))
    yield (
        "threshold_derivation",
        {
            "approach": "threshold_first",
            "inputs": {
                "baseline_successes": k,
                "baseline_trials": nb,
                "test_samples": n,
                "declared_cutoff": cutoff,
            },
            "expected": {"implied_alpha": implied, "is_sound": implied <= 0.2},
        },
    )


def exact_planning_cases() -> Iterator[tuple[str, Json]]:
    nb, n, p0, p1 = 30, 20, 0.9, 0.6
    design = fisher_power(nb, n, p0, p1, "0.05")
    yield (
        "power_analysis",
        {
            "approach": "regression_power",
            "inputs": {
                "baseline_trials": nb,
                "test_samples": n,
                "alpha": 0.05,
                "baseline_rate": p0,
                "min_detectable_effect": 0.3,
            },
            "expected": {"design_power": design},
        },
    )
    yield (
        "risk_driven_sizing",
        {
            "approach": "power_at",
            "inputs": {
                "baseline_rate": p0,
                "baseline_trials": nb,
                "design_alternative_rate": p1,
                "alpha": 0.05,
                "test_samples": n,
            },
            "expected": {"sizing_gate": "ADMIT", "power": design},
        },
    )
    cutoff = fisher_cutoff(27, nb, n, "0.05")
    resolved = float(binom.cdf(cutoff - 1, n, p1))
    yield (
        "power_analysis",
        {
            "approach": "regression_resolved_power",
            "inputs": {
                "baseline_successes": 27,
                "baseline_trials": nb,
                "test_samples": n,
                "alpha": 0.05,
                "design_alternative_rate": p1,
            },
            "expected": {"cutoff_integer": cutoff, "resolved_test_power": resolved},
        },
    )
    powers = [
        float(binom.cdf(fisher_cutoff(27, nb, m, "0.05") - 1, m, 0.4)) for m in range(1, nb + 1)
    ]
    short = max(m for m, power in enumerate(powers, start=1) if power < 0.8)
    yield (
        "risk_driven_sizing",
        {
            "approach": "resolved_required_n",
            "inputs": {
                "baseline_successes": 27,
                "baseline_trials": nb,
                "design_alternative_rate": 0.4,
                "alpha": 0.05,
                "target_power": 0.8,
            },
            "expected": {
                "sizing_gate": "ADMIT",
                "required_n": short + 1,
                "resolved_power": powers[short],
                "first_crossing": next(
                    m for m, power in enumerate(powers, start=1) if power >= 0.8
                ),
            },
        },
    )
    yield (
        "risk_driven_sizing",
        {
            "approach": "required_n",
            "inputs": {
                "baseline_rate": 0.9,
                "baseline_trials": 10,
                "design_alternative_rate": 0.89,
                "alpha": 0.05,
                "target_power": 0.8,
            },
            "expected": {
                "sizing_gate": "REFUSE",
                "refusal_category": "BASELINE_TOO_SMALL",
                "required_n": None,
                "achieved_power": None,
            },
        },
    )


def exact_latency_cases() -> Iterator[tuple[str, Json]]:
    for nb, n, percentile in ((190, 10, "0.95"), (189, 10, "0.95"), (40, 15, "0.5")):
        rank = precedence_rank(nb, n, percentile, "0.05")
        yield (
            "latency_percentile_minimums",
            {
                "approach": "precedence_existence",
                "inputs": {
                    "baseline_trials": nb,
                    "test_samples": n,
                    "percentile": float(percentile),
                    "alpha": 0.05,
                },
                "expected": {"saturated": rank is None, "rank": rank},
            },
        )
    baseline = [float((i * 17) % 61) for i in range(60)]
    rank = precedence_rank(60, 30, "0.5", "0.05")
    assert rank is not None
    inputs = {
        "baseline_samples": 70,
        "planned_samples": 35,
        "baseline_latencies": baseline,
        "test_samples": 30,
        "p": 0.5,
        "alpha": 0.05,
    }
    yield (
        "latency_threshold",
        {
            "inputs": inputs,
            "expected": {
                "configuration_error": [],
                "rank": rank,
                "threshold": sorted(baseline)[rank - 1],
                "saturated": False,
                "breach_probability": float(breach(rank, 60, 15, 30)),
                "test_rank": 15,
                "n": 60,
                "baseline_percentile": sorted(baseline)[29],
            },
        },
    )
    yield (
        "latency_threshold",
        {
            "inputs": inputs | {"planned_samples": 71, "test_samples": None},
            "expected": {
                "configuration_error": ["TEST_LARGER_THAN_BASELINE"],
                "rank": None,
                "threshold": None,
                "saturated": None,
            },
        },
    )
    least = k_min(40, "0.9", "0.05")
    assert least is not None
    for within in (least, least - 1):
        yield (
            "latency_compliance_decision",
            {
                "inputs": {
                    "percentile": 0.9,
                    "threshold_ms": 100,
                    "alpha": 0.05,
                    "intent": "VERIFICATION",
                    "planned_samples": 40,
                    "latencies": [100] * within + [101] * (40 - within),
                },
                "expected": {
                    "test_samples": 40,
                    "within_threshold": within,
                    "y_min": least,
                    "pass_possible": True,
                    "verdict": "PASS" if within >= least else "FAIL",
                    "configuration_error": [],
                    "false_compliance": float(upper_tail(least, 40, "0.9")),
                    "raw_percentile_pass": within >= 36,
                },
            },
        )


def exact_verdict_cases() -> Iterator[tuple[str, Json]]:
    """Two criteria on one stream, and a whole test with an advisory dimension."""
    least, cutoff = k_min(60, "0.8", "0.05"), fisher_cutoff(70, 80, 60, "0.1")
    assert least is not None
    for observed in (least, least - 1, cutoff - 1):
        met = {"c": observed >= least, "r": observed >= cutoff}
        rows = [
            ("c", "COMPLIANCE", "compliance/exact-binomial", 0.05),
            ("r", "REGRESSION", "regression/fisher", 0.1),
        ]
        yield (
            "verdict",
            {
                "approach": "two_criteria",
                "inputs": {
                    "successes": observed,
                    "trials": 60,
                    "compliance_criterion": "c",
                    "threshold": 0.8,
                    "intent": "VERIFICATION",
                    "compliance_alpha": 0.05,
                    "regression_criterion": "r",
                    "baseline_successes": 70,
                    "baseline_trials": 80,
                    "regression_alpha": 0.1,
                },
                "expected": {
                    "verdict": "PASS" if all(met.values()) else "FAIL",
                    "configuration_error": [],
                    "observed_rate": observed / 60,
                    "criteria": [
                        {
                            "criterion_id": name,
                            "procedure": procedure,
                            "decisionRule": rule,
                            "alpha": alpha,
                            "verdict": "PASS" if met[name] else "FAIL",
                        }
                        for name, procedure, rule, alpha in rows
                    ],
                    "triggering_criteria": [name for name in met if not met[name]],
                    "false_compliance_envelope": 0.05,
                    "false_degradation_signal_envelope": 0.1,
                },
            },
        )
    constraint = {"constraint_id": "p90", "source": "explicit", "percentile": 0.9, "alpha": 0.05}
    yield (
        "verdict",
        {
            "approach": "test_verdict",
            "inputs": {
                "functional": {
                    "criterion_id": "c",
                    "successes": least,
                    "trials": 60,
                    "threshold": 0.8,
                    "alpha": 0.05,
                },
                "latency_constraints": [constraint | {"threshold_ms": 10, "latencies": [11] * 40}],
                "advisory": ["latency"],
            },
            "expected": {
                "criteria": [{"criterion_id": "c", "verdict": "PASS"}],
                "rate_verdict": "PASS",
                "latency_verdict": "FAIL",
                "functional_mode": "enforced",
                "latency_mode": "advisory",
                "test_verdict": "PASS",
                "triggering": [],
            },
        },
    )


# Running them

RULES = ("wilson", "fisher")


@cache
def generation(rule: str) -> tuple[Json, list[tuple[str, Json]]]:
    """The manifest and the cases of a rule set."""
    if rule == "wilson":
        return {"fixtureVersion": "ours"}, list(wilson_cases())
    return {"fixtureVersion": "ours", "methodologyVersion": "1.6.0"}, list(exact_cases())


def run(folder: Path, manifest: Json, cases: list[tuple[str, Json]]) -> FolderResult:
    """Write the cases as published ones are, one file per suite, and run the folder."""
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    for suite in {name for name, _ in cases}:
        mine = [case for name, case in cases if name == suite]
        numbered = [{"name": f"{suite} {i}"} | case for i, case in enumerate(mine)]
        body = {"suite": suite, "tolerance": 1e-9, "cases": numbered}
        (folder / f"{suite}.json").write_text(json.dumps(body), encoding="utf-8")
    (result,) = run_conformance(folder)
    return result


@pytest.mark.parametrize("rule", RULES)
def test_every_case_of_our_own_matches(tmp_path: Path, rule: str) -> None:
    """Two dozen and more per rule set, across every kind of suite it has."""
    manifest, cases = generation(rule)
    result = run(tmp_path, manifest, cases)

    assert len(cases) >= 24
    assert not result.mismatches, render_conformance([result])
    assert result.unknown == []
    assert {suite.rule for suite in result.suites} == {rule}
    assert result.conformance_status["formulaValueFixtures"] == "passed"


def spoilt(value: Any) -> Any:
    """Another value of the same kind, off by a thousandth where it is a number."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 0.001
        case str():
            return value + "?"
        case None:
            return 0
        case list():
            return [*value, "more"]
        case _:
            raise AssertionError(value)


@pytest.mark.parametrize("rule", RULES)
def test_every_expected_value_is_really_compared(tmp_path: Path, rule: str) -> None:
    """Each field of each case is spoilt on its own: each must be noticed, by its own name."""
    manifest, cases = generation(rule)
    wrong = [
        (suite, case | {"expected": case["expected"] | {field: spoilt(value)}})
        for suite, case in cases
        for field, value in case["expected"].items()
    ]
    result = run(tmp_path, manifest, wrong)
    fields = [field for _, case in cases for field in case["expected"]]

    assert sum(suite.matched for suite in result.suites) == 0
    noticed = [
        d.field.split("[")[0].split(".")[0] for _, c in result.mismatches for d in c.differences
    ]
    assert sorted(noticed) == sorted(fields)
    assert not result.passed


def test_the_two_rule_sets_do_not_answer_for_each_other(tmp_path: Path) -> None:
    """The newer cutoffs put to the older rules are mismatches, and the other way round."""
    _, exact = generation("fisher")
    decisions = [entry for entry in exact if entry[0] == "regression_decision"]
    result = run(tmp_path, {"methodologyVersion": "1.4.1"}, decisions)

    assert result.suites[0].rule == "wilson"
    assert result.mismatches
