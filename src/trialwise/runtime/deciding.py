"""From the outcome of a run to its record: decided once, and kept where runs are kept.

Every way to run a contract ends here: `run`, `compare`, `score` and the pytest plugin.
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from trialwise import __version__
from trialwise.model.evidence import Reproducibility
from trialwise.model.plan_hashes import plan_hash
from trialwise.model.reference_releases import NOT_PUBLISHED, REFERENCE_RELEASES
from trialwise.model.run import RunRecord
from trialwise.procedures.deciding.run_verdict import decide_run

if TYPE_CHECKING:
    from datetime import datetime

    from trialwise.engine.run_state import RunOutcome
    from trialwise.model.plan import Plan
    from trialwise.stores.runs import StoredRun


def decide_and_keep(
    plan: Plan,
    outcome: RunOutcome,
    stored: StoredRun | None = None,
    *,
    started_at: datetime | None = None,
) -> RunRecord:
    """Decide a run and write its record.

    Args:
        plan: What was run.
        outcome: What came of it.
        stored: Where its trials are kept, open; None keeps no record.
        started_at: When the run began, where it is not stored.

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
