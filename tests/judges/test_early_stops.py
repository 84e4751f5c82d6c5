"""A judge whose errors were measured may end a run early, at looks that share the error limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import trialwise as tw
from trialwise.engine.ports import ServiceError
from trialwise.judges import Calibration, judge
from trialwise.model.evidence import StopReason
from trialwise.model.trial import ErrorClass
from trialwise.model.verdict import Decision
from trialwise.runtime.verifying import verify
from trialwise.stats import Confusion, decide_judged
from trialwise.stores.runs import RunStore

Start = Callable[[Callable[[Any], Any]], Any]
Says = Callable[..., str]
LABELS = Confusion(true_pass=60, false_pass=1, true_fail=58, false_fail=1)


def run(asking: Any, *, service: Any = str.upper, trials: int = 100, **options: Any) -> Any:
    """Run one judged criterion."""
    contract = tw.Contract(
        "agent", service, [tw.Criterion("judged", asking, at_least=0.5)], sampling=["yes", "no"]
    )
    return tw.run(contract, trials=trials, seed=3, progress=False, **{"store": None} | options)


def calibrated(one: Any, **options: Any) -> Any:
    """Make a judge whose errors were measured."""
    plain = judge("r", one.service(), **options)
    known = Calibration(judge=plain.identity, gold="g", provenance="p", confusion=LABELS)
    return replace(plain, calibration=known)


@pytest.mark.requirement(
    "statistical-ci judges",
    "A criterion with a judge stops early.",
    "looks after a quarter and a half of the trials, by default where a judge's errors are known",
)
@pytest.mark.parametrize(("vote", "decision"), [(True, "PASS"), (False, "FAIL")])
def test_a_clear_rate_is_decided_at_the_first_look(
    juror: Start, says: Says, tmp_path: Path, *, vote: bool, decision: str
) -> None:
    """After a quarter of the trials, by the corrected rate at 5 % of the error limit."""
    result = run(calibrated(juror(lambda _: says(vote))), store=tmp_path)

    (found,) = result.verdict.findings
    assert Decision(decision) is found.decision is result.verdict.decision
    assert StopReason.DECIDED is found.stop
    assert 25 == found.tally.trials
    assert len(result.record.trials) < 100
    level = 0.05 * 0.05
    assert found.judged == decide_judged(25 * vote, 25, LABELS, 0.5, confidence=1 - 2 * level)
    assert verify(result.record).matches
    (stored,) = RunStore(tmp_path).list()
    assert verify(RunStore(tmp_path).load(stored.run_id)).matches


def test_a_look_that_was_changed_by_hand_is_found(juror: Start, says: Says) -> None:
    """`show --verify` derives the counts of every look again."""
    record = run(calibrated(juror(lambda _: says(True)))).record
    (plan,) = record.plan.criteria
    first, *others = plan.judging.looks
    looks = (replace(first, accept=first.accept + 1), *others)
    changed = replace(plan, judging=replace(plan.judging, looks=looks))

    checked = verify(replace(record, plan=replace(record.plan, criteria=(changed,))))

    assert any(".looks" in one.path for one in checked.differences)


def test_a_close_rate_takes_every_trial(juror: Start, says: Says) -> None:
    """The last decision has 85 % of the error limit, since the looks may have spent the rest."""
    calls = count()
    result = run(calibrated(juror(lambda _: says(61 * next(calls) % 100 < 61))))

    (found,) = result.verdict.findings
    assert StopReason.COMPLETE is found.stop
    assert 100 == found.tally.trials
    level = 0.85 * 0.05
    expected = decide_judged(61, 100, LABELS, 0.5, confidence=1 - 2 * level)
    assert found.judged == expected


def test_curtail_false_asks_for_all_trials(juror: Start, says: Says) -> None:
    """And then the last decision has the whole error limit."""
    result = run(calibrated(juror(lambda _: says(True))), curtail=False)

    (found,) = result.verdict.findings
    assert 100 == found.tally.trials == len(result.record.trials)
    assert decide_judged(100, 100, LABELS, 0.5, confidence=0.9) == found.judged


def fail_once(text: str, index: int) -> str:
    """Fail at the first trial, so that no judge sees a reply."""
    if index == 0:
        raise ServiceError("out of order", ErrorClass.NONE)
    return text


def test_a_trial_that_no_judge_saw_puts_the_decision_off(juror: Start, says: Says) -> None:
    """The counts of a look are those of judged replies: a call that failed is none."""
    result = run(calibrated(juror(lambda _: says(True))), service=fail_once)

    (found,) = result.verdict.findings
    assert Decision.PASS is found.decision
    assert (99, 100) == (found.tally.passed, found.tally.trials)


@pytest.mark.parametrize("concurrency", [1, 7])
def test_later_trouble_does_not_undo_a_look(juror: Start, says: Says, concurrency: int) -> None:
    """What decides is the order of inputs, not what happens to have come in."""

    def fail_later(text: str, index: int) -> str:
        if index == 26:
            raise ServiceError("out of order", ErrorClass.NONE)
        return text

    result = run(
        calibrated(juror(lambda _: says(True))), service=fail_later, concurrency=concurrency
    )

    (found,) = result.verdict.findings
    assert (25, StopReason.DECIDED) == (found.tally.trials, found.stop)


@pytest.mark.parametrize(("passes", "decision"), [(True, "PASS"), (False, "FAIL")])
def test_an_advisory_judge_that_is_down_changes_no_verdict(
    juror: Start, no_waiting: Any, *, passes: bool, decision: str
) -> None:
    """Neither the decision of the others nor how many trials they take."""

    def decide(*checks: tw.Criterion) -> Any:
        contract = tw.Contract("agent", str.upper, checks, sampling=["yes", "no"])
        return tw.run(contract, seed=3, store=None, progress=False)

    down = judge("r", juror(lambda _: 500).service(), retries=0, clock=no_waiting)
    loud = tw.Criterion("loud", str.isupper if passes else str.islower, at_least=0.9)
    alone = decide(loud)

    beside = decide(tw.Criterion("judged", down, at_least=0.5), loud)

    assert Decision(decision) is alone.verdict.decision is beside.verdict.decision
    assert alone.verdict.findings[-1].tally == beside.verdict.findings[-1].tally
