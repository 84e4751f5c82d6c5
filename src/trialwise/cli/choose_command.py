"""`trialwise choose`: which of several arms is best?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from trialwise.cli.arm_choice import LiveArms, choose_arms, complete_arms
from trialwise.cli.arm_reports import give_answer, output_option
from trialwise.cli.exits import ExitCode
from trialwise.cli.options import json_option, pair_options, suite_option
from trialwise.cli.plan.choose_form import EXPECTED_RATES, choice_options

if TYPE_CHECKING:
    from trialwise.runtime.choice_result import Choice


@click.command("choose")
@click.argument("names", nargs=-1, metavar="[ARM]...", shell_complete=complete_arms)
@choice_options
@click.option("--criterion", metavar="NAME", help="What decides.  [default: all criteria together]")
@pair_options
@click.option("--dry-run", is_flag=True, help="Say what to expect, and run nothing.")
@click.option(
    "--expect", type=EXPECTED_RATES, help="The rate of each arm, or of the best, for --dry-run."
)
@click.option("--resume", is_flag=True, help="Continue the newest choice, if it is unfinished.")
@output_option
@suite_option
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
@json_option
def command(names: tuple[str, ...], **given: Any) -> int:
    """Choose the best of several arms with as few trials as possible.

    An arm is a contract of the suite, an entry of its model matrix such as "agent [large]", or a
    variant under `arms:`. A contract alone stands for itself and its arms, a matrix for its
    entries. In each round the arms that may still be best get the same input and seed.

    If one arm is better than every other by --smallest-difference or more, any other answer comes
    in at most 5 % of runs (1 - --confidence), at any rates.

    \b
    Exit codes: 0 an arm is named, or arms are shown to be tied: both are answers;
    3 not decided within --max-trials or a budget.

    \b
    Examples:
      trialwise choose "agent [small]" "agent [medium]" "agent [large]"
      trialwise choose support --smallest-difference 5% -o choice.html
      trialwise choose support --dry-run --expect 90%
    """
    chosen = choose_arms(names, given, file=given["file"])
    if not isinstance(chosen, LiveArms):
        message = (
            "a choice runs its arms: name contracts or arms of a suite. `trialwise explore` and "
            "`trialwise compare` read stored runs"
        )
        raise click.UsageError(message)
    if given["dry_run"]:
        from trialwise.cli.plan.choose_form import answer_plan

        return answer_plan(len(chosen.arms), given)
    choice = _choose(chosen, given)
    code = _find_exit_code(choice)
    is_complete = give_answer(choice.build_page(), choice.to_dict(), given)
    return code if is_complete or code else ExitCode.ERROR


def _choose(arms: LiveArms, given: dict[str, Any]) -> Choice:
    from trialwise.runtime.choosing import choose

    options = replace(
        arms.arms[0].options,
        trials=None,
        max_trials=given["max_trials"],
        baseline=None,
        horizon=None,
    )
    return choose(
        *(one.contract for one in arms.arms),
        labels=arms.labels,
        smallest_difference=float(given["smallest_difference"]),
        confidence=float(given["confidence"]),
        criterion=given["criterion"],
        break_ties=given["break_ties"],
        options=options,
        store=arms.suite.runs_folder,
        resume=given["resume"],
        progress=False if given["quiet"] else None,
        redact=arms.suite.redaction,
    )


def _find_exit_code(choice: Choice) -> ExitCode:
    from trialwise.model.evidence import StopReason

    if choice.outcome != "undecided":
        return ExitCode.PASS
    ends = [one.record.verdict.stop for one in choice.runs]
    # Where an arm could not be reached, the others ended because of it, and nothing is broken.
    is_broken = StopReason.SERVICE in ends and StopReason.ERROR_RATE not in ends
    return ExitCode.ERROR if is_broken else ExitCode.INCONCLUSIVE
