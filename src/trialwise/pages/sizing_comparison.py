"""The A/B plan in words: pairs for as often as the two may disagree, and separate inputs."""

from __future__ import annotations

from collections.abc import Iterator

from trialwise.documents.blocks import Document, Row, Table
from trialwise.documents.charts import Chart, Guide, Ink, Line, chart_lines
from trialwise.documents.numbers import as_mean_trials, as_percent, as_points, as_probability
from trialwise.pages.sizing_words import format_cost
from trialwise.procedures.sizing.comparison_sizing import ComparePlan, PairedSize

__all__ = ["build_comparison_page"]

_INKS: tuple[Ink, ...] = ("one", "two", "three", "four")
_KINDS = {
    "least": "B fails wherever A does",
    "halfway": "halfway",
    "independent": "nothing in common",
    "assumed": "as assumed",
}
_SWEEP = "even if all of them favour A"


def build_comparison_page(plan: ComparePlan) -> Document:
    """The A/B plan as a page."""
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
    yield Table(
        heading="Pairs: the same inputs for both (exact McNemar)",
        columns=(
            "how they disagree",
            "discordant",
            "pairs",
            "discordant\npairs",
            "power",
            "normal\nsize",
        ),
        rows=tuple(_paired_row(size) for size in plan.paired),
        notes=(
            f"Fewer than {plan.minimum_discordant} discordant pairs can never reject, {_SWEEP}.",
            "The normal size is Connor's formula.",
        ),
    )
    if question.pairs is not None:
        yield Table(
            heading=f"With {question.pairs} pairs",
            columns=("how they disagree", "power", "enough\ndiscordant"),
            rows=tuple(
                Row(
                    cells=(
                        _KINDS[size.kind],
                        as_probability(size.given_power or 0.0),
                        as_probability(size.given_enough or 0.0),
                    )
                )
                for size in plan.paired
            ),
        )
    unpaired = plan.unpaired
    each = "over 50000" if unpaired.trials_each is None else str(unpaired.trials_each)
    power = "" if unpaired.power is None else as_probability(unpaired.power)
    yield Table(
        heading="Separate inputs (exact Fisher)",
        columns=("test", "trials each", "power", "normal\nsize"),
        rows=(Row(cells=("Fisher", each, power, str(unpaired.normal_trials_each))),),
    )


def _paired_row(size: PairedSize) -> Row:
    return Row(
        cells=(
            _KINDS[size.kind],
            as_percent(size.discordance),
            "over 50000" if size.pairs is None else str(size.pairs),
            "" if size.expected_discordant is None else as_mean_trials(size.expected_discordant),
            "" if size.power is None else as_probability(size.power),
            str(size.normal_pairs),
        )
    )


def _compare_chart(plan: ComparePlan) -> Chart:
    lines = [
        Line(
            name=_KINDS[size.kind],
            ink=_INKS[i],
            points=tuple((float(point.pairs), point.paired[i]) for point in plan.curve),
        )
        for i, size in enumerate(plan.paired)
    ]
    apart = tuple((float(point.pairs), point.unpaired) for point in plan.curve)
    power = plan.question.power
    return chart_lines(
        "Power, by inputs",
        "How likely the drop is found, by pairs or by inputs for each variant.",
        "pairs, or inputs for each",
        "power",
        [*lines, Line(name="separate inputs", ink="four", points=apart)],
        guides=(Guide(value=power, label=as_percent(power), axis="y"),),
        x_unit="count",
        y_unit="rate",
        y_high=1.0,
    )
