"""Plan a decision about outcomes that already exist: the design that would have led to them.

Each criterion has one fixed design, at the number of trials that were planned. The repetitions of
the inputs are those of the file, and `draw` is "balanced", which means exactly that list of trials.
The sampling mode says that trialwise did not draw them: externally supplied.

A fixed design assumes that its size was settled beforehand, and a sequential design that its order
is random. A file shows neither, so the user declares both, and the verdict says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from trialwise.documents.numbers import as_count
from trialwise.errors import DesignRefused
from trialwise.model.baseline import Baseline, BaselineReference, CriterionScope
from trialwise.model.claim import PopulationClaim, SamplingMode
from trialwise.model.contract import Contract
from trialwise.model.criterion import Criterion
from trialwise.model.evidence import Guard
from trialwise.model.fingerprint import fingerprint, sampling_fingerprint
from trialwise.model.intent import Intent
from trialwise.model.plan import CriterionPlan, Plan
from trialwise.model.sampling import Input, Sampling
from trialwise.outcomes.outcome_questions import Asked
from trialwise.outcomes.outcome_trials import Experiment, Order, is_sorted_by_input
from trialwise.procedures.planning.run_plan import plan_run
from trialwise.procedures.registry import procedure_of
from trialwise.stats.sequential.shipped_designs import DesignCache

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
    seed: int,
    baseline: Baseline | None = None,
    references: Mapping[str, BaselineReference] | None = None,
    guards: tuple[Guard, ...] = (),
    cache: DesignCache | None = None,
    measuring: bool = False,
) -> Plan:
    """Plan the decision, or refuse with the reason why the outcomes cannot support it.

    Args:
        asked: What is asked.
        seed: The seed of the random order, where none is known.
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
        _contract(asked),
        asked.options,
        seed=seed,
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


def _contract(asked: Asked) -> Contract:
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
                "is no random order, so that an early decision would be about the first inputs "
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
    each = criterion.each_input
    least = min(experiment.count_trials_by_input().values()) if each else len(experiment.trials)
    # All trials of the design exist, so all of them are looked at.
    short = least < criterion.trials
    return replace(criterion, curtailed=short, caveats=tuple(caveats))
