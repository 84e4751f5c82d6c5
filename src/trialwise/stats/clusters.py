"""Trials that share inputs: how their counts are written, and when they repeat too much.

A group is one input, written as (successes, trials). The estimators that read groups are in
`cluster_estimators` and `cluster_stratified`, the correlation within inputs in
`toolbox.cluster_correlation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import SupportsIndex, TypeAlias

from trialwise.errors import InvalidArgument
from trialwise.validation import (
    require_successes,
)

__all__ = ["Groups"]

Groups: TypeAlias = Sequence[tuple[SupportsIndex, SupportsIndex]]
"""One (successes, trials) pair for each distinct input."""


#: n > 2J is the companion's example of "materially exceeds" (8.2.1), taken as the rule.
MATERIAL_REPETITION = 2


def check_groups(groups: object) -> tuple[tuple[int, int], ...]:
    """One or more (successes, trials) pairs, each with at least one trial."""
    allowed = "hold one (successes, trials) pair for each of at least one input"
    if isinstance(groups, str) or not isinstance(groups, Sequence) or not groups:
        raise InvalidArgument("groups", groups, allowed)
    counts = []
    for group in groups:
        if not isinstance(group, Sequence) or len(group) != 2:
            raise InvalidArgument("groups", group, allowed)
        counts.append(require_successes(*group, names=("groups' successes", "groups' trials")))
    return tuple(counts)
