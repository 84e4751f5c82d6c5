"""Which of several arms is best? They take turns on the same inputs until that is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from trialwise.errors import InvalidArgument, RunInterrupted, RunNotFound
from trialwise.model.codec import to_plain
from trialwise.model.contract import Contract
from trialwise.model.evidence import StopReason
from trialwise.model.options import RunOptions
from trialwise.model.run_settings import RunSettings
from trialwise.procedures.choice import (
    CHOICE,
    ChoiceFollowing,
    ChoiceQuestion,
    ExplorationQuestion,
    describe_arms,
    find_criteria,
)
from trialwise.procedures.comparing.findings import ArmRun
from trialwise.procedures.comparing.pairing import check_labels, label_contracts, name_arms
from trialwise.redaction import redact_with
from trialwise.runtime.arm_plans import PlannedArms, check_options, plan_alike, share_inputs
from trialwise.runtime.choice_result import Choice, ExploredArms
from trialwise.runtime.interleaving import adrive_in_turn, drive_in_turn
from trialwise.runtime.looping import warn_inside_loop
from trialwise.runtime.open_comparison import OpenComparison, PreparedComparison
from trialwise.runtime.preparing import options_of
from trialwise.runtime.workspace import Workspace

if TYPE_CHECKING:
    from trialwise.engine.run_state import RunOutcome

#: The most rounds of a choice, and the trials of each arm that is explored, unless given.
MAX_ROUNDS = 1000
EXPLORED_TRIALS = 50


def choose(
    *contracts: Contract,
    smallest_difference: float = 0.1,
    confidence: float = 0.95,
    criterion: str | None = None,
    break_ties: bool = False,
    inputs: Any = None,
    labels: Sequence[str] | None = None,
    options: RunOptions | None = None,
    store: str | Path | None = ".trialwise",
    resume: bool | str = False,
    progress: bool | None = None,
    redact: Callable[[str], str] | None = None,
    source: Mapping[str, Any] | None = None,
    **settings: Unpack[RunSettings],
) -> Choice:
    """Run several arms in turn and say which is best, with as few trials as possible.

    In each round the arms that may still be best get the same input and seed. If one arm is better
    than every other by the smallest difference or more, any other answer than that arm comes in at
    most 1 − confidence of runs, at any rates and however the arms fail together.

    Args:
        contracts: Two arms or more: often `contract.with_service(other)`.
        smallest_difference: The smallest difference between two rates that matters, such as 0.1:
            twice as much takes about a quarter of the trials.
        confidence: How surely the best arm is found where it is better by that much.
        criterion: What decides; None for all criteria together, of which a trial has to pass each.
        break_ties: Whether to choose the last arm at once, also where another may be as good. That
            takes fewer trials, and "tied" is hardly ever said.
        inputs: What to try all arms on, where the contracts do not say.
        labels: What to call the arms; by default their contracts, where those have different names.
        options: How the runs are made; single settings given beside it prevail. `max_trials` is the
            most rounds, 1,000 by default; budgets hold for all arms together.
        store: The folder the runs are kept in, like any other; None keeps nothing.
        resume: True for the newest choice of the store if it is unfinished, or the name of one.
        progress: Whether to show progress on standard error; None: where it is a terminal.
        redact: Takes secrets out of every text that is kept.
        source: Kept with the choice: how the contracts can be found again.
        settings: The fields of `RunOptions`.

    Raises:
        InvalidArgument: The arms cannot be compared, or a setting has no meaning here.
        RunInterrupted: Somebody pressed Ctrl-C; its `result` holds what is known.
    """
    warn_inside_loop("choose", *contracts)
    question = ChoiceQuestion(
        smallest_difference=smallest_difference,
        confidence=confidence,
        criterion=criterion,
        break_ties=break_ties,
    )
    space = Workspace.open(store, resume=resume, progress=progress, redact=redact)
    size = _size_choice(options_of(options, settings))
    prepared = _prepare(
        contracts, size, question, space, inputs=inputs, labels=labels, source=source
    )
    following = _follow(prepared)
    with prepared.open() as opened:
        choice = _conclude(opened, drive_in_turn(opened.arms, following), prepared, following)
    _check_interrupted(choice)
    return choice


async def achoose(
    *contracts: Contract,
    smallest_difference: float = 0.1,
    confidence: float = 0.95,
    criterion: str | None = None,
    break_ties: bool = False,
    inputs: Any = None,
    labels: Sequence[str] | None = None,
    options: RunOptions | None = None,
    store: str | Path | None = ".trialwise",
    resume: bool | str = False,
    progress: bool | None = None,
    redact: Callable[[str], str] | None = None,
    source: Mapping[str, Any] | None = None,
    **settings: Unpack[RunSettings],
) -> Choice:
    """Choose between arms in the running event loop, as `arun` runs one.

    Async services are called in the loop of the caller, so that they can use the caller's clients.
    The arguments are those of `choose`.

    Raises:
        InvalidArgument: The arms cannot be compared, or a setting has no meaning here.
        RunInterrupted: Somebody pressed Ctrl-C; its `result` holds what is known.
    """
    from anyio import to_thread

    from trialwise.runtime.looping import let_cancellation_through

    question = ChoiceQuestion(
        smallest_difference=smallest_difference,
        confidence=confidence,
        criterion=criterion,
        break_ties=break_ties,
    )
    space = Workspace.open(store, resume=resume, progress=progress, redact=redact)
    size = _size_choice(options_of(options, settings))
    # A plan may take a while, in which the loop must go on.
    prepared = await to_thread.run_sync(
        lambda: _prepare(
            contracts, size, question, space, inputs=inputs, labels=labels, source=source
        )
    )
    following = _follow(prepared)
    with prepared.open(in_thread=True) as opened:
        outcomes = await adrive_in_turn(opened.arms, following)
        choice = _conclude(opened, outcomes, prepared, following)
    if _is_interrupted(choice.runs):
        await let_cancellation_through()
    _check_interrupted(choice)
    return choice


def explore(
    *contracts: Contract,
    criterion: str | None = None,
    confidence: float = 0.95,
    inputs: Any = None,
    labels: Sequence[str] | None = None,
    options: RunOptions | None = None,
    store: str | Path | None = ".trialwise",
    progress: bool | None = None,
    redact: Callable[[str], str] | None = None,
    **settings: Unpack[RunSettings],
) -> ExploredArms:
    """Run several arms equally often and describe them beside each other; nothing is decided.

    Args:
        contracts: Two arms or more.
        criterion: What a trial has to pass; None for all criteria together.
        confidence: Of every interval, and of the arms that are possibly best.
        inputs: What to try all arms on, where the contracts do not say.
        labels: What to call the arms; by default their contracts, where those have different names.
        options: How the runs are made; single settings given beside it prevail. `trials` is the
            number of trials of each arm, 50 by default.
        store: The folder the runs are kept in, like any other; None keeps nothing.
        progress: Whether to show progress on standard error; None: where it is a terminal.
        redact: Takes secrets out of every text that is kept.
        settings: The fields of `RunOptions`.

    Raises:
        InvalidArgument: The arms cannot be compared, or a setting has no meaning here.
        RunInterrupted: Somebody pressed Ctrl-C; its `result` holds what is known.
    """
    warn_inside_loop("explore", *contracts)
    question = ExplorationQuestion(criterion=criterion, confidence=confidence)
    space = Workspace.open(store, progress=progress, redact=redact)
    given = options_of(options, settings)
    size = replace(given, trials=given.trials or EXPLORED_TRIALS)
    prepared = _prepare(contracts, size, question, space, inputs=inputs, labels=labels)
    with prepared.open() as opened:
        records = opened.decide(drive_in_turn(opened.arms))
        runs = _place_arms(name_arms(records, prepared.planned.labels), opened.paths)
        found = describe_arms(runs, criterion=criterion, confidence=confidence)
        if opened.comparison is not None:
            stops = [one.verdict.stop for one in records]
            opened.comparison.write_verdict({**to_plain(found), "decision": "EXPLORED"}, stops)
    explored = ExploredArms(found, runs)
    if _is_interrupted(runs):
        raise RunInterrupted("interrupted; `result` describes what is complete", explored)
    return explored


def _size_choice(options: RunOptions) -> RunOptions:
    if options.trials is not None:
        allowed = "be left out: a choice ends when it is known, and `max_trials` limits its rounds"
        raise InvalidArgument("trials", options.trials, allowed)
    return replace(options, trials=options.max_trials or MAX_ROUNDS, max_trials=None)


def _prepare(
    contracts: Sequence[Contract],
    options: RunOptions,
    question: ChoiceQuestion | ExplorationQuestion,
    space: Workspace,
    *,
    inputs: Any,
    labels: Sequence[str] | None,
    source: Mapping[str, Any] | None = None,
) -> PreparedComparison:
    """Plan the arms' runs, or find those to resume."""
    if len(contracts) < 2:
        raise InvalidArgument("contracts", [one.name for one in contracts], "be two or more")
    check_options(options)
    alike = share_inputs(contracts, inputs)
    called = (
        label_contracts([one.name for one in alike])
        if labels is None
        else check_labels(labels, len(alike))
    )
    if not space.resume:
        with redact_with(space.redact):
            plans = plan_alike(alike, options)
        find_criteria(plans, question.criterion)
        return PreparedComparison(
            PlannedArms(alike, plans, called, question, {}), space, source=source
        )
    from trialwise.stores.comparisons import ComparisonStore

    assert space.store is not None
    named = space.resume if isinstance(space.resume, str) else None
    stored = ComparisonStore(space.store).find_unfinished(named, question.kind)
    assert isinstance(question, ChoiceQuestion)
    asked = {"edition": 1, **stored.head.question}
    question = replace(question, edition=asked["edition"])
    if asked != to_plain(question) or len(stored.head.runs) != len(alike):
        message = f"{stored.comparison_id} cannot be resumed: it asks something else"
        raise RunNotFound(message)
    with redact_with(space.redact):
        plans = plan_alike(alike, options, stored.head.seed, stored.head.started_at)
    planned = PlannedArms(alike, plans, stored.head.labels, question, {})
    return PreparedComparison(planned, space, stored, source)


def _follow(prepared: PreparedComparison) -> ChoiceFollowing:
    """Follow the rounds by the question that was planned, which is the old one of a resumed run."""
    question = prepared.planned.question
    assert isinstance(question, ChoiceQuestion)
    return ChoiceFollowing(prepared.planned.plans, question)


def _conclude(
    opened: OpenComparison,
    outcomes: Sequence[RunOutcome],
    prepared: PreparedComparison,
    following: ChoiceFollowing,
) -> Choice:
    """Keep the arms' records and what they come to together."""
    records = opened.decide(outcomes)
    runs = _place_arms(name_arms(records, prepared.planned.labels), opened.paths)
    verdict = CHOICE.decide(runs, following.question)
    if opened.comparison is not None:
        stops = [one.verdict.stop for one in records]
        decision = "INCONCLUSIVE" if verdict.outcome == "undecided" else verdict.outcome
        opened.comparison.write_verdict({**to_plain(verdict), "decision": decision}, stops)
    return Choice(verdict, runs, opened.path)


def _place_arms(arms: Sequence[ArmRun], paths: Sequence[Path | None]) -> tuple[ArmRun, ...]:
    return tuple(replace(arm, path=path) for arm, path in zip(arms, paths, strict=True))


def _is_interrupted(runs: Sequence[ArmRun]) -> bool:
    return any(one.record.verdict.stop is StopReason.INTERRUPTED for one in runs)


def _check_interrupted(choice: Choice) -> None:
    if _is_interrupted(choice.runs):
        message = f"interrupted after {choice.verdict.rounds} rounds; `result` has what is known"
        if choice.path is not None:
            message += f", and `resume={choice.path.name!r}` continues the choice"
        raise RunInterrupted(message, choice)
