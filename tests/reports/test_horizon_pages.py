"""Every way to declare a horizon has its page."""

from __future__ import annotations

from pathlib import Path

import pytest

import trialwise as tw


@pytest.mark.parametrize(
    ("horizon", "shown"),
    [
        (6, "6 runs"),
        (tw.model.Horizon(gates=6), "6 release gates"),
        (tw.model.Horizon(days=90, per_day=4), "a window of 90 days with 4 runs a day"),
    ],
)
def test_the_page_of_a_run_says_its_horizon(
    tmp_path: Path, horizon: int | tw.model.Horizon, shown: str
) -> None:
    """A horizon in gates or days is written as it was declared, and a number as this many runs."""
    criterion = tw.Criterion("right", tw.contains("yes"), at_least=0.5)
    contract = tw.Contract("sums", lambda _: "yes", [criterion])
    result = tw.run(contract, inputs=["a"], store=None, seed=1, horizon=horizon)

    assert shown in result.write(tmp_path / "page.html").read_text()
