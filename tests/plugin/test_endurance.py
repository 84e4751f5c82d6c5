"""A thousand trials leak nothing, and Ctrl-C leaves nothing set up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from trialwise.model.evidence import StopReason

if TYPE_CHECKING:
    from tests.plugin.conftest import Project

_HEAVY = """
import gc, os, resource, socket, tempfile, threading
import pytest
from notes import note

counts = dict.fromkeys(["file", "socket", "thread", "big", "session"], 0)

@pytest.fixture(scope="session")
def server():
    counts["session"] += 1; yield []; counts["session"] -= 1

@pytest.fixture
def handle(tmp_path, server):
    counts["file"] += 1
    with open(tmp_path / "file", "w") as stream:
        yield stream
    counts["file"] -= 1

@pytest.fixture
def pair(server, handle):
    counts["socket"] += 1
    ends = socket.socketpair()
    yield ends
    for end in ends: end.close()
    counts["socket"] -= 1

@pytest.fixture
def worker(request):
    counts["thread"] += 1
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    def end():
        stop.set(); thread.join(); counts["thread"] -= 1
    request.addfinalizer(end)

@pytest.fixture(autouse=True)
def big(server):
    counts["big"] += 1; yield bytearray(1_000_000); counts["big"] -= 1

seen = []

def usage():
    gc.collect()
    from pathlib import Path
    status = Path("/proc/self/status").read_text()
    resident = int(status.partition("VmRSS:")[2].split()[0])
    trials = sum(type(one).__mro__[1].__name__ == "TrialItem" for one in gc.get_objects())
    return len(os.listdir("/proc/self/fd")), threading.active_count(), resident, trials

@pytest.mark.trials(1000, at_least=0.5, curtail=False, concurrency={concurrency})
def test_heavy(trial, handle, pair, worker, big{more}):
    if trial.index in (200, 999):
        seen.append(usage())
    handle.write("x")
    assert trial.index % 3, f"trial {{trial.index}} of {{len(big)}}"

def test_afterwards():
    first, last = seen
    assert last[0] <= first[0] + {slack}
    assert last[1] <= first[1] + {slack}
    assert last[2] <= first[2] + 20_000
    assert last[3] <= first[3] + {slack}
    assert {{name: count for name, count in counts.items() if count}} == {{"session": 1, "big": 1}}
    note("fine")
"""


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 8], ids=["one by one", "side by side"])
def test_a_thousand_trials_leak_nothing(project: Project, concurrency: int) -> None:
    """File descriptors, threads, memory and items after 1,000 trials are those after 200.

    A hundred trials that held their fixtures would hold 100 MB; a third of the trials fail, each
    with a message of its own.
    """
    more = ", monkeypatch, capsys, caplog" if concurrency == 1 else ""
    slack = 0 if concurrency == 1 else 4 * concurrency
    project.write(_HEAVY.format(concurrency=concurrency, more=more, slack=slack))

    result = project.run_apart("--tb=short")

    result.assert_outcomes(passed=2)
    (record,) = project.records()
    assert (1000, 666) == (len(record.trials), sum(trial.passed for trial in record.trials))
    assert ["fine"] == project.notes()


_STOPPED = """
import asyncio, time
import pytest
from notes import note

@pytest.fixture(scope="module")
def shared():
    note("shared+"); yield; note("shared-")

@pytest.fixture
def first(shared):
    note("first+"); time.sleep({setup}); yield; note("first-")

@pytest.fixture
def second(first):
    note("second+"); yield; time.sleep({teardown}); note("second-")

@pytest.mark.trials(100000, at_least=0.5, curtail=False, concurrency={concurrency})
{body}

def test_after(): note("after")
"""
_BODIES = {
    "sync": "def test_it(second): note('body'); time.sleep({body})",
    "async": "async def test_it(second): note('body'); await asyncio.sleep({body})",
}


@pytest.mark.slow("sync-1-body", "async-4-body")
@pytest.mark.parametrize(
    ("kind", "concurrency", "where"),
    [
        ("sync", 1, "body"),
        pytest.param("sync", 1, "setup", marks=pytest.mark.slow),
        pytest.param("sync", 1, "teardown", marks=pytest.mark.slow),
        pytest.param("async", 1, "body", marks=pytest.mark.slow),
        pytest.param("sync", 4, "body", marks=pytest.mark.slow),
        ("async", 4, "body"),
        pytest.param("sync", 4, "setup", marks=pytest.mark.slow),
    ],
)
def test_ctrl_c_tears_down_what_is_set_up(
    project: Project, kind: str, concurrency: int, where: str
) -> None:
    """Whatever SIGINT hits, every setup has its teardown, and every complete trial is kept."""
    times = {"setup": 0.001, "teardown": 0.001, "body": 0.001} | {where: 0.03}
    body = _BODIES[kind].format(body=times.pop("body"))
    project.write(_STOPPED.format(body=body, concurrency=concurrency, **times))
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"],
        cwd=project.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    _wait_for(lambda: project.notes().count("body") >= 8)

    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)

    notes = Counter(project.notes())
    assert notes["first+"] == notes["first-"] > 0, output
    assert notes["second+"] == notes["second-"] > 0
    assert notes["shared+"] == notes["shared-"] == 1
    assert 0 == notes["after"]
    assert pytest.ExitCode.INTERRUPTED == process.returncode, output
    (record,) = project.records()
    assert StopReason.INTERRUPTED is record.verdict.stop
    assert len(record.trials) >= 4
    assert "interrupted" in output
    assert "`pytest --trialwise-resume` continues unfinished tests" in output


@pytest.mark.slow
def test_a_second_ctrl_c_waits_for_no_body(project: Project) -> None:
    """A body in a thread that does not come back does not keep anybody waiting."""
    project.write(
        """
        import time
        import pytest
        from notes import note

        @pytest.fixture
        def own():
            note("+"); yield; note("-")

        @pytest.mark.trials(10, never_fails=True, concurrency=2)
        def test_it(own): note("body"); time.sleep(600)
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest"], cwd=project.path, stdout=subprocess.PIPE, text=True
    )
    _wait_for(lambda: project.notes().count("body") == 2)

    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)

    assert {"+": 2, "-": 2, "body": 2} == Counter(project.notes())


@pytest.mark.slow
def test_a_killed_session_is_gone_on_with(project: Project) -> None:
    """After a kill, what was journalled is not run again."""
    project.write(
        """
        import time
        import pytest
        from notes import note

        @pytest.mark.trials(60, at_least=0.5, curtail=False)
        def test_it(trial): note(trial.index); time.sleep(0.01)
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest"],
        cwd=project.path,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    _wait_for(lambda: len(project.notes()) >= 10)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()

    project.run("--trialwise-resume").assert_outcomes(passed=1)

    (record,) = project.records()
    assert 60 == len(record.trials)
    assert sum(count > 1 for count in Counter(project.notes()).values()) <= 1


def _wait_for(condition: object) -> None:
    assert callable(condition)
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow
def test_what_is_kept_of_a_session_is_bounded(project: Project, tmp_path: Path) -> None:
    """Failures that are all different keep a few tracebacks, not all of them."""
    del tmp_path
    project.write(
        """
        import pytest

        class Odd(Exception): pass

        @pytest.mark.trials(300, at_least=0.5, curtail=False)
        def test_it(trial):
            raise type(f"Odd{chr(97 + trial.index % 26)}{chr(97 + trial.index // 26)}", (Odd,), {})
        """
    )

    result = project.run()

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["and 297 failures of 297 other kinds"])
    assert len(result.outlines) < 120
