"""Every criterion's interval on one scale, against what was required of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trialwise.documents.numbers import as_count, as_ends, as_observed, as_percent
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Decision, Finding
from trialwise.pages.finding_facts import pick_interval, pick_rate
from trialwise.reporters.html.parts import Outline, Tone, shape, tone
from trialwise.reporters.html.words import is_soft, shown
from trialwise.reporters.judged import CORRECTION_NAMES, corrections_of
from trialwise.reporters.page.axis import part, round_steps
from trialwise.reporters.page.markup import Markup, element, joined
from trialwise.stats.result_types import Undefined

if TYPE_CHECKING:
    from trialwise.stats.judged_decision import JudgedDecision

__all__ = ["interval_figure"]

#: Inputs of one criterion that are drawn, the worst first; the heat map holds the others.
MOST_INPUTS = 16
HEIGHT = 30
_MIDDLE = HEIGHT / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """One line of the chart."""

    name: str
    finding: Finding
    rate: float
    low: float
    high: float
    is_input: bool = False
    correction: JudgedDecision | None = None
    """What it is corrected by, where it is a rate corrected for a judge's errors."""

    @property
    def references(self) -> list[float]:
        """The rates it is held against."""
        return [rate for rate in (required_of(self.finding), _other(self.finding)) if rate]


def required_of(finding: Finding) -> float | None:
    """The rate a criterion is held against: required, or its baseline's."""
    threshold = finding.threshold
    if threshold is None:
        return None
    if threshold.required_rate is None and threshold.baseline is not None:
        return threshold.baseline.passed / threshold.baseline.trials
    return threshold.required_rate


def interval_figure(record: RunRecord, outline: Outline) -> Markup:
    """The chart, or nothing where no trial gave a rate."""
    findings = record.verdict.findings
    strips = [strip for finding in findings for strip in _strips(finding)]
    if not strips:
        return Markup("")
    low = _lowest(strips)
    rows = [_row(strip, low, record) for strip in strips]
    left_out = sum(max(0, len(f.by_input) - MOST_INPUTS) for f in findings)
    rest = f" {as_count(left_out, 'further input')} not drawn." if left_out else ""
    if any(strip.correction is not None for strip in strips):
        rest = f" Below what a judge says: the same, corrected for the judge's errors.{rest}"
    summary = (
        "Dots are observed rates, lines their intervals, upright strokes what is required; dashed "
        f"ones the rate it must be told from.{rest}"
    )
    axis = [
        element(
            "span",
            as_percent(round(tick, 4)),
            class_=_edge(part(tick, low, 1.0)),
            style=f"left:{_at(tick, low)}",
        )
        for tick in _ticks(low)
    ]
    rows.append(
        element("li", element("span", *axis, class_="xticks"), class_="axis", aria_hidden="true")
    )
    return element(
        "figure",
        element("figcaption", outline.heading("Rates against requirements"), element("p", summary)),
        element("ol", *rows, class_="strips"),
        class_="figure",
    )


def _strips(finding: Finding) -> Iterator[Strip]:
    strip = _strip(finding, finding.criterion)
    if strip is not None:
        yield strip
        yield from _corrected(strip, list(corrections_of(finding)))
    inputs = [(part, _strip(part, part.input_id or "")) for part in finding.by_input]
    order = (Decision.FAIL, None, Decision.INCONCLUSIVE, Decision.PASS)
    drawn = [one for _, one in inputs if one is not None]
    drawn.sort(key=lambda one: (order.index(one.finding.decision), one.rate))
    for one in drawn[:MOST_INPUTS]:
        yield one
        # The correction that leaves it open, or else either: two lines for each input suffice.
        yield from _corrected(one, [one.finding.judged] if one.finding.judged else [])


def _corrected(judged: Strip, corrections: Sequence[JudgedDecision]) -> Iterator[Strip]:
    """What is left of a judged rate."""
    for one in corrections:
        if not isinstance(one.corrected, Undefined):
            yield replace(
                judged,
                name=f"corrected, {CORRECTION_NAMES[one.correction]}",
                rate=one.corrected.rate,
                low=one.corrected.interval.low,
                high=one.corrected.interval.high,
                correction=one,
            )


def _strip(finding: Finding, name: str) -> Strip | None:
    rate, interval = pick_rate(finding), pick_interval(finding)
    if rate is None:
        return None
    low, high = (rate, rate) if interval is None else (interval.low, interval.high)
    return Strip(
        name=name,
        finding=finding,
        rate=rate,
        low=low,
        high=high,
        is_input=finding.input_id is not None,
    )


def _other(finding: Finding) -> float | None:
    return finding.threshold.alternative_rate if finding.threshold is not None else None


def _lowest(strips: Sequence[Strip]) -> float:
    """Where the scale begins: at 0, or where nothing below it is lost."""
    least = min(min(strip.low, strip.rate, *strip.references) for strip in strips)
    return 0.0 if least < 0.4 else math.floor(20 * (least - 0.02)) / 20


def _ticks(low: float) -> list[float]:
    return round_steps(low, 1.0, most=6)


def _row(strip: Strip, low: float, record: RunRecord) -> Markup:
    decision, label = shown(record, strip.finding)
    soft = bool(label or is_soft(record) or strip.finding.advisory)
    interval = pick_interval(strip.finding)
    of, part_of = as_count(strip.finding.tally.trials, "trial"), " input" if strip.is_input else ""
    if strip.correction is not None:
        found = strip.correction.corrected
        assert not isinstance(found, Undefined)
        decision, interval, part_of = (
            strip.correction.decision,
            found.interval,
            f"{part_of} corrected",
        )
        of = as_count(found.confusion.labels, "label")
    kind = tone(decision)
    hollow = " hollow" if decision is Decision.PASS and soft else ""
    said = as_observed(strip.rate)
    return element(
        "li",
        element("span", element("bdi", strip.name), class_="name"),
        element("span", _picture(strip, low, kind), class_="picture"),
        element(
            "span",
            element("b", said),
            f" {as_ends(interval)}" if interval is not None else None,
            element("span", f" {'by' if strip.correction else 'of'} {of}", class_="of"),
            class_="value",
        ),
        class_=f"strip {kind}{hollow}{part_of}",
    )


def _picture(strip: Strip, low: float, kind: Tone) -> Markup:
    grid = [
        element("line", **_upright(tick, low, 0, HEIGHT), class_="grid") for tick in _ticks(low)
    ]
    required, other = required_of(strip.finding), _other(strip.finding)
    marks = []
    if other is not None:
        marks.append(element("line", **_upright(other, low, 4, HEIGHT - 4), class_="other"))
    if required is not None:
        marks.append(element("line", **_upright(required, low, 2, HEIGHT - 2), class_="need"))
    whisker = [
        element(
            "line",
            x1=_at(strip.low, low),
            x2=_at(strip.high, low),
            y1=_MIDDLE,
            y2=_MIDDLE,
            class_="whisker",
        ),
        *(
            element("line", **_upright(end, low, _MIDDLE - 5, _MIDDLE + 5), class_="whisker cap")
            for end in (strip.low, strip.high)
        ),
    ]
    dot = element(
        "svg",
        element("g", shape(kind), transform="translate(-6.8 -6.8) scale(.85)"),
        x=_at(strip.rate, low),
        y=_MIDDLE,
        class_="point",
    )
    return element(
        "svg",
        element("title", _said(strip)),
        *grid,
        *marks,
        joined(whisker if strip.high > strip.low else []),
        dot,
        width="100%",
        height=HEIGHT,
        class_="hit",
        aria_hidden="true",
        focusable="false",
    )


def _said(strip: Strip) -> str:
    finding, found = strip.finding, strip.correction
    word = finding.label or (finding.decision.value if finding.decision else "REFUSED")
    interval = pick_interval(finding)
    if found is not None and not isinstance(found.corrected, Undefined):
        word, interval = found.decision.value, found.corrected.interval
    parts = [f"{strip.name}: {word}", f"rate {as_observed(strip.rate)}"]
    if interval is not None:
        parts.append(f"interval {as_ends(interval)} %")
    required = required_of(finding)
    if required is not None:
        parts.append(f"held against {as_percent(round(required, 4))}")
    return ", ".join(parts)


def _edge(place: float) -> str | None:
    """How a label at an end of the scale keeps within it."""
    if place < 0.04:
        return "start"
    return "end" if place > 0.96 else None


def _upright(value: float, low: float, top: float, bottom: float) -> dict[str, object]:
    where = _at(value, low)
    return {"x1": where, "x2": where, "y1": top, "y2": bottom}


def _at(value: float, low: float) -> str:
    return f"{100 * part(value, low, 1.0):.2f}%"
