"""The report of a run, or of a suite of them, as a document."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate, zip_longest

from trialwise.documents import blocks, numbers
from trialwise.documents.charts import Chart, Line, Unit, chart_lines, thin_out
from trialwise.documents.printable import estimate_size
from trialwise.documents.results import LineKind
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Decision, Verdict
from trialwise.pages import analysis, criterion_details, suite_totals, verdict_meaning
from trialwise.pages.gate_details import build_gates_section
from trialwise.pages.latency_details import build_latency_section
from trialwise.pages.results import describe_run, describe_suite
from trialwise.pages.results_page import build_attention, list_failures, tabulate_lines
from trialwise.pages.trial_sections import build_inputs_section, build_trials_section

#: Fewer trials make no curve worth a look.
FEWEST = 5
CORNERS, ROWS = 60, 10
#: Rows of a table and notes of a list; a notebook is no report.
_MOST_ROWS, _MOST_NOTES = 40, 12


def build_costs_section(record: RunRecord) -> blocks.Section | None:
    """Sums, budgets and the course of the run; None where nothing was run."""
    if not record.trials:
        return None
    facts = blocks.Facts(pairs=(*_list_sums(record), *_list_budgets(record)))
    course = _chart_course(record)
    shown = (facts,) if course is None else (facts, course)
    note = "Of all trials, also those after a criterion was decided. What was spent on "
    note += "preparation, on judges and on abandoned trials stands under Provenance."
    return blocks.Section(heading="Cost and time", blocks=shown, note=note)


def _list_sums(record: RunRecord) -> Iterator[tuple[str, str]]:
    spent, trials = record.verdict.spending, record.trials
    # Cost per success is what a user pays for an answer that can be used.
    passed = len(trials) - trials.failures
    retries = spent.attempts - spent.trials
    yield "trials", f"{len(trials):,}" + (f", {retries:,} retries" if retries > 0 else "")
    if spent.seconds:
        rate = len(trials) / spent.seconds
        yield "wall time", f"{numbers.as_duration(spent.seconds)}, {60 * rate:.0f} trials a minute"
    # Summed exactly: a million rounded additions would show in the last digits.
    waited = math.fsum(one for table in trials.tables for one in table.latencies())
    yield "time in the service", numbers.as_duration(waited) if waited else ""
    if spent.tokens:
        sent = got = 0
        for trial in trials.sketches():
            if trial.usage is not None:
                sent += trial.usage.input_tokens
                got += trial.usage.output_tokens
        yield "tokens", f"{spent.tokens:,}: {sent:,} in, {got:,} out"
    if spent.usd is not None:
        each = f", {numbers.as_money(spent.usd / len(trials))} a trial"
        success = f", {numbers.as_money(spent.usd / passed)} a success" if passed else ""
        yield "cost", f"{numbers.as_money(spent.usd)}{each}{success}"


#: What each budget is called, by the field that holds it.
_BUDGETS = {"trials": "trials", "seconds": "time", "tokens": "tokens", "usd": "money"}


def _list_budgets(record: RunRecord) -> Iterator[tuple[str, str]]:
    budget, spent = asdict(record.plan.options.budget), record.verdict.spending
    writers = {"seconds": numbers.as_duration, "usd": numbers.as_money}
    for field, name in _BUDGETS.items():
        used, most = getattr(spent, field), budget[field]
        write = writers.get(field, "{:,.0f}".format)
        if most is not None and used is not None:
            # Trials that were under way when a budget ran out may have gone beyond it.
            share = numbers.as_probability(min(1.0, used / most), digits=0)
            yield f"{name} budget", f"{share}: {write(used)} of {write(most)}"


def _chart_course(record: RunRecord) -> Chart | None:
    trials = record.trials
    starts = array("d", (one for table in trials.tables for one in table.starts))
    if len(starts) < FEWEST or max(starts) <= 0:
        return None
    counted, in_all = "trials", ""
    unit: Unit = "count"
    sums: Sequence[float] = range(1, len(starts) + 1)
    # A price of 0 everywhere draws no curve worth a look: then the trials are counted instead.
    # Without this a run of a million trials would be read through only to find no price.
    is_priced = any(table.has_expenses for table in trials.tables)
    costs = array("d", (one.cost_usd or 0.0 for one in trials.sketches() if is_priced))
    if any(costs):
        order = array("I", sorted(range(len(starts)), key=starts.__getitem__))
        sums = array("d", accumulate(map(costs.__getitem__, order)))
        counted, in_all, unit = "cost", f", {numbers.as_money(sums[-1])} in all", "usd"
    starts = array("d", sorted(starts))
    # The last trial started before the run ended, and took its time.
    end = max(starts[-1], record.verdict.spending.seconds)
    points = ((starts[k], sums[k]) for k in thin_out(len(trials), CORNERS))
    chart = chart_lines(
        f"{counted.capitalize()} over the run",
        f"{numbers.as_count(len(trials), 'trial')} in {numbers.as_duration(end)}{in_all}; each "
        "counted when it started. A flat stretch is time in which nothing could start.",
        "time since the start",
        counted,
        [Line(name=counted, ink="one", points=((0.0, 0), *points, (end, sums[-1])))],
        x_unit="seconds",
        y_unit=unit,
    )
    # A curve needs its corners; a table of all of them nobody would read.
    return replace(chart, rows=tuple(chart.rows[k] for k in thin_out(len(chart.rows), ROWS)))


def _list_fine_print(record: RunRecord) -> Iterator[blocks.Section]:
    """List what qualifies the verdict, what was run, and how to check every number."""
    verdict, caveats = record.verdict, tuple(analysis.list_caveat_sections(record.verdict))
    if caveats:
        note = "What qualifies the verdict without changing it."
        yield blocks.Section(heading="Caveats", blocks=caveats, note=note)
    settings = blocks.Facts(heading="Settings", pairs=tuple(_list_settings(record)))
    opening: tuple[blocks.Block, ...] = (*analysis.list_opening_sections(verdict), settings)
    note = "Enough for a stranger to find the same inputs and conditions again."
    yield blocks.Section(heading="Provenance", blocks=opening, note=note)
    closing = tuple(analysis.list_closing_sections(verdict))
    note = "The numerical ingredients, to check every step by hand."
    yield blocks.Section(heading="Reproducibility", blocks=closing, note=note)


def _list_settings(record: RunRecord) -> Iterator[tuple[str, str]]:
    plan, options = record.plan, record.plan.options
    pace, timeout, horizon = options.rate_per_s, options.timeout_s, options.horizon
    yield "purpose", plan.purpose
    yield "rule set", plan.rule
    yield "concurrency", str(options.concurrency)
    yield "pace", "" if pace is None else f"at most {pace:g} trials a second"
    yield "timeout", "" if timeout is None else numbers.as_duration(timeout)
    yield "retries", str(options.retries)
    yield "budget", ", ".join(numbers.list_amounts(**asdict(options.budget))) or "none"
    yield "stops early", "yes" if options.curtail else "no"
    # An override admits what a guardrail stopped; who reads the report must learn of it.
    yield "overrides", ", ".join(options.overrides)
    yield (
        "horizon",
        numbers.as_count(horizon, "run") if isinstance(horizon, int) else str(horizon or ""),
    )
    for name, fingerprint in plan.structure.items():
        yield f"postconditions of {name}", fingerprint


def render_html(record: RunRecord | Sequence[RunRecord], *, title: str | None = None) -> str:
    """Render the report of a run or of a suite as a complete HTML document.

    Args:
        record: What was run, one contract or several.
        title: What the page is called; the contract's name where none is given.

    Raises:
        InvalidArgument: There is no record: what was not run is never PASS.
    """
    from trialwise.renderers.html.page_frame import render_document

    return render_document(build_report(record, title=title))


def build_report(
    record: RunRecord | Sequence[RunRecord], *, title: str | None = None
) -> blocks.Document:
    """Build the report of a run or of a suite.

    Args:
        record: What was run, one contract or several.
        title: What the page is called; the contract's name where none is given.

    Raises:
        InvalidArgument: There is no record: what was not run is never PASS.
    """
    # A page without a run could be taken for one without a failure.
    records = suite_totals.require_runs((record,) if isinstance(record, RunRecord) else record)
    if len(records) == 1:
        return _build_run(records[0], title or _pick_name(records[0]), Room())
    return _build_suite(records, title or "Suite")


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How much of a page one run may take, so that the whole stays under a megabyte."""

    size: int = 800_000
    """In bytes; the failing trials take what the rest leaves of it."""
    trials: int = 250
    """Failing trials."""
    charted: int = 12
    """Criteria whose charts are drawn."""
    cells: int = 1200
    """The cells of the heat maps."""

    def share(self, runs: int) -> Room:
        """Return the room of each of several runs."""
        return Room(
            size=self.size // runs,
            # However many contracts there are, each shows a few failures to read.
            trials=max(5, self.trials // runs),
            charted=max(1, self.charted // runs),
            cells=max(60, self.cells // runs),
        )


def _build_run(record: RunRecord, title: str, room: Room, *, name: str = "") -> blocks.Document:
    """Build everything about one run, the most important first."""
    # What an engineer needs comes first: what failed and why, then what explains the decisions.
    run = describe_run(record)
    first = criterion_details.build_criteria_section(record, run)
    after = (
        verdict_meaning.build_meaning_section(record),
        criterion_details.build_details_section(record, room.charted),
        build_latency_section(record),
        build_gates_section(record),
        build_inputs_section(record, room.cells),
        build_costs_section(record),
        *_list_fine_print(record),
    )
    criteria = [one for one in run.lines if one.kind is LineKind.CRITERION]
    reasons = tuple(list_failures(criteria, with_texts=False))
    # Failing trials are what varies: they take the room that all else leaves, and some in any case.
    left = max(room.size - estimate_size((first, *reasons, *after)), room.size // 10)
    sections = (first, build_trials_section(record, room.trials, left, reasons), *after)
    # A run that measured a baseline asks nothing of anybody.
    notes = () if verdict_meaning.is_measured(record) else run.attention
    return blocks.Document(
        kind="Run report",
        title=title,
        badge=verdict_meaning.make_run_badge(record),
        lead=verdict_meaning.explain_verdict(record),
        facts=tuple(verdict_meaning.list_figures(record)),
        opening=(build_attention(notes, verdict_meaning.MOST_NOTES),) if notes else (),
        blocks=tuple(section for section in sections if section is not None),
        dateline=tuple(_list_dateline([record])),
        name=name,
    )


def _build_suite(records: Sequence[RunRecord], title: str) -> blocks.Document:
    verdicts = [one.verdict for one in records]
    room, spent = Room().share(len(records)), suite_totals.sum_spending(verdicts)
    names = [f"contract {k} {_pick_name(one)}" for k, one in enumerate(records, start=1)]
    bounds = suite_totals.list_error_sentences(suite_totals.bound_suite_errors(verdicts))
    together = f"Over all contracts together: {' '.join(bounds)}"
    bounded = (blocks.Prose(paragraphs=(together,), tone="quiet"),)
    named = zip(records, names, strict=True)
    counts = (("contracts", f"{len(records):,}"), ("trials", f"{spent.trials:,}"))
    return blocks.Document(
        kind="Suite report",
        title=title,
        badge=_make_suite_badge(verdicts),
        badge_label="Suite verdict",
        lead=_write_lead(records),
        facts=(*counts, *suite_totals.list_spent(spent)),
        opening=(_list_contracts(records, names), *(bounded if bounds else ())),
        blocks=tuple(_build_run(one, _pick_name(one), room, name=name) for one, name in named),
        dateline=tuple(_list_dateline(records)),
    )


def _make_suite_badge(verdicts: Sequence[Verdict]) -> blocks.Badge:
    return verdict_meaning.make_badge(suite_totals.decide_suite(verdicts))


def build_report_card(records: Sequence[RunRecord]) -> blocks.Document:
    """Build what a notebook shows of the report of a run or of a suite."""
    runs = suite_totals.require_runs(records)
    suite, first, several = describe_suite(runs), runs[0], len(runs) > 1
    notes = [
        f"{run.contract}: {note}" if several else note
        for run in suite.runs
        for note in run.attention
    ]
    # Several contracts have a table of contracts, and no room for one of criteria each.
    if several:
        facts, parts = suite.outcome, [_list_contracts(runs)]
    else:
        facts = (*suite.runs[0].headings, *suite.outcome)
        strips = criterion_details.map_strips(first)
        parts = [tabulate_lines(suite.runs[0], most=_MOST_ROWS, strips=strips)]
    shown: list[blocks.Block] = [*parts]
    if notes:
        items = blocks.Items(items=numbers.keep_few(notes, _MOST_NOTES))
        summary = f"Needs attention ({len(notes):,})"
        shown.append(blocks.Details(summary=summary, blocks=(items,), is_open=True))
    if notes and not several:
        red = [line for line in suite.results if line.is_red]
        shown += list_failures(red[:_MOST_NOTES], most=3)
    badge = verdict_meaning.make_summary_badge(first)
    return blocks.Document(
        kind="Suite" if several else "Run",
        title="suite" if several else _pick_name(first),
        badge=_make_suite_badge([one.verdict for one in runs]) if several else badge,
        lead=_write_lead(runs) if several else verdict_meaning.explain_verdict(first),
        facts=tuple(("", one) for one in facts),
        blocks=tuple(shown),
    )


def _write_lead(records: Sequence[RunRecord]) -> str:
    """Name the contracts that did not pass, the worst first."""
    words = {
        Decision.FAIL: "failed",
        None: "were refused",
        Decision.INCONCLUSIVE: "could not be decided",
    }
    of, left = numbers.as_count(len(records), "contract"), []
    for decision, word in words.items():
        names = [_pick_name(one) for one in records if one.verdict.decision is decision]
        left += [f"{len(names)} of {of} {word}: {numbers.join_few(names)}."] if names else []
    return " ".join(left) or f"{numbers.as_all(len(records), 'contract').capitalize()} passed."


def _list_contracts(records: Sequence[RunRecord], targets: Sequence[str] = ()) -> blocks.Table:
    """List the contracts, with links where there is more about them."""
    rows: list[tuple[blocks.Cell, ...]] = []
    for one, target in zip_longest(records, targets):
        name, spent = _pick_name(one), dict(suite_totals.list_spent(one.verdict.spending))
        took = (spent[kind] or "–" for kind in ("time", "cost"))
        means = verdict_meaning.make_summary_badge(one), verdict_meaning.explain_verdict(one)
        rows.append((blocks.Name(name, target or ""), *means, f"{len(one.trials):,}", *took))
    columns = ("contract", "verdict", "meaning", "trials", "time", "cost")
    return blocks.list_rows(rows, columns, heading="Contracts", words=(0, 1, 2), is_headed=False)


def _pick_name(record: RunRecord) -> str:
    return record.verdict.contract or record.plan.contract


def _list_dateline(records: Sequence[RunRecord]) -> Iterator[str]:
    first = records[0]
    when = first.verdict.started_at
    if when is not None:
        yield f"{when.day} {when:%B %Y, %H:%M %Z}".strip()
    if len(records) == 1 and first.run_id:
        yield f"run {first.run_id}"
    yield f"trialwise {first.verdict.reproducibility.tool_version}".strip()
