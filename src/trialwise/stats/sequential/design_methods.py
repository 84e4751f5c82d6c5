"""The methods that find a design for two exact errors: optimal, calibrated, Wald's and fixed.

*Optimal*: as few expected trials as two exact errors allow. Backward induction at two prices gives
the best rule for those prices; a linear programme over such rules gives the prices and, by duality,
the least objective any test with this cap can reach; flips of boundary states spend what the whole
trials of the rule leave of alpha and beta. The certificate is the objective over that least
objective, so that a reader need not believe in the search.

*Calibrated*: Wald's lines, moved until the true errors are the nominal ones at this cap. The
simplest repair of Wald's test: two straight lines again, as near to each other as the two exact
errors allow. Where the cap is large enough to decide every run, a cutoff at the end replaces the
open end, and verdicts that have become certain are given at once.

*Wald*: the sequential probability ratio test, cut at a cap. Kept for comparison and compatibility.
Its boundaries are approximations (usually wasteful, now and then not conservative), and a cap
breaks their promise: what is undecided there is INCONCLUSIVE, and the operating characteristic says
how often.

*Fixed*: the fixed sample, curtailed, with one cutoff and no trial after the verdict is certain. The
plainest design, and the yardstick of the sequential ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from trialwise.stats.sequential.bound import (
    deciding_look,
    fewest_failing,
    first_deciding,
    most_passing,
)
from trialwise.stats.sequential.hypotheses import Hypotheses, Mix, list_looks
from trialwise.stats.sequential.induction import EDGE, Problem, log_ratios
from trialwise.stats.sequential.relaxation import Column, evaluate, relax, two_rates
from trialwise.stats.sequential.slack_search import fill_slack
from trialwise.stats.sequential.walks import Rule, characteristic, never, prolong_rule

#: What an open end costs, in trials, where the cap is too small to decide every run.
INCONCLUSIVE_COST = 100.0

#: How finely a line is placed, in units of the log likelihood ratio.
RESOLUTION = 1e-6

#: The lines are placed in turn: moving one in leaves room for the other. A few turns settle it.
MOST_TURNS = 12

#: A log likelihood ratio this close to a line is on it: at 0.90 against 0.80 four failures meet
#: the lower line exactly, and which side a double falls on must not decide.
TOLERANCE = 1e-12


class Found(NamedTuple):
    """A rule, its objective and the least objective of any test with the same cap and looks."""

    rule: Rule
    objective: float
    bound: float


def find_optimal(hypotheses: Hypotheses, cap: int, batch: int, mix: Mix) -> Found:
    """The best rule for two hypotheses whose errors are exact and at most the nominal ones."""
    looks = list_looks(cap, batch)
    sample = deciding_look(hypotheses, looks)
    problem = _problem(hypotheses, looks, mix, None if sample else INCONCLUSIVE_COST)
    if sample:
        until = tuple(n for n in looks if n <= sample.trials)
        fixed = fixed_rule(sample.most_failures, sample.most_failures + 1, until)
        safe = evaluate(problem, prolong_rule(fixed, looks))
        shorter = replace(_problem(hypotheses, until, mix, None), cutoff=sample.most_failures)
    else:
        safe = Column(cap + INCONCLUSIVE_COST, 0.0, 0.0, never(cap))
        shorter = None
    relaxed = relax(two_rates(problem, hypotheses), hypotheses, safe=safe)
    rule = fill_slack(problem, relaxed, hypotheses, shorter=shorter).rule
    _confirm(hypotheses, rule)
    return Found(rule, mean_cost(rule, mix, problem.undecided or 0.0), relaxed.bound)


def mean_cost(rule: Rule, mix: Mix, inconclusive_cost: float) -> float:
    """Expected trials over the mix, an open end counted at its price."""
    curves = ((characteristic(rule, rate), weight) for rate, weight in mix)
    return sum(w * (c.mean_trials + inconclusive_cost * c.inconclusive) for c, w in curves)


def _problem(
    hypotheses: Hypotheses, looks: tuple[int, ...], mix: Mix, undecided: float | None
) -> Problem:
    # At a rate of exactly 1 one failure is proof; a hair below, it is as good as proof.
    p0 = min(hypotheses.p0, 1 - EDGE)
    rates = tuple((p0 if rate == hypotheses.p0 else rate, weight) for rate, weight in mix)
    return Problem(p0, hypotheses.p1, looks, rates, undecided)


def _confirm(hypotheses: Hypotheses, rule: Rule) -> None:
    """The promise of the method, recomputed at the two rates themselves."""
    fails = characteristic(rule, hypotheses.p0).fails
    passes = characteristic(rule, hypotheses.p1).passes
    if fails > hypotheses.alpha_limit or passes > hypotheses.beta_limit:
        raise AssertionError(f"the rule for {hypotheses} errs with {fails} and {passes}")


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
        return characteristic(rule(up, lower), hypotheses.p1).passes <= hypotheses.beta_limit

    def fails_rarely(down: float) -> bool:
        return characteristic(rule(upper, down), hypotheses.p0).fails <= hypotheses.alpha_limit

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


def find_wald(hypotheses: Hypotheses, cap: int, batch: int) -> Rule:
    """Wald's boundaries log((1−alpha)/beta) and log(alpha/(1−beta)), both inclusive."""
    upper = math.log((1 - hypotheses.alpha) / hypotheses.beta)
    lower = math.log(hypotheses.alpha / (1 - hypotheses.beta))
    return line_rule(hypotheses, upper, lower, list_looks(cap, batch))


def line_rule(hypotheses: Hypotheses, upper: float, lower: float, looks: tuple[int, ...]) -> Rule:
    """PASS where the log likelihood ratio of p0 to p1 reaches `upper`, FAIL where `lower`."""
    success, failure = log_ratios(hypotheses.p0, hypotheses.p1)
    rule = never(looks[-1])
    accept, reject = -1, 0
    for n in looks:
        # Both lines rise with n, so that each search starts where the last one ended.
        while accept < n and _ratio(n, accept + 1, success, failure) >= upper - TOLERANCE:
            accept += 1
        reject = max(reject, accept + 1)
        while reject <= n and _ratio(n, reject, success, failure) > lower + TOLERANCE:
            reject += 1
        rule.accept[n], rule.reject[n] = accept, reject
    return rule


def _ratio(n: int, f: int, success: float, failure: float) -> float:
    return (n - f) * success + f * failure


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
