"""A rule: two boundaries on the number of failures, one entry for every number of trials.

Every method finds one, and every computation walks along one. A `SequentialDesign` is a rule with
its hypotheses. Inside the search the hypotheses are fixed and rules are many, so a rule is only two
lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from trialwise.errors import InvalidArgument


class Rule(NamedTuple):
    """PASS at f ≤ accept[n], FAIL at f ≥ reject[n], n = 0 … the last look."""

    accept: list[int]
    reject: list[int]


def never(cap: int) -> Rule:
    """The rule that gives no verdict."""
    return Rule([-1] * (cap + 1), list(range(1, cap + 2)))


def prolong_rule(rule: Rule, looks: Sequence[int]) -> Rule:
    """A rule that has always decided by its last look, on a longer horizon."""
    longer = never(looks[-1])
    end = len(rule.accept) - 1
    for n in looks:
        longer.accept[n], longer.reject[n] = rule.accept[min(n, end)], rule.reject[min(n, end)]
    return longer


def monotone(rule: Rule, looks: Sequence[int]) -> Rule:
    """The same rule with the verdict of their neighbours for states that cannot be reached."""
    accept = -1
    for n in looks:
        accept = max(accept, rule.accept[n])
        rule.accept[n] = min(accept, n)
        rule.reject[n] = max(rule.reject[n], rule.accept[n] + 1)
    return rule


def orderly(boundary: Sequence[int], looks: Sequence[int]) -> bool:
    """Whether a boundary never falls from look to look."""
    return all(boundary[m] <= boundary[n] for m, n in pairwise(looks))


def reach(accept: Sequence[int], reject: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """The fewest and most failures with which a run can get to n trials; an empty span for none."""
    spans = [(0, 0)]
    low, high = 0, 0
    for n in range(1, len(accept)):
        high += 1 if low <= high else 0
        spans.append((low, high))
        low, high = max(low, accept[n] + 1), min(high, reject[n] - 1)
    return tuple(spans)


def check_boundaries(accept: Sequence[int], reject: Sequence[int], looks: Sequence[int]) -> None:
    """Refuse boundaries that are no rule: lengths, verdicts between looks, disorder."""
    nothing = never(looks[-1])
    for name, boundary, none in (
        ("accept", accept, nothing.accept),
        ("reject", reject, nothing.reject),
    ):
        if len(boundary) != len(none):
            raise InvalidArgument(name, len(boundary), f"have {len(none)} entries, n = 0 … cap")
        if not all(type(entry) is int for entry in boundary):
            raise InvalidArgument(name, boundary, "be whole numbers")
        between = set(range(len(none))).difference(looks)
        if any(boundary[n] != none[n] for n in between):
            raise InvalidArgument(name, boundary, "give no verdict between looks")
        if not orderly(boundary, looks):
            raise InvalidArgument(name, boundary, "never fall from look to look")
    for n in looks:
        if not -1 <= accept[n] < reject[n] <= n + 1:
            value = (accept[n], reject[n])
            raise InvalidArgument("accept and reject", value, f"be in order after {n} trials")


def check_futile(
    futile: Sequence[tuple[int, int]],
    accept: Sequence[int],
    reject: Sequence[int],
    looks: Sequence[int],
) -> None:
    """Refuse spans of failures to give up at that are not between the boundaries of a look.

    Once there is a span it stays: the runs below it may still PASS and those above it may still
    FAIL, which is what makes P(PASS) rise and P(FAIL) fall with the true rate.
    """
    if not futile:
        return
    if len(futile) != len(accept):
        raise InvalidArgument("futile", len(futile), f"have {len(accept)} entries, n = 0 … cap")
    looking, before = set(looks), (0, -1)
    for n, (low, high) in enumerate(futile):
        if low > high:
            if n in looking and before[0] <= before[1]:
                raise InvalidArgument("futile", (low, high), f"not end before {n} trials")
            continue
        if n not in looking or not accept[n] < low <= high < reject[n]:
            raise InvalidArgument("futile", (low, high), f"lie between the boundaries of look {n}")
        if before[0] <= before[1] and (low > before[1] + 1 or high < before[0]):
            raise InvalidArgument("futile", (low, high), f"join the span before {n} trials")
        before = low, high
