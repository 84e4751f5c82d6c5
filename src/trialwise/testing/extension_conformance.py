"""Whether a check, a service, a report format or a trace reader of one's own keeps to its port."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import anyio

from trialwise.checks.check_base import Check, to_spec
from trialwise.checks.combine import CheckDeclaration
from trialwise.engine.ports import Service, ServiceError, TrialContext
from trialwise.errors import BrokenCheck
from trialwise.model import CheckResult, Contract, Criterion, ErrorClass, Reply, RunRecord, Trace
from trialwise.reports.formats import ReportFormat, ReportSource
from trialwise.traces import TraceError

_LONGEST_EVIDENCE = 200
_LONGEST_EXPLANATION = 300
#: Values that services have returned, or that somebody could make them return.
HOSTILE_REPLIES: tuple[Any, ...] = (
    "",
    "\0",
    "\ud800",
    "\x1b[2J\r\n\u202e",
    "x" * 300_000,
    "[" * 100_000,
    '{"a": ' * 500 + "1" + "}" * 500,
    None,
    b"\xff",
    10**5000,
    float("nan"),
    {"a": object()},
    object(),
    [],
)
#: Longer than any service takes to notice that it is cancelled.
_PATIENCE_S = 5.0
_DOWN = ServiceError("the service is down", ErrorClass.INFRASTRUCTURE)


def assert_check_conforms(
    constructor: Callable[..., Any],
    examples: Iterable[Mapping[str, Any]],
    *,
    failing: Iterable[Any],
) -> None:
    """Assert that a check behaves as those that are built in.

    - It is declared: every argument has a kind and is described in the docstring.
    - It never raises for a reply, and explains each failure on one short printable line.
    - It says the same of the same reply twice.
    - It fails a reply that ought to fail: mistakes hide where nobody looks.
    - It is a value: equal to another one that is built alike, and it survives pickling.
    - It can be written down, and what it writes builds it again.

    Args:
        constructor: What the entry point names: the class, or a function that returns the check.
        examples: Arguments that it is built with.
        failing: Replies, or their values; each example has to fail one of them.

    Raises:
        AssertionError: What does not hold, and for which example.
    """
    replies = [one if isinstance(one, Reply) else Reply(value=one) for one in failing]
    assert replies, "give at least one reply that fails"
    built = [(given, constructor(**given)) for given in examples]
    assert built, "give at least one example of arguments"
    for given, check in built:
        assert isinstance(check, Check), f"{check!r} must derive from trialwise.checks.Check"
        declared, again = CheckDeclaration(check.spelling, constructor), constructor(**given)
        assert declared.doc, f"{declared.name} needs a docstring that says what it asks"
        for key in declared.keys:
            said = f"the docstring of {declared.name} says nothing of {key.name!r} under Args"
            assert key.doc, said
        assert check == again, f"{check!r} differs from one with the same arguments"
        assert hash(check) == hash(again), f"the hash of {check!r} is another one each time"
        kept = pickle.loads(pickle.dumps(check))
        assert check == kept, f"{check!r} does not survive pickling"
        _assert_written(check, constructor)
        assert check.name.isprintable(), f"the name {check.name!r} must be one printable line"
        for value in HOSTILE_REPLIES:
            _assert_answers(check, Reply(value=value))
        answers = [_assert_answers(check, reply) for reply in replies]
        if all(result.passed for result in answers):
            raise AssertionError(f"{check.name} with {given} fails none of the replies that should")


def _assert_written(check: Check, constructor: Callable[..., Any]) -> None:
    ((name, argument),) = to_spec(check).items()
    assert name == check.spelling, f"{check!r} is written as {name!r}, not as {check.spelling!r}"
    declared = CheckDeclaration(name, constructor)
    read = declared.build(declared.collect(argument))
    assert check == read, f"{check!r} is written as {argument!r}, which is {read!r}"


def _assert_answers(check: Check, reply: Reply) -> CheckResult:
    shown = repr(reply.value)[:40] if not isinstance(reply.value, int) else "a huge number"
    try:
        result = check.check(reply)
    except BrokenCheck as broken:
        raise AssertionError(f"{check.name} of {shown} {broken.problem}") from broken
    assert isinstance(result, CheckResult), f"{check.name} of {shown} gives {result!r}"
    assert result == check.check(reply), f"{check.name} says two things of {shown}"
    assert result.passed is (result.reason is None), f"{check.name} of {shown}: {result!r}"
    assert result.passed or result.explanation, f"{check.name} does not explain {shown}"
    for text, longest in (
        (result.explanation, _LONGEST_EXPLANATION),
        (result.evidence, _LONGEST_EVIDENCE),
    ):
        short = len(text) <= longest and text.isprintable()
        assert short, f"{check.name} of {shown} explains too much: {text[:longest]!r}"
    return result


def assert_service_conforms(
    make: Callable[[], Service], inputs: Sequence[Any], *, seed: int = 1
) -> None:
    """Assert that a service behaves as those that are built in.

    - A call returns a `Reply`, or raises `ServiceError` where there is none.
    - Latency and cost are finite and not negative.
    - Calls side by side answer each trial, as one after the other.
    - A cancelled call ends at once.
    - Closing twice is as good as once, and a closed service can be called again.

    Args:
        make: Makes the service.
        inputs: Inputs that it answers.
        seed: The seed of the first trial.

    Raises:
        AssertionError: What does not hold, and for which input.
    """
    trials = [
        TrialContext(index=index, input=one, seed=seed + index) for index, one in enumerate(inputs)
    ]
    assert trials, "give at least one input"
    anyio.run(_assert_all, make, trials)


async def _assert_all(make: Callable[[], Service], trials: Sequence[TrialContext]) -> None:
    service = make()
    for trial in trials:
        _assert_reply(trial, await _ask(service, trial))
    answers: dict[int, object] = {}

    async def ask(trial: TrialContext) -> None:
        answers[trial.index] = await _ask(service, trial)

    async with anyio.create_task_group() as group:
        for trial in trials:
            group.start_soon(ask, trial)
    for trial in trials:
        _assert_reply(trial, answers.get(trial.index))
    await _assert_cancels(service, trials[0])
    await service.aclose()
    await service.aclose()
    _assert_reply(trials[0], await _ask(service, trials[0]))
    await service.aclose()


async def _ask(service: Service, trial: TrialContext) -> object:
    try:
        return await service.call(trial)
    except ServiceError as error:
        return error


def _assert_reply(trial: TrialContext, answer: object) -> None:
    if isinstance(answer, ServiceError):
        return
    assert isinstance(answer, Reply), f"the answer to {trial.input!r} is {answer!r}, not a Reply"
    for name in ("latency_s", "cost_usd"):
        amount = getattr(answer, name)
        fits = amount is None or (math.isfinite(amount) and amount >= 0)
        assert fits, f"the {name} of the answer to {trial.input!r} is {amount!r}"


async def _assert_cancels(service: Service, trial: TrialContext) -> None:
    started = anyio.current_time()
    with anyio.move_on_after(0):
        await _ask(service, trial)
    took = anyio.current_time() - started
    assert took < _PATIENCE_S, f"a cancelled call took {took:.1f} s to end"


@cache
def example_records() -> tuple[RunRecord, ...]:
    """Return the records of three small runs: a PASS, a FAIL and one that is INCONCLUSIVE."""
    return (
        _example_run("sums", ["555"], at_least=0.5, trials=40),
        _example_run("capitals <b>&", ["Sydney", "555"], at_least=0.9, trials=40),
        # Its service is never reached, so that nothing is shown.
        _example_run("poems", [_DOWN], at_least=0.5, trials=40),
    )


def assert_report_format_conforms(
    declared: ReportFormat, records: Sequence[RunRecord] | None = None
) -> None:
    """Assert that a format of a report behaves as those that are built in.

    - Its name and key are words, and its endings begin with a dot or are whole names.
    - It renders one run and several, the same text each time, and names every contract.
    - Its text can be written as UTF-8, and is JSON where it says so.

    Args:
        declared: What the entry point names.
        records: The runs to show; `example_records()` where not given.

    Raises:
        AssertionError: What does not hold.
    """
    shown = tuple(example_records() if records is None else records)
    assert isinstance(declared, ReportFormat), f"{declared!r} must be a ReportFormat"
    assert declared.name, "a format needs a name"
    assert declared.key, "a format needs a key for suites"
    assert declared.summary, "a format says in `summary` what it holds and for whom"
    assert all(declared.endings), "an ending is not empty"
    for some in (shown[:1], shown):
        text = declared.render(ReportSource(records=some))
        assert isinstance(text, str), f"{declared.name} gives {type(text).__name__}, not text"
        text.encode()
        assert text == declared.render(ReportSource(records=some)), "two reports of one run differ"
        if declared.is_json:
            json.loads(text)
        assert text.strip(), f"{declared.name} says nothing of {len(some)} runs"


def assert_trace_reader_conforms(
    read: Callable[[Any], Sequence[Trace]], documents: Iterable[Any]
) -> None:
    """Assert that a reader of traces behaves as those that are built in.

    - It reads every example, the same each time and without changing it.
    - What it reads survives being written: `Trace.from_dict(trace.to_dict())` equals the trace.
    - A damaged document is read as far as it goes or refused with `TraceError`; nothing else is
      raised, since an agent's log may hold anything.

    Args:
        read: Returns the traces of a parsed document.
        documents: Examples of what it reads, as plain JSON values.

    Raises:
        AssertionError: What does not hold, and for which document.
    """
    examples = list(documents)
    assert examples, "give at least one document"
    for document in examples:
        before = json.dumps(document)
        found = list(read(document))
        assert found, f"no trace is found in {before[:80]}"
        assert found == list(read(json.loads(before))), f"{before[:80]} is read in two ways"
        assert before == json.dumps(document), f"reading changes {before[:80]}"
        for damaged in (document, *_damage(document), *HOSTILE_REPLIES):
            _assert_readable(read, damaged)


def _damage(document: Any) -> Iterator[Any]:
    """Yield the document again and again, each time with one of its values replaced."""
    if not isinstance(document, dict | list):
        return
    for key, value in document.items() if isinstance(document, dict) else enumerate(document):
        for other in (None, 5, "x", [5], {"x": []}, *_damage(value)):
            damaged = document.copy()
            damaged[key] = other
            yield damaged


def _assert_readable(read: Callable[[Any], Sequence[Trace]], document: Any) -> None:
    shown = "a huge number" if isinstance(document, int) else repr(document)[:200]
    try:
        found = read(document)
    except TraceError:
        return
    except Exception as error:
        raise AssertionError(f"reading {shown} raises {type(error).__name__}: {error}") from error
    for trace in found:
        assert trace == Trace.from_dict(trace.to_dict()), f"a trace of {shown} cannot be written"


def _example_run(name: str, replies: list[Any], *, at_least: float, trials: int) -> RunRecord:
    from trialwise.checks.texts import contains
    from trialwise.runtime.running import run

    criterion = Criterion("answers", contains("555"), at_least=at_least)
    contract = Contract(name, ScriptedService(replies), [criterion])
    result = run(
        contract,
        inputs=["What is 15 * 37?", "And 37 * 15?"],
        trials=trials,
        seed=7,
        intent="smoke",
        store=None,
        progress=False,
    )
    return result.record


# A service that says what a test tells it to, and a clock that moves only while somebody waits.


class ScriptedService:
    """A service that answers each trial from a script.

    A script is a list, which is played from its beginning again once it ends, or a function of the
    trial. An answer is a value, a whole `Reply`, or an exception that is raised.

    >>> import anyio
    >>> service = ScriptedService(["yes", ConnectionError("down")])
    >>> anyio.run(service.call, TrialContext(index=0, input="really?", seed=1)).value
    'yes'
    >>> [trial.input for trial in service.trials]
    ['really?']

    Args:
        script: The answers in order, by index of the trial, or what gives them.
    """

    def __init__(self, script: Sequence[Any] | Callable[[TrialContext], Any]) -> None:
        self._script = script
        self.trials: list[TrialContext] = []
        """Every trial that was asked, in order."""
        self.closed = 0
        """How often the service was closed."""

    async def call(self, trial: TrialContext) -> Reply:
        """Answer one trial."""
        self.trials.append(trial)
        if callable(self._script):
            answer = self._script(trial)
        else:
            answer = self._script[trial.index % len(self._script)]
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, Reply) else Reply(value=answer)

    async def aclose(self) -> None:
        """Count that it was closed; a later call is answered all the same."""
        self.closed += 1


_START = datetime(2026, 1, 1, tzinfo=UTC)


class VirtualClock:
    """Time that passes only when somebody waits for it, or says so.

    >>> clock = VirtualClock()
    >>> clock.advance(2.5)
    >>> clock.monotonic(), clock.now().isoformat()
    (2.5, '2026-01-01T00:00:02.500000+00:00')
    """

    def __init__(self) -> None:
        self.time = 0.0
        """Seconds since the start."""
        self.waits: list[float] = []
        """How long was waited, each time."""

    def __call__(self) -> float:
        """Return the time, for constructors that take a clock as a function."""
        return self.time

    def monotonic(self) -> float:
        """Return the seconds since the start."""
        return self.time

    def now(self) -> datetime:
        """Return the date and time; the clock starts with the year 2026."""
        return _START + timedelta(seconds=self.time)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.time += seconds

    async def sleep(self, seconds: float) -> None:
        """Let time pass, and let other tasks run."""
        from anyio.lowlevel import checkpoint

        self.waits.append(seconds)
        self.advance(seconds)
        await checkpoint()
