"""The options of a command line that settings declare, which `tools.stubs` writes as plain rows.

What offers options must load quickly, so it reads the rows and none of the declarations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trialwise.declarations.scalars import Choice, Count, Kind, Scalar, Text, Whole
from trialwise.declarations.signatures import Names, describe_settings, settings_of
from trialwise.declarations.structures import Either


@dataclass(frozen=True, slots=True)
class OptionRow:
    """An option of a command line, in plain values."""

    name: str
    """Such as `max-trials`."""
    target: str
    """The field that it sets, such as `max_trials` or `budget.usd`."""
    kind: str
    """The name of the kind, or the choices with `|` between them."""
    doc: str
    in_pytest: bool


def option_rows(owner: type, prefix: str = "") -> Iterator[OptionRow]:
    """Yield the options that the settings of a dataclass declare.

    Args:
        owner: The dataclass.
        prefix: The field that holds it, with a dot, where it is part of another one.
    """
    described = describe_settings(owner)
    for name, one in settings_of(owner).items():
        kind = _option_kind(one.kind)
        if one.option and kind:
            option = (one.key or name) if one.option == "*" else one.option
            yield OptionRow(
                option.replace("_", "-"), prefix + name, kind, described[name], one.in_pytest
            )


def _option_kind(kind: Kind) -> str:
    """Return the name of a kind that one word of a command line can hold."""
    if isinstance(kind, Choice):
        return "|".join(kind.words)
    if isinstance(kind, Names):
        return "names"
    if isinstance(kind, Either) and isinstance(kind.kinds[0], Count | Text):
        return kind.kinds[0].spelled
    if isinstance(kind, Text):
        return "text"
    return kind.spelled if isinstance(kind, Scalar | Whole) and kind.spelled != "flag" else ""
