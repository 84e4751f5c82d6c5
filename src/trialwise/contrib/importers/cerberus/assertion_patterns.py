"""JavaScript's regular expressions as Python's, where both find the same."""

from __future__ import annotations

import re

from trialwise.contrib.importers.cerberus.assertion_syntax import NotCarried

__all__ = ["WHITE_SPACE", "translate_pattern"]

#: What JavaScript's `\s` and `trim` mean, as the inside of a class.
WHITE_SPACE = r"\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
#: What ends a line in JavaScript, as the inside of a class.
_LINE_ENDS = r"\n\r\u2028\u2029"
#: What matches a place and no character, and cannot be repeated.
_PLACES = ("^", "$", r"\b", r"\B")
#: The parts of a pattern that are carried over; none of them nests a repetition in a group.
_PART = re.compile(
    r"""(?P<escape>\\(?:[dwsbDWSB]|[nrt]|[^\w\s]))
    |(?P<any>\[(?:\\s\\S|\\S\\s|\\d\\D|\\D\\d|\\w\\W|\\W\\w)\])
    |(?P<set>\[\^?-?(?:[^\[\]\\^&~|\ud800-\udfff\U00010000-\U0010ffff-]|\\[dwsnrt]|\\[^\w\s]|(?<=\w)-(?=\w)|-(?=\]))+\])
    |(?P<dot>\.)
    |(?P<start>\^)
    |(?P<end>\$)
    |(?P<wide>[\x80-\ud7ff\ue000-\uffff])
    |(?P<plain>[^\\\[\].$*+?{}()|^\x80-\U0010ffff]|\||\(\?[:=!]|\)|\((?!\?))
    |(?P<repeat>[*+?]\??|\{\d{1,3}(?:,\d{0,3})?\}\??)
    """,
    re.VERBOSE,
)


def translate_pattern(source: str, flags: str, at: int) -> str:
    """Translate a pattern into one that Python finds in the same texts.

    Args:
        source: What stands between the slashes.
        flags: What stands behind them; `i`, `m` and `s` are carried over.
        at: Where it stands in the assertion, for a refusal.

    Raises:
        NotCarried: The two languages differ in a part of it, or it is wrong.

    >>> translate_pattern("^id-\\\\d+$", "", 0)
    '(?a)^id-\\\\d+\\\\Z'
    """
    if not set(flags) <= set("ims") or len(set(flags)) < len(flags):
        raise NotCarried(f"the flags {flags!r} of a pattern are not carried over", at)
    parts: list[str] = []
    place, before = 0, None
    while place < len(source):
        match = _PART.match(source, place)
        if match is None:
            part = source[place : place + 8]
            raise NotCarried(f"{part!r} in a pattern is not carried over", at)
        if match["repeat"] and before is not None and before[0] in _PLACES:
            raise NotCarried("the pattern cannot be read (nothing to repeat)", at)
        if "i" in flags and any(
            not one.isascii() and one.lower() != one.upper() for one in match[0]
        ):
            raise NotCarried(f"{match[0]!r} in a pattern with the flag i is not carried over", at)
        parts.append(_translate_part(match, flags))
        place, before = match.end(), match
    # Both then take only ASCII letters and digits for \w, \d and letters of either case.
    folded = "i" if "i" in flags else ""
    mode = f"(?a{folded})" if folded or re.search(r"\\[dwbDWB]", source) else ""
    found = mode + "".join(parts)
    try:
        re.compile(found)
    except re.error as error:
        raise NotCarried(f"the pattern cannot be read ({error.msg})", at) from None
    return found


def _translate_part(match: re.Match[str], flags: str) -> str:
    text = match[0]
    if match["any"] or (match["dot"] and "s" in flags):
        return "(?s:.)"
    if "m" in flags and text in _LINES:
        return _LINES[text]
    if match["set"]:
        return text.replace(r"\s", WHITE_SPACE)
    return _SPELLED.get(text, text)


#: What is spelled differently in Python.
_SPELLED = {
    ".": f"[^{_LINE_ENDS}]",
    "$": r"\Z",
    r"\s": f"[{WHITE_SPACE}]",
    r"\S": f"[^{WHITE_SPACE}]",
    # Python finds no \B in an empty text before version 3.14.
    r"\B": r"(?!\b)",
}
#: The same under the flag `m`, by JavaScript's ends of lines.
_LINES = {"^": rf"(?:\A|(?<=[{_LINE_ENDS}]))", "$": rf"(?=[{_LINE_ENDS}]|\Z)"}
