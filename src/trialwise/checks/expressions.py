"""Postconditions written as expressions, in CEL: the one module that knows the CEL library.

CEL has no loops, assignments or calls to Python. The library (the C++ implementation) bounds an
evaluation by 10,000 steps of comprehensions, an expression by 100,000 characters and 32 levels,
and its regular expressions take linear time. It cannot be interrupted, and has no clock. It takes
50 MB and is an optional dependency: `pip install 'trialwise[cel]'`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from trialwise.checks.check_base import Check, Unreadable, failed, preview, printable, shown
from trialwise.checks.reply_reading import expected_of, input_of, json_of, text_of
from trialwise.errors import InvalidArgument
from trialwise.model import CheckResult, FailReason, Reply
from trialwise.model.trace import Fields

__all__ = ["Expression", "expression"]

#: The longest expression; what is longer belongs in a file of Python.
MAX_EXPRESSION = 10_000
#: The longest text an expression is given; concatenation could multiply it.
MAX_TEXT = 1_000_000
_INT64 = range(-(2**63), 2**63)

#: What an evaluation can say that no other reply would change.
_HOPELESS = ("No matching overloads", "invalid regular expression")


class _Program(Protocol):
    """The part of the library's compiled expression used here; it publishes no types."""

    def eval(self, *, data: dict[str, Any]) -> Any: ...

    def return_type(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class Expression(Check, spelling="expression"):
    """A CEL expression is true of the reply.

    Variables: `output` (the text), `value` (the reply read as JSON, or the object a callable
    returned), `input` (the trial's, where known), `expected` (what that input expects, where it
    says), `latency_s`, `tokens`, `cost_usd`, `exit_code` and `stderr` (what a command wrote to
    standard error). It is parsed and type-checked at once.
    A reply that lacks a variable used, and an evaluation that ends in an error, is a failure with
    reason `transform` or `no-value`. It needs the extra `trialwise[cel]`.

    Args:
        source: The expression.

    >>> check = expression("size(output) < 200 && output.contains('ok')")
    >>> check.check(Reply(value="it is ok")).passed
    True
    >>> expression("output.contains(5)")
    Traceback (most recent call last):
        ...
    trialwise.errors.InvalidArgument: source must be a CEL expression (1:16: found no matching
    overload for 'contains' applied to '(string, int)'), got 'output.contains(5)'
    """

    source: str

    def __post_init__(self) -> None:
        _check_source(self.source)

    @property
    def name(self) -> str:
        """The name in reports."""
        return printable(self.source, 60)

    def _examine(self, reply: Reply) -> CheckResult:
        program, used = _program(self.source)
        result = _evaluate(program, {name: _read(name, reply) for name in used})
        if result is True:
            return CheckResult.ok()
        asked = printable(self.source, 120)
        if result is False:
            return failed(f"{asked} is false", _evidence(used, reply))
        return failed(f"{asked} gives no bool", shown(result), reason=FailReason.TRANSFORM)


expression = Expression


def _check_source(source: object) -> None:
    if not isinstance(source, str) or not 0 < len(source) <= MAX_EXPRESSION:
        allowed = f"be an expression of 1 to {MAX_EXPRESSION} characters"
        raise InvalidArgument("source", source, allowed)
    if "\0" in source or not _encodes(source):
        raise InvalidArgument("source", source, "hold neither NUL nor half a surrogate pair")
    try:
        program, used = _program(source)
    except RuntimeError as error:
        problem = _first_problem(str(error))
        raise InvalidArgument("source", source, f"be a CEL expression ({problem})") from None
    kind = program.return_type().name()
    if kind not in ("BOOL", "DYN"):
        raise InvalidArgument("source", source, f"give a bool, it gives {kind.lower()}")
    try:
        probes = {name: _VARIABLES[name].probe for name in used}
        _evaluate(program, {name: one for name, one in probes.items() if one is not None})
    except Unreadable as error:
        if any(words in error.explanation for words in _HOPELESS):
            raise InvalidArgument("source", source, f"be sound ({error.explanation})") from None


@lru_cache(maxsize=256)
def _program(source: str) -> tuple[_Program, tuple[str, ...]]:
    """Return the compiled expression and the variables it mentions, at least."""
    used = tuple(name for name in _VARIABLES if re.search(rf"\b{name}\b", source))
    return _environment().compile(source), used


def _cel() -> Any:
    """Return the library.

    Raises:
        InvalidArgument: It is not installed.
    """
    try:
        from cel_expr_python import cel  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        if error.name != "cel_expr_python":  # it is there, and broken
            raise
        allowed = "go with the extra that brings the CEL library: pip install 'trialwise[cel]'"
        missing = "no such package: cel-expr-python"
        raise InvalidArgument("expression", missing, allowed) from None
    return cel


@lru_cache(maxsize=1)
def _environment() -> Any:
    types = _cel().Type
    return _cel().NewEnv(
        variables={name: getattr(types, one.kind) for name, one in _VARIABLES.items()}
    )


def _evaluate(program: _Program, variables: dict[str, Any]) -> Any:
    """Return the value of an expression; its errors as `Unreadable`."""
    known = {name: value for name, value in variables.items() if not isinstance(value, Unreadable)}
    try:
        result = program.eval(data=known)
    except RuntimeError as error:
        raise Unreadable(f"the expression failed: {_first_problem(str(error))}") from None
    if result.type() != _cel().Type.ERROR:
        return result.value()
    message = str(result.value())
    missing = re.search(r'No value with name "(\w+)"', message)
    if missing and isinstance(lack := variables.get(missing[1]), Unreadable):
        raise lack
    raise Unreadable(f"the expression failed: {message.split(': ', 1)[-1]}")


def _first_problem(message: str) -> str:
    """Return the library's message without its status, its picture and its repetition."""
    line = message.split("\n", 1)[0].removesuffix("]").split(" [")[0]
    return line.removeprefix("INVALID_ARGUMENT: ").removeprefix("ERROR: ").removeprefix("<input>:")


def _evidence(used: tuple[str, ...], reply: Reply) -> str:
    """Return the first thing looked at."""
    shorter = [name for name in used if name not in _DOCUMENTS]
    if shorter:
        return ", ".join(f"{name} = {_read(name, reply)}" for name in shorter)
    return preview(reply.value) if isinstance(reply.value, str) else shown(reply.value)


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _bindable(name: str, value: Any) -> Any:
    """Return a JSON value that the library takes as it is.

    It would cut text at a NUL in silence, and has neither half surrogate pairs nor large integers.
    """
    if isinstance(value, str):
        if "\0" in value or not _encodes(value):
            return Unreadable(f"{name} holds NUL or half a surrogate pair", preview(value))
    elif isinstance(value, int) and value not in _INT64:
        return Unreadable(f"{name} holds a number beyond 64 bits")
    elif isinstance(value, (list, dict)):
        parts = value if isinstance(value, list) else [*value, *value.values()]
        for part in parts:
            if isinstance(found := _bindable(name, part), Unreadable):
                return found
    return value


def _read(name: str, reply: Reply) -> Any:
    """Read a variable's value, or why the reply has none: the expression may do without it."""
    try:
        value = _VARIABLES[name].read(reply)
    except Unreadable as unreadable:
        return unreadable
    # A document may be null; of anything else that is None the reply tells nothing.
    if value is None and name not in _DOCUMENTS:
        return Unreadable(f"{name} is not known for this reply", reason=FailReason.NO_VALUE)
    if name in ("output", "stderr") and len(value) > MAX_TEXT:
        limit = f"an expression reads at most {MAX_TEXT}"
        return Unreadable(f"{name} has {len(value)} characters, {limit}", preview(value))
    return _bindable(name, value)


def _read_given(value: Any) -> Any:
    # Text is itself here, not what it might parse as.
    return value if isinstance(value, str) else json_of(Reply(value=value))


def _read_cost(usd: float | None) -> float | None:
    return None if usd is None else float(usd)


_DOCUMENTS = ("output", "value", "input", "expected")


class _Variable(NamedTuple):
    """A variable of an expression."""

    kind: str
    read: Callable[[Reply], Any]
    probe: Any = None
    """What an expression is tried on when it is written; None where that may be anything."""


#: Times and costs are `dyn`: as `double` they could not be compared with `5`, only with `5.0`.
_VARIABLES = {
    "output": _Variable("STRING", text_of, ""),
    "value": _Variable("DYN", json_of),
    "input": _Variable("DYN", lambda reply: _read_given(input_of(reply))),
    "expected": _Variable("DYN", lambda reply: _read_given(expected_of(reply))),
    "latency_s": _Variable("DYN", lambda reply: float(reply.latency_s), 1.5),
    "cost_usd": _Variable("DYN", lambda reply: _read_cost(reply.cost_usd), 1.5),
    "tokens": _Variable("INT", lambda reply: reply.usage and reply.usage.total_tokens, 1),
    "exit_code": _Variable("INT", lambda reply: reply.exit_code, 0),
    "stderr": _Variable("STRING", lambda reply: Fields(reply.details).text("stderr"), ""),
}
