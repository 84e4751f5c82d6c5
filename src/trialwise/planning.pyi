from trialwise.runtime.trial_sizing import SizingAnswer as SizingAnswer
from trialwise.runtime.trial_sizing import plan as plan
from trialwise.runtime.trial_sizing import plan_compare as plan_compare
from trialwise.runtime.trial_sizing import plan_compliance as plan_compliance
from trialwise.runtime.trial_sizing import plan_latency as plan_latency
from trialwise.runtime.trial_sizing import plan_pairs as plan_pairs
from trialwise.runtime.trial_sizing import plan_precision as plan_precision
from trialwise.runtime.trial_sizing import plan_regression as plan_regression
