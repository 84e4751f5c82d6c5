"""`trialwise plan`: what a test will cost and what it will be worth, before the first trial.

Four questions: is the rate high enough, has it dropped from a baseline, which arm is better, and is
the latency low enough. What else was once a form of its own is an option of one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import click
from click.core import ParameterSource

from trialwise.cli import options, process
from trialwise.cli.options import RATE, TRIALS, add_options, opt, option_name, refusal
from trialwise.errors import InvalidArgument

#: What a question calls its parts, as its user writes them; the others are named alike.
_OPTIONS = {
    "required_rate": "RATE",
    "better": "--expect",
    "baseline_successes": "--baseline",
    "baseline_trials": "--baseline",
    "percentiles": "--percentile",
    "limit_s": "--limit",
    "trial_usd": "--price",
    "trial_s": "--seconds",
    "rates": "--expect",
    "max_pairs": "--max-trials",
    "max_rounds": "--max-trials",
}
#: What the ending of an output file asks for.
_FORMATS: dict[str, Any] = {
    ".json": "json",
    ".html": "html",
    ".htm": "html",
    ".svg": "svg",
    ".txt": "text",
}
#: Forms of earlier versions: what is written instead of the name, and after it.
_OLD_FORMS = {
    "compliance": ("rate", "--fixed"),
    "precision": ("rate", "--estimate"),
    "choose": ("compare", "--question", "best"),
}
#: A search for a longer design takes long enough to say so.
_LONG = 1_000


#: A rate that may be left out, a number likewise, and what has the same default everywhere.
_Rate: TypeAlias = Annotated[float | None, opt(type=RATE)]
_Count: TypeAlias = Annotated[int | None, opt(type=TRIALS)]
_FromOne: TypeAlias = Annotated[int, opt(type=TRIALS)]
_Power: TypeAlias = Annotated[float, opt(type=RATE, default="80%", show_default=True)]
_Hidden: TypeAlias = Annotated[Path | None, opt(hidden=True)]


@dataclass(kw_only=True)
class _Shared:
    """How surely something is asked, what a trial costs, and where the answer goes.

    Args:
        confidence: Confidence, 1 - alpha.
        trial_usd: Dollars a trial costs: 0.02.
        trial_s: Time a trial takes: 3s, 2m.
        output: Write there instead: *.json, *.html, *.svg (the charts) or *.txt.
    """

    confidence: Annotated[float, opt(type=RATE, default="95%", show_default=True)] = 0.95
    trial_usd: Annotated[float | None, opt("--price", type=options.USD)] = None
    trial_s: Annotated[float | None, opt("--seconds", type=options.DURATION)] = None
    as_json: bool
    output: Annotated[Path | None, opt("-o", "--output")] = None
    # Scripts that were written for earlier versions still name these two: -o says the same.
    html: _Hidden = None
    svg: _Hidden = None


def _answer(question: str, given: dict[str, Any], *, short: bool = False) -> int:
    """Answer a question and hand the answer out; the exit code says whether it was refused.

    Args:
        question: The name of a function of `trialwise.runtime.trial_sizing`.
        given: Its arguments, and where the answer goes.
        short: Whether the choices are enough of an answer.
    """
    from trialwise.runtime import trial_sizing

    as_json, output = given.pop("as_json"), given.pop("output")
    files: dict[Any, Any] = {given.pop("html"): "html", given.pop("svg"): "svg"}
    if output is not None:
        files[output] = _FORMATS.get(output.suffix.lower())
    files.pop(None, None)
    for path in files:
        # Before a search that may take long.
        options.require_folder(path)
    if None in files.values():
        raise refusal("--output", output, "end in .json, .html, .svg or .txt")
    try:
        # The function that Python asks, so that both doors give one answer.
        found: trial_sizing.SizingAnswer = getattr(trial_sizing, question)(**given)
    except InvalidArgument as error:
        name = _OPTIONS.get(error.argument, f"--{error.argument.replace('_', '-')}")
        raise refusal(name, _as_written(name, error.value), error.allowed) from None
    for path, kind in files.items():
        process.write_file(path, found.render(kind))
    if output is None:
        text = found.render(
            "json" if as_json else "text", unicode=process.output_of().unicode, short=short
        )
        with process.ignore_gone_reader():
            click.echo(text, nl=False)
    # As for a run: a design that cannot support its claim is not an answer to build on.
    return process.ExitCode.REFUSED if found.is_refused else process.ExitCode.PASS


def _as_written(name: str, value: object) -> object:
    """Write a rate as its user would write it; anything else as it is."""
    params = click.get_current_context().command.params
    rates = [option_name(param) for param in params if param.type in (RATE, options.ARM_RATES)]
    if name in rates and isinstance(value, tuple):
        return ":".join(str(_as_written(name, one)) for one in value)
    if name not in rates or not isinstance(value, float):
        return value
    # In decimals: 100 × 0.07 is 7.000000000000001 in floats, which nobody has written.
    return f"{(100 * Decimal(repr(value))).normalize():f}%"


def _refuse_others(given: dict[str, Any], names: str, of: str) -> None:
    """Take out the options of another question; one that was given is refused."""
    context = click.get_current_context()
    for param in context.command.params:
        if param.name in names.split():
            given.pop(param.name)
            # An option without effect would look as if the answer had taken it into account.
            if context.get_parameter_source(param.name) is ParameterSource.COMMANDLINE:
                raise click.UsageError(f"{option_name(param)} does not go with {of}")


class _Questions(click.Group):
    """A group whose first word may also be a rate, or the name of an earlier form."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first = args[0] if args else ""
        # Only the first word: a rate needs no name of its question, and comes first by habit.
        if first in _OLD_FORMS:
            name, *more = _OLD_FORMS[first]
            now = " ".join(["plan", name.replace("rate", "RATE"), *more])
            # Old names still answer and say their new one, so that scripts mend and do not break.
            click.echo(f"trialwise: `plan {first}` is now `{now}`", err=True)
            args = [name, *more, *(one.replace("--better", "--expect") for one in args[1:])]
        elif args and first not in self.commands and first not in ctx.help_option_names:
            # A rate has a digit, so that a word of letters alone is a question that does not exist.
            if first.isalpha():
                forms = ", ".join(one for one in self.commands if one != "rate")
                raise refusal("FORM", repr(first), f"be a rate such as 90% or one of {forms}")
            args = ["rate", *args]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.commands["rate"].format_options(ctx, formatter)
        rows = [(name, form.get_short_help_str(80)) for name, form in self.commands.items()]
        with formatter.section("Other questions, each with its own --help"):
            formatter.write_dl([row for row in rows if row[0] != "rate"])


class _RateQuestion(click.Command):
    """The question whose name need not be written."""

    def format_usage(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        formatter.write_usage("trialwise plan", "RATE [OPTIONS]")


@click.group(
    "plan",
    cls=_Questions,
    no_args_is_help=True,
    subcommand_metavar="RATE [OPTIONS] | QUESTION ...",
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
      trialwise plan 95% --fixed --expect 97%
      trialwise plan 95% --estimate --margin 2%
      trialwise plan 90% -o plan.html
    """


@dataclass(kw_only=True)
class _RateForm:
    """What is asked about a required rate.

    Args:
        expect: The true rate you expect: the answer is for it. [default: half the allowed failures]
        alternative: The bad rate to tell it from. [default: 10 points lower, at least 1%]
        max_trials: Upper limit on trials. [default: twice the exact fixed sample]
        fixed: Plan a fixed number of trials, in both rule sets.
        estimate: Estimate a rate of about RATE; decide nothing.
        margin: With --fixed: also find a loss of so much. With --estimate: half the interval's
            width.
        trials: With either: say what this many trials would do.
        power: Power, 1 - beta.
        batch: Decide after every N trials.
        criteria: Criteria decided on the same trials.
        correction: How the criteria share alpha.
        concurrency: Trials that may run at once.
        verbose: Also print the rule in counts, the other methods and charts.
    """

    expect: _Rate = None
    alternative: _Rate = None
    max_trials: _Count = None
    fixed: bool = False
    estimate: bool = False
    margin: _Rate = None
    trials: _Count = None
    power: _Power = 0.8
    batch: _FromOne = 1
    criteria: _FromOne = 1
    correction: Annotated[Literal["none", "bonferroni"], opt(show_default=True)] = "none"
    concurrency: _FromOne = 1
    verbose: Annotated[bool, opt("-v", "--verbose")] = False


@command.command("rate", cls=_RateQuestion, short_help="Is the rate high enough?")
@click.argument("rate", type=RATE, metavar="RATE", required=False)
@add_options(_RateForm)
@add_options(_Shared)
def rate_question(*, fixed: bool, estimate: bool, verbose: bool, **given: Any) -> int:
    """Plan a test of "the rate is at least RATE".

    Sequential by default. --fixed shows the rate with a number of trials: exact and Wilson cutoffs,
    the trials from which the power is kept, and the normal approximation. --estimate gives the
    Wilson, exact and textbook intervals, with how often each really holds the true rate; without
    RATE at 50%, where they are widest.

    Rates are written 90% or 0.9, prices 0.02 or '$0.02', times 3s, 500ms, 2m or a number of
    seconds. Exits 2 where the trials asked about could never PASS.

    \b
    Examples:
      trialwise plan 90% --max-trials 50 --price 0.02 --seconds 3s
      trialwise plan 99.5% --fixed --margin 1%
      trialwise plan --estimate --trials 100
    """
    sequential = "alternative max_trials batch criteria correction concurrency"
    if estimate:
        _refuse_others(given, f"{sequential} expect power", "--estimate")
        # Intervals are widest at 50 %, so that the answer holds for every other rate, too.
        given["rate"] = 0.5 if given["rate"] is None else given["rate"]
        return _answer("plan_precision", given)
    if given["rate"] is None:
        raise click.UsageError("Missing argument 'RATE'.")
    if fixed:
        _refuse_others(given, sequential, "--fixed")
        given["better"] = given.pop("expect")
        return _answer("plan_compliance", given)
    _refuse_others(given, "margin trials", "a sequential plan: add --fixed or --estimate")
    return _answer("plan", {**given, "before_search": _announce}, short=not verbose)


def _announce(max_trials: int) -> None:
    if max_trials > _LONG:
        click.echo(f"searching for a design of up to {max_trials} trials ...", err=True)


@dataclass(kw_only=True)
class _RegressionForm:
    """What is asked about a drop.

    Args:
        baseline: Successes of trials: 951/1000.
        drop: The drop to see.
        threshold: Say which false alarms a threshold of your choice implies.
        trials: Say what this many trials would do.
        power: Power, 1 - beta.
    """

    baseline: Annotated[tuple[int, int], opt(type=options.SUCCESSES, multiple=False)]
    drop: Annotated[float, opt(type=RATE, default="5%", show_default=True)] = 0.05
    threshold: _Rate = None
    trials: _Count = None
    power: _Power = 0.8


@command.command("regression", short_help="Has the rate dropped from a measured baseline?")
@add_options(_RegressionForm)
@add_options(_Shared)
def regression_question(**given: Any) -> int:
    """Plan the trials that see a drop from a baseline, or refuse.

    Cutoffs in both rule sets, with the false alarms they really raise once the baseline's own
    sampling error is counted. Exits 2 where the plan is refused.

    \b
    Examples:
      trialwise plan regression --baseline 951/1000 --drop 3%
      trialwise plan regression --baseline 951/1000 --threshold 93%
    """
    return _answer("plan_regression", given)


@dataclass(kw_only=True)
class _CompareForm:
    """What is asked about two arms or more.

    Args:
        expect: The rates you expect of the control and of the candidate; with best, of all arms.
            [default: 80%:90%]
        question: What is asked of the candidate, or which arm is best. [default: different;
            not-worse with --margin]
        margin: The margin of the question, such as 2%.
        pairs: A fixed number of pairs.
        max_pairs: Upper limit on pairs, or rounds.
        tests: Criteria times candidates, which share the level.
        arms: Arms that run, the control included.
        concurrency: Trials that may run at once.
        discordance: Pairs in which exactly one passes. [default: the arms have nothing in common]
        rate: Instead of --expect: the rate of A.
        drop: With --rate: how far B lies below it.
        two_sided: With --rate: look for a difference either way.
        smallest_difference: With best: the smallest difference between two rates that matters.
        break_ties: With best: choose the last arm at once.
        power: Power, 1 - beta.
    """

    expect: Annotated[Any, opt(type=options.ARM_RATES)] = None
    question: Annotated[str | None, opt(type=click.Choice((*options.QUESTIONS, "best")))] = None
    margin: _Rate = None
    pairs: Annotated[int | None, opt("--trials", "--pairs", type=TRIALS)] = None
    max_pairs: Annotated[int | None, opt("--max-trials", type=TRIALS)] = None
    tests: _FromOne = 1
    arms: _FromOne = 2
    concurrency: _FromOne = 1
    discordance: _Rate = None
    rate: _Rate = None
    drop: _Rate = None
    two_sided: bool = False
    smallest_difference: Annotated[float, opt(type=RATE, default="10%", show_default=True)] = 0.1
    break_ties: bool = False
    power: _Power = 0.8


@command.command("compare", short_help="Which arm is better, or the best?")
@add_options(_CompareForm)
@add_options(_Shared)
def compare_question(**given: Any) -> int:
    """Plan a comparison: pairs, chances of each verdict, money and time.

    The sequential rule of `trialwise compare`, and the fixed number of pairs with the same power,
    by enumeration: for arms as expected, for equal arms and for a worse candidate.

    Also the fixed sizes for as often as the two may disagree, and that of separate inputs. With
    --rate and --drop, B is known to be worse, and the whole error is that of saying so. With
    --question best: what a choice between the arms will take and say, by simulation.

    \b
    Examples:
      trialwise plan compare --expect 80%:90% --price 0.02 --seconds 3s
      trialwise plan compare --question not-worse --margin 5% --expect 90%:90%
      trialwise plan compare --rate 90% --drop 5% --pairs 200
      trialwise plan compare --question best --arms 3 --expect 90%,85%,70%
    """
    of_drop, of_choice = "rate drop two_sided", "smallest_difference break_ties"
    if given["question"] == "best":
        others = "margin pairs tests concurrency discordance power trial_usd trial_s"
        _refuse_others(given, f"{others} {of_drop}", "--question best")
        given["max_rounds"] = given.pop("max_pairs") or 1000
        given["rates"] = given.pop("expect") or ()
        given.pop("question")
        return _answer("plan_choice", given)
    _refuse_others(given, of_choice, "this question: it belongs to --question best")
    if any(given[name] for name in of_drop.split()):
        if given["rate"] is None or given["drop"] is None:
            raise click.UsageError("give --rate and --drop together, or --expect alone")
        of_pairs = "expect question margin max_pairs tests arms concurrency"
        _refuse_others(given, of_pairs, "--rate: it belongs to --expect")
        return _answer("plan_compare", given)
    for name in of_drop.split():
        given.pop(name)
    given["question"] = given["question"] or ("not-worse" if given["margin"] else "different")
    rates = given["expect"]
    # An arm whose rate is 0 or 1 never varies, and pairs are about two arms.
    if rates is not None and not (len(rates) == 2 and all(0 < one < 1 for one in rates)):
        raise refusal("--expect", _as_written("--expect", rates), "be two rates such as 80%:90%")
    return _answer("plan_pairs", given)


_PERCENTILES = opt("--percentile", type=options.PERCENTILE, default=("95",), show_default=True)
# The limit may be asked for without naming it.
_LIMIT = opt(type=options.LIMIT, is_flag=False, flag_value=options.UNNAMED_LIMIT, metavar="[TIME]")


@dataclass(kw_only=True)
class _LatencyForm:
    """What is asked about a latency.

    Args:
        percentiles: 50, 90, 95 or 99; may be repeated.
        baseline: Latencies of the baseline.
        trials: Trials planned.
        limit: Show an explicit limit, such as 500ms.
        success_rate: Trials that will succeed; only those have a latency.
    """

    percentiles: Annotated[tuple[float, ...], _PERCENTILES] = (0.95,)
    baseline: _Count = None
    trials: _Count = None
    limit: Annotated[float | None, _LIMIT] = None
    success_rate: Annotated[float, opt(type=RATE, default="100%", show_default=True)] = 1.0


@command.command("latency", short_help="Is the latency low enough?")
@add_options(_LatencyForm)
@add_options(_Shared)
def latency_question(*, limit: float | None, **given: Any) -> int:
    """Plan a claim about a latency percentile, from counts alone.

    The fewest successful trials that show it and that bound it; against a baseline the ranks and
    their true false alarms; for an explicit limit the count that must be within it.

    \b
    Examples:
      trialwise plan latency --percentile 95 --baseline 935 --trials 192
      trialwise plan latency --percentile 99 --trials 400 --limit 500ms
    """
    # The answer is the same for every limit, so one may be asked for without a number.
    given |= {"limited": limit is not None, "limit_s": limit or None}
    return _answer("plan_latency", given)
