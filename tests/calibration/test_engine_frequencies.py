"""Thousands of runs through the real engine: verdicts fall as often as is printed beforehand.

Seeds are fixed, so a run of these tests cannot fail by chance. A chi-square test says whether the
observed frequencies agree with the chances that `check` prints.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random

import pytest
from scipy.stats import chisquare

import trialwise as tw
from trialwise.procedures.chances import forecast

VERDICTS = ("PASS", "FAIL", "INCONCLUSIVE")


def run_many(
    contract: tw.Contract, inputs: list[str], runs: int, **options: object
) -> Counter[str]:
    """The verdicts of many runs, each with a seed of its own."""
    found: Counter[str] = Counter()
    for seed in range(runs):
        result = tw.run(
            contract,
            inputs=inputs,
            seed=seed,
            store=None,
            progress=False,
            **options,  # type: ignore[arg-type]
        )
        found[str(result.decision)] += 1
    return found


def printed_chances(contract: tw.Contract, inputs: list[str], rate: float) -> list[float]:
    """What the plan says of a true rate."""
    plan = tw.check(contract, inputs=inputs)
    (one,) = plan.criteria
    assert one.limits.design is not None
    curve = one.limits.design.operating_characteristic(rate)
    for chance in forecast(plan)[0].chances:
        if chance.rate == rate:
            assert chance.passes == curve.passes
    return [curve.passes, curve.fails, curve.inconclusive]


def assert_agrees(found: Counter[str], chances: list[float]) -> None:
    runs = sum(found.values())
    pairs = [(found[v], runs * p) for v, p in zip(VERDICTS, chances, strict=True)]
    # What is expected less than five times is counted with the smallest class that is not.
    large = [pair for pair in pairs if pair[1] >= 5]
    small = [pair for pair in pairs if pair[1] < 5]
    seen, expected = [a for a, _ in large], [b for _, b in large]
    least = expected.index(min(expected))
    seen[least] += sum(a for a, _ in small)
    expected[least] += sum(b for _, b in small)
    if len(seen) == 1:
        assert seen[0] == runs
        return
    assert chisquare(seen, expected, sum_check=False).pvalue > 1e-3


def criterion(**given: object) -> tw.Criterion:
    return tw.Criterion("c", tw.contains("yes"), **given)  # type: ignore[arg-type]


@pytest.mark.slow("0.92")
@pytest.mark.parametrize(
    "rate", [0.92, *(pytest.param(rate, marks=pytest.mark.slow) for rate in (0.8, 0.7))]
)
def test_one_input_at_one_rate(rate: float) -> None:
    """
    A required 80 % at three true rates, one trial after another.
    """

    def answer(question: str, seed: int) -> str:  # noqa: ARG001
        return "yes" if Random(seed).random() < rate else "no"

    contract = tw.Contract("x", answer, [criterion(at_least=0.8, max_trials=60)])
    assert_agrees(run_many(contract, ["q"], 300), printed_chances(contract, ["q"], rate))


@pytest.mark.slow
def test_failures_that_are_faster_than_successes_change_nothing() -> None:
    """
    Sixteen trials at once, of which failures come back first.
    """

    async def answer(question: str, seed: int) -> str:  # noqa: ARG001
        passed = Random(seed).random() < 0.85
        for _ in range(6 if passed else 0):
            await asyncio.sleep(0)
        return "yes" if passed else "no"

    contract = tw.Contract("x", answer, [criterion(at_least=0.8, max_trials=60)])
    found = run_many(contract, ["q"], 300, concurrency=16)
    assert_agrees(found, printed_chances(contract, ["q"], 0.85))


@pytest.mark.slow
def test_a_margin_keeps_its_errors() -> None:
    """
    With a margin of ten points a service of exactly 80 % fails in at most 5 % of runs.
    """

    def answer(question: str, seed: int) -> str:  # noqa: ARG001
        return "yes" if Random(seed).random() < 0.8 else "no"

    contract = tw.Contract("x", answer, [criterion(at_least=0.8, margin=0.1)])
    assert_agrees(run_many(contract, ["q"], 200), printed_chances(contract, ["q"], 0.8))


@pytest.mark.slow
def test_unlike_inputs_err_no_more_often_than_alike_ones() -> None:
    """
    Ten inputs with rates from 60 to 100 %, 80 % on average: the two errors stay below 5 %.
    """
    rates = {f"q{k}": 0.6 + 0.4 * k / 9 for k in range(10)}

    def answer(question: str, seed: int) -> str:
        return "yes" if Random(seed).random() < rates[question] else "no"

    contract = tw.Contract("x", answer, [criterion(at_least=0.8, max_trials=60)])
    found = run_many(contract, list(rates), 400)
    # Three standard errors above 5 % of 400 runs.
    assert max(found["PASS"], found["FAIL"]) <= 20 + 3 * (400 * 0.05 * 0.95) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize(("required", "rate"), [(0.9, 0.95), (0.95, 0.95), (0.99, 0.997)])
def test_shipped_designs_over_thousands_of_runs(required: float, rate: float) -> None:
    """
    The designs that a first run uses, at rates near the required one.
    """

    def answer(question: str, seed: int) -> str:  # noqa: ARG001
        return "yes" if Random(seed).random() < rate else "no"

    contract = tw.Contract("x", answer, [criterion(at_least=required)])
    assert_agrees(run_many(contract, ["q"], 1500), printed_chances(contract, ["q"], rate))
