"""`trialwise measure`: write baselines."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from trialwise.cli.exits import ExitCode
from trialwise.cli.options import GroupedCommand, pace_options, quiet_option, selection

if TYPE_CHECKING:
    from trialwise.runtime.selecting import Selection


@click.command(
    "measure",
    cls=GroupedCommand,
    groups={
        "Choose": "files expression tags",
        "Size": "option_trials",
        "Baseline": "identifier valid_days grace_days",
        "Run": "option_concurrency option_seed settings",
        "Limits": "option_max_usd option_max_seconds",
        "Continue": "resume",
        "Output": "quiet",
    },
)
@selection
@pace_options
@click.option("--identifier", help="Name of the baseline. Default: contract and time.")
@click.option("--valid-days", type=float, help="Days for which the baseline is valid.")
@click.option("--grace-days", type=float, default=0.0, help="Days after that with a warning only.")
@click.option("--resume", is_flag=True, help="Resume a measurement that was stopped.")
@quiet_option
def command(selected: Selection, **given: Any) -> int:
    """Measure baselines: run every planned trial and write the counts to a file.

    Nothing is decided. The file is made to be read, reviewed and kept in git.

    \b
    Examples:
      trialwise measure --trials 1000
      trialwise measure support-agent --trials 500 --valid-days 30
    """
    from trialwise.cli.printing import say
    from trialwise.runtime.measuring import measure

    chosen = selected.choose_sized(selected.load())
    if given["identifier"] and len(chosen) > 1:
        raise click.UsageError("--identifier names one baseline: choose one contract")
    for suite, contract, options in chosen:
        done = measure(
            contract,
            options=options if options.trials else replace(options, max_trials=None),
            identifier=given["identifier"],
            valid_days=given["valid_days"],
            grace_days=given["grace_days"],
            store=suite.runs_folder,
            baselines=suite.baselines_folder,
            resume=given["resume"],
            progress=not given["quiet"],
            redact=suite.redaction,
        )
        rates = ", ".join(
            f"{name} {found.passed} of {found.trials}"
            for name, found in done.baseline.criteria.items()
        )
        say(f"{contract.name}: {rates}; wrote {done.path}")
        for warning in done.warnings:
            click.echo(f"{contract.name}: {warning}", err=True)
    return ExitCode.PASS
