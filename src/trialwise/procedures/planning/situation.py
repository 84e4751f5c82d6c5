"""What the planners of all procedures need to know, and where they say what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trialwise.model.claim import Claim
from trialwise.model.criterion import Criterion, Origin
from trialwise.model.evidence import Threshold
from trialwise.model.options import RunOptions
from trialwise.model.sampling import Sampling
from trialwise.model.verdict import Intent

if TYPE_CHECKING:
    from trialwise.model.baseline import Baseline, BaselineReference
    from trialwise.stats.sequential import DesignCache

__all__ = ["Situation", "origin_of", "threshold_of"]


@dataclass(slots=True, kw_only=True)
class Situation:
    """What the criteria of one experiment are planned in, and what was found wrong on the way."""

    sampling: Sampling
    claim: Claim
    options: RunOptions
    baseline: Baseline | None = None
    references: Mapping[str, BaselineReference] = field(default_factory=dict)
    """What verdicts will keep of the baseline, by criterion."""
    cache: DesignCache | None = None
    measuring: bool = False
    refusals: list[str] = field(default_factory=list)

    def refuse(self, criterion: Criterion, reason: str) -> None:
        """Note why a criterion's design cannot support its claim."""
        self.refusals.append(f"{criterion.name}: {reason}")

    def fixed_trials(self, criterion: Criterion, experiment: str) -> int | None:
        """The number of trials somebody fixed, if anybody did."""
        if criterion.trials is not None:
            return criterion.trials
        return self.options.trials_of(experiment)

    @property
    def verifies(self) -> bool:
        """Whether the run is to be evidence."""
        return self.options.intent is Intent.VERIFICATION


def threshold_of(criterion: Criterion, *, alternative: float | None = None) -> Threshold:
    """What the criterion requires, and who says so."""
    return Threshold(
        origin=origin_of(criterion),
        contract_ref=criterion.contract_ref,
        required_rate=criterion.at_least,
        alternative_rate=alternative,
    )


def origin_of(criterion: Criterion) -> Origin:
    """Who set its threshold."""
    return Origin(criterion.origin or Origin.UNSPECIFIED)
