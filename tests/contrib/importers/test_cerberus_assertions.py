"""Assertions in JavaScript become postconditions that hold for the same outputs."""

from __future__ import annotations

import json
import shutil
import subprocess
from itertools import combinations, product
from random import Random
from typing import Any

import pytest

from trialwise.checks.combine import from_spec
from trialwise.contrib.importers.cerberus.assertion_idioms import read_assertion
from trialwise.contrib.importers.cerberus.assertion_syntax import NotCarried
from trialwise.model.reply import Reply

SCENARIO = {"input": "capital?", "metadata": {"expected": "Paris", "limit": 3, "words": ["a"]}}
NODE = shutil.which("node")

#: What cerberus does with an assertion: an empty object for output that is not a JSON object, and a
#: failure for whatever throws.
ORACLE = """
import { runInNewContext } from "node:vm";
import { createInterface } from "node:readline";
for await (const line of createInterface({ input: process.stdin })) {
  const { assertion, scenario, raw, exitCode } = JSON.parse(line);
  let parsed = {}, jsonParsed = false;
  try {
    const found = JSON.parse(raw);
    if (typeof found === "object" && found !== null && !Array.isArray(found)) {
      parsed = found; jsonParsed = true;
    }
  } catch {}
  const meta = { raw, stderr: "", exitCode, durationMs: 1500, jsonParsed };
  let holds = false;
  try {
    const context = { output: { meta, parsed }, scenario };
    holds = Boolean(runInNewContext(`"use strict"; (${assertion})`, context, { timeout: 1000 }));
  } catch {}
  console.log(holds);
}
"""


def holds(assertion: str, raw: str, code: int = 0) -> bool:
    """Whether the postconditions of an assertion hold for an output."""
    specs = read_assertion(assertion, SCENARIO).postconditions
    reply = Reply(value=raw, exit_code=code, latency_s=1.5)
    return all(from_spec(one).check(reply).passed for one in specs)


@pytest.mark.parametrize(
    ("assertion", "postconditions"),
    [
        ("output.meta.exitCode === 0", [{"exit_code": 0}]),
        ("output.meta.exitCode == 2", [{"exit_code": 2}]),
        ("[0, 1].includes(output.meta.exitCode)", [{"exit_code": [0, 1]}]),
        ("output.meta.jsonParsed === true", [{"json_schema": {"type": "object"}}]),
        ("output.meta.raw.includes('ok')", [{"contains": "ok"}]),
        ("!output.meta.raw.includes('sorry')", [{"not_contains": "sorry"}]),
        ('output.meta.raw === "yes\\n"', [{"equals": "yes\n"}]),
        ("output.meta.raw.startsWith('{')", [{"starts_with": "{"}]),
        (
            "output.parsed.answer === scenario.metadata.expected",
            [{"json_path": {"path": "$.answer", "equals": "Paris"}}],
        ),
        (
            "output.parsed['a-b'][0].c === null",
            [{"json_path": {"path": "$['a-b'][0].c", "equals": None}}],
        ),
        (
            "output.parsed.score >= 0.8 && output.parsed.score <= 1",
            [
                {"json_path": {"path": "$.score", "minimum": 0.8}},
                {"json_path": {"path": "$.score", "maximum": 1}},
            ],
        ),
        ("output.parsed.n > 5", [{"expression": "has(value.n) && value.n > 5"}]),
        (
            "output.parsed['a-b'] < 0.5",
            [
                {
                    "json_schema": {
                        "type": "object",
                        "required": ["a-b"],
                        "properties": {"a-b": {"type": "number", "exclusiveMaximum": 0.5}},
                    }
                }
            ],
        ),
        ("/^id-[0-9]+$/.test(output.meta.raw)", [{"matches": r"^id-[0-9]+\Z"}]),
        ("output.parsed.answer !== undefined", [{"json_path": "$.answer"}]),
        ("(output.meta.exitCode === 0) && 0 === output.meta.exitCode", [{"exit_code": 0}]),
        ("output.meta.raw.length < 200", [{"expression": "size(output) < 200"}]),
        ("output.meta.durationMs < 5000", [{"expression": "latency_s * 1000.0 < 5000.0"}]),
    ],
)
def test_what_a_postcondition_says_is_said_by_it(
    assertion: str, postconditions: list[dict[str, Any]]
) -> None:
    """The usual assertions read as a person would have written the suite."""
    assert postconditions == read_assertion(assertion, SCENARIO).postconditions


@pytest.mark.parametrize(
    ("assertion", "passing", "failing"),
    [
        ("!output.parsed.error", ["{}", "no json", "[1]", '{"error": ""}'], ['{"error": "x"}']),
        ("output.parsed.a.b === 1", ['{"a": {"b": 1}}'], ["{}", "x", '{"a": null}']),
        ("output.parsed.a?.b !== 1", ["{}", "x", '{"a": null}'], ['{"a": {"b": 1}}']),
        (
            "typeof output.parsed.s === 'string' && output.parsed.s.length > 2",
            ['{"s": "abc"}'],
            ['{"s": "ab"}', '{"s": [1, 2, 3]}', "{}"],
        ),
        ("output.meta.raw.trim() === 'ok'", ["ok", " ok\n", "\ufeffok\u00a0"], ["o k", "ok!"]),
        ("output.meta.raw.toLowerCase().includes('fail')", ["FAIL", "a Failure"], ["fai l", ""]),
        ("/^id-\\d+$/i.test(output.parsed.id)", ['{"id": "ID-7"}'], ['{"id": "ID-"}', "{}"]),
        (
            "output.parsed.a.b !== 1",
            ['{"a": {}}', '{"a": {"b": 2}}', '{"a": 5}'],
            ["{}", "x", "[]"],
        ),
        ("output.parsed.a == null", ["{}", "x", '{"a": null}'], ['{"a": 0}', '{"a": ""}']),
        ("output.parsed.a != null", ['{"a": 0}', '{"a": ""}'], ["{}", "x", '{"a": null}']),
        ("output.parsed.a === undefined", ["{}", "x", "[1]"], ['{"a": null}', '{"a": 1}']),
        (
            "output.parsed.tags.length > 0",
            ['{"tags": [1]}', '{"tags": "x"}'],
            ["{}", '{"tags": []}'],
        ),
        ("output.parsed.tags.includes('a')", ['{"tags": ["a"]}', '{"tags": "xa"}'], ["{}", "a"]),
        ("!output.parsed.tags.includes('a')", ['{"tags": ["b"]}', '{"tags": ""}'], ["{}", "b"]),
        ("['a', null].includes(output.parsed.x)", ['{"x": "a"}', '{"x": null}'], ["{}", "a"]),
        ("!['a'].includes(output.parsed.x)", ['{"x": "b"}', "{}", "a"], ['{"x": "a"}']),
        ("Array.isArray(output.parsed.l)", ['{"l": []}'], ["{}", "[]", '{"l": {}}']),
        ("!Array.isArray(output.parsed.l)", ["{}", "[]", '{"l": {}}'], ['{"l": []}']),
        ("typeof output.parsed.n !== 'number'", ["{}", "1", '{"n": "1"}'], ['{"n": 1}']),
        ("output.parsed.s.endsWith('!')", ['{"s": "a!"}'], ['{"s": "a"}', "{}", '{"s": 1}']),
        ("output.meta.raw", ["x", " "], [""]),
        ("output.meta.raw.trim().length > 0", ["x", " x\n"], ["", " \n\ufeff"]),
        ("output.meta.jsonParsed === false", ["x", "[1]", "null"], ["{}"]),
    ],
)
def test_what_is_missing_null_or_no_json_counts_as_it_does_there(
    assertion: str, passing: list[str], failing: list[str]
) -> None:
    """Worked out by JavaScript's rules: undefined, null, empty objects, and what throws."""
    assert dict.fromkeys(passing, True) == {raw: holds(assertion, raw) for raw in passing}
    assert dict.fromkeys(failing, False) == {raw: holds(assertion, raw) for raw in failing}


@pytest.mark.parametrize(
    ("assertion", "passing", "failing"),
    [
        ("output.meta.stderr === ''", [""], ["warning"]),
        ("!output.meta.stderr", [""], ["warning"]),
        ("output.meta.stderr", ["warning"], [""]),
        ("output.meta.stderr !== 'a \"b\"'", ["", 'a "c"'], ['a "b"']),
        ("output.meta.stderr.includes('warn')", ["a warning\n"], ["", "Warn"]),
        ("!output.meta.stderr.startsWith('Trace')", ["", "a Trace"], ["Traceback"]),
        ("output.meta.stderr.endsWith('é\\n')", ["café\n"], ["cafe\n", "é"]),
    ],
)
def test_standard_error_is_asked_by_an_expression(
    assertion: str, passing: list[str], failing: list[str]
) -> None:
    """As a command of a suite keeps it in `details["stderr"]`."""
    (spec,) = read_assertion(assertion, SCENARIO).postconditions
    check = from_spec(spec)

    for text in (*passing, *failing):
        reply = Reply(value="", details={"stderr": text})
        assert check.check(reply).passed is (text in passing), text
    assert not check.check(Reply(value="")).passed


@pytest.mark.parametrize("raw", ['{"n": "9"}', '{"n": true}', '{"n": [9]}', '{"n": null}'])
def test_where_javascript_would_convert_the_trial_fails(raw: str) -> None:
    """Never more lenient than the original."""
    assert not holds("output.parsed.n > 5", raw)
    assert not holds("output.parsed.n <= 5", raw)


@pytest.mark.parametrize(
    ("assertion", "at", "reason"),
    [
        ("output.meta.stderr.trim() === ''", 18, "`trim` is not carried over"),
        ("output.parsed.x == 5", 16, "write `===`"),
        ("JSON.stringify(output.parsed) === '{}'", 0, "`JSON` is not carried over"),
        ("output.parsed.a + 1 > 2", 16, "'+' is not carried over"),
        ("output.parsed.a === output.parsed.b", 16, "a part of the output and a value"),
        ("output.parsed.a || output.meta.exitCode === 0", 16, "'|' is not carried over"),
        ("!(output.parsed.n > 5)", 1, "a value is expected here, and '('"),
        ("output.parsed.x ? true : false", 16, "'?' is not carried over"),
        ("(output.parsed.tags ?? []).length > 0", 20, "'?' is not carried over"),
        ("output.parsed.items.every(i => i.price > 0)", 28, "'=' is not carried over"),
        ("output.parsed.a?.b.c !== 1", 13, "both `.` and `?.`"),
        ("output.parsed[0] === 1", 0, "this part of the output"),
        ("output.parsed.a[0] > 1", 15, "an element of a list"),
        ("new Date() > 0", 4, "'Date' is not carried over"),
        ("x = 1", 2, "'=' is not carried over"),
        ("require('fs')", 7, "'(' is not carried over"),
        ("process.exit()", 0, "`process` is not carried over"),
        ("output.parsed.a.replace('a', 'b') === 'b'", 15, "`replace` is not carried over"),
        ("/(?<=a)b/.test(output.meta.raw)", 0, "in a pattern is not carried over"),
        ("`${output.meta.raw}` === ''", 0, "'`' is not carried over"),
        ("output.meta.exitCode ===", 24, "a value is expected"),
        ("(output.meta.exitCode === 0", 27, "')' is expected"),
        ("output.meta.exitCode === 0; 1", 26, "';' is not carried over"),
        ("true", 0, "a part of the output and a value"),
        ("output.meta.exitCode === 'x'", 21, "this condition"),
        ("!!output.meta.jsonParsed", 1, "'!' is not carried over"),
        ("(" * 9_000 + "1", 20, "nest at most"),
        ("output.meta.raw.includes(" * 50 + "'a'" + ")" * 50, 524, "nest at most"),
        ("typeof " * 1_000 + "output.parsed.a === 'string'", 7, "'typeof' is not carried over"),
        ("!" * 9_000 + "output.meta.jsonParsed", 1, "'!' is not carried over"),
        (" && ".join(["output.meta.jsonParsed"] * 400), 0, "at most 10,000 characters"),
    ],
)
def test_the_rest_is_refused_where_it_stands(assertion: str, at: int, reason: str) -> None:
    """Each refusal names the part and its place."""
    with pytest.raises(NotCarried) as caught:
        read_assertion(assertion, SCENARIO)

    assert reason in caught.value.reason
    assert at == caught.value.at


def test_lengths_of_texts_come_with_a_note() -> None:
    """JavaScript counts UTF-16 units; only whether there is anything is the same for all texts."""
    assert read_assertion("output.meta.raw.length > 0", SCENARIO).notes == ()
    (note,) = read_assertion("output.meta.raw.length < 200", SCENARIO).notes
    assert "UTF-16" in note


# --- Against JavaScript itself -----------------------------------------------------------------

SCALARS = [0, 1, 2.5, 3, "a", "x", "", "5", True, False, None]
PATHS = [
    *("output.parsed.a", "output.parsed.b", "output.parsed.a.b", "output.parsed.a?.b"),
    *("output.parsed.a?.b.c", "output.parsed['x-y']", "output.parsed.a[0]", "output.parsed[0]"),
]


class Author:
    """Somebody who writes assertions and outputs at random."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def value(self, depth: int = 0) -> Any:
        kind = self.random.randrange(10 if depth < 3 else 7)
        if kind < 7:
            return self.random.choice(SCALARS)
        if kind == 7:
            return [self.value(depth + 1) for _ in range(self.random.randrange(3))]
        keys = [one for one in ("a", "b", "c", "x-y") if self.random.random() < 0.5]
        return {one: self.value(depth + 1) for one in keys}

    def output(self) -> str:
        if self.random.random() < 0.2:
            return self.random.choice(["", "a", "[1]", "null", "{}", '[{"a": 1}]'])
        keys = [one for one in ("a", "b", "x-y", "0") if self.random.random() < 0.7]
        return json.dumps({one: self.value(1) for one in keys})

    def comparison(self) -> str:
        path, pick = self.random.choice(PATHS), self.random.choice
        forms = [
            f"{path} {pick(['===', '!=='])} {pick(['1', 'null', 'undefined', 'true', '`a`'])}",
            f"{path} {pick(['<', '<=', '>', '>='])} {pick(['0', '1', '2.5'])}",
            f"{path} {pick(['==', '!='])} null",
            path,
            f"!{path}",
            f"{path}.length > {pick(['0', '1'])}",
            f"{path}?.length === 0",
            f"typeof {path} === {pick(['`string`', '`object`', '`undefined`', '`number`'])}",
            f"Array.isArray({path})",
            f"{pick(['', '!'])}{path}.includes('a')",
            f"[1, 'a', null].includes({path})",
            "output.meta.exitCode === 0",
            "output.meta.jsonParsed",
            "output.meta.raw.includes('a')",
            f"{pick(['/a/', '/^[0-9]/', '/X/i'])}.test({path})",
        ]
        return pick(forms)

    def assertion(self) -> str:
        one = self.comparison()
        return f"{one} && {self.comparison()}" if self.random.random() < 0.3 else one


@pytest.mark.slow
@pytest.mark.skipif(NODE is None, reason="there is no node to ask")
@pytest.mark.parametrize("seed", range(2))
def test_no_output_passes_here_that_javascript_fails(seed: int) -> None:
    """Random assertions on random outputs, of the wrong types more often than not."""
    author = Author(seed)
    asked: list[dict[str, Any]] = []
    ours: list[bool] = []
    for _ in range(300):
        assertion = author.assertion()
        try:
            specs = read_assertion(assertion, SCENARIO).postconditions
        except NotCarried:
            continue
        checks = [from_spec(one) for one in specs]
        for code in (0, 1, 0, 1, 0, 1):
            raw = author.output()
            reply = Reply(value=raw, exit_code=code, latency_s=1.5)
            ours.append(all(check.check(reply).passed for check in checks))
            known = {"scenario": SCENARIO, "raw": raw, "exitCode": code}
            asked.append({"assertion": assertion, **known})
    theirs = ask_javascript(asked)

    pairs = zip(asked, ours, theirs, strict=True)
    assert [] == [case for case, one, other in pairs if one and not other]
    # Most of what JavaScript passes is of the types it was written for.
    assert sum(ours) > 0.6 * sum(theirs) > 60


WELL_TYPED: dict[str, list[Any]] = {
    "score": [0, 0.5, 0.85, 1, None],
    "answer": ["Paris", "", "Rome", None],
    "items": [[], [{"price": 1, "name": "milk"}], [{"price": 0, "name": "x"}, {"price": 3}], None],
    "error": [None, "boom", ""],
    "meta": [{}, {"ok": True}, {"ok": False}, None],
}
ASSERTIONS = [
    "output.parsed.score > 0.5",
    "output.parsed.score !== undefined && output.parsed.score >= 0.85",
    "output.parsed.answer !== 'Rome'",
    "output.parsed.answer && output.parsed.answer.length > 0",
    "output.parsed.items.length > 0",
    "output.parsed.items?.length === 0",
    "!output.parsed.error",
    "output.parsed.error == null",
    "output.parsed.meta?.ok === true",
    "output.parsed.meta?.ok !== true",
    "output.parsed.meta.ok",
    "!output.parsed.meta.ok",
    "output.meta.jsonParsed && !output.parsed.error && output.parsed.answer !== ''",
    "!output.meta.jsonParsed",
    "['Paris', 'Rome'].includes(output.parsed.answer)",
    "Array.isArray(output.parsed.items) && output.parsed.items.length <= 1",
    "typeof output.parsed.answer === 'string' && output.parsed.answer.startsWith('P')",
    "/^[A-Z][a-z]+$/.test(output.meta.raw) && output.meta.exitCode !== 1",
]


@pytest.mark.slow
@pytest.mark.skipif(NODE is None, reason="there is no node to ask")
def test_outputs_of_the_expected_types_are_judged_exactly_alike() -> None:
    """Every field present, missing or null, in combinations of two, and output that is text."""
    outputs = ["", "Paris", "{}", "[]", "null", "not json {"]
    for one, other in combinations(WELL_TYPED, 2):
        pairs = product(WELL_TYPED[one], WELL_TYPED[other])
        outputs += [json.dumps({one: a, other: b}) for a, b in pairs]
    outputs += [json.dumps({one: a}) for one, values in WELL_TYPED.items() for a in values]
    # A comparison of null with a number converts; that is another test.
    outputs = [raw for raw in dict.fromkeys(outputs) if '"score": null' not in raw]
    asked: list[dict[str, Any]] = [
        {"assertion": one, "scenario": SCENARIO, "raw": raw, "exitCode": code}
        for one in ASSERTIONS
        for raw in outputs
        for code in (0, 1)
    ]
    theirs = ask_javascript(asked)
    checks = {
        one: [from_spec(spec) for spec in read_assertion(one, SCENARIO).postconditions]
        for one in ASSERTIONS
    }

    different = []
    for case, expected in zip(asked, theirs, strict=True):
        reply = Reply(value=case["raw"], exit_code=case["exitCode"], latency_s=1.5)
        if expected is not all(one.check(reply).passed for one in checks[case["assertion"]]):
            different.append(case)
    assert [] == different


def ask_javascript(cases: list[dict[str, Any]]) -> list[bool]:
    """What JavaScript says of every case."""
    if not cases:
        return []
    assert NODE is not None
    answers = subprocess.run(
        [NODE, "--input-type=module", "--eval", ORACLE],
        input="\n".join(map(json.dumps, cases)),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    found = [line == "true" for line in answers.stdout.split()]
    assert len(cases) == len(found)
    return found
