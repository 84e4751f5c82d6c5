"""`trialwise conformance`: reference cases and exact calibration."""

from __future__ import annotations

import json
from pathlib import Path

import click

from trialwise.cli.process import ExitCode, ignore_gone_reader

__all__ = ["command"]


@click.command("conformance", no_args_is_help=True)
@click.argument(
    "folders",
    nargs=-1,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="[DIR]...",
)
@click.option("--calibration", is_flag=True, help="Compute the exact error rates of every rule.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON on standard output instead.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write to a file instead: JSON for *.json, Markdown for *.md, else text.",
)
def command(
    folders: tuple[Path, ...], calibration: bool, as_json: bool, output: Path | None
) -> int:
    """Check the statistics against reference cases, case by case.

    DIR holds one JSON file of cases per suite, and usually a manifest.json; or folders of such.
    Every case goes through the path that a verdict takes. Exits 1 if any binding field departs
    from its reference by more than the suite's tolerance, naming case, field, expected and got,
    and if no case could be run at all.

    With --calibration, also (or only) compute by exact enumeration the error rates that the rules
    really have, beside those they are configured for. Exits 1 if a promise is broken.

    \b
    Examples:
      trialwise conformance oracle/1.6
      trialwise conformance oracle --json > conformance.json
      trialwise conformance --calibration --output docs/calibration.md
    """
    from trialwise.contrib.conformance import conformance_report as rendering
    from trialwise.contrib.conformance.calibration import calibrate
    from trialwise.contrib.conformance.case_runner import run_conformance

    if not folders and not calibration:
        raise click.UsageError("give a folder of reference cases, or --calibration")
    results = [result for folder in folders for result in run_conformance(folder)]
    rows = calibrate() if calibration else []
    if as_json or (output is not None and output.suffix == ".json"):
        data = {
            "conformance": rendering.conformance_data(results),
            "calibration": rendering.calibration_data(rows),
        }
        # An answer may be an undefined quantity, which is shown as it calls itself.
        text = json.dumps(data, indent=2, ensure_ascii=False, default=str)
    elif output is not None and output.suffix == ".md":
        parts = [rendering.render_conformance_markdown(results)] if results else []
        parts += [rendering.render_calibration_markdown(rows)] if rows else []
        text = "\n".join(parts).rstrip("\n")
    else:
        parts = [rendering.render_conformance(results)] if results else []
        parts += [rendering.render_calibration(rows)] if rows else []
        text = "\n\n".join(parts)
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text + "\n", encoding="utf-8")
        click.echo(f"wrote {output}", err=True)
    else:
        with ignore_gone_reader():
            click.echo(text)
    sound = all(result.passed and result.checked for result in results)
    kept = not any(row.status == "BROKEN" for row in rows)
    return ExitCode.PASS if sound and kept else ExitCode.FAIL
