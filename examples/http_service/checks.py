"""Checks the translations of the service in trialwise.yaml."""

from __future__ import annotations

ANSWERS = {"cat": "Katze", "dog": "Hund", "house": "Haus", "river": "Fluss"}


def is_translated(text: str, input: str) -> bool:  # noqa: A002 - what a trial's input is called
    """Return whether the reply is the right translation of the word."""
    return text == ANSWERS[input]
