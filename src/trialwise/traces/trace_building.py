"""A trace put together from events in the order they happened.

One home for the rules that every format needs: a result belongs to the call of its id, a result
that nobody asked for is a call all the same, tokens are known only if every reply of the model
tells them, and the answer is the last thing said if nothing was done after it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from trialwise.model.reply import Usage, sum_usages
from trialwise.model.trace import MAX_CALLS, MAX_TURNS, ToolCall, Trace, Turn


@dataclass(slots=True)
class _Call:
    """A call whose result may still come."""

    name: str | None
    server: str | None
    args: Any
    began: float | None
    turn: int | None
    result: str | None = None
    error: str | None = None
    ended: float | None = None

    def finish(self, origin: float | None) -> ToolCall:
        duration = None
        if self.began is not None and self.ended is not None:
            duration = max(0.0, self.ended - self.began)
        started = None if self.began is None or origin is None else self.began - origin
        return ToolCall(
            name=self.name,
            server=self.server,
            args=self.args,
            result=self.result,
            error=self.error,
            started_s=started,
            duration_s=duration,
            turn=self.turn,
        )


class Building:
    """A trace under construction; points in time are seconds from any one origin."""

    def __init__(self) -> None:
        self._turns: list[Turn] = []
        self._calls: list[_Call] = []
        self._open: dict[str, _Call] = {}
        self._spoken = self._omitted_turns = self._omitted_calls = 0
        self._usages: list[Usage | None] = []
        self._costs: list[float | None] = []
        self._answer: str | None = None
        self._first, self._last = math.inf, -math.inf
        self._unknown: str | None = None

    def doubt(self, why: str) -> None:
        """Something was met that this reader does not know, so that a call may hide in it."""
        if self._unknown is None:
            self._unknown = why

    def say(self, role: str, said: str, *, at: float | None = None) -> None:
        """Somebody spoke."""
        self._see(at)
        if role == "assistant":
            self._spoken += 1
            self._answer = said or None
        if len(self._turns) == MAX_TURNS:
            self._omitted_turns += 1
        else:
            self._turns.append(Turn(role=role, content=said))

    def call(
        self,
        name: str | None,
        *,
        key: str | None = None,
        server: str | None = None,
        args: Any = None,
        at: float | None = None,
    ) -> None:
        """A tool was called; `key` is what its result will name."""
        self._see(at)
        self._answer = None
        if len(self._calls) == MAX_CALLS:
            self._omitted_calls += 1
            return
        made = _Call(name, server, args, at, self._spoken or None)
        self._calls.append(made)
        if key is not None:
            self._open[key] = made

    def result(
        self,
        *,
        key: str | None = None,
        name: str | None = None,
        result: str | None = None,
        error: str | None = None,
        at: float | None = None,
    ) -> None:
        """A tool returned, or failed."""
        self._see(at)
        found = self._open.pop(key, None) if key is not None else None
        if found is None and key is None:
            found = next((one for one in reversed(self._calls) if _awaits(one, name)), None)
        if found is None:
            # Somebody must have made this call, and a call that is not seen could be any.
            self.call(name, at=at)
            if self._omitted_calls:
                return
            found = self._calls[-1]
        found.result, found.error, found.ended = result, error, at

    def spend(self, usage: Usage | None, cost_usd: float | None = None) -> None:
        """What one reply of the model took."""
        self._usages.append(usage)
        self._costs.append(cost_usd)

    def answer(self, said: str) -> None:
        """What was said after the last call of the same turn."""
        self._answer = said or None

    def knows(self, key: str | None) -> bool:
        """Return whether a call of that key awaits its result."""
        return key in self._open

    def finish(
        self,
        *,
        usage: Usage | None = None,
        total_tokens: int | None = None,
        cost_usd: float | None = None,
        duration_s: float | None = None,
        answer: str | None = None,
        ended: str | None = None,
    ) -> Trace:
        """Return the trace; totals of the document win over the sums of its parts."""
        seen = self._first <= self._last
        if duration_s is None and seen and self._first < self._last:
            duration_s = self._last - self._first
        return Trace(
            turns=tuple(self._turns),
            tool_calls=tuple(one.finish(self._first if seen else None) for one in self._calls),
            usage=usage or sum_usages(self._usages),
            total_tokens=total_tokens,
            cost_usd=self._cost() if cost_usd is None else cost_usd,
            duration_s=duration_s,
            answer=answer or self._answer,
            ended=ended,
            omitted_turns=self._omitted_turns,
            omitted_calls=self._omitted_calls,
            calls_unknown=self._unknown,
        )

    def _see(self, at: float | None) -> None:
        if at is not None:
            self._first, self._last = min(self._first, at), max(self._last, at)

    def _cost(self) -> float | None:
        known = [one for one in self._costs if one is not None]
        return math.fsum(known) if known and len(known) == len(self._costs) else None


def _awaits(call: _Call, name: str | None) -> bool:
    return call.result is None and call.error is None and name in (None, call.name)
