"""Parts of a page that a tool writes, between two comments, while another writes the rest."""

from __future__ import annotations

import re


def find_block(page: str, name: str) -> str:
    """Return a block of a page with its comments, empty where there is none.

    Args:
        page: The page.
        name: The block's.
    """
    found = re.search(rf"<!-- {name}: begin -->.*?<!-- {name}: end -->", page, re.DOTALL)
    return found[0] if found else ""


def replace_block(page: str, name: str, text: str) -> str:
    """Return a page with a block replaced, or put at its end where it has none.

    >>> page = replace_block("# Page", "figures", "old")
    >>> find_block(replace_block(page, "figures", "new"), "figures")
    '<!-- figures: begin -->\\nnew\\n<!-- figures: end -->'
    """
    block = f"<!-- {name}: begin -->\n{text}\n<!-- {name}: end -->"
    before = find_block(page, name)
    return page.replace(before, block) if before else f"{page.rstrip()}\n\n{block}\n"
