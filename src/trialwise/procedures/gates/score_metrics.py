"""pass@k, weighted scores and flakiness of each input's runs, and their means over the inputs.

A run is graded by the criteria: each gives a score, or 1 and 0 where it only passes or fails, and
weights say how much it counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trialwise.model.gate import Metrics, basis_of, targets_of
from trialwise.model.metrics import CriterionPassK, InputScore, MetricsEvidence, PassK
from trialwise.model.trial import Trial
from trialwise.procedures.gates.gate_intervals import (
    COUNTED,
    Measured,
    Runs,
    mapped_interval,
    percent,
)
from trialwise.procedures.metrics import (
    UNREACHED,
    UNTRIED,
    Reach,
    mean_interval,
    mean_of,
    pass_k_of,
    usual_ks,
)
from trialwise.stats.rate_intervals import clopper_pearson
from trialwise.stats.result_types import Undefined
from trialwise.stats.skill_scores import GraderResult, StimulusScore, skill_score, stimulus_score

#: Where each path of the grammar stands in a row of the table; a rate is pass^k at k = 1.
_ROW = {
    "pass_rate": ("pass_hat_k", "pass_hat_k_interval"),
    "pass_at": ("pass_at_k", "pass_at_k_interval"),
    "pass_at_naive": ("pass_at_k_naive", "pass_at_k_interval"),
    "pass_hat": ("pass_hat_k", "pass_hat_k_interval"),
    "pass_hat_plugin": ("pass_hat_k_plugin", "pass_hat_k_interval"),
}


def measure_scores(
    gate: Metrics, runs: Runs, graders: Mapping[str, Sequence[str]], reach: Reach
) -> tuple[MetricsEvidence, Mapping[str, Measured]]:
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
    asked: dict[str, int | None] = dict.fromkeys(filter(basis_of, targets_of(gate.name)))
    asked |= {one.target: one.k for one in gate.expect}
    return evidence, {
        target: _measure_target(target, k, gate, evidence, reach) for target, k in asked.items()
    }


def _stimulus(
    name: str, runs: Sequence[Trial], graders: Sequence[str], gate: Metrics
) -> StimulusScore:
    marks = [
        [
            GraderResult(grader=one, score=result.mark, passed=result.passed)
            for one in graders
            for result in (trial.outcome(one).result,)
        ]
        for trial in runs
    ]
    weights = {one: gate.weights[one] for one in graders} if gate.weights else None
    return stimulus_score(name, marks, weights=weights, threshold=gate.threshold)


def _evidence(
    gate: Metrics,
    runs: Runs,
    graders: Mapping[str, Sequence[str]],
    stimuli: Sequence[StimulusScore],
    reach: Reach,
) -> MetricsEvidence:
    inputs = tuple(_score(one, gate.confidence, reach) for one in stimuli)
    tried = [mine for mine in runs.values() if mine]
    fewest = min(map(len, tried), default=0)
    ks = gate.k or (usual_ks(fewest) if fewest else [])
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
    skill = skill_score("", stimuli, threshold=gate.threshold) if stimuli else None
    return MetricsEvidence(
        criterion=gate.criterion,
        weights=dict(gate.weights),
        threshold=gate.threshold,
        inputs=inputs,
        unscored=tuple(name for name, mine in runs.items() if not mine),
        pass_k=_table(tasks, ks, gate.confidence, reach),
        # One criterion alone is the whole.
        criteria=of_criteria if len(names) > 1 else (),
        pass_rate=mean_of([one.rate for one in inputs]) if inputs else UNTRIED,
        score=UNTRIED if skill is None else skill.overall_score,
        passed=UNTRIED if skill is None else skill.passed,
    )


def _score(stimulus: StimulusScore, confidence: float, reach: Reach) -> InputScore:
    assert not isinstance(stimulus.metrics, Undefined)
    assert not isinstance(stimulus.flakiness, Undefined)
    assert not isinstance(stimulus.aggregate_score, Undefined)
    trials, passed = stimulus.metrics.trials, stimulus.metrics.successes
    return InputScore(
        input_id=stimulus.name,
        trials=trials,
        passed=passed,
        rate=stimulus.metrics.pass_rate,
        interval=UNREACHED
        if reach is Reach.NOTHING
        else clopper_pearson(passed, trials, confidence=confidence),
        score=stimulus.aggregate_score,
        flaky=stimulus.flakiness.flaky,
        flakiness=stimulus.flakiness.percent,
    )


def _table(
    tasks: Sequence[tuple[int, int]], ks: Sequence[int], confidence: float, reach: Reach
) -> tuple[PassK, ...]:
    return tuple(pass_k_of(tasks, k, confidence=confidence, reach=reach) for k in ks)


def _measure_target(
    target: str, k: int | None, gate: Metrics, evidence: MetricsEvidence, reach: Reach
) -> Measured:
    inputs = evidence.inputs
    if not inputs:
        return Measured(UNTRIED, UNTRIED)
    path = target.split(".")[1]
    if path in _ROW:
        tasks = [(one.trials, one.passed) for one in inputs]
        row = pass_k_of(tasks, k or 1, confidence=gate.confidence, reach=reach)
        value, interval = _ROW[path]
        return Measured(getattr(row, value), getattr(row, interval))
    if path == "score":
        return _overall(gate, evidence, reach)
    if path == "flakiness":
        return _flakiness(gate, evidence, reach)
    return Measured(len(evidence.flaky if path == "flaky" else evidence.unscored), COUNTED)


def _overall(gate: Metrics, evidence: MetricsEvidence, reach: Reach) -> Measured:
    score, inputs = evidence.score, evidence.inputs
    assert not isinstance(score, Undefined)
    fewest = min(one.trials for one in inputs)
    found = mean_interval(score, len(inputs), fewest, confidence=gate.confidence, reach=reach)
    return Measured(score, found)


def _flakiness(gate: Metrics, evidence: MetricsEvidence, reach: Reach) -> Measured:
    inputs = evidence.inputs
    mean = mean_of([one.flakiness for one in inputs])
    found = mapped_interval(
        [(one.trials, one.passed) for one in inputs],
        lambda rate: 2 * min(rate, 1 - rate),
        confidence=gate.confidence,
        reach=reach,
        name="rarer outcome",
    )
    # The rarer outcome has at most half, so that twice its share fills the range from 0 to 1.
    return Measured(mean, percent(found, of=50))
