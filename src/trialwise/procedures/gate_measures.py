"""What gates measure: reliability, stability and scores of each input's runs, and their means.

Each gate has one function, from the runs of every input to the number of every target.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from trialwise import stats
from trialwise.model.claim import PopulationClaim
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
from trialwise.stats.binomial import upper_z
from trialwise.stats.run_reliability import WALD_LEVELS
from trialwise.stats.trace_stability import SUB_SCORES, is_short

_NOTHING = metrics.Measured(metrics.UNTRIED, metrics.UNTRIED)

# --- Reliability: do all runs of an input succeed? ------------------------------------------------


def measure_reliability(
    gate: Reliability, runs: metrics.Runs, graders: metrics.Graders, claim: PopulationClaim
) -> tuple[ReliabilityEvidence, Mapping[str, metrics.Measured]]:
    """Measure the summary of every input, and the number of every target.

    Args:
        gate: What is asked.
        runs: The runs of each input, in the order of inputs.
        graders: The criteria of each input, all of which a run passes.
        claim: What intervals are about.
    """
    outcomes = {
        name: [all(trial.outcome(one).passed for one in graders[name]) for trial in mine]
        for name, mine in runs.items()
        if mine
    }
    untried = tuple(name for name, mine in runs.items() if not mine)
    if not outcomes:
        evidence = ReliabilityEvidence(criterion=gate.criterion, inputs=(), untried=untried)
        return evidence, dict.fromkeys(targets_of(gate.name), _NOTHING)
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
    for name, found in _find_intervals(
        summaries, metrics.Intervals(claim, gate.confidence)
    ).items():
        # The source document rounds the figures of an input to whole percents, and means are of
        # those. Intervals are of the figures before they are rounded.
        mean = metrics.mean_of([getattr(one, name) for one in summaries])
        measured[f"reliability.{name}"] = metrics.Measured(mean, metrics.percent(found))
    return evidence, measured


def _find_intervals(
    summaries: Sequence[stats.ReliabilitySummary], intervals: metrics.Intervals
) -> dict[str, metrics.Found]:
    """Return the intervals of means over inputs, before they are rounded to whole percents."""
    tasks = [(one.runs, sum(one.outcomes)) for one in summaries]
    # All runs of an input together: k is their number.
    ks = [one.runs for one in summaries]
    late = metrics.mean_of([_late_share(one.outcomes) for one in summaries])
    return {
        "pass_at_k": intervals.of_passes(metrics.PASS_AT_K, tasks, ks),
        "passhat_k": intervals.of_passes(metrics.PASS_HAT_K, tasks, ks),
        "variance_amplification": intervals.of_mapped(tasks, _spread, "spread"),
        "graceful_degradation": intervals.of_weighted(ks, late),
    }


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
    undefined = stats.Undefined("it is defined at 90, 95 and 99 % only")
    has_wald = confidence in WALD_LEVELS
    return RunCount(
        half_width=half,
        wilson=stats.recommend_runs_wilson(half, confidence),
        wald=stats.recommend_runs(half, confidence) if has_wald else undefined,
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
    "the worst of these runs is not a quantity of a population: further runs may be worse"
)
_SINGLE = stats.Undefined("an input has one run only, which has no variance")


def measure_stability(
    gate: Stability,
    runs: metrics.Runs,
    graders: metrics.Graders,  # noqa: ARG001
    claim: PopulationClaim,
) -> tuple[StabilityEvidence, Mapping[str, metrics.Measured]]:
    """Measure the sub-scores of every run, and the number of every target.

    Args:
        gate: What is asked.
        runs: The runs of each input, in the order of inputs.
        graders: Not asked: traces are looked at.
        claim: What intervals are about.
    """
    every = [one for mine in runs.values() for one in mine]
    scored = [
        [_run(one, one.shape, gate) for one in mine if one.shape is not None]
        for mine in runs.values()
    ]
    evidence = StabilityEvidence(
        runs=tuple(sorted(chain.from_iterable(scored), key=lambda run: run.trial)),
        exclude=gate.exclude,
        unmeasured=sum(trial.shape is None for trial in every),
        short=sum(is_short(trial.shape) for trial in every if trial.shape is not None),
    )
    if not evidence.runs:
        return evidence, dict.fromkeys(targets_of(gate.name), metrics.Measured(_UNSEEN, _UNSEEN))
    drifted = sum(bool(run.drift) for run in evidence.runs)
    measured = {
        f"stability.{name}": metrics.Measured(
            min(getattr(run, name) for run in evidence.runs), _MINIMUM
        )
        for name in SUB_SCORES
    }
    measured["stability.drifted"] = metrics.Measured(float(drifted), metrics.COUNTED)
    scores = [[run.weakest_score for run in mine] for mine in scored if mine]
    return evidence, measured | _measure_weakest(scores, metrics.Intervals(claim, gate.confidence))


def _measure_weakest(
    scores: Sequence[Sequence[float]], intervals: metrics.Intervals
) -> dict[str, metrics.Measured]:
    """Measure the weakest scores of the runs of each input."""
    # A mean over inputs of means over their runs: pooled runs would weigh an input by how often it
    # was tried.
    score, fewest = metrics.mean_of([*map(metrics.mean_of, scores)]), min(map(len, scores))
    spread = metrics.Measured(_SINGLE, _SINGLE)
    if fewest > 1:
        from statistics import pvariance

        # In rationals, so that equal runs have a variance of exactly 0.
        variance = metrics.mean_of([*map(pvariance, scores)])
        spread = metrics.Measured(variance, intervals.of_variance(scores))
    mean = intervals.of_mean(score, len(scores), fewest)
    return {
        "stability.score": metrics.Measured(score, mean),
        "stability.weakest_score": metrics.Measured(min(map(min, scores)), _MINIMUM),
        "stability.variance": spread,
    }


def _run(trial: Trial, shape: stats.TraceShape, gate: Stability) -> RunStability:
    report = stats.stability_of_shape(shape, tokens_per_call=gate.tokens_per_call)
    return RunStability(
        input_id=trial.input_id,
        trial=trial.index,
        **{name: getattr(report, name) for name in SUB_SCORES},
        weakest_score=report.weakest_score_without(gate.exclude),
        drift=stats.drift_flags(report, gate.floors),
    )


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
    gate: Metrics, runs: metrics.Runs, graders: metrics.Graders, claim: PopulationClaim
) -> tuple[MetricsEvidence, Mapping[str, metrics.Measured]]:
    """Measure the score of every input, and the number of every target.

    Args:
        gate: What is asked.
        runs: The runs of each input, in the order of inputs.
        graders: The criteria that grade the runs of each input; an input without any is unscored.
        claim: What intervals are about.
    """
    intervals = metrics.Intervals(claim, gate.confidence)
    # An input without graders has no outcome: it is named as unscored. As a 0 it would lower every
    # mean, as a 1 it would raise them.
    scored = {name: mine if graders[name] else () for name, mine in runs.items()}
    stimuli = [_stimulus(name, mine, graders[name], gate) for name, mine in scored.items() if mine]
    evidence = _evidence(gate, scored, graders, stimuli, intervals)
    asked: dict[str, int | None] = dict.fromkeys(filter(find_target, targets_of(gate.name)))
    asked |= {one.target: one.k for one in gate.expect}
    return evidence, {
        target: _measure_target(target, k, evidence, intervals) for target, k in asked.items()
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
    graders: metrics.Graders,
    stimuli: Sequence[stats.StimulusScore],
    intervals: metrics.Intervals,
) -> MetricsEvidence:
    inputs = tuple(_score(one, intervals) for one in stimuli)
    fewest = min((len(mine) for mine in runs.values() if mine), default=0)
    ks = gate.k or (metrics.usual_ks(fewest) if fewest else [])

    def tabulate(tasks: metrics.Tasks) -> tuple[PassK, ...]:
        return tuple(intervals.pass_k(tasks, k) for k in ks)

    def count_tasks(criterion: str) -> list[tuple[int, int]]:
        return [
            (len(mine), sum(trial.outcome(criterion).passed for trial in mine))
            for name, mine in runs.items()
            if mine and criterion in graders[name]
        ]

    names = tuple(dict.fromkeys(one for mine in graders.values() for one in mine))
    of_criteria = tuple(
        CriterionPassK(criterion=name, pass_k=tabulate(count_tasks(name))) for name in names
    )
    skill = stats.skill_score("", stimuli, threshold=gate.threshold) if stimuli else None
    return MetricsEvidence(
        criterion=gate.criterion,
        weights=dict(gate.weights),
        threshold=gate.threshold,
        inputs=inputs,
        unscored=tuple(name for name, mine in runs.items() if not mine),
        pass_k=tabulate([(one.trials, one.passed) for one in inputs]),
        # One criterion alone is the whole.
        criteria=of_criteria if len(names) > 1 else (),
        pass_rate=metrics.mean_of([one.rate for one in inputs]) if inputs else metrics.UNTRIED,
        score=metrics.UNTRIED if skill is None else skill.overall_score,
        passed=metrics.UNTRIED if skill is None else skill.passed,
    )


def _score(stimulus: stats.StimulusScore, intervals: metrics.Intervals) -> InputScore:
    assert not isinstance(stimulus.metrics, stats.Undefined)
    assert not isinstance(stimulus.flakiness, stats.Undefined)
    assert not isinstance(stimulus.aggregate_score, stats.Undefined)
    trials, passed = stimulus.metrics.trials, stimulus.metrics.successes
    is_reached = intervals.claim is not PopulationClaim.NO_GENERALISATION
    found = stats.clopper_pearson(passed, trials, confidence=intervals.confidence)
    return InputScore(
        input_id=stimulus.name,
        trials=trials,
        passed=passed,
        rate=stimulus.metrics.pass_rate,
        interval=found if is_reached else metrics.UNREACHED,
        score=stimulus.aggregate_score,
        flaky=stimulus.flakiness.flaky,
        flakiness=stimulus.flakiness.percent,
    )


def _measure_target(
    target: str, k: int | None, evidence: MetricsEvidence, intervals: metrics.Intervals
) -> metrics.Measured:
    inputs, path = evidence.inputs, target.split(".")[1]
    if not inputs:
        return _NOTHING
    tasks = [(one.trials, one.passed) for one in inputs]
    if path in _ROW:
        row, (value, interval) = intervals.pass_k(tasks, k or 1), _ROW[path]
        return metrics.Measured(getattr(row, value), getattr(row, interval))
    if path == "score":
        assert not isinstance(evidence.score, stats.Undefined)
        fewest = min(trials for trials, _ in tasks)
        found = intervals.of_mean(evidence.score, len(inputs), fewest)
        return metrics.Measured(evidence.score, found)
    if path == "flakiness":
        mean = metrics.mean_of([one.flakiness for one in inputs])
        rarer = intervals.of_mapped(tasks, lambda rate: 2 * min(rate, 1 - rate), "rarer outcome")
        # The rarer outcome has at most half: twice its share fills the range from 0 to 1.
        return metrics.Measured(mean, metrics.percent(rarer, of=50))
    named = evidence.flaky if path == "flaky" else evidence.unscored
    return metrics.Measured(len(named), metrics.COUNTED)


#: What measures the runs of each gate, by its name.
MEASURES: dict[str, Callable[..., tuple[GateEvidence, Mapping[str, metrics.Measured]]]] = {
    "reliability": measure_reliability,
    "stability": measure_stability,
    "metrics": measure_scores,
}
