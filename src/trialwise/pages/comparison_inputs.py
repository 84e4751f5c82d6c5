"""Each input under every arm: how often it passed, those first on which the arms differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from trialwise.documents import blocks
from trialwise.documents.numbers import as_count, as_signed_points
from trialwise.documents.printable import cut_middle
from trialwise.model.run import RunRecord
from trialwise.procedures.comparing.findings import ArmRun, ComparisonVerdict

#: Inputs shown at once, those that take a click, and criteria that have a table.
_FIRST, _MOST, _CRITERIA = 20, 120, 12
_NAME, _ASKED = 80, 120

Counts = tuple[int, int]
"""Passed trials and trials."""


class InputRow(NamedTuple):
    """One input, with its counts under each arm."""

    input_id: str
    asked: str
    """What was asked; empty where the runs keep no inputs."""
    counts: Mapping[str, Counts]
    """By arm; an arm without a counted trial of the input has none."""
    missing: Mapping[str, str]
    """Why an arm has none, by arm."""

    def difference(self, against: str, arm: str) -> float | None:
        """Return how much more often it passed under one arm than under another."""
        if against not in self.counts or arm not in self.counts:
            return None
        (ours, of), (theirs, others) = self.counts[against], self.counts[arm]
        return (theirs * of - ours * others) / (of * others)


def count_inputs(arms: Sequence[ArmRun]) -> dict[str, list[InputRow]]:
    """Count each input of each criterion under every arm, those that differ most first.

    Args:
        arms: The runs of the arms, the control first.
    """
    # Identifiers may be line numbers: they name one input only within one list.
    lists = {frozenset(one.fingerprint for one in arm.record.plan.experiments) for arm in arms}
    counted = [_ArmInputs.of(arm, same_lists=len(lists) == 1) for arm in arms]
    known = (one.criterion for arm in arms for one in arm.record.plan.criteria)
    found: dict[str, list[InputRow]] = {}
    for criterion in dict.fromkeys(known):
        inputs = dict.fromkeys(key for one in counted for key in one.planned.get(criterion, ()))
        rows = [_build_row(criterion, key, counted) for key in inputs]
        found[criterion] = sorted(rows, key=lambda row: _rank(row, [one.label for one in arms]))
    return found


def _build_row(criterion: str, key: str, arms: Sequence[_ArmInputs]) -> InputRow:
    named = next(one.names[key] for one in arms if key in one.names)
    place = criterion, key
    counts = {one.label: one.counts[place] for one in arms if place in one.counts}
    missing = {one.label: one.explain_missing(*place) for one in arms if one.label not in counts}
    return InputRow(*named, counts, missing)


def _rank(row: InputRow, labels: Sequence[str]) -> tuple[bool, float, float]:
    control, *others = labels
    differences = [row.difference(control, one) for one in others]
    known = [one for one in differences if one is not None]
    # What cannot be compared comes before what is alike.
    is_alike = not any(known) and len(known) == len(others)
    lost, won = min(known, default=0.0), max(known, default=0.0)
    # Losses first, then gains, the largest of each first.
    return is_alike, min(lost, 0.0), -won


@dataclass(frozen=True, slots=True, kw_only=True)
class _ArmInputs:
    """The inputs of one arm, by a key that is the same for one input under every arm."""

    label: str
    names: Mapping[str, tuple[str, str]]
    """The identifier and the text of each input."""
    planned: Mapping[str, Collection[str]]
    """The inputs that each criterion is about."""
    counts: Mapping[tuple[str, str], Counts]
    """By criterion and input."""
    tried: frozenset[str]

    @classmethod
    def of(cls, arm: ArmRun, *, same_lists: bool) -> _ArmInputs:
        """Count the trials of an arm in one walk.

        Args:
            arm: The arm.
            same_lists: Whether all arms have the same lists of inputs. Otherwise equal identifiers
                may stand for different inputs, and the texts say which inputs are the same.
        """
        plan, texts = arm.record.plan, arm.record.texts
        keys: dict[tuple[str, str], str] = {}
        names: dict[str, tuple[str, str]] = {}
        planned: dict[str, dict[str, None]] = {}
        for one in plan.experiments:
            for input_id in one.input_ids:
                asked = texts.inputs.get((one.name, input_id))
                text = "" if asked is None else asked.value
                # Without its text, an input is taken for no input of another arm.
                other = f"text {text}" if text else f"{arm.label} {one.name} {input_id}"
                key = f"{one.fingerprint} {input_id}" if same_lists else other
                keys[one.name, input_id] = key
                names[key] = input_id, text
                planned.setdefault(one.name, {})[key] = None
        counts, tried = _count_trials(arm.record, keys)
        return cls(
            label=arm.label,
            names=names,
            planned={one.criterion: planned[one.experiment] for one in plan.criteria},
            counts=counts,
            tried=tried,
        )

    def explain_missing(self, criterion: str, key: str) -> str:
        """Explain why there is no counted trial of an input."""
        if key not in self.planned.get(criterion, ()):
            return "no input of this arm"
        return "not measured" if key in self.tried else "not asked"


def _count_trials(
    record: RunRecord, keys: Mapping[tuple[str, str], str]
) -> tuple[Mapping[tuple[str, str], Counts], frozenset[str]]:
    """Count passed and counted trials by criterion and input; also return what was tried."""
    # One walk for all criteria: a run may hold a million trials.
    passed: Counter[tuple[str, str]] = Counter()
    trials: Counter[tuple[str, str]] = Counter()
    tried = set()
    for trial in record.trials.sketches():
        key = keys[trial.experiment, trial.input_id]
        # A trial that was not measured shows that the input was asked, and counts as nothing.
        tried.add(key)
        if record.plan.analysis.leaves_out(trial.error_class):
            continue
        for outcome in trial.outcomes:
            if not trial.is_unjudged(outcome):
                trials[outcome.criterion, key] += 1
                passed[outcome.criterion, key] += outcome.passed
    counts = {place: (passed[place], count) for place, count in trials.items()}
    return counts, frozenset(tried)


def build_arm_inputs(verdict: ComparisonVerdict, arms: Sequence[ArmRun]) -> blocks.Section | None:
    """Build a table for each criterion; None where nothing is known of the inputs.

    Args:
        verdict: What was concluded.
        arms: The runs of the arms.
    """
    counted = count_inputs(arms)
    tables = [(name, counted[name]) for name in verdict.criteria if counted.get(name)]
    if not tables:
        return None
    several = len(tables) > 1
    shown: list[blocks.Block] = []
    for number, (name, rows) in enumerate(tables[:_CRITERIA]):
        parts = tuple(_list_tables(name, rows, arms))
        summary = f"{cut_middle(name, _NAME)}: {_count_differing(rows, arms)}"
        folded = blocks.Details(summary=summary, blocks=parts, is_open=not number)
        shown += [folded] if several else parts
    left = len(tables) - _CRITERIA
    rest = f" {as_count(left, 'further criterion', 'further criteria')} not shown." * (left > 0)
    return blocks.Section(
        heading="Inputs",
        blocks=tuple(shown),
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
) -> Iterator[blocks.Block]:
    yield _build_table(criterion, rows[:_FIRST], arms)
    # A thousand rows would hide the few that differ, which come first.
    further = rows[_FIRST:_MOST]
    if further:
        left = len(rows) - _MOST
        rest = f"; {left:,} more are in the journals" if left > 0 else ""
        summary = f"{as_count(len(further), 'further input')}{rest}"
        yield blocks.Details(summary=summary, blocks=(_build_table(criterion, further, arms),))


def _build_table(criterion: str, rows: Sequence[InputRow], arms: Sequence[ArmRun]) -> blocks.Table:
    control = arms[0].label
    columns: list[blocks.Column[InputRow]] = [("input", _write_input)]
    for label in (one.label for one in arms):
        columns.append((blocks.Name(cut_middle(label, _NAME)), partial(_write_counts, arm=label)))
        if label != control:
            columns.append(("difference", partial(_write_difference, against=control, arm=label)))
    return blocks.build_table(
        f"Inputs of {cut_middle(criterion, _NAME)}", rows, *columns, is_headed=False
    )


def _write_input(row: InputRow) -> blocks.Cell:
    """Write the name of an input, and below it what was asked, where that is kept."""
    name, text = blocks.Name(cut_middle(row.input_id, _NAME)), " ".join(row.asked.split())
    if text in ("", row.input_id):
        return name
    return name, blocks.Value(text="", note=cut_middle(text, _ASKED))


def _write_counts(row: InputRow, arm: str) -> blocks.Cell:
    if arm in row.counts:
        passed, trials = row.counts[arm]
        return f"{passed:,} of {trials:,}"
    return blocks.Value(text="–", note=row.missing[arm])


def _write_difference(row: InputRow, against: str, arm: str) -> blocks.Cell:
    found = row.difference(against, arm)
    if not found:
        return "–" if found is None else as_signed_points(found, digits=1)
    tone: blocks.Tone = "pass" if found > 0 else "fail"
    return blocks.Value(text=as_signed_points(found, digits=1), tone=tone)
