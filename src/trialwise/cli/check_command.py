"""`trialwise check`: everything that can be known without a trial."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from trialwise.cli.exits import ExitCode
from trialwise.cli.plan.option_types import RATE
from trialwise.cli.selecting import choose_sized, json_option, load, selection, size_options


@click.command("check")
@selection
@size_options
@click.option(
    "--expect",
    type=RATE,
    help="The true rate you expect: compare the ways to ask for each required rate there.",
)
@json_option
def command(
    names: tuple[str, ...],
    file: Path | None,
    tags: tuple[str, ...],
    expect: float | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Check a suite and say what it would do: rules in counts, chances, cost.

    No service is called. Exits 2 where the file is wrong or a design cannot support its claim.

    \b
    Examples:
      trialwise check
      trialwise check support-agent --trials 200
      trialwise check --expect 97%
    """
    from trialwise.cli.printing import near
    from trialwise.model.codec import to_plain
    from trialwise.pages.run_rules import render_choices, render_rules, render_together
    from trialwise.procedures.forecast import forecast, forecast_together
    from trialwise.runtime.earlier_runs import expense_of, list_notes
    from trialwise.runtime.preparing import prepare_runs
    from trialwise.runtime.workspace import Workspace

    suite = load(file)
    space = Workspace(store=suite.runs_folder, baselines=suite.baselines_folder)
    prepared = prepare_runs(choose_sized(suite, names, tags, given), space)
    if as_json:
        plans = [
            {
                "contract": one.plan.contract,
                "max_trials": one.plan.max_trials,
                "criteria": [to_plain(criterion) for criterion in forecast(one.plan)],
                "notes": list_notes(one.plan, suite.runs_folder),
                "guards": [to_plain(guard) for guard in one.plan.guards],
            }
            for one in prepared
        ]
        together = [to_plain(one) for one in forecast_together(one.plan for one in prepared)]
        found = {"schema": "trialwise.check/1", "contracts": plans, "together": together}
        click.echo(json.dumps(found, indent=2))
        return ExitCode.PASS
    for one in prepared:
        expense = expense_of(one.plan, suite.runs_folder)
        click.echo(render_rules(one.plan, expense=expense))
        if expect is not None:
            click.echo(render_choices(one.plan, expect, expense=expense))
        for note in list_notes(one.plan, suite.runs_folder):
            click.echo(f"  note: {note}\n")
        for guard in one.plan.guards:
            click.echo(f"  {guard.severity}: {guard.message}")
    if chances := render_together([one.plan for one in prepared]):
        click.echo(chances)
    count = "the contract" if len(prepared) == 1 else f"all {len(prepared)} contracts"
    click.echo(f"{near(suite.path)}: {count} can support what is claimed; nothing was run")
    return ExitCode.PASS
