"""The files of a run that are written whole: `plan.json` and `record.json`, read in any format."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from trialwise.errors import InvalidArgument
from trialwise.model.codec import from_plain
from trialwise.model.lines import CHECKSUM
from trialwise.model.run import RunSummary
from trialwise.regular_files import open_regular
from trialwise.stores._files import StoreUnusable, checksum_of, read_json

PLAN_FORMAT = "trialwise.plan-record/2"
RECORD_FORMAT = "trialwise.run/2"
#: By file: the format of today, and the one that 0.1.0 wrote.
_FORMATS = {
    "plan.json": (PLAN_FORMAT, "trialwise.plan-record/1"),
    "record.json": (RECORD_FORMAT, "trialwise.run/1"),
}

_STARTED = re.compile(rb'\n  "started_at": "([^"]+)"')


def summarize_files(path: Path) -> RunSummary:
    """Return what the list of runs shows of a run; damage where its files cannot be read."""
    try:
        if (path / "record.json").exists():
            kept = read_kept(path / "record.json")
            verdict = kept["verdict"]
            shown = {name: verdict[name] for name in ("decision", "stop")}
            shown |= {"contract": verdict["plan"]["contract"], "trials": kept.get("trials")}
        else:
            kept = read_kept(path / "plan.json")
            shown = {"contract": kept["plan"]["contract"]}
        shown |= {name: kept[name] for name in ("plan_hash", "started_at")}
        shown |= {name: kept.get(name, "") for name in ("session", "comparison", "scored")}
        return from_plain(RunSummary, {"run_id": path.name, **shown})
    except (StoreUnusable, InvalidArgument, KeyError, TypeError) as error:
        return RunSummary(run_id=path.name, damage=str(error))


def read_start(path: Path) -> float:
    """Return when a run started, in seconds; 0 where its files cannot be read.

    Args:
        path: The folder of the run.
    """
    with suppress(OSError, ValueError), open_regular(path / "plan.json") as file:
        # It is in the third line. A whole plan takes ten times as long to read.
        if found := _STARTED.search(file.read(500)):
            return datetime.fromisoformat(found[1].decode()).timestamp()
    started_at = summarize_files(path).started_at
    return 0.0 if started_at is None else started_at.timestamp()


def read_kept(path: Path) -> dict[str, Any]:
    """Read what a file of a run holds, brought to today's format."""
    form, first = _FORMATS[path.name]
    kept = read_json(path, form, first)
    if kept["format"] == form:
        content = ("plan",) if form == PLAN_FORMAT else ("trials", "verdict")
        for name in ("run_id", "started_at", "plan_hash", *content):
            if name not in kept:
                reason = f"it has no {name!r}, so it is not as it was written. Restore it."
                raise StoreUnusable(path, "read it", reason)
        return kept
    from trialwise.model.upgrade import upgrade_plan_record, upgrade_run_record

    try:
        return upgrade_plan_record(kept) if form == PLAN_FORMAT else upgrade_run_record(kept)
    except (InvalidArgument, KeyError, TypeError, AttributeError) as error:
        reason = f"it is not as 0.1.0 wrote it ({type(error).__name__}: {error})."
        raise StoreUnusable(path, "read it", reason) from None


def compare_checksums(folder: Path) -> dict[str, bool | None]:
    """Return whether each file of a decided run has its checksum; None for one of 0.1.0.

    Args:
        folder: The run's.
    """
    found: dict[str, bool | None] = {}
    for name, (form, first) in _FORMATS.items():
        kept = read_json(folder / name, form, first)
        is_checked = kept["format"] == form
        found[name] = kept.get(CHECKSUM) == checksum_of(kept) if is_checked else None
    return found
