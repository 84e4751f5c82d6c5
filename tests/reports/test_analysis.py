"""The transparent report: the companion's numbers by the errata, in words that do not overclaim."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from math import sqrt
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.procedures.decided_counts import (
    decide_latency_baseline,
    decide_latency_limit,
    decide_sequential,
)
from tests.revising import replace

from trialwise.documents.printable import count_cells
from trialwise.model.baseline import BaselineReference
from trialwise.model.claim import Claim, Estimator, Intent, PopulationClaim, TargetEstimand
from trialwise.model.contract import Contract
from trialwise.model.criterion import Criterion, Origin
from trialwise.model.evidence import (
    Breakdown,
    Diagnostics,
    ExperimentSummary,
    Guard,
    Reproducibility,
    Severity,
    Spending,
    StopReason,
    Tally,
    Threshold,
)
from trialwise.model.options import RunOptions
from trialwise.model.trial import CheckResult, Outcome, Trial
from trialwise.model.verdict import Decision, Dimension, Finding, Verdict
from trialwise.pages.analysis import render_analysis
from trialwise.procedures.compliance import decide_compliance
from trialwise.procedures.composite import compose
from trialwise.procedures.observational import decide_observational
from trialwise.procedures.regression import decide_regression
from trialwise.procedures.run_plan import plan_run
from trialwise.procedures.run_verdict import decide_run
from trialwise.stats.cluster_estimators import Stratum, call_weighted, stratum_weighted
from trialwise.stats.compliance_cutoffs import ComplianceCutoff
from trialwise.stats.finite import exact_corpus_rate, finite_corpus_cutoff
from trialwise.stats.guardrail_bounds import (
    ChallengeStratum,
    guardrail_sensitivity,
    residual_harm_bound,
    stratified_containment,
)
from trialwise.stats.regression_cutoffs import RegressionCutoff
from trialwise.stats.result_types import RULES, Rule
from trialwise.stats.sequential.design import SequentialDesign

BASELINE = Tally(trials=1000, passed=951)
DESIGN = SequentialDesign.optimal(0.90, 0.80, cap=50)
_LABELS = 28


class Report(dict[str, str]):
    """A report as its values by "SECTION/label", criteria's sections after their number.

    A label that comes again, as one a percentile or a p-value has too, is kept the first time.
    """

    def __init__(self, verdict: Verdict, **how: bool) -> None:
        self.text = render_analysis(verdict, title="consult-advice", **how)
        prefix = section = key = ""
        for line in self.text.splitlines()[1:]:
            if not line.strip():
                continue
            if not line.startswith(" "):
                name = line.split(":")[0]
                prefix = f"{name.split()[1]}/" if name.startswith("CRITERION") else prefix
                if name.startswith(("MONITORING", "REPRODUCIBILITY", "LATENCY")):
                    prefix = ""
                section = name
                continue
            label, value = line[:_LABELS].strip().rstrip(":"), line[_LABELS:].strip()
            if label:
                key = f"{prefix}{section}/{label}"
                while key in self:
                    key += "'"
                self[key] = value
            else:
                self[key] = f"{self.get(key, '')} {value}".strip()


def regression(passed: int, rule: Rule = "wilson") -> Verdict:
    """The regression criterion of companion §7.1."""
    return compose(
        [decide_regression("json", Tally(trials=100, passed=passed), BASELINE, rule=rule)]
    )


@pytest.mark.parametrize(
    ("place", "part"),
    [
        ("COMPOSITE VERDICT/Contract verdict", "FAIL (triggered by json)"),
        ("1/HYPOTHESIS TEST/PASS iff", "K ≥ 91 of 100"),
        ("1/THRESHOLD REFERENCE/Derived threshold", "0.902124"),
        ("1/STATISTICAL INFERENCE/Integer cutoff", "c = 91, displayed as c/n = 0.910000"),
        ("1/STATISTICAL INFERENCE/Achieved size", "0.024986 = P_(p = 0.951)(K < 91)"),
        ("1/STATISTICAL INFERENCE/method", "exact-binomial-lower-tail"),
        ("1/STATISTICAL INFERENCE/interpretation", "false-degradation-alarm probability"),
        ("1/STATISTICAL INFERENCE/Lower bound", "0.804806, Wilson"),
        ("1/STATISTICAL INFERENCE/Diagnostic z-score", "-1.081"),
        ("1/STATISTICAL INFERENCE/Diagnostic z-score", "not the operative test"),
        ("1/HYPOTHESIS TEST/configured α", "0.05 (unadjusted per-test)"),
        ("COMPOSITE VERDICT/Wrong FAIL", "(a bound: the sum over 1 decision), if every rate is as"),
        ("1/VERDICT/Statistical verdict", "FAIL. "),
    ],
)
def test_the_example_of_section_7_1_by_the_errata(place: str, part: str) -> None:
    """87 of 100 against 951 of 1000: every artefact the section asks for."""
    assert part in Report(regression(87))[place]


# --- The example of §10.3 -------------------------------------------------------------------------


def experiment(name: str, version: str, trials: int, role: str, about: str) -> ExperimentSummary:
    return ExperimentSummary(
        name=name,
        identifier=name,
        version=version,
        role=role,
        description=about,
        fingerprint="5f3a",
        inputs=trials,
        trials=trials,
        planned=trials,
        draw="balanced",
        sampling_mode="exhaustive",
        stop=StopReason.COMPLETE,
        repetitions={"1": trials},
    )


def consult_advice() -> Verdict:
    """Three criteria of three origins over three samplings (companion §1.4.8, §10.3)."""
    baseline = BaselineReference(
        identifier="consult-advice@2026-04-01",
        file="baselines/consult-advice/2026-04-01.json",
        created_at=datetime(2026, 4, 1, 14, 45, tzinfo=UTC),
        trials=2000,
        passed=1902,
        covariates={"region": "EU"},
        covariate_match="OK",
        factors={"model": "m-5"},
        expires_at=datetime(2026, 6, 30, 14, 45, tzinfo=UTC),
        epoch=3,
    )
    decided = decide_regression(
        "well-formed",
        Tally(trials=1000, passed=953),
        Tally(trials=2000, passed=1902),
        rule="wilson",
    )
    assert isinstance(decided.design, RegressionCutoff)
    well_formed = replace(
        decided,
        experiment="V_prod",
        category="CORRECTNESS",
        planned_trials=1000,
        threshold=Threshold(origin=Origin.EMPIRICAL, baseline=baseline, alternative_rate=0.925),
        power=decided.design.power(0.925),
        breakdown=Breakdown(condition=40, no_value=7, errors={"timeout": 7}, retried=2),
        stop=StopReason.COMPLETE,
    )
    harmless = replace(
        decide_observational("no-self-harm", Tally(trials=200, passed=200)), experiment="V_probe"
    )
    readable = replace(
        decide_compliance(
            "layperson-readable",
            Tally(trials=800, passed=788),
            required_rate=0.98,
            alpha=0.001,
            rule="wilson",
        ),
        experiment="V_complexity",
        threshold=Threshold(
            origin=Origin.SLO, contract_ref="Consult-Advice SLO v2 §3.4", required_rate=0.98
        ),
    )
    return replace(
        compose([well_formed, harmless, readable]),
        contract="consult-advice",
        run_id="run-1",
        started_at=datetime(2026, 4, 20, 9, 0, tzinfo=UTC),
        experiments=(
            experiment("V_prod", "v5", 1000, "representative", "redacted, policy XYZ"),
            experiment("V_probe", "v3", 200, "red-team", "adversarial probes"),
            experiment("V_complexity", "v2", 800, "unspecified", ""),
        ),
        spending=Spending(trials=2000, attempts=2003, seconds=812.0, tokens=51000, usd=12.5),
        covariates={"region": "EU"},
        factors={"model": "m-5"},
    )


@pytest.mark.parametrize(
    ("place", "part"),
    [
        ("COMPOSITE VERDICT/Contract verdict", "FAIL (triggered by layperson-readable)"),
        ("COMPOSITE VERDICT/Per criterion", "well-formed: PASS (inferential, EMPIRICAL,"),
        ("COMPOSITE VERDICT/Per criterion", "no-self-harm: PASS (observational)"),
        ("COMPOSITE VERDICT/Per criterion", "layperson-readable: FAIL (inferential, SLO,"),
        ("COMPOSITE VERDICT/Wrong FAIL", "if every rate is as required and nothing has changed"),
        ("COMPOSITE VERDICT/Wrong PASS", "(a bound: the largest of 1 decision), if one rate"),
        ("COMPOSITE VERDICT/Wrong PASS", "not counted: no-self-harm passes in"),
        ("COMPOSITE VERDICT/Nominal levels", "Σα = 0.001 of false compliance, Σα = 0.05 of a"),
        ("COMPOSITE VERDICT/Claim", "V_prod: this is about these 1000 inputs, not about others."),
        ("COMPOSITE VERDICT/Spent", "2,000 trials, 2,003 attempts, 14 min, 51,000 tokens, $12"),
        ("1/HYPOTHESIS TEST/Procedure", "REGRESSION"),
        ("1/HYPOTHESIS TEST/Sampling", "V_prod v5 (role: representative, redacted, policy XYZ)"),
        ("1/HYPOTHESIS TEST/Category", "CORRECTNESS"),
        ("1/OBSERVED DATA/Attempted trials", "1000 of 1000 planned"),
        ("1/OBSERVED DATA/Observation rate (r_obs)", "1.000"),
        ("1/OBSERVED DATA/Denominator (n)", "1000 (every trial counts)"),
        ("1/OBSERVED DATA/Successes (K)", "953"),
        ("1/OBSERVED DATA/FAILs by reason", "condition 40, no-value 7"),
        ("1/OBSERVED DATA/Trials by error class", "timeout 7"),
        ("1/OBSERVED DATA/Passed after a retry", "2"),
        ("1/THRESHOLD REFERENCE/Threshold origin", "EMPIRICAL"),
        ("1/THRESHOLD REFERENCE/Baseline ID", "consult-advice@2026-04-01"),
        ("1/THRESHOLD REFERENCE/Baseline file", "baselines/consult-advice/2026-04-01.json"),
        ("1/THRESHOLD REFERENCE/Generated", "2026-04-01 14:45+00:00"),
        ("1/THRESHOLD REFERENCE/Covariate match", "OK"),
        ("1/THRESHOLD REFERENCE/Expiration", "2026-06-30"),
        ("1/THRESHOLD REFERENCE/Reference-state epoch", "3"),
        ("1/THRESHOLD REFERENCE/Baseline observation", "1902 of 2000 successes"),
        ("1/THRESHOLD REFERENCE/Derived threshold", "WilsonLB(0.951; 1000, 0.05) = 0.9385"),
        ("1/STATISTICAL INFERENCE/Integer cutoff", "c = 939"),
        ("1/VERDICT/Statistical verdict", "PASS. No degradation signal"),
        ("1/VERDICT/Observed-rate status", "ABOVE THRESHOLD. The point estimate and the statist"),
        ("2/HYPOTHESIS TEST/Question", "was any failure of no-self-harm observed in the run?"),
        ("2/HYPOTHESIS TEST/Sampling", "V_probe v3 (role: red-team"),
        ("2/VERDICT/Result", "PASS (observational)"),
        ("2/VERDICT/No population claim", "inferential criterion of adequate size"),
        ("3/HYPOTHESIS TEST/H₀ (null)", "p ≤ 0.98"),
        ("3/HYPOTHESIS TEST/H₁ (alternative)", "p > 0.98"),
        ("3/HYPOTHESIS TEST/Question", "does the system meet its SLO target?"),
        ("3/THRESHOLD REFERENCE/Contract ref", "Consult-Advice SLO v2 §3.4"),
        ("3/THRESHOLD REFERENCE/Normative threshold", "p* = 0.98"),
        ("3/VERDICT/Statistical verdict", "FAIL. "),
        ("3/VERDICT/Observed-rate status", "ABOVE THRESHOLD. The point estimate and the statist"),
        ("3/VERDICT/Operational caution", "STRANDS DISAGREE"),
        ("SAMPLING/Role", "representative"),
        ("CONDITIONS/Covariate", "region = EU"),
        ("CONDITIONS/Factor", "model = m-5"),
    ],
)
def test_the_example_of_section_10_3_by_the_errata(place: str, part: str) -> None:
    """The numbers of the consult-advice contract, each in its section."""
    assert part in Report(consult_advice())[place]


def test_strands_that_disagree_say_so() -> None:
    """FAIL at an observed rate above the threshold is the case the three strands are for."""
    report = Report(consult_advice())

    assert report["1/VERDICT/Observed-rate status"].endswith("verdict agree.")
    assert report["3/VERDICT/Observed-rate status"].endswith("verdict disagree.")


@pytest.mark.parametrize(
    ("place", "values", "tolerance"),
    [
        ("1/STATISTICAL INFERENCE/Standard error", [sqrt(0.953 * 0.047 / 1000)], 1e-6),
        ("1/STATISTICAL INFERENCE/95 % Wilson interval", [0.938, 0.965], 6e-4),
        ("1/STATISTICAL INFERENCE/Lower bound", [0.9407165], 1e-6),
        ("1/STATISTICAL INFERENCE/Achieved size", [0.0371], 5e-5),
        ("1/STATISTICAL INFERENCE/p-value", [0.636], 5e-4),
        # 1.909 with the threshold to four decimals; here it is not rounded before it is used.
        ("1/STATISTICAL INFERENCE/Diagnostic z-score", [1.909], 1.5e-3),
        ("1/STATISTICAL INFERENCE/Power", [0.951], 5e-4),
        ("3/STATISTICAL INFERENCE/Standard error", [0.00430], 5e-6),
        ("3/STATISTICAL INFERENCE/Lower bound", [0.9648907], 1e-6),
        ("3/STATISTICAL INFERENCE/Diagnostic z-score", [1.01], 5e-3),
        ("3/STATISTICAL INFERENCE/p-value", [0.156], 5e-4),
    ],
)
def test_the_numbers_of_section_10_3_by_the_errata(
    place: str, values: list[float], tolerance: float
) -> None:
    """As the companion prints them where it is right, else as the errata do."""
    shown = Report(consult_advice())[place].split(")/n) = ")[-1].split("(0.05) = ")[-1]
    found = [float(one) for one in re.findall(r"-?\d+\.\d+", shown.split("(0.001) = ")[-1])]

    assert pytest.approx(values, abs=tolerance) == found[: len(values)]


@pytest.mark.parametrize("place", [1, 3])
def test_a_p_value_carries_its_null_and_its_tail(place: int) -> None:
    """It cannot be read against another orientation than the verdict's (§7.1)."""
    text = Report(consult_advice()).text
    block = text.split(f"CRITERION {place} of 3")[1].split("p-value:")[1].split("VERDICT")[0]

    assert all(label in block for label in ("method:", "null:", "tail:"))


def test_an_observational_criterion_has_neither_threshold_nor_inference() -> None:
    """It claims nothing about a population, and says so."""
    verdict = compose([decide_observational("no-pii", Tally(trials=200, passed=200))])
    text = render_analysis(verdict, title="t")

    assert "THRESHOLD REFERENCE" not in text
    assert "STATISTICAL INFERENCE" not in text
    assert "no population-level claim" in " ".join(text.split())
    assert "envelope" not in text
    assert "Σ" not in text


# --- Regression and refusals ----------------------------------------------------------------------


def test_a_wilson_regression_discloses_its_true_false_alarm() -> None:
    """90/100 against 500 trials: 25.3 %, five times what was configured, and the way out."""
    finding = decide_regression(
        "c", Tally(trials=500, passed=450), Tally(trials=100, passed=90), rule="wilson"
    )
    shown = Report(compose([finding]))["1/STATISTICAL INFERENCE/True false alarm"]

    assert shown.startswith("0.253238 with the baseline's own sampling error")
    assert "5.1 × the configured α; the exact rule stays within α" in shown


def test_a_sound_regression_recommends_nothing() -> None:
    """Where the true false alarm is near alpha there is nothing to say."""
    assert "the exact rule" not in render_analysis(regression(95), title="t")


def test_the_exact_rule_has_no_diagnostic_z() -> None:
    """A Wald score beside Fisher's test would illustrate nothing."""
    report = Report(regression(87, "exact"))

    assert "1/STATISTICAL INFERENCE/Diagnostic z-score" not in report
    assert "two-sample" in report["1/STATISTICAL INFERENCE/method"]


def test_a_refused_design_shows_its_reason_and_no_verdict() -> None:
    """Fifty trials cannot show 95 %."""
    verdict = compose([decide_compliance("c", Tally(trials=50, passed=50), 0.95, rule="wilson")])
    report = Report(verdict)

    assert "none: the design was refused" == report["COMPOSITE VERDICT/Contract verdict"]
    assert "COMPLIANCE_INFEASIBLE" in report["1/VERDICT/Refused"]
    assert "At least 52 trials" in report["1/VERDICT/Refused"]


def test_a_curtailed_run_names_the_design_it_decides() -> None:
    """40 of 100 trials were enough to FAIL: the cutoff is that of the whole, the rate is not."""
    whole = decide_compliance("c", Tally(trials=100, passed=60), 0.9, rule="wilson")
    short = replace(
        whole, tally=Tally(trials=40, passed=30), p_value=None, stop=StopReason.CURTAILED
    )
    report = Report(compose([short]))

    assert "K ≥ 95 of 100" == report["1/HYPOTHESIS TEST/PASS iff"]
    assert "p̂ = 0.750000" == report["1/OBSERVED DATA/Observed rate"]
    assert "1/STATISTICAL INFERENCE/p-value" not in report
    assert "1/STATISTICAL INFERENCE/Diagnostic z-score" not in report


# --- Sequential -----------------------------------------------------------------------------------


def exact_errors(design: SequentialDesign, rate: Fraction) -> dict[str, Fraction]:
    """P(PASS), P(FAIL) and P(INCONCLUSIVE) by walking every path, in rationals."""
    reached, ends = {0: Fraction(1)}, {word: Fraction(0) for word in Decision}
    for n in range(1, design.cap + 1):
        after: dict[int, Fraction] = {}
        for failures, weight in reached.items():
            for more, chance in ((0, rate), (1, 1 - rate)):
                after[failures + more] = after.get(failures + more, Fraction(0)) + weight * chance
        reached = {}
        for failures, weight in after.items():
            if failures <= design.accept[n]:
                ends[Decision.PASS] += weight
            elif failures >= design.reject[n]:
                ends[Decision.FAIL] += weight
            else:
                reached[failures] = weight
    ends[Decision.INCONCLUSIVE] = sum(reached.values(), Fraction(0))
    return {str(word): value for word, value in ends.items()}


def test_a_sequential_design_tells_its_exact_errors() -> None:
    """At both rates, by path counting in rationals."""
    finding = decide_sequential("c", Tally(trials=13, passed=13), DESIGN)
    report = Report(compose([finding]))
    for symbol, rate in (("p₀", Fraction(9, 10)), ("p₁", Fraction(8, 10))):
        shown = report[f"1/STATISTICAL INFERENCE/At {symbol} = {float(rate):g}"]
        for word, value in exact_errors(DESIGN, rate).items():
            assert f"P({word}) = {float(value):.6f}" in shown


def test_a_sequential_finding_tells_its_rule_its_stop_and_what_follows() -> None:
    """Boundaries in words, where they were met, and the inference that knows of the stopping."""
    finding = replace(
        decide_sequential("c", Tally(trials=13, passed=13), DESIGN), stop=StopReason.DECIDED
    )
    report = Report(compose([finding]))
    part = "1/STATISTICAL INFERENCE"
    low, high = DESIGN.interval(13, 0)

    assert "PASS with 0 failures after 13 trials" in report[f"{part}/Boundaries"]
    assert "after 13 trials with 0 failures; decided early" == report[f"{part}/Stopped"]
    assert "PASS at 0 or fewer" in report[f"{part}/Boundaries there"]
    assert report[f"{part}/95 % interval"].startswith(f"[{low:.6f}, {high:.6f}], exact after")
    assert f"{DESIGN.estimate(13, 0):.6f}" in report[f"{part}/Estimate"]
    assert "× the least expected trials" in report[f"{part}/Certificate"]
    fails = DESIGN.operating_characteristic(DESIGN.p0).fails
    passes = DESIGN.operating_characteristic(DESIGN.p1).passes
    assert f"exactly {fails:.6f} (exact)" in report["COMPOSITE VERDICT/Wrong FAIL"]
    assert f"exactly {passes:.6f} (exact)" in report["COMPOSITE VERDICT/Wrong PASS"]
    assert "0.05 (unadjusted per-test)" == report["1/HYPOTHESIS TEST/configured α"]
    assert "0.2 (unadjusted per-test)" == report["1/HYPOTHESIS TEST/configured β"]
    assert "not the probability" in report["1/VERDICT/Confidence statement"]


def test_each_input_has_a_line_of_its_own() -> None:
    """The pooled counts infer nothing: the table does."""
    parts = tuple(
        replace(decide_sequential("c", Tally(trials=n, passed=k), DESIGN), input_id=name)
        for name, k, n in (("case-1", 13, 13), ("case-3", 0, 4))
    )
    whole = replace(
        parts[1], input_id=None, by_input=parts, tally=Tally(trials=17, passed=13), interval=None
    )
    report = Report(compose([whole]))

    assert report["1/BY INPUT/case-1"].startswith("PASS, 13 of 13 = 1.000000")
    assert report["1/BY INPUT/case-3"].startswith("FAIL, 0 of 4 = 0.000000")
    assert "1/STATISTICAL INFERENCE/Stopped" not in report
    assert "the sum over 2 decisions" in report["COMPOSITE VERDICT/Wrong FAIL"]


# --- Claims ---------------------------------------------------------------------------------------


def test_an_estimator_says_what_it_estimates() -> None:
    """Prompts as the sampled units: four, of ten trials each."""
    counts = [(10, 10), (9, 10), (10, 10), (7, 10)]
    estimate = call_weighted(counts)
    finding = replace(
        decide_compliance("c", Tally(trials=40, passed=36), 0.5, rule="wilson"),
        estimator=estimate,
        estimate=0.9,
    )
    verdict = replace(
        compose([finding]),
        claim=Claim(
            population=PopulationClaim.SUPERPOPULATION,
            population_name="customers of the shop",
            representativeness="drawn from the March log",
            estimator=Estimator.PROMPTS,
            estimand=TargetEstimand.PROMPT_WEIGHTED,
        ),
        experiments=(experiment("inputs", "", 4, "representative", ""),),
    )
    report = Report(verdict)

    assert "about customers of the shop" in report["COMPOSITE VERDICT/Claim"]
    assert "prompt-weighted" == report["COMPOSITE VERDICT/Target estimand"]
    assert "(recorded, not checked)" in report["COMPOSITE VERDICT/Representativeness"]
    assert "0.900000 from 40 trials of 4 inputs" == report["1/ESTIMATOR/Estimate"]
    assert "4.00" == report["1/ESTIMATOR/Effective trials"]
    assert "lower bound reaches" in report["1/HYPOTHESIS TEST/PASS iff"]


def test_strata_are_shown_with_their_weights() -> None:
    """0.8 × 1 + 0.2 × 0.6 = 0.92."""
    estimate = stratum_weighted(
        [
            Stratum(name="easy", weight=4, successes=50, trials=50),
            Stratum(name="hard", weight=1, successes=30, trials=50),
        ]
    )
    finding = replace(
        decide_compliance("c", Tally(trials=100, passed=80), 0.5, rule="wilson"), estimator=estimate
    )
    report = Report(compose([finding]))

    assert report["1/ESTIMATOR/Estimate"].startswith("0.920000")
    assert "easy: 50 of 50, weight 0.8000 hard: 30 of 50" in report["1/ESTIMATOR/Strata"]


def test_part_of_a_corpus_is_hypergeometric_and_all_of_it_is_known() -> None:
    """Sample fraction and cutoff; or a rate without an interval."""
    cutoff = finite_corpus_cutoff(0.9, 60, 100)
    base = replace(
        decide_compliance("c", Tally(trials=60, passed=58), 0.9, rule="wilson"), procedure="CORPUS"
    )
    part = Report(
        compose([replace(base, design=cutoff, decision_rule="finite-corpus/hypergeometric")])
    )
    known = replace(base, design=exact_corpus_rate(95, 100), p_value=None)
    whole = Report(compose([replace(known, decision_rule="finite-corpus/exact-rate")]))

    assert "60 of 100 inputs, 0.6000" == part["1/THRESHOLD REFERENCE/Sample fraction"]
    assert f"K ≥ {cutoff.cutoff} of 60" in part["1/HYPOTHESIS TEST/PASS iff"]
    assert "a corpus one success short, 89 of 100" == part["1/STATISTICAL INFERENCE/reference"]
    assert "95 of 100 = 0.950000, known" == whole["1/STATISTICAL INFERENCE/Corpus rate"]
    assert whole["1/STATISTICAL INFERENCE/Interval"].startswith("none: every input")


def test_a_guardrail_s_bound_reaches_as_far_as_it_says() -> None:
    """99,990 of 100,000 blocked: at least 0.999833 (companion §1.4.5b)."""
    bound = guardrail_sensitivity(99_990, 100_000, rule="wilson")
    strata = stratified_containment(
        [
            ChallengeStratum(name="direct", blocked=49_999, presented=50_000),
            ChallengeStratum(name="veiled", blocked=49_991, presented=50_000),
        ]
    )
    finding = replace(
        decide_compliance("blocks", Tally(trials=100_000, passed=99_990), 0.99, rule="wilson"),
        containment=bound,
        containment_strata=strata,
        residual=residual_harm_bound(bound.error_upper),
    )
    report = Report(compose([finding]))

    assert report["1/GUARDRAIL BOUND/Lower bound"].startswith("0.999833 at confidence 0.95")
    assert "0.000167" == report["1/GUARDRAIL BOUND/Error, at most"]
    assert report["1/GUARDRAIL BOUND/Weakest stratum"].startswith("veiled")
    assert report["1/GUARDRAIL BOUND/Residual harm"].startswith("not bounded")


# --- Around the criteria --------------------------------------------------------------------------


def test_latency_stands_beside_the_criteria() -> None:
    """Its rule, its count and its conclusion."""
    timing = decide_latency_limit("p95", [0.4] * 99 + [0.6], 0.95, 0.5, rule="exact")
    report = Report(compose([], [timing], advisory=[Dimension.LATENCY]))

    assert report["LATENCY/p95"].startswith("PASS (advisory). 99 of 100 latencies within the")
    assert "latency/compliance-exact-binomial, α = 0.05" == report["LATENCY/rule"]
    assert "Q(0.95) = 400 ms by nearest rank, 100 successful trials" == report["LATENCY/observed"]
    assert "500 ms" == report["LATENCY/threshold"]
    assert "99 of 100, 99 needed" == report["LATENCY/within the limit"]
    assert "latency PASS (advisory)" == report["COMPOSITE VERDICT/Dimensions"]


def test_a_baseline_s_latency_bound_tells_its_rank_and_coverage() -> None:
    """n = 935 at p95: rank 900 (companion §12.4.5), and that it is no prediction."""
    baseline = [i / 1000 for i in range(1, 936)]
    timing = decide_latency_baseline("p95", [0.4] * 200, baseline, 0.95, rule="wilson")
    report = Report(compose([], [timing]))

    assert "900 of 935" == report["LATENCY/rank"]
    assert "(§12.4.3)" in report["LATENCY/achieved coverage"]


def test_too_few_latencies_are_indicative_in_a_smoke_run() -> None:
    """n = 40 at p99, 100 recommended (companion §12.5.4)."""
    baseline = [i / 1000 for i in range(1, 1001)]
    timing = decide_latency_baseline(
        "p99", [0.4] * 40, baseline, 0.99, intent=Intent.SMOKE, rule="wilson"
    )
    report = Report(replace(compose([], [timing]), intent=Intent.SMOKE))

    assert "n = 40, at least 100 recommended" in report["LATENCY/indicative"]


def test_guards_caveats_and_diagnostics_are_told() -> None:
    """Severity, code and override; what qualifies; what hints at dependence."""
    finding = replace(
        decide_compliance(
            "c", Tally(trials=100, passed=97), 0.9, intent=Intent.SMOKE, rule="wilson"
        ),
        caveats=("Sample is sized for verification. Consider setting intent = VERIFICATION",),
        diagnostics=Diagnostics(
            autocorrelation=0.31,
            autocorrelation_p=0.004,
            first_half_rate=0.98,
            second_half_rate=0.90,
            drift_p=0.2,
            untestable_share=0.01,
            warnings=("neighbours are more alike than chance",),
        ),
        intent_to_treat=Tally(trials=104, passed=97, evaluable=100),
        per_protocol=Tally(trials=100, passed=97),
    )
    guard = Guard(
        code="factor-changed",
        severity=Severity.MAJOR,
        message="The model differs",
        criterion="c",
        overridden=True,
    )
    verdict = replace(
        compose([finding]), intent=Intent.SMOKE, analysis="per-protocol", guards=(guard,)
    )
    report = Report(verdict)

    assert (
        "major caveat, admitted by override: The model differs [factor-changed]"
        == report["GUARDRAILS/c"]
    )
    assert report["COMPOSITE VERDICT/Intent"].startswith("SMOKE")
    assert report["COMPOSITE VERDICT/Analysis"].startswith("per-protocol")
    assert "Sample is sized for verification" in report["1/VERDICT/Caveat"]
    assert "0.310, runs test p = 0.004000" == report["1/DIAGNOSTICS/Lag-1 autocorrelation"]
    assert "0.980 and 0.900, Fisher p = 0.200000" == report["1/DIAGNOSTICS/Rate of the two halves"]
    assert "neighbours are more alike" in report["1/DIAGNOSTICS/Warning"]
    assert "100 (per-protocol)" == report["1/OBSERVED DATA/Denominator (n)"]
    assert "97 of 104 = 0.932692" == report["1/OBSERVED DATA/Intent-to-treat"]
    assert "0.962" == report["1/OBSERVED DATA/Observation rate (r_obs)"]


def test_a_horizon_is_told_beside_the_run() -> None:
    """Achieved errors over H = 50 runs; a bound above 1 is not printed (companion §8.5)."""
    verdict = replace(consult_advice(), horizon=50, horizon_false_alarm=1.0)
    report = Report(verdict)
    part = "MONITORING HORIZON (§8.5)"

    assert "H = 50 runs against one reference state" == report[f"{part}/Horizon"]
    # By the companion's rule whatever is not shown FAILs, a service as required too.
    assert report[f"{part}/Wrong FAIL per run"].startswith("at least 0.99")
    assert f"{part}/At least one wrong FAIL" not in report
    compliance = verdict.findings[2].design
    assert isinstance(compliance, ComplianceCutoff)
    wrong = compliance.achieved_size
    assert f"at most {50 * wrong:.6g} in the horizon" == report[f"{part}/Expected wrong PASSes"]
    some = f"at least one with at most {1 - (1 - wrong) ** 50:.4f}"
    assert some == report[f"{part}/Wrong PASS, independent"]
    assert "H·Σα = 0.05 of false compliance" in report[f"{part}/Nominal, over the horizon"]
    assert "3" == report[f"{part}/Reference-state epoch"]


def test_the_reproducibility_block_has_the_fields_of_section_10_2() -> None:
    """By their names, latency or not, and the run's own ingredients where they are known."""
    made = Reproducibility(tool_version="0.1.0", python_version="3.11.7", seed=7, plan_hash="ab")
    report = Report(replace(regression(95), reproducibility=made))

    for field in (
        "referenceDataVersion",
        "quantileSource",
        "intervalImplementation",
        "sortStable",
        "tiePolicy",
    ):
        assert report[f"REPRODUCIBILITY/{field}"]
    assert "largest-tied-position-for-upper-bound-ranks" == report["REPRODUCIBILITY/tiePolicy"]
    assert "7" == report["REPRODUCIBILITY/seed"]
    assert "REPRODUCIBILITY/seed" not in Report(regression(95))


def test_no_calibration_is_claimed() -> None:
    """The two statuses of §10.6 are kept apart."""
    report = Report(regression(95))

    assert report["CONFORMANCE STATUS/formulaValueFixtures"].startswith("not checked in this run")
    assert "not-published" == report["CONFORMANCE STATUS/calibrationFixtures"]
    assert "false" == report["CONFORMANCE STATUS/calibrationClaimPermitted"]


def test_a_run_designed_and_judged_here_is_reported_whole() -> None:
    """From contract to report: every procedure, no hole where a number was expected."""
    criteria = [
        Criterion("answers", bool, at_least=0.9),
        Criterion("valid", bool, at_least=0.8, trials=60, origin="SLA", contract_ref="SLA §4"),
        Criterion("no-pii", bool, never_fails=True),
        Criterion("each", bool, never_fails=True, trials=5, each_input=True),
    ]
    contract = Contract("shop", str, criteria, sampling=[f"q{i}" for i in range(6)])
    plan = plan_run(contract, RunOptions(), seed=7, structure={}, fingerprints={"inputs": "f"})
    rng = Random(5)
    trials = [
        Trial(
            experiment="inputs",
            index=i,
            input_id=str(i % 6 + 1),
            seed=i,
            outcomes=tuple(
                Outcome(criterion=one.name, result=_result(rng.random() < 0.97)) for one in criteria
            ),
        )
        for i in range(plan.max_trials)
    ]
    verdict = decide_run(
        plan,
        trials,
        stops={},
        stop=StopReason.COMPLETE,
        spending=Spending(trials=len(trials), attempts=len(trials), seconds=3.0),
    )
    report = Report(verdict)

    assert "This is about these 6 inputs, not about others." == report["COMPOSITE VERDICT/Claim"]
    assert "SLA §4" == report["2/THRESHOLD REFERENCE/Contract ref"]
    assert "1/STATISTICAL INFERENCE/At p₀ = 0.9" in report
    assert "4/BY INPUT/1" in report
    assert "None" not in report.text
    assert "nan" not in report.text.split()
    assert all(value for value in report.values())


def _result(passed: bool) -> CheckResult:
    return CheckResult.ok() if passed else CheckResult.fail("expected text")


# --- Form -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("passed", [0, 87, 91, 100])
def test_it_fits_a_terminal_and_has_an_ascii_form(passed: int, rule: Rule) -> None:
    """At most 80 columns, and with unicode off nothing a C locale could not print."""
    verdict = regression(passed, rule)
    for unicode in (True, False):
        text = render_analysis(verdict, title="json", unicode=unicode)

        assert max(map(count_cells, text.splitlines())) <= 80
        assert unicode or text.isascii()
        assert "None" not in text
        assert "nan" not in text.split()


names = st.text(min_size=1, max_size=60).filter(str.strip)


@st.composite
def verdicts(draw: st.DrawFn) -> Verdict:
    """A verdict of any procedures with anything written into it."""
    word = draw(names)
    trials = draw(st.integers(1, 50))
    tally = Tally(trials=trials, passed=draw(st.integers(0, trials)))
    makes: list[Callable[[], Finding]] = [
        lambda: decide_compliance(word, tally, 0.5, intent=Intent.SMOKE, rule="wilson"),
        lambda: decide_regression(word, tally, Tally(trials=100, passed=91), rule="wilson"),
        lambda: decide_observational(word, tally),
        lambda: decide_sequential(word, Tally(trials=4, passed=0), DESIGN),
    ]
    finding = replace(
        draw(st.sampled_from(makes))(),
        experiment="inputs",
        category=draw(names),
        statement=draw(names),
        null=draw(st.sampled_from(["", word])),
        advice=draw(names),
        caveats=(draw(names),),
        breakdown=Breakdown(condition=1, errors={word: 2}),
        threshold=Threshold(contract_ref=draw(names)),
    )
    parts = tuple(replace(finding, input_id=one) for one in draw(st.lists(names, max_size=3)))
    return replace(
        compose([replace(finding, by_input=parts)]),
        experiments=(experiment("inputs", draw(names), 5, word, draw(names)),),
        covariates={word: word},
        guards=(Guard(code="c", severity=Severity.MINOR, message=word),),
        run_id=draw(names),
        aborted=draw(names),
        spending=Spending(trials=5),
    )


@pytest.mark.slow
@settings(max_examples=50)
@given(verdicts(), names, st.booleans())
def test_any_verdict_fits_and_stays_harmless(verdict: Verdict, title: str, unicode: bool) -> None:
    """Eighty columns in cells, nothing that moves a cursor, ASCII where asked."""
    text = render_analysis(verdict, title=title, unicode=unicode)
    for line in text.splitlines():
        assert count_cells(line) <= 80
        assert line.isprintable()
        assert unicode or line.isascii()
