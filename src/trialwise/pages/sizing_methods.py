"""The methods of a sequential plan side by side: their errors, their trials and their costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trialwise.documents.blocks import Row, Table, Tone
from trialwise.documents.numbers import (
    as_duration,
    as_duration_spread,
    as_level,
    as_mean_trials,
    as_money,
    as_percent,
    as_probability,
)
from trialwise.procedures.sizing import sequential_sizing
from trialwise.procedures.sizing.sizing_base import Spread
from trialwise.stats.sequential.design import Method

#: What each method is called.
NAMES = {
    Method.OPTIMAL: "optimal",
    Method.CALIBRATED: "calibrated",
    Method.WALD: "Wald, cut",
    Method.FIXED: "fixed",
}


_SHARED = (
    "The criteria share their trials, so a run costs what its slowest criterion needs, not the "
    "sum. The table is for independent criteria at the same rate. For dependent ones, the mean is "
    "at most what the last row says."
)


def list_method_tables(plan: sequential_sizing.SequentialPlan) -> Iterator[Table]:
    """List every table of the plan, in the order in which they are read."""
    yield _errors(plan)
    yield _trials(plan)
    yield from _run(plan)
    yield from _costs(plan)


def _errors(plan: sequential_sizing.SequentialPlan) -> Table:
    question = plan.question
    good, bad = as_percent(question.required_rate), as_percent(question.alternative_rate)
    promised = ("promised", f"≤ {as_level(question.alpha)}", f"≤ {as_level(question.beta)}")
    rows = [Row(cells=(*promised, "", "", ""), tone="limit")]
    rows += [
        Row(
            cells=(
                _name(method),
                as_probability(method.false_fail),
                as_probability(method.false_pass),
                as_probability(method.inconclusive_required, digits=1),
                as_probability(method.inconclusive_alternative, digits=1),
                str(method.design.cap),
            ),
            tone=_tone(plan, method),
        )
        for method in plan.methods
    ]
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
            *(_broken_note(method) for method in plan.methods if method.broken),
            *(f"{NAMES[left.method]} is left out: {left.reason}." for left in plan.omissions),
        ),
    )


def _broken_note(method: sequential_sizing.MethodPlan) -> str:
    who = NAMES[method.method]
    if method.method is Method.WALD:
        who = f"Wald's test, cut at {method.design.cap} trials,"
    broken = "; ".join(_word_broken(promise) for promise in method.broken)
    return f"! {who} breaks its promise: {broken}."


def _word_broken(promise: sequential_sizing.BrokenPromise) -> str:
    # As many digits as it takes to see that the two differ.
    for digits in range(2, 9):
        promised, real = (
            as_probability(p, digits=digits) for p in (promise.promised, promise.actual)
        )
        if promised != real:
            break
    actual = f"{promise.outcome} in {real} of runs at {as_percent(promise.rate)}"
    return f"{actual}, where {promise.promise} {promised} is promised"


def _trials(plan: sequential_sizing.SequentialPlan) -> Table:
    who = "any test, at least" if plan.shortfall is None else "to decide, at least"
    exact = plan.bounds[0].kind == "exact"
    note = (
        "No test that always decides with these errors, sequential or not, averages fewer."
        if exact
        else "The information bound: no test that always decides quite reaches it."
    )
    if plan.shortfall is not None:
        note += " A design that may end INCONCLUSIVE can need fewer."
    one = " of one criterion" if plan.question.criteria > 1 else ""
    return _tabulate(
        plan,
        f"Trials{one}, mean (95th percentile), by true rate",
        lambda at: _trial_spread(at.trials),
        note,
        limit=(who, *(as_mean_trials(bound.trials) for bound in plan.bounds)),
    )


def _run(plan: sequential_sizing.SequentialPlan) -> Iterator[Table]:
    question = plan.question
    if question.criteria > 1:
        most = (as_mean_trials(at.run_mean_at_most) for at in plan.recommendation.expectations)
        yield _tabulate(
            plan,
            f"Trials of a run of {question.criteria} criteria, mean (95th percentile)",
            lambda at: _trial_spread(at.run_trials),
            _SHARED,
            limit=(f"at most, {NAMES[plan.recommended]}", *most),
        )
    if question.concurrency > 1:
        yield _tabulate(
            plan,
            f"Rounds of up to {question.concurrency} trials, and trials started, mean",
            lambda at: f"{as_mean_trials(at.rounds.mean)} / {as_mean_trials(at.started.mean)}",
            _rounds_note(plan),
        )


def _rounds_note(plan: sequential_sizing.SequentialPlan) -> str:
    if plan.question.criteria > 1 or plan.max_trials > sequential_sizing.LONGEST_SPARING:
        return "Every round starts as many trials as may run at once."
    return "A round starts only trials that will more likely than not be needed."


def _costs(plan: sequential_sizing.SequentialPlan) -> Iterator[Table]:
    prices, question = plan.question.prices, plan.question
    whole = " of a run" if question.criteria > 1 else ""
    if prices.trial_usd is not None:
        yield _tabulate(
            plan,
            f"Money{whole}, mean (95th percentile), by true rate",
            lambda at: _money_spread(at.cost_usd),
            f"At {as_money(prices.trial_usd)} a trial, and at most {_most_usd(plan)}.",
        )
    if prices.trial_s is not None:
        side = f", {question.concurrency} at once" if question.concurrency > 1 else ""
        yield _tabulate(
            plan,
            f"Time{whole}, mean (95th percentile), by true rate",
            lambda at: _time_spread(at.duration_s),
            f"At {as_duration(prices.trial_s)} a trial{side}.",
        )


def _most_usd(plan: sequential_sizing.SequentialPlan) -> str:
    most = plan.max_trials * (plan.question.prices.trial_usd or 0.0)
    return f"{as_money(most)} for {plan.max_trials} trials"


def _tabulate(
    plan: sequential_sizing.SequentialPlan,
    heading: str,
    write: Callable[[sequential_sizing.Expectation], str],
    note: str,
    *,
    limit: tuple[str, ...] = (),
) -> Table:
    """Tabulate the methods against the rates, with the least or the most below them."""
    rows = [
        Row(cells=(_name(method), *map(write, method.expectations)), tone=_tone(plan, method))
        for method in plan.methods
    ]
    rows += [Row(cells=limit, tone="limit")] if limit else []
    columns = ("method", *(f"at {as_percent(rate)}" for rate in plan.rates))
    return Table(heading=heading, columns=columns, rows=tuple(rows), notes=(note,))


def _trial_spread(value: Spread) -> str:
    return f"{as_mean_trials(value.mean)} ({value.p95:.0f})"


def _money_spread(value: Spread | None) -> str:
    return "" if value is None else f"{as_money(value.mean)} ({as_money(value.p95)})"


def _time_spread(value: Spread | None) -> str:
    return "" if value is None else as_duration_spread(value.mean, value.p95)


def _name(method: sequential_sizing.MethodPlan) -> str:
    return NAMES[method.method] + (" !" if method.broken else "")


def _tone(plan: sequential_sizing.SequentialPlan, method: sequential_sizing.MethodPlan) -> Tone:
    if method.broken:
        return "broken"
    return "chosen" if method.method is plan.recommended else "plain"
