"""Comparison of arms: services on the same inputs, in turn, told apart pair by pair or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack, cast

from trialwise.errors import RunInterrupted
from trialwise.model.contract import Contract
from trialwise.model.evidence import StopReason
from trialwise.model.options import RunOptions
from trialwise.model.run import RunRecord
from trialwise.model.run_settings import RunSettings
from trialwise.procedures.comparing.findings import Against, ArmRun, ComparisonQuestion, Question
from trialwise.procedures.comparing.pairing import name_arms
from trialwise.procedures.comparison import COMPARISON
from trialwise.runtime.comparison_result import Comparison
from trialwise.runtime.interleaving import adrive_in_turn, drive_in_turn
from trialwise.runtime.looping import warn_inside_loop
from trialwise.runtime.open_comparison import (
    OpenComparison,
    PreparedComparison,
    find_rules,
    prepare_comparison,
)
from trialwise.runtime.preparing import options_of
from trialwise.runtime.result import Result
from trialwise.runtime.workspace import Workspace
from trialwise.stats.multiplicity import Correction

if TYPE_CHECKING:
    from trialwise.engine.ports import Listener
    from trialwise.engine.run_state import RunOutcome
    from trialwise.judges.preference import Pairwise
    from trialwise.procedures.comparing.assessment import PreferenceVotes

__all__ = ["Comparison", "Run", "acompare", "compare", "compare_runs"]

Run: TypeAlias = RunRecord | Result | str | Path
"""A run, or where it is kept."""


def compare(
    control: Contract,
    *candidates: Contract,
    inputs: Any = None,
    labels: Sequence[str] | None = None,
    question: Question | None = None,
    margin: float | None = None,
    guardrails: Mapping[str, float] | None = None,
    against: Against = "control",
    expect: tuple[float, float] | None = None,
    preference: Pairwise | None = None,
    confidence: float = 0.95,
    options: RunOptions | None = None,
    store: str | Path | None = ".trialwise",
    resume: bool | str = False,
    record: str | Path | None = None,
    replay: str | Path | None = None,
    progress: bool | None = None,
    listener: Listener | None = None,
    redact: Callable[[str], str] | None = None,
    source: Mapping[str, Any] | None = None,
    **settings: Unpack[RunSettings],
) -> Comparison:
    """Run services on the same inputs in turn and say which is better, if that can be said.

    Pair by pair all arms get the same input and seed, next to each other in random order, so that
    what changes with time affects all alike. The runs end as soon as the pairs answer the question
    for every criterion and candidate, by an exact sequential rule; `trials` fixes the number of
    pairs instead. The thresholds of the criteria play no part.

    Args:
        control: What the candidates are compared with.
        candidates: One or more: often `control.with_service(other)`.
        inputs: What to try all arms on, where the contracts do not say.
        labels: What to call the arms; by default their contracts, where those have different names.
        question: "different", "better", "not-worse" or "equivalent"; unless given, "different", or
            "not-worse" where a margin is.
        margin: A difference of rates, such as 0.05: how much better, not worse, or alike.
        guardrails: Criteria that must not be worse, each by its own margin: {"safe": 0.02}.
        against: "control" compares each candidate with the control, "all" every arm with every
            other one.
        expect: The rates that you expect of the control and of a candidate, such as (0.8, 0.9): the
            rule then needs the fewest pairs for these.
        preference: A judge, made by `pairwise`, that says of every pair which reply is better: one
            more criterion. It decides where its errors were measured and `trials` fixes the number
            of pairs, and advises otherwise.
        confidence: Every interval has it; 1 − confidence is the level of all tests together.
        options: How the runs are made; single settings given beside it prevail. `trials` fixes the
            number of pairs, `max_trials` limits it; budgets hold for all arms together, rates for
            each service.
        store: The folder the runs are kept in, like any other; None keeps nothing.
        resume: True for the newest comparison of the store if it is unfinished, or the name of one:
            its runs continue where they ended.
        record: A file that every reply is written to, under the label of its arm.
        replay: A file that `record` wrote: its replies take the place of the services.
        progress: Whether to show progress on standard error; None: where it is a terminal.
        listener: Hears of every step of the control's run, beside the progress.
        redact: Takes secrets out of every text that is kept.
        source: Kept with the comparison: how the contracts can be found again.
        settings: The fields of `RunOptions`. `correction` says how several tests share the level:
            "holm" unless given, "bonferroni", "bh", "by" or "none".

    Raises:
        DesignRefused: So few pairs cannot tell anything apart; nothing was run.
        RunNotFound: There is no comparison to resume, or it has another plan.
        RunInterrupted: Somebody pressed Ctrl-C; its `result` holds what can be compared.
    """
    warn_inside_loop("compare", control, *candidates)
    space = Workspace.open(store, resume=resume, progress=False, listener=listener, redact=redact)
    # A comparison has p-values only; the question refuses other corrections.
    correction = cast("Correction", settings.pop("correction", "holm"))
    asked = ComparisonQuestion.of(
        question,
        margin,
        confidence=confidence,
        correction=correction,
        guardrails=guardrails or {},
        against=against,
    )
    prepared = prepare_comparison(
        (control, *candidates),
        options_of(options, settings),
        asked,
        space,
        inputs=inputs,
        labels=labels,
        rates=expect,
        source=source,
        recording=(record, replay),
        progress=progress,
    )
    if prepared.is_finished:
        comparison = _compare_again(prepared)
    else:
        with prepared.open() as opened:
            outcomes = drive_in_turn(opened.arms, opened.schedule, watch=opened.watch)
            comparison = _conclude(prepared, opened, outcomes)
        _check_interrupted(comparison)
    if preference is None or prepared.load_votes():
        return comparison
    from trialwise.runtime.preferring import ask_preferences

    samplings = prepared.planned.contracts[0].samplings
    votes = ask_preferences(preference, comparison.arms, asked, samplings)
    return _add_votes(comparison, prepared, votes)


async def acompare(
    control: Contract,
    *candidates: Contract,
    inputs: Any = None,
    labels: Sequence[str] | None = None,
    question: Question | None = None,
    margin: float | None = None,
    guardrails: Mapping[str, float] | None = None,
    against: Against = "control",
    expect: tuple[float, float] | None = None,
    preference: Pairwise | None = None,
    confidence: float = 0.95,
    options: RunOptions | None = None,
    store: str | Path | None = ".trialwise",
    resume: bool | str = False,
    record: str | Path | None = None,
    replay: str | Path | None = None,
    progress: bool | None = None,
    listener: Listener | None = None,
    redact: Callable[[str], str] | None = None,
    source: Mapping[str, Any] | None = None,
    **settings: Unpack[RunSettings],
) -> Comparison:
    """Compare services in the running event loop, as `arun` runs one.

    Async services are called in the loop of the caller, so that they can use the caller's clients.
    The arguments are those of `compare`.

    Raises:
        DesignRefused: So few pairs cannot tell anything apart; nothing was run.
        RunNotFound: There is no comparison to resume, or it has another plan.
        RunInterrupted: Somebody pressed Ctrl-C; its `result` holds what can be compared.
    """
    from anyio import to_thread

    from trialwise.runtime.looping import let_cancellation_through

    space = Workspace.open(store, resume=resume, progress=False, listener=listener, redact=redact)
    # A comparison has p-values only; the question refuses other corrections.
    correction = cast("Correction", settings.pop("correction", "holm"))
    asked = ComparisonQuestion.of(
        question,
        margin,
        confidence=confidence,
        correction=correction,
        guardrails=guardrails or {},
        against=against,
    )
    chosen = options_of(options, settings)

    def prepare() -> PreparedComparison:
        return prepare_comparison(
            (control, *candidates),
            chosen,
            asked,
            space,
            inputs=inputs,
            labels=labels,
            rates=expect,
            source=source,
            recording=(record, replay),
            progress=progress,
        )

    # A plan may take a while, in which the loop must go on.
    prepared = await to_thread.run_sync(prepare)
    if prepared.is_finished:
        comparison = _compare_again(prepared)
    else:
        with prepared.open(in_thread=True) as opened:
            outcomes = await adrive_in_turn(opened.arms, opened.schedule, watch=opened.watch)
            comparison = _conclude(prepared, opened, outcomes)
        if _is_interrupted(comparison):
            await let_cancellation_through()
        _check_interrupted(comparison)
    if preference is None or prepared.load_votes():
        return comparison
    from trialwise.runtime.preferring import aask_preferences

    samplings = prepared.planned.contracts[0].samplings
    votes = await aask_preferences(preference, comparison.arms, asked, samplings)
    return _add_votes(comparison, prepared, votes)


def compare_runs(
    control: Run,
    *candidates: Run,
    labels: Sequence[str] | None = None,
    question: Question | None = None,
    margin: float | None = None,
    guardrails: Mapping[str, float] | None = None,
    against: Against = "control",
    confidence: float = 0.95,
    correction: Correction = "holm",
    store: str | Path = ".trialwise",
) -> Comparison:
    """Compare runs that were made before.

    Their trials are paired by input and repetition. The runs of one comparison are decided by its
    rules, where the same is asked. Other runs that stopped because of what they saw are compared by
    a test that allows it, where they had one order, and not told apart otherwise; runs on different
    inputs are compared as a whole, and told apart only where both claim to speak of one population.

    Args:
        control: A result, a record, or the name or folder of a stored run.
        candidates: One or more.
        labels: What to call the arms; by default their contracts, where those have different names.
        question: "different", "better", "not-worse" or "equivalent"; unless given, "different", or
            "not-worse" where a margin is.
        margin: A difference of rates, such as 0.05: how much better, not worse, or alike.
        guardrails: Criteria that must not be worse, each by its own margin: {"safe": 0.02}.
        against: "control" compares each candidate with the control, "all" every arm with every
            other one.
        confidence: Every interval has it; 1 − confidence is the level of all tests together.
        correction: How several criteria share that level.
        store: The folder runs are kept in.

    Raises:
        RunNotFound: A run is not there or has no verdict.
        InvalidArgument: The runs make different claims or are analysed differently.
    """
    asked = ComparisonQuestion.of(
        question,
        margin,
        confidence=confidence,
        correction=correction,
        guardrails=guardrails or {},
        against=against,
    )
    opened = [_open_run(one, Path(store)) for one in (control, *candidates)]
    records = [record for record, _ in opened]
    arms = _place_arms(name_arms(records, labels), [path for _, path in opened])
    return Comparison(COMPARISON.decide(arms, asked, find_rules(arms, asked)), arms)


def _conclude(
    prepared: PreparedComparison, opened: OpenComparison, outcomes: Sequence[RunOutcome]
) -> Comparison:
    """Keep the arms' records and what they come to together."""
    planned, records = prepared.planned, opened.decide(outcomes)
    arms = _place_arms(name_arms(records, planned.labels), opened.paths)
    verdict = COMPARISON.decide(arms, planned.pair_question, planned.rules)
    opened.keep(verdict, records)
    return Comparison(verdict, arms, opened.path)


def _compare_again(prepared: PreparedComparison) -> Comparison:
    """Return a comparison that was finished before."""
    planned = prepared.planned
    arms = _place_arms(name_arms(prepared.load_records(), planned.labels), prepared.list_paths())
    verdict = COMPARISON.decide(arms, planned.pair_question, planned.rules, prepared.load_votes())
    return Comparison(verdict, arms, prepared.path)


def _add_votes(
    comparison: Comparison, prepared: PreparedComparison, votes: Sequence[PreferenceVotes]
) -> Comparison:
    """Return the comparison with a judge's preferences as one more criterion, and keep it so."""
    planned = prepared.planned
    verdict = COMPARISON.decide(comparison.arms, planned.pair_question, planned.rules, votes)
    if comparison.path is not None:
        from trialwise.model.codec import to_plain
        from trialwise.stores.comparisons import StoredComparison

        stops = [one.record.verdict.stop for one in comparison.arms]
        kept = [to_plain(one) for one in votes]
        StoredComparison(comparison.path).write_verdict(to_plain(verdict), stops, votes=kept)
    return replace(comparison, verdict=verdict)


def _place_arms(arms: Sequence[ArmRun], paths: Sequence[Path | None]) -> tuple[ArmRun, ...]:
    return tuple(replace(arm, path=path) for arm, path in zip(arms, paths, strict=True))


def _open_run(run: Run, store: Path) -> tuple[RunRecord, Path | None]:
    if isinstance(run, Result):
        return run.record, run.path
    if isinstance(run, RunRecord):
        return run, None
    from trialwise.stores.runs import RunStore

    stored = RunStore(store).open(run)
    return stored.record(), stored.path


def _is_interrupted(comparison: Comparison) -> bool:
    return any(one.record.verdict.stop is StopReason.INTERRUPTED for one in comparison.arms)


def _check_interrupted(comparison: Comparison) -> None:
    if _is_interrupted(comparison):
        pairs = min(len(one.record.trials) for one in comparison.arms)
        message = f"interrupted after {pairs} pairs; what is complete is compared in `result`"
        if comparison.path is not None:
            message += f", and `resume={comparison.path.name!r}` continues the comparison"
        raise RunInterrupted(message, comparison)
