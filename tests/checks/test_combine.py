"""Combinations, budgets, exit codes and functions of the user's own."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterator
from itertools import product
from typing import Any

import anyio
import pytest

from trialwise import checks
from trialwise.errors import BrokenCheck, InvalidArgument
from trialwise.model.reply import Reply, Usage
from trialwise.model.trial import AskingPostcondition, CheckResult, FailReason, Postcondition

TRUE, FALSE = checks.expression("true"), checks.expression("false")
UNREADABLE = checks.numeric_range(minimum=0)
WORDS = Reply(value="a few words")


@pytest.mark.parametrize("values", list(product([TRUE, FALSE], repeat=3)))
def test_combinations_are_those_of_logic(values: tuple[Postcondition, ...]) -> None:
    """All, any and not agree with Python's on every combination of three."""
    truths = [value is TRUE for value in values]

    assert all(truths) is checks.all_of(*values).check(WORDS).passed
    assert any(truths) is checks.any_of(*values).check(WORDS).passed
    assert (not truths[0]) is checks.not_(values[0]).check(WORDS).passed


def test_what_cannot_be_read_is_not_turned_round() -> None:
    """`not_` inverts a condition, not a failure to read; twice not is not a way round either."""
    assert FailReason.TRANSFORM is UNREADABLE.check(WORDS).reason
    assert FailReason.TRANSFORM is checks.not_(UNREADABLE).check(WORDS).reason
    assert FailReason.TRANSFORM is checks.not_(checks.not_(UNREADABLE)).check(WORDS).reason
    assert FailReason.TRANSFORM is checks.any_of(UNREADABLE).check(WORDS).reason
    assert FailReason.CONDITION is checks.any_of(UNREADABLE, FALSE).check(WORDS).reason
    assert FailReason.TRANSFORM is checks.all_of(TRUE, UNREADABLE).check(WORDS).reason
    assert checks.any_of(UNREADABLE, TRUE).check(WORDS).passed


def test_what_does_not_parse_is_what_not_parses_asks_for() -> None:
    """To be readable is its question; a reply without a value still answers nothing."""
    unlike = checks.not_(checks.parses("json"))

    assert unlike.check(WORDS).passed
    assert not unlike.check(Reply(value="[1]")).passed
    assert not unlike.check(Reply(value=None)).passed


def test_names_and_explanations_compose() -> None:
    """A report can print them as they are."""
    either = checks.any_of(checks.contains("x"), checks.contains("y"))
    check = checks.all_of(either, checks.not_(checks.parses("json")))

    assert "(contains 'x' or contains 'y') and not (parses as JSON)" == check.name
    assert (
        "contains 'x' or contains 'y': none holds: 'x' is not in the reply; 'y' is not in the reply"
        == check.check(WORDS).explanation
    )
    assert (
        "not (parses as JSON): parses as JSON, which was not to hold"
        == check.check(Reply(value='"x"')).explanation
    )


def test_a_name_of_ones_own_changes_nothing_else() -> None:
    """The result is that of the postcondition."""
    check = checks.named("answers", checks.contains("555"))

    assert "answers" == check.name
    assert checks.contains("555").check(WORDS) == check.check(WORDS)


BUILD: Any = checks


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (BUILD.all_of, "checks must hold at least one postcondition"),
        (BUILD.any_of, "checks must hold at least one postcondition"),
        (lambda: BUILD.not_("x"), "check must be a postcondition, got 'x'"),
        (lambda: BUILD.all_of(checks.Contains), "check must be a postcondition"),
        (lambda: BUILD.named("", TRUE), "name must be text of at least one character"),
        (lambda: BUILD.named("x", None), "check must be a postcondition"),
        (lambda: BUILD.exit_code([]), "code must hold at least one exit code"),
        (lambda: BUILD.exit_code("0"), "code must be a whole number"),
        (lambda: BUILD.max_tokens(-1), "tokens must be a whole number of at least 0"),
        (lambda: BUILD.max_cost(-1), "usd must be at least 0"),
        (lambda: BUILD.max_latency(float("nan")), "seconds must be a finite number"),
    ],
)
def test_a_check_built_wrong_is_refused(build: Any, message: str) -> None:
    """The refusal names the argument."""
    with pytest.raises(InvalidArgument, match=message):
        build()


@pytest.mark.parametrize(
    ("check", "good", "bad", "explanation"),
    [
        (checks.exit_code(), {"exit_code": 0}, {"exit_code": 1}, "exit code 1, expected 0"),
        (checks.exit_code([0, 3]), {"exit_code": 3}, {"exit_code": -9}, "expected 0 or 3"),
        (
            checks.max_tokens(30),
            {"usage": Usage(input_tokens=10, output_tokens=20)},
            {"usage": Usage(input_tokens=10, output_tokens=21)},
            "31 tokens, expected at most 30",
        ),
        (checks.max_cost(0.5), {"cost_usd": 0.5}, {"cost_usd": 0.51}, "expected at most $0.5"),
        (checks.max_latency(2), {"latency_s": 2.0}, {"latency_s": 2.1}, "expected at most 2 s"),
    ],
)
def test_limits_belong_to_what_is_allowed(
    check: Postcondition, good: dict[str, Any], bad: dict[str, Any], explanation: str
) -> None:
    """At the limit it passes, beyond it fails with both numbers."""
    assert check.check(Reply(value="", **good)).passed
    result = check.check(Reply(value="", **bad))
    assert FailReason.CONDITION is result.reason
    assert explanation in result.explanation


@pytest.mark.parametrize("check", [checks.exit_code(), checks.max_tokens(9), checks.max_cost(9)])
def test_what_is_not_known_is_no_value(check: Postcondition) -> None:
    """Unknown is neither success nor free."""
    assert FailReason.NO_VALUE is check.check(Reply(value="x")).reason


def test_an_exit_code_shows_the_last_line_of_standard_error() -> None:
    """The smallest piece that says what went wrong."""
    reply = Reply(value="", exit_code=1, details={"stderr": "trace\nKeyError: 'x'\n\n"})

    assert "KeyError: 'x'" == checks.exit_code().check(reply).evidence


# --- functions -------------------------------------------------------------------------------


def by_text(text: str) -> bool:
    return text == "a few words"


def by_names(value: Any, input: str, reply: Reply, extra: int = 1) -> bool:  # noqa: A002
    return reply.value is value and input == "question" and extra == 1


def by_annotation(answer: Reply) -> bool:
    return isinstance(answer, Reply)


def as_words(answer: str) -> bool:
    return answer == "5"


def by_value(answer: Any) -> bool:
    return bool(answer == 5)


def keyword_only(*, text: str) -> bool:
    return bool(text)


def assertions(text: str) -> None:
    assert "words" in text


def rest(text: str, *args: Any, **kwargs: Any) -> bool:
    return bool(text) and not args and not kwargs


class Long:
    def __init__(self, minimum: int) -> None:
        self.minimum = minimum

    def __call__(self, text: str) -> bool:
        return len(text) >= self.minimum


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (by_text, "a few words"),
        (by_names, object()),
        (by_annotation, None),
        (as_words, 5),
        (by_value, 5),
        (keyword_only, "x"),
        (assertions, "words"),
        (rest, "x"),
        (Long(3), "four"),
        (functools.partial(by_names, extra=1), "x"),
        (lambda text: text.isupper(), "UP"),
        (str.isupper, "UP"),
        (lambda reply: CheckResult.ok(), "x"),  # noqa: ARG005
    ],
)
def test_a_function_is_given_what_its_parameters_name(function: Any, value: Any) -> None:
    """By name, else by the annotation of its one parameter, else the value."""
    reply = Reply(value=value, details={"input": "question"})
    result = checks.predicate(function).check(reply)

    assert result.passed, result


def bare(text: str) -> None:
    assert "555" in text


def told(text: str) -> None:
    assert "555" in text, f"no 555 in {text!r}"


def raises(text: str) -> bool:
    raise KeyError(text)


def counts(text: str) -> int:
    return len(text)


def explains(text: str) -> CheckResult:
    return CheckResult.fail("odd\nlines", evidence=text * 1000, reason=FailReason.TRANSFORM)


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError


def unspeakable(text: str) -> bool:
    raise Unspeakable(text)


@pytest.mark.parametrize(
    ("function", "reason", "explanation"),
    [
        (lambda text: text == "x", "condition", "<lambda> is false"),
        (bare, "condition", "555"),
        (told, "condition", "no 555 in 'a few words'"),
        (explains, "transform", r"odd\nlines"),
        (lambda input: True, "no-value", "the trial's input is not known"),  # noqa: A006, ARG005
    ],
)
def test_a_function_that_does_not_hold_says_why(
    function: Any, reason: str, explanation: str
) -> None:
    """Assertions keep their text; results are bounded."""
    result = checks.predicate(function).check(WORDS)

    assert reason == result.reason
    assert explanation in result.explanation
    assert len(result.evidence) <= 200
    assert "\n" not in result.explanation


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (raises, "raised KeyError: 'a few words'"),
        (counts, "returned 11, a int, instead of True or False"),
        (unspeakable, "raised Unspeakable"),
        (lambda text, **_: float(text), "raised ValueError"),
    ],
)
def test_a_function_that_cannot_say_whether_it_holds_is_broken(function: Any, problem: str) -> None:
    """Neither a pass nor a failure of the service."""
    with pytest.raises(BrokenCheck) as caught:
        checks.predicate(function).check(WORDS)

    assert caught.value.problem.startswith(problem)


async def later(text: str) -> bool:
    return bool(text)


class Later:
    async def __call__(self, text: str) -> bool:
        return bool(text)


def generator(text: str) -> Iterator[str]:
    yield text


async def stream(text: str) -> AsyncIterator[str]:
    yield text


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (stream, "return its result, not yield it"),
        (generator, "return its result, not yield it"),
        (
            lambda text, question: text == question,
            "take only reply, text, value, input, expected, not q",
        ),
        (lambda: True, "take one of reply, text, value, input, expected"),
        (
            lambda one, two: one == two,
            "take only reply, text, value, input, expected, not one, two",
        ),
        (5, "be a function of a reply"),
        (Long, "be a function of a reply"),
    ],
)
def test_a_function_that_cannot_be_called_is_refused(function: Any, message: str) -> None:
    """When the check is built."""
    with pytest.raises(InvalidArgument, match=message):
        checks.predicate(function)


@pytest.mark.parametrize("function", [later, functools.partial(later), Later()])
def test_a_coroutine_function_is_a_check_that_has_to_be_awaited(function: Any) -> None:
    """However it is wrapped; without waiting it is no pass."""
    built = checks.predicate(function)

    assert isinstance(built, AskingPostcondition)
    assert anyio.run(functools.partial(built.acheck, WORDS, seed=1)).result.passed
    assert "has to be awaited" in built.check(WORDS).explanation
    assert not built.check(WORDS).passed


def test_a_coroutine_that_slips_through_is_broken() -> None:
    """It is closed, so that nothing warns of it, and is not mistaken for true."""
    with pytest.raises(BrokenCheck, match="a coroutine, instead of True or False"):
        checks.predicate(lambda text: later(text)).check(WORDS)  # noqa: PLW0108


def test_an_interrupt_is_not_a_failure() -> None:
    """Ctrl-C in a function ends the run, not the trial."""

    def interrupted(text: str) -> bool:
        raise KeyboardInterrupt(text)

    with pytest.raises(KeyboardInterrupt):
        checks.predicate(interrupted).check(WORDS)


def test_a_function_is_named_and_found_again() -> None:
    """By default by its own name; a name of one's own takes its place."""
    assert "by_text" == checks.predicate(by_text).name
    assert "by_names" == checks.predicate(functools.partial(by_names, extra=1)).name
    assert "Long" == checks.predicate(Long(3)).name
    assert "long enough" == checks.predicate(Long(3), name="long enough").name
    place = {"python": f"{by_text.__module__}:by_text"}
    assert place == checks.predicate(by_text).to_dict()
    named = {"named": {"name": "text", "check": place}}
    assert named == checks.predicate(by_text, name="text").to_dict()
