"""Files and archives of others, read within bounds: a small file must not become a large memory."""

from __future__ import annotations

import json
import os
import stat
import zipfile
import zlib
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from trialwise.outcomes.problems import OutcomesUnreadable

__all__ = ["MOST_BYTES", "Archive", "as_text", "parse_json", "read_head", "read_whole"]

#: Of a file, and of what one member of an archive unpacks to.
MOST_BYTES = 256_000_000
#: What all members of an archive may unpack to, in such limits of one.
_TOGETHER = 4
#: Members of an archive; a log has one for each sample.
_MOST_MEMBERS = 1_000_000
#: Zstandard in a ZIP file, by which Inspect AI writes its logs.
_ZSTANDARD = 93
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, _ZSTANDARD)
_LOCAL_HEADER = 30


def read_whole(path: Path, *, limit: int = MOST_BYTES) -> bytes:
    """A regular file's bytes, if they are not too many."""
    try:
        status = os.stat(path)
        # A pipe would wait for a writer for ever.
        if not stat.S_ISREG(status.st_mode):
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "no regular file"
            raise _refused(path, f"this is {kind}, and a file of outcomes is expected")
        with open(path, "rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise _refused(path, f"the file cannot be read ({error.strerror or error})") from None
    except ValueError as error:  # a name with a NUL in it
        raise _refused(path, f"this cannot be a file's name ({error})") from None
    if len(content) > limit:
        raise _refused(
            path, f"the file has more than {limit:,} bytes; split it, or leave out texts"
        )
    return content


def read_head(path: Path, size: int = 4) -> bytes:
    """The first bytes of a file, by which archives are known."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return b""
        with open(path, "rb") as file:
            return file.read(size)
    except (OSError, ValueError):
        return b""


def as_text(content: bytes, path: str) -> str:
    """UTF-8 as text, without a byte order mark."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        byte = f"byte 0x{content[error.start]:02x}"
        raise OutcomesUnreadable(path, (f"line {line}: UTF-8 is expected, found {byte}",)) from None


def parse_json(text: str | bytes) -> Any:
    """A JSON document; NaN and the infinities are read as Python and Inspect AI write them.

    Raises:
        ValueError: It is none, with the place.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None


class Archive:
    """A ZIP file whose members are unpacked one at a time, and never beyond the limit.

    Args:
        path: The file.
        limit: Bytes that one member may have.
    """

    def __init__(self, path: Path, *, limit: int = MOST_BYTES) -> None:
        self._path = path
        self._limit = limit
        self._left = _TOGETHER * limit
        try:
            self._zip = zipfile.ZipFile(path)
        except Exception as error:  # a directory that lies gives errors of any kind
            raise _refused(path, f"the archive cannot be opened ({error})") from None
        if len(self._zip.filelist) > _MOST_MEMBERS:
            self._zip.close()
            raise _refused(path, f"the archive has more than {_MOST_MEMBERS:,} members")

    @property
    def names(self) -> list[str]:
        """Of the members."""
        return self._zip.namelist()

    def json(self, member: str) -> Any:
        """A member's JSON."""
        try:
            return parse_json(self.read(member))
        except ValueError as error:
            raise _refused(self._path, f"{member}: JSON is expected ({error})") from None

    def read(self, member: str) -> bytes:
        """A member, whole."""
        try:
            info = self._zip.getinfo(member)
            if info.compress_type not in _COMPRESSIONS:
                raise zipfile.BadZipFile(f"compression {info.compress_type} is none of a log's")
            if info.compress_type == _ZSTANDARD and not hasattr(zipfile, "ZIP_ZSTANDARD"):
                content = self._unpacked(info)
            else:
                with self._zip.open(info) as file:
                    content = file.read(self._limit + 1)
        except OutcomesUnreadable:
            raise
        except Exception as error:  # every compression has errors of its own
            raise _refused(self._path, f"{member}: it cannot be unpacked ({error})") from None
        self._left -= len(content)
        if len(content) > self._limit or self._left < 0:
            most = f"{self._limit:,} bytes, or all that was read to {_TOGETHER * self._limit:,}"
            raise _refused(self._path, f"{member}: it unpacks to more than {most}")
        return content

    def _unpacked(self, info: zipfile.ZipInfo) -> bytes:
        """A member in Zstandard, which Python itself reads from 3.14 on."""
        with open(self._path, "rb") as file:
            file.seek(info.header_offset)
            head = file.read(_LOCAL_HEADER)
            if len(head) < _LOCAL_HEADER or head[:4] != b"PK\x03\x04":
                raise zipfile.BadZipFile("its header is not where the archive says")
            names = int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
            file.seek(names, os.SEEK_CUR)
            packed = file.read(min(info.compress_size, self._limit + 1))
        content = _zstandard(packed, self._path, self._limit)
        if len(content) <= self._limit and zlib.crc32(content) != info.CRC:
            raise zipfile.BadZipFile("its checksum is wrong")
        return content

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._zip.close()


def _zstandard(packed: bytes, path: Path, limit: int) -> bytes:
    """What is packed, up to one byte beyond the limit, by whichever library there is."""
    from importlib import import_module
    from io import BytesIO

    for name in ("backports.zstd", "zstandard"):
        try:
            library: Any = import_module(name)
        except ImportError:
            continue
        stream: Any
        if hasattr(library, "ZstdFile"):
            stream = library.ZstdFile(BytesIO(packed))
        else:
            reader = library.ZstdDecompressor()
            stream = reader.stream_reader(BytesIO(packed), read_across_frames=True)
        try:
            return _up_to(stream, limit + 1)
        except (library.ZstdError, EOFError) as error:
            raise zipfile.BadZipFile(str(error)) from None
    raise _refused(
        path,
        "the log is compressed with Zstandard, which Python reads from 3.14 on. Install "
        "`zstandard`, or convert it: inspect log convert --to json",
    )


def _up_to(stream: IO[bytes], size: int) -> bytes:
    # The end of a frame ends a read, and a member may have several frames.
    parts: list[bytes] = []
    while size and (part := stream.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _refused(path: Path, message: str) -> OutcomesUnreadable:
    return OutcomesUnreadable(str(path), (message,))
