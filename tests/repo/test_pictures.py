"""The pictures of the documentation show what the package computes today."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from tools.draw_pictures import FOLDER, PHOTOGRAPHS, PICTURES

from trialwise.stats.sequential import SequentialDesign


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_current_and_well_formed(name: str) -> None:
    """`python -m tools.draw_pictures` would write the same file."""
    text = (FOLDER / name).read_text(encoding="utf-8")

    assert PICTURES[name]() == text
    assert ET.fromstring(text).tag.endswith("svg")


def test_no_picture_is_left_over() -> None:
    """Every file is drawn by the tool."""
    assert sorted([*PICTURES, *PHOTOGRAPHS]) == sorted(path.name for path in FOLDER.iterdir())


def test_the_design_in_the_picture_does_what_the_page_says() -> None:
    """
    Both errors are at most 5 % at the required rate, by a recursion over counts of its own.
    """
    design = SequentialDesign.strict(0.90)
    never = [(trials + 1, -1) for trials in range(design.cap + 1)]
    alive, passes, fails = {0: 1.0}, 0.0, 0.0
    for trials, (fewest, most) in enumerate(design.futile or never):
        if trials == 0:
            continue
        after: dict[int, float] = {}
        for failures, chance in alive.items():
            after[failures] = after.get(failures, 0.0) + chance * 0.90
            after[failures + 1] = after.get(failures + 1, 0.0) + chance * 0.10
        accept, reject = design.accept[trials], design.reject[trials]
        passes += sum(chance for failures, chance in after.items() if failures <= accept)
        fails += sum(chance for failures, chance in after.items() if failures >= reject)
        alive = {
            failures: chance
            for failures, chance in after.items()
            if accept < failures < reject and not fewest <= failures <= most
        }

    assert 0.04 < passes <= 0.05
    assert 0.04 < fails <= 0.05
