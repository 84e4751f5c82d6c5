"""The latencies of successful trials, summed up for every report."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from trialwise.model.trial import Trial


class LatencyFacts(NamedTuple):
    """How long the successful trials took."""

    successes: int
    mean_s: float
    maximum_s: float


def summarize_latencies(trials: Iterable[Trial]) -> LatencyFacts | None:
    """Return mean and maximum; None where no successful trial has a latency."""
    times = [one.latency_s for one in trials if one.passed and one.latency_s is not None]
    if not times:
        return None
    return LatencyFacts(len(times), math.fsum(times) / len(times), max(times))
