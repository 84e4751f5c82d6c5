"""Decides stored sessions of an agent by the checks and gates of a contract: nothing is called.

Each trace is one trial. Which input it belongs to is told by what its user said, or by the name of
its file or folder. All traces count, in the order of their files: the design is fixed at their
number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path

from trialwise.engine.ports import TrialContext
from trialwise.errors import InvalidArgument
from trialwise.model.contract import Contract
from trialwise.model.fingerprint import canonical
from trialwise.model.options import RunOptions
from trialwise.model.reply import Reply
from trialwise.model.sampling import Input, Sampling
from trialwise.model.trace import Trace
from trialwise.runtime.result import Result
from trialwise.runtime.running import run
from trialwise.traces.trace_documents import TraceError, read_traces

#: The input of traces that do not tell theirs.
_UNKNOWN = "unknown"
#: What may follow the name of an input in the name of a file.
_SEPARATORS = (".", "-", "_")


@dataclass(frozen=True, slots=True)
class StoredTrace:
    """A session and the file that holds it."""

    trace: Trace
    file: Path

    @property
    def asked(self) -> str | None:
        """What its user said first; None where it does not tell."""
        return next((one.content for one in self.trace.turns if one.role == "user"), None)


@dataclass(frozen=True, slots=True)
class ScoredTraces:
    """A verdict on stored sessions, or on stored replies."""

    result: Result
    notes: tuple[str, ...] = ()
    """What a reader must know of how they were read."""


def read_stored(files: Iterable[Path], format_: str | None = None) -> list[StoredTrace]:
    """Read the traces of files, in the order of the files.

    Args:
        files: The files; one may hold several traces.
        format_: A name of `TraceFormat`; by default the shape of each document tells.

    Raises:
        TraceError: A file holds no trace.
    """
    found: list[StoredTrace] = []
    for file in files:
        try:
            found += [StoredTrace(trace, file) for trace in read_traces(file, format_)]
        except TraceError as error:
            raise TraceError(f"{file}: {error}") from None
    return found


def score_traces(
    contract: Contract,
    stored: Sequence[StoredTrace],
    *,
    options: RunOptions | None = None,
    baselines: str | Path = "baselines",
) -> ScoredTraces:
    """Decide traces by the criteria and the gates of a contract.

    Args:
        contract: The contract, whose service is not called.
        stored: The traces.
        options: How the contract would be run; the number of trials is that of the traces.
        baselines: The folder baselines are kept in.

    Raises:
        DesignRefused: So many traces cannot support what is claimed.
    """
    if not stored:
        raise InvalidArgument("traces", [], "hold at least one trace")
    if len(contract.samplings) > 1:
        named = ", ".join(contract.samplings)
        raise InvalidArgument("contract", contract.name, f"have one sampling, not {named}")
    _check_latencies(contract, stored)
    sampling = next(iter(contract.samplings.values()), None)
    known = () if sampling is None else sampling.inputs
    inputs, traces = _group_by_input(known, stored)
    _check_asked(contract, known, inputs)
    tried = tuple(replace(one, repetitions=len(traces[one.id])) for one in inputs)
    prepared = replace(
        contract,
        service=_StoredReplies(tried, traces),
        criteria=[replace(one, trials=None, max_trials=None) for one in contract.criteria],
        sampling=Sampling(inputs=tried) if sampling is None else replace(sampling, inputs=tried),
        before_each=None,
    )
    result = run(
        prepared,
        options=(options or RunOptions()).without_calls(trials=len(stored)),
        store=None,
        baselines=baselines,
        progress=False,
    )
    return ScoredTraces(result, tuple(_list_notes(known, inputs)))


class _StoredReplies:
    """Gives each trial the next trace of its input.

    Args:
        inputs: The inputs.
        traces: The traces of each, by its id.
    """

    tells_cost = True

    def __init__(
        self, inputs: Sequence[Input], traces: Mapping[str, Sequence[StoredTrace]]
    ) -> None:
        # A service is told what is asked, and not the input's name.
        self._left: dict[str, deque[StoredTrace]] = {}
        for one in inputs:
            self._left.setdefault(canonical(one.value), deque()).extend(traces[one.id])

    async def call(self, trial: TrialContext) -> Reply:
        """Return the reply that the next trace of the input holds."""
        return self._left[canonical(trial.input)].popleft().trace.to_reply()

    async def aclose(self) -> None:
        """Nothing is held."""


def _group_by_input(
    inputs: Sequence[Input], stored: Sequence[StoredTrace]
) -> tuple[list[Input], dict[str, list[StoredTrace]]]:
    """Return the inputs that have traces, in their order, and the traces of each by its id."""
    known = {one.id: one for one in inputs}
    found: dict[str, list[StoredTrace]] = {name: [] for name in known}
    for one in stored:
        name = _find_input(inputs, one)
        if name is None:
            name = one.asked or _UNKNOWN
            known.setdefault(name, Input(id=name, value=one.asked))
        found.setdefault(name, []).append(one)
    return [known[name] for name, traces in found.items() if traces], found


def _find_input(inputs: Sequence[Input], stored: StoredTrace) -> str | None:
    asked = stored.asked
    if asked is not None:
        for one in inputs:
            if one.value == asked:
                return one.id
    names = (stored.file.parent.name, stored.file.stem)
    fitting = [
        one.id
        for one in inputs
        if one.id in names or stored.file.stem.startswith(tuple(one.id + s for s in _SEPARATORS))
    ]
    if fitting:
        return max(fitting, key=len)
    return inputs[0].id if len(inputs) == 1 else None


def _check_asked(contract: Contract, known: Sequence[Input], tried: Sequence[Input]) -> None:
    """Refuse to score if an input has no trace and a criterion needs every input."""
    missing = {one.id for one in known} - {one.id for one in tried}
    never = [one.name for one in contract.criteria if one.never_fails]
    if missing and never:
        allowed = f"hold one of each input, since {never[0]!r} asks every input: there is none of "
        raise InvalidArgument("traces", f"{len(tried)} inputs", allowed + _name_some(missing))


def _name_some(names: Iterable[str]) -> str:
    """Name at most ten inputs."""
    listed = sorted(names)
    return ", ".join(listed[:10]) + (f" and {len(listed) - 10} more" if listed[10:] else "")


def _check_latencies(contract: Contract, stored: Sequence[StoredTrace]) -> None:
    """Refuse a limit on time if a trace has no duration, since 0 s would pass."""
    untimed = [one for one in stored if one.trace.duration_s is None]
    asking = [one.name for one in contract.criteria if any(map(_limits_latency, one.checks))]
    if untimed and (asking or contract.latency is not None):
        what = f"the criterion {asking[0]!r}" if asking else "`latency`"
        allowed = f"tell how long the session took, which {what} limits"
        raise InvalidArgument("trace", str(untimed[0].file), allowed)


def _limits_latency(check: object) -> bool:
    if getattr(check, "spelling", None) == "max_latency":
        return True
    if isinstance(check, list | tuple):
        return any(map(_limits_latency, check))
    if not is_dataclass(check) or isinstance(check, type):
        return False
    return any(_limits_latency(getattr(check, one.name, None)) for one in fields(check))


def _list_notes(known: Sequence[Input], tried: Sequence[Input]) -> Iterator[str]:
    found = {one.id for one in tried}
    missing = [one.id for one in known if one.id not in found]
    if missing:
        yield f"{len(missing)} of {len(known)} inputs have no trace: {_name_some(missing)}"
    others = found - {one.id for one in known}
    if others and known:
        yield f"not among the inputs, and so inputs of their own: {_name_some(others)}"
