"""Charts of plans: every value where it belongs, in characters and in SVG."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.documents.charts import (
    Area,
    Axis,
    Chart,
    Guide,
    Ink,
    Line,
    Mark,
    chart_lines,
    chart_shares,
    list_round_steps,
)
from trialwise.renderers.document_text import render_chart_characters
from trialwise.renderers.html.page_frame import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    render_chart_file,
)
from trialwise.renderers.html.shapes import SIDE, draw_shapes

SVG = "{http://www.w3.org/2000/svg}"


def line(name: str, *values: float, ink: Ink = "one") -> Line:
    return Line(name=name, ink=ink, points=tuple((i / 10, y) for i, y in enumerate(values)))


def lines(*drawn: Line, guides: tuple[Guide, ...] = (), marks: tuple[Mark, ...] = ()) -> Chart:
    heading, summary = "Mean trials", "A line."
    return chart_lines(heading, summary, "true rate", "trials", drawn, guides=guides, marks=marks)


def shares(points: int = 11) -> Chart:
    """PASS grows from 0 to 1, a tenth of what is left stays open."""
    passes = [i / (points - 1) for i in range(points)]
    left = [(1 - p) / 10 for p in passes]
    return chart_shares(
        "Verdicts",
        "Shares <of> all runs.",
        "true rate",
        "share",
        rates=[0.5 + p / 2 for p in passes],
        bands=(
            ("PASS", "pass", passes),
            ("INCONCLUSIVE", "open", left),
            ("FAIL", "fail", [9 * value for value in left]),
        ),
        guides=(Guide(value=0.75, label="75 %"),),
    )


def plotted(chart: Chart, *, unicode: bool = False) -> list[str]:
    """The rows of the plot itself, without axes."""
    bar = ("│", "┤") if unicode else ("|",)
    rows = [text for text in render_chart_characters(chart, unicode=unicode) if text[9:10] in bar]
    return [text[10:].ljust(61) for text in rows]


# --- In a terminal ----------------------------------------------------------------------------


def test_a_line_is_drawn_where_its_values_are() -> None:
    """0 stands in the bottom row, the top value in the top row, and half of it midway."""
    rows = plotted(lines(line("a", 0, 5, 10)))

    assert len(rows) == 11
    assert [(10, 0), (5, 30), (0, 60)] == sorted(
        ((r, c) for r, row in enumerate(rows) for c, mark in enumerate(row) if mark == "o"),
        reverse=True,
    )


def test_a_terminal_chart_has_a_mark_for_every_point() -> None:
    """61 points take 61 columns, one mark each."""
    points = tuple((float(i), float(i % 7)) for i in range(61))
    rows = plotted(lines(Line(name="a", ink="one", points=points)))

    assert sum(row.count("o") for row in rows) == 61


def test_where_lines_meet_the_first_is_seen_and_single_points_before_lines() -> None:
    """The recommended method is named first; a limit is drawn over every method."""
    first, second = line("first", 1, 1), line("second", 1, 1, ink="two")
    limit = Mark(x=0.0, y=1.0, name="limit", ink="bound")

    marks = "".join(plotted(lines(first, second, marks=(limit,)))).replace(" ", "")
    assert marks == "vo"


def test_shares_fill_their_column() -> None:
    """At the left every run FAILs or stays open, at the right every run PASSes."""
    rows = plotted(shares())

    columns = ["".join(row[i] for row in rows) for i in range(61)]
    assert {"#"} == set(columns[60])
    assert columns[0].count("#") == 0
    assert columns[0].count("?") == 1
    assert columns[30].count("#") == 5 or columns[30].count("#") == 6
    assert all(" " not in column for column in columns)


def test_the_axis_names_its_ends_and_its_guides() -> None:
    """The guide's label stands under its column."""
    text = render_chart_characters(shares(), unicode=False)

    axis, label = text[-2], text[-1]
    assert axis.strip().startswith("50 %")
    assert "75 %" in axis
    assert axis.rstrip().endswith("100 %")
    assert label.strip() == "true rate"
    assert axis.index("75 %") + 2 == 10 + 30


def test_a_label_gives_way_rather_than_run_into_another() -> None:
    """Guides at every percent cannot all be named; no two labels touch."""
    guides = tuple(Guide(value=0.1 + i / 100, label=f"{10 + i} %") for i in range(9))
    text = render_chart_characters(lines(line("a", 1, 2, 3), guides=guides), unicode=False)

    labels = text[-2].replace(" %", "%").split()
    assert set(labels) <= {"0%", "20%", *(f"{10 + i}%" for i in range(9))}


@pytest.mark.parametrize("chart", [shares(), lines(line("a", 1, 2, 3))])
def test_a_terminal_without_unicode_gets_ascii(chart: Chart) -> None:
    """Every mark and every rule has its fallback."""
    assert "\n".join(render_chart_characters(chart, unicode=False)).isascii()
    assert not "\n".join(render_chart_characters(chart)).isascii()


def test_a_long_key_is_folded() -> None:
    """Names that do not fit beside each other take another line."""
    many = [line(f"a series with quite a long name {i}", 1, 2) for i in range(4)]

    assert max(len(text) for text in render_chart_characters(lines(*many))) <= 80


def test_an_area_between_two_lines_is_filled_where_it_lies() -> None:
    """Its edges are drawn through their points, however few there are."""
    axis = Axis(low=0, high=1, label="", unit="rate")
    band = Area(name="band", ink="pass", upper=((0, 1), (1, 1)), lower=((0, 0), (1, 1)))
    rows = plotted(Chart(heading="h", summary="s", x=axis, y=axis, areas=(band,)))

    filled = [sum(row[i] == "#" for row in rows) for i in range(61)]
    assert (11, 0) == (filled[0], filled[60])
    assert sorted(filled, reverse=True) == filled


# --- As SVG -----------------------------------------------------------------------------------


def drawn(chart: Chart) -> ET.Element:
    return ET.fromstring(draw_shapes(chart).replace("\u00a0", " "))


def hits(chart: Chart) -> list[ET.Element]:
    return [one for one in drawn(chart).iter("rect") if one.attrib["class"] == "hit"]


def test_every_place_says_the_values_of_all_lines() -> None:
    """One column a place, and a line that has no value there is left out."""
    titles = [one.findtext("title") for one in hits(lines(line("a", 1, 2, 3), line("b", 2, 3)))]

    assert ["true rate 0 %: a 1, b 2", "true rate 10 %: a 2, b 3", "true rate 20 %: a 3"] == titles


def test_the_values_that_are_said_are_listed_in_a_table_too() -> None:
    """A row a place, a column a line, a dash where there is no value."""
    chart = lines(line("a", 1, 2), line("b", 3))

    assert ("true rate", "a", "b") == chart.columns
    assert (("0 %", "1", "3"), ("10 %", "2", "–")) == chart.rows


def test_points_lie_where_their_values_are() -> None:
    """The first at the left of the plot, the top value at its top."""
    (path,) = (
        one for one in drawn(lines(line("a", 0, 5, 10))).iter("path") if "stroke" in str(one.attrib)
    )

    places = [tuple(map(float, one.split())) for one in path.attrib["d"][1:].split("L")]
    assert [(0, SIDE), (SIDE / 2, SIDE / 2), (SIDE, 0)] == places


@pytest.mark.parametrize("points", [2, 11, 61])
def test_stacked_shares_have_a_column_for_every_point(points: int) -> None:
    """Three bands, and a title for each column that names all three shares."""
    columns = hits(shares(points))

    assert len(columns) == points
    assert 3 == sum("area" in one.attrib["class"] for one in drawn(shares(points)).iter("path"))
    assert columns[0].findtext("title") == (
        "true rate 50 %: PASS 0 %, INCONCLUSIVE 10.00 %, FAIL 90.00 %"
    )
    widths = [float(rect.attrib["width"]) for rect in columns]
    starts = [float(rect.attrib["x"]) for rect in columns]
    assert min(starts) == 0
    assert max(x + w for x, w in zip(starts, widths, strict=True)) == pytest.approx(SIDE, abs=0.2)


def test_a_chart_in_a_file_is_an_image_with_a_name_and_a_description() -> None:
    """role=img, labelled by its title and description, with everything escaped."""
    (svg,) = ET.fromstring(render_chart_file([shares()])).findall(f"{SVG}svg")

    assert svg.attrib["role"] == "img"
    title, desc = svg.find(f"{SVG}title"), svg.find(f"{SVG}desc")
    assert title is not None
    assert desc is not None
    assert svg.attrib["aria-labelledby"].split() == [title.attrib["id"], desc.attrib["id"]]
    assert (title.text, desc.text) == ("Verdicts", "Shares <of> all runs.")


def test_a_file_of_charts_stands_alone() -> None:
    """Its own namespace and styles for light and dark, and identities that do not collide."""
    text = render_chart_file([shares(), lines(line("a", 1, 2))])
    root = ET.fromstring(text)

    assert root.tag == f"{SVG}svg"
    inner = root.findall(f"{SVG}svg")
    assert len(inner) == 2
    identities = [e.attrib["id"] for e in root.iter() if "id" in e.attrib]
    assert len(identities) == len(set(identities)) == 4
    assert "prefers-color-scheme:dark" in text
    bottoms = [int(svg.attrib["y"]) + int(svg.attrib["height"]) for svg in inner]
    assert max(bottoms) <= int(root.attrib["height"])


def test_ticks_are_round_and_stand_where_their_values_are() -> None:
    """An axis from 22 to 692 is named in round numbers, each under its place."""
    wide = Line(name="a", ink="one", points=((22.0, 1.0), (692.0, 1.0)))
    chart = chart_lines("h", "s", "pairs", "y", [wide], x_unit="count")
    root = ET.fromstring(render_chart_file([chart]))

    row = str(HEIGHT - BOTTOM + 16)
    ticks = [e for e in root.iter(f"{SVG}text") if e.attrib["y"] == row]
    assert [e.text for e in ticks] == ["100", "200", "300", "400", "500", "600"]
    span = WIDTH - LEFT - RIGHT
    places = [LEFT + span * (100 * k - 22) / 670 for k in range(1, 7)]
    assert places == pytest.approx([float(e.attrib["x"]) for e in ticks], abs=0.06)
    (shapes,) = root.findall(f"{SVG}svg/{SVG}svg")
    frame = [float(shapes.attrib[key]) for key in ("x", "y", "width", "height")]
    assert [LEFT, TOP, span, HEIGHT - TOP - BOTTOM] == frame


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e4))
def test_ticks_of_any_range_are_few_and_even(low: float, width: float) -> None:
    """Three to nine, evenly spaced, between the ends."""
    ticks = list_round_steps(low, low + width)

    assert 3 <= len(ticks) <= 9
    assert low - 1e-6 * width <= ticks[0] < ticks[-1] <= low + width * (1 + 1e-6)
    gaps = [b - a for a, b in pairwise(ticks)]
    assert gaps == pytest.approx([gaps[0]] * len(gaps), rel=1e-6)


def test_a_single_point_is_no_division_by_zero() -> None:
    """A range without width is drawn in its middle."""
    chart = lines(line("a", 3))

    assert sum(row.count("o") for row in plotted(chart)) == 1
    assert len(hits(chart)) == 1
