"""Replies of a stored run are checked again: the service is not called, and every error holds."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import trialwise as tw
from trialwise.engine.ports import ServiceError
from trialwise.errors import DesignRefused, RunNotFound
from trialwise.model.evidence import Tally, Threshold
from trialwise.model.plan import CriterionPlan
from trialwise.model.trial import ErrorClass
from trialwise.procedures.base import Counts
from trialwise.procedures.sequential import ANYTIME
from trialwise.runtime.verifying import verify
from trialwise.stores.runs import RunStore

Decision = tw.Decision


def is_small(value: dict[str, int]) -> bool:
    return value["n"] < 9


def is_positive(value: dict[str, int]) -> bool:
    return value["n"] >= 0


class Paid:
    """A service whose replies are dicts with details; it counts its calls."""

    def __init__(self, *, fails_at: int = -1, lost_at: int = -1) -> None:
        self.calls = 0
        self._fails_at, self._lost_at = fails_at, lost_at

    async def call(self, trial: Any) -> tw.Reply:
        self.calls += 1
        if trial.index == self._fails_at:
            raise RuntimeError("broke")
        if trial.index == self._lost_at:
            raise ServiceError("nobody there", ErrorClass.INFRASTRUCTURE)
        value = {"n": trial.index % 10, "long": "x" * 5000}
        return tw.Reply(value=value, latency_s=0.5, cost_usd=0.25, details={"from": trial.input})

    async def aclose(self) -> None:
        """Nothing is held."""


def contract(service: Any, *checks: Any, **asked: Any) -> tw.Contract:
    criterion = tw.Criterion("c", list(checks), **(asked or {"at_least": 0.8}))
    return tw.Contract("paid", service, [criterion]).with_inputs(["a", "b", "c"])


def make_run(store: Path, service: Any, **given: Any) -> tw.Result:
    usual: dict[str, Any] = {"store": store, "progress": False, "seed": 5, "retries": 0}
    return tw.run(contract(service, is_positive), **(usual | given))


def decide(passed: int, trials: int, required: float = 0.8) -> Decision | None:
    plan = CriterionPlan(
        criterion="c",
        procedure="ANYTIME",
        alpha=0.05,
        beta=0.05,
        trials=trials,
        threshold=Threshold(required_rate=required, alternative_rate=required),
    )
    return ANYTIME.decide(plan, Counts(tally=Tally(trials=trials, passed=passed))).decision


@pytest.mark.parametrize("required", [Fraction(1, 2), Fraction(4, 5), Fraction(9, 10)])
def test_passes_alone_pass_from_the_trial_at_which_the_mixture_reaches_its_level(
    required: Fraction,
) -> None:
    """∫₀¹ (1 − u + u/p)ⁿ du = (p⁻⁽ⁿ⁺¹⁾ − 1) / ((n + 1)(1/p − 1)) must exceed 1/0.05."""
    odds = 1 / required

    def wealth(n: int) -> Fraction:
        return (odds ** (n + 1) - 1) / ((n + 1) * (odds - 1))

    first = next(n for n in range(1, 200) if wealth(n) > 20)

    assert Decision.PASS is decide(first, first, float(required))
    assert Decision.INCONCLUSIVE is decide(first - 1, first - 1, float(required))


@pytest.mark.parametrize(("wrong", "required"), [(Decision.PASS, 0.8), (Decision.FAIL, 0.8)])
def test_no_stopping_rule_makes_a_wrong_statement_likelier_than_its_level(
    wrong: Decision, required: float
) -> None:
    """Enumerated: a run of at most 40 trials that stops as soon as the statement can be made."""
    states, reached = {0: 1.0}, 0.0
    for trials in range(1, 41):
        after: dict[int, float] = {}
        for passed, weight in states.items():
            after[passed + 1] = after.get(passed + 1, 0.0) + weight * required
            after[passed] = after.get(passed, 0.0) + weight * (1 - required)
        reached += sum(w for k, w in after.items() if decide(k, trials, required) is wrong)
        states = {k: w for k, w in after.items() if decide(k, trials, required) is not wrong}

    assert 0 < reached <= 0.05


def test_a_run_that_could_stop_early_is_decided_at_any_stopping_time(tmp_path: Path) -> None:
    """Twenty passes of twenty at 80 % are just enough there, and the page says by which rule."""
    service = Paid()
    first = make_run(tmp_path, service)
    made = service.calls
    assert first.path is not None

    scored = tw.score_run(contract(None, is_positive), first.path.name, store=tmp_path)

    assert service.calls == made
    assert len(scored.trials) == made == len(first.trials)
    (finding,) = scored.verdict.findings
    assert "ANYTIME" == finding.plan.procedure
    assert decide(made, made) is scored.decision
    told = " ".join(finding.plan.caveats)
    assert "valid at any stopping time" in told
    assert first.path.name in told
    assert verify(scored.record).matches
    assert scored.verdict.spending.usd == first.verdict.spending.usd


def test_a_number_of_trials_that_was_fixed_is_decided_by_the_exact_rule(tmp_path: Path) -> None:
    """Nothing could stop that run, so that its number depends on no outcome."""
    first = make_run(tmp_path, Paid(fails_at=4), trials=60, curtail=False)
    assert first.path is not None

    scored = tw.score_run(contract(None, is_small), first.path, store=tmp_path)

    (finding,) = scored.verdict.findings
    assert "COMPLIANCE" == finding.plan.procedure
    # Of 60 trials six have n = 9, and one that broke is a failure of the service again.
    assert (60, 53) == (finding.tally.trials, finding.tally.passed)
    (broke,) = [one for one in scored.trials if one.latency_s is None]
    assert "RuntimeError: broke" == broke.error
    assert RunStore(tmp_path).open(scored.path or "").scored == first.path.name
    assert verify(scored.record).matches


def test_checks_see_the_reply_as_it_was(tmp_path: Path) -> None:
    """Its value, its details, its cost and its latency, and the input with its expected answer."""
    first = make_run(tmp_path, Paid(), trials=20, curtail=False)
    seen: list[tw.Reply] = []

    def look(reply: tw.Reply) -> bool:
        seen.append(reply)
        return True

    assert first.path is not None
    tw.score_run(contract(None, look, never_fails=True), first.path, store=tmp_path)

    assert len(seen) == 20
    assert {one.cost_usd for one in seen} == {0.25}
    assert {one.latency_s for one in seen} == {0.5}
    assert all(one.details["from"] == one.details["input"] for one in seen)
    assert sorted(one.value["n"] for one in seen) == sorted([*range(10)] * 2)
    assert {len(one.value["long"]) for one in seen} == {5000}


def test_what_never_reached_the_service_is_left_out(tmp_path: Path) -> None:
    """It has no reply; a run that was not decided on it is scored without it."""
    first = make_run(tmp_path, Paid(lost_at=3), trials=40, curtail=False)
    assert first.path is not None
    assert len(first.trials) == 41

    scored = tw.score_run(contract(None, is_positive), first.path, store=tmp_path)

    assert 40 == len(scored.trials) == scored.verdict.findings[0].tally.passed


def test_several_samplings_keep_their_own_replies(tmp_path: Path) -> None:
    """One input in two samplings is two questions."""
    criteria = [
        tw.Criterion("one", tw.predicate(is_positive), at_least=0.5, sampling="s1"),
        tw.Criterion("two", tw.predicate(is_small), at_least=0.5, sampling="s2"),
    ]
    samplings = {"s1": ["a"], "s2": ["a", "b"]}
    whole = tw.Contract("paid", Paid(), criteria, sampling=samplings)
    first = tw.run(
        whole, store=tmp_path, progress=False, seed=5, trials={"s1": 10, "s2": 20}, curtail=False
    )
    assert first.path is not None

    scored = tw.score_run(whole.with_service(None), first.path, store=tmp_path)

    tallies = [(one.tally.trials, one.tally.passed) for one in scored.verdict.findings]
    assert [(10, 10), (20, 18)] == tallies


@pytest.mark.parametrize(
    "criterion",
    [
        tw.Criterion("c", is_positive, at_least=0.8, each_input=True),
        tw.Criterion("c", is_positive, mean_at_least=0.5),
        tw.Criterion("c", is_positive, no_worse_than="baseline"),
    ],
)
def test_a_question_without_such_a_rule_is_refused(tmp_path: Path, criterion: tw.Criterion) -> None:
    """By name, and before anything is written."""
    first = make_run(tmp_path, Paid())
    asked = tw.Contract("paid", None, [criterion]).with_inputs(["a", "b", "c"])
    assert first.path is not None

    with pytest.raises(DesignRefused, match=r"the run could stop early.*: c$"):
        tw.score_run(asked, first.path, store=tmp_path)
    assert 1 == len(RunStore(tmp_path).list())


def test_replies_to_other_inputs_are_refused(tmp_path: Path) -> None:
    """A reply answers what was asked, whatever the input is called."""
    first = make_run(tmp_path, Paid())
    assert first.path is not None
    other = contract(None, is_positive).with_inputs(["a", "b", "changed"])

    with pytest.raises(RunNotFound, match="is not the one that"):
        tw.score_run(other, first.path, store=tmp_path)


def test_replies_that_json_cannot_hold_are_named(tmp_path: Path) -> None:
    """They are shown as text, and no check could be given that text for the reply."""
    first = tw.run(
        contract(lambda _: {1, 2}, lambda value: bool(value)),  # noqa: PLW0108 - a set is given
        store=tmp_path,
        progress=False,
    )
    assert first.path is not None

    with pytest.raises(RunNotFound, match="are not kept whole"):
        tw.score_run(contract(None, is_positive), first.path, store=tmp_path)


def test_a_run_of_an_earlier_version_says_that_its_replies_were_cut(tmp_path: Path) -> None:
    """Its plan does not say that replies are kept whole."""
    first = make_run(tmp_path, Paid())
    assert first.path is not None
    head = json.loads((first.path / "plan.json").read_text())
    del head["replies"], head["checksum"]
    (first.path / "plan.json").write_text(json.dumps(head))

    with pytest.raises(RunNotFound, match="earlier version"):
        tw.score_run(contract(None, is_positive), first.path, store=tmp_path)
