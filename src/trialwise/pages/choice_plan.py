"""What a choice between arms will take, before its first trial."""

from __future__ import annotations

from trialwise.documents.blocks import Document, Prose, Table, build_table
from trialwise.documents.numbers import as_count, as_level, as_percent, as_points
from trialwise.procedures.sizing.choice_sizing import ChoicePlan
from trialwise.stats.toolbox.choice_forecast import ChoiceForecast


def build_choice_plan_page(plan: ChoicePlan) -> Document:
    """Build the forecast of a choice as a page."""
    difference = as_points(plan.smallest_difference)
    return Document(
        kind="Plan",
        title=f"Plan: which of {as_count(plan.arms, 'arm')} is best?",
        lead=(
            f"If one arm is better than every other by {difference} or more, any other answer "
            f"comes in at most {as_level(round(1 - plan.confidence, 6))} of runs."
        ),
        facts=(
            ("smallest difference", difference),
            ("most rounds", f"{plan.max_rounds:,}"),
            ("ties", "broken" if plan.break_ties else "said"),
        ),
        blocks=(_tabulate(plan), *_explain(plan)),
    )


def _tabulate(plan: ChoicePlan) -> Table:
    def write_share(share: float) -> str:
        return as_percent(round(share, 2))

    def write_rates(forecast: ChoiceForecast) -> str:
        best, *others = forecast.rates
        if len(set(others)) == 1:
            return f"{as_percent(round(best, 4))}, others {as_percent(round(others[0], 4))}"
        return ", ".join(as_percent(round(rate, 4)) for rate in forecast.rates)

    return build_table(
        "What to expect",
        plan.forecasts,
        ("if", lambda one: one[0]),
        ("rates", lambda one: write_rates(one[1])),
        ("trials", lambda one: f"{one[1].mean_trials:,.0f} ± {one[1].trials_error:.0f}"),
        ("19 of 20 take at most", lambda one: f"{one[1].most_trials:,}"),
        ("first arm named", lambda one: write_share(one[1].chosen[0])),
        ("another named", lambda one: write_share(sum(one[1].chosen[1:]))),
        ("tied", lambda one: write_share(one[1].tied)),
        ("not decided", lambda one: write_share(one[1].undecided)),
        words=(0, 1),
        notes=(_describe_simulation(plan),),
    )


def _describe_simulation(plan: ChoicePlan) -> str:
    return (
        f"From {plan.forecasts[0][1].runs} simulated choices in each row, with arms that pass and "
        "fail independently. Trials are of all arms together."
    )


def _explain(plan: ChoicePlan) -> tuple[Prose, ...]:
    if plan.break_ties:
        return ()
    text = (
        "Saying “tied” costs trials: --break-ties names the last arm at once, and arms that are "
        "closer than the smallest difference are then told apart by luck."
    )
    return (Prose(paragraphs=(text,)),)
