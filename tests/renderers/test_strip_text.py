"""Intervals in a terminal: where the marks stand, in Unicode and in ASCII."""

from __future__ import annotations

import pytest

from trialwise.documents.charts import Axis, Strip, StripRow, Strips
from trialwise.renderers.capabilities import Capabilities
from trialwise.renderers.document_text import render_strip_characters

SPAN = (-0.2, 0.2)


def strips(*rows: tuple[str, float, float, float]) -> Strips:
    return Strips(
        heading="Differences",
        summary="What differs.",
        axis=Axis(low=SPAN[0], high=SPAN[1], label="points", unit="points"),
        rows=tuple(
            StripRow(
                name=name,
                strip=Strip(
                    low=low,
                    value=value,
                    high=high,
                    ink="open",
                    span=SPAN,
                    need=0.0,
                    others=(-0.05,),
                ),
                value=f"{100 * value:+.1f}",
            )
            for name, low, value, high in rows
        ),
        ends=("a is better", "b is better"),
    )


def drawn(*rows: tuple[str, float, float, float], unicode: bool = False) -> list[str]:
    return list(render_strip_characters(strips(*rows), Capabilities(unicode=unicode), 80))


def test_each_mark_stands_at_its_place_on_the_scale() -> None:
    """41 columns from −20 to +20 points: one column for each point."""
    row, scale, ends = drawn(("right", 0.02, 0.08, 0.14))
    start = row.index(":") - 15  # the margin is at −5 points

    assert (row[start + 20], row[start + 22], row[start + 28], row[start + 34]) == (*"|[o]",)
    assert row.endswith("+8.0")
    assert (scale[start : start + 3], scale[start + 20], scale.split()[-1]) == (
        "-20",
        "0",
        "points",
    )
    assert ends.split(None, 1)[1].replace("  ", "").endswith("b is better >")


@pytest.mark.parametrize(("unicode", "sign"), [(True, "◄"), (False, "<")])
def test_an_interval_that_leaves_the_scale_says_so(unicode: bool, sign: str) -> None:
    """An arrow stands for its end."""
    row, *_ = drawn(("right", -0.5, 0.0, 0.1), unicode=unicode)

    assert row.split("right")[1].strip().startswith(sign)


def test_names_of_any_length_leave_room() -> None:
    """No line is wider than the terminal, whatever a criterion is called."""
    lines = drawn(("x" * 300, -0.1, 0.0, 0.1), ("\x1b[2J", -0.1, 0.0, 0.1))

    assert max(map(len, lines)) <= 80
    assert not any("\x1b" in line for line in lines)
