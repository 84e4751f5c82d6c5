"""Sections of labelled values, and how they become at most 80 columns of text.

Every part of the report is made as a `Section`; only this module knows about columns and symbols.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from trialwise.reporters.layout import padded, shortened, spelled, wrapped

__all__ = ["COLUMNS", "Rows", "Section", "number", "rendered"]

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
    lines = [*wrapped(spelled(title, unicode=unicode), COLUMNS), ""]
    for section in sections:
        lines += wrapped(spelled(section.heading, unicode=unicode), COLUMNS)
        for label, value in section.rows:
            shown = spelled(label, unicode=unicode), spelled(value, unicode=unicode)
            lines += _row(*shown, unicode=unicode)
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _row(label: str, value: str, *, unicode: bool) -> Iterator[str]:
    named = f"{shortened(label, _LABEL - 1, unicode=unicode)}:" if label else ""
    first, *rest = wrapped(value, COLUMNS - len(_INDENT) - _LABEL - 1)
    yield f"{_INDENT}{padded(named, _LABEL)} {first}".rstrip()
    for line in rest:
        yield f"{_INDENT}{'':{_LABEL}} {line}"


def number(value: float) -> str:
    """A computed number to six decimals, or to three digits where those would show nothing.

    >>> number(0.0371), number(1.23e-9)
    ('0.037100', '1.23e-09')
    """
    return f"{value:.6f}" if value == 0 or abs(value) >= 1e-4 else f"{value:.3g}"
