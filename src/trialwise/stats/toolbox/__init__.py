"""Statistics that no verdict uses, for your own analyses.

No verdict uses anything from here; commands that plan and the full analysis do. `trialwise.stats`
serves the same names.

Comparing with a baseline:

- `mcnemar_forms`: McNemar's test with its mid-p and chi-square forms, to compare with other tools
- `other_paired_intervals`: Newcombe's and Wald's intervals, to compare with other tools
- `predictive`: the posterior predictive rule, which reports show beside the verdict
- `fisher_decision`: decide one two-by-two table by Fisher's test, exactly at the boundary
- `boschloo_rules`: Boschloo's unconditional test as a rule for a planned test
- `precedence_law`: the distribution behind the latency rule and Fisher's test

Sizing a test:

- `rate_sizing`, `risk_sizing`: trials for a wanted precision or power, without and with a baseline
- `judged_planning`: how many labels and trials a judged rate takes
- `choice_forecast`: how a choice among several arms ends, simulated
- `detectable_drops`: the smallest drop that a number of trials detects
- `planned_designs`: power and detectable rate of a regression test that is only planned
- `nondegeneracy`: the trials from which on a latency percentile is more than the maximum

Early stopping and many looks:

- `group_sequential`: boundaries for a few planned looks, and the error of peeking without them
- `running_intervals`: intervals that are right after every trial at once
- `adaptive_sampling`: a sequential test that chooses the size of each batch, for few rounds
- `concurrent_rounds`: what trials that are started together cost a sequential test
- `stopping_bias`: how wrong the usual estimate and interval are after an early stop
- `criterion_streams`: several criteria on the same trials, each with its own error

Many runs:

- `shewhart`, `cusum`, `ewma`: control charts for a rate that is measured run after run; Shewhart
  for large sudden changes, CUSUM for small lasting ones, EWMA for a smoothed level
- `run_lengths`: how long such charts run before they signal
- `error_envelopes`: nominal levels of several tests and of a horizon of runs, added up
- `family_errors`: error rates of several contracts, independent tests, or a horizon of runs

Repeated inputs and many tasks:

- `task_means`: pass@k and pass^k over many tasks
- `stability_across_runs`: the stability of an agent over traces that another tool recorded

Distributions and intervals:

- `binomial_weights`: all probabilities of a binomial distribution
- `hypergeometric_law`: trials drawn from a finite corpus
- `blaker_intervals`: shorter intervals after an early stop, which may disagree with a verdict
- `boundary_stacks`: the probability that several guardrails miss together
- `other_intervals`: the Jeffreys interval, and Wilson's bound around a rate
"""

from __future__ import annotations

from trialwise.lazy_exports import lazy_names

#: Where each public name lives. `trialwise.stats` serves the same names from this table.
# fmt: off
MODULES = {
    "adaptive_sampling": "AdaptiveCharacteristic AdaptiveDesign adaptive_design",
    "binomial_weights": "binomial_pmfs",
    "boschloo_rules": "boschloo_cutoff boschloo_size",
    "boundary_stacks": "CombinedBoundaries MissCondition combine_boundaries",
    "choice_forecast": "ChoiceForecast forecast_choice",
    "concurrent_rounds": "RoundCharacteristic Standing chance_needed round_characteristic standing",
    "criterion_streams": (
        "CriterionStream StreamDecision StreamStatus StreamsDecision decide_streams"
    ),
    "cusum": "CusumChart CusumDesign cusum_design",
    "detectable_drops": "minimum_detectable_degradation minimum_detectable_effect normal_power",
    "error_envelopes": (
        "Envelope Envelopes HorizonFalseAlarm envelope horizon_false_alarm type_one_envelopes"
    ),
    "ewma": "EwmaChart EwmaDesign ewma_design",
    "family_errors": "across_suite_envelope family_wise_independent per_run_alpha_for_horizon",
    "fisher_decision": "fisher_rejects",
    "group_sequential": (
        "GroupSequentialDesign LookCharacteristic PeekingError group_sequential_boundaries "
        "peeking_error spend"
    ),
    "hypergeometric_law": (
        "finite_corpus_minimum_trials hypergeometric_cdf hypergeometric_tail"
    ),
    "judged_planning": "ExpectedJudge LabelPlan find_cheapest judged_power plan_labels",
    "mcnemar_forms": "McNemar mcnemar",
    "nondegeneracy": "NondegeneracyPlan nondegeneracy_planning",
    "other_intervals": "jeffreys wilson_lower_rate",
    "other_paired_intervals": "other_paired_interval",
    "planned_designs": (
        "design_detectable_rate design_power_at design_required_trials floor_detectable_rate "
        "floor_power_at resolved_power_at"
    ),
    "precedence_law": "count_exceedances precedence_cdf precedence_rank",
    "predictive": (
        "JEFFREYS PosteriorPredictive PredictiveCutoff posterior_predictive predictive_cutoff "
        "predictive_false_alarm"
    ),
    "rate_sizing": "ComplianceSizing NormalSizing compliance_sizing normal_sizing precision_trials",
    "risk_sizing": "Sizing exact_required_trials floor_required_trials resolved_required_trials",
    "running_intervals": (
        "BernoulliSequence bernoulli_confidence_sequence bounded_confidence_sequence"
    ),
    "shewhart": "ShewhartChart ShewhartDesign shewhart_design",
    "stability_across_runs": "StabilityAcrossRuns agent_stability agent_stability_across",
    "stopping_bias": "estimate_bias naive_interval",
    "task_means": "TaskMean mean_pass_at_k mean_pass_hat_k",
}
# fmt: on
_EXPORTS, __getattr__, __dir__ = lazy_names(__name__, MODULES)

__all__ = list(_EXPORTS)
