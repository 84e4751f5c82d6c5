"""`trialwise schema`: the schemas that are shipped, whole and valid."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest
from click import FileError
from click.testing import CliRunner, Result

from trialwise.cli import project_commands as schema

SHIPPED = {
    "suite": ("trialwise.suite", "trialwise.schema.json"),
    "report": ("trialwise.pages", "verdict.schema.json"),
    "comparison": ("trialwise.pages", "comparison.schema.json"),
}


def do_schema(*arguments: str | Path) -> Result:
    return CliRunner().invoke(schema.schema_command, [*map(str, arguments)], standalone_mode=False)


@pytest.mark.parametrize("what", SHIPPED)
def test_the_schema_is_the_one_that_is_shipped(what: str) -> None:
    """And a JSON Schema of draft 2020-12."""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

    done = do_schema("--for", what)
    printed = json.loads(done.stdout)
    package, name = SHIPPED[what]

    assert (0, "") == (done.return_value, done.stderr)
    Draft202012Validator.check_schema(printed)
    assert json.loads(files(package).joinpath(name).read_text("utf-8")) == printed


def test_the_suites_is_meant_where_nothing_is_said() -> None:
    """It is the one that people write by."""
    assert do_schema("--for", "suite").stdout == do_schema().stdout


def test_a_file_holds_the_same(tmp_path: Path) -> None:
    """And standard output stays empty."""
    path = tmp_path / "trialwise.schema.json"
    done = do_schema("-o", path)

    assert ("", f"wrote {path}\n") == (done.stdout, done.stderr)
    assert json.loads(do_schema().stdout) == json.loads(path.read_text(encoding="utf-8"))


def test_a_place_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Without a traceback."""
    assert isinstance(do_schema("-o", tmp_path / "no" / "s.json").exception, FileError)
