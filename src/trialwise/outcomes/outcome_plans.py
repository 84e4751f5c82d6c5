"""Plan a decision about outcomes that already exist: the design that would have led to them.

Each criterion has one fixed design, at the number of trials that were planned. The repetitions of
the inputs are those of the file, and `draw` is "balanced", which means exactly that list of trials.
The sampling mode says that trialwise did not draw them: externally supplied.

A fixed design assumes that its size was settled beforehand, and a sequential design that its order
is random. A file shows neither, so the user declares both, and the verdict says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trialwise.documents.numbers import as_count
from trialwise.errors import DesignRefused, InvalidArgument
from trialwise.model import CheckResult, Contract, FailReason, Latency, Reply, RunOptions
from trialwise.model.baseline import Baseline, BaselineReference
from trialwise.model.claim import Claim, Input, Intent, PopulationClaim, Sampling, SamplingMode
from trialwise.model.criterion import Criterion, CriterionScope
from trialwise.model.evidence import Guard
from trialwise.model.fingerprint import fingerprint, sampling_fingerprint
from trialwise.model.plan import CriterionPlan, Plan
from trialwise.outcomes.outcome_rows import Outcomes
from trialwise.outcomes.outcome_trials import (
    Experiment,
    Order,
    gather,
    in_order,
    is_sorted_by_input,
)
from trialwise.procedures.registry import procedure_of
from trialwise.procedures.run_plan import plan_run
from trialwise.stats.sequential.shipped_designs import DesignCache

# The question about the outcomes of a file: which criteria, which rate, which assumptions.


@dataclass(frozen=True, slots=True)
class Supplied:
    """Stands for the check that another tool made; there is no reply to check here."""

    name: str = "decided elsewhere"

    def check(self, reply: Reply) -> CheckResult:  # noqa: ARG002 - nothing is called
        """Fail every reply, because the check was made elsewhere."""
        return CheckResult.fail("this is decided elsewhere", reason=FailReason.NO_VALUE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question about outcomes."""

    outcomes: Outcomes
    experiments: Sequence[Experiment]
    """The trials in order, with the criteria of the question."""
    criteria: Sequence[Criterion]
    contract: str
    options: RunOptions
    order: Order
    trials: int | None = None
    """The planned trials of every criterion that does not say, if the user declares them."""
    sequential: bool = False
    claim: Claim = field(default_factory=Claim)
    latency: Latency | None = None
    factors: Mapping[str, str] = field(default_factory=dict)
    covariates: Mapping[str, str] = field(default_factory=dict)

    @property
    def seed(self) -> int:
        """The seed of the random order, where none is known."""
        return self.options.seed or 0

    def criterion(self, name: str) -> Criterion:
        """Return a criterion of the question by its name."""
        return next(one for one in self.criteria if one.name == name)

    def experiment_of(self, criterion: str) -> Experiment:
        """Return the experiment whose trials decide a criterion."""
        return next(one for one in self.experiments if criterion in one.criteria)


def question_all(
    outcomes: Outcomes,
    *,
    at_least: float | Mapping[str, float] | None = None,
    no_worse_than: str | Baseline | None = None,
    never_fails: bool = False,
    mean_at_least: float | None = None,
    **common: Any,
) -> list[Criterion]:
    """Ask the same of every criterion, or different rates of some of them.

    Args:
        outcomes: Whose criteria.
        at_least: The required rate, or rates by name.
        no_worse_than: A baseline.
        never_fails: Whether any failure was observed.
        mean_at_least: The required mean score.
        common: Further arguments of every `Criterion`.
    """
    reference = no_worse_than.identifier if isinstance(no_worse_than, Baseline) else no_worse_than
    rates: Mapping[str, float | None]
    if isinstance(at_least, Mapping):
        if not at_least:
            raise InvalidArgument("at_least", {}, "give the rate of at least one criterion")
        rates = at_least
    else:
        rates = dict.fromkeys(outcomes.criteria, at_least)
    graded = outcomes.graded
    for name in rates if mean_at_least is not None else ():
        if name not in graded:
            allowed = f"have scores from 0 to 1, read with pass_at; {name!r} has none"
            raise InvalidArgument("mean_at_least", mean_at_least, allowed)
    return [
        Criterion(
            name,
            Supplied(),
            at_least=rate,
            no_worse_than=reference,
            never_fails=never_fails,
            mean_at_least=mean_at_least,
            pass_at=outcomes.pass_at if name in graded else None,
            **common,
        )
        for name, rate in rates.items()
    ]


def ask(outcomes: Outcomes, criteria: Sequence[Criterion], **arguments: Any) -> Asked:
    """Put a question to the trials it is about, in their order.

    Args:
        outcomes: All of them: what one criterion says of a trial shows that another is missing.
        criteria: Those that are asked about, by name.
        arguments: The other fields of `Asked`.
    """
    asked = Asked(outcomes=outcomes, experiments=(), criteria=criteria, **arguments)
    _check(asked)
    mine = gather(outcomes, [one.name for one in criteria])
    for one in mine:
        kinds = {asked.criterion(name).each_input for name in one.criteria}
        if len(kinds) > 1:
            allowed = "be the same for criteria of the same trials: score the two kinds apart"
            raise InvalidArgument("each_input", sorted(one.criteria), allowed)
    return replace(asked, experiments=[in_order(one, asked.order, asked.seed) for one in mine])


def _check(asked: Asked) -> None:
    known = asked.outcomes.criteria
    for one in asked.criteria:
        if one.name not in known:
            listed = ", ".join(known[:12])
            raise InvalidArgument("criterion", one.name, f"be one of the file's: {listed}")
        if asked.sequential and (one.at_least is None and not one.never_fails):
            allowed = "be fixed against a baseline: only a required rate is decided early"
            raise InvalidArgument("design", "sequential", allowed)
    for trials in (*(one.trials for one in asked.criteria), asked.trials):
        if asked.sequential and trials is not None:
            allowed = "be left out of a sequential decision, which takes max_trials"
            raise InvalidArgument("trials", trials, allowed)
    if not asked.sequential and asked.options.max_trials is not None:
        allowed = "go with a sequential design"
        raise InvalidArgument("max_trials", asked.options.max_trials, allowed)


#: Claims about a rate beyond the trials themselves.
_INFERRED = (PopulationClaim.FIXED_INPUTS, PopulationClaim.SUPERPOPULATION)
_STOPPED = (
    "The outcomes were made elsewhere. The decision assumes that their number was fixed "
    "beforehand, and does not hold if somebody stopped because of the results so far."
)
_DECLARED = (
    "The outcomes were made elsewhere. The user declares that {trials} trials were planned; this "
    "cannot be checked."
)
_BY_THE_FILE = "The outcomes were made elsewhere. The file says that {trials} trials were planned."
_MISSING = (
    "The file says nothing of this criterion in {trials} that it says something else of: they "
    "count as failures without a value. Score it apart where it had trials of its own."
)
_SHUFFLED = (
    "The order of the trials is not known, so a random order is used: "
    "dependence and drift cannot be seen."
)
_IN_SEQUENCE = (
    "The outcomes were made elsewhere: that this design was chosen before them, and that their "
    "order is that of random draws, is declared, not known."
)


def scopes_of_outcomes(asked: Asked) -> dict[str, CriterionScope]:
    """Describe what each criterion is about, as a baseline of outcomes records it.

    A criterion is known by its name and by what counted as passed; the inputs by their names, how
    often each was tried does not matter.
    """
    rule = asked.outcomes.passing
    scopes: dict[str, CriterionScope] = {}
    for criterion in asked.criteria:
        experiment = asked.experiment_of(criterion.name)
        once = Sampling(inputs=tuple(Input(id=one, value=one) for one in experiment.inputs))
        scopes[criterion.name] = CriterionScope(
            structure=fingerprint(["outcomes", criterion.name, rule]),
            postconditions=(f"outcomes:{criterion.name} ({rule})",),
            sampling=experiment.name,
            sampling_fingerprint=sampling_fingerprint(once),
        )
    return scopes


def plan_outcomes(
    asked: Asked,
    *,
    baseline: Baseline | None = None,
    references: Mapping[str, BaselineReference] | None = None,
    guards: tuple[Guard, ...] = (),
    cache: DesignCache | None = None,
    measuring: bool = False,
) -> Plan:
    """Plan the decision, or refuse with the reason why the outcomes cannot support it.

    Args:
        asked: What is asked.
        baseline: The reference, where a criterion needs one.
        references: What verdicts keep of it, by criterion.
        guards: Violated guardrails that it was admitted with.
        cache: Where sequential designs are kept.
        measuring: Whether a baseline is made of the outcomes, and nothing is decided.

    Raises:
        DesignRefused: With every reason.
    """
    refusals = [reason for one in asked.criteria for reason in _explain_missing_order(one, asked)]
    if not measuring:
        refusals += _single(asked)
    if refusals:
        raise DesignRefused(tuple(refusals))
    scopes = scopes_of_outcomes(asked)
    plan = plan_run(
        contract_of(asked),
        asked.options,
        seed=asked.seed,
        structure={name: scope.structure for name, scope in scopes.items()},
        fingerprints={scope.sampling: scope.sampling_fingerprint for scope in scopes.values()},
        baseline=baseline,
        references=references,
        covariates=asked.covariates,
        guards=guards,
        cache=cache,
        measuring=measuring,
    )
    return replace(
        plan,
        experiments=tuple(
            replace(one, sampling_mode=SamplingMode.EXTERNALLY_SUPPLIED) for one in plan.experiments
        ),
        criteria=tuple(_add_disclosures(one, asked) for one in plan.criteria),
    )


def contract_of(asked: Asked) -> Contract:
    """Return the contract that would have led to the outcomes."""
    samplings = {one.name: _sampling(one, asked.outcomes.source) for one in asked.experiments}
    return Contract(
        asked.contract,
        None,
        [_size_criterion(one, asked) for one in asked.criteria],
        sampling=samplings,
        claim=asked.claim,
        latency=asked.latency,
        factors=asked.factors,
        description=asked.outcomes.source,
    )


def _sampling(experiment: Experiment, source: str) -> Sampling:
    tried = experiment.count_trials_by_input()
    return Sampling(
        inputs=tuple(
            Input(id=name, value=name, repetitions=tried[name]) for name in experiment.inputs
        ),
        identifier=experiment.name,
        description=f"made elsewhere, read from {source or 'memory'}",
    )


def _size_criterion(criterion: Criterion, asked: Asked) -> Criterion:
    """Return the criterion with the number of its trials that were planned."""
    experiment = asked.experiment_of(criterion.name)
    size = None if asked.sequential else _count_planned_trials(criterion, experiment, asked)
    kept = criterion.max_trials if asked.sequential else None
    return replace(criterion, sampling=experiment.name, trials=size, max_trials=kept)


def _declared_trials(criterion: Criterion, asked: Asked) -> int | None:
    return criterion.trials if criterion.trials is not None else asked.trials


def _count_planned_trials(criterion: Criterion, experiment: Experiment, asked: Asked) -> int:
    """Trials that were to be made, of each input where each is judged: declared, else the most
    there can have been meant."""
    declared = _declared_trials(criterion, asked)
    if declared is not None:
        return declared
    found = _count_found_trials(criterion, experiment)
    # A file with several experiments does not say whose trials are missing.
    # A guess about whose they are could turn an unfinished run into a finished one.
    known = asked.outcomes.planned if len(asked.experiments) == 1 else None
    if known is None:
        return found
    return max(found, -(-known // len(experiment.inputs)) if criterion.each_input else known)


def _count_found_trials(criterion: Criterion, experiment: Experiment) -> int:
    """Count the trials in the file; with `each_input`, those of the input with the most."""
    if criterion.each_input:
        return max(experiment.count_trials_by_input().values())
    return len(experiment.trials)


def _explain_missing_order(criterion: Criterion, asked: Asked) -> Iterator[str]:
    """Say why the order has to be declared, or why it is not random."""
    experiment = asked.experiment_of(criterion.name)
    if asked.sequential:
        if asked.order is Order.UNKNOWN:
            yield (
                f"{criterion.name}: a sequential decision rests on the order of the trials, and "
                "that of a file may be anything. Declare it (order=file, or time), or decide all "
                "of the outcomes together (design=fixed)"
            )
        elif not criterion.each_input and is_sorted_by_input(experiment.trials):
            yield (
                f"{criterion.name}: all trials of one input stand before those of the next, which "
                "is not a random order, so that an early decision would be about the first inputs "
                "alone. Decide all of the outcomes together (design=fixed)"
            )
        return
    declared, found = _declared_trials(criterion, asked), _count_found_trials(criterion, experiment)
    if declared is not None and found > declared and asked.order is Order.UNKNOWN:
        yield (
            f"{criterion.name}: {declared} trials are declared and the file holds {found}: which "
            "of them count must not be chosen afterwards. Declare the order to take the first "
            "ones (order=file, or time), or leave the number out"
        )


def _single(asked: Asked) -> Iterator[str]:
    """Refuse a report of many tests that ran once each: it shows no rate."""
    verifies = asked.options.intent is Intent.VERIFICATION
    rates = [one for one in asked.criteria if one.at_least is not None]
    if verifies and len(rates) > 1 and asked.claim.population in _INFERRED:
        planned = [
            _count_planned_trials(one, asked.experiment_of(one.name), asked) for one in rates
        ]
        if not asked.sequential and max(planned) == 1:
            yield (
                f"each of the {len(rates)} criteria has one trial, which shows no rate. Judge "
                "them together, as inputs of one criterion (pooled), or ask whether any fails "
                "(never_fails)"
            )


def _sized_by(criterion: Criterion, trials: int, asked: Asked) -> str:
    """Say who settled the number of trials."""
    if _declared_trials(criterion, asked) is not None:
        return _DECLARED.format(trials=trials)
    if asked.outcomes.planned is not None and len(asked.experiments) == 1:
        return _BY_THE_FILE.format(trials=trials)
    return _STOPPED


def _add_disclosures(criterion: CriterionPlan, asked: Asked) -> CriterionPlan:
    """Return the plan with the conditions that its verdict has to name."""
    given = asked.criterion(criterion.criterion)
    experiment = asked.experiment_of(criterion.criterion)
    caveats = [*criterion.caveats, *asked.outcomes.notes]
    if missing := experiment.missing.get(criterion.criterion):
        caveats.append(_MISSING.format(trials=as_count(missing, "trial")))
    if procedure_of(criterion).may_stop_early:
        caveats.append(_IN_SEQUENCE)
    elif criterion.alpha is not None:
        caveats.append(_sized_by(given, criterion.trials, asked))
    if asked.order is Order.UNKNOWN:
        caveats.append(_SHUFFLED)
    each = criterion.counting.each_input
    least = min(experiment.count_trials_by_input().values()) if each else len(experiment.trials)
    # All trials of the design exist, so all of them are looked at.
    short = least < criterion.trials
    return criterion.change(curtailed=short, caveats=tuple(caveats))
