"""The end of a session: every judged test, what the verdicts cost in certainty together, reports.

A worker of pytest-xdist sends what a test came to as plain values; the summary is made of those
alone, so that it is the same with workers and without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pytest

from trialwise.documents.numbers import (
    as_count,
    as_duration,
    as_ends,
    as_money,
    as_observed,
    as_seconds,
)
from trialwise.documents.phrases import STOPS
from trialwise.documents.printable import count_cells, pad, wrap_text
from trialwise.errors import TrialwiseError
from trialwise.model.codec import from_plain
from trialwise.model.plan import Plan
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Decision, Finding, Verdict
from trialwise.pages.finding_facts import pick_badge, pick_interval, pick_rate, pick_style
from trialwise.plugin import other_plugins
from trialwise.plugin.marker import BODY
from trialwise.plugin.settings import Settings
from trialwise.renderers.capabilities import Capabilities, Style
from trialwise.reporters.attention import attention
from trialwise.reporters.suite import suite_envelopes, suite_spending

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

__all__ = ["write_plans", "write_summary"]

_GAP = "  "


def write_summary(
    terminal: TerminalReporter,
    results: Sequence[dict[str, Any]],
    settings: Settings,
    config: pytest.Config,
) -> None:
    """Say how all marked tests went, and write the reports that were asked for."""
    able = _able(terminal)
    terminal.write_sep("=", "trialwise")
    if hasattr(config.option, "tx") and config.option.tx:
        # Workers finish in any order.
        results = sorted(results, key=lambda one: str(one["contract"]))
    judged = [one for one in results if "verdict" in one]
    # The reports of a suite read nothing of a record but its verdict.
    records = [
        RunRecord(
            run_id=one["run_id"],
            plan=cast(Plan, None),
            trials=(),
            verdict=from_plain(Verdict, one["verdict"]),
        )
        for one in judged
    ]
    for line in _lines([record.verdict for record in records], able):
        terminal.write_line(line)
    for one in results:
        if "baseline" in one:
            rates = ", ".join(_rate(name, rate) for name, rate in one["rates"].items())
            terminal.write_line(f"measured {rates}{_GAP}{one['contract']}")
            terminal.write_line(f"{_GAP}{one['baseline']}")
    for text in (*_totals(records, able), *_notes(results, records, config)):
        indent = " " * (len(text) - len(text.lstrip()))
        for line in wrap_text(able.shown(text.strip()), able.width - len(indent)):
            terminal.write_line(f"{indent}{line}")
    for line in _written(judged, settings):
        terminal.write_line(line)


def _able(terminal: TerminalReporter) -> Capabilities:
    writer = terminal._tw
    encoding = getattr(writer._file, "encoding", None) or "ascii"
    return Capabilities(
        colour=writer.hasmarkup,
        unicode=encoding.lower().replace("-", "").startswith("utf"),
        width=writer.fullwidth,
    )


class _Row(NamedTuple):
    """A criterion of a test."""

    word: str
    style: Style
    figures: tuple[str, ...]
    name: str


def _lines(verdicts: Sequence[Verdict], able: Capabilities) -> Iterator[str]:
    """A line a criterion: verdict and figures first, since a test's name may be long."""
    rows = [row for verdict in verdicts for row in _rows(verdict)]
    table = [row.figures for row in rows if len(row.figures) > 1]
    widths = [max(map(count_cells, column)) for column in zip(*table, strict=True)]
    word = max((count_cells(row.word) for row in rows), default=0)
    whole = sum(widths) + len(_GAP) * max(0, len(widths) - 1)
    whole = max([whole, *(count_cells(row.figures[0]) for row in rows if len(row.figures) == 1)])
    for row in rows:
        if len(row.figures) == 1:
            figures = pad(row.figures[0], whole)
        else:
            columns = zip(row.figures, widths, strict=True)
            drawn = [pad(text, width, right=n in (0, 2)) for n, (text, width) in enumerate(columns)]
            figures = pad(_GAP.join(drawn), whole)
        space = " " * (word - count_cells(row.word))
        mark = able.painted(able.shown(row.word), row.style)
        yield f"{mark}{space}{_GAP}{able.shown(figures)}{_GAP}{able.shown(row.name)}".rstrip()


def _rows(verdict: Verdict) -> Iterator[_Row]:
    for finding in verdict.findings:
        name = "" if finding.criterion == BODY else f" {finding.criterion}"
        yield _Row(
            pick_badge(finding),
            pick_style(finding.decision),
            _figures(finding, verdict),
            f"{verdict.contract}{name}",
        )
    for one in verdict.latency:
        observed = "" if one.observed is None else as_seconds(one.observed)
        limit = "" if one.threshold is None else f"limit {as_seconds(one.threshold)}"
        figures = ", ".join(filter(None, (f"{one.constraint} {observed}".strip(), limit)))
        yield _Row(
            pick_badge(one), pick_style(one.decision), (figures,), f"{verdict.contract} latency"
        )


def _figures(finding: Finding, verdict: Verdict) -> tuple[str, ...]:
    tally, rate, interval = finding.tally, pick_rate(finding), pick_interval(finding)
    trials = as_count(tally.trials, "trial")
    if finding.by_input:
        passing = sum(one.decision is Decision.PASS for one in finding.by_input)
        return (f"{passing} of {as_count(len(finding.by_input), 'input')}, {trials}",)
    if interval is None or rate is None:
        failed = f"{tally.failed} of {trials} failed" if tally.trials else "no trial"
        return (failed,)
    stop = finding.stop or verdict.stop
    return (as_observed(rate), as_ends(interval), trials, STOPS[stop].label)


def _rate(name: str, rate: str) -> str:
    return rate if name == BODY else f"{name} {rate}"


def _totals(records: Sequence[RunRecord], able: Capabilities) -> Iterator[str]:
    """How many, what they took, and what may be wrong about all of them together."""
    if not records:
        return
    decisions = [record.verdict.decision for record in records]
    told = [f"{decisions.count(which)} {which.value}" for which in Decision if which in decisions]
    spent = suite_spending(records)
    cost = [] if spent.usd is None else [as_money(spent.usd)]
    took = [as_count(spent.trials, "trial"), as_duration(spent.seconds), *cost]
    yield able.dot.join((f"{as_count(len(records), 'verdict')}: {', '.join(told)}", *took))
    # Of one decision its own level says it all.
    envelopes = [one for one in suite_envelopes(records) if one.levels > 1]
    if envelopes:
        yield "all of them together are wrong with a chance of at most"
    for one in envelopes:
        bound = f"{one.raw:.3g}" if one.raw < 1 else "any"
        yield f"{_GAP}{bound} {one.meaning} (of {one.levels})"


def _notes(
    results: Sequence[dict[str, Any]], records: Sequence[RunRecord], config: pytest.Config
) -> Iterator[str]:
    """What a reader would otherwise miss; what failed has said so above."""
    unfinished = [one for one in records if one.verdict.stop.is_premature]
    if any(one.verdict.decision is Decision.INCONCLUSIVE for one in unfinished):
        yield "unfinished tests go on with --trialwise-resume; their trials are kept"
    if other_plugins.reruns_of(config):
        yield ("judged tests were not rerun: running one again until it passes would bias its rate")
    for one in results:
        if one.get("note"):
            yield f"{one['contract']}: {one['note']}"
    for record in records:
        verdict = record.verdict
        if verdict.decision is Decision.PASS:
            for note in attention(verdict):
                yield f"{verdict.contract}: {note.removeprefix(f'{BODY}: ')}"


def _written(judged: Sequence[dict[str, Any]], settings: Settings) -> Iterator[str]:
    """The reports that were asked for, and where they are."""
    if not judged or (settings.html is None and settings.summary is None):
        return
    from trialwise.reporters.formats import Format, render_report, write_report
    from trialwise.stores.runs import RunStore

    runs = RunStore(settings.store)
    locations = {one["run_id"]: one["run"] for one in judged}
    try:
        records = [runs.load(one["run_id"]) for one in judged]
        if settings.html is not None:
            yield f"report: {write_report(settings.html, records, name='pytest')}"
        if settings.summary is not None:
            text = render_report(records, Format.MARKDOWN, name="pytest", locations=locations)
            with settings.summary.open("a", encoding="utf-8") as stream:
                stream.write(text)
            yield f"summary: {settings.summary}"
    except (TrialwiseError, OSError) as error:
        yield f"the report was not written: {error}"


def write_plans(config: pytest.Config, plans: Sequence[Plan], settings: Settings) -> None:
    """Print plans instead of running them."""
    from trialwise.reporters.rules import render_rules
    from trialwise.runtime.expected_expense import expense_of

    terminal: Any = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is None:
        return
    terminal.write_sep("=", "trialwise: what would be run")
    for plan in plans:
        expense = expense_of(plan, settings.store)
        terminal.write(render_rules(plan, expense=expense, width=terminal._tw.fullwidth))
        terminal.write_line("")
    most = as_count(sum(plan.max_trials for plan in plans), "trial")
    terminal.write_line(f"{as_count(len(plans), 'judged test')}, at most {most}; nothing was run")
