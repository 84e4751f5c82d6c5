"""What differs between an expected answer and a reply."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trialwise.documents.printable import compare_texts


@given(st.text(max_size=60), st.text(max_size=60))
def test_both_texts_are_whole_and_share_what_is_not_marked(expected: str, reply: str) -> None:
    """The pieces of each side make up its text, and the unmarked ones are the same on both."""
    found = compare_texts(expected, reply)

    assert expected == "".join(piece.text for piece in found.left)
    assert reply == "".join(piece.text for piece in found.right)
    common = [
        "".join(piece.text for piece in side if not piece.differs)
        for side in (found.left, found.right)
    ]
    assert common[0] == common[1]
    assert (expected == reply) is not any(one.differs for one in (*found.left, *found.right))


def test_only_the_words_that_differ_are_marked() -> None:
    """A word that changed is marked whole, and nothing around it."""
    found = compare_texts('{"city": "Paris", "days": 3}', '{"city": "Lyon", "days": 3, "rain": 1}')

    assert ["Paris"] == [piece.text for piece in found.left if piece.differs]
    assert ["Lyon", ', "rain": 1'] == [piece.text for piece in found.right if piece.differs]


def test_a_text_of_one_word_again_and_again_is_compared_as_a_whole() -> None:
    """Common runs of such texts would take seconds to find, and say nothing."""
    found = compare_texts("word " * 240, "word " * 200 + "end")

    assert (1, True) == (len(found.left), found.left[0].differs)
    assert [False] == [piece.differs for piece in compare_texts("a " * 99, "a " * 99).left]
