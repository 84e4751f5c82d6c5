"""The folder of a test's run, which is made when something is to be kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from trialwise.model.plan import Plan
from trialwise.model.trial import Trial
from trialwise.stores.runs import RunStore, StoredRun


class RunLog:
    """The run's folder, made with the first trial that counts: a skipped test leaves none."""

    def __init__(self, plan: Plan, folder: Path, started_at: datetime) -> None:
        self._plan = plan
        self._runs = RunStore(folder)
        self.started_at = started_at
        self.stored: StoredRun | None = None

    def resume(self, run_id: str) -> Sequence[Trial]:
        """Go on with a stored run; its trials."""
        self.stored = self._runs.resume(run_id, self._plan)
        self.started_at = self.stored.started_at
        return self.stored.trials()

    def open(self) -> StoredRun:
        """Return the folder, with its journal open."""
        if self.stored is None:
            self.stored = self._runs.create(self._plan, self.started_at)
        return self.stored

    def append_text(self, text: str) -> None:
        """Journal a trial."""
        self.open().journal.append_text(text)

    def sync(self) -> None:
        """Make the journal safe."""
        if self.stored is not None:
            self.stored.journal.sync()

    def close(self) -> None:
        """Let go of the journal."""
        if self.stored is not None:
            self.stored.close()


class TextLog:
    """The texts of the run's folder, which is made with the first of them."""

    def __init__(self, log: RunLog) -> None:
        self._log = log

    def append(self, record: Mapping[str, Any]) -> None:
        """Keep a text."""
        self._log.open().text_log.append(record)

    def sync(self) -> None:
        """Make the texts safe."""
        if self._log.stored is not None:
            self._log.stored.text_log.sync()
