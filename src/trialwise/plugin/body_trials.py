"""Makes a trial of what was seen of a body, in this process or in a worker."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trialwise.engine.error_classes import Reach, Trouble
from trialwise.engine.excerpts import Excerpts
from trialwise.model.plan import ExperimentPlan
from trialwise.model.trial import FailReason, Trial
from trialwise.plugin.trial_fixture import TrialHandle
from trialwise.plugin.trial_items import Course

if TYPE_CHECKING:
    from trialwise.model.trace import Trace

#: How much of what a body recorded as its reply is kept.
REPLY_LIMIT = 4000


def describe_trial(
    handle: TrialHandle,
    course: Course,
    *,
    experiment: ExperimentPlan,
    position: int,
    reach: Reach,
    excerpts: Excerpts,
    started_s: float,
    traceback: str = "",
) -> Trial:
    """Return the trial that a body makes.

    Args:
        handle: What the body was given, and what it said of itself.
        course: How it went.
        experiment: The test's only one.
        position: The place of its input in the list of inputs.
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
    text = excerpts.text
    return Trial(
        experiment=experiment.name,
        index=handle.index,
        input_id=experiment.input_ids[position],
        seed=handle.seed,
        outcomes=handle.outcomes(ending),
        error_class=ending.error_class,
        error="" if reached else text(ending.result.explanation),
        latency_s=round(latency, 6) if reached else None,
        usage=handle.usage,
        cost_usd=handle.cost_usd,
        setup_s=round(course.setup_s, 6),
        started_s=round(max(0.0, started_s), 6),
        reply=None if handle.reply is None else text(handle.reply, REPLY_LIMIT),
        traceback=traceback,
        **({} if handle.trace is None else _describe_session(handle.trace, excerpts)),
    )


def _describe_session(trace: Trace, excerpts: Excerpts) -> dict[str, Any]:
    """Return the fields of a trial that tell the session of an agent."""
    from trialwise.model.reply import Reply
    from trialwise.stats.trace_stability import read_trace

    return {
        "tool_calls": excerpts.tool_calls(Reply(value="", details=trace.details)),
        "messages": excerpts.messages(trace.turns),
        "shape": read_trace(trace.to_dict()) if trace.tells_all_calls else None,
        "ended": None if trace.ended is None else excerpts.text(trace.ended),
    }
