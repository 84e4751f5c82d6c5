"""The report of a run, or of a suite of them, as a document."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate

from trialwise.documents import blocks
from trialwise.documents.charts import Chart, Line, chart_lines, thin_out
from trialwise.documents.numbers import (
    as_all,
    as_count,
    as_duration,
    as_money,
    as_probability,
    join_few,
    list_amounts,
)
from trialwise.documents.printable import estimate_size
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Decision, Verdict
from trialwise.pages import suite_totals, verdict_meaning
from trialwise.pages.analysis import (
    list_caveat_sections,
    list_closing_sections,
    list_opening_sections,
)
from trialwise.pages.criterion_details import (
    build_criteria_section,
    build_details_section,
    map_strips,
)
from trialwise.pages.failure_groups import tabulate_failures
from trialwise.pages.gate_details import build_gates_section
from trialwise.pages.latency_details import build_latency_section
from trialwise.pages.results import describe_run, describe_suite
from trialwise.pages.results_page import build_attention, build_card
from trialwise.pages.trial_sections import build_inputs_section, build_trials_section

#: Fewer trials make no curve worth a look.
FEWEST = 5
CORNERS, ROWS = 60, 10


def build_costs_section(record: RunRecord) -> blocks.Section | None:
    """Sums, budgets and the course of the run; None where nothing was run."""
    if not record.trials:
        return None
    facts = blocks.Facts(pairs=(*_list_sums(record), *_list_budgets(record)))
    course = _chart_course(record)
    return blocks.Section(
        heading="Cost and time",
        blocks=(facts,) if course is None else (facts, course),
        note=(
            "Of all trials, also those after a criterion was decided. What was spent on "
            "preparation, on judges and on abandoned trials stands under Provenance."
        ),
    )


def _list_sums(record: RunRecord) -> Iterator[tuple[str, str]]:
    spent, trials = record.verdict.spending, record.trials
    passed = len(trials) - trials.failures
    retries = spent.attempts - spent.trials
    yield "trials", f"{len(trials):,}" + (f", {retries:,} retries" if retries > 0 else "")
    if spent.seconds:
        rate = len(trials) / spent.seconds
        yield "wall time", f"{as_duration(spent.seconds)}, {60 * rate:.0f} trials a minute"
    # Summed exactly: a million rounded additions would show in the last digits.
    waited = math.fsum(one for table in trials.tables for one in table.latencies())
    yield "time in the service", as_duration(waited) if waited else ""
    if spent.tokens:
        sent = got = 0
        for trial in trials.sketches():
            if trial.usage is not None:
                sent += trial.usage.input_tokens
                got += trial.usage.output_tokens
        yield "tokens", f"{spent.tokens:,}: {sent:,} in, {got:,} out"
    if spent.usd is not None:
        each = f", {as_money(spent.usd / len(trials))} a trial"
        success = f", {as_money(spent.usd / passed)} a success" if passed else ""
        yield "cost", f"{as_money(spent.usd)}{each}{success}"


def _list_budgets(record: RunRecord) -> Iterator[tuple[str, str]]:
    budget, spent = record.plan.options.budget, record.verdict.spending
    for name, used, most, write in (
        ("trials", spent.trials, budget.trials, lambda value: f"{value:,.0f}"),
        ("time", spent.seconds, budget.seconds, as_duration),
        ("tokens", spent.tokens, budget.tokens, lambda value: f"{value:,.0f}"),
        ("money", spent.usd, budget.usd, as_money),
    ):
        if most is not None and used is not None:
            # Trials that were under way when a budget ran out may have gone beyond it.
            share = as_probability(min(1.0, used / most), digits=0)
            yield f"{name} budget", f"{share}: {write(used)} of {write(most)}"


def _list_costs(record: RunRecord) -> array[float] | None:
    """List what each trial cost, nothing where it does not tell; None where none tells."""
    # Without this a run of a million trials would be read through only to find no price.
    if not any(table.has_expenses for table in record.trials.tables):
        return None
    found, is_told = array("d"), False
    for trial in record.trials.sketches():
        is_told = is_told or trial.cost_usd is not None
        found.append(trial.cost_usd or 0.0)
    return found if is_told else None


def _chart_course(record: RunRecord) -> Chart | None:
    trials = record.trials
    starts = array("d", (one for table in trials.tables for one in table.starts))
    if len(starts) < FEWEST or max(starts) <= 0:
        return None
    costs = _list_costs(record)
    sums: Sequence[float] = range(1, len(starts) + 1)
    if costs is not None:
        order = array("I", sorted(range(len(starts)), key=starts.__getitem__))
        sums = array("d", accumulate(map(costs.__getitem__, order)))
    starts = array("d", sorted(starts))
    # The last trial started before the run ended, and took its time.
    end = max(starts[-1], record.verdict.spending.seconds)
    in_all = "" if costs is None else f", {as_money(sums[-1])} in all"
    counted = "trials" if costs is None else "cost"
    points = ((starts[k], sums[k]) for k in thin_out(len(trials), CORNERS))
    chart = chart_lines(
        f"{counted.capitalize()} over the run",
        f"{as_count(len(trials), 'trial')} in {as_duration(end)}{in_all}; each counted when it "
        "started. A flat stretch is time in which nothing could start.",
        "time since the start",
        counted,
        [Line(name=counted, ink="one", points=((0.0, 0), *points, (end, sums[-1])))],
        x_unit="seconds",
        y_unit="count" if costs is None else "usd",
    )
    # A curve needs its corners; a table of all of them nobody would read.
    return replace(chart, rows=tuple(chart.rows[k] for k in thin_out(len(chart.rows), ROWS)))


def _list_fine_print(record: RunRecord) -> Iterator[blocks.Section]:
    """List what qualifies the verdict, what was run, and how to check every number."""
    verdict, caveats = record.verdict, tuple(list_caveat_sections(record.verdict))
    if caveats:
        note = "What qualifies the verdict without changing it."
        yield blocks.Section(heading="Caveats", blocks=caveats, note=note)
    settings = blocks.Facts(heading="Settings", pairs=tuple(_list_settings(record)))
    yield blocks.Section(
        heading="Provenance",
        blocks=(*list_opening_sections(verdict), settings),
        note="Enough for a stranger to find the same inputs and conditions again.",
    )
    yield blocks.Section(
        heading="Reproducibility",
        blocks=tuple(list_closing_sections(verdict)),
        note="The numerical ingredients, to check every step by hand.",
    )


def _list_settings(record: RunRecord) -> Iterator[tuple[str, str]]:
    plan, options = record.plan, record.plan.options
    pace, timeout, horizon = options.rate_per_s, options.timeout_s, options.horizon
    yield "purpose", plan.purpose
    yield "intent", plan.intent.lower()
    yield "rule set", plan.rule
    yield "analysis", plan.analysis
    yield "concurrency", str(options.concurrency)
    yield "pace", "" if pace is None else f"at most {pace:g} trials a second"
    yield "timeout", "" if timeout is None else as_duration(timeout)
    yield "retries", str(options.retries)
    yield "budget", ", ".join(list_amounts(**asdict(options.budget))) or "none"
    yield "stops early", "yes" if options.curtail else "no"
    # An override admits what a guardrail stopped; who reads the report must learn of it.
    yield "overrides", ", ".join(options.overrides)
    yield "horizon", as_count(horizon, "run") if isinstance(horizon, int) else str(horizon or "")
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
    first = build_criteria_section(record, run)
    after = (
        verdict_meaning.build_meaning_section(record),
        build_details_section(record, room.charted),
        build_latency_section(record),
        build_gates_section(record),
        build_inputs_section(record, room.cells),
        build_costs_section(record),
        *_list_fine_print(record),
    )
    reasons = tabulate_failures(run.lines)
    # Failing trials are what varies: they take the room that all else leaves, and some in any case.
    left = max(room.size - estimate_size((first, *reasons, *after)), room.size // 10)
    trials = build_trials_section(record, room.trials, left, reasons)
    sections: tuple[blocks.Section | None, ...] = (first, trials, *after)
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
    return blocks.Document(
        kind="Suite report",
        title=title,
        badge=_make_suite_badge(verdicts),
        badge_label="Suite verdict",
        lead=_write_lead(records),
        facts=(
            ("contracts", f"{len(records):,}"),
            ("trials", f"{spent.trials:,}"),
            *suite_totals.list_spent(spent),
        ),
        opening=(
            _list_contracts(records, names),
            *((blocks.Prose(paragraphs=(together,), tone="quiet"),) if bounds else ()),
        ),
        blocks=tuple(
            _build_run(one, _pick_name(one), room, name=name)
            for one, name in zip(records, names, strict=True)
        ),
        dateline=tuple(_list_dateline(records)),
    )


def _make_suite_badge(verdicts: Sequence[Verdict]) -> blocks.Badge:
    status = suite_totals.pick_suite_status(verdicts)
    return verdict_meaning.make_badge(suite_totals.decide_suite(verdicts), status.value)


def build_report_card(records: Sequence[RunRecord]) -> blocks.Document:
    """Build what a notebook shows of the report of a run or of a suite."""
    runs = suite_totals.require_runs(records)
    first, verdicts = runs[0], [one.verdict for one in runs]
    page = blocks.Document(
        kind="Run",
        title=_pick_name(first),
        badge=verdict_meaning.make_summary_badge(first),
        lead=verdict_meaning.explain_verdict(first),
        blocks=(),
    )
    if len(runs) > 1:
        page = blocks.Document(
            kind="Suite",
            title="suite",
            badge=_make_suite_badge(verdicts),
            lead=_write_lead(runs),
            blocks=(_list_contracts(runs),),
        )
    return build_card(page, describe_suite(runs), map_strips(first))


def _write_lead(records: Sequence[RunRecord]) -> str:
    """Name the contracts that did not pass, the worst first."""
    words = {
        Decision.FAIL: "failed",
        None: "were refused",
        Decision.INCONCLUSIVE: "could not be decided",
    }
    found = [
        (word, [_pick_name(one) for one in records if one.verdict.decision is decision])
        for decision, word in words.items()
    ]
    left = [
        f"{len(names)} of {as_count(len(records), 'contract')} {word}: {join_few(names)}."
        for word, names in found
        if names
    ]
    return " ".join(left) or f"{as_all(len(records), 'contract').capitalize()} passed."


def _list_contracts(records: Sequence[RunRecord], targets: Sequence[str] = ()) -> blocks.Table:
    """List the contracts, with links where there is more about them."""
    places = {id(one): target for one, target in zip(records, targets, strict=False)}

    def write_name(one: RunRecord) -> blocks.Cell:
        name = _pick_name(one)
        return blocks.Link(text=name, target=places[id(one)]) if places else blocks.Name(name)

    return blocks.build_table(
        "Contracts",
        records,
        ("contract", write_name),
        ("verdict", verdict_meaning.make_summary_badge),
        ("meaning", verdict_meaning.explain_verdict),
        ("trials", lambda one: f"{len(one.trials):,}"),
        ("time", lambda one: dict(suite_totals.list_spent(one.verdict.spending))["time"] or "–"),
        ("cost", lambda one: dict(suite_totals.list_spent(one.verdict.spending))["cost"] or "–"),
        words=(0, 1, 2),
        is_headed=False,
    )


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
