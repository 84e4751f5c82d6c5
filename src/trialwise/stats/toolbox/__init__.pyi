from trialwise.stats.toolbox.adaptive_sampling import (
    AdaptiveCharacteristic as AdaptiveCharacteristic,
)
from trialwise.stats.toolbox.adaptive_sampling import AdaptiveDesign as AdaptiveDesign
from trialwise.stats.toolbox.adaptive_sampling import adaptive_design as adaptive_design
from trialwise.stats.toolbox.beta_binomial import BetaBinomialFit as BetaBinomialFit
from trialwise.stats.toolbox.beta_binomial import FitLocation as FitLocation
from trialwise.stats.toolbox.beta_binomial import beta_binomial_fit as beta_binomial_fit
from trialwise.stats.toolbox.cluster_resampling import BootstrapMethod as BootstrapMethod
from trialwise.stats.toolbox.cluster_resampling import ClusterBootstrap as ClusterBootstrap
from trialwise.stats.toolbox.cluster_resampling import cluster_bootstrap as cluster_bootstrap
from trialwise.stats.toolbox.criterion_streams import CriterionStream as CriterionStream
from trialwise.stats.toolbox.criterion_streams import StreamDecision as StreamDecision
from trialwise.stats.toolbox.criterion_streams import StreamsDecision as StreamsDecision
from trialwise.stats.toolbox.criterion_streams import StreamStatus as StreamStatus
from trialwise.stats.toolbox.criterion_streams import decide_streams as decide_streams
from trialwise.stats.toolbox.cusum import CusumChart as CusumChart
from trialwise.stats.toolbox.cusum import CusumDesign as CusumDesign
from trialwise.stats.toolbox.cusum import cusum_design as cusum_design
from trialwise.stats.toolbox.ewma import EwmaChart as EwmaChart
from trialwise.stats.toolbox.ewma import EwmaDesign as EwmaDesign
from trialwise.stats.toolbox.ewma import ewma_design as ewma_design
from trialwise.stats.toolbox.group_sequential import GroupSequentialDesign as GroupSequentialDesign
from trialwise.stats.toolbox.group_sequential import LookCharacteristic as LookCharacteristic
from trialwise.stats.toolbox.group_sequential import PeekingError as PeekingError
from trialwise.stats.toolbox.group_sequential import (
    group_sequential_boundaries as group_sequential_boundaries,
)
from trialwise.stats.toolbox.group_sequential import peeking_error as peeking_error
from trialwise.stats.toolbox.group_sequential import spend as spend
from trialwise.stats.toolbox.implied_levels import ImpliedLevel as ImpliedLevel
from trialwise.stats.toolbox.implied_levels import (
    implied_alpha_of_cutoff as implied_alpha_of_cutoff,
)
from trialwise.stats.toolbox.implied_levels import (
    implied_confidence_of_observation as implied_confidence_of_observation,
)
from trialwise.stats.toolbox.implied_levels import (
    implied_confidence_of_threshold as implied_confidence_of_threshold,
)
from trialwise.stats.toolbox.predictive import JEFFREYS as JEFFREYS
from trialwise.stats.toolbox.predictive import PosteriorPredictive as PosteriorPredictive
from trialwise.stats.toolbox.predictive import PredictiveCutoff as PredictiveCutoff
from trialwise.stats.toolbox.predictive import posterior_predictive as posterior_predictive
from trialwise.stats.toolbox.predictive import predictive_cutoff as predictive_cutoff
from trialwise.stats.toolbox.predictive import predictive_false_alarm as predictive_false_alarm
from trialwise.stats.toolbox.shewhart import ShewhartChart as ShewhartChart
from trialwise.stats.toolbox.shewhart import ShewhartDesign as ShewhartDesign
from trialwise.stats.toolbox.shewhart import shewhart_design as shewhart_design
