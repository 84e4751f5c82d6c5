"""Settings that are declared once, on the field of the dataclass that holds them.

    retries: int = setting(Count(0), "Further attempts after an infrastructure error.", default=0)

The suite's key, the JSON Schema, the reference, the options of the command line and of pytest, the
arguments of the marker and the keyword arguments of `tw.run` are derived from the field.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import Enum
from functools import cache
from typing import Any

from trialwise.declarations.quantities import Duration
from trialwise.declarations.scalars import Kind, Scalar, Text
from trialwise.declarations.structures import Either, Key, Listing

_METADATA = "trialwise"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a field says of itself."""

    kind: Kind
    doc: str
    key: str
    """What a suite calls it; empty where it has the name of the field."""
    words: str | None
    """What holds without it, in words; None where the default says it."""
    elsewhere: str
    """What other tools call it."""
    option: str
    """The option of the command line; empty for none."""
    in_pytest: bool
    """Whether the pytest plugin knows it."""


def setting(
    kind: Kind,
    doc: str,
    *,
    default: Any,
    key: str = "",
    words: str | None = None,
    elsewhere: str = "",
    option: str | None = None,
    in_pytest: bool = True,
) -> Any:
    """Return a field of a dataclass that declares a setting.

    Args:
        kind: The kind of value that it holds.
        doc: What it means, as a sentence.
        default: What holds without it.
        key: What a suite calls it, where that is not the name of the field.
        words: What holds without it, where the default does not say it.
        elsewhere: What other tools call it, for a hint.
        option: The name of the option where it is not that of the key; empty for no option.
        in_pytest: Whether the pytest plugin knows it.
    """
    declared = Setting(
        kind=kind,
        doc=doc,
        key=key,
        words=words,
        elsewhere=elsewhere,
        option="*" if option is None else option,
        in_pytest=in_pytest,
    )
    return field(default=default, metadata={_METADATA: declared})


def settings_of(owner: type) -> dict[str, Setting]:
    """Return the settings of a dataclass, by field."""
    return {one.name: one.metadata[_METADATA] for one in fields(owner) if _METADATA in one.metadata}


@cache
def setting_keys(owner: type) -> tuple[Key, ...]:
    """Return the settings of a dataclass as keys of a suite."""
    found: list[Key] = []
    for one in fields(owner):
        declared = one.metadata.get(_METADATA)
        if declared is not None:
            words = declared.words
            found.append(
                Key(
                    declared.key or one.name,
                    declared.kind,
                    declared.doc,
                    default=show_default(one.default, declared.kind) if words is None else words,
                    elsewhere=declared.elsewhere,
                    field=one.name,
                    fallback=one.default,
                )
            )
    return tuple(found)


def show_default(value: object, kind: Kind) -> str:
    """Return a default as the reference shows it; None says that there is nothing to show."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Enum):
        return str(value.value).lower()
    if not isinstance(value, str | int | float):
        return ""  # nothing, or an object that the declaration puts into words
    if isinstance(kind, Duration):
        return f"{value:g}s"
    if kind.spelled == "rate" and isinstance(value, float):
        return f"{value * 100:g}%"
    return f"{value:g}" if isinstance(value, float) else str(value)


def convert_python(kind: Kind, value: Any) -> Any:
    """Return what a text such as "90%" means; every other value is left for the model to check."""
    if not isinstance(value, str) or not isinstance(kind, Scalar):
        return value
    converted = kind.convert(value)
    return value if converted is None else converted


class Names(Either):
    """One name or several."""

    def __init__(self) -> None:
        listing = Listing(Text(), "a list of texts")
        super().__init__("a name or a list of names", scalar=Text(), listing=listing)

    def finish(self, value: Any, node: Any, label: str, reader: Any) -> tuple[str, ...]:  # noqa: ARG002
        """Return the names."""
        return (value,) if isinstance(value, str) else tuple(value)
