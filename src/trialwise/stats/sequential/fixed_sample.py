"""The fixed sample, curtailed: one cutoff, and no trial after the verdict is certain.

The plainest design, and the yardstick of the sequential ones.
"""

from __future__ import annotations

from trialwise.stats.sequential.bound import fewest_failing, first_deciding, most_passing
from trialwise.stats.sequential.boundary_rule import Rule, never
from trialwise.stats.sequential.hypotheses import Hypotheses, list_looks

__all__ = ["find_fixed", "fixed_rule"]


def find_fixed(hypotheses: Hypotheses, cap: int | None, batch: int) -> Rule:
    """The smallest fixed sample for two hypotheses, or the best of `cap` trials if it is larger."""
    sample = first_deciding(hypotheses, start=1)
    if cap is None or sample.trials <= cap:
        looks = list_looks(sample.trials, batch)
        return fixed_rule(sample.most_failures, sample.most_failures + 1, looks)
    return fixed_rule(
        most_passing(hypotheses, cap), fewest_failing(hypotheses, cap), list_looks(cap, batch)
    )


def fixed_rule(most: int, fewest: int, looks: tuple[int, ...]) -> Rule:
    """PASS with at most `most` failures of all trials, FAIL with at least `fewest`, curtailed."""
    cap = looks[-1]
    rule = never(cap)
    for n in looks:
        rule.accept[n] = max(-1, most - (cap - n))
        rule.reject[n] = min(fewest, n + 1)
    return rule
