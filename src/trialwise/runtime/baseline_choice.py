"""The baseline that a run is compared with: chosen by its conditions, admitted or refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from trialwise.errors import InvalidArgument
from trialwise.model.evidence import Guard

if TYPE_CHECKING:
    from datetime import datetime

    from trialwise.model.baseline import Baseline, BaselineReference
    from trialwise.model.claim import Claim
    from trialwise.model.contract import Latency
    from trialwise.model.covariate import Covariate
    from trialwise.model.criterion import Criterion, CriterionScope
    from trialwise.model.options import RunOptions

__all__ = ["Baselines", "choose_baseline", "needs_baseline"]


class Baselines(NamedTuple):
    """The baseline that a run is compared with, and what is wrong with that."""

    baseline: Baseline | None = None
    file: str = ""
    guards: tuple[Guard, ...] = ()

    def references(self, profile: Mapping[str, str]) -> dict[str, BaselineReference]:
        """What each criterion of the baseline contributes, under the conditions of this run."""
        if self.baseline is None:
            return {}
        from trialwise.procedures.selection import reference_of

        return {
            name: reference_of(self.baseline, name, profile, file=self.file)
            for name in self.baseline.criteria
        }


def needs_baseline(criteria: Sequence[Criterion], latency: Latency | None) -> bool:
    """Whether a criterion or a percentile is compared with a baseline."""
    timed = latency is not None and any(one.limit_s is None for one in latency.constraints)
    return timed or any(one.no_worse_than is not None for one in criteria)


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
) -> Baselines:
    """Select a baseline by its index, and admit it or refuse the run (§8.4.5).

    Args:
        kept: The contract's baselines, with the files that hold them.
        contract: Whose baseline it is.
        criteria: Of the contract; those with `no_worse_than` are compared.
        scopes: What each criterion is asked of.
        claim: What the run is about.
        covariates: The conditions that the contract declares.
        profile: Their values in this run.
        factors: What is under test.
        options: How the run is made.
        now: When it starts.
    """
    from trialwise.procedures.guardrails import admit, assess_baseline
    from trialwise.procedures.selection import select_baseline

    compared = [one for one in criteria if one.no_worse_than is not None]
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
        now=now,
        analysis=options.analysis,
    )
    admitted = admit(
        (*guards, *selected.warnings), intent=options.intent, overrides=options.overrides
    )
    path = next(path for path, one in kept if one is selected.baseline)
    return Baselines(selected.baseline, "" if path is None else str(path), admitted)


def _named_baseline(criteria: Sequence[Criterion]) -> str | None:
    """The one baseline that criteria name, if they name any: a run has one reference."""
    named = sorted({str(one.no_worse_than) for one in criteria} - {"baseline"})
    if len(named) > 1:
        allowed = "name one baseline for all criteria of a contract"
        raise InvalidArgument("no_worse_than", named, allowed)
    return named[0] if named else None
