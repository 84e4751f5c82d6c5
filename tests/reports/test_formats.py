"""Formats: the ending of a name chooses the report, and a file is written whole or not at all."""

from __future__ import annotations

import json
import os
import pickle
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from trialwise.errors import InvalidArgument, TrialwiseError
from trialwise.model.run import RunRecord
from trialwise.reports.formats import (
    BUILT_IN,
    ReportNotWritten,
    ReportSource,
    match_format,
    render_report,
    write_report,
)

BEGINNINGS = {
    "json": '{\n  "schema": "trialwise.report/2"',
    "jsonl": '{"type": "run", "schema": "trialwise.results/1"',
    "junit": '<?xml version="1.0" encoding="utf-8"?>\n<testsuites',
    "html": "<!DOCTYPE html>",
    "markdown": "<!-- trialwise-report: ",
    "tap": "TAP version 14\n",
    "transparent": "STATISTICAL ANALYSIS: support-agent",
    "gitlab": '[\n  {\n    "type": "issue"',
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("report.json", "json"),
        ("a.b/report.junit.xml", "junit"),
        ("report.xml", "junit"),
        ("REPORT.HTML", "html"),
        ("report.htm", "html"),
        ("summary.md", "markdown"),
        ("report.tap", "tap"),
        ("analysis.txt", "transparent"),
        ("nightly.codequality.json", "gitlab"),
        ("out/gl-code-quality-report.json", "gitlab"),
    ],
)
def test_an_ending_chooses_the_report(name: str, expected: str) -> None:
    """Whatever its case, in whatever folder."""
    assert expected == match_format(name).name
    assert expected == match_format(Path(name)).name


@pytest.mark.parametrize("name", ["report", "report.pdf", "", ".json", "json", "a.json/report"])
def test_any_other_ending_is_refused_with_the_choice(name: str) -> None:
    """Nobody has to guess what is possible."""
    with pytest.raises(
        InvalidArgument, match=r"output must end with \.json, \.jsonl, \.xml, \.html"
    ):
        match_format(name)


@pytest.mark.parametrize("chosen", BUILT_IN)
def test_every_format_is_rendered(suite: list[RunRecord], chosen: str) -> None:
    """As text that begins as its kind does."""
    text = render_report(ReportSource(records=suite, name="nightly", exit_code=1), chosen)

    assert BEGINNINGS[chosen] == text[: len(BEGINNINGS[chosen])]


@pytest.mark.parametrize("chosen", BUILT_IN)
def test_no_report_of_nothing(chosen: str) -> None:
    """What was not run is never PASS, in any format."""
    with pytest.raises(InvalidArgument, match="never PASS"):
        render_report(ReportSource(records=[]), chosen)


def test_what_is_known_of_the_run_reaches_the_report(suite: list[RunRecord]) -> None:
    """The suite's name, the exit code, the place of a record and the suite file."""
    given = json.loads(
        render_report(
            ReportSource(
                records=suite, name="nightly", exit_code=4, locations={"run-1": "runs/run-1"}
            ),
            "json",
        )
    )
    quality = json.loads(render_report(ReportSource(records=suite, file="nightly.yaml"), "gitlab"))

    assert ("nightly", 4) == (given["name"], given["exit_code"])
    assert ["runs/run-1", None, None] == [run["record"] for run in given["runs"]]
    assert {"nightly.yaml"} == {entry["location"]["path"] for entry in quality}


def test_a_report_is_written_with_its_folders(suite: list[RunRecord], tmp_path: Path) -> None:
    """The file holds what is rendered, as UTF-8, and nothing is left beside it."""
    place = tmp_path / "deep" / "er" / "report.md"

    assert place == write_report(place, ReportSource(records=suite))
    assert render_report(ReportSource(records=suite), "markdown") == place.read_bytes().decode(
        "utf-8"
    )
    assert [place] == list(place.parent.iterdir())


def test_a_later_report_replaces_an_earlier_one(suite: list[RunRecord], tmp_path: Path) -> None:
    """Permissions stay, and a link stays a link."""
    place, link = tmp_path / "kept.tap", tmp_path / "link.tap"
    place.write_text("before")
    place.chmod(0o640)
    link.symlink_to(place)
    write_report(link, ReportSource(records=suite))

    assert link.is_symlink()
    assert place.read_text("utf-8").startswith("TAP version 14")
    assert 0o640 == stat.S_IMODE(place.stat().st_mode)


def test_a_new_report_has_the_permissions_of_any_new_file(
    suite: list[RunRecord], tmp_path: Path
) -> None:
    """Others may read it, as far as the user's mask lets them."""
    plain = tmp_path / "plain"
    plain.write_text("")
    place = write_report(tmp_path / "report.tap", ReportSource(records=suite))

    assert plain.stat().st_mode == place.stat().st_mode


def test_a_pipe_is_written_to(suite: list[RunRecord], tmp_path: Path) -> None:
    """A named pipe stays one."""
    pipe = tmp_path / "pipe.tap"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True) as reader:
        write_report(pipe, ReportSource(records=suite))
        output, _ = reader.communicate(timeout=30)

    assert output.startswith("TAP version 14")
    assert pipe.is_fifo()


def test_a_place_that_cannot_be_written_is_a_clear_error(
    suite: list[RunRecord], tmp_path: Path
) -> None:
    """Where, why, that nothing is lost, and what to do; nothing is left behind."""
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.json").mkdir()
    for place in ("file/report.json", "folder.json", "nul\0.json", f"{'x' * 300}.json"):
        with pytest.raises(ReportNotWritten, match="The run is kept") as caught:
            write_report(tmp_path / place, ReportSource(records=suite))

        assert str(tmp_path / place) in str(caught.value)
        assert isinstance(caught.value, TrialwiseError)
    assert ["file", "folder.json"] == sorted(one.name for one in tmp_path.iterdir())


def test_the_error_survives_a_process_boundary() -> None:
    """It can be pickled, as exceptions between workers are."""
    error = ReportNotWritten(Path("x.json"), "no space left")
    again = pickle.loads(pickle.dumps(error))

    assert (str(error), error.path, error.why) == (str(again), again.path, again.why)


def test_an_unknown_ending_writes_nothing(suite: list[RunRecord], tmp_path: Path) -> None:
    """It is refused before anything is rendered."""
    with pytest.raises(InvalidArgument):
        write_report(tmp_path / "report.pdf", ReportSource(records=suite))

    assert [] == list(tmp_path.iterdir())


def test_a_report_loads_no_other() -> None:
    """Asking for TAP imports neither the page nor the XML library."""
    code = (
        "import sys; from trialwise.reports.formats import *;"
        "import trialwise.renderers.ci_formats;"
        "print([m for m in sys.modules if m.startswith('xml') or 'renderers.html' in m "
        "or m in ('jsonschema', 'yaml', 'rich')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert "[]" == done.stdout.strip()
