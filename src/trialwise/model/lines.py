"""One record, one line: a JSON object that carries a checksum of itself.

Below whoever writes files, because recordings and journals are kept in the same form: text that
people and tools read as JSON, of which a torn, altered, lost or repeated line is known as such.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any
from zlib import crc32

from trialwise.errors import InvalidArgument

#: The last key of every line; a record may not use it.
CHECKSUM = "checksum"
_SEAL = b'"checksum":"%08x"}'
_SEAL_LENGTH = len(_SEAL % 0)
_LINE = b"%b" + _SEAL + b"\n"
#: Python refuses to read back a number of more than 4,300 digits.
LARGEST = 1 << 14_000


def encode_line(record: Mapping[str, Any], *, number: int = 0) -> bytes:
    """Encode the line of one record.

    Args:
        record: Plain values under text keys; see `unplain`.
        number: Its place in the file, from 0, where lines have one: the checksum covers it, so
            that a line which is lost, repeated or moved is damage.

    >>> encode_line({"i": 0, "ok": "1"})
    b'{"i":0,"ok":"1","checksum":"0c8962e8"}\\n'
    """
    return seal(spell_record(record).encode("ascii"), number)


def spell_record(record: Mapping[str, Any]) -> str:
    """Return the text of a record, which does not use the key of the checksum."""
    plain = record if type(record) is dict else dict(record)
    if CHECKSUM in plain:
        raise InvalidArgument("record", sorted(plain), f"leave the key {CHECKSUM!r} to the line")
    return encode_record(plain)


def encode_record(record: dict[str, Any]) -> str:
    """Return a record as compact JSON in ASCII."""
    return _encoder()(record)


def seal(text: bytes, number: int = 0) -> bytes:
    """Return the line of a record already spelled as the text of a JSON object."""
    body = text[:-1] + b"," if len(text) > len("{}") else text[:-1]
    return _LINE % (body, crc32(body, number))


def is_whole(line: bytes, *, number: int = 0) -> bool:
    """Return whether a line, without its end, is what was written in that place."""
    body = line[:-_SEAL_LENGTH]
    return body[:1] == b"{" and line[-_SEAL_LENGTH:] == _SEAL % crc32(body, number)


def parse_lines(lines: Sequence[bytes]) -> list[dict[str, Any]]:
    """Parse the records of whole lines.

    Raises:
        ValueError: A line holds something else than one record, although its checksum fits.

    >>> parse_lines([encode_line({"i": 0}).rstrip()])
    [{'i': 0}]
    """
    import json

    # One text for the decoder: called once a line it takes half as long again.
    text = b",".join(lines).decode(errors="surrogatepass")
    try:
        records: list[dict[str, Any]] = json.loads(f"[{text}]")
        for record in records:
            del record[CHECKSUM]
    except (RecursionError, LookupError, TypeError) as error:
        raise ValueError(f"a line holds no record ({type(error).__name__})") from None
    if len(records) != len(lines):
        raise ValueError("a line holds several records")
    return records


class LineScan:
    """Reads a file of numbered lines piece by piece, so that a file of any size takes little room.

    Only what follows the last newline may be torn: a line is written in one piece, its end last.

    >>> content = encode_line({"i": 0}, number=0) + encode_line({"i": 1}, number=1)
    >>> found = LineScan([content[:9], content[9:-1]])
    >>> sum(map(len, found)), found.damaged
    (1, None)

    Args:
        pieces: The content of the file, cut anywhere.
    """

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self.count = 0
        """The number of whole lines found so far."""
        self.size = 0
        """The number of bytes of the whole lines. A torn line may follow them."""
        self.damaged: int | None = None
        """The number of the first whole line, counted from 1, whose checksum is wrong."""
        self.torn = 0
        """The number of bytes of a last line that has no newline."""

    def __iter__(self) -> Iterator[Sequence[bytes]]:
        """Yield whole lines, without their ends, some at a time."""
        tail = b""
        for piece in self._pieces:
            *lines, tail = (tail + piece).split(b"\n")
            first = self.count
            bad = next((n for n, x in enumerate(lines) if not is_whole(x, number=first + n)), None)
            whole = lines if bad is None else lines[:bad]
            self.count += len(whole)
            self.size += sum(map(len, whole)) + len(whole)
            yield whole
            if bad is not None:
                self.damaged = self.count + 1
                return
        self.torn = len(tail)

    def read_through(self) -> LineScan:
        """Look at every line and keep none."""
        for _ in self:
            pass
        return self


@cache
def _encoder() -> Callable[[object], str]:
    # ASCII, so that no text breaks a line or its encoding.
    return make_encoder(ensure_ascii=True, separators=(",", ":"))


def make_encoder(*, ensure_ascii: bool, separators: tuple[str, str]) -> Callable[[object], str]:
    """Return what encodes values as JSON on one line.

    Made once and kept: `json` makes one for every value, which costs as much as encoding a trial.
    Looking for cycles costs a little, and one is a RecursionError anyway.

    >>> make_encoder(ensure_ascii=False, separators=(", ", ": "))({"a": [1, None]})
    '{"a": [1, null]}'

    Args:
        ensure_ascii: Whether other characters are escaped.
        separators: What stands between items, and after a key.
    """
    from json import JSONEncoder, encoder

    plain = JSONEncoder(
        separators=separators, ensure_ascii=ensure_ascii, allow_nan=False, check_circular=False
    )
    make: Any = getattr(encoder, "c_make_encoder", None)
    if make is None:
        return plain.encode
    # Its inner part, which `encode` makes anew for every object.
    text = encoder.encode_basestring_ascii if ensure_ascii else encoder.encode_basestring
    between, after_key = separators
    pieces = make(None, plain.default, text, None, after_key, between, False, False, False)
    return lambda value: "".join(pieces(value, 0))


def unplain(value: Any, place: str = "") -> tuple[str, str] | None:
    """Return where JSON would lose or change a value, and what is there; None if nowhere.

    >>> unplain({"a": [1, (2, 3)]}, "input")
    ("input['a'][1]", 'a tuple')
    """
    try:
        found = _unplain(value)
    except RecursionError:
        return place, "nested too deeply or within itself"
    return found and (place + found[0], found[1])


def _unplain(value: Any) -> tuple[str, str] | None:
    # Loops and not generators: one frame a level, so that what JSON can nest is not refused here.
    if isinstance(value, list):
        for index, item in enumerate(value):
            if found := _unplain(item):
                return f"[{index}]{found[0]}", found[1]
        return None
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                return "", f"a dict with the key {key!r}"
            if found := _unplain(item):
                return f"[{key!r}]{found[0]}", found[1]
        return None
    what = _unplain_leaf(value)
    return None if what is None else ("", what)


def _unplain_leaf(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return None
    if isinstance(value, int):
        return None if -LARGEST < value < LARGEST else "a number of thousands of digits"
    if isinstance(value, float):
        return None if math.isfinite(value) else f"{value}"
    return f"a {type(value).__name__}"
