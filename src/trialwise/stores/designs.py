"""Sequential designs on disk: found once, never searched for again."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from trialwise.regular_files import read_regular
from trialwise.stores._files import replace_file


class FileDesignCache:
    """A folder with one small JSON file per design.

    A file is written beside its place and moved there, so that a reader never sees half of one
    and two runs that find the same design do not disturb each other. What cannot be read counts
    as absent, and a folder that cannot be written to only means searching again.

    >>> import tempfile
    >>> cache = FileDesignCache(Path(tempfile.mkdtemp()))
    >>> cache.save("key", {"cap": 50})
    >>> cache.load("key")
    {'cap': 50}

    Args:
        folder: Made with the first design; None for the user's own.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._given = folder

    @property
    def _folder(self) -> Path:
        """The folder; the user's own is looked for when a design is, since few runs search."""
        return find_design_folder(os.environ) if self._given is None else self._given

    def load(self, key: str) -> Mapping[str, Any] | None:
        """Load the values saved under a key, or None."""
        try:
            values = json.loads(read_regular(self._file(key)))
        except (OSError, ValueError, RecursionError):
            return None
        return values if isinstance(values, dict) else None

    def save(self, key: str, values: Mapping[str, Any]) -> None:
        """Keep plain values under a key; saving the same key twice is harmless."""
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            replace_file(self._file(key), json.dumps(values).encode())

    def _file(self, key: str) -> Path:
        """A key names a file in the folder and nothing outside it."""
        safe = "".join(c if c.isalnum() or c in "-._" else "_" for c in key).lstrip(".")
        return self._folder / f"{safe or '_'}.json"


def find_design_folder(environment: Mapping[str, str]) -> Path:
    """Return the user's cache folder: `$TRIALWISE_CACHE`, else `$XDG_CACHE_HOME/trialwise`.

    Args:
        environment: The variables of the process.
    """
    if environment.get("TRIALWISE_CACHE"):
        return Path(environment["TRIALWISE_CACHE"], "designs")
    root = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root, "trialwise", "designs")
