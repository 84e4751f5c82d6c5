"""The questions of `trialwise plan` beside the bare rate: tests with a fixed number of trials."""

from __future__ import annotations

from typing import Any

import click

from trialwise.cli.plan.answer import (
    answer,
    confidence_option,
    power_option,
    priced,
    trials_option,
    written,
)
from trialwise.cli.plan.option_types import (
    LIMIT,
    PERCENTILE,
    QUESTIONS,
    RATE,
    RATES,
    SUCCESSES,
    TRIALS,
    UNNAMED_LIMIT,
)


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
