"""The reference page is the one that the keys describe."""

from __future__ import annotations

from pathlib import Path

from trialwise.suite import suite_reference
from trialwise.suite.check_keys import CHECK_KINDS
from trialwise.suite.keys import records

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "suite.md"


def test_the_page_is_current() -> None:
    """Whoever changes a key writes it anew with `make stubs`."""
    assert suite_reference() == PAGE.read_text(encoding="utf-8")


def test_every_key_is_in_it() -> None:
    """Of every record, and every postcondition."""
    page = suite_reference()
    keys = [key.name for record in records() for key in record.keys]

    assert [] == [name for name in (*keys, *CHECK_KINDS) if f"- **`{name}`** (" not in page]
