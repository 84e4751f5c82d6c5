"""`trialwise schema`: the JSON Schemas of what people write and of what programs read."""

from __future__ import annotations

from pathlib import Path

import click

from trialwise.cli.exits import ExitCode


@click.command("schema")
@click.option(
    "--for",
    "what",
    type=click.Choice(["suite", "report", "comparison"]),
    default="suite",
    show_default=True,
    help="The suite file, the JSON report of runs, or that of a comparison.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write to a file instead.",
)
def command(what: str, output: Path | None) -> int:
    """Print a JSON Schema (draft 2020-12).

    Editors with a YAML language server complete and check a suite whose first line names the
    file: `# yaml-language-server: $schema=trialwise.schema.json`. `trialwise init` writes both.

    \b
    Examples:
      trialwise schema -o trialwise.schema.json
      trialwise schema --for report > report.schema.json
    """
    from trialwise.cli.printing import say_json, write_file

    text = _schema(what)
    if output is None:
        say_json(text)
        return ExitCode.PASS
    write_file(output, text)
    return ExitCode.PASS


def _schema(what: str) -> str:
    if what == "suite":
        from trialwise.suite.reference import written_schema

        return written_schema(installed=True)
    import json

    from trialwise.pages.comparison import read_comparison_schema
    from trialwise.pages.json_report import read_report_schema

    read = read_report_schema if what == "report" else read_comparison_schema
    return json.dumps(read(), indent=2, ensure_ascii=False) + "\n"
