"""Many criteria on one stream: when the run stops, and error rates over every joint stream."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.errors import InvalidArgument
from trialwise.stats.e_values import EProcess
from trialwise.stats.toolbox.criterion_streams import (
    STREAM_CORRECTIONS,
    CriterionStream,
    StreamCorrection,
    StreamStatus,
    decide_streams,
)

ADJUSTING: tuple[StreamCorrection, ...] = ("bonferroni", "holm", "bh", "by")
methods = st.sampled_from(ADJUSTING)


def stream(name: str = "a", **fields: Any) -> CriterionStream:
    return CriterionStream(**{"name": name, "trials": 10, "budget": 50, "p_value": 0.5, **fields})


def statuses(result: Any) -> list[str]:
    return [str(decision.status) for decision in result.decisions]


def test_a_spent_criterion_does_not_keep_the_run_going() -> None:
    """One decided, one undecided at the end of its smaller budget: no more trials, at any cap."""
    family = [
        stream("decided", trials=14, budget=1000, verdict="pass", p_value=1.0),
        stream("spent", trials=20, budget=20),
    ]
    for method in ADJUSTING:
        result = decide_streams(family, method=method)
        assert not result.goes_on
        assert result.trials_left == 0
        assert statuses(result) == ["pass", "inconclusive"]


def test_an_open_criterion_keeps_it_going_for_its_own_budget_only() -> None:
    """What is left is the most that an open one may still judge; settled ones add nothing."""
    family = [
        stream("pass", budget=1000, verdict="pass"),
        stream("slow", trials=30, budget=200),
        stream("quick", trials=30, budget=40),
    ]
    result = decide_streams(family, method="holm")

    assert result.goes_on
    assert result.trials_left == 170
    assert result.waiting == ("slow", "quick")


def test_the_family_fails_what_survives_the_correction() -> None:
    """p = .012, .02, .4 at 5 %: .012 ≤ .05/3, then .02 ≤ .05/2; BY divides by 11/6 more."""
    family = [stream(name, p_value=p) for name, p in (("a", 0.012), ("b", 0.02), ("c", 0.4))]

    failed = {
        method: [
            d.name for d in decide_streams(family, method=method).decisions if d.status == "fail"
        ]
        for method in ("none", *ADJUSTING)
    }
    assert failed == {
        "none": ["a", "b"],
        "bonferroni": ["a"],
        "holm": ["a", "b"],
        "bh": ["a", "b"],
        "by": [],
    }


def test_e_bh_reads_e_values() -> None:
    """Three e-values of 60, 30, 20 at 5 %: 60 ≥ 60, 30 ≥ 30, 20 ≥ 20."""
    family = [stream(n, p_value=None, e_value=e) for n, e in (("a", 60), ("b", 30), ("c", 20))]
    one = [stream("a", p_value=None, e_value=25.3), stream("b", p_value=None, e_value=math.inf)]

    assert statuses(decide_streams(family, method="e-bh")) == ["fail"] * 3
    assert statuses(decide_streams(one, method="e-bh")) == ["fail", "fail"]
    assert statuses(decide_streams(one[:1], method="e-bh")) == ["fail"]
    assert decide_streams(one, method="e-bh").adjustment.controls == "FDR"


@pytest.mark.parametrize("method", ["bonferroni", "holm"])
@pytest.mark.parametrize("m", range(1, 41))
def test_designs_at_alpha_over_m_satisfy_the_family(method: StreamCorrection, m: int) -> None:
    """Each FAIL of a test designed at alpha/m stands, at every m however alpha/m rounds."""
    family = [
        stream(str(i), p_value=None, level=0.05 / m, verdict="fail" if i % 2 == 0 else "pass")
        for i in range(m)
    ]

    assert statuses(decide_streams(family, method=method)) == [
        "fail" if i % 2 == 0 else "pass" for i in range(m)
    ]


def test_a_design_at_alpha_is_not_enough_for_a_family() -> None:
    """Its own FAIL at 5 % becomes INCONCLUSIVE among three, and runs no more trials."""
    family = [
        stream("a", p_value=None, level=0.05, verdict="fail"),
        *(stream(name, p_value=None, level=0.05, verdict="pass") for name in ("b", "c")),
    ]
    result = decide_streams(family, method="bonferroni")

    assert statuses(result) == ["inconclusive", "pass", "pass"]
    assert "does not confirm" in result.decisions[0].reason
    assert not result.goes_on
    assert statuses(decide_streams(family, method="none")) == ["fail", "pass", "pass"]


def test_a_verdict_of_stated_level_is_an_e_value_too() -> None:
    """1/level if it failed, 0 if not: at 1.25 % one of four survives e-BH at 5 %, at 2 % none."""
    for level, expected in ((0.0125, "fail"), (0.02, "inconclusive")):
        family = [
            stream("a", p_value=None, level=level, verdict="fail"),
            *(stream(n, p_value=None, level=level, verdict="pass") for n in "bcd"),
        ]
        assert statuses(decide_streams(family, method="e-bh"))[0] == expected


def test_a_fixed_n_p_value_speaks_only_at_its_n() -> None:
    """Before the budget is spent it enters as 1, however small it looks."""
    early = stream(p_value=1e-9, anytime=False, trials=49)
    done = replace(early, trials=50)

    assert statuses(decide_streams([early], method="bh")) == ["open"]
    assert statuses(decide_streams([done], method="bh")) == ["fail"]
    assert statuses(decide_streams([replace(early, anytime=True)], method="bh")) == ["fail"]


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=8), methods)
def test_later_evidence_never_takes_a_fail_back(
    pairs: list[tuple[float, float]], method: StreamCorrection
) -> None:
    """Anytime p-values only fall, and then FAILs only grow."""
    now = [stream(str(i), p_value=max(pair)) for i, pair in enumerate(pairs)]
    later = [stream(str(i), p_value=min(pair)) for i, pair in enumerate(pairs)]
    before, after = decide_streams(now, method=method), decide_streams(later, method=method)

    for a, b in zip(before.decisions, after.decisions, strict=True):
        assert a.status is not StreamStatus.FAIL or b.status is StreamStatus.FAIL
        assert b.adjusted <= a.adjusted


@given(st.lists(st.floats(0.1, 200), min_size=1, max_size=8), st.data())
def test_a_frozen_e_value_keeps_its_fail(values: list[float], data: st.DataObject) -> None:
    """What e-BH has failed stays failed while the others move as they like."""

    def failed(family: list[float]) -> set[int]:
        result = decide_streams(
            [stream(str(i), p_value=None, e_value=e) for i, e in enumerate(family)], method="e-bh"
        )
        return {i for i, d in enumerate(result.decisions) if d.status is StreamStatus.FAIL}

    kept = failed(values)
    moved = [value if i in kept else data.draw(st.floats(0, 500)) for i, value in enumerate(values)]

    assert kept <= failed(moved)


#: Joint chances of (both pass, only the first, only the second, neither), each passing half the
#: time: the same replies seen alike, unlike, and independently.
COUPLINGS = {
    "alike": (0.5, 0.0, 0.0, 0.5),
    "unlike": (0.0, 0.5, 0.5, 0.0),
    "independent": (0.25, 0.25, 0.25, 0.25),
}


def any_fail(method: StreamCorrection, coupling: str, alpha: float, trials: int) -> float:
    """P(any criterion ever FAILS) over every joint stream of two criteria that are both fine."""
    start = (EProcess.start(0.5, 0.1), EProcess.start(0.5, 0.1))
    alive, total = {start: 1.0}, 0.0
    for _ in range(trials):
        step: dict[tuple[EProcess, EProcess], float] = {}
        for (a, b), weight in alive.items():
            outcomes = ((1, 1), (1, 0), (0, 1), (0, 0))
            for (x, y), chance in zip(outcomes, COUPLINGS[coupling], strict=True):
                if chance:
                    key = (a.update(x), b.update(y))
                    step[key] = step.get(key, 0.0) + weight * chance
        alive = {}
        for pair, weight in step.items():
            family = [
                stream(str(i), trials=s.trials, p_value=s.p_value, e_value=s.value)
                for i, s in enumerate(pair)
            ]
            result = decide_streams(family, method=method, alpha=alpha)
            if StreamStatus.FAIL in [d.status for d in result.decisions]:
                total += weight
            else:
                alive[pair] = weight
    return total


@pytest.mark.slow(
    "bonferroni-independent", "holm-independent", "by-independent", "e-bh-independent"
)
@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize("method", ["bonferroni", "holm", "by", "e-bh"])
def test_no_dependence_breaks_the_promise(method: StreamCorrection, coupling: str) -> None:
    """Looked at after each of 9 shared trials: P(any false FAIL) ≤ alpha, exactly enumerated."""
    assert 0 < any_fail(method, coupling, 0.3, 9) <= 0.3


def test_without_a_correction_the_family_errs_more_than_each_criterion() -> None:
    """Two criteria at 30 % each, never failing together: the family errs more than 30 %."""
    alone = any_fail("none", "alike", 0.3, 9)

    assert alone <= 0.3
    assert any_fail("none", "unlike", 0.3, 9) > 0.3
    assert any_fail("none", "unlike", 0.3, 9) <= 2 * alone


@pytest.mark.parametrize("method", STREAM_CORRECTIONS)
def test_one_criterion_is_never_corrected(method: StreamCorrection) -> None:
    """A family of one fails at alpha under every method, and alpha itself is enough."""
    family = [stream(p_value=0.05, e_value=20.0)]

    assert statuses(decide_streams(family, method=method)) == ["fail"]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"trials": 51}, "a trials"),
        ({"trials": -1}, "a trials"),
        ({"budget": 0, "trials": 0}, "a budget"),
        ({"verdict": "maybe"}, "a verdict"),
        ({"level": 0.0}, "a level"),
        ({"p_value": 1.5}, "a p_value"),
        ({"p_value": math.nan}, "a p_value"),
        ({"e_value": -1.0}, "a e_value"),
        ({"e_value": math.nan}, "a e_value"),
    ],
)
def test_a_stream_cannot_be_built_wrong(fields: dict[str, Any], named: str) -> None:
    """Each refusal names the criterion and the field."""
    with pytest.raises(InvalidArgument) as caught:
        stream(**fields)
    assert named == caught.value.argument


@pytest.mark.parametrize(
    ("streams", "options", "named"),
    [
        ([], {}, "streams"),
        (3, {}, "streams"),
        (["a"], {}, "streams"),
        ([stream(), stream()], {}, "streams"),
        ([stream()], {"method": "sidak"}, "method"),
        ([stream()], {"alpha": 1.0}, "alpha"),
        ([stream(p_value=None)], {}, "a p_value"),
        ([stream()], {"method": "e-bh"}, "a e_value"),
    ],
)
def test_bad_families_are_named(streams: Any, options: dict[str, Any], named: str) -> None:
    """No criteria, equal names, missing evidence, unknown methods."""
    with pytest.raises(InvalidArgument) as caught:
        decide_streams(streams, **{"method": "holm", **options})
    assert named == caught.value.argument
