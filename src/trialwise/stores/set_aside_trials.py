"""Trials that a broken check has looked at: none of them counts, and their replies stay.

    .trialwise/runs/2026-11-15T06-25-24Z-support-agent-3f9c/
        journal.broken-1.jsonl   the journal of a part of the run that a broken check has ended

A resumed run gives their replies to the repaired check, and does not ask the service for them.
"""

from __future__ import annotations

import os
from pathlib import Path

from trialwise.model.plan import Plan
from trialwise.model.trial import Trial
from trialwise.stores._files import disk_trouble
from trialwise.stores.journal import Journal
from trialwise.stores.journal_trials import read_trials

_NAME = "journal.broken-{}.jsonl"


def set_trials_aside(folder: Path) -> None:
    """Count no trial of a run that a broken check has ended: nothing was decided.

    Args:
        folder: The run's, whose journal this process holds.
    """
    path = folder / "journal.jsonl"
    number = 1
    while (aside := folder / _NAME.format(number)).exists():
        number += 1
    with disk_trouble(path, "set its trials aside"):
        os.replace(path, aside)
        Journal(path).close()


def is_set_aside(folder: Path) -> bool:
    """Return whether a broken check has ended a run, and no trial counts since."""
    is_empty = not os.path.getsize(folder / "journal.jsonl")
    return is_empty and any(folder.glob(_NAME.format("*")))


def read_set_aside(folder: Path, plan: Plan) -> list[Trial]:
    """Read the trials that broken checks have looked at, each once.

    Args:
        folder: The run's.
        plan: What was run.

    Raises:
        JournalDamaged: A line is not as written, or is no trial of the plan.
    """
    found: dict[tuple[str, int], Trial] = {}
    for path in sorted(folder.glob(_NAME.format("*"))):
        for one in read_trials(path, plan):
            found.setdefault((one.experiment, one.index), one)
    return [found[key] for key in sorted(found)]
