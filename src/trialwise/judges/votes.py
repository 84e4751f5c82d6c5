"""What a juror answered, read strictly, and how several votes become one verdict.

Models put words and fences around their JSON, so the object is looked for. It is not guessed: an
answer that holds two different verdicts, one of which may be quoted from the material, is none.

A missing vote counts neither way. The panel has decided where those that are there leave no doubt,
whatever the missing ones would have said; otherwise there is no verdict.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias, TypeVar

from trialwise.errors import InvalidArgument
from trialwise.redaction import cut_text
from trialwise.validation import require_count, require_rate

#: A juror that needs more than this to say yes or no has lost its way.
_LONGEST_ANSWER = 20_000
_LONGEST_REASONING = 2_000
Preferred: TypeAlias = Literal["first", "second", "equal"]
T = TypeVar("T")
PREFERRED: tuple[Preferred, ...] = ("first", "second", "equal")
#: More than half: with an even number of votes a tie fails.
MAJORITY = "majority"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """One juror's verdict on one output."""

    passed: bool
    confidence: float | None = None
    """As the juror puts it; nobody has measured what it is worth."""
    reasoning: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.passed, bool):
            raise InvalidArgument("pass", self.passed, "be true or false")
        if self.confidence is not None:
            require_rate("confidence", self.confidence)
        if not isinstance(self.reasoning, str):
            raise InvalidArgument("reasoning", self.reasoning, "be text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One juror's choice between two outputs, by where they stood."""

    better: Preferred
    much: bool = False
    reasoning: str = ""


def read_vote(answer: str) -> Vote:
    """Read the vote in a juror's answer: the answer itself, or the object in it.

    Raises:
        ValueError: There is none, or several that differ; the text ends "the answer …".

    >>> read_vote('Sure! ```json\\n{"pass": true, "confidence": 0.9, "reasoning": "fine"}\\n```')
    Vote(passed=True, confidence=0.9, reasoning='fine')
    >>> read_vote('The output says {"pass": true}, but {"pass": false}')
    Traceback (most recent call last):
        ...
    ValueError: holds two verdicts that differ
    """
    return _the_one(answer, "pass", _vote, lambda vote: vote.passed)


def read_choice(answer: str) -> Choice:
    """Read the choice in a juror's answer, likewise.

    >>> read_choice('{"better": "second", "much": true}')
    Choice(better='second', much=True, reasoning='')
    """
    return _the_one(answer, "better", _choice, lambda choice: (choice.better, choice.much))


def _the_one(
    answer: str, key: str, read: Callable[[dict[str, Any]], T], verdict: Callable[[T], object]
) -> T:
    if len(answer) > _LONGEST_ANSWER:
        raise ValueError(f"is longer than {_LONGEST_ANSWER:,} characters")
    found = [read(one) for one in _objects(answer) if key in one]
    if not found:
        raise ValueError(f"holds no JSON object with {key!r}")
    if len({verdict(one) for one in found}) > 1:
        raise ValueError("holds two verdicts that differ")
    return found[0]


def _objects(answer: str) -> Iterator[dict[str, Any]]:
    """Yield the outermost JSON objects of a text in order, without fences and words around."""
    decoder = json.JSONDecoder(object_pairs_hook=_once)
    place = answer.find("{")
    while place >= 0:
        try:
            value, end = decoder.raw_decode(answer, place)
        except RecursionError:
            raise ValueError("nests too deeply") from None
        except json.JSONDecodeError:
            end = place + 1
        else:
            yield value
        place = answer.find("{", end)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("repeats a key")
    return fields


def _vote(fields: dict[str, Any]) -> Vote:
    confidence = fields.get("confidence")
    if not isinstance(fields["pass"], bool):
        raise ValueError("has a `pass` that is neither true nor false")
    if confidence is not None and not _is_share(confidence):
        raise ValueError("has a `confidence` that is not between 0 and 1")
    reasoning = _reasoning(fields)
    return Vote(
        passed=fields["pass"],
        confidence=None if confidence is None else float(confidence),
        reasoning=reasoning,
    )


def _choice(fields: dict[str, Any]) -> Choice:
    if fields["better"] not in PREFERRED:
        raise ValueError(f"has a `better` that is none of {', '.join(PREFERRED)}")
    much = fields.get("much", False)
    if not isinstance(much, bool):
        raise ValueError("has a `much` that is neither true nor false")
    return Choice(better=fields["better"], much=much, reasoning=_reasoning(fields))


def _reasoning(fields: dict[str, Any]) -> str:
    reasoning = fields.get("reasoning", "")
    if not isinstance(reasoning, str):
        raise ValueError("has a `reasoning` that is not text")
    return cut_text(reasoning, _LONGEST_REASONING)


def _is_share(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value <= 1  # which NaN is not, and what a number of 400 digits can be asked


def quorum_of(given: str | float | Fraction) -> Fraction | None:
    """Return the share of passing votes that a quorum asks for; None for a majority.

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
    """Return the fewest passing votes that pass.

    >>> votes_needed(3, Fraction(2, 3)), votes_needed(3, Fraction(67, 100)), votes_needed(4)
    (2, 3, 3)
    """
    size = require_count("votes", votes, minimum=1)
    if quorum is None:
        return size // 2 + 1
    return -(-quorum.numerator * size // quorum.denominator)


def decide_panel(votes: Sequence[bool | None], quorum: Fraction | None = None) -> bool | None:
    """Return whether the panel passes; None if the missing votes could decide it.

    >>> decide_panel([True, True, None]), decide_panel([True, False, None])
    (True, None)
    """
    needed = votes_needed(len(votes), quorum)
    passed = sum(vote is True for vote in votes)
    if passed >= needed:
        return True
    missing = sum(vote is None for vote in votes)
    return False if passed + missing < needed else None
