"""Statistics on counts and sequences, with the standard library only.

Every function takes plain numbers and returns a number or a small frozen value. Sources such as
"companion §5.3" are named in `docs/bibliography.md`.

- rates: `rate_intervals`, `compliance_cutoffs` (and what a chosen threshold amounts to), `finite`
  (part of a corpus)
- against a baseline: `regression_cutoffs`, `unconditional` (Boschloo and Fisher); decided after
  every trial: `staged_regression`, by `staged_schemes`; another rule: `margin_tests`
- two conditions on the same inputs: `paired`, with the questions that can be asked; `paired_rules`
  that decide: `split_rules` without a margin, on `paired_designs` that stop early; with a margin
  `margin_rules`, and `betting_rules`;
  amounts, scores and net wins: `signed_ranks`
- `sequential`: designs that stop early; `confidence_sequences`: evidence that needs no plan
- latency: `latency_percentiles`, `latency_baseline`, `latency_planning` (and limits)
- repeated inputs: `cluster_estimators`, `cluster_models`, `cluster_correlation`, `beta_binomial`
- scores: `bounded_means`, `skill_scores`
- judges: `agreement`, `judge_certification`, `judge_correction`, `judged_decision`,
  `judged_tests`, `judged_looks`
- guardrails: `guardrail_bounds`
- agents: `run_reliability` (pass@k and pass^k too), `trace_stability`
- several tests: `multiplicity`, `e_values`
- distributions: `binomial`, with the normal quantile and the search by bisection
- `result_types`: what answers are made of
- `toolbox`: what no verdict uses

A name loads its module on first use, so importing this package imports none of them. Type checkers
read `__init__.pyi`, and a test holds the two together.
"""

from __future__ import annotations

from trialwise.lazy_exports import lazy_names
from trialwise.stats.toolbox import MODULES as _TOOLBOX

#: Where each public name lives.
# fmt: off
_MODULES = {
    "agreement": (
        "Confusion MeasurementLevel cohen_kappa cohen_kappa_interval confusion_of "
        "krippendorff_alpha krippendorff_alpha_interval"
    ),
    "arm_selection": "ArmCounts ArmSelection ChoiceOutcome measure_sign_evidence",
    "cluster_correlation": (
        "Alternative AutocorrelationTest autocorrelation_test lag_one_autocorrelation "
        "ClusterSummary IccMethod design_effect effective_trials intraclass_correlation "
        "is_materially_clustered kish_cluster_size summarise_clusters"
    ),
    "beta_binomial": "BetaBinomialFit FitLocation beta_binomial_fit",
    "binomial": "binomial_cdf binomial_pmf binomial_tail",
    "bounded_means": (
        "bounded_mean_interval bounded_variance_interval weighted_mean_interval MeanDesign "
        "betting_capital betting_mean_interval fewest_scores"
    ),
    "cluster_estimators": (
        "ClusterEstimate ClusterMethod Estimand Groups StratifiedEstimate Stratum call_weighted "
        "prompt_weighted stratum_weighted"
    ),
    "cluster_models": (
        "BootstrapMethod ClusterBootstrap GeeFit ModelMethod cluster_bootstrap fit_gee "
        "modelled_rate"
    ),
    "compliance_cutoffs": (
        "ComplianceCutoff compliance_cutoff minimum_trials ImpliedLevel implied_alpha_of_cutoff "
        "implied_confidence_of_observation implied_confidence_of_threshold"
    ),
    "confidence_sequences": "BoundedSequence anytime_interval anytime_p_value",
    "e_values": (
        "EProcess EvidenceAdjustment calibrated_e_value e_bh e_process e_value fixed_e_value"
    ),
    "finite": (
        "ExactCorpusRate FiniteCorpusCutoff FiniteCorpusInterval exact_corpus_rate "
        "finite_corpus_cutoff finite_corpus_interval"
    ),
    "unconditional": "fisher_one_sided BoschlooTest boschloo",
    "guardrail_bounds": (
        "ChallengeStratum GuardrailBound GuardrailQuantity PrevalenceSource ResidualHarm "
        "StratifiedContainment guardrail_sensitivity guardrail_specificity residual_harm_bound "
        "stratified_containment"
    ),
    "judge_certification": "Certification alpha_lower_bound certify_judge labels_to_certify",
    "judge_correction": (
        "CorrectedRate CorrectionMethod JudgeAccuracy Rectifier judge_accuracy labels_needed "
        "pooled_rate rectified_rate rectifier rogan_gladen_rate"
    ),
    "judged_decision": "JudgedDecision JudgedSequence OpenBecause decide_judged",
    "judged_tests": "Correction JudgedTest",
    "latency_baseline": (
        "ExceedanceCutoff OrderStatisticBound PrecedenceExistence PrecedenceThreshold "
        "TIE_POLICY exceedance_cutoff order_statistic_bound order_statistic_false_alarm "
        "precedence_existence precedence_threshold"
    ),
    "latency_percentiles": (
        "LatencySummary SUPPORTED_PERCENTILES emission_minimum latency_summary "
        "nearest_rank_percentile"
    ),
    "latency_planning": (
        "GateOutcome Intent NondegeneracyDecision PrecedencePlan ThresholdSource "
        "VerificationGate existence_minimum nondegeneracy_decision planned_trials_needed "
        "precedence_planning verification_gate "
        "LatencyLimitDecision LimitVerdict evaluate_latency_limit latency_limit_cutoff"
    ),
    "margin_tests": "NonInferiority difference_interval noninferiority noninferiority_size",
    "multiplicity": "Adjustment adjust",
    "signed_ranks": (
        "NetWinsTest weigh_net_wins MeanShift sign_flip_mean ShiftEstimate hodges_lehmann "
        "select_walsh_average signed_rank_tail"
    ),
    "paired": (
        "PairCounts SignTest minimum_discordant paired_difference_interval pairs_from_outcomes "
        "sign_test PairedCharacteristic PairedOutcome PairedQuestion decide_outcome"
    ),
    "paired_designs": "discordant_rates fixed_discordant plan_paired_design",
    "paired_rules": "PairedConclusion PairedRule plan_paired_rule",
    "run_reliability": (
        "pass_at_k pass_at_k_interval pass_at_k_naive pass_hat_k pass_hat_k_interval "
        "pass_hat_k_plugin ReliabilitySummary confidence_band graceful_degradation "
        "recommend_runs recommend_runs_wilson reliability_decay_curve summarize "
        "variance_amplification"
    ),
    "rate_intervals": (
        "clopper_pearson rule_of_three wald wilson_interval wilson_lower wilson_upper"
    ),
    "regression_cutoffs": (
        "BoschlooRegion boschloo_region RegressionCutoff design_false_alarm design_power "
        "regression_cutoff"
    ),
    "result_types": "Decision Interval Refusal Rule Undefined",
    "skill_scores": (
        "Flakiness GraderResult MultiTrialMetrics SkillMetrics SkillScore StimulusScore "
        "flakiness multi_trial_metrics skill_score stimulus_score"
    ),
    "trace_stability": (
        "TraceShape DEFAULT_GATE DEFAULT_MINIMUM StabilityFloors StabilityGate StabilityReport "
        "drift_flags stability_of_shape"
    ),
}
# fmt: on
_EXPORTS, __getattr__, __dir__ = lazy_names(
    __name__, {**_MODULES, **{f"toolbox.{module}": names for module, names in _TOOLBOX.items()}}
)

__all__ = list(_EXPORTS)
