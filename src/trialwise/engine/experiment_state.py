"""Which trial of an experiment comes next, and when the experiment needs no further one.

A trial that was not measured is asked again: its input is put at the end of the order, as a fresh
trial with a seed of its own. Nothing here waits or calls. The same results lead to the same
decisions in whatever order they come back, because every stream counts in the order of inputs.
"""

from __future__ import annotations

import operator
from array import array
from collections import Counter, deque
from collections.abc import Collection, Sequence
from itertools import islice

from trialwise import model
from trialwise.engine.check_watch import CheckWatch
from trialwise.engine.criterion_progress import (
    Progress,
    UnaskedInputs,
    combine_stops,
    issue_places,
    trial_seeds,
)
from trialwise.engine.error_classes import Reach
from trialwise.engine.ports import HOOK_FAILED
from trialwise.errors import InvalidArgument
from trialwise.model.plan import ExperimentPlan
from trialwise.model.trial import NOT_MEASURED
from trialwise.model.trial_table import TrialTable

_NONE: Sequence[Progress] = ()
#: At most this many fresh trials for each planned one: a service that is down must not run for
#: ever.
_MOST_FRESH = 1
#: A service that refuses this many first trials is set up wrongly.
_FEW_REFUSED = 3
#: A service that nothing is heard of in this many first trials, retries included, is not there.
_FEW_SILENT = 5
_CHECK_SETUP = (
    "No trial was answered before, so the service is set up wrongly: check the address, the key, "
    "the model and the form of the request. Nothing was measured."
)
#: What to say at the end of a run that never reached its service, by the class of the last error.
_UNREACHED = {
    model.ErrorClass.INFRASTRUCTURE: "Is it running?",
    model.ErrorClass.PRE_VALIDATION: "Nothing was measured.",
}


class ExperimentState:
    """The trials of one experiment: issued, in flight, counted.

    Args:
        plan: The run's.
        experiment: One of its experiments.
        done: Trials of the experiment from before a restart: counted first, and never run again.
            Those of a journal are held together with the ones to come.
    """

    def __init__(
        self, plan: model.Plan, experiment: ExperimentPlan, done: Sequence[model.Trial] = ()
    ) -> None:
        criteria = plan.criteria_of(experiment.name)
        self.experiment = experiment
        each_input = any(one.counting.each_input for one in criteria)
        self.order = array("I", issue_places(experiment, seed=plan.seed, each_input=each_input))
        self.planned = len(self.order)
        """How many trials were planned, without those that are asked again."""
        # Where the fresh trials of each input stand among its own, and how many there are of each.
        self._fresh_places: list[int] = []
        self._fresh: Counter[int] = Counter()
        self.seed_of = trial_seeds(plan.seed, experiment.name)
        self.planned_concurrency = min(plan.options.concurrency, max(1, len(self.order)))
        self.concurrency = self.planned_concurrency
        """How many trials may be in flight at once."""
        self.progress = tuple(
            Progress(one, inputs=len(experiment.input_ids), concurrency=self.concurrency)
            for one in criteria
        )
        self._deciding = deciding = [
            one for one in self.progress if not one.plan.counting.rides_along
        ]
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
        self.watch: CheckWatch | None = None
        """Looks out for broken checks, where there are checks and one has not answered yet."""
        analyses = [plan.analysis_of(one) for one in criteria]
        self._analysed = tuple(zip(self.progress, analyses, strict=True))
        # Where every criterion counts what was not measured as failed, nothing is asked again.
        self._asks_again = not all(one is model.Analysis.INTENT_TO_TREAT for one in analyses)
        self.trials = TrialTable.of(done, experiment.name, [one.criterion for one in criteria])
        """Completed, in the order of inputs."""
        self._out: set[int] = set()
        # Trials that were started and will not come back: asked again before any other.
        self._lost: deque[int] = deque()
        self._next = 0
        self._skipped = 0
        self._passed_over: list[int] = []
        # Trials up to here may be from before a restart.
        self._resumed = self.trials.last
        # For the abort rule. Trials from before a restart are left out: what was wrong with them
        # may have been repaired.
        self._completed = 0
        self._unmeasured = 0
        self._counts_exits = plan.options.abort.exit_codes
        self._bad_exits = 0
        self._unanswered = [0] * len(self.progress)
        self._last_class = model.ErrorClass.NONE
        self._last_error = ""
        self._last_trouble = ""
        self.has_trouble = False
        """Whether some trial says nothing about the service."""
        self._resume()

    def _resume(self) -> None:
        trials = self.trials
        strange = trials.misfits[0] if trials.misfits else self._find_strange()
        if strange is not None:
            allowed = "be trials of this plan, each once: its order and seeds give others"
            raise InvalidArgument("done", f"trial {strange}", allowed)
        indexes = trials.indexes
        if any(map(operator.eq, indexes, islice(indexes, 1, None))):
            raise InvalidArgument("done", len(trials), "hold every trial once")
        self._resume_fresh()
        # In the order of inputs: a stream that is fed in order keeps nothing waiting.
        notable = trials.list_notable()
        for place, (index, is_notable) in enumerate(zip(indexes, notable, strict=True)):
            if is_notable or index >= self.planned:
                self._count(trials.sketch(place))
            else:
                self._count_passed(index)

    def _resume_fresh(self) -> None:
        """Put back the inputs that were waiting to be asked again before the restart."""
        is_lost = any(one.error_class in NOT_MEASURED for one in self.trials.courses)
        if not is_lost and self.trials.last < self.planned:
            return
        places = {name: place for place, name in enumerate(self.experiment.input_ids)}
        given: dict[int, int] = {}
        asked: list[int] = []
        for trial in self.trials.sketches():
            if trial.index >= self.planned:
                given[trial.index] = places[trial.input_id]
            if self._is_asked_again(trial):
                asked.append(places[trial.input_id])
        answered = Counter(given.values())
        # Which input took which of the places that are missing is not known. The seed follows the
        # place, so that any of them makes a fresh trial of it.
        waiting: deque[int] = deque()
        for position in asked:
            if answered[position]:
                answered[position] -= 1
            else:
                waiting.append(position)
        last = max(given, default=self.planned - 1)
        for index in range(self.planned, last + 1):
            # A fresh trial that was in flight left a gap; whichever input waits takes it.
            position = given[index] if index in given else waiting.popleft() if waiting else 0
            self._ask_again(position)
        for position in waiting:
            self._ask_again(position)

    def _find_strange(self) -> int | None:
        """Return the index of a trial that the plan does not issue just so; None if there is none.

        Order and seeds follow from the plan alone, so a trial of another plan is known by them.
        """
        trials, order, seed_of = self.trials, self.order, self.seed_of
        most = self.planned * (1 + _MOST_FRESH)
        places = {name: place for place, name in enumerate(self.experiment.input_ids)}
        positions = [places.get(name) for name in trials.names]
        for index, number, seed in zip(trials.indexes, trials.inputs, trials.seeds, strict=True):
            position = positions[number]
            # The seed is a hash of the plan's seed and the index: a journal of another plan, or one
            # edited by hand, is found by it.
            if not 0 <= index < most or seed != seed_of(index) or position is None:
                return index
            if index < self.planned and position != order[index]:
                return index
        return None

    def _is_asked_again(self, trial: model.Trial) -> bool:
        return self._asks_again and trial.error_class in NOT_MEASURED

    def _ask_again(self, position: int) -> None:
        """Put an input at the end of the order, as a fresh trial."""
        if len(self.order) >= self.planned * (1 + _MOST_FRESH):
            return
        earlier = self._fresh[position]
        self._fresh[position] += 1
        self._fresh_places.append(self.planned // len(self.experiment.input_ids) + earlier)
        self.order.append(position)

    @property
    def in_flight(self) -> int:
        """How many trials were started and have not come back."""
        return len(self._out)

    def let_go(self) -> int:
        """Note that nothing in flight will be counted; return how many trials that were."""
        count = len(self._out)
        self.lose(tuple(self._out))
        return count

    @property
    def is_settled(self) -> bool:
        """Whether no further trial is needed; what is in flight can be let go."""
        is_decided = self._open == 0 and not self.runs_all and self._unasked.is_empty
        # A check that is broken must not decide: it is told apart after a few replies.
        return is_decided and not self.is_doubtful

    @property
    def is_doubtful(self) -> bool:
        """Whether a check may be broken, so that further replies are needed to tell."""
        return self.watch is not None and self.watch.is_doubtful

    @property
    def is_finished(self) -> bool:
        """Whether the experiment ended as planned: settled, or all of it run."""
        # Nothing is open either where every judge was given up, but then nothing was decided.
        is_decided = self.is_settled and not self._is_given_up
        return is_decided or len(self.trials) + self._skipped >= len(self.order)

    def check_gaps(self) -> None:
        """Check that no trial is missing that an open criterion waits for.

        Raises:
            AssertionError: One was started and never counted; nothing may be decided without it.
        """
        waiting = [
            stream.next_place
            for one in self._deciding
            if not one.is_given_up
            for stream in one.streams
            if stream.has_gap
        ]
        if waiting or not self.is_finished:
            name, place = self.experiment.name, min(waiting, default=self._next)
            raise AssertionError(
                f"trial {place} of {name!r} is missing, and those after it cannot be decided on "
                "without it; completed trials are kept, and --resume asks the missing one"
            )

    @property
    def _is_given_up(self) -> bool:
        """Whether the run has given up every open criterion because their judges do not answer."""
        return bool(self._deciding) and all(one.is_given_up for one in self._deciding)

    @property
    def stop(self) -> model.StopReason:
        """Why a finished experiment needs no further trial."""
        reasons = {one.stop for one in self._deciding}
        ran_all = len(self.trials) >= len(self.order)
        if self.runs_all or (ran_all and model.StopReason.COMPLETE in reasons):
            return model.StopReason.COMPLETE
        return combine_stops(reasons)

    def peek(self) -> int | None:
        """Return the index of the trial to start next, or None where none should start now."""
        # Nearly every trial of most runs: nothing is settled, and nothing waits.
        is_simple = self._open_pooled and self.concurrency == 1 and not self._lost
        if is_simple and self._resumed < self._next < len(self.order):
            return self._next
        if self.is_settled:
            return None
        while self._lost:
            if self._needs(self.order[self._lost[0]]):
                return self._lost[0]
            self._lost.popleft()
            self._skipped += 1
        # Skipping is final: an input that is settled is never needed again, so the cursor may pass
        # it for good. A trial that is only unlikely to be needed stays under the cursor instead.
        while self._next < len(self.order):
            if self._next > self._resumed or self.trials.find(self._next) is None:
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

    def take(self, index: int) -> tuple[int, int]:
        """Start the trial that `peek` gave; return the place of its input and its seed."""
        if self._lost and index == self._lost[0]:
            self._lost.popleft()
        elif index == self._next:
            self._next += 1
        else:
            self._passed_over.remove(index)
            self._skipped -= 1
        if self._unasked.is_kept:
            self._unasked.take(self.order[index])
        return self.start(index)

    def start(self, index: int) -> tuple[int, int]:
        """Start a trial that the driver chose; return the place of its input and its seed."""
        self._out.add(index)
        return self.order[index], self.seed_of(index)

    def lose(self, indexes: Collection[int]) -> None:
        """Note that trials in flight will never be counted: they are asked again if need be."""
        self._out.difference_update(indexes)
        self._lost.extend(sorted(indexes))
        for index in indexes:
            self._unasked.lose(self.order[index])

    def add(self, trial: model.Trial, at: int | None = None) -> Sequence[Progress]:
        """Count a completed trial, which the log holds `at` a place; return what it settled."""
        self._out.remove(trial.index)
        self._completed += 1
        is_plain = trial.is_plain
        if not is_plain:
            self._note_trouble(trial)
        if self.watch is not None:
            self.watch.add(trial, is_alone=self.in_flight == 0)
            if self.watch.is_over and self.watch.broken is None:
                self.watch = None
        if self.trials.is_sealed:
            self.trials = self.trials.copy()
        self.trials.put(trial, at)
        if is_plain and trial.index < self.planned:
            return self._count_passed(trial.index)
        return self._count(trial)

    def _note_trouble(self, trial: model.Trial) -> None:
        """Note what is wrong with a trial, if anything is, and ask its input again if need be."""
        if self._counts_exits and trial.exit_code:
            self._bad_exits += 1
            self.has_trouble = True
        if trial.error_class is not model.ErrorClass.NONE:
            self._last_class = trial.error_class
            if trial.error_class in NOT_MEASURED:
                self._unmeasured += 1
                self._last_error = trial.error
            self.has_trouble = True
            if self._is_asked_again(trial):
                self._ask_again(self.order[trial.index])
        else:
            # Only a check that asks somebody can fail to answer; any other one always has a result.
            for place, outcome in enumerate(trial.outcomes):
                if outcome.error_class is not model.ErrorClass.NONE:
                    self._unanswered[place] += 1
                    self.has_trouble = True
                    self._last_trouble = outcome.result.explanation

    @property
    def is_unmeasured(self) -> bool:
        """Whether no trial of this process says anything about the service."""
        return self._completed > 0 and self._unmeasured == self._completed

    @property
    def is_refused(self) -> bool:
        """Whether the service has refused every request so far as wrong."""
        return self.is_unmeasured and self._last_class is model.ErrorClass.CONFIGURATION

    def find_abort(
        self, reach: Reach, rule: model.AbortRule, unreached: str
    ) -> tuple[model.StopReason, str] | None:
        """Return why the run should stop, with the words for trials that were `unreached`."""
        found = self._find_dead_end(reach, rule)
        if found is None and (why := self._find_excess(rule, unreached)):
            return model.StopReason.ERROR_RATE, why
        return found

    def _find_dead_end(
        self, reach: Reach, rule: model.AbortRule
    ) -> tuple[model.StopReason, str] | None:
        """Return why no trial was or will be measured; None if one still may be."""
        # What is in flight may be answered more slowly than others were refused.
        if not self.is_unmeasured or (self.in_flight and self._completed < rule.after):
            return None
        said = self._last_error[:1].upper() + self._last_error[1:]
        if self.is_refused and self._completed >= min(_FEW_REFUSED, self.planned):
            return model.StopReason.SERVICE, f"{said}. {_CHECK_SETUP}"
        hint = _UNREACHED.get(self._last_class)
        if said.startswith(HOOK_FAILED):
            hint = _UNREACHED[model.ErrorClass.PRE_VALIDATION]
        # Whoever allows every trial to fail this way wants to see how the run ends.
        if hint is None or not said or reach.has_answered or rule.max_error_rate >= 1:
            return None
        if self._completed >= min(_FEW_SILENT, rule.after):
            return model.StopReason.ERROR_RATE, f"{said}. {hint}"
        return None

    def _find_excess(self, rule: model.AbortRule, unreached: str) -> str | None:
        if self._completed < rule.after:
            return None
        most = rule.max_error_rate * self._completed
        allowed = f"more than the {100 * rule.max_error_rate:.3g} % allowed"
        trials = f"of {self._completed} trials of {self.experiment.name!r}"
        if self._unmeasured > most:
            said = f": {self._last_error}" if self._last_error else ""
            return f"{self._unmeasured} {trials} {unreached}, {allowed}{said}"
        # Together: a program that crashes and one that cannot be started have one cause more often
        # than two.
        if self._bad_exits + self._unmeasured > most:
            return f"{self._bad_exits} {trials} ended with an exit code other than 0, {allowed}"
        for place, count in enumerate(self._unanswered):
            if count > most and not self.progress[place].is_given_up:
                self._give_up(self.progress[place])
        if self._is_given_up:
            why = f"could not be measured ({self._last_trouble})"
            return f"{max(self._unanswered)} {trials} {why}, {allowed}"
        return None

    def _give_up(self, progress: Progress) -> None:
        """Stop waiting for a judge that does not answer; the other criteria continue."""
        was_open = 0 if progress.plan.counting.rides_along else progress.open_streams
        progress.is_given_up = True
        if was_open:
            self._open -= was_open
            self._open_pooled -= not progress.each_input

    def _count(self, trial: model.Trial) -> Sequence[Progress]:
        index, position = trial.index, self.order[trial.index]
        if self._unasked.is_kept:
            self._unasked.add(trial, position)
        settled = _NONE
        fresh = index - self.planned
        place = None if fresh < 0 else self._fresh_places[fresh]
        outcomes = trial.outcomes
        for number, (progress, analysis) in enumerate(self._analysed):
            outcome = outcomes[number]
            passed: bool | None = outcome.result.passed
            # What no judge judged has no say while the run goes on, whatever the analysis.
            if outcome.error_class is not model.ErrorClass.NONE and (
                analysis.leaves_out(trial.error_class) or trial.is_unjudged(outcome)
            ):
                passed = None
            if progress.has_looks and trial.is_unheard(outcome):
                progress.mark_unheard(index)
            has_settled = progress.add(index, position, passed, place)
            if has_settled:
                self._settle(progress)
            if (has_settled and progress.is_settled) or progress.overturn(passed):
                settled = (*settled, progress)
        return settled

    def _count_passed(self, index: int) -> Sequence[Progress]:
        """Count a planned trial that passed everything."""
        position = self.order[index]
        if self._unasked.is_kept:
            self._unasked.add_passed(position)
        settled = _NONE
        for progress in self.progress:
            if progress.add(index, position, True):
                self._settle(progress)
                if progress.is_settled:
                    settled = (*settled, progress)
        return settled

    def _settle(self, progress: Progress) -> None:
        # Counted down rather than asked for: there may be thousands of streams, and `is_settled`
        # is asked after every trial.
        if not progress.plan.counting.rides_along and not progress.is_given_up:
            self._open -= 1
            self._open_pooled -= not progress.each_input

    def _needs(self, position: int) -> bool:
        """Return whether a trial of an input can still change anything."""
        if self._open_pooled or self.runs_all or self.is_doubtful or self._unasked.needs(position):
            return True
        return any(one.needs(position) for one in self._by_input if not one.is_given_up)

    def _wants(self, index: int, position: int) -> bool:
        """Return whether a trial will probably be needed; true if no other is under way."""
        # With nothing in flight a refusal would end the run, since no result could change it.
        if self.concurrency == 1 or self.runs_all or self.in_flight == 0:
            return True
        if self._open == 0:
            return True  # what is left asks an input that nobody has asked
        return any(one.wants(index, position) for one in (*self._pooled, *self._by_input))
