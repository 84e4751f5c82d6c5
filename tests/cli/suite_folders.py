"""A folder with a suite and its service, and commands that are typed in it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from trialwise.cli.main import cli


class Done(NamedTuple):
    """A command that has ended."""

    output: str
    exit_code: int


def enter_folder(folder: Path, monkeypatch: pytest.MonkeyPatch, service: str) -> Path:
    """Make a folder the current one, with a service in `svc.py` that was never imported."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "svc", raising=False)
    (folder / "svc.py").write_text(service)
    return folder


def type_command(suite: str, *arguments: str) -> Done:
    """Return what a command prints and exits with, in a folder with this suite."""
    Path("trialwise.yaml").write_text(suite)
    environment = {"NO_COLOR": "1", "COLUMNS": "100"}
    done = CliRunner().invoke(cli, list(arguments), env=environment, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return Done(done.output, done.return_value)
