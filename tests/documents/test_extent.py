"""How much of a page a document takes, estimated before anything is rendered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reports.run_records import SHAPES, large

from trialwise.documents.blocks import Document, Verbatim
from trialwise.documents.printable import cut_middle, estimate_size
from trialwise.model.run import RunRecord
from trialwise.pages.run_report import build_report
from trialwise.renderers.html.page_frame import render_document

EMPTY = len(render_document(Document(kind="", title="", blocks=())).encode())


def check(record: RunRecord) -> None:
    """The estimate is neither a fifth too small nor a quarter too large."""
    document = build_report(record)
    real = len(render_document(document).encode()) - EMPTY

    assert 0.8 * real <= estimate_size(document) <= 1.25 * real


@pytest.mark.parametrize("shape", SHAPES)
def test_the_estimate_is_close_to_what_is_rendered(shape: str) -> None:
    """Markup included, whatever a run was like."""
    check(SHAPES[shape]())


@pytest.mark.slow
def test_the_estimate_holds_for_ten_thousand_trials() -> None:
    """Where it decides how many of them are shown."""
    check(large())


@given(st.text(st.characters(), max_size=200))
def test_no_text_takes_more_than_is_estimated(text: str) -> None:
    """Not even one whose characters are escaped or shown by name."""
    document = Document(kind="", title="", blocks=(Verbatim(text=text),))

    # A section around the text is the page's own.
    frame = 400
    assert len(render_document(document).encode()) - EMPTY - frame <= estimate_size(document)


@given(st.text(max_size=300), st.integers(9, 100))
def test_a_cut_text_keeps_its_ends_and_counts_the_rest(text: str, limit: int) -> None:
    """Nothing is lost in silence."""
    short = cut_middle(text, limit)

    if len(text) <= limit:
        assert text == short
    else:
        head, rest = short.split(" … [", 1) if " … [" not in text else (text[:1], "")
        assert text.startswith(head)
        assert not rest or f"{len(text) - limit:,} characters left out" in rest
