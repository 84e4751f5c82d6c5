"""Results as a notebook shows them: a fragment that brings its style and asks for nothing else.

Every rule is bound to the fragment's own class, so that it neither changes the notebook nor is
changed by it. Where a notebook strips styles, a plain table and words remain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

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
from trialwise.pages.finding_facts import pick_interval, pick_rate
from trialwise.procedures.comparing.comparison_findings import (
    ComparisonFinding,
    ComparisonVerdict,
    Contrast,
)
from trialwise.reporters.attention import attention
from trialwise.reporters.comparison import (
    amount_words,
    comparison_title,
    difference_words,
    notes_of,
    pairing_words,
    probability_words,
    setup_words,
    won_words,
)
from trialwise.reporters.digest import digest
from trialwise.reporters.html.parts import Tone, badge, glyph, tone
from trialwise.reporters.html.words import headline, is_measured, is_soft, meaning, shown
from trialwise.reporters.page.axis import part
from trialwise.reporters.page.markup import Markup, element, joined
from trialwise.reporters.page.palette import DARK, LIGHT, declarations
from trialwise.reporters.suite import checked, suite_decision, suite_status

__all__ = ["comparison_html", "record_html", "suite_html"]

#: Rows of a table; a notebook is no report.
_MOST_ROWS = 40
_MOST_NOTES = 12
_CLASS = "trialwise-out"
_COLOURS = (
    "card", "ink", "quiet", "edge", "grid", "accent",
    "pass", "pass-wash", "fail", "fail-wash", "open", "open-wash",
)  # fmt: skip
_WIDTH, _HEIGHT = 120, 18


def record_html(record: RunRecord) -> str:
    """One run: its verdict, a row a criterion, and what a reader must not miss."""
    verdict = record.verdict
    facts = [*_about(record), *_spent([record])]
    parts = [*_parts(record)]
    low = _lowest(parts)
    notes = [] if is_measured(record) else attention(verdict)
    return _fragment(
        _heading(_tone(record), headline(record), verdict.contract, meaning(record), facts),
        _table(
            ("criterion", "verdict", "rate", "interval", "", "held against", "trials"),
            [_criterion_row(record, finding, low) for finding in parts],
            words=(0, 1, 4),
        ),
        _notes("Needs attention", notes),
        _notes("Failures", [*_failures(record)]),
    )


def suite_html(records: Sequence[RunRecord]) -> str:
    """Several runs: a row a contract."""
    several = checked(records)
    counts = f"{as_count(len(several), 'contract')}, as good as the worst of them"
    rows = [
        (
            element("bdi", one.verdict.contract),
            badge(one.verdict.decision, headline(one), soft=is_soft(one)),
            meaning(one),
            f"{len(one.trials):,}",
        )
        for one in several
    ]
    notes = [
        f"{one.verdict.contract}: {note}" for one in several for note in attention(one.verdict)
    ]
    kind = tone(suite_decision(several))
    return _fragment(
        _heading(kind, suite_status(several).value, "suite", counts, [*_spent(several)]),
        _table(("contract", "verdict", "meaning", "trials"), rows, words=(0, 1, 2)),
        _notes("Needs attention", notes),
    )


def comparison_html(verdict: ComparisonVerdict) -> str:
    """Two runs compared: a row a criterion, what trials took, and what qualifies it."""
    margin = verdict.question.margin
    facts = [pairing_words(verdict), verdict.about]
    facts += [] if margin is None else [f"margin {as_points(margin)}"]
    title = comparison_title(verdict)
    reach = _reach(verdict)
    before, after = verdict.reference.label, verdict.candidate.label
    columns = ("criterion", f"{after} is", before, after, "difference in points", "", "won", "p")
    return _fragment(
        _heading(tone(verdict.decision), verdict.decision.value, title, verdict.statement, facts),
        _table(
            columns,
            [_contrast_row(one, verdict, reach) for one in verdict.findings],
            words=(0, 1, 5),
        ),
        _notes("What trials took", [*map(amount_words, verdict.amounts), *setup_words(verdict)]),
        _notes("Worth knowing", notes_of(verdict)),
    )


# --- Rows -------------------------------------------------------------------------------------


def _parts(record: RunRecord) -> Iterator[Finding]:
    """Every criterion, and the inputs that did not pass where each is judged."""
    for finding in record.verdict.findings:
        yield finding
        for one in finding.by_input:
            if one.decision is not Decision.PASS:
                yield one


def _lowest(findings: Iterable[Finding]) -> float:
    """Where the pictures of the rates begin: at 0, or where nothing below it is lost."""
    known = [
        value
        for one in findings
        for interval in [pick_interval(one)]
        if interval is not None
        for value in (interval.low, _held_against(one))
        if value is not None
    ]
    least = min(known, default=0.0)
    return 0.0 if least < 0.4 else math.floor(20 * (least - 0.02)) / 20


def _criterion_row(record: RunRecord, finding: Finding, low: float) -> tuple[object, ...]:
    decision, label = shown(record, finding)
    rate, interval = pick_rate(finding), pick_interval(finding)
    required = _held_against(finding)
    name = element("bdi", finding.criterion if finding.input_id is None else finding.input_id)
    picture = Markup("")
    if rate is not None and interval is not None:
        picture = _picture(
            tone(decision), (interval.low, rate, interval.high), span=(low, 1.0), need=required
        )
    return (
        name if finding.input_id is None else joined(["input ", name]),
        badge(decision, label, soft=is_soft(record)),
        "–" if rate is None else as_observed(rate),
        "" if interval is None else as_ends(interval),
        picture,
        "" if required is None else as_percent(round(required, 4)),
        f"{finding.tally.trials:,}",
    )


def _held_against(finding: Finding) -> float | None:
    threshold = finding.threshold
    if threshold is None:
        return None
    if threshold.required_rate is None and threshold.baseline is not None:
        return threshold.baseline.passed / threshold.baseline.trials
    return threshold.required_rate


_TONES: Mapping[Contrast, Tone] = {
    Contrast.BETTER: "pass",
    Contrast.WORSE: "fail",
    Contrast.NOT_TOLD_APART: "open",
}


def _contrast_row(
    finding: ComparisonFinding, verdict: ComparisonVerdict, reach: float
) -> tuple[object, ...]:
    kind = _TONES[finding.contrast]
    rates = [
        "–" if side is None or side.rate is None else as_observed(side.rate)
        for side in (finding.reference, finding.candidate)
    ]
    picture = Markup("")
    if finding.interval is not None and finding.difference is not None:
        low, high = finding.interval
        margin = verdict.question.margin
        picture = _picture(
            kind,
            (low, finding.difference, high),
            span=(-reach, reach),
            need=0.0,
            other=None if margin is None else -margin,
        )
    return (
        element("bdi", finding.criterion),
        # A badge of the report would be softened: its word is not the decision's.
        element("span", glyph(kind), finding.contrast.value, class_=f"badge {kind}"),
        *rates,
        difference_words(finding),
        picture,
        won_words(finding),
        probability_words(finding.adjusted_p_value),
    )


def _reach(verdict: ComparisonVerdict) -> float:
    """How far the pictures of the differences extend to either side of 0."""
    far = [abs(end) for one in verdict.findings if one.interval is not None for end in one.interval]
    far += [] if verdict.question.margin is None else [verdict.question.margin]
    return min(1.0, 1.1 * max(far, default=1.0)) or 1.0


def _picture(
    kind: Tone,
    values: tuple[float, float, float],
    *,
    span: tuple[float, float],
    need: float | None,
    other: float | None = None,
) -> Markup:
    """An interval with its estimate, over what it is held against; words beside it say the same."""
    low, middle, high = (f"{_WIDTH * part(one, *span):.1f}" for one in values)
    line = _HEIGHT / 2
    uprights = [
        element("line", x1=x, x2=x, y1=1, y2=_HEIGHT - 1, class_=name)
        for name, mark in (("need", need), ("other", other))
        if mark is not None
        for x in [f"{_WIDTH * part(mark, *span):.1f}"]
    ]
    return element(
        "svg",
        element("line", x1=0, x2=_WIDTH, y1=line, y2=line, class_="base"),
        *uprights,
        element("line", x1=low, x2=high, y1=line, y2=line, class_="whisker"),
        element("circle", cx=middle, cy=line, r=3.5, class_="dot"),
        viewBox=f"-4 0 {_WIDTH + 8} {_HEIGHT}",
        width=_WIDTH + 8,
        height=_HEIGHT,
        class_=f"picture {kind}",
        aria_hidden="true",
        focusable="false",
    )


# --- Around them ------------------------------------------------------------------------------


def _tone(record: RunRecord) -> Tone:
    return "none" if is_measured(record) else tone(record.verdict.decision)


def _about(record: RunRecord) -> Iterator[str]:
    if len(record.verdict.experiments) == 1:
        yield record.verdict.claim.about(record.verdict.experiments[0].inputs)


def _spent(records: Sequence[RunRecord]) -> Iterator[str]:
    spent = [one.verdict.spending for one in records]
    yield as_count(sum(one.trials for one in spent), "trial")
    took = sum(one.seconds for one in spent)
    if took:
        yield as_duration(took)
    known = [one.usd for one in spent if one.usd is not None]
    if known:
        yield as_money(sum(known))


def _failures(record: RunRecord) -> Iterator[str]:
    """The most frequent reasons of what did not pass, each with one example."""
    for entry in digest(record):
        for group in entry.failures[:3] if entry.is_red else ():
            example = f": {group.explanation}" if group.explanation else ""
            yield f"{entry.name}: {group.count:,} × {group.title}{example} (input {group.input_id})"


def _heading(kind: Tone, word: str, title: str, said: str, facts: Sequence[str]) -> Markup:
    return element(
        "div",
        glyph(kind),
        element(
            "div",
            element("strong", word, class_="word"),
            " ",
            element("bdi", title, class_="title"),
            element("div", said, class_="said"),
            element("div", " · ".join(filter(None, facts)), class_="facts"),
        ),
        class_=f"head {kind}",
    )


def _table(
    columns: Sequence[object], rows: Sequence[Sequence[object]], *, words: Sequence[int]
) -> Markup:
    kinds = [None if place in words else "num" for place in range(len(columns))]
    heads = [
        element("th", column, scope="col", class_=kind)
        for column, kind in zip(columns, kinds, strict=True)
    ]
    body = [
        element(
            "tr",
            element("th", row[0], scope="row", class_=kinds[0]),
            *(
                element("td", cell, class_=kind)
                for cell, kind in zip(row[1:], kinds[1:], strict=True)
            ),
        )
        for row in rows[:_MOST_ROWS]
    ]
    left = len(rows) - _MOST_ROWS
    rest = element("p", f"and {left:,} more rows", class_="rest") if left > 0 else None
    table = element("table", element("thead", element("tr", *heads)), element("tbody", *body))
    return joined([element("div", table, class_="scroll"), rest])


def _notes(title: str, notes: Sequence[str]) -> Markup:
    if not notes:
        return Markup("")
    shown_notes = [element("li", note) for note in notes[:_MOST_NOTES]]
    left = len(notes) - _MOST_NOTES
    shown_notes += [element("li", f"and {left:,} more")] if left > 0 else []
    summary = element("summary", f"{title} ({len(notes):,})")
    return element("details", summary, element("ul", *shown_notes), open=title == "Needs attention")


def _fragment(*content: Markup) -> str:
    return str(element("div", Markup(f"<style>{_style()}</style>"), *content, class_=_CLASS))


def _style() -> str:
    light, dark = (
        f"color-scheme:{name};" + declarations({key: colours[key] for key in _COLOURS})
        for name, colours in (("light", LIGHT), ("dark", DARK))
    )
    lights, darks = (",".join(f"{theme} &" for theme in themes) for themes in _THEMES)
    # A notebook's own theme beats the system's.
    themed = (
        f"&{{{light}}}@media(prefers-color-scheme:dark){{&{{{dark}}}}}"
        f"{lights}{{{light}}}{darks}{{{dark}}}"
    )
    return (themed + _RULES.replace("\n", "")).replace("&", f".{_CLASS}")


#: How JupyterLab, VS Code, Colab and Sphinx say that they are light, or dark.
_THEMES = (
    ("[data-jp-theme-light=true]", ".vscode-light", "[theme=light]", "[data-theme=light]"),
    ("[data-jp-theme-light=false]", ".vscode-dark", "[theme=dark]", "[data-theme=dark]"),
)
#: Written against what notebooks give every table: centred, fixed, striped, in their own colours.
#: `&` stands for the fragment.
_RULES = """
&{background:var(--card);color:var(--ink);border:1px solid var(--edge);border-radius:6px;
font:14px/1.45 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;max-width:60rem;
margin:.25rem 0;overflow:hidden;text-align:left;font-variant-numeric:tabular-nums}
& .pass{--tone:var(--pass);--wash:var(--pass-wash)}
& .fail{--tone:var(--fail);--wash:var(--fail-wash)}
& .open{--tone:var(--open);--wash:var(--open-wash)}
& .none{--tone:var(--quiet);--wash:var(--grid)}
& .head{display:flex;gap:.8rem;padding:.8rem 1rem;background:var(--wash)}
& .head>.glyph{width:1.7rem;height:1.7rem;flex:none;margin-top:.1rem}
& .word{color:var(--tone);font-size:1.15rem;letter-spacing:.01em}
& .title{font-weight:600;margin-left:.4rem}
& .facts,& .rest{color:var(--quiet);font-size:.85rem}
& .glyph{width:1em;height:1em;overflow:visible}
& .ground{fill:var(--tone);stroke:var(--tone);stroke-width:1.4}
& .sign{fill:none;stroke:var(--card);stroke-width:2;stroke-linecap:round;stroke-linejoin:round}
& .hollow .ground,& .none .ground{fill:none}
& .hollow .sign{stroke:var(--tone)}
& .badge{display:inline-flex;align-items:center;gap:.4em;color:var(--tone);font-weight:600;
white-space:nowrap}
& .scroll{overflow-x:auto;padding:.3rem 1rem}
& table{border-collapse:collapse;table-layout:auto;width:100%;margin:0;border:0;
font-size:.875rem;color:inherit}
& .scroll th,& .scroll td{padding:.35rem .9rem .35rem 0;border:0;
border-bottom:1px solid var(--grid);background:none;color:inherit;vertical-align:middle;
text-align:left;font-weight:400;max-width:none}
& .scroll thead th{color:var(--quiet);font-size:.8rem;white-space:nowrap}
& .scroll tbody th{font-weight:600;overflow-wrap:anywhere}
& .scroll tbody tr:nth-child(n),& .scroll tbody tr:nth-child(n):hover{background:none}
& .scroll tbody tr:last-child>*{border-bottom:0}
& .scroll .num{text-align:right;white-space:nowrap}
& .picture{display:block;min-width:128px;max-width:none}
& .base{stroke:var(--grid)}
& .need{stroke:var(--quiet);stroke-width:1.5}
& .other{stroke:var(--quiet);stroke-dasharray:2 2}
& .whisker{stroke:var(--tone);stroke-width:2}
& .dot{fill:var(--tone)}
& details{border-top:1px solid var(--grid);padding:.45rem 1rem;font-size:.875rem}
& summary{cursor:pointer;color:var(--accent)}
& ul{margin:.3rem 0 .2rem;padding-left:1.2rem}
& li{overflow-wrap:anywhere;margin:.15rem 0}
"""
