"""Wald's lines, moved until the true errors are the nominal ones at this cap.

The simplest repair of Wald's test: two straight lines again, as near to each other as the two
exact errors allow. Where the cap is large enough to decide every run, a cutoff at the end replaces
the open end, and verdicts that have become certain are given at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from trialwise.stats.sequential.bound import deciding_look, fewest_failing, most_passing
from trialwise.stats.sequential.boundary_rule import Rule, prolong_rule
from trialwise.stats.sequential.characteristic import stopping_probabilities
from trialwise.stats.sequential.fixed_sample import fixed_rule
from trialwise.stats.sequential.hypotheses import SLACK, Hypotheses, Mix, list_looks
from trialwise.stats.sequential.optimal import INCONCLUSIVE_COST, mean_cost
from trialwise.stats.sequential.wald import line_rule

__all__ = ["find_calibrated"]

#: How finely a line is placed, in units of the log likelihood ratio.
RESOLUTION = 1e-6

#: The lines are placed in turn: moving one in leaves room for the other. A few turns settle it.
MOST_TURNS = 12


def find_calibrated(hypotheses: Hypotheses, cap: int, batch: int, mix: Mix) -> Rule:
    """The pair of lines with the least expected trials whose exact errors are kept."""
    looks = list_looks(cap, batch)
    ends: list[Rule | None] = list(_ends(hypotheses, looks)) or [None]
    price = 0.0 if ends[0] else INCONCLUSIVE_COST
    placed = (_place_lines(hypotheses, looks, end) for end in ends)
    return min(placed, key=lambda rule: mean_cost(rule, mix, price))


def _ends(hypotheses: Hypotheses, looks: tuple[int, ...]) -> list[Rule]:
    """Fixed samples that keep both errors, to end the lines with; none at too small a cap."""
    sample = deciding_look(hypotheses, looks)
    if sample is None:
        return []
    most, fewest = most_passing(hypotheses, looks[-1]), fewest_failing(hypotheses, looks[-1])
    if fewest <= most + 1:
        cutoffs = {fewest - 1, (most + fewest - 1) // 2, most}
        return [fixed_rule(c, c + 1, looks) for c in sorted(cutoffs)]
    # At this very cap no cutoff keeps both errors, though a smaller sample does.
    until = tuple(n for n in looks if n <= sample.trials)
    return [prolong_rule(fixed_rule(sample.most_failures, sample.most_failures + 1, until), looks)]


def _place_lines(hypotheses: Hypotheses, looks: tuple[int, ...], end: Rule | None) -> Rule:
    upper = lower = math.inf

    def rule(up: float, down: float) -> Rule:
        return _with_end(line_rule(hypotheses, up, -down, looks), end, looks)

    def passes_rarely(up: float) -> bool:
        stops = stopping_probabilities(*rule(up, lower), hypotheses.p1).passes
        return math.fsum(w for *_, w in stops) <= hypotheses.beta + SLACK

    def fails_rarely(down: float) -> bool:
        stops = stopping_probabilities(*rule(upper, down), hypotheses.p0).fails
        return math.fsum(w for *_, w in stops) <= hypotheses.alpha + SLACK

    widest = -2 * math.log(min(hypotheses.alpha, hypotheses.beta)) + 10
    for _ in range(MOST_TURNS):
        before = upper, lower
        upper = _nearest(passes_rarely, min(upper, widest))
        lower = _nearest(fails_rarely, min(lower, widest))
        if (upper, lower) == before:
            break
    return rule(upper, lower)


def _nearest(keeps: Callable[[float], bool], far: float) -> float:
    """The least distance of a line from the origin at which its error is kept."""
    near = 0.0
    if keeps(near):
        return near
    while far - near > RESOLUTION:
        middle = (near + far) / 2
        near, far = (near, middle) if keeps(middle) else (middle, far)
    return far


def _with_end(rule: Rule, end: Rule | None, looks: tuple[int, ...]) -> Rule:
    """The lines with the certain verdicts of a fixed sample, which they may not contradict."""
    if end is None:
        return rule
    for n in looks:
        rule.accept[n] = min(max(rule.accept[n], end.accept[n]), end.accept[-1])
        rule.reject[n] = max(min(rule.reject[n], end.reject[n]), rule.accept[n] + 1)
    return rule
