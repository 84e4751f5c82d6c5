"""All tests of a comparison as one family: how they share a level, and what that guarantees.

Every criterion of every two arms that are compared is one test. It may state one of two things, a
PASS or a FAIL, and each is a one-sided test of its own. Holm's method goes over both sides of all
tests, so that its guarantee also covers a statement in the wrong direction, which Holm over
two-sided tests does not (Shaffer 1980).
"""

from __future__ import annotations

from collections.abc import Sequence

from trialwise.procedures.comparing.comparison_findings import ComparisonQuestion
from trialwise.stats.multiplicity import Correction, adjust


def adjust_family(
    p_values: Sequence[float], *, method: Correction, alpha: float
) -> tuple[float, ...]:
    """Return the smallest level of all tests together at which each one states something.

    Args:
        p_values: Of each test: twice the p-value of the side that it speaks for.
        method: How the tests share the level.
        alpha: The level.

    >>> adjust_family([0.01, 0.02], method="holm", alpha=0.05)
    (0.02, 0.03)
    """
    if method != "holm":
        return adjust(p_values, method=method, alpha=alpha).adjusted
    # The other side of each test states nothing; as 1 it only takes its place in the family.
    sides = [*(one / 2 for one in p_values), *(1.0 for _ in p_values)]
    return adjust(sides, method=method, alpha=alpha).adjusted[: len(p_values)]


def state_family(p_values: Sequence[float], question: ComparisonQuestion) -> str:
    """Return the sentence that says what the tests guarantee together; none for a single test.

    Args:
        p_values: Of all tests.
        question: Its level and correction.
    """
    tests = len(p_values)
    if tests < 2:
        return ""
    found = adjust(p_values, method=question.correction, alpha=question.alpha)
    level = f"{100 * question.alpha:g} %"
    if found.controls == "per-test":
        together = min(1.0, tests * question.alpha)
        return (
            f"Each of {tests} tests is made at {level}, unadjusted: the chance of a wrong "
            f"statement somewhere is at most {100 * together:g} %."
        )
    what = (
        "the chance of any wrong statement"
        if found.controls == "FWER"
        else "the expected share of equals among those told apart"
    )
    return f"{found.label} over {tests} tests: {what} is at most {level}. {found.dependence}"
