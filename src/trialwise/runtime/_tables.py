"""One typed table for pandas or polars, whichever is installed; trialwise itself needs neither.

Apart from what the tables hold, because both libraries must give the same one: an empty column has
its type too, and whole numbers do not become fractions where some are missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from trialwise.errors import TrialwiseError
from trialwise.validation import require_choice

__all__ = ["LIBRARIES", "FrameLibraryMissing", "Library", "Table", "make_frame"]

Library: TypeAlias = Literal["pandas", "polars"]
LIBRARIES: tuple[Library, ...] = ("pandas", "polars")


class FrameLibraryMissing(TrialwiseError, ImportError):
    """A table was asked for, and the library that holds it is not installed."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows and the types of their columns; what a row does not hold is missing."""

    columns: Mapping[str, type]
    rows: Sequence[Mapping[str, Any]]

    def column(self, name: str) -> list[Any]:
        """The values of one column, None where one is missing."""
        return [row.get(name) for row in self.rows]


def make_frame(table: Table, library: Library | None) -> Any:
    """The table as a data frame.

    Args:
        table: What it holds.
        library: Whose; None for pandas where it is installed, else polars.

    Raises:
        FrameLibraryMissing: Neither is installed, or not the one asked for.
    """
    if library is not None:
        require_choice("library", library, LIBRARIES)
    for name in LIBRARIES if library is None else (library,):
        module = _import_library(name)
        if module is not None:
            return _pandas(module, table) if name == "pandas" else _polars(module, table)
    raise FrameLibraryMissing(
        f"a table needs {library or 'pandas or polars'}, which is not installed. Install it (pip "
        f"install {library or 'pandas'}), or take the plain values of to_dict()"
    )


def _import_library(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:  # it is there, and broken
            raise
        return None


def _pandas(pandas: Any, table: Table) -> Any:
    columns = {}
    for name, kind in table.columns.items():
        values = table.column(name)
        columns[name] = pandas.Series(values, dtype=_pandas_type(kind, values))
    return pandas.DataFrame(columns)


def _pandas_type(kind: type, values: Sequence[Any]) -> str:
    """Plain types where nothing is missing; whole numbers never become fractions for a gap."""
    gaps = any(value is None for value in values)
    if kind is int:
        return "Int64" if gaps else "int64"
    if kind is bool:
        return "boolean" if gaps else "bool"
    return "float64" if kind is float else "string"


def _polars(polars: Any, table: Table) -> Any:
    data = {name: table.column(name) for name in table.columns}
    return polars.DataFrame(data, schema=dict(table.columns), strict=False)
