"""The loop that makes an agent of a model: it speaks, its tools are called, it reads what they say.

Bounded in turns, calls, time and text, so that a trial comes to an end whatever the model does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from trialwise.engine.ports import TrialContext
from trialwise.model.reply import Reply, Setup, Usage, sum_usages
from trialwise.services._mcp import Returned, Toolbox
from trialwise.services.agent import AgentService
from trialwise.services.model_apis import input_text
from trialwise.services.service_factors import MalformedReply
from trialwise.traces.trace_building import Building


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
        self._building = Building()
        self._calls = 0
        self._usages: list[Usage | None] = []
        self._last: Reply | None = None
        # What is waited for.
        self._asked: TrialContext | None = None

    async def run(self, trial: TrialContext, toolbox: Toolbox) -> Reply:
        """Return what the agent answers with tools, and how it came to it."""
        self._began = self._clock()
        tools = self._model.offer_tools(toolbox.definitions)
        messages = self._model.open_conversation(trial.input)
        for message in messages:
            said = input_text(message.get("content") or "")
            self._building.say(str(message["role"]), said, at=self._began)
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
            returned = await self._work(calls, toolbox, is_last=is_last)
            if returned is None:
                ended = "max-turns" if is_last else "max-tool-calls"
                break
            messages = [*messages, _echo(reply.details["message"]), *returned]
        return self._reply(ended)

    def so_far(self) -> Reply:
        """Return what was said and done until the session was cut short."""
        # An answer that was of no use cost what it cost.
        unread = None if self._asked is None else self._asked.partial
        return self._reply("cut-off", () if unread is None else (unread.usage,))

    def _take(self, reply: Reply) -> list[_Call]:
        """Return what the model said, and the calls that it asks for."""
        self._last = reply
        self._usages.append(reply.usage)
        self._building.say("assistant", reply.value)
        message = reply.details["message"]
        for hosted in message.get("hosted_calls") or ():
            self._calls += 1
            self._building.call(hosted["name"], server=hosted.get("server"), args=hosted["args"])
        wanted = zip(message.get("tool_calls") or (), reply.details["tool_calls"], strict=True)
        return [_Call.of(place, raw, call) for place, (raw, call) in enumerate(wanted)]

    async def _work(
        self, calls: list[_Call], toolbox: Toolbox, *, is_last: bool
    ) -> list[Any] | None:
        """Return the messages that answer some calls; None if one of them was not made."""
        answers: list[Any] = []
        for call in calls:
            tool, server = toolbox.whose(call.name)
            began = ended = None
            is_made = not is_last and self._calls < self._model.max_tool_calls
            self._calls += 1
            if is_made:
                began = self._clock()
            # Told before it is made: a session that is cut off in a call shows it without an end.
            self._building.call(tool, key=call.key, server=server, args=call.args, at=began)
            if is_made:
                limit_s = self._model.tool_timeout_s
                returned = await toolbox.call(call.name, call.args, timeout_s=limit_s)
                ended = self._clock()
                answers.append(self._answer(call, returned))
            else:
                # Written down as failed: a check on calls must see that the model wanted it.
                limit = "turns" if is_last else "tool calls"
                returned = Returned(f"not made: out of {limit}", failed=True)
            self._building.result(
                key=call.key,
                result=None if returned.failed else returned.text,
                error=returned.text if returned.failed else None,
                at=ended,
            )
        return answers if len(answers) == len(calls) else None

    def _answer(self, call: _Call, returned: Returned) -> dict[str, Any]:
        """Return the message that tells the model what came of a call."""
        content = _cut_result(returned.text, self._model.result_limit)
        # Chat completions have no field for a failed call; other APIs find the word again.
        if returned.failed and not content.startswith("Error"):
            content = f"Error: {content}"
        return {"role": "tool", "tool_call_id": call.key, "content": content}

    def _reply(self, ended: str, unread: Sequence[Usage | None] = ()) -> Reply:
        now = self._clock()
        began = now if self._began is None else self._began
        usage = sum_usages([*self._usages, *unread])
        trace = self._building.finish(
            usage=usage,
            cost_usd=self._model.find_cost(usage),
            duration_s=_round_time(max(0.0, now - began)),
            ended=ended,
        )
        trace = replace(
            trace,
            # A refusal, or what was said before the session was cut off, is not an answer.
            answer=trace.answer if ended == "answer" else None,
            tool_calls=tuple(
                replace(
                    one,
                    started_s=_round_time(one.started_s),
                    duration_s=_round_time(one.duration_s),
                )
                for one in trace.tool_calls
            ),
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


def _round_time(seconds: float | None) -> float | None:
    """Seconds to the microsecond: a record is for people to read."""
    return None if seconds is None else round(seconds, 6)


def _cut_result(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[{len(text) - limit:,} further characters were left out]"
