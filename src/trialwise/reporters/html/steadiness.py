"""How steady each run's session was: the four sub-scores as numbers and bars, the weakest first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

from trialwise.documents.numbers import as_count
from trialwise.model.gate import Stability
from trialwise.model.metrics import GateFinding, RunStability, StabilityEvidence
from trialwise.model.run import RunRecord
from trialwise.reporters.html.parts import details, glyph, prose, rest, table
from trialwise.reporters.page.markup import Markup, element, joined, shortened
from trialwise.stats.trace_stability import SUB_SCORES

__all__ = ["stability_table"]

#: Runs listed at once, and with those that can be unfolded; the rest is counted.
FIRST, MOST = 10, 200
_NAME = 80


def stability_table(record: RunRecord, gate: GateFinding, evidence: StabilityEvidence) -> Markup:
    """A row for each run, the least steady first; scores below their floor carry a mark.

    Args:
        record: The run.
        gate: The stability gate.
        evidence: What it is made of.
    """
    if not evidence.runs:
        return Markup("")
    worst = sorted(evidence.runs, key=lambda run: (run.weakest_score, _counted_sum(run, evidence)))
    passed = {one.index: one.passed for one in record.trials if one.experiment == gate.experiment}
    draw = partial(_row, exclude=evidence.exclude, passed=passed)
    # Names come last: on a phone a table begins with what it is about.
    columns = ("run", "weakest", *_heads(record, gate, evidence.exclude), "criteria", "input")
    drawn = partial(table, columns=columns, words=(0, 6, 7), wide=True, class_="scores")
    more = worst[FIRST:MOST]
    further = drawn("Further runs", rows=map(draw, more)) if more else None
    return joined(
        [
            drawn("Runs, the least steady first", rows=map(draw, worst[:FIRST])),
            details(as_count(len(more), "further run"), further) if more else None,
            rest(len(worst), MOST, "run"),
            prose(_legend(evidence), class_="note"),
        ]
    )


def _counted_sum(run: RunStability, evidence: StabilityEvidence) -> float:
    return math.fsum(getattr(run, name) for name in SUB_SCORES if name not in evidence.exclude)


def _heads(record: RunRecord, gate: GateFinding, exclude: Sequence[str]) -> list[Markup]:
    """Each sub-score with its floor, or that it is left out of the weakest."""
    asked = (
        one
        for one in record.plan.gates
        if isinstance(one, Stability) and one.sampling in (None, gate.experiment)
    )
    stability = next(asked, None)
    heads = []
    for name in SUB_SCORES:
        floor = f"floor {getattr(stability.floors, name):g}" if stability else ""
        notes = [part for part in (floor, "left out" if name in exclude else "") if part]
        small = element("small", ", ".join(notes)) if notes else None
        heads.append(joined([name.replace("_", " "), small]))
    return heads


def _row(
    run: RunStability, *, exclude: Sequence[str], passed: Mapping[int, bool]
) -> tuple[object, ...]:
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
    return (
        f"trial {run.trial}",
        f"{run.weakest_score:.3f}",
        *(
            _score(score, drifted=name in run.drift, weakest=name == weakest)
            for name, score in scores.items()
        ),
        "–" if outcome is None else "passed" if outcome else "failed",
        element("bdi", shortened(run.input_id, _NAME)),
    )


def _score(score: float, *, drifted: bool, weakest: bool) -> Markup:
    """A number over a bar; a diamond says that it is below its floor, bold that it is weakest."""
    number = f"{score:.3f}"
    flag = joined([glyph("open"), element("span", "below its floor ", class_="heard")])
    bar = element("span", style=f"width:{100 * min(1.0, max(0.0, score)):.1f}%")
    return joined(
        [
            element("span", flag, class_="open") if drifted else None,
            element("b", number) if weakest else number,
            element("span", bar, class_="spark", aria_hidden="true"),
        ]
    )


def _legend(evidence: StabilityEvidence) -> str:
    said = (
        "Four heuristics of each session, from 0 to 1. A diamond marks a score below its floor, "
        "which decides nothing; bold is the weakest of those that count."
    )
    if evidence.unmeasured:
        said += f" {as_count(evidence.unmeasured, 'run')} without a session to measure."
    if evidence.short:
        said += (
            f" {as_count(evidence.short, 'run')} of at most one turn and one call, which score 1 "
            "by definition."
        )
    return said
