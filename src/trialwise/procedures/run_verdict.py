"""The verdict of a run: every criterion's finding, the latency dimension, and their composite."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import compress, islice
from typing import NamedTuple, cast

from trialwise.documents.numbers import STOPS
from trialwise.extensions import naming_extensions
from trialwise.model import evidence as grounds
from trialwise.model.evidence import StopReason, Tally
from trialwise.model.plan import CriterionPlan, ExperimentPlan, Limits, Plan
from trialwise.model.run import Trials
from trialwise.model.trial import Analysis, ErrorClass, Trial
from trialwise.model.trial_table import TrialTable
from trialwise.model.verdict import Decision, Dimension, Finding, Verdict
from trialwise.procedures import partial_findings, trial_rows
from trialwise.procedures.base import Conclusion, Counts, take_over
from trialwise.procedures.chances import bound_plans
from trialwise.procedures.composite import combine, compose, state_inputs, withdraw
from trialwise.procedures.criterion_rows import Row, Rows, Stream
from trialwise.procedures.gates import PROCEDURE as GATES
from trialwise.procedures.latency import PROCEDURE as LATENCY
from trialwise.procedures.mean_score import sum_up_inputs, summarize_scores
from trialwise.procedures.registry import find_procedure
from trialwise.stats.sequential.design import SequentialDesign


@naming_extensions(
    "Nothing is decided. A run that is stored keeps its trials: once the extension is repaired, "
    "`trialwise run --resume` decides them."
)
def decide_run(
    plan: Plan,
    trials: Sequence[Trial],
    *,
    stops: Mapping[str, StopReason],
    stop: StopReason,
    spending: grounds.Spending,
    run_id: str = "",
    started_at: datetime | None = None,
    message: str = "",
    covariates_at_end: Mapping[str, str] | None = None,
    reproducibility: grounds.Reproducibility | None = None,
) -> Verdict:
    """Decide a run from its plan and its trials, and from nothing else.

    Args:
        plan: What was to be run.
        trials: What was run, of all experiments.
        stops: Why each experiment ended.
        stop: Why the run ended.
        spending: What it took.
        run_id: The id of the record.
        started_at: When it began.
        message: Why it ended before its plan did, for a person.
        covariates_at_end: Conditions that had another value when it ended.
        reproducibility: The numerical ingredients.
    """
    held = Trials.of(trials)
    by_experiment = {one.name: held.of_experiment(one.name) for one in plan.experiments}

    def decide(criterion: CriterionPlan) -> Finding:
        name = criterion.experiment
        return decide_criterion(criterion, plan, by_experiment[name], stops.get(name, stop))

    # Decided alone, then corrected, then withdrawn: later trials speak against a decision as it
    # stands, and no correction may bring back what they took.
    findings = [decide(criterion) for criterion in plan.criteria]
    if plan.correction != "none":
        from trialwise.procedures.corrections import correct_findings

        findings = correct_findings(findings, plan, decide)
    if any(one.others.withdrawn_by is not None for one in plan.criteria):
        findings = [withdraw(one, plan) for one in findings]
    if stop is StopReason.ERROR_RATE:
        findings = [_aborted(one, to_fail=plan.options.abort.to_fail) for one in findings]
    enforced = any(one.enforced for one in plan.latency)
    ends = {name: stops.get(name, stop) for name in by_experiment}
    summaries = (_summary(one, by_experiment[one.name], ends[one.name]) for one in plan.experiments)
    verdict = compose(
        findings,
        LATENCY.decide(plan, by_experiment, ends),
        advisory=() if enforced else (Dimension.LATENCY,),
        gates=GATES.decide(plan, by_experiment, ends),
    )
    return replace(
        verdict,
        plan=plan,
        run_id=run_id,
        started_at=started_at,
        experiments=tuple(summaries),
        spending=spending,
        stop=stop,
        aborted=message or (f"The run {STOPS[stop].predicate}." if stop.is_premature else ""),
        covariates_at_end=dict(covariates_at_end or {}),
        horizon_false_alarm=_horizon(plan, verdict),
        reproducibility=reproducibility or grounds.Reproducibility(seed=plan.seed),
    )


def _aborted(finding: Finding, *, to_fail: bool) -> Finding:
    """An abort never leaves a PASS: what passed before it is not known to have been run fairly."""
    if finding.decision is Decision.FAIL:
        return finding
    is_told = finding.stop is StopReason.ERROR_RATE  # a plan cut short says so itself
    why = "" if is_told else f"The run {STOPS[StopReason.ERROR_RATE].predicate}. "
    return replace(
        finding,
        decision=Decision.FAIL if to_fail else Decision.INCONCLUSIVE,
        words=replace(finding.words, label="", statement=f"{why}{finding.statement}"),
    )


def _summary(
    experiment: ExperimentPlan, trials: TrialTable, stop: StopReason
) -> grounds.ExperimentSummary:
    tried = Counter(trials.inputs)
    repetitions = Counter(tried.values())
    return take_over(
        grounds.ExperimentSummary,
        experiment,
        inputs=len(experiment.input_ids),
        distinct=experiment.distinct_inputs if experiment.copies else None,
        clusters=len(set(experiment.find_units())) if experiment.clusters else None,
        trials=len(trials),
        planned=experiment.trials,
        stop=stop,
        repetitions={str(times): repetitions[times] for times in sorted(repetitions)},
    )


def _horizon(plan: Plan, verdict: Verdict) -> float | None:
    """Bound a false alarm in the declared horizon, whatever the dependence (§8.5).

    Summed over criteria and inputs, of achieved errors; None where it bounds nothing.
    """
    runs = plan.options.horizon_runs
    if runs is None or verdict.decision is None:
        return None
    bound = bound_plans([plan], Decision.FAIL)
    together = 1 if bound is None or bound.raw is None else bound.raw * runs
    return together if together < 1 else None


# --- One criterion's finding from the trials of its experiment ------------------------------------
#
# The decision rests on the gapless beginning of the order of inputs, exactly as it did while the
# run went on. A plan that was cut short is INCONCLUSIVE: deciding at the size that happened to be
# reached would be another rule than the one that was planned.


def decide_criterion(
    criterion: CriterionPlan, plan: Plan, trials: Sequence[Trial], stop: StopReason
) -> Finding:
    """Return what a criterion's procedure concludes.

    Args:
        criterion: Its plan.
        plan: The run's.
        trials: The trials of its experiment, in the order of inputs.
        stop: Why the experiment ended.
    """
    experiment = plan.experiment_of(criterion)
    place = [one.criterion for one in plan.criteria_of(experiment.name)].index(criterion.criterion)
    rows = Rows.of(trials, place)
    by_input = rows.split(experiment.input_ids) if criterion.counting.each_input else {}
    stream = _Stream(criterion, plan, experiment, stop, inputs=max(1, len(by_input)))
    if not by_input:
        return stream.decide(rows)
    parts = tuple(stream.decide(mine, input_id=name) for name, mine in by_input.items())
    return stream.join_inputs(rows, parts)


class _Stream(NamedTuple):
    """The trials that a criterion is decided on: all of its experiment, or those of one input."""

    criterion: CriterionPlan
    plan: Plan
    experiment: ExperimentPlan
    stop: StopReason
    """Why the experiment ended."""
    inputs: int = 1
    """How many such streams share the order of inputs."""

    @property
    def analysis(self) -> Analysis:
        """Whose trials decide."""
        return self.plan.analysis_of(self.criterion)

    def _is_left_out(self, row: Row) -> bool:
        return row.is_left_out(self.analysis)

    def decide(self, rows: Rows, *, input_id: str | None = None) -> Finding:
        """Return what the procedure concludes, and what the trials say beside it."""
        criterion, plan = self.criterion, self.plan
        used, counts = self._count(rows)
        conclusion = self._conclude(counts)
        is_unreached = bool(used) and all(row.is_lost for row, _ in used.kinds)
        counts_all = self.analysis is Analysis.INTENT_TO_TREAT
        if counts_all and is_unreached:
            # One failure is all that `never_fails` waits for. A rate needs some measured trial, and
            # a request that was refused as wrong says nothing of either.
            errors = {row.course.error_class for row, _ in used.kinds}
            is_refused = errors == {ErrorClass.CONFIGURATION}
            is_counted = criterion.counting.counts_every_trial and not is_refused
            is_unreached = conclusion.decision is Decision.FAIL and not is_counted
        # A service that nobody reached has not failed: a wrong address would look like an outage.
        if is_unreached and not plan.options.abort.to_fail:
            # Nobody asked for a FAIL where no trial was measured.
            tally = conclusion.tally if counts_all else Tally(trials=0, passed=0)
            conclusion = partial_findings.conclude_unreached(len(used), tally)
        elif conclusion.decision is Decision.FAIL and self._hinges_on_silence(used):
            silent = used.count(lambda row: row.is_unjudged)
            conclusion = partial_findings.conclude_silenced(
                conclusion, silent, trial_rows.tell_unmeasured(used)
            )
        reason = self._find_reason(counts)
        procedure = find_procedure(criterion.procedure)
        conclusion = procedure.complete(criterion, conclusion, reason, plan)
        disclosed = self._disclose(rows)
        ends = counts.decision is not None or counts.is_complete
        after = rows[len(used) :] if ends else rows[:0]
        ends_early = reason in (StopReason.DECIDED, StopReason.CURTAILED)
        last = used.places[-1] if ends_early and used else None
        if criterion.others.withdrawn_by is None:
            # What no later trial can withdraw is at least qualified by them.
            disclosed += trial_rows.compare_later(self._leave_out(used), self._leave_out(after))
        if disclosed:
            conclusion = replace(conclusion, notes=(*conclusion.notes, *disclosed))
        if criterion.judging.errors is not None and conclusion.evidence.judged is None:
            from trialwise.procedures.judge_corrections import correct

            conclusion = correct(conclusion, criterion, counts.rows, reason)
        contained = trial_rows.contain(conclusion, criterion, plan, used, reason)
        fair, is_whole = self._leave_out(rows), len(rows) * self.inputs >= self.experiment.trials
        return contained.to_finding(
            criterion,
            stop=reason,
            # Everything that ran is counted, whatever part of it decided.
            counts=replace(
                trial_rows.count_trials(rows),
                counted=self._tally_all(rows),
                decided_at=len(used) if after else None,
                later=self._find_later(rows, len(used)) if after else None,
                coverage=None if input_id else trial_rows.cover_inputs(rows, self.experiment),
            ),
            diagnostics=trial_rows.diagnose_rows(fair, deciding=last),
            single_decision=self._decide_alone(rows),
            input_id=input_id,
            scores=summarize_scores(criterion, fair, plan.claim, is_whole=is_whole),
        )

    def join_inputs(self, rows: Rows, parts: tuple[Finding, ...]) -> Finding:
        """One finding over all inputs: the worst of them, so that none hides behind the others."""
        first = parts[0]
        decision = combine(part.decision or Decision.INCONCLUSIVE for part in parts)
        coverage = trial_rows.cover_inputs(rows, self.experiment)
        counts = replace(trial_rows.count_trials(rows), coverage=coverage)
        return Finding(
            plan=self.criterion,
            decision=decision,
            tally=counts.intent_to_treat,
            # The pooled counts decide nothing here, so nothing is inferred from them.
            words=replace(first.words, statement=state_inputs(parts, decision)),
            observed_rate=first.observed_rate,
            caution=first.caution,
            refusals=first.refusals,
            stop=next((part.stop for part in parts if part.stop is not None), None),
            notes=self._disclose(rows),
            counts=counts,
            by_input=parts,
            scores=sum_up_inputs([part.scores for part in parts]),
        )

    def _disclose(self, rows: Rows) -> tuple[grounds.Note, ...]:
        skips = self.criterion.counting.stops_early
        return trial_rows.disclose_counts(rows, analysis=self.analysis, skips_unjudged=skips)

    def _decide_alone(self, rows: Rows) -> Decision | None:
        """Return what the design with undivided error limits makes of the same trials."""
        design = self.criterion.others.uncorrected
        if design is None:
            return None
        boundaries = cast("SequentialDesign", design)
        stream = self._feed(rows, Limits(boundaries.cap, None, boundaries))
        return stream.decision or Decision.INCONCLUSIVE

    def _feed(self, rows: Rows, limits: Limits) -> Stream:
        stream = Stream(limits)
        places, says = self._find_places(rows), rows.tell(self._read)
        if limits.looks:
            for place in compress(places, rows.mark(lambda row: row.is_unheard)):
                stream.mark_unheard(place)
        # What nothing can be decided by is only counted.
        first = min(limits.next_look(0, 0) - 1, len(rows))
        if first > 0 and places[first - 1] == first - 1:
            quiet = Counter(islice(says, first))
            stream.skip(first, passed=quiet[True], failed=quiet[False])
        rest = islice(places, stream.next_place, None)
        for place, passed in zip(rest, says, strict=True):
            stream.add(place, passed)
        return stream

    def _read(self, row: Row) -> bool | None:
        """Return what a trial tells a stream; None where it tells nothing."""
        is_skipped = self._is_left_out(row) or (not row.passed and row.is_unjudged)
        return None if is_skipped else row.passed

    def _tally_all(self, rows: Rows) -> Tally:
        fair = self._leave_out(rows)
        if self.criterion.counting.stops_early:
            fair = fair.keep(lambda row: row.passed or not row.is_unjudged)
        return trial_rows.tally_of(fair, len(fair), fair.passed)

    def _find_later(self, rows: Rows, decided_at: int) -> Tally | None:
        """Return the trials after the decision that can withdraw it, up to the first gap.

        What came back after a gap was not issued later than the trial that is missing.
        """
        if self.criterion.others.withdrawn_by is None:
            return None
        places = self._find_places(rows)
        # Places never lie before their position, and the first that lies behind it is the gap.
        gap = bisect_right(range(len(places)), 0, key=lambda k: places[k] - k)
        later = self._leave_out(rows[decided_at:gap]).keep(lambda row: not row.is_unjudged)
        return Tally(trials=len(later), passed=later.passed)

    def _hinges_on_silence(self, rows: Rows) -> bool:
        """Return whether it would not FAIL, had the trials that no judge judged passed.

        A judge's silence is no pass, and no failure of the service either.
        """
        if not rows.count(lambda row: row.is_unjudged and not self._is_left_out(row)):
            return False
        _, counts = self._count(rows.let_pass(lambda row: row.is_unjudged))
        return self._conclude(counts).decision is not Decision.FAIL

    def _count(self, rows: Rows) -> tuple[Rows, Counts]:
        """Run the stream through its limits, in the order of inputs and up to the first gap.

        Where each input is decided, trials are issued in blocks of all inputs: a trial's block is
        its place among its input's own. A trial that was not measured is followed by a fresh one at
        the end. What no judge judged decides nothing early; at the end of a fixed design it counts
        as failed, and a sequential one goes on without it.

        Returns the rows that were reached, excused trials included, and what was counted of them.
        """
        criterion = self.criterion
        if criterion.counting.rides_along or criterion.counting.counts_every_trial:
            return rows, self._count_all(rows)
        stream, places, used = self._feed(rows, criterion.limits), self._find_places(rows), rows
        if rows and max(places) >= stream.next_place:
            used = rows.select([place < stream.next_place for place in places])
        trials, is_over = stream.trials, not self.stop.is_premature
        if not criterion.counting.stops_early:
            silent = self._leave_out(used)
            trials += silent.count(lambda row: not row.passed and row.is_unjudged)
        # Fresh trials come after the planned ones, so that all places are taken where they end.
        is_over = is_over and stream.next_place >= max(criterion.trials, len(rows))
        is_complete = is_over or trials >= criterion.trials
        counts = self._make_counts(used, trials, stream.passed, is_complete=is_complete)
        return used, replace(counts, decision=stream.decision, ran=self._tally_all(rows))

    def _count_all(self, rows: Rows) -> Counts:
        """Count every trial of the run, whichever criterion needed it."""
        counting, least = self.criterion.counting, self.criterion.trials
        fair = self._leave_out(rows)
        is_complete = (not self.stop.is_premature and len(rows) >= least) or len(fair) >= least
        if counting.rides_along:
            is_complete = bool(rows)
        counts = self._make_counts(rows, len(fair), fair.passed, is_complete=is_complete)
        # One failure is certain at any time, also of a criterion with a number of trials.
        has_failed = counting.counts_every_trial and counts.tally.failed
        return replace(counts, decision=Decision.FAIL) if has_failed else counts

    def _find_places(self, rows: Rows) -> Sequence[int]:
        """Find the place of each trial in the stream."""
        if self.inputs == 1:
            return rows.indexes
        planned, places, fresh = self.experiment.trials // self.inputs, array("q"), 0
        for index in rows.indexes:
            is_fresh = index >= self.experiment.trials
            places.append(planned + fresh if is_fresh else index // self.inputs)
            fresh += is_fresh
        return places

    def _leave_out(self, rows: Rows) -> Rows:
        """Return those that the analysis counts."""
        return rows.keep(lambda row: not self._is_left_out(row))

    def _make_counts(self, rows: Rows, trials: int, passed: int, *, is_complete: bool) -> Counts:
        return Counts(
            tally=trial_rows.tally_of(rows, trials, passed),
            is_complete=is_complete,
            stop=self.stop,
            intent=self.plan.intent_of(self.criterion),
            claim=self.plan.claim,
            experiment=self.experiment,
            rows=self._leave_out(rows),
        )

    def _conclude(self, counts: Counts) -> Conclusion:
        if self.plan.purpose == "measure":
            return partial_findings.conclude_measured(counts.tally)
        found = find_procedure(self.criterion.procedure).decide(self.criterion, counts)
        is_plain = found.decision is Decision.PASS and not found.label
        if is_plain and self.plan.is_smoke(self.criterion):
            # The rest of the run is evidence, so that this PASS has to say what it is.
            return replace(found, label=partial_findings.SMOKE_PASS)
        return found

    def _find_reason(self, counts: Counts) -> StopReason:
        if self.criterion.counting.rides_along:
            return self.stop if self.stop.is_premature else StopReason.COMPLETE
        if counts.is_complete:
            return StopReason.COMPLETE
        if counts.decision is not None:
            is_sequential = self.criterion.counting.stops_early or self.criterion.judging.looks
            return StopReason.DECIDED if is_sequential else StopReason.CURTAILED
        # The others were decided, and this one was given up because its judge did not answer.
        return self.stop if self.stop.is_premature else StopReason.ERROR_RATE
