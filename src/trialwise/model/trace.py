"""What an agent did in one trial: the turns, the tool calls, what they took and the final answer.

Its JSON form is the trace envelope of the stability report with more keys, so that whoever reads
the one reads the other. A trace comes from elsewhere: what is missing or malformed in an envelope
is read as absent, except that every entry of `tool_calls` is a call, so that none can hide in a
malformed one, and that an envelope without a list of them does not tell its calls. Everything is
bounded: texts and arguments are cut, and turns and calls beyond a limit are counted and left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from trialwise.errors import InvalidArgument
from trialwise.model.fingerprint import fingerprint
from trialwise.model.reply import Reply, Usage
from trialwise.redaction import cut_text
from trialwise.validation import require_amount, require_count, require_given

#: Turns and calls that are kept; no agent that is worth testing takes as many.
MAX_TURNS = MAX_CALLS = 1_000
#: Characters of a turn, and of the final answer.
MAX_TEXT, MAX_ANSWER = 20_000, 100_000
#: Characters of a call's arguments as JSON, of its result and of its error.
MAX_ARGS, MAX_RESULT = 10_000, 4_000
#: Characters of the digest at the end of arguments that were cut.
_DIGEST = 16
#: Characters of a name, a role, or why it ended.
MAX_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What somebody said in the conversation; what tools returned stands in their calls.

    >>> Turn(role="assistant", content="Let me look.").content
    'Let me look.'
    """

    role: str
    content: str = ""

    def __post_init__(self) -> None:
        _cut_fields(self, role=MAX_NAME, content=MAX_TEXT)

    def to_dict(self) -> dict[str, Any]:
        """As the envelope spells it."""
        return {"role": self.role, "content": self.content}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of a tool.

    With a result it came to an end, with an error it failed; with neither, how it ended is unknown.

    >>> ToolCall(name="search", args={"q": "a"}, error="no index").failed
    True
    >>> ToolCall(name="search").failed is None
    True
    """

    name: str | None
    """None where the trace does not say."""
    server: str | None = None
    """The MCP server that offers the tool."""
    args: Any = field(default=None, hash=False)
    """An object; text where what was sent is not JSON or was too long to be kept."""
    result: str | None = None
    error: str | None = None
    """What the tool, or whoever called it, said went wrong."""
    started_s: float | None = None
    """Since the trace began."""
    duration_s: float | None = None
    turn: int | None = None
    """Which of the assistant's turns asked for it, from 1."""

    def __post_init__(self) -> None:
        if self.turn is not None:
            object.__setattr__(self, "turn", require_count("turn", self.turn, minimum=1))
        _cut_fields(self, name=MAX_NAME, server=MAX_NAME, result=MAX_RESULT, error=MAX_RESULT)
        require_given(self, "started_s duration_s", require_amount)
        object.__setattr__(self, "args", _plain(self.args))

    @property
    def failed(self) -> bool | None:
        """Whether it ended in an error; None where that is unknown."""
        if self.error is not None:
            return True
        return None if self.result is None else False

    def to_dict(self) -> dict[str, Any]:
        """As the envelope spells it; what is unknown is left out, the name excepted."""
        told = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in told.items() if value is not None or name == "name"}

    @classmethod
    def from_dict(cls, call: object) -> ToolCall:
        """Return the call that an entry of an envelope describes, however badly."""
        fields = Fields(call)
        return cls(
            name=fields.text("name"),
            server=fields.text("server"),
            args=fields.get("args", "arguments"),
            result=_state(fields.get("result")),
            error=_state(fields.get("error")),
            started_s=fields.amount("started_s"),
            duration_s=fields.amount("duration_s", "latency_s"),
            turn=fields.count("turn") or None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One whole session of an agent.

    >>> call = {"name": "search", "server": "docs", "args": {"q": "a"}}
    >>> trace = Trace.from_dict({"tool_calls": [call], "conversation": {"tokens": {"total": 3000}}})
    >>> trace.tool_calls[0].server, trace.total_tokens
    ('docs', 3000)
    >>> Trace.from_dict(trace.to_dict()) == trace
    True
    """

    turns: tuple[Turn, ...] = ()
    """In order; none where the trace does not tell them."""
    tool_calls: tuple[ToolCall, ...] = ()
    """In order."""
    usage: Usage | None = None
    total_tokens: int | None = None
    """Both directions together, also where they are not known apart."""
    cost_usd: float | None = None
    duration_s: float | None = None
    answer: str | None = None
    """What it said last; None where it ended without an answer."""
    ended: str | None = None
    """Why it ended, where the trace says so, such as `answer` or `max-turns`."""
    omitted_turns: int = 0
    omitted_calls: int = 0
    """Beyond what is kept."""
    calls_unknown: str | None = None
    """Why there may be calls beside `tool_calls`; None where those are all. No check about calls
    passes on such a trace: it is not measured."""

    def __post_init__(self) -> None:
        put = object.__setattr__
        for name, omitted, most in (
            ("turns", "omitted_turns", MAX_TURNS),
            ("tool_calls", "omitted_calls", MAX_CALLS),
        ):
            given = tuple(getattr(self, name))
            left = max(0, len(given) - most)
            put(self, name, given[:most])
            put(self, omitted, require_count(omitted, getattr(self, omitted)) + left)
        # The sum is told more often than its parts, and budgets need no more.
        if self.total_tokens is not None:
            require_count("total_tokens", self.total_tokens)
        elif self.usage is not None:
            put(self, "total_tokens", self.usage.total_tokens)
        require_given(self, "cost_usd duration_s", require_amount)
        _cut_fields(self, answer=MAX_ANSWER, ended=MAX_NAME, calls_unknown=MAX_NAME)

    @property
    def tells_all_calls(self) -> bool:
        """Whether `tool_calls` are all: none may hide, and none was left out."""
        return self.calls_unknown is None and not self.omitted_calls

    @property
    def assistant_turns(self) -> int:
        """How often the model spoke, among the turns that are kept."""
        return sum(turn.role == "assistant" for turn in self.turns)

    @property
    def known_usage(self) -> Usage | None:
        """Tokens, also where only their sum is known: it then counts as output."""
        if self.usage is not None or self.total_tokens is None:
            return self.usage
        return Usage(output_tokens=self.total_tokens)

    @property
    def details(self) -> dict[str, Any]:
        """What a reply carries: the envelope under `trace`, its calls under `tool_calls` again."""
        envelope = self.to_dict()
        return {"trace": envelope, "tool_calls": envelope["tool_calls"]}

    def to_reply(self) -> Reply:
        """Return the trace as the reply of a service: its value is the answer.

        >>> Trace(answer="555", usage=Usage(output_tokens=3)).to_reply().value
        '555'
        """
        return Reply(
            value=self.answer or "",
            latency_s=self.duration_s or 0.0,
            usage=self.known_usage,
            cost_usd=self.cost_usd,
            details=self.details,
        )

    @classmethod
    def of(cls, reply: Reply) -> Trace | None:
        """Return the trace of a reply, or one made of its tool calls; None without both.

        >>> Trace.of(Reply(value="")) is None
        True
        >>> Trace.of(Reply(value="", details={"tool_calls": [{"name": "search"}]})).assistant_turns
        0
        """
        carried = reply.details.get("trace")
        if isinstance(carried, Trace | Mapping):
            trace = carried if isinstance(carried, Trace) else cls.from_dict(carried)
            if trace.total_tokens is None and reply.usage is not None:
                # Tokens count wherever the service says them.
                trace = replace(trace, usage=reply.usage)
            return trace
        calls = reply.details.get("tool_calls")
        if not isinstance(calls, list | tuple):
            return None
        return cls(
            tool_calls=tuple(map(ToolCall.from_dict, calls[:MAX_CALLS])),
            omitted_calls=max(0, len(calls) - MAX_CALLS),
            usage=reply.usage,
            cost_usd=reply.cost_usd,
            duration_s=reply.latency_s,
            answer=reply.value if isinstance(reply.value, str) and reply.value else None,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the envelope, as plain values; what is unknown is left out."""
        conversation: dict[str, Any] = {"turns": [turn.to_dict() for turn in self.turns]}
        if self.total_tokens is not None:
            conversation["tokens"] = {"total": self.total_tokens}
            if self.usage is not None:
                conversation["tokens"] |= {
                    "input": self.usage.input_tokens,
                    "output": self.usage.output_tokens,
                }
        names = ("answer", "ended", "cost_usd", "duration_s", "calls_unknown")
        told = {name: getattr(self, name) for name in names}
        omitted = {"turns": self.omitted_turns, "calls": self.omitted_calls}
        return {
            "tool_calls": [call.to_dict() for call in self.tool_calls],
            "conversation": conversation,
            **{name: value for name, value in told.items() if value is not None},
            **({"omitted": omitted} if any(omitted.values()) else {}),
        }

    @classmethod
    def from_dict(cls, envelope: Mapping[str, Any]) -> Trace:
        """Return the trace of an envelope, whoever wrote it.

        >>> Trace.from_dict({"tool_calls": [None], "conversation": 5}).tool_calls[0].name is None
        True
        """
        if not isinstance(envelope, Mapping):
            raise InvalidArgument("envelope", envelope, "be a mapping")
        fields = Fields(envelope)
        conversation, omitted = fields.inner("conversation"), fields.inner("omitted")
        tokens = conversation.inner("tokens")
        calls, turns = fields.items("tool_calls"), conversation.objects("turns")
        unknown = fields.text("calls_unknown")
        if unknown is None and not isinstance(envelope.get("tool_calls"), list | tuple):
            unknown = "the trace has no list `tool_calls`"
        return cls(
            turns=tuple(
                Turn(role=one.text("role") or "", content=one.text("content") or "")
                for one in turns[:MAX_TURNS]
            ),
            tool_calls=tuple(map(ToolCall.from_dict, calls[:MAX_CALLS])),
            usage=read_usage(tokens.count("input"), tokens.count("output")),
            total_tokens=tokens.count("total"),
            cost_usd=fields.amount("cost_usd"),
            duration_s=fields.amount("duration_s"),
            answer=fields.text("answer"),
            ended=fields.text("ended"),
            omitted_turns=(omitted.count("turns") or 0) + max(0, len(turns) - MAX_TURNS),
            omitted_calls=(omitted.count("calls") or 0) + max(0, len(calls) - MAX_CALLS),
            calls_unknown=unknown,
        )


# --- What a value may be, and what is made of one that may not ----------------------------------


def _cut_fields(value: object, **limits: int) -> None:
    for name, limit in limits.items():
        text = getattr(value, name)
        if text is not None and not isinstance(text, str):
            raise InvalidArgument(name, text, "be text")
        if text is not None and len(text) > limit:
            object.__setattr__(value, name, cut_text(text, limit))


def _plain(args: Any) -> Any:
    """Arguments as JSON holds them; text where it cannot, or where they are too long."""
    if args is None:
        return None
    if isinstance(args, str):
        return cut_text(args, MAX_ARGS)
    try:
        text = json.dumps(args, ensure_ascii=False, allow_nan=False)
        if len(text) <= MAX_ARGS:
            return json.loads(text)
        # Cut text is not JSON any more, so that no check takes a part of the arguments for all; the
        # digest of all of them keeps equal calls equal and others apart.
        whole = json.dumps(args, ensure_ascii=False, allow_nan=False, sort_keys=True)
        return cut_text(whole, MAX_ARGS - _DIGEST) + fingerprint(whole)[:_DIGEST]
    except (TypeError, ValueError, RecursionError):
        return cut_text(_show(args), MAX_ARGS)


def _show(value: object) -> str:
    try:
        return repr(value)
    except Exception as error:  # somebody's own __repr__ may raise anything
        return f"<{type(value).__name__}, whose repr raised {type(error).__name__}>"


# --- Reading what somebody else wrote -----------------------------------------------------------


def _state(value: object) -> str | None:
    """Return a result or an error as text; `false` is how some say that there was none."""
    if value is None or value is False:
        return None
    if isinstance(value, Mapping) and isinstance(value.get("message"), str):
        value = value["message"]
    if isinstance(value, str):
        return value
    plain = _plain(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


# Read an object that somebody else wrote field by field: what is not of its kind is absent.

#: How APIs and SDKs name tokens.
_INPUT = (
    *("input_tokens", "prompt_tokens", "inputTokens", "promptTokens"),
    *("promptTokenCount", "prompt_token_count", "input", "prompt"),
)
_OUTPUT = (
    *("output_tokens", "completion_tokens", "outputTokens", "completionTokens"),
    *("candidatesTokenCount", "candidates_token_count", "output", "completion"),
)
_TOTAL = ("total_tokens", "totalTokens", "totalTokenCount", "total_token_count", "total")
#: Input tokens that Anthropic counts beside the others.
_CACHED = ("cache_read_input_tokens", "cache_creation_input_tokens")
#: A larger number is not a count of tokens.
_MOST_TOKENS = 10**15


class Fields:
    """The fields of an object; those of anything else are none.

    Every method takes several names where a field has several, and reads the first that is there.

    >>> fields = Fields({"name": "find", "tokens": {"input": "12"}})
    >>> fields.text("tool", "name"), fields.inner("tokens").count("input"), fields.amount("cost")
    ('find', 12, None)
    """

    __slots__ = ("values",)

    def __init__(self, given: object) -> None:
        self.values: Mapping[str, Any] = given if isinstance(given, Mapping) else {}

    def __contains__(self, name: object) -> bool:
        return name in self.values

    def __bool__(self) -> bool:
        return bool(self.values)

    def get(self, *names: str) -> Any:
        """Return the value under the first of some names that is there; None without one."""
        return next((self.values[name] for name in names if name in self.values), None)

    def text(self, *names: str) -> str | None:
        """Return a text."""
        value = self.get(*names)
        return value if isinstance(value, str) else None

    def count(self, *names: str) -> int | None:
        """Return a count of tokens, also where it is written as text as OTLP does."""
        return read_count(self.get(*names))

    def amount(self, *names: str) -> float | None:
        """Return a finite number of at least 0."""
        return read_amount(self.get(*names))

    def items(self, *names: str) -> list[Any]:
        """Return what a list holds."""
        value = self.get(*names)
        return list(value) if isinstance(value, list | tuple) else []

    def inner(self, *names: str) -> Self:
        """Return the fields of an object within."""
        return type(self)(self.get(*names))

    def objects(self, *names: str) -> list[Self]:
        """Return the objects that a list holds; what else it holds is passed over."""
        return [type(self)(one) for one in self.items(*names) if isinstance(one, Mapping)]


def read_count(value: object) -> int | None:
    """Read a count of tokens, also from text."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        value = int(value)
    if isinstance(value, float) and 0 <= value <= _MOST_TOKENS:
        value = math.ceil(value)  # part of a token was paid for: unknown would look free
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


def read_amount(value: object) -> float | None:
    """Read a finite number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if 0 <= value < math.inf else None
    except OverflowError:
        return None


def read_usage(asked: int | None, answered: int | None) -> Usage | None:
    """Tokens in both directions, where both are known."""
    if asked is None or answered is None:
        return None
    return Usage(input_tokens=asked, output_tokens=answered)


def read_tokens(value: object) -> Usage | None:
    """Read tokens as one of the usual APIs reports them; a number alone is their sum.

    Tokens whose direction is unknown count as output.

    >>> read_tokens({"prompt_tokens": 12, "completion_tokens": 3})
    Usage(input_tokens=12, output_tokens=3)
    >>> read_tokens({"total": 3000}), read_tokens({"input": 5}) is None
    (Usage(input_tokens=0, output_tokens=3000), True)
    """
    fields = Fields(value)
    asked, answered = fields.count(*_INPUT), fields.count(*_OUTPUT)
    total = fields.count(*_TOTAL) if fields else read_count(value)
    if asked is not None:
        asked += sum(fields.count(name) or 0 for name in _CACHED)
    if total is not None and (asked is None or answered is None or total > asked + answered):
        return Usage(
            input_tokens=min(asked or 0, total), output_tokens=max(0, total - (asked or 0))
        )
    return read_usage(asked, answered)
