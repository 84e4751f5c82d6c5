"""A simulated booking agent: right most of the time, like the real one."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from trialwise.plugin.trial_fixture import TrialHandle


class Agent:
    """Books tables; the seed stands for everything that varies from call to call."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.is_open = True

    def ask(self, message: str) -> str:
        """A reply to a guest."""
        chance = Random(f"{self._seed} {message}").random()
        if chance < 0.02:
            raise ConnectionError("the model is overloaded")
        if chance < 0.05:
            return "I am not sure what you mean."
        thanks = "" if chance < 0.12 else "Thank you! "
        return f"{thanks}Confirmed: {message}"

    async def plan(self, message: str) -> list[str]:
        """The steps it would take."""
        return ["find_table", "book_table"] if self.ask(message) else []

    def close(self) -> None:
        """Release what it holds."""
        self.is_open = False


@pytest.fixture(scope="session")
def restaurant() -> dict[str, int]:
    """Shared by all trials of all tests: set up once."""
    return {"tables": 12}


@pytest.fixture
def agent(restaurant: dict[str, int], trial: TrialHandle) -> Iterator[Agent]:
    """An agent for each trial: set up and closed as often as there are trials."""
    assert restaurant["tables"]
    agent = Agent(trial.seed)
    yield agent
    agent.close()
