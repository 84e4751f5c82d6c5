"""`trialwise score`: verdicts and metrics from outcomes that somebody else produced."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import click

from trialwise.cli import options
from trialwise.cli.options import opt
from trialwise.cli.process import ExitCode, ignore_gone_reader
from trialwise.documents.numbers import as_count, as_observed
from trialwise.documents.printable import make_visible
from trialwise.outcomes.outcome_rows import Outcomes
from trialwise.outcomes.outcome_trials import CriterionMetrics, Metrics, Order, gather, metrics_of
from trialwise.runtime.chosen_runs import RunChooser
from trialwise.runtime.reply_scoring import ScoredTraces, read_stored, score_stored, score_traces
from trialwise.runtime.result import Result
from trialwise.runtime.selecting import load
from trialwise.stats.result_types import Undefined
from trialwise.suite.loaded_suite import Suite, SuiteContract

_SUITE = click.Path(path_type=Path, exists=True, dir_okay=False)
#: Options that are arguments of the same name, of `score` and of `read_outcomes`.
_QUESTION = (
    *("no_worse_than", "never_fails", "mean_at_least", "trials", "max_trials", "confidence"),
    *("rule", "each_input", "order", "baselines"),
)
_LAYOUT = ("format", "input", "criterion", "trial", "latency", "cost", "pass_at", "delimiter")


@dataclass(frozen=True, slots=True, kw_only=True)
class _How:
    """What is asked of results, and how their files are laid out.

    Args:
        rates: Required rate: 90% or NAME=90%.
        no_worse_than: "baseline", or an identifier.
        never_fails: Ask only whether any failure was observed.
        mean_at_least: Required mean score, such as 0.8.
        criteria: Only these criteria.
        each_input: Decide every input separately.
        format: jsonl, csv, junit, inspect, promptfoo, vally, deepeval, pydantic-evals, lm-eval,
            langfuse, or that of an installed extension.
        input: Field or column that names the input.
        results: Field with a result.
        criterion: Field with the criterion's name.
        trial: Field that numbers the trials of an input.
        order_field: Field to sort the trials by.
        latency: Field with the latency in seconds.
        cost: Field with the cost in US dollars.
        pass_at: The lowest score that passes. With --mean-at-least, that mean by default.
        delimiter: Column separator of a CSV file.
        order: What is known about the order of the trials.
        trials: Number of planned trials.
        sequential: Decide trial by trial, and stop early.
        max_trials: Upper limit on trials.
        suite: Decide traces of an agent, or the replies of a run, by the checks of this suite.
        contract: The contract of the suite, if it has several.
        transparent: Print the full statistical analysis.
    """

    rates: Annotated[tuple[str, ...], opt("--at-least", metavar="RATE")] = ()
    no_worse_than: Annotated[str | None, opt(metavar="BASELINE")] = None
    never_fails: bool = False
    mean_at_least: float | None = None
    criteria: Annotated[tuple[str, ...], opt("--only", metavar="NAME")] = ()
    each_input: bool = False
    format: Annotated[str | None, opt(metavar="NAME")] = None
    input: Annotated[str | None, opt(metavar="FIELD")] = None
    results: Annotated[tuple[str, ...], opt("--result", metavar="FIELD")] = ()
    criterion: Annotated[str | None, opt(metavar="FIELD")] = None
    trial: Annotated[str | None, opt(metavar="FIELD")] = None
    order_field: Annotated[str | None, opt(metavar="FIELD")] = None
    latency: Annotated[str | None, opt(metavar="FIELD")] = None
    cost: Annotated[str | None, opt(metavar="FIELD")] = None
    pass_at: float | None = None
    delimiter: str | None = None
    order: Literal["unknown", "file", "time"] = "unknown"
    trials: Annotated[int | None, opt(type=click.IntRange(1))] = None
    sequential: bool = False
    max_trials: Annotated[int | None, opt(type=click.IntRange(1))] = None
    confidence: Annotated[float, opt(show_default=True)] = 0.95
    rule: Literal["exact", "wilson", "fisher"] = "exact"
    intent: Literal["verification", "smoke"] = "verification"
    baselines: Annotated[Path, opt(type=click.Path(path_type=Path))] = Path("baselines")
    outputs: tuple[Path, ...]
    as_json: bool
    suite: Annotated[Path | None, opt("-s", "--suite", type=_SUITE)] = None
    contract: Annotated[str | None, opt(metavar="NAME")] = None
    transparent: bool = False


@click.command("score", no_args_is_help=True)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@options.declared(_How)
def command(files: tuple[Path, ...], how: _How) -> int:
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
    # The name of a run is not a file; its folder is not, either.
    if len(files) == 1 and not files[0].is_file():
        return _score_run(files[0], how)
    for path in files:
        if not path.is_file():
            raise click.BadParameter(f"{path} is not a file", param_hint="FILES")
    if how.suite is not None:
        return _score_traces(files, how)
    outcomes = _read_outcomes(files, how)
    asked = [how.rates, how.never_fails, how.no_worse_than is not None]
    count = sum(map(bool, [*asked, how.mean_at_least is not None]))
    if count > 1:
        raise click.UsageError(
            "ask one thing: --at-least, --no-worse-than, --never-fails or --mean-at-least"
        )
    if not count:
        return _show_metrics(outcomes, how)
    from trialwise.runtime.outcome_scoring import score

    scored = score(
        outcomes,
        at_least=_read_rates(how.rates),
        design="sequential" if how.sequential else "fixed",
        intent=how.intent.upper(),
        **{name: getattr(how, name) for name in _QUESTION},
    )
    return _show_result(scored.result, how, scored.to_dict(), below=_tabulate(scored.metrics))


def _read_outcomes(files: tuple[Path, ...], how: _How) -> Outcomes:
    from trialwise.outcomes.outcome_reading import read_outcomes

    layout = {name: getattr(how, name) for name in _LAYOUT if getattr(how, name) is not None}
    if how.mean_at_least is not None:
        # A mean takes every score; which of them pass is then a matter of the table alone.
        layout.setdefault("pass_at", how.mean_at_least)
    if how.order_field is not None:
        layout["order"] = how.order_field
    outcomes = read_outcomes(files, result=how.results, only=how.criteria, **layout)
    if how.criteria:
        outcomes = outcomes.only(*how.criteria)
    for note in outcomes.notes:
        click.echo(note, err=True)
    return outcomes


#: What a suite says of its own, so that no option may.
_OF_SUITE = (
    *("rates", "no_worse_than", "never_fails", "criteria", "each_input", "input", "results"),
    *("criterion", "trial", "order_field", "latency", "cost", "pass_at", "delimiter", "trials"),
    *("sequential", "max_trials"),
)


def _load_contract(how: _How, usual: str = "") -> tuple[Suite, SuiteContract]:
    """Load the contract of the suite that decides; `usual` is the one where none is named."""
    for name in _OF_SUITE:
        if getattr(how, name):
            raise click.UsageError("the suite says what is asked: leave other questions out")
    suite = load(how.suite, without_services=True)
    contracts = {one.name: one for one in suite.contracts}
    usual = usual if usual in contracts or len(contracts) > 1 else next(iter(contracts))
    name = how.contract or usual
    if name not in contracts:
        known = ", ".join(contracts)
        raise click.UsageError(f"name one contract of the suite with --contract: {known}")
    return suite, contracts[name]


def _score_traces(files: tuple[Path, ...], how: _How) -> int:
    """Decide traces by the checks and gates of a suite."""
    _, one = _load_contract(how)
    stored = read_stored(files, how.format)
    return _show_scored(
        score_traces(one.contract, stored, options=one.options, baselines=how.baselines), how
    )


def _score_run(run: Path, how: _How) -> int:
    """Check the replies of a stored run again."""
    from trialwise.runtime.workspace import Workspace

    stored = RunChooser().find(str(run))
    suite, one = _load_contract(how, stored.plan.contract)
    space = Workspace.open(
        suite.runs_folder, suite.baselines_folder, progress=False, redact=suite.redaction
    )
    return _show_scored(score_stored(one.contract, stored, one.options, space), how)


def _show_scored(scored: ScoredTraces, how: _How) -> int:
    for note in scored.notes:
        click.echo(note, err=True)
    return _show_result(scored.result, how, scored.result.to_dict())


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


def _show_result(result: Result, how: _How, document: dict[str, Any], below: str = "") -> int:
    """Print a verdict and write its reports; return the exit code.

    Args:
        result: The verdict.
        given: The options.
        document: What `--json` prints.
        below: What stands below the summary.
    """
    from trialwise.pages.suite_totals import pick_exit_code
    from trialwise.reports.formats import ReportSource, write_report

    code = pick_exit_code([result.verdict])
    with ignore_gone_reader():
        if how.as_json:
            click.echo(json.dumps(document, indent=2))
        else:
            result.show(transparent=how.transparent, stream=sys.stdout)
            if below:
                click.echo(below)
    # After the verdict: one that cannot be written must not hide it.
    for path in how.outputs:
        write_report(path, ReportSource(records=[result.record], exit_code=code))
    return code


def _show_metrics(outcomes: Outcomes, how: _How) -> int:
    # A file in the order of its trials is taken at its word, as it is where a question is asked.
    order = Order.FILE if how.order == "file" else Order.UNKNOWN
    metrics = metrics_of(gather(outcomes), confidence=how.confidence, rule=how.rule, order=order)
    if how.as_json:
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
