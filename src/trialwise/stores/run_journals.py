"""What the journals of a run hold: its trials, its texts, and what was set aside of either."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from trialwise import model
from trialwise.errors import JournalDamaged, JournalInUse
from trialwise.model.plain_json import is_whole, parse_lines, seal
from trialwise.model.run import RunTexts, Trials
from trialwise.model.trial_lines import read_trial
from trialwise.model.trial_table import TrialTable
from trialwise.regular_files import open_regular
from trialwise.stores._files import disk_trouble, replace_file
from trialwise.stores.journal import Journal, JournalReader, read_journal, stream_places


def read_trials(path: Path, plan: model.Plan) -> Trials:
    """Return every trial of a journal, in the order of inputs, experiment by experiment.

    Args:
        path: The journal.
        plan: What was run.

    Raises:
        JournalDamaged: A line is not as written, is not a trial of the plan, or contradicts an
            earlier one.
    """
    reader = JournalReader(path)
    tables = {
        one.name: TrialTable(one.name, [c.criterion for c in plan.criteria_of(one.name)], reader)
        for one in plan.experiments
    }
    inputs = {one.name: frozenset(one.input_ids) for one in plan.experiments}
    for number, (at, line) in enumerate(stream_places(path), start=1):
        if not _put_line(line, at, tables, inputs):
            raise JournalDamaged(path, line=number)
    return Trials(tables.values())


def _put_line(
    line: dict[str, Any], at: int, tables: dict[str, TrialTable], inputs: dict[str, frozenset[str]]
) -> bool:
    """Hold the trial of one line; False where it is none of the plan's, or contradicts another."""
    try:
        table = tables[line["x"]]
        trial = read_trial(line, experiment=table.experiment, criteria=table.criteria)
        if len(line["ok"]) != len(table.criteria):
            return False
        if trial.input_id not in inputs[table.experiment]:
            return False
        place = None if trial.index > table.last else table.find(trial.index)
        if place is not None:
            return table[place] == trial
        table.put(trial, at)
        return True
    except (LookupError, TypeError, ValueError, OverflowError):
        return False


# --- The texts of a run on disk: inputs and tracebacks, each once, in a journal of their own ------

TEXTS = "texts.jsonl"
_WORDS = ("hash", "x", "in", "value", "traceback")


class TextLog:
    """A journal of texts, whose file is made with the first of them at the latest.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._journal: Journal | None = None

    def append(self, record: Mapping[str, Any]) -> None:
        """Hand one record to the operating system: it survives the death of this process."""
        if self._journal is None:
            self._journal = Journal(self._path)
        self._journal.append(record)

    def sync(self) -> None:
        """Wait until everything appended survives a power cut; nothing new takes no time."""
        if self._journal is not None:
            self._journal.sync()

    def close(self) -> None:
        """Sync and let go; closing twice is harmless."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None


def read_texts(path: Path) -> RunTexts:
    """Read the texts of a file; none where there is no file, as in runs of 0.1.0.

    Raises:
        JournalDamaged: A line is not as written.
    """
    if not path.exists():
        return RunTexts()
    lines = read_journal(path)
    for number, line in enumerate(lines, start=1):
        if not _is_text_line(line):
            raise JournalDamaged(path, line=number)
    try:
        return RunTexts.from_lines(lines)
    except (LookupError, TypeError):
        raise JournalDamaged(path, line=len(lines)) from None


def _is_text_line(line: Mapping[str, Any]) -> bool:
    """Return whether the values of a line have the types that a text has; see `trial_lines`."""
    expected = line.get("expected")
    return all(type(line[name]) is str for name in _WORDS if name in line) and (
        expected is None or type(expected) is str
    )


# --- Trials that a broken check has looked at: none of them counts, and their replies stay --------
#
#     .trialwise/runs/2026-11-15T06-25-24Z-support-agent-3f9c/
#         journal.broken-1.jsonl   the journal of a part of the run that a broken check has ended
#
# A resumed run gives their replies to the repaired check, and does not ask the service for them.

_NAME = "journal.broken-{}.jsonl"


def set_trials_aside(folder: Path) -> None:
    """Count no trial of a run that a broken check has ended: nothing was decided.

    Args:
        folder: The run's, whose journal this process holds.
    """
    path = folder / "journal.jsonl"
    with disk_trouble(path, "set its trials aside"):
        os.replace(path, _find_free(folder, _NAME))
        # An empty journal in its place says that no trial counts any more.
        Journal(path).close()


def is_set_aside(folder: Path) -> bool:
    """Return whether a broken check has ended a run, and no trial counts since."""
    is_empty = not os.path.getsize(folder / "journal.jsonl")
    return is_empty and any(folder.glob(_NAME.format("*")))


def read_set_aside(folder: Path, plan: model.Plan) -> list[model.Trial]:
    """Read the trials that broken checks have looked at, each once.

    Args:
        folder: The run's.
        plan: What was run.

    Raises:
        JournalDamaged: A line is not as written, or is not a trial of the plan.
    """
    found: dict[tuple[str, int], model.Trial] = {}
    for path in sorted(folder.glob(_NAME.format("*"))):
        for one in read_trials(path, plan):
            found.setdefault((one.experiment, one.index), one)
    return [found[key] for key in sorted(found)]


# Sets damaged lines of an unfinished run aside, so that the rest of its trials can be used.
#
# Nobody does this without being asked: a damaged journal is refused until somebody has decided that
# no better copy is left. The damaged file stays beside the new one, as it was.

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


def repair_file(path: Path) -> Repair:
    """Set the damaged lines of a journal aside; its checksums say which they are.

    Raises:
        JournalInUse: Somebody is running its run.
    """
    with disk_trouble(path, "repair it"), open_regular(path) as file:
        try:
            # Between reading and replacing no run may add a line, which would be lost.
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
        aside = _find_free(path.parent, f"{path.stem}.damaged-{{}}{path.suffix}")
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


def _find_free(folder: Path, name: str) -> Path:
    """Return the first place with a number in its name that no file has: none is replaced."""
    places = (folder / name.format(number) for number in count(1))
    return next(one for one in places if not one.exists())
