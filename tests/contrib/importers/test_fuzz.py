"""Whatever the files hold: a suite that loads, or `ImportRefused`, and nothing else."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from trialwise.contrib.importers import Imported, ImportRefused, import_suite, render_yaml
from trialwise.contrib.importers.cerberus.assertion_idioms import read_assertion
from trialwise.contrib.importers.cerberus.assertion_patterns import translate_pattern
from trialwise.contrib.importers.cerberus.assertion_syntax import NotCarried
from trialwise.contrib.importers.mavai.xpath_selection import XPathProblem, parse_xpath

CERBERUS = """\
adapter: {command: "agent --scenario {{scenario}}", timeout: 100}
correction: bh
judges: [{model: gpt-4o}, {model: claude-x}]
studies:
  - name: one
    scenario: scenario.yaml
    max_error_rate: 0.2
    contracts:
      - {name: a, type: code, assert: "output.parsed.x > 5 && !/a+/i.test(output.meta.raw)"}
      - {name: b, type: code, assert: output.meta.exitCode === 0, threshold: 1.0, trials: 20}
      - {name: c, type: judge, rubric: Be kind., judge_panel: 3, gold_set: scenario.yaml}
"""
CONTRACT = """\
format: mavai-contract/1
contract: c
service: s
roots: {r: .}
transforms: {doc: json, page: xml}
criteria:
  - name: x
    threshold: 0.9
    optional-slack: 20%
    contains: a
    postconditions:
      - {in: doc, path: "$.a[*]", set-of: {required: [a], optional: [b, 1, null]}, optional: true}
      - {in: page, path: "/r/b[@c='d']", eq: "5.0"}
inputs: [a, [1, true], {text: b}, {input: {text: {file: "@r/scenario.yaml"}}, expected: {is: true}}]
latency: {p95: 5, p99: 6}
"""
SERVICES = """\
format: mavai-services/1
services:
  s:
    type: language-model
    configuration: {system-prompt: {file: scenario.yaml}, provider: openai, top-p: 0.5}
    explorations: [{top-p: 0.6}]
    optimizations: [{stepper: linear-sweep, stepper-config: {key: top-p, step: 1, stop: 2},
      max-iterations: 3, initial: {top-p: 0.1}}]
"""
PROMPTFOO = """\
description: d
prompts: ["Say {{q}}", {raw: '[{"role": "user", "content": "{{q}}"}]', label: chat}]
providers: ["openai:chat:m", echo, "exec: python a.py",
  {id: http, config: {url: "http://a", body: {q: "{{q}}"}}}]
assertionTemplates: {t: {type: regex, value: "a+$"}}
defaultTest: {vars: {k: 1}, options: {provider: "openai:m"},
  assert: [{type: not-icontains, value: no}]}
tests:
  - {vars: {q: [a, b]}, assert: [{type: equals, value: "{{q}}"}, {$ref: "#/assertionTemplates/t"}]}
  - {vars: {q: c}, threshold: 0.5, assert: [{type: is-json, value: {type: object}, weight: 2},
      {type: assert-set, assert: [{type: contains-any, value: "a, b"},
        {type: cost, threshold: 1}]}]}
  - {vars: {q: d}, assert: [{type: llm-rubric, value: "Good {{q}}"}, {type: javascript, value: x}]}
"""
VALLY = """\
name: skill
defaults: {runs: 3, timeout: 5m, executor: copilot-sdk}
scoring: {threshold: 0.8, weights: {output-matches: 2.0, completed: 1}}
stimuli:
  - name: s
    prompt: Do it.
    rubric: [It is done.]
    graders: [{type: output-matches, config: {pattern: "(?i)done|ok"}}, {type: completed},
      {type: tool-calls, config: {required: [{name: "^bash$"}]}}, {type: prompt}]
"""
MCPTEST = """\
servers: {w: {command: [python, w.py], env: {A: b}}, u: {url: "http://a"}}
agents:
  - {name: a, models: [gpt-4o, claude-x], servers: [w], prompt: Hi, runs: 3, stability: {},
     expect: [{target: "tool_calls[0].name", matcher: {exact: find}},
       {target: conversation.tokens.total, matcher: {not: {schema: {minimum: 5}}}}]}
"""
FILES = [CERBERUS, CONTRACT, SERVICES, PROMPTFOO, VALLY, MCPTEST]
WORDS = [
    *"-:,[]{}#&*!|>'\"%@`\n\t \r\\(/)$?=.+^~;",
    *("- ", ": ", "\n  ", "&a ", "*a", "!!str ", "---\n", "null", "true", ".nan", "1e999", "-1"),
    *("output", ".parsed", "=>", "&&", "||", "===", "typeof ", "/a/", "in ", "?.", "[0]", "i"),
    *(
        "prompts",
        "tests",
        "assert",
        "type",
        "{{q}}",
        "file://",
        "format",
        "criteria",
        "studies",
        "services",
        "in: raw",
        "path: $",
        "${A}",
        "{{scenario}}",
    ),
    *("\ufeff", "\x00", "\u2028", "\U0001f600", "\ud800", "é", "0" * 50),
]
FUZZ = settings(
    max_examples=250,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def check(content: bytes, folder: Path) -> Imported | None:
    """Import it; every problem has a place and a message of one line."""
    (folder / "scenario.yaml").write_text("input: x\nmetadata: {a: [1]}\n", encoding="utf-8")
    path = folder / "file.yaml"
    path.write_bytes(content)
    try:
        imported = import_suite(path)
    except ImportRefused as error:
        refusal = error
    else:
        return sound(imported)
    assert refusal.problems
    for problem in refusal.problems:
        assert problem.line >= 1
        assert problem.column >= 1
        assert problem.message.isprintable(), problem.message
    # It can be written anywhere, whatever the file holds.
    str(refusal).encode()
    return None


def sound(imported: Imported) -> Imported:
    """What was imported can be written, and its modules are Python."""
    render_yaml(imported).encode()
    for name, text in imported.files.items():
        assert Path(name).name == name
        if name.endswith(".py"):
            compile(text, name, "exec", dont_inherit=True)
    return imported


def test_the_files_themselves_are_imported(tmp_path: Path) -> None:
    """What is changed below is sound before."""
    assert all(check(text.encode(), tmp_path) is not None for text in FILES)


@pytest.mark.slow
@FUZZ
@given(st.binary(max_size=200))
@example(b"\xff\xfe")
@example(b"\x00")
@example(b"a: " + b"[" * 5000)
@example(b"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]")
def test_bytes(tmp_path: Path, content: bytes) -> None:
    """No file at all, as far as YAML goes."""
    check(content, tmp_path)


@pytest.mark.slow
@FUZZ
@given(st.sampled_from(FILES), st.data())
def test_files_with_changes_anywhere(tmp_path: Path, text: str, data: st.DataObject) -> None:
    """Words put in, cut out or doubled, up to four times."""
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.sampled_from([0, 0, 1, 5, 20])))
        text = text[:start] + data.draw(st.sampled_from(WORDS)) + text[end:]
    check(text.encode("utf-8", "surrogatepass"), tmp_path)


VALUES: list[Any] = [
    *(None, True, 0, -1, 0.5, 10**40, "", "x", "{{q}}", "{{ a | b }}", "file://../x", "(", "30s"),
    *([], {}, [1], {"a": 1}, [[]], {"type": "x"}, {"type": "contains"}, {"$ref": "#/x"}, "${A}"),
]


@pytest.mark.slow
@FUZZ
@given(st.sampled_from(FILES), st.data())
@example(VALLY.replace('[{name: "^bash$"}]', "true"), None)
@example(
    PROMPTFOO.replace("{type: assert-set, assert: [", "{type: assert-set, assert: 5, x: ["), None
)
@example(SERVICES.replace("key: top-p", "key: {a: b}"), None)
def test_values_of_another_kind_anywhere(
    tmp_path: Path, text: str, data: st.DataObject | None
) -> None:
    """A text for a list, a list for a mapping, and so on, up to three times."""
    document = YAML(typ="safe").load(text)
    for _ in range(0 if data is None else data.draw(st.integers(1, 3))):
        assert data is not None
        place = document
        while isinstance(place, dict | list) and place:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = data.draw(st.sampled_from(keys))
            if not place[key] or data.draw(st.integers(0, 3)) == 0:
                place[key] = data.draw(st.sampled_from(VALUES))
                break
            if not isinstance(place[key], dict | list):
                place[key] = data.draw(st.sampled_from(VALUES))
                break
            place = place[key]
    check(json.dumps(document).encode(), tmp_path)


@FUZZ
@given(st.lists(st.sampled_from(WORDS), max_size=25).map("".join) | st.text(max_size=40))
def test_expressions(source: str) -> None:
    """Of JavaScript, of patterns, of XPath: read or refused, and never run."""
    for read in (
        lambda: read_assertion(source, {"input": "x"}),
        lambda: translate_pattern(source, "", 0),
        lambda: parse_xpath(source),
    ):
        with suppress(NotCarried, XPathProblem):
            read()


def test_a_file_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    """Before it is parsed, and however it is named."""
    assert check(b"a: b\n" * 300_000, tmp_path) is None
    assert check(b"x: 1\n" + b"- y\n" * 90_000, tmp_path) is None
    (tmp_path / "folder").mkdir()
    for name in ("absent.yaml", "folder"):
        with pytest.raises(ImportRefused, match="the file"):
            import_suite(tmp_path / name)
