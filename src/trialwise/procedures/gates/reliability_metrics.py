"""The reliability summary of each input's runs, and its means over the inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from trialwise.model.gate import Reliability, targets_of
from trialwise.model.metrics import InputReliability, ReliabilityEvidence, RunCount
from trialwise.procedures.gates.gate_intervals import (
    COUNTED,
    Measured,
    Runs,
    mapped_interval,
    outcomes_of,
    percent,
    position_weighted_interval,
)
from trialwise.procedures.metrics import (
    PASS_AT_K,
    PASS_HAT_K,
    UNTRIED,
    Reach,
    mean_of,
    pass_interval,
)
from trialwise.stats.normal import upper_z
from trialwise.stats.result_types import Interval, Undefined
from trialwise.stats.run_reliability import (
    WALD_LEVELS,
    ReliabilitySummary,
    recommend_runs,
    recommend_runs_wilson,
    summarize,
)

_MEANS = ("pass_at_k", "passhat_k", "variance_amplification", "graceful_degradation")


def measure_reliability(
    gate: Reliability, runs: Runs, criteria: Sequence[str], reach: Reach
) -> tuple[ReliabilityEvidence, Mapping[str, Measured]]:
    """Measure the summary of every input, and the number of every target.

    Args:
        gate: What is asked.
        runs: The runs of each input, in the order of inputs.
        criteria: All of which a run passes.
        reach: What intervals are about.
    """
    outcomes = {name: outcomes_of(mine, criteria) for name, mine in runs.items() if mine}
    untried = tuple(name for name, mine in runs.items() if not mine)
    if not outcomes:
        evidence = ReliabilityEvidence(criterion=gate.criterion, inputs=(), untried=untried)
        return evidence, dict.fromkeys(targets_of(gate.name), Measured(UNTRIED, UNTRIED))
    summaries = [summarize(mine) for mine in outcomes.values()]
    fewest = min(one.runs for one in summaries)
    evidence = ReliabilityEvidence(
        criterion=gate.criterion,
        inputs=tuple(
            InputReliability(input_id=name, summary=one)
            for name, one in zip(outcomes, summaries, strict=True)
        ),
        untried=untried,
        decay_curve=tuple(
            mean_of([one.decay_curve[place] for one in summaries]) for place in range(fewest)
        ),
        recommendation=_recommendation(gate, fewest),
    )
    measured = {"reliability.runs": Measured(fewest, COUNTED)}
    for name in _MEANS:
        mean = mean_of([getattr(one, name) for one in summaries])
        found = _interval(name, summaries, gate.confidence, reach)
        measured[f"reliability.{name}"] = Measured(mean, percent(found))
    return evidence, measured


def _interval(
    name: str, summaries: Sequence[ReliabilitySummary], confidence: float, reach: Reach
) -> Interval | Undefined:
    """Return the interval of a mean over inputs, before it was rounded to whole percents."""
    tasks = [(one.runs, sum(one.outcomes)) for one in summaries]
    if name == "variance_amplification":
        return mapped_interval(tasks, _spread, confidence=confidence, reach=reach, name="spread")
    if name == "graceful_degradation":
        lengths = [one.runs for one in summaries]
        mean = mean_of([_late_share(one.outcomes) for one in summaries])
        return position_weighted_interval(lengths, mean, confidence=confidence, reach=reach)
    # All runs of an input together: k is their number.
    ks = [one.runs for one in summaries]
    figure = PASS_AT_K if name == "pass_at_k" else PASS_HAT_K
    return pass_interval(figure, tasks, ks, confidence=confidence, reach=reach)


def _spread(rate: float) -> float:
    """Return the standard deviation of one run's outcome, of the greatest there is."""
    return 2 * math.sqrt(rate * (1 - rate))


def _late_share(outcomes: Sequence[bool]) -> float:
    """Return the share of runs passed, run i counted i times."""
    earned = sum(place for place, passed in enumerate(outcomes, start=1) if passed)
    return 2 * earned / (len(outcomes) * (len(outcomes) + 1))


def _recommendation(gate: Reliability, runs: int) -> RunCount:
    half, confidence = gate.half_width, gate.confidence
    z = upper_z((1 - confidence) / 2)
    wald: int | Undefined = Undefined("it is defined at 90, 95 and 99 % only")
    if confidence in WALD_LEVELS:
        wald = recommend_runs(half, confidence)
    return RunCount(
        half_width=half,
        wilson=recommend_runs_wilson(half, confidence),
        wald=wald,
        # Where half of the runs pass, which is the widest: `recommend_runs_wilson` turned round.
        reached=z / (2 * math.sqrt(runs + z * z)),
    )
