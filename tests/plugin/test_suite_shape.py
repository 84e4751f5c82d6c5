"""A suite as they are found in the wild: packages, conftests with teardown, classes, ids, marks."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from trialwise.model.verdict import Decision

if TYPE_CHECKING:
    from tests.plugin.conftest import Project

_ROOT_CONFTEST = '''
"""Fixtures of the whole suite."""
import pytest
from notes import note

def pytest_addoption(parser):
    parser.addoption("--live", action="store_true")

def pytest_configure(config):
    config.addinivalue_line("markers", "live: needs the network")
    config.addinivalue_line("markers", "agent: about the agent")

def pytest_collection_modifyitems(config, items):
    if not config.getoption("--live"):
        for item in items:
            if "live" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="needs --live"))

@pytest.fixture(scope="session")
def settings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("settings")
    note("settings+")
    yield {"folder": folder}
    note("settings-")

@pytest.fixture(autouse=True)
def _environment(monkeypatch, settings):
    monkeypatch.setenv("AGENT_HOME", str(settings["folder"]))
'''
_AGENT_CONFTEST = """
import pytest
from notes import note

class Agent:
    def __init__(self, model): self.model, self.history = model, []
    def ask(self, text):
        self.history.append(text)
        return f"{self.model}: confirmed {len(self.history)}"

@pytest.fixture(scope="package")
def pool():
    note("pool+"); yield []; note("pool-")

@pytest.fixture(params=["small", "large"])
def model(request): return request.param

@pytest.fixture
def agent(model, pool):
    agent = Agent(model)
    pool.append(agent)
    note("agent+")
    yield agent
    pool.remove(agent)
    note("agent-")
"""
_AGENT_TESTS = '''
"""Tests of the agent."""
import os
import pytest

pytestmark = [pytest.mark.agent, pytest.mark.trials(25, never_fails=True)]

class TestBooking:
    """Booking a table."""

    people = 2

    @pytest.fixture(autouse=True)
    def _restaurant(self, request):
        self.restaurant = request.cls.__name__
        yield
        del self.restaurant

    @pytest.mark.parametrize(
        ("city", "day"),
        [pytest.param("Paris", 1, id="paris-monday"), pytest.param("Rome", 7, id="rome-sunday")],
    )
    def test_confirms(self, agent, city, day, pool):
        """It confirms."""
        assert os.environ["AGENT_HOME"]
        assert "confirmed 1" in agent.ask(f"{city} {day}"), self.restaurant
        assert pool == [agent]

    @pytest.mark.usefixtures("agent")
    @pytest.mark.trials(at_least=0.8, max_trials=40)
    def test_own_marker(self):
        pass

class TestNested:
    class TestDeeper:
        @staticmethod
        def test_static(agent):
            assert agent.history == []

def test_function(agent, caplog):
    """A plain function in a marked module."""
    assert agent.ask("hello").endswith("1")

@pytest.mark.live
def test_live(agent):
    raise SystemExit
'''
_PLAIN_TESTS = """
import pytest

@pytest.mark.parametrize("value", [1, 2, 3])
def test_value(value, settings):
    assert value

class TestPlain:
    def test_it(self, tmp_path):
        assert tmp_path.exists()

@pytest.mark.xfail(strict=True)
def test_known(): assert False
"""


@pytest.mark.slow
def test_a_suite_as_they_are_found_in_the_wild(project: Project) -> None:
    """Everything that worked before the marker works with it, as often as there are trials."""
    project.write(_ROOT_CONFTEST, "conftest.py")
    project.write("", "suite/__init__.py")
    project.write("", "suite/agent/__init__.py")
    project.write(_AGENT_CONFTEST, "suite/agent/conftest.py")
    project.write(_AGENT_TESTS, "suite/agent/test_agent.py")
    project.write(_PLAIN_TESTS, "suite/test_plain.py")

    result = project.run("suite", "--strict-markers", "-p", "no:cacheprovider")

    # Two models times: two cities, the method of its own marker, the nested one, the function.
    result.assert_outcomes(passed=10 + 4, skipped=2, xfailed=1)
    records = project.records()
    assert 10 == len(records)
    assert {Decision.PASS} == {one.verdict.decision for one in records}
    names = {one.plan.contract.partition("test_agent.py::")[2] for one in records}
    assert "TestBooking::test_confirms[small-paris-monday]" in names
    assert "TestNested::TestDeeper::test_static[large]" in names
    trials = sum(len(one.trials) for one in records)
    expected = {
        **{f"settings{sign}": 1 for sign in "+-"},
        **{f"pool{sign}": 1 for sign in "+-"},
        **{f"agent{sign}": trials for sign in "+-"},
    }
    assert expected == Counter(project.notes())


def test_the_same_suite_without_the_plugin_still_runs(project: Project) -> None:
    """`-p no:trialwise` leaves plain tests: the marker alone changes nothing."""
    project.write(_ROOT_CONFTEST, "conftest.py")
    project.write(
        """
        import pytest

        @pytest.mark.trials(25, never_fails=True)
        def test_it(settings): pass
        """
    )

    result = project.run("-p", "no:trialwise", "-W", "ignore::pytest.PytestUnknownMarkWarning")

    result.assert_outcomes(passed=1)
    assert [] == project.records()
