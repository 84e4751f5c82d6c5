"""The plan of a whole run: experiments, criteria, latency, and the gate before the first trial.

Everything that is wrong with a design is said at once, and nothing is run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from trialwise.errors import DesignRefused, InvalidArgument
from trialwise.model.baseline import Baseline, BaselineReference
from trialwise.model.claim import CHALLENGES, Claim, Intent, PopulationClaim, Sampling, SamplingMode
from trialwise.model.contract import Contract
from trialwise.model.evidence import Guard
from trialwise.model.fingerprint import canonical
from trialwise.model.options import RunOptions
from trialwise.model.plan import CriterionPlan, ExperimentPlan, LatencyPlan, Plan
from trialwise.procedures.base import Refused, Situation, take_over
from trialwise.procedures.claims import check_claim, default_draw
from trialwise.procedures.families import find_family_size, plan_corrected
from trialwise.procedures.gates import PROCEDURE as GATES
from trialwise.procedures.latency import PROCEDURE as LATENCY
from trialwise.procedures.registry import procedure_of
from trialwise.procedures.sequential_designs import share_trials
from trialwise.stats.sequential.concurrency import Draw
from trialwise.stats.sequential.shipped_designs import DesignCache


def plan_run(
    contract: Contract,
    options: RunOptions,
    *,
    seed: int,
    structure: Mapping[str, str],
    fingerprints: Mapping[str, str],
    baseline: Baseline | None = None,
    references: Mapping[str, BaselineReference] | None = None,
    contexts: Mapping[str, BaselineReference] | None = None,
    covariates: Mapping[str, str] | None = None,
    guards: tuple[Guard, ...] = (),
    cache: DesignCache | None = None,
    measuring: bool = False,
) -> Plan:
    """Resolve a contract into a plan.

    Args:
        contract: What is promised, with its samplings.
        options: How the run is made.
        seed: Seed for the order of inputs and for each trial.
        structure: The fingerprint of each criterion's postconditions.
        fingerprints: The fingerprints of each sampling's contents.
        baseline: The one selected for this run, where a criterion or a latency needs it.
        references: What verdicts keep of it, by criterion.
        contexts: Earlier measurements of criteria that the baseline does not decide.
        covariates: The run's resolved profile.
        guards: Violated guardrails that the run was admitted with.
        cache: Where sequential designs are kept.
        measuring: Whether a baseline is measured and nothing is decided.

    Raises:
        DesignRefused: The design cannot support its claim; every reason is given.
    """
    if not contract.samplings:
        raise InvalidArgument("inputs", None, "be given: a contract is tried on inputs")
    plans: list[CriterionPlan] = []
    experiments: list[ExperimentPlan] = []
    refusals = [*_list_unargued(contract, options)]
    decisions = find_family_size(contract, options)
    for name, sampling in contract.samplings.items():
        situation = Situation(
            experiment=name,
            sampling=sampling,
            claim=contract.claim,
            options=options,
            baseline=baseline,
            references=references or {},
            contexts=contexts or {},
            cache=cache,
            measuring=measuring,
        )
        criteria = [one for one in contract.criteria if contract.experiment_of(one) == name]
        found = [plan_corrected(one, situation.under_intent_of(one), decisions) for one in criteria]
        planned = [one for one in found if not isinstance(one, Refused)]
        if not measuring and sum(one.counting.stops_early for one in planned) > 1:
            planned = share_trials(planned, len(sampling.inputs), cache=cache)
        mine = _riding(planned, sampling)
        refusals += [
            f"{one.name}: {plan.reason}"
            for one, plan in zip(criteria, found, strict=True)
            if isinstance(plan, Refused)
        ]
        if not mine:
            continue
        experiment = _experiment(contract, options, mine, fingerprints[name])
        if not measuring:
            mine, unsupported = _check_claims(mine, experiment, contract.claim, options)
            refusals += unsupported
        if contract.gates and not measuring:
            mine, unsupported = GATES.plan(contract, options, experiment, mine)
            refusals += unsupported
        plans += mine
        experiments.append(experiment)
    latency: tuple[LatencyPlan, ...] = ()
    if contract.latency is not None and not measuring:
        latency, unsupported = LATENCY.plan(contract, options, experiments, plans, baseline)
        refusals += unsupported
    if refusals:
        raise DesignRefused(tuple(refusals))
    gates = [replace(one, sampling=contract.gate_experiments(one)[0]) for one in contract.gates]
    order = {criterion.name: place for place, criterion in enumerate(contract.criteria)}
    is_corrected = any(one.others.family is not None for one in plans)
    return Plan(
        contract=contract.name,
        seed=seed,
        intent=options.intent,
        rule=options.rule,
        analysis=options.analysis,
        claim=contract.claim,
        options=options,
        experiments=tuple(experiments),
        criteria=tuple(sorted(plans, key=lambda one: order[one.criterion])),
        latency=latency,
        gates=() if measuring else tuple(gates),
        structure=dict(structure),
        covariates=dict(covariates or {}),
        factors=dict(contract.factors),
        guards=guards,
        prevalence=contract.prevalence,
        correction=options.correction if is_corrected else "none",
        family_size=decisions if is_corrected else 1,
        purpose="measure" if measuring else "test",
    )


def _list_unargued(contract: Contract, options: RunOptions) -> Iterator[str]:
    """Probes are chosen to be hard: without an argument they represent nothing (§8.4.6)."""
    claim, verifies = contract.claim, options.intent is Intent.VERIFICATION
    wide = claim.population is PopulationClaim.SUPERPOPULATION and not claim.representativeness
    for name, sampling in contract.samplings.items():
        if verifies and wide and sampling.role in CHALLENGES:
            yield (
                f"sampling {name}: {sampling.role} inputs are taken as a superpopulation without "
                "an argument that they represent it; record one (representativeness), or claim "
                "the finite corpus that they are"
            )


def _riding(plans: Sequence[CriterionPlan], sampling: Sampling) -> list[CriterionPlan]:
    """Let observational criteria share the trials of the others, and ask every input besides.

    Alone they have a number of their own.
    """
    inputs = len(sampling.inputs)
    others = [one.count_trials(inputs) for one in plans if not one.counting.rides_along]
    if not others:
        return [one.change(rides_along=False) for one in plans]
    riding = list(plans)
    for place, one in enumerate(plans):
        if one.counting.rides_along:
            # A limit may leave fewer trials than there are inputs; its own plan knows that.
            size = max(*others, min(one.trials, inputs))
            cutoff = None if one.standing.reported_at else size
            riding[place] = replace(one, trials=size, cutoff=cutoff)
    return riding


def _experiment(
    contract: Contract, options: RunOptions, criteria: Sequence[CriterionPlan], fingerprint: str
) -> ExperimentPlan:
    name = criteria[0].experiment
    sampling, inputs = contract.samplings[name], contract.samplings[name].inputs
    trials = max(one.count_trials(len(inputs)) for one in criteria)
    draw = options.draw or default_draw()
    further, asks_every = 0, any(one.counting.asks_every_input for one in criteria)
    if asks_every and not any(one.counting.each_input for one in criteria):
        # A balanced order leaves nothing out once every slot is drawn. Independent draws may miss
        # any input but one, and a prohibition that was not tried on an input is not known to hold.
        missed = len(inputs) - 1
        if draw != "independent":
            missed = min(missed, sampling.slots - trials)
        limit = options.max_trials
        further = max(0, missed if limit is None else min(missed, limit - trials))
    return take_over(
        ExperimentPlan,
        sampling,
        name=name,
        fingerprint=fingerprint,
        input_ids=tuple(one.id for one in inputs),
        repetitions=tuple(one.repetitions for one in inputs),
        weights=(
            tuple(one.weight for one in inputs) if contract.claim.estimand.is_weighted else ()
        ),
        strata=tuple(one.stratum for one in inputs) if sampling.strata else (),
        copies=_find_copies(sampling),
        clusters=tuple(one.cluster for one in inputs) if sampling.clusters else (),
        trials=trials + further,
        further=further,
        draw=draw,
        sampling_mode=_mode(trials, len(inputs), draw, contract, criteria),
    )


def _find_copies(sampling: Sampling) -> tuple[int, ...]:
    """Return each input's first with the same value and expectation; nothing if all differ."""
    first: dict[str, int] = {}
    places = tuple(
        first.setdefault(canonical([one.value, one.expected]), place)
        for place, one in enumerate(sampling.inputs)
    )
    return places if len(first) < len(places) else ()


def _mode(
    trials: int, inputs: int, draw: Draw, contract: Contract, criteria: Sequence[CriterionPlan]
) -> SamplingMode:
    if contract.claim.population is PopulationClaim.FINITE_CORPUS:
        whole = trials >= inputs
        return SamplingMode.EXHAUSTIVE if whole else SamplingMode.WITHOUT_REPLACEMENT
    stops = (one.counting.each_input and procedure_of(one).may_stop_early for one in criteria)
    if all(stops):
        return SamplingMode.ADAPTIVE
    if draw == "balanced" and trials <= inputs:
        return SamplingMode.EXHAUSTIVE if trials == inputs else SamplingMode.WITHOUT_REPLACEMENT
    return SamplingMode.WITH_REPLACEMENT


def _check_claims(
    criteria: list[CriterionPlan], experiment: ExperimentPlan, claim: Claim, options: RunOptions
) -> tuple[list[CriterionPlan], list[str]]:
    """Hold every criterion against the claim: its estimator, or a refusal (§8.2.1, §8.4.6)."""
    checked, refusals = [], []
    # Inputs that are tried again are a hard invalidator of a claim about a population.
    strict = Intent.VERIFICATION if options.smoke_refuses != "nothing" else None
    for one in criteria:
        intent = strict or one.terms.intent or options.intent
        reasons, caveats = check_claim(claim, one, experiment, intent)
        refusals += [f"{one.criterion}: {reason}" for reason in reasons]
        checked.append(replace(one, caveats=(*one.caveats, *caveats)) if caveats else one)
    return checked, refusals
