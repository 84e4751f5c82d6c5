"""Two texts beside each other, with the words that differ marked in both."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from trialwise.documents.blocks import Compared, Piece

#: Words, the spaces between them, and single signs.
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")


def compare_texts(
    expected: str, reply: str, headings: tuple[str, str] = ("Expected", "Reply")
) -> Compared:
    """Compare the two texts in pieces, each common to both or found in one of them only.

    >>> found = compare_texts("Paris, France", "Lyon, France")
    >>> [piece.text for piece in found.right if piece.differs]
    ['Lyon']

    Args:
        expected: What a right reply says or is.
        reply: What came back.
        headings: What the two are called.
    """
    one, two = _WORDS.findall(expected), _WORDS.findall(reply)
    steps = SequenceMatcher(None, one, two, autojunk=False).get_opcodes()
    left = [("".join(one[a:b]), tag != "equal") for tag, a, b, _, _ in steps]
    right = [("".join(two[a:b]), tag != "equal") for tag, _, _, a, b in steps]
    return Compared(
        headings=headings,
        left=tuple(Piece(text=text, differs=differs) for text, differs in left if text),
        right=tuple(Piece(text=text, differs=differs) for text, differs in right if text),
    )
