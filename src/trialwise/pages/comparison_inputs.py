"""Each input under every arm: how often it passed, those first on which the arms differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from trialwise.documents.blocks import (
    Block,
    Cell,
    Column,
    Details,
    Name,
    Section,
    Table,
    Value,
    build_table,
)
from trialwise.documents.numbers import as_count, as_signed_points
from trialwise.documents.printable import cut_middle
from trialwise.model.run import RunRecord
from trialwise.pages.failure_groups import TrialIndex
from trialwise.procedures.comparing.comparison_findings import ArmRun, ComparisonVerdict

#: Inputs shown at once, those that take a click, and criteria that have a table.
_FIRST, _MOST, _CRITERIA = 20, 120, 12
_NAME, _ASKED = 80, 120

Counts = tuple[int, int]
"""Passed trials and trials."""


class InputRow(NamedTuple):
    """One input, with its counts under each arm."""

    input_id: str
    counts: Mapping[str, Counts]
    """By arm; an arm without a counted trial of the input has none."""

    def difference(self, against: str, arm: str) -> float | None:
        """Return how much more often it passed under one arm than under another."""
        if against not in self.counts or arm not in self.counts:
            return None
        (ours, of), (theirs, others) = self.counts[against], self.counts[arm]
        return (theirs * of - ours * others) / (of * others)


def count_inputs(criterion: str, arms: Sequence[ArmRun]) -> list[InputRow]:
    """Count each input of a criterion under every arm, those that differ most first.

    Args:
        criterion: Its name.
        arms: The runs of the arms, the control first.
    """
    counts = {one.label: _count_arm(criterion, one.record) for one in arms}
    inputs = dict.fromkeys(name for arm in arms for name in _list_inputs(criterion, arm.record))
    rows = [
        InputRow(name, {label: mine[name] for label, mine in counts.items() if name in mine})
        for name in inputs
    ]
    control, *others = [one.label for one in arms]

    def rank(row: InputRow) -> tuple[bool, float, float]:
        found = [row.difference(control, one) for one in others]
        known = [one for one in found if one is not None]
        # What cannot be compared comes before what is alike.
        is_alike = not any(known) and len(known) == len(others)
        lost, won = min(known, default=0.0), max(known, default=0.0)
        return is_alike, min(lost, 0.0), -won

    return sorted(rows, key=rank)


def _count_arm(criterion: str, record: RunRecord) -> Mapping[str, Counts]:
    index = TrialIndex(record)
    found = (one for one in record.verdict.findings if one.criterion == criterion)
    return {
        name: (passed, trials)
        for one in found
        for name, (passed, trials) in index.find_rows(one).tally_inputs().items()
        if trials
    }


def _list_inputs(criterion: str, record: RunRecord) -> Iterator[str]:
    """Yield the inputs that a criterion is about, asked or not."""
    names = {one.experiment for one in record.plan.criteria if one.criterion == criterion}
    for one in record.plan.experiments:
        if one.name in names:
            yield from one.input_ids


def build_arm_inputs(verdict: ComparisonVerdict, arms: Sequence[ArmRun]) -> Section | None:
    """Build a table for each criterion; None where nothing is known of the inputs.

    Args:
        verdict: What was concluded.
        arms: The runs of the arms.
    """
    criteria = list(dict.fromkeys(one.criterion for one in verdict.findings))
    tables = [(name, rows) for name in criteria if arms and (rows := count_inputs(name, arms))]
    if not tables:
        return None
    several = len(tables) > 1
    blocks: list[Block] = []
    for number, (name, rows) in enumerate(tables[:_CRITERIA]):
        parts = tuple(_list_tables(name, rows, arms))
        summary = f"{cut_middle(name, _NAME)}: {_count_differing(rows, arms)}"
        folded = Details(summary=summary, blocks=parts, is_open=not number)
        blocks += [folded] if several else parts
    left = len(tables) - _CRITERIA
    rest = f" {as_count(left, 'further criterion', 'further criteria')} not shown." * (left > 0)
    return Section(
        heading="Inputs",
        blocks=tuple(blocks),
        note=(
            "Passed of the counted trials of each input. Inputs on which the arms differ come "
            f"first, and of these the ones that a candidate lost.{rest}"
        ),
    )


def _count_differing(rows: Sequence[InputRow], arms: Sequence[ArmRun]) -> str:
    control, *others = [one.label for one in arms]
    differing = sum(any(row.difference(control, one) for one in others) for row in rows)
    return f"{differing:,} of {as_count(len(rows), 'input')} differ"


def _list_tables(
    criterion: str, rows: Sequence[InputRow], arms: Sequence[ArmRun]
) -> Iterator[Block]:
    yield _build_table(criterion, rows[:_FIRST], arms)
    further = rows[_FIRST:_MOST]
    if further:
        left = len(rows) - _MOST
        rest = f"; {left:,} more are in the journals" if left > 0 else ""
        summary = f"{as_count(len(further), 'further input')}{rest}"
        yield Details(summary=summary, blocks=(_build_table(criterion, further, arms),))


def _build_table(criterion: str, rows: Sequence[InputRow], arms: Sequence[ArmRun]) -> Table:
    control, *others = [one.label for one in arms]
    columns: list[Column[InputRow]] = [
        ("input", partial(_write_input, criterion=criterion, control=arms[0].record)),
        (
            Name(cut_middle(control, _NAME)),
            partial(_write_counts, arm=arms[0], criterion=criterion),
        ),
    ]
    for label, arm in zip(others, arms[1:], strict=True):
        write = partial(_write_counts, arm=arm, criterion=criterion)
        columns.append((Name(cut_middle(label, _NAME)), write))
        columns.append(("difference", partial(_write_difference, against=control, arm=label)))
    return build_table(f"Inputs of {cut_middle(criterion, _NAME)}", rows, *columns, is_headed=False)


def _write_input(row: InputRow, criterion: str, control: RunRecord) -> Cell:
    """Write the name of an input, and below it what was asked, where that is kept."""
    name = Name(cut_middle(row.input_id, _NAME))
    for one in control.plan.criteria:
        asked = control.texts.inputs.get((one.experiment, row.input_id))
        if one.criterion == criterion and asked is not None and asked.value != row.input_id:
            text = " ".join(asked.value.split())
            return name, Value(text="", note=cut_middle(text, _ASKED))
    return name


def _write_counts(row: InputRow, arm: ArmRun, criterion: str) -> Cell:
    if arm.label in row.counts:
        passed, trials = row.counts[arm.label]
        return f"{passed:,} of {trials:,}"
    if row.input_id not in _list_inputs(criterion, arm.record):
        return Value(text="–", note="no input of this arm")
    table = [one for one in arm.record.trials.tables if row.input_id in one.names]
    asked = any(one.names[number] == row.input_id for one in table for number in one.inputs)
    return Value(text="–", note="not measured" if asked else "not asked")


def _write_difference(row: InputRow, against: str, arm: str) -> Cell:
    found = row.difference(against, arm)
    if found is None:
        return "–"
    text = as_signed_points(found, digits=1)
    if not found:
        return text
    return Value(text=text, tone="pass" if found > 0 else "fail")
