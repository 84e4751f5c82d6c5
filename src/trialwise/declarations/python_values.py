"""Read declared keys from Python values, such as the arguments of a pytest marker.

A text may hold an amount as a suite writes it ("90%", "30s"), and a number of seconds needs no
unit. The first problem is raised: there is no file in which several could be shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from trialwise.errors import TrialwiseError

__all__ = ["PythonReader", "PythonValue", "ValueRefused"]


class ValueRefused(TrialwiseError):
    """A value is not what its key takes."""


class PythonValue:
    """A Python value, seen as kinds of values see what was written."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    @property
    def is_mapping(self) -> bool:
        """Whether it holds keys and values."""
        return isinstance(self.value, Mapping)

    @property
    def is_list(self) -> bool:
        """Whether it holds items."""
        return isinstance(self.value, list | tuple)

    @property
    def is_scalar(self) -> bool:
        """Whether it is one value."""
        return not self.is_mapping and not self.is_list

    @property
    def entries(self) -> Mapping[str, tuple[PythonValue, PythonValue]]:
        """The keys and values of a mapping."""
        return {str(key): (PythonValue(key), PythonValue(one)) for key, one in self.value.items()}

    def items(self) -> Iterator[PythonValue]:
        """The items of a list."""
        return map(PythonValue, self.value)


class PythonReader:
    """Reads Python values: it knows neither files nor an environment."""

    takes_python = True
    problem_count = 0
    variables: Mapping[str, str] = {}

    def refuse(self, node: Any, message: str, *, hide: bool = False) -> NoReturn:  # noqa: ARG002
        """Raise a problem with a value."""
        raise ValueRefused(message)

    def fill(self, node: Any, text: str) -> str:  # noqa: ARG002
        """Return a text as it is: Python code reads the environment by itself."""
        return text

    fill_template = fill

    def fill_scalar(self, node: Any, text: str) -> Any:  # noqa: ARG002
        """Return a text as it is."""
        return text

    def mark_filled(self, text: str, written: str) -> str:  # noqa: ARG002
        """Return a text as it is."""
        return text

    def entries(self, node: Any) -> Mapping[str, tuple[Any, Any]]:
        """Return the keys and values of a mapping."""
        found: Mapping[str, tuple[Any, Any]] = node.entries
        return found

    def items(self, node: Any) -> Iterator[Any]:
        """Return the items of a list."""
        yield from node.items()

    def homes(self, key: str) -> tuple[str, ...]:  # noqa: ARG002
        """Return nothing: a marker has one place for keys."""
        return ()

    def file(self, text: str) -> Path:
        """Return a path."""
        return Path(text)

    def read_json_file(self, node: Any, path: Path) -> Any:
        """Refuse a file: Python code reads it by itself."""
        self.refuse(node, f"{path} cannot be read here: give the document itself")

    def import_function(self, node: Any, path: str) -> Any:
        """Refuse a name: Python code has the function itself."""
        self.refuse(node, f"{path} cannot be imported here: give the function itself")
