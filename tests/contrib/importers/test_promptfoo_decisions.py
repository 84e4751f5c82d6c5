"""An imported promptfoo suite passes and fails the outputs that promptfoo passes and fails.

The expected results were written by promptfoo 0.121.20 itself, with its `echo` provider: a prompt
that is only a variable comes back as the output.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from trialwise.checks import Check
from trialwise.contrib.importers import import_promptfoo
from trialwise.model.criterion import Criterion
from trialwise.model.reply import Reply
from trialwise.model.verdict import Decision
from trialwise.suite import Suite

Write = Callable[[str, str], Path]
Load = Callable[..., Suite]

OUTPUTS = [
    "hello world",
    "Hello World",
    "hello",
    "HELLO",
    '{"a":1}',
    'text {"a": 1} more',
    '{"a":"x"}',
    "[1,2]",
    "5",
    "",
    "a, b",
    "line1\nline2",
    "café É",
    "not json {",
    "ACCT-123456 end",
    "true",
    "x\n",
]
PASSES = [
    ({"type": "equals", "value": "hello"}, [2]),
    ({"type": "equals", "value": 5}, [8]),
    ({"type": "equals", "value": {"a": 1}}, [4]),
    ({"type": "equals", "value": [1, 2]}, [7]),
    ({"type": "equals", "value": True}, [15]),
    (
        {"type": "not-equals", "value": "hello"},
        [0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
    ),
    (
        {"type": "not-equals", "value": {"a": 1}},
        [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
    ),
    ({"type": "contains", "value": "hello"}, [0, 2]),
    ({"type": "contains", "value": 5}, [8, 14]),
    ({"type": "icontains", "value": "HELLO"}, [0, 1, 2, 3]),
    (
        {"type": "not-contains", "value": "hello"},
        [1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
    ),
    (
        {"type": "not-icontains", "value": "É"},
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16],
    ),
    ({"type": "contains-any", "value": ["hello", "5"]}, [0, 2, 8, 14]),
    ({"type": "contains-any", "value": 'a, "line1"'}, [4, 5, 6, 10, 11, 12]),
    ({"type": "contains-all", "value": ["a", "b"]}, [10]),
    ({"type": "contains-all", "value": "a,b"}, [10]),
    ({"type": "icontains-any", "value": ["HELLO", "zz"]}, [0, 1, 2, 3]),
    ({"type": "icontains-all", "value": ["HELLO", "world"]}, [0, 1]),
    ({"type": "not-contains-any", "value": ["hello", "a"]}, [1, 3, 7, 8, 9, 11, 13, 14, 15, 16]),
    (
        {"type": "not-contains-all", "value": ["a", "b"]},
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16],
    ),
    (
        {"type": "not-icontains-all", "value": ["HELLO", "WORLD"]},
        [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
    ),
    (
        {"type": "not-icontains-any", "value": ["HELLO"]},
        [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
    ),
    ({"type": "starts-with", "value": "hello"}, [0, 2]),
    (
        {"type": "not-starts-with", "value": "hello"},
        [1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
    ),
    ({"type": "regex", "value": "^hel+o"}, [0, 2]),
    ({"type": "regex", "value": "ACCT-[0-9]{6}"}, [14]),
    ({"type": "regex", "value": "o$"}, [2]),
    ({"type": "not-regex", "value": "\\d"}, [0, 1, 2, 3, 6, 9, 10, 12, 13, 15, 16]),
    ({"type": "regex", "value": "line1.line2"}, []),
    ({"type": "is-json"}, [4, 6, 7, 8, 15]),
    ({"type": "not-is-json"}, [0, 1, 2, 3, 5, 9, 10, 11, 12, 13, 14, 16]),
    (
        {
            "type": "is-json",
            "value": {
                "type": "object",
                "required": ["a"],
                "properties": {"a": {"type": "integer"}},
            },
        },
        [4],
    ),
    (
        {"type": "not-is-json", "value": {"type": "object"}},
        [0, 1, 2, 3, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
    ),
    ({"type": "is-json", "value": "type: object\nrequired: [a]"}, [4, 6]),
    ({"type": "contains-json"}, [4, 5, 6]),
    (
        {
            "type": "contains-json",
            "value": {"type": "object", "properties": {"a": {"type": "integer"}}},
        },
        [4, 5],
    ),
    (
        {
            "type": "assert-set",
            "threshold": 0.5,
            "assert": [
                {"type": "contains", "value": "hello"},
                {"type": "contains", "value": "world"},
            ],
        },
        [0, 2],
    ),
    (
        {
            "type": "assert-set",
            "assert": [
                {"type": "contains", "value": "hello"},
                {"type": "contains", "value": "world"},
            ],
        },
        [0],
    ),
    ({"type": "contains", "value": "{{needle}}"}, [0, 1, 2]),
]

SCRIPT_OUTPUTS = [
    "hello world",
    "Hello World",
    "hello",
    '{"a":1,"category":"billing"}',
    '{"a":5}',
    "[1,2]",
    "5",
    "",
    "a much longer text than the others are, by far",
    "café É",
    "true",
    '{"category":"bug","list":["x"]}',
]
SCRIPTS = [
    ("javascript", "output.length < 10", [2, 4, 5, 6, 7, 9, 10]),
    ("javascript", "output.length >= 5 && output.includes('hello')", [0, 2]),
    ("javascript", "output.includes('output')", []),
    ("javascript", "output.toLowerCase().includes('hello')", [0, 1, 2]),
    ("javascript", "JSON.parse(output).category === 'billing'", [3]),
    ("javascript", "JSON.parse(output).a > 3", [4]),
    ("javascript", "/^hel+o/.test(output)", [0, 2]),
    ("javascript", "output.startsWith('Hello');", [1]),
    ("javascript", "!output.includes('world')", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
    ("javascript", "output === 'hello'", [2]),
    ("javascript", "output.trim() === '5'", [6]),
    ("javascript", "JSON.parse(output).list.includes('x')", [11]),
    ("not-javascript", "output.length < 10", [0, 1, 3, 8, 11]),
    (
        "not-javascript",
        "output.length >= 5 && output.includes('hello')",
        [1, 3, 4, 5, 6, 7, 8, 9, 10, 11],
    ),
    ("not-javascript", "output.includes('output')", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
    ("not-javascript", "output.toLowerCase().includes('hello')", [3, 4, 5, 6, 7, 8, 9, 10, 11]),
    ("not-javascript", "/^hel+o/.test(output)", [1, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
    ("not-javascript", "output.startsWith('Hello');", [0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
    ("not-javascript", "!output.includes('world')", [0]),
    ("not-javascript", "output === 'hello'", [0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
    ("not-javascript", "output.trim() === '5'", [0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11]),
]


def config(**content: Any) -> str:
    """Write a file with the echo provider, in JSON, which is YAML as well."""
    return json.dumps({"prompts": ["{{out}}"], "providers": ["echo"], **content})


def passes(criterion: Criterion, output: str) -> bool:
    """Whether an output meets all checks of a criterion."""
    checks = [one for one in criterion.checks if isinstance(one, Check)]
    assert len(checks) == len(criterion.checks)
    return all(one.check(Reply(value=output)).passed for one in checks)


@pytest.mark.parametrize(("assertion", "passing"), PASSES, ids=lambda one: json.dumps(one)[:60])
def test_an_assertion_passes_the_outputs_that_promptfoo_passes(
    write: Write, load: Load, assertion: dict[str, Any], passing: list[int]
) -> None:
    """Every output in turn, by the criterion that the assertion becomes."""
    test = {"vars": {"out": "anything", "needle": "lo"}, "assert": [assertion]}
    imported = import_promptfoo(write("promptfooconfig.yaml", config(tests=[test])))
    (contract,) = load(imported).contracts
    (criterion,) = contract.contract.criteria

    found = [place for place, output in enumerate(OUTPUTS) if passes(criterion, output)]
    assert passing == found


@pytest.mark.parametrize(("kind", "script", "passing"), SCRIPTS)
def test_an_expression_of_javascript_passes_the_outputs_that_promptfoo_passes(
    write: Write, load: Load, kind: str, script: str, passing: list[int]
) -> None:
    """Comparisons about the text of an output, or about JSON that it is."""
    test = {"vars": {"out": "-"}, "assert": [{"type": kind, "value": script}]}
    imported = import_promptfoo(write("promptfooconfig.yaml", config(tests=[test])))
    (contract,) = load(imported).contracts
    (criterion,) = contract.contract.criteria

    assert {} == dict(imported.files)
    assert passing == [
        place for place, output in enumerate(SCRIPT_OUTPUTS) if passes(criterion, output)
    ]


@pytest.mark.parametrize("threshold", [0.2, 0.34, 0.5, 0.67, 0.75, 1])
@pytest.mark.parametrize("weights", [(1, 1, 1), (1, 2, 3), (0.5, 0.5, 2)])
def test_a_threshold_is_reached_by_the_same_scores(
    write: Write, load: Load, weights: tuple[float, ...], threshold: float
) -> None:
    """The weighted mean of scores of 0 and 1, for each outcome of three assertions."""
    assertions = [
        {"type": "contains", "value": letter, "weight": weight}
        for letter, weight in zip("abc", weights, strict=True)
    ]
    test = {"vars": {"out": "-"}, "threshold": threshold, "assert": assertions}
    imported = import_promptfoo(write("promptfooconfig.yaml", config(tests=[test])))
    (contract,) = load(imported).contracts
    (criterion,) = contract.contract.criteria

    for outcome in product((0, 1), repeat=3):
        output = "".join(letter for letter, there in zip("abc", outcome, strict=True) if there)
        score = sum(w * one for w, one in zip(weights, outcome, strict=True)) / sum(weights)
        assert (score >= threshold) is passes(criterion, output), (outcome, score)


@pytest.mark.parametrize(
    ("names", "decision"), [(["World"], Decision.PASS), (["World", "Moon"], Decision.FAIL)]
)
def test_a_run_decides_as_one_evaluation_of_promptfoo(
    write: Write, load: Load, names: list[str], decision: Decision
) -> None:
    """Each test is asked once, and the first failure is a FAIL: exit code 100 there, 1 here."""
    from trialwise.runtime.running import run

    tests = [
        {"vars": {"name": name}, "assert": [{"type": "contains", "value": "World"}]}
        for name in names
    ]
    path = write("promptfooconfig.yaml", config(prompts=["Hello, {{name}}!"], tests=tests))
    (contract,) = load(import_promptfoo(path)).contracts
    result = run(contract.contract, options=contract.options, store=None, progress=False)

    assert decision is result.verdict.decision
    assert len(names) == len(result.trials)
