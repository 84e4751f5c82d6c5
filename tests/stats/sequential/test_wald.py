"""Wald's test: the reference procedure of the statistical-ci document, by the readings."""

from __future__ import annotations

import math

import pytest

from trialwise.stats.rate_intervals import wilson_interval
from trialwise.stats.sequential import SequentialDesign, default_alternative


def stop(design: SequentialDesign, outcomes: str) -> tuple[str | None, int]:
    """Feed P and F until the design decides."""
    for n in range(1, len(outcomes) + 1):
        verdict = design.decide(n, outcomes[:n].count("F"))
        if verdict is not None:
            return verdict, n
    return None, len(outcomes)


@pytest.mark.parametrize(
    ("threshold", "passes", "fails", "after_one"),
    [
        (0.5, 7, 16, 9),
        (0.7, 11, 10, 13),
        (0.8, 12, 7, 16),
        (0.85, 13, 6, 18),
        (0.9, 14, 4, 21),
        (0.95, 15, 3, 25),
        (0.99, 15, 2, 39),
        (1.0, 15, 1, None),
    ],
)
def test_the_shortest_decisions(
    threshold: float, passes: int, fails: int, after_one: int | None
) -> None:
    """Straight passes to PASS, straight failures to FAIL, PASS after one early failure (C-4)."""
    design = SequentialDesign.wald(threshold, cap=60)

    assert ("PASS", passes) == stop(design, "P" * 60)
    assert ("FAIL", fails) == stop(design, "F" * 60)
    if after_one is None:
        assert stop(design, "F" + "P" * 59) == ("FAIL", 1)
    else:
        assert ("PASS", after_one) == stop(design, "F" + "P" * 59)


@pytest.mark.parametrize(
    ("rate", "passes", "fails", "inconclusive", "trials"),
    [
        (0.96, 0.9925, 0.0001, 0.0074, 19.1),
        (0.95, 0.980, 0.000, 0.020, 20.8),
        (0.90, 0.747, 0.024, 0.229, 31.0),
        (0.85, 0.386, 0.181, 0.434, 37.4),
        (0.80, 0.149, 0.496, 0.356, 35.9),
        (0.60, 0.001, 0.998, 0.001, 15.0),
        (0.30, 0, 1, 0, 6.9),
        (0, 0, 1, 0, 4),
    ],
)
def test_fifty_trials_at_090(
    rate: float, passes: float, fails: float, inconclusive: float, trials: float
) -> None:
    """The operating characteristic cut at 50 trials is that of the readings (C-5)."""
    curve = SequentialDesign.wald(0.9, cap=50).operating_characteristic(rate)

    # One unit of the third digit: .1485 and .4955 are printed there as .149 and .496.
    assert pytest.approx(passes, abs=6e-4) == curve.passes
    assert pytest.approx(fails, abs=6e-4) == curve.fails
    assert pytest.approx(inconclusive, abs=6e-4) == curve.inconclusive
    assert pytest.approx(trials, abs=0.06) == curve.mean_trials


@pytest.mark.parametrize(
    ("rate", "passes", "fails", "inconclusive"),
    [(0.95, 0.859, 0.029, 0.113), (0.85, 0.169, 0.666, 0.165)],
)
def test_fifty_trials_at_095(rate: float, passes: float, fails: float, inconclusive: float) -> None:
    """With a budget of 50 the promise "at least 80 % rejected" is false: 66.6 % are (C-5)."""
    curve = SequentialDesign.wald(0.95, cap=50).operating_characteristic(rate)

    assert pytest.approx(passes, abs=6e-4) == curve.passes
    assert pytest.approx(fails, abs=6e-4) == curve.fails
    assert pytest.approx(inconclusive, abs=6e-4) == curve.inconclusive


@pytest.mark.parametrize(
    ("p0", "p1", "alpha", "beta", "trials"),
    [
        (0.90, 0.80, 0.0392, 0.1907, (39.1, 60.6, 48.5)),
        (0.95, 0.85, 0.0347, 0.1899, (28.8, 42.3, 32.4)),
        (0.99, 0.97, 0.0347, 0.2005, (152.9, 221.7, 168.7)),
        (0.80, 0.70, 0.0430, 0.1921, (54.9, 87.9, 73.4)),
    ],
)
def test_without_a_cap_the_true_errors_are_not_the_nominal_ones(
    p0: float, p1: float, alpha: float, beta: float, trials: tuple[float, float, float]
) -> None:
    """Usually wasteful, and at 0.99 against 0.97 not even conservative."""
    design = SequentialDesign.wald(p0, p1, cap=6000)
    curves = [design.operating_characteristic(p) for p in (p0, (p0 + p1) / 2, p1)]

    assert pytest.approx(alpha, abs=6e-5) == curves[0].fails
    assert pytest.approx(beta, abs=6e-5) == curves[2].passes
    assert pytest.approx(trials, abs=0.06) == tuple(curve.mean_trials for curve in curves)


def test_four_failures_meet_the_line_exactly() -> None:
    """−4 ln 2 is ln 0.0625: the tie rejects whatever the last bit of alpha."""
    for alpha in (0.05, 1 - 0.95, math.nextafter(0.05, 0)):
        assert stop(SequentialDesign.wald(0.9, alpha=alpha, cap=50), "FFFFF") == ("FAIL", 4)


@pytest.mark.parametrize(
    ("outcomes", "verdict", "trials"),
    [
        ("P" * 14, "PASS", 14),
        ("PFFPFFF", "FAIL", 7),
        ("P" * 5 + "F" + "P" * 9, None, 15),
        ("F" + "P" * 20, "PASS", 21),
    ],
)
def test_the_walks_of_the_document(outcomes: str, verdict: str | None, trials: int) -> None:
    """The document's two walks, and the two that its console output could not have had."""
    assert (verdict, trials) == stop(SequentialDesign.wald(0.9, cap=50), outcomes)


def test_the_sample_output_of_the_document_is_impossible() -> None:
    """11 straight passes do not settle 0.95; 15 do, and their Wilson interval is [80, 100] %."""
    design = SequentialDesign.wald(0.95, cap=50)

    assert stop(design, "P" * 11) == (None, 11)
    assert stop(design, "P" * 15) == ("PASS", 15)
    low, high = wilson_interval(15, 15)
    assert (round(100 * low), round(100 * high)) == (80, 100)


def test_a_60_percent_agent_is_rejected_in_15_trials_on_average() -> None:
    """ "8 to 15 trials" covers about half of the runs: a tenth is earlier, 39 % later."""
    curve = SequentialDesign.wald(0.9, cap=50).operating_characteristic(0.6)

    assert curve.median_trials == 14
    assert pytest.approx(0.51, abs=0.006) == sum(curve.distribution[8:16])
    assert pytest.approx(0.10, abs=0.006) == sum(curve.distribution[:8])


def test_fourteen_trials_are_the_minimum_and_the_median_not_the_mean() -> None:
    """ "Typically about 14 trials" at 0.96: the mean is 19.1, a saving of 62 %, not 72 %."""
    curve = SequentialDesign.wald(0.9, cap=50).operating_characteristic(0.96)

    assert curve.median_trials == 14
    assert pytest.approx(0.62, abs=0.003) == 1 - curve.mean_trials / 50


@pytest.mark.parametrize(
    ("p0", "p1"), [(0.9, 0.8), (0.95, 0.85), (0.11, 0.01), (0.05, 0.01), (1.0, 0.9), (0.3, 0.2)]
)
def test_the_default_alternative_is_decimal(p0: float, p1: float) -> None:
    """max(0.01, p0 − 0.10) without float noise."""
    assert p1 == default_alternative(p0)
    assert p1 == SequentialDesign.wald(p0, cap=20).p1


def test_looks_in_batches_decide_only_there() -> None:
    """Every ten trials, and at the cap."""
    design = SequentialDesign.wald(0.9, 0.8, cap=45, batch=10)
    every = SequentialDesign.wald(0.9, 0.8, cap=45)
    for n in range(46):
        look = n in (10, 20, 30, 40, 45)
        assert (every.accept[n] if look else -1) == design.accept[n]
        assert (every.reject[n] if look else n + 1) == design.reject[n]


def test_looks_every_ten_without_a_cap() -> None:
    """Known exact errors and trials of Wald's lines looked at every ten trials."""
    design = SequentialDesign.wald(0.9, 0.8, cap=4000, batch=10)

    assert pytest.approx(0.030, abs=6e-4) == design.operating_characteristic(0.9).fails
    assert pytest.approx(0.120, abs=6e-4) == design.operating_characteristic(0.8).passes
    trials = [design.operating_characteristic(p).mean_trials for p in (0.6, 0.8, 0.9, 0.99)]
    assert pytest.approx([19.3, 65.1, 54.2, 21.9], abs=0.06) == trials
