"""Whether an executor runs trials as this process does."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

from trialwise.checks import equals
from trialwise.errors import BrokenCheck, ExecutorUnusable
from trialwise.model import Budget, Contract, Criterion, Decision, Reply, Trial, Usage
from trialwise.runtime.result import Result
from trialwise.runtime.running import run

_INPUTS = ("a", "b", "c")
_SETTINGS: dict[str, Any] = {"seed": 11, "store": None, "progress": False}


def assert_executor_conforms(executor: str) -> None:
    """Assert that an executor behaves as those that are built in.

    - The same seed gives the same trials and the same verdict as in one process.
    - A criterion that may stop early is decided at the same trial, in each of two samplings.
    - An exception of the service is a failed trial, with its message.
    - A limit on trials or on tokens holds over all workers.
    - A check that is broken ends the run with `BrokenCheck`.
    - A service that ends its worker costs one trial, and no trial counts twice.
    - A service that cannot be sent is refused before the first trial.

    Args:
        executor: What a suite would say, such as `processes:2` or `dask:tcp://localhost:8786`.

    Raises:
        AssertionError: What does not hold.
    """
    _assert_same_trials(executor)
    _assert_same_decision(executor)
    _assert_exceptions(executor)
    _assert_limit(executor)
    _assert_broken_check(executor)
    _assert_crash(executor)
    _assert_refusal(executor)


def _assert_same_trials(executor: str) -> None:
    # Side by side as well: results then come back in another order than they were asked in.
    for service, concurrency in ((answer, 1), (answer_later, 8)):
        here = _run(service, "local", trials=60, concurrency=concurrency)
        there = _run(service, executor, trials=60, concurrency=concurrency)
        expected, found = [[_facts(one) for one in result.trials] for result in (here, there)]
        assert found == expected, f"{executor} runs other trials than one process does"
        assert there.decision is here.decision, f"{executor} decides otherwise"


def _assert_same_decision(executor: str) -> None:
    rates = {"first": 0.7, "second": 0.6}
    criteria = [
        Criterion(name, equals("yes"), at_least=rate, sampling=name) for name, rate in rates.items()
    ]
    for service in (answer, answer_wrongly):
        contract = Contract("c", service, criteria, sampling=dict.fromkeys(rates, _INPUTS))
        here, there = (
            run(contract, executor=one, concurrency=2, keep_going=True, **_SETTINGS)
            for one in ("local", executor)
        )
        for expected, found in zip(here.verdict.findings, there.verdict.findings, strict=True):
            facts = [(one.decision, one.tally) for one in (expected, found)]
            assert facts[0] == facts[1], f"{executor} decides {facts[1]}, one process {facts[0]}"


def _assert_exceptions(executor: str) -> None:
    result = _run(fail_sometimes, executor, trials=20)
    failed = [one for one in result.trials if not one.passed]
    assert failed, "the trials of a service that raises must fail"
    for one in failed:
        assert "odd seed" in one.error, f"{executor} loses what the service raised: {one.error}"


def _assert_limit(executor: str) -> None:
    # A limit that each worker counts by itself is passed as often as there are workers.
    result = _run(answer, executor, trials=60, budget=Budget(trials=11))
    assert len(result.trials) == 11, f"{executor} ran {len(result.trials)} trials, the limit is 11"
    assert result.decision is Decision.INCONCLUSIVE, "a run cut short decides nothing"
    result = _run(
        answer_with_usage, executor, trials=60, concurrency=50, budget=Budget(tokens=1200)
    )
    spent = result.verdict.spending.tokens
    assert spent == 1200, f"{executor} took {spent} tokens in trials of 100, the limit is 1200"


def _assert_broken_check(executor: str) -> None:
    contract = _contract(answer, Criterion("c", raise_error, at_least=0.5))
    try:
        run(contract, trials=20, store=None, executor=executor, progress=False)
    except BrokenCheck as broken:
        if "the check raises" not in broken.problem:
            raise AssertionError(f"{executor} loses what the check raised") from broken
    else:
        raise AssertionError(f"{executor} decides a run whose check is broken")


def _assert_crash(executor: str) -> None:
    with TemporaryDirectory() as folder:
        service = CrashingService(folder)
        result = _run(service, executor, trials=30)
        indices = [one.index for one in result.trials]
        assert indices == list(range(30)), f"{executor} loses or doubles trials after a crash"
        failed = [one.index for one in result.trials if not one.passed]
        assert failed == [7], f"after a crash at trial 7, {executor} fails the trials {failed}"


def _assert_refusal(executor: str) -> None:
    try:
        _run(HoldingService(), executor, trials=20)
    except ExecutorUnusable as refused:
        if "cannot be sent" not in str(refused):
            raise AssertionError(f"{executor} does not say why it refuses") from refused
    else:
        raise AssertionError(f"{executor} ran a service that cannot be sent")


def _run(service: Any, executor: str, **settings: Any) -> Result:
    contract = _contract(service, Criterion("right", equals("yes"), at_least=0.7))
    return run(contract, executor=executor, curtail=False, **_SETTINGS, **settings)


def _contract(service: Any, criterion: Criterion) -> Contract:
    return Contract("executor-conformance", service, [criterion]).with_inputs(_INPUTS)


def _facts(trial: Trial) -> tuple[Any, ...]:
    return trial.index, trial.input_id, trial.seed, trial.passed, trial.reply, trial.error


def answer(question: str, seed: int) -> str:
    """Answer right in about nine of ten trials."""
    return "yes" if Random(f"{question}{seed}").random() < 0.9 else "no"


def answer_wrongly(question: str, seed: int) -> str:
    """Answer right in about four of ten trials."""
    return "yes" if Random(f"{question}{seed}").random() < 0.4 else "no"


async def answer_later(question: str, seed: int) -> str:
    """Answer right in about nine of ten trials, after a short wait."""
    from anyio import sleep

    await sleep(Random(seed).random() / 100)
    return answer(question, seed)


def answer_with_usage() -> Reply:
    """Answer with a hundred tokens."""
    return Reply(value="yes", usage=Usage(input_tokens=40, output_tokens=60))


def fail_sometimes(seed: int) -> str:
    """Raise in about half of the trials."""
    if seed % 2:
        raise ValueError("odd seed")
    return "yes"


def raise_error(_reply: Any) -> bool:
    """Raise, as a check with a mistake in it does."""
    raise RuntimeError("the check raises")


class CrashingService:
    """Ends the process of its worker at trial 7.

    Args:
        folder: A folder that all workers share.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __call__(self, index: int) -> str:
        """Answer, or end the process."""
        with Path(self._folder, "calls").open("a", encoding="utf-8") as calls:
            calls.write(f"{index}\n")
        if index == 7:
            os._exit(3)
        return "yes"


class HoldingService:
    """Holds a lock, which no process can send to another."""

    def __init__(self) -> None:
        self._lock = Lock()

    def __call__(self, question: str) -> str:
        """Answer."""
        return question
