"""The report of a run, or of a suite of them, as a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trialwise.documents.blocks import Document, Link, Prose, Section, Table, build_table
from trialwise.documents.numbers import as_all, as_count
from trialwise.documents.phrases import join_few
from trialwise.documents.printable import estimate_size
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Decision
from trialwise.pages.criterion_details import build_criteria_section, build_details_section
from trialwise.pages.failure_reasons import build_failure_bars
from trialwise.pages.gate_details import build_gates_section
from trialwise.pages.input_rates import build_inputs_section
from trialwise.pages.latency_distribution import build_latency_section
from trialwise.pages.provenance import build_caveats, build_provenance, build_reproducibility
from trialwise.pages.run_costs import build_costs_section
from trialwise.pages.suite_totals import (
    bound_suite_errors,
    decide_suite,
    list_spent,
    pick_suite_status,
    require_runs,
    sum_spending,
)
from trialwise.pages.trial_selection import build_trials_section
from trialwise.pages.verdict_meaning import (
    build_meaning_section,
    build_opening,
    explain_verdict,
    list_figures,
    make_badge,
    make_run_badge,
    make_summary_badge,
)


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


def build_report(record: RunRecord | Sequence[RunRecord], *, title: str | None = None) -> Document:
    """Build the report of a run or of a suite.

    Args:
        record: What was run, one contract or several.
        title: What the page is called; the contract's name where none is given.

    Raises:
        InvalidArgument: There is no record: what was not run is never PASS.
    """
    records = require_runs((record,) if isinstance(record, RunRecord) else record)
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
            trials=max(5, self.trials // runs),
            charted=max(1, self.charted // runs),
            cells=max(60, self.cells // runs),
        )


def _build_run(record: RunRecord, title: str, room: Room, *, name: str = "") -> Document:
    """Build everything about one run, the most important first."""
    # What an engineer needs comes first: what failed and why, then what explains the decisions.
    first = build_criteria_section(record)
    after = (
        build_meaning_section(record),
        build_details_section(record, room.charted),
        build_latency_section(record),
        build_gates_section(record),
        build_inputs_section(record, room.cells),
        build_costs_section(record),
        build_caveats(record),
        build_provenance(record),
        build_reproducibility(record),
    )
    reasons = build_failure_bars(record)
    left = max(room.size - estimate_size((first, *reasons, *after)), room.size // 10)
    trials = build_trials_section(record, room.trials, left, reasons)
    sections: tuple[Section | None, ...] = (first, trials, *after)
    return Document(
        kind="Run report",
        title=title,
        badge=make_run_badge(record),
        lead=explain_verdict(record),
        facts=tuple(list_figures(record)),
        opening=tuple(build_opening(record)),
        blocks=tuple(section for section in sections if section is not None),
        dateline=tuple(_list_dateline([record])),
        name=name,
    )


def _build_suite(records: Sequence[RunRecord], title: str) -> Document:
    verdicts = [one.verdict for one in records]
    room, spent = Room().share(len(records)), sum_spending(verdicts)
    names = [f"contract {k} {_pick_name(one)}" for k, one in enumerate(records, start=1)]
    bounds = [one.sentence for one in bound_suite_errors(verdicts)]
    together = f"Over all contracts together: {' '.join(bounds)}"
    return Document(
        kind="Suite report",
        title=title,
        badge=make_badge(decide_suite(verdicts), pick_suite_status(verdicts).value),
        badge_label="Suite verdict",
        lead=_write_lead(records),
        facts=(
            ("contracts", f"{len(records):,}"),
            ("trials", f"{spent.trials:,}"),
            *list_spent(spent),
        ),
        opening=(
            _list_contracts(records, names),
            *((Prose(paragraphs=(together,), tone="quiet"),) if bounds else ()),
        ),
        blocks=tuple(
            _build_run(one, _pick_name(one), room, name=name)
            for one, name in zip(records, names, strict=True)
        ),
        dateline=tuple(_list_dateline(records)),
    )


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


def _list_contracts(records: Sequence[RunRecord], names: Sequence[str]) -> Table:
    targets = {id(one): name for one, name in zip(records, names, strict=True)}
    return build_table(
        "Contracts",
        records,
        ("contract", lambda one: Link(text=_pick_name(one), target=targets[id(one)])),
        ("verdict", make_summary_badge),
        ("meaning", explain_verdict),
        ("trials", lambda one: f"{len(one.trials):,}"),
        ("time", lambda one: dict(list_spent(one.verdict.spending))["time"] or "–"),
        ("cost", lambda one: dict(list_spent(one.verdict.spending))["cost"] or "–"),
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
