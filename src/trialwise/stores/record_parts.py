"""Parts of a stored file as the values they were: a plan, a verdict, a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from trialwise.errors import InvalidArgument
from trialwise.model.codec import from_plain
from trialwise.procedures.registry import load_procedures
from trialwise.stores._files import StoreUnusable

T = TypeVar("T")


def _name_procedures(data: Any) -> Iterator[str]:
    """Name the procedures of a plan, or of a verdict's; nothing of what is neither."""
    plan = data.get("plan", data) if isinstance(data, dict) else None
    criteria = plan.get("criteria") if isinstance(plan, dict) else None
    for one in criteria if isinstance(criteria, list) else ():
        if isinstance(one, dict) and isinstance(one.get("procedure"), str):
            yield one["procedure"]


def read_part(path: Path, cls: type[T], data: Any) -> T:
    """Read a part of a file, with the procedures loaded that its plan names.

    Args:
        path: The file, for the message.
        cls: What the part is.
        data: The part as plain values.

    Raises:
        StoreUnusable: It is something else.
    """
    try:
        load_procedures(_name_procedures(data))
        return from_plain(cls, data)
    except InvalidArgument as error:
        raise StoreUnusable(path, "read it", f"{error}.") from None
