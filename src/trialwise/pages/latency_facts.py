"""The latencies of successful trials, summed up for every report."""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection
from typing import NamedTuple

from trialwise.model.run import RunRecord, list_latencies


class LatencyFacts(NamedTuple):
    """How long the successful trials took."""

    successes: int
    mean_s: float
    maximum_s: float


def summarize_latencies(
    record: RunRecord, experiments: Collection[str] | None = None
) -> LatencyFacts | None:
    """Return mean and maximum; None where no successful trial has a latency.

    Args:
        record: The run.
        experiments: Those whose trials count; None where all do.
    """
    times = array("d")
    for one in record.trials.tables:
        if experiments is None or one.experiment in experiments:
            times += list_latencies(one, record.plan.reported)
    if not times:
        return None
    return LatencyFacts(len(times), math.fsum(times) / len(times), max(times))
