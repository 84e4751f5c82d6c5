"""Measuring a baseline: every planned trial is run and counted, and nothing is decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from trialwise import __version__
from trialwise.engine.run_events import Listener
from trialwise.errors import BaselineError, RunInterrupted
from trialwise.model.baseline import Baseline, CriterionBaseline
from trialwise.model.contract import Contract
from trialwise.model.evidence import StopReason
from trialwise.model.options import RunOptions
from trialwise.model.outcome import FailReason
from trialwise.model.plan import CriterionPlan, Plan
from trialwise.model.run_settings import RunSettings
from trialwise.model.trial import Trial
from trialwise.runtime.preparing import prepare
from trialwise.runtime.settings import options_of
from trialwise.runtime.workspace import Execution, Workspace

if TYPE_CHECKING:
    from trialwise.model.baseline import CriterionScope

__all__ = ["Measurement", "measure"]


@dataclass(frozen=True, slots=True)
class Measurement:
    """A baseline, where it is kept, and the trials it was counted from."""

    baseline: Baseline
    path: Path
    trials: Sequence[Trial]
    run: Path | None = None


def measure(
    contract: Contract,
    *,
    inputs: Any = None,
    options: RunOptions | None = None,
    identifier: str | None = None,
    valid_days: float | None = None,
    grace_days: float = 0.0,
    store: str | Path | None = ".trialwise",
    baselines: str | Path = "baselines",
    resume: bool | str = False,
    progress: bool | None = None,
    listener: Listener | None = None,
    redact: Callable[[str], str] | None = None,
    **settings: Unpack[RunSettings],
) -> Measurement:
    """Measure a baseline and write it to a file that people and git can read (companion §1.5).

    Args:
        contract: What to measure; the criteria's thresholds play no part.
        inputs: What to try it on, where the contract does not say.
        options: How the run is made; `trials` says how large the baseline is.
        identifier: What to call it; by default the contract and the day.
        valid_days: How long it is taken to stay representative.
        grace_days: How long after that it is still admitted, with a warning.
        store: The folder runs are kept in; None keeps nothing but the baseline.
        baselines: The folder baselines are kept in.
        resume: True for the newest unfinished run of this contract, or a run's identifier.
        progress: Whether to show progress on standard error; None: where it is a terminal.
        listener: Hears of every step.
        redact: Takes secrets out of every text that is kept.
        settings: The fields of `RunOptions`.

    Raises:
        BaselineError: The run ended before its plan did: part of a baseline is none.
    """
    from trialwise.checks.criterion_scopes import scopes_of
    from trialwise.stores.baselines import BaselineStore

    whole = contract if inputs is None else contract.with_inputs(inputs)
    space = Workspace.open(
        store=store,
        baselines=baselines,
        resume=resume,
        progress=progress,
        listener=listener,
        redact=redact,
    )
    kept = space.to_resume(whole.name, purpose="measure")
    # Before the trials: a postcondition with a state of its own may change while they run.
    scopes = scopes_of(whole)
    plan = prepare(
        whole,
        options_of(options, settings),
        space.baselines,
        now=space.clock.now() if kept is None else kept.started_at,
        seed=None if kept is None else kept.plan.seed,
        measuring=True,
    )
    files = BaselineStore(space.baselines)
    files.check_writable(whole.name)
    with space.execute(whole, plan, kept) as done:
        _check_complete(done)
    created_at = space.clock.now()
    trials = done.outcome.trials
    baseline = Baseline(
        identifier=identifier or f"{whole.name}@{created_at:%Y-%m-%dT%H-%M-%S}",
        contract=whole.name,
        created_at=created_at,
        criteria=observed_criteria(plan, trials, scopes),
        covariates=plan.covariates,
        factors=plan.factors,
        claim=plan.claim,
        latencies_s=successful_latencies(plan, trials),
        run_trials=Counter(trial.experiment for trial in trials),
        valid_days=valid_days,
        grace_days=grace_days,
        epoch=files.next_epoch(whole.name, plan.covariates),
        run_id=done.run_id,
        tool_version=__version__,
    )
    return Measurement(baseline, files.save(baseline), trials, done.path)


def _check_complete(done: Execution) -> None:
    outcome = done.outcome
    if not outcome.stop.is_premature:
        return
    where = "" if done.path is None else f" Its trials are kept in {done.path}: go on with resume."
    message = f"no baseline was written: {outcome.message or outcome.stop}.{where}"
    if outcome.stop is StopReason.INTERRUPTED:
        raise RunInterrupted(message)
    raise BaselineError(message)


def observed_criteria(
    plan: Plan, trials: Sequence[Trial], scopes: Mapping[str, CriterionScope]
) -> dict[str, CriterionBaseline]:
    """What was observed of each criterion, as a baseline keeps it."""
    return {
        one.criterion: _count(one, plan, trials, scopes[one.criterion]) for one in plan.criteria
    }


def _count(
    criterion: CriterionPlan, plan: Plan, trials: Sequence[Trial], scope: CriterionScope
) -> CriterionBaseline:
    place = [one.criterion for one in plan.criteria_of(criterion.experiment)].index(
        criterion.criterion
    )
    reasons = Counter(
        trial.outcomes[place].result.reason
        for trial in trials
        if trial.experiment == criterion.experiment
    )
    return CriterionBaseline(
        trials=reasons.total(),
        passed=reasons[None],
        condition=reasons[FailReason.CONDITION],
        transform=reasons[FailReason.TRANSFORM],
        no_value=reasons[FailReason.NO_VALUE],
        structure=scope.structure,
        postconditions=scope.postconditions,
        sampling=scope.sampling,
        sampling_fingerprint=scope.sampling_fingerprint,
    )


def successful_latencies(plan: Plan, trials: Sequence[Trial]) -> dict[str, tuple[float, ...]]:
    """Of the successful trials of each experiment, in ascending order (§12.2)."""
    return {
        experiment.name: tuple(
            sorted(
                trial.latency_s
                for trial in trials
                if trial.experiment == experiment.name
                and trial.passed
                and trial.latency_s is not None
            )
        )
        for experiment in plan.experiments
    }
