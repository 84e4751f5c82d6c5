"""A contract whose verdict is settled by a FAIL stops, unless it is told to go on."""

from __future__ import annotations

from typing import Any

import trialwise as tw


def _run(**options: Any) -> Any:
    contract = tw.Contract(
        "x",
        lambda _: "no",
        [
            tw.Criterion("bad", tw.contains("yes"), at_least=0.9),
            tw.Criterion("slow", tw.contains("n"), at_least=0.9, trials=200),
        ],
    )
    given = {"store": None, "progress": False, "seed": 1} | options
    return tw.run(contract, inputs=list("abcd"), **given)


def test_a_fail_ends_the_run_and_leaves_the_others_undecided() -> None:
    result = _run()
    bad, slow = result.verdict.findings
    assert (result.decision, bad.decision, slow.decision) == ("FAIL", "FAIL", "INCONCLUSIVE")
    assert len(result.record.trials) == bad.tally.trials < 20
    assert result.verdict.stop == "settled"
    assert "settled" in slow.statement


def test_keep_going_decides_every_criterion() -> None:
    result = _run(keep_going=True)
    assert [str(one.decision) for one in result.verdict.findings] == ["FAIL", "PASS"]
    assert result.verdict.findings[0].decided_at is not None


def test_an_advisory_fail_settles_nothing_and_neither_does_a_pass() -> None:
    contract = tw.Contract(
        "x",
        lambda _: "no",
        [
            tw.Criterion("quick", tw.contains("n"), at_least=0.5),
            tw.Criterion("slow", tw.contains("n"), at_least=0.95),
        ],
    )
    result = tw.run(contract, inputs=["a"], store=None, progress=False, seed=1)
    assert [str(one.decision) for one in result.verdict.findings] == ["PASS", "PASS"]


def test_a_settled_run_is_finished_and_can_be_decided_again() -> None:
    from trialwise.runtime.verifying import verify

    assert verify(_run().record).matches


def test_a_criterion_that_decides_each_input_names_all_that_fail() -> None:
    contract = tw.Contract(
        "x",
        lambda value: "no" if value in "ac" else "yes",
        [tw.Criterion("each", tw.contains("yes"), at_least=0.5, each_input=True)],
    )
    result = tw.run(contract, inputs=list("abcd"), store=None, progress=False, seed=1)
    found = [str(one.decision) for one in result.verdict.findings[0].by_input]
    assert found == ["FAIL", "PASS", "FAIL", "PASS"]
