"""`trialwise completion`: a script that a real shell takes, and what it completes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click import BadParameter
from click.shell_completion import BashComplete
from click.testing import CliRunner, Result

import trialwise as tw
from trialwise.cli import project_commands as completion
from trialwise.cli.main import cli
from trialwise.cli.stored_commands import show_command


def do_completion(*arguments: str) -> Result:
    return CliRunner().invoke(completion.completion_command, arguments, standalone_mode=False)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_says_how_to_install_it(shell: str) -> None:
    """In a comment, so that a shell that evaluates it at every start stays silent."""
    done = do_completion(shell)
    first, *rest = done.stdout.splitlines()

    assert (0, "") == (done.return_value, done.stderr)
    assert first.startswith("# ")
    assert f"trialwise completion {shell}" in first
    assert f"_TRIALWISE_COMPLETE={shell}_complete" in "\n".join(rest)


@pytest.mark.parametrize(
    ("shell", "check"), [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")]
)
def test_the_shell_itself_reads_it(shell: str, check: str, tmp_path: Path) -> None:
    """Where there is such a shell."""
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell} here")
    script = tmp_path / "script"
    script.write_text(do_completion(shell).stdout, encoding="utf-8")
    done = subprocess.run([program, check, script], capture_output=True, text=True, check=False)

    assert (0, "") == (done.returncode, done.stderr)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes_a_command(tmp_path: Path) -> None:
    """As it does when somebody presses the tab key."""
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    program = bin_ / "trialwise"
    program.write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -m trialwise.cli.main "$@"\n', encoding="utf-8"
    )
    program.chmod(0o755)
    script = f"""
        {do_completion("bash").stdout}
        COMP_WORDS=(trialwise con) COMP_CWORD=1
        _trialwise_completion trialwise
        echo "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        env=os.environ | {"PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert ("conformance\n", "") == (done.stdout, done.stderr)


def test_runs_and_contracts_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of this folder; none of them is no error."""
    monkeypatch.chdir(tmp_path)
    complete = BashComplete(show_command, {}, "show", "_SHOW_COMPLETE")
    assert ["latest"] == [one.value for one in complete.get_completions([], "")]
    criterion = tw.Criterion("right", tw.contains("right"), at_least=0.9)
    one = tw.Contract("support-agent", lambda _question: "right", [criterion])
    kept = tw.run(one, inputs=["1"], store=tmp_path / ".trialwise", progress=False)

    found = [one.value for one in complete.get_completions([], "")]
    assert ["latest", "support-agent", kept.record.run_id] == found
    assert ["support-agent"] == [one.value for one in complete.get_completions([], "su")]


def test_every_command_can_be_completed() -> None:
    """Each is imported for its help, and none of them fails at that."""
    found = BashComplete(cli, {}, "trialwise", "_TRIALWISE_COMPLETE").get_completions([], "")

    assert {*cli.list_commands(None)} == {one.value for one in found}  # type: ignore[arg-type]


def test_another_shell_is_refused() -> None:
    """With those there are."""
    assert isinstance(do_completion("csh").exception, BadParameter)
