"""The `trial` fixture: what one trial is given, what it says of itself, and the trial it makes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import FrameType
from typing import Any

from trialwise.declarations.written import suggest_name
from trialwise.engine.attempt import fresh_copy
from trialwise.engine.error_classes import Reach, Trouble
from trialwise.engine.excerpts import Excerpts
from trialwise.engine.run_state import TrialStart
from trialwise.errors import InvalidArgument, TrialwiseError
from trialwise.model import Input, Reply, Trace, Usage
from trialwise.model.plan import ExperimentPlan
from trialwise.model.trial import CheckResult, ErrorClass, FailReason, Outcome, Trial
from trialwise.plugin.reasons import Course, Ending
from trialwise.plugin.session import BODY
from trialwise.stats.trace_stability import read_trace
from trialwise.traces.trace_building import to_trace
from trialwise.validation import require_count, require_real

# No frame of this module belongs in the traceback of a body or a fixture.
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
        start: Its place in the order of inputs, and its own seed.
        given: What it is tried on; its value is None where the marker has no inputs.
        criteria: The names of the marker's criteria.
        on_failed: Told of every check that does not hold.
    """

    def __init__(
        self, start: TrialStart, given: Input, criteria: Sequence[str], on_failed: FailedCheck
    ) -> None:
        self.index = start.index
        # A body may change what it is given, and the next trial is to be like this one.
        self.input = fresh_copy(given.value)
        self.expected = fresh_copy(given.expected)
        self.seed = start.seed
        self.latency_s: float | None = None
        self.usage: Usage | None = None
        self.cost_usd: float | None = None
        self.reply: str | None = None
        self.trace: Trace | None = None
        self._given = given
        self._criteria = criteria
        self._on_failed = on_failed
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
        # The first failure stays: a later check of the same name must not explain it away.
        if self._checked.get(name, (_OK, None))[0].passed:
            result = CheckResult.fail(explanation or f"{name} does not hold")
            # While the frame of the body is there: its traceback could not be written later.
            self._checked[name] = (result, self._on_failed(name, result, sys._getframe(1)))
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
        known = f"it has {', '.join(named)}" if named else "it names no criterion"
        hint = suggest_name(str(name), named, known, quote="'")
        raise UnknownCriterion(f"trial.check({name!r}): the marker has no such criterion; {hint}")


def _amount(name: str, value: float) -> float:
    if require_real(name, value) < 0:
        raise InvalidArgument(name, value, "be at least 0")
    return float(value)


def describe_trial(
    handle: TrialHandle,
    course: Course,
    *,
    experiment: ExperimentPlan,
    reach: Reach,
    excerpts: Excerpts,
    started_s: float,
    traceback: str = "",
) -> Trial:
    """Return the trial that a body makes, in this process or in a worker.

    Args:
        handle: What the body was given, and what it said of itself.
        course: How it went.
        experiment: The test's only one.
        reach: What the run has seen of the service.
        excerpts: How texts are kept.
        started_s: When it began, in seconds since the run began.
        traceback: The hash of where it raised, if that is kept.
    """
    ending = course.ending
    reached = ending.passed or ending.result.reason is FailReason.CONDITION
    if reached:
        reach.note_reply()
    # What was refused before the first answer is set up wrongly; afterwards it is an answer.
    settled = reach.settle(Trouble(ending.error_class, ending.status))
    ending = replace(ending, error_class=settled)
    latency = handle.latency_s if handle.latency_s is not None else course.body_s
    return Trial(
        experiment=experiment.name,
        index=handle.index,
        input_id=handle._given.id,
        seed=handle.seed,
        outcomes=handle.outcomes(ending),
        error_class=ending.error_class,
        error="" if reached else excerpts.text(ending.result.explanation),
        # Only of bodies that came to an end: waiting for an error is not the latency of an answer.
        latency_s=round(latency, 6) if reached else None,
        usage=handle.usage,
        cost_usd=handle.cost_usd,
        setup_s=round(course.setup_s, 6),
        started_s=round(max(0.0, started_s), 6),
        reply=None if handle.reply is None else excerpts.reply(Reply(value=handle.reply)),
        traceback=traceback,
        **({} if handle.trace is None else _describe_session(handle.trace, excerpts)),
    )


def _describe_session(trace: Trace, excerpts: Excerpts) -> dict[str, Any]:
    """Return the fields of a trial that tell the session of an agent."""
    return {
        "tool_calls": excerpts.tool_calls(Reply(value="", details=trace.details)),
        "messages": excerpts.messages(trace.turns),
        "shape": read_trace(trace.to_dict()) if trace.tells_all_calls else None,
        "ended": None if trace.ended is None else excerpts.text(trace.ended),
    }
