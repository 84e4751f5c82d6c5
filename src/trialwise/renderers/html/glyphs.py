"""Shapes and badges: a shape for every tone, so that no meaning rests on a colour alone."""

from __future__ import annotations

from typing import Literal, TypeAlias

from trialwise.documents.blocks import Badge, Tone
from trialwise.renderers.html.markup import Markup, element, join_markup

__all__ = ["Shade", "draw_glyph", "draw_shape", "pick_shade", "render_badge", "write_badge_class"]

Shade: TypeAlias = Literal["pass", "fail", "open", "none"]
"""The class that colours and shapes a part."""

_SHADES: dict[str, Shade] = {"pass": "pass", "fail": "fail", "open": "open"}
#: A disc with a tick, a square with a cross, a diamond with a bar, a ring for what is no decision.
_SHAPES: dict[Shade, tuple[str, str]] = {
    "pass": ("M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Z", "m4.7 8.3 2.3 2.3 4.3-5"),
    "fail": ("M1.5 1.5h13v13h-13Z", "m5 5 6 6m0-6-6 6"),
    "open": ("M8 .3 15.7 8 8 15.7.3 8Z", "M4.8 8h6.4"),
    "none": ("M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Z", ""),
}


def pick_shade(tone: str) -> Shade:
    """The class of a tone or an ink."""
    return _SHADES.get(tone, "none")


def draw_shape(shade: Shade) -> Markup:
    """A shape in a square of 16 by 16."""
    ground, sign = _SHAPES[shade]
    drawn = element("path", d=ground, class_="ground")
    return join_markup([drawn, element("path", d=sign, class_="sign") if sign else None])


def draw_glyph(tone: Tone) -> Markup:
    """The shape of a tone beside words that say the same."""
    return element(
        "svg",
        draw_shape(pick_shade(tone)),
        viewBox="0 0 16 16",
        class_="glyph",
        aria_hidden="true",
        focusable="false",
    )


def write_badge_class(badge: Badge) -> str:
    """The classes of a badge: what softens a PASS leaves its shape hollow."""
    hollow = " hollow" if badge.soft and badge.tone == "pass" else ""
    return f"{pick_shade(badge.tone)}{hollow}"


def render_badge(badge: Badge) -> Markup:
    """A word with its shape; a quiet one has a border instead."""
    if badge.tone == "quiet":
        return element("span", badge.word, class_="pill")
    glyph = draw_glyph(badge.tone)
    return element("span", glyph, badge.word, class_=f"badge {write_badge_class(badge)}")
