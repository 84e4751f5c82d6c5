"""The code keeps its shape: limits on size, names and reach, recomputed by `make shape`.

A limit may fall and never rises: a feature pays for its lines with deletions.
"""

from __future__ import annotations

import subprocess
from itertools import pairwise

import pytest
from tools.shape import LIMITS, ROOT, Shape, read_limits

#: Of these figures there should be more, not fewer.
_UPWARDS = {"comments_per_100_lines"}


@pytest.fixture(scope="module")
def shape() -> Shape:
    return Shape()


def test_every_figure_keeps_its_limit(shape: Shape) -> None:
    """
    Docstrings, comments and blank lines are no code; `contrib` and the toolbox stand apart.
    """
    figures, limits = shape.figures(), read_limits()
    broken = {
        key: (figures[key], limit)
        for key, limit in limits.items()
        if (figures[key] < limit if key in _UPWARDS else figures[key] > limit)
    }

    assert {} == broken
    assert figures.keys() == limits.keys()


def test_no_limit_has_ever_risen() -> None:
    """
    Every version of the limits that git knows is compared with the one before it.
    """
    name = LIMITS.relative_to(ROOT).as_posix()
    log = ["git", "log", "--first-parent", "--format=%H", "--", name]
    found = subprocess.run(log, cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode or not found.stdout:
        pytest.skip("there is no history here")
    versions = [
        read_limits(
            subprocess.run(
                ["git", "show", f"{commit}:{name}"],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for commit in reversed(found.stdout.split())
    ]

    for earlier, later in pairwise([*versions, read_limits()]):
        risen = {
            key
            for key in earlier
            if key not in later
            or (later[key] < earlier[key] if key in _UPWARDS else later[key] > earlier[key])
        }
        assert set() == risen


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
