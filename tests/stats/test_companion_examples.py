"""The companion's worked examples and reference tables, section by section.

Figures are the printed ones, to the printed precision; where the companion's own figure is a slip
(a rounded z, an old table) the recomputed value stands and the test says so.
"""

from __future__ import annotations

import math

import pytest

from trialwise.stats.binomial import binomial_cdf, normal_sf, upper_z
from trialwise.stats.compliance_cutoffs import compliance_cutoff, minimum_trials
from trialwise.stats.rate_intervals import rule_of_three, wald, wilson_interval, wilson_lower
from trialwise.stats.regression_cutoffs import regression_cutoff
from trialwise.stats.result_types import Refusal
from trialwise.stats.toolbox.other_intervals import wilson_lower_rate


def diagnostic_z(rate: float, threshold: float, trials: int) -> float:
    """The Wald-form score the companion prints beside a verdict (§7.1)."""
    return (rate - threshold) / math.sqrt(threshold * (1 - threshold) / trials)


# §1.4.8 and §1.5.6: the consult-advice contract


@pytest.mark.parametrize(
    ("successes", "trials", "alpha", "bound"),
    [(953, 1000, 0.05, 0.9407165), (788, 800, 0.001, 0.9648907)],
)
def test_section_1_4_8_wilson_lower_bounds(
    successes: int, trials: int, alpha: float, bound: float
) -> None:
    """§1.4.8: the two inferential criteria's bounds, printed as 0.940 and 0.9649."""
    assert wilson_lower(successes, trials, confidence=1 - alpha) == pytest.approx(bound, abs=5e-8)


def test_section_1_4_8_well_formed_passes() -> None:
    """§1.4.8: 953 of 1000 against a baseline rate of 0.951, derived threshold 0.9385."""
    design = regression_cutoff(951, 1000, 1000, rule="wilson")

    assert design.threshold == pytest.approx(0.9385, abs=5e-5)
    assert design.cutoff is not None
    assert design.cutoff <= 953


def test_section_1_4_8_layperson_readable_fails() -> None:
    """§1.4.8: 788 of 800 does not show 0.98 at alpha 0.001."""
    design = compliance_cutoff(0.98, 800, alpha=0.001, rule="wilson")

    assert design.cutoff is not None
    assert design.cutoff > 788
    assert design.refusal is None


def test_section_1_5_6_threshold_at_the_tests_size() -> None:
    """§1.5.6: WilsonLB(0.953; 200, 0.05) = 0.9217666, printed as 0.922."""
    assert wilson_lower_rate(0.953, 200) == pytest.approx(0.9217666, abs=5e-8)
    assert regression_cutoff(953, 1000, 200, rule="wilson").threshold == pytest.approx(
        0.9217666, abs=5e-8
    )


# §2: baseline estimation


def test_section_2_3_1_wilson_interval() -> None:
    """§2.3.1: 951 of 1000 at 95 % is [0.936, 0.963]."""
    low, high = wilson_interval(951, 1000)

    assert (round(low, 3), round(high, 3)) == (0.936, 0.963)


def test_section_2_3_1_wilson_stays_inside_and_defined_at_the_boundary() -> None:
    """§2.3.1: never outside [0, 1], and of positive width where Wald has none."""
    for successes in range(11):
        interval = wilson_interval(successes, 10)
        assert 0 <= interval.low < interval.high <= 1


def test_section_2_3_2_wald_interval() -> None:
    """§2.3.2: 951 of 1000 at 95 % is [0.938, 0.964], for comparison only."""
    low, high = wald(951, 1000)

    assert (round(low, 3), round(high, 3)) == (0.938, 0.964)


# §3: thresholds


@pytest.mark.parametrize(("confidence", "z"), [(0.90, 1.282), (0.95, 1.645), (0.99, 2.326)])
def test_section_3_3_one_sided_critical_values(confidence: float, z: float) -> None:
    """§3.3: the table of one-sided critical values."""
    assert upper_z(1 - confidence) == pytest.approx(z, abs=5e-4)


def test_section_3_4_the_three_artefacts_of_a_threshold() -> None:
    """§3.4: bound 0.902124, cutoff 91, displayed 0.910000, achieved size 0.024986."""
    design = regression_cutoff(951, 1000, 100, rule="wilson")

    assert upper_z(0.05) == pytest.approx(1.6448536269514722, abs=1e-15)
    assert design.threshold == pytest.approx(0.902124, abs=5e-7)
    assert design.cutoff == 91
    assert design.displayed_rate == 0.91
    assert design.achieved_size == pytest.approx(0.024986, abs=5e-7)


@pytest.mark.parametrize(
    ("trials", "at_95", "at_99"),
    [(50, 0.874, 0.826), (100, 0.902, 0.874), (200, 0.919, 0.902), (500, 0.933, 0.923)],
)
def test_section_3_5_reference_table(trials: int, at_95: float, at_99: float) -> None:
    """§3.5: Wilson lower bounds for a baseline rate of 0.951."""
    assert round(wilson_lower_rate(0.951, trials), 3) == at_95
    assert round(wilson_lower_rate(0.951, trials, confidence=0.99), 3) == at_99


def test_section_3_6_compliance_is_conservative_at_the_requirement() -> None:
    """§3.6: a system exactly at 99.5 % rarely passes, and a rate equal to it never does."""
    design = compliance_cutoff(0.995, 1000, rule="wilson")

    assert design.cutoff is not None
    assert design.cutoff > 995
    assert design.achieved_size < 0.05


# §4: the perfect baseline


@pytest.mark.parametrize(
    ("trials", "bound"), [(100, 0.970), (300, 0.990), (1000, 0.997), (3000, 0.999)]
)
def test_section_4_2_rule_of_three(trials: int, bound: float) -> None:
    """§4.2: 1 − 3/n."""
    assert 1 - rule_of_three(trials) == pytest.approx(bound, abs=1e-12)


def test_section_4_3_2_worked_example() -> None:
    """§4.3.2: 1000 of 1000 gives p₀ = 0.9973, threshold 0.9686 and 97 of 100."""
    design = regression_cutoff(1000, 1000, 100, rule="wilson")

    assert design.reference_rate == pytest.approx(0.9973, abs=5e-5)
    assert design.threshold == pytest.approx(0.9686, abs=5e-5)
    assert design.cutoff == 97


@pytest.mark.parametrize(
    ("baseline", "p0", "at_50", "at_100"),
    [
        (100, 0.9737, 0.906, 0.932),
        (300, 0.9911, 0.933, 0.958),
        (1000, 0.9973, 0.944, 0.969),
        (3000, 0.9991, 0.947, 0.972),
    ],
)
def test_section_4_3_3_reference_table(
    baseline: int, p0: float, at_50: float, at_100: float
) -> None:
    """§4.3.3: effective baselines and thresholds of perfect records."""
    assert round(wilson_lower(baseline, baseline), 4) == p0
    for trials, threshold in ((50, at_50), (100, at_100)):
        design = regression_cutoff(baseline, baseline, trials, rule="wilson")
        assert round(design.reference_rate, 4) == p0
        assert design.threshold == pytest.approx(threshold, abs=5e-4)


@pytest.mark.parametrize(("trials", "threshold", "cutoff"), [(100, 0.971, 98), (50, 0.946, 48)])
def test_section_4_4_highly_reliable_api(trials: int, threshold: float, cutoff: int) -> None:
    """§4.4: 2000 transactions without a failure."""
    design = regression_cutoff(2000, 2000, trials, rule="wilson")

    assert design.threshold == pytest.approx(threshold, abs=5e-4)
    assert design.cutoff == cutoff


# §5.7.1: the feasibility gate


@pytest.mark.parametrize(
    ("target", "minimum"),
    [
        (0.50, 3),
        (0.80, 11),
        (0.90, 25),
        (0.95, 52),
        (0.99, 268),
        (0.999, 2703),  # printed 2,704, from a rounded z
        (0.9999, 27053),  # printed 27,058, from a rounded z
    ],
)
def test_section_5_7_1_minimum_trials(target: float, minimum: int) -> None:
    """§5.7.1: N_min at 95 %, with the exact z; one trial fewer is refused."""
    assert minimum_trials(target, rule="wilson") == minimum
    assert compliance_cutoff(target, minimum, rule="wilson").cutoff == minimum
    assert (
        compliance_cutoff(target, minimum - 1, rule="wilson").refusal
        is Refusal.COMPLIANCE_INFEASIBLE
    )


# §7.1: the transparent report


def test_section_7_1_regression_report() -> None:
    """§7.1: 87 of 100 fails cutoff 91; bound 0.804806 (printed 0.790), z −1.081 (printed −1.10)."""
    design = regression_cutoff(951, 1000, 100, rule="wilson")

    assert design.cutoff == 91
    assert design.threshold is not None
    assert design.achieved_size == pytest.approx(0.024986, abs=5e-7)
    assert wilson_lower(87, 100) == pytest.approx(0.804806, abs=5e-7)
    assert diagnostic_z(0.87, design.threshold, 100) == pytest.approx(-1.081, abs=5e-4)


# §10.3: the multi-criteria report


def test_section_10_3_criterion_1() -> None:
    """§10.3: 953 of 1000 against 1902 of 2000: cutoff 939, size 0.0371, tail 0.636."""
    design = regression_cutoff(1902, 2000, 1000, rule="wilson")
    low, high = wilson_interval(953, 1000)

    assert design.threshold == pytest.approx(0.9385, abs=5e-5)
    assert design.cutoff == 939
    assert design.achieved_size == pytest.approx(0.0371, abs=5e-5)
    assert binomial_cdf(953, 1000, 0.951) == pytest.approx(0.636, abs=5e-4)
    assert (round(low, 3), round(high, 3)) == (0.938, 0.964)  # printed 0.965: it is 0.96447
    assert wilson_lower(953, 1000) == pytest.approx(0.9407, abs=5e-5)
    # Printed 2.13; with the threshold as printed, 0.9385, it is 1.909.
    assert diagnostic_z(0.953, 0.9385, 1000) == pytest.approx(1.909, abs=5e-4)


def test_section_10_3_criterion_1_power() -> None:
    """§10.3: printed as 0.80 at a drop to 0.925, where it is 0.951; 0.80 is reached at 0.9317."""
    design = regression_cutoff(1902, 2000, 1000, rule="wilson")

    assert design.power(0.925) == pytest.approx(0.951, abs=5e-4)
    assert design.power(0.9317) == pytest.approx(0.80, abs=2e-3)
    assert design.power_at_margin(0.026) == pytest.approx(0.951, abs=5e-4)


def test_section_10_3_criterion_3() -> None:
    """§10.3: 788 of 800 against 0.98 at alpha 0.001: bound 0.9649, z 1.01, p-value 0.156, FAIL."""
    design = compliance_cutoff(0.98, 800, alpha=0.001, rule="wilson")
    z = diagnostic_z(788 / 800, 0.98, 800)

    assert wilson_lower(788, 800, confidence=0.999) == pytest.approx(0.9649, abs=5e-5)
    assert z == pytest.approx(1.01, abs=5e-3)
    assert normal_sf(z) == pytest.approx(0.156, abs=5e-4)
    assert design.cutoff is not None
    assert design.cutoff > 788


def test_section_10_3_trials_that_would_show_the_objective() -> None:
    """§10.3: at an observed 0.985 about 7,490 trials clear 0.98 at alpha 0.001."""
    needed = next(
        n for n in range(7000, 8000) if wilson_lower_rate(0.985, n, confidence=0.999) >= 0.98
    )

    assert needed == pytest.approx(7490, abs=10)
