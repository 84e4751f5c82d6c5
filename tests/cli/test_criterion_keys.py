"""Keys of one criterion: its intent, its analysis, its clause, and what stands beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.suite_folders import enter_folder
from tests.cli.suite_folders import type_command as do

import trialwise as tw
from trialwise.model.fingerprint import plan_hash

SERVICE = """
def ask(input, index):
    return '{"a": 1}' if index % 10 else "no JSON"

def fine(input):
    return "fine"

def moderate(candidate, index):
    return "allow" if index % 50 == 0 else "block"

def busy(input, index):
    if index % 5 == 0:
        raise ConnectionRefusedError("busy")
    return "fine"
"""
HEAD = """
name: advice
service: {python: "svc:SERVICE"}
inputs: [a, b, c]
criteria:
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return enter_folder(tmp_path, monkeypatch, SERVICE)


def suite(service: str, *criteria: str, more: str = "") -> str:
    """A suite with criteria in flow style, a line each."""
    lines = "".join(f"  - {{{one}}}\n" for one in criteria)
    return HEAD.replace("SERVICE", service) + lines + more


def report(text: str, *options: str) -> dict[str, dict[str, object]]:
    """The facts of every criterion by its name."""
    do(text, "run", "-o", "r.json", *options)
    (run,) = json.loads(Path("r.json").read_text())["runs"]
    return {one["name"]: one["facts"] | {"said": one["statement"]} for one in run["results"]}


FINE = "name: fine, contains: fine, at_least: 80%"
SMALL = "name: rare, contains: fine, at_least: 99%, trials: 5"


@pytest.mark.requirement(
    "companion 1.4.1",
    "A criterion that the sampling is too small for is declared SMOKE up front.",
    "`intent: smoke` on a criterion",
)
def test_one_criterion_may_be_a_quick_check() -> None:
    """Five trials cannot show 99 %: refused as evidence, and marked as a smoke check."""
    with pytest.raises(tw.DesignRefused, match="rare"):
        do(suite("fine", FINE, SMALL), "run")
    done = do(suite("fine", FINE, f"{SMALL}, intent: smoke"), "run")

    assert 0 == done.exit_code
    assert "rare  SMOKE PASS" in done.output
    assert "both criteria passed, 1 by a smoke check, which is not evidence" in done.output
    assert "fine  PASS " in done.output


def test_a_smoke_run_may_hold_one_criterion_to_evidence() -> None:
    """The run is a quick check, and this criterion still refuses five trials."""
    text = suite("fine", FINE, f"{SMALL}, intent: verification", more="intent: smoke\n")

    with pytest.raises(tw.DesignRefused, match="rare"):
        do(text, "run")


@pytest.mark.requirement(
    "companion 1.4.5a",
    "Availability is a criterion of its own, in which a trial without a response fails.",
    "`analysis: intent-to-treat` on a criterion",
)
def test_a_non_response_fails_an_availability_criterion() -> None:
    """Every fifth call is refused: the quality criterion never counts these, this one does."""
    up = 'name: available, matches: ".", at_least: 95%, trials: 100, analysis: intent-to-treat'
    found = report(
        suite(
            "busy",
            "name: good, contains: fine, at_least: 80%",
            up,
            more="retries: 0\nkeep_going: true\n",
        ),
        "--seed",
        "1",
    )

    assert ("PASS", 1.0) == (found["good"]["decision"], found["good"]["rate"])
    assert "FAIL" == found["available"]["decision"]
    facts: dict[str, Any] = dict(found["available"])
    passed = facts["passed"] + (facts["later_passed"] or 0)
    trials = facts["trials"] + (facts["later_trials"] or 0)
    assert passed / trials == pytest.approx(0.8, abs=0.02)


@pytest.mark.requirement(
    "companion 1.4.5",
    "A passing observational verdict has the document's note on the rule of three.",
    "`never_fails: true`, in every report",
)
def test_the_note_on_the_rule_of_three_is_the_companions() -> None:
    """Word by word, with the criterion and the number of trials in place."""
    found = report(suite("fine", "name: no-pii, not_contains: pii, never_fails: true, trials: 60"))

    assert found["no-pii"]["said"] == (
        "No failure of no-pii was observed in 60 trials. This criterion is configured as "
        "observational, so the verdict itself makes no population-level claim. For context only, "
        "under an i.i.d. Bernoulli model, zero failures in 60 trials corresponds approximately to "
        "a 95 % upper bound of 3/60 (5 %) on the failure probability."
    )


@pytest.mark.requirement(
    "companion 1.4.8",
    "A malformed response is a FAIL of the reason transform, and counts as not evaluable.",
    "`parses: json`, `json_path`, `json_schema`",
)
@pytest.mark.parametrize(
    "check", ["parses: json", 'json_path: {path: "$.a", equals: 1}', "json_schema: {type: object}"]
)
def test_malformed_json_is_a_transform_failure(check: str) -> None:
    """10 of 100 replies are no JSON, so that 90 could be evaluated."""
    done = do(
        suite("ask", f"name: form, {check}, at_least: 50%, trials: 100", more="curtail: false\n"),
        "run",
        "-o",
        "r.txt",
    )
    text = Path("r.txt").read_text()

    assert 0 == done.exit_code
    assert "FAILs by reason:           transform 10" in text
    assert "Observation rate (r_obs):  0.900" in text


WATCH = "name: no-harm, not_contains: harm, never_fails: true"


@pytest.mark.requirement(
    "companion clause forms",
    "A categorical clause is discharged by an architectural commitment, which the report names.",
    "`discharged_by:` on a criterion",
)
def test_what_keeps_a_prohibition_is_named() -> None:
    """In `check` and beside the verdict, which says that it does not show the prohibition."""
    text = suite("fine", FINE, f'{WATCH}, discharged_by: "harm filter v2"')

    assert "which is kept by: harm filter v2" in " ".join(do(text, "check").output.split())
    said = str(report(text)["no-harm"]["said"])
    assert "The prohibition is kept by: harm filter v2. This criterion does not show it" in said
    probes = text.replace("inputs: [a, b, c]", "samplings: {p: {role: red-team, inputs: [a]}}")
    assert "It is evidence for what keeps the prohibition" in str(report(probes)["no-harm"]["said"])


@pytest.mark.requirement(
    "companion 1.4.5",
    "A categorical clause without an architectural commitment is flagged as a gap.",
    "`categorical: true` without `discharged_by:`, in `check` and in every report",
)
def test_a_prohibition_that_nothing_keeps_is_a_gap() -> None:
    """The criterion passes, and the gap needs attention."""
    text = suite("fine", FINE, f"{WATCH}, categorical: true")
    names = ("r.md", "r.txt", "r.html", "r.junit.xml", "r.tap", "r.json")
    done = do(text, "run", *(word for name in names for word in ("-o", name)))

    assert 0 == done.exit_code
    assert "GAP: Nothing is named that keeps" in " ".join(do(text, "check").output.split())
    assert "no-harm: Nothing is named that keeps this prohibition" in done.output
    for name in names:
        shown = " ".join(Path(name).read_text().split())
        assert "Nothing is named that keeps this prohibition" in shown, name


def test_a_rate_is_no_prohibition() -> None:
    """However high: letting the rate go to 1 does not make a clause categorical."""
    with pytest.raises(tw.InvalidArgument, match="no rate says never"):
        tw.Criterion("x", str.strip, at_least=0.999, discharged_by="filter")
    assert tw.Criterion("x", str.strip, never_fails=True, discharged_by="filter").categorical


def test_wording_does_not_change_which_plan_it_is() -> None:
    """A run may be resumed after somebody named what keeps a prohibition."""

    def plan(**more: object) -> str:
        criterion = tw.Criterion("x", tw.contains("a"), never_fails=True, **more)  # type: ignore[arg-type]
        return plan_hash(tw.check(tw.Contract("c", str, [criterion]), inputs=["a"], seed=1))

    assert plan() == plan(discharged_by="filter")
    assert plan() != plan(intent="smoke")


GUARDS = """
name: filters
service: {python: "svc:moderate"}
claim: {population: superpopulation, name: answers, representativeness: drawn by a monitor}
samplings:
  words: {role: harmful-candidates, inputs: {jsonl: words.jsonl}}
  model: {role: harmful-candidates, inputs: {jsonl: words.jsonl}}
curtail: false
trials: 300
criteria:
  - {name: words, sampling: words, equals: block, at_least: 90%}
  - {name: model, sampling: model, equals: block, at_least: 90%}
"""


@pytest.mark.requirement(
    "companion 1.4.5b",
    "The miss probabilities of several boundaries are never multiplied.",
    "two criteria over `harmful-candidates`: the report bounds both together by the smaller miss",
)
def test_the_misses_of_two_guardrails_are_not_multiplied() -> None:
    """Each misses at most about 3.9 %: together at most the smaller of the two, at 90 %."""
    lines = "".join(f'{{"id": "{k}", "value": "answer {k}"}}\n' for k in range(300))
    Path("words.jsonl").write_text(lines)
    do(GUARDS, "run", "-o", "r.txt", "-o", "r.json")

    (run,) = json.loads(Path("r.json").read_text())["runs"]
    misses = [one["evidence"]["containment"]["error_upper"] for one in run["verdict"]["findings"]]
    text = " ".join(Path("r.txt").read_text().split())
    assert f"All boundaries miss: at most {min(misses):.6f} at confidence 0.9" in text
    assert f"{misses[0] * misses[1]:.6f}" not in text
    assert "would assume that they miss independently" in text


@pytest.mark.requirement(
    "companion 1.4.7",
    "The limiting criterion of each experiment is identified.",
    "`trialwise check`",
)
def test_check_names_the_criterion_that_sets_the_number_of_trials() -> None:
    """80 trials of the one, 50 of the other, and one that shares them."""
    text = suite(
        "fine",
        "name: many, contains: fine, at_least: 80%, trials: 80",
        "name: few, contains: fine, at_least: 80%, trials: 50",
        WATCH,
    )

    said = " ".join(do(text, "check").output.split())
    assert "many sets the number of trials: at most 80; 2 other criteria share them." in said
    alone = suite("fine", FINE)
    assert "the number of trials:" not in do(alone, "check").output


@pytest.mark.requirement(
    "companion 1.5.4",
    "A baseline is carried as context on verdicts that it does not decide.",
    "every report, where `trialwise measure` has measured the contract",
)
def test_a_baseline_is_the_context_of_other_verdicts() -> None:
    """36 of 40 were measured; neither the required rate nor `never_fails` uses it."""
    text = suite(
        "ask",
        'name: form, contains: "1", at_least: 70%, origin: SLO',
        'name: calm, not_contains: "!", never_fails: true',
    )
    before = report(text, "--seed", "5")
    do(text, "measure", "--trials", "40")
    after = report(text, "--seed", "5")
    do(text, "run", "-o", "r.md", "-o", "r.txt")

    (run,) = json.loads(Path("r.json").read_text())["runs"]
    contexts = [one["threshold"]["context"] for one in run["verdict"]["plan"]["criteria"]]
    assert [(36, 40), (40, 40)] == [(one["passed"], one["trials"]) for one in contexts]
    assert [before[name]["cutoff"] for name in before] == [after[name]["cutoff"] for name in after]
    assert "for context 36 of 40 (90.0 %) in baseline" in Path("r.md").read_text()
    assert "Baseline, for context:     36 of 40 (90.0 %)" in Path("r.txt").read_text()


def test_no_context_comes_from_another_definition_or_a_broken_file() -> None:
    """The rate of another check says nothing here, and a file that is no baseline stops no run."""
    text = suite("ask", 'name: form, contains: "1", at_least: 70%')
    do(text, "measure", "--trials", "40")
    other = text.replace('contains: "1"', "contains: a")
    do(other, "run", "-o", "r.txt")

    assert "for context" not in Path("r.txt").read_text()
    (kept,) = Path("baselines").rglob("*.json")
    kept.write_text("{")
    assert 0 == do(text, "run").exit_code
