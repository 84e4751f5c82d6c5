from trialwise.stats.result_types import Decision as Decision
from trialwise.stats.sequential.bound import FixedSize as FixedSize
from trialwise.stats.sequential.bound import Mix as Mix
from trialwise.stats.sequential.bound import Shortfall as Shortfall
from trialwise.stats.sequential.bound import default_alternative as default_alternative
from trialwise.stats.sequential.bound import expected_trials_bound as expected_trials_bound
from trialwise.stats.sequential.bound import fixed_size as fixed_size
from trialwise.stats.sequential.bound import shortfall as shortfall
from trialwise.stats.sequential.concurrency import Draw as Draw
from trialwise.stats.sequential.concurrency import issue_order as issue_order
from trialwise.stats.sequential.concurrency import trials_to_start as trials_to_start
from trialwise.stats.sequential.design import Method as Method
from trialwise.stats.sequential.design import SequentialDesign as SequentialDesign
from trialwise.stats.sequential.shipped_designs import DesignCache as DesignCache
from trialwise.stats.sequential.shipped_designs import design_key as design_key
from trialwise.stats.sequential.stopped_rates import naive_bias as naive_bias
from trialwise.stats.sequential.stopped_rates import stopped_estimate as stopped_estimate
from trialwise.stats.sequential.stopped_rates import stopped_interval as stopped_interval
from trialwise.stats.sequential.walks import OperatingCharacteristic as OperatingCharacteristic
from trialwise.stats.toolbox.adaptive_sampling import (
    AdaptiveCharacteristic as AdaptiveCharacteristic,
)
from trialwise.stats.toolbox.adaptive_sampling import AdaptiveDesign as AdaptiveDesign
from trialwise.stats.toolbox.adaptive_sampling import adaptive_design as adaptive_design
from trialwise.stats.toolbox.blaker_intervals import blaker_interval as blaker_interval
from trialwise.stats.toolbox.concurrent_rounds import RoundCharacteristic as RoundCharacteristic
from trialwise.stats.toolbox.concurrent_rounds import Standing as Standing
from trialwise.stats.toolbox.concurrent_rounds import chance_needed as chance_needed
from trialwise.stats.toolbox.concurrent_rounds import round_characteristic as round_characteristic
from trialwise.stats.toolbox.concurrent_rounds import standing as standing
from trialwise.stats.toolbox.stopping_bias import estimate_bias as estimate_bias
from trialwise.stats.toolbox.stopping_bias import naive_interval as naive_interval
