"""What goes wrong with stored runs: another plan, or a record that cannot be written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trialwise.errors import RunNotFound
from trialwise.model.run import RunRecord
from trialwise.stores._files import StoreUnusable


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
        self, path: Path, doing: str, reason: OSError | str, record: RunRecord | None = None
    ) -> None:
        super().__init__(path, doing, reason)
        self.record = record
