"""A correction acts on verdicts: split limits where a design may stop early, else p-values."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scipy.integrate import quad
from tests.procedures.test_judged_errors import LABELS, Measured, planned, trial_of
from tests.procedures.test_judging import judged

import trialwise as tw
from trialwise.model.claim import Estimator, PopulationClaim
from trialwise.model.criterion import Criterion
from trialwise.model.plan import Plan
from trialwise.model.verdict import Finding
from trialwise.runtime.verifying import verify
from trialwise.stats.e_values import calibrated_e_value, fixed_e_value
from trialwise.stores.runs import RunStore


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


@pytest.mark.parametrize("undecided", ["fail", "inconclusive"])
def test_a_fixed_design_is_decided_by_its_adjusted_p_value(undecided: str) -> None:
    """Of four p-values just below 5 % Bonferroni and Holm leave none, BH all.

    What does not survive is not shown: INCONCLUSIVE, or FAIL (not shown) where that was asked.
    """
    trials = 60
    passing = next(k for k in range(trials) if _upper_tail(k, trials, 0.8) <= 0.05)
    p = _upper_tail(passing, trials, 0.8)
    assert 0.05 / 4 < p <= 0.05
    contract = _contract(_criteria(4, undecided=undecided), passing=passing)
    found = {
        method: _run(contract, correction=method, trials=trials, rule="exact").verdict
        for method in ("none", "bonferroni", "holm", "bh", "by")
    }
    decisions = {method: str(one.decision) for method, one in found.items()}
    lost = "FAIL" if undecided == "fail" else "INCONCLUSIVE"
    assert decisions == {
        "none": "PASS", "bonferroni": lost, "holm": lost, "bh": "PASS", "by": lost,
    }  # fmt: skip
    single = found["bonferroni"].findings[0]
    assert (single.single_decision, single.decision) == ("PASS", lost)
    assert single.evidence.ground == "not shown"
    assert "PASS at 1.25 %" in " ".join(single.caveats)
    assert "on its own: PASS" in " ".join(single.caveats)
    # The interval agrees with the corrected decision: it does not exclude the required rate.
    assert single.interval.low <= 0.8
    assert single.interval.confidence == pytest.approx(1 - 2 * 0.05 / 4)
    # The level of the selected: all four of four.
    assert found["bh"].findings[0].interval.confidence == pytest.approx(1 - 0.05 - 0.05 / 4)
    assert found["bh"].findings[0].interval.low > 0.8


def test_a_correction_never_shows_a_lower_rate_for_a_pass() -> None:
    """59 of 60 at 90 % are a PASS alone and open as one of ten decisions, as at 99.5 %."""
    assert 0.005 < _upper_tail(59, 60, 0.9) <= 0.05
    criterion = tw.Criterion("c", tw.equals("ok"), at_least=0.9, undecided="inconclusive")
    one = _run(_contract([criterion], passing=59), correction="holm", family_size=10, trials=60)
    (finding,) = one.verdict.findings
    assert (finding.single_decision, finding.decision) == ("PASS", "INCONCLUSIVE")
    assert verify(one.record).matches


@pytest.mark.parametrize("method", ["bonferroni", "holm", "bh", "by", "e-bh"])
def test_a_fail_survives_a_correction_only_if_it_is_shown(method: str) -> None:
    """41 of 60 show a rate below 80 % at 5 % and not at 1 %; 30 of 60 do at any level."""
    assert 0.01 < 1 - _upper_tail(42, 60, 0.8) <= 0.05
    criteria = [
        tw.Criterion(
            f"c{k}", lambda text, k=k: int(text) < k, at_least=0.8, undecided="inconclusive"
        )
        for k in (41, 30)
    ]
    contract = tw.Contract("x", lambda _, index: str(index), criteria).with_inputs(["a"])
    found = _run(contract, correction=method, family_size=5, trials=60).verdict.findings
    assert [str(one.single_decision) for one in found] == ["FAIL", "FAIL"]
    assert [str(one.decision) for one in found] == ["INCONCLUSIVE", "FAIL"]
    assert found[0].interval.high >= 0.8 > found[1].interval.high


def test_a_mean_is_corrected_in_both_directions() -> None:
    """Scores that show a mean at 5 % and not at 0.5 % leave it open, also a mean below."""
    for scores, single in (((0.93,), "PASS"), ((0.75,), "FAIL")):
        mean = tw.Criterion(
            "m", lambda _, scores=scores: scores[0], mean_at_least=0.8, undecided="inconclusive"
        )
        contract = tw.Contract("x", lambda _: "ok", [mean]).with_inputs(["a"])
        sizes = {
            trials: _run(contract, correction="bonferroni", family_size=10, trials=trials)
            for trials in (20 if single == "FAIL" else 30, 300)
        }
        few, many = (one.verdict.findings[0] for one in sizes.values())
        assert str(many.decision) == str(many.single_decision) == single
        assert (str(few.single_decision), str(few.decision)) == (single, "INCONCLUSIVE")
        assert few.interval.low < 0.8 <= few.interval.high
        assert few.scores.interval == few.interval


def test_every_method_is_a_rule_of_its_own_where_designs_stop_early() -> None:
    """One criterion PASSes at its boundary and one is left open there; Holm and BH decide it.

    22 of 24 at 80 %: the design gives up, with an exact p-value of 4 %.
    """
    found = {}
    for method in ("bonferroni", "holm", "bh", "by"):
        criteria = [
            tw.Criterion("sure", tw.equals("ok"), at_least=0.5),
            tw.Criterion("close", lambda text: text != "bad", at_least=0.8, max_trials=30),
        ]
        contract = tw.Contract(
            "x", lambda _, index: "bad" if index in (9, 23) else "ok", criteria
        ).with_inputs(["a"])
        result = _run(contract, correction=method, keep_going=True)
        assert verify(result.record).matches
        found[method] = [str(one.decision) for one in result.verdict.findings]
        (close,) = [one for one in result.verdict.findings if one.criterion == "close"]
        assert close.single_decision == "PASS"
        assert (close.decision == "PASS") == (close.interval.low >= 0.8)
    assert found["bonferroni"][1] == "INCONCLUSIVE"
    assert found["holm"] == found["bh"] == ["PASS", "PASS"]


def test_a_boundary_fail_settles_a_corrected_contract() -> None:
    """It holds whatever the others decide, so they are cut short and show nothing."""
    criteria = [
        tw.Criterion("bad", tw.equals("bad"), at_least=0.9),
        tw.Criterion("good", tw.equals("ok"), at_least=0.9),
    ]
    for method, ends in (("holm", True), ("by", False)):
        result = _run(_contract(criteria), correction=method)
        bad, good = result.verdict.findings
        assert bad.decision == "FAIL"
        assert good.decision == ("INCONCLUSIVE" if ends else "PASS")
        assert verify(result.record).matches


def test_a_drop_that_does_not_survive_is_open_and_a_pass_stays(tmp_path: Path) -> None:
    """Against a baseline only the FAIL is a statement, at its own level of the family."""
    from trialwise.model.evidence import Tally
    from trialwise.procedures.regression import decide_regression

    baseline = Tally(trials=100, passed=95)
    p_of = {
        k: decide_regression("c", Tally(trials=100, passed=k), baseline).p_value.value  # type: ignore[union-attr]
        for k in (95, 87, 70)
    }
    assert p_of[95] > 0.05 >= p_of[87] > 0.005 > p_of[70]
    expected = {95: ("PASS", "PASS"), 87: ("FAIL", "INCONCLUSIVE"), 70: ("FAIL", "FAIL")}
    criterion = tw.Criterion("c", tw.equals("ok"), no_worse_than="baseline")
    measured = _contract([criterion], passing=95)
    tw.measure(measured, trials=100, store=None, baselines=tmp_path, progress=False)
    for passing, decisions in expected.items():
        result = _run(
            _contract([criterion], passing=passing),
            baselines=tmp_path,
            correction="holm",
            family_size=10,
            trials=100,
        )
        (finding,) = result.verdict.findings
        assert (str(finding.single_decision), str(finding.decision)) == decisions
        assert verify(result.record).matches


def test_an_estimated_rate_is_corrected() -> None:
    """The bound of an estimator has to hold at the share of its level."""
    criterion = tw.Criterion("c", lambda text: text != "7", at_least=0.7)
    claim = tw.model.Claim(
        population=PopulationClaim.SUPERPOPULATION,
        population_name="all",
        estimator=Estimator.PROMPTS,
    )
    questions = [str(n) for n in range(24)]
    contract = tw.Contract("x", str, [criterion], claim=claim).with_inputs(questions)
    found = {}
    for size in (2, 50):
        result = _run(contract, correction="bonferroni", family_size=size, trials=24)
        (found[size],) = result.verdict.findings
    assert found[2].decision == found[2].single_decision == "PASS"
    assert (str(found[50].single_decision), str(found[50].decision)) == ("PASS", "INCONCLUSIVE")
    assert found[50].lower_bound < 0.7 < found[2].lower_bound


def test_inputs_that_are_decided_one_by_one_are_told_as_the_family_decides_them() -> None:
    """`each_input`: the sentence counts the corrected decisions."""
    criterion = tw.Criterion("ok", tw.equals("ok"), at_least=0.8, each_input=True)
    contract = tw.Contract("x", lambda _: "ok", [criterion]).with_inputs(list("abcd"))
    found = _run(contract, correction="by", trials=20, family_size=10).verdict.findings[0]
    # Four of ten share 2 % divided by 1 + 1/2 + 1/3 + 1/4, which is 0.96 %.
    assert 0.0096 < 0.8**20 < 0.0116
    assert (str(found.single_decision), str(found.decision)) == ("PASS", "INCONCLUSIVE")
    assert found.statement.startswith("0 of 4 inputs PASS")
    assert "as one of 10 decisions" in " ".join(found.by_input[0].qualifications)


def test_a_correction_is_advised_where_inputs_add_up() -> None:
    """Twelve inputs at 5 % each; the advice has the number that a correction gives."""
    criterion = tw.Criterion("ok", tw.equals("ok"), at_least=0.8, each_input=True)
    contract = tw.Contract("x", lambda _: "ok", [criterion]).with_inputs(list("abcdefghijkl"))
    alone, together = (_run(contract, correction=one).verdict for one in ("none", "holm"))
    assert "`correction: holm` keeps the chance that any of these 12" in alone.findings[0].statement
    assert "correction" not in together.findings[0].statement


def test_a_family_states_what_it_controls() -> None:
    """An error of the family, or a false discovery rate; and what the claim assumes."""
    said = {
        method: _run(_contract(_criteria(3)), correction=method).verdict.findings[0]
        for method in ("holm", "bh", "by")
    }
    assert "any a wrong FAIL in at most 5 %" in said["holm"].confidence_statement
    assert "false discovery rate" in said["bh"].confidence_statement
    assert "PRDS" in said["bh"].confidence_statement
    assert "arbitrary dependence" in said["by"].confidence_statement


def test_a_family_smaller_than_its_decisions_is_refused() -> None:
    with pytest.raises(tw.InvalidArgument, match="family_size must be at least 3"):
        _run(_contract(_criteria(3)), correction="holm", family_size=2)


def test_a_family_without_decisions_and_one_with_a_power_are_planned() -> None:
    """`never_fails` cannot be wrong; a power is 1 − beta and is split."""
    contracts = [_contract(_criteria(1, at_least=None, never_fails=True), name) for name in "ab"]
    results = tw.run_all(contracts, correction="holm", store=None, progress=False).results
    assert results["a"].record.plan.correction == "none"
    plan = _run(_contract(_criteria(2, power=0.8)), correction="holm").record.plan
    assert plan.criteria[0].beta == pytest.approx(0.1)


STORED = Path(__file__).parents[1] / "data" / "records-corrected-before-0.2"


@pytest.mark.parametrize("name", sorted(one.name for one in (STORED / "runs").iterdir()))
def test_a_record_of_the_earlier_rule_is_decided_by_it(name: str) -> None:
    """Only a PASS was corrected then, and it became a FAIL."""
    stored = RunStore(STORED).open(name)
    record = stored.record()
    reproducibility = replace(record.verdict.reproducibility, tool_version="0.2.0.dev")
    verdict = replace(record.verdict, reproducibility=reproducibility)
    assert verify(replace(record, verdict=verdict), known_hash=stored.plan_hash).differences == ()


def test_contracts_that_are_run_together_are_one_family() -> None:
    contracts = [_contract(_criteria(2), name) for name in ("one", "other")]
    results = tw.run_all(contracts, correction="bonferroni", store=None, progress=False).results
    assert results["one"].verdict.findings[0].plan.alpha == pytest.approx(0.05 / 4)
    assert results["one"].record.plan.family_size == 4


def test_families_of_other_names_are_corrected_apart() -> None:
    from trialwise.model.options import RunOptions
    from trialwise.procedures.families import size_families

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
        expected = "PASS" if _e_value(passing, trials, rate) >= 1 / 0.05 else "INCONCLUSIVE"
        assert str(verdict.decision) == expected, passing
        assert "(e-bh: " in " ".join(verdict.findings[0].qualifications)


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


def _decide_kinds(plan: Plan, kinds: str) -> Finding:
    trials = [trial_of(kind, index) for index, kind in enumerate(kinds)]
    return judged(plan, trials).findings[0]


@pytest.mark.parametrize("question", [{"trials": 60}, {"margin": 0.2, "max_trials": 60}])
def test_a_judged_rate_is_corrected(question: dict[str, Any]) -> None:
    """The corrected decision is that of a confidence which allows the share of the error alone."""
    criterion = Criterion(
        "c", Measured(LABELS), at_least=0.6, undecided="inconclusive",
        **({k: v for k, v in question.items() if k != "trials"}),
    )  # fmt: skip
    size = {k: v for k, v in question.items() if k == "trials"}
    together = planned(criterion, correction="bonferroni", family_size=10, **size)
    levels = {"curtail": False, **size}
    alone = planned(criterion, **levels)
    strict = planned(replace(criterion, confidence=0.995), **levels)
    trials = together.criteria[0].trials
    seen = set()
    for passed in (10, 34, 46, trials):
        kinds = "+" * passed + "-" * (trials - passed)
        found = _decide_kinds(together, kinds)
        # A share of the level at each look is another rule, so that the plans have none.
        single, split = (
            _decide_kinds(replace(one, criteria=(one.criteria[0].change(looks=()),)), kinds)
            for one in (alone, strict)
        )
        assert (found.single_decision, found.decision) == (single.decision, split.decision)
        seen.add((str(single.decision), str(split.decision)))
    assert seen >= {("PASS", "PASS"), ("PASS", "INCONCLUSIVE"), ("FAIL", "FAIL")}


def test_a_size_that_cannot_pass_at_its_share_can_still_fail() -> None:
    """25 of 60 show a rate below 95 % at any level; not even 60 show one above at 0.1 %."""
    assert 0.95**60 > 0.05 / 50
    criterion = tw.Criterion("c", tw.equals("ok"), at_least=0.95, undecided="inconclusive")
    contract = _contract([criterion], passing=25)
    (finding,) = _run(contract, correction="bh", family_size=50, trials=60).verdict.findings
    assert (finding.single_decision, finding.decision) == ("FAIL", "FAIL")
    assert finding.statement.startswith("Only 25 of 60 passed")


def test_a_part_of_a_corpus_that_shows_nothing_is_not_shown_below() -> None:
    """Its FAIL alone says that the rate was not shown; as one of many it is open."""
    claim = tw.model.Claim(population=PopulationClaim.FINITE_CORPUS)
    criterion = tw.Criterion(
        "c", lambda text: int(text) % 10 != 0, at_least=0.8, undecided="inconclusive"
    )
    contract = tw.Contract("x", str, [criterion], claim=claim).with_inputs(
        [str(n) for n in range(60)]
    )
    (finding,) = _run(contract, correction="bh", family_size=9, trials=30).verdict.findings
    assert finding.decision == "INCONCLUSIVE"
