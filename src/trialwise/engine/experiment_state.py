"""Which trial of an experiment comes next, and when the experiment needs no further one.

Nothing here waits or calls. The same results lead to the same decisions in whatever order they come
back, because every stream counts in the order of inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trialwise.engine.criterion_progress import Progress, combine_stops
from trialwise.engine.trial_inputs import issue_places, trial_seeds
from trialwise.engine.unasked_inputs import UnaskedInputs
from trialwise.errors import InvalidArgument
from trialwise.model.evidence import StopReason
from trialwise.model.options import AbortRule, Analysis
from trialwise.model.plan import ExperimentPlan, Plan
from trialwise.model.trial import ErrorClass, Trial

_NONE: Sequence[Progress] = ()


class ExperimentState:
    """The trials of one experiment: issued, in flight, counted.

    Args:
        plan: The run's.
        experiment: One of its experiments.
        done: Trials of the experiment from before a restart: counted first, and never run again.
    """

    def __init__(self, plan: Plan, experiment: ExperimentPlan, done: Iterable[Trial] = ()) -> None:
        criteria = plan.criteria_of(experiment.name)
        self.experiment = experiment
        self.order = issue_places(
            experiment, seed=plan.seed, each_input=any(one.each_input for one in criteria)
        )
        self.seed_of = trial_seeds(plan.seed, experiment.name)
        self.concurrency = min(plan.options.concurrency, max(1, len(self.order)))
        self.progress = tuple(
            Progress(one, inputs=len(experiment.input_ids), concurrency=self.concurrency)
            for one in criteria
        )
        deciding = [one for one in self.progress if not one.plan.rides_along]
        self._pooled = [one for one in deciding if not one.each_input]
        self._by_input = [one for one in deciding if one.each_input]
        self._open_pooled = len(self._pooled)
        self._open = sum(one.open_streams for one in deciding)
        self.runs_all = (
            plan.purpose == "measure"
            or not deciding
            or any(one.experiment == experiment.name for one in plan.latency)
        )
        self._unasked = UnaskedInputs(criteria, len(experiment.input_ids))
        self._leaves_out = plan.analysis is Analysis.PER_PROTOCOL
        self.trials: list[Trial] = []
        """Completed, in the order they came back."""
        self.in_flight = 0
        self._next = 0
        self._skipped = 0
        self._passed_over: list[int] = []
        self._done: frozenset[int] = frozenset()
        # For the abort rule. Trials from before a restart are left out: what was wrong with them
        # may have been repaired.
        self._completed = 0
        self._excused = 0
        self._unanswered = 0
        self._last_trouble = ""
        self.has_trouble = False
        """Whether some trial says nothing about the service."""
        # In the order of inputs: a journal holds trials as they completed, and a stream that is
        # fed in order keeps nothing waiting.
        self._resume(sorted(done, key=lambda trial: trial.index))

    def _resume(self, done: Sequence[Trial]) -> None:
        for trial in done:
            if not self._is_ours(trial):
                allowed = "be trials of this plan, each once: its order and seeds give others"
                raise InvalidArgument("done", f"trial {trial.index}", allowed)
            self._count(trial)
        self._done = frozenset(trial.index for trial in done)
        if len(self._done) < len(done):
            raise InvalidArgument("done", len(done), "hold every trial once")

    def _is_ours(self, trial: Trial) -> bool:
        if not 0 <= trial.index < len(self.order) or len(trial.outcomes) != len(self.progress):
            return False
        # Order and seeds follow from the plan alone, so a trial of another plan is known by them.
        expected = self.experiment.input_ids[self.order[trial.index]]
        return trial.input_id == expected and trial.seed == self.seed_of(trial.index)

    @property
    def is_settled(self) -> bool:
        """Whether no further trial is needed; what is in flight can be let go."""
        return self._open == 0 and not self.runs_all and self._unasked.is_empty

    @property
    def is_finished(self) -> bool:
        """Whether the experiment ended as planned: settled, or all of it run."""
        return self.is_settled or len(self.trials) + self._skipped >= len(self.order)

    @property
    def stop(self) -> StopReason:
        """Why a finished experiment needs no further trial."""
        reasons = {one.stop for one in self.progress if not one.plan.rides_along}
        ran_all = len(self.trials) >= len(self.order)
        if self.runs_all or (ran_all and StopReason.COMPLETE in reasons):
            return StopReason.COMPLETE
        return combine_stops(reasons)

    def peek(self) -> int | None:
        """The index of the trial to start next, or None where none should start now."""
        # Skipping is final: an input that is settled is never needed again, so the cursor may pass
        # it for good. A trial that is only unlikely to be needed stays under the cursor instead.
        while self._next < len(self.order):
            if self._next not in self._done:
                position = self.order[self._next]
                if self._needs(position):
                    return self._next if self._wants(self._next, position) else None
                self._skipped += 1
                if self._unasked.is_asking(position):
                    self._passed_over.append(self._next)
            self._next += 1
        # A trial in flight may come back without having measured anything: its input is then asked
        # by one that was passed over for it.
        return next((one for one in self._passed_over if self._needs(self.order[one])), None)

    def take(self) -> None:
        """Start the trial that `peek` gave."""
        index = self._next
        if index < len(self.order):
            self._next += 1
        else:
            index = next(one for one in self._passed_over if self._needs(self.order[one]))
            self._passed_over.remove(index)
            self._skipped -= 1
        self._unasked.take(self.order[index])
        self.in_flight += 1

    def add(self, trial: Trial) -> Sequence[Progress]:
        """Count a completed trial.

        Returns:
            The criteria that it settled.
        """
        self.in_flight -= 1
        self._completed += 1
        if trial.error_class is not ErrorClass.NONE:
            self._excused += trial.is_excused
            self.has_trouble = True
        else:
            # Only a check that asks somebody can fail to answer; any other one always has a result.
            for outcome in trial.outcomes:
                if outcome.error_class is not ErrorClass.NONE:
                    self._unanswered += 1
                    self.has_trouble = True
                    self._last_trouble = outcome.result.explanation
                    break
        return self._count(trial)

    def abort_reason(self, rule: AbortRule, *, unreached: str) -> str | None:
        """Why the run is not worth going on with; None where it is.

        Args:
            rule: How many such trials are too many.
            unreached: What to say of trials that never reached the service.
        """
        if self._completed < rule.after:
            return None
        for count, what in (
            (self._excused, unreached),
            (self._unanswered, f"could not be measured ({self._last_trouble})"),
        ):
            if count > rule.max_error_rate * self._completed:
                return (
                    f"{count} of {self._completed} trials of {self.experiment.name!r} {what}, "
                    f"more than the {rule.max_error_rate:.0%} allowed"
                )
        return None

    def _count(self, trial: Trial) -> Sequence[Progress]:
        self.trials.append(trial)
        index, position = trial.index, self.order[trial.index]
        self._unasked.add(trial, position)
        settled = _NONE
        is_left_out = self._leaves_out and trial.is_excused
        for progress, outcome in zip(self.progress, trial.outcomes, strict=True):
            # What no judge judged has no say while the run goes on, whatever the analysis.
            is_silent = outcome.error_class is not trial.error_class and trial.is_unjudged(outcome)
            passed = None if is_left_out or is_silent else outcome.result.passed
            if progress.add(index, position, passed):
                self._settle(progress)
                if progress.is_settled:
                    settled = (*settled, progress)
        return settled

    def _settle(self, progress: Progress) -> None:
        # Counted down rather than asked for: there may be thousands of streams, and `is_settled`
        # is asked after every trial.
        if not progress.plan.rides_along:
            self._open -= 1
            self._open_pooled -= not progress.each_input

    def _needs(self, position: int) -> bool:
        """Whether a trial of an input can still change anything."""
        if self._open_pooled or self.runs_all or self._unasked.needs(position):
            return True
        return any(one.needs(position) for one in self._by_input)

    def _wants(self, index: int, position: int) -> bool:
        """Whether a trial will probably be needed; always, where nothing else is under way."""
        # With nothing in flight a refusal would end the run, since no result could change it.
        if self.concurrency == 1 or self.runs_all or self.in_flight == 0:
            return True
        if self._open == 0:
            return True  # what is left asks an input that nobody has asked
        return any(one.wants(index, position) for one in (*self._pooled, *self._by_input))
