"""Markdown for a step summary or a comment on a change: short, bounded, and inert.

Names and replies are shown in it, so everything that was not written here is escaped: it can
neither format, link, mention a person, refer to an issue nor break out of its table cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape as escape_html

from trialwise.documents.numbers import (
    as_count,
    as_ends,
    as_observed,
    as_percent,
    as_probability,
    as_seconds,
)
from trialwise.documents.phrases import STOPS
from trialwise.documents.printable import make_visible, shorten
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Finding, LatencyFinding
from trialwise.pages.finding_facts import pick_interval, pick_rate
from trialwise.reporters.attention import attention
from trialwise.reporters.digest import (
    MOST_GROUPS,
    Entry,
    Kind,
    digest,
    suite_line,
)
from trialwise.reporters.gates import gate_notes
from trialwise.reporters.judged import (
    CORRECTION_NAMES,
    corrected_text,
    corrections_of,
    labels_of,
    missing_for,
)
from trialwise.reporters.suite import Status, checked, suite_envelopes, suite_status

__all__ = ["MOST_BYTES", "escape", "marker", "render_markdown"]

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


def render_markdown(
    records: Sequence[RunRecord],
    *,
    name: str = "trialwise",
    locations: Mapping[str, str] | None = None,
) -> str:
    """The runs of a suite as GitHub-flavoured Markdown of at most 60 kB.

    What needs attention is kept before tables, and tables before details; what does not fit is
    counted. The first line is a hidden marker by which a comment can be found and replaced.

    Args:
        records: One run for each contract.
        name: The suite's; suites of different names have different markers.
        locations: Where each run's record is kept, by run id.
    """
    runs = [(record, digest(record)) for record in checked(records)]
    status = suite_status(records)
    heading = f"## {_SIGNS[status]} {status}: {_inline(name)}"
    head = f"{marker(name)}\n{heading}\n\n{escape(suite_line(records))}"
    tables = [_contract(record, entries) for record, entries in runs]
    notes = _attention(records)
    details = [
        _details(entry)
        for _, entries in runs
        for entry in entries
        if entry.failures and entry.kind is not Kind.INPUT
    ]
    details.append(_basis(records, locations or {}))
    return _fitted(head, [tables, [notes] if notes else [], details])


def marker(name: str = "trialwise") -> str:
    """The hidden comment that a report of a suite begins with.

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
    return _ACTIVE.sub(_inert, make_visible(text))


def _inert(found: re.Match[str]) -> str:
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


def _inline(text: str, width: int = _NAME) -> str:
    return escape(shorten(make_visible(text), width))


def _code(text: str) -> str:
    """Text as a code span, in which nothing is acted on."""
    shown = shorten(make_visible(text), _SENTENCE)
    fence = "`" * (1 + max((len(run) for run in _BACKTICKS.findall(shown)), default=0))
    return f"{fence} {shown} {fence}"


def _contract(record: RunRecord, entries: Sequence[Entry]) -> str:
    verdict = record.verdict
    name = _inline(verdict.contract or record.plan.contract)
    status = Status(verdict.decision.value) if verdict.decision else Status.REFUSED
    heading = f"### {_SIGNS[status]} {name}: {status}"
    top = ["| criterion | verdict | rate | interval | trials | why |", "|:--|:--|--:|:--|--:|:--|"]
    # An input that passes is in no need of a line of its own.
    shown = [e for e in entries if e.kind is not Kind.INPUT or e.status is not Status.PASS]
    rows = _bounded(map(_row, shown), "| … and {} more | | | | | |")
    return "\n".join([heading, "", *top, *rows, "", *_claims(entries)]).rstrip()


def _claims(entries: Iterable[Entry]) -> Iterator[str]:
    """Whom the verdicts speak of; by criterion where they differ."""
    claims: dict[str, list[str]] = {}
    for entry in entries:
        if entry.kind is Kind.CRITERION and entry.claim:
            claims.setdefault(entry.claim, []).append(entry.name)
    for claim, names in claims.items():
        whose = "This is" if len(claims) == 1 else f"**{_inline(', '.join(names))}**:"
        yield f"{whose} {_inline(claim, _SENTENCE)}.  "


def _row(entry: Entry) -> str:
    verdict = f"{_sign(entry)} {_inline(entry.label)}{' (advisory)' if entry.advisory else ''}"
    rate = interval = trials = ""
    why = _inline(entry.statement)
    finding = entry.finding
    if isinstance(finding, Finding):
        value, limits = pick_rate(finding), pick_interval(finding)
        rate = "" if value is None else as_observed(value)
        interval = "" if limits is None else as_ends(limits)
        trials = f"{finding.tally.trials:,}"
        why = _why(finding)
    elif isinstance(finding, LatencyFinding):
        rate = "" if finding.observed is None else as_seconds(finding.observed)
        interval = "" if finding.threshold is None else f"limit {as_seconds(finding.threshold)}"
        trials = f"{finding.trials:,}"
    elif finding is not None:
        trials = f"{finding.inputs * finding.runs:,}"
        why = f"{_inline(entry.statement, _SENTENCE)} {_inline(gate_notes(finding)[0], _SENTENCE)}"
    return f"| {_inline(entry.name)} | {verdict} | {rate} | {interval} | {trials} | {why} |"


def _sign(entry: Entry) -> str:
    """A cross is kept for what breaks the verdict."""
    breach = entry.advisory and entry.status is Status.FAIL
    return _SIGNS[Status.INCONCLUSIVE if breach else entry.status]


def _why(finding: Finding) -> str:
    threshold = finding.threshold
    parts = [] if finding.stop is None else [STOPS[finding.stop].label]
    parts += [refusal.replace("_", " ").lower() for refusal in finding.refusals]
    if threshold is not None and threshold.required_rate is not None:
        parts.append(f"at least {as_percent(threshold.required_rate)}")
    if threshold is not None and threshold.baseline is not None:
        baseline = threshold.baseline
        parts.append(f"baseline {baseline.passed:,} of {baseline.trials:,}")
    if finding.cutoff is not None:
        parts.append(f"{finding.cutoff:,} needed")
    return ", ".join([*parts, *_judged(finding)])


def _judged(finding: Finding) -> Iterator[str]:
    """What a judge's errors leave of the rate, and what is missing to say more."""
    labels = labels_of(finding)
    if labels is None:
        return
    said = [
        f"{corrected_text(one)} ({CORRECTION_NAMES[one.correction]})"
        for one in corrections_of(finding)
    ]
    yield f"corrected by {as_count(labels.labels, 'label')}: {' and '.join(said)}"
    if missing := missing_for(finding):
        yield f"missing: {missing}"


def _attention(records: Sequence[RunRecord]) -> str:
    notes = [
        f"- **{_inline(record.verdict.contract or record.plan.contract)}**: "
        f"{_inline(note, _SENTENCE)}"
        for record in records
        for note in attention(record.verdict)
    ]
    if not notes:
        return ""
    return "\n".join(["### Needs attention", "", *_bounded(notes, "- **{} more**")])


def _details(entry: Entry) -> str:
    assert isinstance(entry.finding, Finding)
    failed = sum(group.count for group in entry.failures)
    summary = f"{entry.title}: {as_count(failed, 'trial')} failed"
    lines = []
    for group in entry.failures[:MOST_GROUPS]:
        what = f"{_inline(group.title)}: {_inline(group.explanation, _SENTENCE)}"
        where = f"input {_inline(group.input_id)}, trial {group.trial}, seed {group.seed}"
        evidence = f"<br>{_code(group.evidence)}" if group.evidence.strip() else ""
        lines.append(f"- **{group.count} ×** {what}{evidence} ({where})")
    rest = sum(group.count for group in entry.failures[MOST_GROUPS:])
    if rest:
        lines.append(f"- **{rest} ×** other reasons")
    return _folded(summary, _bounded(lines, "- **{} more reasons**"))


def _basis(records: Sequence[RunRecord], locations: Mapping[str, str]) -> str:
    """What anybody needs to find the runs again, and how surely the suite as a whole is right."""
    lines = []
    for record in records:
        kept = locations.get(record.run_id)
        where = f", kept in {_code(kept)}" if kept else ""
        name = _inline(record.verdict.contract or record.plan.contract)
        lines.append(f"- **{name}**: run {_code(record.run_id)}, seed {record.plan.seed}{where}")
    for bound in suite_envelopes(records):
        over = as_count(bound.levels, "decision")
        chance = as_probability(bound.capped)
        lines.append(f"- **at most {chance}** over {over}: the chance of {bound.meaning}")
    return _folded("Runs and error rates", _bounded(lines, "- **{} more**"))


def _folded(summary: str, lines: Iterable[str]) -> str:
    """A block that a reader opens; its summary is HTML, in which Markdown's escapes are none."""
    shown = escape_html(shorten(make_visible(summary), 2 * _NAME), quote=False)
    quiet = _PING.sub(lambda ping: ping.group() + _ZERO_WIDTH, shown)
    return "\n".join([f"<details><summary>{quiet}</summary>", "", *lines, "", "</details>"])


def _bounded(lines: Iterable[str], rest: str) -> Iterator[str]:
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


def _fitted(head: str, parts: Sequence[Sequence[str]]) -> str:
    """Everything that fits: of tables, attention and details the attention first."""
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
