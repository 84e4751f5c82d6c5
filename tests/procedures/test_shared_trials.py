"""Criteria that share their trials: designs for the longest of them, at the same errors.

Everything is recomputed here in numpy by a walk over all states that shares no code with the
package.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trialwise as tw
from trialwise.model.fingerprint import plan_hash
from trialwise.model.plan import Plan
from trialwise.procedures.sequential_designs import CriteriaGroup, choose_shared, expected_longest
from trialwise.stats.sequential import SequentialDesign
from trialwise.stats.sequential.bound import likely_mix


def run_lengths(design: SequentialDesign, rate: float) -> tuple[np.ndarray, float, float]:
    """P(exactly n trials), P(PASS) and P(FAIL) at a true rate."""
    alive = np.zeros(design.cap + 2)
    alive[0] = 1.0
    ends, passes, fails = np.zeros(design.cap + 1), 0.0, 0.0
    counts = np.arange(design.cap + 2)
    for n in range(1, design.cap + 1):
        after = rate * alive
        after[1:] += (1 - rate) * alive[:-1]
        low, high = design.futile[n] if design.futile else (n + 1, -1)
        passing, failing = counts <= design.accept[n], counts >= design.reject[n]
        stopped = passing | failing | ((counts >= low) & (counts <= high)) | (n == design.cap)
        passes += after[passing].sum()
        fails += after[failing].sum()
        ends[n] = after[stopped].sum()
        alive = np.where(stopped, 0.0, after)
    return ends, passes, fails


def longest(design: SequentialDesign, rate: float, count: int) -> float:
    """The expected maximum of the trials of independent criteria."""
    decided = np.cumsum(run_lengths(design, rate)[0])
    return float(np.sum(1 - np.minimum(decided, 1.0) ** count))


@cache
def usual_design(p0: float, p1: float, beta: float = 0.2) -> SequentialDesign:
    return SequentialDesign.optimal(p0, p1, beta=beta, mix=likely_mix(p0, p1))


@cache
def shared_design(p0: float, p1: float, count: int) -> SequentialDesign:
    return choose_shared(usual_design(p0, p1), count)


@pytest.fixture(scope="module")
def usual() -> SequentialDesign:
    return usual_design(0.9, 0.8)


class TestChoice:
    @pytest.mark.slow
    @pytest.mark.parametrize(("count", "trials"), [(5, 74.7), (8, 76.5)])
    def test_the_longest_of_several_criteria_midway(
        self, usual: SequentialDesign, count: int, trials: float
    ) -> None:
        """
        90 % against 80 %, every criterion at 85 %: the documented figures, by enumeration.
        """
        design = shared_design(0.9, 0.8, count)
        assert round(longest(design, 0.85, count), 1) <= trials
        assert longest(usual, 0.85, count) > 1.4 * trials

    @pytest.mark.slow
    @pytest.mark.parametrize(("p0", "p1", "count"), [(0.9, 0.8, 2), (0.9, 0.8, 8), (0.9, 0.6, 3)])
    def test_the_errors_stay_what_they_were(self, p0: float, p1: float, count: int) -> None:
        """
        P(FAIL) at the good rate and P(PASS) at the bad one are kept, and every run is decided.
        """
        design = shared_design(p0, p1, count)
        (_, good_passes, good_fails), (_, bad_passes, bad_fails) = (
            run_lengths(design, rate) for rate in (p0, p1)
        )
        assert good_fails <= 0.05 + 1e-12
        assert bad_passes <= 0.20 + 1e-12
        assert good_passes + good_fails == pytest.approx(1)
        assert bad_passes + bad_fails == pytest.approx(1)

    @pytest.mark.slow("2", "3")
    @pytest.mark.parametrize("count", [2, 3, 8])
    def test_the_average_over_the_four_cases_falls(
        self, usual: SequentialDesign, count: int
    ) -> None:
        """
        The choice saves trials over the bad rate, midway, the required rate and a good one.
        """
        design = shared_design(0.9, 0.8, count)
        cases = (0.8, 0.85, 0.9, 0.97)
        before, after = (
            np.mean([longest(one, rate, count) for rate in cases]) for one in (usual, design)
        )
        assert after < 0.99 * before
        assert expected_longest([CriteriaGroup(design, count)]) == pytest.approx(after, rel=1e-9)

    @pytest.mark.slow
    def test_what_runs_anyway_leaves_nothing_to_save(self, usual: SequentialDesign) -> None:
        """
        Beside a criterion that takes 400 trials in any case, the usual design is kept.
        """
        assert choose_shared(usual, 3, least=400) is usual

    @pytest.mark.slow
    def test_unlike_criteria_are_weighed_together(self) -> None:
        """
        The maximum of two unlike criteria, by counting pairs of lengths.
        """
        one, other = usual_design(0.8, 0.6), usual_design(0.9, 0.7)
        cases = []
        for rates in ((0.6, 0.7), (0.7, 0.8), (0.8, 0.9), (0.94, 0.97)):
            lengths = [run_lengths(d, p)[0] for d, p in zip((one, other), rates, strict=True)]
            pairs = itertools.product(*(enumerate(part) for part in lengths))
            cases.append(sum(max(n, m) * v * w for (n, v), (m, w) in pairs))
        found = expected_longest([CriteriaGroup(one, 1), CriteriaGroup(other, 1)])
        assert found == pytest.approx(np.mean(cases), rel=1e-9)

    def test_a_design_that_may_end_open_or_decides_in_batches_is_kept(self) -> None:
        """
        Fifty trials cannot tell 90 % from 80 %, and a batch has looks of its own.
        """
        short = SequentialDesign.optimal(0.9, 0.8, cap=50)
        batches = SequentialDesign.optimal(0.9, 0.7, batch=10)
        assert choose_shared(short, 4) is short
        assert choose_shared(batches, 4) is batches

    def test_the_guide_has_the_enumerated_figures(self, usual: SequentialDesign) -> None:
        """
        Both rows of the table, for eight criteria at four rates.
        """
        guide = Path(__file__).parents[2] / "docs" / "guides" / "sequential.md"
        rows = (("each designed for itself", usual), ("of eight", shared_design(0.9, 0.8, 8)))
        for name, design in rows:
            means = [f"{longest(design, rate, 8):.1f}" for rate in (0.8, 0.85, 0.9, 0.97)]
            cells = " | ".join([*means, str(design.cap)])
            assert f"{name} | {cells} |" in guide.read_text("utf-8")


def check(criteria: Sequence[tw.Criterion], **options: Any) -> Plan:
    contract = tw.Contract("c", lambda _: "yes", criteria)
    return tw.check(contract, inputs=["a", "b"], seed=1, **options)


def criterion(name: str, **settings: Any) -> tw.Criterion:
    return tw.Criterion(name, tw.contains("yes"), at_least=0.9, **settings)


class TestPlans:
    def test_a_single_criterion_keeps_its_design(self) -> None:
        """
        Nothing is shared, so nothing changes.
        """
        (plan,) = check([criterion("a", margin=0.1)]).criteria
        assert plan.counting.shared_by == 1
        assert plan.design == SequentialDesign.optimal(
            0.9, 0.8, beta=0.05, mix=likely_mix(0.9, 0.8)
        )

    def test_criteria_with_a_margin_share_one_choice(self) -> None:
        """
        Eight criteria get the cap of the fixed sample, the same in every plan.
        """
        criteria = [criterion(f"c{k}", margin=0.1) for k in range(8)]
        first, second = check(criteria), check(criteria)
        assert {plan.counting.shared_by for plan in first.criteria} == {8}
        (design,) = {plan.design for plan in first.criteria}
        assert isinstance(design, SequentialDesign)
        assert first.experiments[0].trials == design.cap == 135
        assert plan_hash(first) == plan_hash(second)
        usual = usual_design(0.9, 0.8, beta=0.05)
        assert longest(design, 0.85, 8) < 0.7 * longest(usual, 0.85, 8)

    def test_criteria_without_a_margin_keep_their_design(self) -> None:
        """
        Their cap follows from how often a service with half the failures passes.
        """
        plan = check([criterion("a"), criterion("b")])
        assert [one.design for one in plan.criteria] == [SequentialDesign.strict(0.9)] * 2

    def test_inputs_that_are_decided_one_by_one_keep_their_design(self) -> None:
        """
        Their trials add up, and no maximum is waited for.
        """
        plan = check([criterion(name, margin=0.1, each_input=True) for name in "ab"])
        assert {one.counting.shared_by for one in plan.criteria} == {1}

    def test_split_errors_share_their_trials_too(self) -> None:
        """
        A correction splits the errors of the design, which is chosen for the longest all the same.
        """
        plan = check([criterion(n, margin=0.4, beta=0.2) for n in "ab"], correction="bonferroni")
        for one in plan.criteria:
            assert one.counting.shared_by == 2
            assert isinstance(one.design, SequentialDesign)
            assert run_lengths(one.design, 0.9)[2] <= 0.025 + 1e-12
            assert run_lengths(one.design, 0.5)[1] <= 0.1 + 1e-12

    def test_the_run_is_decided_by_the_chosen_design(self) -> None:
        """
        A service without failures passes at the first look that can PASS.
        """
        criteria = [criterion(f"c{k}", margin=0.1) for k in range(3)]
        contract = tw.Contract("c", lambda _: "yes", criteria)
        verdict = tw.run(contract, inputs=["a", "b"], seed=1, store=None, progress=False).verdict
        design = verdict.findings[0].plan.design
        assert isinstance(design, SequentialDesign)
        first = next(n for n in range(design.cap + 1) if design.accept[n] >= 0)
        assert verdict.decision == tw.Decision.PASS
        assert {one.tally.trials for one in verdict.findings} == {first}
