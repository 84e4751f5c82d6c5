"""What every service has to satisfy, built in or not."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from trialwise.engine.ports import Service, ServiceError, TrialContext
from trialwise.model.reply import Reply

__all__ = ["assert_service_conforms"]

#: Longer than any service takes to notice that it is cancelled.
_PATIENCE_S = 5.0


def assert_service_conforms(
    make: Callable[[], Service], inputs: Sequence[Any], *, seed: int = 1
) -> None:
    """Assert that a service behaves as those that are built in.

    - A call returns a `Reply`, or raises `ServiceError` where there is none.
    - Latency and cost are finite and not negative.
    - Calls side by side answer each trial, as one after the other.
    - A cancelled call ends at once.
    - Closing twice is as good as once, and a closed service can be called again.

    Args:
        make: Makes the service.
        inputs: Inputs that it answers.
        seed: The seed of the first trial.

    Raises:
        AssertionError: What does not hold, and for which input.
    """
    import anyio

    trials = [
        TrialContext(index=index, input=one, seed=seed + index) for index, one in enumerate(inputs)
    ]
    assert trials, "give at least one input"
    anyio.run(_assert_all, make, trials)


async def _assert_all(make: Callable[[], Service], trials: Sequence[TrialContext]) -> None:
    import anyio

    service = make()
    for trial in trials:
        _assert_reply(trial, await _ask(service, trial))
    answers: dict[int, object] = {}

    async def ask(trial: TrialContext) -> None:
        answers[trial.index] = await _ask(service, trial)

    async with anyio.create_task_group() as group:
        for trial in trials:
            group.start_soon(ask, trial)
    for trial in trials:
        _assert_reply(trial, answers.get(trial.index))
    await _assert_cancels(service, trials[0])
    await service.aclose()
    await service.aclose()
    _assert_reply(trials[0], await _ask(service, trials[0]))
    await service.aclose()


async def _ask(service: Service, trial: TrialContext) -> object:
    try:
        return await service.call(trial)
    except ServiceError as error:
        return error


def _assert_reply(trial: TrialContext, answer: object) -> None:
    if isinstance(answer, ServiceError):
        return
    assert isinstance(answer, Reply), f"the answer to {trial.input!r} is {answer!r}, not a Reply"
    for name in ("latency_s", "cost_usd"):
        amount = getattr(answer, name)
        fits = amount is None or (math.isfinite(amount) and amount >= 0)
        assert fits, f"the {name} of the answer to {trial.input!r} is {amount!r}"


async def _assert_cancels(service: Service, trial: TrialContext) -> None:
    import anyio

    started = anyio.current_time()
    with anyio.move_on_after(0):
        await _ask(service, trial)
    took = anyio.current_time() - started
    assert took < _PATIENCE_S, f"a cancelled call took {took:.1f} s to end"
