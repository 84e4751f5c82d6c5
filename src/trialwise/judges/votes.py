"""What a juror answered, read strictly: one object of a known form, or no vote at all.

Models put words and fences around their JSON, so the object is looked for. It is not guessed: an
answer that holds two different verdicts, one of which may be quoted from the material, is none.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

from trialwise.errors import InvalidArgument
from trialwise.validation import require_rate

__all__ = ["Choice", "Preferred", "Vote", "read_choice", "read_vote"]

#: A juror that needs more than this to say yes or no has lost its way.
_LONGEST_ANSWER = 20_000
_LONGEST_REASONING = 2_000

Preferred: TypeAlias = Literal["first", "second", "equal"]
T = TypeVar("T")

PREFERRED: tuple[Preferred, ...] = ("first", "second", "equal")


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
    """The vote in a juror's answer: the answer itself, or the object in it.

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
    """The choice in a juror's answer, likewise.

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
    """The outermost JSON objects of a text, in order; fences and words around them do not count."""
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
    return reasoning[:_LONGEST_REASONING]


def _is_share(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and 0 <= value <= 1
