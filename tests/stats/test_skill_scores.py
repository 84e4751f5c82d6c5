"""Multi-trial metrics and scores against the scoring document, by its readings, and fractions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.errors import InvalidArgument
from trialwise.stats.result_types import Undefined
from trialwise.stats.skill_scores import (
    GraderResult,
    SkillMetrics,
    StimulusScore,
    flakiness,
    multi_trial_metrics,
    skill_score,
    stimulus_score,
)

OUTCOMES = st.lists(st.booleans(), min_size=1, max_size=40)


def mark(grader: str = "a", score: float = 1.0, passed: bool | None = None) -> GraderResult:
    return GraderResult(grader=grader, score=score, passed=score == 1 if passed is None else passed)


def graded(name: str, outcomes: list[bool], **options: int) -> StimulusScore:
    return stimulus_score(name, [[mark(score=float(passed))] for passed in outcomes], **options)  # type: ignore[arg-type]


# Multi-trial metrics


def test_the_documents_example_with_its_slip_set_right() -> None:
    """Four of five: rate 0.8, pass@5 1.0 (printed 0.99), plug-in pass^5 0.32768, unbiased 0."""
    metrics = multi_trial_metrics([True, True, False, True, True])

    assert (metrics.pass_rate, metrics.pass_at_k, metrics.pass_hat_k) == (0.8, 1.0, 0.0)
    assert metrics.pass_hat_k_plugin == pytest.approx(0.32768, rel=1e-14)
    assert (metrics.k, metrics.trials, metrics.successes) == (5, 5, 4)


def test_a_k_below_the_trials_tells_more() -> None:
    """Four of five at k = 2: no pair misses, 6 of 10 pairs are all passes."""
    metrics = multi_trial_metrics([True, True, False, True, True], k=2)

    assert (metrics.pass_at_k, metrics.pass_hat_k, metrics.k) == (1.0, 0.6, 2)
    assert metrics.pass_hat_k_plugin == pytest.approx(0.64, rel=1e-14)


@given(outcomes=OUTCOMES, data=st.data())
def test_at_k_equal_n_the_unbiased_pair_is_any_and_all(
    outcomes: list[bool], data: st.DataObject
) -> None:
    """It carries nothing else, and the order of trials never matters."""
    metrics = multi_trial_metrics(outcomes)

    assert metrics.pass_at_k == float(any(outcomes))
    assert metrics.pass_hat_k == float(all(outcomes))
    assert metrics.pass_rate == pytest.approx(float(Fraction(sum(outcomes), len(outcomes))))
    assert metrics == multi_trial_metrics(data.draw(st.permutations(outcomes)))


@pytest.mark.parametrize("k", [0, 6, -1, 2.0, True])
def test_a_k_outside_the_trials_is_refused(k: object) -> None:
    """k is a whole number from 1 to n."""
    with pytest.raises(InvalidArgument, match="k must"):
        multi_trial_metrics([True] * 5, k=k)  # type: ignore[arg-type]


# Flakiness


@pytest.mark.parametrize(
    ("letters", "flaky", "percent"),
    [("PPFPP", True, 20.0), ("PF", True, 50.0), ("PPP", False, 0.0), ("FF", False, 0.0)],
)
def test_flakiness_is_the_rarer_outcomes_share(letters: str, flaky: bool, percent: float) -> None:
    """20 % at four of five, 50 % at most, 0 when the trials agree."""
    result = flakiness([letter == "P" for letter in letters])

    assert (result.flaky, result.percent) == (flaky, percent)


@given(outcomes=OUTCOMES)
def test_flakiness_does_not_know_pass_from_fail(outcomes: list[bool]) -> None:
    """Swapping the outcomes changes nothing; flaky means a rate strictly between 0 and 1."""
    result = flakiness(outcomes)

    assert result == flakiness([not passed for passed in outcomes])
    assert result.flaky == (0 < sum(outcomes) < len(outcomes)) == (result.percent > 0)
    assert 0 <= result.percent <= 50


@pytest.mark.parametrize("function", [multi_trial_metrics, flakiness])
@pytest.mark.parametrize("outcomes", [[], [1], "PF", None])
def test_outcomes_are_bools_and_at_least_one(
    function: Callable[..., object], outcomes: object
) -> None:
    """No trials, no metrics."""
    with pytest.raises(InvalidArgument, match="outcomes must be"):
        function(outcomes)


# Stimuli


def test_weights_match_the_documents_example() -> None:
    """(1·1 + 0.5·0) / 1.5 is 0.667 and does not reach 0.7."""
    trial = [mark("a", 1.0), mark("b", 0.0)]

    score = stimulus_score("s", [trial], weights={"a": 1, "b": 0.5}, threshold=0.7)

    assert score.aggregate_score == pytest.approx(2 / 3, rel=1e-15)
    assert score.trial_passed == (False,)
    assert score.weights == (1.0, 0.5)


def test_omitted_weights_are_equal() -> None:
    """Without weights a trial scores the plain mean of its marks."""
    trials = [[mark("a", 1.0), mark("b", 0.0)], [mark("a", 1.0), mark("b", 0.5)]]

    score = stimulus_score("s", trials, threshold=0.5)

    assert score.trial_scores == (0.5, 0.75)
    assert score.aggregate_score == 0.625
    assert score.trial_passed == (True, True)


def test_without_a_threshold_every_grader_must_pass() -> None:
    """A high score does not outvote a grader that failed, nor a low one a grader that passed."""
    trials = [
        [mark("a", 1.0), mark("b", 0.9, passed=False)],
        [mark("a", 0.1, passed=True), mark("b", 0.2, passed=True)],
    ]

    assert stimulus_score("s", trials).trial_passed == (False, True)
    assert stimulus_score("s", trials, threshold=0.5).trial_passed == (True, False)


def test_results_are_kept_by_trial_and_grader() -> None:
    """Everything given is in the result, in its order, with metrics and flakiness over trials."""
    trials = [[mark("a"), mark("b")], [mark("a", 0.0), mark("b")], [mark("a"), mark("b")]]

    score = stimulus_score("s", trials, k=2)

    assert score.trial_results == tuple(map(tuple, trials))
    assert score.metrics == multi_trial_metrics([True, False, True], k=2)
    assert score.flakiness == flakiness([True, False, True])
    assert not score.unscored


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 100), st.integers(0, 100), st.integers(0, 100)), min_size=1
    ),
    scale=st.tuples(st.integers(1, 99), st.integers(1, 99), st.integers(1, 99)),
    limit=st.integers(0, 100),
)
def test_scores_and_passes_are_those_of_the_decimals_written(
    rows: list[tuple[int, int, int]], scale: tuple[int, int, int], limit: int
) -> None:
    """Hundredths, weighted in rationals, decide every trial and the whole skill."""
    exact = [
        Fraction(sum(map(math.prod, zip(row, scale, strict=True))), sum(scale)) for row in rows
    ]
    weights = {name: weight / 100 for name, weight in zip("abc", scale, strict=True)}
    trials = [[mark(name, s / 100) for name, s in zip("abc", row, strict=True)] for row in rows]

    score = stimulus_score("s", trials, weights=weights, threshold=limit / 100)
    skill = skill_score("k", [score, score, score], threshold=limit / 100)

    assert score.trial_scores == pytest.approx([float(each / 100) for each in exact], rel=1e-15)
    assert score.trial_passed == tuple(each >= limit for each in exact)
    assert score.aggregate_score == pytest.approx(float(sum(exact) / len(exact) / 100), rel=1e-14)
    assert skill.passed == (sum(exact) / len(exact) >= limit)


def test_without_graders_a_stimulus_is_unscored() -> None:
    """Its numbers are undefined, neither 0 nor 1, and its trials are kept."""
    score = stimulus_score("s", [[], []], weights={"a": 1.0})

    assert score.unscored
    assert score.trial_results == ((), ())
    assert isinstance(score.aggregate_score, Undefined)
    assert isinstance(score.metrics, Undefined)
    assert isinstance(score.flakiness, Undefined)


@pytest.mark.parametrize(
    ("trials", "options", "argument"),
    [
        ([], {}, "trials"),
        (None, {}, "trials"),
        ([mark()], {}, "trials"),
        ([[1.0]], {}, "trials"),
        ([[mark("a")], []], {}, "trials[1]"),
        ([[mark("a")], [mark("b")]], {}, "trials[1]"),
        ([[mark("a"), mark("b")]], {"weights": {"a": 1}}, "weights"),
        ([[mark("a")]], {"weights": {"a": 1, "typo": 1}}, "weights"),
        ([[mark("a")]], {"weights": ["a"]}, "weights"),
        ([[mark("a")]], {"weights": {"a": 0}}, "weights['a']"),
        ([[mark("a")]], {"weights": {"a": -1}}, "weights['a']"),
        ([[mark("a")]], {"weights": {"a": math.nan}}, "weights['a']"),
        ([[mark("a")]], {"threshold": 1.1}, "threshold"),
        ([[mark("a")]], {"threshold": math.nan}, "threshold"),
        ([[mark("a")]], {"k": 2}, "k"),
    ],
)
def test_a_stimulus_that_cannot_be_scored_is_refused(
    trials: object, options: dict[str, object], argument: str
) -> None:
    """The message names the argument, the trial or the grader at fault."""
    with pytest.raises(InvalidArgument) as refusal:
        stimulus_score("s", trials, **options)  # type: ignore[arg-type]

    assert refusal.value.argument == argument


@pytest.mark.parametrize(
    ("fields", "argument"),
    [
        ({"grader": "a", "score": 1.1, "passed": True}, "score"),
        ({"grader": "a", "score": math.nan, "passed": True}, "score"),
        ({"grader": "a", "score": 1.0, "passed": 1}, "passed"),
        ({"grader": None, "score": 1.0, "passed": True}, "grader"),
    ],
)
def test_a_mark_cannot_be_built_wrong(fields: dict[str, object], argument: str) -> None:
    """A score lies in [0, 1], and passed is a bool."""
    with pytest.raises(InvalidArgument) as refusal:
        GraderResult(**fields)  # type: ignore[arg-type]

    assert refusal.value.argument == argument


# Skills


def test_a_skill_is_a_mean_of_stimuli_and_not_a_pool_of_trials() -> None:
    """Stimuli of 5/5 and 0/5 have a mean plug-in pass^5 of 0.5; pooled trials would say 0.031."""
    skill = skill_score("k", [graded("x", [True] * 5), graded("y", [False] * 5)], threshold=0.5)

    assert skill.overall_score == 0.5
    assert skill.passed is True
    assert skill.metrics == SkillMetrics(
        pass_rate=0.5, pass_at_k=0.5, pass_hat_k=0.5, pass_hat_k_plugin=0.5, k=5, ks=(5, 5)
    )


def test_stimuli_with_different_k_leave_k_unnamed() -> None:
    """Each k is reported; the common one exists only when they are equal."""
    three, five = graded("x", [True] * 3), graded("y", [True] * 5)
    uneven, even = (
        skill_score("k", stimuli).metrics
        for stimuli in ([three, five], [three, graded("y", [True] * 5, k=3)])
    )

    assert isinstance(uneven, SkillMetrics)
    assert isinstance(even, SkillMetrics)
    assert (uneven.k, uneven.ks) == (None, (3, 5))
    assert (even.k, even.ks) == (3, (3, 3))


def test_unscored_stimuli_are_left_out_and_named() -> None:
    """They count neither as 0 nor as 1."""
    scored, unscored = graded("x", [True, False]), stimulus_score("y", [[]])

    skill = skill_score("k", [scored, unscored], threshold=0.5)

    assert skill.overall_score == 0.5
    assert skill.passed is True
    assert skill.unscored == ("y",)
    assert skill.stimuli == (scored, unscored)


def test_a_skill_of_unscored_stimuli_has_no_verdict() -> None:
    """Nothing measured is neither a pass nor a fail."""
    skill = skill_score("k", [stimulus_score("y", [[]])], threshold=0.0)

    assert isinstance(skill.overall_score, Undefined)
    assert isinstance(skill.metrics, Undefined)
    assert isinstance(skill.passed, Undefined)


def test_without_a_threshold_every_trial_must_pass() -> None:
    """One failed trial fails the skill."""
    perfect, flawed = graded("x", [True, True]), graded("y", [True, False])

    assert skill_score("k", [perfect]).passed is True
    assert skill_score("k", [perfect, flawed]).passed is False


@pytest.mark.parametrize(
    ("scores", "threshold"),
    [((0.02, 0.18), 0.1), ((0.03, 0.29), 0.16), ((0.2, 0.4, 0.9), 0.5), ((0.75, 0.65), 0.7)],
)
def test_a_skill_reaches_the_threshold_it_equals(
    scores: tuple[float, ...], threshold: float
) -> None:
    """0.02 and 0.18 average 0.1, though their doubles average to less."""
    stimuli = [stimulus_score("s", [[mark(score=score)]]) for score in scores]
    worse = [*stimuli[:-1], stimulus_score("s", [[mark(score=scores[-1] - 1e-12)]])]

    assert skill_score("k", stimuli, threshold=threshold).passed is True
    assert skill_score("k", worse, threshold=threshold).passed is False


@pytest.mark.parametrize("stimuli", [[], None, [1], "xy"])
def test_a_skill_needs_stimuli(stimuli: object) -> None:
    """At least one StimulusScore, and nothing else."""
    with pytest.raises(InvalidArgument, match="stimuli must"):
        skill_score("k", stimuli)  # type: ignore[arg-type]


def test_a_skill_threshold_is_a_rate() -> None:
    """0.7, not 70."""
    with pytest.raises(InvalidArgument, match="threshold must"):
        skill_score("k", [graded("x", [True])], threshold=70)
