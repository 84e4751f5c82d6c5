"""The optimal truncated test: as few expected trials as two exact errors allow.

Backward induction at two prices gives the best rule for those prices; a linear programme over such
rules gives the prices and, by duality, the least objective any test with this cap can reach; flips
of boundary states spend what the whole trials of the rule leave of alpha and beta. The certificate
is the objective over that least objective, so that a reader need not believe in the search.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from trialwise.stats.sequential.bound import deciding_look
from trialwise.stats.sequential.boundary_rule import Rule, never, prolong_rule
from trialwise.stats.sequential.characteristic import characteristic
from trialwise.stats.sequential.fixed_sample import fixed_rule
from trialwise.stats.sequential.hypotheses import SLACK, Hypotheses, Mix, list_looks
from trialwise.stats.sequential.induction import EDGE, Problem
from trialwise.stats.sequential.relaxation import Column, evaluate, relax
from trialwise.stats.sequential.slack_search import fill_slack

__all__ = ["Found", "find_optimal", "mean_cost"]

#: What an open end costs, in trials, where the cap is too small to decide every run.
INCONCLUSIVE_COST = 100.0


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
    relaxed = relax(problem, hypotheses, safe=safe)
    rule = fill_slack(problem, relaxed, hypotheses, shorter=shorter).rule
    _confirm(hypotheses, rule)
    return Found(rule, mean_cost(rule, mix, problem.undecided or 0.0), relaxed.bound)


def mean_cost(rule: Rule, mix: Mix, inconclusive_cost: float) -> float:
    """Expected trials over the mix, an open end counted at its price."""
    curves = ((characteristic(*rule, rate), weight) for rate, weight in mix)
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
    fails = characteristic(*rule, hypotheses.p0).fails
    passes = characteristic(*rule, hypotheses.p1).passes
    if fails > hypotheses.alpha + SLACK or passes > hypotheses.beta + SLACK:
        raise AssertionError(f"the rule for {hypotheses} errs with {fails} and {passes}")
