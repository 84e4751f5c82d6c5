"""JavaScript's regular expressions as Python's, where both find the same."""

from __future__ import annotations

import re

from trialwise.contrib.importers.cerberus.assertion_syntax import NotCarried

__all__ = ["WHITE_SPACE", "translate_pattern"]

#: What JavaScript's `\s` and `trim` mean, as the inside of a class.
WHITE_SPACE = r"\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
#: The parts of a pattern that are carried over; none of them nests a repetition in a group.
_PART = re.compile(
    r"""(?P<escape>\\(?:[dwsb]|[nrt]|[^\w\s]))
    |(?P<set>\[\^?(?:[^\[\]\\^&~|\x80-\U0010ffff-]|\\[dws]|\\[^\w\s]|(?<=\w)-(?=\w)|-(?=\]))+\])
    |(?P<dot>\.)
    |(?P<end>\$)
    |(?P<plain>[^\\\[\].$*+?{}()|^\x80-\U0010ffff]|\^|\||\(\?:|\)|\((?!\?))
    |(?P<repeat>[*+?]\??|\{\d{1,3}(?:,\d{0,3})?\}\??)
    """,
    re.VERBOSE,
)


def translate_pattern(source: str, flags: str, at: int) -> str:
    """Translate a pattern into one that Python finds in the same texts.

    Args:
        source: What stands between the slashes.
        flags: What stands behind them; only `i` is carried over.
        at: Where it stands in the assertion, for a refusal.

    Raises:
        NotCarried: The two languages differ in a part of it, or it is wrong.

    >>> translate_pattern("^id-\\\\d+$", "", 0)
    '(?a)^id-\\\\d+\\\\Z'
    """
    if flags not in ("", "i"):
        raise NotCarried(f"the flags {flags!r} of a pattern are not carried over", at)
    parts: list[str] = []
    place = 0
    while place < len(source):
        match = _PART.match(source, place)
        if match is None:
            part = source[place : place + 8]
            raise NotCarried(f"{part!r} in a pattern is not carried over", at)
        parts.append(_translate_part(match))
        place = match.end()
    # Both then take only ASCII letters and digits for \w, \d and letters of either case.
    mode = f"(?a{flags})" if flags or re.search(r"\\[dwb]", source) else ""
    found = mode + "".join(parts)
    try:
        re.compile(found)
    except re.error as error:
        raise NotCarried(f"the pattern cannot be read ({error.msg})", at) from None
    return found


def _translate_part(match: re.Match[str]) -> str:
    text = match[0]
    if match["dot"]:
        return r"[^\n\r\u2028\u2029]"
    if match["end"]:
        return r"\Z"
    if text == r"\s":
        return f"[{WHITE_SPACE}]"
    return text.replace(r"\s", WHITE_SPACE) if match["set"] else text
