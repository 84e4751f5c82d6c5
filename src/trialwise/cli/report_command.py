"""`trialwise report`: reports of stored runs, written after the fact."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trialwise.cli.exits import ExitCode
from trialwise.cli.options import output_option
from trialwise.cli.stored import chosen_runs, find_places, load_comparisons, run_choice
from trialwise.errors import InvalidArgument
from trialwise.reports.formats import BUILT_IN, ReportFormat, find_format, match_format

if TYPE_CHECKING:
    from trialwise.runtime.answers import Answer


def _choose_format(_: click.Context, __: click.Parameter, name: str | None) -> ReportFormat | None:
    try:
        return None if name is None else find_format(name.lower())
    except InvalidArgument as error:
        raise click.BadParameter(str(error)) from error


@click.command("report")
@run_choice
@output_option
@click.option(
    "--format",
    "format_",
    callback=_choose_format,
    metavar=f"[{'|'.join(BUILT_IN)}]",
    help="Print this report on standard output; markdown where neither it nor -o is given.",
)
@click.option("--open", "opens", is_flag=True, help="Open the HTML report in a browser.")
def command(
    names: tuple[str, ...], every: bool, store: Path | None, *, opens: bool, **given: Any
) -> int:
    """Write reports of stored runs; of all that were run last where none is named.

    RUN is a run's name or folder, `latest`, or a contract, of which the latest run is meant.
    Several runs make one report. The name of a comparison reports what it concluded. Nothing is
    run. Exits 0 where the reports could be written, whatever the verdicts were.

    --open shows the HTML report: the one that -o names, else one beside the run.

    \b
    Examples:
      trialwise report --open
      trialwise report -o report.html -o results.junit.xml
      trialwise report --all --format markdown >> "$GITHUB_STEP_SUMMARY"
      trialwise report support-agent -o gl-code-quality-report.json
    """
    from trialwise.cli.printing import say, say_json
    from trialwise.documents.printable import near
    from trialwise.reports.report_files import render_report, write_report
    from trialwise.runtime.deciding import read_run

    outputs: tuple[Path, ...] = given["outputs"]
    format_: ReportFormat | None = given["format_"]
    compared = load_comparisons(names, find_places().runs if store is None else store)
    if compared:
        _report_comparisons(compared, outputs, format_, opens=opens)
        return ExitCode.PASS
    stored = chosen_runs(names, store, every=every)
    records = [read_run(one) for one in stored]
    places = find_places()
    known: dict[str, Any] = {
        "name": places.name,
        "locations": {one.run_id: near(one.path) for one in stored},
    }
    if places.suite is not None:
        known["file"] = places.suite.name
    pages = [path for path in outputs if match_format(path).name == "html"]
    if opens and not pages:
        pages = [stored[-1].path / "report.html"]
        outputs = (*outputs, *pages)
    for path in outputs:
        click.echo(f"wrote {write_report(path, records, **known)}", err=True)
    if opens:
        click.launch(str(pages[0].resolve()))
    if format_ is not None or not outputs:
        chosen = format_ or BUILT_IN["markdown"]
        text = render_report(records, chosen.name, **known)
        (say_json if chosen.is_json else say)(text)
    return ExitCode.PASS


def _report_comparisons(
    found: Sequence[Answer],
    outputs: Sequence[Path],
    format_: ReportFormat | None,
    *,
    opens: bool,
) -> None:
    """Write the reports of one comparison, or print those of several."""
    from trialwise.cli.printing import say, say_json

    if (outputs or opens) and len(found) > 1:
        raise click.UsageError("a file reports one comparison: name one")
    pages = [path for path in outputs if match_format(path).name == "html"]
    if opens and not pages:
        pages = [Path("comparison.html")]
        outputs = (*outputs, *pages)
    for path in outputs:
        click.echo(f"wrote {found[0].write(path)}", err=True)
    if opens:
        click.launch(str(pages[0].resolve()))
    if format_ is not None or not outputs:
        name = "markdown" if format_ is None else format_.name
        for one in found:
            text = one.render(name)
            (say_json if name == "json" else say)(text)
