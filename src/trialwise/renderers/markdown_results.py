"""Markdown for a step summary or a comment on a change: short, bounded, and inert."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trialwise.documents.numbers import as_count
from trialwise.documents.results import (
    MOST_GROUPS,
    Figures,
    LineKind,
    ResultLine,
    RunResults,
    Status,
    SuiteResults,
)
from trialwise.renderers.markdown_text import (
    LONGEST_SENTENCE,
    MOST_BYTES,
    SIGNS,
    escape,
    fold_lines,
    limit_lines,
    marker,
    write_code,
    write_inline,
)


def render_markdown(suite: SuiteResults) -> str:
    """Render the results of a suite as GitHub-flavoured Markdown of at most 60 kB.

    What needs attention is kept before tables, and tables before details; what does not fit is
    counted. The first line is a hidden marker by which a comment can be found and replaced.
    """
    heading = f"## {SIGNS[suite.status]} {suite.status}: {write_inline(suite.name)}"
    head = f"{marker(suite.name)}\n{heading}\n\n{escape(suite.totals)}"
    tables = [_write_contract(run) for run in suite.runs]
    notes = _write_attention(suite)
    failing = [line for line in suite.results if line.failures and line.kind is not LineKind.INPUT]
    told = [line for run in suite.runs for line in run.lines if line.details]
    details = [*map(_write_details, failing), *map(_write_more, told), _write_basis(suite)]
    return _fit(head, [tables, [notes] if notes else [], details])


def _write_contract(run: RunResults) -> str:
    heading = f"### {SIGNS[run.status]} {write_inline(run.contract)}: {run.status}"
    interval = f"{run.level} interval".strip()
    top = [
        f"| criterion | verdict | rate | {interval} | held against | trials | why |",
        "|:--|:--|--:|:--|:--|--:|:--|",
    ]
    # An input that passes needs no line of its own.
    lines = [
        line
        for line in run.results
        if line.kind is not LineKind.INPUT or line.status is not Status.PASS
    ]
    rows = limit_lines(map(_write_row, (*lines, *run.reported)), "| … and {} more | | | | | | |")
    return "\n".join([heading, "", *top, *rows, "", *_list_claims(run)]).rstrip()


def _list_claims(run: RunResults) -> Iterator[str]:
    """List whom the verdicts speak of, by criterion where they differ, and what a sign means."""
    claims: dict[str, list[str]] = {}
    for line in run.results:
        if line.kind is LineKind.CRITERION and line.claim:
            claims.setdefault(line.claim, []).append(line.name)
    if any(line.figures is not None and "≈" in line.figures.interval for line in run.results):
        yield "≈ marks an interval by Wilson's method, which is approximate.  "
    for claim, names in claims.items():
        whose = "This is" if len(claims) == 1 else f"**{write_inline(', '.join(names))}**:"
        yield f"{whose} {write_inline(claim, LONGEST_SENTENCE)}.  "


def _write_row(line: ResultLine) -> str:
    figures = line.figures or Figures()
    cells = (
        write_inline(line.name),
        f"{_pick_sign(line)} {write_inline(line.word)}",
        # Figures are numbers that a page has written; nothing in them can be active.
        figures.rate,
        figures.interval_cell,
        figures.required,
        "" if figures.trials is None else f"{figures.trials:,}",
        write_inline(_write_why(line), LONGEST_SENTENCE),
    )
    return f"| {' | '.join(cells)} |"


def _write_why(line: ResultLine) -> str:
    """Write why a line has its status, and what stands below it elsewhere."""
    reason = line.reason or line.statement
    return "; ".join([reason, *(text for text in line.below if text not in reason)])


def _pick_sign(line: ResultLine) -> str:
    """Pick the sign of a line; a cross is kept for what breaks the verdict."""
    if line.kind is LineKind.REPORTED:
        return "ℹ️"
    breach = line.advisory and line.status is Status.FAIL
    return SIGNS[Status.INCONCLUSIVE if breach else line.status]


def _write_attention(suite: SuiteResults) -> str:
    notes = [
        f"- **{write_inline(run.contract)}**: {write_inline(note, LONGEST_SENTENCE)}"
        for run in suite.runs
        for note in run.attention
    ]
    if not notes:
        return ""
    return "\n".join(["### Needs attention", "", *limit_lines(notes, "- **{} more**")])


def _write_details(line: ResultLine) -> str:
    failed = sum(group.count for group in line.failures)
    summary = f"{line.title}: {as_count(failed, 'trial')} failed"
    items = []
    for group in line.failures[:MOST_GROUPS]:
        what = f"{write_inline(group.title)}: {write_inline(group.explanation, LONGEST_SENTENCE)}"
        where = f"input {write_inline(group.input_id)}, trial {group.trial}, seed {group.seed}"
        texts = [
            f"<br>{label} {write_code(text)}" for label, text in group.exchange if text.strip()
        ]
        raised = f"<br>{write_code(group.raised_at)}" if group.raised_at else ""
        items.append(f"- **{group.count} ×** {what} ({where}){''.join(texts)}{raised}")
    if line.other_failures:
        items.append(f"- **{line.other_failures} ×** other reasons")
    items += [f"- check {write_inline(one.sentence, LONGEST_SENTENCE)}" for one in line.checks]
    return fold_lines(summary, limit_lines(items, "- **{} more reasons**"))


def _write_more(line: ResultLine) -> str:
    """Write what a line says of each input."""
    items = [f"- {write_inline(one, LONGEST_SENTENCE)}" for one in line.details]
    return fold_lines(f"{line.title}: each input", limit_lines(items, "- **{} more**"))


def _write_basis(suite: SuiteResults) -> str:
    """Write what is needed to find the runs again, and how often the suite as a whole errs."""
    items = []
    for run in suite.runs:
        where = f", kept in {write_code(run.location)}" if run.location else ""
        name = write_inline(run.contract)
        items.append(f"- **{name}**: run {write_code(run.run_id)}, seed {run.seed}{where}")
    items += [f"- {escape(sentence)}" for sentence in suite.bounds]
    return fold_lines("Runs and error rates", limit_lines(items, "- **{} more**"))


def _fit(head: str, parts: Sequence[Sequence[str]]) -> str:
    """Return everything that fits: of tables, attention and details the attention first."""
    tables, notes, details = parts
    room = MOST_BYTES - len(head.encode()) - 200
    kept: list[list[str]] = []
    left = 0
    for blocks in (notes, tables, details):
        mine = []
        for block in blocks:
            size = len(block.encode()) + 2
            if size <= room:
                room -= size
                mine.append(block)
            else:
                left += 1
        kept.append(mine)
    notice = [f"_{as_count(left, 'part')} left out to keep this short._"] if left else []
    return "\n\n".join([head, *kept[1], *kept[0], *kept[2], *notice]) + "\n"
