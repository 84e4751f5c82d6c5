"""The reference page is the one that the keys describe."""

from __future__ import annotations

from tools.suite_page import PAGE, render_suite_page

from trialwise.suite.check_keys import CHECK_KINDS
from trialwise.suite.keys import records


def test_the_page_is_current() -> None:
    """Whoever changes a key writes it anew with `make stubs`."""
    assert render_suite_page() == PAGE.read_text(encoding="utf-8")


def test_every_key_is_in_it() -> None:
    """Of every record, and every postcondition."""
    page = render_suite_page()
    keys = [key.name for record in records() for key in record.keys]

    assert [] == [name for name in (*keys, *CHECK_KINDS) if f"- **`{name}`** (" not in page]
