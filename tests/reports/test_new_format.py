"""A new output format is one file: declared by another distribution, and used everywhere."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from trialwise.cli.main import cli
from trialwise.errors import InvalidArgument
from trialwise.model.run import RunRecord
from trialwise.reports.formats import (
    ReportSource,
    find_format,
    match_format,
    render_report,
    write_report,
)

#: The whole of the new format.
CSV = """
import csv, io
from trialwise.reports.formats import report_format

@report_format("csv", ".csv", summary="a table for spreadsheets")
def CSV(source):
    text = io.StringIO()
    writer = csv.writer(text)
    for line in source.results.results:
        writer.writerow([line.contract, line.name, line.label, line.facts.get("trials")])
    return text.getvalue()
"""
SUITE = """
service: {python: "agent:answer"}
inputs: [one, two]
criteria:
  - {name: answers, contains: "yes", at_least: 50%, trials: 10}
curtail: false
reports: {csv: out/results.csv}
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an installed distribution that declares the format."""
    site = tmp_path / "site"
    folder = site / "csvreport-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: csvreport\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[trialwise.reporters]\ncsv = csv_report:CSV\n")
    (site / "csv_report.py").write_text(CSV)
    monkeypatch.syspath_prepend(str(site))
    return site


@pytest.mark.usefixtures("installed")
def test_the_format_is_found_by_name_and_by_ending(suite: list[RunRecord], tmp_path: Path) -> None:
    """It renders the same lines as the built-in formats."""
    assert "csv" == find_format("csv").name == match_format("out/Results.CSV").name

    rows = render_report(ReportSource(records=suite), "csv").splitlines()
    written = (
        write_report(tmp_path / "results.csv", ReportSource(records=suite)).read_bytes().decode()
    )

    assert "support-agent,valid-json,PASS,100" == rows[0]
    assert render_report(ReportSource(records=suite), "csv") == written
    tests = render_report(ReportSource(records=suite), "junit").count("<testcase ")
    assert tests == len(rows)


@pytest.mark.usefixtures("installed")
def test_a_suite_and_the_command_line_know_the_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a key of `reports`, by `-o`, and as `--format` of stored runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "trialwise.yaml").write_text(SUITE)
    (tmp_path / "agent.py").write_text("def answer(question):\n    return 'yes'\n")

    run = CliRunner().invoke(cli, ["run", "--quiet", "-o", "again.csv"])
    shown = CliRunner().invoke(cli, ["report", "--format", "csv"])

    assert "" == run.stderr
    first = (tmp_path / "out" / "results.csv").read_text()
    assert ",answers,PASS,10" in first
    assert first == (tmp_path / "again.csv").read_text()
    assert first.split() == shown.stdout.split()


@pytest.mark.usefixtures("installed")
def test_the_schema_of_a_suite_has_the_key() -> None:
    """An editor completes it as it completes the built-in ones."""
    from trialwise.suite.keys import suite_schema

    keys = suite_schema(installed=True)["$defs"]["reports"]["properties"]

    assert "Where to write a table for spreadsheets." == keys["csv"]["description"]
    assert json.dumps(keys["html"])


@pytest.mark.usefixtures("installed")
def test_a_name_that_nobody_declares_is_refused_with_all_that_exist() -> None:
    """The format of the other distribution among them."""
    with pytest.raises(InvalidArgument, match=r"be one of gitlab, .*, transparent, csv"):
        find_format("pdf")
    with pytest.raises(InvalidArgument, match=r"end with \.json, .*\.txt, \.csv or"):
        match_format("report.pdf")


#: A format whose author made a mistake.
BROKEN = """
from trialwise.reports.formats import report_format

@report_format("csv", ".csv", summary="a table for spreadsheets")
def CSV(source):
    return source.no_such_thing
"""


def test_a_format_that_raises_is_named_and_the_verdict_is_printed_first(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is kept, and no report is taken for a success: a PASS exits with 4, a FAIL with 1."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (installed / "csv_report.py").write_text(BROKEN)
    monkeypatch.delitem(sys.modules, "csv_report", raising=False)
    (tmp_path / "trialwise.yaml").write_text(SUITE)
    for reply, code in (("yes", 4), ("no", 1)):
        monkeypatch.delitem(sys.modules, "agent", raising=False)
        (tmp_path / "agent.py").write_text(f"def answer(question):\n    return {reply!r}\n")

        done = CliRunner().invoke(cli, ["run", "--quiet"], standalone_mode=False)

        assert done.return_value == code, done.output
        assert {"yes": "PASS", "no": "FAIL"}[reply] in done.stdout
        assert "csvreport 1.0 raised AttributeError: " in done.stderr
        assert "in the format 'csv'; File " in done.stderr
        assert "The run is kept" in done.stderr
