"""`trialwise score`: verdicts and metrics from outcomes that somebody else produced."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trialwise.cli.options import json_option, output_option
from trialwise.cli.process import ExitCode, ignore_gone_reader
from trialwise.documents.numbers import as_count, as_observed
from trialwise.documents.printable import make_visible
from trialwise.runtime.chosen_runs import RunChooser
from trialwise.runtime.selecting import load
from trialwise.stats.result_types import Undefined

if TYPE_CHECKING:
    from trialwise.outcomes.outcome_rows import Outcomes
    from trialwise.outcomes.outcome_trials import CriterionMetrics, Metrics
    from trialwise.runtime.reply_scoring import ScoredTraces
    from trialwise.runtime.result import Result
    from trialwise.suite.loaded_suite import Suite, SuiteContract


#: Options that are arguments of the same name, of `score` and of `read_outcomes`.
_QUESTION = (
    *("no_worse_than", "never_fails", "mean_at_least", "trials", "max_trials", "confidence"),
    *("rule", "each_input", "order", "baselines"),
)
_LAYOUT = ("format", "input", "criterion", "trial", "latency", "cost", "pass_at", "delimiter")


@click.command("score", no_args_is_help=True)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--at-least", "rates", multiple=True, metavar="RATE", help="Required rate: 90% or NAME=90%."
)
@click.option("--no-worse-than", metavar="BASELINE", help='"baseline", or an identifier.')
@click.option("--never-fails", is_flag=True, help="Ask only whether any failure was observed.")
@click.option("--mean-at-least", type=float, help="Required mean score, such as 0.8.")
@click.option("--only", "criteria", multiple=True, metavar="NAME", help="Only these criteria.")
@click.option("--each-input", is_flag=True, help="Decide every input separately.")
@click.option(
    "--format",
    metavar="NAME",
    help="jsonl, csv, junit, inspect, promptfoo, vally, deepeval, pydantic-evals, lm-eval, "
    "langfuse, or that of an installed extension.",
)
@click.option("--input", metavar="FIELD", help="Field or column that names the input.")
@click.option("--result", "results", multiple=True, metavar="FIELD", help="Field with a result.")
@click.option("--criterion", metavar="FIELD", help="Field with the criterion's name.")
@click.option("--trial", metavar="FIELD", help="Field that numbers the trials of an input.")
@click.option("--order-field", metavar="FIELD", help="Field to sort the trials by.")
@click.option("--latency", metavar="FIELD", help="Field with the latency in seconds.")
@click.option("--cost", metavar="FIELD", help="Field with the cost in US dollars.")
@click.option(
    "--pass-at",
    type=float,
    help="The lowest score that passes. With --mean-at-least, that mean by default.",
)
@click.option("--delimiter", help="Column separator of a CSV file.")
@click.option(
    "--order",
    type=click.Choice(["unknown", "file", "time"]),
    default="unknown",
    help="What is known about the order of the trials.",
)
@click.option("--trials", type=click.IntRange(1), help="Number of planned trials.")
@click.option("--sequential", is_flag=True, help="Decide trial by trial, and stop early.")
@click.option("--max-trials", type=click.IntRange(1), help="Upper limit on trials.")
@click.option("--confidence", type=float, default=0.95, show_default=True)
@click.option("--rule", type=click.Choice(["exact", "wilson", "fisher"]), default="exact")
@click.option("--intent", type=click.Choice(["verification", "smoke"]), default="verification")
@click.option("--baselines", type=click.Path(path_type=Path), default=Path("baselines"))
@output_option
@json_option
@click.option(
    "-s",
    "--suite",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Decide traces of an agent, or the replies of a run, by the checks of this suite.",
)
@click.option("--contract", metavar="NAME", help="The contract of the suite, if it has several.")
@click.option("--transparent", is_flag=True, help="Print the full statistical analysis.")
def command(files: tuple[Path, ...], **given: Any) -> int:
    """Decide on results in files: JSONL, CSV, JUnit XML, and results of other tools.

    Results of Inspect AI, promptfoo, vally, deepeval, pydantic-evals, the LM evaluation harness and
    Langfuse are recognised by their content.

    Every row counts. The number of trials is taken as planned: the verdict says on what condition
    it holds. Without a question only the metrics are shown: rates, pass@k and pass^k.

    With --suite the files are stored sessions of an agent, in any format that `read_trace` reads.
    Each is a trial, and the suite's checks and gates decide them; no service is called.

    The name or folder of a stored run checks its replies again, with the suite as it is now or
    with that of --suite. No service is called, and the result is a run of its own.

    \b
    Examples:
      trialwise score results.jsonl --at-least 90%
      trialwise score junit.xml --at-least 95% --each-input
      trialwise score logs/run.eval --no-worse-than baseline -o report.html
      trialwise score traces/*.json --suite trialwise.yaml
      trialwise score 2026-11-15T06-25-24Z-support-agent-3f9c
    """
    if len(files) == 1 and not files[0].is_file():
        return _score_run(files[0], given)
    for path in files:
        if not path.is_file():
            raise click.BadParameter(f"{path} is not a file", param_hint="FILES")
    if given["suite"] is not None:
        return _score_traces(files, given)
    outcomes = _read_outcomes(files, given)
    asked = [given["rates"], given["never_fails"], given["no_worse_than"] is not None]
    count = sum(map(bool, [*asked, given["mean_at_least"] is not None]))
    if count > 1:
        raise click.UsageError(
            "ask one thing: --at-least, --no-worse-than, --never-fails or --mean-at-least"
        )
    if not count:
        return _show_metrics(outcomes, given)
    from trialwise.runtime.outcome_scoring import score

    scored = score(
        outcomes,
        at_least=_read_rates(given["rates"]),
        design="sequential" if given["sequential"] else "fixed",
        intent=given["intent"].upper(),
        **{name: given[name] for name in _QUESTION},
    )
    return _show_result(scored.result, given, scored.to_dict(), below=_tabulate(scored.metrics))


def _read_outcomes(files: tuple[Path, ...], given: dict[str, Any]) -> Outcomes:
    from trialwise.outcomes.outcome_reading import read_outcomes

    layout = {name: given[name] for name in _LAYOUT if given[name] is not None}
    if given["mean_at_least"] is not None:
        # A mean takes every score; which of them pass is then a matter of the table alone.
        layout.setdefault("pass_at", given["mean_at_least"])
    if given["order_field"] is not None:
        layout["order"] = given["order_field"]
    outcomes = read_outcomes(files, result=given["results"], only=given["criteria"], **layout)
    if given["criteria"]:
        outcomes = outcomes.only(*given["criteria"])
    for note in outcomes.notes:
        click.echo(note, err=True)
    return outcomes


#: What a suite says of its own, so that no option may.
_OF_SUITE = (
    *("rates", "no_worse_than", "never_fails", "criteria", "each_input", "input", "results"),
    *("criterion", "trial", "order_field", "latency", "cost", "pass_at", "delimiter", "trials"),
    *("sequential", "max_trials"),
)


def _load_contract(given: dict[str, Any], usual: str = "") -> tuple[Suite, SuiteContract]:
    """Load the contract of the suite that decides; `usual` is the one where none is named."""
    for name in _OF_SUITE:
        if given[name]:
            raise click.UsageError("the suite says what is asked: leave other questions out")
    suite = load(given["suite"], without_services=True)
    contracts = {one.name: one for one in suite.contracts}
    usual = usual if usual in contracts or len(contracts) > 1 else next(iter(contracts))
    name = given["contract"] or usual
    if name not in contracts:
        known = ", ".join(contracts)
        raise click.UsageError(f"name one contract of the suite with --contract: {known}")
    return suite, contracts[name]


def _score_traces(files: tuple[Path, ...], given: dict[str, Any]) -> int:
    """Decide traces by the checks and gates of a suite."""
    from trialwise.runtime.reply_scoring import read_stored, score_traces

    _, one = _load_contract(given)
    stored = read_stored(files, given["format"])
    return _show_scored(
        score_traces(one.contract, stored, options=one.options, baselines=given["baselines"]), given
    )


def _score_run(run: Path, given: dict[str, Any]) -> int:
    """Check the replies of a stored run again."""
    from trialwise.runtime.reply_scoring import score_stored
    from trialwise.runtime.workspace import Workspace

    stored = RunChooser().find(str(run))
    suite, one = _load_contract(given, stored.plan.contract)
    space = Workspace.open(
        suite.runs_folder, suite.baselines_folder, progress=False, redact=suite.redaction
    )
    return _show_scored(score_stored(one.contract, stored, one.options, space), given)


def _show_scored(scored: ScoredTraces, given: dict[str, Any]) -> int:
    for note in scored.notes:
        click.echo(note, err=True)
    return _show_result(scored.result, given, scored.result.to_dict())


def _read_rates(texts: tuple[str, ...]) -> float | dict[str, float] | None:
    """One rate for all, or one for each that is named."""
    from trialwise.declarations.amounts import rate

    found: dict[str, float] = {}
    for text in texts:
        name, _, value = text.rpartition("=")
        share = rate(value)
        if share is None:
            message = f"{value!r} is not a rate; write 90% or 0.9"
            raise click.BadParameter(message, param_hint="--at-least")
        if not name:
            if len(texts) > 1:
                raise click.BadParameter("name each of several: NAME=90%", param_hint="--at-least")
            return share
        found[name] = share
    return found or None


def _show_result(
    result: Result, given: dict[str, Any], document: dict[str, Any], below: str = ""
) -> int:
    """Print a verdict and write its reports; return the exit code.

    Args:
        result: The verdict.
        given: The options.
        document: What `--json` prints.
        below: What stands below the summary.
    """
    from trialwise.pages.suite_totals import pick_exit_code
    from trialwise.reports.formats import write_report

    code = pick_exit_code([result.verdict])
    with ignore_gone_reader():
        if given["as_json"]:
            click.echo(json.dumps(document, indent=2))
        else:
            result.show(transparent=given["transparent"], stream=sys.stdout)
            if below:
                click.echo(below)
    # After the verdict: one that cannot be written must not hide it.
    for path in given["outputs"]:
        write_report(path, [result.record], exit_code=code)
    return code


def _show_metrics(outcomes: Outcomes, given: dict[str, Any]) -> int:
    from trialwise.outcomes.outcome_trials import Order, gather, metrics_of

    # A file in the order of its trials is taken at its word, as it is where a question is asked.
    order = Order.FILE if given["order"] == "file" else Order.UNKNOWN
    metrics = metrics_of(
        gather(outcomes), confidence=given["confidence"], rule=given["rule"], order=order
    )
    if given["as_json"]:
        click.echo(json.dumps(metrics.to_dict(), indent=2))
    else:
        click.echo(_tabulate(metrics))
        asking = "--at-least, --no-worse-than, --never-fails or --mean-at-least"
        click.echo(f"no question was asked: give {asking}", err=True)
    return ExitCode.PASS


#: Inputs whose curve is printed; all of them are in the JSON.
_MOST_CURVES = 20


def _tabulate(metrics: Metrics) -> str:
    """Rates, flaky inputs and pass@k, a block for each criterion."""
    lines = []
    for one in metrics.criteria:
        flaky = f", {len(one.flaky)} flaky" if one.flaky else ""
        lines.append(
            f"{make_visible(one.criterion)}: {one.passed} of {one.trials} trials passed "
            f"({as_observed(one.rate)}), {as_count(len(one.inputs), 'input')}{flaky}"
        )
        lines += [
            f"  k = {row.k}: pass@k {_figure(row.pass_at_k)} "
            f"(naive {_figure(row.pass_at_k_naive)}), pass^k {_figure(row.pass_hat_k)} "
            f"(plug-in {_figure(row.pass_hat_k_plugin)})"
            for row in one.pass_k
        ]
        lines += [*_list_inputs(one)]
        lines += [
            f"  {make_visible(mine.input_id)}: passing up to each trial "
            f"{' '.join(f'{share:g} %' for share in mine.reliability.decay_curve)}"
            for mine in one.inputs[:_MOST_CURVES]
            if not isinstance(mine.reliability, Undefined)
        ]
    return "\n".join(lines)


def _list_inputs(one: CriterionMetrics) -> Iterator[str]:
    """List the passes of each input with its pass@k and pass^k, at one telling k."""
    from trialwise.pages.gate_facts import pick_telling_k
    from trialwise.stats.run_reliability import pass_at_k, pass_hat_k

    k = pick_telling_k([row.k for row in one.pass_k], min(mine.trials for mine in one.inputs))
    if len(one.inputs) == 1 or k is None:
        return
    for mine in one.inputs[:_MOST_CURVES]:
        n, c = mine.trials, mine.passed
        figures = f"pass@{k} {_figure(pass_at_k(n, c, k))}, pass^{k} {_figure(pass_hat_k(n, c, k))}"
        yield f"  {make_visible(mine.input_id)}: {c} of {n} passed, {figures}"
    left = len(one.inputs) - _MOST_CURVES
    if left > 0:
        yield f"  {left:,} more inputs; --json shows all"


def _figure(value: float | Undefined) -> str:
    return f"undefined ({value.reason})" if isinstance(value, Undefined) else f"{value:.3f}"
