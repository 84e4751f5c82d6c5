"""Threshold-first and confidence-first designs in a suite, and how long a baseline is valid."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom
from tests.cli.suite_folders import enter_folder, type_command

from trialwise.errors import DesignRefused
from trialwise.suite.suite_problems import SuiteError

SERVICE = """
import os

def planned(input, index):
    return "ok" if index < int(os.environ["K"]) else "bad"
"""
SUITE = 'name: x\nservice: {python: "svc:planned"}\ninputs: [a]\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("K", "951")
    return enter_folder(tmp_path, monkeypatch, SERVICE)


def compare(threshold: str, rule: str = "exact", more: str = "trials: 100") -> str:
    criterion = f"{{name: up, equals: ok, no_worse_than: baseline, pass_from: {threshold}}}"
    return f"{SUITE}rule: {rule}\n{more}\ncriteria: [{criterion}]"


def measure(suite: str, trials: int = 1000) -> None:
    assert type_command(suite, "measure", "-q", "--trials", str(trials)).exit_code == 0


def lower_tail(count: int, trials: int, rate: float) -> float:
    return math.fsum(
        math.comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(count + 1)
    )


@pytest.mark.requirement(
    "companion 6.3",
    "Threshold-first: a threshold that somebody chose decides, and states the alpha it implies.",
    "`pass_from: 93%` beside `no_worse_than` on a criterion",
)
@pytest.mark.parametrize("rule", ["exact", "wilson", "fisher"])
@pytest.mark.parametrize(("threshold", "cutoff"), [("91%", 91), ("92.5%", 93), ("90%", 90)])
def test_a_chosen_threshold_decides_and_states_its_alpha(
    rule: str, threshold: str, cutoff: int
) -> None:
    """Whatever the rule, the counts that PASS are those whose rate reaches the threshold."""
    suite = compare(threshold, rule)
    measure(suite)

    text = " ".join(type_command(suite, "check").output.split())
    assert f"PASS with at least {cutoff} of 100" in text
    done = " ".join(type_command(suite, "run", "-q", "--transparent").output.split())
    assert f"was chosen, not derived: for `rule: {rule}` it implies α = " in done


def test_the_implied_alpha_is_that_of_the_document_under_the_wilson_rule() -> None:
    """Wilson's threshold is t where z = (p̂ − t)/√(t(1−t)/n)."""
    suite = compare("91%", "wilson")
    measure(suite)
    type_command(suite, "run", "-q", "-o", "r.json")

    found = json.loads(Path("r.json").read_text(encoding="utf-8"))
    (planned,) = found["runs"][0]["verdict"]["plan"]["criteria"]
    z = (0.951 - 0.91) / math.sqrt(0.91 * 0.09 / 100)
    implied = 0.5 * math.erfc(z / math.sqrt(2))
    assert planned["alpha"] == pytest.approx(implied, rel=2e-6)
    assert planned["design"]["achieved_size"] == pytest.approx(lower_tail(90, 100, 0.951))


def test_the_rate_of_the_baseline_as_threshold_is_refused_with_its_alpha() -> None:
    """The example of §6.3: it FAILs in half of all runs although nothing has changed."""
    suite = compare("95.1%", "wilson")
    measure(suite)

    with pytest.raises(DesignRefused) as refused:
        type_command(suite, "check")
    assert "implies α = 0.500" in str(refused.value)
    assert f"FAILs in {100 * lower_tail(95, 100, 0.951):.2f} %" in str(refused.value)


@pytest.mark.parametrize(
    ("suite", "said"),
    [
        (
            f"{SUITE}criteria: [{{name: up, equals: ok, at_least: 90%, pass_from: 80%}}]",
            "go with no_worse_than; a required rate is at_least",
        ),
        (
            SUITE
            + "criteria: [{name: u, equals: a, no_worse_than: b, pass_from: 0.8, alpha: 0.1}]",
            "be left out where pass_from is given",
        ),
    ],
)
def test_a_threshold_goes_with_a_baseline_and_implies_alpha(suite: str, said: str) -> None:
    with pytest.raises(SuiteError, match=said):
        type_command(suite, "check")


def test_a_chosen_threshold_needs_a_number_of_trials() -> None:
    suite = compare("91%", more="")
    measure(suite)
    with pytest.raises(DesignRefused, match="needs a fixed number of trials"):
        type_command(suite, "check")


@pytest.mark.requirement(
    "companion 6.2",
    "Confidence-first compliance: margin, alpha and power give the number of trials.",
    "`margin`, `alpha`, `power` and `method: fixed` on a criterion with `at_least`",
)
@pytest.mark.parametrize(("required", "margin"), [(0.95, 0.05), (0.99, 0.02), (0.90, 0.10)])
def test_margin_alpha_and_power_give_the_number_of_trials(required: float, margin: float) -> None:
    """The smallest number with both errors within their limits, found by trying every one."""
    lower = required - margin

    def decides(trials: int) -> bool:
        counts = np.arange(trials + 2)
        cutoff = counts[binom.sf(counts - 1, trials, lower) <= 0.2][0]
        return bool(binom.cdf(cutoff - 1, trials, required) <= 0.05)

    smallest = next(n for n in range(1, 400) if decides(n))
    text = type_command(
        f"{SUITE}criteria: [{{name: up, equals: ok, at_least: {required}, margin: {margin}, "
        "alpha: 5%, power: 80%, method: fixed}]",
        "check",
    ).output
    assert f"at most {smallest} trials" in text


@pytest.mark.requirement(
    "companion 6.2",
    "Confidence-first regression: the number of trials is that of the rule that decides.",
    "`margin` and `power` with `no_worse_than`, for `rule: wilson` and `rule: fisher`",
)
@pytest.mark.parametrize("rule", ["wilson", "fisher"])
def test_a_regression_is_sized_for_the_rule_that_decides(rule: str) -> None:
    """P(FAIL) after the loss, averaged over baselines that could have been measured."""
    from trialwise.stats import regression_cutoff

    suite = f"{SUITE}rule: {rule}\n"
    suite += "criteria: [{name: up, equals: ok, no_worse_than: baseline, margin: 10%}]"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("K", "190")
        measure(suite, 200)
    text = type_command(suite, "check").output
    trials = int(text.partition("at most ")[2].split()[0])

    def power(n: int) -> float:
        chances = []
        for k in range(201):
            chance = math.comb(200, k) * 0.95**k * 0.05 ** (200 - k)
            cutoff = regression_cutoff(k, 200, n, rule=rule).cutoff if chance > 1e-12 else 0  # type: ignore[arg-type]
            chances.append(chance * lower_tail((cutoff or 0) - 1, n, 0.85))
        return math.fsum(chances)

    assert power(trials) >= 0.8
    assert power(trials - 1) < 0.8


@pytest.mark.requirement(
    "companion 1.5.5",
    "A baseline may carry an expiration window, declared by the developer.",
    "`validity: {days: 90, grace_days: 14}` in a suite; `trialwise measure --valid-days`",
)
def test_a_suite_says_how_long_its_baselines_are_valid() -> None:
    """`measure` writes it; a baseline that was measured without it is dated by the suite."""
    plain = f"{SUITE}criteria: [{{name: up, equals: ok, no_worse_than: baseline}}]"
    dated = f"{plain}\nvalidity: {{days: 90, grace_days: 14}}"
    measure(plain)
    (without,) = Path("baselines/x").iterdir()
    assert json.loads(without.read_text(encoding="utf-8"))["valid_days"] is None
    done = " ".join(type_command(dated, "run", "-q", "--transparent").output.split())
    assert "Expiration: none declared" not in done

    without.unlink()
    measure(dated)
    (written,) = Path("baselines/x").iterdir()
    found = json.loads(written.read_text(encoding="utf-8"))
    assert (found["valid_days"], found["grace_days"]) == (90, 14)
