"""What is derived from the declarations is current: the catalogue, the options and the stubs.

The JSON Schema and the reference page of the suite have tests of their own beside the suite's.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.stubs import (
    read_option_rows,
    render_catalogue,
    render_names,
    render_options,
    render_pytest_options,
    render_run_settings,
    render_stubs,
)

import trialwise

PACKAGE = Path(__file__).parents[2] / "src" / "trialwise"


def test_the_catalogue_names_what_the_modules_declare() -> None:
    """Whoever adds a check or a service runs `make stubs`."""
    written = (PACKAGE / "catalogue.py").read_text(encoding="utf-8")

    assert render_catalogue(PACKAGE) + render_options(read_option_rows()) == written


STUBS = sorted(PACKAGE.rglob("*.pyi"))


@pytest.fixture(scope="module")
def stubs() -> dict[Path, str]:
    return render_stubs(PACKAGE)


@pytest.mark.parametrize("path", STUBS, ids=lambda path: path.parent.name)
def test_a_stub_shows_type_checkers_what_the_package_exports(
    path: Path, stubs: dict[Path, str]
) -> None:
    """Whoever changes an export runs `make stubs`."""
    assert stubs[path] == path.read_text(encoding="utf-8")


def test_no_stub_is_left_over(stubs: dict[Path, str]) -> None:
    """A package that lost its exports loses its stub."""
    assert set(STUBS) == set(stubs)


def test_the_page_of_names_has_every_check() -> None:
    """Whoever adds a check runs `make stubs`, and edits no page."""
    page = PACKAGE.parents[1] / "docs" / "reference" / "names.md"
    written = page.read_text(encoding="utf-8")

    assert render_names(PACKAGE, written) == written


def test_the_options_are_those_that_the_settings_declare() -> None:
    """Of the command line, of pytest, and the keyword arguments of `tw.run`."""
    rows = read_option_rows()
    door = (PACKAGE.parent / "_trialwise_pytest.py").read_text(encoding="utf-8")
    settings = (PACKAGE / "model" / "run_settings.py").read_text(encoding="utf-8")

    assert render_pytest_options(rows, door) == door
    assert render_run_settings(PACKAGE) == settings


def test_every_name_that_is_exported_is_there() -> None:
    """A module that was renamed is missed here."""
    assert [] == [name for name in vars(trialwise)["_EXPORTS"] if not hasattr(trialwise, name)]
