"""Claims about a population, from the suite to the verdict: what counts as a draw of its own."""

from __future__ import annotations

import io
import math
from pathlib import Path
from random import Random
from typing import Any

import pytest

import trialwise as tw
from trialwise.errors import DesignRefused
from trialwise.model.claim import Estimator, PopulationClaim, TargetEstimand
from trialwise.runtime.verifying import verify
from trialwise.stats.cluster_estimators import ClusterEstimate

DRAWN = tw.model.Claim(
    population=PopulationClaim.SUPERPOPULATION,
    population_name="tickets",
    representativeness="random draw",
)


def contract(claim: tw.model.Claim, service: Any = None, **asked: Any) -> tw.Contract:
    criterion = tw.Criterion("r", tw.contains("ok"), **(asked or {"at_least": 0.9}))
    return tw.Contract("a", service or (lambda _: "ok"), [criterion], claim=claim)


def run(one: tw.Contract, inputs: Any, **settings: Any) -> tw.Result:
    return tw.run(one, inputs=inputs, progress=False, **{"store": None, **settings})


def text(result: tw.Result) -> str:
    stream = io.StringIO()
    result.show(transparent=True, stream=stream)
    return " ".join(stream.getvalue().split())


# More than one trial of an input


def test_two_trials_of_each_input_are_refused_about_a_population() -> None:
    """Answers that never vary pass 15 × 2 with P(all 15 good) = 0.9^15 = 21 %, not 5 %."""
    assert 0.9**15 == pytest.approx(0.206, abs=5e-4)
    with pytest.raises(DesignRefused, match="30 trials over 15 distinct inputs"):
        run(contract(DRAWN), [str(j) for j in range(15)], trials=30)
    rng = Random(5)
    good = {str(j): rng.random() < 0.9 for j in range(30)}
    answer = contract(DRAWN, lambda x: "ok" if good[x] else "no")
    assert run(answer, list(good), trials=30).decision is not None


def test_repeated_rows_are_one_input() -> None:
    """Five values in 100 rows: 20 trials each."""
    rows = [f"q{j}" for j in range(5)] * 20
    with pytest.raises(DesignRefused, match="100 trials over 5 distinct inputs, listed in 100 row"):
        run(contract(DRAWN), rows, trials=100)


def test_repeated_rows_are_noted_without_a_population_claim() -> None:
    result = run(contract(tw.model.Claim()), [f"q{j}" for j in range(5)] * 20, trials=100)
    shown = text(result)
    assert "100 inputs hold 5 distinct values" in shown
    assert "100, 5 distinct" in shown


def test_an_estimator_over_inputs_takes_repeated_rows_as_one() -> None:
    """60 rows of 20 values: the bound is the exact one on 20, at 95 % one-sided, not on 60."""
    claim = tw.model.Claim(
        population=PopulationClaim.SUPERPOPULATION,
        population_name="tickets",
        representativeness="random draw",
        estimator=Estimator.PROMPTS,
    )
    one = contract(claim, at_least=0.8)
    result = run(one, [f"q{j}" for j in range(20)] * 3, trials=60)
    (finding,) = result.verdict.findings
    assert isinstance(finding.estimator, ClusterEstimate)
    assert finding.estimator.prompts == 20
    assert finding.lower_bound == pytest.approx(0.05 ** (1 / 20))
    assert "at 90 %" in text(result)
    assert "95 % lower bound" in finding.statement


# The baseline of a regression


def measured(folder: Path, inputs: int, trials: int) -> tw.Contract:
    one = contract(DRAWN, no_worse_than="baseline")
    values = [f"q{j}" for j in range(inputs)]
    tw.measure(one, inputs=values, trials=trials, store=folder, baselines=folder, progress=False)
    return one


def test_a_baseline_of_few_inputs_many_times_is_no_draw_from_a_population(tmp_path: Path) -> None:
    """10 prompts, 100 times each: where prompts differ, an unchanged service FAILs in 22 %."""
    one = measured(tmp_path, 10, 1000)
    values = [f"q{j}" for j in range(200)]
    with pytest.raises(DesignRefused) as refused:
        run(one, values, trials=200, store=tmp_path, baselines=tmp_path)
    (reason,) = refused.value.reasons
    assert "1000 trials asked 10 distinct inputs, one of them 100 times" in reason
    assert "estimator" not in reason  # no estimator decides a regression: no advice in a circle


def test_a_baseline_that_asked_each_input_once_supports_a_population(tmp_path: Path) -> None:
    one = measured(tmp_path, 200, 200)
    values = [f"q{j}" for j in range(200)]
    assert str(run(one, values, trials=200, store=tmp_path, baselines=tmp_path).decision) == "PASS"


def test_the_advice_for_a_clustered_regression_can_be_followed(tmp_path: Path) -> None:
    one = measured(tmp_path, 200, 200)
    with pytest.raises(DesignRefused) as refused:
        run(one, [f"q{j}" for j in range(200)], trials=400, store=tmp_path, baselines=tmp_path)
    assert "estimator" not in str(refused.value)
    assert "400 distinct inputs" in str(refused.value)


# What is printed of an estimate


def test_a_production_weighted_rate_is_named_as_declared() -> None:
    claim = tw.model.Claim(
        estimator=Estimator.STRATIFIED, estimand=TargetEstimand.PRODUCTION_WEIGHTED
    )
    inputs = [tw.Input(id="1", value="q", weight=1), tw.Input(id="2", value="r", weight=2)]
    shown = text(run(contract(claim), inputs, trials=100))
    estimator = shown[shown.index("ESTIMATOR") :]
    assert "production-weighted" in estimator
    assert "stratum" not in estimator.split("Generalises to")[0].lower()
    # Every trial passed: 50 trials carry 2/3, so 75 are counted, at 5 % on the lower side.
    assert f"{0.05 ** (1 / 75):.4f}"[:5] in estimator
    assert "at 90 %" in estimator


# A corpus with trials that are left out


def test_a_corpus_with_excused_trials_is_decided_on_the_part_that_was_measured() -> None:
    def service(question: str) -> str:
        if question.endswith("0"):
            raise tw.ServiceError("did nothing", tw.ErrorClass.EMPTY_RUN)
        return "ok"

    claim = tw.model.Claim(population=PopulationClaim.FINITE_CORPUS)
    one = contract(claim, service, at_least=0.8)
    result = run(one, [f"q{j}" for j in range(50)], analysis="per-protocol")
    (finding,) = result.verdict.findings
    # 45 of 45 passed; if only 39 of the 50 did, no sample of 45 could be all successes.
    assert finding.tally.trials == 45
    assert math.comb(39, 45) == 0
    assert str(finding.decision) == "PASS"


@pytest.mark.parametrize(
    ("rule", "undecided", "label"),
    [
        ("exact", None, "INCONCLUSIVE"),
        ("exact", "fail", "FAIL (not shown)"),
        ("wilson", None, "FAIL (not shown)"),
        ("wilson", "inconclusive", "INCONCLUSIVE"),
    ],
)
@pytest.mark.parametrize("estimator", [Estimator.PROMPTS, Estimator.GEE])
def test_a_run_by_an_estimator_does_with_an_open_rate_what_the_plan_says(
    rule: str, undecided: str | None, label: str, estimator: Estimator
) -> None:
    """32 of 40 inputs always pass, where 80 % is required; with 10 the lower rate is shown."""
    claim = tw.model.Claim(
        population=PopulationClaim.SUPERPOPULATION,
        population_name="tickets",
        representativeness="random draw",
        estimand=TargetEstimand.PROMPT_WEIGHTED,
        estimator=estimator,
    )
    shown = []
    for good in (32, 10):
        asked = {"at_least": 0.8, "undecided": undecided}
        one = contract(claim, lambda x, good=good: "ok" if int(x) < good else "no", **asked)
        result = run(one, [str(j) for j in range(40)], trials=80, rule=rule)
        (finding,) = result.verdict.findings
        assert verify(result.record).matches
        shown.append(finding.label or str(finding.decision))

    below = "FAIL" if label == "INCONCLUSIVE" else "FAIL (shown below)"
    assert shown == [label, below]
