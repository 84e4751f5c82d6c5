"""From what came back to a trial: what every criterion says of it, and what of it is kept.

Postconditions that have to ask somebody are awaited first, those of different criteria side by
side; a run without any never comes by there.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from trialwise import model, stats
from trialwise.checks.check_base import broken_by
from trialwise.engine import check_watch
from trialwise.engine.attempt import Response
from trialwise.engine.excerpts import Excerpts
from trialwise.engine.ports import gather
from trialwise.engine.run_state import TrialStart
from trialwise.engine.spending_meter import known_sum, known_usage, sum_expenses
from trialwise.errors import BrokenCheck
from trialwise.model.trial import EXCUSED, Appraisal, OtherCheck

Activity = Callable[[model.Reply], bool]


class _Session(NamedTuple):
    """The parts of an agent's session that a trial keeps."""

    shape: stats.TraceShape | None = None
    ended: str | None = None
    messages: tuple[tuple[str, str], ...] = ()


_NO_SESSION = _Session()


class Examined(NamedTuple):
    """The results of all criteria for one reply."""

    outcomes: tuple[model.Outcome, ...]
    error_class: model.ErrorClass = model.ErrorClass.NONE
    error: str = ""
    usage: model.Usage | None = None
    """Tokens that asking took."""
    cost_usd: float | None = None
    traceback: str = ""
    """The hash of where a check raised."""


_OK = model.CheckResult.ok()
_IDLE = model.CheckResult.fail(
    "the service returned without any sign of activity", reason=model.FailReason.NO_VALUE
)


class ReplyChecker:
    """The criteria of one experiment, made ready once.

    Args:
        experiment: Its name.
        criteria: In the contract's order.
        activity: Whether a reply shows any work done.
        excerpts: How texts are kept.
        note_raised: Keeps where a check raised, and returns its hash.
    """

    def __init__(
        self,
        experiment: str,
        criteria: Sequence[model.Criterion],
        *,
        activity: Activity | None,
        excerpts: Excerpts,
        note_raised: Callable[[BaseException], str] = lambda _: "",
    ) -> None:
        self._experiment = experiment
        self._criteria: list[tuple[str, list[check_watch.ReadyCheck]]] = []
        self._asking: list[int] = []
        for place, one in enumerate(criteria):
            checks = [check_watch.make_ready(check, one.lowest_pass) for check in one.checks]
            self._criteria.append((one.name, checks))
            if any(check.asking is not None for check in checks):
                self._asking.append(place)
        self._panels = [check_watch.Panel.of(criterion) for criterion in criteria]
        self._activity = activity
        self._excerpts = excerpts
        self._note_raised = note_raised
        # Most trials pass, and one tuple serves them all.
        self._all_passed = self._all(_OK)
        self.asks = bool(self._asking)
        """Whether some postcondition has to wait for an answer."""

    def trial(
        self,
        start: TrialStart,
        given: model.Input,
        response: Response,
        started_s: float,
        examined: Examined | None = None,
    ) -> model.Trial:
        """Return the trial that a response makes.

        Args:
            start: Which trial.
            given: Its input.
            response: What came back, after however many attempts.
            started_s: When it began.
            examined: What `ask` said of it, where somebody had to be asked.
        """
        reply = response.reply
        if reply is None:
            examined = self._explain_silence(response, given)
        elif examined is None:
            seen = reply.with_input(given.value, given.expected)
            examined = self._idle(seen)
            if examined is None:
                raised: list[BrokenCheck] = []
                outcomes = self._outcomes(seen, raised)
                if outcomes is self._all_passed and _is_plain(reply, response) and started_s > 0:
                    kept = self._excerpts.reply(reply)
                    if kept is not None and kept == reply.value:
                        # All else is as usual: naming every field takes as long as the rest.
                        trial = model.Trial(
                            experiment=self._experiment,
                            index=start.index,
                            input_id=given.id,
                            seed=start.seed,
                            outcomes=outcomes,
                            latency_s=float(reply.latency_s),
                            started_s=started_s,
                            reply=kept,
                        )
                        trial.is_plain = True
                        return trial
                examined = Examined(outcomes, traceback=self._keep_traceback(raised))
        came_back: dict[str, Any] = {}
        if reply is not None:
            came_back["latency_s"], came_back["exit_code"] = float(reply.latency_s), reply.exit_code
            came_back["reply"] = self._excerpts.reply(reply)
            came_back["whole"] = self._excerpts.whole(reply)
        # What an attempt without a reply had done was done all the same, and paid for.
        last = response.partial if reply is None else reply
        session = _NO_SESSION
        if last is not None and last.details:
            session = self._session(last)
            came_back["tool_calls"] = self._excerpts.tool_calls(last)
        return model.Trial(
            experiment=self._experiment,
            index=start.index,
            input_id=given.id,
            seed=start.seed,
            started_s=started_s,
            outcomes=examined.outcomes,
            error_class=examined.error_class,
            error=examined.error,
            judging_usage=examined.usage,
            judging_cost_usd=examined.cost_usd,
            attempts=response.attempts,
            attempt_errors=response.attempt_errors,
            messages=session.messages,
            # A session that something else cut short tells nothing of how steady it was.
            shape=None if reply is None and examined.error_class in EXCUSED else session.shape,
            ended=session.ended,
            traceback=response.traceback or examined.traceback,
            **came_back,
            **sum_expenses(response.lost if last is None else (*response.lost, last)),
        )

    def _explain_silence(self, response: Response, given: model.Input) -> Examined:
        """Explain what is said of a trial without a reply."""
        error_class, error, partial = response.error_class, response.error, response.partial
        if error_class is model.ErrorClass.TIMEOUT and partial is not None:
            error_class, error = self._timed_out(
                partial.with_input(given.value, given.expected), error
            )
        result = model.CheckResult.fail(error, reason=model.FailReason.NO_VALUE)
        return Examined(self._all(result, error_class), error_class, error)

    def _session(self, reply: model.Reply) -> _Session:
        """Return the session of a reply, counted before anything is cut or redacted."""
        if "trace" not in reply.details and "tool_calls" not in reply.details:
            return _NO_SESSION
        from trialwise.stats.trace_stability import read_trace

        try:
            trace = model.Trace.of(reply)
            if trace is None:
                return _NO_SESSION
            messages = self._excerpts.messages(trace.turns)
            if not trace.tells_all_calls:
                return _Session(messages=messages)
            ended = None if trace.ended is None else self._excerpts.text(trace.ended)
            return _Session(read_trace(trace.to_dict()), ended, messages)
        except Exception:  # what a service hands over as its trace may raise anything
            return _NO_SESSION

    def _timed_out(self, partial: model.Reply, error: str) -> tuple[model.ErrorClass, str]:
        """Return the class of a timeout: one without any sign of work is an empty run.

        A tool call is such a sign; without one it is what `activity` says. A service that does not
        tell its calls is not excused for that.

        Args:
            partial: What was done until then.
            error: What was said of it.
        """
        try:
            worked = _calls_tools(partial)
            if not worked and self._activity is not None:
                worked = bool(self._activity(partial))
        except KeyboardInterrupt:
            raise
        except BaseException:  # the user's function, or a trace of the user's
            # What cannot tell whether anything was done must not turn a timeout into an empty run,
            # which a per-protocol analysis leaves out.
            worked = True
        if worked is None or worked:
            return model.ErrorClass.TIMEOUT, error
        return model.ErrorClass.EMPTY_RUN, f"{error}, and nothing was done until then"

    @property
    def check_names(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The names of every criterion's postconditions."""
        return tuple((name, tuple(one.name for one in checks)) for name, checks in self._criteria)

    async def ask(self, response: Response, *, given: model.Input, seed: int) -> Examined | None:
        """Check a response with all criteria, and wait for those that ask a model.

        Args:
            response: What came back.
            given: The trial's input.
            seed: The trial's own.

        Raises:
            ServiceError: The model that was asked cannot answer, and never will in this run.
        """
        if response.reply is None:
            return None
        reply = response.reply.with_input(given.value, given.expected)
        idle = self._idle(reply)
        if idle is not None:
            return idle
        answers: list[Appraisal] = []
        raised: list[BrokenCheck] = []

        async def ask(place: int) -> model.Outcome:
            walk = self._walk(place, reply, raised)
            try:
                check = next(walk)
                while True:
                    if check.asking is None:
                        said = check_watch.appraise_check(check.name, check.check, reply)
                    else:
                        said = await check_watch.ask_check(check.asking, reply, seed)
                        answers.append(said)
                    check = walk.send(said)
            except StopIteration as ended:
                outcome: model.Outcome = ended.value
                return outcome

        calls = [partial(ask, place) for place in self._asking]
        # Side by side, since every model takes its time; within a criterion in order, since a
        # check that fails spares the ones after it.
        found = await gather(calls)
        outcomes = list(self._outcomes(reply, raised, without=self._asking))
        for place, outcome in zip(self._asking, found, strict=True):
            outcomes[place] = outcome
        return Examined(
            tuple(outcomes),
            usage=known_usage(one.usage for one in answers),
            cost_usd=known_sum(one.cost_usd for one in answers),
            traceback=self._keep_traceback(raised),
        )

    def _keep_traceback(self, raised: Sequence[BrokenCheck]) -> str:
        return self._note_raised(raised[0]) if raised else ""

    async def aclose(self) -> None:
        """Release what the asking postconditions hold."""
        for place in self._asking:
            for check in self._criteria[place][1]:
                if check.asking is not None:
                    with suppress(Exception):  # nothing is lost with a connection that stays open
                        await check.asking.aclose()

    def _idle(self, reply: model.Reply) -> Examined | None:
        """Return what is said of a reply that shows no work; None where it shows some.

        Without an `activity` function, an empty answer that made no tool call shows no work.
        """
        if self._activity is None:
            value = reply.value
            is_blank = not value or value.isspace() if isinstance(value, str) else value is None
            return self._empty if is_blank and _is_without_calls(reply) else None
        try:
            is_active = bool(self._activity(reply))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # the user's function may raise anything
            broken = broken_by(error, "activity")
            result = model.CheckResult.fail(broken.problem, reason=model.FailReason.BROKEN)
            outcomes = [replace(one, postcondition="activity") for one in self._all(result)]
            return Examined(tuple(outcomes), traceback=self._keep_traceback([broken]))
        return None if is_active else self._empty

    @property
    def _empty(self) -> Examined:
        outcomes = self._all(_IDLE, model.ErrorClass.EMPTY_RUN)
        return Examined(outcomes, model.ErrorClass.EMPTY_RUN, _IDLE.explanation)

    def _outcomes(
        self, reply: model.Reply, raised: list[BrokenCheck], without: Sequence[int] = ()
    ) -> tuple[model.Outcome, ...]:
        """Return the outcome of every criterion that asks nobody; of the others none yet."""
        outcomes: list[model.Outcome] | None = None
        for place, passed in enumerate(self._all_passed):
            if without and place in without:
                continue
            said, checks = None, self._criteria[place][1]
            if len(checks) == 1 and self._panels[place] is None:
                said = check_watch.appraise_check(checks[0].name, checks[0].check, reply)
                # Nearly every trial: a walk takes longer than many a check.
                if said is check_watch.PASSED:
                    continue
            walk = self._walk(place, reply, raised)
            try:
                check = next(walk)
                while True:
                    check = walk.send(
                        said or check_watch.appraise_check(check.name, check.check, reply)
                    )
            except StopIteration as ended:
                outcome: model.Outcome = ended.value
            if outcome is not passed:
                if outcomes is None:
                    outcomes = list(self._all_passed)
                outcomes[place] = outcome
        return self._all_passed if outcomes is None else tuple(outcomes)

    def _walk(
        self, place: int, reply: model.Reply, raised: list[BrokenCheck]
    ) -> Generator[check_watch.ReadyCheck, Appraisal, model.Outcome]:
        """Yield the checks of a criterion as far as they are needed; return its outcome.

        Whoever drives it sends what each check says, at once or after waiting for a model.
        """
        criterion, checks = self._criteria[place]
        panel = self._panels[place]
        if panel is not None:
            given: list[Appraisal] = []
            for check in checks:
                said = yield check
                given.append(said)
            return self._grade(panel, given, raised)
        outcome = self._all_passed[place]
        for number, check in enumerate(checks, start=1):
            appraisal = yield check
            if appraisal is check_watch.PASSED or appraisal.result.passed:
                continue
            # A later check may still be sure that the reply fails; but no model is asked for that.
            goes_on = appraisal.result.reason is model.FailReason.UNKNOWN
            goes_on = goes_on and place not in self._asking
            if not goes_on or outcome.passed:
                outcome = self._failure(criterion, appraisal, check.name, raised)
            if not goes_on:
                others = self._look_on(checks[number:], reply)
                return replace(outcome, others=others) if others else outcome
        return outcome

    def _grade(
        self, panel: check_watch.Panel, given: Sequence[Appraisal], raised: list[BrokenCheck]
    ) -> model.Outcome:
        """Return a graded outcome with its texts as they are kept.

        A reply on which a grader raised fails, whatever the others give it.
        """
        outcome = panel.grade(given)
        for (name, _), one in zip(panel.graders, given, strict=True):
            if isinstance(one, check_watch.Raised):
                raised.append(one.broken)
                result = replace(one.result, score=outcome.result.score)
                outcome = replace(
                    outcome, result=result, postcondition=name, error_class=model.ErrorClass.NONE
                )
                break
        kept = self._excerpts.result(outcome.result)
        return outcome if kept is outcome.result else replace(outcome, result=kept)

    def _look_on(
        self, rest: Sequence[check_watch.ReadyCheck], reply: model.Reply
    ) -> tuple[OtherCheck, ...]:
        """Return the results of the postconditions after a failed one, without those that hold.

        A model is not asked any more. A check may rely on the ones before it, so that one which
        raises now is not broken: it says nothing.
        """
        found = []
        for name, check, asking in rest:
            said = None if asking is not None else check_watch.appraise_check(name, check, reply)
            result = None if said is None or isinstance(said, check_watch.Raised) else said.result
            if result is None or not result.passed:
                kept = None if result is None else self._excerpts.result(result)
                found.append(OtherCheck(postcondition=name, result=kept))
        return tuple(found)

    def _failure(
        self, criterion: str, appraisal: Appraisal, name: str, raised: list[BrokenCheck]
    ) -> model.Outcome:
        if isinstance(appraisal, check_watch.Raised):
            raised.append(appraisal.broken)
        # A criterion that does not grade: the scores of its failures alone would mislead.
        kept = replace(self._excerpts.result(appraisal.result), score=None)
        outcome = model.Outcome.of_failure(criterion, kept, name)
        if appraisal.error_class is model.ErrorClass.NONE:
            return outcome
        return replace(outcome, error_class=appraisal.error_class)

    def _all(
        self, result: model.CheckResult, error_class: model.ErrorClass = model.ErrorClass.NONE
    ) -> tuple[model.Outcome, ...]:
        return tuple(
            model.Outcome(criterion=name, result=result, error_class=error_class)
            for name, _ in self._criteria
        )


def _is_plain(reply: model.Reply, response: Response) -> bool:
    """Return whether a reply came at the first attempt, and tells of nothing but its value."""
    return (
        response.attempts == 1
        and type(reply) is model.Reply
        and not reply.details
        and reply.usage is None
        and reply.cost_usd is None
        and reply.setup is None
        and reply.exit_code is None
    )


def _is_without_calls(reply: model.Reply) -> bool:
    """Return whether a session says that it called no tool."""
    try:
        return _calls_tools(reply) is False
    except Exception:  # what a service hands over as its trace may raise anything
        return False


def _calls_tools(partial: model.Reply) -> bool | None:
    """Return whether a session called a tool; None where it does not tell."""

    trace = model.Trace.of(partial)
    if trace is None or (trace.calls_unknown is not None and not trace.tool_calls):
        return None
    return bool(trace.tool_calls)
