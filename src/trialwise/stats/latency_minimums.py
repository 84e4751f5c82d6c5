"""How many latencies a claim takes: the two minimums that are easily confused (§12.5.2).

*Non-degeneracy*: is the empirical percentile more than an extreme of the sample
(`latency.emission_minimum`)? *Existence*: is there an observed latency that bounds the true
percentile from above? The second takes more trials, and neither stands in for the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, SupportsIndex, TypeAlias

from trialwise.decimals import complement
from trialwise.stats.compliance_cutoffs import minimum_trials
from trialwise.stats.latency_percentiles import check_percentile, emission_minimum
from trialwise.validation import require_choice, require_count, require_open_rate

__all__ = [
    "GateOutcome",
    "Intent",
    "NondegeneracyDecision",
    "ThresholdSource",
    "existence_minimum",
    "nondegeneracy_decision",
]

Intent: TypeAlias = Literal["VERIFICATION", "SMOKE"]
INTENTS: tuple[Intent, ...] = ("VERIFICATION", "SMOKE")

ThresholdSource: TypeAlias = Literal["baseline-derived", "explicit"]
_SOURCES: tuple[ThresholdSource, ...] = ("baseline-derived", "explicit")

GateOutcome: TypeAlias = Literal["DECIDED", "INCONCLUSIVE", "INDICATIVE"]
"""Decided by its rule; not to be decided; or shown as a direction and no more (§12.5.4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NondegeneracyDecision:
    """What the number of latencies that a run really gave allows."""

    test_trials: int
    percentile: float
    intent: Intent
    threshold_source: ThresholdSource
    minimum_trials: int

    @property
    def applies(self) -> bool:
        """Whether the gate governs: an explicit limit counts latencies and needs no percentile."""
        return self.threshold_source == "baseline-derived"

    @property
    def degenerate(self) -> bool:
        """Whether the empirical percentile is an extreme of the sample, by the emission minimum."""
        return self.test_trials < self.minimum_trials

    @property
    def outcome(self) -> GateOutcome:
        """What becomes of the assertion, enforced or advisory alike."""
        if not (self.applies and self.degenerate):
            return "DECIDED"
        return "INCONCLUSIVE" if self.intent == "VERIFICATION" else "INDICATIVE"


def existence_minimum(percentile: float, *, confidence: float = 0.95) -> int:
    """The fewest latencies that bound a percentile from above: the smallest n with pⁿ ≤ alpha.

    With fewer, all of them lie below the true percentile with probability above alpha.

    Parameters
    ----------
    percentile, confidence : float
        Strictly between 0 and 1; alpha is 1 − confidence in decimals.

    References
    ----------
    Wilks (1941); companion §12.5.2.1.

    Examples
    --------
    >>> [existence_minimum(p) for p in (0.5, 0.9, 0.95, 0.99, 0.999)]
    [5, 29, 59, 299, 2995]
    """
    p = check_percentile(percentile)
    level = complement(require_open_rate("confidence", confidence))
    return minimum_trials(p, alpha=level, rule="exact")


def nondegeneracy_decision(
    test_trials: SupportsIndex,
    percentile: float,
    *,
    intent: Intent = "VERIFICATION",
    threshold_source: ThresholdSource = "baseline-derived",
) -> NondegeneracyDecision:
    """What becomes of a latency assertion after a run with so many successful trials.

    Below the emission minimum a baseline-derived assertion is INCONCLUSIVE under verification and
    INDICATIVE under smoke (§12.5.4); an explicit limit is decided by its own rule.

    Parameters
    ----------
    test_trials : int
        Successful trials of the run, at least 0.
    percentile : {0.5, 0.9, 0.95, 0.99}
        The level that is asserted.
    intent : {"VERIFICATION", "SMOKE"}
        What the run is for.
    threshold_source : {"baseline-derived", "explicit"}
        Where the threshold comes from.

    Examples
    --------
    >>> nondegeneracy_decision(99, 0.99).outcome
    'INCONCLUSIVE'
    """
    minimum = emission_minimum(percentile)
    return NondegeneracyDecision(
        test_trials=require_count("test_trials", test_trials),
        percentile=float(percentile),
        intent=require_choice("intent", intent, INTENTS),
        threshold_source=require_choice("threshold_source", threshold_source, _SOURCES),
        minimum_trials=minimum,
    )
