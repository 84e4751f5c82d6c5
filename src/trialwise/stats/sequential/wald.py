"""Wald's sequential probability ratio test, cut at a cap: the procedure everyone else uses.

Kept for comparison and compatibility. Its boundaries are approximations (usually wasteful, now and
then not conservative), and a cap breaks their promise: what is undecided there is INCONCLUSIVE, and
the operating characteristic says how often.
"""

from __future__ import annotations

import math

from trialwise.stats.sequential.boundary_rule import Rule, never
from trialwise.stats.sequential.hypotheses import Hypotheses, list_looks
from trialwise.stats.sequential.induction import log_ratios

__all__ = ["find_wald", "line_rule"]

#: A log likelihood ratio this close to a line is on it: at 0.90 against 0.80 four failures meet
#: the lower line exactly, and which side a double falls on must not decide.
TOLERANCE = 1e-12


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
