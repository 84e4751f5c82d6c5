"""Charts that fit any width: the frame and its words are HTML, only the shapes are SVG.

The shapes are drawn in a square of a thousand by a thousand and stretched; strokes and dots are
not. So text keeps the reader's size on a phone as on a wall, and a screen reader hears sentences.
Every chart says its values where it is pointed at, and has them in a table below.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trialwise.documents.charts import Chart, Guide
from trialwise.renderers.html.markup import Markup, element
from trialwise.renderers.html.outline import Outline
from trialwise.renderers.html.shapes import draw_shapes, list_key, stagger_labels

__all__ = ["render_chart"]

#: How far apart the lines of labels above a chart are, in their own size.
LINE = 1.3
#: Room between the lowest of them and the highest tick beside it.
GAP = 0.5


def render_chart(chart: Chart, outline: Outline | None, values: Markup) -> Markup:
    """The chart as a figure with its key, its values on demand and a table of them.

    Args:
        chart: What to draw.
        outline: Where its heading stands; None where something above says the same.
        values: The table of its values.
    """
    upright = sorted((g for g in chart.guides if g.axis == "x"), key=lambda g: g.value)
    lines = stagger_labels([(chart.x.place(g.value), len(g.label)) for g in upright])
    above = LINE * (max(row for row, _ in lines) + 1) + GAP if lines else 0
    # The words about the picture are in the caption; what is in the picture is decoration.
    frame = element(
        "div",
        _render_y_ticks(chart),
        element("div", draw_shapes(chart), *_list_labels(chart, upright, lines), class_="shapes"),
        _render_x_ticks(chart),
        element("div", chart.x.label, class_="xlabel"),
        class_="plot",
        style=f"margin-top:{above:.1f}em" if above else None,
        role="img",
        tabindex="0",
        aria_label=f"{chart.heading}. {chart.summary}",
        data_chart=True,
    )
    heading = None if outline is None else outline.render_heading(chart.heading)
    return element(
        "figure",
        element("figcaption", heading, element("p", chart.summary)),
        element("div", _render_key(chart), class_="keys"),
        element(
            "div",
            element("span", chart.y.label, class_="ylabel"),
            frame,
            element("p", class_="readout", aria_live="polite"),
            class_="frame",
        ),
        element("details", element("summary", "Values as a table"), values),
        class_="figure",
    )


def _render_key(chart: Chart) -> Markup:
    entries = [
        element("li", element("span", class_=f"swatch {style}"), name)
        for name, style in list_key(chart)
    ]
    return element("ul", *entries, class_="key", aria_hidden="true") if entries else Markup("")


def _list_labels(
    chart: Chart, upright: Sequence[Guide], lines: Sequence[tuple[int, str]]
) -> Iterator[Markup]:
    """Words on guides and marks; upright guides have theirs above the chart, in lines."""
    for guide, (row, side) in zip(upright, lines, strict=True):
        yield element(
            "span",
            guide.label,
            class_=f"tag upright {side}",
            style=f"left:{100 * chart.x.place(guide.value):.2f}%;"
            f"height:{LINE * (row + 1) + GAP:.1f}em",
        )
    for guide in chart.guides:
        if guide.axis == "y":
            place = chart.y.place(guide.value)
            under = " under" if place > 0.88 else ""
            style = f"bottom:{100 * place:.2f}%"
            yield element("span", guide.label, class_=f"tag level{under}", style=style)
    for mark in chart.marks:
        if mark.label:
            x, y = chart.x.place(mark.x), chart.y.place(mark.y)
            # The side of its dot on which a label has room.
            side = "before" if x > 0.55 else "after"
            yield element(
                "span",
                mark.label,
                class_=f"tag mark {side}{' below' if mark.below else ''}",
                style=f"left:{100 * x:.2f}%;bottom:{100 * y:.2f}%",
            )


def _render_y_ticks(chart: Chart) -> Markup:
    spans = [
        element("span", text, style=f"bottom:{100 * chart.y.place(value):.2f}%")
        for value, text in chart.y.list_ticks()
    ]
    return element("div", *spans, class_="yticks")


def _render_x_ticks(chart: Chart) -> Markup:
    spans = [
        element(
            "span",
            text,
            class_="end" if chart.x.place(value) > 0.96 else None,
            style=f"left:{100 * chart.x.place(value):.2f}%",
        )
        for value, text in chart.x.list_ticks()
    ]
    return element("div", *spans, class_="xticks")
