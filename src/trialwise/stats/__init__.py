"""Pure numbers: what every later part stands on.

Plain functions on counts and sequences that return small frozen values, standard library only. A
name loads its module on first use, so importing this package imports none of them; type checkers
read `__init__.pyi`, and a test holds the two together.
"""

from __future__ import annotations

from trialwise.lazy_exports import lazy_names
from trialwise.stats.toolbox import MODULES as _TOOLBOX

#: Where each public name lives.
# fmt: off
_MODULES = {
    "agreement": (
        "Certification Confusion MeasurementLevel certify_judge cohen_kappa cohen_kappa_interval "
        "confusion_of krippendorff_alpha krippendorff_alpha_interval"
    ),
    "anytime": "EProcess anytime_p_value e_process e_value",
    "autocorrelation": (
        "Alternative AutocorrelationTest autocorrelation_test lag_one_autocorrelation"
    ),
    "binomial": "binomial_cdf binomial_pmf binomial_pmfs binomial_tail",
    "bounded_means": "bounded_mean_interval bounded_variance_interval weighted_mean_interval",
    "cluster_estimators": "ClusterEstimate ClusterMethod Estimand call_weighted prompt_weighted",
    "cluster_stratified": "StratifiedEstimate Stratum stratified",
    "clusters": (
        "ClusterSummary Groups IccMethod design_effect effective_trials intraclass_correlation "
        "is_materially_clustered kish_cluster_size summarise_clusters"
    ),
    "compliance_cutoffs": "ComplianceCutoff compliance_cutoff minimum_trials",
    "confidence_sequences": (
        "BernoulliSequence BoundedSequence anytime_interval bernoulli_confidence_sequence "
        "bounded_confidence_sequence"
    ),
    "error_envelopes": (
        "Envelope Envelopes HorizonFalseAlarm across_suite_envelope envelope "
        "family_wise_independent horizon_false_alarm per_run_alpha_for_horizon type_one_envelopes"
    ),
    "finite": (
        "ExactCorpusRate FiniteCorpusCutoff FiniteCorpusInterval exact_corpus_rate "
        "finite_corpus_cutoff finite_corpus_interval finite_corpus_minimum_trials"
    ),
    "finite_hypergeometric": "hypergeometric_cdf hypergeometric_tail",
    "fisher": "fisher_one_sided fisher_rejects",
    "guardrails": (
        "ChallengeStratum GuardrailBound GuardrailQuantity StratifiedContainment "
        "guardrail_sensitivity guardrail_specificity stratified_containment"
    ),
    "judge_correction": (
        "CorrectedRate CorrectionMethod JudgeAccuracy Rectifier judge_accuracy labels_needed "
        "rectified_rate rectifier rogan_gladen_rate"
    ),
    "judged_decision": "Correction JudgedDecision JudgedSequence OpenBecause decide_judged",
    "latency_baseline": (
        "OrderStatisticBound TIE_POLICY order_statistic_bound order_statistic_false_alarm"
    ),
    "latency_limits": (
        "LatencyLimitDecision LimitVerdict evaluate_latency_limit latency_limit_cutoff"
    ),
    "latency_minimums": (
        "GateOutcome Intent NondegeneracyDecision ThresholdSource existence_minimum "
        "nondegeneracy_decision"
    ),
    "latency_percentiles": (
        "LatencySummary SUPPORTED_PERCENTILES emission_minimum latency_summary "
        "nearest_rank_percentile"
    ),
    "latency_planning": (
        "NondegeneracyPlan PrecedencePlan VerificationGate nondegeneracy_planning "
        "planned_trials_needed precedence_planning verification_gate"
    ),
    "latency_precedence": (
        "ExceedanceCutoff PrecedenceExistence PrecedenceThreshold count_exceedances "
        "exceedance_cutoff precedence_existence precedence_threshold"
    ),
    "multiplicity": (
        "Adjustment EvidenceAdjustment adjust benjamini_hochberg benjamini_yekutieli bonferroni "
        "e_bh holm"
    ),
    "paired": (
        "McNemar PairCounts SignTest mcnemar mid_p minimum_discordant pairs_from_outcomes "
        "sign_test"
    ),
    "paired_interval": "paired_difference_interval",
    "passk": (
        "TaskMean mean_pass_at_k mean_pass_hat_k pass_at_k pass_at_k_interval pass_at_k_naive "
        "pass_hat_k pass_hat_k_interval pass_hat_k_plugin"
    ),
    "precedence": "precedence_cdf precedence_rank",
    "rate_intervals": (
        "clopper_pearson jeffreys rule_of_three wald wilson_interval wilson_lower "
        "wilson_lower_rate wilson_upper zero_failure_bound"
    ),
    "rate_sizing": (
        "ComplianceSizing NormalSizing compliance_sizing minimum_detectable_degradation "
        "minimum_detectable_effect normal_power normal_sizing precision_trials"
    ),
    "refusal": "Refusal",
    "regression_cutoffs": "RegressionCutoff design_false_alarm design_power regression_cutoff",
    "residual_harm": (
        "CombinedBoundaries MissCondition PrevalenceSource ResidualHarm combine_boundaries "
        "residual_harm_bound"
    ),
    "result_types": "Decision Interval Rule Undefined",
    "risk_sizing": (
        "Sizing design_detectable_rate design_power_at design_required_trials "
        "floor_detectable_rate floor_power_at floor_required_trials resolved_power_at "
        "resolved_required_trials"
    ),
    "run_reliability": (
        "ReliabilitySummary confidence_band graceful_degradation recommend_runs "
        "recommend_runs_wilson reliability_decay_curve summarize variance_amplification"
    ),
    "score_difference": "NonInferiority difference_interval noninferiority noninferiority_size",
    "skill_scores": (
        "Flakiness GraderResult MultiTrialMetrics SkillMetrics SkillScore StimulusScore flakiness "
        "multi_trial_metrics skill_score stimulus_score"
    ),
    "trace_shape": "TraceShape",
    "trace_stability": (
        "DEFAULT_GATE DEFAULT_MINIMUM StabilityAcrossRuns StabilityFloors StabilityGate "
        "StabilityReport agent_stability agent_stability_across drift_flags stability_of_shape"
    ),
    "unconditional": "BoschlooTest boschloo boschloo_cutoff boschloo_size",
}
# fmt: on
_EXPORTS, __getattr__, __dir__ = lazy_names(
    __name__, {**_MODULES, **{f"toolbox.{module}": names for module, names in _TOOLBOX.items()}}
)

__all__ = list(_EXPORTS)
