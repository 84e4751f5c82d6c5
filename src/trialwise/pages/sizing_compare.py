"""What it takes to tell two arms apart, in words: in pairs as `compare` makes them, or without."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trialwise.documents.blocks import Block, Column, Document, Table, build_table
from trialwise.documents.numbers import (
    as_count,
    as_mean_trials,
    as_percent,
    as_points,
    as_probability,
)
from trialwise.pages.sizing import list_costs, make_page, write_chance
from trialwise.procedures.sizing.comparison_sizing import MOST_TRIALS
from trialwise.procedures.sizing.paired_sizing import (
    PairedChances,
    PairedMethod,
    PairedPlan,
    PairedSizingQuestion,
)

#: How often two arms disagree, between the least that their rates allow and independence.
_KINDS = {
    "least": "one fails wherever the other does",
    "halfway": "halfway",
    "independent": "nothing in common",
    "assumed": "as assumed",
}
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
    source = "expected" if question.expect is not None else "assumed, since none are expected"
    wrong = f"in at most {as_percent(question.alpha / 2)} of runs each way"
    facts = [("rates", f"{rates}, {source}"), ("a wrong statement", wrong)]
    if question.tests > 1:
        level = as_probability(question.level)
        facts.append(("tests", f"{question.tests} tests share the level: {level} for each"))
    asked = _QUESTIONS[question.question].format(as_points(question.margin or 0.0))
    if question.question == "better" and not question.margin:
        asked = "is the candidate better?"
    return make_page(asked, facts, _recommend_pairs(plan), _list_pair_tables(plan))


def _recommend_pairs(plan: PairedPlan) -> str:
    question, chosen = plan.question, plan.methods[0]
    found, most = chosen.expected, chosen.most_pairs
    wanted = question.wanted.value
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


def _price(question: PairedSizingQuestion, pairs: float) -> str:
    """Write what some pairs take: trials of all arms, money and time."""
    if math.isinf(pairs):
        return "no end"
    # Every arm answers every input, also where the question is about two of several arms.
    trials = math.ceil(pairs) * question.arms
    costs = list_costs(question, trials, trials / question.concurrency)
    return ", ".join([as_count(trials, "trial"), *costs])


def _list_pair_tables(plan: PairedPlan) -> Iterator[Block]:
    for method in plan.methods:
        yield _tabulate_chances(plan.question, method)
    if plan.disagreements and plan.apart is not None:
        apart = _write_size(plan.apart.trials_each, MOST_TRIALS)
        yield build_table(
            "How often the arms disagree decides how many pairs it takes",
            plan.disagreements,
            ("how they disagree", lambda one: _KINDS[one.kind]),
            ("discordant", lambda one: as_percent(round(one.discordance, 4))),
            (plan.question.wanted.value, lambda one: write_chance(one.passes)),
            ("pairs", lambda one: _write_pairs(one.mean_pairs)),
            ("fixed\npairs", lambda one: _write_size(one.fixed_pairs, plan.question.largest_size)),
            notes=(
                *(["The tables above assume nothing in common."] * (len(plan.disagreements) > 1)),
                f"Separate inputs take {apart} trials of each arm (exact Fisher).",
            ),
        )


def _write_size(size: int | None, most: int) -> str:
    return f"over {most:,}" if size is None else f"{size:,}"


def _tabulate_chances(question: PairedSizingQuestion, method: PairedMethod) -> Table:
    columns: list[Column[PairedChances]] = [
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
    if question.trial_usd or question.trial_s:
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
