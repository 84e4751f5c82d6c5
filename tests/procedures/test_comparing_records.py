"""Two runs compared from their records: which test is valid, and what it concludes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from itertools import product
from math import comb
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from trialwise.engine.criterion_progress import issue_places, trial_seeds
from trialwise.errors import InvalidArgument
from trialwise.model.claim import Claim, Sampling
from trialwise.model.contract import Contract
from trialwise.model.criterion import Criterion
from trialwise.model.evidence import Spending, StopReason, Tally
from trialwise.model.options import RunOptions
from trialwise.model.reply import Usage
from trialwise.model.run import RunRecord, Trials
from trialwise.model.trial import CheckResult, ErrorClass, Outcome, Trial
from trialwise.model.verdict import Decision
from trialwise.procedures.comparing.amounts import median_interval
from trialwise.procedures.comparing.evidence import (
    weigh_planned_pairs,
    weigh_stopped_pairs,
    weigh_unpaired,
)
from trialwise.procedures.comparing.findings import ComparisonQuestion, ComparisonVerdict, Contrast
from trialwise.procedures.comparing.pairing import name_arms
from trialwise.procedures.comparison import COMPARISON, fewest_discordant
from trialwise.procedures.criterion_rows import Stream
from trialwise.procedures.run_plan import plan_run
from trialwise.procedures.run_verdict import decide_run
from trialwise.stats.paired import PairCounts
from trialwise.stats.paired_rules import plan_paired_rule

BEGAN = datetime(2026, 5, 1, 12, tzinfo=UTC)
POPULATION = Claim(population="superpopulation", population_name="all tickets")  # type: ignore[arg-type]

Passes = Callable[[int, str], bool]
"""Whether a trial passes, by its index and input."""


def run_of(
    passes: Mapping[str, Passes],
    *,
    trials: int,
    inputs: int = 1,
    seed: int = 7,
    fingerprint: str = "same",
    structure: str = "one",
    claim: Claim | None = None,
    measuring: bool = True,
    excused: frozenset[int] = frozenset(),
    took: Callable[[int], tuple[float, float, int]] | None = None,
    began: datetime | None = BEGAN,
    stop: StopReason = StopReason.COMPLETE,
    covariates: Mapping[str, str] | None = None,
    **options: Any,
) -> RunRecord:
    """A record whose every outcome is given, planned and judged by the package itself."""
    criteria = tuple(
        Criterion(name, bool, never_fails=True)
        if measuring
        else Criterion(name, bool, at_least=0.5)
        for name in passes
    )
    contract = Contract(
        "agent", None, criteria, sampling=Sampling.of(range(inputs)), claim=claim or Claim()
    )
    plan = plan_run(
        contract,
        RunOptions(trials=trials, **options),
        seed=seed,
        structure=dict.fromkeys(passes, structure),
        fingerprints={"inputs": fingerprint},
        covariates=covariates,
        measuring=measuring,
    )
    experiment = plan.experiments[0]
    order = issue_places(experiment, seed=seed, each_input=False)
    seed_of = trial_seeds(seed, experiment.name)
    streams = [Stream(one.limits) for one in plan.criteria]
    done = []
    for index, place in enumerate(order):
        if not measuring and all(stream.is_settled for stream in streams):
            break
        input_id = experiment.input_ids[place]
        lost = index in excused
        latency_s, cost_usd, tokens = took(index) if took else (1.0, 0.01, 10)
        good = {name: not lost and rule(index, input_id) for name, rule in passes.items()}
        for stream, passed in zip(streams, good.values(), strict=True):
            stream.add(index, passed=passed)
        done.append(
            Trial(
                experiment=experiment.name,
                index=index,
                input_id=input_id,
                seed=seed_of(index),
                outcomes=tuple(
                    Outcome(
                        criterion=name,
                        result=CheckResult.ok() if passed else CheckResult.fail("no"),
                    )
                    for name, passed in good.items()
                ),
                error_class=ErrorClass.INFRASTRUCTURE if lost else ErrorClass.NONE,
                latency_s=latency_s,
                cost_usd=cost_usd,
                usage=Usage(input_tokens=tokens),
            )
        )
    ended = stop
    if stop is StopReason.COMPLETE and len(done) < len(order):
        ended = StopReason.CURTAILED
    verdict = decide_run(
        plan, done, stops={"inputs": ended}, stop=ended, spending=Spending(), started_at=began
    )
    return RunRecord(run_id=f"run-{seed}", plan=plan, trials=Trials.of(done), verdict=verdict)


def compare(
    control: RunRecord,
    candidate: RunRecord,
    question: ComparisonQuestion | None = None,
    *,
    labels: tuple[str, str] | None = None,
) -> ComparisonVerdict:
    """Compare two records under the labels that a comparison gives them."""
    return COMPARISON.decide(name_arms((control, candidate), labels), question)


def two_runs(pairs: list[tuple[bool, bool]], **options: Any) -> tuple[RunRecord, RunRecord]:
    """Two runs of one criterion whose k-th pair is given as (control, candidate)."""
    ours = run_of({"answers": lambda i, _: pairs[i][0]}, trials=len(pairs), **options)
    theirs = run_of({"answers": lambda i, _: pairs[i][1]}, trials=len(pairs), **options)
    return ours, theirs


def table(both: int = 0, lost: int = 0, won: int = 0, neither: int = 0) -> list[tuple[bool, bool]]:
    return (
        [(True, True)] * both
        + [(True, False)] * lost
        + [(False, True)] * won
        + [(False, False)] * neither
    )


def two_sided(lost: int, won: int) -> Fraction:
    """The exact sign test, by counting."""
    n = lost + won
    tail = Fraction(sum(comb(n, k) for k in range(max(lost, won), n + 1)), 2**n)
    return min(Fraction(1), 2 * tail)


# --- The exact test ---------------------------------------------------------------------------


def test_three_to_nothing_is_not_told_apart() -> None:
    """80 % against 50 % on ten pairs: p = 0.25, and no difference is claimed."""
    found = compare(*two_runs(table(both=5, lost=3, neither=2))).findings[0]

    assert (0.25, Contrast.NOT_TOLD_APART, Decision.INCONCLUSIVE) == (
        found.p_value,
        found.contrast,
        found.decision,
    )
    assert "at least 6" in found.statement


def test_no_discordant_pair_gives_a_p_value_of_one() -> None:
    """Where both always agree nothing tells them apart."""
    found = compare(*two_runs(table(both=20, neither=5))).findings[0]

    assert (1.0, 0.0, Contrast.NOT_TOLD_APART) == (found.p_value, found.difference, found.contrast)


def test_a_clean_sweep_of_six_is_told_apart_in_its_direction() -> None:
    """Six wins of six are better, six losses of six are worse."""
    better = compare(*two_runs(table(both=4, won=6)))
    worse = compare(*two_runs(table(both=4, lost=6)))

    assert (Contrast.BETTER, Decision.PASS) == (better.findings[0].contrast, better.decision)
    assert (Contrast.WORSE, Decision.FAIL) == (worse.findings[0].contrast, worse.decision)
    assert better.statement.startswith("candidate is better: 60.0 points, at least ")


@settings(max_examples=12, deadline=None)
@given(
    both=st.integers(0, 12),
    lost=st.integers(0, 12),
    won=st.integers(0, 12),
    neither=st.integers(1, 5),
)
def test_the_p_value_is_the_sign_test_and_swapping_mirrors_everything(
    both: int, lost: int, won: int, neither: int
) -> None:
    """Counted in fractions; with the runs exchanged, every sign turns and no number changes."""
    ours, theirs = two_runs(table(both, lost, won, neither))
    there = compare(ours, theirs).findings[0]
    back = compare(theirs, ours).findings[0]
    mirrored = {
        Contrast.BETTER: Contrast.WORSE,
        Contrast.WORSE: Contrast.BETTER,
        Contrast.NOT_TOLD_APART: Contrast.NOT_TOLD_APART,
    }

    assert float(two_sided(lost, won)) == pytest.approx(there.p_value, rel=1e-12)
    assert there.p_value == back.p_value
    assert mirrored[there.contrast] is back.contrast
    assert there.interval is not None
    assert back.interval is not None
    assert (-there.interval.high, -there.interval.low) == tuple(back.interval)
    assert there.difference is not None
    assert float(Fraction(won - lost, both + lost + won + neither)) == there.difference
    assert (won, lost) == (there.wins, there.losses)


@settings(max_examples=12, deadline=None)
@given(
    both=st.integers(0, 12),
    lost=st.integers(0, 12),
    won=st.integers(0, 12),
    neither=st.integers(1, 5),
)
def test_what_is_said_follows_from_the_counts(both: int, lost: int, won: int, neither: int) -> None:
    """The counts; that a few pairs could tell nothing apart; where interval and test disagree."""
    found = compare(*two_runs(table(both, lost, won, neither))).findings[0]
    assert found.interval is not None
    told = found.contrast is not Contrast.NOT_TOLD_APART
    clear = not found.interval.low <= 0 <= found.interval.high
    # 2 · 2⁻⁶ is the first below 5 %.
    hopeless = f"Not even winning all {lost + won} of them"

    assert (f"candidate won {won} and lost {lost}" in found.statement) is (lost + won > 0)
    assert (hopeless in found.statement) is (0 < lost + won < 6)
    assert ("reaches 0" in " ".join(found.caveats)) is (told and not clear)
    assert ("leaves out 0" in " ".join(found.caveats)) is (clear and not told)


def test_the_interval_is_exact_and_agrees_with_the_test() -> None:
    """16 wins to 6 losses are p = 0.052: Tango's interval begins at 0.0054, the exact one at 0."""
    found = compare(*two_runs(table(both=59, lost=6, won=16, neither=80))).findings[0]

    assert found.interval is not None
    assert two_sided(6, 16) > Fraction(1, 20)
    assert (found.interval.low, True) == (0.0, found.interval.high > 0.124)
    assert "exact, paired" == found.interval.method


def test_services_that_trade_inputs_are_not_told_apart_too_often() -> None:
    """Equal on average, each better on one of two inputs: the exact level is kept.

    The whole law of (lost, won) is built up pair by pair, for every trade in tenths.
    """
    pairs, alpha = 6, 0.05
    rejected = {
        (lost, won)
        for lost, won in product(range(2 * pairs + 1), repeat=2)
        if lost + won <= 2 * pairs and two_sided(lost, won) <= Fraction(1, 20)
    }
    tenths = [k / 10 for k in range(11)]
    for a, b in product(tenths, repeat=2):
        law: dict[tuple[int, int], float] = {(0, 0): 1.0}
        # On the first input A passes with chance a and B with b; on the second it is reversed.
        for first, second in [(a, b)] * pairs + [(b, a)] * pairs:
            law = _one_more(law, first * (1 - second), second * (1 - first))
        assert sum(law[cell] for cell in rejected & law.keys()) <= alpha


def _one_more(
    law: Mapping[tuple[int, int], float], lost: float, won: float
) -> dict[tuple[int, int], float]:
    after: dict[tuple[int, int], float] = {}
    for (x, y), chance in law.items():
        for cell, part in (((x + 1, y), lost), ((x, y + 1), won), ((x, y), 1 - lost - won)):
            after[cell] = after.get(cell, 0.0) + chance * part
    return after


# --- Several criteria -------------------------------------------------------------------------


def from_trial(first: int) -> Passes:
    return lambda index, _: index >= first


def three_criteria(**question: Any) -> dict[str, Any]:
    """Wins of 8, 6 and 6 among 20 pairs, none lost: p = 1/128, 1/32 and 1/32."""
    wins = {"a": 8, "b": 6, "c": 6}
    ours = run_of({name: from_trial(first) for name, first in wins.items()}, trials=20)
    theirs = run_of({name: lambda *_: True for name in wins}, trials=20)
    verdict = compare(ours, theirs, ComparisonQuestion(**question))
    return {"verdict": verdict, **{one.criterion: one for one in verdict.findings}}


def test_holm_shares_the_level_by_default() -> None:
    """Six sides share the level: six times 1/256 passes, and five times 1/64 fails."""
    found = three_criteria()

    assert [6 / 256, 5 / 64, 5 / 64] == [found[name].adjusted_p_value for name in "abc"]
    assert [Contrast.BETTER, Contrast.NOT_TOLD_APART, Contrast.NOT_TOLD_APART] == [
        found[name].contrast for name in "abc"
    ]
    assert Decision.INCONCLUSIVE is found["verdict"].decision
    assert found["verdict"].multiplicity.startswith("Holm over 3 tests")
    assert any("leaves out 0" in caveat for caveat in found["b"].caveats)


def test_unadjusted_tests_say_what_that_costs() -> None:
    """With no correction each stands at its own level, and the sum of the levels is told."""
    found = three_criteria(correction="none")

    assert {Contrast.BETTER} == {found[name].contrast for name in "abc"}
    assert "at most 15 %" in found["verdict"].multiplicity


@pytest.mark.parametrize(
    ("correction", "level"),
    [
        ("none", 0.05),
        ("bh", 0.05),
        ("holm", 0.05 / 4),
        ("bonferroni", 0.05 / 4),
        ("by", 0.05 / (1 + 1 / 2 + 1 / 3 + 1 / 4)),
    ],
)
def test_the_fewest_discordant_pairs_follow_from_the_correction(
    correction: Any, level: float
) -> None:
    """2 · 2⁻ⁿ must reach the largest level at which anything could be rejected."""
    fewest = fewest_discordant(0.05, correction, 4)

    assert 2 * 0.5**fewest <= level < 2 * 0.5 ** (fewest - 1)


# --- A margin ---------------------------------------------------------------------------------


def test_equal_services_pass_a_margin_that_the_pairs_can_show() -> None:
    """Without a discordant pair, n pairs show a margin m about when (1 − m)ⁿ falls below 2.5 %."""
    question = ComparisonQuestion(question="not-worse", margin=0.1)
    enough, few = (compare(*two_runs(table(both=n)), question) for n in (40, 30))

    assert 0.9**40 < 0.025 < 0.9**30
    assert (Decision.PASS, Decision.INCONCLUSIVE) == (enough.decision, few.decision)
    assert Contrast.NOT_TOLD_APART is enough.findings[0].contrast
    assert "not shown to lose less than 10 points" in few.statement


@pytest.mark.parametrize("margin", [0.1, 0.2])
def test_the_margin_is_falsely_shown_in_at_most_half_of_the_level(margin: float) -> None:
    """P(PASS) with the candidate exactly a margin worse, over every discordance in fortieths."""
    pairs = 20
    rule = plan_paired_rule("not-worse", margin=margin, pairs=pairs)
    shown = [
        (won, lost)
        for won in range(pairs + 1)
        for lost in range(pairs + 1 - won)
        if rule.decide(PairCounts(both=pairs - won - lost, only_a=lost, only_b=won, neither=0))
        == "not worse"
    ]
    for step in range(41):
        won_rate = step / 40 * (1 - margin) / 2
        lost_rate = won_rate + margin
        same = max(0.0, 1 - won_rate - lost_rate)
        chance = sum(
            comb(pairs, won)
            * comb(pairs - won, lost)
            * won_rate**won
            * lost_rate**lost
            * same ** (pairs - won - lost)
            for won, lost in shown
        )
        assert chance <= 0.025
    won, lost = max(shown, key=lambda one: one[1] - one[0])
    evidence = weigh_planned_pairs(
        table(both=pairs - won - lost, lost=lost, won=won),
        ComparisonQuestion(question="not-worse", margin=margin),
    )
    assert evidence.favours_pass
    assert evidence.p_value is not None
    assert evidence.p_value <= 0.05
    assert evidence.interval is not None
    assert evidence.interval.low > -margin


def test_worse_within_the_margin_is_a_pass_that_says_so() -> None:
    """A small real loss is told, and tolerated where the margin allows it."""
    runs = two_runs(table(both=190, lost=7))
    strict = compare(*runs)
    lenient = compare(*runs, ComparisonQuestion(question="not-worse", margin=0.1))

    assert (Contrast.WORSE, Decision.FAIL) == (strict.findings[0].contrast, strict.decision)
    assert (Contrast.WORSE, Decision.PASS) == (lenient.findings[0].contrast, lenient.decision)
    assert lenient.statement.startswith("candidate is not worse by 10 points: −3.6 points, between")


# --- Runs that stopped early ------------------------------------------------------------------


def mixture(won: int, lost: int) -> float:
    """The bet on the candidate: the likelihood ratio against evens, averaged over (½, 1)."""
    inside = special.beta(won + 1, lost + 1) * special.betainc(lost + 1, won + 1, 0.5)
    return float(2 * inside * 2 ** (won + lost))


def by_wealth(outcomes: list[tuple[bool, bool]]) -> float:
    """Twice the reciprocal of the largest wealth that either bet ever had."""
    best, won, lost = 1.0, 0, 0
    for control, candidate in outcomes:
        won, lost = won + (candidate > control), lost + (control > candidate)
        best = max(best, mixture(won, lost), mixture(lost, won))
    return min(1.0, 2 / best)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_the_anytime_p_value_is_that_of_the_richest_moment(pairs: list[tuple[bool, bool]]) -> None:
    """In whatever order the pairs came; concordant ones bet nothing."""
    found = weigh_stopped_pairs(pairs, ComparisonQuestion())

    assert by_wealth(pairs) == pytest.approx(found.p_value, rel=1e-9)


def test_runs_that_stopped_because_of_what_they_saw_are_compared_by_a_bet() -> None:
    """Up to where the shorter one ended, by the p-value that no stopping biases."""
    pattern = [(False, True)] * 3 + [(True, False)] + [(False, True)] * 8 + [(True, True)] * 40
    ours = run_of({"answers": lambda i, _: pattern[i][0]}, trials=50, measuring=False)
    theirs = run_of({"answers": lambda i, _: pattern[i][1]}, trials=50, measuring=False)
    pairs = min(len(ours.trials), len(theirs.trials))
    found = compare(ours, theirs).findings[0]

    assert "paired/anytime-bet" == found.decision_rule
    assert pairs == (found.control.trials if found.control else 0) < 50
    assert by_wealth(pattern[:pairs]) == pytest.approx(found.p_value, rel=1e-9)
    assert found.interval is not None
    assert "descriptive" in found.interval.method
    assert any("no stopping biases" in caveat for caveat in found.caveats)


def test_no_moment_of_stopping_makes_the_bet_wrong_more_often_than_its_level() -> None:
    """P(p ever ≤ 5 % within 60 fair discordant pairs), by a walk over all states of that wealth."""
    alive, crossed = {(0, 0): 1.0}, 0.0
    for _ in range(60):
        after: dict[tuple[int, int], float] = {}
        for (won, lost), chance in alive.items():
            for state in ((won + 1, lost), (won, lost + 1)):
                after[state] = after.get(state, 0.0) + chance / 2
        alive = {}
        for (won, lost), chance in after.items():
            if 2 / max(mixture(won, lost), mixture(lost, won)) <= 0.05:
                crossed += chance
            else:
                alive[won, lost] = chance

    assert 0 < crossed <= 0.05


def test_early_stops_in_different_orders_are_not_told_apart() -> None:
    """No test keeps its level there, and the reason is given beside the counts."""
    ours = run_of({"answers": lambda *_: False}, trials=50, inputs=5, seed=1, measuring=False)
    theirs = run_of({"answers": lambda *_: True}, trials=50, inputs=5, seed=2, measuring=False)
    found = compare(ours, theirs).findings[0]

    assert (None, Contrast.NOT_TOLD_APART) == (found.p_value, found.contrast)
    assert "different orders" in found.statement
    assert found.difference == 1.0


def test_a_fixed_size_that_was_reached_needs_no_common_order() -> None:
    """Uncurtailed runs of two seeds pair by input and repetition, and say that seeds differ."""
    good = frozenset("123")
    options = {"trials": 50, "inputs": 5, "measuring": False, "curtail": False}
    ours = run_of({"answers": lambda _, one: one in good}, seed=1, **options)  # type: ignore[arg-type]
    theirs = run_of({"answers": lambda *_: True}, seed=2, **options)  # type: ignore[arg-type]
    verdict = compare(ours, theirs)

    assert "paired/mcnemar-exact" == verdict.findings[0].decision_rule
    assert (20, 0) == (verdict.findings[0].wins, verdict.findings[0].losses)
    assert not verdict.pairings[0].same_order
    assert any("different seeds" in caveat for caveat in verdict.caveats)
    assert any("one after the other" in caveat for caveat in verdict.caveats)


def test_a_size_that_outcomes_could_have_changed_is_not_taken_for_fixed() -> None:
    """A curtailed design that ran to its last trial did so because of what it saw."""
    cutoff = (
        run_of({"answers": lambda *_: True}, trials=20, measuring=False).plan.criteria[0].cutoff
    )
    assert cutoff is not None
    # One pass short of the cutoff from early on: the last trial might still have made it.
    ours = run_of({"answers": lambda i, _: i < cutoff - 1}, trials=20, measuring=False)
    verdict = compare(ours, ours)

    assert (20, StopReason.COMPLETE) == (len(ours.trials), ours.verdict.stop)
    assert not verdict.pairings[0].fixed_size
    assert "paired/anytime-bet" == verdict.findings[0].decision_rule


def test_an_aborted_run_tells_nothing_apart() -> None:
    """Too many trials that never reached the service are no evidence about it."""
    ours, theirs = two_runs(table(won=30), stop=StopReason.ERROR_RATE)
    found = compare(ours, theirs).findings[0]

    assert Contrast.NOT_TOLD_APART is found.contrast
    assert "never reached the service" in found.statement


# --- What cannot be paired --------------------------------------------------------------------


def test_runs_on_different_inputs_are_described_and_not_told_apart() -> None:
    """Boschloo's p-value is there, and the reason why it decides nothing."""
    scipy_stats = pytest.importorskip("scipy.stats")
    ours = run_of({"answers": lambda i, _: i >= 12}, trials=20, fingerprint="one")
    theirs = run_of({"answers": lambda i, _: i >= 2}, trials=20, fingerprint="other")
    found = compare(ours, theirs).findings[0]
    sides = [
        scipy_stats.boschloo_exact([[18, 8], [2, 12]], alternative=side, n=256).pvalue
        for side in ("less", "greater")
    ]

    assert "unpaired/boschloo" == found.decision_rule
    assert 2 * min(sides) == pytest.approx(found.p_value, rel=1e-3)
    assert (Contrast.NOT_TOLD_APART, None) == (found.contrast, found.adjusted_p_value)
    assert "the inputs of the two runs differ" in found.statement


def test_two_samples_of_one_population_are_told_apart() -> None:
    """Each input once, both claims about one population: an unpaired test may decide."""
    options = {"trials": 20, "inputs": 20, "claim": POPULATION}
    ours = run_of({"answers": lambda i, _: i >= 12}, fingerprint="one", **options)  # type: ignore[arg-type]
    theirs = run_of({"answers": lambda *_: True}, fingerprint="other", **options)  # type: ignore[arg-type]
    verdict = compare(ours, theirs)

    assert ("unpaired/boschloo", Contrast.BETTER) == (
        verdict.findings[0].decision_rule,
        verdict.findings[0].contrast,
    )
    assert "20 of 20 passed with candidate, 8 of 20 with control" in verdict.statement + (
        verdict.findings[0].statement
    )


def test_repeated_inputs_of_a_population_count_once_each() -> None:
    """Four inputs won ten times over are four wins: p = 1/8 and no claim about a population."""
    options = {"trials": 40, "inputs": 4, "claim": POPULATION}
    ours = run_of({"answers": lambda *_: False}, **options)  # type: ignore[arg-type]
    theirs = run_of({"answers": lambda *_: True}, **options)  # type: ignore[arg-type]
    found = compare(ours, theirs).findings[0]

    assert ("paired/net-wins-of-inputs", 4, 0, 0.125) == (
        found.decision_rule,
        found.inputs_won,
        found.inputs_lost,
        found.p_value,
    )
    assert Contrast.NOT_TOLD_APART is found.contrast


def test_inputs_are_won_and_lost_as_wholes() -> None:
    """Three to one of four inputs: the sign test of them is 2 · (4 + 1)/16."""
    options = {"trials": 40, "inputs": 4, "claim": POPULATION}
    ours = run_of({"answers": lambda _, one: one == "1"}, **options)  # type: ignore[arg-type]
    theirs = run_of({"answers": lambda _, one: one != "1"}, **options)  # type: ignore[arg-type]
    found = compare(ours, theirs).findings[0]

    assert (3, 1, 0.625) == (found.inputs_won, found.inputs_lost, found.p_value)
    assert "of 4 inputs that one of the two passed more often, it won 3" in found.statement


def test_trials_without_a_partner_are_counted() -> None:
    """Five more of the candidate than of the control."""
    ours, theirs = (run_of({"answers": lambda *_: True}, trials=n) for n in (20, 25))
    verdict = compare(ours, theirs)

    assert (20, (0, 5)) == (verdict.pairings[0].pairs, verdict.pairings[0].left_out)
    assert (
        "0 trials of the control and 5 of the candidate have no partner and are left out."
    ) in verdict.findings[0].caveats


def test_a_claim_about_nothing_but_the_run_is_not_tested() -> None:
    """Without generalisation there is no hypothesis."""
    claim = Claim(population="no-generalisation")  # type: ignore[arg-type]
    found = compare(*two_runs(table(won=30), claim=claim)).findings[0]

    assert Contrast.NOT_TOLD_APART is found.contrast
    assert "nothing to test" in found.statement


# --- A criterion is never dropped -------------------------------------------------------------


def test_a_changed_criterion_is_undecided_and_stays() -> None:
    """Other postconditions under one name are another criterion."""
    ours = run_of({"answers": lambda *_: False}, trials=20, structure="before")
    theirs = run_of({"answers": lambda *_: True}, trials=20, structure="after")
    verdict = compare(ours, theirs)

    assert Decision.INCONCLUSIVE is verdict.decision
    assert "two criteria" in verdict.findings[0].statement


def test_a_criterion_of_one_run_alone_is_undecided_and_stays() -> None:
    """It is listed with the counts there are, and keeps the whole from passing."""
    ours = run_of({"answers": lambda *_: False}, trials=20)
    theirs = run_of({"answers": lambda *_: True, "polite": lambda *_: True}, trials=20)
    verdict = compare(ours, theirs)
    alone = verdict.findings[1]

    assert ["answers", "polite"] == [one.criterion for one in verdict.findings]
    assert (None, 20) == (alone.control, alone.candidate.passed if alone.candidate else None)
    assert "only the run of candidate has" in alone.statement
    assert Decision.INCONCLUSIVE is verdict.decision


# --- Trials without a fair chance -------------------------------------------------------------


def test_under_intent_to_treat_trials_without_a_fair_chance_count_and_are_disclosed() -> None:
    """They fail; the counts without them stand beside."""
    every = "intent-to-treat"
    ours = run_of({"answers": lambda *_: True}, trials=20, analysis=every)
    theirs = run_of(
        {"answers": lambda *_: True}, trials=20, analysis=every, excused=frozenset(range(6))
    )
    found = compare(ours, theirs).findings[0]

    assert (6, Contrast.WORSE) == (found.losses, found.contrast)
    assert any("6 pairs" in one and "won 0 and lost 0" in one for one in found.caveats)


def test_per_protocol_leaves_such_pairs_out() -> None:
    """A run-level choice, named on the verdict."""
    ours = run_of({"answers": lambda *_: True}, trials=20, analysis="per-protocol")
    theirs = run_of(
        {"answers": lambda *_: True}, trials=20, analysis="per-protocol", excused=frozenset({1, 2})
    )
    verdict = compare(ours, theirs)

    assert ("per-protocol", 18) == (
        verdict.analysis,
        verdict.findings[0].pairs.pairs if verdict.findings[0].pairs else 0,
    )


@pytest.mark.parametrize(("analysis", "counted"), [("intent-to-treat", 20), ("per-protocol", 18)])
def test_unpaired_trials_without_a_fair_chance_count_alike(analysis: str, counted: int) -> None:
    """As failures, or not at all: two of twenty never reached the service."""
    ours = run_of({"answers": lambda *_: True}, trials=20, fingerprint="one", analysis=analysis)
    theirs = run_of(
        {"answers": lambda *_: True},
        trials=20,
        fingerprint="other",
        analysis=analysis,
        excused=frozenset({1, 2}),
    )
    found = compare(ours, theirs).findings[0]

    assert "unpaired/boschloo" == found.decision_rule
    assert Tally(trials=counted, passed=18) == found.candidate


# --- Whom and what it speaks of ---------------------------------------------------------------


def test_runs_of_different_claims_or_analyses_are_refused() -> None:
    """Rates of different things have no difference."""
    plain = run_of({"answers": lambda *_: True}, trials=10)

    with pytest.raises(InvalidArgument, match="claim must be one for both"):
        compare(plain, run_of({"answers": lambda *_: True}, trials=10, claim=POPULATION))
    with pytest.raises(InvalidArgument, match="analysis must be one for both"):
        compare(plain, run_of({"answers": lambda *_: True}, trials=10, analysis="per-protocol"))


def test_other_conditions_and_separate_beginnings_are_caveats() -> None:
    """What changed between two runs counts as the services' difference, and is named."""
    ours = run_of({"answers": lambda *_: True}, trials=10, covariates={"region": "eu"})
    theirs = run_of(
        {"answers": lambda *_: True}, trials=10, covariates={"region": "us"}, began=None
    )
    text = " ".join(compare(ours, theirs).caveats)

    assert "region eu and us" in text
    assert "one after the other" in text


def test_labels_are_the_contracts_where_those_differ() -> None:
    """Else control and candidate, or what the caller says."""
    ours, theirs = two_runs(table(both=10))
    other = replace(theirs, plan=replace(theirs.plan, contract="agent-2"))

    assert "candidate" == compare(ours, theirs).candidates[0].label
    assert ("agent", "agent-2") == (
        compare(ours, other).control.label,
        compare(ours, other).candidates[0].label,
    )
    assert "new" == compare(ours, other, labels=("old", "new")).candidates[0].label


@pytest.mark.parametrize("wrong", [("old",), ("new", "new"), ("", "new"), (1, 2)], ids=str)
def test_labels_are_two_different_names(wrong: Any) -> None:
    """Else nobody could tell which is better."""
    with pytest.raises(InvalidArgument, match="two different names"):
        compare(*two_runs(table(both=10)), labels=wrong)


@pytest.mark.parametrize(
    "wrong", [{"confidence": 1.0}, {"correction": "fisher"}, {"margin": 0.0}, {"margin": 1.0}]
)
def test_a_question_without_meaning_is_refused(wrong: dict[str, Any]) -> None:
    """Levels, corrections and margins have to be what they are."""
    with pytest.raises(InvalidArgument, match=next(iter(wrong))):
        ComparisonQuestion(**wrong)


def test_a_margin_needs_a_level_below_one_half() -> None:
    """Its bound is one-sided: at a confidence of one half there is none."""
    with pytest.raises(InvalidArgument, match="above"):
        ComparisonQuestion(question="not-worse", confidence=0.5, margin=0.1)


# --- What trials took -------------------------------------------------------------------------


def test_latency_is_compared_where_both_succeed_and_cost_everywhere() -> None:
    """Means by hand, the median difference, and no word of setup."""
    slow = {"took": lambda i: (2.0 + i / 10, 0.02, 30)}
    fast = {"took": lambda i: (1.0 + i / 10, 0.01, 20)}
    ours = run_of({"answers": lambda i, _: i % 2 == 0}, trials=10, **slow)  # type: ignore[arg-type]
    theirs = run_of({"answers": lambda *_: True}, trials=10, **fast)  # type: ignore[arg-type]
    amounts = {one.name: one for one in compare(ours, theirs).amounts}

    assert (5, 10, 10) == tuple(amounts[n].pairs for n in ("latency_s", "cost_usd", "tokens"))
    assert amounts["latency_s"].control_mean == pytest.approx(2.4)
    assert amounts["latency_s"].median_difference == pytest.approx(-1.0)
    cost = amounts["cost_usd"]
    assert cost.candidate_mean - cost.control_mean == pytest.approx(-0.01)
    assert amounts["latency_s"].interval is None  # five pairs bound no median at 95 %
    assert (-10, -10) == tuple(amounts["tokens"].interval or ())


@pytest.mark.parametrize("n", [6, 9, 17, 40])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_the_interval_of_a_median_covers_as_often_as_it_says(n: int, confidence: float) -> None:
    """P(r ≤ X ≤ n − r) for X ~ Binomial(n, ½) is at least the confidence, and not one step more."""
    found = median_interval(range(1, n + 1), confidence=confidence)

    def covered(rank: int) -> Fraction:
        return Fraction(sum(comb(n, k) for k in range(rank, n - rank + 1)), 2**n)

    wanted = Fraction(str(confidence))
    if found is None:
        assert covered(1) < wanted
    else:
        rank = int(found.low)
        assert found.high == n + 1 - rank
        assert covered(rank) >= wanted > covered(rank + 1)


# --- Many arms --------------------------------------------------------------------------------


def three_arms() -> list[RunRecord]:
    """A control with 12 failures, one candidate without any, and one with other 12 failures."""
    passes: list[Passes] = [
        lambda index, _: index >= 12,
        lambda *_: True,
        lambda index, _: index < 28,
    ]
    return [run_of({"answers": one}, trials=40) for one in passes]


def test_each_candidate_is_compared_with_the_control_and_all_tests_share_the_level() -> None:
    """12 wins and no loss, then 12 wins and 12 losses: Holm over two tests."""
    verdict = COMPARISON.decide(name_arms(three_arms(), ("old", "new", "other")))
    first, second = verdict.findings

    assert ["old", "new", "other"] == [one.label for one in verdict.arms]
    assert [("new", "old"), ("other", "old")] == [(one.arm, one.against) for one in (first, second)]
    assert (2 * 2 / 2**12, 1.0) == (first.adjusted_p_value, second.adjusted_p_value)
    assert (Decision.PASS, Decision.INCONCLUSIVE) == (first.decision, second.decision)
    assert Decision.INCONCLUSIVE is verdict.decision
    assert "new is better: 30.0 points" in verdict.statement
    assert "other is not shown to differ: 0.0 points" in verdict.statement


def test_all_pairs_of_arms_can_be_compared() -> None:
    """Three arms make three pairs of arms, and Holm shares the level over three tests."""
    arms = name_arms(three_arms(), ("old", "new", "other"))
    verdict = COMPARISON.decide(arms, ComparisonQuestion(against="all"))

    assert [("new", "old"), ("other", "old"), ("other", "new")] == [
        (one.arm, one.against) for one in verdict.findings
    ]
    assert [Contrast.BETTER, Contrast.NOT_TOLD_APART, Contrast.WORSE] == [
        one.contrast for one in verdict.findings
    ]
    assert verdict.multiplicity.startswith("Holm over 3 tests")


def test_arms_without_names_of_their_own_are_counted() -> None:
    """Three runs of one contract are the control and two candidates."""
    labels = [one.label for one in name_arms(three_arms())]

    assert ["control", "candidate 1", "candidate 2"] == labels


def test_a_guardrail_is_asked_its_own_question() -> None:
    """A criterion that must not be worse by 10 points passes though nothing is told apart."""
    runs = two_runs(table(both=80))
    found = compare(*runs, ComparisonQuestion(guardrails={"answers": 0.1})).findings[0]

    assert ("not-worse", 0.1, Decision.PASS) == (found.question, found.margin, found.decision)
    with pytest.raises(InvalidArgument, match="name a criterion: answers"):
        compare(*runs, ComparisonQuestion(guardrails={"anwsers": 0.1}))


def test_the_sentence_names_what_several_criteria_show() -> None:
    """What fails comes first, what is open last, each with its name."""
    ours = run_of({"a": from_trial(8), "b": lambda *_: True, "c": lambda *_: True}, trials=40)
    theirs = run_of({"a": lambda *_: True, "b": from_trial(9), "c": lambda *_: True}, trials=40)

    assert compare(ours, theirs).statement == (
        "candidate is worse in b (−22.5 points); better in a (+20.0 points); "
        "not shown to differ in c."
    )


def test_an_arm_that_never_answered_is_named_first() -> None:
    """No difference is claimed or denied: the first line says what could not be measured."""
    ours = run_of({"a": lambda *_: True}, trials=20)
    theirs = run_of({"a": lambda *_: False}, trials=20, stop=StopReason.ERROR_RATE)

    assert compare(ours, theirs).statement.startswith("candidate could not be measured: ")


# --- Margins where runs cannot be paired, and where two things are shown ----------------------


@pytest.mark.parametrize(
    ("asked", "margin", "passed", "decision"),
    [
        ("not-worse", 0.2, (90, 88), Decision.PASS),
        ("not-worse", 0.02, (90, 88), Decision.INCONCLUSIVE),
        ("not-worse", 0.02, (95, 50), Decision.FAIL),
        ("better", 0.1, (50, 95), Decision.PASS),
        ("equivalent", 0.25, (90, 90), Decision.PASS),
        ("equivalent", 0.1, (95, 40), Decision.FAIL),
        ("different", 0.0, (80, 95), Decision.PASS),
    ],
)
def test_runs_that_cannot_be_paired_are_asked_every_question(
    asked: Any, margin: float, passed: tuple[int, int], decision: Decision
) -> None:
    """The interval agrees: it decides by itself what the verdict says."""
    question = ComparisonQuestion.of(asked, margin or None)
    tallies = [Tally(trials=100, passed=one) for one in passed]
    found = weigh_unpaired(tallies[0], tallies[1], question)
    assert found.interval is not None
    assert found.p_value is not None
    low, high = found.interval
    by_interval = {
        "different": (low > 0, high < 0),
        "better": (low > margin, high < margin),
        "not-worse": (low > -margin, high < 0),
        "equivalent": (-margin < low and high < margin, high < -margin or low > margin),
    }[asked]
    shown = found.p_value <= 0.05

    assert (shown and found.favours_pass, shown and not found.favours_pass) == (
        decision is Decision.PASS,
        decision is Decision.FAIL,
    )
    assert by_interval == (decision is Decision.PASS, decision is Decision.FAIL)


def test_a_loss_within_the_margin_passes_by_the_p_value_of_the_margin() -> None:
    """20 of 480 pairs lost: surely worse, and less surely by less than 7 points."""
    outcomes = table(both=460, lost=20)
    found = weigh_planned_pairs(outcomes, ComparisonQuestion(question="not-worse", margin=0.07))
    worse = weigh_planned_pairs(outcomes, ComparisonQuestion())
    assert found.p_value is not None
    assert worse.p_value is not None

    assert found.favours_pass
    assert worse.p_value < found.p_value <= 0.05
