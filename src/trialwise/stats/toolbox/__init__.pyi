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
