"""Plans with a fixed number of trials in words: showing a rate, and estimating one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trialwise.decimals import as_written
from trialwise.documents.blocks import Block, Document, Row, Table, build_table
from trialwise.documents.charts import Chart, Guide, Line, chart_lines
from trialwise.documents.numbers import as_percent, as_points, as_probability, is_within
from trialwise.pages.sizing_words import REFUSALS, chart_chances, format_cost, guide_rates
from trialwise.procedures.sizing import fixed_sizing
from trialwise.stats.result_types import Undefined

# --- Compliance -------------------------------------------------------------------------------


def build_compliance_page(plan: fixed_sizing.CompliancePlan) -> Document:
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


def _compliance_recommendation(plan: fixed_sizing.CompliancePlan) -> str:
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
            f"{as_percent(question.power)} at {better}: raise --expect or lower --power."
        )
    design = size.required.design
    return (
        f"Run {design.trials} trials{format_cost(question.prices, design.trials)} and PASS with at "
        f"least {design.cutoff} successes (exact rule): {_word_chances(plan, size.required)}."
    )


def _word_chances(plan: fixed_sizing.CompliancePlan, at: fixed_sizing.RuleAt) -> str:
    required, better = (
        as_percent(plan.question.required_rate),
        as_percent(plan.question.better_rate),
    )
    return (
        f"that happens in {as_probability(at.power)} of runs at {better} and in "
        f"{as_probability(at.design.achieved_size)} at {required}"
    )


def _word_needed(size: fixed_sizing.RuleSize) -> str:
    return f"{size.required.design.trials}" if size.required else "more than 20000"


def _compliance_blocks(plan: fixed_sizing.CompliancePlan) -> Iterator[Block]:
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
    if plan.losses:
        yield _tabulate_losses(plan)
    if plan.drawn:
        yield _compliance_chart(plan)


def _tabulate_losses(plan: fixed_sizing.CompliancePlan) -> Table:
    """Tabulate the other sizing: trials that find a loss, by the normal formula and exactly."""
    question = plan.question
    assert question.margin is not None
    lower = float(as_written(question.required_rate) - as_written(question.margin))
    required, lost = as_percent(question.required_rate), as_percent(lower)
    written = question.required_rate, question.margin, question.alpha, question.power
    at_least, margin, alpha, power = (as_percent(one).replace(" ", "") for one in written)
    return build_table(
        f"Trials that find a loss of {as_points(question.margin)}",
        plan.losses,
        ("power", lambda one: as_percent(one.power)),
        ("normal\nsize", lambda one: str(one.normal_trials)),
        ("exact\nsize", lambda one: "over 30000" if one.trials is None else str(one.trials)),
        ("PASS with\nat least", lambda one: "" if one.cutoff is None else str(one.cutoff)),
        (f"P(FAIL)\nat {required}", lambda one: _or_blank(one.wrong_fail)),
        (f"P(PASS)\nat {lost}", lambda one: _or_blank(one.wrong_pass)),
        notes=(
            (
                f"These sizes are smaller because they ask less: a PASS shows a rate above {lost}, "
                f"not above {required}, and a service at {required} PASSes. The normal size is the "
                "usual formula; the exact size is the smallest that keeps both errors."
            ),
            (
                f"In a suite: at_least: {at_least}, margin: {margin}, alpha: {alpha}, "
                f"power: {power}, method: fixed. Without `method` the test may stop earlier."
            ),
        ),
        tone=lambda one: "chosen" if one.power == question.power else "plain",
    )


def _or_blank(value: float | None) -> str:
    return "" if value is None else as_probability(value)


def _size_row(plan: fixed_sizing.CompliancePlan, size: fixed_sizing.RuleSize) -> Row:
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


def _at_cells(at: fixed_sizing.RuleAt) -> tuple[str, str, str]:
    if at.design.cutoff is None:
        return "refused", "", ""
    return str(at.design.cutoff), as_probability(at.design.achieved_size), as_probability(at.power)


def _mark(at: fixed_sizing.RuleAt, alpha: float) -> str:
    return "" if is_within(at.design.achieved_size, alpha) else " !"


def _compliance_notes(plan: fixed_sizing.CompliancePlan) -> Iterator[str]:
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
    if not plan.losses:
        yield (
            "These trials show the required rate. --margin 1% sizes a test that finds a loss of 1 "
            "point instead, which takes fewer."
        )


def _compliance_chart(plan: fixed_sizing.CompliancePlan) -> Chart:
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


def build_precision_page(plan: fixed_sizing.PrecisionPlan) -> Document:
    """Build the precision plan as a page."""
    question = plan.question
    if question.margin is None:
        return _build_width_page(plan)
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


def _build_width_page(plan: fixed_sizing.PrecisionPlan) -> Document:
    """Build the answer to how precise a number of trials is."""
    question, chosen = plan.question, plan.wilson
    level, rate = as_percent(question.confidence), as_percent(question.rate)
    assert plan.widest is not None
    return Document(
        kind="Plan",
        title=f"Plan: how precisely do {chosen.trials} trials estimate a rate?",
        facts=(("confidence", f"{level}, two-sided"), ("rate", f"{rate} or so")),
        lead=(
            f"With {chosen.trials} trials{format_cost(question.prices, chosen.trials)} the {level} "
            f"Wilson interval is ± {as_probability(chosen.half_width)} wide on average at a rate "
            f"of {rate} and holds the true rate in {as_probability(chosen.coverage)} of runs. The "
            f"textbook half-width is at most ± {as_probability(plan.widest)}, at a rate of 50 %."
        ),
        blocks=(
            _tabulate_precision(
                plan,
                f"With {chosen.trials} trials",
                plan.given[::-1],
                (
                    "exact is Clopper–Pearson; textbook is p ± z √(p(1−p)/n).",
                    f"! Holds the true rate in less than {level} of runs.",
                ),
            ),
            _precision_chart(plan),
        ),
    )


def _tabulate_precision(
    plan: fixed_sizing.PrecisionPlan,
    heading: str,
    rows: Sequence[fixed_sizing.PrecisionRow],
    notes: tuple[str, ...] = (),
) -> Table:
    def is_low(row: fixed_sizing.PrecisionRow) -> bool:
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


def _precision_chart(plan: fixed_sizing.PrecisionPlan) -> Chart:
    points = tuple((float(point.trials), point.half_width) for point in plan.curve)
    margin = plan.question.margin
    if margin is None:
        margin = round(plan.wilson.half_width, 4)
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
