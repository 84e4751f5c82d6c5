"""Every criterion's interval on one scale, against what was required of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from trialwise.documents.charts import Axis, Strip, StripRow, Strips
from trialwise.documents.numbers import as_count, as_ends, as_observed, as_percent
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Decision, Finding
from trialwise.pages.finding_facts import (
    find_alternative,
    find_required,
    find_usual_level,
    name_finding,
    pick_interval,
    pick_rate,
    write_interval,
    write_rate,
)
from trialwise.pages.judge_facts import CORRECTION_NAMES, list_corrections
from trialwise.pages.path_chart import INKS
from trialwise.pages.verdict_meaning import MEASURED, make_finding_badge
from trialwise.procedures.registry import procedure_of
from trialwise.stats.judged_decision import JudgedDecision
from trialwise.stats.result_types import Interval, Undefined

#: Inputs of one criterion that are drawn, the worst first; the heat map holds the others.
MOST_INPUTS = 16
_ORDER = (Decision.FAIL, None, Decision.INCONCLUSIVE, Decision.PASS)


def build_strips(record: RunRecord) -> Strips | None:
    """Build the chart, or None where no trial gave a rate."""
    findings = record.verdict.findings
    usual = find_usual_level(record.verdict)
    rows = [row for finding in findings for row in _list_rows(record, finding, usual)]
    if not rows:
        return None
    low = find_scale_start(row.strip for row in rows)
    left_out = sum(max(0, len(one.by_input) - MOST_INPUTS) for one in findings)
    rest = f" {as_count(left_out, 'further input')} not drawn." if left_out else ""
    if any(row.strip.dashed for row in rows):
        rest = f" Below what a judge says: the same, corrected for the judge's errors.{rest}"
    return Strips(
        heading="Rates against requirements",
        summary=(
            f"A dot is the observed rate, a line its {usual} interval, an upright stroke the "
            "required rate. "
            f"A dashed stroke is the rate that a PASS still allows for.{rest}"
        ),
        axis=Axis(low=low, high=1.0, label="rate", unit="rate"),
        rows=tuple(replace(row, strip=replace(row.strip, span=(low, 1.0))) for row in rows),
    )


def find_scale_start(strips: Iterable[Strip]) -> float:
    """Return where the scale of several rates begins: at 0, or where nothing below it is lost."""
    known = [
        value
        for strip in strips
        for value in (strip.low, strip.value, strip.need or None, *filter(None, strip.others))
        if value is not None
    ]
    least = min(known, default=0.0)
    return 0.0 if least < 0.4 else math.floor(20 * (least - 0.02)) / 20


def map_strips(record: RunRecord) -> dict[str, Strip]:
    """Map the name of each criterion and input to its interval, all on one scale."""
    made = {
        name_finding(part): make_strip(part, make_finding_badge(record, part).word)
        for one in record.verdict.findings
        for part in (one, *one.by_input)
        if pick_interval(part) is not None
    }
    strips = {name: strip for name, strip in made.items() if strip is not None}
    span = (find_scale_start(strips.values()), 1.0)
    return {name: replace(strip, span=span, others=(), hint="") for name, strip in strips.items()}


def make_strip(finding: Finding, word: str) -> Strip | None:
    """Place the interval of a finding on a scale from 0 to 1; None where no trial gave a rate.

    Args:
        finding: The finding.
        word: What it is called; a PASS under another word says less than it seems to.
    """
    rate, interval = pick_rate(finding), pick_interval(finding)
    if rate is None:
        return None
    low, high = (rate, rate) if interval is None else (interval.low, interval.high)
    required, alternative = find_required(finding), find_alternative(finding)
    name = finding.criterion if finding.input_id is None else finding.input_id
    return Strip(
        low=low,
        value=rate,
        high=high,
        ink="quiet" if word == MEASURED else INKS[finding.decision],
        span=(0.0, 1.0),
        need=required,
        others=() if alternative is None else (alternative,),
        soft=finding.decision is Decision.PASS
        and (bool(finding.advisory) or word != finding.decision),
        hint=_write_hint(f"{name}: {word}", rate, interval, required),
    )


def _write_hint(start: str, rate: float, interval: Interval | None, required: float | None) -> str:
    ends = "" if interval is None else f", interval {as_ends(interval)} %"
    held = "" if required is None else f", held against {as_percent(round(required, 4))}"
    return f"{start}, rate {as_observed(rate)}{ends}{held}"


def _list_rows(record: RunRecord, finding: Finding, usual: str) -> Iterator[StripRow]:
    row = _make_row(record, finding, usual)
    if row is not None:
        yield row
        yield from _list_corrected(finding, row, list(list_corrections(finding)))
    found = [(part, _make_row(record, part, usual)) for part in finding.by_input]
    drawn = [(part, one) for part, one in found if one is not None]
    drawn.sort(key=lambda pair: (_ORDER.index(pair[0].decision), pair[1].strip.value))
    for part, one in drawn[:MOST_INPUTS]:
        yield one
        # The correction that leaves it open, or else either: two lines for each input suffice.
        yield from _list_corrected(part, one, [part.judged] if part.judged else [])


def _make_row(record: RunRecord, finding: Finding, usual: str) -> StripRow | None:
    strip = make_strip(finding, make_finding_badge(record, finding).word)
    if strip is None:
        return None
    return StripRow(
        name=finding.criterion if finding.input_id is None else finding.input_id,
        strip=strip,
        value=write_rate(finding)
        if procedure_of(finding).decides_mean
        else as_observed(strip.value),
        interval=write_interval(finding, "", usual),
        note=f"of {as_count(finding.tally.trials, 'trial')}",
        depth=0 if finding.input_id is None else 1,
    )


def _list_corrected(
    finding: Finding, row: StripRow, corrections: Sequence[JudgedDecision]
) -> Iterator[StripRow]:
    """List what is left of a rate that a judge gave."""
    for one in corrections:
        found = one.corrected
        if isinstance(found, Undefined):
            continue
        name = f"corrected, {CORRECTION_NAMES[one.correction]}"
        said, required = f"{name}: {one.decision}", find_required(finding)
        yield replace(
            row,
            name=name,
            strip=replace(
                row.strip,
                low=found.interval.low,
                value=found.rate,
                high=found.interval.high,
                ink=INKS[one.decision],
                dashed=True,
                hint=_write_hint(said, found.rate, found.interval, required),
            ),
            value=as_observed(found.rate),
            interval=as_ends(found.interval),
            note=f"by {as_count(found.confusion.labels, 'label')}",
            depth=row.depth + 1,
        )
