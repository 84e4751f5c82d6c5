"""The issue order: how often, in what order, and the same every time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.engine.criterion_progress import issue_places
from trialwise.model.claim import SamplingMode
from trialwise.model.plan import ExperimentPlan
from trialwise.stats.sequential.concurrency import Draw

REPETITIONS = st.lists(st.integers(1, 4), min_size=1, max_size=6)


def experiment(
    repetitions: Sequence[int],
    trials: int,
    *,
    draw: Draw = "balanced",
    mode: SamplingMode = SamplingMode.WITH_REPLACEMENT,
    name: str = "inputs",
) -> ExperimentPlan:
    return ExperimentPlan(
        name=name,
        identifier=name,
        fingerprint="f",
        input_ids=tuple(map(str, range(len(repetitions)))),
        repetitions=tuple(repetitions),
        trials=trials,
        draw=draw,
        sampling_mode=mode,
    )


@given(repetitions=REPETITIONS, passes=st.integers(0, 5), seed=st.integers(0, 99), data=st.data())
def test_a_balanced_order_holds_every_input_as_often_as_it_is_repeated(
    repetitions: list[int], passes: int, seed: int, data: st.DataObject
) -> None:
    """Exactly so in whole passes, and within one pass of it otherwise."""
    rest = data.draw(st.integers(0, sum(repetitions) - 1))
    plan = experiment(repetitions, passes * sum(repetitions) + rest)

    counts = Counter(issue_places(plan, seed=seed, each_input=False))

    for position, often in enumerate(repetitions):
        assert passes * often <= counts[position] <= (passes + (rest > 0)) * often
    assert plan.trials == counts.total()


def test_a_balanced_order_is_shuffled_over_the_whole_list() -> None:
    """Not in blocks: some input comes three times before another comes once."""
    order = issue_places(experiment([1] * 4, 400), seed=1, each_input=False)
    blocks = [sorted(order[start : start + 4]) for start in range(0, 400, 4)]

    assert [0, 1, 2, 3] in blocks
    assert any(block != [0, 1, 2, 3] for block in blocks)


def test_independent_draws_come_in_proportion_to_repetitions() -> None:
    """40,000 draws: the counts stay within five standard deviations of the binomial's mean."""
    repetitions, trials = [1, 2, 5], 40_000
    plan = experiment(repetitions, trials, draw="independent")

    counts = Counter(issue_places(plan, seed=3, each_input=False))

    for position, often in enumerate(repetitions):
        share = often / 8
        sd = (trials * share * (1 - share)) ** 0.5
        assert abs(counts[position] - trials * share) < 5 * sd
    # Balanced, they would be exact.
    assert counts[0] != trials / 8


@given(repetitions=REPETITIONS, trials=st.integers(1, 60), seed=st.integers(0, 99))
def test_blocks_give_every_input_its_turn(repetitions: list[int], trials: int, seed: int) -> None:
    """Trial `index` is trial `index // inputs` of its input, so that all streams go on evenly."""
    inputs = len(repetitions)
    order = issue_places(experiment(repetitions, trials), seed=seed, each_input=True)

    assert trials == len(order)
    seen: Counter[int] = Counter()
    for index, position in enumerate(order):
        assert index // inputs == seen[position]
        seen[position] += 1


@pytest.mark.parametrize("mode", [SamplingMode.WITHOUT_REPLACEMENT, SamplingMode.EXHAUSTIVE])
@pytest.mark.parametrize("each_input", [False, True])
@given(repetitions=REPETITIONS, trials=st.integers(1, 12), seed=st.integers(0, 99))
def test_without_replacement_no_input_comes_twice(
    mode: SamplingMode, each_input: bool, repetitions: list[int], trials: int, seed: int
) -> None:
    """However often it says it is repeated."""
    plan = experiment(repetitions, trials, mode=mode, draw="independent")

    order = issue_places(plan, seed=seed, each_input=each_input)

    assert min(trials, len(repetitions)) == len(order) == len(set(order))


@pytest.mark.parametrize("each_input", [False, True])
@pytest.mark.parametrize("draw", ["balanced", "independent"])
def test_the_order_depends_on_seed_and_experiment_alone(draw: Draw, each_input: bool) -> None:
    """The same twice; another seed or another name gives another."""

    def order(seed: int, name: str) -> list[int]:
        plan = experiment([1] * 5, 50, draw=draw, name=name)
        return list(issue_places(plan, seed=seed, each_input=each_input))

    assert order(1, "a") == order(1, "a")
    assert order(1, "a") != order(2, "a")
    assert order(1, "a") != order(1, "b")


def test_a_hundred_thousand_trials_are_ordered() -> None:
    """With one input there is nothing to shuffle."""
    many = issue_places(experiment([1] * 7, 100_000), seed=1, each_input=True)
    single = issue_places(experiment([1], 100_000), seed=1, each_input=True)

    assert 100_000 == len(many) == len(single)
    assert {0} == set(single)
