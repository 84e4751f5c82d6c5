"""`trialwise import`: a file of another tool becomes a suite that runs."""

from __future__ import annotations

import os
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from trialwise.contrib.commands.import_command import command
from trialwise.errors import TrialwiseError
from trialwise.suite import load_suite

CERBERUS = """
adapter:
  command: "cat {{scenario}}"
  timeout: 5000
studies:
  - name: echo
    scenario: scenario.yaml
    contracts:
      - name: exits-cleanly
        type: code
        assert: "output.meta.exitCode === 0"
        threshold: 0.9
        trials: 50
"""


def do(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [str(one) for one in arguments], standalone_mode=False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "scenario.yaml").write_text("input: hello\n")
    path = tmp_path / "cerberus.yaml"
    path.write_text(CERBERUS)
    return path


def test_a_cerberus_file_becomes_a_suite_that_loads(file: Path) -> None:
    """Written beside it, loaded like any other, decided by Wald's test as there."""
    done = do(file)
    assert done.return_value == 0, done.exception
    suite = load_suite(file.parent / "trialwise.yaml", environment=os.environ)
    (criterion,) = suite.contracts[0].contract.criteria
    assert (criterion.name, criterion.method, criterion.max_trials) == ("exits-cleanly", "wald", 50)


def test_nothing_is_overwritten_unasked(file: Path) -> None:
    """The second import is refused, unless it is forced."""
    assert do(file).return_value == 0
    assert isinstance(do(file).exception, click.UsageError)
    assert do(file, "--force").return_value == 0


def test_what_cannot_be_carried_over_is_refused_and_nothing_is_written(file: Path) -> None:
    """An assertion that calls a function of its own."""
    file.write_text(CERBERUS.replace("output.meta.exitCode === 0", "fetch(output)"))
    assert isinstance(do(file).exception, TrialwiseError)
    assert not (file.parent / "trialwise.yaml").exists()


def test_it_can_be_looked_at_first(file: Path) -> None:
    """On standard output, with nothing written."""
    done = do(file, "--stdout")
    assert "exits-cleanly" in done.stdout
    assert not (file.parent / "trialwise.yaml").exists()
