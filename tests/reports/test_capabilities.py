"""What a stream can do, and text that fits it whatever it holds."""

from __future__ import annotations

import io
import os
import pty
from collections.abc import Iterator
from fcntl import ioctl
from struct import pack
from termios import TIOCSWINSZ
from typing import TextIO
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.documents.printable import (
    clip,
    count_cells,
    make_visible,
    pad,
    shorten,
    spell,
    wrap_text,
)
from trialwise.renderers.capabilities import Capabilities, Style, read_capabilities, read_size


@pytest.fixture
def terminal() -> Iterator[TextIO]:
    """A real terminal of 100 columns and 30 rows."""
    master, slave = pty.openpty()
    ioctl(slave, TIOCSWINSZ, pack("HHHH", 30, 100, 0, 0))
    with open(slave, "w", encoding="utf-8") as stream:
        yield stream
    os.close(master)


def log(encoding: str = "utf-8") -> TextIO:
    return io.TextIOWrapper(io.BytesIO(), encoding=encoding)


def test_a_terminal_is_live_coloured_and_as_wide_as_it_is(terminal: TextIO) -> None:
    """Its own size counts, not what a variable once said."""
    found = read_capabilities(terminal, {"TERM": "xterm-256color", "COLUMNS": "40"})

    assert Capabilities(live=True, colour=True, unicode=True, width=100, height=30) == found


@pytest.mark.parametrize(
    ("environ", "live", "colour"),
    [
        ({"TERM": "dumb"}, False, False),
        ({"TERM": "xterm", "CI": "true"}, False, True),
        ({"TERM": "xterm", "CI": "false"}, True, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, True),
        ({"TERM": "xterm", "NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
        ({"TERM": "xterm", "FORCE_COLOR": "0"}, True, False),
    ],
)
def test_the_environment_takes_back_what_a_terminal_offers(
    terminal: TextIO, environ: dict[str, str], live: bool, colour: bool
) -> None:
    """NO_COLOR beats FORCE_COLOR; a dumb terminal and a build's log are not drawn over."""
    found = read_capabilities(terminal, environ)

    assert (live, colour) == (found.live, found.colour)


@pytest.mark.parametrize(
    ("environ", "colour", "width"),
    [
        ({}, False, 80),
        ({"COLUMNS": "120"}, False, 120),
        ({"COLUMNS": "wide"}, False, 80),
        ({"COLUMNS": "0"}, False, 80),
        ({"FORCE_COLOR": "1"}, True, 80),
        ({"TERM": "xterm", "CI": "true"}, False, 80),
    ],
)
def test_a_log_is_plain_and_80_columns_wide(
    environ: dict[str, str], colour: bool, width: int
) -> None:
    """Unless somebody says otherwise."""
    found = read_capabilities(log(), environ)

    assert Capabilities(live=False, colour=colour, unicode=True, width=width) == found


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_stream_that_cannot_encode_the_signs_gets_ascii(encoding: str) -> None:
    """Half of them would be worse than none."""
    assert not read_capabilities(log(encoding), {}).unicode
    assert not read_capabilities(io.StringIO(), {}).unicode


def test_a_closed_stream_can_do_nothing() -> None:
    """Asking it is no error."""
    stream = log()
    stream.close()

    assert not read_capabilities(stream, {}).live
    assert read_size(stream) is None


def test_colour_is_written_only_where_there_is_some() -> None:
    """An empty text needs no style either."""
    assert "PASS" == Capabilities().paint("PASS", Style.GOOD)
    assert "" == Capabilities(colour=True).paint("", Style.GOOD)
    assert "PASS" == Capabilities(colour=True).paint("PASS", None)


# --- Text ---------------------------------------------------------------------------------------

ANYTHING = st.text(max_size=60)


@given(ANYTHING)
def test_nothing_invisible_is_left(text: str) -> None:
    """No control, no change of direction, no lone half of a sign: what is there can be printed."""
    assert all(category(one) not in {"Cc", "Cf", "Cs", "Zl", "Zp"} for one in make_visible(text))
    make_visible(text).encode("utf-8")


@given(ANYTHING)
def test_ascii_is_ascii_whatever_was_written(text: str) -> None:
    """Each sign has a fallback or an escape, so that no two texts become one by loss."""
    shown = spell(text, unicode=False)

    assert shown.isascii()
    assert shown.isprintable()


@pytest.mark.parametrize(
    ("symbol", "fallback"),
    [
        ("p̂", "p-hat"),
        ("π", "pi"),
        ("H₀", "H0"),
        ("H₁", "H1"),
        ("≤", "<="),
        ("≥", ">="),
        ("√", "sqrt"),
        ("≈", "~="),
        ("α", "alpha"),
    ],
)
def test_the_symbols_of_section_10_4_have_their_fallbacks(symbol: str, fallback: str) -> None:
    """As the companion's table gives them."""
    assert fallback == spell(symbol, unicode=False)
    assert symbol == spell(symbol, unicode=True)


@given(ANYTHING, st.integers(1, 30), st.booleans())
def test_shortening_keeps_to_the_width_and_to_both_ends(
    text: str, width: int, unicode: bool
) -> None:
    """A text that fits is left alone; one that does not keeps its beginning and its end."""
    shown = spell(text, unicode=unicode)
    short = shorten(shown, width, unicode=unicode)

    assert count_cells(short) <= width
    assert short == shown or count_cells(shown) > width
    assert count_cells(clip(shown, width)) <= width


@given(ANYTHING, st.integers(2, 30))
def test_wrapping_keeps_every_word_and_the_width(text: str, width: int) -> None:
    """Nothing is lost but the spaces at the breaks."""
    shown = make_visible(text)
    lines = wrap_text(shown, width)

    assert all(count_cells(line) <= width for line in lines)
    assert shown.replace(" ", "") == "".join(lines).replace(" ", "")


def test_signs_are_counted_in_cells() -> None:
    """Wide signs take two, combining ones none."""
    assert 4 == count_cells("日本")
    assert 1 == count_cells("p̂")
    assert "日本  " == pad("日本", 6)
    assert "  98" == pad("98", 4, right=True)
