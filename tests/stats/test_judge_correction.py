"""Corrected judged rates: golden vectors, and coverage by enumerating every outcome.

No simulation: for each prevalence, sensitivity, specificity and number of labels the chance of
every table of labels and every judged count is summed, and the corrected interval must hold the
truth at least as often as it says. The judged interval, left alone, must not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm

from trialwise.errors import InvalidArgument
from trialwise.stats.agreement import Confusion
from trialwise.stats.judge_correction import (
    METHODS,
    CorrectedRate,
    CorrectionMethod,
    judge_accuracy,
    labels_needed,
    rectified_rate,
    rectifier,
    rogan_gladen_rate,
)
from trialwise.stats.judged_decision import (
    CORRECTIONS,
    JudgedDecision,
    JudgedSequence,
    decide_judged,
)
from trialwise.stats.judged_tests import Correction
from trialwise.stats.rate_intervals import clopper_pearson, wilson_interval
from trialwise.stats.result_types import Decision, Interval, Undefined

Array = npt.NDArray[np.float64]


def labelled(fp: int, fn: int, m: int, good: int | None = None) -> Confusion:
    """`m` labels with this many false passes and false fails; half of them good where not said."""
    passes = m // 2 if good is None else good
    return Confusion(true_pass=passes - fn, false_pass=fp, true_fail=m - passes - fp, false_fail=fn)


# --- The golden vectors ---------------------------------------------------------


def test_the_rectifier_is_that_of_the_golden_vectors() -> None:
    """fp 10, fn 5, m 100 at alpha 0.05."""
    found = rectifier(labelled(10, 5, 100), confidence=0.95, rule="wilson")

    assert (-0.05, -0.168258, 0.073042, 0.120650) == (
        found.value,
        *(round(end, 6) for end in found.interval),
        round(found.floor, 6),
    )


@pytest.mark.parametrize(
    ("fp", "fn", "m", "alpha", "floor"),
    [
        (5, 5, 100, 0.05, 0.1046),
        (25, 25, 500, 0.05, 0.0444),
        (5, 5, 100, 0.1 / 3, 0.1126),
        (25, 25, 500, 0.1 / 3, 0.0475),
        (0, 0, 20, 0.4 / 3, 0.1440),
    ],
)
def test_the_floor_is_that_of_the_readings(
    fp: int, fn: int, m: int, alpha: float, floor: float
) -> None:
    """How sure the labels alone let anybody be."""
    found = rectifier(labelled(fp, fn, m), confidence=1 - alpha, rule="wilson")

    assert floor == round(found.floor, 4)


def test_labels_needed_are_those_of_the_readings() -> None:
    """402 with errors, 46 without any; both by hand from z = 2.2414."""
    z = float(norm.ppf(1 - 0.0125))

    assert 402 == labels_needed(labelled(5, 5, 100), 0.05) == math.ceil(4 * z**2 * 0.05 / 0.05**2)
    assert 46 == labels_needed(labelled(0, 0, 100), 0.10) == math.ceil(z**2 * 0.9 / 0.1)


@pytest.mark.parametrize(("confidence", "trials"), [(0.80, 20), (0.95, 36)])
def test_passes_alone_clear_one_half_when_the_readings_say(confidence: float, trials: int) -> None:
    """Twenty clean labels, every trial passed."""
    state = JudgedSequence.start(labelled(0, 0, 20), confidence=confidence, rule="wilson")
    seen = 0
    while not isinstance(state.interval, Undefined) and state.interval.low <= 0.5:
        state, seen = state.update(True), seen + 1

    assert trials == seen


def test_the_first_observation_is_that_of_the_golden_vectors() -> None:
    """Before any label is added: the increment ψ(1/2)/4 and the ends, not cut at 0 and 1."""
    state = JudgedSequence.start(labelled(0, 0, 20), confidence=0.85).update(True).sampling

    assert 0.95 == pytest.approx(state.confidence)
    assert (0.0482868, 0.0625) == (round(state.variation, 7), state.squares)
    assert (-6.474332, 8.474332) == (round(state.low, 6), round(state.high, 6))


# --- Coverage, by enumeration -----------------------------------------------------

PREVALENCES = (0.05, 0.3, 0.5, 0.7, 0.9, 0.97)
ACCURACIES = (0.6, 0.8, 0.95, 0.99, 1.0)
GRID = list(product(PREVALENCES, ACCURACIES, ACCURACIES))
#: A corrected end and the truth may differ by rounding alone.
ROUNDING = 1e-12


@cache
def rectified_ends(m: int, n: int, method: CorrectionMethod) -> dict[tuple[int, int], Array]:
    """The interval for every pair of false passes and false fails and every judged count."""
    return {
        (fp, fn): np.array(
            [
                tuple(rectified_rate(k, n, labelled(fp, fn, m, fn), method=method).interval)
                for k in range(n + 1)
            ]
        )
        for fp in range(m + 1)
        for fn in range(m + 1 - fp)
    }


def rectified_coverage(m: int, n: int, method: CorrectionMethod) -> list[float]:
    """The chance of holding the truth at each point of the grid."""
    ends = rectified_ends(m, n, method)
    found = []
    for truth, sensitivity, specificity in GRID:
        wrong_pass, wrong_fail = (1 - truth) * (1 - specificity), truth * (1 - sensitivity)
        judged = binom.pmf(np.arange(n + 1), n, truth * sensitivity + wrong_pass)
        total = 0.0
        for fp in range(m + 1):
            first = binom.pmf(fp, m, wrong_pass)
            rest = binom.pmf(np.arange(m - fp + 1), m - fp, wrong_fail / (1 - wrong_pass))
            for fn in np.flatnonzero(first * rest > 1e-12):
                low, high = ends[fp, int(fn)].T
                holds = (low <= truth + ROUNDING) & (truth - ROUNDING <= high)
                total += float(first * rest[fn] * judged[holds].sum())
        found.append(total)
    return found


@cache
def rogan_gladen_ends(n: int, good: int, bad: int, method: CorrectionMethod) -> tuple[Array, Array]:
    """Both ends for every count of right passes, right fails and judged passes."""
    shape = (good + 1, bad + 1, n + 1)
    low, high = np.zeros(shape), np.ones(shape)
    for right_pass, right_fail, k in product(*map(range, shape)):
        gold = Confusion(
            true_pass=right_pass,
            false_fail=good - right_pass,
            true_fail=right_fail,
            false_pass=bad - right_fail,
        )
        corrected = rogan_gladen_rate(k, n, gold, method=method)
        if not isinstance(corrected, Undefined):  # nothing known is [0, 1]
            place = right_pass, right_fail, k
            low[place], high[place] = corrected.interval
    return low, high


def rogan_gladen_coverage(n: int, good: int, bad: int, method: CorrectionMethod) -> list[float]:
    low, high = rogan_gladen_ends(n, good, bad, method)
    found = []
    for truth, sensitivity, specificity in GRID:
        judged = truth * sensitivity + (1 - truth) * (1 - specificity)
        chance = (
            binom.pmf(np.arange(good + 1), good, sensitivity)[:, None, None]
            * binom.pmf(np.arange(bad + 1), bad, specificity)[None, :, None]
            * binom.pmf(np.arange(n + 1), n, judged)
        )
        holds = (low <= truth + ROUNDING) & (truth - ROUNDING <= high)
        found.append(float(chance[holds].sum()))
    return found


@pytest.mark.slow("20-20")
@pytest.mark.parametrize(
    ("labels", "trials"), [(20, 20), pytest.param(30, 20, marks=pytest.mark.slow)]
)
def test_the_rectified_rate_of_boxes_covers_the_truth_everywhere(labels: int, trials: int) -> None:
    """At least 95 % at every point of the grid, with few labels and with more."""
    assert min(rectified_coverage(labels, trials, "boxes")) >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize(("labels", "trials"), [(20, 20), (30, 20)])
def test_the_other_rectified_rates_come_near(labels: int, trials: int) -> None:
    """Wilson cells are as safe on the grid; the score interval is nearly so, and far narrower."""
    exact, score = (rectified_ends(labels, trials, one) for one in ("boxes", "score"))
    widths = [
        float(np.mean([np.diff(one).mean() for one in ends.values()])) for ends in (exact, score)
    ]

    assert min(rectified_coverage(labels, trials, "cells")) >= 0.95
    coverage = rectified_coverage(labels, trials, "score")
    assert min(coverage) >= 0.945
    assert np.mean(coverage) >= 0.96
    assert widths[1] < 0.7 * widths[0]


@pytest.mark.slow
@pytest.mark.parametrize(("trials", "good", "bad"), [(40, 8, 8), (30, 20, 10)])
def test_the_rogan_gladen_rate_of_boxes_covers_the_truth_everywhere(
    trials: int, good: int, bad: int
) -> None:
    """At least 95 % at every point of the grid, also where nearly all labels are of one class."""
    assert min(rogan_gladen_coverage(trials, good, bad, "boxes")) >= 0.95
    assert min(rogan_gladen_coverage(trials, good, bad, "cells")) >= 0.95


@pytest.mark.parametrize(("trials", "good", "bad"), [(40, 8, 8), (30, 20, 10)])
def test_the_score_interval_by_class_comes_near(trials: int, good: int, bad: int) -> None:
    """Not guaranteed, and hardly ever below."""
    coverage = rogan_gladen_coverage(trials, good, bad, "score")

    assert min(coverage) >= 0.93
    assert np.mean(coverage) >= 0.96


@pytest.mark.parametrize(("good", "bad"), [(19, 1), (45, 5), (7, 30)])
def test_the_score_interval_by_class_is_refused_with_few_labels_of_one_class(
    good: int, bad: int
) -> None:
    """With 19 and 1 it missed nearly always, with 45 and 5 in 11 % of runs."""
    gold = Confusion(true_pass=good, false_fail=0, true_fail=bad, false_pass=0)
    assert isinstance(rogan_gladen_rate(20, 30, gold, method="score"), Undefined)
    assert not isinstance(rogan_gladen_rate(20, 30, gold), Undefined)


@pytest.mark.slow
def test_more_labels_and_trials_change_nothing() -> None:
    """The published figures of the docstrings, and the guarantee at sizes that people use."""
    assert min(rectified_coverage(50, 100, "boxes")) >= 0.95
    score = rectified_coverage(50, 100, "score")
    assert (0.947, 0.968) == (round(min(score), 3), round(float(np.mean(score)), 3))
    assert min(rogan_gladen_coverage(100, 25, 25, "boxes")) >= 0.95
    even, uneven = (rogan_gladen_coverage(100, *sizes, "score") for sizes in ((25, 25), (40, 10)))
    assert (0.957, 0.976) == (round(min(even), 3), round(float(np.mean(even)), 3))
    assert (0.933, 0.976) == (round(min(uneven), 3), round(float(np.mean(uneven)), 3))


@pytest.mark.slow("1000-clopper_pearson")
@pytest.mark.parametrize("interval", [wilson_interval, clopper_pearson])
@pytest.mark.parametrize("trials", [30, 100, 1000])
def test_the_judged_rate_alone_does_not_cover(
    interval: Callable[..., Interval], trials: int
) -> None:
    """The more trials, the surer of the wrong rate: at the worst point nothing is left."""
    ends = np.array([tuple(interval(k, trials)) for k in range(trials + 1)])
    found = []
    for truth, sensitivity, specificity in GRID:
        rate = truth * sensitivity + (1 - truth) * (1 - specificity)
        holds = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
        found.append(float(binom.pmf(np.arange(trials + 1), trials, rate)[holds].sum()))

    missed = [
        (point, chance) for point, chance in zip(GRID, found, strict=True) if chance < 0.95 - 0.03
    ]
    assert min(found) < {30: 0.05, 100: 1e-4, 1000: 1e-12}[trials]
    assert len(missed) > len(GRID) / 2


# --- What the constructions are ---------------------------------------------------


@given(
    st.integers(0, 30),
    st.integers(1, 20),
    st.integers(1, 20),
    st.data(),
    st.sampled_from(("boxes", "cells")),
)
def test_the_box_is_the_worst_of_its_corners(
    k: int, good: int, bad: int, data: st.DataObject, method: CorrectionMethod
) -> None:
    """No corner of the three cells gives a rate beyond the ends."""
    gold = Confusion(
        true_pass=(right := data.draw(st.integers(0, good))),
        false_fail=good - right,
        true_fail=(wrong := data.draw(st.integers(0, bad))),
        false_pass=bad - wrong,
    )
    corrected = rogan_gladen_rate(k, 30, gold, method=method)
    make = clopper_pearson if method == "boxes" else wilson_interval
    cells = [
        make(*counts, confidence=1 - 0.05 / 3)
        for counts in ((k, 30), (gold.true_pass, good), (gold.true_fail, bad))
    ]
    if isinstance(corrected, Undefined):
        assert gold.true_pass / good + gold.true_fail / bad <= 1 + 1e-12
        return
    rates = [
        min(max((q + t - 1) / (s + t - 1), 0.0), 1.0)
        for q, s, t in product(*cells)
        if s + t - 1 > 1e-9
    ]
    if cells[1].low + cells[2].low <= 1:
        assert (0.0, 1.0) == tuple(corrected.interval)
    else:
        assert corrected.interval.low == pytest.approx(min(rates), abs=1e-9)
        assert corrected.interval.high == pytest.approx(max(rates), abs=1e-9)
    assert corrected.interval.low - 1e-9 <= corrected.rate <= corrected.interval.high + 1e-9


def test_with_endless_labels_only_the_trials_are_uncertain() -> None:
    """Square-and-add tends to Wilson's interval, Lang and Reiczigel's to Agresti and Coull's."""
    endless = Confusion(true_pass=10**9, false_pass=0, true_fail=10**9, false_fail=0)
    k, n, z = 80, 100, float(norm.ppf(0.975))
    size, centre = n + z * z, (k + z * z / 2) / (n + z * z)
    half = z * math.sqrt(centre * (1 - centre) / size)

    square = rectified_rate(k, n, endless, method="score").interval
    other = rogan_gladen_rate(k, n, endless, method="score")

    assert isinstance(other, CorrectedRate)
    assert tuple(square) == pytest.approx(tuple(wilson_interval(k, n)), abs=1e-6)
    assert tuple(other.interval) == pytest.approx((centre - half, centre + half), abs=1e-6)


@pytest.mark.parametrize(
    ("k", "n", "good", "bad"), [(76, 100, (45, 50), (40, 50)), (9, 30, (18, 20), (9, 10))]
)
def test_the_score_interval_is_a_little_wider_than_the_published_one(
    k: int, n: int, good: tuple[int, int], bad: tuple[int, int]
) -> None:
    """Lang & Reiczigel's by their formula, of counts raised by one and sizes by two throughout."""

    def interval(more: int) -> tuple[float, float]:
        z2 = float(norm.ppf(0.975)) ** 2
        q, size = (k + z2 / 2) / (n + z2), n + z2
        (s, of_s), (t, of_t) = (((right + 1) / (m + 2), m + more) for right, m in (good, bad))
        r = (q + t - 1) / (s + t - 1)
        parts = r * s * (1 - s) / of_s, (1 - r) * t * (1 - t) / of_t
        middle = r + 2 * z2 * (parts[0] - parts[1])
        variance = q * (1 - q) / size + r * parts[0] + (1 - r) * parts[1]
        half = math.sqrt(z2 * variance) / (s + t - 1)
        return max(0.0, middle - half), min(1.0, middle + half)

    gold = Confusion(
        true_pass=good[0],
        false_fail=good[1] - good[0],
        true_fail=bad[0],
        false_pass=bad[1] - bad[0],
    )
    found = rogan_gladen_rate(k, n, gold, method="score")
    assert isinstance(found, CorrectedRate)
    low, high = interval(more=2)

    assert tuple(found.interval) == pytest.approx(interval(more=0))
    assert high - low < found.interval.width < 1.1 * (high - low)


@pytest.mark.slow
def test_both_corrections_undo_a_known_error() -> None:
    """Where labels and trials show the expected counts, the truth comes back exactly."""
    truth, sensitivity, specificity = 0.75, 0.9, 0.8
    gold = Confusion(true_pass=270, false_fail=30, true_fail=80, false_pass=20)
    judged = truth * sensitivity + (1 - truth) * (1 - specificity)

    assert 0.725 == pytest.approx(judged)
    for correct in (rectified_rate, rogan_gladen_rate):
        corrected = correct(round(400 * judged), 400, gold)
        assert isinstance(corrected, CorrectedRate)
        assert truth == pytest.approx(corrected.rate)
        assert truth in corrected.interval


@pytest.mark.slow
def test_only_rogan_gladen_takes_labels_of_another_mix() -> None:
    """Labels collected half and half, where 75 % are good: the rectifier is off, as documented."""
    gold = Confusion(true_pass=90, false_fail=10, true_fail=80, false_pass=20)
    passed, trials = 290, 400  # 0.75 · 0.9 + 0.25 · 0.2 of them

    other = rogan_gladen_rate(passed, trials, gold)
    assert isinstance(other, CorrectedRate)
    assert 0.75 == pytest.approx(other.rate)
    assert 0.675 == pytest.approx(rectified_rate(passed, trials, gold).rate)


def test_accuracies_are_shares_of_their_class() -> None:
    """Each with the interval of its own counts; undefined without a label of the class."""
    found = judge_accuracy(labelled(10, 5, 100), confidence=0.9, rule="exact")

    assert (0.9, 0.8) == (found.sensitivity, found.specificity)
    assert clopper_pearson(45, 50, confidence=0.9) == found.sensitivity_interval
    assert clopper_pearson(40, 50, confidence=0.9) == found.specificity_interval
    one_sided = judge_accuracy(
        Confusion(true_pass=9, false_pass=0, true_fail=0, false_fail=1), rule="wilson"
    )
    assert isinstance(one_sided.specificity, Undefined)
    assert isinstance(one_sided.specificity_interval, Undefined)
    assert 0.9 == one_sided.sensitivity


@pytest.mark.parametrize(
    "gold",
    [
        Confusion(true_pass=30, false_pass=0, true_fail=0, false_fail=2),
        Confusion(true_pass=10, false_pass=10, true_fail=10, false_fail=10),
        Confusion(true_pass=5, false_pass=10, true_fail=10, false_fail=15),
    ],
)
def test_a_judge_that_tells_nothing_apart_corrects_nothing(gold: Confusion) -> None:
    """Neither labels of one class nor a coin, nor one that is turned round."""
    assert isinstance(rogan_gladen_rate(80, 100, gold), Undefined)
    answer = decide_judged(80, 100, gold, 0.5, correction="rogan-gladen")
    assert (Decision.INCONCLUSIVE, "labels") == (answer.decision, answer.open_because)
    assert isinstance(answer.corrected, Undefined)
    assert isinstance(answer.labels_needed, Undefined)


# --- Deciding ---------------------------------------------------------------------


@pytest.mark.slow("exact-rectifier", "exact-rogan-gladen")
@pytest.mark.parametrize("correction", CORRECTIONS[:2])
@pytest.mark.parametrize("method", METHODS)
def test_what_is_needed_decides(correction: Correction, method: CorrectionMethod) -> None:
    """So many trials with these labels, or this many labels with endless trials."""
    options: dict[str, Any] = {"correction": correction, "method": method}
    few_trials = decide_judged(51, 60, labelled(10, 10, 1000), 0.80, **options)
    # Rogan and Gladen take 0.76 for (0.76 − 0.1)/0.8 = 0.825.
    judged = 0.86 if correction == "rectifier" else 0.76
    few_labels = decide_judged(round(10_000 * judged), 10_000, labelled(3, 3, 60), 0.80, **options)

    assert ("trials", 1000) == (few_trials.open_because, few_trials.labels_needed)
    needed = few_trials.trials_needed
    assert isinstance(needed, int)
    assert needed > 60
    answer = decide_judged(round(0.85 * needed), needed, labelled(10, 10, 1000), 0.80, **options)
    assert (Decision.PASS, "nothing") == (answer.decision, answer.open_because)
    assert "labels" == few_labels.open_because
    assert isinstance(few_labels.trials_needed, Undefined)
    labels = few_labels.labels_needed
    assert isinstance(labels, int)
    assert labels > 60
    scaled = Confusion(
        true_pass=round(27 * labels / 60),
        false_pass=round(3 * labels / 60),
        true_fail=round(27 * labels / 60),
        false_fail=round(3 * labels / 60),
    )
    later = decide_judged(round(10**7 * judged), 10**7, scaled, 0.80, **options)
    assert Decision.PASS is later.decision


def test_a_rate_at_the_requirement_is_never_decided() -> None:
    """Neither labels nor trials help, and that is said."""
    answer = decide_judged(80, 100, labelled(5, 5, 100), 0.80)

    assert "labels" == answer.open_because
    assert isinstance(answer.labels_needed, Undefined)


@pytest.mark.slow
def test_a_bad_rate_fails_and_a_good_one_passes() -> None:
    """The whole interval on one side; the requirement itself is met."""
    gold = labelled(10, 10, 1000)

    assert Decision.FAIL is decide_judged(500, 1000, gold, 0.80).decision
    assert Decision.PASS is decide_judged(990, 1000, gold, 0.80).decision


def test_a_sequence_says_what_keeps_it_open() -> None:
    """Trials first; labels once their band alone straddles, from 50 trials on or at the end."""
    few, many = labelled(2, 2, 20), labelled(5, 5, 5000)

    def after(gold: Confusion, passed: int, trials: int) -> JudgedSequence:
        state = JudgedSequence.start(gold)
        for place in range(trials):
            state = state.update(place % trials < passed)
        return state

    assert "trials" == JudgedSequence.start(few).open_because(0.8)
    assert "trials" == after(few, 8, 10).open_because(0.8)
    assert "labels" == after(few, 8, 10).open_because(0.8, is_over=True)
    assert "labels" == after(few, 40, 50).open_because(0.8)
    assert "trials" == after(many, 44, 50).open_because(0.8)
    assert "nothing" == after(many, 500, 500).open_because(0.8)
    hopeless = Confusion(true_pass=0, false_pass=2, true_fail=0, false_fail=2)
    assert "labels" == JudgedSequence.start(hopeless).open_because(0.5)


def test_a_sequence_decides_when_it_is_over() -> None:
    """PASS, FAIL, or what is missing: more trials, or this many labels by the planning formula."""

    def decided(gold: Confusion, passed: int, trials: int, required: float) -> JudgedDecision:
        state = JudgedSequence.start(gold)
        for place in range(trials):
            state = state.update(place * passed % trials < passed)
        return state.decide(required)

    many, few = labelled(5, 5, 5000), labelled(2, 2, 20)
    assert Decision.PASS is decided(many, 500, 500, 0.8).decision
    assert Decision.FAIL is decided(many, 100, 500, 0.8).decision
    short = decided(many, 44, 50, 0.8)
    assert (Decision.INCONCLUSIVE, "trials", 5000) == (
        short.decision,
        short.open_because,
        short.labels_needed,
    )
    open_ = decided(few, 90, 100, 0.8)
    assert (Decision.INCONCLUSIVE, "labels") == (open_.decision, open_.open_because)
    assert labels_needed(few, 0.1, confidence=1 - 0.1 / 3) == pytest.approx(
        open_.labels_needed, abs=1
    )
    assert isinstance(decided(few, 80, 100, 0.8).labels_needed, Undefined)
    nothing = JudgedSequence.start(few).decide(0.8)
    assert isinstance(nothing.corrected, Undefined)
    assert Decision.INCONCLUSIVE is nothing.decision


def test_a_sequence_holds_the_fixed_interval_apart() -> None:
    """Peeking costs width: the sequence is wider than one look, and cut at 0 and 1 last."""
    gold = labelled(4, 4, 200)
    state = JudgedSequence.start(gold)
    for place in range(200):
        state = state.update(place % 5 > 0)
    fixed = rectified_rate(160, 200, gold, method="cells").interval

    assert isinstance(state.interval, Interval)
    assert state.interval.low < fixed.low
    assert state.interval.high > fixed.high
    assert 0.0 <= state.interval.low <= state.interval.high <= 1.0


@pytest.mark.parametrize(
    "call",
    [
        lambda gold: rectified_rate(5, 4, gold),
        lambda gold: rectified_rate(1, 2, gold, confidence=1),
        lambda gold: rectified_rate(1, 2, gold, method="wald"),  # type: ignore[arg-type]
        lambda gold: rogan_gladen_rate(1, 0, gold),
        lambda gold: rectifier(gold, rule="wald"),  # type: ignore[arg-type]
        lambda gold: judge_accuracy(gold, rule="wald"),  # type: ignore[arg-type]
        lambda gold: labels_needed(gold, 0.0),
        lambda gold: decide_judged(1, 2, gold, 1.0),
        lambda gold: decide_judged(1, 2, gold, 0.5, correction="none"),  # type: ignore[arg-type]
        lambda gold: JudgedSequence.start(gold).open_because(0.0),
    ],
)
def test_bad_arguments_are_refused(call: Callable[[Confusion], object]) -> None:
    """With the argument's name."""
    with pytest.raises(InvalidArgument):
        call(labelled(1, 1, 20))
