"""What a stream can do: whether it is a terminal, how wide, with colour, with more than ASCII.

Asked once, at the edge; everything that renders takes the answer as a value.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TextIO

from trialwise.documents.blocks import Tone
from trialwise.documents.printable import shorten, spell

#: What a stream without a size of its own is taken for: a log, or an old terminal.
COLUMNS, ROWS = 80, 24
#: One of every kind of sign the reports are drawn with.
_SIGNS = "α₀≤≥√≈Σ−·–…×§⌈█░•p̂"


class Style(StrEnum):
    """How a piece of text stands out, as the codes of ECMA-48's SGR."""

    GOOD = "32"
    BAD = "31"
    OPEN = "33"
    FAINT = "2"
    STRONG = "1"


_TONES: dict[str, Style] = {
    **dict.fromkeys(("fail", "broken"), Style.BAD),
    **dict.fromkeys(("quiet", "limit"), Style.FAINT),
    "pass": Style.GOOD,
    "open": Style.OPEN,
    "chosen": Style.STRONG,
}


def pick_style(tone: Tone) -> Style | None:
    """Return how a tone stands out on a terminal."""
    return _TONES.get(tone)


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What may be sent to a stream; the defaults suit any log."""

    live: bool = False
    """Whether lines already written can be drawn over."""
    colour: bool = False
    unicode: bool = False
    width: int = COLUMNS
    height: int = ROWS

    @property
    def dot(self) -> str:
        """What stands between two facts on one line."""
        return " · " if self.unicode else " | "

    def show(self, text: str, width: int | None = None) -> str:
        """Show what the stream can show of a text, shortened in the middle to a width."""
        shown = spell(text, unicode=self.unicode)
        return shown if width is None else shorten(shown, width, unicode=self.unicode)

    def paint(self, text: str, style: Style | None) -> str:
        r"""Return the text in a style, where there is colour.

        >>> Capabilities(colour=True).paint("PASS", Style.GOOD)
        '\x1b[32mPASS\x1b[0m'
        """
        return f"\x1b[{style}m{text}\x1b[0m" if self.colour and style and text else text


def read_capabilities(stream: TextIO, environ: Mapping[str, str] | None = None) -> Capabilities:
    """Read what a stream can do, by the stream itself and by what the environment says.

    `NO_COLOR` beats `FORCE_COLOR`, which beats whether it is a terminal; `TERM=dumb` draws
    nothing over and `CI` keeps every line, since its log is read afterwards.

    Args:
        stream: Where text will go.
        environ: The environment; the process's own where none is given.
    """
    variables = os.environ if environ is None else environ
    # Consoles of Windows before its Terminal print escape codes instead of obeying them.
    obeys = os.name != "nt" or bool(variables.get("WT_SESSION") or variables.get("TERM"))
    terminal = _is_terminal(stream) and variables.get("TERM") != "dumb" and obeys
    width, height = read_size(stream) or (_columns(variables), ROWS)
    # The log of a CI job is no terminal to whoever reads it later, whatever the job was given.
    live, colour = terminal and not _is_set(variables, "CI"), _colour(variables, terminal)
    shows = _shows_unicode(stream)
    return Capabilities(live=live, colour=colour, unicode=shows, width=width, height=height)


def read_size(stream: TextIO) -> tuple[int, int] | None:
    """Columns and rows of a terminal now, which a person may change; None for anything else."""
    try:
        columns, rows = os.get_terminal_size(stream.fileno())
    # A pipe, a closed stream, and one that a test runner made of nothing but a buffer.
    except (OSError, ValueError, AttributeError):
        return None
    return (columns, rows or ROWS) if columns else None


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def _is_set(variables: Mapping[str, str], name: str) -> bool:
    return variables.get(name, "").lower() not in ("", "0", "false")


def _colour(variables: Mapping[str, str], terminal: bool) -> bool:
    # https://no-color.org: any text that is not empty counts, also "0".
    if variables.get("NO_COLOR"):
        return False
    if variables.get("FORCE_COLOR"):
        return _is_set(variables, "FORCE_COLOR")
    return terminal


def _columns(variables: Mapping[str, str]) -> int:
    given = variables.get("COLUMNS", "")
    return int(given) if given.isdecimal() and int(given) > 0 else COLUMNS


def _shows_unicode(stream: TextIO) -> bool:
    try:
        _SIGNS.encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
