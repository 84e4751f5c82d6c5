"""What the questions of `trialwise plan` share: the usual options, and where the answer goes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trialwise.cli.exits import ExitCode
from trialwise.cli.plan.option_types import DURATION, RATE, RATES, TRIALS, USD, option_name, refusal

if TYPE_CHECKING:
    from trialwise.runtime.trial_sizing import Format, SizingAnswer


F = TypeVar("F", bound=Callable[..., Any])

#: What a question calls its parts, as its user writes them; the others are named alike.
_OPTIONS = {
    "required_rate": "RATE",
    "alternative_rate": "--alternative",
    "expected_rate": "--expect",
    "better_rate": "--better",
    "baseline_successes": "--baseline",
    "baseline_trials": "--baseline",
    "percentiles": "--percentile",
    "limit_s": "--limit",
    "trial_usd": "--price",
    "trial_s": "--seconds",
    "rates": "--expect",
    "max_pairs": "--max-trials",
}


#: What the ending of an output file asks for.
_FORMATS: dict[str, Format] = {
    ".json": "json",
    ".html": "html",
    ".htm": "html",
    ".svg": "svg",
    ".txt": "text",
}


def _all(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return several options as one decorator, in the order in which a help page shows them."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


_FILE = click.Path(path_type=Path, dir_okay=False)
confidence_option = click.option(
    "--confidence", type=RATE, default="95%", show_default=True, help="Confidence, 1 - alpha."
)
power_option = click.option(
    "--power", type=RATE, default="80%", show_default=True, help="Power, 1 - beta."
)
trials_option = click.option("--trials", type=TRIALS, help="What this many trials would do.")
priced = _all(
    click.option("--price", "trial_usd", type=USD, help="Dollars a trial costs: 0.02 or '$0.02'."),
    click.option("--seconds", "trial_s", type=DURATION, help="Time a trial takes: 3s, 500ms, 2m."),
)
written = _all(
    click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text."),
    click.option("--html", type=_FILE, help="Also write an HTML page to this file."),
    click.option("--svg", type=_FILE, help="Also write the charts to this file."),
    click.option(
        "-o", "--output", type=_FILE, help="Write there instead: *.json, *.html, *.svg or *.txt."
    ),
)


def answer(question: str, given: dict[str, Any]) -> int:
    """Answer a question and hand the answer out; the exit code says whether it was refused.

    Args:
        question: The name of a function of `trialwise.runtime.trial_sizing`.
        given: Its arguments, and where the answer goes.
    """
    from trialwise.cli.printing import ignore_gone_reader, output_of, write_file
    from trialwise.errors import InvalidArgument
    from trialwise.runtime import trial_sizing

    short = not given.pop("verbose", True)
    as_json, html, svg, output = (given.pop(name) for name in ("as_json", "html", "svg", "output"))
    for path in (html, svg, output):
        _check_place(path)
    if output is not None and output.suffix.lower() not in _FORMATS:
        raise refusal("--output", output, "end in .json, .html, .svg or .txt")
    try:
        found: SizingAnswer = getattr(trial_sizing, question)(**given)
    except InvalidArgument as error:
        name = _OPTIONS.get(error.argument, f"--{error.argument.replace('_', '-')}")
        raise refusal(name, _as_written(name, error.value), error.allowed) from None
    if html is not None:
        write_file(html, found.render("html"))
    if svg is not None:
        write_file(svg, found.render("svg"))
    if output is not None:
        write_file(output, found.render(_FORMATS[output.suffix.lower()]))
    else:
        text = found.render("json" if as_json else "text", unicode=output_of().unicode, short=short)
        with ignore_gone_reader():
            click.echo(text, nl=False)
    return ExitCode.REFUSED if found.is_refused else ExitCode.PASS


def _as_written(name: str, value: object) -> object:
    """Write a rate as its user would write it; anything else as it is."""
    from decimal import Decimal

    params = click.get_current_context().command.params
    rates = [option_name(param) for param in params if param.type in (RATE, RATES)]
    if name in rates and isinstance(value, tuple):
        return ":".join(str(_as_written(name, one)) for one in value)
    if name not in rates or not isinstance(value, float):
        return value
    return f"{(100 * Decimal(repr(value))).normalize():f}%"


def _check_place(path: Path | None) -> None:
    """Before a search that may take long: is there a folder to write to?"""
    if path is not None and not path.parent.is_dir():
        raise click.FileError(str(path), f"there is no folder {path.parent}")
