"""What a program or an endpoint reports of itself in its reply: its session, tokens, cost, setup
and error, each at a place that the suite names.

What is not there is unknown, never zero or nothing: a trace that cannot be read leaves the calls of
the session unknown, so that no check about calls passes on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from trialwise.declarations.scalars import Text
from trialwise.declarations.signatures import Arg
from trialwise.engine.error_classes import classify_status
from trialwise.engine.ports import TrialContext
from trialwise.model.reply import Reply, Setup, Usage
from trialwise.model.trace import Fields, read_amount, read_tokens
from trialwise.model.trial import ErrorClass
from trialwise.services.model_apis import check_pointer, find, parse_json
from trialwise.services.service_factors import MalformedReply, ReportedFailure

if TYPE_CHECKING:
    from trialwise.model.trace import Trace

Pointer = Annotated[str, Arg(kind=Text(environment="kept"))]
"""A place in a JSON document: a JSON Pointer, or a JSONPath that names one place."""

#: Classes that a service may say of itself, and how model APIs name errors that say nothing about
#: the agent.
_CLASSES = {
    **{str(one): one for one in ErrorClass if one not in (ErrorClass.NONE, ErrorClass.NO_EVIDENCE)},
    "api-connection-error": ErrorClass.INFRASTRUCTURE,
    "overloaded-error": ErrorClass.INFRASTRUCTURE,
    "rate-limit-error": ErrorClass.INFRASTRUCTURE,
    "rate-limit-exceeded": ErrorClass.INFRASTRUCTURE,
    "service-unavailable": ErrorClass.INFRASTRUCTURE,
    "timeout-error": ErrorClass.TIMEOUT,
}
#: How replies spell that there was no error.
_NO_ERROR: tuple[object, ...] = (None, False, "", "none", [], {})


@dataclass(frozen=True, slots=True)
class _Unparsed:
    """A reply that is no JSON document, and why; it may be lines of JSON."""

    why: str
    text: bytes


class ReportPlaces:
    """The places in a reply where its service reports what it did.

    Args:
        places: By what stands there: `extract` (the reply itself), `trace` (the session), `usage`
            (the tokens), `cost` (in US dollars), `setup` (the preparation), `error`; None where the
            service does not report it.
    """

    def __init__(self, **places: str | None) -> None:
        self._written = {name: one for name, one in places.items() if one is not None}
        self._steps = {name: check_pointer(name, one) for name, one in self._written.items()}
        self.tells_cost = not self._steps.keys().isdisjoint(("cost", "trace"))
        """Whether a reply may tell what it cost."""

    def __bool__(self) -> bool:
        return bool(self._steps)

    @property
    def extract(self) -> tuple[str, ...] | None:
        """The steps to the reply itself, if they are given."""
        return self._steps.get("extract")

    def read(
        self, said: bytes, reply: Reply, trial: TrialContext, trace: Trace | None = None
    ) -> Reply:
        """Return a reply with everything that the service reports of it.

        Args:
            said: What the service said.
            reply: The reply so far, whose value is the whole text.
            trial: The trial, which keeps what an unsuccessful call took.
            trace: The session, where the document does not hold it.

        Raises:
            MalformedReply: Nothing stands where the reply is expected.
            ReportedFailure: The service reports an error.
        """
        document: Any
        try:
            document = parse_json(said)
        except ValueError as error:
            document = _Unparsed(str(error), said)
        trace = self._trace(document) or trace
        reply = add_report(
            reply,
            trace,
            usage=read_tokens(self._find(document, "usage")),
            cost_usd=_read_cost(self._find(document, "cost")),
            setup=_read_setup(self._find(document, "setup")),
        )
        # Whatever becomes of the reply, what it took is paid for.
        trial.keep(lambda: reply)
        failure = _read_error(self._find(document, "error"))
        if failure is not None:
            raise failure
        return replace(reply, value=self._value(document, reply, trace))

    def _value(self, document: Any, reply: Reply, trace: Trace | None) -> Any:
        if "extract" in self._steps:
            if isinstance(document, _Unparsed):
                raise MalformedReply(f"the response holds no reply: {document.why}")
            try:
                return find(document, self._steps["extract"])
            except LookupError as error:
                raise MalformedReply(f"the response holds no reply: {error}") from None
        if self._steps.get("trace") == () and trace is not None and (trace.turns or trace.answer):
            return trace.answer or ""
        return reply.value

    def _trace(self, document: Any) -> Trace | None:
        if "trace" not in self._steps:
            return None
        found = self._find(document, "trace")
        if isinstance(document, _Unparsed):
            is_whole = self._steps["trace"] == ()
            return (
                read_reported_trace(document.text) if is_whole else unreadable_trace(document.why)
            )
        if found is None:
            return unreadable_trace(f"the reply has nothing at {self._written['trace'] or '$'}")
        return read_reported_trace(found)

    def _find(self, document: Any, name: str) -> Any:
        """Return what stands at a place; None where nothing does."""
        steps = self._steps.get(name)
        if steps is None or isinstance(document, _Unparsed):
            return None
        try:
            return find(document, steps)
        except LookupError:
            return None


def unreadable_trace(why: str) -> Trace:
    """Return the trace of a session of which nothing can be read."""
    from trialwise.model.trace import Trace

    return Trace(calls_unknown=why)


def read_reported_trace(found: Any) -> Trace:
    """Read a trace in any of the known formats; one that cannot be read leaves its calls unknown.

    Args:
        found: The trace, parsed or as text.
    """
    from trialwise.errors import TrialwiseError
    from trialwise.traces.trace_documents import read_trace

    try:
        return read_trace(found)
    except TrialwiseError as error:
        return unreadable_trace(f"the trace cannot be read: {error}")


def report_trace(trace: Trace | None) -> Reply | None:
    """Return a reply without a value that tells a session, for a call that was cut short."""
    return None if trace is None else add_report(Reply(value=""), trace)


def add_report(
    reply: Reply,
    trace: Trace | None,
    *,
    usage: Usage | None = None,
    cost_usd: float | None = None,
    setup: Setup | None = None,
) -> Reply:
    """Return a reply with what its service reports; a trace counts where nothing else is told.

    Args:
        reply: The reply.
        trace: The session.
        usage: The tokens, as they are reported beside the trace.
        cost_usd: The cost, likewise.
        setup: The preparation.
    """
    if trace is not None:
        # What the service says of the whole goes before what can be counted in its session.
        usage = usage or trace.known_usage
        cost_usd = trace.cost_usd if cost_usd is None else cost_usd
        reply = replace(reply, details={**reply.details, **trace.details})
    return replace(
        reply,
        usage=usage or reply.usage,
        cost_usd=reply.cost_usd if cost_usd is None else cost_usd,
        setup=setup or reply.setup,
    )


def _read_cost(value: object) -> float | None:
    """Read an amount of dollars: a number, or text such as `$0.02`."""
    if isinstance(value, str):
        try:
            value = float(value.strip().removeprefix("$"))
        except ValueError:
            return None
    return read_amount(value)


def _read_setup(value: object) -> Setup | None:
    """Read the preparation of a trial: seconds, or an object with seconds, tokens and cost."""
    seconds = read_amount(value)
    if seconds is not None:
        return Setup(seconds=seconds)
    fields = Fields(value)
    if not fields:
        return None
    return Setup(
        seconds=fields.amount("seconds", "duration_s", "setup_s") or 0.0,
        usage=read_tokens(fields.get("usage", "tokens")),
        cost_usd=_read_cost(fields.get("cost_usd", "cost")),
    )


def _read_error(value: object) -> ReportedFailure | None:
    """Read the error of a session: a text, or an object with a class, a status or a message."""
    if value in _NO_ERROR:
        return None
    fields = Fields(value if isinstance(value, Mapping) else {"message": value})
    message = fields.get("message", "detail", "error")
    error_class = _classify(fields, message)
    told = message if isinstance(message, str) else fields.text("type", "class", "code")
    shown = f"the service reports an error: {told or 'it does not say which'}"
    return ReportedFailure(shown, error_class)


def _classify(fields: Fields, message: object) -> ErrorClass:
    for name in (
        fields.get("class", "error_class"),
        fields.get("type"),
        fields.get("code"),
        message,
    ):
        plain = str(name).casefold().replace("_", "-")
        if isinstance(name, str) and plain in _CLASSES:
            return _CLASSES[plain]
    for status in (fields.get("status", "status_code"), fields.get("code")):
        # Other numbers are codes of the service itself.
        if isinstance(status, int) and 300 <= status < 600:
            return classify_status(status)
    return ErrorClass.NONE
