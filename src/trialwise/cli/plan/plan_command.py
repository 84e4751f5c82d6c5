"""`trialwise plan`: what a test will cost and what it will be worth, before the first trial."""

from __future__ import annotations

from typing import Any

import click

from trialwise.cli.plan.answer import (
    answer,
    confidence_option,
    power_option,
    priced,
    written,
)
from trialwise.cli.plan.choose_form import choose_form
from trialwise.cli.plan.fixed_size_commands import FORMS
from trialwise.cli.plan.option_types import RATE, TRIALS, refusal

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
