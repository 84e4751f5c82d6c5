"""The `trial` fixture: what one trial is given, and what it says of itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from trialwise.errors import InvalidArgument, TrialwiseError
from trialwise.model.reply import Reply, Usage
from trialwise.model.trial import CheckResult, ErrorClass, FailReason, Outcome
from trialwise.plugin.marker import BODY
from trialwise.plugin.reasons import Ending
from trialwise.validation import require_count, require_real

if TYPE_CHECKING:
    from trialwise.model.trace import Trace

# No frame of this module belongs into the traceback of a body or a fixture.
__tracebackhide__ = True

_OK = CheckResult.ok()
_UNCHECKED = CheckResult.fail("not checked in this trial", reason=FailReason.NO_VALUE)

FailedCheck = Callable[[str, CheckResult, FrameType], str]
"""Told of a check that does not hold while its frame is there; says where that is."""


class UnknownCriterion(TrialwiseError):
    """A body checks a criterion that its marker does not know: no rate could be counted for it."""


class TrialHandle:
    """One trial of a test, as its body sees it.

    Args:
        index: Its place in the order of inputs, from 0.
        input: What it is tried on; None where the marker has no inputs.
        expected: What a right reply to it says or is; None where the input does not tell.
        seed: Its own, the same whenever the run is made with the same seed.
        criteria: The names of the marker's criteria.
    """

    def __init__(
        self,
        *,
        index: int,
        input: Any,  # noqa: A002 - what the engine calls it, too
        expected: Any = None,
        seed: int,
        criteria: Sequence[str],
    ) -> None:
        self.index = index
        self.input = input
        self.expected = expected
        self.seed = seed
        self.latency_s: float | None = None
        self.usage: Usage | None = None
        self.cost_usd: float | None = None
        self.reply: str | None = None
        self.trace: Trace | None = None
        self._criteria = criteria
        self.on_failed: FailedCheck | None = None
        """Told of every check that does not hold."""
        self._checked: dict[str, tuple[CheckResult, str | None]] = {}

    def __repr__(self) -> str:
        given = "" if self.input is None else f", input {self.input!r}"
        return f"<trial {self.index}{given}, seed {self.seed}>"

    def check(self, name: str, condition: object, explanation: str = "") -> bool:
        """Return whether a condition holds, counted for the criterion of that name.

        Nothing is raised: the body goes on, and its other criteria with it. Checked twice, both
        must hold.

        Args:
            name: One of the marker's criteria.
            condition: Taken as true or false.
            explanation: What a reader should know where it does not hold.

        Raises:
            UnknownCriterion: The marker has no such criterion; the test ends here.
        """
        self._check_name(name)
        if condition:
            self._checked.setdefault(name, (_OK, None))
            return True
        if self._checked.get(name, (_OK, None))[0].passed:
            result = CheckResult.fail(explanation or f"{name} does not hold")
            frame = sys._getframe(1)
            where = None if self.on_failed is None else self.on_failed(name, result, frame)
            self._checked[name] = (result, where)
        return False

    def record(
        self,
        *,
        tokens: int | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cost: float | None = None,
        latency_s: float | None = None,
        reply: str | None = None,
        trace: Any = None,
    ) -> None:
        """What the trial took; several calls add up.

        Args:
            tokens: In and out together, where they are not known apart.
            input_tokens: Sent.
            output_tokens: Received.
            cost: In US dollars.
            latency_s: The latency of the service, instead of the time that the body took.
            reply: What was answered, kept for the reports.
            trace: The session of an agent: a `Trace`, what `read_trace` reads, or the result of an
                agent framework. Its tokens, cost and answer count where the call gives none.
        """
        if trace is not None:
            from trialwise.traces.trace_building import to_trace

            self.trace = session = to_trace(trace)
            spent = session.known_usage
            if spent is not None and (tokens, input_tokens, output_tokens) == (None, None, None):
                input_tokens, output_tokens = spent.input_tokens, spent.output_tokens
            cost = session.cost_usd if cost is None else cost
            reply = session.answer if reply is None else reply
        if (tokens, input_tokens, output_tokens) != (None, None, None):
            known = self.usage or Usage()
            received = (tokens or 0) + (output_tokens or 0)
            self.usage = Usage(
                input_tokens=known.input_tokens + require_count("input_tokens", input_tokens or 0),
                output_tokens=known.output_tokens + require_count("tokens", received),
            )
        if cost is not None:
            self.cost_usd = (self.cost_usd or 0.0) + _amount("cost", cost)
        if latency_s is not None:
            self.latency_s = (self.latency_s or 0.0) + _amount("latency_s", latency_s)
        if reply is not None:
            self.reply = str(reply)

    def so_far(self) -> Reply:
        """Return what the trial took until now, for one whose end nobody waits for."""
        return Reply(value="", usage=self.usage, cost_usd=self.cost_usd)

    def outcomes(self, ending: Ending) -> tuple[Outcome, ...]:
        """Return what each criterion says of the trial, once its body has ended.

        An exception fails what was not checked before it. Where the body has no criterion of its
        own it fails every criterion: no assertion is lost because a check held before it.
        """
        return tuple(self._outcome(name, ending) for name in self._criteria)

    def _outcome(self, name: str, ending: Ending) -> Outcome:
        result, where = _OK if ending.passed else ending.result, ending.where
        checked = self._checked.get(name)
        if name != BODY and checked is not None:
            keeps = ending.passed or BODY in self._criteria or not checked[0].passed
            result, where = checked if keeps else (result, where)
        elif name != BODY and ending.passed:
            result, where = _UNCHECKED, None
        if ending.error_class is ErrorClass.NONE and not result.passed:
            return Outcome.of_failure(name, result, where)
        return Outcome(
            criterion=name,
            result=result,
            postcondition=None if result.passed else where,
            error_class=ending.error_class,
        )

    def _check_name(self, name: str) -> None:
        named = [one for one in self._criteria if one != BODY]
        if name in named:
            return
        from trialwise.declarations.written import suggest_name

        known = f"it has {', '.join(named)}" if named else "it names no criterion"
        hint = suggest_name(str(name), named, known, quote="'")
        raise UnknownCriterion(f"trial.check({name!r}): the marker has no such criterion; {hint}")


def _amount(name: str, value: float) -> float:
    if require_real(name, value) < 0:
        raise InvalidArgument(name, value, "be at least 0")
    return float(value)
