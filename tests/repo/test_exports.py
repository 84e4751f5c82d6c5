"""The public surface: what is exported exists, is typed, and hides no module."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from inspect import isfunction
from pathlib import Path

import pytest

import trialwise
from trialwise import stats

SOURCE = Path(stats.__file__).parent
#: The table that serves the lazy names; the stub does not show it.
EXPORTS: dict[str, str] = vars(stats)["_EXPORTS"]
MODULES = sorted(
    module.name
    for module in pkgutil.iter_modules([str(SOURCE)])
    if not module.name.startswith("_") and not module.ispkg
)


def test_every_public_name_of_every_module_is_exported() -> None:
    """The package exports exactly what its modules declare public."""
    declared = {
        (name, module)
        for module in MODULES
        for name in importlib.import_module(f"trialwise.stats.{module}").__all__
    }

    assert declared == set(EXPORTS.items())


def test_type_checkers_see_what_the_interpreter_sees() -> None:
    """The stub imports the same names from the same modules."""
    tree = ast.parse((SOURCE / "__init__.pyi").read_text(encoding="utf-8"))
    stub = {
        (alias.name, (node.module or "").rsplit(".", 1)[-1])
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    assert set(EXPORTS.items()) == stub


@pytest.mark.parametrize("name", sorted(EXPORTS))
def test_an_exported_name_resolves_to_itself(name: str) -> None:
    """A lazy name is the object its module holds."""
    module = importlib.import_module(f"trialwise.stats.{EXPORTS[name]}")

    assert getattr(stats, name) is getattr(module, name)


def test_no_function_is_hidden_by_a_module_of_its_name() -> None:
    """`from trialwise.stats import x` must never hand out a module once that module is loaded."""
    assert set() == set(EXPORTS) & set(MODULES)


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A typo fails like any other attribute."""
    with pytest.raises(AttributeError, match="wilson_intervall"):
        _ = stats.wilson_intervall  # type: ignore[attr-defined]


def test_the_version_is_the_packages() -> None:
    """One version, stated twice, equal."""
    from importlib.metadata import version

    assert version("trialwise") == trialwise.__version__


def test_every_public_function_has_an_example_that_runs() -> None:
    """A docstring with a doctest for every exported function."""
    without = [
        name
        for name in sorted(EXPORTS)
        if isfunction(value := getattr(stats, name)) and ">>>" not in (value.__doc__ or "")
    ]

    assert [] == without
