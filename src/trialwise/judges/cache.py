"""Jurors' answers kept on disk by what was asked, so that the same question is paid for once.

Only a folder that the user names is used. An answer is found by a hash of everything that bears on
it: rubric, input, reference, output, prompt, juror. Failures are not kept.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from trialwise.engine.ports import ServiceError
from trialwise.model.trial import ErrorClass

__all__ = ["CacheUnusable", "VoteCache", "content_key"]

_FORMAT = 1


class CacheUnusable(ServiceError):
    """The folder of cached votes cannot be written: every later vote would be paid for in vain."""

    stops_run = True


def content_key(question: Mapping[str, Any]) -> str:
    """The hash of a question: the same for the same content, whatever the order of its parts.

    >>> content_key({"a": 1, "b": 2}) == content_key({"b": 2, "a": 1})
    True
    """
    text = json.dumps(question, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return sha256(f"{_FORMAT}\n{text}".encode()).hexdigest()


class VoteCache:
    """A folder of answers, one small file each; several processes may share it.

    Args:
        folder: Made when the first answer is kept.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    def find(self, key: str) -> str | None:
        """The answer that was kept under a key; a file that is not as it was written is none."""
        try:
            kept = json.loads(self._path(key).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(kept, dict) or kept.get("key") != key:
            return None
        answer = kept.get("answer")
        return answer if isinstance(answer, str) else None

    def keep(self, key: str, answer: str) -> None:
        """Keep an answer: written beside its place and moved there, so that none is ever half one.

        Raises:
            CacheUnusable: The folder cannot be written.
        """
        path = self._path(key)
        beside = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            beside.write_text(json.dumps({"key": key, "answer": answer}), encoding="utf-8")
            beside.replace(path)
        except OSError as error:
            message = (
                f"{self._folder}: answers cannot be kept: {error.strerror}. Name another folder as "
                "`cache`, or none."
            )
            raise CacheUnusable(message, ErrorClass.INFRASTRUCTURE) from error

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"

    def __repr__(self) -> str:
        return f"VoteCache({str(self._folder)!r})"
