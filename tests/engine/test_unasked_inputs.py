"""A criterion that must never fail is tried on every input before it can PASS."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import trialwise as tw
from trialwise.procedures.run_verdict import decide_criterion

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


# --- A number of trials of its own, beside a criterion that runs on ---------------------------


def _leak_from(first: int) -> Callable[[str], str]:
    """A service whose replies leak from a call on."""
    calls, lock = iter(range(10_000)), threading.Lock()

    def service(_: str) -> str:
        with lock:
            return "recipe" if next(calls) >= first else "no"

    return service


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("keep_going", [True, False])
@pytest.mark.parametrize("first", [0, 4, 5, 6, 30])
def test_a_failure_after_its_own_trials_is_a_failure(
    concurrency: int, keep_going: bool, first: int
) -> None:
    """Five trials are its least number: the sixth counts as well, whoever needed it."""
    result = _run(
        _contract(_leak_from(first), _short(), trials=5),
        inputs=2,
        concurrency=concurrency,
        keep_going=keep_going,
    )
    safe = result.verdict.findings[1]
    failed = sum(not one.outcome("safe").passed for one in result.record.trials)

    assert (safe.decision, result.decision) == ("FAIL", "FAIL")
    assert (safe.tally.failed, safe.tally.trials) == (failed, len(result.record.trials))


def test_its_own_trials_are_the_least_number() -> None:
    """The criterion beside it needs 39 trials, and this one 60."""
    result = _run(_contract(lambda _: "no", _short(), trials=60), inputs=3)
    assert (result.decision, len(result.record.trials)) == ("PASS", 60)


def test_every_input_is_asked_whatever_its_own_trials() -> None:
    """Five trials of two inputs may all ask the first one; both are asked before a PASS."""
    for seed in range(30):
        result = _run(_contract(lambda _: "no", _short(), trials=5), inputs=2, seed=seed)
        alone = _run(_contract(lambda _: "no", trials=5), inputs=2, seed=seed)
        assert (result.decision, alone.decision) == ("PASS", "PASS")
        assert {one.input_id for one in alone.record.trials} == {"1", "2"}


@pytest.mark.parametrize(("limit", "decision"), [(4, "INCONCLUSIVE"), (20, "PASS")])
def test_a_budget_after_its_own_trials_leaves_it_decided(limit: int, decision: str) -> None:
    """Its design was complete before the money was gone; with fewer trials it was not."""
    result = _run(
        _contract(lambda _: "no", _short(), trials=5), inputs=2, budget=tw.Budget(trials=limit)
    )
    short, safe = result.verdict.findings
    assert (short.decision, safe.decision) == ("INCONCLUSIVE", decision)


def test_a_failure_of_one_input_after_its_own_trials_is_a_failure() -> None:
    """Each input has three trials of its own, and the criterion beside it asks for more."""
    result = _run(
        _contract(_leak_from(10), _short(), trials=3, each_input=True), inputs=3, keep_going=True
    )
    safe = result.verdict.findings[1]
    assert safe.decision == "FAIL"
    failed = sum(not one.outcome("safe").passed for one in result.record.trials)
    assert sum(one.tally.failed for one in safe.by_input) == failed > 0


def test_a_plan_of_an_earlier_version_is_decided_by_its_own_trials() -> None:
    """It counted up to them; a stored PASS of such a plan is derived again as it was."""
    record = _run(_contract(_leak_from(20), _short(), trials=15), inputs=2, keep_going=True).record
    plan = record.plan
    now = plan.criteria[1]
    then = now.change(counts_every_trial=False)
    before = replace(plan, criteria=(plan.criteria[0], then))

    def decide(one: Any, of: Any) -> Any:
        return decide_criterion(one, of, record.trials, tw.model.StopReason.COMPLETE)

    assert decide(now, plan).decision == "FAIL"
    assert (decide(then, before).decision, decide(then, before).tally.trials) == ("PASS", 15)


@pytest.mark.parametrize("refused", [0, 1, 5])
@pytest.mark.parametrize("trials", [None, 8])
def test_a_refused_call_fails_under_intent_to_treat_whenever_it_comes(
    refused: int, trials: int | None
) -> None:
    """Every trial counts by that analysis, the first one as well as the sixth."""
    calls = iter(range(1000))

    def service(_: str) -> str:
        if next(calls) == refused:
            raise ConnectionRefusedError("refused")
        return "no"

    result = _run(
        _contract(service, trials=trials), inputs=2, analysis="intent-to-treat", retries=0
    )
    (safe,) = result.verdict.findings
    assert (result.decision, safe.tally.failed) == ("FAIL", 1)
    assert safe.statement.startswith(f"1 of {refused + 1} trials failed.")


def test_a_refused_call_is_asked_again_where_it_is_not_counted() -> None:
    """By the usual analysis it says nothing: another trial of the input does."""
    calls = iter(range(1000))

    def service(_: str) -> str:
        if next(calls) == 0:
            raise ConnectionRefusedError("refused")
        return "no"

    result = _run(_contract(service, trials=8), inputs=2, retries=0)
    (safe,) = result.verdict.findings
    assert (result.decision, safe.tally.trials, len(result.record.trials)) == ("PASS", 8, 9)


@pytest.mark.parametrize("trials", [None, 8])
def test_a_request_that_is_refused_as_wrong_stops_the_run_and_fails_nothing(
    trials: int | None,
) -> None:
    """A wrong key is no failure of the service, also where every trial counts."""

    def service(_: str) -> str:
        raise tw.ServiceError("HTTP 401", tw.ErrorClass.CONFIGURATION)

    result = _run(
        _contract(service, trials=trials), inputs=2, analysis="intent-to-treat", retries=0
    )
    assert (result.decision, result.verdict.stop) == ("INCONCLUSIVE", tw.model.StopReason.SERVICE)
    assert "set up wrongly" in result.verdict.aborted
