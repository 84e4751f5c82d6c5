"""`trialwise compare`: two contracts on the same inputs, or two stored runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click
import pytest
from tests.cli.suite_folders import enter_folder
from tests.cli.suite_folders import type_command as do

from trialwise.errors import InvalidArgument

SERVICE = """
def five(input, index):
    return "yes" if index < 5 else "no"

def eight(input, index):
    return "yes" if index < 8 else "no"

def often(input, index):
    return "yes" if index % 5 else "no"

def always(input):
    return "yes"

def too(input):
    return "yes"
"""
SUITE = """
contracts:
""" + "".join(
    f"""
  - name: {name}
    service: {{python: "svc:{name}"}}
    inputs: [a, b]
    criteria: [{{name: right, equals: "yes", at_least: 50%}}]
"""
    for name in ("five", "eight", "often", "always", "too")
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return enter_folder(tmp_path, monkeypatch, SERVICE)


def compare(*arguments: str) -> Any:
    return do(SUITE, "compare", *arguments, "--quiet")


@pytest.mark.requirement(
    "statistical-ci lessons",
    "Two arms with 8 and 5 of 10 passes and three discordant pairs are not told apart: p = 0.25.",
    "`trialwise compare CONTROL CANDIDATE`",
)
@pytest.mark.usefixtures("folder")
def test_three_discordant_pairs_show_nothing() -> None:
    """2 · (1/2)³ = 0.25; the observed difference is not called one."""
    done = compare("five", "eight", "--trials", "10", "--seed", "1")

    assert done.exit_code == 3
    assert "INCONCLUSIVE" in done.output
    row, picture = (line for line in done.output.splitlines() if line.startswith("  right "))
    assert row.split()[-2:] == ["3/3", "0.25"]
    assert picture.split()[-1] == "+30.0"
    assert "+30.0" in row


@pytest.mark.parametrize(
    ("control", "candidate", "code", "sentence"),
    [
        ("often", "always", 0, "PASS  always is better: 20.0 points, at least "),
        ("always", "often", 1, "FAIL  often is worse: 20.0 points, at least "),
    ],
)
@pytest.mark.usefixtures("folder")
def test_the_exit_code_answers_the_question(
    control: str, candidate: str, code: int, sentence: str
) -> None:
    """Better passes, worse fails."""
    done = compare(control, candidate, "--trials", "50", "--seed", "1")

    assert (done.exit_code, sentence in done.output) == (code, True)
    assert "50 pairs of the same inputs, order and seeds" in done.output


@pytest.mark.usefixtures("folder")
def test_a_margin_asks_whether_the_candidate_is_not_worse_by_more() -> None:
    """Two services that answer alike: nothing is told apart, and no loss of 10 points is there."""
    asked = ("always", "too", "--trials", "60", "--seed", "1")

    assert compare(*asked).exit_code == 3
    assert compare(*asked, "--margin", "10%").exit_code == 0


def test_stored_runs_are_compared_without_running_anything(folder: Path) -> None:
    """By contract, of which the latest run counts, or by the name of a run."""
    compare("often", "always", "--trials", "50", "--seed", "1")
    (folder / "svc.py").write_text("raise SystemExit('the service was imported')")
    by_contract = compare("often", "always", "--stored", "--json")
    names = sorted(one.name for one in (folder / ".trialwise" / "runs").iterdir() if one.is_dir())
    first, second = (next(one for one in names if kind in one) for kind in ("often", "always"))
    by_name = compare(first, second, "--stored", "--json")

    found, again = json.loads(by_contract.output), json.loads(by_name.output)
    assert by_contract.exit_code == by_name.exit_code == 0
    assert found["findings"] == again["findings"]
    assert found["findings"][0]["pairs"]["only_b"] == 10


@pytest.mark.usefixtures("folder")
def test_files_hold_what_the_terminal_shows() -> None:
    """HTML, JSON and text."""
    compare(
        *("often", "always", "--trials", "50", "--seed", "1"),
        *("-o", "c.html", "-o", "c.json", "-o", "c.txt"),
    )

    assert json.loads(Path("c.json").read_text())["decision"] == "PASS"
    assert "always is better: 20.0 points" in Path("c.html").read_text()
    assert "PASS  always is better: 20.0 points, at least " in Path("c.txt").read_text()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("five", "eigth"), click.UsageError, "did you mean 'eight'"),
        (("five", "five"), click.UsageError, "is named twice"),
        (("five", "eight", "-o", "c.pdf"), InvalidArgument, "end with .html, .md, .xml"),
        (("neither", "nor"), click.UsageError, "'neither' is not a contract or arm of"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_mistakes_are_named(
    arguments: tuple[str, ...], error: type[Exception], message: str
) -> None:
    """Before the first call."""
    with pytest.raises(error, match=message):
        compare(*arguments)
    assert not Path(".trialwise", "runs").exists()


INTERRUPTING = (
    SERVICE
    + """
def stops(input, index):
    import os, pathlib, signal
    mark = pathlib.Path("stopped")
    if index == 4 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGINT)
    return "no"
"""
)


@pytest.mark.skipif(os.name == "nt", reason="signals to oneself are POSIX")
def test_an_interrupted_comparison_says_how_it_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By a command, which ends with the verdict that the whole comparison has."""
    from trialwise.cli.main import _run

    enter_folder(tmp_path, monkeypatch, INTERRUPTING)
    stops = SUITE.replace("too", "stops")
    (tmp_path / "trialwise.yaml").write_text(stops)

    assert 130 == _run(["compare", "always", "stops", "--quiet"])
    (name,) = (one.name for one in (tmp_path / ".trialwise/comparisons").iterdir())
    assert f"`trialwise compare --resume {name}` continues" in capsys.readouterr().err
    assert 1 == _run(["compare", "--resume", name, "--quiet"])
    assert "stops is worse" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_an_arm_that_nothing_answers_for_is_inconclusive() -> None:
    """As `trialwise run` is, which says the same of the service."""
    nowhere = SUITE.replace('{python: "svc:too"}', '{http: {url: "http://127.0.0.1:9/"}}')

    done = do(nowhere, "compare", "always", "too", "--quiet", "--set", "retries=0")
    assert 3 == done.exit_code
    assert "too could not be measured: Nothing answers at" in done.output


@pytest.mark.usefixtures("folder")
def test_a_stored_comparison_is_shown_as_it_was_printed() -> None:
    """The same summary again; the whole page, with every flip, where all of it is asked for."""
    printed = compare("often", "always", "--trials", "50", "--seed", "1")
    (name,) = (one.name for one in Path(".trialwise", "comparisons").iterdir())
    again = do(SUITE, "show", name)
    whole = do(SUITE, "show", name, "--transparent")

    assert printed.output.strip() == again.output.strip()
    assert "and 5 further flips" in again.output
    assert 10 == whole.output.count("won right")
