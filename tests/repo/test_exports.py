"""The public surface: what is exported exists, is typed, and hides no module."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from inspect import isfunction
from operator import attrgetter
from pathlib import Path

import pytest

import trialwise
import trialwise.stats.toolbox
from trialwise import stats
from trialwise.old_names import ASKED, MOVED

SOURCE = Path(stats.__file__).parent
#: The table that serves the lazy names; the stub does not show it.
EXPORTS: dict[str, str] = vars(stats)["_EXPORTS"]
TOOLBOX: dict[str, str] = vars(stats.toolbox)["_EXPORTS"]

#: The names of `trialwise` itself; the stub does not show the list.
FRONT_DOOR: list[str] = vars(trialwise)["__all__"]


def public_modules(folder: Path) -> list[str]:
    return sorted(
        module.name
        for module in pkgutil.iter_modules([str(folder)])
        if not module.name.startswith("_") and not module.ispkg
    )


#: `toolbox.run_lengths` serves the charts and exports nothing.
MODULES = [
    *public_modules(SOURCE),
    *(f"toolbox.{name}" for name in public_modules(SOURCE / "toolbox")),
]


def test_every_exported_name_is_defined_in_the_module_that_the_table_names() -> None:
    """The table in `__init__` is the one list of public names."""
    defined = {(name, module) for module in MODULES for name in defined_in(module)}

    assert set() == set(EXPORTS.items()) - defined


def test_every_public_function_and_class_of_every_module_is_exported_or_shared() -> None:
    """What neither users nor another module nor a test imports has a leading underscore."""
    folders = SOURCE.parent, Path(__file__).parents[1]
    imported = {
        name
        for folder in folders
        for path in folder.rglob("*.py")
        if "from trialwise.stats" in (text := path.read_text(encoding="utf-8"))
        for name in taken_from_statistics(ast.parse(text))
    }
    public = {
        name
        for module in MODULES
        for name, value in defined_in(module).items()
        if isinstance(value, ast.FunctionDef | ast.ClassDef) and not name.startswith("_")
    }

    assert set() == public - set(EXPORTS) - imported


def taken_from_statistics(tree: ast.Module) -> set[str]:
    """The names that a file imports from the statistics, or asks of a module imported from them."""
    taken: set[str] = set()
    modules: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("trialwise.stats"):
            taken |= {alias.name for alias in node.names}
            modules |= {alias.asname or alias.name for alias in node.names}
    return taken | {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in modules
    }


def defined_in(module: str) -> dict[str, ast.stmt]:
    """The statements at the top of a module that define a name."""
    path = SOURCE.joinpath(*module.split(".")).with_suffix(".py")
    found: dict[str, ast.stmt] = {}
    for one in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(one, ast.FunctionDef | ast.ClassDef):
            found[one.name] = one
        elif isinstance(one, ast.Assign | ast.AnnAssign):
            targets = one.targets if isinstance(one, ast.Assign) else [one.target]
            found |= {ast.unparse(target): one for target in targets}
    return found


def test_the_toolbox_lists_its_own_names() -> None:
    """They are the names that `trialwise.stats` serves from there."""
    served = {(name, f"toolbox.{module}") for name, module in TOOLBOX.items()}

    assert served == {one for one in EXPORTS.items() if one[1].startswith("toolbox.")}


def test_no_verdict_uses_the_toolbox() -> None:
    """What decides uses `trialwise.stats` itself; plans and the full analysis may look further."""
    package = SOURCE.parent
    users = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if "stats.toolbox" in path.read_text(encoding="utf-8")
    }
    others = {one for one in users if one.split("/")[0] not in ("stats", "contrib")}

    looks_further = ("procedures/sizing/", "procedures/explanations.py", "pages/")
    assert {one for one in others if not one.startswith(looks_further)} == set()


def test_type_checkers_see_what_the_interpreter_sees() -> None:
    """The stub imports the same names from the same modules."""
    assert set(EXPORTS.items()) == stub_of(SOURCE, "trialwise.stats.")
    assert set(TOOLBOX.items()) == stub_of(SOURCE / "toolbox", "trialwise.stats.toolbox.")


def stub_of(folder: Path, package: str) -> set[tuple[str, str]]:
    tree = ast.parse((folder / "__init__.pyi").read_text(encoding="utf-8"))
    return {
        (alias.name, (node.module or "").removeprefix(package))
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@pytest.mark.parametrize("name", sorted(EXPORTS))
def test_an_exported_name_resolves_to_itself(name: str) -> None:
    """A lazy name is the object its module holds."""
    module = importlib.import_module(f"trialwise.stats.{EXPORTS[name]}")

    assert getattr(stats, name) is getattr(module, name)


def test_no_function_is_hidden_by_a_module_of_its_name() -> None:
    """`from trialwise.stats import x` must never hand out a module once that module is loaded."""
    assert set() == set(EXPORTS) & {module.removeprefix("toolbox.") for module in MODULES}


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


def test_the_page_about_running_shows_every_name_that_it_promises() -> None:
    """All of them can be imported from `trialwise`, and none of them is left out."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "runtime.md").read_text()
    shown: dict[str, str] = {}
    for module, members in re.findall(r"automodule:: trialwise\.(\S+)\n   :members: (.+)", page):
        shown |= dict.fromkeys(members.split(", "), module)

    # What keyword arguments mean is shown; only type checkers need the name of their type.
    shown = {name: one for name, one in shown.items() if not name.endswith("Arguments")}
    assert page.count("automodule") == page.count(":members: ")
    promised = {
        name: home.removeprefix("trialwise.")
        for module in (trialwise, trialwise.outcomes, trialwise.planning, trialwise.results)
        for name in vars(module)["__all__"]
        if (home := getattr(module, name).__module__).startswith("trialwise.runtime.")
    }
    assert promised == shown


def test_a_name_that_moved_works_for_one_version_and_says_where_it_is() -> None:
    """Nobody meets it in a list of names or in a completion."""
    for name, module in MOVED.items():
        home = importlib.import_module(f"trialwise.{module}")
        with pytest.warns(DeprecationWarning, match=name) as heard:
            found = getattr(trialwise, name)
        (one,) = heard

        assert found is getattr(home, name)
        assert f"trialwise.{name} is now trialwise.{module}.{name}" == str(one.message)
        assert Path(__file__) == Path(one.filename), "it points at whoever wrote the old name"
    assert set() == {*MOVED, *ASKED} & {*FRONT_DOOR, *dir(trialwise)}


def test_every_public_name_has_a_place_in_the_reference() -> None:
    """As users write it, with a docstring, and nothing else is there."""
    page = Path(__file__).parents[2] / "docs" / "reference" / "names.md"
    listed = re.findall(r"^\.\. auto\w+:: trialwise\.(\S+)$", page.read_text("utf-8"), re.MULTILINE)
    homes = {f"{module}.{name}" for name, module in MOVED.items()}

    assert sorted({*FRONT_DOOR, *homes}) == sorted(listed)
    assert [] == [name for name in listed if not attrgetter(name)(trialwise).__doc__]
