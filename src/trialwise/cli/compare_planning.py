"""`trialwise compare --dry-run`: what a comparison takes and how likely each verdict is."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any

import click

from trialwise.cli.exits import ExitCode

if TYPE_CHECKING:
    from trialwise.cli.arm_choice import LiveArms
    from trialwise.cli.compare_options import CompareAsked
    from trialwise.pages.run_rules import Expense
    from trialwise.runtime.trial_sizing import SizingAnswer


def show_plan(chosen: LiveArms, asked: CompareAsked, given: dict[str, Any]) -> int:
    """Print what a comparison takes, and run nothing."""
    from trialwise.cli.printing import say, say_json

    answer, notes = plan_arms(chosen, asked)
    if given["as_json"]:
        say_json({**answer.to_dict(), "arms": list(chosen.labels), "notes": notes})
        return ExitCode.PASS
    say(answer.render("text").rstrip("\n"))
    for note in notes:
        say(note)
    say(f"{', '.join(chosen.labels)}: nothing was run")
    return ExitCode.PASS


def plan_arms(chosen: LiveArms, asked: CompareAsked) -> tuple[SizingAnswer, list[str]]:
    """Plan a comparison of arms: the answer, and what it is based on."""
    from trialwise.runtime.trial_sizing import plan_pairs

    question = asked.build_question()
    count = len(chosen.labels)
    couples = count * (count - 1) // 2 if asked.all_pairs else count - 1
    counting = [
        one.name
        for one in chosen.arms[0].contract.criteria
        if not getattr(one, "report_only", False)
    ]
    expenses = [_find_expense(chosen, place) for place in range(count)]
    known = [one for one in expenses if one is not None]
    usd = [one.trial_usd for one in known if one.trial_usd is not None]
    seconds = [one.trial_s for one in known if one.trial_s is not None]
    answer = plan_pairs(
        asked.expect,
        question=question.question,
        margin=question.margin,
        pairs=asked.trials,
        max_pairs=asked.max_trials,
        tests=couples * max(1, len(counting)) if asked.correction != "none" else 1,
        arms=count,
        confidence=asked.confidence,
        trial_usd=fmean(usd) or None if len(usd) == count else None,
        trial_s=fmean(seconds) or None if seconds else None,
    )
    return answer, [*_list_notes(asked, counting, expenses)]


def _find_expense(chosen: LiveArms, place: int) -> Expense | None:
    from trialwise.runtime.earlier_runs import find_expense

    one = chosen.arms[min(place, len(chosen.arms) - 1)]  # one arm is compared with itself
    declared = one.options.cost_per_trial_usd
    return find_expense(one.contract.name, declared, chosen.suite.runs_folder)


def _list_notes(
    asked: CompareAsked, criteria: list[str], expenses: list[Expense | None]
) -> list[str]:
    notes = []
    if len(criteria) > 1:
        notes.append(
            f"The chances are those of one of {len(criteria)} criteria; PASS needs all of them."
        )
    for name, margin in asked.guardrails.items():
        notes.append(f"{name} is a guardrail: it may not be worse by {100 * margin:g} points.")
    if all(one is None or one.trial_usd is None for one in expenses):
        notes.append(
            "What a trial costs is not known: run one arm first, or give --cost-per-trial."
        )
    elif any(one is None or one.trial_usd is None for one in expenses):
        notes.append("What a trial of each arm costs is known of some arms only.")
    return notes


def announce_plan(chosen: LiveArms, asked: CompareAsked) -> None:
    """Say on standard error what is going to run, where that can be planned."""
    from trialwise.errors import InvalidArgument
    from trialwise.pages.sizing import build_sizing_page

    if asked.guardrails or asked.margin:
        return  # chances of rules with a margin take seconds: `--dry-run` states them
    try:
        answer, _ = plan_arms(chosen, asked)
    except InvalidArgument:
        return  # the comparison itself says what is wrong, or has a size that no plan knows
    click.echo(f"{', '.join(chosen.labels)}: {build_sizing_page(answer.plan).lead}", err=True)
