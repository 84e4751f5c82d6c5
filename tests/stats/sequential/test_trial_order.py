"""The order of inputs: reproducible, balanced or independent, never sorted."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.errors import InvalidArgument
from trialwise.stats.sequential.concurrency import issue_order

SIZES = st.integers(1, 30)
TRIALS = st.integers(0, 200)
SEEDS = st.integers(0, 2**32)


@given(SIZES, TRIALS, SEEDS)
def test_a_balanced_order_uses_every_input_equally_often(
    inputs: int, trials: int, seed: int
) -> None:
    """Within one, where the trials do not divide by the inputs."""
    counts = Counter(issue_order(inputs, trials, seed=seed))
    uses = [counts[i] for i in range(inputs)]

    assert trials == sum(uses)
    assert max(uses) - min(uses) <= 1


@given(SIZES, TRIALS, SEEDS)
def test_an_order_comes_from_its_seed(inputs: int, trials: int, seed: int) -> None:
    """The same seed gives the same order, whichever way it is drawn."""
    for draw in ("balanced", "independent"):
        first = issue_order(inputs, trials, seed=seed, draw=draw)

        assert first == issue_order(inputs, trials, seed=seed, draw=draw)
        assert all(0 <= i < inputs for i in first)


def test_every_place_sees_every_input() -> None:
    """Over the seeds, no input is tied to a place: a sorted corpus does not stay sorted."""
    orders = [issue_order(4, 8, seed=seed) for seed in range(400)]
    for place in range(8):
        counts = Counter(order[place] for order in orders)

        # 400 draws at 1/4: five standard deviations are 43.
        assert all(abs(counts[i] - 100) < 44 for i in range(4))


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"inputs": 0, "trials": 1, "seed": 1}, "inputs"),
        ({"inputs": 1, "trials": -1, "seed": 1}, "trials"),
        ({"inputs": 1, "trials": 1, "seed": 0.5}, "seed"),
        ({"inputs": 1, "trials": 1, "seed": 1, "draw": "sorted"}, "draw"),
    ],
)
def test_bad_input_is_refused(arguments: dict[str, object], name: str) -> None:
    """Every refusal names the argument."""
    with pytest.raises(InvalidArgument, match=name):
        issue_order(**arguments)  # type: ignore[arg-type]
