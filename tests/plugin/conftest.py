"""pytest in pytest: every session of these tests is a real one, in a folder of its own.

A session in this process forgets every module that it imported, and a class imported twice is two
classes. So everything is imported here, once.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from textwrap import dedent

import httpcore2  # noqa: F401
import pytest

import trialwise
from trialwise.model.run import RunRecord
from trialwise.stores.runs import RunStore

_APART = ("trialwise.cli", "trialwise.contrib")
for _module in walk_packages(trialwise.__path__, "trialwise."):
    if not _module.name.startswith(_APART):
        import_module(_module.name)

#: Sessions have the plugins that they ask for, and no others.
_INI = """
[pytest]
addopts = -p no:asyncio -p no:randomly -p no:rerunfailures -p no:timeout -p no:xdist
    -p no:xdist.looponfail -p no:hypothesispytest -p no:platformdirs -p no:pytest_cov
    -p no:pytest-retry -p no:flaky -p no:allure_pytest -p no:pytest_jsonreport -p no:metadata
filterwarnings = default
"""
_NOTES = """
import os

def note(text):
    handle = os.open(os.path.join(os.path.dirname(__file__), "notes.txt"),
                     os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, f"{text}\\n".encode())
    os.close(handle)
"""


class Project:
    """A folder with tests, and what its sessions leave behind."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path: Path = pytester.path
        (self.path / "pytest.ini").write_text(_INI)
        (self.path / "notes.py").write_text(_NOTES)

    def write(self, source: str, name: str = "test_it.py") -> Path:
        """Write a file of tests."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(source))
        return path

    def ini(self, **settings: object) -> None:
        """Add settings to the ini file."""
        with (self.path / "pytest.ini").open("a") as stream:
            stream.writelines(f"{name} = {value}\n" for name, value in settings.items())

    def run(self, *args: str) -> pytest.RunResult:
        """A session in this process, where warnings are what they are by default."""
        return self.pytester.runpytest_inprocess(*args)

    def run_apart(self, *args: str) -> pytest.RunResult:
        """A session in a process of its own."""
        return self.pytester.runpytest_subprocess(*args, timeout=100)

    def judge(self, source: str, *args: str) -> RunRecord:
        """The record of the one marked test of a file."""
        self.write(source)
        self.run(*args)
        (record,) = self.records()
        return record

    def records(self) -> list[RunRecord]:
        """Every judged run, the oldest first."""
        runs = RunStore(self.path / ".trialwise")
        return [runs.load(one.run_id) for one in reversed(runs.list()) if one.is_decided]

    def notes(self) -> list[str]:
        """What tests took note of, in order."""
        path = self.path / "notes.txt"
        return path.read_text().split() if path.exists() else []


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    """An empty project."""
    return Project(pytester)
