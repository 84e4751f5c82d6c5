"""Suites of another tool that are kept beside the project."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from trialwise.contrib.importers import ImportRefused, import_suite
from trialwise.suite import Suite

Load = Callable[..., Suite]

FOLDER = Path(__file__).parents[4] / "shared" / "interop"
VALID = sorted((FOLDER / "valid").glob("*.yaml"))
INVALID = sorted((FOLDER / "invalid").glob("*.yaml"))
BINDINGS = """\
def binding_factory(name):
    return lambda function: function


@binding_factory("triage")
def triage(tone, certainty):
    return lambda text: f"category: {text}"
"""

pytestmark = pytest.mark.skipif(not VALID, reason="the suites of other tools are not here")


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_every_valid_file_is_imported_and_loads(path: Path, tmp_path: Path, load: Load) -> None:
    """With the type that its own description presumes to be registered."""
    bindings = tmp_path / "mavai-bindings.py"
    bindings.write_text(BINDINGS, encoding="utf-8")
    imported = import_suite(path, bindings_path=bindings)

    if imported.is_whole:
        assert 1 == len(load(imported).contracts)
    else:
        assert imported.suite["services"]


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_every_invalid_file_is_refused_with_its_place(path: Path) -> None:
    """The file, a line that exists, and a reason of one line that names a key."""
    with pytest.raises(ImportRefused) as caught:
        import_suite(path)

    lines = path.read_text(encoding="utf-8").splitlines()
    for problem in caught.value.problems:
        assert str(path) == problem.file
        assert 1 <= problem.line <= len(lines)
        assert "`" in problem.message or "cannot be read" in problem.message
