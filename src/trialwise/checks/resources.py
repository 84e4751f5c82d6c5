"""Postconditions on what one reply took: tokens, money and time.

A reply whose usage or cost is not known fails with reason `no-value`: unknown is not free.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from trialwise.checks import check_base
from trialwise.checks.check_base import Check, Unreadable, failed, label, preview
from trialwise.checks.reply_reading import Call, calls_of, require_known, trace_of
from trialwise.declarations.signatures import Dollars, Natural, Seconds
from trialwise.documents.numbers import as_count
from trialwise.errors import InvalidArgument
from trialwise.model import CheckResult, FailReason, Reply
from trialwise.model.trace import MAX_TURNS
from trialwise.validation import require_integer

__all__ = ["ExitCode", "MaxCost", "MaxLatency", "MaxTokens"]
__all__ += ["exit_code", "max_cost", "max_latency", "max_tokens"]
__all__ += ["FinalAnswer", "MaxRepeatedFailures", "MaxTurns"]
__all__ += ["final_answer", "max_repeated_failures", "max_turns"]


@dataclass(frozen=True, slots=True)
class MaxTokens(Check, spelling="max_tokens"):
    """The reply took at most this many tokens, input and output together.

    Args:
        tokens: The most tokens that are allowed.

    >>> max_tokens(100).check(Reply(value="")).reason
    <FailReason.NO_VALUE: 'no-value'>
    """

    tokens: Natural

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"at most {self.tokens} tokens"

    def _examine(self, reply: Reply) -> CheckResult:
        usage = require_known(reply.usage, "the reply's tokens are not known")
        if usage.total_tokens <= self.tokens:
            return CheckResult.ok()
        both = f"{usage.input_tokens} in, {usage.output_tokens} out"
        return failed(f"{usage.total_tokens} tokens, expected at most {self.tokens}", both)


max_tokens = MaxTokens


@dataclass(frozen=True, slots=True)
class MaxCost(Check, spelling="max_cost"):
    """The reply cost at most so much, in US dollars.

    Args:
        usd: The most money that is allowed.

    >>> max_cost(0.01).check(Reply(value="", cost_usd=0.02)).evidence
    '$0.02'
    """

    usd: Dollars

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"costs at most ${self.usd:g}"

    def _examine(self, reply: Reply) -> CheckResult:
        cost = require_known(reply.cost_usd, "the reply's cost is not known")
        if cost <= self.usd:
            return CheckResult.ok()
        return failed(f"expected at most ${self.usd:g}", f"${cost:g}")


max_cost = MaxCost


@dataclass(frozen=True, slots=True)
class MaxLatency(Check, spelling="max_latency"):
    """The reply took at most so long.

    Args:
        seconds: The longest time that is allowed.

    >>> max_latency(2).check(Reply(value="", latency_s=2.5)).evidence
    '2.5 s'
    """

    seconds: Seconds

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"takes at most {self.seconds:g} s"

    def _examine(self, reply: Reply) -> CheckResult:
        if reply.latency_s <= self.seconds:
            return CheckResult.ok()
        return failed(f"expected at most {self.seconds:g} s", f"{reply.latency_s:g} s")


max_latency = MaxLatency


@dataclass(frozen=True, slots=True)
class ExitCode(Check, spelling="exit_code"):
    """The subprocess ended with this exit code, or with one of several.

    A reply without an exit code fails with reason `no-value`.

    Args:
        code: The code, or several.

    >>> exit_code(0).check(Reply(value="", exit_code=3)).explanation
    'exit code 3, expected 0'
    """

    code: int | Sequence[int] = 0

    def __post_init__(self) -> None:
        codes = tuple(self.code) if isinstance(self.code, (list, tuple)) else (self.code,)
        if not codes:
            raise InvalidArgument("code", [], "hold at least one exit code")
        self._keep(code=tuple(require_integer("code", code) for code in codes))

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"exit code {self._expected}"

    @property
    def _expected(self) -> str:
        return " or ".join(map(str, cast("tuple[int, ...]", self.code)))

    def _examine(self, reply: Reply) -> CheckResult:
        code = require_known(reply.exit_code, "the reply has no exit code")
        if code in cast("tuple[int, ...]", self.code):
            return CheckResult.ok()
        return failed(f"exit code {code}, expected {self._expected}", _last_error(reply))


exit_code = ExitCode


def _last_error(reply: Reply) -> str:
    """Return the last line of standard error, where one was kept."""
    stderr: Any = reply.details.get("stderr")
    # The end of it: a traceback ends with the error, and may be megabytes long.
    lines = stderr[-2000:].split("\n") if isinstance(stderr, str) else []
    return next((preview(line.strip()) for line in reversed(lines) if line.strip()), "")


# Postconditions on a whole session of an agent: how it ended, and how it got there.
#
# They read the trace that a reply carries in its details; an agent service puts one there, and
# `Trace.details` does for a function. A reply without one fails with reason `no-value`. Tokens,
# money and time of a session are those of its reply: see `max_tokens`, `max_cost` and
# `max_latency`.


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalAnswer(Check, spelling="final_answer"):
    """The agent ended with an answer, and not because a limit stopped it.

    Args:
        equals: The whole answer, white space around it left out.
        contains: Texts that all occur in it.
        matches: A regular expression that is found in it.
        ignore_case: Compare case-folded text.

    >>> from trialwise.model.trace import Trace
    >>> stopped = Trace(ended="max-turns").to_reply()
    >>> final_answer().check(stopped).explanation
    "the agent ended without an answer ('max-turns')"
    """

    equals: str | None = None
    contains: str | Sequence[str] = ()
    matches: str | None = None
    ignore_case: bool = False

    def __post_init__(self) -> None:
        Check.__post_init__(self)
        if self.equals is not None:
            check_base.check_texts("equals", (self.equals,))
        list(self._build_checks())  # each refuses what it cannot use

    @property
    def name(self) -> str:
        """The name in reports."""
        asked = " and ".join(one.name for one in self._build_checks())
        return f"final answer {asked}" if asked else "comes to an answer"

    def to_dict(self) -> dict[str, Any]:
        """Return the check as a suite file spells it."""
        given = {
            "equals": self.equals,
            "contains": list(self.contains) or None,
            "matches": self.matches,
            "ignore_case": self.ignore_case or None,
        }
        return {self.spelling: {name: one for name, one in given.items() if one is not None}}

    def _build_checks(self) -> Iterator[Check]:
        """Yield what the answer is held against."""
        if self.equals is not None:
            from trialwise.checks.whole_reply import equals

            yield equals(self.equals, ignore_case=self.ignore_case, trim=True)
        if self.contains:
            from trialwise.checks.texts import contains

            yield contains(self.contains, ignore_case=self.ignore_case)
        if self.matches is not None:
            from trialwise.checks.texts import matches

            yield matches(self.matches, ignore_case=self.ignore_case)

    def _examine(self, reply: Reply) -> CheckResult:
        trace = trace_of(reply)
        if trace.answer is None or not trace.answer.strip():
            why = f" ({label(trace.ended)})" if trace.ended else ""
            last = next((turn for turn in reversed(trace.turns) if turn.content), None)
            said = f"{last.role}: {preview(last.content)}" if last else ""
            return failed(f"the agent ended without an answer{why}", said)
        for check in self._build_checks():
            result = check.check(Reply(value=trace.answer))
            if not result.passed:
                explanation = f"the final answer: {result.explanation}"
                reason = result.reason or FailReason.CONDITION
                return failed(explanation, result.evidence, reason=reason)
        return CheckResult.ok()


final_answer = FinalAnswer


@dataclass(frozen=True, slots=True)
class MaxTurns(Check, spelling="max_turns"):
    """The model spoke at most so often; a turn may call several tools.

    Args:
        turns: The most turns that are allowed.

    >>> from trialwise.model.trace import Trace, Turn
    >>> trace = Trace(turns=(Turn(role="assistant", content="Hm."),) * 3)
    >>> max_turns(2).check(trace.to_reply()).explanation
    '3 turns of the model, expected at most 2'
    """

    turns: Natural

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"at most {self.turns} turns"

    def _examine(self, reply: Reply) -> CheckResult:
        trace = trace_of(reply)
        count = trace.assistant_turns
        unknown = trace.calls_unknown
        # Of the turns left out nobody knows whose they were.
        if unknown is None and count + trace.omitted_turns > self.turns >= count:
            unknown = (
                f"it keeps {MAX_TURNS:,} turns, and {trace.omitted_turns:,} more were left out"
            )
        if unknown is not None and count <= self.turns:
            told = f"the trace does not tell its turns: {unknown}"
            raise Unreadable(told, reason=FailReason.UNKNOWN)
        if not trace.turns:
            raise Unreadable("the trace does not tell its turns", reason=FailReason.NO_VALUE)
        if count <= self.turns:
            return CheckResult.ok()
        said = [turn.content for turn in trace.turns if turn.role == "assistant" and turn.content]
        last = f"last: {preview(said[-1])}" if said else ""
        return failed(f"{count} turns of the model, expected at most {self.turns}", last)


max_turns = MaxTurns


@dataclass(frozen=True, slots=True)
class MaxRepeatedFailures(Check, spelling="max_repeated_failures"):
    """A call that fails is repeated, with the same arguments and failing again, at most so often.

    Calls are the same by tool, server and arguments, the order of keys left aside. One that is
    repeated and then succeeds is not held against the agent; one of which the trace does not tell
    how it ended fails with reason `no-value` where it could matter.

    Args:
        repeats: The most repetitions of the same call; 0 for none.

    >>> call = {"name": "book", "args": {"table": 4}, "error": "taken"}
    >>> reply = Reply(value="", details={"tool_calls": [call, call]})
    >>> max_repeated_failures(0).check(reply).explanation
    "'book' failed 2 times with the same arguments"
    """

    repeats: Natural

    @property
    def name(self) -> str:
        """The name in reports."""
        if not self.repeats:
            return "repeats no failing call"
        return f"repeats a failing call at most {as_count(self.repeats, 'time')}"

    def _examine(self, reply: Reply) -> CheckResult:
        calls = calls_of(reply, seen=True)
        groups: dict[tuple[str, str | None, str], list[Call]] = {}
        for call in calls:
            # Calls that succeeded are no failures, however often they are repeated.
            if call.failed is not False:
                same = call.name, call.server, _write_arguments(call)
                groups.setdefault(same, []).append(call)
        for alike in groups.values():
            if len(alike) <= self.repeats + 1:
                continue
            # Only failures count against the limit; where too many calls have an unknown end,
            # nobody can tell, and nothing is claimed.
            failures = [call for call in alike if call.failed]
            if len(failures) > self.repeats + 1:
                call = failures[-1]
                times = f"failed {len(failures)} times with the same arguments"
                given = call.given if isinstance(call.given, str) else check_base.shown(call.given)
                evidence = f"{preview(given)}: {call.error}"
                return failed(f"{label(call.name)} {times}", evidence)
            unknown = f"the trace does not tell how {label(alike[0].name)} ended"
            raise Unreadable(unknown, check_base.shown(alike[0].given), reason=FailReason.NO_VALUE)
        calls_of(reply)  # a trace that may hold more calls than it shows is not evidence
        return CheckResult.ok()


max_repeated_failures = MaxRepeatedFailures


def _write_arguments(call: Call) -> str:
    """One text for equal arguments; what cannot be read is compared as it was sent."""
    import json

    try:
        # A model may write the same arguments in another order from turn to turn.
        return json.dumps(_normal(call.arguments()), sort_keys=True)
    except Unreadable:
        return f"unreadable: {check_base.shown(call.given, 10_000)}"


def _normal(value: Any) -> Any:
    """JSON in which 1.0 is written as 1, as they are equal."""
    if isinstance(value, dict):
        return {key: _normal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_normal(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
