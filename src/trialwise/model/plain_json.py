"""Values as plain JSON, and one record in a line that carries a checksum of itself.

Below whoever writes files, because recordings and journals are kept in the same form: text that
people and tools read as JSON, of which a torn, altered, lost or repeated line is known as such.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import repeat
from math import isfinite
from operator import index
from reprlib import Repr
from types import NoneType
from typing import Any, NamedTuple, SupportsIndex
from zlib import crc32

from trialwise.errors import InvalidArgument
from trialwise.stats.result_types import Undefined

#: The last key of every line; a record may not use it.
CHECKSUM = "checksum"
_SEAL = b'"checksum":"%08x"}'
_SEAL_LENGTH = len(_SEAL % 0)
_LINE = b"%b" + _SEAL + b"\n"
#: Python refuses to read back a number of more than 4,300 digits.
LARGEST = 1 << 14_000


def spell_record(record: Mapping[str, Any]) -> str:
    """Return a record as compact JSON in ASCII, so that no text breaks a line or its encoding.

    Args:
        record: Plain values under text keys; see `unplain`. The key of the checksum is not free.

    >>> spell_record({"i": 0, "ok": "1"})
    '{"i":0,"ok":"1"}'
    """
    if CHECKSUM in record:
        raise InvalidArgument("record", sorted(record), f"leave the key {CHECKSUM!r} to the line")
    return _ENCODE(record if type(record) is dict else dict(record))


def seal(text: bytes, number: int = 0) -> bytes:
    """Return the line of a record that is spelled as the text of a JSON object.

    Args:
        text: What `spell_record` spelled.
        number: Its place in the file, from 0, where lines have one: the checksum covers it, so
            that a line which is lost, repeated or moved is damage.

    >>> seal(b'{"i":0,"ok":"1"}')
    b'{"i":0,"ok":"1","checksum":"0c8962e8"}\\n'
    """
    # A CRC finds every damage that spans up to 32 bits, and takes little of a trial's time. It is
    # there for accidents: whoever wants to forge a line can compute it, too.
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

    >>> parse_lines([seal(b'{"i":0}').rstrip()])
    [{'i': 0}]
    """
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

    >>> content = seal(b'{"i":0}', 0) + seal(b'{"i":1}', 1)
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


def make_encoder(*, ensure_ascii: bool, separators: tuple[str, str]) -> Callable[[object], str]:
    """Return what encodes values as JSON on one line; made once and kept, which is quicker.

    >>> make_encoder(ensure_ascii=False, separators=(", ", ": "))({"a": [1, None]})
    '{"a": [1, null]}'

    Args:
        ensure_ascii: Whether other characters are escaped.
        separators: What stands between items, and after a key.
    """
    # Looking for cycles costs a little, and one is a RecursionError anyway.
    return json.JSONEncoder(
        separators=separators, ensure_ascii=ensure_ascii, allow_nan=False, check_circular=False
    ).encode


_ENCODE = make_encoder(ensure_ascii=True, separators=(",", ":"))


def unplain(value: Any) -> tuple[str, str] | None:
    """Return where JSON would lose or change a value, and what is there; None if nowhere.

    >>> unplain({"a": [1, (2, 3)]})
    ("['a'][1]", 'a tuple')
    """
    try:
        return _find_unplain(value)
    except RecursionError:
        return "", "nested too deeply or within itself"


def _find_unplain(value: Any) -> tuple[str, str] | None:
    # Loops and not generators: one frame a level, so that what JSON can nest is not refused here.
    if isinstance(value, list | dict):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            if not isinstance(key, str) and isinstance(value, dict):
                return "", f"a dict with the key {key!r}"
            if found := _find_unplain(item):
                return f"[{key!r}]{found[0]}", found[1]
        return None
    is_plain, what = value is None or isinstance(value, str), f"a {type(value).__name__}"
    if isinstance(value, int):
        is_plain, what = -LARGEST < value < LARGEST, "a number of thousands of digits"
    elif isinstance(value, float):
        # JSON has neither, and Python's spelling of them is refused by other readers.
        is_plain, what = math.isfinite(value), str(value)
    return None if is_plain else ("", what)


# How single values, lists and mappings are spelled in JSON: the ground that `codec` builds on.
#
# A form checks in both directions, so that what cannot be read back is never written.

#: The key under which an undefined quantity gives its reason.
UNDEFINED = "undefined"


class Misfit(Exception):
    """A part that does not fit its type; the place is put together on the way out."""

    def __init__(self, value: object, allowed: str, at: str = "") -> None:
        super().__init__(allowed)
        self.value = value
        self.allowed = allowed
        self.steps = [at]

    def refusal(self, cls: type) -> InvalidArgument:
        """Return the error for the caller who asked for a value of this class."""
        root = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        place = root + "".join(reversed(self.steps))
        return InvalidArgument(place, excerpt(self.value), self.allowed)


class _Excerpt(str):
    """A text that is shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 60


def excerpt(value: object) -> str:
    """Return a value's `repr`, cut: a message does not hold a whole record."""
    return _Excerpt(_SHORT.repr(value))


class Form(NamedTuple):
    """How one declared type is spelled."""

    kinds: frozenset[type]
    """The JSON types it is spelled by."""
    holds: Callable[[type], bool]
    """Whether a value of this class is one of it."""
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


# --- Single values ----------------------------------------------------------------------------


def _whole(value: Any) -> int:
    if type(value) is int:
        whole = value
    elif isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise Misfit(value, "be a whole number")
    else:
        whole = index(value)
    if not -LARGEST < whole < LARGEST:
        raise Misfit("a number of thousands of digits", "be a whole number that Python reads back")
    return whole


def _number(value: Any) -> float:
    if type(value) is float and isfinite(value):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        # It stays whole: 1 and 1.0 are equal, and the text says which was given.
        return _whole(value)
    if not isinstance(value, float) or not isfinite(value):
        raise Misfit(value, "be a finite number")
    return float(value)


def _anything(value: Any) -> Any:
    found = unplain(value)
    if found is not None:
        raise Misfit(value, f"be plain JSON: this is {found[1]}", found[0])
    return value


def _read_moment(plain: Any) -> datetime:
    try:
        return datetime.fromisoformat(plain)
    except (TypeError, ValueError):
        raise Misfit(plain, "be a date and time such as 2026-11-15T06:25:24+00:00") from None


def _read_undefined(plain: Any) -> Undefined:
    if not isinstance(plain, dict) or list(plain) != [UNDEFINED]:
        raise Misfit(plain, f"be undefined: {{{UNDEFINED!r}: reason}}")
    return Undefined(SINGLE[str].decode(plain[UNDEFINED]))


def _check(kind: Any, allowed: str, convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return what converts a value of one class, and refuses every other."""

    def checked(value: Any) -> Any:
        if type(value) is convert:  # nearly always, and a record has a million parts
            return value
        if not isinstance(value, kind):
            raise Misfit(value, allowed)
        return convert(value)

    return checked


def _plain(kind: Any, allowed: str) -> Form:
    """Return the form of what JSON has, too; the text of an enumeration becomes a plain one."""
    return _single(kind, _check(kind, allowed, kind))


def _single(
    kind: type,
    encode: Callable[[Any], Any],
    *plain: type,
    decode: Callable[[Any], Any] | None = None,
) -> Form:
    return Form(
        frozenset(plain or {kind}), lambda cls: issubclass(cls, kind), encode, decode or encode
    )


SINGLE: dict[Any, Form] = {
    bool: _plain(bool, "be true or false"),
    int: _single(int, _whole),
    SupportsIndex: _single(SupportsIndex, _whole, int),
    float: Form(
        frozenset({int, float}),
        lambda cls: issubclass(cls, int | float) and not issubclass(cls, bool),
        _number,
        _number,
    ),
    str: _plain(str, "be a text"),
    NoneType: _plain(NoneType, "be null"),
    datetime: _single(
        datetime,
        _check(datetime, "be a date and time", datetime.isoformat),
        str,
        decode=_read_moment,
    ),
    Undefined: _single(
        Undefined,
        _check(Undefined, "be undefined", lambda value: {UNDEFINED: value.reason}),
        dict,
        decode=_read_undefined,
    ),
    Any: _single(object, _anything, NoneType, bool, int, float, str, list, dict),
}


def choice(choices: Mapping[Any, Any]) -> Form:
    """Return a closed set; `choices` gives the plain value of each member."""
    allowed = f"be one of {', '.join(map(repr, choices.values()))}"
    meant = {plain: value for value, plain in choices.items()}

    def choose(one: Any, among: Mapping[Any, Any]) -> Any:
        try:
            return among[one]
        except (KeyError, TypeError):
            raise Misfit(one, allowed) from None

    types = frozenset(map(type, (*choices, *meant)))
    return Form(
        kinds=frozenset(map(type, meant)),
        holds=types.__contains__,
        encode=lambda value: choose(value, choices),
        decode=lambda plain: choose(plain, meant),
    )


# --- Several values ---------------------------------------------------------------------------


def sequence_of(made: type[Any], *items: Form, is_fixed: bool = False) -> Form:
    """Return the form of a tuple or a frozenset, which JSON spells as a list.

    Args:
        made: The class.
        items: The form of its items, or of each item where their number is fixed.
        is_fixed: Whether there are as many values as forms.
    """
    size = f" of {len(items)}" if is_fixed else ""

    def convert(values: Any, kind: Any, converters: Iterable[Callable[[Any], Any]]) -> list[Any]:
        if not isinstance(values, kind) or (is_fixed and len(values) != len(items)):
            raise Misfit(values, f"be a {kind.__name__}{size}")
        done: list[Any] = []
        try:
            for value, one in zip(values, converters, strict=False):
                done.append(one(value))
        except Misfit as misfit:
            misfit.steps.append(f"[{len(done)}]")
            raise
        return done

    encoders, decoders = [one.encode for one in items], [one.decode for one in items]

    def encode(value: Any) -> list[Any]:
        plain = convert(value, made, encoders if is_fixed else repeat(encoders[0]))
        # A set has no order of its own, and the same set must give the same text.
        return plain if made is tuple else sorted(plain)

    def decode(plain: Any) -> Any:
        return made(convert(plain, list, decoders if is_fixed else repeat(decoders[0])))

    return Form(frozenset({list}), lambda cls: issubclass(cls, made), encode, decode)


def mapping_of(item: Form) -> Form:
    """Return the form of one kind of value under text keys."""

    def convert(values: Any, each: Callable[[Any], Any]) -> dict[str, Any]:
        if not isinstance(values, Mapping):
            raise Misfit(values, "be a mapping")
        done: dict[str, Any] = {}
        name: Any = None
        try:
            for name, value in values.items():
                done[SINGLE[str].encode(name)] = each(value)
        except Misfit as misfit:
            misfit.steps.append(f"[{name!r}]")
            raise
        return done

    return Form(
        frozenset({dict}),
        lambda cls: issubclass(cls, Mapping),
        lambda value: convert(value, item.encode),
        lambda plain: convert(plain, item.decode),
    )
