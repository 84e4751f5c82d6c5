"""Take the trials of a file that a plan uses, and say whether they were enough."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from trialwise.documents.numbers import as_count
from trialwise.engine.criterion_progress import combine_stops
from trialwise.engine.run_state import RunOutcome
from trialwise.model.evidence import Spending, StopReason
from trialwise.model.plan import CriterionPlan, Plan
from trialwise.model.run_trials import Trials
from trialwise.model.trial import Analysis, Trial
from trialwise.procedures.streams import Stream


def use_trials(plan: Plan, trials: Sequence[Trial]) -> tuple[Plan, RunOutcome]:
    """Take the trials in order until every criterion is decided.

    Trials beyond that are left out of the record, as they would not have been made; the criterion
    says how many there were.

    Args:
        plan: How the criteria are decided.
        trials: The trials of all experiments, each in the order of inputs.

    Returns:
        The plan with what its criteria have to say, and the outcome of the trials that decide.
    """
    used: list[Trial] = []
    stops: dict[str, StopReason] = {}
    criteria: dict[str, CriterionPlan] = {}
    message = ""
    by_experiment: dict[str, list[Trial]] = {one.name: [] for one in plan.experiments}
    for trial in trials:
        by_experiment[trial.experiment].append(trial)
    for experiment in plan.experiments:
        mine = by_experiment[experiment.name]
        wanted: set[int] = set()
        reasons = []
        for place, one in enumerate(plan.criteria_of(experiment.name)):
            indexes, stop = _reach(one, place, mine, plan.analysis_of(one))
            wanted |= indexes
            reasons.append(stop)
            criteria[one.criterion] = _add_caveat(one, unused=len(mine) - len(indexes))
        used += [trial for trial in mine if trial.index in wanted]
        stops[experiment.name] = combine_stops(reasons)
        if stops[experiment.name] is StopReason.TRIALS_BUDGET and not message:
            message = (
                f"The file holds {len(mine)} of the {experiment.trials} trials that were planned."
            )
    outcome = RunOutcome(
        Trials.of(used), stops, combine_stops(stops.values()), _sum_spending(used), message
    )
    return replace(plan, criteria=tuple(criteria[one.criterion] for one in plan.criteria)), outcome


def _reach(
    criterion: CriterionPlan, place: int, trials: Sequence[Trial], analysis: Analysis
) -> tuple[set[int], StopReason]:
    """Return the trials that a criterion looks at, and why it looks no further."""
    if criterion.rides_along:
        return {trial.index for trial in trials}, StopReason.COMPLETE
    sequential = criterion.stops_early
    streams: dict[str, Stream] = {}
    seen: Counter[str] = Counter()
    indexes: set[int] = set()
    for trial in trials:
        key = trial.input_id if criterion.each_input else ""
        stream = streams.setdefault(key, Stream(criterion.limits))
        # A fixed design uses all of its trials, even if fewer already decide it.
        if not stream.is_settled if sequential else seen[key] < criterion.trials:
            indexes.add(trial.index)
        excused = analysis.leaves_out(trial.error_class)
        stream.add(seen[key], passed=None if excused else trial.outcomes[place].passed)
        seen[key] += 1
    # A trial that the analysis leaves out keeps its place and is not replaced.
    ended = [
        stream.is_settled or stream.next_place >= criterion.trials for stream in streams.values()
    ]
    early = any(
        stream.decision is not None and stream.next_place < criterion.trials
        for stream in streams.values()
    )
    if not all(ended):
        return indexes, StopReason.TRIALS_BUDGET
    if not early:
        return indexes, StopReason.COMPLETE
    return indexes, StopReason.DECIDED if sequential else StopReason.CURTAILED


def _add_caveat(criterion: CriterionPlan, *, unused: int) -> CriterionPlan:
    if not unused:
        return criterion
    caveat = (
        f"{as_count(unused, 'trial')} of the file come after the ones that decide this "
        "criterion and are not used."
    )
    return replace(criterion, caveats=(*criterion.caveats, caveat))


def _sum_spending(trials: Sequence[Trial]) -> Spending:
    costs = [trial.cost_usd for trial in trials if trial.cost_usd is not None]
    return Spending(
        trials=len(trials),
        attempts=sum(trial.attempts for trial in trials),
        tokens=sum(trial.usage.total_tokens for trial in trials if trial.usage is not None),
        usd=math.fsum(costs) if costs else None,
    )
