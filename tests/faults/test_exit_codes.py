"""Exit code 0 follows only a PASS that is on disk, whatever the service does to the process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SUITE = """\
name: s
service: {python: "agent:f"}
inputs: [a, b]
trials: 20
curtail: false
criteria: [{name: c, equals: "yes", at_least: 50%}]
"""


def start(folder: Path, agent: str, *arguments: str, suite: str = SUITE) -> subprocess.Popen[str]:
    """`trialwise run` in a real process, with a service of the test's own."""
    (folder / "trialwise.yaml").write_text(suite, encoding="utf-8")
    (folder / "agent.py").write_text(agent, encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, "-m", "trialwise.cli.main", "run", "-q", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=os.environ | {"PYTHONUTF8": "1"},
    )


def run(folder: Path, agent: str, *arguments: str, suite: str = SUITE) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a whole run."""
    process = start(folder, agent, *arguments, suite=suite)
    output, errors = process.communicate(timeout=60)
    return process.returncode, output, errors


def decisions(folder: Path) -> list[str]:
    """What the records on disk say."""
    found = folder.glob(".trialwise/runs/*/record.json")
    return [json.loads(one.read_text())["verdict"]["decision"] for one in found]


GATHER = """
import asyncio, sys
async def tool(): sys.exit(0)
async def f(q):
    await asyncio.gather(tool(), tool())
    return "yes"
"""
GROUP = """
import asyncio, sys
async def tool(): sys.exit(0)
async def f(q):
    async with asyncio.TaskGroup() as group:
        group.create_task(tool())
    return "yes"
"""
FORGOTTEN_TASK = """
import asyncio, sys
async def tool(): sys.exit(0)
async def f(q):
    task = asyncio.create_task(tool())
    await asyncio.sleep(0.001)
    return "yes"
"""
CALLBACK = """
import asyncio, sys
async def f(q):
    asyncio.get_running_loop().call_soon(sys.exit, 0)
    await asyncio.sleep(0.001)
    return "yes"
"""
TEXT_EXITS = """
import sys
class Trouble(Exception):
    def __str__(self): sys.exit(0)
async def f(q): raise Trouble
"""
PLAIN = """
import sys
def f(q): sys.exit(0)
"""
HOOK_AT_EXIT = """
import atexit, os
atexit.register(lambda: os._exit(0))
def f(q): return "no"
"""
EXCEPTHOOK = """
import os, sys
sys.excepthook = lambda *_: os._exit(0)
def f(q): return "no"
"""


@pytest.mark.parametrize(
    "agent",
    [GATHER, GROUP, FORGOTTEN_TASK, CALLBACK, TEXT_EXITS, PLAIN, HOOK_AT_EXIT, EXCEPTHOOK],
    ids=["gather", "group", "task", "callback", "text", "plain", "atexit", "excepthook"],
)
def test_an_exit_of_the_service_is_a_failed_trial_and_the_verdict_keeps_its_code(
    tmp_path: Path, agent: str
) -> None:
    """No trial passes, so the run FAILs, and the exit code says so."""
    code, output, errors = run(tmp_path, agent)

    assert (code, decisions(tmp_path)) == (1, ["FAIL"]), errors
    assert "c  FAIL  0.0 %" in output


def test_an_exit_in_one_of_many_trials_fails_that_trial_alone(tmp_path: Path) -> None:
    """Eight trials are in flight, and one of them exits in a callback."""
    agent = (
        "import asyncio, sys\n"
        "async def f(q, index):\n"
        "    if index == 3: asyncio.get_running_loop().call_soon(sys.exit, 0)\n"
        "    await asyncio.sleep(0.01)\n"
        "    return 'yes'\n"
    )
    code, output, errors = run(tmp_path, agent, "--concurrency", "8")

    assert (code, decisions(tmp_path)) == (0, ["PASS"]), errors
    journal = next(tmp_path.glob(".trialwise/runs/*/journal.jsonl")).read_text()
    assert "95.0 %" in output
    exited = next(one for one in journal.splitlines() if "SystemExit" in one)
    assert exited.startswith('{"i":3,')


def test_an_exit_after_its_trial_ends_the_run_without_a_verdict(tmp_path: Path) -> None:
    """Nobody can say which trial it belongs to, so nothing is decided: exit 4."""
    agent = (
        "import asyncio, sys\n"
        "async def f(q, index):\n"
        "    if index == 3: asyncio.get_running_loop().call_later(0.3, sys.exit, 0)\n"
        "    await asyncio.sleep(0.05)\n"
        "    return 'yes'\n"
    )
    code, output, errors = run(tmp_path, agent)

    assert (code, decisions(tmp_path)) == (4, ["INCONCLUSIVE"]), errors
    assert "a background task of the service exited" in output


@pytest.mark.parametrize(
    "body",
    ["os._exit(0)", "os.execv('/bin/true', ['true'])", "os.kill(os.getpid(), 11)"],
    ids=["_exit", "execv", "crash"],
)
@pytest.mark.parametrize("place", ["in a trial", "at import"])
def test_a_service_that_ends_the_process_ends_the_command_with_4(
    tmp_path: Path, body: str, place: str
) -> None:
    """The parent says that there is no result; the complete trials are kept."""
    agent = f"import os\n{body}\n" if place == "at import" else f"import os\ndef f(q): {body}\n"
    code, output, errors = run(tmp_path, agent)

    assert (code, output, decisions(tmp_path)) == (4, "", [])
    assert "there is no result" in errors


def test_a_check_of_a_suite_whose_module_exits_is_no_success(tmp_path: Path) -> None:
    """`check` imports the service, too."""
    (tmp_path / "trialwise.yaml").write_text(SUITE, encoding="utf-8")
    (tmp_path / "agent.py").write_text("import os\nos._exit(0)\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "trialwise.cli.main", "check"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 4


def test_a_service_that_closes_every_file_gets_no_success(tmp_path: Path) -> None:
    """The parent hears nothing, or the run cannot be kept: never 0."""
    agent = "import os\ndef f(q):\n    os.closerange(0, 256)\n    return 'yes'\n"
    code, _, _ = run(tmp_path, agent)

    assert code == 4


def test_a_forked_copy_of_the_command_reports_nothing(tmp_path: Path) -> None:
    """The copy passes all its trials, and the command itself fails: the code is its own."""
    agent = (
        "import os\n"
        "copied = False\n"
        "def f(q, index):\n"
        "    global copied\n"
        "    if index == 0: copied = os.fork() == 0\n"
        "    return 'yes' if copied else 'no'\n"
    )
    code, _, _ = run(tmp_path, agent)

    assert code == 1


def test_a_removed_record_is_no_pass(tmp_path: Path) -> None:
    """The service removes the store when its last trial is done: PASS is printed, and it is 4."""
    agent = (
        "import shutil\n"
        "def f(q, index):\n"
        "    if index == 19: shutil.rmtree('.trialwise')\n"
        "    return 'yes'\n"
    )
    code, output, errors = run(tmp_path, agent)

    assert code == 4
    assert "NOT KEPT" in output
    assert "NOT KEPT" in errors


def test_a_record_that_does_not_fit_on_disk_is_shown_and_ends_with_4(tmp_path: Path) -> None:
    """The verdict is printed as not kept; the trials are, and the run continues afterwards."""
    (tmp_path / "trialwise.yaml").write_text(SUITE, encoding="utf-8")
    (tmp_path / "agent.py").write_text("def f(q): return 'yes'\n", encoding="utf-8")
    command = f'ulimit -f 4; exec "{sys.executable}" -m trialwise.cli.main run -q'
    full = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert full.returncode == 4, full.stderr
    assert "NOT KEPT" in full.stdout
    assert "PASS" in full.stdout
    assert decisions(tmp_path) == []

    again = start(tmp_path, "def f(q): raise AssertionError('asked again')\n", "--resume")
    again.communicate(timeout=60)
    assert (again.returncode, decisions(tmp_path)) == (0, ["PASS"])


@pytest.mark.slow
def test_a_thread_that_never_ends_is_named_and_left(tmp_path: Path) -> None:
    """The verdict is out; some seconds later so is the process."""
    agent = (
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(1e6,), name='stubborn').start()\n"
        "def f(q): return 'yes'\n"
    )
    code, output, errors = run(tmp_path, agent)

    assert code == 0
    assert "PASS" in output
    assert "stubborn" in errors


@pytest.mark.slow
def test_a_task_that_ignores_its_cancellation_is_named_and_left(tmp_path: Path) -> None:
    """asyncio would wait for it for ever, and nobody would see the verdict."""
    agent = (
        "import asyncio\n"
        "tasks = []\n"
        "async def stubborn():\n"
        "    while True:\n"
        "        try: await asyncio.sleep(3600)\n"
        "        except asyncio.CancelledError: pass\n"
        "async def f(q):\n"
        "    tasks.append(asyncio.create_task(stubborn()))\n"
        "    return 'yes'\n"
    )
    code, output, errors = run(tmp_path, agent)

    assert (code, decisions(tmp_path)) == (0, ["PASS"]), errors
    assert "PASS" in output
    assert "stubborn" in errors


def test_hooks_at_exit_still_run(tmp_path: Path) -> None:
    """Exporters of traces and the like send what they hold when the process ends."""
    agent = (
        "import atexit, pathlib\n"
        "atexit.register(pathlib.Path('sent').touch)\n"
        "def f(q): return 'yes'\n"
    )
    assert run(tmp_path, agent)[0] == 0
    assert (tmp_path / "sent").exists()


SLEEPY = (
    "import pathlib, time\n"
    "def f(q, index):\n"
    "    pathlib.Path('called').touch()\n"
    "    time.sleep(0.05 if index < 2 else {last})\n"
    "    return 'yes'\n"
)


def wait_for(path: Path) -> None:
    """Wait until a file is there."""
    end = time.monotonic() + 30
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.01)
    assert path.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_a_run_with_a_record_and_no_verdict(
    tmp_path: Path, number: signal.Signals
) -> None:
    """SIGTERM and SIGHUP act like Ctrl-C: what is complete is kept, nothing is decided."""
    process = start(tmp_path, SLEEPY.format(last="0.05"))
    wait_for(tmp_path / "called")
    process.send_signal(number)
    process.communicate(timeout=60)

    assert (process.returncode, decisions(tmp_path)) == (130, ["INCONCLUSIVE"])


def test_one_ctrl_c_that_reaches_both_processes_is_one(tmp_path: Path) -> None:
    """A terminal signals the whole group, and the parent passes it on: the run ends gently."""
    (tmp_path / "trialwise.yaml").write_text(SUITE, encoding="utf-8")
    (tmp_path / "agent.py").write_text(SLEEPY.format(last="0.4"), encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "trialwise.cli.main", "run", "-q"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_for(tmp_path / "called")
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=60)

    assert (process.returncode, decisions(tmp_path)) == (130, ["INCONCLUSIVE"]), errors
    # The trial under way was waited for, which a second Ctrl-C would not have done.
    assert "3 trials" in output


@pytest.mark.slow
def test_a_killed_command_leaves_no_run_behind(tmp_path: Path) -> None:
    """SIGKILL to the parent ends the child as well: it would go on to spend money."""
    agent = SLEEPY.format(last="0.05").replace(
        "touch()", "write_text(str(__import__('os').getpid()))"
    )
    process = start(tmp_path, agent)
    wait_for(tmp_path / "called")
    # Every call writes the file again, so that it may be empty for a moment.
    while not (written := (tmp_path / "called").read_text()):
        time.sleep(0.01)
    worker = int(written)
    assert worker != process.pid
    process.kill()
    process.communicate(timeout=60)

    assert process.returncode == -signal.SIGKILL
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            os.kill(worker, 0)
        except ProcessLookupError:
            break
        time.sleep(0.01)
    else:
        pytest.fail("the run goes on without its parent")
    code, _, errors = run(tmp_path, "def f(q): return 'yes'\n", "--resume")
    assert code == 0, errors


def test_a_panic_of_the_command_is_no_fail(tmp_path: Path) -> None:
    """An exception that is not an Exception, from outside of a trial: 4 and never 1."""
    agent = "class Panic(BaseException): pass\nraise Panic\n"
    code, _, _ = run(tmp_path, agent)

    assert code in (2, 4)


def shell(folder: Path, agent: str, command: str) -> subprocess.CompletedProcess[str]:
    """A command line as a shell runs it, with `$TW` for trialwise."""
    (folder / "trialwise.yaml").write_text(SUITE, encoding="utf-8")
    (folder / "agent.py").write_text(agent, encoding="utf-8")
    environment = os.environ | {"TW": f"{sys.executable} -m trialwise.cli.main"}
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        timeout=60,
        env=environment,
    )


@pytest.mark.slow("full-yes-0", "full-no-1", "closed-no-1", "messages-closed-yes-0")
@pytest.mark.parametrize(("answer", "code"), [("yes", 0), ("no", 1)])
@pytest.mark.parametrize(
    "command",
    [
        "$TW run -q >/dev/full",
        "$TW run -q >&-",
        "$TW run 2>/dev/full",
        "$TW run 2>&-",
        "PYTHONUTF8=0 PYTHONIOENCODING=latin-1 $TW run -q --transparent",
    ],
    ids=["full", "closed", "messages-full", "messages-closed", "latin-1"],
)
def test_a_stream_that_takes_nothing_changes_no_exit_code(
    tmp_path: Path, command: str, answer: str, code: int
) -> None:
    """The verdict is on disk, and its code is returned."""
    done = shell(tmp_path, f"def f(q): return {answer!r}\n", command)

    assert done.returncode == code, done.stderr
    assert decisions(tmp_path) == [["PASS", "FAIL"][code]]
    assert "Traceback" not in done.stderr


def test_json_that_nobody_received_is_no_success(tmp_path: Path) -> None:
    """A program that reads the JSON would wait for it."""
    done = shell(tmp_path, "def f(q): return 'yes'\n", "$TW run -q --json >/dev/full")

    assert (done.returncode, decisions(tmp_path)) == (4, ["PASS"])


@pytest.mark.parametrize(("answer", "code"), [("yes", 0), ("no", 1)])
@pytest.mark.parametrize("options", ["-q", "-q --json", "-q --transparent"])
def test_a_reader_that_has_gone_changes_no_exit_code(
    tmp_path: Path, options: str, answer: str, code: int
) -> None:
    """`trialwise run | head` ends with the verdict's code, though nobody reads the rest."""
    command = f"$TW run {options} | (exec 0<&-; sleep 0.1); exit ${{PIPESTATUS[0]}}"
    done = shell(tmp_path, f"def f(q): return {answer!r}\n", command)

    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow("plan 90% -v", "score results.csv --at-least 50%")
@pytest.mark.parametrize(
    "command",
    ["plan 90% -v", "schema", "show --json", "score results.csv --at-least 50%", "completion bash"],
)
def test_a_reader_of_other_commands_may_go_as_well(tmp_path: Path, command: str) -> None:
    (tmp_path / "results.csv").write_text("passed\n" + "true\n" * 50)
    shell(tmp_path, "def f(q): return 'yes'\n", "$TW run -q")
    line = f"$TW {command} | (exec 0<&-; sleep 0.1); exit ${{PIPESTATUS[0]}}"
    done = shell(tmp_path, "def f(q): return 'yes'\n", line)

    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_commands_of_a_run(tmp_path: Path, number: signal.Signals) -> None:
    """Four commands are under way; none of them lives on, and the run has a record."""
    script = "import os, pathlib, time; pathlib.Path(f'pid-{os.getpid()}').touch(); time.sleep(77)"
    argv = json.dumps([sys.executable, "-c", script])
    suite = SUITE.replace('{python: "agent:f"}', f"{{command: {{run: {argv}, input_via: stdin}}}}")
    process = start(tmp_path, "", "--concurrency", "4", suite=suite)
    end = time.monotonic() + 40
    while len(list(tmp_path.glob("pid-*"))) < 4 and time.monotonic() < end:
        time.sleep(0.02)
    process.send_signal(number)
    process.communicate(timeout=60)

    pids = [int(one.name.removeprefix("pid-")) for one in tmp_path.glob("pid-*")]
    assert len(pids) == 4
    assert (process.returncode, decisions(tmp_path)) == (130, ["INCONCLUSIVE"])
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
