"""Which designs support which claims, and the rules that belong to a claim."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom, hypergeom, norm
from tests.procedures.decided_counts import check_design, decide_claimed

from trialwise.errors import InvalidArgument
from trialwise.model.claim import (
    Claim,
    Estimator,
    Input,
    Intent,
    PopulationClaim,
    Sampling,
    TargetEstimand,
)
from trialwise.model.criterion import Criterion
from trialwise.model.evidence import Tally, Threshold
from trialwise.model.verdict import Caution, Decision, ObservedRate
from trialwise.procedures.claims import ClaimCheck, default_draw
from trialwise.procedures.compliance import decide_compliance
from trialwise.procedures.composite import compose
from trialwise.stats.finite import ExactCorpusRate

Z = float(norm.isf(0.05))


def wide(**more: Any) -> Claim:
    return Claim(population="superpopulation", population_name="all questions", **more)  # type: ignore[arg-type]


CORPUS = Claim(population=PopulationClaim.FINITE_CORPUS)
RUN_ONLY = Claim(population=PopulationClaim.NO_GENERALISATION)


def check(claim: Claim, inputs: int, trials: int, **more: Any) -> ClaimCheck:
    return check_design(claim, inputs=inputs, trials=trials, **more)


def wilson_low(rate: float, n: float, z: float = Z) -> float:
    """Wilson (1927), written out."""
    centre, spread = rate + z * z / (2 * n), z * math.sqrt(rate * (1 - rate) / n + (z / n / 2) ** 2)
    return (centre - spread) / (1 + z * z / n)


def spread_over(inputs: int, passed: int, each: int) -> dict[str, tuple[int, int]]:
    """Successes dealt out to inputs one by one, each tried equally often."""
    base, rest = divmod(passed, inputs)
    return {str(j): (base + (j < rest), each) for j in range(inputs)}


# Fixed inputs


@pytest.mark.parametrize("procedure", ["COMPLIANCE", "REGRESSION", "SEQUENTIAL", "OBSERVATIONAL"])
@pytest.mark.parametrize("draw", ["balanced", "independent"])
def test_fixed_inputs_are_admitted_however_often_they_repeat(procedure: str, draw: str) -> None:
    """Three inputs a hundred times each is a sound design about those three."""
    assert ClaimCheck((), ()) == check(Claim(), 3, 300, procedure=procedure, draw=draw)


def test_equal_weights_of_inputs_need_equal_repetitions() -> None:
    """The plain rule weighs calls, so a prompt-weighted rate is refused with three ways out."""
    claim = Claim(estimand=TargetEstimand.PROMPT_WEIGHTED)
    (refusal,) = check(claim, 2, 100, repetitions=(1, 4)).refusals

    assert "repeated 1 to 4 times" in refusal
    for way in ("equally often", "call-weighted", "estimator=stratified"):
        assert way in refusal
    assert () == check(claim, 2, 100, repetitions=(3, 3)).refusals
    assert () == check(Claim(), 2, 100, repetitions=(1, 4)).refusals


@pytest.mark.parametrize("estimand", [e for e in TargetEstimand if e.is_weighted])
def test_a_weighted_rate_needs_the_estimator_that_weighs(estimand: TargetEstimand) -> None:
    """Neither the plain rule nor one over inputs is put in its place."""
    for estimator in (None, Estimator.PROMPTS):
        claim = Claim(estimand=estimand, estimator=estimator)
        assert any("estimator=stratified" in r for r in check(claim, 4, 40).refusals)


@pytest.mark.parametrize("estimand", ["production-weighted", "severity-weighted"])
@pytest.mark.parametrize("estimator", [None, *Estimator])
@pytest.mark.parametrize("intent", list(Intent))
def test_a_population_with_weighted_inputs_is_refused_once_with_ways_out(
    estimand: str, estimator: Estimator | None, intent: Intent
) -> None:
    """Whatever the estimator, and each way out that the refusal names is admitted."""
    weights = (1.0,) * 30 + (3.0,) * 30
    claim = wide(estimand=estimand, estimator=estimator)
    (refusal,) = check(claim, 60, 60, weights=weights, intent=intent).refusals

    asked: dict[str, Any] = {"required_rate": 0.8, "alpha": 0.05, "intent": intent}
    by_stratum = wide(estimand="stratum-weighted", estimator="stratified")
    strata = ("easy",) * 30 + ("hard",) * 30
    assert "stratum-weighted with estimator=stratified" in refusal
    assert () == check(by_stratum, 60, 60, weights=weights, strata=strata, **asked).refusals
    drawn = wide(estimand="prompt-weighted", estimator="prompts")
    assert "prompt-weighted with estimator=prompts" in refusal
    assert () == check(drawn, 60, 120, **asked).refusals
    fixed = Claim(estimand=TargetEstimand(estimand), estimator=Estimator.STRATIFIED)
    assert "fixed-inputs with estimator=stratified" in refusal
    assert () == check(fixed, 60, 60, weights=weights, **asked).refusals


def test_repeated_strata_of_a_population_are_not_sent_to_another_estimator() -> None:
    """`prompts` would send a stratum-weighted rate back to `stratified`."""
    claim = wide(estimand="stratum-weighted", estimator="stratified")
    (refusal,) = check(claim, 4, 8, strata=("a", "a", "b", "b"), weights=(1, 1, 2, 2)).refusals

    assert "more than once" in refusal
    assert "estimator=prompts" not in refusal


def test_weights_must_be_given() -> None:
    """Equal weights under a production-weighted claim are weights that somebody forgot."""
    claim = Claim(estimand=TargetEstimand.PRODUCTION_WEIGHTED, estimator=Estimator.STRATIFIED)

    assert "no two differ" in check(claim, 2, 40, weights=(1.0, 1.0)).refusals[0]
    assert () == check(claim, 2, 40, weights=(0.7, 0.3)).refusals


def test_strata_must_be_complete_and_of_one_weight() -> None:
    """Within a stratum trials count alike, so its inputs have to weigh alike."""
    claim = Claim(estimand=TargetEstimand.STRATUM_WEIGHTED, estimator=Estimator.STRATIFIED)
    strata = ("easy", "easy", "hard")

    assert "name its stratum" in check(claim, 3, 30, strata=("easy", None, "hard")).refusals[0]
    assert "name its stratum" in check(claim, 3, 30).refusals[0]
    uneven = check(claim, 3, 30, strata=strata, weights=(1, 2, 3)).refusals
    assert "stratum easy have different weights" in uneven[0]
    assert () == check(claim, 3, 30, strata=strata, weights=(1, 1, 3)).refusals


@pytest.mark.parametrize(("trials", "draw"), [(2, "balanced"), (30, "independent")])
def test_a_weighted_rate_needs_every_input_tried(trials: int, draw: str) -> None:
    """Too few trials, or draws that leave it to chance."""
    claim = Claim(estimand=TargetEstimand.PROMPT_WEIGHTED, estimator=Estimator.STRATIFIED)

    (refusal,) = check(claim, 3, trials, draw=draw).refusals

    assert "at least 3 trials" in refusal


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        (Claim(estimator=Estimator.STRATIFIED), "declare the estimand"),
        (Claim(estimator=Estimator.PROMPTS), "takes the inputs as a sample"),
        (Claim(estimand=TargetEstimand.NO_GENERALISATION), "names no rate"),
        (
            wide(estimand="prompt-weighted", estimator="stratified"),
            "only by strata whose inputs are a sample",
        ),
        (wide(estimand="prompt-weighted", estimator="prompts"), None),
        (wide(estimator="korn-graubard"), None),
    ],
)
def test_an_estimator_must_match_the_estimand_and_the_claim(claim: Claim, said: str | None) -> None:
    """§8.2.1: the one is never put in place of the other."""
    refusals = check(claim, 30, 300).refusals

    if said is None:
        assert () == refusals
    else:
        assert any(said in refusal for refusal in refusals)


@pytest.mark.parametrize("procedure", ["SEQUENTIAL", "REGRESSION"])
@pytest.mark.parametrize("intent", list(Intent))
def test_an_estimator_decides_only_a_fixed_number_of_trials(procedure: str, intent: Intent) -> None:
    """Nothing else knows its bound, so not even a smoke run goes on."""
    claim = wide(estimator=Estimator.PROMPTS)
    refusals = check(claim, 30, 60, procedure=procedure, intent=intent).refusals

    assert any("give at_least with trials" in r for r in refusals)


# A population


def test_repeated_inputs_are_refused_as_evidence_about_a_population() -> None:
    """§8.2.1: n and J as configured, and three ways out."""
    found = check(wide(), 10, 100)
    (refusal,) = found.refusals

    assert refusal.startswith("100 trials over 10 distinct inputs ")
    for way in ("at least 100 distinct inputs", "estimator=prompts", "fixed-inputs"):
        assert way in refusal


def test_a_smoke_run_discloses_what_verification_refuses() -> None:
    """The same words, as a caveat."""
    refused = check(wide(), 10, 100).refusals
    found = check(wide(), 10, 100, intent=Intent.SMOKE)

    assert () == found.refusals
    assert set(refused) <= set(found.caveats)


@given(inputs=st.integers(1, 60), trials=st.integers(1, 200))
def test_the_line_is_one_trial_an_input(inputs: int, trials: int) -> None:
    """n > J: two fixed answers of each of 13 inputs pass a rate just missed in 25 % of runs."""
    for procedure in ("COMPLIANCE", "SEQUENTIAL", "REGRESSION"):
        refusals = check(wide(), inputs, trials, procedure=procedure).refusals
        assert (trials > inputs) is bool(refusals)
        assert check(wide(), inputs, trials, procedure=procedure, draw="independent").refusals


def test_an_input_that_repeats_within_a_pass_is_refused() -> None:
    """90 of 150 slots, 51 of them of one input."""
    repetitions = (51, *[1] * 99)
    (refusal,) = check(wide(), 100, 90, repetitions=repetitions).refusals

    assert "up to 51 repetitions" in refusal
    assert () == check(wide(), 100, 90).refusals


def test_a_population_is_named_with_the_argument_for_it() -> None:
    """Or with the admission that there is none."""
    (without,) = check(wide(), 100, 100).caveats
    (with_one,) = check(wide(representativeness="a random week of traffic"), 100, 100).caveats

    assert "all questions" in without
    assert "none is recorded" in without
    assert "a random week of traffic" in with_one


@pytest.mark.parametrize("estimator", [Estimator.PROMPTS, Estimator.KORN_GRAUBARD])
def test_an_estimator_over_inputs_admits_repetition(estimator: Estimator) -> None:
    """It takes inputs as the units; the approximate one says how often it errs."""
    found = check(wide(estimator=estimator), 30, 300)

    assert () == found.refusals
    assert found.caveats[0].startswith("Every input is taken as an independent draw")
    assert (estimator is Estimator.KORN_GRAUBARD) is any("16 % of runs" in c for c in found.caveats)


def test_strata_do_not_excuse_repetition() -> None:
    """The stratified estimator counts every trial as a draw from its stratum."""
    claim = wide(estimand="stratum-weighted", estimator="stratified")
    layout: dict[str, Any] = {"strata": ("a",) * 5 + ("b",) * 5, "weights": (1.0,) * 10}

    assert "more than once" in check(claim, 10, 11, **layout).refusals[0]
    assert not any("more than once" in one for one in check(claim, 10, 10, **layout).refusals)


@pytest.mark.parametrize(("inputs", "feasible"), [(28, False), (29, True)])
def test_a_bound_that_no_result_could_lift_is_refused(inputs: int, feasible: bool) -> None:
    """0.9^J ≤ 5 % needs 29 inputs, however many trials."""
    assert 0.9**29 <= 0.05 < 0.9**28
    claim = wide(estimand="prompt-weighted", estimator="prompts")
    asked: dict[str, Any] = {"required_rate": 0.9, "alpha": 0.05}
    found = check(claim, inputs, 1000, **asked)

    assert feasible is not bool(found.refusals)
    if not feasible:
        assert "About 29 inputs" in found.refusals[0]
        assert () == check(claim, inputs, 1000, intent=Intent.SMOKE, **asked).refusals


def test_one_input_says_nothing_about_others() -> None:
    """There is no spread to see."""
    (refusal,) = check(wide(estimator="prompts"), 1, 50).refusals

    assert "give at least two" in refusal


# A corpus


def test_a_corpus_takes_each_input_once() -> None:
    """More trials, repetitions and independent draws are refused whatever the intent."""
    for intent in Intent:
        assert "at most once" in check(CORPUS, 100, 101, intent=intent).refusals[0]
        assert "at most once" in check(CORPUS, 2, 2, repetitions=(1, 2), intent=intent).refusals[0]
        assert check(CORPUS, 100, 50, draw="independent", intent=intent).refusals
    assert () == check(CORPUS, 100, 100).refusals


def test_a_corpus_carries_its_sample_fraction() -> None:
    """§8.4.6: beside any claim from a part of it; and what a whole one leaves open."""
    (part,) = check(CORPUS, 200, 50).caveats
    (whole,) = check(CORPUS, 200, 200).caveats

    assert "50 of the corpus's 200 inputs are tried (25 %)" in part
    assert "claim fixed-inputs" in whole


def test_a_corpus_is_not_decided_early() -> None:
    """The sequential boundaries are binomial."""
    (refusal,) = check(CORPUS, 200, 100, procedure="SEQUENTIAL").refusals

    assert "give trials (200 for the whole corpus)" in refusal


@pytest.mark.parametrize(("trials", "admitted"), [(10, True), (11, False)])
def test_a_regression_on_a_corpus_discloses_its_binomial_law(trials: int, admitted: bool) -> None:
    """Acceptable only where the sample fraction is small (§8.4.6): up to 5 %."""
    found = check(CORPUS, 200, trials, procedure="REGRESSION")
    smoke = check(CORPUS, 200, trials, procedure="REGRESSION", intent=Intent.SMOKE)

    assert admitted is not bool(found.refusals)
    assert () == smoke.refusals
    assert "takes its trials as binomial" in smoke.caveats[0]


@pytest.mark.parametrize("population", [CORPUS.population, RUN_ONLY.population])
def test_a_count_has_no_use_for_an_estimator(population: PopulationClaim) -> None:
    """Neither for weights."""
    for more in ({"estimator": "prompts"}, {"estimand": "production-weighted"}):
        claim = Claim(population=population, **more)  # type: ignore[arg-type]
        assert any("counts its trials alike" in r for r in check(claim, 10, 10).refusals)


# The run alone, and what claims no rate


def test_a_description_is_admitted_and_says_what_it_is() -> None:
    """No evidence, and said so; but a decision about a rate is refused."""
    found = check(RUN_ONLY, 3, 100)

    assert () == found.refusals
    assert "none to release on" in found.caveats[0]
    for procedure in ("SEQUENTIAL", "REGRESSION"):
        assert check(RUN_ONLY, 3, 100, procedure=procedure).refusals


@pytest.mark.parametrize("claim", [Claim(), wide(), CORPUS, RUN_ONLY])
def test_an_observation_claims_no_rate(claim: Claim) -> None:
    """Was any failure observed? That needs no population."""
    assert ClaimCheck((), ()) == check(claim, 3, 300, procedure="OBSERVATIONAL")


def test_inputs_are_drawn_in_balance() -> None:
    """tests/calibration/test_fixed_inputs.py shows why, for every procedure."""
    assert "balanced" == default_draw()


def test_counts_are_counts() -> None:
    """Neither zero inputs nor zero trials make a design."""
    with pytest.raises(InvalidArgument, match="inputs"):
        Sampling.of([])
    for trials in (0, True):
        with pytest.raises(InvalidArgument, match="trials"):
            Criterion("c", bool, at_least=0.9, trials=trials)


@pytest.mark.parametrize("repetitions", [0, True, 1.5])
def test_repetitions_belong_to_inputs(repetitions: Any) -> None:
    """Each input says how often it is tried."""
    with pytest.raises(InvalidArgument, match="repetitions"):
        Input(id="a", value="a", repetitions=repetitions)


# Deciding over inputs


@pytest.mark.parametrize("estimand", ["prompt-weighted", "call-weighted"])
@pytest.mark.parametrize("failures", [0, 1, 2, 3, 5, 30])
def test_over_inputs_the_bound_is_exact_on_their_number(estimand: str, failures: int) -> None:
    """40 inputs five times each: 200 trials are worth 40 (Clopper and Pearson, by scipy)."""
    claim = wide(estimand=estimand, estimator="prompts")
    finding = decide_claimed("c", spread_over(40, 200 - failures, 5), claim, 0.9)
    low = float(beta.ppf(0.05, 40 - failures / 5, failures / 5 + 1))

    assert finding.lower_bound == pytest.approx(low, abs=1e-12)
    assert (Decision.PASS if low >= 0.9 else Decision.FAIL) is finding.decision
    assert f"compliance/prompts/{estimand}/2" == finding.decision_rule
    assert (None, 0.05) == (finding.rule, finding.alpha)
    assert finding.interval is not None
    assert (finding.lower_bound, 0.9) == (finding.interval.low, finding.interval.confidence)
    assert finding.estimate == pytest.approx(1 - failures / 200)
    assert finding.estimator is not None
    assert "all questions" in finding.confidence_statement
    assert "at most 0.05" in finding.confidence_statement


@pytest.mark.parametrize("estimand", ["prompt-weighted", "call-weighted"])
@pytest.mark.parametrize("failures", [0, 1, 2, 3, 5, 30])
def test_a_plan_of_an_earlier_version_is_decided_by_wilsons_bound(
    estimand: str, failures: int
) -> None:
    """Its rule has no version in its name; what it left open was a FAIL."""
    claim = wide(estimand=estimand, estimator="prompts")
    rule = f"compliance/prompts/{estimand}"
    counts = spread_over(40, 200 - failures, 5)
    finding = decide_claimed("c", counts, claim, 0.9, decision_rule=rule, most_failing=100)
    low = wilson_low(1 - failures / 200, 40)

    assert finding.lower_bound == pytest.approx(low, abs=1e-12)
    assert (Decision.PASS if low >= 0.9 else Decision.FAIL) is finding.decision
    assert finding.interval is not None
    assert finding.interval.method == "wilson, prompts"


@pytest.mark.parametrize("estimator", list(Estimator))
@pytest.mark.parametrize("leaves_open", [True, False])
def test_every_estimator_shows_both_sides_or_leaves_it_open(
    estimator: str, leaves_open: bool
) -> None:
    """PASS where its lower bound reaches the rate, FAIL where its upper bound is below it.

    40 inputs of five trials each, of which 1, 8 or 25 hardly ever pass.
    """
    seen = set()
    for bad in (1, 8, 25):
        counts = {str(j): (j % 2 if j < bad else 5 - (j % 9 == 8), 5) for j in range(40)}
        claim = wide(estimand="prompt-weighted", estimator=estimator)
        more: dict[str, Any] = {"fail_alpha": 0.05} if leaves_open else {}
        finding = decide_claimed("c", counts, claim, 0.8, **more)
        interval = finding.interval
        assert interval is not None
        if interval.low >= 0.8:
            expected = Decision.PASS
        elif interval.high < 0.8 or not leaves_open:
            expected = Decision.FAIL
        else:
            expected = Decision.INCONCLUSIVE
        assert finding.decision is expected
        if expected is Decision.FAIL:
            ground = "shown below" if interval.high < 0.8 else "not shown"
            assert getattr(finding.evidence, "ground", None) == ground
            assert ("shows a rate below 0.8" in finding.statement) is (interval.high < 0.8)
        seen.add((expected, interval.high < 0.8))

    assert len(seen) == 3


@pytest.mark.parametrize("inputs", [20, 40])
def test_a_wrong_fail_over_inputs_is_as_rare_as_a_wrong_pass(inputs: int) -> None:
    """Inputs that always or never succeed, at exactly the rate asked for: by enumeration."""
    claim = wide(estimand="prompt-weighted", estimator="prompts")
    wrong = {Decision.PASS: 0.0, Decision.FAIL: 0.0, Decision.INCONCLUSIVE: 0.0}
    for good in range(inputs + 1):
        counts = {str(j): (5 * (j < good), 5) for j in range(inputs)}
        decision = decide_claimed("c", counts, claim, 0.8, fail_alpha=0.05).decision
        assert decision is not None
        wrong[decision] += float(binom.pmf(good, inputs, 0.8))

    assert 0 < wrong[Decision.PASS] <= 0.05
    assert 0 < wrong[Decision.FAIL] <= 0.05


def test_each_side_of_an_estimator_has_its_own_level() -> None:
    """26 of 40 inputs show a rate below 80 % at 5 %, and not at 1 % (scipy)."""
    claim = wide(estimand="prompt-weighted", estimator="prompts")
    counts = {str(j): (int(j < 26), 1) for j in range(40)}
    assert beta.ppf(0.95, 27, 14) < 0.8 < beta.ppf(0.99, 27, 14)
    usual, strict = (
        decide_claimed("c", counts, claim, 0.8, fail_alpha=level) for level in (0.05, 0.01)
    )

    assert (usual.decision, strict.decision) == (Decision.FAIL, Decision.INCONCLUSIVE)
    assert strict.interval is not None
    assert tuple(strict.interval) == pytest.approx((beta.ppf(0.05, 26, 15), beta.ppf(0.99, 27, 14)))
    assert strict.interval.confidence == 0.94


def test_a_margin_lowers_what_an_estimator_has_to_show() -> None:
    """88 of 100 inputs do not show 85 %; with a margin of 10 points they show 75 %."""
    claim = wide(estimand="prompt-weighted", estimator="prompts")
    counts = {str(j): (int(j < 88), 1) for j in range(100)}
    alone = decide_claimed("c", counts, claim, 0.85, fail_alpha=0.05)
    threshold = Threshold(required_rate=0.85, alternative_rate=0.75)
    relaxed = decide_claimed("c", counts, claim, 0.85, fail_alpha=0.05, threshold=threshold)

    assert beta.ppf(0.05, 88, 13) < 0.85
    assert beta.ppf(0.05, 88, 13) >= 0.75
    assert (alone.decision, relaxed.decision) == (Decision.INCONCLUSIVE, Decision.PASS)
    assert "above 0.75" in relaxed.statement


def test_unequal_calls_are_worth_fewer_inputs() -> None:
    """(Σm)²/Σm² of them, for a call-weighted rate; for a prompt-weighted one all of them."""
    counts = {str(j): (m, m) for j, m in enumerate([10] * 30 + [1] * 30)}
    units = 330**2 / (30 * 100 + 30)
    by_call = decide_claimed("c", counts, wide(estimator="prompts"), 0.9)
    claim = wide(estimand="prompt-weighted", estimator="prompts")
    by_input = decide_claimed("c", counts, claim, 0.9)

    assert by_call.lower_bound == pytest.approx(0.05 ** (1 / units), abs=1e-12)
    assert by_input.lower_bound == pytest.approx(0.05 ** (1 / 60), abs=1e-12)


def test_the_same_counts_pass_about_these_inputs_and_not_about_others() -> None:
    """97 of 100 over 10 inputs: enough for the inputs, nothing for the population."""
    counts = spread_over(10, 97, 10)
    plain = decide_claimed("c", counts, Claim(), 0.9)
    claim = wide(estimand="prompt-weighted", estimator="prompts")
    beyond = decide_claimed("c", counts, claim, 0.9)

    assert decide_compliance("c", Tally(trials=100, passed=97), 0.9, rule="wilson") == plain
    assert Decision.PASS is plain.decision
    assert (Decision.INCONCLUSIVE, Caution.FEASIBILITY_REFUSED) == (beyond.decision, beyond.caution)
    assert f"would be {0.05**0.1:.4g}" in beyond.statement


def test_what_a_smoke_run_cannot_show_it_fails() -> None:
    """As plain compliance does."""
    claim = wide(estimand="prompt-weighted", estimator="prompts")
    counts = spread_over(10, 100, 10)
    finding = decide_claimed("c", counts, claim, 0.9, intent=Intent.SMOKE)
    left_open = decide_claimed("c", counts, claim, 0.9, intent=Intent.SMOKE, fail_alpha=0.05)

    assert Decision.FAIL is finding.decision
    assert Decision.INCONCLUSIVE is left_open.decision


def test_one_input_or_no_trial_decides_nothing() -> None:
    """Undefined is not zero."""
    claim = wide(estimator="prompts")
    one = decide_claimed("c", {"a": (50, 50)}, claim, 0.9)
    none = decide_claimed("c", {"a": (0, 0)}, claim, 0.9)

    assert "at least two" in one.statement
    assert (Decision.INCONCLUSIVE, Caution.ZERO_EVALUABLE) == (none.decision, none.caution)
    assert (None, None) == (one.interval, none.interval)


@pytest.mark.parametrize(
    ("estimand", "where"),
    [
        ("call-weighted", ObservedRate.AT_THRESHOLD),
        ("prompt-weighted", ObservedRate.BELOW_THRESHOLD),
    ],
)
def test_the_observed_rate_is_that_of_the_estimand(estimand: str, where: ObservedRate) -> None:
    """60 inputs with 9 of 9 and 60 with 0 of 1 are 0.9 by call and 0.5 by input, exactly."""
    counts = {str(j): (9, 9) if j < 60 else (0, 1) for j in range(120)}
    claim = wide(estimand=estimand, estimator="prompts")

    assert where is decide_claimed("c", counts, claim, 0.9).observed_rate


# Deciding over strata


def test_one_stratum_has_the_exact_bound() -> None:
    """Weights cancel, and one stratum is a plain binomial count."""
    claim = Claim(estimand=TargetEstimand.STRATUM_WEIGHTED, estimator=Estimator.STRATIFIED)
    strata = {"1": "all", "2": "all"}
    finding = decide_claimed("c", {"1": (49, 50), "2": (48, 50)}, claim, 0.9, strata=strata)

    assert finding.lower_bound == pytest.approx(beta.ppf(0.05, 97, 4), abs=1e-9)
    assert Decision.PASS is finding.decision


def test_weights_decide() -> None:
    """Bad on what weighs little passes; bad on what weighs much does not."""
    claim = Claim(estimand=TargetEstimand.PRODUCTION_WEIGHTED, estimator=Estimator.STRATIFIED)
    counts = {"rare": (30, 100), "common": (100, 100)}
    light = decide_claimed("c", counts, claim, 0.9, weights={"rare": 0.02, "common": 0.98})
    heavy = decide_claimed("c", counts, claim, 0.9, weights={"rare": 0.5, "common": 0.5})

    assert light.estimate == pytest.approx(0.02 * 0.3 + 0.98)
    assert heavy.estimate == pytest.approx(0.65)
    assert (Decision.PASS, Decision.FAIL) == (light.decision, heavy.decision)
    assert ObservedRate.BELOW_THRESHOLD is heavy.observed_rate
    assert "weights are as declared" in light.confidence_statement


def test_inputs_of_equal_weight_weigh_alike_however_often_they_were_called() -> None:
    """A prompt-weighted rate of fixed inputs: 1/2 of 0.95 and 1/2 of 0.75."""
    claim = Claim(estimand=TargetEstimand.PROMPT_WEIGHTED, estimator=Estimator.STRATIFIED)
    finding = decide_claimed("c", {"a": (95, 100), "b": (15, 20)}, claim, 0.5)

    assert finding.estimate == pytest.approx(0.85)


def test_a_part_that_was_not_tried_leaves_the_rate_unknown() -> None:
    """Whether by stratum or by input."""
    by_stratum = Claim(estimand=TargetEstimand.STRATUM_WEIGHTED, estimator=Estimator.STRATIFIED)
    by_input = Claim(estimand=TargetEstimand.PROMPT_WEIGHTED, estimator=Estimator.STRATIFIED)
    counts = {"a": (50, 50)}
    first = decide_claimed("c", counts, by_stratum, 0.9, strata={"a": "x", "b": "y"})
    second = decide_claimed("c", counts, by_input, 0.9, corpus_size=2)

    assert {Decision.INCONCLUSIVE} == {first.decision, second.decision}
    assert "y was not tried" in first.statement
    assert "not every input was tried" in second.statement


# Deciding in a corpus


@pytest.mark.parametrize(("passed", "decision"), [(7, Decision.PASS), (6, Decision.FAIL)])
def test_a_whole_corpus_is_decided_on_its_rate(passed: int, decision: Decision) -> None:
    """7 of 100 is at 0.07, although 0.07 · 100 is above 7 in doubles."""
    assert 0.07 * 100 > 7
    counts = {str(j): (int(j < passed), 1) for j in range(100)}
    finding = decide_claimed("c", counts, CORPUS, 0.07, alpha=None, corpus_size=100)

    assert decision is finding.decision
    assert "finite-corpus/exact-rate" == finding.decision_rule
    assert isinstance(finding.design, ExactCorpusRate)
    assert (None, None, None) == (finding.alpha, finding.interval, finding.p_value)
    assert "nothing was sampled" in finding.confidence_statement


@given(size=st.integers(20, 120), data=st.data())
def test_a_part_of_a_corpus_is_decided_by_the_hypergeometric_law(
    size: int, data: st.DataObject
) -> None:
    """PASS iff P(K ≥ k) ≤ alpha with one success too few in the corpus."""
    trials = data.draw(st.integers(10, size - 1))
    passed = data.draw(st.integers(0, trials))
    counts = {str(j): (int(j < passed), 1) for j in range(trials)}
    finding = decide_claimed("c", counts, CORPUS, 0.8, corpus_size=size)
    required = -(-8 * size // 10)
    tail = float(hypergeom.sf(passed - 1, size, required - 1, trials))
    best = float(hypergeom.sf(trials - 1, size, required - 1, trials))

    if best > 0.05:
        assert Decision.INCONCLUSIVE is finding.decision
        return
    assert (Decision.PASS if tail <= 0.05 else Decision.FAIL) is finding.decision
    assert finding.p_value is not None
    assert finding.p_value.value == pytest.approx(tail, abs=1e-9)
    assert (finding.decision is Decision.PASS) is (
        round((finding.lower_bound or 0) * size) >= required
    )


def test_a_corpus_repeats_nothing() -> None:
    """The caller's mistakes are refused."""
    with pytest.raises(InvalidArgument, match="at most once"):
        decide_claimed("c", {"a": (1, 2)}, CORPUS, 0.9, corpus_size=5)
    with pytest.raises(InvalidArgument, match="at most once"):
        decide_claimed("c", {"a": (1, 1), "b": (1, 1)}, CORPUS, 0.9, corpus_size=1)


def test_no_trial_of_a_corpus_is_no_evidence() -> None:
    """INCONCLUSIVE, under smoke too."""
    for intent in Intent:
        finding = decide_claimed("c", {}, CORPUS, 0.9, corpus_size=5, intent=intent)
        assert (Decision.INCONCLUSIVE, Caution.ZERO_EVALUABLE) == (
            finding.decision,
            finding.caution,
        )


# Describing a run


@pytest.mark.parametrize(("passed", "decision"), [(90, Decision.PASS), (89, Decision.FAIL)])
def test_a_description_looks_at_the_observed_rate_alone(passed: int, decision: Decision) -> None:
    """At the target is met; and nothing is inferred."""
    finding = decide_claimed("c", spread_over(4, passed, 25), RUN_ONLY, 0.9, alpha=None)

    assert decision is finding.decision
    assert "no-generalisation/observed-rate" == finding.decision_rule
    assert f"{decision} (this run only)" == finding.label
    assert (None, None, None) == (finding.interval, finding.p_value, finding.lower_bound)
    assert (None, None) == (finding.alpha, finding.rule)
    assert f"{passed} of 100 trials succeeded, 90 needed" in finding.statement


def test_claimed_findings_stand_beside_either_rule_set() -> None:
    """They belong to none, so a verdict may hold them whatever its own."""
    counts = {str(j): (1, 1) for j in range(20)}
    exact = decide_compliance("plain", Tally(trials=100, passed=99), 0.9, rule="exact")
    verdict = compose([exact, decide_claimed("c", counts, CORPUS, 0.9, corpus_size=20)])

    assert Decision.PASS is verdict.decision
    assert exact.design.achieved_size == verdict.envelopes.false_compliance_envelope  # type: ignore[union-attr]


@pytest.mark.parametrize("intent", list(Intent))
def test_the_words_are_softer_under_smoke(intent: Intent) -> None:
    """Consistent with the target, or evidence for it."""
    claim = wide(estimand="prompt-weighted", estimator="prompts")
    passed = decide_claimed("c", spread_over(60, 60, 1), claim, 0.9, intent=intent)
    failed = decide_claimed("c", spread_over(60, 30, 1), claim, 0.9, intent=intent)
    close = decide_claimed("c", spread_over(60, 55, 1), claim, 0.9, intent=intent)

    soft = intent is Intent.SMOKE
    assert ("is consistent with" in passed.statement) is soft
    assert ("is inconsistent with" in failed.statement) is soft
    assert ("meets the target" in close.statement) is soft
    assert (Caution.FAIL_CLEAR, Caution.STRANDS_DISAGREE) == (failed.caution, close.caution)


@pytest.mark.parametrize("rate", [0.0, 1.0, 1.5])
def test_a_required_rate_lies_inside(rate: float) -> None:
    """As for every claim about a rate."""
    with pytest.raises(InvalidArgument, match="at_least"):
        Criterion("c", bool, at_least=rate)


def test_a_bound_needs_more_than_even_odds() -> None:
    """1 − 2 alpha has to be a confidence."""
    with pytest.raises(InvalidArgument, match=r"below 0\.5"):
        decide_claimed("c", spread_over(9, 9, 1), wide(estimator="prompts"), 0.5, alpha=0.5)
