from trialwise.stats.sequential._claim import default_alternative as default_alternative
from trialwise.stats.sequential.bound import FixedSize as FixedSize
from trialwise.stats.sequential.bound import Shortfall as Shortfall
from trialwise.stats.sequential.bound import expected_trials_bound as expected_trials_bound
from trialwise.stats.sequential.bound import fixed_size as fixed_size
from trialwise.stats.sequential.bound import shortfall as shortfall
from trialwise.stats.sequential.catalogue import DesignCache as DesignCache
from trialwise.stats.sequential.catalogue import design_key as design_key
from trialwise.stats.sequential.characteristic import (
    OperatingCharacteristic as OperatingCharacteristic,
)
from trialwise.stats.sequential.design import Decision as Decision
from trialwise.stats.sequential.design import Method as Method
from trialwise.stats.sequential.design import Mix as Mix
from trialwise.stats.sequential.design import SequentialDesign as SequentialDesign
from trialwise.stats.sequential.inference import estimate_bias as estimate_bias
from trialwise.stats.sequential.inference import naive_bias as naive_bias
from trialwise.stats.sequential.inference import naive_interval as naive_interval
from trialwise.stats.sequential.inference import stopped_estimate as stopped_estimate
from trialwise.stats.sequential.inference import stopped_interval as stopped_interval
