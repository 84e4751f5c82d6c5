"""The loop that makes an agent of a model: it speaks, its tools are called, it reads what they say.

Bounded in turns, calls, time and text, so that a trial comes to an end whatever the model does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from trialwise.engine.ports import TrialContext
from trialwise.model.reply import Reply, Setup, Usage, sum_usages
from trialwise.model.trace import ToolCall, Trace, Turn
from trialwise.services._mcp import Returned, Toolbox
from trialwise.services.agent import AgentService
from trialwise.services.model_apis import input_text
from trialwise.services.service_factors import MalformedReply


class Session:
    """One conversation between a model and its tools, from the starting of their servers on.

    Args:
        model: Which is asked.
    """

    def __init__(self, model: AgentService) -> None:
        self._model = model
        self._clock = model.clock
        self._prepared = self._clock()
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
        tools = self._model.offer_tools(toolbox.definitions)
        messages = self._model.open_conversation(trial.input)
        self._hear(messages)
        ended = "max-turns"
        for turn in range(self._model.max_turns):
            self._asked = replace(trial)
            reply = await self._model.ask(self._asked, messages, **tools)
            self._asked = None
            calls = self._take(reply)
            if not calls:
                ended = _ending(reply)
                break
            is_last = turn + 1 == self._model.max_turns
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
        for message in messages:
            said = message.get("content")
            self._turns.append(Turn(role=str(message["role"]), content=input_text(said or "")))

    def _take(self, reply: Reply) -> list[_Call]:
        """Return what the model said, and the calls that it asks for."""
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
            if is_last or len(self._calls) >= self._model.max_tool_calls:
                limit = "turns" if is_last else "tool calls"
                returned = Returned(f"not made: out of {limit}", failed=True)
                self._calls.append(self._describe(call, returned))
                continue
            began = self._clock()
            self._called = call, began
            returned = await self._toolbox.call(
                call.name, call.args, timeout_s=self._model.tool_timeout_s
            )
            self._called = None
            self._calls.append(self._describe(call, returned, began, self._clock()))
            content = _cut_result(returned.text, self._model.result_limit)
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


class _Call(NamedTuple):
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
