"""Samplings × concurrency × kinds of criteria: no trial is lost, and none decides out of order."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trialwise as tw
from trialwise.engine.criterion_progress import issue_places
from trialwise.engine.ports import TrialContext
from trialwise.model.plan import CriterionPlan, Plan
from trialwise.model.trial import Trial

#: Marks that a reply holds where a criterion passes.
_KINDS: dict[str, dict[str, Any]] = {
    "quick": {"at_least": 0.8},
    "slow": {"at_least": 0.7, "margin": 0.3},
    "fixed": {"at_least": 0.5, "trials": 12},
    "each": {"at_least": 0.4, "trials": 6, "each_input": True},
    "never": {"never_fails": True, "trials": 5},
    "rider": {"never_fails": True},
}
Says = Callable[[str, int, str], bool]


def _contract(
    service: Any, samplings: Sequence[Sequence[str]], inputs: int, **more: Any
) -> tw.Contract:
    """One criterion of each kind that is named for a sampling."""
    criteria = [
        tw.Criterion(f"{kind}-{place}", tw.contains(kind), sampling=f"s{place}", **_KINDS[kind])
        for place, kinds in enumerate(samplings)
        for kind in kinds
    ]
    named = {f"s{k}": [f"s{k} {n}" for n in range(inputs)] for k in range(len(samplings))}
    return tw.Contract("several", service, criteria, sampling=named, **more)


def _service(says: Says, waits: Callable[[int], int]) -> Callable[[TrialContext], Any]:
    """A service that takes this many turns of the event loop for a trial."""

    async def answer(trial: TrialContext) -> str:
        for _ in range(waits(trial.seed)):
            await anyio.sleep(0)
        sampling = str(trial.input).split()[0]
        return " ".join(kind for kind in _KINDS if says(sampling, trial.index, kind))

    return answer


def _walk(  # noqa: PLR0911
    one: CriterionPlan, passes: Sequence[bool]
) -> tuple[str, int, int]:
    """A second way to decide: count the outcomes from the first to the last, and look each time."""
    failures = 0
    for trials, passed in enumerate(passes[: one.trials], 1):
        failures += not passed
        if one.counting.stops_early:
            design: Any = one.design
            if failures <= design.accept[trials]:
                return "PASS", trials, failures
            if failures >= design.reject[trials]:
                return "FAIL", trials, failures
            futile = design.futile[trials] if design.futile else (1, 0)
            if futile[0] <= failures <= futile[1]:
                return "INCONCLUSIVE", trials, failures
        else:
            assert one.cutoff is not None
            most = one.cutoff - 1 if one.failing.most_failing is None else one.failing.most_failing
            if trials - failures >= one.cutoff:
                return "PASS", trials, failures
            if failures >= one.trials - most:
                return "FAIL", trials, failures
            # Neither can be reached any more, whatever the rest brings.
            if failures > one.trials - one.cutoff and trials - failures > most:
                return "INCONCLUSIVE", trials, failures
    return "INCONCLUSIVE", min(one.trials, len(passes)), failures


def _check_finding(plan: Plan, finding: Any, says: Says, ran: Sequence[Trial]) -> None:
    """Compare a finding with what the outcomes say, in the order in which they were planned."""
    one = finding.plan
    (experiment,) = [each for each in plan.experiments if each.name == one.experiment]
    kind = one.criterion.split("-")[0]
    if kind in ("never", "rider"):
        failed = sum(not trial.outcome(one.criterion).passed for trial in ran)
        assert finding.decision == ("FAIL" if failed else "PASS")
        assert (finding.tally.trials, finding.tally.failed) == (len(ran), failed)
        if not failed:
            assert {trial.input_id for trial in ran} == set(experiment.input_ids)
            assert len(ran) >= (5 if kind == "never" else 1)
        return
    mine = plan.criteria_of(experiment.name)
    order = issue_places(
        experiment, seed=plan.seed, each_input=any(c.counting.each_input for c in mine)
    )
    if not one.counting.each_input:
        passes = [says(experiment.name, index, kind) for index in range(len(order))]
        decision, trials, failures = _walk(one, passes)
        assert (finding.decision, finding.tally.trials) == (decision, trials)
        assert finding.tally.failed == failures
        return
    for place, part in enumerate(finding.by_input):
        passes = [says(experiment.name, k, kind) for k, each in enumerate(order) if each == place]
        assert part.decision == _walk(one, passes)[0]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_every_criterion_decides_as_one_trial_at_a_time(data: st.DataObject) -> None:
    """Whatever returns first, each criterion of each sampling decides by its own order."""
    several = st.lists(st.sampled_from(sorted(_KINDS)), min_size=1, max_size=3, unique=True)
    samplings = data.draw(st.lists(several, min_size=1, max_size=3))
    concurrency, inputs = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 3))
    share, salt = data.draw(st.sampled_from([1.0, 0.97, 0.8, 0.5])), data.draw(st.integers(0, 999))
    slowest = data.draw(st.sampled_from([0, 1, 6]))

    def says(sampling: str, index: int, kind: str) -> bool:
        return random.Random(f"{salt}/{sampling}/{index}/{kind}").random() < share

    service = _service(says, lambda seed: seed % (slowest + 1))
    result = tw.run(
        _contract(service, samplings, inputs),
        store=None,
        progress=False,
        seed=salt,
        concurrency=concurrency,
        keep_going=True,
    )
    for finding in result.verdict.findings:
        ran = [one for one in result.record.trials if one.experiment == finding.plan.experiment]
        _check_finding(result.record.plan, finding, says, ran)


@settings(max_examples=40, deadline=None)
@given(
    concurrency=st.integers(1, 8), salt=st.integers(0, 999), share=st.sampled_from([1.0, 0.9, 0.6])
)
def test_a_run_that_ends_with_a_failure_has_decided_nothing_wrongly(
    concurrency: int, salt: int, share: float
) -> None:
    """A FAIL ends the run: what was decided is as it would be, and only then is anything open."""

    def says(sampling: str, index: int, kind: str) -> bool:
        return random.Random(f"{salt}/{sampling}/{index}/{kind}").random() < share

    samplings = [["quick", "never"], ["slow", "each"], ["fixed", "rider"]]
    service = _service(says, lambda seed: seed % 4)
    options: dict[str, Any] = {"store": None, "progress": False, "seed": salt}
    contract = _contract(service, samplings, 2)
    whole = tw.run(contract, keep_going=True, **options).verdict.findings
    ended = tw.run(contract, concurrency=concurrency, **options).verdict.findings
    is_open = [one.decision == "INCONCLUSIVE" for one in ended]

    for here, there in zip(ended, whole, strict=True):
        if not here.plan.counting.counts_every_trial:
            assert here.decision in ("INCONCLUSIVE", there.decision)
    if any(
        here and one.decision != "INCONCLUSIVE" for here, one in zip(is_open, whole, strict=True)
    ):
        assert "FAIL" in [one.decision for one in ended]


@pytest.mark.parametrize(("concurrency", "waits"), list(product([1, 2, 3, 8], [0, 1, 3])))
def test_the_second_sampling_decides_after_as_many_trials_as_the_first(
    concurrency: int, waits: int
) -> None:
    """A service that is always right, at 80 % and at 90 %: concurrency changes no decision."""
    contract = _contract(
        _service(lambda *_: True, lambda _: waits), [["quick"], ["quick"], ["quick"]], 1
    )
    found = tw.run(contract, store=None, progress=False, concurrency=concurrency, seed=5)

    alone = found.verdict.findings[0].tally.trials
    assert ["PASS"] * 3 == [one.decision for one in found.verdict.findings]
    assert [alone] * 3 == [one.tally.trials for one in found.verdict.findings]
