"""How a service that was registered in code is called with an input of an imported suite."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["FileInput", "arguments"]

_MAX_BYTES = 5_000_000


@dataclass(frozen=True, slots=True)
class FileInput:
    """A file among the inputs."""

    path: Path
    kind: str
    data: bytes
    content_hash: str


def arguments(given: Any, folder: Path) -> list[Any]:
    """The arguments that an input stands for: one, or one for each item of a list.

    Args:
        given: The input.
        folder: Where its files are.

    >>> arguments(["tok-visa", 2500], Path())
    ['tok-visa', 2500]
    >>> arguments("Alice", Path())
    ['Alice']
    """
    if isinstance(given, list):
        return [_part(one, folder) for one in given]
    if isinstance(given, dict) and set(given) == {"parts"}:
        return [[_part(one, folder) for one in given["parts"]]]
    return [_part(given, folder)]


def _part(given: Any, folder: Path) -> Any:
    if not isinstance(given, dict) or "sha256" not in given:
        return given
    from trialwise.regular_files import read_bytes

    (kind,) = set(given) - {"sha256"}
    path = folder / given[kind]
    data = read_bytes(path, limit=_MAX_BYTES)
    found = hashlib.sha256(data).hexdigest()
    if found != given["sha256"]:
        # Another content is another input, whatever its name.
        raise ValueError(f"{path} is not the file that was imported")
    return FileInput(path, kind, data, found)
