"""The differences that a comparison decides on: a forest plot of them, and a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from trialwise.documents.blocks import Badge, Cell, Name, Table, Value, build_table
from trialwise.documents.charts import Axis, Strip, StripRow, Strips
from trialwise.documents.numbers import as_count, as_ends, as_level, as_observed, as_signed_points
from trialwise.documents.printable import cut_middle, make_visible, shorten
from trialwise.documents.results import Status
from trialwise.model.evidence import Tally
from trialwise.pages.criterion_charts import INKS
from trialwise.procedures.comparing.amount_types import AmountDifference, PreferenceFinding
from trialwise.procedures.comparing.findings import ComparisonFinding, ComparisonVerdict
from trialwise.procedures.comparing.words import name_outcome
from trialwise.stats.result_types import Interval

#: Rows of the plot and of the table; the others are counted.
_MOST_DRAWN, _MOST_ROWS = 60, 40
_NAME = 80
LABEL = 30
"""Characters of an arm's label in a row or a heading."""

#: Differences stand with one decimal everywhere, so that sentence, table and plot agree.
_write_points = partial(as_signed_points, digits=1)


def order_findings(verdict: ComparisonVerdict) -> list[ComparisonFinding]:
    """Return the findings by criterion as declared, so that candidates stand below each other."""
    return sorted(verdict.findings, key=lambda one: verdict.criteria.index(one.criterion))


def describe_difference(finding: ComparisonFinding) -> str:
    """Describe the difference in points and its interval; nothing where there is none."""
    if finding.difference is None:
        return ""
    return f"{_write_points(finding.difference)} {_write_ends(finding)}".rstrip()


def _write_ends(finding: ComparisonFinding) -> str:
    ends = finding.interval
    return "" if ends is None else f"[{', '.join(map(_write_points, ends))}]"


def as_p_value(value: float | None) -> str:
    """Write a p-value to three digits.

    >>> as_p_value(0.015625), as_p_value(1e-9), as_p_value(1.0)
    ('0.0156', '<0.0001', '1')
    """
    if value is None:
        return ""
    # More digits of a small p-value say nothing that anybody could check.
    return "<0.0001" if value < 0.0001 else f"{value:.3g}"


# --- The plot ---------------------------------------------------------------------------------


def build_forest(verdict: ComparisonVerdict) -> Strips | None:
    """Build the forest plot: a row for each criterion and candidate; None where nothing is known.

    Args:
        verdict: What was concluded.
    """
    # What has no difference has no place on the scale; the table names it.
    known = [one for one in order_findings(verdict) if one.difference is not None]
    if not known:
        return None
    reach = _find_reach(verdict)
    rows = tuple(_make_row(one, reach, verdict) for one in known[:_MOST_DRAWN])
    control, other = verdict.control.label, "candidate"
    if len(verdict.arms) == 2:
        other = verdict.candidates[0].label
    elif verdict.question.against == "all":
        # A row names two arms, "b against a": the one that is named first is the candidate.
        control, other = "second arm", "first arm"
    ends = tuple(f"{cut_middle(one, _NAME)} is better" for one in (control, other))
    return Strips(
        heading="Differences",
        summary=_summarize(verdict, len(known)),
        axis=Axis(low=-reach, high=reach, label="points", unit="points"),
        rows=rows,
        ends=(ends[0], ends[1]),
    )


def _summarize(verdict: ComparisonVerdict, known: int) -> str:
    levels = _list_levels(verdict.findings)
    stated = f" ({levels})" if levels else ""
    margins = any(_list_margins(one) for one in verdict.findings)
    left = len(verdict.findings) - min(known, _MOST_DRAWN)
    return (
        "A dot is the difference of the passing rates in points, a line its interval"
        f"{stated}, and the upright stroke no difference."
        + (" A dashed stroke is the margin." if margins else "")
        + (f" {as_count(left, 'row')} not drawn." if left else "")
    )


def _make_row(finding: ComparisonFinding, reach: float, verdict: ComparisonVerdict) -> StripRow:
    name = finding.criterion
    if len(verdict.arms) > 2:
        name = f"{name} · {name_arms(finding, verdict)}"
    return StripRow(
        name=cut_middle(name, _NAME),
        strip=_draw(finding, reach),
        value=_write_points(finding.difference or 0.0),
        interval=_write_ends(finding),
        note=name_outcome(finding),
    )


def name_arms(one: ComparisonFinding | AmountDifference, verdict: ComparisonVerdict) -> str:
    """Name the candidate of a row, and what it is compared with where that is not the control."""
    arm = shorten(make_visible(one.arm), LABEL)
    if verdict.question.against == "control":
        return arm
    return f"{arm} against {shorten(make_visible(one.against), LABEL)}"


def name_columns(verdict: ComparisonVerdict) -> tuple[str, str]:
    """Name the columns of both sides: by the arms where there are two, else by their part."""
    if len(verdict.arms) > 2:
        return "control", "candidate"
    first, second = (shorten(make_visible(one.label), LABEL) for one in verdict.arms)
    return first, second


def _draw(finding: ComparisonFinding, reach: float) -> Strip:
    gap = finding.difference or 0.0
    low, high = finding.interval or (gap, gap)
    interval = f", interval {_write_ends(finding)}" if finding.interval else ""
    return Strip(
        low=low,
        value=gap,
        high=high,
        # A colour is a decision, and what advises decides nothing.
        ink="quiet" if finding.advisory else INKS[finding.decision],
        span=(-reach, reach),
        need=0.0,
        others=_list_margins(finding),
        hint=f"{finding.criterion}: {name_outcome(finding)}, {_write_points(gap)} points{interval}",
    )


def _list_margins(finding: ComparisonFinding) -> tuple[float, ...]:
    """List the differences that the question draws a line at, other than 0."""
    margin = finding.margin
    if not margin or finding.question == "different":
        return ()
    if finding.question == "equivalent":
        return -margin, margin
    return (margin,) if finding.question == "better" else (-margin,)


def _find_reach(verdict: ComparisonVerdict) -> float:
    """Return how far the scale of the differences extends to either side of 0."""
    far = [
        abs(end)
        for one in verdict.findings
        if one.difference is not None
        for end in (*(one.interval or ()), one.difference, *_list_margins(one))
    ]
    # One scale for all rows, so that lengths can be compared, with 0 in the middle.
    return min(1.0, 1.1 * max(far, default=1.0)) or 1.0


# --- The table --------------------------------------------------------------------------------


def tabulate_differences(verdict: ComparisonVerdict, *, is_pictured: bool = False) -> Table:
    """Tabulate a row for each criterion and candidate.

    Args:
        verdict: What was concluded.
        is_pictured: Whether each row holds its interval as a picture, where no plot is shown.
    """
    # Two arms give their names to the columns; of more, each row names its own.
    several = len(verdict.arms) > 2
    before, after = name_columns(verdict)
    rows, reach = order_findings(verdict), _find_reach(verdict)
    left = len(rows) - _MOST_ROWS
    # One number of pairs stands in the head of the page, and needs no column.
    sizes = {one.pairs.pairs for one in rows if one.pairs is not None}
    return build_table(
        "Criteria",
        rows[:_MOST_ROWS],
        ("criterion", lambda one: Name(cut_middle(one.criterion, _NAME))),
        *([("arm", lambda one: Name(name_arms(one, verdict)))] if several else []),
        (f"{after}\nis", _make_badge),
        (before, lambda one: _write_side(one.control)),
        (after, lambda one: _write_side(one.candidate)),
        ("difference\nin points", describe_difference),
        *([("", lambda one: _draw(one, reach) if one.interval else "")] if is_pictured else []),
        *([("pairs", lambda one: f"{one.pairs.pairs:,}" if one.pairs else "")] * (len(sizes) > 1)),
        ("won", _count_won),
        ("p", lambda one: as_p_value(one.adjusted_p_value)),
        words=(*range(3 if several else 2), *((6 if several else 5,) if is_pictured else ())),
        notes=(*((f"and {left:,} more rows",) if left > 0 else ()), *_explain_columns(rows)),
        # A short table of its own needs no heading; one above a plot does.
        is_headed=not is_pictured,
    )


def _explain_columns(findings: Sequence[ComparisonFinding]) -> Iterator[str]:
    """Explain what a reader of the table cannot guess."""
    if levels := _list_levels(findings):
        alone = " of each row alone" if len(findings) > 1 else ""
        yield f"Intervals{alone}: {levels}."
    if any(map(_count_won, findings)):
        yield "won: pairs that only the candidate passed, of those that exactly one passed."


def _list_levels(findings: Sequence[ComparisonFinding]) -> str:
    found = {one.interval.confidence for one in findings if one.interval is not None}
    return ", ".join(as_level(one) for one in sorted(one for one in found if one is not None))


def _make_badge(finding: ComparisonFinding) -> Cell:
    word = name_outcome(finding)
    if finding.advisory:
        return Badge(word=f"{word} (reported)", tone="quiet")
    return Badge(word=word, tone=Status(finding.decision.value).tone)


def _write_side(side: Tally | None) -> str:
    return "–" if side is None or side.rate is None else as_observed(side.rate)


def _count_won(finding: ComparisonFinding) -> str:
    """Count how many of the pairs, or inputs, that differ the candidate won."""
    if finding.inputs_won is not None:
        return f"{finding.inputs_won}/{finding.discordant} inputs"
    return "" if finding.pairs is None else f"{finding.pairs.only_b}/{finding.pairs.discordant}"


# --- Which arm's replies a judge prefers: a row for each judge and two arms -----------------------


def tabulate_preferences(verdict: ComparisonVerdict) -> Table | None:
    """Tabulate how often a judge prefers a candidate's reply; None where no judge was asked.

    Args:
        verdict: What was concluded.
    """
    found = verdict.preferences
    if not found:
        return None
    # Without measured errors a second column would repeat the first.
    corrected = any(one.corrected_rate is not None for one in found)
    return build_table(
        "Which replies a judge prefers",
        found,
        ("criterion", lambda one: Name(cut_middle(one.criterion, _NAME))),
        ("arms", lambda one: Name(cut_middle(f"{one.arm} against {one.against}", 2 * _NAME))),
        ("preferred", lambda one: _write_rate(one.rate, one.interval)),
        *([("corrected", _write_corrected)] if corrected else []),
        ("won", lambda one: f"{one.wins:,}"),
        ("lost", lambda one: f"{one.losses:,}"),
        ("tied", _write_ties),
        ("no answer", lambda one: f"{one.missing:,}"),
        words=(0, 1),
        notes=(
            "A tie counts half. Above 50 % the judge prefers the candidate's replies.",
            *([_explain_correction(found)] if corrected else ()),
        ),
    )


def _write_corrected(found: PreferenceFinding) -> Cell:
    return _write_rate(found.corrected_rate, found.corrected_interval)


def _write_rate(rate: float | None, interval: Interval | None) -> Cell:
    if rate is None:
        return "–"
    return Value(text=as_observed(rate), note="" if interval is None else as_ends(interval))


def _write_ties(found: PreferenceFinding) -> Cell:
    turned = f"{found.inconsistent:,} by their place" if found.inconsistent else ""
    return Value(text=f"{found.ties:,}", note=turned)


def _explain_correction(found: tuple[PreferenceFinding, ...]) -> str:
    labels = max(one.labels for one in found)
    return (
        "Corrected is the share of decided pairs in which people would prefer the candidate, by "
        f"the judge's errors on {labels:,} labelled pairs."
    )
