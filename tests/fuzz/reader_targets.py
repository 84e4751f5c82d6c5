"""Everything that reads what somebody else wrote, each as a target of fuzzing.

A target takes any bytes. It returns, or it raises a `TrialwiseError`, which a user sees as a
sentence. Any other exception is a finding. So is an input that takes longer than 10 s or more than
2 GB. The hypothesis tests and the runs with atheris use the same targets.

Lines of journals and recordings and files with a checksum are sealed before they are read, so that
the bytes get beyond the checksum. The first byte of some targets chooses the format.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import trialwise as tw
from trialwise.checks import Check
from trialwise.errors import TrialwiseError
from trialwise.model.plain_json import seal

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


@dataclass(frozen=True)
class Target:
    """One reader."""

    name: str
    read: Callable[[bytes], object]
    """Reads the bytes; raises `TrialwiseError` or nothing."""
    seeds: Callable[[], Iterator[bytes]]
    """Yields inputs that are read without an error, to start from."""
    words: tuple[str, ...] = ()
    """What such files are made of."""

    def __call__(self, data: bytes) -> bool:
        """Return whether the bytes are read; a refusal is a message that can be printed."""
        try:
            self.read(data)
        except TrialwiseError as error:
            message = str(error)
        else:
            return True
        assert message.strip()
        # It can be written anywhere, whatever the input holds.
        message.encode("utf-8", "surrogatepass")
        return False


_JSON_WORDS = (
    *'{}[]:,"\\-.0123456789 \n',
    *("null", "true", "false", "NaN", "1e999", "-0", '""', "{}", "[]", '\\ud800"', "9" * 30),
)


@cache
def _folder() -> Path:
    return Path(mkdtemp(prefix="trialwise-fuzz-"))


def _write(name: str, data: bytes) -> Path:
    path = _folder() / name
    path.write_bytes(data)
    return path


def _read_examples(pattern: str) -> Iterator[bytes]:
    for path in sorted(EXAMPLES.glob(pattern)):
        yield path.read_bytes()


def _dump(*values: Any) -> Iterator[bytes]:
    for value in values:
        yield json.dumps(value).encode()


def _choose(data: bytes, choices: tuple[str, ...]) -> tuple[str, bytes]:
    """Return what the first byte chooses, and the rest."""
    return choices[data[0] % len(choices)] if data else choices[0], data[1:]


def _chosen(number: int, seeds: Iterator[bytes]) -> Iterator[bytes]:
    """Yield seeds with the byte that chooses their format."""
    return (bytes([number]) + one for one in seeds)


# --- Suites -----------------------------------------------------------------------------------


def _load_suite(data: bytes) -> None:
    from trialwise.suite import load_suite

    load_suite(_write("trialwise.yaml", data), environment={"A": "5"}, without_services=True)


_SUITES = (
    b"""\
service: {command: [echo, "{input}", '${A:-b}']}
inputs: [one, {value: [1, 2.5, null], id: two, expected: 5}, "three \\u00e9"]
criteria:
  - {name: a, contains: "555", at_least: 90%}
  - name: b
    never_fails: true
    any_of: [{matches: '[0-9]{3}'}, {not: {parses: json}}]
    json_schema: {type: object, properties: {a: {type: integer}}}
  - {name: c, at_least: 80%, margin: 5%, expression: 'size(output) < 5', trials: 50}
latency: {p95: 800ms}
budget: {money: $2, time: 1h}
""",
    b"""\
{"name": "j", "service": {"http": {"url": "http://localhost:1/", "body": "{input}"}},
 "inputs": ["\\ud83d\\ude00"], "concurrency": 4, "timeout": "2s",
 "criteria": [{"name": "a", "json_path": {"path": "$.a[?@.b > 1]", "equals": 5},
  "at_least": "50%"}]}
""",
)
_SUITE_WORDS = (
    *"-:,[]{}#&*!|>'\"%@`\n\t \r\\",
    *("- ", ": ", "? ", "<<: ", "*a", "&a ", "!!str ", "---\n", "...\n", "%YAML 1.1\n", "\n  "),
    *("service", "inputs", "criteria", "name", "at_least", "contains", "include", "contracts"),
    *("python", "command", "trials", "90%", "5s", "null", ".nan", "0x", "1e999", "${A}", "${"),
    *("\ufeff", "\0", "\u2028", "\U0001f600", "each_input", "gates", "judge", "redact", "matches"),
)


def _suite_seeds() -> Iterator[bytes]:
    yield from _SUITES


def _load_inputs(data: bytes) -> None:
    from trialwise.suite import load_suite

    kind, rest = _choose(data, ("jsonl", "csv"))
    _write("inputs.data", rest)
    suite = (
        f"service: {{command: [echo]}}\ninputs: {{{kind}: inputs.data}}\n"
        "criteria: [{name: a, contains: x, at_least: 50%}]\n"
    )
    load_suite(_write("inputs.yaml", suite.encode()), environment={}, without_services=True)


def _input_seeds() -> Iterator[bytes]:
    yield from _chosen(0, _read_examples("json_extraction/invoices.jsonl"))
    yield b'\x00"one"\n{"value": [1, {"a": null}], "id": "x", "expected": 5, "weight": 2.5}\n'
    yield b'\x01id,value,expected,repetitions\n1,"a ""b""",x,2\n2,c,,1\n'


def _parse_env(data: bytes) -> None:
    from trialwise.regular_files import FileUnreadable, decoded
    from trialwise.suite.loading import parse_env

    with suppress(FileUnreadable):  # which the suite reports with its place
        parse_env(decoded(data))


# --- Expressions and checks -------------------------------------------------------------------


def _check(check: Check, reply: str) -> None:
    check.check(tw.Reply(value=reply))


def _split(data: bytes) -> tuple[str, str]:
    """Return the check's text and the reply, which a NUL byte parts."""
    first, _, rest = data.partition(b"\0")
    return first.decode("utf-8", "surrogateescape"), rest.decode("utf-8", "surrogateescape")


def _evaluate(data: bytes) -> None:
    source, reply = _split(data)
    _check(tw.expression(source), reply)


def _expression_seeds() -> Iterator[bytes]:
    yield b"size(output) < 200 && output.contains('ok')\0it is ok"
    yield b"value.items.exists(x, x.price > 5) || output.matches('^[0-9]+$')\0{\"items\": []}"
    yield b"has(value.a) ? value.a[0] in [1, 2.5, 'x'] : latency_s < 5\0{\"a\": [1]}"


_EXPRESSION_WORDS = (
    *"()[]{}.,:?!<>=+-*/%'\"&| \n",
    *("output", "value", "expected", "latency_s", "tokens", "size(", ".matches(", ".exists(x,"),
    *("&&", "||", "==", "in ", "null", "true", "1u", "0x", "1e999", "b'", "r'", "has(", ".map("),
    *("timestamp(", "duration(", "int(", "bytes(", "type(", "dyn(", "\0"),
)


def _select(data: bytes) -> None:
    path, reply = _split(data)
    _check(tw.json_path(path, matches="^[a-z]*$"), reply)


def _path_seeds() -> Iterator[bytes]:
    yield b'$.a[0]\0{"a": ["x"]}'
    yield b"$..b[?@.c > 1 && match(@.d, '[a-z]+')]['e','f'][-1:5:2]\0{\"b\": [{\"c\": 2}]}"
    yield b"$[?count(@.*) == length(@)]\0[[1, 2]]"


def _validate(data: bytes) -> None:
    schema, reply = _split(data)
    try:
        value = json.loads(schema)
    except (ValueError, RecursionError):
        return
    _check(tw.json_schema(value), reply)


def _schema_seeds() -> Iterator[bytes]:
    for path in sorted(EXAMPLES.glob("**/*.schema.json")):
        yield path.read_bytes() + b'\0{"total": 5}'
    yield b'{"$ref": "#/$defs/a", "$defs": {"a": {"pattern": "^a+$"}}}\0"aaa"'
    yield b'{"items": {"type": "integer"}, "uniqueItems": true, "maxItems": 2}\0[1, 2]'


_SCHEMA_WORDS = (
    *_JSON_WORDS,
    *('"$ref"', '"#/$defs/a"', '"$defs"', '"pattern"', '"type"', '"items"', '"properties"'),
    *('"allOf"', '"not"', '"$dynamicRef"', '"$id"', '"http://localhost:1/x"', '"contains"', "\0"),
    *('"unevaluatedProperties"', '"patternProperties"', '"dependentSchemas"', '"multipleOf"'),
)


def _parse_reply(data: bytes) -> None:
    kind, rest = _choose(data, ("json", "yaml", "xml", "number"))
    _check(tw.parses(kind), rest.decode("utf-8", "surrogateescape"))  # type: ignore[arg-type]


def _reply_seeds() -> Iterator[bytes]:
    yield b'\x00{"a": [1, 2.5, null, "x"]}'
    yield b"\x01a: &a [1, {b: c}]\nd: *a\n"
    yield b"\x02<?xml version='1.0'?><a b='c'>&lt;<![CDATA[x]]><!-- y --></a>"
    yield b"\x03 -1.5e3 "


def _match(data: bytes) -> None:
    pattern, reply = _split(data)
    _check(tw.matches(pattern), reply[:2000])


def _pattern_seeds() -> Iterator[bytes]:
    yield b"\\b[0-9]{3}\\b\0It is 555."
    yield b"(?P<a>x|y)+?(?=z)(?P=a)*[^\\W_]\0xyz"


# --- Traces -----------------------------------------------------------------------------------

_TRACE_FORMATS = ("", "envelope", "openai", "anthropic", "otlp", "inspect", "jsonl")


def _read_traces(data: bytes) -> None:
    kind, rest = _choose(data, _TRACE_FORMATS)
    for trace in tw.traces.read_traces(rest, kind or None):
        reply = tw.Reply(value="x", details=trace.to_dict())
        tw.tool_called("find").check(reply)
        tw.tool_not_called("find").check(reply)
        tw.Trace.from_dict(trace.to_dict())


_CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"a": 1}'}}
_OPENAI = [
    {"role": "user", "content": "find it"},
    {"role": "assistant", "content": None, "tool_calls": [_CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "here"}]},
    {"role": "assistant", "content": "It is here."},
]
_ANTHROPIC = [
    {"role": "user", "content": [{"type": "text", "text": "find it"}]},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t1", "name": "find", "input": {"a": 1}}],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "here"}]},
]
_SPAN = {
    "name": "execute_tool find",
    "spanId": "02",
    "parentSpanId": "01",
    "startTimeUnixNano": "1",
    "endTimeUnixNano": "2",
    "attributes": [
        {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
        {"key": "gen_ai.tool.name", "value": {"stringValue": "find"}},
        {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "5"}},
        {"key": "gen_ai.input.messages", "value": {"stringValue": json.dumps(_OPENAI)}},
    ],
    "status": {"code": 1},
}
_OTLP = {"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": [_SPAN]}]}]}
_ENVELOPE = {
    "conversation": [{"role": "user", "content": "x"}],
    "tool_calls": [{"name": "find", "args": {"a": 1}, "result": "here", "error": None}],
}
_INSPECT = {
    "version": 2,
    "status": "success",
    "eval": {"task": "t", "created": "2026-01-01T00:00:00Z", "model": "m"},
    "plan": {},
    "results": {"scores": [{"name": "match", "metrics": {}}]},
    "samples": [
        {
            "id": 1,
            "epoch": 1,
            "input": "q",
            "target": "a",
            "messages": _OPENAI,
            "scores": {"match": {"value": "C", "answer": "a"}},
            "output": {"model": "m", "choices": [{"message": _OPENAI[3]}], "usage": {}},
            "model_usage": {"m": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}},
        }
    ],
}


def _trace_seeds() -> Iterator[bytes]:
    for number, document in ((0, _OPENAI), (3, _ANTHROPIC), (4, _OTLP), (1, _ENVELOPE)):
        yield from _chosen(number, _dump(document))
    yield from _chosen(5, _dump(_INSPECT))
    yield b'\x06{"type": "tool_call", "name": "find", "args": {}}\n{"type": "message", "text": "x"}'


_TRACE_WORDS = (
    *_JSON_WORDS,
    *('"role"', '"content"', '"tool_calls"', '"type"', '"tool_use"', '"messages"', '"choices"'),
    *('"resourceSpans"', '"attributes"', '"stringValue"', '"gen_ai.tool.name"', '"conversation"'),
)


# --- Results of other tools -------------------------------------------------------------------

_OUTCOME_FILES = ("a.jsonl", "a.csv", "a.xml", "a.json", "a.eval")


def _read_outcomes(data: bytes) -> None:
    name, rest = _choose(data, _OUTCOME_FILES)
    tw.outcomes.read_outcomes(_write(name, rest))


_PROMPTFOO = {
    "evalId": "e",
    "results": {
        "version": 3,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "prompts": [],
        "results": [
            {
                "success": True,
                "score": 1,
                "latencyMs": 5,
                "cost": 0.01,
                "promptIdx": 0,
                "testIdx": 0,
                "vars": {"q": "x"},
                "response": {"output": "yes", "tokenUsage": {"total": 5}},
                "namedScores": {"good": 0.5},
                "gradingResult": {"pass": True, "score": 1, "reason": "r", "componentResults": []},
            }
        ],
    },
}
_VALLY = {
    "type": "trial-result",
    "stimulus": "s",
    "model": "m",
    "status": "success",
    "durationMs": 5,
    "gradeResult": {"passed": True, "score": 1, "details": [{"name": "a", "passed": True}]},
    "trajectory": {"output": "x", "metrics": {"tokenUsage": {"inputTokens": 1}}},
}
_DEEPEVAL = {
    "testRunData": {
        "testCases": [
            {"input": "q", "success": True, "metricsData": [{"name": "m", "success": True}]}
        ]
    }
}
_PYDANTIC_EVALS = {
    "name": "n",
    "cases": [{"name": "c", "inputs": "q", "assertions": {"a": {"value": True}}, "scores": {}}],
    "failures": [{"name": "d", "error_message": "e"}],
}
_LM_EVAL = [{"doc_id": 0, "resps": [["4"]], "filtered_resps": ["4"], "filter": "none", "acc": 1.0}]
_LANGFUSE = {"data": [{"traceId": "t", "name": "n", "dataType": "BOOLEAN", "value": 1}]}
_JUNIT = b"""<?xml version="1.0"?><testsuites><testsuite name="s" tests="2" time="0.5">
<testcase classname="c" name="one[1]" time="0.1"/>
<testcase classname="c" name="two"><failure message="m">text</failure></testcase>
</testsuite></testsuites>"""


def _outcome_seeds() -> Iterator[bytes]:
    from io import BytesIO
    from zipfile import ZipFile

    yield b'\x00{"input": "a", "passed": true, "latency_s": 0.5}\n{"input": "b", "passed": false}\n'
    yield b"\x01input,passed,trial\na,true,1\nb,no,2\n"
    yield b"\x02" + _JUNIT
    yield from _chosen(3, _dump(_INSPECT, _PROMPTFOO, _DEEPEVAL, _PYDANTIC_EVALS, _LANGFUSE))
    yield from _chosen(0, _dump(_VALLY, *_LM_EVAL))
    archive = BytesIO()
    with ZipFile(archive, "w") as file:
        header = {key: value for key, value in _INSPECT.items() if key != "samples"}
        file.writestr("header.json", json.dumps(header))
        file.writestr("samples/1_epoch_1.json", json.dumps(_INSPECT["samples"][0]))  # type: ignore[index]
    yield b"\x04" + archive.getvalue()


_OUTCOME_WORDS = (
    *_JSON_WORDS,
    *('"passed"', '"input"', '"score"', '"samples"', '"results"', "<testcase", "<failure", "/>"),
    *("<!DOCTYPE a [<!ENTITY b 'c'>]>", "&b;", "PK\x03\x04", "PK\x01\x02", "PK\x05\x06"),
)


# --- What trialwise stored --------------------------------------------------------------------


@cache
def _stored_run() -> Path:
    """Return the folder of a decided run, of which each target replaces one file."""
    result = tw.run(
        tw.Contract(
            "stored",
            lambda question: {"yes": question},
            [
                tw.Criterion("right", tw.contains("one"), at_least=0.3),
                tw.Criterion("kind", tw.not_contains("fool"), never_fails=True),
            ],
            latency=tw.Latency.within(p50=60.0),
        ),
        inputs=["one", "two"],
        trials=12,
        curtail=False,
        store=_folder() / "store",
        progress=False,
        seed=1,
    )
    assert result.path is not None
    return result.path


@cache
def _kept(name: str) -> bytes:
    return (_stored_run() / name).read_bytes()


def _unseal(content: bytes) -> bytes:
    """Return the lines of a sealed file without their checksums."""
    return b"\n".join(line[: line.rindex(b',"checksum"')] + b"}" for line in content.splitlines())


def _seal_lines(data: bytes) -> bytes:
    return b"".join(seal(line, number=n) for n, line in enumerate(data.split(b"\n")))


def _read_run(name: str, data: bytes) -> None:
    """Read a stored run of which one file is replaced, and show it in every format."""
    from trialwise.reports.formats import BUILT_IN, ReportSource
    from trialwise.stores.runs import RunStore

    run = _stored_run()
    whole = _kept(name)
    (run / name).write_bytes(data)
    try:
        store = RunStore(run.parents[1])
        store.list()
        stored = store.open(run.name)
        stored.count_torn_bytes()
        record = stored.record()
        source = ReportSource(records=[record], name="suite")
        for one in BUILT_IN.values():
            one.render(source).encode("utf-8", "surrogatepass")
    finally:
        (run / name).write_bytes(whole)


def _target_of(target: str, name: str, *, is_sealed: bool) -> Target:
    def read(data: bytes) -> None:
        _read_run(name, _seal_lines(data) if is_sealed else data)

    def seeds() -> Iterator[bytes]:
        yield _unseal(_kept(name)) if is_sealed else _kept(name)

    return Target(target, read, seeds, _JSON_WORDS)


def _verify(data: bytes) -> None:
    """Decide a run again whose record was changed, which holds its plan."""
    from trialwise.runtime.verifying import verify
    from trialwise.stores.runs import RunStore

    run = _stored_run()
    whole = _kept("record.json")
    (run / "record.json").write_bytes(data)
    try:
        stored = RunStore(run.parents[1]).open(run.name)
        verify(stored.record(), known_hash=stored.plan_hash, checksums=stored.compare_checksums())
    finally:
        (run / "record.json").write_bytes(whole)


def _read_raw_journal(data: bytes) -> None:
    """Whatever the bytes are: a refusal, or trials that were written, in their places."""
    from trialwise.stores.journal import read_journal

    written = read_journal(_stored_run() / "journal.jsonl")
    found = read_journal(_write("journal.jsonl", data))
    if data.startswith(b'{"') and data.split(b"\n")[0] == _kept("journal.jsonl").split(b"\n")[0]:
        assert found == written[: len(found)] or data.count(b"\n") > len(written)


def _load_baseline(data: bytes) -> None:
    from trialwise.stores._files import checksum_of
    from trialwise.stores.baselines import BaselineStore

    folder = _folder() / "baselines" / "rag-answer"
    folder.mkdir(parents=True, exist_ok=True)
    with suppress(ValueError, RecursionError, AttributeError, TypeError):
        document = json.loads(data)
        document["checksum"] = checksum_of(document)
        data = json.dumps(document).encode()
    path = folder / "2026-11.json"
    path.write_bytes(data)
    BaselineStore(_folder() / "baselines").load(path)


def _replay(data: bytes) -> None:
    import anyio

    from trialwise.engine.ports import TrialContext
    from trialwise.services.replay import PREFIX, ReplayService

    lines = [seal(PREFIX.encode() + line.removeprefix(b"{")) for line in data.split(b"\n")]
    service = ReplayService(lines)
    for index in range(3):
        with suppress(TrialwiseError):
            anyio.run(service.call, TrialContext(index=index, input="yes", seed=1))


def _tape_seeds() -> Iterator[bytes]:
    import anyio

    from trialwise.engine.ports import TrialContext
    from trialwise.services import CallableService
    from trialwise.services.replay import PREFIX, RecordingService

    lines: list[bytes] = []
    for service in (str.upper, int):
        recording = RecordingService(CallableService(service), lines.append)
        with suppress(Exception):
            anyio.run(recording.call, TrialContext(index=len(lines), input="yes", seed=1))
    yield b"\n".join(b"{" + _unseal(one).removeprefix(PREFIX.encode()) for one in lines)


def _read_judge_files(data: bytes) -> None:
    from trialwise.judges.calibration import read_calibration
    from trialwise.judges.gold import read_gold

    kind, rest = _choose(data, ("gold.jsonl", "gold.yaml", "calibration.json"))
    path = _write(kind, rest)
    if kind == "calibration.json":
        read_calibration(path)
    else:
        read_gold(path)


def _judge_seeds() -> Iterator[bytes]:
    yield from _chosen(0, _read_examples("judge/gold.jsonl"))
    yield from _chosen(2, _read_examples("judge/gold.calibration.json"))


def _read_votes(data: bytes) -> None:
    from trialwise.judges.votes import read_choice, read_vote

    answer = data.decode("utf-8", "surrogateescape")
    for read in (read_vote, read_choice):
        with suppress(ValueError):  # which the judge reports as an answer without a vote
            read(answer)


def _vote_seeds() -> Iterator[bytes]:
    yield b'Sure: {"pass": true, "confidence": 0.9, "reasoning": "fine"}'
    yield b'{"better": "second", "much": true, "reasoning": "shorter"}'


# --- Suites of other tools --------------------------------------------------------------------


def _import(data: bytes) -> None:
    from trialwise.contrib.importers import import_suite, render_yaml

    _write("scenario.yaml", b"input: x\nmetadata: {a: [1]}\n")
    imported = import_suite(_write("foreign.yaml", data))
    render_yaml(imported).encode()
    for name, text in imported.files.items():
        assert Path(name).name == name
        if name.endswith(".py"):
            compile(text, name, "exec", dont_inherit=True)


def _foreign_seeds() -> Iterator[bytes]:
    yield b"""\
adapter: {command: "agent --scenario {{scenario}}", timeout: 100}
correction: bh
studies:
  - name: one
    scenario: scenario.yaml
    max_error_rate: 0.2
    contracts:
      - {name: a, type: code, assert: "output.parsed.x > 5 && !/a+/i.test(output.meta.raw)"}
      - {name: b, type: code, assert: output.meta.exitCode === 0, threshold: 1.0, trials: 20}
"""
    yield b"""\
format: mavai-contract/1
contract: c
service: s
roots: {r: .}
transforms: {doc: json, page: xml}
criteria:
  - name: x
    threshold: 0.9
    contains: a
    postconditions:
      - {in: doc, path: "$.a[*]", set-of: {required: [a], optional: [b, 1, null]}, optional: true}
      - {in: page, path: "/r/b[@c='d']", eq: "5.0"}
inputs: [a, [1, true], {text: b}, {input: {text: {file: "@r/scenario.yaml"}}, expected: {is: true}}]
latency: {p95: 5, p99: 6}
"""
    yield b"""\
format: mavai-services/1
services:
  s:
    type: language-model
    configuration: {system-prompt: {file: scenario.yaml}, provider: openai, top-p: 0.5}
    explorations: [{top-p: 0.6}]
    optimizations: [{stepper: linear-sweep, stepper-config: {key: top-p, step: 1, stop: 2},
      max-iterations: 3, initial: {top-p: 0.1}}]
"""
    yield b"""\
prompts: ["Say {{q}}", {raw: '[{"role": "user", "content": "{{q}}"}]', label: chat}]
providers: ["openai:chat:m", echo, {id: http, config: {url: "http://a", body: {q: "{{q}}"}}}]
defaultTest: {vars: {k: 1}, assert: [{type: not-icontains, value: no}]}
tests:
  - {vars: {q: [a, b]}, assert: [{type: equals, value: "{{q}}"}, {type: regex, value: "a+$"}]}
  - {vars: {q: c}, threshold: 0.5, assert: [{type: is-json, value: {type: object}, weight: 2},
      {type: assert-set, assert: [{type: contains-any, value: "a, b"}, {type: contains-json}]}]}
  - {vars: {q: d}, assert: [{type: llm-rubric, value: "Good {{q}}"}, {type: javascript, value: x}]}
"""
    yield b"""\
name: skill
defaults: {runs: 3, timeout: 5m, executor: copilot-sdk}
scoring: {threshold: 0.8, weights: {output-matches: 2.0, completed: 1}}
stimuli:
  - name: s
    prompt: Do it.
    rubric: [It is done.]
    graders:
      - {type: output-matches, config: {pattern: "(?i)done|ok"}}
      - {type: completed}
      - {type: tool-calls, config: {required: [{name: "^bash$"}]}}
      - {type: prompt}
"""
    yield b"""\
servers: {w: {command: [python, w.py], env: {A: b}}, u: {url: "http://a"}}
agents:
  - {name: a, models: [gpt-4o, claude-x], servers: [w], prompt: Hi, runs: 3, stability: {},
     expect: [{target: "tool_calls[0].name", matcher: {exact: find}},
       {target: conversation.tokens.total, matcher: {not: {schema: {minimum: 5}}}}]}
"""


_FOREIGN_WORDS = (
    *"-:,[]{}#&*!|>'\"%@`\n\t \r\\(/)$?=.+^~;",
    *("- ", ": ", "\n  ", "&a ", "*a", "!!str ", "---\n", "null", "true", ".nan", "1e999", "-1"),
    *("output", ".parsed", "=>", "&&", "||", "===", "typeof ", "/a/", "in ", "?.", "[0]", "i"),
    *("prompts", "tests", "assert", "type", "vars", "{{q}}", "{%", "file://", "threshold"),
    *("stimuli", "graders", "config", "pattern", "servers", "agents", "expect", "matcher"),
    *("format", "criteria", "studies", "services", "in: raw", "path: $", "${A}", "{{scenario}}"),
)

TARGETS = {
    one.name: one
    for one in (
        Target("suite", _load_suite, _suite_seeds, _SUITE_WORDS),
        Target("inputs", _load_inputs, _input_seeds, (*_JSON_WORDS, '""', ",", "id", "value")),
        Target("environment", _parse_env, lambda: iter([b"# k\nexport A='b c'\nD=e # f\n"])),
        Target("expression", _evaluate, _expression_seeds, _EXPRESSION_WORDS),
        Target("json-path", _select, _path_seeds, (*"$@.*[]?():,'!=<>&|-", "..", "count(", "\0")),
        Target("json-schema", _validate, _schema_seeds, _SCHEMA_WORDS),
        Target("pattern", _match, _pattern_seeds, (*"()[]{}?*+|^$.\\-,0a", "(?P<a>", "(?:", "\0")),
        Target("reply", _parse_reply, _reply_seeds, (*_SUITE_WORDS, *_OUTCOME_WORDS)),
        Target("trace", _read_traces, _trace_seeds, _TRACE_WORDS),
        Target("outcomes", _read_outcomes, _outcome_seeds, _OUTCOME_WORDS),
        Target("raw-journal", _read_raw_journal, lambda: iter([_kept("journal.jsonl")])),
        _target_of("journal", "journal.jsonl", is_sealed=True),
        _target_of("texts", "texts.jsonl", is_sealed=True),
        _target_of("plan", "plan.json", is_sealed=False),
        _target_of("record", "record.json", is_sealed=False),
        Target("verify", _verify, lambda: iter([_kept("record.json")]), _JSON_WORDS),
        Target(
            "baseline",
            _load_baseline,
            lambda: _read_examples("rag_answer/baselines/*/*.json"),
            _JSON_WORDS,
        ),
        Target("recording", _replay, _tape_seeds, _JSON_WORDS),
        Target("judge-files", _read_judge_files, _judge_seeds, (*_JSON_WORDS, "units:", "- ")),
        Target("judge-answer", _read_votes, _vote_seeds, (*_JSON_WORDS, '"pass"', '"better"')),
        Target("import", _import, _foreign_seeds, _FOREIGN_WORDS),
    )
}
