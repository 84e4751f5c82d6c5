"""Several trials at once: sync bodies in threads, async ones as tasks, each with its fixtures."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from trialwise.model.evidence import StopReason
from trialwise.model.trial import ErrorClass
from trialwise.model.verdict import Decision

if TYPE_CHECKING:
    from tests.plugin.conftest import Project

_ASYNCIO = ("-p", "asyncio", "-o", "asyncio_default_fixture_loop_scope=function")
_HEAD = """
import asyncio, threading, time
import pytest
from notes import note

@pytest.fixture(scope="module")
def shared():
    note("shared+"); yield {"most": 0, "now": 0, "seen": []}; note("shared-")

@pytest.fixture
def own(shared):
    note("own+"); yield object(); note("own-")

def enter(shared, own):
    assert own not in shared["seen"]
    shared["seen"].append(own)
    shared["now"] += 1
    shared["most"] = max(shared["most"], shared["now"])

def leave(shared):
    shared["now"] -= 1
"""
_SYNC = """
@pytest.mark.trials(40, at_least=0.8, concurrency=4, curtail=False)
def test_it(shared, own, trial, tmp_path):
    enter(shared, own)
    time.sleep(0.01)
    leave(shared)
    assert trial.index != 7

def test_most(shared): assert 2 <= shared["most"] <= 4
"""
_ASYNC = """
{marks}
@pytest.mark.trials(40, at_least=0.8, concurrency=4, curtail=False)
async def test_it(shared, own, trial, tmp_path):
    enter(shared, own)
    await asyncio.sleep(0.01)
    leave(shared)
    assert trial.index != 7

def test_most(shared): assert shared["most"] == 4
"""
_ANYIO = """
@pytest.fixture(scope="module")
def anyio_backend(): return "asyncio"
"""


@pytest.mark.parametrize(
    ("source", "plugins"),
    [
        (_SYNC, ()),
        (_ASYNC.format(marks=""), ()),
        (_ASYNC.format(marks="@pytest.mark.asyncio").replace("== 4", ">= 2"), _ASYNCIO),
        (_ASYNC.format(marks="@pytest.mark.asyncio(loop_scope='module')"), _ASYNCIO),
        (_ANYIO + _ASYNC.format(marks="@pytest.mark.anyio"), ()),
    ],
    ids=["threads", "tasks", "asyncio, a loop each", "asyncio, one loop", "anyio"],
)
def test_trials_overlap_and_share_nothing_of_their_own(
    project: Project, source: str, plugins: tuple[str, ...]
) -> None:
    """Bodies overlap up to the limit; fixtures are as many as trials, and all are torn down."""
    project.write(_HEAD + source)

    project.run(*plugins).assert_outcomes(passed=2)

    (record,) = project.records()
    assert [7] == [trial.index for trial in record.trials if not trial.passed]
    assert list(range(40)) == [trial.index for trial in record.trials]
    expected = {"shared+": 1, "shared-": 1, "own+": 40, "own-": 40}
    assert expected == Counter(project.notes())


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 5])
def test_decisions_fall_in_issue_order(project: Project, concurrency: int) -> None:
    """Slow successes issued first are not outvoted by quick failures issued later."""
    project.write(
        f"""
        import time
        import pytest

        @pytest.mark.trials(
            at_least=0.9, margin=0.1, power=0.8, max_trials=50, concurrency={concurrency}, seed=3
        )
        def test_it(trial):
            if trial.index < 14:
                time.sleep(0.003)
                return
            assert False
        """
    )

    project.run().assert_outcomes(passed=1)

    (record,) = project.records()
    finding = record.verdict.findings[0]
    assert (Decision.PASS, 11, 11) == (finding.decision, finding.tally.trials, finding.tally.passed)


def test_an_async_fixture_and_its_body_share_a_loop(project: Project) -> None:
    """Trials side by side in one loop of pytest-asyncio's use async fixtures of their own."""
    project.write(
        """
        import asyncio
        import pytest, pytest_asyncio
        from notes import note

        @pytest_asyncio.fixture(loop_scope="module")
        async def client():
            note("+"); yield asyncio.get_running_loop(); note("-")

        @pytest.mark.asyncio(loop_scope="module")
        @pytest.mark.trials(12, never_fails=True, concurrency=4)
        async def test_it(client):
            await asyncio.sleep(0.002)
            assert asyncio.get_running_loop() is client
        """
    )

    project.run(*_ASYNCIO).assert_outcomes(passed=1)

    assert {"+": 12, "-": 12} == Counter(project.notes())


def test_what_is_not_needed_is_let_go(project: Project) -> None:
    """Once the verdict is certain, tasks in flight are cancelled, torn down and not counted."""
    project.write(
        """
        import asyncio
        import pytest
        from notes import note

        @pytest.fixture
        def own():
            note("+"); yield; note("-")

        @pytest.mark.trials(40, never_fails=True, concurrency=4)
        async def test_it(trial, own):
            if trial.index == 0:
                assert False
            await asyncio.sleep(60)
        """
    )

    project.run().assert_outcomes(failed=1)

    (record,) = project.records()
    assert [0] == [trial.index for trial in record.trials]
    assert 3 == record.verdict.spending.abandoned
    assert {"+": 4, "-": 4} == Counter(project.notes())


def test_a_fixture_asked_for_by_name_is_the_trials_own(project: Project) -> None:
    """Trials that ask for a fixture from inside their bodies do not get each other's."""
    project.write(
        """
        import time
        import pytest
        from notes import note

        @pytest.fixture
        def late():
            note("+"); yield []; note("-")

        @pytest.mark.trials(12, never_fails=True, concurrency=4)
        def test_it(request, trial):
            own = request.getfixturevalue("late")
            own.append(trial.index)
            time.sleep(0.005)
            assert own == [trial.index]
        """
    )

    project.run().assert_outcomes(passed=1)

    assert {"+": 12, "-": 12} == Counter(project.notes())


def test_fixtures_of_the_whole_process_are_refused(project: Project) -> None:
    """Two trials at once would undo each other's patches: an error of the collection."""
    project.write(
        """
        import pytest

        @pytest.fixture
        def key(monkeypatch): monkeypatch.setenv("KEY", "1")

        @pytest.mark.trials(12, never_fails=True, concurrency=4)
        def test_it(key, capsys): pass
        """
    )

    result = project.run()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["test_it.py:7: test_it: concurrency=4 cannot go with capsys, monkeypatch: *"]
    )


def test_trio_is_refused(project: Project) -> None:
    """Tasks side by side are asyncio's."""
    project.write(
        """
        import pytest

        @pytest.mark.parametrize("anyio_backend", ["trio"])
        @pytest.mark.trials(12, never_fails=True, concurrency=4)
        async def test_it(anyio_backend): pass
        """
    )

    project.run().stdout.fnmatch_lines(["test_it.py:4: *: concurrency needs asyncio: *"])


@pytest.mark.parametrize(
    "body", ["def test_it(own): time.sleep(3)", "async def test_it(own): await asyncio.sleep(3)"]
)
def test_a_limit_of_pytest_timeout_is_for_each_trial(project: Project, body: str) -> None:
    """Bodies side by side that take too long are given up, each for itself, as timeouts."""
    project.write(
        f"""
        import asyncio, time
        import pytest
        from notes import note

        @pytest.fixture
        def own():
            note("+"); yield; note("-")

        @pytest.mark.timeout(0.05)
        @pytest.mark.trials(2, never_fails=True, concurrency=2, curtail=False)
        {body}
        """
    )

    project.run("-p", "timeout").assert_outcomes(failed=1)

    (record,) = project.records()
    assert [ErrorClass.TIMEOUT] * 2 == [trial.error_class for trial in record.trials]
    assert {"+": 2, "-": 2} == Counter(project.notes())


def test_threads_end_with_their_trials(project: Project) -> None:
    """No thread is left behind; one that an earlier test left may end meanwhile."""
    before = set(threading.enumerate())
    project.write(
        """
        import pytest

        @pytest.mark.trials(30, never_fails=True, concurrency=6)
        def test_it(): pass
        """
    )

    project.run().assert_outcomes(passed=1)

    assert not set(threading.enumerate()) - before


@pytest.mark.slow
def test_pytest_exit_in_a_thread_ends_the_session(project: Project) -> None:
    """Whoever ends the session ends it, from wherever; what is complete is kept."""
    project.write(
        """
        import time
        import pytest

        @pytest.mark.trials(30, never_fails=True, concurrency=3)
        def test_it(trial):
            if trial.index == 5:
                pytest.exit("enough")
            time.sleep(0.002)

        def test_after(): pass
        """
    )

    result = project.run()

    result.stdout.fnmatch_lines(["*Exit: enough*"])
    (record,) = project.records()
    assert StopReason.INTERRUPTED is record.verdict.stop
    assert record.trials
