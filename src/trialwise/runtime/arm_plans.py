"""The arms of a comparison before the first trial: one seed, the same inputs, one rule for a test.

New ones are planned. Those of a comparison that is resumed get its rules and its seed.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trialwise.errors import DesignRefused, InvalidArgument, RunNotFound
from trialwise.model.claim import Intent
from trialwise.model.contract import Contract
from trialwise.model.options import RunOptions
from trialwise.model.plan import Plan
from trialwise.procedures.choice import ChoiceQuestion, find_criteria
from trialwise.procedures.comparing.findings import ComparisonQuestion
from trialwise.procedures.comparing.pair_following import TestRules
from trialwise.procedures.comparing.pairing import label_contracts
from trialwise.procedures.comparison import COMPARISON, fewest_discordant
from trialwise.redaction import redact_with
from trialwise.runtime.answers import ArmsQuestion, read_question, read_rules
from trialwise.runtime.arms import PreparedArms
from trialwise.runtime.preparing import PreparedRun, prepare
from trialwise.runtime.running import record_replies, replay_replies
from trialwise.runtime.workspace import Workspace
from trialwise.stats.paired_rules import plan_paired_rule
from trialwise.stores.baselines import FileDesignCache

if TYPE_CHECKING:
    from datetime import datetime

    from trialwise.stores.comparisons import StoredComparison

#: The most rounds of a choice, and the trials of each arm that is described, unless given.
MAX_ROUNDS = 1000
DESCRIBED_TRIALS = 50


class Asked(NamedTuple):
    """What a caller asks of several arms."""

    contracts: Sequence[Contract]
    """The control's first."""
    options: RunOptions
    """`trials` fixes the number of pairs, `max_trials` limits pairs and rounds."""
    question: ArmsQuestion
    inputs: Any = None
    """What to try all arms on, where the contracts do not say."""
    labels: Sequence[str] | None = None
    """By default their contracts, where those have different names."""
    rates: tuple[float, float] | None = None
    """The rates that are expected of the control and of a candidate."""
    source: Mapping[str, Any] | None = None
    """How the contracts can be found again."""
    record: str | Path | None = None
    replay: str | Path | None = None
    progress: bool | None = None


def prepare_arms(asked: Asked, space: Workspace, *, in_thread: bool = False) -> PreparedArms:
    """Plan the runs of several arms, or find those to resume.

    Args:
        asked: What is asked, of which contracts.
        space: Where runs are kept, and whether to resume.
        in_thread: Whether a plain function must not hold up the event loop.

    Raises:
        DesignRefused: So few pairs cannot tell anything apart.
        InvalidArgument: The arms cannot be compared, or a setting has no meaning here.
        RunNotFound: There is no comparison to resume, or it has another plan.
    """
    if len(asked.contracts) < 2:
        raise InvalidArgument("candidates", [], "be at least one: arms are compared, two or more")
    _check_options(asked.options, asked.question)
    # A difference may be the inputs' where the arms have different ones.
    alike = _share_inputs(asked.contracts, asked.inputs)
    with redact_with(space.redact):
        prepared = (_prepare_again if space.resume else _prepare_new)(alike, asked, space)
    runs, labels = list(prepared.runs), prepared.labels
    if asked.replay is not None:
        runs = replay_replies(runs, Path(asked.replay), labels)
    elif asked.record is not None:
        runs = record_replies(runs, Path(asked.record), labels, in_thread=in_thread)
    progress = asked.progress
    shows = sys.stderr is not None and (sys.stderr.isatty() if progress is None else progress)
    return replace(prepared, runs=tuple(runs), shows_progress=shows, source=asked.source or {})


def _check_options(options: RunOptions, question: ArmsQuestion) -> None:
    """Refuse settings that have no meaning where arms take turns."""
    if options.executor != "local":
        # The arms take turns, trial by trial, so that whatever changes meanwhile meets all.
        allowed = (
            "be local in a comparison, whose services take turns in one process: leave it out, "
            "and use `concurrency` for services that wait"
        )
        raise InvalidArgument("executor", options.executor, allowed)
    for name, one in (("baseline", options.baseline), ("horizon", options.horizon)):
        if one is not None:
            raise InvalidArgument(name, one, "be left out: a comparison needs no baseline")
    if isinstance(question, ChoiceQuestion) and options.trials is not None:
        allowed = "be left out: a choice ends when it is known, and `max_trials` limits its rounds"
        raise InvalidArgument("trials", options.trials, allowed)


def _size_arms(options: RunOptions, question: ArmsQuestion, rules: TestRules) -> RunOptions:
    """Return the options with the number of rounds after which all arms end at the latest."""
    if isinstance(question, ChoiceQuestion):
        # A choice between arms that are as good may go on for long.
        trials: Any = options.max_trials or MAX_ROUNDS
    elif isinstance(question, ComparisonQuestion):
        limits = (one.max_pairs or 0 for one in rules.values())
        trials = options.trials or max(limits, default=options.max_trials)
    else:
        trials = options.trials or DESCRIBED_TRIALS
    return replace(options, trials=trials, max_trials=None)


def _prepare_new(alike: Sequence[Contract], asked: Asked, space: Workspace) -> PreparedArms:
    options, question = asked.options, asked.question
    labels = label_contracts([one.name for one in alike], asked.labels)
    # Planned twice: rules need the criteria of a plan, and a plan needs the size that rules end
    # with.
    plans = _plan_alike(alike, _size_arms(options, question, {}))
    rules: TestRules = {}
    if isinstance(question, ComparisonQuestion):
        if options.trials is None:
            wanted: Any = {"rates": asked.rates, "max_pairs": options.max_trials}
            rules = COMPARISON.plan(plans, labels, question, **wanted, cache=FileDesignCache())
        if rules:
            plans = _plan_alike(alike, _size_arms(options, question, rules), plans[0].seed)
        _check_size(plans, question, rules)
    else:
        find_criteria(plans, question.criterion)
    runs = tuple(PreparedRun(*one) for one in zip(alike, plans, strict=True))
    return PreparedArms(runs, labels, question, space, rules)


def _prepare_again(alike: Sequence[Contract], asked: Asked, space: Workspace) -> PreparedArms:
    from trialwise.stores.comparisons import ComparisonStore
    from trialwise.stores.runs import RunStore

    assert space.store is not None
    named = space.resume if isinstance(space.resume, str) else None
    stored = ComparisonStore(space.store).find_unfinished(named, asked.question.kind)
    head = stored.head
    # What was asked first is decided, or the second look would choose the easier question. The
    # pairs so far have been seen, and a question chosen after them has no error rate.
    question = _check_asked(stored, asked)
    rules = read_rules(head.rules)
    sized = _size_arms(asked.options, question, rules)
    plans = _plan_alike(alike, sized, head.seed, head.started_at)
    runs = RunStore(space.store)
    kept = [runs.open(name) for name in head.runs]
    # A prompt or a check that has changed since makes the first half another service.
    for one, plan in zip(kept, plans, strict=True):
        one.check_plan(plan)
    again = tuple(PreparedRun(*one) for one in zip(alike, plans, kept, strict=True))
    return PreparedArms(again, head.labels, question, space, rules, stored)


def _plan_alike(
    contracts: Sequence[Contract],
    options: RunOptions,
    seed: int | None = None,
    now: datetime | None = None,
) -> tuple[Plan, ...]:
    """Return plans of one seed, so of one order: all of it is run, nothing is decided by it.

    Args:
        contracts: With the same inputs.
        options: How the runs are made.
        seed: Of all runs; a new one unless given.
        now: When a comparison that is resumed started.
    """
    plans: list[Plan] = []
    nowhere = Path("baselines")  # no baseline takes part
    for one in contracts:
        plans.append(prepare(one, options, nowhere, seed=seed, now=now, measuring=True))
        seed = plans[0].seed
    return tuple(plans)


def _share_inputs(contracts: Sequence[Contract], inputs: Any) -> tuple[Contract, ...]:
    """Return the contracts with the same inputs, and without sizes of their own."""
    given = inputs
    if given is None:
        own = [one for one in contracts if one.samplings]
        if not own:
            raise InvalidArgument("inputs", None, "be given: services are compared on inputs")
        given = own[0].sampling
        for one in own[1:]:
            _check_inputs(own[0], one)
    alike = tuple(_neutral(one.with_inputs(given)) for one in contracts)
    for one in alike[1:]:
        _check_criteria(alike[0], one)
    return alike


def _check_inputs(first: Contract, second: Contract) -> None:
    from trialwise.model.fingerprint import sampling_fingerprint

    ours, theirs = (
        {name: sampling_fingerprint(one) for name, one in contract.samplings.items()}
        for contract in (first, second)
    )
    if ours != theirs:
        allowed = "be the same for all arms, or be given to `compare`"
        raise InvalidArgument("inputs", sorted({*ours} | {*theirs}), allowed)


def _neutral(contract: Contract) -> Contract:
    """Return the contract with every criterion on every pair, and nothing that ends a run early."""
    # An arm that ended by its own rule would leave pairs without a partner.
    criteria = tuple(replace(one, trials=None, max_trials=None) for one in contract.criteria)
    return replace(contract, criteria=criteria, latency=None)


def _check_criteria(first: Contract, second: Contract) -> None:
    from trialwise.checks.criterion_scopes import scopes_of

    ours, theirs = scopes_of(first), scopes_of(second)
    shared = ours.keys() & theirs.keys()
    if not shared:
        allowed = f"share a criterion with the other's: {', '.join(theirs)}"
        raise InvalidArgument("criteria", list(ours), allowed)
    changed = sorted(name for name in shared if ours[name].structure != theirs[name].structure)
    if changed:
        allowed = "ask the same of all arms, or have another name"
        raise InvalidArgument("criteria", changed, allowed)
    # Rates of different populations have no difference.
    if first.claim != second.claim:
        claims = [str(one.claim.population) for one in (first, second)]
        raise InvalidArgument("claim", claims, "be one for all contracts")


def _check_size(plans: Sequence[Plan], question: ComparisonQuestion, rules: TestRules) -> None:
    """Refuse so few pairs that nothing could be shown whatever they are."""
    # A smoke run proves that things work, and claims nothing that needs a size.
    if plans[0].intent is not Intent.VERIFICATION:
        return
    tests = [
        one
        for first, second in question.couple_arms(plans)
        for one in first.criteria
        if any(one.criterion == other.criterion for other in second.criteria)
    ]
    fewest = fewest_discordant(question.alpha, question.correction, len(tests))
    over = "1 test" if len(tests) == 1 else f"{len(tests)} tests"
    reasons = dict.fromkeys(
        f"{one.criterion}: {one.trials} pairs cannot tell anything apart at confidence "
        f"{question.confidence:g} over {over}: even if the candidate won them all, chance would "
        f"do as well. At least {fewest} pairs are needed, or smoke intent"
        for one in tests
        if one.trials < fewest
    )
    if reasons:
        raise DesignRefused(tuple(reasons))
    if question.question == "equivalent" and not rules:
        # Raises where so few pairs cannot show that the arms are alike.
        within: Any = {"margin": question.margin, "alpha": question.alpha}
        for pairs in {one.trials for one in tests if one.criterion not in question.guardrails}:
            plan_paired_rule("equivalent", **within, pairs=pairs)


def _check_asked(stored: StoredComparison, asked: Asked) -> ArmsQuestion:
    """Refuse to resume what asks something else, or of other arms; return the question kept.

    Only the edition may be another: what was begun is decided by the rule of its beginning.
    """
    head, kind = stored.head, asked.question.kind
    if head.kind != kind:
        named = {"comparison": "a comparison", "choice": "a choice"}
        raise RunNotFound(
            f"{stored.comparison_id} is not {named.get(kind, 'a description')} but "
            f"{named.get(head.kind, 'a description')}: ask what it was asked to resume it"
        )
    before = read_question(head)
    changed = [
        one.name
        for one in fields(before)
        if one.name != "edition" and getattr(asked.question, one.name) != getattr(before, one.name)
    ]
    if len(asked.contracts) != len(head.runs):
        changed.append("the number of arms")
    elif asked.labels is not None and tuple(asked.labels) != head.labels:
        changed.append("the labels")
    if changed:
        raise RunNotFound(
            f"{stored.comparison_id} cannot be resumed: it was started with another "
            f"{' and another '.join(changed)}. Undo that, or start a new comparison."
        )
    return before
