"""The page of a comparison before it runs: pairs, chances of each verdict, money and time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from trialwise.documents.blocks import Block, Document, Table, build_table
from trialwise.documents.numbers import (
    as_count,
    as_duration,
    as_mean_trials,
    as_money,
    as_percent,
    as_points,
    as_probability,
)
from trialwise.procedures.sizing.paired_sizing import (
    Disagreement,
    PairedChances,
    PairedMethod,
    PairedPlan,
    PairedSizingQuestion,
)
from trialwise.procedures.sizing.trial_costs import NO_PRICES

_KINDS = {
    "least": "one fails wherever the other does",
    "halfway": "halfway",
    "independent": "nothing in common",
    "assumed": "as assumed",
}


def build_pairs_page(plan: PairedPlan) -> Document:
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


def _ask(question: PairedSizingQuestion) -> str:
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


def _list_shares(question: PairedSizingQuestion) -> Iterator[tuple[str, str]]:
    if question.tests > 1:
        yield (
            "tests",
            f"{question.tests} tests share the level: {as_probability(question.level)} for each",
        )


def _recommend(plan: PairedPlan) -> str:
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


def _expects_fail(question: PairedSizingQuestion) -> bool:
    control, candidate = question.expected
    return question.question == "different" and candidate < control


def _price(question: PairedSizingQuestion, pairs: float) -> str:
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


def _list_blocks(plan: PairedPlan) -> Iterator[Block]:
    for method in plan.methods:
        yield _tabulate_chances(plan.question, method)
    if len(plan.disagreements) > 1:
        yield _tabulate_disagreements(plan)


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


def _name_truth(row: PairedChances) -> str:
    gap = round(row.candidate - row.control, 6)
    points = f"{100 * gap:+.3g}".replace("-", "−") if gap else "0"
    return f"{row.truth} ({points})"


def _write_pairs(pairs: float) -> str:
    return "no end" if math.isinf(pairs) else as_mean_trials(pairs)


def _tabulate_disagreements(plan: PairedPlan) -> Table:
    wanted = "FAIL" if _expects_fail(plan.question) else "PASS"

    def write_mean(one: Disagreement) -> str:
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
