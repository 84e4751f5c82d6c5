"""`trialwise rerun`: one trial again, with its input and its seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trialwise.cli.exits import ExitCode
from trialwise.cli.options import json_option, store_option, suite_option

if TYPE_CHECKING:
    from trialwise.engine.drivers.single_trial import SingleTrial
    from trialwise.model.trial import Outcome
    from trialwise.renderers.capabilities import Capabilities


@click.command("rerun")
@click.argument("run", default="latest")
@click.option(
    "--trial", "index", type=click.IntRange(0), required=True, help="Number of the trial."
)
@click.option("--sampling", help="Sampling of the trial, where the contract has several.")
@store_option
@suite_option
@json_option
def command(
    run: str,
    index: int,
    sampling: str | None,
    *,
    store: Path | None,
    file: Path | None,
    as_json: bool,
) -> int:
    """Run one trial of a stored run again: the same input, the same seed.

    RUN is a run's name or folder, `latest`, or a contract, of which the latest run is meant. The
    service and the checks are those of the suite as it is now. Prints the input, the reply and the
    outcome of each check. Nothing is counted and nothing is written.

    Exits 0 where every check holds, 1 where one does not, and 3 where the service was not reached.

    \b
    Examples:
      trialwise rerun --trial 28
      trialwise rerun support-agent --trial 28 --json
    """
    from trialwise.cli.printing import output_of, say, say_json
    from trialwise.cli.stored import chosen_runs
    from trialwise.runtime.rerunning import find_trial, rerun_trial
    from trialwise.runtime.selecting import Selection, load

    (stored,) = chosen_runs([run], store, every=False)
    before = find_trial(stored, index, sampling)
    suite = load(file)
    ((_, chosen),) = Selection(names=(stored.plan.contract,)).choose([suite])
    done = rerun_trial(chosen.contract, chosen.options, before, redact=suite.redaction)
    able = output_of()
    asked = stored.texts().find_input(before)
    if asked is not None and asked != done.texts.find_input(done.trial):
        click.echo("trialwise: this input has changed since the run", err=True)
    if as_json:
        say_json(_list_data(done, stored.run_id, stored.plan.contract, passed_before=before.passed))
    else:
        say("\n".join(_list_lines(done, able, was="passed" if before.passed else "FAILED")))
    if done.trial.is_excused:
        return ExitCode.INCONCLUSIVE
    return ExitCode.PASS if done.trial.passed else ExitCode.FAIL


def _list_data(
    done: SingleTrial, run_id: str, contract: str, *, passed_before: bool
) -> dict[str, Any]:
    """List the trial as plain values, as `show --trials --json` has it, with each of its checks."""
    from trialwise.cli.trial_listing import SCHEMA, describe_trial

    names = dict(done.checks)
    return {
        "schema": SCHEMA,
        "contract": contract,
        "run_id": run_id,
        "passed_in_run": passed_before,
        **describe_trial(done.trial, done.texts),
        "checks": [
            {"criterion": outcome.criterion, "check": name, "outcome": word}
            for outcome in done.trial.outcomes
            for name, word in _list_checks(outcome, names[outcome.criterion])
        ],
    }


def _list_lines(done: SingleTrial, able: Capabilities, *, was: str) -> Iterator[str]:
    from trialwise.cli.trial_listing import list_trial_lines

    first, *rest = list_trial_lines(done.trial, able, done.texts)
    yield f"{first}{able.dot}{was} in the run"
    yield from rest
    names = dict(done.checks)
    for outcome in done.trial.outcomes:
        for name, word in _list_checks(outcome, names[outcome.criterion]):
            yield f"  {able.show(f'{outcome.criterion}, {name}: {word}')}"


def _list_checks(outcome: Outcome, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """List every check of a criterion, and whether it held."""
    failed = {name for name, _ in outcome.failed_checks}
    unasked = {one.postcondition for one in outcome.others if one.result is None}
    is_silent = not outcome.passed and outcome.postcondition is None
    for name in names:
        if is_silent or name in unasked:
            yield name, "not asked"
        else:
            yield name, "failed" if name in failed else "passed"
