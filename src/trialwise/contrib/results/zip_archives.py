"""Read ZIP archives that somebody else wrote: a small file must not fill the memory."""

from __future__ import annotations

import os
import zipfile
import zlib
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from trialwise.outcomes.outcome_rows import MOST_BYTES, OutcomesUnreadable, parse_json, refuse_file

__all__ = ["Archive"]

#: What all members of an archive may unpack to, in such limits of one.
_TOGETHER = 4
#: Members of an archive; a log has one for each sample.
_MOST_MEMBERS = 1_000_000
#: Zstandard in a ZIP file, by which Inspect AI writes its logs.
_ZSTANDARD = 93
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, _ZSTANDARD)
_LOCAL_HEADER = 30


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
        except Exception as error:  # a broken directory gives errors of any kind
            raise refuse_file(path, f"the archive cannot be opened ({error})") from None
        if len(self._zip.filelist) > _MOST_MEMBERS:
            self._zip.close()
            raise refuse_file(path, f"the archive has more than {_MOST_MEMBERS:,} members")

    @property
    def names(self) -> list[str]:
        """The names of the members."""
        return self._zip.namelist()

    def json(self, member: str) -> Any:
        """Read a member as JSON."""
        try:
            return parse_json(self.read(member))
        except ValueError as error:
            raise refuse_file(self._path, f"{member}: JSON is expected ({error})") from None

    def read(self, member: str) -> bytes:
        """Read a whole member."""
        try:
            info = self._zip.getinfo(member)
            if info.compress_type not in _COMPRESSIONS:
                raise zipfile.BadZipFile(f"compression {info.compress_type} is none of a log's")
            if info.compress_type == _ZSTANDARD and not hasattr(zipfile, "ZIP_ZSTANDARD"):
                content = self._unpack_zstandard(info)
            else:
                with self._zip.open(info) as file:
                    content = file.read(self._limit + 1)
        except OutcomesUnreadable:
            raise
        except Exception as error:  # every compression has errors of its own
            raise refuse_file(self._path, f"{member}: it cannot be unpacked ({error})") from None
        self._left -= len(content)
        if len(content) > self._limit or self._left < 0:
            most = f"{self._limit:,} bytes, or all that was read to {_TOGETHER * self._limit:,}"
            raise refuse_file(self._path, f"{member}: it unpacks to more than {most}")
        return content

    def _unpack_zstandard(self, info: zipfile.ZipInfo) -> bytes:
        """A member in Zstandard, which Python itself reads from 3.14 on."""
        with open(self._path, "rb") as file:
            file.seek(info.header_offset)
            head = file.read(_LOCAL_HEADER)
            if len(head) < _LOCAL_HEADER or head[:4] != b"PK\x03\x04":
                raise zipfile.BadZipFile("its header is not where the archive says")
            names = int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
            file.seek(names, os.SEEK_CUR)
            packed = file.read(min(info.compress_size, self._limit + 1))
        content = _decompress(packed, self._path, self._limit)
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


def _decompress(packed: bytes, path: Path, limit: int) -> bytes:
    """Decompress up to one byte beyond the limit, with the library that is installed."""
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
            return _read_up_to(stream, limit + 1)
        except (library.ZstdError, EOFError) as error:
            raise zipfile.BadZipFile(str(error)) from None
    raise refuse_file(
        path,
        "the log is compressed with Zstandard, which Python reads from 3.14 on. Install "
        "`zstandard`, or convert it: inspect log convert --to json",
    )


def _read_up_to(stream: IO[bytes], size: int) -> bytes:
    # The end of a frame ends a read, and a member may have several frames.
    parts: list[bytes] = []
    while size and (part := stream.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
