"""What the companion asks of a report, shown in the analysis of real runs."""

from __future__ import annotations

import json
import math
from itertools import pairwise, product
from pathlib import Path
from statistics import NormalDist

import pytest
from tests.cli.suite_folders import enter_folder, type_command

from trialwise.errors import DesignRefused
from trialwise.model.options import Horizon, RunOptions

SERVICE = """
import os
import trialwise as tw

def planned(input, index):
    outcomes = os.environ["OUTCOMES"]
    return "ok" if outcomes[index % len(outcomes)] == "P" else "bad"

def timed(input, index):
    return tw.Reply(value="ok", latency_s=(index + 1) / 1000)
"""
SUITE = 'name: x\nservice: {python: "svc:planned"}\ninputs: [a]\ncurtail: false\n'
Z = NormalDist()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return enter_folder(tmp_path, monkeypatch, SERVICE)


def analyse(suite: str, outcomes: str, *arguments: str) -> str:
    """Return the full analysis of a run with these outcomes, on one line."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OUTCOMES", outcomes)
        done = type_command(suite, "run", "-q", "--transparent", *arguments)
    return " ".join(done.output.split())


def measure(suite: str, outcomes: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OUTCOMES", outcomes)
        assert type_command(suite, "measure", "-q", "--trials", str(len(outcomes))).exit_code == 0


@pytest.mark.requirement(
    "companion 10.3",
    "The worked report: standard error and interval of 953 of 1000.",
    "`trialwise run --transparent`",
)
def test_the_worked_report_has_its_standard_error_and_its_interval() -> None:
    """The companion prints 0.00673 and 0.965; its own formulas give 0.006693 and 0.96447."""
    suite = (
        f"{SUITE}rule: wilson\ntrials: 1000\n"
        "criteria: [{name: well-formed, equals: ok, no_worse_than: baseline, confidence: 97.5%}]"
    )
    measure(suite, "P" * 951 + "F" * 49)

    text = analyse(suite, "P" * 953 + "F" * 47)

    rate, n, z = 0.953, 1000, Z.inv_cdf(0.975)
    assert f"√(p̂(1−p̂)/n) = {math.sqrt(rate * (1 - rate) / n):.6f}" in text
    assert "= 0.006693" in text
    middle = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    assert f"95 % interval: [{middle - half:.6f}, {middle + half:.6f}]" in text
    assert round(middle + half, 4) == 0.9645


@pytest.mark.requirement(
    "companion 6.1",
    "The confidence that a fixed number of trials has achieved.",
    "`Achieved confidence` in `trialwise run --transparent`",
)
def test_a_compliance_run_states_the_confidence_it_achieved() -> None:
    suite = f"{SUITE}trials: 100\ncriteria: [{{name: up, equals: ok, at_least: 90%}}]"
    text = analyse(suite, "P" * 94 + "F" * 6)

    tail = math.fsum(math.comb(100, k) * 0.9**k * 0.1 ** (100 - k) for k in range(94, 101))
    assert f"Achieved confidence: {1 - tail:.6f} = 1 − p, exact" in text
    assert f"{Z.cdf(0.04 / 0.03):.6f} = Φ(z), approximate" in text


@pytest.mark.requirement(
    "companion 8.1",
    "n·p and n·(1−p) are disclosed where a normal approximation decides.",
    "`Normal approximation` in `trialwise run --transparent`, with `rule: wilson`",
)
@pytest.mark.parametrize(
    ("rule", "trials", "said"),
    [
        ("wilson", 60, "poor: n·p = 57, n·(1−p) = 3, below 5"),
        ("wilson", 150, "doubtful: n·p = 142.5, n·(1−p) = 7.5, below 10"),
        ("wilson", 200, "adequate: n·p = 190, n·(1−p) = 10, at least 10"),
        ("exact", 200, ""),
    ],
)
def test_an_approximate_rule_discloses_whether_it_has_enough_of_both(
    rule: str, trials: int, said: str
) -> None:
    suite = f"{SUITE}rule: {rule}\ntrials: {trials}\n"
    text = analyse(f"{suite}criteria: [{{name: up, equals: ok, at_least: 95%}}]", "P")

    assert (f"Normal approximation: {said}" in text) if said else "Normal approx" not in text


@pytest.mark.requirement(
    "companion 8.2",
    "The effective sample size beside the autocorrelation.",
    "`Effective trials` in `trialwise run --transparent`",
)
def test_alike_neighbours_are_told_with_what_the_trials_are_worth() -> None:
    suite = f"{SUITE}trials: 40\ncriteria: [{{name: up, equals: ok, at_least: 30%}}]"
    outcomes = ("P" * 10 + "F" * 10) * 2
    text = analyse(suite, outcomes)

    seen = [one == "P" for one in outcomes]
    mean = sum(seen) / 40
    spread = sum((one - mean) ** 2 for one in seen)
    pairs = pairwise(seen)
    r = sum((one - mean) * (after - mean) for one, after in pairs) / spread
    assert f"Lag-1 autocorrelation: {r:.3f}" in text
    assert f"Effective trials: {40 * (1 - r) / (1 + r):.1f}, if each trial depends" in text


@pytest.mark.requirement(
    "companion 8.5",
    "A horizon is a number of runs, a window or a number of release gates, for every procedure.",
    "`horizon: 12`, `horizon: {days: 90, per_day: 4}`, `horizon: {gates: 6}`, `tw.model.Horizon`",
)
@pytest.mark.parametrize(
    ("written", "runs", "named"),
    [
        ("12", 12, "one reference state "),
        ("{days: 7, per_day: 4}", 28, "a window of 7 days with 4 runs a day"),
        ("{gates: 6}", 6, "6 release gates"),
    ],
)
def test_a_horizon_is_declared_as_runs_as_a_window_or_as_gates(
    written: str, runs: int, named: str
) -> None:
    """Compliance errs by a wrong PASS: its sum over the horizon, and the independent value."""
    suite = f"{SUITE}horizon: {written}\ntrials: 100\n"
    text = analyse(f"{suite}criteria: [{{name: up, equals: ok, at_least: 90%}}]", "P")

    size = math.fsum(math.comb(100, k) * 0.9**k * 0.1 ** (100 - k) for k in range(96, 101))
    assert f"H = {runs} runs against one reference state" in text
    assert named in text
    assert f"Wrong PASS per run: exactly {size:.6f}" in text
    assert f"Expected wrong PASSes: at most {runs * size:.6g} in the horizon" in text
    some = f"at least one with at most {1 - (1 - size) ** runs:.4f}"
    assert f"Wrong PASS, independent: {some}" in text


def test_python_and_the_marker_take_a_horizon_as_a_suite_writes_it() -> None:
    options = RunOptions(horizon={"days": 7, "per_day": 4})  # type: ignore[arg-type]

    assert options.horizon == Horizon(days=7, per_day=4)
    assert options.horizon_runs == 28


def test_a_horizon_has_one_form() -> None:
    suite = f"{SUITE}horizon: {{days: 7, gates: 2}}\ntrials: 100\n"
    with pytest.raises(Exception, match="be exactly one of runs, gates, days"):
        type_command(f"{suite}criteria: [{{name: up, equals: ok, at_least: 90%}}]", "check")


@pytest.mark.requirement(
    "companion 10.6",
    "A report tells formula-value conformance from calibration, with the reference release.",
    "`CONFORMANCE STATUS` in `trialwise run --transparent`; `trialwise conformance DIR`",
)
@pytest.mark.parametrize(
    ("rule", "release", "status"),
    [
        ("wilson", "mavai-R 0.10.13", "passed by this release of trialwise (80 of 80 cases)"),
        ("fisher", "mavai-R 0.12.0", "passed by this release of trialwise (174 of 174 cases)"),
        ("exact", "none consumed", "none are published for this rule set"),
    ],
)
def test_a_report_names_the_reference_release_of_its_rule(
    rule: str, release: str, status: str
) -> None:
    suite = f"{SUITE}rule: {rule}\ntrials: 60\n"
    text = analyse(f"{suite}criteria: [{{name: up, equals: ok, at_least: 80%}}]", "P")

    assert f"referenceDataVersion: {release}" in text
    assert f"formulaValueFixtures: {status}" in text
    assert "calibrationClaimPermitted: false" in text


@pytest.mark.requirement(
    "companion 10.7",
    "The conformance checklist, answered for a verdict.",
    "`CONFORMANCE CHECKLIST` in `trialwise run --transparent` and in HTML reports",
)
def test_a_report_answers_the_conformance_checklist() -> None:
    suite = f"{SUITE}trials: 60\ncriteria: [{{name: up, equals: ok, at_least: 80%}}]"
    text = analyse(suite, "P", "-o", "r.html")

    checklist = text.partition("CONFORMANCE CHECKLIST (§10.7)")[2]
    assert "Procedures kept apart: met: compliance" in checklist
    assert "Achieved size: met" in checklist
    assert "p-value: met: 1 p-value" in checklist
    assert "Denominator: met: every trial counts" in checklist
    assert "Saturated latency rank: does not apply" in checklist
    assert "Repeated inputs: met: the claim is fixed-inputs" in checklist
    assert "Availability apart: does not apply: no criterion is about availability" in checklist
    assert "CONFORMANCE CHECKLIST" in Path("r.html").read_text(encoding="utf-8").upper()


def test_the_checklist_names_the_criterion_of_availability() -> None:
    """It is one that counts what never reached the service, beside others that do not."""
    apart = "{name: there, equals: ok, at_least: 80%, analysis: intent-to-treat}"
    suite = f"{SUITE}trials: 60\ncriteria: [{{name: up, equals: ok, at_least: 80%}}, {apart}]"
    checklist = analyse(suite, "P").partition("CONFORMANCE CHECKLIST (§10.7)")[2]

    assert "Availability apart: met: there; no other denominator depends on it" in checklist


@pytest.mark.requirement(
    "companion 12.4.2",
    "The largest latency of a saturated baseline is shown as advisory, and never as a bound.",
    "`advisory` in the latency part of `trialwise run --transparent`, with `rule: wilson`",
)
def test_a_saturated_baseline_shows_its_largest_latency_as_advisory() -> None:
    """50 latencies, 1 to 50 ms, bound no p99."""
    suite = (
        'name: x\nservice: {python: "svc:timed"}\ninputs: [a]\nrule: wilson\nintent: smoke\n'
        "trials: 30\nlatency: {baseline: [p99]}\n"
        "criteria: [{name: up, equals: ok, at_least: 50%}]"
    )
    measure(suite, "P" * 50)
    text = analyse(suite, "P")

    assert "advisory: t(50) = 0.05 s, the largest latency; it is not a bound" in text.replace(
        "50 ms", "0.05 s"
    )


# --- Sequential tests -----------------------------------------------------------------------------


SPRT = (
    f"{SUITE}max_trials: 50\ncriteria: [{{name: up, equals: ok, at_least: 90%, margin: 10%, "
    "alpha: 5%, power: 80%, method: wald}]"
)
UPPER, LOWER = math.log(0.95 / 0.2), math.log(0.05 / 0.8)


def ratio(outcomes: str) -> float:
    passed = outcomes.count("P") * math.log(0.9 / 0.8)
    return passed + outcomes.count("F") * math.log(0.1 / 0.2)


def decide(outcomes: str) -> str:
    """Wald's decision at the end of these outcomes; the document rounds neither bound."""
    found = ratio(outcomes)
    return "PASS" if found >= UPPER else "FAIL" if found <= LOWER + 1e-12 else ""


def stops_first(outcomes: str) -> bool:
    """Whether the outcomes end exactly where Wald's test decides."""
    return bool(decide(outcomes)) and not any(decide(outcomes[:k]) for k in range(1, len(outcomes)))


@pytest.mark.requirement(
    "statistical-ci SPRT",
    "The log-likelihood ratio of a sequential test.",
    "`Log-likelihood ratio` in `trialwise run --transparent` and in HTML, `log_ratio` in JSON",
)
@pytest.mark.parametrize(
    ("outcomes", "value"), [("P" * 14, 1.6490), ("PFFPFFF", -3.2302), ("FFFF", -2.7726)]
)
def test_a_sequential_run_states_its_log_likelihood_ratio(outcomes: str, value: float) -> None:
    text = analyse(SPRT, outcomes, "-o", "r.html")

    assert stops_first(outcomes)
    assert ratio(outcomes) == pytest.approx(value, abs=5e-5)
    assert f"ln Λ = {ratio(outcomes):.4f}" in text
    assert f"PASSes from {UPPER:.4f} and FAILs from {LOWER:.4f}" in text
    assert "Log-likelihood ratio" in Path("r.html").read_text(encoding="utf-8")


@pytest.mark.requirement(
    "statistical-ci SPRT",
    "The p-value of a sequential test.",
    "`p-value` in `trialwise run --transparent`, `stopped_p_value` in JSON: exact over all stops",
)
@pytest.mark.parametrize("outcomes", ["P" * 14, "PFFPFFF", "FFFF"])
def test_the_p_value_of_a_stop_counts_every_path_that_ends_as_extreme(outcomes: str) -> None:
    """Ends are ordered by stage: an earlier FAIL is worse, an earlier PASS is better."""
    analyse(SPRT, outcomes, "-o", "r.json")
    found = json.loads(Path("r.json").read_text(encoding="utf-8"))

    verdict, n = decide(outcomes), len(outcomes)
    rate = 0.8 if verdict == "PASS" else 0.9
    paths = (
        "".join(path)
        for length in range(1, n + 1)
        for path in product("PF", repeat=length)
        if ratio("".join(path)) >= UPPER or ratio("".join(path)) <= LOWER + 1e-12
    )
    failed = outcomes.count("F")

    def is_extreme(path: str) -> bool:
        if decide(path) != verdict or not stops_first(path):
            return False
        same = path.count("F") <= failed if verdict == "PASS" else path.count("F") >= failed
        return len(path) < n or same

    chance = math.fsum(
        rate ** path.count("P") * (1 - rate) ** path.count("F")
        for path in paths
        if is_extreme(path)
    )
    (finding,) = found["runs"][0]["verdict"]["findings"]
    assert finding["evidence"]["stopped_p_value"]["value"] == pytest.approx(chance, rel=1e-9)
    assert finding["evidence"]["log_ratio"] == pytest.approx(ratio(outcomes))


# --- Other rules and estimators -------------------------------------------------------------------


@pytest.mark.requirement(
    "companion 3.2",
    "Miettinen–Nurminen and Farrington–Manning, which count the baseline's uncertainty.",
    "`OTHER RULES` in `trialwise run --transparent`; `stats.noninferiority`",
)
@pytest.mark.requirement(
    "companion 4.5",
    "The beta-binomial posterior predictive rule as an alternative to Wilson's.",
    "`OTHER RULES` in `trialwise run --transparent`; `stats.predictive_cutoff`",
)
def test_other_rules_stand_beside_a_comparison_with_their_true_errors() -> None:
    """The predictive cutoff by the beta-binomial law, the score tests by their own likelihood."""
    from scipy.optimize import minimize_scalar
    from scipy.stats import betabinom, binom

    suite = f"{SUITE}trials: 60\n"
    suite += "criteria: [{name: up, equals: ok, no_worse_than: baseline, margin: 10%}]"
    measure(suite, "P" * 190 + "F" * 10)
    text = analyse(suite, "P" * 56 + "F" * 4)

    def cutoff(k: int) -> int:
        law = betabinom(60, k + 0.5, 200 - k + 0.5)
        return int((law.pmf(range(61)).cumsum() > 0.05).argmax())

    alarm = sum(
        binom.pmf(k, 200, 0.95) * binom.cdf(cutoff(k) - 1, 60, 0.95) for k in range(150, 201)
    )
    says = "PASS" if cutoff(190) <= 56 else "FAIL"
    assert f"Posterior predictive: {says}: K ≥ {cutoff(190)} of 60 PASSes" in text
    assert f"{100 * alarm:.2f} % of runs FAIL if nothing has changed" in text

    # The likeliest pair of rates that are 10 points apart, found by search.
    least = minimize_scalar(
        lambda p: -(binom.logpmf(190, 200, p) + binom.logpmf(56, 60, p - 0.1)),
        bounds=(0.8, 0.999),
        method="bounded",
        options={"xatol": 1e-12},
    ).x
    spread = least * (1 - least) / 200 + (least - 0.1) * (1.1 - least) / 60
    z = (56 / 60 - 190 / 200 + 0.1) / math.sqrt(spread)
    for name, factor in (("Farrington–Manning", 1.0), ("Miettinen–Nurminen", 259 / 260)):
        p_value = 1 - Z.cdf(z * math.sqrt(factor))
        assert f"{name}: a loss of less than 10 points is shown, p = {p_value:.6f}" in text
    assert "of runs claim it after a loss of 10 points" in text
    assert "They do not decide this criterion" in text


def clustered(estimator: str, inputs: int) -> str:
    """A claim about a population, from inputs that are tried five times each."""
    listed = ", ".join(f"q{place}" for place in range(inputs))
    return (
        f'name: x\nservice: {{python: "svc:fixed"}}\ninputs: [{listed}]\ntrials: {5 * inputs}\n'
        f"claim: {{population: superpopulation, name: questions, estimator: {estimator}}}\n"
        "criteria: [{name: up, equals: ok, at_least: 60%}]"
    )


FIXED = """
def fixed(input):
    return "bad" if int(input[1:]) % 10 == 0 else "ok"
"""


@pytest.mark.requirement(
    "companion 8.2.1",
    "GEE, cluster bootstrap and beta-binomial as approved estimators of clustered designs.",
    "`claim: {estimator: gee | cluster-bootstrap | beta-binomial}`",
)
@pytest.mark.parametrize("estimator", ["gee", "cluster-bootstrap", "beta-binomial"])
def test_a_population_claim_is_decided_by_a_model_of_repeated_inputs(
    estimator: str, folder: Path
) -> None:
    """40 inputs, of which 4 always fail: 200 trials are worth about 40."""
    (folder / "svc.py").write_text(SERVICE + FIXED)
    text = analyse(clustered(estimator, 40), "P")

    assert f"Estimator: {estimator}" in text
    assert "Estimate: 0.900000 from 200 trials of 40 inputs" in text
    assert f"{estimator} is approximate" in text
    if estimator == "beta-binomial":
        assert "Effective trials: 40.00" in text
    assert "Contract verdict: PASS" in text


@pytest.mark.parametrize("estimator", ["gee", "cluster-bootstrap", "beta-binomial"])
def test_a_model_is_refused_with_few_inputs(estimator: str, folder: Path) -> None:
    (folder / "svc.py").write_text(SERVICE + FIXED)
    with pytest.raises(DesignRefused, match=f"estimator={estimator} needs at least 20 distinct"):
        type_command(clustered(estimator, 10), "check")


@pytest.mark.requirement(
    "companion 8.2.1",
    "A clustered estimator for regressions.",
    "Not done: a comparison about a population needs inputs that are asked once, or a claim about "
    "fixed inputs. A baseline keeps counts, and the refusal says what to do.",
)
def test_an_estimator_does_not_decide_a_comparison(folder: Path) -> None:
    (folder / "svc.py").write_text(SERVICE + FIXED)
    suite = clustered("gee", 40).replace("at_least: 60%", "no_worse_than: baseline")
    measure(suite, "P" * 200)
    with pytest.raises(DesignRefused, match="this is a regression decision"):
        type_command(suite, "check")
