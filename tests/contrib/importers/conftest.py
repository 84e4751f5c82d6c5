"""Imported suites written to a folder and loaded from it, and modules that leave no trace."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from trialwise.contrib.importers import Imported, render_yaml
from trialwise.suite import Suite, load_suite

Write = Callable[[str, str], Path]
Load = Callable[..., Suite]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file of another tool."""

    def write_file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write_file


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """Write an imported suite with its files, and load it as anybody would."""
    modules, path = set(sys.modules), [*sys.path]

    def write_and_load(imported: Imported, environment: Mapping[str, str] | None = None) -> Suite:
        for name, text in imported.files.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        suite = tmp_path / "trialwise.yaml"
        suite.write_text(render_yaml(imported), encoding="utf-8")
        return load_suite(suite, environment=environment or {})

    yield write_and_load
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        # A module of one test's folder must not be found by the next test.
        file = getattr(sys.modules[name], "__file__", None)
        if file is not None and Path(file).is_relative_to(tmp_path):
            del sys.modules[name]
