"""A baseline from the trials of a marked test: every one is counted and nothing is decided."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from trialwise import __version__
from trialwise.engine.ports import SystemClock
from trialwise.errors import BaselineError, RunInterrupted
from trialwise.model.baseline import Baseline
from trialwise.model.contract import Contract
from trialwise.model.evidence import StopReason
from trialwise.model.plan import Plan
from trialwise.plugin.pytest_driver import TestRun
from trialwise.runtime.measuring import Measurement, observed_criteria, successful_latencies

__all__ = ["measured"]


def measured(run: TestRun, plan: Plan, contract: Contract, folder: Path) -> Measurement:
    """Write the baseline that a run makes.

    Args:
        run: All trials of it.
        plan: What was to be run.
        contract: That the plan was made of.
        folder: Where baselines are kept.

    Raises:
        BaselineError: The run ended before its plan did: part of a baseline is none.
        RunInterrupted: Somebody stopped it.
    """
    from trialwise.checks.criterion_scopes import scopes_of
    from trialwise.stores.baselines import BaselineStore

    outcome = run.outcome
    if outcome.stop.is_premature:
        message = (
            f"no baseline was written: {outcome.message or outcome.stop}. Its trials are kept in "
            f"{run.stored.path}: go on with --trialwise-measure --trialwise-resume."
        )
        interrupted = outcome.stop is StopReason.INTERRUPTED
        raise RunInterrupted(message) if interrupted else BaselineError(message)
    files = BaselineStore(folder)
    created_at = SystemClock().now()
    trials = outcome.trials
    baseline = Baseline(
        identifier=f"{contract.name}@{created_at:%Y-%m-%dT%H-%M-%S}",
        contract=contract.name,
        created_at=created_at,
        criteria=observed_criteria(plan, trials, scopes_of(contract)),
        covariates=plan.covariates,
        factors=plan.factors,
        claim=plan.claim,
        latencies_s=successful_latencies(plan, trials),
        run_trials=Counter(trial.experiment for trial in trials),
        epoch=files.next_epoch(contract.name, plan.covariates),
        run_id=run.stored.run_id,
        tool_version=__version__,
    )
    return Measurement(baseline, files.save(baseline), trials, run.stored.path)
