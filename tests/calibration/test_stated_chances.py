"""Stated chances are frequencies: contracts drawn at random, run many times by the real engine.

Whatever is stated in JSON, before a run by `check` and after it by the report, agrees with itself
and with how often it happens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.calibration.random_contracts import (
    RandomContract,
    Statement,
    compare,
    draw_contract,
    is_refuted,
    list_contradictions,
    read_stated,
)

from trialwise.stats.multiplicity import FAMILY_CORRECTIONS

#: Corrections under which stated chances and frequencies still differ, and why. To be empty.
KNOWN: dict[str, str] = {}
#: Each with its criteria and how it is run.
ONCE_UNTRUE: dict[str, tuple[tuple[dict[str, Any], ...], dict[str, Any]]] = {
    "fixed criteria": (({"at_least": 0.9, "trials": 40}, {"at_least": 0.9, "max_trials": 100}), {}),
    "baselines": (({"no_worse_than": "baseline", "trials": 100}, {"at_least": 0.8}), {}),
    "undecided": (({"at_least": 0.9, "trials": 100, "undecided": "inconclusive"},), {}),
    "corrections": (
        ({"at_least": 0.9, "trials": 60, "undecided": "inconclusive"},),
        {"correction": "holm", "family_size": 10},
    ),
    "one sequential criterion": (({"at_least": 0.8, "max_trials": 60},), {}),
    "a margin": (({"at_least": 0.8, "margin": 0.1, "max_trials": 100},), {}),
    "two sequential criteria": (({"at_least": 0.8}, {"at_least": 0.7}), {}),
    "each input": (({"at_least": 0.8, "max_trials": 60, "each_input": True},), {}),
}


def mark_known(case: Any, options: Mapping[str, Any]) -> Any:
    """A case, which may be untrue under some corrections."""
    known = KNOWN.get(options.get("correction", ""))
    marks = [] if known is None else [pytest.mark.xfail(reason=known, strict=False)]
    return pytest.param(case, marks=marks)


@pytest.mark.parametrize(
    "name", [mark_known(name, options) for name, (_, options) in ONCE_UNTRUE.items()]
)
def test_what_is_stated_of_a_contract_is_true(name: str) -> None:
    """By `check`, by the report, and by both together."""
    criteria, options = ONCE_UNTRUE[name]
    drawn = RandomContract(list(ONCE_UNTRUE).index(name), criteria, options)

    assert [] == compare(drawn, runs=40)


@pytest.mark.parametrize(
    "number", [mark_known(number, draw_contract(number).options) for number in (4, 5, 6, 9, 15)]
)
def test_what_is_stated_of_a_drawn_contract_is_true(number: int) -> None:
    """A fixed few; `make test-all` has a few hundred."""
    assert [] == compare(draw_contract(number), runs=24)


@pytest.mark.slow
@pytest.mark.parametrize(
    "correction", [mark_known(one, {"correction": one}) for one in FAMILY_CORRECTIONS]
)
def test_what_is_stated_of_many_drawn_contracts_is_true(correction: str) -> None:
    """A few hundred contracts, each with all that is stated of it."""
    several = map(draw_contract, range(300))
    chosen = [one for one in several if one.options.get("correction", "none") == correction]
    wrong = {str(one): found for one in chosen if (found := compare(one, runs=80))}

    assert {} == wrong


def state(chance: float, *, is_bound: bool) -> Statement:
    """A number by itself."""
    return Statement("check", "PASS", (0.9,), lambda _: True, chance, is_bound)


def test_a_comparison_is_wrong_by_chance_less_than_once_in_a_million() -> None:
    """A frequency far from the number refutes it, one near it never does.

    P(at least 10 of 20 at 5 %) is 1.1e-8 by the binomial tail, and P(at least 5) is 0.0026.
    """
    assert is_refuted(10, 20, state(0.05, is_bound=True))
    assert not is_refuted(5, 20, state(0.05, is_bound=True))
    assert not is_refuted(0, 100, state(0.5, is_bound=True))
    assert is_refuted(0, 100, state(0.5, is_bound=False))
    assert is_refuted(1, 20, state(0.0, is_bound=False))


def test_a_number_draws_the_same_contract() -> None:
    """So that a contract can be looked at again."""
    assert draw_contract(7) == draw_contract(7)
    assert len({str(draw_contract(number)) for number in range(50)}) > 45


def test_check_and_report_are_compared_with_each_other(tmp_path: Any) -> None:
    """A report that states less than `check` is a contradiction."""
    criteria = ({"at_least": 0.8, "max_trials": 60}, {"at_least": 0.9, "max_trials": 60})
    stated = read_stated(RandomContract(1, criteria, {}), tmp_path)
    (envelope,) = [one for one in stated.envelopes if one["error"] == "wrong-fail"]
    less = stated._replace(envelopes=[{**envelope, "raw": 0.01}])

    assert [] == list(list_contradictions(stated))
    assert 2 == len(list(list_contradictions(less)))
