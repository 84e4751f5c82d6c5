"""The periphery stands apart: named by the core, loaded on demand, open to other distributions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from trialwise.cli.main import cli
from trialwise.contrib.importers import ImportRefused, import_suite
from trialwise.errors import InvalidArgument
from trialwise.outcomes.outcome_reading import read_outcomes

READER = """
from trialwise.outcomes.outcome_rows import OutcomeRow, Outcomes
from trialwise.outcomes.outcome_reading import ResultFormat

def read(path, *, name, layout, problems):
    rows = [
        OutcomeRow(input_id=str(place), criterion="holds", passed=mark == "+")
        for place, mark in enumerate(path.read_text().strip())
    ]
    return Outcomes(rows=tuple(rows), name=name, source=problems.path, format="marks")

FORMAT = ResultFormat(name="marks", read=read)
"""
IMPORTER = """
from trialwise.contrib.importers import Imported, SuiteImporter

def convert(request):
    path = request.files["suite"]
    return Imported(format="tally", sources=(str(path),), suite={"name": "converted"})

IMPORTER = SuiteImporter(
    name="tally",
    signs="has `tally`",
    find_role=lambda root: "suite" if "tally" in root.entries else None,
    import_files=convert,
)
"""


def install(site: Path, group: str, name: str, module: str, content: str) -> None:
    (site / f"{module}.py").write_text(content)
    folder = site / f"{module}-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}:{name.upper()}\n")


def test_the_help_page_lists_other_tools_last() -> None:
    """Bridges to other tools do not stand among the commands of everyday work."""
    page = CliRunner().invoke(cli, ["--help-all"]).stdout
    everyday, others = page.split("More commands:")
    commands = [line.split()[0] for line in others.strip().splitlines()]

    assert "run" in everyday.split("Commands:")[1]
    assert {"conformance", "import"} <= set(commands)


@pytest.mark.parametrize(
    "code",
    [
        "from trialwise.cli.main import cli; cli.main(['--help'], standalone_mode=False)",
        "import trialwise.runtime.outcome_scoring, trialwise.outcomes.outcome_reading",
        "from trialwise.outcomes.outcome_reading import read_outcomes; read_outcomes('runs.jsonl')",
    ],
)
def test_the_core_loads_nothing_of_the_periphery(code: str, tmp_path: Path) -> None:
    """Neither for the help page nor to read what a run has written."""
    run = {"type": "run", "schema": "trialwise.results/1", "run_id": "r", "contract": "sums"}
    trial = {"type": "trial", "run_id": "r", "sampling": "inputs", "trial": 1, "input_id": "q1"}
    rows = [run, {**trial, "graders": [{"name": "right", "passed": True}]}]
    (tmp_path / "runs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    ending = "print([name for name in sys.modules if name.startswith('trialwise.contrib')])"
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys\n{code}\n{ending}"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )

    assert "[]" == done.stdout.splitlines()[-1]


def test_a_format_of_another_distribution_is_read_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry point is all that it takes."""
    monkeypatch.syspath_prepend(str(tmp_path))
    install(tmp_path, "trialwise.results", "format", "marks_reader", READER)
    path = tmp_path / "runs.txt"
    path.write_text("++-\n")

    read = read_outcomes(path, format="format")

    assert ("marks", [True, True, False]) == (read.format, [row.passed for row in read.rows])


def test_an_unknown_format_names_the_known_ones(tmp_path: Path) -> None:
    """Those of this package, and those of installed distributions."""
    path = tmp_path / "runs.txt"
    path.write_text("++-\n")

    with pytest.raises(InvalidArgument, match=r"'jsonl', 'csv'.*'inspect', 'promptfoo'"):
        read_outcomes(path, format="excel")


def test_an_importer_of_another_distribution_is_found_by_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked where no built-in importer recognises a file."""
    monkeypatch.syspath_prepend(str(tmp_path))
    install(tmp_path, "trialwise.importers", "importer", "tally_importer", IMPORTER)
    path = tmp_path / "tally.yaml"
    path.write_text("tally: 3\n")

    assert {"name": "converted"} == import_suite(path).suite


def test_a_file_of_nobody_is_refused_with_the_signs_of_the_known_ones(tmp_path: Path) -> None:
    """So that a user sees what is missing."""
    path = tmp_path / "other.yaml"
    path.write_text("tally: 3\n")

    with pytest.raises(ImportRefused, match="a cerberus file has `adapter` and `studies`, a mavai"):
        import_suite(path)
