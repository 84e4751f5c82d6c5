"""From graders' marks to one score: per trial, per stimulus, per skill.

The definitions of the vally scoring reference, with its two slips set right: pass@k uses the
unbiased estimator everywhere (1 at k = n as soon as one trial passed), and pass^k is given both
unbiased and as the plug-in power, each under its own name.

A stimulus without graders is unscored. It is kept and named, and enters no mean: counting it as
0 would punish, as 1 would reward, what nobody measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from trialwise.decimals import as_written
from trialwise.errors import InvalidArgument
from trialwise.stats.result_types import Count, Undefined
from trialwise.stats.run_reliability import pass_at_k, pass_hat_k, pass_hat_k_plugin
from trialwise.validation import require_outcomes, require_positive, require_rate

#: How close to a threshold a double must be before the comparison is made again in rationals.
_BAND = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiTrialMetrics:
    """What the trials of one stimulus say about its success probability.

    `pass_hat_k` is unbiased; `pass_hat_k_plugin` is pass_rate^k, which is biased upward.
    """

    pass_rate: float
    pass_at_k: float
    pass_hat_k: float
    pass_hat_k_plugin: float
    k: int
    trials: int
    successes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Flakiness:
    """Whether a stimulus both passed and failed, and the share of its rarer outcome in percent."""

    flaky: bool
    percent: float
    """From 0 (always the same outcome) to 50 (half and half)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderResult:
    """What one grader said of one trial."""

    grader: str
    score: float
    """From 0 to 1."""
    passed: bool
    evidence: str = ""

    def __post_init__(self) -> None:
        require_rate("score", self.score)
        if not isinstance(self.passed, bool):
            raise InvalidArgument("passed", self.passed, "be a bool")
        if not isinstance(self.grader, str):
            raise InvalidArgument("grader", self.grader, "be a str")


@dataclass(frozen=True, slots=True, kw_only=True)
class StimulusScore:
    """The graded trials of one stimulus and what they come to."""

    name: str
    trial_results: tuple[tuple[GraderResult, ...], ...]
    """[trial][grader], as given."""
    weights: tuple[float, ...]
    """One per grader, in the graders' order; empty when unscored."""
    threshold: float | None
    trial_scores: tuple[float, ...]
    trial_passed: tuple[bool, ...]
    aggregate_score: float | Undefined
    metrics: MultiTrialMetrics | Undefined
    flakiness: Flakiness | Undefined

    @property
    def unscored(self) -> bool:
        """Whether no grader was configured."""
        return not self.weights


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillMetrics:
    """Means over stimuli of their multi-trial metrics, never metrics of pooled trials."""

    pass_rate: float
    pass_at_k: float
    pass_hat_k: float
    pass_hat_k_plugin: float
    k: int | None
    """The stimuli's common k; None where they differ, and then no single k describes the means."""
    ks: tuple[int, ...]
    """Each scored stimulus's own k, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillScore:
    """The stimuli of one skill and what they come to; unscored ones are kept but not counted."""

    name: str
    stimuli: tuple[StimulusScore, ...]
    threshold: float | None
    overall_score: float | Undefined
    metrics: SkillMetrics | Undefined
    passed: bool | Undefined

    @property
    def unscored(self) -> tuple[str, ...]:
        """The names of the stimuli that entered no mean."""
        return tuple(stimulus.name for stimulus in self.stimuli if stimulus.unscored)


def multi_trial_metrics(outcomes: Sequence[bool], *, k: Count | None = None) -> MultiTrialMetrics:
    """The pass rate, pass@k and pass^k of one stimulus's trials.

    Of c passes in n trials: c/n, 1 − C(n−c, k)/C(n, k), C(c, k)/C(n, k), and (c/n)^k beside it. At
    the default k = n the unbiased pair only says whether any and whether every trial passed; a
    smaller k tells more.

    Parameters
    ----------
    outcomes : sequence of bool
        At least one trial.
    k : int, optional
        From 1 to the number of trials n; n when omitted.

    Examples
    --------
    >>> metrics = multi_trial_metrics([True, True, False, True, True])
    >>> metrics.pass_rate, metrics.pass_at_k, metrics.pass_hat_k, metrics.k
    (0.8, 1.0, 0.0, 5)
    >>> round(metrics.pass_hat_k_plugin, 5)
    0.32768
    >>> multi_trial_metrics([True, True, False, True, True], k=2).pass_hat_k
    0.6
    """
    checked = require_outcomes("outcomes", outcomes)
    trials, successes = len(checked), sum(checked)
    size = trials if k is None else k
    return MultiTrialMetrics(
        pass_rate=successes / trials,
        pass_at_k=pass_at_k(trials, successes, size),
        pass_hat_k=pass_hat_k(trials, successes, size),
        pass_hat_k_plugin=pass_hat_k_plugin(successes / trials, size),
        k=size.__index__(),
        trials=trials,
        successes=successes,
    )


def flakiness(outcomes: Sequence[bool]) -> Flakiness:
    """Whether the trials disagree, and the rarer outcome's share: 100 · min(c, n − c) / n.

    Parameters
    ----------
    outcomes : sequence of bool
        At least one trial.

    Examples
    --------
    >>> flakiness([True, True, False, True, True])
    Flakiness(flaky=True, percent=20.0)
    """
    checked = require_outcomes("outcomes", outcomes)
    rarer = min(sum(checked), len(checked) - sum(checked))
    return Flakiness(flaky=rarer > 0, percent=100 * rarer / len(checked))


def stimulus_score(
    name: str,
    trials: Sequence[Sequence[GraderResult]],
    *,
    weights: Mapping[str, float] | None = None,
    threshold: float | None = None,
    k: Count | None = None,
) -> StimulusScore:
    """The score of one stimulus: each trial's weighted mean of marks, averaged over trials.

    A trial scores Σ w·s / Σ w. It passes when that reaches `threshold` (compared as the decimals
    written, so that 0.7 reaches 0.7), or, without a threshold, when every grader passed it.

    Parameters
    ----------
    name : str
        The stimulus's name, kept.
    trials : sequence of sequences of GraderResult
        At least one trial; the same graders in the same order in each. No grader in any trial
        makes the stimulus unscored, and its numbers undefined.
    weights : mapping of grader name to float, optional
        A positive weight for every grader, or nothing for equal weights.
    threshold : float, optional
        Between 0 and 1.
    k : int, optional
        As in `multi_trial_metrics`.

    Examples
    --------
    >>> marks = [GraderResult(grader="a", score=1, passed=True),
    ...          GraderResult(grader="b", score=0, passed=False)]
    >>> score = stimulus_score("greets", [marks], weights={"a": 1, "b": 0.5}, threshold=0.7)
    >>> round(score.aggregate_score, 3), score.trial_passed
    (0.667, (False,))
    """
    results = _checked_results(trials)
    names = tuple(result.grader for result in results[0])
    scale = _checked_weights(names, weights)
    limit = None if threshold is None else require_rate("threshold", threshold)
    exact = [_weigh_marks(marks, scale) for marks in results] if names else []
    scores = tuple(float(score) for score in exact)
    passed = tuple(
        _trial_passed(marks, score, limit) for marks, score in zip(results, exact, strict=False)
    )
    absent = Undefined("no graders were configured")
    return StimulusScore(
        name=name,
        trial_results=results,
        weights=scale,
        threshold=limit,
        trial_scores=scores,
        trial_passed=passed,
        aggregate_score=math.fsum(scores) / len(scores) if names else absent,
        metrics=multi_trial_metrics(passed, k=k) if names else absent,
        flakiness=flakiness(passed) if names else absent,
    )


def skill_score(
    name: str, stimuli: Sequence[StimulusScore], *, threshold: float | None = None
) -> SkillScore:
    """The score of one skill: means over its scored stimuli.

    Metrics are means of the stimuli's metrics; pooling the trials instead would turn stimuli of
    5/5 and 0/5 from a mean pass^5 of 0.5 into 0.5^5 = 0.031.

    Parameters
    ----------
    name : str
        The skill's name, kept.
    stimuli : sequence of StimulusScore
        At least one. Unscored ones are left out of every mean; if all are, everything is undefined.
    threshold : float, optional
        Between 0 and 1: the skill passes when the overall score reaches it. Without one, when
        every trial of every scored stimulus passed.

    Examples
    --------
    >>> marks = [GraderResult(grader="a", score=1, passed=True)]
    >>> skill = skill_score("manners", [stimulus_score("greets", [marks])], threshold=0.9)
    >>> skill.overall_score, skill.passed
    (1.0, True)
    """
    kept = _checked_stimuli(stimuli)
    limit = None if threshold is None else require_rate("threshold", threshold)
    scored = [stimulus for stimulus in kept if not stimulus.unscored]
    scores = [s.aggregate_score for s in scored if not isinstance(s.aggregate_score, Undefined)]
    overall = _mean(scores) if scores else Undefined("no stimulus was scored")
    return SkillScore(
        name=name,
        stimuli=kept,
        threshold=limit,
        overall_score=overall,
        metrics=_skill_metrics(scored),
        passed=overall if isinstance(overall, Undefined) else _skill_passed(scored, overall, limit),
    )


def _checked_results(
    trials: Sequence[Sequence[GraderResult]],
) -> tuple[tuple[GraderResult, ...], ...]:
    allowed = "be at least one trial, each a sequence of GraderResult"
    try:
        results = tuple(tuple(marks) for marks in trials)
    except TypeError:
        raise InvalidArgument("trials", trials, allowed) from None
    if not results or not all(isinstance(mark, GraderResult) for row in results for mark in row):
        raise InvalidArgument("trials", trials, allowed)
    names = [result.grader for result in results[0]]
    for place, marks in enumerate(results):
        found = [result.grader for result in marks]
        if found != names:
            # A trial that lost a grader would be judged by a different, perhaps kinder, panel.
            raise InvalidArgument(f"trials[{place}]", found, f"have the graders {names}")
    return results


def _checked_weights(
    names: tuple[str, ...], weights: Mapping[str, float] | None
) -> tuple[float, ...]:
    if weights is None or not names:
        return (1.0,) * len(names)
    given: object = weights
    if not isinstance(given, Mapping) or set(given) != set(names):
        raise InvalidArgument(
            "weights", weights, f"give one weight to each of {sorted(set(names))}"
        )
    return tuple(require_positive(f"weights[{name!r}]", weights[name]) for name in names)


def _checked_stimuli(stimuli: object) -> tuple[StimulusScore, ...]:
    kept = tuple(stimuli) if isinstance(stimuli, Iterable) else ()
    if not kept or not all(isinstance(each, StimulusScore) for each in kept):
        raise InvalidArgument("stimuli", stimuli, "be a sequence of at least one StimulusScore")
    return kept


def _weigh_marks(marks: tuple[GraderResult, ...], weights: tuple[float, ...]) -> Fraction:
    scale = [as_written(weight) for weight in weights]
    total = sum((w * as_written(m.score) for w, m in zip(scale, marks, strict=True)), Fraction(0))
    return total / sum(scale)


def _trial_passed(
    marks: tuple[GraderResult, ...], score: Fraction, threshold: float | None
) -> bool:
    if threshold is None:
        return all(mark.passed for mark in marks)
    return score >= as_written(threshold)


def _skill_passed(scored: Sequence[StimulusScore], overall: float, threshold: float | None) -> bool:
    if threshold is None:
        return all(passed for stimulus in scored for passed in stimulus.trial_passed)
    if abs(overall - threshold) > _BAND:
        return overall >= threshold
    return _overall_exactly(scored) >= as_written(threshold)


def _overall_exactly(scored: Sequence[StimulusScore]) -> Fraction:
    total = Fraction(0)
    for stimulus in scored:
        rows = [_weigh_marks(marks, stimulus.weights) for marks in stimulus.trial_results]
        total += sum(rows, Fraction(0)) / len(rows)
    return total / len(scored)


def _skill_metrics(scored: Sequence[StimulusScore]) -> SkillMetrics | Undefined:
    every = [s.metrics for s in scored if not isinstance(s.metrics, Undefined)]
    if not every:
        return Undefined("no stimulus was scored")
    ks = tuple(metrics.k for metrics in every)
    rates = ("pass_rate", "pass_at_k", "pass_hat_k", "pass_hat_k_plugin")
    means = {name: _mean([getattr(metrics, name) for metrics in every]) for name in rates}
    return SkillMetrics(**means, k=ks[0] if len(set(ks)) == 1 else None, ks=ks)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
