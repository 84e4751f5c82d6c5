"""The result of an import: a suite, the files it needs, and notes for its reader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

__all__ = ["Imported", "Place"]

Place: TypeAlias = tuple[str | int, ...]
"""Keys and positions from the top of a suite down to one of its values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The suite of another tool as a suite of trialwise.

    >>> Imported(format="cerberus", sources=("cerberus.yaml",), suite={"name": "sums"}).notes
    ()
    """

    format: str
    """The tool that it came from, such as `cerberus` or `mavai`."""
    sources: tuple[str, ...]
    """The files it was read from, as they were named."""
    suite: dict[str, Any]
    """Plain values, as a suite file holds them."""
    notes: tuple[str, ...] = ()
    """What is different or left to do, each with its place. Nothing is dropped silently."""
    files: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Further files that the suite names, by path from its folder."""
    comments: Mapping[Place, str] = field(default_factory=lambda: MappingProxyType({}))
    """Comments to write above values: where each came from."""
    is_whole: bool = True
    """Whether the suite can be run; a part of one is there to be included."""
