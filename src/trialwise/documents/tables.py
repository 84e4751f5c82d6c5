"""Tables built column by column: each heading stands beside what its cells say."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias, TypeVar

from trialwise.documents.blocks import Cell, Row, Table

__all__ = ["Column", "build_table"]

Subject = TypeVar("Subject")
Column: TypeAlias = tuple[Cell, Callable[[Subject], Cell]]
"""A heading, and the cell below it for one subject."""


def build_table(
    heading: str,
    subjects: Iterable[Subject],
    *columns: Column[Subject],
    words: tuple[int, ...] = (0,),
    notes: tuple[str, ...] = (),
    is_headed: bool = True,
) -> Table:
    """A table with a row for each subject.

    >>> build_table("Squares", [2, 3], ("n", str), ("square", lambda n: f"{n * n}")).rows[1].cells
    ('3', '9')

    Args:
        heading: Of the table.
        subjects: What the rows are about.
        columns: Each with its heading; the first one names the row.
        words: Columns that hold words rather than numbers.
        notes: What a reader needs below it.
        is_headed: Whether the heading is seen.
    """
    return Table(
        heading=heading,
        columns=tuple(title for title, _ in columns),
        rows=tuple(Row(cells=tuple(write(one) for _, write in columns)) for one in subjects),
        words=words,
        notes=notes,
        is_headed=is_headed,
    )
