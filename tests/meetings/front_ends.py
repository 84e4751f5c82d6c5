"""The ways to run one suite: typed commands, options, Python, pytest, `score` and executors."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner
from tests.meetings.features import SERVICES
from tests.meetings.made_suites import MadeSuite

from trialwise.catalogue import OPTIONS
from trialwise.cli.main import cli
from trialwise.errors import BrokenCheck, TrialwiseError

_ENVIRONMENT = {"NO_COLOR": "1", "COLUMNS": "200"}


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    output: str
    """What it printed, on both streams; of an internal error the traceback."""


class Folder:
    """A folder with a suite and its services, in which commands are typed.

    Args:
        path: An empty folder; it is the current one and on the path of imports.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "svc.py").write_text(SERVICES)

    def write(self, suite: MadeSuite | Mapping[str, Any]) -> None:
        """Write the suite file."""
        text = suite.text if isinstance(suite, MadeSuite) else json.dumps(suite, indent=1)
        (self.path / "trialwise.yaml").write_text(text)

    def type(self, *arguments: str) -> Done:
        """Return what a command does, in this process.

        The exit codes are those of `trialwise.cli.main`; an internal error is 4, as there.
        """
        with chdir(self.path):  # a session of pytest has another folder
            done = CliRunner().invoke(cli, list(arguments), env=_ENVIRONMENT, standalone_mode=False)
        error = done.exception
        if error is None:
            return Done(int(done.return_value or 0), done.output)
        if isinstance(error, BrokenCheck):
            return Done(4, f"{done.output}{error}")
        if isinstance(error, TrialwiseError) or type(error).__module__.startswith("click"):
            said = getattr(error, "message", None) or str(error)
            return Done(2, f"{done.output}{said}")
        lines = "".join(traceback.format_exception(error))
        return Done(4, f"{done.output}an internal error\n{lines}")

    def read(self, name: str) -> Any:
        """Return the JSON of a file that a command wrote."""
        return json.loads((self.path / name).read_text(encoding="utf-8"))

    def list_runs(self) -> list[Path]:
        """List the folders of runs, the oldest first."""
        found = (self.path / ".trialwise" / "runs").glob("*")
        return sorted(found, key=lambda one: one.stat().st_mtime_ns)


@contextmanager
def enter(path: Path) -> Iterator[Folder]:
    """Make a folder the current one for a while, with modules of its own."""
    sys.modules.pop("svc", None)
    sys.path.insert(0, str(path))
    try:
        with chdir(path):
            yield Folder(path)
    finally:
        sys.path.remove(str(path))
        sys.modules.pop("svc", None)


def move_to_options(document: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return a suite without the keys that the command line has too, and the options for them.

    A size stays where a criterion has its own: the one of the command line would replace it.
    """
    kept, options = dict(document), list[str]()
    sized = any({"trials", "max_trials"} & one.keys() for one in document["criteria"])
    for name, target, kind, _ in OPTIONS:
        key = name.replace("-", "_")
        held = kept.get(key)
        if "." in target or kind == "names" or held is None or isinstance(held, dict | list):
            continue
        if key == "inconclusive" or (sized and key in ("trials", "max_trials")):
            continue
        options += [f"--{name}", str(kept.pop(key))]
    return kept, options


#: Keys that a marker has no word for, or that belong to a body of its own.
_NOT_MARKED = frozenset(
    ("name", "service", "inputs", "samplings", "criteria", "rate", "timeout", "retries", "abort")
) | {"inconclusive", "models", "arms", "activity", "before_each", "graders", "description"}
#: Keys of a criterion that need a score, which `trial.check` does not take.
_SCORES = frozenset(("graders", "pass_at", "mean_at_least", "no_worse_than", "sampling"))
_MARKED = """
import json

import pytest
import svc

MARKER = json.loads({marker!r})


@pytest.mark.trials(**MARKER)
def test_meeting(trial):
    reply = svc.{service}(trial.input, trial.seed)
    for name in MARKER["criteria"]:
        trial.check(name, "yes" in reply)
"""


def write_marked_test(document: dict[str, Any]) -> str | None:
    """Write the test of pytest that asks what a suite asks; None where a marker cannot."""
    service = document["service"].get("python", "").removeprefix("svc:")
    criteria = {one["name"]: dict(one) for one in document["criteria"]}
    if service not in ("perfect", "good", "poor", "raising", "dead"):
        return None
    if "baseline" in json.dumps(document) or any(_SCORES & one.keys() for one in criteria.values()):
        return None
    if any(one.get("report_only") for one in criteria.values()) or "samplings" in document:
        return None
    for one in criteria.values():
        for key in ("name", "contains", "postconditions", "python"):
            one.pop(key, None)
    marker = {key: value for key, value in document.items() if key not in _NOT_MARKED}
    inputs = [one["value"] if isinstance(one, dict) else one for one in document["inputs"]]
    marker |= {"inputs": inputs, "criteria": criteria}
    return _MARKED.format(marker=json.dumps(marker), service=service)
