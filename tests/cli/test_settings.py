"""Options that say how a suite runs: the everyday ones, `--set` for the rest, and old spellings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from trialwise.cli.main import cli
from trialwise.errors import DesignRefused
from trialwise.suite import SuiteError

SUITE = """
service: {command: [echo, "{input}"]}
inputs: [apple, banana]
criteria: [{name: answers, contains: "a", at_least: 70%}]
trials: 20
seed: 1
budget: {time: 1h}
contracts:
  - {name: first}
  - {name: second, rule: exact}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trialwise.yaml").write_text(SUITE)
    return tmp_path


def do(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, standalone_mode=False)


def read_plans(*arguments: str) -> list[dict[str, Any]]:
    done = do("check", *arguments, "--json")
    assert done.exception is None, done.exception
    contracts: list[dict[str, Any]] = json.loads(done.stdout)["contracts"]
    return contracts


def test_a_setting_prevails_over_the_suite_and_its_contracts() -> None:
    """At the top, and where a contract has the key itself."""
    assert [40, 40] == [one["max_trials"] for one in read_plans("--set", "trials=40")]
    rules = [one["criteria"][0]["rule"] for one in read_plans("--set", "rule=wilson")]
    assert 1 == len(set(rules))
    assert rules != [one["criteria"][0]["rule"] for one in read_plans()]


def test_a_setting_within_another_keeps_its_neighbours() -> None:
    """Such as one limit of the budget."""
    text = do("check", "first", "--set", "budget.trials=90").stdout
    assert "Budget: 90 trials, 60 min" in text, text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("rul=wilson", "--set rul=wilson: unknown key `rul`; did you mean `rule`?"),
        ("rule=wilso", "--set rule=wilso: `rule` must be `exact`, `wilson` or `fisher`"),
        ("budget.mony=2", "--set budget.mony=2: unknown key `mony`; did you mean `money`?"),
        ("horizon=[1", "--set horizon=[1: this is not YAML"),
        ("rule", "--set rule: a setting is written as key=value"),
    ],
)
def test_a_mistake_is_refused_as_in_the_suite_with_the_option_as_place(
    given: str, said: str
) -> None:
    error = do("check", "--set", given).exception
    assert isinstance(error, SuiteError)
    assert said in str(error)


def test_a_design_that_a_setting_made_impossible_names_the_option() -> None:
    """Not a line of the file, which is innocent."""
    error = do("check", "first", "--set", "budget.money=2").exception
    assert isinstance(error, DesignRefused)
    assert "--set budget.money=2: " in str(error)


def test_an_old_spelling_works_and_says_what_replaced_it() -> None:
    """In one line on standard error, and on no help page."""
    old = do("check", "first", "--rule", "wilson")
    new = do("check", "first", "--set", "rule=wilson")
    assert old.stdout == new.stdout
    assert "trialwise: --rule is now --set rule=…\n" == old.stderr
    assert "" == new.stderr
    assert "--rule" not in do("check", "--help-all").stdout


def test_the_help_of_run_shows_what_is_used_every_day() -> None:
    """In groups; the second page has the other options and the settings."""
    short, whole = do("run", "--help").stdout, do("run", "--help-all").stdout
    titles = ("Choose", "Size", "Decide", "Run", "Limits", "Continue", "Output")
    assert [f"{one}:" for one in titles] == [
        line for line in short.splitlines() if line.rstrip(":") in titles
    ]
    assert "--jobs" not in short
    assert "--jobs" in whole
    assert "\n  family_size " in whole
