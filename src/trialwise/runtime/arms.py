"""The arms of a comparison while they run, from their plans to the answer that is kept.

Every arm is a run like any other, with a plan that runs all its trials and decides nothing by
itself. What is asked of the arms ends them all. It is written down before the first trial, so that
a process that is killed at any moment can be followed by another one which continues: every arm's
journal has what is complete, and the question, the rules and the seed are as they were.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trialwise.errors import RunInterrupted
from trialwise.model.claim import Sampling
from trialwise.model.codec import to_plain
from trialwise.model.plan import Plan
from trialwise.procedures.choice import ChoiceFollowing, ChoiceQuestion
from trialwise.procedures.comparing.assessment import PreferenceVotes
from trialwise.procedures.comparing.findings import ArmRun, ComparisonQuestion
from trialwise.procedures.comparing.pair_following import PairFollowing, TestRules, follow_pairs
from trialwise.procedures.comparing.pairing import Pairing, pair_trials
from trialwise.runtime import answers
from trialwise.runtime.preparing import PreparedRun
from trialwise.runtime.workspace import OpenRun, Workspace

if TYPE_CHECKING:
    from datetime import datetime

    from trialwise.engine.arms_state import RoundSchedule
    from trialwise.engine.drivers.run_drivers import Watch
    from trialwise.engine.ports import Interrupt
    from trialwise.engine.run_state import RunOutcome
    from trialwise.engine.spending_meter import Meter
    from trialwise.judges.preference import Comparison as JudgedPair
    from trialwise.judges.preference import Pairwise
    from trialwise.renderers.progress import LineProgress, TerminalProgress
    from trialwise.stores.comparisons import StoredComparison


@dataclass(frozen=True, slots=True)
class PreparedArms:
    """Arms that are ready to run, or that were run before; the control is the first."""

    runs: tuple[PreparedRun, ...]
    labels: tuple[str, ...]
    question: answers.ArmsQuestion
    space: Workspace
    rules: TestRules = field(default_factory=dict)
    """The rule of each test; none where the number of pairs is fixed."""
    stored: StoredComparison | None = None
    """What is resumed."""
    source: Mapping[str, Any] = field(default_factory=dict)
    shows_progress: bool = False

    @property
    def plans(self) -> list[Plan]:
        """The plans of all arms."""
        return [one.plan for one in self.runs]

    def load_finished(self) -> answers.Answer | None:
        """Conclude again what was finished before; None where there is something left to run."""
        if self.stored is None or self.stored.is_unfinished:
            return None
        assert self.space.store is not None
        return answers.load_stored(self.stored, self.space.store)

    def load_votes(self) -> list[PreferenceVotes]:
        """Load what a judge preferred before."""
        return [] if self.stored is None else answers.read_votes(self.stored)

    @contextmanager
    def open(self, *, in_thread: bool = False) -> Iterator[OpenArms]:
        """Open the services and the journals of all arms, and write down what is asked.

        Args:
            in_thread: Whether a plain function must not hold up the event loop.
        """
        space, stored = self.space, self.stored
        now = space.clock.now() if stored is None else stored.head.started_at
        with ExitStack() as stack:
            # Before the runs: each of them names the comparison that it belongs to.
            folder = self._reserve(now) if stored is None else stored.path
            name = folder.name if folder else ""
            opening = (
                space.open_run(one, in_thread=in_thread, comparison=name, now=now)
                for one in self.runs
            )
            runs = [stack.enter_context(one) for one in opening]
            # After the journals are there, since it names the runs, and before the first trial.
            if stored is None and folder is not None:
                stored = self._write_down(folder, runs)
            following = self._follow()
            watch = None
            if self.shows_progress:
                from trialwise.renderers.progress import open_progress

                display = open_progress(sys.stderr)
                stack.callback(display.close)
                watch = ArmsWatch(self, following, display)
                watch.begin([len(one.stored.trials()) if one.stored else 0 for one in runs])
            yield OpenArms(self, runs, following, watch, stored)

    def _reserve(self, now: datetime) -> Path | None:
        if self.space.store is None:
            return None
        from trialwise.stores.comparisons import ComparisonStore

        return ComparisonStore(self.space.store).reserve(self.runs[0].contract.name, now)

    def _write_down(self, folder: Path, runs: Sequence[OpenRun]) -> StoredComparison:
        from trialwise.stores.comparisons import ComparisonHead, ComparisonStore

        head = ComparisonHead(
            comparison_id=folder.name,
            started_at=runs[0].started_at,
            labels=self.labels,
            runs=tuple(one.stored.run_id for one in runs if one.stored is not None),
            seed=runs[0].plan.seed,
            kind=self.question.kind,
            question=to_plain(self.question),
            rules=tuple(answers.write_rules(self.rules)),
            source=self.source,
        )
        return ComparisonStore().write(folder, head)

    def _follow(self) -> PairFollowing | ChoiceFollowing:
        """Return what follows the trials in order; a description asks all arms equally often."""
        if isinstance(self.question, ChoiceQuestion):
            return ChoiceFollowing(self.plans, self.question, self.labels)
        if isinstance(self.question, ComparisonQuestion):
            return follow_pairs(self.plans, self.labels, self.question, self.rules)
        return PairFollowing(())


class OpenArms(NamedTuple):
    """Arms whose journals are open."""

    prepared: PreparedArms
    runs: Sequence[OpenRun]
    schedule: RoundSchedule
    """Says which arms are still asked."""
    watch: Watch | None
    """Shows how the arms stand; None where nobody looks."""
    stored: StoredComparison | None

    async def go(self, interrupted: Interrupt | None) -> list[RunOutcome]:
        """Run the arms in turn on the running event loop."""
        # Loaded with the event loop only.
        from trialwise.engine.drivers.run_drivers import DrivenArm, run_arms

        arms = [DrivenArm(one.plan, one.contract, one.service, one.settings) for one in self.runs]
        for one in arms[1:]:
            # The arms advance together, so that the events of one stand for all.
            one.settings["listener"] = None
        return await run_arms(arms, self.schedule, interrupted=interrupted, watch=self.watch)

    def conclude(self, outcomes: Sequence[RunOutcome]) -> answers.Answer:
        """Decide every arm's run by itself, keep its record, and keep the answer of all.

        Raises:
            RunInterrupted: Somebody pressed Ctrl-C; its `result` holds what is known.
        """
        # Every arm is a run of its own, and can be shown and verified without the others.
        records = [run.decide(one) for run, one in zip(self.runs, outcomes, strict=True)]
        prepared = self.prepared
        arms = [
            ArmRun(label, record, run.path)
            for label, record, run in zip(prepared.labels, records, self.runs, strict=True)
        ]
        path = None if self.stored is None else self.stored.path
        answer = answers.conclude_arms(arms, prepared.question, prepared.rules, path=path)
        # Once every arm's record is on disk.
        keep_answer(answer)
        if answer.is_interrupted:
            trials = min(len(one.record.trials) for one in answer.runs)
            message = f"interrupted after {trials} pairs; what is complete is compared in `result`"
            if path is not None:
                message += f", and `resume={path.name!r}` continues the comparison"
            raise RunInterrupted(message, answer)
        return answer


def keep_answer(answer: answers.Answer, votes: Sequence[PreferenceVotes] = ()) -> None:
    """Keep what was concluded, with what a judge preferred."""
    if answer.path is not None:
        from trialwise.stores.comparisons import StoredComparison

        stops = [one.record.verdict.stop for one in answer.runs]
        kept = [to_plain(one) for one in votes]
        StoredComparison(answer.path).write_verdict(answer.describe_kept(), stops, votes=kept)


class ArmsWatch:
    """Tells a display how the arms stand, after a trial that it wants to hear of.

    Args:
        prepared: The arms.
        following: Follows their trials.
        display: Shows them.
    """

    def __init__(
        self,
        prepared: PreparedArms,
        following: PairFollowing | ChoiceFollowing,
        display: TerminalProgress | LineProgress,
    ) -> None:
        self._following = following
        self._display = display
        self._title = " / ".join(prepared.labels)
        self._most = max(one.trials for one in prepared.plans[0].experiments)
        self._open = -1
        self._counts: list[int] = []

    def begin(self, done: Sequence[int]) -> None:
        """Show the arms as they are left by an earlier start, by their numbers of trials."""
        self._counts = [*done]
        self._show(sum(done))

    def __call__(self, arm: int, meter: Meter) -> None:
        """Take note of a trial of an arm."""
        self._counts[arm] += 1
        still_open = self._following.count_open()
        # Counting up a standing takes longer than a fast trial, so that only those that are drawn
        # are made.
        if still_open != self._open or self._display.wants_arms():
            self._open = still_open
            spent = meter.spending()
            self._show(spent.trials, spent.paid_usd)

    def _show(self, trials: int, usd: float | None = None) -> None:
        from trialwise.renderers.progress_status import ArmsStanding

        rows = self._following.list_rows()
        self._display.show(
            ArmsStanding(
                title=self._title,
                unit=self._following.unit,
                done=max((one.after for one in rows), default=min(self._counts)),
                most=self._most,
                rows=rows,
                trials=trials,
                usd=usd,
            )
        )


# --- Asking a judge which arm's reply is better, pair by pair, once the arms have run -------------
#
# The judge sees the replies as the runs keep them: redacted, and at most 4,000 characters of each.

#: Pairs of replies that the judge is asked about at a time.
_CONCURRENCY = 8


async def ask_preferences(
    preference: Pairwise,
    arms: Sequence[ArmRun],
    question: ComparisonQuestion,
    samplings: Mapping[str, Sampling],
) -> tuple[PreferenceVotes, ...]:
    """Ask a judge about every pair of replies of the arms that are compared.

    Args:
        preference: The judge, whose connections are closed at the end.
        arms: The control first.
        question: Which arms are compared with each other.
        samplings: The inputs, which the judge sees beside the replies.
    """
    found = []
    try:
        for first, second in question.couple_arms(arms):
            theirs = {one.name for one in second.record.plan.experiments}
            ours = [one.name for one in first.record.plan.experiments]
            shared = [name for name in ours if name in theirs]
            for experiment in shared:
                name = preference.name if len(shared) == 1 else f"{preference.name}, {experiment}"
                pairing = pair_trials(first, second, experiment)
                # One judge for all arms, whose expenses only grow: these two arms cost what they
                # grew by.
                before = preference.expenses.usd or 0.0
                asked = list(_list_questions(pairing, first, second))
                judged = await _ask_all(preference, asked, samplings.get(experiment))
                spent = preference.expenses.usd
                found.append(
                    PreferenceVotes(
                        criterion=name,
                        **pairing.place,
                        choices=tuple(one.preference.value for one in judged),
                        inputs=tuple(one["input_id"] for one in asked),
                        fixed_size=pairing.summary.fixed_size,
                        by_input=pairing.counts_inputs(first.record.plan.claim),
                        errors=preference.errors,
                        advisory=preference.advisory,
                        usd=None if spent is None else spent - before,
                    )
                )
    finally:
        await preference.aclose()
    return tuple(found)


def _list_questions(pairing: Pairing, *arms: ArmRun) -> Iterator[dict[str, Any]]:
    """Yield what the judge is asked: the two replies, the input and the seed of each pair."""
    experiment = pairing.summary.experiment
    ours, theirs = (
        {trial.index: trial.reply for trial in arm.record.trials.of_experiment(experiment)}
        for arm in arms
    )
    for pair in pairing.pairs:
        reference, reply = ours.get(pair.control.index), theirs.get(pair.candidate.index)
        # An error is no reply that anybody could prefer; the criteria count it already.
        if reference is not None and reply is not None and not pair.is_excused:
            control = pair.control
            both = {"candidate": reply, "reference": reference}
            yield {**both, "input_id": control.input_id, "seed": control.seed}


async def _ask_all(
    preference: Pairwise, asked: Sequence[Mapping[str, Any]], sampling: Sampling | None
) -> list[JudgedPair]:
    from anyio import CapacityLimiter

    from trialwise.engine.ports import gather

    inputs = {} if sampling is None else {one.id: one.value for one in sampling.inputs}
    limiter = CapacityLimiter(_CONCURRENCY)

    async def ask(one: Mapping[str, Any]) -> JudgedPair:
        async with limiter:
            beside = {"given": inputs.get(one["input_id"]), "seed": one["seed"]}
            return await preference.compare(one["candidate"], one["reference"], **beside)

    return await gather([partial(ask, one) for one in asked])
