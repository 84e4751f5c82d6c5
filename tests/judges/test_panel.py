"""Votes and panels: strict reading, exact fractions, and no vote made up."""

from __future__ import annotations

import json
from contextlib import suppress
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.errors import InvalidArgument
from trialwise.judges import (
    Choice,
    Vote,
    decide_panel,
    quorum_of,
    read_choice,
    read_vote,
    votes_needed,
)

GOOD = '{"pass": true, "confidence": 0.75, "reasoning": "it is"}'


@pytest.mark.parametrize(
    "answer",
    [
        GOOD,
        f"  {GOOD}\n",
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}\n```\nThat is my verdict.",
        f"Let me think. The set {{a, b}} is fine. {GOOD}",
        f"{GOOD} and again {GOOD}",
        f'{{"thought": "first"}} {GOOD}',
    ],
)
def test_a_vote_is_found_raw_fenced_or_in_words(answer: str) -> None:
    """The three forms that models use, and their mixtures."""
    assert Vote(passed=True, confidence=0.75, reasoning="it is") == read_vote(answer)


def test_what_may_be_left_out_is() -> None:
    """The verdict alone is enough."""
    assert Vote(passed=False) == read_vote('{"pass": false}')


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("", "holds no JSON object"),
        ("Yes, it passes.", "holds no JSON object"),
        ('{"verdict": true}', "holds no JSON object"),
        ('{"answer": {"pass": true}}', "holds no JSON object"),
        ('{"pass": "true"}', "neither true nor false"),
        ('{"pass": 1}', "neither true nor false"),
        ('{"pass": null}', "neither true nor false"),
        ('{"pass": true, "pass": false}', "repeats a key"),
        ('{"pass": true, "confidence": 1.5}', "not between 0 and 1"),
        ('{"pass": true, "confidence": true}', "not between 0 and 1"),
        ('{"pass": true, "confidence": NaN}', "not between 0 and 1"),
        ('{"pass": true, "confidence": "high"}', "not between 0 and 1"),
        ('{"pass": true, "reasoning": ["a"]}', "not text"),
        ('It says {"pass": true}. I say {"pass": false}.', "two verdicts that differ"),
        ('{"pass": false} {"pass": true, "confidence": 1}', "two verdicts that differ"),
        ("{" * 10_000, "holds no JSON object"),
        ('{"a":' * 4_000, "nests too deeply"),
        (GOOD + " " * 20_000, "is longer than"),
    ],
)
def test_what_is_no_vote_is_not_guessed(answer: str, said: str) -> None:
    """Neither a truth in words nor two that differ."""
    with pytest.raises(ValueError, match=said):
        read_vote(answer)


@given(st.text(max_size=400))
def test_reading_an_answer_never_breaks(answer: str) -> None:
    """Whatever a model says, it is a vote or a `ValueError`."""
    with suppress(ValueError):
        assert isinstance(read_vote(answer), Vote)


@pytest.mark.parametrize(
    ("answer", "choice"),
    [
        ('{"better": "first"}', Choice(better="first")),
        ('{"better": "equal", "much": false}', Choice(better="equal")),
        (
            '{"reasoning": "r", "better": "second", "much": true}',
            Choice(better="second", much=True, reasoning="r"),
        ),
    ],
)
def test_a_choice_is_read_likewise(answer: str, choice: Choice) -> None:
    """By where the outputs stood."""
    assert choice == read_choice(answer)


@pytest.mark.parametrize(
    "answer",
    [
        '{"better": "A"}',
        '{"better": "first", "much": "yes"}',
        '{"better": "first"} {"better": "second"}',
        '{"better": ["first"]}',
        "first",
    ],
)
def test_what_is_no_choice_is_not_guessed(answer: str) -> None:
    """Another word, another type, or two."""
    with pytest.raises(ValueError, match=r"\w"):
        read_choice(answer)


@pytest.mark.parametrize(
    ("given", "quorum"),
    [
        ("majority", None),
        ("2/3", Fraction(2, 3)),
        ("1/2", Fraction(1, 2)),
        ("67%", Fraction(67, 100)),
        (0.67, Fraction(67, 100)),
        (0.5, Fraction(1, 2)),
        (1, Fraction(1)),
        (Fraction(3, 4), Fraction(3, 4)),
    ],
)
def test_a_quorum_is_an_exact_fraction(given: object, quorum: Fraction | None) -> None:
    """A decimal is read as written, a fraction as a fraction."""
    assert quorum == quorum_of(given)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", ["", "half", 0, 1.01, "3/2", "-1/2", "1/0", True, "50 %%", None])
def test_what_is_no_quorum_is_refused(given: object) -> None:
    """Also more than all of them."""
    with pytest.raises(InvalidArgument, match="quorum"):
        quorum_of(given)  # type: ignore[arg-type]


def test_two_of_three_meet_two_thirds_and_not_067() -> None:
    """The documented trap: 2/3 = 0.6667 is below 0.67."""
    two_of_three = [True, True, False]

    assert decide_panel(two_of_three, quorum_of("2/3")) is True
    assert decide_panel(two_of_three, quorum_of(0.67)) is False
    assert (2, 3) == (votes_needed(3, quorum_of("2/3")), votes_needed(3, quorum_of(0.67)))


def test_a_tie_fails_a_majority_and_meets_one_half() -> None:
    """The tie rule is the choice between the two."""
    tie = [True, False, True, False]

    assert decide_panel(tie) is False
    assert decide_panel(tie, Fraction(1, 2)) is True


@pytest.mark.parametrize("quorum", [None, Fraction(1, 2), Fraction(2, 3), Fraction(1)])
@pytest.mark.parametrize("size", range(1, 6))
def test_a_panel_decides_exactly_where_missing_votes_cannot_change_it(
    size: int, quorum: Fraction | None
) -> None:
    """By trying every way to fill them in."""
    for votes in product([True, False, None], repeat=size):
        filled = {
            _met(sum(one), size, quorum)
            for one in product(*([vote] if vote is not None else [True, False] for vote in votes))
        }

        expected = filled.pop() if len(filled) == 1 else None
        assert decide_panel(votes, quorum) is expected


def _met(passed: int, size: int, quorum: Fraction | None) -> bool:
    """A majority is more than half; a quorum at least its share."""
    return 2 * passed > size if quorum is None else Fraction(passed, size) >= quorum


def test_a_vote_is_what_it_says_it_is() -> None:
    """It cannot be built wrong, and survives JSON."""
    with pytest.raises(InvalidArgument):
        Vote(passed=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument):
        Vote(passed=True, confidence=2.0)
    text = json.dumps({"pass": True, "confidence": 0.5, "reasoning": "é\ud800"})
    assert "é\ud800" == read_vote(text).reasoning
