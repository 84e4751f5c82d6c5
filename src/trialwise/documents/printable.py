"""Text that fits: columns counted in cells, and nothing in it that could move a cursor.

Names and messages come from suite files and services. What they hold is shown, never obeyed: an
escape sequence, a line break or a change of writing direction is spelled out before it is printed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from difflib import SequenceMatcher
from html import escape
from pathlib import Path
from unicodedata import category, east_asian_width

from trialwise.documents.blocks import Compared, Piece

#: Symbols of the reports with the fallbacks of companion §10.4.
_FALLBACKS = str.maketrans(
    {"α": "alpha", "β": "beta", "π": "pi", "₀": "0", "₁": "1", "√": "sqrt", "Σ": "sum ", "ₓ": "x"}
    | {"Δ": "delta"}
    | {"≤": "<=", "≥": ">=", "≠": "!=", "≈": "~=", "±": "+/-", "×": "x", "−": "-", "·": "*"}
    | {"–": "-", "—": "-", "…": "...", "§": "section ", "⌈": "ceil(", "⌉": ")", "•": "*"}
    | {"’": "'", "‘": "'", "“": '"', "”": '"', "█": "#", "░": "."}
)


_EMOJI_STYLE = "\ufe0f"


_UNIT_SPACE = "\u00a0"


def near(path: Path) -> str:
    """Return a path as somebody here would write it: from this folder, where it lies in it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def make_visible(text: str) -> str:
    r"""Return the text with whatever cannot be printed spelled out, as one line.

    >>> print(make_visible("ok\x1b[2J\n"))
    ok\x1b[2J\n
    """
    # The usual case, and much faster than a look at each character.
    if text.isprintable():
        return text
    plain = ("\N{SPACE}" if category(one) == "Zs" else one for one in text)
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in plain
    )


def spell(text: str, *, unicode: bool) -> str:
    r"""Return what a stream can show of a text: visible, and in ASCII where that is all there is.

    >>> spell("p̂ ≥ 0.9", unicode=False)
    'p-hat >= 0.9'
    >>> print(spell("Größe", unicode=False))
    Gr\xf6\xdfe
    """
    shown = make_visible(text)
    if unicode or shown.isascii():
        return shown
    shown = shown.replace("p\u0302", "p-hat").translate(_FALLBACKS)
    return shown.encode("ascii", "backslashreplace").decode("ascii")


def count_cells(text: str) -> int:
    """Count how many columns of a terminal a text takes; too many rather than too few.

    >>> count_cells("p̂"), count_cells("日本")
    (1, 4)
    """
    return len(text) if text.isascii() else sum(map(_cell, text))


def shorten(text: str, width: int, *, unicode: bool = True) -> str:
    """Shorten the text in at most `width` cells, what is too long left out of its middle.

    >>> shorten("answers-in-the-customer's-language", 16)
    'answers-…anguage'
    """
    if count_cells(text) <= width:
        return text
    gap = "…" if unicode else "..."
    room = width - len(gap)
    if room < 2:
        return clip(text, width)
    # Both ends: names of a suite often begin alike and differ at the end.
    head = clip(text, room - room // 2)
    tail = clip(text[::-1], room - count_cells(head))[::-1]
    return f"{head}{gap}{tail}"


def clip(text: str, width: int) -> str:
    """Return the beginning of a text that takes at most `width` cells."""
    used = 0
    for place, one in enumerate(text):
        used += _cell(one)
        if used > width:
            return text[:place]
    return text


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Return the text with spaces up to `width` cells, before it where `right`."""
    space = " " * (width - count_cells(text))
    return space + text if right else text + space


def wrap_text(text: str, width: int) -> list[str]:
    """Wrap the text in lines of at most `width` cells; at least one line.

    >>> wrap_text("at least 90 % of the trials", 12)
    ['at least', '90 % of the', 'trials']
    """
    # A number and its unit stay together; the space is put back when the line is done.
    words = text.replace(" %", f"{_UNIT_SPACE}%").split(" ")
    lines: list[str] = []
    line = ""
    for word in filter(None, words):
        if line and count_cells(line) + 1 + count_cells(word) <= width:
            line = f"{line} {word}"
            continue
        if line:
            lines.append(line)
        line = word
        while count_cells(line) > width:
            head = clip(line, width) or line[:1]
            lines.append(head)
            line = line[len(head) :]
    return [one.replace(_UNIT_SPACE, " ") for one in [*lines, line] if one] or [""]


def _cell(one: str) -> int:
    if one == _EMOJI_STYLE:  # widens the sign before it
        return 1
    if category(one) in ("Mn", "Me"):
        return 0
    # Wide characters take two columns of a terminal, as Unicode annex 11 has it.
    return 2 if east_asian_width(one) in "WF" else 1


#: Bytes of markup around a text, a number and a block: what the HTML renderer takes on average.
_TEXT, _NUMBER, _BLOCK = 24, 6, 60


#: Bytes that a character may take which a renderer shows by its name.
_HIDDEN = 14


def cut_middle(text: str, limit: int) -> str:
    """Cut the beginning and the end of a text that is too long, with what is left out counted.

    >>> cut_middle("abcdefghij" * 5, 20)
    'abcdefghijabc … [30 characters left out] … defghij'
    """
    if len(text) <= limit:
        return text
    # What matters in a reply is at its ends more often than in the middle; most is said first.
    tail = limit // 3 + limit % 3 // 2
    head = limit - tail
    end = text[len(text) - tail :]
    return f"{text[:head]} … [{len(text) - limit:,} characters left out] … {end}"


def estimate_size(part: object) -> int:
    """About how many bytes of HTML a block takes, or anything that a block holds."""
    if isinstance(part, str):
        return _TEXT + _measure_text(part) if part else 0
    # A number is written in a few letters, whatever it is; bools are flags and near enough.
    if isinstance(part, int | float):
        return _NUMBER
    if isinstance(part, tuple):
        return sum(map(estimate_size, part))
    if isinstance(part, Mapping):
        return sum(map(estimate_size, part.values()))
    if is_dataclass(part):
        return _BLOCK + sum(estimate_size(getattr(part, one.name)) for one in fields(part))
    return 0


def _measure_text(text: str) -> int:
    if text.isascii() and text.isprintable():
        return len(escape(text, quote=False)) if any(one in text for one in "<>&") else len(text)
    size = len(escape(text, quote=False).encode("utf-8", "replace"))
    return size + _HIDDEN * sum(not one.isprintable() and one != "\n" for one in text)


# --- Two texts beside each other, with the words that differ marked in both -----------------------

#: Words, the spaces between them, and single signs.
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")


#: How often a piece may occur in a text that is compared piece by piece.
_OFTEN = 60


def compare_texts(
    expected: str, reply: str, headings: tuple[str, str] = ("Expected", "Reply")
) -> Compared:
    """Compare the two texts in pieces, each common to both or found in one of them only.

    >>> found = compare_texts("Paris, France", "Lyon, France")
    >>> [piece.text for piece in found.right if piece.differs]
    ['Lyon']

    Args:
        expected: What a right reply says or is.
        reply: What came back.
        headings: What the two are called.
    """
    one, two = _WORDS.findall(expected), _WORDS.findall(reply)
    # Spaces go with the words beside them. They are in every text, and looking for common runs
    # takes the square of how often a piece occurs: a text of one word again and again is not
    # compared at all.
    often = max(Counter(piece for piece in two if not piece.isspace()).values(), default=0)
    steps = (
        SequenceMatcher(str.isspace, one, two, autojunk=False).get_opcodes()
        if often <= _OFTEN
        else [("equal" if one == two else "replace", 0, len(one), 0, len(two))]
    )
    left = [("".join(one[a:b]), tag != "equal") for tag, a, b, _, _ in steps]
    right = [("".join(two[a:b]), tag != "equal") for tag, _, _, a, b in steps]
    one_side, other = (
        tuple(Piece(text=text, differs=differs) for text, differs in side if text)
        for side in (left, right)
    )
    return Compared(headings=headings, left=one_side, right=other)
