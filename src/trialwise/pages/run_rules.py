"""What a run will do, before its first trial: rules in counts, chances, the most it can cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from textwrap import wrap
from typing import TYPE_CHECKING

from trialwise.documents import numbers
from trialwise.documents.blocks import Table, build_table
from trialwise.model.plan import LatencyPlan, Plan
from trialwise.pages.suite_totals import bound_planned_errors, list_error_sentences
from trialwise.procedures import chances
from trialwise.procedures.characteristic import Chance

if TYPE_CHECKING:
    from trialwise.procedures.sizing.sizing_base import RateChoice

_WIDTH = 80
_UNKNOWN_COST = "What a trial costs is unknown."
#: Shares of runs that differ by less are one number.
_SAME = 5e-4
#: Rates that a reader cannot place by their number alone, and what is said of them.
_TELLING = {
    **{one: one for one in ("as required", "nothing changed")},
    "the margin below": "lower by the margin",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Expense:
    """What one trial is expected to cost and take, and where that is known from."""

    trial_usd: float | None = None
    trial_s: float | None = None
    """Elapsed seconds per trial, with as many trials at once as in the earlier run."""
    known_from: str = ""


def render_rules(plan: Plan, *, expense: Expense | None = None, width: int = _WIDTH) -> str:
    """Return the rules of a plan in counts, with their exact chances, as text.

    Args:
        plan: What will be run.
        expense: The expense of one trial, where it is known.
        width: Columns.
    """
    lines = [render_size(plan)]
    for depth, text in _list_rules(plan):
        lines += _wrap(text, "  " * depth, width)
    return "\n".join([*lines, *_wrap(_word_cost(plan, expense), "  ", width)]) + "\n"


def _list_rules(plan: Plan) -> Iterator[tuple[int, str]]:
    """List the sentences about a plan, each with how deep it stands."""
    # Whom it will speak of comes first: no number of trials widens a claim about fixed inputs.
    inputs = sum(len(one.input_ids) for one in plan.experiments)
    yield 1, f"This is {plan.claim.about(inputs)}."
    for one in chances.forecast(plan):
        yield from _list_criterion(one)
    for found in chances.find_limiting(plan):
        yield 1, _word_limiting(found, several=len(plan.experiments) > 1)
    for limit in plan.latency:
        yield 1, _word_latency(limit, plan)
    for gate in plan.gates:
        if gate.expect:
            yield 1, f"{gate.name}, without an error rate: {'; '.join(map(str, gate.expect))}."


def render_size(plan: Plan, *, expense: Expense | None = None) -> str:
    """Render the size of a plan and what it can cost, as text.

    Args:
        plan: What will be run.
        expense: The expense of one trial, where it is known.
    """
    sizes = [f"{one.trials} of {one.name}" for one in plan.experiments]
    parts = f" ({', '.join(sizes)})" if len(sizes) != 1 else ""
    size = f"{plan.contract}: at most {plan.max_trials} trials{parts}, seed {plan.seed}"
    costs = () if expense is None else _wrap(_word_cost(plan, expense), "  ", _WIDTH)
    return "\n".join([size, *costs])


def render_choices(plan: Plan, expected: float, *, expense: Expense | None = None) -> str:
    """Render the ways to ask for each required rate of a plan, at the rate that is expected.

    Args:
        plan: What will be run.
        expected: The true rate that somebody expects.
        expense: The expense of one trial, where it is known.
    """
    from trialwise.procedures.sizing.sizing_base import list_choices
    from trialwise.renderers.capabilities import Capabilities
    from trialwise.renderers.document_text import write_table

    usd = None if expense is None else expense.trial_usd or None
    lines: list[str] = []
    for one in plan.criteria:
        required, level = one.threshold.required_rate, one.alpha
        if required is None or level is None:
            continue
        choices = list_choices(required, expected, level=level, trial_usd=usd)
        table = build_choices(choices, expected, of=one.criterion)
        lines += [f"  {table.heading}", *write_table(table, Capabilities(), _WIDTH), ""]
    return "\n".join(lines)


def render_together(plans: Sequence[Plan], *, width: int = _WIDTH) -> str:
    """Return the chances of all decisions together as text; nothing for fewer than two.

    Args:
        plans: What will be run.
        width: Columns.
    """
    from trialwise.procedures.families import advise_correction

    said = [f"{_word_together(one)}." for one in chances.forecast_together(plans)]
    said += list_error_sentences(bound_planned_errors(plans))
    # One level for each decision: an input that is decided on its own is a test of its own.
    levels: list[float] = []
    # A plan with a correction has shared out its level already, so that advice would be late.
    plain = (one for one in plans if one.correction == "none")
    for plan, experiment in ((one, experiment) for one in plain for experiment in one.experiments):
        for one in plan.criteria_of(experiment.name):
            if one.alpha is not None and not one.standing.advisory:
                streams = len(experiment.input_ids) if one.counting.each_input else 1
                levels += [one.alpha] * streams
    if advice := advise_correction(len(levels), max(levels, default=0.0)):
        said.append(f"{advice}.")
    return "".join(f"{line}\n" for one in said for line in _wrap(one, "", width))


def _word_together(one: chances.Together) -> str:
    said = _word_bounded(one.passes, one.least_passes)
    text = f"{one.condition}, {numbers.as_all(one.decisions, 'decision')} PASS in {said}"
    # Where nothing can end INCONCLUSIVE both numbers are the same, up to rounding.
    if one.none_fails - one.passes > _SAME:
        text += f", and none FAILs in {_word_bounded(one.none_fails, one.least_none_fails)}"
    return text[0].upper() + text[1:]


def _word_bounded(independent: float, least: float) -> str:
    """Say a chance if decisions are independent, and its bound if that is above 0."""
    # Independence is an assumption; the bound holds however the criteria hang together.
    bound = f", never less than {numbers.as_probability(least, digits=1)}" if least > 0 else ""
    return f"{numbers.as_probability(independent, digits=1)} of runs (independent){bound}"


def _word_limiting(found: chances.LimitingCriteria, *, several: bool) -> str:
    """Name the criteria that the number of trials follows from."""
    names, one = numbers.join_few(found.criteria), len(found.criteria) == 1
    where = f" of {found.experiment}" if several else ""
    text = f"{names} set{'s' * one} the number of trials{where}: at most {found.trials:,}"
    if found.further:
        text += f", and up to {found.further:,} more so that every input is asked"
    if found.others:
        others = numbers.as_count(found.others, "other criterion", "other criteria")
        text += f"; {others} share{'s' * (found.others == 1)} them"
    return f"{text}."


def _list_criterion(one: chances.Forecast) -> Iterator[tuple[int, str]]:
    each = f" (each of {one.streams} inputs)" if one.streams > 1 else ""
    yield 1, f"{one.criterion}{each}: {one.rule}."
    for chance in one.chances:
        yield 2, _word_chance(chance, are_least=one.are_least)
    for reason in one.advisory:
        yield 2, f"advisory, it decides nothing: {reason}"
    if one.labels is not None:
        measured = f"the judge's errors, measured on {one.labels} labels"
        yield 2, f"the verdict counts only if it holds after correcting for {measured}"


def _word_latency(limit: LatencyPlan, plan: Plan) -> str:
    """Say a percentile's rule; it needs all trials, so no decision ends the run early."""
    if limit.limit_s is None:
        known = len(limit.baseline_latencies_s or ())
        bound = f"no worse than the baseline's {known} latencies"
    else:
        bound = f"at most {limit.limit_s:g} s"
    weight = "" if limit.enforced else ", advisory"
    early = any(one.limits.design is not None for one in plan.criteria)
    all_run = "; all planned trials are run, because of the percentile" if early else ""
    chances = _word_latency_chances(limit, plan)
    return f"latency {limit.percentile} of {limit.experiment}: {bound}{weight}{all_run}.{chances}"


def _word_latency_chances(limit: LatencyPlan, plan: Plan) -> str:
    from trialwise.procedures.latency import forecast_latency

    trials = next((one.trials for one in plan.experiments if one.name == limit.experiment), 0)
    if not trials:
        return ""
    found = forecast_latency(limit, trials, plan.rule)
    parts = []
    if found.threshold_s is not None:
        parts.append(f"at most {numbers.as_seconds(found.threshold_s)} PASSes")
    if found.false_alarm is not None:
        parts.append(f"if nothing changed, it FAILs in {_word_share(found.false_alarm)} of runs")
    if found.passes_at_limit is not None:
        passes = _word_share(found.passes_at_limit)
        parts.append(f"a service exactly at the limit PASSes in {passes} of runs")
    told = "; ".join(parts)
    return f" With {trials} successes {told}." if parts else ""


def _word_chance(chance: Chance, *, are_least: bool = False) -> str:
    least, most = ("at least ", "at most ") if are_least else ("", "")
    passes, fails = _word_share(chance.passes), _word_share(chance.fails)
    parts = [f"PASS in {least}{passes} of runs", f"FAIL in {least}{fails}"]
    # A design that always decides has no third verdict to speak of.
    if chance.inconclusive > 0:
        parts.append(f"INCONCLUSIVE in {most}{_word_share(chance.inconclusive)}")
    note = _TELLING.get(chance.meaning, "")
    said = f" ({note})" if note else ""
    text = f"if the true rate is {numbers.as_percent(chance.rate)}{said}: {', '.join(parts)}"
    if chance.mean_trials is None:
        return text
    return f"{text}; {numbers.as_mean_trials(chance.mean_trials)} trials on average"


def _word_share(value: float) -> str:
    return numbers.as_probability(value, digits=1)


def _word_cost(plan: Plan, expense: Expense | None) -> str:
    given, budget = expense or Expense(), asdict(plan.options.budget)
    limits = ", ".join(numbers.list_amounts(**budget))
    # Of the most trials, since nobody is surprised by a bill that is smaller than was said.
    costs = []
    if given.trial_usd is not None:
        costs.append(f"at most about ${plan.max_trials * given.trial_usd:,.2f}")
    if given.trial_s is not None:
        costs.append(f"at most about {plan.max_trials * given.trial_s:,.0f} s")
    cost = f"It can cost {' and '.join(costs)} ({given.known_from})." if costs else _UNKNOWN_COST
    return f"{cost} Budget: {limits}." if limits else f"{cost} No budget is set."


def _wrap(text: str, indent: str, width: int) -> Iterator[str]:
    more = indent + "  "
    lines = wrap(
        # A number stays on one line with its percent sign.
        text.replace(" %", "\N{NO-BREAK SPACE}%"),
        width=width,
        initial_indent=indent,
        subsequent_indent=more,
        # Run names hold hyphens, and a name in two pieces cannot be copied.
        break_on_hyphens=False,
    )
    for line in lines:
        yield line.replace("\N{NO-BREAK SPACE}", " ")


# --- The ways to ask for a required rate as a table: what each shows, and what it takes -----------


def build_choices(
    choices: Sequence[RateChoice], expected: float, *, of: str = "", advice: str = ""
) -> Table:
    """Build the table of choices for a required rate.

    Args:
        choices: The ways to ask.
        expected: The true rate at which they are compared.
        of: The criterion, where there are several.
        advice: A note below the table.
    """
    priced = any(one.mean_usd is not None for one in choices)
    start = f"{of}: choices" if of else "Choices"
    return build_table(
        f"{start} if the true rate is {numbers.as_percent(expected)}",
        choices,
        ("write", lambda one: one.setting),
        ("PASS shows", lambda one: f"> {numbers.as_percent(one.shows)}"),
        ("PASS", lambda one: _write_known(one.passes, _word_share)),
        ("FAIL", lambda one: _write_known(one.fails, _word_share)),
        ("INCONCL.", lambda one: _write_known(one.inconclusive, _word_share)),
        ("mean", lambda one: _write_known(one.mean_trials, numbers.as_mean_trials)),
        ("at most", lambda one: f"{one.max_trials:,}"),
        *([("cost", lambda one: _write_known(one.mean_usd, numbers.as_money))] if priced else []),
        notes=(advice,) if advice else (),
    )


def _write_known(value: float | None, write: Callable[[float], str]) -> str:
    return "" if value is None else write(value)
