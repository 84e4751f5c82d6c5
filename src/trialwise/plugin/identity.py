"""What makes a test the same test: a baseline speaks of its body, not of its thresholds.

The fingerprint is the one of every postcondition: the source, its defaults, the constants it
reads, the functions of its own module that it calls. Only pytest's marks are left out, since what
is asked of the rate belongs to the test and not to what it measures.
"""

from __future__ import annotations

import ast
import copy
import inspect
from functools import partial
from types import FunctionType
from typing import Any

from trialwise.checks import function_source
from trialwise.checks.criterion_scopes import _Described
from trialwise.model.criterion import Check
from trialwise.model.fingerprint import fingerprint

__all__ = ["body_of"]


def body_of(function: object) -> Check:
    """A test's function as the postcondition that its criteria are known by."""
    plain = inspect.unwrap(function) if callable(function) else function
    return partial(body, getattr(plain, "__qualname__", ""), _contents(plain))


def body(name: str, contents: str) -> None:
    """Stands for a test's function in a fingerprint; pytest is who runs the function itself."""


def _contents(function: object) -> str:
    if not isinstance(function, FunctionType):
        return ""
    described: Any = _Described()._function(function)
    return fingerprint({**described, "source": _unmarked_source(function)})


def _unmarked_source(function: FunctionType) -> str:
    try:
        node: Any = function_source.find_node(function.__code__)
    except (OSError, TypeError, ValueError, SyntaxError, RecursionError):
        node = None
    if node is None:
        return function_source.source_of(function.__code__)
    plain = copy.copy(node)
    plain.decorator_list = [one for one in node.decorator_list if not _is_mark(one)]
    return function_source.write_node(plain)


def _is_mark(decorator: ast.expr) -> bool:
    """Whether a decorator is `pytest.mark.…`, called or not, however pytest was imported."""
    node: ast.expr = decorator.func if isinstance(decorator, ast.Call) else decorator
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "")
    return "mark" in parts[1:]
