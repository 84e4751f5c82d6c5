"""The results of a suite as a page, and the pieces of it that other pages show.

Markdown shows all of it. The report of a run and a notebook show the same table and the same
reasons beside more or less else, so that a criterion has one row and a failure one sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from trialwise.documents import blocks, results
from trialwise.documents.charts import Strip
from trialwise.documents.numbers import as_count
from trialwise.model.claim import Intent

APPROXIMATE = "≈ marks an interval by Wilson's method, which is approximate."
"""What the sign beside an interval means."""


def build_results_page(suite: results.SuiteResults) -> blocks.Document:
    """Build the results of a suite as a page: what needs attention, the tables, the failures.

    Args:
        suite: The results.
    """
    notes: list[blocks.Cell] = []
    for run in suite.runs:
        whose = blocks.Value(text=f"{run.contract}:", strong=True)
        is_named = len(suite.runs) > 1 and run.contract
        notes += ((whose, note) if is_named else note for note in run.attention)
    lines = ((one.title, one.details) for run in suite.runs for one in run.lines if one.details)
    each_input = [
        blocks.Details(summary=f"{name}: each input", blocks=(blocks.Items(items=items),))
        for name, items in lines
    ]
    runs = map(_build_run, suite.runs)
    return blocks.Document(
        kind="",
        title=suite.name,
        badge=blocks.Badge(word=suite.status.value, tone=suite.status.tone),
        facts=(("", suite.totals),),
        opening=(build_attention(notes),) if notes else (),
        blocks=(*runs, *list_failures(suite.results), *each_input, _build_basis(suite)),
    )


def build_attention(notes: Sequence[blocks.Cell], most: int | None = None) -> blocks.Section:
    """Build the list of what a reader must not miss.

    Args:
        notes: The most urgent first.
        most: How many stand open; the others take a click.
    """
    # The page of a long suite must not begin with screens of notes.
    shown: list[blocks.Block] = [blocks.Items(items=tuple(notes[:most]))]
    if most is not None and len(notes) > most:
        rest = blocks.Items(items=tuple(notes[most:]))
        more = as_count(len(rest.items), "more note")
        shown.append(blocks.Details(summary=more, blocks=(rest,)))
    inside = tuple(shown)
    return blocks.Section(heading="Needs attention", blocks=inside, depth="summary", tone="open")


def _build_run(run: results.RunResults) -> blocks.Section:
    badge = blocks.Badge(word=run.status.value, tone=run.status.tone)
    table = tabulate_lines(run)
    return blocks.Section(heading=run.contract, blocks=(table,), depth="summary", badges=(badge,))


def tabulate_lines(
    run: results.RunResults,
    *,
    linked: bool = False,
    strips: Mapping[str, Strip] = MappingProxyType({}),
    most: int | None = None,
) -> blocks.Table:
    """Tabulate what was decided and what is only reported, a row for each.

    An input that passes has no row: its criterion speaks for it.

    Args:
        run: The results.
        linked: Whether names lead to the sections of the run's report.
        strips: The intervals that are drawn beside their numbers, by the names of the lines.
        most: How many rows there are at most; the others are counted.
    """
    # With many inputs a table of those that pass would hide the one that does not.
    quiet = (results.LineKind.INPUT, results.Status.PASS)
    lines = [one for one in (*run.results, *run.reported) if (one.kind, one.status) != quiet]
    is_smoke = run.facts.get("intent") == Intent.SMOKE
    rows: list[tuple[blocks.Cell, ...]] = []
    for line in lines[:most]:
        figures = line.figures or results.Figures()
        rows.append(
            (
                blocks.Name(line.name, line.target if linked else ""),
                _make_badge(line, is_smoke=is_smoke),
                figures.rate,
                figures.interval_cell,
                *([strips.get(line.name, "")] if strips else []),
                figures.required,
                *("" if one is None else f"{one:,}" for one in (figures.trials, line.failed)),
                line.why,
            )
        )
    # Counted, since a table that ends without a word looks complete.
    left = len(lines) - len(rows)
    start = ("criterion", "verdict", "rate", f"{run.level} interval".strip())
    picture = ("",) if strips else ()
    return blocks.list_rows(
        rows,
        (*start, *picture, "held against", "trials", "failed", "why"),
        heading="Criteria",
        words=(0, 1, 3, 4, 5, 8) if strips else (0, 1, 3, 4, 7),
        notes=(*_list_claims(run), *([f"and {left:,} more rows"] if left else [])),
        is_headed=False,
    )


def _make_badge(line: results.ResultLine, *, is_smoke: bool) -> blocks.Badge:
    """Make the badge of a line; the tone of a FAIL is kept for what breaks the verdict."""
    # An advisory FAIL in red would make readers look for a verdict that it has no part in.
    breaks = line.is_red or line.status is not results.Status.FAIL
    tone = line.status.tone if breaks else "open"
    quiet = line.kind is results.LineKind.REPORTED or line.status is results.Status.REFUSED
    # The PASS of a smoke run is not evidence, and should not look like one at a glance.
    soft = line.status is results.Status.PASS and (is_smoke or line.word != line.status)
    return blocks.Badge(word=line.word, tone="plain" if quiet else tone, soft=soft)


def _list_claims(run: results.RunResults) -> Iterator[str]:
    """List whom the verdicts speak of, by criterion where they differ, and what a sign means."""
    claims: dict[str, list[str]] = {}
    for line in run.results:
        if line.kind is results.LineKind.CRITERION and line.claim:
            claims.setdefault(line.claim, []).append(line.name)
    if any(line.figures is not None and line.figures.is_approximate for line in run.results):
        yield APPROXIMATE
    # Usually all criteria speak of the same inputs, and one sentence says it for all.
    for claim, names in claims.items():
        whose = "This is" if len(claims) == 1 else f"{', '.join(names)}:"
        yield f"{whose} {claim}."


def list_failures(
    lines: Iterable[results.ResultLine], most: int = results.MOST_GROUPS, *, with_texts: bool = True
) -> Iterator[blocks.Details]:
    """List why trials failed: for each criterion its most frequent reasons with an example.

    Args:
        lines: Of one run or of several.
        most: How many reasons of a criterion are named; the others are counted.
        with_texts: Whether an example has its texts; a page with the trials themselves needs none.
    """
    for line in lines:
        if not line.failures or line.kind is results.LineKind.INPUT:
            continue
        failed = sum(group.count for group in line.failures)
        items = [_describe_group(one, with_texts=with_texts) for one in line.failures[:most]]
        if others := sum(group.count for group in line.failures[most:]):
            items.append((blocks.Value(text=f"{others:,} ×", strong=True), "other reasons"))
        items += [f"check {one.sentence}" for one in line.checks]
        summary = f"{line.title}: {as_count(failed, 'trial')} failed"
        # Where the texts are elsewhere, the reasons are few lines that stand open.
        inside = (blocks.Items(items=tuple(items)),)
        yield blocks.Details(summary=summary, blocks=inside, is_open=not with_texts)


def _describe_group(group: results.FailureGroup, *, with_texts: bool) -> blocks.Cell:
    """Describe one reason: how often, what was said, and an example as one finds it again."""
    explanation = results.shorten_text(group.explanation)
    said = f"{group.title}: {explanation}" if explanation else group.title
    start = (blocks.Value(text=f"{group.count:,} ×", strong=True), said, f"({group.where})")
    if not with_texts:
        return start
    said_texts = ((label, text) for label, text in group.exchange if text.strip())
    texts = [blocks.Verbatim(heading=label, text=text) for label, text in said_texts]
    if group.raised_at:
        texts.append(blocks.Verbatim(heading="raised at", text=group.raised_at))
    return (*start, *texts)


def _build_basis(suite: results.SuiteResults) -> blocks.Details:
    """Build what is needed to find the runs again, and how often the suite as a whole errs."""
    pairs = []
    for run in suite.runs:
        where = f", kept in {run.location}" if run.location else ""
        pairs.append((run.contract, f"run {run.run_id}, seed {run.seed}{where}"))
    bounds = (blocks.Items(items=suite.bounds),) if suite.bounds else ()
    # Run and seed are all that a stranger needs to repeat the run, so that every report has them.
    facts = blocks.Facts(pairs=tuple(pairs))
    return blocks.Details(summary="Runs and error rates", blocks=(facts, *bounds))
