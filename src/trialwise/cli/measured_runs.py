"""Runs that measured a baseline: they have counts and no verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trialwise.stores.runs import StoredRun


SCHEMA = "trialwise.measurement/1"


def show_measured(stored: Sequence[StoredRun], *, as_json: bool) -> list[StoredRun]:
    """Print the counts of measurements, and return the runs that are none.

    Args:
        stored: The runs to show.
        as_json: Whether to print JSON.
    """
    from trialwise.cli.printing import say, say_json

    measured = [one for one in stored if one.plan.purpose == "measure"]
    found = [count_measured(one) for one in measured]
    if found and as_json:
        say_json({"schema": SCHEMA, "runs": found})
    elif found:
        say("\n".join(map(_render, found)))
    return [one for one in stored if one not in measured]


def count_measured(stored: StoredRun) -> dict[str, Any]:
    """Return what a measurement counted, as plain values."""
    from trialwise.runtime.measuring import pick_rows

    trials, plan = stored.trials(), stored.plan
    counts = {}
    for one in plan.criteria:
        _, rows = pick_rows(one, plan, trials)
        counts[one.criterion] = {"passed": rows.passed, "trials": len(rows)}
    return {
        "run_id": stored.run_id,
        "contract": plan.contract,
        "trials": len(trials),
        "planned": plan.max_trials,
        "criteria": counts,
    }


def _render(found: dict[str, Any]) -> str:
    from trialwise.documents.numbers import as_count

    rates = ", ".join(
        f"{name} {one['passed']} of {one['trials']}" for name, one in found["criteria"].items()
    )
    text = f"{found['contract']}: measured, nothing decided: {rates}"
    if found["trials"] < found["planned"]:
        text += (
            f"\n  {as_count(found['planned'], 'trial')} were planned: it is still going on, or "
            "it was stopped. `trialwise measure --resume` continues it."
        )
    return text
