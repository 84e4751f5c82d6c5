"""The files of one trial of a program: what it is given, and where it may write its session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from trialwise.engine.ports import ServiceError, TrialContext
from trialwise.model.trial import ErrorClass
from trialwise.services._payloads import encode, to_json

if TYPE_CHECKING:
    from trialwise.model.trace import Trace

#: The environment variable that names the file for the session.
TRACE_VARIABLE = "TRIALWISE_TRACE_FILE"


class ProgramFiles:
    """The files of one trial, in a folder of their own.

    Args:
        folder: The folder; None where the program needs no files.
        trial: The trial.
        has_scenario: Whether the program is given a scenario file.
        has_trace: Whether the program may write its session.
    """

    def __init__(
        self, folder: Path | None, trial: TrialContext, *, has_scenario: bool, has_trace: bool
    ) -> None:
        self.placeholders: dict[str, str] = {}
        """Values for the placeholders in the arguments."""
        self.environment: dict[str, str] = {}
        """Environment variables."""
        self.trace: Trace | None = None
        """The session, once the program has ended."""
        self._trace_file: Path | None = None
        if folder is not None and has_scenario:
            scenario = to_json({"input": trial.input, "index": trial.index, "seed": trial.seed})
            _write(folder / "scenario.json", scenario)
            self.placeholders["scenario_file"] = str(folder / "scenario.json")
        if folder is not None and has_trace:
            self._trace_file = folder / "trace.json"
            self.environment[TRACE_VARIABLE] = str(self._trace_file)

    def read_trace(self) -> None:
        """Read what the program has written of its session until now."""
        if self._trace_file is None:
            return
        from trialwise.services._reported_sessions import read_reported_trace, unreadable_trace

        if self._trace_file.exists():
            self.trace = read_reported_trace(self._trace_file)
        else:
            self.trace = unreadable_trace(f"the program wrote no file {TRACE_VARIABLE}")


@contextmanager
def open_files(
    program: str, trial: TrialContext, *, has_scenario: bool, has_trace: bool
) -> Iterator[ProgramFiles]:
    """Make the files of a trial, for as long as the program runs.

    Args:
        program: The name of the program, for a message.
        trial: The trial.
        has_scenario: Whether the program is given a scenario file.
        has_trace: Whether the program may write its session.
    """
    if not (has_scenario or has_trace):
        yield ProgramFiles(None, trial, has_scenario=False, has_trace=False)
        return
    import shutil
    import tempfile

    try:
        folder = Path(tempfile.mkdtemp(prefix="trialwise-"))
    except OSError as error:
        message = f"the command {program!r} cannot be started: {error}"
        raise ServiceError(message, ErrorClass.INFRASTRUCTURE) from error
    try:
        files = ProgramFiles(folder, trial, has_scenario=has_scenario, has_trace=has_trace)
        try:
            yield files
        finally:
            files.read_trace()
    finally:
        # The command may have made a part of it unreadable; the trial does not fail for that.
        shutil.rmtree(folder, ignore_errors=True)


def _write(file: Path, scenario: str) -> None:
    try:
        file.write_bytes(encode(scenario))
    except OSError as error:
        raise ServiceError(
            f"the scenario file cannot be written: {error}", ErrorClass.INFRASTRUCTURE
        ) from error
