"""Trials after a decision can withdraw it, and never make one.

Every critical count and probability here is computed from the definition of the binomial and the
hypergeometric distribution, and from a walk over the boundaries of a design that is written here.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from itertools import accumulate
from math import comb
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trialwise as tw
from trialwise.model.baseline import BaselineReference
from trialwise.model.evidence import (
    Breakdown,
    CutoffEvidence,
    Evidence,
    Spending,
    StopReason,
    Tally,
    Threshold,
    TrialCounts,
)
from trialwise.model.fingerprint import plan_hash
from trialwise.model.options import RunOptions
from trialwise.model.plan import CriterionPlan, Plan
from trialwise.model.verdict import Decision, Finding
from trialwise.procedures.composite import withdraw
from trialwise.procedures.run_verdict import decide_run
from trialwise.runtime.verifying import WORDING, verify
from trialwise.stats.regression_cutoffs import regression_cutoff
from trialwise.stats.sequential.design import SequentialDesign
from trialwise.stores.runs import RunStore

BEFORE = Path(__file__).parents[1] / "data" / "records-before-withdrawal"


# --- An implementation of its own -------------------------------------------------------------


@cache
def add_up(n: int, p: float) -> list[float]:
    """P(K ≤ k) of a binomial count for k = 0 … n."""
    return list(accumulate(comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(n + 1)))


def tail_below(k: int, n: int, p: float) -> float:
    """P(K ≤ k) of a binomial count."""
    return 0.0 if k < 0 else add_up(n, p)[k]


@cache
def most_that_withdraw(n: int, rate: float) -> int:
    """The most successes of n later trials that contradict a PASS; −1 where none do."""
    if n < 10 or rate <= 0:
        return -1
    return sum(chance <= 0.01 for chance in add_up(n, rate)) - 1


def chance_of_pass(accept: Any, reject: Any, futile: Any, p: float) -> float:
    """P(PASS) by a walk over the boundaries."""
    states, passed = {0: 1.0}, 0.0
    for n in range(1, len(accept)):
        following: dict[int, float] = {}
        for failures, weight in states.items():
            following[failures] = following.get(failures, 0.0) + weight * p
            following[failures + 1] = following.get(failures + 1, 0.0) + weight * (1 - p)
        passed += sum(w for f, w in following.items() if f <= accept[n])
        gives_up = futile[n] if futile else (1, 0)
        states = {
            f: w
            for f, w in following.items()
            if accept[n] < f < reject[n] and not gives_up[0] <= f <= gives_up[1]
        }
    return passed


def chance_of_ever(rate: float, p: float, most: int) -> float:
    """P(the later trials contradict a PASS at some number of them): whoever ends the run."""
    states, hit = {0: 1.0}, 0.0
    for n in range(1, most + 1):
        following: dict[int, float] = {}
        for passed, weight in states.items():
            following[passed + 1] = following.get(passed + 1, 0.0) + weight * p
            following[passed] = following.get(passed, 0.0) + weight * (1 - p)
        limit = most_that_withdraw(n, rate)
        hit += sum(w for k, w in following.items() if k <= limit)
        states = {k: w for k, w in following.items() if k > limit}
    return hit


# --- The rule ---------------------------------------------------------------------------------

RUN = Plan(
    contract="c",
    seed=1,
    intent=tw.model.Intent.VERIFICATION,
    rule="exact",
    analysis=RunOptions().analysis,
    claim=tw.model.Claim(),
    options=RunOptions(),
    experiments=(),
    criteria=(),
)


def make_finding(
    decision: Decision | None,
    later: Tally | None,
    *,
    required: float | None = 0.9,
    low: float | None = None,
    baseline: tuple[int, int] | None = None,
    level: float | None = 0.01,
    evidence: Evidence | None = None,
) -> Finding:
    """A finding that was decided at trial 25, with trials after it."""
    reference = None
    if baseline is not None:
        reference = BaselineReference(
            identifier="b",
            created_at=dataclasses.MISSING,  # type: ignore[arg-type]
            passed=baseline[0],
            trials=baseline[1],
            covariates={},
            covariate_match="OK",
            factors={},
        )
    plan = CriterionPlan(
        criterion="c",
        procedure="SEQUENTIAL",
        trials=100,
        threshold=Threshold(
            required_rate=required,
            alternative_rate=required if low is None else low,
            baseline=reference,
        ),
    ).change(withdrawn_by=level)
    tally = Tally(trials=25, passed=25)
    more = later or Tally(trials=0, passed=0)
    every = Tally(trials=25 + more.trials, passed=25 + more.passed)
    counts = TrialCounts(
        intent_to_treat=every,
        per_protocol=every,
        breakdown=Breakdown(),
        counted=every,
        decided_at=25,
        later=later,
    )
    return Finding(
        plan=plan, decision=decision, tally=tally, counts=counts, evidence=evidence or Evidence()
    )


def is_withdrawn(decision: Decision, passed: int, trials: int, **more: Any) -> bool:
    found = withdraw(make_finding(decision, Tally(trials=trials, passed=passed), **more), RUN)
    return found.withdrawn is decision and found.decision is Decision.INCONCLUSIVE


@pytest.mark.parametrize(("trials", "most"), [(10, 5), (20, 13), (50, 39), (100, 81)])
def test_a_pass_at_90_percent_is_withdrawn_by_the_stated_counts(trials: int, most: int) -> None:
    """At most 5 of 10, 13 of 20, 39 of 50 or 81 of 100; a FAIL at 10 % in the mirrored way."""
    assert is_withdrawn(Decision.PASS, most, trials)
    assert not is_withdrawn(Decision.PASS, most + 1, trials)
    assert is_withdrawn(Decision.FAIL, trials - most, trials, required=0.1)
    assert not is_withdrawn(Decision.FAIL, trials - most - 1, trials, required=0.1)


@pytest.mark.parametrize("rate", [0.5, 0.8, 0.9, 0.99])
@pytest.mark.parametrize("trials", [9, 10, 11, 25, 60, 150])
def test_the_rule_is_the_exact_one_sided_binomial_test(trials: int, rate: float) -> None:
    """At 1 %, from ten trials on; a margin relaxes what contradicts a PASS."""
    limit = most_that_withdraw(trials, rate)
    for passed in range(trials + 1):
        assert is_withdrawn(Decision.PASS, passed, trials, required=rate) == (passed <= limit)
        assert is_withdrawn(Decision.PASS, passed, trials, required=0.995, low=rate) == (
            passed <= limit
        )
        # The chance of this many passes at the rate is that of so few failures at its complement.
        mirrored = trials >= 10 and 1 - (tail_below(passed - 1, trials, rate)) <= 0.01
        assert is_withdrawn(Decision.FAIL, passed, trials, required=rate) == mirrored


def test_a_fail_that_is_only_not_shown_stays() -> None:
    """It says nothing about the rate, so that a high rate later contradicts nothing."""
    later = Tally(trials=100, passed=100)
    for ground, decision in (("not shown", Decision.FAIL), ("shown below", Decision.INCONCLUSIVE)):
        finding = make_finding(Decision.FAIL, later, evidence=CutoffEvidence(ground=ground))
        assert withdraw(finding, RUN).decision is decision


def test_against_a_baseline_fishers_test_has_to_agree() -> None:
    """The binomial test alone takes the rate of 9 of 10 for known: 100 of 150 is below 80 %.

    Fisher's p-value of 9 of 10 against 100 of 150 is 0.12, by its definition.
    """
    n, k, base, trials = 150, 100, 9, 10
    p = sum(
        comb(trials, trials - j) * comb(n, k + base - (trials - j)) / comb(n + trials, k + base)
        for j in range(trials - base + 1)
    )
    assert p > 0.1
    assert tail_below(k, n, 0.8) < 0.01
    given: dict[str, Any] = {"required": None, "low": 0.8}
    assert not is_withdrawn(Decision.PASS, k, n, baseline=(base, trials), **given)
    assert is_withdrawn(Decision.PASS, k, n, baseline=(900, 1000), **given)
    assert is_withdrawn(Decision.FAIL, 150, 150, baseline=(800, 1000), **given)
    assert not is_withdrawn(Decision.FAIL, 125, 150, baseline=(800, 1000), **given)
    # Nothing is above a baseline without a failure.
    assert not is_withdrawn(Decision.FAIL, 150, 150, baseline=(1000, 1000), **given)


@given(
    decision=st.sampled_from([*Decision, None]),
    trials=st.integers(0, 400),
    share=st.floats(0, 1),
    required=st.sampled_from([None, 0.05, 0.5, 0.9, 0.999]),
    margin=st.sampled_from([0.0, 0.05, 0.9]),
    level=st.sampled_from([None, 0.01]),
    baseline=st.sampled_from([None, (0, 10), (9, 10), (500, 500)]),
)
def test_only_decisions_become_inconclusive(  # noqa: PLR0917 (hypothesis names them)
    decision: Decision | None,
    trials: int,
    share: float,
    required: float | None,
    margin: float,
    level: float | None,
    baseline: tuple[int, int] | None,
) -> None:
    """PASS and FAIL stay or become INCONCLUSIVE; all else stays, and so do the numbers."""
    if required is not None:
        baseline = None
    low = None if required is None else max(0.0, required - margin)
    later = Tally(trials=trials, passed=round(share * trials))
    before = make_finding(
        decision, later, required=required, low=low, baseline=baseline, level=level
    )

    after = withdraw(before, RUN)

    assert after.decision in (decision, Decision.INCONCLUSIVE)
    if after.decision is decision:
        assert after is before
        return
    assert decision in (Decision.PASS, Decision.FAIL)
    assert level is not None
    assert (after.tally, after.counts, after.evidence) == (
        before.tally,
        before.counts,
        before.evidence,
    )


# --- How often a service that does not change loses its PASS -----------------------------------


@pytest.mark.parametrize(
    "design",
    [
        SequentialDesign.strict(0.8),
        SequentialDesign.strict(0.9),
        SequentialDesign.strict(0.95, cap=300),
        SequentialDesign.optimal(0.9, 0.8),
        SequentialDesign.wald(0.9, 0.8, cap=50),
    ],
    ids=lambda one: f"{one.method} {one.p0:g} {one.p1:g}",
)
def test_a_service_that_does_not_change_loses_its_pass_in_less_than_1_percent(design: Any) -> None:
    """At every rate from the one that a PASS rules out on, for any number of later trials.

    Where both errors are 5 % that holds even for whoever ends the run at the worst moment.
    """
    rate = design.p1
    for p in (rate, rate + (1 - rate) / 5, rate + (1 - rate) / 2, 1 - (1 - rate) / 5):
        passes = chance_of_pass(design.accept, design.reject, design.futile, p)
        for later in (10, 12, 20, 50, 120, 300):
            assert passes * tail_below(most_that_withdraw(later, rate), later, p) < 0.005
        if design.beta <= 0.05:
            assert passes * chance_of_ever(rate, p, 200) < 0.005


@pytest.mark.parametrize(("size", "trials", "margin"), [(100, 100, 0.05), (100, 60, 0.1)])
@pytest.mark.parametrize("p", [0.7, 0.85, 0.95])
def test_a_service_like_its_baseline_loses_its_pass_in_less_than_1_percent(
    size: int, trials: int, margin: float, p: float
) -> None:
    """Over everything that the baseline can be, whose rate nobody knows.

    With the binomial test alone 2.4 % would lose it at 70 % and 1,000 later trials.
    """
    later, lost = 400, 0.0
    for measured in range(size + 1):
        weight = comb(size, measured) * p**measured * (1 - p) ** (size - measured)
        if weight < 1e-6:
            lost += weight
            continue
        cutoff = regression_cutoff(measured, size, trials).cutoff
        assert cutoff is not None
        passes = 1 - tail_below(cutoff - 1, trials, p)
        low = measured / size - margin
        given: dict[str, Any] = {"required": None, "low": low, "baseline": (measured, size)}
        low_end, high_end = -1, most_that_withdraw(later, low)
        while low_end < high_end:  # the more pass, the less they contradict
            middle = (low_end + high_end + 1) // 2
            if is_withdrawn(Decision.PASS, middle, later, **given):
                low_end = middle
            else:
                high_end = middle - 1
        limit = low_end
        lost += weight * passes * tail_below(limit, later, p)
    assert lost < 0.01


# --- Runs -------------------------------------------------------------------------------------


def run(
    script: Any,
    early: tw.Criterion,
    *,
    trials: int = 120,
    inputs: Any = ("x",),
    more: Any = (),
    **given: Any,
) -> tw.Result:
    """A run of a criterion that is decided early beside one that needs all trials."""

    def answer(_: str, index: int) -> str:
        return "yes B" if script(index) else "no B"

    long = tw.Criterion("long", tw.contains("B"), at_least=0.5, trials=trials)
    usual: dict[str, Any] = {"store": None, "progress": False, "seed": 1, "curtail": False}
    contract = tw.Contract("later", answer, [early, *more, long])
    return tw.run(contract, inputs=list(inputs), **(usual | given))


EARLY = tw.Criterion("early", tw.contains("yes"), at_least=0.8)


def changes(index: int) -> bool:
    """A service that passes 25 times and then every second time."""
    return index < 25 or index % 2 == 0


def test_a_service_that_changes_during_the_run_is_inconclusive() -> None:
    """A criterion that was decided early does not stay green whatever follows."""
    result = run(changes, EARLY, trials=332)
    finding = result.verdict.findings[0]
    at = finding.decided_at or 0
    later = sum(changes(index) for index in range(at, 332))

    assert finding.decision is Decision.INCONCLUSIVE
    assert finding.withdrawn is Decision.PASS
    assert finding.statement == (
        f"PASS at trial {at}, but later trials show a lower rate ({later} of {332 - at} passed): "
        "the service changed during the run."
    )
    assert (finding.tally.passed, finding.tally.trials) == (at, at)
    assert (finding.later.passed, finding.later.trials) == (later, 332 - at)
    assert result.decision is Decision.INCONCLUSIVE


def test_a_fail_is_withdrawn_in_the_mirrored_way() -> None:
    """A service that recovers is neither shown to meet its rate nor shown to miss it."""
    finding = run(lambda index: index >= 12, EARLY, keep_going=True).verdict.findings[0]

    assert (finding.withdrawn, finding.decision) == (Decision.FAIL, Decision.INCONCLUSIVE)
    assert "FAIL at trial" in finding.statement
    assert "later trials show a higher rate" in finding.statement


def test_a_service_that_does_not_change_keeps_its_decision() -> None:
    """Both ways, and a rate within the margin contradicts no PASS."""
    assert run(lambda index: index % 20 != 19, EARLY).verdict.findings[0].decision == "PASS"
    assert (
        run(lambda index: index % 2 == 0, EARLY, keep_going=True).verdict.findings[0].decision
        == "FAIL"
    )
    relaxed = dataclasses.replace(EARLY, margin=0.3)
    assert run(changes, relaxed).verdict.findings[0].withdrawn is None
    assert run(changes, EARLY).verdict.findings[0].withdrawn is Decision.PASS


def test_a_fixed_number_that_was_certain_early_is_withdrawn_too() -> None:
    """The latency limit runs all trials, so that those after the certain verdict are later ones."""
    latency = tw.Latency(constraints=(tw.model.LatencyConstraint(percentile="p50", limit_s=1.0),))
    contract = tw.Contract(
        "x",
        lambda _, index: "ok" if index < 59 else "bad",
        [tw.Criterion("ok", tw.equals("ok"), at_least=0.5)],
        latency=latency,
    )
    usual: dict[str, Any] = {"store": None, "progress": False, "seed": 1}
    finding = tw.run(contract, inputs=list("abcd"), trials=100, **usual).verdict.findings[0]

    assert (finding.decided_at, finding.withdrawn) == (59, Decision.PASS)


@pytest.mark.parametrize(
    "early",
    [
        dataclasses.replace(EARLY, at_least=None, never_fails=True),
        dataclasses.replace(EARLY, at_least=None, mean_at_least=0.5, trials=40),
        dataclasses.replace(EARLY, at_least=None, report_only=True),
    ],
    ids=["never_fails", "mean", "report only"],
)
def test_what_is_not_about_a_rate_is_never_withdrawn(early: tw.Criterion) -> None:
    """A failure is a FAIL wherever it comes; a mean has no such test."""
    result = run(changes, early)

    assert result.record.plan.criteria[0].others.withdrawn_by is None
    assert result.verdict.findings[0].withdrawn is None


def test_a_quick_check_does_not_say_that_the_service_changed() -> None:
    """It is withdrawn, and shows nothing that a change would be needed to explain."""
    smoke = dataclasses.replace(EARLY, trials=5, intent="smoke")
    finding = run(changes, smoke).verdict.findings[0]

    assert (finding.withdrawn, finding.label) == (Decision.PASS, "")
    assert "changed" not in finding.statement


def test_undecided_fail_makes_a_withdrawn_pass_no_fail() -> None:
    """A later trial withdraws and never decides."""
    strict = dataclasses.replace(EARLY, trials=20, undecided="fail")

    assert run(changes, strict).verdict.findings[0].decision is Decision.INCONCLUSIVE


@pytest.mark.parametrize("correction", ["bonferroni", "holm", "bh"])
def test_a_corrected_decision_is_withdrawn(correction: str) -> None:
    """After the correction, so that no correction can make the decision again."""
    fixed = dataclasses.replace(EARLY, trials=40)
    for early in (EARLY, fixed):
        finding = run(lambda index: index < 50, early, correction=correction).verdict.findings[0]
        assert (finding.withdrawn, finding.decision) == (Decision.PASS, Decision.INCONCLUSIVE)


def test_each_input_is_withdrawn_on_its_own() -> None:
    """The criterion is then no PASS, and names the input that changed."""

    def answer(text: str, index: int) -> str:
        return "yes B" if text == "good" or index < 60 else "no B"

    criteria = [
        dataclasses.replace(EARLY, each_input=True),
        tw.Criterion("long", tw.contains("B"), at_least=0.5, trials=60, each_input=True),
    ]
    contract = tw.Contract("later", answer, criteria)
    usual: dict[str, Any] = {"store": None, "progress": False, "seed": 1, "curtail": False}
    result = tw.run(contract, inputs=["good", "worse"], **usual)
    whole = result.verdict.findings[0]
    good, worse = whole.by_input

    assert (good.decision, good.withdrawn) == (Decision.PASS, None)
    assert (worse.decision, worse.withdrawn) == (Decision.INCONCLUSIVE, Decision.PASS)
    assert whole.decision is Decision.INCONCLUSIVE
    assert whole.statement.startswith("1 of 2 inputs PASS; INCONCLUSIVE: 2 (")
    assert verify(result.record).matches


@pytest.mark.parametrize("analysis", ["measured", "intent-to-treat"])
def test_later_trials_are_counted_by_the_same_analysis(analysis: str) -> None:
    """An outage after the decision is no failure, unless not to answer is one."""

    def answer(_: str, index: int) -> str:
        if index >= 50 and index % 3 == 0:
            raise ConnectionRefusedError("down")
        return "yes B"

    early = dataclasses.replace(EARLY, analysis=analysis)
    long = tw.Criterion("long", tw.contains("B"), at_least=0.2, trials=200)
    contract = tw.Contract("later", answer, [early, long])
    usual: dict[str, Any] = {"store": None, "progress": False, "seed": 1, "curtail": False}
    finding = tw.run(contract, inputs=["x"], retries=0, **usual).verdict.findings[0]

    assert (finding.withdrawn is Decision.PASS) == (analysis == "intent-to-treat")


def test_trials_after_a_gap_withdraw_nothing() -> None:
    """What came back beyond a trial that is missing was not issued later than all before it."""
    result = run(changes, EARLY)
    record, at = result.record, result.verdict.findings[0].decided_at or 0

    def decide_without(missing: int) -> tuple[Decision | None, Tally | None]:
        kept = [trial for trial in record.trials if trial.index != missing]
        stops = {"inputs": StopReason.INTERRUPTED}
        given: dict[str, Any] = {"spending": Spending(), "stop": StopReason.INTERRUPTED}
        found = decide_run(record.plan, kept, stops=stops, **given).findings[0]
        assert found.counts is not None
        return found.decision, found.counts.later

    assert decide_without(at + 1) == (Decision.PASS, Tally(trials=1, passed=1))
    passed = sum(changes(index) for index in range(at, at + 60))
    assert decide_without(at + 60) == (Decision.INCONCLUSIVE, Tally(trials=60, passed=passed))


@pytest.mark.parametrize("concurrency", [1, 7])
def test_a_resumed_run_is_withdrawn_as_an_uninterrupted_one(
    tmp_path: Path, concurrency: int
) -> None:
    """Cut short before ten later trials it keeps its PASS; what follows withdraws it."""
    given: dict[str, Any] = {"concurrency": concurrency, "seed": 1}
    whole = run(changes, EARLY, **given).verdict.findings[0]
    cut = run(changes, EARLY, store=tmp_path, budget=tw.Budget(trials=28), **given)
    resumed = run(changes, EARLY, store=tmp_path, resume=True, **given)

    assert cut.verdict.findings[0].decision is Decision.PASS
    found = resumed.verdict.findings[0]
    assert (found.decision, found.statement) == (whole.decision, whole.statement)
    assert verify(resumed.record).matches


# --- Records ----------------------------------------------------------------------------------


def test_a_withdrawal_follows_from_the_plan_and_the_trials() -> None:
    """A record that hides it is found out."""
    record = run(changes, EARLY).record
    assert verify(record).matches
    finding = record.verdict.findings[0]
    hidden = dataclasses.replace(finding, decision=Decision.PASS, withdrawn=None)
    forged = dataclasses.replace(
        record,
        verdict=dataclasses.replace(
            record.verdict, findings=(hidden, *record.verdict.findings[1:]), decision=Decision.PASS
        ),
    )

    assert "verdict.findings[early].withdrawn" in [one.path for one in verify(forged).differences]


def test_a_plan_without_the_rule_is_decided_without_it() -> None:
    """A run that was planned before there was one keeps its PASS, its hash and its check."""
    (name,) = [path.name for path in (BEFORE / "runs").iterdir()]
    stored = RunStore(BEFORE).open(name)
    record = stored.record()
    finding = record.verdict.findings[0]

    assert [one.others.withdrawn_by for one in record.plan.criteria] == [None, None]
    assert plan_hash(record.plan) == stored.plan_hash
    assert (finding.decision, finding.later) == (Decision.PASS, Tally(trials=40, passed=23))
    found = verify(record, known_hash=stored.plan_hash).differences
    # Sentences may be put otherwise since.
    assert [one for one in found if one.path.rpartition(".")[2] not in WORDING] == []
