"""How several votes become one verdict: an exact fraction, and no vote made up.

A missing vote counts neither way. The panel has decided where those that are there leave no doubt,
whatever the missing ones would have said; otherwise there is no verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from trialwise.errors import InvalidArgument
from trialwise.validation import require_count

__all__ = ["MAJORITY", "decide_panel", "quorum_of", "votes_needed"]

#: More than half: with an even number of votes a tie fails.
MAJORITY = "majority"


def quorum_of(given: str | float | Fraction) -> Fraction | None:
    """The share of passing votes that a quorum asks for; None for a majority.

    A decimal is read as written: 0.67 asks for 67 of 100, which two of three are not. Write "2/3".
    "1/2" lets a tie pass, "majority" does not.

    >>> quorum_of("2/3"), quorum_of(0.67), quorum_of("majority")
    (Fraction(2, 3), Fraction(67, 100), None)
    """
    if given == MAJORITY:
        return None
    allowed = 'be "majority", or a share above 0 and up to 1 such as "2/3" or 0.75'
    try:
        text = str(given).strip() if not isinstance(given, bool) else ""
        share = Fraction(text[:-1]) / 100 if text.endswith("%") else Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise InvalidArgument("quorum", given, allowed) from None
    if not 0 < share <= 1:
        raise InvalidArgument("quorum", given, allowed)
    return share


def votes_needed(votes: int, quorum: Fraction | None = None) -> int:
    """The fewest passing votes that pass.

    >>> votes_needed(3, Fraction(2, 3)), votes_needed(3, Fraction(67, 100)), votes_needed(4)
    (2, 3, 3)
    """
    size = require_count("votes", votes, minimum=1)
    if quorum is None:
        return size // 2 + 1
    return -(-quorum.numerator * size // quorum.denominator)


def decide_panel(votes: Sequence[bool | None], quorum: Fraction | None = None) -> bool | None:
    """Whether the panel passes; None where the missing votes, given as None, could decide it.

    >>> decide_panel([True, True, None]), decide_panel([True, False, None])
    (True, None)
    """
    needed = votes_needed(len(votes), quorum)
    passed = sum(vote is True for vote in votes)
    if passed >= needed:
        return True
    missing = sum(vote is None for vote in votes)
    return False if passed + missing < needed else None
