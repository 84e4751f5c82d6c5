"""Names of the user's as names of files: inside their folder, and never two for one."""

from __future__ import annotations

import re
from hashlib import sha256

__all__ = ["safe_name"]

#: Leaves room for a suffix in the 255 bytes that file systems allow.
_LONGEST = 80
_UNSAFE = re.compile(r"[^A-Za-z0-9._@-]+")
#: Devices on Windows, with any suffix.
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul"} | {f"{port}{n}" for port in ("com", "lpt") for n in range(10)}
)


def safe_name(text: str) -> str:
    """A file name for any text: itself where it can be, else cleaned and with a hash.

    The hash follows a `~`, which no name that is kept as it is contains, so that two texts never
    share a name, whatever was cleaned away.

    >>> safe_name("support-agent"), safe_name("../../evil")
    ('support-agent', 'evil~0fbfd372a4')
    """
    cleaned = _UNSAFE.sub("-", text)[:_LONGEST].strip("-.")
    if not cleaned or cleaned.split(".")[0].lower() in _DEVICES:
        cleaned = f"_{cleaned}"
    if cleaned == text:
        return text
    return f"{cleaned}~{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}"
