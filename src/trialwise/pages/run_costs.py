"""What the run took: time, tokens and money, against what it was allowed."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate

from trialwise.documents.blocks import Block, Facts, Section
from trialwise.documents.charts import Axis, Bar, Bars, Chart, Line, round_up, spread_hits, thin_out
from trialwise.documents.numbers import as_count, as_duration, as_money, as_probability
from trialwise.model.run import RunRecord
from trialwise.pages.suite_totals import write_abandoned, write_amounts

#: Fewer trials make no curve worth a look.
FEWEST = 5
CORNERS, COLUMNS, ROWS = 200, 60, 10


def build_costs_section(record: RunRecord) -> Section | None:
    """Sums, budgets and the course of the run; None where nothing was run."""
    if not record.trials:
        return None
    budgets, course = tuple(_list_budgets(record)), _chart_course(record)
    blocks: list[Block] = [Facts(pairs=tuple(_list_sums(record)))]
    blocks += [Bars(bars=budgets)] if budgets else []
    blocks += [] if course is None else [course]
    return Section(
        heading="Cost and time",
        blocks=tuple(blocks),
        note="Of all trials, also those after a criterion was decided; preparation apart.",
    )


def _list_sums(record: RunRecord) -> Iterator[tuple[str, str]]:
    spent, trials = record.verdict.spending, record.trials
    passed = len(trials) - trials.failures
    retries = spent.attempts - spent.trials
    yield "trials", f"{len(trials):,}" + (f", {retries:,} retries" if retries > 0 else "")
    if spent.abandoned:
        cost = write_abandoned(spent)
        yield "abandoned", f"{spent.abandoned:,}, not needed any more{cost}"
    if spent.seconds:
        rate = len(trials) / spent.seconds
        yield "wall time", f"{as_duration(spent.seconds)}, {60 * rate:.0f} trials a minute"
    waited = math.fsum(one for table in trials.tables for one in table.latencies())
    if waited:
        yield "time in the service", as_duration(waited)
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
    yield "preparation", write_amounts(spent.setup_s, spent.setup_tokens, spent.setup_usd or None)
    yield "judges", write_amounts(tokens=spent.judging_tokens, usd=spent.judging_usd or None)


def _list_budgets(record: RunRecord) -> Iterator[Bar]:
    budget, spent = record.plan.options.budget, record.verdict.spending
    kinds = (
        ("trials", spent.trials, budget.trials, lambda value: f"{value:,.0f}"),
        ("time", spent.seconds, budget.seconds, as_duration),
        ("tokens", spent.tokens, budget.tokens, lambda value: f"{value:,.0f}"),
        ("money", spent.usd, budget.usd, as_money),
    )
    for name, used, most, write in kinds:
        if most is not None and used is not None:
            share = min(1.0, used / most)
            yield Bar(
                name=f"{name} budget",
                value=as_probability(share, digits=0),
                share=share,
                note=f"{write(used)} of {write(most)}",
            )


def _list_costs(record: RunRecord) -> array[float] | None:
    """List what each trial cost, nothing where it does not tell; None where none tells."""
    if not any(table.has_expenses for table in record.trials.tables):
        return None
    found = array("d")
    is_told = False
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
    spends = costs is not None
    sums: Sequence[float] = range(1, len(starts) + 1)
    if costs is not None:
        order = array("I", sorted(range(len(starts)), key=starts.__getitem__))
        sums = array("d", accumulate(map(costs.__getitem__, order)))
    starts = array("d", sorted(starts))
    end = max(starts[-1], record.verdict.spending.seconds)
    columns = thin_out(len(trials), COLUMNS)

    def write_row(k: int) -> tuple[str, ...]:
        row = (as_duration(starts[k]), f"{k + 1:,}")
        return (*row, as_money(sums[k])) if spends else row

    def read_out(place: int) -> str:
        k = columns[place]
        cost = f", {as_money(sums[k])}" if spends else ""
        return f"after {as_duration(starts[k])}: {as_count(k + 1, 'trial')}{cost}"

    in_all = f", {as_money(sums[-1])} in all" if spends else ""
    points = tuple((starts[k], sums[k]) for k in thin_out(len(trials), CORNERS))
    return Chart(
        heading="Cost over the run" if spends else "Trials over the run",
        summary=(
            f"{as_count(len(trials), 'trial')} in {as_duration(end)}{in_all}; each counted "
            "when it started. A flat stretch is time in which nothing could start."
        ),
        x=Axis(low=0, high=end, label="time since the start", unit="seconds"),
        y=Axis(
            low=0,
            high=round_up(sums[-1]),
            label="cost" if spends else "trials",
            unit="usd" if spends else "count",
        ),
        lines=(Line(name="", ink="one", points=points),),
        hits=spread_hits([starts[k] for k in columns], read_out),
        columns=("time", "trials", "cost") if spends else ("time", "trials"),
        rows=tuple(write_row(k) for k in thin_out(len(trials), ROWS)),
    )
