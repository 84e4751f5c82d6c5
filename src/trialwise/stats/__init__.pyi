from trialwise.stats.agreement import Confusion as Confusion
from trialwise.stats.agreement import MeasurementLevel as MeasurementLevel
from trialwise.stats.agreement import cohen_kappa as cohen_kappa
from trialwise.stats.agreement import cohen_kappa_interval as cohen_kappa_interval
from trialwise.stats.agreement import confusion_of as confusion_of
from trialwise.stats.agreement import krippendorff_alpha as krippendorff_alpha
from trialwise.stats.agreement import krippendorff_alpha_interval as krippendorff_alpha_interval
from trialwise.stats.arm_selection import ArmCounts as ArmCounts
from trialwise.stats.arm_selection import ArmSelection as ArmSelection
from trialwise.stats.arm_selection import ChoiceOutcome as ChoiceOutcome
from trialwise.stats.arm_selection import measure_sign_evidence as measure_sign_evidence
from trialwise.stats.beta_binomial import BetaBinomialFit as BetaBinomialFit
from trialwise.stats.beta_binomial import FitLocation as FitLocation
from trialwise.stats.beta_binomial import beta_binomial_fit as beta_binomial_fit
from trialwise.stats.binomial import binomial_cdf as binomial_cdf
from trialwise.stats.binomial import binomial_pmf as binomial_pmf
from trialwise.stats.binomial import binomial_tail as binomial_tail
from trialwise.stats.bounded_means import MeanDesign as MeanDesign
from trialwise.stats.bounded_means import betting_capital as betting_capital
from trialwise.stats.bounded_means import betting_mean_interval as betting_mean_interval
from trialwise.stats.bounded_means import bounded_mean_interval as bounded_mean_interval
from trialwise.stats.bounded_means import bounded_variance_interval as bounded_variance_interval
from trialwise.stats.bounded_means import fewest_scores as fewest_scores
from trialwise.stats.bounded_means import weighted_mean_interval as weighted_mean_interval
from trialwise.stats.cluster_correlation import Alternative as Alternative
from trialwise.stats.cluster_correlation import AutocorrelationTest as AutocorrelationTest
from trialwise.stats.cluster_correlation import ClusterSummary as ClusterSummary
from trialwise.stats.cluster_correlation import IccMethod as IccMethod
from trialwise.stats.cluster_correlation import autocorrelation_test as autocorrelation_test
from trialwise.stats.cluster_correlation import design_effect as design_effect
from trialwise.stats.cluster_correlation import effective_trials as effective_trials
from trialwise.stats.cluster_correlation import intraclass_correlation as intraclass_correlation
from trialwise.stats.cluster_correlation import is_materially_clustered as is_materially_clustered
from trialwise.stats.cluster_correlation import kish_cluster_size as kish_cluster_size
from trialwise.stats.cluster_correlation import lag_one_autocorrelation as lag_one_autocorrelation
from trialwise.stats.cluster_correlation import summarise_clusters as summarise_clusters
from trialwise.stats.cluster_estimators import ClusterEstimate as ClusterEstimate
from trialwise.stats.cluster_estimators import ClusterMethod as ClusterMethod
from trialwise.stats.cluster_estimators import Estimand as Estimand
from trialwise.stats.cluster_estimators import Groups as Groups
from trialwise.stats.cluster_estimators import StratifiedEstimate as StratifiedEstimate
from trialwise.stats.cluster_estimators import Stratum as Stratum
from trialwise.stats.cluster_estimators import call_weighted as call_weighted
from trialwise.stats.cluster_estimators import prompt_weighted as prompt_weighted
from trialwise.stats.cluster_estimators import stratum_weighted as stratum_weighted
from trialwise.stats.cluster_models import BootstrapMethod as BootstrapMethod
from trialwise.stats.cluster_models import ClusterBootstrap as ClusterBootstrap
from trialwise.stats.cluster_models import GeeFit as GeeFit
from trialwise.stats.cluster_models import ModelMethod as ModelMethod
from trialwise.stats.cluster_models import cluster_bootstrap as cluster_bootstrap
from trialwise.stats.cluster_models import fit_gee as fit_gee
from trialwise.stats.cluster_models import modelled_rate as modelled_rate
from trialwise.stats.compliance_cutoffs import ComplianceCutoff as ComplianceCutoff
from trialwise.stats.compliance_cutoffs import ImpliedLevel as ImpliedLevel
from trialwise.stats.compliance_cutoffs import compliance_cutoff as compliance_cutoff
from trialwise.stats.compliance_cutoffs import implied_alpha_of_cutoff as implied_alpha_of_cutoff
from trialwise.stats.compliance_cutoffs import (
    implied_confidence_of_observation as implied_confidence_of_observation,
)
from trialwise.stats.compliance_cutoffs import (
    implied_confidence_of_threshold as implied_confidence_of_threshold,
)
from trialwise.stats.compliance_cutoffs import minimum_trials as minimum_trials
from trialwise.stats.confidence_sequences import BoundedSequence as BoundedSequence
from trialwise.stats.confidence_sequences import anytime_interval as anytime_interval
from trialwise.stats.confidence_sequences import anytime_p_value as anytime_p_value
from trialwise.stats.e_values import EProcess as EProcess
from trialwise.stats.e_values import EvidenceAdjustment as EvidenceAdjustment
from trialwise.stats.e_values import calibrated_e_value as calibrated_e_value
from trialwise.stats.e_values import e_bh as e_bh
from trialwise.stats.e_values import e_process as e_process
from trialwise.stats.e_values import e_value as e_value
from trialwise.stats.e_values import fixed_e_value as fixed_e_value
from trialwise.stats.finite import ExactCorpusRate as ExactCorpusRate
from trialwise.stats.finite import FiniteCorpusCutoff as FiniteCorpusCutoff
from trialwise.stats.finite import FiniteCorpusInterval as FiniteCorpusInterval
from trialwise.stats.finite import exact_corpus_rate as exact_corpus_rate
from trialwise.stats.finite import finite_corpus_cutoff as finite_corpus_cutoff
from trialwise.stats.finite import finite_corpus_interval as finite_corpus_interval
from trialwise.stats.guardrail_bounds import ChallengeStratum as ChallengeStratum
from trialwise.stats.guardrail_bounds import GuardrailBound as GuardrailBound
from trialwise.stats.guardrail_bounds import GuardrailQuantity as GuardrailQuantity
from trialwise.stats.guardrail_bounds import PrevalenceSource as PrevalenceSource
from trialwise.stats.guardrail_bounds import ResidualHarm as ResidualHarm
from trialwise.stats.guardrail_bounds import StratifiedContainment as StratifiedContainment
from trialwise.stats.guardrail_bounds import guardrail_sensitivity as guardrail_sensitivity
from trialwise.stats.guardrail_bounds import guardrail_specificity as guardrail_specificity
from trialwise.stats.guardrail_bounds import residual_harm_bound as residual_harm_bound
from trialwise.stats.guardrail_bounds import stratified_containment as stratified_containment
from trialwise.stats.judge_certification import Certification as Certification
from trialwise.stats.judge_certification import alpha_lower_bound as alpha_lower_bound
from trialwise.stats.judge_certification import certify_judge as certify_judge
from trialwise.stats.judge_certification import labels_to_certify as labels_to_certify
from trialwise.stats.judge_correction import CorrectedRate as CorrectedRate
from trialwise.stats.judge_correction import CorrectionMethod as CorrectionMethod
from trialwise.stats.judge_correction import JudgeAccuracy as JudgeAccuracy
from trialwise.stats.judge_correction import Rectifier as Rectifier
from trialwise.stats.judge_correction import judge_accuracy as judge_accuracy
from trialwise.stats.judge_correction import labels_needed as labels_needed
from trialwise.stats.judge_correction import pooled_rate as pooled_rate
from trialwise.stats.judge_correction import rectified_rate as rectified_rate
from trialwise.stats.judge_correction import rectifier as rectifier
from trialwise.stats.judge_correction import rogan_gladen_rate as rogan_gladen_rate
from trialwise.stats.judged_decision import JudgedDecision as JudgedDecision
from trialwise.stats.judged_decision import JudgedSequence as JudgedSequence
from trialwise.stats.judged_decision import OpenBecause as OpenBecause
from trialwise.stats.judged_decision import decide_judged as decide_judged
from trialwise.stats.judged_tests import Correction as Correction
from trialwise.stats.judged_tests import JudgedTest as JudgedTest
from trialwise.stats.latency_baseline import TIE_POLICY as TIE_POLICY
from trialwise.stats.latency_baseline import ExceedanceCutoff as ExceedanceCutoff
from trialwise.stats.latency_baseline import OrderStatisticBound as OrderStatisticBound
from trialwise.stats.latency_baseline import PrecedenceExistence as PrecedenceExistence
from trialwise.stats.latency_baseline import PrecedenceThreshold as PrecedenceThreshold
from trialwise.stats.latency_baseline import exceedance_cutoff as exceedance_cutoff
from trialwise.stats.latency_baseline import order_statistic_bound as order_statistic_bound
from trialwise.stats.latency_baseline import (
    order_statistic_false_alarm as order_statistic_false_alarm,
)
from trialwise.stats.latency_baseline import precedence_existence as precedence_existence
from trialwise.stats.latency_baseline import precedence_threshold as precedence_threshold
from trialwise.stats.latency_percentiles import SUPPORTED_PERCENTILES as SUPPORTED_PERCENTILES
from trialwise.stats.latency_percentiles import LatencySummary as LatencySummary
from trialwise.stats.latency_percentiles import emission_minimum as emission_minimum
from trialwise.stats.latency_percentiles import latency_summary as latency_summary
from trialwise.stats.latency_percentiles import nearest_rank_percentile as nearest_rank_percentile
from trialwise.stats.latency_planning import GateOutcome as GateOutcome
from trialwise.stats.latency_planning import Intent as Intent
from trialwise.stats.latency_planning import LatencyLimitDecision as LatencyLimitDecision
from trialwise.stats.latency_planning import LimitVerdict as LimitVerdict
from trialwise.stats.latency_planning import NondegeneracyDecision as NondegeneracyDecision
from trialwise.stats.latency_planning import PrecedencePlan as PrecedencePlan
from trialwise.stats.latency_planning import ThresholdSource as ThresholdSource
from trialwise.stats.latency_planning import VerificationGate as VerificationGate
from trialwise.stats.latency_planning import evaluate_latency_limit as evaluate_latency_limit
from trialwise.stats.latency_planning import existence_minimum as existence_minimum
from trialwise.stats.latency_planning import latency_limit_cutoff as latency_limit_cutoff
from trialwise.stats.latency_planning import nondegeneracy_decision as nondegeneracy_decision
from trialwise.stats.latency_planning import planned_trials_needed as planned_trials_needed
from trialwise.stats.latency_planning import precedence_planning as precedence_planning
from trialwise.stats.latency_planning import verification_gate as verification_gate
from trialwise.stats.margin_tests import NonInferiority as NonInferiority
from trialwise.stats.margin_tests import difference_interval as difference_interval
from trialwise.stats.margin_tests import noninferiority as noninferiority
from trialwise.stats.margin_tests import noninferiority_size as noninferiority_size
from trialwise.stats.multiplicity import Adjustment as Adjustment
from trialwise.stats.multiplicity import adjust as adjust
from trialwise.stats.paired import PairCounts as PairCounts
from trialwise.stats.paired import PairedCharacteristic as PairedCharacteristic
from trialwise.stats.paired import PairedOutcome as PairedOutcome
from trialwise.stats.paired import PairedQuestion as PairedQuestion
from trialwise.stats.paired import SignTest as SignTest
from trialwise.stats.paired import decide_outcome as decide_outcome
from trialwise.stats.paired import minimum_discordant as minimum_discordant
from trialwise.stats.paired import paired_difference_interval as paired_difference_interval
from trialwise.stats.paired import pairs_from_outcomes as pairs_from_outcomes
from trialwise.stats.paired import sign_test as sign_test
from trialwise.stats.paired_designs import discordant_rates as discordant_rates
from trialwise.stats.paired_designs import fixed_discordant as fixed_discordant
from trialwise.stats.paired_designs import plan_paired_design as plan_paired_design
from trialwise.stats.paired_rules import PairedConclusion as PairedConclusion
from trialwise.stats.paired_rules import PairedRule as PairedRule
from trialwise.stats.paired_rules import plan_paired_rule as plan_paired_rule
from trialwise.stats.rate_intervals import clopper_pearson as clopper_pearson
from trialwise.stats.rate_intervals import rule_of_three as rule_of_three
from trialwise.stats.rate_intervals import wald as wald
from trialwise.stats.rate_intervals import wilson_interval as wilson_interval
from trialwise.stats.rate_intervals import wilson_lower as wilson_lower
from trialwise.stats.rate_intervals import wilson_upper as wilson_upper
from trialwise.stats.regression_cutoffs import BoschlooRegion as BoschlooRegion
from trialwise.stats.regression_cutoffs import RegressionCutoff as RegressionCutoff
from trialwise.stats.regression_cutoffs import boschloo_region as boschloo_region
from trialwise.stats.regression_cutoffs import design_false_alarm as design_false_alarm
from trialwise.stats.regression_cutoffs import design_power as design_power
from trialwise.stats.regression_cutoffs import regression_cutoff as regression_cutoff
from trialwise.stats.result_types import Decision as Decision
from trialwise.stats.result_types import Interval as Interval
from trialwise.stats.result_types import Refusal as Refusal
from trialwise.stats.result_types import Rule as Rule
from trialwise.stats.result_types import Undefined as Undefined
from trialwise.stats.run_reliability import ReliabilitySummary as ReliabilitySummary
from trialwise.stats.run_reliability import confidence_band as confidence_band
from trialwise.stats.run_reliability import graceful_degradation as graceful_degradation
from trialwise.stats.run_reliability import pass_at_k as pass_at_k
from trialwise.stats.run_reliability import pass_at_k_interval as pass_at_k_interval
from trialwise.stats.run_reliability import pass_at_k_naive as pass_at_k_naive
from trialwise.stats.run_reliability import pass_hat_k as pass_hat_k
from trialwise.stats.run_reliability import pass_hat_k_interval as pass_hat_k_interval
from trialwise.stats.run_reliability import pass_hat_k_plugin as pass_hat_k_plugin
from trialwise.stats.run_reliability import recommend_runs as recommend_runs
from trialwise.stats.run_reliability import recommend_runs_wilson as recommend_runs_wilson
from trialwise.stats.run_reliability import reliability_decay_curve as reliability_decay_curve
from trialwise.stats.run_reliability import summarize as summarize
from trialwise.stats.run_reliability import variance_amplification as variance_amplification
from trialwise.stats.signed_ranks import MeanShift as MeanShift
from trialwise.stats.signed_ranks import NetWinsTest as NetWinsTest
from trialwise.stats.signed_ranks import ShiftEstimate as ShiftEstimate
from trialwise.stats.signed_ranks import hodges_lehmann as hodges_lehmann
from trialwise.stats.signed_ranks import select_walsh_average as select_walsh_average
from trialwise.stats.signed_ranks import sign_flip_mean as sign_flip_mean
from trialwise.stats.signed_ranks import signed_rank_tail as signed_rank_tail
from trialwise.stats.signed_ranks import weigh_net_wins as weigh_net_wins
from trialwise.stats.skill_scores import Flakiness as Flakiness
from trialwise.stats.skill_scores import GraderResult as GraderResult
from trialwise.stats.skill_scores import MultiTrialMetrics as MultiTrialMetrics
from trialwise.stats.skill_scores import SkillMetrics as SkillMetrics
from trialwise.stats.skill_scores import SkillScore as SkillScore
from trialwise.stats.skill_scores import StimulusScore as StimulusScore
from trialwise.stats.skill_scores import flakiness as flakiness
from trialwise.stats.skill_scores import multi_trial_metrics as multi_trial_metrics
from trialwise.stats.skill_scores import skill_score as skill_score
from trialwise.stats.skill_scores import stimulus_score as stimulus_score
from trialwise.stats.toolbox.adaptive_sampling import (
    AdaptiveCharacteristic as AdaptiveCharacteristic,
)
from trialwise.stats.toolbox.adaptive_sampling import AdaptiveDesign as AdaptiveDesign
from trialwise.stats.toolbox.adaptive_sampling import adaptive_design as adaptive_design
from trialwise.stats.toolbox.binomial_weights import binomial_pmfs as binomial_pmfs
from trialwise.stats.toolbox.boschloo_rules import boschloo_cutoff as boschloo_cutoff
from trialwise.stats.toolbox.boschloo_rules import boschloo_size as boschloo_size
from trialwise.stats.toolbox.boundary_stacks import CombinedBoundaries as CombinedBoundaries
from trialwise.stats.toolbox.boundary_stacks import MissCondition as MissCondition
from trialwise.stats.toolbox.boundary_stacks import combine_boundaries as combine_boundaries
from trialwise.stats.toolbox.choice_forecast import ChoiceForecast as ChoiceForecast
from trialwise.stats.toolbox.choice_forecast import forecast_choice as forecast_choice
from trialwise.stats.toolbox.concurrent_rounds import RoundCharacteristic as RoundCharacteristic
from trialwise.stats.toolbox.concurrent_rounds import Standing as Standing
from trialwise.stats.toolbox.concurrent_rounds import chance_needed as chance_needed
from trialwise.stats.toolbox.concurrent_rounds import round_characteristic as round_characteristic
from trialwise.stats.toolbox.concurrent_rounds import standing as standing
from trialwise.stats.toolbox.criterion_streams import CriterionStream as CriterionStream
from trialwise.stats.toolbox.criterion_streams import StreamDecision as StreamDecision
from trialwise.stats.toolbox.criterion_streams import StreamsDecision as StreamsDecision
from trialwise.stats.toolbox.criterion_streams import StreamStatus as StreamStatus
from trialwise.stats.toolbox.criterion_streams import decide_streams as decide_streams
from trialwise.stats.toolbox.cusum import CusumChart as CusumChart
from trialwise.stats.toolbox.cusum import CusumDesign as CusumDesign
from trialwise.stats.toolbox.cusum import cusum_design as cusum_design
from trialwise.stats.toolbox.detectable_drops import (
    minimum_detectable_degradation as minimum_detectable_degradation,
)
from trialwise.stats.toolbox.detectable_drops import (
    minimum_detectable_effect as minimum_detectable_effect,
)
from trialwise.stats.toolbox.detectable_drops import normal_power as normal_power
from trialwise.stats.toolbox.error_envelopes import Envelope as Envelope
from trialwise.stats.toolbox.error_envelopes import Envelopes as Envelopes
from trialwise.stats.toolbox.error_envelopes import HorizonFalseAlarm as HorizonFalseAlarm
from trialwise.stats.toolbox.error_envelopes import envelope as envelope
from trialwise.stats.toolbox.error_envelopes import horizon_false_alarm as horizon_false_alarm
from trialwise.stats.toolbox.error_envelopes import type_one_envelopes as type_one_envelopes
from trialwise.stats.toolbox.ewma import EwmaChart as EwmaChart
from trialwise.stats.toolbox.ewma import EwmaDesign as EwmaDesign
from trialwise.stats.toolbox.ewma import ewma_design as ewma_design
from trialwise.stats.toolbox.family_errors import across_suite_envelope as across_suite_envelope
from trialwise.stats.toolbox.family_errors import family_wise_independent as family_wise_independent
from trialwise.stats.toolbox.family_errors import (
    per_run_alpha_for_horizon as per_run_alpha_for_horizon,
)
from trialwise.stats.toolbox.fisher_decision import fisher_rejects as fisher_rejects
from trialwise.stats.toolbox.group_sequential import GroupSequentialDesign as GroupSequentialDesign
from trialwise.stats.toolbox.group_sequential import LookCharacteristic as LookCharacteristic
from trialwise.stats.toolbox.group_sequential import PeekingError as PeekingError
from trialwise.stats.toolbox.group_sequential import (
    group_sequential_boundaries as group_sequential_boundaries,
)
from trialwise.stats.toolbox.group_sequential import peeking_error as peeking_error
from trialwise.stats.toolbox.group_sequential import spend as spend
from trialwise.stats.toolbox.hypergeometric_law import (
    finite_corpus_minimum_trials as finite_corpus_minimum_trials,
)
from trialwise.stats.toolbox.hypergeometric_law import hypergeometric_cdf as hypergeometric_cdf
from trialwise.stats.toolbox.hypergeometric_law import hypergeometric_tail as hypergeometric_tail
from trialwise.stats.toolbox.judged_planning import ExpectedJudge as ExpectedJudge
from trialwise.stats.toolbox.judged_planning import LabelPlan as LabelPlan
from trialwise.stats.toolbox.judged_planning import find_cheapest as find_cheapest
from trialwise.stats.toolbox.judged_planning import judged_power as judged_power
from trialwise.stats.toolbox.judged_planning import plan_labels as plan_labels
from trialwise.stats.toolbox.mcnemar_forms import McNemar as McNemar
from trialwise.stats.toolbox.mcnemar_forms import mcnemar as mcnemar
from trialwise.stats.toolbox.nondegeneracy import NondegeneracyPlan as NondegeneracyPlan
from trialwise.stats.toolbox.nondegeneracy import nondegeneracy_planning as nondegeneracy_planning
from trialwise.stats.toolbox.other_intervals import jeffreys as jeffreys
from trialwise.stats.toolbox.other_intervals import wilson_lower_rate as wilson_lower_rate
from trialwise.stats.toolbox.other_paired_intervals import (
    other_paired_interval as other_paired_interval,
)
from trialwise.stats.toolbox.planned_designs import design_detectable_rate as design_detectable_rate
from trialwise.stats.toolbox.planned_designs import design_power_at as design_power_at
from trialwise.stats.toolbox.planned_designs import design_required_trials as design_required_trials
from trialwise.stats.toolbox.planned_designs import floor_detectable_rate as floor_detectable_rate
from trialwise.stats.toolbox.planned_designs import floor_power_at as floor_power_at
from trialwise.stats.toolbox.planned_designs import resolved_power_at as resolved_power_at
from trialwise.stats.toolbox.precedence_law import count_exceedances as count_exceedances
from trialwise.stats.toolbox.precedence_law import precedence_cdf as precedence_cdf
from trialwise.stats.toolbox.precedence_law import precedence_rank as precedence_rank
from trialwise.stats.toolbox.predictive import JEFFREYS as JEFFREYS
from trialwise.stats.toolbox.predictive import PosteriorPredictive as PosteriorPredictive
from trialwise.stats.toolbox.predictive import PredictiveCutoff as PredictiveCutoff
from trialwise.stats.toolbox.predictive import posterior_predictive as posterior_predictive
from trialwise.stats.toolbox.predictive import predictive_cutoff as predictive_cutoff
from trialwise.stats.toolbox.predictive import predictive_false_alarm as predictive_false_alarm
from trialwise.stats.toolbox.rate_sizing import ComplianceSizing as ComplianceSizing
from trialwise.stats.toolbox.rate_sizing import NormalSizing as NormalSizing
from trialwise.stats.toolbox.rate_sizing import compliance_sizing as compliance_sizing
from trialwise.stats.toolbox.rate_sizing import normal_sizing as normal_sizing
from trialwise.stats.toolbox.rate_sizing import precision_trials as precision_trials
from trialwise.stats.toolbox.risk_sizing import Sizing as Sizing
from trialwise.stats.toolbox.risk_sizing import exact_required_trials as exact_required_trials
from trialwise.stats.toolbox.risk_sizing import floor_required_trials as floor_required_trials
from trialwise.stats.toolbox.risk_sizing import resolved_required_trials as resolved_required_trials
from trialwise.stats.toolbox.running_intervals import BernoulliSequence as BernoulliSequence
from trialwise.stats.toolbox.running_intervals import (
    bernoulli_confidence_sequence as bernoulli_confidence_sequence,
)
from trialwise.stats.toolbox.running_intervals import (
    bounded_confidence_sequence as bounded_confidence_sequence,
)
from trialwise.stats.toolbox.shewhart import ShewhartChart as ShewhartChart
from trialwise.stats.toolbox.shewhart import ShewhartDesign as ShewhartDesign
from trialwise.stats.toolbox.shewhart import shewhart_design as shewhart_design
from trialwise.stats.toolbox.stability_across_runs import StabilityAcrossRuns as StabilityAcrossRuns
from trialwise.stats.toolbox.stability_across_runs import agent_stability as agent_stability
from trialwise.stats.toolbox.stability_across_runs import (
    agent_stability_across as agent_stability_across,
)
from trialwise.stats.toolbox.stopping_bias import estimate_bias as estimate_bias
from trialwise.stats.toolbox.stopping_bias import naive_interval as naive_interval
from trialwise.stats.toolbox.task_means import TaskMean as TaskMean
from trialwise.stats.toolbox.task_means import mean_pass_at_k as mean_pass_at_k
from trialwise.stats.toolbox.task_means import mean_pass_hat_k as mean_pass_hat_k
from trialwise.stats.trace_stability import DEFAULT_GATE as DEFAULT_GATE
from trialwise.stats.trace_stability import DEFAULT_MINIMUM as DEFAULT_MINIMUM
from trialwise.stats.trace_stability import StabilityFloors as StabilityFloors
from trialwise.stats.trace_stability import StabilityGate as StabilityGate
from trialwise.stats.trace_stability import StabilityReport as StabilityReport
from trialwise.stats.trace_stability import TraceShape as TraceShape
from trialwise.stats.trace_stability import drift_flags as drift_flags
from trialwise.stats.trace_stability import stability_of_shape as stability_of_shape
from trialwise.stats.unconditional import BoschlooTest as BoschlooTest
from trialwise.stats.unconditional import boschloo as boschloo
from trialwise.stats.unconditional import fisher_one_sided as fisher_one_sided
