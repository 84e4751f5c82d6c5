"""Worker processes that do not start, that cannot be replaced, or that break: nothing hangs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import indent

import pytest
from tests.executors.worker_projects import calls, kept_indices, start

import trialwise as tw
from trialwise import __version__
from trialwise.errors import ExecutorUnusable
from trialwise.executors.jobs import LoadReport

#: Whether a module is imported by a worker and not by the command.
_IN_WORKER = "import os, sys\nif 'trial_worker' in sys.argv[0]:\n    "


def _run(project: Path, *options: str, before: str = "", instead: str = "") -> tuple[int, str, str]:
    """Run the suite in workers.

    Args:
        project: Where the suite is.
        options: Of the command.
        before: Lines that the module of the service begins with.
        instead: What the service does instead of waiting.
    """
    agent = project / "agent.py"
    text = agent.read_text(encoding="utf-8")
    assert "    time.sleep(0.03)\n" in text
    if instead:
        text = text.replace("    time.sleep(0.03)\n", indent(instead, "    "))
    agent.write_text(before + "\n" + text, encoding="utf-8")
    run = start(project, "--executor", "processes:2", *options)
    out, err = run.communicate(timeout=50)
    return run.returncode, " ".join(out.split()), " ".join(err.split())


def test_workers_that_die_when_they_load_are_named_at_once(project: Path) -> None:
    """Nobody waits for the answer of a process that has ended: exit 2, and no trial."""
    code, _, errors = _run(project, before=_IN_WORKER + "os._exit(3)")

    assert code == 2
    assert "a worker process ended when it loaded the contract" in errors
    assert not calls(project)


def test_workers_that_do_not_start_are_named_at_once(project: Path) -> None:
    """Python itself fails before trialwise is imported there."""
    site = project / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        "import os, sys\nif 'trialwise.executors.trial_worker' in sys.orig_argv: os._exit(7)\n",
        encoding="utf-8",
    )
    run = subprocess.run(
        [sys.executable, "-m", "trialwise.cli.main", "run", "-q", "--executor", "processes:2"],
        cwd=project,
        env={"PYTHONPATH": str(site), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert run.returncode == 2, run.stdout + run.stderr
    assert "a worker process ended when it loaded the contract" in " ".join(run.stderr.split())
    assert not calls(project)


@pytest.mark.slow
def test_a_worker_that_cannot_be_replaced_leaves_a_run_that_can_be_resumed(project: Path) -> None:
    """What was complete is kept; the run ends undecided with the reason, and is resumed."""
    code, output, errors = _run(
        project,
        "-q",
        before=_IN_WORKER + "if os.path.exists('dead'): raise ImportError('its disk is gone')\n",
        instead="if index == 30 and not os.path.exists('dead'):\n"
        "    open('dead', 'w').close()\n"
        "    os._exit(9)\n",
    )

    assert code == 4, output + errors
    assert "INCONCLUSIVE" in output
    assert "ended with exit code 9, and no other could take its place" in output
    assert "ImportError: its disk is gone" in output
    assert 0 < len(kept_indices(project)) < 60
    resumed = start(project, "-q", "--resume")
    _, errors = resumed.communicate(timeout=50)
    assert resumed.returncode == 0, errors
    assert kept_indices(project) == list(range(60))


@pytest.mark.slow
def test_a_worker_that_breaks_answers_by_its_end(project: Path) -> None:
    """An error of trialwise itself in a worker: its traceback is printed, and one trial fails."""
    code, output, errors = _run(
        project,
        "--json",
        before=_IN_WORKER + "from __main__ import TrialWorker as Worker\n"
        "    whole = Worker.run\n"
        "    async def run(self, batch):\n"
        "        if any(one.index == 12 for one in batch.starts):\n"
        "            raise RuntimeError('a mistake of ours')\n"
        "        return await whole(self, batch)\n"
        "    Worker.run = run\n",
    )

    assert code == 0, errors
    assert "RuntimeError: a mistake of ours" in errors
    assert json.loads(output)["decision"] == "PASS"
    assert kept_indices(project) == list(range(60))


@pytest.mark.slow
def test_a_program_that_the_service_leaves_behind_does_not_hide_a_death(project: Path) -> None:
    """A copy of the worker lives on when the worker dies: the driver hears of the death."""
    code, output, errors = _run(
        project,
        "-q",
        instead="if index == 5:\n"
        "    if os.fork() == 0:\n"
        "        os.closerange(0, 3)\n"
        "        time.sleep(40)\n"
        "        os._exit(0)\n"
        "    os._exit(1)\n",
    )

    assert code == 0, output + errors
    assert kept_indices(project) == list(range(60))


@pytest.mark.parametrize(
    ("version", "python", "words"),
    [
        ("0.0.1", "", "the workers have trialwise 0.0.1, and this process has"),
        ("", "3.2.1", "the workers run Python 3.2.1, and this process runs"),
    ],
)
def test_one_worker_of_another_version_is_refused(version: str, python: str, words: str) -> None:
    """Every worker is asked, and not only the first."""
    from platform import python_version

    from trialwise.executors.jobs import Job, JobContent

    contract = tw.Contract("c", str, [tw.Criterion("x", tw.equals("1"), at_least=0.5)])
    job = Job("key", JobContent(None, contract, None, None, None))  # type: ignore[arg-type]
    good = LoadReport(__version__, python_version())
    other = LoadReport(version or __version__, python or python_version())

    with pytest.raises(ExecutorUnusable, match=words):
        job.pack_for(lambda _: [good, other])


def test_nothing_is_left_open_when_the_interpreter_ends(tmp_path: Path) -> None:
    """Python names processes and files that are left, where it is asked to."""
    script = (
        "import trialwise as tw\n"
        "def answer(question): return '1'\n"
        "def go(service, executor):\n"
        "    contract = tw.Contract('c', service, [tw.Criterion('x', tw.equals('1'), "
        "at_least=0.5)])\n"
        "    tw.run(contract, inputs=['1'], trials=20, store=None, executor=executor)\n"
        "go(answer, 'processes:2')\n"
        "go(tw.services.CommandService(['echo', '{input}']), 'local')\n"
    )
    (tmp_path / "script.py").write_text(script, encoding="utf-8")

    done = subprocess.run(
        [sys.executable, "-W", "always::ResourceWarning", "script.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
