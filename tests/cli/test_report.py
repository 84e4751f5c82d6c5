"""`trialwise report`: the reports of stored runs, written after the fact."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from click import BadParameter
from click.testing import CliRunner, Result

import trialwise as tw
from trialwise.cli.stored_commands import report_command
from trialwise.errors import InvalidArgument, RunNotFound
from trialwise.reports.formats import BUILT_IN, ReportNotWritten


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a run each of two contracts."""
    monkeypatch.chdir(tmp_path)
    for name, answer in (("good", "right"), ("bad", "wrong")):
        criterion = tw.Criterion("right", tw.contains("right"), at_least=0.9)
        one = tw.Contract(name, lambda _question, answer=answer: answer, [criterion])
        tw.run(one, inputs=["1"], trials=50, store=tmp_path / ".trialwise", progress=False)
    return tmp_path


def do_report(*arguments: str | Path) -> Result:
    return CliRunner().invoke(report_command, [*map(str, arguments)], standalone_mode=False)


def test_several_reports_are_written_by_extension(folder: Path) -> None:
    """Folders are made, standard output stays empty, and 0 is not the verdict's."""
    names = ["out/r.json", "out/r.junit.xml", "out/r.html", "r.md", "r.tap", "r.txt"]
    done = do_report("bad", *(part for name in names for part in ("-o", name)))

    assert (0, "") == (done.return_value, done.stdout)
    assert [f"wrote {name}" for name in names] == done.stderr.splitlines()
    assert "FAIL" == json.loads((folder / "out/r.json").read_text(encoding="utf-8"))["decision"]
    suites = ET.parse(folder / "out/r.junit.xml").getroot()
    assert ["1"] == [one.get("failures") for one in suites.iter("testsuite")]
    assert (folder / "out/r.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert "not ok" in (folder / "r.tap").read_text(encoding="utf-8")
    assert "STATISTICAL ANALYSIS: bad" in (folder / "r.txt").read_text(encoding="utf-8")


def test_without_a_place_markdown_is_printed() -> None:
    """Of everything that was run last."""
    done = do_report()

    assert "### ❌ bad: FAIL" in done.stdout
    assert "### ✅ good: PASS" in done.stdout
    assert "good" not in do_report("latest").stdout
    assert done.stdout == do_report("--format", "markdown").stdout


@pytest.mark.parametrize("kind", BUILT_IN)
def test_every_format_is_printed(kind: str) -> None:
    """As it would be written."""
    done = do_report("good", "--format", kind)

    assert (0, "") == (done.return_value, done.stderr)
    assert "good" in done.stdout or kind == "gitlab"
    if BUILT_IN[kind].is_json:
        json.loads(done.stdout)
    if kind == "junit":
        ET.fromstring(done.stdout)


def test_the_help_names_every_format_and_every_ending() -> None:
    """Derived from the declarations of the formats."""
    shown = " ".join(do_report("--help").stdout.split())

    assert f"[{'|'.join(BUILT_IN)}]" in shown.replace(" ", "")
    assert all(ending in shown for ending in (".json", ".xml", ".html", ".md", ".tap", ".txt"))


def test_runs_of_several_contracts_make_one_report() -> None:
    """A suite: FAIL beats PASS."""
    whole: dict[str, Any] = json.loads(do_report("--all", "--format", "json").stdout)

    assert ["good", "bad"] == [run["contract"] for run in whole["runs"]]
    assert ("FAIL", 1) == (whole["decision"], whole["exit_code"])
    named = json.loads(do_report("bad", "good", "--format", "json").stdout)
    assert ["bad", "good"] == [run["contract"] for run in named["runs"]]


def test_a_report_may_be_written_and_another_printed(folder: Path) -> None:
    """What is written is told on standard error."""
    done = do_report("-o", "r.json", "--format", "tap")

    assert done.stdout.startswith("TAP version 14")
    assert (folder / "r.json").is_file()
    assert "wrote r.json" == done.stderr.strip()


def test_the_report_bears_the_name_of_the_suites_folder(folder: Path) -> None:
    """As the reports of `run` do."""
    (folder / "trialwise.yaml").write_text("service: {}\n", encoding="utf-8")

    assert folder.name == json.loads(do_report("--format", "json").stdout)["name"]


def test_a_record_is_named_by_where_it_is() -> None:
    """From this folder."""
    run = json.loads(do_report("--format", "json").stdout)["runs"][0]

    assert f".trialwise/runs/{run['run_id']}" == run["record"]


def test_an_unknown_extension_is_told_before_anything_is_written(folder: Path) -> None:
    """Also where another one is known."""
    error = do_report("-o", "r.json", "-o", "r.pdf").exception

    assert isinstance(error, InvalidArgument)
    assert "r.pdf" in str(error)
    assert not (folder / "r.json").exists()


def test_a_place_that_cannot_be_written_to_is_named(folder: Path) -> None:
    """A file stands where a folder is needed."""
    (folder / "taken").write_text("", encoding="utf-8")

    assert isinstance(do_report("-o", "taken/r.json").exception, ReportNotWritten)


def test_an_unknown_format_and_an_unknown_run_are_refused() -> None:
    """With what there is."""
    assert isinstance(do_report("--format", "pdf").exception, BadParameter)
    error = do_report("ugly").exception
    assert isinstance(error, RunNotFound)
    assert "bad, good" in str(error)
