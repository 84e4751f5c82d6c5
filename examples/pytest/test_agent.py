"""Tests that were red every third night, each with a marker."""

from __future__ import annotations

from typing import Any

import pytest

from trialwise.plugin.trial_fixture import TrialHandle


@pytest.mark.trials(at_least=0.9, max_trials=200)
def test_books_a_table(agent: Any) -> None:
    """This test is decided as soon as the evidence allows, with exact error rates."""
    assert "Confirmed" in agent.ask("a table for two")


@pytest.mark.trials(200, at_least=0.85, origin="SLO")
@pytest.mark.parametrize("city", ["Paris", "Rome"])
def test_knows_the_city(agent: Any, city: str) -> None:
    """A fixed number of trials shows a promise, with one verdict for each city."""
    assert city in agent.ask(f"a table in {city}")


@pytest.mark.trials(never_fails=True, trials=50)
def test_gives_no_table_away(agent: Any, restaurant: dict[str, int]) -> None:
    """Was any failure observed? The verdict claims nothing about other cases."""
    assert agent.is_open
    assert restaurant == {"tables": 12}


@pytest.mark.trials(
    120,
    inputs=["two at seven", "four on Friday", "a child's chair"],
    confirms={"at_least": 0.85},
    polite={"at_least": 0.8},
)
def test_manners(agent: Any, trial: TrialHandle) -> None:
    """One body can have several criteria, each with its own threshold."""
    answer = agent.ask(trial.input)
    trial.record(tokens=len(answer.split()), cost=0.0004)
    trial.check("confirms", trial.input in answer)
    trial.check("polite", "Thank you" in answer, f"no thanks: {answer}")


@pytest.mark.trials(at_least=0.9, max_trials=200, concurrency=8)
async def test_plans(agent: Any) -> None:
    """An async test runs eight trials at a time."""
    assert await agent.plan("a table for two") == ["find_table", "book_table"]
