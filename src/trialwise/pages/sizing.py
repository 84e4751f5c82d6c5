"""The page of each sizing question."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from trialwise.documents.blocks import Block, Column, Document, Row, Table, build_table
from trialwise.documents.charts import Chart, Guide
from trialwise.documents.numbers import (
    as_count,
    as_duration,
    as_mean_trials,
    as_money,
    as_percent,
    as_points,
    as_probability,
)
from trialwise.pages.sizing_differences import build_comparison_page, build_regression_page
from trialwise.pages.sizing_fixed import build_compliance_page, build_precision_page
from trialwise.pages.sizing_sequential import (
    build_sequential_page,
    build_short_sequential_page,
)
from trialwise.pages.sizing_words import chart_chances, format_cost, guide_rates
from trialwise.procedures.sizing import paired_sizing
from trialwise.procedures.sizing.latency_sizing import LatencyPlan, LatencyQuestion, LatencyRow
from trialwise.procedures.sizing.sizing_base import NO_PRICES, SizingPlan
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


_KINDS = {
    "least": "one fails wherever the other does",
    "halfway": "halfway",
    "independent": "nothing in common",
    "assumed": "as assumed",
}


def build_pairs_page(plan: paired_sizing.PairedPlan) -> Document:
    """Build the plan of a comparison as a page."""
    question = plan.question
    control, candidate = question.expected
    source = "expected" if question.rates is not None else "assumed, since none are expected"
    return Document(
        kind="Plan",
        title=f"Plan: {_ask(question)}",
        facts=(
            (
                "rates",
                f"control {as_percent(control)}, candidate {as_percent(candidate)}, {source}",
            ),
            ("a wrong statement", f"in at most {as_percent(question.alpha / 2)} of runs each way"),
            *_list_shares(question),
        ),
        lead=_recommend(plan),
        blocks=tuple(_list_blocks(plan)),
    )


def _ask(question: paired_sizing.PairedSizingQuestion) -> str:
    margin = as_points(question.margin or 0.0)
    match question.question:
        case "different":
            return "are the arms different?"
        case "better":
            more = f" by more than {margin}" if question.margin else ""
            return f"is the candidate better{more}?"
        case "not-worse":
            return f"is the candidate not worse by {margin}?"
        case "equivalent":
            return f"are the arms equivalent within {margin}?"


def _list_shares(question: paired_sizing.PairedSizingQuestion) -> Iterator[tuple[str, str]]:
    if question.tests > 1:
        yield (
            "tests",
            f"{question.tests} tests share the level: {as_probability(question.level)} for each",
        )


def _recommend(plan: paired_sizing.PairedPlan) -> str:
    question, chosen = plan.question, plan.chosen
    found = chosen.expected
    wanted = "FAIL" if _expects_fail(question) else "PASS"
    chance = as_probability(found.fails if wanted == "FAIL" else found.passes)
    if chosen.name == "fixed":
        pairs = chosen.most_pairs or 0
        return (
            f"{as_count(pairs, 'pair')} ({_price(question, pairs)}) end with {wanted} in {chance} "
            "of runs if the rates are as expected."
        )
    most = "" if chosen.most_pairs is None else f", at most {chosen.most_pairs:,} pairs"
    limit = "" if chosen.most_pairs is None else f" ({_price(question, chosen.most_pairs)})"
    fixed = next((one.most_pairs for one in plan.methods if one.name == "fixed"), None)
    beside = (
        f" A fixed number takes {fixed:,} pairs for a power of {as_percent(question.power)}."
        if fixed is not None
        else f" A fixed number with this power has more than {question.largest_size:,} pairs."
    )
    return (
        f"It takes {as_mean_trials(found.mean_pairs)} pairs on average "
        f"({_price(question, found.mean_pairs)}) if the rates are as expected{most}{limit}, and "
        f"ends with {wanted} in {chance} of runs.{beside}"
    )


def _expects_fail(question: paired_sizing.PairedSizingQuestion) -> bool:
    control, candidate = question.expected
    return question.question == "different" and candidate < control


def _price(question: paired_sizing.PairedSizingQuestion, pairs: float) -> str:
    """Write what some pairs take: trials of all arms, money and time."""
    if math.isinf(pairs):
        return "no end"
    trials = math.ceil(pairs) * question.arms
    parts = [as_count(trials, "trial")]
    if question.prices.trial_usd is not None:
        parts.append(as_money(trials * question.prices.trial_usd))
    if question.prices.trial_s is not None:
        parts.append(as_duration(trials * question.prices.trial_s / question.concurrency))
    return ", ".join(parts)


def _list_blocks(plan: paired_sizing.PairedPlan) -> Iterator[Block]:
    for method in plan.methods:
        yield _tabulate_chances(plan.question, method)
    if len(plan.disagreements) > 1:
        yield _tabulate_disagreements(plan)


def _tabulate_chances(
    question: paired_sizing.PairedSizingQuestion, method: paired_sizing.PairedMethod
) -> Table:
    columns: list[tuple[str, Callable[[paired_sizing.PairedChances], str]]] = [
        ("if the arms are", _name_truth),
        ("PASS", lambda one: as_probability(one.passes)),
        ("FAIL", lambda one: as_probability(one.fails)),
        ("INCONCLUSIVE", lambda one: as_probability(one.inconclusive)),
    ]
    if method.name == "fixed":
        pairs = method.most_pairs or 0
        heading = f"Fixed: {pairs:,} pairs ({_price(question, pairs)})"
        return build_table(heading, method.rows, *columns)
    columns.append(("pairs", lambda one: _write_pairs(one.mean_pairs)))
    if question.prices != NO_PRICES:
        columns.append(("on average", lambda one: _price(question, one.mean_pairs)))
    notes: tuple[str, ...] = ()
    if method.certificate is not None:
        percent = max(0.01, 100 * (method.certificate - 1))
        notes = (f"No rule with these errors needs {percent:.2g} % fewer pairs on average.",)
    if method.simulated is not None:
        notes = (*notes, f"By {method.simulated:,} simulated comparisons, to within 3 points.")
    heading = "Sequential: it stops as soon as the pairs decide"
    return build_table(heading, method.rows, *columns, notes=notes)


def _name_truth(row: paired_sizing.PairedChances) -> str:
    gap = round(row.candidate - row.control, 6)
    points = f"{100 * gap:+.3g}".replace("-", "−") if gap else "0"
    return f"{row.truth} ({points})"


def _write_pairs(pairs: float) -> str:
    return "no end" if math.isinf(pairs) else as_mean_trials(pairs)


def _tabulate_disagreements(plan: paired_sizing.PairedPlan) -> Table:
    wanted = "FAIL" if _expects_fail(plan.question) else "PASS"

    def write_mean(one: paired_sizing.Disagreement) -> str:
        return "" if one.mean_pairs is None else _write_pairs(one.mean_pairs)

    return build_table(
        "How often the arms disagree decides how many pairs it takes",
        plan.disagreements,
        ("how they disagree", lambda one: _KINDS[one.kind]),
        ("discordant", lambda one: as_percent(round(one.discordance, 4))),
        (wanted, lambda one: "" if one.passes is None else as_probability(one.passes)),
        ("pairs", write_mean),
        notes=("The tables above assume that the arms have nothing in common.",),
    )


#: By the form of the plan.
_BUILDERS: dict[str, Callable[[Any], Document]] = {
    "rate": build_sequential_page,
    "compliance": build_compliance_page,
    "regression": build_regression_page,
    "latency": build_latency_page,
    "precision": build_precision_page,
    "compare": build_comparison_page,
    "pairs": build_pairs_page,
}


#: Those that also have a short page.
_SHORT: dict[str, Callable[[Any], Document]] = {"rate": build_short_sequential_page}


def build_sizing_page(plan: SizingPlan, *, short: bool = False) -> Document:
    """Build the answer to a sizing question as a page of words, tables and charts.

    Args:
        plan: The answer.
        short: Whether its first table is enough, where it has several.
    """
    builders = _BUILDERS | _SHORT if short else _BUILDERS
    return builders[plan.form](plan)
