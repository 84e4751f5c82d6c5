"""A contract of cerberus decides here as it does there, state by state.

The reference is cerberus's own arithmetic, written down again from its description: a running sum
of log likelihood ratios, accept tested first, both lines inclusive.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trialwise.contrib.importers import import_cerberus
from trialwise.model.plan import CriterionPlan
from trialwise.model.verdict import Decision
from trialwise.procedures.criterion_rows import Stream
from trialwise.procedures.run_plan import plan_run
from trialwise.stats.sequential.design import SequentialDesign
from trialwise.suite import Suite

Write = Callable[[str, str], Path]
Load = Callable[..., Suite]

FILE = """\
adapter: {{command: "agent --scenario {{{{scenario}}}}"}}
studies:
  - name: study
    scenario: task.yaml
    contracts:
      - name: ends-well
        type: code
        assert: output.meta.exitCode === 0
        threshold: {threshold}
        confidence: {confidence}
        trials: {trials}
"""
#: On a line within this much, whose side a double falls on is luck.
TIE = 1e-9


def planned(
    write: Write, load: Load, threshold: float, confidence: float = 0.95, trials: int = 50
) -> CriterionPlan:
    """The plan of the one criterion of an imported study."""
    write("task.yaml", "input: do it\n")
    text = FILE.format(threshold=threshold, confidence=confidence, trials=trials)
    suite = load(import_cerberus(write("cerberus.yaml", text)))
    (contract,) = suite.contracts
    whole = plan_run(
        contract.contract,
        contract.options,
        seed=1,
        structure={"ends-well": "s"},
        fingerprints={"inputs": "f"},
    )
    return whole.criteria[0]


def designed(
    write: Write, load: Load, threshold: float, confidence: float = 0.95, trials: int = 50
) -> SequentialDesign:
    """The same, where it is a sequential design."""
    design = planned(write, load, threshold, confidence, trials).design
    assert isinstance(design, SequentialDesign)
    return design


class Theirs:
    """Wald's test as cerberus computes it."""

    def __init__(self, threshold: float, confidence: float) -> None:
        good, bad = threshold, max(0.01, threshold - 0.10)
        alpha, beta = 1 - confidence, 0.20
        self.upper, self.lower = math.log((1 - alpha) / beta), math.log(alpha / (1 - beta))
        self.success, self.failure = math.log(good / bad), math.log((1 - good) / (1 - bad))

    def ratio(self, trials: int, failures: int) -> float:
        return (trials - failures) * self.success + failures * self.failure

    def decide(self, trials: int, failures: int) -> Decision | None:
        ratio = self.ratio(trials, failures)
        if ratio >= self.upper - TIE:
            return Decision.PASS
        return Decision.FAIL if ratio <= self.lower + TIE else None


def reached(theirs: Theirs, cap: int) -> Iterator[tuple[int, int]]:
    """Every count that a run may come to."""
    level = {0}
    for trials in range(1, cap + 1):
        level = {failures + more for failures in level for more in (0, 1)}
        yield from ((trials, failures) for failures in sorted(level))
        level = {failures for failures in level if theirs.decide(trials, failures) is None}


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.9, 0.95, 0.99, 0.999])
@pytest.mark.parametrize("threshold", [0.11, 0.2, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99])
def test_every_state_is_decided_alike(
    write: Write, load: Load, threshold: float, confidence: float
) -> None:
    """Whatever a run comes to, it ends, goes on and is judged as in cerberus."""
    cap = 60
    design, theirs = (
        designed(write, load, threshold, confidence, cap),
        Theirs(threshold, confidence),
    )

    assert cap == design.cap
    for trials, failures in reached(theirs, cap):
        expected = theirs.decide(trials, failures)
        if expected is None and trials == cap:
            expected = Decision.INCONCLUSIVE
        assert expected is design.decide(trials, failures)


@pytest.mark.parametrize(
    ("outcomes", "trials", "decision"),
    [
        ("P" * 14, 14, Decision.PASS),
        ("P" * 13, 13, None),
        ("FFFF", 4, Decision.FAIL),
        ("PFFPFFF", 7, Decision.FAIL),
        ("F" + "P" * 20, 21, Decision.PASS),
        ("F" + "P" * 19, 20, None),
        ("PF" + "P" * 13, 15, None),
    ],
)
def test_the_worked_sequences_end_where_they_end_there(
    write: Write, load: Load, outcomes: str, trials: int, decision: Decision | None
) -> None:
    """The vectors for a threshold of 0.90, the exact tie of four failures among them."""
    stream = Stream(planned(write, load, 0.90).limits)
    for place, outcome in enumerate(outcomes):
        stream.add(place, passed=outcome == "P")

    assert (trials, decision) == (stream.trials, stream.decision)


SHORTEST = {
    0.50: (7, 16, 9),
    0.70: (11, 10, 13),
    0.80: (12, 7, 16),
    0.85: (13, 6, 18),
    0.90: (14, 4, 21),
    0.95: (15, 3, 25),
    0.99: (15, 2, 39),
}


@pytest.mark.parametrize("threshold", SHORTEST)
def test_the_shortest_decisions_are_those_of_cerberus(
    write: Write, load: Load, threshold: float
) -> None:
    """Passes in a row to PASS, failures in a row to FAIL, and the PASS after one early failure."""
    design = designed(write, load, threshold)
    passes = next(n for n, most in enumerate(design.accept) if most >= 0)
    failures = next(n for n, fewest in enumerate(design.reject) if fewest <= n)
    after_one = next(n for n, most in enumerate(design.accept) if most >= 1)

    assert SHORTEST[threshold] == (passes, failures, after_one)


#: By true rate: P(PASS), P(FAIL), P(INCONCLUSIVE) and the mean number of trials.
CHARACTERISTIC = {
    0.96: (0.9925, 0.0001, 0.0074, 19.1),
    0.90: (0.747, 0.024, 0.229, 31.0),
    0.85: (0.386, 0.181, 0.434, 37.4),
    0.80: (0.149, 0.496, 0.356, 35.9),
    0.60: (0.001, 0.998, 0.001, 15.0),
    0.00: (0.0, 1.0, 0.0, 4.0),
}


@pytest.mark.parametrize("rate", CHARACTERISTIC)
def test_the_operating_characteristic_is_the_one_computed_for_cerberus(
    write: Write, load: Load, rate: float
) -> None:
    """At a threshold of 0.90 within 50 trials, to the digits that were published."""
    curve = designed(write, load, 0.90).operating_characteristic(rate)
    *shares, mean = CHARACTERISTIC[rate]

    assert shares == pytest.approx([curve.passes, curve.fails, curve.inconclusive], abs=6e-4)
    assert mean == pytest.approx(curve.mean_trials, abs=0.06)


@pytest.mark.parametrize(
    ("confidence", "passes"), [(0.5, 9), (0.8, 14), (0.9, 15), (0.95, 15), (0.99, 16)]
)
def test_a_threshold_of_one_ends_with_the_first_failure(
    write: Write, load: Load, confidence: float, passes: int
) -> None:
    """One failure is a FAIL; the PASS comes with the first n for which 0.9ⁿ ≤ beta/(1−alpha)."""
    plan = planned(write, load, 1.0, confidence)
    ratio = (1 - (1 - confidence)) / 0.20

    assert passes == math.ceil(math.log(ratio) / math.log(1 / 0.9) - TIE)
    clean = Stream(plan.limits)
    for place in range(passes):
        assert clean.decision is None
        clean.add(place, passed=True)
    assert Decision.PASS is clean.decision
    for before in range(passes):
        stream = Stream(plan.limits)
        for place in range(before):
            stream.add(place, passed=True)
        stream.add(before, passed=False)
        assert Decision.FAIL is stream.decision


def test_too_few_trials_to_pass_are_run_all_the_same(write: Write, load: Load) -> None:
    """Ten trials never PASS at 0.90, in cerberus as here, and may FAIL."""
    write("task.yaml", "input: do it\n")
    text = FILE.format(threshold=0.9, confidence=0.95, trials=10)
    imported = import_cerberus(write("cerberus.yaml", text))
    design = designed(write, load, 0.9, trials=10)

    assert any("cannot PASS within 10 trials" in note for note in imported.notes)
    assert -1 == max(design.accept)
    assert Decision.FAIL is design.decide(4, 4)
    assert Decision.INCONCLUSIVE is design.decide(10, 0)


def agent(folder: Path) -> str:
    """A program that fails at given trials, and shows what it was handed."""
    path = folder / "agent.py"
    path.write_text(
        "import json, os, sys\n"
        "scenario = json.load(open(sys.argv[2]))\n"
        "index = int(os.environ['TRIALWISE_INDEX'])\n"
        "print(json.dumps({'said': scenario['input'], 'meta': scenario.get('metadata')}))\n"
        "sys.exit('PFFPFFF'[index % 7] == 'F')\n",
        encoding="utf-8",
    )
    return path.name


@pytest.mark.slow
def test_an_imported_study_runs_to_the_same_verdict(
    write: Write, load: Load, tmp_path: Path
) -> None:
    """A real program, started once a trial: rejected at the seventh trial, as computed by hand."""
    import sys

    from trialwise.runtime.running import run

    write("task.yaml", "input: say it\nmetadata: {tone: dry}\n")
    command = f"{sys.executable} {agent(tmp_path)} --scenario {{{{scenario}}}}"
    write(
        "cerberus.yaml",
        f"""\
adapter: {{command: "{command}"}}
studies:
  - name: study
    scenario: task.yaml
    max_error_rate: 1
    contracts:
      - {{name: ends-well, type: code, assert: output.meta.exitCode === 0}}
      - name: says-it
        type: code
        assert: output.parsed.said === scenario.input && output.parsed.meta.tone === "dry"
""",
    )
    (contract,) = load(import_cerberus(tmp_path / "cerberus.yaml")).contracts
    verdict = run(contract.contract, options=contract.options, store=None, progress=False).verdict
    findings = {one.criterion: one for one in verdict.findings}

    assert Decision.FAIL is findings["ends-well"].decision
    assert (7, 2) == (findings["ends-well"].tally.trials, findings["ends-well"].tally.passed)
    assert Decision.PASS is findings["says-it"].decision
    assert 14 == findings["says-it"].tally.trials


def test_a_study_whose_command_fails_too_often_is_a_fail_as_in_cerberus(
    write: Write, load: Load, tmp_path: Path
) -> None:
    """Exit codes other than 0 in 5 of 7 trials, at most 20 % allowed; 0.1.0 passed it."""
    import sys

    from trialwise.runtime.running import run

    write("task.yaml", "input: say it\n")
    command = f"{sys.executable} {agent(tmp_path)} --scenario {{{{scenario}}}}"
    write(
        "cerberus.yaml",
        f"""\
adapter: {{command: "{command}"}}
studies:
  - name: study
    scenario: task.yaml
    max_error_rate: 0.2
    contracts:
      - {{name: json, type: code, assert: output.meta.jsonParsed === true, trials: 50}}
""",
    )
    (contract,) = load(import_cerberus(tmp_path / "cerberus.yaml")).contracts

    verdict = run(contract.contract, options=contract.options, store=None, progress=False).verdict

    assert Decision.FAIL is verdict.decision
    assert "exit code other than 0" in verdict.aborted
