"""Which baseline a run is compared with, which one is shown beside it, and how long it is valid."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from trialwise.errors import BaselineError, InvalidArgument
from trialwise.model.contract import Contract
from trialwise.model.evidence import Guard
from trialwise.model.trial import Analysis
from trialwise.runtime.sealed_factors import seal_stored

if TYPE_CHECKING:
    from datetime import datetime

    from trialwise.model.baseline import Baseline, BaselineReference, Covariate
    from trialwise.model.claim import Claim
    from trialwise.model.contract import Latency, Validity
    from trialwise.model.criterion import Criterion, CriterionScope
    from trialwise.model.options import RunOptions


class Baselines(NamedTuple):
    """The baseline that a run is compared with, and what is wrong with that."""

    baseline: Baseline | None = None
    file: str = ""
    guards: tuple[Guard, ...] = ()

    def references(self, profile: Mapping[str, str], now: datetime) -> dict[str, BaselineReference]:
        """Return what each criterion of the baseline contributes under these conditions.

        Args:
            profile: The conditions of the run.
            now: When it starts.
        """
        if self.baseline is None:
            return {}
        from trialwise.procedures.selection import reference_of

        return {
            name: reference_of(self.baseline, name, profile, file=self.file, now=now)
            for name in self.baseline.criteria
        }


def needs_baseline(criteria: Sequence[Criterion], latency: Latency | None) -> bool:
    """Return whether a criterion or a percentile is compared with a baseline."""
    timed = latency is not None and any(one.limit_s is None for one in latency.constraints)
    return timed or any(map(_is_compared, criteria))


def _is_compared(criterion: Criterion) -> bool:
    """Return whether a criterion is decided against a baseline."""
    return criterion.no_worse_than is not None and not criterion.report_only


def find_contexts(
    contract: Contract,
    scopes: Mapping[str, CriterionScope],
    profile: Mapping[str, str],
    *,
    found: Baselines,
    folder: Path,
    now: datetime,
) -> dict[str, BaselineReference]:
    """Find what was measured of the criteria that a baseline does not decide (§1.5.4).

    It is context and nothing else, so that a baseline that cannot be read is left out.

    Args:
        contract: Whose criteria they are.
        scopes: What each criterion is asked of.
        profile: The conditions of this run.
        found: The baseline that decides other criteria, where there is one.
        folder: The baselines of all contracts.
        now: When the run starts.
    """
    others = [one.name for one in contract.criteria if not _is_compared(one)]
    if not others or not folder.is_dir():
        return {}
    if found.baseline is None:
        from trialwise.procedures.selection import select_baseline
        from trialwise.stores.baselines import BaselineStore

        try:
            kept = BaselineStore(folder).all(contract.name)
            chosen = select_baseline(
                [one for _, one in kept],
                contract=contract.name,
                profile=profile,
                covariates=contract.covariates,
            ).baseline
        except BaselineError:
            return {}
        path = next(path for path, one in kept if one is chosen)
        found = Baselines(chosen, str(path))
    assert found.baseline is not None
    known = found.baseline.criteria
    return {
        name: one
        for name, one in found.references(profile, now).items()
        if name in others and known[name].structure == scopes[name].structure
    }


def date_baselines(
    kept: Sequence[tuple[Path, Baseline]], validity: Validity | None
) -> list[tuple[Path | None, Baseline]]:
    """Return the baselines; one that does not say how long it is valid is valid as declared."""
    kept = [(path, seal_stored(one)) for path, one in kept]
    if validity is None:
        return [*kept]
    given = {"valid_days": float(validity.days), "grace_days": float(validity.grace_days)}
    return [
        (path, replace(one, **given) if one.valid_days is None else one)  # type: ignore[arg-type]
        for path, one in kept
    ]


def choose_baseline(
    kept: Sequence[tuple[Path | None, Baseline]],
    *,
    contract: str,
    criteria: Sequence[Criterion],
    scopes: Mapping[str, CriterionScope],
    claim: Claim,
    covariates: Sequence[Covariate],
    profile: Mapping[str, str],
    factors: Mapping[str, str],
    options: RunOptions,
    now: datetime,
    critical: Collection[str] = (),
) -> Baselines:
    """Select a baseline by its index, and admit it or refuse the run (§8.4.5).

    Args:
        kept: The contract's baselines, with the files that hold them.
        contract: Whose baseline it is.
        criteria: The criteria of the contract; those with `no_worse_than` are compared.
        scopes: What each criterion is asked of.
        claim: What the run is about.
        covariates: The conditions that the contract declares.
        profile: Their values in this run.
        factors: What is under test.
        options: How the run is made.
        now: When it starts.
        critical: Factors that must not have changed, beside those that never may.
    """
    from trialwise.procedures.guardrails import admit, assess_baseline
    from trialwise.procedures.selection import select_baseline

    compared = [one for one in criteria if _is_compared(one)]
    selected = select_baseline(
        [one for _, one in kept],
        contract=contract,
        profile=profile,
        covariates=covariates,
        identifier=options.baseline or _named_baseline(compared),
    )
    guards = assess_baseline(
        selected.baseline,
        scopes={one.name: scopes[one.name] for one in compared},
        claim=claim,
        covariates=covariates,
        profile=profile,
        factors=factors,
        critical=critical,
        now=now,
        analyses={one.name: Analysis(one.analysis or options.analysis) for one in compared},
    )
    admitted = admit(
        (*guards, *selected.warnings),
        intent=options.intent,
        overrides=options.overrides,
        smoke_refuses=options.smoke_refuses,
    )
    path = next(path for path, one in kept if one is selected.baseline)
    return Baselines(selected.baseline, "" if path is None else str(path), admitted)


def _named_baseline(criteria: Sequence[Criterion]) -> str | None:
    """Return the one baseline that criteria name, if they name any: a run has one reference."""
    named = sorted({str(one.no_worse_than) for one in criteria} - {"baseline"})
    if len(named) > 1:
        allowed = "name one baseline for all criteria of a contract"
        raise InvalidArgument("no_worse_than", named, allowed)
    return named[0] if named else None
