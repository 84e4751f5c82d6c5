"""The trials of a journal: read line by line, each checked against the plan of its run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trialwise.errors import JournalDamaged
from trialwise.model.plan import Plan
from trialwise.model.trial import Trial
from trialwise.stores.journal import stream_journal


def read_trials(path: Path, plan: Plan) -> tuple[Trial, ...]:
    """Return every trial of a journal, in the order of inputs, experiment by experiment.

    Args:
        path: The journal.
        plan: What was run.

    Raises:
        JournalDamaged: A line is not as written, is no trial of the plan, or contradicts an
            earlier one.
    """
    criteria = {
        one.name: tuple(c.criterion for c in plan.criteria_of(one.name)) for one in plan.experiments
    }
    found: dict[str, dict[int, Trial]] = {name: {} for name in criteria}
    replies: dict[str, str] = {}
    for number, line in enumerate(stream_journal(path), start=1):
        _share_reply(line, replies)
        trial = _read_trial(line, criteria)
        if trial is None:
            raise JournalDamaged(path, line=number)
        kept = found[trial.experiment].setdefault(trial.index, trial)
        if kept is not trial and kept != trial:
            raise JournalDamaged(path, line=number)
    return tuple(trials[index] for trials in found.values() for index in sorted(trials))


#: So many different replies are looked for again: a service either gives few, or all are its own.
_SHARED_REPLIES = 1000


def _share_reply(line: dict[str, Any], known: dict[str, str]) -> None:
    """Let equal replies of a journal be one text: there may be a million of them."""
    reply = line.get("reply")
    if type(reply) is str:
        if len(known) < _SHARED_REPLIES:
            known.setdefault(reply, reply)
        line["reply"] = known.get(reply, reply)


def _read_trial(line: dict[str, Any], criteria: dict[str, tuple[str, ...]]) -> Trial | None:
    """Return the trial of one line, or None where it is none of the plan's."""
    try:
        names = criteria[line["x"]]
        trial = Trial.from_dict(line, experiment=line["x"], criteria=names)
        return trial if len(line["ok"]) == len(names) else None
    except (LookupError, TypeError, ValueError):
        return None
