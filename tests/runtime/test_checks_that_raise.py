"""A check that raises on a reply fails that reply; one that raises on the first three is broken."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import trialwise as tw
from trialwise.model.trial import FailReason

WHOLE = json.dumps({"queue": "billing"})
CUT_OFF = WHOLE[:9]


def names_queue(text: str) -> bool:
    return bool(json.loads(text)["queue"] == "billing")


def uses_unknown_name(text: str) -> bool:
    return bool(text == unknown)  # type: ignore[name-defined] # noqa: F821


def imports_nothing(text: str) -> bool:
    import no_such_module  # type: ignore[import-not-found]

    return bool(no_such_module.check(text))


def answer_in_turn(*replies: str) -> Callable[[Any], str]:
    """Return a service that gives these replies one after the other, and then the last for ever."""
    left = list(replies)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def run(service: Any, *criteria: tw.Criterion, **given: Any) -> tw.Result:
    usual = {"inputs": ["q"], "store": None, "progress": False, "seed": 1}
    return tw.run(tw.Contract("c", service, criteria), **(usual | given))


def test_a_check_that_raises_on_one_reply_fails_that_reply_alone() -> None:
    """Its reason names the exception, its traceback is kept, and the run goes on to its verdict."""
    service = answer_in_turn(WHOLE, CUT_OFF, WHOLE)
    result = run(service, tw.Criterion("queue", names_queue, at_least=0.8))

    assert result.decision is tw.Decision.PASS
    (failed,) = [one for one in result.trials if not one.passed]
    said = failed.outcomes[0].result
    assert (1, FailReason.RAISED) == (failed.index, said.reason)
    assert "check raised JSONDecodeError" == said.explanation
    assert "Expecting" in said.evidence or "Unterminated" in said.evidence
    traceback = result.record.texts.find_traceback(failed)
    assert 'json.loads(text)["queue"] == "billing"' in traceback
    assert "predicates.py" not in traceback


@pytest.mark.parametrize("service", [answer_in_turn(CUT_OFF, CUT_OFF, WHOLE)])
def test_two_raises_are_two_failures_when_the_third_reply_can_be_checked(service: Any) -> None:
    """The rule is about the first three replies that the check saw."""
    result = run(service, tw.Criterion("queue", names_queue, at_least=0.5, trials=40))

    assert result.decision is tw.Decision.PASS
    assert result.verdict.findings[0].tally.failed == 2


@pytest.mark.parametrize(
    "criterion",
    [
        tw.Criterion("queue", names_queue, at_least=0.5),
        tw.Criterion("queue", names_queue, at_least=0.99, margin=0.2),
        tw.Criterion("queue", names_queue, never_fails=True),
        tw.Criterion("queue", tw.not_(tw.predicate(names_queue)), at_least=0.5),
        tw.Criterion("queue", names_queue, at_least=0.5, each_input=True),
        tw.Criterion("queue", names_queue, mean_at_least=0.5, trials=20),
    ],
)
def test_a_check_that_raises_on_the_first_three_replies_is_never_a_verdict(
    criterion: tw.Criterion,
) -> None:
    """Not even where one failure would decide: three replies are asked for before a FAIL."""
    calls: list[Any] = []

    def service(question: Any) -> str:
        calls.append(question)
        return CUT_OFF

    with pytest.raises(tw.BrokenCheck) as caught:
        run(service, criterion)

    assert "raised on each of the first 3 replies" in caught.value.problem
    assert "JSONDecodeError" in caught.value.traceback
    assert len(calls) == 3


@pytest.mark.parametrize("trials", [1, 2])
def test_a_run_of_fewer_than_three_replies_counts_each_raise_as_a_failure(trials: int) -> None:
    """There is no third reply to tell a broken check by, and the reason names the exception."""
    criterion = tw.Criterion("queue", names_queue, never_fails=True)
    result = run(lambda _: CUT_OFF, criterion, trials=trials)

    assert result.decision is tw.Decision.FAIL
    assert {one.outcomes[0].result.explanation for one in result.trials} == {
        "check raised JSONDecodeError"
    }


def test_one_malformed_first_reply_fails_what_must_never_fail() -> None:
    """Replies after it show that the check works, so that the failure is the reply's."""
    service = answer_in_turn(CUT_OFF, WHOLE)
    result = run(service, tw.Criterion("queue", names_queue, never_fails=True))

    assert result.decision is tw.Decision.FAIL
    assert len(result.trials) == 2


@pytest.mark.parametrize("check", [uses_unknown_name, imports_nothing])
def test_a_mistake_in_the_code_of_a_check_stops_the_run_at_its_first_reply(check: Any) -> None:
    """No reply can be the cause of a name, a module or a syntax that does not exist."""
    calls: list[Any] = []

    def service(question: Any) -> str:
        calls.append(question)
        return WHOLE

    with pytest.raises(tw.BrokenCheck, match="is broken: it raised"):
        run(service, tw.Criterion("c", check, at_least=0.5))
    assert len(calls) == 1


def test_a_check_behind_one_that_fails_has_not_seen_the_reply() -> None:
    """It may rely on the first: what it raises then neither counts nor breaks it."""
    replies = ["no json"] * 5 + [WHOLE]
    criterion = tw.Criterion(
        "queue", [tw.json_path("$.queue"), names_queue], at_least=0.5, trials=40
    )
    result = run(answer_in_turn(*replies), criterion)

    assert result.decision is tw.Decision.PASS
    assert result.verdict.findings[0].tally.failed == 5


@pytest.mark.parametrize("concurrency", [1, 4])
def test_which_replies_are_the_first_depends_on_their_order_and_not_on_their_speed(
    concurrency: int,
) -> None:
    """The first reply can be checked and comes last; three that cannot come back before it."""
    replies: dict[int, str] = dict.fromkeys((1, 2, 3), CUT_OFF)

    class Service:
        async def call(self, trial: Any) -> tw.Reply:
            import asyncio

            await asyncio.sleep(0.3 if trial.index == 0 else 0)
            return tw.Reply(value=replies.get(trial.index, WHOLE), latency_s=0.0)

        async def aclose(self) -> None:
            pass

    criterion = tw.Criterion("queue", names_queue, at_least=0.5, trials=40)
    result = run(Service(), criterion, concurrency=concurrency)

    assert result.decision is tw.Decision.PASS
    assert result.verdict.findings[0].tally.failed == 3


def test_a_comparison_stops_at_a_broken_check() -> None:
    """Neither arm is called worse for a check that cannot read any reply."""
    criterion = tw.Criterion("queue", names_queue, at_least=0.5)
    arms = [tw.Contract(name, lambda _: CUT_OFF, [criterion]) for name in ("a", "b")]

    with pytest.raises(tw.BrokenCheck, match="each of the first 3 replies"):
        tw.compare(*arms, inputs=["q"], store=None, trials=40, progress=False)


def test_the_replies_of_a_broken_check_are_in_the_journal(tmp_path: Path) -> None:
    """They were paid for, the one that showed the check to be broken included."""
    with pytest.raises(tw.BrokenCheck):
        run(lambda _: WHOLE, tw.Criterion("c", uses_unknown_name, at_least=0.5), store=tmp_path)

    (folder,) = (tmp_path / "runs").iterdir()
    kept = [line for one in folder.glob("journal*.jsonl") for line in one.read_text().splitlines()]
    assert [WHOLE] == [json.loads(line)["reply"] for line in kept]
    assert not (folder / "record.json").exists()


def test_threads_do_not_lose_the_traceback(tmp_path: Path) -> None:
    """At concurrency the traceback of a raising check is kept as well."""

    def service(_: Any) -> str:
        time.sleep(0.001)
        return CUT_OFF

    with pytest.raises(tw.BrokenCheck) as caught:
        run(service, tw.Criterion("c", names_queue, at_least=0.5), concurrency=4, store=tmp_path)
    assert "names_queue" in caught.value.traceback
