"""The files of a run that are written whole, read in any format, and what is wrong with them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from trialwise import model
from trialwise.errors import InvalidArgument, RunNotFound
from trialwise.model.codec import from_plain
from trialwise.model.plain_json import CHECKSUM
from trialwise.model.run import RunSummary
from trialwise.procedures.registry import load_procedures
from trialwise.stores._files import StoreUnusable, checksum_of, read_json

PLAN_FORMAT = "trialwise.plan-record/2"
RECORD_FORMAT = "trialwise.run/2"
#: By file: the format of today, and the one that 0.1.0 wrote.
_FORMATS = {
    "plan.json": (PLAN_FORMAT, "trialwise.plan-record/1"),
    "record.json": (RECORD_FORMAT, "trialwise.run/1"),
}


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
    from trialwise.model.fingerprint import upgrade_plan_record, upgrade_run_record

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


# --- Parts of a stored file as the values they were: a plan, a verdict, a time --------------------

T = TypeVar("T")


def _name_procedures(data: Any) -> Iterator[str]:
    """Name the procedures of a plan, or of a verdict's; nothing of what is neither."""
    plan = data.get("plan", data) if isinstance(data, dict) else None
    criteria = plan.get("criteria") if isinstance(plan, dict) else None
    for one in criteria if isinstance(criteria, list) else ():
        if isinstance(one, dict) and isinstance(one.get("procedure"), str):
            yield one["procedure"]


def read_part(path: Path, cls: type[T], data: Any) -> T:
    """Read a part of a file, with the procedures loaded that its plan names.

    Args:
        path: The file, for the message.
        cls: What the part is.
        data: The part as plain values.

    Raises:
        StoreUnusable: It is something else.
    """
    try:
        load_procedures(_name_procedures(data))
        return from_plain(cls, data)
    except InvalidArgument as error:
        raise StoreUnusable(path, "read it", f"{error}.") from None


# --- What goes wrong with stored runs: another plan, or a record that cannot be written -----------


class PlanChanged(RunNotFound):
    """A stored run has another plan, so its trials answer another question.

    Args:
        run_id: The id of the stored run.
        differences: Between its plan and the new one; none where another version made it.
    """

    def __init__(self, run_id: str, differences: Sequence[str]) -> None:
        self.changed = "; ".join(differences) or "made by another version"
        super().__init__(
            f"{run_id} cannot be resumed with this plan: its trials belong to another. What "
            f"differs: {self.changed}. Undo that, or start a new run."
        )


class RecordNotKept(StoreUnusable):
    """A run was decided and its record cannot be written; its trials are in the journal.

    Args:
        path: The record's.
        doing: What was attempted.
        reason: Why not.
        record: What the run came to.
    """

    def __init__(
        self, path: Path, doing: str, reason: OSError | str, record: model.RunRecord | None = None
    ) -> None:
        super().__init__(path, doing, reason)
        self.record = record


# --- Which runs belong together: those of one process, and of the processes that continue it ------
#
# A suite or a pytest session that was stopped leaves finished runs and an unfinished one. Resuming
# keeps those finished runs, and no older ones: they belong to another session.

#: The name of this process's session, once there is one; the last one joined counts.
_JOINED: list[str] = []


def name_session() -> str:
    """Name the session of this process."""
    if not _JOINED:
        _JOINED.append(secrets.token_hex(6))
    return _JOINED[-1]


def join_session(name: str) -> None:
    """Belong to a session from here on: that of a run that is resumed, or of other workers."""
    # A run of an earlier version has no session, and joining none must not begin a new one.
    if name:
        _JOINED.append(name)
