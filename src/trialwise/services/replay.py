"""Any service, recorded; and a recording, played back as a service."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, ClassVar

from trialwise.declarations.resources import File
from trialwise.declarations.signatures import Arg
from trialwise.engine.ports import Service, ServiceError, TrialContext
from trialwise.model.reply import Reply
from trialwise.model.trial import ErrorClass
from trialwise.services._recording import (
    PREFIX,
    decode_error,
    decode_line,
    decode_reply,
    encode_error,
    encode_line,
    encode_reply,
    input_hash,
)
from trialwise.services.failures import RecordingError

__all__ = ["RecordingService", "ReplayService"]


class RecordingService:
    """A service that also writes down what another one says.

    One line of JSON for each trial: its index, a hash of its input, its seed, and the reply or the
    error, under a checksum; what was done before an error goes with it. Requests, headers and
    environments are not written. A cancelled call is written as such, so that a timeout can be
    replayed. A reply that JSON cannot carry is refused; an input that it cannot carry is refused
    before the service is asked.

    >>> from trialwise.services import CallableService
    >>> import anyio
    >>> lines: list[bytes] = []
    >>> recording = RecordingService(CallableService(str.upper), lines.append)
    >>> trial = TrialContext(index=0, input="yes", seed=1)
    >>> anyio.run(recording.call, trial).value, anyio.run(ReplayService(lines).call, trial).value
    ('YES', 'YES')

    Args:
        service: What is recorded.
        sink: A file to append to, or what takes each line.
        contract: Written into each line, where one file holds the replies of several contracts.
        clock: Seconds from any origin, for the time a cancelled call took.
    """

    def __init__(
        self,
        service: Service,
        sink: str | Path | Callable[[bytes], object],
        *,
        contract: str | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._service = service
        self._told = {} if contract is None else {"contract": contract}
        self._write = sink if callable(sink) else _Appender(Path(sink)).write
        self._clock = clock

    async def call(self, trial: TrialContext) -> Reply:
        """The service's reply, once it is written down."""
        from anyio import get_cancelled_exc_class

        asked = self._told | {
            "index": trial.index,
            "input": input_hash(trial.input),
            "seed": trial.seed,
        }
        started = self._clock()
        try:
            reply = await self._service.call(trial)
        except get_cancelled_exc_class():
            # Nothing may take the place of a cancellation.
            with suppress(RecordingError):
                cancelled = {"cancelled_after_s": self._clock() - started}
                self._record(asked | cancelled | _so_far(trial))
            raise
        except Exception as error:
            self._record(asked | {"error": encode_error(error)} | _so_far(trial))
            raise
        self._record(asked | {"reply": encode_reply(reply)})
        return reply

    async def aclose(self) -> None:
        """Close the service; every line is already written."""
        await self._service.aclose()

    def _record(self, fields: dict[str, Any]) -> None:
        try:
            self._write(encode_line(fields))
        except OSError as error:
            message = f"the recording cannot be written: {error}"
            raise RecordingError(message, ErrorClass.INFRASTRUCTURE) from error

    def __repr__(self) -> str:
        return f"RecordingService({self._service!r})"


class ReplayService:
    """A recording that is replayed as a service.

    A trial gets the reply that was recorded for its input and index; where there is none (left),
    the next unused one for its input, in the order of their indices. Several attempts at one trial
    come back in the order they were made. A call that was cancelled comes back as a timeout, unless
    the trial was completed later. Closing starts the recording over.

    Args:
        source: The file of the recording, or its lines.
        contract: Whose replies alone are played, with those of lines that name no contract; None
            plays every line.
    """

    spelling: ClassVar[str] = "replay"

    def __init__(
        self,
        source: Annotated[str | Path | Iterable[bytes], Arg(kind=File())],
        *,
        contract: str | None = None,
    ) -> None:
        self._name = os.fspath(source) if isinstance(source, (str, Path)) else "the lines given"
        lines = _read(Path(source)) if isinstance(source, (str, Path)) else source
        records = (
            decode_line(line.removesuffix(b"\n"), f"line {number} of {self._name}")
            for number, line in enumerate(lines, start=1)
        )
        self._records = [
            one for one in records if contract is None or one.get("contract", contract) == contract
        ]
        self._left = _by_input(self._records)

    async def call(self, trial: TrialContext) -> Reply:
        """The recorded reply to one trial; what was raised then is raised again."""
        from anyio.lowlevel import checkpoint

        await checkpoint()
        record = self._take(input_hash(trial.input), trial.index)
        if record is None:
            raise RecordingError(
                f"{self._name} holds no (further) reply to the input of trial {trial.index}: "
                f"{_show_value(trial.input)}; record it, or run the inputs it was made with",
                ErrorClass.PRE_VALIDATION,
            )
        if "partial" in record:
            trial.keep(lambda: decode_reply(record["partial"]))
        if "cancelled_after_s" in record:
            message = f"cancelled after {record['cancelled_after_s']:.3f} s when it was recorded"
            raise ServiceError(message, ErrorClass.TIMEOUT)
        if "error" in record:
            raise decode_error(record["error"])
        return decode_reply(record["reply"])

    async def aclose(self) -> None:
        """Start the recording over."""
        self._left = _by_input(self._records)

    def _take(self, name: str, index: int) -> dict[str, Any] | None:
        trials = self._left.get(name)
        if not trials:
            return None
        found = index if index in trials else next(iter(trials))
        taken = trials[found].pop(0)
        if not trials[found]:
            del trials[found]
        return taken

    def __len__(self) -> int:
        return len(self._records)

    def __repr__(self) -> str:
        return f"ReplayService({self._name!r}, {len(self)} recorded)"


def _so_far(trial: TrialContext) -> dict[str, Any]:
    partial = trial.partial
    return {} if partial is None else {"partial": encode_reply(partial)}


Left = dict[str, dict[int, list[dict[str, Any]]]]


def _by_input(records: Iterable[dict[str, Any]]) -> Left:
    """What is left to play: input to index to attempts, indices and attempts in order."""
    left: Left = {}
    for record in sorted(records, key=lambda r: (r["index"], "cancelled_after_s" in r)):
        left.setdefault(record["input"], {}).setdefault(record["index"], []).append(record)
    return left


def _show_value(value: Any, longest: int = 80) -> str:
    text = repr(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _read(path: Path) -> list[bytes]:
    """The complete lines of a file; a last one that was cut off never counted."""
    try:
        content = path.read_bytes()
    except OSError as error:
        message = f"the recording cannot be read: {error}"
        raise RecordingError(message, ErrorClass.PRE_VALIDATION) from error
    return content.split(b"\n")[:-1]


class _Appender:
    """A file that takes whole lines, opened with the first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_ready = False

    def write(self, line: bytes) -> None:
        if not self._is_ready:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            _drop_cut_line(self._path)
            self._is_ready = True
        # Opened each time: no handle can leak, and one write is one line even if others append.
        with open(self._path, "ab", buffering=0) as file:
            file.write(line)


def _drop_cut_line(path: Path) -> None:
    """Remove what a killed run left of its last line; refuse any other file."""
    if not path.exists():
        return
    content = path.read_bytes()
    start = content[: len(PREFIX)]
    if not PREFIX.encode().startswith(start):
        message = f"{path} exists and is not a recording; it is left as it is"
        raise RecordingError(message, ErrorClass.PRE_VALIDATION)
    if content and not content.endswith(b"\n"):
        with open(path, "r+b") as file:
            file.truncate(content.rfind(b"\n") + 1)
