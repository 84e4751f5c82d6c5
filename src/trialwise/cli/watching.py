"""`trialwise run --watch`: runs again when a file changes that the last run has read.

Each run is a process of its own, so that changed modules are imported anew and nothing that a
service does can end the watch. The process leaves in a folder which files it has read and what the
service has replied (`watched_run`).
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from trialwise.cli.exits import ExitCode
from trialwise.cli.watched_run import FILES_NAME, Stamp, stamp_file

#: How often the files are looked at.
_POLL_S = 0.3
#: An editor may write a file in several steps, and a tool several files.
_QUIET_S = 0.1


def watch_runs(arguments: Sequence[str], suites: Sequence[Path]) -> int:
    """Run again and again until Ctrl-C; return the exit code of the last run.

    Args:
        arguments: The arguments of `trialwise`, without `--watch`.
        suites: The suite files, watched even where none of them could be read.
    """
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _raise_interrupt)
    code: int = ExitCode.INTERRUPTED
    with TemporaryDirectory(prefix="trialwise-watch-") as folder:
        try:
            while True:
                before = _stamp_all(suites)
                code, is_interrupted = _run_once(arguments, Path(folder))
                if is_interrupted:
                    return code
                seen = before | _read_files(Path(folder))
                files = f"{len(seen)} file{'' if len(seen) == 1 else 's'}"
                click.echo(f"watching {files}; Ctrl-C ends", err=True)
                changed = _wait_for_change(seen)
                click.clear()
                click.echo(f"{changed.name} changed", err=True)
        except KeyboardInterrupt:
            click.echo(err=True)
            return code


def _raise_interrupt(_number: int, _frame: Any) -> None:
    raise KeyboardInterrupt


def _run_once(arguments: Sequence[str], folder: Path) -> tuple[int, bool]:
    """Run in a process of its own; return its exit code and whether somebody pressed Ctrl-C."""
    # Without -P this folder would come first on the path, which the command alone does not do.
    program = [sys.executable, "-P", "-m", "trialwise.cli.main"]
    process = subprocess.Popen([*program, *arguments, "--watched", str(folder)])
    is_interrupted = False
    while True:
        try:
            code = process.wait()
        except KeyboardInterrupt:
            # The run ends cleanly and keeps what is complete.
            is_interrupted = True
            process.send_signal(signal.SIGINT)
        else:
            if code < 0:
                code = ExitCode.INTERRUPTED if code == -signal.SIGINT else ExitCode.ERROR
            return code, is_interrupted or code == ExitCode.INTERRUPTED


def _read_files(folder: Path) -> dict[Path, Stamp]:
    """Return the files that the last run has read, as they were then."""
    try:
        kept = json.loads((folder / FILES_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # the service ended the process
        return {}
    return {
        Path(name): None if stamp is None else (stamp[0], stamp[1]) for name, stamp in kept.items()
    }


def _wait_for_change(seen: dict[Path, Stamp]) -> Path:
    """Wait until a file differs and nothing changes any more; return the first that differs."""
    while True:
        now = _stamp_all(seen)
        changed = [path for path, stamp in seen.items() if now[path] != stamp]
        if not changed:
            time.sleep(_POLL_S)
            continue
        while True:
            time.sleep(_QUIET_S)
            later = _stamp_all(seen)
            if later == now:
                return changed[0]
            now = later


def _stamp_all(paths: Iterable[Path]) -> dict[Path, Stamp]:
    return {path: stamp_file(path) for path in paths}
