"""One criterion's finding from the trials of its experiment.

The decision rests on the gapless beginning of the order of inputs, exactly as it did while the run
went on. A plan that was cut short is INCONCLUSIVE: deciding at the size that happened to be
reached would be another rule than the one that was planned. Each procedure is imported where it
decides: few runs have two of them.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import compress, islice
from typing import TYPE_CHECKING, NamedTuple, cast

from trialwise.decimals import complement
from trialwise.model.claim import PopulationClaim
from trialwise.model.evidence import Note, NoteKind, ScoreSummary, StopReason
from trialwise.model.plan import CriterionPlan, ExperimentPlan, Limits, Plan
from trialwise.model.sampling import CHALLENGES, SamplingRole
from trialwise.model.tally import Tally
from trialwise.model.trial import Analysis, ErrorClass, Trial
from trialwise.model.verdict import Decision, Finding
from trialwise.procedures.base import Conclusion, Counts
from trialwise.procedures.composite import combine, state_inputs
from trialwise.procedures.criterion_rows import Row, Rows
from trialwise.procedures.deciding.partial_findings import (
    conclude_measured,
    conclude_silenced,
    conclude_unreached,
)
from trialwise.procedures.deciding.trial_rows import (
    compare_later,
    count_trials,
    cover_inputs,
    diagnose_rows,
    disclose_counts,
    tally_of,
    tell_unmeasured,
)
from trialwise.procedures.registry import find_procedure
from trialwise.procedures.smoke_runs import SMOKE_PASS
from trialwise.procedures.streams import Stream
from trialwise.stats.result_types import Rule

if TYPE_CHECKING:
    from trialwise.stats import GuardrailBound, ResidualHarm, StratifiedContainment
    from trialwise.stats.sequential import SequentialDesign


_RED_TEAM = (
    "Red-team inputs show what reached the user under adversarial prompting; they do not isolate "
    "what the guardrail blocks."
)
_NOT_WHOLE = (
    "A bound on the miss probability needs every planned trial: the run stopped as soon as its "
    "verdict was certain. Switch curtailing off, and fix the number of trials, to have one."
)
_ONLY_THESE = (
    "A bound on misses beyond these candidates needs a superpopulation claim with an argument "
    "that they represent it."
)


def contain(
    conclusion: Conclusion,
    criterion: CriterionPlan,
    plan: Plan,
    experiment: ExperimentPlan,
    rows: Rows,
    *,
    stop: StopReason,
) -> Conclusion:
    """Add what a challenge sampling says of its guardrail (§1.4.5b).

    Args:
        conclusion: What was decided.
        criterion: Its plan.
        plan: The run's.
        experiment: Whose role says what was sampled.
        rows: The counted trials.
        stop: Why no further trial was counted.
    """
    role = SamplingRole(experiment.role)
    if role not in CHALLENGES:
        return conclusion
    unsupported = _explain_unsupported(role, plan, stop)
    if unsupported:
        note = Note(kind=NoteKind.GUARDRAIL, text=unsupported)
        return replace(conclusion, notes=(*conclusion.notes, note))
    evidence, tally = conclusion.evidence, conclusion.tally
    if criterion.alpha is None or criterion.estimator is not None or not rows:
        return conclusion
    from trialwise.stats.guardrail_bounds import guardrail_sensitivity, guardrail_specificity

    confidence, counts = complement(criterion.alpha), (tally.passed, tally.trials)
    if role is SamplingRole.HARMLESS_CANDIDATES:
        bound = guardrail_specificity(*counts, confidence=confidence, rule=plan.rule)
        return replace(conclusion, evidence=replace(evidence, containment=bound))
    bound = guardrail_sensitivity(*counts, confidence=confidence, rule=plan.rule)
    contained = replace(
        evidence,
        containment=bound,
        containment_strata=_strata(experiment, rows, confidence, plan.rule),
        residual=_residual(plan, bound),
    )
    return replace(conclusion, evidence=contained)


def _explain_unsupported(role: SamplingRole, plan: Plan, stop: StopReason) -> str:
    """Explain why no bound on the guardrail follows, or nothing."""
    if role is SamplingRole.RED_TEAM:
        return _RED_TEAM
    if plan.claim.population is not PopulationClaim.SUPERPOPULATION:
        return _ONLY_THESE
    return "" if stop is StopReason.COMPLETE else _NOT_WHOLE


def _strata(
    experiment: ExperimentPlan, rows: Rows, confidence: float, rule: Rule
) -> StratifiedContainment | None:
    if not experiment.strata:
        return None
    from trialwise.stats.guardrail_bounds import ChallengeStratum, stratified_containment

    stratum_of = dict(zip(experiment.input_ids, experiment.strata, strict=True))
    counts: dict[str, tuple[int, int]] = {}
    for name, (passed, trials) in rows.tally_inputs().items():
        stratum = stratum_of[name] or "unnamed"
        blocked, presented = counts.get(stratum, (0, 0))
        counts[stratum] = blocked + passed, presented + trials
    parts = [
        ChallengeStratum(name=name, blocked=blocked, presented=presented)
        for name, (blocked, presented) in counts.items()
    ]
    return stratified_containment(parts, confidence=confidence, rule=rule)


def _residual(plan: Plan, bound: GuardrailBound) -> ResidualHarm:
    from trialwise.stats.guardrail_bounds import residual_harm_bound

    prevalence = plan.prevalence
    if prevalence is None:
        return residual_harm_bound(bound.error_upper, miss_confidence=bound.confidence)
    return residual_harm_bound(
        bound.error_upper,
        prevalence.rate,
        prevalence_source="pre-guardrail",
        miss_confidence=bound.confidence,
        prevalence_confidence=prevalence.confidence,
    )


def decide_criterion(
    criterion: CriterionPlan,
    plan: Plan,
    experiment: ExperimentPlan,
    trials: Sequence[Trial],
    stop: StopReason,
) -> Finding:
    """Return what a criterion's procedure concludes.

    Args:
        criterion: Its plan.
        plan: The run's.
        experiment: The experiment it belongs to.
        trials: The trials of that experiment, in the order of inputs.
        stop: Why the experiment ended.
    """
    place = [one.criterion for one in plan.criteria_of(experiment.name)].index(criterion.criterion)
    rows = Rows.of(trials, place)
    if not criterion.counting.each_input:
        return _Stream(criterion, plan, experiment, stop).decide(rows)
    by_input = rows.split(experiment.input_ids)
    stream = _Stream(criterion, plan, experiment, stop, inputs=len(by_input))
    parts = tuple(stream.decide(mine, input_id=name) for name, mine in by_input.items())
    return _over_inputs(criterion, experiment, rows, parts, plan.analysis_of(criterion))


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
        if counts_all:
            # One failure is all that `never_fails` waits for. A rate needs some measured trial, and
            # a request that was refused as wrong says nothing of either.
            is_counted = criterion.counting.counts_every_trial and not all(
                row.course.error_class is ErrorClass.CONFIGURATION for row, _ in used.kinds
            )
            is_failed = conclusion.decision is Decision.FAIL
            is_unreached = is_unreached and is_failed and not is_counted
        if is_unreached and not plan.options.abort.to_fail:
            # Nobody asked for a FAIL where no trial was measured.
            tally = conclusion.tally if counts_all else Tally(trials=0, passed=0)
            conclusion = conclude_unreached(len(used), tally)
        elif conclusion.decision is Decision.FAIL and self._hinges_on_silence(used):
            silent = used.count(lambda row: row.is_unjudged)
            conclusion = conclude_silenced(conclusion, silent, tell_unmeasured(used))
        reason = self._find_reason(counts)
        procedure = find_procedure(criterion.procedure)
        conclusion = procedure.complete(criterion, conclusion, reason, plan)
        disclosed = disclose_counts(
            rows, analysis=self.analysis, skips_unjudged=criterion.counting.stops_early
        )
        ends = counts.decision is not None or counts.is_complete
        after = rows[len(used) :] if ends else rows[:0]
        ends_early = reason in (StopReason.DECIDED, StopReason.CURTAILED)
        last = used.places[-1] if ends_early and used else None
        if criterion.others.withdrawn_by is None:
            # What no later trial can withdraw is at least qualified by them.
            disclosed += compare_later(self._leave_out(used), self._leave_out(after))
        if disclosed:
            conclusion = replace(conclusion, notes=(*conclusion.notes, *disclosed))
        if criterion.judging.errors is not None and conclusion.evidence.judged is None:
            from trialwise.procedures.deciding.judge_corrections import correct

            conclusion = correct(conclusion, criterion, counts.rows, reason)
        conclusion = contain(conclusion, criterion, plan, self.experiment, used, stop=reason)
        return conclusion.to_finding(
            criterion,
            stop=reason,
            # Everything that ran is counted, whatever part of it decided.
            counts=replace(
                count_trials(rows),
                counted=self._tally_all(rows),
                decided_at=len(used) if after else None,
                later=self._find_later(rows, len(used)) if after else None,
                coverage=cover_inputs(rows, self.experiment) if input_id is None else None,
            ),
            diagnostics=diagnose_rows(self._leave_out(rows), deciding=last),
            single_decision=self._decide_alone(rows),
            input_id=input_id,
            scores=self._sum_up_scores(rows),
        )

    def _sum_up_scores(self, rows: Rows) -> ScoreSummary | None:
        if self.criterion.terms.pass_at is None:
            return None
        from trialwise.procedures.mean_score import summarize_scores

        is_whole = len(rows) * self.inputs >= self.experiment.trials
        return summarize_scores(
            self.criterion, self._leave_out(rows), self.plan.claim, is_whole=is_whole
        )

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
        return tally_of(fair, len(fair), fair.passed)

    def _find_later(self, rows: Rows, decided_at: int) -> Tally | None:
        """Return the trials after the decision that can withdraw it, up to the first gap.

        What came back after a gap was not issued later than the trial that is missing.
        """
        if self.criterion.others.withdrawn_by is None:
            return None
        places = self._find_places(rows)
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
        stream = self._feed(rows, criterion.limits)
        places = self._find_places(rows)
        used = rows
        if rows and max(places) >= stream.next_place:
            used = rows.select([place < stream.next_place for place in places])
        silent = 0
        if not criterion.counting.stops_early:
            silent = used.count(
                lambda row: not row.passed and row.is_unjudged and not self._is_left_out(row)
            )
        # Fresh trials come after the planned ones, so that all places are taken where they end.
        is_complete = not self.stop.is_premature and stream.next_place >= max(
            criterion.trials, len(rows)
        )
        is_complete = is_complete or stream.trials + silent >= criterion.trials
        counts = self._make_counts(
            used, stream.trials + silent, stream.passed, is_complete=is_complete
        )
        return used, replace(counts, decision=stream.decision, ran=self._tally_all(rows))

    def _count_all(self, rows: Rows) -> Counts:
        """Count every trial of the run, whichever criterion needed it."""
        fair, least = self._leave_out(rows), self.criterion.trials
        is_whole = not self.stop.is_premature and len(rows) >= least
        is_complete = (
            bool(rows) if self.criterion.counting.rides_along else is_whole or len(fair) >= least
        )
        counts = self._make_counts(rows, len(fair), fair.passed, is_complete=is_complete)
        # One failure is certain at any time, also of a criterion with a number of trials.
        has_failed = self.criterion.counting.counts_every_trial and counts.tally.failed
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
            tally=tally_of(rows, trials, passed),
            is_complete=is_complete,
            stop=self.stop,
            intent=self.plan.intent_of(self.criterion),
            claim=self.plan.claim,
            experiment=self.experiment,
            rows=self._leave_out(rows),
        )

    def _conclude(self, counts: Counts) -> Conclusion:
        if self.plan.purpose == "measure":
            return conclude_measured(counts.tally)
        found = find_procedure(self.criterion.procedure).decide(self.criterion, counts)
        is_plain = found.decision is Decision.PASS and not found.label
        if is_plain and self.plan.is_smoke(self.criterion):
            # The rest of the run is evidence, so that this PASS has to say what it is.
            return replace(found, label=SMOKE_PASS)
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


def _over_inputs(
    criterion: CriterionPlan,
    experiment: ExperimentPlan,
    rows: Rows,
    parts: tuple[Finding, ...],
    analysis: Analysis,
) -> Finding:
    """One finding over all inputs: the worst of them, so that none hides behind the others."""
    first = parts[0]
    decision = combine(part.decision or Decision.INCONCLUSIVE for part in parts)
    counts = replace(count_trials(rows), coverage=cover_inputs(rows, experiment))
    return Finding(
        plan=criterion,
        decision=decision,
        tally=counts.intent_to_treat,
        # The pooled counts decide nothing here, so nothing is inferred from them.
        words=replace(first.words, statement=state_inputs(parts, decision)),
        observed_rate=first.observed_rate,
        caution=first.caution,
        refusals=first.refusals,
        stop=next((part.stop for part in parts if part.stop is not None), None),
        notes=disclose_counts(
            rows, analysis=analysis, skips_unjudged=criterion.counting.stops_early
        ),
        counts=counts,
        by_input=parts,
        scores=_sum_up_inputs(parts) if criterion.terms.pass_at is not None else None,
    )


def _sum_up_inputs(parts: Sequence[Finding]) -> ScoreSummary | None:
    from trialwise.procedures.mean_score import sum_up_inputs

    return sum_up_inputs([part.scores for part in parts])
