"""From what came back to a trial: what every criterion says of it, and what of it is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from trialwise.engine.attempt import Response
from trialwise.engine.excerpts import Excerpts, error_text
from trialwise.model.criterion import Check, Criterion
from trialwise.model.outcome import CheckResult, ErrorClass, FailReason, Outcome
from trialwise.model.postcondition import Postcondition
from trialwise.model.reply import Reply, Setup
from trialwise.model.trial import Trial

if TYPE_CHECKING:
    from trialwise.stats import TraceShape

__all__ = ["Scorer"]

Activity = Callable[[Reply], bool]

_OK = CheckResult.ok()
_IDLE = CheckResult.fail(
    "the service returned without any sign of activity", reason=FailReason.NO_VALUE
)


class Scorer:
    """The criteria of one experiment, made ready once.

    Args:
        experiment: Its name.
        criteria: In the contract's order.
        activity: Whether a reply shows any work done.
        excerpts: How texts are kept.
    """

    def __init__(
        self,
        experiment: str,
        criteria: Sequence[Criterion],
        *,
        activity: Activity | None,
        excerpts: Excerpts,
    ) -> None:
        self._experiment = experiment
        self._criteria = [
            (criterion.name, [_ready(check) for check in criterion.checks])
            for criterion in criteria
        ]
        self._activity = activity
        self._excerpts = excerpts
        # Most trials pass, and one tuple serves them all.
        self._all_passed = tuple(Outcome(criterion=name, result=_OK) for name, _ in self._criteria)

    def trial(
        self,
        index: int,
        input_id: str,
        seed: int,
        response: Response,
        *,
        given: Any,
        started_s: float,
    ) -> Trial:
        """The trial that a response makes.

        Args:
            index: Its place in the issue order.
            input_id: Its input's name.
            seed: Its own.
            response: What came back, after however many attempts.
            given: Its input.
            started_s: When it began.
        """
        reply = response.reply
        if reply is None:
            return self._without_reply(index, input_id, seed, response, started_s)
        seen = reply.with_input(given)
        outcomes, error_class, error = self._examine(seen)
        trial = Trial(
            experiment=self._experiment,
            index=index,
            input_id=input_id,
            seed=seed,
            outcomes=outcomes,
            error_class=error_class,
            error=error,
            latency_s=float(reply.latency_s),
            usage=reply.usage,
            cost_usd=None if reply.cost_usd is None else float(reply.cost_usd),
            attempts=response.attempts,
            attempt_errors=response.attempt_errors,
            started_s=started_s,
            reply=self._excerpts.reply(reply),
            tool_calls=self._excerpts.tool_calls(reply) if reply.details else (),
            shape=_shape(reply) if reply.details else None,
            exit_code=reply.exit_code,
        )
        return trial if reply.setup is None else _with_setup(trial, reply.setup)

    def _without_reply(
        self, index: int, input_id: str, seed: int, response: Response, started_s: float
    ) -> Trial:
        result = CheckResult.fail(response.error, reason=FailReason.NO_VALUE)
        return Trial(
            experiment=self._experiment,
            index=index,
            input_id=input_id,
            seed=seed,
            outcomes=self._all(result, response.error_class),
            error_class=response.error_class,
            error=response.error,
            attempts=response.attempts,
            attempt_errors=response.attempt_errors,
            started_s=started_s,
        )

    def _examine(self, reply: Reply) -> tuple[tuple[Outcome, ...], ErrorClass, str]:
        if self._activity is not None:
            try:
                is_active = bool(self._activity(reply))
            except (Exception, SystemExit) as error:  # the user's function may raise anything
                message = self._excerpts.text(f"activity raised {error_text(error)}")
                result = CheckResult.fail(message, reason=FailReason.TRANSFORM)
                return self._all(result, ErrorClass.NONE), ErrorClass.NONE, message
            if not is_active:
                outcomes = self._all(_IDLE, ErrorClass.EMPTY_RUN)
                return outcomes, ErrorClass.EMPTY_RUN, _IDLE.explanation
        return self._outcomes(reply), ErrorClass.NONE, ""

    def _outcomes(self, reply: Reply) -> tuple[Outcome, ...]:
        outcomes: list[Outcome] | None = None
        for place, (criterion, postconditions) in enumerate(self._criteria):
            for name, check in postconditions:
                result = _result(check, reply)
                if result.passed:
                    continue
                if outcomes is None:
                    outcomes = list(self._all_passed)
                outcomes[place] = Outcome(
                    criterion=criterion, result=self._excerpts.result(result), postcondition=name
                )
                break
        return self._all_passed if outcomes is None else tuple(outcomes)

    def _all(self, result: CheckResult, error_class: ErrorClass) -> tuple[Outcome, ...]:
        return tuple(
            Outcome(criterion=name, result=result, error_class=error_class)
            for name, _ in self._criteria
        )


class _Ready(NamedTuple):
    """A postcondition with its name looked up."""

    name: str
    check: Callable[[Reply], object]


def _ready(check: Check) -> _Ready:
    if isinstance(check, Postcondition):
        return _Ready(check.name, check.check)
    from trialwise.checks.callable import predicate

    postcondition = predicate(check)
    return _Ready(postcondition.name, postcondition.check)


def _result(check: Callable[[Reply], object], reply: Reply) -> CheckResult:
    """What a postcondition says; one of the user's own may raise or return anything."""
    try:
        result = check(reply)
    except (Exception, SystemExit) as error:
        return CheckResult.fail(
            f"the postcondition raised {error_text(error)}", reason=FailReason.TRANSFORM
        )
    if isinstance(result, CheckResult):
        return result
    close = getattr(result, "close", None)
    if hasattr(result, "__await__") and callable(close):
        close()  # a coroutine nobody will await
    return CheckResult.fail(
        f"the postcondition returned {type(result).__name__}, expected a CheckResult",
        reason=FailReason.TRANSFORM,
    )


def _shape(reply: Reply) -> TraceShape | None:
    """The counts of the session that a reply tells of, before anything is cut or redacted."""
    if "trace" not in reply.details and "tool_calls" not in reply.details:
        return None
    from trialwise.model.trace import Trace
    from trialwise.stats.trace_shape import read_trace

    try:
        trace = Trace.of(reply)
        return None if trace is None else read_trace(trace.to_dict())
    except Exception:  # what a service hands over as its trace may raise anything
        return None


def _with_setup(trial: Trial, setup: Setup) -> Trial:
    cost = None if setup.cost_usd is None else float(setup.cost_usd)
    return replace(
        trial, setup_s=float(setup.seconds), setup_usage=setup.usage, setup_cost_usd=cost
    )
