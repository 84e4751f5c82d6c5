"""Which baseline a run is compared with: the newest of its own index, else the nearest (§1.5.3).

Choosing says nothing about admissibility: whatever differs is for the guardrails to weigh.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from trialwise.documents.numbers import join_few
from trialwise.errors import BaselineError, InvalidArgument
from trialwise.model.baseline import Baseline, BaselineReference, Covariate, differing_covariates
from trialwise.model.evidence import Guard, Severity
from trialwise.procedures.base import take_over
from trialwise.procedures.guardrails import covariate_severity

#: More than a person reads in an error message.
_MOST_LISTED = 8


class Selected(NamedTuple):
    """A baseline, and what to know of having chosen it."""

    baseline: Baseline
    warnings: tuple[Guard, ...]


def select_baseline(
    candidates: Sequence[Baseline],
    *,
    contract: str,
    profile: Mapping[str, str],
    covariates: Iterable[Covariate] = (),
    identifier: str | None = None,
) -> Selected:
    """Select the baseline with the index of the run, or the one that differs least.

    The graver differences count before the lighter ones, and the newest wins among equals.

    Args:
        candidates: Everything there is; other contracts' baselines are passed over.
        contract: The contract's name.
        profile: The covariates of the run with their values.
        covariates: As the contract declares them: a critical one weighs more.
        identifier: The one to take, whatever its index.

    Raises:
        BaselineError: There is none for the contract, or none of that identifier.
    """
    own = every = [one for one in candidates if one.contract == contract]
    if not own:
        raise BaselineError(_nothing(contract, candidates))
    if identifier is not None:
        own = [one for one in own if one.identifier == identifier]
        if not own:
            raise BaselineError(_not_there(identifier, contract, candidates))
    declared = tuple(covariates)

    def distance(baseline: Baseline) -> tuple[int, ...]:
        names = differing_covariates(baseline.covariates, profile)
        found = [covariate_severity(name, declared) for name in names]
        return tuple(found.count(severity) for severity in Severity)

    # The nearest index, not the newest: a newer baseline of another region is no reference
    # (§1.5.3).
    least = min(map(distance, own))
    nearest = [one for one in own if distance(one) == least]
    # What a refresh has superseded describes the service as it was before it was accepted (§8.5).
    in_force = [one for one in nearest if not any(_supersedes(other, one) for other in nearest)]
    chosen, *others = sorted(in_force, key=_age, reverse=True)
    newer, warnings = [one for one in every if _supersedes(one, chosen)], []
    if newer:
        # Somebody named a baseline that a refresh has superseded (§8.4.4).
        message = (
            f"Baseline {_told(chosen)} is superseded by {_told(max(newer, key=_age))}, which "
            "describes the service as it was accepted later. Name that one, or none."
        )
        warnings.append(Guard(code="superseded", severity=Severity.MINOR, message=message))
    if others:
        message = (
            f"{len(others) + 1} baselines fit equally well; the newest, {_told(chosen)}, was "
            f"taken, not {join_few([*map(_told, others)], _MOST_LISTED)}. Delete what is "
            "superseded, or name the one you mean."
        )
        warnings.append(Guard(code="several-baselines", severity=Severity.MINOR, message=message))
    return Selected(chosen, tuple(warnings))


def reference_of(
    baseline: Baseline,
    criterion: str,
    profile: Mapping[str, str],
    *,
    file: str = "",
    now: datetime | None = None,
) -> BaselineReference:
    """Return what the verdict on a criterion keeps of its baseline (§8.4.3).

    Args:
        baseline: The one selected.
        criterion: A criterion that it holds.
        profile: The covariates of the run.
        file: Where the baseline is kept.
        now: When the run starts.
    """
    # Told at the start of the run: a record must not read differently the day after.
    expires = baseline.expires_at
    left = None if expires is None or now is None else (expires - now) / timedelta(days=1)
    # Counts are copied, so that the verdict can be checked when the file of the baseline is gone.
    found = baseline.criteria.get(criterion)
    if found is None:
        known = ", ".join(map(repr, baseline.criteria))
        raise InvalidArgument("criterion", criterion, f"be one that the baseline holds: {known}")
    return take_over(
        BaselineReference,
        baseline,
        file=file,
        trials=found.trials,
        passed=found.passed,
        inputs=found.inputs,
        repetitions=found.repetitions,
        covariate_match=_match(baseline, profile),
        days_left=left,
    )


def _match(baseline: Baseline, profile: Mapping[str, str]) -> str:
    then, now = baseline.covariates, profile
    differences = [
        f"{name}: {then.get(name, 'not recorded')} then, {now.get(name, 'not declared')} now"
        for name in differing_covariates(baseline.covariates, profile)
    ]
    return "; ".join(differences) or "OK"


def _age(baseline: Baseline) -> tuple[object, ...]:
    # The identifier comes last, so that the choice never depends on the order of a folder.
    return baseline.created_at, baseline.epoch, baseline.identifier


def _supersedes(newer: Baseline, older: Baseline) -> bool:
    """Return whether a refresh began a new reference state of the same index (§8.5)."""
    return newer.epoch > older.epoch and newer.covariates == older.covariates


def _nothing(contract: str, candidates: Sequence[Baseline]) -> str:
    names = sorted({one.contract for one in candidates})
    known = join_few([*map(repr, names)], _MOST_LISTED)
    there = f"There are baselines of {known}." if names else "There is none."
    return (
        f"no baseline of the contract {contract!r}. {there} Measure one first: trialwise measure."
    )


def _not_there(identifier: str, contract: str, candidates: Sequence[Baseline]) -> str:
    elsewhere = [one.contract for one in candidates if one.identifier == identifier]
    own = sorted((one for one in candidates if one.contract == contract), key=_age, reverse=True)
    belongs = f" It is one of {elsewhere[0]!r}." if elsewhere else ""
    return (
        f"no baseline {identifier!r} of the contract {contract!r}.{belongs} There are "
        f"{join_few([*map(_told, own)], _MOST_LISTED)}. Name one of these, or measure a new one."
    )


def _told(baseline: Baseline) -> str:
    return f"{baseline.identifier} (epoch {baseline.epoch}, {baseline.created_at:%Y-%m-%d})"
