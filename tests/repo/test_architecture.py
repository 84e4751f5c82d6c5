"""The page on the architecture is true: its files exist, and its layers are the linted ones."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
FILES = sorted(set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", PAGE)))


def test_the_page_names_files() -> None:
    """
    The table of questions is what a newcomer reads first.
    """
    assert len(FILES) > 10


@pytest.mark.parametrize("name", FILES)
def test_every_file_that_the_page_names_exists(name: str) -> None:
    """
    A file is given below the package, or below the root of the repository.
    """
    assert (ROOT / "src" / "trialwise" / name).is_file() or (ROOT / name).is_file()


def test_a_decision_is_followed_through_five_modules() -> None:
    """
    From its plan to its explanation, for each decision of the table.
    """
    table = PAGE.partition("## From a plan to its explanation")[2].partition("\n## ")[0]
    rows = [re.findall(r"`[a-z_/]+\.py`", line) for line in table.splitlines()]

    assert 4 == sum(map(bool, rows))
    assert max(map(len, rows)) <= 5


def test_the_drawing_shows_the_layers_that_are_linted() -> None:
    """
    The rows of the drawing and the layers of import-linter are the same, from top to bottom.
    """
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = configuration["tool"]["importlinter"]["contracts"]
    (layers,) = [one["layers"] for one in contracts if one["type"] == "layers"]
    drawn = re.search(r"## Layers\n\n```\n(.*?)```", PAGE, re.S)
    assert drawn is not None

    rows = [re.split(r"\s{2,}", line)[0] for line in drawn[1].splitlines()]

    assert [one.replace("trialwise.", "") for one in layers] == rows
