"""What makes a criterion the same criterion: the fingerprint of its postconditions (§1.5.2).

A baseline speaks of a criterion as it was defined when it was measured. A postcondition that was
changed under the same name is another one, and a comment that was changed is not; the threshold,
the confidence and their origin belong to the test and are no part of it.

Of a function counts what it says: its source, its defaults, what it closed over, the constants it
reads and the functions of its own module that it calls. What other modules do does not count.

The source is a text that comments, formatting and Python's version leave alone: `ast.dump` and
`ast.unparse` write the same tree differently from one Python to the next, and a baseline is to
outlive an upgrade, so the tree is written here. It comes from the whole file, since the lines of a
lambda seldom stand on their own.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from trialwise.checks.check_base import Check, to_spec
from trialwise.model.contract import Contract
from trialwise.model.criterion import Criterion, CriterionScope
from trialwise.model.fingerprint import canonical, fingerprint, sampling_fingerprint

#: Globals of these types are constants; a date would change the criterion from day to day.
_CONSTANTS = (type(None), bool, int, float, complex, str, bytes, tuple, frozenset, re.Pattern, Enum)
_CONTAINERS = (list, dict, set)
_FUNCTIONS = FunctionType | MethodType | BuiltinFunctionType
_DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
#: What says nothing about the meaning: a comment's type, the u of u"text".
_SILENT = frozenset({"type_comment", "kind"})


def scopes_of(contract: Contract) -> dict[str, CriterionScope]:
    """Return what each criterion is about, which baselines record and tests compare.

    >>> from trialwise.checks.texts import contains
    >>> contract = Contract(
    ...     "sums", lambda question: "555", [Criterion("answers", contains("555"), at_least=0.9)],
    ...     sampling=["What is 15 * 37?"],
    ... )
    >>> scopes_of(contract)["answers"].postconditions
    ('{"contains":"555"}',)
    """
    contents = {name: sampling_fingerprint(one) for name, one in contract.samplings.items()}
    scopes: dict[str, CriterionScope] = {}
    for criterion in contract.criteria:
        experiment = contract.experiment_of(criterion)
        scopes[criterion.name] = CriterionScope(
            structure=criterion_structure(criterion, sampling=experiment),
            postconditions=describe_postconditions(criterion),
            sampling=contract.samplings[experiment].label,
            sampling_fingerprint=contents[experiment],
        )
    return scopes


def criterion_structure(criterion: Criterion, *, sampling: str | None = None) -> str:
    """Return the fingerprint of what a criterion asks of a reply, and of the sampling's name.

    All postconditions must hold, so that their order does not count. Where they grade, their
    weights and the score that passes are part of what is asked.

    Args:
        criterion: Its threshold, confidence and origin do not count.
        sampling: The name of its sampling, where the criterion leaves it to the contract.
    """
    scope = criterion.sampling if sampling is None else sampling
    # Sorted, so that a baseline outlives moving one check below another.
    described: list[object] = [*sorted(describe_postconditions(criterion))]
    if criterion.is_graded:
        weights = [weight for _, weight in criterion.graders]
        pairs = sorted(zip(describe_postconditions(criterion), weights, strict=True))
        described = [*map(list, pairs), criterion.lowest_pass]
    return fingerprint([described, scope or ""])


def describe_postconditions(criterion: Criterion) -> tuple[str, ...]:
    """Describe each postcondition as a text that differs where its meaning does.

    Built-in ones as a suite file spells them, functions by name and a fingerprint of their source.
    A name of one's own for reports is left out.
    """
    described = [_Described().check(one) for one in criterion.checks]
    return tuple(
        one["python"] if isinstance(one, dict) and list(one) == ["python"] else canonical(one)
        for one in described
    )


def describe_function(function: FunctionType) -> dict[str, object]:
    """Describe a function by its source, defaults, closure and the globals that it reads."""
    described: Any = _Described()._function(function)
    return dict(described)


class _Described:
    """The description of one postcondition; functions may call each other in a circle."""

    def __init__(self) -> None:
        self._under_way: set[int] = set()
        self._known: dict[FunctionType, str] = {}

    def check(self, check: object) -> Any:
        """Return a postcondition or plain function, as values that JSON holds."""
        if isinstance(check, Check) and type(check).__module__.startswith("trialwise."):
            return self._built_in(check)
        return {"python": self.function(check)}

    def _built_in(self, check: Any) -> Any:
        # By its spelling and not by its class: a suite of plain checks loads no others.
        match check.spelling:
            case "python":
                described = self.check(check.function)
                # Left out where there is none, as it was before there were any.
                return described if check.pass_at is None else described | {"at": check.pass_at}
            case "named":
                return self.check(check.condition)
            case "not":
                return {"not": self.check(check.condition)}
            case "all_of" | "any_of":
                return {check.spelling: sorted(map(self.check, check.checks), key=canonical)}
        return to_spec(check)

    def function(self, function: object) -> str:
        """Return a callable by name and fingerprint, such as `my_agent:grounded#5f3a…`."""
        # Described once: many checks of a suite call the same helper.
        if isinstance(function, FunctionType) and function in self._known:
            return self._known[function]
        name = _name(function)
        contents = self._contents(function)
        text = name if contents is None else f"{name}#{fingerprint(contents)}"
        if isinstance(function, FunctionType):
            self._known[function] = text
        return text

    def _contents(self, function: object) -> object:
        """Return what a callable says, or None where its name says it all."""
        match function:
            case functools.partial():
                held = map(self._describe_value, (function.args, function.keywords))
                return [self.function(function.func), *held]
            case MethodType():
                return [self.function(function.__func__), self._state(function.__self__)]
            case FunctionType():
                return self._function(function)
            case type():
                return source_of_class(function)
        return self._other(function)

    def _other(self, function: object) -> object:
        if hasattr(function, "__wrapped__"):  # such as one that `functools.cache` made
            return self._contents(function.__wrapped__)
        if type(function).__module__ != "builtins":
            return self._state(function)
        # Written in C: `str.isdigit` is its name, `{"yes", "no"}.__contains__` what it belongs to.
        owner = getattr(function, "__self__", None)
        belongs = owner is not None and not isinstance(owner, ModuleType)
        return self._describe_value(owner) if belongs else None

    def _function(self, function: FunctionType) -> object:
        code = function.__code__
        # Functions that call each other would be described for ever.
        if id(code) in self._under_way:
            return None
        self._under_way.add(id(code))
        try:
            # A counter has another value after each call, and would make each run another
            # criterion.
            changed = set(_names(code, "STORE_GLOBAL", "STORE_DEREF"))
            cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
            return {
                "source": source_of(code),
                "defaults": [
                    *map(self._describe_value, (function.__defaults__, function.__kwdefaults__))
                ],
                "closure": {n: self._cell(cell) for n, cell in cells if n not in changed},
                "globals": self._globals(function, changed),
            }
        finally:
            self._under_way.discard(id(code))

    def _globals(self, function: FunctionType, changed: set[str]) -> dict[str, object]:
        """Return the constants that a function reads, and the functions of its own module."""
        found: dict[str, object] = {}
        for name in sorted({*_names(function.__code__, "LOAD_GLOBAL", "LOAD_NAME")} - changed):
            value = function.__globals__.get(name)
            if name in function.__globals__ and self._is_constant(name, value, function):
                found[name] = self._describe_value(value)
        return found

    @staticmethod
    def _is_constant(name: str, value: object, reader: FunctionType) -> bool:
        if isinstance(value, FunctionType):
            return value.__globals__ is reader.__globals__
        # A list in lower case is more likely to be written to than to be a constant.
        return isinstance(value, _CONSTANTS) or (isinstance(value, _CONTAINERS) and name.isupper())

    def _cell(self, cell: Any) -> object:
        try:
            return self._describe_value(cell.cell_contents)
        except ValueError:  # not filled yet
            return None

    def _describe_value(self, value: object) -> object:
        """Describe a value that a function holds, by its type if it may change by itself."""
        return canonical(value, describe=self._describe)

    def _describe(self, value: object) -> object:
        if isinstance(value, re.Pattern):  # its `repr` is cut short
            return {"pattern": value.pattern, "flags": value.flags}
        if isinstance(value, type):
            return {"type": _name(value)}
        if isinstance(value, Check | functools.partial | _FUNCTIONS):
            return self.check(value)
        if isinstance(value, (*_CONTAINERS, Mapping, Enum)) or is_dataclass(value):
            return None
        kind = type(value)
        # Equal by what it holds, and cannot change: a date, a path, a decimal.
        is_value = kind.__eq__ is not object.__eq__
        is_value = is_value and kind.__hash__ not in (None, object.__hash__)
        return None if is_value else {"type": _name(kind)}

    def _state(self, value: object) -> object:
        """Describe an object of the user's by its class, the bases in its module and its fields."""
        if isinstance(value, type):
            return source_of_class(value)
        if id(value) in self._under_way:
            return None
        self._under_way.add(id(value))
        module = type(value).__module__
        try:
            kinds = [kind for kind in type(value).__mro__ if kind.__module__ == module]
            slots = [name for kind in kinds for name in _slots(kind) if hasattr(value, name)]
            held = {name: getattr(value, name) for name in slots} | getattr(value, "__dict__", {})
            return {
                "source": [source_of_class(kind) for kind in kinds],
                "fields": {name: self._describe_value(part) for name, part in held.items()},
            }
        finally:
            self._under_way.discard(id(value))


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _name(thing: object) -> str:
    """File and name: a file run as a script, or imported from another folder, stays what it is."""
    while isinstance(thing, functools.partial):
        thing = thing.func
    if not hasattr(thing, "__qualname__"):
        thing = type(thing)
    owner = getattr(thing, "__objclass__", thing)
    module = str(getattr(owner, "__module__", None) or "builtins").rpartition(".")[2]
    if module == "__main__":
        module = Path(getattr(sys.modules["__main__"], "__file__", None) or "__main__").stem
    return f"{module}:{getattr(thing, '__qualname__', '')}"


def source_of(code: CodeType) -> str:
    """Return the tree of a function's source, or where there is none its byte code.

    Byte code differs between versions of Python; it stands in for what was typed at a prompt.
    """
    try:
        node = find_node(code)
        if node is not None:
            return write_node(node)
    except (OSError, TypeError, ValueError, SyntaxError, RecursionError):
        # Typed at a prompt, made by `exec`, or nested too deep to be walked.
        pass
    return _write_code(code)


def source_of_class(kind: type) -> str:
    """Return the tree of a class, or where there is no source the byte code of its methods."""
    try:
        lines, _ = inspect.getsourcelines(kind)
        indent = len(lines[0]) - len(lines[0].lstrip())
        # Not dedented: that would change texts of several lines.
        tree = ast.parse(("if 1:\n" if indent else "") + "".join(lines))
        found = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        return write_node(found[0])
    except (OSError, TypeError, ValueError, SyntaxError, RecursionError, IndexError):
        methods = [one for one in sorted(vars(kind).items()) if hasattr(one[1], "__code__")]
        return ";".join(f"{name}={_write_code(one.__code__)}" for name, one in methods)


def _names(code: CodeType, *operations: str) -> Iterator[str]:
    """Yield the names with which a function does some operations."""
    from dis import get_instructions

    for instruction in get_instructions(code):
        if instruction.opname in operations:
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant, *operations)


@lru_cache(maxsize=4)
def _tree(source: str) -> ast.Module:
    """Return a file's tree: its functions are asked for one after the other."""
    return ast.parse(source)


def find_node(code: CodeType) -> ast.AST | None:
    """Return the part of the syntax tree that a function was compiled from, if it is found."""
    lines, _ = inspect.findsource(code)
    tree = _tree("".join(lines))
    at = code.co_name, code.co_firstlineno
    found = [node for node in ast.walk(tree) if _place_of_node(node) == at]
    # Their name and line are the same; only the columns of the code tell them apart.
    if len(found) > 1:  # several lambdas on a line
        found = [node for node in found if _is_compiled_to(node, code)]
    return found[0] if len(found) == 1 else None


def _place_of_node(node: ast.AST) -> tuple[str, int] | None:
    """Return the name and the first line of a function, as its code has them."""
    if isinstance(node, ast.Lambda):
        return "<lambda>", node.lineno
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    return node.name, min(one.lineno for one in (node, *node.decorator_list))


def _is_compiled_to(node: ast.AST, code: CodeType) -> bool:
    """Return whether a lambda's body is where the code's instructions come from."""
    if not isinstance(node, ast.Lambda):
        return False
    body = node.body
    span = (body.lineno, body.end_lineno, body.col_offset, body.end_col_offset)
    return span in set(code.co_positions())


def write_node(node: object) -> str:
    """Return a syntax tree as text, without its positions and docstrings."""
    if isinstance(node, list):
        return f"[{','.join(map(write_node, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    parts = []
    for name, value in ast.iter_fields(node):
        # Fields that a later Python adds are empty in what an earlier one could parse.
        kept = _without_docstring(node, value) if name == "body" else value
        if name not in _SILENT and kept is not None and kept != []:
            parts.append(f"{name}={write_node(kept)}")
    return f"{type(node).__name__}({','.join(parts)})"


def _without_docstring(node: ast.AST, body: object) -> object:
    if not isinstance(node, _DOCUMENTED) or not isinstance(body, list):
        return body
    first = body[0].value if body and isinstance(body[0], ast.Expr) else None
    documented = isinstance(first, ast.Constant) and isinstance(first.value, str)
    return body[1:] if documented else body


def _write_code(code: CodeType) -> str:
    """Write the byte code with its constants, and without file, lines and docstrings."""
    # Without file and lines: a function that was moved is the same function.
    constants = list(code.co_consts)
    if constants and isinstance(constants[0], str) and code.co_name != "<lambda>":
        constants[0] = None  # where the compiler puts a docstring
    shown = [_write_code(one) if isinstance(one, CodeType) else repr(one) for one in constants]
    return f"{code.co_name}:{code.co_code.hex()}:{code.co_names}:{code.co_varnames}:{shown}"
