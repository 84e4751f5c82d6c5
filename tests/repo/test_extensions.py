"""Entry points of other distributions: found by name, loaded on demand, refused with a remedy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from trialwise.cli.main import cli
from trialwise.extensions import (
    CHECKS,
    COMMANDS,
    ExtensionError,
    extension_names,
    find_extension,
    load_extensions,
)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed distributions that the interpreter sees."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def install(site: Path, distribution: str, group: str = CHECKS, **checks: str) -> None:
    folder = site / f"{distribution}-1.2.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
    lines = "".join(f"{name} = {value}\n" for name, value in checks.items())
    (folder / "entry_points.txt").write_text(f"[{group}]\n{lines}")


def as_text(loaded: object) -> str | None:
    return loaded if isinstance(loaded, str) else None


def test_a_name_that_nobody_declares_is_none(site: Path) -> None:
    install(site, "other", is_xml="missing_module:check")
    assert find_extension(CHECKS, "is_sql", as_text) is None


def test_a_declared_object_is_loaded_and_its_neighbours_are_not(site: Path) -> None:
    (site / "sqlcheck_a.py").write_text("IS_SQL = 'the check'\n")
    install(site, "sqlcheck", is_sql="sqlcheck_a:IS_SQL", broken="missing_module:check")
    assert find_extension(CHECKS, "is_sql", as_text) == "the check"


def test_names_are_listed_without_an_import(site: Path) -> None:
    (site / "sqlcheck_b.py").write_text("IS_SQL = 'the check'\n")
    install(site, "sqlcheck", is_sql="sqlcheck_b:IS_SQL", is_ddl="sqlcheck_b:IS_SQL")
    assert extension_names(CHECKS) == ("is_ddl", "is_sql")
    assert "sqlcheck_b" not in sys.modules


def test_all_extensions_of_a_group_come_in_order_of_name(site: Path) -> None:
    (site / "sqlcheck_c.py").write_text("A = 'a'\nB = 'b'\n")
    install(site, "sqlcheck", second="sqlcheck_c:A", first="sqlcheck_c:B")
    assert list(load_extensions(CHECKS, as_text).items()) == [("first", "b"), ("second", "a")]


def test_an_extension_that_cannot_be_imported_names_its_distribution(site: Path) -> None:
    install(site, "sqlcheck", is_sql="missing_module:check")
    with pytest.raises(ExtensionError) as refused:
        find_extension(CHECKS, "is_sql", as_text)
    assert str(refused.value) == (
        "trialwise.checks: 'is_sql' of sqlcheck 1.2 cannot be imported from "
        "'missing_module:check' (ModuleNotFoundError: No module named 'missing_module'). "
        "Update or uninstall sqlcheck 1.2."
    )


def test_an_object_of_another_type_is_refused(site: Path) -> None:
    (site / "sqlcheck_d.py").write_text("IS_SQL = 7\n")
    install(site, "sqlcheck", is_sql="sqlcheck_d:IS_SQL")
    with pytest.raises(ExtensionError, match=r"is not what this group holds.* is int"):
        find_extension(CHECKS, "is_sql", as_text)


def test_two_distributions_with_one_name_are_both_named(site: Path) -> None:
    install(site, "one", is_sql="module_one:check")
    install(site, "two", is_sql="module_two:check")
    with pytest.raises(ExtensionError, match=r"one 1\.2 and two 1\.2|two 1\.2 and one 1\.2"):
        find_extension(CHECKS, "is_sql", as_text)


def test_a_distribution_that_is_on_the_path_twice_counts_once(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (site / "sqlcheck_e.py").write_text("IS_SQL = 'the check'\n")
    install(site, "sqlcheck", is_sql="sqlcheck_e:IS_SQL")
    again = site / "again"
    again.mkdir()
    install(again, "sqlcheck", is_sql="sqlcheck_e:IS_SQL")
    monkeypatch.syspath_prepend(str(again))
    assert find_extension(CHECKS, "is_sql", as_text) == "the check"


#: Each of these raises.
RAISING = """
import sqlite3
from dataclasses import dataclass

from trialwise.extend import *


@dataclass(frozen=True, slots=True)
class Odd(Check, spelling="odd"):
    name = "odd"

    def _examine(self, reply):
        return 1 / 0


class Down:
    def __init__(self, to: str):
        self.to = 1 / 0


class Betting(Procedure):
    name = "BETTING"

    def plan(self, criterion, situation):
        return situation.start_plan(criterion, procedure=self.name, trials=10, curtailed=False)

    def conclude(self, plan, counts):
        return 1 / 0


@report_format("odd", ".odd", summary="odd numbers")
def REPORT(source):
    return 1 / 0


def find_role(root):
    return "odd" if root.is_mapping and "odd" in root.entries else None


IMPORTER = SuiteImporter(
    name="odd", signs="has `odd`", find_role=find_role, import_files=lambda request: 1 / 0
)


def command():
    return 1 / 0
"""
POINTS = """
[trialwise.checks]
odd = raising:Odd
[trialwise.services]
down = raising:Down
[trialwise.procedures]
BETTING = raising:Betting
[trialwise.reporters]
odd = raising:REPORT
[trialwise.importers]
odd = raising:IMPORTER
[trialwise.commands]
odd = raising:command
"""
GOOD = """
  - name: good
    service: {command: [echo, fine, "{input}"]}
    inputs: [a]
    criteria: [{name: fine, contains: fine, at_least: 50%, trials: 10}]
"""
BAD = """
  - name: bad
    service: {command: [echo, fine, "{input}"]}
    inputs: [a]
    criteria: [{name: fine, contains: fine, at_least: 50%, trials: 10}]
"""


@pytest.mark.parametrize(
    ("suite", "command", "verdict"),
    [
        ((GOOD, BAD), ["run", "-q", "-o", "x.odd"], "PASS  both contracts passed"),
        ((GOOD, BAD.replace("50%", "50%, procedure: BETTING")), ["run", "-q"], "PASS"),
        ((BAD.replace("contains: fine", "odd: {}"),), ["run", "-q"], None),
        ((BAD.replace('command: [echo, fine, "{input}"]', "down: {to: x}"),), ["check"], None),
        ((GOOD,), ["import", "other.yaml"], None),
        ((GOOD,), ["odd"], None),
    ],
    ids=["report", "procedure", "check", "service", "importer", "command"],
)
def test_an_extension_that_raises_is_named_and_what_was_decided_is_said(
    site: Path, suite: tuple[str, ...], command: list[str], verdict: str | None
) -> None:
    """By its distribution, with exit code 4, which no verdict has; the verdicts come first."""
    install(site, "odds")
    (site / "odds-1.2.dist-info" / "entry_points.txt").write_text(POINTS)
    (site / "raising.py").write_text(RAISING)
    (site / "trialwise.yaml").write_text(f"contracts:{''.join(suite)}")
    (site / "other.yaml").write_text("odd: 1\n")

    done = subprocess.run(
        [sys.executable, "-m", "trialwise.cli.main", *command],
        cwd=site,
        env={**os.environ, "PYTHONPATH": str(site), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 4, done.stdout + done.stderr
    assert "odds 1.2" in done.stderr
    assert "ZeroDivisionError: division by zero" in done.stderr
    assert "internal error" not in done.stderr
    assert (verdict or "") in done.stdout
    assert ("PASS" in done.stdout) is (verdict is not None)


def test_a_run_whose_procedure_was_repaired_is_decided_from_its_trials(site: Path) -> None:
    """Nothing is asked again: the trials were kept."""
    install(site, "odds")
    (site / "odds-1.2.dist-info" / "entry_points.txt").write_text(POINTS)
    (site / "raising.py").write_text(RAISING)
    contract = BAD.replace("50%", "50%, procedure: BETTING").replace("echo, fine", "sh, ask.sh")
    (site / "trialwise.yaml").write_text(f"contracts:{contract}")
    (site / "ask.sh").write_text("echo asked >> asked.txt\necho fine\n")
    python = [sys.executable, "-m", "trialwise.cli.main", "run", "-q"]
    environment = {**os.environ, "PYTHONPATH": str(site), "NO_COLOR": "1"}

    first = subprocess.run(
        python, cwd=site, env=environment, capture_output=True, text=True, check=False
    )
    repaired = RAISING.replace(
        "def conclude(self, plan, counts):\n        return 1 / 0",
        "def conclude(self, plan, counts):\n"
        "        return Conclusion(decision=Decision.PASS, tally=counts.tally)",
    )
    (site / "raising.py").write_text(repaired)
    second = subprocess.run(
        [*python, "--resume"],
        cwd=site,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert "`trialwise run --resume` decides them" in first.stderr
    assert (0, "") == (second.returncode, second.stderr), second.stdout + second.stderr
    assert len((site / "asked.txt").read_text().splitlines()) == 10


def test_an_extension_adds_a_command(site: Path) -> None:
    """A function or a click command; its docstring is its help, and only a second page loads it."""
    (site / "fleet_a.py").write_text(
        "import click\n\n\ndef fleet() -> int:\n    '''Run every suite of the fleet.'''\n"
        "    click.echo('sailing')\n    return 3\n"
    )
    install(site, "fleet", COMMANDS, fleet="fleet_a:fleet", adrift="missing_module:command")
    short = CliRunner().invoke(cli, ["--help"])

    assert "fleet" not in short.output
    assert "fleet_a" not in sys.modules
    done = CliRunner().invoke(cli, ["fleet"], standalone_mode=False)
    assert ("sailing\n", 3) == (done.stdout, done.return_value)
    assert "Run every suite of the fleet." in CliRunner().invoke(cli, ["fleet", "--help"]).output
    whole = CliRunner().invoke(cli, ["--help-all"])
    assert "  adrift  cannot be imported" in " ".join(whole.output.split("\n")), whole.output
    assert "  fleet   Run every suite of the fleet." in whole.output
