"""A refusal says where in the suite file it belongs, also where it is about no criterion."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.cli.suite_folders import enter_folder, type_command

from trialwise.errors import DesignRefused

SERVICE = "def answer(question, seed):\n    return 'yes'\n"
BEGIN = 'service: {python: "svc:answer"}\ninputs: [a]\n'
CRITERION = 'criteria: [{name: first, contains: "yes", at_least: 80%}]\n'
COMPARED = 'criteria: [{name: first, contains: "yes", no_worse_than: baseline, trials: 100}]\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return enter_folder(tmp_path, monkeypatch, SERVICE)


def refuse(suite: str, *arguments: str) -> str:
    """Return the reasons for which both `check` and `run` refuse a suite."""
    with pytest.raises(DesignRefused) as checked:
        type_command(suite, "check", *arguments)
    with pytest.raises(DesignRefused) as run:
        type_command(suite, "run", "-q", *arguments)

    assert str(checked.value) == str(run.value)
    return "\n".join(checked.value.reasons)


def test_a_latency_that_no_baseline_holds() -> None:
    """The place is that of `latency`."""
    found = refuse(BEGIN + CRITERION + "trials: 100\nlatency: {baseline: [p50]}\n")

    assert "no baseline of the contract" in found
    assert found.startswith("trialwise.yaml:1: ")


def test_a_latency_with_too_few_trials() -> None:
    """A percentile that so few trials cannot show is refused where it is written."""
    found = refuse(BEGIN + CRITERION + "trials: 20\nlatency: {p99: 1s, enforced: true}\n")

    assert "trialwise.yaml:5: latency p99: " in found


def test_a_baseline_that_was_measured_of_something_else() -> None:
    """The place is that of the factors, which changed."""
    suite = BEGIN + COMPARED + "factors: {region: eu}\n"
    type_command(suite, "measure", "--trials", "100", "-q")

    found = refuse(suite.replace("eu", "us"))

    assert found.startswith("trialwise.yaml:4: Factor region: eu when")


def test_an_override_that_is_none() -> None:
    """The place is that of `overrides`."""
    suite = BEGIN + COMPARED
    type_command(suite, "measure", "--trials", "100", "-q")

    found = refuse(suite + "overrides: [NOTHING]\n")

    assert found.startswith("trialwise.yaml:4: override must be the code of a major caveat")


def test_each_of_several_contracts_has_its_place() -> None:
    """Both are refused at once, each at its own line."""
    one = 'criteria: [{name: first, contains: "yes", no_worse_than: baseline, trials: 100}]'
    found = refuse(BEGIN + f"contracts:\n  - name: a\n    {one}\n  - name: b\n    {one}\n")

    assert "trialwise.yaml:4: a: no baseline of the contract 'a'" in found
    assert "trialwise.yaml:6: b: no baseline of the contract 'b'" in found


@pytest.mark.parametrize(
    ("executor", "words"),
    [
        ("processes", "the executor processes needs a package that is not installed"),
        ("nowhere", "there is no executor 'nowhere'"),
    ],
)
def test_an_executor_that_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch, executor: str, words: str
) -> None:
    """`check` knows it without starting a worker, as `run` does."""
    monkeypatch.setitem(sys.modules, "cloudpickle", None)

    found = refuse(BEGIN + CRITERION + f"executor: {executor}\n")

    assert found.startswith(f"trialwise.yaml:4: {words}")


@pytest.mark.parametrize("correction", ["bonferroni", "holm", "bh", "by", "e-bh"])
def test_power_can_be_corrected(correction: str) -> None:
    """`power: 80%` says what `beta: 20%` says, with a correction too."""
    two = 'criteria: [{name: a, contains: "yes", %s}, {name: b, contains: "no", at_least: 80%%}]\n'
    begin = BEGIN + f"correction: {correction}\nseed: 1\n"
    plans = [
        type_command(begin + two % f"at_least: 85%, {limit}", "check", "--json").output
        for limit in ("power: 80%", "beta: 20%")
    ]

    assert plans[0] == plans[1]
