"""Finite corpora with trials that were not measured: a part is known, and decided as a part."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import comb
from typing import Any

import pytest

import trialwise as tw

SIZE = 40


def _service(lost: int, wrong: int) -> Callable[[str], str]:
    """The first inputs are never reached, and those after them answered wrongly."""

    def answer(value: str) -> str:
        place = int(value[1:])
        if place < lost:
            raise ConnectionRefusedError("refused")
        return "no" if place < lost + wrong else "yes"

    return answer


def _run(service: Any, analysis: str, *more: tw.Criterion, **question: Any) -> Any:
    right = tw.Criterion("right", tw.contains("yes"), at_least=0.5, **question)
    contract = tw.Contract(
        "corpus",
        service,
        [right, *more],
        claim=tw.model.Claim(population=tw.model.PopulationClaim.FINITE_CORPUS),
    )
    return tw.run(
        contract,
        inputs=[f"q{n}" for n in range(SIZE)],
        store=None,
        progress=False,
        seed=2,
        retries=0,
        curtail=False,
        abort=tw.model.AbortRule(max_error_rate=1.0),
        analysis=analysis,
    )


def _shows(passed: int, trials: int) -> bool:
    """By enumeration: whether this many of a part rule out one success too few in the corpus."""
    few = SIZE // 2 - 1
    ways = sum(
        comb(few, k) * comb(SIZE - few, trials - k) for k in range(passed, min(few, trials) + 1)
    )
    return Fraction(ways, comb(SIZE, trials)) <= Fraction(1, 20)


@pytest.mark.parametrize("trials", [None, 30])
@pytest.mark.parametrize("analysis", ["per-protocol", "measured", "intent-to-treat"])
@pytest.mark.parametrize(("lost", "wrong"), [(0, 10), (3, 0), (3, 10), (9, 8)])
def test_a_corpus_is_decided_by_the_part_that_was_measured(
    trials: int | None, analysis: str, lost: int, wrong: int
) -> None:
    """The whole corpus or 30 of it, some of it never reached: the part decides by its own count."""
    result = _run(_service(lost, wrong), analysis, trials=trials)
    (found,) = result.verdict.findings
    counted = [
        one for one in result.record.trials if analysis == "intent-to-treat" or not one.error
    ]
    passed = sum(one.passed for one in counted)

    assert (found.tally.trials, found.tally.passed) == (len(counted), passed)
    if len(counted) == SIZE:
        assert (found.decision == "PASS") == (2 * passed >= SIZE)
    else:
        assert (found.decision == "PASS") == _shows(passed, len(counted))


def test_two_analyses_beside_each_other_take_each_input_once() -> None:
    """What one of them asks again does not count a second time for the other."""
    available = tw.Criterion(
        "available", tw.length(minimum=1), at_least=0.5, analysis="intent-to-treat"
    )
    result = _run(_service(3, 0), "per-protocol", available)
    right, reached = result.verdict.findings

    assert (right.tally.trials, right.tally.passed) == (SIZE - 3, SIZE - 3)
    assert (reached.tally.trials, reached.tally.passed) == (SIZE, SIZE - 3)
