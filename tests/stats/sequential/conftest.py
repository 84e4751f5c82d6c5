"""An independent route to every probability: exact path counts in rational numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import pytest


@dataclass
class ExactRun:
    """What a rule does at a rational rate, without a rounding error."""

    passes: Fraction = Fraction(0)
    fails: Fraction = Fraction(0)
    inconclusive: Fraction = Fraction(0)
    mean_trials: Fraction = Fraction(0)
    distribution: dict[int, Fraction] = field(default_factory=dict)
    stops: dict[tuple[int, int], Fraction] = field(default_factory=dict)


def count_paths(accept: Sequence[int], reject: Sequence[int]) -> dict[tuple[int, int, str], int]:
    """In how many ways a run can end at (trials, failures, verdict): integers only."""
    ends: dict[tuple[int, int, str], int] = {}
    open_states = {0: 1}
    for n in range(1, len(accept)):
        ways: dict[int, int] = {}
        for f, count in open_states.items():
            for g in (f, f + 1):
                ways[g] = ways.get(g, 0) + count
        open_states = {}
        for f, count in ways.items():
            if f <= accept[n]:
                ends[n, f, "PASS"] = count
            elif f >= reject[n]:
                ends[n, f, "FAIL"] = count
            elif n == len(accept) - 1:
                ends[n, f, "INCONCLUSIVE"] = count
            else:
                open_states[f] = count
    return ends


def run_exactly(accept: Sequence[int], reject: Sequence[int], p: Fraction) -> ExactRun:
    run = ExactRun()
    for (n, f, verdict), count in count_paths(accept, reject).items():
        weight = count * p ** (n - f) * (1 - p) ** f
        run.passes += weight * (verdict == "PASS")
        run.fails += weight * (verdict == "FAIL")
        run.inconclusive += weight * (verdict == "INCONCLUSIVE")
        run.mean_trials += weight * n
        run.distribution[n] = run.distribution.get(n, Fraction(0)) + weight
        run.stops[n, f] = weight
    return run


@pytest.fixture(scope="session")
def exactly() -> Callable[[Sequence[int], Sequence[int], Fraction], ExactRun]:
    return run_exactly
