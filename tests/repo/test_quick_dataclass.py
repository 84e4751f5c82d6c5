"""The quick decorator makes what Python's own does: every class is made both ways and compared."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import field
from typing import Any

import pytest

from trialwise import quick_dataclass

#: Python's own is the quick one since 3.13, so that the comparison holds there by itself.
MAKERS = (dataclasses.dataclass, quick_dataclass.dataclass)


def _make(maker: Callable[..., Any], **settings: bool) -> Any:
    class Point:
        """A class with every kind of field."""

        x: int
        label: str = "here"
        _: dataclasses.KW_ONLY
        tags: list[str] = field(default_factory=list, compare=False)
        secret: str = field(default="", repr=False)
        weight: float = field(default=1.0, hash=False)

        def __post_init__(self) -> None:
            if self.x < 0:
                raise ValueError("x must be at least 0")

    return maker(**settings)(Point)


SETTINGS: list[dict[str, bool]] = [
    {},
    {"frozen": True},
    {"slots": True},
    {"frozen": True, "slots": True},
    {"slots": True, "unsafe_hash": True},
    {"frozen": True, "slots": True, "kw_only": True},
    {"frozen": True, "repr": False},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_both_decorators_make_the_same_class(settings: dict[str, bool]) -> None:
    own, quick = (_make(maker, **settings) for maker in MAKERS)
    one, other = own(x=1, tags=["a"]), quick(x=1, tags=["a"])

    assert str(inspect.signature(own)) == str(inspect.signature(quick))
    assert own.__init__.__annotations__ == quick.__init__.__annotations__
    assert own.__match_args__ == quick.__match_args__
    assert ("__dict__" in dir(one)) is ("__dict__" in dir(other))
    assert dataclasses.asdict(one) == dataclasses.asdict(other)
    assert own.__dataclass_params__.frozen is quick.__dataclass_params__.frozen
    if "repr" not in settings:
        assert repr(one) == repr(other)
    assert other == quick(x=1, tags=["b"])
    assert other != quick(x=2)
    assert other != one
    assert (own.__hash__ is None) is (quick.__hash__ is None)
    if own.__hash__ is not None:
        assert hash(one) == hash(other) == hash(quick(x=1, weight=2.0))
    assert dataclasses.replace(other, x=5).x == 5
    assert copy.deepcopy(other) == other
    assert other.tags is not quick(x=1).tags
    with pytest.raises(ValueError, match="at least 0"):
        quick(x=-1)
    with pytest.raises(TypeError):
        quick()


@pytest.mark.parametrize("settings", [{"frozen": True}, {"frozen": True, "slots": True}], ids=str)
def test_a_frozen_class_refuses_changes(settings: dict[str, bool]) -> None:
    messages = []
    for maker in MAKERS:
        made = _make(maker, **settings)(x=1)
        with pytest.raises(dataclasses.FrozenInstanceError) as setting:
            made.x = 2
        with pytest.raises(dataclasses.FrozenInstanceError) as deleting:
            del made.x
        messages.append((str(setting.value), str(deleting.value)))

    assert messages[0] == messages[1]


def test_what_a_class_defines_itself_stays() -> None:
    @quick_dataclass.dataclass(frozen=True, slots=True)
    class Named:
        """A class with methods of its own."""

        name: str

        def __repr__(self) -> str:
            return f"<{self.name}>"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Named)

        def __hash__(self) -> int:
            return 7

    assert repr(Named("a")) == "<a>"
    assert Named("a") == Named("b")
    assert hash(Named("a")) == 7


def test_a_subclass_has_the_fields_of_its_base() -> None:
    @quick_dataclass.dataclass(frozen=True, slots=True)
    class Base:
        """A base."""

        x: int

    @quick_dataclass.dataclass(frozen=True, slots=True)
    class Wider(Base):
        """A class with one more field."""

        y: int = 2

    assert repr(Wider(1)).endswith("Wider(x=1, y=2)")
    with pytest.raises(dataclasses.FrozenInstanceError):
        Wider(1).x = 3  # type: ignore[misc]


@pytest.mark.parametrize("settings", [{"frozen": True}, {"frozen": True, "slots": True}, {}])
def test_a_subclass_is_the_same_both_ways(settings: dict[str, bool]) -> None:
    shown = []
    for maker in MAKERS:
        base = _make(maker, **settings)
        fields = {"__annotations__": {"y": "int"}, "y": 2, "__module__": __name__}
        plain: Any = type("Wider", (base,), fields)
        wider: Any = maker(**settings)(plain)
        made, same = wider(1, tags=["a"]), wider(1, y=2)
        assert made == same != wider(1, y=3)
        assert made != base(1)
        hashes = wider.__hash__ is not None and hash(made) == hash(same)
        shown.append((str(inspect.signature(wider)), repr(made), wider.__match_args__, hashes))
        with pytest.raises(ValueError, match="at least 0"):
            wider(-1)
        with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
            wider(1, z=2)

    assert shown[0] == shown[1]


@quick_dataclass.dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A class that can be found again by its name."""

    name: str
    inner: Kept | None = None


def test_it_goes_through_a_pickle() -> None:
    kept = Kept(name="a", inner=Kept(name="b"))

    assert pickle.loads(pickle.dumps(kept)) == kept
