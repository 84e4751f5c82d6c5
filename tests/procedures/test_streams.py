"""A stream that looks only where a verdict is possible decides as one that looks at every trial."""

from __future__ import annotations

from itertools import product

import pytest

from trialwise.model.plan import Limits
from trialwise.model.verdict import Decision
from trialwise.procedures.criterion_rows import Stream

_LIMITS = [
    Limits(cap=cap, cutoff=cutoff, curtailed=curtailed, most_failing=most)
    for cap in (1, 5, 7)
    for cutoff in (None, 0, 1, 4, 7, 9)
    for curtailed in (True, False)
    for most in ((None,) if cutoff is None else (None, *range(cutoff)))
]


def _decide_at_every_trial(
    limits: Limits, outcomes: tuple[bool, ...]
) -> tuple[int, Decision | None]:
    """An independent way: ask the limits after each trial."""
    for trials in range(1, limits.cap + 1):
        decision = limits.decide(trials, outcomes[:trials].count(False))
        if decision is not None:
            return trials, decision
    return limits.cap, None


@pytest.mark.parametrize("limits", _LIMITS, ids=str)
def test_a_stream_misses_no_verdict(limits: Limits) -> None:
    for outcomes in product((True, False), repeat=limits.cap):
        stream = Stream(limits)

        settled = [stream.add(place, passed=one) for place, one in enumerate(outcomes)]

        trials, decision = _decide_at_every_trial(limits, outcomes)
        assert (stream.trials, stream.decision) == (trials, decision)
        assert settled.index(True) == trials - 1
        assert settled.count(True) == 1


def test_an_outcome_waits_for_those_before_it() -> None:
    stream = Stream(Limits(cap=4, cutoff=3))

    assert not stream.add(3, passed=True)
    assert not stream.add(1, passed=None)
    assert not stream.add(2, passed=True)
    assert (stream.trials, stream.next_place) == (0, 0)
    assert stream.add(0, passed=True)
    assert (stream.trials, stream.next_place, stream.decision) == (3, 4, Decision.PASS)
