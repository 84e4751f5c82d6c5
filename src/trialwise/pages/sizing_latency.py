"""The latency plan in words: minimums, ranks against a baseline, counts within a limit."""

from __future__ import annotations

from collections.abc import Iterator

from trialwise.documents.blocks import Block, Column, Document, Row, Table, build_table
from trialwise.documents.charts import Chart, Guide
from trialwise.documents.numbers import as_duration, as_percent, as_probability
from trialwise.pages.sizing_words import chart_chances, format_cost, guide_rates
from trialwise.procedures.sizing.latency_sizing import LatencyPlan, LatencyQuestion, LatencyRow
from trialwise.stats.result_types import Undefined

_SHOW_NOTE = (
    "To show: more than an extreme of the run. To bound: some observed latency lies above the true "
    "percentile in at least"
)


def build_latency_page(plan: LatencyPlan) -> Document:
    """Build the latency plan as a page."""
    question = plan.question
    names = ", ".join(_level(row.percentile) for row in plan.rows)
    return Document(
        kind="Plan",
        title=f"Plan: latency at {names}",
        facts=tuple(_latency_facts(question)),
        lead=_latency_recommendation(plan),
        blocks=tuple(_latency_blocks(plan)),
    )


def _level(percentile: float) -> str:
    return f"p{100 * percentile:g}"


def _latency_facts(question: LatencyQuestion) -> Iterator[tuple[str, str]]:
    yield "confidence", f"{as_percent(question.confidence)}, one-sided"
    if question.baseline_trials is not None:
        yield "baseline", f"{question.baseline_trials} latencies of successful trials"
    if question.success_rate < 1:
        yield "success rate", as_percent(question.success_rate)
    if question.trials is not None:
        expected = question.expected_trials
        cost = format_cost(question.prices, question.trials)
        yield "trials", f"{question.trials} planned, {expected} successful expected{cost}"
    if question.limited:
        named = question.limit_s is not None
        yield "limit", f"at most {as_duration(question.limit_s or 0.0)}" if named else "explicit"


def _latency_recommendation(plan: LatencyPlan) -> str:
    question = plan.question
    hardest = max(plan.rows, key=lambda row: row.existence_minimum)
    planned = hardest.planned_for_existence
    assert isinstance(planned, int)  # the success rate is above 0
    if question.trials is None:
        successes = (
            ""
            if question.success_rate == 1
            else f", so that {hardest.existence_minimum} successes are expected"
        )
        return (
            f"Run at least {planned} trials{format_cost(question.prices, planned)}{successes}: "
            f"fewer latencies cannot bound {_level(hardest.percentile)} from above at "
            f"{as_percent(question.confidence)} confidence."
        )
    sentences = [_latency_sentence(plan, row) for row in plan.rows]
    return " ".join(sentences)


def _latency_sentence(plan: LatencyPlan, row: LatencyRow) -> str:
    question, name = plan.question, _level(row.percentile)
    expected = question.expected_trials
    if question.limited or row.precedence_plan is None:
        limit = "the limit" if question.limit_s is None else as_duration(question.limit_s)
        if row.limit is None or row.limit.cutoff is None:
            return (
                f"{name}: {expected} latencies cannot show a limit, whatever they are; plan "
                f"{row.planned_for_existence} trials."
            )
        return (
            f"{name}: PASS with at least {row.limit.cutoff} of {expected} latencies within "
            f"{limit}; at exactly {as_percent(row.percentile)} within it that happens in "
            f"{as_probability(row.limit.achieved_size)} of runs."
        )
    precedence = row.precedence
    if precedence is None or precedence.rank is None:
        needed = row.precedence_plan.minimum_baseline_trials
        more = "" if isinstance(needed, Undefined) else f"; it takes a baseline of {needed}"
        return f"{name}: no baseline latency can judge {expected} test latencies{more}."
    return (
        f"{name}: FAIL where the test's {name} exceeds the baseline's latency number "
        f"{precedence.rank} of {precedence.baseline_trials}; that happens in "
        f"{as_probability(precedence.breach_probability or 0.0)} of runs if nothing changed."
    )


def _latency_blocks(plan: LatencyPlan) -> Iterator[Block]:
    question = plan.question
    planned: tuple[Column[LatencyRow], ...] = (
        ("planned\nto show it", lambda one: str(one.planned_for_emission)),
        ("planned\nto bound it", lambda one: str(one.planned_for_existence)),
    )
    yield build_table(
        "Fewest successful trials",
        plan.rows,
        ("percentile", lambda one: _level(one.percentile)),
        ("to show it", lambda one: str(one.emission_minimum)),
        ("to bound it", lambda one: str(one.existence_minimum)),
        *(planned if question.success_rate < 1 else ()),
        notes=(f"{_SHOW_NOTE} {as_percent(question.confidence)} of runs.",),
    )
    if question.baseline_trials is not None:
        yield _baseline_table(plan)
    if question.expected_trials and (question.limited or question.baseline_trials is None):
        yield _limit_table(plan)
    yield _latency_chart(plan)


def _baseline_table(plan: LatencyPlan) -> Table:
    question = plan.question
    test = bool(question.expected_trials)
    rows = []
    notes = ["Rank: the baseline latency, counted from the smallest, that a test may not exceed."]
    for row in plan.rows:
        name = _level(row.percentile)
        bound = row.baseline
        assert bound is not None
        rank = "none" if bound.rank is None else str(bound.rank)
        alarm = bound.false_alarm
        loud = isinstance(alarm, float) and alarm > question.alpha
        cells = [f"{name}, order statistic" + (" !" if loud else ""), rank]
        cells += ["" if bound.coverage is None else as_probability(bound.coverage)]
        if test:
            cells.append(as_probability(alarm) if isinstance(alarm, float) else "")
        rows.append(Row(cells=tuple(cells), tone="broken" if loud else "plain"))
        if row.precedence is not None and row.exceedance is not None:
            breach = row.precedence.breach_probability
            rank = "none" if row.precedence.rank is None else str(row.precedence.rank)
            false = "" if breach is None else as_probability(breach)
            rows.append(Row(cells=(f"{name}, precedence", rank, "", false), tone="chosen"))
            many = row.exceedance.cutoff
            count = "never" if many is None else f"{many} above {row.exceedance.baseline_rank}"
            size = as_probability(row.exceedance.size)
            rows.append(Row(cells=(f"{name}, exceedance", count, "", size)))
    if test:
        notes.append(
            "Exceedance FAILs where so many test latencies lie above the baseline latency of that "
            "rank. Precedence and exceedance keep their level; the order statistic bounds the "
            "baseline's percentile only and ignores that the test varies too."
        )
    return Table(
        heading="Against the baseline",
        columns=("rule", "rank", "covers", *(("false\nalarm",) if test else ())),
        rows=tuple(rows),
        notes=tuple(notes),
    )


def _limit_table(plan: LatencyPlan) -> Table:
    expected = plan.question.expected_trials
    limits = [(row.percentile, row.limit) for row in plan.rows if row.limit is not None]
    return build_table(
        "An explicit limit (exact rule)",
        limits,
        ("percentile", lambda one: _level(one[0])),
        ("fewest that\ncould PASS", lambda one: str(one[1].minimum_trials)),
        (
            "within the\nlimit",
            lambda one: "refused" if one[1].cutoff is None else f"{one[1].cutoff} of {expected}",
        ),
        (
            "false\nPASS",
            lambda one: "" if one[1].cutoff is None else as_probability(one[1].achieved_size),
        ),
    )


def _latency_chart(plan: LatencyPlan) -> Chart:
    existence = [row.existence_minimum for row in plan.rows]
    return chart_chances(
        "P(some latency lies above the true percentile)",
        "How likely the largest latency of a run bounds the percentile, by trials.",
        "successful trials",
        "probability",
        [
            (
                _level(row.percentile),
                [(float(point.trials), point.bounded[i]) for point in plan.curve],
            )
            for i, row in enumerate(plan.rows)
        ],
        guides=(
            *(Guide(value=float(trials), label=str(trials)) for trials in existence),
            *guide_rates(plan.question.confidence, axis="y"),
        ),
        x_unit="count",
    )
