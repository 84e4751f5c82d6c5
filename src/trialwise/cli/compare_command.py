"""`trialwise compare`: is B better than A?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trialwise.cli.exits import ExitCode
from trialwise.cli.plan.option_types import RATE
from trialwise.cli.selecting import choose_sized, json_option, load, pace_options, suite_option
from trialwise.errors import InvalidArgument

if TYPE_CHECKING:
    from trialwise.model.run import RunRecord
    from trialwise.runtime.comparing import Comparison
    from trialwise.suite import Suite

_ENDINGS = (".html", ".json", ".txt")


def _check_endings(
    _: click.Context, __: click.Parameter, paths: tuple[Path, ...]
) -> tuple[Path, ...]:
    for path in paths:
        if path.suffix.lower() not in _ENDINGS:
            raise InvalidArgument("output", str(path), f"end with {', '.join(_ENDINGS)}")
    return paths


@click.command("compare")
@click.argument("control")
@click.argument("candidate")
@pace_options
@click.option(
    "--margin",
    type=RATE,
    help="Loss that is acceptable, such as 2%: PASS then means that no larger one is there.",
)
@click.option("--confidence", type=RATE, default="95%", help="Confidence of all criteria together.")
@click.option(
    "--stored",
    is_flag=True,
    help="Compare the latest stored runs of two contracts instead of running them.",
)
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    callback=_check_endings,
    help=f"Write the comparison to a file: {' '.join(_ENDINGS)}; may be repeated.",
)
@suite_option
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
@json_option
def command(control: str, candidate: str, **given: Any) -> int:
    """Compare two contracts on the same inputs, or two stored runs: is CANDIDATE better?

    CONTROL and CANDIDATE are two contracts of the suite, such as two cells of its model matrix.
    Both services get the same inputs and seeds in turn, so that what changes with time affects
    both. --trials is the number of pairs, 100 by default. With --stored, or with names or folders
    of stored runs, nothing is run.

    Exits 0 where the candidate is better, or with --margin where it is not worse by more; 1 where
    it is worse in a criterion; and 3 where neither is shown.

    \b
    Examples:
      trialwise compare prompt-a prompt-b --trials 200
      trialwise compare "agent [small]" "agent [large]" --margin 2%
      trialwise compare agent agent-new --stored -o comparison.html
    """
    from trialwise.cli.printing import output_of, say, say_json
    from trialwise.renderers.document_text import render_document_text

    comparison = _compare(control, candidate, given)
    for path in given["outputs"]:
        path.write_text(_render(comparison, path), encoding="utf-8")
        click.echo(f"wrote {path}", err=True)
    if given["as_json"]:
        say_json(comparison.to_dict())
    else:
        say(render_document_text(comparison.build_page(), output_of()).rstrip("\n"))
    return ExitCode[comparison.decision.value]


def _compare(control: str, candidate: str, given: dict[str, Any]) -> Comparison:
    from trialwise.runtime.comparing import compare, compare_runs

    confidence = float(given["confidence"])
    margin = None if given["margin"] is None else float(given["margin"])
    suite = None if given["stored"] else _find_suite(control, candidate, given["file"])
    if suite is None:
        first, second = (
            _find_record(name, stored=given["stored"]) for name in (control, candidate)
        )
        return compare_runs(first, second, confidence=confidence, margin=margin)
    if control == candidate:
        raise click.UsageError("the control and the candidate are one contract: name two")
    ((_, first_contract, options),) = choose_sized([suite], [control], (), given)
    ((_, second_contract, _),) = choose_sized([suite], [candidate], (), given)
    return compare(
        first_contract,
        second_contract,
        options=replace(options, max_trials=None, baseline=None, horizon=None),
        store=suite.runs_folder,
        progress=not given["quiet"],
        redact=suite.redaction,
        confidence=confidence,
        margin=margin,
    )


def _find_record(name: str, *, stored: bool) -> RunRecord:
    from trialwise.cli.stored import chosen_runs
    from trialwise.errors import RunNotFound

    try:
        (found,) = chosen_runs([name], None, every=False)
    except RunNotFound as missing:
        if stored:
            raise
        message = f"{name!r} is no contract of the suite, and no stored run either: {missing}"
        raise click.UsageError(message) from None
    return found.record()


def _find_suite(control: str, candidate: str, file: Path | None) -> Suite | None:
    """Return the suite that has both contracts, or None where the names are those of runs."""
    from trialwise.suite import SuiteNotFound

    try:
        suite = load(file)
    except SuiteNotFound:
        if file is not None:
            raise
        return None
    known = {one.name for one in suite.contracts}
    return suite if file is not None or {control, candidate} & known else None


def _render(comparison: Comparison, path: Path) -> str:
    from trialwise.renderers.document_text import render_document_text
    from trialwise.renderers.html.page_frame import render_document
    from trialwise.renderers.json_text import render_json

    ending = path.suffix.lower()
    if ending == ".json":
        return render_json(comparison.to_dict())
    page = comparison.build_page()
    return render_document(page) if ending == ".html" else render_document_text(page)
