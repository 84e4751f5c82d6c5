"""Mistakes that the best-known tools of the field make, and that cannot happen here."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest

import trialwise as tw
from trialwise.model.evidence import Tally
from trialwise.model.plan import Limits
from trialwise.procedures.criterion_rows import Stream
from trialwise.procedures.regression import decide_regression
from trialwise.services import HttpFailure
from trialwise.stats.regression_cutoffs import design_false_alarm
from trialwise.stats.sequential import SequentialDesign


def good(text: str) -> bool:
    return text == "good"


def run(service: Any, *criteria: tw.Criterion, folder: Path, **settings: Any) -> tw.Result:
    given = {"inputs": ["a"], "seed": 1, **settings}
    inputs = given.pop("inputs")
    contract = tw.Contract("c", service, criteria, sampling=inputs)
    return tw.run(contract, store=folder / "store", baselines=folder / "baselines", **given)


def test_a_case_that_always_fails_is_not_hidden_by_nine_that_pass(tmp_path: Path) -> None:
    """Pooled, nine of ten is 90 %; judged input by input, the tenth FAILs and is named."""

    def service(question: str) -> str:
        return "bad" if question == "case-3" else "good"

    inputs = [tw.Input(id=f"case-{n}", value=f"case-{n}") for n in range(10)]
    each = tw.Criterion("each", good, at_least=0.8, each_input=True)
    result = run(service, each, folder=tmp_path, inputs=inputs)
    finding = result.verdict.findings[0]
    assert result.decision is tw.Decision.FAIL
    assert "case-3 (0/" in finding.statement
    decided = {part.input_id: part.decision for part in finding.by_input}
    assert decided.pop("case-3") is tw.Decision.FAIL
    assert set(decided.values()) == {tw.Decision.PASS}


def test_the_number_of_trials_that_was_asked_for_is_run(tmp_path: Path) -> None:
    """`trials` is not ignored: 57 are asked for, 57 calls are made and counted."""
    calls = itertools.count()

    def service(_question: str) -> str:
        next(calls)
        return "good"

    criterion = tw.Criterion("c", good, at_least=0.5)
    result = run(service, criterion, folder=tmp_path, trials=57, curtail=False)
    assert next(calls) == 57
    assert result.verdict.findings[0].tally.trials == 57


def test_nothing_changed_is_called_a_regression_at_most_as_often_as_stated() -> None:
    """10 against 10 at 80 %: a tenth of a point estimate's drop would alarm in 26 of 100 runs."""
    for rate in (0.5, 0.7, 0.8, 0.9, 0.95):
        assert design_false_alarm(rate, 10, 10, alpha=0.05, rule="exact") <= 0.05


@pytest.mark.parametrize("rule", ["wilson", "exact"])
def test_more_successes_never_make_a_regression_verdict_worse(rule: Any) -> None:
    """21 of 30 cannot PASS where 22 of 30 does not."""
    order = [tw.Decision.FAIL, tw.Decision.INCONCLUSIVE, tw.Decision.PASS]
    found = [
        decide_regression(
            "c", Tally(trials=30, passed=k), Tally(trials=30, passed=27), rule=rule
        ).decision
        for k in range(31)
    ]
    ranks = [order.index(decision) for decision in found if decision is not None]
    assert len(ranks) == 31
    assert ranks == sorted(ranks)


def test_history_decides_nothing_before_the_first_new_trial(tmp_path: Path) -> None:
    """A healthy baseline does not warm a test up: a regressed build is seen, on its own trials."""
    criterion = tw.Criterion("c", good, no_worse_than="baseline")
    contract = tw.Contract("c", lambda _question: "good", [criterion], sampling=["a"])
    stores: dict[str, Any] = {"store": tmp_path / "store", "baselines": tmp_path / "baselines"}
    tw.measure(contract, trials=200, seed=1, **stores)
    broken = tw.Contract("c", lambda _question: "bad", [criterion], sampling=["a"])
    result = tw.run(broken, trials=100, seed=2, **stores)
    assert result.decision is tw.Decision.FAIL
    assert result.verdict.findings[0].tally.trials > 0


def test_a_money_budget_stops_the_run_and_keeps_every_result(tmp_path: Path) -> None:
    """Ten cents at one cent a trial: ten trials are paid, kept and reported."""

    def service(_question: str) -> tw.Reply:
        return tw.Reply(value="good", cost_usd=0.01)

    criterion = tw.Criterion("c", good, at_least=0.9)
    budget = tw.Budget(usd=0.10)
    result = run(service, criterion, folder=tmp_path, trials=100, budget=budget)
    assert result.decision is tw.Decision.INCONCLUSIVE
    assert result.verdict.stop is tw.model.StopReason.MONEY_BUDGET
    assert len(result.record.trials) == 10
    assert result.verdict.spending.usd == pytest.approx(0.10)
    assert result.verdict.findings[0].tally.passed == 10


def test_looking_after_every_trial_changes_no_fixed_verdict() -> None:
    """A fixed design stops only where the rest cannot matter: every sequence of 10, enumerated."""
    limits = Limits(cap=10, cutoff=8)
    for outcomes in itertools.product([True, False], repeat=10):
        stream = Stream(limits)
        for place, passed in enumerate(outcomes):
            stream.add(place, passed=passed)
        whole = tw.Decision.PASS if sum(outcomes) >= 8 else tw.Decision.FAIL
        assert stream.decision is whole


def test_a_coin_is_not_rerun_until_it_is_green() -> None:
    """p = 0.5 passes `--reruns 3` in 94 of 100 runs; a requirement of 90 % in fewer than 1."""
    design = SequentialDesign.strict(0.9)
    assert design.operating_characteristic(0.5).passes < 0.001


def test_repeats_of_one_case_are_trials(tmp_path: Path) -> None:
    """5 of 5 on one input is [.549, 1] with n = 5, not [.05, 1] with n = 1: 0.05^(1/n)."""
    criterion = tw.Criterion("c", good, at_least=0.5)
    result = run(lambda _question: "good", criterion, folder=tmp_path, trials=5, curtail=False)
    interval = result.verdict.findings[0].interval
    assert interval is not None
    assert interval.low == pytest.approx(0.05 ** (1 / 5), abs=1e-6)


def test_one_busy_server_or_odd_reply_costs_one_trial(tmp_path: Path) -> None:
    """An exception, None, bytes and a strange object are failures; a 429 is asked again."""
    odd: list[Any] = [HttpFailure("busy", status=429), ValueError("boom"), None, b"\xff", object()]
    replies = iter(odd)

    def service(_question: str) -> Any:
        reply = next(replies, "good")
        if isinstance(reply, Exception):
            raise reply
        return reply

    criterion = tw.Criterion("c", good, at_least=0.5)
    result = run(service, criterion, folder=tmp_path, trials=40, curtail=False)
    finding = result.verdict.findings[0]
    assert (finding.tally.trials, finding.tally.passed) == (40, 36)
    assert finding.breakdown is not None
    assert finding.breakdown.errors == {}
    assert finding.per_protocol is not None
    assert (finding.per_protocol.trials, finding.per_protocol.passed) == (40, 36)


def test_a_service_that_leaves_the_interpreter_does_not_end_the_run(tmp_path: Path) -> None:
    """`sys.exit(0)` is a failure of the service, and there is a verdict."""

    def service(_question: str) -> str:
        raise SystemExit(0)

    result = run(service, tw.Criterion("c", good, at_least=0.9), folder=tmp_path)
    assert result.decision is tw.Decision.FAIL
    assert "sys.exit" in result.record.trials[0].error


def measured(tmp_path: Path, criterion: tw.Criterion, **contract: Any) -> tuple[Path, Path]:
    store, baselines = tmp_path / "store", tmp_path / "baselines"
    made = tw.Contract("c", lambda _question: "good", [criterion], sampling=["a"], **contract)
    tw.measure(made, trials=100, seed=1, store=store, baselines=baselines)
    return store, baselines


def test_a_drifted_covariate_refuses_the_run_instead_of_dropping_the_criterion(
    tmp_path: Path,
) -> None:
    """An unmatched critical covariate: refused under verification, kept with a caveat in smoke."""
    criterion = tw.Criterion("c", good, no_worse_than="baseline")
    eu = tw.model.Covariate(name="region", kind="region", value="EU", critical=True)
    store, baselines = measured(tmp_path, criterion, covariates=[eu])
    us = tw.model.Covariate(name="region", kind="region", value="US", critical=True)
    contract = tw.Contract(
        "c", lambda _question: "good", [criterion], sampling=["a"], covariates=[us]
    )
    with pytest.raises(tw.DesignRefused, match="region"):
        tw.run(contract, trials=50, store=store, baselines=baselines)
    smoke = tw.run(contract, trials=50, intent="smoke", store=store, baselines=baselines)
    assert [finding.criterion for finding in smoke.verdict.findings] == ["c"]
    assert any("region" in guard.message for guard in smoke.verdict.guards)


def test_a_tampered_baseline_is_an_error_and_never_a_pass(tmp_path: Path) -> None:
    """One digit changed by hand is found by the checksum."""
    criterion = tw.Criterion("c", good, no_worse_than="baseline")
    store, baselines = measured(tmp_path, criterion)
    (file,) = baselines.rglob("*.json")
    file.write_text(file.read_text().replace('"passed": 100', '"passed": 10'))
    contract = tw.Contract("c", lambda _question: "good", [criterion], sampling=["a"])
    with pytest.raises(tw.errors.BaselineError, match=file.name):
        tw.run(contract, trials=50, store=store, baselines=baselines)


def test_a_criterion_redefined_under_its_old_name_is_refused(tmp_path: Path) -> None:
    """The baseline measured another property: the comparison does not exist."""
    store, baselines = measured(tmp_path, tw.Criterion("c", good, no_worse_than="baseline"))
    other = tw.Criterion("c", tw.contains("g"), no_worse_than="baseline")
    contract = tw.Contract("c", lambda _question: "good", [other], sampling=["a"])
    with pytest.raises(tw.DesignRefused, match="another definition"):
        tw.run(contract, trials=50, store=store, baselines=baselines)


@pytest.mark.parametrize("name", ["../../evil", "/etc/passwd", "..", "a\x00b", "COM1", "x" * 500])
def test_no_contract_name_leaves_its_folder(tmp_path: Path, name: str) -> None:
    """Names are made safe wherever they become files."""
    inside = tmp_path / "inside"
    criterion = tw.Criterion("c", good, no_worse_than="baseline")
    contract = tw.Contract(name, lambda _question: "good", [criterion], sampling=["a"])
    stores: dict[str, Any] = {"store": inside / "store", "baselines": inside / "baselines"}
    tw.measure(contract, trials=30, seed=1, **stores)
    tw.run(contract, trials=20, seed=2, intent="smoke", **stores)
    assert [entry.name for entry in tmp_path.iterdir()] == ["inside"]
    assert list(inside.rglob("*.json"))


def test_three_cycled_prompts_do_not_speak_for_a_population(tmp_path: Path) -> None:
    """100 trials of 3 inputs under a superpopulation claim: refused, with the way out."""
    claim = tw.model.Claim(
        population=tw.model.PopulationClaim.SUPERPOPULATION, population_name="traffic"
    )
    contract = tw.Contract(
        "c",
        lambda _question: "good",
        [tw.Criterion("c", good, at_least=0.9)],
        sampling=["a", "b", "c"],
        claim=claim,
    )
    with pytest.raises(tw.DesignRefused, match="estimator"):
        tw.run(contract, trials=100, store=tmp_path)


@pytest.mark.slow
def test_a_sorted_corpus_does_not_fail_an_unchanged_service(tmp_path: Path) -> None:
    """Hard inputs first: the issue order is drawn at random, so the verdict is as stated."""
    inputs = [f"hard-{n}" for n in range(10)] + [f"easy-{n}" for n in range(90)]
    criterion = tw.Criterion("c", good, at_least=0.85)

    def service(question: str) -> str:
        return "bad" if question.startswith("hard") else "good"

    decisions = [
        run(service, criterion, folder=tmp_path, inputs=inputs, seed=seed).decision
        for seed in random.Random(5).sample(range(10**6), 40)
    ]
    # The true mean is 0.90: FAIL has probability below 0.05, so 40 runs with 10 or more FAILs
    # would be a one in ten million event.
    assert decisions.count(tw.Decision.FAIL) < 10
