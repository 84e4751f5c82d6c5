"""Results as a notebook shows them: the verdict, a table, and what a reader must not miss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from trialwise.documents.blocks import (
    Block,
    Cell,
    Details,
    Document,
    Items,
    Name,
    Table,
    build_table,
)
from trialwise.documents.numbers import as_count, as_percent
from trialwise.documents.phrases import keep_few
from trialwise.documents.printable import cut_middle
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Decision, Finding
from trialwise.pages.finding_facts import (
    find_required,
    find_usual_level,
    pick_interval,
    pick_tally,
    write_interval,
    write_rate,
)
from trialwise.pages.interval_strips import find_scale_start, make_strip
from trialwise.pages.result_lines import describe_lines
from trialwise.pages.results import list_attention
from trialwise.pages.suite_totals import (
    decide_suite,
    list_spent,
    pick_suite_status,
    require_runs,
    sum_spending,
)
from trialwise.pages.verdict_meaning import (
    explain_verdict,
    is_measured,
    make_badge,
    make_finding_badge,
    make_summary_badge,
)
from trialwise.procedures.registry import procedure_of

#: Rows of a table and notes of a list; a notebook is no report.
_MOST_ROWS, _MOST_NOTES = 40, 12
#: Characters of an input or a reply.
_TEXT = 160


def summarize_run(record: RunRecord) -> Document:
    """One run: its verdict, a row for each criterion, and what a reader must not miss."""
    verdict = record.verdict
    about = [("", verdict.claim.about(one.inputs)) for one in verdict.experiments]
    notes = [] if is_measured(record) else list_attention(verdict)
    return Document(
        kind="Run",
        title=verdict.contract,
        badge=make_summary_badge(record),
        lead=explain_verdict(record),
        facts=(*(about if len(about) == 1 else ()), *_list_spent([record])),
        blocks=(
            _tabulate_findings(record),
            *_fold_notes("Needs attention", notes, is_open=True),
            *_fold_notes("Failures", list(_list_failures(record))),
        ),
    )


def summarize_suite(records: Sequence[RunRecord]) -> Document:
    """Summarize several runs: a row for each contract."""
    several = require_runs(records)
    verdicts = [one.verdict for one in several]
    table = build_table(
        "Contracts",
        several[:_MOST_ROWS],
        ("contract", lambda one: Name(one.verdict.contract)),
        ("verdict", make_summary_badge),
        ("meaning", explain_verdict),
        ("trials", lambda one: f"{len(one.trials):,}"),
        words=(0, 1, 2),
        notes=_count_rest(several),
        is_headed=False,
    )
    notes = [
        f"{one.verdict.contract}: {note}" for one in several for note in list_attention(one.verdict)
    ]
    return Document(
        kind="Suite",
        title="suite",
        badge=make_badge(decide_suite(verdicts), pick_suite_status(verdicts).value),
        lead=f"{as_count(len(several), 'contract')}; the suite has the worst of their verdicts",
        facts=tuple(_list_spent(several)),
        blocks=(table, *_fold_notes("Needs attention", notes, is_open=True)),
    )


# --- Tables -----------------------------------------------------------------------------------


def _tabulate_findings(record: RunRecord) -> Table:
    """Tabulate a row for each criterion, and for each input that did not pass on its own."""
    parts = [
        part
        for one in record.verdict.findings
        for part in (one, *(part for part in one.by_input if part.decision is not Decision.PASS))
    ]
    strips = [make_strip(record, one, "") for one in parts]
    span = (find_scale_start(strip for strip in strips if strip is not None), 1.0)

    def draw(finding: Finding) -> Cell:
        strip = make_strip(record, finding, "") if pick_interval(finding) is not None else None
        return "" if strip is None else replace(strip, span=span, others=(), hint="")

    def write_required(finding: Finding) -> str:
        required = find_required(finding)
        if required is None or procedure_of(finding).decides_mean:
            return "" if required is None else f"{required:g}"
        return as_percent(round(required, 4))

    usual, lines = find_usual_level(record.verdict), describe_lines(record.verdict)
    below = (f"{line.name}: {text}" for line in lines[:_MOST_ROWS] for text in line.below)
    return build_table(
        "Criteria",
        parts[:_MOST_ROWS],
        ("criterion", _write_name),
        ("verdict", lambda one: make_finding_badge(record, one)),
        ("rate", write_rate),
        (f"{usual} interval".strip(), lambda one: write_interval(one, "", usual)),
        ("", draw),
        ("held against", write_required),
        ("trials", lambda one: f"{pick_tally(one).trials:,}"),
        words=(0, 1, 4),
        notes=(*_count_rest(parts), *below),
        is_headed=False,
    )


def _write_name(finding: Finding) -> Cell:
    input_id = finding.input_id
    return Name(finding.criterion) if input_id is None else ("input ", Name(input_id))


# --- Around them ------------------------------------------------------------------------------


def _list_spent(records: Sequence[RunRecord]) -> Iterator[tuple[str, str | None]]:
    spent = sum_spending([one.verdict for one in records])
    yield "trials", as_count(spent.trials, "trial")
    yield from [one for one in list_spent(spent) if one[0] != "tokens"]


def _list_failures(record: RunRecord) -> Iterator[str]:
    """List the most frequent reasons of what did not pass, each with one example."""
    for entry in describe_lines(record.verdict, record):
        for group in entry.failures[:3] if entry.is_red else ():
            example = f": {group.explanation}" if group.explanation else ""
            texts = [f"{label}: {cut_middle(text, _TEXT)}" for label, text in group.exchange]
            texts = [f"input {group.input_id}", *texts, *filter(None, [group.raised_at])]
            yield f"{entry.name}: {group.count:,} × {group.title}{example} ({'; '.join(texts)})"


def _count_rest(rows: Sequence[object]) -> tuple[str, ...]:
    left = len(rows) - _MOST_ROWS
    return (f"and {left:,} more rows",) if left > 0 else ()


def _fold_notes(title: str, notes: Sequence[str], *, is_open: bool = False) -> Iterator[Block]:
    if notes:
        items = Items(items=keep_few(notes, _MOST_NOTES))
        yield Details(summary=f"{title} ({len(notes):,})", blocks=(items,), is_open=is_open)
