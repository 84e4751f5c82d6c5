"""One criterion's finding from the trials of its experiment.

The decision rests on the gapless beginning of the issue order, exactly as it did while the run
went on. A plan that was cut short is INCONCLUSIVE: deciding at the size that happened to be
reached would be another rule than the one that was planned. Each procedure is imported where it
decides: few runs have two of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from trialwise.model.evidence import StopReason
from trialwise.model.options import Analysis
from trialwise.model.plan import CriterionPlan, ExperimentPlan, Plan
from trialwise.model.tally import Tally
from trialwise.model.trial import Trial
from trialwise.model.verdict import Decision, Finding
from trialwise.procedures.base import Conclusion, Counts
from trialwise.procedures.composite import combine
from trialwise.procedures.deciding.containment import contain
from trialwise.procedures.deciding.partial_findings import (
    conclude_measured,
    conclude_silenced,
    conclude_unreached,
)
from trialwise.procedures.deciding.trial_rows import (
    Row,
    count_trials,
    diagnose_rows,
    disclose_counts,
    tally_of,
)
from trialwise.procedures.registry import find_procedure
from trialwise.procedures.streams import Stream


class Counted(NamedTuple):
    """The part of a stream that counts, and how it ended."""

    rows: Sequence[Row]
    """In issue order, excused trials included."""
    decision: Decision | None
    trials: int
    """Those the analysis counts."""
    passed: int
    is_complete: bool
    """Whether every planned trial is in."""

    def fair_rows(self, plan: Plan) -> Sequence[Row]:
        """Those that the analysis counts."""
        if plan.analysis is not Analysis.PER_PROTOCOL:
            return self.rows
        return [row for row in self.rows if not row.is_excused]


def decide_criterion(
    criterion: CriterionPlan,
    plan: Plan,
    experiment: ExperimentPlan,
    trials: Sequence[Trial],
    stop: StopReason,
) -> Finding:
    """What a criterion's procedure concludes.

    Args:
        criterion: Its plan.
        plan: The run's.
        experiment: The experiment it belongs to.
        trials: Of that experiment, in issue order.
        stop: Why the experiment ended.
    """
    place = [one.criterion for one in plan.criteria_of(experiment.name)].index(criterion.criterion)
    rows = [Row(trial, trial.outcomes[place]) for trial in trials]
    if not criterion.each_input:
        return _decide_rows(criterion, plan, experiment, rows, stop)
    by_input: dict[str, list[Row]] = {name: [] for name in experiment.input_ids}
    for row in rows:
        by_input[row.trial.input_id].append(row)
    parts = tuple(
        _decide_rows(criterion, plan, experiment, mine, stop, inputs=len(by_input), input_id=name)
        for name, mine in by_input.items()
    )
    return _over_inputs(criterion, rows, parts)


def _decide_rows(
    criterion: CriterionPlan,
    plan: Plan,
    experiment: ExperimentPlan,
    rows: Sequence[Row],
    stop: StopReason,
    *,
    inputs: int = 1,
    input_id: str | None = None,
) -> Finding:
    counted = _count(criterion, plan, rows, inputs=inputs)
    conclusion = _decide(criterion, plan, experiment, counted, stop)
    rows = counted.rows
    if conclusion.decision is Decision.FAIL:
        if _is_unreached(rows, plan):
            conclusion = conclude_unreached(conclusion.tally)
        elif _hinges_on_silence(criterion, plan, experiment, rows, stop, inputs=inputs):
            conclusion = conclude_silenced(conclusion, sum(row.is_unjudged for row in rows))
    reason = _reason(criterion, counted, stop)
    conclusion = find_procedure(criterion.procedure).complete(criterion, conclusion, reason, plan)
    disclosed = disclose_counts(rows, skips_unjudged=criterion.stops_early)
    conclusion = replace(conclusion, notes=(*conclusion.notes, *disclosed))
    if criterion.errors is not None and conclusion.evidence.judged is None:
        from trialwise.procedures.deciding.judge_corrections import correct

        conclusion = correct(conclusion, criterion, counted.fair_rows(plan), reason)
    conclusion = contain(conclusion, criterion, plan, experiment, rows, stop=reason)
    return conclusion.to_finding(
        criterion,
        stop=reason,
        counts=count_trials(rows),
        diagnostics=diagnose_rows(rows),
        input_id=input_id,
    )


def _is_unreached(rows: Sequence[Row], plan: Plan) -> bool:
    """Whether no trial had a fair chance, and nobody asked for a FAIL where that is so."""
    return not plan.options.abort.to_fail and all(row.trial.is_excused for row in rows)


def _hinges_on_silence(
    criterion: CriterionPlan,
    plan: Plan,
    experiment: ExperimentPlan,
    rows: Sequence[Row],
    stop: StopReason,
    *,
    inputs: int,
) -> bool:
    """Whether it would not FAIL, had the trials that no judge judged passed.

    A judge's silence is no pass, and no failure of the service either.
    """
    if plan.analysis is Analysis.PER_PROTOCOL or not any(row.is_unjudged for row in rows):
        return False
    kindly = [row.with_pass() if row.is_unjudged else row for row in rows]
    counted = _count(criterion, plan, kindly, inputs=inputs)
    return _decide(criterion, plan, experiment, counted, stop).decision is not Decision.FAIL


def _count(criterion: CriterionPlan, plan: Plan, rows: Sequence[Row], *, inputs: int) -> Counted:
    """Run the stream through its limits, in issue order and up to the first gap.

    Where each input is decided, trials are issued in blocks of all inputs: a trial's block is its
    place among its input's own. What no judge judged decides nothing early; at the end of a fixed
    design it counts as failed, and a sequential one goes on without it.
    """
    leaves_out = plan.analysis is Analysis.PER_PROTOCOL
    if criterion.rides_along:
        kept = [row for row in rows if not (leaves_out and row.is_excused)]
        passed = sum(row.passed for row in kept)
        return Counted(
            rows=rows, decision=None, trials=len(kept), passed=passed, is_complete=bool(rows)
        )
    stream = Stream(criterion.limits)
    places = [row.trial.index // inputs for row in rows]
    for place, row in zip(places, rows, strict=True):
        passed = row.outcome.result.passed
        skipped = (leaves_out and row.is_excused) or (not passed and row.is_unjudged)
        stream.add(place, passed=None if skipped else passed)
    used = [row for place, row in zip(places, rows, strict=True) if place < stream.next_place]
    adds_silent = not leaves_out and not criterion.stops_early
    silent = sum(row.is_unjudged for row in used if not row.passed) if adds_silent else 0
    return Counted(
        rows=used,
        decision=stream.decision,
        trials=stream.trials + silent,
        passed=stream.passed,
        is_complete=stream.next_place >= criterion.trials,
    )


def _decide(
    criterion: CriterionPlan,
    plan: Plan,
    experiment: ExperimentPlan,
    counted: Counted,
    stop: StopReason,
) -> Conclusion:
    tally = tally_of(counted.rows, counted.trials, counted.passed)
    if plan.purpose == "measure":
        return conclude_measured(tally)
    counts = Counts(
        tally=tally,
        is_complete=counted.is_complete,
        decision=counted.decision,
        stop=stop,
        intent=plan.intent,
        claim=plan.claim,
        experiment=experiment,
        rows=counted.fair_rows(plan),
    )
    return find_procedure(criterion.procedure).decide(criterion, counts)


def _reason(criterion: CriterionPlan, counted: Counted, stop: StopReason) -> StopReason:
    if criterion.rides_along:
        return stop if stop.is_premature else StopReason.COMPLETE
    if counted.decision is not None and not counted.is_complete:
        return StopReason.DECIDED if criterion.stops_early else StopReason.CURTAILED
    if counted.is_complete:
        return StopReason.COMPLETE
    return stop


def _over_inputs(
    criterion: CriterionPlan, rows: Sequence[Row], parts: tuple[Finding, ...]
) -> Finding:
    """One finding over all inputs: the worst of them, so that none hides behind the others."""
    first = parts[0]
    decision = combine(part.decision or Decision.INCONCLUSIVE for part in parts)
    passing = sum(part.decision is Decision.PASS for part in parts)
    worst = [part for part in parts if part.decision is decision and decision is not Decision.PASS]
    named = ", ".join(f"{part.input_id} ({_count_text(part.tally)})" for part in worst[:5])
    more = f" and {len(worst) - 5} more" if len(worst) > 5 else ""
    statement = f"{passing} of {len(parts)} inputs PASS"
    if worst:
        statement += f"; {decision}: {named}{more}"
    levels = "" if criterion.alpha is None else _multiplicity(criterion.alpha, len(parts))
    counts = count_trials(rows)
    return Finding(
        plan=criterion,
        decision=decision,
        tally=counts.intent_to_treat,
        # The pooled counts decide nothing here, so nothing is inferred from them.
        words=replace(first.words, statement=f"{statement}.{levels}"),
        observed_rate=first.observed_rate,
        caution=first.caution,
        refusals=first.refusals,
        stop=next((part.stop for part in parts if part.stop is not None), None),
        notes=disclose_counts(rows, skips_unjudged=criterion.stops_early),
        counts=counts,
        by_input=parts,
    )


def _count_text(tally: Tally) -> str:
    return f"{tally.passed}/{tally.trials}"


def _multiplicity(alpha: float, inputs: int) -> str:
    together = min(1.0, alpha * inputs)
    return (
        f" Each of the {inputs} inputs is judged at {alpha:g}, unadjusted; the chance of at least "
        f"one false verdict among them is at most {together:g}."
    )
