"""A document as a fragment for a notebook: it brings its style and asks for nothing else.

Every rule is bound to the fragment's own class, so that it neither changes the notebook nor is
changed by it. Where a notebook strips styles, plain tables and words remain.
"""

from __future__ import annotations

import re

from trialwise.documents.blocks import Badge, Document
from trialwise.renderers.html.assets import read_asset
from trialwise.renderers.html.block_markup import render_blocks
from trialwise.renderers.html.glyphs import draw_glyph, pick_shade
from trialwise.renderers.html.markup import Markup, element
from trialwise.renderers.html.outline import Outline
from trialwise.renderers.html.palette import DARK, LIGHT, declare_colours

__all__ = ["render_fragment"]

_CLASS = "trialwise-out"
_COLOURS = (
    "card", "ink", "quiet", "edge", "grid", "accent",
    "pass", "pass-wash", "fail", "fail-wash", "open", "open-wash",
)  # fmt: skip
#: How JupyterLab, VS Code, Colab and Sphinx say that they are light, or dark.
_THEMES = (
    ("[data-jp-theme-light=true]", ".vscode-light", "[theme=light]", "[data-theme=light]"),
    ("[data-jp-theme-light=false]", ".vscode-dark", "[theme=dark]", "[data-theme=dark]"),
)


def render_fragment(document: Document) -> str:
    """The document as one element.

    Args:
        document: What to show: its verdict, and blocks without sections.
    """
    badge = document.badge or Badge(word="", tone="plain")
    facts = " · ".join(str(value) for _, value in document.facts if value)
    head = element(
        "div",
        draw_glyph(badge.tone),
        element(
            "div",
            element("strong", badge.word, class_="word"),
            " ",
            element("bdi", document.title, class_="title"),
            element("div", document.lead, class_="said"),
            element("div", facts, class_="facts"),
        ),
        class_=f"head {pick_shade(badge.tone)}",
    )
    blocks = render_blocks(document.blocks, Outline(level=3))
    style = Markup(f"<style>{_write_style()}</style>")
    return str(element("div", style, head, blocks, class_=_CLASS))


def _write_style() -> str:
    light, dark = (
        f"color-scheme:{name};" + declare_colours({key: colours[key] for key in _COLOURS})
        for name, colours in (("light", LIGHT), ("dark", DARK))
    )
    lights, darks = (",".join(f"{theme} &" for theme in themes) for themes in _THEMES)
    # A notebook's own theme beats the system's.
    themed = (
        f"&{{{light}}}@media(prefers-color-scheme:dark){{&{{{dark}}}}}"
        f"{lights}{{{light}}}{darks}{{{dark}}}"
    )
    plain = re.sub(r"/\*.*?\*/|\n", "", read_asset("fragment.css"), flags=re.DOTALL)
    return (themed + plain).replace("&", f".{_CLASS}")
