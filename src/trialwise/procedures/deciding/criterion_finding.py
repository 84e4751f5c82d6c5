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

from trialwise.model.claim import PopulationClaim
from trialwise.model.evidence import StopReason
from trialwise.model.options import Analysis
from trialwise.model.plan import CriterionPlan, ExperimentPlan, Plan
from trialwise.model.tally import Tally
from trialwise.model.trial import Trial
from trialwise.model.verdict import Decision, Finding, Procedure
from trialwise.procedures.composite import combine
from trialwise.procedures.deciding.containment import contain
from trialwise.procedures.deciding.partial_findings import (
    certain_finding,
    measured_finding,
    short_finding,
    silenced_finding,
    unreached_finding,
)
from trialwise.procedures.deciding.trial_rows import (
    Row,
    breakdown_of,
    counts_of,
    disclosures_of,
    enrich,
    per_protocol_of,
    tally_of,
)
from trialwise.procedures.streams import Stream

__all__ = ["decide_criterion"]


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
        leaves_out = plan.analysis is Analysis.PER_PROTOCOL
        return [row for row in self.rows if not (leaves_out and row.is_excused)]


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
        return _pooled(criterion, plan, experiment, rows, stop)
    by_input: dict[str, list[Row]] = {name: [] for name in experiment.input_ids}
    for row in rows:
        by_input[row.trial.input_id].append(row)
    parts = tuple(
        replace(
            _pooled(criterion, plan, experiment, mine, stop, inputs=len(by_input)), input_id=name
        )
        for name, mine in by_input.items()
    )
    return _over_inputs(criterion, rows, parts)


def _pooled(
    criterion: CriterionPlan,
    plan: Plan,
    experiment: ExperimentPlan,
    rows: Sequence[Row],
    stop: StopReason,
    *,
    inputs: int = 1,
) -> Finding:
    counted = _count(criterion, plan, rows, inputs=inputs)
    finding = _decide(criterion, plan, experiment, counted, stop)
    if finding.decision is Decision.FAIL:
        if _is_unreached(counted.rows, plan):
            finding = unreached_finding(criterion, finding.tally, plan.intent)
        elif _hinges_on_silence(criterion, plan, experiment, counted.rows, stop, inputs=inputs):
            finding = silenced_finding(finding, sum(row.is_unjudged for row in counted.rows))
    reason = _reason(criterion, counted, stop)
    finding = enrich(finding, criterion, counted.rows, reason)
    if criterion.errors is not None and finding.judged is None:
        from trialwise.procedures.deciding.judge_corrections import correct

        finding = correct(finding, criterion, counted.fair_rows(plan), reason)
    return contain(finding, plan, experiment, counted.rows)


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

    Where each input is judged, trials are issued in blocks of all inputs: a trial's block is its
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
    adds_silent = not leaves_out and criterion.limits.design is None
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
) -> Finding:
    tally = tally_of(counted.rows, counted.trials, counted.passed)
    name, intent = criterion.criterion, plan.intent
    if plan.purpose == "measure":
        return measured_finding(criterion, tally, intent)
    if criterion.procedure is Procedure.SEQUENTIAL:
        return _decide_between(criterion, plan, counted, tally, stop)
    if criterion.procedure is Procedure.OBSERVATIONAL:
        from trialwise.procedures.observational import decide_observational

        if counted.is_complete or tally.failed:
            return decide_observational(name, tally, intent=intent)
    elif counted.is_complete:
        return _decide_whole(criterion, plan, experiment, counted.rows, tally)
    elif counted.decision is not None:
        return certain_finding(criterion, tally, intent, counted.decision)
    return short_finding(criterion, tally, intent, stop)


def _decide_between(
    criterion: CriterionPlan, plan: Plan, counted: Counted, tally: Tally, stop: StopReason
) -> Finding:
    """Between a good and a bad rate: at boundaries, or by a judge's corrected rate at the end."""
    boundaries = criterion.limits.design
    if boundaries is not None:
        from trialwise.procedures.sequential import decide_sequential

        stopped = counted.decision is not None
        name, intent = criterion.criterion, plan.intent
        return decide_sequential(name, tally, boundaries, stopped=stopped, intent=intent)
    if not counted.is_complete:
        return short_finding(criterion, tally, plan.intent, stop)
    from trialwise.procedures.deciding.judge_corrections import decide_corrected

    return decide_corrected(criterion, tally, counted.fair_rows(plan), plan.intent)


def _decide_whole(
    criterion: CriterionPlan,
    plan: Plan,
    experiment: ExperimentPlan,
    rows: Sequence[Row],
    tally: Tally,
) -> Finding:
    """A fixed design that ran to its end."""
    name, intent = criterion.criterion, plan.intent
    if _is_claimed(criterion, plan):
        from trialwise.procedures.claimed import decide_claimed

        return decide_claimed(
            name,
            _by_input(rows, leaves_out=plan.analysis is Analysis.PER_PROTOCOL),
            claim=plan.claim,
            required_rate=_required(criterion),
            alpha=criterion.alpha,
            rule=plan.rule,
            intent=intent,
            corpus_size=len(experiment.input_ids),
            weights=dict(zip(experiment.input_ids, experiment.weights, strict=False)),
            strata=dict(zip(experiment.input_ids, experiment.strata, strict=False)),
        )
    assert criterion.alpha is not None
    if criterion.procedure is Procedure.REGRESSION:
        from trialwise.procedures.regression import decide_regression

        baseline = criterion.threshold.baseline
        assert baseline is not None
        reference = Tally(trials=baseline.trials, passed=baseline.passed)
        return decide_regression(
            name, tally, reference, alpha=criterion.alpha, rule=plan.rule, intent=intent
        )
    from trialwise.procedures.compliance import decide_rate

    return decide_rate(
        name,
        tally,
        _required(criterion),
        alpha=criterion.alpha,
        rule=plan.rule,
        intent=intent,
    )


def _is_claimed(criterion: CriterionPlan, plan: Plan) -> bool:
    beyond_binomial = (PopulationClaim.FINITE_CORPUS, PopulationClaim.NO_GENERALISATION)
    return criterion.estimator is not None or (
        plan.claim.population in beyond_binomial and criterion.procedure is Procedure.COMPLIANCE
    )


def _required(criterion: CriterionPlan) -> float:
    assert criterion.threshold.required_rate is not None
    return criterion.threshold.required_rate


def _by_input(rows: Sequence[Row], *, leaves_out: bool) -> dict[str, tuple[int, int]]:
    counts: dict[str, tuple[int, int]] = {}
    for row in rows:
        if leaves_out and row.is_excused:
            continue
        passed, trials = counts.get(row.trial.input_id, (0, 0))
        counts[row.trial.input_id] = passed + row.passed, trials + 1
    return counts


def _reason(criterion: CriterionPlan, counted: Counted, stop: StopReason) -> StopReason:
    if criterion.rides_along:
        return stop if stop.is_premature else StopReason.COMPLETE
    if counted.decision is not None and not counted.is_complete:
        early = criterion.limits.design is not None
        return StopReason.DECIDED if early else StopReason.CURTAILED
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
    tally = counts_of(rows)
    return replace(
        first,
        decision=decision,
        tally=tally,
        input_id=None,
        by_input=parts,
        # The pooled counts decide nothing here, so nothing is inferred from them.
        p_value=None,
        lower_bound=None,
        interval=None,
        estimate=None,
        judged=None,
        judged_otherwise=None,
        diagnostics=None,
        intent_to_treat=tally,
        per_protocol=per_protocol_of(rows),
        breakdown=breakdown_of(rows),
        caveats=(
            *criterion.caveats,
            *disclosures_of(rows, skips_unjudged=criterion.limits.design is not None),
        ),
        planned_trials=criterion.trials * len(parts),
        statement=f"{statement}.{levels}",
        stop=next((part.stop for part in parts if part.stop is not None), None),
    )


def _count_text(tally: Tally) -> str:
    return f"{tally.passed}/{tally.trials}"


def _multiplicity(alpha: float, inputs: int) -> str:
    together = min(1.0, alpha * inputs)
    return (
        f" Each of the {inputs} inputs is judged at {alpha:g}, unadjusted; the chance of at least "
        f"one false verdict among them is at most {together:g}."
    )
