"""A criterion that must never fail is tried on every input before it can PASS."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import Any

import pytest

import trialwise as tw

N = 50


def _contract(service: Any, *extra: tw.Criterion, **options: Any) -> tw.Contract:
    safe = tw.Criterion("safe", tw.not_contains("recipe"), never_fails=True, **options)
    return tw.Contract("x", service, [*extra, safe])


def _short() -> tw.Criterion:
    return tw.Criterion("short", tw.length(maximum=9), at_least=0.9)


def _run(contract: tw.Contract, inputs: int = N, **options: Any) -> Any:
    names = [f"q{n}" for n in range(inputs)]
    return tw.run(contract, inputs=names, store=None, progress=False, **options)


def _jail(value: str) -> str:
    return "recipe" if value == "q37" else "no"


def test_one_input_of_fifty_that_always_violates_is_found_in_every_run() -> None:
    """The criterion beside it is decided after a few trials; 0.1.0 then passed 15 of 20 runs."""
    found = [_run(_contract(_jail, _short()), seed=seed).decision for seed in range(20)]
    assert found == ["FAIL"] * 20


@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_pass_has_asked_every_input(concurrency: int) -> None:
    seen: Counter[str] = Counter()

    def service(value: str) -> str:
        seen[value] += 1
        return "no"

    result = _run(_contract(service, _short()), seed=1, concurrency=concurrency)
    assert result.decision == "PASS"
    assert set(seen) == {f"q{n}" for n in range(N)}
    coverage = result.verdict.findings[1].coverage
    assert (coverage.asked, coverage.inputs, coverage.unasked) == (N, N, ())


def test_after_the_others_are_decided_no_input_is_asked_twice() -> None:
    """What is left only asks inputs that nobody has asked, so the run has no trial to spare."""
    seen: list[str] = []

    def service(value: str) -> str:
        seen.append(value)
        return "no"

    result = _run(_contract(service, _short()), seed=3)
    decided = result.verdict.findings[0].decided_at
    assert decided is not None
    late = seen[decided:]
    assert len(late) == len(set(late))
    assert not set(late) & set(seen[:decided])


@pytest.mark.parametrize("draw", ["balanced", "independent"])
def test_every_input_is_asked_however_inputs_are_drawn_and_repeated(draw: Any) -> None:
    inputs = [
        tw.Input(id=f"q{n}", value=f"q{n}", repetitions=20 if n == 0 else 1) for n in range(N)
    ]
    for seed in range(5):
        result = tw.run(
            _contract(_jail, _short()),
            inputs=inputs,
            store=None,
            progress=False,
            seed=seed,
            draw=draw,
        )
        assert result.decision == "FAIL"


def test_an_input_whose_trial_measured_nothing_has_not_been_asked() -> None:
    """One trial of q3 never reaches the service; another asks it, or the run is no PASS."""
    lock = threading.Lock()
    failed: list[str] = []

    def service(value: str) -> str:
        with lock:
            if value == "q3" and not failed:
                failed.append(value)
                raise tw.ServiceError("refused", tw.ErrorClass.INFRASTRUCTURE)
        time.sleep(0.001)
        return "no"

    found = _run(
        _contract(service, _short()), inputs=6, seed=1, concurrency=4, analysis="per-protocol"
    )
    coverage = found.verdict.findings[1].coverage
    assert (found.decision == "PASS") == (coverage.asked == 6)


def test_max_trials_limits_it() -> None:
    assert len(_run(_contract(lambda _: "no"), inputs=4, max_trials=30).record.trials) == 30
    assert len(_run(_contract(lambda _: "no", max_trials=10), inputs=4).record.trials) == 10


def test_a_limit_below_the_number_of_inputs_is_refused_with_both_numbers() -> None:
    with pytest.raises(tw.DesignRefused, match=r"50 inputs .*at most 30 trials"):
        _run(_contract(_jail), max_trials=30)
    with pytest.raises(tw.DesignRefused, match=r"50 inputs .*at most 30 trials"):
        _run(_contract(_jail, _short()), max_trials=30)


def test_a_smoke_run_below_that_limit_is_inconclusive_at_best() -> None:
    result = _run(_contract(lambda _: "no"), max_trials=30, intent="smoke")
    assert result.decision == "INCONCLUSIVE"
    coverage = result.verdict.findings[0].coverage
    assert (coverage.asked, coverage.inputs) == (30, 50)
    assert len(coverage.unasked) == 20


def test_a_number_of_trials_below_the_inputs_says_how_many_were_asked() -> None:
    result = _run(_contract(lambda _: "no", trials=20))
    assert result.decision == "PASS"
    assert "20 of 50 inputs" in result.transparent()


def test_more_than_a_thousand_inputs_need_somebodys_word() -> None:
    with pytest.raises(tw.DesignRefused, match=r"1,001.*max_trials: 1001.*trials: 200"):
        _run(_contract(_jail), inputs=1001)
    assert _run(_contract(_jail), inputs=1001, max_trials=1001).decision == "FAIL"


def test_a_budget_that_ends_the_run_leaves_it_open() -> None:
    """0.1.0 said PASS of whatever had been tried by then."""
    budget = tw.Budget(trials=30)
    result = _run(_contract(lambda _: "no", _short()), budget=budget)
    assert result.verdict.findings[1].decision == "INCONCLUSIVE"
    assert result.decision != "PASS"


def test_more_trials_than_inputs_may_be_asked_for() -> None:
    assert len(_run(_contract(lambda _: "no", trials=120)).record.trials) == 120
