"""The arms of a comparison before the first trial: the same inputs, one seed, one rule for a test.

Every arm gets a plan that runs all its trials and decides nothing by itself. Without `trials` the
tests of the comparison decide when the runs end, by rules that are planned here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trialwise.errors import DesignRefused, InvalidArgument
from trialwise.model.contract import Contract
from trialwise.model.intent import Intent
from trialwise.model.options import RunOptions
from trialwise.model.plan import Plan
from trialwise.procedures.choice import ChoiceQuestion, ExplorationQuestion
from trialwise.procedures.comparing.findings import ComparisonQuestion
from trialwise.procedures.comparing.pair_following import TestRules
from trialwise.procedures.comparing.pairing import check_labels, label_contracts
from trialwise.procedures.comparison import COMPARISON, fewest_discordant
from trialwise.runtime.preparing import design_cache, prepare
from trialwise.stats.paired_rules import plan_paired_rule

if TYPE_CHECKING:
    from datetime import datetime


class PlannedArms(NamedTuple):
    """The arms of a comparison, ready to run; the control is the first."""

    contracts: tuple[Contract, ...]
    plans: tuple[Plan, ...]
    labels: tuple[str, ...]
    question: ComparisonQuestion | ChoiceQuestion | ExplorationQuestion
    rules: TestRules
    """The rule of each test; none where the number of pairs is fixed."""

    @property
    def pair_question(self) -> ComparisonQuestion:
        """What a comparison asks of its pairs; a choice asks nothing of pairs."""
        assert isinstance(self.question, ComparisonQuestion)
        return self.question


def plan_arms(
    contracts: Sequence[Contract],
    options: RunOptions,
    question: ComparisonQuestion,
    *,
    inputs: Any = None,
    labels: Sequence[str] | None = None,
    rates: tuple[float, float] | None = None,
) -> PlannedArms:
    """Plan the runs of a comparison.

    Args:
        contracts: The control's first.
        options: How the runs are made. `trials` fixes the number of pairs, `max_trials` limits it.
        question: What is asked.
        inputs: What to try all arms on, where the contracts do not say.
        labels: What to call the arms; by default their contracts, where those have different names.
        rates: The rates that are expected of the control and of a candidate.

    Raises:
        DesignRefused: So few pairs cannot tell anything apart.
        InvalidArgument: The arms cannot be compared, or a setting has no meaning here.
    """
    if len(contracts) < 2:
        raise InvalidArgument("candidates", [], "be at least one: name what to compare")
    check_options(options)
    alike = share_inputs(contracts, inputs)
    names = [one.name for one in alike]
    called = label_contracts(names) if labels is None else check_labels(labels, len(alike))
    fixed = plan_alike(alike, replace(options, max_trials=None))
    rules: TestRules = {}
    if options.trials is None:
        rules = COMPARISON.plan(
            fixed,
            called,
            question,
            rates=rates,
            max_pairs=options.max_trials,
            cache=design_cache(),
        )
    planned = PlannedArms(alike, fixed, called, question, rules)
    if options.trials is None and (rules or options.max_trials is not None):
        most = max((one.max_pairs or 0 for one in rules.values()), default=options.max_trials)
        planned = planned._replace(plans=plan_alike(alike, _sized(options, most), fixed[0].seed))
    _check_size(planned)
    return planned


def plan_again(
    contracts: Sequence[Contract],
    options: RunOptions,
    question: ComparisonQuestion,
    *,
    inputs: Any,
    labels: Sequence[str],
    rules: TestRules,
    seed: int,
    now: datetime,
) -> PlannedArms:
    """Plan the runs of a comparison that is resumed: by the rules and the seed that are kept.

    Args:
        contracts: As of `plan_arms`, as are the options, the question and the inputs.
        options: How the runs are made.
        question: What is asked.
        inputs: What to try all arms on.
        labels: What the arms were called.
        rules: The rules that were planned then.
        seed: The seed of all runs.
        now: When the comparison started.
    """
    check_options(options)
    alike = share_inputs(contracts, inputs)
    most = max((one.max_pairs or 0 for one in rules.values()), default=options.max_trials)
    sized = options if options.trials is not None else _sized(options, most)
    plans = plan_alike(alike, sized, seed, now)
    return PlannedArms(alike, plans, tuple(labels), question, rules)


def _sized(options: RunOptions, pairs: int | None) -> RunOptions:
    return replace(options, trials=pairs, max_trials=None)


def plan_alike(
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
    nowhere = Path("baselines")  # no baseline takes part
    first = prepare(contracts[0], options, nowhere, seed=seed, now=now, measuring=True)
    return (
        first,
        *(
            prepare(one, options, nowhere, seed=first.seed, now=now, measuring=True)
            for one in contracts[1:]
        ),
    )


def check_options(options: RunOptions) -> None:
    """Refuse settings that have no meaning where arms take turns."""
    if options.executor != "local":
        # The arms take turns, trial by trial, so that whatever changes meanwhile meets all.
        allowed = (
            "be local in a comparison, whose services take turns in one process: leave it out, "
            "and use `concurrency` for services that wait"
        )
        raise InvalidArgument("executor", options.executor, allowed)
    for name in ("baseline", "horizon"):
        if getattr(options, name) is not None:
            allowed = "be left out: a comparison needs no baseline"
            raise InvalidArgument(name, getattr(options, name), allowed)


def share_inputs(contracts: Sequence[Contract], inputs: Any) -> tuple[Contract, ...]:
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
    if first.claim != second.claim:
        claims = [str(one.claim.population) for one in (first, second)]
        raise InvalidArgument("claim", claims, "be one for all contracts")


def _check_size(planned: PlannedArms) -> None:
    """Refuse so few pairs that nothing could be shown whatever they are."""
    plans, question = planned.plans, planned.pair_question
    tests = [
        (one, planned.labels[second])
        for first, second in question.couple_arms(range(len(plans)))
        for one in plans[first].criteria
        if any(one.criterion == other.criterion for other in plans[second].criteria)
    ]
    fewest = fewest_discordant(question.alpha, question.correction, len(tests))
    reasons = dict.fromkeys(
        f"{one.criterion}: {one.trials} pairs cannot tell anything apart at confidence "
        f"{question.confidence:g} over {_count_tests(len(tests))}: even if the candidate won them "
        f"all, chance would do as well. At least {fewest} pairs are needed, or smoke intent"
        for one, _ in tests
        if one.trials < fewest
    )
    if plans[0].intent is not Intent.VERIFICATION:
        return
    if reasons:
        raise DesignRefused(tuple(reasons))
    if question.question == "equivalent" and not planned.rules:
        for pairs in {one.trials for one, _ in tests if one.criterion not in question.guardrails}:
            plan_paired_rule(
                "equivalent", margin=question.margin, alpha=question.alpha, pairs=pairs
            )


def _count_tests(tests: int) -> str:
    return "1 test" if tests == 1 else f"{tests} tests"
