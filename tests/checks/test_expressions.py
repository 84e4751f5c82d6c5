"""Expressions in CEL: checked when built, evaluated without surprises."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise import checks
from trialwise.errors import InvalidArgument
from trialwise.model.reply import Reply, Usage
from trialwise.model.trial import FailReason

FULL = Reply(
    value='{"answer": 555, "tags": ["ok", "short"], "score": 0.5}',
    latency_s=1.5,
    usage=Usage(input_tokens=10, output_tokens=20),
    cost_usd=0.01,
    exit_code=0,
    details={"input": "What is 15 * 37?"},
)


@pytest.mark.parametrize(
    "source",
    [
        "size(output) < 200 && output.contains('ok')",
        "value.answer == 555",
        "value.answer == 555.0",
        "value.score > 0 && value.score < 1",
        "value.tags.exists(tag, tag == 'ok')",
        "'ok' in value.tags",
        "!has(value.missing)",
        "latency_s < 2",
        "latency_s < 2.0",
        "tokens == 30",
        "cost_usd <= 0.01",
        "exit_code == 0",
        "input.contains('15')",
        "output.matches('5{3}')",
        "true",
    ],
)
def test_it_is_true(source: str) -> None:
    """Every variable is there, with the type one would expect."""
    result = checks.expression(source).check(FULL)

    assert result.passed, result


@pytest.mark.parametrize(
    ("source", "evidence"),
    [
        ("output == 'x'", '{"answer": 555, "tags": ["ok", "short"], "score": 0.5}'),
        ("latency_s < 1", "latency_s = 1.5"),
        ("tokens < 5 && cost_usd < 1", "cost_usd = 0.01, tokens = 30"),
    ],
)
def test_it_is_false(source: str, evidence: str) -> None:
    """The failure quotes the expression and shows what it looked at."""
    result = checks.expression(source).check(FULL)

    assert (FailReason.CONDITION, f"{source} is false") == (result.reason, result.explanation)
    assert evidence == result.evidence


@pytest.mark.parametrize(
    ("source", "reply", "reason", "explanation"),
    [
        ("tokens < 5", Reply(value="x"), "no-value", "tokens is not known for this reply"),
        ("cost_usd < 5", Reply(value="x"), "no-value", "cost_usd is not known for this reply"),
        ("exit_code == 0", Reply(value="x"), "no-value", "exit_code is not known for this reply"),
        ("input == 'x'", Reply(value="x"), "no-value", "the trial's input is not known"),
        ("output == 'x'", Reply(value=None), "no-value", "there is no reply"),
        ("value.a == 1", Reply(value="no JSON"), "transform", "the reply is not JSON"),
        ("value.a == 1", Reply(value="{}"), "transform", 'Key not found in map : "a"'),
        ("value > 1", Reply(value='"x"'), "transform", "No matching overloads"),
        ("value.a", Reply(value='{"a": 5}'), "transform", "value.a gives no bool"),
        ("int(output) == 1", Reply(value="x"), "transform", "the expression failed"),
        ("1 / value == 1", Reply(value="0"), "transform", "the expression failed"),
        ("output == ''", Reply(value="a\0b"), "transform", "output holds NUL"),
        ("output == ''", Reply(value="\ud800"), "transform", "half a surrogate pair"),
        ("value == {}", Reply(value={"a\0": 1}), "transform", "value holds NUL"),
        ("value > 1", Reply(value=str(10**30)), "transform", "a number beyond 64 bits"),
        ("value == 1", Reply(value=object()), "transform", "a value of type object"),
    ],
)
def test_an_evaluation_that_goes_wrong_is_a_failure(
    source: str, reply: Reply, reason: str, explanation: str
) -> None:
    """What is missing is no-value, what cannot be evaluated is transform."""
    result = checks.expression(source).check(reply)

    assert reason == result.reason
    assert explanation in result.explanation


@pytest.mark.parametrize("value", [None, {"a": 1}, 5, "5"])
def test_a_false_expression_is_false_for_any_value(value: Any) -> None:
    """Showing the evidence does not change the reason."""
    result = checks.expression("value == 'x'").check(Reply(value=value))

    assert FailReason.CONDITION is result.reason


def test_a_text_beyond_the_bound_is_not_evaluated() -> None:
    """Concatenations could multiply it."""
    result = checks.expression("output == ''").check(Reply(value="x" * 1_000_001))

    assert "output has 1000001 characters, an expression reads at most 1000000" == (
        result.explanation
    )


def test_expressions_are_evaluated_alike_in_threads() -> None:
    """One compiled expression serves the threads of a run."""
    from concurrent.futures import ThreadPoolExecutor

    check = checks.expression("value.all(n, n < 500) && size(output) > 0")
    replies = [Reply(value=list(range(n, n + 50))) for n in range(0, 1000, 5)]
    with ThreadPoolExecutor(8) as pool:
        passed = [result.passed for result in pool.map(check.check, replies * 5)]

    assert [reply.value[-1] < 500 for reply in replies] * 5 == passed


def test_a_variable_that_decides_nothing_may_be_missing() -> None:
    """`||` and `&&` need only the side that decides, in either order."""
    assert checks.expression("tokens < 5 || output == 'x'").check(Reply(value="x")).passed
    assert not checks.expression("output == 'y' && tokens < 5").check(Reply(value="x")).passed


def test_what_follows_a_nul_is_not_overlooked() -> None:
    """The library reads text up to a NUL; a forbidden word behind one must not pass."""
    result = checks.expression("!output.contains('secret')").check(Reply(value="fine\0secret"))

    assert not result.passed


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("output +", r"source must be a CEL expression \(1:9: Syntax error"),
        ("nosuch > 1", r"\(1:1: undeclared reference to 'nosuch'"),
        ("size(output) <\n'x'", r"\(1:14: found no matching overload for '_<_'"),
        ("output", "source must give a bool, it gives string"),
        ("tokens + 1", "source must give a bool, it gives int"),
        ("", "source must be an expression of 1 to 10000 characters"),
        (5, "source must be an expression"),
        ("true " * 3000, "source must be an expression of 1 to 10000 characters"),
        ("output == '\0'", "hold neither NUL nor half a surrogate pair"),
        ("output == '\ud800'", "hold neither NUL nor half a surrogate pair"),
        ("(" * 500 + "true" + ")" * 500, "recursion limit exceeded"),
        ("latency_s * 1000 < 5", r"be sound \(.*No matching overloads .*double, int64"),
        ("output.matches('(')", r"be sound \(.*invalid regular expression"),
        ("__import__('os').system('true') == 0", "undeclared reference"),
    ],
)
def test_an_expression_that_cannot_work_is_refused(source: Any, message: str) -> None:
    """When it is built, with the position."""
    with pytest.raises(InvalidArgument, match=message):
        checks.expression(source)


def test_work_without_end_is_stopped() -> None:
    """Nested comprehensions meet the library's budget of 10,000 steps."""
    check = checks.expression("value.all(a, value.all(b, value.all(c, a + b + c >= 0)))")
    result = check.check(Reply(value=list(range(1000))))

    assert FailReason.TRANSFORM is result.reason
    assert "Iteration budget exceeded" in result.explanation


def test_regular_expressions_take_linear_time() -> None:
    """A pattern that would keep Python's busy for ever is answered at once."""
    result = checks.expression("output.matches('^(a+)+$')").check(Reply(value="a" * 50_000 + "!"))

    assert FailReason.CONDITION is result.reason


@pytest.mark.slow
@given(st.text(max_size=30))
def test_any_source_is_either_built_or_refused(source: str) -> None:
    """No text makes the library raise anything of its own."""
    try:
        check = checks.expression(source)
    except InvalidArgument:
        return
    check.check(FULL)


@given(st.text())
def test_text_arrives_unchanged(text: str) -> None:
    """What is let through has its length in code points."""
    result = checks.expression(f"size(output) == {len(text)}").check(Reply(value=text))
    unreadable = "\0" in text or any("\ud800" <= character <= "\udfff" for character in text)

    assert unreadable is not result.passed
