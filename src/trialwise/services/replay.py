"""Replies are recorded to a file and played back from it.

The file has one line for each attempt: readable, checked, without anything secret. A line holds
what came back and a hash of what was sent, never the request itself. Only values that JSON returns
unchanged are written, so that a replayed reply equals the recorded one, except for the secrets that
the run takes out.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

from trialwise.declarations.resources import File
from trialwise.declarations.signatures import Arg
from trialwise.engine.error_classes import classify_error, innermost_error
from trialwise.engine.ports import Service, ServiceError, TrialContext
from trialwise.model.plain_json import is_whole, parse_lines, seal, unplain
from trialwise.model.reply import Reply, read_reply, write_reply
from trialwise.model.trial import ErrorClass, Trial
from trialwise.redaction import cut_text, redact_values
from trialwise.regular_files import read_regular
from trialwise.services.service_factors import HttpFailure, RecordedFailure, RecordingError

__all__ = ["RecordingService", "ReplayService"]

Left = dict[str, dict[int, list[dict[str, Any]]]]
#: How every line begins; also the version of the form.
PREFIX = '{"recording":1,'


class RecordingService:
    """A service that also writes down what another one says.

    One line of JSON for each attempt: the trial's index, a hash of its input, its seed, and the
    reply or the error, under a checksum; what was done before an error goes with it. Requests,
    headers and environments are not written. A cancelled call is written as such, so that a timeout
    can be replayed. A reply that JSON cannot carry is refused; an input that it cannot carry is
    refused before the service is asked.

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
        self._write = sink if callable(sink) else RecordingFile(Path(sink)).write
        self._clock = clock

    async def call(self, trial: TrialContext) -> Reply:
        """Return the service's reply, once it is written down."""
        from anyio import get_cancelled_exc_class

        asked = self._told | {
            "index": trial.index,
            "input": input_hash(trial.input),
            "seed": trial.seed,
            "attempt": trial.attempt,
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
        except (Exception, SystemExit) as error:
            self._record(asked | {"error": encode_error(error)} | _so_far(trial))
            raise
        self._record(asked | {"reply": encode_reply(reply)})
        return reply

    async def aclose(self) -> None:
        """Close the service; every line is already written."""
        await self._service.aclose()

    def _record(self, fields: dict[str, Any]) -> None:
        try:
            self._write(encode_line(redact_values(fields)))
        except OSError as error:
            message = f"the recording cannot be written: {error}"
            raise RecordingError(message, ErrorClass.INFRASTRUCTURE) from error

    def __repr__(self) -> str:
        return f"RecordingService({self._service!r})"


class ReplayService:
    """A recording that is replayed as a service.

    A trial gets the reply that was recorded for its input and index; where there is none (left),
    the next unused one for its input, in the order of their indices. Several attempts at one trial
    come back in the order they were made. A trial that was asked anew, because the run was killed
    before it counted, has the later reply. A call that was cancelled comes back as a timeout,
    unless the trial was completed later. Closing starts the recording over.

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
        self._left = RecordedReplies(self._records)

    async def call(self, trial: TrialContext) -> Reply:
        """Return the recorded reply to one trial; what was raised then is raised again."""
        from anyio.lowlevel import checkpoint

        await checkpoint()
        record = self._left.take(input_hash(trial.input), trial.index)
        if record is None:
            raise RecordingError(
                f"{self._name} holds no (further) reply to the input of trial {trial.index}: "
                f"{cut_text(repr(trial.input), 80)}; record it, or run the inputs it was made with",
                ErrorClass.PRE_VALIDATION,
            )
        if "partial" in record:
            trial.keep(lambda: read_reply(record["partial"]))
        came_back = _read_outcome(record)
        if isinstance(came_back, Exception):
            raise came_back
        return came_back

    async def aclose(self) -> None:
        """Start the recording over."""
        self._left = RecordedReplies(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def __repr__(self) -> str:
        return f"ReplayService({self._name!r}, {len(self)} recorded)"


def _so_far(trial: TrialContext) -> dict[str, Any]:
    partial = trial.partial
    return {} if partial is None else {"partial": encode_reply(partial)}


class RecordedReplies:
    """What is left to play: input to index to attempts, indices and attempts in order."""

    def __init__(self, records: Iterable[dict[str, Any]]) -> None:
        self._left: Left = {}
        # A cancelled call last: a time limit that struck once need not strike in a replay where the
        # trial was completed later.
        whole = _drop_unfinished(records)
        for record in sorted(whole, key=lambda r: (r["index"], "cancelled_after_s" in r)):
            trials = self._left.setdefault(record["input"], {})
            trials.setdefault(record["index"], []).append(record)

    def take(self, name: str, index: int) -> dict[str, Any] | None:
        """Take the record of a trial, or the next one of the same input; None where none is left.

        Args:
            name: The hash of the trial's input.
            index: The trial's.
        """
        trials = self._left.get(name)
        if not trials:
            return None
        # Another trial of the same input is as good a draw of its reply; the own one first, so that
        # a run that is replayed unchanged gives the same trials.
        found = index if index in trials else next(iter(trials))
        taken = trials[found].pop(0)
        if not trials[found]:
            del trials[found]
        return taken


def _drop_unfinished(records: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Drop what was recorded of a trial before it was asked anew: a kill came before its count."""
    kept: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for record in records:
        trial = tuple(record.get(one) for one in ("contract", "input", "index", "seed"))
        if record.get("attempt") == 1:  # earlier versions did not number attempts
            kept[trial] = []
        kept.setdefault(trial, []).append(record)
    return chain.from_iterable(kept.values())


def _read(path: Path) -> list[bytes]:
    """Read the complete lines of a file; a last one that was cut off never counted."""
    try:
        content = read_regular(path)
    except OSError as error:
        message = f"the recording cannot be read: {error}"
        raise RecordingError(message, ErrorClass.PRE_VALIDATION) from error
    return content.split(b"\n")[:-1]


class RecordingFile:
    """A file that takes whole lines, opened with the first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_ready = False

    def write(self, line: bytes) -> None:
        """Write one line."""
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
    content = read_regular(path)
    start = content[: len(PREFIX)]
    if not PREFIX.encode().startswith(start):
        message = f"{path} exists and is not a recording; it is left as it is"
        raise RecordingError(message, ErrorClass.PRE_VALIDATION)
    if content and not content.endswith(b"\n"):
        with open(path, "r+b") as file:
            file.truncate(content.rfind(b"\n") + 1)


def input_hash(value: Any) -> str:
    """Return a name for an input that depends on its content alone.

    >>> input_hash({"a": 1, "b": 2}) == input_hash({"b": 2, "a": 1})
    True
    """
    from hashlib import sha256

    # An input that JSON changes would have the hash of another one.
    check_plain("the input", value, ErrorClass.PRE_VALIDATION)
    text = _dump(value, sort_keys=True)
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


def check_plain(place: str, value: Any, error_class: ErrorClass) -> None:
    """Refuse what JSON would lose or change, and say where it stands."""
    found = unplain(value)
    if found is not None:
        where, what = found
        raise RecordingError(
            f"{place}{where} is {what}, which a recording cannot hold: "
            "only text, finite numbers, booleans, None, lists and dicts with text keys",
            error_class,
        )


def encode_reply(reply: Reply) -> dict[str, Any]:
    """Encode a reply as plain values."""
    check_plain("the reply's value", reply.value, ErrorClass.INFRASTRUCTURE)
    check_plain("the reply's details", dict(reply.details), ErrorClass.INFRASTRUCTURE)
    return write_reply(reply)


def encode_error(error: BaseException) -> dict[str, Any]:
    """Encode a failure as plain values: its kind and what it said, nothing it held."""
    error = innermost_error(error)
    kind = type(error)
    fields: dict[str, Any] = {
        "type": f"{kind.__module__}.{kind.__qualname__}",
        "message": str(error),
        "class": error.error_class.value if isinstance(error, ServiceError) else None,
    }
    if isinstance(error, HttpFailure):
        fields |= {"status": error.status, "retry_after_s": error.retry_after_s}
    elif not isinstance(error, ServiceError):
        # Its class follows from its type and attributes, which are gone when it is played back.
        fields["trouble"] = classify_error(error)
    return fields


def decode_error(fields: Mapping[str, Any]) -> Exception:
    """Decode the failure a line holds, classed as it was."""
    if fields["class"] is None:
        # Recordings of earlier versions do not tell it.
        trouble = fields.get("trouble", (ErrorClass.NONE, None, None))
        return RecordedFailure(fields["message"], fields["type"], *trouble)
    error_class = ErrorClass(fields["class"])
    if "status" in fields:
        told = {name: fields[name] for name in ("status", "retry_after_s")}
        return HttpFailure(fields["message"], error_class, **told)
    return ServiceError(fields["message"], error_class)


def encode_line(fields: Mapping[str, Any]) -> bytes:
    """One line, with a checksum over all of it."""
    body = PREFIX + _dump(fields)[1:]
    return seal(body.encode(errors="surrogatepass"))


def decode_line(line: bytes, place: str) -> dict[str, Any]:
    """Decode what a line holds; a line that is not as it was written is refused.

    Args:
        line: Without its end.
        place: How a refusal names it.
    """
    if not line.startswith(PREFIX.encode()):
        raise RecordingError(f"{place} is not one of a recording", ErrorClass.PRE_VALIDATION)
    if not is_whole(line):
        problem = f"{place} was changed or damaged: its checksum does not match"
        raise RecordingError(problem, ErrorClass.PRE_VALIDATION)
    try:
        (record,) = parse_lines([line])
        # A line with the right checksum may be one that no recording writes.
        if type(record["index"]) is not int or not isinstance(record["input"], str):
            raise TypeError("a trial has an index and an input")
        read_reply(record.get("partial", {"value": None}))
        _read_outcome(record)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        problem = f"{place} holds neither a reply nor an error ({type(error).__name__})"
        raise RecordingError(problem, ErrorClass.PRE_VALIDATION) from None
    return record


def _read_outcome(record: Mapping[str, Any]) -> Reply | Exception:
    """Read what came back: a reply, or the error that is raised again."""
    if "cancelled_after_s" in record:
        message = f"cancelled after {record['cancelled_after_s']:.3f} s when it was recorded"
        return ServiceError(message, ErrorClass.TIMEOUT)
    return decode_error(record["error"]) if "error" in record else read_reply(record["reply"])


def _dump(value: Any, *, sort_keys: bool = False) -> str:
    import json

    # As it was said, so that a recording can be read: only ASCII would hide most languages.
    return json.dumps(
        value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=sort_keys
    )


# --- Replies that a run has kept are given again; the service is asked only for the others --------


class KeptAnswer(NamedTuple):
    """What came back in a trial that is kept."""

    reply: Reply | None
    """The reply, or what a failure took, where that is known."""
    error: ServiceError | None = None
    """Why there was no reply."""


def read_answer(trial: Trial) -> KeptAnswer | None:
    """Return what came back in a trial of a stored run; None where that is not kept."""
    if trial.latency_s is not None:
        reply = trial.rebuild_reply()
        return None if reply is None else KeptAnswer(reply)
    spent = Reply(value="", usage=trial.usage, cost_usd=trial.cost_usd)
    error = ServiceError(trial.error, trial.error_class)
    return KeptAnswer(spent if trial.has_expenses else None, error)


class KeptReplies:
    """A service that is asked only where no answer is kept; failures come back as they were.

    Args:
        service: What is under test; None where every trial has an answer.
        answers: By the index and the seed of their trials.
    """

    tells_cost = True

    def __init__(
        self, service: Service | None, answers: Mapping[tuple[int, int], KeptAnswer]
    ) -> None:
        self._service = service
        # The seed tells apart trials of one index in several samplings.
        self._left = dict(answers)

    async def call(self, trial: TrialContext) -> Reply:
        """Return the reply that was kept, or the service's."""
        reply, error = self._left.pop((trial.index, trial.seed), (None, None))
        if error is not None:
            if reply is not None:
                trial.keep(lambda: reply)
            raise error
        if reply is not None:
            return reply
        assert self._service is not None
        return await self._service.call(trial)

    async def aclose(self) -> None:
        """Close the service."""
        if self._service is not None:
            await self._service.aclose()


class ReusingService:
    """A service that is asked only where no reply to the same input is left of earlier runs.

    Only replies are kept: an error or a timeout may be gone by the next run. A value that JSON
    cannot hold is not kept, and the service is asked again.

    Args:
        service: What is under test.
        file: Holds the replies; new ones are appended.
    """

    def __init__(self, service: Service, file: Path) -> None:
        self._service = service
        lines = _read(file) if file.exists() else []
        self._left = RecordedReplies(decode_line(line, str(file)) for line in lines)
        self._file = RecordingFile(file)
        self.reused = 0
        self.asked = 0

    async def call(self, trial: TrialContext) -> Reply:
        """Return a reply that is left, or the service's."""
        try:
            name = input_hash(trial.input)
        except RecordingError:
            return await self._ask(trial)
        record = self._left.take(name, trial.index)
        if record is not None:
            from anyio.lowlevel import checkpoint

            await checkpoint()
            self.reused += 1
            return read_reply(record["reply"])
        reply = await self._ask(trial)
        asked: dict[str, Any] = {"index": trial.index, "input": name, "seed": trial.seed}
        with suppress(RecordingError):
            record = asked | {"reply": encode_reply(reply)}
            self._file.write(encode_line(redact_values(record)))
        return reply

    async def _ask(self, trial: TrialContext) -> Reply:
        self.asked += 1
        return await self._service.call(trial)

    async def aclose(self) -> None:
        """Close the service; every reply is already written."""
        await self._service.aclose()
