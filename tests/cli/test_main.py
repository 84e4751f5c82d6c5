"""The command line: what it prints, where, and the one exit code that says what happened."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from trialwise.cli.main import cli, main
from trialwise.cli.process import ExitCode
from trialwise.contrib.commands import conformance_command
from trialwise.contrib.conformance import calibration, case_runner
from trialwise.contrib.conformance.calibration import Row
from trialwise.errors import InvalidArgument

INPUTS = {"successes": 9, "trials": 10, "confidence": 0.95}
#: The Wilson interval of 9 of 10, to five decimals.
RIGHT = {"lower": 0.59585, "upper": 0.98212, "point": 0.9}


def write(folder: Path, *, upper: float = RIGHT["upper"], **suite: Any) -> Path:
    """A folder with one suite of one case, right or wrong."""
    folder.mkdir(parents=True, exist_ok=True)
    case = {"name": "nine of ten", "inputs": INPUTS, "expected": RIGHT | {"upper": upper}}
    body = {"suite": "wilson_ci", "tolerance": 1e-5, "cases": [case]} | suite
    (folder / f"{body['suite']}.json").write_text(json.dumps(body), encoding="utf-8")
    return folder


def run(*arguments: str | Path, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, as a shell would start it."""
    return subprocess.run(
        [sys.executable, "-m", "trialwise.cli.main", *map(str, arguments)],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=os.environ | {"PYTHONUTF8": "1", "PYTHONIOENCODING": "utf-8"},
        check=False,
        timeout=120,
    )


def code_of(*arguments: str | Path) -> int:
    """The exit code of the command in this process."""
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    assert isinstance(left.value.code, int)
    return int(left.value.code)


def few_rows(*, broken: bool = False) -> list[Row]:
    """A small stand-in for the calibration, which takes a second to compute."""
    return [
        Row(
            section="regression",
            rule="regression/fisher",
            design="a design",
            quantity="P(FAIL) ≤ α",
            bound="at most",
            nominal=0.05,
            achieved=0.06 if broken else 0.04,
            claimed=True,
        )
    ]


# In a process of its own


def test_help_lists_the_commands_and_the_exit_codes() -> None:
    """On standard output, and with success."""
    done = run("--help")

    assert done.returncode == 0
    assert done.stderr == ""
    assert "Run a suite and report PASS" in done.stdout
    assert "Check the statistics against reference cases." not in done.stdout
    assert "Check the statistics against reference cases." in run("--help-all").stdout
    for words in ("0 PASS", "1 FAIL", "2 refused", "3 INCONCLUSIVE", "4 runtime error"):
        assert words in done.stdout


def test_the_version_is_the_packages() -> None:
    """By name and number."""
    done = run("--version")

    assert (done.returncode, done.stdout.strip()) == (0, f"trialwise {version('trialwise')}")


def test_a_match_exits_0_with_a_table_and_a_status(tmp_path: Path) -> None:
    """Nothing on standard error."""
    done = run("conformance", write(tmp_path / "cases"))

    assert done.returncode == 0
    assert done.stderr == ""
    assert "wilson_ci" in done.stdout
    assert "formulaValueFixtures: passed" in done.stdout


def test_a_mismatch_exits_1_and_is_named(tmp_path: Path) -> None:
    """Case, field, expected and got."""
    done = run("conformance", write(tmp_path / "cases", upper=0.5))

    assert done.returncode == 1
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("MISMATCH")]
    for part in ("nine of ten", "upper", "expected 0.5", "got 0.982"):
        assert part in line
    assert "formulaValueFixtures: failed" in done.stdout


@pytest.mark.parametrize("content", [None, "{", "[]", '{"cases": 3}'])
def test_a_bad_folder_exits_2_and_is_named_without_a_traceback(
    tmp_path: Path, content: str | None
) -> None:
    """A folder without cases, or with a file that holds none."""
    folder = tmp_path / "odd one"
    folder.mkdir()
    if content is not None:
        (folder / "broken.json").write_text(content, encoding="utf-8")
    done = run("conformance", folder)

    assert done.returncode == 2
    assert done.stdout == ""
    assert "odd one" in done.stderr
    assert "Traceback" not in done.stderr
    if content is not None:
        assert "broken.json" in done.stderr


@pytest.mark.parametrize("name", ["absent", "a file"])
def test_what_is_not_a_folder_exits_2_and_is_named(tmp_path: Path, name: str) -> None:
    """Absent, or a file."""
    (tmp_path / "a file").write_text("{}", encoding="utf-8")
    done = run("conformance", tmp_path / name)

    assert done.returncode == 2
    assert name in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_command_exits_2_and_is_named() -> None:
    """With a hint at the help."""
    done = run("divine")

    assert done.returncode == 2
    assert "divine" in done.stderr
    assert "--help" in done.stderr


def test_a_reader_that_has_gone_changes_no_exit_code(tmp_path: Path) -> None:
    """`trialwise … | true`: nobody has failed."""
    cases = write(tmp_path / "cases")
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = run("conformance", cases, stdout=writer)
    finally:
        os.close(writer)

    assert done.returncode == run("conformance", cases).returncode == ExitCode.PASS
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_calibration_as_it_is_shipped(tmp_path: Path) -> None:
    """Computed in a fresh process: no promise broken, Markdown for a page."""
    page = tmp_path / "deep" / "calibration.md"
    done = run("conformance", "--calibration", "--output", page)

    assert done.returncode == 0
    assert page.read_text(encoding="utf-8").startswith("# Calibration\n")
    assert "0 broken" in page.read_text(encoding="utf-8")


# In this process


def test_no_arguments_show_help_and_are_not_a_pass() -> None:
    """Nothing was asked, so nothing passed."""
    assert code_of() == ExitCode.REFUSED
    assert code_of("conformance") == ExitCode.REFUSED


@pytest.mark.parametrize(
    "arguments", [["--nonsense"], ["conformance", "--nonsense"], ["conformance", "--json"]]
)
def test_a_usage_error_exits_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Unknown options, and a command with nothing to do."""
    assert code_of(*arguments) == ExitCode.REFUSED
    assert capsys.readouterr().err


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_the_command_has_a_help_page_with_examples(flag: str) -> None:
    """Through click's own runner."""
    shown = CliRunner().invoke(cli, ["conformance", flag])

    assert shown.exit_code == 0
    for words in ("--calibration", "--json", "--output", "Examples:", "DIR"):
        assert words in shown.output


def test_a_help_page_does_not_import_the_commands() -> None:
    """A cold start is a feature."""
    program = (
        "import sys\n"
        "from trialwise.cli.main import main\n"
        "try:\n    main(['--help'])\n"
        "except SystemExit:\n    pass\n"
        "heavy = ('trialwise.stats', 'conformance')\n"
        "loaded = [name for name in sys.modules if any(part in name for part in heavy)]\n"
        "print(loaded, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stderr.strip() == "[]"


def test_json_is_valid_and_alone_on_standard_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the mismatch in it, and the exit code unchanged."""
    code = code_of("conformance", write(tmp_path / "cases", upper=0.5), "--json")
    shown = capsys.readouterr()
    data = json.loads(shown.out)

    assert code == ExitCode.FAIL
    assert shown.err == ""
    (folder,) = data["conformance"]
    assert folder["suites"][0]["mismatches"][0]["field"] == "upper"
    assert folder["conformanceStatus"]["formulaValueFixtures"] == "failed"
    assert data["calibration"] == []


def test_several_folders_are_checked_and_one_mismatch_fails_them_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the order given."""
    good, bad = write(tmp_path / "good"), write(tmp_path / "bad", upper=0.5)

    assert code_of("conformance", good, good) == ExitCode.PASS
    assert code_of("conformance", bad, good) == ExitCode.FAIL
    assert capsys.readouterr().out.count("conformanceStatus:") == 4


def test_an_unknown_suite_is_reported_and_does_not_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside suites that were run, unless it is mandatory."""
    folder = write(tmp_path / "cases")
    write(tmp_path / "cases", suite="tea_leaves")

    assert code_of("conformance", folder) == ExitCode.PASS
    assert "unknown suite: tea_leaves" in capsys.readouterr().out
    manifest = {"familyMandatory": ["tea_leaves"]}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert code_of("conformance", folder) == ExitCode.FAIL


@pytest.mark.parametrize(("name", "first"), [("out.json", "{"), ("out.txt", "|"), ("out", "|")])
def test_a_file_is_written_by_its_extension(
    tmp_path: Path, name: str, first: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON for *.json, else text; standard output stays empty, and the folder is made."""
    folder, target = write(tmp_path / "cases"), tmp_path / "new" / name
    code = code_of("conformance", folder, "-o", target)
    shown = capsys.readouterr()
    text = target.read_text(encoding="utf-8")

    assert code == ExitCode.PASS
    assert shown.out == ""
    assert str(target) in shown.err
    assert text.endswith("\n")
    if first == "{":
        assert json.loads(text)["conformance"]
    else:
        assert text.startswith(str(folder))


def test_the_calibration_is_written_as_markdown_to_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And as text or JSON elsewhere, with what is not ASCII as it is."""
    monkeypatch.setattr(calibration, "calibrate", few_rows)
    for name in ("page.md", "data.json", "table.txt"):
        assert code_of("conformance", "--calibration", "-o", tmp_path / name) == ExitCode.PASS
    texts = {file.suffix: file.read_text(encoding="utf-8") for file in tmp_path.iterdir()}

    assert texts[".md"].startswith("# Calibration\n")
    assert "| regression/fisher |" in texts[".md"]
    assert "| a design | holds |" in texts[".md"]
    assert json.loads(texts[".json"])["calibration"][0]["status"] == "holds"
    assert texts[".txt"].startswith("holds")
    assert all("≤" in text for text in texts.values())


def test_conformance_results_are_written_as_markdown_to_a_page(tmp_path: Path) -> None:
    """The help promises Markdown for *.md."""
    target = tmp_path / "page.md"
    code_of("conformance", write(tmp_path / "cases"), "-o", target)

    assert "|---|" in target.read_text(encoding="utf-8")


def test_a_broken_promise_exits_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And is called broken."""
    monkeypatch.setattr(calibration, "calibrate", lambda: few_rows(broken=True))

    assert code_of("conformance", "--calibration") == ExitCode.FAIL
    assert "BROKEN" in capsys.readouterr().out


def test_cases_and_calibration_go_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both parts are printed, and either can fail the run."""
    monkeypatch.setattr(calibration, "calibrate", few_rows)
    good, bad = write(tmp_path / "good"), write(tmp_path / "bad", upper=0.5)

    assert code_of("conformance", good, "--calibration") == ExitCode.PASS
    shown = capsys.readouterr().out
    assert "conformanceStatus:" in shown
    assert "1 rows: 1 promises, 0 broken" in shown
    assert code_of("conformance", bad, "--calibration") == ExitCode.FAIL


# What goes wrong


def test_an_internal_error_exits_4_with_its_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Never 1: an exception is not a verdict."""

    def broken(_: Path) -> list[object]:
        raise RuntimeError("the well is dry")

    monkeypatch.setattr(case_runner, "run_conformance", broken)
    code = code_of("conformance", write(tmp_path / "cases"))
    shown = capsys.readouterr().err

    assert code == ExitCode.ERROR
    assert "the well is dry" in shown
    assert "internal error" in shown


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidArgument("trials", 0, "be at least 1"), ExitCode.REFUSED),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED),
        (AssertionError("impossible"), ExitCode.ERROR),
        (OSError(28, "No space left on device"), ExitCode.ERROR),
    ],
)
def test_each_kind_of_end_has_its_code(
    error: BaseException,
    code: ExitCode,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Refused, interrupted or broken."""

    def ending(_: Path) -> list[object]:
        raise error

    monkeypatch.setattr(case_runner, "run_conformance", ending)

    assert code_of("conformance", write(tmp_path / "cases")) == code
    shown = capsys.readouterr().err
    assert ("Traceback" in shown) is (code is ExitCode.ERROR)
    if code is ExitCode.REFUSED:
        assert "trials must be at least 1, got 0" in shown


def test_one_code_one_meaning() -> None:
    """The table of the help page."""
    assert {code.name: code.value for code in ExitCode} == {
        "PASS": 0,
        "FAIL": 1,
        "REFUSED": 2,
        "INCONCLUSIVE": 3,
        "ERROR": 4,
        "INTERRUPTED": 130,
    }
    assert conformance_command.command.name == "conformance"


def test_a_folder_of_which_nothing_was_run_is_not_a_pass(tmp_path: Path) -> None:
    """Only an unknown suite: reported, and exit 1, for nothing has been shown."""
    cases = [{"name": "a", "inputs": {}, "expected": {"x": 1}}]
    body = json.dumps({"suite": "mystery", "cases": cases, "tolerance": 0})
    (tmp_path / "mystery.json").write_text(body, encoding="utf-8")
    done = run("conformance", tmp_path)

    assert done.returncode == ExitCode.FAIL
    assert "unknown suite: mystery" in done.stdout
    assert "NOTHING CHECKED" in done.stdout


def test_a_mistyped_command_is_recognised() -> None:
    """The nearest command is named."""
    done = run("conformence")

    assert done.returncode == ExitCode.REFUSED
    assert "did you mean 'conformance'?" in done.stderr


def test_the_module_is_the_command(tmp_path: Path) -> None:
    """`python -m trialwise` serves where the script is not on the path."""
    done = subprocess.run(
        [sys.executable, "-m", "trialwise", "run"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert "trialwise.yaml" in done.stderr
