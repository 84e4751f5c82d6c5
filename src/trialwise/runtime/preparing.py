"""Everything a run needs before its first trial: its plan, its service, its baseline."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from trialwise.engine.ports import Service, SystemClock
from trialwise.errors import InvalidArgument
from trialwise.model.contract import Contract
from trialwise.model.covariate import resolve_covariates
from trialwise.model.evidence import Guard
from trialwise.model.options import RunOptions
from trialwise.model.plan import Plan
from trialwise.model.run_settings import RunSettings
from trialwise.procedures.planning.run_plan import plan_run
from trialwise.runtime.settings import options_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from trialwise.model.baseline import Baseline
    from trialwise.model.criterion import Criterion, CriterionScope
    from trialwise.stats.sequential.catalogue import DesignCache

__all__ = ["Baselines", "open_service", "plan", "prepare"]


class Baselines(NamedTuple):
    """The baseline a run is held against, and what is wrong with that."""

    baseline: Baseline | None = None
    file: str = ""
    guards: tuple[Guard, ...] = ()


def plan(
    contract: Contract,
    *,
    inputs: Any = None,
    options: RunOptions | None = None,
    baselines: str | Path = "baselines",
    **settings: Unpack[RunSettings],
) -> Plan:
    """What `run` would do, without a trial: its sizes, its rules in counts, its seed.

    Raises:
        DesignRefused: The design cannot support its claim.

    >>> import trialwise as tw
    >>> criterion = tw.Criterion("answers", tw.contains("555"), at_least=0.9)
    >>> contract = tw.Contract("sums", lambda question: "555", [criterion])
    >>> tw.plan(contract, inputs=["What is 15 * 37?"], trials=50).criteria[0].cutoff
    49
    """
    whole = contract if inputs is None else contract.with_inputs(inputs)
    return prepare(whole, options_of(options, settings), Path(baselines))


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
        now: When the run started, where it is gone on with: its conditions are those of then.
        seed: Of such a run; else the options', else a new one.
        measuring: Whether a baseline is measured.
    """
    from trialwise.checks.criterion_scopes import scopes_of

    scopes = scopes_of(contract)
    now = now or SystemClock().now()
    profile = resolve_covariates(contract.covariates, now, os.environ)
    found = Baselines()
    if not measuring and _needs_baseline(contract):
        from trialwise.stores.baselines import BaselineStore

        kept = BaselineStore(baselines).all(contract.name)
        found = _find_baseline(contract, options, kept, scopes, now)
    references = {}
    if found.baseline is not None:
        from trialwise.procedures.selection import reference_of

        references = {
            name: reference_of(found.baseline, name, profile, file=found.file)
            for name in found.baseline.criteria
        }
    return plan_run(
        contract,
        options,
        seed=_seed(options) if seed is None else seed,
        structure={name: scope.structure for name, scope in scopes.items()},
        fingerprints={
            contract.experiment_of(one): scopes[one.name].sampling_fingerprint
            for one in contract.criteria
        },
        baseline=found.baseline,
        references=references,
        covariates=profile,
        guards=found.guards,
        cache=design_cache(),
        measuring=measuring,
    )


def _needs_baseline(contract: Contract) -> bool:
    latency = contract.latency
    timed = latency is not None and any(one.limit_s is None for one in latency.constraints)
    return timed or any(one.no_worse_than is not None for one in contract.criteria)


def _find_baseline(
    contract: Contract,
    options: RunOptions,
    kept: Sequence[tuple[Path, Baseline]],
    scopes: Mapping[str, CriterionScope],
    now: datetime,
) -> Baselines:
    """Select a baseline by its index, and admit it or refuse the run (§8.4.5)."""
    from trialwise.procedures.guardrails import admit, assess_baseline
    from trialwise.procedures.selection import select_baseline

    profile = resolve_covariates(contract.covariates, now, os.environ)
    compared = [one for one in contract.criteria if one.no_worse_than is not None]
    selected = select_baseline(
        [one for _, one in kept],
        contract=contract.name,
        profile=profile,
        covariates=contract.covariates,
        identifier=options.baseline or named_baseline(compared),
    )
    guards = assess_baseline(
        selected.baseline,
        scopes={one.name: scopes[one.name] for one in compared},
        claim=contract.claim,
        covariates=contract.covariates,
        profile=profile,
        factors=contract.factors,
        now=now,
        analysis=options.analysis,
    )
    admitted = admit(
        (*guards, *selected.warnings), intent=options.intent, overrides=options.overrides
    )
    file = next(str(path) for path, one in kept if one is selected.baseline)
    return Baselines(selected.baseline, file, admitted)


def named_baseline(criteria: Sequence[Criterion]) -> str | None:
    """The one baseline that criteria name, if they name any: a run has one reference state."""
    named = sorted({str(one.no_worse_than) for one in criteria} - {"baseline"})
    if len(named) > 1:
        allowed = "name one baseline for all criteria of a contract"
        raise InvalidArgument("no_worse_than", named, allowed)
    return named[0] if named else None


def open_service(contract: Contract, options: RunOptions) -> Service:
    """The contract's service; a function becomes one.

    A sync function is called in place where nothing else has to happen meanwhile, and in threads
    where several trials run side by side or one may have to be given up.
    """
    given = contract.service
    if callable(getattr(given, "call", None)) and callable(getattr(given, "aclose", None)):
        service: Service = given
        return service
    from trialwise.services import CallableService

    in_thread = options.concurrency > 1 or options.timeout_s is not None
    return CallableService(given, in_thread=in_thread)


def _seed(options: RunOptions) -> int:
    if options.seed is not None:
        return options.seed
    from secrets import randbits

    return randbits(53)


def design_cache() -> DesignCache:
    """Where sequential designs are kept between runs."""
    from trialwise.stores.designs import FileDesignCache

    return FileDesignCache.default()
