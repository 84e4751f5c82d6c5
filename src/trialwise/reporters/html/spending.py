"""What the run took: time, tokens and money, against what it was allowed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from trialwise.documents.numbers import as_count, as_duration, as_money, as_probability
from trialwise.model.run import RunRecord
from trialwise.model.trial import Trial
from trialwise.reporters.html.parts import Outline, facts
from trialwise.reporters.html.plots import Axis, Hit, Line, Plot, render_plot
from trialwise.reporters.page.axis import round_above
from trialwise.reporters.page.markup import Markup, element

__all__ = ["spending_section"]

#: Fewer trials make no curve worth a look.
FEWEST = 5
CORNERS, COLUMNS, ROWS = 200, 60, 10


def spending_section(record: RunRecord, outline: Outline) -> Markup:
    """Sums, budgets and the course of the run; nothing where nothing was run."""
    if not record.trials:
        return Markup("")
    plot = _course(record)
    return outline.section(
        "Cost and time",
        facts(_sums(record), class_="facts"),
        _budgets(record),
        render_plot(plot, outline.below) if plot is not None else None,
        note="Of all trials, also those after a criterion was decided; preparation apart.",
    )


def _sums(record: RunRecord) -> Iterator[tuple[str, object]]:
    spent, trials = record.verdict.spending, record.trials
    passed = sum(trial.passed for trial in trials)
    retries = spent.attempts - spent.trials
    yield "trials", f"{len(trials):,}" + (f", {retries:,} retries" if retries > 0 else "")
    if spent.abandoned:
        took = [f"{spent.abandoned_tokens:,} tokens"] if spent.abandoned_tokens else []
        took += [as_money(spent.abandoned_usd)] if spent.abandoned_usd is not None else []
        told = f", at least {', '.join(took)}" if took else ", at an unknown cost"
        yield "abandoned", f"{spent.abandoned:,}, once the verdict was certain{told}"
    if spent.seconds:
        rate = len(trials) / spent.seconds
        yield "wall time", f"{as_duration(spent.seconds)}, {60 * rate:.0f} trials a minute"
    waited = math.fsum(trial.latency_s or 0 for trial in trials)
    if waited:
        yield "time in the service", as_duration(waited)
    if spent.tokens:
        sent = sum(trial.usage.input_tokens for trial in trials if trial.usage is not None)
        got = sum(trial.usage.output_tokens for trial in trials if trial.usage is not None)
        yield "tokens", f"{spent.tokens:,}: {sent:,} in, {got:,} out"
    if spent.usd is not None:
        each = f", {as_money(spent.usd / len(trials))} a trial"
        success = f", {as_money(spent.usd / passed)} a success" if passed else ""
        yield "cost", f"{as_money(spent.usd)}{each}{success}"
    if spent.setup_s or spent.setup_tokens or spent.setup_usd:
        parts = [as_duration(spent.setup_s)] if spent.setup_s else []
        parts += [f"{spent.setup_tokens:,} tokens"] if spent.setup_tokens else []
        parts += [as_money(spent.setup_usd)] if spent.setup_usd else []
        yield "preparation", ", ".join(parts)
    if spent.judging_tokens or spent.judging_usd:
        parts = [f"{spent.judging_tokens:,} tokens"] if spent.judging_tokens else []
        parts += [as_money(spent.judging_usd)] if spent.judging_usd else []
        yield "judges", ", ".join(parts)


def _budgets(record: RunRecord) -> Markup:
    budget, spent = record.plan.options.budget, record.verdict.spending
    kinds = (
        ("trials", spent.trials, budget.trials, lambda value: f"{value:,.0f}"),
        ("time", spent.seconds, budget.seconds, as_duration),
        ("tokens", spent.tokens, budget.tokens, lambda value: f"{value:,.0f}"),
        ("money", spent.usd, budget.usd, as_money),
    )
    bars = [
        element(
            "li",
            element("span", f"{name} budget", class_="what"),
            element("span", as_probability(min(1.0, used / most), digits=0), class_="count"),
            element(
                "span",
                element("span", style=f"width:{100 * min(1.0, used / most):.1f}%"),
                class_="bar",
                aria_hidden="true",
            ),
            element("span", f"{spelled(used)} of {spelled(most)}", class_="why"),
        )
        for name, used, most, spelled in kinds
        if most is not None and used is not None
    ]
    return element("ol", *bars, class_="bars budgets") if bars else Markup("")


def _course(record: RunRecord) -> Plot | None:
    trials = sorted(record.trials, key=lambda trial: trial.started_s)
    if len(trials) < FEWEST or trials[-1].started_s <= 0:
        return None
    costs = [trial.cost_usd for trial in trials]
    spends = any(cost is not None for cost in costs)
    steps = [cost or 0.0 for cost in costs] if spends else [1.0] * len(trials)
    sums = list(accumulate(steps))
    kept = _spread(len(trials), CORNERS)
    points = [(trials[k].started_s, sums[k]) for k in kept]
    end = max(trials[-1].started_s, record.verdict.spending.seconds)
    per = f", {as_money(sums[-1])} in all" if spends else ""
    return Plot(
        heading="Cost over the run" if spends else "Trials over the run",
        summary=(
            f"{as_count(len(trials), 'trial')} in {as_duration(end)}{per}; each counted when it "
            "started. A flat stretch is time in which nothing could start."
        ),
        x=Axis(low=0, high=end, label="time since the start", unit="seconds"),
        y=Axis(
            low=0,
            high=round_above(sums[-1]),
            label="cost" if spends else "trials",
            unit="usd" if spends else "count",
        ),
        lines=(Line(name="", ink="one", points=tuple(points)),),
        hits=_hits(trials, sums, end, spends=spends),
        columns=("time", "trials", "cost") if spends else ("time", "trials"),
        rows=tuple(_row(trials, sums, k, spends=spends) for k in _spread(len(trials), ROWS)),
    )


def _spread(count: int, most: int) -> list[int]:
    if count <= most:
        return list(range(count))
    return [round(k * (count - 1) / (most - 1)) for k in range(most)]


def _row(
    trials: Sequence[Trial], sums: Sequence[float], k: int, *, spends: bool
) -> tuple[str, ...]:
    row = (as_duration(trials[k].started_s), f"{k + 1:,}")
    return (*row, as_money(sums[k])) if spends else row


def _hits(
    trials: Sequence[Trial], sums: Sequence[float], end: float, *, spends: bool
) -> tuple[Hit, ...]:
    kept = _spread(len(trials), COLUMNS)
    times = [trials[k].started_s for k in kept]
    edges = [0.0, *((a + b) / 2 for a, b in pairwise(times)), end]
    return tuple(
        Hit(
            low=low,
            high=high,
            text=f"after {as_duration(trials[k].started_s)}: {as_count(k + 1, 'trial')}"
            + (f", {as_money(sums[k])}" if spends else ""),
        )
        for k, (low, high) in zip(kept, pairwise(edges), strict=True)
    )
