"""The false alarms of enforced latencies are part of what a contract's FAIL is worth."""

from __future__ import annotations

import io
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import trialwise as tw


def time_trial(_: str, index: int) -> tw.Reply:
    return tw.Reply(value="ok", latency_s=(index + 1) / 1000)


def find_breach(rank: int, baseline: int, place: int, trials: int) -> float:
    """P(the test's latency at `place` exceeds the baseline's at `rank`) if nothing changed.

    The count of test latencies below the baseline's is negative hypergeometric.
    """
    ways = sum(
        math.comb(j + rank - 1, j) * math.comb(trials - j + baseline - rank, trials - j)
        for j in range(place)
    )
    return float(Fraction(ways, math.comb(trials + baseline, trials)))


def find_wrong_fail(trials: int, rate: float) -> float:
    """P(at most the largest count whose lower tail is at most 5 %), by a plain sum."""
    total = 0.0
    for k in range(trials + 1):
        more = math.comb(trials, k) * rate**k * (1 - rate) ** (trials - k)
        if total + more > 0.05:
            break
        total += more
    return total


def test_enforced_latencies_against_a_baseline_enter_the_envelope(tmp_path: Path) -> None:
    contract = tw.Contract(
        "x",
        time_trial,
        [tw.Criterion("ok", tw.contains("ok"), at_least=0.9)],
        latency=tw.Latency.no_worse_than_baseline("p50", "p95", enforced=True),
    )
    kept: dict[str, Any] = {"inputs": ["a", "b"], "store": None, "baselines": tmp_path}
    tw.measure(contract, trials=200, **kept)
    result = tw.run(contract, trials=400, **kept)
    shown = io.StringIO()
    result.show(transparent=True, stream=shown)
    text = " ".join(shown.getvalue().split())

    alarms = []
    for finding, place in zip(result.verdict.latency, (200, 380), strict=True):
        assert finding.threshold is not None
        rank = round(finding.threshold * 1000)
        alarms.append(find_breach(rank, 200, place, 400))
        assert alarms[-1] <= 0.05 < find_breach(rank - 1, 200, place, 400)
    # How many trials succeed nobody knows beforehand: at any number each keeps to its level.
    fails = find_wrong_fail(400, 0.9)
    assert f"Wrong FAIL: at most {0.05 + 0.05 + fails:.6f}" in text
    page = json.loads(result.write(tmp_path / "report.json").read_text(encoding="utf-8"))
    (run,) = page["runs"]
    found = [one["facts"].get("false_alarm") for one in run["results"]]
    assert [pytest.approx(alarm) for alarm in alarms] == [one for one in found if one is not None]


def test_a_limit_that_is_compared_as_it_is_has_no_level(tmp_path: Path) -> None:
    """The raw percentile against an explicit limit under the rule wilson asks for no evidence."""
    contract = tw.Contract(
        "x",
        time_trial,
        [tw.Criterion("ok", tw.contains("ok"), at_least=0.9)],
        latency=tw.Latency.within(p95=1.0),
    )
    result = tw.run(contract, inputs=["a"], trials=100, rule="wilson", store=None)
    page = json.loads(result.write(tmp_path / "report.json").read_text(encoding="utf-8"))
    (run,) = page["runs"]
    (latency,) = (one for one in run["results"] if one["kind"] != "criterion")
    assert latency["facts"].get("alpha") is None
