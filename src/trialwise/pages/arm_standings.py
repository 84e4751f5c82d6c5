"""Several arms beside each other: the choice between them, or their description."""

from __future__ import annotations

from collections.abc import Sequence

from trialwise.documents import blocks
from trialwise.documents.charts import Ink, Strip
from trialwise.documents.numbers import (
    as_count,
    as_ends,
    as_level,
    as_money,
    as_observed,
    as_percent,
    as_points,
    as_seconds,
    keep_few,
)
from trialwise.procedures.choice import CHOICE, ArmStanding, ChoiceVerdict, Exploration
from trialwise.procedures.sizing.comparison_sizing import ChoicePlan
from trialwise.stats.toolbox.choice_forecast import ChoiceForecast

_MOST_ROWS, _MOST_NOTES = 60, 15
_BADGES: dict[str, tuple[str, blocks.Tone]] = {
    "chosen": ("DECIDED", "chosen"),
    "tied": ("TIED", "open"),
    "undecided": ("NOT DECIDED", "open"),
}


def build_choice_page(verdict: ChoiceVerdict, *, runs: Sequence[str] = ()) -> blocks.Document:
    """Build a choice between arms as a page.

    Args:
        verdict: What was concluded.
        runs: The names of the runs.
    """
    word, tone = _BADGES[verdict.outcome]
    # The arm that was named stands first, also where another has a higher rate by luck.
    ranked = sorted(verdict.arms, key=lambda one: (one.label != verdict.chosen, -_rate(one)))
    return blocks.Document(
        kind="Choice",
        title=_name_arms(verdict.arms, verdict.chosen),
        badge=blocks.Badge(word=word, tone=tone),
        badge_label="Answer",
        lead=verdict.statement,
        facts=(
            ("passes", " and ".join(verdict.criteria)),
            ("possibly best", ", ".join(verdict.unbeaten)),
            ("smallest difference", as_points(verdict.question.smallest_difference)),
            ("took", f"{as_count(verdict.trials, 'trial')} in {as_count(verdict.rounds, 'round')}"),
            *(("run", name) for name in runs),
        ),
        blocks=(
            _tabulate(ranked, verdict.question.confidence, verdict.question.smallest_difference),
            *_fold(CHOICE.explain(verdict)),
        ),
    )


def build_exploration_page(found: Exploration, *, runs: Sequence[str] = ()) -> blocks.Document:
    """Build a description of arms as a page; it has no verdict.

    Args:
        found: What was measured.
        runs: The names of the runs.
    """
    return blocks.Document(
        kind="Exploration",
        title=_name_arms(found.arms),
        lead=found.multiplicity,
        facts=(
            ("passes", " and ".join(found.criteria)),
            ("possibly best", ", ".join(found.unbeaten)),
            ("took", as_count(found.trials, "trial")),
            *(("run", name) for name in runs),
        ),
        blocks=(_tabulate(found.arms, found.confidence), *_fold(found.notes)),
    )


def _rate(arm: ArmStanding) -> float:
    return arm.tally.rate or 0.0


def _name_arms(arms: Sequence[ArmStanding], named: str | None = None) -> str:
    contracts = list(dict.fromkeys(one.contract for one in arms))
    name = as_count(len(arms), "arm")
    name = f"{named}, of {name}" if named else name
    return f"{contracts[0]}: {name}" if len(contracts) == 1 else name


def _fold(notes: Sequence[str]) -> tuple[blocks.Block, ...]:
    return blocks.fold_notes("Worth knowing", keep_few(notes, _MOST_NOTES))


def _tabulate(
    arms: Sequence[ArmStanding], confidence: float, difference: float | None = None
) -> blocks.Table:
    # A search over prompts may have hundreds of arms: the best ones are read.
    left = len(arms) - _MOST_ROWS

    def draw(arm: ArmStanding) -> blocks.Cell:
        if arm.interval is None:
            return ""
        low, high = arm.interval
        # Where nothing was chosen, no arm is marked as good.
        ink: Ink = "pass" if arm.place == "chosen" else "open"
        return Strip(low=low, value=_rate(arm), high=high, ink=ink, span=(0.0, 1.0))

    def describe(arm: ArmStanding) -> blocks.Cell:
        if arm.place == "chosen":
            return blocks.Value(text=f"best, or within {as_points(difference or 0.0)}", strong=True)
        if arm.place == "tied":
            return "tied"
        if arm.is_unbeaten:
            return "possibly best"
        # Only an arm that is possibly best is a reason to drop another one.
        better = (one for one in arms if one.is_unbeaten and _rate(one) > _rate(arm))
        cheaper = any(_is_cheaper(one, arm) for one in better)
        return "another arm is better and cheaper" if cheaper else "another arm is better"

    # Two empty columns would make the page wider and say nothing.
    has_cost = any(one.usd_per_trial is not None for one in arms)
    costs: tuple[blocks.Column[ArmStanding], ...] = (
        ("cost per trial", lambda one: _write_money(one.usd_per_trial)),
        ("per success", lambda one: _write_money(one.usd_per_success)),
    )
    return blocks.build_table(
        "Arms",
        arms[:_MOST_ROWS],
        ("arm", lambda one: blocks.Name(one.label)),
        ("shown", describe),
        ("passed", lambda one: f"{one.tally.passed}/{one.tally.trials}"),
        ("rate", lambda one: "–" if one.tally.rate is None else as_observed(one.tally.rate)),
        (f"{100 * confidence:g} %", lambda one: as_ends(one.interval) if one.interval else ""),
        ("", draw),
        ("mean time", lambda one: "" if one.latency_s is None else as_seconds(one.latency_s)),
        *(costs if has_cost else ()),
        words=(0, 1),
        notes=(
            "Each interval holds for its arm alone, whenever the run ended.",
            *((f"and {left:,} more arms",) if left > 0 else ()),
        ),
    )


def _is_cheaper(arm: ArmStanding, other: ArmStanding) -> bool:
    ours, theirs = arm.usd_per_trial, other.usd_per_trial
    return ours is not None and theirs is not None and ours < theirs


def _write_money(usd: float | None) -> str:
    return "" if usd is None else as_money(usd)


# --- What a choice between arms will take, before its first trial ---------------------------------


def build_choice_plan_page(plan: ChoicePlan) -> blocks.Document:
    """Build the forecast of a choice as a page."""
    difference = as_points(plan.smallest_difference)
    return blocks.Document(
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
        blocks=(_tabulate_forecasts(plan), *_explain_ties(plan)),
    )


def _tabulate_forecasts(plan: ChoicePlan) -> blocks.Table:
    def write_rates(forecast: ChoiceForecast) -> str:
        # Most forecasts have one better arm and equal others, which a reader sees at once.
        best, *others = forecast.rates
        if len(set(others)) == 1:
            return f"{as_percent(round(best, 4))}, others {as_percent(round(others[0], 4))}"
        return ", ".join(as_percent(round(rate, 4)) for rate in forecast.rates)

    simulated = (
        f"From {plan.forecasts[0][1].runs} simulated choices in each row, with arms that pass and "
        "fail independently. Trials are of all arms together."
    )
    return blocks.build_table(
        "What to expect",
        plan.forecasts,
        ("if", lambda one: one[0]),
        ("rates", lambda one: write_rates(one[1])),
        ("trials", lambda one: f"{one[1].mean_trials:,.0f} ± {one[1].trials_error:.0f}"),
        ("19 of 20 take at most", lambda one: f"{one[1].most_trials:,}"),
        ("first arm named", lambda one: as_percent(round(one[1].chosen[0], 2))),
        ("another named", lambda one: as_percent(round(sum(one[1].chosen[1:]), 2))),
        ("tied", lambda one: as_percent(round(one[1].tied, 2))),
        ("not decided", lambda one: as_percent(round(one[1].undecided, 2))),
        words=(0, 1),
        notes=(simulated,),
    )


def _explain_ties(plan: ChoicePlan) -> tuple[blocks.Prose, ...]:
    if plan.break_ties:
        return ()
    text = (
        "Saying “tied” costs trials: --break-ties names the last arm at once, and arms that are "
        "closer than the smallest difference are then told apart by luck."
    )
    return (blocks.Prose(paragraphs=(text,)),)
