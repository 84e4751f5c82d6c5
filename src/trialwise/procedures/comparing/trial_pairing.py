"""Which trial of one run belongs to which of the other: one input, one repetition.

Its own module because the pairing decides which test is valid. A number of trials that was settled
before the first makes pairs of one input and repetition whatever the two orders were. Where a run
stopped because of what it saw, only a common order leaves something to decide by: then the
beginning that both have is a sequence whose end looked at nothing but its past.

What the pairs took, in time, money and tokens, is described with an interval and never decided. The
interval is for the median of the differences within pairs, by the order statistics that the
binomial at one half gives: it needs no shape of the latencies, whose tails no mean survives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from trialwise.decimals import as_written
from trialwise.model.evidence import StopReason
from trialwise.model.plan import ExperimentPlan, Plan
from trialwise.model.run import RunRecord
from trialwise.model.trial import Analysis, Trial
from trialwise.procedures.comparing.comparison_findings import AmountDifference, PairingSummary
from trialwise.stats.compliance_cutoffs import compliance_cutoff
from trialwise.stats.result_types import Interval


@dataclass(frozen=True, slots=True)
class Pair:
    """One input and repetition under two arms."""

    control: Trial
    candidate: Trial

    @property
    def is_excused(self) -> bool:
        """Whether either trial was not measured."""
        return self.control.is_excused or self.candidate.is_excused

    def is_left_out(self, analysis: Analysis) -> bool:
        """Return whether the analysis leaves either trial out."""
        return any(
            analysis.leaves_out(trial.error_class) for trial in (self.control, self.candidate)
        )

    def is_unjudged(self, criterion: str) -> bool:
        """Return whether a judge gave one criterion no verdict on a reply of either."""
        return any(
            trial.is_unjudged(trial.outcome(criterion)) for trial in (self.control, self.candidate)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """The pairs of one experiment, and all trials for where there are none."""

    summary: PairingSummary
    pairs: tuple[Pair, ...]
    """In the control's order of inputs."""
    control: tuple[Trial, ...]
    candidate: tuple[Trial, ...]
    stops: tuple[StopReason, StopReason]

    @property
    def repeats(self) -> bool:
        """Whether an input makes more than one pair."""
        return len({pair.control.input_id for pair in self.pairs}) < len(self.pairs)


def pair_trials(
    control: RunRecord,
    candidate: RunRecord,
    experiments: tuple[str, str],
    *,
    labels: tuple[str, str] = ("control", "candidate"),
) -> Pairing:
    """Pair the trials of an experiment of one run with those of another.

    Args:
        control: The run of the control.
        candidate: The run of the candidate.
        experiments: Their names in the two plans, which may differ.
        labels: The labels of the two arms.
    """
    ours, theirs = (
        tuple(record.trials.of_experiment(name).sketches())
        for record, name in zip((control, candidate), experiments, strict=True)
    )
    plans = (
        _find_experiment(control.plan, experiments[0]),
        _find_experiment(candidate.plan, experiments[1]),
    )
    stops = _stop(control, experiments[0]), _stop(candidate, experiments[1])
    same_inputs = plans[0].fingerprint == plans[1].fingerprint
    inputs = {trial.index: trial.input_id for trial in ours}
    shared = [trial for trial in theirs if trial.index in inputs]
    same_order = same_inputs and all(inputs[one.index] == one.input_id for one in shared)
    fixed = all(
        _is_fixed(record.plan, name) and stop is StopReason.COMPLETE
        for record, name, stop in zip((control, candidate), experiments, stops, strict=True)
    )
    pairs: tuple[Pair, ...] = ()
    if fixed and same_inputs:
        pairs = _by_repetition(ours, theirs)
    elif same_order:
        pairs = _beginning(ours, theirs)
    return Pairing(
        summary=PairingSummary(
            experiment=experiments[0],
            against=labels[0],
            arm=labels[1],
            pairs=len(pairs),
            same_inputs=same_inputs,
            same_order=same_order,
            same_seeds=bool(pairs) and all(one.control.seed == one.candidate.seed for one in pairs),
            fixed_size=fixed,
            left_out=(len(ours) - len(pairs), len(theirs) - len(pairs)),
            excused=sum(pair.is_excused for pair in pairs),
        ),
        pairs=pairs,
        control=ours,
        candidate=theirs,
        stops=stops,
    )


def _find_experiment(plan: Plan, name: str) -> ExperimentPlan:
    return next(one for one in plan.experiments if one.name == name)


def _stop(record: RunRecord, name: str) -> StopReason:
    ends = {one.name: one.stop for one in record.verdict.experiments}
    return ends.get(name, record.verdict.stop)


def _is_fixed(plan: Plan, name: str) -> bool:
    """Return whether no outcome could change the number of trials.

    Also a design that ran to its last trial may have done so because of what it saw.
    """
    if plan.purpose == "measure" or any(one.experiment == name for one in plan.latency):
        return True
    return not any(
        one.limits.design is not None or (one.curtailed and one.cutoff is not None)
        for one in plan.criteria_of(name)
        if not one.rides_along
    )


def _by_repetition(ours: Sequence[Trial], theirs: Sequence[Trial]) -> tuple[Pair, ...]:
    """Pair the k-th trial of an input with the k-th of the other run; k depends on no outcome."""
    partners = dict(_repetitions(theirs))
    return tuple(Pair(trial, partners[key]) for key, trial in _repetitions(ours) if key in partners)


def _repetitions(trials: Sequence[Trial]) -> list[tuple[tuple[str, int], Trial]]:
    seen: Counter[str] = Counter()
    found = []
    for trial in sorted(trials, key=lambda one: one.index):
        found.append(((trial.input_id, seen[trial.input_id]), trial))
        seen[trial.input_id] += 1
    return found


def _beginning(ours: Sequence[Trial], theirs: Sequence[Trial]) -> tuple[Pair, ...]:
    """Return the gapless beginning of the order of inputs that both runs have."""
    first, second = ({trial.index: trial for trial in one} for one in (ours, theirs))
    pairs: list[Pair] = []
    while len(pairs) in first and len(pairs) in second:
        pairs.append(Pair(first[len(pairs)], second[len(pairs)]))
    return tuple(pairs)


@dataclass(frozen=True, slots=True)
class _Amount:
    name: str
    basis: str
    of: Callable[[Trial], float | None]
    """What a trial took, without its setup."""
    of_successes: bool = False


_AMOUNTS = (
    _Amount(
        "latency_s",
        "pairs in which both passed every criterion",
        lambda trial: trial.latency_s,
        of_successes=True,
    ),
    _Amount("cost_usd", "pairs in which both say what they cost", lambda trial: trial.cost_usd),
    _Amount(
        "tokens",
        "pairs in which both say what they used",
        lambda trial: None if trial.usage is None else trial.usage.total_tokens,
    ),
)


def amount_differences(pairing: Pairing, *, confidence: float) -> Iterator[AmountDifference]:
    """Yield what the pairs of an experiment took, amount by amount; none where no pair says."""
    for amount in _AMOUNTS:
        taken = [both for pair in pairing.pairs if (both := _both(amount, pair)) is not None]
        if taken:
            differences = [candidate - control for control, candidate in taken]
            yield AmountDifference(
                name=amount.name,
                arm=pairing.summary.arm,
                against=pairing.summary.against,
                experiment=pairing.summary.experiment,
                pairs=len(taken),
                basis=amount.basis,
                control_mean=fmean(control for control, _ in taken),
                candidate_mean=fmean(candidate for _, candidate in taken),
                median_difference=median(differences),
                interval=median_interval(differences, confidence=confidence),
            )


def _both(amount: _Amount, pair: Pair) -> tuple[float, float] | None:
    if amount.of_successes and not (pair.control.passed and pair.candidate.passed):
        return None
    control, candidate = amount.of(pair.control), amount.of(pair.candidate)
    return None if control is None or candidate is None else (control, candidate)


def median_interval(values: Sequence[float], *, confidence: float) -> Interval | None:
    """Return an exact confidence interval for a median: two order statistics, as far in as allowed.

    With X ~ Binomial(n, ½), the r-th value from either end bounds the median on its side unless
    X < r, so that r is the largest with P(X < r) ≤ (1 − confidence)/2.

    Args:
        values: Independent of one another.
        confidence: The confidence of the interval, kept at least.

    >>> median_interval(range(1, 11), confidence=0.95)
    Interval(low=2, high=9, confidence=0.95, method='order statistics')
    >>> median_interval([1, 2, 3], confidence=0.95) is None
    True
    """
    alpha = float((1 - as_written(confidence)) / 2)
    n = len(values)
    cutoff = compliance_cutoff(0.5, n, alpha=alpha, rule="exact").cutoff if n else None
    if cutoff is None:
        return None
    ordered = sorted(values)
    low, high = ordered[n - cutoff], ordered[cutoff - 1]
    return Interval(low, high, confidence=confidence, method="order statistics")
