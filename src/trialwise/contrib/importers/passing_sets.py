"""Several checks as one: all of them, or a weighted score that reaches a threshold.

promptfoo and vally pass a test if the mean of the scores, each with its weight, is at least a
threshold. Where every score is 0 or 1, that is the same as one of several sets of checks passing.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

__all__ = ["combine_checks", "find_passing_sets"]

#: With more there are too many sets to read.
MOST_WEIGHED = 6


def find_passing_sets(
    weights: Sequence[float], threshold: float, *, given: float = 0
) -> list[tuple[int, ...]]:
    """Return the smallest sets of assertions that reach a threshold together, by position.

    Args:
        weights: The weight of each assertion, more than 0.
        threshold: The mean score that is needed.
        given: Weight of what is asked besides and scores 0.

    >>> find_passing_sets([1, 1, 2], 0.5)
    [(2,), (0, 1)]
    """
    exact = [Fraction(str(one)) for one in weights]
    needed = Fraction(str(threshold)) * (sum(exact) + Fraction(str(given)))
    found: list[tuple[int, ...]] = []
    for size in range(len(exact) + 1):
        for places in combinations(range(len(exact)), size):
            if any(set(one) <= set(places) for one in found):
                continue
            if sum((exact[place] for place in places), Fraction(0)) >= needed:
                found.append(places)
    return found


def combine_checks(
    checks: Sequence[dict[str, Any]], sets: Sequence[Sequence[int]]
) -> dict[str, Any] | None:
    """Return one check that holds if all checks of some set hold; None where it always does.

    >>> combine_checks([{"contains": "a"}, {"contains": "b"}], [(0,), (1,)])
    {'any_of': [{'contains': 'a'}, {'contains': 'b'}]}
    """
    if any(not one for one in sets):
        return None
    parts = [_join([checks[place] for place in one]) for one in sets]
    return parts[0] if len(parts) == 1 else {"any_of": parts}


def _join(checks: list[dict[str, Any]]) -> dict[str, Any]:
    return checks[0] if len(checks) == 1 else {"all_of": checks}
