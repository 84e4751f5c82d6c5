"""Sections of labelled values, and how they become at most 80 columns of text.

Every part of the report is made as a `Section`; only this module knows about columns and symbols.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from trialwise.documents.printable import pad, shorten, spell, wrap_text

__all__ = ["COLUMNS", "Rows", "Section", "rendered"]

COLUMNS = 80
_LABEL = 26
_INDENT = "  "

Rows: TypeAlias = list[tuple[str, str]]
"""Labels and values; an empty label goes on with the one before."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it."""

    heading: str
    rows: Rows


def rendered(title: str, sections: Iterable[Section], *, unicode: bool) -> str:
    """The sections as text, spelled before they are wrapped: "alpha" is longer than "α"."""
    lines = [*wrap_text(spell(title, unicode=unicode), COLUMNS), ""]
    for section in sections:
        lines += wrap_text(spell(section.heading, unicode=unicode), COLUMNS)
        for label, value in section.rows:
            shown = spell(label, unicode=unicode), spell(value, unicode=unicode)
            lines += _row(*shown, unicode=unicode)
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _row(label: str, value: str, *, unicode: bool) -> Iterator[str]:
    named = f"{shorten(label, _LABEL - 1, unicode=unicode)}:" if label else ""
    first, *rest = wrap_text(value, COLUMNS - len(_INDENT) - _LABEL - 1)
    yield f"{_INDENT}{pad(named, _LABEL)} {first}".rstrip()
    for line in rest:
        yield f"{_INDENT}{'':{_LABEL}} {line}"
