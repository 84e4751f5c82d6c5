"""What a latency verdict rests on: enough successes, a baseline with a threshold, exact chances."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import betabinom, binom

import trialwise as tw
from trialwise.errors import DesignRefused
from trialwise.model.contract import Latency, LatencyConstraint
from trialwise.stats.result_types import Rule


def timed(_: str, index: int) -> tw.Reply:
    """Trial i takes i milliseconds."""
    return tw.Reply(value="ok", latency_s=(index + 1) / 1000)


def contract(latency: Latency, service: Any = timed) -> tw.Contract:
    criterion = tw.Criterion("ok", tw.equals("ok"), at_least=0.05)
    return tw.Contract("a", service, [criterion], latency=latency)


def limits(*percentiles: str, limit_s: float | None = None, enforced: bool = True) -> Latency:
    asked = tuple(LatencyConstraint(percentile=one, limit_s=limit_s) for one in percentiles)
    return Latency(constraints=asked, enforced=enforced)


def measured(folder: Path, one: tw.Contract, trials: int) -> dict[str, Any]:
    places: dict[str, Any] = {"store": folder, "baselines": folder, "progress": False}
    tw.measure(one, inputs=["q"], trials=trials, **places)
    return places


def text(result: tw.Result) -> str:
    stream = io.StringIO()
    result.show(transparent=True, stream=stream)
    return " ".join(stream.getvalue().split())


@pytest.mark.parametrize("rule", ["wilson", "exact", "fisher"])
def test_a_baseline_without_a_threshold_is_refused_before_the_first_trial(
    tmp_path: Path, rule: Rule
) -> None:
    """0.99^200 = 13 %: the largest of 200 latencies bounds the p99 with 87 %, and not with 95."""
    called = []

    def service(_: str, index: int) -> tw.Reply:
        called.append(index)
        return timed(_, index)

    one = contract(limits("p99"), service)
    places = measured(tmp_path, one, 200)
    called.clear()
    with pytest.raises(DesignRefused, match="latency p99: the baseline has 200 latencies") as found:
        tw.run(one, inputs=["q"], trials=200, rule=rule, **places)
    assert called == []
    if rule == "wilson":
        # The least n with 0.99^n ≤ 5 %.
        assert 0.99**299 <= 0.05 < 0.99**298
        assert "at least 299 successful trials" in str(found.value)


def test_an_advisory_percentile_without_a_threshold_is_run(tmp_path: Path) -> None:
    one = contract(limits("p99", enforced=False))
    places = measured(tmp_path, one, 200)
    assert tw.run(one, inputs=["q"], trials=200, **places).passed


@pytest.mark.parametrize("rule", ["wilson", "exact"])
@pytest.mark.parametrize(("intent", "allowed"), [("verification", False), ("smoke", True)])
def test_an_enforced_percentile_does_not_pass_on_too_few_successes(
    rule: Rule, intent: str, allowed: bool
) -> None:
    """98 of 598 succeed, and showing a p99 takes 299."""

    def service(_: str, index: int) -> tw.Reply:
        return tw.Reply(value="ok" if index < 98 else "bad", latency_s=0.001)

    result = (
        tw.run(
            contract(limits("p99", limit_s=1.0), service),
            inputs=["q"],
            trials=598,
            rule=rule,
            intent=intent,
            curtail=False,
            store=None,
            progress=False,
        )
        if intent == "smoke"
        else _admitted(service, rule)
    )
    (finding,) = result.verdict.latency
    if rule == "wilson" and allowed:
        assert str(finding.decision) == "PASS"
    else:
        assert str(finding.decision) == "INCONCLUSIVE"
        assert not result.passed


def _admitted(service: Any, rule: Rule) -> tw.Result:
    """Required to succeed half of the time, so that the plan expects 299 successes."""
    criterion = tw.Criterion("ok", tw.equals("ok"), at_least=0.5)
    one = tw.Contract("a", service, [criterion], latency=limits("p99", limit_s=1.0))
    return tw.run(
        one, inputs=["q"], trials=598, rule=rule, curtail=False, store=None, progress=False
    )


@pytest.mark.parametrize(("percentile", "level"), [("p50", 0.5), ("p95", 0.95)])
def test_the_false_alarm_of_a_bound_is_printed_exactly(
    tmp_path: Path, percentile: str, level: float
) -> None:
    """Baseline 200, test 200: BetaBinomial(200; k, 201 − k) below the test's rank."""
    one = contract(limits(percentile))
    places = measured(tmp_path, one, 200)
    result = tw.run(one, inputs=["q"], trials=200, rule="wilson", curtail=False, **places)
    rank = next(k for k in range(1, 201) if binom.sf(k - 1, 200, level) <= 0.05)
    alarm = betabinom.cdf(round(level * 200) - 1, 200, rank, 201 - rank)
    shown = text(result)
    assert f"false alarm: {alarm:.6f}"[:19] in shown.replace("false alarm ", "false alarm: ")
    assert "more often than α" not in shown


def test_a_comparison_with_a_limit_has_no_alpha() -> None:
    one = contract(limits("p50", limit_s=1.0))
    result = tw.run(
        one, inputs=["q"], trials=200, rule="wilson", curtail=False, store=None, progress=False
    )
    shown = text(result)
    assert "latency/raw-percentile" in shown
    assert "latency/raw-percentile, α" not in shown


def test_check_says_the_threshold_and_the_chances_beforehand(tmp_path: Path) -> None:
    from trialwise.pages.run_rules import render_rules

    one = contract(limits("p50"))
    places = measured(tmp_path, one, 200)
    plan = tw.check(one, inputs=["q"], trials=200, rule="wilson", baselines=tmp_path)
    shown = " ".join(render_rules(plan).split())
    # P(Bin(200, ½) ≥ k) ≤ 5 % from k = 113 on; trial k took k ms.
    assert binom.sf(112, 200, 0.5) <= 0.05 < binom.sf(111, 200, 0.5)
    assert "at most 113 ms PASSes" in shown
    alarm = betabinom.cdf(99, 200, 113, 88)
    assert f"it FAILs in {100 * alarm:.1f} % of runs" in shown
    at_limit = contract(limits("p95", limit_s=1.0, enforced=False))
    plan = tw.check(at_limit, inputs=["q"], trials=100, rule="wilson")
    shown = " ".join(render_rules(plan).split())
    assert f"exactly at the limit PASSes in {100 * binom.sf(94, 100, 0.95):.1f} %" in shown
    assert places


@pytest.mark.parametrize(
    ("baseline", "test", "percentile", "level"),
    [
        (400, 100, "p95", 0.95),
        (935, 100, "p95", 0.95),
        (100, 100, "p50", 0.5),
        (935, 200, "p95", 0.95),
    ],
)
def test_the_default_rule_keeps_the_false_alarm_at_alpha(
    baseline: int, test: int, percentile: str, level: float
) -> None:
    from trialwise.model.plan import LatencyPlan
    from trialwise.procedures.latency import decide_latency

    plan = LatencyPlan(
        percentile=percentile,
        level=level,
        baseline_latencies_s=tuple(i / 1000 for i in range(1, baseline + 1)),
    )
    latencies = [0.001 * i for i in range(test)]
    theirs = decide_latency(plan, latencies, rule="wilson").false_alarm
    ours = decide_latency(plan, latencies, rule="exact").false_alarm
    rank = next(k for k in range(1, baseline + 1) if binom.sf(k - 1, baseline, level) <= 0.05)
    below = -(-round(level * 100) * test // 100) - 1
    wilson = betabinom.cdf(below, test, rank, baseline + 1 - rank)
    assert theirs is not None
    assert ours is not None
    assert theirs == pytest.approx(wilson, rel=1e-9)
    assert ours <= 0.05
    assert theirs > 0.09
