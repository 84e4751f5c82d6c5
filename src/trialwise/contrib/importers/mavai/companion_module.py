"""The module beside an imported suite: what the suite names and no postcondition or service says.

Everything that comes from a file is written as a Python literal, so that nothing of it is code.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trialwise.contrib.importers.mavai.bindings import Bindings

__all__ = ["Companion"]

_WIDTH = 96
_IMPORT_MODULE = "from importlib import import_module"
_IMPORT_PATH = "from pathlib import Path"


@dataclass(slots=True)
class Companion:
    """A module being written.

    Args:
        name: What it is called, without its ending.
        source: The file it comes from.
        bindings: Functions that are registered in code.
    """

    name: str
    source: str
    bindings: Bindings
    _parts: list[str] = field(default_factory=list)
    _imports: set[str] = field(default_factory=set)
    _functions: dict[tuple[str, str], str] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=lambda: {"criterion", "arguments", "Path"})
    stubs: list[str] = field(default_factory=list)
    """Functions that are left to be written, by what they stand for."""

    @property
    def is_needed(self) -> bool:
        """Whether there is anything in it."""
        return bool(self._parts)

    @property
    def text(self) -> str:
        """The module."""
        source = _plain(self.source)
        heading = f'"""What {source} says that a suite cannot: imported, yours to change."""'
        standard = sorted(one for one in self._imports if "trialwise" not in one)
        own = sorted(one for one in self._imports if "trialwise" in one)
        head = [heading, "\n".join(standard), "\n".join(own), "\n".join(self._globals())]
        return "\n\n\n".join(["\n\n".join(filter(None, head)), *self._parts]) + "\n"

    def _globals(self) -> list[str]:
        """What the functions below need."""
        found = []
        if _IMPORT_MODULE in self._imports:
            found.append(f"_bindings = import_module({self.bindings.module!r})")
        if _IMPORT_PATH in self._imports:
            found.append("_FOLDER = Path(__file__).parent")
        return found

    @property
    def uses_bindings(self) -> bool:
        """Whether it imports what is registered in code."""
        return _IMPORT_MODULE in self._imports

    def service(self, name: str) -> str:
        """A service that is registered in code, or is to be connected; as `module:function`."""
        function = self._identifier(name)
        if name in self.bindings.services:
            self._uses_bindings()
            self._write_call(function, name, f"_bindings.{self.bindings.services[name]}")
        else:
            self.stubs.append(f"the service `{name}` as `{function}`")
            self._stub(
                function, "given", f"service {name}", "Ask the service and return its reply."
            )
        return f"{self.name}:{function}"

    def add_configured_service(self, name: str, kind: str, configuration: Mapping[str, Any]) -> str:
        """A service made by a factory that is registered in code; as `module:function`."""
        function = self._identifier(name)
        self._uses_bindings()
        given = {key.replace("-", "_"): value for key, value in configuration.items()}
        made = f"_{function}"
        factory = f"_bindings.{self.bindings.factories[kind]}"
        self._parts.append(f"{made} = {factory}(**{_literal(given, 0)})")
        self._write_call(function, name, made)
        return f"{self.name}:{function}"

    def criterion(
        self,
        name: str,
        *,
        checks: Sequence[dict[str, Any]],
        views: Mapping[str, str],
        slack: int | str,
        expected: Sequence[tuple[Any, Sequence[dict[str, Any]]]],
    ) -> str:
        """Add a function that checks replies, and return it as `module:function`.

        Args:
            name: The criterion's.
            checks: Those that no postcondition says.
            views: What each view is, by name.
            slack: How many of the optional checks may fail.
            expected: What single inputs expect.
        """
        every = [*checks, *(one for _, several in expected for one in several)]
        used = {one.get("in", one.get("parses")) for one in every}
        lines = [f"    {_literal(list(checks), 4)},"] if checks else ["    [],"]
        if shown := {one: kind for one, kind in views.items() if one in used}:
            lines.append(f"    views={self._views(shown)},")
        if wanted := sorted({str(one["satisfies"]) for one in every if "satisfies" in one}):
            pairs = ", ".join(f"{one!r}: {self._function('check', one)}" for one in wanted)
            lines.append(f"    functions={{{pairs}}},")
        if slack:
            lines.append(f"    optional_slack={slack!r},")
        if expected:
            lines.append(
                f"    expected={_literal([(one, list(two)) for one, two in expected], 4)},"
            )
        self._imports.add("from trialwise.contrib.importers.mavai.reply_checks import criterion")
        function = self._identifier(name)
        self._parts.append("\n".join([f"{function} = criterion(", *lines, ")"]))
        return f"{self.name}:{function}"

    def _views(self, views: Mapping[str, str]) -> str:
        stock = ("json", "xml", "yaml")
        pairs = [
            f"{name!r}: {kind!r}"
            if kind in stock
            else f"{name!r}: {self._function('transform', kind)}"
            for name, kind in views.items()
        ]
        return "{" + ", ".join(pairs) + "}"

    def _function(self, kind: str, name: str) -> str:
        """A transformation or check that is registered in code, or is still to be written."""
        registered = self.bindings.transforms if kind == "transform" else self.bindings.checks
        if name in registered:
            self._uses_bindings()
            return f"_bindings.{registered[name]}"
        if (kind, name) not in self._functions:
            function = self._identifier(name)
            self._functions[kind, name] = function
            self.stubs.append(f"the {kind} `{name}` as `{function}`")
            if kind == "transform":
                self._stub(function, "text", f"transform {name}", "Return what the reply says.")
            else:
                self._stub(function, "value", f"check {name}", "Return whether the value is right.")
        return self._functions[kind, name]

    def _uses_bindings(self) -> None:
        self._imports.add(_IMPORT_MODULE)

    def _write_call(self, function: str, name: str, callee: str) -> None:
        self._imports |= {
            _IMPORT_PATH,
            "from trialwise.contrib.importers.mavai.service_calls import arguments",
        }
        self._parts.append(
            f"def {function}(given):\n"
            f'    """The service {_plain(name)}, as it is registered."""\n'
            f"    return {callee}(*arguments(given, _FOLDER))"
        )

    def _stub(self, function: str, parameter: str, what: str, advice: str) -> None:
        self._parts.append(
            f"def {function}({parameter}):\n"
            f'    """{advice}"""\n'
            f"    raise NotImplementedError({f'the {what} is still to be written'!r})"
        )

    def _identifier(self, name: str) -> str:
        """A name of Python's for a name of a file's, each once."""
        plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:60] or "unnamed"
        if plain[0].isdigit() or keyword.iskeyword(plain):
            plain = f"the_{plain}"
        found, number = plain, 2
        while found in self._taken:
            found, number = f"{plain}_{number}", number + 1
        self._taken.add(found)
        return found


def _literal(value: Any, indent: int) -> str:
    """A value as Python writes it, in several lines where it is long."""
    flat = repr(value)
    if not isinstance(value, dict | list | tuple) or len(flat) + indent <= _WIDTH:
        return flat
    inner = indent + 4
    if isinstance(value, dict):
        items = [f"{key!r}: {_literal(one, inner)}" for key, one in value.items()]
    else:
        items = [_literal(one, inner) for one in value]
    opening, closing = flat[0], flat[-1]
    lines = [f"{' ' * inner}{item}," for item in items]
    return "\n".join([opening, *lines, " " * indent + closing])


def _plain(text: str) -> str:
    """A name as it may stand in a docstring."""
    kept = "".join(one if one.isprintable() and one not in '"\\' else "·" for one in text)
    return kept[:60]
