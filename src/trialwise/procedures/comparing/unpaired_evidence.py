"""The evidence of two arms that cannot be paired: all trials of one against all of the other.

Without a margin Boschloo's exact test decides, in both directions. A margin is tested exactly, too.
The interval of the difference is exact and agrees with the test of this criterion alone.
"""

from __future__ import annotations

import math

from trialwise.model.tally import Tally
from trialwise.procedures.comparing.comparison_findings import ComparisonQuestion, Evidence
from trialwise.stats.paired_questions import list_limits
from trialwise.stats.result_types import Interval
from trialwise.stats.unconditional import boschloo
from trialwise.stats.unpaired_difference import bound_unpaired_difference, find_margin_p_value


def weigh_unpaired(
    control: Tally, candidate: Tally, question: ComparisonQuestion, criterion: str = ""
) -> Evidence:
    """Return the exact test of two separate runs, with its interval.

    Args:
        control: What was counted of the control.
        candidate: What was counted of the candidate.
        question: What is asked.
        criterion: Of which criterion.

    >>> found = weigh_unpaired(
    ...     Tally(trials=10, passed=1), Tally(trials=10, passed=9), ComparisonQuestion()
    ... )
    >>> found.favours_candidate, found.p_value < 0.01, found.interval.low > 0
    (True, True, True)
    """
    asked, margin = question.of_criterion(criterion)
    ours, theirs = (control.passed, control.trials), (candidate.passed, candidate.trials)
    alpha = question.alpha
    if margin:
        above = [find_margin_p_value(*ours, *theirs, limit=t) for t in (-margin, 0.0, margin)]
        below = [find_margin_p_value(*theirs, *ours, limit=-t) for t in (-margin, 0.0, margin)]
        limits = (-margin, 0.0, margin)
        up, down = dict(zip(limits, above, strict=True)), dict(zip(limits, below, strict=True))
        passing, failing = list_limits(asked, margin)
        if question.edition > 1 and asked == "equivalent":
            # The two ways to a FAIL share its error.
            up[margin], down[-margin] = 2 * up[margin], 2 * down[-margin]
        p_pass = max(*(up[t] for t in passing[0]), *(down[t] for t in passing[1]), 0.0)
        p_fail = min(*(up[t] for t in failing[0]), *(down[t] for t in failing[1]), 1.0)
    else:
        p_fail = boschloo(*ours, *theirs).p_value
        p_pass = boschloo(*theirs, *ours).p_value
        up, down = {0.0: p_pass}, {0.0: p_fail}
    passes = p_pass < p_fail or 2 * p_pass <= alpha
    interval = bound_unpaired_difference(*ours, *theirs, alpha=alpha)
    return Evidence(
        control=control,
        candidate=candidate,
        decision_rule="unpaired/margin-exact" if margin else "unpaired/boschloo",
        p_value=min(1.0, 2 * (p_pass if passes else p_fail)),
        favours_candidate=theirs[0] * ours[1] > ours[0] * theirs[1],
        favours_pass=passes,
        interval=_agree(interval, up, down, alpha / 2),
    )


def _agree(
    interval: Interval, up: dict[float, float], down: dict[float, float], level: float
) -> Interval:
    """Return the interval with ends on that side of each limit on which the tests place it."""
    low, high = interval
    for limit, p_value in up.items():
        shown = p_value <= level
        low = max(low, math.nextafter(limit, 2)) if shown else min(low, limit)
    for limit, p_value in down.items():
        shown = p_value <= level
        high = min(high, math.nextafter(limit, -2)) if shown else max(high, limit)
    return Interval(low, high, confidence=interval.confidence, method=interval.method)
