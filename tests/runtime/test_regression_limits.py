"""Comparisons with a baseline that are too small to be evidence, and what is said of the others."""

from __future__ import annotations

import io
import json
import math
import re
from pathlib import Path
from random import Random

import numpy as np
import pytest
from scipy.stats import binom

import trialwise as tw
from trialwise.errors import DesignRefused, InvalidArgument
from trialwise.model.evidence import Tally
from trialwise.model.verdict import Caution, Decision
from trialwise.procedures.base import Counts
from trialwise.procedures.regression import PROCEDURE as REGRESSION
from trialwise.procedures.regression_designs import plan_stages
from trialwise.runtime.verifying import verify
from trialwise.stats import boschloo_region
from trialwise.stats.regression_cutoffs import RegressionCutoff, regression_cutoff
from trialwise.stats.result_types import Rule


def first_pass(passing: int, margin: float | None = None) -> tw.Contract:
    """A service whose first trials pass."""

    def ask(_text: str, index: int) -> str:
        return "ok" if index < passing else "bad"

    criterion = tw.Criterion("ok", tw.equals("ok"), no_worse_than="baseline", margin=margin)
    return tw.Contract("x", ask, [criterion])


def compare(
    tmp_path: Path, baseline: tuple[int, int], test: tuple[int, int], **given: object
) -> tw.Result:
    """Measure a baseline of (passes, trials), then test one of (passes, trials)."""
    quiet = {"inputs": ["a"], "store": None, "progress": False, "baselines": tmp_path}
    tw.measure(first_pass(baseline[0]), trials=baseline[1], **quiet)  # type: ignore[arg-type]
    return tw.run(first_pass(test[0]), trials=test[1], curtail=False, **quiet, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("baseline", "test", "said"),
    [
        ((951, 1000), (1, 1), "1 trial is too few to compare with 951 of 1000"),
        ((951, 1000), (5, 5), "Run at least 57 trials"),
        ((1, 1), (30, 100), "a baseline of 1 trial is too small"),
        ((2, 3), (30, 100), "a baseline of 3 trials is too small"),
        ((0, 50), (0, 100), "none of the 50 trials of the baseline passed"),
    ],
)
def test_a_comparison_that_cannot_find_a_drop_is_refused(
    tmp_path: Path, baseline: tuple[int, int], test: tuple[int, int], said: str
) -> None:
    """With the numbers, and smoke intent as the way out."""
    with pytest.raises(DesignRefused, match=said) as refused:
        compare(tmp_path, baseline, test)

    assert "`intent: smoke`" in str(refused.value)
    compare(tmp_path / "smoke", baseline, test, intent="smoke")


def is_enough(baseline: tuple[int, int], trials: int) -> bool:
    """Whether 0.951^n ≤ 5 %, say, or ten points less are found in 80 %, by the sum over all."""
    passed, size = baseline
    reference, rate = min(passed / size, size / (size + 1)), passed / size
    cutoffs = boschloo_region(size, trials, 0.05).cutoffs
    power = math.fsum(
        float(binom.pmf(k, size, rate) * binom.cdf(c - 1, trials, rate - 0.1))
        for k, c in enumerate(cutoffs)
    )
    return reference**trials <= 0.05 or power >= 0.8


@pytest.mark.parametrize("rule", ["exact", "wilson", "fisher"])
@pytest.mark.parametrize("baseline", [(90, 100), (100, 100), (475, 500), (95, 100)])
def test_a_refusal_names_the_fewest_trials_that_are_admitted(
    tmp_path: Path, rule: Rule, baseline: tuple[int, int]
) -> None:
    """The same number under every rule: it is admitted, one less is not, and more are."""
    fewest = next(n for n in range(1, 400) if is_enough(baseline, n))
    quiet = {"inputs": ["a"], "store": None, "progress": False, "baselines": tmp_path}
    tw.measure(first_pass(baseline[0]), trials=baseline[1], **quiet)  # type: ignore[arg-type]

    def check(trials: int) -> None:
        tw.check(first_pass(1), inputs=["a"], baselines=tmp_path, rule=rule, trials=trials)

    for few in (3, fewest - 1):
        with pytest.raises(DesignRefused, match=f"Run at least {fewest} trials, which find it"):
            check(few)
    for enough in (fewest, fewest + 1, fewest + 2, fewest + 3):
        check(enough)


@pytest.mark.parametrize("rule", ["exact", "wilson", "fisher"])
@pytest.mark.parametrize("baseline", [(1, 1), (2, 2), (1, 3)])
def test_a_baseline_that_is_too_small_is_refused_by_every_rule(
    tmp_path: Path, rule: Rule, baseline: tuple[int, int]
) -> None:
    """After 1 of 1, `rule: wilson` called 30 of 100 a PASS."""
    size = baseline[1]
    with pytest.raises(DesignRefused, match=f"a baseline of {size} trials? is too small"):
        compare(tmp_path, baseline, (0, size if rule == "fisher" else 100), rule=rule)


@pytest.mark.parametrize(
    ("size", "cutoffs"), [(100, (46, 94)), (300, (47, 96)), (1000, (48, 97)), (3000, (48, 98))]
)
def test_the_documents_table_of_perfect_baselines_is_admitted(
    tmp_path: Path, size: int, cutoffs: tuple[int, int]
) -> None:
    """Companion §4.3.3: thresholds .906 to .972 of 50 and of 100 trials, rounded up to counts."""
    quiet = {"inputs": ["a"], "store": None, "progress": False, "baselines": tmp_path}
    tw.measure(first_pass(size), trials=size, **quiet)  # type: ignore[arg-type]
    for trials, cutoff in zip((50, 100), cutoffs, strict=True):
        given = {"inputs": ["a"], "baselines": tmp_path, "rule": "wilson", "trials": trials}
        assert tw.check(first_pass(1), **given).criteria[0].cutoff == cutoff  # type: ignore[arg-type]


def test_adequate_power_is_said_only_of_a_power_that_was_asked_for(tmp_path: Path) -> None:
    """60 trials against 95 of 100 find a drop of ten points with less than 80 %; 300 with more."""
    few = compare(tmp_path / "few", (95, 100), (57, 60)).verdict.findings[0]
    many = compare(tmp_path / "many", (475, 500), (285, 300)).verdict.findings[0]

    def power(nb: int, n: int) -> float:
        cutoffs = boschloo_region(nb, n, 0.05).cutoffs
        return math.fsum(
            float(binom.pmf(k, nb, 0.95) * binom.cdf(c - 1, n, 0.85)) for k, c in enumerate(cutoffs)
        )

    assert power(100, 60) < 0.8 < power(500, 300)
    assert few.decision is many.decision is Decision.PASS
    assert (few.caution, many.caution) == (Caution.POWER_NOT_SHOWN, Caution.ADEQUATE_POWER)
    assert any("says little" in caveat for caveat in few.caveats)


def test_a_wilson_comparison_says_its_true_false_alarm_in_every_report(tmp_path: Path) -> None:
    """90 of 100, then 500 trials: 25.3 % and not 5 %, by the sum over all baselines."""
    result = compare(tmp_path, (90, 100), (430, 500), rule="wilson")
    cutoffs = [regression_cutoff(k, 100, 500, rule="wilson").cutoff or 0 for k in range(101)]
    alarm = math.fsum(
        float(binom.pmf(k, 100, 0.9) * binom.cdf(c - 1, 500, 0.9)) for k, c in enumerate(cutoffs)
    )
    finding = result.verdict.findings[0]

    assert f"{100 * alarm:.1f} %" == "25.3 %"
    assert any("FAILs in 25.3 % of runs" in one and "rule: exact" in one for one in finding.caveats)
    assert "25.3 %" in finding.confidence_statement
    exact = compare(tmp_path / "exact", (90, 100), (430, 500))
    assert "at most 5 %" in exact.verdict.findings[0].confidence_statement


def test_the_forecast_counts_the_baseline_as_a_sample_at_both_rates(tmp_path: Path) -> None:
    """100 and 100 trials at 90 %: Boschloo finds 80 % in 60.2 % of pairs of runs."""
    finding = compare(tmp_path, (90, 100), (90, 100)).verdict.findings[0]

    assert finding.power == pytest.approx(0.602, abs=6e-4)


@pytest.mark.parametrize("rule", ["wilson", "fisher"])
def test_a_comparison_is_sized_for_the_rule_that_decides(tmp_path: Path, rule: Rule) -> None:
    """95 of 100 and a drop of 20 points: 80 % by the sum over all baselines, and not one less."""
    quiet = {"inputs": ["a"], "store": None, "progress": False, "baselines": tmp_path}
    tw.measure(first_pass(95), trials=100, **quiet)  # type: ignore[arg-type]
    contract = first_pass(100, margin=0.2)
    plan = tw.check(contract, inputs=["a"], baselines=tmp_path, rule=rule, curtail=False)

    def power(n: int) -> float:
        cutoffs = [regression_cutoff(k, 100, n, rule=rule).cutoff or 0 for k in range(101)]
        return math.fsum(
            float(binom.pmf(k, 100, 0.95) * binom.cdf(c - 1, n, 0.75))
            for k, c in enumerate(cutoffs)
        )

    trials = plan.criteria[0].trials
    assert power(trials - 1) < 0.8 <= power(trials)


def list_rules(size: int, margin: float) -> list[tuple[int, int]]:
    """The trials and the cutoff of every baseline of a size, where nobody gives trials."""
    criterion = tw.Criterion("ok", tw.equals("ok"), no_worse_than="baseline", margin=margin)
    designs = [plan_stages(criterion, (k, size), None, waits=True) for k in range(1, size + 1)]
    return [(1, 0), *((one.trials, one.cutoff or 0) for one in designs)]


def find_highest(size: int, rules: list[tuple[int, int]]) -> float:
    """The largest P(FAIL) over common rates, the choice of the size included."""
    counts, trials = np.arange(size + 1), np.array([n for n, _ in rules])
    below = np.array([c - 1 for _, c in rules])
    rates = np.linspace(0.002, 0.998, 499)
    return max(float(binom.pmf(counts, size, p) @ binom.cdf(below, trials, p)) for p in rates)


@pytest.mark.parametrize(
    ("size", "margin"), [(9, 0.3), (30, 0.3), (60, 0.2), (100, 0.1), (100, 0.15), (100, 0.2)]
)
def test_a_size_that_the_baseline_chose_is_counted_in_the_level(size: int, margin: float) -> None:
    """`curtail: false` without `trials`: at most 5 % over every common rate, by enumeration.

    Boschloo's test at a size that was chosen from the count FAILed in 5.6 % (100, 15 %).
    """
    rules = list_rules(size, margin)
    assert find_highest(size, rules) <= 0.05
    if size >= 60 and margin >= 0.15:
        # Larger rates are told apart with fewer trials: the size is chosen, not fixed.
        assert len({n for n, _ in rules}) > 5


def test_a_size_that_the_baseline_chose_finds_the_loss_as_often_as_asked() -> None:
    """100 trials and a loss of 20 points: from 60 % on, in 80 % of pairs of runs."""
    rules = list_rules(100, 0.2)
    for rate in (0.6, 0.7, 0.8, 0.9, 0.95):
        power = math.fsum(
            float(binom.pmf(k, 100, rate) * binom.cdf(c - 1, n, rate - 0.2))
            for k, (n, c) in enumerate(rules)
        )
        assert power >= 0.8


def test_a_comparison_of_chosen_size_runs_all_trials_and_verifies(tmp_path: Path) -> None:
    """With `curtail: false` no count decides before the end, and the record is derived again."""
    quiet = {"inputs": ["a"], "store": None, "progress": False, "baselines": tmp_path}
    tw.measure(first_pass(95), trials=100, **quiet)  # type: ignore[arg-type]
    for passing, decision in ((100, Decision.PASS), (0, Decision.FAIL)):
        result = tw.run(first_pass(passing, 0.2), curtail=False, **quiet)  # type: ignore[arg-type]
        finding = result.verdict.findings[0]
        planned, cutoff = list_rules(100, 0.2)[95]
        assert (finding.decision, finding.tally.trials) == (decision, planned)
        assert finding.cutoff == cutoff
        assert finding.p_value is None
        assert "at most 5 %" in finding.confidence_statement
        assert verify(result.record).matches
        short = Tally(trials=planned - 5, passed=cutoff - 5)
        left = REGRESSION.conclude(finding.plan, Counts(tally=short))
        assert left.decision is Decision.PASS


def test_a_method_of_a_sequential_decision_is_refused_against_a_baseline() -> None:
    """It changed nothing: a comparison has no boundaries of these kinds."""
    for method in ("fixed", "wald", "calibrated"):
        with pytest.raises(InvalidArgument, match="be optimal except with at_least and a margin"):
            tw.Criterion("ok", tw.equals("ok"), no_worse_than="baseline", margin=0.1, method=method)


def draw(rate: float) -> tw.Contract:
    """A service that passes at a rate, by the trial's own seed."""

    def ask(_text: str, seed: int) -> str:
        return "ok" if Random(seed).random() < rate else "bad"

    return tw.Contract("x", ask, [tw.Criterion("ok", tw.equals("ok"), no_worse_than="baseline")])


@pytest.mark.slow
def test_a_comparison_without_trials_stops_as_soon_as_its_counts_decide(tmp_path: Path) -> None:
    """40 seeded runs for each rate: how often they FAIL and how long they take, as forecast."""
    quiet = {"inputs": ["a"], "store": None, "progress": False, "baselines": tmp_path}
    tw.measure(first_pass(95), trials=100, **quiet)  # type: ignore[arg-type]
    for rate, share in ((0.95, 0.05), (0.5, 1.0)):
        results = [tw.run(draw(rate), seed=seed, **quiet) for seed in range(40)]  # type: ignore[arg-type]
        design = results[0].verdict.findings[0].design
        assert isinstance(design, RegressionCutoff)
        expected = design.operating_characteristic(rate)
        trials = [one.verdict.findings[0].tally.trials for one in results]
        failed = sum(str(one.decision) == "FAIL" for one in results)

        assert binom.cdf(failed, 40, expected.fails) > 1e-4
        assert binom.sf(failed - 1, 40, expected.fails) > 1e-4
        assert sum(trials) / 40 == pytest.approx(expected.mean_trials, rel=0.2)
        assert max(trials) <= design.trials
        assert expected.fails <= share


def test_a_margin_far_too_small_for_its_baseline_still_finds_a_broken_service(
    tmp_path: Path,
) -> None:
    """A tenth of a point against 95 of 100: a PASS would say little, and is said to."""
    quiet = {"inputs": ["a"], "store": None, "progress": False, "baselines": tmp_path}
    tw.measure(first_pass(95), trials=100, **quiet)  # type: ignore[arg-type]
    broken = tw.run(first_pass(0, margin=0.001), **quiet)  # type: ignore[arg-type]

    assert str(broken.decision) == "FAIL"
    assert any("says little" in caveat for caveat in broken.verdict.findings[0].caveats)


def test_fewer_trials_than_planned_signal_only_what_the_boundaries_signal(tmp_path: Path) -> None:
    """They spend all of alpha: no further test may add to it. 40 of 216 trials, 5 failures."""
    quiet = {"inputs": ["a"], "store": None, "progress": False, "baselines": tmp_path}
    tw.measure(first_pass(95), trials=100, **quiet)  # type: ignore[arg-type]
    plan = tw.run(draw(0.95), seed=1, **quiet).record.plan.criteria[0]  # type: ignore[arg-type]
    design = plan.design
    assert isinstance(design, RegressionCutoff)
    fewest = design.reject[40]
    found = [
        REGRESSION.conclude(plan, Counts(tally=Tally(trials=40, passed=40 - failures)))
        for failures in (fewest - 1, fewest)
    ]

    assert design.trials > 40
    assert [one.decision for one in found] == [Decision.PASS, Decision.FAIL]


@pytest.mark.parametrize(
    ("rate", "short", "words"),
    [(0.95, "may be", "may still be up to"), (0.4, "delta <=", "at least")],
)
def test_every_report_shows_how_far_the_rate_is_from_its_baselines(
    tmp_path: Path, rate: float, short: str, words: str
) -> None:
    """The bound is on the side that the verdict is about, and one number in every format."""
    from trialwise.reports.formats import ReportSource, find_format

    quiet = {"inputs": ["a"], "store": None, "progress": False, "baselines": tmp_path}
    tw.measure(first_pass(95), trials=100, **quiet)  # type: ignore[arg-type]
    result = tw.run(draw(rate), seed=3, **quiet)  # type: ignore[arg-type]
    finding = result.verdict.findings[0]
    bounds = finding.difference
    assert bounds is not None
    assert finding.tally.rate is not None
    fails = rate < 0.9
    assert finding.decision is (Decision.FAIL if fails else Decision.PASS)
    assert (bounds.high < 0) is fails
    assert bounds.low <= finding.tally.rate - 0.95 <= bounds.high

    edge = bounds.high if fails else bounds.low
    points = math.floor(1000 * abs(edge)) / 10 if fails else math.ceil(1000 * abs(edge)) / 10
    shown = io.StringIO()
    result.show(stream=shown)
    assert f"{short} -{points:.1f}" in shown.getvalue()
    said = f"{words} {points:.1f} points worse (95 %)"
    assert fails or finding.statement.endswith(f"The rate {said}.")
    source = ReportSource(records=(result.record,))
    for name in ("markdown", "html"):
        text = re.sub("<[^>]*>", "", find_format(name).render(source)).replace("\u00a0", " ")
        assert said in text
    assert f"{edge:.6f}" in result.transparent()
    line = json.loads(find_format("json").render(source))["runs"][0]["results"][0]["facts"]
    assert (line["difference_low"], line["difference_high"]) == tuple(bounds)
    assert line["difference_confidence"] == 0.95
