"""What every check has to satisfy, built in or not."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from trialwise.checks.check_base import Check, write_spec
from trialwise.checks.check_declarations import CheckDeclaration
from trialwise.model.reply import Reply
from trialwise.model.trial import CheckResult

__all__ = ["HOSTILE_REPLIES", "assert_check_conforms"]

_LONGEST_EVIDENCE = 200
_LONGEST_EXPLANATION = 300
#: Values that services have returned, or that somebody could make them return.
HOSTILE_REPLIES: tuple[Any, ...] = (
    "",
    "\0",
    "\ud800",
    "\x1b[2J\r\n\u202e",
    "x" * 300_000,
    "[" * 100_000,
    '{"a": ' * 500 + "1" + "}" * 500,
    None,
    b"\xff",
    10**5000,
    float("nan"),
    {"a": object()},
    object(),
    [],
)


def assert_check_conforms(
    constructor: Callable[..., Any], examples: Iterable[Mapping[str, Any]]
) -> None:
    """Assert that a check behaves as those that are built in.

    - It is declared: every argument has a kind and is described in the docstring.
    - It never raises for a reply, and explains each failure on one short printable line.
    - It says the same of the same reply twice.
    - It is a value: equal to another one that is built alike, and it survives pickling.
    - It can be written down, and what it writes builds it again.

    Args:
        constructor: What the entry point names: the class, or a function that returns the check.
        examples: Arguments that it is built with.

    Raises:
        AssertionError: What does not hold, and for which example.
    """
    built = [(given, constructor(**given)) for given in examples]
    assert built, "give at least one example of arguments"
    for given, check in built:
        assert isinstance(check, Check), f"{check!r} must derive from trialwise.checks.Check"
        _assert_declared(CheckDeclaration(check.spelling, constructor))
        _assert_value(check, constructor(**given))
        _assert_written(check, constructor)
        assert check.name.isprintable(), f"the name {check.name!r} must be one printable line"
        for value in HOSTILE_REPLIES:
            _assert_answers(check, Reply(value=value))


def _assert_declared(declared: CheckDeclaration) -> None:
    assert declared.doc, f"{declared.name} needs a docstring that says what it asks"
    for key in declared.keys:
        assert key.doc, f"the docstring of {declared.name} says nothing of {key.name!r} under Args"


def _assert_value(check: Check, again: Check) -> None:
    assert check == again, f"{check!r} differs from one with the same arguments"
    assert hash(check) == hash(again), f"the hash of {check!r} is another one each time"
    assert check == pickle.loads(pickle.dumps(check)), f"{check!r} does not survive pickling"


def _assert_written(check: Check, constructor: Callable[..., Any]) -> None:
    ((name, argument),) = write_spec(check).items()
    assert name == check.spelling, f"{check!r} is written as {name!r}, not as {check.spelling!r}"
    declared = CheckDeclaration(name, constructor)
    read = declared.build(declared.collect(argument))
    assert check == read, f"{check!r} is written as {argument!r}, which is {read!r}"


def _assert_answers(check: Check, reply: Reply) -> None:
    shown = repr(reply.value)[:40] if not isinstance(reply.value, int) else "a huge number"
    result = check.check(reply)
    assert isinstance(result, CheckResult), f"{check.name} of {shown} gives {result!r}"
    assert result == check.check(reply), f"{check.name} says two things of {shown}"
    assert result.passed is (result.reason is None), f"{check.name} of {shown}: {result!r}"
    assert result.passed or result.explanation, f"{check.name} does not explain {shown}"
    for text, longest in (
        (result.explanation, _LONGEST_EXPLANATION),
        (result.evidence, _LONGEST_EVIDENCE),
    ):
        short = len(text) <= longest and text.isprintable()
        assert short, f"{check.name} of {shown} explains too much: {text[:longest]!r}"
