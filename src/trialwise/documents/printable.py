"""Text that fits: columns counted in cells, and nothing in it that could move a cursor.

Names and messages come from suite files and services. What they hold is shown, never obeyed: an
escape sequence, a line break or a change of writing direction is spelled out before it is printed.
"""

from __future__ import annotations

from unicodedata import category, east_asian_width

__all__ = ["clip", "count_cells", "make_visible", "pad", "shorten", "spell", "wrap_text"]

#: Symbols of the reports with the fallbacks of companion §10.4.
_FALLBACKS = str.maketrans(
    {"α": "alpha", "β": "beta", "π": "pi", "₀": "0", "₁": "1", "√": "sqrt", "Σ": "sum ", "ₓ": "x"}
    | {"≤": "<=", "≥": ">=", "≠": "!=", "≈": "~=", "±": "+/-", "×": "x", "−": "-", "·": "*"}
    | {"–": "-", "—": "-", "…": "...", "§": "section ", "⌈": "ceil(", "⌉": ")", "•": "*"}
    | {"’": "'", "‘": "'", "“": '"', "”": '"', "█": "#", "░": "."}
)
_EMOJI_STYLE = "\ufe0f"
_UNIT_SPACE = "\u00a0"


def make_visible(text: str) -> str:
    r"""The text with whatever cannot be printed spelled out, as one line.

    >>> print(make_visible("ok\x1b[2J\n"))
    ok\x1b[2J\n
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else _spelled_out(one) for one in text)


def spell(text: str, *, unicode: bool) -> str:
    r"""What a stream can show of a text: visible, and in ASCII where that is all there is.

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
    """How many columns of a terminal a text takes; too many rather than too few.

    >>> count_cells("p̂"), count_cells("日本")
    (1, 4)
    """
    return len(text) if text.isascii() else sum(map(_cell, text))


def shorten(text: str, width: int, *, unicode: bool = True) -> str:
    """The text in at most `width` cells, what is too long left out of its middle.

    >>> shorten("answers-in-the-customer's-language", 16)
    'answers-…anguage'
    """
    if count_cells(text) <= width:
        return text
    gap = "…" if unicode else "..."
    room = width - len(gap)
    if room < 2:
        return clip(text, width)
    head = clip(text, room - room // 2)
    tail = clip(text[::-1], room - count_cells(head))[::-1]
    return f"{head}{gap}{tail}"


def clip(text: str, width: int) -> str:
    """The beginning of a text that takes at most `width` cells."""
    used = 0
    for place, one in enumerate(text):
        used += _cell(one)
        if used > width:
            return text[:place]
    return text


def pad(text: str, width: int, *, right: bool = False) -> str:
    """The text with spaces up to `width` cells, before it where `right`."""
    space = " " * (width - count_cells(text))
    return space + text if right else text + space


def wrap_text(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` cells; at least one line.

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


def _spelled_out(one: str) -> str:
    if category(one) == "Zs":
        return " "
    return one.encode("unicode_escape").decode("ascii")


def _cell(one: str) -> int:
    if one == _EMOJI_STYLE:  # widens the sign before it
        return 1
    if category(one) in ("Mn", "Me"):
        return 0
    return 2 if east_asian_width(one) in "WF" else 1
