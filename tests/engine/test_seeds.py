"""Seeds belong to trials, not to moments."""

from __future__ import annotations

import hashlib
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from trialwise.engine.criterion_progress import derive_seed, trial_seeds


@given(
    run_seed=st.integers(-(2**70), 2**70),
    experiment=st.text(max_size=20),
    index=st.integers(0, 10**6),
)
def test_a_seed_is_the_hash_of_its_run_experiment_and_index(
    run_seed: int, experiment: str, index: int
) -> None:
    """Anybody can compute it: the top 63 bits of a published hash."""
    text = f"trial/{run_seed}/{experiment}/{index}".encode(errors="surrogatepass")
    expected = int(hashlib.blake2b(text, digest_size=8).hexdigest(), 16) >> 1

    assert expected == trial_seeds(run_seed, experiment)(index)
    assert 0 <= expected < 2**63


def test_other_runs_experiments_and_trials_have_other_seeds() -> None:
    """Ten thousand of them without a repetition."""
    seeds = {
        trial_seeds(run, experiment)(index)
        for run in (1, 11, -1)
        for experiment in ("a", "a/1", "1/a", "")
        for index in range(1000)
    }

    assert 12_000 == len(seeds)


def test_another_process_derives_the_same_seeds() -> None:
    """Python's own hash would not."""
    code = (
        "from trialwise.engine.criterion_progress import derive_seed, trial_seeds\n"
        "print(derive_seed('order', 7, 'inputs'), trial_seeds(7, 'inputs')(3))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout

    assert [derive_seed("order", 7, "inputs"), trial_seeds(7, "inputs")(3)] == [
        int(word) for word in shown.split()
    ]
