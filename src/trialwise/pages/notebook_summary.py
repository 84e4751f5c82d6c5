"""Results as a notebook shows them: the verdict, a table, and what a reader must not miss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from trialwise.documents.blocks import (
    Badge,
    Block,
    Cell,
    Details,
    Document,
    Items,
    Name,
    Row,
    Table,
    Tone,
)
from trialwise.documents.charts import Strip
from trialwise.documents.numbers import (
    as_count,
    as_duration,
    as_ends,
    as_money,
    as_observed,
    as_percent,
    as_points,
)
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Decision, Finding
from trialwise.pages.attention import list_attention
from trialwise.pages.comparison import (
    amount_words,
    comparison_title,
    difference_words,
    notes_of,
    pairing_words,
    probability_words,
    setup_words,
    won_words,
)
from trialwise.pages.finding_facts import pick_interval, pick_rate
from trialwise.pages.interval_strips import find_scale_start, make_strip
from trialwise.pages.path_chart import INKS
from trialwise.pages.requirements import find_required
from trialwise.pages.result_lines import describe_lines
from trialwise.pages.suite_totals import decide_suite, pick_suite_status, require_runs
from trialwise.pages.verdict_meaning import (
    explain_meaning,
    is_measured,
    is_soft,
    make_badge,
    make_finding_badge,
    pick_headline,
)
from trialwise.procedures.comparing.comparison_findings import (
    ComparisonFinding,
    ComparisonVerdict,
    Contrast,
)

__all__ = ["summarize_comparison", "summarize_run", "summarize_suite"]

#: Rows of a table and notes of a list; a notebook is no report.
_MOST_ROWS, _MOST_NOTES = 40, 12
_CONTRASTS: dict[Contrast, tuple[Tone, Decision]] = {
    Contrast.BETTER: ("pass", Decision.PASS),
    Contrast.WORSE: ("fail", Decision.FAIL),
    Contrast.NOT_TOLD_APART: ("open", Decision.INCONCLUSIVE),
}


def summarize_run(record: RunRecord) -> Document:
    """One run: its verdict, a row for each criterion, and what a reader must not miss."""
    verdict = record.verdict
    about = [("", verdict.claim.about(one.inputs)) for one in verdict.experiments]
    decision = None if is_measured(record) else verdict.decision
    notes = [] if is_measured(record) else list_attention(verdict)
    return Document(
        kind="Run",
        title=verdict.contract,
        badge=make_badge(decision, pick_headline(record)),
        lead=explain_meaning(record),
        facts=(*(about if len(about) == 1 else ()), *_list_spent([record])),
        blocks=(
            _tabulate_findings(record),
            *_fold_notes("Needs attention", notes, is_open=True),
            *_fold_notes("Failures", list(_list_failures(record))),
        ),
    )


def summarize_suite(records: Sequence[RunRecord]) -> Document:
    """Several runs: a row for each contract."""
    several = require_runs(records)
    verdicts = [one.verdict for one in several]
    rows = [
        Row(
            cells=(
                Name(one.verdict.contract),
                make_badge(one.verdict.decision, pick_headline(one), soft=is_soft(one)),
                explain_meaning(one),
                f"{len(one.trials):,}",
            )
        )
        for one in several
    ]
    notes = [
        f"{one.verdict.contract}: {note}" for one in several for note in list_attention(one.verdict)
    ]
    columns = ("contract", "verdict", "meaning", "trials")
    return Document(
        kind="Suite",
        title="suite",
        badge=make_badge(decide_suite(verdicts), pick_suite_status(verdicts).value),
        lead=f"{as_count(len(several), 'contract')}, as good as the worst of them",
        facts=tuple(_list_spent(several)),
        blocks=(
            _cut_table("Contracts", columns, rows, words=(0, 1, 2)),
            *_fold_notes("Needs attention", notes, is_open=True),
        ),
    )


def summarize_comparison(verdict: ComparisonVerdict) -> Document:
    """Two runs compared: a row for each criterion, what trials took, and what qualifies it."""
    margin = verdict.question.margin
    before, after = verdict.reference.label, verdict.candidate.label
    columns = ("criterion", f"{after} is", before, after, "difference in points", "", "won", "p")
    reach = _find_reach(verdict)
    rows = [_write_contrast(one, verdict, reach) for one in verdict.findings]
    took = [*map(amount_words, verdict.amounts), *setup_words(verdict)]
    return Document(
        kind="Comparison",
        title=comparison_title(verdict),
        badge=make_badge(verdict.decision),
        lead=verdict.statement,
        facts=(
            ("", pairing_words(verdict)),
            ("", verdict.about),
            ("", None if margin is None else f"margin {as_points(margin)}"),
        ),
        blocks=(
            _cut_table("Criteria", columns, rows, words=(0, 1, 5)),
            *_fold_notes("What trials took", took),
            *_fold_notes("Worth knowing", notes_of(verdict)),
        ),
    )


# --- Rows -------------------------------------------------------------------------------------


def _tabulate_findings(record: RunRecord) -> Table:
    parts = list(_list_findings(record))
    strips = [make_strip(record, one, one.input_id or one.criterion) for one in parts]
    low = find_scale_start(strip for strip in strips if strip is not None)
    rows = [
        _write_finding(record, one, None if strip is None else replace(strip, span=(low, 1.0)))
        for one, strip in zip(parts, strips, strict=True)
    ]
    columns = ("criterion", "verdict", "rate", "interval", "", "held against", "trials")
    return _cut_table("Criteria", columns, rows, words=(0, 1, 4))


def _list_findings(record: RunRecord) -> Iterator[Finding]:
    """Every criterion, and the inputs that did not pass where each is decided on its own."""
    for finding in record.verdict.findings:
        yield finding
        yield from (one for one in finding.by_input if one.decision is not Decision.PASS)


def _write_finding(record: RunRecord, finding: Finding, strip: Strip | None) -> Row:
    rate, interval, required = pick_rate(finding), pick_interval(finding), find_required(finding)
    of_input = finding.input_id is not None
    name = Name(finding.input_id if finding.input_id is not None else finding.criterion)
    return Row(
        cells=(
            ("input ", name) if of_input else name,
            make_finding_badge(record, finding),
            "–" if rate is None else as_observed(rate),
            "" if interval is None else as_ends(interval),
            "" if strip is None or interval is None else replace(strip, other=None, hint=""),
            "" if required is None else as_percent(round(required, 4)),
            f"{finding.tally.trials:,}",
        )
    )


def _write_contrast(finding: ComparisonFinding, verdict: ComparisonVerdict, reach: float) -> Row:
    tone, decision = _CONTRASTS[finding.contrast]
    rates = [
        "–" if side is None or side.rate is None else as_observed(side.rate)
        for side in (finding.reference, finding.candidate)
    ]
    picture: Cell = ""
    if finding.interval is not None and finding.difference is not None:
        low, high = finding.interval
        margin = verdict.question.margin
        picture = Strip(
            low=low,
            value=finding.difference,
            high=high,
            ink=INKS[decision],
            span=(-reach, reach),
            need=0.0,
            other=None if margin is None else -margin,
        )
    return Row(
        cells=(
            Name(finding.criterion),
            Badge(word=finding.contrast.value, tone=tone),
            *rates,
            difference_words(finding),
            picture,
            won_words(finding),
            probability_words(finding.adjusted_p_value),
        )
    )


def _find_reach(verdict: ComparisonVerdict) -> float:
    """How far the pictures of the differences extend to either side of 0."""
    far = [abs(end) for one in verdict.findings if one.interval is not None for end in one.interval]
    far += [] if verdict.question.margin is None else [verdict.question.margin]
    return min(1.0, 1.1 * max(far, default=1.0)) or 1.0


# --- Around them ------------------------------------------------------------------------------


def _list_spent(records: Sequence[RunRecord]) -> Iterator[tuple[str, str]]:
    spent = [one.verdict.spending for one in records]
    yield "trials", as_count(sum(one.trials for one in spent), "trial")
    took = sum(one.seconds for one in spent)
    if took:
        yield "time", as_duration(took)
    known = [one.usd for one in spent if one.usd is not None]
    if known:
        yield "cost", as_money(sum(known))


def _list_failures(record: RunRecord) -> Iterator[str]:
    """The most frequent reasons of what did not pass, each with one example."""
    for entry in describe_lines(record.verdict, record):
        for group in entry.failures[:3] if entry.is_red else ():
            example = f": {group.explanation}" if group.explanation else ""
            yield f"{entry.name}: {group.count:,} × {group.title}{example} (input {group.input_id})"


def _cut_table(
    heading: str, columns: tuple[Cell, ...], rows: Sequence[Row], *, words: tuple[int, ...]
) -> Table:
    left = len(rows) - _MOST_ROWS
    return Table(
        heading=heading,
        columns=columns,
        rows=tuple(rows[:_MOST_ROWS]),
        notes=(f"and {left:,} more rows",) if left > 0 else (),
        words=words,
        is_headed=False,
    )


def _fold_notes(title: str, notes: Sequence[str], *, is_open: bool = False) -> Iterator[Block]:
    if notes:
        left = len(notes) - _MOST_NOTES
        rest = (f"and {left:,} more",) if left > 0 else ()
        items = Items(items=(*notes[:_MOST_NOTES], *rest))
        yield Details(summary=f"{title} ({len(notes):,})", blocks=(items,), is_open=is_open)
