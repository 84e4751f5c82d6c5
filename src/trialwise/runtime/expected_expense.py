"""What a trial is expected to take, from the newest run that is kept of its contract."""

from __future__ import annotations

from pathlib import Path

from trialwise.errors import TrialwiseError
from trialwise.model.plan import Plan
from trialwise.pages.run_rules import Expense
from trialwise.stores.runs import RunStore

__all__ = ["expense_of"]


def expense_of(plan: Plan, store: Path) -> Expense | None:
    """What a trial took in the newest decided run of a contract; None if there is none.

    Args:
        plan: The contract's.
        store: Where runs are kept.
    """
    try:
        verdict = RunStore(store).latest(plan.contract).record().verdict
    except TrialwiseError:
        return None
    spent = verdict.spending
    if not spent.trials:
        return None
    paid = (spent.usd, spent.setup_usd, spent.judging_usd, spent.abandoned_usd)
    known = [one for one in paid if one is not None]
    return Expense(
        trial_usd=sum(known) / spent.trials if known else None,
        trial_s=spent.seconds / spent.trials,
        known_from=f"as the {spent.trials} trials of {verdict.run_id} did",
    )
