"""The sequential plan in words: the recommendation, the rule in counts, the tables, the curves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from trialwise.documents import charts
from trialwise.documents.blocks import Block, Details, Document, Prose, Row, Section, Table, Tone
from trialwise.documents.numbers import (
    as_duration_spread,
    as_level,
    as_mean_trials,
    as_money,
    as_percent,
    as_probability,
)
from trialwise.pages.run_rules import build_choices
from trialwise.pages.sizing import guide_rates, list_costs, make_page
from trialwise.procedures import sequential_designs
from trialwise.procedures.sizing import sequential_sizing as sizing
from trialwise.procedures.sizing.sizing_base import Spread, expect_half
from trialwise.stats.sequential.bound import default_alternative
from trialwise.stats.sequential.design import Method, SequentialDesign

_ASK_EXPECTED = "Say with --expect which rate you expect. "
_ABOUT_CHOICES = (
    f"Trials on average and at most. {_ASK_EXPECTED}The methods below are those of a design with "
    "a margin; `at_least` alone has none."
)
#: What each method is called.
NAMES = {
    Method.OPTIMAL: "optimal",
    Method.CALIBRATED: "calibrated",
    Method.WALD: "Wald, cut",
    Method.FIXED: "fixed",
}
#: The calibrated lines would lie so close to the optimal ones that a chart shows one of the two.
_INKS: dict[Method, charts.Ink] = {Method.OPTIMAL: "one", Method.WALD: "two", Method.FIXED: "three"}
_SHARED = (
    "The criteria share their trials, so a run costs what its slowest criterion needs, not the "
    "sum. The figures are for independent criteria at the same rate; whatever they have in common, "
    "the mean is at most what the second row says."
)


def build_sequential_page(plan: sizing.SequentialPlan, *, short: bool = False) -> Document:
    """Build the ways to ask side by side; the whole page adds the methods with a margin."""
    question = plan.question
    asks = "" if short and question.expect is not None else _ASK_EXPECTED
    about = (
        f"At a lower rate than PASS shows, PASS happens in at most {as_level(question.alpha)} of "
        f"runs. Trials on average and at most. {asks}-v adds the rule in counts, the other methods "
        "and charts."
    )
    expected = question.expect or expect_half(question.rate)
    choices = build_choices(plan.choices, expected, advice=about if short else _ABOUT_CHOICES)
    title = f"is the rate at least {as_percent(question.rate)}?"
    # Somebody who set a margin or a limit asks about that design, and not which way to ask.
    if short and _is_usual(question):
        return make_page(title, (), "", (choices,))
    more = () if short else (*_list_tables(plan), _chart_verdicts(plan), _chart_trials(plan))
    return make_page(title, _list_facts(plan), _recommend(plan), (choices, *more))


def _is_usual(question: sizing.SequentialQuestion) -> bool:
    """Return whether the user left the design open, so that choices are worth showing."""
    return replace(question, alternative=question.alternative_rate) == sizing.SequentialQuestion(
        question.rate,
        alternative=default_alternative(question.rate),
        expect=question.expect,
        confidence=question.confidence,
        trial_usd=question.trial_usd,
    )


# --- The recommendation ---------------------------------------------------------------------------


def _list_facts(plan: sizing.SequentialPlan) -> Iterator[tuple[str, str]]:
    question = plan.question
    good, bad = as_percent(question.rate), as_percent(question.alternative_rate)
    alpha, beta = as_level(question.alpha), as_level(question.beta)
    yield "good", f"a rate of {good} or more: FAIL in at most {alpha} of runs"
    yield "bad", f"a rate of {bad} or less: PASS in at most {beta} of runs"
    usual = f", twice the {plan.fixed_trials} of a fixed sample; set it with --max-trials"
    # Where twice the fixed sample is more than designs are planned for, it is cut to that.
    twice = question.max_trials is None and plan.max_trials >= 2 * plan.fixed_trials
    yield "trials", f"at most {plan.max_trials}" + (usual if twice else "")
    if question.batch > 1:
        yield "looks", f"every {question.batch} trials"
    if question.criteria > 1:
        yield "criteria", _word_criteria(question)
        shared = plan.of(Method.OPTIMAL).design.cap
        if shared < plan.max_trials:
            yield "shared", f"the optimal design is made for the longest of them: at most {shared}"
    if question.concurrency > 1:
        yield "in flight", f"up to {question.concurrency} trials at once"
    if costs := list_costs(question):
        yield "a trial", " and ".join(costs)


def _word_criteria(question: sizing.SequentialQuestion) -> str:
    each, together = as_level(question.alpha), as_level(question.family_alpha)
    start = f"{question.criteria} on the same trials, each at {each}"
    if question.correction == "bonferroni":
        return f"{start} (bonferroni): a run of good ones FAILs at most {together} of the time"
    most = as_level(min(1.0, question.criteria * question.alpha))
    return (
        f"{start}: a run of good ones may FAIL up to {most} of the time (--correction bonferroni "
        f"keeps {together})"
    )


def _recommend(plan: sizing.SequentialPlan) -> str:
    best, question, short = plan.recommendation, plan.question, plan.shortfall
    low, _, high, _ = best.expectations
    good, bad = as_percent(question.rate), as_percent(question.alternative_rate)
    several = question.criteria > 1
    run = f" for a run of {question.criteria} criteria" if several else ""
    costs = [list_costs(question, at.started.mean, at.rounds.mean) for at in (high, low)]
    told = "; ".join(map(" and ".join, zip(*costs, strict=True)))
    use = (
        f"the {NAMES[best.method]} design: {as_mean_trials(high.run_trials.mean)} trials on "
        f"average{run} at {good} and {as_mean_trials(low.run_trials.mean)} at {bad}"
        f"{f' ({told})' if told else ''}"
    )
    if short is not None:
        rates = question.rate, question.alternative_rate
        at_good, at_bad = (_as_share(share_open_runs(plan, rate)) for rate in rates)
        rules = ("of one criterion " if several else "") + "no rule leaves fewer than"
        return (
            f"If {plan.max_trials} trials must do, use {use}, and {at_good} of runs at {good} and "
            f"{at_bad} at {bad} end INCONCLUSIVE{', if independent' if several else ''} ({rules} "
            f"{_as_share(short.inconclusive_p0)} and {_as_share(short.inconclusive_p1)}); with "
            f"--max-trials {short.smallest_cap} every run can be decided."
        )
    floor = ""
    if not several:
        least = {bound.rate: as_mean_trials(bound.trials) for bound in plan.bounds}
        # With several criteria a run lasts as long as its slowest, which the bound is not about.
        floor = f" and no test can average fewer than {least[high.rate]} and {least[low.rate]}"
    return (
        f"Use {use}, every run decided within {best.design.cap}, where a fixed sample takes up to "
        f"{plan.fixed_trials}{floor}."
    )


def share_open_runs(plan: sizing.SequentialPlan, rate: float) -> float:
    """Return the share of runs that end INCONCLUSIVE: nothing FAILs and something is open."""
    found = plan.recommendation.design.operating_characteristic(rate)
    # A run PASSes where every criterion does, and a single FAIL decides it. The criteria are taken
    # as independent, which is why the sentence that shows this share says so.
    count = plan.question.criteria
    return (1 - found.fails) ** count - found.passes**count


def _as_share(value: float) -> str:
    return as_probability(value, digits=1)


def _write_rule(design: SequentialDesign) -> Section:
    """Return the rule in counts; a browser shows the whole of a long one."""
    passing = sequential_designs.list_passing_steps(design)
    failing = sequential_designs.list_failing_steps(design)
    blocks: list[Block] = [Prose(paragraphs=sequential_designs.describe_rule(design))]
    if max(len(passing), len(failing)) > sequential_designs.MOST_STEPS:
        whole = (
            f"PASS: {sequential_designs.join_steps(passing, 'after')}.",
            f"FAIL: {sequential_designs.join_steps(failing, 'within')}.",
        )
        blocks.append(Details(summary="The whole rule", blocks=(Prose(paragraphs=whole),)))
    return Section(heading=f"The rule ({NAMES[design.method]})", blocks=tuple(blocks))


# --- The methods side by side ---------------------------------------------------------------------


def _list_tables(plan: sizing.SequentialPlan) -> Iterator[Section | Table]:
    """List the rule and every table, in the order in which they are read."""
    best, rates = plan.recommendation, [f"at {as_percent(rate)}" for rate in plan.rates]
    yield _write_rule(best.design)
    yield _tabulate_errors(plan)
    who = "any test, at least" if plan.shortfall is None else "to decide, at least"
    least = (as_mean_trials(bound.trials) for bound in plan.bounds)
    one = " of one criterion" if plan.question.criteria > 1 else ""
    methods = [
        _make_row(plan, each, *(_write_trials(at.trials) for at in each.expectations))
        for each in plan.methods
    ]
    yield Table(
        heading=f"Trials{one}, mean (95th percentile), by true rate",
        columns=("method", *rates),
        rows=(*methods, Row(cells=(who, *least), tone="limit")),
        notes=tuple(_explain_bounds(plan)),
    )
    yield from _tabulate_run(plan, rates)


def _tabulate_run(plan: sizing.SequentialPlan, rates: Sequence[str]) -> Iterator[Table]:
    """Tabulate what a run takes beside the trials of one criterion; nothing where that is all."""
    question, best = plan.question, plan.recommendation
    rows: list[tuple[str, Callable[[sizing.Expectation], str]]] = []
    notes: list[str] = []
    if question.criteria > 1:
        rows.append(("trials", lambda at: _write_trials(at.run_trials)))
        # Criteria on the same replies are rarely independent: this holds for all of them.
        rows.append(("trials, at most", lambda at: as_mean_trials(at.run_mean_at_most)))
        notes.append(_SHARED)
    if question.concurrency > 1:
        rows.append(("rounds", lambda at: _write_trials(at.rounds)))
        rows.append(("trials started", lambda at: _write_trials(at.started)))
        # Only short designs of one criterion are walked with a policy state by state.
        is_whole = question.criteria > 1 or plan.max_trials > sizing.LONGEST_SPARING
        starts = "as many trials as may run at once"
        needed = "only trials that will more likely than not be needed"
        notes.append(f"A round starts {starts if is_whole else needed}.")
    if question.trial_usd is not None:
        rows.append(("money", lambda at: _write_money(at.cost_usd)))
        most = as_money(plan.max_trials * question.trial_usd)
        notes.append(f"At most {most} for {plan.max_trials} trials.")
    if question.trial_s is not None:
        rows.append(("time", lambda at: _write_time(at.duration_s)))
    if rows:
        yield Table(
            heading=f"A run of the {NAMES[best.method]} design, mean (95th percentile), by rate",
            columns=("it takes", *rates),
            rows=tuple(Row(cells=(name, *map(write, best.expectations))) for name, write in rows),
            notes=tuple(notes),
        )


def _tabulate_errors(plan: sizing.SequentialPlan) -> Table:
    question = plan.question
    good, bad = as_percent(question.rate), as_percent(question.alternative_rate)
    promised = ("promised", f"≤ {as_level(question.alpha)}", f"≤ {as_level(question.beta)}")
    rows = [
        _make_row(
            plan,
            one,
            *map(as_probability, (one.false_fail, one.false_pass)),
            *map(_as_share, (one.inconclusive_required, one.inconclusive_alternative)),
            str(one.design.cap),
        )
        for one in plan.methods
    ]
    heads = [f"P(FAIL)\nat {good}", f"P(PASS)\nat {bad}"]
    heads += [f"INCONCLUSIVE\nat {good}", f"INCONCLUSIVE\nat {bad}"]
    return Table(
        heading="What each method really does",
        columns=("method", *heads, "most\ntrials"),
        # Promises first: what a method really does is read against them.
        rows=(Row(cells=(*promised, "", "", ""), tone="limit"), *rows),
        notes=(
            *(_explain_broken(method) for method in plan.methods if method.broken),
            *(f"{NAMES[left.method]} is left out: {left.reason}." for left in plan.omissions),
        ),
    )


def _explain_broken(method: sizing.MethodPlan) -> str:
    who = NAMES[method.method]
    if method.method is Method.WALD:
        who = f"Wald's test, cut at {method.design.cap} trials,"
    broken = "; ".join(_word_broken(promise) for promise in method.broken)
    return f"! {who} breaks its promise: {broken}."


def _word_broken(promise: sizing.BrokenPromise) -> str:
    # As many digits as it takes to see that the two differ.
    for digits in range(2, 9):
        promised = as_probability(promise.promised, digits=digits)
        real = as_probability(promise.actual, digits=digits)
        if promised != real:
            break
    actual = f"{promise.outcome} in {real} of runs at {as_percent(promise.rate)}"
    return f"{actual}, where {promise.promise} {promised} is promised"


def _explain_bounds(plan: sizing.SequentialPlan) -> Iterator[str]:
    note = (
        "No test that always decides with these errors, sequential or not, averages fewer."
        if plan.bounds[0].kind == "exact"
        else "The information bound: no test that always decides quite reaches it."
    )
    if plan.shortfall is not None:
        note += " A design that may end INCONCLUSIVE can need fewer."
    yield note
    design = plan.of(Method.OPTIMAL).design
    # Where no bound was found there is nothing to say about the distance from it.
    if isinstance(design.certificate, float):
        # Rounding may leave the bound a little above the design itself.
        excess = as_probability(max(0.0, design.certificate - 1)).replace("<", "less than ")
        counted = " and 100 trials for each open end" if plan.shortfall is not None else ""
        rates = [rate for rate, _ in design.mix]
        made = f"the rates it is made for ({' and '.join(map(as_percent, rates))})"
        over = "the two rates" if rates == [design.p0, design.p1] else made
        yield (
            f"The optimal design's mean trials over {over}{counted} lie {excess} "
            f"above the least that any test with at most {design.cap} trials can have."
        )


def _make_row(plan: sizing.SequentialPlan, method: sizing.MethodPlan, *cells: str) -> Row:
    usual: Tone = "chosen" if method.method is plan.recommended else "plain"
    tone: Tone = "broken" if method.broken else usual
    return Row(cells=(NAMES[method.method] + " !" * bool(method.broken), *cells), tone=tone)


def _write_trials(value: Spread) -> str:
    return f"{as_mean_trials(value.mean)} ({value.p95:.0f})"


def _write_money(value: Spread | None) -> str:
    return "" if value is None else f"{as_money(value.mean)} ({as_money(value.p95)})"


def _write_time(value: Spread | None) -> str:
    return "" if value is None else as_duration_spread(value.mean, value.p95)


# --- Charts ---------------------------------------------------------------------------------------


def _chart_verdicts(plan: sizing.SequentialPlan) -> charts.Chart:
    best = plan.recommendation
    low, high = plan.question.alternative_rate, plan.question.rate
    return charts.chart_shares(
        f"Verdicts of the {NAMES[best.method]} design, by true rate",
        f"Shares of runs that end PASS, INCONCLUSIVE and FAIL, stacked. At {as_percent(high)} "
        f"{as_probability(best.false_fail)} FAIL; at {as_percent(low)} "
        f"{as_probability(best.false_pass)} PASS.",
        "true rate",
        "share of runs",
        rates=[point.rate for point in best.curve],
        bands=(
            ("PASS", "pass", [point.passes for point in best.curve]),
            ("INCONCLUSIVE", "open", [point.inconclusive for point in best.curve]),
            ("FAIL", "fail", [point.fails for point in best.curve]),
        ),
        guides=guide_rates(low, high),
    )


def _chart_trials(plan: sizing.SequentialPlan) -> charts.Chart:
    lines = [
        charts.Line(
            name=NAMES[method.method],
            ink=_INKS[method.method],
            points=tuple((point.rate, point.mean_trials or 0.0) for point in method.curve),
        )
        for method in plan.methods
        if method.method in _INKS
    ]
    low, high = plan.recommendation.curve[0].rate, plan.recommendation.curve[-1].rate
    # Where runs may end open, designs may lie below what deciding takes.
    # The bound is about tests that always decide.
    bounds = plan.bounds if plan.shortfall is None else ()
    one = " of one criterion" if plan.question.criteria > 1 else ""
    return charts.chart_lines(
        f"Mean trials{one}, by true rate",
        "How many trials each method takes on average.",
        "true rate",
        "mean trials",
        lines,
        marks=[
            charts.Mark(x=bound.rate, y=bound.trials, name="any test, at least", ink="bound")
            for bound in bounds
            if low <= bound.rate <= high
        ],
        guides=guide_rates(plan.question.alternative_rate, plan.question.rate),
    )
