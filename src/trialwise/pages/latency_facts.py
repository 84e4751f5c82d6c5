"""The latencies of successful trials, summed up for every report."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from typing import NamedTuple

from trialwise.model.trial_table import TrialTable


class LatencyFacts(NamedTuple):
    """How long the successful trials took."""

    successes: int
    mean_s: float
    maximum_s: float


def summarize_latencies(tables: Iterable[TrialTable]) -> LatencyFacts | None:
    """Return mean and maximum; None where no successful trial has a latency."""
    times = array("d")
    for one in tables:
        times += one.latencies(passed=True)
    if not times:
        return None
    return LatencyFacts(len(times), math.fsum(times) / len(times), max(times))
