"""`trialwise import`: convert a suite of another tool."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from trialwise.cli.process import ExitCode

__all__ = ["command"]


@click.command("import", no_args_is_help=True)
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The suite to write; by default trialwise.yaml beside the first file.",
)
@click.option("--bindings", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--samples", type=click.IntRange(1), help="Trials, where the file leaves them open.")
@click.option(
    "--at-least",
    callback=lambda _context, _option, text: _read_rate(text),
    metavar="RATE",
    help="The rate to require, where the file asks for none, such as 90%.",
)
@click.option("--force", is_flag=True, help="Overwrite what is there.")
@click.option("--stdout", "to_stdout", is_flag=True, help="Print the suite and write nothing.")
def command(files: tuple[Path, ...], **given: Any) -> int:
    """Turn a suite of another tool into a suite that decides the same way.

    FILE is a cerberus.yaml, a promptfooconfig.yaml, an eval.yaml of vally, a suite of mcptest, or a
    mavai contract with its services file. Nothing in them is executed. Notes say what is different
    here. What a suite cannot say is refused with its place, or becomes a function that is left to
    you: a run stops until it is written.

    \b
    Examples:
      trialwise import cerberus.yaml
      trialwise import promptfooconfig.yaml --at-least 90%
      trialwise import contract.yaml services.yaml -o trialwise.yaml
    """
    from trialwise.contrib.importers import import_suite, render_yaml

    found = import_suite(
        *files,
        bindings_path=given["bindings"],
        samples=given["samples"],
        at_least=given["at_least"],
        environment=os.environ,
    )
    text = render_yaml(found)
    for note in found.notes:
        click.echo(f"note: {note}", err=True)
    if given["to_stdout"]:
        click.echo(text, nl=False)
        return ExitCode.PASS
    target = given["output"] or files[0].parent / "trialwise.yaml"
    written = {target: text} | {
        target.parent / name: content for name, content in found.files.items()
    }
    there = [str(path) for path in written if path.exists()]
    if there and not given["force"]:
        raise click.UsageError(f"{', '.join(there)}: exists; give --force or another --output")
    for path, content in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        click.echo(f"wrote {path}")
    return ExitCode.PASS


def _read_rate(text: str | None) -> float | None:
    from trialwise.declarations.amounts import rate

    share = None if text is None else rate(text)
    if text is not None and (share is None or not 0 < share < 1):
        raise click.BadParameter(f"{text!r} is not a rate between 0 and 1; write 90% or 0.9")
    return share
