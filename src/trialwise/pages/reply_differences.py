"""Two texts beside each other, with the words that differ marked in both."""

from __future__ import annotations

import re
from collections import Counter
from difflib import SequenceMatcher

from trialwise.documents.blocks import Compared, Piece

#: Words, the spaces between them, and single signs.
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")


#: How often a piece may occur in a text that is compared piece by piece.
_OFTEN = 60


def _is_word(piece: str) -> bool:
    return not piece.isspace()


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
    # Spaces go with the words beside them. They are in every text, and looking for common runs
    # takes the square of how often a piece occurs: a text of one word again and again is not
    # compared at all.
    often = max(Counter(filter(_is_word, two)).values(), default=0)
    steps = (
        SequenceMatcher(str.isspace, one, two, autojunk=False).get_opcodes()
        if often <= _OFTEN
        else [("equal" if one == two else "replace", 0, len(one), 0, len(two))]
    )
    left = [("".join(one[a:b]), tag != "equal") for tag, a, b, _, _ in steps]
    right = [("".join(two[a:b]), tag != "equal") for tag, _, _, a, b in steps]
    return Compared(
        headings=headings,
        left=tuple(Piece(text=text, differs=differs) for text, differs in left if text),
        right=tuple(Piece(text=text, differs=differs) for text, differs in right if text),
    )
