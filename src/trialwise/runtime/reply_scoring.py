"""Decides answers that are there already: stored sessions of an agent, and replies of a stored run.

Nothing is called. Each answer is one trial, and the design is fixed at their number. Which input a
session belongs to is told by what its user said, or by the name of its file or folder; all sessions
count, in the order of their files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from trialwise.engine.criterion_progress import issue_places, trial_seeds
from trialwise.engine.excerpts import Excerpts
from trialwise.errors import DesignRefused, InvalidArgument, RunNotFound
from trialwise.model import Contract, Criterion, Plan, RunOptions, StopReason, Trace
from trialwise.model.claim import Input, PopulationClaim, Sampling
from trialwise.model.trial import NOT_MEASURED, Analysis, Trial, measured_errors
from trialwise.runtime.preparing import prepare_run
from trialwise.runtime.result import Result
from trialwise.runtime.running import run_prepared
from trialwise.runtime.workspace import Workspace
from trialwise.services.replay import KeptAnswer, KeptReplies, read_answer
from trialwise.stores.run_journals import read_set_aside
from trialwise.stores.runs import RunStore, StoredRun
from trialwise.traces.trace_documents import TraceError, read_traces

Answers: TypeAlias = dict[tuple[str, str], list[KeptAnswer]]
"""What came back, by the sampling and the input, in the order of the trials."""
#: The input of traces that do not tell theirs.
_UNKNOWN = "unknown"
#: What may follow the name of an input in the name of a file.
_SEPARATORS = (".", "-", "_")


@dataclass(frozen=True, slots=True)
class StoredTrace:
    """A session and the file that holds it."""

    trace: Trace
    file: Path

    @property
    def asked(self) -> str | None:
        """What its user said first; None where it does not tell."""
        return next((one.content for one in self.trace.turns if one.role == "user"), None)


@dataclass(frozen=True, slots=True)
class ScoredTraces:
    """A verdict on stored sessions, or on stored replies."""

    result: Result
    notes: tuple[str, ...] = ()
    """What a reader must know of how they were read."""


def read_stored(files: Iterable[Path], format_: str | None = None) -> list[StoredTrace]:
    """Read the traces of files, in the order of the files.

    Args:
        files: The files; one may hold several traces.
        format_: A name of `TraceFormat`; by default the shape of each document tells.

    Raises:
        TraceError: A file holds no trace.
    """
    found: list[StoredTrace] = []
    for file in files:
        try:
            found += [StoredTrace(trace, file) for trace in read_traces(file, format_)]
        except TraceError as error:
            raise TraceError(f"{file}: {error}") from None
    return found


def score_traces(
    contract: Contract,
    stored: Sequence[StoredTrace],
    *,
    options: RunOptions | None = None,
    baselines: str | Path = "baselines",
) -> ScoredTraces:
    """Decide traces by the criteria and the gates of a contract.

    Args:
        contract: The contract, whose service is not called.
        stored: The traces.
        options: How the contract would be run; the number of trials is that of the traces.
        baselines: The folder baselines are kept in.

    Raises:
        DesignRefused: So many traces cannot support what is claimed.
    """
    if not stored:
        raise InvalidArgument("traces", [], "hold at least one trace")
    if len(contract.samplings) > 1:
        named = ", ".join(contract.samplings)
        raise InvalidArgument("contract", contract.name, f"have one sampling, not {named}")
    _check_latencies(contract, stored)
    sampling = next(iter(contract.samplings.values()), None)
    known = () if sampling is None else sampling.inputs
    inputs, traces = _group_by_input(known, stored)
    _check_asked(contract, known, inputs)
    tried = tuple(inputs)
    sampling = Sampling(inputs=tried) if sampling is None else replace(sampling, inputs=tried)
    (experiment,) = contract.with_inputs(sampling).samplings
    result = run_answers(
        contract.with_inputs(sampling),
        {
            (experiment, name): [KeptAnswer(one.trace.to_reply()) for one in mine]
            for name, mine in traces.items()
        },
        options or RunOptions(),
        Workspace.open(None, baselines, progress=False),
    )
    return ScoredTraces(result, tuple(_list_notes(known, inputs)))


def run_answers(
    contract: Contract,
    answers: Answers,
    options: RunOptions,
    space: Workspace,
    *,
    caveats: Sequence[str] = (),
) -> Result:
    """Decide a contract on answers; the design is fixed at their number.

    Args:
        contract: The contract, whose service is not called.
        answers: Each is one trial.
        options: How the contract would be run.
        space: Where the run is kept.
        caveats: What every criterion has to say of the answers.

    Raises:
        DesignRefused: So many answers cannot support what is claimed.
    """
    samplings = {
        name: replace(
            sampling,
            inputs=tuple(
                replace(one, repetitions=len(answers[name, one.id]))
                for one in sampling.inputs
                if (name, one.id) in answers
            ),
        )
        for name, sampling in contract.samplings.items()
        if any(name == asked for asked, _ in answers)
    }
    whole = replace(
        contract,
        criteria=[
            # There are as many answers as there are, whatever a criterion asks for.
            replace(one, trials=None, max_trials=None)
            for one in contract.criteria
            if contract.experiment_of(one) in samplings
        ],
        sampling=samplings if len(samplings) > 1 else next(iter(samplings.values())),
        before_each=None,
    )
    # Where each input is decided, all have as many trials as the one with the fewest answers.
    each = {whole.experiment_of(one) for one in whole.criteria if one.each_input}
    counts = {name: [one.repetitions for one in mine.inputs] for name, mine in samplings.items()}
    sizes = {name: min(mine) if name in each else sum(mine) for name, mine in counts.items()}
    prepared = prepare_run(whole, options.without_calls(trials=sizes), space)
    plan = replace(
        prepared.plan,
        criteria=tuple(
            replace(one, caveats=(*one.caveats, *caveats)) for one in prepared.plan.criteria
        ),
    )
    service = KeptReplies(None, dict(_assign_answers(plan, answers)))
    prepared = prepared._replace(plan=plan, contract=whole.with_service(service))
    return run_prepared(prepared, space)


def _assign_answers(plan: Plan, answers: Answers) -> Iterator[tuple[tuple[int, int], KeptAnswer]]:
    """Yield the index and the seed of each planned trial with the next answer to its input."""
    left = {place: iter(mine) for place, mine in answers.items()}
    for one in plan.experiments:
        each = any(criterion.counting.each_input for criterion in plan.criteria_of(one.name))
        seed_of = trial_seeds(plan.seed, one.name)
        for index, place in enumerate(issue_places(one, seed=plan.seed, each_input=each)):
            yield (index, seed_of(index)), next(left[one.name, one.input_ids[place]])


def _group_by_input(
    inputs: Sequence[Input], stored: Sequence[StoredTrace]
) -> tuple[list[Input], dict[str, list[StoredTrace]]]:
    """Return the inputs that have traces, in their order, and the traces of each by its id."""
    known = {one.id: one for one in inputs}
    found: dict[str, list[StoredTrace]] = {name: [] for name in known}
    for one in stored:
        name = _find_input(inputs, one)
        if name is None:
            name = one.asked or _UNKNOWN
            known.setdefault(name, Input(id=name, value=one.asked))
        found.setdefault(name, []).append(one)
    tried = {name: traces for name, traces in found.items() if traces}
    return [known[name] for name in tried], tried


def _find_input(inputs: Sequence[Input], stored: StoredTrace) -> str | None:
    asked = stored.asked
    if asked is not None:
        for one in inputs:
            if one.value == asked:
                return one.id
    names = (stored.file.parent.name, stored.file.stem)
    fitting = [
        one.id
        for one in inputs
        if one.id in names or stored.file.stem.startswith(tuple(one.id + s for s in _SEPARATORS))
    ]
    if fitting:
        return max(fitting, key=len)
    return inputs[0].id if len(inputs) == 1 else None


def _check_asked(contract: Contract, known: Sequence[Input], tried: Sequence[Input]) -> None:
    """Refuse to score if an input has no trace and a criterion needs every input."""
    missing = {one.id for one in known} - {one.id for one in tried}
    never = [one.name for one in contract.criteria if one.never_fails]
    if missing and never:
        allowed = f"hold one of each input, since {never[0]!r} asks every input: there is none of "
        raise InvalidArgument("traces", f"{len(tried)} inputs", allowed + _name_some(missing))


def _name_some(names: Iterable[str]) -> str:
    """Name at most ten inputs."""
    listed = sorted(names)
    return ", ".join(listed[:10]) + (f" and {len(listed) - 10} more" if listed[10:] else "")


def _check_latencies(contract: Contract, stored: Sequence[StoredTrace]) -> None:
    """Refuse a limit on time if a trace has no duration, since 0 s would pass."""
    untimed = [one for one in stored if one.trace.duration_s is None]
    asking = [one.name for one in contract.criteria if any(map(_limits_latency, one.checks))]
    # A missing duration reads as 0 s, which is below every limit.
    if untimed and (asking or contract.latency is not None):
        what = f"the criterion {asking[0]!r}" if asking else "`latency`"
        allowed = f"tell how long the session took, which {what} limits"
        raise InvalidArgument("trace", str(untimed[0].file), allowed)


def _limits_latency(check: object) -> bool:
    if getattr(check, "spelling", None) == "max_latency":
        return True
    if isinstance(check, list | tuple):
        return any(map(_limits_latency, check))
    if not is_dataclass(check) or isinstance(check, type):
        return False
    return any(_limits_latency(getattr(check, one.name, None)) for one in fields(check))


def _list_notes(known: Sequence[Input], tried: Sequence[Input]) -> Iterator[str]:
    found = {one.id for one in tried}
    missing = [one.id for one in known if one.id not in found]
    if missing:
        yield f"{len(missing)} of {len(known)} inputs have no trace: {_name_some(missing)}"
    others = found - {one.id for one in known}
    if others and known:
        yield f"not among the inputs, and so inputs of their own: {_name_some(others)}"


# Replies of a stored run are checked again, by the checks of today: the service is not called.


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
    # A bound for a fixed number of trials errs more often than its alpha where the outcomes chose
    # the number; a confidence sequence holds at every number (Howard et al. 2021).
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
        # A reply answers the words that were sent, whatever the name of the input.
        if given is None or (asked and asked.value != excerpts.value(given.value)):
            raise RunNotFound(
                f"the input {trial.input_id!r} of {contract.name} is not the one that "
                f"{stored.run_id} has asked: its replies answer something else"
            )
        found.setdefault(place, []).append(answer)
    return found
