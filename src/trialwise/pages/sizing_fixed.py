"""Plans with a fixed number of trials in words: showing a rate, and estimating one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trialwise.documents.blocks import Block, Document, Row, Table, build_table
from trialwise.documents.charts import Chart, Guide, Line, chart_lines
from trialwise.documents.numbers import as_percent, as_probability, is_within
from trialwise.pages.sizing_words import REFUSALS, chart_chances, format_cost, guide_rates
from trialwise.procedures.sizing.fixed_sizing import (
    CompliancePlan,
    PrecisionPlan,
    PrecisionRow,
    RuleAt,
    RuleSize,
)
from trialwise.stats.result_types import Undefined

# --- Compliance -------------------------------------------------------------------------------


def build_compliance_page(plan: CompliancePlan) -> Document:
    """Build the compliance plan as a page."""
    question = plan.question
    required, better = as_percent(question.required_rate), as_percent(question.better_rate)
    facts = [
        ("required", f"{required}; PASS there in at most {as_percent(question.alpha)} of runs"),
        ("hoped for", f"{better}; PASS there in at least {as_percent(question.power)} of runs"),
    ]
    if question.trials is not None:
        facts.append(
            ("trials", f"{question.trials}{format_cost(question.prices, question.trials)}")
        )
    return Document(
        kind="Plan",
        title=f"Plan: show that the rate is above {required}",
        facts=tuple(facts),
        lead=_compliance_recommendation(plan),
        blocks=tuple(_compliance_blocks(plan)),
    )


def _compliance_recommendation(plan: CompliancePlan) -> str:
    question, size = plan.question, plan.size_of("exact")
    required, better = as_percent(question.required_rate), as_percent(question.better_rate)
    if plan.refusal is not None:
        return (
            f"Refused: {question.trials} trials cannot show a rate above {required}; even without "
            f"a failure it takes {size.minimum_trials}, and for a power of "
            f"{as_percent(question.power)} at {better} {_word_needed(size)}."
        )
    asked = next((at for at in plan.given if at.design.cutoff is not None), None)
    if asked is not None:
        takes = f"a power of {as_percent(question.power)} takes {_word_needed(size)}"
        return (
            f"With {question.trials} trials PASS with at least {asked.design.cutoff} successes "
            f"({asked.design.rule} rule): {_word_chances(plan, asked)}; {takes}."
        )
    if size.required is None:
        return (
            f"No number of trials up to 20000 shows a rate above {required} with a power of "
            f"{as_percent(question.power)} at {better}: raise --better or lower --power."
        )
    design = size.required.design
    return (
        f"Run {design.trials} trials{format_cost(question.prices, design.trials)} and PASS with at "
        f"least {design.cutoff} successes (exact rule): {_word_chances(plan, size.required)}."
    )


def _word_chances(plan: CompliancePlan, at: RuleAt) -> str:
    required, better = (
        as_percent(plan.question.required_rate),
        as_percent(plan.question.better_rate),
    )
    return (
        f"that happens in {as_probability(at.power)} of runs at {better} and in "
        f"{as_probability(at.design.achieved_size)} at {required}"
    )


def _word_needed(size: RuleSize) -> str:
    return f"{size.required.design.trials}" if size.required else "more than 20000"


def _compliance_blocks(plan: CompliancePlan) -> Iterator[Block]:
    question = plan.question
    required, better = as_percent(question.required_rate), as_percent(question.better_rate)
    head = ("PASS with\nat least", f"P(PASS)\nat {required}", f"P(PASS)\nat {better}")
    rows = [_size_row(plan, size) for size in plan.sizes]
    normal = plan.normal.required_trials
    rows.append(Row(cells=("normal", "", "", str(normal), *_at_cells(plan.normal_exact))))
    yield Table(
        heading="How many trials",
        columns=("rule", "fewest that\ncould PASS", "first\ncrossing", "\ntrials", *head),
        rows=tuple(rows),
        notes=tuple(_compliance_notes(plan)),
    )
    if plan.given:
        yield Table(
            heading=f"With {question.trials} trials",
            columns=("rule", *head),
            rows=tuple(
                Row(cells=(at.design.rule + _mark(at, question.alpha), *_at_cells(at)))
                for at in plan.given
            ),
            notes=tuple(
                f"The {at.design.rule} rule refuses: "
                f"{REFUSALS[at.design.refusal]}; it takes {at.design.minimum_trials} trials."
                for at in plan.given
                if at.design.refusal
            ),
        )
    if plan.drawn:
        yield _compliance_chart(plan)


def _size_row(plan: CompliancePlan, size: RuleSize) -> Row:
    crossing = "over 20000" if size.first_crossing is None else str(size.first_crossing)
    start = (str(size.minimum_trials), crossing)
    if size.required is None:
        return Row(cells=(size.rule, *start, "over 20000", "", "", ""))
    broken = _mark(size.required, plan.question.alpha)
    trials = str(size.required.design.trials)
    return Row(
        cells=(size.rule + broken, *start, trials, *_at_cells(size.required)),
        tone="broken" if broken else "chosen",
    )


def _at_cells(at: RuleAt) -> tuple[str, str, str]:
    if at.design.cutoff is None:
        return "refused", "", ""
    return str(at.design.cutoff), as_probability(at.design.achieved_size), as_probability(at.power)


def _mark(at: RuleAt, alpha: float) -> str:
    return "" if is_within(at.design.achieved_size, alpha) else " !"


def _compliance_notes(plan: CompliancePlan) -> Iterator[str]:
    question = plan.question
    for size in plan.sizes:
        if size.required and not is_within(size.required.design.achieved_size, question.alpha):
            achieved = as_probability(size.required.design.achieved_size)
            yield (
                f"! The {size.rule} rule's P(PASS) at {as_percent(question.required_rate)} is "
                f"{achieved}, above {as_percent(question.alpha)}: it is an approximation."
            )
    yield (
        "Power is a sawtooth in the number of trials: first reached at the crossing, and kept "
        "from the trials given on. The normal size is the textbook formula's; what stands beside "
        "it is what the exact rule really does with so many trials."
    )


def _compliance_chart(plan: CompliancePlan) -> Chart:
    return chart_chances(
        "P(PASS), by true rate",
        "How often each rule passes a service of a given true rate.",
        "true rate",
        "P(PASS)",
        [
            (
                f"{design.rule}, {design.trials} trials",
                [(point.rate, point.passes[i]) for point in plan.curve],
            )
            for i, design in enumerate(plan.drawn)
        ],
        guides=guide_rates(plan.question.required_rate, plan.question.better_rate),
    )


# --- Precision --------------------------------------------------------------------------------

_INTERVAL_NAMES = {"wald": "textbook", "wilson": "wilson", "clopper-pearson": "exact"}


def build_precision_page(plan: PrecisionPlan) -> Document:
    """Build the precision plan as a page."""
    question = plan.question
    level, margin = as_percent(question.confidence), as_percent(question.margin)
    chosen = plan.wilson
    rows = [plan.wilson, plan.normal]
    notes = ["exact is Clopper–Pearson; textbook is p ± z √(p(1−p)/n)."]
    if isinstance(plan.clopper_pearson, Undefined):
        notes.append(f"The exact interval was {plan.clopper_pearson.reason}.")
    else:
        rows.insert(0, plan.clopper_pearson)
    if not is_within(question.confidence, plan.normal.coverage):
        notes.append(
            f"! The textbook interval holds the true rate in "
            f"{as_probability(plan.normal.coverage)} of runs, not in {level}."
        )
    tables = [_tabulate_precision(plan, f"Trials for ± {margin} on average", rows, tuple(notes))]
    if plan.given:
        tables.append(_tabulate_precision(plan, f"With {question.trials} trials", plan.given))
    return Document(
        kind="Plan",
        title=f"Plan: estimate a rate of about {as_percent(question.rate)} to ± {margin}",
        facts=(
            ("confidence", f"{level}, two-sided"),
            ("rate", f"{as_percent(question.rate)} or so"),
        ),
        lead=(
            f"Run {chosen.trials} trials{format_cost(question.prices, chosen.trials)}: at a "
            f"rate of {as_percent(question.rate)} the {level} Wilson interval is then "
            f"± {as_probability(chosen.half_width)} wide on average and holds the true rate in "
            f"{as_probability(chosen.coverage)} of runs."
        ),
        blocks=(*tables, _precision_chart(plan)),
    )


def _tabulate_precision(
    plan: PrecisionPlan, heading: str, rows: Sequence[PrecisionRow], notes: tuple[str, ...] = ()
) -> Table:
    def is_low(row: PrecisionRow) -> bool:
        return not is_within(plan.question.confidence, row.coverage)

    return build_table(
        heading,
        rows,
        ("interval", lambda one: _INTERVAL_NAMES[one.method] + (" !" if is_low(one) else "")),
        ("trials", lambda one: str(one.trials)),
        ("mean\nhalf-width", lambda one: f"± {as_probability(one.half_width)}"),
        ("holds the\ntrue rate", lambda one: as_probability(one.coverage)),
        notes=notes,
        tone=lambda one: "broken" if is_low(one) else "chosen" if one is plan.wilson else "plain",
    )


def _precision_chart(plan: PrecisionPlan) -> Chart:
    points = tuple((float(point.trials), point.half_width) for point in plan.curve)
    margin = plan.question.margin
    return chart_lines(
        "Mean half-width of the Wilson interval, by trials",
        "How the interval narrows with the number of trials.",
        "trials",
        "half-width",
        [Line(name="wilson", ink="one", points=points)],
        guides=(
            Guide(value=float(plan.wilson.trials), label=str(plan.wilson.trials)),
            Guide(value=margin, label=f"± {as_percent(margin)}", axis="y"),
        ),
        x_unit="count",
        y_unit="rate",
    )
