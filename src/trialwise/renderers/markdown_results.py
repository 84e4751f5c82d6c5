"""Markdown for a step summary or a comment on a change: short, bounded, and inert.

Names and replies are shown in it, so everything that was not written here is escaped: it can
neither format, link, mention a person, refer to an issue nor break out of its table cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape as escape_html

from trialwise.documents.numbers import as_count
from trialwise.documents.printable import make_visible, shorten
from trialwise.documents.results import (
    MOST_GROUPS,
    Figures,
    LineKind,
    ResultLine,
    RunResults,
    Status,
    SuiteResults,
)

#: GitHub refuses a comment of more than 65,536 characters, and a summary of more than 1 MiB.
MOST_BYTES = 60_000
#: Bytes that one table, one list or one block of details may take of them.
_PART = 12_000
_NAME, _SENTENCE = 60, 400
_ZERO_WIDTH = "&#8203;"

_SIGNS = {Status.PASS: "✅", Status.FAIL: "❌", Status.INCONCLUSIVE: "⚠️", Status.REFUSED: "🚫"}

#: What Markdown would act on, and how it is written to be shown.
_ACTIVE = re.compile(
    r"(?P<mark>[\\`*_\[\]~$])|(?P<entity>[&<>|])|(?P<ping>[@#])"
    r"|(?<=:)(?P<link>//)|(?<=www)(?P<dot>\.)|(?<=gh)(?P<issue>-)(?=\d)",
    re.IGNORECASE,
)
_PING = re.compile(r"[@#]|(?<=gh)-(?=\d)", re.IGNORECASE)
_BACKTICKS = re.compile("`+")


def render_markdown(suite: SuiteResults) -> str:
    """Render the results of a suite as GitHub-flavoured Markdown of at most 60 kB.

    What needs attention is kept before tables, and tables before details; what does not fit is
    counted. The first line is a hidden marker by which a comment can be found and replaced.
    """
    heading = f"## {_SIGNS[suite.status]} {suite.status}: {_write_inline(suite.name)}"
    head = f"{marker(suite.name)}\n{heading}\n\n{escape(suite.totals)}"
    tables = [_write_contract(run) for run in suite.runs]
    notes = _write_attention(suite)
    failing = [line for line in suite.results if line.failures and line.kind is not LineKind.INPUT]
    told = [line for run in suite.runs for line in run.lines if line.details]
    details = [*map(_write_details, failing), *map(_write_more, told), _write_basis(suite)]
    return _fit(head, [tables, [notes] if notes else [], details])


def marker(name: str = "trialwise") -> str:
    """Return the hidden comment that a report of a suite begins with.

    >>> marker("Nightly suite")
    '<!-- trialwise-report: nightly-suite -->'
    """
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "trialwise"
    return f"<!-- trialwise-report: {slug[:_NAME].strip('-')} -->"


def escape(text: str) -> str:
    r"""Text on one line that Markdown shows as it is, in a table and outside of one.

    >>> print(escape("a|b *c* @user #1"))
    a&#124;b \*c\* @&#8203;user #&#8203;1
    """
    return _ACTIVE.sub(_disarm, make_visible(text))


def _disarm(found: re.Match[str]) -> str:
    one = found.group()
    match found.lastgroup:
        case "entity":
            return "&#124;" if one == "|" else escape_html(one)
        case "ping" | "issue":
            # Mentions are looked for in what is shown, where no escape is left.
            return f"{one}{_ZERO_WIDTH}"
        case "link":
            return "\\//"
        case _:
            return f"\\{one}"


def _write_inline(text: str, width: int = _NAME) -> str:
    return escape(shorten(make_visible(text), width))


def _write_code(text: str) -> str:
    """Text as a code span, in which nothing is acted on."""
    shown = shorten(make_visible(text), _SENTENCE)
    fence = "`" * (1 + max((len(run) for run in _BACKTICKS.findall(shown)), default=0))
    return f"{fence} {shown} {fence}"


def _write_contract(run: RunResults) -> str:
    heading = f"### {_SIGNS[run.status]} {_write_inline(run.contract)}: {run.status}"
    top = [
        "| criterion | verdict | rate | interval | held against | trials | why |",
        "|:--|:--|--:|:--|:--|--:|:--|",
    ]
    # An input that passes needs no line of its own.
    lines = [
        line
        for line in run.results
        if line.kind is not LineKind.INPUT or line.status is not Status.PASS
    ]
    rows = _limit_lines(map(_write_row, (*lines, *run.reported)), "| … and {} more | | | | | | |")
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
        whose = "This is" if len(claims) == 1 else f"**{_write_inline(', '.join(names))}**:"
        yield f"{whose} {_write_inline(claim, _SENTENCE)}.  "


def _write_row(line: ResultLine) -> str:
    figures = line.figures or Figures()
    cells = (
        _write_inline(line.name),
        f"{_pick_sign(line)} {_write_inline(line.word)}",
        # Figures are numbers that a page has written; nothing in them can be active.
        figures.rate,
        figures.interval,
        figures.required,
        "" if figures.trials is None else f"{figures.trials:,}",
        _write_inline(line.reason or line.statement, _SENTENCE),
    )
    return f"| {' | '.join(cells)} |"


def _pick_sign(line: ResultLine) -> str:
    """Pick a cross is kept for what breaks the verdict."""
    if line.kind is LineKind.REPORTED:
        return "ℹ️"
    breach = line.advisory and line.status is Status.FAIL
    return _SIGNS[Status.INCONCLUSIVE if breach else line.status]


def _write_attention(suite: SuiteResults) -> str:
    notes = [
        f"- **{_write_inline(run.contract)}**: {_write_inline(note, _SENTENCE)}"
        for run in suite.runs
        for note in run.attention
    ]
    if not notes:
        return ""
    return "\n".join(["### Needs attention", "", *_limit_lines(notes, "- **{} more**")])


def _write_details(line: ResultLine) -> str:
    failed = sum(group.count for group in line.failures)
    summary = f"{line.title}: {as_count(failed, 'trial')} failed"
    items = []
    for group in line.failures[:MOST_GROUPS]:
        what = f"{_write_inline(group.title)}: {_write_inline(group.explanation, _SENTENCE)}"
        where = f"input {_write_inline(group.input_id)}, trial {group.trial}, seed {group.seed}"
        texts = [
            f"<br>{label} {_write_code(text)}" for label, text in group.exchange if text.strip()
        ]
        raised = f"<br>{_write_code(group.raised_at)}" if group.raised_at else ""
        items.append(f"- **{group.count} ×** {what} ({where}){''.join(texts)}{raised}")
    if line.other_failures:
        items.append(f"- **{line.other_failures} ×** other reasons")
    items += [f"- check {_write_inline(one.sentence, _SENTENCE)}" for one in line.checks]
    return _fold(summary, _limit_lines(items, "- **{} more reasons**"))


def _write_more(line: ResultLine) -> str:
    """Write what a line says of each input."""
    items = [f"- {_write_inline(one, _SENTENCE)}" for one in line.details]
    return _fold(f"{line.title}: each input", _limit_lines(items, "- **{} more**"))


def _write_basis(suite: SuiteResults) -> str:
    """Write what is needed to find the runs again, and how often the suite as a whole errs."""
    items = []
    for run in suite.runs:
        where = f", kept in {_write_code(run.location)}" if run.location else ""
        name = _write_inline(run.contract)
        items.append(f"- **{name}**: run {_write_code(run.run_id)}, seed {run.seed}{where}")
    items += [f"- **{chance}** {meaning}" for chance, meaning in suite.bounds]
    return _fold("Runs and error rates", _limit_lines(items, "- **{} more**"))


def _fold(summary: str, lines: Iterable[str]) -> str:
    """Return a block that a reader opens; its summary is HTML and not Markdown."""
    shown = escape_html(shorten(make_visible(summary), 2 * _NAME), quote=False)
    quiet = _PING.sub(lambda ping: ping.group() + _ZERO_WIDTH, shown)
    return "\n".join([f"<details><summary>{quiet}</summary>", "", *lines, "", "</details>"])


def _limit_lines(lines: Iterable[str], rest: str) -> Iterator[str]:
    """Lines as long as they fit, then how many do not."""
    used = left = 0
    for line in lines:
        used += len(line.encode()) + 1
        if used <= _PART:
            yield line
        else:
            left += 1
    if left:
        yield rest.format(left)


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
