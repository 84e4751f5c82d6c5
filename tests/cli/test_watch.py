"""`trialwise run --watch` with a real process: files are edited, and the process runs again."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

AGENT = """
from pathlib import Path
from words import ANSWER

def answer(question):
    with open("calls.txt", "a") as file:
        file.write(question + "\\n")
    return ANSWER
"""
SUITE = """
service: {python: "agent:answer"}
inputs: questions.csv
criteria:
  - {name: right, equals: "555", at_least: 50%, trials: 6}
"""


class Watch:
    """A watch in a folder, and the lines that it writes."""

    def __init__(self, folder: Path, *more: str) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "trialwise.cli.main", "run", "-q", "--watch", *more],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "NO_COLOR": "1"},
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self._lines.put(line.rstrip("\n"))

    def wait(self) -> list[str]:
        """The lines of one run, up to the one that says that files are watched."""
        lines: list[str] = []
        limit = time.monotonic() + 30
        while not lines or not lines[-1].startswith("watching "):
            lines.append(self._lines.get(timeout=max(0.01, limit - time.monotonic())))
        return lines

    def calls(self) -> int:
        path = self.folder / "calls.txt"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def join(self) -> None:
        self._reader.join(timeout=20)

    def end(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=20)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "words.py").write_text('ANSWER = "555"\n')
    (tmp_path / "questions.csv").write_text("value\none\ntwo\n")
    (tmp_path / "trialwise.yaml").write_text(SUITE)
    return tmp_path


@pytest.fixture
def watches() -> Iterator[list[Watch]]:
    started: list[Watch] = []
    yield started
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()
        one.join()


def start(watches: list[Watch], folder: Path, *more: str) -> Watch:
    watches.append(Watch(folder, *more))
    return watches[-1]


@pytest.mark.slow
def test_a_changed_suite_runs_again_with_the_replies_that_are_there(
    folder: Path, watches: list[Watch]
) -> None:
    """
    Suite, inputs and two modules are watched; what the service writes is not.
    """
    watch = start(watches, folder)

    first = watch.wait()
    (folder / "trialwise.yaml").write_text(SUITE.replace("555", "556"))
    second = watch.wait()

    assert first[-1] == "watching 4 files; Ctrl-C ends"
    assert any(line.startswith("PASS") for line in first)
    assert "trialwise.yaml changed" in second
    assert any(line.startswith("FAIL") for line in second), second
    assert any("replies are from earlier runs of this watch" in line for line in second)
    # A FAIL is certain after two trials, a PASS after six: no further reply was needed.
    assert watch.calls() == 6
    assert watch.end() == 1


@pytest.mark.slow
def test_changed_code_calls_the_service_again(folder: Path, watches: list[Watch]) -> None:
    watch = start(watches, folder)
    watch.wait()
    before = watch.calls()

    (folder / "words.py").write_text('ANSWER = "no"\n')
    lines = watch.wait()

    assert "words.py changed" in lines
    assert not any("earlier runs" in line for line in lines)
    assert any(line.startswith("FAIL") for line in lines)
    assert watch.calls() > before
    (folder / "words.py").write_text('ANSWER = "555"\n')
    assert any(line.startswith("PASS") for line in watch.wait())
    assert watch.end() == 0


@pytest.mark.slow
def test_mistakes_in_suite_and_code_do_not_end_the_watch(
    folder: Path, watches: list[Watch]
) -> None:
    """
    The exit code is that of the last run, a refusal here.
    """
    (folder / "words.py").write_text("ANSWER = (\n")
    watch = start(watches, folder)

    assert any("importing `agent` failed" in line for line in watch.wait())
    (folder / "words.py").write_text('ANSWER = "555"\n')
    assert any(line.startswith("PASS") for line in watch.wait())
    (folder / "questions.csv").unlink()
    assert any("the file cannot be read" in line for line in watch.wait())
    (folder / "questions.csv").write_text("value\nthree\n")
    assert any(line.startswith("PASS") for line in watch.wait())
    (folder / "trialwise.yaml").write_text(SUITE.replace("at_least", "at_lest"))
    assert any("did you mean `at_least`?" in line for line in watch.wait())
    assert watch.end() == 2


@pytest.mark.slow
def test_the_script_of_a_command_is_watched(folder: Path, watches: list[Watch]) -> None:
    (folder / "script.py").write_text("print('555')\n")
    service = f"{{command: [{sys.executable}, script.py, '{{input}}']}}"
    (folder / "trialwise.yaml").write_text(SUITE.replace('{python: "agent:answer"}', service))
    watch = start(watches, folder)

    assert watch.wait()[-1] == "watching 3 files; Ctrl-C ends"
    (folder / "script.py").write_text("print('no')\n")

    assert any(line.startswith("FAIL") for line in watch.wait())


@pytest.mark.slow
def test_ctrl_c_in_a_run_ends_the_run_and_the_watch(folder: Path, watches: list[Watch]) -> None:
    """
    The trials that are complete are kept, as without a watch.
    """
    slow = AGENT.replace("return ANSWER", "import time; time.sleep(0.5); return ANSWER")
    (folder / "agent.py").write_text(slow)
    watch = start(watches, folder)
    limit = time.monotonic() + 20
    while watch.calls() < 2 and time.monotonic() < limit:
        time.sleep(0.05)

    assert watch.end() == 130
    assert len(list((folder / ".trialwise" / "runs").glob("*/journal.jsonl"))) == 1


@pytest.mark.parametrize("option", ["--resume", "--record=a.jsonl", "--replay=a.jsonl"])
def test_a_watch_records_and_replays_by_itself(folder: Path, option: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "trialwise.cli.main", "run", "--watch", option],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert "records and replays by itself" in done.stderr
