"""`trialwise measure`: write baselines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from trialwise.cli.exits import ExitCode
from trialwise.cli.selecting import choose_sized, load_all, pace_options, selection


@click.command("measure")
@selection
@pace_options
@click.option("--identifier", help="Name of the baseline. Default: contract and time.")
@click.option("--valid-days", type=float, help="Days for which the baseline is valid.")
@click.option("--grace-days", type=float, default=0.0, help="Days after that with a warning only.")
@click.option("--resume", is_flag=True, help="Resume a measurement that was stopped.")
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
def command(
    names: tuple[str, ...], files: tuple[Path, ...], tags: tuple[str, ...], **given: Any
) -> int:
    """Measure baselines: run every planned trial and write the counts to a file.

    Nothing is decided. The file is made to be read, reviewed and kept in git.

    \b
    Examples:
      trialwise measure --trials 1000
      trialwise measure support-agent --trials 500 --valid-days 30
    """
    from trialwise.cli.printing import say
    from trialwise.runtime.measuring import measure

    chosen = choose_sized(load_all(files), names, tags, given)
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
