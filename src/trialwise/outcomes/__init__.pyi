from trialwise.outcomes.outcome_reading import read_outcomes as read_outcomes
from trialwise.outcomes.outcome_rows import OutcomeRow as OutcomeRow
from trialwise.outcomes.outcome_rows import Outcomes as Outcomes
from trialwise.outcomes.outcome_rows import OutcomesUnreadable as OutcomesUnreadable
from trialwise.runtime.outcome_scoring import Scored as Scored
from trialwise.runtime.outcome_scoring import measure_outcomes as measure_outcomes
from trialwise.runtime.outcome_scoring import score as score
