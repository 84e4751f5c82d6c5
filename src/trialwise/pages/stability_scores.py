"""How steady each run's session was: the four sub-scores as numbers and bars, weakest first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from trialwise.documents.blocks import Block, Cell, Details, Name, Prose, Row, Table, Value
from trialwise.documents.extent import cut_middle
from trialwise.documents.numbers import as_count
from trialwise.model.gate import Stability
from trialwise.model.metrics import GateFinding, RunStability, StabilityEvidence
from trialwise.model.run import RunRecord
from trialwise.stats.trace_stability import SUB_SCORES

__all__ = ["list_stability_blocks"]

#: Runs listed at once, and with those that can be unfolded; the rest is counted.
FIRST, MOST = 10, 200
_NAME = 80


def list_stability_blocks(
    record: RunRecord, gate: GateFinding, evidence: StabilityEvidence
) -> Iterator[Block]:
    """A row for each run, the least steady first; scores below their floor carry a mark.

    Args:
        record: The run.
        gate: The stability gate.
        evidence: What it is made of.
    """
    if not evidence.runs:
        return
    worst = sorted(evidence.runs, key=lambda run: (run.weakest_score, _sum_scores(run, evidence)))
    passed = {one.index: one.passed for one in record.trials if one.experiment == gate.experiment}
    rows = [_write_row(run, evidence.exclude, passed) for run in worst[:MOST]]
    # Names come last: on a phone a table begins with what it is about.
    columns = ("run", "weakest", *_list_heads(record, gate, evidence.exclude), "criteria", "input")

    def tabulate(heading: str, some: Sequence[Row]) -> Table:
        return Table(heading=heading, columns=columns, rows=tuple(some), words=(0, 6, 7))

    yield tabulate("Runs, the least steady first", rows[:FIRST])
    if rows[FIRST:]:
        more = as_count(len(rows) - FIRST, "further run")
        yield Details(summary=more, blocks=(tabulate("Further runs", rows[FIRST:]),))
    notes = [_write_legend(evidence)]
    if len(worst) > MOST:
        notes.insert(0, f"{as_count(len(worst) - MOST, 'further run')} not listed.")
    yield Prose(paragraphs=tuple(notes), tone="quiet")


def _sum_scores(run: RunStability, evidence: StabilityEvidence) -> float:
    return math.fsum(getattr(run, name) for name in SUB_SCORES if name not in evidence.exclude)


def _list_heads(record: RunRecord, gate: GateFinding, exclude: Sequence[str]) -> Iterator[Cell]:
    """Each sub-score with its floor, or that it is left out of the weakest."""
    asked = (
        one
        for one in record.plan.gates
        if isinstance(one, Stability) and one.sampling in (None, gate.experiment)
    )
    stability = next(asked, None)
    for name in SUB_SCORES:
        floor = f"floor {getattr(stability.floors, name):g}" if stability else ""
        notes = [part for part in (floor, "left out" if name in exclude else "") if part]
        yield Value(text=name.replace("_", " "), note=", ".join(notes))


def _write_row(run: RunStability, exclude: Sequence[str], passed: Mapping[int, bool]) -> Row:
    scores = {name: getattr(run, name) for name in SUB_SCORES}
    # The one that the weakest score is, where any of them is weak.
    weakest = next(
        (
            name
            for name, score in scores.items()
            if name not in exclude and score == run.weakest_score < 1
        ),
        None,
    )
    outcome = passed.get(run.trial)
    cells = [
        Value(
            text=f"{score:.3f}",
            share=score,
            tone="open" if name in run.drift else "plain",
            mark="below its floor" if name in run.drift else "",
            strong=name == weakest,
        )
        for name, score in scores.items()
    ]
    return Row(
        cells=(
            f"trial {run.trial}",
            f"{run.weakest_score:.3f}",
            *cells,
            "–" if outcome is None else "passed" if outcome else "failed",
            Name(cut_middle(run.input_id, _NAME)),
        )
    )


def _write_legend(evidence: StabilityEvidence) -> str:
    said = (
        "Four heuristics of each session, from 0 to 1. A diamond marks a score below its floor, "
        "which decides nothing; bold is the weakest of those that count."
    )
    if evidence.unmeasured:
        said += f" {as_count(evidence.unmeasured, 'run')} without a session to measure."
    if evidence.short:
        said += (
            f" {as_count(evidence.short, 'run')} of at most one turn and one call, which score "
            "1 by definition."
        )
    return said
