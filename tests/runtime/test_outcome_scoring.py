"""Verdicts, metrics and baselines from outcomes that somebody else produced."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction
from math import comb
from pathlib import Path
from random import Random
from statistics import NormalDist
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trialwise as tw
from trialwise.errors import BaselineError, DesignRefused, InvalidArgument
from trialwise.model.claim import SamplingMode
from trialwise.model.codec import from_plain, to_plain
from trialwise.model.plan import Plan
from trialwise.model.trial import ErrorClass, FailReason
from trialwise.model.verdict import Decision, Finding, Verdict
from trialwise.outcomes.outcome_plans import Supplied
from trialwise.outcomes.outcome_rows import OutcomeRow, Outcomes
from trialwise.pages.run_report import render_html
from trialwise.procedures.run_verdict import decide_run
from trialwise.runtime.outcome_scoring import Scored, measure_outcomes, score
from trialwise.stats.sequential.bound import likely_mix
from trialwise.stats.sequential.design import SequentialDesign

PASS, FAIL, INCONCLUSIVE = Decision.PASS, Decision.FAIL, Decision.INCONCLUSIVE


def row(passed: bool, input_id: str = "q", criterion: str = "answers", **more: Any) -> OutcomeRow:
    return OutcomeRow(input_id=input_id, criterion=criterion, passed=passed, **more)


def broken(input_id: str = "q", error_class: ErrorClass = ErrorClass.INFRASTRUCTURE) -> OutcomeRow:
    return row(False, input_id, reason=FailReason.NO_VALUE, error_class=error_class, error="503")


def outcomes(rows: Sequence[OutcomeRow], **more: Any) -> Outcomes:
    return Outcomes(rows=tuple(rows), name="sums", **more)


def counts(passed: int, trials: int) -> Outcomes:
    return outcomes([row(place < passed) for place in range(trials)])


def finding(scored: Scored) -> Finding:
    return scored.result.verdict.findings[0]


def caveats(scored: Scored) -> str:
    return " ".join(finding(scored).caveats)


# --- Fixed designs --------------------------------------------------------------------------------


def wilson_cutoff(rate: float, trials: int, alpha: float) -> int:
    """The fewest successes whose score test rejects: k − np ≥ z √(np(1−p))."""
    z = NormalDist().inv_cdf(1 - alpha)
    return math.ceil(trials * rate + z * math.sqrt(trials * rate * (1 - rate)))


def exact_cutoff(rate: Fraction, trials: int, alpha: Fraction) -> int:
    """The fewest successes whose binomial upper tail is at most alpha."""
    tail, k = Fraction(0), trials + 1
    while k > 0:
        term = comb(trials, k - 1) * rate ** (k - 1) * (1 - rate) ** (trials - k + 1)
        if tail + term > alpha:
            return k
        tail, k = tail + term, k - 1
    return 0


@pytest.mark.parametrize(("rate", "trials"), [(0.9, 50), (0.8, 33), (0.5, 200), (0.95, 120)])
def test_a_file_passes_from_the_cutoff_on(rate: float, trials: int) -> None:
    """The decision of the fixed design at the number of trials in the file, by both rules."""
    limits = {
        "wilson": wilson_cutoff(rate, trials, 0.05),
        "exact": exact_cutoff(Fraction(str(rate)), trials, Fraction(1, 20)),
    }
    for rule, cutoff in limits.items():
        settings: dict[str, Any] = {"at_least": rate, "rule": rule}
        assert PASS is score(counts(cutoff, trials), **settings).decision
        open_decision = FAIL if rule == "wilson" else INCONCLUSIVE
        assert open_decision is score(counts(cutoff - 1, trials), **settings).decision
        assert FAIL is score(counts(cutoff - 1, trials), undecided="fail", **settings).decision


def test_too_few_outcomes_are_refused_or_judged_as_a_smoke_test() -> None:
    """20 trials without a failure do not show 95 %; as a smoke test they PASS, and say so."""
    with pytest.raises(DesignRefused, match=r"20 trials cannot show a rate above 0\.95"):
        score(counts(20, 20), at_least=0.95)
    small = score(counts(20, 20), at_least=0.95, intent="smoke")
    assert (PASS, "SMOKE PASS") == (small.decision, finding(small).label)
    fisher = score(counts(20, 20), at_least=0.95, intent="smoke", rule="fisher")
    assert FAIL is fisher.decision


def test_what_broke_counts_as_a_failure_of_its_class() -> None:
    """Intent-to-treat; the rate of the others stands beside it, and decides only if asked."""
    some = outcomes([*(row(True) for _ in range(45)), *(broken() for _ in range(10))])
    scored = score(some, at_least=0.9)
    found = finding(scored)
    assert (FAIL, 45, 55) == (scored.decision, found.tally.passed, found.tally.trials)
    assert found.breakdown is not None
    assert {"infrastructure": 10} == found.breakdown.errors
    assert found.per_protocol is not None
    assert (45, 45) == (found.per_protocol.passed, found.per_protocol.trials)
    fair = score(some, at_least=0.9, analysis="per-protocol")
    assert (PASS, 45) == (fair.decision, finding(fair).tally.trials)
    late = outcomes([*(row(True) for _ in range(45)), broken(error_class=ErrorClass.TIMEOUT)])
    assert 46 == finding(score(late, at_least=0.8, analysis="per-protocol")).tally.trials


def test_a_criterion_that_a_trial_says_nothing_of_failed_it_even_alone() -> None:
    """Asking about one criterion does not hide the trials that only others have."""
    rows = [row(True, f"q{n}", "polite") for n in range(60)]
    rows += [row(True, f"q{n}", "grounded") for n in range(50)]
    scored = score(outcomes(rows), at_least={"grounded": 0.7})
    assert ["grounded"] == [one.criterion for one in scored.result.verdict.findings]
    assert (50, 60) == (finding(scored).tally.passed, finding(scored).tally.trials)
    assert "says nothing of this criterion in 10 trials" in caveats(scored)
    apart = score(outcomes(rows).only("grounded"), at_least=0.7)
    assert 50 == finding(apart).tally.trials


def test_the_plan_says_that_nobody_here_drew_the_inputs() -> None:
    """Their repetitions are the file's, and the list of trials is exactly that."""
    rows = [*(row(True, "a") for _ in range(20)), *(row(True, "b") for _ in range(30))]
    [experiment] = score(outcomes(rows), at_least=0.9).result.record.plan.experiments
    assert SamplingMode.EXTERNALLY_SUPPLIED is experiment.sampling_mode
    assert (("a", "b"), (20, 30), 50) == (
        experiment.input_ids,
        experiment.repetitions,
        experiment.trials,
    )


def test_a_verdict_says_on_what_its_size_rests() -> None:
    """On nobody having looked, on somebody's word, or on the file's; observing rests on none."""
    some = counts(50, 50)
    assert "somebody stopped because of the results so far" in caveats(score(some, at_least=0.9))
    declared = caveats(score(some, at_least=0.9, trials=50))
    assert "that 50 trials were planned; this cannot be checked" in declared
    by_file = score(outcomes(some.rows, planned=50), at_least=0.9)
    assert "The file says that 50 trials were planned" in caveats(by_file)
    assert "stopped because" not in caveats(score(some, never_fails=True))


def test_notes_of_the_file_are_on_the_verdict() -> None:
    """Whoever reads it learns what was left out."""
    some = outcomes(counts(50, 50).rows, notes=("Skipped and not counted: 3 tests.",))
    assert "Skipped and not counted: 3 tests." in caveats(score(some, at_least=0.9))


# --- Unfinished files -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("passed", "found", "decision"),
    [
        (60, 60, INCONCLUSIVE),  # 96 of 100 are needed
        (96, 97, PASS),
        (95, 97, INCONCLUSIVE),
        (60, 76, FAIL),  # 16 failures: at most 84 of 100 show a rate below 90 %
        (60, 75, INCONCLUSIVE),
    ],
)
def test_a_file_with_less_than_was_planned_is_decided_only_where_it_is_certain(
    passed: int, found: int, decision: Decision
) -> None:
    """What is missing could still change the others."""
    assert 96 == exact_cutoff(Fraction(9, 10), 100, Fraction(1, 20))
    for scored in (
        score(counts(passed, found), at_least=0.9, trials=100),
        score(outcomes(counts(passed, found).rows, planned=100), at_least=0.9),
    ):
        verdict = scored.result.verdict
        assert decision is scored.decision
        assert (found, 100) == (verdict.experiments[0].trials, verdict.experiments[0].planned)
        missing = f"The file holds {found} of the 100 trials that were planned."
        assert (missing if decision is INCONCLUSIVE else "") == verdict.aborted


def test_more_than_was_declared_needs_an_order() -> None:
    """Which of them count must not be chosen afterwards; in order, the first ones do."""
    rows = [*(row(True) for _ in range(50)), *(row(False) for _ in range(30))]
    with pytest.raises(DesignRefused, match="must not be chosen afterwards"):
        score(outcomes(rows), at_least=0.9, trials=50)
    scored = score(outcomes(rows), at_least=0.9, trials=50, order="file")
    assert (PASS, 30, 50) == (scored.decision, scored.unused, len(scored.result.record.trials))
    assert "30 trials of the file come after" in caveats(scored)


# --- Order ----------------------------------------------------------------------------------------


def test_a_sorted_file_shows_no_drift_where_its_order_is_not_known() -> None:
    """Inputs that differ and stand one after the other would always look like one."""
    rows = [row(True, "easy") for _ in range(50)] + [row(False, "hard") for _ in range(50)]
    unknown = finding(score(outcomes(rows), at_least=0.3)).diagnostics
    known = finding(score(outcomes(rows), at_least=0.3, order="file")).diagnostics
    assert unknown is not None
    assert known is not None
    assert ((), 2) == (unknown.warnings, len(known.warnings))
    assert "The order of the trials is not known" in caveats(score(outcomes(rows), at_least=0.3))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.lists(st.booleans(), min_size=30, max_size=60), st.randoms(use_true_random=False))
def test_the_order_of_a_file_never_changes_a_fixed_decision(
    results: list[bool], source: Random
) -> None:
    """Neither the rows' nor that which stands for an unknown one."""
    rows = [row(passed, f"q{place % 7}") for place, passed in enumerate(results)]
    shuffled = list(rows)
    source.shuffle(shuffled)
    found = {
        score(outcomes(some), at_least=0.7, order=order, seed=seed).decision
        for some in (rows, shuffled)
        for order in ("unknown", "file")
        for seed in (1, 2)
    }
    assert 1 == len(found)


def test_a_sequential_decision_needs_a_declared_order() -> None:
    """A file may be sorted in any way."""
    with pytest.raises(DesignRefused, match="Declare it"):
        score(counts(50, 60), at_least=0.9, design="sequential")


def test_a_sequential_decision_is_refused_on_a_file_sorted_by_input() -> None:
    """It would be about the first inputs alone; each input on its own has no such trouble."""
    rows = [row(True, name) for name in ("a", "b", "c") for _ in range(40)]
    settings: dict[str, Any] = {"at_least": 0.9, "design": "sequential", "order": "file"}
    with pytest.raises(DesignRefused, match="not a random order"):
        score(outcomes(rows), **settings)
    assert PASS is score(outcomes(rows), each_input=True, **settings).decision


@pytest.mark.parametrize("seed", range(6))
def test_a_sequential_decision_stops_where_its_boundaries_are_crossed(seed: int) -> None:
    """Walking the file by hand; what comes after is left out and counted."""
    source = Random(seed)
    results = [source.random() < (0.95, 0.78, 0.86)[seed % 3] for _ in range(400)]
    scored = score(
        outcomes([row(passed) for passed in results]),
        at_least=0.9,
        design="sequential",
        order="file",
        max_trials=200,
        margin=0.10,
        power=0.80,
    )
    mix = likely_mix(0.9, 0.8)
    walk = SequentialDesign.optimal(0.9, 0.8, alpha=0.05, beta=0.2, cap=200, mix=mix)
    failures = trials = 0
    while trials < walk.cap and walk.accept[trials] < failures < walk.reject[trials]:
        failures += not results[trials]
        trials += 1
    crossed = PASS if failures <= walk.accept[trials] else FAIL
    expected = crossed if not walk.accept[trials] < failures < walk.reject[trials] else INCONCLUSIVE
    found = finding(scored)
    assert (expected, trials) == (scored.decision, found.tally.trials)
    assert 400 - trials == scored.unused
    assert "chosen before them" in caveats(scored)


def test_a_file_that_ends_before_a_sequential_decision_is_inconclusive() -> None:
    """And says so."""
    scored = score(counts(3, 3), at_least=0.9, design="sequential", order="file")
    assert INCONCLUSIVE is scored.decision
    assert scored.result.verdict.aborted.startswith("The file holds 3 of the ")


def test_times_give_the_order_where_the_file_does_not_stand_in_it() -> None:
    """The last rows of this file were the first trials."""
    results = [True] * 60 + [False] * 30
    rows = [row(passed, order=float(-place)) for place, passed in enumerate(results)]
    settings: dict[str, Any] = {"at_least": 0.9, "design": "sequential"}
    assert PASS is score(outcomes(rows), order="file", **settings).decision
    assert FAIL is score(outcomes(rows), order="time", **settings).decision


# --- Each input -----------------------------------------------------------------------------------


def test_every_input_may_be_judged_on_its_own() -> None:
    """Fewer trials than another has are fewer than were planned."""
    rows = [row(True, "good") for _ in range(40)]
    rows += [row(place % 2 == 0, "bad") for place in range(40)]
    rows += [row(True, "short") for _ in range(20)]
    scored = score(outcomes(rows), at_least=0.8, each_input=True)
    found = {part.input_id: part.decision for part in finding(scored).by_input}
    assert {"good": PASS, "bad": FAIL, "short": INCONCLUSIVE} == found
    assert FAIL is scored.decision


def test_two_kinds_of_judging_the_same_trials_are_scored_apart() -> None:
    """A pooled stream and a stream an input do not number trials alike."""
    rows = [row(True, "a", name) for name in ("x", "y") for _ in range(30)]
    criteria = [
        tw.Criterion("x", Supplied(), at_least=0.5),
        tw.Criterion("y", Supplied(), at_least=0.5, each_input=True),
    ]
    with pytest.raises(InvalidArgument, match="score the two kinds apart"):
        score(outcomes(rows), criteria=criteria)


# --- What may be asked ----------------------------------------------------------------------------


def test_criteria_may_have_questions_of_their_own() -> None:
    """With their origin, their category and their confidence."""
    rows = [row(True, "a", name) for name in ("x", "y", "z") for _ in range(60)]
    criteria = [
        tw.Criterion("z", Supplied(), never_fails=True, category="SAFETY", min_probes=100),
        tw.Criterion("x", Supplied(), at_least=0.9, origin="SLA", confidence=0.99),
    ]
    first, second = score(outcomes(rows), criteria=criteria).result.verdict.findings
    assert ("z", "NO FAILURE OBSERVED", "SAFETY") == (first.criterion, first.label, first.category)
    assert ("x", PASS, 0.01) == (second.criterion, second.decision, second.alpha)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "exactly one of at_least, no_worse_than, never_fails and mean_at_least"),
        ({"at_least": 0.9, "never_fails": True}, "exactly one"),
        ({"at_least": {}}, "at least one criterion"),
        ({"at_least": {"grounded": 0.9}}, "be one of the file's: answers"),
        ({"at_least": 0.9, "max_trials": 50}, "go with a sequential design"),
        ({"at_least": 0.9, "trials": 50, "design": "sequential", "order": "file"}, "max_trials"),
        ({"never_fails": True, "design": "group-sequential"}, "'fixed', 'sequential'"),
        ({"at_least": 0.9, "order": "random"}, "'unknown', 'file', 'time'"),
        ({"at_least": 0.9, "order": "time"}, "say when they began"),
        ({"no_worse_than": "baseline", "design": "sequential", "order": "file"}, "be fixed"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(arguments: dict[str, Any], message: str) -> None:
    """Before anything is decided."""
    with pytest.raises(InvalidArgument, match=message):
        score(counts(50, 60), **arguments)


def test_a_claim_beyond_the_file_has_to_be_supported() -> None:
    """Repetitions are no evidence about other inputs; a corpus is tried once; a run is a run."""
    repeated = outcomes([row(True, f"q{place % 10}") for place in range(60)])
    wide = tw.model.Claim(
        population=tw.model.PopulationClaim.SUPERPOPULATION, population_name="all questions"
    )
    with pytest.raises(DesignRefused, match="60 trials over 10 distinct inputs"):
        score(repeated, at_least=0.9, claim=wide)
    corpus = tw.model.Claim(population=tw.model.PopulationClaim.FINITE_CORPUS)
    with pytest.raises(DesignRefused, match="corpus"):
        score(repeated, at_least=0.9, claim=corpus)
    once = outcomes([row(place < 19, f"q{place}") for place in range(20)])
    assert PASS is score(once, at_least=0.95, claim=corpus).decision
    assert FAIL is score(once, at_least=0.951, claim=corpus).decision
    described = tw.model.Claim(population=tw.model.PopulationClaim.NO_GENERALISATION)
    assert PASS is score(repeated, at_least=0.99, claim=described).decision


def test_latencies_of_trials_that_passed_may_be_limited() -> None:
    """As a second dimension of the verdict."""
    rows = [row(True, latency_s=0.1 if place else 9.0) for place in range(100)]
    limit = tw.Latency.within(p95=0.5, enforced=True)
    assert PASS is score(outcomes(rows), at_least=0.9, latency=limit).decision
    slow = [row(True, latency_s=9.0) for _ in range(100)]
    assert PASS is not score(outcomes(slow), at_least=0.9, latency=limit).decision


def test_a_file_may_be_scored_as_it_is(tmp_path: Path) -> None:
    """Its tokens, its cost and the tests of a report, each judged over its own trials."""
    lines = [{"id": "q", "passed": True, "cost_usd": 0.5, "input_tokens": 2}] * 40
    file = tmp_path / "sums.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    scored = score(file, at_least=0.9)
    spending = scored.result.verdict.spending
    assert (PASS, "sums") == (scored.decision, scored.result.verdict.contract)
    assert (40, 80, 20.0) == (spending.trials, spending.tokens, spending.usd)
    report = tmp_path / "junit.xml"
    cases = "".join(
        f'<testcase classname="t" name="{name}[{place}-40]"/>'
        for name in ("books", "asks")
        for place in range(1, 41)
    )
    report.write_text(f"<testsuite>{cases}</testsuite>")
    scored = score(report, at_least=0.9)
    assert ["t.books", "t.asks"] == [one.experiment for one in scored.result.verdict.findings]


def test_tests_that_ran_once_each_are_judged_together_or_refused() -> None:
    """One trial shows no rate, however many tests there are; pooled they are inputs of one."""
    once = outcomes([row(True, "-", f"test{number}") for number in range(60)])
    with pytest.raises(DesignRefused, match="each of the 60 criteria has one trial") as caught:
        score(once, at_least=0.9)
    assert 1 == len(caught.value.reasons)
    scored = score(once.pool(), at_least=0.9)
    assert (PASS, 60) == (scored.decision, scored.result.verdict.experiments[0].inputs)
    assert PASS is score(once, never_fails=True).decision


def test_secrets_are_taken_out_before_anything_is_kept() -> None:
    """Of explanations, evidence and errors."""
    leaking = row(False, explanation="sk-1", evidence="sk-1", error="sk-1")
    some = outcomes([*counts(49, 49).rows, leaking])
    scored = score(some, never_fails=True, redact=lambda text: text.replace("sk-1", "***"))
    assert "sk-1" not in repr(scored.result.record.trials)


# --- Records --------------------------------------------------------------------------------------


def scored_examples() -> list[Scored]:
    mixed = [row(place % 9 != 0, f"q{place % 5}", order=float(place)) for place in range(90)]
    rows = [*mixed, broken("q1"), broken("q2", ErrorClass.TIMEOUT)]
    return [
        score(outcomes(rows), at_least=0.7),
        score(outcomes(rows), at_least=0.7, trials=120),
        score(outcomes(rows), at_least=0.5, each_input=True, intent="smoke"),
        score(outcomes(mixed), at_least=0.9, design="sequential", order="time"),
        score(outcomes(rows), never_fails=True, order="file"),
    ]


def test_a_record_can_be_decided_again() -> None:
    """From its plan and its trials, after a way through JSON."""
    for scored in scored_examples():
        record = scored.result.record
        plain = json.loads(json.dumps([to_plain(record.plan), to_plain(record.verdict)]))
        plan, verdict = from_plain(Plan, plain[0]), from_plain(Verdict, plain[1])
        again = decide_run(
            plan,
            record.trials,
            stops={one.name: one.stop for one in verdict.experiments},
            stop=verdict.stop,
            spending=verdict.spending,
            message=verdict.aborted,
            reproducibility=verdict.reproducibility,
        )
        assert record.verdict == verdict == again


def test_a_scored_file_is_plain_json_and_can_be_reported() -> None:
    """The summary, the full analysis and the page."""
    for scored in scored_examples():
        plain = json.loads(json.dumps(scored.to_dict(), allow_nan=False))
        assert scored.decision == plain["verdict"]["decision"]
        assert 1 == len(plain["metrics"]["criteria"])
        assert "externally-supplied" in scored.result.transparent()
        assert "sums" in render_html(scored.result.record)


# --- Baselines ------------------------------------------------------------------------------------


def fisher(passed: int, trials: int, base: int, base_trials: int) -> Fraction:
    """The chance of no more successes in the test, all successes being shared out at random."""
    every = passed + base
    ways = sum(
        comb(trials, k) * comb(base_trials, every - k)
        for k in range(max(0, every - base_trials), passed + 1)
    )
    return Fraction(ways, comb(trials + base_trials, every))


def test_a_baseline_of_outcomes_is_a_reference_for_others(tmp_path: Path) -> None:
    """FAIL exactly where Fisher's test signals a drop."""
    measured = measure_outcomes(counts(190, 200), baselines=tmp_path)
    [(name, kept)] = measured.baseline.criteria.items()
    assert ("answers", 190, 200, 10) == (name, kept.passed, kept.trials, kept.condition)
    assert measured.path.is_file()
    for passed in range(80, 101, 2):
        scored = score(
            counts(passed, 100), no_worse_than="baseline", rule="exact", baselines=tmp_path
        )
        signals = fisher(passed, 100, 190, 200) <= Fraction(1, 20)
        assert (FAIL if signals else PASS) is scored.decision
        given = score(counts(passed, 100), no_worse_than=measured.baseline, rule="exact")
        assert scored.decision is given.decision


def test_other_inputs_another_rule_or_another_model_are_no_comparison(tmp_path: Path) -> None:
    """As for any baseline: the comparison does not exist."""
    model = {"model": "gpt-4o"}
    measure_outcomes(outcomes(counts(190, 200).rows, factors=model), baselines=tmp_path)
    others = outcomes([row(True, "other") for _ in range(50)], factors=model)
    stricter = outcomes(counts(50, 50).rows, factors=model, passing=">= 0.9")
    newer = outcomes(counts(50, 50).rows, factors={"model": "gpt-5"})
    for some, message in (
        (others, "others than the baseline's"),
        (stricter, "another definition"),
        (newer, "Factor model"),
    ):
        with pytest.raises(DesignRefused, match=message):
            score(some, no_worse_than="baseline", baselines=tmp_path)
    same = outcomes(counts(60, 60).rows, factors=model)
    assert PASS is score(same, no_worse_than="baseline", baselines=tmp_path).decision


def test_a_baseline_keeps_reasons_latencies_and_when_it_was_measured(tmp_path: Path) -> None:
    """And starts the next epoch each time."""
    rows = [*(row(True, latency_s=0.25) for _ in range(30)), row(False), broken()]
    when = datetime(2026, 5, 15, 8, 30, tzinfo=UTC)
    first = measure_outcomes(
        outcomes(rows),
        contract="calc",
        identifier="may",
        created_at=when,
        valid_days=90,
        covariates={"region": "EU"},
        baselines=tmp_path,
    ).baseline
    kept = first.criteria["answers"]
    assert (1, 1) == (kept.condition, kept.no_value)
    assert ((0.25,) * 30, 32) == (first.latencies_s["outcomes"], first.run_trials["outcomes"])
    assert ("calc", "may", when, 1) == (
        first.contract,
        first.identifier,
        first.created_at,
        first.epoch,
    )
    second = measure_outcomes(
        outcomes(rows), contract="calc", covariates={"region": "EU"}, baselines=tmp_path
    )
    assert 2 == second.baseline.epoch


def test_part_of_a_baseline_is_none(tmp_path: Path) -> None:
    """A file that says that trials are missing makes none."""
    with pytest.raises(BaselineError, match="holds 30 of 40 trials"):
        measure_outcomes(outcomes(counts(30, 30).rows, planned=40), baselines=tmp_path)
    with pytest.raises(BaselineError, match="no baseline of the contract"):
        score(counts(50, 50), no_worse_than="baseline", baselines=tmp_path)
