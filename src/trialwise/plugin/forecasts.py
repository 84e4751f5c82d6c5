"""What a trial of a test is expected to take, from the newest run that is kept of it."""

from __future__ import annotations

from pathlib import Path

from trialwise.errors import TrialwiseError
from trialwise.model.plan import Plan
from trialwise.reporters.rules import Expense
from trialwise.stores.runs import RunStore

__all__ = ["expense_of"]


def expense_of(plan: Plan, store: Path) -> Expense | None:
    """What a trial took in the newest judged run of a test; None where there is none.

    Args:
        plan: The test's.
        store: Where runs are kept.
    """
    try:
        verdict = RunStore(store).latest(plan.contract).record().verdict
    except TrialwiseError:
        return None
    spent = verdict.spending
    if not spent.trials:
        return None
    return Expense(
        trial_usd=None if spent.usd is None else spent.usd / spent.trials,
        trial_s=spent.seconds / spent.trials,
        known_from=f"as the {spent.trials} trials of {verdict.run_id} did",
    )
