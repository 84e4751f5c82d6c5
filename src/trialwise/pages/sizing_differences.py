"""Sizes for finding a difference: a drop from a baseline, and two services compared.

The regression plan gives cutoffs in both rule sets with their true false alarms. The A/B plan
gives pairs for as often as the two may disagree, and the size with separate inputs.
"""

from __future__ import annotations

from collections.abc import Iterator

from trialwise.documents.blocks import Block, Document, Row, Table, build_table
from trialwise.documents.charts import Chart
from trialwise.documents.numbers import as_mean_trials, as_percent, as_points, as_probability
from trialwise.pages.sizing_words import (
    REFUSALS,
    chart_chances,
    format_cost,
    guide_rates,
    make_prose,
)
from trialwise.procedures.regression import FALSE_ALARM_EXCESS
from trialwise.procedures.sizing.comparison_sizing import ComparePlan, PairedSize
from trialwise.procedures.sizing.regression_sizing import RegressionPlan, RegressionRow
from trialwise.stats.result_types import Refusal, Undefined


def build_regression_page(plan: RegressionPlan) -> Document:
    """Build the regression plan as a page."""
    question = plan.question
    k, nb = question.baseline_successes, question.baseline_trials
    alternative = as_percent(round(max(0.0, question.alternative_rate), 6))
    rate = as_percent(round(question.baseline_rate, 6))
    seen = f"FAIL in at least {as_percent(question.power)} of runs"
    return Document(
        kind="Plan",
        title=f"Plan: has the rate dropped from {rate}?",
        facts=(
            ("baseline", f"{k} of {nb} ({rate})"),
            ("no change", f"FAIL in at most {as_percent(question.alpha)} of runs"),
            ("a drop of", f"{as_points(question.drop)}, to {alternative}: {seen}"),
        ),
        lead=_regression_recommendation(plan),
        blocks=tuple(_regression_blocks(plan)),
    )


def _regression_recommendation(plan: RegressionPlan) -> str:
    question, refusal = plan.question, plan.refusal
    if refusal is not None:
        return f"Refused: {REFUSALS[refusal]}{_remedy(plan)}."
    trials = question.trials or plan.exact.trials or 0
    row = next(row for row in plan.rows if row.trials == trials)
    alarm, power = row.exact.design_false_alarm, row.exact_power or 0.0
    alarms = "" if alarm is None else f" and in {as_probability(alarm)} if nothing changed"
    cost = format_cost(question.prices, trials)
    start = f"Run {trials} trials{cost} and" if question.trials is None else f"With {trials} trials"
    enough = (
        f"; a power of {as_percent(question.power)} takes {plan.exact.trials} trials"
        if question.trials is not None and plan.exact.trials is not None
        else ""
    )
    return (
        f"{start} FAIL below {row.exact.cutoff} successes (exact rule): that happens in "
        f"{as_probability(power)} of runs after a drop of {as_points(question.drop)}"
        f"{alarms}{enough}."
    )


def _remedy(plan: RegressionPlan) -> str:
    question = plan.question
    if plan.refusal is Refusal.TEST_LARGER_THAN_BASELINE:
        return f"; use at most {question.baseline_trials} trials"
    if plan.refusal is not Refusal.BASELINE_TOO_SMALL:
        return ""
    parts = []
    if not isinstance(plan.detectable_drop, Undefined):
        seen = as_points(round(plan.detectable_drop, 4))
        parts.append(f"a drop of {seen} is the smallest this baseline can show")
    if plan.equal_sizes is not None and plan.equal_sizes.trials_each is not None:
        each = plan.equal_sizes.trials_each
        parts.append(
            f"for {as_points(question.drop)} measure a baseline of at least {each} trials "
            "and test as many"
        )
    return "".join(f"; {part}" for part in parts)


def _regression_blocks(plan: RegressionPlan) -> Iterator[Block]:
    question = plan.question
    lower = as_percent(round(max(0.0, question.alternative_rate), 4))
    yield make_prose("Sizes", tuple(_regression_sizes(plan)))
    yield build_table(
        "Fewest successes that PASS, true false alarm, power",
        plan.rows,
        ("trials", lambda one: f"{one.trials}{' !' if _is_alarming(plan, one) else ''}"),
        ("wilson\nPASS from", lambda one: _or_refused(one.wilson.cutoff)),
        ("false\nalarm", lambda one: _or_blank(one.wilson.design_false_alarm)),
        (f"power\nat {lower}", lambda one: _or_blank(one.wilson_power)),
        ("exact\nPASS from", lambda one: _or_refused(one.exact.cutoff)),
        ("false\nalarm", lambda one: _or_blank(one.exact.design_false_alarm)),
        (f"power\nat {lower}", lambda one: _or_blank(one.exact_power)),
        notes=tuple(_regression_notes(plan)),
        tone=lambda one: (
            "chosen" if one is plan.drawn else "broken" if _is_alarming(plan, one) else "plain"
        ),
    )
    if plan.chosen:
        yield _tabulate_chosen(plan)
    if plan.drawn is not None and plan.curve:
        yield _regression_chart(plan, plan.drawn)


def _tabulate_chosen(plan: RegressionPlan) -> Table:
    """Tabulate what a threshold that somebody chose amounts to, by trials (companion §6.3)."""
    threshold = as_percent(plan.question.threshold or 0.0)
    lower = as_percent(round(max(0.0, plan.question.alternative_rate), 4))
    return build_table(
        f"A threshold of {threshold}: the false alarms it implies",
        plan.chosen,
        ("trials", lambda one: f"{one.trials}{'' if one.is_sound else ' !'}"),
        ("PASS\nfrom", lambda one: str(one.cutoff)),
        ("false\nalarm", lambda one: as_probability(one.false_alarm, digits=1)),
        ("implied α\nnormal", lambda one: _or_blank(one.normal_alpha)),
        ("implied α\nwilson", lambda one: _or_blank(one.wilson_alpha)),
        ("implied α\nexact", lambda one: as_probability(one.exact_alpha, digits=1)),
        (f"power\nat {lower}", lambda one: as_probability(one.power, digits=1)),
        notes=(
            (
                "The false alarm is P(FAIL) at the baseline's rate, computed exactly. Implied α is "
                "the level at which a rule would have this threshold."
            ),
            "! FAILs in more than 20 % of runs although nothing changed.",
        ),
        tone=lambda one: "plain" if one.is_sound else "broken",
    )


def _regression_sizes(plan: RegressionPlan) -> Iterator[str]:
    exact, floor = plan.exact, plan.floor
    if exact.trials is not None and exact.power is not None:
        yield (
            f"exact: {exact.trials} trials keep the power from there on; "
            f"{as_probability(exact.power)} at {exact.trials}."
        )
    elif exact.refusal is not None:
        yield f"exact: refused ({exact.refusal}), because {REFUSALS[exact.refusal]}."
    if floor.trials is not None and floor.power is not None:
        yield (
            f"wilson: {floor.trials} trials by the moving floor, a normal approximation that takes "
            "the baseline's rate as known."
        )
    elif floor.refusal is not None:
        yield f"wilson: refused ({floor.refusal})."
    if not isinstance(plan.detectable_drop, Undefined):
        yield (
            f"The smallest drop that {plan.question.baseline_trials} trials show with this "
            f"power is {as_points(round(plan.detectable_drop, 4))} (exact)."
        )


def _is_alarming(plan: RegressionPlan, row: RegressionRow) -> bool:
    """Return whether the wilson rule raises far more false alarms than its level allows."""
    alarm = row.wilson.design_false_alarm
    return alarm is not None and alarm > FALSE_ALARM_EXCESS * plan.question.alpha


def _or_refused(cutoff: int | None) -> str:
    return "refused" if cutoff is None else str(cutoff)


def _or_blank(value: float | None) -> str:
    return "" if value is None else as_probability(value, digits=1)


def _regression_notes(plan: RegressionPlan) -> Iterator[str]:
    yield (
        "A false alarm is a FAIL when nothing changed, the baseline's own sampling error included. "
        "Power is P(FAIL) after the drop, against this baseline."
    )
    if any(_is_alarming(plan, row) for row in plan.rows):
        yield (
            f"! Here the wilson rule raises more than {FALSE_ALARM_EXCESS:g} × "
            f"{as_percent(plan.question.alpha)} false alarms; the exact rule keeps its level."
        )


def _regression_chart(plan: RegressionPlan, row: RegressionRow) -> Chart:
    curves = {
        "exact": [(one.rate, one.exact) for one in plan.curve if one.exact is not None],
        "wilson": [(one.rate, one.wilson) for one in plan.curve if one.wilson is not None],
    }
    return chart_chances(
        "P(FAIL), by true rate",
        "How often each rule signals a degradation at a given true rate.",
        "true rate",
        "P(FAIL)",
        [(f"{name}, {row.trials} trials", points) for name, points in curves.items() if points],
        guides=guide_rates(max(0.0, plan.question.alternative_rate), plan.question.baseline_rate),
    )


_KINDS = {
    "least": "B fails wherever A does",
    "halfway": "halfway",
    "independent": "nothing in common",
    "assumed": "as assumed",
}


_SWEEP = "even if all of them favour A"


def build_comparison_page(plan: ComparePlan) -> Document:
    """Build the A/B plan as a page."""
    question = plan.question
    a, b = as_percent(question.rate), as_percent(question.worse_rate)
    called = "they are called different" if question.two_sided else "B is called worse"
    found = f"at least {as_percent(question.power)} of runs"
    return Document(
        kind="Plan",
        title=f"Plan: is B, at {b}, worse than A, at {a}?",
        facts=(
            ("no drop", f"{called} in at most {as_percent(question.alpha)} of runs"),
            ("a drop", f"of {as_points(question.drop)}: B is called worse in {found}"),
            *((("pairs", str(question.pairs)),) if question.pairs is not None else ()),
        ),
        lead=_compare_recommendation(plan),
        blocks=(*_compare_tables(plan), _compare_chart(plan)),
    )


def _compare_recommendation(plan: ComparePlan) -> str:
    question, unpaired = plan.question, plan.unpaired
    sizes = [size.pairs for size in plan.paired if size.pairs is not None]
    if not sizes:
        return f"No number of pairs up to 50000 shows a drop of {as_points(question.drop)}."
    span = f"{min(sizes)}" if len(sizes) == 1 else f"{min(sizes)} to {max(sizes)}"
    depends = "" if len(sizes) == 1 else ", depending on how often they disagree"
    cost = format_cost(question.prices, 2 * max(sizes))
    most = f", at most {2 * max(sizes)} trials{cost}" if cost else ""
    apart = "more than 50000" if unpaired.trials_each is None else str(unpaired.trials_each)
    return (
        f"Try A and B on the same {span} inputs{depends}{most}, and test the discordant pairs by "
        f"the exact McNemar test; on separate inputs each takes {apart}."
    )


def _compare_tables(plan: ComparePlan) -> Iterator[Table]:
    question = plan.question
    yield build_table(
        "Pairs: the same inputs for both (exact McNemar)",
        plan.paired,
        ("how they disagree", lambda one: _KINDS[one.kind]),
        ("discordant", lambda one: as_percent(one.discordance)),
        ("pairs", lambda one: _write_size(one.pairs)),
        ("discordant\npairs", _write_discordant),
        ("power", lambda one: "" if one.power is None else as_probability(one.power)),
        ("normal\nsize", lambda one: str(one.normal_pairs)),
        notes=(
            f"Fewer than {plan.minimum_discordant} discordant pairs can never reject, {_SWEEP}.",
            "The normal size is Connor's formula.",
        ),
    )
    if question.pairs is not None:
        yield build_table(
            f"With {question.pairs} pairs",
            plan.paired,
            ("how they disagree", lambda one: _KINDS[one.kind]),
            ("power", lambda one: as_probability(one.given_power or 0.0)),
            ("enough\ndiscordant", lambda one: as_probability(one.given_enough or 0.0)),
        )
    unpaired = plan.unpaired
    each = _write_size(unpaired.trials_each)
    power = "" if unpaired.power is None else as_probability(unpaired.power)
    yield Table(
        heading="Separate inputs (exact Fisher)",
        columns=("test", "trials each", "power", "normal\nsize"),
        rows=(Row(cells=("Fisher", each, power, str(unpaired.normal_trials_each))),),
    )


def _write_size(trials: int | None) -> str:
    return "over 50000" if trials is None else str(trials)


def _write_discordant(size: PairedSize) -> str:
    expected = size.expected_discordant
    return "" if expected is None else as_mean_trials(expected)


def _compare_chart(plan: ComparePlan) -> Chart:
    curves = [
        (_KINDS[size.kind], [(float(point.pairs), point.paired[i]) for point in plan.curve])
        for i, size in enumerate(plan.paired)
    ]
    apart = [(float(point.pairs), point.unpaired) for point in plan.curve]
    return chart_chances(
        "Power, by inputs",
        "How likely the drop is found, by pairs or by inputs for each variant.",
        "pairs, or inputs for each",
        "power",
        [*curves, ("separate inputs", apart)],
        guides=guide_rates(plan.question.power, axis="y"),
        x_unit="count",
    )
