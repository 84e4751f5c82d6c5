"""The page of each question of `trialwise plan`: what all say alike, regression and latency.

Each page has the same four parts: what was asked, the answer in a sentence or two, tables of what
every rule really does, and a chart. A person chooses by the sentence and checks it by the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import cycle
from typing import Any, Literal

from trialwise.documents.blocks import Block, Column, Document, Row, Table, Tone, build_table
from trialwise.documents.charts import Chart, Guide, Ink, Line, Place, Unit, chart_lines
from trialwise.documents.numbers import as_duration, as_money, as_percent, as_points, as_probability
from trialwise.procedures.regression import FALSE_ALARM_EXCESS
from trialwise.procedures.sizing import regression_sizing as sizing
from trialwise.procedures.sizing.sizing_base import SizingPlan, SizingQuestion
from trialwise.stats.result_types import Refusal, Undefined

_INKS: tuple[Ink, ...] = ("one", "two", "three", "four")
#: Why a design is refused, as the rest of a sentence.
REFUSALS = {
    Refusal.TEST_LARGER_THAN_BASELINE: "the test is larger than its baseline",
    Refusal.COMPLIANCE_INFEASIBLE: "even without a failure it could not PASS",
    Refusal.ZERO_BASELINE: "the baseline has no success to degrade from",
    Refusal.BASELINE_TOO_SMALL: "no test up to the baseline's size reaches the power and keeps it",
}


def build_sizing_page(plan: SizingPlan, *, short: bool = False) -> Document:
    """Build the answer to a sizing question as a page of words, tables and charts.

    Args:
        plan: The answer.
        short: Whether its first table is enough, where it has several.
    """
    # A plan answers one question, and these pages begin with what stands in this module.
    from trialwise.pages import arm_standings, sizing_compare, sizing_fixed, sizing_sequential

    builders: dict[str, Callable[[Any], Document]] = {
        "rate": partial(sizing_sequential.build_sequential_page, short=short),
        "compliance": sizing_fixed.build_compliance_page,
        "precision": sizing_fixed.build_precision_page,
        "regression": build_regression_page,
        "latency": build_latency_page,
        "pairs": sizing_compare.build_pairs_page,
        "choice": arm_standings.build_choice_plan_page,
    }
    return builders[plan.form](plan)


# --- What the pages of all questions say in the same way ------------------------------------------


def make_page(
    question: str, facts: Iterable[tuple[str, str]], lead: str, blocks: Iterable[Block]
) -> Document:
    """Make the page that answers a question."""
    return Document(
        kind="Plan", title=f"Plan: {question}", facts=tuple(facts), lead=lead, blocks=tuple(blocks)
    )


def chart_chances(
    heading: str,
    summary: str,
    x_label: str,
    y_label: str,
    curves: Iterable[tuple[str, Iterable[Place]]],
    *,
    guides: tuple[Guide, ...],
    x_unit: Unit = "rate",
) -> Chart:
    """Probabilities as lines, each under its name, in the order of importance."""
    lines = [
        Line(name=name, ink=ink, points=tuple(points))
        for (name, points), ink in zip(curves, cycle(_INKS), strict=False)
    ]
    chart = partial(chart_lines, heading, summary, x_label, y_label, lines, guides=guides)
    return chart(x_unit=x_unit, y_unit="rate", y_high=1)


def guide_rates(*rates: float, axis: Literal["x", "y"] = "x") -> tuple[Guide, ...]:
    """Rates worth a line across a chart."""
    return tuple(Guide(value=one, label=as_percent(round(one, 4)), axis=axis) for one in rates)


def list_costs(
    question: SizingQuestion, trials: float = 1, rounds: float | None = None
) -> list[str]:
    """List what some trials cost, as far as that is known; they take as long as their rounds."""
    parts = [] if question.trial_usd is None else [as_money(trials * question.trial_usd)]
    if question.trial_s is not None:
        parts.append(as_duration((trials if rounds is None else rounds) * question.trial_s))
    return parts


def format_cost(question: SizingQuestion, trials: int) -> str:
    """Format what some trials cost, as the rest of a sentence; nothing where that is not known."""
    parts = list_costs(question, trials)
    return f" ({', '.join(parts)})" if parts else ""


def write_count(value: int | None, otherwise: str) -> str:
    """Write a count, or what stands where there is none."""
    return otherwise if value is None else str(value)


def write_chance(value: float | None, digits: int = 2) -> str:
    """Write a probability, or nothing where there is none."""
    return "" if value is None else as_probability(value, digits=digits)


# --- Regression: has the rate dropped from a measured baseline? -----------------------------------


def build_regression_page(plan: sizing.RegressionPlan) -> Document:
    """Build the regression plan as a page."""
    question = plan.question
    rate, lower = (as_percent(round(one, 6)) for one in (question.good_rate, question.bad_rate))
    seen = f"FAIL in at least {as_percent(question.power)} of runs"
    # Six digits: a drop is written in decimals, and its difference in floats is not.
    counts = f"{question.baseline_successes} of {question.baseline_trials}"
    return make_page(
        f"has the rate dropped from {rate}?",
        (
            ("baseline", f"{counts} ({rate})"),
            ("no change", f"FAIL in at most {as_percent(question.alpha)} of runs"),
            ("a drop of", f"{as_points(question.drop)}, to {lower}: {seen}"),
        ),
        _recommend_regression(plan),
        _list_regression_blocks(plan, as_percent(round(question.bad_rate, 4))),
    )


def _recommend_regression(plan: sizing.RegressionPlan) -> str:
    question, refusal = plan.question, plan.refusal
    if refusal is not None:
        return f"Refused: {REFUSALS[refusal]}{''.join(f'; {one}' for one in _list_remedies(plan))}."
    trials = question.trials or plan.exact.trials or 0
    row = next(row for row in plan.rows if row.trials == trials)
    alarm, power = row.exact.design_false_alarm, row.exact_power or 0.0
    alarms = "" if alarm is None else f" and in {as_probability(alarm)} if nothing changed"
    # Whoever gives a number of trials asks what it does; whoever gives none asks for one.
    start, enough = f"Run {trials} trials{format_cost(question, trials)} and", ""
    if question.trials is not None:
        start = f"With {trials} trials"
        if plan.exact.trials is not None:
            power_takes = f"a power of {as_percent(question.power)} takes"
            enough = f"; {power_takes} {plan.exact.trials} trials"
    return (
        f"{start} FAIL below {row.exact.cutoff} successes (exact rule): that happens in "
        f"{as_probability(power)} of runs after a drop of {as_points(question.drop)}"
        f"{alarms}{enough}."
    )


def _list_remedies(plan: sizing.RegressionPlan) -> Iterator[str]:
    question, equal = plan.question, plan.equal_sizes
    if plan.refusal is Refusal.TEST_LARGER_THAN_BASELINE:
        yield f"use at most {question.baseline_trials} trials"
    if plan.refusal is not Refusal.BASELINE_TOO_SMALL:
        return
    if not isinstance(plan.detectable_drop, Undefined):
        seen = as_points(round(plan.detectable_drop, 4))
        yield f"a drop of {seen} is the smallest this baseline can show"
    if equal is not None and equal.trials_each is not None:
        yield (
            f"for {as_points(question.drop)} measure a baseline of at least {equal.trials_each} "
            "trials and test as many"
        )


def _list_regression_blocks(plan: sizing.RegressionPlan, lower: str) -> Iterator[Block]:
    # The wilson rule raises far more false alarms than its level allows.
    # It takes the baseline's rate as known, though that was estimated too (companion §5.4.1).
    most = FALSE_ALARM_EXCESS * plan.question.alpha
    loud = {row.trials for row in plan.rows if (row.wilson.design_false_alarm or 0.0) > most}

    def pick_tone(row: sizing.RegressionRow) -> Tone:
        return "chosen" if row is plan.drawn else "broken" if row.trials in loud else "plain"

    yield build_table(
        "Fewest successes that PASS, true false alarm, power",
        plan.rows,
        ("trials", lambda one: f"{one.trials}{' !' if one.trials in loud else ''}"),
        ("wilson\nPASS from", lambda one: write_count(one.wilson.cutoff, "refused")),
        ("false\nalarm", lambda one: write_chance(one.wilson.design_false_alarm, 1)),
        (f"power\nat {lower}", lambda one: write_chance(one.wilson_power, 1)),
        ("exact\nPASS from", lambda one: write_count(one.exact.cutoff, "refused")),
        ("false\nalarm", lambda one: write_chance(one.exact.design_false_alarm, 1)),
        (f"power\nat {lower}", lambda one: write_chance(one.exact_power, 1)),
        notes=tuple(_list_regression_notes(plan, is_loud=bool(loud))),
        tone=pick_tone,
    )
    if plan.chosen:
        yield _tabulate_chosen(plan, lower)
    if plan.drawn is not None and plan.curve:
        yield _chart_regression(plan, plan.drawn)


def _list_regression_notes(plan: sizing.RegressionPlan, *, is_loud: bool) -> Iterator[str]:
    yield (
        "A false alarm is a FAIL when nothing changed, the baseline's own sampling error included. "
        "Power is P(FAIL) after the drop, against this baseline."
    )
    if is_loud:
        yield (
            f"! Here the wilson rule raises more than {FALSE_ALARM_EXCESS:g} × "
            f"{as_percent(plan.question.alpha)} false alarms; the exact rule keeps its level."
        )
    if plan.exact.refusal is not None and plan.refusal is None:
        yield f"No size has the power asked for: {REFUSALS[plan.exact.refusal]}."
    if plan.floor.trials is not None:
        # The companion's own size, by which its tables can be checked (§5.4.1).
        yield (
            f"The wilson rule asks for {plan.floor.trials} trials by its moving floor, a normal "
            "approximation that takes the baseline's rate as known."
        )
    if plan.refusal is None and not isinstance(plan.detectable_drop, Undefined):
        yield (
            f"The smallest drop that {plan.question.baseline_trials} trials show with this "
            f"power is {as_points(round(plan.detectable_drop, 4))} (exact)."
        )


def _tabulate_chosen(plan: sizing.RegressionPlan, lower: str) -> Table:
    """Tabulate what a threshold that somebody chose amounts to, by trials (companion §6.3)."""
    return build_table(
        f"A threshold of {as_percent(plan.question.threshold or 0.0)}: the false alarms it implies",
        plan.chosen,
        ("trials", lambda one: f"{one.trials}{'' if one.is_sound else ' !'}"),
        ("PASS\nfrom", lambda one: str(one.cutoff)),
        ("false\nalarm", lambda one: write_chance(one.false_alarm, 1)),
        ("implied α\nnormal", lambda one: write_chance(one.normal_alpha, 1)),
        ("implied α\nwilson", lambda one: write_chance(one.wilson_alpha, 1)),
        ("implied α\nexact", lambda one: write_chance(one.exact_alpha, 1)),
        (f"power\nat {lower}", lambda one: write_chance(one.power, 1)),
        notes=(
            (
                "The false alarm is P(FAIL) at the baseline's rate, computed exactly. Implied α is "
                "the level at which a rule would have this threshold."
            ),
            "! FAILs in more than 20 % of runs although nothing changed.",
        ),
        tone=lambda one: "plain" if one.is_sound else "broken",
    )


def _chart_regression(plan: sizing.RegressionPlan, row: sizing.RegressionRow) -> Chart:
    exact = [(one.rate, one.exact) for one in plan.curve if one.exact is not None]
    wilson = [(one.rate, one.wilson) for one in plan.curve if one.wilson is not None]
    curves = {f"exact, {row.trials} trials": exact, f"wilson, {row.trials} trials": wilson}
    return chart_chances(
        "P(FAIL), by true rate",
        "How often each rule signals a degradation at a given true rate.",
        "true rate",
        "P(FAIL)",
        [(name, points) for name, points in curves.items() if points],
        guides=guide_rates(plan.question.bad_rate, plan.question.good_rate),
    )


# --- Latency: is a percentile low enough? ---------------------------------------------------------


def build_latency_page(plan: sizing.LatencyPlan) -> Document:
    """Build the latency plan as a page."""
    asked = f"latency at {', '.join(_level(row.percentile) for row in plan.rows)}"
    facts, lead = _list_latency_facts(plan.question), _recommend_latency(plan)
    return make_page(asked, facts, lead, _list_latency_blocks(plan))


def _level(percentile: float) -> str:
    return f"p{100 * percentile:g}"


def _list_latency_facts(question: sizing.LatencyQuestion) -> Iterator[tuple[str, str]]:
    yield "confidence", f"{as_percent(question.confidence)}, one-sided"
    if question.baseline is not None:
        yield "baseline", f"{question.baseline} latencies of successful trials"
    if question.success_rate < 1:
        yield "success rate", as_percent(question.success_rate)
    if question.trials is not None:
        expected = question.expected_trials
        cost = format_cost(question, question.trials)
        yield "trials", f"{question.trials} planned, {expected} successful expected{cost}"
    if question.limited:
        limit = question.limit_s
        yield "limit", "explicit" if limit is None else f"at most {as_duration(limit)}"


def _recommend_latency(plan: sizing.LatencyPlan) -> str:
    question = plan.question
    if question.trials is not None:
        return " ".join(_recommend_percentile(plan, row) for row in plan.rows)
    # One run serves all percentiles, so that the most demanding one sets its size.
    hardest = max(plan.rows, key=lambda row: row.existence_minimum)
    planned = hardest.planned_for_existence
    assert isinstance(planned, int)  # the success rate is above 0
    successes = f", so that {hardest.existence_minimum} successes are expected"
    return (
        f"Run at least {planned} trials{format_cost(question, planned)}"
        f"{successes if question.success_rate < 1 else ''}: fewer latencies cannot bound "
        f"{_level(hardest.percentile)} from above at {as_percent(question.confidence)} confidence."
    )


def _recommend_percentile(plan: sizing.LatencyPlan, row: sizing.LatencyRow) -> str:
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


def _list_latency_blocks(plan: sizing.LatencyPlan) -> Iterator[Block]:
    question = plan.question
    columns: list[Column[sizing.LatencyRow]] = [
        ("percentile", lambda one: _level(one.percentile)),
        ("to show it", lambda one: str(one.emission_minimum)),
        ("to bound it", lambda one: str(one.existence_minimum)),
    ]
    if question.success_rate < 1:
        columns += [("planned\nto show it", lambda one: str(one.planned_for_emission))]
        columns += [("planned\nto bound it", lambda one: str(one.planned_for_existence))]
    note = (
        "To show: more than an extreme of the run. To bound: some observed latency lies above the "
        f"true percentile in at least {as_percent(question.confidence)} of runs."
    )
    yield build_table("Fewest successful trials", plan.rows, *columns, notes=(note,))
    if question.baseline is not None:
        yield _tabulate_baseline(plan)
    if question.expected_trials and (question.limited or question.baseline is None):
        yield _tabulate_limits(plan)
    yield _chart_latency(plan)


def _tabulate_baseline(plan: sizing.LatencyPlan) -> Table:
    has_test = bool(plan.question.expected_trials)
    notes = ["Rank: the baseline latency, counted from the smallest, that a test may not exceed."]
    if has_test:
        notes.append(
            "Exceedance FAILs where this many test latencies lie above the baseline latency of "
            "that rank. Precedence and exceedance keep their level; the order statistic bounds the "
            "baseline's percentile only and ignores that the test varies too."
        )
    return Table(
        heading="Against the baseline",
        columns=("rule", "rank", "covers", *(("false\nalarm",) if has_test else ())),
        rows=tuple(rule for row in plan.rows for rule in _list_rules(plan, row)),
        notes=tuple(notes),
    )


def _list_rules(plan: sizing.LatencyPlan, row: sizing.LatencyRow) -> Iterator[Row]:
    """List the rules that hold a percentile against a baseline, the recommended one among them."""
    question, name, bound = plan.question, _level(row.percentile), row.baseline
    assert bound is not None
    # It bounds the baseline's percentile and forgets that the test varies, too: its alarm is loud.
    alarm = bound.false_alarm if isinstance(bound.false_alarm, float) else None
    loud = alarm is not None and alarm > question.alpha
    alarms = (write_chance(alarm),) if question.expected_trials else ()
    rule, rank = f"{name}, order statistic{' !' if loud else ''}", write_count(bound.rank, "none")
    cells = (rule, rank, write_chance(bound.coverage), *alarms)
    yield Row(cells=cells, tone="broken" if loud else "plain")
    if row.precedence is not None and row.exceedance is not None:
        rank, alarm = write_count(row.precedence.rank, "none"), row.precedence.breach_probability
        yield Row(cells=(f"{name}, precedence", rank, "", write_chance(alarm)), tone="chosen")
        many = row.exceedance.cutoff
        count = "never" if many is None else f"{many} above {row.exceedance.baseline_rank}"
        yield Row(cells=(f"{name}, exceedance", count, "", as_probability(row.exceedance.size)))


def _tabulate_limits(plan: sizing.LatencyPlan) -> Table:
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


def _chart_latency(plan: sizing.LatencyPlan) -> Chart:
    curves = [
        (_level(row.percentile), [(float(point.trials), point.bounded[i]) for point in plan.curve])
        for i, row in enumerate(plan.rows)
    ]
    counts = [row.existence_minimum for row in plan.rows]
    guides = [Guide(value=float(trials), label=str(trials)) for trials in counts]
    return chart_chances(
        "P(some latency lies above the true percentile)",
        "How likely the largest latency of a run bounds the percentile, by trials.",
        "successful trials",
        "probability",
        curves,
        guides=(*guides, *guide_rates(plan.question.confidence, axis="y")),
        x_unit="count",
    )
