"""What converting a file of another tool collects: a suite, notes and functions to write."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from trialwise.contrib.importers.import_notes import Notes
from trialwise.contrib.importers.import_refusal import check
from trialwise.contrib.importers.imported_suite import Imported, Place
from trialwise.contrib.importers.unwritten_functions import FunctionModule
from trialwise.contrib.importers.yaml_mappings import read_yaml
from trialwise.declarations.written import Node
from trialwise.suite.suite_problems import Problems

__all__ = ["SuiteConverter"]


@dataclass(slots=True)
class SuiteConverter(ABC):
    """One YAML file being converted; a subclass says how.

    Args:
        path: The file.
        at_least: The rate that criteria require instead of "nothing may fail".
    """

    tool: ClassVar[str]
    """What the other tool is called."""

    path: Path
    at_least: float | None = None
    problems: Problems = field(default_factory=Problems)
    notes: Notes = field(default_factory=Notes)
    files: dict[str, str] = field(default_factory=dict)
    comments: dict[Place, str] = field(default_factory=dict)
    functions: FunctionModule = field(init=False)
    """What a suite cannot say, and the user has to write."""

    def __post_init__(self) -> None:
        self.functions = FunctionModule(self.module, self.path.name)

    @property
    def module(self) -> str:
        """The name of the module that holds the functions."""
        return f"{self.tool}_functions"

    @abstractmethod
    def convert(self, root: Node) -> dict[str, Any] | None:
        """Convert the file, as far as it could be read; None where a problem was added."""

    def import_file(self) -> Imported:
        """Read the file and convert it.

        Raises:
            ImportRefused: The file is wrong, or nothing of it can be carried over.
        """
        root = read_yaml(self.path, self.problems)
        suite = None if root is None else self.convert(root)
        check(self.problems)
        assert suite is not None
        files = dict(self.files)
        if self.functions.is_needed:
            files[f"{self.module}.py"] = self.functions.text
        return Imported(
            format=self.tool,
            sources=(str(self.path),),
            suite=suite,
            notes=self.notes.texts,
            files=files,
            comments=self.comments,
        )
