"""Replies of a stored run are checked again, by the checks of today: the service is not called."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from trialwise.engine.excerpts import Excerpts
from trialwise.engine.trial_inputs import issue_places, trial_seeds
from trialwise.errors import DesignRefused, RunNotFound
from trialwise.model.claim import PopulationClaim
from trialwise.model.contract import Contract
from trialwise.model.criterion import Criterion
from trialwise.model.evidence import StopReason
from trialwise.model.options import RunOptions
from trialwise.model.plan import Plan
from trialwise.model.postcondition import measured_errors
from trialwise.model.sampling import Input, Sampling
from trialwise.model.trial import NOT_MEASURED, Analysis, Trial
from trialwise.runtime.preparing import prepare_run
from trialwise.runtime.result import Result
from trialwise.runtime.running import run_prepared
from trialwise.runtime.trace_scoring import ScoredTraces
from trialwise.runtime.workspace import Workspace
from trialwise.services.kept_replies import KeptAnswer, KeptReplies, read_answers
from trialwise.stores.runs import RunStore, StoredRun
from trialwise.stores.set_aside_trials import read_set_aside


def score_run(
    contract: Contract,
    run: str | PathLike[str],
    *,
    options: RunOptions | None = None,
    store: str | Path = ".trialwise",
    baselines: str | Path = "baselines",
    redact: Callable[[str], str] | None = None,
) -> Result:
    """Check the replies of a stored run again, and decide; the service is not called.

    The result is a run of its own, which names the one whose replies it has. Where that one could
    stop early, the number of its trials depends on what its checks said; a required rate is then
    decided by an interval that is valid at any stopping time.

    Args:
        contract: With the checks of today. Its inputs must be those that were asked.
        run: The name or the folder of the stored run.
        options: How the contract is decided; the number of trials is that of the replies.
        store: The folder runs are kept in.
        baselines: The folder baselines are kept in.
        redact: Takes secrets out of every text that is kept.

    Raises:
        RunNotFound: There is no such run, or its replies are not kept whole.
        DesignRefused: So many replies cannot support what is claimed.
    """
    stored = RunStore(Path(store)).open(run)
    settings = options or RunOptions()
    return score_stored(
        contract, stored, settings, Workspace.open(store, baselines, progress=False, redact=redact)
    ).result


def score_stored(
    contract: Contract, stored: StoredRun, options: RunOptions, space: Workspace
) -> ScoredTraces:
    """Check the replies of a stored run again; see `score_run`.

    Args:
        contract: With the checks of today.
        stored: The run.
        options: How the contract is decided.
        space: Where the new run is kept.
    """
    kept = _read_kept(stored)
    counts_all = all(
        Analysis(one.analysis or options.analysis) is Analysis.INTENT_TO_TREAT
        for one in contract.criteria
    )
    used = [one for one in kept if counts_all or one[0].error_class not in NOT_MEASURED]
    if not used:
        raise RunNotFound(f"{stored.run_id} has no reply that could be checked")
    could_stop = _could_stop(stored)
    if could_stop:
        _refuse_undecidable(contract, options)
    asked = _match_inputs(contract, stored, [trial for trial, _ in used], space.redact)
    whole = _with_asked_inputs(contract, asked, could_stop=could_stop)
    sizes = {name: sum(one.repetitions for one in inputs) for name, inputs in asked.items()}
    fixed = options.without_calls(trials=next(iter(sizes.values())))
    fixed = replace(fixed, trials=sizes, retries=0, draw="balanced", seed=stored.plan.seed)
    prepared = prepare_run(whole, fixed, replace(space, scored=stored.run_id))
    told = f"These are the replies of {stored.run_id}, checked again."
    plan = replace(
        prepared.plan,
        criteria=tuple(
            replace(one, caveats=(*one.caveats, told)) for one in prepared.plan.criteria
        ),
    )
    service = KeptReplies(None, dict(_assign_answers(plan, used)))
    prepared = prepared._replace(plan=plan, contract=whole.with_service(service))
    result = run_prepared(prepared, replace(space, scored=stored.run_id))
    return ScoredTraces(result, tuple(_list_notes(stored, len(kept) - len(used), could_stop)))


def _read_kept(stored: StoredRun) -> list[tuple[Trial, KeptAnswer]]:
    """Read what came back in every trial of a run."""
    if not stored.keeps_replies:
        raise RunNotFound(
            f"{stored.run_id} was made by an earlier version, which kept replies only for people "
            "to read: they cannot be checked again"
        )
    trials = [*stored.trials(), *read_set_aside(stored.path, stored.plan)]
    by_place = {(one.experiment, one.index): one for one in reversed(trials)}
    found = list(read_answers(by_place[place] for place in sorted(by_place)))
    lost = sum(answer is None for _, answer in found)
    if lost:
        raise RunNotFound(
            f"{lost} of {len(found)} replies of {stored.run_id} are not kept whole: JSON cannot "
            "hold them, or `keep_inputs: false` forbids it. They cannot be checked again"
        )
    return [(trial, answer) for trial, answer in found if answer is not None]


def _could_stop(stored: StoredRun) -> bool:
    """Return whether the number of a run's trials may depend on what its checks said."""
    decided = any(
        one.stops_early or one.looks or one.curtailed or one.each_input
        for one in stored.plan.criteria
        if not one.rides_along
    )
    if decided or not (stored.path / "record.json").exists():
        return True
    return any(one.stop is not StopReason.COMPLETE for one in stored.verdict().experiments)


def _refuse_undecidable(contract: Contract, options: RunOptions) -> None:
    """Refuse what has no rule that is valid at any stopping time."""
    reasons = [
        f"{one.name}: {why}"
        for one in contract.criteria
        if not one.never_fails and not one.report_only and (why := _find_obstacle(one))
    ]
    claim = contract.claim
    if contract.latency is not None:
        reasons.append("latency: a percentile needs every trial of its plan")
    if claim.estimator is not None or claim.population is not PopulationClaim.FIXED_INPUTS:
        reasons.append(f"claim: {claim.population} needs a number of trials that was fixed")
    if options.correction != "none":
        reasons.append(f"correction: {options.correction} needs a number of trials that was fixed")
    if reasons:
        why = "the run could stop early, and only `at_least` over all inputs and `never_fails` can"
        raise DesignRefused((f"{why} be decided on its replies", *reasons))


def _find_obstacle(criterion: Criterion) -> str:
    if criterion.at_least is None:
        return "its question needs a number of trials that was fixed"
    if criterion.each_input:
        return "each input was asked until it was decided"
    if measured_errors(criterion.checks) is not None:
        return "the correction for the judge's errors needs a number of trials that was fixed"
    return ""


def _match_inputs(
    contract: Contract,
    stored: StoredRun,
    trials: Sequence[Trial],
    redact: Callable[[str], str] | None,
) -> dict[str, list[Input]]:
    """Find the inputs of the trials, by sampling; each is repeated as often as it was asked.

    Raises:
        RunNotFound: An input is not there any more, or says something else now.
    """
    names = {trial.experiment for trial in trials}
    if unknown := names - set(contract.samplings):
        raise RunNotFound(f"{contract.name} has no sampling {', '.join(sorted(unknown))} any more")
    texts, excerpts = stored.texts(), Excerpts(reply_limit=0, redact=redact)
    found: dict[str, list[Input]] = {}
    for name in [name for name in contract.samplings if name in names]:
        inputs = {one.id: one for one in contract.samplings[name].inputs}
        counts: dict[str, int] = dict.fromkeys(inputs, 0)
        for trial in trials:
            if trial.experiment != name:
                continue
            given, asked = inputs.get(trial.input_id), texts.find_input(trial)
            if given is None or (asked and asked.value != excerpts.value(given.value)):
                raise RunNotFound(
                    f"the input {trial.input_id!r} of {contract.name} is not the one that "
                    f"{stored.run_id} has asked: its replies answer something else"
                )
            counts[trial.input_id] += 1
        found[name] = [replace(inputs[one], repetitions=n) for one, n in counts.items() if n]
    return found


def _with_asked_inputs(
    contract: Contract, asked: dict[str, list[Input]], *, could_stop: bool
) -> Contract:
    """Return the contract on the inputs that were asked, with criteria that take all trials."""

    def take_all(one: Criterion) -> Criterion:
        fixed = replace(one, trials=None, max_trials=None)
        if one.never_fails or one.report_only:
            return replace(fixed, each_input=False) if could_stop else fixed
        return replace(fixed, procedure="ANYTIME") if could_stop else fixed

    samplings: dict[str, Sampling] = {
        name: replace(contract.samplings[name], inputs=tuple(inputs))
        for name, inputs in asked.items()
    }
    criteria = [take_all(one) for one in contract.criteria if contract.experiment_of(one) in asked]
    given = next(iter(samplings.values())) if len(samplings) == 1 else samplings
    return replace(contract, criteria=criteria, sampling=given, before_each=None)


def _assign_answers(
    plan: Plan, used: Sequence[tuple[Trial, KeptAnswer]]
) -> Iterator[tuple[tuple[int, int], KeptAnswer]]:
    """Yield the place and the seed of each planned trial with the next answer to its input."""
    left: dict[tuple[str, str], deque[KeptAnswer]] = {}
    for trial, answer in used:
        left.setdefault((trial.experiment, trial.input_id), deque()).append(answer)
    for experiment in plan.experiments:
        each = any(one.each_input for one in plan.criteria_of(experiment.name))
        seed_of = trial_seeds(plan.seed, experiment.name)
        places = issue_places(experiment, seed=plan.seed, each_input=each)
        for index, place in enumerate(places):
            yield (
                (index, seed_of(index)),
                left[experiment.name, experiment.input_ids[place]].popleft(),
            )


def _list_notes(stored: StoredRun, unmeasured: int, could_stop: bool) -> Iterator[str]:
    if unmeasured:
        yield f"{unmeasured} trials of {stored.run_id} never reached the service and are left out"
    if could_stop:
        yield (
            f"the number of trials of {stored.run_id} was not fixed: it could stop early, or was "
            "stopped. Rates are decided by an interval that is valid at any stopping time"
        )
