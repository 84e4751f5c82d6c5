"""What a program or an endpoint reports of itself in its reply: its session, tokens, cost, setup
and error, each at a place that the suite names.

What is not there is unknown, never zero or nothing: a trace that cannot be read leaves the calls of
the session unknown, so that no check about calls passes on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from trialwise.declarations.scalars import Text
from trialwise.declarations.signatures import Arg
from trialwise.engine.error_classes import classify_status
from trialwise.engine.ports import TrialContext
from trialwise.model import ErrorClass, Reply, Setup, Trace, Usage
from trialwise.model.trace import Fields, read_amount, read_tokens
from trialwise.services.model_apis import check_pointer, find, parse_json
from trialwise.services.service_factors import MalformedReply, ReportedFailure
from trialwise.traces.trace_building import read_document

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


@dataclass(kw_only=True, eq=False, repr=False)
class ReportingService:
    """A service that may report what it did, each thing at a place in its reply.

    Args:
        extract: The place of the reply itself.
        trace: That of the session.
        usage: That of the tokens.
        cost: That of the cost in US dollars.
        setup: That of the preparation.
        error: That of an error.
    """

    extract: Pointer | None = None
    trace: Pointer | None = None
    usage: Pointer | None = None
    cost: Pointer | None = None
    setup: Pointer | None = None
    error: Pointer | None = None

    def __post_init__(self) -> None:
        self.steps = {
            name: check_pointer(name, place)
            for name in ("extract", "trace", "usage", "cost", "setup", "error")
            if (place := getattr(self, name)) is not None
        }

    @property
    def reports(self) -> bool:
        """Whether it reports anything in its reply."""
        return bool(self.steps)

    @property
    def tells_cost(self) -> bool:
        """Whether replies may have a cost, so that a limit on money can be kept."""
        return not self.steps.keys().isdisjoint(("cost", "trace"))

    def read_report(
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
        document, why = None, ""
        try:
            document = parse_json(said)
        except ValueError as error:
            why = str(error)
        # The whole reply may be lines of JSON, which are a trace all the same.
        is_lines = bool(why) and self.steps.get("trace") == ()
        trace = self._trace(said if is_lines else document, "" if is_lines else why) or trace
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
        return replace(reply, value=self._value(document, why, reply, trace))

    def _value(self, document: Any, why: str, reply: Reply, trace: Trace | None) -> Any:
        if "extract" in self.steps:
            try:
                if why:
                    raise LookupError(why)
                return find(document, self.steps["extract"])
            except LookupError as error:
                raise MalformedReply(f"the response holds no reply: {error}") from None
        if self.steps.get("trace") == () and trace is not None and (trace.turns or trace.answer):
            return trace.answer or ""
        return reply.value

    def _trace(self, document: Any, why: str) -> Trace | None:
        if "trace" not in self.steps:
            return None
        found = self._find(document, "trace")
        if found is None:
            return Trace(calls_unknown=why or f"the reply has nothing at {self.trace or '$'}")
        return read_document(found).trace

    def _find(self, document: Any, name: str) -> Any:
        """Return what stands at a place; None where nothing does."""
        try:
            return find(document, self.steps[name])
        except LookupError:
            return None


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
    named = fields.get("class", "error_class"), fields.get("type"), fields.get("code")
    for name in (*named, message):
        plain = str(name).casefold().replace("_", "-")
        if isinstance(name, str) and plain in _CLASSES:
            return _CLASSES[plain]
    for status in (fields.get("status", "status_code"), fields.get("code")):
        # Other numbers are codes of the service itself.
        if isinstance(status, int) and 300 <= status < 600:
            return classify_status(status)
    return ErrorClass.NONE
