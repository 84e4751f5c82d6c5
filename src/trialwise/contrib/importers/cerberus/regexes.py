"""JavaScript's regular expressions in RE2's syntax, which is what CEL searches with.

Whether something matches is all that is asked, so that groups need not capture. What the two
languages read differently is spelled out: white space, the dot, letters of either case. What RE2
does not have (looking around, going back to a group) is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from trialwise.contrib.importers.cerberus.tokens import NotCarried

__all__ = ["WHITE_SPACE", "folded_text", "quoted", "to_re2"]

_LINE_ENDS = r"\n\r\x{2028}\x{2029}"
#: What JavaScript's `\s` and `trim` mean, as the inside of a class.
WHITE_SPACE = (
    r"\t\n\v\f\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}"
)
_MOST_REPEATED = 1000
_MOST_NESTED = 50
_COUNT = re.compile(r"\{(\d{1,9})(,?)(\d{0,9})\}")
_GROUP = re.compile(r"\?(?::|<([A-Za-z_$][\w$]*)>)")
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "v": "\v", "f": "\f", "0": "\0"}
_HEX = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\}")


def quoted(text: str) -> str:
    """A text as a pattern that matches just it.

    >>> quoted("a.b")
    'a\\\\.b'
    """
    return "".join(map(_literal, text))


def folded_text(text: str, at: int) -> str:
    """A pattern for what JavaScript's `toLowerCase` turns into a text.

    >>> folded_text("ok", 0)
    '[oO][kK\\\\x{212a}]'
    """
    if not text.isascii() or text != text.lower():
        raise NotCarried("after toLowerCase only a lower-case ASCII text is carried over", at)
    # The Kelvin sign becomes k; a dotted capital I becomes an i with a dot behind it.
    more = {"k": r"\x{212a}"}
    parts = [
        f"[{one}{one.upper()}{more.get(one, '')}]" if one.isalpha() else _literal(one)
        for one in text
    ]
    if text.endswith("i"):
        parts[-1] = r"[iI\x{130}]"
    return "".join(parts)


def to_re2(source: str, flags: str, at: int) -> str:
    """The same pattern for RE2.

    Args:
        source: What stands between the slashes.
        flags: What stands behind them.
        at: Where, for a refusal.

    >>> to_re2(r"^\\d+$", "", 0)
    '^\\\\d+$'
    """
    for flag in flags:
        if flag not in "gimsu" or flags.count(flag) > 1:
            raise NotCarried(f"the flag {flag!r} of a pattern is not carried over", at)
    if "i" in flags and "u" in flags:
        raise NotCarried("the flags i and u of a pattern together are not carried over", at)
    reader = _Reader(source, flags, at)
    pattern = reader.alternatives(depth=0)
    if not reader.is_done:
        raise NotCarried("a group of a pattern is closed without having been opened", at)
    return pattern


@dataclass(slots=True)
class _Reader:
    """A pattern, read from left to right."""

    source: str
    flags: str
    at: int
    place: int = 0
    names: set[str | None] = field(default_factory=set)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left."""
        return self.place >= len(self.source)

    @property
    def _next(self) -> str:
        return self.source[self.place : self.place + 1]

    def _take(self) -> str:
        one = self._next
        self.place += 1
        return one

    def _refuse(self, what: str) -> NotCarried:
        return NotCarried(f"{what} in a pattern is not carried over", self.at)

    def alternatives(self, *, depth: int) -> str:
        """One or several sequences."""
        if depth > _MOST_NESTED:
            raise self._refuse("so deep a group")
        found = [self._sequence(depth)]
        while self._next == "|":
            self.place += 1
            found.append(self._sequence(depth))
        return "|".join(found)

    def _sequence(self, depth: int) -> str:
        parts: list[str] = []
        while not self.is_done and self._next not in "|)":
            atom, may_repeat = self._atom(depth, is_first=not parts)
            parts.append(atom + (self._quantifier() if may_repeat else ""))
        return "".join(parts)

    def _atom(self, depth: int, *, is_first: bool) -> tuple[str, bool]:
        one = self._take()
        if one in "^$":
            return self._anchor(one, depth, is_first=is_first), False
        if one == "(":
            return self._group(depth), True
        if one == "[":
            return self._class(), True
        if one == ".":
            return "(?s:.)" if "s" in self.flags else f"[^{_LINE_ENDS}]", True
        if one == "\\":
            return self._escape()
        if one in "*+?":
            raise NotCarried("a pattern repeats nothing", self.at)
        if one == "{" and _COUNT.match(self.source, self.place - 1):
            raise NotCarried("a pattern repeats nothing", self.at)
        return self._character(one), True

    def _anchor(self, one: str, depth: int, *, is_first: bool) -> str:
        if "m" not in self.flags:
            return one
        # A line's end that is matched here cannot be matched again: fine at the ends only.
        at_end = is_first if one == "^" else self.is_done or self._next == "|"
        if depth or not at_end:
            raise self._refuse(f"{one!r} for a line, within a pattern,")
        return f"(?:{one}|[{_LINE_ENDS}])"

    def _group(self, depth: int) -> str:
        if self._next == "?":
            match = _GROUP.match(self.source, self.place)
            if match is None:
                raise self._refuse("looking around")
            self.place = match.end()
            if match[1] in self.names:
                raise NotCarried("two groups of a pattern have one name", self.at)
            self.names |= {match[1]} - {None}
        inside = self.alternatives(depth=depth + 1)
        if self._take() != ")":
            raise NotCarried("a group of a pattern is not closed", self.at)
        return f"(?:{inside})"

    def _quantifier(self) -> str:
        match = _COUNT.match(self.source, self.place)
        if match:
            self.place = match.end()
            low, high = int(match[1]), int(match[3] or match[1])
            if max(low, high) > _MOST_REPEATED:
                raise self._refuse(f"a repetition beyond {_MOST_REPEATED}")
            if high < low:
                raise NotCarried("a repetition in a pattern ends before it begins", self.at)
            found = match[0]
        elif self._next and self._next in "*+?":
            found = self._take()
        else:
            return ""
        if self._next == "?":
            found += self._take()
        if _COUNT.match(self.source, self.place) or (self._next and self._next in "*+?"):
            raise NotCarried("a pattern repeats a repetition", self.at)
        return found

    def _escape(self) -> tuple[str, bool]:
        if self._next and self._next in "bB":
            return f"\\{self._take()}", False
        if self._next and self._next in "dDwW":
            return f"\\{self._take()}", True
        if self._next and self._next in "sS":
            negation = "^" if self._take() == "S" else ""
            return f"[{negation}{WHITE_SPACE}]", True
        return self._character(self._escaped()), True

    def _escaped(self) -> str:
        """The character that an escape stands for."""
        if match := _HEX.match(self.source, self.place):
            if match[3] and "u" not in self.flags:
                raise self._refuse("\\u{…} without the flag u")
            self.place = match.end()
            code = int(match[1] or match[2] or match[3], 16)
            if 0xD800 <= code <= 0xDFFF or code > 0x10FFFF:
                raise self._refuse("half a surrogate pair")
            return chr(code)
        one = self._take()
        if not one:
            raise NotCarried("a pattern ends with a backslash", self.at)
        if one == "0" and not self._next.isdigit():
            return "\0"
        if one.isalnum() and one not in _CONTROLS:
            raise self._refuse(f"\\{one}")
        if one == "0":
            raise self._refuse("an octal escape")
        return _CONTROLS.get(one, one)

    def _character(self, one: str) -> str:
        if "i" not in self.flags or not one.isalpha():
            return _literal(one)
        return f"[{_cases(one, self.at)}]"

    def _class(self) -> str:
        negation = ""
        if self._next == "^":
            negation = self._take()
        parts: list[str] = []
        while self._next != "]":
            if self.is_done:
                raise NotCarried("a class in a pattern is not closed", self.at)
            parts.append(self._member())
        self.place += 1
        if not parts:
            return "(?s:.)" if negation else r"[^\x00-\x{10ffff}]"
        return f"[{negation}{''.join(parts)}]"

    def _member(self) -> str:
        low = self._class_character()
        if len(low) > 1:
            return low
        is_range = self._next == "-" and self.source[self.place + 1 : self.place + 2] not in (
            "",
            "]",
        )
        if not is_range:
            return self._cased(low, low)
        self.place += 1
        high = self._class_character()
        if len(high) > 1:
            raise self._refuse("a range that ends with a class")
        if high < low:
            raise NotCarried("a range in a pattern ends before it begins", self.at)
        return self._cased(low, high)

    def _class_character(self) -> str:
        """One character, or the inside of a class of its own."""
        one = self._take()
        if one != "\\":
            if ord(one) > 0xFFFF and "u" not in self.flags:
                raise self._refuse("a character beyond U+FFFF in a class, without the flag u,")
            return one
        if self._next == "b":
            self.place += 1
            return "\b"
        if self._next == "-":
            return self._take()
        if self._next and self._next in "dDwW":
            return f"\\{self._take()}"
        if self._next == "s":
            self.place += 1
            return WHITE_SPACE
        if self._next == "S":
            raise self._refuse("\\S in a class")
        return self._escaped()

    def _cased(self, low: str, high: str) -> str:
        span = _in_class(low) if low == high else f"{_in_class(low)}-{_in_class(high)}"
        if "i" not in self.flags:
            return span
        if not high.isascii():
            if any(chr(one).isalpha() for one in range(ord(low), min(ord(high) + 1, 0x3000))):
                raise self._refuse("a letter beyond ASCII under the flag i")
            return span
        for first, last in (("a", "z"), ("A", "Z")):
            start, end = max(low, first), min(high, last)
            if start <= end:
                span += f"{start.swapcase()}-{end.swapcase()}"
        return span


def _cases(letter: str, at: int) -> str:
    if not letter.isascii():
        raise NotCarried("a letter beyond ASCII under the flag i is not carried over", at)
    return f"{letter.lower()}{letter.upper()}"


def _literal(one: str) -> str:
    if one.isalnum() and one.isascii():
        return one
    if one.isascii() and one.isprintable():
        return one if one in " !\"#%&',-/:;<=>@_`~" else f"\\{one}"
    return f"\\x{{{ord(one):x}}}"


def _in_class(one: str) -> str:
    return f"\\{one}" if one in "-^&~" else _literal(one)
