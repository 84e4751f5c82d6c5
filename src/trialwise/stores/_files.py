"""Whole files on disk: written beside their place and moved there, so that none is ever half one.

One home for how the stores write and for what they say when the disk will not have it.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from json.encoder import encode_basestring as _quote
from pathlib import Path
from secrets import token_hex
from typing import Any

from trialwise.errors import TrialwiseError
from trialwise.model.plain_json import CHECKSUM, make_encoder
from trialwise.regular_files import read_regular

_FULL = "Free some space and go on: whatever was kept before is still there."


_FORBIDDEN = "Change its permissions, or use another folder."


_BLOCKED = "A file stands where a folder is needed: move it, or use another folder."


_REMEDIES = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: _FULL,
    errno.EACCES: _FORBIDDEN,
    errno.EPERM: _FORBIDDEN,
    errno.EROFS: _FORBIDDEN,
    errno.ENOTDIR: _BLOCKED,
    errno.EEXIST: _BLOCKED,
}


# Made once: a record of many findings has a million parts.
_ENCODE = make_encoder(ensure_ascii=False, separators=(", ", ": "))


#: How wide a line of a file may be before a mapping is spread over several.
_WIDTH = 100


class StoreUnusable(TrialwiseError, OSError):
    """A file or folder of a store cannot be used as it has to be.

    Args:
        path: Which.
        doing: What was attempted, as the rest of a sentence starting "cannot".
        reason: Why not: the system's error, or a text.
    """

    def __init__(self, path: Path, doing: str, reason: OSError | str) -> None:
        number = None if isinstance(reason, str) else reason.errno
        why = reason if isinstance(reason, str) else f"{reason.strerror}."
        remedy = _REMEDIES.get(number) if number is not None else None
        super().__init__(" ".join(filter(None, (f"{path}: cannot {doing}: {why}", remedy))))
        self.path = path
        self.doing = doing
        self.reason = reason
        self.errno = number

    def __reduce__(self) -> tuple[type[StoreUnusable], tuple[Path, str, OSError | str]]:
        return type(self), (self.path, self.doing, self.reason)


@contextmanager
def disk_trouble(path: Path, doing: str) -> Iterator[None]:
    """Turn what the system says of a path into `StoreUnusable`."""
    try:
        yield
    except StoreUnusable:
        raise
    except OSError as error:
        raise StoreUnusable(path, doing, error) from error


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def checksum_of(document: Mapping[str, Any]) -> str:
    """Return the checksum over the values, so that neither line ends nor formatting count."""
    rest = {key: value for key, value in document.items() if key != CHECKSUM}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return f"sha256:{sha256(text.encode('ascii')).hexdigest()}"


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Put a file with a checksum in its place at once, or leave what was there."""
    text = _spell({**value, CHECKSUM: checksum_of(value)}, "")
    # Only an escape can carry half a surrogate pair, and Python writes it as JSON does.
    data = f"{text}\n".encode("utf-8", "backslashreplace")
    with disk_trouble(path, "write it"):
        replace_file(path, data)


def replace_file(path: Path, data: bytes) -> None:
    """All of a file or nothing, safe from a power cut."""
    # Of this process: two that write at once must not write into one part.
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            file.write(data)
            file.flush()
            # Before it is moved: after a power cut the name could stand for an empty file.
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    sync_folder(path.parent)


def read_json(path: Path, form: str, *earlier: str) -> dict[str, Any]:
    """Read the content of a file that `write_json` wrote.

    Args:
        path: The file.
        form: The name and version its `format` must have.
        earlier: Versions that are read as well; the caller upgrades them.
    """
    with disk_trouble(path, "read it"):
        data = read_regular(path)
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        reason = f"it is not as it was written ({error}). Restore it from a copy."
        raise StoreUnusable(path, "read it", reason) from None
    found = value.get("format") if isinstance(value, dict) else None
    if found not in (form, *earlier):
        reason = f"its format is {found!r} and not {form!r}, so another version wrote it."
        raise StoreUnusable(path, "read it", reason)
    content: dict[str, Any] = value
    return content


def _spell(value: Any, margin: str) -> str:
    """Spell JSON for people and for diffs: numbers side by side, everything else line by line.

    Args:
        value: Plain values.
        margin: White space before its lines.
    """
    is_named = type(value) is dict
    is_flat = not any(
        part and isinstance(part, (dict, list))
        for part in (value.values() if is_named else value if type(value) is list else ())
    )
    # The lines that follow would be longer than a person reads; a list of numbers may be so long.
    if is_flat and (len(text := _ENCODE(value)) + len(margin) <= _WIDTH or not is_named):
        return text
    inner = margin + "  "
    if is_named:
        lines = [f"{_quote(name)}: {_spell(part, inner)}" for name, part in value.items()]
        return f"{{\n{inner}" + f",\n{inner}".join(lines) + f"\n{margin}}}"
    lines = [_spell(part, inner) for part in value]
    return f"[\n{inner}" + f",\n{inner}".join(lines) + f"\n{margin}]"


#: Leaves room for a suffix in the 255 bytes that file systems allow.
_LONGEST = 80


_UNSAFE = re.compile(r"[^A-Za-z0-9._@-]+")


#: Devices on Windows, with any suffix.
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul"} | {f"{port}{n}" for port in ("com", "lpt") for n in range(10)}
)


def safe_name(text: str) -> str:
    """Return a file name for any text: itself where it can be, else cleaned and with a hash.

    The hash follows a `~`, which no name that is kept as it is contains, so that two texts never
    share a name, whatever was cleaned away.

    >>> safe_name("support-agent"), safe_name("../../evil")
    ('support-agent', 'evil~0fbfd372a4')
    """
    cleaned = _UNSAFE.sub("-", text)[:_LONGEST].strip("-.")
    # Windows takes a name such as `con.json` for the device, wherever it lies.
    if not cleaned or cleaned.split(".")[0].lower() in _DEVICES:
        cleaned = f"_{cleaned}"
    if cleaned == text:
        return text
    return f"{cleaned}~{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}"


#: In names of folders: it sorts, and no file system minds it.
_TIME = "%Y-%m-%dT%H-%M-%SZ"
#: With 65,536 suffixes a second, more collisions than this are a broken source of chance.
_ATTEMPTS = 100


def make_dated_folder(parent: Path, what: str, started_at: datetime, name: str) -> Path:
    """Make a folder whose name sorts by time.

    Args:
        parent: A folder of a store.
        what: What is kept in the folder.
        started_at: Now, with its zone.
        name: Of whom it is.
    """
    stem = f"{started_at.astimezone(UTC):{_TIME}}-{safe_name(name)}"
    with disk_trouble(parent, f"keep a {what} there"):
        make_store(parent)
        for _ in range(_ATTEMPTS):
            # Folders of one second are told apart by chance, since processes know nothing of each
            # other; `mkdir` then says which of two that drew the same is the first.
            path = parent / f"{stem}-{token_hex(2)}"
            try:
                path.mkdir()
            except FileExistsError:
                continue
            sync_folder(parent)
            return path
    raise StoreUnusable(parent, f"name a {what}", f"every suffix of {stem} is taken.")


def make_store(folder: Path) -> None:
    """Make a folder of a store, and keep a new store out of git.

    Runs hold replies, which do not belong in git unless somebody wants them there.
    """
    is_new = not folder.parent.exists()
    folder.mkdir(parents=True, exist_ok=True)
    # Only a new store: whoever has removed the file wants the runs in git.
    if is_new:
        (folder.parent / ".gitignore").write_text("# Written by trialwise.\n*\n")
