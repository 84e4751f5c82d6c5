"""What a run can cost is told by what trials cost before, or by what the suite says now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import trialwise as tw
from trialwise.runtime.earlier_runs import find_expense


def run(store: Path, service: Any, **given: Any) -> None:
    criterion = tw.Criterion("says-yes", tw.contains("yes"), at_least=0.5, trials=20)
    contract = tw.Contract("c", service, [criterion], sampling=["x"])
    tw.run(contract, store=store, progress=False, **given)


@pytest.mark.parametrize(("now", "cost"), [(0.01, 0.01), (0.5, 0.5), (None, 0.01)])
def test_a_changed_cost_per_trial_holds_although_a_run_is_stored(
    tmp_path: Path, now: float | None, cost: float
) -> None:
    """What the stored run cost was only what the suite said at that time."""
    run(tmp_path, lambda _: "yes", cost_per_trial_usd=0.01)
    found = find_expense("c", now, tmp_path)

    assert found is not None
    assert found.trial_usd == pytest.approx(cost)
    assert found.trial_s is not None


def test_what_a_service_told_is_known_better_than_a_declaration(tmp_path: Path) -> None:
    """Where the service says what a trial cost, the declaration is not needed."""
    run(tmp_path, lambda _: tw.Reply(value="yes", cost_usd=0.2), cost_per_trial_usd=0.01)
    found = find_expense("c", 0.5, tmp_path)

    assert found is not None
    assert found.trial_usd == pytest.approx(0.2)
