"""The loop that makes an agent of a model: it speaks, its tools are called, it reads what they say.

Bounded in turns, calls, time and text, so that a trial comes to an end whatever the model does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from trialwise.engine.ports import ServiceError, TrialContext
from trialwise.model.reply import Reply, Setup, Usage, sum_usages
from trialwise.services.http_endpoint import Answer
from trialwise.services.model_apis import to_json
from trialwise.services.openai_chat import ChatService
from trialwise.services.service_factors import MalformedReply

if TYPE_CHECKING:
    from mcp_types import Tool

    from trialwise.model.trace import ToolCall, Turn

#: What an endpoint takes for the name of a tool.
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_LONGEST_NAME = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How far a session may go."""

    max_turns: int
    max_tool_calls: int
    tool_timeout_s: float
    result_limit: int


class Model(ChatService):
    """The endpoint, asked turn by turn with the conversation as it stands."""

    # Nobody has to make these calls any more, and the session counts them.
    _lists_hosted_calls = False

    def with_tools(self, tools: list[dict[str, Any]]) -> Model:
        """Return the same endpoint, over the same connections, with tools to offer."""
        other = copy(self)
        if tools:
            other._fields = {**self._fields, "tools": self._api.make_tools(tools)}
        return other

    @property
    def endpoint(self) -> str:
        """Where it is and which model it is, for people."""
        return f"{self._base_url!r}, {self._model!r}"

    def opening(self, given: Any) -> list[Any]:
        """Return the messages that a conversation begins with."""
        return super()._messages(given)

    def _messages(self, given: Any) -> list[Any]:
        return list(given)

    def _choices(self, document: Mapping[str, Any]) -> Sequence[Any]:
        # The session goes on with the first, and only its calls are made.
        return super()._choices(document)[:1]

    def _reply(self, answer: Answer, document: Mapping[str, Any]) -> Reply:
        reply = super()._reply(answer, document)
        # As it was said: endpoints want back what only they understand.
        message = document["choices"][0]["message"]
        return replace(reply, details={**reply.details, "message": message})


class Session:
    """One conversation between a model and its tools, from the starting of their servers on.

    Args:
        model: Which is asked.
        bounds: How far it may go.
        clock: Seconds from any origin.
    """

    def __init__(self, model: Model, *, bounds: Bounds, clock: Callable[[], float]) -> None:
        self._model = model
        self._bounds = bounds
        self._clock = clock
        self._prepared = clock()
        self._began: float | None = None
        self._toolbox = Toolbox(())
        self._turns: list[Turn] = []
        self._calls: list[ToolCall] = []
        self._usages: list[Usage | None] = []
        self._last: Reply | None = None
        # What is waited for.
        self._asked: TrialContext | None = None
        self._called: tuple[_Call, float] | None = None

    async def run(self, trial: TrialContext, toolbox: Toolbox) -> Reply:
        """Return what the agent answers with tools, and how it came to it."""
        self._toolbox = toolbox
        self._began = self._clock()
        model = self._model.with_tools(toolbox.definitions)
        messages = model.opening(trial.input)
        self._hear(messages)
        ended = "max-turns"
        for turn in range(self._bounds.max_turns):
            self._asked = replace(trial, input=messages)
            reply = await model.call(self._asked)
            self._asked = None
            calls = self._take(reply)
            if not calls:
                ended = _ending(reply)
                break
            is_last = turn + 1 == self._bounds.max_turns
            returned = await self._work(calls, is_last=is_last)
            if returned is None:
                ended = "max-turns" if is_last else "max-tool-calls"
                break
            messages = [*messages, _echo(reply.details["message"]), *returned]
        return self._reply(ended, self._calls, self._usages)

    def so_far(self) -> Reply:
        """Return what was said and done until the session was cut short."""
        calls, usages = list(self._calls), list(self._usages)
        if self._called is not None:
            call, began = self._called
            calls.append(self._describe(call, None, began))
        # An answer that was of no use cost what it cost.
        unread = None if self._asked is None else self._asked.partial
        if unread is not None:
            usages.append(unread.usage)
        return self._reply("cut-off", calls, usages)

    def _hear(self, messages: list[Any]) -> None:
        """The turns before the model's first."""
        from trialwise.model.trace import Turn
        from trialwise.services.model_apis import input_text

        for message in messages:
            said = message.get("content")
            self._turns.append(Turn(role=str(message["role"]), content=input_text(said or "")))

    def _take(self, reply: Reply) -> list[_Call]:
        """Return what the model said, and the calls that it asks for."""
        from trialwise.model.trace import ToolCall, Turn

        self._last = reply
        self._usages.append(reply.usage)
        self._turns.append(Turn(role="assistant", content=reply.value))
        for hosted in reply.details["message"].get("hosted_calls") or ():
            self._calls.append(replace(ToolCall.from_dict(hosted), turn=len(self._usages)))
        given = reply.details["message"].get("tool_calls") or ()
        wanted = zip(given, reply.details["tool_calls"], strict=True)
        return [_Call.of(place, raw, call) for place, (raw, call) in enumerate(wanted)]

    async def _work(self, calls: list[_Call], *, is_last: bool) -> list[Any] | None:
        """Return the messages that answer some calls; None if one of them was not made."""
        answers: list[Any] = []
        for call in calls:
            # Written down as failed: a check on calls must see that the model wanted it.
            if is_last or len(self._calls) >= self._bounds.max_tool_calls:
                limit = "turns" if is_last else "tool calls"
                returned = Returned(f"not made: out of {limit}", failed=True)
                self._calls.append(self._describe(call, returned))
                continue
            began = self._clock()
            self._called = call, began
            returned = await self._toolbox.call(
                call.name, call.args, timeout_s=self._bounds.tool_timeout_s
            )
            self._called = None
            self._calls.append(self._describe(call, returned, began, self._clock()))
            content = _cut_result(returned.text, self._bounds.result_limit)
            # Chat completions have no field for a failed call; other APIs find the word again.
            if returned.failed and not content.startswith("Error"):
                content = f"Error: {content}"
            answers.append({"role": "tool", "tool_call_id": call.key, "content": content})
        return answers if len(answers) == len(calls) else None

    def _describe(
        self,
        call: _Call,
        returned: Returned | None,
        began: float | None = None,
        ended: float | None = None,
    ) -> ToolCall:
        """Describe a call as the trace holds it: one without a time was not made."""
        from trialwise.model.trace import ToolCall

        tool, server = self._toolbox.whose(call.name)
        origin = began if self._began is None else self._began
        return ToolCall(
            name=tool,
            server=server,
            args=call.args,
            result=None if returned is None or returned.failed else returned.text,
            error=returned.text if returned is not None and returned.failed else None,
            started_s=None if began is None or origin is None else _elapsed(origin, began),
            duration_s=None if began is None or ended is None else _elapsed(began, ended),
            turn=len(self._usages),
        )

    def _reply(self, ended: str, calls: list[ToolCall], usages: list[Usage | None]) -> Reply:
        from trialwise.model.trace import Trace

        now = self._clock()
        began = now if self._began is None else self._began
        usage = sum_usages(usages)
        answer = self._last.value if self._last is not None and ended == "answer" else None
        trace = Trace(
            turns=tuple(self._turns),
            tool_calls=tuple(calls),
            usage=usage,
            cost_usd=self._model.find_cost(usage),
            duration_s=_elapsed(began, now),
            answer=answer or None,
            ended=ended,
        )
        last = {} if self._last is None else self._last.details
        kept = {name: last[name] for name in ("finish_reason", "model", "refusal") if name in last}
        return Reply(
            value=trace.answer or "",
            latency_s=max(0.0, now - began),
            usage=usage,
            cost_usd=trace.cost_usd,
            details={**kept, **trace.details},
            setup=Setup(seconds=max(0.0, began - self._prepared)),
        )


@dataclass(frozen=True, slots=True)
class _Call:
    """A call as the model asks for it."""

    name: str
    args: Any
    key: str

    @classmethod
    def of(cls, place: int, raw: Mapping[str, Any], call: Mapping[str, Any]) -> _Call:
        """One of the calls of a message; some endpoints leave its id out."""
        name, args = call["name"], call["args"]
        if not isinstance(name, str) or not name:
            raise MalformedReply(f"the model asked for a tool without a name: {name!r}")
        key = raw.get("id")
        return cls(name, {} if args is None else args, key if isinstance(key, str) else str(place))


def _echo(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message of the model's as it is sent back: what it left empty is left out."""
    told = {name: value for name, value in message.items() if value not in (None, [], "")}
    calls = [
        call if isinstance(call.get("id"), str) else {**call, "id": str(place)}
        for place, call in enumerate(message["tool_calls"])
    ]
    return {"content": None, **told, "role": "assistant", "tool_calls": calls}


def _ending(reply: Reply) -> str:
    """Return how a session ends whose model calls nothing any more."""
    if reply.details.get("refusal"):
        return "refusal"
    return "answer" if reply.value.strip() else "no-answer"


def _elapsed(began: float, ended: float) -> float:
    """Seconds, to the microsecond: a record is for people to read."""
    return max(0.0, round(ended - began, 6))


def _cut_result(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[{len(text) - limit:,} further characters were left out]"


class Connection(Protocol):
    """A server that answers."""

    @property
    def name(self) -> str:
        """What traces call it."""

    @property
    def tools(self) -> Sequence[Tool]:
        """Those that are offered."""

    async def call(self, tool: str, args: Any, timeout_s: float) -> Returned:
        """Return what a tool returns."""
        ...


class Returned(NamedTuple):
    """What came of one call of a tool."""

    text: str
    failed: bool
    """Whether the text tells of a failure."""


class _Offer(NamedTuple):
    """A tool, and the name under which the model knows it."""

    name: str
    tool: Tool
    connection: Connection


class Toolbox:
    """The tools of all servers."""

    def __init__(self, connections: Sequence[Connection]) -> None:
        self._offers = {offer.name: offer for offer in _offers(connections)}

    @property
    def definitions(self) -> list[dict[str, Any]]:
        """The tools as an endpoint takes them."""
        return [_definition(offer) for offer in self._offers.values()]

    def whose(self, name: str) -> tuple[str, str | None]:
        """Return a tool as its server calls it, and the server; None for one that nobody offers.

        Args:
            name: As the model knows it.
        """
        offer = self._offers.get(name)
        return (name, None) if offer is None else (offer.tool.name, offer.connection.name)

    async def call(self, name: str, args: Any, *, timeout_s: float) -> Returned:
        """Return what a tool returns, or why it does not.

        Args:
            name: As the model knows it.
            args: As the model gave them.
            timeout_s: How long it may take.

        Raises:
            ServiceError: Its server is gone.
        """
        offer = self._offers.get(name)
        if offer is None:
            known = f"are: {', '.join(self._offers)}" if self._offers else "is none at all"
            return Returned(f"there is no tool {name!r}; there {known}", failed=True)
        if problem := _unusable(args):
            return Returned(problem, failed=True)
        return await offer.connection.call(offer.tool.name, args, timeout_s)


def _offers(connections: Sequence[Connection]) -> Iterator[_Offer]:
    """Yield every tool under a name that an endpoint takes and that no other has."""
    # A tool that a server lists twice is one tool: a call names nothing else.
    found = {(one.name, tool.name): (one, tool) for one in connections for tool in one.tools}
    names = Counter(name for _, name in found)
    taken: set[str] = set()
    for connection, tool in found.values():
        name = tool.name
        if names[name] > 1 or not _NAME.fullmatch(name):
            whole = f"{connection.name}__{name}"
            name = re.sub(r"[^a-zA-Z0-9_-]", "_", whole)[:_LONGEST_NAME]
        # There are as many numbers as tools, so that one is free.
        for number in range(2, len(found) + 2):
            if name not in taken:
                break
            end = f"_{number}"
            name = name[: _LONGEST_NAME - len(end)] + end
        taken.add(name)
        yield _Offer(name, tool, connection)


def _definition(offer: _Offer) -> dict[str, Any]:
    told = {"description": offer.tool.description} if offer.tool.description else {}
    function = {"name": offer.name, **told, "parameters": offer.tool.input_schema}
    return {"type": "function", "function": function}


def _unusable(args: Any) -> str:
    """Return why arguments cannot be passed on, or nothing."""
    if not isinstance(args, dict):
        return "the arguments are no JSON object"
    try:
        to_json(args).encode()
    except (UnicodeError, ServiceError):
        return "the arguments cannot be written as JSON in UTF-8"
    return ""
