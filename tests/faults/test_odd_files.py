"""Files that are pipes, devices or links: used, or refused in a sentence, and never waited for."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from tests.faults.command_runs import DIES, SUITE, YES, call, decisions, write

BASELINE = SUITE.replace("at_least: 50%", "no_worse_than: baseline")


def pipe(path: Path) -> None:
    """Put a pipe without a writer in the place of a file."""
    path.unlink(missing_ok=True)
    os.mkfifo(path)


@pytest.mark.slow("show-plan.json")
@pytest.mark.parametrize("name", ["journal.jsonl", "texts.jsonl", "plan.json", "record.json"])
@pytest.mark.parametrize("command", ["show", "resume"])
def test_a_pipe_in_a_run_folder_is_refused(tmp_path: Path, name: str, command: str) -> None:
    """The command says what is wrong, and does not wait for a writer."""
    write(tmp_path, DIES if command == "resume" else YES)
    call(tmp_path, "run", "-q")
    (run,) = tmp_path.glob(".trialwise/runs/*")
    pipe(run / name)
    arguments = {"show": ("show", run.name), "resume": ("run", "-q", "--resume", run.name)}[command]
    code, _, errors = call(tmp_path, *arguments)

    assert code in (2, 4), errors
    assert "Traceback" not in errors
    assert errors.startswith("trialwise: ")


@pytest.mark.parametrize(
    ("suite", "name"),
    [
        (SUITE, "trialwise.yaml"),
        (SUITE.replace("[a, b]", "{jsonl: data}"), "data"),
        (SUITE.replace("[a, b]", "{csv: data}"), "data"),
        (SUITE.replace("[a, b]", '{files: "data*"}'), "data"),
        (SUITE.replace('equals: "yes"', "json_schema: data"), "data"),
        (SUITE.replace('{python: "agent:f"}', "{replay: data}"), "data"),
        (f"env_file: data\n{SUITE}", "data"),
        (f"include: data\n{SUITE}", "data"),
    ],
    ids=["suite", "jsonl", "csv", "files", "schema", "recording", "env_file", "include"],
)
def test_a_pipe_in_the_place_of_a_file_of_the_suite_is_refused(
    tmp_path: Path, suite: str, name: str
) -> None:
    """Exit 2 before anything is run."""
    write(tmp_path, YES, suite)
    pipe(tmp_path / name)
    code, _, errors = call(tmp_path, "check", "--suite", "trialwise.yaml")

    assert code == 2, errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    "arguments",
    [
        ("score", "pipe"),
        ("score", "pipe.eval"),
        ("import", "pipe"),
        ("judge", "calibrate", "pipe.jsonl"),
        ("run", "-q", "--replay", "pipe"),
        ("show", "pipe"),
    ],
    ids=" ".join,
)
def test_a_pipe_as_an_argument_is_refused(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """Exit 2 with a sentence."""
    write(tmp_path)
    pipe(tmp_path / next(one for one in arguments if "pipe" in one))
    code, _, errors = call(tmp_path, *arguments)

    assert code == 2, errors
    assert "Traceback" not in errors


def test_a_pipe_among_the_baselines_is_refused(tmp_path: Path) -> None:
    """It could have been a baseline, so that it is not passed over."""
    write(tmp_path, YES, BASELINE)
    assert call(tmp_path, "measure", "-q", "--trials", "20")[0] == 0
    (baseline,) = tmp_path.glob("baselines/*/*.json")
    pipe(baseline)
    code, _, errors = call(tmp_path, "run", "-q")

    assert code == 2, errors
    assert baseline.name in errors
    assert "Traceback" not in errors


@pytest.mark.slow
@pytest.mark.parametrize("how", ["link beside it", "link in its place", "linked store"])
def test_a_run_behind_a_link_is_resumed(tmp_path: Path, how: str) -> None:
    """By the name of the link, and where the folder was moved to another disk."""
    write(tmp_path, DIES)
    assert call(tmp_path, "run", "-q")[0] == -9
    (run,) = tmp_path.glob(".trialwise/runs/*")
    name = run.name
    if how == "link beside it":
        name = "last"
        run.with_name(name).symlink_to(run)
    elif how == "link in its place":
        moved = tmp_path / "disk"
        shutil.move(run, moved)
        run.symlink_to(moved)
    else:
        shutil.move(tmp_path / ".trialwise", tmp_path / "disk")
        (tmp_path / ".trialwise").symlink_to(tmp_path / "disk")
    code, _, errors = call(tmp_path, "run", "-q", "--resume", name)

    assert code == 0, errors
    assert set(decisions(tmp_path)) == {"PASS"}
    assert call(tmp_path, "show", name, "--verify")[0] == 0
