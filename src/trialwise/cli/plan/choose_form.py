"""`trialwise plan choose`, and what `trialwise choose --dry-run` says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from trialwise.cli.exits import ExitCode
from trialwise.cli.options import RATE, TRIALS, Written, json_option, read_rates

F = TypeVar("F", bound=Callable[..., Any])


EXPECTED_RATES = Written(
    "rates", "be rates such as 90%,80%,80%", lambda text: read_rates(text, ",")
)


def choice_options(function: F) -> F:
    """Add the options that say what is asked of a choice."""
    for decorate in (
        click.option("--max-trials", type=TRIALS, help="The most rounds.  [default: 1000]"),
        click.option(
            "--break-ties",
            is_flag=True,
            help="Choose the last arm at once, also where another may be as good: fewer trials.",
        ),
        click.option(
            "--confidence",
            type=RATE,
            default="95%",
            show_default=True,
            help="How surely the best arm is found.",
        ),
        click.option(
            "--smallest-difference",
            type=RATE,
            default="10%",
            show_default=True,
            help="The smallest difference between two rates that matters.",
        ),
    ):
        function = decorate(function)
    return function


@click.command("choose", short_help="Which of several arms is best?")
@click.option("--arms", type=TRIALS, required=True, help="How many arms there are.")
@choice_options
@click.option("--expect", type=EXPECTED_RATES, help="The rate of each arm, or of the best.")
@json_option
def choose_form(arms: int, **given: Any) -> int:
    """Say what a choice between arms will take and say, by simulation.

    \b
    Examples:
      trialwise plan choose --arms 5
      trialwise plan choose --arms 3 --smallest-difference 5% --expect 90%,85%,70%
    """
    return answer_plan(arms, given)


def answer_plan(arms: int, given: dict[str, Any]) -> int:
    """Print what to expect of a choice.

    Args:
        arms: How many there are.
        given: The options of a choice, with `expect` and `as_json`.
    """
    from trialwise.cli.arm_reports import give_answer
    from trialwise.model.codec import to_plain
    from trialwise.pages.choice_plan import build_choice_plan_page
    from trialwise.procedures.sizing.choice_sizing import plan_choice

    plan = plan_choice(
        arms,
        smallest_difference=float(given["smallest_difference"]),
        confidence=float(given["confidence"]),
        break_ties=given["break_ties"],
        max_rounds=given["max_trials"] or 1000,
        rates=given["expect"] or (),
    )
    given = {"outputs": (), **given}
    is_complete = give_answer(build_choice_plan_page(plan), to_plain(plan), given)
    return ExitCode.PASS if is_complete else ExitCode.ERROR
