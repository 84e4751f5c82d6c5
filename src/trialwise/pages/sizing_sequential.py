"""The sequential plan in words: the recommendation, the rule in counts, the tables, the curves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from trialwise.documents.blocks import Document, Row, Section, Table, Tone
from trialwise.documents.charts import Chart, Ink, Line, Mark, chart_lines, chart_shares
from trialwise.documents.numbers import (
    as_duration,
    as_duration_spread,
    as_level,
    as_mean_trials,
    as_money,
    as_percent,
    as_probability,
)
from trialwise.pages.run_rules import build_choices
from trialwise.pages.sizing import guide_rates, make_page, make_prose
from trialwise.procedures import sequential_designs
from trialwise.procedures.sizing.rate_choices import expect_half
from trialwise.procedures.sizing.sequential_sizing import (
    LONGEST_SPARING,
    BrokenPromise,
    Correction,
    Expectation,
    MethodPlan,
    SequentialPlan,
    SequentialQuestion,
)
from trialwise.procedures.sizing.sizing_base import Spread
from trialwise.stats.sequential.design import Method, SequentialDesign

_ASK_EXPECTED = "Say with --expect which rate you expect. "
_ABOUT_CHOICES = (
    f"Trials on average and at most. {_ASK_EXPECTED}The methods below are those of a design with "
    "a margin; `at_least` alone has none."
)
_MORE = "-v adds the rule in counts, the other methods and charts."
#: What each method is called.
NAMES = {
    Method.OPTIMAL: "optimal",
    Method.CALIBRATED: "calibrated",
    Method.WALD: "Wald, cut",
    Method.FIXED: "fixed",
}
#: The calibrated lines would lie so close to the optimal ones that a chart shows one of the two.
_INKS: dict[Method, Ink] = {Method.OPTIMAL: "one", Method.WALD: "two", Method.FIXED: "three"}
_SHARED = (
    "The criteria share their trials, so a run costs what its slowest criterion needs, not the "
    "sum. The table is for independent criteria at the same rate. For dependent ones, the mean is "
    "at most what the last row says."
)


def build_sequential_page(plan: SequentialPlan) -> Document:
    """Build the plan as a page of words, tables and charts."""
    question = plan.question
    expected = question.expected_rate or expect_half(question.required_rate)
    return make_page(
        f"is the rate at least {as_percent(question.required_rate)}?",
        _list_facts(plan),
        _recommend(plan),
        (
            build_choices(plan.choices, expected, advice=_ABOUT_CHOICES),
            _write_rule(plan.recommendation.design),
            *_list_tables(plan),
            _write_limits(plan),
            _chart_verdicts(plan),
            _chart_trials(plan),
        ),
    )


def build_short_sequential_page(plan: SequentialPlan) -> Document:
    """Build the ways to ask side by side; the design is shown only if it was asked for."""
    question = plan.question
    about = (
        f"At a lower rate than PASS shows, PASS happens in at most {as_level(question.alpha)} of "
        f"runs. Trials on average and at most. "
        f"{_ASK_EXPECTED if question.expected_rate is None else ''}{_MORE}"
    )
    expected = question.expected_rate or expect_half(question.required_rate)
    # Somebody who set a margin or a limit asks about that design, and not which way to ask.
    is_usual = _is_usual(question)
    return make_page(
        f"is the rate at least {as_percent(question.required_rate)}?",
        () if is_usual else _list_facts(plan),
        "" if is_usual else _recommend(plan),
        (build_choices(plan.choices, expected, advice=about),),
    )


def _is_usual(question: SequentialQuestion) -> bool:
    """Return whether the user left the design open, so that choices are worth showing."""
    required = question.required_rate
    return question == SequentialQuestion(
        required_rate=required,
        alternative_rate=SequentialQuestion.usual_alternative(required),
        expected_rate=question.expected_rate,
        confidence=question.confidence,
        prices=replace(question.prices, trial_s=None),
    )


# --- The recommendation ---------------------------------------------------------------------------


def _list_facts(plan: SequentialPlan) -> Iterator[tuple[str, str]]:
    question, prices = plan.question, plan.question.prices
    good, bad = as_percent(question.required_rate), as_percent(question.alternative_rate)
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
    costs = [as_money(prices.trial_usd)] if prices.trial_usd is not None else []
    costs += [as_duration(prices.trial_s)] if prices.trial_s is not None else []
    if costs:
        yield "a trial", " and ".join(costs)


def _word_criteria(question: SequentialQuestion) -> str:
    each, all_of_them = as_level(question.alpha), as_level(question.family_alpha)
    start = f"{question.criteria} on the same trials, each at {each}"
    if question.correction is Correction.BONFERRONI:
        return (
            f"{start} (bonferroni): a run in which all are good FAILs at most {all_of_them} of the "
            "time"
        )
    most = as_level(min(1.0, question.criteria * question.alpha))
    return (
        f"{start}: a run in which all are good may FAIL up to {most} of the time (--correction "
        f"bonferroni keeps {all_of_them})"
    )


def _recommend(plan: SequentialPlan) -> str:
    best, question, short = plan.recommendation, plan.question, plan.shortfall
    low, _, high, _ = best.expectations
    good, bad = as_percent(question.required_rate), as_percent(question.alternative_rate)
    several = question.criteria > 1
    run = f" for a run of {question.criteria} criteria" if several else ""
    use = (
        f"the {NAMES[best.method]} design: {as_mean_trials(high.run_trials.mean)} trials on "
        f"average{run} at {good} and {as_mean_trials(low.run_trials.mean)} at {bad}"
        f"{_write_mean_costs(high, low)}"
    )
    if short is not None:
        rates = question.required_rate, question.alternative_rate
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


def share_open_runs(plan: SequentialPlan, rate: float) -> float:
    """Return the share of runs that end INCONCLUSIVE: nothing FAILs and something is open."""
    found = plan.recommendation.design.operating_characteristic(rate)
    count = plan.question.criteria
    return (1 - found.fails) ** count - found.passes**count


def _as_share(value: float) -> str:
    return as_probability(value, digits=1)


def _write_mean_costs(high: Expectation, low: Expectation) -> str:
    """Return what the two means cost, in brackets, where that is known."""
    parts = []
    if high.cost_usd and low.cost_usd:
        parts.append(f"{as_money(high.cost_usd.mean)} and {as_money(low.cost_usd.mean)}")
    if high.duration_s and low.duration_s:
        parts.append(f"{as_duration(high.duration_s.mean)} and {as_duration(low.duration_s.mean)}")
    return f" ({'; '.join(parts)})" if parts else ""


def _write_rule(design: SequentialDesign) -> Section:
    """Return the rule in counts; a browser shows the whole of a long one."""
    passing = list(sequential_designs.list_passing_steps(design))
    failing = list(sequential_designs.list_failing_steps(design))
    whole = (
        f"PASS: {sequential_designs.join_steps(passing, 'after')}.",
        f"FAIL: {sequential_designs.join_steps(failing, 'within')}.",
    )
    return make_prose(
        f"The rule ({NAMES[design.method]})",
        sequential_designs.describe_rule(design),
        details=whole if max(len(passing), len(failing)) > sequential_designs.MOST_STEPS else (),
        details_heading="The whole rule",
    )


def _write_limits(plan: SequentialPlan) -> Section:
    question, short = plan.question, plan.shortfall
    good, bad = as_percent(question.required_rate), as_percent(question.alternative_rate)
    paragraphs = []
    if short is not None:
        paragraphs.append(
            f"{plan.max_trials} trials cannot always tell {good} from {bad}: whatever the rule, at "
            f"least {_as_share(short.inconclusive_p0)} of runs at {good} and "
            f"{_as_share(short.inconclusive_p1)} at {bad} end INCONCLUSIVE. The smallest number of "
            f"trials that can decide every run is {short.smallest_cap}."
        )
    design = plan.of(Method.OPTIMAL).design
    # Where no bound was found there is nothing to say about the distance from it.
    if isinstance(design.certificate, float):
        # Rounding may leave the bound a little above the design itself.
        excess = as_probability(max(0.0, design.certificate - 1)).replace("<", "less than ")
        counted = " and 100 trials for each open end" if short is not None else ""
        paragraphs.append(
            f"The optimal design's mean trials over {_word_rates(design)}{counted} lie {excess} "
            f"above the least that any test with at most {design.cap} trials can have."
        )
    return make_prose("What no design can beat", tuple(paragraphs))


def _word_rates(design: SequentialDesign) -> str:
    rates = [rate for rate, _ in design.mix]
    if rates == [design.p0, design.p1]:
        return "the two rates"
    return f"the rates it is made for ({' and '.join(map(as_percent, rates))})"


# --- The methods side by side ---------------------------------------------------------------------


def _list_tables(plan: SequentialPlan) -> Iterator[Table]:
    """List every table of the methods, in the order in which they are read."""
    question, prices, most = plan.question, plan.question.prices, plan.max_trials
    several, at_once = question.criteria > 1, question.concurrency
    whole = " of a run" if several else ""
    yield _tabulate_errors(plan)
    who = "any test, at least" if plan.shortfall is None else "to decide, at least"
    yield _tabulate_rates(
        plan,
        f"Trials{' of one criterion' if several else ''}, mean (95th percentile), by true rate",
        lambda at: _write_trials(at.trials),
        _explain_bounds(plan),
        limit=(who, *(as_mean_trials(bound.trials) for bound in plan.bounds)),
    )
    if several:
        # Criteria on the same replies are rarely independent: this holds whatever they have in
        # common.
        bounds = (at.run_mean_at_most for at in plan.recommendation.expectations)
        yield _tabulate_rates(
            plan,
            f"Trials of a run of {question.criteria} criteria, mean (95th percentile)",
            lambda at: _write_trials(at.run_trials),
            _SHARED,
            limit=(f"at most, {NAMES[plan.recommended]}", *map(as_mean_trials, bounds)),
        )
    if at_once > 1:
        yield _tabulate_rates(
            plan,
            f"Rounds of up to {at_once} trials, and trials started, mean",
            lambda at: f"{as_mean_trials(at.rounds.mean)} / {as_mean_trials(at.started.mean)}",
            # Only short designs of one criterion are walked with a policy state by state.
            "Every round starts as many trials as may run at once."
            if several or most > LONGEST_SPARING
            else "A round starts only trials that will more likely than not be needed.",
        )
    if prices.trial_usd is not None:
        trial, all_of_them = as_money(prices.trial_usd), as_money(most * prices.trial_usd)
        yield _tabulate_rates(
            plan,
            f"Money{whole}, mean (95th percentile), by true rate",
            lambda at: _write_money(at.cost_usd),
            f"At {trial} a trial, and at most {all_of_them} for {most} trials.",
        )
    if prices.trial_s is not None:
        side = f", {at_once} at once" if at_once > 1 else ""
        yield _tabulate_rates(
            plan,
            f"Time{whole}, mean (95th percentile), by true rate",
            lambda at: _write_time(at.duration_s),
            f"At {as_duration(prices.trial_s)} a trial{side}.",
        )


def _tabulate_errors(plan: SequentialPlan) -> Table:
    question = plan.question
    good, bad = as_percent(question.required_rate), as_percent(question.alternative_rate)
    promised = ("promised", f"≤ {as_level(question.alpha)}", f"≤ {as_level(question.beta)}")
    # Promises first: what a method really does is read against them.
    rows = [Row(cells=(*promised, "", "", ""), tone="limit")]
    for method in plan.methods:
        errors = map(as_probability, (method.false_fail, method.false_pass))
        left = map(_as_share, (method.inconclusive_required, method.inconclusive_alternative))
        rows.append(_make_row(plan, method, *errors, *left, str(method.design.cap)))
    return Table(
        heading="What each method really does",
        columns=(
            "method",
            f"P(FAIL)\nat {good}",
            f"P(PASS)\nat {bad}",
            f"INCONCLUSIVE\nat {good}",
            f"INCONCLUSIVE\nat {bad}",
            "most\ntrials",
        ),
        rows=tuple(rows),
        notes=(
            *(_explain_broken(method) for method in plan.methods if method.broken),
            *(f"{NAMES[left.method]} is left out: {left.reason}." for left in plan.omissions),
        ),
    )


def _explain_broken(method: MethodPlan) -> str:
    who = NAMES[method.method]
    if method.method is Method.WALD:
        who = f"Wald's test, cut at {method.design.cap} trials,"
    broken = "; ".join(_word_broken(promise) for promise in method.broken)
    return f"! {who} breaks its promise: {broken}."


def _word_broken(promise: BrokenPromise) -> str:
    # As many digits as it takes to see that the two differ.
    for digits in range(2, 9):
        promised = as_probability(promise.promised, digits=digits)
        real = as_probability(promise.actual, digits=digits)
        if promised != real:
            break
    actual = f"{promise.outcome} in {real} of runs at {as_percent(promise.rate)}"
    return f"{actual}, where {promise.promise} {promised} is promised"


def _explain_bounds(plan: SequentialPlan) -> str:
    note = (
        "No test that always decides with these errors, sequential or not, averages fewer."
        if plan.bounds[0].kind == "exact"
        else "The information bound: no test that always decides quite reaches it."
    )
    if plan.shortfall is not None:
        note += " A design that may end INCONCLUSIVE can need fewer."
    return note


def _tabulate_rates(
    plan: SequentialPlan,
    heading: str,
    write: Callable[[Expectation], str],
    note: str,
    *,
    limit: tuple[str, ...] = (),
) -> Table:
    """Tabulate the methods against the rates, with the least or the most below them."""
    rows = [_make_row(plan, method, *map(write, method.expectations)) for method in plan.methods]
    rows += [Row(cells=limit, tone="limit")] if limit else []
    columns = ("method", *(f"at {as_percent(rate)}" for rate in plan.rates))
    return Table(heading=heading, columns=columns, rows=tuple(rows), notes=(note,))


def _make_row(plan: SequentialPlan, method: MethodPlan, *cells: str) -> Row:
    tone: Tone = "chosen" if method.method is plan.recommended else "plain"
    if method.broken:
        tone = "broken"
    return Row(cells=(NAMES[method.method] + " !" * bool(method.broken), *cells), tone=tone)


def _write_trials(value: Spread) -> str:
    return f"{as_mean_trials(value.mean)} ({value.p95:.0f})"


def _write_money(value: Spread | None) -> str:
    return "" if value is None else f"{as_money(value.mean)} ({as_money(value.p95)})"


def _write_time(value: Spread | None) -> str:
    return "" if value is None else as_duration_spread(value.mean, value.p95)


# --- Charts ---------------------------------------------------------------------------------------


def _chart_verdicts(plan: SequentialPlan) -> Chart:
    best = plan.recommendation
    low, high = as_percent(plan.question.alternative_rate), as_percent(plan.question.required_rate)
    return chart_shares(
        f"Verdicts of the {NAMES[best.method]} design, by true rate",
        f"Shares of runs that end PASS, INCONCLUSIVE and FAIL, stacked. At {high} "
        f"{as_probability(best.false_fail)} FAIL; at {low} {as_probability(best.false_pass)} PASS.",
        "true rate",
        "share of runs",
        rates=[point.rate for point in best.curve],
        bands=(
            ("PASS", "pass", [point.passes for point in best.curve]),
            ("INCONCLUSIVE", "open", [point.inconclusive for point in best.curve]),
            ("FAIL", "fail", [point.fails for point in best.curve]),
        ),
        guides=guide_rates(plan.question.alternative_rate, plan.question.required_rate),
    )


def _chart_trials(plan: SequentialPlan) -> Chart:
    lines = [
        Line(
            name=NAMES[method.method],
            ink=_INKS[method.method],
            points=tuple((point.rate, point.mean_trials or 0.0) for point in method.curve),
        )
        for method in plan.methods
        if method.method in _INKS
    ]
    low, high = plan.recommendation.curve[0].rate, plan.recommendation.curve[-1].rate
    # Where runs may end open, designs may lie below what deciding takes.
    bounds = plan.bounds if plan.shortfall is None else ()
    one = " of one criterion" if plan.question.criteria > 1 else ""
    return chart_lines(
        f"Mean trials{one}, by true rate",
        "How many trials each method takes on average.",
        "true rate",
        "mean trials",
        lines,
        marks=[
            Mark(x=bound.rate, y=bound.trials, name="any test, at least", ink="bound")
            for bound in bounds
            if low <= bound.rate <= high
        ],
        guides=guide_rates(plan.question.alternative_rate, plan.question.required_rate),
    )
