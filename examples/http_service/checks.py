"""What a right translation is, for the services of trialwise.yaml."""

from __future__ import annotations

ANSWERS = {"cat": "Katze", "dog": "Hund", "house": "Haus", "river": "Fluss"}


def is_translated(text: str, input: str) -> bool:  # noqa: A002 - what a trial's input is called
    """Whether the reply is the word's translation."""
    return text == ANSWERS[input]
