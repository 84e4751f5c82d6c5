"""Sets damaged lines of an unfinished run aside, so that the rest of its trials can be used.

Nobody does this without being asked: a damaged journal is refused until somebody has decided that
no better copy is left. The damaged file stays beside the new one, as it was.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from trialwise.errors import JournalInUse, RunNotFound
from trialwise.model.lines import is_whole, parse_lines, seal
from trialwise.regular_files import open_regular
from trialwise.stores._files import disk_trouble, replace_file
from trialwise.stores.run_texts import TEXTS
from trialwise.stores.runs import StoredRun

#: So many lost lines in a row are bridged: a line's checksum covers its number.
_LONGEST_GAP = 4096


class Repair(NamedTuple):
    """What became of one file."""

    kept: int
    """Lines that are whole and are used."""
    damaged: int
    """Lines, or rests of lines, that are not."""
    aside: Path | None
    """Where the file is kept as it was; None where nothing was wrong with it."""


def repair_run(stored: StoredRun) -> dict[str, Repair]:
    """Set the damaged lines of a run's journal and texts aside.

    Args:
        stored: A run that is not finished.

    Raises:
        RunNotFound: It is finished, so that its verdict rests on every line.
        JournalInUse: Somebody is running it.
    """
    if not stored.is_unfinished:
        raise RunNotFound(
            f"{stored.run_id} is finished, and its verdict rests on every line of its journal: "
            "restore the folder from a copy"
        )
    names = ("journal.jsonl", TEXTS)
    return {name: _repair(stored.path / name) for name in names if (stored.path / name).exists()}


def _repair(path: Path) -> Repair:
    with disk_trouble(path, "repair it"), open_regular(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise JournalInUse(path) from None
        content = file.read()
        pieces = [piece for piece in content.split(b"\n") if piece]
        whole = list(_find_whole(pieces))
        if path.name == TEXTS:
            whole = list(_drop_references(whole))
        repaired = b"".join(seal(text, number=number) for number, text in enumerate(whole))
        if repaired == content:
            return Repair(len(whole), 0, None)
        aside = _name_aside(path)
        replace_file(aside, content)
        replace_file(path, repaired)
    return Repair(len(whole), len(pieces) - len(whole), aside)


def _find_whole(pieces: list[bytes]) -> Iterator[bytes]:
    """Yield the records of the lines that are as written, as the text of a JSON object."""
    number = 0
    for piece in pieces:
        places = range(number, number + _LONGEST_GAP)
        place = next((one for one in places if is_whole(piece, number=one)), None)
        if place is None:
            continue
        try:
            parse_lines([piece])
        except ValueError:
            continue
        number = place + 1
        body = piece[: piece.rindex(b'"checksum"')]
        yield body.removesuffix(b",") + b"}"


def _drop_references(lines: list[bytes]) -> Iterator[bytes]:
    """Leave out lines that refer to a text which is lost; the run writes them again."""
    known: set[str] = set()
    for text in lines:
        (record,) = parse_lines([seal(text).rstrip(b"\n")])
        if "value" in record or "traceback" in record:
            known.add(record.get("hash", ""))
        if record.get("hash") in known:
            yield text


def _name_aside(path: Path) -> Path:
    """Name the file that keeps what was there; an earlier one is never replaced."""
    number = 1
    while (aside := path.with_name(f"{path.stem}.damaged-{number}{path.suffix}")).exists():
        number += 1
    return aside
