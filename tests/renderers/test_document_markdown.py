"""Any document as Markdown: the answer first, few things open, and nothing that acts."""

from __future__ import annotations

from trialwise.documents.blocks import (
    Badge,
    Card,
    Cards,
    Compared,
    Details,
    Document,
    Facts,
    Items,
    Name,
    Piece,
    Prose,
    Section,
    Value,
    Verbatim,
    build_table,
)
from trialwise.documents.charts import Axis, Strip, StripRow, Strips
from trialwise.renderers.document_markdown import MOST_BYTES, render_document_markdown

HOSTILE = (
    "<img src=x onerror=alert(1)> | **@everyone** [x](http://evil.example) `` #1 \u202egnp\n# head"
)


def document(*blocks: object, lead: str = "B is better.") -> Document:
    return Document(
        kind="Comparison",
        title="sums",
        badge=Badge(word="PASS", tone="pass"),
        lead=lead,
        facts=(("pairs", "50"), ("", "fixed inputs"), ("nothing", None)),
        blocks=blocks,  # type: ignore[arg-type]
    )


def test_the_answer_comes_first() -> None:
    """A hidden marker, the sentence, the verdict with the title, and the facts in one line."""
    assert render_document_markdown(document()).splitlines() == [
        "<!-- trialwise-report: comparison-sums -->",
        "## ✅ B is better.",
        "",
        "**PASS** · sums",
        "",
        "pairs: 50 · fixed inputs",
    ]


def test_sections_for_everyone_stay_open_and_others_are_folded() -> None:
    """A reader of a pull request sees what decides, and unfolds the rest."""
    table = build_table("Criteria", ["right"], ("criterion", Name), ("rate", lambda _: "90 %"))
    text = render_document_markdown(
        document(
            Section(heading="Criteria", blocks=(table,), depth="summary"),
            Section(heading="Inputs", blocks=(Items(items=("a", "b")),)),
            Details(summary="Notes", blocks=(Prose(paragraphs=("one", "two")),)),
        )
    )

    assert "### Criteria\n\n| criterion | rate |\n|:--|--:|\n| right | 90 % |\n" in text
    assert "<details><summary>Inputs</summary>\n\n- a\n- b\n\n</details>" in text
    assert "<details><summary>Notes</summary>\n\none\n\ntwo\n" in text


def test_pictures_become_tables() -> None:
    """A forest plot is a row for each interval."""
    strip = Strip(low=-0.1, value=0.0, high=0.1, ink="open", span=(-1, 1))
    text = render_document_markdown(
        document(
            Strips(
                heading="Differences",
                summary="",
                axis=Axis(low=-1, high=1, label="points", unit="points"),
                rows=(StripRow(name="right", strip=strip, value="0.0", interval="[−10.0, +10.0]"),),
            )
        )
    )

    assert "| right | 0.0 | \\[−10.0, +10.0\\] |" in text


def test_nothing_that_a_service_said_acts() -> None:
    """Whatever block holds it: no markup, no mention, no link, no row or heading of its own."""
    value = Value(text=HOSTILE, note=HOSTILE)
    pieces = (Piece(text=HOSTILE),)
    rest = (
        build_table(HOSTILE, [HOSTILE], (HOSTILE, Name), ("x", lambda _: value)),
        Items(items=(HOSTILE, Name(HOSTILE)), heading=HOSTILE),
        Prose(paragraphs=(HOSTILE,)),
        Facts(pairs=((HOSTILE, HOSTILE),)),
        Verbatim(text=HOSTILE, heading=HOSTILE),
        Compared(headings=(HOSTILE, HOSTILE), left=pieces, right=pieces),
        Cards(cards=(Card(label=HOSTILE, name=HOSTILE, text=HOSTILE),)),
    )
    blocks = (*rest, Section(heading=HOSTILE, blocks=rest), Details(summary=HOSTILE, blocks=rest))
    lines = render_document_markdown(document(*blocks, lead=HOSTILE)).splitlines()
    # A code span, closed by as many backticks as open it, acts on nothing.
    outside = [line.split("``` <img")[0] for line in lines]

    # A summary is HTML, in which no Markdown is read.
    written = [line for line in outside if not line.startswith("<details><summary>")]

    assert not any("<img" in line for line in outside)
    assert not any("[x](http" in line for line in written)
    assert not any("@everyone" in line for line in outside)
    assert not any("\u202e" in line for line in lines)
    assert [line for line in lines if line.startswith("# ")] == []
    assert {line.count("|") for line in lines if line.startswith("|")} == {3}


def test_the_whole_stays_within_a_comment() -> None:
    """Parts that do not fit are counted."""
    many = Items(items=tuple("x" * 390 for _ in range(100)))
    text = render_document_markdown(document(*[many] * 20))

    assert len(text.encode()) <= MOST_BYTES
    assert "15 parts left out to keep this short." in text
