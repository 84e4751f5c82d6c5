"""Lines under a checksum: what is not as it was written is known as such."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.errors import InvalidArgument
from trialwise.model.plain_json import LineScan, is_whole, parse_lines, seal, spell_record, unplain


def encode_line(record: Mapping[str, Any], *, number: int = 0) -> bytes:
    """Spell and seal a record, as a journal does."""
    return seal(spell_record(record).encode("ascii"), number)


RECORDS = st.dictionaries(st.text(max_size=5), st.integers() | st.text() | st.none(), max_size=4)


@given(record=RECORDS, number=st.integers(0, 2**31))
def test_a_line_is_one_line_of_json_that_ends_with_its_checksum(
    record: dict[str, Any], number: int
) -> None:
    """Any tool reads it; the checksum is CRC-32 of the rest, started at the line's number."""
    line = encode_line(record, number=number)
    body, _, mark = line.decode("ascii").rpartition('"checksum":')

    assert 1 == line.count(b"\n")
    assert {**record, "checksum": f"{crc32(body.encode(), number):08x}"} == json.loads(line)
    assert [record] == parse_lines([line.rstrip(b"\n")])
    assert '"}\n' == mark[-3:]


@given(record=RECORDS, number=st.integers(0, 99), other=st.integers(0, 99))
def test_a_line_in_another_place_is_not_whole(
    record: dict[str, Any], number: int, other: int
) -> None:
    """So that a line moved, lost or repeated is damage."""
    line = encode_line(record, number=number).rstrip(b"\n")

    assert (number == other) is is_whole(line, number=other)


@given(record=RECORDS, data=st.data())
def test_a_changed_byte_is_noticed(record: dict[str, Any], data: st.DataObject) -> None:
    """Wherever it stands: CRC-32 detects every error of up to 32 bits in a row."""
    line = bytearray(encode_line(record).rstrip(b"\n"))
    at = data.draw(st.integers(0, len(line) - 1))
    line[at] ^= data.draw(st.integers(1, 255))

    assert not is_whole(bytes(line))


@pytest.mark.parametrize("line", [b"", b"}", b"{}", b'"checksum":"00000000"}', b"\x00" * 40])
def test_what_was_never_a_line_is_not_whole(line: bytes) -> None:
    """An empty line and the zeros a power cut leaves included."""
    assert not is_whole(line)


@given(records=st.lists(RECORDS, max_size=4), data=st.data())
def test_a_file_cut_anywhere_keeps_its_whole_lines(records: list[Any], data: st.DataObject) -> None:
    """And nothing of the line that was cut, whatever the size of the pieces it is read in."""
    whole = b"".join(encode_line(one, number=n) for n, one in enumerate(records))
    content = whole[: data.draw(st.integers(0, len(whole)))]
    found = LineScan(_cut(content, data.draw(st.integers(1, len(whole) + 1))))
    lines = [line for some in found for line in some]

    assert records[: content.count(b"\n")] == parse_lines(lines)
    assert (content.rfind(b"\n") + 1, len(lines)) == (found.size, found.count)
    assert found.damaged is None


def _cut(content: bytes, size: int) -> list[bytes]:
    return [content[start : start + size] for start in range(0, len(content), size)]


def test_only_a_last_line_without_its_end_is_torn() -> None:
    """A line is written in one piece, its end last: one that has its end was whole."""
    first, second = encode_line({"a": 1}, number=0), encode_line({"b": 2}, number=1)

    for size in range(1, len(first + second) + 3):

        def scan(content: bytes, size: int = size) -> LineScan:
            found = LineScan(_cut(content, size))
            assert [*found] or not content
            return found

        torn = scan(first + second[:-1])
        assert (torn.size, torn.damaged, torn.torn) == (len(first), None, len(second) - 1)
        assert scan(first + b"\x00\n").damaged == 2
        assert scan(b"\x00\n" + second).damaged == 1


def test_a_file_is_read_no_further_than_its_lines_are_wanted() -> None:
    """So that a journal of a million lines is never held as a whole."""
    lines = [encode_line({"i": n}, number=n) for n in range(100)]
    taken: list[int] = []

    def pieces() -> Iterator[bytes]:
        for number, line in enumerate(lines):
            taken.append(number)
            yield line

    found = iter(LineScan(pieces()))

    assert [{"i": 0}] == parse_lines(next(found))
    assert [0] == taken


def test_a_record_leaves_the_checksum_to_the_line() -> None:
    """A key of that name would be lost; any mapping will do otherwise."""
    with pytest.raises(InvalidArgument, match="leave the key 'checksum' to the line"):
        encode_line({"checksum": "mine"})
    assert encode_line({"a": 1}) == encode_line(MappingProxyType({"a": 1})) == seal(b'{"a":1}')


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"a": [1, 2.5, None, True, "x"]}, None),
        ((1, 2), ("", "a tuple")),
        ({"a": [0, {"b": {1}}]}, ("['a'][1]['b']", "a set")),
        ({None: 1}, ("", "a dict with the key None")),
        ([[float("inf")]], ("[0][0]", "inf")),
    ],
)
def test_what_json_would_change_is_found(value: Any, found: tuple[str, str] | None) -> None:
    """With the place where it stands."""
    assert found == unplain(value)


def test_what_json_can_nest_is_plain() -> None:
    """As deep as its own reader goes; what holds itself is found."""
    deep: list[Any] = []
    for _ in range(500):
        deep = [deep]
    itself: list[Any] = []
    itself.append(itself)

    assert deep == json.loads(json.dumps(deep))
    assert unplain(deep) is None
    assert ("", "nested too deeply or within itself") == unplain(itself)
