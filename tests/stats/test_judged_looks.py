"""Looks at a judged rate: the level over all of them together, summed over every outcome."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, multinomial
from tests.stats.test_judged_tests import Floats, confusion, shares, tables

from trialwise.stats.judged_looks import LAST_SHARE, LOOKS, plan_looks
from trialwise.stats.judged_tests import Correction, JudgedTest

ALPHA = 0.05


def least_passing(table: tuple[int, int, int, int], n: int, rate: float, one: Correction) -> int:
    """The least judged count that the last test passes; n + 1 where none does."""
    labels = confusion(table)
    shown = (
        k
        for k in range(n + 1)
        if JudgedTest(k, n, labels, one).shows_above(rate, LAST_SHARE * ALPHA)
    )
    return next(shown, n + 1)


def chance_of_a_pass(stages: list[tuple[int, int, int]], last: tuple[int, int], q: float) -> float:
    """P(PASS at any look or at the end), by following the number of passes from look to look.

    Args:
        stages: For each look its trials, the fewest passes that PASS and the most that FAIL.
        last: All trials, and the fewest passes that PASS at the end.
        q: The chance that the judge passes one trial.
    """
    now, before, passing = np.ones(1), 0, 0.0
    for size, least, most in stages:
        now = np.convolve(now, binom.pmf(range(size - before + 1), size - before, q))
        passing += float(now[max(least, 0) :].sum())
        now[max(least, 0) :] = 0
        now[: most + 1] = 0
        before = size
    size, least = last
    now = np.convolve(now, binom.pmf(range(size - before + 1), size - before, q))
    return passing + float(now[least:].sum())


def false_passes(m: int, n: int, rate: float, one: Correction) -> Floats:
    """P(PASS) at the rate itself, for every judge of a grid."""
    both = (rate, ALPHA)
    designs = []
    for table in tables(m):
        looks = plan_looks(confusion(table), n, (one,), above=both, below=both)
        stages = [(at.trials, at.trials - at.accept, at.trials - at.reject) for at in looks]
        designs.append((stages, (n, least_passing(table, n, rate, one))))
    levels = []
    for sensitivity, specificity in product((0.5, 0.8, 0.95, 1.0), repeat=2):
        parts = shares(rate, sensitivity, specificity)
        chances = multinomial.pmf(np.array(tables(m)), m, parts)
        passing = [chance_of_a_pass(*design, parts[0] + parts[1]) for design in designs]
        levels.append(float(chances @ np.array(passing)))
    return np.array(levels)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("m", "correction"), [(8, "rectifier"), (8, "rogan-gladen"), (5, "pooled")]
)
def test_no_judge_breaks_the_level_of_all_looks_together(m: int, correction: Correction) -> None:
    """With 80 trials there are looks after 20 and after 40."""
    assert false_passes(m, 80, 0.6, correction).max() <= ALPHA


def test_the_shares_of_the_error_add_up() -> None:
    """The looks and the end together spend what is allowed, and no more."""
    assert sum(share for _, share in LOOKS) + LAST_SHARE == pytest.approx(1)


def test_the_counts_of_a_look_are_those_of_its_tests() -> None:
    """The last count that decides does, and the next one does not."""
    labels = confusion((60, 1, 58, 1))
    tests: tuple[Correction, ...] = ("rectifier", "rogan-gladen")
    for look in plan_looks(labels, 100, tests, above=(0.5, 0.05), below=(0.6, 0.1)):
        for failures, expected in ((look.accept, True), (look.accept + 1, False)):
            passed = look.trials - failures
            shown = [
                JudgedTest(passed, look.trials, labels, one).shows_above(0.5, 0.05 * look.share)
                for one in tests
            ]
            assert all(shown) is expected
        for failures, expected in ((look.reject, True), (look.reject - 1, False)):
            passed = look.trials - failures
            shown = [
                JudgedTest(passed, look.trials, labels, one).shows_below(0.6, 0.1 * look.share)
                for one in tests
            ]
            assert all(shown) is expected


@pytest.mark.slow
def test_labels_that_contradict_the_trials_let_nothing_stop_early() -> None:
    """Pooled labels would otherwise vouch for trials of a service that has become worse."""
    labels = confusion((208, 3, 26, 3))
    (look, _) = plan_looks(labels, 100, ("pooled",), above=(0.75, 0.05), below=(0.75, 0.05))

    assert JudgedTest(15, 25, labels, "pooled").shows_above(0.75, 0.05 * look.share)
    assert look.accept < 10


def test_few_trials_are_not_looked_at() -> None:
    """A quarter of 60 trials is too few, half of 30 as well."""
    labels, both = confusion((60, 1, 58, 1)), (0.5, 0.05)
    sizes = [
        [one.trials for one in plan_looks(labels, n, ("rectifier",), above=both, below=both)]
        for n in (30, 60, 80)
    ]
    assert sizes == [[], [30], [20, 40]]
