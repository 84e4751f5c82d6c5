"""A comparison from its plans to its verdict on disk: new, resumed, or finished before.

The comparison is written down before its first trial, so that a process that is killed at any
moment can be followed by another one which continues: every arm's journal has what is complete, and
the rules and the seed are as they were.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from trialwise.errors import RunNotFound
from trialwise.model.codec import from_plain, to_plain
from trialwise.model.contract import Contract
from trialwise.model.options import RunOptions
from trialwise.model.run import RunRecord
from trialwise.procedures.comparing.assessment import PreferenceVotes
from trialwise.procedures.comparing.findings import ArmRun, ComparisonQuestion, ComparisonVerdict
from trialwise.procedures.comparing.pair_following import PairFollowing, TestRules, follow_pairs
from trialwise.redaction import redact_with
from trialwise.runtime.arm_plans import PlannedArms, plan_again, plan_arms
from trialwise.runtime.deciding import decide_and_keep
from trialwise.runtime.workspace import Workspace, open_service, reuse_replies
from trialwise.stats.paired_rules import PairedRule

if TYPE_CHECKING:
    from datetime import datetime

    from trialwise.engine.drivers.arms_driver import DrivenArm, Watch
    from trialwise.engine.ports import Service
    from trialwise.engine.run_parts import DriverSettings
    from trialwise.engine.run_state import RunOutcome
    from trialwise.stores.comparisons import StoredComparison
    from trialwise.stores.runs import StoredRun


@dataclass(frozen=True, slots=True)
class PreparedComparison:
    """A comparison that is ready to run, or that was run before."""

    planned: PlannedArms
    space: Workspace
    stored: StoredComparison | None = None
    """The comparison to resume."""
    source: Mapping[str, Any] | None = None
    record: Path | None = None
    replay: Path | None = None
    shows_progress: bool = False

    @property
    def is_finished(self) -> bool:
        """Whether it was concluded before, so that nothing is left to run."""
        return self.stored is not None and not self.stored.is_unfinished

    @property
    def path(self) -> Path | None:
        """The folder of the stored comparison; a new one gets its folder when it is opened."""
        return None if self.stored is None else self.stored.path

    def list_paths(self) -> list[Path | None]:
        """List the folders of the stored runs."""
        assert self.stored is not None
        assert self.space.store is not None
        return [self.space.store / "runs" / name for name in self.stored.head.runs]

    def load_records(self) -> list[RunRecord]:
        """Load the records of a comparison that was finished before."""
        from trialwise.stores.runs import RunStore

        assert self.stored is not None
        assert self.space.store is not None
        runs = RunStore(self.space.store)
        return [runs.load(name) for name in self.stored.head.runs]

    def load_votes(self) -> list[PreferenceVotes]:
        """Load what a judge preferred in a comparison that was finished before."""
        return [] if self.stored is None else read_votes(self.stored)

    @contextmanager
    def open(self, *, in_thread: bool = False) -> Iterator[OpenComparison]:
        """Open the services and the journals of all arms, and write the comparison down.

        Args:
            in_thread: Whether a plain function must not hold up the event loop.
        """
        planned, space = self.planned, self.space
        services = [
            self._open_service(contract, plan.options, label, in_thread=in_thread)
            for contract, plan, label in zip(*planned[:3], strict=True)
        ]
        with ExitStack() as stack:
            stack.callback(space.close_listeners)
            now = space.clock.now() if self.stored is None else self.stored.head.started_at
            comparison, kept = self._open_stores(stack, now)
            for place, stored in enumerate(kept):
                if stored is not None:
                    reusing = reuse_replies(services[place], stored)
                    services[place] = stack.enter_context(reusing)
            arms = [
                _drive_arm(planned, place, service, space, kept[place])
                for place, service in enumerate(services)
            ]
            following = None
            if planned.rules or self.shows_progress:
                asked = planned.pair_question
                following = follow_pairs(planned.plans, planned.labels, asked, planned.rules)
            yield OpenComparison(
                arms=arms,
                schedule=following if planned.rules else None,
                watch=self._open_watch(stack, following, arms)
                if following is not None and self.shows_progress
                else None,
                kept=kept,
                comparison=comparison,
                started_at=now,
            )

    def _open_watch(
        self, stack: ExitStack, following: PairFollowing, arms: Sequence[DrivenArm]
    ) -> Watch:
        from trialwise.renderers.comparison_progress import open_comparison_progress
        from trialwise.runtime.comparison_watching import ComparisonWatch

        display = open_comparison_progress(sys.stderr)
        stack.callback(display.close)
        feeds = not self.planned.rules
        watch = ComparisonWatch(self.planned, following, display, feeds=feeds)
        done = [one.settings.get("done", ()) for one in arms]
        for arm, trials in enumerate(done if feeds else ()):
            for trial in trials:
                following.add(arm, trial)
        watch.show(sum(map(len, done)))
        return watch

    def _open_service(
        self, contract: Contract, options: RunOptions, label: str, *, in_thread: bool
    ) -> Service:
        from trialwise.services import RecordingService, ReplayService

        if self.replay is not None:
            return ReplayService(self.replay, contract=label)
        service = open_service(contract, options, in_thread=in_thread)
        if self.record is not None:
            return RecordingService(service, self.record, contract=label)
        return service

    def _open_stores(
        self, stack: ExitStack, now: datetime
    ) -> tuple[StoredComparison | None, list[StoredRun | None]]:
        planned, store = self.planned, self.space.store
        if store is None:
            return None, [None for _ in planned.plans]
        from trialwise.stores.comparisons import ComparisonHead, ComparisonStore
        from trialwise.stores.runs import RunStore

        runs = RunStore(store)
        if self.stored is not None:
            names = self.stored.head.runs
            return self.stored, [
                stack.enter_context(runs.resume(name, plan, is_arm=True))
                for name, plan in zip(names, planned.plans, strict=True)
            ]
        comparisons = ComparisonStore(store)
        path = comparisons.reserve(planned.contracts[0].name, now)
        kept = [
            stack.enter_context(runs.create(plan, now, comparison=path.name))
            for plan in planned.plans
        ]
        head = ComparisonHead(
            comparison_id=path.name,
            started_at=now,
            labels=planned.labels,
            runs=tuple(one.run_id for one in kept),
            seed=planned.plans[0].seed,
            kind=planned.question.kind,
            question=to_plain(planned.question),
            rules=write_rules(planned.rules),
            source=self.source or {},
        )
        return comparisons.write(path, head), list(kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenComparison:
    """A comparison whose journals are open."""

    arms: Sequence[DrivenArm]
    schedule: PairFollowing | None
    """Follows the tests; None where the number of pairs is fixed."""
    watch: Watch | None
    """Shows how the tests stand; None where nobody looks."""
    kept: Sequence[StoredRun | None]
    comparison: StoredComparison | None
    started_at: datetime

    @property
    def path(self) -> Path | None:
        """The folder of the comparison, where it is kept."""
        return None if self.comparison is None else self.comparison.path

    @property
    def paths(self) -> list[Path | None]:
        """The folders of the runs, where they are kept."""
        return [None if one is None else one.path for one in self.kept]

    def decide(self, outcomes: Sequence[RunOutcome]) -> list[RunRecord]:
        """Decide every arm's run by itself, and keep its record."""
        return [
            decide_and_keep(
                arm.plan,
                outcome,
                stored,
                started_at=self.started_at,
                covariates=arm.contract.covariates,
            )
            for arm, outcome, stored in zip(self.arms, outcomes, self.kept, strict=True)
        ]

    def keep(self, verdict: ComparisonVerdict, records: Sequence[RunRecord]) -> None:
        """Keep what was concluded, once every arm's record is on disk."""
        if self.comparison is not None:
            stops = [one.verdict.stop for one in records]
            self.comparison.write_verdict(to_plain(verdict), stops)


def _drive_arm(
    planned: PlannedArms, place: int, service: Service, space: Workspace, stored: StoredRun | None
) -> DrivenArm:
    from trialwise.engine.drivers.arms_driver import DrivenArm

    settings = space.driver_arguments(stored)
    settings["done"] = () if stored is None else stored.trials()
    if place:
        # The arms advance together, so that the events of one stand for all.
        settings["listener"] = None
    return DrivenArm(
        plan=planned.plans[place],
        contract=planned.contracts[place],
        service=service,
        settings=cast("DriverSettings", settings),
    )


def prepare_comparison(
    contracts: Sequence[Contract],
    options: RunOptions,
    question: ComparisonQuestion,
    space: Workspace,
    *,
    inputs: Any = None,
    labels: Sequence[str] | None = None,
    rates: tuple[float, float] | None = None,
    source: Mapping[str, Any] | None = None,
    recording: tuple[str | Path | None, str | Path | None] = (None, None),
    progress: bool | None = False,
) -> PreparedComparison:
    """Plan a comparison, or find the one to resume.

    Args:
        contracts: The control's first.
        options: How the runs are made.
        question: What is asked.
        space: Where runs are kept, and whether to resume.
        inputs: What to try all arms on, where the contracts do not say.
        labels: What to call the arms.
        rates: The rates that are expected of the control and of a candidate.
        source: How the contracts can be found again.
        recording: The file to write replies to, and the file to read them from.
        progress: Whether to show progress on standard error; None: where it is a terminal.

    Raises:
        DesignRefused: So few pairs cannot tell anything apart.
        RunNotFound: There is no comparison to resume, or it has another plan.
    """
    record, replay = (None if one is None else Path(one) for one in recording)
    shows = sys.stderr is not None and (sys.stderr.isatty() if progress is None else progress)
    if not space.resume:
        with redact_with(space.redact):
            planned = plan_arms(
                contracts, options, question, inputs=inputs, labels=labels, rates=rates
            )
        _check_recording(planned.labels, record, replay)
        return PreparedComparison(planned, space, None, source, record, replay, shows)
    from trialwise.stores.comparisons import ComparisonStore
    from trialwise.stores.runs import RunStore

    assert space.store is not None
    named = space.resume if isinstance(space.resume, str) else None
    stored = ComparisonStore(space.store).find_unfinished(named, question.kind)
    head = stored.head
    _check_asked(stored, question, labels, len(contracts))
    with redact_with(space.redact):
        planned = plan_again(
            contracts,
            options,
            question,
            inputs=inputs,
            labels=head.labels,
            rules=read_rules(head.rules),
            seed=head.seed,
            now=head.started_at,
        )
    runs = RunStore(space.store)
    for name, plan in zip(head.runs, planned.plans, strict=True):
        runs.open(name).check_plan(plan)
    _check_recording(head.labels, None, replay)
    return PreparedComparison(planned, space, stored, source, record, replay, shows)


def _check_recording(labels: Sequence[str], record: Path | None, replay: Path | None) -> None:
    """Refuse a recording that has nothing to play, or that would hold replies of two comparisons.

    Args:
        labels: Of the arms, under which replies are kept.
        record: The file to write replies to; a resumed comparison adds to its own.
        replay: The file to read them from.
    """
    file = replay or record
    if file is None:
        return
    from trialwise.runtime.running import RecordingRefused
    from trialwise.services import ReplayService

    for label in labels:
        count = len(ReplayService(file, contract=label)) if replay or file.exists() else 0
        if replay is not None and not count:
            raise RecordingRefused(f"{file} holds no reply of {label}")
        if replay is None and count:
            raise RecordingRefused(
                f"{file} holds {count} replies of {label} from another comparison: remove it, or "
                "name another file"
            )


def _check_asked(
    stored: StoredComparison,
    question: ComparisonQuestion,
    labels: Sequence[str] | None,
    arms: int,
) -> None:
    """Refuse to resume a comparison that asks something else, or of other arms."""
    head = stored.head
    if head.kind != question.kind:
        raise RunNotFound(
            f"{stored.comparison_id} is not a comparison but "
            f"{'a choice: `choose` resumes it' if head.kind == 'choice' else 'an exploration'}"
        )
    before = from_plain(ComparisonQuestion, dict(head.question))
    changed = [
        one.name
        for one in fields(question)
        if getattr(question, one.name) != getattr(before, one.name)
    ]
    if arms != len(head.runs):
        changed.append("the number of arms")
    elif labels is not None and tuple(labels) != head.labels:
        changed.append("the labels")
    if changed:
        raise RunNotFound(
            f"{stored.comparison_id} cannot be resumed: it was started with another "
            f"{' and another '.join(changed)}. Undo that, or start a new comparison."
        )


def write_rules(rules: TestRules) -> list[dict[str, Any]]:
    """Return the rules of all tests as plain values."""
    return [
        {"against": against, "arm": arm, "criterion": criterion, "rule": rule.to_plain()}
        for (against, arm, criterion), rule in rules.items()
    ]


def read_rules(kept: Sequence[Mapping[str, Any]]) -> TestRules:
    """Return the rules that `write_rules` wrote."""
    return {
        (one["against"], one["arm"], one["criterion"]): PairedRule.from_plain(one["rule"])
        for one in kept
    }


def read_votes(stored: StoredComparison) -> list[PreferenceVotes]:
    """Return what a judge preferred, as it is kept with a comparison."""
    return [from_plain(PreferenceVotes, one) for one in stored.votes()]


def find_rules(arms: Sequence[ArmRun], question: ComparisonQuestion) -> TestRules:
    """Return the rules by which stored runs were compared, where the same is asked of them.

    Args:
        arms: With the folders of their runs.
        question: What is asked now.
    """
    folders = [one.path for one in arms]
    if any(folder is None for folder in folders):
        return {}
    from trialwise.stores.comparisons import ComparisonStore
    from trialwise.stores.runs import StoredRun

    names = {StoredRun(folder).comparison for folder in folders if folder is not None}
    if len(names) != 1 or "" in names:
        return {}
    assert folders[0] is not None
    try:
        head = ComparisonStore(folders[0].parent.parent).open(names.pop()).head
    except RunNotFound:
        return {}
    asked = to_plain(question)
    if head.kind != question.kind or {**asked, **head.question} != asked:
        return {}
    labels = dict(zip(head.runs, (one.label for one in arms), strict=False))
    if [*head.runs] != [one.record.run_id for one in arms]:
        return {}
    called = dict(zip(head.labels, labels.values(), strict=True))
    return {
        (called[against], called[arm], criterion): rule
        for (against, arm, criterion), rule in read_rules(head.rules).items()
    }
