"""Runs on disk: one folder each, with the plan, every trial and, once decided, the record.

    .trialwise/runs/2026-11-15T06-25-24Z-support-agent-3f9c/
        plan.json       written before the first trial
        journal.jsonl   one line a trial, as it completes
        texts.jsonl     inputs and tracebacks, each once, before the first trial that names it
        record.json     the verdict with its plan; absent while a run goes on, and after a kill

Trials are in the journal alone. One process makes a folder and holds its journal.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from trialwise import model
from trialwise.errors import InvalidArgument, JournalDamaged, RunNotFound
from trialwise.model.codec import to_plain
from trialwise.model.fingerprint import hash_plain_plan, plan_differences, plan_hash
from trialwise.model.plain_json import CHECKSUM
from trialwise.model.run import RunSummary, RunTexts, Trials
from trialwise.stores import _files, run_files, run_journals
from trialwise.stores._files import StoreUnusable
from trialwise.stores.journal import Journal, scan_journal
from trialwise.stores.run_journals import TextLog

__all__ = ["RunStore", "StoreUnusable", "StoredRun"]

_TIME_LENGTH = len("2026-11-15T06-25-24Z")

T = TypeVar("T")


class StoredRun:
    """One run's folder: for reading, or with its journal open where it was created or resumed.

    Args:
        path: The folder.
        plan: The plan to resume by, if it is not the stored one.
        journal: Open for appending; None for reading.
        text_log: Open for appending, where there is one already.
        head: The content of plan.json, where it was just written with this plan.
    """

    def __init__(
        self,
        path: Path,
        *,
        plan: model.Plan | None = None,
        journal: Journal | None = None,
        text_log: TextLog | None = None,
        head: dict[str, Any] | None = None,
    ) -> None:
        self.path = path
        self._plan_file = path / "plan.json"
        self._record_file = path / "record.json"
        self._journal_file = path / "journal.jsonl"
        self._written_head = head
        self._plan = plan
        self._journal = journal
        self._text_log = text_log

    @property
    def _head(self) -> dict[str, Any]:
        """What plan.json holds; read when it is needed."""
        if self._written_head is None:
            self._written_head = run_files.read_kept(self._plan_file)
        return self._written_head

    @property
    def run_id(self) -> str:
        """Its name, by which it is opened."""
        # A link keeps the name that it has in the store.
        return os.path.basename(os.path.abspath(self.path))

    @property
    def started_at(self) -> datetime:
        """When it was created, however often it was resumed."""
        return self._read("started_at", datetime)

    @property
    def session(self) -> str:
        """Which runs it belongs together with; empty for one of an earlier version."""
        return str(self._head.get("session", ""))

    @property
    def comparison(self) -> str:
        """The name of the comparison whose arm it is; empty for any other run."""
        return str(self._head.get("comparison", ""))

    @property
    def scored(self) -> str:
        """The name of the run whose replies it has checked again; empty for any other run."""
        return str(self._head.get("scored", ""))

    @property
    def plan_hash(self) -> str:
        """What its plan was known by when it was created."""
        return self._read("plan_hash", str)

    @property
    def plan(self) -> model.Plan:
        """The plan; of a resumed run the last one, which may differ in pace and budget."""
        if self._plan is None:
            self._plan = self._read("plan", model.Plan)
        return self._plan

    @property
    def journal(self) -> Journal:
        """Where completed trials go: `spell_trial(trial)`, each once."""
        if self._journal is None:
            raise RunNotFound(f"{self.path.name} was opened to be read; resume it to add trials")
        return self._journal

    @property
    def text_log(self) -> TextLog:
        """Where inputs and tracebacks go, before the first trial that names them."""
        _ = self.journal  # it refuses where the run was opened to be read
        if self._text_log is None:
            self._text_log = TextLog(self.path / run_journals.TEXTS)
        return self._text_log

    def texts(self) -> RunTexts:
        """Return the inputs and tracebacks that the trials name; none where none are kept.

        Raises:
            JournalDamaged: A line is not as written.
        """
        return run_journals.read_texts(self.path / run_journals.TEXTS)

    def trials(self) -> Trials:
        """Return every trial in the journal, in the order of inputs, experiment by experiment.

        Raises:
            JournalDamaged: A line is not as written, is not a trial of the plan, or contradicts an
                earlier one.
        """
        return run_journals.read_trials(self._journal_file, self.plan)

    def shown_trials(self) -> Trials:
        """Return the trials to look at; of a run that a broken check ended those that it saw."""
        if run_journals.is_set_aside(self.path):
            return Trials.of(run_journals.read_set_aside(self.path, self.plan))
        return self.trials()

    @property
    def keeps_replies(self) -> bool:
        """Whether replies are kept so that they can be checked again; earlier versions cut them."""
        return bool(self._head.get("replies"))

    def write_record(self, verdict: model.Verdict) -> Path:
        """Keep the verdict beside the trials it was reached by; one written before is replaced."""
        if self._journal is not None:
            self._journal.sync()
            trials = len(self._journal)
        else:
            trials = scan_journal(self._journal_file).count
        head = {name: self._head[name] for name in ("run_id", "started_at", "plan_hash")}
        head["session"] = self.session
        head |= {name: one for name in ("comparison", "scored") if (one := self._head.get(name))}
        if verdict.plan is not self.plan:
            verdict = replace(verdict, plan=self.plan)
        decided = to_plain(verdict)  # the plan stands in it, once
        kept = {"format": run_files.RECORD_FORMAT, **head, "trials": trials, "verdict": decided}
        _files.write_json(self._record_file, kept)
        return self._record_file

    def record(self) -> model.RunRecord:
        """Return the run as it was decided.

        Raises:
            RunNotFound: It was not decided.
            JournalDamaged: The journal no longer holds every trial of the record.
        """
        path = self._record_file
        if not path.exists():
            raise RunNotFound(
                f"{self.path}: the run has no verdict: it is still going on, or it was stopped "
                f"after {scan_journal(self._journal_file).count} trials. They are kept: run "
                f"the same contract with resume={self.run_id!r} to go on from there."
            )
        kept = run_files.read_kept(path)
        trials = self.trials()
        # The verdict rests on exactly these: fewer are lost, and more came from somebody else.
        if len(trials) != kept["trials"]:
            raise JournalDamaged(self._journal_file, line=len(trials) + 1)
        verdict = run_files.read_part(path, model.Verdict, kept["verdict"])
        if verdict.plan is None:
            raise StoreUnusable(path, "read it", "its verdict has no plan. Restore it from a copy.")
        # The journal was read by plan.json: with other inputs its trials would be others.
        if _list_asked(verdict.plan) != _list_asked(self.plan):
            reason = "its inputs or criteria are not those of plan.json. Restore it from a copy."
            raise StoreUnusable(path, "read it", reason)
        return model.RunRecord(
            run_id=self.run_id,
            plan=verdict.plan,
            trials=trials,
            verdict=verdict,
            texts=self.texts(),
        )

    def compare_checksums(self) -> dict[str, bool | None]:
        """Return whether each file of a decided run has its checksum; None for one of 0.1.0."""
        return run_files.compare_checksums(self.path)

    def verdict(self) -> model.Verdict:
        """Return what was decided, without the trials."""
        kept = run_files.read_kept(self._record_file)
        return run_files.read_part(self._record_file, model.Verdict, kept["verdict"])

    @property
    def is_unfinished(self) -> bool:
        """Whether it can be resumed; see `RunSummary.is_unfinished`."""
        return run_files.summarize_files(self.path).is_unfinished

    def repair(self) -> dict[str, run_journals.Repair]:
        """Set the damaged lines of its journal and its texts aside, each file by its name.

        Raises:
            RunNotFound: It is finished, so that its verdict rests on every line.
            JournalInUse: Somebody is running it.
        """
        if not self.is_unfinished:
            raise RunNotFound(
                f"{self.run_id} is finished, and its verdict rests on every line of its journal: "
                "restore the folder from a copy"
            )
        files = [self._journal_file, self.path / run_journals.TEXTS]
        return {one.name: run_journals.repair_file(one) for one in files if one.exists()}

    def count_torn_bytes(self) -> int:
        """Count the bytes of a last trial that a kill cut short; resuming drops them."""
        return scan_journal(self._journal_file).torn

    def check_plan(self, plan: model.Plan) -> None:
        """Refuse a plan that the trials do not belong to.

        Raises:
            PlanChanged: With what differs.
        """
        if self.plan_hash == plan_hash(plan):
            return
        # A check that was repaired is another one, and no trial was counted with the broken one.
        same = replace(plan, structure=self.plan.structure)
        if not (run_journals.is_set_aside(self.path) and self.plan_hash == plan_hash(same)):
            raise run_files.PlanChanged(self.run_id, plan_differences(self.plan, plan))

    def close(self) -> None:
        """Let go of the journal; closing twice is harmless."""
        if self._text_log is not None:
            self._text_log.close()
            self._text_log = None
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def __enter__(self) -> StoredRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, name: str, cls: type[T]) -> T:
        return run_files.read_part(self._plan_file, cls, self._head.get(name))


class RunStore:
    """A folder of runs.

    Args:
        folder: Made with the first run.
        suffix: What tells apart runs that start in one second.
    """

    def __init__(self, folder: Path = Path(".trialwise")) -> None:
        self._runs = folder / "runs"

    def create(
        self, plan: model.Plan, started_at: datetime, *, comparison: str = "", scored: str = ""
    ) -> StoredRun:
        """Create a new run with its journal open and its plan on disk.

        Args:
            plan: What will be run.
            started_at: Now, with its zone.
            comparison: The name of the comparison whose arm it is.
            scored: The name of the run whose replies it checks again.
        """
        if started_at.tzinfo is None:
            raise InvalidArgument("started_at", started_at, "name its time zone")
        path = _files.make_dated_folder(self._runs, "run", started_at, plan.contract)
        # The journal first: nobody can resume a run before its maker holds it.
        journal = Journal(path / "journal.jsonl")
        texts = TextLog(path / run_journals.TEXTS)
        try:
            plain = to_plain(plan)
            head = {
                "format": run_files.PLAN_FORMAT,
                "run_id": path.name,
                "started_at": started_at.isoformat(),
                "session": run_files.name_session(),
                "replies": "whole",
                **({"comparison": comparison} if comparison else {}),
                **({"scored": scored} if scored else {}),
                "plan_hash": hash_plain_plan(plain),
                "plan": plain,
            }
            _files.write_json(path / "plan.json", head)
            return StoredRun(path, plan=plan, journal=journal, text_log=texts, head=head)
        except BaseException:
            texts.close()
            journal.close()
            raise

    def open(self, run: str | PathLike[str]) -> StoredRun:
        """Return a run, for reading.

        Args:
            run: Its name, its folder, or a file in its folder.

        Raises:
            RunNotFound: There is none; names near to it are given.
        """
        with _files.disk_trouble(self._runs, "look for a run"):
            path = self._folder_of(Path(run))
            if not (path / "plan.json").is_file():
                raise RunNotFound(self._missing(Path(run)))
        return StoredRun(path)

    def load(self, run: str | PathLike[str]) -> model.RunRecord:
        """Load a decided run with its trials; see `StoredRun.record`."""
        return self.open(run).record()

    def list(self) -> tuple[RunSummary, ...]:
        """List every run, newest first, without reading a journal."""
        return tuple(self._newest())

    def holds_decision(self, run: str, decision: model.Decision | None) -> bool:
        """Return whether the record of a run is on disk and says what was decided.

        Args:
            run: Its name.
            decision: What was decided.
        """
        return run_files.summarize_files(self._runs / run).decision is decision

    def latest(self, contract: str | None = None) -> StoredRun:
        """Return the newest run with a verdict, for reading.

        Args:
            contract: Only runs of this one.

        Raises:
            RunNotFound: There is none.
        """
        for one in self._newest():
            if one.is_decided and contract in (None, one.contract):
                return self.open(one.run_id)
        whose = "" if contract is None else f" of {contract!r}"
        raise RunNotFound(f"{self._runs}: no run with a verdict{whose} is kept here")

    def decided(self, contract: str) -> Iterator[StoredRun]:
        """Yield the decided runs of a contract, newest first, each read when it is asked for.

        Args:
            contract: Its name.
        """
        mine = _files.safe_name(contract)
        for path in self._newest_folders(
            lambda name: name[_TIME_LENGTH + 1 :].rpartition("-")[0] == mine
        ):
            try:
                kept = run_files.read_kept(path / "record.json")
                is_mine = kept["verdict"]["plan"]["contract"] == contract
            except (StoreUnusable, LookupError, TypeError):
                continue
            if is_mine:
                yield StoredRun(path)

    def resume(
        self, run: str | PathLike[str], plan: model.Plan, *, is_arm: bool = False
    ) -> StoredRun:
        """Return a run to resume, with its journal open.

        Args:
            run: Its name, its folder, or a file in its folder.
            plan: May differ from the stored one in what `plan_hash` does not count.
            is_arm: Whether its comparison is resumed, whose other arms may need more trials.

        Raises:
            RunNotFound: There is none, or it is finished.
            PlanChanged: Its plan is another.
            JournalInUse: Another process is running it.
        """
        stored = self.open(run)
        # Held first: while another process runs it, nobody can say whether it is finished.
        journal = Journal(stored.path / "journal.jsonl")
        try:
            if not (is_arm or stored.is_unfinished):
                raise RunNotFound(f"{stored.run_id} is finished; start a new run")
            stored.check_plan(plan)
        except BaseException:
            journal.close()
            raise
        run_files.join_session(stored.session)
        if stored.plan_hash != plan_hash(plan):
            plain = to_plain(plan)
            repaired = {"plan_hash": hash_plain_plan(plain), "plan": plain}
            head = {name: one for name, one in stored._head.items() if name != CHECKSUM}
            _files.write_json(stored.path / "plan.json", head | repaired)
        return StoredRun(stored.path, plan=plan, journal=journal)

    def _newest(self) -> Iterator[RunSummary]:
        return map(run_files.summarize_files, self._newest_folders())

    def _newest_folders(self, is_wanted: Callable[[str], bool] = bool) -> Iterator[Path]:
        # Names sort by the second; within one, what is written down decides.
        names = sorted(self._names(is_wanted), reverse=True)
        for _, same in groupby(names, lambda name: name[:_TIME_LENGTH]):
            runs = [self._runs / name for name in same if self._is_run(name)]
            if len(runs) > 1:
                runs.sort(key=_read_start, reverse=True)
            # One by one: there may be thousands, and the first is often enough.
            yield from runs

    def _names(self, is_wanted: Callable[[str], bool] = bool) -> Sequence[str]:
        """List the names in the folder, also of what is no run."""
        with _files.disk_trouble(self._runs, "list the runs"):
            try:
                return [name for name in os.listdir(self._runs) if is_wanted(name)]
            except (FileNotFoundError, NotADirectoryError):
                return []

    def _is_run(self, name: str) -> bool:
        return os.path.isfile(f"{self._runs}/{name}/plan.json")

    def _folder_of(self, run: Path) -> Path:
        if run.is_file():
            return run.parent
        return self._runs / run.name if run.name == str(run) else run

    def _missing(self, run: Path) -> str:
        from difflib import get_close_matches

        names = sorted(filter(self._is_run, self._names()), reverse=True)
        if not names:
            return f"{self._runs}: no run is kept here; is this the project's folder?"
        holding = [name for name in names if run.name and run.name in name]
        near = (holding or get_close_matches(run.name, names, cutoff=0.5))[:3] or names[:1]
        label = "The newest is" if near == names[:1] and not holding else "Near it:"
        return f"{self._runs}: no run {str(run)!r}. {label} {', '.join(near)}"


def _read_start(folder: Path) -> float:
    """Return when a run started, in seconds; 0 where its files cannot be read."""
    started_at = run_files.summarize_files(folder).started_at
    return 0.0 if started_at is None else started_at.timestamp()


def _list_asked(plan: model.Plan) -> list[object]:
    """Return what trials are read by: experiments with their inputs, and criteria."""
    criteria = [(one.criterion, one.experiment) for one in plan.criteria]
    return [[(one.name, one.input_ids) for one in plan.experiments], criteria]
