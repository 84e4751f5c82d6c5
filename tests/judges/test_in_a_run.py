"""Postconditions that have to ask, inside the engine: awaited, side by side, and never a pass."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

import trialwise as tw
from trialwise.engine.ports import ServiceError
from trialwise.errors import InvalidArgument
from trialwise.judges import VoteCache, judge
from trialwise.model.evidence import StopReason
from trialwise.model.reply import Reply
from trialwise.model.trial import Appraisal, CheckResult, ErrorClass, FailReason
from trialwise.model.verdict import Decision

Start = Callable[[Callable[[Any], Any]], Any]
Says = Callable[..., str]


def run(checks: Any, *, trials: int = 12, service: Any = str.upper, **options: Any) -> Any:
    """A run of one or more criteria over two inputs."""
    several = checks if isinstance(checks, dict) else {"judged": checks}
    contract = tw.Contract(
        "agent",
        service,
        [tw.Criterion(name, check, at_least=0.5) for name, check in several.items()],
        sampling=["yes", "no"],
        activity=options.pop("activity", None),
    )
    options = {"trials": trials, "seed": 3, "curtail": False, "store": None} | options
    return tw.run(contract, progress=False, **options)


class Asking:
    """A postcondition of a user's own that waits."""

    name = "asking"

    def __init__(self, answer: Callable[[Reply, int], Any]) -> None:
        self._answer = answer
        self.asked: list[tuple[str, Any, int]] = []
        self.closed = 0

    def check(self, reply: Reply) -> CheckResult:
        raise AssertionError(f"nobody should ask at once about {reply}")

    async def acheck(self, reply: Reply, *, seed: int) -> Appraisal:
        await anyio.sleep(0)
        self.asked.append((reply.text, reply.details["input"], seed))
        found: Appraisal = self._answer(reply, seed)
        return found

    async def aclose(self) -> None:
        self.closed += 1


def passes(reply: Reply, seed: int) -> Appraisal:  # noqa: ARG001 - the form of an answer
    return Appraisal(result=CheckResult.ok())


def test_a_judge_decides_a_criterion(juror: Start, says: Says, tmp_path: Path) -> None:
    """Over the wire, beside an ordinary criterion; the record can be judged again."""
    one = juror(lambda asked: says(asked.sections["OUTPUT"] == "YES", reasoning="it says NO"))
    store = tmp_path / "runs"

    result = run(
        {"judged": judge("It says yes.", one.service()), "loud": str.isupper},
        store=store,
        concurrency=4,
    )

    assert 12 == len(one.asked)
    judged, loud = result.verdict.findings
    assert (6, 12) == (judged.tally.passed, loud.tally.passed)
    assert 6 == judged.breakdown.condition
    failed = [trial for trial in result.record.trials if not trial.outcome("judged").passed]
    assert {"NO"} == {trial.reply for trial in failed}
    assert {"the judge says no: it says NO"} == {
        trial.outcome("judged").result.explanation for trial in failed
    }
    assert {"judged: It says yes."} == {trial.outcome("judged").postcondition for trial in failed}


def test_a_judges_trouble_is_not_the_services(juror: Start, no_waiting: Any) -> None:
    """The criterion fails with the judge's class; the trial and other criteria stay clean."""
    calls = iter(range(1000))
    one = juror(lambda _: 500 if next(calls) % 4 == 0 else '{"pass": true}')

    result = run(
        {"judged": judge("r", one.service(), retries=0, clock=no_waiting), "loud": str.isupper}
    )

    judged, loud = result.verdict.findings
    broken = [one for one in result.record.trials if not one.outcome("judged").passed]
    assert 3 == len(broken)
    for trial in broken:
        outcome = trial.outcome("judged")
        assert ErrorClass.INFRASTRUCTURE is outcome.error_class
        assert FailReason.TRANSFORM is outcome.result.reason
        assert ErrorClass.NONE is trial.error_class
        assert trial.outcome("loud").passed
        assert "" == trial.error
    assert (9, 3) == (judged.tally.passed, judged.breakdown.transform)
    assert 12 == loud.tally.passed


def test_a_judge_that_never_answers_ends_the_run(juror: Start, no_waiting: Any) -> None:
    """After ten trials nobody goes on paying where nothing else is to be decided."""
    one = juror(lambda _: 401)

    result = run({"judged": judge("r", one.service(), clock=no_waiting)}, trials=200)

    assert StopReason.ERROR_RATE is result.verdict.stop
    assert 10 == len(one.asked)
    assert "could not be measured" in result.verdict.aborted
    assert {Decision.INCONCLUSIVE} == {one.decision for one in result.verdict.findings}


def test_a_judge_that_never_answers_leaves_the_other_criteria_alone(
    juror: Start, no_waiting: Any
) -> None:
    """Its own criterion is undecided, and the others get their trials and their decision."""
    one = juror(lambda _: 401)

    result = run(
        {"judged": judge("r", one.service(), clock=no_waiting), "loud": str.isupper}, trials=200
    )

    judged, loud = result.verdict.findings
    assert StopReason.COMPLETE is result.verdict.stop
    assert (Decision.INCONCLUSIVE, Decision.PASS) == (judged.decision, loud.decision)
    assert (0, 200) == (judged.tally.passed, loud.tally.passed)


def test_a_cheap_check_before_it_saves_the_asking() -> None:
    """Postconditions are tried in order; the first that fails ends it."""
    asking = Asking(passes)

    result = run([lambda text: text == "YES", asking])

    assert {"YES"} == {text for text, _, _ in asking.asked}
    assert (6, 6) == (len(asking.asked), result.verdict.findings[0].tally.passed)


def test_it_is_given_the_input_and_the_trials_seed() -> None:
    """So that order and chance can be repeated."""
    asking = Asking(passes)

    result = run(asking)

    assert {("YES", "yes"), ("NO", "no")} == {(text, given) for text, given, _ in asking.asked}
    assert {trial.seed for trial in result.record.trials} == {seed for *_, seed in asking.asked}


def test_criteria_are_asked_side_by_side() -> None:
    """Two that wait for each other both come back."""
    meeting = threading.Barrier(2, timeout=10)

    class Meets(Asking):
        async def acheck(self, reply: Reply, *, seed: int) -> Appraisal:
            await anyio.to_thread.run_sync(meeting.wait)
            return passes(reply, seed)

    result = run({"one": Meets(passes), "other": Meets(passes)}, trials=6)

    assert [6, 6] == [one.tally.passed for one in result.verdict.findings]


def test_its_time_is_not_the_services() -> None:
    """Latency ends with the reply."""

    class Slow(Asking):
        async def acheck(self, reply: Reply, *, seed: int) -> Appraisal:
            await anyio.sleep(0.05)
            return passes(reply, seed)

    async def quick(text: str) -> Reply:
        return Reply(value=text.upper(), latency_s=0.001)

    result = run(Slow(passes), service=quick, trials=6)

    assert {0.001} == {trial.latency_s for trial in result.record.trials}


def test_nobody_is_asked_about_what_is_not_there() -> None:
    """A service that failed, and a reply that shows no work."""
    asking = Asking(passes)

    def service(text: str) -> str:
        if text == "no":
            raise ServiceError("down", ErrorClass.INFRASTRUCTURE)
        return ""

    shows_work = lambda reply: bool(reply.value)  # noqa: E731
    result = run(asking, service=service, activity=shows_work, trials=8, retries=0)

    assert [] == asking.asked
    assert 0 == result.verdict.findings[0].tally.passed


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda *_: 1 / 0, "raised ZeroDivisionError: division by zero"),
        (lambda *_: True, "returned bool, expected an Appraisal"),
        (lambda *_: None, "returned NoneType"),
    ],
)
def test_what_goes_wrong_in_asking_is_said(answer: Any, said: str) -> None:
    """One of the user's own may raise or return anything; none of it is a pass or a failure."""
    asking = Asking(answer)

    with pytest.raises(tw.BrokenCheck, match="the check 'asking' is broken") as caught:
        run(asking, trials=6)

    assert said in str(caught.value)
    # What raises may be about the reply, until it has raised three times.
    assert (3 if said.startswith("raised") else 1) == len(asking.asked)


def test_nobody_who_answers_is_no_broken_check() -> None:
    """The criterion has no answer, with the class of what went wrong."""

    def gone(*_: Any) -> Appraisal:
        raise ServiceError("gone", ErrorClass.INFRASTRUCTURE)

    result = run(Asking(gone), trials=6)

    (trial, *_) = result.record.trials
    outcome = trial.outcome("judged")
    assert "nobody answered: gone" in outcome.result.explanation
    assert FailReason.TRANSFORM is outcome.result.reason
    assert ErrorClass.INFRASTRUCTURE is outcome.error_class


def test_a_plain_result_will_do() -> None:
    """Where asking took nothing that anybody counts."""
    result = run(Asking(lambda *_: CheckResult.ok()), trials=6)

    assert 6 == result.verdict.findings[0].tally.passed


def test_no_answer_is_never_a_pass() -> None:
    """An appraisal cannot be both."""
    with pytest.raises(InvalidArgument, match="no answer is never one"):
        Appraisal(result=CheckResult.ok(), error_class=ErrorClass.INFRASTRUCTURE)


@pytest.mark.parametrize("mix", [tw.not_, tw.all_of, tw.any_of])
def test_a_judge_stands_by_itself(mix: Any) -> None:
    """Turned round or mixed it would not be the judge whose errors were measured."""
    with pytest.raises(InvalidArgument, match="stand by itself"):
        run(mix(Asking(passes)))
    with pytest.raises(InvalidArgument, match="stand by itself"):
        run(mix(tw.named("x", Asking(passes))))


def test_a_judge_may_have_another_name() -> None:
    """Which changes nothing but the name."""
    asking = Asking(lambda *_: Appraisal(result=CheckResult.fail("no")))

    result = run(tw.named("politeness", asking), trials=6)

    assert 6 == len(asking.asked)
    assert "politeness" == result.record.trials[0].outcome("judged").postcondition


def test_what_it_holds_is_released() -> None:
    """At the end of every experiment, also of one that raises in closing."""

    class Stuck(Asking):
        async def aclose(self) -> None:
            await super().aclose()
            raise OSError("never mind")

    asking = Stuck(passes)

    assert Decision.PASS is run(asking).verdict.decision
    assert asking.closed


def test_a_cache_that_fails_stops_the_run(juror: Start, says: Says, tmp_path: Path) -> None:
    """Cleanly: nothing else is paid for, and the reason is said."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    one = juror(lambda _: says(True))

    result = run(
        {"judged": judge("r", one.service(), cache=VoteCache(blocked)), "other": Asking(passes)},
        trials=20,
    )

    assert StopReason.SERVICE is result.verdict.stop
    assert "answers cannot be kept" in result.verdict.aborted
    assert 1 == len(one.asked)


@pytest.mark.slow
def test_a_judged_run_can_be_cancelled(juror: Start) -> None:
    """A time budget ends it although the juror is slow; what is complete is kept."""
    one = juror(lambda _: 0.3)

    result = run(judge("r", one.service()), trials=200, budget=tw.Budget(seconds=1.5))

    assert StopReason.TIME_BUDGET is result.verdict.stop
    assert 0 < len(result.record.trials) < 10
