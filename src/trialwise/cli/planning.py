"""Plans of a suite's contracts, all of them before the first trial of any."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from trialwise.errors import DesignRefused, InvalidArgument, RunNotFound

if TYPE_CHECKING:
    from trialwise.model.contract import Contract
    from trialwise.model.plan import Plan
    from trialwise.model.run import RunRecord
    from trialwise.runtime.workspace import Workspace
    from trialwise.stores.runs import StoredRun
    from trialwise.suite import SuiteContract

__all__ = ["Prepared", "prepare_all"]


class Prepared(NamedTuple):
    """A contract that is ready to run, or was run already."""

    contract: Contract
    plan: Plan
    kept: StoredRun | None = None
    """The stored run to go on with."""
    finished: RunRecord | None = None
    """What it came to before the suite was interrupted."""


def prepare_all(
    chosen: Iterable[SuiteContract],
    space: Workspace,
    given: dict[str, Any],
    *,
    measuring: bool = False,
) -> list[Prepared]:
    """Plan every contract; what is wrong with any of them is said before anything runs.

    Raises:
        DesignRefused: With the reasons of every contract that was refused.
    """
    from trialwise.cli.selecting import option_changes, size_changes

    several = list(chosen)
    prepared, reasons = [], []
    for one in several:
        options = option_changes(one.options, given)
        label = f"{one.name}: " if len(several) > 1 else ""
        try:
            prepared.append(
                _prepare(size_changes(one.contract, given), options, space, measuring=measuring)
            )
        except DesignRefused as refused:
            reasons += [f"{label}{reason}" for reason in refused.reasons]
        except InvalidArgument as error:
            reasons.append(f"{label}{error}")
    if reasons:
        raise DesignRefused(tuple(reasons))
    if space.resume and all(one.kept is None for one in prepared):
        raise RunNotFound("no run of these contracts is unfinished: there is nothing to resume")
    return prepared


def _prepare(contract: Contract, options: Any, space: Workspace, *, measuring: bool) -> Prepared:
    from trialwise.runtime.preparing import prepare

    stored = _stored(contract.name, space)
    plan = prepare(
        contract,
        options,
        space.baselines,
        now=None if stored is None else stored.started_at,
        seed=None if stored is None else stored.plan.seed,
        measuring=measuring,
    )
    if stored is None:
        return Prepared(contract=contract, plan=plan)
    record = _record(stored)
    if record is None or record.verdict.stop.is_premature:
        return Prepared(contract=contract, plan=plan, kept=stored)
    return Prepared(contract=contract, plan=plan, finished=record)


def _stored(contract: str, space: Workspace) -> StoredRun | None:
    """The newest run of a contract, where runs are gone on with."""
    from trialwise.stores.runs import RunStore

    if not space.resume or space.store is None:
        return None
    runs = RunStore(space.store)
    if isinstance(space.resume, str):
        found = runs.open(space.resume)
        return found if found.plan.contract == contract else None
    own = (runs.open(one.run_id) for one in runs.list() if one.contract == contract)
    return next((one for one in own if one.plan.purpose == "test"), None)


def _record(stored: StoredRun) -> RunRecord | None:
    try:
        return stored.record()
    except RunNotFound:
        return None
