"""`trialwise run --watch`: runs again when a file changes that the last run has read.

Each run is a process of its own, so that changed modules are imported anew and nothing that a
service does can end the watch. The process leaves in a folder which files it has read and what the
service has replied (`WatchedRun`).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from trialwise.cli.process import ExitCode
from trialwise.runtime.preparing import PreparedRun
from trialwise.runtime.selecting import Chosen
from trialwise.services.replay import ReusingService
from trialwise.suite import Suite

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
            signal.signal(getattr(signal, name), signal.default_int_handler)
    code: int = ExitCode.INTERRUPTED
    with TemporaryDirectory(prefix="trialwise-watch-") as folder:
        try:
            while True:
                # Before the run: a change while it goes on is a change that it may not have seen.
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


def _read_files(folder: Path) -> dict[Path, str]:
    """Return the files that the last run has read, as they were then."""
    try:
        kept = json.loads((folder / FILES_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # the service ended the process
        return {}
    return {Path(name): stamp for name, stamp in kept.items()}


def _wait_for_change(seen: dict[Path, str]) -> Path:
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


def _stamp_all(paths: Iterable[Path]) -> dict[Path, str]:
    return {path: stamp_file(path) for path in paths}


# One run of a watch: notes which files it reads, and uses the replies of earlier runs again.
#
# What a run leaves for the next one is in a folder: `files.json`, and for each contract a recording
# of its replies with what they depend on.

FILES_NAME = "files.json"
#: What they reply depends on what the suite says of them, and not on files of the project.
_REMOTE = ("chat", "http")
#: Their files are not written by people.
_FOREIGN = ("site-packages", "node_modules", "__pycache__")


def stamp_file(path: Path) -> str:
    """Return what tells two versions of a file apart; empty where there is no file."""
    try:
        status = path.stat()
    except OSError:
        return ""
    return f"{status.st_mtime_ns} {status.st_size}"


class WatchedRun:
    """What one run of a watch takes from earlier ones and leaves for the next.

    It notes the files of the project that this process opens to read, as they are then.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._suites: Sequence[Suite] = ()
        self._used: dict[str, tuple[ReusingService, dict[str, Any]]] = {}
        self._read: dict[str, str] = {}
        self._written: set[str] = set()
        # There is no way to remove a hook; this process ends with its run.
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "trialwise.read":
            self._note(arguments[0], is_read=True)
        elif event == "open" and isinstance(arguments[0], str):
            _, mode, flags = arguments
            if mode is None:
                is_read = flags & (os.O_WRONLY | os.O_RDWR) == 0
            else:
                is_read = set(mode).isdisjoint("wax+")
            self._note(arguments[0], is_read=is_read)

    def _note(self, name: str, *, is_read: bool) -> None:
        path = os.path.abspath(name)
        if not is_read:
            self._written.add(path)
            return
        if path.endswith(".pyc"):
            from importlib.util import source_from_cache

            try:
                path = source_from_cache(path)
            except ValueError:
                return
        if path not in self._read:
            self._read[path] = stamp_file(Path(path))

    def _list_files(self) -> dict[Path, str]:
        """Return the files of the project that people write, without those that the run writes."""
        folders = [Path.cwd(), *(suite.folder.absolute() for suite in self._suites)]
        without = [suite.runs_folder.absolute() for suite in self._suites]
        found = {}
        for name, stamp in self._read.items():
            path = Path(name)
            inside = next((one for one in folders if path.is_relative_to(one)), None)
            if inside is None or name in self._written or path.is_dir():
                continue
            *above, _ = path.relative_to(inside).parts
            if any(part.startswith(".") or part in _FOREIGN for part in above):
                continue
            if not any(path.is_relative_to(one) for one in without):
                found[path] = stamp
        return found

    @contextmanager
    def keep_notes(self) -> Iterator[None]:
        """Write down at the end what was read, also where the suite has mistakes."""
        try:
            yield
        finally:
            files = self._list_files()
            suites = {path.absolute() for suite in self._suites for path in suite.files}
            _write_json(self._folder / FILES_NAME, {str(path): at for path, at in files.items()})
            for name, (_, depends) in self._used.items():
                depends["files"] |= {
                    str(path): at for path, at in files.items() if path not in suites
                }
                _write_json(self._folder / f"{name}.json", depends)

    def choose_seeds(self, chosen: Sequence[Chosen]) -> list[Chosen]:
        """Choose the contracts, each with the seed that it has in every run of the watch."""
        from dataclasses import replace

        from trialwise.engine.criterion_progress import derive_seed

        shared = int(sha256(str(self._folder).encode()).hexdigest()[:12], 16)
        return [
            one
            if one.options.seed is not None
            else one._replace(
                options=replace(one.options, seed=derive_seed("watch", shared, one.contract.name))
            )
            for one in chosen
        ]

    def know_suites(self, suites: Sequence[Suite]) -> None:
        """Say which suites are run."""
        self._suites = suites
        for one in (each for suite in suites for each in suite.contracts):
            # A program of another process opens its files itself.
            for path in getattr(one.contract.service, "files", ()):
                sys.audit("trialwise.read", path)

    def reuse_replies(self, suite: Suite, prepared: Sequence[PreparedRun]) -> list[PreparedRun]:
        """Return the runs with services that replay the replies of earlier runs."""
        from trialwise.runtime.workspace import open_service

        described = {one.name: one.service for one in suite.contracts}
        reusing = []
        for one in prepared:
            service = described[one.contract.name]
            key = sha256(f"{suite.path}\n{one.contract.name}".encode()).hexdigest()[:16]
            file = self._folder / f"{key}.jsonl"
            depends = self._read_valid(key, service)
            if depends is None:
                file.unlink(missing_ok=True)
                depends = {"service": service, "files": {}}
            # A thread for a plain function: another contract may run at the same time.
            opened = ReusingService(
                open_service(one.contract, one.plan.options, in_thread=True), file
            )
            self._used[key] = opened, depends
            reusing.append(one._replace(contract=one.contract.with_service(opened)))
        return reusing

    def describe_reuse(self) -> str:
        """Return how many replies are from earlier runs; empty where none is."""
        reused = sum(one.reused for one, _ in self._used.values())
        total = reused + sum(one.asked for one, _ in self._used.values())
        return f"{reused} of {total} replies are from earlier runs of this watch" if reused else ""

    def _read_valid(self, key: str, service: str) -> dict[str, Any] | None:
        """Read what the replies of a contract depend on; None where any of it has changed."""
        try:
            depends: dict[str, Any] = json.loads((self._folder / f"{key}.json").read_text("utf-8"))
        except (OSError, ValueError):
            return None
        if depends["service"] != service:
            return None
        # A model behind an API does not change with a file of the project.
        if service.partition(":")[0] in _REMOTE:
            return depends
        is_same = all(at == stamp_file(Path(path)) for path, at in depends["files"].items())
        return depends if is_same else None


def _write_json(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data), encoding="utf-8")
