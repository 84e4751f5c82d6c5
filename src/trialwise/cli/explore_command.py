"""`trialwise explore`: several arms beside each other, described and not decided."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from trialwise.cli.arm_choice import LiveArms, StoredArms, choose_arms, complete_arms
from trialwise.cli.arm_reports import give_answer, output_option
from trialwise.cli.exits import ExitCode
from trialwise.cli.options import RATE, TRIALS, json_option, pair_options, suite_option

if TYPE_CHECKING:
    from trialwise.runtime.choice_result import ExploredArms


@click.command("explore")
@click.argument("names", nargs=-1, metavar="[ARM]...", shell_complete=complete_arms)
@click.option(
    "--criterion",
    metavar="NAME",
    help="What a trial has to pass.  [default: all criteria together]",
)
@click.option("--trials", type=TRIALS, help="Trials of each arm.  [default: 50]")
@click.option(
    "--confidence",
    type=RATE,
    default="95%",
    show_default=True,
    help="Confidence of every interval.",
)
@click.option("--stored", is_flag=True, help="Describe the latest stored runs instead of running.")
@pair_options
@output_option
@suite_option
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
@json_option
def command(names: tuple[str, ...], **given: Any) -> int:
    """Describe several arms beside each other: rates, cost and latency. Nothing is decided.

    Arms are named as for `trialwise compare`; a model matrix alone stands for all its entries.
    They run equally often on the same inputs and seeds, or were run before. The arms nobody beats
    include a best one in at least 95 % of runs (--confidence). The highest of many rates is high by
    luck, too; the page says by how much. `trialwise choose` decides.

    Exits 0 unless something is broken.

    \b
    Examples:
      trialwise explore agent --trials 40
      trialwise explore "agent [small]" "agent [large]" --stored -o grid.html
    """
    chosen = choose_arms(names, given, file=given["file"], stored=given["stored"])
    explored = _explore(chosen, given)
    is_complete = give_answer(explored.build_page(), explored.to_dict(), given)
    return ExitCode.PASS if is_complete and not _is_broken(explored) else ExitCode.ERROR


def _explore(chosen: LiveArms | StoredArms, given: dict[str, Any]) -> ExploredArms:
    from trialwise.runtime.choice_result import ExploredArms
    from trialwise.runtime.choosing import explore

    confidence = float(given["confidence"])
    if isinstance(chosen, StoredArms):
        from trialwise.procedures.choice import describe_arms

        if given["trials"] is not None:
            raise click.UsageError("--trials sizes a run: stored runs have their size")
        found = describe_arms(chosen.arms, criterion=given["criterion"], confidence=confidence)
        return ExploredArms(found, tuple(chosen.arms))
    options = replace(
        chosen.arms[0].options,
        trials=given["trials"],
        max_trials=None,
        baseline=None,
        horizon=None,
    )
    return explore(
        *(one.contract for one in chosen.arms),
        labels=chosen.labels,
        criterion=given["criterion"],
        confidence=confidence,
        options=options,
        store=chosen.suite.runs_folder,
        progress=False if given["quiet"] else None,
        redact=chosen.suite.redaction,
    )


def _is_broken(explored: ExploredArms) -> bool:
    from trialwise.model.evidence import StopReason

    return any(one.record.verdict.stop is StopReason.SERVICE for one in explored.runs)
