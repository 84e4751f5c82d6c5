"""Keys of an input: the cluster that it belongs to, and what is kept and shown with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.suite_folders import enter_folder
from tests.cli.suite_folders import type_command as do

import trialwise as tw
from trialwise.model.plan import ExperimentPlan
from trialwise.stats import Interval, call_weighted

SERVICE = """
def ask(input):
    return "no" if input == "f0 p1" else "yes"
"""
CLAIM = """
name: families
service: {python: "svc:ask"}
claim: {population: superpopulation, name: questions, representativeness: x, estimator: ESTIMATOR}
inputs: {csv: questions.csv, cluster: family, metadata: [source, family]}
trials: 100
curtail: false
criteria: [{name: answers, equals: "yes", at_least: 80%}]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """50 families of two paraphrases each; one paraphrase of the first fails."""
    rows = [f"f{k} p{j},f{k},log {k}\n" for k in range(50) for j in range(2)]
    (tmp_path / "questions.csv").write_text("value,family,source\n" + "".join(rows))
    return enter_folder(tmp_path, monkeypatch, SERVICE)


@pytest.mark.requirement(
    "companion 8.2.1",
    "Paraphrases, templates, batches, regions and blocks of time are recorded as clusters, and the "
    "estimator counts each cluster once.",
    "`cluster` on an input, or the field of a file that holds it",
)
def test_an_estimator_counts_a_cluster_once() -> None:
    """99 of 100 pass, in 50 families: the bound is that of 50 units and not of 100."""
    do(CLAIM.replace("ESTIMATOR", "prompts"), "run", "-o", "r.json")

    (run,) = json.loads(Path("r.json").read_text())["runs"]
    (finding,) = run["verdict"]["findings"]
    by_family = call_weighted([(1, 2), *[(2, 2)] * 49], confidence=0.9, method="prompts")
    assert isinstance(by_family.interval, Interval)
    assert finding["evidence"]["lower_bound"] == pytest.approx(by_family.interval.low)
    assert "over 50 clusters" in run["results"][0]["statement"]
    assert 50 == run["verdict"]["experiments"][0]["clusters"]


def test_without_an_estimator_clusters_support_no_claim_about_a_population() -> None:
    """Each input is tried once, but two paraphrases are no two draws."""
    text = CLAIM.replace(", estimator: ESTIMATOR", "")

    with pytest.raises(tw.DesignRefused, match="100 trials over 50 clusters of inputs"):
        do(text, "run")
    plain = text.replace(", cluster: family", "")
    assert 0 == do(plain, "run").exit_code


def test_a_baseline_counts_its_clusters() -> None:
    """Its trials are no more draws than it has families."""
    do(CLAIM.replace(", estimator: ESTIMATOR", ""), "measure", "--trials", "100")

    (kept,) = Path("baselines").rglob("*.json")
    criterion = json.loads(kept.read_text())["criteria"]["answers"]
    assert (50, 2) == (criterion["inputs"], criterion["repetitions"])


def test_clusters_and_repeated_values_are_one_unit_where_they_meet() -> None:
    """a and b share a cluster, b and c a value: the three are one."""
    experiment = tw.check(
        tw.Contract("c", str, [tw.Criterion("x", tw.contains("q"), at_least=0.9)]),
        inputs=[
            tw.Input(id="a", value="q1", cluster="one"),
            tw.Input(id="b", value="q2", cluster="one"),
            tw.Input(id="c", value="q2", cluster="two"),
            tw.Input(id="d", value="q3"),
            tw.Input(id="e", value="q4", cluster="two"),
        ],
    ).experiments[0]

    assert isinstance(experiment, ExperimentPlan)
    assert [0, 0, 0, 3, 0] == list(experiment.find_units())


def test_clusters_change_the_fingerprint_and_metadata_does_not() -> None:
    """Other clusters are another design; a note beside an input is not."""

    def fingerprint(**more: object) -> str:
        contract = tw.Contract("c", str, [tw.Criterion("x", tw.contains("q"), at_least=0.9)])
        one = tw.Input(id="a", value="q", **more)  # type: ignore[arg-type]
        return tw.check(contract, inputs=[one]).experiments[0].fingerprint

    assert fingerprint() == fingerprint(metadata={"source": "log"})
    assert fingerprint() != fingerprint(cluster="one")


@pytest.mark.requirement(
    "statistical-ci adapter",
    "A scenario has metadata.",
    "`metadata` on an input, or the fields of a file that hold it",
)
def test_metadata_is_kept_and_shown() -> None:
    """With the failing trial in `show`, in its JSON and in the report."""
    text = CLAIM.replace("ESTIMATOR", "prompts")
    do(text, "run", "-o", "r.html")

    shown = do(text, "show", "--failures").output
    assert 'metadata  {"source": "log 0", "family": "f0"}' in shown
    (trial,) = json.loads(do(text, "show", "--failures", "--json").output)["runs"][0]["shown"]
    assert {"source": "log 0", "family": "f0"} == json.loads(trial["metadata"])
    assert "log 0" in Path("r.html").read_text()


def test_metadata_stays_between_the_suite_and_its_reader() -> None:
    """The service gets the value alone, whichever way the input is written."""
    Path("svc.py").write_text("def ask(input):\n    return repr(input)\n")
    Path("lines.jsonl").write_text('{"value": "a", "note": "s2"}\n')
    suite = """
name: kept
service: {python: "svc:ask"}
inputs: INPUTS
criteria: [{name: quiet, not_contains: s, never_fails: true}]
"""
    ways = (
        "[{value: a, metadata: {secret: s1}, cluster: c}]",
        "{jsonl: lines.jsonl, value: value, metadata: note}",
    )

    for way in ways:
        assert 0 == do(suite.replace("INPUTS", way), "run").exit_code


def test_what_is_no_mapping_is_refused_at_its_place() -> None:
    """With the line of the suite, and a missing field with the line of the file."""
    head = CLAIM.partition("inputs:")[0] + "criteria: [{name: a, contains: y, at_least: 80%}]\n"

    with pytest.raises(tw.TrialwiseError, match="`metadata` must be a mapping"):
        do(head + "inputs: [{value: a, metadata: 5}]\n", "check")
    with pytest.raises(tw.TrialwiseError, match="there is no field `nothing`"):
        do(head + "inputs: {csv: questions.csv, metadata: [nothing]}\n", "check")


def test_a_frame_has_clusters_and_metadata() -> None:
    """A row of each trial and of each input."""
    contract = tw.Contract("c", str, [tw.Criterion("x", tw.contains("q"), at_least=0.5)])
    inputs = [tw.Input(id="a", value="q", cluster="one", metadata={"lang": "en"})]
    result = tw.run(contract, inputs=inputs, trials=10, store=None)

    for table in ("trials", "inputs"):
        row = result.to_frame(table, library="pandas").iloc[0]
        assert ("one", '{"lang": "en"}') == (row["cluster"], row["metadata"])
