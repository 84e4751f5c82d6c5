"""A time limit cancels once, so that a service can close what it opened."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

import trialwise as tw
from trialwise.engine import attempt


def contract(service: object) -> tw.Contract:
    return tw.Contract("x", service, [tw.Criterion("ok", tw.equals("ok"), at_least=0.5)])


def test_what_a_service_opened_is_closed_when_its_time_is_up() -> None:
    """Also where closing takes a wait or two."""
    log: list[str] = []

    @contextlib.asynccontextmanager
    async def opened() -> AsyncIterator[None]:
        log.append("open")
        try:
            yield
        finally:
            await asyncio.sleep(0.001)
            await asyncio.sleep(0.001)
            log.append("close")

    async def service(_question: str, index: int) -> str:
        async with opened():
            await asyncio.sleep(5 if index % 3 == 2 else 0)
            return "ok"

    result = tw.run(
        contract(service), inputs=["q"], trials=9, timeout_s=0.1, concurrency=3, store=None,
        curtail=False,
    )  # fmt: skip

    assert 9 == log.count("open") == log.count("close")
    late = [one for one in result.trials if one.error_class is tw.ErrorClass.TIMEOUT]
    assert [2, 5, 8] == [one.index for one in late]
    assert {"no reply within 0.1 s"} == {one.error for one in late}


def test_a_service_that_does_not_end_is_left_and_the_trial_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After a short grace."""
    monkeypatch.setattr(attempt, "TEARDOWN_S", 0.1)

    async def stubborn(_question: str) -> str:
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(30)
        return "ok"

    result = tw.run(contract(stubborn), inputs=["q"], trials=1, timeout_s=0.05, store=None,
                    intent="smoke")  # fmt: skip

    (trial,) = result.trials
    assert tw.ErrorClass.TIMEOUT is trial.error_class
    assert "had not ended 0.1 s after it was cancelled, and was left" in trial.error


def test_a_timeout_of_the_service_itself_is_its_own_failure() -> None:
    """It is no limit of ours that was reached."""

    async def gives_up(_question: str) -> str:
        async with asyncio.timeout(0.001):
            await asyncio.sleep(1)
        return "ok"

    result = tw.run(contract(gives_up), inputs=["q"], timeout_s=5, store=None)

    assert not any("no reply within" in one.error for one in result.trials)
