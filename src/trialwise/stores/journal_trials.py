"""The trials of a journal: read line by line, each checked against the plan of its run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trialwise.errors import JournalDamaged
from trialwise.model.plan import Plan
from trialwise.model.run_trials import Trials
from trialwise.model.trial_lines import read_trial
from trialwise.model.trial_table import TrialTable
from trialwise.stores.journal import JournalReader, stream_places


def read_trials(path: Path, plan: Plan, *, is_empty: bool = False) -> Trials:
    """Return every trial of a journal, in the order of inputs, experiment by experiment.

    Args:
        path: The journal.
        plan: What was run.
        is_empty: Whether the journal is known to have no line yet, so that it is not read.

    Raises:
        JournalDamaged: A line is not as written, is no trial of the plan, or contradicts an
            earlier one.
    """
    reader = JournalReader(path)
    tables = {
        one.name: TrialTable(one.name, [c.criterion for c in plan.criteria_of(one.name)], reader)
        for one in plan.experiments
    }
    inputs = {one.name: frozenset(one.input_ids) for one in plan.experiments}
    replies: dict[str, str] = {}
    lines = () if is_empty else stream_places(path)
    for number, (at, line) in enumerate(lines, start=1):
        if not _put_line(line, at, tables, inputs, replies):
            raise JournalDamaged(path, line=number)
    return Trials(tables.values())


def _put_line(
    line: dict[str, Any],
    at: int,
    tables: dict[str, TrialTable],
    inputs: dict[str, frozenset[str]],
    replies: dict[str, str],
) -> bool:
    """Hold the trial of one line; False where it is none of the plan's, or contradicts another."""
    try:
        table = tables[line["x"]]
        if table.put_line(line, at):
            return True
        _share_reply(line, replies)
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


#: So many different replies are looked for again: a service either gives few, or all are its own.
_SHARED_REPLIES = 1000


def _share_reply(line: dict[str, Any], known: dict[str, str]) -> None:
    """Let equal replies of a journal be one text: there may be a million of them."""
    reply = line.get("reply")
    if type(reply) is str:
        if len(known) < _SHARED_REPLIES:
            known.setdefault(reply, reply)
        line["reply"] = known.get(reply, reply)
