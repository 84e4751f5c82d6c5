"""How an importer of suite files is declared, and where each is found.

A module declares its importer as `IMPORTER`. Other distributions add theirs as entry points of the
group `trialwise.importers`:

    [project.entry-points."trialwise.importers"]
    mine = "my_package.importing:IMPORTER"
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from trialwise.contrib.importers.imported_suite import Imported
from trialwise.declarations.written import Node
from trialwise.extensions import IMPORTERS, load_extensions

__all__ = ["ImportRequest", "SuiteImporter", "built_in_importers", "extension_importers"]

_BUILT_IN = (
    "trialwise.contrib.importers.cerberus.cerberus_suite",
    "trialwise.contrib.importers.mavai.mavai_suite",
    "trialwise.contrib.importers.mcptest.mcptest_suite",
    "trialwise.contrib.importers.promptfoo.promptfoo_suite",
    "trialwise.contrib.importers.vally.vally_suite",
)

Role: TypeAlias = str
"""What a file is for its importer, such as `contract` or `services`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """The files of one suite, and what a user says beside them."""

    files: Mapping[Role, Path]
    bindings_path: Path | None = None
    """The functions that a mavai suite registers in code."""
    samples: int | None = None
    """The number of trials, if the files leave it open."""
    at_least: float | None = None
    """The rate that criteria require, if the files ask for no rate."""
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteImporter:
    """Converts the suite files of one tool."""

    name: str
    signs: str
    """How a person recognises its files, as the rest of a sentence that starts with the tool."""
    find_role: Callable[[Node], Role | None]
    """Returns what a file is for this importer, or None where the file is of another tool."""
    import_files: Callable[[ImportRequest], Imported]
    """Converts the files; there is at most one of each role."""


def built_in_importers() -> Iterator[SuiteImporter]:
    """Yield the importers of this package."""
    for module in _BUILT_IN:
        found = import_module(module).IMPORTER
        assert isinstance(found, SuiteImporter)
        yield found


def extension_importers() -> Iterator[SuiteImporter]:
    """Yield the importers of other distributions, for a file that no built-in recognises."""
    yield from load_extensions(
        IMPORTERS, lambda one: one if isinstance(one, SuiteImporter) else None
    ).values()
