"""How many trials a contract's test has, and what its latency block comes to at that size."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from trialwise.contrib.importers.mavai.contract_file import PERCENTILES, ContractRead, CriterionRead
from trialwise.decimals import complement
from trialwise.stats.compliance_cutoffs import compliance_cutoff
from trialwise.suite.suite_problems import Problems

__all__ = ["Sizes", "latency_of", "trials_of"]

#: The trials of a smoke test in baseltest.
_SMOKE = 5
#: The most trials that it runs if no number is given.
_SILENT = 100
_LEVELS = dict(zip(PERCENTILES, (0.50, 0.90, 0.95, 0.99), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Numbers of trials."""

    for_all: int | None
    """The setting for every criterion alike."""
    for_thresholds: int | None = None
    """Of the criteria with a threshold, where the others are sized by their baseline."""
    notes: list[str] = field(default_factory=list)

    def for_criterion(self, criterion: CriterionRead) -> int | None:
        """A criterion's own number."""
        return None if criterion.threshold is None else self.for_thresholds


def trials_of(contract: ContractRead, samples: int | None, problems: Problems) -> Sizes:
    """The number of trials: as asked, or the fewest that can show every threshold.

    Args:
        contract: Which.
        samples: The number asked for.
        problems: Where to say that it is too small.
    """
    needed = {one.name: _minimum(one, contract) for one in contract.criteria if one.threshold}
    least = max(needed.values(), default=0)
    if contract.is_smoke:
        return Sizes(for_all=samples or _SMOKE)
    if samples is not None:
        if samples < least:
            name = next(one for one, number in needed.items() if number == least)
            message = f"`{name}` needs at least {least} samples to be shown, not {samples}"
            problems.add(contract.service_node, message)
        return Sizes(for_all=samples)
    if not least:
        return Sizes(for_all=None)
    notes = []
    if least > _SILENT:
        notes.append(
            f"{least} trials are the fewest that can show every threshold; baseltest asks for "
            f"--samples where they are more than {_SILENT}."
        )
    else:
        notes.append(
            f"{least} trials are the fewest that can show every threshold, and PASS only without "
            "a failure; that is what baseltest runs where no number is given."
        )
    if len(needed) == len(contract.criteria):
        return Sizes(for_all=least, notes=notes)
    return Sizes(for_all=None, for_thresholds=least, notes=notes)


def _minimum(criterion: CriterionRead, contract: ContractRead) -> int:
    assert criterion.threshold is not None
    alpha = complement(contract.confidence)
    return compliance_cutoff(criterion.threshold, 1, alpha=alpha, rule="fisher").minimum_trials


def latency_of(contract: ContractRead, trials: int | None) -> tuple[dict[str, Any], list[str]]:
    """The latency block of a suite, and what to say about it."""
    read = contract.latency
    if read is None:
        return {}, []
    confidence = contract.confidence if read.confidence is None else read.confidence
    block: dict[str, Any] = {name: f"{limit}ms" for name, limit in read.limits_ms.items()}
    if read.empirical:
        block["baseline"] = list(read.empirical)
    # There a breach FAILs the test, whatever its criteria say.
    block["enforced"] = True
    if confidence != 0.95:
        block["confidence"] = confidence
    notes = []
    if read.origin or read.ref:
        where = " ".join(filter(None, (read.origin, read.ref)))
        notes.append(
            f"`latency` (line {read.line}) comes from {where}, which a suite does not record."
        )
    notes += _list_unsupported(contract, trials, confidence, list(block))
    return block, notes


def _list_unsupported(
    contract: ContractRead, trials: int | None, confidence: float, names: list[str]
) -> list[str]:
    """List the percentiles that so few trials cannot decide."""
    from trialwise.stats.latency_planning import verification_gate

    read = contract.latency
    assert read is not None
    if trials is None or contract.is_smoke:
        return []
    rate = min((one.threshold for one in contract.criteria if one.threshold), default=1.0)
    gates = [
        verification_gate(trials, rate, _LEVELS[name], confidence=confidence)
        for name in (*names, *read.empirical)
        if name in _LEVELS
    ]
    if all(gate.feasible for gate in gates):
        return []
    needed = [gate.planned_trials_needed for gate in gates]
    most = max((one for one in needed if isinstance(one, int)), default=None)
    way_out = "" if most is None else f" About {most} trials would do."
    note = (
        f"{trials} trials cannot decide every percentile of `latency` (line {read.line}): the "
        f"there a test ends INCONCLUSIVE, here the run is refused.{way_out}"
    )
    return [note]
