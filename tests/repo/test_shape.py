"""The code keeps its shape: limits on size, names and reach, recomputed by `make shape`.

A limit may fall and never rises: a feature pays for its lines with deletions.
"""

from __future__ import annotations

import pytest
from tools.shape import Shape


@pytest.fixture(scope="module")
def shape() -> Shape:
    return Shape()


def test_the_core_does_not_grow(shape: Shape) -> None:
    """
    Docstrings, comments and blank lines do not count; `contrib` and the toolbox stand apart.
    """
    assert sum(file.code_lines for file in shape.core) <= 75_300


def test_no_file_has_grown_two_jobs(shape: Shape) -> None:
    """
    A file of more than 500 lines holds more than one thing.
    """
    assert [] == [file.path.name for file in shape.files if file.lines > 500]


def test_functions_are_named_by_verbs(shape: Shape) -> None:
    """
    At most 2 % of the functions are named by a bare participle, such as `made` or `told`.
    """
    found = shape.participles()
    share = len(found) / len(shape.functions)

    assert share <= 0.02, sorted({one.name for one in found})


def test_no_package_reaches_into_the_private_parts_of_another(shape: Shape) -> None:
    """
    A name with an underscore belongs to its package.
    """
    assert [] == [f"{path.name}: {name}" for path, name in shape.private_imports()]


def test_the_core_does_not_import_contrib(shape: Shape) -> None:
    """
    Bridges to other tools are found by name, and only when somebody asks for them.
    """
    assert [] == [f"{path.name}: {name}" for path, name in shape.contrib_imports()]


@pytest.mark.parametrize(
    ("kind", "most"),
    [("check", 1), ("service", 3), ("report format", 2), ("run setting", 4), ("procedure", 4)],
)
def test_a_new_one_touches_few_files(shape: Shape, kind: str, most: int) -> None:
    """
    Hand-written files that name a built-in: where it is declared, and where something special
    is done with it. `test_extending` shows that a new one needs the first alone.
    """
    named = [path.name for path in shape.files_naming(kind)]

    assert len(named) <= most, named


def test_the_help_pages_stay_short() -> None:
    """
    What is used every day; `--help-all` lists the rest.
    """
    assert Shape.count_commands() <= 12
    assert Shape.count_run_options() <= 20
