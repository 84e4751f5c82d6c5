"""The trials of a journal: read line by line, each checked against the plan of its run."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

from trialwise.errors import JournalDamaged
from trialwise.model.plan import Plan
from trialwise.model.trial import Trial
from trialwise.stores.journal import stream_journal
from trialwise.stores.line_types import is_trial_line


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
    inputs = {one.name: frozenset(one.input_ids) for one in plan.experiments}
    found = {name: _Places() for name in criteria}
    replies: dict[str, str] = {}
    for number, line in enumerate(stream_journal(path), start=1):
        _share_reply(line, replies)
        trial = _read_trial(line, criteria)
        is_ours = trial is not None and trial.input_id in inputs[trial.experiment]
        if trial is None or not is_ours or not found[trial.experiment].put(trial):
            raise JournalDamaged(path, line=number)
    return tuple(chain.from_iterable(places.list_trials() for places in found.values()))


class _Places:
    """The trials of an experiment by their index, most of which come in order.

    A list holds those up to the first gap, since a dict of a million takes a tenth as much as they.
    """

    def __init__(self) -> None:
        self._in_order: list[Trial] = []
        self._later: dict[int, Trial] = {}

    def put(self, trial: Trial) -> bool:
        """Keep a trial; False where it contradicts an earlier one."""
        in_order, later = self._in_order, self._later
        if 0 <= trial.index < len(in_order):
            return in_order[trial.index] == trial
        kept = later.setdefault(trial.index, trial)
        while later and len(in_order) in later:
            in_order.append(later.pop(len(in_order)))
        return kept is trial or kept == trial

    def list_trials(self) -> list[Trial]:
        """Return the trials in the order of inputs."""
        if not self._later:
            return self._in_order
        return sorted((*self._in_order, *self._later.values()), key=lambda one: one.index)


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
        is_ours = is_trial_line(line) and len(line["ok"]) == len(names)
        return trial if is_ours else None
    except (LookupError, TypeError, ValueError):
        return None
