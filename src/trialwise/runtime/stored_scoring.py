"""Replies of a stored run are checked again, by the checks of today: the service is not called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from pathlib import Path

from trialwise.engine.excerpts import Excerpts
from trialwise.errors import DesignRefused, RunNotFound
from trialwise.model.claim import PopulationClaim
from trialwise.model.contract import Contract
from trialwise.model.criterion import Criterion
from trialwise.model.evidence import StopReason
from trialwise.model.options import RunOptions
from trialwise.model.trial import NOT_MEASURED, Analysis, Trial, measured_errors
from trialwise.runtime.result import Result
from trialwise.runtime.trace_scoring import Answers, ScoredTraces, run_answers
from trialwise.runtime.workspace import Workspace
from trialwise.services.replay import KeptAnswer, read_answer
from trialwise.stores.run_journals import read_set_aside
from trialwise.stores.runs import RunStore, StoredRun


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
    space = Workspace.open(store, baselines, progress=False, redact=redact)
    return score_stored(contract, stored, options or RunOptions(), space).result


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
    name, notes = stored.run_id, []
    kept = _read_kept(stored)
    analyses = {one.analysis or options.analysis for one in contract.criteria}
    counts_all = analyses == {Analysis.INTENT_TO_TREAT}
    used = [one for one in kept if counts_all or one[0].error_class not in NOT_MEASURED]
    if len(used) < len(kept):
        lost = len(kept) - len(used)
        notes.append(f"{lost} trials of {name} never reached the service and are left out")
    if _could_stop(stored):
        _refuse_undecidable(contract, options)
        contract = contract.with_criteria([*map(_decide_any_time, contract.criteria)])
        notes.append(
            f"the number of trials of {name} was not fixed: it could stop early, or was stopped. "
            "Rates are decided by an interval that is valid at any stopping time"
        )
    answers = _match_inputs(contract, stored, used, space.redact)
    result = run_answers(
        contract,
        answers,
        replace(options, seed=stored.plan.seed),
        replace(space, scored=name),
        caveats=[f"These are the replies of {name}, checked again."],
    )
    return ScoredTraces(result, tuple(notes))


def _read_kept(stored: StoredRun) -> list[tuple[Trial, KeptAnswer]]:
    """Read what came back in every trial of a run, in the order of inputs.

    Raises:
        RunNotFound: Nothing is kept that could be checked.
    """
    trials = [*stored.trials(), *read_set_aside(stored.path, stored.plan)]
    by_place = {(one.experiment, one.index): one for one in reversed(trials)}
    found = [by_place[place] for place in sorted(by_place)]
    kept = [(one, answer) for one in found if (answer := read_answer(one)) is not None]
    why = ""
    if not stored.keeps_replies:
        why = "was made by an earlier version, which cut replies and kept them for people to read"
    elif len(kept) < len(found):
        lost = f"has {len(found) - len(kept)} replies of {len(found)} that are not kept whole"
        why = f"{lost}: JSON cannot hold them, or `keep_inputs: false` forbids it"
    elif not kept:
        why = "has no trial yet"
    if why:
        raise RunNotFound(f"{stored.run_id} cannot be scored: it {why}")
    return kept


def _could_stop(stored: StoredRun) -> bool:
    """Return whether the number of a run's trials may depend on what its checks said."""
    stops = any(
        one.counting.stops_early
        or one.judging.looks
        or one.counting.curtailed
        or one.counting.each_input
        for one in stored.plan.criteria
        if not one.counting.rides_along
    )
    if stops or not (stored.path / "record.json").exists():
        return True
    return any(one.stop is not StopReason.COMPLETE for one in stored.verdict().experiments)


def _refuse_undecidable(contract: Contract, options: RunOptions) -> None:
    """Refuse what has no rule that is valid at any stopping time."""
    claim = contract.claim
    asked = {
        "latency": contract.latency is not None,
        "claim": claim.estimator is not None or claim.population != PopulationClaim.FIXED_INPUTS,
        "correction": options.correction != "none",
        **{one.name: not _is_decidable(one) for one in contract.criteria},
    }
    if refused := ", ".join(name for name in asked if asked[name]):
        why = (
            "the run could stop early, or was stopped. Only `at_least` over all inputs and "
            "`never_fails` can be decided on its replies, without `latency`, `correction` or a "
            f"judge whose errors are known: {refused}"
        )
        raise DesignRefused((why,))


def _is_decidable(criterion: Criterion) -> bool:
    if criterion.never_fails or criterion.report_only:
        return True
    is_rate = criterion.at_least is not None and not criterion.each_input
    return is_rate and measured_errors(criterion.checks) is None


def _decide_any_time(criterion: Criterion) -> Criterion:
    if criterion.never_fails or criterion.report_only:
        return replace(criterion, each_input=False)
    return replace(criterion, procedure="ANYTIME")


def _match_inputs(
    contract: Contract,
    stored: StoredRun,
    used: list[tuple[Trial, KeptAnswer]],
    redact: Callable[[str], str] | None,
) -> Answers:
    """Return the answers by sampling and input.

    Raises:
        RunNotFound: An input is not there any more, or says something else now.
    """
    texts, excerpts = stored.texts(), Excerpts(reply_limit=0, redact=redact)
    known = {
        (name, one.id): one for name, each in contract.samplings.items() for one in each.inputs
    }
    found: Answers = {}
    for trial, answer in used:
        place = trial.experiment, trial.input_id
        given, asked = known.get(place), texts.find_input(trial)
        if given is None or (asked and asked.value != excerpts.value(given.value)):
            raise RunNotFound(
                f"the input {trial.input_id!r} of {contract.name} is not the one that "
                f"{stored.run_id} has asked: its replies answer something else"
            )
        found.setdefault(place, []).append(answer)
    return found
