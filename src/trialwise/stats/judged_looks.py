"""Looks at a judged rate before all trials are in.

After a quarter and after half of the trials the corrected rate is tested, with 5 % and 10 % of the
error that is allowed; the test of all trials gets the rest. The chance of a wrong decision at any
of the three is at most the sum of the three levels, however strongly the tests depend on each other
through the labels that they share.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from trialwise.stats.agreement import Confusion
from trialwise.stats.binomial import find_first
from trialwise.stats.judged_tests import UNLIKE, Correction, JudgedTest, compare_labels

#: The share of the trials that are in at a look, and the share of the error limit that it spends.
LOOKS = ((0.25, 0.05), (0.5, 0.1))
#: What the looks leave of the error limit for the test of all trials.
LAST_SHARE = 0.85
#: Fewer trials than this are not looked at.
FEWEST_TRIALS = 20


@dataclass(frozen=True, slots=True)
class JudgedLook:
    """The counts that decide after some trials."""

    trials: int
    share: float
    """The share of the error limit that this look spends."""
    accept: int
    """The most failures that PASS; −1 if none do."""
    reject: int
    """The fewest failures that FAIL; more than the trials if none do."""


@lru_cache(maxsize=64)
def plan_looks(
    labels: Confusion,
    trials: int,
    corrections: tuple[Correction, ...],
    *,
    above: tuple[float, float],
    below: tuple[float, float],
) -> tuple[JudgedLook, ...]:
    """Find the counts that decide at each look, where all corrections have to agree.

    Parameters
    ----------
    labels : Confusion
        How often the judge is right and wrong.
    trials : int
        The size of the whole sample.
    corrections : tuple of {"rectifier", "rogan-gladen", "pooled"}
        The tests that have to agree.
    above, below : (float, float)
        The rate that a PASS shows the true rate to be above, and the one that a FAIL shows it to be
        below, each with its error limit.

    Examples
    --------
    >>> labels = Confusion(true_pass=140, false_pass=1, true_fail=38, false_fail=1)
    >>> for look in plan_looks(labels, 100, ("rectifier",), above=(0.6, 0.05), below=(0.6, 0.05)):
    ...     print(look.trials, look.accept, look.reject)
    25 3 18
    50 10 30
    """
    looks = []
    for part, share in LOOKS:
        size = int(trials * part)
        if size >= FEWEST_TRIALS:
            # A rate is shown to be low where that of fails is shown to be high.
            passes = _find_passing(labels, size, corrections, above[0], above[1] * share)
            fails = _find_passing(labels.swapped, size, corrections, 1 - below[0], below[1] * share)
            looks.append(JudgedLook(size, share, size - passes, fails))
    return tuple(looks)


def _find_passing(
    labels: Confusion, size: int, corrections: tuple[Correction, ...], rate: float, alpha: float
) -> int:
    """Return the fewest passes that show a rate above this one; one too many if none do."""

    def shows(passed: int) -> bool:
        # Labels that count as trials decide nothing where the trials contradict them.
        is_low = "pooled" in corrections and passed < labels.judged_rate * size
        if is_low and compare_labels(passed, size, labels) < UNLIKE:
            return False
        tests = (JudgedTest(passed, size, labels, one) for one in corrections)
        return all(test.shows_above(rate, alpha) for test in tests)

    return find_first(-1, size, shows) if shows(size) else size + 1
