"""Take the trials of a file that a plan uses, and say whether they were enough."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from trialwise.documents.numbers import as_count
from trialwise.model.evidence import Spending, StopReason
from trialwise.model.options import Analysis
from trialwise.model.plan import CriterionPlan, Plan
from trialwise.model.trial import Trial
from trialwise.procedures.streams import Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """The trials that decide, and how many were left over."""

    plan: Plan
    trials: tuple[Trial, ...]
    unused: int
    stops: Mapping[str, StopReason]
    stop: StopReason
    message: str
    """Why the plan was not completed, if it was not."""
    spending: Spending


@dataclass(frozen=True, slots=True)
class _Reach:
    """How far one criterion looks."""

    indexes: frozenset[int]
    stop: StopReason
    unused: int


def use_trials(plan: Plan, trials: Sequence[Trial]) -> Used:
    """Take the trials in order until every criterion is decided.

    Trials beyond that are left out of the record, as they would not have been made; the criterion
    says how many there were.

    Args:
        plan: How the criteria are decided.
        trials: Of all experiments, each in issue order.
    """
    kept: list[Trial] = []
    stops: dict[str, StopReason] = {}
    criteria: dict[str, CriterionPlan] = {}
    message = ""
    by_experiment: dict[str, list[Trial]] = {one.name: [] for one in plan.experiments}
    for trial in trials:
        by_experiment[trial.experiment].append(trial)
    for experiment in plan.experiments:
        mine = by_experiment[experiment.name]
        own = plan.criteria_of(experiment.name)
        reaches = {
            one.criterion: _reach(one, place, mine, plan.analysis) for place, one in enumerate(own)
        }
        wanted = frozenset().union(*(reach.indexes for reach in reaches.values()))
        kept += [trial for trial in mine if trial.index in wanted]
        stops[experiment.name] = _stop(reach.stop for reach in reaches.values())
        criteria |= {one.criterion: _add_caveat(one, reaches[one.criterion]) for one in own}
        if stops[experiment.name] is StopReason.TRIALS_BUDGET and not message:
            message = (
                f"The file holds {len(mine)} of the {experiment.trials} trials that were planned."
            )
    used = tuple(kept)
    return Used(
        plan=replace(plan, criteria=tuple(criteria[one.criterion] for one in plan.criteria)),
        trials=used,
        unused=len(trials) - len(used),
        stops=stops,
        stop=_stop(stops.values()),
        message=message,
        spending=_sum_spending(used),
    )


def _reach(
    criterion: CriterionPlan, place: int, trials: Sequence[Trial], analysis: Analysis
) -> _Reach:
    """Run a criterion's stream, or one for every input, through its limits."""
    everything = frozenset(trial.index for trial in trials)
    if criterion.rides_along:
        return _Reach(everything, StopReason.COMPLETE, 0)
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
        excused = analysis is Analysis.PER_PROTOCOL and trial.is_excused
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
        stop = StopReason.TRIALS_BUDGET
    elif early:
        stop = StopReason.DECIDED if sequential else StopReason.CURTAILED
    else:
        stop = StopReason.COMPLETE
    return _Reach(frozenset(indexes), stop, len(trials) - len(indexes))


def _stop(reasons: Iterable[StopReason]) -> StopReason:
    """Choose the most telling reason: that trials are missing, or that a decision came early."""
    found = set(reasons)
    order = (StopReason.TRIALS_BUDGET, StopReason.DECIDED, StopReason.CURTAILED)
    return next((one for one in order if one in found), StopReason.COMPLETE)


def _add_caveat(criterion: CriterionPlan, reach: _Reach) -> CriterionPlan:
    if not reach.unused:
        return criterion
    caveat = (
        f"{as_count(reach.unused, 'trial')} of the file come after the ones that decide this "
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
