"""`trialwise doctor`: whether everything that a run needs is there, without running anything."""

from __future__ import annotations

from pathlib import Path

import click

from trialwise.cli.exits import ExitCode

__all__ = ["command"]


@click.command("doctor")
@click.option(
    "-s",
    "--suite",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The suite file. Default: trialwise.yaml in this folder or above.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def command(file: Path | None, as_json: bool) -> int:
    """Check this machine and this suite: what is there, what is missing, what to do.

    No trial is run and no request is sent: a program is looked for, a host is connected to and
    let go. Exits 2 where something has to be put right, else 0.

    \b
    Examples:
      trialwise doctor
      trialwise doctor --json
    """
    from trialwise.cli.examination import build_doctor_page, examine
    from trialwise.cli.printing import output_of, say, say_json

    checks = examine(file)
    failed = any(check.status == "FAIL" for check in checks)
    if as_json:
        say_json(
            {
                "schema": "trialwise.doctor/1",
                "ok": not failed,
                "checks": [
                    {
                        "name": check.name,
                        "status": check.status.value,
                        "found": check.found,
                        "advice": check.advice,
                    }
                    for check in checks
                ],
            }
        )
    else:
        from trialwise.renderers.document_text import render_document_text

        say(render_document_text(build_doctor_page(checks), output_of()).rstrip())
    return ExitCode.REFUSED if failed else ExitCode.PASS
