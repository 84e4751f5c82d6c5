"""From the outcome of a run to its record: decided once, and kept where runs are kept.

Every way to run a contract ends here: `run`, `compare`, `score` and the pytest plugin.
"""

from __future__ import annotations

import os
import platform
from dataclasses import replace
from typing import TYPE_CHECKING

from trialwise import __version__
from trialwise.model.evidence import NOT_PUBLISHED, REFERENCE_RELEASES, Reproducibility, StopReason
from trialwise.model.fingerprint import plan_hash
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Decision
from trialwise.procedures.run_verdict import decide_run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from trialwise.engine.run_state import RunOutcome
    from trialwise.model.baseline import Covariate
    from trialwise.model.plan import Plan
    from trialwise.stores.runs import StoredRun


def find_changed_covariates(plan: Plan, covariates: Sequence[Covariate]) -> dict[str, str]:
    """Find the conditions that have another value now than when the run was planned (§8.4.1).

    Args:
        plan: With the values of the start.
        covariates: As the contract declares them.
    """
    if not covariates:
        return {}
    from trialwise.engine.ports import SystemClock
    from trialwise.errors import InvalidArgument
    from trialwise.model.baseline import resolve_covariates

    now, found = SystemClock().now(), {}
    for one in covariates:
        try:
            value = resolve_covariates([one], now, os.environ)[one.name]
        except InvalidArgument:
            value = "not set"
        if value != plan.covariates.get(one.name, value):
            found[one.name] = value
    return found


def read_run(stored: StoredRun) -> RunRecord:
    """Read a stored run; one without a verdict is INCONCLUSIVE, and says why.

    Where a broken check ended it nothing is decided, and its trials are there to be looked at.

    Args:
        stored: The run.
    """
    if (stored.path / "record.json").exists():
        return stored.record()
    from trialwise.engine.ports import SystemClock
    from trialwise.engine.run_state import RunState
    from trialwise.stores.run_journals import is_set_aside

    plan = stored.plan
    resume = f"`trialwise run --resume {stored.run_id}`"
    message = f"The run is still going on, or it was stopped; {resume} continues it"
    state = RunState(plan, stored.trials(), clock=SystemClock())
    if is_set_aside(stored.path):
        message = f"A check is broken, so nothing is decided; repair it, and {resume} goes on"
    state.stop(StopReason.SERVICE, message)
    outcome = state.outcome()
    verdict = decide_run(
        plan,
        outcome.trials,
        stops=outcome.stops,
        stop=StopReason.SERVICE,
        spending=outcome.spending,
        run_id=stored.run_id,
        started_at=stored.started_at,
        message=f"{message}.",
    )
    # What its design has decided becomes a verdict when the run ends.
    verdict = replace(verdict, decision=Decision.INCONCLUSIVE)
    return RunRecord(
        run_id=stored.run_id,
        plan=plan,
        trials=stored.shown_trials(),
        verdict=verdict,
        texts=stored.texts(),
    )


def decide_and_keep(
    plan: Plan,
    outcome: RunOutcome,
    stored: StoredRun | None = None,
    *,
    started_at: datetime | None = None,
    covariates: Sequence[Covariate] = (),
) -> RunRecord:
    """Decide a run and write its record.

    Args:
        plan: What was run.
        outcome: What came of it.
        stored: Where its trials are kept, open; None keeps no record.
        started_at: When the run began, where it is not stored.
        covariates: Conditions that are looked at again, as the contract declares them.

    Raises:
        RecordNotKept: It was decided, and its record cannot be written.
    """
    run_id = "" if stored is None else stored.run_id
    released = REFERENCE_RELEASES.get(plan.rule)
    verdict = decide_run(
        plan,
        outcome.trials,
        stops=outcome.stops,
        stop=outcome.stop,
        spending=outcome.spending,
        run_id=run_id,
        started_at=started_at if stored is None else stored.started_at,
        message=outcome.message,
        covariates_at_end=find_changed_covariates(plan, covariates),
        reproducibility=Reproducibility(
            reference_data_version=("none consumed" if released is None else released.version),
            formula_value_fixtures=NOT_PUBLISHED if released is None else released.status,
            tool_version=__version__,
            python_version=platform.python_version(),
            seed=plan.seed,
            plan_hash=plan_hash(plan) if stored is None else stored.plan_hash,
        ),
    )
    record = RunRecord(
        run_id=run_id, plan=plan, trials=outcome.trials, verdict=verdict, texts=outcome.texts
    )
    if stored is not None:
        from trialwise.stores.runs import RecordNotKept, StoreUnusable

        try:
            stored.write_record(verdict)
        except StoreUnusable as error:
            raise RecordNotKept(error.path, error.doing, error.reason, record) from error
    return record
