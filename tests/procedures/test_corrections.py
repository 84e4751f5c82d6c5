"""A correction acts on verdicts: split limits where a design may stop early, else p-values."""

from __future__ import annotations

import math
from typing import Any

import pytest
from scipy.integrate import quad

import trialwise as tw
from trialwise.runtime.verifying import verify
from trialwise.stats.e_values import calibrated_e_value, fixed_e_value


def _contract(criteria: list[tw.Criterion], name: str = "x", passing: int = 10**9) -> tw.Contract:
    return tw.Contract(
        name, lambda _, index: "ok" if index < passing else "bad", criteria
    ).with_inputs(["a"])


def _run(contract: tw.Contract, **options: Any) -> Any:
    return tw.run(contract, store=None, progress=False, seed=1, **options)


def _criteria(count: int, **question: Any) -> list[tw.Criterion]:
    given = {"at_least": 0.8} | question
    return [tw.Criterion(f"c{n}", tw.equals("ok"), **given) for n in range(count)]


@pytest.mark.requirement(
    "companion 7.3",
    "Bonferroni, Benjamini–Hochberg and Benjamini–Yekutieli for a declared family.",
    "`correction:`, `family:` and `family_size:` in a suite, in Python and on the marker",
)
@pytest.mark.requirement(
    "statistical-ci multiplicity",
    "A family of contracts is corrected for its number, also where designs stop early.",
    "`correction: bonferroni | holm | bh | by | e-bh` and `family:`",
)
@pytest.mark.parametrize("method", ["bonferroni", "holm", "bh", "by", "e-bh"])
def test_a_sequential_design_gets_its_share_of_the_error_limits(method: str) -> None:
    finding = _run(_contract(_criteria(4)), correction=method).verdict.findings[0]
    assert finding.plan.alpha == pytest.approx(0.05 / 4)
    assert finding.plan.beta == pytest.approx(0.05 / 4)
    # All pass: the fewest trials that show 80 % at 5 % are 14, at 1.25 % they are 20.
    assert 0.8**14 < 0.05 <= 0.8**13
    assert finding.tally.trials >= math.ceil(math.log(0.0125) / math.log(0.8))
    assert finding.single_decision == "PASS"


def _upper_tail(k: int, n: int, rate: float) -> float:
    return sum(math.comb(n, i) * rate**i * (1 - rate) ** (n - i) for i in range(k, n + 1))


def test_a_fixed_design_is_decided_by_its_adjusted_p_value() -> None:
    """Of four p-values just below 5 % Bonferroni and Holm leave none, BH all."""
    trials = 60
    passing = next(k for k in range(trials) if _upper_tail(k, trials, 0.8) <= 0.05)
    p = _upper_tail(passing, trials, 0.8)
    assert 0.05 / 4 < p <= 0.05
    contract = _contract(_criteria(4), passing=passing)
    found = {
        method: _run(contract, correction=method, trials=trials, rule="exact").verdict
        for method in ("none", "bonferroni", "holm", "bh", "by")
    }
    decisions = {method: str(one.decision) for method, one in found.items()}
    assert decisions == {
        "none": "PASS", "bonferroni": "FAIL", "holm": "FAIL", "bh": "PASS", "by": "FAIL",
    }  # fmt: skip
    single = found["bonferroni"].findings[0]
    assert (single.single_decision, single.decision) == ("PASS", "FAIL")
    assert f"adjusted p = {4 * p:.3g}" in " ".join(single.caveats)
    assert "on its own: PASS" in " ".join(single.caveats)
    # The interval agrees with the corrected decision: it does not exclude the required rate.
    assert single.interval.low <= 0.8


def test_contracts_that_are_run_together_are_one_family() -> None:
    contracts = [_contract(_criteria(2), name) for name in ("one", "other")]
    results = tw.run_all(contracts, correction="bonferroni", store=None, progress=False).results
    assert results["one"].verdict.findings[0].plan.alpha == pytest.approx(0.05 / 4)
    assert results["one"].record.plan.family_size == 4


def test_families_of_other_names_are_corrected_apart() -> None:
    from trialwise.model.options import RunOptions
    from trialwise.procedures.planning.families import size_families

    runs = [
        (_contract(_criteria(count), f"x{count}"), RunOptions(correction="holm", family=name))
        for count, name in ((2, "a"), (3, "a"), (4, "b"))
    ]
    assert [one.family_size for one in size_families(runs)] == [5, 5, 4]


def test_every_input_of_each_input_is_a_decision() -> None:
    criterion = tw.Criterion("ok", tw.equals("ok"), at_least=0.8, each_input=True)
    contract = tw.Contract("x", lambda _: "ok", [criterion]).with_inputs(list("abcde"))
    verdict = _run(contract, correction="bonferroni").verdict
    assert verdict.findings[0].plan.alpha == pytest.approx(0.05 / 5)
    assert verdict.findings[0].single_decision == "PASS"


def test_a_size_that_cannot_pass_corrected_is_refused() -> None:
    """14 trials show 80 % at 5 % and not at 1.25 %."""
    with pytest.raises(tw.DesignRefused, match="one of 4 decisions"):
        _run(_contract(_criteria(4)), correction="holm", trials=14, rule="exact")


def test_a_corrected_run_can_be_decided_again() -> None:
    record = _run(_contract(_criteria(3)), correction="holm").record
    assert verify(record).matches


def _e_value(k: int, n: int, rate: float) -> float:
    """The likelihood ratio to the required rate, averaged over higher rates by quadrature."""

    def ratio(p: float) -> float:
        return float((p / rate) ** k * ((1 - p) / (1 - rate)) ** (n - k))

    return float(quad(ratio, rate, 1, epsabs=0, epsrel=1e-10, limit=200)[0]) / (1 - rate)


@pytest.mark.requirement(
    "companion 7.3",
    "A correction that holds whatever the dependence between the criteria.",
    "`correction: e-bh`",
)
def test_e_values_decide_a_family_whatever_its_dependence() -> None:
    """e-BH rejects k of M where the k-th largest e-value is at least M/(k·α)."""
    trials, rate = 60, 0.8
    for passing in range(54, 61):
        verdict = _run(
            _contract(_criteria(4), passing=passing), correction="e-bh", trials=trials
        ).verdict
        # Four equal e-values: all are rejected from 1/α on.
        expected = "PASS" if _e_value(passing, trials, rate) >= 1 / 0.05 else "FAIL"
        assert str(verdict.decision) == expected, passing
        assert "e-bh, by e-values" in " ".join(verdict.findings[0].qualifications)


def test_the_mean_of_an_e_value_is_at_most_one() -> None:
    """Under every rate up to the required one, by enumeration; a p-value's at any level."""
    for rate in (0.5, 0.7, 0.8):
        mean = math.fsum(
            math.comb(40, k) * rate**k * (1 - rate) ** (40 - k) * fixed_e_value(k, 40, 0.8)
            for k in range(41)
        )
        assert mean <= 1 + 1e-9
    assert fixed_e_value(38, 40, 0.8) == pytest.approx(_e_value(38, 40, 0.8), rel=1e-8)
    assert quad(calibrated_e_value, 0, 1)[0] == pytest.approx(1)
