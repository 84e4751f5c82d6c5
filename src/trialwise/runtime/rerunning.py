"""One trial of a stored run again: the same input and the same seed, on the service of today."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from trialwise.declarations.written import suggest_name
from trialwise.errors import TrialwiseError
from trialwise.runtime.looping import run_to_end
from trialwise.runtime.workspace import open_service

if TYPE_CHECKING:
    from trialwise.engine.ports import Interrupt
    from trialwise.engine.trial_runner import SingleTrial
    from trialwise.model.claim import Input
    from trialwise.model.contract import Contract
    from trialwise.model.options import RunOptions
    from trialwise.model.trial import Trial
    from trialwise.stores.runs import StoredRun


class TrialNotFound(TrialwiseError):
    """A run has no such trial, or the contract no longer has its input."""


def find_trial(stored: StoredRun, index: int, experiment: str | None = None) -> Trial:
    """Find the trial of a run with a number.

    Args:
        stored: The run.
        index: Its place in the order of inputs, from 0.
        experiment: Which sampling, where a run has several.

    Raises:
        TrialNotFound: There is none, or several samplings have one.
    """
    tables = [one for one in stored.shown_trials().tables if experiment in (None, one.experiment)]
    found = [one[place] for one in tables if (place := one.find(index)) is not None]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(one.experiment for one in found)
        raise TrialNotFound(f"several samplings have a trial {index}; name one: {names}")
    last = max((one.last for one in tables), default=None)
    there = "it has no trials" if last is None else f"its trials are 0 to {last}"
    raise TrialNotFound(f"{stored.run_id} has no trial {index}: {there}")


def find_input(contract: Contract, experiment: str, input_id: str) -> Input:
    """Find an input of a contract as it is today.

    Raises:
        TrialNotFound: The contract no longer has it.
    """
    sampling = contract.samplings.get(experiment)
    inputs = {} if sampling is None else {one.id: one for one in sampling.inputs}
    if input_id in inputs:
        return inputs[input_id]
    hint = suggest_name(input_id, inputs, "it may have been renamed", quote="'")
    raise TrialNotFound(f"{contract.name} has no input {input_id!r} any more; {hint}")


def rerun_trial(
    contract: Contract,
    options: RunOptions,
    trial: Trial,
    *,
    redact: Callable[[str], str] | None = None,
) -> SingleTrial:
    """Run a trial again with its input and its seed; nothing is kept.

    Args:
        contract: With the service and the inputs of today.
        options: Time limit and retries.
        trial: The one to repeat.
        redact: Takes secrets out of every text that is shown.
    """
    given = find_input(contract, trial.experiment, trial.input_id)
    service = open_service(contract, options)

    async def whole(_: Interrupt) -> SingleTrial:
        from trialwise.engine.trial_runner import run_single_trial

        return await run_single_trial(
            contract,
            service,
            experiment=trial.experiment,
            given=given,
            index=trial.index,
            seed=trial.seed,
            options=options,
            redact=redact,
        )

    return run_to_end(whole)
