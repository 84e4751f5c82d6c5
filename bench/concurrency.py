"""How many trials more a run starts that has several in flight: `python -m bench.concurrency`.

The run's own state hands out the trials; a simulated clock says when each one returns. Latencies
are lognormal (sigma 1: one trial in forty takes more than seven times the median).
"""

from __future__ import annotations

import heapq
import sys
from pathlib import Path
from random import Random
from statistics import mean
from typing import NamedTuple

import trialwise as tw
from trialwise.engine.run_state import RunState, TrialStart
from trialwise.model.plan import Plan
from trialwise.model.trial import CheckResult, FailReason, Outcome, Trial
from trialwise.runtime.preparing import prepare
from trialwise.testing import VirtualClock

RATES = (1.0, 0.97, 0.95, 0.8)
CONCURRENCIES = (1, 4, 8, 20, 50)
_PASSED = CheckResult.ok()
_FAILED = CheckResult.fail("no", reason=FailReason.CONDITION)


class Simulated(NamedTuple):
    """What one run took."""

    needed: int
    """Trials that its decision rests on."""
    started: int
    """Trials that were started, also those that were cancelled."""
    seconds: float
    """How long it took, where a trial takes 1 s at the median."""


def plan_run(concurrency: int) -> Plan:
    """Plan a run of one criterion with a required rate of 90 %."""
    criterion = tw.Criterion("right", tw.contains("yes"), at_least=0.9)
    contract = tw.Contract("simulated", str, [criterion], sampling=["question"])
    return prepare(contract, tw.RunOptions(seed=1, concurrency=concurrency), Path("baselines"))


def simulate(plan: Plan, rate: float, source: Random) -> Simulated:
    """Simulate one run of a service with a known rate."""
    clock = VirtualClock()
    state = RunState(plan, clock=clock)
    (experiment,) = plan.experiments
    flying: list[tuple[float, int, TrialStart]] = []
    started = 0
    while not state.lets_go:
        while isinstance(step := state.next(), TrialStart):
            started += 1
            ends_s = clock.time + source.lognormvariate(0, 1)
            heapq.heappush(flying, (ends_s, step.index, step))
        if not flying:
            break
        clock.time, _, step = heapq.heappop(flying)
        result = _PASSED if source.random() < rate else _FAILED
        state.completed(
            Trial(
                experiment=experiment.name,
                index=step.index,
                input_id=experiment.input_ids[step.position],
                seed=step.seed,
                outcomes=(Outcome(criterion="right", result=result),),
            )
        )
    (stream,) = state.experiments[0].progress[0].streams
    return Simulated(stream.next_place, started, clock.time)


def main() -> None:
    """Print a line for each rate and concurrency."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    print("| true rate | in flight | needed | started beyond that | at most | time |")
    print("|--:|--:|--:|--:|--:|--:|")
    for rate in RATES:
        for concurrency in CONCURRENCIES:
            plan, source = plan_run(concurrency), Random(f"{rate}/{concurrency}")
            found = [simulate(plan, rate, source) for _ in range(runs)]
            further = [one.started - one.needed for one in found]
            print(
                f"| {rate:.0%} | {concurrency} | {mean(one.needed for one in found):.0f} "
                f"| {mean(further):.1f} | {max(further)} "
                f"| {mean(one.seconds for one in found):.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
