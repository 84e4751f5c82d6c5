"""The sequential plan in words: the recommendation, the rule in counts, the tables, the curves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from trialwise.documents.blocks import Block, Document, Section
from trialwise.documents.charts import Chart, Ink, Line, Mark, chart_lines, chart_shares
from trialwise.documents.numbers import (
    as_duration,
    as_level,
    as_mean_trials,
    as_money,
    as_percent,
    as_probability,
)
from trialwise.pages.rate_choices import build_choices
from trialwise.pages.sizing_methods import NAMES, list_method_tables
from trialwise.pages.sizing_words import guide_rates, make_prose
from trialwise.procedures import sequential_designs
from trialwise.procedures.sizing import sequential_sizing
from trialwise.procedures.sizing.rate_choices import expect_half
from trialwise.stats.sequential.design import Method, SequentialDesign

_ASK_EXPECTED = "Say with --expect which rate you expect. "
_ABOUT_CHOICES = (
    f"Trials on average and at most. {_ASK_EXPECTED}The methods below are those of a design with "
    "a margin; `at_least` alone has none."
)

_MORE = "-v adds the rule in counts, the other methods and charts."

_INKS: dict[Method, Ink] = {Method.OPTIMAL: "one", Method.WALD: "two", Method.FIXED: "three"}


def build_sequential_page(plan: sequential_sizing.SequentialPlan) -> Document:
    """Build the plan as a page of words, tables and charts."""
    question = plan.question
    return Document(
        kind="Plan",
        title=f"Plan: is the rate at least {as_percent(question.required_rate)}?",
        facts=tuple(_facts(plan)),
        lead=_recommendation(plan),
        blocks=tuple(_blocks(plan)),
    )


def build_short_sequential_page(plan: sequential_sizing.SequentialPlan) -> Document:
    """Build the ways to ask side by side; the design is shown only if it was asked for."""
    question = plan.question
    level = as_level(question.alpha)
    about = (
        f"At a lower rate than PASS shows, PASS happens in at most {level} of runs. Trials on "
        f"average and at most. {_ASK_EXPECTED if question.expected_rate is None else ''}{_MORE}"
    )
    expected = question.expected_rate or expect_half(question.required_rate)
    is_usual = _is_usual(question)
    return Document(
        kind="Plan",
        title=f"Plan: is the rate at least {as_percent(question.required_rate)}?",
        facts=() if is_usual else tuple(_facts(plan)),
        lead="" if is_usual else _recommendation(plan),
        blocks=(build_choices(plan.choices, expected, advice=about),),
    )


def _is_usual(question: sequential_sizing.SequentialQuestion) -> bool:
    """Return whether the user left the design open, so that choices are worth showing."""
    usual = sequential_sizing.SequentialQuestion(
        required_rate=question.required_rate,
        alternative_rate=sequential_sizing.SequentialQuestion.usual_alternative(
            question.required_rate
        ),
        expected_rate=question.expected_rate,
        confidence=question.confidence,
        prices=replace(question.prices, trial_s=None),
    )
    return question == usual


def _facts(plan: sequential_sizing.SequentialPlan) -> Iterator[tuple[str, str]]:
    question = plan.question
    good, bad = as_percent(question.required_rate), as_percent(question.alternative_rate)
    alpha, beta = as_level(question.alpha), as_level(question.beta)
    yield "good", f"a rate of {good} or more: FAIL in at most {alpha} of runs"
    yield "bad", f"a rate of {bad} or less: PASS in at most {beta} of runs"
    usual = f", twice the {plan.fixed_trials} of a fixed sample; set it with --max-trials"
    twice = question.max_trials is None and plan.max_trials >= 2 * plan.fixed_trials
    yield "trials", f"at most {plan.max_trials}" + (usual if twice else "")
    if question.batch > 1:
        yield "looks", f"every {question.batch} trials"
    if question.criteria > 1:
        yield "criteria", _criteria(question)
        shared = plan.of(Method.OPTIMAL).design.cap
        if shared < plan.max_trials:
            yield "shared", f"the optimal design is made for the longest of them: at most {shared}"
    if question.concurrency > 1:
        yield "in flight", f"up to {question.concurrency} trials at once"
    prices = question.prices
    costs = [as_money(prices.trial_usd)] if prices.trial_usd is not None else []
    costs += [as_duration(prices.trial_s)] if prices.trial_s is not None else []
    if costs:
        yield "a trial", " and ".join(costs)


def _criteria(question: sequential_sizing.SequentialQuestion) -> str:
    each, all_of_them = as_level(question.alpha), as_level(question.family_alpha)
    count = question.criteria
    if question.correction is sequential_sizing.Correction.BONFERRONI:
        return (
            f"{count} on the same trials, each at {each} (bonferroni): a run in which all are good "
            f"FAILs at most {all_of_them} of the time"
        )
    most = as_level(min(1.0, count * question.alpha))
    return (
        f"{count} on the same trials, each at {each}: a run in which all are good may FAIL up to "
        f"{most} of the time (--correction bonferroni keeps {all_of_them})"
    )


def _recommendation(plan: sequential_sizing.SequentialPlan) -> str:
    best, question = plan.recommendation, plan.question
    low, _, high, _ = best.expectations
    good, bad = as_percent(question.required_rate), as_percent(question.alternative_rate)
    run = f" for a run of {question.criteria} criteria" if question.criteria > 1 else ""
    trials = f"{as_mean_trials(high.run_trials.mean)} trials on average{run} at {good} and "
    trials += f"{as_mean_trials(low.run_trials.mean)} at {bad}"
    costs = _mean_costs(high, low)
    name = NAMES[best.method]
    if plan.shortfall is not None:
        short = plan.shortfall
        shares = (
            share_open_runs(plan, question.required_rate),
            share_open_runs(plan, question.alternative_rate),
        )
        few = question.criteria == 1
        alone = "" if few else ", if independent"
        rules = "no rule leaves fewer than" if few else "of one criterion no rule leaves fewer than"
        return (
            f"If {plan.max_trials} trials must do, use the {name} design: {trials}{costs}, and "
            f"{as_probability(shares[0], digits=1)} of runs at {good} and "
            f"{as_probability(shares[1], digits=1)} at {bad} end INCONCLUSIVE{alone} "
            f"({rules} {as_probability(short.inconclusive_p0, digits=1)} and "
            f"{as_probability(short.inconclusive_p1, digits=1)}); with --max-trials "
            f"{short.smallest_cap} every run can be decided."
        )
    floor = ""
    if question.criteria == 1:
        least = {bound.rate: bound.trials for bound in plan.bounds}
        lowest = [as_mean_trials(least[rate]) for rate in (high.rate, low.rate)]
        floor = f" and no test can average fewer than {lowest[0]} and {lowest[1]}"
    return (
        f"Use the {name} design: {trials}{costs}, every run decided within {best.design.cap}, "
        f"where a fixed sample takes up to {plan.fixed_trials}{floor}."
    )


def share_open_runs(plan: sequential_sizing.SequentialPlan, rate: float) -> float:
    """Return the share of runs that end INCONCLUSIVE: nothing FAILs and something is open."""
    found = plan.recommendation.design.operating_characteristic(rate)
    count = plan.question.criteria
    return (1 - found.fails) ** count - found.passes**count


def _mean_costs(high: sequential_sizing.Expectation, low: sequential_sizing.Expectation) -> str:
    """Return what the two means cost, in brackets, where that is known."""
    parts = []
    if high.cost_usd and low.cost_usd:
        parts.append(f"{as_money(high.cost_usd.mean)} and {as_money(low.cost_usd.mean)}")
    if high.duration_s and low.duration_s:
        parts.append(f"{as_duration(high.duration_s.mean)} and {as_duration(low.duration_s.mean)}")
    return f" ({'; '.join(parts)})" if parts else ""


def _blocks(plan: sequential_sizing.SequentialPlan) -> Iterator[Block]:
    best, question = plan.recommendation.design, plan.question
    expected = question.expected_rate or expect_half(question.required_rate)
    yield build_choices(plan.choices, expected, advice=_ABOUT_CHOICES)
    yield _rule(best)
    yield from list_method_tables(plan)
    yield _limits(plan)
    yield _verdict_chart(plan)
    yield _trials_chart(plan)


def _rule(design: SequentialDesign) -> Section:
    """Return the rule in counts; a browser shows the whole of a long one."""
    passing, failing = (
        list(sequential_designs.list_passing_steps(design)),
        list(sequential_designs.list_failing_steps(design)),
    )
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


def _limits(plan: sequential_sizing.SequentialPlan) -> Section:
    question = plan.question
    paragraphs = []
    if plan.shortfall is not None:
        short = plan.shortfall
        paragraphs.append(
            f"{plan.max_trials} trials cannot always tell {as_percent(question.required_rate)} "
            f"from {as_percent(question.alternative_rate)}: whatever the rule, at least "
            f"{as_probability(short.inconclusive_p0, digits=1)} of runs at "
            f"{as_percent(question.required_rate)} and "
            f"{as_probability(short.inconclusive_p1, digits=1)} at "
            f"{as_percent(question.alternative_rate)} end INCONCLUSIVE. The smallest number of "
            f"trials that can decide every run is {short.smallest_cap}."
        )
    design = plan.of(Method.OPTIMAL).design
    certificate = design.certificate
    if isinstance(certificate, float):
        excess = as_probability(max(0.0, certificate - 1)).replace("<", "less than ")
        counted = " and 100 trials for each open end" if plan.shortfall is not None else ""
        paragraphs.append(
            f"The optimal design's mean trials over {_averaged_rates(design)}{counted} lie "
            f"{excess} above the least that any test with at most {design.cap} trials can have."
        )
    return make_prose("What no design can beat", tuple(paragraphs))


def _averaged_rates(design: SequentialDesign) -> str:
    rates = [rate for rate, _ in design.mix]
    if rates == [design.p0, design.p1]:
        return "the two rates"
    return f"the rates it is made for ({' and '.join(map(as_percent, rates))})"


def _verdict_chart(plan: sequential_sizing.SequentialPlan) -> Chart:
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


def _trials_chart(plan: sequential_sizing.SequentialPlan) -> Chart:
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
