"""Several arms on the same inputs, in turn: are they different, which is best, how do they look?

`compare` is the one way in. Its `question` says what is asked of the arms, and so what comes back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack, cast, overload

from anyio import to_thread

from trialwise.errors import InvalidArgument, RunNotFound
from trialwise.model.contract import Contract
from trialwise.model.run import RunRecord
from trialwise.procedures.choice import ChoiceQuestion, ExplorationQuestion
from trialwise.procedures.comparing.findings import Against, ComparisonQuestion, Question
from trialwise.procedures.comparing.pairing import name_arms
from trialwise.runtime import looping
from trialwise.runtime.answers import (
    Answer,
    ArmsQuestion,
    Choice,
    Comparison,
    ExploredArms,
    conclude_arms,
    find_rules,
    load_answer,
)
from trialwise.runtime.arm_plans import Asked, prepare_arms
from trialwise.runtime.arms import OpenArms, PreparedArms, ask_preferences, keep_answer
from trialwise.runtime.preparing import options_of
from trialwise.runtime.result import Result
from trialwise.runtime.workspace import WorkArguments, Workspace
from trialwise.stats.multiplicity import Correction

if TYPE_CHECKING:
    from trialwise.judges.preference import Pairwise

Run: TypeAlias = RunRecord | Result | str | Path
"""A run, or where it is kept."""

Best: TypeAlias = Literal["best"]
Describe: TypeAlias = Literal["describe"]
AnyQuestion: TypeAlias = Question | Best | Describe
"""What `compare` asks: of each candidate, or of all arms together."""


class CompareArguments(WorkArguments, total=False):
    """The keyword arguments of `compare`, beside its question.

    `trials` fixes the number of pairs, or of each arm's trials where arms are described;
    `max_trials` limits pairs and rounds. Budgets hold for all arms together, rates for each
    service. `correction` says how several tests share the level: "holm" unless given,
    "bonferroni", "bh", "by" or "none".
    """

    labels: Sequence[str] | None
    """What to call the arms; by default their contracts, where those have different names."""
    confidence: float
    """Of every interval; 1 − confidence is the level of all tests together. 0.95 unless given."""
    margin: float | None
    """A difference of rates, such as 0.05: how much better, not worse, or alike."""
    guardrails: Mapping[str, float] | None
    """Criteria that must not be worse, each by its own margin: {"safe": 0.02}."""
    against: Against
    """"control" compares each candidate with the control, "all" every arm with every other one."""
    expect: tuple[float, float] | None
    """The rates that you expect of the control and of a candidate, such as (0.8, 0.9): the rule
    then needs the fewest pairs for these."""
    preference: Pairwise | None
    """A judge, made by `pairwise`, that says of every pair which reply is better: one more
    criterion. It decides where its errors were measured and `trials` fixes the number of pairs, and
    advises otherwise."""
    smallest_difference: float
    """For "best": the smallest difference between two rates that matters, 0.1 unless given; twice
    as much takes about a quarter of the trials."""
    break_ties: bool
    """For "best": whether to choose the last arm at once, also where another may be as good. That
    takes fewer trials, and "tied" is hardly ever said."""
    criterion: str | None
    """For "best" and "describe": what a trial has to pass; None for all criteria together."""
    record: str | Path | None
    """A file that every reply is written to, under the label of its arm."""
    replay: str | Path | None
    """A file that `record` wrote: its replies take the place of the services."""
    source: Mapping[str, Any] | None
    """Kept with the answer: how the contracts can be found again."""


@overload
def compare(
    control: Contract,
    *candidates: Contract,
    question: Question | None = None,
    **arguments: Unpack[CompareArguments],
) -> Comparison: ...
@overload
def compare(
    control: Contract, *candidates: Contract, question: Best, **given: Unpack[CompareArguments]
) -> Choice: ...
@overload
def compare(
    control: Contract, *candidates: Contract, question: Describe, **given: Unpack[CompareArguments]
) -> ExploredArms: ...
def compare(
    control: Contract,
    *candidates: Contract,
    question: AnyQuestion | None = None,
    **arguments: Unpack[CompareArguments],
) -> Answer:
    """Run services on the same inputs in turn and say which is better, if that can be said.

    All arms get the same input and seed, next to each other in random order, so that what changes
    with time affects all alike. The thresholds of the criteria play no part.

    - "different", "better", "not-worse" and "equivalent" compare each candidate with the control,
      pair by pair. The runs end as soon as the pairs answer for every criterion and candidate, by
      an exact sequential rule; `trials` fixes the number of pairs instead.
    - "best" finds the best arm with as few trials as possible: a round asks only the arms that may
      still be best. If one arm is better than every other by `smallest_difference` or more, any
      other answer than that arm comes in at most 1 − confidence of runs, at any rates and however
      the arms fail together.
    - "describe" runs all arms equally often, 50 times unless `trials` says otherwise, and shows
      them beside each other; nothing is decided.

    Args:
        control: What the candidates are compared with; for the last two questions an arm like any.
        candidates: One or more: often `control.with_service(other)`.
        question: Unless given, "different", or "not-worse" where a margin is.
        arguments: The fields of `CompareArguments`, and all that `run` takes. `resume` continues
            what was killed, interrupted or stopped by a budget: True for the newest one of the
            store, if it is unfinished, or its name.

    Raises:
        DesignRefused: So few pairs cannot tell anything apart; nothing was run.
        InvalidArgument: The arms cannot be compared, or a setting has no meaning here.
        RunNotFound: There is no comparison to resume, or it has another plan.
        RunInterrupted: Somebody pressed Ctrl-C; its `result` holds what is known.
    """
    looping.warn_inside_loop("compare", control, *candidates)
    prepared, judge = _prepare((control, *candidates), question, {**arguments})
    answer = prepared.load_finished() or looping.drive(prepared.open(), OpenArms.conclude)
    if judge is None or prepared.load_votes():
        return answer
    return looping.run_to_end(lambda _: _add_votes(judge, answer, prepared))


@overload
async def acompare(
    control: Contract,
    *candidates: Contract,
    question: Question | None = None,
    **arguments: Unpack[CompareArguments],
) -> Comparison: ...
@overload
async def acompare(
    control: Contract, *candidates: Contract, question: Best, **given: Unpack[CompareArguments]
) -> Choice: ...
@overload
async def acompare(
    control: Contract, *candidates: Contract, question: Describe, **given: Unpack[CompareArguments]
) -> ExploredArms: ...
async def acompare(
    control: Contract,
    *candidates: Contract,
    question: AnyQuestion | None = None,
    **arguments: Unpack[CompareArguments],
) -> Answer:
    """Compare services in the running event loop, as `arun` runs one.

    Async services are called in the loop of the caller, so that they can use the caller's clients.
    The arguments are those of `compare`.

    Raises:
        DesignRefused: So few pairs cannot tell anything apart; nothing was run.
        InvalidArgument: The arms cannot be compared, or a setting has no meaning here.
        RunNotFound: There is no comparison to resume, or it has another plan.
        RunInterrupted: Somebody pressed Ctrl-C; its `result` holds what is known.
    """
    contracts = (control, *candidates)
    prepared, judge = await to_thread.run_sync(
        lambda: _prepare(contracts, question, {**arguments}, in_thread=True)
    )
    answer = prepared.load_finished()
    if answer is None:
        answer = await looping.adrive(prepared.open(in_thread=True), OpenArms.conclude)
    if judge is None or prepared.load_votes():
        return answer
    return await _add_votes(judge, answer, prepared)


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
        question: As of `compare`.
        margin: As of `compare`.
        guardrails: As of `compare`.
        against: As of `compare`.
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
    named = name_arms([record for record, _ in opened], labels)
    arms = [replace(one, path=path) for one, (_, path) in zip(named, opened, strict=True)]
    return cast("Comparison", conclude_arms(arms, asked, find_rules(arms, asked)))


def load_comparison(name: str | Path, *, store: str | Path = ".trialwise") -> Comparison:
    """Load a comparison that is kept, and compare its runs again by its own rules.

    Args:
        name: Its name or its folder.
        store: The folder runs are kept in.

    Raises:
        RunNotFound: There is no such comparison, or one of its runs has no verdict.

    >>> import tempfile
    >>> import trialwise as tw
    >>> criterion = tw.Criterion("answers", tw.contains("555"), at_least=0.9)
    >>> old = tw.Contract("sums", lambda question: "554", [criterion], sampling=["15 * 37?"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = tw.compare(old, old.with_service(lambda question: "555"), store=folder)
    ...     tw.results.load_comparison(made.path.name, store=folder).verdict == made.verdict
    True
    """
    found = load_answer(name, store=store)
    if not isinstance(found, Comparison):
        raise RunNotFound(f"{name} is not a comparison: `trialwise show` shows it")
    return found


def _open_run(run: Run, store: Path) -> tuple[RunRecord, Path | None]:
    if isinstance(run, Result):
        return run.record, run.path
    if isinstance(run, RunRecord):
        return run, None
    from trialwise.stores.runs import RunStore

    stored = RunStore(store).open(run)
    return stored.record(), stored.path


def _prepare(
    contracts: Sequence[Contract],
    question: AnyQuestion | None,
    given: dict[str, Any],
    *,
    in_thread: bool = False,
) -> tuple[PreparedArms, Pairwise | None]:
    """Plan the arms, or find those to resume; return them with the judge of preferences."""
    asked = ask_question(question, given)
    named = ("inputs", "labels", "source", "record", "replay", "progress")
    further = {name: given.pop(name) for name in named if name in given}
    rates, judge = given.pop("expect", None), given.pop("preference", None)
    # The arms have a display of their own: none of their runs shows itself.
    where = ("store", "resume", "listener", "redact")
    kept = {name: given.pop(name) for name in where if name in given}
    space = Workspace.take({**kept, "progress": False})
    options = options_of(given.pop("options", None), given)
    whole = Asked(contracts, options, asked, rates=rates, **further)
    return prepare_arms(whole, space, in_thread=in_thread), judge


#: What only some questions have: the fields of their classes, and what plans them or adds to them.
_OF_A_QUESTION = (
    *("margin", "confidence", "correction", "against", "guardrails"),
    *("smallest_difference", "break_ties", "criterion"),
)


def ask_question(question: AnyQuestion | None, given: dict[str, Any]) -> ArmsQuestion:
    """Take the arguments of a question out of those of a call, and return the question.

    Args:
        question: Its name.
        given: The arguments of the call.

    Raises:
        InvalidArgument: One has no meaning for this question.
    """
    # All other names are questions about candidates, and their own class refuses a wrong one.
    others = {"best": ChoiceQuestion, "describe": ExplorationQuestion}
    kind = others.get(str(question), ComparisonQuestion)
    known = {one.name for one in fields(kind)}
    known |= {"expect", "preference"} if kind is ComparisonQuestion else set()
    for name in (*_OF_A_QUESTION, "expect", "preference"):
        # A setting that is silently ignored would be taken for one that acts.
        if given.get(name) not in (None, False) and name not in known:
            allowed = f'be left out: it has no meaning for the question "{question or "different"}"'
            raise InvalidArgument(name, given[name], allowed)
    taken = {name: given.pop(name, None) for name in _OF_A_QUESTION}
    asked: dict[str, Any] = {
        name: one for name, one in taken.items() if one is not None and name in known
    }
    if kind is ComparisonQuestion:
        return ComparisonQuestion.of(cast("Any", question), asked.pop("margin", None), **asked)
    return cast("ArmsQuestion", kind(**asked))


async def _add_votes(judge: Pairwise, answer: Answer, prepared: PreparedArms) -> Answer:
    """Return the comparison with a judge's preferences as one more criterion, and keep it so."""
    samplings = prepared.runs[0].contract.samplings
    asked = cast("ComparisonQuestion", prepared.question)
    votes = await ask_preferences(judge, answer.runs, asked, samplings)
    # Its preferences share the level with all other criteria, so that everything is concluded anew.
    voted = conclude_arms(answer.runs, prepared.question, prepared.rules, votes, answer.path)
    keep_answer(voted, votes)
    return voted
