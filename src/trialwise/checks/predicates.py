"""A plain Python function as a postcondition.

What the function is given is decided by its signature, once, when the check is built. It runs in
this process, unguarded: it is the user's own code.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from numbers import Real
from types import CodeType, ModuleType
from typing import Any

from trialwise.checks import check_base
from trialwise.checks.reply_reading import expected_of, input_of, text_of
from trialwise.errors import BrokenCheck, InvalidArgument
from trialwise.model.reply import Reply
from trialwise.model.trial import Appraisal, CheckResult
from trialwise.validation import require_rate

__all__ = ["Predicate", "predicate"]

#: What of a reply a parameter is given, by its name.
_PARTS: dict[str, Callable[[Reply], object]] = {
    "reply": lambda reply: reply,
    "text": text_of,
    "value": lambda reply: reply.value,
    "input": input_of,
    "expected": expected_of,
}


@dataclass(frozen=True, slots=True)
class Predicate(check_base.Check, spelling="python"):
    """A function of the user's holds for the reply."""

    function: Callable[..., object]
    title: str = ""
    pass_at: float | None = None
    """The score from which the reply passes, where the function may return a score."""
    _parameters: tuple[tuple[str, str], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_parameters", _parameters(self.function))
        if self.title:
            check_base.check_texts("name", (self.title,))
        if self.pass_at is not None:
            require_rate("pass_at", self.pass_at)

    @property
    def name(self) -> str:
        """The name in reports."""
        return self.title or _function_name(self.function)

    def to_dict(self) -> dict[str, Any]:
        """Return where the function is found; the suite reader decides whether to import it."""
        module = getattr(self.function, "__module__", "")
        where = f"{module}:{getattr(self.function, '__qualname__', self.name)}"
        found = {self.spelling: where}
        return {"named": {"name": self.title, "check": found}} if self.title else found

    def _call(self, reply: Reply) -> Any:
        # By name wherever it has one: the order of parameters is the user's.
        arguments = [(name, _PARTS[part](reply)) for name, part in self._parameters]
        positional = [value for name, value in arguments if not name]
        return partial(self.function, *positional, **{key: one for key, one in arguments if key})

    def _examine(self, reply: Reply) -> CheckResult:
        call = self._call(reply)
        try:
            result = call()
        # `sys.exit` in a check must not end the run with an exit code that looks like a verdict.
        except BaseException as error:  # the user's function may raise anything
            return self._explain(error, reply)
        return self._result(result, reply)

    def _explain(self, error: BaseException, reply: Reply) -> CheckResult:
        """Return the failure that an assertion states; anything else is raised."""
        if isinstance(error, AssertionError):
            return check_base.failed(_assertion(error), _show_reply(reply))
        if isinstance(error, KeyboardInterrupt | BrokenCheck):
            raise error
        raise check_base.broken_by(error, self.name) from error

    def _result(self, result: object, reply: Reply) -> CheckResult:
        if isinstance(result, bool) or type(result).__name__ in ("bool", "bool_"):
            if result:
                return CheckResult.ok()
            return check_base.failed(f"{self.name} is false", _show_reply(reply))
        if isinstance(result, CheckResult):
            if result.reason is None:
                return result
            return check_base.failed(
                result.explanation, result.evidence, reason=result.reason, score=result.score
            )
        # A test with `assert` returns nothing, and so does a function whose `return` was forgotten.
        if result is None:
            if may_assert(self.function):
                return CheckResult.ok()
            raise BrokenCheck(self.name, f"returned None and asserts nothing ({_where(self)})")
        # A number outside of 0 to 1 is more likely a count or a distance that somebody forgot to
        # compare.
        if isinstance(result, Real) and (self.pass_at is not None or 0 <= float(result) <= 1):
            return self._grade(float(result), reply)
        raise self._refuse(result)

    def _refuse(self, result: object) -> BrokenCheck:
        """Return what is wrong with a result that is neither a bool nor a `CheckResult`."""
        check_base.close_coroutine(result)
        problem = f"returned {check_base.preview(repr(result))}, a {type(result).__name__}"
        return BrokenCheck(self.name, f"{problem}, instead of True or False ({_where(self)})")

    def _grade(self, score: float, reply: Reply) -> CheckResult:
        if self.pass_at is None:
            raise BrokenCheck(
                self.name,
                f"returned {score:g}, and nothing says which score passes ({_where(self)}); give "
                "the criterion `pass_at` or `mean_at_least`, or return True or False",
            )
        if not 0 <= score <= 1:  # which NaN is not
            raise BrokenCheck(
                self.name, f"returned {score:g}, instead of a score from 0 to 1 ({_where(self)})"
            )
        return CheckResult.grade(score, pass_at=self.pass_at, evidence=_show_reply(reply))


@dataclass(frozen=True, slots=True)
class AsyncPredicate(Predicate):
    """Checks a reply with a coroutine function of the user, which the engine awaits."""

    def _examine(self, reply: Reply) -> CheckResult:  # noqa: ARG002
        raise check_base.Unreadable("an async check has to be awaited: use `acheck`")

    async def acheck(self, reply: Reply, *, seed: int = 0) -> Appraisal:  # noqa: ARG002
        """Return the function's result for a reply.

        Args:
            reply: What came back; its details hold the trial's input.
            seed: The trial's own, which the function is not given.
        """
        try:
            call = self._call(reply)
        except check_base.Unreadable as unreadable:
            return Appraisal(result=unreadable.to_result())
        try:
            answer = await call()
        except Exception as error:  # the user's function may raise anything
            return Appraisal(result=self._explain(error, reply))
        return Appraisal(result=self._result(answer, reply))

    async def aclose(self) -> None:
        """Do nothing: the function manages its own resources."""


def predicate(
    function: Callable[..., object], *, name: str = "", pass_at: float | None = None
) -> Predicate:
    """A Python function holds for the reply.

    It returns a bool or a `CheckResult`, or asserts: an `AssertionError` is a failure with the
    assertion as its explanation, and returning None passes where the function has assertions.
    With `pass_at`, or in a criterion that has it or `mean_at_least`, it may return a score from 0
    to 1. Any other exception fails the reply. A check is broken and stops the run if it raises on
    each of the first three replies, if it has a mistake in its code (`NameError`, `ImportError`,
    `SyntaxError`), or if it returns another type, or None without asserting.

    Args:
        function: Its parameters are found by name: `reply`, `text`, `value` (what the service
            returned), `input` (the trial's), `expected` (what the input expects; with a default it
            is left alone). A single parameter of another name is given the reply
            if it is annotated `Reply`, the text if annotated `str`, else the value. A coroutine
            function is awaited in the event loop of the run.
        name: How reports call it; by default the function's name.
        pass_at: The score from which the reply passes, where the function returns a score.

    >>> def is_short(text: str) -> bool:
    ...     return len(text) < 5
    >>> predicate(is_short).check(Reply(value="too long")).explanation
    'is_short is false'
    """
    return (AsyncPredicate if _is_async(function) else Predicate)(function, name, pass_at)


def _is_async(function: object) -> bool:
    plain = _below_partials(function)
    own_call = getattr(type(plain), "__call__", None)  # noqa: B004 - its kind is looked at
    return inspect.iscoroutinefunction(plain) or inspect.iscoroutinefunction(own_call)


def _parameters(function: object) -> tuple[tuple[str, str], ...]:
    """For each argument the keyword it goes by (none: by position) and what it is."""
    if isinstance(function, type) or not callable(function):
        raise InvalidArgument("function", function, "be a function of a reply")
    unwrapped = inspect.unwrap(function)
    # A generator is true whatever it would yield, so that such a check would pass every reply.
    for candidate in (unwrapped, getattr(unwrapped, "__call__", None)):  # noqa: B004
        if inspect.isgeneratorfunction(candidate) or inspect.isasyncgenfunction(candidate):
            raise InvalidArgument("function", function, "return its result, not yield it")
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        # Some built-in functions show no signature; they take one thing.
        return (("", "value"),)
    return _assign_arguments(function, list(signature.parameters.values()))


def _assign_arguments(function: object, parameters: list[Any]) -> tuple[tuple[str, str], ...]:
    variadic = {"VAR_POSITIONAL", "VAR_KEYWORD"}
    named = [one for one in parameters if one.kind.name not in variadic]
    required = [one for one in named if one.default is one.empty]
    # A function may have had a default of its own by that name before inputs had one.
    found = [
        one
        for one in named
        if one.name in _PARTS and not (one.name == "expected" and one.default is not one.empty)
    ]
    unknown = [one.name for one in required if one.name not in _PARTS]
    # One parameter of any name: most checks are `lambda reply: …` or `def is_short(text)`.
    if not found and len(required) == 1:
        only = required[0]
        return (("" if only.kind.name != "KEYWORD_ONLY" else only.name, _by_annotation(only)),)
    if unknown:
        allowed = f"take only {', '.join(_PARTS)}, not {', '.join(unknown)}"
        raise InvalidArgument("function", function, allowed)
    if not found:
        raise InvalidArgument("function", function, f"take one of {', '.join(_PARTS)}")
    return tuple(
        ("" if one.kind.name == "POSITIONAL_ONLY" else one.name, one.name) for one in found
    )


def _by_annotation(parameter: Any) -> str:
    annotation = parameter.annotation
    if annotation is Reply or annotation in ("Reply", "tw.Reply", "trialwise.Reply"):
        return "reply"
    return "text" if annotation is str or annotation == "str" else "value"


def _assertion(error: AssertionError) -> str:
    """Return the assertion's message, or else its line."""
    import linecache

    if message := check_base.error_text(error):
        return message
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    line = linecache.getline(trace.tb_frame.f_code.co_filename, trace.tb_lineno) if trace else ""
    return line.strip() or "an assertion failed"


def _where(check: Predicate) -> str:
    """Return the file and line of a function."""
    code = getattr(_plain_function(check.function), "__code__", None)
    return "built in" if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def _function_name(function: object) -> str:
    while isinstance(function, partial):
        function = function.func
    return getattr(function, "__name__", type(function).__name__)


def _show_reply(reply: Reply) -> str:
    try:
        return check_base.preview(text_of(reply))
    except check_base.Unreadable:
        return ""


#: How far a function is followed into the functions that it calls.
_DEEPEST = 4


def may_assert(function: object) -> bool:
    """Return whether a function, or one of the user's that it calls, can fail an assertion.

    None from a function that asserts is a pass; None from any other is a forgotten `return`. What
    cannot be looked into, such as a function in C, is taken not to assert.

    >>> def long_enough(text):
    ...     assert len(text) > 3
    >>> may_assert(long_enough), may_assert(lambda text: None)
    (True, False)
    """
    return _asserts(function, _DEEPEST, set())


def _asserts(function: object, depth: int, seen: set[int]) -> bool:
    plain = _plain_function(function)
    code = getattr(plain, "__code__", None)
    if code is None or depth == 0 or id(code) in seen:
        return False
    seen.add(id(code))
    codes = [code]
    for one in codes:
        codes += [inner for inner in one.co_consts if isinstance(inner, CodeType)]
    names = {name for one in codes for name in (*one.co_names, *one.co_freevars)}
    return (
        any(name.startswith("assert") or name == "AssertionError" for name in names)
        or any(map(_has_assert, codes))
        or any(_asserts(one, depth - 1, seen) for one in _called(plain, names))
    )


def _has_assert(code: CodeType) -> bool:
    import dis

    # An `assert` statement loads its exception in a way of its own, which no name shows.
    return any(
        one.opname == "LOAD_ASSERTION_ERROR" or "AssertionError" in str(one.argrepr)
        for one in dis.get_instructions(code)
    )


def _called(function: Any, names: set[str]) -> Iterator[object]:
    """Return the functions that a function may call: globals, of modules, or of its closure."""
    around = dict(getattr(function, "__globals__", {}))
    cells = getattr(function, "__closure__", None) or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=False):
        with suppress(ValueError):  # a cell that is still empty
            around[name] = cell.cell_contents
    owner = getattr(function, "__self__", None)
    for name in names:
        found = around.get(name)
        if isinstance(found, ModuleType):
            yield from (getattr(found, one) for one in names if hasattr(found, one))
        elif callable(found):
            yield found
        method = getattr(type(owner), name, None) if owner is not None else None
        if callable(method):
            yield method


def _below_partials(function: object) -> object:
    """Return the function inside decorators and partials."""
    while isinstance(function, partial):
        function = function.func
    return inspect.unwrap(function) if callable(function) else function


def _plain_function(function: object) -> Any:
    """Return the function inside decorators, partials and callable objects."""
    function = _below_partials(function)
    if not hasattr(function, "__code__") and not isinstance(function, type):
        function = getattr(type(function), "__call__", function)  # noqa: B004
    return function
