"""The example of a plugin: installed beside trialwise, used in a suite, the schema and Python."""

from __future__ import annotations

import ast
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin"

SUITE = """
service: {sqlite: {database: shop.db, rows: 5}}
inputs: [SELECT name FROM customers, SELECT 1]
criteria:
  - {name: answers, python: "own:is_list", at_least: 50%}
trials: 30
seed: 1
reports: {csv: results.csv}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the plugin is installed, as an installer leaves it there."""
    folder = tmp_path_factory.mktemp("site")
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(EXAMPLE / "src" / "trialwise_sql", folder / "trialwise_sql", ignore=ignored)
    info = folder / f"trialwise_sql-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    points = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    )
    (info / "entry_points.txt").write_text(points)
    return folder


def run(site: Path, folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(site), "NO_COLOR": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a suite that uses the plugin."""
    database = sqlite3.connect(tmp_path / "shop.db")
    database.executescript("CREATE TABLE customers (name TEXT); INSERT INTO customers VALUES ('A')")
    database.close()
    (tmp_path / "own.py").write_text("def is_list(value):\n    return isinstance(value, list)\n")
    (tmp_path / "trialwise.yaml").write_text(SUITE)
    return tmp_path


def test_a_suite_uses_the_service_and_the_report(site: Path, folder: Path) -> None:
    said = run(site, folder, "-m", "trialwise.cli.main", "run", "--quiet")

    assert "PASS" in said, said
    assert "shop" in said, "the service is called by its database"
    lines = (folder / "results.csv").read_text().splitlines()
    assert ["contract,criterion,decision", "shop,answers,PASS"] == lines


def test_a_suite_uses_the_check(site: Path, folder: Path) -> None:
    (folder / "trialwise.yaml").write_text(
        'service: {command: [echo, "SELECT {input}"]}\ninputs: [1, name FROM t]\ntrials: 30\n'
        "keep_going: true\n"
        "criteria:\n"
        "  - {name: plain, runs_as_sql: {}, at_least: 90%}\n"
        '  - {name: set-up, runs_as_sql: "CREATE TABLE t (name TEXT)", at_least: 50%}\n'
    )
    said = run(site, folder, "-m", "trialwise.cli.main", "run", "--quiet", "--seed", "1")

    lines = [line for line in said.splitlines() if line.strip().startswith(("plain", "set-up"))]
    plain, prepared = lines[:2]
    assert "FAIL" in plain
    assert "PASS" in prepared


def test_the_schema_describes_what_is_installed(site: Path, folder: Path) -> None:
    schema = json.loads(run(site, folder, "-m", "trialwise.cli.main", "schema"))
    definitions = schema["$defs"]

    assert "runs_as_sql" in definitions["criterion"]["properties"]
    assert "runs_as_sql" in definitions["postcondition"]["properties"]
    assert "database" in definitions["sqlite"]["properties"]
    assert "csv" in definitions["reports"]["properties"]


def test_python_uses_them_by_their_modules_and_the_registry(site: Path, folder: Path) -> None:
    code = """
from trialwise.checks import from_spec, to_spec
from trialwise.model.reply import Reply
check = from_spec({"runs_as_sql": "CREATE TABLE t (a)"})
print(check.check(Reply(value="SELECT a FROM t")).passed, to_spec(check))
"""
    assert "True {'runs_as_sql': 'CREATE TABLE t (a)'}\n" == run(site, folder, "-c", code)


@pytest.mark.slow
def test_they_conform(site: Path, folder: Path) -> None:
    code = """
from trialwise.testing import *
from trialwise_sql.csv_report import FORMAT
from trialwise_sql.sql_check import RunsAsSql
from trialwise_sql.sqlite_service import SqliteService
assert_check_conforms(RunsAsSql, [{}, {"setup": "CREATE TABLE t (a)"}], failing=["SELEC 1"])
assert_service_conforms(lambda: SqliteService("shop.db"), ["SELECT 1", "SELECT 2"])
assert_report_format_conforms(FORMAT)
print("fine")
"""
    assert "fine\n" == run(site, folder, "-c", code)


def test_a_file_of_queries_is_imported_and_runs(site: Path, folder: Path) -> None:
    (folder / "queries.yaml").write_text("database: shop.db\nqueries: [SELECT 1, SELECT 2]\n")
    (folder / "trialwise.yaml").unlink()
    command = ("-m", "trialwise.cli.main")

    said = run(site, folder, *command, "import", "queries.yaml", "-o", "trialwise.yaml")
    assert "at_least" in said, said
    assert "PASS" in run(site, folder, *command, "run", "--quiet", "--seed", "1")


def test_a_procedure_decides_and_the_next_process_verifies_the_record(
    site: Path, folder: Path
) -> None:
    """Its design and its evidence are classes of its own, which only the record names."""
    suite = SUITE.replace("at_least: 50%", "at_least: 80%, procedure: SUCCESS_RUN")
    (folder / "trialwise.yaml").write_text(suite.replace("trials: 30\n", ""))
    command = ("-m", "trialwise.cli.main")

    planned = run(site, folder, *command, "check")
    assert "PASS with 14 of 14, otherwise INCONCLUSIVE" in planned
    assert "PASS in 4.4 % of runs" in planned
    said = run(site, folder, *command, "run", "--quiet", "-o", "whole.txt")
    assert "PASS" in said, said
    assert "RUN OF SUCCESSES" in (folder / "whole.txt").read_text()
    assert "VERIFIED" in run(site, folder, *command, "show", "--verify")
    refused = run(site, folder, *command, "run", "--quiet", "--trials", "5")
    assert "answers: 5 trials are too few for a run of successes; give 14" in refused


def test_a_setting_is_read_with_its_place_and_described(site: Path, folder: Path) -> None:
    """An argument of the service is a key, with the limits that its annotation says."""
    (folder / "trialwise.yaml").write_text(SUITE.replace("rows: 5", "rows: 0"))
    said = run(site, folder, "-m", "trialwise.cli.main", "check")
    schema = json.loads(run(site, folder, "-m", "trialwise.cli.main", "schema"))

    assert "`rows` must be a whole number of at least 1, got `0`" in said
    assert (
        "The most rows of a reply."
        == (schema["$defs"]["sqlite"]["properties"]["rows"]["description"])
    )


def test_a_command_runs_and_has_a_help_page(site: Path, folder: Path) -> None:
    command = ("-m", "trialwise.cli.main")

    assert "customers\n" == run(site, folder, *command, "tables", "shop.db")
    assert "List the tables of a SQLite database." in run(site, folder, *command, "--help-all")


def test_the_plugin_imports_the_one_module_for_extensions() -> None:
    """Nothing else is under the promise that it keeps working."""
    imported = {
        node.module
        for path in (EXAMPLE / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("trialwise.")
    }

    assert {"trialwise.extend"} == imported


def test_without_the_plugin_its_words_are_unknown(tmp_path: Path, folder: Path) -> None:
    said = run(tmp_path, folder, "-m", "trialwise.cli.main", "check")

    assert "unknown key `sqlite` in a service" in said
    assert "unknown key `csv` in `reports`" in said
