"""A cerberus file becomes a suite that says the same, or is refused with every reason at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from trialwise.contrib.importers import ImportRefused, import_cerberus, import_suite, render_yaml
from trialwise.model.claim import Intent
from trialwise.model.options import AbortRule
from trialwise.suite import Suite

Write = Callable[[str, str], Path]
Load = Callable[..., Suite]

FILE = """\
adapter:
  command: "node ./agent.js --scenario {{scenario}} --home ${HOME}"
  timeout: 45500
correction: bonferroni
studies:
  - name: Code review
    scenario: tasks/review.yaml
    max_error_rate: 0.35
    contracts:
      - name: exits-cleanly
        type: code
        assert: "output.meta.exitCode === 0"
        threshold: 0.95
        trials: 60
      - name: finds-it
        type: code
        assert: output.parsed.found === true && output.parsed.score > 0.5
        confidence: 0.9
"""


@pytest.fixture
def study(write: Write) -> Path:
    """A file with its scenario."""
    write("tasks/review.yaml", "input: |\n  Review this.\n  Thoroughly.\n")
    return write("cerberus.yaml", FILE)


def refusal(path: Path) -> dict[tuple[int, int], str]:
    """Why a file is refused, by line and column."""
    with pytest.raises(ImportRefused) as caught:
        import_cerberus(path)
    return {(one.line, one.column): one.message for one in caught.value.problems}


def test_a_study_becomes_a_contract(study: Path, load: Load) -> None:
    """The command without a shell, the scenario by file, the thresholds by Wald's test."""
    imported = import_cerberus(study)

    assert {
        "name": "Code review",
        "service": {
            "command": {
                "run": [
                    "node",
                    "./agent.js",
                    "--scenario",
                    "{scenario_file}",
                    "--home",
                    "$${HOME}",
                ],
                "strip_newline": False,
            }
        },
        "timeout": "45500ms",
        "analysis": "intent-to-treat",
        "retries": 0,
        "keep_going": True,
        "abort": {"max_error_rate": 0.35, "after": 5, "to": "fail", "exit_codes": True},
        "inputs": ["Review this.\nThoroughly.\n"],
        "criteria": [
            {
                "name": "exits-cleanly",
                "exit_code": 0,
                "at_least": 0.95,
                "margin": 0.1,
                "method": "wald",
                "beta": 0.2,
                "max_trials": 60,
            },
            {
                "name": "finds-it",
                "postconditions": [
                    {"json_path": {"path": "$.found", "equals": True}},
                    {"expression": "has(value.score) && value.score > 0.5"},
                ],
                "at_least": 0.9,
                "margin": 0.1,
                "method": "wald",
                "beta": 0.2,
                "confidence": 0.9,
                "max_trials": 50,
            },
        ],
    } == imported.suite
    (contract,) = load(imported).contracts
    assert Intent.VERIFICATION is contract.options.intent
    assert (
        AbortRule(max_error_rate=0.35, after=5, to_fail=True, exit_codes=True)
        == contract.options.abort
    )
    assert 45.5 == contract.options.timeout_s
    assert 0 == contract.options.retries


def test_the_suite_says_where_things_came_from(study: Path) -> None:
    """Comments name the contract, its line and its assertion; notes what is different."""
    text = render_yaml(import_cerberus(study))

    assert "$schema" not in text
    assert "# Imported from cerberus.yaml (cerberus)." in text
    assert "# contract `exits-cleanly`, line 10: output.meta.exitCode === 0\n" in text
    assert "`correction` (line 4) is left out" in text


def test_several_studies_share_what_they_share(study: Path, write: Write, load: Load) -> None:
    """One adapter serves them all; a scenario with metadata has a file of its own."""
    write(
        "tasks/other.yaml", "input: Other\nmetadata: {tone: dry, n: [1, 2.5, null]}\nauthor: me\n"
    )
    write(
        "cerberus.yaml",
        FILE
        + "  - {name: other, scenario: tasks/other.yaml, contracts: [{name: a, type: code,"
        + " assert: 'output.parsed.tone === scenario.metadata.tone'}]}\n",
    )
    imported = import_cerberus(study)
    first, second = imported.suite["contracts"]

    assert "45500ms" == imported.suite["timeout"]
    assert "service" not in first
    assert "other.scenario.json" in second["service"]["command"]["run"]
    assert "environment" == second["service"]["command"]["input_via"]
    given = {"input": "Other", "metadata": {"tone": "dry", "n": [1, 2.5, None]}}
    assert given == json.loads(imported.files["other.scenario.json"])
    assert any("`author` is left out" in note for note in imported.notes)
    assert {"json_path": {"path": "$.tone", "equals": "dry"}}.items() <= second["criteria"][
        0
    ].items()
    assert ["Code review", "other"] == [one.name for one in load(imported).contracts]


def test_every_reason_is_given_at_once_with_its_place(write: Write) -> None:
    """Bounds, unknown keys, judges and assertions, each by line, column and key."""
    write("task.yaml", "input: x\n")
    path = write(
        "cerberus.yaml",
        """\
adapter: {command: "agent scenario", timeout: 0}
judge: []
judges: [{model: gpt-4, key: x}]
correction: holm
studies:
  - name: one
    scenario: task.yaml
    max_error_rate: 1.5
    contracts:
      - {name: low, type: code, assert: output.meta.jsonParsed, threshold: 0.1}
      - {name: high, type: code, assert: output.meta.jsonParsed, threshold: 1.01}
      - {name: sure, type: code, assert: output.meta.jsonParsed, confidence: 0.9999}
      - {name: many, type: code, assert: output.meta.jsonParsed, trials: 2.5}
      - {name: typo, type: code, assert: output.meta.jsonParsed, treshold: 0.9}
      - {name: asks, type: judge, rubric: is it good?, judge_panel: 0}
      - {name: other, type: vote, assert: output.meta.jsonParsed}
      - {name: odd, type: code, assert: output.meta.raw.split('a').length > 2}
      - {type: code}
  - {name: two, scenario: absent.yaml, contracts: []}
""",
    )
    with pytest.raises(ImportRefused) as caught:
        import_cerberus(path)
    absent = path.parent / "absent.yaml"

    assert [
        (1, "`command` must hold {{scenario}} in one of its arguments"),
        (1, "`timeout` must be a whole number of at least 1 and at most 1,000,000,000, got `0`"),
        (2, "unknown key `judge` in a cerberus file; did you mean `judges`?"),
        (3, "unknown key `key` in a judge; known are model"),
        (4, "`correction` must be one of bh, bonferroni, none, got `holm`"),
        (8, "`max_error_rate` must be a number from 0 to 1, got `1.5`"),
        (10, "`threshold` must be a number from 0.11 to 1, got `0.1`"),
        (11, "`threshold` must be a number from 0.11 to 1, got `1.01`"),
        (12, "`confidence` must be a number from 0.5 to 0.999, got `0.9999`"),
        (13, "`trials` must be a whole number of at least 1 and at most 20,000, got `2.5`"),
        (14, "unknown key `treshold` in a contract; did you mean `threshold`?"),
        (15, "`judge_panel` must be a whole number of at least 1 and at most 100, got `0`"),
        (16, "`type` must be one of code, judge, got `vote`"),
        (
            17,
            (
                "`assert` at character 16: `.split('a').length > 2`: the method `split` is not "
                "carried over here. Write this check as a Python function, and name it: "
                "`python: module:function`"
            ),
        ),
        (18, "a contract needs `name`"),
        (18, "a contract needs `assert`"),
        (19, f"`scenario`: {absent} cannot be read (No such file or directory)"),
        (19, "`contracts` must be a list of contracts, got an empty list"),
    ] == [(one.line, one.message) for one in caught.value.problems]
    assert {str(path)} == {one.file for one in caught.value.problems}
    # The caret stands below what is wrong.
    threshold = caught.value.problems[6]
    assert (10, 76) == (threshold.line, threshold.column)
    assert "threshold: 0.1}" in threshold.excerpt


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("[1]", "a cerberus file must be a mapping, got a list"),
        ("adapter: x\nstudies: [{}]", "`adapter` must be a mapping, got `x`"),
        (
            "adapter: {command: 'a {{scenario}}'}\nstudies: []",
            "must be a list of studies, got an empty",
        ),
        ("adapter: {command: '{{scenario}}'}\nstudies: [{}]", "in one of its arguments"),
        ("adapter: {command: 'a {input} {{scenario}}'}\nstudies: [{}]", "means something else"),
        ("a: &a [*a]", "stands within what it repeats"),
        ("\t", "this is not YAML"),
    ],
)
def test_a_file_that_is_something_else_is_refused(write: Write, text: str, message: str) -> None:
    """Whatever it holds, the first reason says what was expected."""
    found = refusal(write("cerberus.yaml", text))

    assert any(message in one for one in found.values()), found


def test_two_things_of_one_name_are_refused(write: Write) -> None:
    """Names find baselines here; in cerberus the last contract of a name wins."""
    write("task.yaml", "input: x\n")
    contract = "{name: a, type: code, assert: output.meta.jsonParsed}"
    study = f"{{name: s, scenario: task.yaml, contracts: [{contract}, {contract}]}}"
    path = write(
        "cerberus.yaml",
        f"adapter: {{command: 'a {{{{scenario}}}}'}}\nstudies: [{study}, {study}]\n",
    )
    messages = list(refusal(path).values())

    assert any("two studies are called `s`" in one for one in messages)
    assert any("two contracts of a study are called `a`" in one for one in messages)


def test_a_threshold_of_one_needs_trials_to_show_it(write: Write) -> None:
    """With fewer than the fifteen that PASS it could only end open, which nothing here does."""
    write("task.yaml", "input: x\n")
    path = write(
        "cerberus.yaml",
        "adapter: {command: 'a {{scenario}}'}\n"
        "studies: [{name: s, scenario: task.yaml, contracts:\n"
        "  [{name: a, type: code, assert: output.meta.jsonParsed, threshold: 1, trials: 14}]}]\n",
    )
    (message,) = refusal(path).values()

    assert "decided by 15 trials" in message


def test_the_kind_of_a_file_is_told_by_its_contents(study: Path, write: Write) -> None:
    """Whatever it is called."""
    other = study.rename(study.with_name("suite.txt"))

    assert "cerberus" == import_suite(other).format
    with pytest.raises(ImportRefused, match="of no kind that is read"):
        import_suite(write("docker-compose.yaml", "services: {web: {image: x}}\n"))
    with pytest.raises(ImportRefused, match="imported together"):
        import_suite(other, other)
