"""The end of a session: every decided test, how often all may be wrong together, reports.

A worker of pytest-xdist sends what a test came to as plain values; the summary is made of those
alone, so that it is the same with workers and without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from trialwise.documents.numbers import as_count, as_duration, as_money
from trialwise.documents.printable import count_cells, pad, wrap_text
from trialwise.documents.results import LineKind, ResultLine, RunResults, Status
from trialwise.errors import TrialwiseError
from trialwise.model.codec import from_plain
from trialwise.model.plan import Plan
from trialwise.model.verdict import Decision, Verdict
from trialwise.pages.results import describe_verdicts, list_attention
from trialwise.pages.suite_totals import bound_suite_errors, list_error_sentences, sum_spending
from trialwise.plugin import other_plugins
from trialwise.plugin.marker import BODY
from trialwise.plugin.session import Settings
from trialwise.renderers.capabilities import Capabilities, pick_style, read_capabilities

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter


_GAP = "  "
#: What has a line: a criterion speaks for its inputs.
_SHOWN = (LineKind.CRITERION, LineKind.LATENCY)
#: What has a sentence instead of figures, which stands below its name.
_GATES = (LineKind.GATE, LineKind.REPORTED)


def write_summary(
    terminal: TerminalReporter,
    results: Sequence[dict[str, Any]],
    settings: Settings,
    config: pytest.Config,
) -> None:
    """Say how all marked tests went, and write the reports that were asked for."""
    writer = terminal._tw
    able = read_capabilities(writer._file)
    able = replace(able, colour=writer.hasmarkup, width=writer.fullwidth)
    terminal.write_sep("=", "trialwise")
    if hasattr(config.option, "tx") and config.option.tx:
        # Workers finish in any order.
        results = sorted(results, key=lambda one: str(one["contract"]))
    decided = [one for one in results if "verdict" in one]
    verdicts = [from_plain(Verdict, one["verdict"]) for one in decided]
    runs = describe_verdicts(verdicts).runs if verdicts else ()
    for line in _draw_lines(runs, able):
        terminal.write_line(line)
    for text in _list_comparisons(results, able):
        terminal.write_line(text)
    for one in results:
        if "baseline" in one:
            rates = ", ".join(
                rate if name == BODY else f"{name} {rate}" for name, rate in one["rates"].items()
            )
            terminal.write_line(f"measured {rates}{_GAP}{one['contract']}")
            for warning in one["warnings"]:
                terminal.write_line(f"{_GAP}{warning}")
            terminal.write_line(f"{_GAP}{one['baseline']}")
    for text in (*_list_totals(verdicts, able), *_list_notes(results, verdicts, config)):
        indent = " " * (len(text) - len(text.lstrip()))
        for line in wrap_text(able.show(text.strip()), able.width - len(indent)):
            terminal.write_line(f"{indent}{line}")
    for line in _write_reports(decided, settings):
        terminal.write_line(line)


def _list_comparisons(results: Sequence[dict[str, Any]], able: Capabilities) -> Iterator[str]:
    """List what each comparison came to, in the sentence that answers its question."""
    for one in results:
        if "comparison" in one:
            decision = Decision(one["decision"])
            mark = able.paint(decision.value, pick_style(Status(decision).tone))
            indent = " " * (len(decision.value) + len(_GAP))
            lines = wrap_text(able.show(one["statement"]), able.width - len(indent))
            yield f"{mark}{_GAP}{lines[0]}"
            yield from (f"{indent}{line}" for line in lines[1:])
            yield f"{indent}{able.show(one['comparison'])}"


def _draw_lines(runs: Sequence[RunResults], able: Capabilities) -> Iterator[str]:
    """Draw a line a criterion: verdict and figures first, since a test's name may be long."""
    everything = [line for run in runs for line in run.lines]
    gates = [line for line in everything if line.kind in _GATES and line.sentence]
    lines = [line for line in everything if line.kind in (*_SHOWN, *_GATES) and line not in gates]
    # A single column is a sentence.
    figures = [
        (line.sentence,)
        if line.figures is None or line.sentence
        else line.figures.with_level().columns[:7]
        for line in lines
    ]
    table = [columns for columns in figures if len(columns) > 1]
    widths = [max(map(count_cells, column)) for column in zip(*table, strict=True)]
    word = max((count_cells(line.label) for line in (*lines, *gates)), default=0)
    filled = [width for width in widths if width]
    whole = sum(filled) + len(_GAP) * max(0, len(filled) - 1)
    whole = max([whole, *(count_cells(columns[0]) for columns in figures if len(columns) == 1)])
    for line, columns in zip(lines, figures, strict=True):
        if len(columns) == 1:
            text = pad(columns[0], whole)
        else:
            sized = enumerate(zip(columns, widths, strict=True))
            # A column that is empty in every line takes no room.
            cells = [pad(cell, width, right=n in (0, 3)) for n, (cell, width) in sized if width]
            text = pad(_GAP.join(cells), whole)
        space = " " * (word - count_cells(line.label))
        mark = able.paint(able.show(line.label), pick_style(line.tone))
        yield f"{mark}{space}{_GAP}{able.show(text)}{_GAP}{able.show(_name_line(line))}".rstrip()
        yield from (f"{' ' * (word + len(_GAP))}{able.show(one)}" for one in line.below)
    for line in gates:
        space = " " * (word - count_cells(line.label))
        mark = able.paint(able.show(line.label), pick_style(line.status.tone))
        yield f"{mark}{space}{_GAP}{able.show(_name_line(line))}"
        for text in wrap_text(able.show(line.sentence), able.width - word - 2 * len(_GAP)):
            yield f"{' ' * (word + len(_GAP))}{text}"


def _name_line(line: ResultLine) -> str:
    return line.contract if line.name == BODY else f"{line.contract} {line.name}"


def _list_totals(verdicts: Sequence[Verdict], able: Capabilities) -> Iterator[str]:
    """List how many, what they took, and what may be wrong about all of them together."""
    if not verdicts:
        return
    decisions = [verdict.decision for verdict in verdicts]
    counts = [f"{decisions.count(which)} {which.value}" for which in Decision if which in decisions]
    spent = sum_spending(verdicts)
    said = [f"{as_count(len(verdicts), 'verdict')}: {', '.join(counts)}"]
    said += [as_count(spent.trials, "trial"), as_duration(spent.seconds)]
    yield able.dot.join(said if spent.usd is None else [*said, as_money(spent.usd)])
    yield from list_error_sentences(bound_suite_errors(verdicts))


def _list_notes(
    results: Sequence[dict[str, Any]], verdicts: Sequence[Verdict], config: pytest.Config
) -> Iterator[str]:
    """List what a reader would otherwise miss; what failed has said so above."""
    unfinished = [one for one in verdicts if one.stop.is_premature]
    # A run that was decided before its limit is not continued: more trials could turn its verdict.
    if any(one.decision is Decision.INCONCLUSIVE for one in unfinished):
        yield "`pytest --trialwise-resume` continues unfinished tests; their trials are kept"
    if other_plugins.reruns_failures(config):
        yield "decided tests were not rerun: running one again until it passes would bias its rate"
    for one in results:
        if one.get("note"):
            yield f"{one['contract']}: {one['note']}"
    for verdict in verdicts:
        if verdict.decision is Decision.PASS:
            for note in list_attention(verdict):
                yield f"{verdict.contract}: {note.removeprefix(f'{BODY}: ')}"


def _write_reports(decided: Sequence[dict[str, Any]], settings: Settings) -> Iterator[str]:
    """Write the reports that were asked for, and where they are."""
    if not decided or (settings.html is None and settings.summary is None):
        return
    from trialwise.reports.formats import ReportSource, render_report, write_report
    from trialwise.stores.runs import RunStore

    runs = RunStore(settings.store)
    locations = {one["run_id"]: one["run"] for one in decided}
    try:
        records = [runs.load(one["run_id"]) for one in decided]
        source = ReportSource(records=records, name="pytest", locations=locations)
        if settings.html is not None:
            yield f"report: {write_report(settings.html, replace(source, locations={}))}"
        if settings.summary is not None:
            text = render_report(source, "markdown")
            with settings.summary.open("a", encoding="utf-8") as stream:
                stream.write(text)
            yield f"summary: {settings.summary}"
    except (TrialwiseError, OSError) as error:
        yield f"the report was not written: {error}"


def write_plans(config: pytest.Config, plans: Sequence[Plan], settings: Settings) -> None:
    """Print plans instead of running them."""
    from trialwise.pages.run_rules import render_rules, render_together
    from trialwise.runtime.earlier_runs import expense_of

    terminal: Any = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is None:
        return
    terminal.write_sep("=", "trialwise: what would be run")
    for plan in plans:
        expense = expense_of(plan, settings.store)
        terminal.write(render_rules(plan, expense=expense, width=terminal._tw.fullwidth))
        terminal.write_line("")
    terminal.write(render_together(plans, width=terminal._tw.fullwidth))
    most = as_count(sum(plan.max_trials for plan in plans), "trial")
    terminal.write_line(f"{as_count(len(plans), 'decided test')}, at most {most}; nothing was run")
