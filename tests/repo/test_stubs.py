"""What is derived from the declarations is current: the catalogue and the stubs.

The JSON Schema and the reference page of the suite have tests of their own beside the suite's.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.stubs import render_catalogue, render_stubs

PACKAGE = Path(__file__).parents[2] / "src" / "trialwise"


def test_the_catalogue_names_what_the_modules_declare() -> None:
    """Whoever adds a check or a service runs `make stubs`."""
    written = (PACKAGE / "catalogue.py").read_text(encoding="utf-8")

    assert render_catalogue(PACKAGE) == written


@pytest.mark.parametrize("path", render_stubs(PACKAGE), ids=lambda path: path.parent.name)
def test_a_stub_shows_type_checkers_what_the_package_exports(path: Path) -> None:
    """Whoever changes an export runs `make stubs`."""
    assert render_stubs(PACKAGE)[path] == path.read_text(encoding="utf-8")
