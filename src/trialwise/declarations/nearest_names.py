"""Which name was probably meant where somebody wrote one that does not exist."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def find_nearest(word: str, known: Sequence[str]) -> str | None:
    """Return the known word that was probably meant.

    >>> find_nearest("At-Lest", ["at_least", "trials"])
    'at_least'
    """
    from difflib import get_close_matches

    plain = word.casefold().replace("-", "_").replace(" ", "_")
    by_plain = {one.casefold().replace("-", "_"): one for one in reversed(known)}
    close = get_close_matches(plain, list(by_plain), n=1)
    # `rate_per_s` for `rate` is far by letters and near by meaning.
    close = close or [one for one in by_plain if len(one) > 3 and plain.startswith(one)]
    return by_plain[close[0]] if close else None


def suggest_name(word: str, known: Iterable[str], otherwise: str = "", *, quote: str = "`") -> str:
    """Return the question whether a similar name was meant.

    Args:
        word: What was written.
        known: The names that exist.
        otherwise: What to say where none of them is similar.
        quote: Stands before and after the name.

    >>> suggest_name("at_lest", ["at_least", "trials"])
    'did you mean `at_least`?'
    """
    close = find_nearest(word, list(known))
    return otherwise if close is None else f"did you mean {quote}{close}{quote}?"
