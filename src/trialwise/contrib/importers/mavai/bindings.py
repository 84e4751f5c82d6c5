"""What a `mavai-bindings.py` registers, read from its source without running it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from trialwise.regular_files import FileUnreadable, read_text
from trialwise.suite.suite_problems import Problems, Source

__all__ = ["Bindings", "read_bindings"]

_MAX_BYTES = 1_000_000
_KINDS = ("binding", "binding_factory", "transform", "check", "scorer", "stepper")
_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bindings:
    """Functions by the names they are registered under."""

    path: Path | None = None
    services: Mapping[str, str] = field(default_factory=lambda: _NONE)
    factories: Mapping[str, str] = field(default_factory=lambda: _NONE)
    transforms: Mapping[str, str] = field(default_factory=lambda: _NONE)
    checks: Mapping[str, str] = field(default_factory=lambda: _NONE)
    scorers: Mapping[str, str] = field(default_factory=lambda: _NONE)
    steppers: Mapping[str, str] = field(default_factory=lambda: _NONE)

    @property
    def module(self) -> str:
        """What Python imports it as."""
        return "" if self.path is None else self.path.stem


def read_bindings(path: Path | None, problems: Problems) -> Bindings:
    """The registrations of a file: functions decorated with a name.

    Args:
        path: The file, if there is one.
        problems: Where to say what is wrong with it.
    """
    if path is None:
        return Bindings()
    try:
        text = read_text(path, limit=_MAX_BYTES)
    except FileUnreadable as error:
        problems.add_at(
            Source(path, error.text), error.line, error.column, f"the file {error.reason}"
        )
        return Bindings()
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        line, column = (error.lineno or 1) - 1, max(0, (error.offset or 1) - 1)
        problems.add_at(Source(path, text), line, column, f"this is not Python: {error.msg}")
        return Bindings()
    except (ValueError, RecursionError, MemoryError):
        problems.add_at(Source(path, text), 0, 0, "this is not Python")
        return Bindings()
    found: dict[str, dict[str, str]] = {kind: {} for kind in _KINDS}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                _register(decorator, node.name, found)
    return Bindings(
        path=path,
        services=found["binding"],
        factories=found["binding_factory"],
        transforms=found["transform"],
        checks=found["check"],
        scorers=found["scorer"],
        steppers=found["stepper"],
    )


def _register(decorator: ast.expr, function: str, found: dict[str, dict[str, str]]) -> None:
    if not isinstance(decorator, ast.Call) or not decorator.args:
        return
    called, first = decorator.func, decorator.args[0]
    kind = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    if kind in found and isinstance(first, ast.Constant) and isinstance(first.value, str):
        found[kind][first.value] = function
