"""A simulated booking agent, which is usually right."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from trialwise.plugin.trial_fixture import TrialHandle


class Agent:
    """Books tables. The seed stands for everything that varies between calls."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.is_open = True

    def ask(self, message: str) -> str:
        """Return a reply to a guest."""
        chance = Random(f"{self._seed} {message}").random()
        if chance < 0.01:
            raise ConnectionError("the model is overloaded")
        if chance < 0.02:
            return "I am not sure what you mean."
        thanks = "" if chance < 0.06 else "Thank you! "
        return f"{thanks}Confirmed: {message}"

    async def plan(self, message: str) -> list[str]:
        """Return the steps of the booking."""
        return ["find_table", "book_table"] if self.ask(message) else []

    def close(self) -> None:
        """Release the resources of the agent."""
        self.is_open = False


@pytest.fixture(scope="session")
def restaurant() -> dict[str, int]:
    """Set up once and shared by all trials of all tests."""
    return {"tables": 12}


@pytest.fixture
def agent(restaurant: dict[str, int], trial: TrialHandle) -> Iterator[Agent]:
    """An agent that is set up and closed for each trial."""
    assert restaurant["tables"]
    agent = Agent(trial.seed)
    yield agent
    agent.close()
