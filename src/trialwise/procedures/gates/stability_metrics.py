"""How steady the sessions were: four heuristics a run, and the runs of each input together.

The weakest score is the worst of all runs, the score a mean over inputs of the mean over their
runs, and the variance a mean over inputs of the variance between runs of one: that two prompts
differ is no swing. A sub-score as a target is the lowest of all runs, and drifted runs are counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trialwise.model.gate import Stability, targets_of
from trialwise.model.metrics import RunStability, StabilityEvidence
from trialwise.model.trial import Trial
from trialwise.procedures.gates.gate_intervals import COUNTED, Measured, Runs, variance_interval
from trialwise.procedures.metrics import Reach, mean_interval, mean_of
from trialwise.stats.result_types import Undefined
from trialwise.stats.trace_shape import TraceShape
from trialwise.stats.trace_stability import (
    SUB_SCORES,
    StabilityReport,
    drift_flags,
    is_short,
    stability_of_shape,
)

_UNSEEN = Undefined("no run told of its session")
_MINIMUM = Undefined(
    "the worst of these runs is no quantity of a population: further runs may be worse"
)
_SINGLE = Undefined("an input has one run only, which has no variance")


def measure_stability(
    gate: Stability, runs: Runs, reach: Reach
) -> tuple[StabilityEvidence, Mapping[str, Measured]]:
    """Measure the sub-scores of every run, and the number of every target.

    Args:
        gate: What is asked.
        runs: The runs of each input, in the order of inputs.
        reach: What intervals are about.
    """
    seen = {
        name: reports
        for name, mine in runs.items()
        if (reports := [_run(one, one.shape, gate) for one in mine if one.shape is not None])
    }
    every = [one for mine in runs.values() for one in mine]
    found = sorted((run for mine in seen.values() for run, _ in mine), key=lambda run: run.trial)
    evidence = StabilityEvidence(
        runs=tuple(found),
        exclude=gate.exclude,
        unmeasured=sum(trial.shape is None for trial in every),
        short=sum(is_short(trial.shape) for trial in every if trial.shape is not None),
    )
    by_input = [[report for _, report in mine] for mine in seen.values()]
    measured = _targets(gate, by_input, reach)
    if found:
        for name in SUB_SCORES:
            lowest = min(getattr(run, name) for run in found)
            measured[f"stability.{name}"] = Measured(lowest, _MINIMUM)
        drifted = sum(bool(run.drift) for run in found)
        measured["stability.drifted"] = Measured(float(drifted), COUNTED)
    return evidence, measured


def _targets(
    gate: Stability, reports: Sequence[Sequence[StabilityReport]], reach: Reach
) -> dict[str, Measured]:
    if not reports:
        return dict.fromkeys(targets_of(gate.name), Measured(_UNSEEN, _UNSEEN))
    scores = [[one.weakest_score_without(gate.exclude) for one in mine] for mine in reports]
    confidence = gate.confidence
    score = mean_of([mean_of(mine) for mine in scores])
    fewest = min(map(len, scores))
    mean = mean_interval(score, len(scores), fewest, confidence=confidence, reach=reach)
    weakest = min(min(mine) for mine in scores)
    spread = Measured(_SINGLE, _SINGLE)
    if fewest > 1:
        from statistics import pvariance

        # In rationals, so that equal runs have a variance of exactly 0.
        variance = mean_of([pvariance(mine) for mine in scores])
        within = variance_interval(scores, confidence=confidence, reach=reach)
        spread = Measured(variance, within)
    return {
        "stability.score": Measured(score, mean),
        "stability.weakest_score": Measured(weakest, _MINIMUM),
        "stability.variance": spread,
    }


def _run(trial: Trial, shape: TraceShape, gate: Stability) -> tuple[RunStability, StabilityReport]:
    report = stability_of_shape(shape, tokens_per_call=gate.tokens_per_call)
    run = RunStability(
        input_id=trial.input_id,
        trial=trial.index,
        tool_usage_stability=report.tool_usage_stability,
        response_consistency=report.response_consistency,
        redundancy=report.redundancy,
        cost_per_progress=report.cost_per_progress,
        weakest_score=report.weakest_score_without(gate.exclude),
        drift=drift_flags(report, gate.floors),
    )
    return run, report
