"""Whatever bytes a reader is given: a value or a sentence, and never another exception."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fuzz.json_mutations import mutate_json
from tests.fuzz.reader_targets import TARGETS, Target

NAMES = tuple(TARGETS)
FUZZ = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@cache
def list_seeds(name: str) -> tuple[bytes, ...]:
    """The same ones each time, also where they hold a time."""
    return tuple(TARGETS[name].seeds())


@pytest.mark.parametrize("name", NAMES)
def test_the_seeds_are_read(name: str) -> None:
    """Otherwise changes to them would not reach far."""
    assert list_seeds(name)
    assert all(map(TARGETS[name], list_seeds(name)))


HOSTILE = {
    "nothing": b"",
    "lists": b"[" * 50_000,
    "objects": b'{"a":' * 50_000,
    "closed lists": b"[" * 5_000 + b"]" * 5_000,
    "parentheses": b"(" * 5_000 + b"1" + b")" * 5_000,
    "elements": b"<a>" * 50_000,
    "entities": b'<!DOCTYPE a [<!ENTITY b "cc"><!ENTITY d "&b;&b;&b;&b;">]><a>&d;</a>',
    "aliases": b"a: &a [x, x]\n" + b"".join(b"a%d: &a [*a, *a]\n" % n for n in range(40)),
    "digits": b"9" * 50_000,
    "exponent": b"1e999999999",
    "minus signs": b"-" * 50_000,
    "quotes": b'"' * 50_001,
    "line ends": b"\n" * 50_000,
    "zeros": bytes(50_000),
    "half a pair": b'"\\ud800"',
    "wrong utf-8": b"\xff\xfe\xed\xa0\x80",
    "byte order mark": b"\xef\xbb\xbf{}",
    "archive": b"PK\x03\x04" + b"\xff" * 200,
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("name", NAMES)
def test_hostile_bytes(name: str, content: bytes) -> None:
    """Nesting, repetition and numbers without end, for each format that the first byte chooses."""
    for first in (b"", b"\x00", b"\x01", b"\x02", b"\x03", b"\x04"):
        TARGETS[name](first + content)


@pytest.mark.parametrize("name", NAMES)
@FUZZ
@given(data=st.data())
def test_any_bytes(name: str, data: st.DataObject) -> None:
    """Bytes, and texts made of the words of the format."""
    target = TARGETS[name]
    words = st.lists(st.sampled_from(target.words or ("a",)), max_size=25)
    spelled = words.map(lambda some: "".join(some).encode("utf-8", "surrogatepass"))
    content = data.draw(st.binary(max_size=80) | spelled)
    first = data.draw(st.binary(max_size=1))
    target(first + content)


@pytest.mark.parametrize("name", NAMES)
@FUZZ
@given(data=st.data())
def test_seeds_with_any_change(name: str, data: st.DataObject) -> None:
    """A piece cut out, doubled or replaced; or one value of the JSON."""
    target = TARGETS[name]
    content = data.draw(st.sampled_from(list_seeds(name)))
    for _ in range(data.draw(st.integers(1, 3))):
        content = _change(target, content, data)
    target(content)


def _change(target: Target, content: bytes, data: st.DataObject) -> bytes:
    if data.draw(st.booleans()):
        changed = mutate_json(content, Random(data.draw(st.integers(0, 2**32))))
        if changed is not None:
            return changed
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, min(len(content), start + 30)))
    word = st.sampled_from(target.words or ("a",))
    piece = data.draw(
        st.one_of(
            st.just(b""),
            word.map(lambda one: one.encode("utf-8", "surrogatepass")),
            st.binary(max_size=4),
            st.just(content[start:end] * 2),
        )
    )
    return content[:start] + piece + content[end:]
