"""`trialwise plan choose`, and what `trialwise compare --question best --dry-run` says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trialwise.cli.exits import ExitCode
from trialwise.cli.options import RATE, TRIALS, Written, json_option, read_rates
from trialwise.cli.printing import give_answer

if TYPE_CHECKING:
    from trialwise.documents.blocks import Document
    from trialwise.procedures.sizing.choice_sizing import ChoicePlan

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


@dataclass(frozen=True)
class PlannedChoice:
    """What to expect of a choice, as its reports need it."""

    plan: ChoicePlan

    def build_page(self) -> Document:
        """Build the page that every report is made from."""
        from trialwise.pages.choice_plan import build_choice_plan_page

        return build_choice_plan_page(self.plan)

    def build_summary(self, *, is_pictured: bool = False) -> Document:  # noqa: ARG002 - one page
        """Build the same page: it is short."""
        return self.build_page()

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        from trialwise.model.codec import to_plain

        plain: dict[str, Any] = to_plain(self.plan)
        return plain


def answer_plan(arms: int, given: dict[str, Any]) -> int:
    """Print what to expect of a choice.

    Args:
        arms: How many there are.
        given: The options of a choice, with `expect` and `as_json`.
    """
    from trialwise.procedures.sizing.choice_sizing import plan_choice

    plan = plan_choice(
        arms,
        smallest_difference=float(given["smallest_difference"] or 0.1),
        confidence=float(given["confidence"] or 0.95),
        break_ties=given["break_ties"],
        max_rounds=given["max_trials"] or 1000,
        rates=given["expect"] or (),
    )
    return ExitCode.PASS if give_answer(PlannedChoice(plan), given) else ExitCode.ERROR
