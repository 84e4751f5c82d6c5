"""Deciding a stored run again: from its plan and its trials, as a stranger would.

What trials cannot tell is taken as recorded: when the run began, how long it took, what cut it
short. Everything else is derived again and compared, field by field: the rules that the plan
decides by, the order and the seeds of the trials, why each experiment ended, what was spent, every
finding and the verdict.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from trialwise import __version__
from trialwise.engine.criterion_progress import combine_stops, issue_places, trial_seeds
from trialwise.engine.ports import SystemClock
from trialwise.engine.run_state import RunOutcome, RunState
from trialwise.errors import InvalidArgument, RunNotFound
from trialwise.model.codec import to_plain
from trialwise.model.evidence import Spending, StopReason
from trialwise.model.fingerprint import plan_hash
from trialwise.model.plan import CriterionPlan, ExperimentPlan, Plan
from trialwise.model.run import RunRecord
from trialwise.model.trial import NOT_MEASURED
from trialwise.model.trial_table import TrialTable
from trialwise.procedures.families import find_looks
from trialwise.procedures.registry import procedure_of
from trialwise.procedures.run_verdict import decide_run
from trialwise.stats.sequential.design import Method
from trialwise.stores.comparisons import ComparisonStore

#: Two machines may round a sum or a logarithm differently; no decision hangs on the ninth digit.
_NEARLY = 1e-9
#: Money is kept to the nanodollar and times to the microsecond, whatever the order of addition.
_ROUNDED = {"usd": 2e-9, "setup_usd": 2e-9, "judging_usd": 2e-9, "setup_s": 2e-6}
#: Sentences for people: another version may have put them otherwise and decided alike.
WORDING = frozenset(
    {"advice", "alternative", "caveats", "confidence_statement", "multiplicity", "null"}
    | {"statement", "text", "warnings"}
)
#: What versions describe differently beside the same decision: 0.1.0 counted up to it, and
#: added up nominal levels.
_DESCRIPTIONS = frozenset(
    {"counts", "diagnostics", "notes", "ground", "horizon_false_alarm"}
    # Until 0.2.0.dev1 the power was taken at a perfect service.
    | {"log_ratio", "stopped_p_value", "caution"}
    | {"false_compliance_envelope", "false_degradation_envelope"}
    | {"false_rejection_envelope", "false_acceptance_envelope"}
)
#: Intervals of 0.1.0 beside pass@k and pass^k did not move with k. Gates are decided on values.
_GATE_INTERVAL = re.compile(r"verdict\.gates\[.*interval\.")
#: By which a part of a list is named rather than numbered.
_NAMES = ("input_id", "criterion", "constraint", "name")
_ABSENT = object()
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that is not what follows from the plan and the trials."""

    path: str
    """Such as `verdict.findings[answers].tally.passed`."""
    stored: str
    derived: str

    def __str__(self) -> str:
        return f"{self.path}: {self.stored} is stored, {self.derived} follows"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What deciding a run again came to."""

    run_id: str
    contract: str
    trials: int
    tool_version: str
    """That wrote the record."""
    differences: tuple[Difference, ...] = ()
    without_checksum: tuple[str, ...] = ()
    """Files that 0.1.0 wrote. What no trial tells is as stored there, and not checked."""

    @property
    def matches(self) -> bool:
        """Whether the record says what follows from it, and nothing else."""
        return not self.differences


def verify(
    record: RunRecord,
    *,
    known_hash: str | None = None,
    checksums: Mapping[str, bool | None] = MappingProxyType({}),
) -> Verification:
    """Decide a run again and compare, field by field.

    Numbers may differ by rounding. The wording of a record that another version wrote is not
    compared: its decisions and numbers are.

    Args:
        record: The run as it is kept.
        known_hash: What the plan was known by before the first trial, where that is kept apart.
        checksums: By file, whether it has the checksum that it was written with; None where it
            was written without one.

    >>> import trialwise as tw
    >>> contract = tw.Contract(
    ...     "sums", lambda question: "555",
    ...     [tw.Criterion("answers", tw.contains("555"), at_least=0.9)],
    ... )
    >>> record = tw.run(contract, inputs=["What is 15 * 37?"], store=None).record
    >>> verify(record).matches
    True
    """
    differences = [
        *_hash_differences(record, known_hash),
        *_rule_differences(record.plan),
        *_order_differences(record),
    ]
    # What follows from trials of another plan is not worth comparing.
    if not differences:
        differences += _verdict_differences(record)
    # What no trial tells, such as the time of the start, has only the checksum to hold it.
    differences += [
        Difference(f"{name}: checksum", "another", "that of its content")
        for name, holds in checksums.items()
        if holds is False
    ]
    return Verification(
        run_id=record.run_id,
        contract=record.plan.contract,
        trials=len(record.trials),
        tool_version=record.verdict.reproducibility.tool_version,
        differences=tuple(differences),
        without_checksum=tuple(name for name, holds in checksums.items() if holds is None),
    )


def _hash_differences(record: RunRecord, known_hash: str | None) -> Iterator[Difference]:
    derived = plan_hash(record.plan)
    stated = record.verdict.reproducibility.plan_hash or None
    for path, value in (("plan_hash", known_hash), ("verdict.reproducibility.plan_hash", stated)):
        if value is not None and value != derived:
            yield Difference(path, value, derived)


# --- The rules --------------------------------------------------------------------------------


def _rule_differences(plan: Plan) -> Iterator[Difference]:
    """Yield whether each criterion's rule is the one that its threshold and its levels lead to."""
    for criterion in plan.criteria:
        path = f"plan.criteria[{criterion.criterion}]"
        if criterion.judging.looks:
            looks = find_looks(criterion)
            yield from list_differences(f"{path}.looks", list(criterion.judging.looks), list(looks))
        if criterion.counting.stops_early:
            yield from _boundary_differences(path, criterion)
            continue
        derived = procedure_of(criterion).derive_design(criterion)
        if derived is None:
            continue
        yield from list_differences(f"{path}.design", to_plain(criterion.design), to_plain(derived))
        cutoff = getattr(derived, "cutoff", None)
        if criterion.cutoff is not None:
            yield from list_differences(f"{path}.cutoff", criterion.cutoff, cutoff)


def _boundary_differences(path: str, criterion: CriterionPlan) -> Iterator[Difference]:
    """Yield a difference if boundaries do not belong to the criterion or exceed its errors."""
    design = criterion.limits.design
    assert design is not None
    promised = {
        "p0": criterion.threshold.required_rate,
        "p1": criterion.threshold.alternative_rate,
        "alpha": criterion.alpha,
        "beta": criterion.beta,
        "cap": criterion.trials,
    }
    for name, value in promised.items():
        # Both were copied from one number, so that no rounding can part them.
        if getattr(design, name) != value:
            shown = _show_value(getattr(design, name))
            yield Difference(f"{path}.design.{name}", shown, _show_value(value))
    if design.method is Method.WALD:  # whose errors are promised approximately
        return
    at_p0, at_p1 = map(design.operating_characteristic, (design.p0, design.p1))
    for name, error, level in (
        (f"P(FAIL) at {design.p0:g}", at_p0.fails, design.alpha),
        (f"P(PASS) at {design.p1:g}", at_p1.passes, design.beta),
    ):
        if error > level + _NEARLY:
            yield Difference(f"{path}.design", f"{name} of at most {level:g}", f"{error:.6g}")


# --- The trials -------------------------------------------------------------------------------


def _order_differences(record: RunRecord) -> Iterator[Difference]:
    """Yield a difference for each trial that the plan does not issue just so."""
    names = [one.name for one in record.plan.experiments]
    for table in record.trials.tables:
        if table.experiment not in names:
            path = f"trials[{table.experiment} {table[0].index}].experiment"
            yield Difference(path, table.experiment, f"one of {', '.join(names)}")
    try:
        for experiment in record.plan.experiments:
            mine = record.trials.of_experiment(experiment.name)
            yield from _issue_differences(record.plan, experiment, mine)
    except (InvalidArgument, ArithmeticError, AssertionError, LookupError) as error:
        # A plan that was changed by hand may give no order at all.
        why = f"no order of inputs ({type(error).__name__}: {error})"
        yield Difference("plan.experiments", "an order of inputs", why)


def _issue_differences(
    plan: Plan, experiment: ExperimentPlan, trials: TrialTable
) -> Iterator[Difference]:
    criteria = plan.criteria_of(experiment.name)
    places = issue_places(
        experiment, seed=plan.seed, each_input=any(one.counting.each_input for one in criteria)
    )
    seed_of = trial_seeds(plan.seed, experiment.name)
    names = tuple(one.criterion for one in criteria)
    # A trial that was not measured is asked again at the end of the order, once.
    asked_again, fresh = _find_asked_again(trials)
    fresh = min(fresh, len(places))
    positions = {name: place for place, name in enumerate(experiment.input_ids)}
    numbers = [positions.get(name) for name in trials.names]
    held = {one.index for one in trials.held_whole}
    before: int | None = None
    columns = zip(trials.indexes, trials.inputs, trials.seeds, strict=True)
    for place, (index, number, seed) in enumerate(columns):
        # What is as planned in nearly every trial is compared without making the trial.
        is_planned = 0 <= index < len(places) and numbers[number] == places[index]
        if is_planned and index != before and index not in held and seed == seed_of(index):
            before = index
            continue
        trial = trials.sketch(place)
        path = f"trials[{experiment.name} {trial.index}]"
        if not 0 <= trial.index < len(places) + fresh:
            yield Difference(path, str(trial.index), f"an index below {len(places) + fresh}")
            continue
        if trial.index == before:
            yield Difference(path, "twice", "once")
        before = trial.index
        if trial.index < len(places):
            input_id = experiment.input_ids[places[trial.index]]
        else:
            is_known = trial.input_id in asked_again
            input_id = trial.input_id if is_known else "an input asked again"
        expected = (input_id, seed_of(trial.index), names)
        found = (trial.input_id, trial.seed, tuple([one.criterion for one in trial.outcomes]))
        if found != expected:
            named = ("input_id", "seed", "outcomes")
            ours, theirs = (dict(zip(named, one, strict=True)) for one in (found, expected))
            yield from list_differences(path, ours, theirs)


def _find_asked_again(trials: TrialTable) -> tuple[set[str], int]:
    """Return the inputs of the trials that were not measured, and how many trials that were."""
    lost = {way for way, one in enumerate(trials.courses) if one.error_class in NOT_MEASURED}
    if not lost:
        return set(), 0
    ways = zip(trials.inputs, trials.course_column, strict=True)
    found = Counter(number for number, way in ways if way in lost)
    return {trials.names[number] for number in found}, found.total()


# --- The verdict ------------------------------------------------------------------------------


def _verdict_differences(record: RunRecord) -> Iterator[Difference]:
    stored = record.verdict
    outcome = _replay(record)
    reproducibility = replace(
        stored.reproducibility, seed=record.plan.seed, plan_hash=plan_hash(record.plan)
    )
    try:
        derived = decide_run(
            record.plan,
            record.trials,
            stops=outcome.stops,
            stop=outcome.stop,
            spending=outcome.spending,
            run_id=record.run_id,
            started_at=stored.started_at,
            message=stored.aborted,
            covariates_at_end=stored.covariates_at_end,
            reproducibility=reproducibility,
        )
    except (InvalidArgument, ArithmeticError, AssertionError, LookupError) as error:
        # A plan that was changed by hand may ask for what no rule can decide.
        why = f"nothing: the plan cannot be decided ({type(error).__name__}: {error})"
        yield Difference("verdict", _show_value(stored.decision), why)
        return
    same_version = reproducibility.tool_version == __version__
    skipped = frozenset() if same_version else WORDING | _DESCRIPTIONS
    for one in list_differences("verdict", to_plain(stored), to_plain(derived), skipped):
        if same_version or not _GATE_INTERVAL.match(one.path):
            yield one


def _replay(record: RunRecord) -> RunOutcome:
    """Put the stored trials through the run's state again.

    Why an experiment ended follows from its trials where they finish it; what cut it short is taken
    as recorded. The wall time and what was abandoned are in no trial, so they are as recorded, too.
    """
    state = RunState(record.plan, record.trials, clock=SystemClock())
    kept = {one.name: one.stop for one in record.verdict.experiments}
    stops: dict[str, StopReason] = {}
    for one in state.experiments:
        one.peek()  # passes over what no longer needed to be run
        name = one.experiment.name
        stops[name] = one.stop if one.is_finished else kept.get(name, record.verdict.stop)
    outcome = state.outcome()
    return outcome._replace(
        stops=stops,
        stop=combine_stops(stops.values()),
        spending=_spending(record.verdict.spending, outcome.spending),
    )


def _spending(stored: Spending, derived: Spending) -> Spending:
    """Return what the trials took, added up again, with what no trial tells as it was recorded."""
    untold = ("seconds", "abandoned", "abandoned_tokens", "abandoned_usd")
    same = [
        name
        for name, apart in _ROUNDED.items()
        if _is_near(getattr(stored, name), getattr(derived, name), apart)
    ]
    return replace(derived, **{name: getattr(stored, name) for name in (*untold, *same)})


def _is_near(one: float | None, other: float | None, apart: float = 0.0) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=_NEARLY, abs_tol=apart)


# --- Several arms ----------------------------------------------------------------------------


def verify_stored_comparison(name: str | Path, *, store: str | Path = ".trialwise") -> Verification:
    """Compare the runs of a comparison again, and its verdict with the one that is kept.

    The runs are verified by themselves. The wording of another version is not compared.

    Args:
        name: Its name or its folder.
        store: The folder runs are kept in.

    Raises:
        RunNotFound: There is no such comparison, or it has no verdict.
    """
    from trialwise.runtime.answers import load_stored

    stored = ComparisonStore(Path(store)).open(name)
    verdict = stored.verdict()
    if verdict is None:
        raise RunNotFound(f"{stored.path}: the comparison has no verdict: `resume` continues it")
    found = load_stored(stored, Path(store))
    again = found.describe_kept()
    is_old = "edition" not in stored.head.question and stored.head.kind != "exploration"
    skipped = WORDING | {"guarantee", "edition", "obstacle"} if is_old else frozenset[str]()
    skipped |= frozenset() if stored.tool_version == __version__ else WORDING
    differences = [*list_differences("verdict", verdict, again, skipped)]
    differences += [
        Difference(f"{file}: checksum", "another", "that of its content")
        for file, holds in stored.compare_checksums().items()
        if not holds
    ]
    return Verification(
        run_id=stored.comparison_id,
        contract=" / ".join(stored.head.labels),
        trials=sum(len(one.record.trials) for one in found.runs),
        tool_version=stored.tool_version,
        differences=tuple(differences),
    )


# --- Field by field ---------------------------------------------------------------------------


def list_differences(
    path: str, stored: Any, derived: Any, skipped: frozenset[str] = frozenset()
) -> Iterator[Difference]:
    """Yield where plain values differ, field by field.

    Args:
        path: What they are, as a reader would look for it.
        stored: As kept.
        derived: As it follows.
        skipped: Fields that are not compared.
    """
    if isinstance(stored, dict) and isinstance(derived, dict):
        for name in {**stored, **derived}:
            if name not in skipped:
                ours, theirs = stored.get(name, _ABSENT), derived.get(name, _ABSENT)
                yield from list_differences(f"{path}.{name}", ours, theirs, skipped)
    elif isinstance(stored, list) and isinstance(derived, list):
        if len(stored) != len(derived):
            yield Difference(path, f"{len(stored)} items", f"{len(derived)} items")
            return
        for place, (one, other) in enumerate(zip(stored, derived, strict=True)):
            yield from list_differences(f"{path}[{_name(other, place)}]", one, other, skipped)
    elif not _same(stored, derived):
        yield Difference(path, _show_value(stored), _show_value(derived))


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) or isinstance(other, float):
        numbers = isinstance(one, int | float) and isinstance(other, int | float)
        return numbers and _is_near(one, other)
    return bool(one == other)


def _name(part: Any, place: int) -> str:
    if isinstance(part, dict):
        for name in _NAMES:
            if isinstance(part.get(name), str):
                return str(part[name])
    return str(place)


def _show_value(value: Any) -> str:
    if value is _ABSENT:
        return "nothing"
    text = str(value) if isinstance(value, str) else repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
