"""What every form of `trialwise plan` shares: the usual options, and how a plan is handed out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import click

from trialwise.cli.exits import ExitCode
from trialwise.cli.plan.option_types import DURATION, RATE, TRIALS, USD, option_name, refusal

if TYPE_CHECKING:
    from trialwise.procedures.sizing.sizing_plans import Plan, Prices

__all__ = [
    "Output",
    "answer",
    "confidence_option",
    "power_option",
    "priced",
    "prices_of",
    "trials_option",
    "written",
]

F = TypeVar("F", bound=Callable[..., Any])

#: What a question calls its parts, as its user writes them; the others are named alike.
_OPTIONS = {
    "required_rate": "RATE",
    "alternative_rate": "--alternative",
    "better_rate": "--better",
    "baseline_successes": "--baseline",
    "baseline_trials": "--baseline",
    "percentiles": "--percentile",
    "limit_s": "--limit",
    "trial_usd": "--price",
    "trial_s": "--seconds",
}


class Output(TypedDict):
    """Where a plan goes."""

    as_json: bool
    html: Path | None
    svg: Path | None
    output: Path | None


def _all(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, in the order in which a help page shows them."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


_FILE = click.Path(path_type=Path, dir_okay=False)
confidence_option = click.option(
    "--confidence", type=RATE, default="95%", show_default=True, help="1 - alpha."
)
power_option = click.option(
    "--power", type=RATE, default="80%", show_default=True, help="1 - beta."
)
trials_option = click.option("--trials", type=TRIALS, help="What this many trials would do.")
priced = _all(
    click.option("--price", "trial_usd", type=USD, help="Dollars a trial costs: 0.02 or '$0.02'."),
    click.option("--seconds", "trial_s", type=DURATION, help="Time a trial takes: 3s, 500ms, 2m."),
)
written = _all(
    click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text."),
    click.option("--html", type=_FILE, help="Also write a page of its own to a file."),
    click.option("--svg", type=_FILE, help="Also write the charts to a file."),
    click.option(
        "-o", "--output", type=_FILE, help="Write there instead: *.json, *.html, *.svg or *.txt."
    ),
)


def prices_of(trial_usd: float | None, trial_s: float | None) -> Prices:
    """What a trial costs, as far as it was said."""
    from trialwise.procedures.sizing.sizing_plans import Prices

    return Prices(trial_usd=trial_usd, trial_s=trial_s)


def answer(make: Callable[[], Plan], output: Output) -> int:
    """Make a plan and hand it out; the exit code says whether it was refused.

    Args:
        make: Builds the question and plans it; what the question refuses is told by option.
        output: Where the plan goes.
    """
    from trialwise.errors import InvalidArgument

    for path in (output["html"], output["svg"], output["output"]):
        _check_place(path)
    _check_kind(output["output"])
    try:
        plan = make()
    except InvalidArgument as error:
        name = _OPTIONS.get(error.argument, f"--{error.argument.replace('_', '-')}")
        raise refusal(name, _as_written(name, error.value), error.allowed) from None
    for path in (output["html"], output["svg"]):
        if path is not None:
            _write(path, plan, ".html" if path is output["html"] else ".svg")
    if output["output"] is not None:
        _write(output["output"], plan, output["output"].suffix.lower())
    else:
        text = _rendered(plan, ".json" if output["as_json"] else ".txt", unicode=_shows_unicode())
        click.echo(text, nl=False)
    refused = getattr(plan, "refusal", None) is not None
    return ExitCode.REFUSED if refused else ExitCode.PASS


def _as_written(name: str, value: object) -> object:
    """A rate as its user would write it; anything else as it is."""
    from decimal import Decimal

    params = click.get_current_context().command.params
    rates = [option_name(param) for param in params if param.type is RATE]
    if name not in rates or not isinstance(value, float):
        return value
    return f"{(100 * Decimal(repr(value))).normalize():f}%"


def _rendered(plan: Plan, kind: str, *, unicode: bool = True) -> str:
    if kind == ".json":
        import json

        from trialwise.procedures.sizing.sizing_plans import plan_data

        return json.dumps(plan_data(plan), indent=2, ensure_ascii=not unicode) + "\n"
    from trialwise.pages.sizing import build_sizing_page

    page = build_sizing_page(plan)
    if kind == ".svg":
        from trialwise.documents.charts import Chart
        from trialwise.renderers.html.chart_file import render_chart_file

        charts = [block for block in page.blocks if isinstance(block, Chart)]
        return render_chart_file(charts)
    if kind in (".html", ".htm"):
        from trialwise.renderers.html.page_frame import render_document

        return render_document(page)
    from trialwise.renderers.capabilities import Capabilities
    from trialwise.renderers.document_text import render_document_text

    return render_document_text(page, Capabilities(unicode=unicode))


def _write(path: Path, plan: Plan, kind: str) -> None:
    text = _rendered(plan, kind)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.FileError(str(path), error.strerror or str(error)) from None
    click.echo(f"wrote {path}", err=True)


def _check_place(path: Path | None) -> None:
    """Before a search that may take long: is there a folder to write to?"""
    if path is not None and not path.parent.is_dir():
        raise click.FileError(str(path), f"there is no folder {path.parent}")


def _check_kind(path: Path | None) -> None:
    kinds = (".json", ".html", ".htm", ".svg", ".txt")
    if path is not None and path.suffix.lower() not in kinds:
        raise refusal("--output", path, "end in .json, .html, .svg or .txt")


def _shows_unicode() -> bool:
    """Whether standard output can show what the report is drawn with."""
    encoding = sys.stdout.encoding or "ascii"
    try:
        "≤−…█▒·●×○△▽┤│┬└─±".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
