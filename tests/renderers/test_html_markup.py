"""Markup that is safe by construction, and colours that can be read."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.documents.blocks import Facts, Items, Row, Table
from trialwise.pages.verdict_meaning import make_badge
from trialwise.renderers.html.block_markup import render_block
from trialwise.renderers.html.markup import (
    DARK,
    LIGHT,
    PAPER,
    Markup,
    Outline,
    element,
    join_markup,
    make_safe,
    make_visible,
    palette_css,
    quote,
)
from trialwise.renderers.html.shapes import render_badge

ANYTHING = st.text(st.characters())  # lone surrogates and controls included


@given(ANYTHING)
def test_any_text_is_content_and_nothing_else(text: str) -> None:
    """Whatever it holds, an XML parser finds one element with the visible text in it."""
    root = ET.fromstring(element("p", quote(text)))

    assert [] == list(root)
    # A parser reads a lone carriage return as a line break; it is spelled out before.
    assert make_visible(text) == (root.text or "")


@given(ANYTHING)
def test_any_text_is_the_value_of_an_attribute_and_nothing_else(text: str) -> None:
    """No quote ends it, no angle bracket opens anything."""
    root = ET.fromstring(element("p", title=text))

    assert {"title"} == set(root.attrib)
    # A parser reads white space in an attribute as spaces.
    assert re.sub(r"\s", " ", make_visible(text)) == re.sub(r"\s", " ", root.attrib["title"])


@given(ANYTHING)
def test_what_is_visible_hides_nothing(text: str) -> None:
    """No control but tab and line break, no direction mark, no surrogate; always encodable."""
    shown = make_visible(text)

    assert shown == shown.encode().decode()
    assert not [c for c in shown if category(c) in ("Cc", "Cs") and c not in "\t\n"]
    assert not set(shown) & set(
        "\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\ufeff"
    )


def test_joined_emoji_and_other_scripts_stay_whole() -> None:
    """Joiners and right-to-left letters are text, not tricks."""
    text = "👩‍💻 שלום नमस्ते"

    assert text == make_visible(text)


def test_a_line_break_of_any_kind_is_one() -> None:
    """CR LF is a line break; a lone CR would overwrite the line and is spelled out."""
    assert "a\nb⟨CR⟩c" == make_visible("a\r\nb\rc")


def test_markup_is_not_escaped_twice_and_text_always_once() -> None:
    """Only what was made as markup stays markup."""
    inner = element("b", "<i>")

    assert "<p><b>&lt;i&gt;</b>&amp;</p>" == element("p", inner, "&")
    assert "a&lt;b" == join_markup(["a", "<", "b"])
    assert "" == make_safe(None)
    assert Markup("<br/>") == element("br")


def test_a_number_keeps_its_unit() -> None:
    """A line never breaks between them; text to copy is left alone."""
    assert "90\u00a0% in 3\u00a0s, ≥\u00a05" == make_safe("90 % in 3 s, ≥ 5")
    assert "90 %" == quote("90 %")


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"hidden": True}, '<p hidden=""></p>'),
        ({"hidden": False, "id": None}, "<p></p>"),
        ({"class_": "a", "data_x": 1}, '<p class="a" data-x="1"></p>'),
    ],
)
def test_attributes_are_spelled_as_html_spells_them(
    attributes: Mapping[str, object], expected: str
) -> None:
    """True is present, False and None are absent, underscores are hyphens."""
    assert expected == element("p", **attributes)


def test_identities_are_given_once_and_headings_never_end() -> None:
    """Two parts of one name have two identities; a heading is at most of level six."""
    outline = Outline(prefix="c1-")

    assert ["c1-part", "c1-part-2"] == [outline.claim("<>"), outline.claim("שלום")]
    assert "<h6>deep</h6>" == Outline(level=9).render_heading("deep")


def test_parts_without_content_are_left_out() -> None:
    """An empty list and an empty set of facts leave nothing behind."""
    assert "" == render_block(Items(items=()), Outline())
    assert "" == render_block(Facts(pairs=(("term", None), ("other", ""))), Outline())


def test_a_table_scopes_its_headers_and_scrolls_where_it_is_wide() -> None:
    """The first cell of a row is its header; a wide table scrolls by keyboard too."""
    table = Table(heading="Counts", columns=("a", "b"), rows=(Row(cells=("x", "1")),))
    text = render_block(table, Outline())

    assert '<th scope="row">x</th><td class="num">1</td>' in text
    assert 'role="group"' in text
    assert 'tabindex="0"' in text
    assert 'aria-label="Counts"' in text


def test_a_softened_pass_is_hollow() -> None:
    """A PASS with another label, or of a smoke run, does not look like evidence."""
    from trialwise.model.verdict import Decision

    assert "hollow" not in render_badge(make_badge(Decision.PASS))
    assert "hollow" in render_badge(make_badge(Decision.PASS, "NO FAILURE OBSERVED"))
    assert "hollow" in render_badge(make_badge(Decision.PASS, soft=True))
    assert "hollow" not in render_badge(make_badge(Decision.FAIL, soft=True))


# --- Colours ----------------------------------------------------------------------------------


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2.2 defines it."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_measure_of_contrast_is_the_standards() -> None:
    """Black on white is 21."""
    assert 21 == contrast("#000000", "#ffffff")


@pytest.mark.parametrize("colours", [LIGHT, DARK, PAPER], ids=["light", "dark", "paper"])
@pytest.mark.parametrize(
    ("text", "grounds"),
    [
        ("ink", "page card wash pass-wash fail-wash open-wash pass-fill fail-fill open-fill"),
        ("quiet", "page card wash pass-wash fail-wash open-wash"),
        ("accent", "page card wash"),
        ("pass", "page card pass-wash"),
        ("fail", "page card fail-wash"),
        ("open", "page card open-wash"),
    ],
)
def test_text_has_the_contrast_that_level_aa_asks_for(
    colours: Mapping[str, str], text: str, grounds: str
) -> None:
    """4.5 on every ground the text stands on."""
    assert all(contrast(colours[text], colours[ground]) >= 4.5 for ground in grounds.split())


def test_the_palettes_name_the_same_colours() -> None:
    """No colour is lost when the light goes out, or on paper."""
    assert set(LIGHT) == set(DARK) == set(PAPER)
    assert all(f"--{name}:" in palette_css() for name in LIGHT)
