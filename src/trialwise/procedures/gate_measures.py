"""What gates measure: reliability, stability and scores of each input's runs, and their means.

Each gate has one function, from the runs of every input to the number of every target.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from trialwise import stats
from trialwise.model.gate import Metrics, Reliability, Stability, find_target, targets_of
from trialwise.model.metrics import (
    CriterionPassK,
    GateEvidence,
    InputReliability,
    InputScore,
    MetricsEvidence,
    PassK,
    ReliabilityEvidence,
    RunCount,
    RunStability,
    StabilityEvidence,
)
from trialwise.model.trial import Trial
from trialwise.procedures import metrics
from trialwise.stats.normal import upper_z
from trialwise.stats.run_reliability import WALD_LEVELS
from trialwise.stats.trace_stability import SUB_SCORES, is_short

# --- Reliability: do all runs of an input succeed? ------------------------------------------------

_MEANS = ("pass_at_k", "passhat_k", "variance_amplification", "graceful_degradation")


def measure_reliability(
    gate: Reliability,
    runs: metrics.Runs,
    graders: Mapping[str, Sequence[str]],
    reach: metrics.Reach,
) -> tuple[ReliabilityEvidence, Mapping[str, metrics.Measured]]:
    """Measure the summary of every input, and the number of every target.

    Args:
        gate: What is asked.
        runs: The runs of each input, in the order of inputs.
        graders: The criteria of each input, all of which a run passes.
        reach: What intervals are about.
    """
    outcomes = {
        name: metrics.outcomes_of(mine, graders[name]) for name, mine in runs.items() if mine
    }
    untried = tuple(name for name, mine in runs.items() if not mine)
    if not outcomes:
        evidence = ReliabilityEvidence(criterion=gate.criterion, inputs=(), untried=untried)
        return evidence, dict.fromkeys(
            targets_of(gate.name), metrics.Measured(metrics.UNTRIED, metrics.UNTRIED)
        )
    summaries = [stats.summarize(mine) for mine in outcomes.values()]
    fewest = min(one.runs for one in summaries)
    evidence = ReliabilityEvidence(
        criterion=gate.criterion,
        inputs=tuple(
            InputReliability(input_id=name, summary=one)
            for name, one in zip(outcomes, summaries, strict=True)
        ),
        untried=untried,
        decay_curve=tuple(
            metrics.mean_of([one.decay_curve[place] for one in summaries])
            for place in range(fewest)
        ),
        recommendation=_recommendation(gate, fewest),
    )
    measured = {"reliability.runs": metrics.Measured(fewest, metrics.COUNTED)}
    for name in _MEANS:
        mean = metrics.mean_of([getattr(one, name) for one in summaries])
        found = _interval(name, summaries, gate.confidence, reach)
        measured[f"reliability.{name}"] = metrics.Measured(mean, metrics.percent(found))
    return evidence, measured


def _interval(
    name: str,
    summaries: Sequence[stats.ReliabilitySummary],
    confidence: float,
    reach: metrics.Reach,
) -> stats.Interval | stats.Undefined:
    """Return the interval of a mean over inputs, before it was rounded to whole percents."""
    tasks = [(one.runs, sum(one.outcomes)) for one in summaries]
    if name == "variance_amplification":
        return metrics.mapped_interval(
            tasks, _spread, confidence=confidence, reach=reach, name="spread"
        )
    if name == "graceful_degradation":
        lengths = [one.runs for one in summaries]
        mean = metrics.mean_of([_late_share(one.outcomes) for one in summaries])
        return metrics.position_weighted_interval(lengths, mean, confidence=confidence, reach=reach)
    # All runs of an input together: k is their number.
    ks = [one.runs for one in summaries]
    figure = metrics.PASS_AT_K if name == "pass_at_k" else metrics.PASS_HAT_K
    return metrics.pass_interval(figure, tasks, ks, confidence=confidence, reach=reach)


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
    wald: int | stats.Undefined = stats.Undefined("it is defined at 90, 95 and 99 % only")
    if confidence in WALD_LEVELS:
        wald = stats.recommend_runs(half, confidence)
    return RunCount(
        half_width=half,
        wilson=stats.recommend_runs_wilson(half, confidence),
        wald=wald,
        # Where half of the runs pass, which is the widest: `recommend_runs_wilson` turned round.
        reached=z / (2 * math.sqrt(runs + z * z)),
    )


# How steady the sessions were: four heuristics a run, and the runs of each input together.
#
# The weakest score is the worst of all runs, the score a mean over inputs of the mean over their
# runs, and the variance a mean over inputs of the variance between runs of one: that two prompts
# differ is no swing. A sub-score as a target is the lowest of all runs, and drifted runs are
# counted.

_UNSEEN = stats.Undefined("no run told of its session")
_MINIMUM = stats.Undefined(
    "the worst of these runs is no quantity of a population: further runs may be worse"
)
_SINGLE = stats.Undefined("an input has one run only, which has no variance")


def measure_stability(
    gate: Stability,
    runs: metrics.Runs,
    graders: Mapping[str, Sequence[str]],  # noqa: ARG001
    reach: metrics.Reach,
) -> tuple[StabilityEvidence, Mapping[str, metrics.Measured]]:
    """Measure the sub-scores of every run, and the number of every target.

    Args:
        gate: What is asked.
        runs: The runs of each input, in the order of inputs.
        graders: Not asked: traces are looked at.
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
            measured[f"stability.{name}"] = metrics.Measured(lowest, _MINIMUM)
        drifted = sum(bool(run.drift) for run in found)
        measured["stability.drifted"] = metrics.Measured(float(drifted), metrics.COUNTED)
    return evidence, measured


def _targets(
    gate: Stability, reports: Sequence[Sequence[stats.StabilityReport]], reach: metrics.Reach
) -> dict[str, metrics.Measured]:
    if not reports:
        return dict.fromkeys(targets_of(gate.name), metrics.Measured(_UNSEEN, _UNSEEN))
    scores = [[one.weakest_score_without(gate.exclude) for one in mine] for mine in reports]
    confidence = gate.confidence
    score = metrics.mean_of([metrics.mean_of(mine) for mine in scores])
    fewest = min(map(len, scores))
    mean = metrics.mean_interval(score, len(scores), fewest, confidence=confidence, reach=reach)
    weakest = min(min(mine) for mine in scores)
    spread = metrics.Measured(_SINGLE, _SINGLE)
    if fewest > 1:
        from statistics import pvariance

        # In rationals, so that equal runs have a variance of exactly 0.
        variance = metrics.mean_of([pvariance(mine) for mine in scores])
        within = metrics.variance_interval(scores, confidence=confidence, reach=reach)
        spread = metrics.Measured(variance, within)
    return {
        "stability.score": metrics.Measured(score, mean),
        "stability.weakest_score": metrics.Measured(weakest, _MINIMUM),
        "stability.variance": spread,
    }


def _run(
    trial: Trial, shape: stats.TraceShape, gate: Stability
) -> tuple[RunStability, stats.StabilityReport]:
    report = stats.stability_of_shape(shape, tokens_per_call=gate.tokens_per_call)
    run = RunStability(
        input_id=trial.input_id,
        trial=trial.index,
        tool_usage_stability=report.tool_usage_stability,
        response_consistency=report.response_consistency,
        redundancy=report.redundancy,
        cost_per_progress=report.cost_per_progress,
        weakest_score=report.weakest_score_without(gate.exclude),
        drift=stats.drift_flags(report, gate.floors),
    )
    return run, report


# pass@k, weighted scores and flakiness of each input's runs, and their means over the inputs.
#
# A run is graded by the criteria: each gives a score, or 1 and 0 where it only passes or fails,
# and weights say how much it counts.

#: Where each path of the grammar stands in a row of the table; a rate is pass^k at k = 1.
_ROW = {
    "pass_rate": ("pass_hat_k", "pass_hat_k_interval"),
    "pass_at": ("pass_at_k", "pass_at_k_interval"),
    "pass_at_naive": ("pass_at_k_naive", "pass_at_k_interval"),
    "pass_hat": ("pass_hat_k", "pass_hat_k_interval"),
    "pass_hat_plugin": ("pass_hat_k_plugin", "pass_hat_k_interval"),
}


def measure_scores(
    gate: Metrics, runs: metrics.Runs, graders: Mapping[str, Sequence[str]], reach: metrics.Reach
) -> tuple[MetricsEvidence, Mapping[str, metrics.Measured]]:
    """Measure the score of every input, and the number of every target.

    Args:
        gate: What is asked.
        runs: The runs of each input, in the order of inputs.
        graders: The criteria that grade the runs of each input; an input without any is unscored.
        reach: What intervals are about.
    """
    scored = {name: mine if graders[name] else () for name, mine in runs.items()}
    stimuli = [_stimulus(name, mine, graders[name], gate) for name, mine in scored.items() if mine]
    evidence = _evidence(gate, scored, graders, stimuli, reach)
    asked: dict[str, int | None] = dict.fromkeys(filter(find_target, targets_of(gate.name)))
    asked |= {one.target: one.k for one in gate.expect}
    return evidence, {
        target: _measure_target(target, k, gate, evidence, reach) for target, k in asked.items()
    }


def _stimulus(
    name: str, runs: Sequence[Trial], graders: Sequence[str], gate: Metrics
) -> stats.StimulusScore:
    marks = [
        [
            stats.GraderResult(grader=one, score=result.mark, passed=result.passed)
            for one in graders
            for result in (trial.outcome(one).result,)
        ]
        for trial in runs
    ]
    weights = {one: gate.weights[one] for one in graders} if gate.weights else None
    return stats.stimulus_score(name, marks, weights=weights, threshold=gate.threshold)


def _evidence(
    gate: Metrics,
    runs: metrics.Runs,
    graders: Mapping[str, Sequence[str]],
    stimuli: Sequence[stats.StimulusScore],
    reach: metrics.Reach,
) -> MetricsEvidence:
    inputs = tuple(_score(one, gate.confidence, reach) for one in stimuli)
    tried = [mine for mine in runs.values() if mine]
    fewest = min(map(len, tried), default=0)
    ks = gate.k or (metrics.usual_ks(fewest) if fewest else [])
    tasks = [(one.trials, one.passed) for one in inputs]
    names = tuple(dict.fromkeys(one for mine in graders.values() for one in mine))
    of_criteria = tuple(
        CriterionPassK(
            criterion=name,
            pass_k=_table(
                [
                    (len(mine), sum(trial.outcome(name).passed for trial in mine))
                    for one, mine in runs.items()
                    if mine and name in graders[one]
                ],
                ks,
                gate.confidence,
                reach,
            ),
        )
        for name in names
    )
    skill = stats.skill_score("", stimuli, threshold=gate.threshold) if stimuli else None
    return MetricsEvidence(
        criterion=gate.criterion,
        weights=dict(gate.weights),
        threshold=gate.threshold,
        inputs=inputs,
        unscored=tuple(name for name, mine in runs.items() if not mine),
        pass_k=_table(tasks, ks, gate.confidence, reach),
        # One criterion alone is the whole.
        criteria=of_criteria if len(names) > 1 else (),
        pass_rate=metrics.mean_of([one.rate for one in inputs]) if inputs else metrics.UNTRIED,
        score=metrics.UNTRIED if skill is None else skill.overall_score,
        passed=metrics.UNTRIED if skill is None else skill.passed,
    )


def _score(stimulus: stats.StimulusScore, confidence: float, reach: metrics.Reach) -> InputScore:
    assert not isinstance(stimulus.metrics, stats.Undefined)
    assert not isinstance(stimulus.flakiness, stats.Undefined)
    assert not isinstance(stimulus.aggregate_score, stats.Undefined)
    trials, passed = stimulus.metrics.trials, stimulus.metrics.successes
    return InputScore(
        input_id=stimulus.name,
        trials=trials,
        passed=passed,
        rate=stimulus.metrics.pass_rate,
        interval=metrics.UNREACHED
        if reach is metrics.Reach.NOTHING
        else stats.clopper_pearson(passed, trials, confidence=confidence),
        score=stimulus.aggregate_score,
        flaky=stimulus.flakiness.flaky,
        flakiness=stimulus.flakiness.percent,
    )


def _table(
    tasks: Sequence[tuple[int, int]], ks: Sequence[int], confidence: float, reach: metrics.Reach
) -> tuple[PassK, ...]:
    return tuple(metrics.pass_k_of(tasks, k, confidence=confidence, reach=reach) for k in ks)


def _measure_target(
    target: str, k: int | None, gate: Metrics, evidence: MetricsEvidence, reach: metrics.Reach
) -> metrics.Measured:
    inputs = evidence.inputs
    if not inputs:
        return metrics.Measured(metrics.UNTRIED, metrics.UNTRIED)
    path = target.split(".")[1]
    if path in _ROW:
        tasks = [(one.trials, one.passed) for one in inputs]
        row = metrics.pass_k_of(tasks, k or 1, confidence=gate.confidence, reach=reach)
        value, interval = _ROW[path]
        return metrics.Measured(getattr(row, value), getattr(row, interval))
    if path == "score":
        return _overall(gate, evidence, reach)
    if path == "flakiness":
        return _flakiness(gate, evidence, reach)
    return metrics.Measured(
        len(evidence.flaky if path == "flaky" else evidence.unscored), metrics.COUNTED
    )


def _overall(gate: Metrics, evidence: MetricsEvidence, reach: metrics.Reach) -> metrics.Measured:
    score, inputs = evidence.score, evidence.inputs
    assert not isinstance(score, stats.Undefined)
    fewest = min(one.trials for one in inputs)
    found = metrics.mean_interval(
        score, len(inputs), fewest, confidence=gate.confidence, reach=reach
    )
    return metrics.Measured(score, found)


def _flakiness(gate: Metrics, evidence: MetricsEvidence, reach: metrics.Reach) -> metrics.Measured:
    inputs = evidence.inputs
    mean = metrics.mean_of([one.flakiness for one in inputs])
    found = metrics.mapped_interval(
        [(one.trials, one.passed) for one in inputs],
        lambda rate: 2 * min(rate, 1 - rate),
        confidence=gate.confidence,
        reach=reach,
        name="rarer outcome",
    )
    # The rarer outcome has at most half, so that twice its share fills the range from 0 to 1.
    return metrics.Measured(mean, metrics.percent(found, of=50))


#: What measures the runs of each gate, by its name.
MEASURES: dict[str, Callable[..., tuple[GateEvidence, Mapping[str, metrics.Measured]]]] = {
    "reliability": measure_reliability,
    "stability": measure_stability,
    "metrics": measure_scores,
}
