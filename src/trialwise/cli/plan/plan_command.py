"""`trialwise plan`: what a test will cost and what it will be worth, before the first trial."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trialwise.cli.exits import ExitCode
from trialwise.cli.options import (
    DURATION,
    LIMIT,
    PERCENTILE,
    QUESTIONS,
    RATE,
    RATES,
    SUCCESSES,
    TRIALS,
    UNNAMED_LIMIT,
    USD,
    option_name,
    refusal,
)
from trialwise.cli.plan.choose_form import choose_form

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


@click.command("compliance", short_help="Show that a required rate is met, with fixed trials.")
@click.argument("rate", type=RATE, metavar="RATE")
@click.option(
    "--better", type=RATE, help="The true rate hoped for.  [default: midway from RATE to 100%]"
)
@click.option("--margin", type=RATE, help="Also size a test that finds a loss of so much.")
@trials_option
@confidence_option
@power_option
@priced
@written
def compliance_form(**given: Any) -> int:
    """Plan a fixed number of trials that shows a rate above RATE.

    Exact and Wilson cutoffs, the trials from which the power is kept, the first crossing, and the
    normal approximation beside them. Exits 2 where the trials asked about could never PASS.

    \b
    Examples:
      trialwise plan compliance 95% --better 97%
      trialwise plan compliance 99.5% --margin 1%
    """
    return answer("plan_compliance", given)


@click.command("regression", short_help="See a drop from a measured baseline.")
@click.option("--baseline", type=SUCCESSES, required=True, help="Successes of trials: 951/1000.")
@click.option("--drop", type=RATE, default="5%", show_default=True, help="The drop to see.")
@click.option(
    "--threshold", type=RATE, help="Say which false alarms a threshold of your choice implies."
)
@trials_option
@confidence_option
@power_option
@priced
@written
def regression_form(**given: Any) -> int:
    """Plan the trials that see a drop from a baseline, or refuse.

    Cutoffs in both rule sets, with the false alarms they really raise once the baseline's own
    sampling error is counted. Exits 2 where the plan is refused.

    \b
    Examples:
      trialwise plan regression --baseline 951/1000 --drop 3%
      trialwise plan regression --baseline 951/1000 --threshold 93%
    """
    return answer("plan_regression", given)


@click.command("latency", short_help="What a claim about a latency percentile takes.")
@click.option(
    "--percentile",
    type=PERCENTILE,
    multiple=True,
    default=("95",),
    show_default=True,
    help="50, 90, 95 or 99; may be repeated.",
)
@click.option("--baseline", type=TRIALS, help="Latencies of the baseline.")
@click.option("--trials", type=TRIALS, help="Trials planned.")
@click.option(
    "--limit",
    type=LIMIT,
    is_flag=False,
    flag_value=UNNAMED_LIMIT,
    metavar="[TIME]",
    help="Show an explicit limit, such as 500ms.",
)
@click.option(
    "--success-rate",
    type=RATE,
    default="100%",
    show_default=True,
    help="Trials that will succeed; only those have a latency.",
)
@confidence_option
@priced
@written
def latency_form(**given: Any) -> int:
    """Plan a claim about a latency percentile, from counts alone.

    The fewest successful trials that show it and that bound it; against a baseline the ranks and
    their true false alarms; for an explicit limit the count that must be within it.

    \b
    Examples:
      trialwise plan latency --percentile 95 --baseline 935 --trials 192
      trialwise plan latency --percentile 99 --trials 400 --limit 500ms
    """
    limit = given.pop("limit")
    given["percentiles"] = given.pop("percentile")
    # The answer is the same for every limit, so one may be asked for without a number.
    given["limited"], given["limit_s"] = limit is not None, limit or None
    return answer("plan_latency", given)


@click.command("precision", short_help="Estimate a rate to within a margin.")
@click.argument("rate", type=RATE, metavar="[RATE]", default="50%")
@click.option("--margin", type=RATE, help="Half the width of the interval.")
@trials_option
@confidence_option
@priced
@written
def precision_form(**given: Any) -> int:
    """Plan the trials that estimate a rate of about RATE to within a margin.

    The Wilson, exact and textbook intervals, with how often each really holds the true rate.
    With --trials instead of --margin: how precise so many trials are. Without RATE: at 50 %, where
    intervals are widest.

    \b
    Examples:
      trialwise plan precision 95% --margin 2%
      trialwise plan precision --trials 100
    """
    return answer("plan_precision", given)


@click.command("compare", short_help="Compare arms pair by pair (A/B), or tell two apart.")
@click.option(
    "--expect",
    type=RATES,
    help="The rates you expect of the control and of the candidate.  [default: 80%:90%]",
)
@click.option(
    "--question",
    type=click.Choice(QUESTIONS),
    help="What is asked of the candidate.  [default: different; not-worse with --margin]",
)
@click.option("--margin", type=RATE, help="The margin of the question, such as 2%.")
@click.option("--trials", "--pairs", "pairs", type=TRIALS, help="A fixed number of pairs.")
@click.option("--max-trials", "max_pairs", type=TRIALS, help="Upper limit on pairs.")
@click.option(
    "--tests", type=TRIALS, default=1, help="Criteria times candidates, which share the level."
)
@click.option("--arms", type=TRIALS, default=2, help="Arms that run, the control included.")
@click.option("--concurrency", type=TRIALS, default=1, help="Trials that may run at once.")
@click.option(
    "--discordance",
    type=RATE,
    help="Pairs in which exactly one passes.  [default: the arms have nothing in common]",
)
@click.option("--rate", type=RATE, help="Instead of --expect: the rate of A.")
@click.option("--drop", type=RATE, help="With --rate: how far B lies below it.")
@click.option("--two-sided", is_flag=True, help="With --rate: look for a difference either way.")
@confidence_option
@power_option
@priced
@written
def compare_form(**given: Any) -> int:
    """Plan a comparison: pairs, chances of each verdict, money and time.

    The sequential rule of `trialwise compare`, and the fixed number of pairs with the same power,
    by enumeration: for arms as expected, for equal arms and for a worse candidate.

    With --rate and --drop: the size that finds a drop by the exact McNemar test, for as often as
    the two may disagree, and by Fisher's exact test on separate inputs.

    \b
    Examples:
      trialwise plan compare --expect 80%:90% --price 0.02 --seconds 3s
      trialwise plan compare --question not-worse --margin 5% --expect 90%:90%
      trialwise plan compare --rate 90% --drop 5% --pairs 200
    """
    of_drop = ("rate", "drop", "two_sided")
    of_pairs = ("expect", "question", "margin", "max_pairs", "tests", "arms", "concurrency")
    if not any(given[name] for name in of_drop):
        for name in of_drop:
            given.pop(name)
        given["question"] = given["question"] or ("not-worse" if given["margin"] else "different")
        return answer("plan_pairs", given)
    if given["rate"] is None or given["drop"] is None:
        raise click.UsageError("give --rate and --drop together, or --expect alone")
    for name in of_pairs:
        value = given.pop(name)
        if value not in (None, 1, 2):
            raise click.UsageError(
                f"--{name.replace('_', '-')} belongs to --expect: leave out --rate"
            )
    return answer("plan_compare", given)


#: In the order of the help page.
FORMS = (compliance_form, regression_form, latency_form, precision_form, compare_form)


#: A search for a longer design takes long enough to say so.
_LONG = 1_000


class _Forms(click.Group):
    """A group whose first word may also be a rate: then the sequential plan is meant."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            if args[0].isalpha():
                forms = ", ".join(self.commands)
                raise refusal("FORM", repr(args[0]), f"be a rate such as 90% or one of {forms}")
            args = ["rate", *args]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.commands["rate"].format_options(ctx, formatter)
        rows = [(name, form.get_short_help_str(80)) for name, form in self.commands.items()]
        with formatter.section("Other forms, each with its own --help"):
            formatter.write_dl([row for row in rows if row[0] != "rate"])


class _RateForm(click.Command):
    """The form whose name need not be written."""

    def format_usage(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        formatter.write_usage("trialwise plan", "RATE [OPTIONS]")


@click.group(
    "plan",
    cls=_Forms,
    no_args_is_help=True,
    subcommand_metavar="RATE [OPTIONS] | FORM ...",
    options_metavar="",
)
def command() -> None:
    """Plan a test before the first trial: its errors, trials, money and time.

    With a rate, such as 90%, the ways to ask side by side: without a margin, with one, and with
    fixed trials. With -v also the sequential design: every method with its true error rates, its
    trials at several true rates, how often it ends INCONCLUSIVE, and the least that any test could
    need.

    \b
    Examples:
      trialwise plan 90%
      trialwise plan 90% --expect 97% -v
      trialwise plan 90% --max-trials 50 --price 0.02 --seconds 3s
      trialwise plan 95% --criteria 3 --correction bonferroni --concurrency 8
      trialwise plan 90% --html plan.html
    """


@command.command("rate", cls=_RateForm, short_help="The sequential plan: the form of a bare rate.")
@click.argument("rate", type=RATE, metavar="RATE")
@click.option(
    "--alternative",
    type=RATE,
    help="The bad rate to tell it from.  [default: 10 points lower, at least 1%]",
)
@click.option(
    "--expect",
    type=RATE,
    help="The true rate you expect: the ways to ask are compared there.  [default: half the "
    "allowed failures]",
)
@confidence_option
@power_option
@click.option(
    "--max-trials",
    type=TRIALS,
    help="Upper limit on trials.  [default: twice the exact fixed sample]",
)
@click.option("--batch", type=TRIALS, default=1, help="Decide after every so many trials.")
@click.option("--criteria", type=TRIALS, default=1, help="Criteria decided on the same trials.")
@click.option(
    "--correction",
    type=click.Choice(["none", "bonferroni"]),
    default="none",
    show_default=True,
    help="How the criteria share alpha.",
)
@click.option("--concurrency", type=TRIALS, default=1, help="Trials that may run at once.")
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Also print the rule in counts, the other methods and charts.",
)
@priced
@written
def rate_form(**given: Any) -> int:
    """Plan a sequential test of "the rate is at least RATE".

    Rates are written 90% or 0.9, prices 0.02 or '$0.02', times 3s, 500ms, 2m or a number of
    seconds.

    \b
    Example:
      trialwise plan 90% --max-trials 50 --price 0.02 --seconds 3s
    """
    return answer("plan", {**given, "before_search": _announce})


def _announce(max_trials: int) -> None:
    if max_trials > _LONG:
        click.echo(f"searching for a design of up to {max_trials} trials ...", err=True)


for form in (*FORMS, choose_form):
    command.add_command(form)
