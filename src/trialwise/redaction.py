"""The one place where a text that may hold a secret is cut.

Half of a secret is not recognised any more, so whoever shortens a text takes the secrets out first.
What must be taken out is known to the run; services, checks and traces only cut. So a run sets its
redaction here, for everything that happens in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

Redact: TypeAlias = Callable[[str], str]
"""Takes secrets out of a text."""

#: How much of a text is looked at for its beginning; a pattern over megabytes would take seconds.
LOOKED_AT = 16_384

_SEAL = re.compile(r" \[sealed ([0-9a-f]{8}):[0-9a-f]{16}\]$")

_CURRENT: ContextVar[Redact | None] = ContextVar("trialwise_redaction", default=None)


@contextmanager
def redact_with(redact: Redact | None) -> Iterator[None]:
    """Take secrets out of whatever is cut or recorded in the block.

    >>> with redact_with(lambda text: text.replace("hunter2", "***")):
    ...     cut_text("the password is hunter2", 20)
    'the password is ***'

    Args:
        redact: How; None where nothing is secret.
    """
    token = _CURRENT.set(redact)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def redact_text(text: str) -> str:
    """Return the text without secrets."""
    redact = _CURRENT.get()
    return text if redact is None else redact(text)


def cut_text(text: str, limit: int, *, scrub: Redact | None = None) -> str:
    """Cut the beginning of a text; one that is short enough is left as it is.

    Args:
        text: The whole.
        limit: The most characters.
        scrub: Takes out secrets that only the caller knows.
    """
    if len(text) <= limit:
        return text
    # Twice the limit, so that a secret that begins before the cut is seen whole.
    head = text[: max(LOOKED_AT, 2 * limit)]
    head = redact_text(head if scrub is None else scrub(head))
    return head if len(head) <= limit else head[: limit - 1] + "…"


def redact_values(value: Any, redact: Redact | None = None) -> Any:
    """Return plain values with every text in them redacted, the keys as well.

    Args:
        value: What JSON can hold.
        redact: How; the run's own way where it is not given.
    """
    redact = redact or _CURRENT.get()
    if redact is None:
        return value
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):  # a service may answer with one that is not a dict
        return {
            # Keys as well: a reply may be a mapping from tokens.
            redact_values(key, redact): redact_values(item, redact)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [redact_values(item, redact) for item in value]
    return value


def format_seal(shown: str, key: str, digest: str) -> str:
    """Return a text without secrets, with the seal of the whole text.

    Args:
        shown: The text without secrets.
        key: Which key the seal was made with, 8 hexadecimal digits.
        digest: The hash of the whole under that key, 16 hexadecimal digits.
    """
    return f"{shown} [sealed {key}:{digest}]"


def are_sealed_apart(one: str, other: str) -> bool:
    """Return whether two texts are alike but for seals of two keys, which nobody can compare.

    >>> one, other = (format_seal("${MODEL}", key, 16 * "0") for key in ("a" * 8, "b" * 8))
    >>> are_sealed_apart(one, other), are_sealed_apart(one, one), are_sealed_apart(one, "small")
    (True, False, False)
    """
    ours, theirs = _SEAL.search(one), _SEAL.search(other)
    if ours is None or theirs is None or ours[1] == theirs[1]:
        return False
    return one[: ours.start()] == other[: theirs.start()]
