"""Everything that a run needs before its first trial: its plan, its baseline, an earlier run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from secrets import randbits
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO, Unpack

from trialwise import errors
from trialwise.checks.criterion_scopes import scopes_of
from trialwise.declarations.written import suggest_name
from trialwise.engine.criterion_progress import derive_seed
from trialwise.engine.ports import SystemClock
from trialwise.engine.spending_meter import untold_cost
from trialwise.model import Contract, Plan, RunOptions
from trialwise.model.baseline import resolve_covariates
from trialwise.model.run_settings import RunSettings
from trialwise.procedures.run_plan import plan_run
from trialwise.redaction import redact_with
from trialwise.runtime import chosen_baselines
from trialwise.runtime.earlier_runs import EarlierRuns, find_earlier
from trialwise.stores.baselines import FileDesignCache
from trialwise.stores.runs import RunStore, StoredRun

if TYPE_CHECKING:
    from datetime import datetime

    from trialwise.model.run import RunRecord
    from trialwise.runtime.workspace import Workspace


def check(
    contract: Contract,
    *,
    inputs: Any = None,
    options: RunOptions | None = None,
    baselines: str | Path = "baselines",
    **settings: Unpack[RunSettings],
) -> CheckedPlan:
    """Plan a run and run nothing: its sizes, its rules in counts, its seed.

    This is what `trialwise check` does for a suite. To find out how many trials you need, use
    `plan`.

    Raises:
        DesignRefused: The design cannot support its claim.

    >>> import trialwise as tw
    >>> criterion = tw.Criterion("answers", tw.contains("555"), at_least=0.9)
    >>> contract = tw.Contract("sums", lambda question: "555", [criterion])
    >>> tw.check(contract, inputs=["What is 15 * 37?"], trials=50).criteria[0].cutoff
    49
    """
    whole = contract if inputs is None else contract.with_inputs(inputs)
    plan = prepare(whole, options_of(options, {**settings}), Path(baselines))
    return CheckedPlan(**{one.name: getattr(plan, one.name) for one in fields(plan)})


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CheckedPlan(Plan):
    """The plan that `check` returns, which shows itself."""

    def show(self, *, stream: TextIO | None = None) -> None:
        """Print the rules in counts, each with its exact chances, as `trialwise check` does."""
        from trialwise.pages.run_rules import render_rules

        (sys.stdout if stream is None else stream).write(render_rules(self))


def prepare(
    contract: Contract,
    options: RunOptions,
    baselines: Path,
    *,
    now: datetime | None = None,
    seed: int | None = None,
    measuring: bool = False,
) -> Plan:
    """Resolve a contract with everything that the outside contributes.

    Args:
        contract: With its samplings.
        options: How the run is made.
        baselines: The folder they are kept in.
        now: When a resumed run started: its conditions are those of that time.
        seed: The seed of such a run; else the options', else a new one.
        measuring: Whether a baseline is measured.
    """
    _check_costs(contract, options)
    if options.executor != "local":
        from trialwise.executors.pool_driver import find_opener

        find_opener(options.executor.partition(":")[0])
    scopes = scopes_of(contract)
    # Before the baseline is chosen, which was measured under factors of its own.
    contract = chosen_baselines.with_service_factors(contract)
    now = now or SystemClock().now()
    profile = resolve_covariates(contract.covariates, now, os.environ)
    found, contexts = chosen_baselines.Baselines(), {}
    if not measuring:
        asked = chosen_baselines.BaselineSearch(contract, scopes, profile, options, now)
        found = asked.find(baselines)
        contexts = asked.find_contexts(found, baselines)
    if found.baseline is not None:
        contract = chosen_baselines.fill_gates(contract, found.baseline, scopes)
    return plan_run(
        contract,
        options,
        # 53 bits, so that a reader of JSON that holds numbers as doubles gives back the same seed.
        seed=next(one for one in (seed, options.seed, randbits(53)) if one is not None),
        structure={name: scope.structure for name, scope in scopes.items()},
        fingerprints={
            contract.experiment_of(one): scopes[one.name].sampling_fingerprint
            for one in contract.criteria
        },
        baseline=found.baseline,
        references=found.references,
        contexts=contexts,
        covariates=profile,
        guards=found.guards,
        cache=FileDesignCache(),
        measuring=measuring,
    )


def _check_costs(contract: Contract, options: RunOptions) -> None:
    """Refuse a limit on money where nobody knows what a trial costs."""
    limit = options.budget.usd
    # A budget that never counts anything would look like protection.
    if limit is None or options.cost_per_trial_usd is not None:
        return
    if getattr(contract.service, "tells_cost", None) is False:
        raise errors.DesignRefused((untold_cost(limit),))


class PreparedRun(NamedTuple):
    """A contract that is ready to run, or that was run before."""

    contract: Contract
    plan: Plan
    stored: StoredRun | None = None
    """The stored run to resume."""
    finished: RunRecord | None = None
    """The record of a finished run with the same plan, which is kept."""


def prepare_run(
    contract: Contract, options: RunOptions, space: Workspace, *, measuring: bool = False
) -> PreparedRun:
    """Plan one contract, and find the run to resume where that was asked for.

    Args:
        contract: With its samplings.
        options: How the run is made.
        space: Where runs and baselines are kept, and whether to resume.
        measuring: Whether a baseline is measured.

    Raises:
        DesignRefused: The design cannot support its claim.
        RunNotFound: There is no run to resume, or its plan differs.
    """
    prepared = _prepare_run(contract, options, space, space.earlier_runs(), measuring=measuring)
    _check_resumed([prepared], space)
    return prepared


def prepare_runs(
    wanted: Iterable[tuple[Contract, RunOptions]], space: Workspace
) -> list[PreparedRun]:
    """Plan several contracts; what is wrong with any of them is said before anything runs.

    Raises:
        DesignRefused: With the reasons of every contract that was refused, or cannot be compared.
        RunNotFound: There is no run to resume, or its plan differs.
    """
    several, earlier = list(wanted), space.earlier_runs()
    prepared, reasons = [], []
    for contract, options in several:
        label = f"{contract.name}: " if len(several) > 1 else ""
        try:
            prepared.append(_prepare_run(contract, options, space, earlier))
        except errors.DesignRefused as refused:
            reasons += [f"{label}{reason}" for reason in refused.reasons]
        except (errors.InvalidArgument, errors.BaselineError, errors.ExecutorUnusable) as error:
            reasons.append(f"{label}{error}")
    if reasons:
        raise errors.DesignRefused(tuple(reasons))
    _check_resumed(prepared, space)
    return prepared


def _prepare_run(
    contract: Contract,
    options: RunOptions,
    space: Workspace,
    earlier: EarlierRuns | None,
    *,
    measuring: bool = False,
) -> PreparedRun:
    def make_plan(now: datetime | None, seed: int | None) -> Plan:
        now = now or space.clock.now()
        with redact_with(space.redact):
            return prepare(
                contract, options, space.baselines, now=now, seed=seed, measuring=measuring
            )

    purpose = "measure" if measuring else "test"
    # Replies that are checked again are no new evidence, so that nothing is added up with them.
    store = None if space.scored else space.store
    found = find_earlier(earlier, contract.name, make_plan, purpose, store)
    if found.refused is not None:
        raise found.refused
    return PreparedRun(contract, found.plan, found.stored, found.finished)


def _check_resumed(prepared: Sequence[PreparedRun], space: Workspace) -> None:
    if space.resume and all(one.stored is None for one in prepared):
        names = ", ".join(repr(one.contract.name) for one in prepared)
        older = _describe_older(prepared, space.store)
        nothing = f"no run of {names} is unfinished: there is nothing to resume"
        raise errors.RunNotFound(f"{space.store}: {older or nothing}")


def _describe_older(prepared: Sequence[PreparedRun], store: Path | None) -> str:
    """Name the unfinished runs that a later run has replaced; nothing where there are none."""
    names = {one.contract.name for one in prepared}
    runs = [] if store is None else [one for one in RunStore(store).list() if one.contract in names]
    # The newest one could be resumed if it were of the same purpose, a test or a measurement.
    older = [one.run_id for one in runs[1:] if one.is_unfinished]
    if not older:
        return ""
    listed = f"{', '.join(older)} {'is' if len(older) == 1 else 'are'} unfinished"
    return f"{listed}, but newer than it is {runs[0].run_id}. `--resume {older[0]}` continues it"


def give_own_seed(options: RunOptions, contract: Contract) -> RunOptions:
    """Return the options of one contract of several that are run with one given seed.

    With the same seed contracts would have the same trials, and would pass or fail together. A run
    of the contract alone repeats its trials with the seed that its report names.

    Args:
        options: With the seed that was given for all, if there is one.
        contract: Whose trials are seeded.
    """
    if options.seed is None:
        return options

    return replace(options, seed=derive_seed("contract", options.seed, contract.name))


def take_contract(contract: Contract, given: dict[str, Any]) -> tuple[Contract, RunOptions]:
    """Return the contract with the inputs of a call, and the options that the call gives.

    Args:
        contract: With its samplings, or without.
        given: The arguments of the call, without those of its workspace.
    """
    inputs = given.pop("inputs", None)
    whole = contract if inputs is None else contract.with_inputs(inputs)
    return whole, options_of(given.pop("options", None), given)


def options_of(options: RunOptions | None, settings: Mapping[str, Any]) -> RunOptions:
    """Return the options given whole, changed by those given one by one.

    Raises:
        TypeError: There is no such option.
    """
    known = RunOptions.__dataclass_fields__
    for name, value in settings.items():
        if name not in known:
            raise TypeError(_describe_unknown(name, value, list(known)))
    if options is None:
        return RunOptions(**settings)
    return replace(options, **settings)


def _describe_unknown(name: str, value: object, known: Sequence[str]) -> str:
    from trialwise.catalogue import OPTIONS

    option = next((one for one in OPTIONS if one[0] == name.replace("_", "-")), None)
    if option is not None and option[1].startswith("budget."):
        # Each limit is an option of the command line, and a field of the budget in Python.
        hint = f"write `budget=tw.Budget({option[1].removeprefix('budget.')}={value!r})`"
    else:
        # A unit belongs to the name, as in `timeout_s`.
        begins = [one for one in known if one.startswith(f"{name}_")]
        whole = f"the settings are {', '.join(known)}"
        hint = suggest_name(begins[0] if begins else name, known, whole, quote="'")
    return f"there is no setting {name!r} (given {value!r}); {hint}"
