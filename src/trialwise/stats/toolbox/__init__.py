"""Statistics that no verdict uses, for your own analyses.

Nothing here decides a run.
"""

from __future__ import annotations

from trialwise.lazy_exports import lazy_names

#: Where each public name lives. `trialwise.stats` serves the same names from this table.
# fmt: off
MODULES = {
    "adaptive_sampling": "AdaptiveCharacteristic AdaptiveDesign adaptive_design",
    "beta_binomial": "BetaBinomialFit FitLocation beta_binomial_fit",
    "cluster_resampling": "BootstrapMethod ClusterBootstrap cluster_bootstrap",
    "criterion_streams": (
        "CriterionStream StreamDecision StreamStatus StreamsDecision decide_streams"
    ),
    "cusum": "CusumChart CusumDesign cusum_design",
    "ewma": "EwmaChart EwmaDesign ewma_design",
    "group_sequential": (
        "GroupSequentialDesign LookCharacteristic PeekingError group_sequential_boundaries "
        "peeking_error spend"
    ),
    "implied_levels": (
        "ImpliedLevel implied_alpha_of_cutoff implied_confidence_of_observation "
        "implied_confidence_of_threshold"
    ),
    "predictive": (
        "JEFFREYS PosteriorPredictive PredictiveCutoff posterior_predictive predictive_cutoff "
        "predictive_false_alarm"
    ),
    "shewhart": "ShewhartChart ShewhartDesign shewhart_design",
}
# fmt: on
_EXPORTS, __getattr__, __dir__ = lazy_names(__name__, MODULES)

__all__ = list(_EXPORTS)
