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
