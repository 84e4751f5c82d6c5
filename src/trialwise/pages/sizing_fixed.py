"""Plans with a fixed number of trials in words: showing a rate, and estimating one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trialwise.decimals import as_written
from trialwise.documents.blocks import Block, Document, Row, Table, Tone, build_table
from trialwise.documents.charts import Chart, Guide, Line, chart_lines
from trialwise.documents.numbers import as_percent, as_points, as_probability, is_within
from trialwise.pages import sizing as pages
from trialwise.procedures.sizing import fixed_sizing as sizing
from trialwise.stats.result_types import Undefined

# --- Compliance: is the rate high enough, by a fixed number of trials? ----------------------------


def build_compliance_page(plan: sizing.CompliancePlan) -> Document:
    """Build the compliance plan as a page."""
    question, trials = plan.question, plan.question.trials
    required, better = as_percent(question.rate), as_percent(question.better_rate)
    facts = [
        ("required", f"{required}; PASS there in at most {as_percent(question.alpha)} of runs"),
        ("hoped for", f"{better}; PASS there in at least {as_percent(question.power)} of runs"),
    ]
    if trials is not None:
        facts.append(("trials", f"{trials}{pages.format_cost(question, trials)}"))
    return pages.make_page(
        f"show that the rate is above {required}",
        facts,
        _recommend_compliance(plan, required, better),
        _list_compliance_blocks(plan, required, better),
    )


def _recommend_compliance(plan: sizing.CompliancePlan, required: str, better: str) -> str:
    question, size = plan.question, plan.size_of("exact")
    power = as_percent(question.power)
    needed = f"{size.required.design.trials}" if size.required else "more than 20000"

    def word_chances(at: sizing.RuleAt) -> str:
        return (
            f"that happens in {as_probability(at.power)} of runs at {better} and in "
            f"{as_probability(at.design.achieved_size)} at {required}"
        )

    if plan.refusal is not None:
        return (
            f"Refused: {question.trials} trials cannot show a rate above {required}; even without "
            f"a failure it takes {size.minimum_trials}, and for a power of {power} at {better} "
            f"{needed}."
        )
    # The exact rule comes first; the other is asked where that one refuses.
    for at in plan.given:
        if at.design.cutoff is not None:
            return (
                f"With {question.trials} trials PASS with at least {at.design.cutoff} successes "
                f"({at.design.rule} rule): {word_chances(at)}; a power of {power} takes {needed}."
            )
    if size.required is None:
        return (
            f"No number of trials up to 20000 shows a rate above {required} with a power of "
            f"{power} at {better}: raise --expect or lower --power."
        )
    design = size.required.design
    cost = pages.format_cost(question, design.trials)
    passing = f"{design.cutoff} successes (exact rule): {word_chances(size.required)}"
    return f"Run {design.trials} trials{cost} and PASS with at least {passing}."


def _list_compliance_blocks(
    plan: sizing.CompliancePlan, required: str, better: str
) -> Iterator[Block]:
    question = plan.question
    head = ("PASS with\nat least", f"P(PASS)\nat {required}", f"P(PASS)\nat {better}")
    # The size that books give, beside what the exact rule really does with it.
    normal = ("normal", "", "", str(plan.normal.required_trials), *_list_cells(plan.normal_exact))
    yield Table(
        heading="How many trials",
        columns=("rule", "fewest that\ncould PASS", "first\ncrossing", "\ntrials", *head),
        rows=(*(_make_size_row(plan, size) for size in plan.sizes), Row(cells=normal)),
        notes=tuple(_list_compliance_notes(plan, required)),
    )
    if plan.given:
        yield Table(
            heading=f"With {question.trials} trials",
            columns=("rule", *head),
            rows=tuple(
                Row(cells=(at.design.rule + _mark(at, question.alpha), *_list_cells(at)))
                for at in plan.given
            ),
            notes=tuple(
                f"The {at.design.rule} rule refuses: "
                f"{pages.REFUSALS[at.design.refusal]}; it takes {at.design.minimum_trials} trials."
                for at in plan.given
                if at.design.refusal
            ),
        )
    if question.margin is not None:
        yield _tabulate_losses(plan, question.margin)
    if plan.drawn:
        yield _chart_compliance(plan)


def _make_size_row(plan: sizing.CompliancePlan, size: sizing.RuleSize) -> Row:
    # The search ends at 20,000, so that no cutoff and no chance is known beyond.
    crossing = pages.write_count(size.first_crossing, "over 20000")
    start = (str(size.minimum_trials), crossing)
    if size.required is None:
        return Row(cells=(size.rule, *start, "over 20000", "", "", ""))
    broken = _mark(size.required, plan.question.alpha)
    cells = (size.rule + broken, *start, str(size.required.design.trials))
    tone: Tone = "broken" if broken else "chosen"
    return Row(cells=(*cells, *_list_cells(size.required)), tone=tone)


def _list_cells(at: sizing.RuleAt) -> tuple[str, str, str]:
    if at.design.cutoff is None:
        return "refused", "", ""
    return str(at.design.cutoff), as_probability(at.design.achieved_size), as_probability(at.power)


def _mark(at: sizing.RuleAt, alpha: float) -> str:
    # A rule by approximation may exceed its level; whoever relies on it should see that.
    return "" if is_within(at.design.achieved_size, alpha) else " !"


def _list_compliance_notes(plan: sizing.CompliancePlan, required: str) -> Iterator[str]:
    alpha = plan.question.alpha
    for size in plan.sizes:
        if size.required and _mark(size.required, alpha):
            achieved = as_probability(size.required.design.achieved_size)
            yield (
                f"! The {size.rule} rule's P(PASS) at {required} is {achieved}, above "
                f"{as_percent(alpha)}: it is an approximation."
            )
    yield (
        "Power is a sawtooth in the number of trials: first reached at the crossing, and kept "
        "from the trials given on. The normal size is the textbook formula's; what stands beside "
        "it is what the exact rule really does with this many trials."
    )
    if not plan.losses:
        yield (
            "These trials show the required rate. --margin 1% sizes a test that finds a loss of 1 "
            "point instead, which takes fewer."
        )


def _tabulate_losses(plan: sizing.CompliancePlan, margin: float) -> Table:
    """Tabulate the other sizing: trials that find a loss, by the normal formula and exactly."""
    question = plan.question
    lower = float(as_written(question.rate) - as_written(margin))
    required, lost = as_percent(question.rate), as_percent(lower)
    written = question.rate, margin, question.alpha, question.power
    # A suite file writes 5%, where a page leaves a space before the sign.
    at_least, below, alpha, power = (as_percent(one).replace(" ", "") for one in written)
    return build_table(
        f"Trials that find a loss of {as_points(margin)}",
        plan.losses,
        ("power", lambda one: as_percent(one.power)),
        ("normal\nsize", lambda one: str(one.normal_trials)),
        ("exact\nsize", lambda one: pages.write_count(one.trials, "over 30000")),
        ("PASS with\nat least", lambda one: pages.write_count(one.cutoff, "")),
        (f"P(FAIL)\nat {required}", lambda one: pages.write_chance(one.wrong_fail)),
        (f"P(PASS)\nat {lost}", lambda one: pages.write_chance(one.wrong_pass)),
        notes=(
            (
                f"These sizes are smaller because they ask less: a PASS shows a rate above {lost}, "
                f"not above {required}, and a service at {required} PASSes. The normal size is the "
                "usual formula; the exact size is the smallest that keeps both errors."
            ),
            (
                f"In a suite: at_least: {at_least}, margin: {below}, alpha: {alpha}, "
                f"power: {power}, method: fixed. Without `method` the test may stop earlier."
            ),
        ),
        tone=lambda one: "chosen" if one.power == question.power else "plain",
    )


def _chart_compliance(plan: sizing.CompliancePlan) -> Chart:
    names = [f"{design.rule}, {design.trials} trials" for design in plan.drawn]
    return pages.chart_chances(
        "P(PASS), by true rate",
        "How often each rule passes a service of a given true rate.",
        "true rate",
        "P(PASS)",
        [(name, [(at.rate, at.passes[i]) for at in plan.curve]) for i, name in enumerate(names)],
        guides=pages.guide_rates(plan.question.rate, plan.question.better_rate),
    )


# --- Precision: what is the rate, and how precisely? ----------------------------------------------

_INTERVAL_NAMES = {"wald": "textbook", "wilson": "wilson", "clopper-pearson": "exact"}
_EXPLAINED = "exact is Clopper–Pearson; textbook is p ± z √(p(1−p)/n)."


def build_precision_page(plan: sizing.PrecisionPlan) -> Document:
    """Build the precision plan as a page: trials for a width, or the width that trials give."""
    question, chosen = plan.question, plan.wilson
    level, rate = as_percent(question.confidence), as_percent(question.rate)
    trials = f"{chosen.trials} trials{pages.format_cost(question, chosen.trials)}"
    width, holds = as_probability(chosen.half_width), as_probability(chosen.coverage)
    if question.margin is not None:
        asked = f"estimate a rate of about {rate} to ± {as_percent(question.margin)}"
        lead = (
            f"Run {trials}: at a rate of {rate} the {level} Wilson interval is then ± {width} wide "
            f"on average and holds the true rate in {holds} of runs."
        )
        tables = _list_precision_tables(plan, as_percent(question.margin), level)
    else:
        asked = f"how precisely do {chosen.trials} trials estimate a rate?"
        lead = (
            f"With {trials} the {level} Wilson interval is ± {width} wide on average at a rate of "
            f"{rate} and holds the true rate in {holds} of runs. The textbook half-width is at "
            f"most ± {as_probability(plan.widest or 0.0)}, at a rate of 50 %."
        )
        notes = (_EXPLAINED, f"! Holds the true rate in less than {level} of runs.")
        heading = f"With {chosen.trials} trials"
        tables = [_tabulate_precision(plan, heading, plan.given[::-1], notes)]
    facts = (("confidence", f"{level}, two-sided"), ("rate", f"{rate} or so"))
    return pages.make_page(asked, facts, lead, (*tables, _chart_precision(plan)))


def _list_precision_tables(plan: sizing.PrecisionPlan, margin: str, level: str) -> list[Table]:
    rows, notes, exact = [plan.wilson, plan.normal], [_EXPLAINED], plan.clopper_pearson
    if isinstance(exact, Undefined):
        notes.append(f"The exact interval was {exact.reason}.")
    else:
        # It stands first, since it alone never holds the rate too rarely.
        rows.insert(0, exact)
    # The known failing of the textbook interval, worst near 0 and 1 (Brown, Cai, DasGupta 2001).
    if not is_within(plan.question.confidence, plan.normal.coverage):
        notes.append(
            f"! The textbook interval holds the true rate in "
            f"{as_probability(plan.normal.coverage)} of runs, not in {level}."
        )
    tables = [_tabulate_precision(plan, f"Trials for ± {margin} on average", rows, tuple(notes))]
    if plan.given:
        tables.append(_tabulate_precision(plan, f"With {plan.question.trials} trials", plan.given))
    return tables


def _tabulate_precision(
    plan: sizing.PrecisionPlan,
    heading: str,
    rows: Sequence[sizing.PrecisionRow],
    notes: tuple[str, ...] = (),
) -> Table:
    def is_low(row: sizing.PrecisionRow) -> bool:
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


def _chart_precision(plan: sizing.PrecisionPlan) -> Chart:
    points = tuple((float(point.trials), point.half_width) for point in plan.curve)
    trials, margin = plan.wilson.trials, plan.question.margin
    if margin is None:
        # Asked for a width, the chart marks the width that the trials give.
        margin = round(plan.wilson.half_width, 4)
    return chart_lines(
        "Mean half-width of the Wilson interval, by trials",
        "How the interval narrows with the number of trials.",
        "trials",
        "half-width",
        [Line(name="wilson", ink="one", points=points)],
        guides=(
            Guide(value=float(trials), label=str(trials)),
            Guide(value=margin, label=f"± {as_percent(margin)}", axis="y"),
        ),
        x_unit="count",
        y_unit="rate",
    )
