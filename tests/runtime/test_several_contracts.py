"""Several contracts that are run together."""

from __future__ import annotations

from random import Random
from typing import Any

import trialwise as tw


def _coin(_: str, seed: int) -> str:
    return "ok" if Random(seed).random() < 0.7 else "bad"


def _contracts() -> list[tw.Contract]:
    criterion = tw.Criterion("ok", tw.equals("ok"), at_least=0.5)
    return [tw.Contract(name, _coin, [criterion]).with_inputs(["a"]) for name in ("one", "other")]


def _outcomes(result: Any) -> list[bool]:
    return [trial.passed for trial in result.record.trials]


def test_one_seed_gives_each_contract_trials_of_its_own_and_the_same_ones_again() -> None:
    """In 0.1.0 all contracts of a suite had identical outcomes under `--seed`."""
    given: dict[str, Any] = {"trials": 60, "curtail": False, "store": None, "progress": False}
    first = tw.run_all(_contracts(), seed=1, **given).results
    again = tw.run_all(_contracts(), seed=1, **given).results
    assert _outcomes(first["one"]) != _outcomes(first["other"])
    assert {name: _outcomes(one) for name, one in first.items()} == {
        name: _outcomes(one) for name, one in again.items()
    }
    # Alone, a contract repeats its trials with the seed that its report names.
    seed = first["other"].record.plan.seed
    alone = tw.run(_contracts()[1], seed=seed, **given)
    assert _outcomes(alone) == _outcomes(first["other"])


def test_a_family_without_a_decision_that_can_be_wrong_is_run() -> None:
    """Two contracts of `never_fails` under a correction: there is nothing to correct."""
    criterion = tw.Criterion("ok", tw.equals("ok"), never_fails=True)
    contracts = [
        tw.Contract(name, lambda _: "ok", [criterion]).with_inputs(["a"]) for name in ("one", "two")
    ]
    found = tw.run_all(contracts, correction="holm", store=None, progress=False)

    assert [str(one.decision) for one in found.results.values()] == ["PASS", "PASS"]
