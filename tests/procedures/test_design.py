"""From a contract to a plan: what plain settings mean, and what is refused before a trial."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from trialwise.errors import DesignRefused, InvalidArgument
from trialwise.model.baseline import Baseline, CriterionBaseline
from trialwise.model.claim import (
    Claim,
    Estimator,
    Intent,
    PopulationClaim,
    Sampling,
    SamplingMode,
    SamplingRole,
)
from trialwise.model.contract import Contract, Latency
from trialwise.model.criterion import Criterion, Origin
from trialwise.model.options import RunOptions
from trialwise.model.plan import Plan
from trialwise.procedures.run_plan import plan_run
from trialwise.procedures.selection import reference_of
from trialwise.stats.sequential.bound import fixed_size
from trialwise.stats.sequential.design import SequentialDesign

INPUTS = ["a", "b", "c", "d"]


def holds(text: str) -> bool:
    return bool(text)


def criterion(name: str = "c", **given: Any) -> Criterion:
    return Criterion(name, holds, **(given or {"at_least": 0.9}))


def baseline(passed: int = 951, trials: int = 1000, **given: Any) -> Baseline:
    observed = CriterionBaseline(trials=trials, passed=passed, structure="s")
    return Baseline(
        identifier="b",
        contract="contract",
        created_at=datetime(2026, 4, 1, tzinfo=UTC),
        criteria={"c": observed},
        **given,
    )


def plan(*criteria: Criterion, **given: Any) -> Plan:
    known = given.pop("baseline", None)
    about: dict[str, Any] = {"sampling": INPUTS}
    about |= {key: given.pop(key) for key in ("claim", "latency", "sampling") if key in given}
    contract = Contract("contract", holds, criteria or (criterion(),), **about)
    measuring = given.pop("measuring", False)
    return plan_run(
        contract,
        RunOptions(**given),
        seed=7,
        structure={one.name: "s" for one in contract.criteria},
        fingerprints=dict.fromkeys(contract.samplings, "f"),
        baseline=known,
        references={} if known is None else {"c": reference_of(known, "c", {})},
        measuring=measuring,
    )


def refused(*criteria: Criterion, **given: Any) -> str:
    with pytest.raises(DesignRefused) as caught:
        plan(*criteria, **given)
    return str(caught.value)


# --- What plain settings mean ---------------------------------------------------------------------


def test_a_required_rate_alone_is_decided_early_at_the_fewest_trials() -> None:
    """`at_least: 90%` is sequential with both errors, 5 %, at 90 %, and no margin."""
    (found,) = plan().criteria
    assert ("SEQUENTIAL", "sequential/strict/2") == (found.procedure, found.decision_rule)
    design = found.design
    assert isinstance(design, SequentialDesign)
    assert (0.9, 0.9) == (design.p0, design.p1)
    assert (0.05, 0.05) == (design.alpha, design.beta)
    assert design.operating_characteristic(0.95).passes >= 0.8


@pytest.mark.slow
def test_a_margin_is_decided_within_twice_the_fixed_sample() -> None:
    """`margin: 10%` tells 90 % from 80 % with the errors that are asked for."""
    (found,) = plan(criterion(at_least=0.9, margin=0.1, power=0.8)).criteria
    design = found.design
    assert isinstance(design, SequentialDesign)
    assert (0.9, 0.8, 0.05, 0.2) == (design.p0, design.p1, design.alpha, design.beta)
    assert 2 * fixed_size(0.9, 0.8, alpha=0.05, beta=0.2).trials == found.trials
    assert design.always_decides


@pytest.mark.slow
def test_a_margin_takes_few_trials_where_services_are() -> None:
    """A perfect service passes 90 against 80 % after 11 trials, and both errors hold exactly."""
    (found,) = plan(criterion(at_least=0.9, margin=0.1, power=0.8)).criteria
    design = found.design
    assert isinstance(design, SequentialDesign)
    assert next(n for n, most in enumerate(design.accept) if most >= 0) == 11
    for rate, verdict, level in ((0.9, "FAIL", 0.05), (0.8, "PASS", 0.2)):
        states, shares = {0: 1.0}, {"PASS": 0.0, "FAIL": 0.0}
        for n in range(1, design.cap + 1):
            after: dict[int, float] = {}
            for failures, weight in states.items():
                for f, chance in ((failures, rate), (failures + 1, 1 - rate)):
                    after[f] = after.get(f, 0.0) + weight * chance
            shares["PASS"] += sum(w for f, w in after.items() if f <= design.accept[n])
            shares["FAIL"] += sum(w for f, w in after.items() if f >= design.reject[n])
            states = {f: w for f, w in after.items() if design.accept[n] < f < design.reject[n]}
        assert shares[verdict] <= level + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "alpha", "beta"),
    [
        ({}, 0.05, 0.05),
        ({"confidence": 0.9}, 0.1, 0.1),
        ({"alpha": 0.01}, 0.01, 0.05),
        ({"beta": 0.2}, 0.05, 0.2),
        ({"confidence": 0.99, "beta": 0.1}, 0.01, 0.1),
    ],
)
def test_confidence_sets_both_errors_and_alpha_and_beta_one_each(
    given: dict[str, Any], alpha: float, beta: float
) -> None:
    """A wrong FAIL is alpha's, a wrong PASS is beta's."""
    (found,) = plan(criterion(at_least=0.9, max_trials=60, **given)).criteria
    assert (alpha, beta) == (found.alpha, found.beta)


@pytest.mark.slow
def test_an_expensive_promise_needs_consent() -> None:
    """99.9 % takes 2,995 passing trials at least: refused with the choices in numbers."""
    assert 0.999**2995 <= 0.05 < 0.999**2994
    message = refused(criterion(at_least=0.999))
    assert "99.9 % needs about 3,000" in message
    assert "max_trials: 8100" in message
    assert "margin: 1%" in message
    (found,) = plan(criterion(at_least=0.999, margin=0.01)).criteria
    assert isinstance(found.design, SequentialDesign)
    assert found.design.p1 == 0.989


@pytest.mark.slow
def test_max_trials_is_the_cap() -> None:
    """Of the run, or of the criterion where it says its own."""
    own = criterion("own", at_least=0.9, max_trials=40)
    assert [30, 40] == [one.trials for one in plan(criterion(), own, max_trials=30).criteria]


def test_a_fixed_number_of_trials_is_compliance_with_its_cutoff() -> None:
    """`at_least` with `trials: 100` passes with at least 95 under the Wilson rule (§3.6)."""
    (found,) = plan(trials=100, rule="wilson").criteria
    assert ("COMPLIANCE", 100, 95) == (found.procedure, found.trials, found.cutoff)
    (exact,) = plan(trials=100).criteria
    assert exact.cutoff == 96


def test_a_baseline_is_a_regression() -> None:
    """87 of 100 against 951 of 1000: cutoff 91 (§3.4)."""
    (found,) = plan(criterion(no_worse_than="baseline"), trials=100, baseline=baseline()).criteria
    assert ("REGRESSION", 91) == (found.procedure, found.cutoff)
    assert found.threshold.origin is Origin.EMPIRICAL
    assert found.threshold.baseline is not None


def test_a_regression_sizes_itself_to_see_its_margin() -> None:
    """Without `trials` it takes as many as see ten points with power 0.80."""
    (found,) = plan(criterion(no_worse_than="baseline"), baseline=baseline()).criteria
    assert found.cutoff is not None
    assert found.design is not None
    power = found.design.power(0.851)  # type: ignore[union-attr]
    assert power is not None
    assert power >= 0.80
    assert found.trials < 150


def test_never_fails_rides_on_the_trials_of_the_others() -> None:
    """Alone it needs a number of its own; beside others it asks for none."""
    silent = criterion("o", never_fails=True)
    both = plan(criterion(), silent)
    assert [False, True] == [one.counting.rides_along for one in both.criteria]
    (alone,) = plan(silent).criteria
    assert (False, 100, 100) == (alone.counting.rides_along, alone.trials, alone.cutoff)


def test_every_input_is_a_stream_of_its_own_with_each_input() -> None:
    """Ten trials of each of four inputs are forty."""
    found = plan(criterion(at_least=0.5, each_input=True, trials=10))
    assert (10, 40) == (found.criteria[0].trials, found.experiments[0].trials)


def test_several_samplings_are_several_experiments() -> None:
    """Each with its own size."""
    first = criterion("a", at_least=0.5, sampling="x")
    second = criterion("b", at_least=0.5, sampling="y")
    found = plan(first, second, sampling={"x": ["1"], "y": ["2", "3"]}, trials={"x": 20, "y": 30})
    assert [("x", 20), ("y", 30)] == [(one.name, one.trials) for one in found.experiments]


def test_criteria_keep_the_contracts_order_whatever_their_experiment() -> None:
    """The verdict lists them as they were written."""
    names = ["b", "a", "c"]
    found = plan(
        *(criterion(name, at_least=0.5, sampling=s) for name, s in zip(names, "yxy", strict=True)),
        sampling={"x": ["1"], "y": ["2"]},
    )
    assert names == [one.criterion for one in found.criteria]


# --- What is refused before the first trial -------------------------------------------------------


def test_too_few_trials_are_refused_with_the_number_needed() -> None:
    """50 trials cannot show 95 %: 59 are needed, or smoke intent (§5.7.1)."""
    assert 0.95**59 <= 0.05 < 0.95**58
    message = refused(criterion(at_least=0.95), trials=50)
    assert "50 trials" in message
    assert "At least 59" in message
    assert "`intent: smoke`" in message
    (smoke,) = plan(criterion(at_least=0.95), trials=50, intent="smoke").criteria
    assert smoke.cutoff is None


def test_every_reason_is_given_at_once() -> None:
    """Two infeasible criteria are two reasons."""
    two = (criterion("a", at_least=0.95), criterion("b", at_least=0.99))
    with pytest.raises(DesignRefused) as caught:
        plan(*two, trials=50)
    assert ["a", "b"] == [reason.partition(":")[0] for reason in caught.value.reasons]


def test_a_test_larger_than_its_baseline_is_refused_under_the_fisher_rule() -> None:
    """With both sizes and both ways out."""
    message = refused(
        criterion(no_worse_than="baseline"), baseline=baseline(90, 100), trials=200, rule="fisher"
    )
    assert "200 trials is larger than its baseline of 100" in message


def test_a_criterion_the_baseline_does_not_hold_is_refused_and_never_dropped() -> None:
    """It is not left out of the verdict."""
    other = criterion("other", no_worse_than="baseline")
    assert "no baseline holds" in refused(other, baseline=baseline(), trials=50)


def test_a_margin_that_leaves_nothing_is_refused() -> None:
    """5 % with a margin of 10 points has no rate below it."""
    with pytest.raises(InvalidArgument, match="margin must be below the required rate"):
        criterion(at_least=0.05, margin=0.1)


def test_a_cap_under_which_nothing_would_pass_is_refused() -> None:
    """Two trials cannot show 90 %: 29 passes are the fewest, and the ways out are named."""
    assert 0.9**29 <= 0.05 < 0.9**28
    message = refused(max_trials=2)
    assert "2 trials cannot show a rate above 90 %" in message
    assert "at least 29 passing trials" in message
    assert "max_trials" in message
    assert plan(max_trials=2, intent="smoke").criteria[0].trials == 2


def test_no_inputs_are_an_error() -> None:
    """A contract is tried on something."""
    with pytest.raises(InvalidArgument, match="inputs"):
        plan(sampling=None)


# --- Claims ---------------------------------------------------------------------------------------


def test_a_corpus_is_tried_whole_unless_told_otherwise() -> None:
    """Exhaustive, each input once, decided on its own rate without an alpha."""
    claim = Claim(population=PopulationClaim.FINITE_CORPUS)
    found = plan(claim=claim, sampling=[str(n) for n in range(40)])
    (one,) = found.criteria
    assert (40, 36, None) == (one.trials, one.cutoff, one.alpha)
    assert found.experiments[0].sampling_mode is SamplingMode.EXHAUSTIVE
    part = plan(claim=claim, sampling=[str(n) for n in range(100)], trials=50)
    assert part.criteria[0].cutoff == 48  # the hypergeometric cutoff of 50 of 100 at 0.9
    assert part.experiments[0].sampling_mode is SamplingMode.WITHOUT_REPLACEMENT


def test_a_corpus_tried_more_than_once_is_refused() -> None:
    """That is another claim, which is named."""
    claim = Claim(population=PopulationClaim.FINITE_CORPUS)
    assert "fixed inputs" in refused(claim=claim, trials=20)


def test_a_matched_estimator_decides_at_the_end() -> None:
    """It looks at who passed, so nothing is certain before."""
    claim = Claim(
        population=PopulationClaim.SUPERPOPULATION,
        population_name="traffic",
        estimator=Estimator.PROMPTS,
    )
    found = plan(criterion(at_least=0.5), claim=claim, sampling=[*map(str, range(40))], trials=200)
    (one,) = found.criteria
    assert (Estimator.PROMPTS, None) == (one.estimator, one.cutoff)


def test_probes_are_no_population_without_an_argument() -> None:
    """A red-team sampling under a superpopulation claim needs its representativeness recorded."""
    claim = Claim(population=PopulationClaim.SUPERPOPULATION, population_name="attacks")
    probes = Sampling.of([*map(str, range(60))], role=SamplingRole.RED_TEAM)
    message = refused(claim=claim, sampling=probes, trials=60)
    assert "representativeness" in message


# --- Latency and smoke ----------------------------------------------------------------------------


def test_an_enforced_percentile_needs_enough_expected_successes() -> None:
    """200 trials at a baseline rate of 0.80 give 160 latencies, and p99 needs 299 (§12.5.3)."""
    known = baseline(latencies_s={"inputs": (0.1,) * 160}, run_trials={"inputs": 200})
    latency = Latency.within(p99=1.0, enforced=True)
    message = refused(
        criterion(no_worse_than="baseline"), latency=latency, baseline=known, trials=200
    )
    assert "160" in message
    assert "299" in message
    advisory = Latency.within(p99=1.0)
    found = plan(criterion(no_worse_than="baseline"), latency=advisory, baseline=known, trials=200)
    assert found.latency[0].limit_s == 1.0


def test_a_limit_from_a_baseline_without_latencies_is_refused() -> None:
    """Measure first, or give a limit."""
    latency = Latency.no_worse_than_baseline("p95")
    assert "measure" in refused(latency=latency, trials=100)


@pytest.mark.parametrize(
    ("trials", "caveat"),
    [(58, "Sample not sized for verification (N = 58, need 59)"), (59, "sized for verification.")],
)
def test_smoke_against_a_promise_says_what_it_is_not(trials: int, caveat: str) -> None:
    """The caveats of §5.7.4, for a normative threshold only."""
    promised = criterion(at_least=0.95, origin="SLA")
    (found,) = plan(promised, trials=trials, intent=Intent.SMOKE).criteria
    assert any(caveat in one for one in found.caveats)
    (plain,) = plan(criterion(at_least=0.95), trials=trials, intent=Intent.SMOKE).criteria
    assert plain.caveats == ()


def test_measuring_decides_nothing() -> None:
    """No cutoff, no alpha, no curtailment, whatever the criterion asks."""
    found = plan(criterion(), criterion("r", no_worse_than="baseline"), trials=30, measuring=True)
    assert {(None, None, False)} == {
        (one.cutoff, one.alpha, one.counting.curtailed) for one in found.criteria
    }
    assert found.purpose == "measure"


@pytest.mark.parametrize("rate", [0.999999999, 0.999999999999])
def test_a_rate_next_to_one_is_refused_in_the_words_of_the_suite(rate: float) -> None:
    """With `max_trials` and without: what is needed, and what else to allow."""
    few = refused(criterion(at_least=rate, max_trials=50))
    assert "50 trials cannot show a rate above 99.99999" in few
    assert "(`max_trials`)" in few
    assert "margin: 0.1%" in refused(criterion(at_least=rate))
