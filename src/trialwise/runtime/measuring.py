"""Measuring a baseline: every planned trial is run and counted, and nothing is decided."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, Unpack

from anyio import to_thread

from trialwise import __version__
from trialwise.checks.criterion_scopes import scopes_of
from trialwise.errors import BaselineError, RunInterrupted
from trialwise.model import Contract, FailReason, StopReason, Trial
from trialwise.model.baseline import Baseline, CriterionBaseline, GateBaseline
from trialwise.model.criterion import CriterionScope
from trialwise.model.plan import CriterionPlan, Plan
from trialwise.model.run import Trials, list_latencies
from trialwise.procedures.criterion_rows import Rows
from trialwise.procedures.trial_rows import diagnose_rows
from trialwise.runtime.chosen_baselines import measure_gates
from trialwise.runtime.looping import adrive, drive, warn_inside_loop
from trialwise.runtime.preparing import PreparedRun, prepare_run, take_contract
from trialwise.runtime.workspace import OpenRun, RunArguments, Workspace
from trialwise.stores.baselines import BaselineStore

if TYPE_CHECKING:
    from datetime import datetime

    from trialwise.engine.run_state import RunOutcome
    from trialwise.stores.runs import StoredRun


@dataclass(frozen=True, slots=True)
class Measurement:
    """A baseline, where it is kept, and the trials it was counted from."""

    baseline: Baseline
    path: Path
    trials: Sequence[Trial]
    run: Path | None = None
    warnings: tuple[str, ...] = ()
    """Signs that its trials were not independent or not of one kind, each with its criterion."""

    def __repr__(self) -> str:
        counts = "; ".join(self._list_counts())
        return f"<Measurement {self.baseline.contract!r}: {counts}; {self.path}>"

    def show(self, *, stream: TextIO | None = None) -> None:
        """Print what was counted and where it is kept."""
        out = sys.stdout if stream is None else stream
        lines = [f"{self.baseline.contract}: measured", *self._list_counts()]
        out.write("\n  ".join([*lines, f"baseline: {self.path}", *self.warnings]) + "\n")

    def _list_counts(self) -> list[str]:
        return [
            f"{name} {one.passed:,} of {one.trials:,} passed"
            for name, one in self.baseline.criteria.items()
        ]


class MeasureArguments(RunArguments, total=False):
    """The keyword arguments of `measure`."""

    identifier: str | None
    """What to call the baseline; by default the contract and the moment."""
    valid_days: float | None
    """How long it is taken to stay representative; as the contract says by default."""
    grace_days: float
    """How long after that it is still admitted, with a warning."""


def measure(contract: Contract, **arguments: Unpack[MeasureArguments]) -> Measurement:
    """Measure a baseline and write it to a file that people and git can read (companion §1.5).

    Args:
        contract: What to measure; the criteria's thresholds play no part.
        arguments: The fields of `MeasureArguments`, and all that `run` takes; `trials` says how
            large the baseline is.

    Raises:
        BaselineError: The run ended before its plan did, so no baseline was written.
    """
    warn_inside_loop("measure", contract)
    prepared, space, write = _prepare(contract, {**arguments})
    return drive(space.open_run(prepared), write)


async def ameasure(contract: Contract, **arguments: Unpack[MeasureArguments]) -> Measurement:
    """Measure a baseline in the running event loop, as `arun` runs a contract.

    An async service is called in the loop of the caller, so that it can use the caller's clients.
    The arguments are those of `measure`.

    Raises:
        BaselineError: The run ended before its plan did, so no baseline was written.
    """
    prepared, space, write = await to_thread.run_sync(lambda: _prepare(contract, {**arguments}))
    return await adrive(space.open_run(prepared, in_thread=True), write)


def _prepare(
    contract: Contract, given: dict[str, Any]
) -> tuple[PreparedRun, Workspace, Callable[[OpenRun, RunOutcome], Measurement]]:
    """Prepare a measurement; return what to run, where, and what writes its baseline."""
    kept = {name: given.pop(name, None) for name in ("identifier", "valid_days", "grace_days")}
    kept["grace_days"] = kept["grace_days"] or 0.0
    space = Workspace.take(given)
    whole, options = take_contract(contract, given)
    prepared = prepare_run(whole, options, space, measuring=True)
    # Found out before the trials are paid for.
    BaselineStore(space.baselines).check_writable(contract.name)
    # Before the trials: a check with a state of its own may change while they run.
    scopes, validity = scopes_of(whole), whole.validity
    if kept["valid_days"] is None and validity is not None:
        kept["valid_days"] = validity.days
        kept["grace_days"] = kept["grace_days"] or validity.grace_days

    def write(run: OpenRun, outcome: RunOutcome) -> Measurement:
        check_complete(outcome, run.stored)
        return write_baseline(
            run.plan,
            outcome.trials,
            run.stored,
            scopes=scopes,
            baselines=space.baselines,
            created_at=space.clock.now(),
            gates=measure_gates(whole, run.plan, outcome.trials),
            **kept,
        )

    return prepared, space, write


def check_complete(
    outcome: RunOutcome,
    stored: StoredRun | None,
    *,
    resume_with: str = "`trialwise measure --resume`, or in Python `resume=True`,",
) -> None:
    """Refuse a run that ended before its plan did: part of a baseline is not a baseline.

    Args:
        outcome: What came of the run.
        stored: Where its trials are kept, if they are.
        resume_with: How the caller's user resumes a run.

    Raises:
        BaselineError: The run ended early.
        RunInterrupted: Somebody stopped it.
    """
    if not outcome.stop.is_premature:
        return
    where = ""
    if stored is not None:
        where = f" Its trials are kept in {stored.path}; {resume_with} continues."
    message = f"no baseline was written: {outcome.message or outcome.stop}.{where}"
    # Ctrl-C is no error of the measurement, and callers tell the two apart.
    if outcome.stop is StopReason.INTERRUPTED:
        raise RunInterrupted(message)
    raise BaselineError(message)


def write_baseline(
    plan: Plan,
    trials: Trials,
    stored: StoredRun | None = None,
    *,
    scopes: Mapping[str, CriterionScope],
    baselines: Path,
    created_at: datetime,
    identifier: str | None = None,
    valid_days: float | None = None,
    grace_days: float = 0.0,
    gates: Mapping[str, GateBaseline] | None = None,
) -> Measurement:
    """Count trials into a baseline and write its file.

    A run has one baseline: one that was killed after it was written and is resumed gets the same.

    Args:
        plan: What was run.
        trials: All of its trials.
        stored: Where they are kept, if they are.
        scopes: What each criterion was asked of, as of before the first trial.
        baselines: The folder that baselines are kept in.
        created_at: When the measurement ended.
        identifier: By default the contract and the moment.
        valid_days: How long it is taken to stay representative.
        grace_days: How long after that it is still admitted, with a warning.
        gates: The numbers of its gates.
    """
    files = BaselineStore(baselines)
    # What a run would say of the same trials: that they drift, or depend on each other.
    warnings = tuple(
        f"{one.criterion}: {said}"
        for one in plan.criteria
        for said in diagnose_rows(pick_rows(one, plan, trials)[1]).warnings
    )
    path = None if stored is None else stored.path
    run_id = "" if stored is None else stored.run_id
    for file, known in files.all(plan.contract):
        if run_id and known.run_id == run_id and identifier in (None, known.identifier):
            return Measurement(known, file, tuple(trials), path, warnings)
    baseline = Baseline(
        identifier=identifier or _name_baseline(files, plan.contract, created_at),
        contract=plan.contract,
        created_at=created_at,
        criteria={
            one.criterion: _count(one, plan, trials, scopes[one.criterion]) for one in plan.criteria
        },
        covariates=plan.covariates,
        factors=plan.factors,
        claim=plan.claim,
        # A failure may be quick because nothing was done, so that only successes count (§12.2).
        latencies_s={
            one.name: tuple(list_latencies(trials.of_experiment(one.name), plan.reported))
            for one in plan.experiments
        },
        run_trials={one.experiment: len(one) for one in trials.tables},
        valid_days=valid_days,
        grace_days=grace_days,
        epoch=files.next_epoch(plan.contract, plan.covariates),
        run_id=run_id,
        tool_version=__version__,
        gates=gates or {},
    )
    return Measurement(baseline, files.save(baseline), trials, path, warnings)


def _name_baseline(files: BaselineStore, contract: str, created_at: datetime) -> str:
    """Name the contract and the moment; with a number where one second saw several."""
    stem = f"{contract}@{created_at:%Y-%m-%dT%H-%M-%S}"
    known = {baseline.identifier for _, baseline in files.all(contract)}
    further = (f"{stem}-{number}" for number in count(2))
    return next(name for name in chain([stem], further) if name not in known)


def pick_rows(criterion: CriterionPlan, plan: Plan, trials: Trials) -> tuple[Rows, Rows]:
    """Return all trials of a criterion, and those that count.

    What is not measured is no failure: the run that is compared leaves it out as well.
    """
    mine = trials.of_experiment(criterion.experiment)
    every = Rows.of(mine, mine.criteria.index(criterion.criterion))
    analysis = plan.analysis_of(criterion)
    return every, every.keep(lambda row: not row.is_left_out(analysis))


def _count(
    criterion: CriterionPlan, plan: Plan, trials: Trials, scope: CriterionScope
) -> CriterionBaseline:
    experiment = plan.experiment_of(criterion)
    first = dict(zip(experiment.input_ids, experiment.find_units(), strict=True))
    every, rows = pick_rows(criterion, plan, trials)
    if not rows:
        raise BaselineError(f"no baseline was written: no trial of {criterion.criterion} counts")
    tried: Counter[int] = Counter()
    for name, (_, times) in rows.tally_inputs().items():
        tried[first[name]] += times
    reasons: Counter[FailReason | None] = Counter()
    for row, times in rows.kinds:
        reasons[row.sign.reason] += times
    return CriterionBaseline(
        trials=reasons.total(),
        passed=reasons[None],
        condition=reasons[FailReason.CONDITION],
        # A check that raised has not reached its condition either.
        transform=reasons[FailReason.TRANSFORM] + reasons[FailReason.RAISED],
        no_value=reasons[FailReason.NO_VALUE] + reasons[FailReason.UNKNOWN],
        **asdict(scope),
        inputs=len(tried),
        repetitions=max(tried.values()),
        analysis=str(plan.analysis_of(criterion)),
        # Where there are none, every analysis counts the same trials and may use this baseline.
        excused=every.count(lambda row: row.is_excused),
    )
