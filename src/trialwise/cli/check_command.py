"""`trialwise check`: everything that can be known without a trial."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trialwise.cli.arm_choice import check_section
from trialwise.cli.exits import ExitCode
from trialwise.cli.options import (
    RATE,
    GroupedCommand,
    criterion_option,
    json_option,
    selection,
    size_options,
)

if TYPE_CHECKING:
    from trialwise.model.plan import Plan
    from trialwise.runtime.selecting import Selection


@click.command(
    "check",
    cls=GroupedCommand,
    groups={
        "Choose": "files expression tags criteria",
        "Size": "option_trials option_max_trials",
        "Decide": "option_intent settings expect",
        "Limits": "option_max_usd option_max_seconds",
        "Output": "as_json",
    },
)
@selection
@criterion_option
@size_options
@click.option(
    "--expect",
    type=RATE,
    help="The true rate you expect: compare the ways to ask for each required rate there.",
)
@json_option
def command(selected: Selection, expect: float | None, as_json: bool) -> int:
    """Check a suite and say what it would do: rules in counts, chances, cost.

    No service is called. Exits 2 where the file is wrong or a design cannot support its claim.

    \b
    Examples:
      trialwise check
      trialwise check support-agent --trials 200
      trialwise check --expect 97%
    """
    from trialwise.cli.printing import say, say_json
    from trialwise.documents.numbers import as_all
    from trialwise.documents.printable import near
    from trialwise.model.codec import to_plain
    from trialwise.pages.run_rules import render_choices, render_rules, render_together
    from trialwise.pages.suite_totals import bound_planned_errors
    from trialwise.procedures.chances import forecast, forecast_together
    from trialwise.runtime.earlier_runs import expense_of, list_notes
    from trialwise.runtime.selecting import prepare_chosen
    from trialwise.runtime.workspace import Workspace

    suites = selected.load(with_arms=True)
    for suite in suites:
        check_section(suite)
    chosen = selected.choose_sized(suites)
    prepared: list[tuple[Plan, Path]] = []
    for suite in suites:
        space = Workspace(
            store=suite.runs_folder, baselines=suite.baselines_folder, redact=suite.redaction
        )
        found = prepare_chosen(suite, chosen, space)
        prepared += [(one.plan, suite.runs_folder) for one in found]
    if as_json:
        plans = [
            {
                "contract": plan.contract,
                "max_trials": plan.max_trials,
                "criteria": [to_plain(criterion) for criterion in forecast(plan)],
                "notes": list_notes(plan, runs),
                "guards": [to_plain(guard) for guard in plan.guards],
            }
            for plan, runs in prepared
        ]
        together = [to_plain(one) for one in forecast_together(plan for plan, _ in prepared)]
        envelopes = [to_plain(one) for one in bound_planned_errors(plan for plan, _ in prepared)]
        say_json(
            {
                "schema": "trialwise.check/1",
                "contracts": plans,
                "together": together,
                "envelopes": envelopes,
            }
        )
        return ExitCode.PASS
    for plan, runs in prepared:
        expense = expense_of(plan, runs)
        say(render_rules(plan, expense=expense))
        if expect is not None:
            say(render_choices(plan, expect, expense=expense))
        for note in list_notes(plan, runs):
            say(f"  note: {note}\n")
        for guard in plan.guards:
            say(f"  {guard.severity}: {guard.message}")
    if chances := render_together([plan for plan, _ in prepared]):
        say(chances)
    count = as_all(len(prepared), "contract")
    where = ", ".join(near(suite.path) for suite in suites)
    arms = sum(len(one.arms) for suite in suites for one in suite.contracts)
    sound = f"; {as_all(arms, 'arm')} can be compared" if arms else ""
    say(f"{where}: {count} can support what is claimed{sound}; nothing was run")
    return ExitCode.PASS
