"""From rows to trials: which outcomes belong to one call, which are missing, and their numbers.

Criteria whose inputs overlap are outcomes of the same trials. Where one of them says nothing of a
trial, that is a failure without a value: rows that are left out are more often the bad ones.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from itertools import groupby
from random import Random
from typing import Any

from trialwise.errors import InvalidArgument
from trialwise.model.claim import PopulationClaim
from trialwise.model.codec import to_plain
from trialwise.model.metrics import PassK
from trialwise.model.plan import join_linked
from trialwise.model.trial import CheckResult, ErrorClass, FailReason, Outcome, Trial
from trialwise.outcomes.outcome_rows import OutcomeRow, Outcomes, Problems
from trialwise.procedures.metrics import Intervals, usual_ks
from trialwise.stats.latency_percentiles import LatencySummary, latency_summary
from trialwise.stats.rate_intervals import clopper_pearson, wilson_interval
from trialwise.stats.result_types import Interval, Rule, Undefined
from trialwise.stats.run_reliability import ReliabilitySummary, summarize
from trialwise.validation import require_count

_OK = CheckResult.ok()
_ABSENT = "the file holds no outcome of this criterion for this trial"

#: An order that is this unlikely by chance counts as sorted.
_BY_CHANCE = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRows:
    """The rows of one trial: one for every criterion of its experiment."""

    input_id: str
    rows: tuple[OutcomeRow, ...]
    """In the order of the experiment's criteria."""

    def trial(self, experiment: str, index: int, text: Callable[[str], str]) -> Trial:
        """Build the trial that is decided.

        Args:
            experiment: The experiment's name.
            index: Its place in the order of inputs.
            text: How a text is kept: shortened, and without secrets.
        """
        error_class = self._error_class()
        return Trial(
            experiment=experiment,
            index=index,
            input_id=self.input_id,
            # Nobody knows the seeds of trials that were made elsewhere, and nothing needs them.
            seed=0,
            outcomes=tuple(_outcome(row, error_class, text) for row in self.rows),
            error_class=error_class,
            error=text(next((row.error for row in self.rows if row.error), "")),
            latency_s=self.find("latency_s"),
            usage=self.find("usage"),
            cost_usd=self.find("cost_usd"),
            attempts=self.rows[0].attempts,
        )

    def find(self, field: str) -> Any:
        """Return what the first row that says something of the call says of it."""
        values = (getattr(row, field) for row in self.rows)
        return next((value for value in values if value is not None), None)

    def _error_class(self) -> ErrorClass:
        """Return the error that broke the trial; none if a criterion has a result."""
        if any(row.reason is not FailReason.NO_VALUE for row in self.rows):
            return ErrorClass.NONE
        classes = (row.error_class for row in self.rows)
        return next((one for one in classes if one is not ErrorClass.NONE), ErrorClass.NONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """The trials that some criteria share, in the file's order."""

    name: str
    criteria: tuple[str, ...]
    inputs: tuple[str, ...]
    trials: tuple[TrialRows, ...]
    missing: Mapping[str, int] = field(default_factory=dict)
    """Trials without a row of this criterion, while other criteria have one."""

    def indexes(self, *, each_input: bool) -> Iterator[int]:
        """Yield the place of each trial in the order of inputs.

        Where each input is decided on its own, trials are started in blocks that hold every input
        once; an input with fewer trials than another leaves its places empty.
        """
        if not each_input:
            yield from range(len(self.trials))
            return
        position = {name: place for place, name in enumerate(self.inputs)}
        block: Counter[str] = Counter()
        for trial in self.trials:
            yield block[trial.input_id] * len(self.inputs) + position[trial.input_id]
            block[trial.input_id] += 1

    def count_trials_by_input(self) -> Counter[str]:
        """Count the trials of each input."""
        return Counter(trial.input_id for trial in self.trials)


def gather(outcomes: Outcomes, names: Sequence[str] = ()) -> list[Experiment]:
    """Gather the rows of a file into trials, and trials into experiments.

    Args:
        outcomes: All rows: what one criterion says of a trial shows that another is missing.
        names: The criteria that are asked about, in their order; by default all.

    >>> rows = [
    ...     OutcomeRow(input_id="q1", criterion="polite", passed=True),
    ...     OutcomeRow(input_id="q1", criterion="grounded", passed=False),
    ...     OutcomeRow(input_id="q1", criterion="polite", passed=True),
    ... ]
    >>> [experiment] = gather(Outcomes(rows=tuple(rows), name="sums"))
    >>> [[row.passed for row in trial.rows] for trial in experiment.trials]
    [[True, False], [True, False]]

    Raises:
        OutcomesUnreadable: A trial has two outcomes of one criterion.
    """
    trials: dict[tuple[str, ...], list[dict[str, OutcomeRow]]] = {}
    shared = _sharing(outcomes)
    of_criterion = {name: trials.setdefault(names, []) for names in shared for name in names}
    for rows in _by_trial(outcomes):
        of_criterion[next(iter(rows))].append(rows)
    found = []
    for sharing, mine in trials.items():
        first, *others = sharing
        label = f"{first} and {len(others)} more" if others else first
        if kept := tuple(name for name in names or sharing if name in sharing):
            found.append(_experiment(label if len(trials) > 1 else "outcomes", kept, mine))
    return found


def _experiment(
    label: str, criteria: tuple[str, ...], trials: Sequence[dict[str, OutcomeRow]]
) -> Experiment:
    gathered = []
    missing: Counter[str] = Counter()
    for rows in trials:
        some = next(iter(rows.values()))
        missing.update(name for name in criteria if name not in rows)
        complete = tuple(rows.get(name) or _missing(name, some) for name in criteria)
        gathered.append(TrialRows(input_id=some.input_id, rows=complete))
    return Experiment(
        name=label,
        criteria=criteria,
        inputs=tuple(dict.fromkeys(trial.input_id for trial in gathered)),
        trials=tuple(gathered),
        missing=missing,
    )


def _by_trial(outcomes: Outcomes) -> list[dict[str, OutcomeRow]]:
    """Group rows by trial, in order of appearance."""
    problems = Problems(outcomes.source or outcomes.name)
    trials: dict[tuple[str, str, str | int], dict[str, OutcomeRow]] = {}
    seen: Counter[tuple[str, str, str]] = Counter()
    for row in outcomes.rows:
        place: str | int | None = row.trial
        if place is None:
            place = seen[row.group, row.input_id, row.criterion]
            seen[row.group, row.input_id, row.criterion] += 1
        rows = trials.setdefault((row.group, row.input_id, place), {})
        if row.criterion in rows:
            problems.add(
                row.where,
                f"trial {place} of {row.input_id!r} has an outcome of {row.criterion!r} already "
                f"({rows[row.criterion].where})",
            )
        rows[row.criterion] = row
    problems.check()
    return list(trials.values())


def _sharing(outcomes: Outcomes) -> list[tuple[str, ...]]:
    """Find criteria that share trials: those of one group with a common input."""
    numbers = {name: number for number, name in enumerate(outcomes.criteria)}
    first: dict[tuple[str, str], int] = {}
    links = (
        (number, first.setdefault((row.group, row.input_id), number))
        for row in outcomes.rows
        for number in (numbers[row.criterion],)
    )
    shared: dict[int, list[str]] = {}
    for name, unit in zip(numbers, join_linked(len(numbers), links), strict=True):
        shared.setdefault(unit, []).append(name)
    return [tuple(names) for names in shared.values()]


def _missing(criterion: str, other: OutcomeRow) -> OutcomeRow:
    return replace(
        other,
        criterion=criterion,
        passed=False,
        reason=FailReason.NO_VALUE,
        score=None,
        explanation=_ABSENT,
        evidence="",
        error="",
        error_class=ErrorClass.NONE,
    )


def _outcome(row: OutcomeRow, error_class: ErrorClass, text: Callable[[str], str]) -> Outcome:
    result = _OK if row.score is None else CheckResult(passed=True, score=row.score)
    if not row.passed:
        assert row.reason is not None
        result = CheckResult.fail(
            text(row.explanation), evidence=text(row.evidence), reason=row.reason, score=row.score
        )
    return Outcome(criterion=row.criterion, result=result, error_class=error_class)


class Order(StrEnum):
    """What is known about the order in which trials were started."""

    UNKNOWN = "unknown"
    """Nothing is known: a report may be sorted in any way."""
    FILE = "file"
    """The file lists the trials in the order in which they were started."""
    TIME = "time"
    """Every row says when its trial began."""


def in_order(experiment: Experiment, order: Order, seed: int) -> Experiment:
    """Return the experiment with its trials in the order in which they were started.

    Where that is not known, a random one stands for it: the signs of dependence and drift that
    are looked for in it can then only appear by chance, while a file sorted by input would show
    them whenever inputs differ.

    Args:
        experiment: In the file's order.
        order: What is known.
        seed: The seed of the random order.
    """
    if order is Order.FILE:
        return experiment
    if order is Order.UNKNOWN:
        shuffled = [*experiment.trials]
        Random(f"outcomes/{seed}/{experiment.name}").shuffle(shuffled)
    else:
        shuffled = sorted(experiment.trials, key=_began)
    return replace(experiment, trials=tuple(shuffled))


def is_sorted_by_input(trials: Sequence[TrialRows]) -> bool:
    """Return whether all trials of an input stand together, and chance would hardly put them so.

    J inputs of n₁ … n_J trials stand together in J! ∏ nᵢ! of the n! orders.
    """
    runs = [len(list(same)) for _, same in groupby(trials, key=lambda trial: trial.input_id)]
    if len(runs) > len({trial.input_id for trial in trials}):
        return False
    # In logarithms: n! of a few hundred trials exceeds every double.
    together = math.lgamma(len(runs) + 1) + sum(math.lgamma(run + 1) for run in runs)
    return together - math.lgamma(len(trials) + 1) < math.log(_BY_CHANCE)


def _began(trial: TrialRows) -> float:
    began: float | None = trial.find("order")
    if began is None:
        where = trial.rows[0].where
        allowed = f"go with rows that say when they began: {where} of {trial.input_id!r} does not"
        raise InvalidArgument("order", str(Order.TIME), allowed)
    return began


# Numbers beside a verdict: the counts of every input, pass@k and pass^k, and repeated trials.
#
# They describe all outcomes of a file and decide nothing.


@dataclass(frozen=True, slots=True, kw_only=True)
class InputMetrics:
    """The trials of one input."""

    input_id: str
    trials: int
    passed: int
    rate: float
    interval: Interval
    """A two-sided interval for the rate of this input."""
    flaky: bool
    """Whether it both passed and failed."""
    errors: Mapping[str, int] = field(default_factory=dict)
    reliability: ReliabilitySummary | Undefined
    """Numbers from the order of its passes and failures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionMetrics:
    """One criterion over all inputs."""

    criterion: str
    trials: int
    passed: int
    rate: float
    inputs: tuple[InputMetrics, ...]
    pass_k: tuple[PassK, ...]
    latency: LatencySummary | Undefined
    """The latencies of the trials that passed."""

    @property
    def flaky(self) -> tuple[str, ...]:
        """The inputs that both passed and failed."""
        return tuple(one.input_id for one in self.inputs if one.flaky)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """The metrics of every criterion."""

    criteria: tuple[CriterionMetrics, ...]
    confidence: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; an undefined number is replaced by its reason."""
        plain: dict[str, Any] = to_plain(self)
        return plain


def metrics_of(
    experiments: Sequence[Experiment],
    *,
    ks: Sequence[int] | None = None,
    confidence: float = 0.95,
    rule: Rule = "exact",
    order: Order = Order.UNKNOWN,
) -> Metrics:
    """Compute the metrics of experiments.

    Args:
        experiments: In the order of inputs, as far as it is known.
        ks: For pass@k and pass^k; by default powers of two, up to the fewest trials of an input.
        confidence: The confidence of every interval.
        rule: Whether the interval of an input is Wilson's or exact.
        order: What is known of the order.
    """
    asked = None if ks is None else [require_count("k", k, minimum=1) for k in ks]
    make = wilson_interval if rule == "wilson" else clopper_pearson
    criteria = []
    for experiment in experiments:
        for place, criterion in enumerate(experiment.criteria):
            rows = [trial.rows[place] for trial in experiment.trials]
            by_input: dict[str, list[OutcomeRow]] = {name: [] for name in experiment.inputs}
            for row in rows:
                by_input[row.input_id].append(row)
            inputs = [
                _measure_input(name, mine, partial(make, confidence=confidence), order)
                for name, mine in by_input.items()
            ]
            criteria.append(_measure_criterion(criterion, rows, inputs, asked, confidence))
    return Metrics(criteria=tuple(criteria), confidence=confidence)


def _measure_criterion(
    name: str,
    rows: Sequence[OutcomeRow],
    inputs: Sequence[InputMetrics],
    ks: Sequence[int] | None,
    confidence: float,
) -> CriterionMetrics:
    passed = sum(row.passed for row in rows)
    latencies = [row.latency_s for row in rows if row.passed and row.latency_s is not None]
    tasks = [(one.trials, one.passed) for one in inputs]
    known = ks or usual_ks(min(one.trials for one in inputs))
    untimed = Undefined("no trial that passed has a latency")
    return CriterionMetrics(
        criterion=name,
        trials=len(rows),
        passed=passed,
        rate=passed / len(rows),
        inputs=tuple(inputs),
        # A file does not say how its inputs were chosen, so they count as a sample.
        pass_k=tuple(
            Intervals(PopulationClaim.SUPERPOPULATION, confidence).pass_k(tasks, k) for k in known
        ),
        latency=latency_summary(latencies) if latencies else untimed,
    )


def _measure_input(
    name: str, rows: Sequence[OutcomeRow], make: Callable[[int, int], Interval], order: Order
) -> InputMetrics:
    trials, passed = len(rows), sum(row.passed for row in rows)
    reliability: ReliabilitySummary | Undefined
    if trials == 1:
        reliability = Undefined("one trial shows nothing of repetition")
    elif order is Order.UNKNOWN:
        # A random order stands for it, and runs of passes in that say nothing of the service.
        reliability = Undefined("the order of the trials is not known")
    else:
        reliability = summarize([row.passed for row in rows])
    return InputMetrics(
        input_id=name,
        trials=trials,
        passed=passed,
        rate=passed / trials,
        interval=make(passed, trials),
        flaky=0 < passed < trials,
        errors=Counter(str(one.error_class) for one in rows if one.error_class != ErrorClass.NONE),
        reliability=reliability,
    )
