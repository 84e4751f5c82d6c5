"""Whatever the file holds: a suite, or a `SuiteError`, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from trialwise.suite import SuiteError, load_suite

VALID = b"""\
# a suite
x: &x {timeout: 2s}
service: {command: [echo, "{input}", '${A:-b}']}
inputs: [one, {value: [1, 2.5, null], id: two}, "three \\u00e9"]
criteria:
  - {name: a, contains: "555", at_least: 90%}
  - name: b
    never_fails: true
    any_of: [{matches: '[0-9]{3}'}, {not: {parses: json}}]
    json_schema: {type: object, properties: {a: {type: integer}}}
  - {name: c, no_worse_than: baseline, expression: 'size(output) < 5', trials: 50}
latency: {p95: 800ms}
budget: {money: $2, time: 1h}
""".replace(b"x: &x {timeout: 2s}\n", b"")

WORDS = [
    *b"-:,[]{}#&*!|>'\"%@`\n\t \r\\".decode(),
    "- ", ": ", "? ", "<<: ", "*a", "&a ", "!!str ", "---\n", "...\n", "%YAML 1.1\n", "\n  ",
    "service", "inputs", "criteria", "name", "at_least", "contains", "include", "contracts",
    "python", "command", "trials", "90%", "5s", "null", ".nan", "0x", "1e999", "${A}", "${",
    "\ufeff", "\x00", "\u2028", "\U0001f600", "é",
]  # fmt: skip

FUZZ = settings(
    max_examples=300,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def check(content: bytes, tmp_path: Path) -> None:
    """Load it; every problem has a place that exists and a message of one line."""
    path = tmp_path / "trialwise.yaml"
    path.write_bytes(content)
    try:
        load_suite(path, environment={"A": "5"})
    except SuiteError as error:
        refusal = error
    else:
        return
    assert refusal.problems
    for problem in refusal.problems:
        assert problem.line >= 1
        assert problem.column >= 1
        assert problem.message.isprintable()
    # It can be written anywhere, whatever the file holds.
    str(refusal).encode()


def test_the_suite_that_is_changed_below_is_one(tmp_path: Path) -> None:
    """Otherwise the changes would not reach far."""
    (tmp_path / "trialwise.yaml").write_bytes(VALID)

    assert load_suite(tmp_path / "trialwise.yaml", environment={}).contracts


@FUZZ
@given(content=st.binary(max_size=60))
@example(content=b"\xef\xbb\xbf")
@example(content=b"\xff\xfea\x00")
@example(content=b"a: \xed\xa0\x80")
@example(content=b"\x00")
def test_any_bytes(content: bytes, tmp_path: Path) -> None:
    """Also those that are no text."""
    check(content, tmp_path)


@pytest.mark.slow
@FUZZ
@given(words=st.lists(st.sampled_from(WORDS), max_size=25))
def test_any_yaml(words: list[str], tmp_path: Path) -> None:
    """Texts made of what YAML is made of."""
    check("".join(words).encode(), tmp_path)


@pytest.mark.slow
@FUZZ
@given(data=st.data())
def test_a_suite_with_any_change(data: st.DataObject, tmp_path: Path) -> None:
    """A piece cut out, doubled, moved or replaced."""
    content = VALID
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(content)))
        end = data.draw(st.integers(start, min(len(content), start + 30)))
        piece = data.draw(
            st.one_of(
                st.just(b""),
                st.sampled_from(WORDS).map(str.encode),
                st.binary(max_size=4),
                st.just(content[start:end] * 2),
            )
        )
        content = content[:start] + piece + content[end:]
    check(content, tmp_path)
