"""Sizes that tell two arms apart, in words: pair by pair as `compare` does, and A against B.

The plan in pairs says what the sequential rule takes and how likely each verdict is. The A/B plan
gives pairs for as often as the two may disagree, and the size with separate inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from trialwise.documents.blocks import Block, Document, Row, Table, build_table
from trialwise.documents.charts import Chart
from trialwise.documents.numbers import (
    as_count,
    as_duration,
    as_mean_trials,
    as_money,
    as_percent,
    as_points,
    as_probability,
)
from trialwise.pages.sizing import (
    chart_chances,
    format_cost,
    guide_rates,
    make_page,
    write_chance,
)
from trialwise.procedures.sizing.comparison_sizing import ComparePlan, PairedSize
from trialwise.procedures.sizing.paired_sizing import (
    PairedChances,
    PairedMethod,
    PairedPlan,
    PairedSizingQuestion,
)
from trialwise.procedures.sizing.sizing_base import NO_PRICES

#: How often two arms disagree, between the least that their rates allow and independence.
_KINDS = {
    "least": "one fails wherever the other does",
    "halfway": "halfway",
    "independent": "nothing in common",
    "assumed": "as assumed",
}
#: A against B, the one that fails more is known.
_KINDS_OF_B = _KINDS | {"least": "B fails wherever A does"}
_SWEEP = "even if all of them favour A"
_QUESTIONS = {
    "different": "are the arms different?",
    "better": "is the candidate better by more than {}?",
    "not-worse": "is the candidate not worse by {}?",
    "equivalent": "are the arms equivalent within {}?",
}


# --- Pair by pair, as `compare` decides -----------------------------------------------------------


def build_pairs_page(plan: PairedPlan) -> Document:
    """Build the plan of a comparison as a page."""
    question = plan.question
    rates = "control {}, candidate {}".format(*map(as_percent, question.expected))
    source = "expected" if question.rates is not None else "assumed, since none are expected"
    facts = [
        ("rates", f"{rates}, {source}"),
        ("a wrong statement", f"in at most {as_percent(question.alpha / 2)} of runs each way"),
    ]
    if question.tests > 1:
        level = as_probability(question.level)
        facts.append(("tests", f"{question.tests} tests share the level: {level} for each"))
    asked = _QUESTIONS[question.question].format(as_points(question.margin or 0.0))
    if question.question == "better" and not question.margin:
        asked = "is the candidate better?"
    return make_page(asked, facts, _recommend_pairs(plan), _list_pair_tables(plan))


def _recommend_pairs(plan: PairedPlan) -> str:
    question, chosen = plan.question, plan.chosen
    found, most = chosen.expected, chosen.most_pairs
    wanted = _pick_wanted(question)
    chance = as_probability(found.fails if wanted == "FAIL" else found.passes)
    if chosen.name == "fixed":
        pairs = most or 0
        return (
            f"{as_count(pairs, 'pair')} ({_price(question, pairs)}) end with {wanted} in {chance} "
            "of runs if the rates are as expected."
        )
    limit = "" if most is None else f", at most {most:,} pairs ({_price(question, most)})"
    fixed = next((one.most_pairs for one in plan.methods if one.name == "fixed"), None)
    beside = (
        f"A fixed number takes {fixed:,} pairs for a power of {as_percent(question.power)}."
        if fixed is not None
        else f"A fixed number with this power has more than {question.largest_size:,} pairs."
    )
    return (
        f"It takes {as_mean_trials(found.mean_pairs)} pairs on average "
        f"({_price(question, found.mean_pairs)}) if the rates are as expected{limit}, and ends "
        f"with {wanted} in {chance} of runs. {beside}"
    )


def _pick_wanted(question: PairedSizingQuestion) -> str:
    """Return the verdict that a plan is made for: a worse candidate is to be found out."""
    control, candidate = question.expected
    return "FAIL" if question.question == "different" and candidate < control else "PASS"


def _price(question: PairedSizingQuestion, pairs: float) -> str:
    """Write what some pairs take: trials of all arms, money and time."""
    if math.isinf(pairs):
        return "no end"
    # Every arm answers every input, also where the question is about two of several arms.
    trials = math.ceil(pairs) * question.arms
    parts = [as_count(trials, "trial")]
    if question.prices.trial_usd is not None:
        parts.append(as_money(trials * question.prices.trial_usd))
    if question.prices.trial_s is not None:
        parts.append(as_duration(trials * question.prices.trial_s / question.concurrency))
    return ", ".join(parts)


def _list_pair_tables(plan: PairedPlan) -> Iterator[Block]:
    for method in plan.methods:
        yield _tabulate_chances(plan.question, method)
    if len(plan.disagreements) > 1:
        yield build_table(
            "How often the arms disagree decides how many pairs it takes",
            plan.disagreements,
            ("how they disagree", lambda one: _KINDS[one.kind]),
            ("discordant", lambda one: as_percent(round(one.discordance, 4))),
            (_pick_wanted(plan.question), lambda one: write_chance(one.passes)),
            ("pairs", lambda one: _write_pairs(one.mean_pairs)),
            notes=("The tables above assume that the arms have nothing in common.",),
        )


def _tabulate_chances(question: PairedSizingQuestion, method: PairedMethod) -> Table:
    columns: list[tuple[str, Callable[[PairedChances], str]]] = [
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
    # Without prices the column would repeat the one beside it.
    if question.prices != NO_PRICES:
        columns.append(("on average", lambda one: _price(question, one.mean_pairs)))
    notes = []
    if method.certificate is not None:
        # 0 % would claim that the bound is reached.
        percent = max(0.01, 100 * (method.certificate - 1))
        notes.append(f"No rule with these errors needs {percent:.2g} % fewer pairs on average.")
    if method.simulated is not None:
        notes.append(f"By {method.simulated:,} simulated comparisons, to within 3 points.")
    heading = "Sequential: it stops as soon as the pairs decide"
    return build_table(heading, method.rows, *columns, notes=tuple(notes))


def _name_truth(row: PairedChances) -> str:
    gap = round(row.candidate - row.control, 6)
    # A minus sign, as wide as the plus sign beside it.
    points = f"{100 * gap:+.3g}".replace("-", "−") if gap else "0"
    return f"{row.truth} ({points})"


def _write_pairs(pairs: float | None) -> str:
    if pairs is None:
        return ""
    return "no end" if math.isinf(pairs) else as_mean_trials(pairs)


# --- A against B, by a fixed number ---------------------------------------------------------------


def build_comparison_page(plan: ComparePlan) -> Document:
    """Build the A/B plan as a page."""
    question = plan.question
    a, b = as_percent(question.rate), as_percent(question.worse_rate)
    called = "they are called different" if question.two_sided else "B is called worse"
    found = f"at least {as_percent(question.power)} of runs"
    pairs = [] if question.pairs is None else [("pairs", str(question.pairs))]
    return make_page(
        f"is B, at {b}, worse than A, at {a}?",
        (
            ("no drop", f"{called} in at most {as_percent(question.alpha)} of runs"),
            ("a drop", f"of {as_points(question.drop)}: B is called worse in {found}"),
            *pairs,
        ),
        _recommend_sizes(plan),
        (*_list_size_tables(plan), _chart_power(plan)),
    )


def _recommend_sizes(plan: ComparePlan) -> str:
    question, apart = plan.question, plan.unpaired.trials_each
    # How often the two disagree is unknown beforehand, so that the answer is a range.
    sizes = [size.pairs for size in plan.paired if size.pairs is not None]
    if not sizes:
        return f"No number of pairs up to 50000 shows a drop of {as_points(question.drop)}."
    span, most = f"{min(sizes)}", 2 * max(sizes)
    if len(sizes) > 1:
        span = f"{span} to {max(sizes)} inputs, depending on how often they disagree"
    else:
        span = f"{span} inputs"
    # Each pair takes two trials, and the dearest end of the range is what can happen.
    cost = format_cost(question.prices, most)
    limit = f", at most {most} trials{cost}" if cost else ""
    return (
        f"Try A and B on the same {span}{limit}, and test the discordant pairs by the exact "
        "McNemar test; on separate inputs each takes "
        f"{'more than 50000' if apart is None else apart}."
    )


def _list_size_tables(plan: ComparePlan) -> Iterator[Table]:
    question, unpaired = plan.question, plan.unpaired
    yield build_table(
        "Pairs: the same inputs for both (exact McNemar)",
        plan.paired,
        ("how they disagree", lambda one: _KINDS_OF_B[one.kind]),
        ("discordant", lambda one: as_percent(one.discordance)),
        ("pairs", lambda one: _write_size(one.pairs)),
        ("discordant\npairs", _write_discordant),
        ("power", lambda one: write_chance(one.power)),
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
            ("how they disagree", lambda one: _KINDS_OF_B[one.kind]),
            ("power", lambda one: as_probability(one.given_power or 0.0)),
            ("enough\ndiscordant", lambda one: as_probability(one.given_enough or 0.0)),
        )
    each, power = _write_size(unpaired.trials_each), write_chance(unpaired.power)
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


def _chart_power(plan: ComparePlan) -> Chart:
    curves = [
        (_KINDS_OF_B[size.kind], [(float(point.pairs), point.paired[i]) for point in plan.curve])
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
